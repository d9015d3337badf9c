"""Vectors as wide as the processor's registers.

For Intel processors LLVM takes half of a 512-bit register, since the first of them lowered their clock for whole ones.
Those from Ice Lake on hardly do: there whole registers take 10 to 20 % less time, in rows, logits and closed forms
alike. A function says so through an attribute, which is added where Numba lowers it.
"""

from __future__ import annotations

from typing import Any

from numba.core import compiler, lowering
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

SINCE_ICE_LAKE = "+avx512vbmi2"
WHOLE = '"prefer-vector-width"="512"'


class Lower(lowering.Lower):
    """Numba's, whose functions prefer whole registers."""

    def setup_function(self, fndesc: Any) -> None:
        """Declare the function and its attributes."""
        super().setup_function(fndesc)
        if SINCE_ICE_LAKE in features(self.context):
            set.add(self.function.attributes, WHOLE)  # the set's own `add` knows only attributes without a value


def looks_ahead(context: Any) -> bool:
    """Whether the processor asks for what follows in memory well enough, so that being told takes more than it saves.

    AMD's do: rows take 5 to 40 % less time. Intel's stop at every page of memory.
    """
    return str(context.codegen().magic_tuple()[1]).startswith("znver")


def fuses(context: Any) -> bool:
    """Whether the processor multiplies and adds in one step."""
    return "+fma" in features(context) or str(context.codegen().magic_tuple()[0]).startswith(("aarch64", "arm64"))


def features(context: Any) -> list[str]:
    """What the processor that is compiled for has, as LLVM names it."""
    return str(context.codegen().magic_tuple()[-1]).split(",")


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(BaseNativeLowering):
    """Numba's pass with this module's class."""

    _name: Any = "klnumba_lowering"

    @property
    def lowering_class(self) -> Any:
        """The class that lowers."""
        return Lower


class Compiler(compiler.CompilerBase):
    """Numba's steps, the lowering replaced."""

    def define_pipelines(self) -> list[Any]:
        """The steps in their order."""
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes[:] = [(Lowering if one is NativeLowering else one, said) for one, said in steps.passes]
        steps.finalize()
        return [steps]
