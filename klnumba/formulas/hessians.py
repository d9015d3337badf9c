"""What the derivatives of `formulas.slopes` change by as p and q move: second derivatives times a direction.

A second derivative is never formed by itself: it may be as large as 1/p, while a direction that keeps the row a
distribution moves a share p by p*move_p. A formula here takes the tangents of what the formulas of derivatives take:
apart = move_p - move_q is that of log(p/q), and p_apart and q_apart are p and q times it, which are finite also where
the share is zero; these and p and q may be on any scale they share. It returns the tangents of (u, a, v, b), those of
the weights left to the caller.

Source: forward over reverse differentiation, B. A. Pearlmutter, "Fast Exact Multiplication by the Hessian", Neural
Computation 6, pp. 147-160, 1994.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from klnumba.formulas.elementary import exp
from klnumba.formulas.slopes import Four, log_ratio_of, mixed, times


def kl(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return apart, 0.0, 0.0, rise_q


def kl_plain(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return apart, 0.0, 0.0, -share_q


def jeffreys(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return apart, rise_p, -apart, rise_q


def js(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    other = 1.0 - weight
    both = weight * other
    m = mixed(p, q, weight)
    return times(both, q_apart / m), 0.0, -times(both, p_apart / m), 0.0


def cross_entropy(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return -move_q, 0.0, 0.0, rise_q


def cross_entropy_plain(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return -move_q, 0.0, 0.0, -share_q


def entropy(
    p: float, q: float, apart: float, p_apart: float, q_apart: float, move_p: float, move_q: float, rise_p: float,
    rise_q: float, share_q: float, weight: float,
) -> Four:  # fmt: skip
    return -move_p, 0.0, 0.0, 0.0


class Bend(NamedTuple):
    """The tangents of the derivatives of normalised rows, and of rows that are taken as they are."""

    normalised: Callable[..., Four]
    plain: Callable[..., Four]


BENDS = {
    "kl": Bend(kl, kl_plain),
    "jeffreys": Bend(jeffreys, jeffreys),
    "js": Bend(js, js),
    "cross_entropy": Bend(cross_entropy, cross_entropy_plain),
    "entropy": Bend(entropy, entropy),
}


def relative(move: float, x: float) -> float:
    """By which part of itself x moves; what does not move does so at zero too."""
    return 0.0 if move == 0.0 else move / x


def turned(p: float, q: float, apart: float, move_p: float, mass: float) -> float:
    """The tangent of p/q: of shares p/mass, where p moves by move_p of the mass and log(p/q) by `apart`."""
    return times(apart, p / q) if p > 0.0 else times(move_p, mass / q)


# --- of single cells --------------------------------------------------------------------------------------------------


def rel_entr(p: float, q: float, move_p: float, move_q: float) -> tuple[float, float]:
    """Of p*log(p/q) and of p*log(p/q) - p + q."""
    apart = relative(move_p, p) - relative(move_q, q)
    none = p == 0.0 and q == 0.0
    known = none or log_ratio_of(p, q) == log_ratio_of(p, q)
    u, v = (0.0, 0.0) if none else (apart, -turned(p, q, apart, move_p, 1.0))
    return u if known else math.nan, v if known else math.nan


def kl_div(log_q: float, p: float, move_log_q: float, move_p: float) -> tuple[float, float]:
    """Of p*(log(p) - log_q)."""
    u = log_ratio_of(p, 1.0) - log_q
    none = p == 0.0 and log_q == -math.inf
    v = relative(move_p, p) - move_log_q
    return (0.0, 0.0) if none else (-move_p if u == u else math.nan, v if u == u else math.nan)


def kl_div_log_target(log_q: float, log_p: float, move_log_q: float, move_log_p: float) -> tuple[float, float]:
    """Of exp(log_p)*(log_p - log_q)."""
    p = exp(log_p)
    v = times(move_log_p, (log_p - log_q) + 2.0) - move_log_q
    return -times(p, move_log_p), times(p, v)


CELLS: dict[str, Callable[..., Any]] = {
    "rel_entr": rel_entr,
    "generalized_kl": rel_entr,
    "kl_div": kl_div,
    "kl_div_log_target": kl_div_log_target,
}
