"""What importing costs, and what is ready when."""

from __future__ import annotations

import json

import pytest

import klnumba as kl
from klnumba.kernels.cache import cache_folder
from tests.kernels import sub

HEAD = """
import json, sys
from pathlib import Path
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(1)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import klnumba as kl
"""

FOREIGN = {
    "scipy", "pandas", "torch", "jax", "numba.cuda", "numba_cuda", "cuda", "cupy", "typer", "click", "rich", "pyarrow",
    "sklearn", "matplotlib", "dask", "joblib", "ml_dtypes", "multiprocessing.pool",
}  # fmt: skip


def test_import_compiles_nothing_and_loads_nothing_foreign(tmp_path):
    """Beyond what Numba itself loads, which looks for SciPy."""
    cache = tmp_path / "cache"
    program = f"""
import sys
import numba
theirs = set(sys.modules)
{HEAD}
print(json.dumps([len(compiled), sorted((set(sys.modules) - theirs) & {FOREIGN})]))
"""
    compiled, foreign = json.loads(sub.run(program, tmp_path, KLNUMBA_CACHE_DIR=str(cache)))
    assert compiled == 0
    assert foreign == []
    assert not cache.exists()


def test_import_says_nothing_and_starts_nothing(tmp_path):
    program = (
        "import threading, warnings\nwarnings.simplefilter('error')\nimport klnumba\nprint(threading.active_count())"
    )
    process = sub.start(program, tmp_path, KLNUMBA_CACHE_DIR=str(tmp_path / "cache"))
    out, err = process.communicate(timeout=60)
    assert (out.strip(), err, process.returncode) == ("1", "", 0)


def test_import_needs_no_folder(tmp_path):
    """A wish for a cache folder that cannot be is no reason to fail, at import or later."""
    wall = tmp_path / "wall"
    wall.write_text("")
    program = "import klnumba as kl\nprint(float(kl.rel_entr(1.0, 1.0)), kl.info()['cache_folder'][:4])"
    assert sub.run(program, tmp_path, KLNUMBA_CACHE_DIR=str(wall / "below")) == "0.0 none"


COUNTED = """
import json

from numba.core.dispatcher import Dispatcher

compiled, usual = [], Dispatcher.compile

def compile(self, signature):
    compiled.append(1)  # or loaded
    return usual(self, signature)

Dispatcher.compile = compile
import klnumba as kl
"""
WARM = """
kl.warmup(dtypes=("float64",))
ready = len(compiled)
for d in (10, 1000):
    kl.kl_divergence([1.0] * d, [2.0] * (d - 1) + [3.0])
kl.kl_divergence([0.0, 1.0], [1.0, 0.0], kind="logit")
print(json.dumps([ready, len(compiled) - ready]))
"""


def test_warmup_leaves_nothing_for_the_first_call(tmp_path):
    """Of one dtype, with the cache of these tests: no loop is compiled later, nor loaded."""
    ready, later = json.loads(sub.run(COUNTED + WARM, tmp_path, seconds=180, **sub.shared()))
    assert ready > 5
    assert later == 0


@pytest.mark.slow
def test_warmup_compiles_and_leaves_nothing_for_the_first_call(tmp_path):
    cache = tmp_path / "cache"
    ready, later = json.loads(sub.run(HEAD + WARM, tmp_path, seconds=180, KLNUMBA_CACHE_DIR=str(cache)))
    assert ready > 0
    assert later == 0
    assert any(cache.rglob("*.nbc"))
    assert json.loads(sub.run(HEAD + WARM, tmp_path, KLNUMBA_CACHE_DIR=str(cache))) == [0, 0]


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex128"])
def test_warmup_of_another_dtype(dtype):
    with pytest.raises(ValueError, match=dtype):
        kl.warmup(dtypes=(dtype,))


def test_info_is_json():
    info = kl.info()
    assert json.loads(json.dumps(info)) == info
    assert set(info) == {"versions", "cpu", "threads", "cache_folder", "cuda"}
    assert info["versions"]["klnumba"] == kl.__version__
    assert info["threads"]["available"] >= 1
    assert info["cache_folder"] == str(cache_folder())
