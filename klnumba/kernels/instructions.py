"""What loops take of the processor, or of Numba, that plain text has no words for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as nbtypes
from numba.extending import intrinsic

from klnumba.formulas import primitives


@intrinsic
def _fma(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
    """llvm.fma: one rounding, on every machine (in software where there is no instruction)."""
    if not (x == y == z and isinstance(x, nbtypes.Float)):
        return None

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return x(x, y, z), codegen


@intrinsic
def _prefetch(typingctx: Any, cells: Any, index: Any) -> Any:
    """Ask for the cache line of cells[index]; any index may be given."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte = ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return nbtypes.none(cells, nbtypes.int64), codegen


@intrinsic
def _frozen(typingctx: Any, cells: Any) -> Any:
    """The array as a read-only one, which is what the caller's are: a piece that reads is compiled once for both."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return args[0]

    return cells.copy(readonly=True)(cells), codegen


@intrinsic
def _eight_bytes(typingctx: Any, data: Any, start: Any) -> Any:
    """Eight bytes from data[start] on as one number, wherever they lie; they must be there."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        number = ir.IntType(64)
        place = builder.bitcast(builder.gep(array.data, [args[1]]), number.as_pointer())
        return builder.load(place, align=1)

    return nbtypes.uint64(data, nbtypes.uint64), codegen


@intrinsic
def _called_at(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call the loop at an address with arguments that must be those of its signature; 0 if it has not failed."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        convention, kinds = context.call_conv, list(signature.args[1])
        kind = convention.get_function_type(nbtypes.none, kinds)
        unused = [cgutils.alloca_once(builder, slot.pointee) for slot in kind.args[:2]]  # a result, and an error
        given = convention._get_arg_packer(kinds).as_arguments(builder, cgutils.unpack_tuple(builder, args[1]))
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*unused, *given])

    return nbtypes.int32(nbtypes.int64, arguments), codegen


INSTRUCTIONS: dict[Any, Any] = {primitives.fma: _fma}
prefetch: Any = _prefetch
frozen: Any = _frozen
eight_bytes: Any = _eight_bytes
called_at: Any = _called_at
