"""Columns as they lie, brought to compiled loops: what a formula finds in a cell is what NumPy would put there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klnumba.distributions.evaluate import SHARE, evaluate, evaluate_slopes
from klnumba.formulas.quick import Slopes
from klnumba.kernels import threads
from klnumba.kernels.columns import BLOCK, columns_of


def mixed(a: float, b: float, c: float) -> float:
    """Another number for every three."""
    return (a + 2.0 * b) * c


def mixed_slopes(a: float, b: float, c: float) -> Slopes:
    """Its derivatives, each of the size of its terms."""
    return (c, abs(c)), (2.0 * c, abs(c)), (a + 2.0 * b, abs(a) + abs(b))


def numbers(shape, dtype, seed, order="C"):
    """Some that are ordinary, positive."""
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 2.0, shape), dtype, order=order)


def wide(columns, shape):
    return [np.broadcast_to(column, shape).astype(np.float64) for column in columns]


SHAPES = [(), (1,), (7,), (BLOCK,), (BLOCK + 1,), (3, 5), (2, 1, 4), (3, BLOCK // 2 + 3), (2, 3, 4, 5), (0,), (3, 0, 2)]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_columns_that_broadcast(data):
    shape = data.draw(st.sampled_from(SHAPES))
    given_columns = []
    for k in range(3):
        cut = data.draw(st.integers(0, len(shape)))
        own = [1 if data.draw(st.booleans()) else n for n in shape[cut:]]
        dtype = data.draw(st.sampled_from([np.float32, np.float64]))
        given_columns.append(numbers(own, dtype, k, data.draw(st.sampled_from("CF"))))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    found = np.asarray(evaluate(mixed, given_columns, shape, dtype))
    assert (found.shape, found.dtype) == (shape, dtype)
    np.testing.assert_array_equal(found, mixed(*wide(given_columns, shape)).astype(dtype))


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, SHARE, SHARE + 1, 3 * SHARE + 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_block_and_share_has_its_own_cells(size, dtype):
    columns = [numbers(size, np.float32, 0), numbers(size, np.float64, 1), numbers((), np.float64, 2)]
    found = evaluate(mixed, columns, (size,), dtype)
    np.testing.assert_array_equal(found, mixed(*wide(columns, (size,))).astype(dtype))


@pytest.mark.parametrize("threads_used", [1, 2, 5])
def test_threads_share_a_call(threads_used, monkeypatch):
    monkeypatch.setattr(threads, "choose", lambda wish, cells: threads_used)
    columns = [numbers((4, SHARE), np.float32, 0), numbers(SHARE, np.float64, 1), numbers((4, 1), np.float32, 2)]
    found = evaluate(mixed, columns, (4, SHARE), np.float64)
    np.testing.assert_array_equal(found, mixed(*wide(columns, (4, SHARE))))


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x.T,
        lambda x: np.broadcast_to(x[0, 0], x.shape),
        lambda x: x[:, :1],
    ],
    ids=["every second", "backwards", "transposed", "one everywhere", "a column of it"],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.bool_])
def test_columns_that_lie_in_another_order(cut, kind):
    column = cut(
        numbers((6, 6), np.float64, 0) > 1 if kind == np.bool_ else (numbers((6, 6), float, 0) * 9).astype(kind)
    )
    columns = [column, numbers((), float, 1), numbers((1, column.shape[1]), float, 2)]
    found = evaluate(mixed, columns, column.shape, np.float64)
    np.testing.assert_array_equal(found, mixed(*wide(columns, column.shape)))


def test_columns_are_not_copied_where_they_can_be_read():
    shape = 3, 4
    for column in (numbers(shape, np.float32, 0), numbers(shape, np.float64, 0), numbers((4,), np.float64, 0)):
        (cells,), table = columns_of([column], shape)
        assert np.shares_memory(cells, column)
        assert not any(array.flags.writeable for array in (cells, table))
        assert column.flags.writeable


def test_axes_that_are_walked_like_one_are_one():
    _, table = columns_of([numbers((2, 3, 4), float, 0), numbers((1, 1, 1), float, 0)], (2, 3, 4))
    np.testing.assert_array_equal(table, [[0, 24], [0, 1], [0, 0]])
    _, table = columns_of([numbers((2, 3, 4), float, 0), numbers((3, 4), np.float32, 0)], (2, 3, 4))
    np.testing.assert_array_equal(table, [[0, 2, 12], [0, 12, 1], [1, 0, 1]])
    _, table = columns_of([numbers((2, 1, 4), float, 0), numbers((3, 1), float, 0)], (2, 3, 4))
    np.testing.assert_array_equal(table, [[0, 2, 3, 4], [0, 4, 0, 1], [0, 0, 1, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5,), (BLOCK + 3,), (3, SHARE // 2 + 1)])
def test_slopes_of_columns(dtype, shape):
    columns = [numbers(shape, np.float32, 0), numbers(shape[-1:], np.float64, 1), numbers((), np.float64, 2)]
    factors = numbers(shape, dtype, 3)
    found, left = evaluate_slopes(mixed_slopes, columns, shape, factors, 0.0, dtype, [True, False, True])
    assert left.size == 0
    assert found[1].size == 0
    exact = [slope for slope, _ in mixed_slopes(*wide(columns, shape))]
    for got, slope in ((found[0], exact[0]), (found[2], exact[2])):
        np.testing.assert_array_equal(got.reshape(shape), (slope * factors.astype(float)).astype(dtype))


def test_slopes_that_are_left_or_beyond_the_range():
    columns = [np.array([1.0, np.inf, 1.0, 1.0]), np.array([1.0, 1.0, -0.5, 1.0]), np.array([1.0, 1.0, 1.0, 1e30])]
    found, left = evaluate_slopes(mixed_slopes, columns, (4,), 1e20, 0.125, np.float32)
    np.testing.assert_array_equal(left, [1, 2])
    np.testing.assert_array_equal(np.isnan(found), [[False, False, False, True]] * 2 + [[False, True, False, False]])


def failing(a: float) -> float:
    """A formula that may raise."""
    if a > 1.9:
        raise ValueError("too large")
    return a


@pytest.mark.parametrize("shape", [(3,), (2, SHARE)])
def test_the_error_of_a_formula_is_raised(shape):
    column = np.broadcast_to(np.float32([[1.0], [1.5]]), shape) if len(shape) > 1 else np.ones(3, np.float32)
    np.testing.assert_array_equal(evaluate(failing, [column], shape), column)
    bad = np.array(column)
    bad[(-1,) * len(shape)] = 2.0
    with pytest.raises(ValueError, match=r"^too large$"):
        evaluate(failing, [bad], shape)


def of_nine(a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: float, i: float) -> float:
    """More numbers than any pair has."""
    return a - b + c - d + e - f + g - h + i


def test_a_formula_of_nine_numbers():
    columns = [numbers(BLOCK + 2, np.float32, k) for k in range(9)]
    found = evaluate(of_nine, columns, (BLOCK + 2,))
    np.testing.assert_array_equal(found, of_nine(*wide(columns, (BLOCK + 2,))))


def test_a_formula_of_one_number():
    column = numbers((3, BLOCK), np.float32, 0, "F")
    np.testing.assert_array_equal(evaluate(failing, [column * np.float32(0.5)], column.shape), column * np.float32(0.5))


def test_numbers_of_another_byte_order():
    one = np.broadcast_to(np.array(1.5, ">f4"), (5,))
    columns = [one, numbers(5, ">f4", 1), numbers(5, ">f8", 2)]
    np.testing.assert_array_equal(evaluate(mixed, columns, (5,)), mixed(*wide(columns, (5,))))


@pytest.mark.parametrize("over", [2.0**-26, 2.0**-24])
def test_slopes_that_round_to_the_largest_number(over):
    """Infinite is what rounds to infinity."""
    largest = float(np.finfo(np.float32).max)
    found, _ = evaluate_slopes(mixed_slopes, [np.ones(1)] * 3, (1,), largest * (1.0 + over), 0.0, np.float32)
    assert found[0][0] == largest if over < 2.0**-25 else np.isnan(found[0][0])


def failing_slopes(a: float) -> Slopes:
    """Slopes that may raise."""
    if a > 1.9:
        raise ValueError("too large")
    return ((a, 0.0),)


def test_slopes_that_raise_are_heard():
    with pytest.raises(RuntimeError, match=r"^failing_slopes raised an error$"):
        evaluate_slopes(failing_slopes, [np.array([1.0, 2.0])], (2,), 1.0, 0.0)
