"""Cells of few rows, rows of uneven weight: how often the interval and the test find a change where there is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd
from scipy import special, stats

from klnumba.tables import compare, interval, kl_groups, pooling
from tests.reference import sparse_coverage
from tests.reference.sparse_coverage import drawn


def seldom(wrong, share=0.05):
    """Whether so many false alarms are no more than chance brings, of `share`."""
    return stats.binomtest(int(wrong.sum()), wrong.size, share, alternative="greater").pvalue > 1e-3


# --- few rows a cell -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2.0, 2.5, 3.0, 4.0, 7.0, 20.0, 100.0])
def test_bias_and_variance_of_a_cell(rows):
    """Against the sums over the Poisson law."""
    x = np.arange(400.0)
    weight = stats.poisson.pmf(x, rows)
    excess = 2.0 * (weight * (special.xlogy(x, x) - x * np.log(rows))).sum() - 1.0
    assert (weight * interval._excess(x)).sum() == pytest.approx(excess, abs=0.006)
    term = 2.0 * (special.xlogy(x, x) - x * np.log(rows) - (x - rows)) - interval._excess(x)
    variance = (weight * term**2).sum() - (weight * term).sum() ** 2
    size, other = np.array([100.0 * rows]), np.array([50.0 * rows])  # a hundred such cells
    cells, after = np.full((1, 100), rows), np.full((1, 100), rows / 2.0)
    found = interval._widening(cells, size, after, other, cells > 0, np.array([1.0]))
    assert (2.0 * found[0] + 2.0) / 100.0 == pytest.approx(variance, abs=0.03)


@pytest.mark.parametrize(("cells", "before", "after"), [(30, 75, 7500), (100, 250, 25_000), (300, 1000, 10_000)])
def test_a_small_reference_of_a_large_table(cells, before, after):
    """Measured: 5 to 7 of 100 intervals do not hold 0; with the bias of full cells 26 to 49 did not."""
    rng = np.random.default_rng(5)
    found = compare(drawn(rng, cells, before, 400), drawn(rng, cells, after, 400)).to_frame()
    assert seldom(found["ci_low"] > 0, 0.07)
    assert seldom(found["p_value"] < 0.05)
    assert abs(found["kl_corrected"].mean()) < 0.01


@pytest.mark.parametrize(("groups", "rows", "cells"), [(200, 75, 30), (300, 200, 60)])
def test_small_groups(groups, rows, cells):
    rng = np.random.default_rng(1)
    size = groups * rows
    frame = pd.DataFrame({"g": np.arange(size) % groups, "c": rng.integers(0, cells, size)})
    found = kl_groups(frame, "g", "c", confidence=0.95)
    assert seldom(found["ci_low"] > 0, 0.07)
    assert seldom(found["p_value"] < 0.05)


def test_what_the_documentation_says_was_measured():
    rows = json.loads(sparse_coverage.DATA.read_text(encoding="utf-8"))["rows"]
    assert [(row["rows_before"], row["rows_after"]) for row in rows] == [case[1:3] for case in sparse_coverage.CASES]
    assert all(row["interval_without_0"] <= 0.075 and row["p_below_0.05"] <= 0.065 for row in rows)
    assert rows[0] == sparse_coverage.of_case(*sparse_coverage.CASES[0])


def test_equal_tables():
    """No change at all is less than chance makes, of which the upper end is 0, and not what bisection leaves."""
    nothing = interval._noncentrality(np.zeros(1), np.full(1, 4.0), 0.05, np.full(1, 0.025), upper=False)
    assert nothing[0] == 0.0
    frame = pd.DataFrame({"x": [*"aaabbc"] * 30, "y": np.arange(180) % 17})
    found = compare(frame, frame).to_frame()
    assert (found["ci_low"] == 0.0).all()
    assert (found["ci_high"] < 0.002).all()


# --- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.part(6)
@pytest.mark.parametrize(
    ("spread", "cells", "before", "after", "columns"),
    [(0.7, 60, 300, 300, 400), (1.0, 60, 300, 300, 400), (1.0, 5, 300, 300, 400), (1.0, 900, 3000, 1000, 100),
     (2.0, 20, 3000, 1000, 400), (1.5, 0, 300, 300, 400)],
)  # fmt: skip
def test_a_heavy_row_fills_no_cell(spread, cells, before, after, columns):
    """By chance, the heaviest rows are not the same on both sides."""
    rng = np.random.default_rng(11)
    frames = [drawn(rng, cells, rows, columns) for rows in (before, after)]
    found = compare(*frames, weights=tuple(rng.lognormal(0.0, spread, rows) for rows in (before, after))).to_frame()
    assert seldom(found["p_value"] < 0.05)
    assert seldom(found["ci_low"] > 0)


@pytest.mark.parametrize(
    ("share", "weight", "rows"),
    [([0.9, 0.1], [1, 10], 1000), ([0.99, 0.01], [1, 50], 2000), ([0.5, 0.5], [1, 10], 1000),
     ([0.7, 0.2, 0.1], [1, 3, 6], 1000)],
)  # fmt: skip
def test_weights_that_go_with_the_values(share, weight, rows):
    """Kish's effective number of rows alone gave 18, or none, of 100 p-values below 0.05."""
    rng = np.random.default_rng(3)
    pairs = []
    for size in (rows, rows):
        cell = rng.choice(len(share), (400, size), p=share)
        weights = np.array(weight, float)[cell]
        pairs.append((cell, weights))
    found = evidence(pairs, len(share))
    assert seldom(found["p_value"] < 0.05)
    assert seldom(found["ci_low"] > 0)
    assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-4


def evidence(pairs, cells):
    """What is found in a table a draw, since each has weights of its own."""
    from klnumba.tables import statistics

    sides = []
    for cell, weights in pairs:
        sums = weights.sum(axis=1)
        rows = sums**2 / (weights**2).sum(axis=1)
        scale = rows / sums
        counts, squares = (
            np.array([np.bincount(one, values, cells) for one, values in zip(cell, power, strict=True)])
            for power in (weights, weights**2)
        )
        sides.append((counts * scale[:, None], rows, squares * scale[:, None] ** 2))
    (a, n, first), (b, m, second) = sides
    pair = pooling.Pair(a, n, b, m, np.zeros(a.shape, int), squares=(first, second))
    return statistics.evidence(pair, 0.95, 1.0)


def test_the_evidence_of_these_weights_is_that_of_compare():
    rng = np.random.default_rng(0)
    cell, weight = rng.choice(3, (2, 1, 400), p=[0.6, 0.3, 0.1]), np.array([1.0, 3.0, 6.0])
    found = evidence([(one, weight[one]) for one in cell], 3)
    frames = [pd.DataFrame({"x": one[0].astype(str), "w": weight[one[0]]}) for one in cell]
    row = compare(*frames, weights="w").to_frame().loc[0]
    for name in ("p_value", "g", "ci_high", "kl_corrected"):
        assert row[name] == pytest.approx(found[name][0], rel=1e-9)


def test_as_many_rows_as_are_as_certain():
    """The mean of the variance of shares, over the shares, less one cell's: simulated."""
    rng = np.random.default_rng(0)
    share, weight = np.array([0.6, 0.3, 0.1]), np.array([1.0, 4.0, 20.0])
    counts = rng.multinomial(2000, share, 4000) * weight
    shares = counts / counts.sum(axis=1, keepdims=True)
    simulated = 2.0 / (shares.var(axis=0) / shares.mean(axis=0)).sum()
    sums, squares = (share * weight)[None] * 2000, (share * weight**2)[None] * 2000
    kish = sums.sum() ** 2 / squares.sum()
    scale = kish / sums.sum()
    known = np.zeros((1, 3), int)
    both = squares * scale**2
    pair = pooling.Pair(sums * scale, np.array([kish]), sums * scale, np.array([kish]), known, squares=(both, both))
    assert pair.informed().n[0] == pytest.approx(simulated, rel=0.06)
    assert abs(kish / simulated - 1.0) > 0.1


@pytest.mark.parametrize("factor", [1.0, 3.0, 1e-3])
def test_one_weight_for_all_is_none(factor):
    rng = np.random.default_rng(0)
    before, after = rng.choice(np.arange(900).astype(str), (2, 4000))
    after = after.astype(object)
    after[:300] = "new"
    frames = [pd.DataFrame({"x": side, "y": rng.normal(size=4000)}) for side in (before, after)]
    plain, weighted = (
        compare(*frames, weights=w).to_frame() for w in (None, (np.full(4000, factor), np.full(4000, factor)))
    )
    for name in ("p_value", "ci_low", "ci_high", "kl_corrected", "dof"):
        np.testing.assert_allclose(weighted[name].astype(float), plain[name].astype(float), rtol=1e-9, err_msg=name)


def test_groups_have_the_evidence_of_compare():
    """Also of weights that go with the values."""
    rng = np.random.default_rng(2)
    cell = rng.choice(4, 800, p=[0.5, 0.3, 0.15, 0.05])
    frame = pd.DataFrame({"g": np.arange(800) % 2, "c": cell.astype(str), "w": np.array([1.0, 2.0, 5.0, 9.0])[cell]})
    found = kl_groups(frame, "g", "c", weights="w", confidence=0.95).loc[0]
    sides = [frame.loc[frame["g"] == group, ["c", "w"]] for group in (0, 1)]
    row = compare(*sides, weights="w").to_frame().loc[0]
    for name in ("p_value", "g", "kl_corrected", "ci_low", "ci_high", "standard_error"):
        assert found[name] == pytest.approx(row[name], rel=1e-9)
