"""Large tables of words are made one at a time, where each is dropped before the next: so memory knows no threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_large = threading.Lock()
_here = threading.local()


def _fresh() -> None:
    """In a forked child: a lock that another thread held in the parent is held for ever."""
    global _large
    _large = threading.Lock()
    if getattr(_here, "held", False):
        _large.acquire()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh)


class GivenUp(Exception):
    """Nobody wants the table any more."""


@contextmanager
def taken(unwanted: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within this, a thread whose table grows large waits until no other has one; to be left without the table.

    What becomes `unwanted` while it waits ends with `GivenUp`.
    """
    _here.waits, _here.held, _here.unwanted = True, False, unwanted
    try:
        yield
    finally:
        _here.waits, _here.unwanted = False, None  # which may hold a table
        if _here.held:
            _here.held = False
            _large.release()


def wait() -> None:
    """Wait for the turn of this thread."""
    if getattr(_here, "waits", False) and not _here.held:
        _large.acquire()
        _here.held = True
        if _here.unwanted():
            raise GivenUp
