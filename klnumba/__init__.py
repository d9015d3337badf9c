"""Kullback-Leibler divergence, compiled: exact at the zeros, to the last digits at p close to q, never negative."""

from klnumba import functional
from klnumba.divergence import (
    cross_entropy,
    entropy,
    generalized_kl,
    jeffreys_divergence,
    js_divergence,
    kl_divergence,
    rel_entr,
    row_statistics,
)
from klnumba.installation import info, package_version, warmup

__version__ = package_version()

__all__ = [
    "cross_entropy",
    "entropy",
    "functional",
    "generalized_kl",
    "info",
    "jeffreys_divergence",
    "js_divergence",
    "kl_divergence",
    "rel_entr",
    "row_statistics",
    "warmup",
]
