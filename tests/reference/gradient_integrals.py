"""The truth for derivatives of divergences that are integrals or sums, where no closed form holds beside the point.

`gradients` asks for them. Those of the logistic and the negative binomial distribution by what must be equal on both
sides for the closed form are the integral, or the sum, differentiated under its sign; those of the Kumaraswamy
distribution are central differences of integrals in 60 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from mpmath import mp, mpf

from tests.reference.entropies import x_log
from tests.reference.further_distributions import FURTHER_CLOSED

DIGITS = 60
STEP = mpf(10) ** -20
SUSPICIOUS = mpf(10) ** -30  # a difference, times the parameter, that may be that of 0
FAR = 200  # so far apart, in scales, the densities do not meet
MOST = mpf("0.95")  # a sum over counts of a probability above takes too long
Derivative = Callable[[int, tuple[Any, ...]], Any]


def logistic(i: int, at: tuple[Any, ...]) -> Any:
    """By a scale, of the divergence of any two scales: E w*tanh(w/2) and E Z*tanh(w/2) of w = x + Z, against x = 0."""
    m, s, n, _ = at
    x = abs(m - n) / s
    if x == 0:
        return mpf(0)
    if x > FAR:
        return (1 - x if i == 3 else -1) / s

    def density(z: Any) -> Any:
        return mp.sech(z / 2) ** 2 / 4

    def rise(z: Any) -> Any:
        """tanh((x + z)/2) - tanh(z/2)."""
        return mp.sinh(x / 2) * mp.sech((x + z) / 2) * mp.sech(z / 2)

    places = [-mp.inf, -x - 20, -x, 0, 20, mp.inf]
    of_z = mp.quad(lambda z: z * density(z) * rise(z), places)
    if i == 1:
        return of_z / s
    return -(of_z + x * mp.quad(lambda z: density(z) * mp.tanh((x + z) / 2), places)) / s


def negative_binomial(i: int, at: tuple[Any, ...]) -> Any:
    """By a count, of the divergence of any two: a sum until the tail is nothing. None if that is far."""
    r, p, _, q = at
    if p > MOST:
        return None
    mass, climb, k, total = (1 - p) ** r, mpf(0), 0, mpf(0)
    while mass * (1 + k) > mpf(10) ** -DIGITS or k < 10:
        if i == 2:
            total -= mass * climb
        else:
            total += mass * (climb + mp.log1p(-p)) * (k * mp.log(p / q) + r * (mp.log1p(-p) - mp.log1p(-q)))
        climb += 1 / (r + k)  # digamma(k + 1 + r) - digamma(r)
        mass *= (r + k) / (k + 1) * p
        k += 1
    return total - mp.log1p(-q) if i == 2 else total


def binomial_negative_binomial(i: int, at: tuple[Any, ...]) -> Any:
    """By the probability of p, and the count and the probability of q: the sum differentiated under its sign."""
    n, p, r, q = at
    mass, ratio, climb, total = (1 - p) ** n, mpf(1), mpf(0), mpf(0)  # `ratio` is that of the coefficients
    for k in range(int(n) + 1):
        if i == 1:
            log_ratio = mp.log(ratio) + x_log(k, p / q) + x_log(n - k, 1 - p) - r * mp.log(1 - q)
            total += mass * (k / p - (n - k) / (1 - p)) * log_ratio
        elif i == 2:
            total -= mass * (climb + mp.log(1 - q))
        else:
            total += mass * (r / (1 - q) - k / q)
        climb += 1 / (r + k)
        ratio *= (n - k) / (r + k)
        mass *= (n - k) / (k + 1) * p / (1 - p)
    return total


def _of_logits(formula: Derivative, at_p: int, at_q: int) -> Derivative:
    """The same by log-odds, of the probabilities at these places."""

    def run(i: int, at: tuple[Any, ...]) -> Any:
        probs = {j: 1 / (1 + mp.exp(-at[j])) for j in (at_p, at_q)}
        slope = formula(i, tuple(probs.get(j, x) for j, x in enumerate(at)))
        return slope * probs[i] * (1 - probs[i]) if i in probs else slope

    return run


def binomial_geometric(i: int, at: tuple[Any, ...]) -> Any:
    n, p, q = at
    slope = binomial_negative_binomial({1: 1, 2: 3}[i], (n, p, mpf(1), 1 - q))
    return slope if i == 1 else -slope


def one_failure(i: int, at: tuple[Any, ...]) -> Any:
    """By a count of 1, of the divergence of a geometric distribution p from a negative binomial one: a sum."""
    p, r, q = at
    if 1 - p > MOST:
        return None
    mass, climb, k, total = p, mpf(0), 0, mpf(0)
    while mass * (1 + k) > mpf(10) ** -DIGITS or k < 10:
        total -= mass * climb
        climb += 1 / (r + k)
        mass *= 1 - p
        k += 1
    slope = total - mp.log(1 - q)
    return slope if abs(slope) > SUSPICIOUS else mpf(0)  # of the tail that was left out


def of_one_failure(i: int, at: tuple[Any, ...]) -> Any:
    """The same of p, from a geometric distribution."""
    r, p, q = at
    return negative_binomial(0, (r, p, r, 1 - q))


# --- by what must be one value for the closed form: the integral differentiated under its sign ------------------------


def _on_half_line(density: Callable[[Any], Any], df: Any, sizes: tuple[Any, ...]) -> Any:
    """By the location, at 0, of a Student's distribution of this scale: x = exp(u), cut at the sizes in play."""
    scale = sizes[-1]

    def pull(u: Any) -> Any:
        x = mp.exp(u)
        return density(x) * x * (df + 1) * x / (df * scale**2 + x**2)

    logs = sorted({mp.log(x) for x in (*sizes, scale * mp.sqrt(df))})
    ends = logs[0] - 75, *logs, logs[-1] + 75
    cuts = [x for a, b in pairwise(ends) for x in mp.linspace(a, b, 2 + int((b - a) / 15))[:-1]]
    most = max(map(pull, logs))  # an error of `quad` is absolute
    return -most * mp.quad(lambda u: pull(u) / most, [*cuts, ends[-1]])


def exponential_cauchy(i: int, at: tuple[Any, ...]) -> Any:
    rate, _, scale = at
    return _on_half_line(lambda x: rate * mp.exp(-rate * x), mpf(1), (1 / rate, scale))


def _half_cauchy(scale: Any, df: Any, scale_q: Any) -> Any:
    return _on_half_line(lambda x: 2 * scale / (mp.pi * (scale**2 + x**2)), df, (scale, scale_q))


def half_cauchy_cauchy(i: int, at: tuple[Any, ...]) -> Any:
    return _half_cauchy(at[0], mpf(1), at[2])


def half_cauchy_student_t(i: int, at: tuple[Any, ...]) -> Any:
    return _half_cauchy(at[0], at[1], at[3])


def student_t_student_t(i: int, at: tuple[Any, ...]) -> Any:
    """By p's `df`, at 1: the mean of its score times the log-ratio, with T = sinh(u)."""
    _, loc, scale, df, loc_q, scale_q = at
    far, wide = (loc_q - loc) / scale, scale_q / scale

    def part(u: Any) -> Any:
        t = mp.sinh(u)
        square = 1 + t * t
        score = mp.log(2) - mpf(1) / 2 - mp.log(square) / 2 + t * t / square
        log_ratio = (df + 1) / 2 * mp.log1p(((t - far) / wide) ** 2 / df) - mp.log(square)
        return score * log_ratio / (mp.pi * mp.cosh(u))

    end = mpf(DIGITS) * 5 / 2
    cuts = {mp.asinh(far + k * wide * mp.sqrt(df)) for k in (-1, 0, 1)} | {mpf(k) for k in (-1, 0, 1)}
    found = mp.quad(part, [-end, *sorted(x for x in cuts if abs(x) < end), end])
    return found if abs(found) > SUSPICIOUS else mpf(0)


def student_t_cauchy(i: int, at: tuple[Any, ...]) -> Any:
    return student_t_student_t(i, (*at[:3], mpf(1), *at[3:]))


def _difference(formula: Callable[..., Any]) -> Derivative:
    def run(i: int, at: tuple[Any, ...]) -> Any:
        step = at[i] * STEP

        def slope(times: int) -> Any:
            moves = (times * step, -times * step)
            up, down = (formula(*(x + move if j == i else x for j, x in enumerate(at))) for move in moves)
            return (up - down) / (2 * times * step)

        return unless_of_the_step(slope(1), lambda: slope(2), at[i])

    return run


def unless_of_the_step(slope: Any, with_twice_the_step: Callable[[], Any], unit: Any) -> Any:
    """0 for a central difference that is nothing but its error, which depends on the step."""
    if abs(slope * unit) < SUSPICIOUS and abs(with_twice_the_step() - slope) > abs(slope) / 8:
        return mpf(0)
    return slope


BY_COUNTS_OR_SCALES: dict[tuple[str, str], tuple[Derivative, set[int]]] = {
    ("Logistic", "Logistic"): (logistic, {1, 3}),
    ("NegativeBinomial", "NegativeBinomial"): (negative_binomial, {0, 2}),
    ("NegativeBinomial.logits", "NegativeBinomial.logits"): (_of_logits(negative_binomial, 1, 3), {0, 2}),
    ("Binomial", "NegativeBinomial"): (binomial_negative_binomial, {1, 2, 3}),
    ("Binomial.logits", "NegativeBinomial.logits"): (_of_logits(binomial_negative_binomial, 1, 3), {1, 2, 3}),
    ("Binomial", "Geometric"): (binomial_geometric, {1, 2}),
    ("Binomial.logits", "Geometric.logits"): (_of_logits(binomial_geometric, 1, 2), {1, 2}),
    ("Geometric", "NegativeBinomial"): (one_failure, {1}),
    ("Geometric.logits", "NegativeBinomial.logits"): (_of_logits(one_failure, 0, 2), {1}),
    ("NegativeBinomial", "Geometric"): (of_one_failure, {0}),
    ("NegativeBinomial.logits", "Geometric.logits"): (_of_logits(of_one_failure, 1, 2), {0}),
    ("Exponential", "Cauchy"): (exponential_cauchy, {1}),
    ("HalfCauchy", "Cauchy"): (half_cauchy_cauchy, {1}),
    ("HalfCauchy", "StudentT"): (half_cauchy_student_t, {2}),
    ("StudentT", "Cauchy"): (student_t_cauchy, {0}),
    ("StudentT", "StudentT"): (student_t_student_t, {0}),
    **{
        pair: (_difference(FURTHER_CLOSED[pair]), {0, 1, 2, 3})
        for pair in (("Kumaraswamy", "Kumaraswamy"), ("Kumaraswamy", "Beta"))
    },
}


def derivative(p: str, q: str, numbers: tuple[float, ...], i: int) -> Any:
    """By the i-th parameter; None where it is not known."""
    formula, _ = BY_COUNTS_OR_SCALES[p, q]
    more = 450 if "logits" in p else 220 if "Geometric" in (p, q) else 0  # 1 - p of log-odds up to 1,000, or of 1e-200
    with mp.workdps(DIGITS + more):
        return formula(i, tuple(mpf(float(x)) for x in numbers))


def serves(p: str, q: str, i: int) -> bool:
    """Whether the derivative by this parameter is one of these."""
    return i in BY_COUNTS_OR_SCALES.get((p, q), (None, set()))[1]
