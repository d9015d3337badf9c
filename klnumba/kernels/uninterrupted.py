"""Changes of several parts that Ctrl-C cannot part."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C until the end of the block, so that it cannot come between two halves of a change."""
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])
