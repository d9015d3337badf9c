"""Distributions with parameters, and the KL divergence between them in closed form."""

from klnumba.distributions import (
    between,  # noqa: F401  puts the functions where those of arrays find them
    infinite,  # noqa: F401  registers its pairs
)
from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.beta import Beta
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.chi2 import Chi2
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.gradient import Gradient, kl_divergence_grad
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.poisson import Poisson
from klnumba.distributions.registry import Pair, register_kl, registered_pairs
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.weibull import Weibull

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Cauchy",
    "Chi2",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gradient",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Laplace",
    "LogNormal",
    "NegativeBinomial",
    "Normal",
    "Pair",
    "Parameter",
    "Pareto",
    "Poisson",
    "Support",
    "Uniform",
    "Weibull",
    "kl_divergence_grad",
    "register_kl",
    "registered_pairs",
]
