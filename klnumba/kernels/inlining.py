"""How parts are put in the place of a call: as Numba does it, without the copies of them that it makes.

Numba takes the text of a part through its first steps anew for each call. Of what comes of them it makes two copies, in
which every block has a copy of all names, and works with one. The machine code is the same without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import ir
from numba.core.compiler import DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.inline_closurecall import InlineWorker, callee_ir_validator
from numba.core.untyped_passes import InlineInlinables


class Uncopied(ir.Block):
    """A block that is its own copy."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Uncopied:
        return self


@contextmanager
def uncopied(blocks: Iterable[Any]) -> Iterator[None]:
    """Within, no copies are made of these blocks."""
    held = list(blocks)
    for block in held:
        block.__class__ = Uncopied
    try:
        yield
    finally:
        for block in held:
            block.__class__ = ir.Block


class Worker(InlineWorker):
    """Numba's, that copies nothing, neither for a part nor for the parts of it."""

    def __init__(self, state: Any) -> None:
        super().__init__(
            state.typingctx, state.targetctx, state.locals, state.pipeline, state.flags, validator=callee_ir_validator
        )
        self._compiler_pipeline = first_steps

    def inline_function(self, caller_ir: Any, block: Any, i: int, function: Any, arg_typs: Any = None) -> Any:
        """Put a function in the place of statement `i` of a block."""
        callee = self.run_untyped_passes(function)
        with uncopied(callee.blocks.values()):
            return self.inline_ir(caller_ir, block, i, callee, function.__code__.co_freevars, arg_typs=arg_typs)


@register_pass(mutates_CFG=True, analysis_only=False)
class Inlining(InlineInlinables):
    """Numba's pass with another worker."""

    _name = "klnumba_inlining"

    def _do_work(self, state: Any, work_list: Any, block: Any, i: int, expr: Any, inline_worker: Any) -> Any:
        return super()._do_work(state, work_list, block, i, expr, Worker(state))


def first_steps(state: Any, name: str = "untyped") -> Any:
    """Numba's steps before it looks for types, one of them replaced."""
    steps = DefaultPassBuilder.define_untyped_pipeline(state, name)
    steps.passes[:] = [(Inlining if one is InlineInlinables else one, said) for one, said in steps.passes]
    return steps
