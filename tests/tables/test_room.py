"""Where the names of all columns do not fit, some columns are put off to another pass, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("pyarrow", reason="words lie in its layout")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.kernels import threads
from klnumba.tables import Chunks, Profile, json_lines, readers, room, scan, text_files, words

ROWS = 6000


def table():
    draws = np.random.default_rng(0)
    names = {f"name {k}": np.char.add(f"{k} ", draws.integers(0, 4000, ROWS).astype(str)) for k in range(5)}
    mixed = [1.5 if one < 0.1 else f"text {one:.3f}" for one in draws.random(ROWS)]
    return pd.DataFrame({
        "number": draws.normal(size=ROWS), "code": draws.integers(0, 10**6, ROWS), **names,
        "few": draws.choice([*"abc"], ROWS), "mixed": pd.Series(mixed, dtype=object), "w": draws.integers(0, 3, ROWS),
    })  # fmt: skip


FRAME = table()


class Passes:
    """The frame in pieces, and how often it was read."""

    def __init__(self, frame, size=700):
        self.frame, self.size, self.count = frame, size, 0

    def __call__(self):
        self.count += 1
        return [self.frame.iloc[k : k + self.size] for k in range(0, len(self.frame), self.size)]


@pytest.fixture
def small(monkeypatch):
    """Room for one column of different values."""
    monkeypatch.setattr(room, "MOST", 1)
    monkeypatch.setattr(room, "SMALL", 1 << 16)


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("options", "large"),
    [
        ({}, 6),
        ({"weights": "w"}, 6),
        ({"columns": ["name 3", "number", "name 1"]}, 2),
        ({"bins": {"code": "category", "number": 7}}, 7),
    ],
)
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.usefixtures("small")
def test_passes_change_nothing(options, large, workers, monkeypatch):
    monkeypatch.setattr(threads, "choose", lambda wanted, cells: workers)
    monkeypatch.setattr(words, "LARGE", 2048)  # so that tables wait for each other
    made = Passes(FRAME)
    found = Profile.fit(Chunks(made), **options)
    assert found == Profile.fit(FRAME, **options)
    assert [*found.cells] == [*Profile.fit(FRAME, **options).cells]
    assert made.count == large + 1  # the last to count


def test_one_pass_where_there_is_room():
    made = Passes(FRAME)
    Profile.fit(Chunks(made))
    assert made.count == 2  # one to fit, one to count


@pytest.mark.usefixtures("small")
def test_problems_of_columns_that_were_put_off():
    """Such as one that a later piece lacks, or has with another kind of values."""
    good = FRAME[["name 0", "name 1", "name 2"]]
    pieces = [good, good.drop(columns="name 2"), good.assign(**{"name 1": 1.5, "new": "a"})]
    found = Profile.fit(Chunks(lambda: pieces))
    assert [*found.cells] == ["name 0"]
    assert found.problems == {
        "name 1": "holds number values after category values",
        "name 2": "is not in every piece",
        "new": "is not in every piece",
    }


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.usefixtures("small")
def test_files_are_surveyed_once(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"t.{suffix}"
    frame = FRAME.drop(columns="number").assign(mixed=["1.5"] * 3000 + ["text"] * 3000)
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    surveys, true = [], text_files.Untyped._surveyed
    monkeypatch.setattr(text_files.Untyped, "_surveyed", lambda *one: surveys.append(1) or true(*one))
    chunks = scan(path, rows=700)
    assert Profile.fit(chunks) == Profile.fit(frame)
    assert len(surveys) == (suffix != "parquet")


@pytest.mark.usefixtures("small")
def test_a_pass_reads_few_more_columns_than_there_is_room_for(tmp_path, monkeypatch):
    names = [f"name {k}" for k in range(5)]
    FRAME[names].to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    made, true = [], json_lines._series
    monkeypatch.setattr(json_lines, "_series", lambda *one: made.append(1) or true(*one))
    Profile.fit(scan(tmp_path / "t.jsonl", rows=ROWS // 2))
    passes = 5 + 5 + 2 + 2 + 2 + 1 + 5  # to see the types, to fit all, two a time as there is room for one, to count
    assert len(made) == 2 * passes


@pytest.mark.parametrize(("columns", "rows"), [(1, 262_144), (24, 10_922), (2000, 4096), (0, 262_144)])
def test_wide_files_have_pieces_of_fewer_rows(columns, rows):
    assert readers.rows_of(None, columns) == rows
    assert readers.rows_of(77, columns) == 77
