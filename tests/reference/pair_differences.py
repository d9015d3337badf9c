"""Where KL of two distributions is not PyTorch 2.13's: the pair, PyTorch's answer, the true value, and why.

The docs print the list; ``tests/distributions/test_pair_differences.py`` calls both. True values come from mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

INF, NAN = math.inf, math.nan


class Difference(NamedTuple):
    """One pair that PyTorch answers otherwise."""

    p: tuple[str, dict[str, Any]]
    q: tuple[str, dict[str, Any]]
    dtype: str
    theirs: Any  # a value as it is printed with three digits, or the name of an exception
    true: Callable[[Any], Any]  # of mpmath
    why: str


def _phi(mp: Any, t: Any) -> Any:
    return t - mp.log1p(t)


def _beta_bregman(mp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """KL of two beta distributions."""
    log_beta = mp.log(mp.beta(c, d)) - mp.log(mp.beta(a, b))
    return log_beta + (a - c) * mp.psi(0, a) + (b - d) * mp.psi(0, b) + (c - a + d - b) * mp.psi(0, a + b)


DIFFERENCES = [
    Difference(
        ("Binomial", {"total_count": 10, "probs": 1.0}), ("Binomial", {"total_count": 10, "probs": 0.5}), "float64",
        "-inf", lambda mp: 10 * mp.log(2), "probs of 1 are cut to 1 - eps in one term alone",
    ),
    Difference(
        ("Binomial", {"total_count": 2, "probs": 0.5}), ("Binomial", {"total_count": 2, "probs": 0.0}), "float32",
        "14.6", lambda mp: mp.inf, "q has no mass where p has some",
    ),
    Difference(
        ("Binomial", {"total_count": 2, "probs": 0.5}), ("Binomial", {"total_count": 3, "probs": 0.5}), "float64",
        "NotImplementedError", lambda mp: mp.log(8) - 2 * mp.log(2) + mp.log(2) / 2 - mp.log(3) * mp.mpf(3) / 4,
        "a sum over the outcomes of p",
    ),
    Difference(
        ("Poisson", {"rate": 0.0}), ("Poisson", {"rate": 2.0}), "float64", "nan",
        lambda mp: mp.mpf(2), "0·log(0/q) is 0",
    ),
    Difference(
        ("Poisson", {"rate": 1e8}), ("Poisson", {"rate": 1e8 + 16}), "float32", "16",
        lambda mp: mp.mpf(10) ** 8 * _phi(mp, mp.mpf(16) / 10**8), "terms of first order cancel",
    ),
    Difference(
        ("Bernoulli", {"probs": 0.0}), ("Poisson", {"rate": 0.0}), "float64", "nan",
        lambda mp: mp.mpf(0), "0·log 0 is 0",
    ),
    Difference(
        ("Geometric", {"probs": 1e-6}), ("Geometric", {"probs": 1e-6}), "float32", "-0.443", lambda mp: mp.mpf(0),
        "terms of first order cancel",
    ),
    Difference(
        ("Exponential", {"rate": 1.0}), ("Exponential", {"rate": 1.0 + 2.0**-14}), "float32", "0",
        lambda mp: _phi(mp, mp.mpf(2) ** -14), "terms of first order cancel",
    ),
    Difference(
        ("Normal", {"loc": 0.0, "scale": 1e-30}), ("Normal", {"loc": 0.0, "scale": 1.0}), "float32", "inf",
        lambda mp: mp.log(10) * 30 - mp.mpf(1) / 2, "the square of the scales' ratio underflows",
    ),
    Difference(
        ("Beta", {"concentration1": 1e6, "concentration0": 1e6}),
        ("Beta", {"concentration1": 1e6 + 1, "concentration0": 1e6}), "float32", "0.693",
        lambda mp: _beta_bregman(mp, mp.mpf(10) ** 6, mp.mpf(10) ** 6, mp.mpf(10) ** 6 + 1, mp.mpf(10) ** 6),
        "terms of first order cancel",
    ),
    Difference(
        ("ContinuousBernoulli", {"probs": 0.25}), ("Uniform", {"low": 0.0, "high": 1.0}), "float64", "inf",
        lambda mp: (
            (1 / (2 * mp.atanh(mp.mpf(1) / 2)) - mp.mpf(1) / 2) * -mp.log(3)
            + mp.log(4 * mp.atanh(mp.mpf(1) / 2)) + mp.log(mp.mpf(3) / 4)
        ),
        "its test of the supports is wrong",
    ),
    Difference(
        ("Uniform", {"low": 0.0, "high": 1.0}), ("ContinuousBernoulli", {"probs": 0.25}), "float64", "inf",
        lambda mp: mp.log(3) / 2 - mp.log(4 * mp.atanh(mp.mpf(1) / 2)) - mp.log(mp.mpf(3) / 4),
        "its test of the supports is wrong",
    ),
    Difference(
        ("Poisson", {"rate": 0.0}), ("Bernoulli", {"probs": 0.5}), "float64", "inf", lambda mp: mp.log(2),
        "all mass of p lies at 0",
    ),
    Difference(
        ("Wishart", {"df": [5.0, 7.0], "scale_tril": [[1.0, 0.0], [0.0, 1.0]]}),
        ("Wishart", {"df": [6.0, 6.0], "scale_tril": [[1.0, 0.0], [0.0, 1.0]]}), "float64",
        "[1.84, -1.16]", lambda mp: [_wishart(mp, 5, 6), _wishart(mp, 7, 6)],
        "its values of a batch are not those of its members",
    ),
    Difference(
        ("Bernoulli", {"probs": [0.5, 0.5]}), ("Bernoulli", {"probs": [[0.5], [0.25], [0.75]]}), "float64",
        "IndexError", lambda mp: [[0, 0], [mp.log(mp.mpf(4) / 3) / 2] * 2, [mp.log(mp.mpf(4) / 3) / 2] * 2],
        "batch shapes that broadcast",
    ),
    Difference(
        ("Cauchy", {"loc": 0.0, "scale": 1.0}), ("Cauchy", {"loc": 1e-9, "scale": 1.0}), "float64", "0",
        lambda mp: mp.log1p(mp.mpf(1e-9) ** 2 / 4), "terms of first order cancel",
    ),
    Difference(
        ("ContinuousBernoulli", {"logits": -500.0}), ("ContinuousBernoulli", {"logits": 20.0}), "float32",
        "-16.7", lambda mp: _tilted(mp, -500, 20), "probs are cut at eps in one term alone",
    ),
    Difference(
        ("ContinuousBernoulli", {"logits": -500.0}), ("ContinuousBernoulli", {"logits": 20.0}), "float64",
        "6.16", lambda mp: _tilted(mp, -500, 20), "probs are cut at eps in one term alone",
    ),
    Difference(
        ("Bernoulli", {"logits": 0.0}), ("Bernoulli", {"logits": 300.0}), "float32", "inf",
        lambda mp: mp.log(mp.cosh(150)), "1 - probs is 0 where it should be tiny",
    ),
    Difference(
        ("Bernoulli", {"logits": 0.0}), ("Bernoulli", {"logits": 300.0}), "float64", "inf",
        lambda mp: mp.log(mp.cosh(150)), "1 - probs is 0 where it should be tiny",
    ),
    Difference(
        ("Dirichlet", {"concentration": [1e4, 1e4, 1e4]}), ("Dirichlet", {"concentration": [10001.0, 1e4, 1e4]}),
        "float32", "-0.00292", lambda mp: _beta_bregman(mp, mp.mpf(10) ** 4, 2 * mp.mpf(10) ** 4, 10001, 20000),
        "terms of first order cancel",
    ),
    Difference(
        ("Weibull", {"scale": 1.0, "concentration": 2.0}), ("Weibull", {"scale": 2.0, "concentration": 3.0}), "float64",
        "NotImplementedError", lambda mp: _weibull(mp, 1, 2, 2, 3), "it compares transforms, which hold the parameters",
    ),
    Difference(
        ("Kumaraswamy", {"concentration1": 2.0, "concentration0": 3.0}),
        ("Kumaraswamy", {"concentration1": 2.0, "concentration0": 1.5}), "float64",
        "NotImplementedError", lambda mp: mp.log(2) - mp.mpf(1) / 2,
        "it compares transforms, which hold the parameters",
    ),
    Difference(
        ("VonMises", {"loc": 0.0, "concentration": 1.0}), ("VonMises", {"loc": 0.0, "concentration": 2.0}), "float64",
        "NotImplementedError",
        lambda mp: mp.log(mp.besseli(0, 2) / mp.besseli(0, 1)) - mp.besseli(1, 1) / mp.besseli(0, 1),
        "not there",
    ),
]  # fmt: skip


def _wishart(mp: Any, n: int, m: int) -> Any:
    """KL of two Wishart distributions of 2 by 2 matrices of one scale."""

    def log_gamma(x: Any) -> Any:
        return mp.log(mp.pi) / 2 + mp.loggamma(x) + mp.loggamma(x - mp.mpf(1) / 2)

    psi = mp.psi(0, mp.mpf(n) / 2) + mp.psi(0, mp.mpf(n - 1) / 2)
    return mp.mpf(n - m) / 2 * psi + log_gamma(mp.mpf(m) / 2) - log_gamma(mp.mpf(n) / 2)


def _tilted(mp: Any, a: Any, b: Any) -> Any:
    """KL of two continuous Bernoulli distributions, from log-odds."""

    def log_integral(x: Any) -> Any:
        return mp.log(mp.expm1(x) / x)

    a, b = mp.mpf(a), mp.mpf(b)
    return log_integral(b) - log_integral(a) - (1 / (1 - mp.exp(-a)) - 1 / a) * (b - a)


def _weibull(mp: Any, s: Any, k: Any, t: Any, n: Any) -> Any:
    """KL of two Weibull distributions."""
    s, k, t, n = map(mp.mpf, (s, k, t, n))
    first = mp.log(k) - k * mp.log(s) - mp.log(n) + n * mp.log(t)
    return first + (k - n) * (mp.log(s) - mp.euler / k) + (s / t) ** n * mp.gamma(n / k + 1) - 1


class Behaviour(NamedTuple):
    """A call on which both differ otherwise than by a number."""

    call: str
    theirs: str
    ours: str
    why: str


# Each has a test of this name: ``test_pair_differences.BEHAVIOURS``.
BEHAVIOURS = [
    Behaviour(
        "abs of Normal(1, 1) ‖ abs of Normal(−1, 1), by AbsTransform", "2.0, true 0", "NotImplementedError",
        "the divergence of the bases is a bound where a transform is not injective",
    ),
    Behaviour(
        "Categorical([1]) ‖ Categorical([0.2, 0.3, 0.5])", "3.51", "ValueError",
        "1 category and 3: the arrays broadcast, the distributions do not",
    ),
    Behaviour(
        "Dirichlet([2]) ‖ Dirichlet([2, 3])", "-2.48", "ValueError", "a divergence is not negative; as above",
    ),
    Behaviour(
        "Independent(x, 1) ‖ Independent(x, 2) of one base x", "NotImplementedError", "ValueError",
        "the event shapes differ: no divergence is missing",
    ),
    Behaviour(
        "p ‖ q of a subclass of ExponentialFamily of your own", "by derivatives of its _log_normalizer", "TypeError",
        "no counterpart here: register the pair, as below",
    ),
    Behaviour("register_kl(int, float)", "accepted", "TypeError", "no distributions"),
    Behaviour(
        "register_kl of a pair that is registered", "the new one silently counts", "ValueError unless replace=True", "",
    ),
    Behaviour(
        "Normal ‖ Uniform of shape 3", "a result of shape ()", "a result of shape (3,)", "the batches broadcast",
    ),
    Behaviour("the derivative of Wishart ‖ Wishart by p", "None", "NotImplementedError", "it is left out of the graph"),
]  # fmt: skip


def _called(one: tuple[str, dict[str, Any]]) -> str:
    """As it is called; numbers as Python prints them, so that they can be read back."""
    return f"{one[0]}({', '.join(f'{name}={value!r}' for name, value in one[1].items())})"


def exactly(value: Any) -> str:
    """Numbers as Python prints them: the shortest that are read back as the same float64."""
    if isinstance(value, list):
        return "[" + ", ".join(map(exactly, value)) + "]"
    return repr(float(value))


def shown(value: Any) -> str:
    """Numbers with three digits."""
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{float(value):.3g}"


def markdown_table() -> str:
    """The list as a table."""
    import mpmath

    head = "| pair | dtype | PyTorch | true value, and klnumba's | why |\n| --- | --- | --- | --- | --- |\n"
    with mpmath.workdps(60):
        lines = [
            f"| {_called(x.p)} ‖ {_called(x.q)} | {x.dtype} | {x.theirs} | {exactly(x.true(mpmath))} | {x.why} |"
            for x in DIFFERENCES
        ]
    return head + "\n".join(lines) + "\n"


def behaviours_table() -> str:
    """What differs otherwise than by a number, as a table."""
    head = "| call | PyTorch | klnumba | why |\n| --- | --- | --- | --- |\n"
    return head + "".join(f"| {x.call} | {x.theirs} | {x.ours} | {x.why} |\n" for x in BEHAVIOURS)
