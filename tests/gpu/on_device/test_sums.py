"""Sums and means on the device have the bits of those on the CPU: both are exact and rounded once."""

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import fixed_point
from klnumba.gpu import borders, host
from klnumba.gpu import sums as gpu
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view
from klnumba.kernels.cuda import sums
from klnumba.reduction import unit_of
from tests.gpu.on_device.arrays import SIMULATED, get, put

LEAST, MOST = np.finfo(float).smallest_subnormal, np.finfo(float).max
RNG = np.random.default_rng(0)
BATCHES = {
    "ordinary": RNG.gamma(1.0, size=100),
    "one": np.array([0.1]),
    "all exponents": np.ldexp(RNG.uniform(-1.0, 1.0, 70), RNG.integers(-1080, 1020, 70)),
    "cancelling": np.array([1e300, 1.0, -1e300, 2.0**-1000]),
    "negative": np.array([-1e-3, -5.0, 1e-20]),
    "to zero": np.array([0.3, -0.3]),
    "zeros": np.zeros(5),
    "subnormal": np.array([LEAST, LEAST, 5 * LEAST]),
    "least": np.array([LEAST]),
    "about the least normal number": np.array([2.0**-1022, -LEAST, -LEAST, 2.0**-1022]),
    "to infinity": np.array([MOST, MOST, -MOST, MOST]),
    "largest": np.array([MOST, MOST, -MOST]),
    "half an ulp": np.array([1.0, 2.0**-53]),
    "just above half an ulp": np.array([1.0, 2.0**-53, LEAST]),
    "inf": np.array([1.0, math.inf, 2.0]),
    "-inf": np.array([1.0, -math.inf, 2.0]),
    "both": np.array([math.inf, 1.0, -math.inf]),
    "nan": np.array([1.0, math.nan, math.inf]),
}


def on_device(values, count):
    array = borders.take(put(values), "values")
    place = Place.of(array)
    _, out = place.new((), "float64")
    flat = flat_view(array, array.layout)[0]
    gpu.whole(sums.of_values(), flat, 1, flat, 1, values.size, count, place, flat_view(out, out.layout)[0])
    return host.fetched(out)[()]


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("count", [1, 7, 3, 4096, (1 << 52) - 1, 0])
def test_any_numbers(name, count):
    values = BATCHES[name]
    expected = fixed_point.rounded(*fixed_point.sum_of([values.copy()]), count)
    np.testing.assert_array_equal(on_device(values, count), expected)


@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("base", [None, 2])
def test_reductions_are_the_exact_sums_of_the_values_of_the_rows(how, dtype, base):
    p, q = (put(side, dtype) for side in RNG.gamma(1.0, size=(2, 30, 7)) + 0.01)
    values = get(kl.kl_divergence(p, q, dtype=np.float64)) if dtype == "float64" else None
    found = kl.kl_divergence(p, q, reduction=how, base=base)
    if values is not None:
        whole = fixed_point.sum_of([values / unit_of(base)])
        assert get(found)[()] == fixed_point.rounded(*whole, 30 if how == "mean" else 1)
    assert found.dtype == np.dtype(dtype)


@pytest.mark.parametrize("reduction", ["sum", "batchmean", "mean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses(reduction, log_target):
    target, model = RNG.gamma(1.0, size=(2, 11, 9)) + 0.01
    target, model = np.log(target) if log_target else target, np.log(model)
    expected = kl.functional.kl_div(model, target, reduction=reduction, log_target=log_target)
    found = get(kl.functional.kl_div(put(model), put(target), reduction=reduction, log_target=log_target))[()]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    if SIMULATED:  # elsewhere the cells may be contracted otherwise where they are added up
        cells = get(kl.functional.kl_div(put(model), put(target), reduction="none", log_target=log_target))
        count = {"sum": 1, "batchmean": len(cells), "mean": cells.size}[reduction]
        assert found == fixed_point.rounded(*fixed_point.sum_of([cells.ravel().copy()]), count)


def test_no_cells():
    empty = put(np.empty((0, 4)))
    assert get(kl.functional.kl_div(empty, empty, reduction="sum")) == 0.0
    assert math.isnan(get(kl.kl_divergence(empty, empty, reduction="mean")))
    assert get(kl.kl_divergence(empty, empty, reduction="sum")) == 0.0
