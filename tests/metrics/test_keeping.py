"""States, copies and files: what was kept comes back, and what is damaged is refused."""

import contextlib
import copy
import errno
import io
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from functools import partial

import numpy as np
import pytest

import klnumba as kl
from klnumba.metrics import RunningStatistics, files
from tests.metrics.states import assert_same, of_rows

P, Q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 300))


def metric(cls=kl.KLDivergence, groups=None, **options):
    made = cls(**options)
    made.update(P, Q, weights=np.arange(300) % 3, groups=groups)
    return made


MADE = {
    "plain": partial(metric),
    "options": partial(metric, thresholds=(0.1, 2.0), agreement=True, base=2),
    "rows kept": partial(metric, reduction="none", quantile_error=None),
    "numbered groups": partial(metric, groups=np.arange(300) % 7),
    "named groups": partial(metric, groups=np.where(np.arange(300) % 2, "a", "ö"), agreement=True),
    "js": partial(metric, kl.JensenShannonDivergence, weight=0.25),
    "cross-entropy of logits": partial(metric, kl.CrossEntropy, axis=1, kind="logit", temperature=3.0),
}
WAYS = {
    "pickle": lambda made, folder: pickle.loads(pickle.dumps(made)),
    "clone": lambda made, folder: made.clone(),
    "deepcopy": lambda made, folder: copy.deepcopy(made),
    "state": lambda made, folder: type(made).from_state_dict(made.state_dict()),
    "file": lambda made, folder: (made.save(folder / "a.npz"), type(made).load(folder / "a.npz"))[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MADE)
def test_comes_back(name, way, tmp_path):
    made = MADE[name]()
    twin = WAYS[way](made, tmp_path)
    assert_same(twin.state_dict(), made.state_dict())
    assert twin.options() == made.options()
    before = made.state_dict()
    twin.update(P[:3], Q[:3], groups=None if made.labels is None else made.labels[:1] * 3)
    assert_same(made.state_dict(), before)
    assert twin.rows == made.rows + 3


def test_sum_leaves_its_terms():
    first, second = metric(), metric()
    before = first.state_dict()
    total = sum([first, second])
    assert_same(first.state_dict(), before)
    assert total.rows == 2 * first.rows
    assert total.compute() == pytest.approx(first.compute(), rel=1e-15)


def test_merged_rows_follow():
    first, second = (kl.KLDivergence(reduction="none") for _ in range(2))
    first.update(P[:100], Q[:100])
    second.update(P[100:], Q[100:])
    first.merge(second)
    np.testing.assert_array_equal(first.compute(), kl.kl_divergence(P, Q))


@pytest.mark.parametrize(("other", "error", "text"), [
    (kl.CrossEntropy(), TypeError, "others: a KLDivergence, not CrossEntropy"),
    (3, TypeError, "others: a KLDivergence, not int"),
    (kl.KLDivergence(base=2), ValueError, "others: base is 2.0 there and None here"),
    (kl.KLDivergence(quantile_error=0.1), ValueError, "others: quantile_error is 0.1 there and 0.01 here"),
    (metric(groups=np.arange(300)), ValueError, "others: one has groups and the other has none"),
])  # fmt: skip
def test_what_does_not_merge(other, error, text):
    made = metric()
    before = made.state_dict()
    with pytest.raises(error, match=text):
        made.merge(metric(), other)
    assert_same(made.state_dict(), before)


def test_an_empty_one_takes_on_groups():
    made = kl.KLDivergence()
    made.merge(metric(groups=np.arange(300) % 2), kl.KLDivergence())
    assert made.labels == [0, 1]


def test_plus_something_else():
    with pytest.raises(TypeError):
        metric() + 1
    with pytest.raises(TypeError):
        1 + metric()


@pytest.mark.parametrize(("change", "text"), [
    (lambda state: state.pop("options"), "state: no 'options'"),
    (lambda state: state.pop("statistics"), "state: no 'statistics'"),
    (lambda state: state["statistics"].pop("sums"), "state: no 'sums'"),
    (lambda state: state["statistics"].update(sums=np.zeros((1, 2, 3), np.int64)), "sums: int64 of shape"),
    (lambda state: state["statistics"].update(counts=np.zeros((1, 5))), "counts: int64 of shape"),
    (lambda state: state["statistics"].update(windows=np.array([[0, -1], [0, 0]])), "windows: two pairs"),
    (lambda state: state["statistics"].update(labels=["a", "b"]), "labels"),
    (lambda state: state["statistics"].update(labels=["a", "a"]), "labels .*twice"),
    (lambda state: state["statistics"].pop("masses"), "masses: missing"),
    (lambda state: state["statistics"]["options"].update(quantile_error=0.02), "quantile_error is 0.02 there"),
    (lambda state: state["options"].update(base=10), "base is 10"),
    (lambda state: state["options"].update(temperature=np.ones(2)), r"temperature is array\(\[1., 1.\]\) there"),
    (lambda state: state.update(divergence="js"), "of the divergence 'js', not 'kl'"),
])  # fmt: skip
def test_damaged_states(change, text):
    made = metric()
    before, state = made.state_dict(), made.state_dict()
    change(state)
    with pytest.raises(ValueError, match=text):
        made.load_state_dict(state)
    assert_same(made.state_dict(), before)


@pytest.mark.parametrize("other", [kl.CrossEntropy, kl.JensenShannonDivergence])
def test_a_state_of_another_metric(other):
    """All three have the options of the first."""
    made, its = metric(), metric(other).state_dict()
    before = made.state_dict()
    with pytest.raises(ValueError, match="state: of the divergence"):
        made.load_state_dict(its)
    assert_same(made.state_dict(), before)


def test_a_state_from_before_divergences_were_told():
    made = metric()
    state = made.state_dict()
    del state["divergence"]
    assert_same(kl.KLDivergence.from_state_dict(state).state_dict(), made.state_dict())


def test_truncated_files(tmp_path):
    whole = tmp_path / "whole.npz"
    made = metric(groups=np.arange(300) % 7)
    made.save(whole)
    content = whole.read_bytes()
    cut = tmp_path / "cut.npz"
    for size in [0, 1, 10, *range(50, len(content) - 1, 97), len(content) - 1]:
        cut.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"cut\.npz: "):
            kl.KLDivergence.load(cut)


def test_flipped_bits(tmp_path):
    """A file with a flipped bit is refused, or holds the same (bits that nothing reads)."""
    path, made = tmp_path / "a.npz", metric()
    made.save(path)
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 53):
        content[place] ^= 4
        path.write_bytes(bytes(content))
        found = None
        with contextlib.suppress(ValueError):
            found = kl.KLDivergence.load(path)
        if found is not None:
            assert_same(found.state_dict(), made.state_dict())
        content[place] ^= 4


def archive_of_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")


def test_foreign_files(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    for name, write in {
        "text.npz": lambda path: path.write_text("no archive"),
        "other.npz": lambda path: np.savez(path, a=np.zeros(3)),
        "zip.npz": archive_of_text,
        "list.npz": lambda path: np.savez(path, header=np.array("[1]")),
        "format.npz": lambda path: np.savez(path, header=np.array('{"format": "x"}')),
        "array.npz": lambda path: path.write_bytes((tmp_path / "a.npy").read_bytes()),
    }.items():
        write(tmp_path / name)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            kl.KLDivergence.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        kl.KLDivergence.load(tmp_path / "none.npz")


def test_other_classes_and_versions(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    metric(kl.CrossEntropy).save(path)
    with pytest.raises(ValueError, match="a CrossEntropy, not a KLDivergence"):
        kl.KLDivergence.load(path)
    monkeypatch.setattr(files, "VERSION", 99)
    metric().save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="version 99 of the format; this release reads 1"):
        kl.KLDivergence.load(path)


def test_an_error_while_saving_keeps_the_old_file(tmp_path, monkeypatch):
    path, made = tmp_path / "a.npz", metric()
    made.save(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        metric(base=2).save(path)
    assert path.read_bytes() == before
    assert [x.name for x in tmp_path.iterdir()] == ["a.npz"]


def test_save_has_the_usual_rights(tmp_path):
    metric().save(tmp_path / "a.npz")
    (tmp_path / "b").write_text("")
    assert (tmp_path / "a.npz").stat().st_mode == (tmp_path / "b").stat().st_mode


SAVER = """
import sys
import numpy as np
import klnumba as kl
made = kl.KLDivergence(reduction="none")
p, q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 50_000))
made.update(p, q)
print("ready", flush=True)
while True:
    made.save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_while_saving(tmp_path):
    path = tmp_path / "a.npz"
    metric(reduction="none").save(path)
    for seconds in (0.01, 0.05, 0.12):
        with subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE) as run:
            assert run.stdout.readline() == b"ready\n"
            time.sleep(seconds)
            run.send_signal(signal.SIGKILL)
        assert kl.KLDivergence.load(path).rows in {200, 50_000}


SPILLED = """
import os, sys
import numpy as np
import klnumba as kl
p = np.random.default_rng(0).dirichlet(np.ones(4), 30)
made = kl.KLDivergence(reduction="none", spill=sys.argv[1])
made.update(p, p[::-1])
if not os.fork():
    for change in (lambda: made.update(p, p), made.reset):
        try:
            change()
        except RuntimeError as error:
            print(error, flush=True)
    twin = made.clone()
    twin.update(p, p)
    print(made.rows, made.compute().size, twin.rows, twin.compute().size, flush=True)
    os._exit(0)
os.wait()
print(made.rows, made.compute().size)
"""


class TestSpill:
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
    def test_a_forked_process_does_not_write_there(self, tmp_path):
        path = tmp_path / "rows.npy"
        done = subprocess.run([sys.executable, "-c", SPILLED, str(path)], capture_output=True, text=True, check=True)
        refused = f"spill: {path} is the file of another process; a clone() of the metric can be changed here"
        assert done.stdout.splitlines() == [refused, refused, "30 30 60 60", "30 30"]

    def test_a_state_comes_back_whole_or_not_at_all(self, tmp_path, monkeypatch):
        path, other = tmp_path / "rows.npy", kl.KLDivergence(reduction="none")
        made = kl.KLDivergence(reduction="none", spill=path)
        made.update(P, Q)
        other.update(Q[:7], P[:7])
        before = made.state_dict()

        class Full(io.FileIO):
            def write(self, data):
                if self.tell() + len(data) > 150:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return super().write(data)

        with monkeypatch.context() as full:
            full.setattr(type(path), "open", lambda one, mode: Full(one, mode))
            with pytest.raises(OSError, match="No space left"):
                made.load_state_dict(other.state_dict())
        assert_same(made.state_dict(), before)
        made.load_state_dict(other.state_dict())
        assert_same(made.state_dict(), other.state_dict())
        np.testing.assert_array_equal(np.load(path), other.compute())
        assert [one.name for one in tmp_path.iterdir()] == ["rows.npy"]

    def test_values(self, tmp_path):
        path = tmp_path / "rows.npy"
        made = kl.KLDivergence(reduction="none", spill=path)
        for k in range(0, 300, 70):
            made.update(P[k : k + 70], Q[k : k + 70])
            np.testing.assert_array_equal(np.load(path), kl.kl_divergence(P[: k + 70], Q[: k + 70]))
        found = made.compute()
        assert isinstance(found, np.memmap)
        assert not found.flags.writeable
        np.testing.assert_array_equal(found, kl.kl_divergence(P, Q))
        np.testing.assert_array_equal(made.clone().compute(), found)
        made.reset()
        assert np.load(path).shape == (0,)

    def test_refused(self, tmp_path):
        (tmp_path / "old.npy").write_text("mine")
        with pytest.raises(ValueError, match=r"spill: .*old\.npy exists"):
            kl.KLDivergence(reduction="none", spill=tmp_path / "old.npy")
        assert (tmp_path / "old.npy").read_text() == "mine"
        with pytest.raises(ValueError, match=r"spill: a file that ends in \.npy, not 'rows\.csv'"):
            kl.KLDivergence(reduction="none", spill=tmp_path / "rows.csv")

    def test_memory_does_not_grow(self, tmp_path):
        code = """
import resource, sys
import numpy as np, klnumba as kl
made = kl.KLDivergence(reduction="none", spill=sys.argv[1])
p = np.full((200_000, 2), 0.5)
made.update(p, p)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(60):
    made.update(p, p)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, made.compute().shape[0])
"""
        pytest.importorskip("resource", reason="no resource usage on this system")
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.npy")], capture_output=True, text=True, check=True
        )
        grown, rows = map(int, done.stdout.split())
        assert rows == 61 * 200_000
        assert grown < 40, f"{grown} MiB more for 92 MiB of values"


def test_memory_of_a_mean_does_not_grow():
    made = RunningStatistics(thresholds=(0.5,))
    rng = np.random.default_rng(1)
    made.update(np.exp(rng.normal(size=10_000)))
    size = sum(x.nbytes for x in made.state_dict().values() if isinstance(x, np.ndarray))
    for _ in range(20):
        made.update(np.exp(rng.normal(size=10_000)))
    grown = sum(x.nbytes for x in made.state_dict().values() if isinstance(x, np.ndarray))
    assert grown <= 1.5 * size


def test_labels_in_another_order_give_the_same_state():
    first = of_rows([1.0, 2.0, 3.0], groups=["b", "a", "c"])
    second = of_rows([3.0, 1.0, 2.0], groups=["c", "b", "a"])
    assert_same(first.state_dict(), second.state_dict())


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions are others there")
def test_a_link_stays_and_so_do_permissions(tmp_path):
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "a.npz", tmp_path / "link.npz"
    first, second = MADE["plain"](), MADE["options"]()
    first.save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    second.save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert_same(kl.KLDivergence.load(target).state_dict(), second.state_dict())
    link.unlink()
    link.symlink_to("kept/b.npz")  # there is no such file yet
    first.save(link)
    assert link.is_symlink()
    assert_same(kl.KLDivergence.load(tmp_path / "kept" / "b.npz").state_dict(), first.state_dict())
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["a.npz", "b.npz"]


FORKED = """
import os, sys, threading, warnings
import numpy as np
import klnumba as kl
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads
p, q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 2000))
metric, other = kl.KLDivergence(), kl.KLDivergence()
metric.update(p, q)
once = float(metric.compute())
stop = threading.Event()

def busy():
    while not stop.is_set():
        metric.update(p, q)
        metric.summary()
        (metric + other).state_dict()

threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(40):
    pid = os.fork()
    if pid == 0:  # the child: every update is there as a whole, and no lock is held
        whole = metric.rows % 2000 == 0 and float(metric.compute()) == once and metric.summary().mean == once
        metric.update(p, q)
        os._exit(0 if whole and float(metric.compute()) == once else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
with metric._lock:  # a thread that forks while it is at work itself
    pid = os.fork()
    if pid == 0:
        metric.update(p, q)
        os._exit(0 if float(metric.compute()) == once else 1)
assert os.waitpid(pid, 0)[1] == 0
metric.update(p, q)
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_while_other_threads_are_inside_a_metric():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "fine\n", done.stderr
