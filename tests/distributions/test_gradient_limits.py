"""Derivatives where a formula has a branch, a boundary, an infinity, or leaves the range of numbers on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba import distributions as D
from klnumba.distributions import kl_divergence_grad, registered_pairs
from klnumba.distributions.gradient import is_count
from tests.reference.distribution_errors import build
from tests.reference.gradients import PARAMETERS, compare


def all_derivatives(gradient):
    return [*gradient.p.values(), *gradient.q.values()]


# --- infinities -------------------------------------------------------------------------------------------------------

NOWHERE_FINITE = [
    (x.p, x.q)
    for x in registered_pairs()
    if x.function.__name__ == "infinite" and {x.p.__name__, x.q.__name__} <= set(PARAMETERS)
]


@pytest.mark.parametrize(("p", "q"), NOWHERE_FINITE, ids=[f"{p.__name__}-{q.__name__}" for p, q in NOWHERE_FINITE])
def test_nan_where_the_divergence_is_infinite_for_all_parameters(p, q):
    first, second = (
        build(p.__name__, PARAMETERS[p.__name__][0]),
        build(q.__name__, np.array(PARAMETERS[q.__name__][:2]).T),
    )
    value, gradient = kl_divergence_grad(first, second)
    np.testing.assert_array_equal(value, [math.inf, math.inf])
    for found, family in ((gradient.p, p), (gradient.q, q)):
        assert list(found) == [name for name in family.parameters if not is_count(family, name)]
    for slope in all_derivatives(gradient):
        np.testing.assert_array_equal(slope, [math.nan, math.nan])


def test_nan_by_vectors_of_probabilities():
    """An infinite divergence of categories from what has no atoms has NaN by each of their numbers, and vectors."""
    p = D.Categorical([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    value, gradient = kl_divergence_grad(p, D.Normal(0.0, [[1.0], [2.0]]))
    np.testing.assert_array_equal(value, np.full((2, 3), math.inf))
    np.testing.assert_array_equal(gradient.p["probs"], np.full((2, 3, 2), math.nan))
    np.testing.assert_array_equal(gradient.q["scale"], np.full((2, 3), math.nan))


def test_no_derivative_by_what_is_finite_at_single_points():
    value, gradient = kl_divergence_grad(D.Delta([0.0, 1.0, 0.5, 3.0]), D.Poisson(2.0))
    np.testing.assert_array_equal(np.isfinite(value), [True, True, False, True])
    np.testing.assert_array_equal(gradient.p["v"], np.full(4, math.nan))
    np.testing.assert_array_equal(gradient.q["rate"], [1.0, 0.5, math.nan, -0.5])
    _, gradient = kl_divergence_grad(D.Delta(3.0), D.Delta([3.0, 4.0]))
    assert np.isnan(all_derivatives(gradient)).all()
    _, gradient = kl_divergence_grad(D.Poisson([0.0, 1.0]), D.Binomial(3, 0.2))
    np.testing.assert_array_equal(gradient.p["rate"], [math.nan, math.nan])
    np.testing.assert_allclose(gradient.q["probs"], [3.75, math.nan], rtol=1e-15)


@pytest.mark.parametrize(
    ("n", "p", "m", "q", "of_p", "of_q"),
    [
        (0, 0.2, 3, 0.25, 0.0, 4.0),
        (3, 0.0, 3, 0.5, math.nan, 6.0),
        (3, 0.0, 5, 0.5, math.nan, 10.0),
        (3, 1.0, 3, 0.5, math.nan, -6.0),
        (3, 1.0, 5, 0.5, math.nan, -2.0),
        (3, 0.5, 3, 0.5, 0.0, 0.0),
        (3, 0.0, 3, 0.0, math.nan, 3.0),
        (3, 1.0, 3, 1.0, math.nan, -3.0),
        (4, 0.5, 3, 0.5, math.nan, math.nan),
    ],
)
def test_binomial_boundaries(n, p, m, q, of_p, of_q):
    _, gradient = kl_divergence_grad(D.Binomial(n, p), D.Binomial(m, q))
    np.testing.assert_allclose([gradient.p["probs"], gradient.q["probs"]], [of_p, of_q], rtol=1e-15)


def test_infinite_log_odds():
    """The derivative is p*(1 - p)*(a - b), which falls to 0."""
    p, q = D.Bernoulli(logits=[math.inf, -math.inf, math.inf]), D.Bernoulli(logits=[math.inf, 2.0, 0.0])
    _, gradient = kl_divergence_grad(p, q)
    np.testing.assert_array_equal(gradient.p["logits"], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(gradient.q["logits"], [0.0, 1.0 / (1.0 + math.exp(-2.0)), -0.5], rtol=1e-15)


# --- what must be equal for the closed form ---------------------------------------------------------------------------


def test_scales_of_logistic_distributions_leave_their_equality():
    """A larger unit of all four parameters changes nothing, which joins the derivatives by them."""
    x = np.array([[0.0, 1.0, 1e-12, -4.0, 30.0, 1e4], [2.0, 2.0, 2.0, 0.5, 1.0, 3.0]])
    _, gradient = kl_divergence_grad(D.Logistic(*x), D.Logistic(0.0, x[1]))
    of_units = x[0] * gradient.p["loc"] + x[1] * (gradient.p["scale"] + gradient.q["scale"])
    np.testing.assert_allclose(of_units, 0.0, atol=4e-16 * np.max(np.abs(x[0])))
    assert (gradient.q["scale"][1:] < gradient.p["scale"][1:]).all()
    assert gradient.p["scale"][0] == gradient.q["scale"][0] == 0.0


def test_counts_of_negative_binomial_distributions_leave_their_equality():
    """Moved together, they multiply the divergence of one count."""
    p, q = D.NegativeBinomial(2.5, [0.3, 0.9, 0.0]), D.NegativeBinomial(2.5, [0.6, 0.2, 0.4])
    value, gradient = kl_divergence_grad(p, q)
    np.testing.assert_allclose(gradient.p["total_count"] + gradient.q["total_count"], value / 2.5, rtol=1e-15)
    same = D.NegativeBinomial(2.5, [0.3, 0.9])
    _, gradient = kl_divergence_grad(same, same)
    for slope in all_derivatives(gradient):
        np.testing.assert_array_equal(slope, 0.0)


# --- branches for single points ---------------------------------------------------------------------------------------


def test_kumaraswamy_of_equal_first_exponents():
    """The closed form there does not hold beside it: the slopes by the exponents are 1/12 and -1/12."""
    _, gradient = kl_divergence_grad(D.Kumaraswamy(2.5, 3.0), D.Kumaraswamy(2.5, 3.5))
    found = [gradient.p["concentration1"], gradient.q["concentration1"]]
    np.testing.assert_allclose(found, [1.0 / 12.0, -1.0 / 12.0], rtol=1e-14)


@pytest.mark.parametrize("eta", [0.0, 1e-200, 1e-17, -1e-14])
def test_continuous_bernoulli_next_to_the_uniform_distribution(eta):
    """By log-odds 0: KL to Laplace changes by the covariance of X and abs(X - m) over the scale."""
    m, scale = 0.3, 2.0
    _, gradient = kl_divergence_grad(D.ContinuousBernoulli(logits=eta), D.Laplace(m, scale))
    of_distance = (1.0 / 3.0 - m / 2.0 + m**3 / 3.0) - 0.5 * (m * m - m + 0.5)
    assert gradient.p["logits"] == pytest.approx(of_distance / scale, rel=1e-13, abs=0.0)


def test_beyond_the_range_of_float32():
    """As where the divergence is infinite."""
    one = np.float32(1.0)
    value, gradient = kl_divergence_grad(D.Normal(one, 2 * one), D.Normal(0 * one, np.float32([1e-30, 1.0])))
    np.testing.assert_array_equal(np.isfinite(value), [False, True])
    for slope in all_derivatives(gradient):
        np.testing.assert_array_equal(np.isfinite(slope), [False, True])
        assert np.isnan(slope[0])


# --- beyond the range on the way --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "by", "expected"),
    [
        (D.Laplace(0.0, 1e-200), D.Laplace(1.5, 2.0), "p.scale", -1e200),
        (D.Cauchy(0.0, 1.0), D.Cauchy(0.0, 1e-200), "q.scale", -1e200),
        (D.Exponential(1.0), D.Gumbel(0.0, 1e-200), "p.rate", -1e200),
        (D.Laplace(0.0, 1.0), D.Laplace(3.0, 1e100), "q.loc", 1e-100 * -math.expm1(-3.0)),
    ],
    ids=repr,
)
def test_extreme_scales(p, q, by, expected):
    _, gradient = kl_divergence_grad(p, q)
    side, name = by.split(".")
    assert getattr(gradient, side)[name] == pytest.approx(expected, rel=1e-14, abs=0.0)


FAR = [
    ("LogNormal", "Chi", (0.0, 6.0, 3.0)),
    ("LogNormal", "Chi", (0.0, 12.0, 3.0)),
    ("LogNormal", "Gamma", (80.0, 1.0, 2.0, 1.0)),
    ("LogNormal", "InverseGamma", (-80.0, 1.0, 2.0, 1.0)),
    ("Weibull", "Chi", (1e20, 1.5, 3.0)),
    ("Weibull", "Gamma", (1.0, 0.03, 2.0, 3.0)),
    ("Weibull", "Gamma", (1e80, 0.3, 2.0, 3.0)),
    ("Gamma", "Chi", (2.0, 1e-60, 3.0)),
    ("Gamma", "Gamma", (1.0, 1e-40, 2.0, 1.0)),
    ("HalfNormal", "Chi", (1e60, 3.0)),
    ("Pareto", "Gamma", (1e60, 3.0, 2.0, 3.0)),
    ("Chi", "Gamma", (3.0, 2.0, 1e60)),
    ("InverseGamma", "InverseGamma", (2.0, 1.0, 3.0, 1e60)),
    ("Lindley", "Gamma", (1e-40, 3.0, 4.0)),
    ("Uniform", "Gamma", (1e30, 2e50, 3.0, 4.0)),
    ("Uniform", "InverseGamma", (1e-20, 2.0, 3.0, 4.0)),
    ("Uniform", "Gamma", (1e-40, 2.0, 3.0, 4.0)),
]


@pytest.mark.part(2)
@pytest.mark.parametrize(("p", "q", "case"), FAR)
def test_where_the_divergence_is_so_much_larger_than_its_derivative(p, q, case):
    """By the shape of q it is a difference of two mean logarithms, whatever the divergence."""
    found = compare(p, q, [case])
    assert (found.count, found.lost) == (len(case), 0)
    assert found.largest <= 3e-16  # 1.2e-16 seen


def test_by_a_shape_where_the_ratio_of_the_means_is_beyond_the_range():
    """digamma(shape) - log(rate) - E log X."""
    _, gradient = kl_divergence_grad(D.LogNormal(690.0, 6.0), D.Gamma(2.0, 1.0))
    assert gradient.q["concentration"] == pytest.approx(1.0 - 0.5772156649015329 - 690.0, rel=1e-15)
    _, gradient = kl_divergence_grad(D.Gamma(1.0, 1e-200), D.Gamma(1e-110, 1.0))
    exact = mp.digamma(mpf("1e-110")) - (mp.digamma(1) + 200 * mp.log(10))
    assert gradient.q["concentration"] == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize(("a", "b"), [(300.0, 0.0), (600.0, 599.0), (-600.0, 30.0), (0.0, 1000.0), (12.0, 12.0 + 1e-9)])
def test_tiny_derivatives_by_log_odds(a, b):
    """p*(1 - p)*(a - b), and q - p; of the geometric distribution exp(-a)*(s(a) - s(b)), and q/p - 1."""
    with mp.workdps(700):
        x, y = mpf(a), mpf(b)
        p, q = (1 / (1 + mp.exp(-t)) for t in (x, y))
        draws = [p * (1 - p) * (x - y), q - p]
        waits = [mp.exp(-x) * mp.log((1 + mp.exp(x)) / (1 + mp.exp(y))), q / p - 1]
        for family, expected in ((D.Bernoulli, draws), (D.Geometric, waits)):
            _, gradient = kl_divergence_grad(family(logits=a), family(logits=b))
            for found, exact in zip(all_derivatives(gradient), expected, strict=True):
                assert abs(mpf(float(found)) - exact) <= mpf("2e-16") * abs(exact)


@pytest.mark.parametrize(("q", "others"), [("HalfNormal", (0.5,)), ("Normal", (0.5, 0.3))])
@pytest.mark.parametrize("probs", [0.1829347914843733, 0.19, 0.22, 0.78])
def test_continuous_bernoulli_to_the_end_of_its_series(probs, q, others):
    assert compare("ContinuousBernoulli", q, [(probs, *others)]).largest < 1e-13


def test_tiny_concentrations_have_slopes_or_none():
    """As the page says: NaN by p's where all are below 1e-150, and nowhere another number."""
    exact = np.array([-1.962962962962963, 0.4537037037037037, 0.6333333333333333, -2.5333333333333333])
    for u in (1e-119, 1e-125, 1e-150, 1e-200, 1e-300):
        beta = kl_divergence_grad(D.Beta(u, 2.0 * u), D.Beta(3.0 * u, u / 3.0))[1]
        dirichlet = kl_divergence_grad(D.Dirichlet([u, 2.0 * u]), D.Dirichlet([3.0 * u, u / 3.0]))[1]
        for slopes in (np.array(all_derivatives(beta)), np.ravel(all_derivatives(dirichlet))):
            known = ~np.isnan(slopes)
            assert known.all() or u < 1e-150
            np.testing.assert_allclose(slopes[known] * u, exact[known], rtol=1e-13)
        assert np.isfinite(list(beta.q.values())).all()


@pytest.mark.parametrize("slope", [1e1, 1e3, 1e5])
def test_slopes_of_normals_by_steep_triangles_lose_what_the_condition_takes(slope):
    """By the mean of p it is q's precision times the difference of the means."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = np.tril(slope * rng.normal(size=(3, 3)), -1) + np.diag(rng.uniform(0.5, 2.0, 3))
        off = q @ rng.normal(size=3)
        p = D.MultivariateNormal(off, scale_tril=np.eye(3))
        found = kl_divergence_grad(p, D.MultivariateNormal(np.zeros(3), scale_tril=q))[1].p["loc"]
        with mp.workdps(100):
            inverse = mp.matrix(q.tolist()) ** -1
            exact = np.array([float(x) for x in inverse.T * (inverse * mp.matrix(off.tolist()))])
        lost = np.abs(found - exact).max() / np.abs(exact).max()
        assert lost <= 1e-16 * np.linalg.cond(q) + 1e-15


# Distances in deviations of p, and scales of q in them.
FAR = [(-15.2, 1e-40), (30.0, 1e-100), (10.0, 1e-32), (9.5, 1e-110), (1e10, 1e-30), (0.0, 1e-200), (-3.0, 1e200)]


@pytest.mark.parametrize(("distance", "scale"), FAR)
def test_a_normal_distribution_far_from_a_narrow_laplace(distance, scale):
    """By its scale minus its inverse: what the density at loc_q adds is next to nothing, or all there is."""
    _, gradient = kl_divergence_grad(D.Normal(distance, 1.0), D.Laplace(0.0, scale))
    with mp.workdps(300):
        y, s = mpf(distance), mpf(scale)
        density, inside = mp.sqrt(2 / mp.pi) * mp.exp(-y * y / 2), mp.erf(y / mp.sqrt(2))
        expected = [inside / s, density / s - 1, -inside / s, (1 - (density + y * inside) / s) / s]
    for found, true in zip(all_derivatives(gradient), expected, strict=True):
        if abs(true) > np.finfo(np.float64).max:
            assert np.isnan(found)
        else:
            assert abs(found - true) <= 4e-16 * abs(true)
