"""Dask arrays: lazily, in blocks of any shape, with the bits of one machine."""

import numpy as np
import pytest

import klnumba as kl

da = pytest.importorskip("dask.array", reason="dask is not installed")
import klnumba.dask as lazy  # noqa: E402

RNG = np.random.default_rng(0)
P, Q = RNG.dirichlet(np.ones(12), (2, 5, 40))
CHUNKS = [(5, 40, 12), (2, 7, 5), ((1, 4), (40,), (1, 11)), (5, 13, 3)]
FUNCTIONS = ["kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"]


def assert_bits(lazily, directly):
    found = lazily.compute(scheduler="threads")
    assert lazily.shape == np.shape(directly)
    assert lazily.dtype == np.asarray(directly).dtype == np.asarray(found).dtype
    assert np.asarray(found).tobytes() == np.ascontiguousarray(directly).tobytes()


@pytest.mark.part(2)
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), None], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows(name, axis, chunks):
    p, q = da.from_array(P, chunks), da.from_array(Q, CHUNKS[1])
    assert_bits(getattr(lazy, name)(p, q, axis=axis), getattr(kl, name)(P, Q, axis=axis))


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reductions(reduction, chunks):
    p, q = da.from_array(P, chunks), da.from_array(Q, chunks)
    assert_bits(lazy.kl_divergence(p, q, reduction=reduction), kl.kl_divergence(P, Q, reduction=reduction))


@pytest.mark.parametrize("options", [
    {"kind": "logit", "temperature": 2.0}, {"kind": "log_prob"}, {"normalize": False}, {"base": 2},
    {"dtype": "float32"},
    {"keepdims": True}, {"keepdims": True, "axis": (0, 1)},
], ids=str)  # fmt: skip
def test_options(options):
    p, q = da.from_array(P, (2, 7, 5)), da.from_array(Q, (5, 40, 12))
    assert_bits(lazy.kl_divergence(p, q, **options), kl.kl_divergence(P, Q, **options))


def test_weight_of_p():
    p, q = da.from_array(P, (2, 7, 5)), da.from_array(Q, (2, 7, 5))
    assert_bits(lazy.js_divergence(p, q, weight=0.25), kl.js_divergence(P, Q, weight=0.25))


@pytest.mark.parametrize("shape", [(12,), (1, 12), (40, 1), (5, 1, 12), (1, 1, 1)], ids=str)
def test_broadcasting(shape):
    q = RNG.exponential(size=shape)
    p = da.from_array(P, (2, 7, 5))
    assert_bits(lazy.kl_divergence(p, q), kl.kl_divergence(P, q))
    assert_bits(lazy.kl_divergence(da.from_array(q, 1), p, axis=1), kl.kl_divergence(q, P, axis=1))


@pytest.mark.parametrize("shape", [(5, 40, 12), (12,), (40, 1)], ids=str)
def test_cells_left_out(shape):
    where = RNG.random(shape) < 0.7
    p = da.from_array(P, (2, 7, 5))
    assert_bits(lazy.kl_divergence(p, Q, where=da.from_array(where, 1)), kl.kl_divergence(P, Q, where=where))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_dtypes(dtype):
    p, q = (100 * P).astype(dtype), (100 * Q + 1).astype(dtype)
    assert_bits(lazy.kl_divergence(da.from_array(p, (2, 7, 5)), da.from_array(q, (5, 5, 5))), kl.kl_divergence(p, q))


def test_entropy_and_statistics():
    p, q = da.from_array(P, (2, 7, 5)), da.from_array(Q, (2, 7, 5))
    assert_bits(lazy.entropy(p, base=2), kl.entropy(P, base=2))
    names = ("kl", "reverse_kl", "argmax_agree", "max_log_ratio")
    found, want = lazy.row_statistics(p, q, stats=names), kl.row_statistics(P, Q, stats=names)
    assert list(found) == list(names)
    for name in names:
        assert_bits(found[name], want[name])


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("name", ["rel_entr", "generalized_kl"])
def test_cells(name, dtype):
    p = da.from_array(P, (2, 7, 5))
    assert_bits(getattr(lazy, name)(p, Q[0], dtype=dtype), getattr(kl, name)(P, Q[0], dtype=dtype))


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        if block.size:
            raise AssertionError("computed")
        return block

    p = da.from_array(P, (2, 7, 5)).map_blocks(fail, meta=np.empty((0, 0, 0)))
    found = lazy.kl_divergence(p, Q, reduction="mean")
    with pytest.raises(AssertionError, match="computed"):
        found.compute()


def test_one_thread_a_block(monkeypatch):
    from klnumba.kernels import threads

    asked = []
    together = threads.together
    monkeypatch.setattr(threads, "together", lambda work, count: (asked.append(count), together(work, count)))
    big = np.broadcast_to(P[0, 0], (50_000, 12))
    lazy.kl_divergence(da.from_array(big, (20_000, 12)), big).compute(scheduler="synchronous")
    assert set(asked) == {1}


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"out": np.empty(3)}, TypeError, "out: not with dask arrays"),
    ({"threads": 2}, TypeError, "threads: not with dask"),
    ({"base": 1}, ValueError, "base: "), ({"reduction": "max"}, ValueError, "reduction: one of"),
    ({"kind": "x"}, ValueError, "kind: one of"), ({"axis": 3}, ValueError, "axis 3 is out of bounds"),
    ({"where": np.ones(5, bool)}, ValueError, "shapes .* do not broadcast"), ({"colour": 1}, TypeError, "colour"),
    ({"where": da.ones(12)}, TypeError, "where: a boolean array, not float64"),
    ({"where": np.ma.ones(12, bool)}, TypeError, "where: a masked array"),
])  # fmt: skip
def test_wrong_arguments_at_once(options, error, text):
    with pytest.raises(error, match=text):
        lazy.kl_divergence(da.from_array(P, (2, 7, 5)), Q, **options)


def test_wrong_shapes_and_dtypes_at_once():
    with pytest.raises(ValueError, match="do not broadcast"):
        lazy.kl_divergence(da.ones((3, 2)), da.ones((4, 2)))
    with pytest.raises(TypeError, match="p: dtype complex128"):
        lazy.kl_divergence(da.ones((3, 2), dtype=complex), da.ones((3, 2)))
    with pytest.raises(TypeError, match="stats: a sequence"):
        lazy.row_statistics(P, Q, stats="kl")
    with pytest.raises(TypeError, match="p: dtype complex128"):
        lazy.rel_entr(da.ones((3, 2), dtype=complex), da.ones((3, 2)))
    with pytest.raises(TypeError, match="dtype: a floating-point type, not int64"):
        lazy.generalized_kl(da.ones((3, 2)), da.ones((3, 2)), dtype=int)


@pytest.mark.parametrize("axis", [-1, 0, (), None], ids=str)
@pytest.mark.parametrize("options", [{}, {"reduction": "mean"}, {"keepdims": True}], ids=str)
def test_blocks_without_cells(axis, options):
    none = da.concatenate([da.ones((0, 5), chunks=(0, 3))] * 3)
    for q in (none, da.ones((1, 5)), da.ones((1, 5), chunks=2), da.ones((0, 5)), da.ones((0, 5), chunks=(0, 2))):
        directly = kl.kl_divergence(np.ones((0, 5)), np.ones(q.shape), axis=axis, **options)
        assert_bits(lazy.kl_divergence(none, q, axis=axis, **options), directly)
        assert lazy.rel_entr(none, q).compute().shape == (0, 5)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": None, "keepdims": True}, {"reduction": "sum"}], ids=str)
def test_arrays_without_axes(options):
    found = lazy.kl_divergence(da.asarray(0.5), 0.25, normalize=False, **options)
    assert_bits(found, kl.kl_divergence(0.5, 0.25, normalize=False, **options))


def test_a_bad_row_raises_when_computed():
    p = P.copy()
    p[3, 20, 5] = -1.0
    found = lazy.kl_divergence(da.from_array(p, (5, 40, 5)), Q, invalid="raise")
    with pytest.raises(ValueError, match=r"p: row \(3, 20\), cell 5 is negative"):
        found.compute()


@pytest.mark.parametrize("axis", [None, (0, 1, 2)], ids=str)
def test_one_row_of_all_cells_may_raise_and_does_not(axis):
    found = lazy.kl_divergence(da.from_array(P, (2, 7, 5)), Q, axis=axis, invalid="raise")
    assert_bits(found, kl.kl_divergence(P, Q, axis=axis))
    p = da.from_array(np.where(np.arange(12) == 7, -1.0, P), (2, 7, 5))
    found = lazy.kl_divergence(p, Q, axis=axis, invalid="raise")
    with pytest.raises(ValueError, match="p: the row, cell 7 is negative"):
        found.compute()


def test_chunks_of_unknown_size():
    p = da.from_array(P[0], (7, 12))
    unknown = p[da.from_array(P[0, :, 0] > 0.1, 7)]
    with pytest.raises(ValueError, match="chunk sizes are not known; compute_chunk_sizes"):
        lazy.kl_divergence(unknown, unknown)
    for call in (lambda p, q: lazy.accumulate(kl.KLDivergence(), p, q), lazy.score):
        rows = da.from_array(P[0], 7)
        unknown = rows[da.from_array(P[0, :, 0] > 0.1, 7)]
        with pytest.raises(ValueError, match="chunk sizes are not known; compute_chunk_sizes"):
            call(unknown, unknown)
    with pytest.raises(ValueError, match="p, q and mask: chunk sizes are not known"):
        lazy.score(rows, rows, mask=unknown > 0.0)


def test_tensors_beside_dask_arrays():
    torch = pytest.importorskip("torch", reason="tensors are PyTorch's")
    rows, tensor = da.from_array(P[0], (7, -1)), torch.tensor(P[0])
    np.testing.assert_array_equal(lazy.kl_divergence(tensor, rows + 0.5), kl.kl_divergence(P[0], P[0] + 0.5))
    np.testing.assert_array_equal(lazy.rel_entr(rows + 0.5, tensor), kl.rel_entr(P[0] + 0.5, P[0]))
    where = torch.tensor(P[0] > 0.1)
    found = lazy.kl_divergence(rows, rows + 0.5, where=where, normalize=False)
    np.testing.assert_array_equal(found, kl.kl_divergence(P[0], P[0] + 0.5, where=P[0] > 0.1, normalize=False))
    assert lazy.score(rows, tensor).compute().rows == len(P[0])
    assert lazy.accumulate(kl.KLDivergence(), tensor, rows).compute().rows == len(P[0])
    for call in (lazy.js_divergence, lazy.rel_entr, lazy.score):
        with pytest.raises(TypeError, match="q: an array, not a distribution, Normal"):
            call(rows, torch.distributions.Normal(0.0, 1.0))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"dtype": "float64"}], ids=str)
def test_reductions_of_narrow_rows(options, reduction):
    p, q = P.astype(np.float32), Q.astype(np.float32)
    q[0, 0, 0] = 0.0 if reduction == "sum" else q[0, 0, 0]  # an infinite row
    for first, second in ((p, q), (P, Q)):
        lazily = lazy.kl_divergence(da.from_array(first, (2, 7, 5)), second, reduction=reduction, **options)
        assert_bits(lazily, kl.kl_divergence(first, second, reduction=reduction, **options))
