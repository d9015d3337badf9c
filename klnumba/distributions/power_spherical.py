"""The power spherical distribution.

With t the cosine to the mean direction, (1 + t)/2 is a beta variable of the exponents b + concentration and b, where b
is half the dimension less 1/2; the same of the uniform distribution has the exponents b and b (De Cao and Aziz 2020).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.beta import beta_apart
from klnumba.distributions.directions import Directions, Moments, cosine_gap, log_area
from klnumba.distributions.evaluate import evaluate, evaluate_rows
from klnumba.distributions.registry import register_kl
from klnumba.distributions.von_mises_fisher import VonMisesFisher
from klnumba.formulas.bessel_orders import log_above, log_bregman
from klnumba.formulas.elementary import exp, expm1, log1p
from klnumba.formulas.log_cells import phi
from klnumba.formulas.power_distances import FIRST, LAST, STEP
from klnumba.formulas.special import exp_excess

CLOSE = 0.1  # of its terms: below, a sum loses digits
MUCH = 4.0  # a divergence that the integral does not serve
LIKELY = 30.0  # a log-ratio whose exponential may leave the range


def length(order: float, concentration: float) -> float:
    """The mean of t."""
    return concentration / (concentration + 2.0 * order + 1.0)


def across(order: float, concentration: float) -> float:
    """The variance at right angles to the mean direction."""
    total = concentration + 2.0 * order + 1.0
    return 2.0 * ((order + 0.5 + concentration) / total) / (total + 1.0)


def along(order: float, concentration: float) -> float:
    """The variance of t."""
    total = concentration + 2.0 * order + 1.0
    return (4.0 * order + 2.0) / total * ((order + 0.5 + concentration) / total) / (total + 1.0)


def of_one_direction(order: float, a: float, b: float) -> float:
    """KL of the concentrations a and b for one mean direction: that of the beta variables."""
    half = order + 0.5
    off = half * ((a - b) / (2.0 * half + a))
    return beta_apart(half + a, half, half + b, half, b - a, 0.0, off)


def power_entropy(order: float, concentration: float) -> float:
    """The differential entropy on the sphere, in nats."""
    return log_area(order) - of_one_direction(order, concentration, 0.0)


class PowerSpherical(Directions):
    """The power spherical distribution: directions, as unit vectors, around a mean direction.

    The density on the unit sphere is proportional to ``(1 + mean_direction @ x)**concentration``; SciPy has no
    counterpart.

    Parameters
    ----------
    mean_direction : array_like
        Unit vectors along the last axis, of 2 numbers or more; what counts is the direction, not the rounded length.
    concentration : array_like
        Concentration, zero or positive; 0 is the uniform distribution on the sphere.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import PowerSpherical, SphericalUniform
    >>> round(float(kl.kl_divergence(PowerSpherical([0.6, 0.0, 0.8], 2.0), SphericalUniform(3))), 6)
    0.431946
    """

    moments = Moments(length, along, across, power_entropy)


def cell(w: float, low: float, high: float, slope: float, concentration: float) -> tuple[float, float]:
    """log of the density of -logit(Z) less that at its mode, and of Z over a Fisher variable's, but for constants.

    Z = (1 + t)/2 is a beta variable of the exponents `high` >= `low`, and w what -logit(Z) is above the mode.
    """
    total = high + low
    rest = low / total
    rise = expm1(w)
    x = rest * rise
    log_down = log1p(x)  # Z is at exp(-log_down) of its mean
    log_weight = total * phi(x) - low * exp_excess(w) if abs(w) < 0.5 else low * w - total * log_down
    off = -x / (1.0 + x)
    bend = phi(off) if abs(off) <= 0.5 else off + log_down
    return log_weight, slope * off - concentration * bend


def near_fisher(order: float, a: float, b: float) -> float:
    """KL of the concentrations a and b for one mean direction: log E exp(m - D), D the log-ratio and m its mean.

    E exp(m - D) - 1 is the mean of exp(m - D) - 1 - (m - D), of which nothing cancels. The integrals go from the mode
    to both sides, each by a trapezoidal rule after v = exp(t - exp(-t)), v the distance in log-odds.
    """
    low = order + 0.5
    high = low + a
    total = high + low
    slope = (a - b) - b * (a / total) if a < low else (a - 2.0 * b) + 2.0 * b * (low / total)
    size = math.sqrt(1.0 / low + 1.0 / high)
    mass = 0.0
    mean = 0.0
    beyond = 0.0
    for sweep in range(2):
        for side in range(2):
            t = FIRST
            while t <= LAST:
                small = exp(-t)
                v = size * exp(t - small)
                log_weight, apart = cell(v if side == 0 else -v, low, high, slope, a)
                step = v * (1.0 + small)
                weight = step * exp(log_weight)
                if sweep == 0:
                    mass += weight
                    mean += weight * apart
                else:
                    above = mean / mass - apart
                    far = step * exp(log_weight + above) - weight * (1.0 + above)
                    beyond += weight * exp_excess(above) if above < LIKELY else far
                t += STEP
    return log1p(beyond / mass)


def to_fisher_of_one_direction(order: float, a: float, b: float) -> float:
    """That to the uniform distribution, the logarithm of q's norm, and p's mean cosine; an integral where close."""
    to_uniform = of_one_direction(order, a, 0.0)
    if b < order + 2.0:
        norm, pull = log_bregman(order, 0.0, b, b), -b * length(order, a)
    else:
        norm, pull = log_above(order, b, 1.0), b * ((2.0 * order + 1.0) / (a + 2.0 * order + 1.0))
    found = to_uniform + (norm + pull)
    if found > MUCH or found > CLOSE * (to_uniform + abs(norm) + abs(pull)):
        return found
    return near_fisher(order, a, b)


def power_fisher(room: Any, p: Any, a: Any, q: Any, b: Any) -> float:
    """That of one direction, and what the angle between the directions adds."""
    order = 0.5 * p.size - 1.0
    turn = 0.0 if a[0] == 0.0 or b[0] == 0.0 else b[0] * length(order, a[0]) * cosine_gap(p, q)
    return to_fisher_of_one_direction(order, a[0], b[0]) + turn


@register_kl(PowerSpherical, VonMisesFisher)
def power_spherical_von_mises_fisher(p: PowerSpherical, q: VonMisesFisher) -> Any:
    """That of one direction, an integral where the two are close, and q's times |mean of p|*(1 - cos(angle))."""
    columns = [d._given[name] for d in (p, q) for name in Directions.parameters]
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    return evaluate_rows(power_fisher, columns, [1, 0, 1, 0], shape, np.result_type(p.dtype, q.dtype))


def _of_one_direction(p: Directions, q: PowerSpherical) -> Any:
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    columns = [p._order, p._column("concentration"), q._column("concentration")]
    return evaluate(of_one_direction, columns, shape, np.result_type(p.dtype, q.dtype))


@register_kl(PowerSpherical, PowerSpherical)
def power_spherical_power_spherical(p: PowerSpherical, q: PowerSpherical) -> Any:
    """That of the beta variables of both; the directions must be equal, or one distribution be uniform."""
    turned = np.any(np.not_equal(p.mean_direction, q.mean_direction), -1)
    if np.any(turned & (np.not_equal(p.concentration, 0.0) & np.not_equal(q.concentration, 0.0))):
        raise NotImplementedError("KL(PowerSpherical || PowerSpherical) has a closed form for equal mean directions")
    return _of_one_direction(p, q)


@register_kl(VonMisesFisher, PowerSpherical)
def von_mises_fisher_power_spherical(p: VonMisesFisher, q: PowerSpherical) -> Any:
    """That of the beta variables of both; p must be uniform."""
    if np.any(np.not_equal(p.concentration, 0.0)):
        raise NotImplementedError("KL(VonMisesFisher || PowerSpherical) has a closed form for a p of concentration 0")
    return _of_one_direction(p, q)
