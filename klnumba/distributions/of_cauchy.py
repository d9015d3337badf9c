"""KL of distributions that are Cauchy ones, whole or in half, for some parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.cauchy import Cauchy, cauchy_cauchy
from klnumba.distributions.constraint import first_place
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.from_uniform import cauchy_student_t
from klnumba.distributions.half_cauchy import HalfCauchy, exponential_half_cauchy
from klnumba.distributions.registry import looked_at, over, register_kl
from klnumba.distributions.student_t import StudentT
from klnumba.formulas.special import LN2


def only(p: Distribution, q: Distribution, owner: Distribution, name: str, wanted: float) -> None:
    """Refuse another value of a parameter; NaN and infinite ones, which were not checked, make the result NaN."""
    value = np.asarray(looked_at(owner, owner, name)[0])
    other = np.not_equal(value, wanted) & np.isfinite(value)
    if other.any():
        at, place = first_place(name, other)
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}) has a closed form where {name} of {type(owner).__name__} is "
            f"{wanted:g}, but {place} is {value[at]:g}; method='quadrature' integrates"
        )


def from_exponential(rate: float, scale: float) -> float:
    """KL of an exponential distribution from a Cauchy one around 0, of which half the mass is below."""
    return exponential_half_cauchy(rate, scale) + LN2


def from_half_cauchy(scale_p: float, scale_q: float) -> float:
    """KL of a half-Cauchy distribution from a Cauchy one around 0."""
    return cauchy_cauchy(0.0, scale_p, 0.0, scale_q) + LN2


def from_half_cauchy_to_t(scale_p: float, df: float, scale_q: float) -> float:
    """KL of a half-Cauchy distribution from a Student's one around 0."""
    return cauchy_student_t(0.0, scale_p, df, 0.0, scale_q) + LN2


@register_kl(Exponential, Cauchy)
def exponential_cauchy(p: Exponential, q: Cauchy) -> Any:
    """That to the half-Cauchy distribution, and log(2); q's `loc` must be 0."""
    only(p, q, q, "loc", 0.0)
    return over(from_exponential, p, ("rate",), q, ("scale",))


@register_kl(HalfCauchy, Cauchy)
def half_cauchy_cauchy(p: HalfCauchy, q: Cauchy) -> Any:
    """That to the half-Cauchy distribution, and log(2); q's `loc` must be 0."""
    only(p, q, q, "loc", 0.0)
    return over(from_half_cauchy, p, ("scale",), q, ("scale",))


@register_kl(HalfCauchy, StudentT)
def half_cauchy_student_t(p: HalfCauchy, q: StudentT) -> Any:
    """That of the Cauchy distribution around 0, and log(2); q's `loc` must be 0."""
    only(p, q, q, "loc", 0.0)
    return over(from_half_cauchy_to_t, p, ("scale",), q, ("df", "scale"))


@register_kl(StudentT, Cauchy)
def student_t_cauchy(p: StudentT, q: Cauchy) -> Any:
    """That of the Cauchy distribution, which p is for a `df` of 1."""
    only(p, q, p, "df", 1.0)
    return over(cauchy_cauchy, p, ("loc", "scale"), q, q.parameters)


@register_kl(StudentT, StudentT)
def student_t_student_t(p: StudentT, q: StudentT) -> Any:
    """That of the Cauchy distribution, which p is for a `df` of 1."""
    only(p, q, p, "df", 1.0)
    return over(cauchy_student_t, p, ("loc", "scale"), q, q.parameters)
