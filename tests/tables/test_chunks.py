"""Tables in pieces and in files give what the whole table gives."""

from __future__ import annotations

import gzip
import json
import math
import re

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.missing import WORDS
from klnumba.tables import Chunks, Profile, compare, sampling, scan


def table(rows, seed):
    rng = np.random.default_rng(seed)
    number = rng.gamma(2.0, size=rows)
    number[rng.random(rows) < 0.05] = np.nan
    return pd.DataFrame({
        "number": number,
        "few": rng.integers(0, 5, rows),
        "wide": rng.integers(0, 10**6, rows),
        "word": pd.Series(rng.choice(["a", "b", "c", None], rows, p=[0.5, 0.3, 0.1, 0.1]), dtype=str),
        "flag": rng.random(rows) < 0.3,
    })  # fmt: skip


BEFORE, AFTER = table(5000, 0), table(4000, 1)


def pieces(frame, size):
    return Chunks(lambda: (frame.iloc[k : k + size] for k in range(0, max(len(frame), 1), size)))


@pytest.mark.parametrize("size", [1, 997, 5000, 9999])
@pytest.mark.parametrize("bins", ["auto", "quantile", "fd", 12, {"number": [0.0, 1.0, 2.0], "wide": "doane"}])
def test_pieces_change_nothing(size, bins, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE", 1000)  # the sample is thinned while the pieces come
    if size == 1 and bins != "auto":
        pytest.skip("slow, and the same")
    before, after = (BEFORE.head(300), AFTER.head(200)) if size == 1 else (BEFORE, AFTER)
    whole = compare(before, after, bins=bins)
    cut = compare(pieces(before, size), pieces(after, size), bins=bins)
    assert cut.profile == whole.profile
    assert cut.to_json() == whole.to_json()


def test_the_sample_depends_on_the_places_alone():
    for rows in (10, sampling.SAMPLE, sampling.SAMPLE + 1, 10 * sampling.SAMPLE):
        level = sampling.level_of(rows)
        at = sampling.places(0, rows, level)
        assert 0.4 * sampling.SAMPLE < at.size <= 1.1 * sampling.SAMPLE or at.size == rows
        cut = [sampling.places(a, b, level) for a, b in ((0, 3), (3, rows // 2), (rows // 2, rows))]
        np.testing.assert_array_equal(np.concatenate(cut), at)
        if level:
            assert abs(np.mean(at) / rows - 0.5) < 0.01


SUFFIXES = [".csv", ".csv.gz", ".parquet", ".feather", ".jsonl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    for name, frame in (("before", BEFORE), ("after", AFTER)):
        frame.to_csv(path / f"{name}.csv", index=False)
        frame.to_csv(path / f"{name}.csv.gz", index=False)
        frame.to_json(path / f"{name}.jsonl", orient="records", lines=True, double_precision=15)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("rows", [700, 10**6])
def test_files_give_what_frames_give(folder, suffix, rows):
    if suffix in (".parquet", ".feather"):
        pytest.importorskip("pyarrow", reason="reads the file")
        for name, frame in (("before", BEFORE), ("after", AFTER)):
            getattr(frame, f"to_{suffix[1:]}")(folder / f"{name}{suffix}")
    found = compare(*(scan(folder / f"{name}{suffix}", rows=rows) for name in ("before", "after")))
    whole = compare(BEFORE, AFTER)
    pd.testing.assert_frame_equal(found.to_frame(), whole.to_frame(), rtol=1e-12 if suffix == ".jsonl" else 1e-300)
    some = Profile.fit(scan(folder / f"before{suffix}", rows=rows, columns=["few", "word"]))
    assert list(some.cells) == ["few", "word"]


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "t.txt").write_text("x")
    with pytest.raises(ValueError, match="unknown suffix; known are"):
        scan(tmp_path / "t.txt")
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan(tmp_path / "no.csv")
    (tmp_path / "t.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="rows: a positive integer"):
        scan(tmp_path / "t.csv", rows=0)
    with pytest.raises(TypeError, match="weights: of a table in pieces"):
        compare(pieces(BEFORE, 100), AFTER, weights=(np.ones(5000), None))


def test_columns_may_be_empty_in_some_pieces():
    frame = pd.DataFrame({"x": ["a", "b", "a", "b"]})
    parts = [pd.DataFrame({"x": [np.nan, np.nan]}), frame, pd.DataFrame({"x": [np.nan]})]
    profile = Profile.fit(Chunks(lambda: parts))
    assert profile.cells["x"].names == ("a", "b")
    assert profile.tallies["x"].counts.tolist() == [2, 2, 0, 3]
    mixed = Profile.fit(Chunks(lambda: [frame, pd.DataFrame({"x": [1.0, 2.0]})]))
    assert mixed.problems == {"x": "holds number values after category values"}
    lost = Profile.fit(Chunks(lambda: [frame, pd.DataFrame({"y": [1.0, 2.0]})]))
    assert lost.problems == dict.fromkeys(["x", "y"], "is not in every piece")


def test_columns_that_later_pieces_of_the_current_table_have():
    both = pd.DataFrame({"x": [1, 2], "y": [1, 2]})
    later = Chunks(lambda: [both[["x"]], both.assign(new=1), both.assign(new=1)])
    found = compare(both, later)
    assert list(found.results) == ["x"]
    assert found.problems == {"y": "is not in every piece", "new": "is not in reference"}
    with pytest.raises(ValueError, match="batch: column 'y' is not in every piece"):
        Profile.fit(both).update(later)


def write_csv(path, rows):
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("rows", [pytest.param(100, marks=pytest.mark.slow), 4096, 10**6])
def test_csv_has_one_type_a_column_in_any_order_and_cut(tmp_path, rows):
    """One code of letters in the last row makes text of all codes, wherever pieces or blocks of the reader end."""
    lines = [f"{k % 7:02},{k}" for k in range(60_000)] + ["A,60000"]
    there = write_csv(tmp_path / "there.csv", ["code,number", *lines])
    back = write_csv(tmp_path / "back.csv", ["code,number", *reversed(lines)])
    found = compare(scan(there, rows=rows), scan(back, rows=rows), columns=["code"])
    assert found.problems == {}
    assert found.profile.cells["code"].names == ("00", "01", "02", "03", "04", "05", "06", "A")
    assert found.results["code"].values["kl"] == 0.0


def test_csv_of_many_columns_is_read_whole(tmp_path):
    """pandas would guess the types of blocks, warn, and make 1 and "1" of one column."""
    lines = [",".join([str(k % 5)] * 51) for k in range(60_000)] + [",".join(["1"] * 50 + ["A"])]
    head = ",".join(f"c{k}" for k in range(51))
    there = write_csv(tmp_path / "there.csv", [head, *lines])
    back = write_csv(tmp_path / "back.csv", [head, *reversed(lines)])
    found = compare(scan(there), scan(back), columns=["c50"])
    assert found.profile.cells["c50"].names == ("0", "1", "2", "3", "4", "A")
    assert found.results["c50"].values["p_value"] == 1.0


VALUES = {
    "zip": ["01", "1", "2", "02"],
    "id": ["9007199254740993", "9007199254740992"],
    "day": ["2024-01-01", "2024-01-02"],
    "mixed": [1, 2.5, 1, "a", True, None],
    "flags": [True, False, None],
    "numbers": [1, 2, 0.1, None],
    "big": [2**70, 1, 2],
}


def json_lines(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    return path


@pytest.mark.parametrize("rows", [1, 7, 10**6])
def test_json_lines_keep_their_types(tmp_path, rows):
    records = [{name: values[k // 3 % len(values)] for name, values in VALUES.items()} for k in range(120)]
    path = json_lines(tmp_path / "t.jsonl", records)
    profile = Profile.fit(scan(path, rows=rows))
    assert profile.problems == {}
    kinds = {name: one.kind for name, one in profile.cells.items()}
    words = dict.fromkeys(["zip", "id", "day", "mixed"], "category")
    assert kinds == words | {"flags": "boolean", "numbers": "number", "big": "number"}
    for name in ("zip", "id", "day"):
        assert sorted(profile.cells[name].names) == sorted(VALUES[name])
    assert profile.to_json() == Profile.fit(scan(path)).to_json()
    other = json_lines(tmp_path / "o.jsonl", [one | {"zip": one["zip"].lstrip("0")} for one in records])
    assert compare(scan(path, rows=rows), scan(other, rows=rows)).results["zip"].values["kl"] > 0.1


@pytest.mark.parametrize("rows", [1, 3, 10**6])
def test_json_lines_may_lack_keys(tmp_path, rows):
    records = [{"a": 1, "early": "x"}] * 4 + [{"a": 2}] * 3 + [{"late": 0.5, "a": 1}, {"late": None}] * 2
    path = json_lines(tmp_path / "t.jsonl", records)
    assert scan(path).names() == ["a", "early", "late"]
    profile = Profile.fit(scan(path, rows=rows))
    assert profile.problems == {}
    assert profile.tallies["a"].counts.tolist() == [6, 3, 0, 2]
    assert profile.tallies["early"].counts.tolist() == [4, 0, 7]
    assert profile.tallies["late"].counts.tolist()[-1] == 9
    assert [*Profile.fit(scan(path, rows=rows, columns=["late"])).cells] == ["late"]
    lines = compare(scan(path, rows=rows), scan(json_lines(tmp_path / "o.jsonl", [*records, {"new": 1}]), rows=rows))
    assert lines.problems == {"new": "is not in reference"}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[1]", "line 3: not one object"),
        ('{"a": 1} {"a": 2}', "line 3: not one object"),
        ('{"a"', "line 3: Expecting ':' delimiter, at character 5"),
        ("[" * 10**5, "line 3: "),
    ],
)
def test_json_lines_that_are_none_are_named(tmp_path, line, text):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}: cannot be read: {text}")):
        Profile.fit(scan(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_that_a_file_lacks_are_named(folder, tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    if suffix in (".parquet", ".feather"):
        pytest.importorskip("pyarrow", reason="reads the file")
        getattr(BEFORE, f"to_{suffix[1:]}")(path)
    else:
        path = folder / f"before{suffix}"
    with pytest.raises(ValueError, match=f"columns: 'nope' is not in {re.escape(str(path))}"):
        Profile.fit(scan(path, columns=["few", "nope"]))
    with pytest.raises(ValueError, match="columns: 'nope' is not in reference"):
        Profile.fit(scan(path), columns=["few", "nope"])
    assert scan(path).names() == [*BEFORE]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_columns_that_nobody_wants_are_not_read(tmp_path, suffix):
    """The bytes of the other column are damaged: whoever reads it fails."""
    pytest.importorskip("pyarrow", reason="reads the file")
    other = np.random.default_rng(0).random(5000)
    path = tmp_path / f"t{suffix}"
    options = {"use_dictionary": False} if suffix == ".parquet" else {}
    getattr(pd.DataFrame({"x": [1.0, 2.5] * 2500, "other": other, "w": 1.0}), f"to_{suffix[1:]}")(path, **options)
    data = bytearray(path.read_bytes())
    at = data.find(other[:8].tobytes()) - 16
    assert at > 0
    data[at : at + 16] = b"\xff" * 16
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: cannot be read"):
        Profile.fit(scan(path))
    assert [*Profile.fit(scan(path), columns=["x"], weights="w").cells] == ["x"]
    found = compare(scan(path), scan(path), columns=iter(["x"]), weights="w")
    assert [*found.results] == ["x"]


def test_names_that_stand_twice(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="writes the file")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(ValueError, match="cannot be read: column names must differ, but 'a' stand there twice"):
        Profile.fit(scan(path))


def test_weights_by_name_in_pieces():
    before = BEFORE.assign(w=np.random.default_rng(0).integers(1, 4, len(BEFORE)))
    whole, cut = compare(before, AFTER, weights="w"), compare(pieces(before, 999), pieces(AFTER, 999), weights="w")
    assert cut.to_json() == whole.to_json()


def test_pieces_that_do_not_begin_again_are_refused():
    frame = pd.DataFrame({"x": [1, 2], "w": [1.0, 2.0]})
    once = iter([frame, frame])
    for use in (Profile.fit, lambda chunks: compare(chunks, frame), lambda chunks: compare(chunks, frame, weights="w")):
        with pytest.raises(ValueError, match="make: returns one iterator over and over"):
            use(Chunks(lambda: once))
    with pytest.raises(TypeError, match="make: a function"):
        Chunks(iter([frame]))
    with pytest.raises(ValueError, match="reference: no piece of a table"):
        Profile.fit(Chunks(lambda: iter([])))


@pytest.mark.parametrize("head", ["x,x", "\n\nx,y,x", '"x",x', "x,x.1,x", "\ufeffx,x"])
def test_names_that_stand_twice_in_a_head(tmp_path, head):
    """pandas reads the second as another column, x.1."""
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(f"{head}\n{re.sub('[^,]+', '1', head.strip())}\n")
    text = r"t\.csv\.gz: cannot be read: column names must differ, but 'x' stand there twice"
    for work in (scan(path).names, lambda: Profile.fit(scan(path)), lambda: next(iter(scan(path, columns=["x"])))):
        with pytest.raises(ValueError, match=text):
            work()


def test_heads_that_pandas_alone_would_name(tmp_path):
    """Columns without a name are none twice, and a name such as x.1 is one like others."""
    path = tmp_path / "t.csv"
    path.write_text(",,x,x.1\n1,2,3,4\n")
    assert scan(path).names() == ["Unnamed: 0", "Unnamed: 1", "x", "x.1"]
    assert Profile.fit(scan(path)).tallies["x.1"].rows == 1


def test_keys_that_stand_twice(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1, "y": {"a": 1}}\n{"x": 1, "x": 2}\n')
    with pytest.raises(ValueError, match=r"line 2: column names must differ, but 'x' stand there twice"):
        Profile.fit(scan(path))


@pytest.mark.parametrize(("columns", "error"), [("xy", TypeError), (5, TypeError), (["x", "x"], ValueError)])
def test_columns_that_are_no_names(tmp_path, columns, error):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(error, match="columns: "):
        scan(path, columns=columns)


@pytest.mark.parametrize("rows", [50, 120, 1000])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_columns_that_are_missing_at_first(tmp_path, suffix, rows):
    flags = pd.Series([None] * 120 + [True, False] * 60, dtype=object)
    for name, held in {"a": flags, "b": flags[::-1]}.items():
        frame = pd.DataFrame({"x": held, "k": range(240)})
        path = tmp_path / f"{name}.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_json(path, orient="records", lines=True)
    first, second = (scan(tmp_path / f"{name}.{suffix}", rows=rows) for name in "ab")
    (row,) = compare(first, second, columns=["x"]).rows()
    assert (row["kind"], row["status"], row["kl"]) == ("boolean", "ok", 0.0)


@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_truth_values_and_numbers_of_json_stay_apart(tmp_path, rows):
    together, apart = [True, True, 1, 1, 1, 0, False], [1, True, 0, 1, False, True, 1]
    for name, values in {"a": together, "b": apart}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"x": one}) + "\n" for one in values))
    found = compare(*(scan(tmp_path / f"{name}.jsonl", rows=rows) for name in "ab"))
    assert found.rows()[0]["kl"] == 0.0
    assert dict(zip(found.contributions["cell"], found.contributions["n_reference"], strict=True)) == {
        "1": 3, "True (bool)": 2, "0": 1, "False (bool)": 1,
    }  # fmt: skip


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_long_whole_numbers_beside_missing_ones_keep_their_digits(tmp_path, suffix, rows):
    ids = [2**60 + k % 4 for k in range(40)]
    ids[5] = None
    path = tmp_path / f"a.{suffix}"
    lines = ["x,y", *(f"{'' if one is None else one},{k}" for k, one in enumerate(ids))]
    if suffix == "jsonl":
        lines = [json.dumps({"x": one, "y": k}) for k, one in enumerate(ids)]
    path.write_text("\n".join(lines) + "\n")
    whole = pd.DataFrame({"x": pd.array(ids, dtype="Int64"), "y": range(40)})
    assert Profile.fit(scan(path, rows=rows)).to_json() == Profile.fit(whole).to_json()
    (row,) = compare(scan(path, rows=rows), whole, columns=["x"]).rows()
    assert (row["kl"], row["cells"]) == (0.0, 5)


@pytest.mark.parametrize("texts", [["3", "2e300", "1.5", "-inf"], ["3", "2e300"], ["0.5", "7", "1e17"]])
@pytest.mark.parametrize("rows", [7, 1000])
def test_large_numbers_that_are_not_whole_are_what_pandas_reads(tmp_path, texts, rows):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{text},1\n" for text in [*texts, ""] * 50))
    assert Profile.fit(scan(path, rows=rows)).to_json() == Profile.fit(pd.read_csv(path)).to_json()


LONG = {
    "a comma at the end of each": ["x,y", *["1,2,"] * 9],
    "row names of R": ["x,y", *[f"{k},1,2" for k in range(9)]],
    "decimal commas": ["x,y", *["1,5,2"] * 9],
    "semicolons": ["x,y", *["1;2,5;3,5"] * 9],
    "the first": ["x,y", "1,2,", *["1,2"] * 8],
    "one in the middle": ["x,y", *["1,2"] * 5, "1,2,", *["1,2"] * 3],
    "the last, after a blank line": ["x,y", "", *["1,2"] * 7, "1,2,3"],
}


@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize("rows", [1, 3, 5, 1000])
def test_lines_with_more_fields_than_the_head(tmp_path, case, suffix, rows):
    """pandas would take the first fields for an index, and shift the others, without a word."""
    path = tmp_path / f"t.{suffix}"
    with gzip.open(path, "wt") if suffix == "csv.gz" else path.open("w") as file:
        file.write("\n".join(LONG[case]) + "\n")
    at = next(k for k, line in enumerate(LONG[case], 1) if line.count(",") == 2)
    text = f"{path}: cannot be read: line {at}: 3 fields, but the head has 2; row names need a name there"
    for columns in (None, ["y"]):
        with pytest.raises(ValueError, match=re.escape(text)):
            Profile.fit(scan(path, rows=rows), columns=columns)
        with pytest.raises(ValueError, match=re.escape(text)):
            [*scan(path, rows=rows, columns=columns)]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["age;city", "4.5;a", "7.5;b"], "semicolons"),
        (["", "age;city", "4,5;a", "7,5;b"], "semicolons"),
        (['"age";"a, b"', '4.5;"x;y"'], "semicolons"),
        (["age\tcity", "4\ta, b", "5\t"], "tabs"),
        (["age|city", "4|a"], "vertical bars"),
    ],
)
def test_fields_that_no_comma_parts(tmp_path, suffix, lines, name):
    """They would be one column of texts, of which every row may have its own."""
    path = tmp_path / f"t.{suffix}"
    with gzip.open(path, "wt") if suffix == "csv.gz" else path.open("w") as file:
        file.write("\n".join(lines) + "\n")
    text = f"{path}: cannot be read: fields are parted by {name}, and in a .csv file by commas; numbers have points"
    for call in (scan(path).names, lambda: [*scan(path)], lambda: Profile.fit(scan(path))):
        with pytest.raises(ValueError, match=re.escape(text)):
            call()


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["tags", "a;b", "c"], ["tags"]),
        (['"a;b"', '"x;y"'], ["a;b"]),
        (["size;unit", "x", "y"], ["size;unit"]),
        (["a;b,c;d", "1;2,3;4"], ["a;b", "c;d"]),
        (["a;b"], ["a;b"]),
    ],
)
def test_semicolons_that_part_no_fields(tmp_path, lines, names):
    path = write_csv(tmp_path / "t.csv", lines)
    assert scan(path).names() == names
    assert [len(frame) for frame in scan(path)] == [len(lines) - 1]


def test_numbers_of_many_digits_are_those_that_are_written(tmp_path):
    """A last digit that is off takes a value out of a bin that holds it alone."""
    rng = np.random.default_rng(0)
    values = rng.random(12) * 10.0 ** rng.integers(-20, 20, 12)
    frame = pd.DataFrame({"x": rng.choice(values, 2000)})
    path = write_csv(tmp_path / "t.csv", ["x", *map(repr, frame["x"].tolist())])
    [read] = scan(path)
    assert read["x"].tolist() == frame["x"].tolist()
    assert compare(frame, scan(path)).to_frame()["kl"].tolist() == [0.0]


def test_one_long_line_in_a_long_file(tmp_path):
    lines = [f"{k},{k % 7}" for k in range(60_000)]
    lines[50_000] += ","
    path = write_csv(tmp_path / "t.csv", ["x,y", *lines])
    with pytest.raises(ValueError, match="line 50002: 3 fields"):
        Profile.fit(scan(path, rows=4096, columns=["y"]))


GARAGES = ["None", "Attached", "", "NA", "N/A", "null", "nan", "Detached"]


@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
def test_words_of_csv_that_mean_missing_elsewhere_are_texts(tmp_path, rows):
    path = write_csv(tmp_path / "t.csv", ["garage,only,year", *(f"{one},None,{k}" for k, one in enumerate(GARAGES))])
    held = pd.DataFrame({"garage": [one or None for one in GARAGES], "only": "None", "year": range(len(GARAGES))})
    assert Profile.fit(scan(path, rows=rows)).to_json() == Profile.fit(held).to_json()


@pytest.mark.part(2)
@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
@pytest.mark.parametrize("word", WORDS)
def test_words_of_csv_are_missing_beside_numbers_and_truth_values(tmp_path, word, rows):
    values = {
        "number": [word, 1.5, 2.0, word, 2.5],
        "whole": [2**60 + 1, word, 3, 3, 2**60],
        "flag": [True, False, word] * 2,
    }
    lines = [",".join(map(str, line)) for line in zip(*(one[:5] for one in values.values()), strict=True)]
    path = write_csv(tmp_path / "t.csv", ["number,whole,flag", *lines])
    profile = Profile.fit(scan(path, rows=rows))
    assert {name: one.kind for name, one in profile.cells.items()} == {
        "number": "number", "whole": "number", "flag": "boolean",
    }  # fmt: skip
    assert [one.counts[-1] for one in profile.tallies.values()] == [2, 1, 1]
    assert profile.cells["whole"].names == (3, 2**60, 2**60 + 1)
    assert profile.to_json() == Profile.fit(scan(path)).to_json()


@pytest.mark.parametrize("rows", [3, 1000])
def test_a_number_that_comes_late_decides(tmp_path, rows):
    words = write_csv(tmp_path / "a.csv", ["x,y", *["NA,NA"] * 6, "NA,a"])
    numbers = write_csv(tmp_path / "b.csv", ["x,y", *["NA,NA"] * 6, "1,a"])
    first, second = (Profile.fit(scan(path, rows=rows)) for path in (words, numbers))
    assert first.cells["x"].names == ("NA",)
    assert second.tallies["x"].counts.tolist() == [1, 0, 6]
    assert first.cells["y"].names == second.cells["y"].names == ("NA", "a")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_json_lines_without_lines(tmp_path, text):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    for work in (scan(path).names, lambda: Profile.fit(scan(path)), lambda: compare(BEFORE, scan(path))):
        with pytest.raises(ValueError, match=re.escape(f"{path}: cannot be read: no lines, and so no columns")):
            work()


UNSIGNED = {
    "missing": [2**64 - 1, None, 2**63],
    "a word": [2**64 - 1, "NA", 3],
    "below 0": [-1, 2**63],
    "both": [-1, None, 2**63, 2**64 - 1],
    "longer ones": [2**64, 2**63, None, -1],
    "a fraction": [2**64, 1.5],
    "an infinity": [2**70, math.inf, -5],
}


@pytest.mark.parametrize("case", UNSIGNED)
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_whole_numbers_that_64_bits_with_a_sign_do_not_hold(tmp_path, case, rows):
    """pandas reads some of these as texts, among which nothing is missing."""
    values = UNSIGNED[case]
    path = write_csv(tmp_path / "t.csv", ["x,y", *(f"{'' if one is None else one},1" for one in values)])
    numbers = pd.Series([None if isinstance(one, str) else one for one in values], dtype=object)
    expected = Profile.fit(pd.DataFrame({"x": numbers, "y": 1}))
    assert expected.cells["x"].kind == "number"
    assert Profile.fit(scan(path, rows=rows)).to_json() == expected.to_json()


@pytest.mark.parametrize(
    ("number", "more"), [(2**63, "x"), (2**63, "True"), (2**63, "1_0"), (2**64, "x"), (2**64, "True")]
)
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_long_whole_numbers_among_texts(tmp_path, number, more, rows):
    path = write_csv(tmp_path / "t.csv", ["x,y", f"{number},1", ",1", "-1,1", f"{more},1"])
    profile = Profile.fit(scan(path, rows=rows))
    assert {*profile.cells["x"].names} == {str(number), "-1", more}
    assert profile.tallies["x"].counts[-1] == 1


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_of_one_column_are_missing_values(tmp_path, suffix, rows, end):
    for lines in (["x", "1", "", "2", "", "", "3"], ["", " ", "x", "", "1", "2", "", '""', "3"]):
        path = tmp_path / f"t.{suffix}"
        with gzip.open(path, "wb") if suffix == "csv.gz" else path.open("wb") as file:
            file.write(end.join([*lines, ""]).encode())
        assert scan(path, rows=rows).names() == ["x"]
        tally = Profile.fit(scan(path, rows=rows)).tallies["x"]
        assert (tally.rows, tally.counts.tolist()) == (6, [1, 1, 1, 0, 3])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_what_other_libraries_write_for_a_missing_value(tmp_path, library):
    module = pytest.importorskip(library, reason="writes the file")
    for columns in (
        {"x": [1, None, 2, None, None, 3, None]},
        {"x": ["a", None, "b"]},
        {"x": [1, None], "y": [2, None]},
    ):
        path = tmp_path / "t.csv"
        if library == "polars":
            module.DataFrame(columns).write_csv(path)
        else:
            csv = pytest.importorskip("pyarrow.csv", reason="writes the file")
            csv.write_csv(module.table(columns), path)
        assert Profile.fit(scan(path)).to_json() == Profile.fit(pd.DataFrame(columns)).to_json()


@pytest.mark.parametrize("rule", ["auto", "quantile", "fd", 3])
@pytest.mark.parametrize("zeros", [[-0.0, 0.0], [0.0, -0.0]])
def test_negative_zeros_are_zeros(zeros, rule):
    frame = pd.DataFrame({"x": [*zeros * 40, 1.5, -1.5 if rule == "fd" else 2.5]})
    found = Profile.fit(frame, bins=rule).to_json()
    assert found == Profile.fit(pieces(frame, 1), bins=rule).to_json()
    assert "-0.0" not in found


@pytest.mark.parametrize("rows", [None, 3, 50])
def test_half_a_surrogate_pair_is_a_category(tmp_path, rows):
    records = [{"x": 0.5 * k, "text": "hi \ud83d" if k > 50 else "hi"} for k in range(60)]
    profile = Profile.fit(scan(json_lines(tmp_path / "t.jsonl", records), rows=rows))
    assert profile.problems == {}
    assert profile.cells["text"].names == ("hi", "hi \ud83d")
    assert profile.tallies["text"].counts.tolist() == [51, 9, 0, 0]


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("blank", ["\u00a0", "\x1c"])
def test_blanks_that_json_does_not_know(tmp_path, blank, rows):
    path = tmp_path / "t.jsonl"
    for line, text in (('{"a": 1}' + blank, "not one object"), (blank, "Expecting value, at character 1")):
        path.write_text('{"a": 1} \t\n' * 5 + line + "\n", "utf-8")
        with pytest.raises(ValueError, match=f"line 6: {text}"):
            Profile.fit(scan(path, rows=rows))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_that_is_written_anew(tmp_path, suffix):
    """What was found out about its types, and its keys, holds no longer."""
    path = tmp_path / f"t{suffix}"
    chunks = scan(path_of(path, {"x": [1, 2, 3, 4] * 3}), rows=5)
    assert [one.kind for one in Profile.fit(chunks).cells.values()] == ["number"]
    path_of(path, {"x": [*range(11), "b"], "y": ["c"] * 12})
    assert chunks.names() == ["x", "y"]
    assert Profile.fit(chunks) == Profile.fit(scan(path))


def path_of(path, columns):
    if path.suffix == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    else:
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    return path
