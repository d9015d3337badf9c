"""How pieces and loops are lowered: to vectors as wide as the processor's registers, and loops that share nothing.

For Intel processors LLVM takes half of a 512-bit register, since the first of them lowered their clock for whole ones.
Those from Ice Lake on hardly do: there whole registers take 10 to 20 % less time, in rows, logits and closed forms
alike. A function says so through an attribute, which is added where Numba lowers it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numba
from llvmlite import binding as llvm
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


class LoopLower(Lower):
    """Of a loop that is called from Python: the pieces in its machine code are its own."""

    def setup_function(self, fndesc: Any) -> None:
        """Declare the function, and have its pieces hidden once they are compiled."""
        super().setup_function(fndesc)
        library = self.library
        optimize = getattr(library, "_optimize_final_module", None)
        if optimize is None:
            warnings.warn(
                f"Numba {numba.__version__} compiles otherwise than klnumba knows: the last digits of results may "
                "differ between the process that compiles a kernel and those that find it in the cache",
                RuntimeWarning,
                stacklevel=2,
            )
            return

        def optimize_and_hide() -> None:
            optimize()
            hide_pieces(library._final_module)

        library._optimize_final_module = optimize_and_hide


def hide_pieces(module: Any) -> None:
    """Make the pieces of a loop known in its module alone.

    Numba compiles a piece for itself too, and once in every loop that calls it, each time a little differently. Of
    pieces with one name the linker takes the first that it meets: a loop would compute other last digits in the process
    that compiles it than where it comes from the cache, and others after this loop than after that one.
    """
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
            function.linkage = "internal"


def fuses(context: Any) -> bool:
    """Whether the processor multiplies and adds in one step."""
    return "+fma" in features(context) or str(context.codegen().magic_tuple()[0]).startswith(("aarch64", "arm64"))


def features(context: Any) -> list[str]:
    """What the processor that is compiled for has, as LLVM names it."""
    return str(context.codegen().magic_tuple()[-1]).split(",")


def _lowering(lower: Any, name: str) -> Any:
    """Numba's pass with another class that lowers."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(BaseNativeLowering):
        _name: Any = name

        @property
        def lowering_class(self) -> Any:
            return lower

    return Lowering


def _compiler(lowering: Any) -> Any:
    """Numba's steps, the lowering replaced."""

    class Compiler(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            steps.passes[:] = [(lowering if one is NativeLowering else one, said) for one, said in steps.passes]
            steps.finalize()
            return [steps]

    return Compiler


Compiler = _compiler(_lowering(Lower, "klnumba_lowering"))
LoopCompiler = _compiler(_lowering(LoopLower, "klnumba_loop_lowering"))
