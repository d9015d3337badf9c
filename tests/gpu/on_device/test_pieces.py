"""Rows that are cut into pieces, against the exact value."""

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels.cuda import choice, machine
from tests.gpu.on_device.arrays import SIMULATED, get, put
from tests.gpu.on_device.test_accuracy import assert_within, settings_name
from tests.reference.accuracy_table import SETTINGS
from tests.reference.row_families import draw, families

D = choice.SPLIT + choice.PIECE // 3
FAMILIES = ("ordinary", "sum to one", "near", "counts", "peaked")


@pytest.mark.parametrize("setting", SETTINGS, ids=settings_name)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_families(dtype, setting):
    kind, normalize = setting
    rng = np.random.default_rng([1, len(kind)])
    rows = [draw(families(dtype)[name], rng, D, kind, dtype) for name in FAMILIES]
    assert_within(rows, kind, normalize, dtype, FAMILIES)


def test_sums_that_overflow_and_rows_that_are_none():
    rng = np.random.default_rng(2)
    p, q = rng.gamma(1.0, size=(2, 5, D)) + 0.01
    p[0] *= 1e307
    q[1, 7] = np.nan
    p[2, 9] = -1.0
    q[3] = 0.0
    result = get(kl.kl_divergence(put(p), put(q)))
    np.testing.assert_allclose(result, kl.kl_divergence(p, q), rtol=1e-14)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["logit", "log_prob"])
def test_logarithms_of_rows_that_are_none(kind, normalize):
    """What the CPU gives, and short rows: NaN, which no further look at the row makes a number of."""
    ordinary = np.random.default_rng(5).normal(size=D)
    nothing, last, nan = np.full(D, -np.inf), ordinary.copy(), ordinary.copy()
    last[-1], nan[1] = np.inf, np.nan
    p, q = np.array([ordinary, nothing, last, ordinary]), np.array([nothing, ordinary, nothing, nan])
    asked = {"stats": ("kl", "js", "jeffreys", "cross_entropy", "max_log_ratio"), "kind": kind, "normalize": normalize}
    found, expected = kl.row_statistics(put(p), put(q), **asked), kl.row_statistics(p, q, **asked)
    for name, values in expected.items():
        np.testing.assert_allclose(get(found[name]), values, rtol=1e-13, err_msg=name)


def test_statistics():
    p, q = np.random.default_rng(3).gamma(1.0, size=(2, 2, D)) + 0.01
    for kind in ("prob", "logit"):
        found, expected = kl.row_statistics(put(p), put(q), kind=kind), kl.row_statistics(p, q, kind=kind)
        for name, values in expected.items():
            np.testing.assert_allclose(get(found[name]).astype(float), values.astype(float), rtol=1e-13)


@pytest.mark.skipif(not SIMULATED, reason="the grid of a device is its own")
@pytest.mark.parametrize("d", [3, 12, 40, 90, D])
def test_the_grid_does_not_matter(d, monkeypatch):
    p, q = np.random.default_rng(4).gamma(1.0, size=(2, 7, d)) + 0.01
    q[2] = p[2] * 3
    seen = []
    for blocks in (1, 2, 5):
        monkeypatch.setattr(machine, "SIMULATED_BLOCKS", blocks)
        settings = [{}, {"kind": "logit"}, {"normalize": False}, {"reduction": "mean"}]
        seen.append([get(kl.kl_divergence(put(p), put(q), **one)).tobytes() for one in settings])
    assert seen[0] == seen[1] == seen[2]
