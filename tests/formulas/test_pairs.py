"""Arithmetic of pairs as compiled functions of arrays: against exact fractions, and beyond the range of numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from klnumba.formulas import pairs
from klnumba.kernels.universal import universal

EXACT = {
    "total": lambda a, b, c: a + b,
    "difference": lambda a, b, c: a - b,
    "product": lambda a, b, c: a * b,
    "quotient": lambda a, b, c: a / b,
    "product_unless_zero": lambda a, b, c: a * b,
    "quotient_unless_zero": lambda a, b, c: a / b,
    "product_plus": lambda a, b, c: a * b + c,
}
EDGES = [0.0, 1.0, -3.0, 5e-324, -1e-300, 1e300, -1.7e308, math.inf, -math.inf, math.nan]


def arguments(name, numbers):
    """As many numbers and low parts as a formula takes."""
    return [part for pair in numbers[: 3 if name == "product_plus" else 2] for part in pair]


@pytest.mark.parametrize("name", EXACT)
def test_against_fractions(name):
    """The error found is 0.4 of 2**-104 of the terms."""
    rng = np.random.default_rng(0)
    high = rng.normal(size=(3, 400)) * 2.0 ** rng.integers(-60, 60, (3, 400))
    high[1, ::4] = -high[0, ::4] * (1.0 + 1e-9)  # where a sum cancels
    low = high * rng.uniform(-0.5, 0.5, high.shape) * 2.0**-53
    found = universal(getattr(pairs, name))(*arguments(name, list(zip(high, low, strict=True))))
    for k in range(400):
        a, b, c = (Fraction(x) + Fraction(y) for x, y in zip(high[:, k], low[:, k], strict=True))
        error = Fraction(found[0][k]) + Fraction(found[1][k]) - EXACT[name](a, b, c)
        size = abs(EXACT[name](a, b, c)) + (abs(a * b) + abs(c) if name == "product_plus" else 0)
        assert abs(error) <= size * Fraction(1, 2**104)
        assert found[0][k] + found[1][k] == found[0][k]


@pytest.mark.parametrize("name", EXACT)
def test_numbers_without_low_parts_are_those_of_float64(name):
    """Of what is infinite, or NaN, the low part is 0."""
    numbers = np.meshgrid(EDGES, EDGES, EDGES)
    with np.errstate(all="ignore"):
        high, low = universal(getattr(pairs, name))(*arguments(name, [(x, 0.0) for x in numbers]))
        expected = EXACT[name](*numbers)
        if name == "product_plus":  # which is rounded once
            product = universal(pairs.product)(numbers[0], 0.0, numbers[1], 0.0)
            expected, _ = universal(pairs.total)(*product, numbers[2], 0.0)
    if name.endswith("unless_zero"):
        expected[numbers[0] == 0.0] = 0.0
    np.testing.assert_array_equal(high, expected)
    assert (low[~np.isfinite(high)] == 0.0).all()
    assert np.isfinite(low).all()


def test_arrays_broadcast_whatever_their_strides():
    function = universal(pairs.product)
    table = np.arange(24.0).reshape(4, 6)
    row = np.arange(6.0)[::-1]
    for x, y in ((table, row), (table[::2, ::3], 2.0), (table.T, row[:, None]), (np.float64(3.0), table[1:1])):
        high, low = function(x, 0.0, y, 0.0)
        np.testing.assert_array_equal(high, x * y)
        np.testing.assert_array_equal(low, np.zeros(np.shape(x * y)))
