"""Arrays on a CUDA device: whether they can be used here, and the functions that the array functions hand them to.

This is what `klnumba.cuda` names. Nothing here loads a CUDA library before it is asked for.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util

import numpy as np
from numba.core import config

__all__ = ["is_available", "reason"]

INSTALL = 'python -m pip install "klnumba[cuda13]"'
LAST_UNFIT = (0, 30, 4)  # the last numba-cuda that asks NumPy for a function that 2.5 does not have
MISSING = f"the package numba-cuda is not installed ({INSTALL}; cuda12 for drivers of CUDA 12)"


def is_simulated() -> bool:
    """Whether Numba's CUDA simulator is switched on (``NUMBA_ENABLE_CUDASIM=1``)."""
    return bool(getattr(config, "ENABLE_CUDASIM", 0))


def is_installed() -> bool:
    """Whether there is a CUDA back end: numba-cuda, or Numba's own simulator where that is switched on."""
    return importlib.util.find_spec("numba_cuda") is not None or is_simulated()


def unfit() -> str | None:
    """Why the installed numba-cuda does not work with the installed NumPy, or None."""
    return None if is_simulated() else _unfit(np.__version__)


@functools.cache
def _unfit(numpy: str) -> str | None:
    try:
        found = importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:  # installed in a way that leaves no version
        return None
    if _parts(numpy, 2) < (2, 5) or _parts(found, 3) > LAST_UNFIT:
        return None
    return f'numba-cuda {found} does not work with NumPy {numpy} (python -m pip install "numpy<2.5")'


def _parts(version: str, count: int) -> tuple[int, ...]:
    """The first numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())


def is_available() -> bool:
    """Whether arrays on a CUDA device can be used: numba-cuda is installed, and finds a driver and a device.

    Returns
    -------
    bool
        True also in numba-cuda's simulator.

    Examples
    --------
    >>> import klnumba as kl
    >>> kl.cuda.is_available() == (kl.cuda.reason() is None)
    True
    """
    return reason() is None


def reason() -> str | None:
    """Why arrays on a CUDA device cannot be used, in one sentence; None where they can.

    Returns
    -------
    str or None
        With the pip line, where it is a package that is missing.

    Examples
    --------
    >>> import klnumba as kl
    >>> kl.cuda.reason() is None or isinstance(kl.cuda.reason(), str)
    True
    """
    if not is_installed():
        return MISSING
    why = unfit()
    if why is not None:
        return why
    from klnumba.kernels.cuda import machine

    return machine.reason()


def device() -> str:
    """The device at work, in words."""
    from klnumba.kernels.cuda import machine

    return machine.name()


def required() -> None:
    """Raise where arrays on a CUDA device arrive and cannot be used."""
    why = unfit() if is_installed() else MISSING
    if why is not None:
        raise ImportError(f"arrays on a CUDA device: {why}")
