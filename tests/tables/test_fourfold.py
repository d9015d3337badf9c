"""The exact test of two cells against SciPy's, and small tables that take it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
stats = pytest.importorskip("scipy.stats", reason="the test to compare with")
pd = pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

from klnumba.tables import compare, fourfold, from_great_expectations, kl_groups  # noqa: E402


def test_it_is_fishers():
    for a, b, n, m in itertools.product([0, 1, 2, 5], [0, 1, 3, 5], [5, 9, 40], [5, 8, 1000]):
        if a + b:
            expected = stats.fisher_exact([[a, b], [n - a, m - b]]).pvalue
            assert fourfold.p_value(a, n, b, m) == pytest.approx(expected, rel=1e-9), (a, b, n, m)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.01, 0.2, 0.5])
def test_against_a_known_law_it_is_the_binomial(share):
    for found, m in itertools.product([0, 1, 2, 5], [5, 8, 400]):
        expected = stats.binomtest(found, m, share).pvalue
        assert fourfold.p_value(share, math.inf, found, m) == pytest.approx(expected, rel=1e-9), (found, m)


def test_rounded_counts_and_large_ones():
    assert fourfold.p_value(1.6, 10.2, 0.4, 7.9) == fourfold.p_value(2, 10, 0, 8)
    assert 0.0 < fourfold.p_value(3, 20, 300_000, 2_000_000) <= 1.0
    assert fourfold.p_value(20, 20, 0, 10**6) < 1e-80
    assert fourfold.p_value(1e-6, math.inf, 5000, 10**6) == 0.0


@pytest.mark.parametrize(("before", "after"), [(20, 100), (100, 20), (4, 4), (5, 300), (1, 1)])
def test_samples_with_nothing_in_common(before, after):
    """However small they are, the p-value says what they say."""
    first, second = pd.DataFrame({"x": ["a"] * before}), pd.DataFrame({"x": ["b"] * after})
    row = compare(first, second).to_frame().loc[0]
    expected = stats.fisher_exact([[before, 0], [0, after]]).pvalue
    assert row["p_value"] == pytest.approx(expected, rel=1e-9)
    assert row["dof"] == 1
    table = [[before, 0], [0, after]]
    assert row["g"] == pytest.approx(stats.chi2_contingency(table, lambda_="log-likelihood", correction=False)[0])


def test_it_is_never_too_eager():
    """Of small samples that have not changed, no more than 5 % have a p-value below 0.05."""
    rng = np.random.default_rng(0)
    for before, after, cells in ((8, 8, 3), (5, 40, 2), (12, 9, 6)):
        frames = (pd.DataFrame(rng.integers(0, cells, (rows, 2000))) for rows in (before, after))
        p = compare(*frames, bins="category").to_frame()["p_value"]
        assert (p < 0.05).mean() <= 0.06
        assert (p < 1.0).any()


def test_a_known_reference():
    known = from_great_expectations({"values": ["a", "b"], "weights": [0.98, 0.02]}, column="x")
    row = compare(known, pd.DataFrame({"x": ["a"] * 36 + ["b"] * 4})).to_frame().loc[0]
    assert row["p_value"] == pytest.approx(stats.binomtest(4, 40, 0.02).pvalue, rel=1e-9)
    expected = 2 * (36 * math.log(0.9 / 0.98) + 4 * math.log(0.1 / 0.02))
    assert (row["g"], row["dof"]) == (pytest.approx(expected), 1)


# --- a reference of very few rows ------------------------------------------------------------------------------------


@pytest.mark.part(6)
@pytest.mark.parametrize(
    ("names", "before", "after", "columns"),
    [(1000, 20, 10_000, 100), (1000, 40, 1000, 300), (200, 5, 1000, 400), (50, 2, 10_000, 200), (10**6, 20, 1000, 200),
     (10**6, 4, 1000, 200), (20, 10, 1000, 400)],
)  # fmt: skip
@pytest.mark.parametrize("text", [True, False])
def test_a_small_reference_does_not_choose_the_cell(names, before, after, columns, text):
    """With the fullest of its own categories, nearly every p-value would be below 0.05."""
    rng = np.random.default_rng(2)
    frames = [pd.DataFrame(rng.integers(0, names, (rows, columns))) for rows in (before, after)]
    if text:
        frames = [frame.astype(str) for frame in frames]
    p = compare(*frames, bins="category").to_frame()["p_value"]
    assert stats.binomtest(int((p < 0.05).sum()), columns, 0.05, alternative="greater").pvalue > 1e-3


def test_a_new_category_is_the_fullest():
    """The test is that of the name that both tables together have most often."""
    before = pd.DataFrame({"x": [*"abcd"]})
    after = pd.DataFrame({"x": ["new"] * 9 + [*"abcd"] * 2})
    row = compare(before, after).to_frame().loc[0]
    assert row["p_value"] == pytest.approx(stats.fisher_exact([[0, 4], [9, 8]]).pvalue, rel=1e-9)


def test_the_order_of_rows_and_of_the_tables_does_not_matter():
    before, after = pd.DataFrame({"x": [*"abc"]}), pd.DataFrame({"x": [*"defgh"]})
    pairs = [(before, after), (before[::-1], after[::-1]), (after, before)]
    found = [compare(*pair).to_frame().loc[0, "p_value"] for pair in pairs]
    assert found[0] == found[1] == pytest.approx(found[2], rel=1e-12)


@pytest.mark.parametrize("after", [30, 1000])
@pytest.mark.parametrize("kind", ["float64", "datetime64[us]", "timedelta64[us]"])
def test_one_number_says_nothing(kind, after):
    """The bin is that number, so that no other table has anything in it."""
    rng = np.random.default_rng(3)
    before, current = (pd.DataFrame({"x": (1e6 * rng.random(rows)).astype(kind)}) for rows in (1, after))
    assert compare(before, current).to_frame().loc[0, "p_value"] == 1.0
    missing = compare(before, pd.DataFrame({"x": np.full(after, np.nan).astype(kind)})).to_frame().loc[0]
    assert missing["p_value"] == pytest.approx(1 / (after + 1))


def test_small_groups_do_not_choose_the_cell():
    """Values that hardly ever come again, against a group of ten rows that stand first."""
    rng = np.random.default_rng(4)
    wrong = rounds = 0
    for _ in range(60):
        values = rng.integers(0, 10**6, 1010)
        frame = pd.DataFrame({"g": np.r_[np.zeros(10), np.repeat([1.0, 2.0], 500)], "v": values})
        p = kl_groups(frame, "g", "v", against=0.0, confidence=0.95)["p_value"]
        wrong += int((p < 0.05).sum())
        rounds += 2
    assert stats.binomtest(wrong, rounds, 0.05, alternative="greater").pvalue > 1e-3
