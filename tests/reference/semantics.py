"""The semantics of the array functions: every edge with its value and its rule.

The docs print this list as a table, and `tests/divergence/test_semantics.py` runs it. The cells are exact in every
dtype a case names, so that one expected value serves them all. Needs the standard library alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

ALL = ("float64", "float32", "float16", "bfloat16")
WIDE = ("float64", "float32")
DOUBLE = ("float64",)
SINGLE = ("float32",)

INF, NAN = math.inf, math.nan
LN2 = math.log(2)
TINY = 2.0**-1074  # the smallest positive float64
HUGE = 2.0**1023  # the largest power of two a float64 holds


class Case(NamedTuple):
    """One edge: what goes in, what comes out, and why."""

    name: str
    function: str
    p: Any
    q: Any  # None for entropy
    arguments: dict[str, Any]
    expected: float | str  # a number, "nan", "inf" or "-inf"
    rule: str
    formula: str = ""  # how the docs write a number
    dtypes: tuple[str, ...] = ALL


SEMANTICS: list[Case] = []


def _add(
    function: str, name: str, p: Any, q: Any, expected: float | str, rule: str, formula: str = "",
    dtypes: tuple[str, ...] = ALL, **arguments: Any,
) -> None:  # fmt: skip
    details = [str(value) if key == "kind" else f"{key}={value}" for key, value in arguments.items() if key != "where"]
    label = "-".join([function, *details, name.replace(" ", "_")])
    SEMANTICS.append(Case(label, function, p, q, arguments, expected, rule, formula, dtypes))


# --- pointwise ----------------------------------------------------------------------------------------------


def _pointwise_both(name: str, p: float, q: float, rel: float | str, generalized: float | str, rule: str) -> None:
    _add("rel_entr", name, p, q, rel, rule)
    _add("generalized_kl", name, p, q, generalized, rule)


_pointwise_both("equal", 0.5, 0.5, 0.0, 0.0, "log 1 is 0")
_pointwise_both("zero and zero", 0.0, 0.0, 0.0, 0.0, "0·log(0/0) is 0")
_pointwise_both("zero and positive", 0.0, 0.5, 0.0, 0.5, "0·log(0/q) is 0; what is left is q")
_pointwise_both("minus zero", -0.0, 0.5, 0.0, 0.5, "−0 is 0")
_pointwise_both("zero and minus zero", 0.0, -0.0, 0.0, 0.0, "−0 is 0")
_pointwise_both("positive and zero", 0.5, 0.0, "inf", "inf", "mass where q has none")
_pointwise_both("positive and minus zero", 0.5, -0.0, "inf", "inf", "−0 is 0")
_pointwise_both("negative p", -0.5, 0.5, "inf", "inf", "outside the domain: +inf, the convex extension")
_pointwise_both("negative q", 0.5, -0.5, "inf", "inf", "outside the domain: +inf, the convex extension")
_pointwise_both("zero and negative", 0.0, -0.5, "inf", "inf", "outside the domain: +inf, the convex extension")
_pointwise_both("both negative", -0.5, -0.5, "inf", "inf", "outside the domain: +inf, the convex extension")
_pointwise_both("minus inf p", -INF, 0.5, "inf", "inf", "outside the domain: +inf, the convex extension")
_pointwise_both("nan p", NAN, 0.5, "nan", "nan", "NaN stays NaN")
_pointwise_both("nan q", 0.5, NAN, "nan", "nan", "NaN stays NaN")
_pointwise_both("nan q at zero", 0.0, NAN, "nan", "nan", "NaN stays NaN, also where p is 0")
_pointwise_both("nan p at negative", NAN, -1.0, "nan", "nan", "NaN comes before the domain")
_pointwise_both("inf p", INF, 1.0, "inf", "inf", "p·log p grows faster than p")
_pointwise_both("inf q", 1.0, INF, "-inf", "inf", "−log q has no lower bound, but q grows faster")
_pointwise_both("both inf", INF, INF, "nan", "nan", "inf/inf has no value")
_pointwise_both("inf and zero", INF, 0.0, "inf", "inf", "mass where q has none")
_pointwise_both("zero and inf", 0.0, INF, 0.0, "inf", "0·log(0/q) is 0; what is left is q")
_add("rel_entr", "ratio two", 1.0, 0.5, LN2, "p·log(p/q)", "ln 2")
_add("rel_entr", "below", 0.5, 1.0, -0.5 * LN2, "one cell may be negative", "−½ ln 2")
_add("generalized_kl", "ratio two", 1.0, 0.5, LN2 - 0.5, "p·log(p/q) − p + q", "ln 2 − ½")
_add("generalized_kl", "below", 0.5, 1.0, 0.5 - 0.5 * LN2, "never negative", "½ − ½ ln 2")
_add("rel_entr", "quotient overflows", 1.0, TINY, 1074 * LN2, "p/q may overflow, the result does not",
     "1074 ln 2", DOUBLE)  # fmt: skip
_add("generalized_kl", "quotient overflows", 1.0, TINY, 1074 * LN2 - 1, "p/q may overflow, the result does not",
     "1074 ln 2 − 1", DOUBLE)  # fmt: skip
_add("rel_entr", "subnormal p", TINY, 1.0, -744 * TINY, "subnormal cells count", "−744·2⁻¹⁰⁷⁴", DOUBLE)
_add("generalized_kl", "subnormal p", TINY, 1.0, 1.0, "subnormal cells count", "1", DOUBLE)
_add("rel_entr", "both subnormal", 4 * TINY, TINY, 6 * TINY, "subnormal cells count", "6·2⁻¹⁰⁷⁴", DOUBLE)
_add("rel_entr", "too large", HUGE, TINY, "inf", "the exact value is above the largest float", "", DOUBLE)
_add("generalized_kl", "too large", HUGE, TINY, "inf", "the exact value is above the largest float", "", DOUBLE)
_add("rel_entr", "large", HUGE, HUGE / 2, HUGE * LN2, "no overflow on the way", "2¹⁰²³ ln 2", DOUBLE)
_add("generalized_kl", "large", HUGE / 2, HUGE, HUGE / 2 * (1 - LN2), "no overflow on the way",
     "2¹⁰²² (1 − ln 2)", DOUBLE)  # fmt: skip

# --- rows of probabilities, normalised ----------------------------------------------------------------------

_PAIRS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
_KL_QUARTERS = 0.5 * LN2 + 0.5 * math.log(2 / 3)  # of (1/2, 1/2) and (1/4, 3/4)
_REVERSE_QUARTERS = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
_JS_QUARTERS = (
    0.5 * (0.5 * math.log(0.5 / 0.375) + 0.5 * math.log(0.5 / 0.625))
    + 0.5 * (0.25 * math.log(0.25 / 0.375) + 0.75 * math.log(0.75 / 0.625))
)  # fmt: skip
_QUARTERS = {
    "kl_divergence": (_KL_QUARTERS, "½ ln 2 + ½ ln ⅔"),
    "cross_entropy": (_KL_QUARTERS + LN2, "3/2 ln 2 + ½ ln ⅔"),
    "js_divergence": (_JS_QUARTERS, "JS of (½, ½) and (¼, ¾)"),
    "jeffreys_divergence": (_KL_QUARTERS + _REVERSE_QUARTERS, "¼ ln 3"),
}


def _quarters(name: str, p: Any, q: Any, rule: str, dtypes: tuple[str, ...] = ALL, **arguments: Any) -> None:
    """Rows that stand for (1/2, 1/2) and (1/4, 3/4), whatever else they hold."""
    for function, (value, formula) in _QUARTERS.items():
        _add(function, name, p, q, value, rule, formula, dtypes, **arguments)


def _all_pairs(name: str, p: Any, q: Any, expected: float | str, rule: str, **arguments: Any) -> None:
    for function in _PAIRS:
        _add(function, name, p, q, expected, rule, **arguments)


_quarters("rows that sum to one", (0.5, 0.5), (0.25, 0.75), "the definition")
_quarters("counts", (3, 3), (2, 6), "each row is divided by its own sum")
_quarters("zero in both", (0.5, 0.0, 0.5), (0.25, 0.0, 0.75), "0·log(0/0) is 0")
_quarters("minus zero", (0.5, -0.0, 0.5), (0.25, -0.0, 0.75), "−0 is 0")
_quarters("smallest half", (2.0**-24, 2.0**-24), (2.0**-24, 3 * 2.0**-24), "subnormal cells count")
_quarters("subnormal single", (2.0**-149,) * 2, (2.0**-149, 3 * 2.0**-149), "subnormal cells count", WIDE)
_quarters("subnormal double", (TINY, TINY), (TINY, 3 * TINY), "subnormal cells count", DOUBLE)
_quarters("sum overflows", (HUGE, HUGE), (HUGE / 2, 1.5 * HUGE), "sums may overflow, the result does not", DOUBLE)
_quarters("single sum overflows", (2.0**127, 2.0**127), (2.0**126, 1.5 * 2.0**127),
          "sums may overflow, the result does not", SINGLE)  # fmt: skip
_quarters("scales apart", (TINY, TINY), (HUGE / 4, 3 * (HUGE / 4)), "each row is divided by its own sum", DOUBLE)
_quarters("cell left out", (0.5, NAN, 0.5), (0.25, -1.0, 0.75), "cells outside `where` do not exist",
          where=(True, False, True))  # fmt: skip

_all_pairs("one cell", (3.0,), (7.0,), 0.0, "one cell holds all the mass")
_all_pairs("empty row", (), (), "nan", "no cells, no mass")
_all_pairs("no mass in p", (0.0, 0.0), (0.5, 0.5), "nan", "a row that sums to 0 has no distribution")
_all_pairs("no mass in q", (0.5, 0.5), (0.0, 0.0), "nan", "a row that sums to 0 has no distribution")
_all_pairs("no mass in both", (0.0, 0.0), (0.0, 0.0), "nan", "a row that sums to 0 has no distribution")
_all_pairs("one empty cell", (0.0,), (1.0,), "nan", "a row that sums to 0 has no distribution")
_all_pairs("all left out", (1.0, 2.0), (1.0, 2.0), "nan", "no cells, no mass", where=(False, False))
_all_pairs("negative p", (-0.5, 1.5), (0.5, 0.5), "nan", "a negative cell is no mass")
_all_pairs("negative q", (0.5, 0.5), (-0.5, 1.5), "nan", "a negative cell is no mass")
_all_pairs("negative q at zero", (0.0, 1.0), (-0.5, 1.5), "nan", "a negative cell is no mass, also where p is 0")
_all_pairs("negative rows", (-1.0, -1.0), (-1.0, -3.0), "nan", "a negative cell is no mass, whatever its row sums to")
_all_pairs("nan in p", (NAN, 1.0), (0.5, 0.5), "nan", "NaN stays NaN")
_all_pairs("nan in q", (0.5, 0.5), (NAN, 0.5), "nan", "NaN stays NaN")
_all_pairs("nan in q at zero", (0.0, 1.0), (NAN, 0.5), "nan", "NaN stays NaN, also where p is 0")
_all_pairs("nan beside inf", (0.5, NAN), (0.0, 1.0), "nan", "NaN comes before an infinite divergence")
_all_pairs("inf in p", (INF, 1.0), (0.5, 0.5), "nan", "an infinite mass has no distribution")
_all_pairs("inf in q", (0.5, 0.5), (INF, 1.0), "nan", "an infinite mass has no distribution")
_all_pairs("inf in both", (INF, 1.0), (INF, 1.0), "nan", "an infinite mass has no distribution")
_all_pairs("minus inf in p", (-INF, 1.0), (0.5, 0.5), "nan", "a negative cell is no mass")

for _function in ("kl_divergence", "js_divergence", "jeffreys_divergence"):
    _add(_function, "equal rows", (0.25, 0.75), (0.25, 0.75), 0.0, "exactly 0 for equal rows")
    _add(_function, "proportional rows", (1.0, 2.0, 4.0), (2.0, 4.0, 8.0), 0.0, "each row is divided by its own sum")
_add("cross_entropy", "equal rows", (0.5, 0.5), (0.5, 0.5), LN2, "the entropy of p", "ln 2")
for _function, _values in {
    "kl_divergence": (LN2, "inf"), "cross_entropy": (LN2, "inf"), "jeffreys_divergence": ("inf", "inf"),
}.items():  # fmt: skip
    _add(_function, "zero in p", (0.0, 1.0), (0.5, 0.5), _values[0], "0·log(0/q) is 0", "ln 2")
    _add(_function, "zero in q", (0.5, 0.5), (0.0, 1.0), _values[1], "mass where q has none")
    _add(_function, "minus zero in q", (0.5, 0.5), (-0.0, 1.0), _values[1], "−0 is 0")
_add("kl_divergence", "smallest q", (1.0, 1.0), (1.0, TINY), 536 * LN2, "p/q may overflow, the result does not",
     "536 ln 2", DOUBLE)  # fmt: skip
_add("cross_entropy", "smallest q", (1.0, 1.0), (1.0, TINY), 537 * LN2, "p/q may overflow, the result does not",
     "537 ln 2", DOUBLE)  # fmt: skip
_add("kl_divergence", "cell that vanishes", (HUGE, TINY), (1.0, 1.0), LN2, "a cell may underflow beside the others",
     "ln 2", DOUBLE)  # fmt: skip
_add("kl_divergence", "cell that vanishes and is missed", (HUGE, TINY), (1.0, 0.0), "inf",
     "mass where q has none, however little", "", DOUBLE)  # fmt: skip
_add("kl_divergence", "base two", (0.0, 1.0), (0.5, 0.5), 1.0, "bits", base=2)
_add("js_divergence", "disjoint rows", (1.0, 0.0), (0.0, 1.0), LN2, "the most there is", "ln 2")
_add("js_divergence", "disjoint rows in bits", (1.0, 0.0), (0.0, 1.0), 1.0, "the most there is", base=2)
_add("js_divergence", "disjoint rows weighed", (1.0, 0.0), (0.0, 1.0), 0.25 * math.log(4) + 0.75 * math.log(4 / 3),
     "the entropy of the weights", "¼ ln 4 + ¾ ln 4/3", weight=0.25)  # fmt: skip
_add("js_divergence", "all weight on q", (1.0, 0.0), (0.0, 1.0), 0.0, "the mixture is q", weight=0.0)
_add("js_divergence", "all weight on p", (1.0, 0.0), (0.0, 1.0), 0.0, "the mixture is p", weight=1.0)
_add("js_divergence", "smallest cell", (0.0, 1.0), (TINY, 1.0), 0.0, "finite, and too small for a float", "", DOUBLE)

# --- rows of probabilities, as they are ---------------------------------------------------------------------


def _plain(function: str, name: str, p: Any, q: Any, expected: float | str, rule: str, formula: str = "",
           dtypes: tuple[str, ...] = ALL, **others: Any) -> None:  # fmt: skip
    _add(function, name, p, q, expected, rule, formula, dtypes, normalize=False, **others)


for _function in _PAIRS:
    _plain(_function, "empty row", (), (), 0.0, "an empty sum is 0")
    _plain(_function, "zero rows", (0.0, 0.0), (0.0, 0.0), 0.0, "0·log(0/0) is 0")
    _plain(_function, "all left out", (1.0, 2.0), (3.0, 4.0), 0.0, "an empty sum is 0", where=(False, False))
    _plain(_function, "negative p", (-0.5, 1.0), (0.5, 0.5), "nan", "a negative cell is no mass")
    _plain(_function, "negative q", (0.5, 0.5), (-0.5, 1.0), "nan", "a negative cell is no mass")
    _plain(_function, "negative q at zero", (0.0,), (-1.0,), "nan", "a negative cell is no mass, also where p is 0")
    _plain(_function, "nan", (NAN, 0.5), (0.5, 0.5), "nan", "NaN stays NaN")
    _plain(_function, "nan at zero", (0.0,), (NAN,), "nan", "NaN stays NaN, also where p is 0")
    _plain(_function, "nan beside inf", (0.5, NAN), (0.0, 1.0), "nan", "NaN comes before an infinite divergence")
for _function in ("kl_divergence", "cross_entropy"):
    _plain(_function, "zero row p", (0.0, 0.0), (0.5, 0.5), 0.0, "0·log(0/q) is 0")
    _plain(_function, "zero and inf", (0.0,), (INF,), 0.0, "0·log(0/q) is 0, also where q is infinite")
    _plain(_function, "zero in q", (0.5,), (0.0,), "inf", "mass where q has none")
    _plain(_function, "inf q", (1.0,), (INF,), "-inf", "the sum of the cells' values")
    _plain(_function, "inf against minus inf", (1.0, 1.0), (INF, 0.0), "nan", "inf − inf has no value")
_plain("kl_divergence", "inf p", (INF,), (1.0,), "inf", "the sum of the cells' values")
_plain("kl_divergence", "inf p and no q", (INF,), (0.0,), "inf", "mass where q has none")
_plain("kl_divergence", "both inf", (INF,), (INF,), "nan", "inf/inf has no value")
_plain("kl_divergence", "may be negative", (0.5,), (1.0,), -0.5 * LN2, "the plain sum of p·log(p/q)", "−½ ln 2")
_plain("kl_divergence", "one cell", (2.0,), (1.0,), 2 * LN2, "the plain sum of p·log(p/q)", "2 ln 2")
_plain("kl_divergence", "equal rows", (3.0, 5.0), (3.0, 5.0), 0.0, "exactly 0 for equal rows")
_plain("kl_divergence", "large", (HUGE,), (HUGE / 2,), HUGE * LN2, "no overflow on the way", "2¹⁰²³ ln 2", DOUBLE)
_plain("kl_divergence", "too large", (HUGE,), (TINY,), "inf", "the exact value is above the largest float", "", DOUBLE)
_plain("cross_entropy", "one cell", (2.0,), (0.5,), 2 * LN2, "−Σ p·log q", "2 ln 2")
_plain("js_divergence", "zero row p", (0.0,), (1.0,), 0.5 * LN2, "half of KL(q‖m), m = q/2", "½ ln 2")
_plain("js_divergence", "inf p", (INF,), (1.0,), "nan", "inf/inf has no value")
_plain("jeffreys_divergence", "zero in q", (0.5,), (0.0,), "inf", "mass where the other has none")
_plain("jeffreys_divergence", "zero in p", (0.0,), (0.5,), "inf", "mass where the other has none")
_plain("jeffreys_divergence", "one cell", (2.0,), (1.0,), LN2, "Σ (p − q)·log(p/q)", "ln 2")
_plain("jeffreys_divergence", "both inf", (INF,), (INF,), "nan", "inf/inf has no value")

# --- rows of log-probabilities and of logits ----------------------------------------------------------------

_LSE = math.log1p(math.exp(-1))  # of (0, −1)
_KL_LOGS = _LSE + 0.5 - LN2  # of (0, 0) and (0, −1)
_REVERSE_LOGS = LN2 - _LSE - math.exp(-1) / (1 + math.exp(-1))
_Q = (1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1)))
_JS_LOGS = 0.5 * sum(
    0.5 * math.log(0.5 / (0.25 + q / 2)) + q * math.log(q / (0.25 + q / 2)) for q in _Q
)  # fmt: skip
_LOGS = {
    "kl_divergence": (_KL_LOGS, "ln(1 + 1/e) + ½ − ln 2"),
    "cross_entropy": (_LSE + 0.5, "ln(1 + 1/e) + ½"),
    "js_divergence": (_JS_LOGS, "JS of (½, ½) and (e, 1)/(1 + e)"),
    "jeffreys_divergence": (_KL_LOGS + _REVERSE_LOGS, "½ − 1/(1 + e)"),
}


def _logs(name: str, p: Any, q: Any, rule: str, dtypes: tuple[str, ...] = ALL, **arguments: Any) -> None:
    """Rows that stand for (0, 0) and (0, −1), whatever else they hold."""
    for function, (value, formula) in _LOGS.items():
        for kind in ("log_prob", "logit"):
            _add(function, name, p, q, value, rule, formula, dtypes, kind=kind, **arguments)


def _all_logs(name: str, p: Any, q: Any, expected: float | str, rule: str, **arguments: Any) -> None:
    for kind in ("log_prob", "logit"):
        _all_pairs(name, p, q, expected, rule, kind=kind, **arguments)


_logs("rows", (0.0, 0.0), (0.0, -1.0), "the log-sum-exp is subtracted")
_logs("shifted", (64.0, 64.0), (-63.0, -64.0), "a constant added to a row changes nothing")
_logs("minus inf in both", (0.0, -INF, 0.0), (0.0, -INF, -1.0), "−inf is a probability of 0; 0·log(0/0) is 0")
_logs("cell left out", (0.0, NAN, 0.0), (0.0, INF, -1.0), "cells outside `where` do not exist",
      where=(True, False, True))  # fmt: skip
for _function, (_value, _formula) in _LOGS.items():
    _add(_function, "temperature", (0.0, 0.0), (0.0, -2.0), _value, "logits are divided by the temperature", _formula,
         kind="logit", temperature=2.0)  # fmt: skip
    _add(_function, "normalize is not asked", (0.0, 0.0), (0.0, -1.0), _value, "logits are always normalised", _formula,
         kind="logit", normalize=False)  # fmt: skip
_all_logs("one cell", (3.0,), (-7.0,), 0.0, "one cell holds all the mass")
_all_logs("empty row", (), (), "nan", "no cells, no mass")
_all_logs("no mass in p", (-INF, -INF), (0.0, 0.0), "nan", "a row of −inf alone has no mass")
_all_logs("no mass in q", (0.0, 0.0), (-INF, -INF), "nan", "a row of −inf alone has no mass")
_all_logs("no mass in both", (-INF,), (-INF,), "nan", "a row of −inf alone has no mass")
_all_logs("plus inf in p", (INF, 0.0), (0.0, 0.0), "nan", "an infinite mass has no distribution")
_all_logs("plus inf in q", (0.0, 0.0), (INF, 0.0), "nan", "an infinite mass has no distribution")
_all_logs("plus inf in both", (INF, 0.0), (INF, 0.0), "nan", "an infinite mass has no distribution")
_all_logs("nan in p", (NAN, 0.0), (0.0, 0.0), "nan", "NaN stays NaN")
_all_logs("nan in q at zero", (-INF, 0.0), (NAN, 0.0), "nan", "NaN stays NaN, also where p is 0")
for _kind in ("log_prob", "logit"):
    _add("kl_divergence", "minus inf in p", (-INF, 0.0), (0.0, 0.0), LN2, "−inf is a probability of 0", "ln 2",
         kind=_kind)  # fmt: skip
    _add("kl_divergence", "minus inf in q", (0.0, 0.0), (-INF, 0.0), "inf", "mass where q has none", kind=_kind)
    _add("jeffreys_divergence", "minus inf in p", (-INF, 0.0), (0.0, 0.0), "inf", "mass where p has none", kind=_kind)
    _add("js_divergence", "disjoint rows", (-INF, 0.0), (0.0, -INF), LN2, "the most there is", "ln 2", kind=_kind)
    _add("kl_divergence", "far below", (0.0, -2000.0), (0.0, 0.0), LN2, "exp may underflow beside the others", "ln 2",
         kind=_kind)  # fmt: skip
    _add("kl_divergence", "far below and missed", (0.0, -2000.0), (0.0, -INF), "inf",
         "mass where q has none, however little", kind=_kind)  # fmt: skip
    _add("kl_divergence", "equal rows", (0.5, -3.0), (0.5, -3.0), 0.0, "exactly 0 for equal rows", kind=_kind)
    _add("kl_divergence", "largest gap", (0.0, 0.0), (0.0, -HUGE), HUGE / 2, "no overflow on the way", "2¹⁰²²", DOUBLE,
         kind=_kind)  # fmt: skip
    _add("kl_divergence", "opposite ends", (HUGE, HUGE), (-HUGE, -HUGE), 0.0, "no overflow on the way", "", DOUBLE,
         kind=_kind)  # fmt: skip
for _name, _p, _q, _expected, _rule in (
    ("empty row", (), (), 0.0, "an empty sum is 0"),
    ("all minus inf", (-INF, -INF), (-INF, -INF), 0.0, "0·log(0/0) is 0"),
    ("minus inf in p", (-INF,), (0.0,), 0.0, "0·log(0/q) is 0"),
    ("minus inf in q", (0.0,), (-INF,), "inf", "mass where q has none"),
    ("equal rows", (0.5, -3.0), (0.5, -3.0), 0.0, "exactly 0 for equal rows"),
    ("one cell", (0.0,), (-1.0,), 1.0, "Σ eᵃ·(a − b)"),
    ("may be negative", (0.0,), (1.0,), -1.0, "Σ eᵃ·(a − b)"),
    ("plus inf in p", (INF,), (0.0,), "nan", "no log-probability"),
    ("plus inf in q", (0.0,), (INF,), "nan", "no log-probability"),
    ("plus inf in q at zero", (-INF,), (INF,), "nan", "no log-probability, also where p is 0"),
    ("nan", (NAN,), (0.0,), "nan", "NaN stays NaN"),
):
    _plain("kl_divergence", _name, _p, _q, _expected, _rule, kind="log_prob")

# --- entropy ------------------------------------------------------------------------------------------------

for _name, _p, _expected, _rule, _formula in (
    ("uniform", (0.5, 0.5), LN2, "the definition", "ln 2"),
    ("counts", (3.0, 3.0, 3.0, 3.0), math.log(4), "the row is divided by its sum", "ln 4"),
    ("zero", (0.5, 0.0, 0.5), LN2, "0·log 0 is 0", "ln 2"),
    ("one cell", (3.0,), 0.0, "one cell holds all the mass", ""),
    ("one cell with mass", (0.0, 3.0), 0.0, "one cell holds all the mass", ""),
    ("empty row", (), "nan", "no cells, no mass", ""),
    ("no mass", (0.0, 0.0), "nan", "a row that sums to 0 has no distribution", ""),
    ("negative", (-0.5, 1.5), "nan", "a negative cell is no mass", ""),
    ("nan", (NAN, 1.0), "nan", "NaN stays NaN", ""),
    ("inf", (INF, 1.0), "nan", "an infinite mass has no distribution", ""),
):
    _add("entropy", _name, _p, None, _expected, _rule, _formula)
_add("entropy", "sum overflows", (HUGE, HUGE), None, LN2, "sums may overflow, the result does not", "ln 2", DOUBLE)
_add("entropy", "subnormal", (TINY, TINY), None, LN2, "subnormal cells count", "ln 2", DOUBLE)
for _name, _p, _expected, _rule in (
    ("empty row", (), 0.0, "an empty sum is 0"),
    ("zero row", (0.0, 0.0), 0.0, "0·log 0 is 0"),
    ("one cell", (2.0,), -2 * LN2, "−Σ p·log p"),
    ("inf", (INF,), "-inf", "the sum of the cells' values"),
    ("negative", (-1.0,), "nan", "a negative cell is no mass"),
    ("nan", (NAN,), "nan", "NaN stays NaN"),
):
    _plain("entropy", _name, _p, None, _expected, _rule, "−2 ln 2" if _name == "one cell" else "")
for _kind in ("log_prob", "logit"):
    _add("entropy", "uniform", (-3.0, -3.0), None, LN2, "the log-sum-exp is subtracted", "ln 2", kind=_kind)
    _add("entropy", "minus inf", (0.0, -INF, 0.0), None, LN2, "−inf is a probability of 0", "ln 2", kind=_kind)
    _add("entropy", "no mass", (-INF, -INF), None, "nan", "a row of −inf alone has no mass", kind=_kind)
    _add("entropy", "plus inf", (INF, 0.0), None, "nan", "an infinite mass has no distribution", kind=_kind)
    _add("entropy", "nan", (NAN, 0.0), None, "nan", "NaN stays NaN", kind=_kind)
    _add("entropy", "empty row", (), None, "nan", "no cells, no mass", kind=_kind)


# --- the table of the docs ----------------------------------------------------------------------------------

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _number(value: float) -> str:
    if math.isfinite(value) and value != 0:
        mantissa, exponent = math.frexp(abs(value))
        if abs(exponent) > 20 and mantissa in (0.5, 0.75):
            times, power = ("", exponent - 1) if mantissa == 0.5 else ("3·", exponent - 2)
            return f"{'−' if value < 0 else ''}{times}2{str(power).translate(_SUPERSCRIPT)}"
    return f"{value:g}".replace("-", "−")


def _cells(cells: Any) -> str:
    if cells is None:
        return ""
    if isinstance(cells, tuple):
        return f"({', '.join(map(_number, cells))})"
    return _number(cells)


def markdown_table(functions: tuple[str, ...] | None = None) -> str:
    """The list as a Markdown table, of all functions or of some."""
    lines = ["| function | p | q | arguments | value | rule |", "|---|---|---|---|---|---|"]
    for case in SEMANTICS:
        if functions is not None and case.function not in functions:
            continue
        value = case.expected if isinstance(case.expected, str) else case.formula or _number(case.expected)
        arguments = ", ".join(f"{key}={setting!r}" for key, setting in case.arguments.items())
        columns = [f"`{case.function}`", _cells(case.p), _cells(case.q), arguments and f"`{arguments}`"]
        lines.append(f"| {' | '.join([*columns, value.replace('-', '−'), case.rule])} |")
    return "\n".join(lines) + "\n"
