"""The derivatives of closed forms by the parameters of both distributions."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from klnumba.derivatives import OfRows
from klnumba.distributions import (
    gradient_of_cauchy,
    gradient_rules,  # noqa: F401  registers its rules
    gradient_rules_of_odds,  # noqa: F401  registers its rules
    normal_gradient,
    vector_gradients,
)
from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.categories import Categories
from klnumba.distributions.constraint import COUNT
from klnumba.distributions.continuous_bernoulli import log_odds
from klnumba.distributions.delta import Delta
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.evaluate import evaluate_slopes
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.infinite import infinite
from klnumba.distributions.inner import inner_by_name, is_of_others, joints
from klnumba.distributions.joint import blocks
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.odds import sigmoid
from klnumba.distributions.poisson import Poisson
from klnumba.distributions.registry import ByForm, Pair, common_shape, divergence, find
from klnumba.duals.twin import slopes, twin
from klnumba.formulas.quick import Slopes, quick_bends, quick_slopes
from klnumba.tensors import is_in_forward_mode, transforms_around, untraced

NORMALS = (MultivariateNormal, LowRankMultivariateNormal)  # whose derivatives are by hand
CLEAR = 0.125  # a quick derivative is right to its last digits if it is no smaller part of its terms
FORMS = ("probs", "logits")
# Where the divergence is finite at single points of a parameter of p only, or of q, it has no derivative by that.
SINGLE_POINTS: tuple[tuple[type[Distribution], type[Distribution], str, str], ...] = (
    (Delta, Distribution, "v", ""),
    (Delta, Delta, "v", "v"),
    (Poisson, Bernoulli, "rate", ""),
    (Poisson, Binomial, "rate", ""),
    *((p, q, form, "") for p in (Geometric, NegativeBinomial) for q in (Bernoulli, Binomial) for form in FORMS),
)
CONVERTED = {("probs", "logits"): twin(log_odds), ("logits", "probs"): twin(sigmoid)}


class Gradient(NamedTuple):
    """Partial derivatives by the parameters of p and by those of q, each by its name; of `Joint` a tuple of blocks'."""

    p: Any  # Mapping[str, Any], or a tuple of them
    q: Any


@untraced
def kl_divergence_grad(p: Distribution, q: Distribution) -> tuple[Any, Gradient]:
    """KL(p || q) and its partial derivatives by every parameter of both.

    The derivatives are those of the closed form, exact but for rounding: the formula itself is evaluated with numbers
    that carry their derivatives, in twice the digits of float64.

    Parameters
    ----------
    p, q : Distribution
        Two distributions of this package, multivariate normal or of families whose pair is a scalar formula of their
        parameters, as all those registered with ``compiled=True``; or two `Independent` or `Joint` of such ones. A
        `TransformedDistribution` is taken for that of the family whose name it has, with the parameters of that; if it
        has none, two of them for what is left where equal transforms at the end are taken off.

    Returns
    -------
    value : ndarray or scalar
        ``kl_divergence(p, q)``.
    gradient : Gradient
        ``gradient.p`` and ``gradient.q``, read-only mappings from the name of each parameter to an array of the
        broadcast batch shape; those of `MultivariateNormal` by ``loc`` and by the matrix that each was given by, and
        of `LowRankMultivariateNormal` by all three. Of `Independent` they are the mappings of its base, by each number
        of a draw; of `Joint` tuples of mappings, one a block.

    Raises
    ------
    TypeError
        If an argument is no distribution of this package.
    ValueError
        If the batch shapes do not broadcast.
    NotImplementedError
        If the pair is not registered, or is no scalar formula, if the parameters are none for which it has a closed
        form, or if a formula calls a function that has no rule for derivatives.

    Notes
    -----
    A derivative is NaN where the divergence, of `Independent` and `Joint` that of the part or block, is infinite, and
    where it is no finite number itself, as that by the rate of p at ``Poisson(0)``. Where a parameter can move to one
    side only without the divergence becoming infinite, as the ends of two equal `Uniform` or `LogUniform`
    distributions, or the scale of `Pareto`, the derivative is that of the finite side, and so is that by a probability
    of 0 or 1 of q, or a rate of 0. Otherwise all derivatives at p = q are 0. By a parameter that cannot move at all,
    `v` of `Delta` or p's where q's is 0, the derivative is NaN. Parameters that are more than some 1e18 apart may cost
    digits, and such as overflow on the way give NaN.

    A probability is derived by in the form in which it was given, ``probs`` or ``logits``. There are no derivatives by
    a ``total_count`` that is an integer. Where the closed form holds for equal scales (`Logistic`) or counts
    (`NegativeBinomial`) only, the derivatives by these are those of the divergence itself, which goes on where they
    differ. So are those of `Geometric` and `NegativeBinomial` from each other, which ask for a count of 1, and those
    by the parameters of `StudentT` and `Cauchy` for one value of which there is a closed form.

    Examples
    --------
    >>> from klnumba.distributions import Normal, kl_divergence_grad
    >>> value, gradient = kl_divergence_grad(Normal(1.0, 2.0), Normal(0.0, [2.0, 4.0]))
    >>> value.round(6)
    array([0.125   , 0.349397])
    >>> gradient.p["loc"]
    array([0.25  , 0.0625])
    >>> gradient.q["scale"]
    array([-0.125  ,  0.171875])
    """
    for name, x in (("p", p), ("q", q)):
        if not isinstance(x, Distribution):
            raise TypeError(f"{name}: a distribution of klnumba.distributions, not {type(x).__name__}")
    if (p._in_graph or q._in_graph) and (transforms_around() or is_in_forward_mode()):
        raise RuntimeError(
            "kl_divergence_grad: arrays, which no transform of PyTorch follows; take klnumba.kl_divergence"
        )
    value = divergence(p, q)
    return value, _gradient(p, q, value)


def _gradient(p: Distribution, q: Distribution, value: Any) -> Gradient:
    """That by the parameters of what both come down to."""
    found = inner_by_name(p, q)
    if (both := joints(found)) is not None:
        shape = common_shape(*both)
        sides = zip(*(_of_block(x, y, shape) for x, y in blocks(*both)), strict=True)
        return Gradient(*sides)
    of_parts = value if found == (p, q, 0) else divergence(found.p, found.q)
    return rule(found.p, found.q)(of_parts, Asked())


def _of_block(p: Distribution, q: Distribution, shape: tuple[int, ...]) -> Iterable[Any]:
    """That of two blocks, for each draw of a batch of this shape."""
    axes = len(common_shape(p, q))

    def wide(slopes: Any) -> Any:
        if isinstance(slopes, tuple):
            return tuple(map(wide, slopes))
        return MappingProxyType({name: _over_batch(np.asarray(x), axes, shape) for name, x in slopes.items()})

    return map(wide, _gradient(p, q, divergence(p, q)))


def _over_batch(slopes: np.ndarray, axes: int, shape: tuple[int, ...]) -> Any:
    """Derivatives, of so many axes of a batch, for each of a larger one."""
    batch, own = slopes.shape[:axes], slopes.shape[axes:]
    filled = slopes.reshape((1,) * (len(shape) - axes) + batch + own)
    return np.array(np.broadcast_to(filled, shape + own))[()]


class Asked(NamedTuple):
    """What derivatives are asked for."""

    factors: Any = 1.0  # a factor a distribution, by which they are multiplied
    least: float = CLEAR  # what part of its terms a quick one may be; smaller ones are worked out in more digits
    by: Collection[tuple[str, str]] | None = None  # "p" or "q", and a name; None for all

    def wants(self, side: str, name: str) -> bool:
        """Whether a derivative is used."""
        return self.by is None or (side, name) in self.by


Rule = Callable[[Any, Asked], Gradient]


def rule(p: Distribution, q: Distribution) -> Rule:
    """What gives the derivatives from the divergence."""
    if is_of_others(p, q):
        return partial(_of_numbers, scalar_formula(find(type(p), type(q)), p, q), p, q)
    if isinstance(p, NORMALS) and isinstance(q, NORMALS):
        return partial(_of_normals, p, q)
    p, q = p.named(), q.named()
    if (type(p), type(q)) in vector_gradients.RULES:
        if isinstance(p, Categories) and isinstance(q, Categories) and p._given.keys() == q._given.keys():
            return partial(_of_categories, p, q)
        if isinstance(p, Dirichlet) and isinstance(q, Dirichlet):
            return partial(_of_dirichlet, p, q)
        return partial(_of_vectors, p, q)
    if (pair := find(type(p), type(q))).function is infinite:
        return partial(nowhere_finite, p, q)
    return partial(_of_numbers, scalar_formula(pair, p, q), p, q)


def nowhere_finite(p: Distribution, q: Distribution, value: Any, *_: Any) -> Gradient:
    """NaN by each number of a parameter: the divergence is infinite whatever these are."""
    shape = np.shape(value)

    def of_side(x: Distribution) -> Mapping[str, Any]:
        names = (name for name in x._given if not is_count(type(x), name))  # type: ignore[arg-type]
        shapes = {name: shape + getattr(type(x), name).split(x._given[name].shape)[1] for name in names}
        dtype = np.result_type(p.dtype, q.dtype)
        return MappingProxyType({name: np.full(wide, math.nan, dtype)[()] for name, wide in shapes.items()})

    return Gradient(of_side(p), of_side(q))


def _of_normals(p: normal_gradient.Normal, q: normal_gradient.Normal, value: Any, asked: Asked) -> Gradient:
    return _times(normal_gradient.gradient(p, q), asked.factors, np.ndim(value))


def _of_vectors(p: Distribution, q: Distribution, value: Any, asked: Asked) -> Gradient:
    return _times(vector_gradients.gradient(p, q, value), asked.factors, np.ndim(value))


def _of_categories(p: Categories, q: Categories, value: Any, asked: Asked) -> Gradient:
    """Those of rows, right to the last digits of the largest in each; by the twofold rule, to the last of each."""
    if asked.least >= CLEAR:
        return _of_vectors(p, q, value, asked)
    form, call, sides, draws = of_rows(p, q, value)
    factors = np.broadcast_to(asked.factors * draws, np.shape(value))
    found = call.slopes(*sides, factors, (asked.wants("p", form), asked.wants("q", form)))
    return Gradient(*(MappingProxyType({form: slopes}) for slopes in found))


def of_rows(p: Categories, q: Categories, value: Any) -> tuple[str, OfRows, tuple[Any, Any], Any]:
    """The divergence of categories as one of rows: their form, the call, the rows, and how many draws."""
    form = "probs" if "probs" in p._given else "logits"
    call = OfRows("kl", form.removesuffix("s"), -1, True, None, 1.0, "none", None, None, None)
    return form, call, (_wide(p._given[form], value), _wide(q._given[form], value)), draws_of(p, q)


def draws_of(p: Categories, q: Categories) -> Any:
    """How many draws the divergence is of; NaN where the counts of both differ, and it is infinite."""
    if isinstance(p, Multinomial) and isinstance(q, Multinomial):
        return np.where(p.total_count == q.total_count, p.total_count, math.nan)
    return 1.0


def _of_dirichlet(p: Dirichlet, q: Dirichlet, value: Any, asked: Asked) -> Gradient:
    """Quick ones, and by the twofold rule those of the distributions with a concentration that these do not serve."""
    if asked.least >= CLEAR:
        return _of_vectors(p, q, value, asked)
    name, parts, flat = "concentration", p.event_shape[0], np.reshape(value, -1)
    wanted, dtype = (asked.wants("p", name), asked.wants("q", name)), np.result_type(p.dtype, q.dtype)
    found, left = vector_gradients.quick_dirichlet(p, q, np.shape(value), asked.factors, asked.least, dtype, wanted)
    rows = np.unique(left // parts)
    if rows.size:
        some = [Dirichlet(_wide(x._given[name], value).reshape(-1, parts)[rows], validate_args=False) for x in (p, q)]
        exact = vector_gradients.gradient(some[0], some[1], flat[rows])
        factors = np.broadcast_to(asked.factors, np.shape(value)).reshape(-1, 1)[rows]
        for slopes, side in zip(found, exact, strict=True):
            slopes.reshape(-1, parts)[rows[: slopes.size]] = (side[name] * factors)[: slopes.size]
    shape = (*np.shape(value), parts)
    made = [{name: x.reshape(shape)} if want else {} for x, want in zip(found, wanted, strict=True)]
    return Gradient(*map(MappingProxyType, made))


def _wide(column: np.ndarray, value: Any) -> np.ndarray:
    """The vectors of a parameter, one for each distribution of the batch that the divergence is of."""
    return np.broadcast_to(column, (*np.shape(value), column.shape[-1]))


def _times(sides: Iterable[Mapping[str, Any]], factors: Any, axes: int) -> Gradient:
    """Derivatives of vectors and matrices times a factor a distribution of a batch of so many axes."""

    def scaled(slope: Any) -> Any:
        return slope * np.reshape(factors, np.shape(factors) + (1,) * (np.ndim(slope) - axes)).astype(slope.dtype)

    if isinstance(factors, float):
        return Gradient(*sides)
    return Gradient(*(MappingProxyType({name: scaled(x) for name, x in side.items()}) for side in sides))


def _of_numbers(formula: ScalarFormula, p: Distribution, q: Distribution, value: Any, asked: Asked) -> Gradient:
    shape, known = np.shape(value), np.isfinite(value)
    columns = {place: x.reshape(shape)[()] for place, x in _columns(formula, p, q, known, asked).items()}
    return named_slopes(p, q, columns if np.all(known) else {place: _where(known, x) for place, x in columns.items()})


def named_slopes(p: Distribution, q: Distribution, found: dict[tuple[str, str], Any]) -> Gradient:
    """Those by the parameters of each side that have one."""
    single_p, single_q = _single_points(type(p), type(q))  # type: ignore[arg-type]
    return Gradient(_named(p, "p", found, single_p), _named(q, "q", found, single_q))


def _columns(
    formula: ScalarFormula, p: Distribution, q: Distribution, known: Any, asked: Asked
) -> dict[tuple[str, str], np.ndarray]:
    """Those by each parameter that is asked for, of the distributions one after the other; any where none is known."""
    sides, dtype, shape, size = {"p": p, "q": q}, np.result_type(p.dtype, q.dtype), np.shape(known), np.size(known)
    places = [("p", name) for name in formula.of_p] + [("q", name) for name in formula.of_q]
    columns = [sides[side]._column(name) for side, name in places]
    wanted = [asked.wants(*place) for place in places]
    if formula.quick is None:
        found, left = [np.empty(size if want else 0, dtype) for want in wanted], np.arange(size)
    else:
        found, left = evaluate_slopes(formula.quick, columns, shape, asked.factors, asked.least, dtype, wanted)
    left = of_known(left, known)
    if left.size:
        few = [np.broadcast_to(column, shape).reshape(-1)[left] for column in columns]
        factors = np.broadcast_to(asked.factors, shape).reshape(-1)[left]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for column, slopes in zip(found, _slopes(formula.run, few, p, q) * factors, strict=True):
                exact = slopes[: column.size].astype(dtype)
                column[left[: column.size]] = _where(np.isfinite(exact), exact)
    return {place: column for place, column, want in zip(places, found, wanted, strict=True) if want}


def of_known(left: np.ndarray, known: Any) -> np.ndarray:
    """Of some places those of finite divergences: the derivatives of others are NaN, whatever they would come to."""
    return left[np.ravel(known)[left]] if left.size and not np.all(known) else left


def _slopes(formula: Callable[..., Any], columns: list[np.ndarray], p: Distribution, q: Distribution) -> Any:
    """The derivatives, or why there are none."""
    try:
        return slopes(formula, columns)
    except TypeError as reason:
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}): the formula does something that has no rule for "
            f"derivatives, {reason}"
        ) from reason


def _where(known: Any, slopes: Any) -> Any:
    """NaN where the divergence, or the derivative in its dtype, which may be float32, is no finite number."""
    return np.where(known, slopes, slopes.dtype.type(math.nan))[()]


@functools.lru_cache
def _single_points(p: type[Distribution], q: type[Distribution]) -> tuple[set[str], set[str]]:
    """The parameters of p, and those of q, that cannot move."""
    fitting = [x for x in SINGLE_POINTS if issubclass(p, x[0]) and issubclass(q, x[1])]
    return {x[2] for x in fitting}, {x[3] for x in fitting}


def _named(x: Distribution, side: str, found: dict[tuple[str, str], Any], single: set[str]) -> Mapping[str, Any]:
    """Those by what is no integer, given or derived: to some formulas a Bernoulli distribution has a count of 1."""
    own = {
        name: value
        for (where, name), value in found.items()
        if where == side and not is_count(type(x), name) and (name in x._given or name != "total_count")  # type: ignore[arg-type]
    }
    return MappingProxyType({name: value * math.nan if name in single else value for name, value in own.items()})


@functools.lru_cache
def is_count(family: type[Distribution], name: str) -> bool:
    """Whether a parameter is an integer, so that there is no derivative by it."""
    return getattr(inspect.getattr_static(family, name), "constraint", None) is COUNT


def has_derivatives(pair: Pair) -> bool:
    """Whether the derivatives of a registered pair are those of a scalar formula."""
    return (
        pair.compiled
        or isinstance(pair.function, ByForm)
        or pair.function in gradient_of_cauchy.FORMULAS
        or pair.function is infinite
    )


def is_quick(pair: Pair, order: int = 1) -> bool:
    """Whether the derivatives of a registered pair are compiled, in all forms in which p and q may be given alike."""
    formulas = pair.function.formulas if isinstance(pair.function, ByForm) else (pair.function,)
    compiled = quick_slopes if order == 1 else quick_bends
    return bool(formulas) and all(compiled(formula) is not None for formula in formulas)


class ScalarFormula(NamedTuple):
    """A pair's formula as one of the parameters that p and q were given by."""

    run: Callable[..., Any]  # of duals
    of_p: tuple[str, ...]
    of_q: tuple[str, ...]
    quick: Callable[..., Slopes] | None = None  # the quick slopes of the plain one
    bends: Callable[..., Slopes] | None = None  # and its quick bends


def scalar_formula(pair: Pair, p: Distribution, q: Distribution) -> ScalarFormula:
    """The formula of a registered pair."""
    plain: Callable[..., Any] | None = None
    if pair.compiled:
        formula, of_p, of_q = _of_own_parameters(pair, type(p), type(q)), type(p).parameters, type(q).parameters
        if (of_p, of_q) == (pair.p.parameters, pair.q.parameters):
            plain = pair.function
    elif isinstance(pair.function, ByForm):
        plain, of_p, of_q = pair.function.choose(p, q)
        formula = twin(plain)
    elif pair.function in gradient_of_cauchy.FORMULAS:
        formula, of_p, of_q = gradient_of_cauchy.FORMULAS[pair.function], pair.p.parameters, pair.q.parameters
    else:
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}): derivatives are those of scalar formulas, "
            "and this pair is not registered with compiled=True"
        )
    names_p, names_q = (tuple(_given(x, name) for name in of) for x, of in ((p, of_p), (q, of_q)))
    converted = [CONVERTED.get(pair) for pair in zip(names_p + names_q, of_p + of_q, strict=True)]

    def run(*numbers: Any) -> Any:
        return formula(*(x if f is None else f(x) for x, f in zip(numbers, converted, strict=True)))

    if plain is None or any(converted):
        return ScalarFormula(run, names_p, names_q)
    return ScalarFormula(run, names_p, names_q, quick_slopes(plain), quick_bends(plain))


def _given(x: Distribution, name: str) -> str:
    """The form in which a probability was given."""
    other = {"probs": "logits", "logits": "probs"}.get(name)
    return other if other in x._given else name


def _of_own_parameters(pair: Pair, p: type[Distribution], q: type[Distribution]) -> Callable[..., Any]:
    """The pair's formula of duals, as one of the parameters of two families that it serves."""
    formula = twin(pair.function)

    def run(*numbers: Any) -> Any:
        count = len(p.parameters)
        return formula(*_as(pair.p, p, numbers[:count]), *_as(pair.q, q, numbers[count:]))

    return run


def _as(base: type[Distribution], family: type[Distribution], numbers: tuple[Any, ...]) -> list[Any]:
    """The parameters of the base of a family, which a subclass such as `Chi2` derives by properties from its own."""
    given = SimpleNamespace(_full=lambda x: x, **dict(zip(family.parameters, numbers, strict=True)))
    found = []
    for name in base.parameters:
        derived = inspect.getattr_static(family, name)
        if name in family.parameters:
            found.append(getattr(given, name))
        elif isinstance(derived, property) and derived.fget is not None:
            found.append(derived.fget(given))
        else:
            raise NotImplementedError(f"{family.__name__}: {name} is no property of its parameters")
    return found
