"""A search over parameters of q that are fitted to p finds nothing beyond the bound; see `tests.reference.matched`."""

from __future__ import annotations

import math
import time

import pytest

from tests.reference import matched
from tests.reference.distribution_errors import BOUND

SOME = [
    ("Normal", "Laplace"),
    ("Gamma", "LogNormal"),
    ("Uniform", "Beta"),
    ("Bernoulli.logits", "Poisson"),
    ("Weibull", "Gamma"),
    ("Kumaraswamy", "Beta"),
    ("Kumaraswamy", "Kumaraswamy"),
]
# What the page of pairs says of them.
REACHED = {
    ("Chi", "Laplace"): 1e-10,
    ("InverseGamma", "Laplace"): 1e-10,
    ("Lindley", "Moyal"): 1e-12,
    ("Chi", "Normal"): 1e-12,
    ("Kumaraswamy", "Laplace"): 1e-12,
}


def largest(p, q, seconds, most):
    """The largest error of what is counted, infinite where nothing is, with its case."""
    found = [one for one in matched.searched(p, q, matched.generator(3, p, q), seconds, most) if not one.left_out]
    assert found
    return max((one.error, str(one)) for one in found if not math.isnan(one.error))


@pytest.mark.part(2)
@pytest.mark.parametrize(("p", "q"), SOME)
def test_a_few_cases(p, q):
    error, case = largest(p, q, 60.0, 4)
    assert error <= BOUND, case


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), matched.pairs(), ids=map("-".join, matched.pairs()))
def test_ten_seconds_of_every_pair(p, q):
    error, case = largest(p, q, 10.0, 200)
    assert error <= REACHED.get((p, q), BOUND), case


def test_a_truth_that_takes_too_long_is_stopped():
    with pytest.raises(TimeoutError), matched.within(0.05):
        time.sleep(1.0)


def test_an_interval_beside_another_holds_it():
    rng = matched.generator(1, "Uniform", "Uniform")
    for _ in range(50):
        low, high = first = matched.numbers("Uniform", rng)
        lower, higher = matched.beside("Uniform", first, rng)
        assert lower <= low < high <= higher
