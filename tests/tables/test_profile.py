"""Profiles: any split and any order of merging gives the same bits; JSON keeps them; nothing is lost on an error."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from klnumba.tables import Profile, compare, from_great_expectations, from_histogram
from klnumba.tables.hashing import BUCKETS, buckets_of


def table(rows, seed):
    rng = np.random.default_rng(seed)
    number = rng.standard_normal(rows)
    number[rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame({
        "number": number,
        "few": rng.integers(0, 9, rows),
        "word": pd.Series(rng.choice(["a", "b", "c", None], rows), dtype=str),
        "id": pd.Series(rng.integers(0, 3000, rows)).astype(str),
        "time": np.datetime64("2020-01-01") + rng.integers(0, 10**6, rows).astype("m8[s]"),
    })  # fmt: skip


REFERENCE, DATA = table(500, 0), table(2000, 1)
FITTED = Profile.fit(REFERENCE)
WHOLE = FITTED.empty().update(DATA)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, 2000), max_size=6), st.randoms(use_true_random=False))
def test_any_split_and_order_gives_the_same_bits(cuts, random):
    bounds = [0, *sorted(cuts), 2000]
    parts = [FITTED.empty().update(DATA.iloc[a:b]) for a, b in itertools.pairwise(bounds)]
    random.shuffle(parts)
    while len(parts) > 1:
        k = random.randrange(len(parts) - 1)
        parts[k : k + 2] = [parts[k] + parts[k + 1]]
    assert parts[0] == WHOLE
    assert parts[0].to_json() == WHOLE.to_json()
    assert FITTED.compare(parts[0]).to_json() == FITTED.compare(DATA).to_json()


def test_sum_and_identity():
    parts = [FITTED.empty().update(DATA.iloc[k::3]) for k in range(3)]
    assert sum(parts) == WHOLE
    assert WHOLE + FITTED.empty() == WHOLE
    assert parts[0] + parts[1] == parts[1] + parts[0]


def test_many_new_categories_are_forgotten_alike():
    """A merge forgets their names only where all of them together are too many."""
    fitted = Profile.fit(pd.DataFrame({"x": ["a"]}))
    batches = [pd.DataFrame({"x": [f"{k}" for k in range(start, start + 400)]}) for start in (0, 300, 700)]
    parts = [fitted.empty().update(batch) for batch in batches]
    assert len((parts[0] + parts[1]).tallies["x"].unseen) == 700
    left, right = (parts[0] + parts[1]) + parts[2], parts[0] + (parts[1] + parts[2])
    assert left == right == fitted.empty().update(pd.concat(batches))
    tally = left.tallies["x"]
    assert tally.unseen is None
    assert tally.buckets.sum() == tally.counts[-2] == 1200
    assert Profile.from_json(left.to_json()).tallies["x"].buckets.tolist() == tally.buckets.tolist()
    weighted = fitted.compare(pd.concat(batches), weights=(None, np.full(1200, 0.5))).results["x"].current
    assert weighted.buckets.tolist() == (0.5 * tally.buckets).tolist()


def test_new_numbers_are_counted_by_bucket_too():
    """Where they are too many; numbers that are equal share one, whatever their type."""
    fitted = Profile.fit(pd.DataFrame({"x": [1, 2]}), bins="category")
    new = np.arange(5000) + 10
    whole = fitted.empty().update(pd.DataFrame({"x": new}))
    parts = [fitted.empty().update(pd.DataFrame({"x": part})) for part in np.array_split(new.astype(float), 7)]
    assert sum(parts) == whole
    assert whole.tallies["x"].buckets.tolist() == np.bincount(buckets_of(new.tolist()), minlength=BUCKETS).tolist()
    assert len(set(buckets_of([1, 1.0, True]).tolist())) == 1
    assert 0 <= min(buckets_of(["", "\ud800", "ü", -1.5, 10**400])) < BUCKETS


@pytest.mark.parametrize("profile", [FITTED, WHOLE], ids=["fitted", "whole"])
def test_json_pickle_and_copy_keep_everything(profile):
    text = profile.to_json()
    json.loads(text, parse_constant=pytest.fail)
    for again in (Profile.from_json(text), pickle.loads(pickle.dumps(profile)), copy.deepcopy(profile)):
        assert again == profile
        assert again.to_json() == text
        assert again.compare(DATA).to_json() == profile.compare(DATA).to_json()


def test_json_holds_no_rows():
    secret = pd.DataFrame({"x": [1.25, 3.5, 77.125, 123.0625, 1000.5]})
    text = Profile.fit(secret, bins=2).to_json()
    assert "77.125" not in text
    assert "123.0625" not in text


def test_weighted_profiles():
    rng = np.random.default_rng(3)
    weights = rng.random(2000)
    fitted = Profile.fit(REFERENCE.assign(w=1.0), weights="w")
    whole = fitted.empty().update(DATA, weights=weights)
    parts = sum(fitted.empty().update(DATA.iloc[k::2], weights=weights[k::2]) for k in range(2))
    for name in whole.cells:
        np.testing.assert_allclose(parts.tallies[name].counts, whole.tallies[name].counts, rtol=1e-13)
    assert Profile.from_json(whole.to_json()) == whole
    exact = [fitted.empty().update(DATA.iloc[k::2], weights=np.full(1000, 0.5)) for k in range(2)]
    assert sum(exact) == fitted.empty().update(DATA, weights=np.full(2000, 0.5))
    with pytest.raises(ValueError, match="weights: the profile has them"):
        fitted.update(DATA)
    with pytest.raises(ValueError, match="column 'number': one has weights"):
        fitted.merge(FITTED)


def test_a_mismatch_names_the_column():
    other = Profile.fit(REFERENCE, bins={"number": [0.0, 1.0]})
    with pytest.raises(ValueError, match="profiles: column 'number' has other cells"):
        FITTED + other
    with pytest.raises(ValueError, match="current: column 'number' has other cells"):
        FITTED.compare(other)
    with pytest.raises(ValueError, match="profiles: column 'few' is in one"):
        FITTED + Profile.fit(REFERENCE.drop(columns="few"))
    with pytest.raises(TypeError):
        FITTED + 1


def test_a_refused_batch_changes_nothing():
    profile = copy.deepcopy(WHOLE)
    with pytest.raises(ValueError, match="batch: column 'few' is not in batch"):
        profile.update(DATA.drop(columns="few"))
    with pytest.raises(ValueError, match="batch: column 'number' holds categories, but the reference numbers"):
        profile.update(DATA.assign(number="x"))
    with pytest.raises(TypeError, match="batch: a data frame"):
        profile.update([1, 2])
    assert profile == WHOLE


def test_a_batch_without_values_fits_any_column():
    empty = pd.DataFrame({name: [np.nan] * 3 for name in DATA})
    profile = FITTED.empty().update(empty)
    assert all(tally.counts[-1] == tally.rows == 3 for tally in profile.tallies.values())
    none = FITTED.empty().update(DATA.head(0))
    assert all(tally.rows == 0 for tally in none.tallies.values())


def test_problems_travel():
    fitted = Profile.fit(REFERENCE.assign(bad=[1j] * 500))
    assert list(fitted.problems) == ["bad"]
    assert Profile.from_json(fitted.to_json()) == fitted
    assert fitted.compare(DATA.assign(bad=0)).to_frame().set_index("column").loc["bad", "status"].startswith("holds")


DAMAGES = {
    "counts are numbers from 0 on": ("number", {"counts": [-5, *WHOLE.tallies["number"].counts.tolist()[1:]]}),
    "counts are whole numbers that add up": ("few", {"counts": [k + 1 for k in WHOLE.tallies["few"].counts.tolist()]}),
    "counts are whole numbers that": ("word", {"counts": [0.5, 499.5, 0, 0, 0]}),
    "counts are whole": ("word", {"counts": [10**23, 0, 0, 0, 0]}),
    "has 1 counts, not 5": ("word", {"counts": [1]}),
    "TypeError": ("word", {"counts": None}),
    '"rows" is a whole number': ("word", {"rows": "many"}),
    '"rows" is a whole': ("word", {"rows": -1}),
    "edges increase": ("number", {"edges": [3.0, 2.0, 1.0]}),
    "edges are two": ("number", {"edges": [1.0, float("nan")]}),
    "edges are two finite": ("time", {"edges": [1.0, 1e300]}),
    "has 'bins' of 'foo'": ("number", {"kind": "foo"}),
    "has 'bins' of 'category'": ("number", {"kind": "category"}),
    "has 'boxes' of 'category'": ("word", {"cells": "boxes"}),
    "names differ": ("word", {"names": ["a", "a", "c"]}),
    "names of kind": ("word", {"names": ["a", None, "c"]}),
    "names of kind 'number'": ("few", {"names": [str(k) for k in range(9)]}),
    '"folded"': ("word", {"folded": -1}),
    '"aware"': ("time", {"aware": 0}),
    '"aware" is for times': ("number", {"aware": True}),
    '"fitted"': ("number", {"fitted": "yes"}),
    '"known"': ("word", {"known": "yes"}),
    '"unseen"': ("word", {"unseen": [["d", -2]]}),
    '"unseen" has each category once': ("word", {"unseen": [["d", 1], ["d", 1]]}),
    "none that has a name": ("word", {"unseen": [["a", 0]]}),
    "new categories add up": ("word", {"unseen": [["d", 10]]}),
    "add up to the count of their cell": ("word", {"unseen": None, "buckets": [1] + [0] * 1023}),
}


@pytest.mark.parametrize("rule", DAMAGES)
def test_damaged_columns_are_refused(rule):
    name, change = DAMAGES[rule]
    held = FITTED.to_dict()
    held["columns"][name] |= change
    with pytest.raises(ValueError, match=f"text: a damaged profile.*{re.escape(rule)}"):
        Profile.from_json(json.dumps(held))


def test_the_column_of_weights_is_not_compared():
    """A saved reference may have been counted without the weights that it holds as a column."""
    weights = np.linspace(0.5, 2.0, 2000)
    current = DATA.assign(w=weights)
    fitted = Profile.fit(REFERENCE.assign(w=1.0))
    for options in ({"weights": "w"}, {"weights": (None, "w")}):
        found = fitted.compare(current, **options)
        assert found.problems == {}
        assert [*found.results] == [*DATA]
        assert "w" not in found.profile.cells
        assert found.to_json() == FITTED.compare(DATA, weights=(None, weights)).to_json()
    assert "w" in fitted.cells
    found = compare(REFERENCE.assign(w=1.0), current, weights=(None, "w"))
    assert found.problems == {}


def test_columns_of_a_profile_are_named_once():
    assert [*FITTED.compare(DATA, columns=iter(["few", "number"])).results] == ["few", "number"]
    with pytest.raises(ValueError, match="columns: 'few' stands there twice"):
        FITTED.compare(DATA, columns=["few", "few"])
    with pytest.raises(TypeError, match="columns: a sequence of names"):
        FITTED.compare(DATA, columns="few")


def test_whole_profiles_are_read():
    """Every kind of column, weights, given distributions, cells without edges, and the last two edges equal."""
    frame = REFERENCE.assign(
        flag=REFERENCE["few"] > 3, span=REFERENCE["time"] - REFERENCE["time"].min(), none=np.nan, one=1.5,
        zone=REFERENCE["time"].dt.tz_localize("UTC"), end=[np.inf, 2.5] * 250,
    )  # fmt: skip
    shares = {"bins": [-np.inf, 0.0, 1.0, np.inf], "weights": [0.2, 0.5, 0.3]}
    profiles = [
        Profile.fit(frame), Profile.fit(frame, weights=np.linspace(0.5, 2.0, 500)), Profile.fit(frame.head(0)),
        Profile.fit(frame[["number", "few", "flag"]], bins="category"), FITTED.empty().update(DATA),
        from_great_expectations(shares), from_great_expectations(shares, n=77), from_histogram([0.0, 1.0], [3]),
        from_great_expectations({"values": [0, "a", True], "weights": [0.2, 0.5, 0.3]}),
    ]  # fmt: skip
    for one in profiles:
        assert Profile.from_json(one.to_json()) == one


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON"),
        ("[" * 10**5, "no JSON"),
        ("[]", "not a profile"),
        ('{"klnumba_profile": 99}', "version 99"),
        ('{"klnumba_profile": 1}', "damaged"),
        (FITTED.to_json().replace('"counts": [', '"counts": [1, '), "damaged"),
    ],
)
def test_damaged_json_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        Profile.from_json(text)


def test_columns_are_chosen_as_of_frames():
    fitted = Profile.fit(pd.DataFrame({"x": [1, 2], "c": [1, 2], "xc": [1, 2]}))
    frame = pd.DataFrame({"x": [1, 2], "c": [1, 2], "xc": [1, 2]})
    assert fitted.compare(frame, columns=["xc"]).to_frame()["column"].tolist() == ["xc"]
    with pytest.raises(TypeError, match="columns: a sequence of names, not the text 'xc'"):
        fitted.compare(frame, columns="xc")
    with pytest.raises(ValueError, match="columns: 'x' stands there twice"):
        fitted.compare(frame, columns=["x", "x"])
    with pytest.raises(ValueError, match="columns: 'y' is not in reference"):
        fitted.compare(frame, columns=["y"])


@pytest.mark.parametrize(("text", "name"), [(None, "NoneType"), (b"{}", "bytes"), (pd.DataFrame(), "pandas.DataFrame")])
def test_what_is_no_text_is_no_profile(text, name):
    with pytest.raises(TypeError, match=f"text: the JSON of a profile, not {name}"):
        Profile.from_json(text)


@pytest.mark.parametrize("other", [None, 0, "profile"])
def test_what_is_no_profile_is_not_merged(other):
    with pytest.raises(TypeError, match=r"^other: a Profile, not "):
        FITTED.merge(other)
