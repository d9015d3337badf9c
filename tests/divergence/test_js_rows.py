"""Jensen-Shannon of rows of probabilities in one read: to the last digits, and what is left to the exact loop."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import engine
from klnumba.kernels.quick_rows import ALIKE
from tests.reference import mp

LENGTHS = (1, 2, 3, 7, 10, 33, 255, 256, 300, 1_000)
# The largest errors seen are 2.7 ulp in float64 and 0.9 in float32.
BOUND = {"float64": 3.5, "float32": 1.5}
TINY = {"float64": 5e-324, "float32": 1e-45}
INF, NAN = np.inf, np.nan


def exactly(monkeypatch, p, q, **settings):
    """What the exact loop alone gives."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "is_quick", lambda *_: False)
        return kl.js_divergence(p, q, **settings)


def normalized(x):
    return x / x.sum(axis=-1, keepdims=True)


def without_cells(rng, x):
    """About half of the cells are zero, the first and the last none of them."""
    y = np.where(rng.random(x.shape) < 0.5, 0.0, x)
    y[..., [0, -1]] = x[..., [0, -1]]
    return normalized(y)


def near(rng, p, scale):
    return normalized(p * np.exp(scale * rng.standard_normal(p.shape)))


def mostly_one(rng, x):
    y = 1e-3 * x
    y[..., 0] += 0.999
    return normalized(y)


FAMILIES = {
    "independent": lambda rng, p, q: (p, q),
    "near": lambda rng, p, q: (p, near(rng, p, 0.01)),
    "sparse": lambda rng, p, q: (without_cells(rng, p), without_cells(rng, q)),
    "far": lambda rng, p, q: (
        p * np.exp(-rng.uniform(0.0, 40.0, p.shape)),
        q * np.exp(-rng.uniform(0.0, 40.0, p.shape)),
    ),
    "one cell": lambda rng, p, q: (mostly_one(rng, p), mostly_one(rng, q)),
    "large": lambda rng, p, q: (1e20 * p, 1e20 * q),
    "apart": lambda rng, p, q: (p * (np.arange(p.shape[-1]) % 2 == 0) + 1e-9 * q, q * (np.arange(p.shape[-1]) % 2)),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_to_the_last_digits(family, normalize, dtype, quick_alone):
    for d in LENGTHS[2:]:
        rng = np.random.default_rng([d, len(family)])
        p, q = FAMILIES[family](rng, *rng.dirichlet(np.ones(d), (2, 3)))
        if normalize:
            p, q = normalized(p), normalized(q)
        p, q = p.astype(dtype), q.astype(dtype)
        for x, y, value in zip(p, q, kl.js_divergence(p, q, normalize=normalize), strict=True):
            exact = mp.js_divergence(x, y, normalize=normalize)
            assert mp.ulp_error(value, exact, dtype) <= BOUND[dtype], (d, float(exact))


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", LENGTHS[1:])  # of one cell the normalised rows are alike
@pytest.mark.parametrize("share", [0.99, -0.99])
def test_masses_as_far_apart_as_may_be(d, dtype, share, quick_alone):
    """The mean of the normalised rows is another than that of the rows, by what does not count."""
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 1))
    p, q = p.astype(dtype).astype(float), q.astype(dtype).astype(float)
    q *= (1.0 + 2.0 * share * ALIKE[dtype]) * p.sum() / q.sum()
    p, q = p.astype(dtype), q.astype(dtype)
    value = kl.js_divergence(p, q)[0]
    assert mp.ulp_error(value, mp.js_divergence(p[0], q[0]), dtype) <= BOUND[dtype]


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", [3, 300])
def test_what_is_left_to_the_exact_loop(d, dtype, monkeypatch):
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 12)).astype(dtype)
    q[0] *= 1.01
    q[1] = p[1] * (1.0 + np.where(np.arange(d) % 2, 1e-7, -1e-7)).astype(dtype)
    p[2, 1] = q[2, 1] = TINY[dtype]
    p[3, 0] = -0.25
    q[4, 0] = -0.25
    p[5, 0] = NAN
    q[6, 0] = INF
    p[7] = 0.0
    p[8, 0] = q[8, 0] = 0.9 * np.finfo(dtype).max
    p[9] *= np.finfo(dtype).tiny
    q[9] *= np.finfo(dtype).tiny
    value, exact = kl.js_divergence(p, q), exactly(monkeypatch, p, q)
    np.testing.assert_array_equal(value[1:10], exact[1:10])
    assert np.isfinite(value).tolist() == [True, True, True, False, False, False, False, False, *[True] * 4]
    np.testing.assert_allclose(value, exact, rtol=1e-6 if dtype == "float32" else 1e-14, atol=0.0)


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", [2, 5, 100, 255, 256, 300])
def test_counts(d, dtype, quick_alone):
    """Rows of other masses are scaled first; neither their neighbours nor the order of p and q change a bit."""
    rng = np.random.default_rng(d)
    p, q = rng.integers(1, 50, (2, 300, d)).astype(dtype)
    q[::3] = p[::3] + rng.integers(0, 2, (100, d))
    q[:, 0] += 1 + (p.sum(axis=1) == q.sum(axis=1) + 1)  # no masses are alike
    p[123], q[123] = p[123] / p[123].sum(), q[123] / q[123].sum()
    found = kl.js_divergence(p, q)
    assert found.tobytes() == kl.js_divergence(q, p).tobytes()
    for k in [*range(0, 300, 7), 123]:
        assert found[k] == kl.js_divergence(p[k], q[k])
        assert mp.ulp_error(found[k], mp.js_divergence(p[k], q[k]), dtype) <= BOUND[dtype]


@pytest.mark.parametrize("d", [2, 5, 300])
def test_scaled_rows_outside_the_domain(d):
    """A negative cell is none of a distribution, also where the scale leaves nothing of it."""
    p, q = np.random.default_rng(d).dirichlet(np.ones(d), (2, 3))
    p[0, 0], p[1, 0], p[2, 0] = -1.0, -1e-300, 1e-310
    q[:, 0] = 0.0
    q *= 1e-100
    assert np.isnan(kl.js_divergence(p, q)).tolist() == [True, True, False]
    assert np.isnan(kl.js_divergence(q, p)).tolist() == [True, True, False]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("d", [2, 5, 100, 256, 300])
def test_no_neighbour_counts(d, normalize):
    """A cell that the quick loop does not serve has its row looked at alone, also where others have zeros."""
    rng = np.random.default_rng(d)
    p, q = rng.dirichlet(np.ones(d), (2, 40))
    p[::2, 0] = 0.0
    q[::3, 1] = 0.0
    p[7, 1] = q[7, 1] = 1e-310
    p[11, 0] = -1.0
    together = kl.js_divergence(p, q, normalize=normalize)
    alone = [kl.js_divergence(x, y, normalize=normalize) for x, y in zip(p, q, strict=True)]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", [10, 300])
def test_both_ways(d, dtype):
    rng = np.random.default_rng(d)
    p, q = (normalized(x).astype(dtype) for x in rng.dirichlet(np.ones(d), (2, 100)))
    assert kl.js_divergence(p, q).tobytes() == kl.js_divergence(q, p).tobytes()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", LENGTHS)
def test_equal_rows(d, dtype, normalize, quick_alone):
    p = np.random.default_rng(d).dirichlet(np.ones(d), 5).astype(dtype)
    assert (kl.js_divergence(p, p.copy(), normalize=normalize) == 0.0).all()


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("d", [2, 300])
def test_nothing_in_common(d, dtype):
    """The largest value, and no rounding above it."""
    p = np.zeros((2, d), dtype)
    p[0, 0] = p[1, 1] = 1.0
    assert kl.js_divergence(p[0], p[1]) == np.dtype(dtype).type(np.log(2.0))
    assert kl.js_divergence(*np.random.default_rng(0).dirichlet(np.ones(d), 2), weight=0.25) > 0.0
