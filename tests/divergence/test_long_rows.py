"""One long row of probabilities, in pieces: quickly, and as the exact way has it."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import long_rows
from klnumba.kernels.tiles import CHUNK

D = 2 * CHUNK + 77
FUNCTIONS = ("kl_divergence", "js_divergence", "jeffreys_divergence", "cross_entropy", "entropy")
# The largest differences seen are 1 ulp in float64, and in float32 none.
BOUND = {"float64": 3, "float32": 1}


def _normalized(p, q):
    return p / p.sum(), q / q.sum()


def _counts(p, q):
    return np.floor(50.0 * p) + 1.0, np.floor(40.0 * q) + 1.0


def _confident(p, q):
    p[7], q[7] = 1e12, 1e12
    return _normalized(p, q)


FAMILIES = {"normalized": _normalized, "counts": _counts, "confident": _confident}


def rows(family, dtype):
    return (x.astype(dtype) for x in FAMILIES[family](*np.random.default_rng(3).gamma(1.0, size=(2, D)) + 1e-12))


def call(function, p, q, **settings):
    return kl.entropy(p, **settings) if function == "entropy" else getattr(kl, function)(p, q, **settings)


@pytest.fixture
def reads(monkeypatch):
    """The reads that are made."""
    made, once = [], long_rows.state_of

    def state_of(read, *rest):
        made.append(read.loop)
        return once(read, *rest)

    monkeypatch.setattr(long_rows, "state_of", state_of)
    return made


@pytest.mark.part(5)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_the_exact_way_has_it(function, family, normalize, dtype, monkeypatch):
    p, q = rows(family, dtype)
    value = call(function, p, q, normalize=normalize)
    assert call(function, p, q, normalize=normalize, threads=1) == value
    monkeypatch.setattr(long_rows, "is_quick", lambda *_: False)
    exact = call(function, p, q, normalize=normalize)
    assert abs(value - exact) <= BOUND[dtype] * np.spacing(abs(exact))


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_read(function, dtype, reads):
    """Rows that were normalised once, others a second time, scaled."""
    call(function, *rows("normalized", dtype))
    assert set(reads) == {"quick"}
    reads.clear()
    call(function, *rows("counts", dtype))
    assert set(reads) <= {"quick", "scaled"}
    assert "scaled" in reads or function in ("kl_divergence", "jeffreys_divergence")  # whose masses may differ


def test_either_order():
    p, q = rows("counts", "float64")
    assert kl.js_divergence(p, q) == kl.js_divergence(q, p)
    assert kl.jeffreys_divergence(p, q) == kl.jeffreys_divergence(q, p)


@pytest.mark.part(2)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_outside_the_domain(function, normalize):
    p, q = rows("normalized", "float64")
    p[CHUNK + 5] = np.nan
    assert np.isnan(call(function, p, q, normalize=normalize))
    p[CHUNK + 5] = -1e-3
    assert np.isnan(call(function, p, q, normalize=normalize))
    p[:] = 0.0
    assert np.isnan(call(function, p, q))


@pytest.mark.parametrize("normalize", [True, False])
def test_mass_where_q_has_none(normalize):
    p, q = rows("normalized", "float64")
    q[CHUNK + 5] = 0.0
    for function in ("kl_divergence", "jeffreys_divergence", "cross_entropy"):
        assert call(function, p, q, normalize=normalize) == np.inf
    assert np.isfinite(kl.js_divergence(p, q, normalize=normalize))
