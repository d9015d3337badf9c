"""The integral behind KL of two densities, over logarithms of the distance from where they begin, end or have a kink.

A density may have much of its mass closer to an end of its support than numbers can tell from it. So a place is given
as an origin and the logarithm t of the distance from it. Beyond the range of numbers the densities of t are taken,
where both are known; else a density is continued by the power that it follows there, if it is seen to follow one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Result = tuple[float, float]

LEAST, MOST = -708.0, 709.0  # the logarithms of the distances that are numbers
FARTHEST = 1e12  # a logarithm of a distance that is none, for densities whose logarithms are known there
WIDER = 1.1  # how much farther a cut is than the last one, there
STEP = 3.0  # of t, from one cut to the next at most
FAINT = 1e-24  # what is below this part of the largest, at the ends of a chart, is left out
RELATIVE = 1e-12  # what each piece is integrated to
LEVELS = 7  # of the integrator: doublings of its nodes
NEAR = 1e-13  # origins closer to each other, relative to their size, are one
TINY = 1e-280  # and so are those closer than this; beyond its inverse is none: there is no room for distances from it
SPAN = 30.0  # of t, over which a power is recognised
SHORT = 1.5  # the same next to where a density stops being a number
BACK = 30  # how many units of t from there to look for a power that rounding does not hide
BENT = 1e-6  # by how much the logarithm of a power may differ from a line over such spans
FLAT = 1e-12  # a tail that falls by a smaller power of the distance does not end
OUT = 1e4  # a logarithm of a density that is larger than minus this does not become -inf by a step
NARROW = 1e-3  # of t, for a slope
TURN = 0.25  # of t, for a change of slope
BISECTIONS = 40
NOTHING = -800.0  # the logarithm of what is nothing even times the largest number
EPSILON = float(np.finfo(np.float64).eps)


class Chart(NamedTuple):
    """The places origin + sign*exp(t), t from -inf to `end`."""

    origin: float
    sign: float
    end: float


class Found(NamedTuple):
    """Of one piece or more: the integral of the cells, and of both densities; errors; the largest log(p/q)."""

    value: float
    error: float
    of_p: float
    of_q: float
    apart: float


NONE = Found(0.0, 0.0, 0.0, 0.0, 0.0)


class Edge(NamedTuple):
    """Where the stretch of numbers ends, over how much of t a power is recognised there, and how well.

    `stops` says whether p is nothing beyond.
    """

    t: float
    span: float
    bend: float
    stops: bool


def charts(origins: list[float], low: float, high: float) -> Iterator[Chart]:
    """What covers everything from low to high: each origin, to half the way to its neighbour or without end."""
    kept = _distinct([x for x in origins if low < x < high and abs(x) * TINY < 1.0], low, high)
    places = [low, *kept, high]
    for i, here in enumerate(places):
        if math.isinf(here):
            continue
        for sign, at in ((-1.0, i - 1), (1.0, i + 1)):
            if 0 <= at < len(places):
                way = abs(places[at] - here)
                yield Chart(here, sign, math.inf if math.isinf(places[at]) else math.log(0.5) + math.log(way))


def _distinct(inside: list[float], low: float, high: float) -> list[float]:
    kept: list[float] = []
    for x in sorted(inside):
        last = kept[-1] if kept else low
        if all(math.isinf(y) or abs(x - y) > max(NEAR * max(abs(x), abs(y)), TINY) for y in (last, high)):
            kept.append(x)
    return kept


def cells(log_p: Any, log_q: Any) -> tuple[Array, Array]:
    """p*log(p/q) - p + q and log(p/q), from logarithms; where p is 0, it is q."""
    log_p, log_q = np.asarray(log_p, np.float64), np.asarray(log_q, np.float64)
    with np.errstate(all="ignore"):
        p, q, delta = np.exp(log_p), np.exp(log_q), log_p - log_q
        found = p * (delta + np.expm1(-delta))
        found = np.where(delta < -1.0, q + p * (delta - 1.0), found)  # p may be zero where exp(-delta) is large
        found = np.where(delta > 2.0, q + np.exp(log_p + np.log(delta - 1.0)), found)  # or where delta is
        return np.where((p == 0.0) & ~np.isfinite(delta), q, found), delta


class Field:
    """Two densities on one chart, each times the distance: per unit of t."""

    def __init__(self, f: Any, g: Any, chart: Chart) -> None:
        self.f, self.g, self.chart = f, g, chart
        self.failed = False  # whether a value was no number
        (a, b), (c, d) = (one.reach(chart.origin, chart.sign) for one in (f, g))
        self.low, self.high = max(a, c), min(b, d, chart.end)

    def logs(self, t: Any) -> tuple[Array, Array]:
        """Of both."""
        origin, sign, _ = self.chart
        with np.errstate(all="ignore"):
            return self.f.logs(origin, sign, t), self.g.logs(origin, sign, t)

    def left(self, t: float, *, outwards: bool) -> float:
        """The mass of q from t to the origin, or to the far end of the chart."""
        origin, sign, end = self.chart
        with np.errstate(over="ignore"):
            here = origin + sign * float(np.exp(t))
        there = (sign * math.inf if math.isinf(end) else origin + sign * math.exp(end)) if outwards else origin
        return max(float(self.g.between(min(here, there), max(here, there))), 0.0)

    def sizes(self, t: Array) -> Array:
        """Rows of the cell, of p and of q."""
        log_p, log_q = self.logs(t)
        good = _valid(log_p, log_q)
        self.failed = self.failed or not bool(good.all())
        with np.errstate(all="ignore"):
            return np.where(good, np.stack([cells(log_p, log_q)[0], np.exp(log_p), np.exp(log_q)]), 0.0)


def _valid(log_p: Array, log_q: Array) -> Array:
    with np.errstate(all="ignore"):
        numbers = ~(np.isnan(log_p) | np.isnan(log_q)) & (log_p < 700.0) & (log_q < 700.0)
        return np.asarray(numbers & ((log_q > -math.inf) | (log_p < NOTHING)))


def over(f: Any, g: Any, chart: Chart, marks: Array) -> Found:
    """All of one chart; `marks` are places where the densities change."""
    field = Field(f, g, chart)
    cuts, before, after = _whole(field, _cuts(field, marks))
    if len(cuts) < 2:
        return NONE  # the densities are nowhere numbers: the masses will tell
    rows = field.sizes(cuts)
    start, stop = _trimmed(rows)
    largest = rows.max(1)
    shown = (rows > FAINT * largest[:, None]).any(0)
    found = [_inside(field, cuts[start : stop + 1], largest)]
    if shown[0]:
        found.append(_beyond(field, cuts[::-1], before))
    if shown[-1] and cuts[-1] < chart.end:
        found.append(_beyond(field, cuts, after))
    return together(found)


def spread(value: float) -> float:
    """What an error of 1 in every logarithm of a density may do to a divergence: sum |p - q| + the divergence."""
    return min(2.0, math.sqrt(2.0 * max(value, 0.0))) + abs(value)


def together(found: list[Found]) -> Found:
    """The integrals of several stretches, added up."""
    columns = list(zip(*(found or [NONE]), strict=True))
    value, error, of_p, of_q = (
        math.fsum(column) if all(map(math.isfinite, column)) else sum(column) for column in columns[:4]
    )
    return Found(value, error, of_p, of_q, max(columns[4]))


def _cuts(field: Field, marks: Array) -> Array:
    """The values of t between which there is one integral each."""
    origin, sign, _ = field.chart
    with np.errstate(all="ignore"):
        at = np.log(sign * (marks - origin))
    low, high = max(field.low, LEAST), min(field.high, MOST)
    steps = np.linspace(low, high, 2 + int((high - low) / STEP)) if high > low else np.array([high])
    farther = WIDER ** np.arange(1.0, math.log(FARTHEST / MOST) / math.log(WIDER))
    every = np.concatenate([at, steps, LEAST * farther, MOST * farther])
    both = np.unique(every[(every >= field.low) & (every <= field.high)])
    return both[np.append(True, np.diff(both) > 1e-9)] if both.size else both


def _whole(field: Field, cuts: Array) -> tuple[Array, Edge | None, Edge | None]:
    """The cuts of the stretch, around the most of p, in which all values are numbers, and where it ends early."""
    log_p, log_q = field.logs(cuts)
    good = _valid(log_p, log_q) & ~_ran_out(log_p, -OUT) & ~_ran_out(log_q, np.where(log_p > NOTHING, -math.inf, -OUT))
    if not good.any():
        return cuts[:0], None, None
    top = int(np.where(good, field.sizes(cuts)[1], -1.0).argmax())
    field.failed = False
    bad = np.flatnonzero(~good)
    before, after = bad[bad < top], bad[bad > top]
    first, last = (int(before[-1]) + 1 if before.size else 0), (int(after[0]) - 1 if after.size else len(cuts) - 1)
    left = _edge(field, cuts[first], cuts[first - 1], cuts[top]) if before.size else None
    right = _edge(field, cuts[last], cuts[last + 1], cuts[top]) if after.size else None
    low, high = (x.t if x else end for x, end in ((left, cuts[first]), (right, cuts[last])))
    inside = cuts[(cuts > low) & (cuts < high)]
    return np.unique(np.concatenate([[low], inside, [high]])), left, right


def _edge(field: Field, good: float, bad: float, top: float) -> Edge:
    """Where a stretch of numbers ends that goes from `top` beyond `good`, and not as far as `bad`.

    Numbers close to where there are none may be rounded beyond recognition, such as 1 - x*x is for x next to 1. So the
    end is put where both densities are seen to follow powers, if that is anywhere near.
    """
    last = _last(field, good, bad)
    stops = float(field.logs(np.float64(bad))[0]) == -math.inf
    step = math.copysign(1.0, top - last)
    for t in last + step * np.arange(min(BACK, int(abs(top - last)))):
        with np.errstate(all="ignore"):
            bends = np.abs(np.diff(np.stack(field.logs(t + step * SHORT * np.linspace(0.0, 2.0, 9))), 2))
        if float(bends.max()) <= BENT:
            return Edge(float(t), SHORT, float(bends.max()), stops)
    return Edge(last, SPAN, 0.0, stops)


def _last(field: Field, good: float, bad: float) -> float:
    """The last t from `good` to `bad` with values that are numbers."""
    log_p, log_q = (float(x) for x in field.logs(np.float64(good)))
    least = -OUT, -math.inf if log_p > NOTHING else -OUT
    for _ in range(BISECTIONS):
        middle = 0.5 * (good + bad)
        logs = field.logs(np.float64(middle))
        out = any(x == -math.inf < was and was > y for was, x, y in zip((log_p, log_q), logs, least, strict=True))
        good, bad = (good, middle) if out or not _valid(*logs) else (middle, bad)
    return good


def _ran_out(logs: Array, least: Any) -> Array:
    """Where a logarithm is -inf next to one above `least`: something on the way left the range of numbers."""
    found = np.zeros(len(logs), bool)
    least = np.broadcast_to(least, logs.shape)
    for order in (slice(None), slice(None, None, -1)):
        values = logs[order]
        for start in np.flatnonzero((values[1:] == -math.inf) & (values[:-1] > least[order][:-1])) + 1:
            run = np.flatnonzero(values[start:] > -math.inf)
            found[order][start : start + int(run[0]) if run.size else len(values)] = True
    return found


def _trimmed(rows: Array) -> tuple[int, int]:
    """Without what adds nothing at either end."""
    shown = (rows > FAINT * rows.max(1, keepdims=True)).any(0)
    if not shown.any():
        return 0, rows.shape[1] - 1
    at = np.flatnonzero(shown)
    return max(int(at[0]) - 1, 0), min(int(at[-1]) + 1, rows.shape[1] - 1)


def _inside(field: Field, cuts: Array, largest: Array) -> Found:
    """The integrals between the cuts, by the rule of double exponentials (Takahasi and Mori 1974)."""
    from scipy import integrate

    a, b = np.tile(cuts[:-1], 3), np.tile(cuts[1:], 3)
    kind = np.repeat(np.arange(3), len(cuts) - 1)
    unit = np.where(largest > 0.0, largest, 1.0)

    def integrand(t: Array, kinds: Array) -> Array:
        rows = field.sizes(t)
        chosen = np.broadcast_to(kinds.astype(np.int64), t.shape)
        return np.asarray(np.take_along_axis(rows, chosen[None], 0)[0] / unit[chosen])

    with np.errstate(all="ignore"):
        made = integrate.tanhsinh(
            integrand, a, b, args=(kind.astype(np.float64),), rtol=RELATIVE, atol=1e-18, minlevel=3, maxlevel=LEVELS
        )
    parts = np.where(np.isfinite(made.integral), made.integral, 0.0).reshape(3, -1)
    errors = np.nan_to_num(np.abs(made.error), nan=math.inf).reshape(3, -1)
    value, of_p, of_q = (math.fsum(row) * float(scale) for row, scale in zip(parts, unit, strict=True))
    if field.failed:
        return Found(math.nan, math.inf, of_p, of_q, 0.0)
    log_p, log_q = field.logs(cuts)
    with np.errstate(all="ignore"):
        apart = np.where(np.exp(log_p) > 0.0, np.abs(log_p - log_q), 0.0)
    return Found(
        value, math.fsum(errors[0]) * float(unit[0]) + RELATIVE * value, of_p, of_q, float(apart.max(initial=0.0))
    )


class Line(NamedTuple):
    """How a logarithm falls, a unit of t outwards, and by how much that may be wrong."""

    fall: float
    wrong: float
    straight: bool

    @property
    def power(self) -> bool:
        """Whether it is that of a power of the distance with a finite integral."""
        return self.straight and self.fall > FLAT


def _line(values: Array, span: float, wrong: float = 0.0) -> Line:
    here, before, earlier = (float(x) for x in values[:3])
    if not all(map(math.isfinite, (here, before, earlier))):
        return Line(0.0, math.inf, False)
    bend = abs(here + earlier - 2.0 * before)
    noise = 8.0 * EPSILON * (abs(here) + abs(before) + 1.0) + wrong
    return Line((before - here) / span, (bend + noise) / span, bend <= BENT + noise)


def _beyond(field: Field, cuts: Array, edge: Edge | None) -> Found:
    """What lies beyond the last of the cuts, where the densities are no numbers any more."""
    span = min(edge.span if edge else SPAN, abs(float(cuts[-1] - cuts[0])) / 4.0)
    t = float(cuts[-1]) - math.copysign(span, float(cuts[-1] - cuts[0])) * np.arange(4.0)
    log_p, log_q = field.logs(t)
    sizes = field.sizes(t)[:, 0]
    bend = edge.bend if edge else 0.0
    p, q = _line(log_p, span, bend), _line(log_q, span, bend)
    with np.errstate(all="ignore"):
        delta = log_p - log_q
        cell = _line(np.log(field.sizes(t)[0]), span)
        excess = _line(np.log(np.where(delta > 0.0, delta, math.nan)), span)
        fall, swell = _slopes(field, float(cuts[-1]), float(t[0] - t[1]) * NARROW / span)
    apart = abs(float(delta[0])) if sizes[1] > 0.0 else 0.0
    of_p, of_q = _mass(float(log_p[0]), p), _mass(float(log_q[0]), q)
    if abs(sizes[0] - sizes[2]) <= 4.0 * EPSILON * sizes[2]:  # what q has beyond counts alone
        if q.power:
            return Found(of_q, of_q * min(1.0, q.wrong / q.fall), 0.0, of_q, 0.0)
        left = field.left(float(cuts[-1]), outwards=cuts[-1] > cuts[0])
        return Found(left, 4.0 * EPSILON * left, 0.0, left, 0.0)
    if p.power and q.power:
        return _powers(float(log_p[0]), float(log_q[0]), p, q)
    if p.power and excess.straight and excess.fall < -FLAT:  # log(p/q) grows like a power of the distance
        if cell.fall <= FLAT:
            return Found(math.inf, 0.0, of_p, of_q, apart)
        value = float(sizes[0]) / cell.fall
        return Found(value, value * min(1.0, cell.wrong / cell.fall), of_p, of_q, apart)
    if p.power and sizes[2] <= EPSILON * sizes[1] and _is_square(delta):
        return _square(delta, span, of_p, p)
    if fall > 1.0:  # as an exponential falls, and faster
        return Found(float(sizes[0]) / fall, float(sizes[0]), of_p, of_q, apart)
    if edge and edge.stops:  # a density that drops to nothing says nothing of what is beyond
        return Found(math.nan, math.inf, of_p, of_q, apart)
    if fall < -1.0 and swell > 0.1 and not _is_turning(field, float(cuts[-1]), float(t[0] - t[1]) * TURN / span):
        return Found(math.inf, 0.0, of_p, of_q, apart)
    return Found(math.nan, math.inf, of_p, of_q, apart)


def _is_turning(field: Field, end: float, step: float) -> bool:
    """Whether the logarithm of the cell rises less and less towards the end, and so may fall beyond it."""
    with np.errstate(all="ignore"):
        last, middle, first = np.log(field.sizes(end - step * np.arange(3.0))[0])
    return bool((middle - first) - (last - middle) > 1e-9 * abs(last))


def _slopes(field: Field, end: float, step: float) -> tuple[float, float]:
    """At the end, a unit of t outwards: by how much the logarithm of the cell falls, and that of log(p/q) rises."""
    t = end - np.array([0.0, step])
    log_p, log_q = field.logs(t)
    with np.errstate(all="ignore"):
        cell, delta = np.log(field.sizes(t)[0]), np.log(log_p - log_q)
        return float((cell[1] - cell[0]) / abs(step)), float((delta[0] - delta[1]) / abs(step))


def _mass(log_size: float, line: Line) -> float:
    """Of what falls like this for ever."""
    return math.exp(log_size) / line.fall if line.power else 0.0


def _powers(log_p: float, log_q: float, p: Line, q: Line) -> Found:
    """Between two powers: log(p/q) is a line in t, and the mean of it over p the closed form of exponentials."""
    ratio = q.fall / p.fall
    masses = log_p - math.log(p.fall), log_q - math.log(q.fall)
    of_p, of_q = math.exp(masses[0]), math.exp(masses[1])
    apart = abs(log_p - log_q)
    value = float(cells(*masses)[0]) + of_p * (ratio - 1.0 - math.log(ratio))
    error = (p.wrong / p.fall + q.wrong / q.fall) * (of_p * (apart + abs(ratio - 1.0) + 1.0) + of_q)
    return Found(value, error, of_p, of_q, apart)


def _is_square(delta: Array) -> bool:
    """Whether four values at equal steps lie on a parabola."""
    third = float(delta[0] - 3.0 * delta[1] + 3.0 * delta[2] - delta[3])
    return math.isfinite(third) and abs(third) <= 1e-9 * float(np.abs(delta).max())


def _square(delta: Array, span: float, of_p: float, p: Line) -> Found:
    """A power of p, and a log(p/q) that is a parabola in t; q is nothing beside p."""
    here, before, earlier = (float(x) for x in delta[:3])
    bend = (here - 2.0 * before + earlier) / span**2
    rise = (here - before) / span + 0.5 * bend * span
    value = of_p * (here - 1.0 + rise / p.fall + bend / p.fall**2)
    size = of_p * (abs(here) + 2.0 * abs(rise) / p.fall + 3.0 * abs(bend) / p.fall**2)
    return Found(value, size * (p.wrong / p.fall + 1e-12), of_p, 0.0, abs(here))
