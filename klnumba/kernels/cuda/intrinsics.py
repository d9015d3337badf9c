"""Instructions of a CUDA device for which `numba.cuda` has no name."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

BYTE = ir.IntType(8)


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Of cell `args[1]` of the array `args[0]`; unlike Numba's own, without a test for a negative index."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index], for an index that is in range."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, args))

    return array.dtype(array, types.int64), codegen


@functools.cache
def wide_load(count: int) -> Any:
    """Load `count` cells at once, 16 bytes in all, from an address that 16 divides."""

    @intrinsic
    def load_some(typingctx: Any, array: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature, args)
            width = signature.args[0].dtype.bitwidth
            # 16-bit cells come in as 32-bit words: there is no load of eight of them
            item = ir.IntType(32) if width == 16 else context.get_value_type(signature.args[0].dtype)
            number = 128 // (32 if width == 16 else width)
            vector = builder.load(builder.bitcast(pointer, ir.VectorType(item, number).as_pointer()), align=16)
            words = [builder.extract_element(vector, ir.Constant(ir.IntType(32), k)) for k in range(number)]
            if width == 16:
                low = [builder.trunc(word, ir.IntType(16)) for word in words]
                high = [builder.trunc(builder.lshr(word, word.type(16)), ir.IntType(16)) for word in words]
                words = [half for pair in zip(low, high, strict=True) for half in pair]
            return context.make_tuple(builder, signature.return_type, words)

        return types.UniTuple(array.dtype, count)(array, types.int64), codegen

    return load_some


@intrinsic
def address(typingctx: Any, array: Any) -> Any:
    """Where an array begins."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(array.data, ir.IntType(64))

    return types.int64(array), codegen


@intrinsic
def half(typingctx: Any, bits: Any) -> Any:
    """The float32 of 16 bits in the format float16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def add(typingctx: Any, x: Any, y: Any) -> Any:
    """x + y, never contracted with a product."""
    if x not in (types.float32, types.float64) or y != x:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        name = "llvm.nvvm.add.rn." + ("d" if signature.return_type == types.float64 else "f")
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(kind, [kind, kind]), name)
        return builder.call(function, args)

    return x(x, y), codegen


@intrinsic
def noinline(typingctx: Any) -> Any:
    """Keep the function that calls this a function of its own."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen
