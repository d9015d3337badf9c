"""Sums are exact, and nothing depends on how the rows came."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klnumba as kl
from klnumba import fixed_point
from klnumba.formulas import exact_integers
from klnumba.metrics import RunningStatistics, state
from klnumba.metrics.batch import Batch
from klnumba.metrics.reading import Read
from tests.metrics.states import SETTINGS, assert_same, merged_at_random, of_rows, pieces, taken

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
WEIGHTS = st.one_of(st.just(0.0), st.floats(2.0**-32, 2.0**32))


def exact(values, weights=None):
    """The four sums as fractions, slowly."""
    weights = [1.0] * len(values) if weights is None else weights
    pairs = [(Fraction(x), Fraction(w)) for x, w in zip(values, weights, strict=True)]
    first = sum((w * x for x, w in pairs), Fraction(0))
    second = sum((w * x * x for x, w in pairs), Fraction(0))
    return first, second, sum((w for _, w in pairs), Fraction(0)), sum((w * w for _, w in pairs), Fraction(0))


def rounded(value):
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def fraction(whole):
    return Fraction(whole, 1 << exact_integers.BIAS)


def read(statistics):
    return Read(statistics._state.together())


@SETTINGS
@given(st.lists(FLOATS, min_size=1, max_size=30))
def test_sums_are_exact(values):
    found, (first, second, *_) = read(of_rows(values)), exact(values)
    assert (fraction(found.first), fraction(found.second)) == (first, second)
    assert found.mean() == rounded(first / len(values))


@SETTINGS
@given(st.lists(st.tuples(FLOATS, WEIGHTS), min_size=1, max_size=30))
def test_weighted_sums(rows):
    values, weights = zip(*rows, strict=True)
    found, (first, second, mass, squares) = read(of_rows(values, weights)), exact(values, weights)
    sums = found.first, found.second, found.weight, found.squares
    assert tuple(map(fraction, sums)) == (first, second, mass, squares)
    if mass:
        assert found.finite_mean() == rounded(first / mass)


@SETTINGS
@given(st.lists(FLOATS, min_size=2, max_size=10))
def test_spread(values):
    found, (first, second, *_) = read(of_rows(values)), exact(values)
    n = len(values)
    variance = (second - first * first / n) / (n - 1)
    assert found.finite_std() == pytest.approx(rounded(variance) ** 0.5 if variance < 1e300 else found.finite_std())
    if variance < Fraction(10) ** 300:
        error = Fraction(found.finite_standard_error()) ** 2 / (variance / n) - 1 if variance else 0
        assert abs(error) < Fraction(1, 1 << 50) or variance < Fraction(1, 10**300)


@SETTINGS
@given(st.integers(-(1 << 4500), 1 << 4500))
def test_integers_come_back(value):
    assert fixed_point.as_integer(fixed_point.from_integer(value)) == value


@pytest.mark.parametrize("x", [5e-324, 2.0**-1022, 1.0, 0.1, 1e308, 1.7976931348623157e308])
def test_magnitude(x):
    m, e = exact_integers.magnitude(-x)
    assert Fraction(int(m)) * Fraction(2) ** int(e) == Fraction(x)


@SETTINGS
@given(st.integers(0, (1 << 53) - 1), st.integers(0, (1 << 53) - 1))
def test_product(m, n):
    low, high = exact_integers.product(m, n)
    assert low + (high << 54) == m * n
    assert max(low, high) < 1 << 55


def test_many_rows_before_a_carry(monkeypatch):
    """The limbs have room for the rows that go in between two carries: the largest products, all in one place."""
    values = np.full(1000, math.nextafter(2.0, 0.0))
    made = of_rows(values)
    limbs = np.abs(made._state.sums).max()
    assert limbs / values.size * state._MOST_PENDING < 2.0**62
    monkeypatch.setattr(state, "_MOST_PENDING", 100)
    carried = RunningStatistics()
    for _ in range(1000):
        carried.update(values[:1])
    assert_same(carried.state_dict(), made.state_dict())


def columns(rng, rows):
    values = np.exp(rng.normal(-4, 6, rows))
    values[rng.random(rows) < 0.01] = 0.0
    values[rng.random(rows) < 1e-3] *= -1.0
    weights = rng.exponential(size=rows) * (rng.random(rows) < 0.9)
    return values, weights, rng.integers(-3, 40, rows)


@pytest.mark.parametrize("special", [[], [np.inf], [np.nan, np.inf, -np.inf]], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_and_tree_gives_the_same_bits(weighted, grouped, special):
    rng = np.random.default_rng(7)
    values, weights, groups = columns(rng, 5000)
    values[: len(special)] = special
    kept = values, weights if weighted else None, groups if grouped else None
    whole = of_rows(*kept, thresholds=(0.1, 2.0))
    for count in (2, 9, 40):
        parts = [of_rows(*taken(rows, *kept), thresholds=(0.1, 2.0)) for rows in pieces(rng, values.size, count)]
        parts += [RunningStatistics(thresholds=(0.1, 2.0))]
        assert_same(merged_at_random(rng, parts).state_dict(), whole.state_dict())


@pytest.mark.parametrize("special", [[], [np.inf, -1.0], [np.nan, -np.inf]], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_number_of_threads_gives_the_same_bits(weighted, grouped, special):
    rng = np.random.default_rng(8)
    values, weights, groups = columns(rng, 100_000)
    values[: len(special)] = special
    kept = values, weights if weighted else None, groups if grouped else None
    found = [RunningStatistics(thresholds=(0.1,), threads=threads) for threads in (1, 2, 3, 7, None)]
    for made in found:
        made.update(*kept)
        made.update(*taken(np.arange(70_000), *kept))  # into groups, weights and intervals that there are
    for made in found[1:]:
        assert_same(made.state_dict(), found[0].state_dict())


def test_weights_after_rows_without_on_several_threads():
    values, weights, _ = columns(np.random.default_rng(9), 90_000)
    one, three = RunningStatistics(threads=1), RunningStatistics(threads=3)
    for made in (one, three):
        made.update(values)
        made.update(values, weights)
        made.update(values)
    assert_same(three.state_dict(), one.state_dict())


@pytest.mark.parametrize(("labels", "count", "cuts"), [
    ([0] * 12, 3, [0, 12]), ([0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3], 3, [0, 6, 12]),
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 4, [0, 3, 6, 9, 12]), ([0] * 11 + [1], 2, [0, 12]),
])  # fmt: skip
def test_threads_take_whole_groups(labels, count, cuts):
    assert state._cuts(np.array(labels, np.int64), 12, count) == cuts


def test_a_million_rows():
    rng = np.random.default_rng(1)
    values, weights, _ = columns(rng, 1_000_000)
    for kept in ((values, None), (values, weights)):
        whole = of_rows(*kept)
        for _ in range(3):
            parts = [of_rows(*taken(rows, *kept)) for rows in pieces(rng, values.size, 25)]
            assert_same(merged_at_random(rng, parts).state_dict(), whole.state_dict())
    assert whole.rows == np.count_nonzero(weights)


WORKER = """
import pickle, sys
import numpy as np
from klnumba import KLDivergence
number, count = map(int, sys.argv[1:])
rng = np.random.default_rng(5)
p, q = rng.dirichlet(np.ones(7), (2, 3000))
metric = KLDivergence(thresholds=(0.5,), agreement=True)
metric.update(p[number::count], q[number::count])
sys.stdout.buffer.write(pickle.dumps(metric))
"""


def test_rows_are_counted_while_they_wait():
    """Batches are kept for a while before they are taken in: reads between them change neither count nor weight."""
    rng = np.random.default_rng(11)
    made, rows, weight = RunningStatistics(), 0, 0.0
    for k, size in enumerate(rng.integers(1, 3000, 200)):
        weights = rng.integers(1, 5, size).astype(float) if k % 3 == 0 else None
        change = made.ready(Batch.of(rng.random(size), weights))
        if k % 7 == 0:
            made.mean()  # takes in what waits, which the batch that is made ready does not yet
        change()
        rows, weight = rows + int(size), weight + (size if weights is None else weights.sum())
        assert made.rows == rows
    assert made.rows == made.summary().rows == rows
    assert made.summary().weight == weight


def test_processes():
    """Rows split over processes and merged here give the bits of one pass."""
    import pickle

    runs = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(k), "3"], stdout=subprocess.PIPE, text=False)
        for k in range(3)
    ]
    parts = [pickle.loads(run.communicate(timeout=240)[0]) for run in runs]
    alone = subprocess.run([sys.executable, "-c", WORKER, "0", "1"], capture_output=True, check=True, timeout=240)
    whole = pickle.loads(alone.stdout)
    assert_same(sum(parts[::-1]).state_dict(), whole.state_dict())
    assert whole.rows == 3000


@settings(SETTINGS, max_examples=30)
@given(st.lists(st.tuples(FLOATS, st.sampled_from(["a", "b", "ä<b>"])), min_size=1, max_size=20))
def test_groups_equal_separate_accumulators(rows):
    values, names = map(list, zip(*rows, strict=True))
    made = of_rows(values, groups=names)
    assert made.labels == sorted(set(names))
    for k, name in enumerate(made.labels):
        alone = of_rows([x for x, other in rows if other == name])
        assert repr(made.summaries()[name]) == repr(alone.summary())
        assert made.mean()[k] == alone.mean()
    assert repr(made.summary()) == repr(of_rows(values).summary())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_functions_add_up_exactly_too(reduction):
    """One call, a call on the rows in another order, and a metric over batches: one value."""
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet(np.full(3, 0.2), (2, 40_000)) + 1e-30
    rows = kl.kl_divergence(p, q)
    total = sum(map(Fraction, rows.tolist()))
    want = float(total / len(rows) if reduction == "mean" else total)
    order = rng.permutation(len(p))
    assert float(kl.kl_divergence(p, q, reduction=reduction)) == want
    assert float(kl.kl_divergence(p[order], q[order], reduction=reduction)) == want
    metric = kl.KLDivergence(reduction=reduction)
    for k in range(0, len(p), 7000):
        metric.update(p[k : k + 7000], q[k : k + 7000])
    assert float(metric.compute()) == want


@SETTINGS
@given(st.lists(st.floats(), min_size=1, max_size=30))
def test_sum_of(values):
    whole, rest = fixed_point.sum_of([np.array(values)])
    if all(map(math.isfinite, values)):
        assert Fraction(whole, 1 << exact_integers.BIAS) == sum(map(Fraction, values))
        assert rest == 0.0
    else:
        with np.errstate(invalid="ignore"):
            np.testing.assert_equal(rest, np.sum([x for x in values if not math.isfinite(x)]))


@pytest.mark.parametrize("ulps", [1, 3, 2**29 - 1, 2**51 + 1, 2**52 - 1, 2**52])
def test_sum_of_subnormal_numbers_and_their_neighbours(ulps):
    x = math.ldexp(ulps, -1074)
    whole, rest = fixed_point.sum_of([np.array([x, -1.0])])
    assert (whole, rest) == ((ulps << (exact_integers.BIAS - 1074)) - (1 << exact_integers.BIAS), 0.0)
