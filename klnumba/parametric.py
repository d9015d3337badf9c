"""What tells a distribution with parameters from an array, without loading any distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Parametric:
    """The base of all distribution objects.

    Attributes
    ----------
    divergence : callable
        (p, q, base) -> KL(p || q), where one of the two is such an object. The registry of pairs puts it here.
    """

    __slots__ = ()

    divergence: ClassVar[Callable[[Any, Any, float | None], Any]]
