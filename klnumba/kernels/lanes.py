"""Numbers that stay in registers while a loop runs: one a lane of a vector, and several such vectors.

Numba has no vectors. A loop over `k` in which every lane reads and writes `cells[k]` becomes them, and an array on the
stack, which no other array can overlap, is then held in registers from the first cell to the last, as far as there are
enough of them. So additions come in the order that is written, and a loop around the lanes may ask for memory ahead.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16  # numbers of 32 bits: one vector where they are widest, several elsewhere


@functools.cache
def on_stack(vectors: int, number: Any = types.float32) -> Any:
    """A function for a loop: a new array of so many times `LANES` numbers, of no value yet."""
    kind, count, bytes_each = types.Array(number, 1, "C"), vectors * LANES, number.bitwidth // 8

    def new(typingctx: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            from numba.np.arrayobj import populate_array  # which loads SciPy: only where something is compiled

            element = context.get_data_type(number)
            with builder.goto_entry_block():
                place = builder.alloca(ir.ArrayType(element, count))
            place.align = 64  # a cache line: no vector lies across two
            array = context.make_array(kind)(context, builder)
            size, step = context.get_constant(types.intp, count), context.get_constant(types.intp, bytes_each)
            data = builder.bitcast(place, element.as_pointer())
            populate_array(array, data=data, shape=[size], strides=[step], itemsize=step, meminfo=None)
            return array._getvalue()

        return kind(), codegen

    new.__name__ = f"stack_of_{vectors}_{number}"  # the name tells loops apart that differ in nothing else
    return intrinsic(new)


def _vector(context: Any, builder: ir.IRBuilder, kind: Any, cells: Any, first: Any) -> Any:
    """Where in memory one vector of an array begins, as a pointer to a vector."""
    array = context.make_array(kind)(context, builder, cells)
    vector = ir.VectorType(context.get_data_type(kind.dtype), LANES)
    return builder.bitcast(builder.gep(array.data, [first]), vector.as_pointer())


@intrinsic
def _added_to(typingctx: Any, cells: Any, first: Any, more: Any) -> Any:
    """Add the vector of `more` from `first` on to that of `cells`: one addition also where LLVM would unroll a loop."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        place = _vector(context, builder, signature.args[0], args[0], args[1])
        other = _vector(context, builder, signature.args[2], args[2], args[1])
        builder.store(builder.fadd(builder.load(place, align=4), builder.load(other, align=4)), place, align=4)
        return context.get_dummy_value()

    return types.none(cells, types.intp, more), codegen


add_vector: Any = _added_to


def _across(operation: str) -> Any:
    """A function of one vector of an array, from `first` on: all its lanes as one number."""

    def across(typingctx: Any, cells: Any, first: Any) -> Any:
        number = cells.dtype

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            element = context.get_data_type(number)
            vector = ir.VectorType(element, LANES)
            place = _vector(context, builder, signature.args[0], args[0], args[1])
            start = [ir.Constant(element, 0.0)] if operation == "fadd" else []
            kind = ir.FunctionType(element, [value.type for value in start] + [vector])
            name = f"llvm.vector.reduce.{operation}.v{LANES}{'f' if start else 'i'}{number.bitwidth}"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            # The compiler chooses the order in which lanes are added.
            flags = ["reassoc", "nsz"] if start else []
            return builder.call(function, [*start, builder.load(place, align=4)], fastmath=flags)

        return number(cells, types.intp), codegen

    across.__name__ = f"across_by_{operation}"
    return intrinsic(across)


added, largest, largest_unsigned, any_bit = map(_across, ("fadd", "smax", "umax", "or"))
