"""thresholds(): how often chance goes beyond them; and profiles from histograms and partitions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd
from scipy import stats

from klnumba.tables import Profile, abundance, compare, from_great_expectations, from_histogram, mixtures, thresholds
from klnumba.tables.gaps import Gaps
from tests.reference import interval_coverage as simulation


@pytest.mark.parametrize("method", ["bootstrap", "chi2"])
def test_chance_goes_beyond_as_often_as_was_asked(method):
    """The reference is one sample of many as well, so every round draws both."""
    rng = np.random.default_rng(5)
    share = np.array([0.4, 0.3, 0.2, 0.1])
    smoothing = "jeffreys" if method == "bootstrap" else "none"
    beyond, rounds = 0, 400
    for _ in range(rounds):
        first = Profile.fit(pd.DataFrame({"x": np.repeat(list("abcd"), rng.multinomial(1500, share))}))
        again = first.empty().update(pd.DataFrame({"x": np.repeat(list("abcd"), rng.multinomial(600, share))}))
        limit = thresholds(first, 600, 0.1, method=method, smoothing=smoothing, samples=500)["x"]
        beyond += first.compare(again, smoothing=smoothing).results["x"].values["kl"] > limit
    assert stats.binomtest(beyond, rounds, 0.1).pvalue > 1e-3


def test_law_of_large_samples_and_units():
    frame = pd.DataFrame({"x": list("abcd") * 500, "same": 1.5, "flag": [True, False] * 1000})
    found = thresholds(frame, 1000, 0.05, method="chi2")
    assert found["x"] == pytest.approx(stats.chi2.isf(0.05, 3) * (1 / 2000 + 1 / 1000) / 2)
    assert found["same"] == 0
    drawn = thresholds(frame, 1000, 0.05, samples=4000)
    assert drawn["flag"] == pytest.approx(found["flag"], rel=0.06)
    more = stats.chi2.isf(0.05, 4) * (1 / 2000 + 1 / 1000) / 2  # there may be a category that the reference lacks
    assert found["x"] < drawn["x"] < more
    bits = thresholds(frame, 1000, 0.05, samples=4000, base=2)
    np.testing.assert_allclose(bits * math.log(2), drawn)
    pd.testing.assert_series_equal(drawn, thresholds(frame, 1000, 0.05, samples=4000, rng=np.random.default_rng(0)))
    assert list(thresholds(Profile.fit(frame), 10, columns=["same"], method="chi2").index) == ["same"]


def test_chance_beyond_thresholds_was_measured():
    rows = json.loads(simulation.BEYOND.read_text(encoding="utf-8"))["rows"]
    assert [tuple(row.values())[:-1] for row in rows] == simulation.BEYOND_CASES
    drawn = [row for row in rows if row["method"] == "bootstrap"]
    assert all(row["beyond"] <= 0.10 for row in drawn), drawn
    few = [row for row in drawn if ", else " in row["columns_of"] or row["rows_before"] < 200]
    assert len(few) == 13
    assert all(row["beyond"] <= 0.07 for row in few), few
    normal = [row["beyond"] for row in drawn if row["columns_of"] == "normal numbers"]
    assert all(0.035 <= beyond <= 0.065 for beyond in normal)


QUICK = 8  # of the cases that are measured in seconds
AGAIN = [pytest.param(k, marks=[] if k == QUICK else pytest.mark.slow) for k in range(len(simulation.BEYOND_CASES))]


@pytest.mark.parametrize("place", AGAIN)
def test_what_was_measured_comes_again(place):
    rows = json.loads(simulation.BEYOND.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(AGAIN)
    assert rows[place] == simulation.of_beyond(*simulation.BEYOND_CASES[place])


FAST = [
    ("normal numbers", 300, 3000), ("yes in 1 %", 500, 5000), ("yes in 5 %", 500, 5000), ("five ratings", 100, 2000),
    ("half missing, left out", 500, 1000), ("log-normal numbers in equal bins", 500, 1000),
    ("Cauchy numbers in equal bins", 500, 5000), ("4 codes, else free text in 1 %", 1000, 10_000),
    ("1 code, else free text in 5 %", 300, 3000), ("5 codes, else 50 names in 1 %", 2000, 8000),
    ("15 names", 100, 2000), ("20 names", 20, 20), ("50 names", 10, 1000), ("20 whole numbers", 10, 1000),
]  # fmt: skip


@pytest.mark.part(10)
@pytest.mark.parametrize(("kind", "before", "after"), FAST)
def test_what_the_reference_does_not_tell_is_allowed_for(kind, before, after):
    """How large the shares are that few rows show, what lies beyond its extremes, and in empty bins."""
    beyond = simulation.of_beyond(kind, before, after, "bootstrap", 200)["beyond"]
    assert stats.binomtest(round(200 * beyond), 200, 0.08, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(
    ("kind", "before", "after"), [("200 names", 300, 3000), ("5 codes, else free text in 3 %", 2000, 20_000)]
)
def test_names_that_the_reference_lacks_are_allowed_for(kind, before, after):
    beyond = simulation.of_beyond(kind, before, after, "bootstrap", 8)["beyond"]
    assert stats.binomtest(round(8 * beyond), 8, 0.08, alternative="greater").pvalue > 1e-3


def test_names_seen_once_leave_their_rows_to_others():
    """Ten slips of the pen: in so many rows more, none of them comes again, and a hundred others do."""
    once = pd.DataFrame({"x": [*"ab"] * 495 + [f"slip {k}" for k in range(10)]})
    twice = pd.DataFrame({"x": [*"ab"] * 490 + [f"name {k}" for k in range(10)] * 2})
    profile = Profile.fit(once)
    after = pd.DataFrame({"x": [*"ab"] * 4950 + [f"other {k}" for k in range(100)]})
    kl = profile.compare(after).results["x"].values["kl"]
    limit = thresholds(profile, 10_000)["x"]
    assert 1.0 < limit / kl < 1.3
    assert thresholds(twice, 10_000)["x"] < 0.7 * limit
    flags = pd.DataFrame({"x": [True] + [False] * 999})  # there is no third
    assert thresholds(flags, 1000)["x"] < 0.012


def test_weighted_tables_have_effective_rows():
    rng = np.random.default_rng(12)
    first, second = (pd.DataFrame(rng.normal(size=(800, 200))) for _ in range(2))
    weights = rng.lognormal(size=(2, 800))
    profile = Profile.fit(first, weights=weights[0])
    found = profile.compare(second, weights=(None, weights[1])).to_frame()
    effective = round(found["n_effective_current"][0])
    assert effective == pytest.approx(weights[1].sum() ** 2 / (weights[1] ** 2).sum(), abs=0.5)
    beyond = int((found["kl"].to_numpy() > thresholds(profile, effective, samples=400).to_numpy()).sum())
    assert stats.binomtest(beyond, 200, 0.05, alternative="greater").pvalue > 1e-3


def test_names_that_never_come_again():
    """Every table of new names diverges by the same: the threshold is that number, and is not exceeded."""
    rng = np.random.default_rng(8)
    tables = [pd.DataFrame({"order": rng.integers(0, 10**15, 400).astype(str)}) for _ in range(3)]
    profile = Profile.fit(tables[0])
    limit = thresholds(profile, 400, samples=200)["order"]
    assert limit == thresholds(profile, 400, samples=200)["order"]
    for table in tables[1:]:
        kl = profile.compare(table).results["order"].values["kl"]
        assert kl <= limit <= kl * (1 + 1e-9)


def test_the_law_of_large_samples_draws_nothing():
    frame = pd.DataFrame({"x": ["a", "b"] * 50})
    assert thresholds(frame, 100, 1e-6, method="chi2", samples=10)["x"] == pytest.approx(stats.chi2.isf(1e-6, 1) / 100)


def test_few_rows_make_the_law_of_large_samples_doubtful():
    frame = pd.DataFrame({"rare": [True] + [False] * 499, "often": [True, False] * 250})
    with pytest.warns(UserWarning, match=r"method: 'chi2' has columns with cells of fewer than 5 rows.*\['rare'\]"):
        thresholds(frame, 1000, method="chi2")
    with pytest.warns(UserWarning, match=r"\['often'\]"):
        thresholds(frame, 8, columns=["often"], method="chi2")
    known = from_great_expectations({"values": ["a", "b"], "weights": [0.9, 0.1]}, column="x")
    assert thresholds(known, 50, method="chi2")["x"] == pytest.approx(stats.chi2.isf(0.05, 1) / 100)
    assert thresholds(known, 5000)["x"] == pytest.approx(stats.chi2.isf(0.05, 1) / 10000, rel=0.1)


def test_very_large_tables():
    """The reference alone decides, from some number of rows on."""
    profile = Profile.fit(pd.DataFrame({"x": [*"abbccc"] * 50}))
    assert thresholds(profile, 2**40)["x"] == pytest.approx(thresholds(profile, 10**9)["x"], rel=1e-3)


def test_columns_that_are_not_there_and_columns_apart():
    rng = np.random.default_rng(3)
    profile = Profile.fit(pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)}))
    with pytest.raises(ValueError, match="columns: 'typo' is not in reference"):
        thresholds(profile, 100, columns=["a", "typo"])
    with pytest.raises(ValueError, match=r"base: a finite number above 1, not 0\.5"):
        thresholds(profile, 10, 0.05, base=0.5)
    with pytest.raises(TypeError, match="columns: a sequence of names, not the text 'a'"):
        thresholds(profile, 100, columns="a")
    both, alone = thresholds(profile, 100, samples=200), thresholds(profile, 100, samples=200, columns=["b"])
    assert both["b"] == alone["b"]
    drawn = [thresholds(profile, 100, samples=200, columns=one, rng=np.random.default_rng(4)) for one in (["b"], None)]
    assert drawn[0]["b"] == drawn[1]["b"] != both["b"]


def test_rates_of_rare_categories():
    """Of 2,000 categories that are equally frequent, the sample has 0 to 8 rows each."""
    rows = np.random.default_rng(0).poisson(1.5, 2000).astype(float)
    (law,) = abundance.fit([rows])
    assert law.unseen == pytest.approx(2000 * math.exp(-1.5) * 1.5, rel=0.1)
    for count in (1, 2, 3):
        assert law.mean(np.array([count])) == pytest.approx(1.5, rel=0.2)
    assert law.mean(np.array([800])) == 800


def test_rates_are_those_of_robbins():
    """Of very many categories, the rate given so many rows follows from the next count: (x + 1) f(x + 1) / f(x)."""
    rows = np.random.default_rng(1).poisson(0.6, 400_000).astype(float)
    number = np.bincount(rows.astype(int))
    (law,) = abundance.fit([rows])
    assert law.unseen == pytest.approx(number[1], rel=0.01)
    for count in (1, 2):
        robbins = (count + 1) * number[count + 1] / number[count]
        assert law.mean(np.array([count])) == pytest.approx(robbins, rel=0.02)
        assert law.draw(np.array([float(count)]), 4000, np.random.default_rng(2)).mean() == pytest.approx(0.6, rel=0.03)


def test_samples_drawn_again_are_like_the_first():
    rng = np.random.default_rng(3)
    rows = rng.poisson(rng.gamma(0.5, 4.0, 3000)).astype(float)
    (law,) = abundance.fit([rows])
    sizes = [law.again(rng)[1].size for _ in range(50)]
    assert law.categories == ((rows > 0) & (rows <= abundance.RARE)).sum()
    assert np.mean(sizes) == pytest.approx(law.categories, rel=0.02)
    assert 0.6 < np.std(sizes) / law.categories**0.5 < 1.5
    _, again, unseen = law.again(rng)
    assert again.min() == 1
    for count in (1, 2, 5):
        assert (again == count).sum() == pytest.approx((rows == count).sum(), abs=4 * (rows == count).sum() ** 0.5)
    assert unseen == pytest.approx(law.unseen, rel=0.1)
    assert law.unseen == pytest.approx((rows == 1).sum(), rel=0.1)


def test_most_likely_weights():
    """No law has a slope above one: what is found is the most likely mixture of all."""
    rng = np.random.default_rng(4)
    for size in (1, 3, 20):
        likely = rng.random((size, 12)) ** 8
        share = rng.dirichlet(np.ones(size), 5)
        weights = mixtures.most_likely(likely, share)
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
        assert weights.min() >= 0
        assert ((share / (weights @ likely.T)) @ likely).max() <= 1 + 2 * mixtures.GAP
    two = mixtures.most_likely(np.eye(2), np.array([[0.3, 0.7]]))
    np.testing.assert_allclose(two, [[0.3, 0.7]], atol=1e-6)


def test_gaps_between_bins():
    """Five neighbours in three bins: each pair is one row, wherever it lies."""
    found = Gaps.of(np.array([0.0, 2, 0, 0, 1, 3, 0]), fitted=True)
    assert found.within.tolist() == [0, 1, 0, 0, 0, 2, 0]
    drawn = found.draw(20000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), [0, 1 / 6, 1 / 3, 1 / 3, 2 / 3, 1 / 2, 0], atol=0.02)
    assert drawn.sum(axis=1).var() == pytest.approx(2, rel=0.05)
    assert Gaps.of(np.array([0.0, 2, 0, 1, 0]), fitted=False).within.tolist() == [0, 1.5, 0, 0.5, 0]
    assert not Gaps.of(np.zeros(3), fitted=True).draw(5, np.random.default_rng(0)).any()
    one = Profile.fit(pd.DataFrame({"x": [0.5]}), bins={"x": [0.0, 1.0, 2.0]})
    assert 0 <= thresholds(one, 10)["x"] < math.inf


def test_missing_values_may_be_left_out():
    frame = pd.DataFrame({"x": ["a", "b", None, None] * 100, "none": [math.nan] * 400})
    kept, left = (thresholds(frame, 50, method="chi2", missing=rule) for rule in ("cell", "drop"))
    assert kept["x"] == pytest.approx(stats.chi2.isf(0.05, 2) * (1 / 400 + 1 / 50) / 2)
    assert left["x"] == pytest.approx(stats.chi2.isf(0.05, 1) * (1 / 200 + 1 / 25) / 2)
    assert math.isnan(left["none"])
    drawn = thresholds(frame, 2000, missing="drop")["x"]
    assert drawn == pytest.approx(thresholds(frame.dropna(subset="x"), 1000)["x"], rel=0.1)
    assert thresholds(frame, 1, missing="drop", alpha=0.9)["x"] == 0  # the one row may be missing


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n": 0}, "n: an integer from 1 to"),
        ({"n": 2.5}, "n: an integer from 1 to"),
        ({"n": 2**40 + 1}, r"n: an integer from 1 to 2\*\*40, not 1099511627777"),
        ({"alpha": 0}, "alpha: a number between"),
        ({"method": "guess"}, "method: one of"),
        ({"samples": 3}, "samples: an integer from"),
        ({"missing": "keep"}, "missing: one of"),
        ({"smoothing": "x"}, "smoothing: one of"),
        ({"reference": Profile.fit(pd.DataFrame({"x": [1]})), "bins": 3}, "bins: a profile has its cells already"),
    ],
)
def test_bad_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        thresholds(**({"reference": pd.DataFrame({"x": [1]}), "n": 10} | options))


# --- from histograms ------------------------------------------------------------------------------------------------


def test_a_histogram_is_a_profile():
    values = np.random.default_rng(0).normal(size=900)
    counts, edges = np.histogram(values, 8)
    made = from_histogram(edges, counts, column="x")
    fitted = Profile.fit(pd.DataFrame({"x": values}), bins={"x": edges})
    assert made == fitted
    assert made + fitted.empty() == fitted
    whole = from_histogram([0, 1, 2], [3, 4], below=1, above=2, missing=5)
    assert whole.tallies["value"].counts.tolist() == [1, 3, 4, 2, 0, 0, 5]
    assert whole.tallies["value"].rows == 15


@pytest.mark.parametrize(
    ("edges", "counts", "text"),
    [
        ([0, 1], [1, 2], "counts: one a bin"),
        ([1, 0], [1], "edges increase"),
        ([0, 1], [-1], "from 0 on"),
        ([0, 1], [math.nan], "finite numbers"),
        ([0, 1], [0.5], "whole numbers"),
    ],
)
def test_bad_histograms_are_refused(edges, counts, text):
    with pytest.raises(ValueError, match=text):
        from_histogram(edges, counts)


# --- from Great Expectations ----------------------------------------------------------------------------------------


def reverse(profile, values):
    found = profile.compare(pd.DataFrame({"value": values}), smoothing="none", missing="drop")
    return found.results["value"].values["kl_reverse"]


def test_a_partition_of_numbers():
    partition = {"bins": [0.0, 1.0, 2.0], "weights": [0.6, 0.2], "tail_weights": [0.15, 0.05]}
    values = [-1.0, 0.5, 0.5, 1.0, 2.0, 3.0, math.nan]
    observed, expected = np.array([1, 2, 2, 1]) / 6, np.array([0.15, 0.6, 0.2, 0.05])
    truth = (observed * np.log(observed / expected)).sum()
    assert reverse(from_great_expectations(partition), values) == pytest.approx(truth, rel=1e-14)
    assert reverse(from_great_expectations(partition, n=500), values) == pytest.approx(truth, rel=1e-12)
    assert Profile.from_json(from_great_expectations(partition).to_json()) == from_great_expectations(partition)


def test_holdouts_and_infinite_ends():
    partition = {"bins": [0.0, 1.0, 2.0, 3.0], "weights": [0.5, 0.5, 0.0]}
    made = from_great_expectations(partition, tail_weight_holdout=0.1, internal_weight_holdout=0.2)
    np.testing.assert_allclose(made.tallies["value"].counts, [0.05, 0.35, 0.35, 0.2, 0.05, 0, 0, 0])
    half = {"bins": [-math.inf, 1.0, 2.0], "weights": [0.5, 0.5]}
    made = from_great_expectations(half, tail_weight_holdout=0.1)
    np.testing.assert_allclose(made.tallies["value"].counts, [0.45, 0.45, 0.1, 0, 0, 0])
    both = from_great_expectations({"bins": [-math.inf, 1.0, 2.0, math.inf], "weights": [0.2, 0.3, 0.5]})
    counted = both.empty().update(pd.DataFrame({"value": [0.9, 1.0, np.nextafter(2.0, 0), 2.0, 9.0]}))
    assert counted.tallies["value"].counts[:3].tolist() == [1, 2, 2]
    words = from_great_expectations({"values": ["a", "b"], "weights": [0.5, 0.5]}, tail_weight_holdout=0.2)
    assert words.tallies["value"].counts.tolist() == [0.4, 0.4, 0.2, 0.0]


def test_a_known_reference_has_a_one_sample_test():
    made = from_great_expectations({"values": ["a", "b", "c"], "weights": [0.5, 0.3, 0.2]})
    counts = np.array([60, 25, 15])
    found = made.compare(pd.DataFrame({"value": np.repeat(list("abc"), counts)})).results["value"].values
    expected = np.array([50, 30, 20])
    assert found["g"] == pytest.approx(stats.power_divergence(counts, expected, lambda_="log-likelihood").statistic)
    assert found["dof"] == 2
    assert 0 <= found["ci_low"] <= found["ci_high"] < math.inf


@pytest.mark.parametrize(
    ("partition", "options", "text"),
    [
        ({}, {}, "partition: a mapping"),
        ({"bins": [0, 1], "values": [1], "weights": [1]}, {}, "partition: a mapping"),
        ({"bins": [0, 1], "weights": [0.5]}, {}, "add up to 0.5"),
        ({"bins": [1, 0], "weights": [1.0]}, {}, "bins increase"),
        ({"values": ["a", "a"], "weights": [0.5, 0.5]}, {}, "values differ"),
        ({"values": ["a"], "weights": [1.0]}, {"internal_weight_holdout": 0.1}, "not for categories"),
        ({"bins": [0, 1], "weights": [1.0], "tail_weights": [0, 0]}, {"tail_weight_holdout": 0.1}, "has tail_weights"),
        ({"bins": [0, 1], "weights": [1.0]}, {"tail_weight_holdout": 2}, "from 0 to 1"),
        ({"bins": [-math.inf, 0, 1, math.inf], "weights": [0.5, 0.25, 0.25]}, {"tail_weight_holdout": 0.1}, "infinity"),
        ({"bins": [0, 1], "weights": [1.0]}, {"n": 0}, "n: a positive"),
        ({"bins": [0, 1, 2], "weights": [1.0, 0.0]}, {"tail_weight_holdout": 0.7, "internal_weight_holdout": 0.7},
         "tail_weight_holdout, internal_weight_holdout: at most 1 together, not 1.4"),
        ({"values": ["a"], "weights": [0.5], "tail_weights": [0.25, 0.25]}, {}, "tail_weights go with bins"),
        ({"values": None, "weights": [1.0]}, {}, "partition: 'values' are a sequence, not None"),
    ],
)  # fmt: skip
def test_bad_partitions_are_refused(partition, options, text):
    with pytest.raises(ValueError, match=text):
        from_great_expectations(partition, **options)


def test_compare_takes_such_a_profile():
    made = from_great_expectations({"values": [1, 2], "weights": [0.5, 0.5]}, column="n")
    table = compare(made, pd.DataFrame({"n": [1, 2, 2, 1]}), smoothing="none").to_frame()
    assert table.loc[0, "kl"] == 0
