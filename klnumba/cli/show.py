"""Tables and JSON on standard output."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table
from rich.text import Text

from klnumba.cli.printing import Terminal
from klnumba.jsonable import as_json
from klnumba.scoring.report import Report


def print_json(item: dict[str, Any]) -> None:
    """Print as JSON, which has no infinity and no NaN."""
    print(json.dumps(as_json(item), indent=2))


def print_pairs(title: str, pairs: dict[str, Any]) -> None:
    """Print names and values."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _flat(pairs):
        table.add_row(name.replace("_", " "), _text(value))
    Terminal().print(table)


def print_report(report: Report) -> None:
    """Print the statistics side by side."""
    found = {name: dict(report[name].lines()) for name in report.states}
    title = f"KL(P||Q) in {report.unit}" if list(found) == ["kl"] else f"Rows of P and Q, in {report.unit}"
    table = Table(title=title, show_header=len(found) > 1, title_justify="left")
    table.add_column("", style="bold", no_wrap=True)
    for name in found:
        table.add_column(name, justify="right", overflow="fold")
    for line in max(found.values(), key=len):
        table.add_row(line, *(one.get(line, "") for one in found.values()))
    console = Terminal()
    console.print(table)
    if report.masked_rows:
        console.print(f"{report.masked_rows:,} more rows have no cell that the mask holds.")
    if report.about.get("coarsened"):
        kept = report.about["reference"]["top_k"]
        console.print(f"Of the coarsened distributions: the {kept:,} largest cells of P, and all others as one.")


def _text(value: Any) -> Text:
    return Text(f"{value:.6g}" if isinstance(value, float) else str(value))


def _flat(pairs: dict[str, Any]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for name, value in pairs.items():
        if isinstance(value, dict):
            lines += [(f"{name} {inner}", item) for inner, item in _flat(value)]
        else:
            lines.append((name, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value))
    return lines
