"""What the user got wrong, told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_CODE = 2


class InputError(Exception):
    """A file, an argument or an environment that the command cannot work with; the text says which and why."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a missing optional library into a hint that names the extra which brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f'{error.name} is not installed: python -m pip install "klnumba[{extra}]"') from error


@contextmanager
def one_line() -> Iterator[None]:
    """Report what the user can mend on one line of stderr and leave with `EXIT_CODE`; let defects through."""
    try:
        yield
    except (InputError, OSError, MemoryError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"klnumba: {text}", file=sys.stderr)
        raise SystemExit(EXIT_CODE) from error
