"""The Dirichlet distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.beta import Beta, beta_apart, beta_beta, larger_unit
from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate, evaluate_rows
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log, split_exponent, two_sum
from klnumba.formulas.quick import Slopes, quick_difference, quick_log_gamma_bregman, with_quick_form
from klnumba.formulas.slopes_of_pairs import NONE, beta_bends, beta_slopes_by_p, beta_slopes_by_q
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    difference_of_products,
    power_of_two,
    stirling,
    stirling_slope,
)


def dirichlet_entropy(room: Any, a: Any) -> float:
    """The differential entropy, in nats."""
    n = float(a.size)
    s = 0.0
    for x in a:
        s += x
    total = (n / (2.0 * s) + (s - n) * stirling_slope(s)) - stirling(s)
    for x in a:
        total += 0.5 * log(x / s) + (stirling(x) - 0.5 / x - (x - 1.0) * stirling_slope(x))
    return total + (n - 1.0) * (HALF_LOG_2PI + 0.5 - 0.5 * log(s))


class Dirichlet(Multivariate):
    """The Dirichlet distribution: several numbers from 0 to 1 that add up to 1.

    Parameters
    ----------
    concentration : array_like
        The exponents in the density, each plus one, along the last axis.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Dirichlet
    >>> round(float(kl.kl_divergence(Dirichlet([1.0, 2.0, 3.0]), Dirichlet([1.0, 1.0, 1.0]))), 6)
    0.551197
    """

    parameters = ("concentration",)
    concentration = Parameter(POSITIVE, event_dims=1)
    scipy_name = "dirichlet"
    scipy_keywords = {"concentration": "alpha"}  # noqa: RUF012

    def __init__(self, concentration: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, concentration=concentration)

    def _event_shape(self) -> tuple[int, ...]:
        return self._given["concentration"].shape[-1:]

    def _validate(self) -> None:
        if self.event_shape[0] < 2:
            raise ValueError(f"Dirichlet: concentration must have a last axis of 2 or more, not {self.event_shape[0]}")

    @property
    def support(self) -> Support:
        return Support(0.0, 1.0)

    @property
    def mean(self) -> Any:
        return self._full(self.concentration / self._sum(), self.event_shape)

    @property
    def variance(self) -> Any:
        s = self._sum()
        part = self.concentration / s
        return self._full(part * ((s - self.concentration) / s) / (s + 1.0), self.event_shape)

    def _sum(self) -> Any:
        return np.sum(self.concentration, -1, keepdims=True)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        return evaluate_rows(dirichlet_entropy, [self._given["concentration"]], [1], self.batch_shape, self.dtype)


def quick_part(a: float, c: float) -> tuple[float, bool]:
    """The remainder of log-gamma of one concentration."""
    return quick_log_gamma_bregman(a, c, c - a)


def quick_whole(s: float, t: float, gap: float, parts: float) -> tuple[float, bool]:
    """The remainders of log-gamma of the concentrations, less that of their sum."""
    both, both_serve = quick_log_gamma_bregman(s, t, gap)
    value, serves = quick_difference(parts, both)
    return value, serves & both_serve


@with_quick_form(quick_part, quick_whole)
def stick_by_stick(room: Any, p: Any, q: Any) -> float:
    """The sum, over the parts but the last, of the divergence of that part of what the earlier ones have left.

    Each of these shares is of a beta distribution, independent of the others. The sums of the later concentrations of
    p, and of how far those of q are above them, keep the rounding errors of the additions.
    """
    last = p.size - 1
    rest = p[last]
    rest_low = 0.0
    other = q[last]
    more, more_low = two_sum(q[last], -p[last])
    total = 0.0
    total_low = 0.0
    for i in range(last - 1, -1, -1):
        a = p[i]
        c = q[i]
        first, first_low = two_sum(c, -a)
        s = a + rest
        _, k = split_exponent(s)
        unit = power_of_two(-k)  # keeps the products in range
        larger = larger_unit(max(s, c + other))
        above, left = more * larger, rest * larger
        off = difference_of_products(a * unit, above, first * unit, left)
        off += a * unit * (more_low * larger) - (first_low * unit * left + first * unit * (rest_low * larger))
        share = beta_apart(a * larger, left, c * larger, other * larger, first * larger, above, off / (s * unit))
        total, low = two_sum(total, share)
        total_low += low
        rest, low = two_sum(rest, a)
        rest_low += low
        other += c
        more, low = two_sum(more, first)
        more, more_low = two_sum(more, more_low + (low + first_low))
    return total + total_low if total < math.inf else total


@register_kl(Dirichlet, Dirichlet)
def dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    """The sum, over the parts but the last, of that of beta distributions: of a part in what the earlier ones leave."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    columns = [p._given["concentration"], q._given["concentration"]]
    return evaluate_rows(stick_by_stick, columns, [1, 1], shape, np.result_type(p.dtype, q.dtype))


def part_slopes(a: float, b: float, c: float, d: float, other: float) -> Slopes:
    """By a concentration a of p and c of q, of beta distributions with the sums b and d = b + other of the rest."""
    rise = c - a
    off = difference_of_products(a, other, rise, b)
    by_p, terms = beta_slopes_by_p(a, b, rise, other, off)
    by_q, sizes = beta_slopes_by_q(a, b, c, d, rise, other, off)
    cancelled = abs(rise) / a * (b / (a + b)) + abs(other) / (a + b)
    return (by_p, terms + cancelled), NONE, (by_q, sizes + cancelled), NONE, NONE


def part_bends(
    a: float, b: float, c: float, d: float, gap: float, move: float, rest: float, other_move: float,
    other_rest: float, climb: float,
) -> Slopes:  # fmt: skip
    """What `part_slopes` change by, with gap = b - d and the moves of a, b, c and d, climb that of b - d."""
    by_p, by_q = beta_bends(a, b, c, d, gap, move, rest, other_move, other_rest, climb)
    return by_p, NONE, by_q, NONE, NONE, NONE, NONE, NONE, NONE, NONE


def _beta_columns(distribution: Beta | Dirichlet) -> list[np.ndarray]:
    """The two concentrations."""
    if isinstance(distribution, Beta):
        return [distribution._column(name) for name in Beta.parameters]
    parts = distribution.event_shape[0]
    if parts != 2:
        raise ValueError(f"a Beta is a Dirichlet of 2 parts, not of {parts}")
    found = distribution._given["concentration"]
    return [found[..., 0], found[..., 1]]


@register_kl(Beta, Dirichlet)
@register_kl(Dirichlet, Beta)
def as_betas(p: Beta | Dirichlet, q: Beta | Dirichlet) -> Any:
    """That of beta distributions: x and 1 - x are a Dirichlet of two parts."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    return evaluate(beta_beta, _beta_columns(p) + _beta_columns(q), shape, np.result_type(p.dtype, q.dtype))
