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


def together(dispatcher: Any) -> Any:
    """A function that all threads call or none: the compiler may not copy a call of it into two branches.

    It knows that of a barrier, but not of a function with a barrier inside. A copy in each branch would have the
    threads of a warp wait for each other at two barriers.
    """
    compiled = dispatcher.compile_device

    def compile_device(args: Any, return_type: Any = None) -> Any:
        found = compiled(args, return_type)
        for function in found.library._module.functions:
            if not function.is_declaration:
                function.attributes.add("convergent")
        return found

    dispatcher.compile_device = compile_device
    return dispatcher


def piece(function: F) -> F:
    """Decorator: put into whatever calls it."""
    made: F = together(cuda.jit(device=True, forceinline=True)(function))
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


@intrinsic
def load_at(typingctx: Any, array: Any, index: Any, offset: Any) -> Any:
    """array[index + offset]; the offset, an int32, is added to the address of the index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = _pointer(context, builder, signature, args)
        return builder.load(builder.gep(base, [builder.sext(args[2], ir.IntType(64))]))

    return array.dtype(array, types.int64, types.int32), codegen


@functools.cache
def two_at(apart: int) -> Any:
    """Load array[index + offset] and the cell `apart` cells behind it, from one address."""

    @intrinsic
    def load_two(typingctx: Any, array: Any, index: Any, offset: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            base = _pointer(context, builder, signature, args)
            pointer = builder.gep(base, [builder.sext(args[2], ir.IntType(64))])
            other = builder.gep(pointer, [ir.Constant(ir.IntType(64), apart)])
            cells = [builder.load(pointer), builder.load(other)]
            return context.make_tuple(builder, signature.return_type, cells)

        return types.UniTuple(array.dtype, 2)(array, types.int64, types.int32), codegen

    return load_two


@functools.cache
def wide_load(count: int) -> Any:
    """Load `count` cells at once, 16 bytes in all, from an address that 16 divides; of 16-bit cells, words of two.

    The offset, an int32, is added to the address of the index: that one a loop need compute but once.
    """

    @intrinsic
    def load_some(typingctx: Any, array: Any, index: Any, offset: Any) -> Any:
        word = types.uint32 if array.dtype.bitwidth == 16 else array.dtype
        number = 128 // word.bitwidth

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            base = _pointer(context, builder, signature, args)
            pointer = builder.gep(base, [builder.sext(args[2], ir.IntType(64))])
            item = context.get_value_type(word)
            vector = builder.load(builder.bitcast(pointer, ir.VectorType(item, number).as_pointer()), align=16)
            words = [builder.extract_element(vector, ir.Constant(ir.IntType(32), k)) for k in range(number)]
            return context.make_tuple(builder, signature.return_type, words)

        return types.UniTuple(word, number)(array, types.int64, types.int32), codegen

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


def _called(builder: Any, name: str, args: Any) -> Any:
    """What an instruction of LLVM makes of two numbers of one kind."""
    kind = args[0].type
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind, kind]), name)
    return builder.call(function, args)


@intrinsic
def add(typingctx: Any, x: Any, y: Any) -> Any:
    """x + y, never contracted with a product."""
    if x not in (types.float32, types.float64) or y != x:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _called(builder, "llvm.nvvm.add.rn." + ("d" if signature.return_type == types.float64 else "f"), args)

    return x(x, y), codegen


plus: Any = add


def _instruction(name: str, number: Any) -> Any:
    """A function of one float32 or float64 that is an instruction."""

    @intrinsic
    def instruction(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = context.get_value_type(number)
            letter = "d" if number == types.float64 else "f"
            code = ir.InlineAsm(ir.FunctionType(kind, [kind]), f"{name} $0, $1;", f"={letter},{letter}")
            return builder.call(code, args)

        return number(number), codegen

    return instruction


two_to: Any = _instruction("ex2.approx.ftz.f32", types.float32)
log_two: Any = _instruction("lg2.approx.ftz.f32", types.float32)
reciprocal: Any = _instruction("rcp.approx.ftz.f32", types.float32)
rough_reciprocal: Any = _instruction("rcp.approx.ftz.f64", types.float64)


@intrinsic
def larger(typingctx: Any, x: Any, least: Any) -> Any:
    """The larger of two numbers of one kind; the other where one is NaN."""
    if x not in (types.float32, types.float64) or least != x:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _called(builder, "llvm.nvvm.fmax." + ("d" if x == types.float64 else "f"), args)

    return x(x, x), codegen


@intrinsic
def held(typingctx: Any, x: Any, least: Any) -> Any:
    """The larger of two numbers of one kind, or NaN."""
    if x not in (types.float32, types.float64) or least != x:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if x == types.float64:  # has no instruction
            return builder.select(builder.fcmp_ordered("<", *args), args[1], args[0])
        kind = ir.FloatType()
        code = ir.InlineAsm(ir.FunctionType(kind, [kind, kind]), "max.NaN.f32 $0, $1, $2;", "=f,f,f")
        return builder.call(code, args)

    return x(x, x), codegen


@intrinsic
def kept(typingctx: Any, x: Any) -> Any:
    """A float32 or float64, of which the compiler shall not think that it could be made anew at any place."""
    if x not in (types.float32, types.float64):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        name, letter = ("f64", "d") if x == types.float64 else ("f32", "f")
        code = ir.InlineAsm(ir.FunctionType(kind, [kind]), f"mov.{name} $0, $1;", f"={letter},{letter}", True)
        return builder.call(code, args)

    return x(x), codegen


@intrinsic
def noinline(typingctx: Any) -> Any:
    """Keep the function that calls this a function of its own."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def larger_bfloat16s(typingctx: Any, word: Any, other: Any) -> Any:
    """The larger of two bfloat16, or NaN, in each half of two words."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.IntType(32)
        code = ir.InlineAsm(ir.FunctionType(kind, [kind, kind]), "max.NaN.bf16x2 $0, $1, $2;", "=r,r,r")
        return builder.call(code, args)

    return types.uint32(types.uint32, types.uint32), codegen


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
_LN2 = np.float32(0.6931471805599453)


@piece
def power(x: Any, inverse: Any) -> Any:
    """e**(x*inverse) of a finite x, in two parts, the larger for the instruction; zero where that is no normal number.

    The last digits of log2(e) would change the temperature by 1e-8, for p and q alike.
    """
    unit = _LOG2_E * inverse
    t = x * unit
    rest = cuda.fma(x, -unit, t)  # of what t lacks, the negative: -t would be another product
    w = two_to(t)
    return cuda.fma(w * -_LN2, rest, w)


_LOG2_E_SHORT = np.float32(float.fromhex("0x1.7154p+0"))  # 15 bits of it, and what is left, times log(2)
_REST_SHORT = np.float32((1.4426950408889634 - float(_LOG2_E_SHORT)) * 0.6931471805599453)


@piece
def power_short(x: Any, inverse: Any) -> Any:
    """The same of a bfloat16, whose product with the leading digits of log2(e) is exact."""
    w = two_to(x * (_LOG2_E_SHORT * inverse))
    return cuda.fma(w * (_REST_SHORT * inverse), x, w)


@piece
def rough_power(x: Any, inverse: Any) -> Any:
    """e**(x*inverse), off by what the rounding of the product makes of it."""
    return two_to(x * (_LOG2_E * inverse))


@piece
def rough_log(x: Any) -> Any:
    """log(x) of a normal number of float32, as float64."""
    return np.float64(log_two(np.float32(x)) * _LN2)


@piece
def fma(x: Any, y: Any, z: Any) -> Any:
    """x*y + z with a single rounding."""
    return cuda.fma(x, y, z)
