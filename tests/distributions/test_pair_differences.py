"""The documentation's list of pairs on which PyTorch answers otherwise: both sides are called."""

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as ours
from tests.reference.pair_differences import DIFFERENCES, markdown_table, shown

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


def test_table():
    assert markdown_table().count("\n") == len(DIFFERENCES) + 2
