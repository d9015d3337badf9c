"""Derivatives by cells and by logarithms: the digits, the edges, the layouts, and what is refused."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pandas as pd
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba import derivatives, gradients
from klnumba.derivatives import OfCells, OfRows
from klnumba.distributions import Normal
from klnumba.formulas.slopes import CELLS
from klnumba.kernels.rises import KEPT
from tests.reference import row_hessians, row_slopes

INF, NAN = math.inf, math.nan
FUNCTIONS = ("kl_divergence", "js_divergence", "jeffreys_divergence", "cross_entropy", "entropy")
FEW = ("kl_divergence", "js_divergence")
ROWS = [("prob", True), ("prob", False), ("log_prob", True), ("log_prob", False), ("logit", True)]

# The others have loops of their own to compile.
FIRST = [f if f in FEW else pytest.param(f, marks=pytest.mark.slow) for f in FUNCTIONS]
# Roundings of the largest derivative of the row, or of 1 or the largest share, of rows that are taken as they are; in
# brackets the largest found in 50 rows of every family, function and kind.
LIMIT = 8.0  # (5.1)
# Of the largest finite derivative alone, of normalised rows: by logarithms (10.4, of 150,000 derivatives of rows of 2
# to 300 cells), by cells (9.2, of 43,000 rows of 2 to 140), and by the loops that serve most rows (32, of 17,000
# derivatives by logarithms; 32.2, of 41,000 rows of cells).
ALONE = 16.0
ALONE_QUICK = 48.0


def families(kind, d, rng):
    x, y = rng.normal(size=(2, d))
    if kind == "prob":
        p = np.exp(x) / np.exp(x).sum()
        yield "any", p, np.exp(y) / np.exp(y).sum()
        yield "counts", np.ceil(9 * np.exp(x)), np.ceil(9 * np.exp(y))
        yield "wide", np.exp(9 * x), np.exp(9 * y)
        yield "proportional", np.exp(x), 3 * np.exp(x) * (1 + 1e-9 * y)
        for size in (1e-1, 1e-4, 1e-8, 1e-13):
            yield f"near, {size}", p, p * (1 + size * y)
        yield "one mass apart", p, p * (1 + 1e-6) * (1 + 1e-12 * y)
    else:
        yield "any", x, y
        yield "wide", 9 * x, 9 * y
        yield "shifted", x, x + 5 + 1e-9 * y
        yield "confident", 40 * x, 40 * x + y
        tail = np.where(np.arange(d) == 0, 0.0, -0.8 * math.log(d))
        yield "equal but for one", tail, tail + y[0] - 8.0 * (np.arange(d) == 1)
        for size in (1e-1, 1e-4, 1e-8, 1e-13):
            yield f"near, {size}", x, x + size * y


def settings(function, kind):
    found = {"temperature": 0.7} if kind == "logit" else {}
    return found | ({"weight": 0.3} if function == "js_divergence" else {})


def both(function, p, q, **options):
    """The value, and the derivatives by both arguments, or by the only one."""
    sides = (p,) if function == "entropy" else (p, q)
    return kl.value_and_grad(getattr(kl, function), range(len(sides)))(*sides, **options)


def largest_share(side, kind):
    """Of a row that is taken as it is; what is in the derivatives beside their logarithms is about as large, or 1."""
    return 1.0 if kind == "prob" else np.exp(side).max()


def roundings(found, truth, least):
    """The largest error in units of 2**-53 of the largest derivative, or of `least` if that is larger."""
    top = max(least, *(abs(x) for x in truth))
    worst = max(abs(mpf(float(got)) - x) for got, x in zip(found, truth, strict=True))
    return float(worst / top * 2**53) if top else (INF if worst else 0.0)


@pytest.fixture
def carefully(monkeypatch):
    """No row is taken by the loops that serve most."""
    monkeypatch.setattr(derivatives, "_quick_loops", lambda *_: {})


@pytest.mark.part(3)
@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize(("kind", "normalize"), ROWS)
def test_last_digits(function, kind, normalize, carefully):
    rng = np.random.default_rng(zlib.crc32(f"{function} {kind} {normalize}".encode()))
    options = settings(function, kind)
    for d in (1, 2, 5):
        for family, p, q in families(kind, d, rng):
            truth = row_slopes.slopes(function, p, q, kind, normalize, **options)
            _, found = both(function, p, q, kind=kind, normalize=normalize, **options)
            for side, got, exact in zip((p, q), found, truth, strict=False):
                if d == 1 and normalize:
                    assert not got.any()
                else:
                    least = 0.0 if normalize else largest_share(side, kind)
                    assert roundings(got, exact, least) <= (ALONE if normalize else LIMIT), (family, d, p, q)


def with_little_in_common(d, gap, rng):
    """Two rows of logarithms, each with its largest cells where the other's are smaller by about 2*gap."""
    x, y = rng.normal(size=(2, d))
    side = np.where(np.arange(d) % 2, gap, 0.0) if rng.integers(2) else np.where(np.arange(d) == 1, gap, 0.0)
    return x + side, y - side


@pytest.mark.part(2)
@pytest.mark.parametrize("length", [0, 130])
@pytest.mark.parametrize("kind", ["log_prob", "logit"])
@pytest.mark.parametrize("gap", [5.0, 12.0, 30.0, 60.0])
def test_js_of_rows_with_little_in_common(kind, gap, length):
    """Near its bound all is nearly one constant, of which what is left must not be the small difference.

    Where the constant is not left out errors are 1e24 roundings of the largest derivative.
    """
    rng, none = np.random.default_rng([int(gap), length, len(kind)]), np.full(length, -INF)
    for d in (2, 3, 5):
        for weight in (0.5, 0.3):
            p, q = with_little_in_common(d, gap, rng)
            truth = row_slopes.slopes("js_divergence", p, q, kind, weight=weight)
            sides = np.concatenate([p, none]), np.concatenate([q, none])
            _, found = both("js_divergence", *sides, kind=kind, weight=weight)
            for got, exact in zip(found, truth, strict=True):
                assert not got[d:].any()
                assert roundings(got[:d], exact, 0.0) <= ALONE_QUICK, (d, weight, p, q)


def nearly_nothing(kind, d, rng):
    """Rows whose derivatives are small beside what they are differences of."""
    x, y = rng.normal(size=(2, d))
    if kind == "prob":
        for size in (1e-1, 1e-5, 1e-10):
            yield f"flat, {size}", np.exp(size * x), 3.0 * np.exp(size * y)
            yield f"flat beside another, {size}", np.exp(x), np.exp(size * y)
        return
    yield "flat", 1e-10 * x, 1e-10 * y
    yield "flat beside another", 1e-6 * x, y
    yield "without one cell", x, x - 40.0 * (np.arange(d) == 0)
    yield "one in place of another", x + 40.0 * (np.arange(d) == 0), y + 40.0 * (np.arange(d) == 1)
    yield "two of one cell", x + 40.0 * (np.arange(d) == 0), y + 43.0 * (np.arange(d) == 0)


# By cells nothing is the small difference of large numbers but for the surprises.
LITTLE = [("entropy", "prob"), ("entropy", "logit"), ("kl_divergence", "logit"), ("js_divergence", "logit")]
LITTLE += [
    pytest.param(function, kind, marks=pytest.mark.slow)
    for function in FUNCTIONS
    for kind in ("prob", "logit")
    if (function, kind) not in LITTLE
]


@pytest.mark.parametrize(("function", "kind"), LITTLE)
def test_little_is_left(function, kind):
    rng = np.random.default_rng(zlib.crc32(function.encode()))
    for d in (2, 5, 140):
        for family, p, q in nearly_nothing(kind, d, rng):
            with mp.workdps(60):
                sides = [[mpf(cell) for cell in side] for side in (p, q)]
                truth = row_hessians.slopes(function, sides, kind, True, 0.7, 0.3)
            _, found = both(function, p, q, kind=kind, **settings(function, kind))
            for got, (exact, _) in zip(found, truth, strict=False):
                assert roundings(got, exact, 0.0) <= ALONE_QUICK, (family, d, p, q)


def beside_zeros():
    """(p, q) of which p lacks cells of q, where its derivatives are infinite; the others are small, or zero."""
    y = np.random.default_rng(5).normal(size=4)
    x = np.exp(y)
    yield "equal but for one", np.array([0.0, *x]), np.array([2.0, *(x * (1 + 1e-9 * y[::-1]))])
    yield "in proportion but for one", np.array([*x, 0.0]) * 1e-3, np.array([*(3 * x * (1 + 1e-6 * y**2)), 1e-5])
    yield "hardly overlapping", np.array([0.0, 0.0, 0.7, 0.4]), np.array([0.5, 0.3, 1e-9, 2e-9])
    yield "one cell beside others", np.array([0.0, 3.0, 0.0]), np.array([0.1, 0.2, 0.3])
    yield "next to nothing beside", np.array([0.0, 1.0, 2.0]), np.array([1.0, 1e-160, 2.0001e-160])
    yield "one small cell beside others", np.array([0.0, 0.0, 1e-300]), np.array([1.0, 3e-186, 1e-185])
    yield "far apart", np.array([0.0, *x]) * 1e200, np.array([2.0, *(x * (1 + 1e-9 * y[::-1]))]) * 1e-200


@pytest.mark.parametrize("function", ["kl_divergence", "js_divergence"])
@pytest.mark.parametrize("more", [0, 130])
def test_beside_infinite_derivatives(function, more):
    """The finite ones are right to roundings of their largest."""
    for family, p, q in beside_zeros():
        with mp.workdps(400):
            a, b = ([mpf(cell) / mp.fsum(map(mpf, side)) for cell in side] for side in (p, q))
            slopes = [
                row_hessians.CELLS[function](x, y, mpf(0.5))[0] if x else -mp.inf for x, y in zip(a, b, strict=True)
            ]
            mean = mp.fsum(x * u for x, u in zip(a, slopes, strict=True) if x)
            truth = [(u - mean) / mp.fsum(map(mpf, p)) for u in slopes]
        found = kl.value_and_grad(getattr(kl, function))(*(np.append(side, np.zeros(more)) for side in (p, q)))[1]
        some = p > 0.0
        assert (found[: p.size][~some] == -INF).all()
        assert not found[p.size :].any()
        finite = [exact for exact, there in zip(truth, some, strict=True) if there]
        if some.sum() == 1:
            assert (found[: p.size][some] == 0.0).all()
        else:
            assert roundings(found[: p.size][some], finite, 0.0) <= ALONE, family


@pytest.mark.parametrize("d", [127, 257])
def test_sums_near_the_largest_number(d, carefully):
    """One over which is no normal number, where the derivatives are."""
    p, q = np.full(d, 7e-145), np.full(d, 1.7e308)
    q[3] *= 1e-20
    _, found = kl.value_and_grad(kl.kl_divergence, 1)(p, q)
    with mp.workdps(40):
        total = mp.fsum(map(mpf, q))
        truth = [(1 - total / (d * mpf(cell))) / total for cell in q]
        assert roundings(found, truth, 0.0) <= ALONE


@pytest.mark.parametrize("length", [0, 130])
@pytest.mark.parametrize("weight", [0.5, 0.01])
def test_nothing_beside_the_largest_cell(weight, length):
    """A logit of -inf is as good as one whose exponential is zero, also beside the largest of the other row."""
    for p, q in (([3.0, 0.0, 1.0], [-INF, 0.5, 0.0]), ([-INF, 0.5, 0.0], [3.0, 0.0, 1.0]), ([3.0, -INF], [-INF, 3.0])):
        rows = [np.array([*side, *[-INF] * length]) for side in (p, q)]
        _, found = both("js_divergence", *rows, kind="logit", weight=weight)
        _, expected = both("js_divergence", *(np.maximum(row, -2000.0) for row in rows), kind="logit", weight=weight)
        for got, exact in zip(found, expected, strict=True):
            assert np.isfinite(got).all()
            assert (abs(got - exact) <= 1e-14 * abs(exact).max()).all()


@pytest.mark.part(8)
@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("d", [100, 127, 128, 255, 256, 513, 5000])
def test_short_and_long_rows(function, kind, d, monkeypatch):
    """The loops of every length against derivatives in extended precision."""
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(2, 3, d))
    p, q = (x, y) if kind == "logit" else (np.exp(x), np.exp(y))
    expected = extended(function, p, q, kind)
    for way in (derivatives._quick_loops, lambda *_: {}):
        monkeypatch.setattr(derivatives, "_quick_loops", way)
        _, found = both(function, p, q, kind=kind)
        for got, exact in zip(found, expected, strict=False):
            top = abs(exact).max(axis=1, keepdims=True)
            assert (abs(got - exact) <= 1e-14 * top).all()


@pytest.mark.part(2)
@pytest.mark.parametrize("function", FIRST[:3])
@pytest.mark.parametrize("d", [100, 300])
def test_a_flat_row_beside_a_wide_one(function, d, monkeypatch):
    """Where the sum of the one, over its largest cell, is far from that of the other: 14 roundings, 27 allowed."""
    x, y = np.zeros((1, d)), 4.0 * np.random.default_rng(38).normal(size=(1, d))
    for p, q in ((x, y), (y, x)):
        expected = extended(function, p, q, "logit")
        for way in (derivatives._quick_loops, lambda *_: {}):
            monkeypatch.setattr(derivatives, "_quick_loops", way)
            _, found = both(function, p, q, kind="logit")
            for got, exact in zip(found, expected, strict=False):
                assert (abs(got - exact) <= 3e-15 * abs(exact).max()).all()


def extended(function, p, q, kind):
    x, y = (side.astype(np.longdouble) for side in (p, q))
    weights = [np.exp(x), np.exp(y)] if kind == "logit" else [x, y]
    sums = [w.sum(axis=1, keepdims=True) for w in weights]
    a, b = (w / total for w, total in zip(weights, sums, strict=True))
    u, v = {
        "kl_divergence": lambda: (np.log(a / b), -a / b),
        "cross_entropy": lambda: (-np.log(b), -a / b),
        "entropy": lambda: (-np.log(a), 0 * b),
        "jeffreys_divergence": lambda: (np.log(a / b) - b / a, np.log(b / a) - a / b),
        "js_divergence": lambda: (np.log(2 * a / (a + b)) / 2, np.log(2 * b / (a + b)) / 2),
    }[function]()
    found = []
    for share, slope, total in zip((a, b), (u, v), sums, strict=True):
        centred = slope - (share * slope).sum(axis=1, keepdims=True)
        found.append(share * centred if kind == "logit" else centred / total)
    return found


@pytest.mark.part(2)
@pytest.mark.parametrize("d", [3, 200])
@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("function", [f for f in FIRST if f in FEW] + FIRST[2:3])
def test_equal_rows_have_no_slope(function, kind, d):
    p = np.random.default_rng(0).uniform(0.1, 1.0, d)
    for x, y in ((p, p), (p, p.copy())):
        _, found = both(function, x, y, kind=kind)
        assert not np.any(found)


# Of the loops that serve most rows: roundings of the largest derivative of the row; in brackets the largest found in
# 228 draws of such rows of 2 to 4,200 cells, logits at temperatures 0.7, 1, 3.
QUICK = {"float64": ALONE + ALONE_QUICK, "float32": 1.2}  # (42.2, 1.01)
SERVED = [
    ("kl_divergence", "prob", 0),
    ("kl_divergence", "prob", 1),
    ("kl_divergence", "logit", 1),
    ("kl_divergence", "logit", 0),
    ("js_divergence", "logit", 1),
]
SERVED += [
    pytest.param(function, kind, side, marks=pytest.mark.slow)
    for function in FUNCTIONS
    for kind in ("prob", "logit")
    for side in ((0,) if function == "entropy" else (0, 1))
    if (function, kind, side) not in SERVED
]


@pytest.mark.part(8)
@pytest.mark.parametrize(("function", "kind", "side"), SERVED)
@pytest.mark.parametrize("dtype", QUICK)
def test_what_serves_most_rows(function, kind, side, dtype, monkeypatch):
    """The derivatives are those of the loops that take more care."""
    rng, quick = np.random.default_rng(1), derivatives._quick_loops
    options = {"temperature": 3.0} if kind == "logit" else {}
    slope = kl.value_and_grad(getattr(kl, function), side)
    # the last has more cells than are kept
    for d, n in ((2, 40), (7, 40), (127, 9), (250, 3), (300, 3), (700, 3), (KEPT + 70, 1)):
        made = [list(families(kind, d, rng)) for _ in range(n)]
        for k, (family, _, _) in enumerate(made[0]):
            rows = [np.stack([row[k][j] for row in made]).astype(dtype) for j in (1, 2)][: 1 + (function != "entropy")]
            monkeypatch.setattr(derivatives, "_quick_loops", quick)
            _, found = slope(*rows, kind=kind, **options)
            monkeypatch.setattr(derivatives, "_quick_loops", lambda *_: {})
            _, exact = slope(*(row.astype("float64") for row in rows), kind=kind, **options)
            top = abs(exact).max(axis=1, keepdims=True)
            unit = top * 2.0**-53 if dtype == "float64" else top * 2.0**-24 + 2.0**-149
            assert (abs(found - exact) <= QUICK[dtype] * unit).all(), (family, d)


# Rows of which the loops that serve most would be wrong: (kind, p, q). Shares that are no normal numbers; zeros beside
# cells that are nearly equal, where infinite derivatives say nothing of the others; logits whose shares are no numbers.
LEFT = [
    ("prob", [1.5, 1.5, 5e-324], [1.0, 1.5, 0.5]),
    ("prob", [2.0, 1.0, 5e-324], [1.0, 2.0, 0.0]),
    ("prob", [1.0, 1.0, 1e-322], [1.0, 1.3, 3e-322]),
    ("prob", [1e140, 3e140, 1e-180], [1e140, 1e140, 1e-190]),
    ("prob", [1e140, 3e140, 1e-170], [1e140, 1e140, 1e-180]),
    ("prob", [1e10, 1e10, 1e-311], [1.0, 2.0, 3.0]),
    ("prob", [0.0, 0.5, 0.5], [1e-12, 0.5, 0.5 + 1e-9]),
    ("prob", [0.0, 1.0, 2.0], [1e-310, 1.0, 1.0]),
    ("prob", [0.0, 1.0, 2.0], [5e-324, 1.0, 1.0]),
    ("prob", [1.0, 2.0, 1e-321], [1.0, 1.0, 3e-321]),
    ("logit", [0.0, -709.0, 0.0], [0.0, -708.5, 0.1]),
    ("logit", [0.0, -709.0, -2000.0], [0.0, -712.0, -2000.0]),
]


@pytest.mark.part(2)
@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize(("kind", "p", "q"), LEFT)
@pytest.mark.parametrize("more", [0, 300])
def test_rows_that_are_left(function, kind, p, q, more, monkeypatch):
    """They are left to the loops that take more care, as they are or with cells behind them that hold nothing."""
    nothing = [0.0 if kind == "prob" else -INF] * more
    sides = [np.array(side + nothing) for side in (p, q)][: 1 + (function != "entropy")]
    slopes = [kl.value_and_grad(getattr(kl, function), side) for side in range(len(sides))]
    found = [slope(*sides, kind=kind)[1] for slope in slopes]
    monkeypatch.setattr(derivatives, "_quick_loops", lambda *_: {})
    for slope, ours in zip(slopes, found, strict=True):
        _, careful = slope(*sides, kind=kind)
        assert np.array_equal(np.isfinite(ours), np.isfinite(careful))
        finite = np.isfinite(careful)
        top = abs(careful[finite]).max(initial=0.0)
        np.testing.assert_allclose(ours[finite], careful[finite], rtol=0.0, atol=QUICK["float64"] * 2.0**-53 * top)
        np.testing.assert_array_equal(ours[~finite], careful[~finite])


@pytest.mark.part(2)
@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("d", [10, 100, 256, 1000])
def test_usual_rows_are_quick(kind, dtype, d, monkeypatch):
    """Those of a student and a teacher that differ, with masked cells too."""
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(2, 50, d))
    x[:, 1] = -INF
    p, q = (x, x + y) if kind == "logit" else (row / row.sum(axis=1, keepdims=True) for row in np.exp([x, x + y]))
    monkeypatch.setattr(derivatives.cpu, "slope_rows", None)
    for side in (1,) if kind == "prob" else (1, 0, (0, 1)):
        _, found = kl.value_and_grad(kl.kl_divergence, side)(p.astype(dtype), q.astype(dtype), kind=kind)
        assert np.isfinite(found).all()


# (function, kind, p, q, by p, by q), with rows divided by their sums
EDGES = [
    ("kl_divergence", "prob", [0, 0.5, 0.5], [0.2, 0.4, 0.4], [-INF, 0, 0], [1, -0.25, -0.25]),
    ("kl_divergence", "prob", [0.2, 0.4, 0.4], [0, 0.5, 0.5], [NAN, NAN, NAN], [-INF, 0.2, 0.2]),
    ("kl_divergence", "prob", [0, 1, 1], [0, 1, 3], [0, math.log(3) / 4, -math.log(3) / 4], [0, -0.25, 1 / 12]),
    ("kl_divergence", "prob", [0, 0, 0], [1, 1, 1], [NAN, NAN, NAN], [NAN, NAN, NAN]),
    ("kl_divergence", "prob", [1, -1, 3], [1, 1, 1], [NAN, NAN, NAN], [NAN, NAN, NAN]),
    ("kl_divergence", "prob", [1, NAN, 3], [1, 1, 1], [NAN, NAN, NAN], [NAN, NAN, NAN]),
    ("kl_divergence", "prob", [1, INF, 3], [1, 1, 1], [NAN, NAN, NAN], [NAN, NAN, NAN]),
    ("kl_divergence", "logit", [-INF, 0, 0], [0, 0, 0], [0, 0, 0], [1 / 3, -1 / 6, -1 / 6]),
    ("kl_divergence", "logit", [0, 0, 0], [-INF, 0, 0], [NAN, NAN, NAN], [-1 / 3, 1 / 6, 1 / 6]),
    ("kl_divergence", "logit", [-INF, 0, 0], [-INF, 0, 0], [0, 0, 0], [0, 0, 0]),
    ("kl_divergence", "logit", [-INF, -INF], [0, 0], [NAN, NAN], [NAN, NAN]),
    ("kl_divergence", "logit", [0, INF], [0, 0], [NAN, NAN], [NAN, NAN]),
    ("kl_divergence", "logit", [0, -INF, 1], [0, NAN, 1], [NAN, NAN, NAN], [NAN, NAN, NAN]),
    ("kl_divergence", "logit", [0, -720, 0], [0, -INF, 0], [NAN, NAN, NAN], [0, 0, 0]),
    ("kl_divergence", "logit", [800, 0, 0], [0, 0, 0], [0, 0, 0], [-2 / 3, 1 / 3, 1 / 3]),
    ("js_divergence", "prob", [1, 0], [0, 1], [0, -INF], [-INF, 0]),
    ("js_divergence", "logit", [0, -INF], [-INF, 0], [0, 0], [0, 0]),
    ("jeffreys_divergence", "prob", [0, 1], [0, 2], [0, 0], [0, 0]),
    ("cross_entropy", "prob", [0, 1], [1, 1], [0, 0], [1 / 2, -1 / 2]),
    ("cross_entropy", "logit", [0, 0], [-INF, 0], [NAN, NAN], [-1 / 2, 1 / 2]),
    ("entropy", "prob", [0, 1, 1], [0, 1, 1], [0, 0, 0], None),
]


@pytest.mark.part(6)
@pytest.mark.parametrize("length", [0, 130])
@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge[0]} {edge[1]} {edge[2]} {edge[3]}")
def test_edges(edge, length):
    """Also in a long row, with cells behind them that are no part of it."""
    function, kind, p, q, *slopes = edge
    if length and function not in FEW:
        pytest.skip("the loops of long rows differ by their formula alone")
    empty = [0.0 if kind == "prob" else -INF] * length
    _, found = both(function, [*p, *empty], [*q, *empty], kind=kind)
    for side in range(len(found)):
        sides = ([*p, *empty], [*q, *empty])[: len(found)]
        _, alone = kl.value_and_grad(getattr(kl, function), side)(*sides, kind=kind)
        assert alone == pytest.approx(found[side], abs=1e-15, nan_ok=True)
    for got, expected in zip(found, slopes, strict=False):
        assert got[: len(p)] == pytest.approx(expected, abs=1e-15, nan_ok=True)
        rest = got[len(p) :]
        assert (np.isnan(rest) | (rest == 0)).all()


def test_rows_of_any_size():
    """Sums at both ends of the range do not disturb the derivatives, which are as large as they make them."""
    p, q = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0, 1.0])
    _, expected = both("kl_divergence", p, q)
    for scale in (2.0**-900, 2.0**900):
        _, found = both("kl_divergence", p * scale, q * scale)
        for got, exact in zip(found, expected, strict=True):
            assert got * scale == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_no_neighbour_counts(function, kind):
    rng = np.random.default_rng(2)
    for d, n in ((7, 90), (140, 5)):
        p, q = rng.uniform(0.1, 1.0, (2, n, d))
        _, together = both(function, p, q, kind=kind, threads=2)
        if function == "kl_divergence":
            quick = kl.value_and_grad(kl.kl_divergence, 1)
            assert np.array_equal(quick(p, q, kind=kind)[1][n - 1], quick(p[n - 1], q[n - 1], kind=kind)[1])
        for r in (0, 1, n - 1):
            _, alone = both(function, p[r], q[r], kind=kind)
            for some, one in zip(together, alone, strict=True):
                assert np.array_equal(some[r], one)


@pytest.mark.parametrize("function", FEW)
def test_no_confident_neighbour_counts(function):
    """A row whose sums are far apart is looked at twice, and those beside it are not."""
    x, y = np.random.default_rng(2).normal(size=(2, 40, 7))
    x[::5, 0] += 20.0
    y[::3, 1] += 20.0
    _, together = both(function, x, y, kind="logit")
    for r in range(40):
        _, alone = both(function, x[r], y[r], kind="logit")
        for some, one in zip(together, alone, strict=True):
            assert np.array_equal(some[r], one)


@pytest.mark.parametrize("length", [0, 130])
def test_cells_near_the_smallest_number(length):
    """That times the difference of the sums is no float any more."""
    for cell in (5e-324, 1e-310, 1e-300):
        p, q = np.array([cell, 1.0, 0.5] + [0.0] * length), np.array([cell, 1.0, 0.5 + 2.0**-30] + [0.0] * length)
        _, found = kl.value_and_grad(kl.kl_divergence, 1)(p, q)
        assert found[0] == pytest.approx(found[1], rel=1e-14)


@pytest.mark.parametrize("length", [0, 130])
@pytest.mark.parametrize("kind", ["log_prob", "logit"])
@pytest.mark.parametrize("weight", [0.5, 0.3, 1e-3])
def test_js_of_shares_near_the_smallest_number(kind, weight, length):
    """Of which a part rounds to zero."""
    none = [-800.0] * length
    for cell in (-744.4, -745.0):
        for other in (cell, -745.1, -700.0, -3.0):
            p, q = np.array([0.0, cell, *none]), np.array([0.0, other, *none])
            _, found = both("js_divergence", p, q, kind=kind, weight=weight)
            assert np.isfinite(found).all()
            assert not (other == cell and np.any(found))


@pytest.mark.parametrize("weight", [0.5, 0.3])
def test_js_of_cells_near_the_smallest_number(weight):
    p = np.array([1.0, 5e-324])
    for normalize in (True, False):
        _, found = both("js_divergence", p, p.copy(), weight=weight, normalize=normalize)
        assert not np.any(found)


@pytest.mark.parametrize("length", [0, 130])
@pytest.mark.parametrize("function", FEW)
def test_rows_of_cells_near_the_smallest_number(function, length):
    """One over whose sum is no float."""
    none = [0.0] * length
    for p, q in (([1e-310, 3e-310], [1e-310, 3e-310]), ([5e-324], [0.5]), ([1e-310, 1e-310], [2e-310, 2e-310])):
        _, found = both(function, np.array([*p, *none]), np.array([*q, *none]))
        assert not np.any(found)
    rows = np.array([[1, 2**20 - 1, *none], [1, 2**20 - 1 + 2**-10, *none]])
    _, found = both(function, *np.ldexp(rows, -1060))
    _, expected = both(function, *rows)
    for got, exact in zip(found, expected, strict=True):
        assert got == pytest.approx(np.ldexp(exact, 1060), rel=1e-13)
    call = OfRows(gradients.ROWS[getattr(kl, function)], "prob", -1, True, None, 1.0, "none", None, None, None)
    found = call.slopes(*np.ldexp(rows, -1000), np.array(2.0**-1030), (True, True))
    for got, exact in zip(found, expected, strict=True):
        assert got == pytest.approx(np.ldexp(exact, -30), rel=1e-13)


def test_the_value_is_that_of_the_function():
    p, q = np.random.default_rng(3).uniform(0.1, 1.0, (2, 40, 11))
    for options in ({}, {"base": 2}, {"reduction": "mean"}, {"reduction": "sum", "keepdims": True}, {"axis": 0}):
        value, _ = both("kl_divergence", p, q, **options)
        assert np.array_equal(value, kl.kl_divergence(p, q, **options))


def test_unit_and_reduction():
    p, q = np.random.default_rng(4).uniform(0.1, 1.0, (2, 6, 5))
    _, (plain, _) = both("kl_divergence", p, q)
    for options, factor in (({"base": 2}, 1 / math.log(2)), ({"reduction": "mean"}, 1 / 6), ({"reduction": "sum"}, 1)):
        _, (found, _) = both("kl_divergence", p, q, **options)
        assert np.allclose(found, plain * factor, rtol=1e-15, atol=0)


@pytest.mark.parametrize("axis", [0, 1, (0, 2), None, -1])
def test_layouts(axis):
    """Moved axes, steps, other byte orders: the derivatives of copies of the rows."""
    rng = np.random.default_rng(5)
    p, q = rng.uniform(0.1, 1.0, (2, 4, 6, 10))
    reduced = {0: (0,), 1: (1,), (0, 2): (0, 2), None: (0, 1, 2), -1: (2,)}[axis]
    order = [k for k in range(3) if k not in reduced] + list(reduced)
    cells = math.prod(p.shape[k] for k in reduced)
    rows = [np.ascontiguousarray(x.transpose(order)).reshape(-1, cells) for x in (p, q)]
    _, expected = both("kl_divergence", *rows)
    for make in (lambda x: x, lambda x: np.asfortranarray(x), lambda x: np.repeat(x, 2, axis=2)[..., ::2],
                 lambda x: x[::-1].copy()[::-1], lambda x: x.astype(">f8")):  # fmt: skip
        _, found = both("kl_divergence", make(p), make(q), axis=axis)
        for got, exact in zip(found, expected, strict=True):
            assert got.shape == p.shape
            assert np.array_equal(got.transpose(order).reshape(-1, cells), exact)


def test_broadcast_arguments():
    """An argument that stands for many has the sum of their derivatives."""
    rng = np.random.default_rng(6)
    p, q = rng.uniform(0.1, 1.0, (3, 4, 5)), rng.uniform(0.1, 1.0, (4, 1, 5))[:, 0]
    _, (by_p, by_q) = both("kl_divergence", p, q)
    _, (all_p, all_q) = both("kl_divergence", p, np.broadcast_to(q, p.shape).copy())
    assert np.array_equal(by_p, all_p)
    assert np.allclose(by_q, all_q.sum(axis=0), rtol=1e-15, atol=1e-15)
    _, one = both("kl_divergence", np.ones((2, 1)), np.ones((2, 3)))
    assert [x.shape for x in one] == [(2, 1), (2, 3)]


def test_cells_that_do_not_count():
    rng = np.random.default_rng(7)
    p, q = rng.uniform(0.1, 1.0, (2, 3, 8))
    where = rng.random((3, 8)) < 0.6
    where[:, 0] = True
    for kind in ("prob", "logit"):
        _, found = both("kl_divergence", p, q, kind=kind, where=where)
        _, masked = both("kl_divergence", np.ma.array(p, mask=~where), q, kind=kind)
        for r in range(3):
            _, short = both("kl_divergence", p[r][where[r]], q[r][where[r]], kind=kind)
            for got, other, few in zip(found, masked, short, strict=True):
                assert np.allclose(got[r][where[r]], few, rtol=1e-14, atol=1e-16)
                assert not got[r][~where[r]].any()
                assert np.array_equal(got, other)


@pytest.mark.parametrize(
    ("dtype", "result"), [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("int64", "float64")]
)
def test_dtypes(dtype, result):
    p, q = np.random.default_rng(8).integers(1, 9, (2, 3, 6))
    _, found = both("kl_divergence", p.astype(dtype), q.astype(dtype))
    _, exact = both("kl_divergence", p * 1.0, q * 1.0)
    for got, expected in zip(found, exact, strict=True):
        assert got.dtype == result
        assert np.array_equal(got, expected.astype(result))


def test_arrays_of_jax_come_back():
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    p, q = np.random.default_rng(12).uniform(0.1, 1.0, (2, 3, 6)).astype("float32")
    _, exact = both("kl_divergence", p, q)
    value, found = both("kl_divergence", jax.numpy.asarray(p), jax.numpy.asarray(q))
    assert isinstance(value, jax.Array)
    for got, expected in zip(found, exact, strict=True):
        assert isinstance(got, jax.Array)
        assert np.array_equal(np.asarray(got), expected)


def test_float32_cells_next_to_float64():
    p = np.random.default_rng(9).uniform(0.1, 1.0, (3, 6))
    _, (found, _) = both("kl_divergence", p.astype("float32"), p)
    assert found.dtype == np.float64
    _, (wide, _) = both("kl_divergence", p.astype("float32"), p.astype("float32"), dtype="float64")
    assert wide.dtype == np.float64
    slope = kl.value_and_grad(kl.rel_entr)
    assert slope(p.astype("float32"), p.astype("float32"))[1].dtype == np.float32
    assert slope(p.astype("float32"), p.astype("float32"), dtype="float64")[1].dtype == np.float64


def test_nothing_to_do():
    for shape in ((0, 5), (5, 0), (0, 0)):
        _, found = both("kl_divergence", np.empty(shape), np.empty(shape))
        assert [x.shape for x in found] == [shape, shape]
    value, found = both("kl_divergence", 2.0, 3.0)
    assert value == 0
    assert [float(x) for x in found] == [0.0, 0.0]


def test_one_argument_or_several():
    p, q = [0.5, 0.5], [0.25, 0.75]
    _, (by_p, by_q) = kl.value_and_grad(kl.kl_divergence, (0, 1))(p, q)
    assert np.array_equal(kl.value_and_grad(kl.kl_divergence)(p, q)[1], by_p)
    assert np.array_equal(kl.value_and_grad(kl.kl_divergence, argnums=1)(p, q)[1], by_q)
    assert np.array_equal(kl.value_and_grad(kl.kl_divergence, [1, 0])(p=p, q=q)[1], [by_q, by_p])
    assert kl.value_and_grad(kl.kl_divergence).__name__ == "kl_divergence"


@pytest.mark.parametrize(
    ("function", "p", "q", "by_p", "by_q"),
    [
        ("rel_entr", 1.0, 2.0, 1 - math.log(2), -0.5),
        ("rel_entr", 0.0, 2.0, -INF, 0.0),
        ("rel_entr", 2.0, 0.0, INF, -INF),
        ("rel_entr", 0.0, 0.0, 0.0, 0.0),
        ("rel_entr", -1.0, 2.0, NAN, NAN),
        ("rel_entr", 1.0, -2.0, NAN, NAN),
        ("generalized_kl", 1.0, 2.0, -math.log(2), 0.5),
        ("generalized_kl", 1.0, 1.0 + 2.0**-40, -(2.0**-40) + 2.0**-81, 2.0**-40 - 2.0**-80),
        ("generalized_kl", 0.0, 2.0, -INF, 1.0),
        ("generalized_kl", 0.0, 0.0, 0.0, 0.0),
        ("generalized_kl", -1.0, 2.0, NAN, NAN),
    ],
)
def test_cells(function, p, q, by_p, by_q):
    _, found = kl.value_and_grad(getattr(kl, function), (0, 1))(p, q)
    assert found == pytest.approx((by_p, by_q), rel=1e-15, nan_ok=True)


@pytest.mark.part(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CELLS)
def test_cells_by_one_side_are_those_by_both(name, dtype):
    """Also where one factor serves all cells, and where each has its own."""
    limits = np.finfo(dtype)
    ends = np.array(
        [0.0, -0.0, limits.smallest_subnormal, 0.3, 1.0, 2.0, -1.0, limits.max, -80.0, INF, -INF, NAN], dtype
    )
    x, y = (a.ravel() for a in np.meshgrid(ends, ends))
    call, both = OfCells(name), (True, True)
    by_x, by_y = call.slopes(x, y, 1.5, both)
    np.testing.assert_array_equal(call.slopes(x, y, 1.5, (True, False))[0], by_x)
    np.testing.assert_array_equal(call.slopes(x, y, 1.5, (False, True))[1], by_y)
    assert call.slopes(x, y, 1.5, (False, True))[0] is None
    for found, whole in zip(call.slopes(x, y, np.full(x.shape, 1.5), both), (by_x, by_y), strict=True):
        np.testing.assert_array_equal(found, whole)


def test_the_loss_says_by_its_input_where_it_is_not_known():
    """Without the logarithm of the target."""
    ends = np.array([0.0, 0.3, 2.0, -1.0, INF, -INF, NAN])
    log_q, p = (a.ravel() for a in np.meshgrid(ends, ends))
    by_input, by_target = OfCells("kl_div").slopes(log_q, p, 1.0, (True, True))
    np.testing.assert_array_equal(np.isnan(by_input), np.isnan(by_target))
    np.testing.assert_array_equal(by_input[~np.isnan(by_input)], -p[~np.isnan(by_input)])


def test_cells_broadcast_and_are_left_out():
    p, q = np.random.default_rng(10).uniform(0.1, 1.0, (2, 4, 5))
    where = np.arange(5) % 2 == 0
    _, (by_p, by_q) = kl.value_and_grad(kl.rel_entr, (0, 1))(p, q[0], where=where, dtype="float64")
    assert np.allclose(by_p, np.where(where, np.log(p / q[0]) + 1, 0), rtol=1e-13, atol=0)
    assert np.allclose(by_q, np.where(where, -(p / q[0]).sum(axis=0), 0), rtol=1e-13, atol=0)


def test_masked_cells_are_left_out():
    p = np.ma.array([[0.2, 0.3], [0.2, 0.3]], mask=[[False, True], [False, False]])
    _, (by_p, by_q) = kl.value_and_grad(kl.rel_entr, (0, 1))(p, np.array([0.4, 0.6]))
    assert by_p == pytest.approx(np.array([[1 - math.log(2), 0.0], [1 - math.log(2), 1 - math.log(2)]]))
    assert by_q == pytest.approx([-1.0, -0.5])


def test_arguments_stay_as_they_are():
    p, q = np.random.default_rng(11).uniform(0.1, 1.0, (2, 4, 5))
    before = p.copy(), q.copy()
    for array in (p, q):
        array.flags.writeable = False
    both("kl_divergence", p, q)
    assert np.array_equal((p, q), before)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: kl.value_and_grad(np.sum), TypeError, "function: one of kl_divergence, js_div"),
        (lambda: kl.value_and_grad([1]), TypeError, "function: one of"),
        (lambda: kl.value_and_grad(kl.row_statistics), TypeError, "function: one of"),
        (lambda: kl.value_and_grad(kl.kl_divergence, 2), ValueError, "argnums: 0 to 1"),
        (lambda: kl.value_and_grad(kl.entropy, 1), ValueError, "argnums: 0, not 1"),
        (lambda: kl.value_and_grad(kl.kl_divergence, True), ValueError, "argnums"),
        (lambda: kl.value_and_grad(kl.kl_divergence, "p"), ValueError, "argnums"),
        (lambda: kl.value_and_grad(kl.kl_divergence, None), ValueError, "argnums: 0 to 1, .* not None"),
        (lambda: kl.value_and_grad(kl.kl_divergence)([1.0], [1.0], out=np.empty(())), TypeError, "out: "),
        (lambda: kl.value_and_grad(kl.kl_divergence)(pd.Series([1.0]), [1.0]), TypeError, "Series"),
        (lambda: kl.value_and_grad(kl.kl_divergence)(Normal(0, 1), Normal(1, 1)), TypeError, "kl_divergence_grad"),
        (lambda: kl.value_and_grad(kl.kl_divergence)([1.0, 2], [1.0, 2, 3]), ValueError, "do not broadcast"),
        (lambda: kl.value_and_grad(kl.kl_divergence)([1j], [1.0]), TypeError, "p: dtype complex"),
        (lambda: kl.value_and_grad(kl.kl_divergence)([1, -1], [1, 1], invalid="raise"), ValueError, "row"),
        (lambda: kl.value_and_grad(kl.kl_divergence)([1.0]), TypeError, "q"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
