"""Where `klnumba.functional` gives another value than PyTorch 2.13 or torchmetrics 1.9, and why.

The docs print the list; `tests/functional/` calls both sides. Needs the standard library alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

INF, NAN = math.inf, math.nan


class Difference(NamedTuple):
    """One call that both sides answer, with the two answers."""

    name: str
    function: str  # "kl_div" (input, target) or "kl_divergence" (p, q)
    first: Any
    second: Any
    arguments: dict[str, Any]
    theirs: Any
    ours: Any
    why: str


_ROW, _LOG_HALF = [[0.5, 0.5]], [[-math.log(2), -math.log(2)]]

DIFFERENCES: list[Difference] = [
    Difference(
        "zero target under a masked logit", "kl_div", [-INF], [0.0], {"reduction": "none"},
        [NAN], [0.0], "0·log(0/0) is 0",
    ),
    Difference(
        "one such cell in a sum", "kl_div", [[0.0, -INF]], [[1.0, 0.0]], {"reduction": "batchmean"},
        NAN, 0.0, "0·log(0/0) is 0",
    ),
    Difference(
        "log target of a zero", "kl_div", [-1.0], [-INF], {"reduction": "none", "log_target": True},
        [NAN], [0.0], "0·log(0/q) is 0",
    ),
    Difference(
        "log target of a zero under a masked logit", "kl_div", [-INF], [-INF],
        {"reduction": "none", "log_target": True}, [NAN], [0.0], "0·log(0/0) is 0",
    ),
    Difference(
        "batchmean with one row of input", "kl_div", _LOG_HALF, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        {"reduction": "batchmean"}, 4 * math.log(2), math.log(2), "the mean is over the rows of the result",
    ),
    Difference(
        "batchmean with a vector of input", "kl_div", _LOG_HALF[0], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        {"reduction": "batchmean"}, 2 * math.log(2), math.log(2), "the mean is over the rows of the result",
    ),
    Difference(
        "batchmean with a scalar of input", "kl_div", -1.0, [0.0, 1.0, 1.0, 0.0],
        {"reduction": "batchmean"}, 2.0, 0.5, "the mean is over the rows of the result",
    ),
    Difference(
        "zero among log-probabilities", "kl_divergence", [[0.0, -INF]], [[0.0, -1.0]], {"log_prob": True},
        NAN, 0.0, "0·log(0/q) is 0",
    ),
    Difference(
        "tiny probability in q", "kl_divergence", _ROW, [[1.0, 2.0**-1074]], {},
        INF, 536 * math.log(2), "p/q may overflow, the result does not",
    ),
    Difference(
        "all cells negative", "kl_divergence", [[-1.0, -1.0]], [[-1.0, -1.0]], {},
        0.0, NAN, "a negative cell is no mass, whatever its row sums to",
    ),
]  # fmt: skip


def _show(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    return f"{value:.4g}".replace("-", "−")


def markdown_table() -> str:
    """The list as a Markdown table."""
    lines = ["| function | arguments | theirs | ours | why |", "|---|---|---|---|---|"]
    for case in DIFFERENCES:
        call = ", ".join([_show(case.first), _show(case.second), *(f"{k}={v!r}" for k, v in case.arguments.items())])
        lines.append(f"| `{case.function}` | `{call}` | {_show(case.theirs)} | {_show(case.ours)} | {case.why} |")
    return "\n".join(lines) + "\n"
