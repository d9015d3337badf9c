"""`score`: the values of all rows, in any blocks, from any sources, and what is told of them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from klnumba.metrics import RunningStatistics
from klnumba.reduction import statistics
from klnumba.scoring import InputError, Interrupted, blocks, cache_reference, memory, outputs
from tests.scoring import samples
from tests.scoring.samples import CELLS, LOGITS, OTHERS, ROWS

ALL = ("kl", "reverse_kl", "js", "jeffreys", "entropy_p", "entropy_q", "cross_entropy", "argmax_agree", "max_log_ratio")


@pytest.fixture(autouse=True)
def few_rows_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 7 * 2 * CELLS * 4)


def unrounded(p: np.ndarray, q: np.ndarray, kind: str = "logit", stats=("kl",), where=None, **options) -> dict:
    """The values of rows, not rounded to float32, as the statistics take them."""
    settings = {"normalize": True, "base": None, "temperature": 1.0} | options
    return statistics(
        p, q, stats, kind, -1, **settings, where=where, keepdims=False, dtype=None, count=None, invalid="nan",
        unrounded=True,
    )  # fmt: skip


def state_of(values: np.ndarray) -> dict:
    statistics = RunningStatistics(thresholds=(0.1, 1.0))
    statistics.update(values)
    return statistics.state_dict()


def same_state(one: dict, other: dict) -> bool:
    arrays = [name for name, item in one.items() if isinstance(item, np.ndarray)]
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in arrays)


@pytest.mark.parametrize("maker", samples.MAKERS, ids=lambda maker: maker.__name__)
def test_any_source_gives_the_values_of_the_whole(maker, tmp_path: Path) -> None:
    pytest.importorskip(samples.NEEDS.get(maker, "numpy"), reason="the library of this format")
    for k, kind in enumerate(("logit", "prob")):
        folder = tmp_path / kind
        folder.mkdir()
        p, q = (np.exp(x) if kind == "prob" else x for x in (LOGITS, OTHERS))
        item = maker(folder, p)
        wide = maker in (samples.csv, samples.csv_shards)
        left = p.astype(np.float64) if wide else p
        expected = kl.kl_divergence(left, q, kind=kind)
        np.save(folder / "q.npy.kept", q)
        sides = (item, q) if k == 0 else (item, str(folder / "q.npy.kept.npy"))
        report = kl.score(*sides, kind=kind, output=folder / "out.npy")
        np.testing.assert_array_equal(np.load(folder / "out.npy"), expected)
        assert same_state(report.states["kl"].state_dict(), state_of(unrounded(left, q, kind)["kl"]))
        assert report.rows == ROWS
        assert not list(folder.glob("*.unfinished"))


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 20])
def test_the_size_of_a_block_changes_no_bit(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", size * CELLS * 8)
    expected = kl.row_statistics(LOGITS, OTHERS, stats=ALL, kind="logit", base=2.0, temperature=1.7)
    exact = unrounded(LOGITS, OTHERS, stats=ALL, base=2.0, temperature=1.7)
    report = kl.score(LOGITS, OTHERS, stats=ALL, kind="logit", base=2.0, temperature=1.7, output=tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy")
    assert found.dtype.names == ALL
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)
        assert same_state(report.states[name].state_dict(), state_of(exact[name]))
    assert report.unit == "bits"


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_values_are_rounded_where_they_are_written_and_nowhere_else(dtype, tmp_path: Path) -> None:
    """What is told of them is what an accumulator tells."""
    p, q, place = LOGITS.astype(dtype), OTHERS.astype(dtype), tmp_path / "values.npy"
    metric = kl.KLDivergence(kind="logit", reduction="mean")
    metric.update(p, q)
    assert kl.score(p, q, kind="logit", output=place)["kl"].mean == metric.compute()
    np.testing.assert_array_equal(np.load(place), kl.kl_divergence(p, q, kind="logit"), strict=True)


def test_values_beyond_the_range_in_which_they_are_written(tmp_path: Path) -> None:
    place = tmp_path / "values.npy"
    wide, close = np.array([[3e38, -3e38]], np.float32), np.array([[0.0, -120.0], [0.0, -120.0001]], np.float32)
    report = kl.score(wide, -wide, kind="logit", output=place)
    assert report["kl"].mean == float(np.float32(3e38)) * 2
    assert np.load(place) == [math.inf]
    least = kl.score(close[:1], close[1:], kind="logit")["kl"]
    assert (least.zero, least.inf) == (0, 0)
    assert 3e-61 < least.mean < 4e-61


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_outputs(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet files")
    monkeypatch.setattr(blocks, "KEPT", 100)  # many parts
    monkeypatch.setattr(outputs, "GROUP", 30)
    target = tmp_path / f"out.{suffix}"
    kl.score(LOGITS, OTHERS, kind="logit", stats=("kl", "argmax_agree"), output=target)
    expected = kl.row_statistics(LOGITS, OTHERS, kind="logit", stats=("kl", "argmax_agree"))
    if suffix == "npy":
        found = np.load(target)
    elif suffix == "csv":
        lines = np.genfromtxt(target, delimiter=",", names=True)
        found = {"kl": lines["kl"].astype(np.float32), "argmax_agree": lines["argmax_agree"].astype(bool)}
    else:
        import pyarrow.parquet as parquet

        file = parquet.ParquetFile(target)
        assert [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] == [30, 30, 23]
        found = {name: column.to_numpy() for name, column in zip(expected, file.read().columns, strict=True)}
        file.close()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_shapes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for p, q, axis in (
        ((6, 5, 4), (6, 5, 4), -1),
        ((6, 5, 4), (5, 4), -1),
        ((6, 5, 4), (4,), -1),
        ((4,), (6, 5, 4), -1),
        ((6, 1, 4), (6, 5, 4), -1),
        ((1, 5, 4), (6, 5, 4), -1),
        ((6, 5, 4), (6, 5, 4), 1),
        ((6, 5, 4), (6, 5, 4), (1, 2)),
        ((6, 5, 4), (6, 5, 4), 0),
        ((6, 5, 4), (6, 5, 4), (0, 2)),
        ((6, 5), (6, 5), None),
        ((6, 5), (6, 5), 0),
        ((6, 5), (1, 5), 1),
        ((7,), (7,), -1),
        ((), (), -1),
        ((0, 5), (0, 5), -1),
        ((0, 5), (5,), -1),
        ((2, 3, 0), (2, 3, 0), -1),
    ):
        left, right = (rng.gamma(1.0, size=shape) for shape in (p, q))
        np.save(tmp_path / "p.npy", left)
        np.save(tmp_path / "q.npy", np.asfortranarray(right))
        expected = np.atleast_1d(kl.kl_divergence(left, right, axis=axis))
        for sides in ((left, right), (tmp_path / "p.npy", tmp_path / "q.npy"), (tmp_path / "p.npy", right)):
            report = kl.score(*sides, axis=axis, output=tmp_path / "out.npy")
            np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
            assert report.rows == expected.size


def test_masks(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    cells = rng.random(LOGITS.shape) < 0.8
    cells[[3, 40]] = False
    tokens = np.arange(CELLS) < 9
    for mask, rows in ((cells, ~np.isin(np.arange(ROWS), [3, 40])), (tokens, np.ones(ROWS, bool))):
        np.save(tmp_path / "mask.npy", mask.astype(np.uint8))
        expected = kl.kl_divergence(LOGITS, OTHERS, kind="logit", where=mask)
        exact = unrounded(LOGITS, OTHERS, where=mask)["kl"]
        for given in (mask, tmp_path / "mask.npy"):
            report = kl.score(LOGITS, OTHERS, kind="logit", mask=given, output=tmp_path / "out.npy")
            np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
            assert same_state(report.states["kl"].state_dict(), state_of(exact[rows]))
            assert (report.rows, report.masked_rows) == (ROWS, ROWS - rows.sum())
            assert report.first_invalid is None
    whole_rows = np.arange(ROWS)[:, None] % 2 == 0
    report = kl.score(LOGITS, OTHERS, kind="logit", mask=whole_rows)
    assert report.masked_rows == ROWS // 2
    with pytest.raises(InputError, match="mask: a mask holds truth values, or 0 and 1"):
        kl.score(LOGITS, OTHERS, mask=np.full(CELLS, 2))


def test_padded_vocabularies() -> None:
    wide = np.concatenate([OTHERS, np.full((ROWS, 5), 9.0, np.float32)], axis=1)
    tall = np.concatenate([LOGITS, np.full((ROWS, 2), np.nan, np.float32)], axis=1)
    expected = state_of(unrounded(LOGITS, OTHERS)["kl"])
    report = kl.score(tall, wide, kind="logit", valid_width=CELLS)
    assert same_state(report.states["kl"].state_dict(), expected)
    mask = np.ones(CELLS + 7, bool)
    report = kl.score(tall, wide, kind="logit", valid_width=CELLS, mask=mask)
    assert same_state(report.states["kl"].state_dict(), expected)
    with pytest.raises(InputError, match="valid_width: 14, but p has rows of 13 cells"):
        kl.score(tall, wide, valid_width=14)
    with pytest.raises(InputError, match="last axis"):
        kl.score(tall, wide, valid_width=5, axis=0)


def test_rows_that_are_no_distribution_are_counted_and_named(tmp_path: Path) -> None:
    p, q = np.exp(LOGITS), np.exp(OTHERS)
    q[17, 4], q[30], p[31], q[50, 2], p[60, 1] = np.nan, 0.0, 0.0, 0.0, -1.0
    np.save(tmp_path / "q.npy", q)
    report = kl.score(p, tmp_path / "q.npy", stats=("kl", "entropy_p"))
    summary = report["kl"]
    assert (summary.rows, summary.nan, summary.inf) == (ROWS, 4, 1)
    assert report["entropy_p"].nan == 2
    assert report.first_invalid == f"{tmp_path}/q.npy: row 17 of shape (11,), cell 4 is NaN (nan)"
    with pytest.raises(InputError, match=r"q\.npy: row 17 of shape \(11,\), cell 4 is NaN"):
        kl.score(p, tmp_path / "q.npy", invalid="raise", output=tmp_path / "out.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["q.npy"]
    report = kl.score(p.reshape(83, 1, 11), q.reshape(83, 1, 11))
    assert report.first_invalid == "q: row (17, 0) of shape (11,), cell 4 is NaN (nan)"


def test_refusals(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "long.csv", np.ones((90, CELLS)), delimiter=",")
    np.savetxt(tmp_path / "short.csv", np.ones((80, CELLS)), delimiter=",")
    many = (LOGITS[:10] for _ in range(9))
    for arguments, words in (
        ({"p": LOGITS[:5], "q": OTHERS}, r"p \(5, 11\) and q \(83, 11\): 5 and 83 rows"),
        ({"p": LOGITS, "q": OTHERS[:5]}, r"p \(83, 11\) and q \(5, 11\): 83 and 5 rows"),
        ({"p": LOGITS[:, :5], "q": OTHERS}, r"shapes p \(83, 5\) and q \(83, 11\) do not go together"),
        ({"p": LOGITS, "q": tmp_path / "long.csv"}, r"long\.csv has more than 83 of shape \(11,\), the others have 83"),
        ({"p": LOGITS, "q": tmp_path / "short.csv"}, r"short\.csv has 80 of shape|short\.csv has 80\b"),
        ({"p": tmp_path / "short.csv", "q": tmp_path / "long.csv"}, "differing numbers of rows"),
        ({"p": LOGITS, "q": many}, "more than 83|differing"),
        ({"p": LOGITS, "q": OTHERS.astype(str)}, "dtype <U32 is not a real number type"),
        ({"p": LOGITS, "q": OTHERS, "kind": "odds"}, "kind: one of"),
        ({"p": LOGITS, "q": OTHERS, "stats": ("kl", "odd")}, "stats: 'odd' is none of"),
        ({"p": LOGITS, "q": OTHERS, "stats": ()}, "stats: one name or more"),
        ({"p": LOGITS, "q": OTHERS, "stats": ("kl", "kl")}, "stats: one name or more, each once"),
        ({"p": LOGITS, "q": OTHERS, "base": 1}, "base: a positive"),
        ({"p": LOGITS, "q": OTHERS, "temperature": 2.0}, "temperature: only logits"),
        ({"p": LOGITS, "q": OTHERS, "quantile_error": 2.0}, "quantile_error"),
        ({"p": LOGITS, "q": OTHERS, "thresholds": (np.nan,)}, "thresholds"),
        ({"p": LOGITS, "q": OTHERS, "threads": 0}, "threads: a positive integer"),
        ({"p": LOGITS, "q": OTHERS, "memory": "much"}, "memory: a whole number of bytes, or text"),
        ({"p": LOGITS, "q": OTHERS, "memory": 1.5}, "memory: a whole number of bytes, or text .*, not 1.5"),
        ({"p": LOGITS, "q": OTHERS, "memory": "1.5"}, "memory: a whole number of bytes, or text .*, not '1.5'"),
        ({"p": LOGITS, "q": OTHERS, "memory": True}, "memory: a whole number of bytes, or text .*, not True"),
        ({"p": LOGITS, "q": OTHERS, "memory": -(10**5000)}, "memory: at least 1 byte, not one of thousands of digits"),
        ({"p": LOGITS, "q": OTHERS, "memory": 100}, "memory: 100 bytes more than the process holds is too little"),
        ({"p": LOGITS, "q": OTHERS, "output": tmp_path / "out.txt"}, "unknown suffix"),
        ({"p": LOGITS, "q": OTHERS, "thresholds": "a"}, "thresholds: numbers, not 'a'"),
        ({"p": LOGITS, "q": OTHERS, "base": 10**400}, r"base: a number in the range of float64, not 10+\.\.\.0+$"),
        ({"p": LOGITS, "q": OTHERS, "base": 10**5000}, "base: a number in the range of float64"),
        ({"p": LOGITS, "q": OTHERS, "thresholds": [10**400]}, r"thresholds: numbers, not \[10+\.\.\.0+\]$"),
        ({"p": LOGITS, "q": OTHERS, "quantile_error": 10**400}, "quantile_error: "),
        ({"p": LOGITS, "q": OTHERS, "stop": 5}, "stop: a function without arguments, not 5"),
        ({"p": LOGITS, "q": OTHERS, "progress": "yes"}, "progress: True, False or a function, not 'yes'"),
        ({"p": LOGITS, "q": OTHERS, "progress": 5}, "progress: True, False or a function, not 5"),
        ({"p": b"p.npy", "q": OTHERS}, "p: a path, an array or an iterator of arrays, not bytes"),
        ({"p": LOGITS, "q": bytearray(b"q.npy")}, "q: a path, an array or an iterator of arrays, not bytearray"),
        ({"p": {"a": LOGITS}, "q": OTHERS}, "p: a path, an array or an iterator of arrays, not dict"),
        ({"p": LOGITS, "q": OTHERS, "checkpoint_every": -1}, "checkpoint_every: seconds, 0 or more, not -1"),
        ({"p": LOGITS, "q": OTHERS, "checkpoint_every": math.nan}, "checkpoint_every: seconds, 0 or more, not nan"),
        ({"p": LOGITS, "q": OTHERS, "checkpoint_every": "5"}, "checkpoint_every: seconds, 0 or more, not '5'"),
        ({"p": LOGITS, "q": OTHERS, "checkpoint_every": 10**400}, "checkpoint_every: seconds, 0 or more, not 1000"),
        ({"p": LOGITS, "q": OTHERS, "valid_width": 2.5}, "valid_width: a positive integer, not 2.5"),
        ({"p": LOGITS, "q": OTHERS, "axis": 5}, "axis: axis 5 is out of bounds"),
        ({"p": LOGITS, "q": OTHERS, "axis": (1, 1)}, "axis: .* names an axis twice"),
        ({"p": LOGITS, "q": OTHERS, "output": "x.csv", "report": "x.csv"}, "both the output and the report"),
        ({"p": LOGITS, "q": OTHERS, "report": tmp_path / "no" / "out.json"}, "no such folder"),
        ({"p": LOGITS, "q": OTHERS, "report": tmp_path / "r.txt"}, r"report: a .json file, not .*r\.txt"),
        ({"p": LOGITS, "q": OTHERS, "report": tmp_path / "-"}, "report: a .json file, not .*-$"),
        ({"p": LOGITS, "q": OTHERS, "resume": True}, "resume: without an output"),
        ({"p": tmp_path / "no.npy", "q": OTHERS}, "no such file"),
    ):
        with pytest.raises((InputError, TypeError), match=words):
            kl.score(**arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "short.csv"]


def test_the_limits_of_memory_are_read_as_written() -> None:
    sizes = {"512MiB": 2**29, "2GB": 2 * 10**9, "1.5 GiB": 3 * 2**29, "64 kb": 64_000, "123": 123, "9B": 9}
    for text, size in sizes.items():
        assert memory.parse(text) == size
    assert memory.parse(5) == memory.parse(np.int64(5)) == 5
    assert memory.parse(10**400) == memory.parse("9" * 400 + "TB") == sys.maxsize  # no limit
    for text in ("", "1 G", "-1MB", "1XB", "0", True, 1.5, 2.0, "1.5", "1.5B", None, b"1GiB"):
        with pytest.raises(InputError, match="memory"):
            memory.parse(text)


@pytest.mark.parametrize("stats", [("kl",), ("kl", "js")])
@pytest.mark.parametrize("axis", [None, (0, 1, 2), (1, 2), 0, -1])
def test_an_output_has_the_shape_of_the_statistics(axis, stats, tmp_path: Path) -> None:
    p, q = np.random.default_rng(5).random((2, 3, 2, 4))
    wanted = kl.row_statistics(p, q, axis=axis, stats=stats)
    report = kl.score(p, q, axis=axis, stats=stats, output=tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy")
    assert report.rows == found.size
    for name in stats:
        one = found if len(stats) == 1 else found[name]
        assert one.shape == np.shape(wanted[name])
        np.testing.assert_array_equal(one, wanted[name])
    kl.score(p, q, axis=axis, stats=stats, output=tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + found.size


def test_what_has_to_be_held_whole_is_refused_when_it_is_too_large(tmp_path: Path) -> None:
    batches = (np.zeros((1000, 1000)) for _ in range(100))
    with pytest.raises(InputError, match=r"p: has to be held as a whole, .* can be read only once"):
        kl.score(batches, np.ones((100_000, 1)), axis=0, memory="100MiB")


SHAPES = [((71, 9), 1), ((71, 3, 4), 1), ((71, 2, 9), 2), ((71, 2, 3, 4), 2)]


def held(folder: Path, rows: np.ndarray) -> np.ndarray:
    return rows


def strided(folder: Path, rows: np.ndarray) -> np.ndarray:
    return np.repeat(rows, 2, axis=0)[::2]


IN_STRIPS = [
    samples.npy, samples.fortran_npy, samples.npz, samples.deflated_npz, samples.safetensors, samples.zarr,
    samples.folder_of_shards, samples.memory_map, samples.csv_shards, samples.batches, held, strided,
]  # fmt: skip


@pytest.mark.parametrize("made", IN_STRIPS, ids=lambda made: made.__name__)
@pytest.mark.parametrize(("shape", "lead"), SHAPES, ids=str)
def test_rows_along_the_first_axes(shape, lead, made, tmp_path, monkeypatch):
    """They are read in strips, whatever holds them, and come to the same bits."""
    if made in samples.NEEDS:
        pytest.importorskip(samples.NEEDS[made], reason=f"{samples.NEEDS[made]} is not installed")
    if made is samples.csv_shards and len(shape) > 2:
        pytest.skip("a table has two axes")
    rng, axis = np.random.default_rng(7), tuple(range(lead))
    p, q = rng.gamma(1.0, size=(2, *shape))
    monkeypatch.setattr("klnumba.scoring.turned.WINDOW", 3 * p[0].nbytes)
    monkeypatch.setattr("klnumba.scoring.blocks.BLOCK", 5 * p[..., 0].nbytes)
    folders = tmp_path / "p", tmp_path / "q"
    for folder in folders:
        folder.mkdir()
    sides = [made(folder, rows) for folder, rows in zip(folders, (p, q), strict=True)]
    found = kl.score(*sides, axis=axis, output=tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), kl.kl_divergence(p, q, axis=axis))
    assert found.rows == math.prod(shape[lead:])


@pytest.mark.parametrize(("left", "right"), [((70, 9), (1, 9)), ((70, 9), (70, 1)), ((70, 9), (9,)), ((1, 9), (70, 9))])
def test_columns_that_broadcast(left, right, tmp_path):
    rng = np.random.default_rng(8)
    p, q = rng.gamma(1.0, size=left), rng.gamma(1.0, size=right)
    mask = rng.random((70, 1)) < 0.8
    np.save(tmp_path / "p.npy", p)
    kl.score(tmp_path / "p.npy", q, axis=0, mask=mask, output=tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), kl.kl_divergence(p, q, axis=0, where=mask))


def test_a_column_that_is_no_distribution(tmp_path):
    p = np.ones((70, 9))
    p[33, 4] = -1.0
    np.save(tmp_path / "p.npy", p)
    report = kl.score(tmp_path / "p.npy", np.ones((70, 9)), axis=0)
    assert report.first_invalid == f"{tmp_path}/p.npy: row 4 of shape (70,), cell 33 is negative (-1.0)"


def test_report(tmp_path: Path) -> None:
    report = kl.score(LOGITS, OTHERS, kind="logit", report=tmp_path / "report.json", thresholds=(0.05,))
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept == json.loads(report.to_json())
    values = unrounded(LOGITS, OTHERS)["kl"]
    told = kept["statistics"]["kl"]
    assert told["mean"] == pytest.approx(values.mean(), rel=1e-15)
    assert told["max"] == values.max()
    assert told["above"] == {"0.05": (values > 0.05).mean()}
    assert kept["p"] == "p"
    assert kept["rows"] == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_progress_is_told_and_stop_is_asked() -> None:
    seen = []
    kl.score(LOGITS, OTHERS, kind="logit", progress=lambda *what: seen.append(what))
    assert [rows for rows, _, _ in seen] == [1, *range(8, ROWS, 7), ROWS]
    assert seen[-1] == (ROWS, ROWS, ROWS * CELLS * 8)
    with pytest.raises(Interrupted, match="interrupted after 1 rows; without an output or a report nothing is kept"):
        kl.score(LOGITS, OTHERS, kind="logit", stop=lambda: True)


def test_progress_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    kl.score(LOGITS, OTHERS, kind="logit", progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("klnumba: 83 of 83 rows, ")
    assert shown.err.count("\n") == 1
    kl.score(LOGITS, OTHERS, kind="logit", progress=None)
    assert capsys.readouterr().err == ""


def test_an_input_is_never_replaced(tmp_path: Path) -> None:
    samples.folder_of_shards(tmp_path, LOGITS)
    with pytest.raises(InputError, match="is an input, and would be replaced"):
        kl.score(tmp_path / "shards", OTHERS, output=tmp_path / "shards" / "part-3.npy")


def test_nothing_is_written_into_a_store_that_is_read(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="Zarr stores")
    zarr.create_array(tmp_path / "p.zarr", data=LOGITS)
    before = (tmp_path / "p.zarr" / "zarr.json").read_bytes()
    for settings in ({"report": tmp_path / "p.zarr" / "zarr.json"}, {"output": tmp_path / "p.zarr" / "kl.npy"}):
        with pytest.raises(InputError, match=r"p\.zarr.*: would lie in .*p\.zarr, which is an input"):
            kl.score(tmp_path / "p.zarr", OTHERS, kind="logit", **settings)
    assert (tmp_path / "p.zarr" / "zarr.json").read_bytes() == before


def test_columns_that_differ(tmp_path: Path) -> None:
    samples.csv(tmp_path, LOGITS)
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "other.csv").write_text(text.replace("b,c", "c,b", 1))
    with pytest.raises(InputError, match="the columns differ: column 1 is 'b' in P and 'c' in Q"):
        kl.score(tmp_path / "rows.csv", tmp_path / "other.csv")


def test_columns_of_a_mask_and_of_a_width(tmp_path: Path) -> None:
    """Cells would be left out, or compared, that are others."""
    samples.csv(tmp_path, LOGITS)
    text = (tmp_path / "rows.csv").read_text()
    names = text.partition("\n")[0].split(",")
    (tmp_path / "wide.csv").write_text("".join(f"{line},{k or 'pad'}\n" for k, line in enumerate(text.splitlines())))
    (tmp_path / "wrong.csv").write_text(text.replace("b,c", "c,b", 1))
    cells = ["0," * (len(names) - 1) + "1"] * len(LOGITS)
    (tmp_path / "mask.csv").write_text("\n".join([",".join(names), *cells]))
    (tmp_path / "turned.csv").write_text("\n".join([",".join(names[::-1]), *cells]))
    (tmp_path / "tokens.csv").write_text("\n".join(["kept", *("1" for _ in LOGITS)]))
    p, q = tmp_path / "rows.csv", tmp_path / "wide.csv"
    for settings in ({"mask": tmp_path / "mask.csv"}, {"mask": tmp_path / "tokens.csv"}, {}):
        assert kl.score(p, q, valid_width=len(names), kind="logit", **settings).rows == len(LOGITS)
    for one, side in ((p, "P"), (LOGITS, "Q")):
        with pytest.raises(InputError, match=f"column 0 is 'a' in {side} and '{names[-1]}' in the mask"):
            kl.score(one, p, kind="logit", mask=tmp_path / "turned.csv")
    with pytest.raises(InputError, match="the columns differ: column 1 is 'c' in P and 'b' in Q"):
        kl.score(tmp_path / "wrong.csv", q, kind="logit", valid_width=len(names))
    reference = cache_reference(LOGITS, tmp_path / "ref.safetensors", kind="logit")
    with pytest.raises(InputError, match="the columns differ: column 0 is 'a' in Q"):
        kl.score(reference, p, kind="prob", mask=tmp_path / "turned.csv")


def test_statistics_that_are_no_names() -> None:
    with pytest.raises(InputError, match="stats: names of statistics, not 3"):
        kl.score(LOGITS, OTHERS, kind="logit", stats=3)


def test_one_iterator_in_two_places() -> None:
    batches = iter([LOGITS, OTHERS])
    with pytest.raises(InputError, match="p and q: one iterator in two places"):
        kl.score(batches, batches, kind="logit")
    assert len(list(batches)) == 2


def test_tables_whose_labels_are_in_another_order(tmp_path: Path) -> None:
    """Functions of arrays match them; here they would be taken by their places."""
    pd = pytest.importorskip("pandas", reason="tables of pandas")
    names = [f"word {k}" for k in range(LOGITS.shape[1])]
    p, q = pd.DataFrame(LOGITS, columns=names), pd.DataFrame(OTHERS, columns=names)
    whole = kl.score(LOGITS, OTHERS, kind="logit")["kl"]
    assert kl.score(p, q, kind="logit")["kl"] == kl.score(p, OTHERS, kind="logit")["kl"] == whole
    assert kl.score(p, q[:1], kind="logit").rows == len(p)
    mask = pd.DataFrame(np.ones(p.shape, bool), columns=names)
    for arguments, words in (
        ((p, q[names[::-1]]), "p and q"), ((p, q[::-1]), "p and q"), ((p, q, mask[::-1]), "p and mask"),
        ((p.loc[0], q.loc[0, names[::-1]]), "p and q"), ((p, q.loc[0, names[::-1]]), "p and q"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"{words}: their labels differ, or are in another order"):
            kl.score(*arguments[:2], kind="logit", mask=arguments[2] if len(arguments) > 2 else None)
    q.to_csv(tmp_path / "q.csv", index=False)
    with pytest.raises(InputError, match="the columns differ: column 0 is 'word 10' in P and 'word 0' in Q"):
        kl.score(p[names[::-1]], tmp_path / "q.csv", kind="logit")


@pytest.mark.parametrize(
    ("dtypes", "missing"),
    [
        (["Int64"] * 3, False), (["Int64"] * 3, True), (["Float64"] * 3, True), (["Float32"] * 3, False),
        (["double[pyarrow]"] * 3, False), (["double[pyarrow]"] * 3, True), (["int64[pyarrow]"] * 3, True),
        (["Int64", "float64", "int8"], False), (["bool", "float64", "float64"], False),
        (["boolean", "Float64", "uint8"], True),
    ],
)  # fmt: skip
def test_tables_of_any_dtypes_of_numbers(dtypes: list[str], missing: bool) -> None:
    """As the functions of arrays take them: what is missing is NaN."""
    pd = pytest.importorskip("pandas", reason="tables of pandas")
    if any("pyarrow" in one for one in dtypes):
        pytest.importorskip("pyarrow", reason="columns of Arrow")
    columns = {f"c{k}": pd.Series(np.roll([1, 0, 1, 1], k), dtype=one) for k, one in enumerate(dtypes)}
    if missing:
        columns["c0"] = columns["c0"].where([True, True, False, True], pd.NA)
    frame, q = pd.DataFrame(columns), np.array([2.0, 3.0, 4.0])
    values = kl.kl_divergence(frame, q).to_numpy()
    assert np.isnan(values).any() == missing
    metric = kl.KLDivergence(thresholds=(0.1, 1.0))
    metric.update(frame, pd.DataFrame(np.tile(q, (4, 1)), columns=frame.columns))
    for p in (frame, iter([frame[:2], frame[2:]])):
        assert repr(kl.score(p, q)["kl"]) == repr(metric.summary())


def test_a_series_goes_by_places() -> None:
    pd = pytest.importorskip("pandas", reason="tables of pandas")
    weights = pd.Series([1, 2, 5], index=[0.0, 1.0, 2.0], dtype="Int64")
    assert kl.score(weights, np.ones(3))["kl"].mean == kl.kl_divergence([1, 2, 5], np.ones(3))


def test_a_mask_of_truth_values_that_may_be_missing() -> None:
    pd = pytest.importorskip("pandas", reason="tables of pandas")
    kept = np.arange(LOGITS.size).reshape(LOGITS.shape) % 3 > 0
    mask = pd.DataFrame(kept).astype("boolean")
    found, wanted = (kl.score(LOGITS, OTHERS, kind="logit", mask=one) for one in (mask, kept))
    assert found["kl"] == wanted["kl"]
    mask.iloc[5, 3] = pd.NA
    with pytest.raises(InputError, match="mask: a mask holds truth values, or 0 and 1"):
        kl.score(LOGITS, OTHERS, kind="logit", mask=mask)


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_a_result_without_rows_has_the_dtypes_of_one_with_rows(suffix, dtype, tmp_path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet files")
    types = []
    for rows in (3, 0):
        p = np.ones((rows, 4), dtype)
        for stats in (["kl"], ["argmax_agree"]) if suffix == "npy" else (["kl", "argmax_agree"],):
            output = tmp_path / f"{rows}{stats[0]}.{suffix}"
            kl.score(p, p, stats=stats, output=output)
            if suffix == "npy":
                types.append(np.load(output).dtype)
                assert np.load(output).shape == (rows,)
            else:
                import pyarrow.parquet as pq

                types.append(pq.read_schema(output).types)
    assert types[: len(types) // 2] == types[len(types) // 2 :]


def test_options_may_be_numbers_of_numpy(tmp_path):
    settings = {
        "axis": -1,
        "base": 2.0,
        "temperature": 2.0,
        "valid_width": 3,
        "normalize": True,
        "quantile_error": 0.02,
    }
    wrapped = {name: np.asarray(value)[()] for name, value in settings.items()}
    x, y = np.random.default_rng(0).normal(size=(2, 6, 4))
    first, second = (
        kl.score(x, y, kind="logit", report=tmp_path / f"{name}.json", output=tmp_path / f"{name}.npy", **some)
        for name, some in (("plain", settings), ("wrapped", wrapped))
    )
    assert first.to_json() == second.to_json()
    first.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_text() == (tmp_path / "wrapped.json").read_text()


def test_work_goes_on_where_nobody_reads_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1, encoding="utf-8") as closed:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stderr", closed)
        assert kl.score(np.eye(2), np.eye(2), progress=True).rows == 2
        with contextlib.suppress(OSError):
            closed.close()


def test_without_standard_error_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in programs without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    for progress in (False, None, True):
        assert kl.score(np.eye(2), np.eye(2), progress=progress).rows == 2
