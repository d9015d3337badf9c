"""Tables in pieces and in files give what the whole table gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare, fitting, scan


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
    monkeypatch.setattr(fitting, "SAMPLE", 1000)  # the sample is thinned while the pieces come
    if size == 1 and bins != "auto":
        pytest.skip("slow, and the same")
    before, after = (BEFORE.head(300), AFTER.head(200)) if size == 1 else (BEFORE, AFTER)
    whole = compare(before, after, bins=bins)
    cut = compare(pieces(before, size), pieces(after, size), bins=bins)
    assert cut.profile == whole.profile
    assert cut.to_json() == whole.to_json()


def test_the_sample_depends_on_the_places_alone():
    for rows in (10, fitting.SAMPLE, fitting.SAMPLE + 1, 10 * fitting.SAMPLE):
        level = fitting.level_of(rows)
        at = fitting.places(0, rows, level)
        assert 0.4 * fitting.SAMPLE < at.size <= 1.1 * fitting.SAMPLE or at.size == rows
        cut = [fitting.places(a, b, level) for a, b in ((0, 3), (3, rows // 2), (rows // 2, rows))]
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
    assert lost.problems == {"x": "is not in every piece"}


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
