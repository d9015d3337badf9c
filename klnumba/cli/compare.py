"""`klnumba compare`: two files of tables, a table of what changed, and an exit status for pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from klnumba.cli.changes import show
from klnumba.cli.errors import InputError, needs, one_line
from klnumba.cli.outputs import check_outputs
from klnumba.cli.printing import Terminal, printing
from klnumba.files import lacking, replacing
from klnumba.scoring.outputs import check_suffix

if TYPE_CHECKING:
    from klnumba.tables import Chunks, Comparison, Profile

NAMES = 'names with commas between, in double quotes where a name has a comma, such as "a,b",c'
NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^",][^,]*))(?=,|\Z)')  # up to the comma
SAVED = ".json"  # the suffix of a saved reference
CHANGED = 1  # the exit status when a limit is passed


def compare(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="The table to compare with, or a saved profile (.json).")
    ],
    current: Annotated[str | None, typer.Argument(metavar="CURRENT", help="The table that may have changed.")] = None,
    columns: Annotated[str | None, typer.Option(help=f"Compare these columns alone: {NAMES}.")] = None,
    bins: Annotated[
        str, typer.Option(help="auto, quantile, sturges, doane, fd, category, how many, or edges with commas between.")
    ] = "auto",
    weights: Annotated[str | None, typer.Option(help="The column that holds the weights of the rows.")] = None,
    smoothing: Annotated[
        str, typer.Option(help="jeffreys, laplace, perks, james-stein, none, or a pseudo-count.")
    ] = "jeffreys",
    base: Annotated[float | None, typer.Option(help="Base of the logarithm, above 1.", show_default="e: nats")] = None,
    missing: Annotated[str, typer.Option(help="cell: missing values are a cell; drop: they are left out.")] = "cell",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="With two tables: save the fitted reference to this file, once they are compared. With one, which is "
            "then CURRENT: compare it with the reference saved in this file.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.", metavar="FILE.html")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Leave with status 1 if the kl of a column is above this, or has no value.")
    ] = None,
    fail_p: Annotated[
        float | None, typer.Option(help="Leave with status 1 if an adjusted p-value is below this, or there is none.")
    ] = None,
    to_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What changed between two .csv, .csv.gz, .parquet, .feather or .jsonl tables, column by column.

    In CSV, an empty field is missing; NA, NaN, None or null is so among numbers or truth values alone.
    """
    with one_line():
        _check_limits(fail_above, fail_p)
        before, after, save = _sides(reference, current, profile)
        check_outputs({"--profile": save, "--html": html}, (before, after))
        if html is not None:
            check_suffix(html, "--html", ".html", ".htm")
        try:
            found = _found(
                before, after, columns=_names(columns), weights=weights, bins=_bins(bins),
                smoothing=_smoothing(smoothing), base=base, missing=missing, confidence=confidence,
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error
        if save is not None:
            with replacing(save.resolve()) as file:
                file.write(_bytes(found.profile.to_json() + "\n"))
        if html is not None:
            with needs("tables"):
                found.report(html, title=f"{Path(before).name} and {Path(after).name}")
    with printing():
        if to_json:
            print(_bytes(found.to_json(indent=2)).decode())
        else:
            show(found, Terminal())
            if html is not None:
                print(f"Report: {html}")
    if _beyond(found, fail_above, fail_p):
        raise typer.Exit(CHANGED)


def _sides(reference: str, current: str | None, profile: Path | None) -> tuple[str, str, Path | None]:
    """The reference, the current table, and where to save the fitted reference."""
    if profile is not None:
        check_suffix(profile, "--profile", SAVED)
    if current is None and profile is None:
        raise InputError("CURRENT: compare takes two tables, or --profile FILE.json and one")
    table = reference if current is None else current
    if _saved(table):
        raise InputError(f"CURRENT: a table, not {table}; a saved reference stands first, or goes to --profile")
    if current is None:
        return str(profile), reference, None
    if profile is not None and _saved(reference):
        raise InputError(f"--profile: {reference} is a saved reference already; leave one of the two out")
    return reference, current, profile


def _saved(path: str) -> bool:
    return path.lower().endswith(SAVED)


def _bytes(text: str) -> bytes:
    """UTF-8; half a surrogate pair, which has none, becomes what JSON writes for it."""
    return text.encode(errors="backslashreplace")


def _found(before: str, after: str, *, bins: Any, columns: list[str] | None, **options: Any) -> Comparison:
    weights: str | None = options.pop("weights")
    with needs("tables"):
        from klnumba import tables
        from klnumba.tables.options import settings
    settings(**options)  # refused before a file is read
    if _saved(before) and bins != "auto":
        raise InputError(f"--bins: {before} has its cells already")
    with _progress() as watched:
        reference, current = None if _saved(before) else tables.scan(before), tables.scan(after)
        pair = [None if table is None else _held(table, weights) for table in (reference, current)]
        if weights is not None and not any(pair):
            raise InputError(f"--weights: {weights!r} is in neither table")
        if reference is None:
            fitted = _profile(before)
        else:
            fitted = tables.Profile.fit(watched(reference), columns=columns, weights=pair[0], bins=bins)
        return tables.compare(fitted, watched(current), columns=columns, weights=(None, pair[1]), **options)


def _held(table: Chunks, name: str | None) -> str | None:
    """The column of weights, if this table has it."""
    return name if name is not None and name in table.names() else None


def _check_limits(above: float | None, level: float | None) -> None:
    if above is not None and not above >= 0.0:
        raise InputError(f"--fail-above: a number from 0 on, not {above}")
    if level is not None and not 0.0 <= level <= 1.0:
        raise InputError(f"--fail-p: a number from 0 to 1, not {level}")


def _profile(path: str) -> Profile:
    """A saved reference."""
    from klnumba.tables import Profile

    try:
        return Profile.from_json(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(lacking(Path(path))) from error
    except ValueError as error:
        raise InputError(f"{path}: {str(error).removeprefix('text: ')}") from error


@contextmanager
def _progress() -> Iterator[Callable[[Chunks], Chunks]]:
    """How many rows of each file are read, on standard error, gone at the end; nothing where it is no terminal.

    A reference is read twice: its cells are fitted first, then counted. Rows read for their types alone do not count.
    """
    console = Console(stderr=True)
    shown = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:,.0f} rows"), TimeElapsedColumn())
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bars:

        def watched(chunks: Chunks) -> Chunks:
            def pieces() -> Iterator[Any]:
                task = bars.add_task(Path(chunks.title).name, total=None)
                for piece in chunks:
                    yield piece
                    bars.advance(task, len(piece))
                bars.remove_task(task)  # a file is read as often as its columns need

            narrow = None if chunks.select is None else lambda kept: watched(chunks.only(kept))
            return replace(chunks, make=pieces, select=narrow)

        yield watched


def _names(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names, start = [], 0
    while start <= len(columns):
        found = NAME.match(columns, start)
        if found is None:
            raise InputError(f"--columns: {NAMES}, not {columns!r}")
        names.append(found[2].strip() if found[1] is None else found[1].replace('""', '"'))
        start = found.end() + 1
    return names


def _bins(text: str) -> Any:
    try:
        if text.isdecimal():
            return int(text)
        return [float(one) for one in text.split(",")] if "," in text else text
    except ValueError:
        raise InputError(f"--bins: numbers with commas between, not {text[:40]!r}") from None


def _smoothing(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _beyond(found: Comparison, above: float | None, level: float | None) -> bool:
    """Whether a limit is passed, or one is set and a column of the reference has nothing to hold against it."""
    if above is None and level is None:
        return False
    lost = any(name in found.profile.cells or name in found.profile.problems for name in found.problems)
    lost = lost or any(one.empty is not None for one in found.results.values())
    values = [one.values for one in found.results.values()]
    high = above is not None and any(not one["kl"] <= above for one in values)  # NaN passes no limit
    return lost or high or (level is not None and any(not one["p_adjusted"] >= level for one in values))
