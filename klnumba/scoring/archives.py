"""Arrays by name in one file: .npz and .safetensors."""

from __future__ import annotations

import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.scoring.errors import InputError
from klnumba.scoring.mapped import Mapped, npy_header
from klnumba.scoring.source import Array, Source, Stream, bfloat16, file_identity

ENCRYPTED = 1  # a bit of the flags of a member
LOCAL_HEADER = struct.Struct("<26x2H")  # what precedes a member of a zip file: at its end the lengths of two texts
TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def chosen(path: Path, member: str | None, names: Sequence[str]) -> str:
    """The array that is meant: the one named, or the only one."""
    if member is None and len(names) != 1:
        raise InputError(f"{path}: holds {len(names)} arrays, say which: {path}:NAME with NAME of {list(names)}")
    name = names[0] if member is None else member
    if name not in names:
        raise InputError(f"{path}: holds no array {name!r}, but {list(names)}")
    return name


@contextmanager
def unpacked(path: Path, name: str) -> Iterator[zipfile.ZipFile]:
    """The archive, open; what is damaged in it, or packed as Python cannot unpack it, is told in one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{name}: {error or 'ends too early'}") from error


def open_npz(path: Path, member: str | None = None) -> Source:
    """Open an array of a .npz archive: mapped where it is stored, a stream where it is deflated."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is not in the .npz format")
    with unpacked(path, str(path)) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        name = chosen(path, member, list(members))
        info, title = members[name], f"{path}:{name}" if len(members) > 1 else str(path)
        if info.flag_bits & ENCRYPTED:
            raise InputError(f"{title}: is encrypted")
        if info.compress_type != zipfile.ZIP_STORED:
            return Deflated(path, title, info.filename)
        return _stored(path, title, info.header_offset)


def _stored(path: Path, title: str, place: int) -> Mapped:
    """Map an array that lies in an archive as it is, behind the header at `place`."""
    with path.open("rb") as file:
        file.seek(place)
        header = file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size:
            raise InputError(f"{title}: truncated")
        file.seek(sum(LOCAL_HEADER.unpack(header)), 1)
        dtype, shape, fortran = npy_header(file, title)
        return Mapped(path, title, dtype, shape, file.tell(), fortran=fortran)


class Deflated(Stream):
    """A compressed array of a .npz archive, which has to be read from its beginning."""

    def __init__(self, path: Path, name: str, member: str) -> None:
        self.path, self.member = path, member
        with unpacked(path, name) as archive, archive.open(member) as file:
            dtype, shape, self.fortran = npy_header(file, name)
        super().__init__(name, dtype, shape)

    def _batches(self, start: int) -> Iterator[Array]:
        with unpacked(self.path, self.name) as archive, archive.open(self.member) as file:
            npy_header(file, self.name)
            if self.fortran:  # its rows are spread over the whole
                lengths = [int(n or 0) for n in self.shape]
                yield np.frombuffer(file.read(), self.dtype).reshape(lengths[::-1]).T[start:]
                return
            for first, count in self._parts(start):
                raw = file.read(count * self.row_bytes)
                if len(raw) < count * self.row_bytes:
                    raise InputError(f"{self.name}: ends before row {first + count} of shape {self.row_shape}")
                if first >= start:
                    yield np.frombuffer(raw, self.dtype).reshape(count, *self.row_shape)

    def _parts(self, start: int) -> Iterator[tuple[int, int]]:
        """(first row, number of rows) of the parts to read: up to row `start`, and from there on."""
        end = int(self.rows or 0)
        for begin, stop in ((0, start), (start, end)):
            for first in range(begin, stop, self.batch_rows()):
                yield first, min(self.batch_rows(), stop - first)

    @property
    def resident(self) -> int:
        """Bytes that reading holds at once, whatever the part."""
        return 2 * self.row_bytes * int(self.rows or 0) if self.fortran else self.batch_bytes()

    def identity(self) -> Any:
        return file_identity(self.path) | {"member": self.member}

    def files(self) -> list[Path]:
        return [self.path]


def open_safetensors(path: Path, member: str | None = None) -> Mapped:
    """Open a tensor of a .safetensors file.

    The package of that name maps the whole file at once, which then counts as resident where it has been read, and
    gives no bfloat16 rows without PyTorch. The header is eight bytes and a JSON object; the tensors follow as they are.
    """
    header, start = safetensors_header(path)
    names = [name for name in header if name != "__metadata__"]
    name = chosen(path, member, names)
    title = f"{path}:{name}" if len(names) > 1 else str(path)
    code, shape, first, end = _described(header[name], title)
    if code != "BF16" and code not in TYPES:
        raise InputError(f"{title}: dtype {code} is none of BF16, {', '.join(TYPES)}")
    source = Mapped(path, title, bfloat16() if code == "BF16" else np.dtype(TYPES[code]), shape, start + first)
    if source.nbytes != end - first:
        raise InputError(f"{title}: damaged header: shape {shape} of {code} has not {end - first} bytes")
    return source


def _described(about: Any, title: str) -> tuple[str, tuple[int, ...], int, int]:
    """What a header says of a tensor: dtype, shape, where it begins and where it ends behind the header."""
    try:
        code, shape, (first, end) = about["dtype"], about["shape"], about["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{title}: damaged header: {error!r}") from error
    if not isinstance(code, str) or not isinstance(shape, list):
        raise InputError(f"{title}: damaged header: dtype {code!r} and shape {shape!r}")
    for number in (*shape, first, end):
        if type(number) is not int or number < 0:  # an offset below 0 would give the header as rows
            raise InputError(f"{title}: damaged header: {number!r} in shape {shape} or data_offsets {[first, end]}")
    return code, tuple(shape), first, end


def safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header of a .safetensors file, and where its tensors begin."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise InputError(f"{path}: truncated, or not in the safetensors format")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not in the safetensors format: {error}") from error
    if not isinstance(header, dict):
        raise InputError(f"{path}: not in the safetensors format: the header is no object")
    if not isinstance(header.get("__metadata__") or {}, dict):
        raise InputError(f"{path}: not in the safetensors format: __metadata__ is no object")
    return header, 8 + length
