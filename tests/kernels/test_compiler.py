"""What is compiled, and what is not: pieces are no functions of Python, and loops hold only the pieces they call."""

from __future__ import annotations

import gc
import operator
from functools import reduce

import numba
import numpy as np
import pytest
from numba.core import errors
from numba.core.registry import cpu_target
from numba.extending import overload

from klnumba.formulas import device, elementary
from klnumba.kernels import cache, compiler, inference, libraries, pipeline
from tests.kernels import sub


def test_a_piece_has_no_machine_code():
    piece = compiler.helper(lambda x: x + 1.0)
    loop = compiler.loop("calls-a-piece", lambda x: piece(x) * 2.0, numba.float64(numba.float64), cached=False)
    assert loop(2.0) == 6.0
    (compiled,) = piece.overloads.values()
    assert isinstance(compiled.library, libraries.PieceLibrary)
    with pytest.raises(TypeError, match="not callable"):
        piece(2.0)


def test_a_piece_for_python():
    with pytest.raises(TypeError, match="not callable"):
        compiler.scalar(elementary.two_sum)(1.0, 2.0**-60)
    assert compiler.for_python(compiler.scalar(elementary.two_sum))(1.0, 2.0**-60) == (1.0, 2.0**-60)


def half_of(x):
    return 0.5 * x


def gap_of(x, y, inverse, shift):
    return (x - y) * inverse - shift


@pytest.mark.parametrize(
    ("formula", "files"),
    [
        (elementary.two_sum, 2),  # which calls nothing: that it is to be taken as it is written changes nothing
        (device.logit_cell_f64(device.gap), 3),
        (half_of, 0),
        (device.logit_cell_f64(gap_of), 0),
    ],
)
def test_a_piece_of_ours_for_python_is_kept(formula, files, tmp_path, monkeypatch):
    """One that is somebody else's, or calls such a one, is not: an edit of it would not be noticed."""
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    x = (1.0, 2.0**-60, 0.5, 0.25, 2.0)[: formula.__code__.co_argcount]
    pieces = [make(formula) for make in (compiler.scalar, compiler.uncontracted, compiler.as_written)]
    made = [compiler.for_python(piece) for piece in pieces for _ in range(2)]
    values = np.array([one(*x) for one in made])
    np.testing.assert_array_equal(values[::2], values[1::2])
    np.testing.assert_allclose(values, np.broadcast_to(formula(*x), values.shape), rtol=1e-14)
    hits = [sum(one.stats.cache_hits.values()) for one in made]
    assert hits == {0: 6 * [0], 2: [0, 1, 0, 1, 1, 1], 3: 3 * [0, 1]}[files]
    assert len(list(tmp_path.glob("*.nbi"))) == files


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


def with_one_within(x):
    def shifted(y):
        return y + x

    return shifted(2.0) * shifted(3.0)


def with_an_inlined_call(x):
    return halved(x) + x


class Known:
    """A callable that only Numba knows: a function would be taken for a formula."""

    def __call__(self, *numbers):
        raise NotImplementedError


halved, rounded = Known(), Known()


@overload(halved, inline="always")
def _halved(x):
    return lambda x: x / 2.0


def with_a_reduction(x):
    return reduce(product, (x, x, 2.0), 1.0)


def product(x, y):
    return x * y


@pytest.mark.parametrize(
    ("formula", "value"), [(with_one_within, 56.0), (with_an_inlined_call, 7.5), (with_a_reduction, 50.0)]
)
def test_formulas_of_others_have_all_steps_of_the_compiler(formula, value):
    """Functions within, reductions, and functions that stand for a call are put in place before types are found."""
    piece = compiler.scalar(formula)
    loop = compiler.loop(f"calls-{formula.__name__}", lambda x: piece(x), numba.float64(numba.float64), cached=False)
    assert loop(5.0) == value
    assert pipeline.unneeded(formula) == set()


def test_steps_of_the_compiler_that_no_formula_of_ours_needs():
    left_out = {step.__name__ for step in pipeline.unneeded(elementary.two_sum)}
    assert left_out == {"NopythonRewrites", "InlineOverloads", "InlineClosureLikes"}
    own = rebuilt_as_ours(with_one_within)
    assert {step.__name__ for step in pipeline.unneeded(own)} == {"NopythonRewrites", "InlineOverloads"}


def rebuilt_as_ours(function):
    twin = compiler.rebuilt(function, lambda value: value, lambda value: False)
    twin.__module__ = "klnumba.formulas.elementary"
    return twin


class Asked:
    """A context of types that counts what it is asked."""

    def __init__(self):
        self.times = 0

    def resolve_function_type(self, function, args, kws):
        self.times += 1
        return cpu_target.typing_context.resolve_function_type(function, args, kws)


def test_the_type_of_a_call_is_asked_for_once():
    """Errors are met again each time, and so is what is compiled for the call."""
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
    largest = cpu_target.typing_context.resolve_value_type(max)
    for times in (4, 6):
        assert context.resolve_function_type(numba.typeof(same), (numba.int64,), {}).return_type == numba.int64
        assert context.resolve_function_type(largest, (numba.int64,) * 2, {}).return_type == numba.int64
        assert asked.times == times + 1


@overload(rounded)
def _rounded(x, y):
    return lambda x, y: x * y + 1.0


def test_what_is_compiled_for_a_call_follows_the_caller():
    """The products of a function of Numba's are rounded in one piece, whatever they were in a piece before it."""
    numbers = numba.float64(numba.float64, numba.float64)

    def made(name, piece):
        return compiler.loop(name, lambda x, y: piece(x, y), numbers, cached=False)

    contracted = made("contracts", compiler.scalar(lambda x, y: rounded(x, y)))
    loops = contracted, made("rounds", compiler.uncontracted(as_it_is))
    small = 2.0**-30
    assert loops[1](1.0 + small, small - 1.0) == 0.0
    assert loops[0](1.0 + small, small - 1.0) in (0.0, small * small)  # in one step where the processor has it


def as_it_is(x, y):
    return rounded(x, y) + 0.0


def test_fast_mathematics_of_others_stay_theirs():
    """Between two formulas that call the same function of Numba's, somebody compiles it for numbers that are no NaN."""

    def made(name, formula):
        piece = compiler.scalar(formula)
        return compiler.loop(name, lambda x: piece(x), numba.float64(numba.float64), cached=False)

    before = made("before-others", lambda x: np.nan_to_num(x))
    numba.njit(fastmath=True)(lambda x: np.nan_to_num(x))(1.0)
    after = made("after-others", lambda x: np.nan_to_num(x) + 2.0)
    assert before(np.nan) == 0.0
    assert after(np.nan) == 2.0
