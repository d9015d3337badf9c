"""What comes in and goes out: libraries, axes, dtypes, masks, ``out=``."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from klnumba.kernels import cpu
from klnumba.parametric import library_of
from klnumba.tensors import array_library, refuse_lists, strided

BLOCK = 1 << 17  # cells a block at least: what a thread copies, or does, at a time
MOST = 1 << 21  # cells of a block of rows that are used where they lie, so that Ctrl-C is heard
SPAN = 1 << 23  # cells for each thread before all meet: 10 milliseconds
SPAN_ROWS = 1 << 21  # rows of all threads before they meet: 16 MiB of values

FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)

Back = Callable[[np.ndarray], Any]


def take(x: Any, name: str) -> tuple[np.ndarray, Back]:
    """The array behind an argument, without a copy where its library allows, and the way back to that library.

    Parameters
    ----------
    x : array_like
        NumPy, anything that `numpy.asarray` takes, or a CPU array of another library with ``__dlpack__``.
    name : str
        The argument's name, for the error text.

    Returns
    -------
    array : numpy.ndarray
        A masked array stays one.
    back : callable
        Turns a NumPy result into the library of `x`.

    Raises
    ------
    TypeError
        If the dtype is complex, text or object, or a tensor is sparse.
    ValueError
        If the array is not in the memory of the CPU.
    RuntimeError
        If a tensor requires grad, outside ``torch.no_grad()``, or has a tangent of forward-mode derivatives.
    """
    back: Back = as_is
    if isinstance(x, np.ndarray):
        array = x
    elif hasattr(x, "__dlpack_device__") and not isinstance(x, np.generic):
        array, back = _foreign(x, name)
    else:
        array = from_python(x, name)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        refuse_distribution(x, name)
        raise TypeError(f"{name}: dtype {array.dtype} is not a real number type")
    return array, back


def refuse_distribution(x: Any, name: str) -> None:
    """An error where an argument is a distribution, of whatever library."""
    if library_of(x) is not None:
        raise TypeError(f"{name}: an array, not a distribution, {type(x).__name__}")


def from_python(x: Any, name: str) -> np.ndarray:
    """The array of numbers, sequences of them, and whatever else NumPy takes."""
    refuse_lists(x, name)
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name}: not an array: {error}") from None


def as_is(result: np.ndarray) -> Any:
    """The way back to NumPy: an array, or a scalar."""
    return result if result.ndim else result[()]


def _foreign(x: Any, name: str) -> tuple[np.ndarray, Back]:
    library = array_library(x)
    if library == "torch":
        x = strided(x, name, sys.modules["torch"])
        if x.is_cpu:  # what the protocol tells takes longer
            return _from_torch(x, name, sys.modules["torch"])
    if library == "pyarrow":  # its nulls are NaN, which the protocol does not have
        return np.asarray(x), as_is
    try:
        device = x.__dlpack_device__()
    except ValueError as error:  # a tensor without data
        raise ValueError(f"{name}: not in the memory of the CPU: {error}") from None
    if int(device[0]) != 1:
        raise ValueError(f"{name}: the array is on device {tuple(map(int, device))}, not in the memory of the CPU")
    if library in {"jax", "jaxlib"}:
        return np.asarray(x), lambda result: sys.modules["jax"].numpy.asarray(result)
    return np.from_dlpack(x), as_is


def _from_torch(x: Any, name: str, torch: Any) -> tuple[np.ndarray, Back]:
    back = partial(_to_torch, torch)
    if x.dtype == torch.bfloat16:
        return _bfloat16(x, torch), back
    try:
        if not x.dtype.is_complex:
            return x.resolve_neg().numpy(), back
    except TypeError:  # NumPy has no such dtype
        pass
    raise TypeError(f"{name}: dtype {x.dtype} is not a real number type")


def _to_torch(torch: Any, result: np.ndarray) -> Any:
    return torch.from_numpy(np.asarray(result, order="C"))


def _bfloat16(x: Any, torch: Any) -> np.ndarray:
    try:
        import ml_dtypes
    except ImportError:
        array: np.ndarray = x.to(torch.float32).numpy()
        return array
    return np.asarray(x.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)


def one_of(value: Any, allowed: tuple[str, ...], name: str) -> None:
    """Refuse a value that is not allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: one of {', '.join(map(repr, allowed))}, not {value!r}")


def compute_dtype(*arrays: np.ndarray) -> np.dtype[Any]:
    """float32 where every argument is float32 or narrower, else float64."""
    for array in arrays:
        if array.dtype is FLOAT64:
            return FLOAT64
        if array.dtype.char not in "fe" and (array.dtype.char in "d?" or array.dtype.name != "bfloat16"):
            return FLOAT64
    return FLOAT32


def float_dtype(dtype: Any) -> np.dtype[Any]:
    """The argument `dtype`: a floating-point type of NumPy."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"dtype: a dtype of NumPy, not {dtype!r}") from None
    if found.kind != "f":
        raise TypeError(f"dtype: a floating-point type, not {found}")
    return found


def is_wide(dtype: Any) -> bool:
    """Whether a result in float64 is asked for, which is then what is computed in."""
    return dtype is not None and float_dtype(dtype) == FLOAT64


def output(out: Any) -> np.ndarray:
    """The argument `out` as a plain array over the same memory; the loops take no subclass."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: a NumPy array, not {type(out).__name__}")
    if isinstance(out, np.ma.MaskedArray):
        raise TypeError("out: a masked array, whose mask could hide the result; give out.data")
    if out.dtype.kind != "f":
        raise TypeError(f"out: a floating-point type, not {out.dtype}, holds the result")
    if not out.flags.writeable:
        raise ValueError("out: read-only")
    return np.asarray(out)


def common_shape(p: np.ndarray, q: np.ndarray) -> tuple[int, ...]:
    """The shape to which p and q broadcast."""
    if p.shape == q.shape:
        return p.shape
    try:
        return np.broadcast_shapes(p.shape, q.shape)
    except ValueError:
        raise ValueError(f"p and q: shapes {p.shape} and {q.shape} do not broadcast") from None


def axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The reduced axes, positive and sorted; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and axis == -1 and ndim:
        return (ndim - 1,)
    wanted = axis if isinstance(axis, tuple) else (axis,)
    found = []
    for one in wanted:
        try:
            k = operator.index(one)
        except TypeError:
            raise TypeError(f"axis: an integer or a tuple of integers, not {one!r}") from None
        if not -max(ndim, 1) <= k < max(ndim, 1):
            raise np.exceptions.AxisError(k, ndim)
        found.append(k % ndim if ndim else 0)
    if len(set(found)) != len(found):
        raise ValueError(f"axis: {axis} names an axis twice")
    return tuple(sorted(found))


@dataclass
class Block:
    """Some rows, ready for a loop: the cells as flat arrays, where the rows start and how far apart they are."""

    p: np.ndarray
    a: int
    ps: int
    q: np.ndarray
    b: int
    qs: int
    first: int  # number of the first row
    count: int

    def sides(self) -> tuple[np.ndarray, int, int, np.ndarray, int, int]:
        """p and q as the loops take them."""
        return self.p, self.a, self.ps, self.q, self.b, self.qs

    def ordered(self, order: str) -> Block:
        """The block with p and q exchanged ("qp"), or one in the place of both ("pp", "qq")."""
        sides = {"p": (self.p, self.a, self.ps), "q": (self.q, self.b, self.qs)}
        return self if order == "pq" else Block(*sides[order[0]], *sides[order[1]], self.first, self.count)


def adjacent(p: Any, q: Any) -> Block | None:
    """The rows along the last axis of two arrays of one shape and dtype that lie as the loops want them, or None."""
    if type(p) is not np.ndarray or type(q) is not np.ndarray or p.shape != q.shape or not p.ndim or not p.size:
        return None
    dtype = p.dtype
    if (dtype is not FLOAT64 and dtype is not FLOAT32) or q.dtype is not dtype:
        return None
    if not (_is_adjacent(p.flags) and _is_adjacent(q.flags)):
        return None
    d, left = p.shape[-1], _read_only(p)
    return Block(left, 0, d, left if q is p else _read_only(q), 0, d, 0, p.size // d)


def _is_adjacent(flags: Any) -> bool:
    return flags.c_contiguous and flags.aligned  # type: ignore[no-any-return]


def _read_only(array: np.ndarray) -> np.ndarray:
    """Adjacent cells as the loops take them; the array stays as it is."""
    flat = array.reshape(-1)
    flat.setflags(write=False)
    return flat


def unheard() -> np.errstate:
    """For a cast or a change of unit: what becomes infinite or 0 there is right, and not heard on all threads."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


def _cast(cells: np.ndarray, source: np.ndarray, where: Any = True) -> None:
    """Copy numbers into another dtype; beyond its range they are infinite or 0, whatever the caller wants to hear."""
    with unheard():
        np.copyto(cells, source, where=where, casting="unsafe")


class Rows:
    """p and q as rows: broadcast, the reduced axes last, cells of the dtype that is computed in.

    Rows that lie in memory as the loops want them are used where they are;
    others are copied a block at a time.

    Attributes
    ----------
    named : klnumba.labelled.Named, optional
        The labels of rows and cells, where they have any.
    """

    named: Any = None

    def __init__(
        self, p: np.ndarray, q: np.ndarray, reduced: tuple[int, ...], where: np.ndarray | None, zero: float,
        *, wide: bool,
    ) -> None:  # fmt: skip
        shape = common_shape(p, q)
        self.dtype = FLOAT64 if wide else compute_dtype(p, q)
        self.zero = zero
        masks = _masks(p, q, where)
        if masks:
            shape = np.broadcast_shapes(shape, *(mask.shape for mask, _ in masks))
        if not shape:
            shape, reduced = (1,), (0,)
        outer = kept(len(shape), reduced)
        order = outer + reduced
        self.outer = tuple(map(shape.__getitem__, outer))
        self.inner = tuple(map(shape.__getitem__, reduced))
        self.n = math.prod(self.outer)
        self.d = math.prod(self.inner)
        same = q is p
        self.p = _arranged(p, shape, order)
        self.q = self.p if same else _arranged(q, shape, order)
        self.masks = [(np.broadcast_to(mask, shape).transpose(order), value) for mask, value in masks]
        left = None if self.masks else self._flat(self.p)
        right = left if same else (None if left is None else self._flat(self.q))
        self.direct = None if left is None or right is None else (*left, *right)

    def inputs(self) -> list[np.ndarray]:
        """Every array that a call reads."""
        return [self.p, self.q, *(mask for mask, _ in self.masks)]

    def _flat(self, view: np.ndarray) -> tuple[np.ndarray, int, int] | None:
        """(flat array, start, step between rows), or None where the rows do not lie so."""
        flags = view.flags
        if view.dtype != self.dtype or not flags.aligned or not view.size:
            return None
        if flags.c_contiguous:
            return _read_only(view), 0, self.d
        item = view.itemsize
        outer = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n > 1]
        run = 1
        while outer and outer[-1][1] == run * item and run < self.d:
            run *= outer.pop()[0]
        if run != self.d or len(outer) > 1 or (outer and (outer[0][1] < 0 or outer[0][1] % item)):
            return None
        step = outer[0][1] // item if outer else self.d
        extent = (self.n - 1) * step + self.d
        return np.lib.stride_tricks.as_strided(view, (extent,), (item,), writeable=False), 0, step

    def spans(self, threads: int) -> list[Any]:
        """Slices of rows that lie as the loops want them, which so many threads share one after the other."""
        rows = max(threads, min(threads * (SPAN // self.d), SPAN_ROWS))
        return [(first, min(first + rows, self.n)) for first in range(0, self.n, rows)]

    def blocks(self, threads: int) -> list[Any]:
        """The jobs of a call for so many threads: slices of the rows, each for `load`."""
        if self.direct is None:
            return list(self._slices())
        cells = MOST if threads == 1 else min(max(BLOCK, self.n * self.d // 32), MOST)
        rows = max(1, cells // max(self.d, 1))
        return [(first, min(first + rows, self.n)) for first in range(0, self.n, rows)]

    def _slices(self) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """Slices of the kept axes that hold adjacent rows, about `BLOCK` cells each."""
        most = max(1, BLOCK // max(self.d, 1))
        split, rows = len(self.outer), 1
        while split and rows * self.outer[split - 1] <= most:
            split -= 1
            rows *= self.outer[split]
        if not split:
            yield 0, self.n, ()
            return
        step = max(1, most // rows)
        long = self.outer[split - 1]
        first = 0
        for lead in np.ndindex(*self.outer[: split - 1]):
            for start in range(0, long, step):
                stop = min(start + step, long)
                yield first, first + (stop - start) * rows, (*lead, slice(start, stop))
                first += (stop - start) * rows

    def load(self, job: Any) -> Block:
        first, stop = job[0], job[1]
        count = stop - first
        if self.direct is not None:
            p, a, ps, q, b, qs = self.direct
            return Block(p, a + first * ps, ps, q, b + first * qs, qs, first, count)
        p = self._copy(self.p, job[2], count)
        q = p if self.q is self.p else self._copy(self.q, job[2], count)
        return Block(p, 0, self.d, q, 0, self.d, first, count)

    def _copy(self, view: np.ndarray, part: tuple[Any, ...], count: int) -> np.ndarray:
        source = view[part]
        cells = np.empty(source.shape, self.dtype)
        if self.masks:
            cells.fill(self.zero)
            _cast(cells, source, where=self.held(part))
        elif self.dtype == FLOAT32 and source.dtype.name == "bfloat16":
            bits = np.ascontiguousarray(source.view(np.uint16)).reshape(-1)
            bits.flags.writeable = False
            cpu.widen()(bits, cells.reshape(-1).view(np.uint32))
        else:
            _cast(cells, source)
        flat = cells.reshape(-1)
        flat.flags.writeable = False
        return flat

    def held(self, part: tuple[Any, ...]) -> np.ndarray | None:
        """Which cells of a part count; None where all do."""
        found: np.ndarray | None = None
        for mask, value in self.masks:
            one = mask[part] == value
            found = one if found is None else np.logical_and(found, one, out=found)
        return found

    def piece(self, row: int, start: int, stop: int) -> Block:
        """The cells start:stop of one row."""
        if self.direct is not None:
            p, a, ps, q, b, qs = self.direct
            return Block(p, a + row * ps + start, 0, q, b + row * qs + start, 0, row, 1)
        at = np.unravel_index(row, self.outer) if self.outer else ()
        if len(self.inner) > 1:
            cells = tuple(np.unravel_index(np.arange(start, stop), self.inner))
            part: tuple[Any, ...] = (*at, *cells)
        else:
            part = (*at, slice(start, stop))
        p = self._copy(self.p, part, 1)
        return Block(p, 0, 0, p if self.q is self.p else self._copy(self.q, part, 1), 0, 0, row, 1)


@lru_cache
def kept(ndim: int, reduced: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that are not reduced."""
    return tuple(k for k in range(ndim) if k not in reduced)


def truth(where: Any) -> np.ndarray:
    """The argument `where` as an array."""
    if isinstance(where, np.ma.MaskedArray):
        raise TypeError("where: a masked array; cells to leave out are False")
    found = from_python(where, "where")
    if found.dtype != bool:
        raise TypeError(f"where: a boolean array, not {found.dtype}")
    return found


def _masks(p: np.ndarray, q: np.ndarray, where: Any) -> list[tuple[np.ndarray, bool]]:
    """The masks of a call, each with the value that marks a cell that counts."""
    found = []
    if where is not None and where is not True:
        found.append((truth(where), True))
    if type(p) is type(q) is np.ndarray:
        return found
    found += [
        (np.ma.getmaskarray(array), False)
        for array in ((p,) if q is p else (p, q))
        if isinstance(array, np.ma.MaskedArray) and array.mask is not np.ma.nomask
    ]
    return found


def _arranged(array: np.ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
    view = array if type(array) is np.ndarray else np.asarray(array)
    if view.shape != shape:
        view = np.broadcast_to(view, shape)
    if order != kept(len(order), ()):
        view = view.transpose(order)
    return view
