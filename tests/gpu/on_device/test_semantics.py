"""Every edge of the semantics table once more, on the device."""

import math

import numpy as np
import pytest

import klnumba as kl
from tests.gpu.on_device.arrays import DTYPES, get, put
from tests.reference import mp
from tests.reference.semantics import SEMANTICS

# The two dtypes that are computed in; the others are read as float32.
RUNS = [
    pytest.param(case, dtype, id=f"{case.name}-{dtype}")
    for case in SEMANTICS
    for dtype in case.dtypes
    if dtype in ("float64", "float32")
]


@pytest.mark.parametrize(("case", "dtype"), RUNS)
def test_semantics(case, dtype):
    arrays = [np.array(cells, dtype=DTYPES[dtype]) for cells in (case.p, case.q) if cells is not None]
    settings = {key: put(np.array(value)) if key == "where" else value for key, value in case.arguments.items()}
    result = get(getattr(kl, case.function)(*map(put, arrays), **settings))
    assert result.shape == ()
    assert result.dtype == DTYPES[dtype]
    expected = float(case.expected)
    if math.isnan(expected) or math.isinf(expected) or expected == 0:
        np.testing.assert_array_equal(result, expected)
    else:
        assert mp.ulp_error(result, mp.mpf(expected), dtype) <= 8
