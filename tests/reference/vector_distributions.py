"""The truth for families of vectors and matrices: textbook closed forms with mpmath, as in `distributions`.

A name is that of the family, and after a point the form in which its parameters are given. A case holds the parameters
of p and those of q, each a tuple of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

from tests.reference.distributions import beta, gamma, normal
from tests.reference.entropies import x_log
from tests.reference.more_distributions import delta_poisson

DIGITS = 130
DIGITS_OF_MASSES = 500  # 1e-200 and its square
DIGITS_OF_POWERS = 200  # 1e-40 to the fourth
DIGITS_OF_LOGITS = 1000  # exp(-1000) takes 434 of them
BOUND = 1e-13
INF = mpf("inf")
Values = tuple[Any, ...]
Case = tuple[Values, Values]

NAMES: dict[str, tuple[str, ...]] = {
    "Categorical": ("probs",),
    "Categorical.logits": ("logits",),
    "OneHotCategorical": ("probs",),
    "Multinomial": ("total_count", "probs"),
    "Multinomial.logits": ("total_count", "logits"),
    "Dirichlet": ("concentration",),
    "Beta": ("concentration1", "concentration0"),
    "MultivariateNormal.covariance_matrix": ("loc", "covariance_matrix"),
    "MultivariateNormal.precision_matrix": ("loc", "precision_matrix"),
    "MultivariateNormal.scale_tril": ("loc", "scale_tril"),
    "LowRankMultivariateNormal": ("loc", "cov_factor", "cov_diag"),
    "Independent": ("loc", "scale"),  # of Normal, one axis
    "Wishart.covariance_matrix": ("df", "covariance_matrix"),
    "Wishart.precision_matrix": ("df", "precision_matrix"),
    "Wishart.scale_tril": ("df", "scale_tril"),
    "InverseWishart": ("df", "scale_matrix"),
    "NormalGamma": ("loc", "mean_precision", "concentration", "rate"),
    "MatrixNormal": ("loc", "row_covariance", "column_covariance"),
    "VonMisesFisher": ("mean_direction", "concentration"),
    "PowerSpherical": ("mean_direction", "concentration"),
    "Joint": ("loc", "scale", "concentration", "rate"),  # of a Normal and a Gamma
    "TransformedDistribution": ("loc", "scale"),  # of a Normal by exp
    "Geometric": ("probs",),
    "NegativeBinomial": ("total_count", "probs"),
    "Delta": ("v",),
    "Independent.Delta": ("v",),  # one axis
    "Mixture": ("weights", "rates"),  # of Poisson
    "Mixture.vectors": ("weights", "rates"),
    "TransformedDistribution.Poisson": ("rate", "scale"),
    "TransformedDistribution.vectors": ("rate", "scale"),
}


class Pair(NamedTuple):
    """A pair of families, its truth, the cases at which it is checked, and what it promises there."""

    p: str
    q: str
    truth: Callable[[Values, Values], Any]
    cases: Callable[[], Iterator[Case]]
    note: str = ""  # what tells it from another entry of the same families
    bound: float = BOUND


# --- exact numbers, vectors and matrices ------------------------------------------------------------------------------


def number(x: Any) -> Any:
    return mpf(float(x))


def vector(x: Any) -> list[Any]:
    return [v if isinstance(v, mpf) else mpf(float(v)) for v in np.asarray(x)]


def matrix(x: Any) -> Any:
    return mp.matrix([[mpf(float(v)) for v in row] for row in np.asarray(x)])


def diagonal(values: list[Any]) -> Any:
    found = mp.zeros(len(values))
    for i, v in enumerate(values):
        found[i, i] = v
    return found


def trace(m: Any) -> Any:
    return mp.fsum(m[i, i] for i in range(m.rows))


def log_det(m: Any) -> Any:
    """Of a positive definite matrix."""
    return mp.log(mp.det(m))


# --- closed forms -----------------------------------------------------------------------------------------------------


def shares(masses: list[Any]) -> list[Any]:
    whole = mp.fsum(masses)
    return [m / whole for m in masses]


def of_shares(p: list[Any], q: list[Any]) -> Any:
    terms = [x_log(a, a) - x_log(a, b) for a, b in zip(p, q, strict=True)]
    return INF if any(t == INF for t in terms) else mp.fsum(terms)


def categorical(p: Values, q: Values) -> Any:
    return of_shares(shares(vector(p[-1])), shares(vector(q[-1])))


def categorical_logits(p: Values, q: Values) -> Any:
    return of_shares(*(shares([mp.exp(x) for x in vector(d[-1])]) for d in (p, q)))


def multinomial(one: Callable[[Values, Values], Any]) -> Callable[[Values, Values], Any]:
    def run(p: Values, q: Values) -> Any:
        if p[0] != q[0]:
            return INF
        return mpf(0) if p[0] == 0 else number(p[0]) * one(p, q)

    return run


def surprise(chance: Any) -> Any:
    return -mp.log(chance) if chance else INF


def delta_categorical(p: Values, q: Values) -> Any:
    chances = shares(vector(q[0]))
    inside = p[0] in range(len(chances))
    return surprise(chances[int(p[0])]) if inside else INF


def delta_categorical_logits(p: Values, q: Values) -> Any:
    return delta_categorical(p, ([mp.exp(x) for x in vector(q[0])],))


def delta_one_hot(p: Values, q: Values) -> Any:
    v = list(p[0])
    return delta_categorical((v.index(1.0),), q) if sorted(v) == [0.0] * (len(v) - 1) + [1.0] else INF


def delta_multinomial(p: Values, q: Values) -> Any:
    v, n = vector(p[0]), number(q[0])
    if any(x < 0 or x != mp.floor(x) for x in v) or mp.fsum(v) != n:
        return INF
    total = -mp.loggamma(n + 1)
    for x, chance in zip(v, shares(vector(q[1])), strict=True):
        total += mp.loggamma(x + 1) + (x * surprise(chance) if x else 0)
    return total


def of_counts(v: Any, rates: Any) -> Any:
    """Minus the logarithm of the probability of one count of a Poisson distribution, or of several."""
    return mp.fsum(delta_poisson(x, rate) for x, rate in zip(vector(v), vector(rates), strict=True))


def delta_mixture(p: Values, q: Values) -> Any:
    parts = zip(shares(vector(q[0])), q[1], strict=True)
    return surprise(mp.fsum(w * mp.exp(-of_counts(np.atleast_1d(p[0]), np.atleast_1d(rates))) for w, rates in parts))


def delta_transformed(p: Values, q: Values) -> Any:
    v, rates, scales = (np.atleast_1d(x) for x in (*p, *q))
    return of_counts([x / s for x, s in zip(vector(v), vector(scales), strict=True)], rates)


def dirichlet(p: Values, q: Values) -> Any:
    a, c = vector(p[0]), vector(q[0])
    s, t = mp.fsum(a), mp.fsum(c)
    total = mp.loggamma(s) - mp.loggamma(t)
    for x, y in zip(a, c, strict=True):
        total += mp.loggamma(y) - mp.loggamma(x) + (x - y) * (mp.digamma(x) - mp.digamma(s))
    return total


def betas(p: Values, q: Values) -> Any:
    flat = [number(x) for d in (p, q) for part in d for x in np.atleast_1d(part)]
    return beta(*flat)


def normals(p: Any, cov_p: Any, q: Any, cov_q: Any) -> Any:
    inverse = mp.inverse(cov_q)
    off = mp.matrix([a - b for a, b in zip(p, q, strict=True)])
    apart = (off.T * inverse * off)[0, 0]
    return (trace(inverse * cov_p) - len(p) - log_det(cov_p) + log_det(cov_q) + apart) / 2


def covariance(name: str, values: Values) -> Any:
    """The covariance, or scale, that a family's parameters make."""
    family, _, form = name.partition(".")
    if family == "LowRankMultivariateNormal":
        columns = matrix(values[1])
        return columns * columns.T + diagonal(vector(values[2]))
    if family == "Independent":
        return diagonal([x * x for x in vector(values[1])])
    found = matrix(values[-1])
    if form == "scale_tril":
        return found * found.T
    return mp.inverse(found) if form == "precision_matrix" else found


def multivariate_normal(p: str, q: str) -> Callable[[Values, Values], Any]:
    def run(first: Values, second: Values) -> Any:
        return normals(vector(first[0]), covariance(p, first), vector(second[0]), covariance(q, second))

    return run


def independent(p: Values, q: Values) -> Any:
    columns = [vector(x) for x in (*p, *q)]
    return mp.fsum(normal(*numbers) for numbers in zip(*columns, strict=True))


def wisharts(n: Any, v: Any, m: Any, w: Any) -> Any:
    size = v.rows
    total = m * (log_det(w) - log_det(v)) + n * trace(mp.inverse(w) * v) - n * size
    for i in range(size):
        x, y = (n - i) / 2, (m - i) / 2
        total += 2 * (mp.loggamma(y) - mp.loggamma(x)) + (n - m) * mp.digamma(x)
    return total / 2


def wishart(name: str) -> Callable[[Values, Values], Any]:
    def run(p: Values, q: Values) -> Any:
        return wisharts(number(p[0]), covariance(name, p), number(q[0]), covariance(name, q))

    return run


def inverse_wishart(p: Values, q: Values) -> Any:
    scales = [mp.inverse(matrix(d[1])) for d in (p, q)]
    return wisharts(number(p[0]), scales[0], number(q[0]), scales[1])


def normal_gamma(p: Values, q: Values) -> Any:
    (m, s, a, b), (n, t, c, d) = ([number(x) for x in values] for values in (p, q))
    return gamma(a, b, c, d) + (t / s - 1 - mp.log(t / s) + t * a / b * (m - n) ** 2) / 2


def matrix_normal(p: Values, q: Values) -> Any:
    (m, u, v), (n, w, x) = ([matrix(y) for y in values] for values in (p, q))
    rows, columns = m.rows, m.cols
    over_rows, over_columns = mp.inverse(w), mp.inverse(x)
    off = m - n
    total = trace(over_rows * u) * trace(over_columns * v) - rows * columns
    total += columns * (log_det(w) - log_det(u)) + rows * (log_det(x) - log_det(v))
    return (total + trace(over_rows * off * over_columns * off.T)) / 2


def log_of_sphere(order: Any, x: Any) -> Any:
    """The logarithm of I(order, x)/x**order, but for what does not depend on x."""
    if x < 1:
        return mp.log(mp.hyp0f1(order + 1, x * x / 4)) - order * mp.log(2) - mp.loggamma(order + 1)
    return mp.log(mp.besseli(order, x)) - order * mp.log(x)


def von_mises_fisher(p: Values, q: Values) -> Any:
    (m, n), (a, b) = (vector(d[0]) for d in (p, q)), (number(d[1]) for d in (p, q))
    order = mpf(len(m)) / 2 - 1
    lengths = mp.sqrt(mp.fsum(x * x for x in m)) * mp.sqrt(mp.fsum(x * x for x in n))
    cosine = mp.fsum(x * y for x, y in zip(m, n, strict=True)) / lengths
    if a < 1:
        ratio = a / (2 * order + 2) * mp.hyp0f1(order + 2, a * a / 4) / mp.hyp0f1(order + 1, a * a / 4)
    else:
        ratio = mp.besseli(order + 1, a) / mp.besseli(order, a)
    return log_of_sphere(order, b) - log_of_sphere(order, a) + (a - b * cosine) * ratio


def power_log_norm(half: Any, c: Any) -> Any:
    """Of the density, over the uniform one."""
    return c * mp.log(2) + mp.loggamma(half + c) + mp.loggamma(2 * half) - mp.loggamma(half) - mp.loggamma(2 * half + c)


def power_mean_log(half: Any, c: Any) -> Any:
    """E log(1 + t), t the cosine to the mean direction."""
    return mp.log(2) + mp.digamma(half + c) - mp.digamma(2 * half + c)


def power_spherical_fisher(p: Values, q: Values) -> Any:
    if p[1] == q[1] == 0.0:
        return mpf(0)
    with mp.workdps(DIGITS_OF_POWERS):
        (m, n), (a, b) = (vector(d[0]) for d in (p, q)), (number(d[1]) for d in (p, q))
        half = mpf(len(m) - 1) / 2
        lengths = mp.sqrt(mp.fsum(x * x for x in m)) * mp.sqrt(mp.fsum(x * x for x in n))
        cosine = mp.fsum(x * y for x, y in zip(m, n, strict=True)) / lengths
        to_uniform = a * power_mean_log(half, a) - power_log_norm(half, a)
        norm = log_of_sphere(half - mpf(1) / 2, b) - log_of_sphere(half - mpf(1) / 2, mpf(0))
        return to_uniform + norm - b * cosine * a / (a + 2 * half)


def power_spherical(p: Values, q: Values) -> Any:
    with mp.workdps(DIGITS_OF_POWERS):
        (a, b), half = (number(d[1]) for d in (p, q)), mpf(len(p[0]) - 1) / 2
        return (a - b) * power_mean_log(half, a) + power_log_norm(half, b) - power_log_norm(half, a)


# --- parameters: small, ordinary, extreme -----------------------------------------------------------------------------

DELTAS = [0.5, -0.3, *((-1) ** k * 10.0**-k for k in range(1, 13))]

RNG = np.random.default_rng(20)
MASSES = [
    [0.2, 0.3, 0.5],
    [1.0, 1.0, 1.0],
    [1e-200, 0.5, 0.5],
    [1e-6, 1.0, 1e6],
    [0.25, 0.75, 0.0],
    [1e300, 3e300, 2e300],
    RNG.gamma(0.3, size=20),
    RNG.gamma(5.0, size=20),
]
LOGITS = [
    [0.0, 1.0, -2.0],
    [5.0, 5.0, 5.0],
    [-500.0, 0.0, 500.0],
    [-40.0, 0.0, 30.0],
    [-np.inf, 0.5, 1.0],
    [1e4, 1e4 + 1.0, 1e4 - 3.0],
    RNG.normal(0, 3, 20),
    RNG.normal(0, 1, 20),
]
CONCENTRATIONS = [
    [1.0, 1.0, 1.0],
    [2.0, 3.0, 4.0],
    [1e-4, 2.0, 30.0],
    [1e4, 2e4, 3e4],
    [1e8, 3.0, 1e-3],
    [1e8, 1e8, 1e8],
    [0.02, 0.03, 0.01],
    RNG.gamma(2.0, 2.0, 20),
    RNG.gamma(0.2, 50.0, 20) + 1e-3,
]


def moved(values: Any, delta: float) -> Iterator[np.ndarray]:
    """All numbers by one fraction; the first by itself; each by a fraction of its own."""
    values = np.asarray(values, float)
    yield values * (1 + delta)
    first = np.zeros(values.shape)
    first.flat[0] = delta
    yield values * (1 + first)
    yield values * (1 + delta * np.random.default_rng(values.size).uniform(-1, 1, values.shape))


def rows_of(table: list[Any], additive: bool = False) -> Callable[[], Iterator[Case]]:
    """All rows of one length with each other, and each with those close to it."""

    def run() -> Iterator[Case]:
        for a, b in product(table, table):
            if len(a) == len(b):
                yield (np.asarray(a),), (np.asarray(b),)
        for a in table:
            for delta in DELTAS:
                for b in moved(np.ones(len(a)), delta):
                    yield (np.asarray(a),), (np.asarray(a) + (b - 1) if additive else np.asarray(a) * b,)

    return run


def counted(counts: list[float], rows: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    def run() -> Iterator[Case]:
        for i, (p, q) in enumerate(rows()):
            n = counts[i % len(counts)]
            yield (n, *p), (n, *q)
            if i < 5:
                yield (n, *p), (n + 1, *q)

    return run


NEARLY_SURE = [[1e-200, 1.0], [1e-20, 1.0, 0.0]]


def places_of_one(table: list[Any], as_vectors: bool = False) -> Callable[[], Iterator[Case]]:
    """Every category of each row, and what is none."""

    def run() -> Iterator[Case]:
        for row in map(np.asarray, table):
            rows = np.eye(len(row))
            yield from (((rows[i] if as_vectors else float(i),), (row,)) for i in range(len(row)))
            for off in (rows[0] + rows[1], -rows[0], 0.5 * rows[0]) if as_vectors else (-1.0, 0.5, float(len(row))):
                yield (off,), (row,)

    return run


def places_of_counts() -> Iterator[Case]:
    """Counts that are likely, all of one category, and what cannot be."""
    rng = np.random.default_rng(18)
    for row in map(np.asarray, MASSES + NEARLY_SURE):
        for n in (0.0, 1.0, 2.0, 10.0, 1e3, 1e6, 1e12):
            likely = rng.multinomial(int(n), row / row.max() / (row / row.max()).sum()).astype(float)
            last = np.eye(len(row))[-1]
            for v in (likely, n * last, n * last[::-1], likely + last):
                yield (v,), (n, row)


def places_of_mixtures() -> Iterator[Case]:
    """From nearly sure to unlikely."""
    for weights in ([1.0, 3.0], [0.5, 0.0], [1e-200, 1.0]):
        for rates in ([1e-20, 3e-20], [0.0, 2.0], [0.3, 1.0], [2.0, 30.0], [1e3, 2e3], [1e6, 1.0]):
            for v in (0.0, 1.0, 3.0, 10.0, 1e3, 1e6, 0.5, -1.0):
                yield (v,), (np.asarray(weights), np.asarray(rates))


def places_of_scaled() -> Iterator[Case]:
    """Whole multiples of the scale, and what is none."""
    for rate, scale in product((1e-20, 0.3, 2.0, 1e3, 1e6), (0.5, -2.0, 3.0)):
        yield from (((scale * k,), (rate, scale)) for k in (0.0, 1.0, 3.0, 1e3, 1e6, 0.5, -1.0))


def vectors_of(cases: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    """The numbers of two neighbouring cases as vectors, with the weights of the first."""

    def run() -> Iterator[Case]:
        for (p, q), (other, (_, more)) in pairwise(cases()):
            weights_or_rate = q[0] if np.ndim(q[0]) else np.array([q[0], 0.5])
            yield (np.array([*p, *other]),), (weights_or_rate, np.stack([q[1], more], -1))

    return run


def two_parts(first_is_beta: bool) -> Callable[[], Iterator[Case]]:
    table = [[1.0, 1.0], [2.0, 3.0], [1e-4, 2.0], [1e8, 3.0], [1e4, 2e4]]

    def run() -> Iterator[Case]:
        for (p,), (q,) in rows_of(table)():
            yield (tuple(p), (q,)) if first_is_beta else ((p,), tuple(q))

    return run


def triangle(rng: np.random.Generator, n: int, spread: float) -> np.ndarray:
    """A factor with a diagonal from 1 to `spread`, and numbers of the size of their row's below it."""
    own = spread ** rng.uniform(0, 1, n)
    return np.tril(rng.uniform(-0.5, 0.5, (n, n)), -1) * own[:, None] / np.sqrt(n) + np.diag(own)


def steep(rng: np.random.Generator, n: int, slope: float) -> np.ndarray:
    """A factor with numbers below its diagonal that are so many times those on it."""
    return np.tril(slope * rng.normal(size=(n, n)), -1) + np.diag(rng.uniform(0.5, 2.0, n))


def definite(rng: np.random.Generator, n: int, condition: float) -> np.ndarray:
    """A symmetric matrix with eigenvalues from 1 to `condition`."""
    turn, _ = np.linalg.qr(rng.normal(size=(n, n)))
    found = (turn * np.geomspace(1.0, condition, n)) @ turn.T
    return np.tril(found) + np.tril(found, -1).T


def near_matrices(m: np.ndarray, delta: float, symmetric: bool) -> Iterator[np.ndarray]:
    """All numbers by one fraction; the first by itself; each by a fraction of its own."""
    for found in moved(m, delta):
        yield np.tril(found) + np.tril(found, -1).T if symmetric else found


def small(delta: float, condition: float) -> bool:
    """Whether a matrix of this condition stays definite when its numbers are moved by the fraction."""
    return abs(delta) * condition < 0.2


def matrices(
    make: Callable[[np.random.Generator, int, float], np.ndarray],
    spread: float,
    symmetric: bool,
    heads: Callable[[int], list[Any]],
    sizes: tuple[int, ...] = (1, 2, 3, 6),
    near: bool = True,
) -> Callable[[], Iterator[Case]]:
    """Cases of (head, matrix): heads are means or degrees of freedom."""

    def run() -> Iterator[Case]:
        rng = np.random.default_rng(7)
        for n in sizes:
            table = [make(rng, n, spread) for _ in range(3)]
            table += [table[0] * 1e-100, table[1] * 1e3]
            options = heads(n)
            for i, (a, b) in enumerate(product(table, table)):
                if a is not b:
                    yield (options[i % len(options)], a), (options[(i + 1) % len(options)], b)
            for delta in DELTAS if near else ():
                for a in (table[0], table[3]):
                    if symmetric and not small(delta, spread):
                        continue
                    for b in near_matrices(a, delta, symmetric):
                        yield (options[0], a), (options[0], b)
                        yield (options[0], a), (options[0] * (1 + delta), b)

    return run


def means(n: int) -> list[Any]:
    return [np.linspace(-1.0, 2.0, n) + 0.3, np.zeros(n), np.linspace(3.0, 1e3, n)]


def degrees(n: int) -> list[Any]:
    return [n + 2.5, float(n), n - 0.9, 1e4, 60.0, 1e7]


def balanced() -> Iterator[Case]:
    """Many degrees of freedom, and such that their product with the scale, or the quotient, is all but that of p."""
    rng = np.random.default_rng(13)
    for n in (1, 2, 4):
        scale = definite(rng, n, 10.0)
        for delta in DELTAS:
            if small(delta, 10.0):
                for other in near_matrices(scale, delta, True):
                    for sign in (1, -1):
                        yield (1e7, scale), (1e7 * (1 + sign * delta), other)


def of_covariance(condition: float, near: bool = True, heads: Any = means) -> Callable[[], Iterator[Case]]:
    return matrices(definite, condition, True, heads, near=near)


def of_factor(spread: float, near: bool = True, heads: Any = means) -> Callable[[], Iterator[Case]]:
    return matrices(triangle, spread, False, heads, near=near)


def of_steep_factor(slope: float, heads: Any = means) -> Callable[[], Iterator[Case]]:
    return matrices(steep, slope, False, heads)


def mixed(p: Any, q: Any) -> Callable[[], Iterator[Case]]:
    """p from one table and q from another of the same sizes, in the order in which they come."""

    def run() -> Iterator[Case]:
        for (first, _), (_, second) in zip(p(), q(), strict=True):
            yield first, second

    return run


def low_ranks(near: bool = True) -> Callable[[], Iterator[Case]]:
    def run() -> Iterator[Case]:
        rng = np.random.default_rng(8)
        for n, rank in ((1, 1), (3, 1), (5, 2), (8, 3)):
            table = [(means(n)[1], rng.normal(size=(n, rank)), rng.uniform(0.5, 2.0, n)) for _ in range(4)]
            yield from ((a, b) for a in table for b in table if a is not b)
            for delta in DELTAS if near else ():
                for columns in moved(table[0][1], delta):
                    yield table[0], (table[0][0], columns, table[0][2])
                    yield table[0], (table[0][0] * (1 + delta), columns, table[0][2] * (1 + delta))

    return run


def low_rank_and_full(first_is_low: bool) -> Callable[[], Iterator[Case]]:
    def run() -> Iterator[Case]:
        rng = np.random.default_rng(9)
        for p, _ in low_ranks(near=False)():
            n = len(p[0])
            full = (np.full(n, 0.5), definite(rng, n, 20.0))
            yield (p, full) if first_is_low else (full, p)

    return run


def independents() -> Iterator[Case]:
    rng = np.random.default_rng(10)
    for n in (1, 3, 30):
        table = [(rng.normal(size=n) * s, s * rng.uniform(0.5, 2.0, n)) for s in (1.0, 1e-3, 1e5, 1e-150)]
        yield from ((a, b) for a in table for b in table if a is not b)
        for a in table:
            for delta in DELTAS:
                for scale in moved(a[1], delta):
                    yield a, (a[0], scale)
                    yield a, (a[0] + delta * a[1], scale)


def independent_and_full(first_is_independent: bool) -> Callable[[], Iterator[Case]]:
    """A factor that is nearly diagonal, or not at all."""

    def run() -> Iterator[Case]:
        rng = np.random.default_rng(11)
        for n in (1, 3, 6):
            for delta in [1.0, *DELTAS]:
                scale = rng.uniform(0.5, 2.0, n)
                loc = rng.normal(size=n)
                full = np.diag(scale) + delta * np.tril(rng.uniform(-0.3, 0.3, (n, n)))
                pair = (loc, scale), (loc * (1 + delta), full)
                yield pair if first_is_independent else (pair[1], pair[0])

    return run


def normal_gammas() -> Iterator[Case]:
    table = [(0.0, 1.0, 1.0, 1.0), (1.5, 0.3, 2.5, 0.7), (-3.0, 1e-3, 0.3, 40.0), (1e5, 1e6, 1e4, 1e2)]
    yield from ((a, b) for a in table for b in table if a is not b)
    for a in table:
        for delta in DELTAS:
            for b in moved(a, delta):
                yield a, tuple(b.tolist())


def matrix_normals(condition: float) -> Callable[[], Iterator[Case]]:
    def run() -> Iterator[Case]:
        rng = np.random.default_rng(12)
        for n, width in ((1, 1), (2, 3), (4, 2)):
            table = [
                (rng.normal(size=(n, width)), definite(rng, n, condition), definite(rng, width, condition))
                for _ in range(3)
            ]
            yield from ((a, b) for a in table for b in table if a is not b)
            m, u, v = table[0]
            for delta in DELTAS:
                if small(delta, condition):
                    for w in near_matrices(u, delta, True):
                        yield (m, u, v), (m, w, v)
                        yield (m, u, v), (m * (1 + delta), w, v * (1 + delta))
                        yield (m, u, v), (m, w, v * (1 - 0.9 * delta))  # a scale is nearly taken back

    return run


def directions() -> Iterator[Case]:
    """Concentrations of all sizes, about directions far apart, close together and all but opposite."""
    rng = np.random.default_rng(14)
    table = [0.0, 1e-40, 1e-3, 0.5, 3.0, 20.0, 63.5, 64.5, 1e3, 1e8]

    def unit(v: np.ndarray) -> np.ndarray:
        return np.asarray(v / np.sqrt(np.sum(v * v)))

    for size in (2, 3, 6, 25, 300):
        m, n = unit(rng.normal(size=size)), unit(rng.normal(size=size))
        for a, b in product(table, table):
            yield (m, a), (n, b)
        for a in table[2:]:
            for delta in DELTAS:
                turned = unit(m + delta * n)
                yield (m, a), (m, a * (1 + delta))
                yield (m, a), (turned, a)
                yield (m, a), (turned, a * (1 - delta))
                yield (m, a), (-turned, a)


def powers() -> Iterator[Case]:
    """A power spherical and a von Mises-Fisher distribution, far apart and close together."""
    rng = np.random.default_rng(17)
    table = [0.0, 1e-40, 1e-3, 0.5, 3.0, 63.5, 1e3, 1e8]
    for size in (2, 3, 25, 300):
        m, n = (np.asarray(v / np.sqrt(np.sum(v * v))) for v in rng.normal(size=(2, size)))
        for a, b in product(table, table):
            yield (m, a), (n, b)
            yield (m, a), (m, b)
        for a in table[1:]:
            best = a * (a + size - 1.0) / (2.0 * a + size - 1.0)
            for delta in [0.0, *DELTAS[::3]]:
                turned = m + 1e-3 * delta * n
                yield (m, a), (m, best * (1 + delta))
                yield (m, a), (turned / np.sqrt(np.sum(turned * turned)), best)


def powers_of_one_direction(uniform: bool) -> Callable[[], Iterator[Case]]:
    """Two concentrations for one direction, the first 0 or not."""

    def run() -> Iterator[Case]:
        table = [1e-40, 1e-3, 0.5, 3.0, 20.0, 1e3, 1e8]
        for size in (2, 3, 6, 25, 300):
            m = np.eye(size)[0]
            for a, b in product([0.0] if uniform else table, table):
                yield (m, a), (m, b)
            for a, delta in product([] if uniform else table, DELTAS):
                yield (m, a), (m, a * (1 + delta))

    return run


def independent_and_low_rank(first_is_independent: bool) -> Callable[[], Iterator[Case]]:
    """Two distributions of one size, not close."""

    def run() -> Iterator[Case]:
        rng = np.random.default_rng(15)
        for low, _ in low_ranks(near=False)():
            n = len(low[0])
            pair = (rng.normal(size=n), rng.uniform(0.5, 2.0, n)), low
            yield pair if first_is_independent else (pair[1], pair[0])

    return run


def blocks() -> Iterator[Case]:
    """A normal and a gamma distribution as one, far apart and close together."""
    rng = np.random.default_rng(16)
    for delta in [2.0, 0.5, *DELTAS, *DELTAS]:
        p = (rng.normal(), rng.uniform(0.5, 2.0), rng.uniform(0.5, 20.0), rng.uniform(0.5, 2.0))
        yield p, (p[0] + delta, p[1] * (1 + abs(delta)), p[2] * (1 + abs(delta)), p[3])


def joint(p: Values, q: Values) -> Any:
    first, second = [number(x) for x in p], [number(x) for x in q]
    return normal(*first[:2], *second[:2]) + gamma(*first[2:], *second[2:])


def bases() -> Iterator[Case]:
    yield from ((p[:2], q[:2]) for p, q in blocks())


def transformed(p: Values, q: Values) -> Any:
    return normal(*map(number, p), *map(number, q))


CHANCES = [1e-200, 1e-6, 0.25, 0.3, 0.5, 0.999999]


def first_failures(geometric_first: bool) -> Callable[[], Iterator[Case]]:
    """Counts up to the first success, as a geometric and as a negative binomial distribution of one failure."""

    def run() -> Iterator[Case]:
        chances = [(a, b) for a in CHANCES for b in CHANCES if a + b < 1.5 and b > 1e-100]
        chances += [(a, (1 - a) * (1 - delta)) for a in CHANCES[2:5] for delta in DELTAS if abs(delta) < 1]
        for a, b in chances:
            if a > 1e-100 or geometric_first:
                yield ((a,), (1.0, b)) if geometric_first else ((1.0, b), (a,))

    return run


def first_failure(geometric_first: bool) -> Callable[[Values, Values], Any]:
    def run(p: Values, q: Values) -> Any:
        a = number(p[0]) if geometric_first else 1 - number(p[1])
        b = 1 - number(q[1]) if geometric_first else number(q[0])
        with mp.workdps(1000):
            return (x_log(a, a) - x_log(a, b) + x_log(1 - a, 1 - a) - x_log(1 - a, 1 - b)) / a

    return run


MVN, LOW, IND = "MultivariateNormal", "LowRankMultivariateNormal", "Independent"
COV, PREC, TRIL = f"{MVN}.covariance_matrix", f"{MVN}.precision_matrix", f"{MVN}.scale_tril"


def of_normals(p: str, q: str, cases: Any, **more: Any) -> Pair:
    return Pair(p, q, multivariate_normal(p, q), cases, **more)


WISHARTS = [
    ("Wishart.covariance_matrix", wishart("Wishart.covariance_matrix")),
    ("Wishart.precision_matrix", wishart("Wishart.precision_matrix")),
    ("InverseWishart", inverse_wishart),
]

OF_TRIANGLES = wishart("Wishart.scale_tril")

PAIRS = [
    Pair("Categorical", "Categorical", categorical, rows_of(MASSES)),
    Pair("Categorical.logits", "Categorical.logits", categorical_logits, rows_of(LOGITS, additive=True)),
    Pair("Categorical", "OneHotCategorical", categorical, rows_of(MASSES[:4])),
    Pair("OneHotCategorical", "Categorical", categorical, rows_of(MASSES[:4])),
    Pair("OneHotCategorical", "OneHotCategorical", categorical, rows_of(MASSES[:4])),
    Pair("Multinomial", "Multinomial", multinomial(categorical), counted([10, 0, 1, 1e6], rows_of(MASSES))),
    Pair(
        "Multinomial.logits",
        "Multinomial.logits",
        multinomial(categorical_logits),
        counted([10, 1e6], rows_of(LOGITS, additive=True)),
    ),
    Pair("Delta", "Categorical", delta_categorical, places_of_one(MASSES + NEARLY_SURE)),
    Pair("Delta", "Categorical.logits", delta_categorical_logits, places_of_one(LOGITS)),
    Pair("Delta", "Mixture", delta_mixture, places_of_mixtures, note="of Poisson"),
    Pair(
        *("Delta", "TransformedDistribution.Poisson", delta_transformed, places_of_scaled),
        note="of Poisson",
    ),
    Pair("Independent.Delta", "Mixture.vectors", delta_mixture, vectors_of(places_of_mixtures), note="of Poisson"),
    Pair(
        *("Independent.Delta", "TransformedDistribution.vectors", delta_transformed, vectors_of(places_of_scaled)),
        note="of Poisson",
    ),
    Pair("Independent.Delta", "OneHotCategorical", delta_one_hot, places_of_one(MASSES + NEARLY_SURE, True)),
    Pair("Independent.Delta", "Multinomial", delta_multinomial, places_of_counts),
    Pair("Dirichlet", "Dirichlet", dirichlet, rows_of(CONCENTRATIONS)),
    Pair("Beta", "Dirichlet", betas, two_parts(True)),
    Pair("Dirichlet", "Beta", betas, two_parts(False)),
    of_normals(TRIL, TRIL, of_factor(10.0)),
    of_normals(TRIL, TRIL, of_factor(1e6), note="diagonal from 1 to 1e6"),
    of_normals(TRIL, TRIL, of_steep_factor(1e3), note="1e3 times the diagonal below it"),
    of_normals(TRIL, TRIL, of_steep_factor(1e8), note="1e8 times the diagonal below it"),
    of_normals(COV, COV, of_covariance(10.0), note="condition 10"),
    of_normals(COV, COV, of_covariance(1e3), note="condition 1e3", bound=3e-13),
    of_normals(COV, COV, of_covariance(1e6), note="condition 1e6", bound=3e-10),
    of_normals(PREC, PREC, of_covariance(10.0), note="condition 10"),
    of_normals(PREC, PREC, of_covariance(1e3), note="condition 1e3", bound=3e-13),
    of_normals(COV, TRIL, mixed(of_covariance(10.0, near=False), of_factor(10.0, near=False)), note="not close"),
    of_normals(PREC, COV, mixed(of_covariance(10.0, near=False), of_covariance(10.0, near=False)), note="not close"),
    of_normals(LOW, LOW, low_ranks()),
    of_normals(LOW, COV, low_rank_and_full(True), note="not close"),
    of_normals(COV, LOW, low_rank_and_full(False), note="not close"),
    Pair(IND, IND, independent, independents),
    of_normals(IND, TRIL, independent_and_full(True)),
    of_normals(TRIL, IND, independent_and_full(False)),
    *(
        Pair(name, name, formula, cases, note=note)
        for name, formula, cases, note in (
            ("Wishart.scale_tril", OF_TRIANGLES, of_factor(10.0, heads=degrees), ""),
            ("Wishart.scale_tril", OF_TRIANGLES, of_steep_factor(1e8, degrees), "1e8 times the diagonal below it"),
            *((name, formula, of_covariance(10.0, heads=degrees), "condition 10") for name, formula in WISHARTS),
        )
    ),
    *(
        Pair(name, name, formula, balanced, note="df 1e7, means nearly equal", bound=1e-12)
        for name, formula in WISHARTS
    ),
    Pair("NormalGamma", "NormalGamma", normal_gamma, normal_gammas),
    Pair("MatrixNormal", "MatrixNormal", matrix_normal, matrix_normals(10.0), note="condition 10"),
    Pair("VonMisesFisher", "VonMisesFisher", von_mises_fisher, directions),
    Pair("PowerSpherical", "VonMisesFisher", power_spherical_fisher, powers),
    Pair("PowerSpherical", "PowerSpherical", power_spherical, powers_of_one_direction(False), note="one direction"),
    Pair("VonMisesFisher", "PowerSpherical", power_spherical, powers_of_one_direction(True), note="concentration 0"),
    of_normals(IND, LOW, independent_and_low_rank(True), note="not close"),
    of_normals(LOW, IND, independent_and_low_rank(False), note="not close"),
    Pair("Joint", "Joint", joint, blocks, note="of Normal and Gamma"),
    Pair("TransformedDistribution", "TransformedDistribution", transformed, bases, note="of Normal by exp"),
    Pair("Geometric", "NegativeBinomial", first_failure(True), first_failures(True), note="total_count 1"),
    Pair("NegativeBinomial", "Geometric", first_failure(False), first_failures(False), note="total_count 1"),
]  # fmt: skip


def same(p: Values, q: Values) -> bool:
    return len(p) == len(q) and all(np.array_equal(a, b) for a, b in zip(p, q, strict=True))


def truth(pair: Pair, case: Case) -> Any:
    """KL(p || q) to at least 60 digits."""
    if pair.p == pair.q and same(*case):
        return mpf(0)
    masses = pair.q.startswith(("Categorical", "OneHot", "Multinomial", "Mixture"))
    with mp.workdps(DIGITS_OF_LOGITS if pair.q.endswith("logits") else DIGITS_OF_MASSES if masses else DIGITS):
        return pair.truth(*case)
