"""Closed forms between distributions inside ``torch.func``, and in forward mode."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

import klnumba as kl
from klnumba import distributions as D

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from tests.functional.test_transforms import same  # noqa: E402

kl_div = functools.partial(kl.functional.kl_div, reduction="sum")
T, forward_ad = torch.distributions, torch.autograd.forward_ad
grad, jvp, vjp, jacrev, jacfwd, hessian, vmap = (
    getattr(torch.func, name) for name in ("grad", "jvp", "vjp", "jacrev", "jacfwd", "hessian", "vmap")
)
EYE, FIXED = torch.eye(3, dtype=torch.float64), torch.tensor([0.3, 0.5, 0.8], dtype=torch.float64)
# p and q of real numbers x of the shape (2, 3) and positive ones s of 3.
PAIRS = {
    "normal": lambda x, s: (T.Normal(x, s), T.Normal(x[0], 2.0)),
    "made inside": lambda x, s: (T.Normal(x * s, x.exp()), T.Normal(torch.zeros(3).double(), s + s)),
    "gamma": lambda x, s: (T.Gamma(x.exp(), s), T.Gamma(s, 1.5)),
    "bernoulli": lambda x, s: (T.Bernoulli(logits=x), T.Bernoulli(FIXED.expand(2, 3))),
    "binomial": lambda x, s: (T.Binomial(3, logits=x), T.Binomial(3, logits=s)),
    "categorical": lambda x, s: (T.Categorical(logits=x), T.Categorical(logits=s)),
    "categories": lambda x, s: (T.Categorical(FIXED), T.Categorical(logits=x)),
    "dirichlet": lambda x, s: (T.Dirichlet(x.exp()), T.Dirichlet(s)),
    "vectors": lambda x, s: (
        T.MultivariateNormal(x, scale_tril=torch.diag(s) + 0.1 * EYE[[2, 0, 1]].tril()),
        T.MultivariateNormal(s, 2.0 * EYE + s[:, None] * s),
    ),
    "independent": lambda x, s: (T.Independent(T.Normal(x, s), 1), T.Independent(T.Normal(s, x[0].exp()), 1)),
    "transformed": lambda x, s: tuple(
        T.TransformedDistribution(base, [T.TanhTransform(), T.AffineTransform(1.0, 2.0)])
        for base in (T.Normal(x, s), T.Normal(s, s))
    ),
}
WAYS = {
    "grad": lambda f, x, s: grad(lambda *given: f(*given).sum(), argnums=(0, 1))(x, s),
    "vjp": lambda f, x, s: vjp(f, x, s)[1](torch.full_like(f(x, s), 0.5)),
    "jvp": lambda f, x, s: jvp(f, (x, s), (x.cos(), s.sin())),
    "one side of jvp": lambda f, x, s: jvp(lambda x: f(x, s), (x,), (x.cos(),)),
    "jacrev": lambda f, x, s: jacrev(f, argnums=(0, 1))(x, s),
    "jacfwd": lambda f, x, s: jacfwd(f, argnums=(0, 1))(x, s),
    "hessian": lambda f, x, s: hessian(f, argnums=(0, 1))(x, s),
    "forward twice": lambda f, x, s: jacfwd(jacfwd(f))(x, s),
    "reverse twice": lambda f, x, s: jacrev(jacrev(f, argnums=1), argnums=1)(x, s),
    "forward, then reverse": lambda f, x, s: jacrev(jacfwd(f, argnums=1))(x, s),
}


TWICE = {"hessian", "forward twice", "reverse twice", "forward, then reverse"}
LONG = {"binomial", "dirichlet"}  # whose second derivatives are made in more digits, or by rows
POLYGAMMA = {"gamma", "dirichlet"}  # of which PyTorch has no more digits
CASES = [
    pytest.param(name, way, marks=pytest.mark.slow if name in LONG and way in TWICE else ())
    for name in PAIRS
    for way in WAYS
]


def numbers():
    rng = np.random.default_rng(3)
    return torch.tensor(rng.normal(size=(2, 3))), torch.tensor(rng.uniform(0.5, 2.0, size=3))


def close(name):
    """Whether two tensors are equal but for so much of the largest number; found: 1.5e-15, and 5e-10 of polygamma."""
    most = 1e-9 if name in POLYGAMMA else 5e-15
    return lambda a, b: bool((a - b).abs().max() <= most * (b.abs().max() or 1.0))


@pytest.mark.part(2)
@pytest.mark.parametrize(("name", "way"), CASES)
def test_as_pytorch_has_them(name, way):
    found, expected = (
        WAYS[way](lambda x, s, k=k: k(*PAIRS[name](x, s)), *numbers()) for k in (kl.kl_divergence, T.kl_divergence)
    )
    assert same(found, expected, close(name))


@pytest.mark.parametrize("name", PAIRS)
def test_forward_mode(name):
    x, s = numbers()
    found = []
    for k in (kl.kl_divergence, T.kl_divergence):
        with forward_ad.dual_level():
            found.append(tuple(forward_ad.unpack_dual(k(*PAIRS[name](forward_ad.make_dual(x, x.cos()), s)))))
    assert same(*found, close(name))
    assert found[0][1].abs().max() > 0.01


def test_checks_of_pytorch():
    def divergence(x, s):
        return kl.kl_divergence(T.Gamma(x, s), T.Gamma(s, x))

    given = [x.exp().requires_grad_() for x in numbers()]
    assert torch.autograd.gradcheck(divergence, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(divergence, given, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_distributions_of_klnumba_and_units():
    x, s = numbers()
    found = jvp(lambda x: kl.kl_divergence(D.Normal(x, 1.0), D.Normal(s, 2.0), base=2), (x,), (x,))
    nats = jvp(lambda x: kl.kl_divergence(T.Normal(x, 1.0), T.Normal(s, 2.0)), (x,), (x,))
    assert same(found, [one / np.log(2.0) for one in nats], torch.allclose)
    slopes = grad(lambda x: kl.jeffreys_divergence(D.Gumbel(x, s), D.Gumbel(s, 1.0)).sum())(x)
    leaf = x.clone().requires_grad_()
    kl.jeffreys_divergence(D.Gumbel(leaf, s), D.Gumbel(s, 1.0)).sum().backward()
    assert torch.equal(slopes, leaf.grad)


def test_a_graph_around_a_transform():
    """The transform sees one of two parameters, and a loss around it the other."""
    x, s = numbers()

    def loss(k, s):
        return grad(lambda x: k(T.Normal(x, s), T.Normal(0.5, 1.0)).sum())(x).square().sum() + s.sum()

    found = []
    for k in (kl.kl_divergence, T.kl_divergence):
        leaf = s.clone().requires_grad_()
        loss(k, leaf * 2.0).backward()
        found.append(leaf.grad)
    assert torch.allclose(*found)


def test_a_constant_in_a_transform_is_none_to_differentiate_by():
    """PyTorch wraps every tensor that is made there: a count is no reason to refuse, nor is a transform's scale."""
    x, _ = numbers()
    five = torch.tensor(5.0)

    def binomial(x):
        return kl.kl_divergence(T.Binomial(five + 0.0, logits=x), T.Binomial(five.clone(), logits=0.5 * x)).sum()

    def moved(x):
        chain = [T.AffineTransform(torch.zeros(3), torch.ones(3) * 2.0)]
        return kl.kl_divergence(*(T.TransformedDistribution(T.Normal(x * k, 1.0), chain) for k in (1.0, 0.5))).sum()

    for function in (binomial, moved):
        leaf = x.clone().requires_grad_()
        function(leaf).backward()
        assert torch.equal(grad(function)(x), leaf.grad)
        assert torch.allclose(jvp(function, (x,), (x,))[1], (leaf.grad * x).sum())
        assert torch.allclose(jvp(lambda x: jvp(function, (x,), (x,))[0], (x,), (x,))[1], (leaf.grad * x).sum())  # noqa: B023


@pytest.mark.parametrize("around", [grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: vmap(grad(f))])
def test_what_has_no_derivative_says_so(around):
    """Also inside transforms no gradient is lost unseen."""
    _, s = numbers()
    calls = {
        "total_count|vmap": lambda n: kl.kl_divergence(T.Binomial(n, logits=s), T.Binomial(3, logits=s)).sum(),
        "parameters of transforms|vmap": lambda scale: kl.kl_divergence(
            T.TransformedDistribution(T.Normal(0.0, 1.0), [T.AffineTransform(0.0, scale)]), T.Normal(0.0, 1.0)
        ).sum(),
        "carries no gradient|vmap": lambda s: kl.cross_entropy(T.Normal(0.0, s), T.Normal(0.0, 1.0)).sum(),
    }
    for text, call in calls.items():
        with pytest.raises((RuntimeError, NotImplementedError), match=text):
            around(call)(torch.full((2, 3), 3.0))


def test_third_derivatives_are_refused():
    x, s = numbers()
    with pytest.raises(RuntimeError, match="first and second derivatives"):
        jacfwd(hessian(lambda x: kl.kl_divergence(T.Normal(x, s), T.Normal(0.0, 1.0)).sum()))(x)


LOST = {
    "taken off both": (
        "that is taken off both carries no",
        lambda x: kl.kl_divergence(T.Normal(x, 1.0), stats.gumbel_l(0, 1)).sum(),
    ),
    "entropy": ("entropy carries no", lambda x: D.Normal(0.0, x.exp()).entropy().sum()),
    "of parts": ("entropy carries no", lambda x: D.Independent(D.Normal(x, 1.0), 1).entropy().sum()),
    "cross entropy": ("entropy carries no", lambda x: kl.cross_entropy(T.Normal(x, 1.0), T.Normal(0.0, 1.0)).sum()),
    "pairwise": ("pairwise_kl carries no", lambda x: D.pairwise_kl(D.Normal(x, 1.0)).sum()),
    "estimates": (
        "carries no",
        lambda x: kl.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 1.0), method="quadrature").sum(),
    ),
    "SciPy": ("Normal.to_scipy carries no", lambda x: torch.as_tensor(D.Normal(x, 1.0).to_scipy().mean()).sum()),
    "a list": (
        "p: a list with a tensor",
        lambda x: kl.kl_divergence([x[0, 0], x[0, 1]], torch.tensor([0.5, 0.5]), kind="logit"),
    ),
    "a list in a distribution": (
        "Normal: loc: a list with a tensor",
        lambda x: kl.kl_divergence(D.Normal([x[0, 0], 1.0], x[0, 1].exp()), D.Normal(0.0, 1.0)).sum(),
    ),
    "functionalize": (
        "inside torch.func.functionalize",
        lambda x: torch.func.functionalize(lambda y: kl.kl_divergence(T.Normal(y, 1.0), T.Normal(0.0, 1.0)).sum())(x),
    ),
}
AROUND = {
    "a leaf": lambda f, x: f(x.clone().requires_grad_()),
    "grad": lambda f, x: grad(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "jvp of no graph": lambda f, x: torch.no_grad()(jvp)(f, (x,), (x,)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", LOST)
def test_no_derivative_is_lost_unseen(name, around):
    text, call = LOST[name]
    with pytest.raises((RuntimeError, TypeError), match=text):
        AROUND[around](call, numbers()[0])


@pytest.mark.parametrize("around", ["grad", "jvp", "jvp of no graph"])
def test_numbers_are_no_tensors_inside_transforms(around):
    """Outside, one knows that arrays are none of a graph."""

    def gradient(x):
        return torch.as_tensor(D.kl_divergence_grad(D.Normal(x, 1.0), D.Normal(0.0, 1.0))[0]).sum()

    assert not gradient(numbers()[0].requires_grad_()).requires_grad
    with pytest.raises(RuntimeError, match="kl_divergence_grad: arrays, which no transform"):
        AROUND[around](gradient, numbers()[0])


@pytest.mark.parametrize("function", [kl.kl_divergence, kl.js_divergence, kl.rel_entr, kl_div])
def test_lists_of_tensors(function):
    """Also a list in a list, beside numbers."""
    x = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    name = "input" if function is kl_div else "p"
    for q in (torch.stack([x, 1.0 - x]), np.array([0.5, 0.5])):
        for p in ([x, 1.0 - x], [[0.5, 0.5], (0.5, x)]):
            with pytest.raises(TypeError, match=f"{name}: a list with a tensor that a derivative follows"):
                function(p, q)
    with torch.no_grad():
        assert np.isfinite(np.asarray(function([x, 1.0 - x], np.array([0.5, 0.5])))).all()


def test_one_made_outside_a_transform():
    x, s = numbers()
    p = D.Normal(s, 1.0)
    found, expected = (
        grad(lambda x, p=p: kl.kl_divergence(p, D.Normal(x, 1.0)).sum())(x) for p in (p, T.Normal(s, 1.0))
    )
    assert torch.equal(found, expected)
    assert torch.allclose(found, x - s)


def test_a_parameter_with_a_negative_bit():
    z = torch.complex(numbers()[0], numbers()[0]).conj().imag
    assert z.is_neg()
    q = D.Normal(0.0, 1.0)
    np.testing.assert_array_equal(kl.kl_divergence(D.Normal(z, 1.0), q), kl.kl_divergence(D.Normal(z.clone(), 1.0), q))
    value = kl.kl_divergence(T.Normal(z, 1.0), T.Normal(0.0, 1.0))
    np.testing.assert_array_equal(value, kl.kl_divergence(D.Normal(z, 1.0), q))
