"""The command ``klnumba``, begun so that Ctrl-C ends it without a traceback while Python still loads the package.

It lies beside the package, since whatever lies within is loaded after ``klnumba/__init__.py``.
"""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Load the command and run it."""
    held = signal.getsignal(signal.SIGINT)
    if held is signal.default_int_handler:  # behind `nohup` it is ignored
        # An exception would be lost where a library that is being imported catches all of them.
        signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))
    from klnumba.cli import main as run

    signal.signal(signal.SIGINT, held)
    run()
