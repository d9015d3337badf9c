"""The interval holds the truth as often as it says, and the p-value is uniform when nothing has changed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd
from scipy import stats

from klnumba.tables import Profile, compare, interval
from tests.reference import interval_coverage as simulation


@pytest.mark.part(2)
@pytest.mark.parametrize(("cells", "rows"), [(5, 500), (20, 500)])
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5])
def test_interval_covers_and_p_value_is_uniform(cells, rows, shift):
    found, truth = simulation.shifted(cells, rows, shift)
    covered = ((found["ci_low"] <= truth) & (truth <= found["ci_high"])).mean()
    assert 0.93 <= covered <= 0.97
    if shift == 0:
        assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3
    else:
        assert abs(found["kl_corrected"].mean() - truth) < 0.25 * abs(found["kl"].mean() - truth) + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "rows"), simulation.CASES)
@pytest.mark.parametrize("shift", simulation.SHIFTS)
def test_interval_covers_everywhere(cells, rows, shift):
    found, truth = simulation.shifted(cells, rows, shift)
    assert 0.93 <= simulation.row(found, truth)["covered"] <= 0.97
    if shift == 0:
        assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3


def test_what_the_documentation_says_was_measured():
    facts = json.loads(simulation.DATA.read_text(encoding="utf-8"))
    cases = [(cells, rows) for cells, rows in simulation.CASES for _ in simulation.SHIFTS]
    assert [(row["cells"], row["rows"]) for row in facts["rows"]] == cases
    assert all(0.93 <= row["covered"] <= 0.97 for row in facts["rows"])
    assert facts["rows"][0] == simulation.of_case(5, 500, 0.0)


def test_a_cell_that_hardly_ever_has_a_row():
    """There no law of large samples holds; the interval is still not far from what it says."""
    rows = json.loads(simulation.RARE.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(simulation.RARE_CASES)
    assert all(0.91 <= row["covered"] <= 0.98 for row in rows)
    assert rows[1] == simulation.of_rare_case(*simulation.RARE_CASES[1])


@pytest.mark.part(2)
@pytest.mark.parametrize("bins", ["auto", "quantile", "sturges", 5])
@pytest.mark.parametrize(("before", "after"), [(1000, 800), (500, 5000), (5000, 500), (100, 1000)])
def test_p_value_over_fitted_bins(bins, before, after):
    """The bins come from the reference itself, which has nothing below the first and above the last."""
    rng = np.random.default_rng(7)
    found = compare(*(pd.DataFrame(rng.normal(size=(rows, 400))) for rows in (before, after)), bins=bins).to_frame()
    assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3
    for wrong in (found["p_value"] < 0.05, found["ci_low"] > 0):
        assert stats.binomtest(int(wrong.sum()), 400, 0.05, alternative="greater").pvalue > 1e-3


def test_numbers_in_fitted_bins():
    """2,000 columns of normal numbers: the interval holds 0 and the truth, the p-value is uniform."""
    rows = json.loads(simulation.NUMERIC.read_text(encoding="utf-8"))["rows"]
    assert [(row["bins"], row["rows_before"], row["rows_after"], row["moved_by"]) for row in rows] == [
        *simulation.NUMERIC_CASES
    ]
    assert all(0.93 <= row["covered"] <= 0.97 for row in rows)
    assert rows[2] == simulation.of_moved(*simulation.NUMERIC_CASES[2])  # 5 bins, 500 and 5000 rows


@pytest.mark.slow
@pytest.mark.parametrize("case", simulation.NUMERIC_CASES, ids=str)
def test_numbers_in_fitted_bins_everywhere(case):
    found, truth = simulation.moved(*case)
    assert 0.93 <= ((found["ci_low"] <= truth) & (truth <= found["ci_high"])).mean() <= 0.97
    if not case[-1]:
        assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3


def test_one_bin_and_what_lies_outside():
    """Two of the reference's numbers make the bin, so that another sample has some outside."""
    rng = np.random.default_rng(7)
    for before, after in ((500, 5000), (30, 300), (12, 9)):
        frames = [pd.DataFrame(rng.normal(size=(rows, 400))) for rows in (before, after)]
        found = compare(*frames, bins=1).to_frame()
        for wrong in (found["p_value"] < 0.05, found["ci_low"] > 0):
            assert stats.binomtest(int(wrong.sum()), 400, 0.05, alternative="greater").pvalue > 1e-3
    far = compare(pd.DataFrame({"x": rng.normal(size=90)}), pd.DataFrame({"x": rng.normal(9.0, size=90)}), bins=1)
    assert far.to_frame().loc[0, "p_value"] < 1e-9


def test_everything_beyond_the_range():
    """What lies beyond counts for itself where chance would not bring so much there."""
    for values in ([5.0] * 60, [*np.arange(0.5, 60.5)]):
        before, after = pd.DataFrame({"x": values}), pd.DataFrame({"x": np.array(values) + 100.0})
        row = compare(before, after).to_frame().loc[0]
        assert row["p_value"] < 1e-12
        assert row["ci_low"] > 1
    few = compare(pd.DataFrame({"x": [5.0] * 4}), pd.DataFrame({"x": [6.0] * 4})).to_frame().loc[0]
    assert few["p_value"] == pytest.approx(stats.fisher_exact([[4, 0], [0, 4]]).pvalue)


def test_edges_that_are_given_are_no_sample():
    """Of these, an empty outer cell is news."""
    before = pd.DataFrame({"x": [0.5] * 50 + [1.5] * 50})
    after = pd.DataFrame({"x": [0.5] * 46 + [1.5] * 43 + [2.5] * 11})
    given, fitted = (compare(before, after, bins=bins).to_frame().loc[0] for bins in ([0, 1, 2], 2))
    assert given["p_value"] < 0.05 < fitted["p_value"]


def test_small_and_weighted_samples_stay_in_order():
    rng = np.random.default_rng(3)
    before, after = (pd.DataFrame(rng.integers(0, 6, (rows, 300))) for rows in (12, 9))
    found = compare(before, after, weights=(rng.random(12), rng.random(9))).to_frame()
    assert (found["ci_low"] <= found["ci_high"]).all()
    assert (found["ci_low"] >= 0).all()
    assert found["p_value"].between(0, 1).all()
    assert (found["standard_error"].isna() | (found["standard_error"] > 0)).all()
    few = compare(*(pd.DataFrame({"x": [*text]}) for text in ("aab", "abb"))).to_frame().loc[0]
    assert (few["ci_low"], few["ci_high"]) == (0.0, math.inf)  # three rows say nothing
    assert math.isnan(few["kl_corrected"])


def test_a_vanished_cell_leaves_the_upper_end_open():
    before = pd.DataFrame({"x": ["a"] * 900 + ["b"] * 100})
    few, many = (pd.DataFrame({"x": ["a"] * rows}) for rows in (30, 300))
    ends = [compare(before, after).to_frame().loc[0, "ci_high"] for after in (few, many)]
    assert ends[0] < math.inf  # 3 rows of b would be expected, and none is no surprise
    assert ends[1] == math.inf


@pytest.mark.parametrize("start", [0, 3000])
def test_names_that_never_come_again(start):
    """Numbers of orders, say: each is new, which is no change."""
    before, after = (
        pd.DataFrame({place: [f"{place}-{k}" for k in range(at, at + 3000)] for place in range(40)})
        for at in (0, start)
    )
    found = compare(before, after).to_frame()
    for wrong in (found["p_value"] < 0.05, found["ci_low"] > 0):
        assert stats.binomtest(int(wrong.sum()), 40, 0.05, alternative="greater").pvalue > 1e-3
    assert (found["kl_new"] > 0.1).all() == bool(start)


@pytest.mark.part(6)
@pytest.mark.parametrize(
    ("names", "power", "before", "after", "columns"),
    [(300, 0.0, 1000, 1000, 400), (5000, 0.0, 3000, 2000, 200), (5000, 0.0, 30_000, 30_000, 20),
     (20_000, 1.1, 3000, 2000, 200), (20_000, 1.1, 20_000, 30_000, 40)],
)  # fmt: skip
def test_many_names_make_no_false_alarm(names, power, before, after, columns):
    """Those that have a cell are those that the reference happened to have, or to have most often."""
    rng = np.random.default_rng(0)
    share = np.arange(1.0, names + 1) ** -power
    edges = np.cumsum(share / share.sum())[:-1]
    frames = [
        pd.DataFrame({f"c{k}": np.searchsorted(edges, rng.random(rows)).astype(str) for k in range(columns)})
        for rows in (before, after)
    ]
    found = compare(*frames).to_frame()
    for wrong in (found["p_value"] < 0.05, found["ci_low"] > 0):
        assert stats.binomtest(int(wrong.sum()), columns, 0.05, alternative="greater").pvalue > 1e-3


def test_a_change_among_many_names_is_found():
    rng = np.random.default_rng(0)
    names = np.array([f"{k}" for k in range(800)])
    before, after = rng.choice(names, 6000), rng.choice(names, 6000)
    new = after.copy()
    new[:300] = "new"  # a twentieth of the rows, among categories that are all rare
    often = after.copy()
    often[:300] = "17"
    for change in (new, often):
        row = compare(pd.DataFrame({"x": before}), pd.DataFrame({"x": change})).to_frame().loc[0]
        assert row["p_value"] < 1e-9
        assert row["ci_low"] > 0


def changed(kind):
    """Two columns of many names, of which much is one name in the second."""
    rng = np.random.default_rng(0)
    names = np.arange(5000).astype(str)
    before, after = rng.choice(names, 30_000), rng.choice(names, 30_000).astype(object)
    if kind == "new":
        after[:15_000] = "new"
    elif kind == "old":
        named = Profile.fit(pd.DataFrame({"x": before})).cells["x"].place
        after[:15_000] = next(name for name in names if name not in named)
    elif kind == "unique":
        before, after = (np.arange(30_000).astype(str).astype(object) for _ in range(2))
        after[:15_000] = "one"
    else:
        before, after = np.arange(3000).astype(str), rng.choice(["a", "b", "c", "d", "e"], 3000)
    return pd.DataFrame({"x": before}), pd.DataFrame({"x": after})


@pytest.mark.parametrize("kind", ["new", "old", "unique", "few"])
@pytest.mark.parametrize("dtype", ["object", "string[pyarrow]"])
def test_one_name_among_very_many_is_found(kind, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="Arrow columns")
    before, after = (frame.astype(dtype) for frame in changed(kind))
    row = compare(before, after).to_frame().loc[0]
    assert row["p_value"] < 1e-100
    assert row["ci_low"] > 0.5
    ones = compare(before, after, weights=(None, np.ones(len(after)))).to_frame().loc[0]
    for name in ("p_value", "ci_low", "ci_high", "kl_corrected", "g", "dof"):
        assert ones[name] == row[name]


def test_weights_of_one_change_nothing():
    rng = np.random.default_rng(0)
    names = np.arange(900).astype(str)
    before, after = rng.choice(names, 6000), rng.choice(names, 6000).astype(object)
    after[:2400] = "new"
    frames = pd.DataFrame({"x": before}), pd.DataFrame({"x": after})
    plain, ones = (compare(*frames, weights=w).to_frame().loc[0] for w in (None, (np.ones(6000), np.ones(6000))))
    assert plain["p_value"] < 1e-100
    assert ones["p_value"] == plain["p_value"]
    assert ones["ci_low"] == plain["ci_low"]


def test_a_new_category_of_a_small_sample():
    """Of 10,000 rows none had it, of 500 twenty have."""
    rng = np.random.default_rng(0)
    before = pd.DataFrame({"x": rng.choice(["a", "b", "c"], 10_000)})
    after = pd.DataFrame({"x": [*rng.choice(["a", "b", "c"], 480), *["d"] * 20]})
    assert compare(before, after).to_frame().loc[0, "p_value"] < 1e-12


def test_large_samples_take_the_approximation(monkeypatch):
    """Around the limit both laws give one interval."""
    rng = np.random.default_rng(3)
    before, after = rng.multinomial(20_000, [0.3, 0.3, 0.4], 50), rng.multinomial(20_000, [0.2, 0.3, 0.5], 50)
    n = np.full(50, 20_000.0)
    ends = []
    for limit in (0.0, math.inf):
        monkeypatch.setattr(interval, "LARGE", limit)
        found = interval.estimate(before.astype(float), n, after.astype(float), n, 0.95)
        ends.append(np.stack([found["ci_low"], found["ci_high"]]))
    np.testing.assert_allclose(*ends, rtol=2e-5)


def test_confidence_orders_the_intervals():
    rng = np.random.default_rng(3)
    before, after = (pd.DataFrame({"x": rng.normal(shift, size=500)}) for shift in (0, 0.3))
    ends = [
        compare(before, after, confidence=level).to_frame().loc[0, ["ci_low", "ci_high"]] for level in (0.5, 0.9, 0.99)
    ]
    lows, highs = zip(*ends, strict=True)
    assert lows[0] > lows[1] > lows[2]
    assert highs[0] < highs[1] < highs[2]


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9])
def test_the_interval_holds_its_estimate(confidence):
    """Where a cell has vanished, half of the estimates would lie below the lower end of an interval of one half."""
    rng = np.random.default_rng(1)
    p, q = (rng.dirichlet(np.full(8, 0.7), 500) for _ in range(2))
    before, after = (np.array([rng.multinomial(200, row) for row in side], float) for side in (p, q))
    n = np.full(500, 200.0)
    found = interval.estimate(before, n, after, n, confidence)
    assert (found["ci_low"] <= np.maximum(found["kl_corrected"], 0)).all()
    assert (found["kl_corrected"] <= found["ci_high"]).all()


@pytest.mark.parametrize("rows", range(12))
def test_more_confidence_holds_less(rows):
    """Also around the number of rows from which on an empty cell leaves the interval open."""
    before = pd.DataFrame({"x": ["a"] * 100 + ["b"] * rows})
    after = pd.DataFrame({"x": ["a"] * 100})
    ends = [compare(before, after, confidence=level).to_frame().loc[0] for level in (0.2, 0.5, 0.9, 0.95, 0.99, 0.999)]
    lows, highs = [row["ci_low"] for row in ends], [row["ci_high"] for row in ends]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
