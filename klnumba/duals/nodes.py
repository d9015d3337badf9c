"""Sums over the nodes of an integral: all nodes at once, where the text of a formula takes one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.duals.dual import Dual, by_branches
from klnumba.duals.twofold import Twofold

BLOCK = 1 << 14  # numbers that are evaluated together: nodes times distributions

Array = np.ndarray[Any, Any]


def over_nodes(formula: Callable[..., Any], nodes: Array, *numbers: Any) -> tuple[Dual, ...]:
    """The sums over all nodes of each of the duals that the formula makes of a node and of the numbers."""
    shape = np.broadcast_shapes(*(x.slopes.hi.shape for x in numbers if isinstance(x, Dual)))
    count = max(1, BLOCK // shape[1])
    parts = [_of_some(formula, nodes[i : i + count], numbers, shape) for i in range(0, len(nodes), count)]
    return tuple(_added(duals) for duals in zip(*parts, strict=True))


def _of_some(formula: Callable[..., Any], nodes: Array, numbers: tuple[Any, ...], shape: tuple[int, ...]) -> list[Dual]:
    k, n = shape
    size = len(nodes) * n
    still = np.zeros((k, size))
    wide = [Dual(Twofold(np.repeat(nodes, n), still[0]), Twofold(still, still))]
    wide += [_repeated(x, len(nodes), shape) if isinstance(x, Dual) else x for x in numbers]

    def of_some(at: Array) -> Any:
        return formula(*(_taken(x, at) if isinstance(x, Dual) else x for x in wide))

    found: list[Array] = []  # of each result the four arrays of a dual, as k + 1 rows of the higher and the lower parts
    for at, results in by_branches(of_some, np.arange(size)):
        found = found or [np.zeros((2, k + 1, size)) for _ in results]
        for rows, x in zip(found, results, strict=True):
            rows[0, 0, at], rows[1, 0, at] = x.value.hi, x.value.lo
            rows[0, 1:, at], rows[1, 1:, at] = x.slopes.hi.T, x.slopes.lo.T
    return [_sum_of_nodes(rows.reshape(2, k + 1, len(nodes), n)) for rows in found]


def _repeated(x: Dual, count: int, shape: tuple[int, ...]) -> Dual:
    """For each node the whole batch."""
    value = (np.tile(np.broadcast_to(part, shape[1:]), count) for part in (x.value.hi, x.value.lo))
    slopes = (np.tile(np.broadcast_to(part, shape), (1, count)) for part in (x.slopes.hi, x.slopes.lo))
    return Dual(Twofold(*value), Twofold(*slopes))


def _taken(x: Dual, at: Array) -> Dual:
    return Dual(Twofold(x.value.hi[at], x.value.lo[at]), Twofold(x.slopes.hi[:, at], x.slopes.lo[:, at]))


def _sum_of_nodes(rows: Array) -> Dual:
    """By halves, along the third axis."""
    total = Twofold(*rows)
    while total.hi.shape[1] > 1:
        half = total.hi.shape[1] // 2
        first, second, rest = (
            Twofold(total.hi[:, part], total.lo[:, part])
            for part in (slice(half), slice(half, 2 * half), slice(2 * half, None))
        )
        both = first + second
        total = Twofold(np.concatenate([both.hi, rest.hi], 1), np.concatenate([both.lo, rest.lo], 1))
    hi, lo = total.hi[:, 0], total.lo[:, 0]
    return Dual(Twofold(hi[0], lo[0]), Twofold(hi[1:], lo[1:]))


def _added(duals: tuple[Dual, ...]) -> Dual:
    total = duals[0]
    for x in duals[1:]:
        total = total + x
    return total
