"""What tells a distribution with parameters from an array, and its options, without loading any distribution."""

from __future__ import annotations

import functools
import importlib
import numbers
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from klnumba.tensors import is_tensor

LIBRARIES = {"scipy.stats": "scipy", "torch.distributions": "torch"}
PLAIN = (np.ndarray, list, tuple, float, int)  # compared, not hashed: a type need not have a hash

KINDS = 256  # types of which it is remembered whose they are
SAMPLES = 1_000_000  # that `method="monte_carlo"` draws unless it is told


class Parametric:
    """The base of all distribution objects.

    Attributes
    ----------
    functions : dict of str to callable
        What is computed of two such objects, by name. ``klnumba.distributions`` puts it here.
    """

    __slots__ = ()

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


def library_of(x: Any) -> str | None:
    """The library whose distribution this is, "klnumba", "scipy" or "torch"; None for anything else."""
    kind = type(x)
    if kind in PLAIN or is_tensor(x):
        return None
    if isinstance(x, Parametric):
        return "klnumba"
    try:
        library = _library(kind)  # type: ignore[arg-type]
    except TypeError:  # a type need not have a hash
        library = _library.__wrapped__(kind)
    return library if library is not None and (hasattr(x, "entropy") or hasattr(x, "rvs")) else None


@functools.lru_cache(KINDS)
def _library(kind: type) -> str | None:
    """The library of which a type, or one that it is made from, comes from a module for distributions."""
    for base in kind.__mro__:
        for module, library in LIBRARIES.items():
            if base.__module__.startswith(module + "."):
                return library
    return None


def function_of(name: str, p: Any, q: Any) -> Callable[..., Any] | None:
    """What computes `name` of two distributions; None where neither is one."""
    if library_of(p) is None and library_of(q) is None:
        return None
    if name not in Parametric.functions:
        importlib.import_module("klnumba.distributions")
    return Parametric.functions[name]


def is_usual(method: Any, return_error: Any, samples: Any, rng: Any) -> bool:
    """Whether the options that are for distributions alone are left as they are."""
    return (
        rng is None and isinstance(method, str) and method == "auto" and return_error is False and is_default(samples)
    )


def is_default(samples: Any) -> bool:
    """Whether this is the number of draws that is taken unless it is told."""
    return samples is SAMPLES or (isinstance(samples, numbers.Integral) and samples == SAMPLES)
