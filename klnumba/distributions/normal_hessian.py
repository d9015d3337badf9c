"""The second derivatives of KL between multivariate normal distributions, by hand.

With the covariances S and T of p and q, d the difference of the means and M = S + d d', the derivatives are T^-1 d by
the means, (T^-1 - S^-1)/2 by S, and (T^-1 - T^-1 M T^-1)/2 by T; here these move, as the inverse of a matrix A moves by
-A^-1 (dA) A^-1. K. B. Petersen and M. S. Pedersen, "The Matrix Cookbook", 2012, section 2, gives the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal, diagonal
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.normal_gradient import symmetric
from klnumba.distributions.positive_definite import transposed

Array = Any  # NumPy's products of arrays are typed as anything
Normal = MultivariateNormal | LowRankMultivariateNormal
Moves = Mapping[tuple[str, str], np.ndarray]  # "p" or "q" and a name: how that parameter moves; what is not named rests


def along(p: Normal, q: Normal, shape: tuple[int, ...], moves: Moves) -> tuple[dict[str, Array], dict[str, Array]]:
    """What the derivatives by what p and q were given by change by as that moves, for a batch of this shape."""
    first, second = _Side(p, "p", shape, moves), _Side(q, "q", shape, moves)
    apart, more = first.loc - second.loc, first.move_of_loc - second.move_of_loc
    inverse, bend = second.inverse, second.move_of_inverse
    spread = first.covariance + _outer(apart, apart)
    change = first.move + _outer(more, apart) + _outer(apart, more)
    by_loc = _times(inverse, more) + _times(bend, apart)
    of_p = first.given(0.5 * (inverse - first.inverse), 0.5 * (bend - first.move_of_inverse))
    turned = bend @ spread @ inverse
    of_q = second.given(
        0.5 * (inverse - inverse @ spread @ inverse),
        0.5 * (bend - (turned + transposed(turned) + inverse @ change @ inverse)),
    )
    return {"loc": by_loc, **of_p}, {"loc": -by_loc, **of_q}


class _Side:
    """A distribution as it moves."""

    def __init__(self, x: Normal, side: str, shape: tuple[int, ...], moves: Moves) -> None:
        self.form = x.form if isinstance(x, MultivariateNormal) else "cov_factor"
        numbers = {name: np.asarray(value, np.float64) for name, value in x._given.items()}
        self.numbers = {name: np.broadcast_to(a, shape + _own(x, name, a.shape)) for name, a in numbers.items()}
        self.steps = {
            name: np.broadcast_to(moves.get((side, name), 0.0), value.shape) for name, value in self.numbers.items()
        }
        self.loc, self.move_of_loc = self.numbers["loc"], self.steps["loc"]
        scale = x.scale_of_covariance()
        narrow = np.linalg.inv(scale)
        self.covariance = np.broadcast_to(scale @ transposed(scale), shape + scale.shape[-2:])
        self.inverse = np.broadcast_to(transposed(narrow) @ narrow, shape + scale.shape[-2:])
        self.move = getattr(self, f"_move_by_{self.form}")()
        self.move_of_inverse = -(self.inverse @ self.move @ self.inverse)

    def given(self, slope: Array, bend: Array) -> dict[str, Array]:
        """What the derivatives by what was given change by, from those by the covariance and what these change by."""
        found: dict[str, Array] = getattr(self, f"_by_{self.form}")(slope, bend)
        return found

    def _move_by_covariance_matrix(self) -> Array:
        return symmetric(self.steps[self.form])

    def _by_covariance_matrix(self, slope: Array, bend: Array) -> dict[str, Array]:
        return {self.form: symmetric(bend)}

    def _move_by_precision_matrix(self) -> Array:
        return -(self.covariance @ symmetric(self.steps[self.form]) @ self.covariance)

    def _by_precision_matrix(self, slope: Array, bend: Array) -> dict[str, Array]:
        turned = self.move @ slope @ self.covariance
        return {self.form: -symmetric(turned + transposed(turned) + self.covariance @ bend @ self.covariance)}

    def _move_by_scale_tril(self) -> Array:
        product = np.tril(self.steps[self.form]) @ transposed(self.numbers[self.form])
        return product + transposed(product)

    def _by_scale_tril(self, slope: Array, bend: Array) -> dict[str, Array]:
        step = np.tril(self.steps[self.form])
        return {self.form: np.tril(2.0 * (bend @ self.numbers[self.form] + slope @ step))}

    def _move_by_cov_factor(self) -> Array:
        product = self.steps["cov_factor"] @ transposed(self.numbers["cov_factor"])
        return product + transposed(product) + diagonal(self.steps["cov_diag"])

    def _by_cov_factor(self, slope: Array, bend: Array) -> dict[str, Array]:
        by_factor = 2.0 * (symmetric(bend) @ self.numbers["cov_factor"] + symmetric(slope) @ self.steps["cov_factor"])
        return {"cov_factor": by_factor, "cov_diag": np.diagonal(bend, axis1=-2, axis2=-1)}


def _own(x: Normal, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a parameter that are not those of a batch."""
    own: tuple[int, ...] = getattr(type(x), name).split(shape)[1]
    return own


def _outer(x: Array, y: Array) -> Array:
    return x[..., :, None] * y[..., None, :]


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]
