"""Which function serves a pair, what is refused, and user's own pairs."""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import kl_divergence_grad
from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter
from klnumba.formulas import special
from klnumba.formulas.special import excess_of_products
from tests.kernels import sub
from tests.reference.distributions import CLOSED
from tests.reference.pair_formulas import ALWAYS
from tests.reference.vector_distributions import PAIRS


class Rayleigh(D.Distribution):
    parameters = ("scale",)
    scale = D.Parameter(POSITIVE)

    def __init__(self, scale):
        super().__init__(scale=scale)


def twice(x):
    return 2.0 * x


def first_place(loc_p, scale_p, loc_q, scale_q):
    return loc_p


def rayleigh(scale_p, scale_q):
    return 0.5 * twice(excess_of_products(scale_p, scale_p, scale_q, scale_q))


def test_every_pair_is_in_the_tests():
    known = {pair for pair in CLOSED if "." not in "".join(pair)}
    vectors = {(pair.p.partition(".")[0], pair.q.partition(".")[0]) for pair in PAIRS}
    # the examples of the docstrings register families of their own
    ours = [pair for pair in D.registered_pairs() if getattr(D, pair.p.__name__, None) is pair.p]
    for pair in ours:
        name = (pair.p.__name__, pair.q.__name__)
        assert name in known | vectors | set(ALWAYS) or pair.function.__name__ == "infinite"
    registered = {(pair.p.__name__, pair.q.__name__) for pair in ours}
    assert known - registered == {("Chi2", "Chi2")}  # served by that of Gamma
    assert vectors <= registered


def test_a_compiled_pair_of_the_user(own):
    D.register_kl(Rayleigh, Rayleigh, compiled=True)(rayleigh)
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0.5, 2, (2, 100_000))
    b[:10] = a[:10] * (1 + 1e-9)
    result = kl.kl_divergence(Rayleigh(a), Rayleigh(b))
    np.testing.assert_allclose(result[10:], ((a / b) ** 2 - 1 - 2 * np.log(a / b))[10:], rtol=1e-6)
    np.testing.assert_allclose(result[:10], 2e-18, rtol=1e-6)


def test_a_pair_of_the_user_for_some_parameters_only(own):
    @D.register_kl(Rayleigh, D.Normal)
    def of_standard(p, q):
        return 0.25 * np.asarray(p.scale) if np.all(q.loc == 0.0) else NotImplemented

    assert kl.kl_divergence(Rayleigh(2.0), D.Normal()) == 0.5
    text = r"KL\(Rayleigh \|\| Normal\) is not registered; registered for Rayleigh: Normal; method="
    with pytest.raises(NotImplementedError, match=text):
        kl.kl_divergence(Rayleigh(2.0), D.Normal(1.0, 1.0))


def test_where_a_pair_declines_that_of_the_base_is_taken(own):
    class Mine(D.Normal):
        pass

    class Closer(Mine):
        pass

    @D.register_kl(Closer, Mine)
    @D.register_kl(Mine, Mine)
    def of_equal_scales(p, q):
        return 3.0 if np.all(p.scale == q.scale) else NotImplemented

    assert kl.kl_divergence(Closer(1.0, 2.0), Closer(0.0, 2.0)) == 3.0
    same = kl.kl_divergence(D.Normal(1.0, 2.0), D.Normal([0.0, 1.0], 3.0), base=2)
    np.testing.assert_array_equal(kl.kl_divergence(Closer(1.0, 2.0), Mine([0.0, 1.0], 3.0), base=2), same)
    broken = kl.kl_divergence(Closer(1.0, [2.0, -2.0], validate_args=False), Mine(0.0, 3.0))
    assert np.isfinite(broken[0])
    assert np.isnan(broken[1])


def test_an_edited_formula_of_the_user_is_not_found_in_the_cache(tmp_path):
    (tmp_path / "work").mkdir()
    program = """
import sys
sys.path.insert(0, {folder!r})
import klnumba as kl
from klnumba.distributions import Normal, register_kl
import theirs

class Mine(Normal):
    pass

register_kl(Mine, Mine, compiled=True)(theirs.formula)
print(float(kl.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 2.0))))
"""
    found = []
    for factor in (1.0, 3.0):
        text = f"def formula(a, b, c, d):\n    return {factor} * (b + d)\n"
        (tmp_path / "theirs.py").write_text(text)
        settings = {"KLNUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        found.append(float(sub.run(program.format(folder=str(tmp_path)), tmp_path / "work", **settings)))
    assert found == [3.0, 9.0]


def test_a_plain_pair_of_the_user(own):
    @D.register_kl(Rayleigh, D.Normal)
    def rule(p, q):
        return p.scale + 0 * q.loc

    assert kl.kl_divergence(Rayleigh([1.0, 2.0]), D.Normal(np.zeros((3, 1)), 1.0)).shape == (3, 2)
    assert rule(Rayleigh(2.0), D.Normal(0.0, 1.0)) == 2.0


def test_subclasses_are_served():
    class Mine(D.Normal):
        pass

    assert kl.kl_divergence(Mine(1.0, 2.0), D.Normal(0.0, 2.0)) == 0.125
    assert float(kl.kl_divergence(D.Chi2(5.0), D.Gamma(2.0, 1.5))) == float(
        kl.kl_divergence(D.Gamma(2.5, 0.5), D.Gamma(2.0, 1.5))
    )


def test_of_two_that_fit_the_left_is_taken_with_a_warning(own):
    class A(D.Normal):
        pass

    class B(A):
        pass

    D.register_kl(A, D.Normal)(lambda p, q: 1.0)
    D.register_kl(D.Normal, A)(lambda p, q: 2.0)
    with pytest.warns(RuntimeWarning, match=r"ambiguous: taking that of \(A, Normal\), not of \(Normal, A\)"):
        assert kl.kl_divergence(B(), B()) == 1.0
    D.register_kl(A, A)(lambda p, q: 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kl.kl_divergence(B(), B()) == 3.0
        assert kl.kl_divergence(B(), D.Normal()) == 1.0
        assert kl.kl_divergence(D.Normal(), B()) == 2.0


class OneNormal(D.Normal):
    pass


class OtherNormal(OneNormal):
    pass


def ratio_of_scales(loc_p, scale_p, loc_q, scale_q):
    return scale_p / scale_q


UNCLEAR = OtherNormal([0.0, 1.0], 1.0)
MIXED = D.Mixture(D.Categorical([0.5, 0.5]), UNCLEAR)
ENTRIES = {
    "kl_divergence": lambda: kl.kl_divergence(UNCLEAR, UNCLEAR),
    "closed": lambda: kl.kl_divergence(UNCLEAR, UNCLEAR, method="closed", base=2),
    "bounds": lambda: kl.kl_divergence(MIXED, MIXED, method="bounds"),
    "independent": lambda: kl.kl_divergence(D.Independent(UNCLEAR, 1), D.Independent(UNCLEAR, 1)),
    "joint": lambda: kl.kl_divergence(D.Joint([UNCLEAR]), D.Joint([UNCLEAR])),
    "cross_entropy": lambda: kl.cross_entropy(UNCLEAR, UNCLEAR),
    "jeffreys_divergence": lambda: kl.jeffreys_divergence(UNCLEAR, UNCLEAR),
    "kl_divergence_grad": lambda: D.kl_divergence_grad(UNCLEAR, UNCLEAR),
    "pairwise_kl": lambda: D.pairwise_kl(UNCLEAR, UNCLEAR),
    "pairwise_kl of lists": lambda: D.pairwise_kl([UNCLEAR.one((0,)), D.Normal()]),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_the_warning_points_at_the_caller(entry, own):
    D.register_kl(OneNormal, D.Normal, compiled=True)(ratio_of_scales)
    D.register_kl(D.Normal, OneNormal, compiled=True)(ratio_of_scales)
    with pytest.warns(RuntimeWarning, match="ambiguous") as told:
        entry()
    assert {(x.filename, x.lineno) for x in told} == {(__file__, entry.__code__.co_firstlineno)}


def test_a_new_registration_is_seen_at_once(own):
    assert kl.kl_divergence(D.Normal(1.0, 1.0), D.Normal()) == 0.5
    D.register_kl(D.Normal, D.Normal, replace=True)(lambda p, q: 7.0)
    assert kl.kl_divergence(D.Normal(1.0, 1.0), D.Normal()) == 7.0


def test_what_one_pair_was_served_by_is_forgotten_at_a_registration(own):
    """Single distributions keep the way to their compiled formula."""
    p, q = D.Normal(1.0, 1.0), D.Normal()
    for found in (kl.kl_divergence(p, q) for _ in range(2)):
        assert found == 0.5
    D.register_kl(D.Normal, D.Normal, compiled=True, replace=True)(first_place)
    for found in (kl.kl_divergence(p, q) for _ in range(2)):
        assert found == 1.0
    assert kl.kl_divergence(p, D.Normal([0.0, 1.0], 1.0)).tolist() == [1.0, 1.0]
    assert kl.kl_divergence(p, q, base=2.0) == 1.0 / math.log(2.0)
    with pytest.raises(ValueError, match="base"):
        kl.kl_divergence(p, q, base=-1.0)


@pytest.mark.parametrize("types", [(3, D.Normal), (D.Normal, "Normal"), (int, float), (D.Normal(), D.Normal)])
def test_only_classes_of_distributions_register(types):
    with pytest.raises(TypeError, match="a subclass of Distribution"):
        D.register_kl(*types)


def test_registering_twice_is_refused(own):
    with pytest.raises(ValueError, match=r"KL\(Normal \|\| Normal\) is registered already; replace=True"):
        D.register_kl(D.Normal, D.Normal)(lambda p, q: 0.0)


def test_a_compiled_formula_takes_every_parameter(own):
    with pytest.raises(TypeError, match=r"takes 1 arguments, but there are 2 parameters: Rayleigh.scale, Rayl"):
        D.register_kl(Rayleigh, Rayleigh, compiled=True)(lambda scale: scale)


def calls_itself(scale_p, scale_q):
    return calls_itself(scale_p, scale_q) if scale_p > scale_q else 0.0


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (functools.partial(max, 1.0), "takes a function written in Python, with def or lambda, not functools.partial"),
        (math.pow, "takes a function written in Python, with def or lambda, not <built-in function pow>"),
        (lambda a, *, b: a, "<lambda>: a compiled function takes numbers by their position"),
        (lambda *a: 0.0, "<lambda>: a compiled function takes numbers by their position"),
    ],
)
def test_what_cannot_be_compiled_is_not_registered(own, formula, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        D.register_kl(Rayleigh, Rayleigh, compiled=True)(formula)
    with pytest.raises(NotImplementedError, match="is not registered"):
        kl.kl_divergence(Rayleigh(1.0), Rayleigh(2.0))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (calls_itself, "calls_itself cannot be compiled: it calls itself"),
        (lambda a, b: None, r"cannot be compiled: No implementation of function .*\(none\)"),
        (lambda a, b: special.digamma(a), "cannot be compiled: Unknown attribute 'digamma' of type Module"),
        (lambda a, b: np.linalg.foo(a), "cannot be compiled: module 'numpy.linalg' has no attribute 'foo'"),
    ],
)
def test_the_reason_why_a_formula_does_not_compile(own, formula, text):
    D.register_kl(Rayleigh, Rayleigh, compiled=True)(formula)
    for function in (kl.kl_divergence, D.kl_divergence_grad):
        with pytest.raises(TypeError, match=r"KL\(Rayleigh \|\| Rayleigh\): .*" + text):
            function(Rayleigh(2.0), Rayleigh(1.0))


@pytest.mark.parametrize("formula", [lambda a, b: np.log(a / b) ** 2, lambda a, b: a // b])
def test_a_formula_without_derivatives_says_so(own, formula):
    D.register_kl(Rayleigh, Rayleigh, compiled=True)(formula)
    assert kl.kl_divergence(Rayleigh(2.0), Rayleigh(1.0)) > 0.0
    with pytest.raises(NotImplementedError, match=r"KL\(Rayleigh \|\| Rayleigh\): .* no rule for derivatives"):
        D.kl_divergence_grad(Rayleigh(2.0), Rayleigh(1.0))


def test_a_missing_pair_names_those_there_are():
    with pytest.raises(NotImplementedError, match=r"KL\(Normal \|\| StudentT\) is not .* for Normal: .*Laplace"):
        kl.kl_divergence(D.Normal(), D.StudentT(3.0))
    with pytest.raises(
        NotImplementedError, match=r"other ways; none serves p with events of shape \(\) and q with \(2,\)"
    ):
        kl.kl_divergence(D.Normal(), D.MultivariateNormal([0.0, 0.0], np.eye(2)))
    with pytest.raises(NotImplementedError, match="nothing is, for Rayleigh"):
        kl.kl_divergence(Rayleigh(1.0), D.Normal())


def test_what_has_a_closed_form_in_part_refuses_the_rest():
    with pytest.raises(NotImplementedError, match="unequal scale; method='quadrature'"):
        kl.kl_divergence(D.Logistic(0.0, 2.0), D.Logistic(1.0, [2.0, 3.0]))
    with pytest.raises(NotImplementedError, match="unequal total_count; method='sum'"):
        kl.kl_divergence(D.NegativeBinomial(3, 0.5), D.NegativeBinomial([3, 4], 0.5))


def test_base_and_the_options_that_there_are_not():
    assert float(kl.kl_divergence(D.Bernoulli(1.0), D.Bernoulli(0.5), base=2)) == 1.0
    with pytest.raises(ValueError, match="base"):
        kl.kl_divergence(D.Normal(), D.Normal(), base=1)
    for option in ({"axis": 0}, {"where": [True]}, {"kind": "logit"}, {"threads": 1}, {"reduction": "sum"}):
        with pytest.raises(TypeError, match="options that speak of rows"):
            kl.kl_divergence(D.Normal(), D.Normal(), **option)
    with pytest.raises(TypeError, match="q: a distribution like the other argument, not list"):
        kl.kl_divergence(D.Normal(), [0.5, 0.5])
    with pytest.raises(TypeError, match="p: a distribution like the other argument, not ndarray"):
        kl.kl_divergence(np.ones(2), D.Normal())
    with pytest.raises(ValueError, match=r"batch shapes \(2,\) and \(3,\)"):
        kl.kl_divergence(D.Normal([0, 0]), D.Normal([0, 0, 0]))


def test_the_same_bits_for_any_layout_and_number_of_threads(monkeypatch):
    rng = np.random.default_rng(2)
    a, b = rng.gamma(2.0, 2.0, (2, 300, 700)) + 0.1
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "4")
    whole = kl.kl_divergence(D.Gamma(a, 1.0), D.Gamma(b, 1.5))
    assert whole.shape == (300, 700)
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "1")
    np.testing.assert_array_equal(kl.kl_divergence(D.Gamma(a, 1.0), D.Gamma(b, 1.5)), whole)
    turned = kl.kl_divergence(D.Gamma(np.asfortranarray(a), 1.0), D.Gamma(b, np.full((300, 1), 1.5)))
    np.testing.assert_array_equal(turned, whole)
    np.testing.assert_array_equal(
        kl.kl_divergence(D.Gamma(a[::3, ::-1], 1.0), D.Gamma(b[::3, ::-1], 1.5)), whole[::3, ::-1]
    )


def test_empty_batches():
    assert kl.kl_divergence(D.Normal(np.zeros((0, 3)), 1.0), D.Normal()).shape == (0, 3)


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path):
    program = """
import json, sys
import klnumba as kl
before = "klnumba.distributions" in sys.modules
kl.kl_divergence([0.5, 0.5], [0.25, 0.75])
after = "klnumba.distributions" in sys.modules
value = float(kl.kl_divergence(kl.distributions.Normal(1.0, 2.0), kl.distributions.Normal(0.0, 2.0)))
print(json.dumps([before, after, value, "scipy.stats" in sys.modules]))
"""
    (tmp_path / "work").mkdir()
    answer = json.loads(sub.run(program, tmp_path / "work", KLNUMBA_CACHE_DIR=str(tmp_path / "cache")))
    assert answer == [False, False, 0.125, False]
    assert not math.isnan(answer[2])


class LogPoisson(D.Poisson):
    """A Poisson distribution by the logarithm of its rate."""

    parameters = ("log_rate",)

    def __init__(self, log_rate):
        Distribution.__init__(self, log_rate=log_rate)

    log_rate = Parameter(REAL)
    rate = property(lambda self: np.exp(self.log_rate))


@pytest.mark.parametrize(
    "one", [D.Bernoulli(0.3), D.Bernoulli(logits=-1.0), D.Binomial(3, 0.3), D.Binomial(3, logits=0.5)]
)
def test_formulas_by_form_ask_a_subclass_for_the_parameters_of_its_base(one):
    assert kl.kl_divergence(one, LogPoisson(0.7)) == kl.kl_divergence(one, D.Poisson(np.exp(0.7)))
    assert kl.kl_divergence(LogPoisson(0.7), one) == np.inf


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Bernoulli(logits=-1000.0), D.Bernoulli(0.0)), (D.Bernoulli(logits=-1000.0), D.Bernoulli(logits=-np.inf)),
        (D.Bernoulli(logits=-1000.0), D.Geometric(1.0)), (D.Bernoulli(logits=-1000.0), D.NegativeBinomial(3, 0.0)),
        (D.Binomial(3, logits=-1000.0), D.Binomial(3, 0.0)), (D.Binomial(3, logits=1000.0), D.Binomial(3, 1.0)),
        (D.Binomial(3, logits=-1000.0), D.NegativeBinomial(3, logits=-np.inf)),
        (D.Binomial(3, logits=-1000.0), D.Geometric(1.0)), (D.Geometric(logits=1000.0), D.Geometric(logits=np.inf)),
        (D.NegativeBinomial(2, logits=-1000.0), D.NegativeBinomial(2, 0.0)),
    ],
)  # fmt: skip
def test_a_probability_that_underflows_is_no_zero(p, q):
    assert kl.kl_divergence(p, q) == np.inf
    assert np.isfinite(kl.kl_divergence(q, p))


@pytest.mark.parametrize("count", [np.inf, -1.0, 1e300, np.nan, 2.5])
@pytest.mark.parametrize("q", [D.NegativeBinomial(2, 0.2), D.Poisson(2.0), D.Geometric(0.3), D.Binomial(10, 0.2)])
def test_counts_that_were_not_checked_end(count, q):
    p = D.Binomial([count, 3.0], 0.2, validate_args=False)
    value, gradient = kl_divergence_grad(p, q)
    assert np.isnan(value[0])
    assert np.isnan(gradient.p["probs"][0])
    assert value[1] == kl.kl_divergence(D.Binomial(3, 0.2), q)
    assert np.isnan(p.entropy()[0])


def test_slopes_that_are_infinite_at_certainty():
    for p in (D.Bernoulli(1.0), D.Binomial(1, 1.0)):
        assert np.isnan(kl_divergence_grad(p, D.NegativeBinomial(2, 0.3))[1].p["probs"])
    for q, slope in ((D.Binomial(4, 0.0), 4.0), (D.Bernoulli(0.0), 1.0), (D.Binomial(4, 0.5), 8.0)):
        assert kl_divergence_grad(D.Binomial(0, 0.3), q)[1].q["probs"] == slope
    slope = kl_divergence_grad(D.Bernoulli(logits=50.0), D.NegativeBinomial(2, 0.3))[1].p["logits"]
    assert np.isfinite(slope)


@pytest.fixture
def hurried():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_register_while_others_ask(own, hurried):
    def work(number):
        for k in range(100):
            family = type(f"Own{number}_{k}", (D.Normal,), {})
            D.register_kl(family, family)(lambda p, q: 1.0 + number)
            assert float(kl.kl_divergence(family(0.0, 1.0), family(0.0, 1.0))) == 1.0 + number
            assert len(D.registered_pairs()) > 800

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(4)]:
            done.result()
