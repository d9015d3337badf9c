"""Ctrl-C and SIGTERM: end after the block that is being worked on; a second one ends at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from klnumba.cli.errors import tell
from klnumba.scoring import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Yield what `score` asks whether to stop; tell of an interruption on one line and leave as the signal would."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield lambda: bool(came)
    except Interrupted as error:
        tell(str(error))
        raise SystemExit(128 + came[0]) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def leaving() -> Iterator[None]:
    """SIGTERM inside ends the process by way of an exception, so that files which are half written are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
