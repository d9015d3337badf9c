"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, first_place
from klnumba.distributions.covariances import Covariances, excess_of_covariances, one_form
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.log_cells import phi
from klnumba.formulas.special import digamma, excess, log_gamma, stirling_bregman

LOG_PI = 1.1447298858494002


def above_dimension(owner: str, name: str, values: np.ndarray, rows: int) -> None:
    """Refuse degrees of freedom that are not above the number of rows less one."""
    bad = ~np.asarray(values > rows - 1)
    if bad.any():
        at, place = first_place(name, bad)
        raise ValueError(f"{owner}: {name} must be above {rows - 1} for {rows} rows, but {place} is {values[at]}")


def gammas_in_entropy(df: float, rows: float) -> float:
    """log of the multivariate gamma function at df/2, less (df - rows - 1)/2 times its derivative."""
    total = 0.25 * rows * (rows - 1.0) * LOG_PI
    for i in range(int(rows)):
        x = 0.5 * (df - i)
        total += log_gamma(x) - 0.5 * (df - rows - 1.0) * digamma(x)
    return total


class Wishart(Covariances):
    """The Wishart distribution, of positive definite matrices.

    Parameters
    ----------
    df : array_like
        Degrees of freedom, above the number of rows less one.
    covariance_matrix : array_like, optional
        Scale, in the last two axes: the mean is `df` times it. Its lower triangle is read; the upper one must agree to
        1e-6.
    precision_matrix : array_like, optional
        The inverse of the scale.
    scale_tril : array_like, optional
        The lower triangle, with a positive diagonal, whose product with its transpose is the scale. Exactly one of the
        three is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Wishart
    >>> p = Wishart(5.0, [[1.0, 0.0], [0.0, 2.0]])
    >>> round(float(kl.kl_divergence(p, Wishart(6.0, [[1.0, 0.0], [0.0, 1.0]]))), 6)
    0.550735
    """

    parameters = ("df", "covariance_matrix")
    df = Parameter(POSITIVE)
    scipy_name = "wishart"
    scipy_keywords = {"df": "df", "covariance_matrix": "scale"}  # noqa: RUF012

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        *,
        validate_args: bool = True,
    ) -> None:
        given = one_form("Wishart", covariance_matrix, precision_matrix, scale_tril)
        super().__init__(validate_args, df=df, **given)

    def _event_shape(self) -> tuple[int, ...]:
        rows = self._rows()
        return (rows, rows)

    def _validate(self) -> None:
        super()._validate()
        above_dimension("Wishart", "df", self._given["df"], self.event_shape[0])

    def _unfit(self) -> Any:
        return self._given["df"] <= self.event_shape[0] - 1

    @property
    def support(self) -> Support:
        """Positive definite matrices, any numbers off the diagonal."""
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(np.asarray(self.df)[..., None, None] * self.covariance_matrix, self.event_shape)

    @property
    def variance(self) -> Any:
        scale = self.covariance_matrix
        diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
        products = diagonal[..., :, None] * diagonal[..., None, :]
        return self._full(np.asarray(self.df)[..., None, None] * (np.square(scale) + products), self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        rows = float(self.event_shape[0])
        df = np.asarray(self.df, np.float64)
        logs = 2.0 * np.sum(np.log(np.diagonal(self.factor(), axis1=-2, axis2=-1)), -1, dtype=np.float64)
        log_det = -logs if self.form == "precision_matrix" else logs
        gammas = evaluate(gammas_in_entropy, [self._given["df"], np.asarray(rows)], self._given["df"].shape)
        return self._full(
            0.5 * (rows + 1.0) * log_det + 0.5 * rows * (rows + 1.0) * math.log(2.0) + gammas + 0.5 * df * rows
        )


def degrees_of_freedom(p: float, q: float, rows: float) -> float:
    """What is left of the divergence where the means agree.

    It is a sum over i of the remainders of log-gamma at (p - i)/2, from each of which that of x*log(x) - x at p/2 is
    taken. Of the first part of Stirling's formula this leaves little, which is written without the difference.
    """
    x, y = 0.5 * p, 0.5 * q
    d = 0.5 * (q - p)
    total = 0.0
    for i in range(int(rows)):
        h = 0.5 * i
        a, b = x - h, y - h
        t, u = h * d / (a * y), d / x
        if abs(t) <= 0.5 and abs(u) <= 0.5:
            shift = h * d * (h * d) / (a * x * y) - b * phi(t) + h * phi(u)
        else:
            shift = b * log((b / a) * (x / y)) - h * log(y / x)
        total += shift + (0.5 * excess(a, b, d) + stirling_bregman(a, b, d))
    return max(total, 0.0)


def of_degrees(p_df: np.ndarray, q_df: np.ndarray, rows: int) -> tuple[Any, Any, Any]:
    """The ratio of the degrees of freedom, that less one, and what these add to the divergence."""
    p, q = np.asarray(p_df, np.float64), np.asarray(q_df, np.float64)
    shape = np.broadcast_shapes(p.shape, q.shape)
    return p / q, (p - q) / q, evaluate(degrees_of_freedom, [p, q, np.asarray(float(rows))], shape)


@register_kl(Wishart, Wishart)
def wishart_wishart(p: Wishart, q: Wishart) -> Any:
    """Half of df times the excess of the ratio of means, and what of log-gamma is left at equal means."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    ratio, more, rest = of_degrees(p._given["df"], q._given["df"], p.event_shape[0])
    means = excess_of_covariances(shape, p, q, np.asarray(ratio), np.asarray(more))
    return (0.5 * q._given["df"] * means + rest).astype(np.result_type(p.dtype, q.dtype))
