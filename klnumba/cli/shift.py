"""The second demo: what sets malignant tumours apart from benign ones, measurement by measurement."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from klnumba.cli import changes
from klnumba.cli.errors import needs

if TYPE_CHECKING:
    from klnumba.tables import Comparison


def run(html: Path) -> Comparison:
    """Write both halves of the data as files, compare them as `klnumba compare` does, and write the report."""
    with needs("demo"):
        from sklearn.datasets import load_breast_cancer

        from klnumba import tables
    table = load_breast_cancer(as_frame=True).frame
    malignant = table.pop("target") == 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("benign.csv", "malignant.csv")]
        for path, rows in zip(paths, (table[~malignant], table[malignant]), strict=True):
            rows.to_csv(path, index=False)
        found = tables.compare(*map(tables.scan, paths))
    found.report(html, title="Benign and malignant tumours")
    return found


def show(found: Comparison, html: Path, console: Console) -> None:
    """Print the table and where the report is."""
    console.print("klnumba compare benign.csv malignant.csv --html REPORT.html\n")
    changes.show(found, console)
    console.print(f"Report: {html.resolve()}", soft_wrap=True)
