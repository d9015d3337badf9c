"""Values that were rounded, spread at random over the unit to which they were."""

from __future__ import annotations

import numpy as np

SLACK = 4.0  # times the distance of two numbers of a dtype: as far apart are two roundings of one value, and no farther
NOTHING = 1e-6  # beside the mean distance of neighbouring values
OUTER = (0.05, 0.95)  # of the points, between which that is taken


def jittered(x: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The points with the coordinates in which values are repeated spread; the place of zero is not kept there.

    Parameters
    ----------
    x, y : (n, d) and (m, d) array
        Points.
    epsilon : float
        The relative distance of two numbers of the coarser dtype that the points had.
    rng : numpy.random.Generator
        Where the places come from.

    Returns
    -------
    tuple of array

    Raises
    ------
    ValueError
        If a coordinate has one value only.
    """
    both = np.concatenate([x, y])
    for j in range(both.shape[1]):
        values, counts = _distinct(both[:, j], epsilon)
        if values.size == 1:
            raise ValueError(f"x and y: coordinate {j} has the same value everywhere, and no density")
        if values.size < len(both):
            both[:, j] -= values[values.size // 2]  # so that large values do not swallow the digits of what is added
            both[:, j] += rng.uniform(-0.5, 0.5, len(both)) * _unit(values, counts)
    return both[: len(x)], both[len(x) :]


def _distinct(numbers: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The different values and how often each occurs; those that are one but for the rounding of arithmetic are one.

    They differ by a few of the last digits, or by next to nothing beside the distances that most values have.
    """
    values, counts = np.unique(numbers, return_counts=True)
    if not values.size:
        return values, counts
    low, high = np.quantile(numbers, OUTER)
    between = np.count_nonzero((values >= low) & (values <= high))
    digits = SLACK * epsilon * np.maximum(np.abs(values), np.median(np.abs(numbers)))
    alike = np.maximum(digits, NOTHING * (high - low) / max(between, 1))
    first = np.flatnonzero(np.diff(values, prepend=-np.inf) > alike)
    return values[first], np.add.reduceat(counts, first)


def _unit(values: np.ndarray, counts: np.ndarray) -> float:
    """The distance to the nearest other value that the middle one of all points has.

    Single values off the grid hardly move it, nor do gaps where values are seldom.
    """
    gaps = np.diff(values)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    order = np.argsort(nearest, kind="stable")
    middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2.0)
    return float(nearest[order][middle])
