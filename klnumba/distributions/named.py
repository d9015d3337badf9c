"""Families that transforms make of others, as `LogNormal` is the exponential of `Normal`.

A step is taken where every parameter that it makes is one of those there are, or one product, quotient or inverse of
them, so that it is rounded once at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

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
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.logistic import Logistic
from klnumba.distributions.logit_normal import LogitNormal
from klnumba.distributions.moyal import Moyal
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.student_t import StudentT
from klnumba.distributions.transform import InverseTransform, Transform
from klnumba.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
)
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.weibull import Weibull

SMALLEST = float(np.finfo(np.float64).smallest_normal)
Numbers = dict[str, Any]
Step = tuple[type[Distribution], Callable[..., Numbers | None]]


def where(condition: Any, **numbers: Any) -> Numbers | None:
    """The parameters, if the condition holds of the whole batch."""
    return numbers if np.all(condition) else None


def moved(x: Any, loc: Any, scale: Any, falls: bool = True) -> Numbers | None:
    """A family of a location and a scale, where the new location is one product, or that of the transform."""
    numbers = {"loc": np.where(x.loc == 0.0, loc, scale * x.loc), "scale": np.abs(scale) * x.scale}
    fits = ((x.loc == 0.0) | (loc == 0.0)) & (falls | (scale > 0.0))
    return where(fits, **({"df": x.df} if isinstance(x, StudentT) else {}), **numbers)


def stretched(x: Any, loc: Any, scale: Any) -> Numbers | None:
    """A family of a scale alone."""
    return where((loc == 0.0) & (scale > 0.0), scale=scale * x.scale)


def standard(x: Uniform) -> Any:
    """Whether it is uniform from 0 to 1."""
    return (x.low == 0.0) & (x.high == 1.0)


def loc_scale(x: Any) -> Numbers:
    """The parameters of the logarithm, or of what has this logarithm."""
    return {"loc": x.loc, "scale": x.scale}


def inverted(x: Any, exponent: Any) -> Numbers | None:
    """The parameters of the inverse."""
    return where(exponent == -1.0, concentration=x.concentration, rate=x.rate)


EXP, SIGMOID = ExpTransform(), SigmoidTransform()
SYMMETRIC = (Normal, Laplace, Cauchy, StudentT, Logistic)  # around their location
STEPS: dict[tuple[type[Distribution], type[Transform] | Transform], Step] = {
    (Normal, ExpTransform): (LogNormal, loc_scale),
    (LogNormal, EXP.inv): (Normal, loc_scale),
    (Normal, SigmoidTransform): (LogitNormal, loc_scale),
    (LogitNormal, SIGMOID.inv): (Normal, loc_scale),
    (Normal, AbsTransform): (HalfNormal, lambda x: where(x.loc == 0.0, scale=x.scale)),
    (Cauchy, AbsTransform): (HalfCauchy, lambda x: where(x.loc == 0.0, scale=x.scale)),
    (Laplace, AbsTransform): (Exponential, lambda x: where(x.loc == 0.0, rate=1.0 / x.scale)),
    (LogNormal, PowerTransform): (
        LogNormal,
        lambda x, exponent: {"loc": exponent * x.loc, "scale": np.abs(exponent) * x.scale},
    ),
    (Exponential, ExpTransform): (Pareto, lambda x: {"scale": 1.0, "alpha": x.rate}),
    (Pareto, EXP.inv): (Exponential, lambda x: where(x.scale == 1.0, rate=x.alpha)),
    (Pareto, AffineTransform): (
        Pareto,
        lambda x, loc, scale: where((loc == 0.0) & (scale > 0.0), scale=scale * x.scale, alpha=x.alpha),
    ),
    (Exponential, PowerTransform): (
        Weibull,
        lambda x, exponent: where((x.rate == 1.0) & (exponent > 0.0), scale=1.0, concentration=1.0 / exponent),
    ),
    (Weibull, PowerTransform): (
        Weibull,
        lambda x, exponent: where(
            (x.scale == 1.0) & (exponent > 0.0), scale=x.scale, concentration=x.concentration / exponent
        ),
    ),
    (Weibull, AffineTransform): (
        Weibull,
        lambda x, loc, scale: where((loc == 0.0) & (scale > 0.0), scale=scale * x.scale, concentration=x.concentration),
    ),
    (Exponential, AffineTransform): (
        Exponential,
        lambda x, loc, scale: where((loc == 0.0) & (scale > 0.0), rate=x.rate / scale),
    ),
    (Gamma, AffineTransform): (
        Gamma,
        lambda x, loc, scale: where((loc == 0.0) & (scale > 0.0), concentration=x.concentration, rate=x.rate / scale),
    ),
    (InverseGamma, AffineTransform): (
        InverseGamma,
        lambda x, loc, scale: where((loc == 0.0) & (scale > 0.0), concentration=x.concentration, rate=x.rate * scale),
    ),
    (Gamma, PowerTransform): (InverseGamma, inverted),
    (InverseGamma, PowerTransform): (Gamma, inverted),
    (Uniform, SIGMOID.inv): (Logistic, lambda x: where(standard(x), loc=0.0, scale=1.0)),
    (Uniform, PowerTransform): (
        Kumaraswamy,
        lambda x, exponent: where(standard(x) & (exponent > 0.0), concentration1=1.0 / exponent, concentration0=1.0),
    ),
    (Kumaraswamy, AffineTransform): (
        Kumaraswamy,
        lambda x, loc, scale: where(
            ((x.concentration0 == 1.0) | (x.concentration1 == 1.0)) & (loc == 1.0) & (scale == -1.0),
            concentration1=x.concentration0,
            concentration0=x.concentration1,
        ),
    ),
    (Kumaraswamy, PowerTransform): (
        Kumaraswamy,
        lambda x, exponent: where(
            exponent > 0.0, concentration1=x.concentration1 / exponent, concentration0=x.concentration0
        ),
    ),
    **{(family, AffineTransform): (family, stretched) for family in (HalfNormal, HalfCauchy)},
    **{(family, AffineTransform): (family, moved) for family in SYMMETRIC},
    **{
        (family, AffineTransform): (family, lambda x, loc, scale: moved(x, loc, scale, falls=False))
        for family in (Gumbel, Moyal)
    },
}


def named(base: Distribution, transforms: Sequence[Transform]) -> Distribution | None:
    """The distribution of a family that the transforms make of a draw from `base`; None if there is none."""
    if isinstance(base, Independent):
        inner = named(base.base_distribution, transforms)
        return None if inner is None else Independent(inner, base.reinterpreted_batch_ndims)
    found: Distribution | None = base
    for transform in transforms:
        found = None if found is None else after(found, transform)
    return found


def after(x: Distribution, transform: Transform) -> Distribution | None:
    """That of one transform."""
    if isinstance(transform, AbsTransform) and np.all(np.asarray(x.support.low) >= 0.0):
        return x
    key = transform if isinstance(transform, InverseTransform) else type(transform)
    step = next((STEPS[family, key] for family in type(x).__mro__ if (family, key) in STEPS), None)
    if step is None or any(map(on_device, x._given.values())):
        return None
    family, rule = step
    with np.errstate(all="ignore"):
        numbers = rule(x, **transform.parameters)
    if numbers is None or not all(map(keeps_digits, numbers.values())):
        return None
    given = {name: _narrow(np.asarray(value), x.dtype) for name, value in numbers.items()}
    made: Distribution = cast(Any, family)(**given, **({"validate_args": False} if x._unchecked else {}))
    return made


def is_even(x: Distribution) -> bool:
    """Whether a number is as likely as its negative, known of these families."""
    if isinstance(x, Independent):
        return is_even(x.base_distribution)
    if not isinstance(x, (*SYMMETRIC, Uniform)) or any(map(on_device, x._given.values())):
        return False
    return bool(np.all(x.low == -x.high if isinstance(x, Uniform) else x.loc == 0.0))


def keeps_digits(value: Any) -> bool:
    """Whether all these numbers are zero or normal ones: a product beyond the range has lost digits, or all."""
    size = np.abs(np.asarray(value, np.float64))
    return bool(np.all((size == 0.0) | ((size >= SMALLEST) & (size < np.inf)) | np.isnan(size)))


def _narrow(value: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers in this dtype if it holds them, else float64: float32 would round a product to 1e-7 of itself."""
    with np.errstate(over="ignore"):
        narrow = value.astype(dtype)
    return narrow if np.array_equal(narrow, value, equal_nan=True) else value.astype(np.float64)
