"""The logit-normal distribution."""

from __future__ import annotations

from typing import Any

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.normal import normal_normal
from klnumba.distributions.odds import sigmoid, softplus
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log
from klnumba.formulas.special import HALF_LOG_2PI

REACH = 9.0  # a normal variable is farther out, in standard deviations, with a probability of 2e-19
MOST = 20_000.0  # nodes of the trapezoidal rule


def step_of(scale: float) -> float:
    """A step, in standard deviations, for functions of the log-odds that are analytic up to pi from the real line."""
    return max(min(0.25, 0.5 / scale), 2.0 * REACH / MOST)


def logit_normal_mean(loc: float, scale: float) -> float:
    """E 1/(1 + exp(-Y)), Y normal, by the trapezoidal rule."""
    step = step_of(scale)
    total = 0.0
    z = -REACH
    while z <= REACH:
        total += exp(-0.5 * z * z - HALF_LOG_2PI) * sigmoid(loc + scale * z)
        z += step
    return total * step


def logit_normal_variance(loc: float, scale: float) -> float:
    """The variance of 1/(1 + exp(-Y)), Y normal, by the trapezoidal rule."""
    mean = logit_normal_mean(loc, scale)
    step = step_of(scale)
    total = 0.0
    z = -REACH
    while z <= REACH:
        away = sigmoid(loc + scale * z) - mean
        total += exp(-0.5 * z * z - HALF_LOG_2PI) * away * away
        z += step
    return total * step


def logit_normal_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats: that of the log-odds Y, less E log(1 + exp(Y)) + log(1 + exp(-Y))."""
    step = step_of(scale)
    total = 0.0
    z = -REACH
    while z <= REACH:
        y = loc + scale * z
        total += exp(-0.5 * z * z - HALF_LOG_2PI) * (softplus(y) + softplus(-y))
        z += step
    return 0.5 + HALF_LOG_2PI + log(scale) - total * step


class LogitNormal(Distribution):
    """The distribution of 1/(1 + exp(-Y)), Y normal; SciPy has no counterpart.

    Mean, variance and entropy have no closed form; they are integrals over Y, by a rule that gives 12 digits for scales
    up to 100 and fewer beyond.

    Parameters
    ----------
    loc, scale : array_like
        Mean and standard deviation of Y.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import LogitNormal
    >>> float(kl.kl_divergence(LogitNormal(1.0, 2.0), LogitNormal(0.0, 2.0)))
    0.125
    """

    parameters = ("loc", "scale")
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(logit_normal_entropy)

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, 1.0)

    @property
    def mean(self) -> Any:
        return self._integral(logit_normal_mean)

    @property
    def variance(self) -> Any:
        return self._integral(logit_normal_variance)

    def _integral(self, formula: Any) -> Any:
        return evaluate(formula, [self._column("loc"), self._column("scale")], self.batch_shape, self.dtype)


register_kl(LogitNormal, LogitNormal, compiled=True)(normal_normal)
