"""Derivatives on the device: those of the CPU to a few roundings, in the layout, the library and the dtype of each."""

import zlib

import numpy as np
import pytest
from numba import cuda

import klnumba as kl
from tests.divergence.test_gradients import (
    ALONE,
    ALONE_QUICK,
    EDGES,
    FEW,
    FUNCTIONS,
    LIMIT,
    ROWS,
    beside_zeros,
    extended,
    families,
    largest_share,
    nearly_nothing,
    roundings,
    settings,
    with_little_in_common,
)
from tests.gpu.on_device.arrays import DTYPES, SIMULATED, get, put
from tests.reference import row_slopes

NORMALISED = [("prob", True), ("logit", True)]
# The formulas for rows that are taken as they are, and the loops, are the CPU's.
RUNS = [(function, *row) for function in FUNCTIONS for row in (ROWS if function in FEW else NORMALISED)]


def sides_of(function):
    return 1 if function == "entropy" else 2


def there(function, *sides, argnums=None, **options):
    """The derivatives on the device."""
    wanted = tuple(range(len(sides))) if argnums is None else argnums
    where = {"where": put(options.pop("where"))} if "where" in options else {}
    _, found = kl.value_and_grad(getattr(kl, function), wanted)(*map(put, sides), **options, **where)
    return [get(one) for one in found] if isinstance(found, tuple) else get(found)


def here(function, *sides, argnums=None, **options):
    """Those of the CPU."""
    wanted = tuple(range(len(sides))) if argnums is None else argnums
    return kl.value_and_grad(getattr(kl, function), wanted)(*sides, **options)[1]


def assert_close(found, expected, digits=1e-14):
    """Equal to some roundings of the largest derivative of a row."""
    for got, exact in zip(found, expected, strict=True):
        assert got.shape == exact.shape
        top = abs(exact).max(axis=-1, keepdims=True, initial=0.0)
        assert (abs(got.astype(float) - exact) <= digits * top + np.finfo(got.dtype).tiny).all()


@pytest.mark.parametrize(("function", "kind", "normalize"), RUNS)
def test_last_digits(function, kind, normalize):
    rng = np.random.default_rng(zlib.crc32(f"{function} {kind} {normalize}".encode()))
    options = settings(function, kind)
    for d in (2, 5):
        rows = list(families(kind, d, rng))
        stacks = [np.stack(side) for side in list(zip(*rows, strict=True))[1:]][: sides_of(function)]
        found = there(function, *stacks, kind=kind, normalize=normalize, **options)
        for k, (family, p, q) in enumerate(rows):
            truth = row_slopes.slopes(function, p, q, kind, normalize, **options)
            for side, got, exact in zip((p, q), found, truth, strict=False):
                least = 0.0 if normalize else largest_share(side, kind)
                assert roundings(got[k], exact, least) <= (ALONE if normalize else LIMIT), (family, d, p, q)


@pytest.mark.parametrize("kind", ["log_prob", "logit"])
def test_js_of_rows_with_little_in_common(kind):
    """And of shares of which a part rounds to zero."""
    rng = np.random.default_rng(len(kind))
    for d in (2, 5):
        rows = [with_little_in_common(d, gap, rng) for gap in (5.0, 12.0, 30.0, 60.0) for _ in range(2)]
        tiny = np.array([0.0, *[-744.4] * (d - 1)])
        stacks = [np.stack([*side, tiny]) for side in zip(*rows, strict=True)]
        found = there("js_divergence", *stacks, kind=kind, weight=0.3)
        for k, (p, q) in enumerate(rows):
            truth = row_slopes.slopes("js_divergence", p, q, kind, weight=0.3)
            for got, exact in zip(found, truth, strict=True):
                assert roundings(got[k], exact, 0.0) <= ALONE, (p, q)
        assert not np.any([got[-1] for got in found])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_little_is_left(function):
    """Beside the largest derivative alone, which is small."""
    rng = np.random.default_rng(3)
    for d in (2, 5, 140):
        rows = list(nearly_nothing("prob", d, rng))
        stacks = [np.stack(side) for side in list(zip(*rows, strict=True))[1:]][: sides_of(function)]
        assert_close(there(function, *stacks), here(function, *stacks), (ALONE + ALONE_QUICK) * 2.0**-53)


@pytest.mark.parametrize("function", ["kl_divergence", "js_divergence"])
def test_beside_infinite_derivatives(function):
    for _, p, q in beside_zeros():
        found, expected = (way(function, p, q, argnums=0) for way in (there, here))
        assert np.array_equal(np.isfinite(found), p > 0.0)
        finite = np.isfinite(expected)
        assert_close([found[finite]], [expected[finite]], (ALONE + ALONE_QUICK) * 2.0**-53)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_teams_of_every_size(function, kind, dtype):
    """Rows of a thread, of some, of a warp and of a block, also where the last team has no row."""
    digits = 1e-14 if dtype == "float64" else 6e-8
    for d in (3, 16, 39, 131) if SIMULATED else (5, 12, 13, 63, 64, 511, 512, 4096, 300_001):
        x, y = np.random.default_rng(d).normal(size=(2, 3, d))
        sides = [side.astype(dtype) for side in ((np.exp(x), np.exp(y)) if kind == "prob" else (x, y))]
        expected = extended(function, *sides, kind)[: sides_of(function)]
        assert_close(there(function, *sides[: sides_of(function)], kind=kind), expected, digits)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_short_dtypes(dtype, kind):
    x, y = np.random.default_rng(0).normal(size=(2, 3, 21))
    sides = [(np.exp(side) if kind == "prob" else side).astype(DTYPES[dtype]) for side in (x, y)]
    exact = here("kl_divergence", *(side.astype(np.float32) for side in sides), kind=kind)
    assert_close(there("kl_divergence", *sides, kind=kind), exact, 6e-8)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge[0]} {edge[1]} {edge[2]} {edge[3]}")
def test_edges(edge):
    function, kind, *sides = edge
    p, q, *slopes = (None if side is None else np.array(side, float) for side in sides)
    found = there(function, *(p, q)[: sides_of(function)], kind=kind)
    for got, expected in zip(found, slopes, strict=False):
        np.testing.assert_allclose(got, expected, rtol=1e-15, atol=1e-15)


def test_rows_of_cells_near_the_smallest_number():
    """One over whose sum is no float."""
    p = np.array([[1e-310, 3e-310], [5e-324, 0.0], np.ldexp([1.0, 2.0**20 - 1], -1060)])
    q = np.array([[1e-310, 3e-310], [0.5, 0.0], np.ldexp([1.0, 2.0**20 - 1 + 2.0**-10], -1060)])
    found = there("js_divergence", p, q)
    assert not np.any([side[:2] for side in found])
    assert_close(found, here("js_divergence", p, q), 1e-13)


def test_no_neighbour_counts():
    """Nor one of which one cell is nearly all, whose sums are looked at twice."""
    x, y = np.random.default_rng(2).normal(size=(2, 7, 9))
    x[::3, 0] += 20.0
    for kind in ("prob", "logit"):
        sides = [np.exp(x), np.exp(y)] if kind == "prob" else [x, y]
        together = there("kl_divergence", *sides, kind=kind)
        for r in range(7):
            alone = there("kl_divergence", *(side[r] for side in sides), kind=kind)
            for some, one in zip(together, alone, strict=True):
                np.testing.assert_array_equal(some[r], one)


@pytest.mark.parametrize("argnums", [0, 1, (1, 0)])
def test_what_is_wanted(argnums):
    p, q = np.random.default_rng(3).uniform(0.1, 1.0, (2, 3, 6))
    found, expected = (one("kl_divergence", p, q, argnums=argnums) for one in (there, here))
    assert_close([found] if argnums in (0, 1) else found, [expected] if argnums in (0, 1) else expected)


@pytest.mark.parametrize(
    "options",
    [{"base": 2}, {"reduction": "mean"}, {"reduction": "sum", "keepdims": True}, {"keepdims": True}, {"axis": 0},
     {"axis": (0, 2)}, {"axis": None}, {"axis": 1, "where": np.arange(5) % 2 == 0}, {"dtype": "float64"},
     {"where": np.arange(60).reshape(3, 4, 5) % 7 != 2}, {"where": False}],
    ids=str,
)  # fmt: skip
def test_options(options):
    p, q = np.random.default_rng(4).uniform(0.1, 1.0, (2, 3, 4, 5))
    found, expected = there("kl_divergence", p, q, **options), here("kl_divergence", p, q, **options)
    for got, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-13, atol=1e-15)
        assert got.dtype == exact.dtype


@pytest.mark.parametrize(
    ("left", "right", "options"),
    [((3, 4, 5), (5,), {}), ((1, 5), (4, 5), {}), ((2, 1), (2, 3), {}), ((5,), (3, 4, 5), {"axis": 1}), ((), (), {}),
     ((3, 1, 5), (4, 1), {"where": np.arange(60).reshape(3, 4, 5) % 7 != 2}), ((0, 5), (5,), {}), ((5, 0), (5, 0), {}),
     ((4, 5), (4, 5), {"where": np.ones((3, 4, 5), bool)})],
    ids=str,
)  # fmt: skip
def test_an_argument_that_stands_for_many_has_the_sum(left, right, options):
    rng = np.random.default_rng(5)
    p, q = rng.uniform(0.1, 1.0, left), rng.uniform(0.1, 1.0, right)
    for kind in ("prob", "logit"):
        found = there("kl_divergence", p, q, kind=kind, **options)
        for got, exact in zip(found, here("kl_divergence", p, q, kind=kind, **options), strict=True):
            np.testing.assert_allclose(got, exact, rtol=1e-13, atol=1e-14)
            assert got.shape == exact.shape


@pytest.mark.parametrize("view", [lambda x: x[::2, 1:], lambda x: x[:, ::-1], lambda x: x.T], ids=["part", "back", "T"])
def test_views(view):
    p, q = np.random.default_rng(6).uniform(0.1, 1.0, (2, 4, 6))
    whole = [put(side) for side in (p, q)]
    try:
        sides = [view(side) for side in whole]
    except NotImplementedError as error:
        pytest.skip(f"Numba's device arrays: {error}")
    found = kl.value_and_grad(kl.kl_divergence, (0, 1))(*sides)[1]
    assert_close([get(one) for one in found], here("kl_divergence", view(p), view(q)))


def test_one_array_twice():
    p = put(np.random.default_rng(7).uniform(0.1, 1.0, (3, 6)))
    for kind in ("prob", "logit"):
        for got in kl.value_and_grad(kl.kl_divergence, (0, 1))(p, p, kind=kind)[1]:
            assert not get(got).any()


def test_the_stream_that_is_chosen(monkeypatch):
    """The value and the derivatives come about on it."""
    from klnumba.kernels.cuda import machine

    start, streams = machine.start, []
    monkeypatch.setattr(machine, "start", lambda *args: (streams.append(args[4]), start(*args)))
    monkeypatch.setattr(machine, "follow", lambda on, before: None)
    stream = 7 if SIMULATED else cuda.stream()
    p, q = (put(side) for side in np.random.default_rng(14).uniform(0.1, 1.0, (2, 3, 6)))
    kl.value_and_grad(kl.kl_divergence, (0, 1))(p, q, stream=stream, where=False)
    assert len(set(streams)) == 1
    assert streams[0] == (7 if SIMULATED else int(stream.handle.value))
    if not SIMULATED:
        stream.synchronize()


@pytest.mark.parametrize("function", ["rel_entr", "generalized_kl"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("right", [(4, 5), (5,), (1, 1), (2, 4, 5)], ids=str)
def test_cells(function, dtype, right):
    rng = np.random.default_rng(8)
    p, q = (rng.uniform(0.1, 1.0, shape).astype(DTYPES[dtype]) for shape in ((4, 5), right))
    narrow = [side.astype(np.float32) if dtype == "bfloat16" else side for side in (p, q)]
    for options in ({}, {"where": np.arange(5) % 2 == 0}, {"where": False}):
        found, expected = there(function, p, q, **options), here(function, *narrow, **options)
        for got, exact in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, exact, rtol=1e-13 if dtype == "float64" else 1e-6)
            assert got.dtype == exact.dtype


# --- PyTorch's graph --------------------------------------------------------------------------------------------------


@pytest.fixture
def torch(monkeypatch):
    """PyTorch with a device; in the simulator its tensors of the CPU pass for such."""
    torch = pytest.importorskip("torch")
    if not SIMULATED:
        if not torch.cuda.is_available():
            pytest.skip("this build of PyTorch has no CUDA")
        return torch
    from klnumba.gpu import borders

    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda x: True))
    monkeypatch.setattr(borders._Torch, "stream", staticmethod(lambda device: 0))
    monkeypatch.setattr(borders, "_torch_device", lambda number: torch.device("cpu"))
    return torch


def tensor(torch, cells, dtype="float64", *, grad=True):
    made = torch.tensor(cells, dtype=getattr(torch, dtype), device="cpu" if SIMULATED else "cuda")
    return made.requires_grad_(grad)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_pytorch_goes_back(torch, dtype, kind):
    cells = np.random.default_rng(9).uniform(0.1, 1.0, (2, 3, 6))
    p, q = (tensor(torch, side, dtype) for side in cells)
    weights = torch.arange(1.0, 4.0, device=p.device)
    (kl.kl_divergence(p, q, kind=kind) * weights).sum().backward()
    expected = here("kl_divergence", *(side.detach().cpu().double().numpy() for side in (p, q)), kind=kind)
    for side, exact in zip((p, q), expected, strict=True):
        assert side.grad.dtype == side.dtype
        assert side.grad.device == side.device
        exact = exact * np.arange(1.0, 4.0)[:, None]
        size = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
        np.testing.assert_allclose(side.grad.double().cpu(), exact, rtol=size, atol=size * abs(exact).max())


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.filterwarnings("ignore:reduction")
def test_the_losses_are_pytorchs(torch, reduction, log_target):
    x, y = np.random.default_rng(10).normal(size=(2, 4, 5))
    found = []
    for loss in (kl.functional.kl_div, torch.nn.functional.kl_div):
        model, data = tensor(torch, x), tensor(torch, y if log_target else np.exp(y))
        loss(model, data, reduction=reduction, log_target=log_target).sum().backward()
        found.append((model.grad.cpu(), data.grad.cpu()))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-15)


def test_a_reduced_loss_of_a_model(torch):
    """What trains: broadcast parameters, a mean over rows, one side without a gradient."""
    x, y = np.random.default_rng(11).normal(size=(2, 4, 5))
    bias = tensor(torch, np.zeros(5))
    teacher, student = (tensor(torch, side, grad=False) for side in (x, y))
    where = torch.arange(5, device=bias.device) != 2
    kl.kl_divergence(teacher, student + bias, kind="logit", temperature=2.0, reduction="mean", where=where).backward()
    _, exact = here("kl_divergence", x, y, kind="logit", temperature=2.0, reduction="mean", where=where.cpu().numpy())
    np.testing.assert_allclose(bias.grad.cpu(), exact.sum(axis=0), rtol=1e-13, atol=1e-16)
    shared = tensor(torch, y[0])
    (kl.js_divergence(teacher, shared, kind="logit") ** 2).sum().backward()
    value, (_, each) = kl.value_and_grad(kl.js_divergence, (0, 1))(x, np.tile(y[0], (4, 1)), kind="logit")
    np.testing.assert_allclose(shared.grad.cpu(), (2 * value[:, None] * each).sum(axis=0), rtol=1e-12, atol=1e-16)


def test_cells_of_pytorch(torch):
    p, q = (tensor(torch, side) for side in np.random.default_rng(12).uniform(0.1, 1.0, (2, 4, 5)))
    where = torch.arange(5, device=p.device) % 2 == 0
    kl.rel_entr(p, q, where=where, dtype="float64").sum().backward()
    cells = [side.detach().cpu().numpy() for side in (p, q)]
    expected = here("rel_entr", *cells, where=where.cpu().numpy())
    for side, exact in zip((p, q), expected, strict=True):
        np.testing.assert_allclose(side.grad.cpu(), exact, rtol=1e-13)


def test_derivatives_are_of_the_library_of_their_argument(torch, monkeypatch):
    from klnumba.kernels.cuda import machine

    if SIMULATED:  # tensors of the CPU have no number of a device
        monkeypatch.setattr(machine, "device_of", lambda pointer: None)
    p, q = np.random.default_rng(15).uniform(0.1, 1.0, (2, 3, 5))
    there = put(p), tensor(torch, q, grad=False)
    for found, side in zip(kl.value_and_grad(kl.kl_divergence, (0, 1))(*there)[1], there, strict=True):
        assert type(found) is type(side)


def test_what_is_refused(torch):
    p, q = (tensor(torch, side) for side in np.random.default_rng(13).uniform(0.1, 1.0, (2, 3, 5)))
    with pytest.raises(TypeError, match="out: not with a tensor that requires grad"):
        kl.kl_divergence(p, q, out=torch.empty(3, dtype=torch.float64, device=p.device))
    with pytest.raises(TypeError, match="goes with tensors alone"):
        kl.kl_divergence(put(np.ones((3, 5))), q)
    with pytest.raises(RuntimeError, match=r"requires grad, and none is computed here; give p\.detach"):
        kl.row_statistics(p, q)
    (slope,) = torch.autograd.grad(kl.kl_divergence(p, q).sum(), p, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives"):
        slope.sum().backward()
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(NotImplementedError, match=r"on a CUDA device .* in reverse mode alone"),
    ):
        kl.kl_divergence(torch.autograd.forward_ad.make_dual(p.detach(), torch.ones_like(p)), q.detach())


@pytest.mark.parametrize("function", ["kl_divergence", "js_divergence", "jeffreys_divergence"])
@pytest.mark.parametrize("d", [100, 300])
def test_a_flat_row_beside_a_wide_one(function, d):
    """As on the CPU, where the same rows need a second look for the ratio of the normalisers."""
    x, y = np.zeros((1, d)), 4.0 * np.random.default_rng(38).normal(size=(1, d))
    for p, q in ((x, y), (y, x)):
        assert_close(there(function, p, q, kind="logit"), extended(function, p, q, "logit"), digits=2e-15)
