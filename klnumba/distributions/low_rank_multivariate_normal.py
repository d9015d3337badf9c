"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.positive_definite import excess, factor, mahalanobis, transposed
from klnumba.distributions.registry import register_kl
from klnumba.formulas.special import HALF_LOG_2PI


class LowRankMultivariateNormal(Multivariate):
    """The multivariate normal distribution of covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Parameters
    ----------
    loc : array_like
        Mean, along the last axis.
    cov_factor : array_like
        In the last two axes, a row for each number of a draw; the columns are the rank.
    cov_diag : array_like
        Along the last axis.
    validate_args : bool, default True
        Check the parameters.

    Notes
    -----
    The covariance is formed: memory and time are those of `MultivariateNormal`. Two of one rank that are close to each
    other are compared by the differences of their parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import LowRankMultivariateNormal
    >>> p = LowRankMultivariateNormal([1.0, 0.0], [[1.0], [2.0]], [1.0, 1.0])
    >>> q = LowRankMultivariateNormal([0.0, 0.0], [[1.0], [2.0]], [1.0, 1.0])
    >>> round(float(kl.kl_divergence(p, q)), 12)
    0.416666666667
    """

    parameters = ("loc", "cov_factor", "cov_diag")
    loc = Parameter(REAL, event_dims=1)
    cov_factor = Parameter(REAL, event_dims=2)
    cov_diag = Parameter(POSITIVE, event_dims=1)
    scipy_name = "multivariate_normal"
    scipy_keywords = MultivariateNormal.scipy_keywords

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)

    def _event_shape(self) -> tuple[int, ...]:
        n = self._given["loc"].shape[-1]
        rows = self._given["cov_factor"].shape[-2]
        numbers = self._given["cov_diag"].shape[-1]
        if not n == rows == numbers:
            raise ValueError(
                f"{type(self).__name__}: loc has {n} numbers, cov_factor {rows} rows and cov_diag {numbers} numbers"
            )
        return (n,)

    def _wide(self, name: str) -> np.ndarray:
        return np.asarray(self._given[name], np.float64)

    def full(self) -> np.ndarray:
        """The covariance, float64."""
        columns = self._wide("cov_factor")
        return np.asarray(columns @ transposed(columns) + diagonal(self._wide("cov_diag")))

    def scale_of_covariance(self) -> np.ndarray:
        """The factor of the covariance."""
        found: np.ndarray | None = self.__dict__.get("_factor")
        if found is None:
            found = factor(type(self).__name__, "covariance_matrix", self.full())
            self.__dict__["_factor"] = found
        return found

    @property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._full(self.full(), 2 * self.event_shape)

    @property
    def scale_tril(self) -> Any:
        """The factor of the covariance: a lower triangle with a positive diagonal."""
        return self._full(self.scale_of_covariance(), 2 * self.event_shape)

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.loc, self.event_shape)

    @property
    def variance(self) -> Any:
        return self._full(np.sum(np.square(self.cov_factor), -1) + self.cov_diag, self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        logs = np.sum(np.log(np.diagonal(self.scale_of_covariance(), axis1=-2, axis2=-1)), -1)
        return self._full(self.event_shape[0] * (0.5 + HALF_LOG_2PI) + logs)

    @classmethod
    def from_scipy(cls, frozen: Any) -> NoReturn:
        """Not defined: a covariance alone says no rank."""
        raise NotImplementedError(f"{cls.__name__}: a covariance has no rank of its own; MultivariateNormal takes it")


def diagonal(values: np.ndarray) -> np.ndarray:
    """Matrices with these diagonals."""
    return values[..., None] * np.eye(values.shape[-1])


def difference_of_covariances(p: Any, q: Any) -> np.ndarray | None:
    """That of p less that of q; None where one of them is given in another form."""
    if isinstance(p, LowRankMultivariateNormal) and isinstance(q, LowRankMultivariateNormal):
        first, second = p._wide("cov_factor"), q._wide("cov_factor")
        if first.shape[-1] == second.shape[-1]:
            off = first - second
            products = off @ transposed(first) + second @ transposed(off)
            return np.asarray(products + diagonal(p._wide("cov_diag") - q._wide("cov_diag")))
    parts = [
        d.full() if isinstance(d, LowRankMultivariateNormal) else d._given.get("covariance_matrix") for d in (p, q)
    ]
    return None if parts[0] is None or parts[1] is None else np.subtract(*parts, dtype=np.float64)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def low_rank(p: Any, q: Any) -> Any:
    """That of multivariate normal distributions, of the covariances that the parameters make."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    scales = p.scale_of_covariance(), q.scale_of_covariance()
    apart = mahalanobis(shape, p._given["loc"], q._given["loc"], scales[1])
    spread = excess(shape, *scales, difference_of_covariances(p, q))
    return (0.5 * (spread + apart)).astype(np.result_type(p.dtype, q.dtype))
