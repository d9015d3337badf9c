"""How pieces and loops are lowered: to vectors as wide as the processor's registers, and loops that share nothing.

For Intel processors LLVM takes half of a 512-bit register, since the first of them lowered their clock for whole ones.
Those from Ice Lake on hardly do: there whole registers take 10 to 20 % less time, in rows, logits and closed forms
alike. A function says so through an attribute, which is added where Numba lowers it.

Machine code is made of loops alone: a piece is linked into those that call it.
"""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core import codegen, compiler, lowering
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

SINCE_ICE_LAKE = "+avx512vbmi2"
WHOLE = '"prefer-vector-width"="512"'


# Whether Numba has the parts that making less machine code takes; where they have moved, all of it is made.
KNOWN = hasattr(codegen.CPUCodegen, "_pass_builder") and all(
    hasattr(codegen.JITCodeLibrary, name) for name in ("_finalize_dynamic_globals", "_verify_declare_only_symbols")
)


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
            if KNOWN:
                drop_unused(library)

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


def drop_unused(library: Any) -> None:
    """Drop the hidden pieces that were put in place wherever they were called."""
    passes = llvm.newpassmanagers.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(library._final_module, library._codegen._pass_builder())


class Unengaged:
    """In place of Numba's engine: what has no machine code has no place in memory for its environment either."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class PieceLibrary(codegen.JITCodeLibrary):
    """The code of a piece, ready to be linked into loops, of which no machine code is made."""

    @property
    def codegen(self) -> Any:
        """What Numba asks to keep the environment of the finished function."""
        return Unengaged()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Of what Python would call: a function of its own that says that this cannot be called."""
        self._ensure_finalized()
        return ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value or 0


def fuses(context: Any) -> bool:
    """Whether the processor multiplies and adds in one step."""
    return "+fma" in features(context) or str(context.codegen().magic_tuple()[0]).startswith(("aarch64", "arm64"))


def features(context: Any) -> list[str]:
    """What the processor that is compiled for has, as LLVM names it."""
    return str(context.codegen().magic_tuple()[-1]).split(",")


def _lowering(lower: Any, name: str, library: Any = None) -> Any:
    """Numba's pass with another class that lowers, and another that holds the code."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(BaseNativeLowering):
        _name: Any = name

        @property
        def lowering_class(self) -> Any:
            return lower

        def run_pass(self, state: Any) -> bool:
            if library is not None and state.library is None:
                state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            return bool(super().run_pass(state))

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


Compiler = _compiler(_lowering(Lower, "klnumba_lowering", PieceLibrary if KNOWN else None))
LoopCompiler = _compiler(_lowering(LoopLower, "klnumba_loop_lowering"))
