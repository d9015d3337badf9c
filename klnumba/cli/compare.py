"""`klnumba compare`: two files of tables, a table of what changed, and an exit status for pipelines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from klnumba.cli.errors import InputError, needs, one_line
from klnumba.files import replacing

if TYPE_CHECKING:
    from klnumba.tables import Comparison

CHANGED = 1  # the exit status when a limit is passed
MOST_ROWS = 60
WIDE = 100  # a terminal this wide shows JS and PSI too


def compare(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="The table to compare with, or a saved profile (.json).")
    ],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="The table that may have changed.")],
    columns: Annotated[str | None, typer.Option(help="Compare these columns alone: names with commas between.")] = None,
    bins: Annotated[
        str, typer.Option(help="auto, quantile, sturges, doane, fd, category, how many, or edges with commas between.")
    ] = "auto",
    weights: Annotated[str | None, typer.Option(help="The column that holds the weights of the rows.")] = None,
    smoothing: Annotated[
        str, typer.Option(help="jeffreys, laplace, perks, james-stein, none, or a pseudo-count.")
    ] = "jeffreys",
    base: Annotated[float | None, typer.Option(help="Base of the logarithm.", show_default="e: nats")] = None,
    missing: Annotated[str, typer.Option(help="cell: missing values are a cell; drop: they are left out.")] = "cell",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    profile: Annotated[
        Path | None, typer.Option(help="Save the fitted reference to this .json file, for later calls.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Leave with status 1 if the kl of a column is above this.")
    ] = None,
    fail_p: Annotated[
        float | None, typer.Option(help="Leave with status 1 if an adjusted p-value is below this.")
    ] = None,
    to_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What changed between two .csv, .csv.gz, .parquet, .feather or .jsonl tables, column by column."""
    with one_line():
        for path in (html, profile):
            if path is not None and not path.parent.is_dir():
                raise InputError(f"{path}: no such folder: {path.parent}")
        try:
            found = _found(
                reference, current, profile, columns=_names(columns), weights=weights, bins=_bins(bins),
                smoothing=_smoothing(smoothing), base=base, missing=missing, confidence=confidence,
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error
        if html is not None:
            with needs("tables"):
                found.report(html, title=f"{Path(reference).name} and {Path(current).name}")
    if to_json:
        print(found.to_json(indent=2))
    else:
        show(found, Console())
        if html is not None:
            print(f"Report: {html}")
    if _beyond(found, fail_above, fail_p):
        raise typer.Exit(CHANGED)


def _found(reference: str, current: str, profile: Path | None, **options: Any) -> Comparison:
    with needs("tables"):
        from klnumba import tables
    fitting = {name: options.pop(name) for name in ("columns", "weights", "bins")}
    weights = None
    with _progress() as report:
        if reference.lower().endswith(".json"):
            fitted = tables.Profile.from_json(Path(reference).read_text(encoding="utf-8"))
        else:
            with _reading(reference):
                chunks = tables.scan(reference)
                weights = _weights(chunks, fitting["weights"])
                fitted = tables.Profile.fit(chunks, **(fitting | {"weights": weights}), progress=report("reference"))
        if profile is not None:
            with replacing(profile) as file:
                file.write((fitted.to_json() + "\n").encode())
        with _reading(current):
            other = tables.scan(current)
            pair = (None, _weights(other, fitting["weights"]))
            if fitting["weights"] is not None and (weights, pair[1]) == (None, None):
                raise InputError(f"--weights: {fitting['weights']!r} is in neither table")
            return tables.compare(
                fitted, other, columns=fitting["columns"], weights=pair, **options, progress=report("current")
            )


def _weights(chunks: Any, name: str | None) -> str | None:
    """The column of weights, if this table has it."""
    if name is None:
        return None
    first = next(iter(chunks), None)
    names = getattr(first, "column_names", getattr(first, "columns", ()))
    return name if name in map(str, names) else None


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Name the file in what its reader complains about."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (UnicodeDecodeError, EOFError)) or type(error).__module__.startswith(
            ("pyarrow", "pandas")
        ):
            raise InputError(f"{path}: cannot be read: {error}") from error
        raise


@contextmanager
def _progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Bars on standard error, which go away at the end; none where it is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:

        def report(name: str) -> Callable[[int, int], None]:
            task = bars.add_task(name, total=None)
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield report


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _bins(text: str) -> Any:
    if text.isdigit():
        return int(text)
    if "," not in text:
        return text
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise InputError(f"--bins: numbers with commas between, not {text!r}") from None


def _smoothing(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _beyond(found: Comparison, above: float | None, level: float | None) -> bool:
    values = [one.values for one in found.results.values()]
    high = above is not None and any(one["kl"] > above for one in values)
    return high or (level is not None and any(one["p_adjusted"] < level for one in values))


def show(found: Comparison, console: Console) -> None:
    """Print the columns, the strongest evidence first, then those that could not be compared."""
    rows = {row["column"]: row for row in found.rows()}
    order = found.by_evidence()
    base = found.settings.base
    unit = "nats" if base is None else "bits" if base == 2 else f"units of log {base:g}"
    share = f"{100 * found.settings.confidence:g} % interval"
    wide = console.width >= WIDE
    table = Table(title=f"KL(reference || current) in {unit}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("column", "KL", share, "p, adj.", *(("JS", "PSI") if wide else ()), "largest cell"):
        words = name in ("column", "largest cell")
        table.add_column(name, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    for name in order[:MOST_ROWS]:
        row = rows[name]
        interval = f"{_number(row['ci_low'])} to {_number(row['ci_high'])}"
        level = row["p_adjusted"]
        mark = "bold" if level < 1.0 - found.settings.confidence else ""
        p_value = "< 0.001" if level < 0.001 else _number(level)
        cells = [_number(row["kl"]), interval, p_value]
        cells += [_number(row["js"]), _number(row["psi"])] if wide else []
        last = row["status"] if row["largest_cell"] is None else row["largest_cell"]
        table.add_row(Text(name, style=mark), *cells, Text(last))
    console.print(table)
    if len(order) > MOST_ROWS:
        console.print(f"and {len(order) - MOST_ROWS} columns more, which --json or --html show")
    for name, reason in found.problems.items():
        console.print(Text(f"{name}: {reason}"))


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
