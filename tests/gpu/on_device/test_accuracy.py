"""How far the results are from the exact value of the given inputs, in ulp, on the families of the CPU's tests."""

import numpy as np
import pytest

import klnumba as kl
from tests.gpu.on_device.arrays import DTYPES, get, put
from tests.reference import mp
from tests.reference.accuracy_table import SETTINGS, bound, in_range
from tests.reference.row_families import draw, families, no_distributions, without_a_common_cell

# ulp of the result. Rows of float32 and shorter cells are computed in float32 arithmetic and added up in float64.
NARROW = 6.0
# KL from logarithms in float32 arithmetic: powers come from an instruction that is off by 2**-22, 4 ulp of a number
# just below 1. In the simulator every one is as far off as that, also in a sum of few cells and in what it is divided
# by.
SHORT_LOGARITHMS = 9.0
LENGTHS = (2, 4, 5, 16, 17, 37, 63, 64, 131)


def limit(kind, dtype):
    if dtype == "float64":
        return bound(kind, dtype)
    return NARROW if kind == "prob" else SHORT_LOGARITHMS


def settings_name(setting):
    return f"{setting[0]}-{'normalized' if setting[1] else 'plain'}"


def assert_within(rows, kind, normalize, dtype, label):
    """Hold every function to its bound on rows of one length."""
    cells = [np.array(side).astype(DTYPES[dtype]) for side in zip(*rows, strict=True)]
    left, right = (put(side) for side in cells)
    truths = [mp.pair_of_rows(p.astype(float), q.astype(float), kind, normalize) for p, q in zip(*cells, strict=True)]
    for function in truths[0]:
        arguments = (left,) if function == "entropy" else (left, right)
        results = get(getattr(kl, function)(*arguments, kind=kind, normalize=normalize))
        for k, result in enumerate(results):
            truth, scale = truths[k][function]
            error = mp.ulp_error(result, truth, "float64" if dtype == "float64" else "float32", scale)
            assert error <= limit(kind, dtype) or not in_range(float(truth)), (
                f"{function}({kind}, {normalize}, {dtype}) is {error:.3g} ulp off {float(truth):.3e}, {label[k]}"
            )


@pytest.mark.parametrize("setting", SETTINGS, ids=settings_name)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("d", LENGTHS)
def test_families(dtype, setting, d):
    kind, normalize = setting
    rng = np.random.default_rng([1, d, len(kind)])
    names = families(dtype)
    rows = [draw(names[name], rng, d, kind, dtype) for name in names]
    assert_within(rows, kind, normalize, dtype, list(names))


@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [5, 17, 131])
def test_short_dtypes(dtype, kind, d):
    """The families of float32 whose cells a float16 can hold."""
    rng = np.random.default_rng([2, d])
    names = ("ordinary", "sum to one", "sparse", "peaked", "constant", "counts")
    rows = [draw(families("float32")[name], rng, d, kind, "float32") for name in names]
    assert_within(rows, kind, True, dtype, names)


B = 2.0**-126
HARD = {
    "zeros of both": ("prob", [0.0] * 48, [0.0] * 48),
    "least normal numbers": ("prob", [B] + [0.0] * 47, [B] * 48),
    "equal but for the least": ("prob", [2.0**-39, 0.0] + [0.0] * 46, [2.0**-39, B] + [0.0] * 46),
    "a constant between small cells": ("logit", [1e-5, 2.1e-5, -1.3e-5, 5e-6, 3e-5] * 10, [20.0] * 50),
    "powers below the least": ("logit", [0.0, -88.5] * 20, [0.0, -1000.0] * 20),
    "all far below": ("logit", [-1e5, -1e5 - 1, -1e5 - 2], [0.0, 1.0, 2.0]),
    "log-probabilities that are none": ("log_prob", [3.0, 1.0, -2.0] * 20, [-30.0, -31.5, -29.0] * 20),
    "log-probabilities of half a mass": ("log_prob", [-4.75, -4.5, -5.0] * 20, [-4.125, -4.25, -4.0] * 20),
    "log-probabilities far beyond": ("log_prob", [300.0, 299.0] * 20, [-300.0, -298.0] * 20),
    "close but for a factor": ("log_prob", [-2.0, -2.5, -1.5] * 20, [-3.0, -3.5, -2.5] * 19 + [-3.0, -3.5, -2.375]),
    "an offset of the size of the log-ratios": (
        "logit",
        [-0.020258786651220818, -0.42650303635784376, 0.006177268315267384, 0.5523003972785436],
        [-0.9871219028246361, -1.261786257120658, -0.7369396955953439, -0.6143060075097112],
    ),
    "two that dominate": ("logit", [-9.0] * 50 + [8.0, 8.25], [-9.0] * 50 + [8.25, 8.0]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", HARD)
def test_rows_that_one_read_does_not_serve(name, dtype):
    kind, *sides = HARD[name]
    p, q = (np.array([side]).astype(DTYPES[dtype]) for side in sides)
    (result,) = get(kl.kl_divergence(put(p), put(q), kind=kind))
    truth, scale = mp.of_rows("kl_divergence", p[0].astype(float), q[0].astype(float), kind, True)
    if name == "zeros of both":
        assert np.isnan(result)
    else:
        assert (result > 0.0) == (truth > 0)
        error = mp.ulp_error(result, truth, "float64" if dtype == "float64" else "float32", scale)
        assert error <= limit(kind, dtype), float(error)


@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("d", [4, 50, 300])
def test_js_of_rows_without_a_common_cell_is_log_2(d, kind):
    rng = np.random.default_rng([3, d])
    p, q = without_a_common_cell(rng, 40, d, kind)
    found = get(kl.js_divergence(put(p), put(q), kind=kind))
    assert (found <= np.log(2)).all()
    np.testing.assert_allclose(found, np.log(2), rtol=4e-16)


@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("d", [4, 50, 300])
def test_rows_that_are_no_distributions_have_no_largest_cells_in_common(d, kind):
    p, q = no_distributions(d, kind)
    found = kl.row_statistics(put(p), put(q), kind=kind, stats=("argmax_agree",))["argmax_agree"]
    assert get(found).astype(bool).tolist() == [True, False, False, False, False, True]


@pytest.mark.parametrize("d", [3, 40, 300])
def test_a_cell_beside_dust(d):
    rng = np.random.default_rng([4, d])
    p, q = rng.gamma(1.0, size=(2, d)) * 1e-30
    p[1], q[1] = 5.0, 9.0
    (found,) = get(kl.cross_entropy(put(p[None]), put(q[None])))
    assert mp.ulp_error(found, mp.cross_entropy(p, q)) <= bound("prob", "float64")


def test_logits_at_the_least_temperatures():
    """Beside a zero of p, |delta| over the temperature is not nothing."""
    for power in (-700, -800, -850, -870, -900, -1000):
        t = 2.0**power
        p, q = np.array([-np.inf, 0.5, 0.25, -0.3]) * t, np.array([0.1, 0.7, 0.2, -0.2]) * t
        (found,) = get(kl.kl_divergence(put(p[None]), put(q[None]), kind="logit", temperature=t))
        truth = mp.kl_divergence(p, q, kind="logit", temperature=t)
        assert mp.ulp_error(found, truth) <= bound("logit", "float64"), power
