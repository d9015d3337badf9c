"""KL of distributions that are Cauchy ones, whole or in half, for some parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.registry import divergence, looked_at, register_kl
from klnumba.distributions.student_t import StudentT
from klnumba.formulas.special import LN2


def only(p: Distribution, q: Distribution, owner: Distribution, name: str, wanted: float) -> None:
    """Refuse another value of a parameter."""
    if np.any(np.not_equal(looked_at(owner, owner, name)[0], wanted)):
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}) has a closed form where {name} of {type(owner).__name__} is "
            f"{wanted:g}; method='quadrature' integrates"
        )


@register_kl(Exponential, Cauchy)
@register_kl(HalfCauchy, Cauchy)
def positive_cauchy(p: Exponential | HalfCauchy, q: Cauchy) -> Any:
    """That to the half-Cauchy distribution, and log(2); q's `loc` must be 0."""
    only(p, q, q, "loc", 0.0)
    return divergence(p, HalfCauchy(q.scale, **q._checked)) + LN2


@register_kl(HalfCauchy, StudentT)
def half_cauchy_student_t(p: HalfCauchy, q: StudentT) -> Any:
    """That of the Cauchy distribution around 0, and log(2), where q is symmetric around 0."""
    only(p, q, q, "loc", 0.0)
    return divergence(Cauchy(np.zeros((), p.dtype), p.scale, **p._checked), q) + LN2


@register_kl(StudentT, Cauchy)
@register_kl(StudentT, StudentT)
def student_t_as_cauchy(p: StudentT, q: Cauchy | StudentT) -> Any:
    """That of the Cauchy distribution, which p is for a `df` of 1."""
    only(p, q, p, "df", 1.0)
    return divergence(Cauchy(p.loc, p.scale, **p._checked), q)
