"""Changes of a variable that carry a family to another one, exactly in floating point; KL does not see them.

A `Writing` says how the free numbers of a distribution become its parameters before the change and after it. Any two of
the same change, one for p and one for q, give two pairs with the same divergence. So that no parameter is rounded, some
free numbers are powers of two, and some places multiples of 2**-30.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from klnumba import distributions as D
from klnumba.distributions.infinite import infinite
from klnumba.distributions.registry import find

Array = Any
Numbers = tuple[Any, ...]


class Writing(NamedTuple):
    """A family in two variables: what its free numbers are, and the parameters that they become in each."""

    roles: tuple[str, ...]
    before: str
    parameters: Callable[..., Numbers]
    after: str
    changed: Callable[..., Numbers]

    def __str__(self) -> str:
        return self.before if self.before == self.after else f"{self.before}={self.after}"


def writing(roles: str, before: str, parameters: Any, after: str = "", changed: Any = None) -> Writing:
    """Where nothing else is said, the family or its parameters stay."""
    return Writing(tuple(roles.split()), before, parameters, after or before, changed or parameters)


def plain(*numbers: Array) -> Numbers:
    """The free numbers are the parameters."""
    return numbers


# --- the numbers ------------------------------------------------------------------------------------------------------

DECADES = 12
SIZES = ("shape", "scale", "rate")
GRID = 2.0**-30  # places that are mirrored or moved are multiples of it, up to 2**20


def size(rng: np.random.Generator, n: int) -> Array:
    """Positive numbers, as many small as large."""
    return 10.0 ** rng.uniform(-DECADES, DECADES, n)


def draw(role: str, rng: np.random.Generator, n: int) -> Array:
    """Free numbers of a role."""
    if role in SIZES:
        return size(rng, n)
    if role in ("place", "odds"):
        widest = DECADES if role == "place" else 2.5
        return rng.choice([-1.0, 0.0, 1.0], n, p=[0.45, 0.1, 0.45]) * 10.0 ** rng.uniform(-DECADES, widest, n)
    if role == "two":
        return 2.0 ** rng.integers(-40, 41, n)
    if role == "grid":
        return np.round(rng.choice([-1.0, 1.0], n) * 2.0 ** rng.uniform(-30, 20, n) / GRID) * GRID
    if role == "inside":
        return np.clip(np.round(rng.uniform(0.0, 1.0, n) ** rng.choice([1.0, 8.0], n) / GRID), 1, 2**30 - 1) * GRID
    if role == "probability":
        return np.where(rng.uniform(size=n) < 0.5, 10.0 ** rng.uniform(-DECADES, 0.0, n), rng.uniform(0.0, 1.0, n))
    raise KeyError(role)


def beside(role: str, x: Array, rng: np.random.Generator) -> Array:
    """Free numbers that are close to others: equal, or by a fraction of 1e-12 to 1, or by a factor of up to 10."""
    n = len(x)
    fraction = rng.choice([-1.0, 0.0, 1.0, 1.0], n) * 10.0 ** rng.uniform(-DECADES, 0.0, n)
    if role in SIZES:
        return x * np.where(rng.uniform(size=n) < 0.75, np.maximum(1.0 + fraction, 0.1), 10.0 ** rng.uniform(-1, 1, n))
    if role == "two":
        return x * 2.0 ** rng.integers(-2, 3, n)
    if role in ("grid", "inside"):
        moved = x + np.round(fraction / GRID) * GRID
        return np.clip(moved, GRID, 1.0 - GRID) if role == "inside" else moved
    if role == "probability":
        return np.where(x * (1.0 + fraction) < 1.0, x * (1.0 + fraction), x)
    return x + fraction * np.where(rng.uniform(size=n) < 0.5, x, 1.0)


def numbers(p: Writing, q: Writing, rng: np.random.Generator, n: int) -> tuple[list[Array], list[Array]]:
    """Free numbers of p and of q: a third of them independent, in the others those of the same role close."""
    first = [draw(role, rng, n) for role in p.roles]
    second = [draw(role, rng, n) for role in q.roles]
    close = rng.uniform(size=n) < 2.0 / 3.0
    left = list(zip(p.roles, first, strict=True))
    for i, role in enumerate(q.roles):
        twin = next((k for k, (other, _) in enumerate(left) if other == role), None)
        if twin is not None:
            some = close & (rng.uniform(size=n) < 0.9)  # and now and then one is far off all the same
            second[i] = np.where(some, beside(role, left.pop(twin)[1], rng), second[i])
    return first, second


# --- the changes ------------------------------------------------------------------------------------------------------

FREE: dict[str, str] = {
    "Normal": "place scale",
    "Laplace": "place scale",
    "Cauchy": "place scale",
    "Gumbel": "place scale",
    "Logistic": "place scale",
    "Moyal": "place scale",
    "StudentT": "shape place scale",
    "LogNormal": "place scale",
    "LogitNormal": "place scale",
    "HalfNormal": "scale",
    "HalfCauchy": "scale",
    "Exponential": "rate",
    "Gamma": "shape rate",
    "InverseGamma": "shape rate",
    "InverseGaussian": "scale shape",
    "Chi": "shape",
    "Chi2": "shape",
    "Weibull": "scale shape",
    "Pareto": "scale shape",
    "Beta": "shape shape",
    "Kumaraswamy": "shape shape",
    "Lindley": "rate",
    "ContinuousBernoulli.logits": "odds",
    "Bernoulli": "probability",
    "Bernoulli.logits": "odds",
    "Geometric": "probability",
    "Geometric.logits": "odds",
    "Poisson": "rate",
}


def ends_around(low: Array, width: Array) -> Numbers:
    """The ends of an interval that is not empty."""
    return low, low + np.maximum(width, np.abs(low) * 2.0**-40)


ITSELF = [writing(roles, family, plain) for family, roles in FREE.items()] + [
    writing("place scale", "Uniform", ends_around),
    writing("scale scale", "LogUniform", ends_around),
]


def standard(family: str, *parameters: float) -> tuple[str, Callable[..., Numbers]]:
    """A distribution without a free number."""
    return family, lambda: parameters


UNIT = [
    standard("Uniform", 0.0, 1.0),
    standard("Beta", 1.0, 1.0),
    standard("Kumaraswamy", 1.0, 1.0),
    standard("ContinuousBernoulli", 0.5),
    standard("ContinuousBernoulli.logits", 0.0),
]
SAME = [
    writing("rate", "Exponential", plain, "Gamma", lambda r: (1.0, r)),
    writing("two", "Exponential", lambda s: (1.0 / s,), "Weibull", lambda s: (s, 1.0)),
    writing("two", "Gamma", lambda s: (1.0, 1.0 / s), "Weibull", lambda s: (s, 1.0)),
    writing("shape", "Chi2", plain, "Gamma", lambda n: (0.5 * n, 0.5)),
    writing("", *standard("Chi2", 2.0), *standard("Weibull", 2.0, 1.0)),
    writing("", *standard("Chi2", 2.0), *standard("Exponential", 0.5)),
    writing("", *standard("Chi", 1.0), *standard("HalfNormal", 1.0)),
    writing("shape", "Beta", lambda a: (a, 1.0), "Kumaraswamy"),
    writing("shape", "Beta", lambda b: (1.0, b), "Kumaraswamy"),
    *[writing("", *one, *other) for i, one in enumerate(UNIT) for other in UNIT[i + 1 :]],
    writing("place scale", "Cauchy", plain, "StudentT", lambda m, s: (1.0, m, s)),
    writing("odds", "Bernoulli.logits", plain, "Binomial.logits", lambda a: (1.0, a)),
    writing("probability", "Bernoulli", plain, "Binomial", lambda p: (1.0, p)),
    writing("odds", "Geometric.logits", plain, "NegativeBinomial.logits", lambda a: (1.0, -a)),
    writing("inside", "Geometric", plain, "NegativeBinomial", lambda p: (1.0, 1.0 - p)),
]
INVERSE = [
    writing("shape rate", "Gamma", plain, "InverseGamma"),
    writing("shape rate", "InverseGamma", plain, "Gamma"),
    writing("rate", "Exponential", plain, "InverseGamma", lambda r: (1.0, r)),
    writing("shape", "Chi2", plain, "InverseGamma", lambda n: (0.5 * n, 0.5)),
    writing("place scale", "LogNormal", plain, changed=lambda m, s: (-m, s)),
    writing("two", "HalfCauchy", plain, changed=lambda s: (1.0 / s,)),
    writing("two", "Cauchy", lambda s: (0.0, s), changed=lambda s: (0.0, 1.0 / s)),
    writing("two", "StudentT", lambda s: (1.0, 0.0, s), "Cauchy", lambda s: (0.0, 1.0 / s)),
    writing("shape", "Pareto", lambda a: (1.0, a), "Beta", lambda a: (a, 1.0)),
    writing("shape", "Pareto", lambda a: (1.0, a), "Kumaraswamy", lambda a: (a, 1.0)),
]
SQUARE = [
    writing("two", "HalfNormal", plain, "Gamma", lambda s: (0.5, 0.5 / (s * s))),
    writing("shape", "Chi", plain, "Gamma", lambda n: (0.5 * n, 0.5)),
    writing("shape", "Chi", plain, "Chi2"),
    writing("two shape", "Weibull", plain, changed=lambda s, k: (s * s, 0.5 * k)),
    writing("two", "Weibull", lambda s: (s, 2.0), "Exponential", lambda s: (1.0 / (s * s),)),
    writing("two", "Weibull", lambda s: (s, 2.0), "Gamma", lambda s: (1.0, 1.0 / (s * s))),
    writing("two", "Exponential", lambda s: (1.0 / s,), "Weibull", lambda s: (s * s, 0.5)),
    writing("two shape", "Pareto", plain, changed=lambda s, a: (s * s, 0.5 * a)),
    writing("place scale", "LogNormal", plain, changed=lambda m, s: (2.0 * m, 2.0 * s)),
    writing("shape shape", "Kumaraswamy", plain, changed=lambda a, b: (0.5 * a, b)),
    writing("shape", "Kumaraswamy", lambda b: (2.0, b), "Beta", lambda b: (1.0, b)),
    writing("shape", "Beta", lambda a: (a, 1.0), changed=lambda a: (0.5 * a, 1.0)),
    writing("shape", "Beta", lambda b: (1.0, b), "Kumaraswamy", lambda b: (0.5, b)),
    writing("", *standard("Uniform", 0.0, 1.0), *standard("Kumaraswamy", 0.5, 1.0)),
    writing("", *standard("Uniform", 0.0, 1.0), *standard("Beta", 0.5, 1.0)),
]
LOG = [
    writing("place scale", "LogNormal", plain, "Normal"),
    writing("shape", "Pareto", lambda a: (1.0, a), "Exponential", plain),
    writing("shape", "Pareto", lambda a: (1.0, a), "Gamma", lambda a: (1.0, a)),
    writing("two", "Pareto", lambda a: (1.0, a), "Weibull", lambda a: (1.0 / a, 1.0)),
]
MINUS_LOG = [
    writing("place scale", "LogNormal", plain, "Normal", lambda m, s: (-m, s)),
    writing("two", "Weibull", lambda k: (1.0, k), "Gumbel", lambda k: (0.0, 1.0 / k)),
    writing("", *standard("Exponential", 1.0), *standard("Gumbel", 0.0, 1.0)),
    writing("", *standard("Gamma", 1.0, 1.0), *standard("Gumbel", 0.0, 1.0)),
    writing("shape", "Beta", lambda a: (a, 1.0), "Exponential", plain),
    writing("shape", "Kumaraswamy", lambda a: (a, 1.0), "Gamma", lambda a: (1.0, a)),
    writing("", *standard("Uniform", 0.0, 1.0), *standard("Exponential", 1.0)),
    writing("", *standard("ContinuousBernoulli", 0.5), *standard("Exponential", 1.0)),
]
MINUS_LOG_1M = [
    writing("shape", "Beta", lambda b: (1.0, b), "Exponential", plain),
    writing("shape", "Kumaraswamy", lambda b: (1.0, b), "Exponential", plain),
    writing("", *standard("Uniform", 0.0, 1.0), *standard("Exponential", 1.0)),
    writing("", *standard("ContinuousBernoulli", 0.5), *standard("Exponential", 1.0)),
]
LOGIT = [
    writing("place scale", "LogitNormal", plain, "Normal"),
    *[writing("", *one, *standard("Logistic", 0.0, 1.0)) for one in UNIT],
]
SYMMETRIC = ("Normal", "Laplace", "Cauchy", "Logistic")
MIRROR = [
    writing("shape shape", "Beta", plain, changed=lambda a, b: (b, a)),
    writing("shape", "Kumaraswamy", lambda b: (1.0, b), "Kumaraswamy", lambda b: (b, 1.0)),
    writing("shape", "Kumaraswamy", lambda b: (1.0, b), "Beta", lambda b: (b, 1.0)),
    writing("shape", "Kumaraswamy", lambda a: (a, 1.0), "Kumaraswamy", lambda a: (1.0, a)),
    writing("odds", "ContinuousBernoulli.logits", plain, changed=lambda a: (-a,)),
    writing("inside", "ContinuousBernoulli", plain, changed=lambda p: (1.0 - p,)),
    writing(
        "inside inside",
        "Uniform",
        lambda a, b: (np.minimum(a, b), np.maximum(a, b) + 2 * GRID * (a == b)),
        changed=lambda a, b: (1.0 - np.maximum(a, b) - 2 * GRID * (a == b), 1.0 - np.minimum(a, b)),
    ),
    *[writing("grid scale", family, plain, changed=lambda m, s: (1.0 - m, s)) for family in SYMMETRIC],
    writing("shape grid scale", "StudentT", plain, changed=lambda n, m, s: (n, 1.0 - m, s)),
]
NEGATIVE = [
    *[writing("place scale", family, plain, changed=lambda m, s: (-m, s)) for family in SYMMETRIC],
    writing("shape place scale", "StudentT", plain, changed=lambda n, m, s: (n, -m, s)),
    writing("place scale", "Uniform", ends_around, changed=lambda m, w: tuple(-x for x in ends_around(m, w)[::-1])),
]


def scaled(c: float) -> list[Writing]:
    """The change to c*x, c a power of two."""
    both = ("Normal", "Laplace", "Cauchy", "Logistic", "Gumbel", "Moyal")
    return [
        *[writing("place scale", family, plain, changed=lambda m, s: (c * m, c * s)) for family in both],
        writing("shape place scale", "StudentT", plain, changed=lambda n, m, s: (n, c * m, c * s)),
        *[writing("scale", family, plain, changed=lambda s: (c * s,)) for family in ("HalfNormal", "HalfCauchy")],
        writing("rate", "Exponential", plain, changed=lambda r: (r / c,)),
        writing("rate", "Exponential", plain, "Gamma", lambda r: (1.0, r / c)),
        writing("shape rate", "Gamma", plain, changed=lambda a, b: (a, b / c)),
        writing("shape rate", "InverseGamma", plain, changed=lambda a, b: (a, b * c)),
        writing("shape", "Chi2", plain, "Gamma", lambda n: (0.5 * n, 0.5 / c)),
        *[writing("scale shape", f, plain, changed=lambda s, k: (c * s, k)) for f in ("Weibull", "Pareto")],
        writing("scale scale", "InverseGaussian", plain, changed=lambda m, s: (c * m, c * s)),
        writing("place scale", "Uniform", ends_around, changed=lambda m, w: tuple(c * x for x in ends_around(m, w))),
        writing("scale scale", "LogUniform", ends_around, changed=lambda m, w: tuple(c * x for x in ends_around(m, w))),
        writing("", *standard("Chi", 1.0), *standard("HalfNormal", c)),
        *[writing("", *one, *standard("Uniform", 0.0, c)) for one in UNIT[1:]],
    ]


def moved(c: float) -> list[Writing]:
    """The change to x + c, c a multiple of the grid."""
    both = ("Normal", "Laplace", "Cauchy", "Logistic", "Gumbel", "Moyal")
    return [
        *[writing("grid scale", family, plain, changed=lambda m, s: (m + c, s)) for family in both],
        writing("shape grid scale", "StudentT", plain, changed=lambda n, m, s: (n, m + c, s)),
        writing("grid two", "Uniform", grid_ends, changed=lambda m, w: tuple(c + x for x in grid_ends(m, w))),
        *[writing("", *one, *standard("Uniform", c, 1.0 + c)) for one in UNIT[1:]],
    ]


def grid_ends(m: Array, w: Array) -> Numbers:
    """The ends of an interval on the grid."""
    return m, m + np.clip(w, GRID, 2.0**19)


POWERS = (-100, 1, 90)
CHANGES: dict[str, tuple[list[Writing], list[Any]]] = {
    "x": ([*SAME, *ITSELF], []),
    "1/x": (INVERSE, [D.PowerTransform(-1.0)]),
    "x**2": (SQUARE, [D.PowerTransform(2.0)]),
    "log(x)": (LOG, [D.ExpTransform().inv]),
    "-log(x)": (MINUS_LOG, [D.ExpTransform().inv, D.AffineTransform(0.0, -1.0)]),
    "-log(1-x)": (MINUS_LOG_1M, [D.AffineTransform(1.0, -1.0), D.ExpTransform().inv, D.AffineTransform(0.0, -1.0)]),
    "logit(x)": (LOGIT, [D.SigmoidTransform().inv]),
    "1-x": (MIRROR, [D.AffineTransform(1.0, -1.0)]),
    "-x": (NEGATIVE, [D.AffineTransform(0.0, -1.0)]),
    **{f"2**{k}*x": (scaled(2.0**k), [D.AffineTransform(0.0, 2.0**k)]) for k in POWERS},
    **{f"x+{c}": (moved(c), [D.AffineTransform(c, 1.0)]) for c in (1.0, -1024.0)},
}


def family(name: str) -> type:
    """The class of a name with or without a form."""
    found: type = getattr(D, name.partition(".")[0])
    return found


def kind(p: str, q: str) -> str:
    """Whether there is a pair: none, one that is always infinite, or one with a formula."""
    try:
        return "infinite" if find(family(p), family(q)).function is infinite else "formula"
    except NotImplementedError:
        return "none"


def closed(p: Writing, q: Writing) -> bool:
    """Whether the closed form holds for all parameters of both writings, and one of the two is not always infinite."""
    kinds = {kind(p.before, q.before), kind(p.after, q.after)}
    if "none" in kinds or "formula" not in kinds:
        return False
    half_line = {p.before, p.after} & {"HalfCauchy", "Exponential"}
    return not (
        p.before == q.before == "Logistic"  # of equal scales only
        or ("StudentT" in (p.before, p.after) and "shape" in p.roles and {q.before, q.after} & {"StudentT", "Cauchy"})
        or (half_line and "place" in q.roles and {q.before, q.after} & {"StudentT", "Cauchy"})
    )


def by_integral(p: Writing, q: Writing) -> bool:
    """Whether it is one of a Kumaraswamy variable, of which the exponents may not be as far apart."""
    return p.before == "Kumaraswamy" and p.roles == ("shape", "shape") and q.before in ("Kumaraswamy", "Beta")


def identities(change: str) -> Iterator[tuple[Writing, Writing]]:
    """Any two writings of a change that are served in both variables, and differ in one of them."""
    for p, q in product(CHANGES[change][0], repeat=2):
        same = (p.before, q.before, p.parameters, q.parameters) == (p.after, q.after, p.changed, q.changed)
        if not same and closed(p, q):
            yield p, q
