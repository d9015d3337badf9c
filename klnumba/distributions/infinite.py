"""Pairs whose divergence is infinite whatever the parameters: q has no mass somewhere where p has some."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.beta import Beta
from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.weibull import Weibull

ALL_NUMBERS = (Normal, Laplace, Gumbel, Cauchy)
POSITIVE_NUMBERS = (Exponential, Gamma, LogNormal, HalfNormal, HalfCauchy, InverseGamma, Weibull)
BOUNDED = (Beta, Uniform)


def infinite(p: Any, q: Any) -> Any:
    """p has mass where q has none."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    return np.full(shape, math.inf, np.result_type(p.dtype, q.dtype))


for first, others in (
    *((family, (*POSITIVE_NUMBERS, Pareto, *BOUNDED)) for family in ALL_NUMBERS),
    *((family, (Pareto, *BOUNDED)) for family in POSITIVE_NUMBERS),
    (Pareto, BOUNDED),
    (Beta, (Pareto,)),
):
    for second in others:
        register_kl(first, second)(infinite)
