"""Axes, shapes, settings and errors of the array functions."""

import inspect
import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

import klnumba as kl
from tests.reference.row_families import no_distributions, without_a_common_cell

PAIRS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
POINTWISE = ("rel_entr", "generalized_kl")


def call(function, p, q, **settings):
    """Any of the row functions; entropy takes p alone."""
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


@pytest.fixture
def cube():
    rng = np.random.default_rng(0)
    return rng.gamma(1.0, size=(4, 5, 6)), rng.gamma(1.0, size=(4, 5, 6))


def row_by_row(function, p, q, axes):
    """The function over the last axis, after moving `axes` there by hand."""
    kept = [axis for axis in range(p.ndim) if axis not in axes]
    moved = [np.transpose(x, [*kept, *axes]).reshape(*(x.shape[axis] for axis in kept), -1).copy() for x in (p, q)]
    return call(function, *moved)


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
@pytest.mark.parametrize(
    "axis", [-1, 0, 1, 2, -2, -3, (0,), (-1,), (0, 1), (1, 2), (0, 2), (-1, 0), (2, 1), (0, 1, 2), None], ids=str
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axis_and_keepdims(cube, function, axis, keepdims):
    axes = (0, 1, 2) if axis is None else tuple(sorted(a % 3 for a in np.atleast_1d(axis)))
    result = call(function, *cube, axis=axis, keepdims=keepdims)
    expected = row_by_row(function, *cube, axes)
    shape = np.sum(cube[0], axis=axis if axis is None else tuple(axes), keepdims=keepdims).shape
    assert np.shape(result) == shape
    np.testing.assert_allclose(np.ravel(result), np.ravel(expected), rtol=1e-14)


@pytest.mark.parametrize("axis", [3, -4, (0, 3)])
def test_axis_out_of_range(cube, axis):
    with pytest.raises((ValueError, IndexError), match="axis"):
        kl.kl_divergence(*cube, axis=axis)


@pytest.mark.parametrize("axis", [(0, 0), (0, -3)])
def test_axis_named_twice(cube, axis):
    with pytest.raises(ValueError, match=r"axis|duplicate"):
        kl.kl_divergence(*cube, axis=axis)


@pytest.mark.parametrize("function", PAIRS)
@pytest.mark.parametrize(
    "shapes",
    [((5, 1, 10), (1, 7, 10)), ((10,), (3, 10)), ((3, 10), (10,)), ((4, 1), (4, 6)), ((4, 6), (1,)), ((6,), ())],
    ids=str,
)
@pytest.mark.parametrize("normalize", [True, False])
def test_broadcasting(function, shapes, normalize):
    rng = np.random.default_rng(1)
    p, q = (rng.gamma(1.0, size=shape) for shape in shapes)
    full = [x.copy() for x in np.broadcast_arrays(p, q)]
    result = getattr(kl, function)(p, q, normalize=normalize)
    np.testing.assert_array_equal(result, getattr(kl, function)(*full, normalize=normalize))


def test_broadcast_rows_are_not_materialised():
    rng = np.random.default_rng(2)
    p, q = rng.gamma(1.0, size=10), np.broadcast_to(rng.gamma(1.0, size=10), (1 << 40, 1, 10))[: 1 << 12]
    assert kl.kl_divergence(p, q).shape == (1 << 12, 1)


@pytest.mark.parametrize("function", [*PAIRS, *POINTWISE, "row_statistics"])
def test_shapes_that_do_not_broadcast(function):
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4,\)"):
        getattr(kl, function)(np.ones((2, 3)), np.ones(4))


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
def test_out(cube, function):
    expected = call(function, *cube, axis=1)
    out = np.full((4, 6), 7.0)
    assert call(function, *cube, axis=1, out=out) is out
    np.testing.assert_array_equal(out, expected)
    strided = np.full((8, 6), 7.0)[::2]
    assert call(function, *cube, axis=1, out=strided) is strided
    np.testing.assert_array_equal(strided, expected)


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
def test_out_of_the_wrong_shape(cube, function):
    with pytest.raises(ValueError, match="out"):
        call(function, *cube, out=np.zeros((4, 6)))


def test_out_that_cannot_hold_the_result(cube):
    with pytest.raises(TypeError, match="out"):
        kl.kl_divergence(*cube, out=np.zeros((4, 5), int))
    frozen = np.zeros((4, 5))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"out|read-only"):
        kl.kl_divergence(*cube, out=frozen)


class Kept(np.ndarray):
    """An array of a class of its own."""


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", [np.matrix, Kept])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_out_of_a_subclass(kind, dtype):
    p, q = np.random.default_rng(5).random((2, 4, 3))
    rows = np.zeros((4, 1), dtype).view(kind)
    assert kl.kl_divergence(p, q, keepdims=True, out=rows) is rows
    np.testing.assert_array_equal(np.asarray(rows), kl.kl_divergence(p, q, keepdims=True).astype(dtype))
    cells = np.zeros((4, 3), dtype).view(kind)
    assert kl.rel_entr(p, q, cells) is cells
    np.testing.assert_array_equal(np.asarray(cells), kl.rel_entr(p, q).astype(dtype))


def test_a_masked_array_holds_no_result():
    p = np.ones((4, 3))
    with pytest.raises(TypeError, match="out: a masked array"):
        kl.kl_divergence(p, p, out=np.ma.zeros(4))
    with pytest.raises(TypeError, match="out: a masked array"):
        kl.rel_entr(p, p, np.ma.zeros((4, 3)))


@pytest.mark.parametrize("function", POINTWISE)
def test_pointwise_is_called_like_a_ufunc(function):
    rng = np.random.default_rng(3)
    p, q = rng.random((4, 1)), rng.random(5)
    formula = getattr(kl, function)
    plain = formula(p, q)
    assert plain.shape == (4, 5)
    out = np.full((4, 5), 7.0)
    assert formula(p, q, out) is out
    np.testing.assert_array_equal(out, plain)
    where = rng.random((4, 5)) < 0.5
    out = np.full((4, 5), 7.0)
    assert formula(p, q, out=out, where=where) is out
    np.testing.assert_array_equal(out, np.where(where, plain, 7.0))
    assert formula(p, q, dtype=np.float32).dtype == np.float32
    np.testing.assert_allclose(formula(p, q, dtype=np.float32), plain, rtol=1e-5)
    with pytest.raises(ValueError, match="out"):
        formula(p, q, out=np.zeros((3, 3)))


@pytest.mark.parametrize("function", POINTWISE)
def test_pointwise_may_write_over_its_input(function):
    rng = np.random.default_rng(4)
    p, q = rng.random(1000), rng.random(1000)
    expected = getattr(kl, function)(p, q)
    p_again = p.copy()
    getattr(kl, function)(p_again, q, out=p_again)
    np.testing.assert_array_equal(p_again, expected)
    shifted = np.concatenate([[0.0], p])
    getattr(kl, function)(shifted[1:], q, out=shifted[:-1])
    np.testing.assert_array_equal(shifted[:-1], expected)


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
@pytest.mark.parametrize("normalize", [True, False])
def test_where(cube, function, normalize):
    rng = np.random.default_rng(5)
    where = rng.random((5, 6)) < 0.6
    where[:, 0] = True
    result = call(function, *cube, where=where, normalize=normalize)
    assert result.shape == (4, 5)
    for i, j in np.ndindex(4, 5):
        row = [x[i, j][where[j]] for x in cube]
        assert result[i, j] == pytest.approx(float(call(function, *row, normalize=normalize)), rel=1e-14)


def test_where_of_one_value(cube):
    np.testing.assert_array_equal(kl.kl_divergence(*cube, where=True), kl.kl_divergence(*cube))
    assert np.isnan(kl.kl_divergence(*cube, where=False)).all()


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reduction(cube, function, reduction):
    rows = call(function, *cube)
    result = call(function, *cube, reduction=reduction)
    assert np.shape(result) == ()
    exact = math.fsum(rows.ravel())
    assert float(result) == pytest.approx(exact / (rows.size if reduction == "mean" else 1), rel=1e-15)
    assert np.isnan(call(function, np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]]), reduction=reduction))


def test_reduction_over_no_rows():
    empty = np.zeros((0, 4))
    assert kl.kl_divergence(empty, empty, reduction="sum") == 0
    assert np.isnan(kl.kl_divergence(empty, empty, reduction="mean"))


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
@pytest.mark.parametrize("base", [0, -1, 1, 1.0, math.nan, 0.0])
def test_base_that_is_none(cube, function, base):
    with pytest.raises(ValueError, match="base"):
        call(function, *cube, base=base)


def test_a_long_base_is_shortened_in_the_error(cube):
    for base in (10**400, -(10**300), 10**5000, Fraction(10**400)):
        with pytest.raises(ValueError, match=r"base: .* not .{,60}$"):
            kl.kl_divergence(*cube, base=base)


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
@pytest.mark.parametrize("base", [2, 10, 0.5])
def test_base(cube, function, base):
    np.testing.assert_allclose(call(function, *cube, base=base), call(function, *cube) / math.log(base), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "probs"), ("kind", None), ("reduction", "batchmean"), ("reduction", None), ("invalid", "warn"),
        ("temperature", 0.0), ("temperature", -1.0), ("temperature", math.nan), ("temperature", 1e-309),
        ("temperature", Fraction(10**400)), ("base", Fraction(10**400)), ("base", 1 + Fraction(1, 10**20)),
        ("threads", 0), ("threads", -1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
def test_settings_out_of_their_range(cube, function, name, value):
    kind = {"kind": "logit"} if name == "temperature" else {}
    with pytest.raises((ValueError, TypeError), match=name):
        call(function, *cube, **kind, **{name: value})


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan, math.inf])
def test_weight_out_of_its_range(cube, weight):
    with pytest.raises(ValueError, match="weight"):
        kl.js_divergence(*cube, weight=weight)


def test_misspelt_setting(cube):
    with pytest.raises(TypeError, match="normalise"):
        kl.kl_divergence(*cube, normalise=False)


@pytest.mark.parametrize("function", [*PAIRS, *POINTWISE])
@pytest.mark.parametrize("argument", ["p", "q"])
@pytest.mark.parametrize(
    "value",
    [
        np.ones(3, complex), np.ones(3, np.complex64), np.array([1.0, None, 2.0]), np.array(["a", "b", "c"]),
        ["a", "b", "c"], np.array(["2026-01-01"] * 3, "M8[D]"), np.array([b"a"] * 3), [1j, 2, 3], None,
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)  # fmt: skip
def test_types_that_hold_no_numbers(function, argument, value):
    arguments = {"p": np.ones(3), "q": np.ones(3)} | {argument: value}
    with pytest.raises(TypeError, match=rf"\b{argument}\b"):
        getattr(kl, function)(arguments["p"], arguments["q"])


def test_ragged_lists(cube):
    with pytest.raises((ValueError, TypeError)):
        kl.kl_divergence([[1.0], [1.0, 2.0]], [1.0])


# --- row_statistics ---------------------------------------------------------------------------------------------------

SINGLE = {
    "kl": lambda p, q, **s: kl.kl_divergence(p, q, **s),
    "reverse_kl": lambda p, q, **s: kl.kl_divergence(q, p, **s),
    "js": lambda p, q, **s: kl.js_divergence(p, q, **s),
    "entropy_p": lambda p, q, **s: kl.entropy(p, **s),
    "entropy_q": lambda p, q, **s: kl.entropy(q, **s),
    "cross_entropy": lambda p, q, **s: kl.cross_entropy(p, q, **s),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 31, 100, 1001, 20_000])
def test_row_statistics_equal_the_single_functions(n, kind, dtype):
    rng = np.random.default_rng([6, n])
    p, q = rng.gamma(1.0, size=(2, 9, n)) + 0.001
    if kind != "prob":
        p, q = np.log(p), np.log(q)
    p, q = p.astype(dtype), q.astype(dtype)
    found = kl.row_statistics(p, q, kind=kind)
    assert list(found) == [*SINGLE, "argmax_agree", "max_log_ratio"]
    for name, single in SINGLE.items():
        np.testing.assert_array_equal(found[name], single(p, q, kind=kind), err_msg=name)
    np.testing.assert_array_equal(found["argmax_agree"], p.argmax(-1) == q.argmax(-1))


@pytest.mark.parametrize("d", [2, 300, 200_000])
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_rows_that_are_no_distributions_have_no_largest_cells_in_common(kind, d):
    p, q = no_distributions(d, kind)
    found = kl.row_statistics(p, q, kind=kind, stats=("kl", "argmax_agree"))
    assert found["argmax_agree"].tolist() == [True, False, False, False, False, True]
    assert np.isnan(found["kl"]).tolist() == [False, True, True, True, True, False]


def test_names_of_statistics():
    once = kl.row_statistics([1, 2], [2, 1], stats=(name for name in ("kl", "js")))
    assert list(once) == ["kl", "js"]
    for stats in (None, 3, "kl"):
        with pytest.raises(TypeError, match="stats: a sequence of names"):
            kl.row_statistics([1, 2], [2, 1], stats=stats)
    with pytest.raises(ValueError, match="stats: 'mean' is none of"):
        kl.row_statistics([1, 2], [2, 1], stats=("kl", "mean"))


def test_row_statistics_documents_its_own_parameters():
    text = inspect.getdoc(kl.row_statistics)
    for name in inspect.signature(kl.row_statistics).parameters:
        assert re.search(rf"^(\w+, )*{name}\b.* : ", text, re.MULTILINE), name
    assert not re.search(r"^(reduction|out) : ", text, re.MULTILINE)
    several = re.search(r"Any of (.*?)\.\n", text, re.DOTALL)[1]
    left_out = set(re.findall(r'"(\w+)"', several)) - {*kl.row_statistics([1, 2], [2, 1])}
    assert left_out == {"jeffreys"}
    assert 'default all but "jeffreys"' in text


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_kept_axes_of_a_reduction(cube, reduction):
    whole = kl.kl_divergence(*cube, reduction=reduction)
    found = kl.kl_divergence(*cube, reduction=reduction, keepdims=True)
    assert found.shape == (1,) * cube[0].ndim
    assert found.item() == whole
    out = np.empty(found.shape)
    assert kl.kl_divergence(*cube, reduction=reduction, keepdims=True, out=out) is out
    assert out.item() == whole


@pytest.mark.parametrize("d", [4, 200, 3000, 150_000])
@pytest.mark.parametrize(("kind", "temperature"), [("prob", 1.0), ("logit", 1.0), ("logit", 0.7)])
def test_js_of_rows_without_a_common_cell_is_log_2(kind, temperature, d):
    """No rounding takes it above: 1 - JS in bits has a square root."""
    rng = np.random.default_rng([7, d])
    p, q = without_a_common_cell(rng, max(2, 4000 // d), d, kind)
    found = kl.js_divergence(p, q, kind=kind, base=2, temperature=temperature)
    assert (found <= 1.0).all()
    np.testing.assert_allclose(found, 1.0, rtol=4e-16)


def test_tensors_that_are_not_for_here():
    torch = pytest.importorskip("torch")
    rows = torch.ones((2, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"q: a tensor that requires grad.*q\.detach"):
        kl.row_statistics(torch.ones(2, 3), rows)
    with torch.no_grad():
        assert kl.row_statistics(rows, rows)["kl"].tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match=r"p: a tensor of layout torch.sparse_coo; give p.to_dense"):
        kl.kl_divergence(torch.ones(2, 3).to_sparse(), torch.ones(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a prototype
        rows = [torch.ones(2), torch.ones(3)]
        nested = [torch.nested.nested_tensor(rows, layout=layout) for layout in (torch.strided, torch.jagged)]
    for p in nested:
        with pytest.raises(TypeError, match=r"p.to_padded_tensor\(0.0\), of logs and logits .*-math.inf"):
            kl.kl_divergence(p, torch.ones(3))
    with pytest.raises(TypeError, match=r"q: dtype torch.float8_e5m2 is not a real number type"):
        kl.kl_divergence(torch.ones(2, 3), torch.ones(2, 3).to(torch.float8_e5m2))
    with pytest.raises(TypeError, match=r"p: dtype torch.complex64 is not a real number type"):
        kl.kl_divergence(torch.ones(3, dtype=torch.complex64).conj(), torch.ones(3))
    with pytest.raises(ValueError, match=r"p: not in the memory of the CPU"):
        kl.kl_divergence(torch.ones(2, 3, device="meta"), torch.ones(2, 3))


def test_row_statistics_of_a_choice(cube):
    found = kl.row_statistics(*cube, stats=("js", "kl"), axis=0, keepdims=True, base=2, normalize=False)
    assert list(found) == ["js", "kl"]
    for name, values in found.items():
        expected = SINGLE[name](*cube, axis=0, keepdims=True, base=2, normalize=False)
        np.testing.assert_array_equal(values, expected)


def test_row_statistics_of_an_unknown_name(cube):
    with pytest.raises(ValueError, match="hellinger"):
        kl.row_statistics(*cube, stats=("kl", "hellinger"))


def test_largest_log_ratio():
    p, q = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), np.array([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    found = kl.row_statistics(p, q, stats=("max_log_ratio",))["max_log_ratio"]
    np.testing.assert_allclose(found, [math.log(2), math.inf], rtol=1e-15)


def test_row_statistics_of_bad_rows():
    p, q = np.array([[math.nan, 1.0], [0.0, 0.0], [1.0, 3.0]]), np.ones((3, 2))
    found = kl.row_statistics(p, q)
    for name in SINGLE:
        expected = [False, False, True] if name == "entropy_q" else [True, True, False]
        np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(SINGLE[name](p, q)), err_msg=name)
        assert np.isnan(found[name]).tolist() == expected or name == "entropy_q"


def test_out_may_overlap_the_arguments_and_the_mask():
    rng = np.random.default_rng(4)
    p, q, where = rng.random((2_000, 64)), rng.random((2_000, 64)), rng.random((2_000, 64)) < 0.8
    want = kl.kl_divergence(p, q, where=where)
    for memory in (p.copy(), where.copy()):
        out = memory.reshape(-1).view(np.float64)[-2_000:]
        arguments = (memory, q, where) if memory.dtype == float else (p, q, memory)
        assert kl.kl_divergence(*arguments[:2], where=arguments[2], out=out) is out
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kl.kl_divergence([1.0], [1.0], base="2"), "base: a real number, not '2'"),
        (lambda: kl.kl_divergence([1.0], [1.0], kind="logit", temperature="1"), "temperature: a real number"),
        (lambda: kl.js_divergence([1.0], [1.0], weight="a"), "weight: a real number, not 'a'"),
        (lambda: kl.row_statistics([1.0], [1.0], stats="kl"), "stats: a sequence of names, not 'kl'"),
        (lambda: kl.kl_divergence([1.0], [1.0], temperature=np.ones(2)), "temperature: a real number"),
        (lambda: kl.kl_divergence([[1.0]], [1.0], axis=np.arange(2)), "axis: an integer or a tuple of integers"),
        (lambda: kl.kl_divergence([[1.0]], [1.0], axis=np.array([0])), "axis: an integer or a tuple of integers"),
        (lambda: kl.kl_divergence([1.0], [1.0], dtype="wide"), "dtype: a dtype of NumPy, not 'wide'"),
        (lambda: kl.kl_divergence([1.0], [1.0], dtype=int, out=np.zeros(())), "dtype: a floating-point type"),
        (lambda: kl.rel_entr([1.0], [1.0], dtype="wide"), "dtype: a dtype of NumPy, not 'wide'"),
        (lambda: kl.rel_entr([1.0], [1.0], out=(None, None)), "out: an array, or a tuple of one, not of 2"),
    ],
)
def test_an_option_of_another_type_is_named(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("value", ["no", None, 2, 0.0, np.array([True, False]), [True]])
def test_flags_are_truth_values(value):
    p = np.ones((2, 3))
    for name in ("normalize", "keepdims"):
        with pytest.raises(TypeError, match=f"^{name}: True or False, not "):
            kl.kl_divergence(p, p, **{name: value})
        with pytest.raises(TypeError, match=f"^{name}: True or False, not "):
            kl.row_statistics(p, p, **{name: value})
    for name in ("normalize", "agreement"):
        with pytest.raises(TypeError, match=f"^{name}: True or False, not "):
            kl.KLDivergence(**{name: value})


@pytest.mark.parametrize("value", [1, np.True_, np.int64(1), True])
def test_flags_of_numpy(value):
    p = np.ones((2, 3))
    assert kl.kl_divergence(p, 2.0 * p, normalize=value, keepdims=value).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("row", "temperature"), [([1.0, 2.0, 3.0], 1e-308), ([0.0, 1e155], 1e-155), ([1e308, 0.0], 0.5)]
)
def test_logits_beyond_the_largest_number(row, temperature):
    """What the documentation says of them."""
    options = {"kind": "logit", "temperature": temperature}
    for name in ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"):
        assert math.isnan(getattr(kl, name)(row, row, **options))
    assert math.isnan(kl.entropy(row, **options))
    assert kl.kl_divergence(row, row, kind="logit") == 0.0


WIDE = np.array([[3e38, -3e38]], np.float32)
FAR = np.array([[1.5e308, 0.0]])
MANY = np.array([[1e38, 0.0]] * 10, np.float32)


@pytest.mark.parametrize("road", [{}, {"axis": (1,)}, {"where": True}], ids=["at once", "axis", "where"])
@pytest.mark.parametrize(
    ("p", "q", "options"),
    [
        (WIDE, -WIDE, {"kind": "logit"}),
        (FAR, FAR[:, ::-1].copy(), {"kind": "logit", "base": 2}),
        (MANY, MANY[:, ::-1].copy(), {"kind": "logit", "reduction": "sum"}),
        (np.abs(WIDE), np.abs(WIDE) / np.float32(1e30), {"normalize": False}),
        (FAR + 1.0, np.ones((1, 2)), {"normalize": False, "dtype": "float32"}),
    ],
    ids=["float32", "base", "sum", "plain", "dtype"],
)
def test_a_result_beyond_the_range_is_infinite_and_no_warning(p, q, options, road):
    with warnings.catch_warnings(action="error"):
        assert np.all(kl.kl_divergence(p, q, **options, **road) == math.inf)


def test_a_cell_beyond_the_range_is_infinite_and_no_warning():
    out = np.zeros((), np.float32)
    with warnings.catch_warnings(action="error"):
        assert kl.rel_entr(1e300, 1.0, dtype="float32") == math.inf
        assert kl.rel_entr(np.array(1e300), 1.0, out=out) == math.inf
