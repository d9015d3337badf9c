"""Float32 logits that are too close for float32 arithmetic: three ways serve one call, each row the right one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import klnumba as kl
from klnumba.engine import _runs
from klnumba.kernels import logits


@pytest.mark.parametrize("index", [[], [0], [3], [0, 1, 2], [0, 2, 3, 7], [1, 2, 4, 5, 6, 9]])
def test_runs_are_the_numbers_in_stretches(index):
    runs = _runs(np.array(index, int))
    assert [k for run in runs for k in range(run.start, run.stop)] == index
    assert all(a.stop < b.start for a, b in itertools.pairwise(runs))


@pytest.mark.parametrize("width", [logits.MANY, logits.MANY + 1, 3000])
def test_rows_of_every_closeness_in_one_call(width):
    """As float64 rows of the same numbers give them, whatever the neighbours are."""
    rng = np.random.default_rng(7)
    p = (3 * rng.standard_normal((23, width))).astype(np.float32)
    scale = np.array([1.0, 1e-1, 1e-3, 1e-5, 1e-6, 0.0])[np.arange(23) % 6, None]
    q = (p * (1 + scale * rng.standard_normal(p.shape))).astype(np.float32)
    q[5] += np.float32(2.0)  # equal but for a constant, or nearly
    values = kl.kl_divergence(p, q, kind="logit", dtype=np.float32)
    exact = kl.kl_divergence(p.astype(np.float64), q.astype(np.float64), kind="logit")
    np.testing.assert_allclose(values, exact, rtol=3e-7, atol=1e-45)
    alone = [kl.kl_divergence(a, b, kind="logit", dtype=np.float32) for a, b in zip(p, q, strict=True)]
    np.testing.assert_array_equal(values, alone)
    assert (exact[3:5] < logits.LEAST["float32"]).all()
    assert (exact[:3] > logits.LEAST["float32"]).all()
    assert (values[11::6] == 0.0).all()
