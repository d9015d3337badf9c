"""Closed forms of parameters on a device, against those of the CPU."""

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions
from tests.gpu.on_device.arrays import SIMULATED, get, put

SIZE = 6 if SIMULATED else 10_000
CLOSE = 1e-13  # of two results of a quick form, each right to 5e-14
FAMILIES = ("Normal", "Gamma", "Beta", "Laplace", "Poisson", "Weibull", "VonMises", "InverseGaussian")


def parameters(family, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.5, 3.5, SIZE) for name in family.parameters}


@pytest.mark.parametrize("name", FAMILIES)
def test_pairs_of_one_family(name):
    family = getattr(distributions, name)
    p, q = parameters(family, 1), parameters(family, 2)
    on_device = [family(**{key: put(value) for key, value in side.items()}) for side in (p, q)]
    expected = kl.kl_divergence(family(**p), family(**q))
    np.testing.assert_allclose(get(kl.kl_divergence(*on_device)), expected, rtol=CLOSE)
    np.testing.assert_allclose(get(kl.kl_divergence(*on_device, base=2)), expected / np.log(2), rtol=CLOSE)


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Beta"])
def test_numbers_that_a_quick_form_does_not_serve(name):
    family = getattr(distributions, name)
    p, q = parameters(family, 3), parameters(family, 4)
    last = family.parameters[-1]
    p[last][:3], q[last][:3] = (1e-40, 1e40, 1e-300), (1e-41, 3e40, 2.0)
    on_device = [family(**{key: put(value) for key, value in side.items()}) for side in (p, q)]
    expected = kl.kl_divergence(family(**p), family(**q))
    np.testing.assert_allclose(get(kl.kl_divergence(*on_device)), expected, rtol=CLOSE)


D = distributions
PROBS, LOGITS = np.linspace(0.2, 0.8, SIZE), np.linspace(-2.0, 2.0, SIZE)
BY_FORM = {
    "Bernoulli": lambda f: (D.Bernoulli(f(PROBS)), D.Bernoulli(logits=f(LOGITS))),
    "Binomial": lambda f: (D.Binomial(5, logits=f(LOGITS)), D.Binomial(f(np.full(SIZE, 5.0)), f(PROBS))),
    "Binomial-Poisson": lambda f: (D.Binomial(5, f(PROBS)), D.Poisson(f(PROBS))),
    "NegativeBinomial": lambda f: (D.NegativeBinomial(5.0, f(PROBS)), D.NegativeBinomial(5.0, logits=f(LOGITS))),
    "Geometric": lambda f: (D.Geometric(f(PROBS)), D.Geometric(logits=f(LOGITS))),
    "ContinuousBernoulli-Normal": lambda f: (D.ContinuousBernoulli(f(PROBS)), D.Normal(f(LOGITS), 1.5)),
    "Uniform-ContinuousBernoulli": lambda f: (D.Uniform(0.1, f(PROBS)), D.ContinuousBernoulli(f(PROBS))),
    "Delta-Geometric": lambda f: (D.Delta(3.0), D.Geometric(logits=f(LOGITS))),
    "Logistic": lambda f: (D.Logistic(f(LOGITS), 2.0), D.Logistic(f(PROBS), 2.0)),
}


@pytest.mark.parametrize("name", BY_FORM)
def test_formulas_that_go_by_the_form_of_the_parameters(name):
    found = get(kl.kl_divergence(*BY_FORM[name](put)))
    np.testing.assert_allclose(found, kl.kl_divergence(*BY_FORM[name](np.asarray)), rtol=1e-13)


def test_parameters_that_would_have_to_be_looked_at():
    counts, scales = put(np.full(3, 2.0)), put(np.ones(3))
    with pytest.raises(NotImplementedError, match="total_count only, which are not looked at on a CUDA device"):
        kl.kl_divergence(D.NegativeBinomial(counts, 0.5), D.NegativeBinomial(counts, 0.4))
    with pytest.raises(NotImplementedError, match="give scale as numbers in the memory of the CPU"):
        kl.kl_divergence(D.Logistic(0.0, scales), D.Logistic(1.0, scales))


def test_two_families_and_numbers():
    Gamma, Normal = distributions.Gamma, distributions.Normal
    shape = np.random.default_rng(3).uniform(0.5, 3.5, SIZE)
    found = get(kl.kl_divergence(Gamma(put(shape), 2.0), Normal(1.0, put(np.array(1.5)))))
    np.testing.assert_allclose(found, kl.kl_divergence(Gamma(shape, 2.0), Normal(1.0, 1.5)), rtol=1e-14)


def test_batches_broadcast_and_keep_their_dtype():
    Normal = distributions.Normal
    loc, scale = np.linspace(-1, 1, 3)[:, None], np.linspace(1, 2, 2)
    found = kl.kl_divergence(Normal(put(loc), put(scale)), Normal(put(loc * 2), 1.0))
    np.testing.assert_allclose(get(found), kl.kl_divergence(Normal(loc, scale), Normal(loc * 2, 1.0)), rtol=1e-14)
    narrow = [Normal(put(x.astype(np.float32)), put(np.float32(2.0) * np.ones(1, np.float32))) for x in (loc, 2 * loc)]
    assert kl.kl_divergence(*narrow).dtype == np.float32
    assert narrow[0].batch_shape == (3, 1)
    assert "device" in repr(narrow[0])


def test_two_places():
    Normal = distributions.Normal
    with pytest.raises(ValueError, match=r"on device cuda:0 and in the memory of the CPU"):
        kl.kl_divergence(Normal(put(np.ones(3)), 1.0), Normal(np.ones(3), 1.0))


def test_entropy():
    scale = np.linspace(1, 2, 4)
    expected = distributions.Normal(0.0, scale).entropy()
    np.testing.assert_allclose(get(distributions.Normal(0.0, put(scale)).entropy()), expected, rtol=1e-14)


def test_a_pair_that_is_not_compiled():
    from klnumba.distributions import MultivariateNormal

    given = put(np.zeros(2)), put(np.eye(2))
    with pytest.raises((NotImplementedError, TypeError, ValueError)):
        kl.kl_divergence(
            MultivariateNormal(given[0], scale_tril=given[1]), MultivariateNormal(given[0], scale_tril=given[1])
        )
