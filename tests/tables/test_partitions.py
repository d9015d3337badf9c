"""Dask data frames give what one frame gives, on threads and on a cluster of processes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")
pytest.importorskip("dask.dataframe", reason="the partitions are Dask's")

import dask
import dask.dataframe as dd
import pandas as pd

import klnumba.dask
from klnumba.tables import Profile, compare, partitions, sampling


def table(rows, seed):
    rng = np.random.default_rng(seed)
    number = rng.gamma(2.0, size=rows)
    number[: rows // 4] = np.nan
    return pd.DataFrame({
        "number": number,
        "few": rng.integers(0, 5, rows),
        "wide": rng.integers(0, 10**6, rows),
        "word": pd.Series(rng.choice(["a", "b", "c", None], rows), dtype=str),
        "w": rng.integers(1, 4, rows),
        f"only{seed}": 1.5,
    })  # fmt: skip


BEFORE, AFTER = table(6000, 0), table(5000, 1)


def cut(frame, count):
    return dd.from_pandas(frame, npartitions=count)


@pytest.mark.parametrize("options", [{}, {"bins": "fd"}, {"columns": ["word", "wide"]}, {"weights": "w"}])
@pytest.mark.parametrize("count", [1, 20])
def test_partitions_change_nothing(options, count, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE", 1000)
    with dask.config.set(scheduler="threads"):
        found = partitions.compare(cut(BEFORE, count), cut(AFTER, count + 1), **options)
    whole = compare(BEFORE, AFTER, **options)
    assert found.profile == whole.profile
    assert found.to_json() == whole.to_json()


@pytest.mark.parametrize("bins", ["auto", [-1, 0, 1]])
@pytest.mark.parametrize("lost", [[], ["lists", "times"]])
def test_columns_without_cells_keep_the_reason(bins, lost):
    before = pd.DataFrame({
        "complex": [1j, 2, 3, 4], "x": [0.5, -0.5, 0.1, 0.2], "lists": [[1], [2], [3], [4]],
        "times": pd.date_range("2020", periods=4), "late": pd.Series([1, 2, 1, [1]], dtype=object),
    })  # fmt: skip
    after = before.drop(columns=lost).assign(new=1)
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        found = partitions.compare(cut(before, 2), cut(after, 2), bins=bins)
        again = partitions.compare(partitions.fit(cut(before, 2), bins=bins), cut(after, 2))
    whole = compare(before, after, bins=bins)
    assert found.profile == again.profile == whole.profile
    assert {row["status"] for row in found.rows()} > {"holds complex128, which has no cells", "is not in reference"}
    assert found.to_json() == again.to_json() == whole.to_json()


def test_a_cluster_of_processes():
    distributed = pytest.importorskip("distributed", reason="the cluster is its")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        found = klnumba.dask.compare(cut(BEFORE, 5), cut(AFTER, 4))
    assert found.to_json() == compare(BEFORE, AFTER).to_json()


def test_profiles_may_stand_for_either():
    with dask.config.set(scheduler="synchronous"):
        fitted = partitions.fit(cut(BEFORE, 3))
        assert fitted == Profile.fit(BEFORE)
        found = partitions.compare(fitted, fitted.empty().update(AFTER.assign(only0=1.5)))
    assert (found.to_frame()["status"] == "ok").all()


def test_the_column_of_weights_is_not_compared():
    """A saved reference may hold it as a column."""
    with dask.config.set(scheduler="synchronous"):
        found = partitions.compare(Profile.fit(BEFORE), cut(AFTER, 3), weights="w")
    assert found.to_json() == Profile.fit(BEFORE).compare(AFTER, weights="w").to_json()
    assert "w" not in found.problems


@pytest.mark.parametrize("sides", [(True, False), (False, True)])
def test_weights_of_one_side(sides):
    lost = [[] if held else ["w"] for held in sides]
    before, after = (frame.drop(columns=gone) for frame, gone in zip((BEFORE, AFTER), lost, strict=True))
    with dask.config.set(scheduler="synchronous"):
        found = partitions.compare(cut(before, 3), cut(after, 4), weights="w")
        with pytest.raises(ValueError, match="weights: 'v' is in neither table"):
            partitions.compare(cut(before, 3), cut(after, 4), weights="v")
    assert found.to_json() == compare(before, after, weights="w").to_json()


def test_a_whole_number_as_the_name_of_the_weights():
    before, after = (frame[["number", "w"]].set_axis([0, 1], axis=1) for frame in (BEFORE, AFTER))
    with dask.config.set(scheduler="synchronous"):
        found = partitions.compare(cut(before, 3), cut(after, 4), weights=1)
    assert found.to_json() == compare(before, after, weights=1).to_json()


def test_a_tuple_as_the_name_of_the_weights():
    before, after = (pd.concat({"a": frame[["number", "w"]]}, axis=1) for frame in (BEFORE, AFTER))
    with dask.config.set(scheduler="synchronous"):
        found = partitions.compare(cut(before, 3), cut(after, 4), weights=("a", "w"))
        with pytest.raises(TypeError, match="weights: of a Dask data frame, the name of a column"):
            partitions.compare(cut(before, 3), cut(AFTER, 4), weights=("a", "w"))
    assert found.to_json() == compare(before, after, weights=("a", "w")).to_json()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, None),
        ({"smoothing": "some"}, "smoothing: one of"),
        ({"confidence": 2}, "confidence: a number between 0 and 1"),
        ({"weights": "nope"}, "weights: 'nope' is in neither table"),
        ({"bins": "many"}, "bins: one of"),
        ({"progress": 3}, "progress: True, False or a function"),
    ],
)
def test_how_often_the_tables_are_computed(options, text):
    loads = []

    def part(k):
        loads.append(k)
        return BEFORE.iloc[1500 * k : 1500 * (k + 1)]

    table = dd.from_map(part, range(4), meta=BEFORE.iloc[:0])
    with dask.config.set(scheduler="synchronous"):
        if text is None:
            partitions.compare(table, cut(AFTER, 2))
            assert len(loads) == 3 * 4
            return
        loads.clear()
        with pytest.raises((TypeError, ValueError), match=text):
            partitions.compare(table, cut(AFTER, 2), **options)
    assert not loads


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"reference: a Dask data frame, not pandas\.DataFrame"):
        partitions.compare(BEFORE, AFTER)
    with pytest.raises(TypeError, match=r"reference: .*, not dask\.DataFrame; klnumba\.dask\.compare takes those"):
        compare(cut(BEFORE, 2), AFTER)
    with pytest.raises(TypeError, match="weights: of a Dask data frame"):
        partitions.fit(cut(BEFORE, 2), weights=np.ones(6000))
    with pytest.raises(TypeError, match="like: needs"):
        partitions.compare(cut(BEFORE, 2), cut(AFTER, 2), like="scipy")
    with pytest.raises(ValueError, match="columns: 'nope' is not in reference"):
        partitions.fit(cut(BEFORE, 2), columns=["nope"])
