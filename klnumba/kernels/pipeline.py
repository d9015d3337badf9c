"""The steps by which pieces and loops are compiled: Numba's, some of them replaced.

Those are left out that look for what no formula or loop of the package has: whole-array expressions, functions within
it, functions that are put in the place of a call. The machine code is the same without them.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from numba.core import compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import (
    BaseNativeLowering,
    InlineOverloads,
    NativeLowering,
    NopythonRewrites,
    NopythonTypeInference,
)
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables

from klnumba.kernels.inference import Inference
from klnumba.kernels.inlining import Inlining
from klnumba.kernels.libraries import LoopLibrary, PieceLibrary, is_known, warn_of_the_unknown
from klnumba.kernels.registers import Lower


def _lowering(name: str, library: Any) -> Any:
    """Numba's pass with another class that lowers, and another that holds the code."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(BaseNativeLowering):
        _name: Any = name

        @property
        def lowering_class(self) -> Any:
            return Lower

        def run_pass(self, state: Any) -> bool:
            generator = state.targetctx.codegen()
            if is_known(generator):
                if state.library is None:
                    state.library = library(generator, state.func_id.func_qualname)
                    state.library.enable_object_caching()
            elif library is LoopLibrary:
                warn_of_the_unknown()
            return bool(super().run_pass(state))

    return Lowering


def unneeded(function: Any) -> set[Any]:
    """Numba's steps that would find nothing to do: those of other texts than the package's have them all."""
    if not (function.__module__ or "").startswith("klnumba."):
        return set()
    nested = any(isinstance(value, CodeType) for value in function.__code__.co_consts)
    return {NopythonRewrites, InlineOverloads} | (set() if nested else {InlineClosureLikes})


def _compiler(name: str, library: Any) -> Any:
    """Numba's steps without those unneeded, some of them replaced."""
    ours = {
        NativeLowering: _lowering(name, library),
        NopythonTypeInference: Inference,
        InlineInlinables: Inlining,
    }

    class Compiler(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            left_out = unneeded(self.state.func_id.func)
            steps.passes[:] = [(ours.get(one, one), said) for one, said in steps.passes if one not in left_out]
            steps.finalize()
            return [steps]

    return Compiler


Compiler = _compiler("klnumba_lowering", PieceLibrary)
LoopCompiler = _compiler("klnumba_loop_lowering", LoopLibrary)
