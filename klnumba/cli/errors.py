"""What the user got wrong, told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from klnumba.scoring.errors import InputError, needs

EXIT_CODE = 2
DEFECT = 3  # the status after a traceback: Python's own, 1, says that something changed

__all__ = ["DEFECT", "EXIT_CODE", "InputError", "needs", "one_line"]


@contextmanager
def one_line() -> Iterator[None]:
    """Report what the user can mend on one line of stderr and leave with `EXIT_CODE`; let defects through."""
    try:
        yield
    except (InputError, OSError, MemoryError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        with suppress(OSError):  # where nobody reads it, the status is there still
            print(f"klnumba: {text}", file=sys.stderr)
        raise SystemExit(EXIT_CODE) from error
