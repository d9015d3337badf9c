"""Transforms of PyTorch as ours, and why some have no counterpart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klnumba.distributions import transforms
from klnumba.distributions.transform import Transform

# The attributes that are the parameters of ours, in their order.
SAME: dict[str, tuple[str, ...]] = {
    "AbsTransform": (),
    "AffineTransform": ("loc", "scale"),
    "ExpTransform": (),
    "PowerTransform": ("exponent",),
    "SigmoidTransform": (),
    "SoftplusTransform": (),
    "StickBreakingTransform": (),
    "TanhTransform": (),
}
MATRICES = "it makes matrices, which no transform here does"
PARTS = "it treats the parts of a draw differently; take these as distributions of their own, in a Joint"
NONE: dict[str, str] = {
    "CatTransform": PARTS,
    "CorrCholeskyTransform": MATRICES,
    "CumulativeDistributionTransform": "it holds a distribution, which no transform here does",
    "LowerCholeskyTransform": MATRICES,
    "PositiveDefiniteTransform": MATRICES,
    "ReshapeTransform": "it changes nothing but the shape of a draw; leave it away on both sides",
    "SoftmaxTransform": "it is not injective, so that the KL of what it is applied to is a bound only",
    "StackTransform": PARTS,
}


def chain(value: Any, numbers: Callable[[Any], Any]) -> list[Transform]:
    """What a transform of PyTorch's is, one after the other."""
    kind = type(value).__name__
    if kind == "ComposeTransform":
        return [found for part in value.parts for found in chain(part, numbers)]
    if kind == "IndependentTransform":  # the base distribution is an Independent then
        return chain(value.base_transform, numbers)
    if kind == "_InverseTransform":
        return [found.inv for found in reversed(chain(value.inv, numbers))]
    if kind in SAME:
        return [getattr(transforms, kind)(*(numbers(getattr(value, x)) for x in SAME[kind]))]
    why = f": {NONE[kind]}" if kind in NONE else ""
    raise TypeError(f"torch.distributions' {kind} has no counterpart here{why}")
