"""SciPy's histograms: two of them bin by bin, one of them integrated; steps, empty bins, edges of their own."""

import itertools
import math
import time
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import Categorical, Mixture, Normal, Uniform
from klnumba.distributions.frozen import Frozen

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


def by_bins(p, q):
    """Of two histograms: the value, whose error is small beside it."""
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert error <= 1e-13 * max(float(value), 1e-3)
    return float(value)


def density_of(amounts, edges, x, *, density):
    """At x, between two edges, in fractions."""
    bins = [(Fraction(a), Fraction(b)) for a, b in itertools.pairwise(edges)]
    heights = [Fraction(c) / (1 if density else b - a) for c, (a, b) in zip(amounts, bins, strict=True)]
    whole = sum(h * (b - a) for h, (a, b) in zip(heights, bins, strict=True))
    return sum((h for h, (a, b) in zip(heights, bins, strict=True) if a < x < b), Fraction(0)) / whole


def exact(p, q, *, density=False):
    """KL of two histograms, each amounts and edges: fractions, and logarithms of 60 digits."""
    p, q = ([[float(x) for x in part] for part in one] for one in (p, q))
    grid = sorted({Fraction(x) for x in (*p[1], *q[1])})
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for low, high in itertools.pairwise(grid):
            h, k = (density_of(*one, (low + high) / 2, density=density) for one in (p, q))
            mass, ratio = h * (high - low), h / k if h else Fraction(1)
            ratio = mpmath.mpf(ratio.numerator) / ratio.denominator
            total += mpmath.mpf(mass.numerator) / mass.denominator * mpmath.log(ratio)
        return float(total)


@pytest.mark.parametrize("edges", [EDGES, OTHER_EDGES], ids=["the same edges", "others"])
def test_two_histograms(edges):
    p, q = histogram(COUNTS, EDGES), histogram(OTHERS, edges)
    assert by_bins(p, q) == pytest.approx(exact((COUNTS, EDGES), (OTHERS, edges)), rel=1e-14)
    assert by_bins(p, p) == 0.0


@pytest.mark.parametrize("edges", [EDGES, OTHER_EDGES], ids=["the same edges", "others"])
def test_two_densities(edges):
    p, q = (stats.rv_histogram(one, density=True)(loc=-1.0, scale=4.0) for one in ((COUNTS, EDGES), (OTHERS, edges)))
    expected = exact((COUNTS, EDGES), (OTHERS, edges), density=True)
    assert by_bins(p, q) == pytest.approx(expected, rel=1e-14)
    assert by_bins(p, p) == 0.0


def test_edges_that_are_neighbouring_numbers():
    edges = [0.0, 1.0, np.nextafter(1.0, 2.0), 2.0]
    p, q = histogram([1, 2, 3], edges), histogram([2, 2, 2], edges)
    assert by_bins(p, q) == pytest.approx(exact(([1, 2, 3], edges), ([2, 2, 2], edges)), rel=1e-14)
    other = [0.0, 1.0, 2.0]
    assert by_bins(p, histogram([2, 2], other)) == pytest.approx(exact(([1, 2, 3], edges), ([2, 2], other)), rel=1e-14)


def test_close_histograms_keep_digits():
    p, q = np.array([2**40, 2**41, 3, 2**40]), np.array([2**40 + 9, 2**41 - 8, 3, 2**40 - 7])
    edges = [0.0, 0.1, 0.7, 0.9, 1.3]
    value, error = kl.kl_divergence(histogram(p, edges), histogram(q, edges), method="quadrature", return_error=True)
    expected = exact((p, edges), (q, edges))
    assert 0.0 < expected < 1e-20
    assert float(value) == pytest.approx(expected, rel=1e-13)
    assert error <= 1e-14 * value


def test_the_estimate_holds_where_bins_are_shared_out():
    p, q = np.array([2**20, 2**21, 3]), np.array([2**20 + 1, 2**20, 2**20 - 1, 3])
    edges, other = [0.0, 0.1, 0.7, 0.9], [0.0, 0.1, 0.4, 0.7, 0.9]
    value, error = kl.kl_divergence(histogram(p, edges), histogram(q, other), method="quadrature", return_error=True)
    assert abs(float(value) - exact((p, edges), (q, other))) <= error <= 1e-8 * value


def test_moved_and_stretched_histograms():
    p, q = (histogram(c, EDGES, loc=7.0, scale=1e3) for c in (COUNTS, OTHERS))
    assert by_bins(p, q) == pytest.approx(exact((COUNTS, EDGES), (OTHERS, EDGES)), rel=1e-14)
    far = [histogram(c, EDGES, loc=1e20, scale=1e-300) for c in (COUNTS, OTHERS)]  # both: a divergence sees neither
    assert by_bins(*far) == by_bins(p, q)
    moved = histogram(OTHERS, (OTHER_EDGES - 0.5) / 2.0, loc=0.5, scale=2.0)
    assert by_bins(histogram(COUNTS, EDGES), moved) == pytest.approx(
        exact((COUNTS, EDGES), (OTHERS, OTHER_EDGES)), rel=1e-13
    )


def test_the_estimate_knows_how_coarse_numbers_are_at_a_far_location():
    p, q = (
        histogram([1, 2], [0.0, 1.0, 2.0], loc=1e8 + 0.1),
        histogram([2, 3, 4, 5], [-1.0, 0.5, 1.0, 2.2, 3.0], loc=1e8),
    )
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    place = Fraction(1e8 + 0.1) - Fraction(1e8)
    expected = exact(([1, 2], [place, place + 1, place + 2]), ([2, 3, 4, 5], [-1.0, 0.5, 1.0, 2.2, 3.0]))
    assert abs(float(value) - expected) <= error <= 1e-6 * value


def test_a_batch_of_places():
    p = histogram(COUNTS, EDGES, loc=np.array([0.0, -0.25]))
    value, error = kl.kl_divergence(p, histogram(OTHERS, OTHER_EDGES), method="quadrature", return_error=True)
    expected = [exact((COUNTS, EDGES + loc), (OTHERS, OTHER_EDGES)) for loc in (0.0, -0.25)]
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    assert error.shape == (2,)


def test_many_bins_take_no_time():
    rng = np.random.default_rng(5)
    p, q = (histogram(rng.integers(1, 99, 3000), np.linspace(0.0, 1.0, 3001)) for _ in range(2))
    by_bins(p, q)
    start = time.perf_counter()
    value = by_bins(p, q)
    assert time.perf_counter() - start < 0.5  # integrated, some ten seconds
    masses = (np.diff(one.dist._hcdf) for one in (p, q))
    assert value == pytest.approx(float(kl.kl_divergence(*masses)), rel=1e-12)


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


def test_mass_beyond_the_other_histogram_is_infinite():
    inner, outer = histogram([1, 1], [0.0, 1.0, 2.0]), histogram([1, 1, 1], [0.0, 1.0, 2.0, 2.0 + 1e-15])
    assert kl.kl_divergence(outer, inner, method="quadrature", return_error=True) == (math.inf, 0.0)
    assert by_bins(inner, outer) == pytest.approx(math.log(1.5), rel=1e-14)
    sliver = histogram([1, 1], [-1e-300, 1e300, 2e300])  # so little of it below 0 that the mass is no number
    assert kl.kl_divergence(sliver, histogram([1], [0.0, 3e300]), method="quadrature") == math.inf
    apart = histogram([1], [7.0, 8.0])
    assert kl.kl_divergence(inner, apart, method="quadrature") == math.inf


BROKEN = {
    "bin 1 of the histogram is from 1.0 to 1.0; its edges must be finite and increase": ([1, 2], [0, 1, 1]),
    "bin 1 of the histogram is from 2.0 to 1.0; its edges must": ([1, 2], [0, 2, 1]),
    "bin 1 of the histogram is from 1.0 to inf; its edges must": ([1, 0], [0, 1, math.inf]),
    "bin 0 of the histogram holds -1.0; what bins hold must be finite and at least 0": ([-1, 2], [0, 1, 2]),
    "the histogram is empty; one bin at least must hold more than 0": ([0, 0], [0, 1, 2]),
}


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("text", BROKEN)
def test_broken_histograms_are_named(text, density):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of SciPy, where it makes one
        broken = stats.rv_histogram(BROKEN[text], density=density)()
    good = histogram([1, 2], [0, 1, 2])
    for name, p, q in (("p", broken, good), ("q", good, broken), ("p", broken, Normal(0.0, 1.0))):
        with pytest.raises(ValueError, match=f"^{name}: {text}"):
            kl.kl_divergence(p, q, method="quadrature")
    with pytest.raises(ValueError, match=f"^q: {text}"):
        kl.kl_divergence(good, broken, method="monte_carlo", samples=10)


def test_a_place_that_leaves_a_bin_no_width():
    good = histogram([1, 2], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"q: bin 0 of the histogram, at loc 1e\+20 and scale 1.0, is from 1e\+20 to"):
        kl.kl_divergence(good, histogram([1, 2], [0.0, 1.0, 2.0], loc=1e20), method="quadrature")
    for place in ({"scale": -1.0}, {"scale": 0.0}, {"loc": math.nan}, {"loc": math.inf}):
        with pytest.raises(ValueError, match=r"p: loc and scale of the histogram are .*; they must be finite, and"):
            kl.kl_divergence(histogram([1], [0, 1], **place), good, method="quadrature")
        with pytest.raises(ValueError, match=r"p: loc and scale of the histogram are .*; they must be finite, and"):
            kl.kl_divergence(histogram([1], [0, 1], **place), histogram([1], [0, 1], **place), method="quadrature")


def test_what_is_no_argument_is_explained():
    good, unfrozen = histogram([1, 2], [0, 1, 2]), stats.rv_histogram(([1, 2], [0, 1, 2]), density=False)
    for method in ("auto", "quadrature"):
        with pytest.raises(TypeError, match=r"^p: .*rv_histogram is not frozen: call it, as in histogram\(\)"):
            kl.kl_divergence(unfrozen, good, method=method)
    rule = 'p: a histogram has no closed form; kl_divergence takes it with method="quadrature"'
    for of in (kl.kl_divergence, kl.cross_entropy, kl.jeffreys_divergence):
        with pytest.raises(TypeError, match=f"^{rule}"):
            of(good, good)


def test_the_name_of_a_histogram():
    one = histogram(np.ones(10), np.linspace(0.0, 2.0, 11))
    assert repr(Frozen(one)) == "rv_histogram of 10 bins from 0.0 to 2.0"
    assert repr(Frozen(histogram([3], [0, 1], loc=1.0, scale=4.0))) == "rv_histogram of 1 bin from 1.0 to 5.0"
    assert repr(Frozen(histogram([3], [0, 1], loc=[1.0, 2.0]))) == "rv_histogram of 1 bin from [1. 2.] to [2. 3.]"


def test_a_part_of_a_mixture():
    p = histogram([1, 3], [0.0, 1.0, 2.0])
    q = Mixture(Categorical([0.25, 0.75]), Uniform(np.array([0.0, 1.0]), np.array([1.0, 2.0])))
    assert by_integral(p, q) == pytest.approx(0.0, abs=1e-15)
