"""Cells and counts against the slow reference; threads, blocks, dtypes."""

from __future__ import annotations

import math
import platform
import re

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")

from hypothesis import given, settings
from hypothesis import strategies as st

from klnumba.kernels import threads
from klnumba.tables import cells, columns, counting
from tests.kernels import sub
from tests.reference import tables as reference

NUMBERS = st.one_of(st.floats(width=64), st.sampled_from([0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan, 5e-324]))


def tally(values, edges, weights=None):
    column = columns.Numbers("x", "number", len(values), lambda: np.asarray(values), view=True)
    found = counting.count([column], [cells.Bins("number", np.asarray(edges, float))], weights)[0]
    assert isinstance(found, counting.Tally), found
    return found


@settings(deadline=None, max_examples=200)
@given(
    st.lists(NUMBERS, max_size=1500),
    st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=90, unique=True),
    st.booleans(),
)
def test_counts_are_those_of_the_reference(values, edges, twice):
    edges = sorted(edges)
    edges += [edges[-1]] if twice else []  # a last bin that holds one value alone
    found = tally(np.array(values, float), edges)
    slow = reference.counted(values, edges)
    if twice:  # the reference's bisection puts the last edge into the last bin as well
        slow = reference.counted([v for v in values if v != edges[-1]], edges)
        slow[len(edges) - 1] += sum(v == edges[-1] for v in values)
    assert found.counts.tolist() == slow
    assert found.counts.dtype == np.int64


@pytest.mark.parametrize("edges", [[], [1.0, 1.0], [0.0, 1.0], list(range(64)), list(range(65)), list(range(300))])
def test_every_number_of_edges(edges):
    values = np.concatenate([np.arange(-3, 303) / 2, [math.nan, math.inf, -math.inf]])
    slow = reference.counted(values.tolist(), edges)
    assert tally(values, edges).counts.tolist() == slow


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int8", "int32", "int64", "uint8", "uint64", "bool"]
)
@pytest.mark.parametrize("layout", ["plain", "strided", "reversed", "read-only", "swapped"])
def test_dtypes_and_layouts(dtype, layout):
    values = (np.arange(1000) % 7).astype(dtype)
    expected = reference.counted(values.astype(float).tolist(), [1.0, 3.0, 5.0])
    if layout == "strided":
        values = np.repeat(values, 3)[::3]
    elif layout == "reversed":
        values = values[::-1]
    elif layout == "read-only":
        values.flags.writeable = False
    elif layout == "swapped":
        values = values.astype(values.dtype.newbyteorder(">"))
    assert tally(values, [1.0, 3.0, 5.0]).counts.tolist() == expected


def test_threads_and_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(3 * counting.BLOCK + 17), rng.random(3 * counting.BLOCK + 17)
    edges = np.linspace(-2, 2, 11)
    results = []
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "choose", lambda wanted, cells, count=count: count)
        results.append((tally(values, edges), tally(values, edges, weights)))
    for plain, weighted in results[1:]:
        np.testing.assert_array_equal(plain.counts, results[0][0].counts)
        np.testing.assert_array_equal(weighted.counts, results[0][1].counts)
        np.testing.assert_array_equal(weighted.squares, results[0][1].squares)
    assert results[0][0].counts.sum() == values.size


def test_weights_are_added_up_by_cell():
    values, weights = np.array([0.5, 1.5, 1.5, math.nan, 9.0]), np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    found = tally(values, [0.0, 1.0, 2.0], weights)
    assert found.counts.tolist() == [0, 1, 5, 0, 0, 0, 4]
    assert found.squares.tolist() == [0, 1, 13, 0, 0, 0, 16]
    assert found.effective() == pytest.approx(100 / 30)


def test_categories_of_numbers_are_exact_matches():
    names = (3, 0, 7)
    values = np.array([0.0, -0.0, 3.0, np.nextafter(3.0, 4), 7.0, 7.5, -math.inf, math.inf, math.nan, 1e300])
    column = columns.Numbers("x", "number", values.size, lambda: values)
    found = counting.count([column], [cells.Categories("number", names)])[0]
    assert found.counts.tolist() == [1, 2, 1, 5, 1]
    assert found.unseen == {np.nextafter(3.0, 4): 1, 7.5: 1, "-inf": 1, "inf": 1, 1e300: 1}


@pytest.mark.skipif(platform.machine().lower() not in {"x86_64", "amd64"}, reason="reads the assembly of x86-64 alone")
def test_comparisons_with_edges_are_vectorised(tmp_path):
    program = "from klnumba.kernels import cpu; print('\\n'.join(cpu.count_numbers().inspect_asm().values()))"
    assembly = sub.run(program, tmp_path, seconds=120, KLNUMBA_CACHE="0")
    packed = re.findall(r"\bv?cmp\w*pd\b", assembly)
    scalar = re.findall(r"\bv?u?comisd\b|\bv?cmp\w*sd\b", assembly)
    assert len(packed) >= 10, f"{len(packed)} packed comparisons, {len(scalar)} of single numbers"
