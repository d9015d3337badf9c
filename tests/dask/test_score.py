"""Scoring dask arrays gives the report of one machine."""

import numpy as np
import pytest

import klnumba as kl
from tests.metrics.states import assert_same

da = pytest.importorskip("dask.array", reason="dask is not installed")
import klnumba.dask as lazy  # noqa: E402

RNG = np.random.default_rng(3)
P, Q = RNG.dirichlet(np.ones(9), (2, 1000))
MASK = RNG.random((1000, 9)) < 0.4


@pytest.mark.parametrize("chunks", [(1000, 9), (77, 4)], ids=str)
@pytest.mark.parametrize("options", [
    {}, {"stats": ("kl", "reverse_kl", "argmax_agree"), "base": 2}, {"kind": "logit", "temperature": 2.0},
    {"valid_width": 5, "thresholds": (0.5,)}, {"mask": MASK},
], ids=lambda x: ",".join(x) or "plain")  # fmt: skip
def test_the_report_of_one_machine(options, chunks):
    found = lazy.score(da.from_array(P, chunks), da.from_array(Q, (300, 9)), **options).compute(scheduler="threads")
    want = kl.score(P, Q, **options)
    assert (found.rows, found.masked_rows, found.unit) == (want.rows, want.masked_rows, want.unit)
    assert found.states.keys() == want.states.keys()
    for name, state in want.states.items():
        assert_same(found.states[name].state_dict(), state.state_dict())


def test_rows_that_are_none():
    p = P.copy()
    p[700, 2] = np.nan
    found = lazy.score(da.from_array(p, (300, 9)), Q).compute(scheduler="threads")
    assert found["kl"].nan == 1
    assert found.first_invalid == kl.score(p, Q).first_invalid == "p: row 700 of shape (9,), cell 2 is NaN (nan)"
    with pytest.raises(ValueError, match=r"p: row 700 of shape"):
        lazy.score(da.from_array(p, (300, 9)), Q, invalid="raise").compute(scheduler="threads")


@pytest.mark.parametrize(("arguments", "options", "error", "text"), [
    ((P, Q[:5]), {}, ValueError, r"p, q: two matrices of one shape, not \(1000, 9\) and \(5, 9\)"),
    ((P, Q), {"output": "x.npy"}, TypeError, "output: not an option of scoring dask arrays"),
    ((P, Q), {"base": 1}, ValueError, "base"), ((P, Q), {"stats": ("x",)}, ValueError, "'x'"),
    ((P, Q), {"mask": MASK[:3]}, ValueError, r"mask: a cell of it for each of p, of shape \(1000, 9\)"),
])  # fmt: skip
def test_wrong_arguments(arguments, options, error, text):
    with pytest.raises(error, match=text):
        lazy.score(*arguments, **options)


def test_no_rows():
    rows = da.zeros((0, 12), chunks=(4, 5))
    assert lazy.score(rows, rows).compute().rows == 0
    assert lazy.accumulate(kl.KLDivergence(), rows, rows).compute().rows == 0


def test_a_mask_for_each_cell():
    rows = da.from_array(np.random.default_rng(0).random((12, 12)), chunks=(1, 12))
    for mask in (np.arange(12) < 6, np.ones((12, 3), bool)):
        with pytest.raises(ValueError, match=r"mask: a cell of it for each of p, of shape \(12, 12\)"):
            lazy.score(rows, rows, mask=mask)
    mask = np.arange(12)[:, None] < 6
    assert lazy.score(rows, rows, mask=mask).compute().rows == kl.score(rows.compute(), rows.compute(), mask=mask).rows
