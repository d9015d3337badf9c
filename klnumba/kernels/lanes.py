"""Numbers that stay in registers while a loop runs: one a lane of a vector, and several such vectors.

Numba has no vectors. A loop over `k` in which every lane reads and writes `cells[k]` becomes them, and an array on the
stack, which no other array can overlap, is then held in registers from the first cell to the last, as far as there are
enough of them. So additions come in the order that is written, and a loop around the lanes may ask for memory ahead.
The sum of adjacent cells, `tree_sum`, names vectors outright: of a loop the compiler would have to change the order.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
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


def _vector(context: Any, builder: ir.IRBuilder, kind: Any, cells: Any, first: Any, lanes: int = LANES) -> Any:
    """Where in memory one vector of an array begins, as a pointer to a vector."""
    array = context.make_array(kind)(context, builder, cells)
    vector = ir.VectorType(context.get_data_type(kind.dtype), lanes)
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


@intrinsic
def _added_with_rest(typingctx: Any, sums: Any, cells: Any, first: Any) -> Any:
    """Add the vector of `cells` from `first` on to the first one of `sums`, and what that rounds to the second."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        kind, places = signature.args[0], [context.get_constant(types.intp, i) for i in (0, LANES)]
        high, low = (_vector(context, builder, kind, args[0], place) for place in places)
        other = _vector(context, builder, signature.args[1], args[1], args[2])
        a, b = builder.load(high, align=8), builder.load(other, align=8)
        total = builder.fadd(a, b)
        more = builder.fsub(total, a)  # as `formulas.elementary.two_sum`
        rest = builder.fadd(builder.fsub(a, builder.fsub(total, more)), builder.fsub(b, more))
        builder.store(total, high, align=8)
        builder.store(builder.fadd(builder.load(low, align=8), rest), low, align=8)
        return context.get_dummy_value()

    return types.none(sums, cells, types.intp), codegen


add_vector: Any = _added_to
add_with_rest: Any = _added_with_rest


def _across(operation: str) -> Any:
    """A function of one vector of an array, from `first` on: all its lanes as one number."""

    def across(typingctx: Any, cells: Any, first: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            element = context.get_data_type(cells.dtype)
            place = _vector(context, builder, signature.args[0], args[0], args[1])
            kind = ir.FunctionType(element, [ir.VectorType(element, LANES)])
            name = f"llvm.vector.reduce.{operation}.v{LANES}i{cells.dtype.bitwidth}"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.call(function, [builder.load(place, align=4)])

        return cells.dtype(cells, types.intp), codegen

    across.__name__ = f"across_by_{operation}"
    return intrinsic(across)


largest, largest_unsigned, any_bit = map(_across, ("smax", "umax", "or"))


def _of_lanes(builder: ir.IRBuilder, vector: Any, lanes: int) -> Any:
    """The sum of the lanes of a vector: its second half is added to the first, and so on."""

    def half(first: int) -> Any:
        places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(first, first + lanes)))
        return builder.shuffle_vector(vector, vector, places)

    while lanes > 1:
        lanes //= 2
        vector = builder.fadd(half(0), half(lanes))
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@functools.cache
def tree_sum(count: int, number: Any = None) -> Any:
    """A function of an array and a place: the sum of `count` cells from there on, a power of two.

    Vectors are added in pairs, these in pairs, and in the end halves of what is left: one order on every processor. The
    cells are brought to a type of `number` first, if any.
    """
    lanes = min(count, LANES // 2)

    def across(typingctx: Any, cells: Any, first: Any) -> Any:
        if cells.layout != "C" or not isinstance(cells.dtype, types.Float):
            raise TypingError(f"cells must be adjacent floating-point numbers, got {cells}")
        kind = number or cells.dtype

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            wide = ir.VectorType(context.get_data_type(kind), lanes)

            def total(start: int, size: int) -> Any:
                if size > lanes:
                    half = size // 2
                    return builder.fadd(total(start, half), total(start + half, half))
                place = builder.add(args[1], context.get_constant(types.intp, start))
                pointer = _vector(context, builder, signature.args[0], args[0], place, lanes)
                found = builder.load(pointer, align=cells.dtype.bitwidth // 8)
                return found if kind == cells.dtype else builder.fpext(found, wide)

            return _of_lanes(builder, total(0, count), lanes)

        return kind(cells, types.intp), codegen

    across.__name__ = f"sum_of_{count}_as_{number}"
    return intrinsic(across)


added = tree_sum(LANES)
