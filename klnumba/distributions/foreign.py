"""Distributions of SciPy and PyTorch as ours, and results as tensors. Neither library is loaded here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from klnumba import distributions
from klnumba.distributions.distribution import Distribution, scipy_arguments
from klnumba.gpu.borders import is_on_device
from klnumba.parametric import Parametric, library_of

# torch.distributions: the attributes that are our parameters, under the same names.
TORCH: dict[str, tuple[str, ...]] = {
    "Beta": ("concentration1", "concentration0"),
    "Cauchy": ("loc", "scale"),
    "Chi2": ("df",),
    "Dirichlet": ("concentration",),
    "Exponential": ("rate",),
    "Gamma": ("concentration", "rate"),
    "Gumbel": ("loc", "scale"),
    "HalfCauchy": ("scale",),
    "HalfNormal": ("scale",),
    "InverseGamma": ("concentration", "rate"),
    "Kumaraswamy": ("concentration1", "concentration0"),
    "Laplace": ("loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "LowRankMultivariateNormal": ("loc", "cov_factor", "cov_diag"),
    "MultivariateNormal": ("loc", "scale_tril"),
    "Normal": ("loc", "scale"),
    "Pareto": ("scale", "alpha"),
    "Poisson": ("rate",),
    "StudentT": ("df", "loc", "scale"),
    "Uniform": ("low", "high"),
    "VonMises": ("loc", "concentration"),
    "Weibull": ("scale", "concentration"),
    "Wishart": ("df", "scale_tril"),
}
# Transforms of torch.distributions: the attributes that are the parameters of ours, in their order.
TORCH_TRANSFORMS: dict[str, tuple[str, ...]] = {
    "AbsTransform": (),
    "AffineTransform": ("loc", "scale"),
    "ExpTransform": (),
    "PowerTransform": ("exponent",),
    "SigmoidTransform": (),
    "TanhTransform": (),
}
# Those with probabilities or log-odds, whichever they were made of, after the other attributes.
TORCH_ODDS: dict[str, tuple[str, ...]] = {
    "Bernoulli": (),
    "Binomial": ("total_count",),
    "Categorical": (),
    "ContinuousBernoulli": (),
    "Geometric": (),
    "Multinomial": ("total_count",),
    "NegativeBinomial": ("total_count",),
    "OneHotCategorical": (),
}

# The new distributions of SciPy: the attributes, and our parameters.
NEW_SCIPY: dict[str, tuple[str, dict[str, str]]] = {
    "Binomial": ("Binomial", {"n": "total_count", "p": "probs"}),
    "Logistic": ("Logistic", {}),
    "Normal": ("Normal", {"mu": "loc", "sigma": "scale"}),
    "StandardNormal": ("Normal", {"mu": "loc", "sigma": "scale"}),
    "Uniform": ("Uniform", {"a": "low", "b": "high"}),
}
# Frozen distributions of SciPy over vectors and matrices.
FROZEN_VECTORS: dict[str, tuple[str, dict[str, str]]] = {
    "dirichlet_frozen": ("Dirichlet", {"alpha": "concentration"}),
    "matrix_normal_frozen": (
        "MatrixNormal",
        {"mean": "loc", "rowcov": "row_covariance", "colcov": "column_covariance"},
    ),
    "invwishart_frozen": ("InverseWishart", {"df": "df", "scale": "scale"}),
    "multinomial_frozen": ("Multinomial", {"n": "total_count", "p": "probs"}),
    "multivariate_normal_frozen": ("MultivariateNormal", {"mean": "loc", "cov": "covariance_matrix"}),
    "uniform_direction_frozen": ("SphericalUniform", {"dim": "dimension"}),
    "vonmises_fisher_frozen": ("VonMisesFisher", {"mu": "mean_direction", "kappa": "concentration"}),
    "wishart_frozen": ("Wishart", {"df": "df", "scale": "covariance_matrix"}),
}


def _of_gamma(shapes: tuple[Any, ...], scale: Any) -> Distribution:
    return _family("Gamma")(shapes[0], 1.0 / np.asarray(scale, np.float64))  # type: ignore[no-any-return]


# Families of SciPy that are special cases of ours: from the shapes and the scale.
SPECIAL: dict[str, Callable[[tuple[Any, ...], Any], Distribution]] = {
    "arcsine": lambda shapes, scale: _unscaled("arcsine", scale, "Beta", 0.5, 0.5),
    "chi2": lambda shapes, scale: _of_gamma((0.5 * np.asarray(shapes[0], np.float64),), 2.0 * np.asarray(scale)),
    "erlang": _of_gamma,
    "powerlaw": lambda shapes, scale: _unscaled("powerlaw", scale, "Beta", shapes[0], 1.0),
}


def ours(value: Any, name: str) -> Distribution:
    """A distribution of ours, or one that equals it."""
    if isinstance(value, Distribution):
        return value
    library = library_of(value)
    if library == "torch":
        return _from_torch(value, name)
    if library == "scipy":
        return _from_scipy(value, name)
    raise TypeError(f"{name}: a distribution like the other argument, not {type(value).__name__}")


def pair(p: Any, q: Any, *, moved: bool = True) -> tuple[Distribution, Distribution]:
    """Both as ours. A location or scale that two frozen distributions share may be taken off: KL does not see it."""
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        return p, q
    try:
        return ours(p, "p"), ours(q, "q")
    except ValueError as reason:
        if not (moved and hasattr(p, "dist") and hasattr(q, "dist")):
            raise
        for alike in _together(p, q):
            try:
                return ours(alike[0], "p"), ours(alike[1], "q")
            except ValueError:
                continue
        raise reason


def _together(p: Any, q: Any) -> Iterator[tuple[Any, Any]]:
    """The pair without the location both have, and without the scale. Arrays of them stay: they shape the batch."""
    (of_p, loc, scale), (of_q, other, factor) = scipy_arguments(p), scipy_arguments(q)
    if not _one_number(loc, other) or not np.isfinite(loc):
        return
    yield p.dist(*of_p, **_scale(scale)), q.dist(*of_q, **_scale(factor))
    if scale is None:  # SciPy's geometric distribution starts at 1, ours at 0
        yield p.dist(*of_p, loc=-1.0), q.dist(*of_q, loc=-1.0)
    if scale is not None and _one_number(scale, factor) and 0.0 < scale < np.inf:
        yield p.dist(*of_p), q.dist(*of_q)


def _one_number(x: Any, y: Any) -> bool:
    return np.ndim(x) == np.ndim(y) == 0 and bool(x == y)


def _scale(scale: Any) -> dict[str, Any]:
    return {} if scale is None else {"scale": scale}


def _family(name: str) -> Any:
    found = getattr(distributions, name, None)
    if found is None:
        raise NotImplementedError(f"klnumba has no family {name}")
    return found


def _from_scipy(value: Any, name: str) -> Distribution:
    kind = type(value).__name__
    if hasattr(value, "dist"):
        return _from_frozen(value, name)
    for table in (NEW_SCIPY, FROZEN_VECTORS):
        if kind in table:
            family, attributes = table[kind]
            return _family(family)(**{ours: getattr(value, theirs) for theirs, ours in attributes.items()})  # type: ignore[no-any-return]
    raise TypeError(f"{name}: scipy.stats' {kind} has no counterpart here")


def _from_frozen(frozen: Any, name: str) -> Distribution:
    theirs = getattr(frozen.dist, "name", "")
    genuine = getattr(sys.modules["scipy.stats"], theirs, None)
    if type(frozen.dist) is not type(genuine):  # a class of the user's own may have any name
        raise TypeError(f"{name}: {type(frozen.dist).__name__} is not a distribution of scipy.stats itself")
    for family in _families():
        if family.scipy_name == theirs:
            try:
                return family.from_scipy(frozen)
            except ValueError:
                if theirs not in SPECIAL:
                    raise
    if theirs in SPECIAL:
        shapes, loc, scale = scipy_arguments(frozen)
        if np.any(np.asarray(loc) != 0):
            raise ValueError(f"frozen: {theirs} is taken without a location, but loc is {loc}")
        return SPECIAL[theirs](shapes, scale)
    raise TypeError(f"{name}: scipy.stats.{theirs} has no counterpart here")


def _families() -> list[type[Distribution]]:
    return [getattr(distributions, name) for name in distributions.__all__ if _is_family(name)]


def _is_family(name: str) -> bool:
    found = getattr(distributions, name)
    return isinstance(found, type) and issubclass(found, Distribution) and found is not Distribution


def _unscaled(name: str, scale: Any, family: str, *parameters: Any) -> Distribution:
    if np.any(np.asarray(scale) != 1):
        raise ValueError(f"frozen: {name} is taken without a scale, but scale is {scale}")
    return _family(family)(*parameters)  # type: ignore[no-any-return]


def _from_torch(value: Any, name: str) -> Distribution:
    from klnumba.distributions.torch_relatives import NONE, RELATIVES

    for base in type(value).__mro__:
        kind = base.__name__
        if not base.__module__.startswith("torch.distributions"):
            continue
        if kind in NONE:
            raise TypeError(f"{name}: torch.distributions' {kind} has no counterpart here: {NONE[kind]}")
        if kind in RELATIVES:
            return RELATIVES[kind](value, _numbers)  # type: ignore[no-any-return]
        if kind in TORCH:
            return _family(kind)(**{x: _numbers(getattr(value, x)) for x in TORCH[kind]})  # type: ignore[no-any-return]
        if kind in TORCH_ODDS:
            odds = _odds(value)
            return _family(kind)(**{x: _numbers(getattr(value, x)) for x in (*TORCH_ODDS[kind], odds)})  # type: ignore[no-any-return]
        if kind == "Independent":
            inner = ours(value.base_dist, name)
            return _family(kind)(inner, value.reinterpreted_batch_ndims)  # type: ignore[no-any-return]
        if kind == "MixtureSameFamily":
            parts = value.mixture_distribution, value.component_distribution
            return _family("Mixture")(*(ours(x, name) for x in parts))  # type: ignore[no-any-return]
        if kind == "TransformedDistribution" and _has_counterpart(value):
            chain = [_transform(x) for x in value.transforms]
            return _family(kind)(ours(value.base_dist, name), chain)  # type: ignore[no-any-return]
    raise TypeError(f"{name}: torch.distributions' {type(value).__name__} has no counterpart here")


def _has_counterpart(value: Any) -> bool:
    """Whether a transformed distribution of PyTorch is made of what is here."""
    base = type(value.base_dist).__name__
    known = base in TORCH or base in TORCH_ODDS or base in ("Independent", "TransformedDistribution")
    return known and all(type(x).__name__ in TORCH_TRANSFORMS for x in value.transforms)


def _transform(value: Any) -> Any:
    kind = type(value).__name__
    return _family(kind)(*(_numbers(getattr(value, x)) for x in TORCH_TRANSFORMS[kind]))


def _odds(value: Any) -> str:
    """What a distribution was made of. PyTorch derives the other one at its first use, with a loss, and keeps both."""
    held = getattr(value, "_categorical", value)
    names: list[str] = [name for name in held.__dict__ if name in ("probs", "logits")]
    return names[0]  # they stand in the order in which they were set


def _numbers(x: Any) -> Any:
    """The numbers of a tensor, without its history."""
    if not hasattr(x, "detach"):
        return x
    if is_on_device(x):
        return x.detach()
    there = x.detach().cpu()
    return (there.float() if str(there.dtype) == "torch.bfloat16" else there).numpy()


def _as_it_is(result: Any) -> Any:
    return result


def back(p: Any, q: Any) -> Callable[[Any], Any]:
    """What turns a result into what the caller's library has: a tensor, where one of the two was of PyTorch."""
    if (isinstance(p, Parametric) and isinstance(q, Parametric)) or "torch" not in (library_of(p), library_of(q)):
        return _as_it_is
    torch = sys.modules["torch"]
    return lambda result: result if is_on_device(result) else torch.from_numpy(np.array(result))
