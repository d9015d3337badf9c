"""How the types in pieces and loops are found: of a function for given types, Numba is asked once.

Numba asks for the type of every sum and product anew in each of its rounds over a function, and goes through all that
`+` could mean until one meaning fits. Most of what a formula asks was answered before, in it or in another formula.
The machine code is the same. What Numba compiles for a call, as it does for `max`, is asked for each time: for a
caller whose products may be contracted it is another than for one whose may not.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from numba.core import types
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NopythonTypeInference

# What was found for a function, by the types that it is called with; that of the built-in ones is kept to the end.
_known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


class Remembering:
    """A context of types, as Numba's inference sees it, with the answers that it has given."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """The signature of a call, or None where there is none; neither that nor an error is remembered."""
        if not isinstance(function, types.Function):
            return self._context.resolve_function_type(function, args, kws)
        known = _known.setdefault(function, {})
        key = tuple(args), tuple(kws.items())
        if key in known:
            return known[key]
        found = self._context.resolve_function_type(function, args, kws)
        if found is not None and is_built_in(function, found):
            known[key] = found
        return found


def is_built_in(function: Any, signature: Any) -> bool:
    """Whether Numba writes the code of a call where it stands; else it has just chosen or compiled a function."""
    return getattr(function, "_impl_keys", {}).get(signature.args) is function.typing_key


@register_pass(mutates_CFG=True, analysis_only=False)
class Inference(NopythonTypeInference):
    """Numba's pass, whose context remembers."""

    _name = "klnumba_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Find the types of all variables."""
        usual = state.typingctx
        state.typingctx = Remembering(usual)
        try:
            return bool(super().run_pass(state))
        finally:
            state.typingctx = usual
