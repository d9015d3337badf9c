"""Derivatives of the divergences by one cell of p and of q.

Of a divergence of rows with cells f(p, q), both of the sum 1, let u = df/dp and
v = df/dq, each up to a constant. Then the derivative

    by a cell of p that is divided by its row's sum P      is (u - sum(p*u))/P,
    by a logit a of p with temperature T                   is p*(u - sum(p*u))/T,

and so for q. A formula here returns (u, a, v, b) for the derivatives wp*u + a
and wq*v + b, where the weights wp and wq are 1 for cells, and p and q for
logarithms. It takes from the caller what has been formed without cancellation:
log(p/q) as delta_p for u and delta_q for v, the surprises sp = -log(p) and
sq = -log(q), each less any number that is the same for all cells of the row;
rise_p = wp*(1 - q/p) and rise_q = wq*(1 - p/q). A ratio of a row,
ratio_p = q'/p', with below_p = p*ratio_p - q, tells a formula by which number to
lower its u: that of a cell of p' and q'; so do ratio_q = p'/q' and
below_q = q*ratio_q - p for its v. Rows that are taken as they are have formulas
of their own, with no constant left out; share_q = wq*p/q is for them.

Source: direct differentiation, and the derivative of the softmax, J. S. Bridle,
"Training Stochastic Model Recognition Algorithms as Networks can Lead to
Maximum Mutual Information Estimation of Parameters", NIPS 2, 1989.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from klnumba.formulas.divergences import LEAST, log_ratio
from klnumba.formulas.elementary import exp

Four = tuple[float, float, float, float]


def times(weight: float, x: float) -> float:
    """weight*x, and 0 for a weight of 0, however large x is."""
    value = weight * x
    return 0.0 if weight == 0.0 else value


def kl(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return delta_p, 0.0, 0.0, rise_q


def kl_plain(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return delta_p + 1.0, 0.0, 0.0, -share_q


def jeffreys(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return delta_p, rise_p, -delta_q, rise_q


def mixed(p: float, q: float, weight: float) -> float:
    """w*p + (1 - w)*q, but no zero where both have a part: half of the least number rounds to zero."""
    m = weight * p + (1.0 - weight) * q
    return LEAST if m == 0.0 and p + q > 0.0 and 0.0 < weight < 1.0 else m


def part_of(share: float, weight: float) -> float:
    """weight*share, but no zero for a share that is none."""
    part = weight * share
    return LEAST if part == 0.0 and share > 0.0 else part


def js(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    other = 1.0 - weight
    m = mixed(p, q, weight)
    u = log_ratio(part_of(p, weight + other * ratio_p), m, other * below_p)
    v = log_ratio(part_of(q, other + weight * ratio_q), m, weight * below_q)
    return 0.0 if weight == 0.0 else weight * u, 0.0, 0.0 if other == 0.0 else other * v, 0.0


def cross_entropy(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return sq, 0.0, 0.0, rise_q


def cross_entropy_plain(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return sq, 0.0, 0.0, -share_q


def entropy(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return sp, 0.0, 0.0, 0.0


def entropy_plain(
    p: float, q: float, delta_p: float, delta_q: float, sp: float, sq: float, rise_p: float, rise_q: float,
    share_q: float, ratio_p: float, below_p: float, ratio_q: float, below_q: float, weight: float,
) -> Four:  # fmt: skip
    return sp - 1.0, 0.0, 0.0, 0.0


def log_ratio_of_shares(t: float, v: float, delta: float) -> float:
    return delta


def surprise_of_q(t: float, v: float, delta: float) -> float:
    return -v


def surprise_of_p(t: float, v: float, delta: float) -> float:
    return -t


class Slope(NamedTuple):
    """The derivatives of a divergence: the formulas for normalised rows and for those that are taken as they are.

    `centred` tells for p and for q whether u and v have means that normalising subtracts; else these are 0. `rises`
    tells whether the derivatives by q are wq*(1 - p/q). Where the divergence is a mean over p of what its logarithms
    say, `meant` is that, of the two logarithms of a cell and of their difference, each up to a constant. Of `unit` the
    errors of u and v are a few roundings, where these are no larger themselves. `lowered` tells whether the formulas
    make use of the ratios, and `surprises` whether they do of -log(p) or -log(q).
    """

    normalised: Callable[..., Four]
    plain: Callable[..., Four]
    centred: tuple[bool, bool]
    rises: bool = False
    meant: Callable[[float, float, float], float] | None = None
    unit: float = 1.0
    lowered: bool = False
    surprises: bool = False


SLOPES = {
    "kl": Slope(kl, kl_plain, (True, False), rises=True, meant=log_ratio_of_shares),
    "jeffreys": Slope(jeffreys, jeffreys, (True, True)),
    "js": Slope(js, js, (True, True), unit=0.25, lowered=True),
    "cross_entropy": Slope(
        cross_entropy, cross_entropy_plain, (True, False), rises=True, meant=surprise_of_q, surprises=True
    ),
    "entropy": Slope(entropy, entropy_plain, (True, False), meant=surprise_of_p, surprises=True),
}


# --- of single cells --------------------------------------------------------------------------------------------------


def log_ratio_of(p: float, q: float) -> float:
    """log(p/q), NaN where one is negative."""
    value = log_ratio(p, q, p - q)
    return math.nan if p < 0.0 or q < 0.0 else value


def rel_entr(p: float, q: float) -> tuple[float, float]:
    """Of p*log(p/q)."""
    u = log_ratio_of(p, q) + 1.0
    v = -p / q if p >= 0.0 and q >= 0.0 else math.nan
    none = p == 0.0 and q == 0.0
    return 0.0 if none else u, 0.0 if none else v


def generalized_kl(p: float, q: float) -> tuple[float, float]:
    """Of p*log(p/q) - p + q."""
    v = (q - p) / q if p >= 0.0 and q >= 0.0 else math.nan
    return log_ratio_of(p, q), 0.0 if p == q else v


def kl_div(log_q: float, p: float) -> tuple[float, float]:
    """Of p*(log(p) - log_q); the first says without a logarithm where the second is NaN."""
    u = (log_ratio_of(p, 1.0) - log_q) + 1.0
    none = p == 0.0 and log_q == -math.inf
    known = p >= 0.0 and log_q == log_q and (p < math.inf or log_q < math.inf)
    return -p if known else math.nan, 0.0 if none else u


def kl_div_log_target(log_q: float, log_p: float) -> tuple[float, float]:
    """Of exp(log_p)*(log_p - log_q)."""
    p = exp(log_p)
    return -p, times(p, (log_p - log_q) + 1.0)


CELLS: dict[str, Callable[..., Any]] = {
    "rel_entr": rel_entr,
    "generalized_kl": generalized_kl,
    "kl_div": kl_div,
    "kl_div_log_target": kl_div_log_target,
}
