"""Distributions with parameters, and the KL divergence between them in closed form."""

from klnumba.distributions import (  # noqa: F401  register their pairs
    count_pairs,
    delta_others,
    from_continuous_bernoulli,
    from_lindley,
    from_uniform,
    infinite,
    of_cauchy,
    to_half_line,
    to_lindley,
    to_moyal,
    to_normal,
)
from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.beta import Beta
from klnumba.distributions.between import pairwise_kl
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.categorical import Categorical
from klnumba.distributions.cauchy import Cauchy
from klnumba.distributions.chi import Chi
from klnumba.distributions.chi2 import Chi2
from klnumba.distributions.continuous_bernoulli import ContinuousBernoulli
from klnumba.distributions.delta import Delta
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.gradient import Gradient, kl_divergence_grad
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.independent import Independent
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.inverse_gaussian import InverseGaussian
from klnumba.distributions.inverse_wishart import InverseWishart
from klnumba.distributions.jitted import jitted_kl
from klnumba.distributions.joint import Joint
from klnumba.distributions.kumaraswamy import Kumaraswamy
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.lindley import Lindley
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.log_uniform import LogUniform
from klnumba.distributions.logistic import Logistic
from klnumba.distributions.logit_normal import LogitNormal
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from klnumba.distributions.matrix_normal import MatrixNormal
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.moyal import Moyal
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.normal import Normal
from klnumba.distributions.normal_gamma import NormalGamma
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.poisson import Poisson
from klnumba.distributions.power_spherical import PowerSpherical
from klnumba.distributions.registry import Pair, register_kl, registered_pairs
from klnumba.distributions.student_t import StudentT
from klnumba.distributions.transform import InverseTransform, Transform
from klnumba.distributions.transformed_distribution import TransformedDistribution
from klnumba.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
)
from klnumba.distributions.uniform import Uniform
from klnumba.distributions.von_mises import VonMises
from klnumba.distributions.von_mises_fisher import SphericalUniform, VonMisesFisher
from klnumba.distributions.weibull import Weibull
from klnumba.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi",
    "Chi2",
    "ContinuousBernoulli",
    "Delta",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gradient",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "InverseGaussian",
    "InverseTransform",
    "InverseWishart",
    "Joint",
    "Kumaraswamy",
    "Laplace",
    "Lindley",
    "LogNormal",
    "LogUniform",
    "Logistic",
    "LogitNormal",
    "LowRankMultivariateNormal",
    "MatrixNormal",
    "Mixture",
    "Moyal",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "NormalGamma",
    "OneHotCategorical",
    "Pair",
    "Parameter",
    "Pareto",
    "Poisson",
    "PowerSpherical",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "SphericalUniform",
    "StickBreakingTransform",
    "StudentT",
    "Support",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "VonMisesFisher",
    "Weibull",
    "Wishart",
    "jitted_kl",
    "kl_divergence_grad",
    "pairwise_kl",
    "register_kl",
    "registered_pairs",
]
