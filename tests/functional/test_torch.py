"""`functional.kl_div` and `KLDivLoss` against the functions they are named after."""

import itertools
import math
import warnings

import numpy as np
import pytest

import klnumba as kl
from tests.reference.torch_differences import DIFFERENCES

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

DTYPES = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
SHAPES = [
    ((), ()),
    ((7,), (7,)),
    ((5, 4), (5, 4)),
    ((2, 3, 4), (2, 3, 4)),
    ((5, 4), (4,)),
    ((5, 4), (5, 1)),
    ((3, 1, 4), (2, 4)),
    ((1, 1), (1, 1)),
    ((4, 1), ()),
]
FLAGS = [flags for flags in itertools.product((None, True, False), repeat=2) if flags != (None, None)]


def inputs(shapes, dtype, log_target=False, seed=0):
    """Log-probabilities and targets, zeros among the targets, as torch tensors of one dtype."""
    generator = np.random.default_rng([seed, *map(len, shapes)])
    model = np.log(generator.uniform(0.01, 1, shapes[0]))
    target = generator.uniform(0, 1, shapes[1]) * (generator.uniform(size=shapes[1]) > 0.2)
    if log_target:
        target = np.log(target + 1e-3)
    return [torch.tensor(x).to(getattr(torch, dtype)) for x in (model, target)]


def tolerance(model, target, dtype, log_target):
    """What rounding in the tensors' own dtype may add to one cell."""
    model, target = model.double(), target.double()
    weight = target.exp() if log_target else target
    logs = target if log_target else torch.log(target.clamp(min=1e-300))
    return 4 * DTYPES[dtype] * float((weight * (logs.abs() + model.abs() + 1)).max())


def both(*arguments, **settings):
    """The two results, each with the warnings it raised."""
    answers = []
    for function in (torch.nn.functional.kl_div, kl.functional.kl_div):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            answers.append((function(*arguments, **settings), seen))
    return answers


def numbers(x):
    return x.double().numpy() if isinstance(x, torch.Tensor) else np.asarray(x, dtype=np.float64)


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean", "elementwise_mean"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_values(shapes, dtype, reduction, log_target):
    model, target = inputs(shapes, dtype, log_target)
    (theirs, their_warnings), (ours, our_warnings) = both(model, target, reduction=reduction, log_target=log_target)
    assert [(w.category, str(w.message)) for w in our_warnings] == [
        (w.category, str(w.message)) for w in their_warnings
    ]
    assert isinstance(ours, torch.Tensor)
    assert ours.dtype == (torch.float64 if dtype == "float64" else torch.float32)
    assert ours.shape == theirs.shape
    cells = math.prod(np.broadcast_shapes(*shapes)) if reduction in ("sum", "batchmean") else 1
    allowed = cells * tolerance(model, target, dtype, log_target)
    if reduction == "sum" or reduction == "batchmean":
        allowed += DTYPES[dtype] * abs(float(theirs))
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=DTYPES[dtype], atol=allowed)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_give_what_tensors_give(dtype):
    model, target = inputs(((6, 5), (6, 5)), dtype)
    for reduction in ("none", "sum", "batchmean"):
        tensors = kl.functional.kl_div(model, target, reduction=reduction)
        plain = kl.functional.kl_div(model.numpy(), target.numpy(), reduction=reduction)
        assert np.asarray(plain).dtype == np.dtype(dtype)
        np.testing.assert_array_equal(plain, tensors.numpy())


@pytest.mark.parametrize(("first", "second"), [("float64", "float32"), ("float32", "float64"), ("float16", "float64")])
def test_mixed_dtypes_promote(first, second):
    model = inputs(((6, 5), (6, 5)), first)[0]
    target = inputs(((6, 5), (6, 5)), second)[1]
    (theirs, _), (ours, _) = both(model, target, reduction="none")
    assert ours.dtype == theirs.dtype == torch.float64
    coarse = first if first != "float64" else second
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance(model, target, coarse, False))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize(("size_average", "reduce"), FLAGS)
def test_legacy_flags(size_average, reduce, reduction):
    model, target = inputs(((5, 4), (5, 4)), "float64")
    (theirs, their_warnings), (ours, our_warnings) = both(model, target, size_average, reduce, reduction)
    assert [str(w.message) for w in our_warnings] == [str(w.message) for w in their_warnings]
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "elementwise_mean"])
def test_warnings_point_at_the_caller(reduction):
    model, target = inputs(((5, 4), (5, 4)), "float64")
    loss = kl.functional.KLDivLoss(reduction=reduction)
    for call in (
        lambda: kl.functional.kl_div(model, target, reduction=reduction),
        lambda: loss(model, target),
        lambda: loss.forward(model, target),
        lambda: kl.functional.kl_div(model, target, size_average=True),
        lambda: kl.functional.KLDivLoss(size_average=False),
    ):
        with pytest.warns(UserWarning, match="reduction") as seen:
            call()
        assert [w.filename for w in seen] == [__file__]


@pytest.mark.parametrize("settings", [
    {}, {"reduction": "sum"}, {"reduction": "none", "log_target": True}, {"reduction": "batchmean"},
    {"size_average": False}, {"reduce": False}, {"size_average": True, "reduction": "batchmean"},
], ids=str)  # fmt: skip
def test_class(settings):
    model, target = inputs(((5, 4), (5, 4)), "float64", settings.get("log_target", False))
    answers = []
    for cls in (torch.nn.KLDivLoss, kl.functional.KLDivLoss):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            loss = cls(**settings)
            answers.append((loss(model, target), loss.reduction, loss.log_target, [str(w.message) for w in seen]))
    (theirs, *their_rest), (ours, *our_rest) = answers
    assert our_rest == their_rest
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)


def test_class_checks_its_reduction_when_called():
    model, target = inputs(((5, 4), (5, 4)), "float64")
    for cls in (torch.nn.KLDivLoss, kl.functional.KLDivLoss):
        loss = cls(reduction="xyz")
        with pytest.raises(ValueError, match=r"^xyz is not a valid value for reduction$"):
            loss(model, target)


@pytest.mark.parametrize("dtypes", [
    ("int64", "float32"), ("float32", "int32"), ("bool", "float32"), ("uint8", "int64"), ("complex64", "float32"),
    ("float64", "complex128"), ("complex64", "int64"),
])  # fmt: skip
def test_dtype_errors(dtypes):
    first, second = (torch.ones(3, dtype=getattr(torch, name)) for name in dtypes)
    with pytest.raises(RuntimeError) as theirs:
        torch.nn.functional.kl_div(first, second, reduction="sum")
    for one, other in ((first, second), (first.numpy(), second.numpy())):
        with pytest.raises(RuntimeError) as ours:
            kl.functional.kl_div(one, other, reduction="sum")
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
def test_empty(shape, reduction):
    empty = torch.zeros(shape, dtype=torch.float64)
    (theirs, _), (ours, _) = both(empty, empty, reduction=reduction)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.shape == theirs.shape


@pytest.mark.parametrize(("model", "target", "log_target"), [
    (-1.0, 0.0, False), (-math.inf, 0.5, False), (-1.0, -0.5, False), (-1.0, math.nan, False), (math.nan, 0.5, False),
    (math.nan, 0.0, False), (-1.0, math.inf, False), (-1.0, 2.0, False), (math.inf, 0.5, False), (2.0, 0.5, False),
    (-math.inf, 0.0, True), (-1.0, 0.0, True), (math.nan, 0.0, True), (-1.0, math.nan, True), (-1.0, math.inf, True),
])  # fmt: skip
def test_edges_that_agree(model, target, log_target):
    tensors = [torch.tensor([x], dtype=torch.float64) for x in (model, target)]
    (theirs, _), (ours, _) = both(*tensors, reduction="none", log_target=log_target)
    np.testing.assert_allclose(ours, theirs, rtol=1e-15)


@pytest.mark.parametrize("case", [d for d in DIFFERENCES if d.function == "kl_div"], ids=lambda case: case.name)
def test_differences(case):
    tensors = [torch.tensor(x, dtype=torch.float64) for x in (case.first, case.second)]
    (theirs, _), (ours, _) = both(*tensors, **case.arguments)
    np.testing.assert_allclose(numbers(theirs), case.theirs, rtol=1e-14, err_msg="the table is out of date")
    np.testing.assert_allclose(numbers(ours), case.ours, rtol=1e-14)


@pytest.mark.parametrize("shape", [(600_000,), (700, 1000), (3, 2, 140_000)])
def test_large_sums(shape):
    model, target = inputs((shape, shape), "float64", seed=7)
    for reduction in ("sum", "batchmean"):
        (theirs, _), (ours, _) = both(model, target, reduction=reduction)
        assert float(ours) == pytest.approx(float(theirs), rel=1e-12)
