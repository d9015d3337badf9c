"""Every source gives the same rows, however they are asked for."""

from __future__ import annotations

import itertools
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from klnumba.scoring import InputError, cache_reference, source
from klnumba.scoring.logarithms import BYTES, spread, working
from klnumba.scoring.mapped import Mapped
from klnumba.scoring.opening import open_source
from klnumba.scoring.options import Options
from klnumba.scoring.pairing import Pairing
from klnumba.scoring.reference import matched
from klnumba.scoring.shards import natural
from tests.scoring import samples
from tests.scoring.samples import CELLS, LOGITS, ROWS

CUTS = ([0, ROWS], [0, 1, 2, 20, 40, 41, ROWS], [7, 8, 60], [0, 30, 31, 33, 50, ROWS], [82, 83])


@pytest.fixture(params=samples.MAKERS, ids=lambda maker: maker.__name__)
def made(request: pytest.FixtureRequest, tmp_path: Path):
    maker = request.param
    pytest.importorskip(samples.NEEDS.get(maker, "numpy"), reason="the library of this format")
    return lambda: maker(tmp_path, LOGITS)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_parts_are_the_rows(made, cuts, monkeypatch) -> None:
    monkeypatch.setattr(source, "BATCH", 400)  # streams read a few rows at a time
    opened = open_source(made(), "p")
    assert opened.shape in ((ROWS, CELLS), (None, CELLS))
    for start, stop in itertools.pairwise(cuts):
        part = opened.read(start, stop)
        assert part.shape == (stop - start, CELLS)
        np.testing.assert_array_equal(part, LOGITS[start:stop])
        opened.expect(stop, ROWS)
        del part
    if cuts[-1] == ROWS and opened.rows is None:
        assert opened.read(ROWS, ROWS + 5).shape == (0, CELLS)
    opened.close()


def test_a_source_opens_again_after_it_was_closed(made) -> None:
    item = made()
    if hasattr(item, "__next__"):
        pytest.skip("an iterator is read once")
    opened = open_source(item, "p")
    for _ in range(2):
        np.testing.assert_array_equal(opened.read(0, ROWS), LOGITS)
        opened.close()


def test_identity_is_json_and_tells_contents_apart(made, tmp_path: Path) -> None:
    item = made()
    one = open_source(item, "p").identity()
    assert json.loads(json.dumps(one))
    if isinstance(item, str) and Path(item).is_file():
        os.utime(item, (0, 0))
        assert open_source(item, "p").identity() != one


@pytest.mark.parametrize("shape", [(ROWS,), (5, 4, 3), (1, 2), (0, 4), (3, 0), ()], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_shape(tmp_path: Path, shape: tuple[int, ...], order: str) -> None:
    rows = np.asarray(np.random.default_rng(1).normal(size=shape), order=order)
    np.save(tmp_path / "rows.npy", rows)
    opened = open_source(tmp_path / "rows.npy", "p")
    assert opened.shape == shape
    for start in range(len(rows) if shape else 0):
        np.testing.assert_array_equal(opened.read(start, start + 2), rows[start : start + 2])


def test_half_precision(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the type bfloat16")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        rows = LOGITS.astype(dtype)
        np.save(tmp_path / "rows.npy", rows)  # of bfloat16 NumPy keeps two bytes without a type
        read = open_source(tmp_path / "rows.npy", "p").read(3, 9)
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, rows[3:9])


def test_bfloat16_tensors(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the type bfloat16")
    torch = pytest.importorskip("torch", reason="writes the file")
    write = pytest.importorskip("safetensors.torch", reason="writes the file").save_file
    write({"rows": torch.from_numpy(LOGITS).to(torch.bfloat16)}, tmp_path / "rows.safetensors")
    read = open_source(tmp_path / "rows.safetensors", "p").read(3, 9)
    np.testing.assert_array_equal(read, LOGITS[3:9].astype(ml_dtypes.bfloat16))


def test_without_ml_dtypes_bfloat16_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    np.save(tmp_path / "rows.npy", np.zeros((2, 3), "V2"))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(InputError, match=r"klnumba\[bfloat16\]"):
        open_source(tmp_path / "rows.npy", "p")


@pytest.mark.parametrize(("library", "suffix"), [("pyarrow", "parquet"), ("zarr", "zarr")])
def test_a_missing_library_is_a_hint(library, suffix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / f"rows.{suffix}").write_bytes(b"")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"klnumba\[{suffix}\]"):
        open_source(tmp_path / f"rows.{suffix}", "p")


def test_a_memory_map_is_read_through_windows(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", LOGITS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows in (mapped, mapped[5:20], mapped[7:8]):
        opened = open_source(rows, "p")
        assert isinstance(opened, Mapped)
        np.testing.assert_array_equal(opened.read(0, len(rows)), rows)
    for rows in (mapped[::2], mapped[:, 1:], np.load(tmp_path / "rows.npy", mmap_mode="c")):
        opened = open_source(rows, "p")
        assert not isinstance(opened, Mapped)
        np.testing.assert_array_equal(opened.read(0, len(rows)), rows)


def test_parquet_types_and_missing_values(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet files")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "b": pa.array([True, False, None]),
            "c": pa.array([0.5, None, 1.5], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    opened = open_source(tmp_path / "rows.parquet", "p")
    nan = np.nan
    np.testing.assert_array_equal(opened.read(0, 3), [[1, 1, 0.5], [nan, 0, nan], [3, nan, 1.5]])
    assert opened.columns == ("a", "b", "c")

    lists = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2))
    pq.write_table(pa.table({"rows": lists}), tmp_path / "lists.parquet")
    rows = open_source(tmp_path / "lists.parquet", "p").read(0, 3)
    np.testing.assert_array_equal(rows, [[1, 2], [nan, nan], [3, nan]])


def test_parquet_index_of_pandas_is_left_out(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="writes the file")
    pytest.importorskip("pyarrow", reason="Parquet files")
    frame = pd.DataFrame(LOGITS, columns=list("abcdefghijk"), index=pd.Index(np.arange(ROWS) * 3, name="key"))
    frame.to_parquet(tmp_path / "rows.parquet")
    opened = open_source(tmp_path / "rows.parquet", "p")
    assert opened.columns == tuple("abcdefghijk")
    np.testing.assert_array_equal(opened.read(0, ROWS), LOGITS)


def test_objects_that_can_be_sliced(tmp_path: Path) -> None:
    library = pytest.importorskip("zarr", reason="an array that is none of NumPy's")
    array = library.create_array(str(tmp_path / "a"), shape=LOGITS.shape, chunks=(20, CELLS), dtype=LOGITS.dtype)
    array[:] = LOGITS
    opened = open_source(array, "p")
    assert opened.grain == 20
    np.testing.assert_array_equal(opened.read(15, 25), LOGITS[15:25])


def test_dask_arrays() -> None:
    library = pytest.importorskip("dask.array", reason="an array that is none of NumPy's")
    opened = open_source(library.from_array(LOGITS, chunks=(20, 4)), "p")
    assert opened.grain == 20
    np.testing.assert_array_equal(opened.read(15, 25), LOGITS[15:25])


def test_arrays_of_a_zarr_group(tmp_path: Path) -> None:
    library = pytest.importorskip("zarr", reason="Zarr stores")
    group = library.open_group(str(tmp_path / "two.zarr"), mode="w")
    for name in ("teacher", "student"):
        group.create_array(name, shape=LOGITS.shape, dtype=LOGITS.dtype)[:] = LOGITS
    np.testing.assert_array_equal(open_source(f"{tmp_path}/two.zarr:student", "p").read(0, 9), LOGITS[:9])
    with pytest.raises(InputError, match="holds 2 arrays, say which"):
        open_source(tmp_path / "two.zarr", "p")


def test_lists_of_paths_keep_their_order(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LOGITS[:9])
    np.save(tmp_path / "b.npy", LOGITS[9:])
    opened = open_source([tmp_path / "b.npy", tmp_path / "a.npy"], "p")
    np.testing.assert_array_equal(opened.read(0, ROWS), np.concatenate([LOGITS[9:], LOGITS[:9]]))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what is mapped")
def test_a_map_of_a_file_that_is_another_one_by_now(tmp_path: Path) -> None:
    """The rows are those of the map, as for everybody else who reads it."""
    path = tmp_path / "a ü.npy"
    np.save(path, LOGITS)
    held = np.load(path, mmap_mode="r")
    assert isinstance(open_source(held, "p"), Mapped)
    np.save(tmp_path / "b.npy", LOGITS[::-1])
    for change in (lambda: (tmp_path / "b.npy").replace(path), path.unlink):
        change()
        np.testing.assert_array_equal(open_source(held, "p").read(0, ROWS), LOGITS)


def test_masks_of_batches_outlast_their_borders(tmp_path: Path) -> None:
    masked = np.ma.array(LOGITS, mask=np.random.default_rng(0).random(LOGITS.shape) < 0.3)
    expected = kl.kl_divergence(masked, LOGITS[::-1], kind="logit")
    kl.score(iter([masked[:3], masked[3:7], masked[7:]]), LOGITS[::-1], kind="logit", output=tmp_path / "kl.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "kl.npy"), expected)
    turned = masked[:, ::-1].T  # whose rows have to be brought together
    kl.score(turned, LOGITS[::-1, ::-1].T, kind="logit", axis=0, output=tmp_path / "kl.npy")
    np.testing.assert_allclose(np.load(tmp_path / "kl.npy"), expected, rtol=1e-6)


def test_masks_that_would_be_lost(tmp_path: Path) -> None:
    mask = np.arange(CELLS) % 3 == 0
    masked, path = np.ma.array(LOGITS, mask=np.broadcast_to(mask, LOGITS.shape)), tmp_path / "ref.safetensors"
    with pytest.raises(InputError, match="source: a masked array"):
        cache_reference(masked, path)
    for settings in ({"top_k": 3}, {}):
        cache_reference(LOGITS, path, **settings)
        with pytest.raises(InputError, match="q: a masked array"):
            kl.score(path, np.exp(masked), kind="prob")
    with pytest.raises(InputError, match="mask: a masked array"):
        kl.score(LOGITS, LOGITS, kind="logit", mask=np.ma.array(~mask, mask=mask))
    assert open_source(masked, "p").identity() != open_source(np.ma.array(LOGITS, mask=~masked.mask), "p").identity()


def test_what_gives_no_rows_for_a_slice() -> None:
    sparse, lazy = pytest.importorskip("scipy.sparse", reason="a peer"), pytest.importorskip("dask.array", reason="too")
    with pytest.raises(InputError, match="p: a slice of csr_matrix is no array of numbers"):
        kl.score(sparse.csr_matrix(np.exp(LOGITS)), np.exp(LOGITS))
    rows = lazy.from_array(LOGITS)
    with pytest.raises(InputError, match=r"p: shape \(nan, 11\), of unknown length"):
        kl.score(rows[rows[:, 0] > 0], LOGITS, kind="logit")


def test_names_of_one_number_have_an_order() -> None:
    names = [Path(f"part-{k}.npy") for k in ("0", "001", "01", "1")]
    for found in itertools.permutations(names):
        assert sorted(found, key=natural) == names


def test_natural_order() -> None:
    names = [Path(f"s-{k}.npy") for k in (10, 2, 1, 0)] + [Path("s-02b.npy")]
    assert [path.name for path in sorted(names, key=natural)] == [
        "s-0.npy", "s-1.npy", "s-2.npy", "s-02b.npy", "s-10.npy"
    ]  # fmt: skip


def test_shards_that_differ(tmp_path: Path) -> None:
    np.save(tmp_path / "1.npy", LOGITS)
    np.save(tmp_path / "2.npy", LOGITS[:, :5])
    with pytest.raises(InputError, match=r"2\.npy: rows of shape \(5,\) float32, but .*1\.npy has \(11,\) float32"):
        open_source(tmp_path, "p")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file of rows"):
        open_source(tmp_path / "empty", "p")
    with pytest.raises(InputError, match="no file matches"):
        open_source(tmp_path / "*.parquet", "p")


def test_truncated_files(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", LOGITS)
    whole = (tmp_path / "rows.npy").read_bytes()
    (tmp_path / "rows.npy").write_bytes(whole[:-50])
    with pytest.raises(InputError, match=r"rows\.npy: truncated: 50 of 3,652 bytes .* missing, after row 80$"):
        open_source(tmp_path / "rows.npy", "p")
    (tmp_path / "rows.safetensors").write_bytes(b"\x40\0\0\0\0\0\0\0{")
    with pytest.raises(InputError, match=r"rows\.safetensors: truncated, or not in the safetensors format"):
        open_source(tmp_path / "rows.safetensors", "p")
    np.savez_compressed(tmp_path / "rows.npz", rows=LOGITS)
    whole = (tmp_path / "rows.npz").read_bytes()
    (tmp_path / "rows.npz").write_bytes(whole[:200] + b"xxxx" + whole[204:])
    with pytest.raises(InputError, match=r"rows\.npz: "):
        open_source(tmp_path / "rows.npz", "p").read(0, ROWS)
    (tmp_path / "rows.npz").write_bytes(whole[:-30])
    with pytest.raises(InputError, match=r"not in the \.npz format"):
        open_source(tmp_path / "rows.npz", "p")


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", LOGITS)
    opened = open_source(tmp_path / "rows.npy", "p")
    opened.read(0, 10)
    with (tmp_path / "rows.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(InputError, match="truncated"):
        opened.read(10, 20)


def test_damaged_tensors(tmp_path: Path) -> None:
    def write(header: object) -> Path:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path = tmp_path / "rows.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(100))
        return path

    cell = {"dtype": "F32", "shape": [5, 5], "data_offsets": [0, 100]}
    open_source(write({"rows": cell}), "p")
    for header, words in (
        (b"nonsense", "not in the safetensors format"),
        ([1], "the header is no object"),
        ({"rows": cell | {"dtype": "F8_E4M3"}}, "dtype F8_E4M3 is none of"),
        ({"rows": cell | {"shape": [5, 4]}}, "has not 100 bytes"),
        ({"rows": cell | {"data_offsets": [4, 104]}}, "truncated"),
        ({"rows": {"dtype": "F32"}}, "damaged header"),
        ({}, "holds 0 arrays"),
    ):
        with pytest.raises(InputError, match=words):
            open_source(write(header), "p")


def test_a_stored_member_is_mapped(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive, archive.open("x/rows.npy", "w") as file:
        np.lib.format.write_array(file, LOGITS)
    opened = open_source(f"{tmp_path}/rows.npz:x/rows", "p")
    assert isinstance(opened, Mapped)
    np.testing.assert_array_equal(opened.read(80, ROWS), LOGITS[80:])


def test_batches_that_change(tmp_path: Path) -> None:
    opened = open_source(iter([LOGITS[:3], LOGITS[3:5].astype(np.float64)]), "p")
    with pytest.raises(InputError, match=r"the batch at row 3 has shape \(2, 11\) float64, the first had rows"):
        opened.read(0, 5)
    with pytest.raises(InputError, match="an iterator without batches"):
        open_source(iter([]), "p")
    with pytest.raises(InputError, match="a path, an array or an iterator"):
        open_source(None, "p")


def test_batches_that_lie_in_one_buffer():
    rows = np.arange(60.0).reshape(20, 3)

    def batches():
        buffer = np.empty((4, 3))
        for start in range(0, 20, 4):
            buffer[:] = rows[start : start + 4]
            yield buffer

    found = open_source(batches(), "p")
    parts = [found.read(0, 9).copy(), found.read(9, 14).copy(), found.read(14, 30).copy()]
    np.testing.assert_array_equal(np.concatenate(parts), rows)


def test_an_empty_path():
    with pytest.raises(InputError, match="an empty path"):
        open_source("", "p")


@pytest.mark.parametrize("maker", [samples.csv, samples.deflated_npz, samples.parquet_lists])
def test_streams_read_less_at_a_time_where_there_is_little_memory(maker, tmp_path: Path) -> None:
    pytest.importorskip(samples.NEEDS.get(maker, "numpy"), reason="the library of this format")
    rows = np.random.default_rng(0).random((4_000, CELLS))
    opened = open_source(maker(tmp_path, rows), "p")
    pages = opened.resident - opened.batch_bytes()
    assert rows.nbytes <= opened.batch_bytes() / opened.copies <= 12 * rows.nbytes  # the text of a number is longer
    for limit, batch in ((1 << 30, source.BATCH), (64 << 20, 2 << 20), (1 << 10, source.LEAST_BATCH)):
        opened.within(limit)
        assert batch - opened.row_bytes < opened.batch_rows() * opened.row_bytes <= batch
        assert opened.resident == pages + opened.batch_bytes() <= pages + opened.copies * batch
    assert opened.batch_bytes() == opened.copies * opened.batch_rows() * opened.row_bytes
    np.testing.assert_array_equal(opened.read(0, 4_000), rows)
    assert opened.holding == 0
    np.testing.assert_array_equal(opened.read(0, 5), rows[:5])
    assert 0 < opened.holding <= opened.batch_rows() * opened.row_bytes
    assert max(len(batch) for batch in opened._batches(0)) <= opened.batch_rows() < 4_000
    report = kl.score(opened.path, rows, memory="16MiB")
    assert report.rows == report["kl"].zero == 4_000
    with pytest.raises(InputError, match=r"memory: 100 KiB more than the process holds is too little: .* reading "):
        kl.score(opened.path, rows, memory="100KiB")


def test_what_is_made_of_a_stream_holds_what_that_holds(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="references")
    rows = np.random.default_rng(0).normal(size=(2_000, CELLS))
    path = samples.deflated_npz(tmp_path, rows)
    for k, settings in enumerate(({"top_k": 3}, {"temperature": 2.0})):
        reference = open_source(cache_reference(rows, tmp_path / f"{k}.safetensors", **settings), "p")
        options = Options(kind="logit", temperature=settings.get("temperature", 1.0))
        model = matched(reference, open_source(path, "q"), options, False, 1).q
        assert model.resident > model.model.resident > 0
        before = model.resident
        model.within(1 << 20)
        assert model.model.batch_rows() * model.row_bytes <= source.LEAST_BATCH * model.row_bytes // CELLS
        assert model.resident < before
        found = model.read(0, 7)
        assert model.holding == model.model.holding > 0
        model.cells = 50  # rows are worked on few at a time, to the same end
        np.testing.assert_array_equal(model.read(0, 7), found)


def test_small_files_need_little_memory(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((9, CELLS))
    for maker in (samples.csv, samples.deflated_npz, samples.parquet_lists):
        if maker in samples.NEEDS:
            pytest.importorskip(samples.NEEDS[maker], reason="the library of this format")
        path = maker(tmp_path, rows)
        assert open_source(path, "p").resident < 1 << 16
        assert kl.score(path, rows, memory="4MiB").rows == 9


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
def test_lists_of_parquet(kind: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet files")
    import pyarrow.parquet as pq

    number = pa.float64()
    made = {"fixed": pa.list_(number, 2), "list": pa.list_(number), "large": pa.large_list(number)}[kind]
    path = tmp_path / "x.parquet"

    def table(lists: list[list[float | None] | None], **others: list[int]) -> str:
        pq.write_table(pa.table({**others, "x": pa.array(lists, made)}), path, row_group_size=2)
        return str(path)

    lists = [None, [1.0, None], None, [3.0, 4.0], [5.0, 6.0]]
    expected = [[np.nan, np.nan] if x is None else [np.nan if y is None else y for y in x] for x in lists]
    for start in range(5):
        np.testing.assert_array_equal(open_source(table(lists), "p").read(start, 9), expected[start:])
    for none in ([], [None, None]):  # the type alone tells how long the rows are
        if kind == "fixed":
            assert open_source(table(none), "p").read(0, 9).shape == (len(none), 2)
        else:
            with pytest.raises(InputError, match="column 'x' holds lists, and no row tells how long they are"):
                open_source(table(none), "p")
    if kind != "fixed":
        assert open_source(table([[], None, []]), "p").read(0, 9).shape == (3, 0)
    pytest.importorskip("pandas", reason="an index that pandas wrote")
    import pandas as pd

    frame = pd.DataFrame({"x": lists[3:]}, index=pd.Index(["a", "b"], name="row"))
    stored = pa.Table.from_pandas(frame, schema=pa.schema([("row", pa.string()), ("x", made)]))
    pq.write_table(stored.select(["row", "x"]), path)
    np.testing.assert_array_equal(open_source(str(path), "p").read(0, 9), expected[3:])
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.parquet: "):
        open_source(str(path), "p").read(0, 9)


def test_what_a_source_does_not_count_is_no_room_that_it_holds() -> None:
    rows = np.random.default_rng(0).random((9, CELLS))
    handed = open_source(iter([rows]), "p")
    pairing = Pairing(handed, open_source(rows, "q"), None, -1, None)
    assert pairing.read(0, 3, 1e9) is not None
    assert handed.holding > 0 == pairing.holding == pairing.resident


def test_cells_in_hand() -> None:
    rows, sizes = np.zeros((16, 512, 64)), []
    for threads, cells, most in ((1, 1 << 16, 1 << 16), (2, 1 << 16, 1 << 15), (1, 1 << 13, 1 << 15)):
        sizes.clear()
        list(spread(rows, lambda few: sizes.append(rows[few].size), threads, cells))
        assert sum(sizes) == rows.size
        assert max(sizes) <= most
    assert working(1 << 16, rows.shape) == BYTES << 16
    assert working(1 << 13, rows.shape) == BYTES << 15  # an entry of the first axis
    assert working(1 << 13, (2, 3)) == BYTES * 6
    assert working(1 << 13, (None, 3)) == BYTES << 13
    assert working(1 << 13, (0, 3)) == 0


def test_names_of_arrays_may_hold_colons(tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", **{"dense:0": np.eye(2), "dense:1": np.eye(2) + 1.0})
    found = open_source(f"{tmp_path}/run.npz:dense:1", "p")
    np.testing.assert_array_equal(found.read(0, 2), np.eye(2) + 1.0)
