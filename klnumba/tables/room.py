"""Room for the drafts of the columns of a table in pieces: those that do not fit are put off to another pass."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping

from klnumba.tables.fitting import Draft

MOST = 1 << 26  # bytes of all drafts together
SMALL = 1 << 20  # bytes of a draft that does not count


class Room:
    """How much the drafts of a pass take.

    Parameters
    ----------
    drafts : dict of str to Draft or None
        In the order of the columns. Of those that are put off, the draft is dropped.

    Attributes
    ----------
    later : set of str
        The columns that are put off: the last ones with many different values. One such column always has room, so that
        there is an end to the passes.
    """

    def __init__(self, drafts: MutableMapping[str, Draft | None]) -> None:
        self.drafts = drafts
        self.later: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._guard = threading.Lock()

    def take(self, name: str) -> None:
        """A draft has grown."""
        with self._guard:
            if name in self.later:  # put off by another thread in the meantime
                self.drafts[name] = None
                return
            one = self.drafts[name]
            if one is not None and one.nbytes > SMALL:
                self._sizes[name] = one.nbytes
            else:
                self._sizes.pop(name, None)
            while len(self._sizes) > 1 and sum(self._sizes.values()) > MOST:
                last = next(one for one in reversed([*self.drafts]) if one in self._sizes)
                del self._sizes[last]
                self.later.add(last)
                self.drafts[last] = None
