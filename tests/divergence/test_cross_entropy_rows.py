"""Cross-entropy and entropy of rows of probabilities in one read, and rows that are infinite."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import engine
from klnumba.formulas import finish
from tests.reference import mp

LENGTHS = (1, 2, 3, 7, 10, 33, 128, 255, 256, 300, 1_000)
# The largest errors seen in these families are 3.9 ulp in float64 and 2.4 in float32; in longer searches 4.7, of 513
# cells one of which is nearly all.
BOUND = {"float64": 5.5, "float32": 3.0}
INF, NAN = np.inf, np.nan


def exactly(monkeypatch, function, *rows, **settings):
    """What the exact loop alone gives."""

    def without(task, block, d, dtype, out, count=1):
        engine._exact(task.name, task, block, d, dtype, np.arange(block.count), out)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "values", without)
        return function(*rows, **settings)


def normalized(x):
    return x / x.sum(axis=-1, keepdims=True)


def confident(rng, n, d, place):
    """One cell is nearly all of its row, and 1 less the others."""
    x = rng.random((n, d)) / d * 10.0 ** -rng.uniform(0.0, 16.0, (n, 1))
    x[:, place] = 0.0
    x[:, place] = 1.0 - x.sum(axis=1)
    return x


FAMILIES = {
    "independent": lambda rng, n, d: rng.dirichlet(np.ones(d), (2, n)),
    "peaked": lambda rng, n, d: np.maximum(rng.dirichlet(np.full(d, 0.05), (2, n)), 1e-30),
    "flat": lambda rng, n, d: rng.dirichlet(np.full(d, 50.0), (2, n)),
    "confident": lambda rng, n, d: (confident(rng, n, d, 0), confident(rng, n, d, 0)),
    "confident of others": lambda rng, n, d: (confident(rng, n, d, 0), confident(rng, n, d, d - 1)),
    "confident, rounded": lambda rng, n, d: (confident(rng, n, d, 0), confident(rng, n, d, 0) * (1.0 + 1e-7)),
    "one-hot": lambda rng, n, d: (np.eye(d)[np.zeros(n, int)], rng.dirichlet(np.ones(d), n)),
    "a few percent off": lambda rng, n, d: (1.02 * rng.dirichlet(np.ones(d), n), 0.98 * rng.dirichlet(np.ones(d), n)),
    "counts": lambda rng, n, d: rng.integers(1, 50, (2, n, d)).astype(float),
    "two halves": lambda rng, n, d: np.repeat([np.eye(d)[0] + np.eye(d)[-1], np.ones(d)], n, 0).reshape(2, n, d),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("family", FAMILIES)
def test_to_the_last_digits(family, dtype, quick_alone):
    for d in LENGTHS[1:]:
        rng = np.random.default_rng([d, len(family)])
        p, q = (x.astype(dtype) for x in FAMILIES[family](rng, 4, d))
        for function, rows in (("cross_entropy", (p, q)), ("entropy", (q,))):
            for k, value in enumerate(getattr(kl, function)(*rows)):
                exact = getattr(mp, function)(*(x[k] for x in rows))
                assert mp.ulp_error(value, exact, dtype) <= BOUND[dtype], (function, d, float(exact))


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("family", ["independent", "peaked", "flat", "confident of others"])
def test_rows_taken_as_they_are(family, dtype, quick_alone):
    for d in LENGTHS[1:]:
        p, q = (x.astype(dtype) for x in FAMILIES[family](np.random.default_rng([d, len(family)]), 4, d))
        for k, value in enumerate(kl.cross_entropy(p, q, normalize=False)):
            exact = mp.cross_entropy(p[k], q[k], normalize=False)
            assert mp.ulp_error(value, exact, dtype) <= BOUND[dtype], (d, float(exact))


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("d", [3, 300])
def test_what_is_left_to_the_exact_loop(d, normalize, dtype, monkeypatch):
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 14)).astype(dtype)
    tiny = np.finfo(dtype).smallest_subnormal
    q[0] *= 3.0
    p[1, 1], q[2, 1] = tiny, tiny
    p[3, 0] = -0.25
    q[4, 0] = -0.25
    p[5, 0] = NAN
    q[6, 0] = INF
    p[7] = 0.0
    q[8] = 0.0
    p[9, 0] = q[9, 0] = 0.9 * np.finfo(dtype).max
    p[10] *= np.finfo(dtype).tiny
    q[11] *= np.finfo(dtype).tiny
    q[12, 0], p[12, 1] = 0.0, 0.0
    with np.errstate(over="ignore"):  # largest numbers in float32
        value = kl.cross_entropy(p, q, normalize=normalize)
        exact = exactly(monkeypatch, kl.cross_entropy, p, q, normalize=normalize)
    np.testing.assert_allclose(value, exact, rtol=1e-6 if dtype == "float32" else 1e-14, atol=0.0)
    assert value[12] == INF


@pytest.mark.parametrize("function", ["cross_entropy", "entropy"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("d", [2, 5, 100, 255, 256, 300])
def test_no_neighbour_counts(d, normalize, function):
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 60))
    p[::2, 0] = 0.0
    q[::3, 1] = 0.0
    q[::5] *= 7.0
    p[7, 1] = q[7, 1] = 1e-310
    p[11, 0] = -1.0
    rows = (p, q) if function == "cross_entropy" else (q,)
    together = getattr(kl, function)(*rows, normalize=normalize)
    alone = [getattr(kl, function)(*row, normalize=normalize) for row in zip(*rows, strict=True)]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("d", LENGTHS)
def test_one_cell_has_all(d, normalize, dtype):
    """Exactly zero, and no minus zero."""
    p = np.zeros((3, d), dtype)
    p[:, d // 2] = 1.0 if not normalize else (1.0, 3.0, 1e-3)
    for found in (kl.entropy(p, normalize=normalize), kl.cross_entropy(p, p.copy(), normalize=normalize)):
        assert (found == 0.0).all()
        assert not np.signbit(found).any()


@pytest.mark.part(8)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("function", ["kl_divergence", "cross_entropy", "jeffreys_divergence"])
@pytest.mark.parametrize("d", [2, 10, 255, 256, 300])
def test_infinite_rows_need_no_exact_loop(d, function, normalize, dtype, monkeypatch):
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 12)).astype(dtype)
    q[::2, 0] = 0.0
    q[3, 1], p[3, 1] = 0.0, 0.0
    p[5, 1] = -0.0
    exact = exactly(monkeypatch, getattr(kl, function), p, q, normalize=normalize)
    left, once = [], engine._exact
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_exact", lambda *given, **forms: (left.extend(given[5]), once(*given, **forms)))
        found = getattr(kl, function)(p, q, normalize=normalize)
    assert np.isinf(found[::2]).all()
    assert all(row % 2 for row in left)
    np.testing.assert_allclose(found, exact, rtol=1e-6 if dtype == "float32" else 1e-13, atol=0.0)


@pytest.mark.parametrize("d", [2, 10, 300])
def test_a_row_that_is_amiss_is_not_infinite(d):
    p, q = np.random.default_rng(d).dirichlet(np.ones(d), (2, 5))
    q[:, 0] = 0.0
    p[0, 1], q[1, 1], p[2, 1], q[3, 1] = -1.0, -1.0, NAN, NAN
    for function in (kl.kl_divergence, kl.cross_entropy):
        for normalize in (True, False):
            assert np.isnan(function(p, q, normalize=normalize)).tolist() == [True] * 4 + [False]
    q[4] = 0.0
    assert np.isnan(kl.kl_divergence(p[4], q[4]))
    assert kl.kl_divergence(p[4], q[4], normalize=False) == INF


@pytest.mark.parametrize("d", [2, 10, 300])
def test_sums_above_one_are_no_reason_for_doubt(d):
    """Rows taken as they are, whose largest q is above 1: their terms have both signs, and may cancel."""
    rng = np.random.default_rng(d)
    for mass in (1.0 + 1e-9, 1.001, 1.5, 3.0, 40.0):
        p, q = rng.dirichlet(np.full(d, 0.3), (2, 10))
        q[:, 0] += mass - q.sum(axis=1)
        q = np.abs(q) + 1e-9
        for k, value in enumerate(kl.cross_entropy(p, q, normalize=False)):
            terms = mp.mp.fsum(abs(mp.mpf(float(x)) * mp.mp.log(float(y))) for x, y in zip(p[k], q[k], strict=True))
            exact = mp.cross_entropy(p[k], q[k], normalize=False)
            assert mp.ulp_error(value, exact, scale=terms) <= 4.5
            assert mp.ulp_error(value, exact) <= 5.5 or terms > 1.03 * abs(exact)


def test_what_would_cancel_is_not_served():
    """The sums of a row, off 1 by e: A/P + log(1 + e) with e up to 1/8 of the value."""
    a, value = 0.5, finish.cross_entropy_of
    for e in (-0.03, -1e-3, 1e-3, 0.03):
        assert value(a, 1.0 + e, 1.0, 1.0 + e) == pytest.approx(a + math.log1p(e), rel=1e-15)
        assert value(a, e, 1.0, 1.0 + e) == pytest.approx(a + math.log1p(e), rel=1e-15)
    assert value(7.9e-3, -1e-3, 1.0, 0.999) == -1.0
    assert value(9.1e-3, -1e-3, 1.0, 0.999) > 0.0
    assert value(a, 1.04, 1.0, 1.04) == value(a, -0.05, 1.0, 0.95) == value(a, NAN, 1.0, NAN) == -1.0


@pytest.mark.parametrize("function", ["entropy", "cross_entropy"])
def test_logarithms_of_one_cell_have_no_minus_zero(function):
    for d in LENGTHS:
        rows = (np.zeros((3, d)),) * (1 if function == "entropy" else 2)
        found = getattr(kl, function)(*rows, kind="log_prob", normalize=False)
        assert (found == 0.0).all()
        assert not np.signbit(found).any()
