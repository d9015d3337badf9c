"""Files that are damaged, or not what they seem, are refused in one line that names them."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from klnumba.scoring import InputError, Interrupted, blocks
from klnumba.scoring.opening import open_source
from tests.scoring.samples import CELLS, LOGITS, OTHERS


def refusal(path: Path | str, header: bool | None = None) -> str:
    """The text with which a file is refused, when it is opened or when it is read."""
    with pytest.raises(InputError) as caught:
        open_source(path, "p", header=header).read(0, 1 << 20)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def csv(folder: Path, content: str | bytes) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("first", ["0.5,", ",0.5", "0.5,x", "0.5,1.5x", "x1,2020", "0.5,''", "nan,a", ",", '" ",'])
def test_a_first_line_that_may_be_names_or_numbers(first: str, tmp_path: Path) -> None:
    path = csv(tmp_path, f"{first}\n3,4\n1,2\n")
    assert "may be names or numbers: say --header or --no-header" in refusal(path)
    opened = open_source(path, "p", header=True)
    np.testing.assert_array_equal(opened.read(0, 5), [[3, 4], [1, 2]])
    assert "row 0: " in refusal(path, header=False)


@pytest.mark.parametrize(
    "first",
    ["NA,NA", "null,null", "na,Null", "#N/A,#N/A", "-,-", '-,"."', "True,False", "TRUE,true", '"1,5","2,5"',
     "0x10,0X1f", "1d3,2D-3",
     "a,NA", "n/a,b", "false,b", "50%,7 %", "1'000,2 000", '"1,234.5","-1.234,5"', "\u22121,\u22122"],
)  # fmt: skip
def test_a_first_line_of_what_is_no_name(first: str, tmp_path: Path) -> None:
    """Such as a row with nothing but missing values, which would be lost as a header."""
    path = csv(tmp_path, f"{first}\n3,4\n1,2\n")
    assert "may be names or numbers: say --header or --no-header" in refusal(path)
    np.testing.assert_array_equal(open_source(path, "p", header=True).read(0, 5), [[3, 4], [1, 2]])


def test_a_field_that_holds_a_truth_value_is_shown_as_it_is(tmp_path: Path) -> None:
    path = csv(tmp_path, '1,2\n"x, true ,y",3\n')
    assert "'x, true ,y'" in refusal(path, header=False)


@pytest.mark.parametrize("first", ["True,False", ' TRUE ,"false"'])
def test_truth_values(first: str, tmp_path: Path) -> None:
    body = f"{first}\n1,0\nfalse,0.5\n"
    for head, header in (("", False), ("a,b\n", None)):
        opened = open_source(csv(tmp_path, head + body), "p", header=header)
        np.testing.assert_array_equal(opened.read(0, 9), [[1, 0], [1, 0], [0, 0.5]])


@pytest.mark.parametrize("row", ["True,Falsey", "True,", "True True,1", "True,x", "True"])
def test_what_is_no_truth_value(row: str, tmp_path: Path) -> None:
    assert "rows.csv: row 1: " in refusal(csv(tmp_path, f"a,b\n1,2\n{row}\n"))


def test_a_mask_of_truth_values(tmp_path: Path) -> None:
    kept = np.arange(LOGITS.size).reshape(LOGITS.shape) % 3 > 0
    rows = [[f"c{k}" for k in range(CELLS)], *kept]
    path = csv(tmp_path, "\n".join(",".join(map(str, row)) for row in rows))
    found, wanted = (kl.score(LOGITS, OTHERS, kind="logit", mask=mask) for mask in (path, kept))
    assert found["kl"] == wanted["kl"]


@pytest.mark.parametrize(
    "first",
    ["a,b", "1st,2nd", '"p, in nats",q', ",a", "x1,x2", "-,a", "1d,2d", "1h,30min", "0-10,10-20", "2020-01,2020-02",
     "01.02.2020,02.02.2020", '"(0, 1]","(1, 2]"', "Nancy,Nana", "falsehood,truth", "€,¢x"],
)  # fmt: skip
def test_names(first: str, tmp_path: Path) -> None:
    opened = open_source(csv(tmp_path, f"{first}\n3,4\n1,2\n"), "p")
    np.testing.assert_array_equal(opened.read(0, 5), [[3, 4], [1, 2]])
    assert opened.columns is not None


@pytest.mark.parametrize("first", ["0.5,1", '"0.5",1', " 0.5 , 1e0", "5e-1,+1"])
def test_numbers(first: str, tmp_path: Path) -> None:
    opened = open_source(csv(tmp_path, f"{first}\n3,4\n"), "p")
    np.testing.assert_array_equal(opened.read(0, 5), [[0.5, 1], [3, 4]])
    assert opened.columns is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("é,b\n3,4\n".encode("latin-1"), "not text in UTF-8: invalid continuation byte"),
        ("a,b\n3,4\n".encode("utf-16"), "not text in UTF-8: invalid start byte"),
        (b"a,b\n" + b"3,4\n" * 20_000 + b"\xff,4\n", "not text in UTF-8: invalid start byte"),
        ("a" * 131_073 + ",b\n3,4\n", "the first line: field larger than field limit"),
    ],
    ids=["head", "utf-16", "body", "long"],
)
def test_csv_that_is_no_text(content: str | bytes, words: str, tmp_path: Path) -> None:
    assert words in refusal(csv(tmp_path, content))


def npz(folder: Path, save: Callable[..., None]) -> tuple[Path, bytes]:
    path = folder / "rows.npz"
    save(path, rows=LOGITS)
    return path, path.read_bytes()


def with_flag(whole: bytes, flag: int) -> bytes:
    """The archive with a flag set for its member, in both of its headers."""
    changed = bytearray(whole)
    changed[6] |= flag
    changed[whole.rindex(b"PK\1\2") + 8] |= flag
    return bytes(changed)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_archives(save: Callable[..., None], tmp_path: Path) -> None:
    path, whole = npz(tmp_path, save)
    central = whole.rindex(b"PK\1\2")
    for content in (
        whole[:central] + b"xxxx" + whole[central + 4 :],
        whole[:-10] + b"\xff\xff" + whole[-8:],  # the length of the directory
        whole[: central + 42] + struct.pack("<I", 1 << 30) + whole[central + 46 :],  # where the member begins
        b"xxxx" * 8 + whole[32:],
    ):
        path.write_bytes(content)
        assert refusal(path).startswith(str(path))
    path.write_bytes(with_flag(whole, 1))
    assert refusal(path) == f"{path}: is encrypted"


def test_an_archive_packed_in_an_unknown_way(tmp_path: Path) -> None:
    path, whole = npz(tmp_path, np.savez_compressed)
    central = whole.rindex(b"PK\1\2")
    path.write_bytes(whole[:8] + b"\x60" + whole[9 : central + 10] + b"\x60" + whole[central + 11 :])
    assert "compression" in refusal(path)


def test_a_member_with_too_few_bytes(tmp_path: Path) -> None:
    about = {"descr": "<f8", "fortran_order": True, "shape": (9, 3)}
    path = tmp_path / "rows.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("rows.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, about)
        file.write(bytes(80))
    assert refusal(path).startswith(f"{path}: ")


CELL = {"dtype": "F32", "shape": [5, 5], "data_offsets": [0, 100]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": ["F32"]}, r"dtype \['F32'\]"),
        ({"dtype": None}, "dtype None"),
        ({"shape": [-5, -5]}, "-5 in shape"),
        ({"shape": [5.0, 5]}, "5.0 in shape"),
        ({"shape": [True, 25]}, "True in shape"),
        ({"shape": "55"}, "shape '55'"),
        ({"data_offsets": [-8, 92]}, "-8 in shape"),
        ({"data_offsets": [0.5, 100.5]}, "0.5 in shape"),
        ({"data_offsets": ["0", "100"]}, "'0' in shape"),
        ({"data_offsets": [100, 0]}, "truncated"),
        ({"data_offsets": [1 << 40, (1 << 40) + 100]}, "truncated"),
        ({"data_offsets": [0]}, "damaged header"),
    ],
    ids=str,
)
def test_damaged_headers_of_tensors(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.safetensors"
    text = json.dumps({"rows": CELL | changes}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(100))
    with pytest.raises(InputError, match=words):
        open_source(path, "p")


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"rows": ' * 200_000, b'{"__metadata__": [1]}'], ids=len)
def test_headers_of_tensors_that_are_none(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert "not in the safetensors format" in refusal(path)


def test_raised_digits_in_names_are_text(tmp_path: Path) -> None:
    for k, name in enumerate(("1²2", "1²10", "٣")):
        np.save(tmp_path / f"{name}.npy", LOGITS[k : k + 1])
    for item in (tmp_path, tmp_path / "*.npy"):
        np.testing.assert_array_equal(open_source(item, "p").read(0, 9), LOGITS[:3])


def test_shards_under_other_names(tmp_path: Path) -> None:
    np.save(tmp_path / "1.npy", LOGITS)
    np.save(tmp_path / "2.npy", LOGITS.astype(np.float64))
    assert refusal(tmp_path).endswith("has (11,) float32")
    (tmp_path / "csv").mkdir()
    for k, names in enumerate(("a,b", "b,a")):
        (tmp_path / f"csv/{k}.csv").write_text(f"{names}\n1,2\n")
    assert refusal(tmp_path / "csv").endswith("has (2,) float64 under other names")


@pytest.mark.parametrize("large", [False, True])
def test_lists_of_several_lengths(large: bool, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet files")
    import pyarrow.parquet as pq

    kind = (pa.large_list if large else pa.list_)(pa.int64())

    def table(lists: list[list[int | None] | None]) -> Path:
        pq.write_table(pa.table({"x": pa.array(lists, kind)}), tmp_path / "lists.parquet", row_group_size=2)
        return tmp_path / "lists.parquet"

    opened = open_source(table([None, [1, None], [3, 4], None, [5, 6]]), "p")
    expected = [[np.nan, np.nan], [1, np.nan], [3, 4], [np.nan, np.nan], [5, 6]]
    np.testing.assert_array_equal(opened.read(0, 9), expected)
    np.testing.assert_array_equal(opened.read(3, 9), expected[3:])
    assert refusal(table([[1, 2], [3, 4], None, [5]])).endswith(": row 3: a list of 1, where the first one has 2")
    assert refusal(table([[1, 2], [3, 4, 5]])).endswith(": row 1: a list of 3, where the first one has 2")
    for lists in ([], [None, None]):
        assert refusal(table(lists)).endswith("column 'x' holds lists, and no row tells how long they are")


@pytest.mark.parametrize("shape", ["(-1, 4)", "(2, -4)", "(True, 4)"])
def test_lengths_that_are_none(shape: str, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path = tmp_path / "rows.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64))
    assert refusal(path) == f"{path}: shape {shape}, whose lengths are not whole numbers from 0 on"


@pytest.mark.parametrize("content", ["[]", "1", '"x"', "null", "{}", "{", '{"zarr_format": 3, "node_type": []}'])
def test_a_zarr_store_without_an_array(content: str, tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="Zarr stores")
    (tmp_path / "rows.zarr").mkdir()
    (tmp_path / "rows.zarr/zarr.json").write_text(content)
    assert refusal(tmp_path / "rows.zarr").startswith(f"{tmp_path}/rows.zarr: ")


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_was_cut_off(suffix: str, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet files")
    monkeypatch.setattr(blocks, "BLOCK", 8 * CELLS * 10)
    output = tmp_path / f"out.{suffix}"
    asked = iter([False] * 3)

    def run(**settings: object) -> None:
        kl.score(LOGITS, OTHERS, kind="logit", output=output, checkpoint_every=0.0, **settings)

    with pytest.raises(Interrupted):
        run(stop=lambda: next(asked, True))
    damaged = tmp_path / f"out.{suffix}.unfinished/part-{part:06d}.{suffix}"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(InputError, match=rf"out\.{suffix}\.unfinished.*; remove the folder to begin again$") as caught:
        run(resume=True)
    assert "\n" not in str(caught.value)
    assert not output.exists()
