"""Distributions with parameters, and the KL divergence between them in closed form."""

from klnumba.distributions import (
    between,  # noqa: F401  puts the functions where those of arrays find them
    infinite,  # noqa: F401  registers its pairs
)
from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.beta import Beta
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.chi import Chi
from klnumba.distributions.chi2 import Chi2
from klnumba.distributions.continuous_bernoulli import ContinuousBernoulli
from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution, Parameter, Support
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
from klnumba.distributions.registry import Pair, register_kl, registered_pairs
from klnumba.distributions.student_t import StudentT
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.von_mises import VonMises
from klnumba.distributions.weibull import Weibull

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Cauchy",
    "Chi",
    "Chi2",
    "ContinuousBernoulli",
    "Delta",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "InverseGaussian",
    "Kumaraswamy",
    "Laplace",
    "Lindley",
    "LogNormal",
    "LogUniform",
    "Logistic",
    "LogitNormal",
    "Moyal",
    "NegativeBinomial",
    "Normal",
    "Pair",
    "Parameter",
    "Pareto",
    "Poisson",
    "StudentT",
    "Support",
    "Uniform",
    "VonMises",
    "Weibull",
    "register_kl",
    "registered_pairs",
]
