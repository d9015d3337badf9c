"""The command ``klnumba``: scores files of rows, tells about the installation, runs the demo."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich")


def main() -> None:
    """Run the command; without its two libraries, say in one line how to get them."""
    try:
        from klnumba.cli.app import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in NEEDED:
            raise
        sys.exit(f'klnumba: the command needs {missing}: python -m pip install "klnumba[cli]"')
    app(prog_name="klnumba")
