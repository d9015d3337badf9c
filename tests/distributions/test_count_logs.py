"""Masses of large counts and densities of large shapes keep their digits, and so do sums and integrals of them."""

import warnings

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import Beta, Binomial, Chi, Chi2, Gamma, InverseGamma, NegativeBinomial, Poisson
from klnumba.distributions.count_logs import log_mass

stats = pytest.importorskip("scipy.stats")

LIMIT = 1e-14  # of 1 + |log|; 2.3e-15 is the largest found in 12,000
DIGITS = 50


def poisson(k, mean):
    return k * mpmath.log(mean) - mean - mpmath.loggamma(k + 1)


def binom(k, n, p):
    ways = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
    return ways + k * mpmath.log(p) + (n - k) * mpmath.log(1 - p)


def nbinom(k, n, p):
    ways = mpmath.loggamma(n + k) - mpmath.loggamma(k + 1) - mpmath.loggamma(n)
    return ways + n * mpmath.log(p) + k * mpmath.log(1 - p)


def shares(rng):
    """Near 0 and near 1 alike."""
    small = 10.0 ** rng.uniform(-5, -0.3)
    return small if rng.random() < 0.5 else 1.0 - small


PARAMETERS = {
    poisson: lambda rng: (10.0 ** rng.uniform(-3, 12),),
    binom: lambda rng: (np.floor(10.0 ** rng.uniform(0.5, 12)), shares(rng)),
    nbinom: lambda rng: (10.0 ** rng.uniform(-6, 9), shares(rng)),
}


@pytest.mark.parametrize("family", PARAMETERS, ids=lambda one: one.__name__)
def test_logarithms_of_masses(family):
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(300):
        parameters = PARAMETERS[family](rng)
        frozen = getattr(stats, family.__name__)(*parameters)
        low, high = frozen.support()
        k = np.floor(frozen.mean() + frozen.std() * rng.normal() * rng.choice([1.0, 5.0, 20.0]))
        if low < k < high:
            with mpmath.workdps(DIGITS):
                truth = family(*(mpmath.mpf(float(x)) for x in (k, *parameters)))
                assert abs(log_mass(frozen)(k) - truth) <= LIMIT * (1 + abs(truth)), (k, parameters)
            seen += 1
    assert seen > 150


@pytest.mark.parametrize(("family", "parameters"), [
    ("poisson", (3.0,)), ("poisson", (0.0,)), ("poisson", (3.0, 2)), ("binom", (5, 0.3)), ("binom", (5, 0.0)),
    ("binom", (5, 1.0)), ("nbinom", (2.5, 0.3)), ("nbinom", (2.5, 1.0)),
])  # fmt: skip
def test_where_there_is_no_mass_and_at_the_ends(family, parameters):
    frozen = getattr(stats, family)(*parameters)
    k = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(log_mass(frozen)(k), frozen.logpmf(k), rtol=1e-13)


def test_other_families_keep_their_own():
    assert log_mass(stats.geom(0.3)) is None


LARGE = [(Poisson, (rate,)) for rate in (1e3, 1e6, 1e8, 1e10)]
LARGE += [(Binomial, (n, 0.3)) for n in (1e4, 1e8, 1e10)] + [(NegativeBinomial, (n, 0.3)) for n in (10.0, 1e4, 1e8)]


@pytest.mark.part(2)
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
@pytest.mark.parametrize(("family", "parameters"), LARGE, ids=lambda x: getattr(x, "__name__", str(x)))
def test_sums_over_large_counts(family, parameters, delta):
    """Within 1e-8 of the closed form, and within the estimate, which says so without a warning."""
    *before, last = parameters
    p, q = family(*parameters), family(*before, last * (1.0 + delta))
    closed = float(kl.kl_divergence(p, q))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, error = kl.kl_divergence(p, q, method="sum", return_error=True)
    assert abs(value - closed) <= min(1e-8 * closed, error + 1e-13 * closed)


def test_a_sum_between_families_of_large_counts():
    p, q = Binomial(1e8, 0.3), Poisson(3.0001e7)
    closed, value = (float(kl.kl_divergence(p, q, method=method)) for method in ("closed", "sum"))
    assert value == pytest.approx(closed, rel=1e-10)


@pytest.mark.part(2)
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
@pytest.mark.parametrize("shape", [2.0, 1e4, 1e8, 1e10])
@pytest.mark.parametrize(
    ("family", "rest"), [(Gamma, (1.0,)), (InverseGamma, (1.0,)), (Chi, ()), (Chi2, ()), (Beta, (3.0,))]
)
def test_integrals_of_large_shapes(family, rest, shape, delta):
    rest = (rest[0] * shape,) if family is Beta else rest
    p, q = family(shape, *rest), family(shape * (1.0 + delta), *rest)
    closed = float(kl.kl_divergence(p, q))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert abs(value - closed) <= min(1e-8 * closed, error + 1e-13 * closed)
