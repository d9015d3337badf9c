"""Second derivatives times a direction: the digits, the edges, the layouts."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest

import klnumba as kl
from klnumba.derivatives import OfCells, OfRows
from klnumba.gradients import ROWS
from tests.divergence.test_gradients import FIRST, families, roundings, settings, with_little_in_common
from tests.divergence.test_gradients import ROWS as KINDS
from tests.reference import row_hessians, row_slopes

INF, NAN = math.inf, math.nan
# Roundings of what `least_of` tells, or of what normalising takes away from the products; in brackets
# the largest found in 24 rows of every family, function, kind and sort of direction.
LIMIT = 16.0  # (8.4)


def call_of(function, kind="prob", normalize=True, temperature=1.0, weight=0.5, **options):
    name = ROWS[getattr(kl, function)]
    found = OfRows(name, kind, -1, normalize, None, temperature, "none", None, None, None, weight)
    return replace(found, **options)


def product(call, p, q, moves, upstream=1.0):
    """What both derivatives change by; of the entropy, which has no q, those by p alone."""
    if call.name == "entropy":
        return call.hessian_product(p, None, upstream, (moves[0], None), (True, False))[:1]
    return call.hessian_product(p, q, upstream, moves, (True, True))


def directions(kind, p, q, rng):
    """Moves of all cells by themselves or by their parts, of one cell of p or of q, and of p and q alike."""
    x, y = rng.normal(size=(2, p.size))
    one, none = np.eye(p.size)[rng.integers(p.size)], np.zeros(p.size)
    yield x, y
    yield one, none
    yield none, one
    if kind == "prob":
        yield x * p, y * q
        yield x * p, x * q
    else:
        yield x, x + 1e-9 * y


def parts_of(x, move, call):
    """By which parts of themselves the cells of a side move, and their shares."""
    parts = move / x if call.kind == "prob" else move / call.temperature
    with np.errstate(over="ignore"):
        shares = parts if not call.normalize else x if call.kind == "prob" else np.exp((x - x.max()) / call.temperature)
    return parts, (shares * parts).sum() / shares.sum() if call.normalize else 0.0


def least_of(call, p, q, moves, side):
    """What the errors of products are of the size of.

    That are the largest of the products of p alone and of q alone, more where the shares move less than the cells, and
    the largest part by which a share, or the sum of cells, moves, times the derivative. What normalising takes away
    from each comes to that.
    """
    none, sizes = np.zeros(p.size), []
    for x, move, alone in ((p, moves[0], (moves[0], none)), (q, moves[1], (none, moves[1]))):
        parts, mean = parts_of(x, move, call)
        lost = abs(parts).max() / (abs(parts - mean).max() or 1.0)
        sizes.append(abs(product(call, p, q, alone)[side]).max() * max(lost, 1.0))
    x = (p, q)[side]
    slopes = call.slopes(p, None if call.name == "entropy" else q, 1.0, (True, side == 1))
    parts, mean = parts_of(x, moves[side], call)
    part = abs(mean) if call.kind == "prob" and call.normalize else abs(parts - mean).max()
    return max(*sizes, part * abs(slopes[side]).max())


def largest_error(function, kind, normalize, seed, rounds=1, sizes=(1, 2, 5)):
    """In units of 2**-53, and where it is."""
    rng = np.random.default_rng(zlib.crc32(f"{function} {kind} {normalize} {seed}".encode()))
    options = settings(function, kind)
    call, found = call_of(function, kind, normalize, **options), [(0.0, "", 0)]
    for d in sizes * rounds:
        for family, p, q in families(kind, d, rng):
            for k, moves in enumerate(directions(kind, p, q, rng)):
                moves = (moves[0], np.zeros(d)) if function == "entropy" else moves
                truth = row_hessians.products(function, p, q, *moves, kind, normalize, **options)
                for side, (got, (exact, taken)) in enumerate(zip(product(call, p, q, moves), truth, strict=False)):
                    least = max(least_of(call, p, q, moves, side), *map(abs, taken))
                    if d == 1 and normalize:
                        least += abs(moves / np.array([p, q])).sum() / (p, q)[side][0] if kind == "prob" else 1.0
                    found.append((roundings(got, exact, least), f"{family}, {d}, {side}", k))
    return max(found)


@pytest.mark.part(3)
@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize(("kind", "normalize"), KINDS)
def test_last_digits(function, kind, normalize):
    error, *where = largest_error(function, kind, normalize, 0, sizes=(2, 5))
    assert error <= LIMIT, where


@pytest.mark.part(2)
@pytest.mark.parametrize("kind", ["log_prob", "logit"])
@pytest.mark.parametrize("gap", [5.0, 12.0, 30.0, 60.0])
def test_js_of_rows_with_little_in_common(kind, gap):
    """What is left where nearly all is one constant keeps its digits."""
    rng = np.random.default_rng([int(gap), len(kind)])
    for d in (2, 3, 5):
        for weight in (0.5, 0.3):
            (p, q), moves = with_little_in_common(d, gap, rng), rng.normal(size=(2, d))
            truth = row_hessians.products("js_divergence", p, q, *moves, kind, weight=weight)
            call = call_of("js_divergence", kind, weight=weight)
            for side, (got, (exact, _)) in enumerate(zip(product(call, p, q, moves), truth, strict=True)):
                assert roundings(got, exact, least_of(call, p, q, moves, side)) <= LIMIT, (d, weight, p, q, moves)


@pytest.mark.part(2)
@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("d", [64, 65, 600])
def test_rows_of_several_tiles(kind, d):
    """The largest error found is 4.1 roundings of the largest product, in rows of 64 to 2,100 cells."""
    rng = np.random.default_rng(d)
    x, y, *moves = rng.normal(size=(4, d))
    p, q = (x, y) if kind == "logit" else (np.exp(x), np.exp(y))
    truth = row_hessians.products("kl_divergence", p, q, *moves, kind)
    for got, (exact, _) in zip(product(call_of("kl_divergence", kind), p, q, moves), truth, strict=True):
        assert roundings(got, exact, 0.0) <= 8.0


@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize(("kind", "normalize"), [("prob", True), ("log_prob", False), ("logit", True)])
def test_the_truth(function, kind, normalize):
    """The derivatives whose differences it takes are those of the values."""
    p, q = np.random.default_rng(0).uniform(0.1, 1.0, (2, 3))
    options = settings(function, kind)
    whole = {"kind": kind, "normalize": normalize, "temperature": 1.0, "weight": 0.5} | options
    with row_hessians.mp.workdps(row_hessians.DIGITS):
        cells = [[row_hessians.mpf(x) for x in side] for side in (p, q)]
        found = row_hessians.slopes(function, cells, **whole)
        for (got, _), exact in zip(found, row_slopes.slopes(function, p, q, kind, normalize, **options), strict=True):
            assert all(abs(a - b) < 1e-90 for a, b in zip(got, exact, strict=True))


def test_rows_of_cells_near_the_smallest_number():
    """One over whose sum is no float: of equal rows that move alike the derivatives stay zero."""
    p = np.ldexp([1.0, 2.0**20], -1060)
    for call in map(call_of, ("kl_divergence", "js_divergence")):
        for move in (p * 2.0**-10, p * [1.0, 0.0], np.zeros(2)):
            assert not np.any(product(call, p, p.copy(), (move, move)))


# (function, kind, p, q, move of p, move of q, by p, by q): limits, as a zero is approached from the right.
EDGES = [
    # A p of zero stays: its derivative goes on from -inf, the others are as if it were not there.
    ("kl_divergence", "prob", [0, 0.5, 0.5], [0.2, 0.4, 0.4], [0, 1, -1], [0, 0, 0], [0, 2, -2], [0, -2.5, 2.5]),
    ("kl_divergence", "prob", [0, 0.5, 0.5], [0.2, 0.4, 0.4], [0, 1, -0.5], [0.1, 0.2, 0.3],
     [INF, 1.625, -1.625], [-0.6, -1.85, 2.2125]),
    # It rises: the curvature is infinite.
    ("kl_divergence", "prob", [0, 0.5, 0.5], [0.2, 0.4, 0.4], [1, -2, 0], [0, 0, 0], [INF] * 3, [-5, 3.75, -1.25]),
    ("js_divergence", "prob", [0.2, 0.4, 0.4], [0, 0.5, 0.5], [0, 0, 0], [1, -2, 0],
     [-20 / 9, 10 / 9, 0], [INF] * 3),
    ("kl_divergence", "prob", [0.2, 0.4, 0.4], [0, 0.5, 0.5], [0.1, 0.2, 0.3], [0, 1, -0.5],
     [NAN] * 3, [INF, 1.18, -1.42]),
    ("kl_divergence", "prob", [0.2, 0.4, 0.4], [0, 0.5, 0.5], [0, 0, 0], [1, -2, 0], [NAN] * 3, [INF, -2.2, 1]),
    # No part of the row: what it does is nothing.
    ("kl_divergence", "prob", [0, 0.5, 0.5], [0, 0.5, 0.5], [3, 1, -1], [NAN, 0, 0], [0, 2, -2], [0, -2, 2]),
    ("js_divergence", "prob", [0, 0.5, 0.5], [0, 0.5, 0.5], [3, 1, -1], [9, 0, 0], [0, 0.5, -0.5], [0, -0.5, 0.5]),
    ("kl_divergence", "prob", [-1, 0.5, 0.5], [0.2, 0.4, 0.4], [1, 0, 0], [0, 1, 0], [NAN] * 3, [NAN] * 3),
    # Logits: a mask may do what it wants.
    ("kl_divergence", "logit", [-INF, 0, 0], [-INF, 0, 0], [7, 1, -1], [NAN, 1, 0],
     [0, 0.25, -0.25], [0, -0.25, 0.25]),
    ("kl_divergence", "logit", [-INF, 0, 0], [0, 0, 0], [7, 0, 0], [0, 1, 0],
     [0, -0.25, 0.25], [-1 / 9, 2 / 9, -1 / 9]),
    ("kl_divergence", "logit", [0, 0, 0], [-INF, 0, 0], [0, 1, 0], [7, 0, 0], [NAN] * 3, [1 / 9, -2 / 9, 1 / 9]),
    ("js_divergence", "logit", [-INF, 0], [0, -INF], [1, 2], [3, 4], [0, 0], [0, 0]),
    ("kl_divergence", "logit", [0, INF], [0, 0], [1, 2], [3, 4], [NAN, NAN], [NAN, NAN]),
]  # fmt: skip


@pytest.mark.part(2)
@pytest.mark.parametrize("more", [0, 200])
@pytest.mark.parametrize(("function", "kind", "p", "q", "move_p", "move_q", "by_p", "by_q"), EDGES)
def test_edges(function, kind, p, q, move_p, move_q, by_p, by_q, more):
    """Of a row as it is, and with cells behind it that hold nothing."""
    nothing = [0.0 if kind == "prob" else -INF] * more
    sides = [np.array(side + nothing, float) for side in (p, q)]
    moves = [np.array(side + [1.0] * more) for side in (move_p, move_q)]
    for got, expected in zip(product(call_of(function, kind), *sides, moves), (by_p, by_q), strict=True):
        assert got[: len(p)] == pytest.approx(expected, abs=1e-14, nan_ok=True)
        assert not got[len(p) :].any() or np.isnan(got).all()


def test_a_factor_of_zero_leaves_nothing():
    p, q = np.array([[0.5, 0.5], [1.0, 0.0], [-1.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 1.0]])
    for got in product(call_of("kl_divergence"), p, q, (p, q), np.array([1.0, 0.0, 0.0])):
        assert np.isfinite(got).all()
        assert not got[1:].any()


def test_nearly_equal_logits_keep_their_digits():
    """By q that is (dq - dp)/T, with no difference of p and q in it: right to 1.1 roundings."""
    x = np.linspace(-1.0, 1.0, 50)
    y = x + 2.0**-40 * (np.arange(50) % 2)
    _, found = product(call_of("kl_divergence", "logit"), x, y, (np.zeros(50), y))
    q = np.exp(y.astype(np.longdouble))
    q /= q.sum()
    assert abs(found - q * (y - (q * y).sum())).max() <= 3.0 * 2.0**-53 * abs(found).max()


def test_confident_rows_keep_their_digits():
    """One cell is nearly all of its row: what it gets is what the others leave."""
    x = np.array([40.0, 0.0, -3.0])
    y, moves = x + np.array([0.0, 0.5, 0.2]), (np.array([1.0, 2.0, -1.0]), np.array([-1.0, 0.5, 1.0]))
    truth = row_hessians.products("kl_divergence", x, y, *moves, "logit")
    for got, (exact, _) in zip(product(call_of("kl_divergence", "logit"), x, y, moves), truth, strict=True):
        assert got == pytest.approx([float(one) for one in exact], rel=1e-14)


def test_no_neighbour_counts():
    rng = np.random.default_rng(2)
    for d, n in ((7, 90), (700, 5)):
        p, q, *moves = rng.uniform(0.1, 1.0, (4, n, d))
        for kind in ("prob", "logit"):
            call = call_of("kl_divergence", kind)
            together = product(replace(call, threads=2), p, q, moves)
            for r in (0, 1, n - 1):
                alone = product(call, p[r], q[r], [move[r] for move in moves])
                for some, one in zip(together, alone, strict=True):
                    assert np.array_equal(some[r], one)


@pytest.mark.parametrize("axis", [0, (0, 2), None, -1])
def test_layouts(axis):
    """Moved axes, steps, an argument that stands for many, cells that do not count: as of copies of the rows."""
    rng = np.random.default_rng(5)
    p, move_p, move_q = rng.uniform(0.1, 1.0, (3, 4, 6, 10))
    q, where = rng.uniform(0.1, 1.0, (6, 1)), rng.random((4, 6, 10)) < 0.8
    order = {0: (1, 2, 0), (0, 2): (1, 0, 2), None: (0, 1, 2), -1: (0, 1, 2)}[axis]
    cells = {0: 4, (0, 2): 40, None: 240, -1: 10}[axis]

    def as_rows(x):
        return np.ascontiguousarray(np.broadcast_to(x, p.shape).transpose(order)).reshape(-1, cells)

    call = call_of("kl_divergence", where=where, axis=axis)
    by_p, by_q = product(call, np.asfortranarray(p), q, (move_p[::-1].copy()[::-1], move_q[:1, :, :1][0]))
    rows = [as_rows(x) for x in (p, q, move_p, move_q[:1, :, :1])]
    expected = product(call_of("kl_divergence", where=as_rows(where)), *rows[:2], rows[2:])
    assert np.array_equal(as_rows(by_p), expected[0])
    every = np.argsort(order)
    back = expected[1].reshape([p.shape[k] for k in order]).transpose(every)
    assert by_q == pytest.approx(back.sum(axis=(0, 2))[:, None], rel=1e-13)
    assert not by_p[~where].any()


# (formula, x, y, move of x, move of y, by x, by y)
CELLS = [
    ("rel_entr", 1.0, 2.0, 1.0, 0.0, 1.0, -0.5),
    ("rel_entr", 1.0, 2.0, 0.0, 1.0, -0.5, 0.25),
    ("rel_entr", 0.0, 2.0, 0.0, 1.0, -0.5, 0.0),
    ("rel_entr", 0.0, 2.0, 1.0, 0.0, INF, -0.5),
    ("rel_entr", 0.0, 0.0, 1.0, 1.0, 0.0, 0.0),
    ("rel_entr", 2.0, 0.0, 1.0, 0.0, 0.5, -INF),
    ("rel_entr", 2.0, 0.0, 0.0, 1.0, -INF, INF),
    ("rel_entr", 2.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    ("rel_entr", -1.0, 2.0, 1.0, 1.0, NAN, NAN),
    ("generalized_kl", 1.0, 2.0, 1.0, 1.0, 0.5, -0.25),
    ("kl_div", -1.0, 0.5, 1.0, 2.0, -2.0, 3.0),
    ("kl_div", -1.0, 0.0, 1.0, 0.0, 0.0, -1.0),
    ("kl_div", -1.0, 0.0, 0.0, 1.0, -1.0, INF),
    ("kl_div", -INF, 0.0, 1.0, 1.0, 0.0, 0.0),
    ("kl_div", -1.0, -0.5, 1.0, 2.0, NAN, NAN),
    ("kl_div_log_target", -1.0, 0.0, 1.0, 1.0, -1.0, 2.0),
    ("kl_div_log_target", -1.0, -INF, 1.0, 1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("name", "x", "y", "move_x", "move_y", "by_x", "by_y"), CELLS)
def test_cells(name, x, y, move_x, move_y, by_x, by_y):
    found = OfCells(name).hessian_product(x, y, 1.0, (np.array(move_x), np.array(move_y)), (True, True))
    assert found == pytest.approx([by_x, by_y], rel=1e-15, nan_ok=True)


def test_the_digits_of_cells():
    """The largest error found is 5.2 roundings of the larger of the terms, in 100,000 cells."""
    rng = np.random.default_rng(3)
    x, y = np.exp(9.0 * rng.normal(size=(2, 200)))
    moves = rng.normal(size=(2, 200))
    by_p, by_q = OfCells("rel_entr").hessian_product(x, y, 1.0, moves, (True, True))
    a, b, u, v = (side.astype(np.longdouble) for side in (x, y, *moves))
    for got, terms in ((by_p, (u / a, -v / b)), (by_q, (-u / b, a * v / b**2))):
        assert (abs(got - sum(terms)) <= 8.0 * 2.0**-53 * np.maximum(*map(abs, terms))).all()


def test_rows_of_any_size():
    """Sums at both ends of the range do not disturb the products."""
    p, q, *moves = np.array([[1.0, 2.0, 5.0], [3.0, 1.0, 1.0], [1.0, -1.0, 2.0], [0.5, 1.0, 1.0]])
    expected = product(call_of("kl_divergence"), p, q, moves)
    for scale in (2.0**-900, 2.0**900):
        found = product(call_of("kl_divergence"), p * scale, q * scale, [move * scale for move in moves])
        for got, exact in zip(found, expected, strict=True):
            assert got * scale == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("function", ["kl_divergence", "js_divergence"])
def test_cells_near_the_smallest_number(function):
    """One that stays disturbs no other."""
    p, q = np.array([0.5, 0.5, 5e-324]), np.array([0.2, 0.7, 1e-310])
    moves = np.array([1.0, -0.5, 0.0]), np.array([0.25, 1.0, 0.0])
    found = product(call_of(function), p, q, moves)
    expected = product(call_of(function), p[:2], q[:2], [move[:2] for move in moves])
    for got, exact in zip(found, expected, strict=True):
        assert got[:2] == pytest.approx(exact, rel=1e-14)
        assert np.isfinite(got[2])


# (p, q) of the first cell beside 2e30 and 3e30: of its row it is less than the smallest number, or a few of these.
FEW = [(1e-300, 3e-300), (1e-290, 3e-3), (3e-3, 1e-290), (5e-324, 5e-324)]


@pytest.mark.parametrize("function", ["kl_divergence", "js_divergence", "cross_entropy"])
@pytest.mark.parametrize(("x", "y"), FEW)
def test_a_share_below_the_smallest_number(function, x, y):
    """Every product by itself is right, also where it is small beside the first: to 2.9e-15, 2e-14 allowed."""
    p, q = np.array([x, 2e30, 3e30]), np.array([y, 1e30, 2e30])
    none = np.zeros(3)
    for moves in ((p * [1, 2, -1], none), (none, q * [1, 3, -2]), (p * [1, 0, 0], none)):
        found = product(call_of(function), p, q, moves)
        for got, exact in zip(found, row_hessians.products(function, p, q, *moves), strict=True):
            assert got == pytest.approx([float(cell) for cell in exact[0]], rel=2e-14, abs=1e-280)
