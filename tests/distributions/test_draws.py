"""KL by draws, against the closed forms, for everything that can be drawn from."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from tests.distributions.test_fallbacks import VECTORS
from tests.distributions.test_quadrature import ordinary
from tests.reference.distribution_errors import build
from tests.reference.distributions import PARAMETERS

stats = pytest.importorskip("scipy.stats")

ON_A_CIRCLE, POINTS = {"VonMises"}, {"Delta"}


def by_draws(p, q, samples=20_000, rng=7):
    return kl.kl_divergence(p, q, method="monte_carlo", return_error=True, samples=samples, rng=rng)


def assert_drawn(p, q, closed=True, **options):
    value, spread = by_draws(p, q, **options)
    exact = np.asarray(kl.kl_divergence(p, q) if closed else kl.kl_divergence(p, q, method="quadrature"))
    assert np.all(np.abs(value - exact) <= 5.0 * spread + 1e-14)
    assert np.all(spread <= 0.1 * exact + 0.01)


# --- every kind ------------------------------------------------------------------------------------------------------


FAMILIES = sorted({name for name in PARAMETERS if "." not in name} - ON_A_CIRCLE - POINTS)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_over_numbers(name):
    p, q = (build(name, numbers) for numbers in ordinary(name))
    if name == "Logistic":  # a closed form for equal scales alone
        q = D.Logistic(q.loc, p.scale)
    assert_drawn(p, q, closed=name != "StudentT")


@pytest.mark.parametrize(("p", "q"), VECTORS, ids=lambda d: type(d).__name__)
def test_every_family_over_vectors(p, q):
    assert_drawn(p, q)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Binomial(5, 0.5), D.Binomial(6, 0.2)),
        (D.Binomial([3, 5], 0.5), D.Binomial([[6], [7]], 0.2)),
        (stats.binom(5, 0.5), stats.binom(6, 0.2)),
        (D.NegativeBinomial(3, 0.5), D.NegativeBinomial(3, 0.4)),
        (D.Independent(D.Binomial([3, 5], 0.5), 1), D.Independent(D.Binomial([4, 5], 0.4), 1)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_counts_of_draws_are_integers_to_a_generator(p, q):
    assert_drawn(p, q)


def test_binomials_of_pytorch():
    torch = pytest.importorskip("torch")
    p, q = (torch.distributions.Binomial(n, torch.tensor(x)) for n, x in ((5, 0.5), (6, 0.2)))
    value, spread = by_draws(p, q)
    assert abs(float(value) - float(kl.kl_divergence(p, q))) <= 5.0 * float(spread)


@pytest.mark.parametrize(
    "frozen",
    [
        stats.betabinom(5, 2.3, 0.63), stats.betanbinom(5, 9.3, 1.0), stats.binom(5, 0.4), stats.boltzmann(1.4, 19),
        stats.dlaplace(0.8), stats.geom(0.5), stats.hypergeom(30, 12, 6), stats.logser(0.6), stats.nbinom(5, 0.5),
        stats.nchypergeom_fisher(140, 80, 60, 0.5), stats.nhypergeom(20, 7, 1), stats.planck(0.51),
        stats.poisson(3.0, loc=2), stats.randint(7, 31), stats.skellam(15, 8), stats.zipfian(1.25, 10),
    ],
    ids=lambda d: d.dist.name,
)  # fmt: skip
def test_counts_of_scipy(frozen):
    assert by_draws(frozen, frozen, samples=100) == (0.0, 0.0)
