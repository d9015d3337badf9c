"""Numbers that move: functions of them against derivatives by mpmath, and where a batch stands on a branch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba.duals import twofold as tf
from klnumba.duals.dual import Dual, largest, least
from klnumba.duals.nodes import over_nodes
from klnumba.duals.number import Moving, Twofold, mapped, move_of, must_rest, scaled, still, where
from klnumba.duals.twin import slopes, slopes_along, twin
from klnumba.formulas import elementary

POINTS = [1e-3, 0.3, 1.5, 3.3]
FAR = [*POINTS, 20.0, 70.0]
FUNCTIONS = {
    "exp": (mp.exp, [-20.0, *FAR]),
    "expm1": (mp.expm1, [-20.0, *FAR]),
    "log1p": (mp.log1p, FAR),
    "log": (mp.log, FAR),
    "sqrt": (mp.sqrt, FAR),
    "erf": (mp.erf, [-1.0, *POINTS]),
    "scaled_erfc": (lambda x: mp.exp(x * x) * mp.erfc(x), POINTS),
    "log_bessel": (lambda x: mp.log(mp.besseli(0, x)), FAR),
    "entire_exponential_integral": (lambda x: mp.e1(x) + mp.log(x) + mp.euler, FAR),
    "scaled_exponential_integral": (lambda x: mp.exp(x) * mp.e1(x), FAR),
    "log_gamma": (mp.loggamma, FAR),
    "digamma": (mp.digamma, FAR),
    "trigamma": (lambda x: mp.psi(1, x), FAR),
    "tetragamma": (lambda x: mp.psi(2, x), FAR),
    "digamma_less_log": (lambda x: mp.digamma(x) - mp.log(x) + 1 / (2 * x), FAR),
    "trigamma_less_powers": (lambda x: mp.psi(1, x) - 1 / x - 1 / (2 * x * x), FAR),
    "remainder_of_stirling": (
        lambda x: mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2,
        FAR,
    ),
}


def moving(numbers, move=2.0):
    x = np.array(numbers, float)
    return Moving(Twofold(x), Twofold(np.broadcast_to(np.array(move, float), x.shape).copy()))


def exactly(x, i):
    return mpf(float(x.hi[i])) + mpf(float(np.broadcast_to(x.lo, x.hi.shape)[i]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_moves_of_functions_have_28_digits(name):
    truth, numbers = FUNCTIONS[name]
    found = getattr(tf, name)(moving(numbers))
    np.testing.assert_array_equal(found.hi, getattr(tf, name)(Twofold(np.array(numbers))).hi)
    with mp.workdps(70):
        for i, x in enumerate(numbers):
            expected = 2 * mp.diff(truth, mpf(x), h=mpf(10) ** -22)
            assert abs(exactly(found.move, i) - expected) <= mpf(10) ** -28 * abs(expected), x


def test_moves_of_functions_of_two_numbers_and_of_several_results():
    x, y = moving([0.3, 2.0], 1.0), moving([0.7, 1.9], 3.0)
    quotient, turn = tf.log_of_quotient(x, y), tf.angle(y, x)
    sine, cosine = tf.sin_and_cos(x)
    ratio, gap, slope = tf.bessel_ratio(x)
    a, b = x.hi, y.hi
    np.testing.assert_allclose(quotient.move.hi, 1.0 / a - 3.0 / b, rtol=1e-15)
    np.testing.assert_allclose(turn.move.hi, (3.0 * a - b) / (a * a + b * b), rtol=1e-14)
    np.testing.assert_allclose(sine.move.hi, np.cos(a), rtol=1e-15)
    np.testing.assert_allclose(cosine.move.hi, -np.sin(a), rtol=1e-15)
    np.testing.assert_array_equal(ratio.move.hi, slope.hi)
    np.testing.assert_array_equal(gap.move.hi, -slope.hi)
    with mp.workdps(40):
        bends = [mp.diff(lambda t: mp.besseli(1, t) / mp.besseli(0, t), mpf(v), 2) for v in a]
    np.testing.assert_allclose(slope.move.hi, [float(v) for v in bends], rtol=1e-12)


@pytest.mark.parametrize("x", [0.0, 1e-8, 9.99e-5, 1.01e-4, 1e-2, 70.0])
def test_the_curvature_of_the_ratio_of_bessel_functions(x):
    with np.errstate(all="ignore"):
        found = tf.bessel_ratio(moving([x], 1.0))[2].move
    with mp.workdps(60):
        true = mp.diff(lambda t: mp.besseli(1, t) / mp.besseli(0, t), mpf(x), 2, h=mpf(10) ** -15)
        assert abs(exactly(found, 0) - true) <= mpf(10) ** -20 * abs(true) + mpf(10) ** -29


def test_arithmetic():
    x, y, fixed = moving([3.0, -0.5], [1.0, 2.0]), moving([2.0, 7.0], [0.5, 0.0]), Twofold(np.array([5.0, 11.0]))
    a, b, c, u, v = x.hi, y.hi, fixed.hi, x.move.hi, y.move.hi
    for found, value, move in (
        (x + y, a + b, u + v),
        (fixed - x, c - a, -u),
        (x - fixed, a - c, u),
        (x * y, a * b, u * b + a * v),
        (fixed * x, c * a, c * u),
        (2.0 * x, 2.0 * a, 2.0 * u),
        (x / y, a / b, (u - a / b * v) / b),
        (fixed / x, c / a, -c / a / a * u),
        (1.0 - x, 1.0 - a, -u),
        (scaled(x, 3), 8.0 * a, 8.0 * u),
        (mapped(lambda part: part[::-1], x), a[::-1], u[::-1]),
        (where(np.array([True, False]), x, fixed), np.array([a[0], c[1]]), np.array([u[0], 0.0])),
    ):
        np.testing.assert_allclose(found.hi, value, rtol=1e-15)
        np.testing.assert_allclose(np.broadcast_to(found.move.hi, (2,)), move, rtol=1e-15)
        assert not isinstance(still(found), Moving)


def test_what_does_not_move_adds_nothing_to_a_product_with_an_infinite_number():
    with np.errstate(all="ignore"):
        found = moving([math.inf], 0.0) * moving([2.0], 0.0)
        assert move_of(found).hi[0] == 0.0
        assert move_of(moving([2.0], 0.0) / moving([0.0], 0.0)).hi[0] == 0.0


def dual(value, move):
    return Dual(moving(value, move), Twofold(np.ones((1, len(value)))))


def test_equal_numbers_that_part_are_ordered_by_their_moves():
    one, faster, same = dual([1.0, 2.0], 1.0), dual([1.0, 2.0], 3.0), dual([1.0, 2.0], 1.0)
    assert one < faster
    assert faster >= one
    assert one != faster
    assert one == same
    assert not one < same
    assert largest(one, faster).value.move.hi[0] == 3.0
    assert least(one, faster).value.move.hi[0] == 1.0


def test_the_larger_of_0_and_a_number():
    """That is the number where rounding made it negative, or it is none; of plain ones it is 0."""
    found = largest(dual([-1e-30, -1.0, math.nan, 2.0], 1.0), 0.0)
    np.testing.assert_array_equal(found.value.hi, [-1e-30, 0.0, math.nan, 2.0])
    np.testing.assert_array_equal(found.slopes.hi, [[1.0, 0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(found.value.move.hi, [1.0, 0.0, 1.0, 1.0])
    resting = Dual(Twofold(np.array([-1e-30])), Twofold(np.ones((1, 1))))
    assert largest(0.0, resting).value.hi[0] == 0.0


def test_the_absolute_value_of_a_zero_that_moves():
    found = abs(dual([0.0, 0.0, 0.0], [1.0, -1.0, 0.0]))
    np.testing.assert_array_equal(found.slopes.hi, [[1.0, -1.0, 0.0]])
    np.testing.assert_array_equal(found.value.move.hi, [1.0, 1.0, 0.0])


def test_sums_over_nodes_move():
    x = dual([0.5, 2.0], [1.0, 3.0])
    nodes = np.array([1.0, 2.0, 4.0])
    (total,) = over_nodes(lambda t, y: (twin(elementary.exp)(t * y),), nodes, x)
    a = np.array([0.5, 2.0])[:, None]
    expected = (nodes**2 * np.exp(nodes * a)).sum(1)
    np.testing.assert_allclose(move_of(total.slopes).hi[0], expected * [1.0, 3.0], rtol=1e-14)
    np.testing.assert_allclose(move_of(total.value).hi, (nodes * np.exp(nodes * a)).sum(1) * [1.0, 3.0], rtol=1e-14)


def test_numbers_that_must_rest():
    must_rest("a", Twofold(1.0), moving([1.0], 0.0))
    with pytest.raises(NotImplementedError, match="single values of a, which moves"):
        must_rest("a", moving([1.0, 2.0], [0.0, 1.0]))


def branches(x, y):
    """With a branch for what is equal, which no number on the way there takes."""
    if x == y:
        return 0.0
    return (x - y) * (x - y) * x


def test_a_branch_for_equal_numbers_is_taken_by_those_that_stay_equal():
    x = np.array([1.0, 2.0, 3.0, 2.0])
    y = np.array([1.0, 2.0, 1.0, 2.0])
    moves = np.array([[1.0, 1.0, 1.0, 2.0], [0.0, 1.0, 0.0, -1.0]])
    found = slopes_along(branches, [x, y], moves)
    d, e = x - y, moves[0] - moves[1]  # by x: 2*d*x + d*d, by y: -2*d*x
    np.testing.assert_array_equal(found[0], 2 * e * x + 2 * d * moves[0] + 2 * d * e)
    np.testing.assert_array_equal(found[1], -2 * e * x - 2 * d * moves[0])
    np.testing.assert_array_equal(slopes(branches, [x, y])[:, :2], 0.0)
