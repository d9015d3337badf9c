"""Directions: the power spherical distribution, beyond its pairs."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba.distributions import PowerSpherical, SphericalUniform, VonMisesFisher, pairwise_kl
from klnumba.distributions.power_spherical import near_fisher

CONCENTRATIONS = [0.0, 1e-9, 0.3, 5.0, 1e3, 1e8]


def unit(*numbers):
    return np.asarray(numbers) / np.linalg.norm(numbers)


def over_the_sphere(size, concentration, of_cosine):
    """The mean of a function of the cosine to the mean direction, and the logarithm of the density's norm."""
    half = mpf(size - 1) / 2

    def integral(f):
        ends = [0, mpf(size) / (2 * max(concentration, size)), mpf(1) / 2, 1]
        return mp.quad(lambda y: f(1 - 2 * y) * y ** (half - 1) * (1 - y) ** (half - 1 + concentration), ends)

    mass = integral(lambda t: 1)
    sphere = 2 * mp.pi**half / mp.gamma(half) * mpf(2) ** (2 * half - 1)
    return integral(of_cosine) / mass, mp.log(mass * sphere) + concentration * mp.log(2)


@pytest.mark.part(2)
@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("concentration", [0.01, 2.0, 40.0])
def test_moments_and_entropy_against_integrals(size, concentration):
    with mp.workdps(30):
        mean, norm = over_the_sphere(size, concentration, lambda t: t)
        square, _ = over_the_sphere(size, concentration, lambda t: t * t)
        entropy = norm - concentration * over_the_sphere(size, concentration, lambda t: mp.log(1 + t))[0]
    found = PowerSpherical(np.eye(size)[0], concentration)
    assert found.mean[0] == pytest.approx(float(mean), rel=1e-11)
    assert found.variance[0] == pytest.approx(float(square - mean**2), rel=1e-10)
    np.testing.assert_allclose(found.variance[1:], float((1 - square) / (size - 1)), rtol=1e-10)
    np.testing.assert_array_equal(found.mean[1:], 0.0)
    assert found.entropy() == pytest.approx(float(entropy), rel=1e-10, abs=1e-10)


@pytest.mark.part(2)
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(("a", "b"), [(2.0, 1.2), (40.0, 30.0), (3.0, 0.0)])
def test_against_integrals(size, a, b):
    """With a mean direction that makes an angle: E of the other's logarithm is linear in the mean."""
    p, q = PowerSpherical(unit(*range(1, size + 1)), a), VonMisesFisher(np.eye(size)[0], b)
    with mp.workdps(30):
        length, norm = over_the_sphere(size, a, lambda t: t)
        logs, _ = over_the_sphere(size, a, lambda t: mp.log(1 + t))
        order = mpf(size) / 2 - 1
        sphere = 2 * mp.pi ** (order + 1) / mp.gamma(order + 1)
        norm_q = mp.log(mp.hyp0f1(order + 1, mpf(b) ** 2 / 4) * sphere)
        expected = a * logs - norm + norm_q - b * length / mp.norm(range(1, size + 1))
    assert kl.kl_divergence(p, q) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 7, 64])
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_against_the_uniform_distribution(size, concentration):
    """KL to it is what the entropy lacks."""
    p, q = PowerSpherical(np.eye(size)[0], concentration), SphericalUniform(size)
    found = kl.kl_divergence(p, q)
    assert found == pytest.approx(q.entropy() - p.entropy(), rel=1e-12, abs=1e-13)
    assert found == kl.kl_divergence(p, PowerSpherical(np.eye(size)[1], 0.0))
    assert kl.kl_divergence(q, p) == kl.kl_divergence(PowerSpherical(np.eye(size)[1], 0.0), p)
    assert kl.kl_divergence(p, p) == 0.0


@pytest.mark.parametrize(("order", "a", "b"), [(0.0, 3.0, 4.0), (0.5, 0.3, 1.5), (4.0, 30.0, 25.0), (30.0, 5.0, 9.0)])
def test_the_integral_continues_the_closed_form(order, a, b):
    m = np.eye(round(2 * order + 2))[0]
    closed = kl.kl_divergence(PowerSpherical(m, a), VonMisesFisher(m, b))
    assert near_fisher(order, a, b) == pytest.approx(closed, rel=1e-13)


@pytest.mark.parametrize("size", [2, 300])
@pytest.mark.parametrize("a", [0.0, 1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("b", [0.0, 1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_extremes_are_finite(size, a, b):
    m = np.eye(size)
    p = PowerSpherical(m[0], a)
    for q in (VonMisesFisher(m[0], b), VonMisesFisher(m[1], b), VonMisesFisher(-m[0], b), PowerSpherical(m[0], b)):
        assert 0.0 <= kl.kl_divergence(p, q) < math.inf
    assert np.isfinite(p.entropy())


def test_only_the_direction_of_a_vector_counts():
    m, n = unit(1.0, 2.0, -2.0), unit(3.0, 0.0, 1.0)
    expected = kl.kl_divergence(PowerSpherical(m, 4.0), VonMisesFisher(n, 2.0))
    found = kl.kl_divergence(PowerSpherical(m * (1 + 3e-6), 4.0), VonMisesFisher(n * (1 - 5e-6), 2.0))
    assert found == pytest.approx(expected, rel=1e-14)


def test_batches_and_sequences():
    table = [PowerSpherical([0.6, 0.8], float(i)) for i in range(3)]
    rows = pairwise_kl(table)
    assert rows.shape == (3, 3)
    assert (np.diag(rows) == 0.0).all()
    assert rows[1, 2] == kl.kl_divergence(table[1], table[2])
    assert pairwise_kl(table, [SphericalUniform(2), SphericalUniform(2)]).shape == (3, 2)
    batch = PowerSpherical([[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0], [3.0]])
    assert batch.batch_shape == (3, 2)
    assert batch.mean.shape == batch.variance.shape == (3, 2, 2)
    assert kl.kl_divergence(batch, SphericalUniform(2)).shape == (3, 2)
    assert kl.kl_divergence(batch, batch).tolist() == [[0.0, 0.0]] * 3


def test_refusals():
    with pytest.raises(ValueError, match="PowerSpherical: mean_direction must have a last axis of 2 or more, not 1"):
        PowerSpherical([1.0], 1.0)
    with pytest.raises(ValueError, match=r"concentration must be a finite number >= 0, but concentration is -1\.0"):
        PowerSpherical([1.0, 0.0], -1.0)
    with pytest.raises(ValueError, match=r"event shapes \(2,\) and \(3,\) differ"):
        kl.kl_divergence(PowerSpherical([1.0, 0.0], 1.0), SphericalUniform(3))
    with pytest.raises(NotImplementedError, match="a closed form for equal mean directions"):
        kl.kl_divergence(PowerSpherical([1.0, 0.0], 1.0), PowerSpherical([0.0, 1.0], 1.0))
    with pytest.raises(NotImplementedError, match="a closed form for a p of concentration 0"):
        kl.kl_divergence(VonMisesFisher([1.0, 0.0], 1.0), PowerSpherical([1.0, 0.0], 1.0))
    with pytest.raises(NotImplementedError, match=r"PowerSpherical: scipy\.stats has no counterpart"):
        PowerSpherical([1.0, 0.0], 1.0).to_scipy()


def test_what_it_says_of_itself():
    assert repr(PowerSpherical([1.0, 0.0], 2.0)) == "PowerSpherical(mean_direction=[1., 0.], concentration=2.0)"
    assert PowerSpherical([1.0, 0.0], 2.0).support == (-1.0, 1.0, False)
