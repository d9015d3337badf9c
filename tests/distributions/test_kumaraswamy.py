"""The integrals over a Kumaraswamy variable where q falls far more slowly than p, or exponents are far apart."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba.distributions import Beta, Kumaraswamy, Laplace, kl_divergence_grad
from tests.reference.further_distributions import kumaraswamy, kumaraswamy_beta

REACHED = 1e-13  # relative; 4e-14 at most
SIZE = 500
ONE = np.ones(SIZE)
SLOW_TAILS = [
    (Kumaraswamy, (27.0, 0.034, 0.047, 0.036)),
    (Kumaraswamy, (10.0, 0.05, 0.05, 0.05)),
    (Kumaraswamy, (3.0, 0.05, 0.03, 0.06)),
    (Kumaraswamy, (5.0, 1e-3, 1e-3, 1.001e-3)),
    (Kumaraswamy, (1.0, 1e-5, 6e-5, 1.5e-5)),
    (Beta, (1.0, 3.16e-3, 4.11e-3, 1.7e-3)),
    (Beta, (3.0, 9.13e-6, 6.18e-5, 1.32e-5)),
]


def decades(rng):
    return 10.0 ** rng.uniform(-5.0, 3.0, SIZE)


def beside(rng, x):
    """Half of them within a percent, most others within two decades."""
    return x * np.where(
        rng.random(SIZE) < 0.5, 1.0 + 10.0 ** rng.uniform(-8.0, -2.0, SIZE), 10.0 ** rng.normal(0, 1, SIZE)
    )


def anywhere(rng, x):
    return decades(rng)


@pytest.mark.parametrize("second", [beside, anywhere])
def test_what_beta_says_where_it_is_the_same(second):
    rng = np.random.default_rng(5)
    x = decades(rng)
    y, z = second(rng, x), second(rng, ONE)
    low, high = Kumaraswamy(ONE, x), Kumaraswamy(x, ONE)
    of_low, of_high = Beta(ONE, x), Beta(x, ONE)
    for p, q, of_p, of_q in (
        (low, Beta(z, y), of_low, Beta(z, y)),
        (high, Beta(y, z), of_high, Beta(y, z)),
        (low, Kumaraswamy(z, ONE), of_low, Beta(z, ONE)),
        (high, Kumaraswamy(ONE, z), of_high, Beta(ONE, z)),
    ):
        np.testing.assert_allclose(kl.kl_divergence(p, q), kl.kl_divergence(of_p, of_q), rtol=REACHED)


@pytest.mark.part(2)
@pytest.mark.parametrize(("family", "numbers"), SLOW_TAILS)
def test_slow_tails_of_q(family, numbers):
    a, b, c, d = numbers
    truth = kumaraswamy_beta if family is Beta else kumaraswamy
    exact = float(truth(*map(mpf, numbers)))
    assert kl.kl_divergence(Kumaraswamy(a, b), family(c, d)) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize(("family", "numbers"), SLOW_TAILS[::5])
def test_derivatives_with_slow_tails(family, numbers):
    truth = kumaraswamy_beta if family is Beta else kumaraswamy
    _, gradient = kl_divergence_grad(Kumaraswamy(*numbers[:2]), family(*numbers[2:]))
    with mp.workdps(60):
        change = mpf(10) ** -12
        for i, slope in enumerate([*gradient.p.values(), *gradient.q.values()]):
            sides = [[mpf(x) * (1 + sign * change * (i == j)) for j, x in enumerate(numbers)] for sign in (1, -1)]
            exact = (truth(*sides[0]) - truth(*sides[1])) / (2 * change * mpf(numbers[i]))
            assert slope == pytest.approx(float(exact), rel=1e-14)


def test_derivatives_by_what_beta_has_too():
    """All but those by the parameter that is 1: there the two families go different ways."""
    b, c, d = np.array([[3.16e-3, 9.13e-6, 0.3], [4.11e-3, 6.18e-5, 30.0], [1.7e-3, 1.32e-5, 2.0]])
    _, found = kl_divergence_grad(Kumaraswamy(1.0, b), Beta(c, d))
    _, exact = kl_divergence_grad(Beta(1.0, b), Beta(c, d))
    np.testing.assert_allclose(found.p["concentration0"], exact.p["concentration0"], rtol=1e-13)
    for name, slope in exact.q.items():
        np.testing.assert_allclose(found.q[name], slope, rtol=1e-13)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Kumaraswamy(2.84e212, 1.99e-32), Beta(1.35, 0.94)),
        (Kumaraswamy(2.0, 3.0), Beta(1e-31, 0.94)),
        (Kumaraswamy(2.4e56, 5.7e-5), Kumaraswamy(6.8e-7, 1.2e-4)),
        (Kumaraswamy([2.0, 2.0], 5.7e-32), Kumaraswamy(3.0, 1.2e-4)),
    ],
)
def test_exponents_out_of_range_have_no_number(p, q):
    with pytest.warns(RuntimeWarning, match="NaN"):
        value = kl.kl_divergence(p, q)
    with pytest.warns(RuntimeWarning, match="NaN"):
        same, gradient = kl_divergence_grad(p, q)
    assert np.isnan(value).all()
    assert np.isnan(same).all()
    assert np.isnan([*gradient.p.values(), *gradient.q.values()]).all()


def test_nan_that_was_given_is_no_surprise():
    nothing = Kumaraswamy(math.nan, 3.0, validate_args=False)
    assert math.isnan(kl.kl_divergence(nothing, Beta(2.0, 3.0)))


FAR_OUT = [
    (Beta, (0.35845498533221676, 2.8706185689643756e-07, 0.5219311880065112, 2.870618395444913e-07)),
    (Beta, (1.33e-8, 3.465e-3, 2.281e-6, 9.064e-5)),
    (Beta, (0.00161, 6.21, 0.00066, 9.9997e10)),
    (Beta, (1636321.4765400558, 2.7057720753600078e-08, 994768.4443589421, 2.7056151045073276e-08)),
    (Beta, (16564.471060221473, 9904279143.516195, 245966.0485436867, 350.58825200355903)),
    (Beta, (0.23603621943100636, 94.19234649255262, 0.13271991035120426, 997260.6683258726)),
    (Beta, (2.08903011116539e-10, 1.261854860103223e-05, 3.0635097283445236e-10, 7.40992595254211e-06)),
    (Beta, (6.929060497213675e-09, 117776.82368234012, 5.654317430912404e-10, 100019739241.98555)),
    (Kumaraswamy, (16.71531526840245, 9.374223411858587e-06, 225074250.89141086, 2.586530600973692e-10)),
    (Kumaraswamy, (49490687.315767884, 370797734502229.3, 49800103.34601251, 375661000817461.7)),
]


@pytest.mark.part(2)
@pytest.mark.parametrize(("family", "numbers"), FAR_OUT)
def test_exponents_many_decades_apart(family, numbers):
    truth = kumaraswamy_beta if family is Beta else kumaraswamy
    with mp.workdps(80):
        exact = float(truth(*map(mpf, numbers)))
    assert kl.kl_divergence(Kumaraswamy(*numbers[:2]), family(*numbers[2:])) == pytest.approx(exact, rel=2e-14, abs=0.0)


def test_only_the_ratio_of_first_exponents_counts():
    near = kl.kl_divergence(Kumaraswamy(2.0, 3.0), Kumaraswamy(5.0, 0.7))
    far = kl.kl_divergence(Kumaraswamy(2.0 * 2.0**300, 3.0), Kumaraswamy(5.0 * 2.0**300, 0.7))
    assert far == near


def test_nan_to_laplace_is_told_of():
    with pytest.warns(RuntimeWarning, match=r"KL.Kumaraswamy .. Laplace.: 1 of 2 are NaN"):
        found = kl.kl_divergence(Kumaraswamy([1e20, 2.0], [1e300, 3.0]), Laplace(1e-300, 1e-30))
    assert np.isnan(found).tolist() == [True, False]


def test_what_is_told_of_nan():
    """Every number keeps its rule: the sum of such may overflow, and what breaks a rule is not called extreme."""
    with np.errstate(all="raise"), pytest.warns(RuntimeWarning, match="1 of 1 are NaN"):
        assert np.isnan(kl.kl_divergence(Kumaraswamy(1e308, 1e308), Kumaraswamy(9e307, 3.0)))
    with warnings.catch_warnings(action="error"):
        found = kl.kl_divergence(Kumaraswamy([2.0, -3.0], 2.0, validate_args=False), Kumaraswamy(2.5, 3.0))
    assert np.isnan(found).tolist() == [False, True]
