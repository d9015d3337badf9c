"""Kullback-Leibler divergence, compiled: exact at the zeros, to the last digits at p close to q, never negative."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from klnumba import distributions as distributions
    from klnumba.scoring import score as score

__version__ = package_version()

__all__ = [
    "cross_entropy",
    "distributions",
    "entropy",
    "functional",
    "generalized_kl",
    "info",
    "jeffreys_divergence",
    "js_divergence",
    "kl_divergence",
    "rel_entr",
    "row_statistics",
    "score",
    "warmup",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "distributions":  # loaded when it is first asked for
        return importlib.import_module("klnumba.distributions")
    if name == "score":
        return importlib.import_module("klnumba.scoring").score
    raise AttributeError(f"module 'klnumba' has no attribute {name!r}")
