"""Second derivatives of closed forms against differences of the textbook forms with mpmath."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from mpmath import mp

from klnumba import distributions as D
from klnumba.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Cauchy,
    Dirichlet,
    Gamma,
    Gumbel,
    HalfCauchy,
    InverseGamma,
    Laplace,
    Logistic,
    LogNormal,
    MultivariateNormal,
    Normal,
    Poisson,
    VonMises,
    VonMisesFisher,
    Weibull,
    kl_divergence_grad,
)
from klnumba.distributions.beta import beta_beta
from klnumba.distributions.exponential import exponential_exponential
from klnumba.distributions.gamma import gamma_gamma
from klnumba.distributions.gradient import Asked, rule
from klnumba.distributions.hessian import LEAST, hessian
from klnumba.distributions.laplace import laplace_laplace
from klnumba.distributions.normal import normal_normal
from klnumba.distributions.odds import per_success, per_success_logits, two_outcomes, two_outcomes_logits
from klnumba.distributions.registry import divergence, find
from klnumba.formulas.divergences import generalized_kl
from klnumba.formulas.quick import quick_bends, quick_slopes
from klnumba.formulas.slopes_of_pairs import tetragamma_of
from tests.reference.gradients import COMPILED, SLOW
from tests.reference.pair_hessians import errors
from tests.reference.pair_hessians import product as pair_product

COUNTS = {"Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"}
# The closed form, or a rule for its derivatives, holds for single values of a count, a scale or a location.
AT_SINGLE_VALUES = {
    *(("Binomial", "Binomial"), ("Bernoulli", "Binomial"), ("Binomial", "Poisson"), ("Logistic", "Logistic")),
    *product(("Exponential", "HalfCauchy", "StudentT"), ("Cauchy",)),
    *product(("HalfCauchy", "StudentT"), ("StudentT",)),
    *product(("Binomial", "NegativeBinomial"), ("Geometric", "NegativeBinomial")),
    *product(("Binomial.logits", "NegativeBinomial.logits"), ("Geometric.logits", "NegativeBinomial.logits")),
    *(("Geometric", "NegativeBinomial"), ("Geometric.logits", "NegativeBinomial.logits")),
}
# The divergence is infinite to one side of every case: of whole numbers, or of the ends of q.
TO_ONE_SIDE = {
    *product(("Poisson",), ("Bernoulli", "Binomial")),
    *product(("Kumaraswamy", "ContinuousBernoulli"), ("Uniform",)),
    *(pair for pair in COMPILED if pair[0] == "Delta" and pair[1].partition(".")[0] in COUNTS),
}
LARGEST = 1e-13  # 3e-14 was found, of HalfNormal-Laplace; a few 1e-16 elsewhere


@pytest.mark.part(24)
@pytest.mark.parametrize(
    ("p", "q"), [x for x in COMPILED if x not in SLOW and x not in AT_SINGLE_VALUES and x not in TO_ONE_SIDE]
)
def test_products_with_the_hessian_are_right_to_the_last_digits(p, q):
    worst, at = errors(p, q, 5)
    assert 0.0 <= worst <= LARGEST, at


@pytest.mark.parametrize(("p", "q"), sorted(AT_SINGLE_VALUES))
def test_no_second_derivatives_where_the_first_are_known_at_single_values(p, q):
    with pytest.raises(NotImplementedError, match=r"at single values of|mean over counts"):
        errors(p, q, 3)


def locations(rng, close):
    return rng.normal(size=2) * close


def scales(rng, close):
    return np.exp(rng.normal() * 3.0) * (1.0 + close * np.array([0.0, 1.0]))


def shares(rng, close):
    return rng.uniform() * np.array([1.0, 1.0 - min(close, 0.9)])


def exponents(rng, close):
    """Not so far apart, and that of p above."""
    return np.exp(2.0 * rng.normal()) * (1.0 + min(close, 3.0) * np.array([1.0, 0.0]))


def both(*draws):
    """The numbers of p, and of q near them."""
    return lambda rng, close: tuple(np.array([draw(rng, close) for draw in draws]).T.reshape(-1))


def each(*draws):
    """Numbers that have nothing to do with each other."""
    return lambda rng, close: tuple(draw(rng, close)[0] for draw in draws)


def between(p, q):
    return find(getattr(D, p), getattr(D, q)).function


# Of p and q the formula, how the parameters are drawn, near and far from each other, and the largest error found.
QUICK = {
    ("Normal", "Normal"): (normal_normal, both(locations, scales), 3.5),
    ("Laplace", "Laplace"): (laplace_laplace, both(locations, scales), 8.8),  # of exp(-r) with r up to 45
    ("Exponential", "Exponential"): (exponential_exponential, both(scales), 3.9),
    ("Poisson", "Poisson"): (generalized_kl, both(scales), 2.6),
    ("Bernoulli", "Bernoulli"): (two_outcomes, both(shares), 2.9),
    ("Bernoulli.logits", "Bernoulli.logits"): (two_outcomes_logits, both(locations), 3.0),
    ("Gamma", "Gamma"): (gamma_gamma, both(scales, scales), 3.4),
    ("Beta", "Beta"): (beta_beta, both(scales, scales), 3.5),
    ("HalfNormal", "HalfNormal"): (between("HalfNormal", "HalfNormal"), both(scales), 4.6),
    ("Cauchy", "Cauchy"): (between("Cauchy", "Cauchy"), both(locations, scales), 4.0),
    ("Geometric", "Geometric"): (per_success, both(shares), 2.6),
    ("Geometric.logits", "Geometric.logits"): (per_success_logits, both(locations), 3.4),
    ("Pareto", "Pareto"): (between("Pareto", "Pareto"), both(exponents, scales), 3.3),
    ("Gumbel", "Gumbel"): (between("Gumbel", "Gumbel"), both(locations, scales), 3.4),
    ("Weibull", "Weibull"): (between("Weibull", "Weibull"), both(scales, scales), 3.0),
    ("Laplace", "Normal"): (between("Laplace", "Normal"), both(locations, scales), 3.2),
    ("Normal", "Laplace"): (between("Normal", "Laplace"), both(locations, scales), 3.4),
    ("Gamma", "Normal"): (between("Gamma", "Normal"), both(scales, scales), 5.7),
    ("Gamma", "Exponential"): (between("Gamma", "Exponential"), each(scales, scales, scales), 3.0),
    ("Exponential", "Gamma"): (between("Exponential", "Gamma"), each(scales, scales, scales), 3.0),
    ("Exponential", "Normal"): (between("Exponential", "Normal"), each(scales, locations, scales), 5.9),
    ("Gumbel", "Normal"): (between("Gumbel", "Normal"), both(locations, scales), 3.9),
}


def moves_of(rng, count):
    return tuple(rng.normal(size=count) * 10.0 ** rng.uniform(-6.0, 6.0, count))


@pytest.mark.parametrize(("p", "q"), QUICK)
def test_quick_ones_are_right_to_some_roundings_of_their_terms(p, q):
    """Of distributions far from each other and near, of directions that all but cancel."""
    formula, drawn, most = QUICK[p, q]
    rng, worst, served = np.random.default_rng(3), 0.0, 0
    for _ in range(60):
        close = 10.0 ** rng.uniform(-12.0, 2.0)
        numbers = drawn(rng, close)
        moves = moves_of(rng, len(numbers))
        bends = quick_bends(formula)(*numbers, *moves)
        found, of_moves = bends[: len(numbers)], bends[len(numbers) :]
        assert set(of_moves) == {(0.0, 0.0)}
        true = pair_product(p, q, numbers, moves)
        finite = [(value, size, exact) for (value, size), exact in zip(found, true, strict=True) if np.isfinite(value)]
        served += len(finite)
        worst = max([worst, *(float(abs(value - exact)) / (size * 2.0**-53) for value, size, exact in finite)])
    assert served > 40 * len(numbers)
    assert 1.0 < worst <= 1.5 * most


def far_gumbel(rng):
    """The scale of p up to 1e6 times that of q, and exp(v) from next to 1 to 1e-40."""
    r = 10.0 ** rng.uniform(0.0, 6.0)
    return float(mp.loggamma(1.0 + r)) + 10.0 ** rng.uniform(-1.0, 2.0), r, 0.0, 1.0


def far_weibull(rng):
    loc, r, _, _ = far_gumbel(rng)
    return np.exp(-loc / r), 1.0, 1.0, r


@pytest.mark.parametrize(("family", "drawn"), [("Gumbel", far_gumbel), ("Weibull", far_weibull)])
def test_quick_ones_of_sums_that_are_large(family, drawn):
    """Where exp(v) is small and v the small rest of large terms, they are right to roundings of these; found: 2.0."""
    rng, served = np.random.default_rng(4), 0
    formula = between(family, family)
    for _ in range(40):
        numbers = drawn(rng)
        moves = moves_of(rng, 4)
        found = quick_bends(formula)(*numbers, *moves)[:4]
        for (value, size), exact in zip(found, pair_product(family, family, numbers, moves), strict=True):
            if np.isfinite(size):
                served += 1
                assert abs(value - exact) <= 3.0 * size * 2.0**-53
    assert served > 100


def test_sums_that_are_not_known_are_not_quick():
    """Of scales 2**54 apart v loses all its digits, and so do both derivatives; twice the digits have them."""
    r, formula = 2.0**54, between("Gumbel", "Gumbel")
    with mp.workdps(60):
        exact = mp.loggamma(1 + mp.mpf(r))
        loc = float(exact)
        whole = mp.exp(exact - loc)
    numbers, moves = (loc, r, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0)
    sizes = quick_slopes(formula)(*numbers)[0][1], quick_bends(formula)(*numbers, *moves)[0][1]
    assert not np.isfinite(sizes).any()
    p, q = Gumbel(*numbers[:2]), Gumbel(*numbers[2:])
    value = divergence(p, q)
    found = hessian(p, q)(value, 1.0, {("p", "loc"): np.array(1.0)})
    assert found.p["loc"] == pytest.approx(float(whole), rel=1e-13)
    assert rule(p, q)(value, Asked(1.0, LEAST)).p["loc"] == pytest.approx(float(1 - whole), rel=1e-13)


def test_tails_that_are_beyond_the_range_are_not_quick():
    """Of a normal distribution 36 standard deviations off, where it alone bends the divergence."""
    p, q = Normal([36.0, 36.0], 1.0), Laplace(0.0, 1.0)
    (by_loc, size), *_ = quick_bends(between("Normal", "Laplace"))(36.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    assert (by_loc, size > 0.0) == (0.0, True)
    found = hessian(p, q)(divergence(p, q), np.ones(2), {("p", "loc"): np.array([1.0, 2.0])})
    tail = float(mp.sqrt(2 / mp.pi) * mp.exp(-(mp.mpf(36) ** 2) / 2))
    np.testing.assert_allclose(found.p["loc"], [tail, 2.0 * tail], rtol=1e-13)


def test_logits_next_to_zero():
    """Where 1 - 2*p is a difference of rounded numbers beside a large one; found: 1.0."""
    for numbers in ((1e-8, -300.0), (1e-3, -50.0), (1e-2, 20.0)):
        bends = quick_bends(two_outcomes_logits)(*numbers, 1.0, 0.0)[:2]
        exact = pair_product("Bernoulli.logits", "Bernoulli.logits", numbers, (1.0, 0.0))
        assert all(abs(value - true) <= 1.5 * size * 2.0**-53 for (value, size), true in zip(bends, exact, strict=True))


def test_tetragamma():
    """Next to where the series begins; found: 1.6e-15."""
    worst = max(abs(float(tetragamma_of(x) / mp.psi(2, x)) - 1.0) for x in [*np.geomspace(1e-6, 1e6, 400), 3.999, 4.0])
    assert worst <= 2.5e-15


def test_quick_ones_go_on_where_they_cancel():
    """At p = q in the direction in which both move alike; the others of the batch are quick."""
    p, q = Normal([0.5, 0.5, 0.0], [2.0, 2.0, 1e200]), Normal([0.5, 0.0, 0.0], [2.0, 1.0, 1e200])
    moves = {(side, name): np.array(1.0) for side in "pq" for name in ("loc", "scale")}
    found = hessian(p, q)(divergence(p, q), np.array([1.0, 3.0, 1.0]), moves)
    np.testing.assert_array_equal(found.p["loc"], [0.0, 3.0 * -1.0, 0.0])
    np.testing.assert_allclose(found.q["scale"], [0.0, 3.0 * (3.0 * 4.25 - 1.0 - 4.0), 0.0], rtol=1e-15)


def test_counts_that_stay():
    """The product of binomial distributions is that of one draw, times the count: quick, in both forms."""
    moves = np.array([0.5, -2.0])
    for form, numbers in (("probs", ([0.3, 0.6], [0.2, 0.7])), ("logits", ([-0.3, 2.0], [1.0, 1.5]))):
        step = {("p", form): moves, ("q", form): moves[::-1]}
        one = [Bernoulli(**{form: x}) for x in numbers]
        many = [Binomial([5, 7], **{form: x}) for x in numbers]
        expected = hessian(*one)(divergence(*one), np.array([5.0, 7.0]), step)
        found = hessian(*many)(divergence(*many), np.ones(2), step)
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(own[form], other[form], rtol=1e-15)


def test_a_parameter_that_rests_may_have_one_value():
    """Of logistic distributions by their locations, of binomial ones by their probabilities."""
    p, q = Logistic(0.5, 2.0), Logistic(0.0, 2.0)
    found = hessian(p, q)(divergence(p, q), 1.0, {("p", "loc"): np.array(1.0)})
    step = 1e-5
    sides = [divergence(Logistic(0.5 + x, 2.0), q) for x in (step, 0.0, -step)]
    assert found.p["loc"] == pytest.approx((sides[0] - 2.0 * sides[1] + sides[2]) / step**2, rel=1e-4)
    p, q = Binomial(5, [0.3, 0.3]), Binomial(5, [0.3, 0.6])
    found = hessian(p, q)(divergence(p, q), [1.0, 2.0], {("p", "probs"): np.ones(2)})
    np.testing.assert_allclose(found.p["probs"], [5.0 / 0.21, 10.0 / 0.21], rtol=1e-15)


def test_dirichlet_distributions_of_two_parts_are_beta_distributions():
    rng = np.random.default_rng(0)
    a, c, move = rng.uniform(0.5, 4.0, (3, 5, 2))
    moves = {("p", "concentration"): move}
    p, q = Dirichlet(a), Dirichlet(c)
    found = hessian(p, q)(divergence(p, q), np.full(5, 2.0), moves)
    exact = [_of_beta(*x, *y, *z) for x, y, z in zip(a, c, move, strict=True)]
    np.testing.assert_allclose(found.p["concentration"], 2.0 * np.array(exact), rtol=1e-13)


def test_quick_ones_of_dirichlet_distributions(monkeypatch):
    """Far from each other and near, and where both move much alike: as the twofold rule has it. Found: 9e-15."""
    rng = np.random.default_rng(0)
    a = np.exp(2.0 * rng.normal(size=(60, 5)))
    c = a * (1.0 + 10.0 ** rng.uniform(-12.0, 1.0, (60, 1)) * rng.uniform(size=(60, 5)))
    move, other = rng.normal(size=(2, 60, 5))
    other[::3] = move[::3] * (1.0 + 0.1 * other[::3])
    moves = {("p", "concentration"): move, ("q", "concentration"): other}
    p, q = Dirichlet(a), Dirichlet(c)
    rates = rng.normal(size=60)
    found, exact = [], []
    for sides, least in ((found, LEAST), (exact, 2.0)):  # no sum is twice as large as the sizes of its terms
        monkeypatch.setattr("klnumba.distributions.hessian.LEAST", least)
        sides += hessian(p, q)(divergence(p, q), rates, moves)
    for quick, slow in zip(found, exact, strict=True):
        quick, slow = quick["concentration"], slow["concentration"]
        worst = (abs(quick - slow).max(1) / abs(slow).max(1)).max()
        assert 0.0 < worst <= 1.4e-14


def _of_beta(a, b, c, d, move_a, move_b):
    from mpmath import mp, mpf

    with mp.workdps(60):

        def gradient(t):
            x, y = mpf(a) + t * mpf(move_a), mpf(b) + t * mpf(move_b)
            joint = mp.psi(1, x + y) * (x + y - mpf(c) - mpf(d))
            return mp.psi(1, x) * (x - mpf(c)) - joint, mp.psi(1, y) * (y - mpf(d)) - joint

        step = mpf(10) ** -20
        return [float((u - v) / (2 * step)) for u, v in zip(gradient(step), gradient(-step), strict=True)]


def along(p, q, moves):
    """What the derivatives change by, of those that are named."""
    found = hessian(p, q)(divergence(p, q), 1.0, {place: np.array(x) for place, x in moves.items()})._asdict()
    return [float(found[side][name]) for side, name in moves]


def test_numbers_that_rounding_makes_negative():
    """Whose last steps have `max(x, 0.0)`: at p = q, one rounding from there, and where a part of the sum is 0."""
    places = [(side, name) for side in "pq" for name in ("concentration1", "concentration0")]
    ways = np.random.default_rng(0).normal(size=(4, 40))
    for above in (0.0, 2.0**-51):
        p, q = Beta(np.ones(40), 3.0), Beta(1.0 + above, 3.0)
        product = hessian(p, q)(divergence(p, q), 1.0, dict(zip(places, ways, strict=True)))._asdict()
        a, b = ways[0] - ways[2], ways[1] - ways[3]
        both = 0.2838229557371153 * (a + b)  # trigamma(4)
        by_p = 1.6449340668482264 * a - both, 0.3949340668482264 * b - both
        for (side, name), expected in zip(places, (*by_p, -by_p[0], -by_p[1]), strict=True):
            np.testing.assert_allclose(product[side][name], expected, atol=1e-12)
    moves = {("p", "concentration"): 1.0, ("p", "rate"): 0.0, ("q", "scale"): 0.0, ("q", "concentration"): 0.3}
    found = along(Gamma(1.0, 2.0), Weibull(0.5, 1.0), moves)
    step = 1e-4
    ways = 2.0 * step, step, -step, -2.0 * step
    sides = [kl_divergence_grad(Gamma(1.0 + t, 2.0), Weibull(0.5, 1.0 + 0.3 * t))[1] for t in ways]
    for value, (side, name) in zip(found, moves, strict=True):
        far, near, back, further = (float(x._asdict()[side][name]) for x in sides)
        assert value == pytest.approx((8.0 * (near - back) - (far - further)) / (12.0 * step), rel=1e-8)


def test_where_the_scales_of_half_cauchy_and_cauchy_distributions_are_equal():
    found = along(HalfCauchy(1.0), Cauchy(0.0, 1.0), {("q", "scale"): 1.0, ("q", "loc"): 0.0, ("p", "scale"): 0.0})
    step = 1e-3
    slopes = [kl_divergence_grad(HalfCauchy(1.0), Cauchy(0.0, 1.0 + t))[1].q["loc"] for t in (step, -step)]
    assert found[1] == pytest.approx((slopes[0] - slopes[1]) / (2.0 * step), rel=1e-5)


def test_none_where_the_curvature_or_a_slope_is_infinite():
    rates = ("p", "rate"), ("q", "rate")
    assert np.isnan(along(Poisson(0.0), Poisson(0.0), dict(zip(rates, (1.0, 0.0), strict=True)))).all()
    by_q = along(Poisson(0.0), Poisson(0.0), dict(zip(rates, (0.0, 1.0), strict=True)))
    assert np.isnan(by_q[0])
    assert by_q[1] == 0.0
    probs = ("p", "probs"), ("q", "probs")
    for end in (0.0, 1.0):
        assert np.isnan(along(Bernoulli(end), Bernoulli(end), dict(zip(probs, (1.0, 0.0), strict=True)))).all()
        assert along(Bernoulli(end), Bernoulli(end), dict(zip(probs, (0.0, 1.0), strict=True)))[1] == 1.0


def test_from_a_von_mises_distribution_that_is_uniform():
    found = along(VonMises(0.0, 0.0), VonMises(0.5, 1.0), {("p", "concentration"): 1.0, ("q", "loc"): 0.0})
    assert found[0] == 0.5


@pytest.mark.parametrize("scale", [11.0, 16.0])
def test_wide_log_normal_distributions(scale):
    """Whose mean is so large that nothing would be left of what cancels; trigamma(3) is left, and 1."""
    for family, sign in ((InverseGamma, 1.0), (Gamma, -1.0)):
        moves = {("p", "loc"): 0.0, ("p", "scale"): 0.0, ("q", "concentration"): 1.0, ("q", "rate"): 0.0}
        found = along(LogNormal(1.0, scale), family(3.0, 1.0), moves)
        np.testing.assert_allclose(found, [sign, 0.0, 0.3949340668482264, -1.0], rtol=1e-15, atol=1e-20)


def test_infinite_divergences_have_none():
    p, q = Gamma(2.0, [1.0, 1.0]), Gamma(2.0, [2.0, np.inf], validate_args=False)
    value = divergence(p, q)
    found = hessian(p, q)(value, 1.0, {("p", "rate"): np.ones(2)})
    assert np.isfinite(found.p["rate"][0])
    assert np.isnan(found.p["rate"][1])


def test_pairs_without_a_rule_are_refused():
    p = VonMisesFisher([1.0, 0.0], 2.0)
    with pytest.raises(NotImplementedError, match=r"KL\(VonMisesFisher \|\| VonMisesFisher\): no second derivatives$"):
        hessian(p, p)
    with pytest.raises(NotImplementedError, match="not registered"):
        hessian(Normal(0.0, 1.0), Dirichlet([1.0, 1.0]))


@pytest.mark.parametrize("form", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_normal_distributions_of_one_number(form):
    """Those of the normal distribution, by a variance, its inverse, or a scale."""
    rng = np.random.default_rng(5)
    loc, move = rng.normal(size=(2, 3, 2))
    scale, step = np.exp(rng.normal(size=(3, 2))), rng.normal(size=(3, 2))
    power = {"covariance_matrix": 2.0, "precision_matrix": -2.0, "scale_tril": 1.0}[form]
    size, speed = scale**power, power * scale ** (power - 1.0) * step
    plain = [Normal(loc[:, k], scale[:, k]) for k in range(2)]
    value = divergence(*plain)
    of_plain, slopes = hessian(*plain)(value, 1.0, _moves(move, step, "scale")), kl_divergence_grad(*plain)[1]
    wide = [MultivariateNormal(loc[:, k, None], **{form: size[:, k, None, None]}) for k in range(2)]
    found = hessian(*wide)(value, 1.0, _moves(move[..., None], speed[..., None, None], form))
    for k, (x, y, slope) in enumerate(zip(found, of_plain, slopes, strict=True)):
        np.testing.assert_allclose(x["loc"][:, 0], y["loc"], rtol=1e-12)
        rate = power * scale[:, k] ** (power - 1.0)  # by the scale s of s**power, whose derivative is rate
        bend = (power - 1.0) / scale[:, k] * step[:, k]
        np.testing.assert_allclose(x[form][:, 0, 0], (y["scale"] - slope["scale"] * bend) / rate, rtol=1e-11)


def _moves(loc, other, name):
    return {(side, n): x[:, k] for k, side in enumerate("pq") for n, x in (("loc", loc), (name, other))}
