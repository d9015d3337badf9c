"""Logits of other temperatures and weights, for the careful loops: short rows many at a time, long ones alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import engine
from klnumba.kernels import logs_short
from tests.divergence.test_log_sums import FAMILIES, ODD
from tests.reference import mp

# What is asked for, and limits in ulp. The largest in six times as many rows were 3.8, 3.9, 4.4, 3.2, 5.0 and 2.5,
# entropies below 1e-60 aside, of which 80 digits leave too few.
CASES = {
    "kl_divergence": ({"temperature": 0.7}, 5.0),
    "jeffreys_divergence": ({"temperature": 0.7}, 5.0),
    "cross_entropy": ({"temperature": 3.0}, 5.5),
    "entropy": ({"temperature": 0.7}, 4.0),
    "js_divergence": ({"weight": 0.3, "temperature": 0.7}, 6.5),
    "max_log_ratio": ({"temperature": 0.7}, 3.5),
}
CASE = pytest.mark.parametrize("function", CASES)
LENGTHS = (1, 2, 3, 10, 33, 64, 100, 127, 128, 300)


def call(function, p, q):
    settings = {"kind": "logit"} | CASES[function][0]
    if function == "max_log_ratio":
        return kl.row_statistics(p, q, stats=(function,), **settings)[function]
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


def error(function, p, q, value):
    settings = {"kind": "logit"} | CASES[function][0]
    truth = mp.entropy(p, **settings) if function == "entropy" else getattr(mp, function)(p, q, **settings)
    if truth < 1e-70:  # what is exactly zero is so in 80 digits alone
        return 0.0 if value == 0.0 else math.inf
    return mp.ulp_error(value, truth)


@pytest.mark.part(6)
@pytest.mark.parametrize("family", FAMILIES)
@CASE
def test_accuracy(function, family):
    rng = np.random.default_rng(len(family))
    for d in LENGTHS:
        p, q = np.array([FAMILIES[family](rng, d) for _ in range(3 if d < 100 else 1)]).swapaxes(0, 1)
        for x, y, value in zip(p, q, call(function, p, q), strict=True):
            assert error(function, x, y, value) <= CASES[function][1], f"{d} cells"


@pytest.mark.part(2)
@pytest.mark.parametrize("step", [0.1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("function", ["kl_divergence", "jeffreys_divergence", "js_divergence"])
def test_rows_that_are_alike(function, step):
    rng = np.random.default_rng(5)
    for d in LENGTHS[1:]:
        p, q = rng.normal(0.0, 2.0, (2, 3 if d < 100 else 1, d))
        q = p + step * q + rng.normal(0.0, 9.0, (len(p), 1))
        for x, y, value in zip(p, q, call(function, p, q), strict=True):
            assert error(function, x, y, value) <= CASES[function][1], f"{d} cells"


def odd_rows(rng, d, count):
    """Rows like those of every family, and with odd cells among them."""
    sides = np.array([FAMILIES[name](rng, d) for name in FAMILIES for _ in range(count)]).swapaxes(0, 1)
    there = rng.random(sides.shape) < min(0.3, 0.5 / d)
    sides[there] = rng.choice(ODD, int(there.sum()))
    return sides


@CASE
def test_short_rows_are_as_rows_alone(monkeypatch, function):
    """Whatever is beside them, and near what the loop for long rows gives."""
    for d in (1, 2, 7, 10, 60, 127):
        rng = np.random.default_rng(d)
        p, q = odd_rows(rng, d, 30 if d < 60 else 5)
        order = rng.permutation(len(p))
        values = call(function, p[order], q[order])
        assert values.tobytes() == np.array([call(function, p[i], q[i]) for i in order]).tobytes()
        wide = np.zeros((2, len(p), d + 3))
        wide[:, :, 1 : 1 + d] = p[order], q[order]
        assert call(function, *wide[:, :, 1 : 1 + d]).tobytes() == values.tobytes()
        with monkeypatch.context() as patch:
            patch.setattr(engine.logs_short, "SHORT", 0)
            alone = call(function, p[order], q[order])
        np.testing.assert_array_equal(np.isfinite(values), np.isfinite(alone))
        np.testing.assert_array_equal(values == 0.0, alone == 0.0)
        np.testing.assert_allclose(values, alone, rtol=3e-15, atol=0.0)


def test_the_longest_short_rows_fit():
    """One group is as many rows as are kept, or one row."""
    rng = np.random.default_rng(1)
    for d in (1, 7, 8, 9, logs_short.SHORT - 1, logs_short.SHORT):
        p, q = rng.normal(0.0, 2.0, (2, logs_short.MOST + 1, d))
        for row, value in enumerate(call("kl_divergence", p, q)):
            assert value == call("kl_divergence", p[row], q[row])
