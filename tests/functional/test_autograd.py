"""Gradients of PyTorch through the array functions and the losses."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pandas as pd
import pytest

import klnumba as kl
from klnumba import derivatives, functional
from klnumba.distributions import AffineTransform, Normal, TransformedDistribution, kl_divergence_grad, pairwise_kl

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
F = torch.nn.functional

INF, NAN = math.inf, math.nan


def pair(shape, seed=0, dtype=torch.float64, logits=False):
    rng = np.random.default_rng(seed)
    sides = rng.normal(size=(2, *shape)) if logits else rng.uniform(0.1, 1.0, (2, *shape))
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in sides]


CALLS = {
    "kl": lambda p, q: kl.kl_divergence(p, q),
    "kl, plain": lambda p, q: kl.kl_divergence(p, q, normalize=False),
    "kl of logits": lambda p, q: kl.kl_divergence(p, q, kind="logit", temperature=0.7),
    "kl of log-probabilities": lambda p, q: kl.kl_divergence(p, q, kind="log_prob", normalize=False),
    "mean of kl": lambda p, q: kl.kl_divergence(p, q, reduction="mean", base=2),
    "sum of kl": lambda p, q: kl.kl_divergence(p, q, reduction="sum", keepdims=True),
    "kl along an axis": lambda p, q: kl.kl_divergence(p, q, axis=0, keepdims=True),
    "kl of all": lambda p, q: kl.kl_divergence(p, q, axis=None),
    "js": lambda p, q: kl.js_divergence(p, q, weight=0.3),
    "js of logits": lambda p, q: kl.js_divergence(p, q, kind="logit"),
    "jeffreys": lambda p, q: kl.jeffreys_divergence(p, q),
    "cross-entropy": lambda p, q: kl.cross_entropy(p, q, kind="logit"),
    "entropy": lambda p, q: kl.entropy(p),
    "rel_entr": lambda p, q: kl.rel_entr(p, q),
    "rel_entr of some": lambda p, q: kl.rel_entr(p, q, where=np.arange(5) % 2 == 0).nan_to_num()[:, ::2],
    "generalized_kl": lambda p, q: kl.generalized_kl(p, q),
    "loss": lambda p, q: functional.kl_div(q, p, reduction="batchmean"),
    "loss of cells": lambda p, q: functional.kl_div(q, p, reduction="none"),
    "loss of logs": lambda p, q: functional.kl_div(q, p, reduction="sum", log_target=True),
    "loss object": lambda p, q: functional.KLDivLoss(reduction="batchmean", log_target=True)(q, p),
    "torchmetrics": lambda p, q: functional.kl_divergence(p, q),
}


@pytest.mark.parametrize("name", CALLS)
def test_against_differences(name):
    """PyTorch's own check: the values a little to both sides of every cell."""
    assert torch.autograd.gradcheck(CALLS[name], pair((3, 5)))


@pytest.mark.parametrize("reduction", ["batchmean", "sum", "none", "mean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
def test_the_losses_are_pytorchs(reduction, log_target):
    found = []
    for loss in (F.kl_div, functional.kl_div):
        target, model = pair((4, 6), logits=log_target)
        result = loss(model.log_softmax(-1), target.log_softmax(-1) if log_target else target, reduction=reduction,
                      log_target=log_target)  # fmt: skip
        result.backward(torch.ones_like(result))
        found.append((target.grad, model.grad))
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_distillation():
    """The usual loss from logits, through a model, against PyTorch's own way."""
    torch.manual_seed(0)
    teacher = torch.randn(32, 10, dtype=torch.float64)
    inputs = torch.randn(32, 6, dtype=torch.float64)
    grads = []
    for ours in (True, False):
        torch.manual_seed(1)
        model = torch.nn.Linear(6, 10, dtype=torch.float64)
        student = model(inputs)
        if ours:
            loss = kl.kl_divergence(teacher, student, kind="logit", temperature=2.0, reduction="mean") * 4.0
        else:
            loss = F.kl_div((student / 2).log_softmax(-1), (teacher / 2).softmax(-1), reduction="batchmean") * 4.0
        loss.backward()
        grads.append((loss.detach(), model.weight.grad, model.bias.grad))
    for one, other in zip(*grads, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-15)


def test_a_model_learns():
    torch.manual_seed(0)
    target = torch.randn(8, 5).softmax(-1)
    logits = torch.zeros(8, 5, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.3)
    for _ in range(200):
        optimizer.zero_grad()
        loss = kl.kl_divergence(target.log(), logits, kind="logit", reduction="mean")
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-6


def test_the_last_digits_of_near_rows():
    """q - p of nearly equal rows: PyTorch's difference of two exponentials has no digit left."""
    teacher = torch.linspace(-1, 1, 50, dtype=torch.float32)
    student = (teacher + 2.0**-22 * (torch.arange(50) % 2)).requires_grad_()
    kl.kl_divergence(teacher, student, kind="logit").backward()
    p, q = (x.detach().double().softmax(-1) for x in (teacher, student))
    assert torch.allclose(student.grad.double(), q - p, rtol=1e-6, atol=0)
    student.grad = None
    F.kl_div(student.log_softmax(-1), teacher.softmax(-1), reduction="sum").backward()
    assert not torch.allclose(student.grad.double(), q - p, rtol=1e-2, atol=0)


def test_zeros():
    """Where PyTorch's gradients are NaN: a target of zero, and a masked logit."""
    target = torch.tensor([0.0, 0.4, 0.6], requires_grad=True)
    model = torch.tensor([-INF, math.log(0.5), math.log(0.5)], requires_grad=True)
    functional.kl_div(model, target, reduction="sum").backward()
    assert target.grad.tolist() == pytest.approx([0.0, math.log(0.8) + 1, math.log(1.2) + 1], rel=1e-6)
    assert model.grad.tolist() == pytest.approx([0.0, -0.4, -0.6])
    teacher = torch.tensor([[-INF, 0.0, 1.0]], requires_grad=True)
    student = torch.tensor([[-INF, 0.0, 0.0]], requires_grad=True)
    kl.kl_divergence(teacher, student, kind="logit").sum().backward()
    assert teacher.grad[0, 0] == student.grad[0, 0] == 0
    assert torch.isfinite(teacher.grad).all()
    assert torch.isfinite(student.grad).all()


def test_rows_that_count_nothing():
    """What is multiplied by zero afterwards does not come back as NaN."""
    p, q = pair((3, 4))
    with torch.no_grad():
        p[1, 2] = -1.0
        q[2, 0] = 0.0
    values = kl.kl_divergence(p, q)
    assert values[1].isnan()
    assert values[2] == INF
    torch.where(torch.tensor([True, False, False]), values, 0.0).sum().backward()
    for x in (p, q):
        assert torch.isfinite(x.grad).all()
        assert not x.grad[1:].any()


def test_the_value_is_the_same():
    p, q = pair((20, 30))
    plain = kl.kl_divergence(p.detach(), q.detach())
    found = kl.kl_divergence(p, q)
    assert found.requires_grad
    assert torch.equal(found.detach(), plain)
    with torch.no_grad():
        assert not kl.kl_divergence(p, q).requires_grad
        assert torch.equal(kl.kl_divergence(p, q), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    p, q = pair((4, 6), dtype=dtype, logits=True)
    result = kl.kl_divergence(p, q, kind="logit")
    assert result.dtype == torch.float32
    result.sum().backward()
    assert p.grad.dtype == q.grad.dtype == dtype
    a, b = (x.detach().double().requires_grad_() for x in (p, q))
    kl.kl_divergence(a, b, kind="logit").sum().backward()
    assert torch.allclose(q.grad.double(), b.grad, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_other_sides():
    """A tensor beside an array or a list; a tensor that stands for many rows; views."""
    p, q = pair((4, 5))
    kl.kl_divergence(p.detach().numpy(), q).sum().backward()
    expected = q.grad.clone()
    for left in (p.detach(), p.detach().tolist()):
        q.grad = None
        kl.kl_divergence(left, q).sum().backward()
        assert torch.equal(q.grad, expected)
    row = torch.full((5,), 0.2, dtype=torch.float64, requires_grad=True)
    kl.kl_divergence(p.detach(), row).sum().backward()
    assert row.grad.shape == (5,)
    expanded = torch.full((5,), 0.2, dtype=torch.float64, requires_grad=True)
    kl.kl_divergence(p.detach(), expanded.expand(4, 5)).sum().backward()
    assert torch.allclose(row.grad, expanded.grad, rtol=1e-14, atol=1e-15)
    assert torch.autograd.gradcheck(
        lambda p, q: kl.kl_divergence(p.T, q[:, ::2].T), pair((3, 3))[:1] + pair((3, 6))[1:]
    )


def test_only_what_is_wanted():
    p, q = pair((3, 4))
    kl.kl_divergence(p.detach(), q).sum().backward()
    alone = q.grad.clone()
    q.grad = None
    kl.kl_divergence(p, q).sum().backward()
    assert torch.equal(q.grad, alone)
    assert p.grad is not None


def test_one_tensor_twice():
    p, _ = pair((3, 4))
    kl.entropy(p).sum().backward()
    entropy, p.grad = p.grad, None
    kl.cross_entropy(p, p).sum().backward()
    assert torch.allclose(p.grad, entropy, rtol=1e-12, atol=1e-14)


def test_no_forward_mode():
    """Where none is computed it is refused, not lost."""
    p, q = (x.detach() for x in pair((3, 4)))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, torch.ones_like(q))
        with pytest.raises(RuntimeError, match="q: a tensor with a tangent"):
            kl.row_statistics(p, dual)


def test_a_changed_argument_is_noticed():
    p, q = pair((3, 4))
    x = q * 1.0
    loss = kl.kl_divergence(p, x).sum()
    x += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("function", [kl.kl_divergence, kl.rel_entr])
def test_arrays_that_change_afterwards(function):
    """Such as a buffer that the next batch is read into: the gradient is that of the value."""
    _, q = pair((3, 4))
    p, where = np.full((3, 4), 0.25), torch.arange(4).expand(3, 4) != 1
    (expected,) = torch.autograd.grad(function(p, q, where=where).sum(), q)
    chosen = where.clone()
    value = function(p, q, where=chosen).sum()
    p[:, 0], chosen[:, 2] = 1.0, False
    assert torch.equal(torch.autograd.grad(value, q)[0], expected)


def test_functions_that_differentiate_functions():
    p, q = (x.detach() for x in pair((3, 4)))
    for call in (CALLS["kl"], CALLS["loss"], CALLS["rel_entr"]):
        found = torch.func.grad(lambda *sides, call=call: call(*sides).sum(), (0, 1))(p, q)
        sides = [x.clone().requires_grad_() for x in (p, q)]
        for got, exact in zip(found, torch.autograd.grad(call(*sides).sum(), sides), strict=True):
            assert torch.equal(got, exact)


def test_transforms_that_hide_the_cells():
    p, q = (x.detach() for x in pair((3, 4)))
    for call, name in ((kl.kl_divergence, "p"), (kl.rel_entr, "p"), (CALLS["loss"], "input")):
        with pytest.raises(RuntimeError, match=f"{name}: a tensor inside a transform of torch.func"):
            torch.func.functionalize(call)(p, q)
    with pytest.raises(RuntimeError, match=r"p: a tensor inside a transform of torch\.func"):
        torch.func.vmap(lambda p, q: kl.row_statistics(p, q)["kl"])(p, q)


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # the tracer's own
def test_a_trace_is_refused():
    """It would keep the numbers of this call for all that follow."""
    p, q = (x.detach() for x in pair((3, 4)))
    with pytest.raises(RuntimeError, match="inside a trace of"):
        torch.func.linearize(lambda q: kl.kl_divergence(p, q), q)


def test_a_derivative_that_is_a_negative_view():
    p, q = pair((3, 4))
    (found,) = torch.autograd.grad(kl.kl_divergence(p, q), q, torch._neg_view(torch.ones(3, dtype=torch.float64)))
    assert torch.equal(found, -torch.autograd.grad(kl.kl_divergence(p, q).sum(), q)[0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p, q: kl.kl_divergence(p, q, out=np.empty(3)), TypeError, "out: "),
        (lambda p, q: kl.rel_entr(p, q, out=np.empty((3, 4))), TypeError, "out: "),
        (lambda p, q: kl.kl_divergence(p, pd.DataFrame(q.detach().numpy())), TypeError, "DataFrame"),
        (lambda p, q: functional.kl_div(p, np.ma.array(q.detach().numpy(), mask=True)), TypeError, "masked"),
        (lambda p, q: kl.row_statistics(p, q), RuntimeError, r"p: .*requires grad.*p\.detach\(\)"),
        (lambda p, q: kl.KLDivergence().update(p, q), RuntimeError, r"p: .*requires grad.*p\.detach\(\)"),
        (lambda p, q: kl.kl_divergence(p, q[:2]), ValueError, "do not broadcast"),
        (lambda p, q: kl.kl_divergence(-p, q, invalid="raise"), ValueError, "row 0"),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(*pair((3, 4)))


def test_value_and_grad_of_tensors():
    p, q = pair((3, 4))
    value, (by_p, by_q) = kl.value_and_grad(kl.kl_divergence, (0, 1))(p, q)
    assert not value.requires_grad
    kl.kl_divergence(p, q).sum().backward()
    assert torch.equal(by_p, p.grad)
    assert torch.equal(by_q, q.grad)


@pytest.mark.parametrize("name", ["kl", "js of logits", "rel_entr", "loss", "torchmetrics"])
def test_tensors_of_a_class_of_the_caller(name):
    own = type("Own", (torch.Tensor,), {})
    p, q = pair((3, 4))
    first, second = (x.detach().as_subclass(own).requires_grad_() for x in (p, q))
    expected, found = CALLS[name](p, q), CALLS[name](first, second)
    assert torch.equal(found, expected)
    expected.sum().backward()
    found.sum().backward()
    assert torch.equal(first.grad, p.grad)
    assert torch.equal(second.grad, q.grad)
    mapped = torch.func.vmap(CALLS[name])(first.detach()[None], second.detach()[None])
    assert torch.equal(mapped[0], expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler's own
def test_a_compiled_model():
    """Inside torch.compile the call is made as it is, between compiled pieces."""
    p, q = pair((3, 4), logits=True)

    def step(p, q):
        return kl.kl_divergence(p.detach(), q * 2.0, kind="logit").sum() * 3.0

    step(p, q).backward()
    plain, q.grad = q.grad, None
    torch.compile(step, backend="eager")(p, q).backward()
    assert torch.allclose(q.grad, plain)


def test_a_compiled_call_by_keywords():
    p, q = (x.detach() for x in pair((3, 4)))

    def slope(p, q):
        return kl.value_and_grad(kl.kl_divergence, 1)(p=p, q=q * 2.0)[1] * 3.0

    assert torch.equal(torch.compile(slope, backend="eager")(p, q), slope(p, q))


def accumulated(p, q):
    metric = kl.KLDivergence()
    metric.update(p, q)
    return metric.compute()


P, Q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
OURS = Normal([0.5, 0.3], 1.0), Normal(0.0, 1.0)
COMPILED = {
    "lists": lambda x: x * float(kl.kl_divergence([0.5, 0.5], [0.25, 0.75])),
    "arrays": lambda x: x * float(kl.rel_entr(P, Q).sum()),
    "an accumulator": lambda x: x * float(accumulated(P, Q)),
    "derivatives": lambda x: x * float(kl.value_and_grad(kl.kl_divergence)(P, Q)[0][0]),
    "distributions made of tensors": lambda x: kl.kl_divergence(Normal(x, 1.0), Normal(0.0, 1.0)),
    "distributions of numbers": lambda x: x * float(kl.kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))),
    "distributions from outside": lambda x: x * float(kl.jeffreys_divergence(*OURS)[0]),
    "an entropy": lambda x: x * float(OURS[1].entropy()),
    "transforms": lambda x: x * float(TransformedDistribution(OURS[1], AffineTransform(0.0, 3.0)).entropy()),
    "all pairs": lambda x: x * float(pairwise_kl(torch.distributions.Normal(x.detach(), 1.0))[0, 1]),
    "derivatives by parameters": lambda x: x * float(kl_divergence_grad(*OURS)[0][0]),
    "PyTorch's distributions": lambda x: kl.kl_divergence(*(torch.distributions.Normal(y, 1.0) for y in (x, 2 * x))),
    "statistics": lambda x: x * kl.row_statistics(x.detach().exp(), P[0])["js"],
    "loss": lambda x: functional.kl_div(x.log_softmax(-1), x.detach().softmax(-1), reduction="sum"),
    "loss object": lambda x: functional.KLDivLoss(reduction="sum")(x.log_softmax(-1), x.detach().softmax(-1)),
    "torchmetrics": lambda x: functional.kl_divergence(x.softmax(-1)[None], Q),
}


def test_the_way_past_a_compiler_that_does_not_tell_what_it_follows(monkeypatch):
    """As that of a PyTorch which keeps this elsewhere."""
    torch.compile(torch.sin, backend="eager")(torch.ones(1))
    from klnumba import torch_compiler

    with monkeypatch.context() as changed:
        changed.delattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback")
        assert not importlib.reload(torch_compiler).is_around()
        assert kl.kl_divergence([0.5, 0.5], [0.25, 0.75]) == kl.kl_divergence(P, Q)[0]
    assert not importlib.reload(torch_compiler).is_around()


@pytest.mark.filterwarnings("error:Dynamo detected a call:UserWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler's own
@pytest.mark.parametrize("name", COMPILED)
def test_no_door_is_compiled(name):
    """Whatever is given; nor does the compiler warn of what it finds behind one."""
    torch._dynamo.reset()
    x = torch.tensor([0.5, 0.3], dtype=torch.float64, requires_grad=True)
    found, expected = torch.compile(COMPILED[name], backend="eager")(x), COMPILED[name](x)
    assert torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (found, expected)))


@pytest.mark.parametrize("name", ["kl_divergence", "cross_entropy", "entropy"])
def test_usual_rows_are_quick(name, monkeypatch):
    """Those by logits; of the entropy, which has no q, too."""
    monkeypatch.setattr(derivatives.cpu, "slope_rows", None)
    p, q = pair((30, 40), dtype=torch.float32, logits=True)
    sides = (p,) if name == "entropy" else (p, q)
    getattr(kl, name)(*sides, kind="logit").sum().backward()
    assert all(side.grad.isfinite().all() for side in sides)
