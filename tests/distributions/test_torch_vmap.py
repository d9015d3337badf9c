"""``torch.func.vmap`` over the parameters of distributions: each member of a batch as if it were alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import torch_batch
from klnumba.distributions.constraint import REAL

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from tests.distributions.test_accuracy import PAIR  # noqa: E402
from tests.distributions.test_torch_func import EYE, FIXED, LONG, PAIRS, close  # noqa: E402
from tests.functional.test_transforms import same  # noqa: E402
from tests.reference.distribution_errors import build, width  # noqa: E402
from tests.reference.distributions import cases  # noqa: E402

T = torch.distributions
grad, jvp, jacrev, jacfwd, hessian, vmap = (
    getattr(torch.func, name) for name in ("grad", "jvp", "jacrev", "jacfwd", "hessian", "vmap")
)
SIZE = 4
OURS = {
    "weibull": lambda x, s: (D.Weibull(s, 2.0), D.Weibull([1.0, 2.0, 3.0], s)),
    "low rank": lambda x, s: (
        D.LowRankMultivariateNormal(x, s[:, None], s),
        D.LowRankMultivariateNormal(s, torch.ones(3, 1).double(), FIXED),
    ),
    "vectors": lambda x, s: (
        D.MultivariateNormal(x, scale_tril=torch.diag(s) + 0.1 * EYE[[2, 0, 1]].tril()),
        D.MultivariateNormal(s, 2.0 * EYE + s[:, None] * s),
    ),
    "wishart": lambda x, s: (D.Wishart(4.0, EYE * s), D.Wishart(s[0] + 4.0, EYE + s[:, None] * s)),
    "uniform": lambda x, s: (D.Uniform(-s, s), D.Uniform(-s - 1.0, 3.0)),
    "two normals and a shape between": lambda x, s: (D.Normal(x, 1.0), D.Normal(np.zeros((3, 1, 1)), s)),
    "of other numbers of axes": lambda x, s: (
        D.Independent(D.Normal(x, s), 1),
        D.Independent(D.Normal(np.zeros((3, 2, 3)), s), 1),
    ),
    "transformed": lambda x, s: tuple(
        D.TransformedDistribution(base, D.ExpTransform()) for base in (D.Normal(x, s), D.Normal(0.0, 1.0))
    ),
    "transforms of more numbers": lambda x, s: tuple(
        D.Independent(D.TransformedDistribution(D.Normal(base, 1.0), D.AffineTransform(np.zeros((SIZE, 3)), 2.0)), 1)
        for base in (x[0, 0] * s, s)
    ),
    "mixed families": lambda x, s: (D.Gamma(s, 1.0), D.Exponential(s)),
    "directions": lambda x, s: (
        D.VonMisesFisher(s / s.norm(), s[0]),
        D.VonMisesFisher([0.0, 0.6, 0.8], 2.0),
    ),
}
ALL = {**PAIRS, **OURS}
WAYS = {
    "values": lambda f: f,
    "grad": lambda f: grad(lambda *given: f(*given).sum(), argnums=(0, 1)),
    "jvp": lambda f: lambda x, s: jvp(f, (x, s), (x.cos(), s.sin())),
    "jacrev": lambda f: jacrev(f, argnums=1),
    "jacfwd": lambda f: jacfwd(f, argnums=1),
    "hessian": lambda f: hessian(f, argnums=1),
}
UNBENT = {"uniform", "directions"}  # which have no second derivatives
WHOLE = {"normal", "vectors", "of other numbers of axes", "transforms of more numbers"}  # always in all ways


def is_long(name, way):
    return (way in {"jvp", "jacrev", "jacfwd"} and name not in WHOLE) or (way == "hessian" and name in LONG)


CASES = [
    pytest.param(name, way, marks=pytest.mark.slow if is_long(name, way) else ())
    for name in ALL
    for way in WAYS
    if not (name in UNBENT and way == "hessian") and (name != "wishart" or way == "values")
]


def numbers():
    rng = np.random.default_rng(5)
    return torch.tensor(rng.normal(size=(SIZE, 2, 3))), torch.tensor(rng.uniform(0.5, 2.0, size=(SIZE, 3)))


@pytest.mark.part(2)
@pytest.mark.parametrize(("name", "way"), CASES)
def test_as_member_by_member(name, way):
    call = WAYS[way](lambda x, s: kl.kl_divergence(*ALL[name](x, s)))
    x, s = numbers()
    found = vmap(call)(x, s)
    alone = [call(x[k], s[k]) for k in range(SIZE)]
    assert all(same(member(found, k), tensors(one), torch.equal) for k, one in enumerate(alone))


def tensors(found):
    """What is found; an array, where nothing is differentiated, as a tensor."""
    return found if isinstance(found, tuple) else torch.as_tensor(found)


def member(found, k):
    return tuple(member(x, k) for x in found) if isinstance(found, tuple) else found[k]


@pytest.mark.part(8)
@PAIR
def test_every_pair(p, q):
    """Over all parameters at once, and over each alone, beside the numbers of one case."""
    columns = np.array(list(islice(cases(p, q), 40)), np.float64).T
    mapped = [torch.tensor(column) for column in columns]

    def divergence(*numbers):
        return kl.kl_divergence(build(p, numbers[: width(p)]), build(q, numbers[width(p) :]))

    assert np.array_equal(vmap(divergence)(*mapped), divergence(*columns), equal_nan=True)
    for k in range(len(columns)):
        alone = [column[:1] for column in columns]
        of_one = (np.delete(columns, k, 0) == np.delete(columns, k, 0)[:, :1]).all(0)
        alone[k] = columns[k, of_one][:, None]
        given = [torch.tensor(column) if i == k else column for i, column in enumerate(alone)]
        dims = tuple(0 if i == k else None for i in range(len(columns)))
        found = vmap(divergence, in_dims=dims)(*given)
        assert np.array_equal(found, divergence(*alone), equal_nan=True)


def normal(x, s):
    return D.Normal(x, s), D.Normal(0.5, 2.0)


def test_batches_inside_batches():
    """Each of two parameters in a batch of its own, and derivatives by either."""
    x, s = (given.reshape(-1, 3) for given in numbers())

    def table(k, of):
        def one(a, b):
            return k(T.Normal(a, 1.0), T.Normal(b[:, None], 2.0)).sum()

        return vmap(lambda a: vmap(lambda b: of(one)(a, b))(s))(x)

    for of in (lambda f: f, lambda f: grad(f, argnums=(0, 1)), lambda f: hessian(f, argnums=1)):
        assert same(*(table(k, of) for k in (kl.kl_divergence, T.kl_divergence)), close("normal"))


def test_what_is_the_same_for_all_members():
    """Gradients of each sample by weights they share, and of all samples, which PyTorch adds up."""
    x, s = numbers()
    shared, x = s[0], x[:, 0]
    alone = torch.stack([x[k] - shared for k in range(SIZE)]) / 4.0
    each = vmap(grad(lambda w, one: kl.kl_divergence(D.Normal(one, 1.0), D.Normal(w, 2.0)).sum()), in_dims=(None, 0))
    equal = close("normal")
    assert equal(each(shared, x), -alone)
    total = grad(lambda w: vmap(lambda one: kl.kl_divergence(D.Normal(one, 1.0), D.Normal(w, 2.0)).sum())(x).sum())
    assert equal(total(shared), -alone.sum(0))
    leaf = shared.clone().requires_grad_()
    vmap(lambda one: kl.kl_divergence(D.Normal(one, 1.0), D.Normal(leaf, 2.0)))(x).sum().backward()
    assert equal(leaf.grad, -alone.sum(0))


def test_axes_and_pieces():
    x = numbers()[0][:, 0]
    plain = kl.kl_divergence(*normal(x.numpy(), 1.0))
    assert np.array_equal(vmap(lambda x: kl.kl_divergence(*normal(x, 1.0)), in_dims=1, out_dims=1)(x), plain)
    assert np.array_equal(vmap(lambda x: kl.kl_divergence(*normal(x, 1.0)), chunk_size=3)(x), plain)
    assert np.array_equal(
        vmap(lambda x: kl.jeffreys_divergence(*normal(x, 1.0)))(x), kl.jeffreys_divergence(*normal(x.numpy(), 1.0))
    )
    assert np.array_equal(
        vmap(lambda x: kl.kl_divergence(*normal(x, 1.0), base=2))(x), kl.kl_divergence(*normal(x.numpy(), 1.0), base=2)
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (torch.float32, torch.float32), (torch.bfloat16, torch.float32), (torch.float16, torch.float32),
        (torch.float64, torch.float64), (torch.int64, torch.float64), (torch.bool, torch.float64),
    ],
)  # fmt: skip
def test_dtypes(given, found):
    """As without vmap."""
    x = torch.tensor([0, 1, 1, 0]).to(given)

    def divergence(x):
        return kl.kl_divergence(D.Normal(x, x + 1), D.Normal(x, x + x + 1))

    values = vmap(divergence)(x)
    assert values.dtype == found
    assert torch.equal(values, torch.as_tensor(divergence(x)))


@pytest.mark.parametrize("way", WAYS)
def test_all_members_and_directions_are_one_call(way, monkeypatch):
    """However many there are."""
    made = []
    call_of = torch_batch.call_of
    monkeypatch.setattr(torch_batch, "call_of", lambda *given: made.append(None) or call_of(*given))

    def calls(members, numbers):
        made.clear()
        x, s = torch.ones(members, 1, numbers), torch.arange(members * numbers).reshape(members, numbers) + 1.0
        vmap(WAYS[way](lambda x, s: kl.kl_divergence(*normal(x, s))))(x, s)
        return len(made)

    few = calls(2, 1)
    assert 1 <= few <= 5
    assert few == calls(5, 7)


@pytest.mark.parametrize("way", ["values", "grad", "jvp", "jacrev", "hessian"])
def test_without_a_record(way):
    """In inference mode, of tensors of that mode and of others, and where no gradients are recorded."""
    call = WAYS[way](lambda x, s: kl.kl_divergence(*normal(x, s)))
    x, s = numbers()
    expected = vmap(call)(x, s)
    with torch.no_grad():
        assert same(vmap(call)(x, s), expected)
    with torch.inference_mode():
        inside = x.clone(), s.clone()
        assert same(vmap(call)(x, s), expected)
        assert same(vmap(call)(*inside), expected)
        assert same(tensors(call(inside[0][0], inside[1][0])), member(expected, 0))
    assert same(vmap(call)(*inside), expected)


CHANGES = {
    "a number": lambda x: x.sub_(0.5),
    "a part": lambda x: x[0].add_(1.0),
    "a view": lambda x: x.view(-1).mul_(3.0),
    "copied": lambda x: x.copy_(x.cos()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_distribution_keeps_its_numbers(change):
    """Whatever becomes of the tensor, as without vmap."""
    x = numbers()[0]

    def before_and_after(x):
        x = x.clone()
        p = D.Normal(x, 1.0)
        CHANGES[change](x)
        return kl.kl_divergence(p, D.Normal(x, 1.0))

    expected = np.stack([before_and_after(one) for one in x])
    assert expected.any()
    assert np.array_equal(vmap(before_and_after)(x), expected)
    with torch.inference_mode():
        assert np.array_equal(vmap(before_and_after)(x), expected)
    rows = np.array([[before_and_after(row) for row in one] for one in x])
    assert np.array_equal(vmap(lambda x: vmap(before_and_after)(x))(x), rows)


def test_directions_are_of_the_numbers_that_were_given():
    """Though the tensor has been changed since: in one direction, and in many."""
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    _, back = torch.func.vjp(lambda x: kl.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 1.0)), x)
    x.add_(10.0)
    assert back(torch.ones(2).double())[0].tolist() == [1.0, 2.0]
    assert vmap(back)(torch.eye(2).double())[0].tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_parts_of_which_one_side_is_not_mapped():
    p = D.Independent(D.Normal(np.zeros((2, 3)), 1.0), 2)

    def divergence(x):
        return kl.kl_divergence(p, D.Independent(D.MultivariateNormal(x, scale_tril=np.eye(3)), 1))

    x = numbers()[0]
    assert np.array_equal(vmap(divergence)(x), [divergence(one) for one in x])


@pytest.mark.parametrize("of", [T, D])
def test_families_that_look_at_their_numbers(of):
    """PyTorch's refuse to be made inside vmap unless nothing is checked; ours are made."""
    unchecked = {"validate_args": False} if of is T else {}
    x, s = numbers()
    families = {
        "covariance": lambda x, s: of.MultivariateNormal(x, torch.diag(s), **unchecked),
        "precision": lambda x, s: of.MultivariateNormal(x, precision_matrix=torch.diag(s), **unchecked),
        "geometric": lambda x, s: of.Geometric(s / 3.0, **unchecked),
    }
    for made in families.values():

        def divergence(x, s):
            return kl.kl_divergence(made(x, s), made(x + 1.0, s * 0.5))  # noqa: B023

        expected = np.stack([divergence(x[k, 0], s[k]) for k in range(SIZE)])
        assert np.array_equal(vmap(divergence)(x[:, 0], s), expected)
    if of is T:
        with pytest.raises(RuntimeError, match="data-dependent control flow"):
            vmap(lambda s: T.Geometric(s / 3.0, validate_args=True).probs)(s)


@pytest.mark.usefixtures("own")
def test_pairs_of_ones_own():
    """Of functions of the two distributions, which find their numbers there."""

    class Place(D.Distribution):
        parameters = ("loc",)
        loc = D.Parameter(REAL)

        def __init__(self, loc):
            super().__init__(loc=loc)

    @D.register_kl(Place, Place)
    def between_places(p, q):
        return (p.loc - q.loc) ** 2

    @D.register_kl(D.Normal, Place)
    def to_place(p, q):
        return p.entropy() + kl.kl_divergence(p, D.Normal(q.loc, 1.0))

    x = numbers()[0][:, 0]
    assert np.array_equal(vmap(lambda x: kl.kl_divergence(Place(x), Place(1.0)))(x), (x - 1.0) ** 2)
    found = vmap(lambda x: kl.kl_divergence(D.Normal(x, 1.0), Place(x)))(x)
    assert np.array_equal(found, np.full(x.shape, D.Normal(0.0, 1.0).entropy()))
    with pytest.raises(NotImplementedError, match="derivatives are those of scalar formulas"):
        vmap(grad(lambda x: kl.kl_divergence(Place(x), Place(1.0)).sum()))(x)


def test_empty_batches():
    """A call that serves a whole batch serves an empty one, as PyTorch's own do."""

    def divergence(x):
        return kl.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 1.0))

    empty = torch.zeros(0, dtype=torch.float64)
    assert vmap(divergence)(empty.reshape(0, 3)).shape == (0, 3)
    assert vmap(grad(lambda x: divergence(x).sum()))(empty.reshape(0, 3)).shape == (0, 3)
    assert jacrev(divergence)(empty).shape == (0, 0)
    assert jacfwd(divergence)(empty).shape == (0, 0)
    assert hessian(lambda x: divergence(x).sum())(empty).shape == (0, 0)


def test_counts_are_mapped_over_but_not_differentiated_by():
    counts = torch.arange(1, 5)
    found = vmap(lambda n: kl.kl_divergence(D.Binomial(n, 0.5), D.Binomial(n, 0.3)))(counts)
    assert np.array_equal(found, kl.kl_divergence(D.Binomial(counts.numpy(), 0.5), D.Binomial(counts.numpy(), 0.3)))
    odds = torch.full((4,), 0.5, dtype=torch.float64)
    slopes = vmap(grad(lambda p, n: kl.kl_divergence(D.Binomial(n, p), D.Binomial(n, 0.3))))(odds, counts)
    assert close("binomial")(slopes, counts.double() * np.log(0.7 / 0.3))
    with pytest.raises(NotImplementedError, match="p: Binomial has no derivative by total_count"):
        vmap(grad(lambda n: kl.kl_divergence(D.Binomial(n, 0.5), D.Binomial(n, 0.3))))(counts.double())


def test_what_is_wrong_is_said_with_its_place_in_the_batch():
    x = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    with pytest.raises(ValueError, match=r"Normal: scale must be a finite number > 0, but scale\[1, 1\] is -4.0"):
        vmap(lambda x: kl.kl_divergence(D.Normal(0.0, x), D.Normal(0.0, 1.0)))(x)
    with pytest.raises(ValueError, match=r"Uniform: high must be above low, but at \[0, 0\]"):
        vmap(lambda x: kl.kl_divergence(D.Uniform(x, x), D.Uniform(-9.0, 9.0)))(x)
    with pytest.raises(ValueError, match=r"do not broadcast: loc \(2,\), scale \(3,\)"):
        vmap(lambda x: D.Normal(x, [1.0, 2.0, 3.0]).batch_shape)(x)
    with pytest.raises(ValueError, match=r"Normal: scale must be a finite number > 0, but scale\[1, 1\] is -4.0"):
        vmap(lambda x: kl.kl_divergence(D.Normal(np.zeros((2, 1, 2)), x), D.Normal(0.0, 1.0)))(x)
    with pytest.raises(TypeError, match=r"Normal: loc must be real numbers, not torch.complex64"):
        vmap(lambda x: kl.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 1.0)))(x + 0j)
    unchecked = vmap(lambda x: kl.kl_divergence(D.Normal(0.0, x, validate_args=False), D.Normal(0.0, 1.0)))(x)
    assert unchecked.isnan().tolist() == [[False, False], [False, True]]


HELD = {
    "a parameter": lambda x: D.Normal(x, 1.0).loc,
    "entropy": lambda x: D.Normal(0.0, x).entropy(),
    "mean": lambda x: D.Gamma(x, 1.0).mean,
    "of parts": lambda x: D.Independent(D.Normal(0.0, x), 1).entropy(),
    "cross_entropy": lambda x: kl.cross_entropy(D.Normal(0.0, x), D.Normal(0.0, 1.0)),
    "pairwise": lambda x: D.pairwise_kl(D.Normal(x, 1.0)),
    "estimates": lambda x: kl.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 1.0), method="quadrature"),
    "one of a batch": lambda x: D.Normal(x, 1.0).one((0,)),
    "mixtures": lambda x: kl.kl_divergence(
        D.Mixture(D.Categorical([0.2, 0.3, 0.5]), D.Normal(x, 1.0)), D.Normal(0.0, 1.0)
    ),
    "transforms": lambda x: D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(x, 1.0)),
    "SciPy": lambda x: D.Normal(x, 1.0).to_scipy(),
    "another shape": lambda x: D.Normal(x, 1.0).spread(1),
    "parts beside vectors": lambda x: kl.kl_divergence(
        D.Independent(D.Normal(x, 1.0), 1), D.MultivariateNormal([0.0] * 3, np.eye(3))
    ),
    "more axes": lambda x: D.Normal(x, 1.0).with_axes(0, 1),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("recorded", [True, False])
def test_numbers_that_are_not_there_are_not_given_out(name, recorded):
    with torch.set_grad_enabled(recorded), pytest.raises(RuntimeError, match=r"inside vmap.*give the batch"):
        vmap(HELD[name])(torch.ones(2, 3))


def test_one_that_left_vmap_has_no_numbers():
    kept = []
    vmap(lambda x: kept.append(D.Normal(x, 1.0)) or x)(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Normal: loc: a tensor inside vmap"):
        kl.kl_divergence(kept[0], D.Normal(0.0, 1.0))
    assert repr(kept[0]) == "Normal(loc=<(3,) of each member of a batch>, scale=1.0)"
