"""Closed forms that other compiled code calls."""

from __future__ import annotations

import itertools
import json
import math

import numba
import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import jitted_kl, registered_pairs
from klnumba.distributions.constraint import POSITIVE
from tests.kernels import sub
from tests.reference.distribution_errors import build, evaluate, width
from tests.reference.distributions import cases

# With a quick form and without, of few parameters and of many, in both forms of a probability.
SOME = [
    ("Gamma", "Gamma"), ("Normal", "Laplace"), ("VonMises", "VonMises"), ("StudentT", "Normal"), ("Poisson", "Poisson"),
    ("NormalGamma", "NormalGamma"), ("Bernoulli", "Bernoulli"), ("Bernoulli.logits", "Bernoulli"),
    ("Geometric.logits", "Geometric.logits"),
]  # fmt: skip
ODDS = {name for pair in SOME for name in pair if name.partition(".")[0] in {"Bernoulli", "Geometric"}}
REST = [
    (x.p.__name__, x.q.__name__)
    for x in registered_pairs()
    if x.compiled and x.p.__module__.startswith("klnumba.") and (x.p.__name__, x.q.__name__) not in SOME
]


def numbers(p, q):
    """Cases of a pair, or some that are made up where the tables have none."""
    try:
        return np.array(list(itertools.islice(cases(p, q), 200)))
    except KeyError:
        return np.random.default_rng(0).uniform(0.2, 0.8, (50, width(p) + width(q)))


def caller(count):
    """What calls a function of so many numbers."""
    taking = {
        n: numba.njit(fastmath=True)(text)
        for n, text in {
            2: lambda f, x: f(x[0], x[1]),
            3: lambda f, x: f(x[0], x[1], x[2]),
            4: lambda f, x: f(x[0], x[1], x[2], x[3]),
            5: lambda f, x: f(x[0], x[1], x[2], x[3], x[4]),
            8: lambda f, x: f(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]),
        }.items()
    }[count]

    @numba.njit(fastmath=True)
    def rows(f, columns, out):
        for k in range(out.size):
            out[k] = taking(f, columns[k])

    return rows


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("p", "q"),
    [*SOME, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in REST)],
    ids=["-".join(pair) for pair in [*SOME, *REST]],
)
def test_the_bits_of_a_batch(p, q):
    table = numbers(p, q)
    expected = evaluate(p, q, table)
    examples = [build(name, np.full((width(name), 1), 0.5)) if name in ODDS else None for name in (p, q)]
    families = [x or getattr(D, name) for x, name in zip(examples, (p, q), strict=True)]
    found = np.empty(len(table))
    caller(table.shape[1])(jitted_kl(*families), table, found)
    np.testing.assert_array_equal(found, expected)


class Reversed(D.Normal):
    parameters = ("scale", "loc")


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
def test_as_values_of_compiled_code():
    """Functions in a tuple, of which one is chosen by a number."""
    functions = jitted_kl(D.Normal, D.Normal), jitted_kl(D.Normal, D.Laplace)

    @numba.njit
    def chosen(functions, k):
        return functions[k](0.0, 1.0, 1.0, 2.0)

    assert [chosen(functions, k) for k in range(2)] == [f(0.0, 1.0, 1.0, 2.0) for f in functions]


def test_numbers_from_python():
    """Of any kind, to a float."""
    function = jitted_kl(D.Normal, D.Normal)
    assert function(0, 1, np.float32(1.0), 2) == kl.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0))
    assert type(function(0, 1, 0, 1)) is float
    assert math.copysign(1.0, function(0, 1, 0, 1)) == 1.0
    with pytest.raises(TypeError):
        function(0.0, 1.0)


def test_on_threads_and_once_for_all():
    function = jitted_kl(D.Gamma, D.Gamma)
    assert jitted_kl(D.Gamma, D.Gamma) is function
    columns = np.random.default_rng(1).gamma(2.0, size=(4, 5000))

    @numba.njit(parallel=True)
    def divergences(a, b, c, d):
        out = np.empty(a.size)
        for k in numba.prange(a.size):
            out[k] = function(a[k], b[k], c[k], d[k])
        return out

    a, b, c, d = columns
    assert np.array_equal(divergences(*columns), kl.kl_divergence(D.Gamma(a, b), D.Gamma(c, d)))


def test_from_caches(tmp_path):
    """A caller that keeps its own code, in a process that compiles and in one that finds both there."""
    program = """
import itertools
import json
import numba, numpy as np
from klnumba.distributions import Normal, jitted_kl

normal_kl = jitted_kl(Normal, Normal)

@numba.njit(cache=True)
def total(x):
    found = 0.0
    for k in range(x.size):
        found += normal_kl(x[k], 2.0, 3.0, x[k])
    return found

value = total(np.linspace(0.5, 9.0, 100))
print(json.dumps([value.hex(), sum(total.stats.cache_hits.values())]))
"""
    cache = {"KLNUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "own")}
    first, second = (json.loads(sub.run(program, tmp_path / "work", seconds=120.0, **cache)) for _ in range(2))
    assert first[0] == second[0]
    assert (first[1], second[1]) == (0, 1)


@pytest.mark.usefixtures("own")
def test_a_formula_of_ones_own():
    class Rayleigh(D.Distribution):
        parameters = ("scale",)
        scale = D.Parameter(POSITIVE)

        def __init__(self, scale):
            super().__init__(scale=scale)

    @D.register_kl(Rayleigh, Rayleigh, compiled=True)
    def rayleigh(scale_p, scale_q):
        ratio = (scale_p / scale_q) ** 2
        return ratio - 1.0 - math.log(ratio)

    function = jitted_kl(Rayleigh, Rayleigh)
    assert function(1.0, 2.0) == kl.kl_divergence(Rayleigh(1.0), Rayleigh(2.0))

    @D.register_kl(Rayleigh, D.Normal, compiled=True)
    def unknown(scale, loc_q, scale_q):
        return nothing(scale)  # noqa: F821

    with pytest.raises(TypeError, match=r"KL\(Rayleigh \|\| Normal\): unknown cannot be compiled: .*nothing"):
        jitted_kl(Rayleigh, D.Normal)


@pytest.mark.parametrize(
    ("p", "q", "error", "words"),
    [
        (3.0, D.Normal, TypeError, "p: a family of klnumba.distributions, or an example of it, not float"),
        (D.Normal, int, TypeError, "q: a family of klnumba.distributions, or an example of it, not int"),
        (D.Normal, D.Cauchy, NotImplementedError, r"KL\(Normal \|\| Cauchy\) is not registered"),
        (D.Dirichlet, D.Dirichlet, NotImplementedError, r"KL\(Dirichlet \|\| Dirichlet\) is no scalar formula$"),
        (D.Normal, D.Pareto, NotImplementedError, r"KL\(Normal \|\| Pareto\) is no scalar formula$"),
        (D.Bernoulli, D.Bernoulli, NotImplementedError, "probs or logits: give an example of each family"),
        (
            D.Logistic, D.Logistic, NotImplementedError,
            "no scalar formula of the parameters that the two are given by",
        ),
        (
            Reversed, D.Normal, NotImplementedError,
            "no scalar formula of the parameters that the two are given by",
        ),
        (D.Chi2, D.Chi2, NotImplementedError, "no scalar formula of the parameters that the two are given by"),
        (
            D.Logistic(0.0, 1.0), D.Logistic(0.0, 1.0), NotImplementedError,
            "no scalar formula of the parameters that the two are given by",
        ),
        (
            D.Bernoulli(0.5), D.Binomial(3, 0.5), NotImplementedError,
            "no scalar formula of the parameters that the two are given by",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(p, q, error, words):
    with pytest.raises(error, match=words):
        jitted_kl(p, q)
