"""What tells a distribution with parameters from an array, without loading any distribution."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar

LIBRARIES = {"scipy.stats": "scipy", "torch.distributions": "torch"}
PLAIN = frozenset({"numpy.ndarray", "builtins.list", "builtins.tuple", "builtins.float", "builtins.int"})


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
    if isinstance(x, Parametric):
        return "klnumba"
    kind = type(x)
    if f"{kind.__module__}.{kind.__name__}" in PLAIN:
        return None
    for base in kind.__mro__:
        for module, library in LIBRARIES.items():
            if base.__module__.startswith(module + ".") and (hasattr(x, "entropy") or hasattr(x, "rvs")):
                return library
    return None


def function_of(name: str, p: Any, q: Any) -> Callable[..., Any] | None:
    """What computes `name` of two distributions; None where neither is one."""
    if library_of(p) is None and library_of(q) is None:
        return None
    if name not in Parametric.functions:
        importlib.import_module("klnumba.distributions")
    return Parametric.functions[name]
