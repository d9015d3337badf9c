"""Distributions of SciPy as ours. SciPy is not loaded here: whoever has such an object has loaded it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klnumba import distributions
from klnumba.distributions.distribution import Distribution, scipy_arguments

# The new distributions of SciPy: our family, and the attributes with the parameters that they are.
NEW_SCIPY: dict[str, tuple[str, dict[str, str]]] = {
    "Binomial": ("Binomial", {"n": "total_count", "p": "probs"}),
    "Logistic": ("Logistic", {}),
    "Normal": ("Normal", {"mu": "loc", "sigma": "scale"}),
    "StandardNormal": ("Normal", {"mu": "loc", "sigma": "scale"}),
    "Uniform": ("Uniform", {"a": "low", "b": "high"}),
}
# Frozen distributions over vectors and matrices.
FROZEN_VECTORS: dict[str, tuple[str, dict[str, str]]] = {
    "dirichlet_frozen": ("Dirichlet", {"alpha": "concentration"}),
    "matrix_normal_frozen": (
        "MatrixNormal",
        {"mean": "loc", "rowcov": "row_covariance", "colcov": "column_covariance"},
    ),
    "invwishart_frozen": ("InverseWishart", {"df": "df", "scale": "scale_matrix"}),
    "multinomial_frozen": ("Multinomial", {"n": "total_count", "p": "probs"}),
    "multivariate_normal_frozen": ("MultivariateNormal", {"mean": "loc", "cov": "covariance_matrix"}),
    "uniform_direction_frozen": ("SphericalUniform", {"dim": "dimension"}),
    "vonmises_fisher_frozen": ("VonMisesFisher", {"mu": "mean_direction", "kappa": "concentration"}),
    "wishart_frozen": ("Wishart", {"df": "df", "scale": "covariance_matrix"}),
}


def family(name: str) -> Any:
    """A family of ours by its name."""
    found = getattr(distributions, name, None)
    if found is None:
        raise NotImplementedError(f"klnumba has no family {name}")
    return found


def families() -> list[type[Distribution]]:
    """All of ours."""
    found = (getattr(distributions, name) for name in distributions.__all__)
    return [x for x in found if isinstance(x, type) and issubclass(x, Distribution) and x is not Distribution]


def _of_gamma(shape: Any, scale: Any) -> Any:
    return family("Gamma")(shape, 1.0 / np.asarray(scale, np.float64))


def _half(x: Any) -> Any:
    return 0.5 * np.asarray(x, np.float64)


# Names that are special cases of our families: from the shapes, and the scale where the case has one.
SPECIAL: dict[str, Callable[[tuple[Any, ...], Any], Any]] = {
    "chi2": lambda shapes, scale: _of_gamma(_half(shapes[0]), 2.0 * np.asarray(scale)),
    "erlang": lambda shapes, scale: _of_gamma(shapes[0], scale),
    "rayleigh": lambda shapes, scale: family("Weibull")(math.sqrt(2.0) * np.asarray(scale), 2.0),
    "reciprocal": lambda shapes, scale: family("LogUniform")(*(np.multiply(x, scale) for x in shapes)),
    "wald": lambda shapes, scale: family("InverseGaussian")(scale, scale),
}
UNSCALED: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "arcsine": lambda shapes: family("Beta")(0.5, 0.5),
    "maxwell": lambda shapes: family("Chi")(3.0),
    "powerlaw": lambda shapes: family("Beta")(shapes[0], 1.0),
}
# Of these the square, over that of the scale, is a chi-squared variable: its degrees of freedom.
ROOTS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "chi": lambda shapes: shapes[0],
    "halfnorm": lambda shapes: 1.0,
    "maxwell": lambda shapes: 3.0,
    "rayleigh": lambda shapes: 2.0,
}
# What -x is, by its name, if its location is -loc; or -loc - scale, the shapes in reverse.
MIRRORED = {name: name for name in ("cauchy", "laplace", "logistic", "norm", "t")}
MIRRORED |= {"gumbel_l": "gumbel_r", "gumbel_r": "gumbel_l", "weibull_max": "weibull_min", "weibull_min": "weibull_max"}
TURNED = ("beta", "uniform")


@dataclass(frozen=True)
class Placed:
    """A univariate distribution in SciPy's terms: a name, shapes, a location, and a scale, None of a discrete one."""

    name: str
    shapes: tuple[Any, ...]
    loc: Any
    scale: Any

    def ours(self) -> Distribution:
        """The family's distribution; ValueError where that has no such location or scale, TypeError without family."""
        scale = 1.0 if self.scale is None else self.scale
        for kind in families():
            if kind.scipy_name == self.name:
                try:
                    return kind(**kind._from_scipy_arguments(self.shapes, self.loc, scale))
                except ValueError:
                    if self.name not in SPECIAL:
                        raise
        if self.name not in SPECIAL and self.name not in UNSCALED:
            of_minus_x = MIRRORED.get(self.name)
            way = f": -x of {of_minus_x}, for which the other one has to be mirrored too" if of_minus_x else ""
            method = "sum" if self.scale is None else "quadrature"
            other = f"kl_divergence takes it with method={method!r} or 'monte_carlo'"
            raise TypeError(f"scipy.stats.{self.name} has no counterpart here{way}; {other}")
        if np.any(np.asarray(self.loc) != 0):
            raise ValueError(f"{self.name} is taken without a location, but loc is {self.loc}")
        if self.name in SPECIAL:
            return SPECIAL[self.name](self.shapes, scale)  # type: ignore[no-any-return]
        if np.any(np.asarray(scale) != 1):
            raise ValueError(f"{self.name} is taken without a scale, but scale is {scale}")
        return UNSCALED[self.name](self.shapes)  # type: ignore[no-any-return]

    def moved(self, shift: Any, factor: Any) -> Placed:
        """That of (x - shift)/factor. An array of locations still shapes the batch, where they are all 0 now."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            loc = (np.asarray(self.loc, np.float64) - shift) / factor
            scale = None if self.scale is None else np.asarray(self.scale, np.float64) / factor
        if loc.ndim and scale is not None:
            scale = scale + np.zeros(loc.shape)
        shapes = self.shapes
        if loc.ndim and scale is None:
            shapes = (shapes[0] + np.zeros(loc.shape), *shapes[1:])
        return replace(self, loc=loc, scale=scale, shapes=shapes)

    def mirrored(self) -> Placed | None:
        """That of -x, where it has a name."""
        if self.name in TURNED:
            return replace(self, loc=-(np.asarray(self.loc) + self.scale), shapes=self.shapes[::-1])
        if self.name in MIRRORED:
            return replace(self, name=MIRRORED[self.name], loc=-np.asarray(self.loc))
        return None

    def squared(self) -> Placed | None:
        """That of the square, where that is a gamma distribution."""
        if self.name not in ROOTS or np.any(np.asarray(self.loc) != 0) or not np.all(np.asarray(self.scale) > 0.0):
            return None
        shape = _half(ROOTS[self.name](self.shapes))
        return Placed("gamma", (shape,), 0.0, 2.0 * np.square(np.asarray(self.scale, np.float64)))


def placed(value: Any) -> Placed | None:
    """A frozen distribution of SciPy's, a shifted and scaled one, or one of ours, in these terms; None without any."""
    if hasattr(value, "dist"):
        theirs = getattr(value.dist, "name", "")
        genuine = getattr(sys.modules["scipy.stats"], theirs, None)
        if isinstance(value.dist, sys.modules["scipy.stats"].rv_histogram):
            raise TypeError('a histogram has no closed form; kl_divergence takes it with method="quadrature"')
        if type(value.dist) is not type(genuine):  # a class of the user's own may have any name
            raise TypeError(f"{type(value.dist).__name__} is not a distribution of scipy.stats itself")
        return Placed(theirs, *scipy_arguments(value))
    if isinstance(value, Distribution):
        try:
            return Placed(value.scipy_name, *value._scipy_arguments())
        except (NotImplementedError, AttributeError):
            return None
    if type(value).__name__ == "ShiftedScaledDistribution" and hasattr(value, "_dist"):
        return _shifted(value)
    return None


def _shifted(value: Any) -> Placed | None:
    """loc + scale*x of a new distribution x; the scale may be negative."""
    loc, scale = np.asarray(value.loc), np.asarray(value.scale)
    base = placed(of_scipy(value._dist))
    if base is not None and np.all(scale < 0.0):
        base = base.mirrored()
    if base is None or np.any(scale > 0.0) == np.any(scale < 0.0):
        return None
    size = np.abs(scale)
    return replace(base, loc=loc + size * base.loc, scale=size * base.scale)


def of_scipy(value: Any) -> Distribution:
    """A distribution of SciPy's as ours."""
    terms = placed(value)
    if terms is not None:
        return terms.ours()
    kind = type(value).__name__
    for table in (NEW_SCIPY, FROZEN_VECTORS):
        if kind in table:
            name, attributes = table[kind]
            return family(name)(**{ours: getattr(value, theirs) for theirs, ours in attributes.items()})  # type: ignore[no-any-return]
    if kind == "Mixture" and (parts := Distribution.together([of_scipy(x) for x in value.components])):
        return family("Mixture")(family("Categorical")(value.weights), parts)  # type: ignore[no-any-return]
    stats = sys.modules["scipy.stats"]
    if isinstance(value, stats.rv_histogram):
        raise TypeError(f"scipy.stats' {kind} is not frozen: call it, as in histogram()")
    if isinstance(value, stats.rv_continuous | stats.rv_discrete):
        raise TypeError(f"scipy.stats.{value.name} is not frozen: call it with its parameters, as in norm(0.0, 1.0)")
    raise TypeError(f"scipy.stats' {kind} has no counterpart here")


def new_scipy(one: Distribution) -> Any:
    """A single continuous distribution over numbers as one of SciPy's new ones, of which it makes mixtures."""
    from scipy import stats

    name = type(one).__name__
    attributes = NEW_SCIPY.get(name, ("", {}))[1]
    if attributes:
        return getattr(stats, name)(**{theirs: getattr(one, ours) for theirs, ours in attributes.items()})
    shapes, loc, scale = one._scipy_arguments()
    if name in NEW_SCIPY and hasattr(stats, name):
        return loc + scale * getattr(stats, name)()
    theirs = getattr(stats, one.scipy_name)
    names = theirs.shapes.split(", ") if theirs.shapes else []
    return loc + scale * stats.make_distribution(theirs)(**dict(zip(names, shapes, strict=True)))
