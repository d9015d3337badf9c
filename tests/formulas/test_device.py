"""The cells of CUDA devices, with instructions as far off as the manual allows, against the exact values."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from klnumba.formulas import device, finish
from tests.reference import coefficients
from tests.reference.linked import packaged

SETS = {
    "psi_short_f32": [f"P{i}" for i in range(8)],
    "atanh_quarter_f32": ["T0", "T1", "T2"],
    "bend_f32": [f"B{i}" for i in range(11)],
}
# Largest errors in units of 2**-24 or 2**-53, of a cell over what it is made of; the largest seen are beside them.
OF_PROBABILITIES = {"float32": 6.0, "float64": 3.5}  # 4.7, 2.7
OF_LOGITS = {"float64": 6.5, "float32": 24.0, "float16": 24.0, "bfloat16": 24.0}  # 5.4, 19.2, 19.9, 21.2
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


@pytest.mark.parametrize("name", SETS)
def test_coefficients_are_those_of_the_generator(name):
    with mpmath.workdps(50):
        made, error = coefficients.smallest(coefficients.TARGETS[name])
    assert [float(getattr(device, c)) for c in SETS[name]] == [float(c) for c in made]
    assert error <= coefficients.TARGETS[name].tolerance


def truth(p, q):
    with mpmath.workdps(60):
        p, q = mpmath.mpf(float(p)), mpmath.mpf(float(q))
        return (p * mpmath.log(p / q) if p else mpmath.mpf(0)) - p + q


def ratios(dtype, rng, count):
    """Pairs of numbers at every distance from each other."""
    p = rng.uniform(0.5, 2.0, count) * 2.0 ** rng.integers(-40, 3, count)
    distance = 10.0 ** rng.uniform(-9, 1.5, count) * rng.choice([-1, 1], count)
    return p.astype(dtype), (p * np.exp(distance)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cells_of_probabilities(dtype):
    cell = packaged(device.KL_CELLS[dtype])
    worst = 0.0
    for p, q in zip(*ratios(dtype, np.random.default_rng(0), 3000), strict=True):
        value, bits = cell(p, q)
        assert bits >= 0
        exact = truth(p, q)
        worst = max(worst, abs(float((mpmath.mpf(float(value)) - exact) / exact)) if exact else abs(value))
    assert worst <= OF_PROBABILITIES[dtype] * UNIT[dtype], worst / UNIT[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_and_what_is_no_probability(dtype):
    kind, cell = np.dtype(dtype).type, packaged(device.KL_CELLS[dtype])
    least = float(np.finfo(dtype).tiny)
    tiny = np.finfo(dtype).smallest_subnormal
    for p, q in [(0.0, 0.0), (0.0, 0.3), (0.0, tiny), (least, 1.0), (tiny, 1.0), (0.3, least), (1.0, 1.0)]:
        value, bits = cell(kind(p), kind(q))
        assert bits >= 0, (p, q)
        assert value == pytest.approx(float(truth(p, q)), rel=1e-6, abs=2e3 * least)
    for p, q in [
        (0.3, 0.0),
        (0.3, tiny),
        (tiny, 0.0),
        (-0.1, 0.2),
        (0.2, -0.1),
        (0.0, -0.1),
        (-0.0, 0.1),
        (-0.1, -0.1),
    ]:
        assert cell(kind(p), kind(q))[1] < 0, (p, q)


def logits(dtype, rng, count):
    """Pairs of logits, and a guess of their distance, at every distance from it."""
    import ml_dtypes

    kind = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    x = rng.uniform(-12.0, 3.0, count).astype(kind).astype(float)
    shift = rng.uniform(-2.0, 2.0, count) * rng.integers(0, 2, count)
    delta = 10.0 ** rng.uniform(-5, 1.2, count) * rng.choice([-1, 1], count)
    return x, (x - shift - delta).astype(kind).astype(float), shift


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", OF_LOGITS)
@pytest.mark.parametrize("inverse", [1.0, 0.25])
def test_cells_of_logits(dtype, inverse):
    real = np.float64 if dtype == "float64" else np.float32
    cell, worst = packaged(device.LOGIT_CELLS[dtype](device.gap)), 0.0
    for x, y, guess in zip(*logits(dtype, np.random.default_rng(1), 2000), strict=True):
        shift = real(guess)
        ratio = real(math.exp(float(shift)))
        g, p, h, delta = cell(real(x), real(y), real(inverse), shift, ratio)
        with mpmath.workdps(50):
            gap = (mpmath.mpf(x) - mpmath.mpf(y)) * inverse - mpmath.mpf(float(shift))
            mass = mpmath.exp(mpmath.mpf(x) * inverse)
            rest = mpmath.expm1(-gap)
            exact = {"g": mass * (gap + rest), "p": mass, "e": mass * rest}
            # What is far less than q counts beside that, and what E tells beside G.
            scale = exact | {"p": max(mass, mass + mass * rest), "e": max(abs(exact["e"]), exact["g"])}
        assert abs(float(delta) - float(gap)) <= 2 * UNIT[real.__name__] * abs(float(gap))
        for name, found in zip(exact, (g, p, float(g) - float(h)), strict=True):
            if scale[name]:
                worst = max(worst, abs(float((mpmath.mpf(float(found)) - exact[name]) / scale[name])))
    assert worst <= OF_LOGITS[dtype] * UNIT[real.__name__], worst / UNIT[real.__name__]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaps(dtype):
    """What is rounded before the subtraction of the shift shows where little is left."""
    real, unit = np.dtype(dtype).type, UNIT[dtype]
    quick, careful = packaged(device.quick_gap), packaged(device.gap)
    rounded = 0
    for x, y, shift in np.random.default_rng(5).uniform(-20, 20, (2000, 3)).astype(dtype):
        exact = (mpmath.mpf(float(x)) - mpmath.mpf(float(y))) / 4 - mpmath.mpf(float(shift))
        for found, error in ((careful, 2 * abs(exact)), (quick, 2 * abs(exact) + abs(float(x) - float(y)) / 4)):
            assert abs(float(found(x, y, real(0.25), shift)) - exact) <= unit * error
        rounded += quick(x, y, real(0.25), shift) != careful(x, y, real(0.25), shift)
        assert packaged(device.plain_gap)(x, y, real(1.0), real(0.0)) == quick(x, y, real(1.0), real(0.0))
    assert rounded > 10


@pytest.mark.parametrize("gap", [device.gap, device.quick_gap, device.plain_gap])
@pytest.mark.parametrize("dtype", OF_LOGITS)
def test_logits_that_are_masked(dtype, gap):
    real = np.float64 if dtype == "float64" else np.float32
    cell = packaged(device.LOGIT_CELLS[dtype](gap))
    one, zero = real(1.0), real(0.0)
    least = 1e-300 if dtype == "float64" else 0.0
    g, p, h, delta = cell(real(-math.inf), real(-math.inf), one, zero, one)
    assert 0.0 <= p <= least >= abs(g)  # in both rows
    assert abs(h) <= least
    assert abs(delta) <= device.HIGHEST
    g, p, h, delta = cell(real(-math.inf), real(-1.0), one, zero, one)
    assert 0.0 <= p <= least  # in p alone
    assert abs(h) <= 1e-250
    assert g == pytest.approx(math.exp(-1.0), rel=1e-6)
    assert delta <= device.HIGHEST
    assert cell(real(-1.0), real(-math.inf), one, zero, one)[3] > device.HIGHEST  # where p has mass
    assert cell(real(-500.0), real(-math.inf), one, zero, one)[3] > device.HIGHEST  # however little
    for x, y in [(math.nan, 0.0), (0.0, math.nan)]:
        g, _, _, _ = cell(real(x), real(y), one, zero, one)
        assert math.isnan(g)


def test_finish_has_the_digits_of_a_float32():
    ours, theirs = packaged(device.finish_f32), packaged(finish.kl_finish)
    rng = np.random.default_rng(2)
    stands = 0
    for _ in range(2000):
        p = rng.uniform(0.5, 2.0) * 2.0 ** rng.integers(-30, 30)
        q = p * (1.0 + rng.uniform(-1, 1) * 10.0 ** rng.uniform(-8, -1))
        g = p * 10.0 ** rng.uniform(-5, 2)
        found, expected = ours(g, p, q, 2.0**-18, 2.0**40), theirs(g, p, q, 2.0**-18, 2.0**40)
        assert found == pytest.approx(expected, rel=2.0**-26)
        stands += expected > 0
    assert 500 < stands < 2000
    assert ours(0.0, 1.5, 1.5, 2.0**-18, 2.0**40) == -1.0  # left to the careful look, as in float64
    assert packaged(device.finish)(0.0, 1.5, 1.5, 2.0**-46, 2.0**900) == -1.0
    for p in (0.0, math.nan, math.inf, -1.0):
        assert ours(1.0, p, 1.0, 2.0**-18, 2.0**40) == -1.0


def test_bends():
    for dtype, size in (("float64", 3.0), ("float32", 0.5)):
        bend = packaged(device.BENDS[dtype])
        for t in np.random.default_rng(3).uniform(-0.5, size, 500):
            with mpmath.workdps(40):
                exact = float(mpmath.mpf(t) - mpmath.log1p(mpmath.mpf(t)))
            assert bend(t) == pytest.approx(exact, rel=3e-7 if dtype == "float32" else 4e-16)
        assert bend(-0.75) == bend(-2.0) == math.inf
    assert packaged(device.bend_f32)(0.75) == math.inf


def test_quotients():
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0.5, 2.0, (2, 2000)) * 2.0 ** rng.integers(-300, 300, (2, 2000))
    found = np.array([packaged(device.quotient)(x, y) for x, y in zip(a, b, strict=True)])
    np.testing.assert_allclose(found, a / b, rtol=2.3e-16)
