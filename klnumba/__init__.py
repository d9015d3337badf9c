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
    from klnumba import metrics as metrics
    from klnumba import scoring as scoring
    from klnumba.gradients import value_and_grad
    from klnumba.metrics import CrossEntropy, JensenShannonDivergence, KLDivergence
    from klnumba.scoring import score

__version__ = package_version()

# loaded when they are first asked for: rooms, and names with the room they come from. `cuda` is no module of that name:
# in `klnumba.cuda`, numba-cuda's import hook would find its own `numba.cuda`.
_ROOMS = {"cuda": "gpu"} | {name: name for name in ("dask", "distributions", "metrics", "scoring", "tables")}
_NAMES = dict.fromkeys(("CrossEntropy", "JensenShannonDivergence", "KLDivergence"), "metrics")
_NAMES |= {"score": "scoring", "value_and_grad": "gradients"}

__all__ = [
    "CrossEntropy",
    "JensenShannonDivergence",
    "KLDivergence",
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
    "metrics",
    "rel_entr",
    "row_statistics",
    "score",
    "scoring",
    "value_and_grad",
    "warmup",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _ROOMS:
        return importlib.import_module(f"klnumba.{_ROOMS[name]}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"klnumba.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'klnumba' has no attribute {name!r}")
