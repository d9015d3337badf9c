"""Cells that a sample has made: how often the evidence finds a change where there is none, and that it finds one."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare, from_great_expectations, thresholds, words
from tests.tables.test_sparse import seldom

NAMES = np.array([f"k{k}" for k in range(40)])
ZIPF = 1.0 / np.arange(1, 41) ** 1.2 / (1.0 / np.arange(1, 41) ** 1.2).sum()


def frame(values):
    return pd.DataFrame({"x": values})


def row(found):
    return found.to_frame().iloc[0]


# --- a profile that has met what it does not name --------------------------------------------------------------------

LAWS = {
    "names": (lambda rng, rows: rng.choice(NAMES, rows, p=ZIPF), 100, 29, 3000),
    "whole numbers": (lambda rng, rows: rng.geometric(0.3, rows), 60, 10, 600),
    "few new rows": (lambda rng, rows: rng.choice(NAMES, rows, p=ZIPF), 100, 29, 200),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("law", LAWS)
def test_a_profile_that_goes_on_raises_no_alarm(law):
    draw, first, batches, rows = LAWS[law]
    rng = np.random.default_rng(7)
    alarms = []
    for _ in range(200):
        profile = Profile.fit(frame(draw(rng, first)))
        for _ in range(batches):
            profile.update(frame(draw(rng, first)))
        found = row(profile.compare(frame(draw(rng, rows))))
        alarms.append((found["p_value"] < 0.05, found["ci_low"] > 0.0))
    assert seldom(np.array(alarms)[:, 0])
    assert seldom(np.array(alarms)[:, 1])


def test_a_profile_that_goes_on_equals_itself():
    made = Profile.fit(frame(["a", "b"] * 500)).update(frame(["a", "b", "z"] * 300))
    found = row(made.compare(made))
    assert found["kl"] == 0.0
    assert found["p_value"] == 1.0
    assert found["ci_low"] == 0.0


def test_what_such_a_profile_has_met_can_become_more():
    made = Profile.fit(frame(["a", "b"] * 500)).update(frame(["a", "b", "z"] * 300))
    assert row(made.compare(frame(["a", "b", "z", "z"] * 200)))["p_value"] < 1e-6
    assert row(made.compare(frame(["a", "b", "y"] * 300)))["p_value"] < 1e-6  # as many others, with another name


def test_others_without_names_are_one_cell():
    """The tail of a partition says how many others there are, and not which."""
    partition = {"values": ["a", "b"], "weights": [0.5, 0.5]}
    made = from_great_expectations(partition, column="x", n=1000, tail_weight_holdout=0.2)
    assert row(made.compare(frame(["a"] * 400 + ["b"] * 400 + ["q"] * 200)))["p_value"] > 0.99
    assert row(made.compare(frame(["a"] * 300 + ["b"] * 300 + ["q"] * 400)))["p_value"] < 1e-6


def test_the_order_of_rows_does_not_show():
    rng = np.random.default_rng(0)
    reference = frame(rng.choice(["a", "b"], 1000))
    for _ in range(20):
        current = frame(rng.choice([*"abcdefgh"], 1500))
        assert compare(reference, current).to_json() == compare(reference, current.sort_values("x")).to_json()


def test_the_order_of_merging_does_not_show():
    rng = np.random.default_rng(0)
    made = Profile.fit(frame([*"ab"] * 500))
    for _ in range(20):
        first, second = (made.empty().update(frame(rng.choice([*"hgfedcba"], rng.integers(500, 2000)))) for _ in "12")
        assert made.compare(first + second).to_json() == made.compare(second + first).to_json()


# --- infinities among whole numbers ----------------------------------------------------------------------------------


def with_infinities(low, high, seed=0):
    numbers = np.random.default_rng(seed).integers(0, 5, 1000).astype(float)
    return np.concatenate([numbers, np.full(low, -np.inf), np.full(high, np.inf), [np.nan] * 5])


@pytest.mark.parametrize("bins", ["auto", "category"])
def test_infinities_among_categories_have_cells(bins):
    data = frame(with_infinities(20, 30))
    found = compare(data, data, bins=bins)
    cells = found.contributions
    assert [*cells["cell"]] == ["-inf", "0", "1", "2", "3", "4", "+inf", "missing"]
    assert [*cells["part"]] == ["tails", *["within"] * 5, "tails", "missing"]
    assert cells["n_reference"].sum() == 1055
    assert row(found)["p_value"] == 1.0
    assert row(compare(data, frame(with_infinities(30, 20)), bins=bins, smoothing="none"))["kl_tails"] > 0.0
    assert row(compare(data, frame(with_infinities(0, 50)), bins=bins))["p_value"] < 1e-3


def test_an_infinity_that_is_new_is_another_category():
    assert row(compare(frame(with_infinities(0, 50)), frame(with_infinities(50, 0))))["kl_new"] > 0.0


def test_infinities_travel_with_a_profile():
    data = with_infinities(20, 30)
    made = Profile.fit(frame(data))
    assert Profile.from_json(made.to_json()) == made
    pieces = made.empty().update(frame(data[:1010])).update(frame(data[1010:]))
    assert pieces == made
    assert Profile.fit(Chunks(lambda: (frame(part) for part in np.split(data, [300, 1015])))) == made
    assert thresholds(made, 1000)["x"] > 0.0


def test_infinities_among_long_numbers_have_cells():
    numbers = np.array([2**60, 2**60 + 1, 3, np.inf, -np.inf] * 50, object)
    found = compare(frame(numbers), frame(numbers), bins="category").contributions
    assert [*found["cell"]] == ["-inf", "3", str(2**60), str(2**60 + 1), "+inf"]


# --- pieces without a value ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [np.array([], object), np.array([None] * 4, object)], ids=["no rows", "no values"])
@pytest.mark.parametrize("values", [np.arange(50.0), np.array([*"abcde"] * 10)], ids=["numbers", "names"])
def test_a_piece_without_values_has_no_type(values, empty):
    pieces = [frame(values), frame(empty), frame(values)]
    whole = frame(np.concatenate([values, empty, values]).astype(object if values.dtype.kind == "U" else float))
    wanted = Profile.fit(whole)
    for order in (pieces, [pieces[1], *pieces[::2]], [*pieces[::2], pieces[1]]):
        found = Profile.fit(Chunks(lambda order=order: order))
        assert found.compare(whole).to_frame().status[0] == "ok"
        if values.dtype.kind == "U" or order is pieces:
            assert found == wanted


@pytest.mark.parametrize("last", [np.full(200_000, np.nan), np.array([None] * 200_000, object)], ids=["NaN", "None"])
def test_pieces_without_values_at_the_end_thin_the_sample(last):
    """The rows of which quantiles are taken are a part of all rows, those that are missing among them."""
    values = np.random.default_rng(0).normal(size=1 << 17)
    wanted = Profile.fit(frame(np.append(values, np.full(last.size, np.nan))))
    assert Profile.fit(Chunks(lambda: [frame(values), frame(last)])) == wanted


def test_infinities_of_pieces_without_finite_numbers():
    data = np.array([np.inf] * 50 + [1.0, 2.0, 3.0] * 100)
    dask = pytest.importorskip("dask.dataframe", reason="partitions are Dask's")
    from klnumba.dask import compare as compare_partitions

    wanted = compare(frame(data), frame(data[::-1].copy()))
    parts = [dask.from_pandas(frame(one), npartitions=7) for one in (data, data[::-1].copy())]
    assert compare_partitions(*parts).to_json() == wanted.to_json()


# --- categoricals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 100, 200, 40_000])
def test_missing_values_of_categoricals_with_weights(count):
    """Their codes are as short as they can be."""
    names = [f"k{k}" for k in range(count)]
    data = pd.DataFrame({"s": pd.Categorical([*names, None, None, names[0]]), "w": 1.0})
    found = compare(data, data, weights="w").contributions.set_index("cell")["n_reference"]
    assert found["missing"] == 2.0
    assert found["k0"] == 2.0
    assert found.sum() == count + 3


def test_categories_are_remembered_in_the_order_of_their_rows(monkeypatch):
    """Where some are forgotten, it shows."""
    monkeypatch.setattr(words, "MOST", 4096)
    rng = np.random.default_rng(0)
    names = np.array([f"k{k}" for k in range(6000)])
    data = pd.DataFrame({"s": pd.Categorical(rng.permutation(np.concatenate([names, names[::7]])), categories=names)})
    wanted = Profile.fit(data)
    for cut in (1, 3000, 4000, 6500):
        assert Profile.fit(Chunks(lambda cut=cut: [data[:cut], data[cut:]])) == wanted
    assert Profile.fit(data.astype(str)) == wanted
