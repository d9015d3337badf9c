"""Pairs whose divergence is infinite whatever the parameters.

Either q has no mass somewhere where p has some, or the tails of p are so heavy that E log q(X) is minus infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.beta import Beta
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.categorical import Categorical
from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.chi import Chi
from klnumba.distributions.continuous_bernoulli import ContinuousBernoulli
from klnumba.distributions.delta import Delta
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.inverse_gaussian import InverseGaussian
from klnumba.distributions.kumaraswamy import Kumaraswamy
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.lindley import Lindley
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.log_uniform import LogUniform
from klnumba.distributions.logistic import Logistic
from klnumba.distributions.logit_normal import LogitNormal
from klnumba.distributions.moyal import Moyal
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.poisson import Poisson
from klnumba.distributions.registry import register_kl
from klnumba.distributions.student_t import StudentT
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.von_mises import VonMises
from klnumba.distributions.weibull import Weibull

ALL_NUMBERS = (Normal, Laplace, Gumbel, Cauchy, StudentT, Logistic, Moyal)
POSITIVE_NUMBERS = (
    *(Exponential, Gamma, LogNormal, HalfNormal, HalfCauchy, InverseGamma, Weibull),
    *(Chi, Lindley, InverseGaussian),
)
FROM_0_TO_1 = (Beta, ContinuousBernoulli, Kumaraswamy, LogitNormal)
BOUNDED = (*FROM_0_TO_1, Uniform, LogUniform)
CONTINUOUS = (*ALL_NUMBERS, *POSITIVE_NUMBERS, Pareto, *BOUNDED, VonMises)
DISCRETE = (Bernoulli, Binomial, Categorical, Geometric, NegativeBinomial, Poisson, Delta)

NO_MEAN = (Cauchy, HalfCauchy)
MASS_AT_0 = (Exponential, HalfNormal, Lindley, ContinuousBernoulli)  # too much for E 1/X to be finite
LIGHT_TAILS = (Normal, Laplace, Gumbel, Logistic, Moyal)
LIGHT_UPPER_TAIL = (Exponential, Gamma, HalfNormal, Chi, Lindley, InverseGaussian)


def infinite(p: Any, q: Any) -> Any:
    """p has mass where q has none, or tails too heavy for q."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    return np.full(shape, math.inf, np.result_type(p.dtype, q.dtype))


for first, others in (
    *((family, (*POSITIVE_NUMBERS, Pareto, *BOUNDED)) for family in ALL_NUMBERS),
    *((family, (Pareto, *BOUNDED)) for family in POSITIVE_NUMBERS),
    (Pareto, BOUNDED),
    *((family, (Pareto, LogUniform)) for family in FROM_0_TO_1),
    *((family, LIGHT_TAILS) for family in NO_MEAN),
    (HalfCauchy, (*LIGHT_UPPER_TAIL, InverseGamma)),
    (StudentT, (Gumbel, Moyal)),
    *((family, (InverseGamma, InverseGaussian)) for family in MASS_AT_0),
    *((family, CONTINUOUS) for family in DISCRETE),
    *((family, DISCRETE) for family in CONTINUOUS),
):
    for second in others:
        register_kl(first, second)(infinite)
