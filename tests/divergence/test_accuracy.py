"""How far the results are from the exact value of the given inputs, in ulp."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import klnumba as kl
from tests.reference import accuracy_table, mp
from tests.reference.accuracy_table import BOUNDS, LARGEST, SETTINGS, SMALLEST, bound, errors, in_range
from tests.reference.row_families import KINDS, draw, families

QUIET = settings(
    deadline=None, max_examples=150, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
SHORT = (1, 2, 3, 7, 31, 33, 64, 200)
TWO_ROWS = ("kl_divergence", "js_divergence", "jeffreys_divergence")


def settings_name(setting):
    return f"{setting[0]}-{'normalized' if setting[1] else 'plain'}"


def check_bounds(p, q, kind, normalize, dtype, label):
    """Hold every function to its bound on one pair of rows."""
    for function, (error, value) in errors(p, q, kind, normalize, dtype).items():
        assert error <= bound(kind, dtype) or not in_range(value), (
            f"{function}({kind}, normalize={normalize}, {dtype}) is {error:.3g} ulp off {value:.3e}, "
            f"{len(p)} cells, {label}"
        )


@pytest.mark.part(2)
@pytest.mark.parametrize("setting", SETTINGS, ids=settings_name)
@pytest.mark.parametrize(("dtype", "family"), [(dtype, family) for dtype in BOUNDS for family in families(dtype)])
def test_families(dtype, setting, family):
    kind, normalize = setting
    rng = np.random.default_rng([1, len(family), len(kind)])
    for n in SHORT:
        p, q = draw(families(dtype)[family], rng, n, kind, dtype)
        check_bounds(p, q, kind, normalize, dtype, f"{family}, seed 1")


@pytest.mark.part(4)
@pytest.mark.parametrize("setting", SETTINGS, ids=settings_name)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("family", ["ordinary", "near, as float32 sees it", "one against many"])
def test_rows_of_thousands(dtype, setting, family):
    kind, normalize = setting
    rng = np.random.default_rng(2)
    p, q = draw(families(dtype)[family], rng, 4_099, kind, dtype)
    check_bounds(p, q, kind, normalize, dtype, f"{family}, seed 2")


def beside_dust(rng, n):
    """Rows of which one cell, not 1, is all but 1e-16 to 1e-40; p may have no other."""
    p, q = rng.gamma(1.0, size=(2, n)) * 10.0 ** rng.uniform(-40, -16, (2, 1)) * 10.0 ** rng.uniform(-3, 0, n)
    p *= rng.random() < 0.5
    top = rng.integers(n)
    p[top], q[top] = rng.uniform(0.1, 10, 2)
    return p, q


@pytest.mark.parametrize("n", [1, 2, 7, 40, 300])
def test_a_cell_beside_dust(n):
    """What a cell lacks of 1 is found before any division: -log q of it is as exact as that of others."""
    rng = np.random.default_rng([9, n])
    for _ in range(max(2, 120 // n)):
        p, q = beside_dust(rng, n)
        for function, (error, value) in errors(p, q, "prob", True, "float64").items():
            assert error <= BOUNDS["float64"], f"{function} is {error:.3g} ulp off {value:.3e}: {p!r}, {q!r}"
        (found,) = kl.row_statistics(p, q, stats=("max_log_ratio",)).values()
        assert mp.ulp_error(found, mp.max_log_ratio(p, q)) <= BOUNDS["float64"]


@pytest.mark.parametrize(
    ("x", "y"), [(2.0**53 + 4, 2.0**53 + 6), (2.0**53 + 2, 2.0**53 + 4), (1e300, 2e300), (1.0, 1.0 + 2.0**-51)]
)
@pytest.mark.parametrize("d", [1, 200])
def test_the_largest_log_ratio_of_rows_as_they_are(x, y, d):
    p, q = np.zeros((2, d))
    p[0], q[0] = x, y
    (found,) = kl.row_statistics(p, q, stats=("max_log_ratio",), normalize=False).values()
    assert mp.ulp_error(found, mp.max_log_ratio(p, q, normalize=False)) <= BOUNDS["float64"]


@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 3.0])
def test_a_logit_far_above_the_others(temperature):
    rng = np.random.default_rng(10)
    for _ in range(40):
        p, q = np.full(3, -np.inf), -rng.uniform(10, 90, 3) * temperature
        p[0] = q[0] = 0.0
        truth = mp.cross_entropy(p, q, kind="logit", temperature=temperature)
        found = kl.cross_entropy(p, q, kind="logit", temperature=temperature)
        assert mp.ulp_error(found, truth) <= bound("logit", "float64"), (q, float(truth))


@pytest.mark.parametrize(
    ("family", "kind"), [("near", "prob"), pytest.param("ordinary", "logit", marks=pytest.mark.slow)]
)
def test_a_row_of_100_000_cells(family, kind):
    rng = np.random.default_rng(3)
    p, q = draw(families("float64")[family], rng, 100_000, kind, "float64")
    truth = mp.kl_divergence(p, q, kind=kind)
    assert mp.ulp_error(kl.kl_divergence(p, q, kind=kind), truth) <= BOUNDS["float64"]


@pytest.mark.parametrize("offset", [0.0, 60.0, 700.0])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("cells", [4_000, 30_000])
def test_a_flat_row_against_one_cell(cells, place, offset):
    """The sums over the largest cells are far apart: the sum of q, from that of p and what it lacks, has no digits."""
    rng = np.random.default_rng(16)
    p, q = rng.normal(offset, 0.1, cells), rng.normal(-60.0, 0.1, cells)
    q[place] = 0.0
    truth = mp.kl_divergence(p, q, kind="logit")
    assert mp.ulp_error(kl.kl_divergence(p, q, kind="logit"), truth) <= 2.5  # 1.4 in five times as many rows


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=settings_name)
def test_every_function_on_long_rows(setting):
    kind, normalize = setting
    rng = np.random.default_rng(4)
    p, q = draw(families("float64")["near after scaling"], rng, 30_000, kind, "float64")
    check_bounds(p, q, kind, normalize, "float64", "near after scaling, seed 4")


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_ladder_from_the_smallest_to_the_largest(n, normalize):
    """KL from 1e-30 to 1e3, a rung a decade."""
    rng = np.random.default_rng(n)
    seen = []
    for decade in range(-15, 0):
        p = rng.uniform(0.5, 1, n)
        p /= p.sum()
        q = p * (1 + 10.0**decade * rng.choice([-2.0, 1.0, 3.0], n))
        seen.append((p, q / (1 if normalize else q.sum())))
    for exponent in range(1, 290, 24):
        p, q = rng.uniform(0.05, 0.15, n), rng.uniform(0.5, 1.5, n)  # alike, they would be rows of `test_hard_rows`
        p[0], q[0] = n, 10.0**-exponent
        seen.append((p, q))
    values = []
    for p, q in seen:
        truth, scale = mp.of_rows("kl_divergence", p, q, "prob", normalize)
        values.append(float(truth))
        if in_range(float(truth)):
            error = mp.ulp_error(kl.kl_divergence(p, q, normalize=normalize), truth, "float64", scale)
            assert error <= BOUNDS["float64"], (p, q)
    if normalize:
        assert min(value for value in values if value > 0) < 1e-28
    assert max(values) > 500


cells = st.floats(min_value=2.0**-1074, max_value=1.7e308, allow_subnormal=True)
moderate = st.floats(min_value=1e-12, max_value=1e12)
small_changes = st.floats(min_value=-0.75, max_value=0.75)


@st.composite
def near_rows(draw_from):
    """A row, and the same row times a factor with every cell changed a little."""
    p = np.array(draw_from(st.lists(moderate, min_size=1, max_size=12)))
    size = 10.0 ** draw_from(st.integers(-15, 0))
    changes = np.array(draw_from(st.lists(small_changes, min_size=len(p), max_size=len(p))))
    return p, p * draw_from(moderate) * (1 + size * changes)


@QUIET
@given(near_rows())
def test_near_rows(rows):
    truth = mp.kl_divergence(*rows)
    result = float(kl.kl_divergence(*rows))
    assert result >= 0
    assume(SMALLEST <= truth <= LARGEST)
    assert mp.ulp_error(result, truth) <= BOUNDS["float64"], [[x.hex() for x in row.tolist()] for row in rows]


@QUIET
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_any_positive_cells(pairs):
    p, q = np.array(pairs).T
    truth = mp.kl_divergence(p, q)
    result = float(kl.kl_divergence(p, q))
    assert result >= 0
    assume(SMALLEST <= truth <= LARGEST and mp.spans_can_be_kept(p, q))
    assert mp.ulp_error(result, truth) <= BOUNDS["float64"], [[x.hex() for x in row] for row in (p, q)]


@QUIET
@given(st.lists(st.tuples(st.floats(-60, 60), st.floats(-60, 60)), min_size=1, max_size=8), st.sampled_from(KINDS[1:]))
def test_any_logs(pairs, kind):
    p, q = np.array(pairs).T
    truth = mp.kl_divergence(p, q, kind=kind)
    result = float(kl.kl_divergence(p, q, kind=kind))
    assert result >= 0
    assume(SMALLEST <= truth <= LARGEST)
    assert mp.ulp_error(result, truth) <= BOUNDS["float64"], [[x.hex() for x in row] for row in (p, q)]


@QUIET
@given(st.floats(0, 1), st.lists(st.tuples(moderate, moderate), min_size=1, max_size=6))
def test_js_of_any_weight(weight, pairs):
    p, q = np.array(pairs).T
    truth = mp.js_divergence(p, q, weight=weight)
    result = float(kl.js_divergence(p, q, weight=weight))
    assert result >= 0
    assume(truth >= SMALLEST)
    assert mp.ulp_error(result, truth) <= BOUNDS["float64"], (weight, [[x.hex() for x in row] for row in (p, q)])


@QUIET
@given(cells, cells)
@example(8.645076571399957e307, 5.861321490438234e306)  # of which p*log(p/q) is too large for a number
def test_pointwise_anywhere(p, q):
    assert mp.ulp_error(kl.rel_entr(p, q), mp.rel_entr(p, q)) <= BOUNDS["float64"]
    assert mp.ulp_error(kl.generalized_kl(p, q), mp.generalized_kl(p, q)) <= BOUNDS["float64"]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("function", ["rel_entr", "generalized_kl"])
def test_pointwise_near_and_far(function, dtype):
    rng = np.random.default_rng(6)
    p = rng.uniform(0.1, 10, 1500)
    q = p * (1 + rng.choice([-1, 1], p.size) * 10.0 ** rng.uniform(-16, 0.5, p.size))
    p, q = p.astype(dtype), np.abs(q).astype(dtype)
    results = getattr(kl, function)(p, q)
    worst = max(
        mp.ulp_error(result, getattr(mp, function)(a, b), dtype) for result, a, b in zip(results, p, q, strict=True)
    )
    assert worst <= BOUNDS[dtype]


@pytest.mark.parametrize("base", [2, 10, 0.5, math.e, 1.0000001])
def test_base(base):
    rng = np.random.default_rng(7)
    p, q = rng.random(20), rng.random(20)
    assert mp.ulp_error(kl.kl_divergence(p, q, base=base), mp.kl_divergence(p, q, base=base)) <= 5


@pytest.mark.parametrize("temperature", [0.1, 0.7, 3.0, 1e3])
def test_temperature(temperature):
    rng = np.random.default_rng(8)
    p, q = rng.normal(size=(2, 40)) * 5
    truth = mp.kl_divergence(p, q, kind="logit", temperature=temperature)
    result = kl.kl_divergence(p, q, kind="logit", temperature=temperature)
    assert mp.ulp_error(result, truth) <= BOUNDS["float64"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 33, 1000])
def test_never_negative(n, dtype, kind):
    rng = np.random.default_rng([9, n])
    p = rng.gamma(1.0, size=(3000 if n < 1000 else 200, n)) + 1e-9
    size = 10.0 ** rng.uniform(-17, -1, (len(p), 1))
    for q in (p * (1 + size * rng.uniform(-1, 1, p.shape)), p * 3, p / 7 * (1 + size), np.nextafter(p, 1)):
        a, b = (np.log(x) if kind != "prob" else x for x in (p, q))
        a, b = a.astype(dtype), b.astype(dtype)
        for function in TWO_ROWS:
            values = getattr(kl, function)(a, b, kind=kind)
            assert not np.signbit(values).any(), function


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_a_row_against_itself_is_exactly_zero(normalize, dtype, kind):
    for n in (1, 2, 3, 17, 64, 1001):
        rng = np.random.default_rng([10, n])
        p = rng.gamma(0.3, size=(50, n)) + 1e-30
        p = (np.log(p) if kind != "prob" else p).astype(dtype)
        for function in TWO_ROWS:
            values = getattr(kl, function)(p, p.copy(), kind=kind, normalize=normalize)
            np.testing.assert_array_equal(values, np.zeros(50), err_msg=function)


def test_doubled_rows_are_exactly_zero():
    rng = np.random.default_rng(11)
    p = rng.gamma(0.3, size=(50, 100)) + 1e-30
    for function in TWO_ROWS:
        np.testing.assert_array_equal(getattr(kl, function)(p, p * 4), np.zeros(50), err_msg=function)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_as_it_is(dtype, kind):
    dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: no bfloat16")
    rng = np.random.default_rng(12)
    p, q = rng.gamma(1.0, size=(2, 60)) + 0.01
    if kind != "prob":
        p, q = np.log(p), np.log(q)
    p, q = (x.astype(getattr(dtypes, dtype) if dtype == "bfloat16" else dtype) for x in (p, q))
    for function in TWO_ROWS:
        result = getattr(kl, function)(p, q, kind=kind)
        assert result.dtype == np.float32
        assert mp.ulp_error(result, getattr(mp, function)(p, q, kind=kind), "float32") <= BOUNDS["float32"]


def test_recorded_errors_are_within_the_bounds():
    records = accuracy_table.load()
    settings_seen = {(r["function"], r["dtype"], r["kind"], r["normalize"]) for r in records}
    assert len(settings_seen) == len(records) == 5 * len(BOUNDS) * len(SETTINGS)
    for record in records:
        for length in accuracy_table.LENGTHS:
            assert record[f"{length} cells"] <= bound(record["kind"], record["dtype"]), record
    assert accuracy_table.markdown_table().count("\n") == len(records) + 2


@pytest.mark.part(6)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cells", [2, 5, 255, 256, 600, 4_100])
@pytest.mark.parametrize("top", [79, 80, 81, 88, 89, 90, 100, 350, 500, 699, 701, 711, 800, 1_000, 2_839, 5_000])
def test_a_logit_beyond_the_range_of_exponentials(dtype, cells, top):
    x, y = np.zeros(cells, dtype), np.zeros(cells, dtype)
    x[0] = top
    truth, scale = mp.of_rows("kl_divergence", x, y, "logit", True)
    assert mp.ulp_error(kl.kl_divergence(x, y, kind="logit"), truth, dtype, scale) <= bound("logit", dtype)


def test_short_rows_of_float32_where_one_cell_is_nearly_all():
    rng = np.random.default_rng(12)
    for cells in (2, 3, 5, 10, 40):
        p, q = (rng.dirichlet(np.full(cells, 0.3), 200).astype("float32") for _ in range(2))
        for one, other in zip(p, q, strict=True):
            truth, scale = mp.of_rows("kl_divergence", one, other, "prob", True)
            assert mp.ulp_error(kl.kl_divergence(one, other), truth, "float32", scale) <= BOUNDS["float32"]


@pytest.mark.parametrize(("spread", "step"), [(3, 0.5), (10, 1), (3, 0.01), (1, 2), (8, 8)])
@pytest.mark.parametrize("cells", [300, 512, 1_000, 9_001])
def test_float32_logits_against_the_same_in_float64(spread, step, cells):
    rng = np.random.default_rng(cells)
    x = (rng.standard_normal((400_000 // cells, cells)) * spread).astype("float32")
    y = (x + rng.standard_normal(x.shape) * step).astype("float32")
    wide = kl.kl_divergence(x.astype("float64"), y.astype("float64"), kind="logit")
    narrow = kl.kl_divergence(x, y, kind="logit").astype("float64")
    assert (np.abs(narrow - wide) <= BOUNDS["float32"] * np.spacing(wide.astype("float32"))).all()


@pytest.mark.part(2)
@pytest.mark.parametrize("cells", [257, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logits_that_differ_by_a_constant_of_any_size(dtype, cells):
    """Sums that differ by more than a float holds digits of: none of them is guessed from the others."""
    rng = np.random.default_rng(cells)
    for step in (-1_000, -300, -150, -110, -100, -75, -50, 50, 100, 300, 1_000):
        for spread in (0.0, 0.01, 1.0):
            p = rng.standard_normal(cells) * 2
            q = (p + rng.standard_normal(cells) * spread if spread else np.zeros(cells)) + step
            p, q = p.astype(dtype), q.astype(dtype)
            for one, other in ((p, q), (q, p)):
                truth, scale = mp.of_rows("kl_divergence", one, other, "logit", True)
                error = mp.ulp_error(kl.kl_divergence(one, other, kind="logit"), truth, dtype, scale)
                assert error <= bound("logit", dtype), f"{error:.3g} ulp at {step}, {spread}"


@pytest.mark.parametrize("where", ["p", "q", "both"])
def test_float32_logits_of_any_negative_size(where):
    """Among them those that turn the bits of a quick exponential into what a number in range has."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(10_000) * 2).astype("float32")
    y = (x + rng.standard_normal(10_000) * 0.3).astype("float32")
    for size in (90, 150, 178, 1e4, *range(2_907_080, 2_907_470, 13), 7.267e6, 8.722e6, 1e9, 1e30):
        p, q = x.copy(), y.copy()
        for side in (p, q) if where == "both" else (p,) if where == "p" else (q,):
            side[6_000:7_000] = -size
        wide = kl.kl_divergence(p.astype("float64"), q.astype("float64"), kind="logit")
        narrow = kl.kl_divergence(p, q, kind="logit").astype("float64")
        assert abs(narrow - wide) <= BOUNDS["float32"] * np.spacing(np.float32(wide)), size


@pytest.mark.parametrize("step", [0.1, 1, 3])
def test_float32_logits_of_which_a_few_hundred_are_nearly_all(step):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(9_000) * 2 - 15
        first = int(rng.integers(0, 9_000 - 512))
        x[first : first + 512] += 15
        y = (x + rng.standard_normal(9_000) * step).astype("float32")
        x = x.astype("float32")
        wide = kl.kl_divergence(x.astype("float64"), y.astype("float64"), kind="logit")
        narrow = kl.kl_divergence(x, y, kind="logit").astype("float64")
        assert abs(narrow - wide) <= BOUNDS["float32"] * np.spacing(np.float32(wide)), seed
