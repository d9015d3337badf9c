"""The stream of a call among those of its arrays: what it waits for, and what waits for it. The host does not."""

from __future__ import annotations

from typing import Any

from klnumba.gpu.borders import Array
from klnumba.gpu.place import Place


def begin(found: dict[str, Array], stream: Any = None) -> Place:
    """Where a call works: at its first array, on a stream that goes on where those of the other arrays are by now."""
    place = Place.of(next(iter(found.values())), stream)
    for other in _others(found, place, stream is not None):
        _follow(place.stream, other)
    return place


def end(place: Place, found: dict[str, Array], stream: Any = None) -> None:
    """See to it that no array is written or freed while the call that took it is at work."""
    if any(getattr(array.library, "waits", False) for array in found.values()):
        from klnumba.kernels.cuda import machine

        machine.wait(place.stream)
        return
    for array in found.values() if stream is not None else ():
        keep = getattr(array.library, "keep", None)
        if keep is not None:
            keep(array, place.stream)
    for other in _others(found, place, stream is not None):
        _follow(other, place.stream)


def _follow(on: int, before: int) -> None:
    from klnumba.kernels.cuda import machine

    machine.follow(on, before)


def _others(found: dict[str, Array], place: Place, chosen: bool) -> set[int]:
    """The streams, but for that of the call, on which its arrays come about.

    Where the caller has chosen the stream, only those that arrays name themselves: what is on the current stream of a
    library is then for the caller to wait for, as with that library's own functions.
    """
    streams = set()
    for array in found.values():
        if array.ready is not None:
            streams.add(array.ready)
        elif not chosen and array.library is not place.library and not getattr(array.library, "waits", False):
            streams.add(int(array.library.stream(array.device)))
    return streams - {place.stream}
