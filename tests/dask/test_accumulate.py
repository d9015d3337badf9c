"""Accumulators over Dask arrays, on threads and on a cluster of processes, one of which dies."""

import os
import signal
import sys
import time

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels.tiles import CHUNK
from tests.metrics.states import assert_same

da = pytest.importorskip("dask.array", reason="dask is not installed")
import klnumba.dask as lazy  # noqa: E402

RNG = np.random.default_rng(1)
P, Q = RNG.dirichlet(np.ones(6), (2, 4000))
WEIGHTS, GROUPS, WHERE = RNG.integers(0, 3, 4000), RNG.integers(0, 9, 4000), RNG.random((4000, 6)) < 0.9


def directly(metric, **columns):
    metric.update(P, Q, **columns)
    return metric.state_dict()


@pytest.mark.part(2)
@pytest.mark.parametrize("columns", [
    {}, {"weights": WEIGHTS}, {"groups": GROUPS}, {"where": WHERE}, {"weights": WEIGHTS, "groups": GROUPS},
], ids=lambda x: ",".join(x) or "plain")  # fmt: skip
@pytest.mark.parametrize("chunks", [(4000, 6), (333, 2), (1000, 6)], ids=str)
def test_bits_of_one_pass(chunks, columns):
    options = {"thresholds": (0.5,), "agreement": True, "base": 2}
    p, q = da.from_array(P, chunks), da.from_array(Q, (999, 5))
    found = lazy.accumulate(kl.KLDivergence(**options), p, q, **columns).compute(scheduler="threads")
    assert_same(found.state_dict(), directly(kl.KLDivergence(**options), **columns))


@pytest.mark.parametrize("metric", [kl.CrossEntropy(), kl.JensenShannonDivergence(weight=0.3)], ids=repr)
def test_other_metrics(metric):
    found = lazy.accumulate(metric, da.from_array(P, (700, 6)), Q).compute(scheduler="threads")
    assert_same(found.state_dict(), directly(metric))


def text_labels():
    """One column of text in the forms in which it comes."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    text = np.array(["low", "middle", "high"])[GROUPS % 3]
    backwards = pd.Series(text, index=np.arange(4000)[::-1])
    yield from (text, text.astype(object), text.tolist(), backwards, backwards.astype("category"))
    yield da.from_array(text, 700)
    frames = pytest.importorskip("dask.dataframe", reason="Dask tables need pandas and pyarrow")
    for kind in ("str", "object", "category"):
        yield frames.from_pandas(pd.Series(text, dtype=kind), npartitions=3)


def test_labels_of_text():
    expected = directly(kl.KLDivergence(), groups=np.array(["low", "middle", "high"])[GROUPS % 3])
    for labels in text_labels():
        found = lazy.accumulate(kl.KLDivergence(), da.from_array(P, (700, 6)), Q, groups=labels)
        assert_same(found.compute(scheduler="threads").state_dict(), expected)


def test_columns_of_tables():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="Dask tables need pandas and pyarrow")
    expected = directly(kl.KLDivergence(), groups=GROUPS, weights=WEIGHTS, where=WHERE)
    for of_groups, of_weights in (("int64", "float64"), ("Int64", "Float64"), ("int32[pyarrow]", "double[pyarrow]")):
        table = pd.DataFrame({"g": pd.Series(GROUPS, dtype=of_groups), "w": pd.Series(WEIGHTS, dtype=of_weights)})
        lazily = frames.from_pandas(table, npartitions=3)
        masks = {"int64": "bool", "Int64": "boolean"}.get(of_groups, "bool[pyarrow]")
        where = frames.from_pandas(pd.DataFrame(WHERE).astype(masks), npartitions=2)
        found = lazy.accumulate(kl.KLDivergence(), da.from_array(P, (700, 6)), Q, lazily["w"], where, lazily["g"])
        assert_same(found.compute(scheduler="threads").state_dict(), expected)
    groups = frames.from_pandas(pd.Series(GROUPS), npartitions=3).to_dask_array()
    with pytest.raises(ValueError, match="groups: a Dask array of unknown length"):
        lazy.accumulate(kl.KLDivergence(), P, Q, groups=groups)


@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("metric", [kl.KLDivergence, kl.JensenShannonDivergence])
def test_rows_that_are_none_are_named_by_their_place(metric, kind):
    p = P.copy()
    p[2750, 3], p[2790] = np.nan, np.inf  # both in one block: of several blocks, the first to be worked on tells
    with pytest.raises(ValueError, match=r"^p: row 2750, cell 3 is NaN \(nan\)$") as directly:
        metric(kind=kind, invalid="raise").update(p, Q)
    lazily = lazy.accumulate(metric(kind=kind, invalid="raise"), da.from_array(p, (700, 6)), Q)
    with pytest.raises(ValueError, match="row 2750") as raised:
        lazily.compute(scheduler="threads")
    assert str(raised.value) == str(directly.value)
    with pytest.raises(ValueError, match="weights: ") as raised:  # another error stays what it is
        lazy.accumulate(metric(invalid="raise"), P, Q, -np.ones(4000)).compute(scheduler="threads")
    assert "row 2750" not in str(raised.value)


@pytest.mark.parametrize("cells", [6, CHUNK + 1])
def test_a_wrong_weight_is_named_by_its_place(cells):
    p = da.ones((9, cells), chunks=(2, cells))
    weights = np.array([1.0] * 7 + [-1.0, 1.0])
    with pytest.raises(ValueError, match=r"^weights: row 7 weighs -1\.0; "):
        lazy.accumulate(kl.KLDivergence(), p, p, weights).compute(scheduler="threads")


def test_rows_stay_in_order():
    metric = kl.KLDivergence(reduction="none")
    found = lazy.accumulate(metric, da.from_array(P, (300, 6)), Q).compute(scheduler="threads")
    np.testing.assert_array_equal(found.compute(), kl.kl_divergence(P, Q))
    assert metric.rows == 0


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ((kl.kl_divergence, P, Q), TypeError, "metric: a metric of rows"),
    ((kl.KLDivergence(), P, Q[:3]), RuntimeError, "expected to have the same shape"),
    ((kl.KLDivergence(), P[0], Q[0]), ValueError, "to be 2D"),
    ((kl.KLDivergence(axis=0), P, Q), ValueError, "metric: rows along the last axis"),
    ((kl.KLDivergence(), P, Q, None, WHERE[:, 0]), ValueError, r"where: shape \(4000,\), not that of p"),
    ((kl.KLDivergence(), P, Q, WEIGHTS[:7]), ValueError, r"weights: 4000 rows, not shape \(7,\)"),
])  # fmt: skip
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        lazy.accumulate(*arguments)


def slow_rows(block, seconds=0.1):
    """The block, later: so that work is under way when a worker dies."""
    if block.size:
        time.sleep(seconds)
    return block


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        p = da.from_array(P, (100, 6)).map_blocks(slow_rows, meta=np.empty((0, 0)))
        work = client.compute(lazy.accumulate(kl.KLDivergence(agreement=True), p, da.from_array(Q, (100, 6)), WEIGHTS))
        rows = client.compute(lazy.kl_divergence(p, Q, reduction="mean"))
        long = da.random.default_rng(0).random((2, 400_000), chunks=(2, 40_000)).map_blocks(slow_rows)
        long_rows = client.compute(lazy.kl_divergence(long, long[::-1], kind="logit"))
        deadline = time.monotonic() + 120
        while not sum(client.processing().values(), ()) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1.0)
        assert not work.done(), "all was done before the worker could die"
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        found, mean, values = client.gather([work, rows, long_rows])
        assert victim not in client.run(os.getpid).values()
    assert_same(found.state_dict(), directly(kl.KLDivergence(agreement=True), weights=WEIGHTS))
    assert float(mean) == float(kl.kl_divergence(P, Q, reduction="mean"))
    whole = long.compute(scheduler="threads")
    assert values.tobytes() == kl.kl_divergence(whole, whole[::-1], kind="logit").tobytes()
