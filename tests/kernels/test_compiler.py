"""What is compiled, and what is not: pieces are no functions of Python, and loops hold only the pieces they call."""

from __future__ import annotations

import gc

import numba
import pytest

from klnumba.formulas import elementary
from klnumba.kernels import compiler, registers
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
