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
from klnumba.tables import Profile, compare, fitting, partitions


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
    monkeypatch.setattr(fitting, "SAMPLE", 1000)
    with dask.config.set(scheduler="threads"):
        found = partitions.compare(cut(BEFORE, count), cut(AFTER, count + 1), **options)
    whole = compare(BEFORE, AFTER, **options)
    assert found.profile == whole.profile
    assert found.to_json() == whole.to_json()


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
