"""Arithmetic in twice the digits against mpmath, and numbers that carry their derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba.distributions import gradient_rules
from klnumba.duals import nodes as nodes_module
from klnumba.duals import twofold as tf
from klnumba.duals.dual import Dual, Split, largest, least
from klnumba.duals.twin import slopes, twin
from klnumba.formulas import divergences, elementary, row_cells, special

SHAPES = [1e-9, 1e-3, 0.3, 1.5, 7.0, 15.99, 16.0, 100.0, 1e8]
FUNCTIONS = {
    "exp": (tf.exp, mp.exp, [1e-5, 0.3, 1.0, -20.0, 300.0, -600.0]),
    "expm1": (tf.expm1, mp.expm1, [1e-10, -1e-5, 0.3, 0.339, 0.341, 1.0, -20.0, 300.0]),
    "log1p": (tf.log1p, mp.log1p, [1e-10, -1e-5, 0.3, -0.4, 1.0, 300.0, 1e20]),
    "log": (tf.log, mp.log, [1e-300, 1e-5, 0.3, 1.0 + 1e-9, 20.0, 1e300]),
    "sqrt": (tf.sqrt, mp.sqrt, [1e-200, 1e-5, 2.0, 1e200]),
    "log_gamma": (tf.log_gamma, mp.loggamma, SHAPES),
    "digamma": (tf.digamma, mp.digamma, SHAPES),
    "trigamma": (tf.trigamma, lambda x: mp.psi(1, x), SHAPES),
    "tetragamma": (tf.tetragamma, lambda x: mp.psi(2, x), SHAPES),
    "digamma_less_log": (tf.digamma_less_log, lambda x: mp.digamma(x) - mp.log(x) + 1 / (2 * x), SHAPES),
    "trigamma_less_powers": (
        tf.trigamma_less_powers,
        lambda x: mp.psi(1, x) - 1 / x - 1 / (2 * x * x),
        SHAPES,
    ),
}


def exactly(x, at=()):
    return mpf(float(x.hi[at])) + mpf(float(np.broadcast_to(x.lo, x.hi.shape)[at]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_28_digits(name):
    function, truth, numbers = FUNCTIONS[name]
    found = function(tf.Twofold(np.array(numbers)))
    with mp.workdps(60):
        for i, x in enumerate(numbers):
            expected = truth(mpf(x))
            assert abs(exactly(found, i) - expected) <= mpf(10) ** -28 * abs(expected), x


def test_arithmetic_has_30_digits():
    rng = np.random.default_rng(1)
    x, y = (tf.Twofold(rng.normal(0, 9, 500), 1e-17 * rng.uniform(-1, 1, 500)) for _ in range(2))
    with mp.workdps(60):
        for operation in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b):
            found = operation(x, y)
            for i in range(500):
                a, b = exactly(x, i), exactly(y, i)
                expected = operation(a, b)
                assert abs(exactly(found, i) - expected) <= mpf(10) ** -30 * max(abs(expected), abs(a) / 99)


def test_what_overflows_is_infinite():
    with np.errstate(all="ignore"):
        assert tf.exp(1000.0).hi == math.inf
        assert tf.expm1(1000.0).hi == math.inf
        assert (2.0 / tf.expm1(1000.0)).hi == 0.0
        assert (tf.Twofold(1e300) * 1e300).hi == math.inf
        assert tf.log(0.0).hi == -math.inf


def dual(numbers):
    x = np.array(numbers, float)
    return Dual(tf.Twofold(x), tf.Twofold(np.ones((1, x.size))))


def test_a_batch_on_both_sides_of_a_branch_is_split():
    x = dual([1.0, 2.0, 3.0])
    assert x > 0.0
    assert not x > 5.0
    assert np.float64(0.5) < x
    with pytest.raises(Split) as both:
        bool(x < 2.5)
    np.testing.assert_array_equal(both.value.mask, [True, True, False])


def test_branches_loops_and_extremes_of_each_number():
    def formula(x, y):
        total = 0.0
        while x > 1.0:
            total = total + x * y
            x = x - 1.0
        return total + (min(x, y) if y < 0.5 else max(x, 3.0 * y, 0.0))

    x, y = np.array([0.25, 3.5, 1.5, 0.2]), np.array([0.75, 0.25, 2.0, 0.1])
    found = slopes(twin(formula), [x, y])
    np.testing.assert_array_equal(found, [[0.0, 4 * 0.25 - 0.25 + 0.0, 2.0, 0.0], [3.0, 7.5 + 1.0, 4.5, 1.0]])


def test_least_and_largest_of_plain_numbers():
    assert least(3.0, 1.0, 2.0) == 1.0
    assert largest(3.0, 1.0, 4.0) == 4.0


def test_numpy_scalars_and_functions():
    x = dual([2.0])
    for found, slope in (
        (np.float64(3.0) * x, 3.0),
        (np.multiply(x, 0.5), 0.5),
        (np.subtract(1.0, x), -1.0),
        (np.float64(1.0) / x, -0.25),
        (np.square(x), 4.0),
        (x**3, 12.0),
    ):
        assert found.slopes.hi == slope
    with pytest.raises(TypeError):
        np.sin(x)
    with pytest.raises(NotImplementedError, match="needs a rule for derivatives"):
        row_cells.kl_cell(x, 2.0, 1.0)
    with pytest.raises(NotImplementedError, match="write exp and log"):
        x**0.5


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (elementary.log, (0.7,)),
        (elementary.expm1, (0.7,)),
        (special.excess, (0.7, 0.9, 0.2)),
        (special.excess_of_products, (0.7, 0.9, 2.0, 1.1)),
        (special.exp_excess, (-0.4,)),
        (divergences.bregman, (0.7, 0.9, -0.2, 0.0)),
        (divergences.generalized_kl, (0.7, 0.9)),
        (special.log_gamma, (0.7,)),
        (special.digamma, (0.7,)),
        (special.trigamma, (0.7,)),
        (special.stirling, (0.7,)),
        (special.stirling_slope, (0.7,)),
        (special.stirling_bregman, (0.7, 0.9, 0.2)),
        (special.log_gamma_bregman, (0.7, 0.9, 0.2)),
        (special.digamma_bregman, (0.7, 0.9, 0.2)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_rules_follow_their_functions(function, numbers):
    """The value, and the slope by the first number; a given difference follows it."""
    first, *others = numbers
    with np.errstate(all="ignore"):
        x = dual([first])
        rise = [v if i != 1 or function.__name__ == "excess_of_products" else None for i, v in enumerate(others)]
        sign = -1.0 if function is divergences.bregman else 1.0
        found = twin(function)(x, *((sign * (others[0] - x)) if v is None else v for v in rise))

    def at(y):
        return function(y, *((sign * (others[0] - y)) if v is None else v for v in rise))

    step = 1e-4
    slope = (8 * (at(first + step) - at(first - step)) - (at(first + 2 * step) - at(first - 2 * step))) / (12 * step)
    assert float(found.value.hi[0]) == pytest.approx(float(at(first)), rel=4e-15)
    assert float(found.slopes.hi[0, 0]) == pytest.approx(float(slope), rel=1e-9)


@pytest.mark.parametrize("unit", [2.0**-1000, 1.0, 2.0**1000])
def test_hypot_has_slopes_wherever_numbers_are(unit):
    of_x, of_y = slopes(twin(math.hypot), [np.array([3.0, -3.0, 0.0]) * unit, np.array([4.0, 4.0, 1.0]) * unit])
    np.testing.assert_array_equal(of_x, [0.6, -0.6, 0.0])
    np.testing.assert_array_equal(of_y, [0.8, 0.8, 1.0])


def test_blend_excess_next_to_all_its_ends():
    """Of log(y*exp(v) + 1 - y) - y*v by both; exp(v) times a slope may be beyond the range."""
    y, v = (x.ravel() for x in np.meshgrid([1e-250, 1e-9, 0.3, 0.5, 0.8], [1e-40, 1e-9, 0.7, 3.0, 40.0, 699.0, 1e5]))
    of_y, of_v = slopes(lambda y, v: gradient_rules.log_blend_excess(y, 1.0 - y, v), [y, v])
    with mp.workdps(400):
        for at, (a, b) in enumerate(zip(map(mpf, y), map(mpf, v), strict=True)):
            ratio = mp.expm1(b) / (a * mp.expm1(b) + 1)
            assert of_y[at] == pytest.approx(float(ratio - b), rel=4e-15)
            assert of_v[at] == pytest.approx(float(a * (1 - a) * ratio), rel=4e-15)


def test_sums_over_nodes_are_those_of_a_loop():
    """Of a formula with a branch, on whose sides are some nodes of some numbers; in several blocks."""

    def node(t, x, y):
        inside = x * t if t * x < 1.0 else math.exp(-t * y)
        return inside, y

    def loop(x, y):
        total, count = 0.0, 0.0
        for t in nodes:
            one, other = node(t, x, y)
            total += one
            count += other
        return total, count

    nodes = np.linspace(0.1, 3.0, 37)
    columns = [np.array([0.2, 0.5, 3.0]), np.array([2.0, 1e-3, 5.0])]
    for block in (nodes_module.BLOCK, 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nodes_module, "BLOCK", block)
            for i in range(2):
                found = slopes(lambda x, y, i=i: nodes_module.over_nodes(twin(node), nodes, x, y)[i], columns)
                np.testing.assert_allclose(found, slopes(lambda x, y, i=i: twin(loop)(x, y)[i], columns), rtol=1e-15)


def stepped(x: float) -> float:
    return x * float(math.ceil(x))


def test_a_number_of_steps_is_a_branch_and_no_slope():
    (found,) = slopes(twin(stepped), [np.array([1.2, 2.7, 2.1, np.nan, 2.7])])
    np.testing.assert_array_equal(found, [2.0, 3.0, 3.0, np.nan, 3.0])
