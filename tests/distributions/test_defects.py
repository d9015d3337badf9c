"""What a distribution, the registry and a matrix of divergences say of bad and of unusual input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.constraint import POSITIVE

pytestmark = pytest.mark.usefixtures("own")


class Mine(D.Distribution):
    parameters = ("scale",)
    scale = D.Parameter(POSITIVE)

    def __init__(self, scale):
        super().__init__(scale=scale)


@pytest.mark.parametrize(
    ("broken", "fine"),
    [
        (D.Gamma([-1.0, 2.0, math.nan], 1.0, validate_args=False), D.Gamma(3.0, 1.0)),
        (D.Bernoulli([2.0, 0.25, -1.0], validate_args=False), D.Bernoulli(0.5)),
        (D.Normal(0.0, [-1.0, 2.0, 0.0], validate_args=False), D.Normal()),
        (D.Uniform(1.0, [0.0, 2.0, 1.0], validate_args=False), D.Uniform(1.0, 3.0)),
        (D.Categorical([[-1.0, 2.0], [1.0, 1.0], [0.0, 0.0]], validate_args=False), D.Categorical([0.5, 0.25])),
        (
            D.Independent(D.Normal(0.0, [[-1.0, 1.0], [2.0, 1.0], [1.0, 0.0]], validate_args=False), 1),
            D.Independent(D.Normal([0.0, 0.0], 1.0), 1),
        ),
    ],
)
def test_what_was_not_checked_and_breaks_a_rule_gives_nan(broken, fine):
    for found in (kl.kl_divergence(broken, fine), kl.kl_divergence(fine, broken)):
        assert np.isnan(found).tolist() == [True, False, True]


def test_one_that_was_not_checked_and_is_right():
    assert kl.kl_divergence(D.Normal(1.0, 2.0, validate_args=False), D.Normal(0.0, 2.0)) == 0.125
    assert np.isnan(D.Normal(0.0, -1.0, validate_args=False).entropy())
    found = kl.kl_divergence(D.Normal(np.float32(0), np.float32(-1), validate_args=False), D.Normal(np.float32(0)))
    assert np.isnan(found)


def test_what_was_not_checked_stays_so_in_parts_of_a_batch():
    p, q = D.Normal([0.0, 1.0], [1.0, -1.0], validate_args=False), D.Normal(0.0, [1.0, 2.0])
    found = D.pairwise_kl(p, q)
    np.testing.assert_array_equal(np.isnan(found), [[False, False], [True, True]])
    assert found[0, 0] == 0.0
    assert found[0, 1] == kl.kl_divergence(D.Normal(0.0, 1.0), D.Normal(0.0, 2.0))
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    np.testing.assert_array_equal(np.isnan([value, error]), [[False, True]] * 2)
    singles = [D.Normal(0.0, 1.0), D.Normal(0.0, -1.0, validate_args=False)]
    np.testing.assert_array_equal(np.isnan(D.pairwise_kl(singles)), [[False, True], [True, True]])


LOOSE = D.Normal([[0.0, 1.0], [0.0, math.nan], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]], validate_args=False)
WEIGHTS = D.Categorical([[0.5, 0.5], [0.5, -0.5], [0.5, math.nan]], validate_args=False)
BOTH = D.Categorical([0.5, 0.5])
BROKEN_PARTS = [
    (D.Mixture(BOTH, LOOSE), D.Normal(), ("quadrature", "bounds", "monte_carlo")),
    (D.Mixture(WEIGHTS, D.Normal([0.0, 1.0], 1.0)), D.Normal(), ("quadrature", "bounds", "monte_carlo")),
    (D.Mixture(BOTH, D.Poisson([[1, 2], [1, -1], [math.nan, 1]], validate_args=False)), D.Poisson(1.0), ("sum",)),
    (D.Independent(LOOSE, 1), D.Independent(D.Normal([0.0, 0.0], 1.0), 1), ("closed", "monte_carlo")),
    (
        D.TransformedDistribution(
            D.Normal([0.0, math.nan, 0.0], [1.0, 1.0, -1.0], validate_args=False), D.ExpTransform()
        ),
        D.LogNormal(0.5, 1.0),
        ("quadrature", "monte_carlo"),
    ),
    (
        D.Joint([D.Normal(0.0, [1.0, -1.0, 0.0], validate_args=False), D.Gamma(1.0, 1.0)]),
        D.Joint([D.Normal(), D.Gamma(2.0, 1.0)]),
        ("closed",),
    ),
]


@pytest.mark.parametrize(("broken", "fine", "methods"), BROKEN_PARTS)
def test_parts_that_were_not_checked_and_break_a_rule_give_nan(broken, fine, methods):
    for method in methods:
        options = {"method": method, "return_error": method != "closed"}
        for p, q in ((broken, fine), (fine, broken)):
            found = kl.kl_divergence(p, q, **options, **({"samples": 50} if method == "monte_carlo" else {}))
            for numbers in found if method != "closed" else (found,):
                assert np.isnan(numbers).tolist() == [False, True, True]


def test_delta_from_a_mixture_that_was_not_checked():
    q = D.Mixture(WEIGHTS, D.Poisson([1.0, 2.0]))
    assert np.isnan(kl.kl_divergence(D.Delta(1.0), q)).tolist() == [False, True, True]


def test_masked_numbers_are_refused():
    numbers = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"Normal: loc must have no masked numbers, but loc\[1\] is masked"):
        D.Normal(numbers, 1.0)
    assert D.Normal(np.ma.array([1.0, 2.0]), 1.0).loc.tolist() == [1.0, 2.0]


def test_ragged_lists_name_the_parameter():
    with pytest.raises(ValueError, match="Normal: scale must be a number or an array, but its rows differ in length"):
        D.Normal(0.0, [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("count", [1.0, "1", None])
def test_the_number_of_axes_is_an_integer(count):
    with pytest.raises(TypeError, match="Independent: reinterpreted_batch_ndims must be an integer, not"):
        D.Independent(D.Normal([0.0, 1.0], 1.0), count)


def test_support_of_a_batch_of_mixtures():
    parts = D.Uniform([[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [4.0, 4.0]])
    low, high, _ = D.Mixture(D.Categorical([0.5, 0.5]), parts).support
    np.testing.assert_array_equal(low, [0.0, 2.0])
    np.testing.assert_array_equal(high, [5.0, 4.0])
    single = D.Mixture(D.Categorical([0.5, 0.5]), D.Uniform([0.0, 1.0], 4.0)).support
    assert single == (0.0, 4.0, False)
    assert D.Mixture(D.Categorical([0.5, 0.5]), D.Normal([0.0, 1.0], 1.0)).support[:2] == (-math.inf, math.inf)
    vectors = D.Independent(D.Uniform([[0.0, 1.0, 2.0], [-1.0, 3.0, 1.0]], 4.0), 1)
    low, _, _ = D.Mixture(D.Categorical([0.5, 0.5]), vectors).support
    np.testing.assert_array_equal(low, [-1.0, 1.0, 1.0])


def test_repr_tells_all_digits():
    d = D.Normal([0.1234567890123456, 1 / 3], 0.1)
    assert repr(d) == "Normal(loc=[0.1234567890123456, 0.3333333333333333], scale=0.1)"
    assert repr(D.Normal(np.float32([0.1, 1 / 3]))) == "Normal(loc=[0.1, 0.33333334], scale=1.0)"


@pytest.mark.parametrize("function", [3, max, None])
def test_only_what_can_be_called_with_all_parameters_registers(function):
    with pytest.raises(TypeError, match=r"register_kl: decorates a function|takes a function written in Python"):
        D.register_kl(Mine, D.Gumbel, compiled=True)(function)
    if not callable(function):
        with pytest.raises(TypeError, match="register_kl: decorates a function, not"):
            D.register_kl(Mine, D.Gumbel)(function)


@pytest.mark.parametrize("other", [D.MultivariateNormal, D.Dirichlet, D.Categorical])
def test_a_compiled_formula_takes_no_vectors(other):
    with pytest.raises(
        TypeError, match=rf"compiled=True: takes numbers, but {other.__name__}\.\w+ is a (vector|matrix)"
    ):
        D.register_kl(other, other, compiled=True, replace=True)(lambda x, y: x)


def test_a_formula_that_cannot_be_compiled_is_named():
    @D.register_kl(Mine, D.Gamma, compiled=True)
    def of_a_dictionary(s, a, b):
        return s + {"a": 1}[a]

    with pytest.raises(TypeError, match=r"KL\(Mine \|\| Gamma\): of_a_dictionary cannot be compiled: \w") as caught:
        kl.kl_divergence(Mine(1.0), D.Gamma(1.0, 1.0))
    assert "\n" not in str(caught.value)


def test_a_rule_of_a_wrong_shape_is_named():
    @D.register_kl(Mine, D.Poisson)
    def square(p, q):
        return np.zeros((7, 7))

    words = r"KL\(Mine \|\| Poisson\): square gave the shape \(7, 7\), which does not .* batch shape \(2,\)"
    with pytest.raises(ValueError, match=words):
        kl.kl_divergence(Mine([1.0, 2.0]), D.Poisson(1.0))


def test_a_matrix_of_tensors_is_a_tensor():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch = torch.distributions.Normal(torch.tensor([0.0, 1.0]).double(), torch.ones(2).double())
    for found in (
        D.pairwise_kl(batch),
        D.pairwise_kl(batch, D.Normal([0.0, 1.0], 1.0)),
        D.pairwise_kl([torch.distributions.Normal(0.0, 1.0), D.Normal(1.0, 1.0)]),
    ):
        assert isinstance(found, torch.Tensor)
        assert found.tolist() == [[0.0, 0.5], [0.5, 0.0]]
    assert isinstance(D.pairwise_kl(D.Normal([0.0, 1.0], 1.0)), np.ndarray)


def test_a_draw_against_the_waiting_time_for_its_opposite():
    """p next to 1 - q: what is left is of the size of the rounding of 1 - p."""
    p, q = 9.604816891664816e-12, 0.9999999999903952
    with mp.workdps(60):
        first, second = mp.mpf(p), mp.mpf(q)
        truth = first * mp.log(first / (second * (1 - second))) + (1 - first) * mp.log((1 - first) / second)
        assert abs(kl.kl_divergence(D.Bernoulli(p), D.Geometric(q)) / truth - 1) < 1e-15


def test_a_part_of_an_infinite_divergence_is_finite():
    """So many times that of a geometric distribution, which alone is beyond the largest number."""
    count, a, b = 0.001, 699.02, -91272.0
    with mp.workdps(800):
        successes = mp.exp(mp.mpf(a))
        apart = [mp.log1p(mp.exp(mp.mpf(-x))) for x in (a, b)], [mp.log1p(mp.exp(mp.mpf(x))) for x in (a, b)]
        true = float(mp.mpf(count) * (successes * (apart[0][1] - apart[0][0]) + apart[1][1] - apart[1][0]))
    found = kl.kl_divergence(D.NegativeBinomial(count, logits=a), D.NegativeBinomial(count, logits=b))
    assert true == pytest.approx(3.5e305, rel=0.02)
    assert found == pytest.approx(true, rel=1e-13)


class Rayleigh(D.Distribution):
    """As little as a family may have."""

    parameters = ("scale",)
    scale = D.Parameter(POSITIVE)

    def __init__(self, scale):
        super().__init__(scale=scale)


class Whole(Rayleigh):
    entropy_formula = staticmethod(lambda scale: 1.0 + math.log(scale) - 0.5 * math.log(2.0) + 0.5 * 0.5772156649015329)

    def __init__(self, half_square):
        super().__init__((2.0 * np.asarray(half_square)) ** 0.5)

    @property
    def support(self):
        return D.Support(0.0, math.inf)

    def to_scipy(self):
        return stats.rayleigh(scale=float(self.scale))


def test_what_a_family_does_not_define():
    D.register_kl(Rayleigh, Rayleigh, compiled=True)(rayleigh_rayleigh)
    p, q = Rayleigh(1.0), Rayleigh(2.0)
    missing = r"Rayleigh: `entropy\(\)`, or `entropy_formula`, a static method that takes scale, is not defined"
    for ask in (p.entropy, lambda: kl.cross_entropy(p, q)):
        with pytest.raises(NotImplementedError, match=missing):
            ask()
    for method in ("quadrature", "sum", "monte_carlo"):
        with pytest.raises(NotImplementedError, match=r"Rayleigh: the property `support` is not defined"):
            kl.kl_divergence(p, q, method=method)
    for name in ("mean", "variance"):
        with pytest.raises(NotImplementedError, match=rf"Rayleigh: the property `{name}` is not defined"):
            getattr(p, name)
    with pytest.raises(NotImplementedError, match=r"Rayleigh: .* defines no `to_scipy\(\)`"):
        p.to_scipy()


def rayleigh_rayleigh(p, q):
    return (p / q) ** 2 - 1.0 - 2.0 * math.log(p / q)


def test_a_subclass_with_a_constructor_of_its_own():
    D.register_kl(Rayleigh, Rayleigh, compiled=True)(rayleigh_rayleigh)
    p, q = Whole(0.5), Whole(2.0)
    true = 0.25 - 1.0 + 2.0 * math.log(2.0)
    assert kl.kl_divergence(p, q) == pytest.approx(true, rel=1e-15)
    assert kl.kl_divergence(p, q, method="quadrature") == pytest.approx(true, rel=1e-8)
    assert kl.kl_divergence(p, q, method="monte_carlo", rng=1, samples=10_000) == pytest.approx(true, abs=0.1)
    assert float(q.entropy()) == pytest.approx(stats.rayleigh(scale=2.0).entropy(), rel=1e-14)
    assert kl.cross_entropy(p, q) == pytest.approx(true + p.entropy(), rel=1e-15)
    np.testing.assert_allclose(D.pairwise_kl(Whole([0.5, 2.0])), D.pairwise_kl([p, q]), rtol=1e-15)
    assert D.pairwise_kl([p, q])[0, 1] == pytest.approx(true, rel=1e-15)


class Unit(D.Normal):
    def __init__(self, m):
        super().__init__(m, 1.0)


def test_a_subclass_of_a_family_of_ours():
    p = Unit([0.0, 1.0, 3.0])
    assert isinstance(p.one((1,)), Unit)
    np.testing.assert_array_equal(D.pairwise_kl(p), D.pairwise_kl(D.Normal([0.0, 1.0, 3.0], 1.0)))
    found = kl.kl_divergence(p, Unit(0.0), method="quadrature")
    np.testing.assert_allclose(found, [0.0, 0.5, 4.5], rtol=1e-8, atol=1e-12)
    parts = D.Independent(p, 1)
    np.testing.assert_array_equal(D.pairwise_kl([parts, parts]), np.zeros((2, 2)))
