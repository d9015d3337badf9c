"""What a caller gives as a parameter, as an array."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from klnumba.distributions.mapped import Mapped
from klnumba.gpu.borders import is_on_device
from klnumba.tensors import (
    MAPPED,
    asks_gradient,
    is_differentiated,
    is_mapped,
    is_tensor,
    numbers_of,
    outside_transforms,
    refuse_lists,
)


def tensors_of(owner: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are tensors of which PyTorch wants the gradient."""
    asking = {name: value for name, value in given.items() if asks_gradient(value)}
    found = {}
    for name, value in asking.items():
        if is_mapped(value):
            found[name] = value.clone()  # its numbers are asked for later, and may have been changed in place by then
        elif is_differentiated(value):
            found[name] = value
    for name, value in found.items():
        if is_on_device(value):
            raise RuntimeError(
                f"{owner}: {name} is a tensor on a CUDA device that requires grad, and derivatives by parameters are "
                "computed on the CPU: give it in the memory of the CPU, detach it or compute under torch.no_grad()"
            )
    return found


def number_array(owner: str, name: str, value: Any) -> Any:
    """A copy that cannot be written to, float32 if it comes as such, else float64; on a device, the array itself."""
    if not is_tensor(value):
        return _array_of(owner, name, value)
    if is_mapped(value):
        return Mapped(f"{owner}: {name}", value)
    with outside_transforms():
        return _array_of(owner, name, numbers_of(value, f"{owner}: {name}", sys.modules["torch"]))


def _array_of(owner: str, name: str, value: Any) -> Any:
    if is_on_device(value):
        from klnumba.gpu.parameters import Numbers

        return Numbers(value, owner, name)
    return memory_array(owner, name, value)


def memory_array(owner: str, name: str, value: Any) -> np.ndarray:
    """The same of numbers in the memory of the CPU, in which those of a device are not read."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        at = ", ".join(map(str, np.argwhere(np.asarray(value.mask))[0]))
        raise ValueError(f"{owner}: {name} must have no masked numbers, but {name}{f'[{at}]' if at else ''} is masked")
    array = _read(owner, name, value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{owner}: {name} must be real numbers, not {array.dtype}")
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    array = np.array(array, np.float32 if narrow else np.float64)
    array.flags.writeable = False
    return array


def _read(owner: str, name: str, value: Any) -> np.ndarray:
    """The array of any dtype that a value makes; long integers and fractions become float64."""
    refuse_lists(value, f"{owner}: {name}")
    if is_mapped(value):
        raise RuntimeError(f"{owner}: {name}: {MAPPED}")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{owner}: {name} must be a number or an array, but its rows differ in length") from None
    except (TypeError, RuntimeError) as error:  # a tensor says what it lacks
        raise TypeError(f"{owner}: {name} cannot be read as an array: {error}") from error
    if array.dtype.kind != "O" or not all(isinstance(one, numbers.Real) for one in array.flat):
        return array
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{owner}: {name} must be finite, but holds a number beyond the range of float64") from None
