"""Arrays on the device, and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.core import config

SIMULATED = bool(config.ENABLE_CUDASIM)
DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}


class Interface:
    """An array of a library that nothing is known of but `__cuda_array_interface__`."""

    def __init__(self, array, read_only=True):
        strides = array.strides if isinstance(array, np.ndarray) else None
        if SIMULATED:
            self.held, pointer = array, array.ctypes.data
        else:
            whole = array if array.flags.c_contiguous else array.base
            self.held = cuda.to_device(whole)
            pointer = self.held.device_ctypes_pointer.value + array.ctypes.data - whole.ctypes.data
        self.__cuda_array_interface__ = {
            "version": 3, "shape": array.shape, "strides": strides, "typestr": array.dtype.str,
            "data": (pointer, read_only),
        }  # fmt: skip


def put(array, dtype=None):
    """A NumPy array on the device; of bfloat16, which Numba's own arrays do not hold there, as one of PyTorch."""
    array = np.asarray(array)
    array = array if dtype is None else array.astype(DTYPES[dtype])
    if array.dtype != DTYPES["bfloat16"] or SIMULATED:
        return cuda.to_device(array)
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no library here holds bfloat16 on the device")
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).cuda()


def get(result):
    """A result in the memory of the host."""
    assert not isinstance(result, np.ndarray | np.generic | float)
    return np.asarray(result.copy_to_host() if hasattr(result, "copy_to_host") else result.cpu())
