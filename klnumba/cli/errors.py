"""What the user got wrong, told in one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from klnumba.scoring.errors import InputError, needs

EXIT_CODE = 2
DEFECT = 3  # the status after a traceback: Python's own, 1, says that something changed

__all__ = ["DEFECT", "EXIT_CODE", "InputError", "needs", "one_line", "tell"]


@contextmanager
def one_line() -> Iterator[None]:
    """Report what the user can mend on one line of stderr and leave with `EXIT_CODE`; let defects through.

    Warnings are a line each, without the place in the code.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: tell(f"warning: {message}")
            yield
    except (InputError, OSError, MemoryError) as error:
        tell(str(error).strip() or type(error).__name__)
        raise SystemExit(EXIT_CODE) from error


def tell(text: str) -> None:
    """Print a line on standard error; where nobody reads it, the status is there still."""
    if sys.stderr is None:  # closed before Python began, and `print` would take standard output
        return
    with suppress(OSError):
        print(f"klnumba: {' '.join(text.split())}", file=sys.stderr)
