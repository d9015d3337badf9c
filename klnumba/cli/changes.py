"""A comparison as a table on the terminal: as many columns as its width has room for, and no figure cut."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from klnumba.tables import Comparison

MOST_ROWS = 60


class Shown(NamedTuple):
    """A column of the table: its head, the least width of the terminal that has room for it, whether it is words."""

    head: str
    width: int = 0
    words: bool = False


def show(found: Comparison, console: Console) -> None:
    """Print the columns, the strongest evidence first, then those that could not be compared."""
    rows = {row["column"]: row for row in found.rows()}
    order = found.by_evidence()
    kept = [one for one in _columns(found) if one.width <= console.width]
    table = Table(title=_title(found), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for one in kept:
        table.add_column(one.head, justify="left" if one.words else "right", no_wrap=not one.words, overflow="fold")
    for name in order[:MOST_ROWS]:
        texts = _texts(rows[name])
        style = "bold" if rows[name]["p_adjusted"] < 1.0 - found.settings.confidence else ""
        cells = [Text(text) for text, one in zip(texts, _columns(found), strict=True) if one in kept]
        cells[0].stylize(style)
        table.add_row(*cells)
    console.print(table)
    if len(order) > MOST_ROWS:
        console.print(f"and {len(order) - MOST_ROWS} columns more, which --json or --html show")
    empty = {name: one.empty for name, one in found.results.items() if one.empty is not None}
    for name, reason in (empty | found.problems).items():
        console.print(Text(_visible(f"{name}: {reason}")))


def _columns(found: Comparison) -> list[Shown]:
    share = f"{found.settings.percent} interval"
    corrected = [Shown("corrected", 68), Shown(share, 68)]  # the interval is around the corrected KL
    return [Shown("column", words=True), Shown("KL", 20), *corrected, Shown("p, adj.", 30), Shown("JS", 100),
            Shown("PSI", 100), Shown("largest cell", 80, words=True)]  # fmt: skip


def _title(found: Comparison) -> str:
    base = found.settings.base
    unit = "nats" if base is None else "bits" if base == 2 else f"units of log {base:g}"
    return f"KL(reference || current) in {unit}"


def _texts(row: dict[str, Any]) -> list[str]:
    """What the table says of a column."""
    level = row["p_adjusted"]
    ends = " to ".join(filter(None, (_number(row[end]) for end in ("ci_low", "ci_high"))))
    return [
        _visible(row["column"]), _number(row["kl"]), _number(row["kl_corrected"]), ends,
        "< 0.001" if level < 0.001 else _number(level), _number(row["js"]), _number(row["psi"]),
        _visible(row["largest_cell"] or ""),
    ]  # fmt: skip


def _visible(text: str) -> str:
    """Other people's text, without what would command the terminal or turn its lines around."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
