"""The derivatives of divergences of rows, slowly: differences of the values in four hundred digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mpmath import mp, mpf

from tests.reference import mp as values

DIGITS = 400
STEP = mpf(10) ** -60
NOTHING = mpf(10) ** -115  # what the curvature adds to a difference is below

FORMULAS: dict[str, Callable[..., mpf]] = {
    "kl_divergence": lambda p, q, weight: values._kl(p, q),
    "js_divergence": values._js,
    "jeffreys_divergence": lambda p, q, weight: values._kl(p, q) + values._kl(q, p),
    "cross_entropy": lambda p, q, weight: values._cross_entropy(p, q),
    "entropy": lambda p, q, weight: values._entropy(p),
}


def row(cells: Sequence[mpf], kind: str, normalize: bool, temperature: float) -> values.Row:
    """A row whose cells have more digits than a float."""
    if kind == "prob":
        total = mp.fsum(cells) if normalize else mpf(1)
        weights = [cell / total for cell in cells]
        return values.Row(weights, [values._log(weight) for weight in weights])
    logs = [cell / mpf(temperature) for cell in cells]
    if normalize:
        total = mp.log(mp.fsum(mp.exp(log) for log in logs))
        logs = [log - total for log in logs]
    return values.Row([mp.exp(log) for log in logs], logs)


def slopes(
    function: str, p: Sequence[float], q: Sequence[float], kind: str = "prob", normalize: bool = True,
    temperature: float = 1.0, weight: float = 0.5,
) -> tuple[list[mpf], list[mpf]]:  # fmt: skip
    """The derivatives by the cells of p and by those of q, which are positive or logarithms."""
    with mp.workdps(DIGITS):
        sides = [[mpf(float(cell)) for cell in side] for side in (p, q)]

        def value(*cells: Sequence[mpf]) -> mpf:
            rows = [row(side, kind, normalize, temperature) for side in cells]
            return FORMULAS[function](*rows, weight)

        def one(side: int, k: int) -> mpf:
            cell = sides[side][k]
            if mp.isinf(cell):
                return mpf(0)
            h = STEP * (cell if kind == "prob" else 1)
            ends = []
            for end in (cell + h, cell - h):
                moved: list[Any] = [list(cells) for cells in sides]
                moved[side][k] = end
                ends.append(value(*moved))
            found = (ends[0] - ends[1]) / (2 * h)
            return found if abs(found) > NOTHING else mpf(0)

        first, second = ([one(side, k) for k in range(len(p))] for side in (0, 1))
        return first, second
