"""Shapes, axes, layouts, masks, reductions: what arrays on a device give is what the CPU gives."""

import math

import numpy as np
import pytest

import klnumba as kl
from tests.gpu.on_device.arrays import DTYPES, SIMULATED, Interface, get, put

FUNCTIONS = ("kl_divergence", "js_divergence", "jeffreys_divergence", "cross_entropy", "entropy")


def call(function, p, q, **settings):
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


def cells(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=shape) + 0.01, rng.gamma(1.0, size=shape) + 0.01


def assert_close(result, expected, tolerance=1e-14):
    np.testing.assert_allclose(get(result).astype(float), expected, rtol=tolerance, atol=0)


def assert_both(function, p, q, tolerance=1e-14, **settings):
    assert_close(call(function, put(p), put(q), **settings), call(function, p, q, **settings), tolerance)


@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), (1, 2), None], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axis_and_keepdims(axis, keepdims):
    p, q = cells((3, 4, 5))
    assert_both("kl_divergence", p, q, axis=axis, keepdims=keepdims)
    result = kl.kl_divergence(put(p), put(q), axis=axis, keepdims=keepdims)
    assert tuple(result.shape) == np.shape(np.sum(p, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize(
    "shapes", [((5, 1, 10), (1, 3, 10)), ((10,), (3, 10)), ((4, 1), (4, 6)), ((6,), (1,))], ids=str
)
def test_broadcasting(shapes):
    p, q = (cells(shape)[k] for k, shape in enumerate(shapes))
    for normalize in (True, False):
        assert_both("kl_divergence", p, q, normalize=normalize)


VIEWS = {
    "every other row": lambda x: x[::2],
    "every other cell": lambda x: x[:, ::2],
    "reversed": lambda x: x[::-1, ::-1],
    "fortran": np.asfortranarray,
    "from the middle": lambda x: x[1:, 3:],
    "odd start": lambda x: x[:, 1:66],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_views(name, dtype):
    if dtype == "bfloat16":
        pytest.skip("the interface has no name for bfloat16")
    p, q = (VIEWS[name](x.astype(dtype)) for x in cells((6, 70)))
    expected = kl.kl_divergence(p.astype(float), q.astype(float))
    if not SIMULATED and not p.flags.c_contiguous:
        pytest.skip("NumPy's views are copied on the way to a device")
    assert_close(kl.kl_divergence(Interface(p), Interface(q)), expected, 1e-14 if dtype == "float64" else 5e-7)


def test_a_view_gives_the_bits_of_its_copy():
    p, q = cells((6, 71))
    p, q = p[:, 1:], q[:, 1:]
    np.testing.assert_array_equal(
        get(kl.kl_divergence(Interface(p), Interface(q))), get(kl.kl_divergence(put(p.copy()), put(q.copy())))
    )


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float16", "float32"), ("float16", "bfloat16")], ids=str)
def test_mixed_dtypes(dtypes):
    p, q = (x.astype(DTYPES[dtype]) for x, dtype in zip(cells((3, 20)), dtypes, strict=True))
    result = kl.kl_divergence(put(p), put(q))
    wide = "float64" in dtypes
    assert result.dtype == (np.float64 if wide else np.float32)
    assert_close(result, kl.kl_divergence(p.astype(float), q.astype(float)), 1e-14 if wide else 5e-7)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers(dtype):
    rng = np.random.default_rng(3)
    p, q = (rng.integers(1, 2 if dtype == "bool" else 90, (3, 20)).astype(dtype) for _ in range(2))
    assert_both("kl_divergence", p, q)


@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
def test_where(kind):
    p, q = cells((4, 30))
    mask = np.random.default_rng(4).random((4, 30)) < 0.6
    expected = kl.kl_divergence(p, q, kind=kind, where=mask)
    assert_close(kl.kl_divergence(put(p), put(q), kind=kind, where=put(mask)), expected)
    assert_close(
        kl.kl_divergence(put(p), put(q), kind=kind, where=put(mask[0])),
        kl.kl_divergence(p, q, kind=kind, where=mask[0]),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("n", [1, 5, 300])
def test_reductions(reduction, n):
    p, q = cells((n, 3))
    assert_both("kl_divergence", p, q, reduction=reduction)
    assert kl.kl_divergence(put(p), put(q), reduction=reduction).shape == ()


def test_nothing():
    p = np.ones((0, 5))
    assert get(kl.kl_divergence(put(p), put(p))).shape == (0,)
    assert math.isnan(float(get(kl.kl_divergence(put(p), put(p), reduction="mean"))))
    assert float(get(kl.kl_divergence(put(p), put(p), reduction="sum"))) == 0.0
    none = np.ones((3, 0))
    assert np.isnan(get(kl.kl_divergence(put(none), put(none)))).all()
    assert (get(kl.kl_divergence(put(none), put(none), normalize=False)) == 0).all()


def test_base_temperature_dtype_and_out():
    p, q = cells((3, 12))
    assert_both("kl_divergence", p, q, base=2)
    assert_both("kl_divergence", p, q, kind="logit", temperature=3.0)
    assert kl.kl_divergence(put(p), put(q), dtype=np.float32).dtype == np.float32
    narrow = [x.astype(np.float32) for x in (p, q)]
    assert_close(kl.kl_divergence(*map(put, narrow), dtype=np.float64), kl.kl_divergence(*narrow, dtype=np.float64))
    out = put(np.zeros(3))
    assert kl.kl_divergence(put(p), put(q), out=out) is out
    assert_close(out, kl.kl_divergence(p, q))


def test_the_result_may_lie_in_an_input():
    p, q = cells((6, 6))
    both = put(p)
    expected = kl.kl_divergence(p, q, axis=0)
    kl.kl_divergence(both, put(q), axis=0, out=both[0])
    assert_close(both[0], expected)
    x = np.concatenate([[1.0], p.ravel()])
    shifted = put(x)
    kl.rel_entr(shifted[1:], put(q.ravel()), shifted[:-1])
    assert_close(shifted[:-1], kl.rel_entr(x[1:], q.ravel()))
    kl.rel_entr(both, put(q), both)
    assert get(both).shape == (6, 6)


def test_row_statistics():
    p, q = cells((4, 25))
    q[1, 3] = 0.0
    q[2] = p[2] * 2
    found = kl.row_statistics(put(p), put(q))
    expected = kl.row_statistics(p, q)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert get(found[name]).dtype == values.dtype
        np.testing.assert_allclose(get(found[name]).astype(float), values.astype(float), rtol=1e-14)


@pytest.mark.parametrize("d", [4, 30, 90])
def test_agreement_of_the_largest_cells(d):
    rng = np.random.default_rng(5)
    p, q = (np.round(rng.random((12, d)), 1) for _ in range(2))
    p[3, d // 2] = np.nan
    for kind in ("prob", "logit"):
        found = get(kl.row_statistics(put(p), put(q), stats=("argmax_agree",), kind=kind)["argmax_agree"])
        np.testing.assert_array_equal(
            found, kl.row_statistics(p, q, stats=("argmax_agree",), kind=kind)["argmax_agree"]
        )


@pytest.mark.parametrize("function", ["rel_entr", "generalized_kl"])
@pytest.mark.parametrize("shapes", [((40,), (40,)), ((4, 1), (5,)), ((), (7,)), ((0,), (1,))], ids=str)
def test_pointwise(function, shapes):
    p, q = (cells(shape)[k] for k, shape in enumerate(shapes))
    formula = getattr(kl, function)
    result = formula(put(p), put(q))
    assert_close(result, formula(p, q))
    assert tuple(result.shape) == np.shape(formula(p, q))


def test_pointwise_edges_out_and_where():
    edges = np.array([0.0, 1.0, -1.0, math.inf, math.nan, 2.0**-1074, 1.7e308])
    p, q = (x.copy() for x in np.meshgrid(edges, edges))
    for formula in (kl.rel_entr, kl.generalized_kl):
        np.testing.assert_array_equal(get(formula(put(p), put(q))), formula(p, q))
    mask = p > 0.5
    out = put(np.full(p.shape, 7.0))
    assert kl.rel_entr(put(p), put(q), out, where=put(mask)) is out
    np.testing.assert_array_equal(get(out), np.where(mask, kl.rel_entr(p, q), 7.0))


@pytest.mark.parametrize("formula", [kl.rel_entr, kl.generalized_kl])
def test_pointwise_with_a_wider_mask_or_result(formula):
    p, q = cells((4,))
    mask, wide = np.random.default_rng(6).random((2, 3, 4)) < 0.5, np.full((2, 3, 4), 7.0)
    expected = formula(p, q, wide.copy(), where=mask)
    out = put(wide)
    assert formula(put(p), put(q), out, where=put(mask)) is out
    assert_close(out, expected)
    found = get(formula(put(p), put(q), where=put(mask)))
    assert found.shape == mask.shape
    np.testing.assert_allclose(found[mask], expected[mask], rtol=1e-14)
    out = put(wide)
    formula(put(p), put(q), out, where=put(mask[0]))
    assert_close(out, formula(p, q, wide.copy(), where=mask[0]))
    with pytest.raises(ValueError, match=r"out: shape \(4,\), but the result has shape \(2, 3, 4\)"):
        formula(put(p), put(q), put(p), where=put(mask))
    with pytest.raises(ValueError, match=r"where: shape \(5,\) does not broadcast"):
        formula(put(p), put(q), put(p), where=put(np.ones(5, bool)))
    with pytest.raises(TypeError, match="where: a boolean array, not float64"):
        formula(put(p), put(q), put(p), where=put(p))


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "batchmean"])
def test_the_loss(reduction, log_target):
    p, q = cells((5, 70))
    data, model = (np.log(p) if log_target else p), np.log(q)
    loss = kl.functional.KLDivLoss(reduction=reduction, log_target=log_target)
    assert_close(loss(put(model), put(data)), loss(model, data))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
@pytest.mark.filterwarnings("ignore:reduction")
def test_the_loss_of_arrays_that_have_a_protocol_alone(reduction):
    model, data = map(np.log, cells((5, 7)))
    data = np.exp(data[:1])
    found = kl.functional.kl_div(Interface(model), Interface(data), reduction=reduction)
    assert_close(found, kl.functional.kl_div(model, data, reduction=reduction))
    with pytest.raises(RuntimeError, match="Integral inputs"):
        kl.functional.kl_div(Interface(model), Interface(data.astype(int)), reduction=reduction)
    with pytest.raises(RuntimeError, match="Complex inputs"):
        kl.functional.kl_div(Interface(model + 0j), Interface(data), reduction=reduction)


@pytest.mark.parametrize("wrapped", [put, Interface])
def test_torchmetrics_signature(wrapped):
    p, q = cells((5, 8))
    assert_close(kl.functional.kl_divergence(wrapped(p), wrapped(q)), kl.functional.kl_divergence(p, q))


@pytest.mark.parametrize("d", [3, 12, 40, 90])
def test_a_row_does_not_touch_its_neighbours(d):
    """Rows that one read serves beside ones that it does not: the same bits alone and together."""
    p, q = cells((9, d))
    p /= p.sum(-1, keepdims=True)
    q /= q.sum(-1, keepdims=True)
    q[1] *= 5.0
    q[4] = p[4] * (1 + 1e-9)
    p[6, 0] = -1.0
    q[7, 0] = 0.0
    for kind in ("prob", "logit"):
        together = get(kl.kl_divergence(put(p), put(q), kind=kind))
        alone = [float(get(kl.kl_divergence(put(p[k]), put(q[k]), kind=kind))) for k in range(9)]
        np.testing.assert_array_equal(together, alone)
