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


def test_table():
    assert markdown_table().count("\n") == len(DIFFERENCES) + 2
