"""What families of a location and a scale share, and those of a scale alone."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved


class LocationScale(Distribution):
    """A family over all numbers whose members are shifted and stretched copies of one."""

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), self.loc, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        return {"loc": loc, "scale": scale}


class PositiveScale(Distribution):
    """A family over the positive numbers whose members are stretched copies of one."""

    parameters: ClassVar[tuple[str, ...]] = ("scale",)
    scale = Parameter(POSITIVE)

    def __init__(self, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale}
