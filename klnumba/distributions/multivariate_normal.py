"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from klnumba.distributions.constraint import REAL
from klnumba.distributions.covariances import Covariances, excess_of_covariances, one_form
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.positive_definite import mahalanobis
from klnumba.distributions.registry import register_kl
from klnumba.formulas.special import HALF_LOG_2PI


class MultivariateNormal(Covariances):
    """The multivariate normal distribution.

    Parameters
    ----------
    loc : array_like
        Mean, along the last axis.
    covariance_matrix : array_like, optional
        Covariance, in the last two axes. Its lower triangle is read; the upper one must agree to 1e-6.
    precision_matrix : array_like, optional
        The inverse of the covariance.
    scale_tril : array_like, optional
        The lower triangle, with a positive diagonal, whose product with its transpose is the covariance. Exactly one of
        the three is given.
    validate_args : bool, default True
        Check the parameters.

    Notes
    -----
    Two that are given in the same form are compared in that form. Otherwise both are taken by `scale_tril`, which
    rounds what has to be converted.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import MultivariateNormal
    >>> p = MultivariateNormal([1.0, 0.0], scale_tril=[[1.0, 0.0], [0.5, 2.0]])
    >>> float(kl.kl_divergence(p, MultivariateNormal([0.0, 0.0], scale_tril=[[1.0, 0.0], [0.0, 2.0]])))
    0.53125
    """

    parameters = ("loc", "covariance_matrix")
    loc = Parameter(REAL, event_dims=1)
    scipy_name = "multivariate_normal"
    scipy_keywords = {"loc": "mean", "covariance_matrix": "cov"}  # noqa: RUF012

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        *,
        validate_args: bool = True,
    ) -> None:
        given = one_form("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        super().__init__(validate_args, loc=loc, **given)

    def _event_shape(self) -> tuple[int, ...]:
        n = self._given["loc"].shape[-1]
        rows = self._rows()
        if n != rows:
            raise ValueError(f"{type(self).__name__}: loc has {n} numbers, but {self.form} {rows} rows")
        return (n,)

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.loc, self.event_shape)

    @property
    def variance(self) -> Any:
        return self._full(np.diagonal(self.covariance_matrix, axis1=-2, axis2=-1), self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        logs = np.sum(np.log(np.diagonal(self.factor(), axis1=-2, axis2=-1)), -1, dtype=np.float64)
        sign = -1.0 if self.form == "precision_matrix" else 1.0
        return self._full(self.event_shape[0] * (0.5 + HALF_LOG_2PI) + sign * logs)

    @classmethod
    def from_scipy(cls, frozen: Any) -> Self:
        """The family's distribution that equals a frozen one of ``scipy.stats``.

        Parameters
        ----------
        frozen : scipy.stats frozen distribution
            A ``scipy.stats.multivariate_normal(mean, cov)``.
        """
        if type(frozen).__name__ != "multivariate_normal_frozen":
            raise TypeError(f"frozen: a frozen scipy.stats.multivariate_normal, not {type(frozen).__name__}")
        return cls(frozen.mean, frozen.cov_object.covariance)


@register_kl(MultivariateNormal, MultivariateNormal)
def multivariate_normals(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    """[excess of the ratio of covariances + the square of the Mahalanobis distance of the means]/2."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    by_inverse = p.form == q.form == "precision_matrix"
    unit = q.factor() if by_inverse else q.scale_of_covariance()
    apart = mahalanobis(shape, p._given["loc"], q._given["loc"], unit, by_inverse)
    return (0.5 * (excess_of_covariances(shape, p, q) + apart)).astype(np.result_type(p.dtype, q.dtype))
