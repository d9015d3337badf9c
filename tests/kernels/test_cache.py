"""The cache of compiled loops: found again, never stale, never in the way."""

from __future__ import annotations

import json
import math

import numba
import pytest
from numba.core import codegen

from klnumba.kernels import compiler, libraries
from klnumba.kernels.cache import cache_in
from tests.kernels import sub

# Prints the value, how many loops were compiled and how many came out of the cache, where the cache is, and whether
# Numba has loaded what it needs to compile.
PROGRAM = """
import json
import sys
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(str(event.data["dispatcher"].py_func.__qualname__))
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())

import klnumba as kl
from klnumba.kernels import cpu
from klnumba.kernels.cache import cache_folder

value = float(kl.rel_entr(0.5, 0.25))
loop = cpu.cells_pointwise("rel_entr", "float64")
folder = cache_folder()
print(json.dumps({"value": value, "compiled": len(compiled), "hits": sum(loop.stats.cache_hits.values()),
                  "folder": folder and str(folder), "compiler": "numba.np.arraymath" in sys.modules}))
"""
VALUE = 0.5 * math.log(2.0)


def ask(tmp_path, path=sub.PACKAGE.parent, **settings):
    return json.loads(sub.run(PROGRAM, tmp_path / "work", path, **settings))


def right(answer):
    return answer["value"] == pytest.approx(VALUE, rel=1e-15)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in {".nbi", ".nbc"})


def test_a_second_process_compiles_nothing(tmp_path):
    cache = tmp_path / "cache"
    first = ask(tmp_path, KLNUMBA_CACHE_DIR=str(cache))
    assert right(first)
    assert first["compiled"]
    assert first["hits"] == 0
    kept = {path: path.stat().st_mtime_ns for path in files(cache)}
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    second = ask(tmp_path, KLNUMBA_CACHE_DIR=str(cache))
    assert second["value"] == first["value"]
    assert not second["compiled"]
    assert second["hits"] == 1
    assert first["compiler"]
    assert not second["compiler"]  # a finished loop is there in a tenth of the time
    assert {path: path.stat().st_mtime_ns for path in files(cache)} == kept


def test_what_is_kept_of_one_signature_is_not_written_for_another(tmp_path):
    """Else of two processes that write at once one leaves an index that belongs to the machine code of the other."""
    from numba.core import caching

    parts = caching._CacheLocator, caching.CompileResultCacheImpl, caching.Cache
    kept = cache_in(tmp_path, "stamp", "name", *parts)(lambda: None)._cache_file
    kept.save(("float64", "cpu"), 1)
    before = {path: path.read_bytes() for path in files(tmp_path)}
    kept.save(("int64", "cpu"), 2)
    assert {path: path.read_bytes() for path in before} == before
    assert len(files(tmp_path)) == 2 * len(before)
    assert [kept.load((name, "cpu")) for name in ("float64", "int64", "float32")] == [1, 2, None]


# Digests of the bits of results, computed in the order that is asked for.
BITS = """
import hashlib
import json
import numpy as np
import klnumba as kl
from klnumba.distributions import Gamma

rng = np.random.default_rng(0)
x = 3.0 * rng.standard_normal((40, 1000))
y = x + rng.standard_normal(x.shape)
p, q = np.exp(x), np.exp(y)
rows = (x, y) if KIND == "logit" else (p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True))  # one loop serves
work = {
    "rows": lambda: kl.kl_divergence(*rows, kind=KIND),
    "pairs": lambda: kl.kl_divergence(Gamma(p, q), Gamma(q, p)),
}
names = sorted(work, reverse=REVERSED)
print(json.dumps({name: hashlib.sha256(np.ascontiguousarray(work[name]())).hexdigest() for name in names}))
"""


@pytest.mark.parametrize("kind", ["prob", pytest.param("logit", marks=pytest.mark.slow)])
def test_bits_come_neither_from_the_cache_nor_from_the_order(tmp_path, kind):
    """Of loops that are compiled in one order, come out of the cache in another, and are compiled in that other."""

    def bits(order, cache):
        program = f"REVERSED, KIND = {order}, {kind!r}\n{BITS}"
        return json.loads(sub.run(program, tmp_path / "work", seconds=300, KLNUMBA_CACHE_DIR=str(tmp_path / cache)))

    compiled = bits(False, "first")
    assert bits(True, "first") == compiled
    assert bits(True, "second") == compiled


@pytest.fixture
def unknown():
    """What is known of this Numba is asked again."""
    libraries.is_known.cache_clear()
    yield
    libraries.is_known.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_a_numba_that_compiles_otherwise_is_told_of(monkeypatch):
    """The loop works; that its pieces are not its own is said. In the place of all steps is the last one alone."""
    library = codegen.CPUCodeLibrary
    monkeypatch.setattr(library, "finalize", library._finalize_final_module)
    monkeypatch.delattr(library, "_optimize_final_module")
    with pytest.warns(RuntimeWarning, match="the last digits of results may differ"):
        made = compiler.loop("told", lambda x: x + 1.0, numba.float64(numba.float64), cached=False)
    assert made(2.0) == 3.0


@pytest.mark.part(2)
@pytest.mark.parametrize("word", ["0", "False"])
def test_switched_off(tmp_path, word):
    cache = tmp_path / "cache"
    answer = ask(tmp_path, KLNUMBA_CACHE=word, KLNUMBA_CACHE_DIR=str(cache))
    assert right(answer)
    assert answer["compiled"]
    assert not cache.exists()


def test_no_folder_can_be_written(tmp_path):
    """Every folder of the cache would lie below a file. (Permissions would not stop an administrator.)"""
    wall = tmp_path / "wall"
    wall.write_text("a file, not a folder")
    package = sub.copied_package(tmp_path / "copy")
    (package / "klnumba" / "__pycache__").mkdir(exist_ok=True)
    (package / "klnumba" / "__pycache__" / "kernels").write_text("a file, not a folder")
    below = str(wall / "below")
    homes = {"HOME": below, "XDG_CACHE_HOME": below, "LOCALAPPDATA": below, "USERPROFILE": below}
    answer = ask(tmp_path, package, **homes)
    assert right(answer)
    assert answer["compiled"]
    assert answer["folder"] is None
    assert right(ask(tmp_path, package, **homes, KLNUMBA_CACHE_DIR=below))
    assert wall.read_text() == "a file, not a folder"
    assert not files(tmp_path)


def test_the_users_cache_folder_is_the_default(tmp_path):
    package = sub.copied_package(tmp_path / "copy")
    home = str(tmp_path / "home")
    answer = ask(tmp_path, package, HOME=home, XDG_CACHE_HOME=home, LOCALAPPDATA=home)
    assert right(answer)
    assert answer["folder"].startswith(str(tmp_path / "home" / "klnumba"))
    assert files(tmp_path / "home")


def test_an_edited_formula_is_never_stale(tmp_path):
    """A helper of a helper, in another file than the loop that holds it."""
    package = sub.copied_package(tmp_path / "copy")
    cache = tmp_path / "cache"
    assert right(ask(tmp_path, package, KLNUMBA_CACHE_DIR=str(cache)))
    source = package / "klnumba" / "formulas" / "divergences.py"
    text = source.read_text(encoding="utf-8")
    edited = text + "\n\ndef log_ratio(p, q, d):\n    return 42.0\n\ndef plain(p, q):\n    return False\n"
    source.write_text(edited, encoding="utf-8")
    answer = ask(tmp_path, package, KLNUMBA_CACHE_DIR=str(cache))
    assert answer["value"] == 21.0
    assert answer["compiled"]
    source.write_text(text, encoding="utf-8")
    again = ask(tmp_path, package, KLNUMBA_CACHE_DIR=str(cache))
    assert right(again)
    assert not again["compiled"]


def test_another_copy_of_the_package_has_its_own(tmp_path):
    """Two installations that share a folder do not load each other's loops."""
    cache = tmp_path / "cache"
    for name in ("one", "two"):
        answer = ask(tmp_path, sub.copied_package(tmp_path / name), KLNUMBA_CACHE_DIR=str(cache))
        assert right(answer)
        assert answer["compiled"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache with one loop in it, as names and bytes."""
    folder = tmp_path_factory.mktemp("filled")
    assert right(ask(folder, KLNUMBA_CACHE_DIR=str(folder / "cache")))
    return {path.relative_to(folder / "cache"): path.read_bytes() for path in files(folder / "cache")}


DAMAGES = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "noise": lambda data: b"\x93no pickle at all" * 20,
}


@pytest.mark.part(4)
@pytest.mark.parametrize(
    ("suffix", "damage"), [(".nbi", "empty"), (".nbi", "noise"), (".nbc", "truncated"), (".nbc", "noise")]
)
def test_a_damaged_file_is_survived(tmp_path, filled, suffix, damage):
    cache = tmp_path / "cache"
    for name, data in filled.items():
        path = cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DAMAGES[damage](data) if path.suffix == suffix else data)
    answer = ask(tmp_path, KLNUMBA_CACHE_DIR=str(cache))
    assert right(answer)
    assert answer["compiled"]


def test_a_folder_in_the_place_of_a_file(tmp_path, filled):
    cache = tmp_path / "cache"
    for name in filled:
        (cache / name).mkdir(parents=True)
    assert right(ask(tmp_path, KLNUMBA_CACHE_DIR=str(cache)))


@pytest.mark.part(2)
@pytest.mark.parametrize("setting", ["NUMBA_OPT", "NUMBA_BOUNDSCHECK"])
def test_settings_of_numba_have_loops_of_their_own(tmp_path, setting):
    """What was compiled without optimisation, to look at it in a debugger, is not what later processes get."""
    cache = {"KLNUMBA_CACHE_DIR": str(tmp_path / "cache")}
    usual, changed = ask(tmp_path, **cache), ask(tmp_path, **cache, **{setting: "1"})
    assert right(changed)
    assert changed["compiled"]
    assert changed["folder"] != usual["folder"]
    again = ask(tmp_path, **cache)
    assert (again["folder"], again["hits"]) == (usual["folder"], 1)


def test_plain_python_is_for_the_callers_code(tmp_path):
    """NUMBA_DISABLE_JIT leaves these loops compiled, with the same bits, and the caller's functions uncompiled."""
    cache = {"KLNUMBA_CACHE_DIR": str(tmp_path / "cache")}
    disabled = ask(tmp_path, **cache, NUMBA_DISABLE_JIT="1")
    assert disabled["compiled"]
    usual = ask(tmp_path, **cache)
    assert usual["value"] == disabled["value"]
    assert usual["hits"] == 1
    program = """
import numba
import klnumba as kl
from klnumba.distributions import Normal

kl.kl_divergence(Normal(0.0, 1.0), Normal(1.0, 2.0))
own = lambda x: x
print(numba.njit(own) is own, numba.config.DISABLE_JIT)
"""
    assert sub.run(program, tmp_path / "work", **cache, NUMBA_DISABLE_JIT="1") == "True 1"


def test_two_processes_at_once(tmp_path):
    cache = tmp_path / "cache"
    settings = {"KLNUMBA_CACHE_DIR": str(cache)}
    both = [sub.start(PROGRAM, tmp_path / name, **settings) for name in ("one", "two")]
    assert all(right(json.loads(sub.finish(process))) for process in both)
    third = ask(tmp_path, **settings)
    assert right(third)
    assert not third["compiled"]
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix not in {".nbi", ".nbc"}]


def test_formulas_of_one_text_have_names_of_their_own():
    """A formula that closes over another would else be found in the cache under the name of its like."""

    def one(x):
        return x

    def other(x):
        return -x

    def over(formula, number=1.0):
        def made(x):
            return formula(x) * number

        return made

    names = {compiler.name_of(x) for x in (one, other, over(one), over(other), over(one, 2.0), over(over(one)))}
    assert len(names) == 6
    assert compiler.name_of(over(one)) == compiler.name_of(over(one))
