"""KL from logarithms takes one read, or another with a better guess: both are to serve without the road in float64.

That road is right for every row, and so would hide it if the others were of no use.
"""

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba.gpu import reduction
from klnumba.kernels.cuda import logits, rows, stages
from tests.gpu.on_device.arrays import DTYPES, SIMULATED, get, put
from tests.gpu.on_device.test_accuracy import limit
from tests.reference import mp

pytestmark = pytest.mark.skipif(
    not SIMULATED, reason="parts of kernels are taken away, which on a device are kept on disk by name"
)

LENGTHS = (3, 14, 39, 60, 130, 200)  # every team of the simulator, and pieces


def plain(rng, d):
    """First cells that are like the others."""
    x = rng.normal(scale=0.1, size=d)
    return "logit", x, x + np.where(np.arange(d) % 2, 0.5, -0.5)


def offset(rng, d):
    """A difference of the sums that is large beside the log-ratios."""
    x = rng.normal(size=d)
    return "logit", x, x + 3.0 + rng.normal(scale=0.05, size=d)


def misled(rng, d):
    """First cells that are unlike the others."""
    x, y = rng.normal(scale=0.1, size=(2, d))
    y[: d // 2] -= 2.0
    return "logit", x, y


def half_a_mass(rng, d):
    x = np.log(rng.dirichlet(np.full(d, 5.0)))
    return "log_prob", x, x + 0.7 + rng.normal(scale=0.05, size=d)


def without_float64(monkeypatch, reads):
    """Only the first road, or the first two, are left."""
    whole, all_of = logits.value, stages.stages

    def nothing(*arguments):
        return math.nan

    def first_alone(*arguments):
        first, _ = whole(*arguments)
        return first, nothing

    monkeypatch.setattr(rows, "forms", lambda *arguments: (nothing, nothing, 0))
    monkeypatch.setattr(stages, "stages", lambda *arguments: all_of(*arguments)[:reads])
    if reads == 1:
        monkeypatch.setattr(logits, "value", first_alone)


@pytest.fixture
def forget():
    """No kernel is kept from before or for later."""
    kept = rows.one, rows.several, rows.chained, stages.program, reduction._plan
    for made in kept:
        made.cache_clear()
    yield
    for made in kept:
        made.cache_clear()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize(("row", "reads"), [(plain, 1), (offset, 2), (misled, 2), (half_a_mass, 2)])
def test_how_many_reads_serve(row, reads, d, dtype, monkeypatch, forget):
    if row is misled and d < 60:
        pytest.skip("the guess is made from most cells of a row so short")
    kind, *sides = row(np.random.default_rng(d), d)
    p, q = (side.astype(DTYPES[dtype]) for side in sides)
    truth, scale = mp.of_rows("kl_divergence", p.astype(float), q.astype(float), kind, True)
    for left in (1, 2):
        with monkeypatch.context() as patch:
            without_float64(patch, left)
            for made in (rows.one, stages.program, reduction._plan):
                made.cache_clear()
            out = put(np.full(1, np.nan, np.float64 if dtype == "float64" else np.float32))
            (found,) = get(kl.kl_divergence(put(p[None]), put(q[None]), kind=kind, out=out))
        if left < reads:
            assert not found >= 0.0
        else:
            error = mp.ulp_error(found, truth, "float64" if dtype == "float64" else "float32", scale)
            assert error <= limit(kind, dtype)
