"""What a caller can mend: a file, an argument, a missing library, told in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """A file, an argument or an environment that cannot be worked with; the text says which and why."""


class Interrupted(Exception):
    """The work was asked to stop between two blocks, and what is done has been kept where there is a place for it."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a missing optional library into a hint that names the extra which brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f'{error.name} is not installed: python -m pip install "klnumba[{extra}]"') from error
