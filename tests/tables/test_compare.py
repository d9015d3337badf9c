"""compare(): numbers against the slow reference and SciPy, contributions, parts, options."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

import klnumba as kl
from klnumba.tables import Chunks, Comparison, Profile, compare
from klnumba.tables.cells import GROUPS
from klnumba.tables.statistics import adjusted
from tests.reference import tables as reference


def frame(rows, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    number = rng.normal(shift, 1 + shift, rows)
    number[rng.random(rows) < 0.03 + shift / 5] = math.nan
    number[: int(3 * shift * 10)] = math.inf
    return pd.DataFrame({
        "number": number,
        "few": rng.integers(0, 6 + int(10 * shift), rows),
        "word": rng.choice(["a", "b", "c", "d"][: 3 + (shift > 0)], rows),
        "same": 7.5,
        "flag": rng.random(rows) < 0.5 + shift,
    })  # fmt: skip


BEFORE, AFTER = frame(3000, 0), frame(2000, 1, 0.2)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(BEFORE, AFTER)


def rows_of(comparison: Comparison) -> pd.DataFrame:
    return comparison.to_frame().set_index("column")


def test_one_row_a_column_in_order(found):
    table = found.to_frame()
    assert table["column"].tolist() == list(BEFORE)
    assert (table["status"] == "ok").all()
    assert table["kind"].tolist() == ["number", "number", "category", "number", "boolean"]
    assert table["n_reference"].tolist() == [3000] * 5
    assert table["n_current"].tolist() == [2000] * 5


@pytest.mark.parametrize("smoothing", ["jeffreys", "laplace", 0.25, "perks"])
def test_divergences_and_parts_against_the_slow_reference(smoothing):
    comparison = compare(BEFORE, AFTER, smoothing=smoothing)
    table = rows_of(comparison)
    for name, result in comparison.results.items():
        a, b = result.reference.counts.tolist(), result.current.counts.tolist()
        used = [x + y > 0 for x, y in zip(a, b, strict=True)]
        added = {"jeffreys": 0.5, "laplace": 1.0, "perks": 1 / sum(used)}.get(smoothing, smoothing)
        p, q = reference.smoothed(a, used, added), reference.smoothed(b, used, added)
        row = table.loc[name]
        assert row["kl"] == pytest.approx(float(reference.kl(p, q)), rel=1e-14, abs=1e-300)
        assert row["kl_reverse"] == pytest.approx(float(reference.kl(q, p)), rel=1e-14, abs=1e-300)
        assert row["psi"] == pytest.approx(float(reference.kl(p, q) + reference.kl(q, p)), rel=1e-14, abs=1e-300)
        middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        js = (reference.kl(p, middle) + reference.kl(q, middle)) / 2
        assert row["js"] == pytest.approx(float(js), rel=1e-14, abs=1e-300)
        parts = reference.parts(p, q, [GROUPS[g] for g in result.cells.groups()])
        for part, column in zip(("missing", "tails", "new", "within"),
                                ("kl_missing", "kl_tails", "kl_new", "kl_reshaping"), strict=True):  # fmt: skip
            assert row[column] == pytest.approx(float(parts[part]), rel=1e-12, abs=1e-17)


def test_kl_is_the_array_functions_own(found):
    for name, result in found.results.items():
        used = result.used
        a, b = result.reference.counts[used] + 0.5, result.current.counts[used] + 0.5
        assert rows_of(found).loc[name, "kl"] == pytest.approx(kl.kl_divergence(a, b), rel=1e-15)


@pytest.mark.parametrize("base", [None, 2])
def test_contributions_and_parts_add_up(base):
    comparison = compare(BEFORE, AFTER, base=base)
    table, cells = rows_of(comparison), comparison.contributions
    sums = cells.groupby("column", sort=False)["contribution"].sum()
    np.testing.assert_allclose(sums.loc[table.index], table["kl"], rtol=1e-12, atol=1e-16)
    parts = table[["kl_missing", "kl_tails", "kl_new", "kl_reshaping"]]
    assert (parts >= 0).all(axis=None)
    np.testing.assert_allclose(parts.sum(axis=1), table["kl"], rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(cells.groupby("column")[["p_reference", "p_current"]].sum(), 1.0, rtol=1e-14)
    for name, row in table.iterrows():
        own = cells[cells["column"] == name]
        assert own.loc[own["contribution"].idxmax(), "cell"] == row["largest_cell"]
    if base:
        nats = rows_of(compare(BEFORE, AFTER))
        for name in ("kl", "js", "psi", "ci_low", "ci_high", "standard_error", "kl_tails"):
            np.testing.assert_allclose(table[name] * math.log(2), nats[name], rtol=1e-15, err_msg=name)
        np.testing.assert_array_equal(table[["g", "p_value"]], nats[["g", "p_value"]])


def test_the_test_is_that_of_independence(found):
    stats = pytest.importorskip("scipy.stats", reason="peer")
    rng = np.random.default_rng(4)
    a, b = (pd.DataFrame({"x": rng.choice(list("abcde"), n)}) for n in (800, 500))
    row = rows_of(compare(a, b)).loc["x"]
    counts = np.stack([side["x"].value_counts().sort_index() for side in (a, b)])
    theirs = stats.chi2_contingency(counts, lambda_="log-likelihood", correction=False)
    assert row["g"] == pytest.approx(theirs.statistic, rel=1e-11)
    assert row["dof"] == theirs.dof
    total = counts.sum()
    factor = 1 + (total * (1 / counts.sum(axis=1)).sum() - 1) * (total * (1 / counts.sum(axis=0)).sum() - 1) / (
        6 * total * theirs.dof
    )
    assert row["p_value"] == pytest.approx(stats.chi2.sf(theirs.statistic / factor, theirs.dof), rel=1e-10)


def test_test_and_interval_do_not_know_the_smoothing():
    names = ["kl_corrected", "standard_error", "ci_low", "ci_high", "g", "dof", "p_value"]
    tables = [rows_of(compare(BEFORE, AFTER, smoothing=rule))[names] for rule in ("none", "laplace", "james-stein")]
    for other in tables[1:]:
        pd.testing.assert_frame_equal(tables[0], other)


def test_no_smoothing_is_exact_about_zeros():
    a, b = pd.DataFrame({"x": list("aabb")}), pd.DataFrame({"x": list("aaaa")})
    row = rows_of(compare(a, b, smoothing="none")).loc["x"]
    assert row["kl"] == math.inf
    assert row["kl_reverse"] == pytest.approx(math.log(2))
    assert row["kl_reshaping"] == math.inf
    assert row["status"] == "ok"
    lost = rows_of(compare(pd.DataFrame({"x": [1.0, None]}), pd.DataFrame({"x": [1.0, 1.0]}), smoothing="none"))
    assert lost.loc["x", "kl_missing"] == math.inf
    assert lost.loc["x", "kl_reshaping"] == 0


def test_equal_tables_differ_by_nothing():
    table = rows_of(compare(BEFORE, BEFORE))
    for name in ("kl", "kl_reverse", "js", "psi", "g", "ci_low"):
        assert (table[name] == 0).all(), name
    assert (table["p_value"] == 1).all()


def test_james_stein_is_the_published_shrinkage():
    a, b = pd.DataFrame({"x": list("aaaaaabbbc")}), pd.DataFrame({"x": list("aabbbbcccc")})
    result = compare(a, b, smoothing="james-stein").results["x"]
    for counts, found in ((np.array([6, 3, 1]), result.p), (np.array([2, 4, 4]), result.q)):
        share = counts / 10
        weight = (1 - (share**2).sum()) / (9 * ((1 / 3 - share) ** 2).sum())
        weight = min(1.0, weight)
        np.testing.assert_allclose(found[:3], weight / 3 + (1 - weight) * share, rtol=1e-14)


def test_missing_may_be_left_out():
    a, b = pd.DataFrame({"x": [1.5, 2.5, None, None]}), pd.DataFrame({"x": [1.5, 2.5, 2.5, 1.5]})
    kept, dropped = (rows_of(compare(a, b, missing=rule)).loc["x"] for rule in ("cell", "drop"))
    assert kept["kl_missing"] > 0
    assert kept["n_effective_reference"] == 4
    assert dropped["kl"] == 0
    assert dropped["n_effective_reference"] == 2


def test_dtypes_of_the_table_do_not_depend_on_what_was_found():
    good, bad = pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [1j, 2j]})
    expected = compare(good, good).to_frame().dtypes
    for found in (compare(good, bad), compare(bad, good), compare(good.iloc[:0], good)):
        kinds = found.to_frame().dtypes
        numbers = expected.drop(["column", "kind", "largest_cell", "status"])
        assert kinds[numbers.index].tolist() == numbers.tolist()


def test_bad_columns_have_a_status_and_abort_nothing():
    a = pd.DataFrame({"x": [1.0, 2.0], "kind": [1.5, 2.5], "gone": [1, 2], "list": [[1], [2]], "none": [math.nan] * 2})
    b = pd.DataFrame({"x": [1.0, 2.0], "kind": ["p", "q"], "list": [[1], [2]], "extra": [1, 2], "none": [1.0, 2.0]})
    table = rows_of(compare(a, b))
    assert table.loc["x", "status"] == "ok"
    assert table.loc["kind", "status"] == "holds categories, but the reference numbers"
    assert table.loc["gone", "status"] == "is not in current"
    assert "cannot be told apart" in table.loc["list", "status"]
    assert table.loc["extra", "status"] == "is not in reference"
    assert table.loc["none", "status"] == "ok"
    nothing = rows_of(compare(a, b, missing="drop"))
    assert nothing.loc["none", "status"] == "reference has no values"
    assert math.isnan(nothing.loc["none", "kl"])
    assert table.drop(["x", "none"])["kl"].isna().all()


def test_columns_are_chosen_in_order():
    assert compare(BEFORE, AFTER, columns=["word", "number"]).to_frame()["column"].tolist() == ["word", "number"]


def test_tiny_and_empty_tables():
    one, none = pd.DataFrame({"x": [1.0], "w": ["a"]}), pd.DataFrame({"x": [], "w": pd.Series([], dtype=str)})
    assert (rows_of(compare(one, one))["kl"] == 0).all()
    table = rows_of(compare(one, none.astype({"x": float})))
    assert (table["status"] == "current has no values").all()
    nothing = compare(pd.DataFrame(index=range(3)), pd.DataFrame(index=range(3)))
    assert nothing.rows() == []
    assert list(nothing.to_frame()) == list(compare(one, one).to_frame())
    assert nothing.contributions.empty
    assert nothing.by_evidence() == []


def test_inputs_are_never_changed():
    a, b = BEFORE.copy(), AFTER.copy()
    for name in a:
        if isinstance(a[name].dtype, np.dtype):
            a[name].to_numpy().flags.writeable = False
    compare(a, b)
    pd.testing.assert_frame_equal(a, BEFORE)
    pd.testing.assert_frame_equal(b, AFTER)


def test_adjusted_p_values():
    rng = np.random.default_rng(2)
    p = rng.random(40) ** 3
    np.testing.assert_allclose(adjusted(p, "bh"), reference.benjamini_hochberg(p.tolist()), rtol=1e-14)
    gaps = np.insert(p, 7, math.nan)
    np.testing.assert_array_equal(np.delete(adjusted(gaps, "bh"), 7), adjusted(p, "bh"))
    assert math.isnan(adjusted(gaps, "holm")[7])
    np.testing.assert_array_equal(adjusted(p, "bonferroni"), np.minimum(1, 40 * p))
    order = np.sort(p)
    np.testing.assert_allclose(
        np.sort(adjusted(p, "holm")), np.minimum(1, np.maximum.accumulate(order * (40 - np.arange(40)))), rtol=1e-14
    )
    np.testing.assert_array_equal(adjusted(p, "none"), p)
    same = np.full(3, 0.7)
    assert (same * 3 / 3 < same).any()  # by the rounding of times and over
    assert adjusted(same, "bh").tolist() == same.tolist()


def test_json_is_strict_and_whole(found):
    text = compare(BEFORE, AFTER, smoothing="none").to_json()
    content = json.loads(text, parse_constant=pytest.fail)
    assert [row["column"] for row in content["columns"]] == list(BEFORE)
    assert len(content["contributions"]) == len(found.contributions)
    assert content["settings"]["confidence"] == 0.95


def test_weights_of_whole_numbers_count_like_repeated_rows():
    rng = np.random.default_rng(8)
    a = BEFORE.assign(weight=rng.integers(0, 4, len(BEFORE)))
    once = a.loc[a.index.repeat(a["weight"])].drop(columns="weight")
    bins = {"number": [-2.0, -1.0, 0.0, 1.0, 2.0]}
    weighted = compare(a, AFTER, weights="weight", bins=bins, smoothing="none")
    plain = compare(once, AFTER, bins=bins, smoothing="none")
    for name in ("kl", "kl_reverse", "js"):
        np.testing.assert_allclose(rows_of(weighted)[name], rows_of(plain)[name], rtol=1e-12, atol=1e-17)
    kish = a["weight"].sum() ** 2 / (a["weight"] ** 2).sum()
    np.testing.assert_allclose(rows_of(weighted)["n_effective_reference"], kish)
    assert "weight" not in rows_of(weighted).index
    arrays = compare(a.drop(columns="weight"), AFTER, weights=(a["weight"], None), bins=bins, smoothing="none")
    pd.testing.assert_frame_equal(arrays.to_frame(), weighted.to_frame())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"columns": ["number", "nope"]}, ValueError, "columns: 'nope' is not in reference"),
        ({"columns": ["few", "number", "few"]}, ValueError, "columns: 'few' stands there twice"),
        ({"columns": "number"}, TypeError, "columns: a sequence of names"),
        ({"columns": 5}, TypeError, "columns: a sequence of names, not 5"),
        ({"bins": "many"}, ValueError, "bins: one of 'auto'"),
        ({"bins": 0}, ValueError, "bins: from 1 to"),
        ({"bins": True}, TypeError, "bins: a rule's name"),
        ({"bins": {"nope": 3}}, ValueError, "bins: 'nope' is not in reference"),
        ({"bins": {"number": [0, 0]}}, ValueError, "bins: column 'number': edges increase, but number 1 does not"),
        ({"bins": [0, math.nan]}, ValueError, "bins: edges are finite"),
        ({"smoothing": "some"}, ValueError, "smoothing: one of"),
        ({"smoothing": -1}, ValueError, "smoothing: a number from 0 to"),
        ({"smoothing": None}, TypeError, "smoothing: a name or a number"),
        ({"missing": "keep"}, ValueError, "missing: one of 'cell', 'drop'"),
        ({"confidence": 95}, ValueError, "confidence: a number between 0 and 1"),
        ({"correction": "fdr"}, ValueError, "correction: one of"),
        ({"base": 1}, ValueError, "base: a finite number above 1, not 1"),
        ({"base": 0.5}, ValueError, "base: a finite number above 1, not 0.5"),
        ({"weights": "nope"}, ValueError, "weights: 'nope' is in neither table"),
        ({"weights": "word"}, TypeError, "weights: column 'word' of reference does not hold numbers"),
        ({"weights": "number"}, ValueError, "weights: 0, or from 1e-100 to"),
        ({"weights": (np.full(3000, 1e200), None)}, ValueError, "weights: 0, or from 1e-100 to 1e\\+100, but row 0"),
        ({"weights": 3}, ValueError, "weights: '3' is in neither table"),
        ({"weights": True}, TypeError, "weights: the name of a column, or a pair"),
        ({"weights": (np.ones(2), None)}, ValueError, "weights: 2 numbers for the 3000 rows of reference"),
        ({"like": "excel"}, ValueError, "like: one of"),
        ({"like": ["scipy"]}, ValueError, "like: one of"),
        ({"progress": 3}, TypeError, "progress: True, False or a function"),
    ],
)
def test_bad_options_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        compare(BEFORE, AFTER, **options)


@pytest.mark.parametrize("bad", [None, 3, "table.csv", np.zeros((3, 3)), {"x": [1]}, [1, 2], pd.Series([1.0])])
def test_what_is_no_frame_is_refused(bad):
    with pytest.raises(TypeError, match="reference: a data frame"):
        compare(bad, AFTER)
    with pytest.raises(TypeError, match="current: a data frame"):
        compare(BEFORE, bad)


def test_doubled_names_are_refused():
    twice = pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="reference: column names must differ, but 'a'"):
        compare(twice, twice)


def test_an_infinity_that_no_category_of_the_reference_is_counts_as_new():
    """Where the reference has it, it has a cell in the tails."""
    without = pd.DataFrame({"x": np.arange(1000) % 5 * 1.0})
    having = pd.DataFrame({"x": np.r_[without["x"][50:], [math.inf] * 50]})
    parts = ["kl_tails", "kl_new", "kl_reshaping"]
    for pair, held in (((without, having), "kl_new"), ((having, without), "kl_tails")):
        row = compare(*pair).to_frame().iloc[0]
        assert row[held] == pytest.approx(row["kl"], rel=1e-12)
        assert (row[[part for part in parts if part != held]].abs() < 1e-12).all()


def test_progress_reports_every_column():
    seen: list[tuple[int, int]] = []
    compare(BEFORE, AFTER, progress=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == sorted([(k, 5) for k in range(1, 6)] * 2)


def test_options_are_refused_before_a_row_is_read():
    def pieces():
        raise AssertionError

    for options in ({"smoothing": "some"}, {"confidence": 2}, {"progress": 3}):
        with pytest.raises((TypeError, ValueError), match=next(iter(options))):
            compare(Chunks(pieces), AFTER, **options)


def test_weights_beside_a_profile_are_refused():
    profile = Profile.fit(BEFORE)
    for weights in ((None, np.ones(3000)), (np.ones(3000), np.ones(3000)), (None, "few")):
        with pytest.raises(ValueError, match="weights: a profile holds no rows that they could belong to"):
            compare(BEFORE, profile, weights=weights)
    with pytest.raises(ValueError, match="weights: a profile holds no rows"):
        compare(profile, AFTER, weights=(np.ones(3000), None))
    with pytest.raises(ValueError, match="weights: 'few' is in neither table"):
        compare(profile, profile, weights="few")


def test_the_profile_of_a_result_is_its_own():
    profile = Profile.fit(BEFORE.assign(lost=1))
    found = profile.compare(AFTER)
    before = found.to_json()
    profile.update(BEFORE.assign(lost=1))
    assert found.to_json() == before
    assert found.profile == Profile.fit(BEFORE.assign(lost=1))


def test_only_the_wanted_columns_of_a_current_profile():
    found = compare(BEFORE, Profile.fit(BEFORE), columns=["few"])
    assert found.to_frame()["column"].tolist() == ["few"]


def test_names_that_are_whole_numbers():
    rng = np.random.default_rng(0)
    before, after = (pd.DataFrame({0: rng.random(200), 1: rng.random(200)}) for _ in range(2))
    found = compare(before, after, weights=0)
    texts = compare(*(frame.rename(columns=str) for frame in (before, after)), weights="0")
    assert found.to_json() == texts.to_json()
    assert compare(before, after, weights=(0, None)).to_frame().loc[0, "n_effective_current"] == 200
    assert Profile.fit(before, weights=0).update(after, weights=np.int64(0)).tallies["1"].rows == 400
    pytest.importorskip("matplotlib", reason="draws")
    assert found.plot(1).get_title() == found.plot("1").get_title()


def test_settings_are_plain_numbers_in_json():
    found = compare(
        BEFORE, AFTER, smoothing=np.float32(0.5), base=np.int64(2), confidence=np.float32(0.5), columns=["few"]
    )
    settings = json.loads(found.to_json())["settings"]
    assert {name: settings[name] for name in ("smoothing", "base", "confidence")} == {
        "smoothing": 0.5, "base": 2, "confidence": 0.5,
    }  # fmt: skip


def test_a_profile_is_a_reference():
    profile = Profile.fit(BEFORE)
    pd.testing.assert_frame_equal(profile.compare(AFTER).to_frame(), compare(BEFORE, AFTER).to_frame())
    with pytest.raises(ValueError, match="bins: a profile has its cells already"):
        profile.compare(AFTER, bins=10)


@pytest.mark.parametrize("dtype", ["category", "object"])
def test_categories_that_read_the_same_warn(dtype):
    before = pd.DataFrame({"x": pd.Series([1, "y", "y"] * 20, dtype=dtype)})
    after = pd.DataFrame({"x": pd.Series(["1", "y", "y"] * 20, dtype=dtype)})
    text = r"column 'x': categories 1 \(int\) and '1' \(str\) differ in type, and are not the same"
    with pytest.warns(UserWarning, match=text) as caught:
        row = compare(before, after).to_frame().loc[0]
    assert caught[0].filename == __file__
    assert row["kl"] > 1
    assert compare(before, before).to_frame().loc[0, "kl"] == 0
    assert compare(after, after).to_frame().loc[0, "kl"] == 0


def test_weights_with_labels_are_those_of_the_rows():
    frame = pd.DataFrame({"x": [*"aab"]}, index=[7, 8, 9])
    weights = pd.Series([1.0, 2.0, 4.0], index=[7, 8, 9])
    assert Profile.fit(frame, weights=weights).tallies["x"].counts.tolist() == [3, 4, 0, 0]
    for other in (weights[::-1], weights.reset_index(drop=True)):
        with pytest.raises(ValueError, match="weights: a Series with the index of the rows"):
            Profile.fit(frame, weights=other)
        with pytest.raises(ValueError, match="weights: a Series with the index of the rows"):
            compare(frame, frame, weights=(None, other))
    pa = pytest.importorskip("pyarrow", reason="a table without an index")
    table = pa.table({"x": [*"aab"]})
    assert Profile.fit(table, weights=weights.reset_index(drop=True)).tallies["x"].counts.tolist() == [3, 4, 0, 0]
    with pytest.raises(ValueError, match="weights: a Series with the index of the rows"):
        Profile.fit(table, weights=weights)


@pytest.mark.parametrize("weights", [("w", None), ("w", np.ones(4)), (np.ones(4), "w"), (None, "w")])
def test_the_weights_of_one_side_are_no_column_of_the_other(weights):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "w": [1, 2, 1, 2]})
    found = compare(frame, frame, weights=weights).to_frame()
    assert found["column"].tolist() == ["x"]
    sides = [4.0 if not isinstance(one, str) else 3.6 for one in weights]
    assert found.loc[0, ["n_effective_reference", "n_effective_current"]].tolist() == sides
