"""The inverse Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.positive_definite import SYMMETRIC, excess, factor, square
from klnumba.distributions.registry import register_kl
from klnumba.distributions.wishart import LOG_PI, above_dimension, of_degrees
from klnumba.formulas.special import digamma, log_gamma


def gammas_in_entropy(df: float, rows: float) -> float:
    """log of the multivariate gamma function at df/2, less (df + rows + 1)/2 times its derivative."""
    total = 0.25 * rows * (rows - 1.0) * LOG_PI
    for i in range(int(rows)):
        x = 0.5 * (df - i)
        total += log_gamma(x) - 0.5 * (df + rows + 1.0) * digamma(x)
    return total


class InverseWishart(Multivariate):
    """The distribution of the inverse of a Wishart matrix.

    Parameters
    ----------
    df : array_like
        Degrees of freedom, above the number of rows less one.
    scale_matrix : array_like
        Scale, in the last two axes: the inverse of that of the Wishart distribution. Its lower triangle is read; the
        upper one must agree to 1e-6.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import InverseWishart
    >>> p = InverseWishart(5.0, [[1.0, 0.0], [0.0, 0.5]])
    >>> round(float(kl.kl_divergence(p, InverseWishart(6.0, [[1.0, 0.0], [0.0, 1.0]]))), 6)
    0.550735
    """

    parameters = ("df", "scale_matrix")
    df = Parameter(POSITIVE)
    scale_matrix = Parameter(SYMMETRIC, event_dims=2)
    scipy_name = "invwishart"
    scipy_keywords = {"df": "df", "scale_matrix": "scale"}  # noqa: RUF012

    def __init__(self, df: Any, scale_matrix: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, df=df, scale_matrix=scale_matrix)

    def _event_shape(self) -> tuple[int, ...]:
        rows = square("InverseWishart", "scale_matrix", self._given["scale_matrix"])
        return (rows, rows)

    def _validate(self) -> None:
        self.factor()
        above_dimension("InverseWishart", "df", self._given["df"], self.event_shape[0])

    def _unfit(self) -> Any:
        return self._given["df"] <= self.event_shape[0] - 1

    def factor(self) -> np.ndarray:
        """The factor of the scale."""
        found: np.ndarray | None = self.__dict__.get("_factor")
        if found is None:
            found = factor("InverseWishart", "scale_matrix", self._given["scale_matrix"])
            self.__dict__["_factor"] = found
        return found

    @property
    def support(self) -> Support:
        """Positive definite matrices, any numbers off the diagonal."""
        return Support(-math.inf, math.inf)

    def _beyond(self, least: float) -> Any:
        """df less the number of rows and less this; NaN where that is not positive."""
        left = np.asarray(self.df)[..., None, None] - self.event_shape[0] - least
        return np.where(left > 0.0, left, math.nan)

    @property
    def mean(self) -> Any:
        return self._full(self.scale_matrix / self._beyond(1.0), self.event_shape)

    @property
    def variance(self) -> Any:
        v = self._beyond(0.0)
        diagonal = np.diagonal(self.scale_matrix, axis1=-2, axis2=-1)
        products = diagonal[..., :, None] * diagonal[..., None, :]
        top = (v + 1.0) * np.square(self.scale_matrix) + (v - 1.0) * products
        return self._full(top / (v * np.square(v - 1.0) * self._beyond(3.0)), self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        rows = float(self.event_shape[0])
        df = np.asarray(self.df, np.float64)
        half_logs = np.sum(np.log(np.diagonal(self.factor(), axis1=-2, axis2=-1)), -1)
        gammas = evaluate(gammas_in_entropy, [self._given["df"], np.asarray(rows)], self._given["df"].shape)
        log_scale = 2.0 * half_logs - rows * math.log(2.0)
        return self._full(gammas + 0.5 * df * rows + 0.5 * (rows + 1.0) * log_scale)


@register_kl(InverseWishart, InverseWishart)
def inverse_wisharts(p: InverseWishart, q: InverseWishart) -> Any:
    """That of Wishart distributions: X of the one distribution if the inverse of X is of the other."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    ratio, more, rest = of_degrees(p._given["df"], q._given["df"], p.event_shape[0])
    difference = np.subtract(q._given["scale_matrix"], p._given["scale_matrix"], dtype=np.float64)
    means = excess(shape, q.factor(), p.factor(), difference, np.asarray(ratio), np.asarray(more))
    return (0.5 * q._given["df"] * means + rest).astype(np.result_type(p.dtype, q.dtype))
