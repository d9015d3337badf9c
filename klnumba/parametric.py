"""What tells a distribution with parameters from an array, without loading any distribution."""

from __future__ import annotations


class Parametric:
    """The base of all distribution objects."""

    __slots__ = ()
