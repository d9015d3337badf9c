"""KL without a closed form: an integral, a sum, or a mean over draws, each with an estimate of its error."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.registry import common_shape

Result = tuple[float, float]

QUANTILES = (1e-14, 1e-8, 1e-4, 1e-2, 0.1, 0.3)  # where an integral is cut, from both ends
RATIO = 32.0  # of the distances from the middle, or from where the support begins, at the ends of a piece
RELATIVE = 1e-11  # what each piece is integrated to
NEGLIGIBLE = 1e-17  # a piece of a tail that adds less than this is the last
BLOCKS = 1_100  # pieces of a tail: enough to halve a distance down to nothing, or double it up to infinity
GROWTH, GROWING = 1.2, 60  # so many pieces of a tail, each so much larger than the one before: the integral diverges
OUTSIDE = 1e-20  # the mass of p that a sum may leave out at either end
TERMS = 20_000_000  # of a sum
WARN = 1e-6  # an integral with a larger relative error says so
EPSILON = float(np.finfo(np.float64).eps)
NEAR = 1e-9  # of the size of an end that is not 0: closer to it a number does not tell its distance to seven digits


def quadrature(p: Distribution, q: Distribution) -> Result:
    """Integrate p*log(p/q) - p + q, which is nowhere negative, and add the mass that q has where p has none."""
    f, g, span, beyond = _prepare(p, q, discrete=False)
    if beyond:
        return math.inf, 0.0
    low, high = span
    cuts = _finer(_cuts(f, g, low, high), low if low > -math.inf else float(f.median()))
    parts = [_integral(f, g, a, b) for a, b in itertools.pairwise(cuts)]
    parts += _tail(f, g, cuts[0], low) + _tail(f, g, cuts[-1], high)
    value = math.fsum(x for x, _ in parts) + _outside(g, low, high)
    if math.isinf(value):
        return math.inf, 0.0
    error = math.fsum(e for _, e in parts) + (8.0 * EPSILON + _wrong_mass(f, cuts)) * _spread(value)
    if not error <= WARN * value:
        warnings.warn(f"KL({p!r} || {q!r}): the integral is {value:.6g} +- {error:.1g}", RuntimeWarning, stacklevel=6)
    return value, error


def _wrong_mass(f: Any, cuts: list[float]) -> float:
    """By how much the density misses the mass that the distribution has between the cuts: that is its rounding."""
    found = math.fsum(_over(lambda x: float(f.pdf(x)), a, b)[0] for a, b in itertools.pairwise(cuts))
    return abs(found - (1.0 - float(f.cdf(cuts[0])) - float(f.sf(cuts[-1]))))


def total(p: Distribution, q: Distribution) -> Result:
    """Sum over the integers; what is left out at the ends is bounded by the mass of p there."""
    f, g, span, beyond = _prepare(p, q, discrete=True)
    if beyond:
        return math.inf, 0.0
    first, last = _range(f, *span)
    if last - first > TERMS:
        raise ValueError(f"p: {last - first:,} integers hold its mass; a sum takes {TERMS:,} at most")
    parts, ends = [], 0.0
    for start in range(first, last + 1, 1 << 16):
        k = np.arange(start, min(start + (1 << 16), last + 1))
        cells, delta = _cells(f.logpmf(k), g.logpmf(k))
        parts.append(float(cells.sum()))
        ends = max(ends, abs(delta[0]), abs(delta[-1])) if np.isfinite(delta[[0, -1]]).all() else ends
    value = math.fsum(parts)
    value += float(g.cdf(first - 1) - f.cdf(first - 1)) + float(g.sf(last) - f.sf(last))
    rounding = 4.0 * EPSILON * (abs(last) + 1.0) * math.log(abs(last) + 2.0)  # densities are of logarithms of that size
    return value, 4.0 * OUTSIDE * ends + rounding * _spread(value)


def _spread(value: float) -> float:
    """What an error of 1 in every logarithm of a density may do to a divergence: sum |p - q| + the divergence."""
    return min(2.0, math.sqrt(2.0 * max(value, 0.0))) + abs(value)


def _range(f: Any, low: float, high: float) -> tuple[int, int]:
    """The integers beyond which p has next to no mass. SciPy's quantiles end where 1 - u is 1."""
    middle = float(f.median())
    first = max(low, float(f.ppf(OUTSIDE)) - 1.0)
    last = max(float(f.isf(1e-14)), middle + 1.0)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError("p: SciPy does not find the quantiles between which it has its mass")
    while last < high and f.sf(last) > OUTSIDE:
        last += last - middle
    return int(first), int(min(last, high))


def monte_carlo(p: Distribution, q: Distribution, samples: int, rng: np.random.Generator) -> Result:
    """The mean of log(p/q) over draws from p, and its standard error."""
    if p.support.discrete != q.support.discrete:
        raise ValueError("p, q: one is discrete and one continuous; neither has a density for the other")
    f, g = _frozen(p, "p"), _frozen(q, "q")
    if _beyond(f, p, q):
        return math.inf, 0.0
    draws = f.rvs(size=samples, random_state=rng)
    name = "logpmf" if p.support.discrete else "logpdf"
    with np.errstate(divide="ignore"):
        ratios = getattr(f, name)(draws) - getattr(g, name)(draws)
    value = float(np.mean(ratios))
    error = float(np.std(ratios, ddof=1) / math.sqrt(samples)) if math.isfinite(value) else 0.0
    return value, error


def each(
    method: Callable[[Distribution, Distribution], Result], p: Distribution, q: Distribution
) -> tuple[np.ndarray, np.ndarray]:
    """A method on every pair of two broadcast batches: the values, and their errors."""
    shape = common_shape(p, q)
    values, errors = np.empty(shape), np.empty(shape)
    for at in np.ndindex(shape):
        values[at], errors[at] = method(p.one(at, shape), q.one(at, shape))
    return values, errors


def _frozen(one: Distribution, name: str) -> Any:
    if one.circular:
        raise NotImplementedError(f"{name}: {type(one).__name__} lies on a circle; only a closed form serves it")
    if one.event_shape:
        raise NotImplementedError(f"{name}: {type(one).__name__} is not over numbers; only a closed form serves it")
    from klnumba.distributions import densities

    own = densities.frozen(one)
    if own is not None:
        return own
    try:
        return one.to_scipy()
    except (NotImplementedError, AttributeError) as reason:
        raise NotImplementedError(f"{name}: no density, {reason}") from None


def _prepare(p: Distribution, q: Distribution, *, discrete: bool) -> tuple[Any, Any, tuple[float, float], bool]:
    """The densities, where p has its mass, and whether some of it lies where q has none."""
    for name, one in (("p", p), ("q", q)):
        if one.event_shape == () and one.support.discrete != discrete:
            kinds = ("continuous", "discrete")
            method = ("quadrature", "sum")[discrete]
            raise ValueError(f"{name}: method {method!r} is for {kinds[discrete]} distributions")
    f, g = _frozen(p, "p"), _frozen(q, "q")
    return f, g, (float(p.support.low), float(p.support.high)), _beyond(f, p, q)


def _beyond(f: Any, p: Distribution, q: Distribution) -> bool:
    """Whether p has mass where q has none."""
    before, after = float(q.support.low), float(q.support.high)
    with np.errstate(divide="ignore"):
        left = p.support.low < before and _log_mass(f, before - 1.0, f.logcdf, before, p.support.discrete) > -math.inf
        right = p.support.high > after and _log_mass(f, after + 1.0, f.logsf, after, p.support.discrete) > -math.inf
    return bool(left or right)


def _log_mass(f: Any, nearest: float, beyond: Callable[[float], float], end: float, discrete: bool) -> float:
    """The logarithm of the mass beyond an end; on integers that of the nearest, since the whole may underflow."""
    return float(f.logpmf(nearest) if discrete else beyond(end))


def _outside(g: Any, low: float, high: float) -> float:
    """The mass of q beyond the ends of p."""
    return float(g.cdf(low) if low > -math.inf else 0.0) + float(g.sf(high) if high < math.inf else 0.0)


def _cells(log_p: Any, log_q: Any) -> tuple[np.ndarray, np.ndarray]:
    """p*log(p/q) - p + q and log(p/q), from logarithms."""
    log_p, log_q = np.asarray(log_p, np.float64), np.asarray(log_q, np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        delta = log_p - log_q
        cells = np.exp(log_p) * (delta + np.expm1(-delta))
        far = delta < -1.0  # exp(log_p) may be zero where exp(-delta) is large
        cells = np.where(far, np.exp(log_q) + np.exp(log_p) * (delta - 1.0), cells)
    return np.where(log_p == -math.inf, np.exp(log_q), cells), delta


def _cuts(f: Any, g: Any, low: float, high: float) -> list[float]:
    """The places between which the density is smooth enough for one integral each."""
    found: set[float] = set()
    for one in (f, g):
        for u in QUANTILES:
            found |= {float(one.ppf(u)), float(one.isf(u))}
    first = low + NEAR * abs(low) if low > -math.inf else low
    last = high - NEAR * abs(high) if high < math.inf else high
    inside = sorted(x for x in found if first < x < last) or [0.5 * (low + high)]
    kept = [inside[0]]
    for x in inside[1:]:
        if x - kept[-1] > 4.0 * EPSILON * max(abs(x), abs(kept[-1])):
            kept.append(x)
    return kept


def _finer(cuts: list[float], origin: float) -> list[float]:
    """Cuts so close that no distance from `origin` grows more than `RATIO` times from one to the next."""
    found = cuts[:1]
    for a, b in itertools.pairwise(cuts):
        near, far = sorted((abs(a - origin), abs(b - origin)))
        if (a - origin) * (b - origin) > 0.0 and far > RATIO * near:
            count = math.ceil(math.log(far / near) / math.log(RATIO))
            inner = (origin + (a - origin) * abs((b - origin) / (a - origin)) ** (i / count) for i in range(1, count))
            found += [x for x in inner if a < x < b]
        found.append(b)
    return found


def _integral(f: Any, g: Any, a: float, b: float) -> Result:
    """Of the cells over one piece."""
    return _over(lambda x: float(_cells(f.logpdf(x), g.logpdf(x))[0]), a, b)


def _over(cell: Callable[[float], float], a: float, b: float) -> Result:
    """The piece is scaled to the unit interval, because the integrator does not like lengths like 1e-200."""
    from scipy import integrate

    width = b - a
    value, error = integrate.quad(
        lambda u: cell(a + width * u) * width, 0.0, 1.0, epsabs=0.0, epsrel=RELATIVE, limit=100, full_output=1
    )[:2]
    return float(value), float(error)


def _tail(f: Any, g: Any, start: float, end: float) -> list[Result]:
    """From a far quantile to the end of the support, in pieces that halve the way to it or double the distance."""
    found: list[Result] = []
    growing = 0
    for a, b in _steps(f, start, end):
        found.append(_integral(f, g, *sorted((a, b))))
        value = found[-1][0]
        growing = growing + 1 if len(found) > 1 and value >= GROWTH * found[-2][0] > 0.0 else 0
        if growing >= GROWING:
            return [(math.inf, 0.0)]
        if math.isinf(value):  # a density left the range of numbers: what is left is known by its masses alone
            return [*found[:-1], _rest(f, g, a, end) if math.isfinite(end) else (math.nan, math.inf)]
        if value <= NEGLIGIBLE * math.fsum(x for x, _ in found) or value < 1e-300:
            return found
        start = b
    return [*found, _rest(f, g, start, end)]


def _rest(f: Any, g: Any, start: float, end: float) -> Result:
    """What lies between the last number that can be told from the end and the end, where masses go as powers.

    With the masses p and q of the rest, proportional to the distance to the powers a and c, it is the cell of the
    masses and p times the excess of c/a.
    """
    name = "sf" if end > start else "cdf"
    p, q = float(getattr(f, name)(start)), float(getattr(g, name)(start) - getattr(g, name)(end))
    if not p > 0.0 or not q > 0.0:
        return q, p
    cell = float(_cells(math.log(p), math.log(q))[0])
    powers = [[_power(one, name, start + i * (start - end), end) for i in range(2)] for one in (f, g)]
    if math.isinf(end) or not all(0.0 < x < math.inf for both in powers for x in both):
        return cell, p
    t = (powers[1][0] - powers[0][0]) / powers[0][0]
    wrong = math.fsum(abs(further - near) / near for near, further in powers) + 8.0 * EPSILON
    return cell + p * (t - math.log1p(t)), (p * (abs(math.log(p / q)) + 1.0 + abs(t)) + q) * wrong


def _power(one: Any, name: str, x: float, end: float) -> float:
    """Of the distance to the end, to which the mass beyond x is proportional."""
    with np.errstate(all="ignore"):
        return float(abs(x - end) * one.pdf(x) / getattr(one, name)(x))


def _steps(f: Any, start: float, end: float) -> Iterator[tuple[float, float]]:
    if math.isinf(end):
        width = math.copysign(max(abs(start - float(f.median())), abs(start) * 1e-3, 1e-300), end)
        for _ in range(BLOCKS):
            if math.isinf(start + width):
                return
            yield start, start + width
            start, width = start + width, 2.0 * width
    else:
        for _ in range(BLOCKS):
            middle = end + 0.5 * (start - end)
            if abs(middle - end) <= max(NEAR * abs(end), 1e-290):
                return
            yield start, middle
            start = middle
