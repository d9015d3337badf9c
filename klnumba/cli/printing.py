"""Standard output, written to its end: a full disk is told on one line, and a reader that has left is no error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from klnumba.cli.errors import InputError, one_line


class Terminal(Console):
    """A console that leaves a closed pipe to `printing`, where rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Called where rich catches the error."""
        raise


@contextmanager
def printing() -> Iterator[None]:
    """Print inside: what cannot be written is an error as in `one_line`; after ``| head`` the status is what it was."""
    with one_line():
        if sys.stdout is None:  # closed before Python began, and `print` then does nothing
            raise InputError("standard output: closed")
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            _drop()
        except OSError as error:
            _drop()
            raise InputError(f"standard output: {error.strerror or error}") from error


def _drop() -> None:
    """Let what is still buffered go nowhere: Python would fail once more when it writes it at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
