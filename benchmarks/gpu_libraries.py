"""The contenders on a device, in the library that holds the inputs: PyTorch, else CuPy, else Numba's own arrays."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import klnumba as kl
from benchmarks import expressions

KINDS = ("prob", "log_prob", "logit")
ITEMS = {"float64": 8, "float32": 4, "bfloat16": 2}
Call = Callable[..., Any]


class Library:
    """Numba's own arrays: klnumba alone. The others add their contenders."""

    def item(self, dtype: str) -> int:
        """Bytes of a cell."""
        return ITEMS[dtype]

    def inputs(self, kind: str, dtype: str, n: int, d: int, seed: int) -> tuple[Any, Any]:
        """Two arrays of rows of a kind."""
        from numba import cuda

        rng = np.random.default_rng(seed)
        cells = rng.random((2, n, d)) + 1e-3
        cells /= cells.sum(-1, keepdims=True)
        if kind != "prob":
            cells = np.log(cells)
        return tuple(cuda.to_device(side.astype(_numpy_dtype(dtype))) for side in cells)  # type: ignore[return-value]

    def copy(self, p: Any, q: Any) -> Any:
        """A copy of one input: it moves as many bytes as there are in both."""
        from numba import cuda

        flat = p.reshape(p.size).view(np.uint8)
        target = cuda.device_array(flat.size, np.uint8)
        target.copy_to_device(flat)
        return target

    def contenders(self, kind: str, dtype: str, peers: bool) -> dict[str, Call]:
        """By name."""
        return {"klnumba": lambda p, q: kl.kl_divergence(p, q, kind=kind)}

    def training_contenders(self, kind: str, peers: bool) -> dict[str, Call]:
        """Value and derivative by q of the mean KL."""
        return {"klnumba": functools.partial(_our_derivative, kind)}

    def parameters(self, n: int, seed: int) -> tuple[Any, ...]:
        """Four columns of positive numbers."""
        from numba import cuda

        return tuple(cuda.to_device(side) for side in np.random.default_rng(seed).uniform(0.5, 3.5, (4, n)))

    def pair_contenders(self, peers: bool) -> dict[str, Call]:
        """KL of two batches of a family from their four columns."""
        return {"klnumba": _our_pair}

    def wait(self) -> None:
        """Until the device has done all."""
        from numba import cuda

        cuda.synchronize()


def _our_derivative(kind: str, p: Any, q: Any) -> Any:
    return kl.value_and_grad(kl.kl_divergence, 1)(p, q, kind=kind, reduction="mean")


def _our_pair(family: str, a: Any, b: Any, c: Any, e: Any) -> Any:
    make = getattr(kl.distributions, family)
    return kl.kl_divergence(make(a, b), make(c, e))


def _numpy_dtype(dtype: str) -> Any:
    if dtype != "bfloat16":
        return np.dtype(dtype)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


class Torch(Library):
    """PyTorch, eager and compiled."""

    def inputs(self, kind: str, dtype: str, n: int, d: int, seed: int) -> tuple[Any, Any]:
        import torch

        torch.manual_seed(seed)
        sides = []
        for _ in range(2):
            cells = torch.rand((n, d), device="cuda").add_(1e-3)
            cells /= cells.sum(-1, keepdim=True)
            sides.append((cells if kind == "prob" else cells.log_()).to(getattr(torch, dtype)))
        return sides[0], sides[1]

    def copy(self, p: Any, q: Any) -> Any:
        return p.clone()

    def contenders(self, kind: str, dtype: str, peers: bool) -> dict[str, Call]:
        ours = super().contenders(kind, dtype, peers)
        if not peers:
            return ours
        if kind == "prob":
            expression = expressions.prob
        else:
            expression = expressions.log_prob if kind == "log_prob" else expressions.log_prob_normalised
        eager = functools.partial(expression, _TorchNames)
        found = ours | {"torch": eager, "torch.compile": _compiled(eager)}
        if importlib.util.find_spec("cupy") and kind == "prob" and dtype != "bfloat16":
            found |= cupy_contenders()
        return found

    def training_contenders(self, kind: str, peers: bool) -> dict[str, Call]:
        losses = {"klnumba": functools.partial(kl.kl_divergence, kind=kind, reduction="mean")}
        if peers:
            theirs = expressions.torch_losses[kind]
            losses |= {"torch": theirs, "torch.compile": _compiled(theirs)}
        return {name: functools.partial(_backward, loss) for name, loss in losses.items()}

    def parameters(self, n: int, seed: int) -> tuple[Any, ...]:
        import torch

        torch.manual_seed(seed)
        return tuple(torch.rand(n, device="cuda", dtype=torch.float64).mul_(3.0).add_(0.5) for _ in range(4))

    def pair_contenders(self, peers: bool) -> dict[str, Call]:
        if not peers:
            return super().pair_contenders(peers)
        import torch

        def theirs(family: str, a: Any, b: Any, c: Any, e: Any) -> Any:
            make = functools.partial(getattr(torch.distributions, family), validate_args=False)
            return torch.distributions.kl_divergence(make(a, b), make(c, e))

        return super().pair_contenders(peers) | {"torch": theirs, "torch.compile": _compiled(theirs)}

    def wait(self) -> None:
        import torch

        torch.cuda.synchronize()


def _backward(loss: Call, p: Any, q: Any) -> Any:
    learnt = q.detach().requires_grad_()
    loss(p, learnt).backward()
    return learnt.grad


def _compiled(function: Call) -> Call:
    """Compiled for the shapes at hand. Without the reset the ninth shape would run eagerly, and the second for any."""
    import torch

    torch._dynamo.reset()
    compiled: Call = torch.compile(function, dynamic=False)
    return compiled


class _TorchNames:
    """PyTorch as `expressions` names its functions."""

    @staticmethod
    def wide(x: Any) -> Any:
        return x.float() if x.element_size() == 2 else x

    @staticmethod
    def log(x: Any) -> Any:
        return x.log()

    @staticmethod
    def exp(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def log_softmax(x: Any) -> Any:
        return x.log_softmax(-1)


def cupy_contenders() -> dict[str, Call]:
    """CuPy's plain expression, and its own cells reduced, of the same memory."""
    import cupy
    from cupyx.scipy.special import rel_entr

    def expression(p: Any, q: Any) -> Any:
        p, q = cupy.from_dlpack(p), cupy.from_dlpack(q)
        return (p * cupy.log(p / q)).sum(-1)

    def reduced(p: Any, q: Any) -> Any:
        return rel_entr(cupy.from_dlpack(p), cupy.from_dlpack(q)).sum(-1)

    return {"CuPy": expression, "CuPy rel_entr": reduced}


@functools.cache
def library() -> Library:
    """PyTorch where it sees a device; else Numba's own arrays."""
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            return Torch()
    return Library()
