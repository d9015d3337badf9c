"""Draws of positive definite matrices, as triangular factors: a determinant may be far below the last digit of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from klnumba.distributions.inverse_wishart import InverseWishart
from klnumba.distributions.log_draws import gamma
from klnumba.distributions.places import Draws
from klnumba.distributions.wishart import Wishart

Array = np.ndarray[Any, Any]


def bartlett(rng: np.random.Generator, count: int, df: float, rows: int) -> tuple[Array, Array]:
    """Lower factors of Wishart matrices of scale 1 (Bartlett 1933), and the logarithms of their diagonals.

    Next to the least degrees of freedom a number on the diagonal may be below all numbers.
    """
    found = np.tril(rng.standard_normal((count, rows, rows)), -1)
    at = np.arange(rows)
    logs = 0.5 * (math.log(2.0) + gamma(rng, (count, rows), 0.5 * (df - at)))
    found[:, at, at] = np.exp(logs)
    return found, logs


def solved(factors: Array, right: Array) -> Array:
    """The inverse of each lower factor times a matrix; row by row, which keeps the digits of every entry."""
    found = np.empty(np.broadcast_shapes(factors.shape, right.shape))
    for i in range(factors.shape[-1]):
        known = np.einsum("...j,...jk->...k", factors[..., i, :i], found[..., :i, :])
        found[..., i, :] = (right[..., i, :] - known) / factors[..., i, i, None]
    return found


class WishartDraws:
    """Of a single distribution: X = F*F', F = C*A, where C is the factor of the scale and A a factor for scale 1."""

    def __init__(self, one: Wishart) -> None:
        self.df, self.rows = float(one.df), int(one.event_shape[0])
        self.factor = np.asarray(one.scale_of_covariance(), np.float64)
        self.constant = constant(self.df, self.factor)

    def rvs(self, count: int, rng: np.random.Generator) -> Draws:
        """So many factors."""
        factors, logs = bartlett(rng, count, self.df, self.rows)
        draws, at = Draws.around(0.0, self.factor @ factors), np.arange(self.rows)
        draws.log[:, at, at] = logs + np.log(np.diagonal(self.factor))
        return draws

    def log(self, draws: Draws) -> Array:
        """The logarithm of the density at the matrices with these factors."""
        factors = draws.numbers()
        means = np.square(solved(np.broadcast_to(self.factor, factors.shape), factors)).sum((-2, -1))
        return np.asarray((self.df - self.rows - 1.0) * log_det(draws) - 0.5 * means - self.constant)


class InverseWishartDraws:
    """Of a single distribution: F = B*U, where B is the factor of the scale and the inverse of U' one for scale 1."""

    def __init__(self, one: InverseWishart) -> None:
        self.df, self.rows = float(one.df), int(one.event_shape[0])
        self.factor = np.asarray(one.factor(), np.float64)
        self.constant = constant(self.df, self.factor, inverse=True)

    def rvs(self, count: int, rng: np.random.Generator) -> Draws:
        """So many factors."""
        upper = bartlett(rng, count, self.df, self.rows)[0][:, ::-1, ::-1]  # rows in reverse are as likely
        return Draws.around(0.0, self.factor @ solved(np.swapaxes(upper, 1, 2), np.eye(self.rows)))

    def log(self, draws: Draws) -> Array:
        """The logarithm of the density at the matrices with these factors."""
        factors = draws.numbers()
        means = np.square(solved(factors, self.factor)).sum((-2, -1))
        return np.asarray(-(self.df + self.rows + 1.0) * log_det(draws) - 0.5 * means - self.constant)


def log_det(factors: Draws) -> Array:
    """The logarithm of the determinant of a lower factor, half that of the matrix."""
    return np.asarray(factors.each(lambda x: np.diagonal(x, axis1=-2, axis2=-1)).logs().sum(-1))


def constant(df: float, factor: Array, *, inverse: bool = False) -> float:
    """What both densities are divided by, a logarithm."""
    rows = len(factor)
    whole = 0.5 * df * rows * math.log(2.0) + special.multigammaln(0.5 * df, rows)
    return float(whole + (-df if inverse else df) * log_det(Draws.around(0.0, factor)))
