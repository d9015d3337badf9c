"""How far a run has come, on standard error: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from klnumba.reduction import flag, short
from klnumba.scoring.blocks import Watch
from klnumba.scoring.errors import InputError, needs

PAUSE = 10.0  # seconds between lines


def checked(wanted: Any) -> bool | Watch | None:
    """The argument `progress`, looked at before any work is done."""
    if wanted is None or callable(wanted):
        return wanted  # type: ignore[no-any-return]
    try:
        return flag(wanted, "progress")
    except TypeError:
        raise InputError(f"progress: True, False or a function, not {short(wanted)}") from None


@contextmanager
def shown(wanted: bool | Watch | None) -> Iterator[Watch | None]:
    """A `Watch` that shows progress, or None; of its own accord, None, only a terminal gets one."""
    there = sys.stderr is not None  # programs without a console have none
    terminal = there and sys.stderr.isatty()
    if callable(wanted):
        yield wanted
    elif wanted is False or not there or (wanted is None and not terminal):
        yield None
    elif terminal:
        with _bar() as watch:
            yield watch
    else:
        yield lines()


@contextmanager
def _bar() -> Iterator[Watch]:
    with needs("cli"):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    columns = BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, clock = bar.add_task("", total=None), Clock()

        def watch(rows: int, total: int | None, size: int) -> None:
            bar.update(task, completed=rows, total=total, description=clock.text(rows, total, size))

        yield watch


def lines() -> Watch:
    """One line each `PAUSE` seconds, as logs of jobs want it, and one at the end."""
    clock, last = Clock(), [time.monotonic()]

    def watch(rows: int, total: int | None, size: int) -> None:
        now = time.monotonic()
        text = clock.text(rows, total, size)
        if rows == total or now - last[0] >= PAUSE:
            last[0] = now
            left = clock.left(rows, total)
            with suppress(OSError):  # whoever read them may have left, which is no reason to end the work
                print(f"klnumba: {text}{'' if left is None else f', {left:.0f} s left'}", file=sys.stderr, flush=True)

    return watch


class Clock:
    """Speed since the first call; what an earlier run had done does not count."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.first: tuple[int, int] | None = None
        self.speed = 0.0

    def text(self, rows: int, total: int | None, size: int) -> str:
        if self.first is None:
            self.first = rows, size
        seconds = max(time.monotonic() - self.start, 1e-9)
        self.speed = (rows - self.first[0]) / seconds
        of = "" if total is None else f" of {total:,}"
        return f"{rows:,}{of} rows, {self.speed:,.0f} rows/s, {(size - self.first[1]) / seconds / 1e9:.2f} GB/s"

    def left(self, rows: int, total: int | None) -> float | None:
        """Seconds until the end."""
        return None if total is None or not self.speed else (total - rows) / self.speed
