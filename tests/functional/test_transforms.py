"""Second derivatives, forward mode and batches of PyTorch through the array functions and the losses."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import klnumba as kl
from klnumba import derivatives, functional

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from tests.functional.test_autograd import CALLS, pair  # noqa: E402

F = torch.nn.functional
vmap, grad, jvp, jacrev, jacfwd, hessian = (
    getattr(torch.func, name) for name in ("vmap", "grad", "jvp", "jacrev", "jacfwd", "hessian")
)

# The others have loops of their own to compile.
SLOW = {"kl, plain", "kl of log-probabilities", "js", "jeffreys", "cross-entropy", "entropy"}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CALLS]


def sides(shape=(3, 5), seed=0):
    return [x.detach() for x in pair(shape, seed)]


def summed(name):
    return lambda *x: CALLS[name](*x).sum()


def same(found, expected, equal=torch.equal):
    """Whether two trees of tensors are equal, in all bits unless another `equal` is given."""
    pairs = zip(*(torch.utils._pytree.tree_leaves(tree) for tree in (found, expected)), strict=True)
    return all(a.shape == b.shape and a.dtype == b.dtype and equal(a, b) for a, b in pairs)


CLOSE = partial(torch.allclose, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_against_differences(name):
    """PyTorch's own checks: of second derivatives in both modes, and of first ones in forward mode."""
    assert torch.autograd.gradgradcheck(CALLS[name], pair((3, 5)), check_fwd_over_rev=True, check_rev_over_rev=True)
    assert torch.autograd.gradcheck(CALLS[name], pair((3, 5)), check_forward_ad=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda p, q: kl.kl_divergence(p, q[:1], where=np.arange(5) != 2),
        lambda p, q: kl.kl_divergence(p.T, q[0, :3], base=2, reduction="mean", keepdims=True),
        lambda p, q: kl.kl_divergence(p * q, np.ones((3, 5)), kind="logit", temperature=2.0),
        lambda p, q: kl.kl_divergence([1.0, 2.0, 3.0, 4.0, 5.0], p + q, axis=None, kind="logit"),
        lambda p, q: kl.kl_divergence(p, p * 2.0 + q, axis=0),
        lambda p, q: kl.rel_entr(p, q[0], where=np.arange(5) != 2).nan_to_num()[:, [0, 1, 3, 4]],
        lambda p, q: functional.kl_div(q, p[0], reduction="batchmean"),
        lambda p, q: kl.kl_divergence(p[0, 0], q[0, 0]),
    ],
)
def test_other_sides(call):
    assert torch.autograd.gradgradcheck(call, pair((3, 5)), check_fwd_over_rev=True)
    assert torch.autograd.gradcheck(call, pair((3, 5)), check_forward_ad=True)


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", ["batchmean", "sum", "none"])
def test_the_losses_are_pytorchs(reduction, log_target):
    def of(loss, target, model):
        target = target.log_softmax(-1) if log_target else target
        return loss(model.log_softmax(-1), target, reduction=reduction, log_target=log_target).sum()

    found, expected = (hessian(partial(of, loss), (0, 1))(*sides()) for loss in (functional.kl_div, F.kl_div))
    assert same(found, expected, CLOSE)


def of_logits(p, q):
    """PyTorch's own way."""
    return F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="sum", log_target=True)


@pytest.mark.parametrize("way", ["hessian", "jacrev of jacrev", "jacfwd of jacfwd", "jacrev of jacfwd"])
def test_hessians(way):
    """By logits of p and of q, and of both: PyTorch's."""
    outer, _, inner = way.partition(" of ")
    make = getattr(torch.func, outer)
    ours = partial(kl.kl_divergence, kind="logit", reduction="sum")
    found, expected = (
        (make(getattr(torch.func, inner)(f, (0, 1)), (0, 1)) if inner else make(f, (0, 1)))(*sides())
        for f in (ours, of_logits)
    )
    assert same(found, expected, CLOSE)


def test_forward_mode():
    p, q = sides()
    ours = partial(kl.kl_divergence, kind="logit", reduction="sum")
    assert same(jvp(ours, (p, q), (q, p)), jvp(of_logits, (p, q), (q, p)), CLOSE)
    expected = jvp(lambda q: kl.kl_divergence(p, q), (q,), (p,))[1]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, p)
        value, tangent = torch.autograd.forward_ad.unpack_dual(kl.kl_divergence(p, dual))
        assert torch.equal(value, kl.kl_divergence(p, q))
        assert torch.equal(tangent, expected)
        with torch.no_grad():
            assert torch.autograd.forward_ad.unpack_dual(kl.kl_divergence(p, dual)).tangent is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    """A tangent has the dtype of the result, a derivative that of the argument; they are rounded once."""
    p, q, move = (x.to(dtype) for x in (*sides((4, 6)), sides((4, 6), 1)[0]))
    value, tangent = jvp(lambda q: kl.kl_divergence(p, q, kind="logit"), (q,), (move,))
    assert value.dtype == tangent.dtype == torch.float32
    a, b, c = (x.double() for x in (p, q, move))
    exact = jvp(lambda b: kl.kl_divergence(a, b, kind="logit"), (b,), (c,))[1]
    assert torch.equal(tangent, exact.float())

    def slope(p, q):
        return grad(lambda q: kl.kl_divergence(p, q, kind="logit", reduction="sum"))(q)

    found, wide = jvp(partial(slope, p), (q,), (move,))[1], jvp(partial(slope, a), (b,), (c,))[1]
    assert found.dtype == dtype
    assert torch.equal(found, wide.to(dtype))


def test_fisher_vector_products():
    """A natural gradient: conjugate gradients on the Hessian of KL(old||new) at new = old, as trust regions ask for."""
    torch.manual_seed(0)
    inputs = torch.randn(40, 4, dtype=torch.float64)
    weights = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    wanted, damping = torch.randn(4, 3, dtype=torch.float64), 1e-3

    def product(loss, move):
        (slope,) = torch.autograd.grad(loss, weights, create_graph=True)
        return torch.autograd.grad((slope * move).sum(), weights)[0] + damping * move

    logits = inputs @ weights
    ours = kl.kl_divergence(logits.detach(), logits, kind="logit", reduction="mean")
    theirs = F.kl_div(logits.log_softmax(-1), logits.detach().log_softmax(-1), reduction="batchmean", log_target=True)
    step, rest = torch.zeros_like(wanted), wanted.clone()
    way, size = rest.clone(), (rest * rest).sum()
    for _ in range(20):
        along = product(kl.kl_divergence(logits.detach(), inputs @ weights, kind="logit", reduction="mean"), way)
        alpha = size / (way * along).sum()
        step, rest = step + alpha * way, rest - alpha * along
        size, last = (rest * rest).sum(), size
        way = rest + size / last * way
    assert torch.allclose(product(ours, step), wanted, rtol=1e-9, atol=1e-9)
    logits = inputs @ weights
    theirs = F.kl_div(logits.log_softmax(-1), logits.detach().log_softmax(-1), reduction="batchmean", log_target=True)
    assert torch.allclose(product(theirs, step), wanted, rtol=1e-9, atol=1e-9)


def test_masked_logits():
    """Where PyTorch's are NaN."""
    p, q = sides((2, 4))
    for x in (p, q):
        x[:, 1] = -math.inf
    keep = [0, 2, 3]
    found = hessian(lambda q: kl.kl_divergence(p, q, kind="logit").sum())(q)
    expected = hessian(lambda q: kl.kl_divergence(p[:, keep], q, kind="logit").sum())(q[:, keep])
    assert CLOSE(found[:, keep][..., keep], expected)
    assert not found[:, 1].any()
    assert not found[..., 1].any()


def test_rows_that_count_nothing():
    p, q = pair((3, 4))
    with torch.no_grad():
        p[1, 2], q[2, 0] = -1.0, 0.0
    value = torch.where(torch.tensor([True, False, False]), kl.kl_divergence(p, q), 0.0).sum()
    slopes = torch.autograd.grad(value, (p, q), create_graph=True)
    for found in torch.autograd.grad(sum(x.sin().sum() for x in slopes), (p, q)):
        assert torch.isfinite(found).all()
        assert not found[1:].any()


@pytest.mark.parametrize("call", [CALLS["kl"], CALLS["rel_entr"], CALLS["loss"]])
def test_no_third_derivative(call):
    """It is refused, not taken for zero."""
    p, q = pair((3, 4))
    (slope,) = torch.autograd.grad(call(p, q).sum(), q, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), q, create_graph=True)
    assert second.requires_grad
    with pytest.raises(RuntimeError, match="first and second derivatives"):
        second.sum().backward()
    with pytest.raises(RuntimeError, match="first and second derivatives"):
        jvp(grad(lambda x: grad(lambda y: call(p.detach(), y).sum())(x).sum()), (q.detach(),), (q.detach(),))


@pytest.mark.parametrize("name", NAMES)
def test_batches(name):
    """The bits are those of one call after the other: of values, derivatives, tangents and products."""
    f, g = CALLS[name], summed(name)
    p, q = sides((4, 3, 5), 3)

    def one_by_one(f, *xs):
        found = [f(*x) for x in zip(*xs, strict=True)]
        return tuple(map(torch.stack, zip(*found, strict=True))) if isinstance(found[0], tuple) else torch.stack(found)

    slope, product = grad(g, (0, 1)), lambda p, q: jvp(grad(g, 0), (p, q), (q, p))[1]
    for function in (f, slope, product, lambda p, q: jvp(f, (p, q), (q, p))[1]):
        assert same(vmap(function)(p, q), one_by_one(function, p, q))
    moved = vmap(f, in_dims=(1, None))(p.movedim(0, 1), q[0])
    assert same(moved, one_by_one(f, p, [q[0]] * 4))
    twice = vmap(lambda p, q: vmap(lambda q: f(p, q), in_dims=1)(q))(p, torch.stack([q, q + 0.1], 2))
    assert same(twice, one_by_one(lambda p, q: torch.stack([f(p, q), f(p, q + 0.1)]), p, q))


@pytest.mark.parametrize(
    "call",
    [
        lambda p, q: kl.kl_divergence(p, q[0]),
        lambda p, q: kl.kl_divergence(p, q, axis=0, keepdims=True, where=np.arange(15).reshape(3, 5) % 4 != 0),
        lambda p, q: kl.kl_divergence(p[0], q[0], where=np.arange(15).reshape(3, 5) % 4 != 0),
        lambda p, q: kl.kl_divergence(p, q, axis=None),
        lambda p, q: kl.kl_divergence(p, np.arange(1.0, 6.0)),
        lambda p, q: kl.kl_divergence(p, [0.1, 0.2, 0.3, 0.2, 0.2], reduction="mean"),
        lambda p, q: kl.kl_divergence(p[0, 0], q[0, 0], keepdims=True),
        lambda p, q: kl.kl_divergence(p, q.float(), kind="logit"),
        lambda p, q: kl.rel_entr(p, q[0]),
    ],
)
def test_batches_of_other_sides(call):
    p, q = sides((4, 3, 5), 3)
    assert same(vmap(call)(p, q), torch.stack([call(*x) for x in zip(p, q, strict=True)]))
    slope = grad(lambda p, q: call(p, q).sum())
    assert same(vmap(slope)(p, q), torch.stack([slope(*x) for x in zip(p, q, strict=True)]))


def test_a_batch_of_rows_is_one_call(monkeypatch):
    calls, plain = [], derivatives.reduce
    monkeypatch.setattr(derivatives, "reduce", lambda *a, **k: calls.append(1) or plain(*a, **k))
    p, q = sides((4, 3, 5))
    vmap(kl.kl_divergence)(p, q)
    vmap(kl.kl_divergence, in_dims=(0, None))(p, q[0, 0])
    assert len(calls) == 2


def test_a_mask_that_is_computed():
    """From the argument, which a transform follows by then; not one of each member of a batch."""
    p, q = sides()
    mask = p > 0.5
    expected = grad(lambda p: kl.kl_divergence(p, q, where=mask).sum())(p)
    assert torch.equal(grad(lambda p: kl.kl_divergence(p, q, where=p > 0.5).sum())(p), expected)
    with pytest.raises(RuntimeError, match="where: a tensor inside vmap"):
        vmap(lambda p, q: kl.kl_divergence(p, q, where=p > 0.5))(p, q)


class OnDevice:
    """What says that it lies on a CUDA device."""

    shape = (3, 5)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": "<f8", "data": (0, True), "version": 3}


@pytest.mark.parametrize("call", [derivatives.OfRows("kl", "prob", -1, True, None, 1.0, "none", None, None, None),
                                  derivatives.OfCells("rel_entr")])  # fmt: skip
def test_refused_on_devices(call):
    p, moves = OnDevice(), (np.ones((3, 5)), None)
    for ask in (
        lambda: call.slopes_along(p, p, moves),
        lambda: call.hessian_product(p, p, 1.0, moves, (True, True)),
        lambda: call.hessian_along(p, p, moves, moves),
    ):
        with pytest.raises(NotImplementedError, match="on a CUDA device first derivatives are computed"):
            ask()


@pytest.mark.parametrize("way", [jvp, "jacfwd", "hessian", "dual level"])
def test_a_batch_inside_forward_mode(way):
    """Each member of the batch as it is by itself."""
    p, q = (torch.tensor(np.random.default_rng(k).normal(size=(2, 3, 4))) for k in (1, 2))
    call = partial(kl.kl_divergence, kind="logit")
    if way is jvp:
        found = jvp(lambda a: vmap(call)(a, q), (p,), (q,))[1]
        expected = torch.stack([jvp(lambda a, k=k: call(a, q[k]), (p[k],), (q[k],))[1] for k in range(2)])
    elif way == "jacfwd":
        found = jacfwd(lambda a: vmap(call)(a, q))(p)
        expected = jacrev(lambda a: vmap(call)(a, q))(p)
    elif way == "hessian":
        found = hessian(lambda a: vmap(call)(a, q).sum())(p)
        expected = hessian(lambda a: call(a, q).sum())(p)
    else:
        with torch.autograd.forward_ad.dual_level():
            found = vmap(call)(p, q)
        expected = call(p, q)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("side", [np.array([0.1, 0.2, 0.7]), [0.1, 0.2, 0.7]])
def test_arrays_and_lists_beside_a_batch(side, monkeypatch):
    """They are expanded, not taken one by one."""
    q = torch.rand(5, 3, dtype=torch.float64) + 0.1
    expected = torch.stack([kl.kl_divergence(side, one) for one in q])
    monkeypatch.setattr("klnumba.torch_nodes._member", None)
    assert torch.equal(vmap(lambda one: kl.kl_divergence(side, one))(q), expected)


def test_an_empty_batch_is_named():
    """Where each member would be a call; where all are one, nothing comes of it."""
    assert vmap(lambda q: kl.kl_divergence([0.5, 0.5], q))(torch.ones(0, 2)).shape == (0,)
    with pytest.raises(RuntimeError, match=r"torch\.func\.vmap: the batch is empty"):
        vmap(lambda q: kl.kl_divergence([0.5, 0.5], q, reduction="mean"))(torch.ones(0, 2))
