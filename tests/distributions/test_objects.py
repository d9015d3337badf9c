"""Parameter objects: what they take, what they refuse, and how they are shown."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from klnumba import distributions as D


def test_parameters_broadcast_and_keep_their_shape():
    d = D.Normal([0.0, 1.0], [[1.0], [2.0], [3.0]])
    assert d.batch_shape == (3, 2)
    assert d.event_shape == ()
    assert d.loc.shape == d.scale.shape == d.mean.shape == d.variance.shape == d.entropy().shape == (3, 2)
    np.testing.assert_array_equal(d.variance[:, 0], [1.0, 4.0, 9.0])


def test_a_distribution_does_not_change():
    given = np.ones(3)
    d = D.Normal(given, 2.0)
    given[0] = 7.0
    np.testing.assert_array_equal(d.loc, 1.0)
    for name in ("loc", "batch_shape", "anything"):
        with pytest.raises(AttributeError, match="does not change"):
            setattr(d, name, 1.0)
    with pytest.raises(AttributeError, match="does not change"):
        del d.batch_shape
    with pytest.raises(ValueError, match="read-only"):
        d.loc[0] = 3.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: D.Normal(0.0, -1.0), "Normal: scale must be a finite number > 0, but scale is -1.0"),
        (lambda: D.Normal([0.0, math.nan]), r"Normal: loc must be a finite number, but loc\[1\] is nan"),
        (lambda: D.Gamma([[1, 2], [0, 1]], 1), r"concentration must be .* > 0, but concentration\[1, 0\] is 0.0"),
        (lambda: D.Bernoulli(1.5), "probs must be a number from 0 to 1, but probs is 1.5"),
        (lambda: D.Bernoulli(logits=math.nan), "logits must be a number, but logits is nan"),
        (lambda: D.Geometric(0.0), "probs must be a number > 0 and <= 1, but probs is 0.0"),
        (lambda: D.Binomial(2.5, 0.5), "total_count must be an integer >= 0 .* is 2.5"),
        (lambda: D.NegativeBinomial(2.5, 1.0), "probs must be a number >= 0 and < 1, but probs is 1.0"),
        (lambda: D.Poisson(-1.0), "rate must be a finite number >= 0, but rate is -1.0"),
        (lambda: D.LogUniform(2.0, 1.0), "LogUniform: high must be above low, but low is 2.0 and high is 1.0"),
        (lambda: D.ContinuousBernoulli([0.5, 1.0]), r"probs must be a number > 0 and < 1, but probs\[1\] is 1.0"),
        (lambda: D.ContinuousBernoulli(logits=math.inf), "logits must be a finite number, but logits is inf"),
        (lambda: D.VonMises(0.0, -1.0), "concentration must be a finite number >= 0, but concentration is -1.0"),
        (lambda: D.Delta(math.inf), "v must be a finite number, but v is inf"),
        (lambda: D.Uniform(0.0, [1.0, 0.0]), r"Uniform: high must be above low, but at \[1\] low is 0.0 and high is 0"),
        (lambda: D.Normal([0, 1], [1, 2, 3]), r"do not broadcast: loc \(2,\), scale \(3,\)"),
        (lambda: D.Bernoulli(), "Bernoulli: give exactly one of probs and logits"),
        (lambda: D.Bernoulli(0.5, 0.0), "Bernoulli: give exactly one of probs and logits"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="Normal: loc must be real numbers, not complex128"):
        D.Normal(1j)
    with pytest.raises(TypeError, match="Normal: scale must be real numbers, not <U1"):
        D.Normal(0.0, "a")


def test_without_validation_anything_goes():
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1.0


def test_repr():
    assert repr(D.Normal(0.0, 2.5)) == "Normal(loc=0.0, scale=2.5)"
    assert repr(D.Bernoulli(logits=[0.0, 1.0])) == "Bernoulli(logits=[0., 1.])"
    assert len(repr(D.Normal(np.arange(1e6)))) < 200


def test_a_probability_and_its_log_odds():
    d = D.Bernoulli(logits=[-1000.0, 0.0, 2.0, math.inf])
    np.testing.assert_allclose(d.probs, [0.0, 0.5, 1 / (1 + math.exp(-2)), 1.0], rtol=1e-15)
    d = D.Geometric([0.25, 0.5, 1.0])
    np.testing.assert_allclose(d.logits, [-math.log(3), 0.0, math.inf], rtol=1e-15)


def test_infinite_and_missing_moments():
    assert math.isnan(D.Cauchy().mean)
    assert D.HalfCauchy().mean == math.inf
    np.testing.assert_array_equal(D.Pareto(1.0, [0.5, 1.5, 3.0]).mean, [math.inf, 3.0, 1.5])
    np.testing.assert_array_equal(D.Pareto(1.0, [0.5, 1.5, 3.0]).variance, [math.inf, math.inf, 0.75])
    np.testing.assert_array_equal(D.InverseGamma([0.5, 1.5, 3.0], 2.0).mean, [math.inf, 4.0, 1.0])
    np.testing.assert_array_equal(D.InverseGamma([0.5, 1.5, 3.0], 2.0).variance, [math.inf, math.inf, 1.0])


def test_moments_of_students_t():
    d = D.StudentT([0.5, 1.5, 2.0, 3.0], 1.0, 2.0)
    np.testing.assert_array_equal(d.mean, [math.nan, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(d.variance, [math.nan, math.inf, math.inf, 12.0])


@pytest.mark.parametrize("probs", [1e-9, 0.2, 0.5, 0.7])
def test_continuous_bernoulli_is_its_own_mirror(probs):
    p, q = D.ContinuousBernoulli(probs), D.ContinuousBernoulli(logits=-float(D.ContinuousBernoulli(probs).logits))
    assert float(p.mean) + float(q.mean) == pytest.approx(1.0, rel=1e-14)
    assert float(p.variance) == pytest.approx(float(q.variance), rel=1e-13)
    assert float(p.entropy()) == pytest.approx(float(q.entropy()), rel=1e-13)


def test_delta_is_certain():
    d = D.Delta([1.0, 2.0])
    np.testing.assert_array_equal(d.mean, [1.0, 2.0])
    np.testing.assert_array_equal(d.variance, 0.0)
    np.testing.assert_array_equal(d.entropy(), 0.0)


def test_pickle():
    d = pickle.loads(pickle.dumps(D.Gamma([1.0, 2.0], 3.0)))
    assert repr(d) == "Gamma(concentration=[1., 2.], rate=3.0)"
    assert d.batch_shape == (2,)


def test_from_scipy_refuses_what_the_family_does_not_have():
    stats = pytest.importorskip("scipy.stats")
    assert repr(D.Normal.from_scipy(stats.norm(1.0, scale=2.0))) == "Normal(loc=1.0, scale=2.0)"
    assert repr(D.Gamma.from_scipy(stats.gamma(a=3.0, scale=0.5))) == "Gamma(concentration=3.0, rate=2.0)"
    with pytest.raises(TypeError, match=r"a frozen scipy.stats.norm, not scipy.stats.gamma"):
        D.Normal.from_scipy(stats.gamma(3.0))
    with pytest.raises(TypeError, match=r"a frozen scipy.stats.norm, not float"):
        D.Normal.from_scipy(1.0)
    for cls in (D.Distribution, D.Lindley):
        with pytest.raises(TypeError, match=rf"{cls.__name__}\.from_scipy: scipy\.stats has no {cls.__name__};"):
            cls.from_scipy(stats.gamma(2.0))
    with pytest.raises(ValueError, match=r"Gamma has no location, but loc is 1"):
        D.Gamma.from_scipy(stats.gamma(3.0, loc=1.0))
    with pytest.raises(ValueError, match=r"Beta has no scale, but scale is 2"):
        D.Beta.from_scipy(stats.beta(3.0, 2.0, scale=2.0))
    with pytest.raises(ValueError, match="counts from 0"):
        D.Geometric.from_scipy(stats.geom(0.5))


def test_none_for_validate_args_checks_as_in_pytorch():
    with pytest.raises(ValueError, match="Normal: scale must be"):
        D.Normal(0.0, -1.0, validate_args=None)
