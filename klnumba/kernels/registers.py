"""How pieces and loops are lowered: to vectors as wide as the processor's registers.

For Intel processors LLVM takes half of a 512-bit register, since the first of them lowered their clock for whole ones.
Those from Ice Lake on hardly do: there whole registers take 10 to 20 % less time, in rows, logits and closed forms
alike. A function says so through an attribute, which is added where Numba lowers it.
"""

from __future__ import annotations

from typing import Any

from numba.core import lowering

SINCE_ICE_LAKE = "+avx512vbmi2"
WHOLE = '"prefer-vector-width"="512"'


class Lower(lowering.Lower):
    """Numba's, whose functions prefer whole registers."""

    def setup_function(self, fndesc: Any) -> None:
        """Declare the function and its attributes."""
        super().setup_function(fndesc)
        if SINCE_ICE_LAKE in features(self.context):
            set.add(self.function.attributes, WHOLE)  # the set's own `add` knows only attributes without a value


def fuses(context: Any) -> bool:
    """Whether the processor multiplies and adds in one step."""
    return "+fma" in features(context) or str(context.codegen().magic_tuple()[0]).startswith(("aarch64", "arm64"))


def features(context: Any) -> list[str]:
    """What the processor that is compiled for has, as LLVM names it."""
    return str(context.codegen().magic_tuple()[-1]).split(",")
