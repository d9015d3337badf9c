"""Log-probabilities that are taken as they are: one sum of cells, to the last digits, and what other loops get."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from tests.reference import mp

FUNCTIONS = ("kl_divergence", "cross_entropy", "entropy", "jeffreys_divergence", "js_divergence")
LENGTHS = (1, 2, 3, 7, 10, 16, 31, 64, 100, 127, 255, 256, 300, 512, 700)
LIMITS = {"float64": 4.5, "float32": 0.6}  # ulp; 3.9 was the largest that was found, and float32 is rounded once
INF, NAN = math.inf, math.nan


def call(function, p, q, **settings):
    settings = {"kind": "log_prob", "normalize": False} | settings
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


def is_near(value, function, p, q, dtype):
    truth, scale = mp.of_rows(function, p, q, "log_prob", False)
    return mp.ulp_error(value, truth, dtype, scale) <= LIMITS[dtype]


def normalised(x):
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def near(size, make=normalised):
    return lambda p, q: (make(p), make(p + size * q))


FAMILIES = {
    "normalised": lambda p, q: (normalised(p), normalised(q)),
    "others": lambda p, q: (p, q),
    "wide": lambda p, q: (9.0 * p, 9.0 * q),
    "near, 1e-1": near(1e-1),
    "near, 1e-3": near(1e-3),
    "near, 1e-6": near(1e-6),
    "near, 1e-12": near(1e-12),
    "near, not normalised": near(1e-3, make=lambda x: x),
    "flat": lambda p, q: (np.repeat(p[:, :1], p.shape[1], 1), np.repeat(q[:, :1], p.shape[1], 1)),
    "ties": lambda p, q: (np.round(p), np.round(q)),
    "small": lambda p, q: (p - 600.0, q - 600.0),
    "large": lambda p, q: (p + 600.0, q + 600.0),
    "p sparse": lambda p, q: (np.where(p > 1.0, -INF, normalised(p)), normalised(q)),
    "both sparse": lambda p, q: (np.where(p > 1.0, -INF, p), np.where(p > 1.0, -INF, q)),
}


@pytest.mark.part(12)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_accuracy(quick_alone, family, dtype):
    if family in ("small", "large") and dtype == "float32":
        pytest.skip("no float32 holds the values")
    for d in LENGTHS:
        rng = np.random.default_rng([d, len(family)])
        p, q = (x.astype(dtype) for x in FAMILIES[family](*rng.normal(0.0, 2.0, (2, 4 if d < 200 else 1, d))))
        truths = [mp.pair_of_rows(*rows, "log_prob", False) for rows in zip(p, q, strict=True)]
        for function in FUNCTIONS:
            for row, value in enumerate(call(function, p, q)):
                truth, scale = truths[row][function]
                assert mp.ulp_error(value, truth, dtype, scale) <= LIMITS[dtype], (function, d, row)


# With cells whose exponentials are at either end of the range.
ODD = np.array([
    INF, -INF, -INF, NAN, 0.0, -0.0, 1.0, 709.0, 709.9, 800.0, -700.0, -709.0, -745.0, -746.0, -1e5, 1e300, -1e300,
    1.79e308, -1.79e308, 5e-324, -1e-310, 1e-9, -1e-9, -30.0, -2.0, -1.0,
])  # fmt: skip


@pytest.mark.part(2)
@pytest.mark.parametrize("d", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_odd_cells(function, d):
    """NaN, infinities and zeros as the reference has them, and numbers, of rows without huge ones."""
    rng = np.random.default_rng(d)
    p, q = rng.normal(0.0, 2.0, (2, 1500 // d, d))
    for side in (p, q):
        there = rng.random(side.shape) < min(0.8, 1.0 / d)
        side[there] = rng.choice(ODD, int(there.sum()))
    known = 0
    for x, y, value in zip(p, q, call(function, p, q), strict=True):
        settings = {"kind": "log_prob", "normalize": False}
        truth = mp.entropy(x, **settings) if function == "entropy" else getattr(mp, function)(x, y, **settings)
        y = x if function == "entropy" else y
        if max(np.abs(side[np.isfinite(side)]).max(initial=0.0) for side in (x, y)) > 700.0:
            continue
        known += 1
        if abs(truth) < 1e-70:  # which 80 digits do not tell from zero
            assert abs(value) < 1e-70, (x, y)
        elif mp.mp.isfinite(truth):
            assert is_near(value, function, x, y, "float64"), (x, y)
        else:
            assert value == float(truth) or (math.isnan(value) and mp.mp.isnan(truth)), (x, y)
    assert known > 100 // d


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("function", "p", "q", "value"),
    [
        ("cross_entropy", 0.0, 709.0, -709.0),  # e**y is next to the end of numbers, but not in the value
        ("cross_entropy", 0.0, 1e300, -1e300),
        ("kl_divergence", -1e15, 1e15, 0.0),
        ("kl_divergence", 0.0, 800.0, -800.0),
        ("kl_divergence", -800.0, -INF, INF),
        ("kl_divergence", -INF, -INF, 0.0),
        ("kl_divergence", INF, -INF, NAN),
        ("kl_divergence", -INF, INF, NAN),
        ("kl_divergence", -INF, NAN, NAN),
        ("cross_entropy", -INF, NAN, NAN),
        ("jeffreys_divergence", -800.0, -INF, INF),
        ("jeffreys_divergence", -INF, -INF, 0.0),
        ("js_divergence", -INF, 0.0, 0.5 * math.log(2.0)),
        ("js_divergence", -INF, -INF, 0.0),
        ("js_divergence", -1e300, 1.0, 0.5 * math.e * math.log(2.0)),
        ("js_divergence", INF, INF, NAN),
    ],
)
@pytest.mark.parametrize("times", [1, 50, 300])
def test_edges(function, p, q, value, times):
    p, q = np.repeat([[p], [q]], times, axis=1)
    assert call(function, p, q) == pytest.approx(value * times if value else 0.0, rel=1e-14, abs=0.0, nan_ok=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_row_depends_on_its_neighbours(function):
    for d in (1, 3, 10, 100, 300):
        rng = np.random.default_rng(d)
        p, q = rng.normal(0.0, 3.0, (2, 300, d))
        for side in (p, q):
            there = rng.random(side.shape) < 0.3 / d
            side[there] = rng.choice(ODD, int(there.sum()))
        alone = np.array([call(function, x, y) for x, y in zip(p, q, strict=True)])
        wide = np.zeros((2, 300, d + 5))
        wide[:, :, 2 : 2 + d] = p, q
        for pair in ((p, q), wide[:, :, 2 : 2 + d]):
            for threads in (1, 3):
                assert call(function, *pair, threads=threads).tobytes() == alone.tobytes(), d


def test_equal_rows_are_nothing_apart(quick_alone):
    p = np.random.default_rng(2).normal(0.0, 3.0, (30, 90))
    p[:, ::7] = -INF
    for function in ("kl_divergence", "jeffreys_divergence", "js_divergence"):
        assert (call(function, p, p) == 0.0).all()
    assert call("entropy", p, p).tobytes() == call("cross_entropy", p, p).tobytes()
