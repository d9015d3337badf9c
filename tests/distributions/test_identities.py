"""Two writings of the same divergence, over parameters decades apart and next to each other.

A family may be a special case of another one, or what a change of the variable makes of it. KL does not see that; the
two formulas often share no line.
"""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from tests.reference import held_exponents, identities
from tests.reference.distribution_errors import build, error, evaluate
from tests.reference.distributions import truth

REACHED = 1e-13
LARGE, REACHED_BEYOND = 1e100, 3e-13  # where the divergence is an exponential of some hundreds
FEW, MANY = 60, 3000


def batch(name, numbers, n):
    """n distributions."""
    return build(name, [np.broadcast_to(np.asarray(x, float), (n,)) for x in numbers])


def free_numbers(p, q, rng, n):
    """Of p and of q; shapes three decades on either side of 1 where integrals serve no further."""
    found = identities.numbers(p, q, rng, n)
    return [[x**0.25 for x in side] for side in found] if identities.by_integral(p, q) else found


def disagreements(p, q, n):
    """Where both writings differ by more than they may, or one is negative or NaN; the largest difference."""
    rng = np.random.default_rng(5)
    free_p, free_q = free_numbers(p, q, rng, n)
    first = kl.kl_divergence(batch(p.before, p.parameters(*free_p), n), batch(q.before, q.parameters(*free_q), n))
    second = kl.kl_divergence(batch(p.after, p.changed(*free_p), n), batch(q.after, q.changed(*free_q), n))
    size = np.maximum(first, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(first == second, 0.0, np.abs(first - second) / size)
    allowed = np.where(size < LARGE, REACHED, REACHED_BEYOND)
    fine = (first >= 0.0) & (second >= 0.0) & (apart <= allowed)
    i = int(np.argmin(fine))
    at = [float(x[i]) for x in (*free_p, *free_q)]
    return [] if fine.all() else [f"{p} || {q} at {at}: {first[i]!r}, {second[i]!r}"]


def all_disagreements(change, n):
    """Of all pairs of writings, and how many there are."""
    pairs = list(identities.identities(change))
    return [text for p, q in pairs for text in disagreements(p, q, n)], len(pairs)


CHANGE = pytest.mark.parametrize("change", identities.CHANGES)


@pytest.mark.part(4)
@CHANGE
def test_both_writings_agree(change):
    found, count = all_disagreements(change, FEW)
    assert count > 10
    assert found == []


@pytest.mark.slow
@CHANGE
def test_both_writings_agree_far_and_wide(change):
    found, _ = all_disagreements(change, MANY)
    assert found == []


# The parts of this family hold 1/concentration0, which is rounded.
ROUNDED = {("1-x", "Kumaraswamy", "Kumaraswamy")}
# How many pairs of writings objects serve: p what transforms make of one family, q the other family. A location that
# is moved has no name, since it would be rounded.
OBJECTS = {"1/x": 23, "x**2": 27, "log(x)": 13, "-log(x)": 23, "-log(1-x)": 1, "logit(x)": 18, "1-x": 15, "-x": 10}
OBJECTS |= dict.fromkeys((change for change in identities.CHANGES if change.startswith("2**")), 110)


@pytest.mark.parametrize("change", OBJECTS)
def test_transformed_objects_agree_with_the_family(change):
    chain, served = identities.CHANGES[change][1], 0
    for p, q in identities.identities(change):
        if (change, p.before, q.after) in ROUNDED:
            continue
        rng = np.random.default_rng(7)
        free_p, free_q = free_numbers(p, q, rng, FEW)
        base = batch(p.before, p.parameters(*free_p), FEW)
        second = batch(q.after, q.changed(*free_q), FEW)
        try:
            found = kl.kl_divergence(D.TransformedDistribution(base, chain), second)
        except NotImplementedError:
            continue
        served += 1
        direct = kl.kl_divergence(base, batch(q.before, q.parameters(*free_q), FEW))
        np.testing.assert_allclose(found, direct, rtol=REACHED_BEYOND, err_msg=f"{p} || {q}")
    assert served >= OBJECTS[change]


@pytest.mark.parametrize(("p", "q"), held_exponents.PAIRS, ids=["-".join(pair) for pair in held_exponents.PAIRS])
def test_exponents_whose_parts_are_large(p, q):
    """At most 2e-14 was found; one number for the exponent, instead of two, leaves no digit of some."""
    cases = held_exponents.cases(p, q, 25)
    values = evaluate(p, q, cases)
    errors = [error(float(v), truth(p, q, *case)) for v, case in zip(values, cases, strict=True)]
    assert np.isfinite(errors).sum() >= 12
    assert np.nanmax(errors) < REACHED, cases[int(np.nanargmax(errors))]


# --- vectors and matrices ---------------------------------------------------------------------------------------------


def sizes(rng, *shape):
    """Positive numbers of any decade from 1e-8 to 1e8."""
    return 10.0 ** rng.uniform(-8.0, 8.0, shape)


def near(rng, x):
    """Numbers far from others, and close to them."""
    moved = x * (1.0 + 10.0 ** rng.uniform(-12.0, -1.0, x.shape))
    return np.where(rng.uniform(size=(len(x),) + (1,) * (x.ndim - 1)) < 0.5, moved, sizes(rng, *x.shape))


N = 400


def assert_agree(first, second, rtol=REACHED):
    """Both are the same divergence, and no less than 0."""
    assert np.all(first >= 0.0)
    np.testing.assert_allclose(first, second, rtol=rtol)


def test_dirichlet_of_two_is_beta():
    rng = np.random.default_rng(1)
    a = sizes(rng, N, 2)
    c = near(rng, a)
    assert_agree(
        kl.kl_divergence(D.Dirichlet(a), D.Dirichlet(c)),
        kl.kl_divergence(D.Beta(a[:, 0], a[:, 1]), D.Beta(c[:, 0], c[:, 1])),
    )


def test_dirichlet_is_a_beta_and_the_dirichlet_of_the_rest():
    rng = np.random.default_rng(2)
    a = np.round(2.0 ** rng.uniform(0.0, 20.0, (N, 4)) * 2.0**10) / 2.0**10  # so that sums are not rounded
    c = np.where(rng.uniform(size=(N, 1)) < 0.5, a + rng.integers(0, 3, (N, 4)) * 2.0**-10, a[::-1])
    rest = [D.Beta(x[:, 0], x[:, 1:].sum(1)) for x in (a, c)]
    assert_agree(
        kl.kl_divergence(D.Dirichlet(a), D.Dirichlet(c)),
        kl.kl_divergence(*rest) + kl.kl_divergence(D.Dirichlet(a[:, 1:]), D.Dirichlet(c[:, 1:])),
    )


@pytest.mark.parametrize("unit", [2.0**-200, 2.0**-500, 2.0**-900])
def test_of_tiny_concentrations_only_the_ratios_count(unit):
    """Though their squares be beyond the range."""
    rng = np.random.default_rng(4)
    a = 1e-25 * 10.0 ** rng.uniform(-3.0, 3.0, (N, 3))
    c = np.where(rng.uniform(size=(N, 1)) < 0.5, a * (1.0 + 10.0 ** rng.uniform(-12.0, -1.0, (N, 3))), a[::-1])
    assert_agree(
        kl.kl_divergence(D.Dirichlet(a), D.Dirichlet(c)),
        kl.kl_divergence(D.Dirichlet(a * unit), D.Dirichlet(c * unit)),
        rtol=2e-14,
    )


@pytest.mark.parametrize("family", [D.Categorical, D.OneHotCategorical, lambda logits: D.Multinomial(1, logits=logits)])
def test_a_draw_of_two_is_bernoulli(family):
    rng = np.random.default_rng(3)
    a = rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(-6.0, 2.3, N)
    b = np.where(rng.uniform(size=N) < 0.5, a * (1.0 + 10.0 ** rng.uniform(-9.0, 0.0, N)), a[::-1])
    two = [family(logits=np.stack([np.zeros(N), x], -1)) for x in (a, b)]
    assert_agree(kl.kl_divergence(*two), kl.kl_divergence(D.Bernoulli(logits=a), D.Bernoulli(logits=b)))


def test_a_diagonal_factor_makes_independent_normals():
    rng = np.random.default_rng(4)
    m, s = rng.normal(size=(N, 3)) * sizes(rng, N, 3), sizes(rng, N, 3)
    n, t = np.where(rng.uniform(size=(N, 1)) < 0.5, m + 1e-6 * s, -m), near(rng, s)
    whole = [D.MultivariateNormal(loc, scale_tril=x[..., None] * np.eye(3)) for loc, x in ((m, s), (n, t))]
    apart = kl.kl_divergence(D.Normal(m, s), D.Normal(n, t)).sum(-1)
    assert_agree(kl.kl_divergence(*whole), apart)
    parts = [D.Independent(D.Normal(loc, x), 1) for loc, x in ((m, s), (n, t))]
    assert_agree(kl.kl_divergence(*parts), apart)
    assert_agree(kl.kl_divergence(parts[0], whole[1]), apart)
    assert_agree(kl.kl_divergence(whole[0], parts[1]), apart)


def test_wishart_matrices_of_one_number_are_gamma():
    rng = np.random.default_rng(5)
    n, m = sizes(rng, N), np.empty(N)
    m = near(rng, n)
    v, u = 4.0 ** rng.integers(-20, 20, (2, N))
    one = lambda x: x[:, None, None]  # noqa: E731
    assert_agree(
        kl.kl_divergence(D.Wishart(n, scale_tril=one(np.sqrt(v))), D.Wishart(m, scale_tril=one(np.sqrt(u)))),
        kl.kl_divergence(D.Gamma(0.5 * n, 0.5 / v), D.Gamma(0.5 * m, 0.5 / u)),
    )


def test_von_mises_fisher_on_a_circle():
    rng = np.random.default_rng(6)
    a = sizes(rng, N)
    b = near(rng, a)
    east, west = np.array([1.0, 0.0]), np.array([-1.0, 0.0])
    for other, angle in ((east, 0.0), (west, np.pi)):
        assert_agree(
            kl.kl_divergence(D.VonMisesFisher(east, a), D.VonMisesFisher(other, b)),
            kl.kl_divergence(D.VonMises(0.0, a), D.VonMises(angle, b)),
        )


def test_von_mises_places_many_turns_apart():
    """The difference of places is rounded, by as much as 1e-5; what that loses is not."""
    cases = [(-22298900852.869106, 1e9, -116331587927.31728, 1.1e9), (2.5e-05, 5e4, -36283549339.19632, 122.0)]
    values = evaluate("VonMises", "VonMises", cases)
    errors = [error(float(v), truth("VonMises", "VonMises", *case)) for v, case in zip(values, cases, strict=True)]
    assert max(errors) < 1e-15
