"""Rows that the tests of this room share, and the files that hold them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROWS, CELLS = 83, 11
RNG = np.random.default_rng(7)
LOGITS = RNG.normal(size=(ROWS, CELLS)).astype(np.float32)
OTHERS = (LOGITS + RNG.normal(scale=0.3, size=LOGITS.shape)).astype(np.float32)


def npy(folder: Path, rows: np.ndarray) -> str:
    np.save(folder / "rows.npy", rows)
    return str(folder / "rows.npy")


def fortran_npy(folder: Path, rows: np.ndarray) -> str:
    return npy(folder, np.asfortranarray(rows))


def big_endian_npy(folder: Path, rows: np.ndarray) -> str:
    return npy(folder, rows.astype(rows.dtype.newbyteorder(">")))


def npz(folder: Path, rows: np.ndarray) -> str:
    np.savez(folder / "both.npz", other=np.zeros(3), rows=rows)
    return f"{folder}/both.npz:rows"


def fortran_npz(folder: Path, rows: np.ndarray) -> str:
    np.savez(folder / "one.npz", rows=np.asfortranarray(rows))
    return f"{folder}/one.npz"


def deflated_npz(folder: Path, rows: np.ndarray) -> str:
    np.savez_compressed(folder / "rows.npz", rows=rows)
    return str(folder / "rows.npz")


def deflated_fortran_npz(folder: Path, rows: np.ndarray) -> str:
    return deflated_npz(folder, np.asfortranarray(rows))


def csv(folder: Path, rows: np.ndarray) -> str:
    np.savetxt(folder / "rows.csv", rows, delimiter=",", fmt="%.17g", header=",".join("abcdefghijk"), comments="")
    return str(folder / "rows.csv")


def parquet(folder: Path, rows: np.ndarray) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(dict(zip("abcdefghijk", rows.T, strict=True)))
    pq.write_table(table, folder / "rows.parquet", row_group_size=20)
    return str(folder / "rows.parquet")


def parquet_lists(folder: Path, rows: np.ndarray) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    pq.write_table(pa.table({"logits": lists}), folder / "lists.parquet", row_group_size=20)
    return str(folder / "lists.parquet")


def parquet_free_lists(folder: Path, rows: np.ndarray) -> str:
    """Lists of one length, whose type does not say so: how pandas writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"logits": pa.array(list(rows))}), folder / "free.parquet", row_group_size=20)
    return str(folder / "free.parquet")


def safetensors(folder: Path, rows: np.ndarray) -> str:
    from safetensors.numpy import save_file

    save_file({"rows": np.ascontiguousarray(rows), "other": np.zeros(2)}, folder / "rows.safetensors")
    return f"{folder}/rows.safetensors:rows"


def zarr(folder: Path, rows: np.ndarray) -> str:
    import zarr as library

    chunks = (20, max(5, rows.shape[1] // 4), *rows.shape[2:])
    array = library.create_array(str(folder / "rows.zarr"), shape=rows.shape, chunks=chunks, dtype=rows.dtype)
    array[:] = rows
    return str(folder / "rows.zarr")


def folder_of_shards(folder: Path, rows: np.ndarray) -> str:
    (folder / "shards").mkdir()
    cuts = [0, 2, 3, 30, 30, 31, 33, 40, 41, 60, 70, len(rows)]
    for k, (start, stop) in enumerate(itertools.pairwise(cuts)):
        np.save(folder / "shards" / f"part-{k}.npy", rows[start:stop])
    return str(folder / "shards")


def pattern(folder: Path, rows: np.ndarray) -> str:
    return folder_of_shards(folder, rows) + "/part-*.npy"


def csv_shards(folder: Path, rows: np.ndarray) -> str:
    (folder / "csv").mkdir()
    for k, (start, stop) in enumerate([(0, 1), (1, 40), (40, 41), (41, len(rows))]):
        np.savetxt(folder / "csv" / f"{k}.csv", rows[start:stop], delimiter=",", fmt="%.17g")
    return str(folder / "csv")


def memory_map(folder: Path, rows: np.ndarray) -> Any:
    return np.load(npy(folder, np.concatenate([rows[:3], rows, rows[:2]])), mmap_mode="r")[3:-2]


def batches(folder: Path, rows: np.ndarray) -> Iterator[np.ndarray]:
    return (rows[first : first + 9] for first in range(0, len(rows), 9))


MAKERS: list[Callable[[Path, np.ndarray], Any]] = [
    npy, fortran_npy, big_endian_npy, npz, fortran_npz, deflated_npz, deflated_fortran_npz, csv, parquet, parquet_lists,
    parquet_free_lists, safetensors, zarr, folder_of_shards, pattern, csv_shards, memory_map, batches,
]  # fmt: skip
NEEDS = {
    parquet: "pyarrow", parquet_lists: "pyarrow", parquet_free_lists: "pyarrow", safetensors: "safetensors",
    zarr: "zarr",
}  # fmt: skip
