"""The second demo: the tables of benign and malignant tumours, for `klnumba compare`."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from klnumba.cli.errors import needs


def write(folder: Path) -> tuple[Path, Path]:
    """Write 30 measurements of benign and of malignant tumours as two tables."""
    with needs("demo"):
        from sklearn.datasets import load_breast_cancer
    table = load_breast_cancer(as_frame=True).frame
    malignant = table.pop("target") == 0
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "benign.csv", folder / "malignant.csv"
    for path, rows in zip(paths, (table[~malignant], table[malignant]), strict=True):
        rows.to_csv(path, index=False)
    return paths


def show(paths: tuple[Path, Path]) -> None:
    """Print where the tables are, and the line that compares them."""
    print(f"Written: {paths[0]} and {paths[1]}. To compare them, column by column:\n")
    print(shlex.join([*_command(), "compare", *map(str, paths), "--html", str(paths[0].with_name("report.html"))]))


def _command() -> list[str]:
    """The words that ran this command, to be typed again in the same folder."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return [sys.executable, "-m", "klnumba"]
    found = shutil.which("klnumba")
    return ["klnumba"] if found is not None and Path(found).resolve() == called.resolve() else [str(called)]
