"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from klnumba.distributions.constraint import REAL
from klnumba.distributions.distribution import Parameter, Support, exactly_one
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.positive_definite import (
    LOWER_CHOLESKY,
    SYMMETRIC,
    excess,
    factor,
    factor_of_inverse,
    mahalanobis,
    square,
    transposed,
)
from klnumba.distributions.registry import register_kl
from klnumba.formulas.special import HALF_LOG_2PI

FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def _covariance(distribution: Any) -> Any:
    scale = distribution.scale_tril
    return scale @ transposed(scale)


def _precision(distribution: Any) -> Any:
    inverse = np.linalg.inv(np.asarray(distribution.scale_tril, np.float64))
    return transposed(inverse) @ inverse


def _scale(distribution: Any) -> Any:
    return distribution.scale_of_covariance()


class MultivariateNormal(Multivariate):
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
    covariance_matrix = Parameter(SYMMETRIC, _covariance, 2)
    precision_matrix = Parameter(SYMMETRIC, _precision, 2)
    scale_tril = Parameter(LOWER_CHOLESKY, _scale, 2)
    scipy_name = "multivariate_normal"

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        *,
        validate_args: bool = True,
    ) -> None:
        given = exactly_one(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        super().__init__(validate_args, loc=loc, **given)

    def _event_shape(self) -> tuple[int, ...]:
        n = self._given["loc"].shape[-1]
        rows = square(type(self).__name__, self.form, self._given[self.form])
        if n != rows:
            raise ValueError(f"{type(self).__name__}: loc has {n} numbers, but {self.form} {rows} rows")
        return (n,)

    def _validate(self) -> None:
        self.factor()

    @property
    def form(self) -> str:
        """Which of the three matrices was given."""
        return next(name for name in FORMS if name in self._given)

    def factor(self) -> np.ndarray:
        """The factor of the matrix that was given; scale_tril is its own."""
        found: np.ndarray | None = self.__dict__.get("_factor")
        if found is None:
            matrices = self._given[self.form]
            found = matrices if self.form == "scale_tril" else factor(type(self).__name__, self.form, matrices)
            self.__dict__["_factor"] = found
        return found

    def scale_of_covariance(self) -> np.ndarray:
        """The factor of the covariance."""
        if self.form == "precision_matrix":
            return factor_of_inverse(type(self).__name__, self.form, self._given[self.form])
        return self.factor()

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

    def to_scipy(self) -> Any:
        """The same distribution, frozen, from ``scipy.stats``, which holds no batches."""
        from scipy import stats

        if self.batch_shape != ():
            raise ValueError(
                f"{type(self).__name__}: scipy.stats.multivariate_normal is one distribution, not {self.batch_shape}"
            )
        return stats.multivariate_normal(self.loc, self.covariance_matrix)

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
    dtype = np.result_type(p.dtype, q.dtype)
    means = p._given["loc"], q._given["loc"]
    if p.form == q.form == "covariance_matrix":
        difference = np.subtract(p._given[p.form], q._given[p.form], dtype=np.float64)
        spread = excess(shape, p.factor(), q.factor(), difference)
        apart = mahalanobis(shape, *means, q.factor())
    elif p.form == q.form == "precision_matrix":
        difference = np.subtract(q._given[p.form], p._given[p.form], dtype=np.float64)
        spread = excess(shape, q.factor(), p.factor(), difference)
        apart = mahalanobis(shape, *means, q.factor(), inverse=True)
    else:
        scales = p.scale_of_covariance(), q.scale_of_covariance()
        spread = excess(shape, *scales)
        apart = mahalanobis(shape, *means, scales[1])
    return np.asarray(0.5 * (spread + apart)).astype(dtype)
