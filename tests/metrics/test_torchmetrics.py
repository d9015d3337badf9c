"""The unit cases of torchmetrics' own tests, on tensors."""

import numpy as np
import pytest

import klnumba as kl

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
theirs = pytest.importorskip("torchmetrics.regression", reason="torchmetrics is not installed: nothing to compare with")


@pytest.mark.parametrize("log_prob", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("name", ["KLDivergence", "JensenShannonDivergence"])
def test_batches(name, reduction, log_prob):
    p, q = torch.rand(2, 4, 32, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.01
    p, q = (x.log_softmax(-1) if log_prob else x for x in (p, q))
    ours, peer = getattr(kl, name)(log_prob, reduction), getattr(theirs, name)(log_prob, reduction)
    for first, second in zip(p, q, strict=True):
        torch.testing.assert_close(ours(first, second), peer(first, second))
    torch.testing.assert_close(ours.compute(), peer.compute())


def test_rows_one_by_one():
    p, q = torch.rand(2, 10, 5, dtype=torch.float64)
    ours, peer = kl.KLDivergence(reduction=None), theirs.KLDivergence(reduction=None)
    for made in (ours, peer):
        made.update(p[:4], q[:4])
        made.update(p[4:], q[4:])
    torch.testing.assert_close(ours.compute(), peer.compute())


def test_different_shapes():
    with pytest.raises(RuntimeError, match="Predictions and targets are expected to have the same shape"):
        kl.KLDivergence()(torch.randn(100), torch.randn(50))


def test_multidimensional_tensors():
    with pytest.raises(ValueError, match="to be 2D but got 3 and 3 respectively"):
        kl.KLDivergence()(torch.randn(10, 20, 5), torch.randn(10, 20, 5))


def test_zero_probability():
    made = kl.KLDivergence()
    made.update(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.5]]))
    assert float(made.compute()) == pytest.approx(np.log(2.0))
    assert not torch.isfinite(kl.KLDivergence()(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.0, 1.0]])))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_probabilities_of_no_mass(dtype, reduction):
    """A cell of no mass adds nothing, as a probability and as its logarithm; peer's own test of later than 1.9."""
    p = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], dtype=dtype)
    q = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.1, 0.4, 0.5]], dtype=dtype)
    want = kl.functional.kl_divergence(p, q, reduction=reduction)
    torch.testing.assert_close(kl.functional.kl_divergence(p.log(), q.log(), True, reduction), want)
    made = kl.KLDivergence(log_prob=True, reduction=reduction)
    for first, second in zip(p.log().split(1), q.log().split(1), strict=True):
        made.update(first, second)
    torch.testing.assert_close(made.compute(), want.double(), rtol=1e-6, atol=0.0)


def test_log_probabilities_without_a_common_cell():
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert torch.isposinf(kl.functional.kl_divergence(p.log(), q.log(), log_prob=True))
    assert torch.isposinf(kl.KLDivergence(log_prob=True)(p.log(), q.log()))


def test_log_probabilities_far_below_what_a_probability_can_be():
    p, q = torch.tensor([[0.0, -1000.0]]), torch.tensor([[-1000.0, 0.0]])
    assert float(kl.functional.kl_divergence(p, q, log_prob=True)) == 1000.0
    assert float(kl.KLDivergence(log_prob=True)(p, q)) == 1000.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_dtypes(dtype):
    p, q = torch.rand(2, 8, 5).to(getattr(torch, dtype))
    value = kl.KLDivergence()(p, q)
    assert value.dtype == torch.float64
    wide = kl.KLDivergence()(p.double(), q.double())
    assert float(value) == pytest.approx(float(wide), rel=1e-6)


def test_the_result_stays_in_the_library():
    made = kl.KLDivergence()
    p = torch.full((3, 2), 0.5)
    made.update(p, p, groups=[1, 1, 2])
    assert isinstance(made.compute().values, torch.Tensor)
    assert isinstance(made.clone().compute().values, torch.Tensor)
