"""Sums over the nodes of an integral: all nodes at once, where the text of a formula takes one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.duals.dual import Dual, by_branches
from klnumba.duals.number import Moving, Twofold, is_moving, mapped, move_of

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
    still_at = np.zeros((k, size))
    wide = [Dual(Twofold(np.repeat(nodes, n), still_at[0]), Twofold(still_at, still_at))]
    wide += [_repeated(x, len(nodes), shape) if isinstance(x, Dual) else x for x in numbers]

    def of_some(at: Array) -> Any:
        return formula(*(_taken(x, at) if isinstance(x, Dual) else x for x in wide))

    found: list[Array] = []  # of each result its numbers and their moves, k + 1 rows of the higher and the lower parts
    for at, results in by_branches(of_some, np.arange(size)):
        found = found or [np.zeros((2, 2, k + 1, size)) for _ in results]
        for rows, x in zip(found, results, strict=True):
            for plane, value, slopes in ((0, x.value, x.slopes), (1, move_of(x.value), move_of(x.slopes))):
                rows[plane, 0, 0, at], rows[plane, 1, 0, at] = value.hi, value.lo
                rows[plane, 0, 1:, at], rows[plane, 1, 1:, at] = slopes.hi.T, slopes.lo.T
    moves = any(is_moving(x.value, x.slopes) for x in wide if isinstance(x, Dual))
    return [_sum_of_nodes(rows.reshape(2, 2, k + 1, len(nodes), n), moves) for rows in found]


def _repeated(x: Dual, count: int, shape: tuple[int, ...]) -> Dual:
    """For each node the whole batch."""

    def tiled(part: Array) -> Array:
        return np.tile(np.broadcast_to(part, shape[-max(part.ndim, 1) :]), count)

    return Dual(mapped(tiled, x.value), mapped(tiled, x.slopes))


def _taken(x: Dual, at: Array) -> Dual:
    return Dual(mapped(lambda part: part[at], x.value), mapped(lambda part: part[:, at], x.slopes))


def _sum_of_nodes(planes: Array, moves: bool) -> Dual:
    """By halves, along the third axis."""
    value, slopes = _halved(planes[0])
    if not moves:
        return Dual(value, slopes)
    moved, bent = _halved(planes[1])
    return Dual(Moving(value, moved), Moving(slopes, bent))


def _halved(rows: Array) -> tuple[Twofold, Twofold]:
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
    return Twofold(hi[0], lo[0]), Twofold(hi[1:], lo[1:])


def _added(duals: tuple[Dual, ...]) -> Dual:
    total = duals[0]
    for x in duals[1:]:
        total = total + x
    return total
