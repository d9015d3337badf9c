"""Families of vectors: every pair against mpmath, and what they take, refuse and say of themselves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from mpmath import mp

import klnumba as kl
from klnumba import distributions as D
from tests.reference.distribution_errors import error
from tests.reference.vector_distributions import NAMES, PAIRS, dirichlet, wishart
from tests.reference.vector_errors import TABLE, build, entry, evaluate, worst

PAIR = pytest.mark.parametrize("pair", PAIRS, ids=[f"{p.p}-{p.q}-{p.note}".replace(" ", "_") for p in PAIRS])
ONE_EACH = [pair for pair in PAIRS if "1e" not in pair.note]
EACH = pytest.mark.parametrize("pair", ONE_EACH, ids=[f"{p.p}-{p.q}" for p in ONE_EACH])


def some(pair, count=6):
    """A few of the cases, spread over all of them."""
    cases = list(pair.cases())
    return cases[:: max(1, len(cases) // count)]


def ordinary(numbers):
    """Neither large nor small."""
    return not ((numbers > 1e3) | (numbers < 1e-3) & (numbers > 0)).any()


def stacked(name, values):
    """A batch of the distributions of one size."""
    return build(name, [np.stack([np.asarray(v[i], float) for v in values]) for i in range(len(NAMES[name]))])


def of_one_size(pair, count):
    """Cases whose parameters have one shape."""
    cases = list(pair.cases())
    shape = [np.shape(x) for x in (*cases[-1][0], *cases[-1][1])]
    return [c for c in cases if [np.shape(x) for x in (*c[0], *c[1])] == shape][-count:]


@pytest.mark.part(8)
@PAIR
def test_error_is_within_the_bound_and_as_recorded(pair):
    (row,) = [r for r in json.loads(TABLE.read_text())["errors"] if entry(pair).items() <= r.items()]
    error, at, points = worst(pair)
    assert points > 5
    assert points == row["points"]
    assert error <= pair.bound, at
    assert error <= 1.5 * row["largest_error"] + 2e-16, at


def test_the_table_has_these_entries_and_no_others():
    names = [(row["p"], row["q"], row["note"]) for row in json.loads(TABLE.read_text())["errors"]]
    assert names == [(pair.p, pair.q, pair.note) for pair in PAIRS]


@EACH
def test_never_negative_never_nan_and_zero_for_itself(pair):
    for case in some(pair, 40):
        value = evaluate(pair, case)
        assert value >= 0.0
    if pair.p == pair.q:
        for p, _ in some(pair, 40):
            value = kl.kl_divergence(build(pair.p, p), build(pair.p, p))
            assert value == 0.0
            assert not math.copysign(1.0, value) < 0


@EACH
def test_batches_broadcast(pair):
    """(2,) with (3, 1), and the same bits as one by one."""
    cases = of_one_size(pair, 6)
    first, second = [p for p, _ in cases[:2]], [q for _, q in cases[2:5]]
    p = stacked(pair.p, first)
    q = build(pair.q, [np.stack([np.asarray(v[i], float) for v in second])[:, None] for i in range(len(second[0]))])
    result = kl.kl_divergence(p, q)
    assert p.batch_shape == (2,)
    assert q.batch_shape == (3, 1)
    assert result.shape == (3, 2)
    expected = [[evaluate(pair, (a, b)) for a in first] for b in second]
    np.testing.assert_allclose(result, expected, rtol=1e-13)


@EACH
def test_float32_parameters(pair):
    def narrow(values):
        return tuple(np.asarray(v, np.float32) for v in values)

    for p, q in some(pair, 30):
        numbers = np.concatenate([np.abs(np.ravel(np.asarray(v, float))) for v in (*p, *q)])
        if not ordinary(numbers):
            continue
        one, other = build(pair.p, narrow(p)), build(pair.q, narrow(q))
        result = kl.kl_divergence(one, other)
        assert one.dtype == other.dtype == result.dtype == np.float32
        wide = [[np.asarray(x, float) for x in narrow(v)] for v in (p, q)]
        assert float(result) == pytest.approx(evaluate(pair, wide), rel=1e-6, abs=1e-45)


@EACH
@pytest.mark.filterwarnings("ignore:Low df")
def test_against_torch(pair):
    torch = pytest.importorskip("torch")
    T = torch.distributions

    def peer(name, values):
        tensors = {key: torch.tensor(np.asarray(v, float)) for key, v in zip(NAMES[name], values, strict=True)}
        family = name.partition(".")[0]
        if family == "Independent":
            return T.Independent(T.Normal(**tensors), 1)
        if family == "TransformedDistribution":
            return T.TransformedDistribution(T.Normal(**tensors), [T.ExpTransform()])
        if not hasattr(T, family):
            pytest.skip("PyTorch does not have this family")
        return getattr(T, family)(**tensors)

    if "Delta" in pair.p or pair.p.startswith("Multinomial"):
        pytest.skip("PyTorch does not have this pair")
    checked = 0
    for p, q in some(pair, 400):
        numbers = np.concatenate([np.abs(np.ravel(np.asarray(v, float))) for v in (*p, *q)])
        value = evaluate(pair, (p, q))
        if not ordinary(numbers) or not 1e-3 < value < math.inf or (pair.p.startswith("Wishart") and p[0] < len(p[1])):
            continue
        try:
            expected = float(T.kl_divergence(peer(pair.p, p), peer(pair.q, q)).detach())
        except NotImplementedError:
            pytest.skip("PyTorch does not have this pair")
        if math.isinf(expected):  # PyTorch, where a probability of q is below the range
            continue
        assert value == pytest.approx(expected, rel=1e-8)
        checked += 1
        if checked == 20:
            break
    assert checked


@pytest.mark.parametrize("df", [5e4, 1e7, 1e10])
def test_many_degrees_of_freedom_and_nearly_one_mean(df):
    """What the page says of them: 5e-16 times the root of their number."""
    rng = np.random.default_rng(17)
    for _ in range(60):
        delta = 10.0 ** rng.uniform(-9.0, -1.0)
        scale = np.array([[rng.uniform(0.5, 2.0)]])
        p, q = (df, scale), (df * (1.0 - delta) * (1.0 + 1e-3 * delta * rng.normal()), scale * (1.0 + delta / 2.0))
        one, other = (D.Wishart(n, scale_tril=factor) for n, factor in (p, q))
        with mp.workdps(130):
            exact = wishart("Wishart.scale_tril")(p, q)
        assert error(float(kl.kl_divergence(one, other)), exact) <= 5e-16 * math.sqrt(df)


# --- categories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "value"),
    [
        (D.Categorical([0.5, 0.5, 0.0]), D.Categorical([0.25, 0.25, 0.5]), math.log(2.0)),
        (D.Categorical([1, 1]), D.Categorical([1, 0]), math.inf),
        (D.Categorical([1, 0]), D.Categorical([1, 0]), 0.0),
        (D.Categorical([3.0]), D.Categorical([7.0]), 0.0),
        (D.Categorical(logits=[0.0, -math.inf]), D.Categorical(logits=[0.0, 0.0]), math.log(2.0)),
        (D.Categorical(logits=[0.0, 0.0]), D.Categorical(logits=[0.0, -math.inf]), math.inf),
        (D.Categorical([1, 1]), D.Categorical(logits=[0.0, -1000.0]), 500.0 - math.log(2.0)),
        (D.OneHotCategorical([1, 0]), D.Categorical([1, 3]), math.log(4.0)),
        (D.Multinomial(3, [1, 0]), D.Multinomial(3, [1, 3]), 3 * math.log(4.0)),
        (D.Multinomial(0, [1, 1]), D.Multinomial(0, [1, 0]), 0.0),
        (D.Multinomial(2, [1, 1]), D.Multinomial(3, [1, 1]), math.inf),
        (D.Multinomial(0, [1, 1]), D.Multinomial(3, [1, 1]), math.inf),
    ],
    ids=repr,
)
def test_boundaries_of_categories(p, q, value):
    assert float(kl.kl_divergence(p, q)) == pytest.approx(value, rel=4e-16, abs=0.0)


def test_masses_are_divided_by_their_sum():
    d = D.Categorical([[2.0, 6.0], [1e308, 1e308]])
    np.testing.assert_array_equal(d.probs, [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(d.logits, np.log([[0.25, 0.75], [0.5, 0.5]]))
    d = D.OneHotCategorical(logits=[1000.0, 1000.0, -math.inf])
    np.testing.assert_allclose(d.probs, [0.5, 0.5, 0.0])
    assert d.event_shape == (3,)
    assert repr(d) == "OneHotCategorical(logits=[1000., 1000., -inf])"
    with pytest.raises(ValueError, match="read-only"):
        d.probs[0] = 1.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: D.Categorical([[1, 1], [0, 0]]), r"probs must be not 0 everywhere .* probs\[1\] is \[0., 0.\]"),
        (lambda: D.Categorical([[1, 1], [0, -1]]), r"probs must be a finite number >= 0, but probs\[1, 1\] is -1.0"),
        (lambda: D.Categorical(logits=[0, math.nan]), r"logits must be a number < inf, but logits\[1\] is nan"),
        (lambda: D.Categorical(logits=[-math.inf]), "logits must be not -inf everywhere"),
        (lambda: D.Categorical(0.5), "Categorical: probs must have 1 axis or more, but is a number"),
        (lambda: D.Categorical(np.zeros((2, 0))), r"probs must be not 0 everywhere .* probs\[0\] is \[\]"),
        (lambda: D.Categorical(), "give exactly one of probs and logits"),
        (lambda: D.Multinomial([1, 2], np.ones((3, 4))), r"do not broadcast: total_count \(2,\), probs \(3,\)"),
        (lambda: D.Multinomial(1.5, [1, 1]), "total_count must be an integer"),
        (lambda: D.Dirichlet([[1, 2], [3, 0]]), r"concentration must be .* > 0, but concentration\[1, 1\] is 0.0"),
        (lambda: D.Dirichlet([1.0]), "concentration must have a last axis of 2 or more"),
        (lambda: kl.kl_divergence(D.Categorical([1, 1]), D.Categorical([1, 1, 1])), "p, q: 2 categories and 3"),
        (
            lambda: kl.kl_divergence(D.Dirichlet([1, 1]), D.Dirichlet([1, 1, 1])),
            r"p, q: event shapes \(2,\) and \(3,\) differ",
        ),
        (lambda: kl.kl_divergence(D.Beta(1, 1), D.Dirichlet([1, 1, 1])), "a Beta is a Dirichlet of 2 parts, not of 3"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_moments_and_entropies_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    d = D.Multinomial(7, [0.2, 0.3, 0.5])
    theirs = stats.multinomial(7, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(d.mean, 7 * np.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(d.variance, np.diag(theirs.cov()))
    assert float(d.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-12)
    assert float(D.Multinomial(1, [0.2, 0.8]).entropy()) == pytest.approx(stats.entropy([0.2, 0.8]), rel=1e-12)
    for alpha in ([2.0, 3.0, 0.4], [1e3, 2e3]):
        d = D.Dirichlet(alpha)
        theirs = stats.dirichlet(alpha)
        np.testing.assert_allclose(d.mean, theirs.mean())
        np.testing.assert_allclose(d.variance, theirs.var())
        assert float(d.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-10)
    for make in (D.Categorical, D.OneHotCategorical):
        np.testing.assert_allclose(make([[1, 1], [1, 3]]).entropy(), stats.entropy([[0.5, 0.25], [0.5, 0.75]]))
    assert np.isnan(D.Categorical([1, 1]).mean)
    np.testing.assert_allclose(D.OneHotCategorical([1, 3]).variance, [0.1875, 0.1875])


def test_to_scipy_and_back():
    stats = pytest.importorskip("scipy.stats")
    d = D.Multinomial.from_scipy(D.Multinomial(7, [0.25, 0.75]).to_scipy())
    assert repr(d) == "Multinomial(total_count=7.0, probs=[0.25, 0.75])"
    assert repr(D.Dirichlet.from_scipy(D.Dirichlet([2.0, 3.5]).to_scipy())) == "Dirichlet(concentration=[2., 3.5])"
    with pytest.raises(TypeError, match=r"a frozen scipy.stats.dirichlet, not multinomial_frozen"):
        D.Dirichlet.from_scipy(stats.multinomial(3, [0.5, 0.5]))
    with pytest.raises(ValueError, match=r"scipy.stats.dirichlet is one distribution, not \(2,\)"):
        D.Dirichlet(np.ones((2, 3))).to_scipy()
    with pytest.raises(NotImplementedError, match=r"Categorical: scipy.stats has no counterpart"):
        D.Categorical([1, 1]).to_scipy()


def test_stacked_parameters_broadcast():
    d = D.Multinomial([[1], [2], [3]], np.ones((2, 4)))
    assert d.batch_shape == (3, 2)
    assert d.event_shape == (4,)
    assert d.probs.shape == d.mean.shape == d.variance.shape == (3, 2, 4)
    assert d.total_count.shape == d.entropy().shape == (3, 2)
    assert D.Dirichlet(np.ones((0, 3))).entropy().shape == (0,)
    assert kl.kl_divergence(D.Dirichlet(np.ones((0, 3))), D.Dirichlet([1, 2, 3])).shape == (0,)


def test_a_long_dirichlet_keeps_its_digits():
    """The sum over many parts is compensated: against the sum of the remainders of log-gamma with many digits."""
    rng = np.random.default_rng(3)
    a = rng.gamma(1.0, 2.0, 300) + 0.01
    b = a * (1 + 1e-9 * rng.normal(size=300))
    with mp.workdps(80):
        expected = float(dirichlet((a,), (b,)))
    assert float(kl.kl_divergence(D.Dirichlet(a), D.Dirichlet(b))) == pytest.approx(expected, rel=1e-13)
