"""Which other systems have a closed form for a pair of families.

Read in PyTorch 2.13, TensorFlow Probability (April 2026), NumPyro 0.22, Pyro 1.9.2, Paddle 3.3.1, Distributions.jl
(June 2026) and distrax (September 2025); numeric fallbacks do not count. Chi-squared distributions are gamma
distributions here. PyTorch's part is compared with the one installed (tests/distributions/test_systems.py).
"""

from __future__ import annotations

from typing import NamedTuple

NAMES = {
    "T": "PyTorch", "F": "TFP", "N": "NumPyro", "P": "Pyro", "D": "Paddle", "J": "Distributions.jl", "X": "distrax",
}  # fmt: skip

# Pairs of one family.
SAME = {
    "Bernoulli": "TFDX", "Beta": "TFNDJX", "Binomial": "TDJ", "Categorical": "TFNDX", "Cauchy": "TFD", "Chi": "FJ",
    "ContinuousBernoulli": "TFD", "Delta": "X", "Dirichlet": "TFNDX", "Exponential": "TFDJ",
    "Gamma": "TFNDJX", "Geometric": "TDJ", "Gumbel": "TFX", "HalfCauchy": "T", "HalfNormal": "TF",
    "Independent": "TFPNX", "InverseGamma": "TJ", "Joint": "FJX", "Laplace": "TFDJX", "Lindley": "J",
    "LogNormal": "TFDJ", "LogUniform": "J", "LogitNormal": "FJ",
    "LowRankMultivariateNormal": "T", "MatrixNormal": "F", "Moyal": "F",
    "MultivariateNormal": "TFNDJX", "NegativeBinomial": "J", "Normal": "TFNDJX", "OneHotCategorical": "TF",
    "Pareto": "TF", "Poisson": "TDJ",
    "TransformedDistribution": "TFX", "Uniform": "TFDX", "VonMises": "FX", "Weibull": "F", "Wishart": "T",
}  # fmt: skip

# Pairs of two families that PyTorch does not have, or not alone.
CROSS = {
    ("Beta", "Dirichlet"): "X", ("Dirichlet", "Beta"): "X", ("Categorical", "OneHotCategorical"): "X",
    ("OneHotCategorical", "Categorical"): "X", ("Independent", "MultivariateNormal"): "P", ("Kumaraswamy", "Beta"): "N",
    ("PowerSpherical", "VonMisesFisher"): "F", ("Weibull", "Gamma"): "FN",
}  # fmt: skip

# Pairs of two families that PyTorch alone has, p: the families q.
TORCH_ONLY = {
    "Bernoulli": ("Poisson",),
    "Beta": ("ContinuousBernoulli", "Exponential", "Gamma", "Normal", "Pareto", "Uniform"),
    "ContinuousBernoulli": ("Exponential", "Normal", "Pareto", "Uniform"),
    "Exponential": ("Beta", "ContinuousBernoulli", "Gamma", "Gumbel", "Normal", "Pareto", "Uniform"),
    "Gamma": ("Beta", "ContinuousBernoulli", "Exponential", "Gumbel", "Normal", "Pareto", "Uniform"),
    "Gumbel": ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Normal", "Pareto", "Uniform"),
    "Laplace": ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Normal", "Pareto", "Uniform"),
    "LowRankMultivariateNormal": ("MultivariateNormal",),
    "MultivariateNormal": ("LowRankMultivariateNormal",),
    "Normal": ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Laplace", "Pareto", "Uniform"),
    "Pareto": ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Normal", "Uniform"),
    "Poisson": ("Bernoulli", "Binomial"),
    "Uniform": ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Normal", "Pareto"),
}


class NotHere(NamedTuple):
    """What a system has a pair for, and klnumba has not."""

    what: str
    systems: str
    why: str


NOT_HERE = [
    NotHere("ExpGamma, ExpInverseGamma", "F", "of the logarithms: equal to that of Gamma or InverseGamma itself"),
    NotHere("MvLogitNormal", "J", "equal to that of the MultivariateNormal distributions of the log-odds"),
    NotHere("ProbitBernoulli", "F", "a Bernoulli with probs = Φ(probits)"),
    NotHere("OrderedLogistic, StoppingRatioLogistic", "F", "a Categorical with the probs that the cut points give"),
    NotHere("LogStddevNormal", "X", "a Normal with scale = exp(log_scale)"),
    NotHere("CirculantNormal", "N", "a MultivariateNormal with a circulant covariance; not with the speed of that"),
    NotHere("GaussianProcess", "F", "a MultivariateNormal at the index points; kernels are not this package's"),
    NotHere("Masked, Sample, Blockwise", "F", "Independent and Joint, or a batch with weights on the result"),
    NotHere("ExponentialFamily of one's own, by its log-normalizer", "TD", "a pair that you register"),
    NotHere("NormalCanonical", "J", "a Normal or MultivariateNormal by precision_matrix"),
]


def not_here() -> str:
    """The list as a table."""
    head = "| what | in | why |\n| --- | --- | --- |\n"
    rows = (f"| {x.what} | {', '.join(NAMES[letter] for letter in x.systems)} | {x.why} |\n" for x in NOT_HERE)
    return head + "".join(rows)


def of_pair(p: str, q: str) -> str:
    """The systems that have a pair, by letter."""
    if p == q:
        return SAME.get(p, "")
    return CROSS.get((p, q), "T" if q in TORCH_ONLY.get(p, ()) else "")
