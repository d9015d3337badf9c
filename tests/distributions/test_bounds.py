"""KL between mixtures: the bounds hold, and what they say where the truth is known."""

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import (
    AffineTransform,
    Categorical,
    Cauchy,
    Delta,
    ExpTransform,
    Gamma,
    Independent,
    Joint,
    Laplace,
    LowRankMultivariateNormal,
    Mixture,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    Uniform,
)


def bounds(p, q, **options):
    value, error = kl.kl_divergence(p, q, method="bounds", return_error=True, **options)
    return value - error, value + error


def normals(rng, count, spread=4.0):
    weights = rng.dirichlet(np.ones(count))
    return Mixture(Categorical(weights), Normal(rng.normal(0, spread, count), rng.uniform(0.5, 2.0, count)))


def log_density(mixture, x):
    weights, parts = mixture.mixture_distribution.probs, mixture.component_distribution
    off = (x[:, None] - parts.loc) / parts.scale
    return np.logaddexp.reduce(np.log(weights / parts.scale) - 0.5 * off**2 - 0.5 * math.log(2 * math.pi), axis=1)


def by_sum(p, q):
    """The trapezoidal rule, which is exact to rounding for smooth functions that vanish at both ends."""
    x = np.linspace(-40.0, 40.0, 200_001)
    log_p, log_q = log_density(p, x), log_density(q, x)
    return float(np.sum(np.exp(log_p) * (log_p - log_q)) * (x[1] - x[0]))


@pytest.mark.parametrize("seed", range(20))
def test_the_truth_is_between(seed):
    rng = np.random.default_rng(seed)
    p, q = normals(rng, rng.integers(1, 6)), normals(rng, rng.integers(1, 6))
    low, high = bounds(p, q)
    true = by_sum(p, q)
    assert 0.0 <= low <= true * (1 + 1e-9) + 1e-12
    assert true <= high * (1 + 1e-9) + 1e-12
    assert kl.kl_divergence(p, q, method="bounds") == pytest.approx((low + high) / 2, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_upper_bound_is_below_those_that_are_easily_had(seed):
    """The mean over all pairs of components, and that over one each with its own."""
    rng = np.random.default_rng(seed)
    p, q = normals(rng, 4), normals(rng, 4)
    w, v = (d.mixture_distribution.probs for d in (p, q))
    far = kl.kl_divergence(p.component_distribution.spread(1), q.component_distribution)
    _, high = bounds(p, q)
    assert high <= np.sum(w[:, None] * v * far) * (1 + 1e-12)
    assert high <= (kl.kl_divergence(w, v) + np.sum(w * np.diag(far))) * (1 + 1e-12)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_mixture_is_at_no_distance_from_itself(count):
    p = normals(np.random.default_rng(count), count)
    assert bounds(p, p) == (0.0, 0.0)
    order = np.arange(count)[::-1]
    weights, parts = p.mixture_distribution.probs, p.component_distribution
    turned = Mixture(Categorical(weights[order]), Normal(parts.loc[order] * 1.0, parts.scale[order]))
    low, high = bounds(p, turned)
    assert 0.0 <= low <= high < 1e-3


def test_single_components_are_exact():
    p, q = Normal(0.0, 1.0), Normal(1.0, 2.0)
    assert bounds(p, q) == (kl.kl_divergence(p, q),) * 2
    one = Mixture(Categorical([3.0]), Normal([0.0], [1.0]))
    assert bounds(one, q) == (kl.kl_divergence(p, q),) * 2
    mixed = Mixture(Categorical([0.5, 0.5]), Normal([0.0, 5.0], 1.0))
    low, high = bounds(p, mixed)
    true = by_sum(one, mixed)
    assert low <= true <= high
    assert high == pytest.approx(math.log(2.0), rel=1e-4)  # the other component is far away


def test_components_far_apart_give_the_sum_of_their_parts():
    """The upper bound is then the truth; the lower one keeps what it loses for each component alone."""
    p = Mixture(Categorical([0.25, 0.75]), Normal([0.0, 1e3], [1.0, 2.0]))
    q = Mixture(Categorical([0.5, 0.5]), Normal([1e3 + 1.0, 0.5], [2.0, 1.0]))
    parts = 0.25 * kl.kl_divergence(Normal(0.0, 1.0), Normal(0.5, 1.0))
    parts += 0.75 * kl.kl_divergence(Normal(1e3, 2.0), Normal(1e3 + 1.0, 2.0))
    low, high = bounds(p, q)
    assert high == pytest.approx(parts + kl.kl_divergence([0.25, 0.75], [0.5, 0.5]), rel=1e-12)
    assert low <= high


def test_vectors():
    rng = np.random.default_rng(5)
    locs, weights = rng.normal(0, 3, (3, 2)), np.array([0.2, 0.3, 0.5])
    factors = np.tril(rng.normal(size=(3, 2, 2)))
    factors[:, [0, 1], [0, 1]] = rng.uniform(0.5, 2.0, (3, 2))
    p = Mixture(Categorical(weights), MultivariateNormal(locs, scale_tril=factors))
    q = Mixture(
        Categorical([0.5, 0.5]), MultivariateNormal(np.zeros((2, 2)), np.array([2.0, 9.0])[:, None, None] * np.eye(2))
    )
    low, high = bounds(p, q)
    pick = rng.choice(3, 40_000, p=weights)
    draws = locs[pick] + (factors[pick] @ rng.normal(size=(40_000, 2, 1)))[..., 0]

    def log_density(d):
        w, parts = d.mixture_distribution.probs, d.component_distribution
        off = np.linalg.solve(np.asarray(parts.scale_tril), (draws[:, None, :] - parts.loc)[..., None])[..., 0]
        volume = np.log(np.diagonal(parts.scale_tril, axis1=-2, axis2=-1)).sum(-1)
        return np.logaddexp.reduce(np.log(w) - 0.5 * (off**2).sum(-1) - volume - math.log(2 * math.pi), axis=1)

    ratios = log_density(p) - log_density(q)
    true, error = ratios.mean(), ratios.std() / 200.0
    assert low - 4 * error <= true <= high + 4 * error
    assert low > 0.0
    thin = LowRankMultivariateNormal(locs, np.zeros((3, 2, 1)), np.ones((3, 2)))
    full = MultivariateNormal(locs, np.broadcast_to(np.eye(2), (3, 2, 2)))
    one, other = (bounds(Mixture(Categorical(weights), parts), q) for parts in (thin, full))
    assert one == pytest.approx(other, rel=1e-12)


def test_other_families_have_an_upper_bound_alone():
    p = Mixture(Categorical([0.5, 0.5]), Gamma([2.0, 5.0], 1.0))
    q = Mixture(Categorical([0.3, 0.7]), Gamma([1.0, 6.0], [1.0, 1.2]))
    low, high = bounds(p, q)
    assert low == 0.0
    x = np.linspace(1e-9, 80.0, 400_001)

    def density(d):
        w, parts = d.mixture_distribution.probs, d.component_distribution
        shape, rate = parts.concentration, parts.rate
        gammas = np.array([math.lgamma(a) for a in shape])
        return np.exp(np.log(x)[:, None] * (shape - 1) - rate * x[:, None] + shape * np.log(rate) - gammas) @ w

    true = np.trapezoid(density(p) * np.log(density(p) / density(q)), x)
    assert 0.0 < true <= high


def test_where_no_bound_is_finite():
    p = Uniform(0.0, 2.0)
    q = Mixture(Categorical([0.5, 0.5]), Uniform([0.0, 1.0], [1.0, 2.0]))
    value, error = kl.kl_divergence(p, q, method="bounds", return_error=True)
    assert (value, error) == (math.inf, math.inf)
    value, error = kl.kl_divergence(q, p, method="bounds", return_error=True)
    assert value + error == pytest.approx(math.log(2.0), rel=1e-12)
    apart = Mixture(Categorical([1.0, 0.0]), Delta([1.0, 2.0]))
    assert bounds(apart, Delta(1.0)) == (0.0, 0.0)


def test_weights_of_zero():
    p = Mixture(Categorical([1.0, 0.0]), Normal([0.0, 1e6], 1.0))
    q = Mixture(Categorical([0.0, 1.0]), Normal([0.0, 1.0], 1.0))
    low, high = bounds(p, q)
    assert high == pytest.approx(0.5, rel=1e-12)
    assert 0.0 <= low <= 0.5


def test_batches_and_units():
    rng = np.random.default_rng(0)
    weights, locs = rng.dirichlet(np.ones(3), size=4), rng.normal(0, 3, (4, 3))
    p = Mixture(Categorical(weights), Normal(locs, 1.0))
    q = Mixture(Categorical([0.4, 0.6]), Normal([0.0, 1.0], [2.0, 3.0]))
    low, high = bounds(p, q)
    assert low.shape == high.shape == (4,)
    for i in range(4):
        one = bounds(Mixture(Categorical(weights[i]), Normal(locs[i], 1.0)), q)
        assert (low[i], high[i]) == pytest.approx(one, rel=1e-9)
    bits = bounds(p, q, base=2)
    np.testing.assert_allclose(bits[1], high / math.log(2.0), rtol=1e-12)


def test_transformed_components():
    """KL does not see what the same transform does to all components; the lower bound is not known then."""
    weights = Categorical([0.3, 0.7])
    bases = Laplace([0.0, 1.0], 1.0), Laplace([0.5, 3.0], 2.0)
    _, expected = bounds(*(Mixture(weights, base) for base in bases))
    for transform in (ExpTransform(), AffineTransform([2.0], 3.0)):
        low, high = bounds(*(Mixture(weights, TransformedDistribution(base, transform)) for base in bases))
        assert low == 0.0
        assert high == expected
    several = Mixture(weights, TransformedDistribution(bases[0], AffineTransform([2.0, 1.0], 3.0)))
    with pytest.raises(NotImplementedError, match="KL of transformed distributions is known for equal transforms"):
        bounds(several, several)


def test_refusals():
    p = Mixture(Categorical([0.5, 0.5]), Normal([0.0, 1.0], 1.0))
    with pytest.raises(NotImplementedError, match=r"KL\(Normal \|\| Cauchy\) is not registered"):
        kl.kl_divergence(p, Mixture(Categorical([1.0]), Cauchy([0.0])), method="bounds")
    with pytest.raises(ValueError, match="samples, rng: for method 'monte_carlo', not 'bounds'"):
        kl.kl_divergence(p, p, method="bounds", rng=1)


def in_all_forms(weights, locs, scales):
    """A mixture of independent normal numbers."""
    blocks = [Normal(locs[..., i], scales[..., i]) for i in range(locs.shape[-1])]
    covariances = np.square(scales)[..., None] * np.eye(locs.shape[-1])
    parts = Independent(Normal(locs, scales), 1), MultivariateNormal(locs, covariances), Joint(blocks)
    return [Mixture(Categorical(weights), x) for x in parts]


def test_independent_numbers_are_vectors():
    """Each form of the same mixtures gives the same bounds; one number a draw those of numbers."""
    rng = np.random.default_rng(8)
    p = in_all_forms([0.2, 0.3, 0.5], rng.normal(0, 3, (3, 2)), rng.uniform(0.5, 2.0, (3, 2)))
    q = in_all_forms([0.4, 0.6], np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 1.5]]))
    low, high = bounds(p[1], q[1])
    assert 0.1 < low < high
    for one, other in ((p[0], q[0]), (p[0], q[1]), (p[1], q[0]), (p[2], q[2])):
        assert bounds(one, other) == pytest.approx((low, high), rel=1e-12)
    assert bounds(p[0], p[0]) == (0.0, 0.0)
    numbers, others = normals(rng, 3), normals(rng, 2)
    one, other = (
        Mixture(d.mixture_distribution, Independent(d.component_distribution.spread(1), 1)) for d in (numbers, others)
    )
    low, high = bounds(one, other)
    assert (low, high) == pytest.approx(bounds(numbers, others), rel=1e-12)
    assert low <= by_sum(numbers, others) <= high


def test_batches_of_independent_numbers():
    rng = np.random.default_rng(9)
    locs = rng.normal(0, 3, (4, 3, 2))
    p = in_all_forms(np.ones(3), locs, np.ones(2))
    q = in_all_forms([0.4, 0.6], np.zeros((2, 2)), np.ones((2, 2)) * 2.0)
    for one, other in zip(p, q, strict=True):
        low, high = bounds(one, other)
        assert low.shape == high.shape == (4,)
        for i in range(4):
            alone = in_all_forms(np.ones(3), locs[i], np.ones((3, 2)))[1]
            assert (low[i], high[i]) == pytest.approx(bounds(alone, q[1]), rel=1e-9)


def test_other_independent_numbers_have_an_upper_bound():
    p = Mixture(Categorical([0.5, 0.5]), Joint([Normal([0.0, 1.0], 1.0), Gamma([2.0, 5.0], 1.0)]))
    q = Mixture(Categorical([0.3, 0.7]), Joint([Normal(0.5, 1.0), Gamma([1.0, 6.0], 1.0)]))
    low, high = bounds(p, q)
    assert low == 0.0
    assert 0.0 < high < math.inf


def test_mixtures_of_torch():
    torch = pytest.importorskip("torch")
    one = torch.distributions
    parts = one.Independent(one.Normal(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 1.0), 1)
    m = one.MixtureSameFamily(one.Categorical(torch.tensor([0.5, 0.5])), parts)
    assert float(kl.kl_divergence(m, m, method="bounds")) == 0.0


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_bounds_do_not_depend_on_the_unit(unit):
    found = []
    for s in (1.0, unit):
        p, q = (Mixture(Categorical([0.5, 0.5]), Normal([0.0, s * a], s * b)) for a, b in ((1.0, 1.0), (3.0, 2.0)))
        found.append(kl.kl_divergence(p, q, method="bounds", return_error=True))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)  # at most 2.2e-13


def test_bounds_do_not_depend_on_the_batch():
    rng = np.random.default_rng(2)
    weights, (locs, scales) = rng.dirichlet(np.ones(3), (2, 8)), rng.normal(0.0, 2.0, (2, 2, 8, 3))
    p, q = (Mixture(Categorical(w), Normal(m, np.exp(s))) for w, m, s in zip(weights, locs, scales, strict=True))
    alone = [kl.kl_divergence(p.one((i,)), q.one((i,)), method="bounds", return_error=True) for i in range(8)]
    np.testing.assert_array_equal(kl.kl_divergence(p, q, method="bounds", return_error=True), np.transpose(alone))
