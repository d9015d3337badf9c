"""KL of rows of probabilities that are taken as they are: the quick loops, and what they leave to the exact ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import klnumba as kl
from klnumba import engine
from klnumba.formulas.finish import GRID, differences, kl_finish_difference, split_difference
from klnumba.kernels import cpu, fast_plain
from tests.reference import mp

LENGTHS = (1, 2, 3, 7, 10, 31, 32, 100, 127, 128, 255, 256, 300, 1000, 5000)
LIMITS = {"float64": 3.5, "float32": 2.0}  # ulp; 2.9 and 1.6 were the largest that were found
EDGES = np.array([
    0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-45, 1e-39, 1e-20, 0.5,
    0.25, 1e20, 1e38, 3e38, 1e300, 1.7e308, 1.6e308, -1e-310,
])  # fmt: skip


def plain(p, q, **others):
    return kl.kl_divergence(p, q, normalize=False, **others)


def distributions(rng, shape):
    p, q = rng.gamma(1.0, size=(2, *shape))
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


def near(rng, p, size):
    return p * (1 + size * rng.standard_normal(p.shape))


def near_with_their_sum(rng, p, size):
    q = near(rng, p, size)
    return q / q.sum(axis=1, keepdims=True)


def thinned(rng, p, share):
    return np.where(rng.random(p.shape) < share, p, 0.0)


FAMILIES = {
    "ordinary": lambda rng, p, q: (p, q),
    "unnormalised": lambda rng, p, q: (p * 10 ** rng.uniform(-9, 9, (len(p), 1)), q * 10 ** rng.uniform(-9, 9)),
    "near, 1e-2": lambda rng, p, q: (p, near(rng, p, 1e-2)),
    "near, 1e-6": lambda rng, p, q: (p, near(rng, p, 1e-6)),
    "near, 1e-12": lambda rng, p, q: (p, near(rng, p, 1e-12)),
    "alike sums, 1e-3": lambda rng, p, q: (p, near_with_their_sum(rng, p, 1e-3)),
    "alike sums, 1e-6": lambda rng, p, q: (p, near_with_their_sum(rng, p, 1e-6)),
    "alike sums, 1e-9": lambda rng, p, q: (p, near_with_their_sum(rng, p, 1e-9)),
    "alike sums, 1e-12": lambda rng, p, q: (p, near_with_their_sum(rng, p, 1e-12)),
    "in another order": lambda rng, p, q: (p, rng.permuted(p, axis=1)),
    "sparse": lambda rng, p, q: (thinned(rng, p, 0.3), q),
    "zeros on both sides": lambda rng, p, q: np.stack([p, q]) * (rng.random(p.shape) < 0.5),
    "both sparse": lambda rng, p, q: (thinned(rng, p, 0.3), thinned(rng, q, 0.9)),
    "counts": lambda rng, p, q: (np.round(1e4 * p), 1.0 + np.round(1e4 * q)),
    "large counts": lambda rng, p, q: (np.round(1e12 * p), 1.0 + np.round(1e12 * q)),
    "large and near": lambda rng, p, q: (1e30 * p, near(rng, 1e30 * p, 1e-5)),
    "small": lambda rng, p, q: (1e-25 * p, 1e-25 * q),
    "far": lambda rng, p, q: (p * np.exp(-rng.uniform(0, 60, p.shape)), q * np.exp(-rng.uniform(0, 60, p.shape))),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_accuracy(family, dtype):
    for n in LENGTHS:
        rng = np.random.default_rng([n, len(family)])
        p, q = FAMILIES[family](rng, *distributions(rng, (5 if n < 200 else 1, n)))
        p, q = p.astype(dtype), q.astype(dtype)
        for row, value in enumerate(plain(p, q)):
            truth, scale = mp.of_rows("kl_divergence", p[row], q[row], "prob", False)
            if abs(truth) < 0.5 * kl.generalized_kl(p[row], q[row]).sum():  # the exact loop adds up these terms
                scale = max(scale, np.abs(kl.rel_entr(p[row], q[row])).sum())
            assert mp.ulp_error(value, truth, dtype, scale) <= LIMITS[dtype], (n, row, float(truth))


def test_rows_whose_cells_underflow(exact_only):
    """In long rows below the floor the cells have lost digits, or all of them."""
    rng = np.random.default_rng(14)
    for size in (1e-300, 1e-290, 1e-280):
        p, q = (size * 300 * x for x in distributions(rng, (20, 300)))
        np.testing.assert_allclose(plain(p, q), exact_only(p, q), rtol=1e-14, atol=0.0)
        close = near_with_their_sum(rng, p, 1e-6) * p.sum(axis=1, keepdims=True)
        assert plain(p, close).tobytes() == exact_only(p, close).tobytes()


@pytest.mark.parametrize("dtype", LIMITS)
def test_a_row_in_pieces(dtype, monkeypatch):
    """In one read, and to the last digits: the sums of a stretch that is repeated are known."""
    monkeypatch.delitem(cpu.CELLS, "kl")  # what the exact loops are made of
    rng = np.random.default_rng(9)
    p, q = (x[0].astype(dtype) for x in distributions(rng, (1, 300)))
    for other in (q, near(rng, p, 1e-4).astype(dtype), p):
        value = plain(np.tile(p, 1000), np.tile(other, 1000))
        truth, scale = mp.of_rows("kl_divergence", p, other, "prob", False)
        assert mp.ulp_error(value, 1000 * truth, dtype, 1000 * scale) <= LIMITS[dtype]


@pytest.fixture
def exact_only(monkeypatch):
    """A call of this leaves every row to the exact loops."""

    def refuse(p, a, ps, q, b, qs, n, d, out, flag, turn, *room):
        flag[:] = turn[3]
        return n

    def careful(p, q):
        with monkeypatch.context() as patch:
            patch.setattr(cpu, "quick_rows", lambda *key: refuse)
            return plain(p, q, threads=1)

    return careful


def with_edges(rng, x):
    return np.where(rng.random(x.shape) < min(0.3, 2.0 / x.shape[1]), rng.choice(EDGES, x.shape), x)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("n", LENGTHS)
@np.errstate(over="ignore", invalid="ignore")
def test_edges_are_those_of_the_exact_loops(exact_only, n, dtype):
    rng = np.random.default_rng(n)
    p, q = distributions(rng, (max(4, min(1000, 20_000 // n)), n))
    negative_zeros = np.where(thinned(rng, p, 0.5) == 0.0, -0.0, p), np.where(rng.random(q.shape) < 0.1, -0.0, q)
    pairs = [
        (with_edges(rng, p), with_edges(rng, q)), (with_edges(rng, p), near(rng, p, 1e-9)),
        (rng.choice(EDGES, p.shape), rng.choice(EDGES, p.shape)), negative_zeros, (1e-320 * p, 1e-320 * q),
        (0.0 * p, 0.0 * q), (0.0 * p, q), (p, 0.0 * q), (1.7e308 * p, 1.7e308 * q),
    ]  # fmt: skip
    ordinary = 0
    for first, second in pairs:
        first, second = first.astype(dtype), second.astype(dtype)
        found, exact = plain(first, second), exact_only(first, second)
        finite = np.isfinite(exact)
        np.testing.assert_array_equal(found[~finite], exact[~finite])
        np.testing.assert_array_equal(found == 0.0, exact == 0.0)
        # Where equal cells are so large that others do not show beside their sums, the exact loops lose digits.
        usual = finite & (np.where(np.isfinite(first), np.abs(first), 0.0).max(axis=1) < 1e3)
        np.testing.assert_allclose(found[usual], exact[usual], rtol=1e-12 if dtype == "float64" else 3e-7)
        ordinary += int(usual.sum())
    assert ordinary >= 2 * len(p)


@pytest.mark.parametrize(
    ("p", "q", "value"),
    [
        ([0.0, 1.0], [0.0, 1.0], 0.0),
        ([0.0, 1.0], [0.5, 1.0], 0.0),
        ([0.5, 0.5], [1.0, 0.0], math.inf),
        ([0.5, -0.5], [0.5, 0.5], math.nan),
        ([0.5, 0.5], [0.5, -0.5], math.nan),
        ([0.5, math.nan], [0.5, 0.5], math.nan),
        ([0.5, 0.5], [0.5, math.inf], -math.inf),
        ([0.5, math.inf], [0.5, 0.5], math.inf),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.5, 0.5], [2.0, 2.0], -2.0 * math.log(2.0)),
        ([5e-324, 0.5], [5e-324, 0.5], 0.0),
        ([-0.0, 0.5], [-0.0, 0.5], 0.0),
    ],
)
@pytest.mark.parametrize("times", [1, 50, 200])
def test_edges(p, q, value, times):
    """Of two cells, and of so many that other loops take them."""
    expected = value * times if value else value
    assert plain(np.tile(p, times), np.tile(q, times)) == pytest.approx(expected, rel=1e-15, nan_ok=True)


SERVED = ["ordinary", "near, 1e-2", "near, 1e-6", "near, 1e-12", "alike sums, 1e-3", "alike sums, 1e-6", "counts",
          "large counts", "large and near", "zeros on both sides"]  # fmt: skip


@pytest.mark.parametrize("family", SERVED)
def test_one_read_serves_nearly_every_row(family, monkeypatch):
    left = []
    exact = engine._exact

    def counted(name, task, block, d, dtype, index, *rest, **others):
        left.extend(index if name == "kl" else ())
        exact(name, task, block, d, dtype, index, *rest, **others)

    monkeypatch.setattr(engine, "_exact", counted)
    rng = np.random.default_rng(8)
    for n in (10, 100, 255, 256, 1000):
        count = 20_000 // n
        left.clear()
        plain(*FAMILIES[family](rng, *distributions(rng, (count, n))))
        assert len(left) <= 0.2 * count, n


def test_no_row_depends_on_its_neighbours():
    """Rows that make the guard of their group fail, or want a grid of their own, beside such as do not."""
    for n in (2, 3, 10, 100, 200):
        rng = np.random.default_rng(n)
        p, q = distributions(rng, (60, n))
        pairs = [make(rng, p, q) for make in FAMILIES.values()] + [(with_edges(rng, p), with_edges(rng, q))]
        order = rng.permutation(60 * len(pairs))
        p, q = (np.concatenate(side)[order] for side in zip(*pairs, strict=True))
        alone = np.array([plain(x, y) for x, y in zip(p, q, strict=True)])
        assert plain(p, q).tobytes() == alone.tobytes(), n


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_differences_have_twice_the_digits(kind):
    rng = np.random.default_rng(4)
    unit = Fraction(float(np.finfo(kind).eps)) / 2
    for _ in range(200):
        x, y = (rng.random((2, 4)) * 10.0 ** rng.uniform(-6, 6, (2, 4))).astype(kind)
        total, lost = differences(*x, *y)
        assert type(total) is type(lost) is kind
        gaps = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, y, strict=True)]
        error = abs(sum(gaps) - Fraction(float(total)) - Fraction(float(lost)))
        assert error <= 8 * unit * unit * sum(map(abs, gaps))


@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf, 0.3 * np.finfo(np.float64).max])
@np.errstate(over="ignore", invalid="ignore")
def test_differences_tell_of_cells_that_are_not_served(cell):
    for place in range(4):
        x = np.full(4, 0.5)
        x[place] = cell
        assert math.isnan(differences(*x, *np.full(4, 0.5))[1])
        assert math.isnan(differences(*x, *x)[1])
        if cell != 0.3 * np.finfo(np.float64).max:
            assert math.isnan(differences(*np.full(4, 0.5), *x)[1])


@pytest.mark.parametrize("scale", [2.0**-80, 1.0, 2.0**40])
@pytest.mark.parametrize("d", [4, 30, 255])
def test_first_parts_have_exact_sums(d, scale):
    rng = np.random.default_rng(d)
    p, q = rng.uniform(0, min(fast_plain.WIDEST, fast_plain.SUM / d), (2, d)) * scale
    parts = [split_difference(float(a), float(b), GRID * scale)[:2] for a, b in zip(p, q, strict=True)]
    high, low = np.array(parts).T
    assert sum(np.abs(high).tolist()) == math.fsum(np.abs(high))
    assert np.abs(low).max() <= 1.25 * 2.0**-44 * scale
    for a, b, part in zip(p, q, parts, strict=True):
        assert abs(sum(map(Fraction, part)) - (Fraction(a) - Fraction(b))) <= Fraction(2.0**-97 * scale)


def test_the_finish():
    least, most = 1e-12, 1e200
    assert kl_finish_difference(1.0, 0.25, 0.125, least, most) == 1.375
    assert kl_finish_difference(1.0, -3.0, 0.0, least, most) == -2.0
    assert kl_finish_difference(0.0, 0.0, 0.0, least, most) == 0.0
    for g, d in [(1.0, -0.75), (1e-13, 0.0), (1e201, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, math.nan)]:
        assert math.isnan(kl_finish_difference(g, d, 0.0, least, most))
