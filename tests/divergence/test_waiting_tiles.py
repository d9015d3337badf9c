"""Float32 rows of logits that are long: the tiles that weigh much, and wait until the row is read."""

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels import cpu, logits, shares, threads
from klnumba.kernels.logit_quick import has_quick_tile
from klnumba.kernels.logits import LONG, TILE
from tests.reference import mp
from tests.reference.accuracy_table import bound


def noisy(rng, shape, spread, noise):
    x = np.float32(spread) * rng.standard_normal(shape, np.float32)
    return x, x + np.float32(noise) * rng.standard_normal(shape, np.float32)


def raised(rng, rows, cells):
    """In each row q is p but for one tile, that is a constant higher: its cells all round alike."""
    x = noisy(rng, (rows, cells), 1.0, 0.0)[0] * rng.choice([0.01, 0.3], (rows, 1)).astype("float32")
    y = x.copy()
    for row, start in zip(y, TILE * rng.integers(-(-cells // TILE), size=rows), strict=True):
        row[start : start + TILE] += np.float32(rng.choice([1e-3, 0.1, 1.0, 5.0]))
    return x, y


def errors(x, y, **options):
    """In ulp, of the float64 result, which has seven digits more."""
    found = kl.kl_divergence(x, y, kind="logit", **options).astype(float)
    exact = kl.kl_divergence(x.astype(float), y.astype(float), kind="logit", **options)
    return np.abs(found - exact) / np.spacing(exact.astype("float32"))


@pytest.mark.parametrize("spread", [3.0, 6.0, 10.0])
def test_rows_of_which_a_few_cells_are_most(spread):
    rng = np.random.default_rng(100)
    found = np.concatenate([errors(*noisy(rng, (500, LONG + TILE // 2), spread, 0.3)) for _ in range(5)])
    assert found.max() <= bound("logit", "float32")


@pytest.mark.parametrize("spread", [3.0, 6.0, 12.0])
def test_rows_that_have_little_in_common(spread):
    """Until all of a row is read the guess may be 13 off, and the sums by which tiles are judged tell no other."""
    rng = np.random.default_rng(14)
    shape = (500, LONG + TILE // 2)
    found = np.concatenate(
        [errors(noisy(rng, shape, spread, 0.0)[0], noisy(rng, shape, spread, 0.0)[0]) for _ in range(4)]
    )
    assert found.max() <= bound("logit", "float32")


def test_a_row_with_few_large_cells_and_a_flat_one():
    rng = np.random.default_rng(15)
    x, y = noisy(rng, (300, LONG), 2.0, 0.0)[0], noisy(rng, (300, LONG), 0.05, 0.0)[0]
    for row in x:
        row[rng.choice(np.arange(2 * TILE, LONG), 20, replace=False)] = 35.0 - rng.exponential(2.0, 20)
    assert errors(x, y).max() <= bound("logit", "float32")


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("cells", [50_257, LONG + TILE // 2])
def test_rows_of_which_one_tile_is_most(cells, temperature):
    rng = np.random.default_rng(7)
    found = np.concatenate([errors(*raised(rng, 100, cells), temperature=temperature) for _ in range(4)])
    assert found.max() <= bound("logit", "float32")


@pytest.mark.parametrize("cells", [LONG + 64, LONG + 128, LONG + TILE + 192, LONG + 2 * TILE - 64])
def test_last_tiles_of_any_multiple_of_64_cells(cells):
    """Of which the quick sums take a multiple of 128: what lies behind a row has no part in it."""
    x = np.random.default_rng(15).normal(size=(40, cells + 64)).astype("float32")
    y = x + np.float32(0.3) * np.roll(x, 1, axis=1)
    x[:, cells:], y[:, cells:] = 5.0, 1.0
    x, y = x[:, :cells], y[:, :cells]
    assert errors(x, y).max() <= bound("logit", "float32")
    np.testing.assert_array_equal(
        kl.kl_divergence(x, y, kind="logit"), kl.kl_divergence(x.copy(), y.copy(), kind="logit")
    )


@pytest.mark.parametrize("way", [1, -1])
def test_more_tiles_outweigh_all_before_them_than_may_wait(way):
    """From the light end each tile has too large a share of the sums so far, and nearly none has at last."""
    rng = np.random.default_rng(12)
    cells = (TILE // 8 + 16) * TILE
    x = (rng.standard_normal(cells) + np.linspace(-30.0, 30.0, cells))[::way].astype("float32")
    y = x + (0.3 * rng.standard_normal(cells)).astype("float32")
    value = kl.kl_divergence(x, y, kind="logit")
    assert mp.ulp_error(value, mp.kl_divergence(x, y, kind="logit"), "float32") <= bound("logit", "float32")


def test_records_of_tiles_stay_in_their_room():
    """Where more tiles would wait than there is room for, the others are not kept."""
    cells = (TILE // 8 + 16) * TILE
    x = np.linspace(-30.0, 30.0, cells, dtype="float32")
    y = x + np.float32(0.25) * (np.arange(cells, dtype="float32") % 2)
    x.flags.writeable = y.flags.writeable = False
    out, flag, kind = np.zeros(1), np.zeros(1, np.int8), np.dtype("float32")
    work, view, space = threads.scratch(kind)
    roomy = np.full(space.size + 2048, 7.0)
    turn = shares.turn(shares.parts(1), 0, cells)
    store = np.empty(logits.room(), kind)
    left = cpu.logit_rows("float32")(
        x, 0, cells, y, 0, cells, 1, cells, out, flag, turn, 1.0, store, work, view, roomy[: space.size]
    )  # fmt: skip
    assert left == 0
    assert out[0] > 0.0
    assert (roomy[6 * TILE :] == 7.0).all()
    if has_quick_tile(kind):
        assert (roomy[5 * TILE : 6 * TILE : 8] != 7.0).all()  # there were as many as there is room for


def test_what_the_sums_of_a_tile_lose_while_it_waits():
    """The guess is that of a few light cells, and the others of the first tile, all alike, add to it far more than KL.

    Were what is lost on the way from there not counted, errors would reach 26 ulp.
    """
    x = np.repeat(np.random.default_rng(13).uniform(-1.0, 1.0, (400, 1)).astype("float32"), LONG, axis=1)
    y = x + np.tile(np.float32([1e-3, -1e-3]), LONG // 2)
    x[:, : TILE // 2] -= np.float32(4.0)
    y[:, : TILE // 2] = x[:, : TILE // 2] + np.float32(0.018)
    assert errors(x, y).max() <= bound("logit", "float32")
