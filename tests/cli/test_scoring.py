"""What `score` and `cache` do beyond two small files, through the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from tests.cli.test_cli import P, Q, folder, invoke, refusal, summary_of  # noqa: F401 - `folder` is a fixture

LOGITS, OTHERS = np.log(P), np.log(Q)


@pytest.fixture
def logits(folder: Path) -> Path:  # noqa: F811
    np.save("teacher.npy", LOGITS)
    np.save("student.npy", OTHERS)
    return folder


def test_several_statistics_in_one_table(logits: Path) -> None:
    shown = invoke("score", "p.npy", "q.npy", "--stats", "kl,js, argmax_agree", "--thresholds", "0.5,2").stdout
    for text in ("kl", "js", "argmax_agree", "above 0.5", "above 2"):
        assert text in shown
    found = kl.row_statistics(P, Q, stats=("kl", "js", "argmax_agree"))
    for values in found.values():
        assert f"{values.mean():.6g}" in shown


def test_options_of_large_files(logits: Path) -> None:
    np.save("mask.npy", np.arange(6) < 5)
    common = ("teacher.npy", "student.npy", "--kind", "logit")
    kept = kl.kl_divergence(LOGITS[:, :5], OTHERS[:, :5], kind="logit")
    for options in (("--mask", "mask.npy"), ("--valid-width", "5")):
        summary_of(*common, *options, "-o", "out.npy", "--threads", "1", "--memory", "1GiB", "--report", "out.json")
        np.testing.assert_array_equal(np.load("out.npy"), kept)
        told = json.loads(Path("out.json").read_text())
        assert told["statistics"]["kl"]["mean"] == pytest.approx(kept.mean(), rel=1e-14)
        assert sorted(logits.glob("*.unfinished")) == []


def test_shards_and_patterns(logits: Path) -> None:
    (logits / "shards").mkdir()
    for k in range(12):
        np.save(logits / "shards" / f"part-{k}.npy", P[4 * k : 4 * k + 4])
    for source in ("shards", "shards/part-*.npy"):
        summary_of(source, "q.npy", "-o", "out.npy")
        np.testing.assert_array_equal(np.load("out.npy"), kl.kl_divergence(P, Q))
    assert "no file matches" in refusal("shards/none-*.npy", "q.npy")


def test_reference(logits: Path) -> None:
    for options, coarsened in (((), False), (("--top-k", "3", "--dtype", "float16"), True)):
        done = invoke("cache", "teacher.npy", "-o", "ref.safetensors", *options)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        told = summary_of("--reference", "ref.safetensors", "student.npy", "--kind", "logit")
        assert told["coarsened"] is coarsened
        assert told["rows"] == 40
        full = kl.kl_divergence(LOGITS, OTHERS, kind="logit").mean()
        assert 0 < told["statistics"]["kl"]["mean"] <= full * 1.001
    shown = invoke("score", "--reference", "ref.safetensors", "student.npy", "--kind", "logit").stdout
    assert "Of the coarsened distributions: the 3 largest cells of P, and all others as one." in shown


def test_refusals_of_references(logits: Path) -> None:
    assert "P: --reference REF stands in its place" in refusal("--reference", "p.npy", "p.npy", "q.npy")
    assert "Q: score takes two files" in refusal("p.npy")
    assert "no.safetensors: no such file" in refusal("--reference", "no.safetensors", "q.npy")
    assert "p.npy: truncated, or not in the safetensors format" in refusal("--reference", "p.npy", "q.npy")
    done = invoke("cache", "teacher.npy", "-o", "ref.npy")
    assert (done.exit_code, done.stderr) == (2, "klnumba: ref.npy: a reference is a .safetensors file\n")


def test_rows_that_are_no_distribution_are_named(logits: Path) -> None:
    broken = Q.copy()
    broken[7, 2] = np.nan
    np.save("q.npy", broken)
    done = invoke("score", "p.npy", "q.npy")
    assert done.exit_code == 0
    assert done.stderr == "klnumba: q.npy: row 7 of shape (6,), cell 2 is NaN (nan)\n"
    assert "row 7 of shape (6,), cell 2 is NaN" in refusal("p.npy", "q.npy", "--invalid", "raise")


def test_refusals_are_one_line(logits: Path) -> None:
    for options, words in (
        (("--memory", "12"), "memory: 12 is too little"),
        (("--memory", "lots"), "memory: a whole number of bytes, or text"),
        (("--stats", "odd"), "stats: 'odd' is none of"),
        (("--thresholds", "a"), "thresholds: numbers"),
        (("--resume",), "resume: without an output"),
        (("--valid-width", "9"), "valid_width: 9, but p.npy has rows of 6 cells"),
        (("-o", "q.npy"), "is an input"),
        (("--report", "r.txt"), "report: a .json file, not r.txt"),
    ):
        assert words in refusal("p.npy", "q.npy", *options)


def test_progress_goes_to_standard_error(logits: Path) -> None:
    done = invoke("score", "p.npy", "q.npy", "--json", "--progress")
    assert json.loads(done.stdout)["rows"] == 40
    assert done.stderr.startswith("klnumba: 40 of 40 rows, ")
    assert invoke("score", "p.npy", "q.npy", "--json").stderr == ""


def test_every_statistic_is_named_in_the_help(logits: Path) -> None:
    shown = "".join(invoke("score", "--help").stdout.split())
    for name in kl.reduction.SOURCES:
        assert name in shown


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor")
def test_without_standard_error_nothing_else_comes_to_standard_output(logits: Path) -> None:
    broken = Q.copy()
    broken[7, 2] = np.nan
    np.save("q.npy", broken)
    for arguments, status in ((("p.npy", "q.npy", "--json"), 0), (("none.npy", "q.npy"), 2)):
        command = [sys.executable, "-m", "klnumba", "score", *arguments]
        done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, check=False)
        assert done.returncode == status
        assert not done.stdout if status else json.loads(done.stdout)["rows"] == 40


SLOW = """
import signal
import time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started all this with Ctrl-C ignored
from klnumba.scoring import cache
true = cache._Writer._block
def slow(self, *rest):
    true(self, *rest)
    open("begun", "w").close()  # what was written may not have left the process
    time.sleep(60)
cache._Writer._block = slow
from klnumba.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_cache_that_is_interrupted_leaves_nothing(number: signal.Signals, logits: Path) -> None:
    command = [sys.executable, "-c", SLOW, "cache", "teacher.npy", "-o", "ref.safetensors"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not (logits / "begun").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    assert list(logits.glob(".ref*"))
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (128 + number, "")
    assert not list(logits.glob("*ref*"))
    assert not list(logits.glob(".ref*"))
