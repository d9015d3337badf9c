"""Distributions with parameters, and the KL divergence between them in closed form."""

from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.normal import HalfNormal, LogNormal, Normal
from klnumba.distributions.registry import Pair, register_kl, registered_pairs

__all__ = [
    "Distribution",
    "HalfNormal",
    "LogNormal",
    "Normal",
    "Pair",
    "Parameter",
    "Support",
    "register_kl",
    "registered_pairs",
]
