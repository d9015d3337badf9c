"""Files that keep their columns apart are read some columns at a time, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pyarrow", reason="writes and reads the files")

import pyarrow as pa
from pyarrow import feather, parquet

from klnumba.tables import Profile, compare, readers, scan

WRITE = {".parquet": parquet.write_table, ".feather": feather.write_feather}


def table(rows, seed, **more):
    draws = np.random.default_rng(seed)
    held = {"number": draws.gamma(2.0, size=rows), "few": draws.integers(0, 5, rows)}
    held |= {"wide": draws.integers(0, 10**6, rows), "word": draws.choice([*"abc"], rows)}
    return pa.table(held | {"flag": draws.random(rows) < 0.3} | more)


BEFORE = table(5000, 0, gone=np.ones(5000), pair=[{"a": 1}] * 5000)
AFTER = table(4000, 1, new=[*"ab"] * 2000, wide=[*"cd"] * 2000)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": "few"},
        {"bins": {"number": [0.0, 1.0, 2.0], "wide": "doane"}},
        {"columns": ["word", "number", "wide"]},
    ],
)
def test_columns_that_are_read_some_at_a_time(suffix, options, tmp_path, monkeypatch):
    monkeypatch.setattr(readers.Parquet, "width", 2)
    monkeypatch.setattr(readers.Feather, "width", 2)
    for name, frame in (("before", BEFORE), ("after", AFTER)):
        WRITE[suffix](frame, tmp_path / (name + suffix))
    whole = compare(BEFORE, AFTER, **options)
    cut = compare(scan(tmp_path / f"before{suffix}", rows=999), scan(tmp_path / f"after{suffix}"), **options)
    assert cut.to_json() == whole.to_json()
    assert cut.profile.to_json() == whole.profile.to_json()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bins": {"no": 3}}, "bins: 'no' is not in reference"),
        ({"bins": {"word": 3}}, "bins: column 'word' holds categories"),
        ({"columns": ["word", "no"]}, "columns: 'no' is not in reference"),
        ({"weights": "no"}, "weights: 'no' is not in reference"),
    ],
)
def test_wrong_names_where_columns_are_read_some_at_a_time(options, text, tmp_path, monkeypatch):
    monkeypatch.setattr(readers.Parquet, "width", 1)
    WRITE[".parquet"](BEFORE, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=text):
        Profile.fit(scan(tmp_path / "t.parquet"), **options)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_progress_counts_every_column_once(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(readers.Parquet, "width", 2)
    monkeypatch.setattr(readers.Feather, "width", 2)
    path = tmp_path / f"t{suffix}"
    WRITE[suffix](BEFORE.drop(["pair"]), path)
    seen: list[tuple[int, int]] = []
    profile = Profile.fit(scan(path), progress=lambda done, total: seen.append((done, total)))
    assert len(profile.cells) == 6
    assert seen == [(k, 6) for k in range(1, 7)]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("weights", [None, "gone"])
def test_an_update_reads_what_it_counts_alone(suffix, weights, tmp_path, monkeypatch):
    path = tmp_path / f"t{suffix}"
    WRITE[suffix](BEFORE, path)
    reader = readers.Parquet if suffix == ".parquet" else readers.Feather
    read, true = [], reader.pieces
    monkeypatch.setattr(reader, "pieces", lambda self, columns: read.append(columns) or true(self, columns))
    profile = Profile.fit(scan(path), columns=["word", "number"], weights=weights)
    twice = profile.empty().update(scan(path), weights=weights).update(BEFORE, weights=weights)
    assert twice == profile + profile
    assert {name for columns in read for name in columns} == {"word", "number"} | ({weights} if weights else set())
    with pytest.raises(ValueError, match="batch: column 'flag' is not in batch"):
        Profile.fit(BEFORE, columns=["word", "flag"]).update(scan(path, columns=["word"]))
