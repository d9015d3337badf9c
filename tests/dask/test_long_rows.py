"""Rows longer than a piece: in blocks cut anywhere, with the bits of one machine, and no task that holds a row."""

import sys

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels.tiles import CHUNK
from tests.metrics.states import assert_same

da = pytest.importorskip("dask.array", reason="dask is not installed")
from dask.callbacks import Callback  # noqa: E402

import klnumba.dask as lazy  # noqa: E402

CELLS = 3 * CHUNK + 777
RNG = np.random.default_rng(5)
P, Q = RNG.exponential(size=(2, 3, CELLS))
NEAR = P * (1.0 + 1e-9 * RNG.random(P.shape))


def cut(array, seed):
    """The array in blocks of random sizes."""
    rng = np.random.default_rng(seed)
    chunks = []
    for n in array.shape:
        places = np.unique(rng.integers(1, n, 4 if n > 100 else 1)) if n > 1 else []
        chunks.append(tuple(map(int, np.diff([0, *places, n]))))
    return da.from_array(array, tuple(chunks))


def assert_bits(lazily, directly):
    found = lazily.compute(scheduler="threads")
    assert lazily.shape == np.shape(directly)
    assert lazily.dtype == np.asarray(directly).dtype == np.asarray(found).dtype
    assert np.asarray(found).tobytes() == np.ascontiguousarray(directly).tobytes()


@pytest.mark.part(10)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", ["kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"])
def test_probabilities(name, normalize, seed):
    for q in (Q, NEAR):
        found = getattr(lazy, name)(cut(P, seed), cut(q, seed + 10), normalize=normalize)
        assert_bits(found, getattr(kl, name)(P, q, normalize=normalize))


@pytest.mark.part(10)
@pytest.mark.parametrize("options", [
    {"kind": "logit", "temperature": 2.0}, {"kind": "logit"}, {"kind": "log_prob"},
    {"kind": "log_prob", "normalize": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", ["kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"])
def test_logarithms(name, options):
    p, q, near = (np.log(x) for x in (P, Q, NEAR))
    for seed, other in enumerate((q, near)):
        found = getattr(lazy, name)(cut(p, seed), cut(other, seed + 10), **options)
        assert_bits(found, getattr(kl, name)(p, other, **options))


@pytest.mark.parametrize("dtype", [None, "float64", "float32"])
@pytest.mark.parametrize("cells", ["float32", "float16", "int64"])
def test_dtypes(cells, dtype):
    p, q = ((100 * x + 1).astype(cells) for x in (P, Q))
    options = {} if dtype is None else {"dtype": dtype}
    for reduction in ("none", "mean"):
        found = lazy.kl_divergence(cut(p, 1), cut(q, 2), reduction=reduction, **options)
        assert_bits(found, kl.kl_divergence(p, q, reduction=reduction, **options))


def test_every_statistic():
    names = ("kl", "reverse_kl", "js", "jeffreys", "entropy_p", "entropy_q", "cross_entropy", "argmax_agree",
             "max_log_ratio")  # fmt: skip
    found, want = lazy.row_statistics(cut(P, 3), cut(Q, 4), stats=names), kl.row_statistics(P, Q, stats=names)
    for name in names:
        assert_bits(found[name], want[name])
    assert_bits(lazy.entropy(cut(P, 5), base=2), kl.entropy(P, base=2))


def test_zeros_infinities_and_huge_cells():
    p, q = P.copy(), Q.copy()
    p[0, 5] = q[0, 5] = q[1, CELLS // 2] = 0.0
    p[2] *= 1e306
    q[2] *= 1e-300
    for name in ("kl_divergence", "js_divergence"):
        assert_bits(getattr(lazy, name)(cut(p, 1), cut(q, 2)), getattr(kl, name)(p, q))


@pytest.mark.parametrize("shape", [(3, CELLS), (CELLS,), (3, 1)], ids=str)
def test_cells_left_out(shape):
    where = RNG.random(shape) < 0.7
    assert_bits(lazy.kl_divergence(cut(P, 6), cut(Q, 7), where=cut(where, 8)), kl.kl_divergence(P, Q, where=where))


@pytest.mark.parametrize(("shape", "axis"), [
    ((900, 1000), None), ((CELLS, 3), 0), ((2, 600, 900), (1, 2)), ((600, 2, 900), (0, 2)), ((900, 1000), (1, 0)),
    ((1, 2, CELLS), -1),
], ids=str)  # fmt: skip
def test_axes(shape, axis):
    p, q = RNG.exponential(size=(2, *shape))
    for keepdims in (False, True):
        found = lazy.kl_divergence(cut(p, 1), cut(q, 2), axis=axis, keepdims=keepdims)
        assert_bits(found, kl.kl_divergence(p, q, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_no_rows(reduction):
    none = da.zeros((2, 0, CHUNK + 7), chunks=(1, 1, 9_999))
    found = lazy.kl_divergence(none, none[0], reduction=reduction)
    assert_bits(found, np.zeros((2, 0)) if reduction == "none" else np.float64(0.0))
    metric = kl.KLDivergence(agreement=True)
    assert lazy.accumulate(metric, none[0], none[0]).compute(scheduler="threads").rows == 0


def test_broadcasting():
    assert_bits(lazy.kl_divergence(cut(P, 1), cut(Q[0], 2)), kl.kl_divergence(P, Q[0]))
    assert_bits(lazy.kl_divergence(cut(P[:1], 1), cut(Q, 2), base=2), kl.kl_divergence(P[:1], Q, base=2))


class Largest(Callback):
    """The most cells in what a task gives."""

    def __init__(self):
        super().__init__()
        self.cells = 0

    def _posttask(self, key, result, dsk, state, worker_id):
        if isinstance(result, np.ndarray):
            self.cells = max(self.cells, result.size)


@pytest.mark.part(2)
@pytest.mark.parametrize("chunks", [(1, CHUNK), (1, 5000), (3, 40_000), ((1, 2), (CHUNK + 5, 2 * CHUNK - 5, 777))])
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_no_task_holds_a_row(kind, chunks):
    p = da.from_array(P, chunks)
    seen = Largest()
    with seen:
        found = lazy.kl_divergence(p, da.from_array(Q, (3, 7000)), kind=kind).compute(scheduler="threads")
    assert found.tobytes() == kl.kl_divergence(P, Q, kind=kind).tobytes()
    assert seen.cells <= 2 * max(CHUNK, max(p.chunks[0]) * max(p.chunks[1]))


def test_short_rows_come_together_in_blocks_no_larger_than_before():
    p, q = RNG.exponential(size=(2, 600, 4000))
    seen = Largest()
    with seen:
        found = lazy.kl_divergence(da.from_array(p, (600, 50)), da.from_array(q, (600, 50)))
        assert_bits(found, kl.kl_divergence(p, q))
    assert seen.cells <= 2 * 600 * 50


def test_one_read_where_one_is_enough():
    """KL of probabilities takes one, that of logits two: of each block, the largest cells first."""
    reads = []

    def noted(block):
        reads.append(block.size)
        return block

    for kind, most in (("prob", 1), ("logit", 2)):
        reads.clear()
        p = da.from_array(P, (3, CHUNK)).map_blocks(noted, meta=np.empty((0, 0)))
        lazy.kl_divergence(p, da.from_array(Q, (3, CHUNK)), kind=kind).compute(scheduler="synchronous")
        assert sum(reads) == most * P.size


@pytest.mark.parametrize(("place", "value", "text"), [
    ((1, 5), -1.0, r"p: row 1, cell 5 is negative \(-1.0\)"),
    ((2, CELLS - 2), np.nan, rf"p: row 2, cell {CELLS - 2} is NaN \(nan\)"),
    ((1, slice(None)), 0.0, "p: row 1 has no mass"),
])  # fmt: skip
def test_a_bad_row_is_named(place, value, text):
    p = P.copy()
    p[place] = value
    assert_bits(lazy.kl_divergence(cut(p, 1), cut(Q, 2)), kl.kl_divergence(p, Q))
    with pytest.raises(ValueError, match=text):
        lazy.kl_divergence(cut(p, 1), cut(Q, 2), invalid="raise").compute(scheduler="threads")
    with pytest.raises(ValueError, match=text):
        kl.kl_divergence(p, Q, invalid="raise")


@pytest.mark.parametrize("columns", [
    {}, {"weights": np.array([1, 0, 2])}, {"groups": np.array([7, 8, 7])}, {"where": P < 2.0},
], ids=lambda x: ",".join(x) or "plain")  # fmt: skip
def test_accumulators(columns):
    options = {"agreement": True, "base": 2}
    metric = kl.JensenShannonDivergence(weight=0.3, **options)
    found = lazy.accumulate(metric, cut(P, 1), cut(Q, 2), **columns).compute(scheduler="threads")
    metric.update(P, Q, **columns)
    assert_same(found.state_dict(), metric.state_dict())


@pytest.mark.skipif(sys.platform == "win32", reason="processes are slow to start there")
def test_on_a_cluster(tmp_path):
    """Workers ask for more blocks themselves; those that are kept on workers are found there."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        p, q = (da.random.default_rng(k).exponential(size=(2, CELLS), chunks=(2, 100_000)) for k in range(2))
        found = lazy.kl_divergence(p, q, kind="logit").compute()
        kept = lazy.js_divergence(client.persist(p), client.persist(q)).compute()
        metric = lazy.accumulate(kl.KLDivergence(), p, q).compute()
    first, second = (x.compute(scheduler="threads") for x in (p, q))
    assert found.tobytes() == kl.kl_divergence(first, second, kind="logit").tobytes()
    assert kept.tobytes() == kl.js_divergence(first, second).tobytes()
    assert 2 * float(metric.compute()) == kl.kl_divergence(first, second, reduction="sum")
