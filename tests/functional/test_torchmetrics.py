"""`functional.kl_divergence` against torchmetrics' function of that name."""

import math

import numpy as np
import pytest

import klnumba as kl
from tests.reference import mp
from tests.reference.torch_differences import DIFFERENCES

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
peer = pytest.importorskip(
    "torchmetrics.functional.regression", reason="torchmetrics is not installed: nothing to compare with"
).kl_divergence
ours = kl.functional.kl_divergence


def rows(shape, dtype, log_prob, seed=0):
    generator = torch.Generator().manual_seed(seed)
    p, q = (torch.rand(shape, generator=generator, dtype=torch.float64) + 0.01 for _ in range(2))
    if log_prob:
        p, q = p.log_softmax(-1), q.log_softmax(-1)
    return p.to(dtype), q.to(dtype)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", None])
@pytest.mark.parametrize("log_prob", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (6, 5), (64, 100), (3, 2000)], ids=str)
def test_values(shape, dtype, log_prob, reduction):
    p, q = rows(shape, dtype, log_prob)
    theirs, mine = peer(p, q, log_prob, reduction), ours(p, q, log_prob, reduction)
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    precision = torch.finfo(dtype).eps
    np.testing.assert_allclose(mine, theirs, rtol=50 * precision, atol=20 * precision)
    plain = ours(p.numpy(), q.numpy(), log_prob, reduction)
    np.testing.assert_array_equal(plain, mine.numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_read_as_it_is(dtype):
    p, q = rows((4, 30), dtype, False)
    result = ours(p, q, reduction="none")
    assert result.dtype == torch.float32
    for row in range(4):
        assert mp.ulp_error(result[row], mp.kl_divergence(p[row], q[row]), "float32") <= 2


def test_integers_promote():
    counts = torch.tensor([[3, 3], [1, 0]]), torch.tensor([[2, 6], [4, 4]])
    np.testing.assert_allclose(ours(*counts, reduction="none"), peer(*counts, reduction="none"), rtol=1e-6)


@pytest.mark.parametrize(("p", "q"), [
    ([[0.0, 1.0]], [[0.5, 0.5]]), ([[0.5, 0.5]], [[0.0, 1.0]]), ([[0.0, 1.0]], [[0.0, 1.0]]),
    ([[0.0, 0.0]], [[0.5, 0.5]]), ([[0.5, 0.5]], [[0.0, 0.0]]), ([[-1.0, 2.0]], [[0.5, 0.5]]),
])  # fmt: skip
def test_edges_that_agree(p, q):
    tensors = [torch.tensor(x, dtype=torch.float64) for x in (p, q)]
    np.testing.assert_allclose(ours(*tensors), peer(*tensors), rtol=1e-15)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_empty(reduction):
    empty = torch.zeros((0, 3), dtype=torch.float64)
    np.testing.assert_array_equal(ours(empty, empty, reduction=reduction), peer(empty, empty, reduction=reduction))


@pytest.mark.parametrize("case", [d for d in DIFFERENCES if d.function == "kl_divergence"], ids=lambda case: case.name)
def test_differences(case):
    tensors = [torch.tensor(x, dtype=torch.float64) for x in (case.first, case.second)]
    np.testing.assert_allclose(float(peer(*tensors, **case.arguments)), case.theirs, err_msg="the table is out of date")
    np.testing.assert_allclose(float(ours(*tensors, **case.arguments)), case.ours, rtol=1e-15)


def test_shapes_must_be_equal():
    with pytest.raises(RuntimeError) as theirs:
        peer(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(RuntimeError) as mine:
        ours(np.ones((2, 3)), np.ones((2, 4)))
    assert str(mine.value) == str(theirs.value).replace("torch.Size([2, 3])", "(2, 3)").replace(
        "torch.Size([2, 4])", "(2, 4)"
    )


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_two_axes(shape):
    with pytest.raises(ValueError, match="2D") as theirs:
        peer(torch.ones(shape), torch.ones(shape))
    with pytest.raises(ValueError, match="2D") as mine:
        ours(torch.ones(shape), torch.ones(shape))
    assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize("reduction", ["foo", "batchmean"])
def test_unknown_reduction(reduction):
    metric = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed").KLDivergence
    with pytest.raises(ValueError, match="reduction") as theirs:
        metric(reduction=reduction)
    with pytest.raises(ValueError, match="reduction") as mine:
        ours(np.ones((2, 3)), np.ones((2, 3)), reduction=reduction)
    assert str(mine.value) == str(theirs.value)


def test_near_equal_rows_keep_their_digits():
    generator = np.random.default_rng(5)
    p = generator.uniform(0.5, 1, (1, 200))
    q = p * (1 + 1e-9 * generator.standard_normal((1, 200)))
    assert mp.ulp_error(ours(p, q), mp.kl_divergence(p[0], q[0])) <= 4
    assert float(ours(p, p)) == 0
    assert not math.isnan(float(ours(p, q, reduction="sum")))
