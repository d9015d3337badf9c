"""KL without a closed form: an integral, a sum, or a mean over draws, each with an estimate of its error."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from klnumba.distributions import charts
from klnumba.distributions.charts import EPSILON, cells, spread
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.registry import common_shape
from klnumba.labels import outside

if TYPE_CHECKING:
    from klnumba.distributions.drawn import Drawn
    from klnumba.distributions.places import Draws

Result = charts.Result

OUTSIDE = 1e-20  # the mass of p that a sum may leave out at either end
TERMS = 20_000_000  # of a sum
MANY = 1e-10  # a mass of q where p has none that may show; SciPy's tails of large counts are 1e-8 off
WARN = 1e-6  # an integral or a sum with a larger relative error says so
MISSED = 0.01  # mass of p without which there is no result
FEW = 1000  # draws at which the effect of rounding is looked at
LOST = 1e-10  # mass that is missing beyond this is no rounding


def quadrature(p: Distribution, q: Distribution) -> Result:
    """Integrate p*log(p/q) - p + q, which is nowhere negative, and add the mass that q has where p has none.

    Two histograms are level between their edges: that integral is a sum.
    """
    from klnumba.distributions import bins

    _check_kind(p, q, discrete=False)
    f, g = _made(lambda one: bins.steps(one, q), p, "p"), _made(lambda one: bins.steps(one, p), q, "q")
    if f is not None and g is not None:
        return _told("sum over bins", p, q, *bins.between(f, g))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of SciPy's quantiles: what they do not find is no cut
        try:
            value, error = _integral(p, q)
        except OverflowError:  # of SciPy's masses
            value, error = math.nan, math.inf
    return _told("integral", p, q, value, error)


def _told(kind: str, p: Distribution, q: Distribution, value: float, error: float) -> Result:
    """Both, and a warning where the error is too large a part."""
    if not error <= WARN * value:
        text = f"KL({p!r} || {q!r}): the {kind} is {value:.6g} +- {error:.1g}"
        warnings.warn(text, RuntimeWarning, stacklevel=outside())
    return value, error


def _integral(p: Distribution, q: Distribution) -> Result:
    from klnumba.distributions.continuous import common_unit, density, escapes, exponents
    from klnumba.distributions.frozen import same

    unit = common_unit(_made(exponents, p, "p") + _made(exponents, q, "q"))
    f, g = (_made(lambda x: density(x, unit), one, name) for one, name in ((p, "p"), (q, "q")))
    if escapes(f, g):
        return math.inf, 0.0
    if same(p, q):
        return 0.0, 0.0
    low, high = (pick(end[i] for end in f.ends) for i, pick in ((0, min), (1, max)))
    origins = [x for one in (f, g) for x in (*one.middles(), *(y for end in one.ends for y in end))]
    marks = np.array(f.marks() + g.marks())
    found = charts.together([charts.over(f, g, chart, marks) for chart in charts.charts(origins, low, high)])
    outside = (g.before(low) if low > -math.inf else 0.0) + (g.after(high) if high < math.inf else 0.0)
    value = found.value + outside
    if math.isinf(value):
        return math.inf, 0.0
    if math.isnan(value) or abs(found.of_p - 1.0) > MISSED:
        return math.nan, math.inf
    return max(value, 0.0), found.error + _misfit(found, outside, max(value, 0.0), f.ends != g.ends)


def _misfit(found: charts.Found, outside: float, value: float, beside: bool) -> float:
    """What it may do that the densities, as integrated, do not have the mass 1: rounding, or mass not found.

    Where q has mass `beside` p's support, what is wrong of that mass is wrong of the value.
    """
    p, q = abs(found.of_p - 1.0), abs(found.of_q + outside - 1.0)
    lost = p * found.apart if p > LOST else 0.0
    of_q = q + EPSILON if beside else q if q > LOST else q * spread(value)
    return (8.0 * EPSILON + p) * spread(value) + lost + of_q


def total(p: Distribution, q: Distribution) -> Result:
    """Sum over the integers; what is left out at the ends is bounded by the mass of p there."""
    with np.errstate(all="ignore"):  # at the ends of the parameters SciPy and logarithms warn on the way
        value, error = _sum(p, q)
    return _told("sum", p, q, value, error)


def _sum(p: Distribution, q: Distribution) -> Result:
    from klnumba.distributions.counted import has_others, on_integers

    _check_kind(p, q, discrete=True)
    f, g = _made(on_integers, p, "p"), _made(on_integers, q, "q")
    if has_others(f, g):
        return math.inf, 0.0
    first, last = _range(f)
    if last - first > TERMS:
        raise ValueError(f"p: {last - first:,} integers hold its mass; a sum takes {TERMS:,} at most")
    parts, inside, ends = [], [], 0.0
    for start in range(first, last + 1, 1 << 16):
        k = np.arange(start, min(start + (1 << 16), last + 1))
        logs = g.log(k)
        found, delta = cells(f.log(k), logs)
        parts.append(float(found.sum()))
        inside.append(float(np.exp(logs).sum()))
        ends = max(ends, abs(delta[0]), abs(delta[-1])) if np.isfinite(delta[[0, -1]]).all() else ends
    value = math.fsum(parts)
    if math.isinf(value):
        return math.inf, 0.0
    rest = g.until(first - 1) + g.after(last)
    value += (rest if rest < MANY else max(1.0 - math.fsum(inside), 0.0)) - f.until(first - 1) - f.after(last)
    rounding = max(f.rounding(last), g.rounding(last)) * spread(value)
    return max(value, 0.0), 4.0 * OUTSIDE * ends + rounding


def _range(f: Any) -> tuple[int, int]:
    """The integers beyond which p has next to no mass. SciPy's quantiles end where 1 - u is 1."""
    low, high = f.ends
    below, middle, above = f.quantiles(OUTSIDE, 1e-14)
    first, last = max(low, below - 1.0), max(above, middle + 1.0)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError("p: SciPy does not find the quantiles between which it has its mass")
    while last < high and f.after(last) > OUTSIDE:
        last += last - middle
    return int(first), int(min(last, high))


def monte_carlo(p: Distribution, q: Distribution, samples: int, rng: np.random.Generator) -> Result:
    """The mean of log(p/q) over draws from p, and its standard error with what the rounding of the draws may do."""
    from klnumba.distributions.drawn import drawable

    f, g = _made(drawable, p, "p"), _made(drawable, q, "q")
    if p.event_shape != q.event_shape:
        raise ValueError(f"p, q: event shapes {p.event_shape} and {q.event_shape} differ")
    if f.discrete != g.discrete:
        raise ValueError("p, q: one is discrete and one continuous; neither has a density for the other")
    if f.over != g.over:
        raise ValueError(f"p, q: one is over {f.over} and the other over {g.over}: neither has a density for the other")
    if f.leaves(g):
        return math.inf, 0.0
    with np.errstate(all="ignore"):
        draws = _tried(lambda: f.rvs(samples, rng), p, "p", "cannot be drawn from")
        ratios = _log_ratios(f, g, draws, p, q)
        value = float(np.mean(ratios))
        error = float(np.std(ratios, ddof=1) / math.sqrt(samples)) + charts.EPSILON * abs(value)
    if not math.isfinite(value) and f.discrete and value > 0.0:
        return math.inf, 0.0
    if not math.isfinite(value):
        return _doubtful(p, q, math.nan, math.inf, "a density is beyond the range of numbers at a draw")
    with np.errstate(all="ignore"):
        rounding = _rounding(f, g, draws, p, q)
    if rounding <= max(error, WARN * abs(value)):
        return value, error + rounding
    return _doubtful(p, q, value, error + rounding, "the draws are rounded to numbers too far apart for p or q")


def _doubtful(p: Distribution, q: Distribution, value: float, error: float, why: str) -> Result:
    """Both, and a warning."""
    text = f"KL({p!r} || {q!r}): the mean over draws is {value:.6g} +- {error:.1g}: {why}"
    warnings.warn(text, RuntimeWarning, stacklevel=outside())
    return value, error


def _log_ratios(f: Drawn, g: Drawn, draws: Draws, p: Distribution, q: Distribution) -> np.ndarray:
    words = "has no density at a draw from p"
    logs = _tried(lambda: f.log(draws), p, "p", words), _tried(lambda: g.log(draws), q, "q", words)
    return np.asarray(np.subtract(*logs))


def _rounding(f: Drawn, g: Drawn, draws: Draws, p: Distribution, q: Distribution) -> float:
    """By how much log(p/q) changes where draws move as far as rounding may have moved them, the mean over some."""
    few = draws.each(lambda x: x[:: max(1, len(x) // FEW)])
    here = _log_ratios(f, g, few, p, q)
    there = [_log_ratios(f, g, few.nudged(by, discrete=f.discrete), p, q) for by in (-1.0, 1.0)]
    changes = np.fmax(*(np.abs(x - here) for x in there))
    known = changes[np.isfinite(changes)]  # beyond an end there is no density
    return float(known.mean()) if known.size else math.inf


def _tried(make: Callable[[], Any], one: Distribution, name: str, words: str) -> Any:
    """What SciPy makes of a distribution; an error names the argument, and what else there is."""
    try:
        return make()
    except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as reason:
        other = "the closed form, or another `method`, may serve"
        raise ValueError(f"{name}: {one!r} {words}: {reason}; {other}") from None


def each(
    method: Callable[[Distribution, Distribution], Result], p: Distribution, q: Distribution
) -> tuple[np.ndarray, np.ndarray]:
    """A method on every pair of two broadcast batches: the values and their errors; NaN of broken parameters."""
    shape = common_shape(p, q)
    values, errors = np.full(shape, np.nan), np.full(shape, np.nan)
    broken = np.isnan(q.nan_where_broken(p.nan_where_broken(np.zeros(shape))))
    for at in np.ndindex(shape):
        if not broken[at]:
            values[at], errors[at] = method(p.one(at, shape), q.one(at, shape))
    return values, errors


def _made(make: Callable[[Distribution], Any], one: Distribution, name: str) -> Any:
    """What a method needs of a distribution; an error names the argument."""
    if one.circular:
        raise NotImplementedError(f"{name}: {one!r} lies on a circle; only a closed form serves it")
    try:
        return make(one)
    except (NotImplementedError, AttributeError) as reason:
        raise NotImplementedError(f"{name}: no density, {reason}") from None
    except ValueError as reason:
        raise ValueError(f"{name}: {reason}") from None


def _check_kind(p: Distribution, q: Distribution, *, discrete: bool) -> None:
    method = ("quadrature", "sum")[discrete]
    for name, one in (("p", p), ("q", q)):
        if one.event_shape:
            kind = type(one).__name__
            raise NotImplementedError(f"{name}: {kind} is not over numbers; method {method!r} does not serve it")
        if one.support.discrete != discrete:
            raise ValueError(f"{name}: method {method!r} is for {('continuous', 'discrete')[discrete]} distributions")
