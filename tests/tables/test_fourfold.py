"""The exact test of two cells against SciPy's, and small tables that take it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
stats = pytest.importorskip("scipy.stats", reason="the test to compare with")
pd = pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

from klnumba.tables import compare, fourfold, from_great_expectations  # noqa: E402


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
