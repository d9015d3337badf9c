"""The documentation's list of pairs on which PyTorch answers otherwise: both sides are called."""

import math

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as ours
from tests.reference.pair_differences import BEHAVIOURS, DIFFERENCES, behaviours_table, exactly, markdown_table, shown

CASES = pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: f"{case.p[0]}-{case.q[0]}-{case.theirs}")


def truth(case):
    with mpmath.workdps(60):
        return np.array(case.true(mpmath), dtype=object).astype(np.float64)


@CASES
def test_ours(case):
    p, q = (
        getattr(ours, name)(**{k: np.array(x, case.dtype) for k, x in given.items()})
        for name, given in (case.p, case.q)
    )
    found = kl.kl_divergence(p, q)
    precision = {"float64": 1e-13, "float32": 1e-6}[case.dtype]
    np.testing.assert_allclose(found, truth(case), rtol=precision, atol=0)
    assert (np.asarray(found) >= 0).all()


@CASES
def test_theirs(case):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    kind = getattr(torch, case.dtype)
    p, q = (
        getattr(torch.distributions, name)(**{k: torch.tensor(x, dtype=kind) for k, x in given.items()})
        for name, given in (case.p, case.q)
    )
    if case.theirs.endswith("Error"):
        with pytest.raises((IndexError, NotImplementedError)) as raised:
            torch.distributions.kl_divergence(p, q)
        assert raised.type.__name__ == case.theirs
        return
    found = torch.distributions.kl_divergence(p, q).detach()
    assert shown(found.tolist()) == case.theirs, "the table is out of date"


class TestWhatThePageSaysBesides:
    """Of PyTorch's pairs in general."""

    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

    def test_infinite_pairs_have_the_shape_of_p(self, torch):
        p, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Uniform(torch.zeros(3), torch.ones(3))
        assert torch.distributions.kl_divergence(p, q).shape == ()
        assert kl.kl_divergence(ours.Normal(0.0, 1.0), ours.Uniform(np.zeros(3), np.ones(3))).shape == (3,)

    def test_no_derivative_by_the_p_of_wishart(self, torch):
        df = torch.tensor(5.0, requires_grad=True)
        p, q = (torch.distributions.Wishart(x, scale_tril=torch.eye(2)) for x in (df, torch.tensor(6.0)))
        torch.distributions.kl_divergence(p, q).backward()
        assert df.grad is None

    @pytest.mark.parametrize("name", ["Exponential", "Poisson"])
    def test_nearly_equal_parameters(self, torch, name):
        rates = 3.0, 3.0 * (1.0 + 1e-8)
        with mpmath.workdps(60):
            ratio = mpmath.mpf(rates[1]) / rates[0]
            want = float((ratio - 1 - mpmath.log(ratio)) * (3 if name == "Poisson" else 1))
        p, q = (getattr(torch.distributions, name)(torch.tensor(x, dtype=torch.float64)) for x in rates)
        assert abs(float(torch.distributions.kl_divergence(p, q)) / want - 1.0) > 0.1
        p, q = (getattr(ours, name)(x) for x in rates)
        assert float(kl.kl_divergence(p, q)) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize(
    ("of_torch", "theirs", "of_ours", "error"),
    [
        (
            lambda t, d: [
                d.TransformedDistribution(d.Normal(t.tensor(m), t.tensor(1.0)), [d.AbsTransform()]) for m in (1.0, -1.0)
            ],
            2.0,
            lambda: [ours.TransformedDistribution(ours.Normal(m, 1.0), [ours.AbsTransform()]) for m in (1.0, -1.0)],
            NotImplementedError,
        ),
        (
            lambda t, d: [d.Categorical(t.tensor(x, dtype=t.float64)) for x in ([1.0], [0.2, 0.3, 0.5])],
            3.506557897,
            lambda: [ours.Categorical(x) for x in ([1.0], [0.2, 0.3, 0.5])],
            ValueError,
        ),
        (
            lambda t, d: [d.Dirichlet(t.tensor(x)) for x in ([2.0], [2.0, 3.0])],
            -2.4849,
            lambda: [ours.Dirichlet(x) for x in ([2.0], [2.0, 3.0])],
            ValueError,
        ),
        (
            lambda t, d: [d.Independent(d.Normal(t.zeros(2, 3), t.ones(2, 3)), n) for n in (1, 2)],
            NotImplementedError,
            lambda: [ours.Independent(ours.Normal(np.zeros((2, 3)), 1.0), n) for n in (1, 2)],
            ValueError,
        ),
    ],
    ids=["AbsTransform", "Categorical", "Dirichlet", "Independent"],
)
def test_what_klnumba_refuses(of_torch, theirs, of_ours, error):
    """The first lines of BEHAVIOURS."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    with pytest.raises(error):
        kl.kl_divergence(*of_ours())
    pair = of_torch(torch, torch.distributions)
    if isinstance(theirs, float):
        assert float(torch.distributions.kl_divergence(*pair)) == pytest.approx(theirs, rel=1e-4)
    else:
        with pytest.raises(theirs):
            torch.distributions.kl_divergence(*pair)


def test_an_exponential_family_of_ones_own():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

    class Rayleigh(torch.distributions.ExponentialFamily):
        _mean_carrier_measure = 0

        def __init__(self, scale):
            self.scale = torch.tensor(scale, dtype=torch.float64)
            super().__init__(validate_args=False)

        @property
        def _natural_params(self):
            return (-0.5 / self.scale**2,)

        def _log_normalizer(self, x):
            return -torch.log(-2.0 * x)

    pair = Rayleigh(1.0), Rayleigh(2.0)
    theirs = torch.distributions.kl_divergence(*pair).item()
    assert theirs == pytest.approx(math.log(4.0) - 0.75, rel=1e-14)  # as the page registers it
    with pytest.raises(TypeError, match=r"p: torch\.distributions' Rayleigh has no counterpart here"):
        kl.kl_divergence(*pair)


def test_registering(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    from torch.distributions import kl as theirs

    monkeypatch.setattr(theirs, "_KL_REGISTRY", dict(theirs._KL_REGISTRY))
    normal = torch.distributions.Normal
    theirs.register_kl(int, float)(lambda p, q: 0)
    theirs.register_kl(normal, normal)(lambda p, q: 7.0)
    assert (int, float) in theirs._KL_REGISTRY
    assert theirs._KL_REGISTRY[normal, normal](None, None) == 7.0
    with pytest.raises(TypeError, match="p: a subclass of Distribution"):
        ours.register_kl(int, float)
    with pytest.raises(ValueError, match="registered already; replace=True"):
        ours.register_kl(ours.Normal, ours.Normal)(lambda p, q: 0)


def test_tables():
    text = markdown_table()
    assert text.count("\n") == len(DIFFERENCES) + 2
    assert "Poisson(rate=100000000.0) ‖ Poisson(rate=100000016.0)" in text
    assert exactly(0.1) == "0.1"
    assert behaviours_table().count("\n") == len(BEHAVIOURS) + 2
