"""Cached references: every cell, or the largest and all others together."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba.scoring import InputError, blocks, cache_reference, logarithms
from klnumba.scoring.opening import open_source
from klnumba.scoring.reference import Coarsened, Logarithms
from tests.scoring.samples import CELLS, LOGITS, OTHERS, ROWS

MADE_OF_A_MODEL = (Coarsened, Logarithms)  # rows made of those of a model


@pytest.fixture(autouse=True)
def few_rows_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 7 * 2 * CELLS * 4)
    monkeypatch.setattr(logarithms, "CELLS", 3 * CELLS)


def values(p, q, folder: Path, **settings) -> np.ndarray:
    report = kl.score(p, q, output=folder / "out.npy", **settings)
    assert report.rows == len(OTHERS)
    return np.load(folder / "out.npy")


def log_softmax(x: np.ndarray) -> np.ndarray:
    from scipy.special import log_softmax as of

    return of(x.astype(np.float64), axis=-1)


@pytest.mark.parametrize("kind", ["logit", "log_prob", "prob"])
def test_log_probabilities_are_rounded_once(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("scipy.special", reason="the peer of this test")
    x = {"logit": LOGITS, "log_prob": LOGITS - 3, "prob": np.exp(LOGITS)}[kind]
    for dtype in ("float32", "float16"):
        path = cache_reference(x, tmp_path / "ref.safetensors", kind=kind, dtype=dtype)
        stored = open_source(path, "p").read(0, ROWS)
        assert stored.dtype == dtype
        np.testing.assert_allclose(stored, log_softmax(LOGITS), rtol=1e-6 if dtype == "float32" else 2.0**-11)


@pytest.mark.parametrize("top_k", [1, 3, 7, CELLS - 1, CELLS])
def test_of_equal_cells_the_first_are_kept(top_k: int, tmp_path: Path) -> None:
    logits = np.random.default_rng(0).integers(0, 3, LOGITS.shape).astype(np.float32)
    logits[1], logits[2] = 1.0, np.where(np.arange(CELLS) < CELLS // 2, -np.inf, logits[2])
    found = open_source(cache_reference(logits, tmp_path / "ref.safetensors", top_k=top_k), "p")
    places = found.places.read(0, len(logits))
    np.testing.assert_array_equal(places, np.argsort(-logits, axis=1, kind="stable")[:, :top_k])


def test_the_file_is_read_by_its_own_package(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors", reason="reads the file")
    cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=4, temperature=2.0)
    with package.safe_open(tmp_path / "ref.safetensors", framework="np") as file:
        assert file.metadata()["format"] == "klnumba.reference"
        assert file.metadata()["temperature"] == "2.0"
        assert file.get_tensor("log_probs").shape == (ROWS, 5)
        places = file.get_tensor("indices")
    np.testing.assert_array_equal(places, np.argsort(-LOGITS, axis=1, kind="stable")[:, :4])


@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_scores_against_every_cell(temperature: float, tmp_path: Path) -> None:
    pytest.importorskip("scipy.special", reason="the peer of this test")
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", temperature=temperature)
    expected = kl.kl_divergence(LOGITS, OTHERS, kind="logit", temperature=temperature)
    found = values(path, OTHERS, tmp_path, kind="logit", temperature=temperature)
    np.testing.assert_allclose(found, expected, rtol=3e-6)
    probabilities = np.exp(log_softmax(OTHERS / temperature)) if temperature == 1.0 else None
    if probabilities is not None:
        np.testing.assert_allclose(values(path, probabilities, tmp_path, kind="prob"), expected, rtol=3e-6)
        np.testing.assert_allclose(values(path, np.log(probabilities), tmp_path, kind="log_prob"), expected, rtol=3e-6)


def coarse(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The slow way: probabilities at `places`, and the sum of the others."""
    p = np.exp(log_softmax(x))
    kept = np.take_along_axis(p, places, axis=1)
    others = np.ones(p.shape, bool)
    np.put_along_axis(others, places, False, axis=1)
    return np.column_stack([kept, (p * others).sum(axis=1)])


@pytest.mark.parametrize("top_k", [1, 4, CELLS])
def test_scores_of_coarsened_rows(top_k: int, tmp_path: Path) -> None:
    pytest.importorskip("scipy.special", reason="the peer of this test")
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=top_k)
    places = np.argsort(-LOGITS, axis=1, kind="stable")[:, :top_k]
    stored = open_source(path, "p").read(0, ROWS)  # rounded to float32, which moves small divergences
    np.testing.assert_allclose(np.exp(stored), coarse(LOGITS, places), rtol=2e-6)
    p, q = np.exp(stored.astype(np.float64)), coarse(OTHERS, places)
    stats = ("kl", "reverse_kl", "js", "argmax_agree")
    found = values(path, OTHERS, tmp_path, kind="logit", stats=stats)
    expected = kl.row_statistics(p, q, stats=stats)
    for name in stats[:3]:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)
    np.testing.assert_array_equal(found["argmax_agree"], LOGITS.argmax(axis=1) == OTHERS.argmax(axis=1))
    full = kl.kl_divergence(LOGITS, OTHERS, kind="logit")
    assert (found["kl"] <= full * (1 + 1e-5)).all()
    if top_k == CELLS:
        np.testing.assert_allclose(found["kl"], full, rtol=2e-6)
    report = kl.score(path, OTHERS, kind="logit").to_dict()
    assert report["coarsened"] is True
    assert report["reference"] == {"dtype": "float32", "temperature": 1.0, "width": CELLS, "top_k": top_k}


def test_blocks_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=4)
    whole = path.read_bytes()
    few = values(path, OTHERS, tmp_path, kind="logit")
    monkeypatch.setattr(blocks, "BLOCK", 1 << 20)
    monkeypatch.setattr(logarithms, "CELLS", 1 << 20)
    assert values(path, OTHERS, tmp_path, kind="logit").tobytes() == few.tobytes()
    assert cache_reference(LOGITS, path, top_k=4).read_bytes() == whole


def test_equal_largest_cells() -> None:
    cells = np.array([[1.0, 3.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0, 2.0], [5.0, 1.0, 4.0, 4.0, 2.0]])
    for count in range(1, 6):
        places = logarithms.largest_cells(cells, count)
        np.testing.assert_array_equal(places[:, 0], [1, 0, 0])
        assert all(len(set(row)) == count for row in places.tolist())
        np.testing.assert_array_equal(np.take_along_axis(cells, places, axis=1), -np.sort(-cells, axis=1)[:, :count])


def test_rows_that_are_no_distribution_stay_so(tmp_path: Path) -> None:
    p, q = LOGITS.copy(), OTHERS.copy()
    p[3, 2], p[5], q[9, 1], q[11, 0] = np.nan, -np.inf, np.nan, -np.inf
    text = (
        rf"^source: row 3 of shape \({CELLS},\), cell 2 is NaN \(nan\): the reference holds NaN there; 2 rows in all$"
    )
    for top_k in (None, 4):
        with pytest.warns(UserWarning, match=text):
            path = cache_reference(p, tmp_path / "ref.safetensors", top_k=top_k)
        found = values(path, q, tmp_path, kind="logit")
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), [3, 5, 9])
    hidden = np.isin(0, logarithms.largest_cells(LOGITS[11:12].astype(float), 4))
    assert np.isinf(found[11]) == hidden


@pytest.mark.parametrize("top_k", [None, 4])
def test_what_is_wrong_with_a_row_is_said_of_its_own_cells(top_k: int | None, tmp_path: Path) -> None:
    """Of a negative cell, not of its logarithm, which is NaN; of another row than the first of a block."""
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=top_k)
    model = np.exp(LOGITS)
    model[9, 3] = -0.25
    np.save(tmp_path / "model.npy", model)
    found = kl.score(path, tmp_path / "model.npy", kind="prob")
    assert found["kl"].nan == 1
    assert found.first_invalid == f"{tmp_path / 'model.npy'}: row 9 of shape ({CELLS},), cell 3 is negative (-0.25)"


@pytest.mark.parametrize("top_k", [None, 4])
def test_padded_cells_are_not_what_is_wrong(top_k: int | None, tmp_path: Path) -> None:
    """Cells behind the valid width are looked at neither for a value nor for the reason why there is none."""
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=top_k)
    model = np.full((ROWS, CELLS + 3), np.nan)
    model[:, :CELLS] = np.exp(LOGITS)
    found = kl.score(path, model, kind="prob", valid_width=CELLS)
    assert found["kl"].nan == 0
    assert found.first_invalid is None
    model[9, 3] = -0.25
    found = kl.score(path, model, kind="prob", valid_width=CELLS)
    assert found.first_invalid == f"q: row 9 of shape ({CELLS},), cell 3 is negative (-0.25)"
    reference = LOGITS.copy()
    reference[9, 3] = np.nan
    with pytest.warns(UserWarning, match="row 9"):
        path = cache_reference(reference, tmp_path / "ref.safetensors", top_k=top_k)
    model[9, 3] = 1.0
    found = kl.score(path, model, kind="prob", valid_width=CELLS)
    assert found.first_invalid.startswith(f"{path}: row 9 of shape ")


@pytest.mark.parametrize("top_k", [None, 4])
def test_rows_of_a_model_are_kept_no_longer_than_their_block(top_k: int | None, tmp_path: Path) -> None:
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=top_k)
    kept = []

    def watch(*_: object) -> None:
        if len(kept) < 2:  # all that the process holds is looked through
            kept.extend(source.last.size for source in gc.get_objects() if type(source) in MADE_OF_A_MODEL)

    kl.score(path, np.exp(OTHERS), kind="prob", progress=watch)
    assert len(kept) > 1
    assert not any(kept)


def test_sources_whose_end_is_not_known(tmp_path: Path) -> None:
    kept = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=3).read_bytes()
    batches = (LOGITS[first : first + 10] for first in range(0, ROWS, 10))
    again = cache_reference(batches, tmp_path / "batches.safetensors", top_k=3).read_bytes()
    assert again[-ROWS * 4 * 7 :] == kept[-ROWS * 4 * 7 :]
    several = LOGITS[:80].reshape(8, 10, CELLS)
    path = cache_reference(several, tmp_path / "several.safetensors")
    report = kl.score(path, OTHERS[:80].reshape(8, 10, CELLS), kind="logit", output=tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").shape == (8, 10)
    assert report.rows == 80


def test_refusals(tmp_path: Path) -> None:
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", temperature=2.0)
    coarse = cache_reference(LOGITS, tmp_path / "coarse.safetensors", top_k=3)
    wide = np.concatenate([OTHERS, OTHERS[:, :2]], axis=1)
    logit = {"kind": "logit"}
    for arguments, words in (
        (dict(p=path, q=OTHERS, **logit), "temperature: 1.0, but .*ref.safetensors was cached at 2.0"),
        (dict(p=OTHERS, q=path, **logit), "stands in the place of P, not of Q"),
        (dict(p=coarse, q=wide, **logit), "rows of 13 cells, but .* has 11: padded cells are cut off"),
        (dict(p=coarse, q=OTHERS[:, :5], **logit), "rows of 5 cells, but .* has 11"),
        (dict(p=coarse, q=OTHERS, mask=np.ones(CELLS, bool), **logit), "two axes, and no mask"),
        (dict(p=coarse, q=OTHERS, axis=0, **logit), "rows lie along the last axis, not 0"),
        ({"p": coarse, "q": OTHERS, "normalize": False}, "normalize"),
        (dict(p=coarse, q=OTHERS[:50], **logit), "83 and 50 rows|50 and 83 rows"),
    ):
        with pytest.raises(InputError, match=words):
            kl.score(**arguments)
    same = values(coarse, OTHERS, tmp_path, **logit)
    np.testing.assert_array_equal(values(coarse, wide, tmp_path, valid_width=CELLS, **logit), same)
    target = tmp_path / "new.safetensors"
    with pytest.raises(InputError, match="is a cached reference already"):
        cache_reference(coarse, target)
    for arguments, words in (
        ({"path": tmp_path / "new.npz"}, "a reference is a .safetensors file"),
        ({"path": target, "top_k": 12}, "top_k: from 1 to 11"),
        ({"path": target, "kind": "odds"}, "kind: one of"),
        ({"path": target, "dtype": "float64"}, "dtype: one of float32, float16"),
        ({"path": target, "temperature": 0.0}, "temperature: a positive finite number"),
        ({"path": target, "temperature": 1e-320}, "temperature: a positive finite number with a finite inverse"),
        ({"path": target, "valid_width": 12}, "valid_width: from 1 to 11"),
        ({"path": target, "memory": "much"}, "memory: a whole number of bytes, or text"),
        ({"path": target, "memory": 1e9}, "memory: a whole number of bytes, or text"),
        ({"path": target, "progress": "yes"}, "progress: True, False or a function, not 'yes'"),
        ({"path": target, "top_k": True}, "top_k: a positive integer, not True"),
        ({"path": target, "valid_width": 2.5}, "valid_width: a positive integer, not 2.5"),
        ({"path": target, "threads": 0}, "threads: a positive integer, not 0"),
        ({"path": target, "temperature": "2"}, "temperature: a real number, not '2'"),
    ):
        with pytest.raises(InputError, match=words):
            cache_reference(LOGITS, **arguments)
    with pytest.raises(InputError, match=r"source: shape .4, 0., whose rows have no cells"):
        cache_reference(np.empty((4, 0)), target)
    assert not target.exists()
    with pytest.raises(InputError, match=r"q: shape .11,., which has no rows along the last axis"):
        kl.score(path, OTHERS[0], kind="logit", temperature=2.0)


def test_options_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    whole, few = tmp_path / "whole.safetensors", tmp_path / "few.safetensors"
    cache_reference(LOGITS, whole, top_k=3, valid_width=5, threads=1, temperature=2.0)
    one, three, five = map(np.int64, (1, 3, 5))
    cache_reference(LOGITS, few, top_k=three, valid_width=five, threads=one, temperature=np.float32(2.0))
    assert few.read_bytes() == whole.read_bytes()


def test_what_the_dtype_cannot_hold_is_no_mass(tmp_path: Path) -> None:
    path = cache_reference([[0.0, -1e5, 0.0]], tmp_path / "ref.safetensors", dtype="float16")
    assert open_source(path, "p").read(0, 1)[0, 1] == -np.inf
    assert kl.score(path, [[0.0, -1e5, 0.0]], kind="logit")["kl"].mean == pytest.approx(0.0, abs=1e-6)


def test_other_files_are_told_from_references(tmp_path: Path) -> None:
    path = cache_reference(LOGITS, tmp_path / "ref.safetensors", top_k=3)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])

    def rewrite(**changes: str) -> None:
        about = header["__metadata__"] | changes
        text = json.dumps(header | {"__metadata__": about}).encode().ljust(length)
        path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])

    for changes, words in (
        ({"version": "9"}, "version '9' of a reference; this is '1'"),
        ({"width": "x"}, "damaged reference"),
        ({"top_k": "5"}, "damaged reference"),
        ({"top_k": ""}, "damaged reference"),
    ):
        rewrite(**changes)
        with pytest.raises(InputError, match=words):
            open_source(path, "p")
    path.write_bytes(whole[:-8])
    with pytest.raises(InputError, match="truncated"):
        open_source(path, "p")


@pytest.mark.part(2)
@pytest.mark.parametrize("top_k", [None, 7])
@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_threads_change_no_byte(kind: str, top_k: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logarithms, "CELLS", 50_000)
    p, q = np.random.default_rng(0).gamma(1.0, size=(2, 700, 333)).astype(np.float32)
    paths = [cache_reference(p, tmp_path / f"{n}.safetensors", kind=kind, top_k=top_k, threads=n) for n in (1, 2, 3, 8)]
    assert len({path.read_bytes() for path in paths}) == 1
    means = {kl.score(paths[0], q, kind=kind, threads=n)["kl"].mean for n in (1, 2, 3, 8)}
    assert len(means) == 1
    with pytest.raises(InputError, match="threads: a positive integer, not 0"):
        cache_reference(p, tmp_path / "none.safetensors", threads=0)


@pytest.mark.parametrize(("logits", "model", "count"), [
    ([2.0, 1.0, -3.0, -4.0], [2.0, 1.0, -1e4, -1e4], 2), ([0.0, -50.0, -100.0], [0.0, -50.0, -800.0], 2),
    ([-1e4, 0.0, -2e4], [-3.0, -2.0, -900.0], 1),
])  # fmt: skip
def test_what_is_left_may_be_far_below(tmp_path, logits, model, count):
    cache_reference([logits], tmp_path / "r.safetensors", top_k=count)
    found = kl.score(tmp_path / "r.safetensors", [model], kind="logit")["kl"].mean
    kept = np.argsort(logits)[::-1][:count]
    sides = []
    for row in (logits, model):
        masses = [mpmath.exp(mpmath.mpf(x)) for x in row]
        others = mpmath.fsum(mass for k, mass in enumerate(masses) if k not in kept)
        sides.append([x / mpmath.fsum(masses) for x in (*(masses[k] for k in kept), others)])
    with mpmath.workdps(60):
        truth = mpmath.fsum(p * mpmath.log(p / q) for p, q in zip(*sides, strict=True) if p)
    assert found == pytest.approx(float(truth), rel=1e-6, abs=1e-12)


def test_one_row_against_many_with_cells_of_their_own(tmp_path):
    rows = np.random.default_rng(0).normal(size=(4, 8))
    cache_reference(rows, tmp_path / "four.safetensors", top_k=2)
    cache_reference(rows[:1], tmp_path / "one.safetensors", top_k=2)
    for name, model in (("four", rows[:1]), ("one", rows)):
        with pytest.raises(InputError, match="each with its own cells"):
            kl.score(tmp_path / f"{name}.safetensors", model, kind="logit")
    assert kl.score(tmp_path / "one.safetensors", rows[:1], kind="logit").rows == 1


def test_several_references(tmp_path):
    rows = np.random.default_rng(0).normal(size=(4, 8))
    for name in ("a", "b"):
        cache_reference(rows, tmp_path / f"{name}.safetensors")
    for given in ([tmp_path / "a.safetensors", tmp_path / "b.safetensors"], tmp_path, tmp_path / "*.safetensors"):
        with pytest.raises(InputError, match="a cached reference, which is one file"):
            kl.score(given, np.concatenate([rows, rows]), kind="logit")
