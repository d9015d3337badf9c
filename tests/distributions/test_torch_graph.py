"""Closed forms between distributions of PyTorch's tensors, as nodes of its graph."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D

torch = pytest.importorskip("torch", reason="the graph is PyTorch's")
T = torch.distributions
RNG = np.random.default_rng(40)


def leaf(*shape, positive=False, dtype=torch.float64):
    numbers = RNG.normal(size=shape)
    return torch.tensor(np.exp(numbers) if positive else numbers, dtype=dtype, requires_grad=True)


def gradients(divergence, made, leaves, upstream=None):
    value = divergence(*made())
    return value, torch.autograd.grad(value, leaves, torch.ones_like(value) if upstream is None else upstream)


REAL, POSITIVE = [leaf(4, 3), leaf(4, 3)], [leaf(4, 3, positive=True), leaf(4, 3, positive=True)]
ROW, COLUMN = leaf(3, positive=True), leaf(4, 1, positive=True)
# What both libraries have in closed form: p, q and the leaves that they are made of.
PAIRS = {
    "normal": (lambda: (T.Normal(REAL[0], POSITIVE[0]), T.Normal(REAL[1], POSITIVE[1])), [*REAL, *POSITIVE]),
    "broadcast": (lambda: (T.Normal(REAL[0], ROW), T.Normal(0.5, COLUMN)), [REAL[0], ROW, COLUMN]),
    "one side": (lambda: (T.Normal(REAL[0], POSITIVE[0]), T.Normal(0.0, 1.0)), [REAL[0], POSITIVE[0]]),
    "one leaf twice": (lambda: (T.Normal(REAL[0], ROW), T.Normal(2.0 * REAL[0], ROW)), [REAL[0], ROW]),
    "log-normal": (lambda: (T.LogNormal(REAL[0], POSITIVE[0]), T.LogNormal(REAL[1], ROW)), [REAL[0], ROW]),
    "laplace": (lambda: (T.Laplace(REAL[0], POSITIVE[0]), T.Laplace(REAL[1], POSITIVE[1])), [*REAL, *POSITIVE]),
    "gumbel": (lambda: (T.Gumbel(REAL[0], POSITIVE[0]), T.Gumbel(REAL[1], POSITIVE[1])), [*REAL, *POSITIVE]),
    "exponential": (lambda: (T.Exponential(POSITIVE[0]), T.Exponential(ROW)), [POSITIVE[0], ROW]),
    "half-normal": (lambda: (T.HalfNormal(POSITIVE[0]), T.HalfNormal(ROW)), [POSITIVE[0], ROW]),
    "pareto": (lambda: (T.Pareto(2.0, POSITIVE[0]), T.Pareto(1.0, ROW)), [POSITIVE[0], ROW]),
    "uniform": (lambda: (T.Uniform(0.0, POSITIVE[0]), T.Uniform(-ROW, 99.0)), [POSITIVE[0], ROW]),
    "poisson": (lambda: (T.Poisson(POSITIVE[0]), T.Poisson(POSITIVE[1])), POSITIVE),
    "geometric": (lambda: (T.Geometric(logits=REAL[0]), T.Geometric(logits=REAL[1])), REAL),
    "gamma": (lambda: (T.Gamma(*POSITIVE), T.Gamma(ROW, COLUMN)), [*POSITIVE, ROW, COLUMN]),
    "beta": (lambda: (T.Beta(*POSITIVE), T.Beta(ROW, COLUMN)), [*POSITIVE, ROW, COLUMN]),
    "bernoulli logits": (lambda: (T.Bernoulli(logits=REAL[0]), T.Bernoulli(logits=REAL[1])), REAL),
    "bernoulli probs": (lambda: (T.Bernoulli(REAL[0].sigmoid()), T.Bernoulli(REAL[1].sigmoid())), REAL),
    "bernoulli both": (lambda: (T.Bernoulli(REAL[0].sigmoid()), T.Bernoulli(logits=REAL[1])), REAL),
    "categorical logits": (lambda: (T.Categorical(logits=REAL[0]), T.Categorical(logits=REAL[1])), REAL),
    "categorical probs": (lambda: (T.Categorical(POSITIVE[0]), T.Categorical(POSITIVE[1])), POSITIVE),
    "one-hot, both": (lambda: (T.OneHotCategorical(POSITIVE[0]), T.OneHotCategorical(logits=REAL[0])), [REAL[0]]),
    "binomial": (lambda: (T.Binomial(7, logits=REAL[0]), T.Binomial(7, logits=REAL[1])), REAL),
    "dirichlet": (lambda: (T.Dirichlet(POSITIVE[0]), T.Dirichlet(POSITIVE[1])), POSITIVE),
    "independent": (
        lambda: (T.Independent(T.Normal(REAL[0], ROW), 1), T.Independent(T.Normal(REAL[1], COLUMN), 1)),
        [*REAL, ROW, COLUMN],
    ),
    "independent twice": (
        lambda: (
            T.Independent(T.Independent(T.Normal(REAL[0], ROW), 1), 1),
            T.Independent(T.Independent(T.Normal(REAL[1], POSITIVE[0]), 1), 1),
        ),
        [*REAL, ROW],
    ),
    "independent categories": (
        lambda: (T.Independent(T.Categorical(logits=REAL[0]), 1), T.Independent(T.Categorical(logits=REAL[1]), 1)),
        REAL,
    ),
    "transformed": (
        lambda: (
            T.TransformedDistribution(T.Normal(REAL[0], ROW), [T.TanhTransform(), T.AffineTransform(1.0, 2.0)]),
            T.TransformedDistribution(T.Normal(REAL[1], ROW), [T.TanhTransform(), T.AffineTransform(1.0, 2.0)]),
        ),
        [*REAL, ROW],
    ),
    "multivariate normal": (
        lambda: (
            T.MultivariateNormal(REAL[0], scale_tril=torch.tril(REAL[0][:3] * 0.1) + 2.0 * torch.eye(3)),
            T.MultivariateNormal(REAL[1], covariance_matrix=REAL[1].T @ REAL[1] + torch.eye(3)),
        ),
        REAL,
    ),
    "low rank": (
        lambda: (
            T.LowRankMultivariateNormal(REAL[0], REAL[1].T[:, :2], POSITIVE[0]),
            T.LowRankMultivariateNormal(REAL[1], REAL[0].T[:, :1], ROW),
        ),
        [*REAL, POSITIVE[0], ROW],
    ),
    "to low rank": (
        lambda: (
            T.MultivariateNormal(REAL[0], precision_matrix=REAL[0].T @ REAL[0] + torch.eye(3)),
            T.LowRankMultivariateNormal(REAL[1], REAL[1].T[:, :1], ROW),
        ),
        [*REAL, ROW],
    ),
    "gamma to exponential": (lambda: (T.Gamma(*POSITIVE), T.Exponential(ROW)), [*POSITIVE, ROW]),
    "laplace to normal": (lambda: (T.Laplace(REAL[0], ROW), T.Normal(REAL[1], COLUMN)), [*REAL, ROW, COLUMN]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_as_pytorch_has_them(name):
    made, leaves = PAIRS[name]
    p, q = made()
    with torch.no_grad():
        plain = kl.kl_divergence(p, q)
    upstream = torch.tensor(RNG.normal(size=tuple(plain.shape)))
    value, found = gradients(kl.kl_divergence, made, leaves, upstream)
    assert torch.equal(value, plain)
    assert value.requires_grad
    assert not plain.requires_grad
    for x, expected in zip(found, gradients(T.kl_divergence, made, leaves, upstream)[1], strict=True):
        torch.testing.assert_close(x, expected, rtol=1e-7, atol=1e-9)  # PyTorch's trigamma has 8 digits


def test_more_digits_where_p_is_nearly_q():
    """PyTorch loses the derivative of what has nearly been learnt, here by the scale."""
    scale = torch.tensor([2.0 * (1.0 + 1e-13)], dtype=torch.float64, requires_grad=True)
    two = torch.tensor([2.0], dtype=torch.float64)
    _, (found,) = gradients(kl.kl_divergence, lambda: (T.Normal(0.0, scale), T.Normal(0.0, two)), [scale])
    above = scale.item() - 2.0
    assert found.item() == pytest.approx(above * (4.0 + above) / (4.0 * scale.item()), rel=1e-15, abs=0)


def test_gradcheck():
    shape, rate = leaf(3, positive=True), leaf(2, 1, positive=True)
    assert torch.autograd.gradcheck(lambda a, b: kl.kl_divergence(T.Gamma(a, b), T.Gamma(b, a)), (shape, rate))


def test_independent_of_nothing():
    loc = leaf(3)
    for p in (T.Independent(T.Normal(loc, 1.0), 0), T.Independent(T.Independent(T.Normal(loc, 1.0), 0), 0)):
        _, (found,) = gradients(kl.kl_divergence, lambda p=p: (p, T.Normal(0.0, 2.0)), [loc])
        torch.testing.assert_close(found, loc.detach() / 4.0)


def test_units_and_the_dtype_of_the_leaves():
    loc = torch.zeros(3, dtype=torch.float32, requires_grad=True)
    narrow = loc.detach().bfloat16().requires_grad_()
    for x in (loc, narrow):
        _, (found,) = gradients(
            lambda p, q: kl.kl_divergence(p, q, base=2), lambda x=x: (T.Normal(x, 1.0), T.Normal(1.0, 1.0)), [x]
        )
        assert found.dtype == x.dtype
        torch.testing.assert_close(found.float(), torch.full((3,), -1.0 / np.log(2.0)), rtol=4e-3, atol=0)


def test_distributions_of_klnumba_take_tensors_too():
    loc, shape = leaf(4, positive=True), leaf(4, positive=True)
    value, found = gradients(
        kl.kl_divergence, lambda: (D.InverseGaussian(loc, shape), D.InverseGaussian(2.0, shape[0])), [loc, shape]
    )
    p, q = D.InverseGaussian(loc.detach(), shape.detach()), D.InverseGaussian(2.0, shape[0].detach())
    exact, gradient = D.kl_divergence_grad(p, q)
    np.testing.assert_array_equal(value.detach(), exact)
    np.testing.assert_allclose(found[0], gradient.p["loc"], rtol=1e-14)
    expected = np.array(gradient.p["concentration"])
    expected[0] += gradient.q["concentration"].sum()
    np.testing.assert_allclose(found[1], expected, rtol=1e-13)


def test_jeffreys():
    made, leaves = PAIRS["normal"]
    value, found = gradients(kl.jeffreys_divergence, made, leaves)
    expected, theirs = gradients(lambda p, q: T.kl_divergence(p, q) + T.kl_divergence(q, p), made, leaves)
    torch.testing.assert_close(value, expected)
    for x, y in zip(found, theirs, strict=True):
        torch.testing.assert_close(x, y)


def test_with_a_distribution_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    loc = leaf(3)
    _, (found,) = gradients(kl.kl_divergence, lambda: (T.Normal(loc, 1.0), stats.norm(0.0, 2.0)), [loc])
    torch.testing.assert_close(found, loc.detach() / 4.0)


def test_what_is_not_used_has_no_nan():
    """Where the divergence is infinite no derivative is known; a factor of zero makes it one of zero."""
    high = torch.tensor([0.5, 3.0], dtype=torch.float64, requires_grad=True)
    value = kl.kl_divergence(T.Uniform(torch.zeros(2), high), T.Uniform(0.0, 1.0))
    assert value[1] == np.inf
    (found,) = torch.autograd.grad(value, high, torch.ones(2, dtype=torch.float64), retain_graph=True)
    np.testing.assert_array_equal(found, [-2.0, np.nan])
    (found,) = torch.autograd.grad(value, high, torch.tensor([1.0, 0.0], dtype=torch.float64))
    np.testing.assert_array_equal(found, [-2.0, 0.0])


# Of positive numbers: ours, PyTorch's, and how many times that ours is.
FAMILIES = {
    "categorical": (T.Categorical, T.Categorical, 1.0),
    "one-hot": (T.OneHotCategorical, T.OneHotCategorical, 1.0),
    "dirichlet": (T.Dirichlet, T.Dirichlet, 1.0),
    "normal": (lambda x: T.Normal(x, 1.0), lambda x: T.Normal(x, 1.0), 1.0),
    "multinomial": (lambda x: T.Multinomial(5, x), T.Categorical, 5.0),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shapes", [((3,), (3, 3)), ((3, 3), (3,)), ((1, 3), (4, 3)), ((4, 1, 3), (2, 3))])
def test_rows_that_broadcast_and_are_not_all_used(family, shapes):
    """Which of the results count is told by the batch, not by the parts of a draw."""
    leaves = [leaf(*shape, positive=True) for shape in shapes]
    wide = [x.expand(np.broadcast_shapes(*(x.shape for x in leaves))) for x in leaves]
    ours, theirs, count = FAMILIES[family]
    value = kl.kl_divergence(*map(ours, leaves))
    upstream = torch.tensor(RNG.integers(0, 2, tuple(value.shape)).astype(float))
    found = torch.autograd.grad(value, leaves, upstream)
    expected = torch.autograd.grad(T.kl_divergence(*map(theirs, wide)), leaves, count * upstream)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-12)


def test_dirichlet_distributions_that_quick_slopes_do_not_serve():
    a, b = (torch.tensor([[2.0, 1e-33], [2.0, 3.0], [1e-40, 1.0]], dtype=torch.float64) for _ in range(2))
    a.requires_grad_()
    upstream = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64)
    b[:, 0] = 1.5
    (found,) = torch.autograd.grad(kl.kl_divergence(T.Dirichlet(a), T.Dirichlet(b)), a, upstream)
    _, exact = D.kl_divergence_grad(D.Dirichlet(a.detach()), D.Dirichlet(b))
    np.testing.assert_allclose(found, exact.p["concentration"] * upstream.numpy()[:, None], rtol=1e-13)


@pytest.mark.parametrize("family", [T.Normal, T.Gamma, T.Dirichlet, T.Categorical, T.Cauchy])
def test_no_distributions(family):
    x = torch.zeros(0, 3, requires_grad=True)
    rows = family in (T.Dirichlet, T.Categorical)
    made = family(x, validate_args=False) if rows else family(x, 1.0)
    value = kl.kl_divergence(made, made)
    value.sum().backward()
    assert x.grad.shape == (0, 3)


def test_a_distribution_keeps_its_numbers():
    """One that is made of numbers that have been changed since would train on old ones."""
    loc = leaf(3).detach().clone().requires_grad_()
    p = D.Normal(loc, 1.0)
    with torch.no_grad():
        loc += 1.0
    with pytest.raises(RuntimeError, match="p: Normal: loc was changed in place since"):
        kl.kl_divergence(p, D.Normal(0.0, 1.0))


def test_counts_that_differ():
    logits = leaf(3)
    p, q = D.Multinomial([5, 6], logits=logits), D.Multinomial(5, logits=[0.0, 1.0, 2.0])
    value = kl.kl_divergence(p, q)
    assert value[1] == np.inf
    (found,) = torch.autograd.grad(value, logits, torch.tensor([1.0, 0.0], dtype=torch.float64), retain_graph=True)
    _, gradient = D.kl_divergence_grad(D.Multinomial(5, logits=logits.detach()), q)
    np.testing.assert_allclose(found, gradient.p["logits"], rtol=1e-13)
    (found,) = torch.autograd.grad(value.sum(), logits)
    assert found.isnan().all()


def test_only_what_is_asked_for():
    made, leaves = PAIRS["normal"]
    value = kl.kl_divergence(*made()).sum()
    (found,) = torch.autograd.grad(value, leaves[:1], retain_graph=True)
    assert torch.equal(found, torch.autograd.grad(value, leaves)[0])


def test_without_a_graph():
    loc = leaf(3)
    p = D.Normal(loc, 1.0)
    with torch.no_grad():
        assert not kl.kl_divergence(T.Normal(loc, 1.0), T.Normal(0.0, 1.0)).requires_grad
        never = D.Normal(loc, 1.0)
        assert isinstance(p.entropy(), np.ndarray)
    assert isinstance(kl.kl_divergence(never, D.Normal(0.0, 1.0)), np.ndarray)
    assert isinstance(D.Normal(loc.detach(), 1.0).mean, np.ndarray)


def test_numbers_that_were_changed_are_found_out():
    loc = leaf(3).detach().clone().requires_grad_()
    value = kl.kl_divergence(T.Normal(loc, 1.0), T.Normal(0.0, 1.0)).sum()
    with torch.no_grad():
        loc += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def products(divergence, made, leaves, directions):
    """What the derivatives of a function of the divergence change by along directions."""
    value = divergence(*made())
    weights = torch.linspace(1.0, 2.0, value.numel(), dtype=value.dtype).reshape(value.shape)
    first = torch.autograd.grad((weights * (value + value * value)).sum(), leaves, create_graph=True)
    return torch.autograd.grad(sum((x * d).sum() for x, d in zip(first, directions, strict=True)), leaves)


@pytest.mark.parametrize("name", PAIRS)
def test_second_derivatives_as_pytorch_has_them(name):
    made, leaves = PAIRS[name]
    directions = [torch.tensor(RNG.normal(size=tuple(x.shape))) for x in leaves]
    expected = products(T.kl_divergence, made, leaves, directions)
    for x, y in zip(products(kl.kl_divergence, made, leaves, directions), expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "family", ["Normal", "Laplace", "Gamma", "Beta", "Gumbel", "Bernoulli", "Categorical", "Dirichlet"]
)
def test_the_hessian_at_p_is_that_of_q(family):
    """Where both are equal it is the Fisher information: of one divergence by q what it is of the other by p."""
    numbers = [REAL[0], POSITIVE[0]] if family in {"Normal", "Laplace", "Gumbel"} else POSITIVE
    if family in {"Bernoulli", "Categorical", "Dirichlet"}:
        numbers = [POSITIVE[0] / (1.0 + POSITIVE[0])]
    fixed, made = [x.detach() for x in numbers], getattr(T, family)
    leaves = [x.clone().requires_grad_() for x in fixed]
    directions = [torch.tensor(RNG.normal(size=(4, 3))) for _ in leaves]
    by_q = products(kl.kl_divergence, lambda: (made(*fixed), made(*leaves)), leaves, directions)
    by_p = products(kl.kl_divergence, lambda: (made(*leaves), made(*fixed)), leaves, directions)
    for x, y in zip(by_q, by_p, strict=True):
        assert x.abs().max() > 0.01
        torch.testing.assert_close(x, y, rtol=1e-13, atol=1e-14)


def test_second_derivatives_in_bits_by_one_side_alone():
    """In float32 leaves, of one side of which one parameter is a leaf."""
    scale = torch.tensor([0.5, 2.0], requires_grad=True)
    value = kl.kl_divergence(T.Normal(0.0, 1.0), T.Normal(1.0, scale), base=2)
    (first,) = torch.autograd.grad(value.sum(), scale, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), scale)
    assert second.dtype == torch.float32
    s = scale.detach().double()
    torch.testing.assert_close(second, ((6.0 / s**4 - 1.0 / s**2) / math.log(2.0)).float())


def test_second_derivatives_by_numbers_and_of_no_distributions():
    loc, scale = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.5, 2.0))
    leaves, ways = [loc, scale], [loc.detach(), scale.detach()]
    for family in (T.Normal, T.Gumbel, T.Gamma):

        def made(family=family):
            return family(loc, scale), family(1.0, 1.0)

        expected = products(T.kl_divergence, made, leaves, ways)
        for x, y in zip(products(kl.kl_divergence, made, leaves, ways), expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-7, atol=0.0)
    for family in (T.Normal, T.Gumbel):
        for shape in ((0,), (0, 3), (3, 0)):
            none = torch.zeros(shape, requires_grad=True)
            value = kl.kl_divergence(family(none, 1.0), family(0.0, 1.0)).sum()
            (first,) = torch.autograd.grad(value, none, create_graph=True)
            assert torch.autograd.grad(first.sum(), none)[0].shape == shape


def test_third_derivatives_and_second_ones_without_a_rule_are_refused():
    loc = leaf(3)
    value = kl.kl_divergence(T.Normal(loc, 1.0), T.Gumbel(0.0, 1.0)).sum()
    (first,) = torch.autograd.grad(value, loc, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), loc, create_graph=True)
    with pytest.raises(RuntimeError, match="first and second derivatives"):
        second.sum().backward()
    rate = leaf(2, positive=True)
    p = D.VonMisesFisher([1.0, 0.0], rate)
    (first,) = torch.autograd.grad(
        kl.kl_divergence(p, D.VonMisesFisher([0.0, 1.0], 1.0)).sum(), rate, create_graph=True
    )
    with pytest.raises(NotImplementedError, match=r"VonMisesFisher\): no second derivatives"):
        first.sum().backward()


def test_second_derivatives_of_numbers_that_were_changed():
    loc = leaf(3)
    value = kl.kl_divergence(T.Normal(loc, 1.0), T.Normal(0.0, 1.0)).sum()
    (first,) = torch.autograd.grad(value, loc, create_graph=True)
    with torch.no_grad():
        loc += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        first.sum().backward()


def test_the_prior_of_a_batch():
    """One that broadcasts to it: the parts are computed once, in the bits that the whole has."""
    p = T.Independent(T.Normal(REAL[0], POSITIVE[0]), 1)
    q = T.Independent(T.Normal(torch.zeros(3, dtype=torch.float64), 2.0), 1)
    value, found = gradients(kl.kl_divergence, lambda: (p, q), [REAL[0], POSITIVE[0]])
    with torch.no_grad():
        assert torch.equal(value, kl.kl_divergence(p, q))
    wide = T.Independent(T.Normal(torch.zeros(4, 3, dtype=torch.float64), 2.0), 1)
    for x, y in zip(found, gradients(T.kl_divergence, lambda: (p, wide), [REAL[0], POSITIVE[0]])[1], strict=True):
        torch.testing.assert_close(x, y)


def refused():
    loc, scale = leaf(3), leaf(3, positive=True)
    p, q = T.Normal(loc, scale), T.Normal(0.0, 1.0)
    chain = T.TransformedDistribution(p, [T.ExpTransform()])
    moved = T.TransformedDistribution(q, [T.AffineTransform(loc, scale)])
    binomial = T.Binomial(torch.tensor(5.0, requires_grad=True), 0.5)
    wishart = T.Wishart(scale.mean() + 2.0, torch.eye(2, dtype=torch.float64))
    return {
        "cross entropy": (RuntimeError, "entropy carries no gradient", lambda: kl.cross_entropy(p, q)),
        "entropy": (RuntimeError, "Normal.entropy carries no", lambda: D.Normal(loc, scale).entropy()),
        "of parts": (RuntimeError, "entropy carries no", lambda: D.Independent(D.Normal(loc, scale), 1).entropy()),
        "mean": (RuntimeError, "Normal.mean carries no gradient", lambda: D.Normal(loc, scale).mean),
        "draws": (RuntimeError, "method='monte_carlo' carries", lambda: kl.kl_divergence(p, q, method="monte_carlo")),
        "pairwise": (RuntimeError, "pairwise_kl carries no gradient", lambda: D.pairwise_kl(p)),
        "transform": (RuntimeError, "p: .*parameters of transforms", lambda: kl.kl_divergence(moved, q)),
        "other chains": (NotImplementedError, "detach it", lambda: kl.kl_divergence(chain, T.LogNormal(0.0, 1.0))),
        "no rule": (NotImplementedError, "scalar formulas.*detach it", lambda: kl.kl_divergence(wishart, wishart)),
        "a list": (
            RuntimeError,
            "pairwise_kl carries",
            lambda: D.pairwise_kl([T.Normal(x, 1.0) for x in loc]),
        ),
        "one of a batch": (
            NotImplementedError,
            "made of or from",
            lambda: kl.kl_divergence(D.Normal(loc, 1.0).one((0,)), D.Normal(0.0, 1.0)),
        ),
        "draws of other sizes": (
            ValueError,
            r"event shapes \(3,\) and \(1,\) differ",
            lambda: kl.kl_divergence(T.Independent(p, 1), T.Independent(T.Normal(torch.zeros(1), 1.0), 1)),
        ),
        "a count": (
            NotImplementedError,
            "p: Binomial has no derivative by total_count",
            lambda: kl.kl_divergence(binomial, T.Binomial(3, 0.5)),
        ),
        "no pair": (NotImplementedError, "not registered", lambda: kl.kl_divergence(p, T.Cauchy(0.0, 1.0))),
    }


@pytest.mark.parametrize("name", refused())
def test_no_gradient_is_lost_unseen(name):
    error, text, call = refused()[name]
    with pytest.raises(error, match=text):
        call()


def test_a_variational_autoencoder_learns():
    """The usual loss: that of a diagonal normal distribution to the standard one, beside another term."""
    numbers = torch.tensor(np.random.default_rng(0).normal(size=(2, 8, 2)))
    mean, log_scale = (x.requires_grad_() for x in numbers)
    prior = T.Independent(T.Normal(torch.zeros(2), torch.ones(2)), 1)
    optimizer = torch.optim.Adam([mean, log_scale], lr=0.2)
    for _ in range(200):
        optimizer.zero_grad()
        posterior = T.Independent(T.Normal(mean, log_scale.exp()), 1)
        kl.kl_divergence(posterior, prior).mean().backward()
        optimizer.step()
    assert kl.kl_divergence(posterior, prior).max() < 1e-3


def way_back():
    """The derivatives by a parameter, as a function of those by the divergence."""
    loc = leaf(2)
    value = kl.kl_divergence(D.Normal(loc, 1.0), D.Normal(0.0, 1.0))
    return lambda upstream: torch.autograd.grad(value, loc, upstream, retain_graph=True)[0]


@pytest.mark.parametrize("way", ["functionalize", "linearize"])
def test_no_transform_of_the_way_back_gives_other_numbers(way):
    """There is no rule for these: an error says so, where numbers would be read that are none."""
    back, ones = way_back(), torch.ones(2, dtype=torch.float64)
    ways = {
        "functionalize": lambda x: torch.func.functionalize(back)(x),
        "linearize": lambda x: torch.func.linearize(back, x)[1](x),
    }
    with pytest.raises(RuntimeError):
        ways[way](ones)


def test_batches_of_the_way_back_and_its_tangent():
    back, ones = way_back(), torch.ones(2, dtype=torch.float64)
    several = torch.func.vmap(back)(torch.stack([ones, 2.0 * ones]))
    assert torch.equal(several, torch.stack([back(ones), 2.0 * back(ones)]))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(ones, 3.0 * ones)
        value, tangent = torch.autograd.forward_ad.unpack_dual(back(dual))
    assert torch.equal(value, back(ones))
    assert torch.equal(tangent, 3.0 * back(ones))
