"""The matrix normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import REAL
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.multivariate import Multivariate
from klnumba.distributions.positive_definite import (
    SYMMETRIC,
    excess,
    factor,
    mahalanobis_of_matrices,
    square,
    trace_of_ratio,
)
from klnumba.distributions.registry import register_kl
from klnumba.formulas.special import HALF_LOG_2PI


class MatrixNormal(Multivariate):
    """Matrices of normal numbers: the covariance of two is that of their rows times that of their columns.

    Parameters
    ----------
    loc : array_like
        Mean, in the last two axes.
    row_covariance, column_covariance : array_like
        Covariances between rows and between columns, in the last two axes. Their lower triangles are read; the upper
        ones must agree to 1e-6.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import MatrixNormal
    >>> p = MatrixNormal([[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> q = MatrixNormal([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(kl.kl_divergence(p, q)), 12)
    1.5
    """

    parameters = ("loc", "row_covariance", "column_covariance")
    loc = Parameter(REAL, event_dims=2)
    row_covariance = Parameter(SYMMETRIC, event_dims=2)
    column_covariance = Parameter(SYMMETRIC, event_dims=2)
    scipy_name = "matrix_normal"
    scipy_keywords = {"loc": "mean", "row_covariance": "rowcov", "column_covariance": "colcov"}  # noqa: RUF012

    def __init__(self, loc: Any, row_covariance: Any, column_covariance: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, row_covariance=row_covariance, column_covariance=column_covariance)

    def _event_shape(self) -> tuple[int, ...]:
        shape = self._given["loc"].shape[-2:]
        found = tuple(
            square("MatrixNormal", name, self._given[name]) for name in ("row_covariance", "column_covariance")
        )
        if found != shape:
            raise ValueError(
                f"MatrixNormal: loc is {shape[0]} by {shape[1]}, but the covariances are of {found[0]} rows and of "
                f"{found[1]} columns"
            )
        return shape

    def _validate(self) -> None:
        self.factor("row_covariance")
        self.factor("column_covariance")

    def factor(self, name: str) -> np.ndarray:
        """The factor of one of the covariances."""
        factors = self.__dict__.setdefault("_factors", {})
        if name not in factors:
            factors[name] = factor("MatrixNormal", name, self._given[name])
        found: np.ndarray = factors[name]
        return found

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.loc, self.event_shape)

    @property
    def variance(self) -> Any:
        rows = np.diagonal(self.row_covariance, axis1=-2, axis2=-1)
        columns = np.diagonal(self.column_covariance, axis1=-2, axis2=-1)
        return self._full(rows[..., :, None] * columns[..., None, :], self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy, in nats."""
        n, width = self.event_shape
        rows, columns = (
            np.sum(np.log(np.diagonal(self.factor(name), axis1=-2, axis2=-1)), -1)
            for name in ("row_covariance", "column_covariance")
        )
        return self._full(n * width * (0.5 + HALF_LOG_2PI) + width * rows + n * columns)


@register_kl(MatrixNormal, MatrixNormal)
def matrix_normals(p: MatrixNormal, q: MatrixNormal) -> Any:
    """[columns*excess of rows + rows*excess of columns + the square of the Mahalanobis distance]/2.

    Rows may be scaled by any number if columns are scaled by its inverse. The number taken is that by which the trace
    of the ratio of the rows' covariances becomes their count: then nothing has to be added for both together.
    """
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    n, width = p.event_shape
    rows, columns = (
        np.subtract(p._given[name], q._given[name], dtype=np.float64)
        for name in ("row_covariance", "column_covariance")
    )
    batch, unit = rows.shape[:-2], q.factor("row_covariance")
    above = np.asarray(trace_of_ratio(batch, rows, unit))
    whole = np.asarray(trace_of_ratio(batch, p._given["row_covariance"], unit))
    row_factors = p.factor("row_covariance"), q.factor("row_covariance")
    column_factors = p.factor("column_covariance"), q.factor("column_covariance")
    of_rows = excess(shape, *row_factors, rows, n / whole, -above / whole)
    of_columns = excess(shape, *column_factors, columns, whole / n, above / n)
    apart = mahalanobis_of_matrices(shape, p._given["loc"], q._given["loc"], row_factors[1], column_factors[1])
    return (0.5 * (width * of_rows + n * of_columns + apart)).astype(np.result_type(p.dtype, q.dtype))
