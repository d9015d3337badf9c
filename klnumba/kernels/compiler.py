"""From a plain scalar formula to machine code, once per target, with a cache that cannot go stale.

A formula is ordinary Python that calls other formulas. `scalar` compiles it
together with everything it calls; `loop` compiles a loop around it. Nothing is
compiled before the first call that needs it.

Compiled code is kept on disk (`klnumba.kernels.cache`).
"""

from __future__ import annotations

import dis
import functools
import gc
import math
import os
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import compiler
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral

from klnumba.kernels import cache, pipeline
from klnumba.kernels.instructions import INSTRUCTIONS
from klnumba.kernels.uninterrupted import uninterrupted

# `contract` lets a*b + c become one fused instruction; `nsz` ignores the sign of a zero. Every other fast-math flag
# breaks a NaN, an infinity or the order of a sum. Loops add in the order that is written, so they carry no flag.
SCALAR_FLAGS = {"contract", "nsz"}

# No loop allocates: without the reference counts of arrays (`_nrt`), a slice costs a few instructions, not two locked
# additions.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
FIRST_CLASS = OPTIONS | {"no_cfunc_wrapper": False}  # of what other compiled code may keep as a value
OF_C = FIRST_CLASS | {"no_cpython_wrapper": True}
# Of what only loops call: without the wrapper through which Python would, there is less to compile.
INNER = OPTIONS | {"no_cpython_wrapper": True, "pipeline_class": pipeline.Compiler}


NEW_OBJECTS = 20_000  # between two searches for garbage while a loop is compiled

LONG, SHORT = 20_000, 1_500  # instructions of a formula that is left in pieces, and of a piece that is not


def is_formula(value: Any) -> bool:
    """Whether a value is plain text to be compiled."""
    return isinstance(value, types.FunctionType)


def is_ours(formula: Callable[..., Any]) -> bool:
    """Whether the text of a formula is part of the package, so that the cache notices an edit of it."""
    return (formula.__module__ or "").startswith(("klnumba.formulas.", "klnumba.distributions."))


def name_of(formula: Callable[..., Any]) -> str:
    """A name for the cache that no other formula has: what it closes over is a part of it."""
    name = _in_files(formula)
    held = _contents(formula)
    if held:
        text = "\0".join(name_of(value) if is_formula(value) else repr(value) for value in held.values())
        name += f"-{cache.short_hash(text)}"
    return name


def _in_files(function: Callable[..., Any]) -> str:
    """Its name as files can have it."""
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("klnumba.")
    return name.replace(".<locals>", "").replace("<lambda>", "lambda").replace(".", "-")


def rebuilt(
    function: Callable[..., Any], convert: Callable[[Any], Any], wanted: Callable[[Any], bool]
) -> Callable[..., Any]:
    """The same text over converted names: every global and every closed-over value that is `wanted`."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if name in names and wanted(names[name]):
            names[name] = convert(names[name])
    held = tuple(
        types.CellType(convert(cell.cell_contents)) if wanted(cell.cell_contents) else cell
        for cell in function.__closure__ or ()
    )
    twin = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, held)
    twin.__qualname__ = function.__qualname__
    return twin


def _jit(function: Callable[..., Any], pipeline_class: Any = compiler.Compiler, **options: Any) -> Any:
    """What `numba.njit` returns, also where NUMBA_DISABLE_JIT asks for plain Python: that is for the caller's code."""
    return CPUDispatcher(
        function, targetoptions=options | {"nopython": True, "boundscheck": None}, pipeline_class=pipeline_class
    )


@functools.cache
def scalar(formula: Callable[..., Any]) -> Any:
    """The formula and all that it calls, as a function that compiled CPU loops can call."""
    if formula in INSTRUCTIONS:
        return INSTRUCTIONS[formula]
    twin = rebuilt(formula, scalar, is_formula)
    return _jit(_named(twin), fastmath=SCALAR_FLAGS, forceinline=True, **INNER)


def uncontracted(formula: Callable[..., Any]) -> Any:
    """The same with every product rounded, so that a number has the same bits alone and in a vector of others.

    Which products are joined with a sum depends on what the compiler made of the loop around them. A long formula,
    which no compiler vectorises, is left in pieces that call each other: in one place they take many times as long
    to compile, for the same speed.
    """
    return _uncontracted(formula, SHORT if length(formula) > LONG else math.inf)


@functools.cache
def _uncontracted(formula: Callable[..., Any], inlined: float) -> Any:
    """With all pieces up to this length put in their places."""
    if formula in INSTRUCTIONS:
        return INSTRUCTIONS[formula]
    twin = rebuilt(formula, lambda piece: _uncontracted(piece, inlined), is_formula)
    return _jit(_named(twin), fastmath={"nsz"}, forceinline=length(formula) <= inlined, **INNER)


@functools.cache
def length(formula: Callable[..., Any]) -> int:
    """How many instructions of Python a formula has with all that it calls put in its place."""
    if formula in INSTRUCTIONS:
        return 1
    held = _contents(formula)
    total = 0
    for step in dis.get_instructions(formula):
        known = formula.__globals__ if step.opname == "LOAD_GLOBAL" else held
        piece = known.get(step.argval) if step.opname in {"LOAD_GLOBAL", "LOAD_DEREF"} else None
        total += 1 + (length(piece) if is_formula(piece) else 0)
    return total


def _contents(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function closes over, by name."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def for_python(piece: Any) -> Any:
    """A piece with a way in for Python, which no piece has of itself; what is ours throughout is kept in the cache."""
    text = piece.py_func
    dispatcher = _jit(_copied(piece), fastmath=piece.targetoptions["fastmath"], **OPTIONS)
    pieces = _pieces_of(piece)
    if all(is_ours(one.py_func) for one in pieces):
        name = f"{_in_files(text)}-python-{cache.short_hash(chr(0).join(map(_how_compiled, pieces)))}"
        dispatcher._cache = cache.loop_cache(text, name)
    return dispatcher


def _pieces_of(piece: Any) -> list[Any]:
    """A piece and all pieces that it calls in some way, each once."""
    found = [piece]
    for one in found:  # which grows
        text = one.py_func
        values = [text.__globals__.get(name) for name in text.__code__.co_names]
        values += _contents(text).values()
        found += [value for value in dict.fromkeys(filter(_is_piece, values)) if value not in found]
    return found


def _is_piece(value: Any) -> bool:
    return isinstance(value, CPUDispatcher)


def _how_compiled(piece: Any) -> str:
    text, flags = piece.py_func, sorted(piece.targetoptions["fastmath"])
    return f"{text.__module__}.{text.__qualname__} {text.__code__.co_firstlineno} {flags}"


def step(name: str, piece: Any, signature: Any) -> Any:
    """A piece that Python calls between two loops, compiled and kept like one."""
    return loop(name, _copied(piece), signature)


def _copied(piece: Any) -> Callable[..., Any]:
    return rebuilt(piece.py_func, lambda value: value, lambda value: False)


@functools.cache
def as_written(formula: Callable[..., Any]) -> Any:
    """A formula whose products and sums are not to be contracted, as a part of a loop."""
    return part(rebuilt(formula, scalar, is_formula))


def loop(
    name: str, function: Callable[..., Any], signature: Any, cached: bool = True, options: dict[str, Any] = OPTIONS
) -> Any:
    """Compile a loop for one signature; `name` tells it from every other loop in the cache."""
    function.__qualname__ = name.replace("-", "_")
    dispatcher = _jit(function, fastmath={"nsz"}, **options, pipeline_class=pipeline.LoopCompiler)
    if cached:
        dispatcher._cache = cache.loop_cache(function, name)
    with _compile_lock, _compiling():
        dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


class CLoop(NamedTuple):
    """A loop that is called as a function of C."""

    address: int
    compiled: Any  # as long as this is kept, the machine code is


def c_loop(name: str, function: Callable[..., Any], signature: Any, cached: bool = True) -> CLoop:
    """The same with a way in for C, and none for Python."""
    compiled = loop(name, function, signature, cached, OF_C)
    (result,) = compiled.overloads.values()
    return CLoop(int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)), compiled)


@functools.cache
def address_of(compiled: Any) -> int:
    """Where the machine code of a loop is, for `called_at`; it stays as long as the loop."""
    (result,) = compiled.overloads.values()
    address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    if not address:
        raise RuntimeError(f"Numba {numba.__version__} does not tell where {compiled.py_func.__qualname__} is")
    return int(address)


_compile_lock = threading.RLock()
_usual: tuple[int, int, int] | None = None  # when Python looks for garbage while nothing is compiled


def _fresh_lock() -> None:
    """In a forked child: what another thread of the parent has begun, a lock it holds, is never ended."""
    global _compile_lock, _usual
    _compile_lock = threading.RLock()
    if _usual is not None:
        gc.set_threshold(*_usual)
        _usual = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let Python look for garbage every 20,000 new objects in the block, not every 700.

    A compilation makes millions that stay until its end: looking through them took a quarter of its time. The block is
    entered under the lock of the compiler.
    """
    global _usual
    usual = gc.get_threshold()
    if _usual is not None or not 0 < usual[0] < NEW_OBJECTS:
        yield
        return
    ours = NEW_OBJECTS, *usual[1:]
    _usual = usual
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        _usual = None
        if gc.get_threshold() == ours:  # else somebody has another wish by now
            gc.set_threshold(*usual)


@contextmanager
def _compiling() -> Iterator[None]:
    """Have Numba compile what it has in Python for its own part, where NUMBA_DISABLE_JIT asks for none."""
    settings: Any = numba.config
    asked, settings.DISABLE_JIT = settings.DISABLE_JIT, 0
    try:
        yield
    finally:
        settings.DISABLE_JIT = asked


def once(build: Callable[..., Any]) -> Callable[..., Any]:
    """Build a loop at its first use, once for all threads, and keep it.

    Ctrl-C waits until it is there: llvmlite frees an object twice where it is interrupted while it frees it.
    """
    built: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(build)
    def get(*key: Any) -> Any:
        try:
            return built[key]
        except KeyError:
            with _compile_lock, uninterrupted(), seldom_collected():
                if key not in built:
                    built[key] = build(*key)
                return built[key]

    return get


def helper(function: Callable[..., Any]) -> Any:
    """A piece of a loop: compiled into the loops that call it, in the order of operations that is written."""
    return _piece(function, lambda text: _for_any_number(_jit(text, fastmath={"nsz"}, **INNER)))


def part(function: Callable[..., Any]) -> Any:
    """A helper that is called in one place: it is put there before anything is compiled, which takes less time."""
    return _piece(function, lambda text: _jit(text, fastmath={"nsz"}, inline="always", **INNER))


PLAIN = (int, float, str, np.generic, np.dtype, type(None))  # of which equal texts mean equal values

_pieces: dict[tuple[Any, ...], Any] = {}


def _piece(function: Callable[..., Any], make: Callable[[Any], Any]) -> Any:
    """A piece of this text with these contents: where several loops build the same one, it is compiled once."""
    held = function.__defaults__, function.__kwdefaults__, *_contents(function).values()
    key = (make.__code__, function.__code__, id(function.__globals__), *map(_told, held))
    if key not in _pieces:
        _pieces[key] = make(_named(function))
    return _pieces[key]


def _told(value: Any) -> Any:
    """What tells a value from all others: its text, or where it lies, which is as long as the piece that holds it."""
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    return repr(value) if isinstance(value, PLAIN) else id(value)


def _for_any_number(dispatcher: Any) -> Any:
    """Compile a piece once for all integers: Numba would compile it again for every constant that it is called with."""
    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template([unliteral(x) for x in args], {name: unliteral(x) for name, x in kws.items()})

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put what a piece closes over into its name.

    What Numba keeps of a piece beside its code is found by its name, also where loops from several processes come
    together: one name always means one content.
    """
    contents = _contents(function)
    if contents:
        text = "\0".join(map(_content, contents.values()))
        function.__qualname__ += "_" + cache.short_hash(text)
    return function


def _content(value: Any) -> str:
    inner = getattr(value, "py_func", None)
    return f"{value!r}" if inner is None else f"{inner.__module__}.{inner.__qualname__}"
