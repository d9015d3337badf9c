"""Families taken apart: the base distributions and the transforms that make them, as `named` puts them together.

Both sides of a divergence may end with the same transforms while one of them goes by the name of its family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.distribution import Distribution, on_device
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.independent import Independent
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.kumaraswamy import Kumaraswamy
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.logistic import Logistic
from klnumba.distributions.logit_normal import LogitNormal
from klnumba.distributions.named import EXP, SIGMOID, keeps_digits, loc_scale
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.transform import Transform
from klnumba.distributions.transforms import AbsTransform, AffineTransform, PowerTransform
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.weibull import Weibull

Parts = tuple[Distribution, tuple[Transform, ...]]


def inverse(x: Any) -> Any:
    """In the precision of x, as PyTorch's families take it."""
    return np.reciprocal(x)


def standard_of(x: Any) -> dict[str, Any]:
    """The numbers from 0 to 1, in the precision of x."""
    return {"low": x.dtype.type(0.0), "high": x.dtype.type(1.0)}


# By family: that of the base and its parameters, and the transforms, each whole or with the numbers that it takes.
PARTS: dict[type[Distribution], Callable[..., tuple[type[Distribution], dict[str, Any], list[tuple[Any, ...]]]]] = {
    LogNormal: lambda x: (Normal, loc_scale(x), [(EXP,)]),
    LogitNormal: lambda x: (Normal, loc_scale(x), [(SIGMOID,)]),
    HalfNormal: lambda x: (Normal, {"loc": x.dtype.type(0.0), "scale": x.scale}, [(AbsTransform(),)]),
    HalfCauchy: lambda x: (Cauchy, {"loc": x.dtype.type(0.0), "scale": x.scale}, [(AbsTransform(),)]),
    Pareto: lambda x: (Exponential, {"rate": x.alpha}, [(EXP,), (AffineTransform, 0.0, x.scale)]),
    Weibull: lambda x: (
        Exponential,
        {"rate": x.dtype.type(1.0)},
        [(PowerTransform, inverse(x.concentration)), (AffineTransform, 0.0, x.scale)],
    ),
    Exponential: lambda x: (Uniform, standard_of(x), [(EXP.inv,), (AffineTransform, 0.0, -inverse(x.rate))]),
    Gumbel: lambda x: (
        Exponential,
        {"rate": x.dtype.type(1.0)},
        [(EXP.inv,), (AffineTransform, x.loc, -x.scale)],
    ),
    Logistic: lambda x: (Uniform, standard_of(x), [(SIGMOID.inv,), (AffineTransform, x.loc, x.scale)]),
    InverseGamma: lambda x: (
        Gamma,
        {"concentration": x.concentration, "rate": x.rate},
        [(PowerTransform, -1.0)],
    ),
    Kumaraswamy: lambda x: (
        Uniform,
        standard_of(x),
        [
            (PowerTransform, inverse(x.concentration0)),
            (AffineTransform, 1.0, -1.0),
            (PowerTransform, inverse(x.concentration1)),
        ],
    ),
}


def apart(x: Distribution) -> Parts | None:
    """The base and the transforms of one of these families; None of others, and of numbers that are out of range."""
    if isinstance(x, Independent):
        parts = apart(x.base_distribution)
        return None if parts is None else (Independent(parts[0], x.reinterpreted_batch_ndims), parts[1])
    rule = next((PARTS[family] for family in type(x).__mro__ if family in PARTS), None)
    if rule is None or any(map(on_device, x._given.values())) or np.any(x._broken()):
        return None
    with np.errstate(all="ignore"):
        family, given, chain = rule(x)
    if not all(keeps_digits(number) for _, *numbers in chain for number in numbers):
        return None
    return family(**given), tuple(make(*numbers) if numbers else make for make, *numbers in chain)
