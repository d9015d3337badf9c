"""Pairs of families at parameters where their densities nearly coincide, or where what they have in common is large."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

from tests.reference.cross_distributions import CROSS_ALMOST

N = (10.0, 1e3, 1e5, 1e8)  # large shapes
P = (0.1, 1e-3, 1e-6, 1e-9)  # small ones, and probabilities
STEPS = (0.0, 0.3, -1e-2, 1e-3, -1e-5, 1e-8)

# From the best match, by two numbers of `STEPS`.
NEAR: dict[tuple[str, str], Callable[[float, float], list[tuple[float, ...]]]] = {
    ("Gamma", "Normal"): lambda e, f: [(n, 1.0, n + e * sqrt(n), sqrt(n) * (1 + f)) for n in N],
    ("Gamma", "LogNormal"): lambda e, f: [(n, 1.0, log(n) + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("InverseGamma", "LogNormal"): lambda e, f: [(n, 1.0, -log(n) + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("LogNormal", "Gamma"): lambda e, f: [(0.0, 1 / sqrt(n), n * (1 + f), n + e * sqrt(n)) for n in N],
    ("LogNormal", "InverseGamma"): lambda e, f: [(0.0, 1 / sqrt(n), n * (1 + f), n + e * sqrt(n)) for n in N],
    ("InverseGamma", "Gamma"): lambda e, f: [(n, 1.0, n * (1 + f), n * n * (1 + e / sqrt(n))) for n in N],
    ("Gamma", "InverseGamma"): lambda e, f: [(n, 1.0, n * (1 + f), n * n * (1 + e / sqrt(n))) for n in N],
    ("Chi", "Gamma"): lambda e, f: (
        [(n, 2 * n * (1 + f), 2 * sqrt(n) * (1 + e / sqrt(n))) for n in N] + [(x, x * (1 + e), 1 + f) for x in P]
    ),
    ("Gamma", "Chi"): lambda e, f: (
        [(2 * n, 2 * sqrt(n) * (1 + e / sqrt(n)), n * (1 + f)) for n in N] + [(x, 1 + f, x * (1 + e)) for x in P]
    ),
    ("Chi", "LogNormal"): lambda e, f: [(n, 0.5 * log(n) + e / sqrt(n), (1 + f) / sqrt(2 * n)) for n in N],
    ("LogNormal", "Chi"): lambda e, f: [(0.5 * log(n) + e / sqrt(n), 1 / sqrt(2 * n), n * (1 + f)) for n in N],
    ("InverseGamma", "Chi"): lambda e, f: [(2 * n + 2, 2 * n * sqrt(n) * (1 + e / sqrt(n)), n * (1 + f)) for n in N],
    ("Chi", "HalfNormal"): lambda e, f: [(1 + e, 1 + f)],
    ("HalfNormal", "Chi"): lambda e, f: [(1 + e, 1 + f)],
    ("Weibull", "Chi"): lambda e, f: [(sqrt(2) * (1 + f), 2 * (1 + e), 2.0), (sqrt(2), 2 * (1 + e), 2 * (1 + f))],
    ("Chi", "Weibull"): lambda e, f: [(2 * (1 + e), sqrt(2) * (1 + f), 2.0), (2 * (1 + e), sqrt(2), 2 * (1 + f))],
    ("Gamma", "Exponential"): lambda e, f: [(1 + e, 3.0, 3 * (1 + f))],
    ("Exponential", "Gamma"): lambda e, f: [(3.0, 1 + e, 3 * (1 + f))],
    ("Weibull", "Exponential"): lambda e, f: [(3.0, 1 + e, (1 + f) / 3)],
    ("Beta", "Gamma"): lambda e, f: [
        (a, b, a * (1 + e), b * (1 + f)) for a in (1e-3, 1.0, 30.0) for b in (1e3, 1e6, 1e9)
    ],
    ("Beta", "Normal"): lambda e, f: [
        (a, b, a / (a + b) + e * sqrt(a * b / (a + b) ** 3), sqrt(a * b / (a + b) ** 2 / (a + b + 1)) * (1 + f))
        for a, b in ((10.0, 10.0), (1e3, 3e3), (1e5, 1e5), (1e8, 1e8), (1e8, 3e5))
    ],
    ("Beta", "Uniform"): lambda e, f: [(1 + e, 1 + f, 0.0, 1.0), (1 + e, 1.0, 0.0, 1 + abs(f))],
    ("Uniform", "Beta"): lambda e, f: [(0.0, 1.0, 1 + e, 1 + f), (0.0, 1 - abs(f), 1 + e, 1.0)],
    ("Kumaraswamy", "Beta"): lambda e, f: [
        (1 + e, 2.5, 1 + f, 2.5),
        (2.5, 1 + e, 2.5, 1 + f),
        (1 + e, 1 + f, 1.0, 1.0),
    ],
    ("Kumaraswamy", "Uniform"): lambda e, f: [(1 + e, 1 + f, 0.0, 1.0)],
    ("ContinuousBernoulli.logits", "Exponential"): lambda e, f: [
        (-x * (1 + f), x * (1 + e)) for x in (1.0, 10.0, 30.0, 100.0)
    ],
    ("ContinuousBernoulli.logits", "Uniform"): lambda e, f: [(e, 0.0, 1 + abs(f))],
    ("Beta", "ContinuousBernoulli.logits"): lambda e, f: [(1 + e, 1 + f, 0.0), (1 + e, 1.0, f)],
    ("Beta", "Exponential"): lambda e, f: [(1 + e, b, b * (1 + f)) for b in (10.0, 1e4, 1e8)],
    ("Uniform", "ContinuousBernoulli.logits"): lambda e, f: [(abs(e), 1.0, f)],
    ("LogUniform", "Uniform"): lambda e, f: [
        (1.0, 1 + h, 1 - abs(e) * h, (1 + h) + abs(f) * h) for h in (1.0, 0.1, 1e-3, 1e-6)
    ],
    ("Uniform", "LogUniform"): lambda e, f: [
        (1.0, 1 + h, 1 - abs(e) * h, (1 + h) + abs(f) * h) for h in (1.0, 0.1, 1e-3, 1e-6)
    ],
    ("Bernoulli", "Poisson"): lambda e, f: [(p, p * (1 + e)) for p in P],
    ("Bernoulli", "Geometric"): lambda e, f: [(p, (1 + e * p) / (1 + p)) for p in P],
    ("Bernoulli.logits", "Geometric.logits"): lambda e, f: [(log(p), -log(p) + e) for p in P],
    ("Bernoulli.logits", "Poisson"): lambda e, f: [(log(p), p * (1 + e)) for p in P],
    ("Bernoulli", "Binomial"): lambda e, f: [(p, n, p / n * (1 + e)) for p in P for n in (2.0, 25.0, 1000.0)],
    ("Binomial", "Poisson"): lambda e, f: [(n, p, n * p * (1 + e)) for n in (3.0, 50.0, 600.0) for p in P],
    ("Binomial", "Binomial"): lambda e, f: [
        (n, p, m, n * p / m * (1 + e)) for n, m in ((3.0, 4.0), (50.0, 60.0), (50.0, 300.0)) for p in (0.5, *P)
    ],
    ("StudentT", "Normal"): lambda e, f: [(n, 0.0, 1.0, e, 1 + f) for n in (5.0, 50.0, *N)],
    ("Weibull", "Gamma"): lambda e, f: [(3.0, 1 + e, 1 + f, 1 / 3)],
    ("Gamma", "Weibull"): lambda e, f: [(1 + e, 3.0, 1 / 3, 1 + f)],
    ("Normal", "Laplace"): lambda e, f: [(0.0, 1.0, e, 1 + f)],
    ("Gumbel", "Normal"): lambda e, f: [(0.0, 1.0, e, 1 + f)],
    ("Gamma", "Laplace"): lambda e, f: [(n, 1.0, n + e * sqrt(n), sqrt(n) * (1 + f)) for n in N],
    ("Chi", "Laplace"): lambda e, f: [(n, sqrt(n) + e, 1 + f) for n in N],
    ("Beta", "Laplace"): lambda e, f: [(n, n, 0.5 + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("InverseGamma", "Laplace"): lambda e, f: [(n, n, 1 + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("Gamma", "Gumbel"): lambda e, f: [(n, 1.0, n + e * sqrt(n), sqrt(n) * (1 + f)) for n in N],
    ("StudentT", "Laplace"): lambda e, f: [(n, 0.0, 1.0, e, 1 + f) for n in N],
    ("Beta", "Gumbel"): lambda e, f: [(n, n, 0.5 + e / sqrt(n), (1 + f) / sqrt(n)) for n in (10.0, 1e3, 1e5)],
    ("Beta", "Moyal"): lambda e, f: [(n, n, 0.5 + e / sqrt(n), (1 + f) / sqrt(n)) for n in (10.0, 1e3, 1e5)],
    ("Weibull", "Laplace"): lambda e, f: [(1.0, n, 1 + e / n, (1 + f) / n) for n in N],
    ("LogNormal", "Laplace"): lambda e, f: [(0.0, 1 / sqrt(n), 1 + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("InverseGaussian", "Laplace"): lambda e, f: [(1.0, n, 1 + e / sqrt(n), (1 + f) / sqrt(n)) for n in N],
    ("LogUniform", "Laplace"): lambda e, f: [
        (1.0, 1 + h, 1 + h / 2 + e * h, h * (1 + f)) for h in (1.0, 1e-2, 1e-4, 1e-7)
    ],
    ("LogUniform", "LogNormal"): lambda e, f: [
        (1.0, 1 + h, h / 2 + e * h, h * (1 + f)) for h in (1.0, 1e-2, 1e-4, 1e-7)
    ],
    ("Pareto", "LogNormal"): lambda e, f: [(1.0, n, 1 / n + e / n, (1 + f) / n) for n in N],
    ("Pareto", "Normal"): lambda e, f: [(1.0, n, 1 + 1 / n + e / n, (1 + f) / n) for n in N],
    ("Pareto", "Laplace"): lambda e, f: [(1.0, n, 1 + 1 / n + e / n, (1 + f) / n) for n in N],
    ("Pareto", "Gamma"): lambda e, f: [(1.0, n, n * n * (1 + f), n * n * (1 + e / n)) for n in N],
    ("Uniform", "Gamma"): lambda e, f: [(1.0, 1 + h, (1 + f) / h / h, (1 + e * h) / h / h) for h in (1.0, 1e-2, 1e-4)],
    ("LogNormal", "Weibull"): lambda e, f: [(0.0, 1 / sqrt(n), 1 + e / sqrt(n), sqrt(n) * (1 + f)) for n in N],
    ("Weibull", "LogNormal"): lambda e, f: [(1.0, n, e / n, (1 + f) / n) for n in N],
    **CROSS_ALMOST,
}
