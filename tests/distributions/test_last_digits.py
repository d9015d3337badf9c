"""Distributions so narrow, or of parameters so large, that the last digits of a logarithm or a difference tell."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.distribution_errors import error, evaluate
from tests.reference.distributions import truth
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
    ("Uniform", "InverseGamma"): [
        (0.0010668652817094155, 0.0010668652817179222, 1.887478568879805e23, 2.0136853551164657e20),
        (2.9237097392787845, 2.92370974274685, 8.52882001891333e18, 2.4935793971311423e19),
    ],
    ("Uniform", "Beta"): [
        (0.012603608164162648, 0.012603608164300157, 9.953460511221878e22, 7.797775733074407e24),
        (0.0033619627212281697, 0.0033661624190546263, 7673794.992365954, 2271571516.30298),
    ],
    ("LogUniform", "Laplace"): [
        (1358.9159697440887, 1358.9159697483312, 1358.915969005277, 1.0612925005813034e-09),
        (4202.521716740645, 4203.255660678126, 4206.1397333610685, 0.18349068558846388),
    ],
    ("Beta", "Gamma"): [
        (456542.5220884566, 0.10181595221701897, 2047099625360.2832, 2047100082993.0283),
        (79.61142992595647, 4.949639763025017, 1355.0864343482485, 1438.191437374569),
        (222.15912008357503, 443.58427925115143, 333.2489884108143, 998.6450273106165),
    ],
    ("Chi", "Gamma"): [
        (11.194609588541475, 21.273269582744145, 6.50156150582891),
        (1e12, 2e12, 2e6),
        (3e15, 6e15, 109544511.50103322),
        (1e24, 2.02e24, 2.02e12),
    ],
    ("Beta", "Gumbel"): [(3000.0, 5000.0, 0.37, 0.004), (0.00676, 9e8, -4.7e-11, 1.2e-11)],
    ("Beta", "Moyal"): [(900.5, 600.25, 0.59, 1e-3)],
}


@pytest.mark.parametrize(("pair", "case"), [(pair, case) for pair, cases in CASES.items() for case in cases])
def test_all_digits(pair, case):
    exact = true_value(*pair, case)
    assert exact is not None
    np.testing.assert_allclose(evaluate(*pair, [case]), [float(exact)], rtol=5e-14)


# What the page of pairs says of some that do not keep the bound.
BEYOND = {
    ("Chi", "Laplace", (180637.08164804705, 425.01308187325196, 0.5641746436839156)): 2e-12,
    ("Chi", "Laplace", (674658180.1488137, 25974.174409922605, 0.5642979904205347)): 5e-11,
    (
        "InverseGamma",
        "Laplace",
        (899811090.4642334, 6.328352519770581e-07, 7.032979011311184e-16, 1.87041422e-20),
    ): 5e-11,
    ("Lindley", "Moyal", (1.687280958424389e-06, 705051.1412774127, 366289.9064565706)): 5e-13,
    (
        "Kumaraswamy",
        "Laplace",
        (13.67963464486594, 179241495.46832314, 0.24267599735008433, 0.016679452688492358),
    ): 3e-13,
    ("Chi", "Normal", (13.121157452221375, 3.554033810684718, 0.7000803668462744)): 3e-13,
}


@pytest.mark.parametrize(("p", "q", "case"), BEYOND)
def test_what_is_known_to_be_beyond_the_bound(p, q, case):
    (value,) = evaluate(p, q, [case])
    assert error(float(value), truth(p, q, *case)) <= BEYOND[p, q, case]


def test_a_place_at_a_mean_that_is_far_beyond_nearly_all_of_p():
    case = (1.271164457918316, 0.007025878961021865, 1.769224606511011e246, 2.3675907200000098e233)
    (value,) = evaluate("Weibull", "Laplace", [case])
    assert error(float(value), truth("Weibull", "Laplace", *case)) <= 1e-13
