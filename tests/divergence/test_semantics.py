"""Every edge of the semantics table, in every dtype that can hold its cells."""

import math
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import klnumba as kl
from tests.reference import mp
from tests.reference.accuracy_table import bound
from tests.reference.semantics import SEMANTICS, markdown_table

DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
RUNS = [
    pytest.param(case, dtype, id=f"{case.name}-{dtype}", marks=pytest.mark.slow if dtype == "float16" else ())
    for case in SEMANTICS
    for dtype in case.dtypes
]  # float16 becomes float32 as bfloat16 does
ROWS = [case for case in SEMANTICS if isinstance(case.p, tuple)]


def as_arrays(case, dtype):
    return [np.array(cells, dtype=DTYPES[dtype]) for cells in (case.p, case.q) if cells is not None]


def arguments_of(case):
    return {key: np.array(value) if key == "where" else value for key, value in case.arguments.items()}


def agrees(result, expected, dtype):
    """Whether a result is the expected value, to the accuracy of the dtype it comes in."""
    expected = float(expected)
    if math.isnan(expected) or math.isinf(expected) or expected == 0:
        return bool(np.array_equal(result, expected, equal_nan=True))
    return mp.ulp_error(result, mp.mpf(expected), "float64" if dtype == "float64" else "float32") <= 8


@pytest.mark.parametrize(("case", "dtype"), RUNS)
def test_semantics(case, dtype):
    cells = as_arrays(case, dtype)
    before = [array.tobytes() for array in cells]
    result = getattr(kl, case.function)(*cells, **arguments_of(case))
    assert np.shape(result) == ()
    assert np.asarray(result).dtype == (np.float64 if dtype == "float64" else np.float32)
    assert agrees(result, case.expected, dtype), f"{case.rule}: got {result!r}, expected {case.expected}"
    assert [array.tobytes() for array in cells] == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_does_not_touch_its_neighbours(dtype):
    """Every row case of one shape and setting again, stacked in one call: the same bits as alone."""
    groups = {}
    for case in ROWS:
        if dtype in case.dtypes and "where" not in case.arguments:
            key = (case.function, len(case.p), tuple(sorted(case.arguments.items())))
            groups.setdefault(key, []).append(case)
    assert groups
    for (function, _, arguments), cases in groups.items():
        stacked = [np.stack(cells) for cells in zip(*(as_arrays(case, dtype) for case in cases), strict=True)]
        together = getattr(kl, function)(*stacked, **dict(arguments))
        alone = [getattr(kl, function)(*as_arrays(case, dtype), **dict(arguments)) for case in cases]
        np.testing.assert_array_equal(together, np.array(alone), err_msg=f"{function} {arguments}")


@pytest.mark.parametrize("function", ["rel_entr"])
def test_edges_are_scipys(function):
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed: nothing to compare with")
    values = [0.0, -0.0, 0.5, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0**-1074, 2.0**1023]
    p, q = np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        theirs = getattr(special, function)(p, q)
    np.testing.assert_allclose(getattr(kl, function)(p, q), theirs, rtol=1e-15)


def test_generalized_kl_has_scipys_edges_where_scipy_is_right():
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed: nothing to compare with")
    values = [0.0, -0.0, 0.5, 1.0, -1.0, math.inf, -math.inf, math.nan]
    pairs = [(p, q) for p in values for q in values if sorted((p, q)) not in ([0.5, math.inf], [1.0, math.inf])]
    p, q = np.array(pairs).T
    with np.errstate(all="ignore"):
        theirs = special.kl_div(p, q)
    np.testing.assert_allclose(kl.generalized_kl(p, q), theirs, rtol=1e-15)
    for finite in (0.5, 1.0):
        assert kl.generalized_kl(finite, math.inf) == math.inf


# --- edges in every company ---------------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
POOLS = {
    ("prob", True): (0.0, -0.0, 2.0**-1074, 2.0**-30, 0.5, 1.0, 3.0, 2.0**1000, 2.0**1023, INF, -INF, -1.0, NAN),
    ("prob", False): (0.0, -0.0, 2.0**-1074, 2.0**-30, 0.5, 1.0, 3.0, 2.0**900, -1.0, NAN),
    ("log_prob", True): (-INF, -800.0, -30.0, -1.0, 0.0, 0.5, 700.0, 1e300, INF, NAN),
    ("log_prob", False): (-INF, -800.0, -30.0, -1.0, 0.0, 0.5, 600.0, INF, NAN),
    ("logit", True): (-INF, -1e300, -800.0, -1.0, 0.0, 0.5, 88.0, 100.0, 700.0, 710.0, 5000.0, 1e300, INF, NAN),
}


@pytest.mark.part(6)
@settings(deadline=None, max_examples=150, derandomize=True, database=None)
@given(st.data())
@pytest.mark.parametrize("function", ["kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"])
@pytest.mark.parametrize(("kind", "normalize"), POOLS)
def test_rows_of_edges(kind, normalize, function, data):
    pool = st.sampled_from(POOLS[kind, normalize])
    pairs = data.draw(st.lists(st.tuples(pool, pool), max_size=6))
    p, q = (np.array(row, dtype=np.float64) for row in (zip(*pairs, strict=True) if pairs else ((), ())))
    truth = getattr(mp, function)(p, q, kind=kind, normalize=normalize)
    result = getattr(kl, function)(p, q, kind=kind, normalize=normalize)
    # plain sums with terms of both signs are held to the size of the terms
    scale = None if normalize else mp.mpf(1000 * np.max(np.exp(p) if kind != "prob" else p, initial=0))
    assume(kind != "prob" or mp.spans_can_be_kept(p, q))
    least = 1e-60 if kind == "prob" else 1e-30  # the reference's digits end there, and so does the promise
    if 0 <= result < least:
        assert abs(truth) < least
        return
    assert mp.ulp_error(result, truth, scale=scale) <= bound(kind, "float64"), (result, truth)


@pytest.mark.parametrize("cells", [2, 200, 300_000])
def test_a_sum_overflows_beside_the_least_number(cells):
    """The row that overflows is scaled down, the other one not: it would vanish."""
    p, q = np.full(cells, 2.0**1023), np.zeros(cells)
    q[-1] = 2.0**-1074
    assert kl.kl_divergence(p, q) == kl.jeffreys_divergence(p, q) == math.inf
    assert kl.kl_divergence(q, p) == pytest.approx(math.log(cells), rel=1e-15)


def test_names_are_unique_and_the_table_has_every_case():
    assert len({case.name for case in SEMANTICS}) == len(SEMANTICS)
    assert markdown_table().count("\n") == len(SEMANTICS) + 2
    some = markdown_table(("entropy",))
    assert some.count("`entropy`") == sum(case.function == "entropy" for case in SEMANTICS)


@pytest.mark.parametrize("case", SEMANTICS, ids=lambda case: case.name)
def test_the_table_agrees_with_the_reference(case):
    truth = getattr(mp, case.function)
    cells = [cells for cells in (case.p, case.q) if cells is not None]
    assert mp.ulp_error(float(case.expected), truth(*cells, **case.arguments)) <= 8


# --- invalid="raise" ------------------------------------------------------------------------------------------------

FAULTS = [
    ("prob", "p", -0.25, r"negative"),
    ("prob", "q", -0.25, r"negative"),
    ("prob", "p", math.nan, r"NaN"),
    ("prob", "q", math.nan, r"NaN"),
    ("prob", "p", math.inf, r"inf"),
    ("log_prob", "q", math.nan, r"NaN"),
    ("log_prob", "p", math.inf, r"inf"),
    ("logit", "q", math.inf, r"inf"),
    ("logit", "p", math.nan, r"NaN"),
]


@pytest.mark.parametrize("function", ["kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence"])
@pytest.mark.parametrize(("kind", "argument", "value", "rule"), FAULTS)
def test_raise_names_argument_row_cell_and_rule(function, kind, argument, value, rule):
    rows = {"p": np.full((40, 5), 0.2), "q": np.full((40, 5), 0.2)}
    rows[argument][17, 3] = value
    rows[argument][29, 1] = value
    with pytest.raises(ValueError, match=r"\b17\b") as caught:
        getattr(kl, function)(rows["p"], rows["q"], kind=kind, invalid="raise")
    message = str(caught.value)
    assert re.search(rf"\b{argument}\b", message), message
    assert re.search(r"\b3\b", message), message
    assert rule.lower() in message.lower(), message


@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("argument", ["p", "q"])
def test_raise_on_a_row_without_mass(kind, argument):
    rows = {"p": np.full((9, 5), 0.2), "q": np.full((9, 5), 0.2)}
    rows[argument][4] = 0 if kind == "prob" else -math.inf
    with pytest.raises(ValueError, match=r"\b4\b.*mass|mass.*\b4\b"):
        kl.kl_divergence(rows["p"], rows["q"], kind=kind, invalid="raise")


@pytest.mark.parametrize("normalize", [True, False])
def test_raise_lets_good_rows_pass(normalize):
    p, q = np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    quiet = kl.kl_divergence(p, q, normalize=normalize)
    np.testing.assert_array_equal(kl.kl_divergence(p, q, normalize=normalize, invalid="raise"), quiet)


def test_raise_reaches_entropy():
    with pytest.raises(ValueError, match=r"negative"):
        kl.entropy(np.array([[0.5, 0.5], [-0.5, 1.5]]), invalid="raise")


def test_an_unknown_rule_for_invalid_rows():
    with pytest.raises(ValueError, match="invalid"):
        kl.kl_divergence([0.5, 0.5], [0.5, 0.5], invalid="ignore")
