"""Weights of rows: a row of weight 0 is none, and the column that holds the weights is not compared."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare, sampling


def table(rows, seed):
    """Half of the rows have no weight, and values that no other row has."""
    draws = np.random.default_rng(seed)
    weight = np.where(draws.random(rows) < 0.5, 0, draws.integers(1, 4, rows))
    lost = weight == 0
    word = np.where(lost, draws.integers(10**6, 2 * 10**6, rows), draws.integers(0, 1200 + 1500 * seed, rows))
    frame = pd.DataFrame({
        "word": word.astype(str),
        "number": np.where(lost, 1e9, draws.normal(size=rows)),
        "few": np.where(lost, draws.integers(0, 1000, rows), draws.integers(0, 5, rows)),
        "time": pd.to_datetime(draws.integers(0, 10**9, rows), unit="s").tz_localize("Asia/Tokyo"),
        "flag": draws.random(rows) < 0.5,
        "w": weight.astype(float),
    })  # fmt: skip
    mixed = pd.Series(["text" if gone else value for gone, value in zip(lost, frame["few"], strict=True)])
    return frame.assign(category=frame["word"].astype("category"), object=frame["word"].astype(object), mixed=mixed)


BEFORE, AFTER = table(12_000, 0), table(9_000, 1)


def held(frame):
    return frame[frame["w"] > 0]


def cut(frame, size):
    return Chunks(lambda: [frame.iloc[k : k + size] for k in range(0, len(frame), size)])


@pytest.mark.part(2)
@pytest.mark.parametrize("rows", [500, 4000])
def test_a_row_of_weight_0_changes_nothing(rows, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE", 2000)
    expected = compare(held(BEFORE), held(AFTER), weights="w")
    assert expected.to_frame()["status"].eq("ok").all()
    for sides in ((BEFORE, AFTER), (cut(BEFORE, rows), cut(AFTER, rows))):
        found = compare(*sides, weights="w")
        assert found.profile == expected.profile
        assert found.to_json() == expected.to_json()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_rows_of_weight_0_in_other_libraries(library):
    pytest.importorskip("pyarrow", reason="the words lie in its layout")
    module = pytest.importorskip(library, reason=f"a frame of {library}")
    make = module.from_pandas if library == "polars" else module.Table.from_pandas
    kept = ["word", "number", "few", "time", "flag", "w"]
    expected = compare(held(BEFORE)[kept], held(AFTER)[kept], weights="w")
    found = compare(*(make(one[kept].reset_index(drop=True)) for one in (BEFORE, AFTER)), weights="w")
    assert found.to_json() == expected.to_json()


def test_rows_of_weight_0_of_weights_beside_the_table():
    sides, weights = [one.drop(columns="w") for one in (BEFORE, AFTER)], [one["w"] for one in (BEFORE, AFTER)]
    rest = [side[weight > 0] for side, weight in zip(sides, weights, strict=True)]
    expected = compare(*rest, weights=tuple(weight[weight > 0].to_numpy() for weight in weights))
    assert compare(*sides, weights=(weights[0], weights[1].to_numpy())).to_json() == expected.to_json()


def test_no_row_with_a_weight():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"], "w": [1.0, 3.0]})
    for sides, title in (((frame, frame.assign(w=0)), "current"), ((frame.assign(w=0), frame), "reference")):
        rows = compare(*sides, weights="w").to_frame()
        assert rows["status"].tolist() == [f"{title} has no values"] * 2
        assert rows[f"n_{title}"].tolist() == [0, 0]


def test_dask_leaves_the_same_rows_out(monkeypatch):
    dd = pytest.importorskip("dask.dataframe", reason="the partitions are Dask's")
    import dask

    from klnumba.tables import partitions

    monkeypatch.setattr(sampling, "SAMPLE", 2000)
    sides = [one.drop(columns="mixed") for one in (BEFORE, AFTER)]  # of which Dask makes texts
    with dask.config.set(scheduler="synchronous"):
        found = partitions.compare(*(dd.from_pandas(one, npartitions=3) for one in sides), weights="w")
    assert found.to_json() == compare(*map(held, sides), weights="w").to_json()


def test_the_column_of_weights_cannot_be_compared():
    text = r"columns: 'w' holds the weights of the rows \(weights='w'\), and is not compared"
    profile = Profile.fit(BEFORE)
    calls = [
        lambda: compare(BEFORE, AFTER, columns=["word", "w"], weights="w"),
        lambda: compare(BEFORE, AFTER, columns=["w"], weights=(None, "w")),
        lambda: compare(cut(BEFORE, 900), AFTER, columns=["w"], weights="w"),
        lambda: profile.compare(AFTER, columns=["w"], weights="w"),
        lambda: Profile.fit(BEFORE, columns=["w", "word"], weights="w"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=text):
            call()
    assert Profile.fit(BEFORE, columns=["w"], weights=BEFORE["w"]).cells.keys() == {"w"}


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_rows_of_weight_0_in_views_and_in_what_has_no_cells(library):
    pa = pytest.importorskip("pyarrow", reason="the views are its")
    raw = [b"a", b"\xff", None, b"c"]
    columns = {"text": pa.array(["a", "b", None, "a"], "string_view"), "bytes": pa.array(raw, "binary_view"),
               "lists": pa.array([[1], [2], [3], [4]], pa.list_view(pa.int64()))}  # fmt: skip
    made = pa.table(columns)
    frame = made.to_pandas(types_mapper=pd.ArrowDtype) if library == "pandas" else made
    profile = Profile.fit(frame, weights=[2.0, 0.0, 3.0, 4.0])
    assert profile.tallies["text"].counts.tolist() == [6, 0, 3]
    assert profile.tallies["bytes"].counts.tolist() == [2, 4, 0, 3]
    assert profile.problems.keys() == {"lists"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("share", [0.001, 0.7])
def test_long_columns_with_rows_of_weight_0(library, share):
    """More rows than are copied at a time."""
    make = pytest.importorskip(library, reason="makes the frames").DataFrame
    draws = np.random.default_rng(0)
    rows = 600_000
    weights = np.where(draws.random(rows) < share, draws.integers(1, 4, rows), 0)
    frame = pd.DataFrame({"x": draws.normal(size=rows), "k": draws.integers(0, 5, rows), "w": weights})
    rest = held(frame).reset_index(drop=True)
    found, expected = (make({name: one[name].to_numpy() for name in one}) for one in (frame, rest))
    assert Profile.fit(found, weights="w").to_json() == Profile.fit(expected, weights="w").to_json()


def test_columns_of_several_levels_are_named_by_tuples():
    names = ["number", "few", "w"]
    before, after = (pd.concat({"a": frame[names]}, axis=1) for frame in (BEFORE, AFTER))
    plain = {"columns": ["number"], "bins": {"number": 5}}
    expected = compare(BEFORE, AFTER, weights="w", **plain)
    options = {"columns": [("a", "number")], "bins": {("a", "number"): 5}}
    name = "('a', 'number')"
    for weights in (("a", "w"), (("a", "w"), ("a", "w")), "('a', 'w')", (("a", "w"), AFTER["w"])):
        found = compare(before, after, weights=weights, **options)
        assert found.results[name].values == expected.results["number"].values
    one_side = compare(before, after, weights=(("a", "w"), None), **options)
    one_plain = compare(BEFORE, AFTER, weights=("w", None), **plain)
    assert one_side.results[name].values == one_plain.results["number"].values
    profile = Profile.fit(before, weights=("a", "w"), **options)
    assert profile == found.profile
    assert profile.empty().update(before, weights=("a", "w")) == profile
    with pytest.raises(ValueError, match=r"columns: \"\('a', 'w'\)\" holds the weights of the rows"):
        compare(before, after, columns=[("a", "w")], weights=("a", "w"))


def test_a_tuple_that_one_table_lacks_is_a_pair():
    deep = pd.concat({"a": BEFORE[["few", "w"]]}, axis=1)
    with pytest.raises(ValueError, match="weights: 'a' is not in reference"):
        compare(deep, AFTER[["few", "w"]], weights=("a", "w"))
    both = BEFORE[["few", "w"]].assign(v=1.0)
    found = [
        compare(both, both, columns=["few"], weights=pair).results["few"].values
        for pair in (("w", "v"), (both["w"], both["v"]))
    ]
    assert found[0] == found[1]
