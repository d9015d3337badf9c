"""KL from samples: against the plain formula, and on what is known about the distributions."""

import json
import math

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="klnumba.tables is for pandas")

from klnumba.tables import SampleEstimate, kl_from_samples  # noqa: E402
from tests.reference import sample_errors  # noqa: E402

METHODS = ("knn", "bias-reduced")


def harmonic(count):
    return math.fsum(1.0 / j for j in range(1, count))


def reference(x, y, k, method):
    """Equations (5) and (29) of Wang, Kulkarni and Verdu, point by point, with all distances."""
    x, y = (np.asarray(points, float).reshape(len(points), -1) for points in (x, y))
    n, m, d = len(x), len(y), x.shape[1]
    terms = []
    for i in range(n):
        own = sorted(math.dist(x[i], x[j]) for j in range(n) if j != i)
        other = sorted(math.dist(x[i], point) for point in y)
        if method == "knn":
            terms.append(d * math.log(other[k - 1] / own[k - 1]))
            continue
        radius = max(own[k - 1], other[k - 1])
        near, reach = (sum(distance <= radius for distance in side) for side in (own, other))
        terms.append(d * math.log(other[reach - 1] / own[near - 1]) + harmonic(near) - harmonic(reach))
    return math.fsum(terms) / n + math.log(m / (n - 1))


def draw(seed, n, m, d, shift=0.5):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) * 1.5 + shift
    return (x[:, 0], y[:, 0]) if d == 1 else (x, y)


def needs_scipy(d):
    if d > 1:
        pytest.importorskip("scipy", reason="neighbours of vectors")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize(("n", "m", "k"), [(40, 60, 1), (40, 60, 5), (90, 30, 3), (6, 5, 5), (2, 1, 1)])
def test_the_formula(method, d, n, m, k):
    needs_scipy(d)
    x, y = draw(n + d, n, m, d)
    found = kl_from_samples(x, y, k=k, method=method)
    assert found.kl == pytest.approx(reference(x, y, k, method), rel=1e-12, abs=1e-13)
    assert (found.n, found.m, found.dimensions) == (n, m, d)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [1, 3])
def test_samples_far_apart(method, d):
    """All of x lies within the radius of each point, so that every neighbour is counted."""
    needs_scipy(d)
    x, y = draw(0, 50, 40, d, shift=100.0)
    assert kl_from_samples(x, y, method=method).kl == pytest.approx(reference(x, y, 5, method), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_values_that_do_no_harm(method):
    """Fewer than k neighbours at the distance zero, also with values that x and y share; differences are exact."""
    rng = np.random.default_rng(0)
    x, y = (np.concatenate([points, points[:7]]) for points in rng.integers(0, 10_000, (2, 60)) / 64.0)
    y[:5] = x[:5]
    assert kl_from_samples(x, y, k=4, method=method).kl == pytest.approx(reference(x, y, 4, method), rel=1e-12)
    pytest.importorskip("scipy", reason="neighbours of vectors")
    x, y = np.stack([x, x[::-1]], axis=1), np.stack([y, y[::-1]], axis=1)
    assert kl_from_samples(x, y, k=4, method=method).kl == pytest.approx(reference(x, y, 4, method), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_radii_that_are_rounded(method):
    """A point at the very radius counts, although x - radius and x + radius are rounded."""
    rng = np.random.default_rng(1)
    x = 1.0 + rng.integers(0, 1 << 12, 200) * 2.0**-50
    y = 1.0 + rng.integers(0, 1 << 12, 300) * 2.0**-51
    assert kl_from_samples(x, y, k=9, method=method).kl == pytest.approx(reference(x, y, 9, method), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [1, 2])
def test_unit_and_order_do_not_matter(method, d):
    needs_scipy(d)
    x, y = draw(5, 80, 70, d)
    found = kl_from_samples(x, y, method=method).kl
    for scale in (2.0**-1000, 2.0**-300, 2.0**900):
        assert kl_from_samples(x * scale, y * scale, method=method).kl == found
    assert kl_from_samples(x[::-1], y[::-1], method=method).kl == pytest.approx(found, rel=1e-13)
    if d == 1:
        assert kl_from_samples(x[::-1], np.roll(y, 5), method=method).kl == found


def test_what_samples_may_be():
    x, y = draw(2, 50, 40, 1)
    expected = kl_from_samples(x, y)
    assert isinstance(expected, SampleEstimate)
    assert float(expected) == expected.kl
    for one, other in ((x[:, None], y), (x.tolist(), tuple(y)), (pd.Series(x, index=x), pd.Series(y))):
        assert kl_from_samples(one, other).kl == expected.kl
    whole = kl_from_samples(np.arange(50), np.arange(40, dtype=np.uint8), k=2)
    assert whole.kl == kl_from_samples(np.arange(50.0), np.arange(40.0), k=2).kl
    frozen = x.copy()
    frozen.flags.writeable = False
    assert kl_from_samples(frozen, pd.array(y, "Float64")).kl == expected.kl


def test_columns_are_matched():
    pytest.importorskip("scipy", reason="neighbours of vectors")
    x, y = draw(2, 50, 40, 2)
    p, q = pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame(y, columns=["a", "b"])
    assert kl_from_samples(p, q[["b", "a"]]).kl == kl_from_samples(x, y).kl
    with pytest.raises(ValueError, match=r"x and y: the same columns.*\['b', 'c'\]"):
        kl_from_samples(p, q.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="repeated"):
        kl_from_samples(p.set_axis(["a", "a"], axis=1), q.set_axis(["a", "a"], axis=1))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_columns_of_other_libraries_are_matched(library):
    pytest.importorskip("scipy", reason="neighbours of vectors")
    made = pytest.importorskip(library, reason="the frames are its")
    x, y = draw(2, 50, 40, 2)
    frame = made.table if library == "pyarrow" else made.DataFrame
    p, q = frame({"a": x[:, 0], "b": x[:, 1]}), frame({"b": y[:, 1], "a": y[:, 0]})
    assert kl_from_samples(p, q).kl == kl_from_samples(x, y).kl
    assert kl_from_samples(p, pd.DataFrame({"b": y[:, 1], "a": y[:, 0]})).kl == kl_from_samples(x, y).kl
    with pytest.raises(ValueError, match=r"x and y: the same columns.*\['b', 'c'\]$"):
        kl_from_samples(p, frame({"a": y[:, 0], "c": y[:, 1]}))


def test_masked_values_are_refused():
    x, y = draw(2, 50, 40, 1)
    masked = np.ma.masked_array(y, y > 1)
    with pytest.raises(ValueError, match="y: no value is masked"):
        kl_from_samples(x, masked)
    bare = np.ma.masked_array(y, np.zeros(y.shape, bool))
    assert kl_from_samples(x, bare).kl == kl_from_samples(x, y).kl


def test_inputs_stay_as_they_are():
    x, y = (np.round(points, 1) for points in draw(2, 50, 40, 1))
    copies = x.copy(), y.copy()
    kl_from_samples(x, y, ties="jitter", standardize=True, confidence=0.9)
    np.testing.assert_array_equal(x, copies[0])
    np.testing.assert_array_equal(y, copies[1])


# --- options ---------------------------------------------------------------------------------------------------------


def test_unit_and_floor():
    x, y = draw(0, 200, 200, 1, shift=1.0)
    found = kl_from_samples(x, y, confidence=0.9)
    bits = kl_from_samples(x, y, confidence=0.9, base=2)
    assert bits.kl == found.kl / math.log(2)
    assert bits.standard_error == found.standard_error / math.log(2)
    assert bits.interval == pytest.approx([end / math.log(2) for end in found.interval], rel=1e-15)
    rng = np.random.default_rng(3)
    same = [(rng.normal(size=100), rng.normal(size=100)) for _ in range(20)]
    values = [kl_from_samples(*pair).kl for pair in same]
    assert min(values) < 0.0 < max(values)
    assert [kl_from_samples(*pair, clamp=True).kl for pair in same] == [max(value, 0.0) for value in values]
    low, high = kl_from_samples(*same[int(np.argmin(values))], clamp=True, confidence=0.9).interval
    assert low == 0.0 <= high


def test_the_interval():
    x, y = draw(0, 200, 300, 1)
    found = kl_from_samples(x, y, confidence=0.95)
    low, high = found.interval
    assert high - found.kl == pytest.approx(1.959963984540054 * found.standard_error, rel=1e-12)
    assert found.kl - low == pytest.approx(high - found.kl, rel=1e-12)
    assert kl_from_samples(x, y, confidence=0.95) == found
    assert kl_from_samples(x, y, confidence=0.95, rng=1).standard_error != found.standard_error
    generator = np.random.default_rng(7)
    first = kl_from_samples(x, y, confidence=0.95, rng=generator)
    assert first == kl_from_samples(x, y, confidence=0.95, rng=7)
    assert first != kl_from_samples(x, y, confidence=0.95, rng=generator)
    plain = kl_from_samples(x, y)
    assert plain.kl == found.kl
    assert all(math.isnan(value) for value in (plain.standard_error, *plain.interval))


def test_standardized_coordinates():
    pytest.importorskip("scipy", reason="neighbours of vectors")
    x, y = draw(0, 200, 150, 2)
    units = np.array([1.0, 1e6])
    apart = kl_from_samples(x * units, y * units).kl
    found = kl_from_samples(x * units, y * units, standardize=True).kl
    deviation = np.std(np.concatenate([x, y]), axis=0)
    assert found == pytest.approx(reference(x / deviation, y / deviation, 5, "knn"), rel=1e-12)
    assert abs(found - apart) > 0.01
    assert np.isfinite(kl_from_samples(x * 1e-300, y * 1e-300, standardize=True).kl)


def test_jitter_takes_rounded_values_apart():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.0, 1.0, 5_000).round(1), rng.normal(1.0, 1.0, 5_000).round(1)
    with pytest.raises(ValueError, match=r"x and y: \d+ of 5000 points have 5 neighbours at the distance 0.*jitter"):
        kl_from_samples(x, y)
    for method in METHODS:
        found = kl_from_samples(x, y, ties="jitter", method=method, confidence=0.95)
        assert found.kl == pytest.approx(0.5, abs=4.0 * found.standard_error)
    assert kl_from_samples(x, y, ties="jitter").kl == kl_from_samples(x, y, ties="jitter").kl
    assert kl_from_samples(x, y, ties="jitter", rng=1).kl != kl_from_samples(x, y, ties="jitter").kl


@pytest.mark.parametrize("method", METHODS)
def test_jitter_over_the_unit_of_most_values(method):
    """Neither a coarser dtype, nor arithmetic, nor a single value hides the tenth to which all were rounded."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.0, 1.0, 3_000).round(1), rng.normal(1.0, 1.0, 3_000).round(1)
    expected = kl_from_samples(x, y, ties="jitter", method=method).kl
    assert expected == pytest.approx(0.5, abs=0.1)
    for one, other in (
        (x.astype(np.float32), y), (x, (y - 0.1) + 0.1), (x, (y + 1000.0) - 1000.0), (x + 1e6, y + 1e6),
        (x * 1.1, y * 1.1), (x * 2.0**-1060, y * 2.0**-1060),
    ):  # fmt: skip
        assert kl_from_samples(one, other, ties="jitter", method=method).kl == pytest.approx(expected, abs=1e-3)
    for single in (0.3000001, 1e17):
        more = np.append(y, single)
        assert kl_from_samples(x, more, ties="jitter", method=method).kl == pytest.approx(expected, abs=0.02)
    vectors = (np.stack([side, rng.normal(size=len(side))], axis=1) for side in (x, y))
    pytest.importorskip("scipy", reason="neighbours of vectors")
    assert kl_from_samples(*vectors, ties="jitter", method=method).kl == pytest.approx(0.5, abs=0.1)


def test_equal_estimates_are_equal():
    x, y = draw(2, 50, 40, 1)
    one, other = kl_from_samples(x, y), kl_from_samples(x, y)
    assert math.isnan(one.standard_error)
    assert one == other
    assert hash(one) == hash(other)
    assert one != kl_from_samples(x, y, k=4)
    assert one != kl_from_samples(x, y, confidence=0.9)
    assert one != one.kl


def test_jitter_leaves_coordinates_without_ties():
    x, y = draw(1, 60, 50, 1)
    assert kl_from_samples(x, y, ties="jitter").kl == kl_from_samples(x, y).kl


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_at_no_distance(method):
    x, y = draw(0, 30, 30, 1)
    with pytest.raises(ValueError, match="1 of 30 points have 1 neighbours at the distance 0"):
        kl_from_samples(x, np.append(y, x[3]), k=1, method="knn")
    with pytest.raises(ValueError, match="30 of 30 points have 2 neighbours"):
        kl_from_samples(np.repeat(x[:10], 3), y, k=2, method="knn")
    with pytest.raises(ValueError, match="neighbours at the distance 0"):
        kl_from_samples(np.ones(9), np.ones(9), method=method)
    with pytest.raises(ValueError, match=r"coordinate 0 has the same value everywhere"):
        kl_from_samples(np.ones(9), np.ones(9), method=method, ties="jitter")


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "text"),
    [
        ([], [], {}, ValueError, "k: the 5-th neighbour needs 6 points in x and 5 in y, not 0 and 0"),
        (range(5), range(9), {}, ValueError, "needs 6 points in x and 5 in y, not 5 and 9"),
        (range(9), range(4), {}, ValueError, "needs 6 points in x and 5 in y, not 9 and 4"),
        (range(9), range(9), {"k": 0}, ValueError, "k: an integer of at least 1, not 0"),
        (range(9), range(9), {"k": 2.0}, ValueError, "k: an integer of at least 1, not 2.0"),
        (range(9), range(9), {"k": True}, ValueError, "k: an integer"),
        (range(9), range(9), {"subsamples": 1}, ValueError, "subsamples: an integer of at least 2"),
        (range(9), range(9), {"method": "kde"}, ValueError, "method: one of 'knn', 'bias-reduced', not 'kde'"),
        (range(9), range(9), {"ties": "drop"}, ValueError, "ties: one of 'raise', 'jitter'"),
        (range(9), range(9), {"confidence": 95}, ValueError, "confidence: a number between 0 and 1, not 95"),
        (range(9), range(9), {"confidence": "high"}, TypeError, "confidence: a real number"),
        (range(9), range(9), {"base": 0}, ValueError, "base"),
        (range(9), range(9), {"base": 0.5}, ValueError, "base: a finite number above 1, not 0.5"),
        ([1.0, np.nan, 3.0], range(9), {}, ValueError, r"x: point 1 is not finite \(\[nan\]\)"),
        (range(9), [1.0, 2.0, np.inf], {}, ValueError, r"y: point 2 is not finite \(\[inf\]\)"),
        (["a"], range(9), {}, TypeError, "x: dtype <U1 is not a real number type"),
        (range(9), [1j], {}, TypeError, "y: dtype complex128"),
        (np.ones((2, 2, 2)), range(9), {}, ValueError, r"x: of shape \(n,\) or \(n, d\), not \(2, 2, 2\)"),
        (1.0, range(9), {}, ValueError, r"x: of shape \(n,\) or \(n, d\), not \(\)"),
        (np.ones((9, 0)), np.ones((9, 0)), {}, ValueError, "x: of shape"),
        (np.ones((9, 2)), range(9), {}, ValueError, "x and y: points of 2 and 1 numbers"),
    ],
)
def test_refusals(x, y, options, error, text):
    with pytest.raises(error, match=text):
        kl_from_samples(x, y, **options)


def test_a_missing_value_is_refused():
    with pytest.raises(ValueError, match="x: point 1 is not finite"):
        kl_from_samples(pd.Series([1, None, 3], dtype="Int64"), range(9))
    with pytest.raises(TypeError, match="x: dtype object"):
        kl_from_samples(pd.Series([1, "a"], dtype=object), range(9))


# --- the table in the documentation ----------------------------------------------------------------------------------


def name(row):
    return row["p"], row["q"], row["numbers a point"], row["method"], row["k"], row["points in each"]


ROWS = {name(row): row for row in json.loads(sample_errors.TABLE.read_text())["errors"]}


def test_the_table_has_every_case():
    assert ROWS.keys() == {
        (case.p, case.q, case.dimensions, method, k, n)
        for case in sample_errors.CASES
        for method in METHODS
        for k in sample_errors.neighbours(case)
        for n in sample_errors.REPEATS
        if n <= case.largest
    }


def test_the_standard_error_is_short_where_there_is_a_change():
    """As the text beside the table says."""
    rows = [row for row in ROWS.values() if row["points in each"] == 1000 and row["true KL"] > 0]
    short = {name(row): 1.0 - row["mean standard error"] / row["standard deviation"] for row in rows}
    tails = [value for key, value in short.items() if key[:2] == ("Normal(0, 2)", "Normal(0, 1)")]
    others = [value for key, value in short.items() if key[:2] != ("Normal(0, 2)", "Normal(0, 1)")]
    assert all(0.0 < value < 0.36 for value in others)
    assert all(value > 0.35 for value in tails)


@pytest.mark.part(12)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", sample_errors.CASES, ids=lambda case: f"{case.p}-{case.q}-{case.dimensions}")
def test_the_table_says_what_happens(case, method):
    """Drawn anew: the mean error, the spread and its estimate, within what 30 repeats can tell."""
    needs_scipy(case.dimensions)
    found = sample_errors.measure(case, 100, method, sample_errors.neighbours(case)[0], 30, seed=99)
    recorded = ROWS[name(found)]
    spread = recorded["standard deviation"]
    assert found["true KL"] == recorded["true KL"]
    assert found["mean error"] == pytest.approx(recorded["mean error"], abs=4.5 * spread * math.sqrt(1 / 30 + 1 / 400))
    assert found["standard deviation"] == pytest.approx(spread, rel=0.5)
    assert found["mean standard error"] == pytest.approx(recorded["mean standard error"], rel=0.2)


@pytest.mark.parametrize(("rng", "error"), [("a", TypeError), (-1, ValueError), (1.5, TypeError)])
def test_a_generator_that_is_none(rng, error):
    x = np.random.default_rng(0).normal(size=(2, 50))
    with pytest.raises(error, match=rf"rng: a numpy\.random\.Generator or a seed, an integer >= 0, not {rng!r}"):
        kl_from_samples(*x, rng=rng)
