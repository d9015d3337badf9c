"""The truth for more families and pairs: textbook closed forms with mpmath. They belong to `distributions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from mpmath import mp, mpf

from tests.reference.cross_distributions import CROSS_ALMOST
from tests.reference.entropies import (
    INF,
    Number,
    h_gamma,
    h_gumbel,
    h_normal,
    h_pareto,
    to_gamma,
    to_gumbel,
    to_laplace,
    to_normal,
    x_log,
)

HALF = mpf(1) / 2


def h_beta(a: Number, b: Number) -> Number:
    s = a + b
    size = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(s)
    return size - (a - 1) * mp.digamma(a) - (b - 1) * mp.digamma(b) + (s - 2) * mp.digamma(s)


def h_weibull(s: Number, k: Number) -> Number:
    return mp.euler * (1 - 1 / k) + mp.log(s / k) + 1


def beta_gamma(a: Number, b: Number, c: Number, d: Number) -> Number:
    return to_gamma(h_beta(a, b), a / (a + b), mp.digamma(a) - mp.digamma(a + b), c, d)


def beta_normal(a: Number, b: Number, m: Number, s: Number) -> Number:
    n = a + b
    return to_normal(h_beta(a, b), a / n, a * b / (n * n * (n + 1)), m, s)


def _below(a: Number, y: Number) -> Number:
    """The regularised incomplete gamma function P(a, y), its terms all positive."""
    return mp.exp(a * mp.log(y) - y - mp.loggamma(a + 1)) * mp.hyp1f1(1, a + 1, y, maxterms=10**7)


def gamma_distance(a: Number, y: Number) -> Number:
    """E abs(X - y) at rate 1."""
    if y <= 0 or y - a - a * mp.log(y / a) > 350:  # a tail of exp(-350)
        return abs(a - y)
    return (a - y) + 2 * (y * _below(a, y) - a * _below(a + 1, y))


def gamma_laplace(a: Number, b: Number, m: Number, s: Number) -> Number:
    return to_laplace(h_gamma(a, b), gamma_distance(a, b * m) / b, s)


def beta_laplace(a: Number, b: Number, m: Number, s: Number) -> Number:
    mean = a / (a + b)
    distance = abs(m - mean)
    if 0 < m < 1:
        below = mp.betainc(a, b, 0, m, regularized=True), mp.betainc(a + 1, b, 0, m, regularized=True)
        distance = mean - m + 2 * (m * below[0] - mean * below[1])
    return to_laplace(h_beta(a, b), distance, s)


def gumbel_laplace(m: Number, s: Number, n: Number, t: Number) -> Number:
    y = (n - m) / s
    z = mp.exp(-y)
    distance = mp.euler - y + 2 * (mp.e1(z) if z < mpf(10) ** 6 else 0)
    return to_laplace(h_gumbel(m, s), s * distance, t)


def pareto_laplace(m: Number, a: Number, n: Number, s: Number) -> Number:
    if a <= 1:
        return INF
    mean = a * m / (a - 1)
    distance = mean - n if n <= m else n - mean + 2 * m**a * n ** (1 - a) / (a - 1)
    return to_laplace(h_pareto(m, a), distance, s)


def weibull_gamma(s: Number, k: Number, a: Number, b: Number) -> Number:
    return to_gamma(h_weibull(s, k), s * mp.gamma(1 + 1 / k), mp.log(s) - mp.euler / k, a, b)


def _to_weibull(entropy: Number, mean_log: Number, log_moment: Number, s: Number, k: Number) -> Number:
    """`log_moment` is log(E X**k)."""
    return -entropy - mp.log(k) + k * mp.log(s) - (k - 1) * mean_log + mp.exp(log_moment - k * mp.log(s))


def gamma_weibull(a: Number, b: Number, s: Number, k: Number) -> Number:
    moment = mp.loggamma(a + k) - mp.loggamma(a) - k * mp.log(b)
    return _to_weibull(h_gamma(a, b), mp.digamma(a) - mp.log(b), moment, s, k)


def student_t_normal(n: Number, m: Number, s: Number, k: Number, t: Number) -> Number:
    if n <= 2:
        return INF
    half = (n + 1) / 2
    size = mp.log(n) / 2 + mp.loggamma(n / 2) + mp.loggamma(HALF) - mp.loggamma(half)
    entropy = mp.log(s) + half * (mp.digamma(half) - mp.digamma(n / 2)) + size
    return to_normal(entropy, m, s * s * n / (n - 2), k, t)


def logistic_laplace(m: Number, s: Number, n: Number, t: Number) -> Number:
    y = abs(m - n) / s
    return to_laplace(2 + mp.log(s), s * (y + 2 * mp.log(1 + mp.exp(-y))), t)


def logistic_gumbel(m: Number, s: Number, n: Number, t: Number) -> Number:
    r = s / t
    return INF if r >= 1 else to_gumbel(2 + mp.log(s), m, mp.exp(-m / t) * mp.pi * r / mp.sin(mp.pi * r), n, t)


def moyal(m: Number, s: Number, n: Number, t: Number) -> Number:
    r = s / t
    moment = mp.exp(r * mp.log(2) + (n - m) / t + mp.loggamma(HALF + r) - mp.log(mp.pi) / 2)
    return (moment + (m - n) / t - 1 + (r - 1) * (mp.euler + mp.log(2)) - 2 * mp.log(r)) / 2


def lindley(r: Number, s: Number) -> Number:
    return 2 * mp.log(r / s) + mp.log((1 + s) / (1 + r)) - (r + 2) * (r - s) / (r * (1 + r))


def inverse_gaussian(m: Number, a: Number, n: Number, b: Number) -> Number:
    return (mp.log(a / b) - 1 + b * (m / n**2 - 2 / n + 1 / m + 1 / a)) / 2


def log_uniform(a: Number, b: Number, c: Number, d: Number) -> Number:
    return mp.log(mp.log(d / c) / mp.log(b / a)) if c <= a and b <= d else INF


def von_mises(m: Number, a: Number, n: Number, b: Number) -> Number:
    ratio = mp.besseli(1, a) / mp.besseli(0, a)
    return mp.log(mp.besseli(0, b) / mp.besseli(0, a)) + (a - b * mp.cos(m - n)) * ratio


def _log_odds(p: Number) -> Number:
    return mp.log(p / (1 - p))


def _log_integral(x: Number) -> Number:
    """Of exp(x*t), t from 0 to 1."""
    return mpf(0) if x == 0 else mp.log(mp.expm1(x) / x)


def _tilted_mean(x: Number) -> Number:
    return HALF if x == 0 else 1 / (1 - mp.exp(-x)) - 1 / x


def _tilted_variance(x: Number) -> Number:
    return mpf(1) / 12 if x == 0 else 1 / x**2 - mp.exp(-x) / (1 - mp.exp(-x)) ** 2


def _h_tilted(x: Number) -> Number:
    return _log_integral(x) - x * _tilted_mean(x)


def continuous_bernoulli(x: Number, y: Number) -> Number:
    return _log_integral(y) - _log_integral(x) - _tilted_mean(x) * (y - x)


def tilted_uniform(x: Number, a: Number, b: Number) -> Number:
    return mp.log(b - a) - _h_tilted(x) if a <= 0 and b >= 1 else INF


def tilted_laplace(x: Number, m: Number, s: Number) -> Number:
    mean = _tilted_mean(x)
    distance = abs(mean - m)
    if 0 < m < 1:
        short = m * m / 2 if x == 0 else (mp.expm1(x * m) - x * m) / (x * mp.expm1(x))
        distance = mean - m + 2 * short
    return to_laplace(_h_tilted(x), distance, s)


def uniform_tilted(a: Number, b: Number, x: Number) -> Number:
    return _log_integral(x) - x * (a + b) / 2 - mp.log(b - a) if a >= 0 and b <= 1 else INF


def beta_tilted(a: Number, b: Number, x: Number) -> Number:
    return _log_integral(x) - x * a / (a + b) - h_beta(a, b)


def tilted(formula: Any, first: bool) -> dict[str, Any]:
    """By the form of the continuous Bernoulli distribution: the formula of log-odds, which are p's first or last."""

    def by_probs(*numbers: Number) -> Number:
        *others, p = numbers[::-1] if first else numbers
        return formula(*([_log_odds(p), *others[::-1]] if first else [*others, _log_odds(p)]))

    return {"ContinuousBernoulli": by_probs, "ContinuousBernoulli.logits": formula}


def _no_count(v: Number) -> bool:
    return bool(v < 0 or v != mp.floor(v))


def delta_poisson(v: Number, r: Number) -> Number:
    return INF if _no_count(v) else r + mp.loggamma(v + 1) - x_log(v, r)


def delta_binomial(v: Number, n: Number, p: Number) -> Number:
    if _no_count(v) or v > n:
        return INF
    ways = mp.loggamma(n + 1) - mp.loggamma(v + 1) - mp.loggamma(n - v + 1)
    return -ways - x_log(v, p) - x_log(n - v, 1 - p)


def delta_geometric(v: Number, p: Number) -> Number:
    return INF if _no_count(v) else -x_log(v, 1 - p) - mp.log(p)


def delta_negative_binomial(v: Number, r: Number, p: Number) -> Number:
    ways = INF if _no_count(v) else mp.loggamma(v + r) - mp.loggamma(r) - mp.loggamma(v + 1)
    return INF if _no_count(v) else -ways - x_log(v, p) - x_log(r, 1 - p)


def of_logits(formula: Any) -> Any:
    """The same of log-odds, the last number."""
    return lambda *numbers: formula(*numbers[:-1], 1 / (1 + mp.exp(-numbers[-1])))


DISCRETE: dict[str, Any] = {
    "Bernoulli": lambda v, p: delta_binomial(v, mpf(1), p),
    "Binomial": delta_binomial,
    "Geometric": delta_geometric,
    "NegativeBinomial": delta_negative_binomial,
}


def binomial_poisson(n: Number, p: Number, r: Number) -> Number:
    if n * p == 0:
        return r
    if r == 0:
        return INF
    constant = r - n * p * mp.log(r) + x_log(n * p, p) + x_log(n * (1 - p), 1 - p)
    masses = [math.comb(int(n), k) * p**k * (1 - p) ** (n - k) for k in range(int(n) + 1)]
    return constant + mp.fsum(s * mp.log(math.perm(int(n), k)) for k, s in enumerate(masses))


def binomial_of_more(n: Number, p: Number, m: Number, q: Number) -> Number:
    """Of n draws from m > n."""
    masses = [math.comb(int(n), k) * p**k * (1 - p) ** (n - k) for k in range(int(n) + 1)]
    linear = x_log(n * p, p) + x_log(n * (1 - p), 1 - p) - x_log(n * p, q) - x_log(m - n * p, 1 - q)
    ways = (mp.log(math.comb(int(n), k)) - mp.log(math.comb(int(m), k)) for k in range(int(n) + 1))
    return linear + mp.fsum(s * w for s, w in zip(masses, ways, strict=True))


def h_kumaraswamy(a: Number, b: Number) -> Number:
    return (1 - 1 / b) + (1 - 1 / a) * (mp.digamma(b + 1) + mp.euler) - mp.log(a * b)


MORE_CLOSED: dict[tuple[str, str], Any] = {
    ("Beta", "Gamma"): beta_gamma,
    ("Beta", "Exponential"): lambda a, b, r: beta_gamma(a, b, mpf(1), r),
    ("Beta", "Normal"): beta_normal,
    ("Beta", "Laplace"): beta_laplace,
    ("Gamma", "Laplace"): gamma_laplace,
    ("Gumbel", "Laplace"): gumbel_laplace,
    ("Pareto", "Laplace"): pareto_laplace,
    ("Weibull", "Gamma"): weibull_gamma,
    ("Weibull", "Exponential"): lambda s, k, r: weibull_gamma(s, k, mpf(1), r),
    ("Gamma", "Weibull"): gamma_weibull,
    ("Exponential", "Weibull"): lambda r, s, k: gamma_weibull(mpf(1), r, s, k),
    ("LogNormal", "Gamma"): lambda m, s, a, b: to_gamma(h_normal(m, s) + m, mp.exp(m + s * s / 2), m, a, b),
    ("LogNormal", "Exponential"): lambda m, s, r: to_gamma(h_normal(m, s) + m, mp.exp(m + s * s / 2), m, mpf(1), r),
    ("HalfNormal", "Exponential"): lambda s, r: (
        r * s * mp.sqrt(2 / mp.pi) - mp.log(mp.pi * mp.e * (s * r) ** 2 / 2) / 2
    ),
    ("Exponential", "HalfNormal"): lambda r, s: mp.log(mp.pi * (s * r) ** 2 / 2) / 2 + 1 / (r * s) ** 2 - 1,
    ("Kumaraswamy", "Uniform"): lambda a, b, c, d: INF if c > 0 or d < 1 else mp.log(d - c) - h_kumaraswamy(a, b),
    ("Binomial", "Poisson"): binomial_poisson,
    ("Binomial.logits", "Poisson"): lambda n, a, r: binomial_poisson(n, 1 / (1 + mp.exp(-a)), r),
    ("StudentT", "Normal"): student_t_normal,
    ("Logistic", "Normal"): lambda m, s, n, t: to_normal(2 + mp.log(s), m, (mp.pi * s) ** 2 / 3, n, t),
    ("Logistic", "Laplace"): logistic_laplace,
    ("Logistic", "Gumbel"): logistic_gumbel,
    ("Moyal", "Moyal"): moyal,
    ("Chi", "Chi"): lambda n, m: (n - m) * mp.digamma(n / 2) / 2 + mp.loggamma(m / 2) - mp.loggamma(n / 2),
    ("Lindley", "Lindley"): lindley,
    ("InverseGaussian", "InverseGaussian"): inverse_gaussian,
    ("LogUniform", "LogUniform"): log_uniform,
    ("LogitNormal", "LogitNormal"): lambda m, s, n, t: to_normal(h_normal(m, s), m, s * s, n, t),
    ("VonMises", "VonMises"): von_mises,
    ("ContinuousBernoulli", "ContinuousBernoulli"): lambda p, q: continuous_bernoulli(_log_odds(p), _log_odds(q)),
    ("ContinuousBernoulli.logits", "ContinuousBernoulli.logits"): continuous_bernoulli,
    ("Delta", "Delta"): lambda v, w: mpf(0) if v == w else INF,
    ("Delta", "Poisson"): delta_poisson,
}
for _q, _formula in {
    "Uniform": tilted_uniform,
    "Exponential": lambda x, r: r * _tilted_mean(x) - mp.log(r) - _h_tilted(x),
    "Normal": lambda x, m, s: to_normal(_h_tilted(x), _tilted_mean(x), _tilted_variance(x), m, s),
    "Laplace": tilted_laplace,
}.items():
    MORE_CLOSED |= {(form, _q): found for form, found in tilted(_formula, first=True).items()}
for _p, _formula in {"Uniform": uniform_tilted, "Beta": beta_tilted}.items():
    MORE_CLOSED |= {(_p, form): found for form, found in tilted(_formula, first=False).items()}
for _q, _formula in DISCRETE.items():
    MORE_CLOSED |= {("Delta", _q): _formula, ("Delta", f"{_q}.logits"): of_logits(_formula)}

LOC_SCALE = [(0.0, 1.0), (1.5, 2.0), (-0.3, 0.01), (1e5, 1e3), (2e-9, 1e-9), (0.0, 1e-200), (3.0, 1e100)]
MORE_PARAMETERS: dict[str, list[tuple[float, ...]]] = {
    "StudentT": [(n, m, s) for n in (5.0, 2.001, 1.5, 30.0, 1e4, 1e8) for m, s in LOC_SCALE[:5]],
    "Logistic": LOC_SCALE,
    "Moyal": LOC_SCALE,
    "LogitNormal": LOC_SCALE,
    "Kumaraswamy": [(2.5, 1.0), (2.5, 3.0), (0.7, 0.5), (2.5, 30.0), (1.0, 0.02), (0.3, 1e6)],
    "Chi": [(1.0,), (2.0,), (5.5,), (15.9,), (60.0,), (1e-3,), (1e4,), (2e8,)],
    "Lindley": [(1.0,), (0.3,), (7.5,), (1e-5,), (1e8,), (1e-200,), (1e150,)],
    "InverseGaussian": [(1.0, 1.0), (2.5, 0.7), (0.3, 4.0), (1e-4, 2.0), (1e4, 1e2), (30.0, 1e-3), (1.0, 1e8)],
    "LogUniform": [(1.0, 10.0), (0.3, 0.7), (3.0, 3.0001), (1e-200, 1e150), (1e-5, 1e5), (0.5, 20.0)],
    "VonMises": [
        *[(0.0, 1.0), (1.5, 3.0), (-3.0, 0.3), (0.5, 24.0), (0.5, 30.0), (2.0, 1e-6), (1.0, 1e4), (0.1, 1e8)],
        *[(1e3, 7.0), (0.0, 0.0)],
    ],
    "ContinuousBernoulli": [(0.5,), (0.3,), (0.9,), (0.4985,), (1e-6,), (0.999999,), (1e-200,), (1.0 - 2.0**-53,)],
    "ContinuousBernoulli.logits": [
        (0.0,),
        (1.3,),
        (-2.0,),
        (1e-9,),
        (12.0,),
        (-35.0,),
        (300.0,),
        (-1e3,),
        (1e3,),
        (2e8,),
    ],
    "Delta": [(0.0,), (1.0,), (3.0,), (10.0,), (12.0,), (1e4,), (0.5,), (-1.0,)],
}
MORE_LOCATIONS = {"Moyal", "Logistic", "LogitNormal"}

# --- where two families almost agree ---------------------------------------------------------------------------------

STEPS = [0.0, *(sign * 10.0**-k for k in range(1, 13, 2) for sign in (1, -1))]


def coincidences(p: str, q: str) -> Iterator[tuple[float, ...]]:
    """Parameters of p and q close to where both are nearly or exactly the same distribution."""
    for e, f in product(STEPS, STEPS):
        for numbers in ALMOST.get((p, q), lambda e, f: ())(e, f):
            yield tuple(float(x) for x in numbers)


ALMOST: dict[tuple[str, str], Callable[[float, float], Any]] = {
    ("Weibull", "Gamma"): lambda e, f: [(3.0, 1 + e, 1 + f, 1 / 3), (3.0, 1 + e, 1 - e, (1 + f) / 3)],
    ("Weibull", "Exponential"): lambda e, f: [(3.0, 1 + e, (1 + f) / 3)],
    ("Gamma", "Weibull"): lambda e, f: [(1 + e, 3.0, 1 / 3, 1 + f), (1 + e, 3.0, (1 + f) / 3, 1 - e)],
    ("Exponential", "Weibull"): lambda e, f: [(3.0, (1 + f) / 3, 1 + e)],
    ("Kumaraswamy", "Uniform"): lambda e, f: (
        [(1 + e, 1 + f, 0.0, 1.0), (1 + e, 1.0, 0.0, 1 + abs(f))]
        + [(a * (1 + e), b * (1 + f), 0.0, 1.0) for a, b in ((1e-3, 2.0), (30.0, 0.2), (1e5, 1e5))]
    ),
    ("Beta", "Gamma"): lambda e, f: [
        (a, b, a * (1 + e), b * (1 + f)) for a, b in ((2.0, 1e4), (0.3, 1e8), (50.0, 1e6), (1e3, 1e4))
    ],
    ("Beta", "Exponential"): lambda e, f: [(1 + e, b, b * (1 + f)) for b in (10.0, 1e4, 1e8)],
    ("Beta", "Normal"): lambda e, f: [
        (n, n * (1 + e), 0.5, (1 + f) / math.sqrt(8 * n)) for n in (3.0, 100.0, 1e5, 1e8)
    ],
    ("Beta", "ContinuousBernoulli"): lambda e, f: (
        [(1 + e, 1 + f, 0.5), (1.0, 1 + e, (1 + f) / 2), (1 + e, 1.0, 0.5 - e / 6)] if f < 1 else []
    ),
    ("ContinuousBernoulli", "Uniform"): lambda e, f: [(0.5 + e, 0.0, 1 + abs(f))],
    ("Uniform", "ContinuousBernoulli"): lambda e, f: [(abs(e), 1.0, (1 + f) / 2), (abs(e), 1 - abs(f), 0.5 + e / 3)],
    ("StudentT", "Normal"): lambda e, f: [(n, 0.0, 1.0, e, 1 + f) for n in (2.5, 10.0, 200.0, 1e5, 1e8)],
    ("Binomial", "Poisson"): lambda e, f: [(n, p, n * p * (1 + e)) for n in (1.0, 10.0) for p in (abs(f), 0.4, 0.6)],
    ("Binomial", "Binomial"): lambda e, f: (
        [(10.0, abs(f), 25.0, 0.4 * abs(f) * (1 + e)), (10.0, 0.5, 11.0, 0.45 + e / 3)] if f < 1 else []
    ),
    **CROSS_ALMOST,
}
