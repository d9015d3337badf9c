"""The exponential of quick sums, and the polynomials of near cells."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from klnumba.formulas import log_sum_cells, logit_cells
from tests.reference import coefficients
from tests.reference.linked import packaged

SETS = {
    "js_near_f64": [f"J{i}" for i in range(19)],
    "log1p_near_f64": [f"K{i}" for i in range(11)],
    "psi_near_f64": [f"N{i}" for i in range(15)],
    "psi_near_f32": [f"M{i}" for i in range(9)],
    "exp_quick_f32": ["Q1", "Q2", "Q3", "Q4"],
}
UNITS = [-1.0, -1.125, -1.5, -1.9990234375]
LARGEST_ERROR = 1.5 * 2.0**-24  # relative; the largest seen is 1.22 of them
OF_LN2 = abs(float(mpmath.log(2)) - float(logit_cells.LN2_F32))  # what each power of two adds


LONG = "js_near_f64"  # half a minute


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x == LONG else x for x in SETS])
def test_coefficients_are_those_of_the_generator(name):
    with mpmath.workdps(50):
        made, error = coefficients.smallest(coefficients.TARGETS[name])
    made = [float(c) for c in made]
    if name.startswith("exp"):  # the first one is written out
        assert made.pop(0) == 0.5
    room = logit_cells if hasattr(logit_cells, SETS[name][0]) else log_sum_cells
    assert [float(getattr(room, c)) for c in SETS[name]] == made
    assert error <= coefficients.TARGETS[name].tolerance


def powers(x, unit):
    power, numbers = packaged(logit_cells.quick_power), logit_cells.quick_numbers(unit)
    found = [power(v, numbers) for v in x]
    return np.array([p for p, _ in found], "float32"), np.array([bits for _, bits in found], "int32")


def test_rough_power():
    x = np.random.default_rng(2).uniform(-87, 88, 20_000).astype("float32")
    found = np.array([packaged(logit_cells.rough_power)(v) for v in x], "float64")
    assert np.abs(found / np.exp(x.astype("float64")) - 1).max() <= 1e-3  # the largest seen is 7.9e-4
    least = packaged(logit_cells.rough_power)(np.float32(-87.0))
    assert all(packaged(logit_cells.rough_power)(np.float32(v)) == least for v in (-88.0, -1e30, -np.inf, np.nan))


@pytest.mark.parametrize("unit", UNITS)
def test_quick_power_within_its_range(unit):
    x = np.random.default_rng(0).uniform(-30, 30, 2000).astype("float32")
    found, bits = powers(x, unit)
    truth = [mpmath.exp(mpmath.mpf(float(v))) * -unit for v in x]
    errors = [float(abs(p / t - 1)) for p, t in zip(found.tolist(), truth, strict=True)]
    assert (errors <= LARGEST_ERROR + OF_LN2 * np.round(np.abs(x) / np.log(2))).all()
    assert (bits >> 9 == 0).all()


@pytest.mark.parametrize("unit", UNITS)
def test_quick_power_tells_what_it_cannot_do(unit):
    """Out of range: by its bits, or by a sign or a number that is not finite; never by another number."""
    rng = np.random.default_rng(1)
    parts = rng.uniform(89.5, 400, 1500), 2.0 ** rng.uniform(7, 127, 900), rng.uniform(2_907_000, 2_907_500, 200)
    sizes = np.concatenate([*parts, [177.0, 177.5, 355.0, np.inf]])
    x = np.concatenate([sizes, -sizes, [np.nan]]).astype("float32")
    found, bits = powers(x, unit)
    seen = (bits >> 9 != 0) | (found.view("uint32") >= np.float32(np.inf).view("uint32"))
    tiny = (found >= 0) & (found < 2.0**-125) & (x < 0)
    assert (seen | tiny).all()
    assert seen[np.abs(x) > 178].all()
