"""Divergences of two samples, without bins: from the distances to nearest neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from klnumba.arrays import one_of
from klnumba.labels import numbers
from klnumba.reduction import generator, positive_unit, real
from klnumba.tables.jitter import jittered
from klnumba.tables.neighbours import sample

METHODS = ("knn", "bias-reduced")
TIES = ("raise", "jitter")


@dataclass(frozen=True)
class SampleEstimate:
    """An estimate of KL from samples.

    Attributes
    ----------
    kl : float
        The estimate; `float` of this object gives it too.
    standard_error : float
        Its standard error, from subsamples; NaN where no interval was asked for.
    interval : tuple of float
        The confidence interval, from the estimate and its standard error; NaN twice where none was asked for.
    n, m : int
        The sizes of the samples.
    dimensions : int
        How many numbers a point has.
    """

    kl: float
    standard_error: float
    interval: tuple[float, float]
    n: int
    m: int
    dimensions: int

    def __float__(self) -> float:
        return self.kl

    def __eq__(self, other: object) -> bool:
        """Whether all is the same; an interval that neither has is."""
        return self._values() == other._values() if isinstance(other, SampleEstimate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[float | None, ...]:
        """All attributes, None for NaN."""
        values = (self.kl, self.standard_error, *self.interval, self.n, self.m, self.dimensions)
        return tuple(None if math.isnan(value) else value for value in values)


def kl_from_samples(
    x: Any, y: Any, *, k: int = 5, method: Literal["knn", "bias-reduced"] = "knn",
    ties: Literal["raise", "jitter"] = "raise", standardize: bool = False, confidence: float | None = None,
    subsamples: int = 200, clamp: bool = False, base: float | None = None, rng: Any = 0,
) -> SampleEstimate:  # fmt: skip
    """Estimate KL(p || q) from a sample of p and one of q, both of a density.

    The density at each point of `x` is taken from the distance to its k-th nearest neighbour, in `x` and in `y` [1]_.
    The estimate comes close to the true value as the samples grow, but knows no zero: of two samples of the same
    density, it is negative about as often as positive.

    Parameters
    ----------
    x, y : array_like
        The samples: of shape (n,) and (m,) for numbers, (n, d) and (m, d) for vectors. Columns of two DataFrames are
        matched by label. Integers and float32 are taken as float64.
    k : int, default 5
        Which neighbour. More neighbours make the estimate steadier and, where the densities bend within their reach,
        less right.
    method : {"knn", "bias-reduced"}, default "knn"
        "knn" compares the distances to the k-th neighbour in `x` and in `y`, equation (5) of [1]_. "bias-reduced" takes
        the larger of the two around each point, counts the neighbours in both samples within it, and compares the
        distances to the farthest of them, equation (29), which is for k = 1 there. So both densities are taken over one
        and the same neighbourhood: better for points of one or two numbers, worse for more. Of vectors it is slow where
        the samples are far apart.
    ties : {"raise", "jitter"}, default "raise"
        What to do where the distance to a neighbour is zero, since values are repeated: a density has no such places,
        so that there is no estimate. "jitter" takes the values of each coordinate in which some are repeated as
        rounded, and moves each to a random place within half a unit. The unit is the distance to the nearest other
        value that the middle one of all points has. Values which the rounding of the coarser dtype of `x` and `y` might
        have made of one are one value there.
    standardize : bool, default False
        Divide each coordinate by its standard deviation over both samples. The divergence does not depend on it; the
        estimate does, where coordinates are of different units.
    confidence : float, optional
        Also estimate the standard error and the interval with this confidence, from subsamples.
    subsamples : int, default 200
        How many pairs of subsamples, of ``n ** (2/3)`` and ``m ** (2/3)`` points, drawn without replacement.
    clamp : bool, default False
        Give 0 for a negative estimate, and for a negative end of the interval.
    base : float, optional
        Unit of the result: None for nats, 2 for bits; above 1.
    rng : numpy.random.Generator or int, default 0
        Where subsamples and jitter come from, or a seed: by default, the same call gives the same result.

    Returns
    -------
    SampleEstimate
        The estimate, its standard error and interval.

    Raises
    ------
    ValueError
        If a sample has too few points for `k`, a value that is not finite or is masked, another number of coordinates
        than the other sample, or, with ``ties="raise"``, neighbours at the distance zero; or if an option is out of its
        range.
    TypeError
        If a sample does not consist of real numbers.
    ModuleNotFoundError
        If the points are vectors and SciPy is not installed.

    Notes
    -----
    The spread of the estimates from subsamples [2]_ (a bootstrap would repeat points, and so make ties), times the
    square root of how much smaller they are, is the standard error; the interval is that of a normal distribution. It
    does not cover the bias, which grows with the number of coordinates and with the distance of p and q. The reference
    page has a table of both, measured on known pairs.

    References
    ----------
    .. [1] Q. Wang, S. R. Kulkarni and S. Verdu, "Divergence Estimation for Multidimensional Densities Via
       k-Nearest-Neighbor Distances", IEEE Transactions on Information Theory 55, pp. 2392-2405, 2009.
    .. [2] D. N. Politis and J. P. Romano, "Large Sample Confidence Regions Based on Subsamples under Minimal
       Assumptions", Annals of Statistics 22, pp. 2031-2050, 1994.

    Examples
    --------
    The true divergence is 0.5:

    >>> import numpy as np
    >>> from klnumba.tables import kl_from_samples
    >>> rng = np.random.default_rng(0)
    >>> found = kl_from_samples(rng.normal(0.0, 1.0, 5_000), rng.normal(1.0, 1.0, 5_000), confidence=0.95)
    >>> round(found.kl, 3), round(found.standard_error, 3)
    (0.505, 0.024)
    """
    one_of(method, METHODS, "method")
    one_of(ties, TIES, "ties")
    unit, z = positive_unit(base), _quantile(confidence)
    for name, given, least in (("k", k, 1), ("subsamples", subsamples, 2)):
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
            raise ValueError(f"{name}: an integer of at least {least}, not {given!r}")
    first, second, epsilon = _points(x, y)
    if standardize:
        first, second = _standardized(first, second)
    draws = generator(rng)
    if ties == "jitter":
        first, second = jittered(*_scaled(first, second), epsilon, draws)
    first, second = _scaled(first, second)
    value = estimate(first, second, int(k), method)
    error = _standard_error(first, second, int(k), method, subsamples, draws) if confidence is not None else math.nan
    ends = (value - z * error, value + z * error)
    floor = 0.0 if clamp else -math.inf
    low, high = (end if math.isnan(end) else max(end, floor) / unit for end in ends)
    n, m = len(first), len(second)
    return SampleEstimate(max(value, floor) / unit, error / unit, (low, high), n, m, first.shape[1])


def estimate(x: np.ndarray, y: np.ndarray, k: int, method: str) -> float:
    """The estimate, in nats, from samples of shape (n, d) and (m, d)."""
    n, m, d = len(x), len(y), x.shape[1]
    if n <= k or m < k:
        raise ValueError(f"k: the {k}-th neighbour needs {k + 1} points in x and {k} in y, not {n} and {m}")
    inside, across = sample(x), sample(y)
    at = inside.points
    rho, nu = inside.kth(at, k, own=True), across.kth(at, k, own=False)
    correction = 0.0
    if method == "bias-reduced":
        radius = np.maximum(rho, nu)
        near, rho = inside.within(at, radius, k, own=True)
        reach, nu = across.within(at, radius, k, own=False)
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, max(n, m)))])  # digamma, up to a constant
        correction = float(np.mean(harmonic[near - 1] - harmonic[reach - 1]))
    tied = int(np.count_nonzero((rho == 0.0) | (nu == 0.0)))
    if tied:
        raise ValueError(
            f"x and y: {tied} of {n} points have {k} neighbours at the distance 0, and no density there; "
            'if values are rounded, ties="jitter"'
        )
    ratio = float(np.mean(np.log(nu) - np.log(rho)))
    return float(d * ratio + correction + math.log(m / (n - 1)))


def _standard_error(x: np.ndarray, y: np.ndarray, k: int, method: str, count: int, rng: np.random.Generator) -> float:
    sizes = [min(len(points), max(k + 1, round(len(points) ** (2 / 3)))) for points in (x, y)]
    found = []
    for _ in range(count):
        one, other = (
            rng.choice(points, size, False, shuffle=False) for points, size in zip((x, y), sizes, strict=True)
        )
        found.append(estimate(one, other, k, method))
    whole, part = (1.0 / a + 1.0 / b for a, b in ((len(x), len(y)), sizes))
    return float(np.std(found, ddof=1)) * math.sqrt(whole / part)


def _quantile(confidence: float | None) -> float:
    """How many standard errors the interval reaches to each side."""
    if confidence is None:
        return math.nan
    if not 0.0 < real(confidence, "confidence") < 1.0:
        raise ValueError(f"confidence: a number between 0 and 1, not {confidence!r}")
    return NormalDist().inv_cdf(0.5 + 0.5 * float(confidence))


# --- the points ------------------------------------------------------------------------------------------------------


def _points(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Both samples, of shape (n, d) and (m, d), finite, and the relative distance of two numbers of the coarser one."""
    if hasattr(x, "columns") and hasattr(y, "columns"):
        y = _matched(x, y)
    found = []
    epsilon = float(np.finfo(np.float64).eps)
    for name, given in (("x", x), ("y", y)):
        if np.ma.is_masked(given):
            raise ValueError(f"{name}: no value is masked, for a point needs all of its numbers")
        points = numbers(given, name) if hasattr(given, "iloc") else np.asarray(given)
        if points.dtype.kind not in "fiub":
            raise TypeError(f"{name}: dtype {points.dtype} is not a real number type")
        if points.ndim not in (1, 2) or (points.ndim == 2 and not points.shape[1]):
            raise ValueError(f"{name}: of shape (n,) or (n, d), not {points.shape}")
        if points.dtype.kind == "f":
            epsilon = max(epsilon, float(np.finfo(points.dtype).eps))
        points = np.asarray(points if points.ndim == 2 else points[:, None], np.float64)
        bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
        if bad.size:
            raise ValueError(f"{name}: point {int(bad[0])} is not finite ({points[bad[0]].tolist()})")
        found.append(points)
    if found[0].shape[1] != found[1].shape[1]:
        raise ValueError(f"x and y: points of {found[0].shape[1]} and {found[1].shape[1]} numbers")
    return found[0], found[1], epsilon


def _matched(x: Any, y: Any) -> Any:
    """The frame `y` with the columns in the order of those of `x`."""
    ours, theirs = ([*getattr(one, "column_names", one.columns)] for one in (x, y))  # pyarrow's columns are the data
    missing = [name for names, others in ((ours, theirs), (theirs, ours)) for name in names if name not in others]
    if missing or len(set(ours)) < len(ours) or len(ours) < len(theirs):
        raise ValueError(f"x and y: the same columns, each once; not in both or not once: {missing or 'repeated'}")
    return y[ours] if hasattr(y, "iloc") else y.select(ours)


def _standardized(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = _scaled(x, y)
    deviation = np.std(np.concatenate([x, y]), axis=0)
    deviation[deviation == 0.0] = 1.0
    return x / deviation, y / deviation


def _scaled(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in a unit, a power of two, in which squares of distances neither overflow nor vanish."""
    largest = max((float(np.abs(points).max()) for points in (x, y) if points.size), default=0.0)
    shift = -math.frexp(largest)[1]
    return np.ldexp(x, shift), np.ldexp(y, shift)
