"""Distributions of PyTorch that are ones of ours under another name, and why some are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions.exponential import Exponential
from klnumba.distributions.independent import Independent
from klnumba.distributions.logistic import Logistic
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.transformed_distribution import TransformedDistribution
from klnumba.distributions.transforms import AffineTransform, SigmoidTransform, StickBreakingTransform
from klnumba.distributions.uniform import Uniform

DRAWS = "the mean of p.log_prob(x) - q.log_prob(x) over draws x of p estimates it"

# Why a class has no counterpart, and what can be done.
NONE: dict[str, str] = {
    "ExpRelaxedCategorical": f"the KL of relaxed categorical draws has no closed form; {DRAWS}",
    "FisherSnedecor": f"the KL of F distributions has no closed form; {DRAWS}",
    "LKJCholesky": f"the KL of LKJ distributions is not among the closed forms here; {DRAWS}",
    "RelaxedOneHotCategorical": f"the KL of relaxed categorical draws has no closed form; {DRAWS}",
}


def logistic_normal(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """Independent normal numbers, by breaking a stick."""
    normal = value.base_dist.base_dist
    base = Independent(Normal(numbers(normal.loc), numbers(normal.scale)), 1)
    return TransformedDistribution(base, StickBreakingTransform())


def logit_relaxed_bernoulli(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """Logistic noise at the log-odds, over the temperature."""
    return Logistic(numbers(value.logits / value.temperature), numbers(1.0 / value.temperature))


def relaxed_bernoulli(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """The sigmoid of that."""
    return TransformedDistribution(logit_relaxed_bernoulli(value.base_dist, numbers), SigmoidTransform())


def generalized_pareto(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """An exponential distribution for the concentration 0, a uniform one for -1, a Pareto one for loc*c = scale."""
    loc, scale, c = (np.asarray(numbers(x), np.float64) for x in (value.loc, value.scale, value.concentration))
    dtype = np.asarray(numbers(value.scale)).dtype
    if np.all(c == 0.0):
        found = Exponential((1.0 / scale).astype(dtype))
        return found if np.all(loc == 0.0) else TransformedDistribution(found, AffineTransform(loc, 1.0))
    if np.all(c == -1.0):
        return Uniform(loc.astype(dtype), (loc + scale).astype(dtype))
    if np.all(c > 0.0) and np.all(loc * c == scale):
        return Pareto(loc.astype(dtype), (1.0 / c).astype(dtype))
    raise NotImplementedError(
        "GeneralizedPareto: taken with the concentration 0 (exponential), -1 (uniform) or loc*concentration = scale "
        f"(Pareto) for all of a batch; {DRAWS}"
    )


RELATIVES: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "GeneralizedPareto": generalized_pareto,
    "LogisticNormal": logistic_normal,
    "LogitRelaxedBernoulli": logit_relaxed_bernoulli,
    "RelaxedBernoulli": relaxed_bernoulli,
}
# Those whose parameters decide what they are.
LOOKED_AT = {"GeneralizedPareto"}
