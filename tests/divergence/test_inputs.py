"""What may be passed as an array, and in which library and dtype the result comes back."""

import warnings

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import klnumba as kl

PAIRS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
SHAPE = (6, 40)


def rows(seed=0, shape=SHAPE):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=shape) + 0.01, rng.gamma(1.0, size=shape) + 0.01


def fortran(x):
    return np.asfortranarray(x)


def every_other_row(x):
    return np.repeat(x, 2, axis=0)[::2]


def every_other_cell(x):
    return np.repeat(x, 2, axis=1)[:, ::2]


def reversed_twice(x):
    return x[::-1, ::-1].copy()[::-1, ::-1]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def big_endian(x):
    return x.astype(x.dtype.newbyteorder(">"))


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    raw[...] = x
    return raw


def field_of_records(x):
    records = np.zeros(x.shape, dtype=[("other", "i1"), ("value", x.dtype)])
    records["value"] = x
    return records["value"]


def part_of_a_cube(x):
    cube = np.zeros((2, *x.shape, 3), x.dtype)
    cube[1, :, :, 2] = x
    return cube[1, :, :, 2]


LAYOUTS = [
    fortran, every_other_row, every_other_cell, reversed_twice, read_only, big_endian, unaligned, field_of_records,
    part_of_a_cube,
]  # fmt: skip


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_layouts(layout, dtype):
    if layout is big_endian and dtype is ml_dtypes.bfloat16:
        pytest.skip("bfloat16 has one byte order")
    plain = [np.ascontiguousarray((x * (1 if np.dtype(dtype).kind != "i" else 100)).astype(dtype)) for x in rows()]
    laid = [layout(x) for x in plain]
    before = [x.tobytes() for x in laid]
    for function in PAIRS:
        for arguments in (laid, [plain[0], laid[1]], [laid[0], plain[1]]):
            result = getattr(kl, function)(*arguments)
            np.testing.assert_array_equal(result, getattr(kl, function)(*plain), err_msg=function)
    np.testing.assert_array_equal(kl.entropy(laid[0]), kl.entropy(plain[0]))
    for function in ("rel_entr", "generalized_kl"):
        np.testing.assert_array_equal(getattr(kl, function)(*laid), getattr(kl, function)(*plain))
    assert [x.tobytes() for x in laid] == before


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)  # fmt: skip
def test_integers_and_bools_are_float64(dtype):
    counts = [(x * 20 + 1).astype(dtype) for x in rows()]
    result = kl.kl_divergence(*counts)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, kl.kl_divergence(*(x.astype(np.float64) for x in counts)))


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        (np.float64, np.float64, np.float64), (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64), (np.float64, np.float32, np.float64),
        (np.float16, np.float16, np.float32), (np.float16, np.float32, np.float32),
        (np.float16, np.float64, np.float64), (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
        (ml_dtypes.bfloat16, np.float16, np.float32), (ml_dtypes.bfloat16, np.float64, np.float64),
        (np.int64, np.float32, np.float64), (np.bool_, np.float16, np.float64), (np.int8, np.int8, np.float64),
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", [*PAIRS, "rel_entr", "generalized_kl"])
def test_result_dtype(function, first, second, result):
    p, q = rows()
    p, q = (p * 10 + 1).astype(first), (q * 10 + 1).astype(second)
    found = getattr(kl, function)(p, q)
    assert found.dtype == result
    wide = getattr(kl, function)(p.astype(np.float64), q.astype(np.float64))
    np.testing.assert_allclose(found, wide, rtol=1e-15 if result is np.float64 else 3e-7, atol=1e-12)


@pytest.mark.parametrize("function", PAIRS)
def test_dtype_argument(function):
    p, q = rows()
    wide = getattr(kl, function)(p, q)
    narrow = getattr(kl, function)(p, q, dtype=np.float32)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=1e-5)
    single = p.astype(np.float32), q.astype(np.float32)
    raised = getattr(kl, function)(*single, dtype=np.float64)
    assert raised.dtype == np.float64
    np.testing.assert_allclose(raised, getattr(kl, function)(*(x.astype(np.float64) for x in single)), rtol=1e-15)
    with pytest.raises((TypeError, ValueError), match="dtype"):
        getattr(kl, function)(p, q, dtype=np.int64)


@pytest.mark.parametrize("function", PAIRS)
def test_lists_tuples_and_scalars(function):
    p, q = [[0.5, 0.25, 0.25], [1, 2, 3]], ((0.25, 0.5, 0.25), (3, 3, 3))
    np.testing.assert_array_equal(getattr(kl, function)(p, q), getattr(kl, function)(np.array(p), np.array(q)))
    assert getattr(kl, function)(0.5, 0.25) == 0
    assert getattr(kl, function)(np.float32(0.5), np.array(0.25)) == 0


def test_pointwise_scalars():
    assert kl.rel_entr(1.0, 0.5) == np.log(2)
    assert np.ndim(kl.rel_entr(1.0, 0.5)) == 0
    assert kl.generalized_kl(0, 3) == 3
    assert kl.rel_entr(np.array(1.0), np.array([0.5])).shape == (1,)


@pytest.mark.parametrize("function", PAIRS)
def test_size_zero(function):
    for dtype in (np.float64, np.float32, np.float16, int):
        empty = getattr(kl, function)(np.zeros((0, 5), dtype), np.zeros((0, 5), dtype))
        assert empty.shape == (0,)
        no_cells = getattr(kl, function)(np.zeros((3, 0), dtype), np.zeros((3, 0), dtype))
        np.testing.assert_array_equal(no_cells, [np.nan] * 3)
        plain = getattr(kl, function)(np.zeros((3, 0), dtype), np.zeros((3, 0), dtype), normalize=False)
        np.testing.assert_array_equal(plain, [0.0] * 3)
    assert kl.rel_entr(np.zeros((0, 5)), np.zeros(5)).shape == (0, 5)


@pytest.mark.parametrize("function", PAIRS)
@pytest.mark.parametrize("masked", ["p", "q", "both"])
def test_masked_arrays(function, masked):
    p, q = rows()
    rng = np.random.default_rng(1)
    masks = [rng.random(SHAPE) < 0.3 if masked in (name, "both") else np.zeros(SHAPE, bool) for name in ("p", "q")]
    p[masks[0]], q[masks[1]] = np.nan, -1.0
    arrays = [np.ma.array(x, mask=mask) if mask.any() else x for x, mask in zip((p, q), masks, strict=True)]
    expected = getattr(kl, function)(p, q, where=~(masks[0] | masks[1]))
    assert not np.isnan(expected).any()
    np.testing.assert_array_equal(np.asarray(getattr(kl, function)(*arrays)), expected)
    also = rng.random(SHAPE) < 0.7
    expected = getattr(kl, function)(p, q, where=also & ~(masks[0] | masks[1]))
    np.testing.assert_array_equal(np.asarray(getattr(kl, function)(*arrays, where=also)), expected)


def test_masked_array_in_entropy():
    p = np.ma.array([[1.0, np.nan, 1.0]], mask=[[False, True, False]])
    assert np.asarray(kl.entropy(p))[0] == np.log(2)


def test_array_without_a_mask():
    p, q = rows()
    np.testing.assert_array_equal(np.asarray(kl.kl_divergence(np.ma.array(p), q)), kl.kl_divergence(p, q))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_torch(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    p, q = (torch.tensor(x * 9 + 1).to(getattr(torch, dtype)) for x in rows())
    expected = kl.kl_divergence(*(x.double().numpy() for x in (p, q)))
    for first, second in ((p, q), (p.T.contiguous().T, q), (p, q.repeat_interleave(2, 1)[:, ::2])):
        result = kl.kl_divergence(first, second)
        assert isinstance(result, torch.Tensor)
        assert result.dtype == (torch.float64 if dtype in ("float64", "int64") else torch.float32)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15 if result.dtype == torch.float64 else 2e-7)
    assert isinstance(kl.rel_entr(p, q), torch.Tensor)
    assert isinstance(kl.entropy(p), torch.Tensor)
    assert isinstance(kl.kl_divergence(p, q, reduction="mean"), torch.Tensor)
    assert all(isinstance(value, torch.Tensor) for value in kl.row_statistics(p, q).values())


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_tensors_of_a_class_of_the_caller(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    own = type("Own", (torch.Tensor,), {})
    p, q = (torch.tensor(x).to(getattr(torch, dtype)) for x in rows())
    for call in (kl.kl_divergence, kl.rel_entr, lambda p, q: kl.row_statistics(p, q)["js"]):
        result = call(p.as_subclass(own), q.as_subclass(own))
        assert torch.equal(result, call(p, q))
        assert torch.equal(call(p.as_subclass(own), q.float().numpy()), call(p, q.float().numpy()))
    negated = torch.complex(torch.zeros_like(p.float()), -p.float()).conj().imag
    assert negated.is_neg()
    assert torch.equal(kl.kl_divergence(negated.as_subclass(own), q), kl.kl_divergence(p.float(), q))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_jax(dtype, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes a device from the other tests
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    p, q = (jax.numpy.asarray(x * 9 + 1, dtype=dtype) for x in rows())
    expected = kl.kl_divergence(*(np.asarray(x).astype(np.float64) for x in (p, q)))
    result = kl.kl_divergence(p, q)
    assert isinstance(result, jax.Array)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-7)
    assert isinstance(kl.rel_entr(p, q), jax.Array)


def test_a_class_that_cannot_be_hashed():
    class Compared(type):
        def __eq__(cls, other):
            return NotImplemented

    class Row(metaclass=Compared):
        def __array__(self, dtype=None, copy=None):
            return np.array([0.25, 0.75])

    with pytest.raises(TypeError, match="unhashable"):
        hash(Row)
    assert kl.kl_divergence(Row(), [0.5, 0.5]) == kl.kl_divergence([0.25, 0.75], [0.5, 0.5])


def test_nulls_are_nan():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(kl.kl_divergence(pyarrow.array([1.0, None]), [1, 1]))
        np.testing.assert_array_equal(kl.rel_entr([1, 1], pyarrow.array([1, None])), [0.0, np.nan])


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("call", [kl.js_divergence, kl.entropy, kl.rel_entr, kl.row_statistics, kl.functional.kl_div])
def test_distributions_where_arrays_are_asked_for(call):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for one in (torch.distributions.Normal(0.0, 1.0), scipy.stats.norm(0.0, 1.0)):
        given = (one,) if call is kl.entropy else (one, one)
        with pytest.raises(TypeError, match=r"(p|input): an array, not a distribution, "):
            call(*given)


@pytest.mark.parametrize("kind", ["logit", "log_prob"])
def test_nested_tensors_are_padded_as_the_error_says(kind):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    rows = [torch.tensor([0.2, 0.8]).log(), torch.tensor([0.1, 0.2, 0.7]).log()]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    padded, other = nested.to_padded_tensor(-np.inf), (nested * 2.0).to_padded_tensor(-np.inf)
    expected = [kl.kl_divergence(row, 2.0 * row, kind=kind) for row in rows]
    np.testing.assert_allclose(kl.kl_divergence(padded, other, kind=kind), expected, rtol=1e-6)
