"""Rows of float32 logits however close, in float32 arithmetic; only what is below its range goes another way."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels import fast, logits


@pytest.mark.parametrize("width", [fast.SHORT, fast.SHORT + 1, 3000])
def test_rows_of_every_closeness_in_one_call(width):
    """As float64 rows of the same numbers give them, whatever the neighbours are."""
    rng = np.random.default_rng(7)
    p = (3 * rng.standard_normal((23, width))).astype(np.float32)
    scale = np.array([1.0, 1e-1, 1e-3, 1e-5, 1e-6, 0.0])[np.arange(23) % 6, None]
    q = (p * (1 + scale * rng.standard_normal(p.shape))).astype(np.float32)
    q[5] += np.float32(2.0)  # equal but for a constant, or nearly
    q[17, 0], p[17, 0] = np.float32(-20.0), np.nextafter(np.float32(-20.0), np.float32(0.0))
    values = kl.kl_divergence(p, q, kind="logit", dtype=np.float32)
    exact = kl.kl_divergence(p.astype(np.float64), q.astype(np.float64), kind="logit")
    np.testing.assert_allclose(values, exact, rtol=3e-7, atol=1e-45)
    alone = [kl.kl_divergence(a, b, kind="logit", dtype=np.float32) for a, b in zip(p, q, strict=True)]
    np.testing.assert_array_equal(values, alone)
    assert 0.0 < exact[17] < logits.LEAST["float32"] < exact[5] < 1e-13
    assert (values[11::12] == 0.0).all()
