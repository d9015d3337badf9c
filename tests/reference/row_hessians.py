"""Second derivatives of divergences of rows times a direction, slowly: differences of first ones in 400 digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mpmath import mp, mpf

from tests.reference.row_slopes import DIGITS, STEP, row

NOTHING = mpf(10) ** -200  # what the third derivatives add to a difference is below

Cells = Sequence[mpf]
Pair = tuple[list[mpf], list[mpf]]

# The derivatives of one cell by p and by q.
CELLS: dict[str, Callable[[mpf, mpf, mpf], tuple[mpf, mpf]]] = {
    "kl_divergence": lambda p, q, w: (mp.log(p / q) + 1, -p / q),
    "js_divergence": lambda p, q, w: (
        w * mp.log(p / (w * p + (1 - w) * q)),
        (1 - w) * mp.log(q / (w * p + (1 - w) * q)),
    ),
    "jeffreys_divergence": lambda p, q, w: (mp.log(p / q) + 1 - q / p, mp.log(q / p) + 1 - p / q),
    "cross_entropy": lambda p, q, w: (-mp.log(q), -p / q),
    "entropy": lambda p, q, w: (-mp.log(p) - 1, mpf(0)),
}


def slopes(
    function: str, sides: Sequence[Cells], kind: str, normalize: bool, temperature: float, weight: float
) -> list[Pair]:
    """By the chain rule, for p and for q, the derivatives by the cells and what normalising takes away from each."""
    shares = [row(side, kind, normalize, temperature).weights for side in sides]
    by_cells = zip(*(CELLS[function](p, q, mpf(weight)) for p, q in zip(*shares, strict=True)), strict=True)
    found = []
    for side, share, slope in zip(sides, shares, by_cells, strict=True):
        mean = mp.fsum(p * u for p, u in zip(share, slope, strict=True)) if normalize else mpf(0)
        total = mp.fsum(side) if normalize else mpf(1)
        factors = [1 / total] * len(side) if kind == "prob" else [p / mpf(temperature) for p in share]
        by_side = [x * (u - mean) for x, u in zip(factors, slope, strict=True)]
        found.append((by_side, [x * mean for x in factors]))
    return found


def products(
    function: str, p: Sequence[float], q: Sequence[float], move_p: Sequence[float], move_q: Sequence[float],
    kind: str = "prob", normalize: bool = True, temperature: float = 1.0, weight: float = 0.5,
) -> list[Pair]:  # fmt: skip
    """What these change by as the cells, positive or logarithms, move."""
    with mp.workdps(DIGITS):
        sides = [[mpf(float(cell)) for cell in side] for side in (p, q)]
        moves = [[mpf(float(move)) for move in side] for side in (move_p, move_q)]
        cells, steps = [*sides[0], *sides[1]], [*moves[0], *moves[1]]
        largest = max(abs(dx) if kind != "prob" else abs(dx / x) for x, dx in zip(cells, steps, strict=True))
        h = STEP / max(largest, mpf(1))

        def at(way: mpf) -> list[Pair]:
            moved = [[x + way * dx for x, dx in zip(*pair, strict=True)] for pair in zip(sides, moves, strict=True)]
            return slopes(function, moved, kind, normalize, temperature, weight)

        def change(ups: list[mpf], downs: list[mpf]) -> list[mpf]:
            found = [(up - down) / (2 * h) for up, down in zip(ups, downs, strict=True)]
            return [x if abs(x) > NOTHING else mpf(0) for x in found]

        return [
            (change(*first), change(*rest))
            for first, rest in (zip(*x, strict=True) for x in zip(at(h), at(-h), strict=True))
        ]
