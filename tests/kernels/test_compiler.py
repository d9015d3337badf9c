"""What is compiled, and what is not: pieces are no functions of Python, and loops hold only the pieces they call."""

from __future__ import annotations

import gc
import operator

import numba
import pytest
from numba.core import errors
from numba.core.registry import cpu_target

from klnumba.formulas import elementary
from klnumba.kernels import compiler, inference, registers
from tests.kernels import sub


def test_a_piece_has_no_machine_code():
    piece = compiler.helper(lambda x: x + 1.0)
    loop = compiler.loop("calls-a-piece", lambda x: piece(x) * 2.0, numba.float64(numba.float64), cached=False)
    assert loop(2.0) == 6.0
    (compiled,) = piece.overloads.values()
    assert isinstance(compiled.library, registers.PieceLibrary)
    with pytest.raises(TypeError, match="not callable"):
        piece(2.0)


def test_a_piece_for_python():
    with pytest.raises(TypeError, match="not callable"):
        compiler.scalar(elementary.two_sum)(1.0, 2.0**-60)
    assert compiler.for_python(compiler.scalar(elementary.two_sum))(1.0, 2.0**-60) == (1.0, 2.0**-60)


def test_a_loop_holds_what_it_calls_alone():
    """A piece that was put in its place is there once."""
    piece = compiler.helper(lambda x: x + 1.0)
    loop = compiler.loop("holds-no-piece", lambda x: piece(x) * 2.0, numba.float64(numba.float64), cached=False)
    (text,) = loop.inspect_llvm().values()
    assert "holds_no_piece" in text
    assert "define internal" not in text


def test_the_collector_works_as_before():
    before = gc.get_threshold()
    seen = []

    @compiler.once
    def built(fails):
        seen.append(gc.get_threshold())
        if fails:
            raise ValueError("no loop")
        return 1

    assert built(False) == 1
    with pytest.raises(ValueError, match="no loop"):
        built(True)
    assert gc.get_threshold() == before
    assert seen == [(max(before[0], compiler.NEW_OBJECTS), *before[1:])] * 2
    try:
        with compiler.seldom_collected():
            gc.set_threshold(5000, 20, 20)  # somebody's wish in the meantime
        assert gc.get_threshold() == (5000, 20, 20)
        gc.set_threshold(0)
        with compiler.seldom_collected():
            assert gc.get_threshold()[0] == 0  # the caller wants no collections
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


# Rows of more than `CHUNK` cells, on every road, and how many functions were compiled for them.
LONG_ROWS = """
from numba.core import event
import numpy as np
import klnumba as kl

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
x = np.linspace(-3.0, 3.0, (1 << 18) + 5)
y = np.cos(x)
p, q = np.exp(x), np.exp(y)
kl.kl_divergence(p, q)
kl.kl_divergence(1e-310 * p, q)
for normalize in (True, False):
    kl.kl_divergence(x, y, kind="log_prob", normalize=normalize)
    kl.kl_divergence(x, x + 1e-9 * y, kind="log_prob", normalize=normalize)
    kl.cross_entropy(x, y, kind="log_prob", normalize=normalize)
print(compiled)
"""


def test_long_rows_compile_nothing_in_a_second_process(tmp_path):
    sub.run(LONG_ROWS, tmp_path, seconds=180)
    assert sub.run(LONG_ROWS, tmp_path) == "[]"


def test_steps_of_the_compiler_that_only_some_formulas_need():
    """A function within a piece is put in its place; where there is none, nothing looks for one."""

    def with_one_within(x):
        def shifted(y):
            return y + x

        return shifted(2.0) * shifted(3.0)

    piece = compiler.helper(with_one_within)
    loop = compiler.loop("calls-one-within", lambda x: piece(x), numba.float64(numba.float64), cached=False)
    assert loop(5.0) == 56.0
    looked = registers.unneeded(with_one_within) ^ registers.unneeded(elementary.two_sum)
    assert {step.__name__ for step in looked} == {"InlineClosureLikes"}


class Asked:
    """A context of types that counts what it is asked."""

    def __init__(self):
        self.times = 0

    def resolve_function_type(self, function, args, kws):
        self.times += 1
        return cpu_target.typing_context.resolve_function_type(function, args, kws)


def test_the_type_of_a_call_is_asked_for_once():
    """Errors are met again each time, and so is what may be compiled anew."""
    asked = Asked()
    context = inference.Remembering(asked)
    assert context.times == 0
    bools = numba.types.Array(numba.types.boolean, 7, "F"), numba.types.boolean  # nothing of ours adds them
    plus = cpu_target.typing_context.resolve_value_type(operator.add)
    first, second = (context.resolve_function_type(plus, bools, {}) for _ in range(2))
    assert first is second
    assert asked.times == 1
    assert first == cpu_target.typing_context.resolve_function_type(plus, bools, {})
    for times in (2, 3):
        with pytest.raises(errors.TypingError, match="No implementation of function"):
            context.resolve_function_type(plus, (numba.types.none, numba.types.boolean), {})
        assert asked.times == times
    same = numba.njit(lambda x: x)
    for times in (4, 5):
        assert context.resolve_function_type(numba.typeof(same), (numba.int64,), {}).return_type == numba.int64
        assert asked.times == times
