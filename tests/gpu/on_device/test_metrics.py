"""Accumulators of rows on a device: a number a row comes to the host, and the state is that of the CPU."""

import numpy as np

import klnumba as kl
from tests.gpu.on_device.arrays import put

P, Q = np.random.default_rng(0).gamma(1.0, size=(2, 6, 20)) + 0.01


def test_updates_and_groups():
    for kind in ("prob", "logit"):
        here, there = (kl.KLDivergence(kind=kind, agreement=True) for _ in range(2))
        here.update(P, Q, groups=[0, 1, 0, 1, 2, 2], weights=[1, 2, 1, 0, 1, 1])
        there.update(put(P), put(Q), groups=[0, 1, 0, 1, 2, 2], weights=[1, 2, 1, 0, 1, 1])
        np.testing.assert_allclose(there.compute().values, here.compute().values, rtol=1e-14)
        assert there.rows == here.rows
        assert there.labels == here.labels


def test_narrow_rows_keep_the_digits_of_their_values():
    metric = kl.KLDivergence(reduction="none")
    p, q = P.astype(np.float32), Q.astype(np.float32)
    metric.update(put(p), put(q))
    np.testing.assert_allclose(metric.compute(), kl.kl_divergence(p.astype(float), q.astype(float)), rtol=1e-6)
    assert metric.compute().dtype == np.float64
