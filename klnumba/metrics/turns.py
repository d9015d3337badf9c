"""The lock of an accumulator, which a fork waits for: the child finds every accumulator whole, and no lock held."""

from __future__ import annotations

import os
import threading
from types import TracebackType

PATIENCE = 10.0  # seconds that a fork waits for other threads; a change takes far less


class _Gate:
    """Which threads are at work on an accumulator, and whether a fork keeps others out."""

    def __init__(self) -> None:
        self._made()
        self.inside: dict[int, int] = {}
        self.forking = False

    def _made(self) -> None:
        self.mutex = threading.RLock()
        self.free = threading.Condition(self.mutex)

    def enter(self) -> None:
        me = threading.get_ident()
        with self.mutex:  # which is quicker than to enter the condition
            if self.forking and me not in self.inside:  # one that is inside already has to get on
                self.free.wait_for(lambda: not self.forking, PATIENCE)
            self.inside[me] = self.inside.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.mutex:
            depth = self.inside.get(me, 1) - 1
            if depth:
                self.inside[me] = depth
            else:
                self.inside.pop(me, None)
                if self.forking:
                    self.free.notify_all()

    def before_fork(self) -> None:
        me = threading.get_ident()
        self.free.acquire()
        self.forking = True
        self.free.wait_for(lambda: not self.inside.keys() - {me}, PATIENCE)

    def after_in_parent(self) -> None:
        self.forking = False
        self.free.notify_all()
        self.free.release()

    def after_in_child(self) -> None:
        """Only the thread that forked is here."""
        me = threading.get_ident()
        self._made()
        self.forking = False
        self.inside = {me: self.inside[me]} if me in self.inside else {}


_gate = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork, after_in_parent=_gate.after_in_parent, after_in_child=_gate.after_in_child
    )


class Turns:
    """A lock that a thread may take again while it holds it; in a ``with`` statement. A copy is a new lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        return Turns, ()

    def __enter__(self) -> None:
        _gate.enter()
        try:
            self._lock.acquire()
        except BaseException:
            _gate.leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        _gate.leave()
