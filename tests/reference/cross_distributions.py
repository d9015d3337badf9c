"""The truth for pairs of two families that rest on an entropy and moments, for `distributions`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from tests.reference.entropies import (
    INF,
    Number,
    h_exponential,
    h_gamma,
    h_gumbel,
    h_laplace,
    h_normal,
    h_pareto,
    h_uniform,
    to_gamma,
    to_gumbel,
    to_normal,
    x_log,
)
from tests.reference.further_distributions import (
    h_beta,
    h_chi,
    h_half_normal,
    h_inverse_gamma,
    h_inverse_gaussian,
    h_kumaraswamy,
    h_lindley,
    h_log_uniform,
    h_moyal,
    h_weibull,
    scaled_e1,
)

HALF = mpf(1) / 2


# --- counts -----------------------------------------------------------------------------------------------------------


def binomial_negative_binomial(n: Number, p: Number, r: Number, q: Number) -> Number:
    """A sum over the counts, the coefficients by recurrence; what is below 1e-300 of all adds nothing."""
    if n * p == 0:
        return -r * mp.log(1 - q)
    if q == 0:
        return INF
    if p == 1:
        ways = mp.loggamma(n + r) - mp.loggamma(r) - mp.loggamma(n + 1)
        return -(ways + n * mp.log(q) + r * mp.log(1 - q))
    ordinary = min(p, 1 - p, q, 1 - q) > mpf(10) ** -20
    with mp.workdps(100 if ordinary else mp.dps):
        mass, ways, total = (1 - p) ** n, mpf(1), mpf(0)  # `ways` is the ratio of the coefficients
        for k in range(int(n) + 1):
            total += mass * mp.log(ways) if mass > mpf(10) ** -600 else 0
            mass *= (n - k) / (k + 1) * p / (1 - p)
            ways *= (n - k) / (r + k)
    linear = x_log(n * p, p) + x_log(n * (1 - p), 1 - p)
    return total + linear - n * p * mp.log(q) - r * mp.log(1 - q)


def binomial_geometric(n: Number, p: Number, q: Number) -> Number:
    return binomial_negative_binomial(n, p, mpf(1), 1 - q)


def bernoulli_negative_binomial(p: Number, r: Number, q: Number) -> Number:
    if q == 0:
        return INF if p > 0 else mpf(0)
    return x_log(p, p) + x_log(1 - p, 1 - p) - p * mp.log(r * q) - r * mp.log(1 - q)


def only_nothing(of_p: Any, of_q: Any) -> Any:
    """Infinite unless p is always 0."""
    return lambda *numbers: of_q(*numbers) if of_p(*numbers) else INF


# --- normal -----------------------------------------------------------------------------------------------------------


def moments_of_kumaraswamy(a: Number, b: Number) -> tuple[Number, Number]:
    first, second = (b * mp.beta(1 + n / a, b) for n in (1, 2))
    return first, second - first**2


def weibull_normal(s: Number, k: Number, m: Number, t: Number) -> Number:
    first, second = s * mp.gamma(1 + 1 / k), s * s * mp.gamma(1 + 2 / k)
    return to_normal(h_weibull(s, k), first, second - first**2, m, t)


def chi_normal(n: Number, m: Number, t: Number) -> Number:
    mean = mp.sqrt(2) * mp.exp(mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2))
    return to_normal(h_chi(n), mean, n - mean**2, m, t)


def log_normal_normal(m: Number, s: Number, n: Number, t: Number) -> Number:
    mean = mp.exp(m + s * s / 2)
    return to_normal(h_normal(m, s) + m, mean, mean**2 * mp.expm1(s * s), n, t)


def inverse_gamma_normal(a: Number, b: Number, m: Number, t: Number) -> Number:
    if a <= 2:
        return INF
    return to_normal(h_inverse_gamma(a, b), b / (a - 1), b * b / ((a - 1) ** 2 * (a - 2)), m, t)


def log_uniform_normal(a: Number, b: Number, m: Number, t: Number) -> Number:
    width = mp.log(b / a)
    mean = (b - a) / width
    return to_normal(h_log_uniform(a, b), mean, (b * b - a * a) / (2 * width) - mean**2, m, t)


def lindley_normal(r: Number, m: Number, t: Number) -> Number:
    return to_normal(h_lindley(r), (r + 2) / (r * (r + 1)), 2 / r**2 - 1 / (1 + r) ** 2, m, t)


# --- exponential, half-normal, Moyal ----------------------------------------------------------------------------------


def to_exponential(entropy: Number, mean: Number, r: Number) -> Number:
    return -entropy - mp.log(r) + r * mean


def lindley_exponential(r: Number, s: Number) -> Number:
    with mp.workdps(700 if r > 10**9 else mp.dps):  # at equal rates of 1e150 it is 5e-301
        return to_exponential(h_lindley(r), (r + 2) / (r * (r + 1)), s)


def to_half_normal(entropy: Number, square: Number, s: Number) -> Number:
    return -entropy + mp.log(mp.pi * s * s / 2) / 2 + square / (2 * s * s)


def to_moyal(entropy: Number, mean: Number, exponential_moment: Number, m: Number, s: Number) -> Number:
    """`exponential_moment` is E exp(-X/s)."""
    z = (mean - m) / s + mp.exp(m / s) * exponential_moment
    return -entropy + mp.log(2 * mp.pi * s * s) / 2 + z / 2


def moyal_gumbel(m: Number, s: Number, n: Number, t: Number) -> Number:
    r = s / t
    moment = mp.exp(-m / t + r * mp.log(2) + mp.loggamma(HALF + r)) / mp.sqrt(mp.pi)
    return to_gumbel(h_moyal(s), m + (mp.euler + mp.log(2)) * s, moment, n, t)


def of_gumbel(formula: Any, entropy: Any) -> Any:
    """From the divergence to a Gumbel distribution, of which it is half but for the entropy."""

    def run(*numbers: Number) -> Number:
        to_g = formula(*numbers)
        return to_g / 2 + (mp.log(2 * mp.pi) + mp.log(numbers[-1]) - entropy(*numbers[:-2])) / 2

    return run


# --- Lindley and continuous Bernoulli ---------------------------------------------------------------------------------


def lindley_gamma(r: Number, a: Number, b: Number) -> Number:
    with mp.workdps(mp.dps + 40):
        return to_gamma(h_lindley(r), (r + 2) / (r * (r + 1)), mean_log_of_lindley(r), a, b)


def mean_log_of_lindley(r: Number) -> Number:
    return 1 / (1 + r) - mp.euler - mp.log(r)


def lindley_weibull(r: Number, s: Number, k: Number) -> Number:
    with mp.workdps(mp.dps + 40):
        power = mp.exp(mp.loggamma(1 + k) - k * mp.log(r * s)) * (1 + r + k) / (1 + r)
        return power - h_lindley(r) - mp.log(k) + k * mp.log(s) - (k - 1) * mean_log_of_lindley(r)


def lindley_log_normal(r: Number, m: Number, s: Number) -> Number:
    mean = mean_log_of_lindley(r)
    return to_normal(h_lindley(r) - mean, mean, mp.pi**2 / 6 - 1 / (1 + r) ** 2, m, s)


def lindley_chi(r: Number, n: Number) -> Number:
    size = (n / 2 - 1) * mp.log(2) + mp.loggamma(n / 2)
    return size - h_lindley(r) - (n - 1) * mean_log_of_lindley(r) + (r + 3) / (r * r * (1 + r))


def lindley_gumbel(r: Number, m: Number, s: Number) -> Number:
    other = r + 1 / s
    return to_gumbel(h_lindley(r), (r + 2) / (r * (r + 1)), (r / other) ** 2 * (1 + other) / (1 + r), m, s)


def log_integral(x: Number) -> Number:
    """Of exp(x*t), t from 0 to 1."""
    return mpf(0) if x == 0 else mp.log(mp.expm1(x) / x)


def tilted_moments(x: Number) -> tuple[Number, Number]:
    """Mean and mean square."""
    if x == 0:
        return HALF, mpf(1) / 3
    mean = 1 / (1 - mp.exp(-x)) - 1 / x
    return mean, 1 / (1 - mp.exp(-x)) - 2 * mean / x


def tilted_half_normal(x: Number, s: Number) -> Number:
    mean, square = tilted_moments(x)
    return to_half_normal(log_integral(x) - x * mean, square, s)


def tilted_gumbel(x: Number, m: Number, s: Number) -> Number:
    mean, _ = tilted_moments(x)
    moment = mp.exp(log_integral(x - 1 / s) - log_integral(x))
    return to_gumbel(log_integral(x) - x * mean, mean, moment, m, s)


def tilted_moyal(x: Number, m: Number, s: Number) -> Number:
    mean, _ = tilted_moments(x)
    moment = mp.exp(log_integral(x - 1 / s) - log_integral(x))
    return to_moyal(log_integral(x) - x * mean, mean, moment, m, s)


def of_probs(formula: Any) -> Any:
    """The same of probabilities, the first number."""
    return lambda p, *numbers: formula(mp.log(p / (1 - p)), *numbers)


# --- uniform ----------------------------------------------------------------------------------------------------------


def mean_log(a: Number, b: Number) -> Number:
    return (x_log(b, b) - x_log(a, a)) / (b - a) - 1


def mean_log_1p_square(a: Number, b: Number) -> Number:
    def whole(z: Number) -> Number:
        return z * mp.log(1 + z * z) - 2 * z + 2 * mp.atan(z)

    return (whole(b) - whole(a)) / (b - a)


def uniform_cauchy(a: Number, b: Number, m: Number, s: Number) -> Number:
    return mp.log(mp.pi * s / (b - a)) + mean_log_1p_square((a - m) / s, (b - m) / s)


def student_t_peak(n: Number, s: Number) -> Number:
    """log of the density at its peak."""
    return mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - mp.log(n * mp.pi * s * s) / 2


def uniform_student_t(a: Number, b: Number, n: Number, m: Number, s: Number) -> Number:
    unit = s * mp.sqrt(n)
    mean = mean_log_1p_square((a - m) / unit, (b - m) / unit)
    return (n + 1) / 2 * mean - student_t_peak(n, s) - h_uniform(a, b)


def uniform_log_normal(a: Number, b: Number, m: Number, s: Number) -> Number:
    if a < 0:
        return INF

    def whole(x: Number) -> Number:
        return x * (mp.log(x) ** 2 - 2 * mp.log(x) + 2) if x else mpf(0)

    first, second = mean_log(a, b), (whole(b) - whole(a)) / (b - a)
    return to_normal(h_uniform(a, b) - first, first, second - first**2, m, s)


def uniform_half_normal(a: Number, b: Number, s: Number) -> Number:
    return INF if a < 0 else to_half_normal(h_uniform(a, b), (a * a + a * b + b * b) / 3, s)


def uniform_chi(a: Number, b: Number, n: Number) -> Number:
    if a < 0:
        return INF
    size = (n / 2 - 1) * mp.log(2) + mp.loggamma(n / 2)
    return size - h_uniform(a, b) - (n - 1) * mean_log(a, b) + (a * a + a * b + b * b) / 6


def uniform_weibull(a: Number, b: Number, s: Number, k: Number) -> Number:
    if a < 0:
        return INF
    power = (b ** (k + 1) - a ** (k + 1)) / ((k + 1) * (b - a)) / s**k
    return power - h_uniform(a, b) - mp.log(k) + k * mp.log(s) - (k - 1) * mean_log(a, b)


def uniform_inverse_gamma(a: Number, b: Number, c: Number, d: Number) -> Number:
    if a <= 0:
        return INF
    inverse = mp.log(b / a) / (b - a)
    return mp.loggamma(c) - c * mp.log(d) - h_uniform(a, b) + (c + 1) * mean_log(a, b) + d * inverse


def cauchy_student_t(m: Number, s: Number, n: Number, k: Number, t: Number) -> Number:
    unit = t * mp.sqrt(n)
    mean = mp.log((1 + s / unit) ** 2 + ((m - k) / unit) ** 2)
    return (n + 1) / 2 * mean - student_t_peak(n, t) - mp.log(4 * mp.pi * s)


def uniform_lindley(a: Number, b: Number, r: Number) -> Number:
    if a < 0:
        return INF
    mean_log = ((1 + b) * mp.log(1 + b) - (1 + a) * mp.log(1 + a)) / (b - a) - 1
    return mp.log(1 + r) - 2 * mp.log(r) + r * (a + b) / 2 - mean_log - h_uniform(a, b)


def exponential_half_cauchy(r: Number, s: Number) -> Number:
    z = r * s
    with mp.workdps(mp.dps + 20):
        if z < 10**9:
            mean = -2 * (mp.ci(z) * mp.cos(z) + (mp.si(z) - mp.pi / 2) * mp.sin(z))
        else:  # the asymptotic series, as the integrals lose the digits of z
            mean = 2 * mp.nsum(lambda k: (-1) ** int(k) * mp.factorial(2 * k + 1) / z ** (2 * k + 2), [0, 14])
        return mp.log(mp.pi * s / 2) + mean - h_exponential(r)


def exponential_lindley(r: Number, s: Number) -> Number:
    with mp.workdps(700 if r > 10**9 else mp.dps):
        return mp.log(1 + s) - 2 * mp.log(s) + s / r - scaled_e1(r) - h_exponential(r)


CROSS_CLOSED: dict[tuple[str, str], Any] = {
    ("Uniform", "Lindley"): uniform_lindley,
    ("Exponential", "Lindley"): exponential_lindley,
    ("Exponential", "HalfCauchy"): exponential_half_cauchy,
    ("Exponential", "Cauchy"): lambda r, m, s: mp.log(2) + exponential_half_cauchy(r, s),
    ("HalfCauchy", "Cauchy"): lambda s, m, t: mp.log(2 * (s + t) ** 2 / (4 * s * t)),
    ("HalfCauchy", "StudentT"): lambda s, n, m, t: mp.log(2) + cauchy_student_t(mpf(0), s, n, mpf(0), t),
    ("StudentT", "Cauchy"): lambda n, m, s, k, t: mp.log(((s + t) ** 2 + (m - k) ** 2) / (4 * s * t)),
    ("StudentT", "StudentT"): lambda n, m, s, o, k, t: cauchy_student_t(m, s, o, k, t),
    ("Bernoulli", "NegativeBinomial"): bernoulli_negative_binomial,
    ("Bernoulli.logits", "NegativeBinomial.logits"): lambda a, r, b: bernoulli_negative_binomial(
        1 / (1 + mp.exp(-a)), r, 1 / (1 + mp.exp(-b))
    ),
    ("Binomial", "NegativeBinomial"): binomial_negative_binomial,
    ("Binomial.logits", "NegativeBinomial.logits"): lambda n, a, r, b: binomial_negative_binomial(
        n, 1 / (1 + mp.exp(-a)), r, 1 / (1 + mp.exp(-b))
    ),
    ("Binomial", "Geometric"): binomial_geometric,
    ("Binomial.logits", "Geometric.logits"): lambda n, a, b: binomial_geometric(
        n, 1 / (1 + mp.exp(-a)), 1 / (1 + mp.exp(-b))
    ),
    ("Geometric", "Bernoulli"): lambda p, q: -x_log(1, 1 - q) if p == 1 else INF,
    ("Geometric", "Binomial"): lambda p, n, q: -x_log(n, 1 - q) if p == 1 else INF,
    ("NegativeBinomial", "Bernoulli"): lambda r, p, q: -x_log(1, 1 - q) if p == 0 else INF,
    ("NegativeBinomial", "Binomial"): lambda r, p, n, q: -x_log(n, 1 - q) if p == 0 else INF,
    ("HalfNormal", "Normal"): lambda s, m, t: to_normal(
        h_half_normal(s), s * mp.sqrt(2 / mp.pi), s * s * (1 - 2 / mp.pi), m, t
    ),
    ("Moyal", "Normal"): lambda m, s, n, t: to_normal(
        h_moyal(s), m + (mp.euler + mp.log(2)) * s, (mp.pi * s) ** 2 / 2, n, t
    ),
    ("Lindley", "Normal"): lindley_normal,
    ("InverseGaussian", "Normal"): lambda m, a, n, t: to_normal(h_inverse_gaussian(m, a), m, m**3 / a, n, t),
    ("InverseGamma", "Normal"): inverse_gamma_normal,
    ("Chi", "Normal"): chi_normal,
    ("LogNormal", "Normal"): log_normal_normal,
    ("Weibull", "Normal"): weibull_normal,
    ("Kumaraswamy", "Normal"): lambda a, b, m, t: to_normal(h_kumaraswamy(a, b), *moments_of_kumaraswamy(a, b), m, t),
    ("LogUniform", "Normal"): log_uniform_normal,
    ("InverseGaussian", "Exponential"): lambda m, a, r: to_exponential(h_inverse_gaussian(m, a), m, r),
    ("LogUniform", "Exponential"): lambda a, b, r: to_exponential(h_log_uniform(a, b), (b - a) / mp.log(b / a), r),
    ("Lindley", "Exponential"): lindley_exponential,
    ("Kumaraswamy", "Exponential"): lambda a, b, r: to_exponential(
        h_kumaraswamy(a, b), moments_of_kumaraswamy(a, b)[0], r
    ),
    ("Uniform", "HalfNormal"): uniform_half_normal,
    ("Beta", "HalfNormal"): lambda a, b, s: to_half_normal(h_beta(a, b), a * (a + 1) / ((a + b) * (a + b + 1)), s),
    ("Kumaraswamy", "HalfNormal"): lambda a, b, s: to_half_normal(h_kumaraswamy(a, b), b * mp.beta(1 + 2 / a, b), s),
    ("Lindley", "HalfNormal"): lambda r, s: to_half_normal(h_lindley(r), (2 * r + 6) / (r * r * (1 + r)), s),
    ("InverseGaussian", "HalfNormal"): lambda m, a, s: to_half_normal(h_inverse_gaussian(m, a), m * m + m**3 / a, s),
    ("LogUniform", "HalfNormal"): lambda a, b, s: to_half_normal(
        h_log_uniform(a, b), (b * b - a * a) / (2 * mp.log(b / a)), s
    ),
    ("Pareto", "HalfNormal"): lambda m, a, s: INF if a <= 2 else to_half_normal(h_pareto(m, a), a * m * m / (a - 2), s),
    ("Moyal", "Gumbel"): moyal_gumbel,
    ("Uniform", "Cauchy"): uniform_cauchy,
    ("Uniform", "HalfCauchy"): lambda a, b, s: INF if a < 0 else uniform_cauchy(a, b, mpf(0), s) - mp.log(2),
    ("Uniform", "StudentT"): uniform_student_t,
    ("Uniform", "LogNormal"): uniform_log_normal,
    ("Uniform", "Chi"): uniform_chi,
    ("Uniform", "Weibull"): uniform_weibull,
    ("Uniform", "InverseGamma"): uniform_inverse_gamma,
    ("Cauchy", "StudentT"): cauchy_student_t,
    ("Lindley", "Gamma"): lindley_gamma,
    ("Lindley", "Weibull"): lindley_weibull,
    ("Lindley", "LogNormal"): lindley_log_normal,
    ("Lindley", "Chi"): lindley_chi,
    ("Lindley", "Gumbel"): lindley_gumbel,
}
for _q, _formula in {"HalfNormal": tilted_half_normal, "Gumbel": tilted_gumbel, "Moyal": tilted_moyal}.items():
    CROSS_CLOSED |= {
        ("ContinuousBernoulli", _q): of_probs(_formula),
        ("ContinuousBernoulli.logits", _q): _formula,
    }
ENTROPIES = {
    "Normal": h_normal,
    "Laplace": h_laplace,
    "Logistic": lambda m, s: 2 + mp.log(s),
    "Gumbel": h_gumbel,
    "Exponential": h_exponential,
    "Gamma": h_gamma,
    "Uniform": h_uniform,
    "Beta": h_beta,
    "Pareto": h_pareto,
    "Lindley": h_lindley,
}


def moyals(closed: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """The pairs to Moyal, of those to Gumbel."""
    return {(p, "Moyal"): of_gumbel(closed[p, "Gumbel"], entropy) for p, entropy in ENTROPIES.items()}


# --- where two families almost agree ----------------------------------------------------------------------------------


def about(mean: float, deviation: float, e: float, f: float) -> tuple[float, float]:
    """A normal distribution that is this much off."""
    return mean + e * deviation, deviation * (1 + f)


CROSS_ALMOST: dict[tuple[str, str], Callable[[float, float], Any]] = {
    ("Bernoulli", "NegativeBinomial"): lambda e, f: (
        [(p, p / q * (1 + e), q) for p, q in ((abs(f), 0.3 * abs(f)), (abs(f), 0.01))] if 0 < abs(f) < 1 else []
    ),
    ("Binomial", "NegativeBinomial"): lambda e, f: [
        (n, p, n * p * (1 - q) / q * (1 + e), q)
        for n, p, q in ((10.0, 0.1 * abs(f), 0.03 * abs(f)), (100.0, 0.02, 0.05), (60.0, 0.01 * abs(f), 1e-4))
        if f and e in (0.0, 0.1, 1e-3, -1e-5, 1e-9)
    ],
    ("Binomial", "Geometric"): lambda e, f: (
        [(10.0, 0.1 * abs(f) * (1 + e), 1 - abs(f)), (3.0, 0.3 + e / 4, 0.5)] if 0 < abs(f) < 1 else []
    ),
    ("InverseGaussian", "Normal"): lambda e, f: [
        (2.0, a, *about(2.0, math.sqrt(8.0 / a), e, f)) for a in (3.0, 1e2, 1e5, 1e8)
    ],
    ("InverseGamma", "Normal"): lambda e, f: [
        (a, 3.0, *about(3.0 / (a - 1), 3.0 / (a - 1) / math.sqrt(a - 2), e, f)) for a in (2.5, 30.0, 1e3, 1e5, 1e8)
    ],
    ("Chi", "Normal"): lambda e, f: [
        (n, *about(math.sqrt(n - 0.5), math.sqrt(0.5), e, f)) for n in (1.0, 3.0, 4.0, 30.0, 1e4, 1e8)
    ],
    ("LogNormal", "Normal"): lambda e, f: [
        (m, s, *about(math.exp(m + s * s / 2), s * math.exp(m), e, f)) for m in (0.0, 1.5) for s in (0.5, 0.1, 1e-3)
    ],
    ("Weibull", "Normal"): lambda e, f: [
        (2.0, k, *about(2.0 * math.gamma(1 + 1 / k), 2.56 / (k + 1), e + 0.3, f)) for k in (1.0, 3.6, 50.0, 1e4)
    ],
    ("LogUniform", "Normal"): lambda e, f: [
        (a, a * r, *about(a * (1 + r) / 2, a * (r - 1) / 3.46, e, f)) for a in (3.0,) for r in (1 + 1e-6, 1.1, 20.0)
    ],
    ("Exponential", "Lindley"): lambda e, f: [
        (r, (r + 1 - 1 / (1 + r)) * (1 + f / 8)) for r in (1e-3, 0.5, 0.7, 1.1, 7.0, 50.0, 1e3, 1e6, 1e12)
    ],
    ("Lindley", "Exponential"): lambda e, f: [
        (r, r * (1 + f) * (1 + r) / (2 + r)) for r in (1e-3, 0.9, 1.1, 7.0, 50.0, 1e3, 1e6)
    ],
    ("Lindley", "Gamma"): lambda e, f: [
        *((r, (1 + abs(e) / 8), r * (1 - 1 / (1 + r)) * (1 + f / 8)) for r in (1.1, 7.0, 1e3, 1e6, 1e12)),
        *((r, (2 - abs(e) / 8), r * (1 + f / 8)) for r in (0.9, 0.1, 1e-3, 1e-6, 1e-12)),
    ],
    ("Lindley", "Weibull"): lambda e, f: [
        *((r, (1 + 1 / (1 + r)) * (1 + f / 8) / r, (1 + e / 8)) for r in (1.1, 7.0, 1e3, 1e6, 1e12)),
        *((r, 2.2 / r, (1.45 + e / 8)) for r in (0.9, 0.1, 1e-3, 1e-6, 1e-12) if e == f),
    ],
    ("Kumaraswamy", "Normal"): lambda e, f: [
        (a, b, *about(1 - 1 / a, 1 / a, e, f)) for a, b in ((30.0, 0.2), (1e3, 2.0), (1e5, 1e5), (1e8, 30.0))
    ],
    ("Kumaraswamy", "Exponential"): lambda e, f: [(1 + e, b, (1 + b) * (1 + f)) for b in (3.0, 1e3, 1e8)],
    ("Cauchy", "StudentT"): lambda e, f: [(1.0, 2.0, 1 + e, 1.0 + f, 2.0), (1.0, 2.0, 1 + e, 1.0, 2.0 * (1 + f))],
    ("StudentT", "Cauchy"): lambda e, f: [
        (1.0, m, s, m + e * s, s * (1 + f)) for m, s in ((0.0, 1.0), (3.0, 1e-3), (0.0, 1e-200), (-2.0, 1e100))
    ],
    ("StudentT", "StudentT"): lambda e, f: [
        (1.0, 1.0, 2.0, 1 + e, 1.0 + f, 2.0),
        (1.0, 1.0, 2.0, 30.0 * (1 + e), 1.0, 7.0 * (1 + f)),
        (1.0, 1.0, 2.0, 1 + e, 1.0, 2.0 * (1 + f)),
    ],
    ("Uniform", "Cauchy"): lambda e, f: [(1.0 + e, 1.0 + e + max(abs(f), 1e-3), 0.5, 0.3)],
}
