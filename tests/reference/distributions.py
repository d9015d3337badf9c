"""The truth for distributions: textbook closed forms with mpmath, the parameters taken as the numbers they are.

Nothing is rearranged: the forms are written as they stand in the literature, cancellation and all, and computed with so
many digits that none of it shows. Families are named by their class; parameters are tuples in the order of the class.
Families with a probability have a second name, such as ``Bernoulli.logits``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from mpmath import mp, mpf

from tests.reference.cross_distributions import CROSS_CLOSED, moyals
from tests.reference.entropies import (
    h_exponential,
    h_gamma,
    h_gumbel,
    h_laplace,
    h_normal,
    h_pareto,
    h_uniform,
    to_gamma,
    to_gumbel,
    to_laplace,
    to_normal,
    x_log,
)
from tests.reference.further_distributions import FURTHER_CLOSED
from tests.reference.more_distributions import (
    MORE_CLOSED,
    MORE_LOCATIONS,
    MORE_PARAMETERS,
    binomial_of_more,
    coincidences,
)

DIGITS = 130
DIGITS_OF_ODDS = 1000  # 1 + exp(-1000) takes 434 of them, 1 - 1e-200 takes 200
INF = mpf("inf")
Number = Any
Formula = Callable[..., Any]


def two_outcomes(p: Number, q: Number) -> Number:
    """Of one draw."""
    other = 1 - p
    return (x_log(p, p) - x_log(p, q)) + (x_log(other, other) - x_log(other, 1 - q))


def sigmoid(a: Number) -> Number:
    """A probability from its log-odds."""
    return mpf(1) if a == INF else mpf(0) if a == -INF else 1 / (1 + mp.exp(-a))


def normal(m: Number, s: Number, n: Number, t: Number) -> Number:
    r = (s / t) ** 2
    return (r - 1 - mp.log(r) + ((m - n) / t) ** 2) / 2


def laplace(m: Number, s: Number, n: Number, t: Number) -> Number:
    d = abs(m - n)
    return mp.log(t / s) + d / t + (s / t) * mp.exp(-d / s) - 1


def gumbel(m: Number, s: Number, n: Number, t: Number) -> Number:
    r = s / t
    return -mp.log(r) + mp.euler * (r - 1) + (m - n) / t + mp.exp((n - m) / t + mp.loggamma(1 + r)) - 1


def cauchy(m: Number, s: Number, n: Number, t: Number) -> Number:
    return mp.log(((s + t) ** 2 + (m - n) ** 2) / (4 * s * t))


def exponential(r: Number, s: Number) -> Number:
    return s / r - 1 - mp.log(s / r)


def gamma(a: Number, b: Number, c: Number, d: Number) -> Number:
    return (
        (a - c) * mp.digamma(a) - mp.loggamma(a) + mp.loggamma(c) + c * mp.log(b / d) + a * (d - b) / b
    )  # fmt: skip


def weibull(s: Number, k: Number, t: Number, n: Number) -> Number:
    first = mp.log(k) - k * mp.log(s) - mp.log(n) + n * mp.log(t)
    return first + (k - n) * (mp.log(s) - mp.euler / k) + (s / t) ** n * mp.gamma(n / k + 1) - 1


def pareto(m: Number, a: Number, n: Number, b: Number) -> Number:
    return INF if m < n else b * mp.log(m / n) + mp.log(a / b) + b / a - 1


def uniform(a: Number, b: Number, c: Number, d: Number) -> Number:
    return mp.log((d - c) / (b - a)) if c <= a and b <= d else INF


def poisson(r: Number, s: Number) -> Number:
    return s if r == 0 else INF if s == 0 else r * mp.log(r / s) - r + s


def binomial(n: Number, p: Number, m: Number, q: Number) -> Number:
    if p == 0:
        return -x_log(m, 1 - q)
    if n > m:
        return INF
    return n * two_outcomes(p, q) if n == m else binomial_of_more(n, p, m, q)


def beta(a: Number, b: Number, c: Number, d: Number) -> Number:
    s, t = a + b, c + d
    logs = mp.loggamma(c) + mp.loggamma(d) - mp.loggamma(t) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(s)
    return logs + (a - c) * mp.digamma(a) + (b - d) * mp.digamma(b) + (t - s) * mp.digamma(s)


def normal_laplace(m: Number, s: Number, n: Number, t: Number) -> Number:
    d = m - n
    distance = s * mp.sqrt(2 / mp.pi) * mp.exp(-d * d / (2 * s * s)) + d * mp.erf(d / (s * mp.sqrt(2)))
    return to_laplace(h_normal(m, s), distance, t)


def exponential_laplace(r: Number, m: Number, s: Number) -> Number:
    distance = m - 1 / r + 2 * mp.exp(-r * m) / r if m > 0 else 1 / r - m
    return to_laplace(h_exponential(r), distance, s)


def uniform_laplace(a: Number, b: Number, m: Number, s: Number) -> Number:
    inside = a < m < b
    distance = ((m - a) ** 2 + (b - m) ** 2) / (2 * (b - a)) if inside else abs((a + b) / 2 - m)
    return to_laplace(h_uniform(a, b), distance, s)


def uniform_gumbel(a: Number, b: Number, m: Number, s: Number) -> Number:
    moment = s / (b - a) * (mp.exp(-a / s) - mp.exp(-b / s))
    return to_gumbel(h_uniform(a, b), (a + b) / 2, moment, m, s)


def _uniform_mean_log(a: Number, b: Number) -> Number:
    return (x_log(b, b) - x_log(a, a)) / (b - a) - 1


def uniform_gamma(a: Number, b: Number, c: Number, d: Number) -> Number:
    return INF if a < 0 else to_gamma(h_uniform(a, b), (a + b) / 2, _uniform_mean_log(a, b), c, d)


def uniform_beta(a: Number, b: Number, c: Number, d: Number) -> Number:
    if a < 0 or b > 1:
        return INF
    logs = mp.loggamma(c) + mp.loggamma(d) - mp.loggamma(c + d)
    cross = (c - 1) * _uniform_mean_log(a, b) + (d - 1) * _uniform_mean_log(1 - b, 1 - a)
    return logs - cross - h_uniform(a, b)


def laplace_gumbel(m: Number, s: Number, n: Number, t: Number) -> Number:
    if s >= t:
        return INF
    return to_gumbel(h_laplace(m, s), m, mp.exp(-m / t) / (1 - (s / t) ** 2), n, t)


def uniform_pareto(a: Number, b: Number, m: Number, c: Number) -> Number:
    if a < m:
        return INF
    return -h_uniform(a, b) - mp.log(c) - c * mp.log(m) + (c + 1) * _uniform_mean_log(a, b)


def pareto_gamma(m: Number, a: Number, c: Number, d: Number) -> Number:
    return INF if a <= 1 else to_gamma(h_pareto(m, a), a * m / (a - 1), mp.log(m) + 1 / a, c, d)


def pareto_normal(m: Number, a: Number, n: Number, s: Number) -> Number:
    if a <= 2:
        return INF
    return to_normal(h_pareto(m, a), a * m / (a - 1), a * m * m / ((a - 1) ** 2 * (a - 2)), n, s)


def bernoulli_geometric(p: Number, q: Number) -> Number:
    mass = x_log(p, p) + x_log(1 - p, 1 - p)
    return mass - x_log(1 - p, q) - x_log(p, q * (1 - q))


def bernoulli_poisson(p: Number, r: Number) -> Number:
    return x_log(p, p) + x_log(1 - p, 1 - p) - x_log(p, r) + r


def _of_logits(formula: Formula, *places: int) -> Formula:
    """The same formula of log-odds at these places."""

    def run(*numbers: Number) -> Number:
        return formula(*(sigmoid(x) if i in places else x for i, x in enumerate(numbers)))

    return run


def geometric(p: Number, q: Number) -> Number:
    return two_outcomes(p, q) / p


def negative_binomial(r: Number, p: Number, s: Number, q: Number) -> Number:
    return r * two_outcomes(p, q) / (1 - p)


CLOSED: dict[tuple[str, str], Formula] = {
    ("Normal", "Normal"): normal,
    ("LogNormal", "LogNormal"): normal,
    ("HalfNormal", "HalfNormal"): lambda s, t: normal(mpf(0), s, mpf(0), t),
    ("Laplace", "Laplace"): laplace,
    ("Cauchy", "Cauchy"): cauchy,
    ("HalfCauchy", "HalfCauchy"): lambda s, t: cauchy(mpf(0), s, mpf(0), t),
    ("Gumbel", "Gumbel"): gumbel,
    ("Exponential", "Exponential"): exponential,
    ("Gamma", "Gamma"): gamma,
    ("InverseGamma", "InverseGamma"): gamma,
    ("Chi2", "Chi2"): lambda n, m: gamma(n / 2, mpf(1) / 2, m / 2, mpf(1) / 2),
    ("Weibull", "Weibull"): weibull,
    ("Pareto", "Pareto"): pareto,
    ("Uniform", "Uniform"): uniform,
    ("Beta", "Beta"): beta,
    ("Bernoulli", "Bernoulli"): two_outcomes,
    ("Bernoulli.logits", "Bernoulli.logits"): _of_logits(two_outcomes, 0, 1),
    ("Geometric", "Geometric"): geometric,
    ("Geometric.logits", "Geometric.logits"): _of_logits(geometric, 0, 1),
    ("Poisson", "Poisson"): poisson,
    ("Binomial", "Binomial"): binomial,
    ("Binomial.logits", "Binomial.logits"): _of_logits(binomial, 1, 3),
    ("NegativeBinomial", "NegativeBinomial"): negative_binomial,
    ("NegativeBinomial.logits", "NegativeBinomial.logits"): _of_logits(negative_binomial, 1, 3),
    ("Bernoulli", "Binomial"): lambda p, n, q: binomial(mpf(1), p, n, q),
    ("Binomial", "Bernoulli"): lambda n, p, q: binomial(n, p, mpf(1), q),
    ("Bernoulli", "Geometric"): bernoulli_geometric,
    ("Bernoulli.logits", "Geometric.logits"): _of_logits(bernoulli_geometric, 0, 1),
    ("Bernoulli", "Poisson"): bernoulli_poisson,
    ("Bernoulli.logits", "Poisson"): _of_logits(bernoulli_poisson, 0),
    ("Poisson", "Bernoulli"): lambda r, q: -x_log(1, 1 - q) if r == 0 else INF,
    ("Poisson", "Binomial"): lambda r, n, q: -x_log(n, 1 - q) if r == 0 else INF,
    ("Laplace", "Normal"): lambda m, s, n, t: to_normal(h_laplace(m, s), m, 2 * s * s, n, t),
    ("Normal", "Laplace"): normal_laplace,
    ("Gumbel", "Normal"): lambda m, s, n, t: to_normal(h_gumbel(m, s), m + mp.euler * s, (mp.pi * s) ** 2 / 6, n, t),
    ("Normal", "Gumbel"): lambda m, s, n, t: to_gumbel(h_normal(m, s), m, mp.exp(-m / t + (s / t) ** 2 / 2), n, t),
    ("Exponential", "Normal"): lambda r, m, s: to_normal(h_exponential(r), 1 / r, 1 / r**2, m, s),
    ("Exponential", "Gumbel"): lambda r, m, s: to_gumbel(h_exponential(r), 1 / r, r / (r + 1 / s), m, s),
    ("Exponential", "Laplace"): exponential_laplace,
    ("Exponential", "Gamma"): lambda r, a, b: gamma(mpf(1), r, a, b),
    ("Gamma", "Exponential"): lambda a, b, r: gamma(a, b, mpf(1), r),
    ("Gamma", "Normal"): lambda a, b, m, s: to_normal(h_gamma(a, b), a / b, a / b**2, m, s),
    ("Gamma", "Gumbel"): lambda a, b, m, s: to_gumbel(h_gamma(a, b), a / b, (1 + 1 / (b * s)) ** -a, m, s),
    ("Pareto", "Exponential"): lambda m, a, r: pareto_gamma(m, a, mpf(1), r),
    ("Pareto", "Gamma"): pareto_gamma,
    ("Pareto", "Normal"): pareto_normal,
    ("Uniform", "Normal"): lambda a, b, m, s: to_normal(h_uniform(a, b), (a + b) / 2, (b - a) ** 2 / 12, m, s),
    ("Uniform", "Laplace"): uniform_laplace,
    ("Uniform", "Exponential"): lambda a, b, r: uniform_gamma(a, b, mpf(1), r),
    ("Uniform", "Gamma"): uniform_gamma,
    ("Uniform", "Gumbel"): uniform_gumbel,
    ("Uniform", "Pareto"): uniform_pareto,
    ("Uniform", "Beta"): uniform_beta,
    ("Beta", "Uniform"): lambda a, b, c, d: beta(a, b, mpf(1), mpf(1)) + mp.log(d - c) if c <= 0 and d >= 1 else INF,
    ("Laplace", "Gumbel"): laplace_gumbel,
    **MORE_CLOSED,
    **FURTHER_CLOSED,
    **CROSS_CLOSED,
}
CLOSED |= moyals(CLOSED)


ODDS = {"Bernoulli", "Geometric", "Binomial", "NegativeBinomial"}


def truth(p: str, q: str, *numbers: float) -> Any:
    """KL(p || q) to at least 60 digits, of the parameters of p and then of q."""
    half = len(numbers) // 2
    if p == q and numbers[:half] == numbers[half:]:
        return mpf(0)
    with mp.workdps(DIGITS_OF_ODDS if ODDS & {p.partition(".")[0], q.partition(".")[0]} else DIGITS):
        return CLOSED[p, q](*(mpf(float(x)) for x in numbers))


# --- parameters: small, ordinary, extreme ---------------------------------------------------------------------------

LOC_SCALE = [(0.0, 1.0), (1.5, 2.0), (-0.3, 0.01), (1e5, 1e3), (2e-9, 1e-9), (0.0, 1e-200), (3.0, 1e100)]
SCALE = [(1.0,), (0.3,), (7.5,), (1e-5,), (1e8,), (1e-200,), (1e150,)]
SHAPE_RATE = [(1.0, 1.0), (2.5, 0.7), (0.3, 4.0), (7.9, 3.0), (30.0, 1e-3), (1e-4, 2.0), (1e4, 1e2), (1e8, 1e8)]
SHAPES = [
    (1.0, 1.0),
    (2.0, 3.0),
    (0.5, 0.5),
    (9.0, 30.0),
    (1e-4, 2.0),
    (0.02, 0.03),
    (1e4, 2e4),
    (1e8, 3.0),
    (1e8, 1e8),
    (1e-6, 1e4),
    (3e-5, 4e-8),
]
PROBS = [(0.5,), (0.3,), (0.9,), (1e-6,), (0.999999,), (1e-200,), (1.0 - 2.0**-53,)]
LOGITS = [(0.0,), (1.3,), (-2.0,), (12.0,), (-35.0,), (300.0,), (-1000.0,), (1000.0,)]
UNIFORM = [(0.0, 1.0), (-1.0, 2.5), (3.0, 4.0), (-1e-6, 1e-6), (1e5, 1.0001e5), (0.25, 0.5)]
UNIFORM += [(0.0, 1.0 - 1e-9), (-1e-9, 1.0), (0.5, 0.500001), (0.01, 0.9)]

PARAMETERS: dict[str, list[tuple[float, ...]]] = {
    "Normal": LOC_SCALE,
    "LogNormal": LOC_SCALE,
    "HalfNormal": SCALE,
    "Laplace": LOC_SCALE,
    "Cauchy": LOC_SCALE,
    "HalfCauchy": SCALE,
    "Gumbel": LOC_SCALE,
    "Exponential": SCALE,
    "Gamma": SHAPE_RATE,
    "InverseGamma": SHAPE_RATE,
    "Chi2": [(1.0,), (2.0,), (5.5,), (15.9,), (60.0,), (1e-3,), (1e4,), (2e8,)],
    "Weibull": [(1.0, 1.0), (2.5, 1.7), (0.3, 0.6), (1e-3, 4.0), (1e5, 0.2), (3.0, 50.0)],
    "Pareto": [(1.0, 1.0), (2.5, 3.7), (0.3, 2.2), (1e-5, 20.0), (1e5, 0.2), (1.0, 1e6)],
    "Uniform": UNIFORM,
    "Beta": SHAPES,
    "Bernoulli": [*PROBS, (0.0,), (1.0,)],
    "Bernoulli.logits": LOGITS,
    "Geometric": [*PROBS, (1.0,)],
    "Geometric.logits": [*LOGITS, (-600.0,)],
    "Poisson": [(1.0,), (0.3,), (7.5,), (1e-9,), (1e8,), (1e-200,), (1e15,), (0.0,)],
    "Binomial": [(10.0, *p) for p in [*PROBS, (0.0,), (1.0,)]] + [(25.0, 0.2), (300.0, 0.3), (1000.0, 1e-3)],
    "Binomial.logits": [(10.0, *p) for p in LOGITS] + [(25.0, -1.3), (300.0, 0.8), (1000.0, -7.0)],
    "NegativeBinomial": [(2.5, *p) for p in [*PROBS, (0.0,)]],
    "NegativeBinomial.logits": [(2.5, *p) for p in LOGITS],
    **MORE_PARAMETERS,
}
LOCATIONS = {"Normal", "LogNormal", "Laplace", "Cauchy", "Gumbel", *MORE_LOCATIONS}
PROBABILITIES = {*ODDS, "ContinuousBernoulli"}
INTERVALS = {"Uniform", "LogUniform"}
FIXED = {
    "Binomial",
    "Binomial.logits",
    "NegativeBinomial",
    "NegativeBinomial.logits",
}  # by their first parameter
SLOW = {"Kumaraswamy"}  # the truth is an integral
DELTAS = [0.9, -0.45, 0.3, *(sign * 10.0**-k for k in range(1, 13) for sign in (1, -1))]


def near(family: str, numbers: tuple[float, ...]) -> Iterator[tuple[float, ...]]:
    """Each parameter by itself, and all of them, moved by a fraction delta."""
    first = 1 if family in FIXED else 0
    choices = [{i} for i in range(first, len(numbers))] + [set(range(first, len(numbers)))]
    for delta in DELTAS[:: 5 if family in SLOW else 1]:
        for moved in choices:
            found = []
            for i, x in enumerate(numbers):
                if i not in moved:
                    found.append(x)
                elif family in LOCATIONS and i == 0:
                    found.append(x + delta * numbers[1])
                elif family in INTERVALS:
                    found.append(x + (-1 if i == 0 else 1) * abs(delta) * (numbers[1] - numbers[0]))
                elif family == "VonMises" and i == 0:
                    found.append(x + delta)
                elif family == "Pareto" and i == 0:
                    found.append(x * (1 - abs(delta)))
                elif family.endswith("logits"):
                    found.append(x + delta)
                else:
                    found.append(x * (1 + delta))
            outside = family in PROBABILITIES and not 0 < found[-1] < 1
            outside = outside or (family == "LogUniform" and found[0] <= 0)
            if not outside and (family not in INTERVALS or found[0] < found[1]):
                yield tuple(found)


# Pairs whose closed form serves a part of the parameters only: those where one of them, by its place, is this number.
AT: dict[tuple[str, str], tuple[int, float]] = {
    ("Exponential", "Cauchy"): (1, 0.0),
    ("HalfCauchy", "Cauchy"): (1, 0.0),
    ("HalfCauchy", "StudentT"): (2, 0.0),
    ("StudentT", "Cauchy"): (0, 1.0),
    ("StudentT", "StudentT"): (0, 1.0),
}
PARTIAL: dict[tuple[str, str], Callable[[tuple[float, ...]], bool]] = {
    ("Logistic", "Logistic"): lambda numbers: numbers[1] == numbers[3],
    **{pair: lambda numbers, i=i, x=x: numbers[i] == x for pair, (i, x) in AT.items()},
}


def cases(p: str, q: str) -> Iterator[tuple[float, ...]]:
    """The parameters at which a pair is checked, p's and then q's."""
    served = PARTIAL.get((p, q), lambda numbers: True)
    return (numbers for numbers in _cases(p, q) if served(numbers))


def _cases(p: str, q: str) -> Iterator[tuple[float, ...]]:
    for first, second in product(PARAMETERS[p], PARAMETERS[q]):
        yield (*first, *second)
    if p == q:
        for first in PARAMETERS[p]:
            for second in near(p, first):
                yield (*first, *second)
    yield from coincidences(p, q)
