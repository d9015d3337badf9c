"""Distributions of SciPy and PyTorch: the same numbers as ours, or a reason why not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.torch_relatives import NONE, RELATIVES

stats = pytest.importorskip("scipy.stats")

FROZEN = {
    "norm": (stats.norm(1.0, 2.0), D.Normal(1.0, 2.0)),
    "norm by name": (stats.norm(scale=2.0, loc=1.0), D.Normal(1.0, 2.0)),
    "gamma": (stats.gamma(2.5, scale=0.5), D.Gamma(2.5, 2.0)),
    "erlang": (stats.erlang(3, scale=0.5), D.Gamma(3.0, 2.0)),
    "chi2": (stats.chi2(3), D.Chi2(3.0)),
    "chi2, scaled": (stats.chi2(3, scale=2.0), D.Gamma(1.5, 0.25)),
    "beta": (stats.beta(2.0, 3.0), D.Beta(2.0, 3.0)),
    "powerlaw": (stats.powerlaw(2.0), D.Beta(2.0, 1.0)),
    "arcsine": (stats.arcsine(), D.Beta(0.5, 0.5)),
    "uniform": (stats.uniform(1.0, 2.0), D.Uniform(1.0, 3.0)),
    "poisson": (stats.poisson(3.0), D.Poisson(3.0)),
    "binom": (stats.binom(10, 0.3), D.Binomial(10, 0.3)),
    "a batch": (stats.expon(scale=[[1.0], [2.0]]), D.Exponential([[1.0], [0.5]])),
    "new normal": (stats.Normal(mu=1.0, sigma=2.0), D.Normal(1.0, 2.0)),
    "new standard normal": (stats.Normal(), D.Normal(0.0, 1.0)),
    "new uniform": (stats.Uniform(a=1.0, b=3.0), D.Uniform(1.0, 3.0)),
    "new binomial": (stats.Binomial(n=10, p=0.3), D.Binomial(10, 0.3)),
}
OTHERS = {
    D.Normal: D.Normal(0.5, 1.5), D.Gamma: D.Gamma(2.0, 1.0), D.Chi2: D.Chi2(4.0), D.Beta: D.Beta(1.5, 1.5),
    D.Uniform: D.Uniform(0.0, 4.0), D.Poisson: D.Poisson(4.0), D.Binomial: D.Binomial(10, 0.5),
    D.Exponential: D.Exponential(0.7),
}  # fmt: skip


@pytest.mark.parametrize("name", FROZEN)
def test_scipy(name):
    theirs, ours = FROZEN[name]
    other = OTHERS[type(ours)]
    np.testing.assert_array_equal(kl.kl_divergence(theirs, other), kl.kl_divergence(ours, other))
    np.testing.assert_array_equal(kl.kl_divergence(other, theirs), kl.kl_divergence(other, ours))
    np.testing.assert_array_equal(kl.kl_divergence(theirs, theirs), np.zeros(ours.batch_shape))


@pytest.mark.parametrize(
    ("p", "q", "same"),
    [
        (stats.expon(3.0, 2.0), stats.expon(3.0, 1.0), (D.Exponential(0.5), D.Exponential(1.0))),
        (stats.gamma(2.0, loc=-1.0), stats.gamma(3.0, loc=-1.0), (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0))),
        (stats.beta(2, 3, loc=1, scale=5), stats.beta(1, 1, loc=1, scale=5), (D.Beta(2, 3), D.Beta(1, 1))),
        (stats.geom(0.3), stats.geom(0.4), (D.Geometric(0.3), D.Geometric(0.4))),
        (stats.poisson(2.0, loc=4), stats.poisson(3.0, loc=4), (D.Poisson(2.0), D.Poisson(3.0))),
        (stats.chi2(3, 1.0, 2.0), stats.gamma(2.0, 1.0, 1.0), (D.Gamma(1.5, 0.25), D.Gamma(2.0, 1.0))),
    ],
)
def test_a_common_location_and_scale_are_taken_off(p, q, same):
    assert kl.kl_divergence(p, q) == kl.kl_divergence(*same)


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        (stats.expon(3.0), stats.expon(2.0), "Exponential has no location, but loc is 3"),
        (stats.beta(2, 3, scale=2.0), stats.beta(2, 3), "Beta has no scale, but scale is 2"),
        (stats.expon(), stats.expon(1.0), "Exponential has no location, but loc is 1"),
    ],
)
def test_a_location_that_does_not_fit_is_refused(p, q, words):
    with pytest.raises(ValueError, match=words):
        kl.kl_divergence(p, q)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (stats.expon(3.0), "loc is 3.0; one that both have is taken off, but loc is 3.0 of p and 1.0 of q"),
        (stats.norm, r"p: scipy.stats.norm is not frozen: call it with its parameters"),
        (stats.norm("a"), "p: Normal: loc must be real numbers, not <U1"),
        (D.Normal, "p: a distribution like the other argument, not the class Normal; call that"),
    ],
)
def test_errors_say_what_to_do(p, words):
    with pytest.raises((ValueError, TypeError), match=words):
        kl.kl_divergence(p, stats.expon(1.0))


@pytest.mark.parametrize("function", [kl.js_divergence, kl.rel_entr, lambda p, q: kl.entropy(p)])
def test_arrays_are_no_distributions(function):
    with pytest.raises(TypeError, match="an array, not a distribution, Normal"):
        function(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))


def test_log_odds_further_apart_than_the_range():
    np.testing.assert_array_equal(D.Categorical(logits=[1e308, -1e308]).probs, [1.0, 0.0])


def test_a_scale_of_0_is_not_taken_off():
    with pytest.raises(ValueError, match="Beta has no scale, but scale is 0"):
        kl.kl_divergence(stats.beta(2, 3, scale=0.0), stats.beta(2, 4, scale=0.0))


def test_a_class_of_the_users_own_with_a_known_name():
    class Own(stats.rv_continuous):
        def _pdf(self, x):
            return np.exp(-np.abs(x)) / 2

    with pytest.raises(TypeError, match=r"p: Own is not a distribution of scipy\.stats itself"):
        kl.kl_divergence(Own(name="norm")(), stats.norm())
    with pytest.raises(TypeError, match="p: rv_sample is not"):
        kl.kl_divergence(stats.rv_discrete(name="bernoulli", values=([0, 1], [0.5, 0.5]))(), stats.bernoulli(0.5))


def test_what_is_not_known_is_named():
    with pytest.raises(TypeError, match=r"q: scipy\.stats\.burr12 has no counterpart"):
        kl.kl_divergence(stats.norm(), stats.burr12(1.0, 2.0))
    with pytest.raises(TypeError, match=r"q: scipy\.stats\.burr12 has no counterpart"):
        kl.kl_divergence(stats.beta(2, 3, scale=2.0), stats.burr12(1.0, 2.0))  # not the scale, which is no obstacle
    with pytest.raises(TypeError, match=r"p: .*gumbel_l has no counterpart here: -x of gumbel_r, for which the other"):
        kl.kl_divergence(stats.gumbel_l(), stats.expon())
    with pytest.raises(TypeError, match=r"^p: .*triang has no .*; kl_divergence takes it with method='quadrature' or"):
        kl.kl_divergence(stats.triang(0.5), stats.norm())
    with pytest.raises(TypeError, match=r"^q: .*zipf has no .*; kl_divergence takes it with method='sum' or 'monte_"):
        kl.kl_divergence(stats.poisson(2.0), stats.zipf(4.0))
    with pytest.raises(TypeError, match=r"p: scipy\.stats' MonotonicTransformedDistribution"):
        kl.kl_divergence(stats.exp(stats.Normal()), stats.norm())
    with pytest.raises(TypeError, match="q: a distribution like the other argument, not list"):
        kl.kl_divergence(stats.norm(), [0.5, 0.5])


def subclasses(of):
    """All of them, PyTorch's own."""
    for found in of.__subclasses__():
        if found.__module__.startswith("torch."):
            yield found
        yield from subclasses(found)


class TestTorch:
    """Results are tensors."""

    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        self.of = self.torch.distributions

    def test_a_count_does_not_make_wide_what_is_narrow(self):
        torch, of = self.torch, self.of
        p, q = torch.tensor([0.25, 0.75]), torch.tensor([0.5, 0.5])
        found = kl.kl_divergence(of.Multinomial(3, p), of.Multinomial(3, q))
        assert found.dtype == torch.float32
        assert found == 3 * kl.kl_divergence(of.Categorical(p), of.Categorical(q))
        assert kl.kl_divergence(of.Multinomial(3, p.double()), of.Multinomial(3, q)).dtype == torch.float64
        assert kl.kl_divergence(of.Multinomial(2**24 + 1, p), of.Multinomial(2**24 + 1, q)).dtype == torch.float64

    @pytest.mark.parametrize("name", sorted(D.foreign.TORCH | D.foreign.TORCH_ODDS))
    def test_every_family_that_both_have(self, name):
        torch, of = self.torch, self.of
        first, second = torch.tensor([0.3, 0.6], dtype=torch.float64), torch.tensor([0.7, 0.9], dtype=torch.float64)
        vectors = torch.stack([first, 1 - first])
        made = {
            "Binomial": lambda x: of.Binomial(10, x),
            "Categorical": lambda x: of.Categorical(vectors * x),
            "Chi2": of.Chi2,
            "Dirichlet": lambda x: of.Dirichlet(vectors * x[0]),
            "LowRankMultivariateNormal": lambda x: of.LowRankMultivariateNormal(x, x[:, None], x),
            "Wishart": lambda x: of.Wishart(3.0 + x[0], torch.diag(x)),
            "Multinomial": lambda x: of.Multinomial(10, vectors * x),
            "MultivariateNormal": lambda x: of.MultivariateNormal(x, torch.diag(x)),
            "NegativeBinomial": lambda x: of.NegativeBinomial(3.0, x),
            "OneHotCategorical": lambda x: of.OneHotCategorical(vectors * x),
            "StudentT": lambda x: of.StudentT(3.0, x, x),
            "Uniform": lambda x: of.Uniform(-x, x),
        }
        single = {"Bernoulli", "ContinuousBernoulli", "Exponential", "Geometric", "HalfCauchy", "HalfNormal", "Poisson"}
        make = made.get(name, (lambda x: getattr(of, name)(x)) if name in single else lambda x: getattr(of, name)(x, x))
        p, q = make(first), make(second)
        try:
            result = kl.kl_divergence(p, q)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                of.kl_divergence(p, q)
            return
        assert isinstance(result, torch.Tensor)
        try:
            expected = of.kl_divergence(p, q)
        except NotImplementedError:
            assert (result >= 0).all()
            return
        torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-9)

    def test_mixtures_and_transformed_distributions(self):
        of, torch = self.of, self.torch
        numbers = torch.tensor([0.3, 0.6], dtype=torch.float64)
        p, q = (of.MixtureSameFamily(of.Categorical(numbers), of.Normal(numbers, x)) for x in (1.0, 2.0))
        ours = [D.Mixture(D.Categorical([0.3, 0.6]), D.Normal(np.array([0.3, 0.6]), x)) for x in (1.0, 2.0)]
        found = kl.kl_divergence(p, q, method="bounds", return_error=True)
        expected = kl.kl_divergence(*ours, method="bounds", return_error=True)
        assert [x.item() for x in found] == pytest.approx([float(x) for x in expected], rel=1e-12)
        chain = [of.AffineTransform(1.0, 2.0), of.ExpTransform()]
        p, q = (of.TransformedDistribution(of.Normal(numbers, x), chain) for x in (1.0, 2.0))
        torch.testing.assert_close(kl.kl_divergence(p, q), of.kl_divergence(p, q), rtol=1e-12, atol=0.0)
        p, q = (of.LogisticNormal(numbers, x * numbers) for x in (1.0, 2.0))
        torch.testing.assert_close(kl.kl_divergence(p, q), of.kl_divergence(p, q), rtol=1e-12, atol=0.0)
        stick = D.StickBreakingTransform()(numbers.numpy())
        torch.testing.assert_close(torch.from_numpy(stick), of.StickBreakingTransform()(numbers), rtol=1e-14, atol=0.0)

    def test_a_tensor_without_numbers_is_refused(self):
        numbers = self.torch.ones(2, device="meta")
        p = self.of.Normal(numbers, numbers, validate_args=False)
        with pytest.raises(ValueError, match="p: a parameter is a tensor on the device 'meta', which holds no numbers"):
            kl.kl_divergence(p, self.of.Normal(0.0, 1.0))

    def test_every_class_is_converted_or_refused_with_a_reason(self):
        torch, of = self.torch, self.of
        numbers = torch.tensor([0.3, 0.6], dtype=torch.float64)
        two = torch.tensor(2.0, dtype=torch.float64)
        made = {
            "ExpRelaxedCategorical": lambda: of.relaxed_categorical.ExpRelaxedCategorical(two, numbers),
            "FisherSnedecor": lambda: of.FisherSnedecor(two, two),
            "GeneralizedPareto": lambda: of.GeneralizedPareto(two, 0.5 * two, 0.5),
            "LKJCholesky": lambda: of.LKJCholesky(3, two),
            "LogitRelaxedBernoulli": lambda: of.relaxed_bernoulli.LogitRelaxedBernoulli(two, numbers),
            "RelaxedBernoulli": lambda: of.RelaxedBernoulli(two, numbers),
            "RelaxedOneHotCategorical": lambda: of.RelaxedOneHotCategorical(two, numbers),
        }
        elsewhere = {"Independent", "LogisticNormal", "MixtureSameFamily", "TransformedDistribution"}
        elsewhere |= {"OneHotCategoricalStraightThrough", *D.foreign.TORCH, *D.foreign.TORCH_ODDS}
        abstract = {"ExponentialFamily"}
        assert {x.__name__ for x in subclasses(of.Distribution)} == elsewhere | abstract | set(made)
        assert set(RELATIVES) | set(NONE) == set(made) | {"LogisticNormal"}
        for name, make in made.items():
            if name in RELATIVES:
                assert isinstance(D.foreign.ours(make(), "p"), D.Distribution)
            else:
                with pytest.raises(TypeError, match=rf"p: torch\.distributions' {name} has no .* p\.log_prob\(x\)"):
                    D.foreign.ours(make(), "p")

    def test_relatives_by_another_name(self):
        torch, of = self.torch, self.of
        two = torch.tensor(2.0, dtype=torch.float64)
        rng = torch.Generator().manual_seed(5)
        narrow = torch.tensor(2.0)  # its densities are of single precision only
        cases = [
            (of.GeneralizedPareto(0.0 * narrow, narrow, 0.0), of.GeneralizedPareto(0.0 * narrow, 3.0 * narrow, 0.0)),
            (of.GeneralizedPareto(narrow, narrow, 0.0), of.GeneralizedPareto(narrow, 3.0 * narrow, 0.0)),
            (of.GeneralizedPareto(narrow, narrow, -1.0), of.GeneralizedPareto(narrow, 3.0 * narrow, -1.0)),
            (of.GeneralizedPareto(narrow, 0.5 * narrow, 0.5), of.GeneralizedPareto(narrow, 0.25 * narrow, 0.25)),
            (of.RelaxedBernoulli(two, logits=two), of.RelaxedBernoulli(two, logits=-two)),
            (
                of.relaxed_bernoulli.LogitRelaxedBernoulli(two, logits=two),
                of.relaxed_bernoulli.LogitRelaxedBernoulli(two, logits=-two),
            ),
        ]
        for p, q in cases:
            with torch.random.fork_rng():
                torch.manual_seed(rng.initial_seed())
                x = p.sample((200_000,))
            ratios = (p.log_prob(x) - q.log_prob(x)).double()
            mean, error = ratios.mean().item(), ratios.std().item() / 200_000**0.5
            assert abs(kl.kl_divergence(p, q).item() - mean) < 5.0 * error + 1e-6  # densities of single precision
        with pytest.raises(NotImplementedError, match=r"GeneralizedPareto: taken with the concentration 0"):
            kl.kl_divergence(of.GeneralizedPareto(0.0, 1.0, 0.3), of.GeneralizedPareto(0.0, 1.0, 0.3))

    def test_single_precision_and_a_mix(self):
        torch = self.torch
        p = self.of.Normal(torch.zeros(3), torch.ones(3))
        result = kl.kl_divergence(p, p)
        assert result.dtype == torch.float32
        assert torch.equal(result, torch.zeros(3))
        mixed = kl.kl_divergence(p, stats.norm(1.0, 2.0))
        assert isinstance(mixed, torch.Tensor)
        assert mixed.tolist() == pytest.approx([float(kl.kl_divergence(D.Normal(), D.Normal(1.0, 2.0)))] * 3)

    def test_bfloat16_parameters(self):
        p = self.of.Normal(self.torch.tensor(0.0).bfloat16(), self.torch.tensor(1.0).bfloat16())
        assert kl.kl_divergence(p, self.of.Normal(1.0, 1.0)).item() == 0.5

    def test_a_gradient_is_not_lost_unseen(self):
        torch = self.torch
        p = self.of.Bernoulli(logits=torch.tensor(900.0, dtype=torch.float64, requires_grad=True))
        assert kl.kl_divergence(p, self.of.Bernoulli(0.5)).requires_grad
        assert kl.kl_divergence(D.Bernoulli([0.5, 0.5]), p.expand((2,))).requires_grad
        pareto = self.of.GeneralizedPareto(0.0, torch.tensor(1.0, requires_grad=True), 0.0)
        with pytest.raises(RuntimeError, match=r"p: no gradient .*detach it or compute under torch.no_grad\(\)"):
            kl.kl_divergence(pareto, pareto)
        with torch.no_grad():
            found = kl.kl_divergence(p, self.of.Bernoulli(0.5))
        assert found.item() == pytest.approx(np.log(2.0))
        assert not found.requires_grad

    @pytest.mark.parametrize("family", ["Bernoulli", "Geometric", "ContinuousBernoulli"])
    def test_what_it_was_made_of_is_taken_though_the_other_was_looked_at(self, family):
        made = getattr(self.of, family)
        of_logits = made(logits=self.torch.tensor(50.0, dtype=self.torch.float64))
        of_probs = made(probs=self.torch.tensor(0.1, dtype=self.torch.float64))
        for theirs, ours in (
            (of_logits, getattr(D, family)(logits=50.0)),
            (of_probs, getattr(D, family)(probs=0.1)),
        ):
            assert theirs.probs is not None
            assert theirs.logits is not None
            other = getattr(D, family)(0.3)
            assert kl.kl_divergence(theirs, other).item() == kl.kl_divergence(ours, other)

    @pytest.mark.parametrize("family", ["Categorical", "OneHotCategorical"])
    def test_a_zero_stays_a_zero(self, family):
        p, q = (getattr(self.of, family)(self.torch.tensor(x).double()) for x in ([0.5, 0.5, 0.0], [1.0, 1.0, 2.0]))
        assert kl.kl_divergence(p, q).item() == np.log(2.0)
        assert kl.kl_divergence(q, p).item() == np.inf

    def test_what_is_not_known_is_named(self):
        with pytest.raises(TypeError, match=r"p: torch\.distributions' FisherSnedecor has no counterpart here: the KL"):
            kl.kl_divergence(self.of.FisherSnedecor(2.0, 3.0), self.of.Normal(0.0, 1.0))

    def test_refused_parameters_are_named(self):
        heavy = self.of.GeneralizedPareto(0.0, 1.0, 0.5)
        with pytest.raises((NotImplementedError, TypeError), match=r"^q: .*GeneralizedPareto"):
            kl.kl_divergence(D.Normal(), heavy)
        refused = self.of.Normal(0.0, -1.0, validate_args=False)
        for name, pair in {"p": (refused, D.Normal()), "q": (self.of.Normal(0.0, 1.0), refused)}.items():
            with pytest.raises(ValueError, match=f"^{name}: Normal: scale must be a finite number > 0"):
                kl.kl_divergence(*pair)


def test_relatives_of_kl():
    p, q = stats.norm(0.0, 1.0), stats.norm(1.0, 2.0)
    apart = kl.kl_divergence(p, q)
    assert kl.jeffreys_divergence(p, q) == apart + kl.kl_divergence(q, p)
    assert kl.cross_entropy(p, q) == pytest.approx(apart + p.entropy(), rel=1e-14)
    assert kl.cross_entropy(p, q, base=2) == pytest.approx((apart + p.entropy()) / np.log(2), rel=1e-14)
    assert kl.cross_entropy(D.Normal(), D.Exponential(1.0)) == np.inf
    with pytest.raises(TypeError, match="options that speak of rows"):
        kl.cross_entropy(p, q, axis=0)
    with pytest.raises(TypeError, match="options that speak of rows"):
        kl.jeffreys_divergence(p, q, where=np.array([True]))


def test_nothing_is_imported_for_arrays():
    program = "import sys, numpy as np, klnumba as kl; kl.kl_divergence(np.ones(3), [1, 2, 3]); "
    program += "print([x for x in ('scipy.stats', 'torch', 'klnumba.distributions') if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
