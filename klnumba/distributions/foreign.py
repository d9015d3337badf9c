"""Distributions of SciPy and PyTorch as ours, and results as tensors. Neither library is loaded here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from klnumba.arrays import FLOAT32
from klnumba.distributions import scipy_objects
from klnumba.distributions.distribution import Distribution, refuse_graphs
from klnumba.distributions.registry import find
from klnumba.distributions.scipy_objects import Placed, family, placed
from klnumba.gpu.borders import is_on_device
from klnumba.parametric import Parametric, library_of
from klnumba.tensors import MAPPED, asks_gradient, is_differentiated, is_mapped, numbers_of, outside_transforms

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


def ours(value: Any, name: str) -> Distribution:
    """A distribution of ours, or one that equals it."""
    if isinstance(value, Distribution):
        return value
    converter = {"torch": _of_torch, "scipy": scipy_objects.of_scipy}.get(library_of(value) or "")
    if converter is None and isinstance(value, type):
        raise TypeError(f"{name}: a distribution like the other argument, not the class {value.__name__}; call that")
    if converter is None:
        raise TypeError(f"{name}: a distribution like the other argument, not {type(value).__name__}")
    try:
        return converter(value)
    except (ValueError, TypeError, RuntimeError) as reason:
        raise _named(reason, name) from None


def _named(reason: Exception, name: str) -> Exception:
    """The same error, with the argument that it is about."""
    return type(reason)(f"{name}: {str(reason).removeprefix('frozen: ')}")


def pair(p: Any, q: Any) -> tuple[Distribution, Distribution]:
    """Both as ours.

    KL does not see a shift, a stretch or a mirroring of both. Where a location or a scale in the terms of SciPy fits no
    family of ours, or the families have no closed form, these are tried.
    """
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        return p, q
    try:
        found = ours(p, "p"), ours(q, "q")
    except (ValueError, TypeError) as reason:
        moved = _moved(p, q)
        if moved is not None:
            return moved
        for value, name in ((p, "p"), (q, "q")):
            _standard(value, name)  # shapes that are wrong wherever it stands are named before the place
        if "no location" in str(reason):
            raise ValueError(f"{reason}{_apart(p, q)}") from None
        raise
    return found if _registered(*found) else _moved(p, q) or found


def entropy(p: Any) -> Any:
    """The entropy of p; of SciPy's with a location or a scale that no family of ours has, by the one without.

    A shift and a mirroring leave an entropy as it is, a stretch adds the logarithm of its factor.
    """
    try:
        return ours(p, "p").entropy()
    except (ValueError, TypeError):
        found = _standard(p, "p")
        if found is None:
            raise
        one, scale = found
        return one.entropy() + np.log(scale)


def _standard(value: Any, name: str) -> tuple[Distribution, Any] | None:
    """One at its family's origin, or -x of it, and its scale; None where that cannot be. An error is one of shapes."""
    terms = _terms(value)
    if terms is None:
        return None
    scale = 1.0 if terms.scale is None else terms.scale
    if not (np.all(np.isfinite(terms.loc)) and np.all(np.isfinite(scale)) and np.all(np.asarray(scale) > 0.0)):
        return None
    try:
        try:
            return _at_the_origin(terms, scale), scale
        except TypeError:
            if (other := terms.mirrored()) is None:
                raise
            return _at_the_origin(other, scale), scale
    except (ValueError, TypeError) as reason:
        raise _named(reason, name) from None


def _at_the_origin(terms: Placed, scale: Any) -> Distribution:
    return terms.moved(_locations(terms, terms)[-1], scale).ours()


Both = tuple[Distribution, Distribution]


def _apart(p: Any, q: Any) -> str:
    """What to say of two locations of which no family has one, where they differ."""
    first, second = _terms(p), _terms(q)
    if first is None or second is None or not np.any(np.asarray(first.loc) != second.loc):
        return ""
    return f"; one that both have is taken off, but loc is {first.loc} of p and {second.loc} of q"


def _moved(p: Any, q: Any) -> Both | None:
    """Both as one of the views has them, if one does; their parameters are no tensors then."""
    found = _first_of_views(p, q)
    if found is not None:
        beside = [ours(x, name) for x, name in ((p, "p"), (q, "q")) if library_of(x) != "scipy"]
        refuse_graphs("a location or scale of SciPy's that is taken off both", *beside)
    return found


def _first_of_views(p: Any, q: Any) -> Both | None:
    """The first of the views that is of our families, one with a closed form if there is."""
    first = None
    for one, other in _views(p, q):
        try:
            found = one.ours(), other.ours()
        except (ValueError, TypeError):
            continue
        if _registered(*found):
            return found
        first = first or found
    return first


def _registered(p: Distribution, q: Distribution) -> bool:
    try:
        find(type(p), type(q))
    except NotImplementedError:
        return False
    return True


def _views(p: Any, q: Any) -> Iterator[tuple[Placed, Placed]]:
    """Both less a location of one of them, over the scale of one; as they are, of -x, and as squares."""
    first, second = _terms(p), _terms(q)
    if first is None or second is None or "scipy" not in (library_of(p), library_of(q)):
        return
    for one, other in ((first, second), (first.mirrored(), second.mirrored())):
        if one is None or other is None:
            continue
        for shift in _locations(one, other):
            yield one.moved(shift, 1.0), other.moved(shift, 1.0)
            scaled = one.scale is not None and other.scale is not None
            for factor in (one.scale, other.scale) if scaled else ():
                if np.all(np.asarray(factor) > 0.0) and np.all(np.isfinite(factor)):
                    yield one.moved(shift, factor), other.moved(shift, factor)
    for shift in _locations(first, second):
        one, other = first.moved(shift, 1.0).squared(), second.moved(shift, 1.0).squared()
        if one is not None and other is not None:
            yield one, other


def _terms(value: Any) -> Placed | None:
    """In the terms of SciPy, where it has such."""
    try:
        found = placed(value) if library_of(value) == "scipy" else None
        found = found or placed(ours(value, ""))
    except (ValueError, TypeError):
        return None
    if found is None or not all(x is None or np.asarray(x).dtype.kind in "biuf" for x in (found.loc, found.scale)):
        return None
    return found


def _locations(one: Placed, other: Placed) -> list[Any]:
    """What may be taken off. SciPy's geometric distribution starts at 1, ours at 0."""
    found = [0.0, one.loc, other.loc]
    return found + [x.loc + 1.0 for x in (one, other) if x.name == "geom"]


def _of_torch(value: Any) -> Distribution:
    from klnumba.distributions.torch_relatives import LOOKED_AT, NONE, RELATIVES
    from klnumba.distributions.torch_transforms import chain

    for base in type(value).__mro__:
        kind = base.__name__
        if not base.__module__.startswith("torch.distributions"):
            continue
        if kind in NONE:
            raise TypeError(f"torch.distributions' {kind} has no counterpart here: {NONE[kind]}")
        if kind in RELATIVES:
            return RELATIVES[kind](value, _numbers if kind in LOOKED_AT else _parameter)  # type: ignore[no-any-return]
        if kind in TORCH:
            return family(kind)(**{x: _parameter(getattr(value, x)) for x in TORCH[kind]})  # type: ignore[no-any-return]
        if kind in TORCH_ODDS:
            names = (*TORCH_ODDS[kind], _odds(value))
            given = {x: _parameter(getattr(value, x)) for x in names}
            return family(kind)(**_with_narrow_counts(given))  # type: ignore[no-any-return]
        if kind == "Independent":
            inner = _of_torch(value.base_dist)
            return family(kind)(inner, value.reinterpreted_batch_ndims)  # type: ignore[no-any-return]
        if kind == "MixtureSameFamily":
            parts = value.mixture_distribution, value.component_distribution
            return family("Mixture")(*(_of_torch(x) for x in parts))  # type: ignore[no-any-return]
        if kind == "TransformedDistribution":
            transforms = [found for x in value.transforms for found in chain(x, _numbers)]
            return family(kind)(_of_torch(value.base_dist), transforms)  # type: ignore[no-any-return]
    raise TypeError(f"torch.distributions' {type(value).__name__} has no counterpart here")


def _with_narrow_counts(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of which a count that is Python's makes none wide: it is float32 where the others are, if exact so."""
    sizes = [x.dtype.itemsize for x in given.values() if not isinstance(x, int)]
    narrow = max(sizes) <= FLOAT32.itemsize
    return {
        name: np.float32(x) if narrow and isinstance(x, int) and int(np.float32(x)) == x else x
        for name, x in given.items()
    }


def _odds(value: Any) -> str:
    """What a distribution was made of. PyTorch derives the other one at its first use, with a loss, and keeps both."""
    held = getattr(value, "_categorical", value)
    names: list[str] = [name for name in held.__dict__ if name in ("probs", "logits")]
    return names[0]  # they stand in the order in which they were set


def _parameter(x: Any) -> Any:
    """The numbers of a tensor; itself where it is part of PyTorch's graph."""
    narrow = str(getattr(x, "dtype", "")) == "torch.bfloat16"
    return (x.float() if narrow else x) if asks_gradient(x) else _numbers(x)


def _numbers(x: Any) -> Any:
    """The numbers of a tensor; where a gradient would be lost unseen, an error."""
    if not hasattr(x, "detach"):
        return x
    if is_mapped(x):
        raise RuntimeError(f"a parameter of transforms, or of GeneralizedPareto: {MAPPED}")
    if asks_gradient(x) and is_differentiated(x):
        raise RuntimeError(
            "no gradient is computed by the parameters of transforms, nor by those of GeneralizedPareto, but one "
            "requires it: detach it or compute under torch.no_grad()"
        )
    with outside_transforms():
        x = numbers_of(x, "a parameter", sys.modules["torch"])
        if is_on_device(x):
            return x
        if x.is_meta:
            raise ValueError("a parameter is a tensor on the device 'meta', which holds no numbers")
        return x.cpu().numpy()


def _as_it_is(result: Any) -> Any:
    return result


def back(p: Any, q: Any) -> Callable[[Any], Any]:
    """What turns a result into what the caller's library has: a tensor, where one of the two was of PyTorch."""
    if (isinstance(p, Parametric) and isinstance(q, Parametric)) or "torch" not in (library_of(p), library_of(q)):
        return _as_it_is
    torch = sys.modules["torch"]
    return lambda result: result if is_on_device(result) else torch.from_numpy(np.array(result))
