"""Instructions of a CUDA device for which `numba.cuda` has no name, and those that have a twin in the simulator."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir

cuda: Any = importlib.import_module("numba.cuda")
_extending: Any = importlib.import_module("numba.cuda.extending")
types: Any = cuda.types

WARP = 32  # threads that exchange numbers without shared memory
ROOM = 0  # numbers of it that a thread needs for that
ALL = 0xFFFFFFFF

F = TypeVar("F", bound=Callable[..., Any])


def intrinsic(function: F) -> F:
    """Decorator: what makes the code of an instruction."""
    made: F = _extending.intrinsic(function)
    return made


def piece(function: F) -> F:
    """Decorator: put into whatever calls it."""
    made: F = cuda.jit(device=True, forceinline=True)(function)
    return made


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


plus: Any = add


def _instruction(name: str) -> Any:
    """A function of one float32 that is an instruction."""

    @intrinsic
    def instruction(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FloatType()
            code = ir.InlineAsm(ir.FunctionType(kind, [kind]), f"{name} $0, $1;", "=f,f")
            return builder.call(code, args)

        return types.float32(types.float32), codegen

    return instruction


two_to: Any = _instruction("ex2.approx.ftz.f32")
reciprocal: Any = _instruction("rcp.approx.ftz.f32")


@intrinsic
def noinline(typingctx: Any) -> Any:
    """Keep the function that calls this a function of its own."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def shared(size: int, integers: bool = False) -> Any:
    """What gives a block its shared memory of `size` numbers, float64 or int64."""
    kind = types.int64 if integers else types.float64

    def room() -> Any:
        return cuda.shared.array(size, kind)

    return cuda.jit(device=True, inline="always")(room)  # a function that is called may not return an array


@piece
def exchange(x: Any, distance: Any, room: Any) -> Any:
    """The x of the thread whose number differs in the bit `distance`, below a warp's size."""
    return cuda.shfl_xor_sync(ALL, x, distance)


@piece
def vote(flag: Any) -> Any:
    """Whether any thread of the warp has set its flag."""
    return cuda.any_sync(ALL, flag)


@piece
def two_sum(a: Any, b: Any) -> Any:
    """`klnumba.formulas.elementary.two_sum`, of additions that are never contracted."""
    s = plus(a, b)
    t = plus(s, -a)
    return s, plus(plus(a, -plus(s, -t)), plus(b, -t))


_LOG2_E = np.float32(1.4426950408889634)
_LOG2_E_REST = np.float32(1.4426950408889634 - float(_LOG2_E))
_LN2 = np.float32(0.6931471805599453)
_BELOW_ALL = np.float32(-128.0)


@piece
def power(x: Any) -> Any:
    """e**x, the exponent in two parts, the larger for the instruction; zero where that is no normal number."""
    a = _BELOW_ALL if x < _BELOW_ALL else x
    t = a * _LOG2_E
    rest = cuda.fma(a, _LOG2_E_REST, cuda.fma(a, _LOG2_E, -t))
    w = two_to(t)
    return cuda.fma(w, rest * _LN2, w)


@piece
def fma(x: Any, y: Any, z: Any) -> Any:
    """x*y + z with a single rounding."""
    return cuda.fma(x, y, z)
