"""Rows of logits of which the first cells mislead about the ratio of the sums, or tell nothing."""

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels.logits import HEAD, LONG, TILE
from tests.reference import mp
from tests.reference.accuracy_table import BOUNDS, bound

CELLS = 6 * HEAD + 37  # the sums are moved a few times on the way, and at the end
MANY = LONG + 1061  # tiles are added up quickly


def noisy(rng, cells, spread=3.0, noise=0.3):
    x = spread * rng.standard_normal(cells)
    return x, x + noise * rng.standard_normal(cells)


def one_part_elsewhere(rng, cells, start, stop, by):
    """q is raised in one part of the row, so that guesses from before and after differ."""
    x, y = noisy(rng, cells)
    y[start:stop] += by
    return x, y


def without(rng, cells, start, stop, x_too):
    """A part that q, and maybe p, lacks; p is small there."""
    x, y = noisy(rng, cells)
    y[start:stop] = -np.inf
    if x_too:
        x[start:stop] = -np.inf
    return x, y


def peaks(rng, cells, places, height):
    x, y = noisy(rng, cells, 1.0)
    x[places] += height
    y[places] += height
    return x, y


def raised(rng, cells, place, by, by_q):
    x, y = noisy(rng, cells, 1.0)
    x[place] += by
    y[place] += by_q
    return x, y


def but_for(places, value, level):
    """A row of p as ever, and q of one level but for some cells."""

    def row(rng, cells):
        y = np.full(cells, level)
        y[places] = value
        return noisy(rng, cells)[0], y

    return row


def ladder(rng, cells, level, drop=0.0):
    """One cell a tile is large, or too small for float32; the others are at one level, of many sizes of q."""
    x = np.full(cells, level)
    x[7::TILE] = -drop
    return x, x + 0.3 * rng.standard_normal(cells)


def lacking_and_close(rng, cells):
    """Two rows that differ by a constant and by its rounding, with a cell that both lack."""
    x = noisy(rng, cells)[0].astype("float32")
    y = x + np.float32(2.0)
    x[0] = y[0] = -np.inf
    return x, y


ROWS = {
    "the head lies high in q": lambda rng, cells: one_part_elsewhere(rng, cells, 0, HEAD, 6.0),
    "the head lies low in q": lambda rng, cells: one_part_elsewhere(rng, cells, 0, HEAD, -11.0),
    "all but the head and the end": lambda rng, cells: one_part_elsewhere(rng, cells, HEAD, cells - 100, 9.0),
    "the last cell": lambda rng, cells: one_part_elsewhere(rng, cells, cells - 1, cells, 14.0),
    "every other tile": lambda rng, cells: (lambda x, y: (x, y + 2.0 * (np.arange(cells) // TILE % 2)))(
        *noisy(rng, cells)
    ),
    "one large cell a tile, the others just below its last bit": lambda rng, cells: ladder(rng, cells, -17.0),
    "every tile has cells out of range": lambda rng, cells: ladder(rng, cells, 0.0, 260.0),
    "a head without mass": lambda rng, cells: without(rng, cells, 0, HEAD, True),
    "a masked end": lambda rng, cells: without(rng, cells, cells - 3000, cells, True),
    "a zero of q": lambda rng, cells: without(rng, cells, 7, 8, False),
    "one cell is nearly all": lambda rng, cells: peaks(rng, cells, [5000], 25.0),
    "one cell is all but little, of another size in q": lambda rng, cells: raised(rng, cells, 1500, 40.0, 40.1),
    "one cell in the head, a larger one later": lambda rng, cells: peaks(rng, cells, [3, 6000], np.array([15.0, 22.0])),
    "many large cells": lambda rng, cells: peaks(rng, cells, slice(4000, 4400), 12.0),
    "a constant": lambda rng, cells: (lambda x, y: (x, y + 11.0))(*noisy(rng, cells, noise=1e-3)),
    "far apart": lambda rng, cells: noisy(rng, cells, 8.0, 8.0),
    "q is in the last cell": but_for([-1], 0.0, -70.0),
    "q is in the last cell, far above": but_for([-1], 0.0, -1e4),
    "q is in a few cells": but_for(slice(HEAD, None, 300), 0.0, -1e3),
    "a cell that both lack": lacking_and_close,
    "tiny differences": lambda rng, cells: noisy(rng, cells, 3.0, 1e-6),
}


@pytest.mark.part(8)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("cells", [CELLS, MANY])
def test_misleading_rows(row, cells, dtype):
    x, y = (a.astype(dtype) for a in ROWS[row](np.random.default_rng([8, len(row)]), cells))
    value = kl.kl_divergence(x, y, kind="logit", dtype=dtype)
    truth = mp.kl_divergence(x, y, kind="logit")
    assert value == truth if truth == np.inf else mp.ulp_error(value, truth, dtype) <= bound("logit", dtype)
    halved = kl.kl_divergence(2 * x, 2 * y, kind="logit", temperature=2.0, dtype=dtype)
    assert halved == value  # exactly: the temperature is a power of two


@pytest.mark.part(2)
@pytest.mark.parametrize("cells", [300, TILE, 2 * TILE - 1, CELLS, MANY])
@pytest.mark.parametrize(("every", "by"), [(2, 2.0**-23), (2, 1e-3), (10_000, 1e-3)])
def test_float32_rows_of_alike_cells(cells, every, by):
    """Additions of alike cells all round the same way."""
    x = np.ones(cells, "float32")
    y = x.copy()
    y[::every] += np.float32(by)
    value = kl.kl_divergence(x, y, kind="logit")
    assert mp.ulp_error(value, mp.kl_divergence(x, y, kind="logit"), "float32") <= BOUNDS["float32"]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("cells", [TILE - 1, HEAD + 1, 5 * HEAD + 17, MANY])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_cell_that_is_no_logarithm(dtype, cells, value):
    x, y = (a.astype(dtype) for a in noisy(np.random.default_rng(9), cells))
    for place in (0, cells // 2, cells - 1):
        for which in (x, y):
            kept, which[place] = which[place], value
            assert np.isnan(kl.kl_divergence(x, y, kind="logit", invalid="nan"))
            which[place] = kept
    whole = np.full_like(x, value)
    assert np.isnan(kl.kl_divergence(whole, y, kind="logit", invalid="nan"))


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("level", [-200.0, -95.0, -60.0, 60.0, 95.0, 200.0])
def test_rows_far_from_zero(dtype, level):
    """Their exponentials are zero, denormal or overflow: as the same rows around zero."""
    rng = np.random.default_rng(10)
    steps = rng.integers(-64, 64, (2, 2000)) / 16  # the level is added without rounding
    x, y = steps.astype(dtype)
    near = kl.kl_divergence(x, y, kind="logit", dtype=dtype)
    far = kl.kl_divergence(x + x.dtype.type(level), y + y.dtype.type(level), kind="logit", dtype=dtype)
    np.testing.assert_allclose(far, near, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("cells", [500, 1000, 1682, CELLS])
def test_alike_cells_beside_one_that_is_most_of_the_value(cells):
    """Added to that one as they are, they might all round the same way: errors of up to 5.2 ulp were seen, not 2.9."""
    for gap in np.random.default_rng(0).uniform(0.05, 1.3, 200):
        y = np.full(cells, -gap)
        y[cells // 5] = 0.0
        with mpmath.workdps(40):
            ratio = mpmath.log(cells / ((cells - 1) * mpmath.exp(-mpmath.mpf(gap)) + 1))
            truth = mpmath.mpf(gap) * (cells - 1) / cells - ratio
        assert mp.ulp_error(kl.kl_divergence(np.zeros(cells), y, kind="logit"), truth, "float64") <= 3.5


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("cells", [2, 300, MANY])
def test_zeros_and_next_to_zeros(dtype, cells):
    """A cell that is a zero of q alone makes KL infinite, however little p has there."""
    for x, y, infinite in [
        (-2e5, -np.inf, True), (-1e9, -np.inf, True), (-1e4, -np.inf, True), (-np.inf, -np.inf, False),
        (-np.inf, -1e9, False), (-1e9, -1e9, False), (-1e9, -1e30, False), (-1e30, -1e9, False),
    ]:  # fmt: skip
        p, q = np.zeros((2, cells), dtype)
        p[-1], q[-1] = x, y
        assert kl.kl_divergence(p, q, kind="logit") == (np.inf if infinite else 0.0), (x, y)
