"""Where the work of a call is done: the device, the stream, and the library that gives memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klnumba.gpu.borders import Array, stream_of
from klnumba.gpu.layout import adjacent


@dataclass(frozen=True)
class Place:
    """A device and a stream. Memory comes from the caller's library, which knows when it may be used again."""

    library: Any
    device: int
    stream: int

    @classmethod
    def of(cls, array: Array, stream: Any = None) -> Place:
        """Where an array lies, on the given stream or the current one of its library."""
        return cls(array.library, array.device, stream_of(stream, array))

    @property
    def own(self) -> Place:
        """The same place, with memory for what no caller gets: that of another library where arrays are immutable."""
        return replace(self, library=self._rooms)

    @property
    def _rooms(self) -> Any:
        return getattr(self.library, "rooms", self.library)

    def new(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Array]:
        """A new array of the library, and what it is made of."""
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        made, pointer = self.library.empty(shape, name, self.device, self.stream)
        return made, Array("out", pointer, adjacent(shape), name, self.device, self.library, made)

    def room(self, cells: int, dtype: str) -> Any:
        """Memory for the kernels of this call, as an array for them."""
        from klnumba.kernels.cuda.machine import flat

        size = max(cells, 1) * np.dtype(dtype).itemsize
        made, pointer = self._rooms.empty((size,), "uint8", self.device, self.stream)
        return flat(pointer, max(cells, 1), dtype, made)

    def launch(self, kernel: Any, rows: int, per_block: int, threads: int, *args: Any) -> None:
        """Start a kernel whose blocks take `per_block` rows at a time."""
        from klnumba.kernels.cuda.machine import blocks, start

        grid = max(1, min(-(-rows // per_block), blocks(self.device)))
        start(kernel, grid, threads, self.device, self.stream, args)

    def over_cells(self, kernel: Any, cells: int, *args: Any) -> None:
        """Start a kernel whose threads take a cell at a time."""
        from klnumba.kernels.cuda import flat

        self.launch(kernel, cells, flat.THREADS, flat.THREADS, *args)

    def copy(self, source: Array, target: Array) -> None:
        """Copy cells that are adjacent in both, of one dtype."""
        from klnumba.gpu.rows import flat_view
        from klnumba.kernels.cuda import flat

        cells = math.prod(source.shape)
        (a, start), (b, _) = flat_view(source, source.layout), flat_view(target, target.layout)
        kernel = flat.copy(source.dtype, source.dtype, False, True)
        self.over_cells(kernel, cells, a, start, (cells,), (1,), a, start, (1,), 0.0, b)
