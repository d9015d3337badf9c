"""Whole numbers that float64 takes for the same are counted apart, or the column says that they are not."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare

FIRST = 2**53
STATUS = 'holds whole numbers that float64 cannot tell apart; bins="category" can'


def pair(low, dtype, missing=0):
    """Two numbers next to each other, 900 to 100 and 100 to 900."""
    sides = ([low + 1] * 900 + [low] * 100, [low + 1] * 100 + [low] * 900)
    return [pd.DataFrame({"x": pd.Series([*side, *[None] * missing], dtype=dtype)}) for side in sides]


def two_words():
    """What the same table says of words."""
    sides = "b" * 900 + "a" * 100, "b" * 100 + "a" * 900
    return compare(*(pd.DataFrame({"x": pd.Series([*side])}) for side in sides)).to_frame().loc[0, ["kl", "p_value"]]


@pytest.mark.parametrize(
    ("low", "dtype"),
    [(FIRST, "int64"), (-FIRST - 1, "int64"), (2**63, "uint64"), (FIRST, "Int64"), (FIRST, object), (10**20, object)],
)
@pytest.mark.parametrize("rule", ["auto", "category"])
def test_neighbours_are_told_apart(low, dtype, rule):
    found = compare(*pair(low, dtype), bins=rule)
    assert found.profile.cells["x"].names == (low, low + 1)
    assert found.to_frame().loc[0, ["kl", "p_value"]].tolist() == two_words().tolist()
    assert Profile.from_json(found.profile.to_json()) == found.profile
    assert json.loads(found.profile.to_json())["columns"]["x"]["names"] == [low, low + 1]


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", object])
def test_missing_ones_do_not_round_the_others(dtype):
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow", reason="Arrow columns")
    profile = Profile.fit(pair(FIRST, dtype, missing=5)[0])
    assert profile.cells["x"].names == (FIRST, FIRST + 1)
    assert profile.tallies["x"].counts.tolist() == [100, 900, 0, 5]


def test_decimals_of_many_digits():
    pa = pytest.importorskip("pyarrow", reason="Arrow columns")
    values = [Decimal(10**20), Decimal(10**20 + 1), None]
    for dtype in (object, pd.ArrowDtype(pa.decimal128(30, 0))):
        profile = Profile.fit(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
        assert profile.cells["x"].names == (10**20, 10**20 + 1)
        assert profile.tallies["x"].counts.tolist() == [1, 1, 0, 1]


def test_new_ones_and_weights():
    fitted = Profile.fit(pd.DataFrame({"x": [FIRST, FIRST + 2]}), weights=[2.0, 3.0])
    assert fitted.tallies["x"].counts.tolist() == [2, 3, 0, 0]
    assert fitted.tallies["x"].squares.tolist() == [4, 9, 0, 0]
    small = Profile.fit(pd.DataFrame({"x": [1, 2]}))
    for cells in (small, Profile.fit(pd.DataFrame({"x": [FIRST, FIRST + 2]}))):
        found = cells.empty().update(pd.DataFrame({"x": [FIRST + 1, FIRST + 1, FIRST + 3]})).tallies["x"]
        assert found.counts.tolist() == [0, 0, 3, 0]
        assert found.unseen == {FIRST + 1: 2, FIRST + 3: 1}


@pytest.mark.parametrize("rule", ["quantile", "fd", 5])
def test_bins_that_would_not_see_them_are_a_status(rule):
    first, second = pair(FIRST, "int64")
    assert compare(first, second, bins=rule).problems == {"x": STATUS}
    many = pd.DataFrame({"x": 2**60 + np.arange(1000) % 100})
    assert compare(many, many).problems == {"x": STATUS}
    assert compare(many, many, bins="category").to_frame().loc[0, "cells"] == 100


def test_bins_of_numbers_that_stay_different():
    wide = pd.DataFrame({"x": np.random.default_rng(0).integers(0, 2**63, 5000)})
    sentinel = pd.DataFrame({"x": np.where(np.arange(5000) % 10 == 0, 2**63 - 1, np.arange(5000))})
    for frame in (wide, sentinel):
        profile = Profile.fit(frame)
        assert not profile.problems
        assert profile.tallies["x"].counts[1:-4].sum() == 5000


def test_pieces_give_what_the_whole_gives():
    for frame in (pair(FIRST, "int64")[0], pd.DataFrame({"x": 2**60 + np.arange(1000) % 100})):
        parts = Chunks(lambda frame=frame: [frame.iloc[k : k + 300] for k in range(0, 1000, 300)])
        assert Profile.fit(parts) == Profile.fit(frame)
