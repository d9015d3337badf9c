"""What PyTorch does with a tensor: gradients, transforms of ``torch.func`` and traces. It is not loaded here."""

from __future__ import annotations

import sys
from typing import Any


def asks_gradient(*values: Any) -> bool:
    """Whether one is a tensor that requires grad, where gradients are recorded, or that a transform follows."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    for x in values:  # noqa: SIM110, a generator takes longer than what it asks
        if isinstance(x, torch.Tensor) and _is_followed(x, torch):
            return True
    return False


def is_recorded(*arguments: Any) -> bool:
    """Whether PyTorch is to know what is done with arguments of which some are tensors: derivatives of derivatives."""
    torch: Any = sys.modules["torch"]
    return torch.is_grad_enabled() or transforms_around() or asks_gradient(*arguments)


def _is_followed(x: Any, torch: Any) -> bool:
    if x.requires_grad and torch.is_grad_enabled():
        return True
    if _is_wrapped(x, torch):  # vmap has no rule by which one could ask for a tangent
        return not _transforms(torch).is_functionaltensor(x)
    return _has_tangent(x, torch)


def _has_tangent(x: Any, torch: Any) -> bool:
    """Whether a tensor is one of forward-mode derivatives."""
    return torch.autograd.forward_ad.unpack_dual(x).tangent is not None


def strided(x: Any, name: str, torch: Any) -> Any:
    """A tensor whose cells lie in memory as they are, and of which nobody waits for a gradient."""
    if x.requires_grad and torch.is_grad_enabled():
        cells_of(x, name, torch)
        raise RuntimeError(f"{name}: a tensor that requires grad, and none is computed here; give {name}.detach()")
    return cells_of(x, name, torch)


def cells_of(x: Any, name: str, torch: Any) -> Any:
    """The same of one whose gradient the caller sees to."""
    if x.layout != torch.strided:
        raise TypeError(f"{name}: a tensor of layout {x.layout}; give {name}.to_dense()")
    if _is_wrapped(x, torch):
        raise RuntimeError(f"{name}: a tensor inside a transform of torch.func, such as vmap, that hides its cells")
    if _has_tangent(x, torch):
        raise RuntimeError(f"{name}: a tensor with a tangent, and no forward-mode derivative is computed here")
    if _is_traced(torch):
        raise RuntimeError(f"{name}: a tensor inside a trace of torch.fx, such as linearize's, that would keep no call")
    return x.detach() if x.requires_grad else x


def _is_wrapped(x: Any, torch: Any) -> bool:
    """Whether a transform stands between a tensor and its cells; what lies in their place may be anything."""
    transforms = _transforms(torch)
    return transforms is not None and bool(transforms.is_functorch_wrapped_tensor(x))


def _is_traced(torch: Any) -> bool:
    """Whether PyTorch writes down what is done: of an array it would keep the numbers."""
    internals: Any = getattr(torch, "_C", None)
    mode = getattr(internals, "_get_dispatch_mode", None)
    return mode is not None and mode(internals._TorchDispatchModeKey.PROXY) is not None


def _transforms(torch: Any) -> Any:
    return getattr(getattr(torch, "_C", None), "_functorch", None)


def transforms_around() -> bool:
    """Whether a transform of ``torch.func`` is at work."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch._C._are_functorch_transforms_active())


def mask(where: Any) -> Any:
    """The argument `where`, of which no derivative is taken, outside of what follows derivatives."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(where, torch.Tensor) or not transforms_around():
        return where
    transforms = torch._C._functorch
    while transforms.is_functorch_wrapped_tensor(where):
        if transforms.is_batchedtensor(where):
            raise RuntimeError("where: a tensor inside vmap, that is another for each member of the batch")
        where = transforms.get_unwrapped(where)
    with torch._C._DisableFuncTorch():
        return where.numpy()
