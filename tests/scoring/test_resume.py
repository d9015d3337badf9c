"""A run that is cut off, however it is cut off, goes on to the same bits."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from klnumba.scoring import InputError, Interrupted, blocks, journal, outputs
from tests.scoring.samples import CELLS, LOGITS, OTHERS, ROWS

HERE = Path(__file__).resolve().parents[2]
SETTINGS = {"kind": "logit", "stats": ("kl", "js")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(blocks, "BLOCK", 6 * CELLS * 8)
    np.save(tmp_path / "p.npy", LOGITS)
    np.save(tmp_path / "q.npy", OTHERS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(**settings):
    return kl.score("p.npy", "q.npy", **{"output": "out.npy", "checkpoint_every": 0.0, **SETTINGS, **settings})


def after(calls: int):
    """What says stop at its n-th call."""
    count = itertools.count(1)
    return lambda: next(count) >= calls


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_at_random_points(suffix: str, tmp_path: Path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet files")
    done = subprocess.run(
        [sys.executable, "-m", "tests.scoring.crash", str(tmp_path), "1", "12", suffix],
        cwd=HERE, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_at_many_random_points(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.scoring.crash", str(tmp_path), "2", "80", "npy"],
        cwd=HERE, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_stopped_again_and_again(folder: Path) -> None:
    whole = run(output="whole.npy").to_dict()
    rng = random.Random(4)
    for every in (0.0, 1000.0):
        said: list[str] = []
        report = None
        while report is None:
            try:
                report = run(resume=True, stop=after(rng.randrange(1, 5)), checkpoint_every=every)
            except Interrupted as error:
                said.append(str(error))
        assert len(said) > 2
        assert all("out.npy.unfinished holds: go on with --resume" in text for text in said)
        assert report.to_dict() == whole
        assert Path("out.npy").read_bytes() == Path("whole.npy").read_bytes()
        assert sorted(path.name for path in folder.iterdir()) == ["out.npy", "p.npy", "q.npy", "whole.npy"]
        Path("out.npy").unlink()


def test_an_exception_loses_what_came_after_the_last_checkpoint_only(folder: Path) -> None:
    seen = []

    def watch(rows: int, total: int | None, size: int) -> None:
        seen.append(rows)
        if rows > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress=watch)
    last = seen[-2]
    seen.clear()
    report = run(resume=True, progress=lambda rows, total, size: seen.append(rows))
    assert seen[0] == last + 1
    np.testing.assert_array_equal(np.load("out.npy")["kl"], kl.kl_divergence(LOGITS, OTHERS, kind="logit"))
    assert report.rows == ROWS


def test_streams_and_arrays_are_resumed(folder: Path) -> None:
    whole = kl.score(LOGITS, OTHERS, **SETTINGS).states["kl"].state_dict()
    np.savez_compressed("p.npz", LOGITS)
    np.savetxt("p.csv", LOGITS, delimiter=",", fmt="%.9g")
    for make in (lambda: iter(np.array_split(LOGITS, 9)), lambda: "p.npz", lambda: LOGITS):
        settings = dict(SETTINGS, report="report.json", checkpoint_every=0.0)
        with pytest.raises(Interrupted):
            kl.score(make(), OTHERS, stop=after(5), **settings)
        state = kl.score(make(), OTHERS, resume=True, **settings).states["kl"].state_dict()
        assert all(np.array_equal(state[name], item) for name, item in whole.items() if isinstance(item, np.ndarray))


def test_the_first_invalid_row_is_remembered(folder: Path) -> None:
    rows = LOGITS.copy()
    rows[0, 3] = np.nan
    np.save("p.npy", rows)
    with pytest.raises(Interrupted):
        run(stop=after(4))
    assert run(resume=True).first_invalid == "p.npy: row 0 of shape (11,), cell 3 is NaN (nan)"


def test_an_unfinished_run_is_not_begun_again_unasked(folder: Path) -> None:
    with pytest.raises(Interrupted):
        run(stop=after(4))
    with pytest.raises(
        InputError, match=r"out\.npy\.unfinished: holds a run that was interrupted: go on with --resume"
    ):
        run()
    run(resume=True)
    run(resume=True)  # nothing to go on with: begins, and ends with the same
    assert not Path("out.npy.unfinished").exists()


def test_other_options_and_other_inputs_are_refused(folder: Path) -> None:
    with pytest.raises(Interrupted):
        run(stop=after(4))
    for settings, words in (
        ({"temperature": 2.0}, "begun with other options .temperature was 1.0, is 2.0."),
        ({"stats": ("kl",)}, "begun with other options .stats was"),
        ({"quantile_error": 0.02}, "quantile_error was 0.01"),
        ({"mask": np.ones(CELLS, bool)}, "begun with another mask"),
    ):
        with pytest.raises(InputError, match=words):
            run(resume=True, **settings)
    with pytest.raises(InputError, match=r"begun with another output .suffix was '.npy', is '.csv'"):
        run(resume=True, output="out.csv", checkpoint="out.npy.unfinished")
    os.utime("q.npy", (1, 1))
    with pytest.raises(InputError, match=r"begun with another q .changed was .*: remove the folder to begin again"):
        run(resume=True)
    assert list(Path("out.npy.unfinished").glob("part-*"))


def test_a_mask_that_is_left_out_is_another_input(folder: Path) -> None:
    with pytest.raises(Interrupted):
        run(stop=after(4), mask=np.arange(CELLS) < 5)
    with pytest.raises(InputError, match="begun with another mask"):
        run(resume=True)


def test_another_array_of_a_zarr_group_is_another_input(folder: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="Zarr stores")
    group = zarr.open_group("run.zarr", mode="w")
    for name, rows in (("p", LOGITS), ("q", OTHERS), ("other", OTHERS + 1.0)):
        group.create_array(name, data=rows)
    settings = {"output": "out.npy", "checkpoint_every": 0.0, **SETTINGS}
    with pytest.raises(Interrupted):
        kl.score("run.zarr:p", "run.zarr:q", stop=after(1), **settings)
    with pytest.raises(InputError, match=r"begun with another q .file was 'run.zarr:q', is 'run.zarr:other'"):
        kl.score("run.zarr:p", "run.zarr:other", resume=True, **settings)


def test_a_damaged_journal_is_refused(folder: Path) -> None:
    with pytest.raises(Interrupted):
        run(stop=after(4))
    file = Path("out.npy.unfinished/journal.npz")
    whole = file.read_bytes()
    for content in (b"", b"nonsense", whole[:-40], whole[:300] + b"xxxx" + whole[304:]):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"journal\.npz: .*remove out\.npy\.unfinished to begin again"):
            run(resume=True)
    file.write_bytes(whole)
    next(Path("out.npy.unfinished").glob("part-*")).unlink()
    with pytest.raises(InputError, match="is missing; remove the folder to begin again"):
        run(resume=True)


def test_a_folder_of_the_users_is_left_alone(folder: Path) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("dear")
    with pytest.raises(InputError, match=r"mine: holds other files, such as letter\.txt: name a folder of its own"):
        run(checkpoint="mine")
    with pytest.raises(InputError, match=r"p\.npy: cannot be a folder"):
        run(checkpoint="p.npy")
    assert Path("mine/letter.txt").read_text() == "dear"
    run(checkpoint="other")
    assert not Path("other").exists()


def test_two_runs_at_once(folder: Path) -> None:
    pytest.importorskip("fcntl", reason="locks of the system")
    first = journal.Journal(Path("out.npy.unfinished"), ".npy", {})
    first.begin(journal.State({}), resume=False)
    with pytest.raises(InputError, match="another run is at work here"):
        run()
    first.save(journal.State({}), None)
    for resume in (False, True):  # its folder is not to be removed, as that of an interrupted run may be
        with pytest.raises(InputError, match="another run is at work here"):
            run(resume=resume)
    first.remove()
    first.release()
    run()


def test_a_full_disk_keeps_what_was_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(output="whole.npy").to_dict()
    true, count = outputs.write_columns, itertools.count(1)

    def full(path: Path, columns: dict) -> None:
        if next(count) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        true(path, columns)

    monkeypatch.setattr(journal, "write_columns", full)
    with pytest.raises(OSError, match=r"No space left on device: out\.npy\.unfinished holds what was done before"):
        run()
    assert len(list(Path("out.npy.unfinished").glob("part-*"))) == 4
    assert run(resume=True).to_dict() == whole


@pytest.mark.skipif(sys.platform == "win32", reason="limits of the system")
def test_a_file_that_may_not_grow(folder: Path) -> None:
    """The limit on the size of files stands for a disk that fills up while the output is put together."""
    program = """
import resource, signal, sys
import numpy as np
import klnumba as kl
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
p = np.random.default_rng(0).normal(size=(40_000, 4))
settings = dict(output="big.npy", kind="logit", checkpoint_every=0.0)
from klnumba.scoring import blocks
blocks.BLOCK = 10_000 * 64
kl.kl_divergence(p, p[::-1], kind="logit")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    kl.score(p, p[::-1], **settings)
except OSError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kl.score(p, p[::-1], resume=True, **settings)
np.testing.assert_array_equal(np.load("big.npy"), kl.kl_divergence(p, p[::-1], kind="logit"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "File too large: big.npy.unfinished holds what was done before" in done.stdout


SLOW = """
import sys, time
from klnumba.scoring import blocks
blocks.BLOCK = 88
true = blocks.Run._take
def slow(self, end):
    time.sleep(0.02)
    return true(self, end)
blocks.Run._take = slow
from klnumba.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_signals(number: signal.Signals, folder: Path) -> None:
    pytest.importorskip("typer", reason="the command needs typer")
    pytest.importorskip("rich", reason="the command needs rich")
    arguments = ["score", "p.npy", "q.npy", "--kind", "logit", "-o", "out.csv", "--report", "out.json"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments, "--checkpoint-every", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while (
        not Path("out.csv.unfinished/part-000002.csv").exists() and process.poll() is None and time.monotonic() < limit
    ):
        time.sleep(0.01)
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number, error
    assert out == ""
    assert error.startswith("klnumba: interrupted after ")
    assert error.endswith("out.csv.unfinished holds: go on with --resume (resume=True)\n")
    assert error.count("\n") == 1
    done = subprocess.run(
        [sys.executable, "-m", "klnumba", *arguments, "--resume", "--json"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    whole = kl.score("p.npy", "q.npy", kind="logit")
    assert json.loads(done.stdout) == json.loads(whole.to_json()) == json.loads(Path("out.json").read_text())
    found = np.loadtxt("out.csv", skiprows=1, dtype=np.float32)
    np.testing.assert_array_equal(found, kl.kl_divergence(LOGITS, OTHERS, kind="logit"))


@pytest.mark.parametrize("name", ["part-00000.npy", "part-000000.npy", ".part-000001.npy.x.part", "notes.txt"])
def test_a_folder_of_somebody_elses_files_is_no_checkpoint(folder: Path, name: str) -> None:
    """Also of such as a run would leave: without its mark or a journal they are not its own."""
    held = folder / "shards"
    held.mkdir()
    (held / name).write_bytes(b"theirs")
    for resume in (False, True):
        with pytest.raises(InputError, match="shards: holds other files, such as"):
            run(checkpoint="shards", resume=resume)
    assert [path.name for path in held.iterdir()] == [name]
    assert (held / name).read_bytes() == b"theirs"


def test_a_checkpoint_around_what_is_read_or_written(folder: Path) -> None:
    (folder / "shards").mkdir()
    for settings in ({"output": "shards/out.npy"}, {"report": "shards/out.json"}):
        with pytest.raises(InputError, match="shards: would hold shards/out"):
            run(checkpoint="shards", **settings)
    for settings in ({"output": "out.npy"}, {"report": "out.npy"}):
        with pytest.raises(InputError, match=r"out\.npy: cannot be both the checkpoint and what is written"):
            run(checkpoint=folder / "out.npy", **{"output": None, **settings})
    np.save(folder / "shards" / "p.npy", LOGITS)
    with pytest.raises(InputError, match=r"shards: would hold shards/p\.npy"):
        kl.score("shards", "q.npy", output="out.npy", checkpoint="shards", **SETTINGS)
    assert (folder / "shards" / "p.npy").is_file()


def test_what_was_written_before_the_first_journal_is_ours(folder: Path) -> None:
    """A run that is killed before its first journal leaves its mark, and perhaps a part."""
    left = folder / "out.npy.unfinished"
    left.mkdir()
    (left / journal.MARK).touch()
    (left / "part-000000.npy").write_bytes(b"half")
    run()
    assert not left.exists()


def test_the_output_and_the_report_by_two_names(folder: Path) -> None:
    with pytest.raises(InputError, match="cannot be both the output and the report"):
        run(output="out.csv", report=str(folder / "out.csv"))
    (folder / "out.csv").write_text("theirs")
    (folder / "link.json").symlink_to(folder / "out.csv")
    with pytest.raises(InputError, match="cannot be both the output and the report"):
        run(output="out.csv", report="link.json")
    assert (folder / "out.csv").read_text() == "theirs"
