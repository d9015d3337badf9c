"""Integrals of SciPy's histograms: steps, empty bins, edges of their own."""

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import Categorical, Mixture, Normal, Uniform

stats = pytest.importorskip("scipy.stats")
integrate = pytest.importorskip("scipy.integrate")

EDGES = np.array([-4.0, -2.5, -1.0, -0.5, 0.25, 1.0, 3.0, 4.5])
COUNTS = np.array([3, 20, 0, 41, 17, 9, 1])  # one bin is empty
OTHER_EDGES = np.array([-4.5, -2.4, -1.0, -0.6, 0.55, 1.0, 3.2, 5.0])
OTHERS = np.array([2, 11, 4, 30, 30, 8, 2])


def histogram(counts, edges, **place):
    return stats.rv_histogram((counts, edges), density=False)(**place)


def by_integral(p, q):
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert error <= 1e-11 * max(float(value), 1e-3)
    return float(value)


def on_common_bins(counts, edges, others, other_edges):
    """The masses of both in the bins between all edges."""
    grid = np.union1d(edges, other_edges)
    middles, widths = 0.5 * (grid[1:] + grid[:-1]), np.diff(grid)
    return (
        stats.rv_histogram((c, e), density=False).pdf(middles) * widths
        for c, e in ((counts, edges), (others, other_edges))
    )


@pytest.mark.parametrize("edges", [EDGES, OTHER_EDGES], ids=["the same edges", "others"])
def test_two_histograms(edges):
    p, q = histogram(COUNTS, EDGES), histogram(OTHERS, edges)
    expected = float(kl.kl_divergence(*on_common_bins(COUNTS, EDGES, OTHERS, edges)))
    assert by_integral(p, q) == pytest.approx(expected, rel=1e-12)
    assert by_integral(p, p) == 0.0


def test_moved_and_stretched_histograms():
    p, q = (histogram(c, EDGES, loc=7.0, scale=1e3) for c in (COUNTS, OTHERS))
    expected = float(kl.kl_divergence(COUNTS.astype(float), OTHERS.astype(float)))
    assert by_integral(p, q) == pytest.approx(expected, rel=1e-12)


def test_against_a_smooth_density():
    p = histogram(COUNTS, EDGES)
    heights = COUNTS / COUNTS.sum() / np.diff(EDGES)
    parts = [
        integrate.quad(lambda x, h=h: h * (math.log(h) - stats.norm.logpdf(x)), a, b, epsrel=1e-12)[0]
        for h, a, b in zip(heights, EDGES, EDGES[1:], strict=False)
        if h > 0.0
    ]
    assert by_integral(p, Normal(0.0, 1.0)) == pytest.approx(math.fsum(parts), rel=1e-12)


def test_mass_in_an_empty_bin_is_infinite():
    q = histogram(COUNTS, EDGES)
    assert by_integral(Uniform(-0.9, -0.6), q) == math.inf
    assert by_integral(Normal(0.0, 1.0), q) == math.inf
    assert by_integral(histogram(OTHERS, EDGES), q) == math.inf
    inside = by_integral(Uniform(-0.4, 0.2), q)
    assert inside == pytest.approx(-math.log(0.6 * 41 / COUNTS.sum() / 0.75), rel=1e-12)


def test_a_part_of_a_mixture():
    p = histogram([1, 3], [0.0, 1.0, 2.0])
    q = Mixture(Categorical([0.25, 0.75]), Uniform(np.array([0.0, 1.0]), np.array([1.0, 2.0])))
    assert by_integral(p, q) == pytest.approx(0.0, abs=1e-15)
