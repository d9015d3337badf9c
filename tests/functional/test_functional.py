"""`functional` without any peer: values, order of arguments, errors."""

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba.arrays import BLOCK
from klnumba.cellwise import PIECE
from klnumba.kernels import threads
from tests.reference import mp
from tests.reference.torch_differences import DIFFERENCES, markdown_table


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.name)
def test_differences_on_arrays(case):
    result = getattr(kl.functional, case.function)(np.array(case.first), np.array(case.second), **case.arguments)
    np.testing.assert_allclose(result, case.ours, rtol=1e-15)
    assert case.name
    assert np.shape(case.ours) == np.shape(result)


def test_table_has_a_line_for_each_difference():
    assert markdown_table().count("\n") == len(DIFFERENCES) + 2


@pytest.mark.parametrize("log_target", [False, True])
def test_cells_are_accurate(log_target):
    generator = np.random.default_rng(3)
    model = -generator.exponential(5, 300)
    target = model + generator.standard_normal(300) * 10.0 ** generator.uniform(-12, 1, 300)
    target = target if log_target else np.exp(target)
    cells = kl.functional.kl_div(model, target, reduction="none", log_target=log_target)
    for cell, x, t in zip(cells, model, target, strict=True):
        # the log of a target is a rounded number, from which the input is taken
        scale = None if log_target else mp.mpf(abs(t * x))
        assert mp.ulp_error(cell, mp.kl_div(x, t, log_target), scale=scale) <= 4, (x.hex(), t.hex())


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(0, 3), (1,), (PIECE + 1,), (3, BLOCK + 5), (700, 1000)])
def test_sums_are_exact_whatever_the_layout(shape, dtype, log_target, monkeypatch):
    """The sum of the cells rounded once, on one thread or three, and of arrays that no loop reads as they are."""
    monkeypatch.setattr(threads, "choose", lambda count, cells: 3)
    rng = np.random.default_rng(4)
    model, target = rng.uniform(-30, 0, shape).astype(dtype), rng.uniform(0, 1, shape).astype(dtype)
    settings = {"reduction": "sum", "log_target": log_target}
    cells = kl.functional.kl_div(model, target, reduction="none", log_target=log_target)
    expected = np.dtype(dtype).type(math.fsum(cells.ravel().tolist()))
    assert kl.functional.kl_div(model, target, **settings) == expected
    assert kl.functional.kl_div(model, np.asfortranarray(target), **settings) == expected
    assert kl.functional.kl_div(model.astype(model.dtype.newbyteorder()), target, **settings) == expected


def test_sums_broadcast():
    model, target = np.log(np.linspace(0.1, 1, 400)), np.linspace(0, 2, 300)[:, None]
    cells = kl.functional.kl_div(model, target, reduction="none")
    assert cells.shape == (300, 400)
    assert kl.functional.kl_div(model, target, reduction="sum") == math.fsum(cells.ravel().tolist())


@pytest.mark.parametrize(
    ("odd", "total"), [([-np.inf], np.inf), ([np.nan], np.nan), ([np.inf, -np.inf], np.nan), ([np.inf], -np.inf)]
)
def test_sums_with_cells_that_are_not_finite(odd, total):
    model = np.full((2, BLOCK), -1.0)
    model.ravel()[np.arange(len(odd)) * (BLOCK + PIECE)] = odd
    result = kl.functional.kl_div(model, np.full_like(model, 0.5), reduction="sum")
    np.testing.assert_array_equal(result, total)


def test_masked_cells_are_left_out():
    model = np.ma.array([[-1.0, -2.0], [-3.0, np.nan]], mask=[[0, 1], [0, 1]])
    target = np.ma.array([0.5, 0.5], mask=[0, 0])
    cells = kl.functional.kl_div(model, target, reduction="none")
    assert cells.count() == 2
    assert kl.functional.kl_div(model, target, reduction="sum") == cells.sum()
    assert kl.functional.kl_div(model, target, reduction="batchmean") == cells.sum() / 2
    with pytest.warns(UserWarning, match="mean"):
        assert kl.functional.kl_div(model, target, reduction="mean") == cells.mean()


def test_targets_of_every_size():
    """The quick form leaves what it does not serve to the careful one; both are near the truth where they meet."""
    edges = np.array([5e-324, 2.0**-1022, 2.0**-900, 2.0**-901, 0.5, 1.0, 2.0**899, 2.0**900, 1.7e308])
    target = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], np.inf)])
    for x in (-700.0, -1.0, -0.5, 0.0, 3.0):
        cells = kl.functional.kl_div(np.full_like(target, x), target, reduction="none")
        for cell, t in zip(cells, target, strict=True):
            truth = mp.kl_div(x, t, False)
            assert mp.ulp_error(cell, truth, scale=mp.mpf(t) * max(abs(truth / mp.mpf(t)), abs(x))) <= 2, (x, t)


def test_target_is_the_first_distribution():
    p, q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    loss = kl.functional.kl_div(np.log(q), p, reduction="batchmean")
    assert loss == pytest.approx(kl.kl_divergence(p, q)[0], rel=1e-15)
    assert loss != pytest.approx(kl.kl_divergence(q, p)[0])


def test_lists_and_scalars():
    assert kl.functional.kl_div(-math.log(2), 1.0, reduction="batchmean") == math.log(2)
    assert kl.functional.kl_div([-1.0, -2.0], [1.0, 1.0], reduction="sum") == 3.0


@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_byte_order_and_dtype(reduction):
    model, target = np.log([0.25, 0.75]), np.array([0.5, 0.5])
    expected = kl.functional.kl_div(model, target, reduction=reduction)
    swapped = kl.functional.kl_div(model.astype(">f8"), target.astype(">f8"), reduction=reduction)
    np.testing.assert_array_equal(swapped, expected)
    assert swapped.dtype == np.float64
    single = kl.functional.kl_div(model.astype(np.float32), target.astype(np.float16), reduction=reduction)
    assert single.dtype == np.float32


def test_inputs_are_left_alone():
    model, target = np.log([0.25, 0.75]), np.array([0.0, 1.0])
    before = model.tobytes(), target.tobytes()
    for reduction in ("none", "sum"):
        kl.functional.kl_div(model, target, reduction=reduction)
    assert (model.tobytes(), target.tobytes()) == before


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4,\)"):
        kl.functional.kl_div(np.zeros((2, 3)), np.ones(4), reduction="sum")


@pytest.mark.parametrize(("value", "message"), [
    (np.ones(3, int), "kl_div: Integral inputs not supported."),
    (np.ones(3, bool), "kl_div: Integral inputs not supported."),
    ([1, 2, 3], "kl_div: Integral inputs not supported."),
    (np.ones(3, complex), "kl_div: Complex inputs not supported."),
])  # fmt: skip
def test_dtypes_that_are_refused(value, message):
    for arguments in ((value, np.ones(3)), (np.ones(3), value)):
        with pytest.raises(RuntimeError, match=message):
            kl.functional.kl_div(*arguments, reduction="sum")


@pytest.mark.parametrize("value", [np.array(["a"] * 3), np.array([None] * 3)])
def test_objects_are_refused(value):
    with pytest.raises(TypeError, match="target"):
        kl.functional.kl_div(np.ones(3), value, reduction="sum")


def test_ragged_lists_are_named():
    with pytest.raises(ValueError, match="target: not an array"):
        kl.functional.kl_div([[-1.0, -1.0]], [[0.5], [0.5, 0.5]], reduction="sum")


def test_loss_shows_its_settings():
    assert repr(kl.functional.KLDivLoss(reduction="sum")) == "KLDivLoss(reduction='sum', log_target=False)"


def test_a_loss_of_the_callers_own():
    class Doubled(kl.functional.KLDivLoss):
        def forward(self, input, target):  # noqa: A002
            return 2.0 * super().forward(input, target)

    model, data = np.log([0.25, 0.75]), np.array([0.5, 0.5])
    assert Doubled(reduction="sum")(model, data) == 2.0 * kl.functional.KLDivLoss(reduction="sum")(model, data)
