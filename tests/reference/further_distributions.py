"""The truth for pairs that rest on special functions: textbook closed forms with mpmath, for `distributions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from tests.reference.entropies import (
    INF,
    Number,
    h_exponential,
    h_gamma,
    h_normal,
    h_pareto,
    h_uniform,
    to_gamma,
    to_gumbel,
    to_laplace,
    to_normal,
)

HALF = mpf(1) / 2
MUCH = 350  # a tail of exp(-350) is left out


def below(a: Number, y: Number) -> Number:
    """The regularised incomplete gamma function P(a, y), its terms all positive."""
    if y > a and y - a - a * mp.log(y / a) > MUCH:
        return mpf(1)
    return mp.exp(a * mp.log(y) - y - mp.loggamma(a + 1)) * mp.hyp1f1(1, a + 1, y, maxterms=10**7)


# --- entropies --------------------------------------------------------------------------------------------------------


def h_weibull(s: Number, k: Number) -> Number:
    return mp.euler * (1 - 1 / k) + mp.log(s / k) + 1


def h_inverse_gamma(a: Number, b: Number) -> Number:
    return a + mp.log(b) + mp.loggamma(a) - (1 + a) * mp.digamma(a)


def h_chi(n: Number) -> Number:
    return mp.loggamma(n / 2) + (n - mp.log(2) - (n - 1) * mp.digamma(n / 2)) / 2


def h_half_normal(s: Number) -> Number:
    return mp.log(mp.pi * s * s / 2) / 2 + HALF


def h_moyal(s: Number) -> Number:
    return mp.log(s) + (1 + mp.euler + mp.log(4 * mp.pi)) / 2


def h_log_uniform(a: Number, b: Number) -> Number:
    return mp.log(mp.log(b / a)) + mp.log(a * b) / 2


def h_student_t(n: Number, s: Number) -> Number:
    half = (n + 1) / 2
    size = mp.log(n) / 2 + mp.loggamma(n / 2) + mp.loggamma(HALF) - mp.loggamma(half)
    return mp.log(s) + half * (mp.digamma(half) - mp.digamma(n / 2)) + size


def h_kumaraswamy(a: Number, b: Number) -> Number:
    return (1 - 1 / b) + (1 - 1 / a) * (mp.digamma(b + 1) + mp.euler) - mp.log(a * b)


def h_beta(a: Number, b: Number) -> Number:
    s = a + b
    size = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(s)
    return size - (a - 1) * mp.digamma(a) - (b - 1) * mp.digamma(b) + (s - 2) * mp.digamma(s)


def scaled_e1(x: Number) -> Number:
    """exp(x)*E1(x)."""
    if x < 10**4:
        return mp.exp(x) * mp.e1(x)
    return mp.fsum((-1) ** k * mp.factorial(k) / x ** (k + 1) for k in range(40))


def h_lindley(r: Number) -> Number:
    return 1 + mp.log(1 + r) - 2 * mp.log(r) - scaled_e1(r) / (1 + r)


def h_inverse_gaussian(m: Number, a: Number) -> Number:
    return mp.log(2 * mp.pi * mp.e / a) / 2 + 3 * (mp.log(m) - scaled_e1(2 * a / m)) / 2


# --- mean distances ---------------------------------------------------------------------------------------------------


def distance(mean: Number, x: Number, below_x: Number, mean_below: Number) -> Number:
    """E abs(X - x) from P(X < x) and the part of the mean that comes from below x, as a share of it."""
    return mean - x + 2 * (x * below_x - mean * mean_below)


def weibull_distance(s: Number, k: Number, x: Number) -> Number:
    mean = s * mp.gamma(1 + 1 / k)
    if x <= 0:
        return mean - x
    y = (x / s) ** k
    return distance(mean, x, below(mpf(1), y), below(1 + 1 / k, y))


def chi_distance(n: Number, x: Number) -> Number:
    a = n / 2
    mean = mp.sqrt(2) * mp.exp(mp.loggamma(a + HALF) - mp.loggamma(a))
    return mean - x if x <= 0 else distance(mean, x, below(a, x * x / 2), below(a + HALF, x * x / 2))


def half_normal_distance(s: Number, x: Number) -> Number:
    mean = s * mp.sqrt(2 / mp.pi)
    if x <= 0:
        return mean - x
    return distance(mean, x, mp.erf(x / (s * mp.sqrt(2))), -mp.expm1(-x * x / (2 * s * s)))


def inverse_gamma_distance(a: Number, b: Number, x: Number) -> Number:
    mean = b / (a - 1)
    return mean - x if x <= 0 else -distance(mean, x, below(a, b / x), below(a - 1, b / x))


def moyal_distance(m: Number, s: Number, x: Number) -> Number:
    """F integrated: erf's integral is a hypergeometric function."""
    u = (m - x) / s  # E abs(log(2*G) - u)
    off = u + mp.euler + mp.log(2)
    z = mp.exp(u) / 2
    if z > MUCH:
        return s * off
    return s * (8 * mp.sqrt(z / mp.pi) * mp.hyp2f2(HALF, HALF, 3 * HALF, 3 * HALF, -z) - off)


def lindley_distance(r: Number, x: Number) -> Number:
    mean = (r + 2) / (r * (r + 1))
    return mean - x if x <= 0 else x - mean + 2 * mp.exp(-r * x) * (2 + r + r * x) / (r * (1 + r))


def log_uniform_distance(a: Number, b: Number, x: Number) -> Number:
    width = mp.log(b / a)
    mean = (b - a) / width
    if not a < x < b:
        return abs(mean - x)
    return mean - x + 2 * (x * mp.log(x / a) - (x - a)) / width


def inverse_gaussian_distance(m: Number, a: Number, x: Number) -> Number:
    if x <= 0:
        return m - x
    root = mp.sqrt(a / (2 * x))
    u, w = root * (x / m - 1), root * (x / m + 1)
    tail = mp.exp(2 * a / m) * mp.erfc(w) if w < 10**4 else mpf(0)
    if w >= 10**4 and u * u < MUCH:
        tail = (
            mp.exp(-u * u)
            / (w * mp.sqrt(mp.pi))
            * mp.fsum((-1) ** k * mp.fac2(2 * k - 1) / (2 * w * w) ** k for k in range(20))
        )
    return (x - m) * mp.erf(u) + (x + m) * tail


def log_normal_distance(m: Number, s: Number, x: Number) -> Number:
    mean = mp.exp(m + s * s / 2)
    if x <= 0:
        return mean - x
    d = (mp.log(x) - m) / s
    return x * mp.erf(d / mp.sqrt(2)) - mean * mp.erf((d - s) / mp.sqrt(2))


def student_t_distance(n: Number, m: Number, s: Number, x: Number) -> Number:
    y = abs(m - x) / s
    log_here = mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - (n + 1) / 2 * mp.log1p(y * y / n)
    here = mp.exp(log_here) / mp.sqrt(n * mp.pi)
    if y * y < n and log_here < -MUCH:
        return s * y
    share = y * y / (n + y * y)
    inside = (
        mp.betainc(HALF, n / 2, 0, share, regularized=True)
        if y * y < n
        else (1 - mp.betainc(n / 2, HALF, 0, n / (n + y * y), regularized=True))
    )
    return s * (y * inside + 2 * (n + y * y) / (n - 1) * here)


def kumaraswamy_distance(a: Number, b: Number, x: Number) -> Number:
    mean = b * mp.beta(1 + 1 / a, b)
    if not 0 < x < 1:
        return abs(mean - x)
    y = x**a
    return distance(mean, x, 1 - (1 - y) ** b, mp.betainc(1 + 1 / a, b, 0, y, regularized=True))


# --- Kumaraswamy: an integral, as the expectation of log(1 - X**c) has no closed form ---------------------------------

DIGITS_OF_INTEGRAL = 60
STEP, FINEST = mpf(1) / 32, mpf(1) / 2048
AGREE = mpf(10) ** -20  # of the sums of two steps; that of the finer one then has about twice the digits


def kumaraswamy_integral(a: Number, b: Number, log_q: Callable[[Number, Number], Number]) -> Number:
    """E log(p/q), over the log-odds of X**a from their mode to both sides, by a doubly exponential rule.

    `log_q` takes log(x) and log(1 - x). The step is halved until the sum stays.
    """
    with mp.workdps(max(DIGITS_OF_INTEGRAL, mp.dps)):
        step, total = STEP, STEP * kumaraswamy_nodes(a, b, log_q, STEP, mpf(0))
        while step > FINEST:
            finer = (total + step * kumaraswamy_nodes(a, b, log_q, step, step / 2)) / 2
            if abs(finer - total) <= AGREE * abs(finer):
                return finer
            step, total = step / 2, finer
    raise ArithmeticError("the integral takes too many nodes")


def kumaraswamy_nodes(
    a: Number, b: Number, log_q: Callable[[Number, Number], Number], step: Number, off: Number
) -> Any:
    """The sum over nodes that are so far apart, and so far off 0."""
    total = mpf(0)
    for side in (1, -1):
        size = max(mpf(1), 1 / b) if side > 0 else mpf(1)
        for i in range(int(-6 / step), int(7 / step)):
            t = i * step + off
            small = mp.exp(-t)
            v = size * mp.exp(t - small)
            z = side * v - mp.log(b)
            log_y, log_rest = -mp.log1p(mp.exp(-z)), -mp.log1p(mp.exp(z))
            log_x = log_y / a
            log_p = mp.log(a * b) + (a - 1) * log_x + (b - 1) * log_rest
            apart = log_p - log_q(log_x, mp.log(-mp.expm1(log_x)))
            total += b * mp.exp(log_y + b * log_rest) * apart * v * (1 + small)
    return total


def kumaraswamy(a: Number, b: Number, c: Number, d: Number) -> Number:
    if a == c:
        return mp.log(b / d) + d / b - 1
    return kumaraswamy_integral(a, b, lambda x, _: mp.log(c * d) + (c - 1) * x + (d - 1) * mp.log(-mp.expm1(c * x)))


def kumaraswamy_beta(a: Number, b: Number, c: Number, d: Number) -> Number:
    size = mp.loggamma(c) + mp.loggamma(d) - mp.loggamma(c + d)
    return kumaraswamy_integral(a, b, lambda x, rest: (c - 1) * x + (d - 1) * rest - size)


# --- powers of gamma and Weibull variables ----------------------------------------------------------------------------


def power_to_gamma(a: Number, log_size: Number, m: Number, c: Number, d: Number) -> Number:
    """Of Z = exp(log_size)*G**m, G a gamma variable of shape a and rate 1, from a gamma distribution."""
    mean_log = log_size + m * mp.digamma(a)
    entropy = h_gamma(a, mpf(1)) - mp.digamma(a) + mp.log(abs(m)) + mean_log
    mean = mp.exp(log_size + mp.loggamma(a + m) - mp.loggamma(a)) if a + m > 0 else INF
    return to_gamma(entropy, mean, mean_log, c, d)


def to_half_normal(a: Number, log_size: Number, m: Number, s: Number) -> Number:
    """The same, from a half-normal distribution: of the squares."""
    return power_to_gamma(a, 2 * log_size, 2 * m, HALF, 1 / (2 * s * s))


def to_chi(a: Number, log_size: Number, m: Number, n: Number) -> Number:
    return power_to_gamma(a, 2 * log_size, 2 * m, n / 2, HALF)


def to_weibull(a: Number, log_size: Number, m: Number, s: Number, k: Number) -> Number:
    """The same, from a Weibull distribution: of the k-th powers, from an exponential one."""
    return power_to_gamma(a, k * log_size, k * m, mpf(1), s**-k)


def to_log_normal(a: Number, log_size: Number, m: Number, mean: Number, s: Number) -> Number:
    """The same, from a log-normal distribution: of the logarithms."""
    entropy = h_gamma(a, mpf(1)) - mp.digamma(a) + mp.log(abs(m))
    return to_normal(entropy, log_size + m * mp.digamma(a), m * m * mp.polygamma(1, a), mean, s)


def root(n: Number) -> tuple[Number, Number, Number]:
    """A chi variable as a power of a gamma variable."""
    return n / 2, mp.log(2) / 2, HALF


def half(s: Number) -> tuple[Number, Number, Number]:
    """A half-normal variable."""
    return HALF, mp.log(s) + mp.log(2) / 2, HALF


def of_exponential(s: Number, k: Number) -> tuple[Number, Number, Number]:
    """A Weibull variable."""
    return mpf(1), mp.log(s), 1 / k


def log_normal_of(formula: Any) -> Any:
    """KL of a log-normal from a gamma distribution, of a power: (m, s, more) to (power, shape, rate)."""

    def run(m: Number, s: Number, *more: Number) -> Number:
        power, shape, rate = formula(*more)
        m, s = power * m, abs(power) * s
        return to_gamma(h_normal(m, s) + m, mp.exp(m + s * s / 2), m, shape, rate)

    return run


# --- with Gumbel ------------------------------------------------------------------------------------------------------


def log_beta_moment(a: Number, b: Number, z: Number) -> Number:
    """log E exp(z*(1 - X)), an integral over the log-odds v, of rho**b*(1 - rho)**a*exp(z*rho) relative to its peak."""
    gap = a + b - z
    root = mp.sqrt(gap**2 + 4 * z * b)
    rho = 2 * b / (gap + root) if gap > 0 else (root - gap) / (2 * z)

    def relative(v: Number) -> Number:
        left = (1 - rho) + rho * mp.exp(v)
        other, share = 1 / left, mp.exp(v) / left
        return mp.exp(a * mp.log(other) + b * mp.log(share) + z * rho * (share - 1))

    width = 1 / mp.sqrt(rho * (1 - rho) * root)
    ends = [[k * width for k in (1, 3, 8)] + [k * (width + 1 / x) for k in (20, 60, 200)] for x in (b, a)]
    area = mp.quad(relative, [-x for x in reversed(ends[0])] + [0] + ends[1])
    size = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    return size + a * mp.log(1 - rho) + b * mp.log(rho) + z * rho + mp.log(area)


def beta_moment(a: Number, b: Number, z: Number) -> Number:
    """E exp(-z*X), a confluent hypergeometric function; far out its asymptotic series, and close to 0 its own.

    Where neither ends in time it is the integral, to 130 digits; and where that does not, there is no truth.
    """
    if z < mpf(10) ** -9:
        return series(lambda k: -(a + k) / (a + b + k) * z)
    if 100 * (a + 150) * (b + 1) < z:
        size = mp.exp(mp.loggamma(a + b) - mp.loggamma(b) - a * mp.log(z))
        return size * series(lambda k: (a + k) * (1 - b + k) / z)
    if z < 10**6 and max(a, b) <= 10**9:
        return mp.exp(-z) * mp.hyp1f1(b, a + b, z, maxterms=10**6)
    if min(a, b) < mpf(10) ** -30 or max(a, b) > mpf(10) ** 31:
        raise ValueError("a, b: too large or small")
    with mp.workdps(130):
        return mp.exp(log_beta_moment(a, b, z) - z)


def series(ratio: Any) -> Number:
    """1 + ratio(0)/1 + ratio(0)*ratio(1)/(1*2) + ..., 150 terms."""
    term = total = mpf(1)
    for k in range(150):
        term *= ratio(k) / (k + 1)
        total += term
    return total


def beta_gumbel(a: Number, b: Number, m: Number, s: Number) -> Number:
    return to_gumbel(h_beta(a, b), a / (a + b), beta_moment(a, b, 1 / s), m, s)


def scaled_pareto_moment(a: Number, z: Number) -> Number:
    """E exp(z*(1 - X)) of scale 1, a*exp(z) times an exponential integral: its fraction far out, its series near 0."""
    if z > 10**3 or a > 10**9:
        rest = mpf(0)
        for k in range(700, 0, -1):
            rest = k * (a + k) / (z + a + 1 + 2 * k - rest)
        return a / (z + a + 1 - rest)
    if z < mpf(10) ** -9 and a != mp.floor(a):
        terms = mp.fsum(a * (-z) ** k / (mp.factorial(k) * (a - k)) for k in range(150))
        return mp.exp(z) * (a * mp.gamma(-a) * z**a + terms)
    return mp.exp(z) * a * mp.expint(a + 1, z)


def pareto_gumbel(m: Number, a: Number, n: Number, s: Number) -> Number:
    if a <= 1:
        return INF
    moment = mp.exp(-m / s) * scaled_pareto_moment(a, m / s)
    return to_gumbel(h_pareto(m, a), a * m / (a - 1), moment, n, s)


# --- the rest ---------------------------------------------------------------------------------------------------------


def logistic(m: Number, s: Number, n: Number, t: Number) -> Number:
    x = abs(m - n) / s
    return x * mp.coth(x / 2) - 2 if x else mpf(0)


def log_uniform_pareto(a: Number, b: Number, m: Number, c: Number) -> Number:
    return INF if a < m else -h_log_uniform(a, b) - mp.log(c) - c * mp.log(m) + (c + 1) * mp.log(a * b) / 2


def log_uniform_uniform(a: Number, b: Number, c: Number, d: Number) -> Number:
    return mp.log(d - c) - h_log_uniform(a, b) if c <= a and b <= d else INF


def uniform_log_uniform(a: Number, b: Number, c: Number, d: Number) -> Number:
    if a < c or b > d:
        return INF
    mean_log = (b * mp.log(b) - a * mp.log(a)) / (b - a) - 1
    return mp.log(mp.log(d / c)) + mean_log - h_uniform(a, b)


FURTHER_CLOSED: dict[tuple[str, str], Any] = {
    ("Weibull", "Laplace"): lambda s, k, m, t: to_laplace(h_weibull(s, k), weibull_distance(s, k, m), t),
    ("Chi", "Laplace"): lambda n, m, t: to_laplace(h_chi(n), chi_distance(n, m), t),
    ("HalfNormal", "Laplace"): lambda s, m, t: to_laplace(h_half_normal(s), half_normal_distance(s, m), t),
    ("InverseGamma", "Laplace"): lambda a, b, m, t: (
        INF if a <= 1 else to_laplace(h_inverse_gamma(a, b), inverse_gamma_distance(a, b, m), t)
    ),
    ("Moyal", "Laplace"): lambda m, s, n, t: to_laplace(h_moyal(s), moyal_distance(m, s, n), t),
    ("Lindley", "Laplace"): lambda r, m, t: to_laplace(h_lindley(r), lindley_distance(r, m), t),
    ("LogUniform", "Laplace"): lambda a, b, m, t: to_laplace(h_log_uniform(a, b), log_uniform_distance(a, b, m), t),
    ("InverseGaussian", "Laplace"): lambda m, a, n, t: to_laplace(
        h_inverse_gaussian(m, a), inverse_gaussian_distance(m, a, n), t
    ),
    ("LogNormal", "Laplace"): lambda m, s, n, t: to_laplace(h_normal(m, s) + m, log_normal_distance(m, s, n), t),
    ("StudentT", "Laplace"): lambda n, m, s, k, t: (
        INF if n <= 1 else to_laplace(h_student_t(n, s), student_t_distance(n, m, s, k), t)
    ),
    ("Kumaraswamy", "Laplace"): lambda a, b, m, t: to_laplace(h_kumaraswamy(a, b), kumaraswamy_distance(a, b, m), t),
    ("Kumaraswamy", "Kumaraswamy"): kumaraswamy,
    ("Kumaraswamy", "Beta"): kumaraswamy_beta,
    ("Gamma", "LogNormal"): lambda a, b, m, s: to_log_normal(a, -mp.log(b), mpf(1), m, s),
    ("Exponential", "LogNormal"): lambda r, m, s: to_log_normal(mpf(1), -mp.log(r), mpf(1), m, s),
    ("InverseGamma", "LogNormal"): lambda a, b, m, s: to_log_normal(a, mp.log(b), mpf(-1), m, s),
    ("Chi", "LogNormal"): lambda n, m, s: to_log_normal(*root(n), m, s),
    ("HalfNormal", "LogNormal"): lambda t, m, s: to_log_normal(*half(t), m, s),
    ("Weibull", "LogNormal"): lambda t, k, m, s: to_log_normal(*of_exponential(t, k), m, s),
    ("Pareto", "LogNormal"): lambda n, a, m, s: to_normal(h_exponential(a), mp.log(n) + 1 / a, 1 / a**2, m, s),
    ("LogUniform", "LogNormal"): lambda a, b, m, s: to_normal(
        mp.log(mp.log(b / a)), mp.log(a * b) / 2, mp.log(b / a) ** 2 / 12, m, s
    ),
    ("LogNormal", "InverseGamma"): log_normal_of(lambda a, b: (-1, a, b)),
    ("LogNormal", "HalfNormal"): log_normal_of(lambda t: (2, HALF, 1 / (2 * t * t))),
    ("LogNormal", "Chi"): log_normal_of(lambda n: (2, n / 2, HALF)),
    ("LogNormal", "Weibull"): log_normal_of(lambda t, k: (k, mpf(1), t**-k)),
    ("HalfNormal", "Gamma"): lambda s, c, d: power_to_gamma(*half(s), c, d),
    ("Chi", "Gamma"): lambda n, c, d: power_to_gamma(*root(n), c, d),
    ("Chi", "Exponential"): lambda n, r: power_to_gamma(*root(n), mpf(1), r),
    ("InverseGamma", "Gamma"): lambda a, b, c, d: INF if a <= 1 else power_to_gamma(a, mp.log(b), mpf(-1), c, d),
    ("InverseGamma", "Exponential"): lambda a, b, r: (
        INF if a <= 1 else power_to_gamma(a, mp.log(b), mpf(-1), mpf(1), r)
    ),
    ("Gamma", "InverseGamma"): lambda a, b, c, d: INF if a <= 1 else power_to_gamma(a, mp.log(b), mpf(-1), c, d),
    ("InverseGamma", "HalfNormal"): lambda a, b, s: INF if a <= 2 else to_half_normal(a, mp.log(b), mpf(-1), s),
    ("Gamma", "HalfNormal"): lambda a, b, s: to_half_normal(a, -mp.log(b), mpf(1), s),
    ("Chi", "HalfNormal"): lambda n, s: mpf(0) if n == s == 1 else to_half_normal(*root(n), s),
    ("Weibull", "HalfNormal"): lambda t, k, s: to_half_normal(*of_exponential(t, k), s),
    ("Gamma", "Chi"): lambda a, b, n: to_chi(a, -mp.log(b), mpf(1), n),
    ("Exponential", "Chi"): lambda r, n: to_chi(mpf(1), -mp.log(r), mpf(1), n),
    ("HalfNormal", "Chi"): lambda s, n: mpf(0) if n == s == 1 else to_chi(*half(s), n),
    ("InverseGamma", "Chi"): lambda a, b, n: INF if a <= 2 else to_chi(a, mp.log(b), mpf(-1), n),
    ("Weibull", "Chi"): lambda t, k, n: to_chi(*of_exponential(t, k), n),
    ("HalfNormal", "Weibull"): lambda t, s, k: to_weibull(*half(t), s, k),
    ("Chi", "Weibull"): lambda n, s, k: to_weibull(*root(n), s, k),
    ("Beta", "Gumbel"): beta_gumbel,
    ("Pareto", "Gumbel"): pareto_gumbel,
    ("Logistic", "Logistic"): logistic,
    ("LogUniform", "Pareto"): log_uniform_pareto,
    ("LogUniform", "Uniform"): log_uniform_uniform,
    ("Uniform", "LogUniform"): uniform_log_uniform,
}
