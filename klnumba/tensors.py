"""What PyTorch does with a tensor: gradients, transforms of ``torch.func`` and traces. It is not loaded here."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

MAPPED = "a tensor inside vmap, that is another for each member of the batch; give the batch as one more axis"

LISTS = (list, tuple)

F = TypeVar("F", bound=Callable[..., Any])


def untraced(function: F) -> F:
    """A door of the package that torch.compile leaves as it is: nothing behind it can be compiled once more.

    Whatever is given: PyTorch's compiler follows arrays, lists and objects as it does tensors.
    """

    @functools.wraps(function)
    def door(*args: Any, **options: Any) -> Any:
        if "torch._dynamo" in sys.modules:
            from klnumba.torch_compiler import is_around, outside  # which the compiler runs and does not follow

            if is_around():
                return outside(function, args, options)
        return function(*args, **options)

    return door  # type: ignore[return-value]


def untrace(kind: type, *names: str) -> None:
    """Make doors of those of a class's own methods and properties that have these names."""
    for name in names:
        found = vars(kind).get(name)
        if isinstance(found, FunctionType):
            setattr(kind, name, untraced(found))
        elif isinstance(found, classmethod):
            setattr(kind, name, classmethod(untraced(found.__func__)))
        elif isinstance(found, property) and found.fget:
            setattr(kind, name, found.getter(untraced(found.fget)))


def is_tensor(x: Any) -> bool:
    """Whether this is a tensor of PyTorch, or of a class made from its class; results are plain tensors."""
    return isinstance(x, getattr(sys.modules.get("torch"), "Tensor", ()))


def array_library(x: Any) -> str:
    """The name of the library that an array is from."""
    return "torch" if is_tensor(x) else type(x).__module__.partition(".")[0]


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
    return _unpacked(x, torch).tangent is not None


def _unpacked(x: Any, torch: Any) -> Any:
    """A tensor and its tangent. PyTorch leaves inference mode where it leaves transforms, and then refuses to tell."""
    if not x.is_inference():
        return torch.autograd.forward_ad.unpack_dual(x)
    with torch.inference_mode():
        return torch.autograd.forward_ad.unpack_dual(x)


def strided(x: Any, name: str, torch: Any) -> Any:
    """A tensor whose cells lie in memory as they are, and of which nobody waits for a gradient."""
    if x.requires_grad and torch.is_grad_enabled():
        cells_of(x, name, torch)
        raise RuntimeError(f"{name}: a tensor that requires grad, and none is computed here; give {name}.detach()")
    return cells_of(x, name, torch)


def cells_of(x: Any, name: str, torch: Any) -> Any:
    """The same of one whose gradient the caller sees to."""
    if x.is_nested:
        padded = f"{name}.to_padded_tensor"
        raise TypeError(f"{name}: a nested tensor; give {padded}(0.0), of logs and logits {padded}(-math.inf)")
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


def outside_transforms() -> Any:
    """A context in which PyTorch's functions take tensors as they are, whatever transforms are at work."""
    return sys.modules["torch"]._C._DisableFuncTorch() if transforms_around() else contextlib.nullcontext()


def no_graph() -> Any:
    """A context in which PyTorch, if it is there, records nothing."""
    torch = sys.modules.get("torch")
    return contextlib.nullcontext() if torch is None else torch.no_grad()


def mask(where: Any) -> Any:
    """The argument `where`, of which no derivative is taken, outside of what follows derivatives."""
    if not is_tensor(where) or not transforms_around():
        return where
    with outside_transforms():
        *_, inside = _layers(where, "where", sys.modules["torch"])
        return inside.numpy()


def _layers(x: Any, name: str, torch: Any) -> Iterator[Any]:
    """A tensor, and what is inside it, layer by layer that a transform of ``torch.func`` has put around it."""
    transforms = _transforms(torch)
    yield x
    while transforms.is_functorch_wrapped_tensor(x):
        if transforms.is_batchedtensor(x):
            raise RuntimeError(f"{name}: {MAPPED}")
        if transforms.is_functionaltensor(x):  # whose derivatives would be those of a constant
            raise RuntimeError(f"{name}: a tensor inside torch.func.functionalize, that follows no call")
        x = transforms.get_unwrapped(x)
        yield x


def is_in_forward_mode() -> bool:
    """Whether tensors may have tangents, which PyTorch computes also where no graph is recorded."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0


def is_mapped(x: Any) -> bool:
    """Whether a tensor is another for each member of a batch that ``vmap`` goes through."""
    if not is_tensor(x) or not transforms_around():
        return False
    transforms = _transforms(sys.modules["torch"])
    while transforms.is_functorch_wrapped_tensor(x):
        if transforms.is_batchedtensor(x):
            return True
        x = transforms.get_unwrapped(x)
    return False


def version(x: Any) -> int:
    """How often a tensor has been changed in place; of those of inference mode PyTorch does not count it."""
    return 0 if x.is_inference() else int(x._version)


def is_differentiated(x: Any) -> bool:
    """Whether a derivative follows a tensor that `asks_gradient`, which may be a constant inside transforms."""
    torch: Any = sys.modules["torch"]
    if x.requires_grad or _has_tangent(x, torch):
        return True
    if not transforms_around():
        return False
    innermost = importlib.import_module("torch._functorch.pyfunctorch").retrieve_current_functorch_interpreter()
    transforms = _transforms(torch)
    with innermost.lower():  # which a tensor that comes from further out passes as it is
        of_this = transforms.maybe_get_level(x) == innermost.level()
        return is_differentiated(transforms.get_unwrapped(x) if of_this else x)


def numbers_of(x: Any, name: str, torch: Any) -> Any:
    """What `cells_of` gives, also of a tensor that derivatives of ``torch.func`` or forward-mode ones follow.

    The caller sees to these, and is outside of transforms. bfloat16, which NumPy does not have, becomes float32.
    """
    if transforms_around() or is_in_forward_mode():
        *_, inside = _layers(x, name, torch)
        x = _unpacked(inside, torch).primal
    found = cells_of(x, name, torch).resolve_neg()
    return found.float() if found.dtype == torch.bfloat16 and not found.is_cuda else found


def refuse_lists(x: Any, name: str) -> None:
    """An error where a list holds a tensor that a derivative follows: NumPy reads its number alone."""
    torch = sys.modules.get("torch")
    if torch is not None and type(x) in LISTS and _holds_followed(x, torch):
        raise TypeError(f"{name}: a list with a tensor that a derivative follows; give torch.stack of its parts")


def _holds_followed(x: Any, torch: Any) -> bool:
    """Whether a list, or one inside it, holds such a tensor; of numbers the types are looked at, level by level."""
    while x:
        kinds = set(map(type, x))
        if any(issubclass(kind, torch.Tensor) for kind in kinds) and asks_gradient(*x):
            return True
        x = [] if kinds.isdisjoint(LISTS) else list(itertools.chain(*(one for one in x if type(one) in LISTS)))
    return False
