"""The derivatives of KL between multivariate normal distributions, by hand.

With the factors P and Q of the covariances, E = Q^-1 (P - Q) and u = Q^-1 (mean_p - mean_q), the covariance of p in
the units of q is M = I + V with V = E + E' + E E'. All derivatives are products with E, V and u, which vanish where
p = q, so that none is a difference of large numbers. K. B. Petersen and M. S. Pedersen, "The Matrix Cookbook", 2012,
sections 2 and 8, gives the rules. By a symmetric matrix the derivative is the symmetric one, which PyTorch gives too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal, difference_of_covariances
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.positive_definite import transposed

Array = Any  # NumPy's products of arrays are typed as anything
Normal = MultivariateNormal | LowRankMultivariateNormal


def gradient(p: Normal, q: Normal) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The derivatives by what p was given by, and by what q was."""
    at = _Point(p, q)
    of_p = {"loc": at.pull(at.off), **at.by(p, "p")}
    of_q = {"loc": -at.pull(at.off), **at.by(q, "q")}
    return MappingProxyType(_kept(of_p, at.dtype)), MappingProxyType(_kept(of_q, at.dtype))


def _kept(found: dict[str, Array], dtype: Any) -> dict[str, Array]:
    with np.errstate(over="ignore", under="ignore"):
        return {name: x.astype(dtype) for name, x in found.items()}


class _Point:
    """Two distributions, and what their derivatives are made of."""

    def __init__(self, p: Normal, q: Normal) -> None:
        self.dtype = np.result_type(p.dtype, q.dtype)
        self.shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
        self.scale_p, self.scale_q = (self._matrix(x.scale_of_covariance()) for x in (p, q))
        self.inverse = np.linalg.inv(self.scale_q)
        apart = self._vector(p.loc) - self._vector(q.loc)
        self.off = (self.inverse @ apart[..., None])[..., 0]
        self.step = self.inverse @ (self.scale_p - self.scale_q)
        self.beyond = self._beyond(p, q)

    def _matrix(self, x: Any) -> Array:
        return np.broadcast_to(np.asarray(x, np.float64), (*self.shape, *np.shape(x)[-2:]))

    def _vector(self, x: Any) -> Array:
        return np.broadcast_to(np.asarray(x, np.float64), (*self.shape, np.shape(x)[-1]))

    def _beyond(self, p: Normal, q: Normal) -> Array:
        """V, from the covariances themselves where both were given by them."""
        change = difference_of_covariances(p, q)
        if change is not None:
            return self.inverse @ self._matrix(change) @ transposed(self.inverse)
        return self.step + transposed(self.step) + self.step @ transposed(self.step)

    def by(self, x: Normal, side: str) -> dict[str, Array]:
        """The derivatives by what gave the covariance of a side: of one of low rank, as that moves with its parts."""
        if isinstance(x, MultivariateNormal):
            return {x.form: getattr(self, f"{side}_{x.form}")()}
        slope = getattr(self, f"{side}_covariance_matrix")()
        by_factor = 2.0 * (slope @ self._matrix(x._given["cov_factor"]))
        return {"cov_factor": by_factor, "cov_diag": np.diagonal(slope, axis1=-2, axis2=-1)}

    def pull(self, x: Array) -> Array:
        """Q'^-1 x."""
        return (transposed(self.inverse) @ x[..., None])[..., 0]

    def _spread(self) -> Array:
        """V + u u', how the second moments differ about the mean of q."""
        return self.beyond + self.off[..., :, None] * self.off[..., None, :]

    # by what p was given by

    def p_scale_tril(self) -> Array:
        lower = np.tril(transposed(self.inverse) @ self.step)
        first, second = (np.diagonal(x, axis1=-2, axis2=-1) for x in (self.scale_p, self.scale_q))
        places = np.arange(first.shape[-1])
        lower[..., places, places] += (first - second) / (first * second)
        return lower

    def p_covariance_matrix(self) -> Array:
        whole = self.beyond + np.eye(self.beyond.shape[-1])
        return self._between(0.5 * np.linalg.solve(whole, self.beyond))

    def p_precision_matrix(self) -> Array:
        return self._by_inverse(self.p_covariance_matrix(), self.scale_p)

    # by what q was given by

    def q_scale_tril(self) -> Array:
        return -np.tril(transposed(self.inverse) @ self._spread())

    def q_covariance_matrix(self) -> Array:
        return self._between(-0.5 * self._spread())

    def q_precision_matrix(self) -> Array:
        return symmetric(0.5 * self.scale_q @ self._spread() @ transposed(self.scale_q))

    def _between(self, x: Array) -> Array:
        """Q'^-1 x Q^-1."""
        return symmetric(transposed(self.inverse) @ x @ self.inverse)

    @staticmethod
    def _by_inverse(slope: Array, scale: Array) -> Array:
        """The derivative by the inverse of a covariance, from that by the covariance."""
        covariance = scale @ transposed(scale)
        return symmetric(-(covariance @ slope @ covariance))


def symmetric(x: Array) -> Array:
    """The mean of a matrix and its transpose."""
    return 0.5 * (x + transposed(x))
