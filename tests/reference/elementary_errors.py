"""Measure the largest error of every function in ``klnumba.formulas.elementary``.

Run ``python -m tests.reference.elementary_errors`` to write ``docs/_data/elementary_errors.json`` anew; a number as
argument is how many float64 arguments to try per function (2,000,000 unless given).

float64 results are compared with 80-bit arithmetic (64 bits of significand, so its own error is below 0.001 ulp of a
float64), and the worst few hundred of them once more with mpmath. float32 functions are tried at every float32 at which
they do anything but return a constant or the argument, against the float64 function of the same name, and their worst
argument once more with mpmath.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import mpmath
import numba
import numpy as np

from tests.reference.linked import loop, scalar

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "elementary_errors.json"
FUNCTIONS = ("log", "log1p", "exp", "expm1")
DTYPES = ("float64", "float32")
MPMATH = {"log": mpmath.log, "log1p": mpmath.log1p, "exp": mpmath.exp, "expm1": mpmath.expm1}
LN2 = float(np.log(2.0))

LOG_MAX = float(np.log(np.float64(np.finfo(np.float32).max)))  # rounded to float32, the first whose exp overflows

# Where a float32 result is neither constant nor the argument: positive and negative arguments, from and to.
FLOAT32_RANGES = {
    "log": [(0.0, np.inf)],
    "log1p": [(2.0**-26, np.inf), (-1.0, -(2.0**-26))],
    "exp": [(2.0**-26, LOG_MAX), (-104.0, -(2.0**-26))],
    "expm1": [(2.0**-27, LOG_MAX), (-20.0, -(2.0**-27))],
}


def form(name: str, dtype: str) -> str:
    """Return the name of the function for that dtype."""
    return name if dtype == "float64" else f"{name}_f32"


def evaluate(name: str, dtype: str, fused: bool, x: np.ndarray) -> np.ndarray:
    """Apply the compiled function to an array."""
    out = np.empty(x.shape, dtype)
    loop(form(name, dtype), fused)(np.ascontiguousarray(x), out)
    return out


def bits_sample(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Return finite numbers with all bits random, so that every exponent is as likely as any other."""
    width = 64 if dtype == "float64" else 32
    x = rng.integers(0, 2**width, count, dtype=f"uint{width}").view(dtype)
    return x[np.isfinite(x)]


def sample(name: str, dtype: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return about ``count`` arguments at which the function is finite, crowded where it is hard."""
    info = np.finfo(dtype)
    top = float(np.log(info.max))
    bottom = float(np.log(info.smallest_subnormal))
    part = count // 5
    near_zero = np.ldexp(rng.uniform(-1, 1, part), -rng.integers(0, 70, part))
    subnormal = rng.uniform(-1, 1, part // 10) * float(info.smallest_normal)
    # exp and expm1 change their 2**n halfway between the multiples of ln2, where also the rest is largest
    turn = (rng.integers(-150, 130, part) + 0.5) * LN2 + rng.normal(0, 0.01, part)
    first = (rng.integers(-3, 3, part) + 0.5) * LN2 + rng.normal(0, 0.03, part)
    # log and log1p change their 2**k at sqrt(2)*2**k
    mantissa = np.ldexp(rng.uniform(0.65, 1.5, part), rng.integers(-30, 31, part))
    pieces = {
        "log": [mantissa, 1 + near_zero, rng.uniform(0.65, 1.5, part), np.abs(subnormal)],
        "log1p": [near_zero, mantissa - 1, rng.uniform(-0.4, 0.6, part), subnormal],
        "exp": [near_zero, turn, rng.uniform(bottom, top, part), np.linspace(bottom - 1, bottom + 45, part)],
        "expm1": [near_zero, first, rng.uniform(-50, top, part), turn, subnormal],
    }[name]
    x = np.concatenate([*pieces, np.array([top, bottom])]).astype(dtype)
    x = np.concatenate([x, bits_sample(rng, dtype, part)])
    if name in {"log", "log1p"}:
        return x[x > (0 if name == "log" else -1)]
    return x[(x < top) & (x > bottom - 1)]


def ulps(y: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distances in units of the last place of ``exact``, given in 80-bit arithmetic."""
    info = np.finfo(y.dtype)
    exponent = np.frexp(exact)[1] - 1
    exponent = np.maximum(exponent, info.minexp)
    return np.abs(np.ldexp(y.astype(np.longdouble) - exact, info.nmant - exponent)).astype(float)


def mpmath_ulps(name: str, x: np.floating, y: np.floating) -> float:
    """Return the distance of one result from the exact value, in units of the last place of the latter."""
    info = np.finfo(type(x))
    with mpmath.workdps(60):
        exact = MPMATH[name](mpmath.mpf(float(x)))
        if exact == 0:
            return 0.0 if y == 0 else float("inf")
        exponent = max(mpmath.frexp(exact)[1] - 1, int(info.minexp))
        return float(abs(mpmath.mpf(float(y)) - exact) * mpmath.mpf(2) ** (int(info.nmant) - exponent))


def worst_float64(name: str, fused: bool, x: np.ndarray, hardest: int = 300) -> tuple[float, float]:
    """Return the largest error in ulp over the float64 arguments, and its argument."""
    y = evaluate(name, "float64", fused, x)
    errors = ulps(y, getattr(np, name)(x.astype(np.longdouble)))
    order = np.argsort(errors)[-hardest:]
    checked = [(mpmath_ulps(name, x[i], y[i]), float(x[i])) for i in order]
    return max(checked)


def search_float64(name: str, fused: bool, rng: np.random.Generator, count: int) -> tuple[float, float, int]:
    """Return the largest error in ulp found, its argument, and how many arguments were tried.

    A first round tries them everywhere; two more rounds try as many around the worst one so far.
    """
    x = sample(name, "float64", rng, count)
    error, argument = worst_float64(name, fused, x)
    points = x.size
    for width in (0.02, 0.005):
        near = argument * (1 + width * rng.uniform(-1, 1, count))
        error, argument = max((error, argument), worst_float64(name, fused, near))
        points += near.size
    return error, argument, points


@numba.njit(error_model="numpy")
def _scan(narrow, wide, first, last):
    """Return the largest error in ulp over float32 bit patterns, and its bit pattern."""
    worst, where = -1.0, first
    for bits in range(first, last):
        x = np.int32(bits).view(np.float32)
        exact = wide(np.float64(x))
        exponent = (np.float64(exact).view(np.int64) >> 52) & 0x7FF
        exponent = max(exponent, 1023 - 126)
        scale = np.int64((1023 + 23 - (exponent - 1023)) << 52).view(np.float64)
        error = abs(np.float64(narrow(x)) - exact) * scale
        if error > worst:
            worst, where = error, bits
    return worst, where


def worst_float32(name: str, fused: bool, step: int = 1 << 24) -> tuple[float, float, int]:
    """Return the largest error in ulp over all float32 arguments, its argument, and how many there were."""
    narrow, wide = scalar_pair(name, fused)
    worst, where, points = -1.0, np.float32(0), 0
    for low, high in FLOAT32_RANGES[name]:
        ends = sorted(int(np.float32(v).view(np.int32)) for v in (low, high))
        first, last = ends[0] + 1, ends[1]
        points += last - first
        for begin in range(first, last, step):
            error, bits = _scan(narrow, wide, begin, min(begin + step, last))
            if error > worst:
                worst, where = error, np.int32(bits).view(np.float32)
    y = evaluate(name, "float32", fused, np.array([where]))[0]
    return mpmath_ulps(name, where, y), float(where), points


def scalar_pair(name: str, fused: bool) -> tuple[Any, Any]:
    """Return the compiled float32 function and the float64 function to compare it with."""
    from klnumba.formulas import elementary

    return scalar(getattr(elementary, f"{name}_f32"), fused), scalar(getattr(elementary, name), False)


def measure(count: int) -> dict[str, Any]:
    """Return the table: one entry per function, dtype and way of compiling."""
    rng = np.random.default_rng(20261120)
    rows = []
    for name in FUNCTIONS:
        for dtype in DTYPES:
            for fused in (False, True):
                if dtype == "float64":
                    error, argument, points = search_float64(name, fused, rng, count)
                else:
                    error, argument, points = worst_float32(name, fused)
                row = {"function": name, "dtype": dtype, "fused": fused, "max_ulp": round(error, 4)}
                rows.append(row | {"argument": argument.hex(), "points": points})
                print(rows[-1], flush=True)
    versions = {m.__name__: m.__version__ for m in (numba, np, mpmath)} | {"python": platform.python_version()}
    return {"versions": versions, "machine": platform.machine(), "errors": rows}


def main() -> None:
    """Measure, and write the table."""
    table = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
