"""Directions: the von Mises-Fisher distribution and the uniform one on the sphere, beyond their pairs."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba.distributions import SphericalUniform, VonMises, VonMisesFisher, pairwise_kl

CONCENTRATIONS = [0.0, 1e-9, 0.3, 5.0, 63.9, 64.1, 1e3, 1e8]


def unit(*numbers):
    return np.asarray(numbers) / np.linalg.norm(numbers)


@pytest.mark.parametrize("a", CONCENTRATIONS)
@pytest.mark.parametrize("b", CONCENTRATIONS)
def test_on_the_circle_it_is_von_mises(a, b):
    p, q = (VonMisesFisher([math.cos(t), math.sin(t)], c) for t, c in ((0.4, a), (2.1, b)))
    expected = kl.kl_divergence(VonMises(0.4, a), VonMises(2.1, b))
    assert kl.kl_divergence(p, q) == pytest.approx(expected, rel=1e-13)
    assert p.entropy() == pytest.approx(VonMises(0.4, a).entropy(), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("size", [2, 3, 7, 64])
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_against_the_uniform_distribution(size, concentration):
    """KL to it is what the entropy lacks, and from it the remainder at 0."""
    p, q = VonMisesFisher(np.eye(size)[0], concentration), SphericalUniform(size)
    found = kl.kl_divergence(p, q)
    assert found == pytest.approx(q.entropy() - p.entropy(), rel=1e-12, abs=1e-13)
    assert found == kl.kl_divergence(p, VonMisesFisher(np.eye(size)[1], 0.0))
    with mp.workdps(60):
        order, x = mpf(size) / 2 - 1, mpf(concentration)
        if concentration < 1e4:
            back = mp.log(mp.hyp0f1(order + 1, x * x / 4))
            assert kl.kl_divergence(q, p) == pytest.approx(float(back), rel=1e-13)


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("concentration", [0.01, 2.0, 40.0, 300.0])
def test_moments_and_entropy_against_integrals(size, concentration):
    """Of the cosine to the mean direction, whose density is (1 - t**2)**((size - 3)/2)*exp(concentration*t)."""
    with mp.workdps(30):

        def integral(f):
            shape = mpf(size - 3) / 2
            ends = [-1, 1 - mpf(20) / max(concentration, 20), 1]
            return mp.quad(lambda t: f(t) * (1 - t * t) ** shape * mp.exp(concentration * (t - 1)), ends)

        mass = integral(lambda t: 1)
        mean = integral(lambda t: t) / mass
        square = integral(lambda t: t * t) / mass
        sphere = 2 * mp.pi ** (mpf(size - 1) / 2) / mp.gamma(mpf(size - 1) / 2)
        entropy = mp.log(mass * sphere) + concentration - concentration * mean
    found = VonMisesFisher(np.eye(size)[0], concentration)
    assert found.mean[0] == pytest.approx(float(mean), rel=1e-12)
    assert found.variance[0] == pytest.approx(float(square - mean**2), rel=1e-11)
    np.testing.assert_allclose(found.variance[1:], float((1 - square) / (size - 1)), rtol=1e-11)
    np.testing.assert_array_equal(found.mean[1:], 0.0)
    assert found.entropy() == pytest.approx(float(entropy), rel=1e-12, abs=1e-12)


def test_only_the_direction_of_a_vector_counts():
    m, n = unit(1.0, 2.0, -2.0), unit(3.0, 0.0, 1.0)
    p, q = VonMisesFisher(m * (1 + 3e-6), 4.0), VonMisesFisher(n * (1 - 5e-6), 2.0)
    expected = kl.kl_divergence(VonMisesFisher(m, 4.0), VonMisesFisher(n, 2.0))
    assert kl.kl_divergence(p, q) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(p.mean, VonMisesFisher(m, 4.0).mean, rtol=1e-15)
    longer = kl.kl_divergence(VonMisesFisher(m, 4.0), VonMisesFisher(m * (1 + 1e-8), 4.0))
    assert 0.0 <= longer < 1e-30


@pytest.mark.parametrize("concentration", [1e-300, 1e-150, 1e150, 1e300])
def test_extremes_are_finite(concentration):
    p, q = (VonMisesFisher(unit(*v), concentration) for v in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.001]))
    for one, other in ((p, q), (p, SphericalUniform(3)), (SphericalUniform(3), q)):
        assert 0.0 <= kl.kl_divergence(one, other) < math.inf
    assert kl.kl_divergence(p, p) == 0.0
    assert np.isfinite(p.entropy())


def test_many_dimensions():
    rng = np.random.default_rng(0)
    m, n = (unit(*rng.normal(size=5_000)) for _ in range(2))
    found = kl.kl_divergence(VonMisesFisher(m, 3_000.0), VonMisesFisher(n, 2_000.0))
    with mp.workdps(60):
        order, a, b = mpf(2_499), mpf(3_000), mpf(2_000)
        ratio = mp.besseli(order + 1, a) / mp.besseli(order, a)
        shift = mp.log(mp.besseli(order, b) / mp.besseli(order, a)) - order * mp.log(b / a)
        cosine = mp.fsum(mpf(x) * mpf(y) for x, y in zip(m.tolist(), n.tolist(), strict=True))
        assert found == pytest.approx(float(shift + (a - b * cosine) * ratio), rel=1e-12)


def test_batches_and_sequences():
    table = [VonMisesFisher(unit(1.0, i, 2.0), float(i)) for i in range(3)]
    rows = pairwise_kl(table)
    assert rows.shape == (3, 3)
    assert (np.diag(rows) == 0.0).all()
    assert rows[1, 2] == kl.kl_divergence(table[1], table[2])
    uniform = [SphericalUniform(3), SphericalUniform(3)]
    assert pairwise_kl(uniform).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert pairwise_kl(table, uniform).shape == (3, 2)
    batch = VonMisesFisher([[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0], [3.0]])
    assert batch.batch_shape == (3, 2)
    assert batch.event_shape == (2,)
    assert batch.mean.shape == batch.variance.shape == (3, 2, 2)
    assert kl.kl_divergence(batch, SphericalUniform(2)).shape == (3, 2)


def test_refusals():
    with pytest.raises(ValueError, match=r"VonMisesFisher: mean_direction must be a vector of length 1, but mean_dir"):
        VonMisesFisher([[1.0, 0.0], [1.0, 1.0]], 1.0)
    with pytest.raises(ValueError, match="mean_direction must be a finite number"):
        VonMisesFisher([np.nan, 0.0], 1.0)
    with pytest.raises(ValueError, match="mean_direction must have 1 axis or more, but is a number"):
        VonMisesFisher(1.0, 1.0)
    with pytest.raises(ValueError, match="mean_direction must have a last axis of 2 or more, not 1"):
        VonMisesFisher([1.0], 1.0)
    with pytest.raises(ValueError, match=r"concentration must be a finite number >= 0, but concentration\[1\] is -1.0"):
        VonMisesFisher([1.0, 0.0], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"event shapes \(2,\) and \(3,\) differ"):
        kl.kl_divergence(VonMisesFisher([1.0, 0.0], 1.0), SphericalUniform(3))
    for bad in (1, 2.0, True, "3"):
        with pytest.raises(ValueError, match="SphericalUniform: dimension must be an integer >= 2"):
            SphericalUniform(bad)


def test_what_they_say_of_themselves():
    assert repr(VonMisesFisher([1.0, 0.0], 2.0)) == "VonMisesFisher(mean_direction=[1., 0.], concentration=2.0)"
    assert repr(SphericalUniform(4)) == "SphericalUniform(dimension=4)"
    assert SphericalUniform(4).dimension == 4
    assert SphericalUniform(3).entropy() == pytest.approx(math.log(4.0 * math.pi), rel=1e-15)
    assert VonMisesFisher([1.0, 0.0], 2.0).support == (-1.0, 1.0, False)


def test_scipy():
    stats = pytest.importorskip("scipy.stats", reason="frozen distributions")
    frozen = stats.vonmises_fisher([0.6, 0.0, 0.8], 3.0)
    ours = VonMisesFisher.from_scipy(frozen)
    assert ours.entropy() == pytest.approx(frozen.entropy(), rel=1e-12)
    again = VonMisesFisher.from_scipy(ours.to_scipy())
    np.testing.assert_array_equal(again.mean_direction, ours.mean_direction)
    assert again.concentration == ours.concentration
    uniform = stats.uniform_direction(3)
    assert SphericalUniform.from_scipy(uniform).dimension == SphericalUniform(3).to_scipy().dim == 3
    assert kl.kl_divergence(frozen, uniform) == kl.kl_divergence(ours, SphericalUniform(3))
    draws = frozen.rvs(40_000, random_state=1)
    shift = frozen.logpdf(draws) + math.log(4.0 * math.pi)
    assert kl.kl_divergence(frozen, uniform) == pytest.approx(shift.mean(), abs=5.0 * shift.std() / 200.0)
