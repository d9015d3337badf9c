"""The elementary functions: error, edge values, recorded table, and what they compile to."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from klnumba.formulas import elementary
from tests.reference import coefficients, linked
from tests.reference.elementary_errors import (
    DTYPES,
    FUNCTIONS,
    TABLE,
    bits_sample,
    evaluate,
    form,
    mpmath_ulps,
    sample,
    ulps,
    worst_float32,
    worst_float64,
)

LIMIT = 1.0  # ulp: what the module promises
LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63
X86 = platform.machine().lower() in {"x86_64", "amd64"}
FUSED = pytest.mark.parametrize("fused", [False, True], ids=["exact", "fused"])
NAME = pytest.mark.parametrize("name", FUNCTIONS)
DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def recorded(name: str, dtype: str, fused: bool) -> dict:
    """Return the recorded row of one function."""
    rows = json.loads(TABLE.read_text())["errors"]
    (row,) = [r for r in rows if (r["function"], r["dtype"], r["fused"]) == (name, dtype, fused)]
    return row


def hard_points(name: str, dtype: str) -> np.ndarray:
    """Return a few hundred arguments next to which a function changes its formula or its range."""
    info = np.finfo(dtype)
    turns = {
        "log": [math.sqrt(0.5) * 2.0**k for k in (-30, -1, 0, 1, 2, 30)] + [1.0, 0.5, float(info.smallest_normal)],
        "log1p": [math.sqrt(0.5) * 2.0**k - 1 for k in (-8, -1, 0, 1, 2, 30)]
        + [1.0, 2.0**-53, -(2.0**-53), 2.0**53, 2.0**-24, 2.0**24],
        "exp": [(k + 0.5) * math.log(2) for k in (-120, -2, -1, 0, 1, 100)] + [math.log(2.0), 1.0, -1.0],
        "expm1": [(k + 0.5) * math.log(2) for k in (-54, -53, -3, -2, -1, 0, 1, 2, 52, 53, 54, 100)]
        + [k * math.log(2) for k in (-2, -1, 1, 2)]
        + [2.0**-26, 2.0**-55, -(2.0**-55)],
    }[name]
    points = np.array([math.log(float(info.max)), math.log(float(info.smallest_normal)), *turns]).astype(dtype)
    near = [points]
    for direction in (-np.inf, np.inf):
        step = points
        for _ in range(8):
            step = np.nextafter(step, np.array(direction, dtype))
            near.append(step)
    x = np.concatenate([*near, np.array([info.smallest_subnormal, info.smallest_normal, -info.smallest_normal])])
    x = x.astype(dtype)
    if name in {"log", "log1p"}:
        return x[x > (0 if name == "log" else -1)]
    return x[x < math.log(float(info.max))]


@NAME
@DTYPE
@FUSED
def test_error_against_mpmath(name, dtype, fused):
    rng = np.random.default_rng(1)
    x = np.concatenate([hard_points(name, dtype), rng.permutation(sample(name, dtype, rng, 20_000))[:600]])
    y = evaluate(name, dtype, fused, x)
    errors = [mpmath_ulps(name, a, b) for a, b in zip(x, y, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= LIMIT, x[worst].hex()
    assert errors[worst] <= recorded(name, dtype, fused)["max_ulp"] + 0.05, x[worst].hex()


@pytest.mark.skipif(not LONG_DOUBLE, reason="long double has no more digits than double here")
@NAME
@DTYPE
@FUSED
def test_error_against_long_double(name, dtype, fused):
    x = sample(name, dtype, np.random.default_rng(2), 100_000)
    errors = ulps(evaluate(name, dtype, fused, x), getattr(np, name)(x.astype(np.longdouble)))
    worst = int(np.argmax(errors))
    assert x.size > 60_000
    assert errors[worst] <= recorded(name, dtype, fused)["max_ulp"] + 0.05, x[worst].hex()


@NAME
@DTYPE
@FUSED
def test_recorded_error_is_within_the_promise_and_reproducible(name, dtype, fused):
    row = recorded(name, dtype, fused)
    assert 0.5 <= row["max_ulp"] <= LIMIT
    assert row["points"] >= 1_000_000
    x = np.array([float.fromhex(row["argument"])]).astype(dtype)
    error = mpmath_ulps(name, x[0], evaluate(name, dtype, fused, x)[0])
    assert abs(error - row["max_ulp"]) <= 0.2  # another processor may have no fused multiply-add


@pytest.mark.slow
@pytest.mark.skipif(not LONG_DOUBLE, reason="long double has no more digits than double here")
@NAME
@FUSED
def test_error_on_two_million_float64(name, fused):
    x = sample(name, "float64", np.random.default_rng(3), 2_000_000)
    error, argument = worst_float64(name, fused, x)
    assert error <= recorded(name, "float64", fused)["max_ulp"] + 0.05, argument.hex()


@pytest.mark.slow
@NAME
@FUSED
def test_error_on_every_float32(name, fused):
    error, argument, points = worst_float32(name, fused)
    assert points > 500_000_000
    assert error <= recorded(name, "float32", fused)["max_ulp"] + 0.05, argument.hex()


NAN, INF = math.nan, math.inf
EDGES = {
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN), (NAN, NAN), (-NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN), (-NAN, NAN)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (-NAN, NAN), (1e5, INF), (-1e5, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (1e5, INF), (-1e5, -1.0), (-50.0, -1.0)],
}
# The last finite and the first infinite exp, the last that is not zero and the first that is.
EXP_LIMITS = {
    "float64": ["0x1.62e42fefa39efp+9", "0x1.62e42fefa39f0p+9", "-0x1.74910d52d3051p+9", "-0x1.74910d52d3052p+9"],
    "float32": ["0x1.62e42ep+6", "0x1.62e430p+6", "-0x1.9fe368p+6", "-0x1.9fe36ap+6"],
}


@NAME
@DTYPE
@FUSED
def test_edge_values(name, dtype, fused):
    x, expected = np.array(EDGES[name]).T.astype(dtype)
    y = evaluate(name, dtype, fused, x)
    np.testing.assert_array_equal(y, expected)
    if not fused:  # with nsz the sign of a zero is not promised
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(expected[zero]))


@DTYPE
@FUSED
def test_exp_overflows_and_underflows_where_it_should(dtype, fused):
    x = np.array([float.fromhex(v) for v in EXP_LIMITS[dtype]]).astype(dtype)
    y = evaluate("exp", dtype, fused, x)
    np.testing.assert_array_equal(np.isfinite(y), [True, False, True, True])
    np.testing.assert_array_equal(y[2:], [np.finfo(dtype).smallest_subnormal, 0])
    np.testing.assert_array_equal(np.isfinite(evaluate("expm1", dtype, fused, x[:2])), [True, False])


@pytest.mark.parametrize("name", ["log1p", "expm1"])
@DTYPE
@FUSED
def test_tiny_arguments_are_their_own_result(name, dtype, fused):
    info = np.finfo(dtype)
    x = bits_sample(np.random.default_rng(4), dtype, 20_000)
    x = np.concatenate([x[np.abs(x) < info.eps / 8], [info.smallest_subnormal, -info.smallest_subnormal]]).astype(dtype)
    assert x.size > 5_000
    y = evaluate(name, dtype, fused, x)
    # log1p(x) = x - x*x/2 and expm1(x) = x + x*x/2: less than an eighth of an ulp away from x
    np.testing.assert_array_equal(y, x)


@NAME
@DTYPE
def test_the_text_runs_uncompiled(name, dtype):
    x = sample(name, dtype, np.random.default_rng(5), 2_000)[::5]
    plain = getattr(elementary, form(name, dtype))
    with np.errstate(over="ignore", under="ignore"):
        results = [plain(v) for v in x]
    assert {type(v) for v in results} <= {np.dtype(dtype).type, float}
    np.testing.assert_array_equal(np.array(results, dtype), evaluate(name, dtype, False, x))


def test_two_sum_is_exact():
    rng = np.random.default_rng(6)
    pairs = np.ldexp(rng.uniform(-1, 1, (500, 2)), rng.integers(-60, 60, (500, 2)))
    two_sum = linked.scalar(elementary.two_sum, True)
    for a, b in pairs.tolist():
        s, e = two_sum(a, b)
        assert s == a + b
        assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)


@DTYPE
def test_split_exponent_is_exact(dtype):
    function = elementary.split_exponent if dtype == "float64" else elementary.split_exponent_f32
    split = linked.scalar(function, False)
    info = np.finfo(dtype)
    half = np.array(math.sqrt(0.5)).astype(dtype)
    ends = [info.smallest_subnormal, info.smallest_normal, info.max, 1.0, half, np.nextafter(half, half - half)]
    x = np.abs(np.concatenate([np.array(ends, dtype), bits_sample(np.random.default_rng(7), dtype, 500)]))
    for v in x[x > 0]:
        m, k = split(v)
        assert half <= m < 2 * half
        assert Fraction(float(m)) * Fraction(2) ** int(k) == Fraction(float(v))


def test_ln2_in_two_parts():
    for high, low, bits, spare in (
        (elementary.LN2_HI, elementary.LN2_LO, 53, 20),
        (float(elementary.LN2_HI_F32), float(elementary.LN2_LO_F32), 24, 8),
    ):
        assert (Fraction(high) * 2 ** (bits - spare)).denominator == 1
        with mpmath.workdps(40):
            rest = abs(mpmath.log(2) - mpmath.mpf(high) - mpmath.mpf(low))
        assert rest <= low * 2.0**-bits


SETS = {
    "log_f64": [f"L{i}" for i in range(7)],
    "log_f32": [f"L{i}_F32" for i in range(3)],
    "exp_f64": [f"E{i}" for i in range(1, 11)],
    "exp_f32": [f"E{i}_F32" for i in range(1, 6)],
}


@pytest.mark.parametrize("name", SETS)
def test_coefficients_are_those_of_the_generator(name):
    with mpmath.workdps(50):
        made, error = coefficients.smallest(coefficients.TARGETS[name])
    made = [float(c) for c in made]
    if name.startswith("exp"):  # their first coefficient is written out as one half
        assert made.pop(0) == 0.5
    assert [float(getattr(elementary, c)) for c in SETS[name]] == made
    assert error <= coefficients.TARGETS[name].tolerance


def main_body(text: str, marker: str, end: str) -> str:
    """Return the compiled loop itself, without the wrappers that Python calls."""
    functions = re.findall(rf"{marker}.*?{end}", text, flags=re.DOTALL | re.MULTILINE)
    return max((f for f in functions if "cpython" not in f[:200] and "cfunc" not in f[:200]), key=len)


def assert_vectorised(name: str, fused: bool) -> None:
    """Check the assembly of the loop over an array: packed arithmetic in the widest registers, and no calls."""
    dtype = "float32" if name.endswith("_f32") else "float64"
    apply = linked.loop(name, fused)
    apply(np.ones(8, dtype), np.ones(8, dtype))
    (assembly,) = apply.inspect_asm().values()
    body = main_body(assembly, r"^_ZN[^\n]*apply[^\n]*:$", r"\.Lfunc_end")
    suffix = "pd" if dtype == "float64" else "ps"
    assert re.search(rf"\bv?mul{suffix}\s.*%[xyz]mm", body), "no packed multiplication"
    assert re.search(rf"\bv?div{suffix}\s.*%[xyz]mm", body) or not name.startswith("log"), "no packed division"
    assert "elementary" not in body, "a function was not inlined"
    assert not re.search(r"\$_?(log|exp|fma|pow|ldexp)\w*\b", body), "a call to the mathematical library"


@pytest.mark.skipif(not X86, reason="the instructions are those of x86")
@NAME
@DTYPE
@FUSED
def test_loops_are_vectorised(name, dtype, fused):
    assert_vectorised(form(name, dtype), fused)


@DTYPE
@NAME
def test_float32_stays_float32(name, dtype):
    apply = linked.loop(form(name, dtype), True)
    apply(np.ones(8, dtype), np.ones(8, dtype))
    (text,) = apply.inspect_llvm().values()
    body = main_body(text, "^define", "^}")
    other = "double" if dtype == "float32" else "float"
    assert re.search(rf"<\d+ x {'float' if dtype == 'float32' else 'double'}>", body)
    assert not re.search(rf"\b{other}\b", body)


@pytest.mark.skipif(not X86, reason="the processors are x86 ones")
@pytest.mark.parametrize("processor", ["x86-64", "haswell"])
def test_loops_are_vectorised_for_other_processors(processor):
    names = [form(n, d) for n in FUNCTIONS for d in DTYPES]
    script = (
        "from tests.formulas.test_elementary import assert_vectorised\n"
        f"for name in {names}:\n    assert_vectorised(name, True)\n    print(name)\n"
    )
    environment = os.environ | {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == names
