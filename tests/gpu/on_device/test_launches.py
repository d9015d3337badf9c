"""How many kernels a call starts, and that what shares a kernel has the bits of what has one alone."""

import re

import numpy as np
import pytest

import klnumba as kl
from klnumba.gpu.place import Place
from klnumba.kernels.cuda import choice
from klnumba.reduction import SOURCES
from tests.gpu.on_device.arrays import get, put

LONG = choice.SPLIT + 5
LENGTHS = (3, 40, 100, LONG)
DIVERGENCES = ("kl_divergence", "js_divergence", "jeffreys_divergence", "entropy", "cross_entropy")
SIDES = {"pq": (0, 1), "qp": (1, 0), "pp": (0, 0), "qq": (1, 1)}


@pytest.fixture
def started(monkeypatch):
    """The names of the kernels that were started."""
    found, launch = [], Place.launch

    def counted(place, kernel, *args):
        found.append(getattr(kernel, "py_func", getattr(kernel, "fn", kernel)).__name__)
        launch(place, kernel, *args)

    monkeypatch.setattr(Place, "launch", counted)
    return found


def rows(d, n=3, seed=0):
    return np.random.default_rng(seed).gamma(1.0, size=(2, n, d)) + 0.01


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("function", DIVERGENCES)
def test_one_launch_and_two_for_long_rows(function, kind, d, started):
    sides = [put(side) for side in rows(d, 2)]
    getattr(kl, function)(*sides[: 1 if function == "entropy" else 2], kind=kind)
    assert len(started) == (2 if d == LONG else 1), started


@pytest.mark.parametrize(
    "settings",
    [{}, {"kind": "logit", "temperature": 3.0}, {"kind": "logit"}, {"kind": "log_prob"}, {"normalize": False}],
)
@pytest.mark.parametrize("d", LENGTHS)
def test_statistics_in_one_launch_with_the_bits_of_each_alone(d, settings, started):
    cells = rows(d, 5)
    cells[1, 1] = cells[0, 1]  # equal rows
    cells[1, 2] = cells[0, 2] * 3
    cells[0, 3, 1] = np.nan
    p, q = (put(side) for side in cells)
    found = kl.row_statistics(p, q, stats=tuple(SOURCES), **settings)
    assert len(started) == (2 if d == LONG else 1), started
    alone = {"kl": kl.kl_divergence, "js": kl.js_divergence, "jeffreys": kl.jeffreys_divergence,
             "cross_entropy": kl.cross_entropy}  # fmt: skip
    for name, function in alone.items():
        assert get(found[name]).tobytes() == get(function(p, q, **settings)).tobytes()
    assert get(found["reverse_kl"]).tobytes() == get(kl.kl_divergence(q, p, **settings)).tobytes()
    assert get(found["entropy_p"]).tobytes() == get(kl.entropy(p, **settings)).tobytes()
    assert get(found["entropy_q"]).tobytes() == get(kl.entropy(q, **settings)).tobytes()
    expected = kl.row_statistics(*cells, stats=("argmax_agree", "max_log_ratio"), **settings)
    np.testing.assert_array_equal(get(found["argmax_agree"]), expected["argmax_agree"])
    np.testing.assert_allclose(get(found["max_log_ratio"]), expected["max_log_ratio"], rtol=1e-13)


@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("base", [0.5, 2])
@pytest.mark.parametrize("d", [4, 20, 50, 100])
def test_bits_do_not_depend_on_the_other_rows(d, base, kind):
    """Not on one that is read again, either; with a base below 1 all values are negative, as its mark is."""
    p, q = rows(d, 8)
    q[7] = p[7]
    whole = get(kl.kl_divergence(put(p), put(q), kind=kind, base=base))
    alone = [get(kl.kl_divergence(put(p[k : k + 1]), put(q[k : k + 1]), kind=kind, base=base)) for k in range(8)]
    assert whole.tobytes() == np.concatenate(alone).tobytes()
    assert whole.tobytes() == get(kl.row_statistics(put(p), put(q), kind=kind, base=base)["kl"]).tobytes()
    np.testing.assert_allclose(whole, kl.kl_divergence(p, q, kind=kind, base=base), rtol=1e-14)


@pytest.mark.parametrize("store", ["float64", "float32", "float16", "bfloat16"])
def test_teams_grow_with_rows(store):
    """Every row has a team, and a longer one no smaller team; the borders are those that the table names."""
    bounds = [bound for bound, _ in choice.table(store)]
    assert bounds == sorted(set(bounds))
    assert bounds[-1] == np.inf
    for bound, team in choice.table(store)[:-1]:
        assert choice.choose(bound - 1, store) == team
        assert choice.choose(bound, store) != team
        assert choice.choose(bound, store).width >= team.width
    for _, team in choice.table(store):
        assert team.threads % team.width == 0


def test_the_table_of_teams_is_the_one_that_is_told():
    (rule,) = set(re.findall(r"^=[= ]*$", choice.__doc__, flags=re.M))
    _, heads, table, _ = choice.__doc__.split(rule)
    assert heads.split()[:4] == ["float32", "float64", "float16,", "bfloat16"]
    columns = [match.span() for match in re.finditer("=+", rule)][:3]
    for (start, end), size in zip(columns, (4, 8, 2), strict=True):
        found = [int(digits) for line in table.splitlines() if (digits := re.sub(r"\D", "", line[start:end]))]
        last = [int(bound) - 1 for bound, _ in choice.TABLES[size][:-1]]
        assert found == [*last, 262_144]


def test_the_largest_cells_of_long_rows():
    p, q = rows(LONG, 4)
    p[0, [7, 100]] = q[0, [7, 100]] = 99.0  # the first of equal ones
    p[1, LONG - 1] = q[1, LONG - 1] = 99.0
    p[2, 3] = q[2, 4] = 99.0
    p[3, 90] = q[3, 90] = np.nan
    found = kl.row_statistics(put(p), put(q), stats=("argmax_agree",))["argmax_agree"]
    np.testing.assert_array_equal(get(found), [True, True, False, False])


def test_pieces_grow_where_there_would_be_too_many():
    d = choice.MOST_PIECES * choice.PIECE + 41
    assert choice.piece_of(d) == 2 * choice.PIECE
    p, q = rows(d if d < 10_000 else 2 * LONG, 1)
    np.testing.assert_allclose(get(kl.kl_divergence(put(p), put(q))), kl.kl_divergence(p, q), rtol=1e-14)


def test_no_rows_start_nothing(started):
    kl.row_statistics(put(np.empty((0, 4))), put(np.empty((0, 4))))
    kl.kl_divergence(put(np.empty((0, LONG))), put(np.empty((0, LONG))))
    assert not started
