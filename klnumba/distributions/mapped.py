"""Parameters inside ``torch.func.vmap``, whose numbers are not there before a divergence asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.tensors import MAPPED


class NoNumbersError(RuntimeError, AttributeError):
    """What an array has, and this does not: `hasattr` says so as well."""


class Mapped:
    """In place of the numbers of a tensor that is another for each member of a batch: what all members share.

    Whoever wants the numbers is told that there are none. A divergence asks for them when ``vmap`` has given them out.
    """

    def __init__(self, name: str, tensor: Any) -> None:
        self.name = name
        self.shape = tuple(tensor.shape)
        self.ndim = len(self.shape)
        if tensor.is_complex():
            raise TypeError(f"{name} must be real numbers, not {tensor.dtype}")
        narrow = tensor.is_floating_point() and tensor.dtype.itemsize <= 4
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    def __repr__(self) -> str:
        return f"<{self.shape} of each member of a batch>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoNumbersError(f"{self.name}: {MAPPED}")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError(f"{self.name}: {MAPPED}")
