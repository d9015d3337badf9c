"""The same bits however a call is split, threaded or laid out."""

import numpy as np
import pytest

import klnumba as kl

PAIRS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
LENGTHS = (1, 2, 3, 5, 8, 10, 16, 31, 32, 33, 63, 64, 65, 100, 127, 257, 1000, 5001)
SETTINGS = [("prob", True), ("prob", False), ("log_prob", True), ("log_prob", False), ("logit", True)]
DTYPES = (np.float64, np.float32)
# Each has loops of its own to compile; in float32 those of KL stand for the others.
CALLS = [
    pytest.param(function, dtype, marks=[] if dtype == np.float64 or function == "kl_divergence" else pytest.mark.slow)
    for function in (*PAIRS, "entropy")
    for dtype in DTYPES
]


def call(function, p, q, **settings):
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


def rows(shape, kind, dtype, seed=0):
    rng = np.random.default_rng([seed, *shape])
    p, q = (rng.gamma(1.0, size=shape) + 1e-6 for _ in range(2))
    return [(x if kind == "prob" else np.log(x)).astype(dtype) for x in (p, q)]


def same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype
    return one.tobytes() == other.tobytes()


@pytest.mark.part(8)
@pytest.mark.parametrize(("function", "dtype"), CALLS)
@pytest.mark.parametrize(("kind", "normalize"), SETTINGS)
def test_rows_split_into_calls_and_moved_axes(dtype, kind, normalize, function):
    for n in LENGTHS:
        count = 37 if n < 1000 else 5
        p, q = rows((count, n), kind, dtype)
        settings = {"kind": kind, "normalize": normalize}
        whole = call(function, p, q, **settings)
        one_by_one = np.array([call(function, a, b, **settings) for a, b in zip(p, q, strict=True)])
        assert same_bits(whole, one_by_one), n
        cut = [call(function, p[i:j], q[i:j], **settings) for i, j in ((0, 1), (1, 4), (4, count))]
        assert same_bits(whole, np.concatenate(cut)), n
        assert same_bits(whole, call(function, p.T.copy(), q.T.copy(), axis=0, **settings)), n
        assert same_bits(whole, call(function, np.asfortranarray(p), np.asfortranarray(q), **settings)), n
        wide = [np.repeat(x, 3, axis=1)[:, 1::3] for x in (p, q)]
        assert same_bits(whole, call(function, *wide, **settings)), n
        assert same_bits(whole, call(function, p, q, threads=1, **settings)), n


@pytest.mark.part(2)
@pytest.mark.parametrize(
    "shape", [(1, 1_500_000), (3, 300_000), (100, 5_000), (60_000, 10), (300_000, 2), (20_000, 33)], ids=str
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("kind", "normalize"), [("prob", True), ("prob", False), ("log_prob", True), ("logit", True)]
)  # fmt: skip
def test_threads(kind, normalize, dtype, shape):
    p, q = rows(shape, kind, dtype)
    how = {"kind": kind, "normalize": normalize}
    one = kl.kl_divergence(p, q, **how, threads=1)
    assert same_bits(one, kl.kl_divergence(p, q, **how, threads=2))
    assert same_bits(one, kl.kl_divergence(p, q, **how))
    sums = [kl.kl_divergence(p, q, **how, threads=n, reduction="sum") for n in (1, 2)]
    assert same_bits(*sums)


@pytest.mark.part(2)
@pytest.mark.parametrize("function", [*PAIRS[1:], "entropy"])
@pytest.mark.parametrize("shape", [(2, 300_000), (100_000, 5)], ids=str)
def test_threads_of_the_other_functions(shape, function):
    p, q = rows(shape, "prob", np.float64)
    assert same_bits(call(function, p, q, threads=1), call(function, p, q, threads=2))


def test_broadcast_rows_equal_copied_rows():
    for n in LENGTHS:
        p, q = rows((20, n), "prob", np.float64)
        for function, normalize in [*((name, True) for name in PAIRS), ("kl_divergence", False)]:
            spread = getattr(kl, function)(p, q[:1], normalize=normalize)
            copied = getattr(kl, function)(p, np.repeat(q[:1], 20, axis=0), normalize=normalize)
            assert same_bits(spread, copied), (function, normalize, n)


def test_several_axes_equal_one_flat_axis():
    p, q = rows((6, 7, 8), "prob", np.float64)
    flat = kl.kl_divergence(p.reshape(6, -1), q.reshape(6, -1))
    assert same_bits(kl.kl_divergence(p, q, axis=(1, 2)), flat)
    assert same_bits(kl.kl_divergence(p, q, axis=(2, 1)), flat)


def test_pointwise_cells_do_not_depend_on_their_place():
    p, q = (x.ravel() for x in rows((1, 1003), "prob", np.float64))
    for function in (kl.rel_entr, kl.generalized_kl):
        whole = function(p, q)
        assert same_bits(whole, np.array([function(a, b) for a, b in zip(p, q, strict=True)]))
        assert same_bits(whole[::3], function(p[::3], q[::3]))
        assert same_bits(whole[::-1], function(p[::-1], q[::-1]))


def test_the_same_call_twice():
    p, q = rows((50, 100), "logit", np.float32)
    assert same_bits(kl.kl_divergence(p, q, kind="logit"), kl.kl_divergence(p, q, kind="logit"))
