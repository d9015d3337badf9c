"""Families with a covariance, which may be given by its inverse or by its factor: what they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.distribution import Parameter, exactly_one
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.positive_definite import (
    LOWER_CHOLESKY,
    ONE,
    SYMMETRIC,
    ZERO,
    excess,
    factor,
    factor_of_inverse,
    square,
    transposed,
)

FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def _covariance(distribution: Any) -> Any:
    scale = distribution.scale_tril
    return scale @ transposed(scale)


def _precision(distribution: Any) -> Any:
    inverse = np.linalg.inv(np.asarray(distribution.scale_tril, np.float64))
    return transposed(inverse) @ inverse


def _scale(distribution: Any) -> Any:
    return distribution.scale_of_covariance()


def one_form(owner: str, covariance_matrix: Any, precision_matrix: Any, scale_tril: Any) -> dict[str, Any]:
    """The one of the three that was given."""
    return exactly_one(
        owner, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
    )


class Covariances(Multivariate):
    """A family one parameter of which is a covariance, its inverse, or its factor."""

    covariance_matrix = Parameter(SYMMETRIC, _covariance, 2)
    precision_matrix = Parameter(SYMMETRIC, _precision, 2)
    scale_tril = Parameter(LOWER_CHOLESKY, _scale, 2)

    def _rows(self) -> int:
        """The number of rows of the matrix that was given."""
        return square(type(self).__name__, self.form, self._given[self.form])

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


def excess_of_covariances(
    shape: tuple[int, ...], p: Covariances, q: Covariances, ratio: np.ndarray = ONE, more: np.ndarray = ZERO
) -> Any:
    """The excess of `ratio` times the covariances of p over those of q, in the form that both were given in."""
    if p.form == q.form == "covariance_matrix":
        difference = np.subtract(p._given[p.form], q._given[p.form], dtype=np.float64)
        return excess(shape, p.factor(), q.factor(), difference, ratio, more)
    if p.form == q.form == "precision_matrix":
        difference = np.subtract(q._given[p.form], p._given[p.form], dtype=np.float64)
        return excess(shape, q.factor(), p.factor(), difference, ratio, more)
    return excess(shape, p.scale_of_covariance(), q.scale_of_covariance(), None, ratio, more)
