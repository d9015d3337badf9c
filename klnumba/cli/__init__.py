"""The command ``klnumba``: scores files of rows, tells about the installation, runs the demo."""

from __future__ import annotations

import signal
import sys
import traceback

NEEDED = ("typer", "rich")
INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command; without its two libraries, say in one line how to get them. Ctrl-C ends it without a word."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> None:
    from klnumba.cli.errors import DEFECT, EXIT_CODE

    try:
        from klnumba.cli.app import app

        app(prog_name="klnumba")
    except Exception as error:
        missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if missing not in NEEDED:
            traceback.print_exc()
            sys.exit(DEFECT)
        print(f'klnumba: the command needs {missing}: python -m pip install "klnumba[cli]"', file=sys.stderr)
        sys.exit(EXIT_CODE)
