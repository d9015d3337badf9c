"""Peak memory beyond the inputs, of columns in which every name is another and of files in pieces."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the tables is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")
pytest.importorskip("pyarrow", reason="the names lie in Arrow's layout")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory in use from /proc")

LIMIT = 200  # MiB, as promised of every table in memory; measured are 40 to 120
CODE = """
import ctypes, gc, pathlib, sys
import numpy as np, pyarrow as pa
from klnumba.tables import compare, scan

def status(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

def names(rows, columns, seed):
    draws = np.random.default_rng(seed)
    made = {{f"c{{k}}": pa.array(np.char.add("identifier-", draws.permutation(2 * rows)[:rows].astype(str)))
            for k in range(columns)}}
    return pa.table(made)

{prepare}
compare({warm})
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
pathlib.Path("/proc/self/clear_refs").write_text("5")
start = status("VmRSS")
found = compare(before, after)
assert found.to_frame()["status"].eq("ok").all()
print(status("VmHWM") - start)
"""
NAMES = "before, after = names({rows}, {columns}, 0), names({rows}, {columns}, 1)"
FILE = """
import pyarrow.parquet as pq
draws = np.random.default_rng(0)
path = sys.argv[1] + "/numbers.parquet"
with pq.ParquetWriter(path, pa.schema([(f"c{k}", pa.float64()) for k in range(8)])) as file:
    for _ in range(30):
        file.write_table(pa.table({f"c{k}": draws.standard_normal(50_000) for k in range(8)}))
before = after = scan(path, rows=50_000)
"""


def beyond(prepare, warm, folder):
    """The peak of a process of its own, in MiB, beyond what the inputs take."""
    code = CODE.format(prepare=prepare, warm=warm)
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.part(2)
@pytest.mark.parametrize(("rows", "columns"), [(100_000, 24), (500_000, 2)])
def test_columns_of_different_names(rows, columns, tmp_path):
    prepare = NAMES.format(rows=rows, columns=columns)
    assert beyond(prepare, "before.slice(0, 1000), after.slice(0, 1000)", tmp_path) < LIMIT


def test_a_column_of_a_million_names(tmp_path):
    """The table of names itself takes 77 MiB; while it grew, it had left 50 more behind."""
    one = "{'c0': pa.array([f'identifier-{k}' for k in range(1_000_000)])}"
    prepare = f"before = after = pa.table({one})"
    assert beyond(prepare, "before.slice(0, 1000), after.slice(0, 1000)", tmp_path) < 120


LINES = """
import json
draws, rows = np.random.default_rng(0), 30_000
columns = [np.char.add("identifier-", draws.permutation(2 * rows)[:rows].astype(str)).tolist() for _ in range(24)]
path = sys.argv[1] + "/names.jsonl"
with open(path, "w") as file:
    for row in zip(*columns):
        file.write(json.dumps({f"c{k}": one for k, one in enumerate(row)}) + "\\n")
del columns, row
before = after = scan(path)
"""


def test_a_wide_file_of_lines(tmp_path):
    """A piece takes 30 MiB as objects of Python's."""
    one = 'pa.table({"c0": ["a", "b"] * 500})'
    assert beyond(LINES, f"{one}, {one}", tmp_path) < 150


WIDE = """
import pyarrow.parquet as pq
table = names(100_000, 24, 0)
path = sys.argv[1] + "/names.parquet"
pq.write_table(table, path)
del table
pa.default_memory_pool().release_unused()
before = after = scan(path)
"""


@pytest.mark.slow
def test_a_wide_file_of_different_names(tmp_path):
    """Read all at once, Parquet's dictionaries of 24 columns take 100 MiB."""
    one = 'pa.table({"c0": ["a", "b"] * 500})'
    assert beyond(WIDE, f"{one}, {one}", tmp_path) < 150


TEXTS = """
draws, rows = np.random.default_rng(0), 300_000
path = sys.argv[1] + "/texts.csv"
numbers = [draws.permutation(2 * rows)[:rows].astype(str) for _ in range(8)]
pa.csv.write_csv(pa.table([pa.array(np.char.add("identifier-", one)) for one in numbers], [*"abcdefgh"]), path)
del numbers
before = after = scan(path)
"""


def test_a_file_of_different_texts_in_pieces(tmp_path):
    """300,000 rows of 8 columns, in each of which the names take 40 MiB while the cells are fitted."""
    one = 'pa.table({"c0": ["a", "b"] * 500})'
    assert beyond("import pyarrow.csv\n" + TEXTS, f"{one}, {one}", tmp_path) < LIMIT


def test_a_file_in_pieces(tmp_path):
    """1,500,000 rows of 8 numbers: 92 MiB, of which a piece is 3."""
    one = 'pa.table({"c0": np.arange(500.0)})'
    assert beyond(FILE, f"{one}, {one}", tmp_path) < LIMIT


WEIGHTS = """
import functools, {library}
draws, rows = np.random.default_rng(0), 6_000_000
numbers = {{f"c{{k}}": draws.standard_normal(rows) for k in range(6)}} | {{"w": np.arange(rows) % 2.0}}
before = after = {make}
del numbers
compare = functools.partial(compare, weights="w")
"""
MAKE = {"pandas": "pandas.DataFrame(numbers, copy=False)", "polars": "polars.DataFrame(numbers)"}


@pytest.mark.part(2)
@pytest.mark.parametrize("library", MAKE)
def test_rows_of_weight_0_are_left_out_without_copies_of_the_others(library, tmp_path, monkeypatch):
    """The half that has a weight takes 160 MiB on each side."""
    pytest.importorskip(library, reason="makes the frame")
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "4")
    prepare = WEIGHTS.format(library=library, make=MAKE[library])
    assert beyond(prepare, "before.head(1000), after.head(1000)", tmp_path) < LIMIT


BLOCKS = """
import functools, pandas
draws, rows = np.random.default_rng(0), 12_000_000
numbers = {{"c": draws.standard_normal(rows), "k": draws.integers(0, 10**6, rows).astype(np.int32)}}
before = after = pandas.DataFrame(numbers | {{"w": {weights}}}, copy=False)
del numbers
compare = functools.partial(compare, weights={name})
"""


@pytest.mark.part(4)
@pytest.mark.parametrize(
    ("weights", "name"),
    [("0", None), ("np.arange(rows) % 2.0", "w"), ("np.arange(rows, dtype=np.int32) % 2", "w"), ("np.int8(3)", "w")],
)
def test_numbers_and_weights_are_looked_at_a_block_at_a_time(weights, name, tmp_path):
    """One column as float64 takes 92 MiB, the half that has a weight 46; measured are 16 to 28."""
    prepare = BLOCKS.format(weights=weights, name=repr(name))
    assert beyond(prepare, "before.head(1000), after.head(1000)", tmp_path) < 40
