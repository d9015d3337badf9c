"""Measure the largest error of every special function in ``klnumba.formulas``.

Run ``python -m tests.reference.special_errors`` to write ``docs/_data/special_errors.json`` anew.

Functions of one number are measured in units of the last place, those with a root apart from it; the remainders, of two
numbers, in relative error. Those of an order and a number stand apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

from klnumba.formulas import bessel, bessel_orders, integrals, quick, special
from tests.reference import linked
from tests.reference.linked import packaged

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "special_errors.json"
DIGITS = 110


def stirling(x: Any) -> Any:
    """What Stirling's formula leaves of log-gamma."""
    return mp.loggamma(x) - ((x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)


def stirling_slope(x: Any) -> Any:
    """Its derivative."""
    return mp.digamma(x) - mp.log(x) + 1 / (2 * x)


def trigamma(x: Any) -> Any:
    """The second derivative of log-gamma."""
    return mp.polygamma(1, x)


def bessel_ratio(x: Any) -> Any:
    """I1(x)/I0(x)."""
    return mp.besseli(1, x) / mp.besseli(0, x)


def bessel_ratio_slope(x: Any) -> Any:
    """Its derivative."""
    ratio = bessel_ratio(x)
    return 1 - ratio / x - ratio**2


def ratio_of_orders(n: Any, x: Any) -> Any:
    """I(n+1, x)/I(n, x)."""
    return mp.besseli(n + 1, x) / mp.besseli(n, x)


def slope_of_orders(n: Any, x: Any) -> Any:
    """Its derivative by x."""
    ratio = ratio_of_orders(n, x)
    return 1 - (2 * n + 1) * ratio / x - ratio**2


def log_of_order(n: Any, x: Any) -> Any:
    """log(I(n, x)/x**n)."""
    return mp.log(mp.besseli(n, x)) - n * mp.log(x)


def scaled_exponential_integral(x: Any) -> Any:
    """exp(x) times the integral of exp(-t)/t from x on."""
    return mp.exp(x) * mp.e1(x)


# name: the truth, and what to leave out around the roots
ONE_NUMBER: dict[str, tuple[Callable[[Any], Any], tuple[float, float] | None]] = {
    "log_gamma": (mp.loggamma, (0.5, 2.5)),
    "digamma": (mp.digamma, (1.2, 1.8)),
    "trigamma": (trigamma, None),
    "stirling": (stirling, None),
    "stirling_slope": (stirling_slope, None),
    "bessel_ratio": (bessel_ratio, None),
    "bessel_gap": (lambda x: 1 - bessel_ratio(x), None),
    "bessel_ratio_slope": (bessel_ratio_slope, None),
    "scaled_exponential_integral": (scaled_exponential_integral, None),
}
# name: a function and its derivative, and the sign of the remainder
REMAINDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = {
    "log_gamma_bregman": (mp.loggamma, mp.digamma, 1),
    "digamma_bregman": (mp.digamma, trigamma, -1),
    "stirling_bregman": (stirling, stirling_slope, 1),
    "log_bessel_bregman": (lambda x: mp.log(mp.besseli(0, x)), bessel_ratio, 1),
}

# Quick forms, where they serve: what they are the value of.
QUICK: dict[str, Callable[[Any, Any], Any]] = {
    "quick_log_gamma_bregman": lambda a, b: beyond(mp.loggamma, mp.digamma, a, b),
    "quick_beyond_means": lambda a, b: beyond(mp.loggamma, mp.digamma, a, b) - (a - b + b * mp.log(b / a)),
}

# The same, of an order and a number; the orders are those of spheres in 2 and more dimensions.
ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 11.5, 49.0, 63.5, 64.0, 499.0)
OF_AN_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "ratio_of_orders": ratio_of_orders,
    "gap_of_orders": lambda n, x: 1 - ratio_of_orders(n, x),
    "slope_of_orders": slope_of_orders,
}
REMAINDERS_OF_AN_ORDER = {"log_bregman": (log_of_order, ratio_of_orders)}


def formula(name: str) -> Any:
    """The compiled function of this name."""
    if name in QUICK:
        return linked.entry(getattr(quick, name))
    return packaged(
        next(getattr(module, name) for module in (special, bessel, bessel_orders, integrals) if hasattr(module, name))
    )


def sample(rng: np.random.Generator, count: int) -> np.ndarray:
    """Positive numbers, crowded where the formulas change."""
    wide = np.exp(rng.uniform(np.log(1e-30), np.log(1e30), count // 4))
    middle = np.exp(rng.uniform(np.log(1e-6), np.log(1e6), count // 4))
    return np.concatenate([wide, middle, rng.uniform(0.01, 12.0, count // 2)])


def pairs(rng: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Pairs of positive numbers, close together and far apart."""
    a = np.exp(rng.uniform(np.log(1e-6), np.log(1e8), count))
    delta = 10.0 ** rng.uniform(-12, 2, count)
    b = np.where(rng.random(count) < 0.5, a * (1 + delta), a / (1 + delta))
    return [(float(x), float(y)) for x, y in zip(a, b, strict=True) if x != y]


def ulps(value: Any, exact: Any) -> float:
    """The error in units of the last place."""
    return float(abs(mpf(float(value)) - exact) / mpf(float(np.spacing(abs(float(exact))))))


def apart(value: Any, exact: Any) -> float:
    """The relative error."""
    return float(abs(mpf(float(value)) - exact) / exact)


def beyond(function: Callable[[Any], Any], slope: Callable[[Any], Any], x: Any, y: Any) -> Any:
    """How far the function is at y from its tangent at x."""
    return function(y) - function(x) - slope(x) * (y - x)


def worst(name: str, rng: np.random.Generator, count: int) -> tuple[float, list[float]]:
    """The largest error of a function, and where it is."""
    function = formula(name)
    found: list[tuple[float, list[float]]] = []
    with mp.workdps(DIGITS):
        if name in ONE_NUMBER:
            truth, hole = ONE_NUMBER[name]
            kept = (x for x in sample(rng, count).tolist() if hole is None or not hole[0] < x < hole[1])
            found = [(ulps(function(x), truth(mpf(x))), [x]) for x in kept]
        elif name in OF_AN_ORDER:
            for x, n in zip(sample(rng, count).tolist(), rng.choice(ORDERS, count).tolist(), strict=True):
                found.append((ulps(function(n, x), OF_AN_ORDER[name](mpf(n), mpf(x))), [n, x]))
        elif name in REMAINDERS:
            truth, slope, sign = REMAINDERS[name]
            for a, b in pairs(rng, count):
                found.append((apart(function(a, b, b - a), sign * beyond(truth, slope, mpf(a), mpf(b))), [a, b]))
        elif name in QUICK:
            near = [(float(a), float(b)) for a, b in rng.uniform(0.5, 8.0, (count, 2))]
            for a, b in pairs(rng, count) + near:
                value, serves = function(a, b, b - a)
                found += [(apart(value, QUICK[name](mpf(a), mpf(b))), [a, b])] if serves else []
        else:
            for (a, b), n in zip(pairs(rng, count), rng.choice(ORDERS, count).tolist(), strict=False):
                of_order = (partial(part, mpf(n)) for part in REMAINDERS_OF_AN_ORDER[name])
                found.append((apart(function(n, a, b, b - a), beyond(*of_order, mpf(a), mpf(b))), [n, a, b]))
    return max(found)


def measure(count: int) -> dict[str, Any]:
    """The table: an entry a function."""
    rows = []
    for name in (*ONE_NUMBER, *REMAINDERS, *QUICK, *OF_AN_ORDER, *REMAINDERS_OF_AN_ORDER):
        error, at = worst(name, np.random.default_rng(20261121), count)
        hole = ONE_NUMBER[name][1] if name in ONE_NUMBER else None
        text = f"{error:.2f} ulp" if name in (*ONE_NUMBER, *OF_AN_ORDER) else f"{error:.1e} relative"
        rows.append({"function": name, "largest_error": text, "left_out": str(hole or ""), "at": at})
        print(rows[-1], flush=True)
    return {"errors": rows}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(12_000), indent=1) + "\n")
