"""Arrays on the device, and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
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

    def __init__(self, array):
        self.held = array if isinstance(array, np.ndarray) and SIMULATED else cuda.to_device(array)
        strides = array.strides if isinstance(array, np.ndarray) else None
        pointer = self.held.ctypes.data if SIMULATED else self.held.device_ctypes_pointer.value
        self.__cuda_array_interface__ = {
            "version": 3, "shape": array.shape, "strides": strides, "typestr": array.dtype.str, "data": (pointer, True),
        }  # fmt: skip


def put(array, dtype=None):
    """A NumPy array on the device."""
    array = np.asarray(array)
    return cuda.to_device(array if dtype is None else array.astype(DTYPES[dtype]))


def get(result):
    """A result in the memory of the host."""
    assert not isinstance(result, np.ndarray | np.generic | float)
    return np.asarray(result.copy_to_host())
