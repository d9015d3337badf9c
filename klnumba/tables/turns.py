"""Large tables of words are made one at a time, where each is dropped before the next: so memory knows no threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_large = threading.Lock()
_here = threading.local()


@contextmanager
def taken() -> Iterator[None]:
    """Within this, a thread whose table grows large waits until no other has one; to be left without the table."""
    _here.waits, _here.held = True, False
    try:
        yield
    finally:
        _here.waits = False
        if _here.held:
            _here.held = False
            _large.release()


def wait() -> None:
    """Wait for the turn of this thread."""
    if getattr(_here, "waits", False) and not _here.held:
        _large.acquire()
        _here.held = True
