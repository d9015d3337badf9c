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
    from klnumba import gpu as cuda

__version__ = package_version()

__all__ = [
    "cross_entropy",
    "cuda",
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
    "warmup",
]


def __getattr__(name: str) -> Any:
    # Loaded when it is first asked for. `cuda` is no module of that name: in `klnumba.cuda`, numba-cuda's import hook
    # finds its own `numba.cuda`.
    found = {"distributions": "klnumba.distributions", "cuda": "klnumba.gpu"}.get(name)
    if found:
        import importlib

        return importlib.import_module(found)
    raise AttributeError(f"module 'klnumba' has no attribute {name!r}")
