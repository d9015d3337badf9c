"""Entropy, cross-entropy and JS of logits, quickly: to the last digits, and what is left to the careful loop."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba import engine
from tests.reference import mp

FUNCTIONS = ("entropy", "cross_entropy", "js_divergence", "max_log_ratio")
LENGTHS = (1, 2, 3, 10, 33, 159, 160, 300, 1_000)
# In float64 the largest errors seen are 3.8 ulp, and 4.4 of JS; the careful loop's are 4.5 and 4.9. Values of float32
# are rounded once.
BOUND = {"float64": 4.5, "float32": 0.6}
BOUND_OF_JS = {"float64": 5.0, "float32": 0.6}
INF, NAN = np.inf, np.nan


def call(function, p, q, **settings):
    settings = {"kind": "logit"} | settings
    if function == "max_log_ratio":
        return kl.row_statistics(p, q, stats=(function,), **settings)[function]
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


def truth(function, p, q, **settings):
    settings = {"kind": "logit"} | settings
    return mp.entropy(p, **settings) if function == "entropy" else getattr(mp, function)(p, q, **settings)


def is_near(value, exact, function, dtype):
    """Whether a value is within the bound; what is exactly zero is so in 80 digits alone."""
    bound = BOUND_OF_JS if function == "js_divergence" else BOUND
    return value == 0.0 if exact < 1e-70 else mp.ulp_error(value, exact, dtype) <= bound[dtype]


def carefully(monkeypatch, function, p, q, **settings):
    """What the careful loop alone gives."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "is_quick", lambda *_: False)
        return call(function, p, q, **settings)


def _spread(scale):
    def rows(rng, d):
        return rng.normal(0.0, scale, (2, d))

    return rows


def _nearly_one(gap):
    """One cell of each row stands out; the same one in half of the pairs."""

    def rows(rng, d):
        both = rng.normal(0.0, 1.0, (2, d))
        place = rng.integers(d)
        both[0, place] += gap
        both[1, place if rng.random() < 0.5 else rng.integers(d)] += 0.9 * gap
        return both

    return rows


def _equal(rng, d):
    return np.repeat(rng.random((2, 1)), d, axis=1)


def _ties(rng, d):
    return np.round(rng.normal(0.0, 2.0, (2, d)))


def _far_and_alike(rng, d):
    both = np.repeat(-10.0 - 25.0 * rng.random((2, 1)), d, axis=1)
    both[:, rng.integers(d)] = rng.random(2)
    return both


def _masked(value):
    def rows(rng, d):
        both = rng.normal(0.0, 2.0, (2, d))
        both[:, 1:][:, rng.random(d - 1) < 0.5] = value
        return both

    return rows


def _at_an_offset(rng, d):
    return rng.normal(0.0, 2.0, (2, d)) + np.array([[1e4], [-1e4]])


FAMILIES = {
    "spread 0.01": _spread(0.01),
    "spread 1": _spread(1.0),
    "spread 5": _spread(5.0),
    "spread 30": _spread(30.0),
    "nearly one": _nearly_one(20.0),
    "nearly one, far": _nearly_one(80.0),
    "equal": _equal,
    "ties": _ties,
    "far and alike": _far_and_alike,
    "masked": _masked(-INF),
    "masked by a large number": _masked(-1e9),
    "offset": _at_an_offset,
}


@pytest.mark.part(12)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_against_the_truth(function, family, dtype):
    rng = np.random.default_rng(len(family))
    for d in LENGTHS:
        for _ in range(1 if d > 255 else 3):
            p, q = FAMILIES[family](rng, d).astype(dtype)
            assert is_near(call(function, p, q), truth(function, p, q), function, dtype), f"{d} cells"


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("step", [1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8])
def test_js_of_rows_that_are_alike(step, dtype):
    rng = np.random.default_rng(9)
    for d in LENGTHS[1:]:
        for gap, offset in ((0.0, 0.0), (0.0, 1e3), (20.0, 0.0)):
            p = rng.normal(0.0, 1.0, d)
            p[d // 2] += gap
            q = (p + step * rng.normal(0.0, 1.0, d) + offset).astype(dtype)
            p = p.astype(dtype)
            value, exact = call("js_divergence", p, q), truth("js_divergence", p, q)
            assert is_near(value, exact, "js_divergence", dtype), f"{d} cells, {gap}, {offset}"


@pytest.mark.parametrize("d", [2, 7, 33, 200])
def test_js_of_rows_that_differ_in_a_few_cells(d):
    """All others have one rounding error in common."""
    rng = np.random.default_rng(d)
    for change in [*rng.uniform(0.0, 3.0, 40), 1.99, 2.0, 2.01, 10.0]:
        p, q = np.zeros((2, d))
        q[d // 2 :][: 1 + d // 10] = change
        assert is_near(call("js_divergence", p, q), truth("js_divergence", p, q), "js_divergence", "float64"), change


@pytest.mark.parametrize("d", [20, 159, 300, 1_000, 10_000, 100_000])
def test_js_of_two_values_where_the_masses_are_far_apart(d):
    """One cell of p is about half of it, q is flat: 6.7 ulp were seen, all cells being alike."""
    for step in range(12):
        lows = -np.log(d) + 0.1 * step - 0.55, -0.01 * step - 0.001
        p, q = (np.full(d, low) for low in lows)
        p[5] = q[5] = 0.0
        with mpmath.workdps(40):
            odds = [mpmath.exp(mpmath.mpf(float(low))) for low in lows]
            masses = [1 + (d - 1) * one for one in odds]
            cells = [[1 / mass, one / mass] for one, mass in zip(odds, masses, strict=True)]
            first, others = (_js_cell(a, b) for a, b in zip(*cells, strict=True))
            exact = first + (d - 1) * others
        for value in (call("js_divergence", p, q), call("js_divergence", q, p)):
            assert mp.ulp_error(value, exact) <= 8.0, step


def _js_cell(p, q):
    return (p * mpmath.log(2 * p / (p + q)) + q * mpmath.log(2 * q / (p + q))) / 2


def test_js_of_noise_where_one_cell_is_half_of_p():
    rng = np.random.default_rng(12)
    for d in (100, 500, 3_000):
        p, q = rng.normal(0.0, 0.1, (2, d))
        p[d // 2] = np.log(np.exp(p).sum())
        for pair in ((p, q), (q, p)):
            assert is_near(call("js_divergence", *pair), truth("js_divergence", *pair), "js_divergence", "float64"), d


def test_js_of_equal_rows_is_zero_and_at_most_a_bit(quick_alone):
    rng = np.random.default_rng(10)
    for d in (5, 400):
        p = rng.normal(0.0, 3.0, (20, d))
        p[:, 1] = -INF
        assert (kl.js_divergence(p, p, kind="logit") == 0.0).all()
        apart = np.where(np.arange(d) % 2 == 0, p, -INF), np.where(np.arange(d) % 2 == 1, np.nan_to_num(p), -INF)
        assert (kl.js_divergence(*apart, kind="logit", base=2) <= 1.0).all()


def test_js_of_other_weights_is_what_it_was(monkeypatch):
    rng = np.random.default_rng(11)
    p, q = rng.normal(0.0, 3.0, (2, 20, 50))
    value = kl.js_divergence(p, q, kind="logit", weight=0.3)
    assert value.tobytes() == carefully(monkeypatch, "js_divergence", p, q, weight=0.3).tobytes()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wide_results_and_temperatures(function):
    rng = np.random.default_rng(3)
    for d, temperature in [(5, 0.25), (40, 2.0), (700, 8.0), (5, 2.0**-300), (300, 2.0**200), (9, 3.0)]:
        p, q = rng.normal(0.0, 2.0, (2, d)).astype("float32") * np.float64(temperature)
        exact = truth(function, p, q, temperature=temperature)
        value = call(function, p, q, temperature=temperature)
        assert is_near(value, exact, function, "float64"), temperature
        if temperature in (0.25, 2.0, 8.0):
            wide = call(function, p.astype("float32"), q.astype("float32"), temperature=temperature, dtype=np.float64)
            assert wide == value
    p, q = rng.normal(0.0, 2.0, (2, 30))
    assert call(function, p, q, kind="log_prob") == call(function, p, q)


@pytest.mark.part(2)
@pytest.mark.parametrize("temperature", [0.7, 3.0])
@pytest.mark.parametrize("function", [*FUNCTIONS, "kl_divergence", "jeffreys_divergence"])
def test_float32_at_any_temperature(function, temperature):
    """Logits times a rounded number have the digits of float32 to spare."""
    rng = np.random.default_rng([len(function), int(temperature)])
    for d in LENGTHS[1:]:
        if d >= 256 and function in ("kl_divergence", "jeffreys_divergence"):
            continue  # these rows are computed in float32
        for scale, near in [(1.0, 0.1), (5.0, 2.0), (30.0, 1e-3)]:
            p = (scale * temperature * rng.standard_normal(d)).astype(np.float32)
            q = (p + near * temperature * rng.standard_normal(d)).astype(np.float32)
            exact = truth(function, p, q, temperature=temperature)
            assert is_near(call(function, p, q, temperature=temperature), exact, function, "float32"), (d, scale)


# Below the range of the quick loops.
TINY = [("js_divergence", family) for family in ("nearly one, far", "far and alike", "equal")] + [
    ("max_log_ratio", "equal")
]
SERVED = [(function, family) for function in FUNCTIONS for family in FAMILIES if (function, family) not in TINY]


@pytest.mark.parametrize(("function", "family"), SERVED)
def test_rows_that_need_no_care(quick_alone, function, family):
    rng = np.random.default_rng(4)
    for d in (10, 300):
        p, q = np.array([FAMILIES[family](rng, d) for _ in range(20)]).swapaxes(0, 1)
        assert np.isfinite(call(function, p, q)).all()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_masks_of_every_size_need_no_care(quick_alone, function):
    rng = np.random.default_rng(5)
    for value in (-1e4, -1e9, -3.4e38, -1e300, -1.7e308, -INF):
        p, q = FAMILIES["masked"](rng, 40)
        p[np.isinf(p)] = q[np.isinf(q)] = value
        hidden = np.where(p == value, -INF, [p, q])
        assert call(function, p, q) == call(function, *hidden)


ODD = (
    -INF,
    -1.7e308,
    -1e9,
    -1001.0,
    -999.0,
    -745.0,
    -720.0,
    -709.0,
    -700.0,
    -1.0,
    0.0,
    0.5,
    100.0,
    710.0,
    1e13,
    INF,
    NAN,
)


@pytest.mark.part(4)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", [1, 2, 3, 12, 300])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_odd_cells_as_the_careful_loop_has_them(monkeypatch, function, d, dtype):
    rng = np.random.default_rng(d)
    with np.errstate(over="ignore"):
        odd = np.array(ODD).astype(dtype)
    p, q = rng.normal(0.0, 3.0, (2, 3_000 if d < 10 else 500, d)).astype(dtype)
    share = 0.9 if d < 10 else 2.0 / d
    for side in (p, q):
        there = rng.random(side.shape) < share
        side[there] = rng.choice(odd, int(there.sum()), p=np.where(np.abs(odd) < 1e3, 2.0, 1.0) / 27.0)
    quick, careful = call(function, p, q), carefully(monkeypatch, function, p, q)
    assert not np.isfinite(careful).all()
    np.testing.assert_array_equal(np.isfinite(quick), np.isfinite(careful))
    np.testing.assert_allclose(quick, careful, rtol=2e-15 if dtype == "float64" else 1e-6, atol=0.0)


def test_a_cell_that_q_all_but_lacks(monkeypatch):
    """p*log(q) counts where p is below the range of numbers with all digits, and log(q) is huge."""
    p, q = np.array([0.0, -720.0, 1.0]), np.array([0.0, -1.79e308, 2.0])
    assert mp.ulp_error(kl.cross_entropy(p, q, kind="logit"), mp.cross_entropy(p, q, kind="logit")) < 1e6
    assert kl.cross_entropy(p, q, kind="logit") == carefully(monkeypatch, "cross_entropy", p, q)
    for d in (3, 300):
        for far, height in ((-720.0, -8e59), (-712.0, -1e59), (-715.0, -1e20), (-711.0, -1e17), (-700.0, -1e30)):
            p, q = np.full((2, d), -615.0)
            p[:2], q[:2] = (0.0, far), (0.0, height)
            value = kl.cross_entropy(p, q, kind="logit")
            assert value == pytest.approx(carefully(monkeypatch, "cross_entropy", p, q), rel=1e-15, abs=0.0), (d, far)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("d", [5, 300])
def test_largest_cells_far_from_zero(monkeypatch, function, d):
    """As a multiple of the temperature, which decides whether the steps below them show."""
    rng = np.random.default_rng(13)
    for exponent in (37, 38, 39, 41, 43, 60):
        for temperature in (2.0**-30, 0.25, 1.0, 4.0):
            p, q = rng.normal(0.0, 2.0, (2, d)) + 2.0**exponent
            careful = carefully(monkeypatch, function, p, q, temperature=temperature)
            value = call(function, p, q, temperature=temperature)
            assert value == pytest.approx(careful, rel=2e-15, abs=0.0), (exponent, temperature)


def test_rows_of_next_to_no_entropy(monkeypatch):
    for second in (-INF, -1e9, -744.0, -700.0, -600.0):
        p = np.array([0.0, second])
        assert kl.entropy(p, kind="logit") == pytest.approx(carefully(monkeypatch, "entropy", p, p), rel=1e-15, abs=0.0)


def test_several_statistics_are_those_of_single_calls():
    rng = np.random.default_rng(6)
    p, q = rng.normal(0.0, 3.0, (2, 50, 40))
    found = kl.row_statistics(p, q, stats=("entropy_p", "entropy_q", "cross_entropy", "js", "jeffreys"), kind="logit")
    for name, value in {
        "entropy_p": kl.entropy(p, kind="logit"),
        "entropy_q": kl.entropy(q, kind="logit"),
        "cross_entropy": kl.cross_entropy(p, q, kind="logit"),
        "js": kl.js_divergence(p, q, kind="logit"),
        "jeffreys": kl.jeffreys_divergence(p, q, kind="logit"),
    }.items():
        assert found[name].tobytes() == value.tobytes()


@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("d", [1, 2, 10, 300])
def test_jeffreys_is_kl_there_and_back(monkeypatch, d, kind):
    """Also where q lacks a cell that p has; and near what the loop of its own gives."""
    rng = np.random.default_rng(8)
    p, q = rng.normal(0.0, 2.0, (2, 60, d))
    q[::3] = p[::3] + 1e-5 * rng.normal(size=q[::3].shape)
    q[1, 0] = p[2, 0] = p[4, 0] = q[4, 0] = -INF
    if kind == "prob":
        p, q = np.exp(p), np.exp(q)
    value = kl.jeffreys_divergence(p, q, kind=kind)
    both = kl.kl_divergence(p, q, kind=kind) + kl.kl_divergence(q, p, kind=kind)
    assert value.tobytes() == kl.jeffreys_divergence(p, q, kind=kind, threads=3).tobytes()
    if kind == "prob":  # of rows of other masses both ways are scaled alike
        np.testing.assert_allclose(value, both, rtol=1e-15, atol=0.0)
        assert value.tobytes() == kl.jeffreys_divergence(q, p).tobytes()
    else:
        assert value.tobytes() == both.tobytes()
    careful = carefully(monkeypatch, "jeffreys_divergence", p, q, kind=kind)
    np.testing.assert_allclose(value, careful, rtol=4e-15, atol=0.0)


def test_the_entropy_is_the_cross_entropy_of_a_row_and_itself():
    rng = np.random.default_rng(7)
    for d in (2, 10, 300, 900):
        p = rng.normal(0.0, 3.0, (30, d))
        np.testing.assert_allclose(kl.entropy(p, kind="logit"), kl.cross_entropy(p, p, kind="logit"), rtol=1e-15)
