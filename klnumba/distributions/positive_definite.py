"""Positive definite matrices: what a parameter that is one must be, and the excess of one over another.

The excess of A over B, trace(R) - n - log(det(R)) for R = A/B, is to a matrix what r - 1 - log(r) is to a number. With
the factors A = L*L', B = K*K' and the triangle M = L/K (K times which is L), it is the sum, over the diagonal of M, of
m**2 - 1 - log(m**2), and of the squares of what is below the diagonal: no term is negative. M is not formed, but
M - I = (L - K)/K, which keeps its digits at L close to K.

Where the matrices themselves are given, L and K have the errors of the factoring, and L - K has little else at A close
to B. There R - I is formed from A - B, and the factor of R from R - I, by the same rows with the ones taken out.

Matrices come as vectors, a row of the matrix after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import REAL, Constraint
from klnumba.distributions.evaluate import evaluate_rows
from klnumba.formulas.elementary import log, two_sum
from klnumba.formulas.log_cells import phi
from klnumba.formulas.primitives import fma

CANCELLED = 2.0**12  # errors of 2**-53 whose squares add up to so much of a sum of squares may cost it 2**-46
NEAR = 0.05  # from here on the factors do; below, every eigenvalue of R is between 0.7 and 1.4

WIDE = 12  # from here on whole rows are combined, which vectorises; below, the loops would cost more than they do

# --- constraints ------------------------------------------------------------------------------------------------------


def transposed(matrices: Any) -> Any:
    """Each matrix mirrored."""
    return np.swapaxes(matrices, -1, -2)


def _symmetric(matrices: np.ndarray) -> Any:
    diagonal = np.sqrt(np.abs(np.diagonal(matrices, axis1=-2, axis2=-1)))
    allowed = 1e-6 * diagonal[..., :, None] * diagonal[..., None, :]
    return (np.abs(matrices - transposed(matrices)) <= allowed).all((-1, -2))


def _mirrored(matrices: np.ndarray) -> Any:
    """The lower triangles and what they are mirrored; what is not symmetric stays so, and is told from it."""
    if np.array_equal(matrices, transposed(matrices)):
        return matrices
    mirrored = np.tril(matrices) + transposed(np.tril(matrices, -1))
    return np.where(_symmetric(matrices)[..., None, None], mirrored, matrices)


def _lower(matrices: np.ndarray) -> Any:
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    return (diagonal > 0).all(-1) & (np.triu(matrices, 1) == 0).all((-1, -2))


def _definite(matrices: np.ndarray) -> Any:
    found = np.empty(matrices.shape[:-2], bool)
    for at in np.ndindex(found.shape):
        try:
            np.linalg.cholesky(matrices[at])
            found[at] = True
        except np.linalg.LinAlgError:
            found[at] = False
    return found


SYMMETRIC = Constraint("a symmetric matrix", _symmetric, REAL, _mirrored)
POSITIVE_DEFINITE = Constraint("positive definite", _definite)
LOWER_CHOLESKY = Constraint("a lower triangular matrix with a positive diagonal", _lower, REAL)


def square(owner: str, name: str, matrices: np.ndarray) -> int:
    """The number of rows, which is that of columns."""
    rows, columns = matrices.shape[-2:]
    if rows != columns or rows == 0:
        raise ValueError(f"{owner}: {name} must be a square matrix, but has {rows} rows and {columns} columns")
    return int(rows)


def factor(owner: str, name: str, matrices: np.ndarray) -> np.ndarray:
    """The lower triangles with a positive diagonal of which, times themselves mirrored, the matrices are made."""
    wide = np.asarray(matrices, np.float64)
    try:
        return np.linalg.cholesky(wide)
    except np.linalg.LinAlgError:
        POSITIVE_DEFINITE.check(owner, name, wide)
        raise


def factor_of_inverse(owner: str, name: str, matrices: np.ndarray) -> np.ndarray:
    """The factor of the inverse: that of the matrix turned by half a circle, turned back, inverted and mirrored."""
    upper = factor(owner, name, np.asarray(matrices)[..., ::-1, ::-1])[..., ::-1, ::-1]
    return np.tril(transposed(np.linalg.inv(upper)))


# --- formulas: loops over one matrix ----------------------------------------------------------------------------------


def eliminate(k: Any, x: Any, n: int, width: int) -> None:
    """x/k in the place of x, for a triangle k and an x of n rows of `width`."""
    for i in range(n):
        row = x[i * width : (i + 1) * width]
        j = 0
        while width >= WIDE and j + 4 <= i:
            take_four(row, k[i * n + j : i * n + j + 4], x[j * width : (j + 4) * width], width, width)
            j += 4
        while j < i:
            c = k[i * n + j]
            above = x[j * width : (j + 1) * width]
            for m in range(width):
                row[m] -= c * above[m]
            j += 1
        c = k[i * n + i]
        for m in range(width):
            row[m] /= c


def eliminate_triangle(k: Any, x: Any, n: int) -> None:
    """The same for an x that is a triangle itself, with zeros above the diagonal."""
    if n < WIDE:
        for i in range(n):
            for m in range(i + 1):
                left = x[i * n + m]
                for j in range(m, i):
                    left -= k[i * n + j] * x[j * n + m]
                x[i * n + m] = left / k[i * n + i]
        return
    for i in range(n):
        row = x[i * n : i * n + i + 1]
        j = 0
        while j + 4 <= i:
            take_four(row, k[i * n + j : i * n + j + 4], x[j * n : (j + 4) * n], n, j + 4)
            j += 4
        while j < i:
            c = k[i * n + j]
            above = x[j * n : j * n + j + 1]
            for m in range(j + 1):
                row[m] -= c * above[m]
            j += 1
        c = k[i * n + i]
        for m in range(i + 1):
            row[m] /= c


def take_four(row: Any, k: Any, x: Any, n: int, width: int) -> None:
    """Take four rows of x, times the numbers k, off a row."""
    first, second, third, fourth = x[:width], x[n : n + width], x[2 * n : 2 * n + width], x[3 * n : 3 * n + width]
    for m in range(width):
        row[m] -= (k[0] * first[m] + k[1] * second[m]) + (k[2] * third[m] + k[3] * fourth[m])


def eliminate_twofold(k: Any, x: Any, low: Any, n: int, width: int) -> None:
    """(x + low)/k in the place of both, with twice the digits."""
    for i in range(n):
        c = k[i * n + i]
        for m in range(width):
            left, lost = x[i * width + m], low[i * width + m]
            for j in range(i):
                factor_of_row, above = k[i * n + j], x[j * width + m]
                taken = factor_of_row * above
                left, e = two_sum(left, -taken)
                lost += e - (fma(factor_of_row, above, -taken) + factor_of_row * low[j * width + m])
            share = left / c
            x[i * width + m], low[i * width + m] = two_sum(share, (fma(-share, c, left) + lost) / c)


def flat(k: Any, n: int) -> bool:
    """Whether the rows of a triangle are so small beside its diagonal that an elimination loses little."""
    most = 4.0 if n <= 4 else 1.0 if n <= WIDE else 0.0  # errors grow by some (1 + most)**n, or n where that is 1
    for i in range(n):
        beside = 0.0
        for j in range(i):
            beside += abs(k[i * n + j])
        if not beside <= most * k[i * n + i]:
            return False
    return True


def error_of_elimination(k: Any, sizes: Any, errors: Any) -> float:
    """About the sum of the squares of the rounding errors of x/k, in units of that of 1, given those of x/k's rows.

    A row's own errors are as large as its terms, and as in LINPACK's estimate of a condition they have the sign that
    makes most of those of the rows above.
    """
    n = sizes.size
    total = 0.0
    for i in range(n):
        sizes[i] = math.sqrt(sizes[i])
        c = k[i * n + i]
        made, carried = c * sizes[i], 0.0
        for j in range(i):
            made += abs(k[i * n + j]) * sizes[j]
            carried += k[i * n + j] * errors[j]
        errors[i] = (-made - carried if carried > 0.0 else made - carried) / c
        total += errors[i] * errors[i]
    return total


def mirror(x: Any, n: int) -> None:
    """Exchange rows and columns."""
    for i in range(n):
        for j in range(i):
            x[i * n + j], x[j * n + i] = x[j * n + i], x[i * n + j]


def excess_of_squares(a: float, b: float, ratio: float, more: float) -> float:
    """The excess of ratio*a*a over b*b."""
    r = a / b
    off = (a - b) / b
    root = math.sqrt(ratio) * r
    d = more + ratio * (off * (2.0 + off)) if abs(more) <= 0.5 and abs(off) <= 0.5 else root * root - 1.0
    if abs(d) <= 0.5:
        return phi(d)
    log_r = log(r) if 1e-300 < r < 1e300 else log(a) - log(b)
    return d - (2.0 * log_r if ratio == 1.0 else 2.0 * log_r + log(ratio))


def finite_or_infinite(x: float) -> float:
    """x; infinite for NaN, which comes of numbers beyond the range."""
    return x if x == x else math.inf


def difference_of_triangles(a: Any, b: Any, x: Any, low: Any, n: int) -> None:
    """a - b as the sum of two numbers each."""
    for i in range(n):
        for j in range(i + 1):
            x[i * n + j], low[i * n + j] = two_sum(a[i * n + j], -b[i * n + j])
        for j in range(i + 1, n):
            x[i * n + j] = low[i * n + j] = 0.0


def excess_of_factors(room: Any, a: Any, b: Any, ratio: Any, more: Any) -> float:
    """The excess of `ratio` times the product of a over that of b, given more = ratio - 1."""
    n = int(math.sqrt(a.size))
    x, rest = room[: n * n], room[n * n :]
    for i in range(n):
        for j in range(i + 1):
            x[i * n + j] = a[i * n + j] - b[i * n + j]
        for j in range(i + 1, n):
            x[i * n + j] = 0.0
    eliminate_triangle(b, x, n)
    sizes, errors = rest[:n], rest[n : 2 * n]
    total = excess_of_quotient(a, b, x, sizes, ratio[0], more[0])
    if not flat(b, n) and ratio[0] * error_of_elimination(b, sizes, errors) > CANCELLED * total:
        difference_of_triangles(a, b, x, rest, n)
        eliminate_twofold(b, x, rest, n, n)
        total = excess_of_quotient(a, b, x, sizes, ratio[0], more[0])
    return finite_or_infinite(total)


def excess_of_quotient(a: Any, b: Any, x: Any, sizes: Any, ratio: float, more: float) -> float:
    """`excess_of_factors`, given (a - b)/b; of its rows, the squares of the lengths are left in `sizes`."""
    n = sizes.size
    root = math.sqrt(ratio)
    total = 0.0
    for i in range(n):
        squares = 0.0
        for j in range(i):
            y = root * x[i * n + j]
            squares += y * y
        own = x[i * n + i]
        sizes[i] = squares + own * own
        total += excess_of_squares(a[i * n + i], b[i * n + i], ratio, more) + squares
    return total


def excess_of_near(room: Any, difference: Any, b: Any, ratio: Any, more: Any) -> float:
    """The same of a matrix close to the product of b, given their difference; -1 where it is not that close."""
    n = int(math.sqrt(b.size))
    for i in range(n * n):
        room[i] = ratio[0] * difference[i]
    eliminate(b, room, n, n)
    mirror(room, n)
    eliminate(b, room, n, n)
    total = 0.0
    for i in range(n):
        squares = 0.0
        for j in range(i):
            left = room[i * n + j]
            for m in range(j):
                left -= room[i * n + m] * room[j * n + m]
            left /= room[j * n + j]
            room[i * n + j] = left
            squares += left * left
        t = (more[0] + room[i * n + i]) - squares
        if not abs(t) <= 0.5:
            return -1.0
        room[i * n + i] = math.sqrt(1.0 + t)
        total += phi(t) + squares
    return total


def excess_of_matrices(room: Any, difference: Any, a: Any, b: Any, ratio: Any, more: Any) -> float:
    """The same of two matrices, given their difference and the factor of each."""
    value = excess_of_factors(room, a, b, ratio, more)
    if value < NEAR:
        near = excess_of_near(room, difference, b, ratio, more)
        if near >= 0.0:
            return near
    return value


def distance(room: Any, p: Any, q: Any, b: Any) -> float:
    """The square of the length of (p - q)/b."""
    n = p.size
    x, rest = room[:n], room[n:]
    for i in range(n):
        x[i] = p[i] - q[i]
    eliminate(b, x, n, 1)
    sizes, errors = rest[:n], rest[n:]
    total = sum_of_squares(x, sizes)
    if not flat(b, n) and error_of_elimination(b, sizes, errors) > CANCELLED * total:
        for i in range(n):
            x[i], rest[i] = two_sum(p[i], -q[i])
        eliminate_twofold(b, x, rest, n, 1)
        total = sum_of_squares(x, sizes)
    return finite_or_infinite(total)


def sum_of_squares(x: Any, squares: Any) -> float:
    """The sum of the squares, which are left apart too."""
    total = 0.0
    for i in range(x.size):
        squares[i] = x[i] * x[i]
        total += squares[i]
    return total


def distance_by_inverse(room: Any, p: Any, q: Any, b: Any) -> float:
    """The square of the length of b' times p - q, for the factor b of an inverse."""
    n = p.size
    for i in range(n):
        room[i] = 0.0
    for i in range(n):
        d = p[i] - q[i]
        for j in range(i + 1):
            room[j] += b[i * n + j] * d
    total = 0.0
    for i in range(n):
        total += room[i] * room[i]
    return finite_or_infinite(total)


def distance_of_matrices(room: Any, p: Any, q: Any, b: Any, c: Any) -> float:
    """The sum of the squares of (p - q)/b/c', for matrices with rows to divide by b and columns to divide by c."""
    n = int(math.sqrt(b.size))
    width = int(math.sqrt(c.size))
    for i in range(n * width):
        room[i] = p[i] - q[i]
    eliminate(b, room, n, width)
    total = 0.0
    for i in range(n):
        row = room[i * width : (i + 1) * width]
        eliminate(c, row, width, 1)
        for j in range(width):
            total += row[j] * row[j]
    return finite_or_infinite(total)


def trace(room: Any, a: Any, b: Any) -> float:
    """The trace of the ratio of a matrix to the product of b."""
    n = int(math.sqrt(b.size))
    for i in range(n * n):
        room[i] = a[i]
    eliminate(b, room, n, n)
    mirror(room, n)
    eliminate(b, room, n, n)
    total = 0.0
    for i in range(n):
        total += room[i * n + i]
    return total


# --- over batches -----------------------------------------------------------------------------------------------------

ONE, ZERO = np.ones(()), np.zeros(())


def excess(
    shape: tuple[int, ...],
    a: np.ndarray,
    b: np.ndarray,
    difference: np.ndarray | None = None,
    ratio: np.ndarray = ONE,
    more: np.ndarray = ZERO,
) -> Any:
    """The excess of `ratio` times the matrices of factors a over those of factors b, given ratio - 1 as `more`.

    Where the matrices themselves are known, `difference` is their difference.
    """
    n = a.shape[-1]
    if difference is None:
        return evaluate_rows(excess_of_factors, [a, b, ratio, more], [2, 2, 0, 0], shape, room=2 * n * (n + 1))
    columns = [difference, a, b, ratio, more]
    return evaluate_rows(excess_of_matrices, columns, [2, 2, 2, 0, 0], shape, room=2 * n * (n + 1))


def mahalanobis(shape: tuple[int, ...], p: np.ndarray, q: np.ndarray, b: np.ndarray, inverse: bool = False) -> Any:
    """The squares of the distances from p to q in units of b: the factor of a covariance, or of its inverse."""
    formula = distance_by_inverse if inverse else distance
    return evaluate_rows(formula, [p, q, b], [1, 1, 2], shape, room=3 * p.shape[-1])


def trace_of_ratio(shape: tuple[int, ...], a: np.ndarray, b: np.ndarray) -> Any:
    """The traces of the ratios of matrices to those of factors b; of a difference, what it adds to the trace."""
    n = b.shape[-1]
    return evaluate_rows(trace, [a, b], [2, 2], shape, room=n * n)


def mahalanobis_of_matrices(shape: tuple[int, ...], p: np.ndarray, q: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    """The same distances for matrices, the covariance of rows of factor b, and that of columns of factor c."""
    n, width = b.shape[-1], c.shape[-1]
    return evaluate_rows(distance_of_matrices, [p, q, b, c], [2, 2, 2, 2], shape, room=n * width)
