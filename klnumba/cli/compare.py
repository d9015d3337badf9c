"""`klnumba compare`: two files of tables, a table of what changed, and an exit status for pipelines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
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
        float | None, typer.Option(help="Leave with status 1 if the kl of a column is above this, or has no value.")
    ] = None,
    fail_p: Annotated[
        float | None, typer.Option(help="Leave with status 1 if an adjusted p-value is below this, or there is none.")
    ] = None,
    to_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What changed between two .csv, .csv.gz, .parquet, .feather or .jsonl tables, column by column."""
    with one_line():
        _check_limits(fail_above, fail_p)
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
    with _progress() as watched:
        if reference.lower().endswith(".json"):
            if fitting["bins"] != "auto":
                raise InputError(f"--bins: {reference} has its cells already")
            fitted = _profile(reference)
        else:
            with _reading(reference):
                chunks = tables.scan(reference)
                weights = _weights(chunks, fitting["weights"])
                fitted = tables.Profile.fit(watched(chunks), **(fitting | {"weights": weights}))
        if profile is not None:
            with replacing(profile) as file:
                file.write((fitted.to_json() + "\n").encode())
        with _reading(current):
            other = tables.scan(current)
            pair = (None, _weights(other, fitting["weights"]))
            if fitting["weights"] is not None and (weights, pair[1]) == (None, None):
                raise InputError(f"--weights: {fitting['weights']!r} is in neither table")
            return tables.compare(fitted, watched(other), columns=fitting["columns"], weights=pair, **options)


def _check_limits(above: float | None, level: float | None) -> None:
    if above is not None and not above >= 0.0:
        raise InputError(f"--fail-above: a number from 0 on, not {above}")
    if level is not None and not 0.0 <= level <= 1.0:
        raise InputError(f"--fail-p: a number from 0 to 1, not {level}")


def _profile(path: str) -> Any:
    """A saved reference."""
    from klnumba.tables import Profile

    try:
        return Profile.from_json(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: {str(error).removeprefix('text: ')}") from error


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
def _progress() -> Iterator[Callable[[Any], Any]]:
    """How many rows of each file are read, on standard error, gone at the end; nothing where it is no terminal.

    A reference is read twice: its cells are fitted first, then counted.
    """
    console = Console(stderr=True)
    shown = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:,.0f} rows"), TimeElapsedColumn())
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bars:

        def watched(chunks: Any) -> Any:
            def pieces() -> Iterator[Any]:
                task = bars.add_task(Path(chunks.title).name, total=None)
                for piece in chunks:
                    yield piece
                    bars.advance(task, len(piece))

            return replace(chunks, make=pieces)

        yield watched


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
    """Whether a limit is passed, or one is set and a column of the reference has nothing to hold against it."""
    if above is None and level is None:
        return False
    lost = any(name in found.profile.cells for name in found.problems)
    lost = lost or any(one.empty is not None for one in found.results.values())
    values = [one.values for one in found.results.values()]
    high = above is not None and any(one["kl"] > above for one in values)
    return lost or high or (level is not None and any(one["p_adjusted"] < level for one in values))


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
        ends = [_number(row[end]) for end in ("ci_low", "ci_high")]
        level = row["p_adjusted"]
        mark = "bold" if level < 1.0 - found.settings.confidence else ""
        p_value = "< 0.001" if level < 0.001 else _number(level)
        cells = [_number(row["kl"]), " to ".join(filter(None, ends)), p_value]
        cells += [_number(row["js"]), _number(row["psi"])] if wide else []
        last = row["status"] if row["largest_cell"] is None else row["largest_cell"]
        table.add_row(Text(_visible(name), style=mark), *cells, Text(_visible(last)))
    console.print(table)
    if len(order) > MOST_ROWS:
        console.print(f"and {len(order) - MOST_ROWS} columns more, which --json or --html show")
    for name, reason in found.problems.items():
        console.print(Text(_visible(f"{name}: {reason}")))


def _visible(text: str) -> str:
    """Other people's text, without what would command the terminal or turn its lines around."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
