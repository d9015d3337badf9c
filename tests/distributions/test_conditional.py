"""Pairs with a closed form at one value of a parameter only."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.of_cauchy import student_t_cauchy
from klnumba.formulas.integrals import cosine_integral_part


@pytest.mark.parametrize(
    ("p", "q", "where"),
    [
        (D.Exponential(1.0), D.Cauchy([0.0, 1.0], 1.0), r"loc of Cauchy is 0, but loc\[1\] is 1"),
        (D.HalfCauchy(1.0), D.Cauchy(1e-300, 1.0), "loc of Cauchy is 0, but loc is 1e-300"),
        (D.HalfCauchy(1.0), D.StudentT(3.0, 1.0, 1.0), "loc of StudentT is 0, but loc is 1"),
        (D.StudentT([1.0, 2.0]), D.Cauchy(0.0, 1.0), r"df of StudentT is 1, but df\[1\] is 2"),
        (D.StudentT(3.0), D.StudentT(1.0), "df of StudentT is 1, but df is 3"),
    ],
)
def test_other_parameters_are_refused(p, q, where):
    with pytest.raises(NotImplementedError, match=rf"has a closed form where {where}; method='quadrature' integrates"):
        kl.kl_divergence(p, q)


def test_the_batch_the_precision_and_what_was_not_checked_are_kept():
    p = D.HalfCauchy(np.array([1.0, -1.0, 2.0], np.float32), validate_args=False)
    found = kl.kl_divergence(p, D.Cauchy(np.float32(0.0), np.ones((2, 1), np.float32)))
    assert (found.shape, found.dtype) == ((2, 3), np.float32)
    assert np.isnan(found).tolist() == [[False, True, False]] * 2
    assert kl.kl_divergence(D.StudentT(1.0, [0.0, 1.0], 2.0), D.StudentT(1.0, 0.0, 2.0))[0] == 0.0


def test_the_cosine_integral_on_both_sides_of_1():
    assert cosine_integral_part(np.nextafter(1.0, 2.0)) == pytest.approx(cosine_integral_part(1.0), rel=1e-15)
    assert cosine_integral_part(1e100) == pytest.approx(1e-200, rel=1e-15)
    assert cosine_integral_part(1e300) == 0.0
    assert kl.kl_divergence(D.Exponential(1e300), D.HalfCauchy(1e300)) == pytest.approx(
        math.log(math.pi / 2.0) - 1.0 + 600.0 * math.log(10.0), rel=1e-15
    )


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.StudentT([1.0, np.nan], validate_args=False), D.Cauchy(0.0, 1.0)),
        (D.Exponential(1.0), D.Cauchy([0.0, np.nan], 1.0, validate_args=False)),
        (D.StudentT([1.0, -1.0], validate_args=False), D.Cauchy(0.0, 1.0)),
        (D.Logistic(0.0, [1.0, -1.0], validate_args=False), D.Logistic(0.0, 1.0)),
        (D.NegativeBinomial([3.0, -3.0], 0.5, validate_args=False), D.NegativeBinomial(3.0, 0.25)),
        (D.NegativeBinomial([1.0, -3.0], 0.5, validate_args=False), D.Geometric(0.25)),
    ],
)
def test_what_was_not_checked_gives_nan(p, q):
    assert np.isnan(kl.kl_divergence(p, q)).tolist() == [False, True]


def test_a_rule_that_takes_the_place_of_one_has_no_derivatives_of_that():
    p, q = D.StudentT(1.0), D.Cauchy(0.0, 2.0)
    assert np.isfinite(D.kl_divergence_grad(p, q)[1].p["df"])
    try:
        D.register_kl(D.StudentT, D.Cauchy, replace=True)(lambda p, q: np.float64(7.0))
        assert kl.kl_divergence(p, q) == 7.0
        with pytest.raises(NotImplementedError, match="not registered with compiled=True"):
            D.kl_divergence_grad(p, q)
    finally:
        D.register_kl(D.StudentT, D.Cauchy, replace=True)(student_t_cauchy)
    assert np.isfinite(D.kl_divergence_grad(p, q)[1].p["df"])
