"""The truth: every array function once more, one cell at a time, with mpmath and 80 digits.

Nothing here is fast or clever. A row is a sequence of floating-point numbers; each is an exact rational, so what comes
out is the value that the given bits stand for, correct to far more digits than any dtype of the package holds.
The rules for zeros, infinities, NaN and negative cells are those of the semantics table (`semantics.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from mpmath import mp, mpf

DIGITS = 80

# name: (bits of the significand, exponent of the smallest subnormal, exponent of the first power of two too large)
FORMATS = {
    "float64": (53, -1074, 1024),
    "float32": (24, -149, 128),
    "float16": (11, -24, 16),
    "bfloat16": (8, -133, 128),
}

NAN = mpf("nan")
INF = mpf("inf")


def _precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run `function` with `DIGITS` digits."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with mp.workdps(DIGITS):
            return function(*args, **kwargs)

    return run


def exact(value: Any) -> mpf:
    """The number that a float of any format stands for."""
    return mpf(float(value))


@_precise
def ulp_error(result: Any, truth: mpf, dtype: str = "float64", scale: mpf | None = None) -> float:
    """Distance between a result and the truth, in units of the last place of `dtype` at the truth.

    NaN agrees with NaN alone. An infinite result agrees with an infinite truth, or one too large for the dtype.
    With `scale`, the unit is taken there if that is larger: for sums whose terms have both signs.
    """
    bits, smallest, overflow = FORMATS[dtype]
    got = float(result)
    if mp.isnan(truth) or math.isnan(got):
        return 0.0 if mp.isnan(truth) and math.isnan(got) else math.inf
    if math.isinf(got) or mp.isinf(truth):
        edge = mpf(2) ** overflow - mpf(2) ** (overflow - bits - 1)
        same = abs(truth) >= edge and (truth > 0) == (got > 0) and math.isinf(got)
        return 0.0 if same else math.inf
    at = abs(truth) if scale is None else max(abs(truth), scale)
    _, exponent = mp.frexp(at)
    unit = mpf(2) ** (smallest if at == 0 else max(exponent - bits, smallest))
    return float(abs(mpf(got) - truth) / unit)


class Row:
    """One row as weights and their logs, or invalid."""

    def __init__(self, weights: list[mpf], logs: list[mpf], valid: bool = True) -> None:
        self.weights, self.logs, self.valid = weights, logs, valid


INVALID = Row([], [], valid=False)


def _log(value: mpf) -> mpf:
    return -INF if value == 0 else mp.log(value)


def _probabilities(cells: Sequence[Any], normalize: bool) -> Row:
    values = [exact(cell) for cell in cells]
    if any(mp.isnan(value) or value < 0 for value in values):
        return INVALID
    if normalize:
        total = mp.fsum(values)
        if total == 0 or mp.isinf(total):
            return INVALID
        values = [value / total for value in values]
    return Row(values, [_log(value) for value in values])


def _log_probabilities(cells: Sequence[Any], normalize: bool, temperature: float) -> Row:
    logs = [exact(cell) / exact(temperature) for cell in cells]
    if any(mp.isnan(value) or value == INF for value in logs):
        return INVALID
    if normalize:
        top = max(logs, default=-INF)
        if top == -INF:
            return INVALID
        logs = [value - top for value in logs]
        total = mp.log(mp.fsum(mp.exp(value) for value in logs))
        logs = [value - total for value in logs]
    return Row([mp.exp(value) for value in logs], logs)


def row(
    cells: Sequence[Any], kind: str = "prob", normalize: bool = True, temperature: float = 1.0, where: Any = None
) -> Row:
    """Read one row: what it weighs, cell by cell."""
    if where is not None:
        cells = [cell for cell, inside in zip(cells, where, strict=True) if inside]
    if kind == "prob":
        return _probabilities(cells, normalize)
    return _log_probabilities(cells, normalize or kind == "logit", temperature if kind == "logit" else 1.0)


def _log_ratio_sum(weights: list[mpf], logs: list[mpf], others: list[mpf]) -> mpf:
    """Σ w·(log w − log other), with 0·anything = 0."""
    return mp.fsum(w * (a - b) for w, a, b in zip(weights, logs, others, strict=True) if w != 0)


def _kl(p: Row, q: Row) -> mpf:
    return _log_ratio_sum(p.weights, p.logs, q.logs)


def _entropy(p: Row) -> mpf:
    return -mp.fsum(w * a for w, a in zip(p.weights, p.logs, strict=True) if w != 0)


def _cross_entropy(p: Row, q: Row) -> mpf:
    return -mp.fsum(w * b for w, b in zip(p.weights, q.logs, strict=True) if w != 0)


def _js(p: Row, q: Row, weight: float) -> mpf:
    w = exact(weight)
    middle = [w * a + (1 - w) * b for a, b in zip(p.weights, q.weights, strict=True)]
    logs = [_log(value) for value in middle]
    first = w * _log_ratio_sum(p.weights, p.logs, logs) if w != 0 else mpf(0)
    second = (1 - w) * _log_ratio_sum(q.weights, q.logs, logs) if w != 1 else mpf(0)
    return first + second


def _in_base(value: mpf, base: float | None) -> mpf:
    return value if base is None else value / mp.log(exact(base))


def _two_rows(formula: Callable[..., mpf]) -> Callable[..., mpf]:
    """Give a formula over two rows the arguments of the public functions."""

    @_precise
    def truth(
        p: Sequence[Any], q: Sequence[Any], *, kind: str = "prob", normalize: bool = True, base: float | None = None,
        temperature: float = 1.0, where: Any = None, **others: float,
    ) -> mpf:  # fmt: skip
        rows = [row(cells, kind, normalize, temperature, where) for cells in (p, q)]
        if not all(r.valid for r in rows):
            return NAN
        return _in_base(formula(*rows, **others), base)

    return truth


kl_divergence = _two_rows(_kl)
reverse_kl = _two_rows(lambda p, q: _kl(q, p))
cross_entropy = _two_rows(_cross_entropy)
jeffreys_divergence = _two_rows(lambda p, q: _kl(p, q) + _kl(q, p))
js_divergence = _two_rows(lambda p, q, weight=0.5: _js(p, q, weight))
max_log_ratio = _two_rows(
    lambda p, q: max((a - b for w, a, b in zip(p.weights, p.logs, q.logs, strict=True) if w != 0), default=-INF)
)


@_precise
def entropy(
    p: Sequence[Any], *, kind: str = "prob", normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, where: Any = None,
) -> mpf:  # fmt: skip
    """The entropy of one row."""
    only = row(p, kind, normalize, temperature, where)
    return _in_base(_entropy(only), base) if only.valid else NAN


def argmax_agree(p: Sequence[Any], q: Sequence[Any]) -> bool:
    """Whether the largest cells of two rows, the first of equals, stand at the same place."""
    values = [[float(cell) for cell in cells] for cells in (p, q)]
    return values[0].index(max(values[0])) == values[1].index(max(values[1]))


@_precise
def rel_entr(p: Any, q: Any) -> mpf:
    """One cell: p·log(p/q) with the edge values of ``scipy.special.rel_entr``."""
    x, y = exact(p), exact(q)
    if mp.isnan(x) or mp.isnan(y):
        return NAN
    if x > 0 and y > 0:
        return x * (mp.log(x) - mp.log(y))
    return mpf(0) if x == 0 and y >= 0 else INF


@_precise
def generalized_kl(p: Any, q: Any) -> mpf:
    """One cell: p·log(p/q) − p + q, infinite where p or q alone is."""
    x, y = exact(p), exact(q)
    if mp.isnan(x) or mp.isnan(y) or (x == INF and y == INF):
        return NAN
    if x == 0 and y >= 0:
        return y
    if x < 0 or y <= 0 or mp.isinf(x) or mp.isinf(y):
        return INF
    return x * (mp.log(x) - mp.log(y)) - x + y


@_precise
def kl_div(log_q: Any, target: Any, log_target: bool = False) -> mpf:
    """One cell of the loss: t·(log t − log q)."""
    if math.isnan(float(log_q)) or math.isnan(float(target)):
        return NAN
    x, t = exact(log_q), exact(target)
    if log_target:
        return mpf(0) if t == -INF else mp.exp(t) * (t - x)
    if t < 0:
        return NAN
    return mpf(0) if t == 0 else t * (mp.log(t) - x)


def _kl_with_scale(p: Row, q: Row, kind: str) -> tuple[mpf, mpf]:
    """KL is also Σ [p·log(p/q) − p + q] − Σ (q − p): its scale is the lesser of what its terms and those add up to."""
    value = _kl(p, q)
    drift = mp.fsum(q.weights) - mp.fsum(p.weights)
    # Probabilities are given exactly, and so is what they differ by; exponentials are rounded one by one.
    gaps = (abs(b - a) for a, b in zip(p.weights, q.weights, strict=True))
    moved = abs(drift) if kind == "prob" else mp.fsum(gaps)
    both = zip(p.weights, p.logs, q.logs, strict=True)
    return value, min(abs(value + drift) + moved, mp.fsum(abs(w * (a - b)) for w, a, b in both if w != 0))


def _size(weights: list[mpf], logs: list[mpf]) -> mpf:
    return mp.fsum(abs(w * log) for w, log in zip(weights, logs, strict=True) if w != 0)


_WITH_SCALES: dict[str, Callable[[Row, Row, str], tuple[mpf, mpf]]] = {
    "kl_divergence": _kl_with_scale,
    "jeffreys_divergence": lambda p, q, kind: (_kl(p, q) + _kl(q, p), mpf(0)),
    "js_divergence": lambda p, q, kind: (_js(p, q, 0.5), mpf(0)),
    "entropy": lambda p, q, kind: (_entropy(p), _size(p.weights, p.logs)),
    "cross_entropy": lambda p, q, kind: (_cross_entropy(p, q), _size(p.weights, q.logs)),
}


@_precise
def pair_of_rows(
    p: Sequence[Any], q: Sequence[Any], kind: str, normalize: bool, names: Iterable[str] = _WITH_SCALES
) -> dict[str, tuple[mpf, mpf]]:
    """The five divergences of two rows, or those named, each with the scale of its terms; NaN if a row is not valid.

    For plain sums with terms of both signs that is what those add up to, as Σ|p·log q| for the cross-entropy, and else
    0: no more than the result itself.
    """
    first, second = (row(cells, kind, normalize) for cells in (p, q))
    found = {}
    for name in names:
        valid = first.valid and (second.valid or name == "entropy")
        value, scale = _WITH_SCALES[name](first, second, kind) if valid else (NAN, mpf(0))
        found[name] = value, mpf(0) if normalize else scale
    return found


def of_rows(name: str, p: Sequence[Any], q: Sequence[Any], kind: str, normalize: bool) -> tuple[mpf, mpf]:
    """One of them."""
    return pair_of_rows(p, q, kind, normalize, [name])[name]


FUNCTIONS: dict[str, Callable[..., mpf]] = {
    "kl_divergence": kl_divergence,
    "reverse_kl": reverse_kl,
    "cross_entropy": cross_entropy,
    "js_divergence": js_divergence,
    "jeffreys_divergence": jeffreys_divergence,
    "entropy": entropy,
    "rel_entr": rel_entr,
    "generalized_kl": generalized_kl,
    "max_log_ratio": max_log_ratio,
}


def spans_can_be_kept(*rows: Any) -> bool:
    """Whether no row has a positive cell more than 2**1900 below its largest: the documented range of a row."""
    for row in rows:
        positive = row[(row > 0) & np.isfinite(row)]
        if positive.size and np.log2(positive.max()) - np.log2(positive.min()) > 1900:
            return False
    return True
