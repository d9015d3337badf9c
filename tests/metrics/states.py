"""Comparing states bit by bit, and splitting rows in every way."""

import numpy as np
from hypothesis import settings

from klnumba.metrics import RunningStatistics

SETTINGS = settings(deadline=None, derandomize=True, database=None)


def assert_same(first, second):
    """Two state dicts hold the same bits."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, dict):
            assert_same(value, second[name])
        elif isinstance(value, np.ndarray):
            assert value.dtype == second[name].dtype, name
            assert value.shape == second[name].shape, name
            assert value.tobytes() == second[name].tobytes(), name
        else:
            assert value == second[name], name


def pieces(rng, rows, count):
    """A random order of the rows, cut at random."""
    return np.split(rng.permutation(rows), np.sort(rng.integers(0, rows + 1, count - 1)))


def merged_at_random(rng, parts):
    """All parts in one, by a random tree of merges."""
    parts = list(parts)
    while len(parts) > 1:
        rng.shuffle(parts)
        parts.append(parts.pop() + parts.pop())
    return parts[0]


def of_rows(values, weights=None, groups=None, **options):
    """What one pass over the rows gives."""
    made = RunningStatistics(**options)
    made.update(values, weights, groups)
    return made


def taken(rows, *columns):
    """These rows of every column that is there."""
    return [None if column is None else column[rows] for column in columns]
