"""Quantiles keep their promise; counts, shares and what is shown."""

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klnumba.metrics import RunningStatistics
from klnumba.metrics.sketch import middles, number_of, shift_for
from tests.metrics.states import SETTINGS, of_rows

POSITIVE = st.floats(2.3e-308, 1.7e308)
SHARES = (0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0)


def true_quantile(values, weights, share):
    """The least value that at least this share of the weight does not exceed, in whole numbers of 2**-62."""
    order = np.argsort(values)
    whole = [int(w) * (1 << 62) + int((w - int(w)) * 2**62) for w in np.asarray(weights)[order]]
    limit = share * sum(whole)
    total = 0
    for x, w in zip(np.asarray(values)[order], whole, strict=True):
        total += w
        if w and total >= limit * (1 - 1e-15):
            return x
    return values[order[-1]]


@SETTINGS
@given(st.floats(1e-4, 0.5), POSITIVE)
def test_intervals_are_as_narrow_as_promised(error, x):
    shift = shift_for(error)
    stands = middles(np.array([number_of(x, shift)]), shift)[0]
    assert abs(stands - x) <= error * x * (1 + 1e-15)


@pytest.mark.parametrize("error", [1e-4, 1e-3, 0.01, 0.05, 0.5])
def test_no_more_intervals_than_needed(error):
    parts = 1 << (52 - shift_for(error))
    assert parts == 1 or 1.0 / (parts + 1.0) > error, "half as many would do"


@settings(SETTINGS, max_examples=60)
@given(st.lists(st.one_of(POSITIVE, POSITIVE.map(lambda x: -x), st.just(0.0)), min_size=1, max_size=60))
def test_quantiles(values):
    made = of_rows(values, quantile_error=0.01)
    for share in SHARES:
        want = true_quantile(np.array(values), np.ones(len(values)), share)
        assert made.quantile(share) == pytest.approx(want, rel=0.01 * (1 + 1e-12))
    assert made.quantile(0.0) == min(values)
    assert made.quantile(1.0) == max(values)


def test_quantiles_of_many_rows():
    rng = np.random.default_rng(3)
    values, weights = np.exp(rng.normal(-3, 4, 20_000)), rng.exponential(size=20_000)
    for error in (1e-4, 0.01, 0.2):
        made = of_rows(values, weights, quantile_error=error)
        for share in SHARES:
            assert made.quantile(share) == pytest.approx(true_quantile(values, weights, share), rel=error)


def test_ranks_are_exact():
    """0.1 of ten rows is one row, although 0.1 has no exact float."""
    made = of_rows(np.arange(1.0, 11.0), quantile_error=1e-3)
    assert made.quantile(0.1) == pytest.approx(1.0, rel=1e-3)
    assert made.quantile(0.5) == pytest.approx(5.0, rel=1e-3)


def test_thresholds_and_counts():
    values = [0.0, 0.05, 0.1, 0.5, 3.0, math.inf, math.nan, -1.0]
    found = of_rows(values, thresholds=(0.1, 1.0)).summary()
    assert (found.rows, found.zero, found.inf, found.nan) == (8, 1, 1, 1)
    assert found.above == {0.1: 3 / 7, 1.0: 2 / 7}
    assert (found.min, found.max) == (-1.0, math.inf)
    assert math.isnan(found.mean)
    assert found.finite_mean == pytest.approx((0.05 + 0.1 + 0.5 + 3.0 - 1.0) / 6)
    assert found.quantiles[0.999] == math.inf


@pytest.mark.parametrize(("values", "mean"), [
    ([1.0, math.inf], math.inf), ([1.0, -math.inf], -math.inf), ([math.inf, -math.inf], math.nan),
    ([math.nan], math.nan),
])  # fmt: skip
def test_mean_of_rows_that_are_not_finite(values, mean):
    np.testing.assert_equal(float(of_rows(values).mean()), mean)


def test_weights_as_counts():
    """A row of weight three is three rows, the spread apart, which weights cannot tell."""
    once, weighted = of_rows([0.25, 0.5, 0.5, 0.5, 4.0]), of_rows([0.25, 0.5, 4.0], [1, 3, 1])
    assert weighted.mean() == once.mean()
    assert weighted.summary().quantiles == once.summary().quantiles
    assert weighted.summary().weight == once.summary().weight == 5.0
    assert weighted.rows == 3


def test_weighted_spread_by_its_definition():
    rng = np.random.default_rng(4)
    x, w = rng.exponential(size=(2, 500))
    found = of_rows(x, w).summary()
    mean = (w * x).sum() / w.sum()
    variance = (w * (x - mean) ** 2).sum() / (w.sum() - (w**2).sum() / w.sum())
    assert found.std == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(variance * (w**2).sum()) / w.sum(), rel=1e-12)


def test_unweighted_rows_weigh_one():
    mixed = of_rows([1.0, 2.0])
    mixed.update([3.0], [2.0])
    mixed.update([4.0])
    assert mixed.mean() == (1 + 2 + 2 * 3 + 4) / 5


def test_empty():
    found = RunningStatistics(thresholds=(1.0,)).summary()
    assert found.rows == 0
    for value in (found.mean, found.std, found.standard_error, found.min, found.max, *found.quantiles.values()):
        assert math.isnan(value)
    assert math.isnan(found.above[1.0])


def test_one_row_has_no_spread():
    found = of_rows([2.0]).summary()
    assert found.mean == found.min == found.max == found.quantiles[0.5] == 2.0
    assert math.isnan(found.std)


def test_shown():
    found = of_rows([0.5, math.inf], thresholds=(1.0,)).summary()
    text, page = repr(found), found._repr_html_()
    for part in ("rows", "finite mean", "99.9 %", "above 1", "50 %"):
        assert part in text
        assert part in page
    assert page.count("<tr>") == len(text.splitlines())


def test_shown_in_a_terminal():
    from rich.console import Console

    console = Console(width=60, record=True, file=io.StringIO())
    console.print(of_rows([0.5]).summary())
    assert "mean" in console.export_text()


def test_to_dict():
    found = of_rows([0.5, 1.0], thresholds=(0.75,)).summary().to_dict()
    assert found["quantiles"]["50%"] == pytest.approx(0.5, rel=0.01)
    assert found["above"] == {"0.75": 0.5}
    assert found["mean"] == 0.75


def test_thresholds_that_look_alike_are_told_apart():
    made = RunningStatistics(thresholds=[0.12345678, 0.12345679, 1.0, 0.1])
    made.update([0.123456785, 0.2])
    summary = made.summary()
    assert summary.to_dict()["above"] == {"0.12345678": 1.0, "0.12345679": 0.5, "1": 0.0, "0.1": 1.0}
    assert len(dict(summary.lines())) == len(summary.lines())
