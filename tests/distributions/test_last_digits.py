"""Distributions so narrow, or of parameters so large, that the last digits of a logarithm or a difference tell."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.distribution_errors import evaluate
from tests.reference.hard_values import true_value

CASES = {
    ("Uniform", "LogNormal"): [
        (1000.0, 1001.0, 6.908, 3e-4),
        (1e5, 1e5 + 1.0, 11.51293, 3e-6),
        (60931.23237527301, 60931.232375333944, 11.017501169121903, 4.282536293562957e-13),
        (0.0, 5.0, 0.6, 1.0),
    ],
    ("LogUniform", "LogNormal"): [(1000.0, 1001.0, 6.908, 3e-4), (1e5, 1e5 + 1.0, 11.51293, 3e-6)],
    ("Weibull", "LogNormal"): [
        (5000.0, 1e4, 8.517136, 1.28e-4),
        (5451.029736004734, 1e12, 8.603559812196943, 1.977246304347899e-12),
    ],
    ("Pareto", "LogNormal"): [
        (1000.0, 1e4, 6.90786, 1e-4),
        (5451.029736004734, 1e12, 8.603559812196943, 1.977246304347899e-12),
    ],
    ("InverseGamma", "Gamma"): [
        (1e16, 1e16, 1e16, 1e16),
        (9999999999999998.0, 1.0235675449486579e18, 1.4273115480413608e16, 139444783835086.06),
    ],
    ("InverseGamma", "HalfNormal"): [(1e17, 1e17, 1.0), (1e16, 1e16, 1.5)],
    ("Chi", "Gamma"): [(1e12, 2e12, 2e6), (3e15, 6e15, 109544511.50103322), (1e24, 2.02e24, 2.02e12)],
    ("Beta", "Gumbel"): [(3000.0, 5000.0, 0.37, 0.004), (0.00676, 9e8, -4.7e-11, 1.2e-11)],
    ("Beta", "Moyal"): [(900.5, 600.25, 0.59, 1e-3)],
}


@pytest.mark.parametrize(("pair", "case"), [(pair, case) for pair, cases in CASES.items() for case in cases])
def test_all_digits(pair, case):
    exact = true_value(*pair, case)
    assert exact is not None
    np.testing.assert_allclose(evaluate(*pair, [case]), [float(exact)], rtol=5e-14)
