"""Sums of adjacent cells: their order, what they keep, and what they refuse."""

import math

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from klnumba.kernels import lanes
from klnumba.kernels.tiles import SMALL, add_all, total


@numba.njit
def totals(cells, starts, counts):
    found = np.empty(starts.size)
    for i in range(starts.size):
        found[i] = total(cells, starts[i], counts[i])
    return found


def in_pairs(cells):
    """The sum of a power of two of numbers: adjacent eights and then theirs, and in the end halves."""
    while cells.size > 8:
        eights = cells.reshape(-1, 2, 8)
        cells = (eights[:, 0] + eights[:, 1]).ravel()
    while cells.size > 1:
        cells = cells[: cells.size // 2] + cells[cells.size // 2 :]
    return cells[0]


def expected(cells):
    """The sum as it is meant: blocks from the smallest, which is the last, to 64; then those of 128 in their order."""
    cells, rest, whole = cells.astype(np.float64), 0.0, 0.0
    for size in (1, 2, 4, 8, 16, 32, 64):
        if cells.size & size:
            rest += in_pairs(cells[-size:])
            cells = cells[:-size]
    for block in cells.reshape(-1, 128):
        whole += in_pairs(block)
    return whole + rest


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_order_of_a_sum(dtype):
    rng = np.random.default_rng(5)
    counts = np.arange(601)
    starts = rng.integers(1, 8, counts.size)  # not where vectors would like to begin
    cells = (rng.gamma(0.3, size=620) * rng.choice([-1, 1], 620)).astype(dtype)
    cells[0] = np.nan
    found = totals(cells, starts, counts)
    np.testing.assert_array_equal(
        found, [expected(cells[start : start + count]) for start, count in zip(starts, counts, strict=True)]
    )


@pytest.mark.parametrize(
    ("edges", "value"), [([np.inf], np.inf), ([-np.inf], -np.inf), ([np.nan], np.nan), ([np.inf, -np.inf], np.nan)]
)
@pytest.mark.parametrize("count", [2, 9, 31, 200, 256])
def test_numbers_that_are_not_finite_pass_through(edges, value, count):
    cells = np.ones(count)
    cells[count - 1 - np.arange(len(edges))] = edges
    np.testing.assert_array_equal(totals(cells, np.array([0]), np.array([count])), value)


@numba.njit
def kept(cells, start, count):
    state = np.zeros(2)
    add_all(state, 0, cells, start, count)
    return state[0], state[1]


@pytest.mark.parametrize("count", [0, SMALL, 3 * SMALL, 512])
@pytest.mark.parametrize("small", [2.0**-53, 2.0**-70, 1e-300])
def test_what_a_careful_sum_keeps(small, count):
    """A large cell among many small ones, anywhere; and one that takes it away again."""
    rng = np.random.default_rng(6)
    cells = rng.gamma(1.0, size=count + 3) * small
    if count:
        first, second = 3 + rng.choice(count, 2, replace=False)
        cells[first] = math.pi
    high, low = kept(cells, 3, count)
    assert abs(high + low - math.fsum(cells[3:])) <= 0.5 * math.ulp(high)
    assert high == 0.0 or low != 0.0 or small < 1e-200
    if count:
        cells[second] = -math.pi
        assert sum(kept(cells, 3, count)) == pytest.approx(math.fsum(cells[3:]), rel=1e-13)


@pytest.mark.parametrize("edge", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("count", [SMALL, 512])
def test_a_careful_sum_that_is_not_finite(edge, count):
    cells = np.ones(count)
    cells[count // 3] = edge
    high, _ = kept(cells, 0, count)
    np.testing.assert_equal(high, edge)


@pytest.mark.parametrize("cells", [np.arange(16.0)[::2], np.arange(16)], ids=["strided", "integer"])
def test_other_cells_are_refused(cells):
    sum_of_four = lanes.tree_sum(4)
    with pytest.raises(TypingError, match="cells must be adjacent floating-point numbers"):
        numba.njit(lambda x: sum_of_four(x, 0))(cells)
