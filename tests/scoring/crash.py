"""Runs that are killed at random points and resumed, in children of a process without other threads.

Run as ``python -m tests.scoring.crash FOLDER SEED KILLS SUFFIX``; fails where a run came to other bytes than an
unbroken one.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import klnumba as kl
from klnumba.scoring import blocks
from tests.scoring.samples import CELLS, LOGITS, OTHERS

STATS = ("kl", "js", "argmax_agree")


def run(output: Path, resume: bool) -> None:
    kl.score(
        output.parent / "p.npy", output.parent / "q.npy", kind="logit", stats=STATS, output=output,
        report=output.with_suffix(".json"), resume=resume, checkpoint_every=0.0, threads=1,
    )  # fmt: skip


def killed(output: Path, delay: float) -> bool:
    """Start or go on in a child, and kill it after a while; whether that came before its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(output, resume=True)
            code = 0
        finally:
            os._exit(code)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a run that was not killed has failed"
    return os.WIFSIGNALED(status)


def values_in(path: Path) -> np.ndarray:
    """The column kl of a file."""
    if path.suffix == ".npy":
        return np.load(path)["kl"]
    if path.suffix == ".csv":
        return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)[:, 0].astype(np.float32)
    import pyarrow.parquet as pq

    return pq.read_table(path)["kl"].to_numpy()


def check_parts(folder: Path, expected: np.ndarray) -> None:
    """The parts so far hold the first values, and nothing half written is among them."""
    parts = sorted(folder.glob("part-*"))
    if parts:
        found = np.concatenate([values_in(part) for part in parts])
        np.testing.assert_array_equal(found, expected[: len(found)])


def main(folder: Path, seed: int, wanted: int, suffix: str) -> None:
    blocks.BLOCK = 4 * CELLS * 8
    rng = random.Random(seed)
    np.save(folder / "p.npy", LOGITS)
    np.save(folder / "q.npy", OTHERS)
    expected = kl.kl_divergence(LOGITS, OTHERS, kind="logit", threads=1)
    run(folder / f"whole.{suffix}", resume=False)
    start = time.perf_counter()
    run(folder / f"whole.{suffix}", resume=False)
    usual = time.perf_counter() - start
    kills = 0
    while kills < wanted:
        output = folder / f"out.{suffix}"
        while killed(output, rng.uniform(0.0, 0.6 * usual)):
            kills += 1
            if not output.exists():  # else the parts are being removed
                check_parts(folder / f"out.{suffix}.unfinished", expected)
        for name in (suffix, "json"):
            whole, pieces = (folder / f"{stem}.{name}" for stem in ("whole", "out"))
            assert whole.read_bytes() == pieces.read_bytes(), f"{name}: other bytes than an unbroken run"
            pieces.unlink()
        assert not [path for path in folder.iterdir() if path.name.startswith((".", "out."))]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
