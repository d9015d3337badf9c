"""Which formula serves which pair of families."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from klnumba.distributions.distribution import Distribution, on_device
from klnumba.distributions.evaluate import evaluate, evaluate_one
from klnumba.labels import outside
from klnumba.reduction import unit_of

F = TypeVar("F", bound=Callable[..., Any])


class Pair(NamedTuple):
    """A registered pair of families, and what computes it."""

    p: type[Distribution]
    q: type[Distribution]
    function: Callable[..., Any]
    compiled: bool


_pairs: dict[tuple[type, type], Pair] = {}
_found: dict[tuple[type, type], Pair] = {}
_served: dict[tuple[type, type], Pair] = {}  # pairs whose formula is compiled and all that single distributions need
_declining: set[Callable[..., Any]] = set()


def register_kl(p: type, q: type, *, compiled: bool = False, replace: bool = False) -> Callable[[F], F]:
    """Decorator: KL(p || q) of two families is what this function says.

    Subclasses of `p` and `q` are served too. Of several pairs that fit, the one closest to the type of the first
    argument is taken, then of the second; where the other order would take another pair, a warning names both.

    Parameters
    ----------
    p, q : type
        Subclasses of `Distribution`.
    compiled : bool, default False
        If False, the function takes the two distributions and returns an array that broadcasts to their batch shape,
        or `NotImplemented`: then it is as if the pair were not registered for these two, and the next one that fits,
        such as that of a base, is taken.
        If True, it takes numbers, the parameters of `p` and then those of `q` in the order of their `parameters`, and
        returns a number. It is compiled at its first use and runs over the broadcast parameters on all threads.
        It may call other plain functions, those of ``klnumba.formulas`` and of the module `math`.
    replace : bool, default False
        Whether the pair may be registered already.

    Returns
    -------
    callable
        A decorator that returns its function unchanged.

    Raises
    ------
    TypeError
        If `p` or `q` is no subclass of `Distribution`, what is decorated cannot be called, or a compiled function is
        none that was written in Python, or takes another number of arguments, or a vector or matrix.
    ValueError
        If the pair is registered already.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Distribution, Exponential, Parameter, register_kl
    >>> from klnumba.distributions.constraint import POSITIVE
    >>> from klnumba.formulas.special import excess
    >>> class Rayleigh(Distribution):
    ...     parameters = ("scale",)
    ...     scale = Parameter(POSITIVE)
    ...
    ...     def __init__(self, scale):
    ...         super().__init__(scale=scale)
    >>> @register_kl(Rayleigh, Rayleigh, compiled=True)
    ... def rayleigh_rayleigh(scale_p, scale_q):
    ...     r, s = scale_p / scale_q, 1.0
    ...     return excess(s, r * r, r * r - s)
    >>> round(float(kl.kl_divergence(Rayleigh(1.0), Rayleigh(2.0))), 6)
    0.636294
    """
    for name, family in (("p", p), ("q", q)):
        if not isinstance(family, type) or not issubclass(family, Distribution):
            raise TypeError(f"{name}: a subclass of Distribution, not {family!r}")

    def register(function: F) -> F:
        global _found, _served
        if (p, q) in _pairs and not replace:
            raise ValueError(
                f"KL({p.__name__} || {q.__name__}) is registered already; replace=True puts another in its place"
            )
        if not callable(function):
            raise TypeError(f"register_kl: decorates a function, not {function!r}")
        if compiled:
            _check_formula(p, q, function)
        _pairs[p, q] = Pair(p, q, function, compiled)
        _found, _served = {}, {}
        return function

    return register


def _check_formula(p: type[Distribution], q: type[Distribution], function: Callable[..., Any]) -> None:
    for family in (p, q):
        for parameter in family.parameters:
            axes = getattr(getattr(family, parameter, None), "event_dims", 0)
            if axes:
                what = "a vector" if axes == 1 else "a matrix"
                raise TypeError(f"compiled=True: takes numbers, but {family.__name__}.{parameter} is {what}")
    wanted = [f"{p.__name__}.{name}" for name in p.parameters] + [f"{q.__name__}.{name}" for name in q.parameters]
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"compiled=True: takes a function written in Python, with def or lambda, not {function!r}")
    taken = inspect.signature(function).parameters.values()
    if any(one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in taken):
        raise TypeError(f"{function.__name__}: a compiled function takes numbers by their position, each by a name")
    if len(taken) != len(wanted):
        raise TypeError(
            f"{function.__name__}: takes {len(taken)} arguments, but there are {len(wanted)} parameters: "
            f"{', '.join(wanted)}"
        )


def may_decline(function: F) -> F:
    """Decorator: where this compiled function gives NaN for numbers, a warning says so."""
    _declining.add(function)
    return function


def registered_pairs() -> tuple[Pair, ...]:
    """All registered pairs, in the order of the families' names.

    Returns
    -------
    tuple of Pair
        Each with the families `p` and `q`, the `function`, and whether it is `compiled`.

    Examples
    --------
    >>> from klnumba.distributions import registered_pairs
    >>> [pair.q.__name__ for pair in registered_pairs() if pair.p.__name__ == "Laplace" and pair.compiled]
    ['Gumbel', 'Laplace', 'Moyal', 'Normal']
    """
    return tuple(sorted(_pairs.values(), key=lambda pair: (pair.p.__name__, pair.q.__name__)))


def divergence(p: Any, q: Any, base: float | None = None) -> Any:
    """KL(p || q) of two batches of distributions, of their broadcast batch shape."""
    served = _served  # that of this moment: another thread may register a pair meanwhile
    numbers = p._is_one and q._is_one and not (p.event_shape or q.event_shape or p._unchecked or q._unchecked)
    if numbers and base is None and (known := served.get((type(p), type(q)))) is not None:
        return evaluate_one(known.function, p._numbers(known.p.parameters) + q._numbers(known.q.parameters))
    check_events(p, q)
    shape = common_shape(p, q)
    unit = unit_of(base)
    try:
        pair = find(type(p), type(q))
        result = _evaluated(pair, p, q, shape, unit)
    except Missing as reason:
        if (found := _otherwise(p, q, base)) is None:
            found = _of_the_rest(p, q, shape, unit)
        if found is not None:
            return np.array(np.broadcast_to(found, shape))[()]
        if len(p.event_shape) != len(q.event_shape):
            text = f"none serves p with events of shape {p.event_shape} and q with {q.event_shape}"
            raise NotImplementedError(f"{reason}; {text}") from None
        raise NotImplementedError(str(reason)) from None
    if p._unchecked or q._unchecked:
        result = q.nan_where_broken(p.nan_where_broken(result))
    if pair.function in _declining:
        _tell_of_nan(pair, p, q, result)
    elif numbers and pair.compiled:
        served[type(p), type(q)] = pair
    return result


def check_events(p: Distribution, q: Distribution) -> None:
    """An error where draws of both have as many axes, and another shape."""
    alike = len(p.event_shape) == len(q.event_shape) or (p.of_a_batch and q.of_a_batch)
    if alike and p.event_shape != q.event_shape:
        raise ValueError(f"p, q: event shapes {p.event_shape} and {q.event_shape} differ")


def _evaluated(pair: Pair, p: Distribution, q: Distribution, shape: tuple[int, ...], unit: float) -> Any:
    """What the function of a pair says of two batches, in units of so many nats."""
    if not (pair.compiled or isinstance(pair.function, ByForm)):
        _refuse_devices(p, q)
        found = pair.function(p, q)
        if found is NotImplemented:
            raise _missing(type(p), type(q))
        result = _of_shape(pair, found, shape, np.result_type(p.dtype, q.dtype))
        return result if unit == 1.0 else result / result.dtype.type(unit)
    formula, of_p, of_q = pair.function, pair.p.parameters, pair.q.parameters
    if isinstance(formula, ByForm):
        formula, of_p, of_q = formula.choose(p, q)
    try:
        return over(formula, p, of_p, q, of_q, unit)
    except Exception as reason:
        if not is_refusal(reason):
            raise
        raise refusal(pair, reason) from None


def _tell_of_nan(pair: Pair, p: Distribution, q: Distribution, result: Any) -> None:
    """Warn of NaN that comes from no parameter; on a CUDA device nothing looks."""
    if any(map(on_device, [*p._given.values(), *q._given.values()])) or not np.isnan(result).any():
        return
    lost = int(np.sum(np.isnan(result) & ~(p._broken() | q._broken())))
    if lost:
        text = f"KL({pair.p.__name__} || {pair.q.__name__}): {lost} of {np.size(result)} are NaN"
        why = "the integral is not served for parameters that are so extreme"
        warnings.warn(f"{text}: {why}", RuntimeWarning, stacklevel=outside())


def _otherwise(p: Distribution, q: Distribution, base: float | None) -> Any:
    """As the same transforms make both, which need no rounding as a name may, else by the names of their families."""
    made, named = (q.counterpart(p), p.counterpart(q)), (p.named(), q.named())
    if made != (p, q):
        try:
            return divergence(*made, base)
        except NotImplementedError:
            if named == (p, q):
                raise
    return None if named == (p, q) else divergence(*named, base)


def _of_the_rest(p: Distribution, q: Distribution, shape: tuple[int, ...], unit: float) -> Any:
    """What the next pair that fits says, where the closest one declines; None where no other is left."""
    for pair in _fitting(type(p), type(q))[1:]:
        try:
            return q.nan_where_broken(p.nan_where_broken(_evaluated(pair, p, q, shape, unit)))
        except Missing:
            continue
    return None


def is_refusal(reason: Exception) -> bool:
    """Whether this is what a compiler says of a formula; of a name that a module does not have it is Python's error."""
    asked = reason.obj if isinstance(reason, AttributeError) else None
    of_a_module = isinstance(asked, types.ModuleType) and not asked.__name__.startswith(("klnumba", "numba"))
    return type(reason).__module__.startswith("numba.") or isinstance(reason, RecursionError) or of_a_module


def refusal(pair: Pair, reason: Exception) -> TypeError:
    """What the compiler says of a formula, in a line."""
    if isinstance(reason, RecursionError):
        return TypeError(f"{_named(pair)} cannot be compiled: it calls itself, or calls too deep")
    lines = [line for line in (line.strip(" ->") for line in str(reason).splitlines()) if line]
    told = [line for line in lines if not line.startswith("Failed in nopython mode")] or lines
    words = " ".join(told[: 2 if told[0].endswith(":") else 1])
    return TypeError(f"{_named(pair)} cannot be compiled: {words}")


def _named(pair: Pair) -> str:
    function = getattr(pair.function, "__name__", repr(pair.function))
    return f"KL({pair.p.__name__} || {pair.q.__name__}): {function}"


def _of_shape(pair: Pair, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """What a function gave, broadcast, in the dtype of the parameters."""
    try:
        numbers = np.asarray(result)
    except (ValueError, TypeError, RuntimeError) as reason:  # a ragged list, or a tensor that is part of a graph
        raise TypeError(f"{_named(pair)} gave what cannot be read as an array: {reason}") from None
    if numbers.dtype.kind not in "fiub":
        kind = type(result).__name__ if numbers.dtype.kind == "O" else numbers.dtype
        raise TypeError(f"{_named(pair)} gave {kind}, not real numbers")
    try:
        with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
            return np.array(np.broadcast_to(numbers, shape), dtype)[()]
    except ValueError:
        raise ValueError(
            f"{_named(pair)} gave the shape {numbers.shape}, which does not broadcast to the batch shape {shape}"
        ) from None


def _refuse_devices(*distributions: Distribution) -> None:
    for x in distributions:
        if any(map(on_device, x._given.values())):
            raise NotImplementedError(
                f"{type(x).__name__}: parameters on a CUDA device are for pairs whose formula is compiled"
            )


def over(
    formula: Callable[..., float], p: Distribution, of_p: Sequence[str], q: Distribution, of_q: Sequence[str],
    unit: float = 1.0,
) -> Any:  # fmt: skip
    """A scalar formula over the named parameters of two batches, in units of so many nats."""
    if p._is_one and q._is_one:
        return evaluate_one(formula, p._numbers(of_p) + q._numbers(of_q)) / unit
    columns = [p._column(name) for name in of_p] + [q._column(name) for name in of_q]
    return evaluate(formula, columns, common_shape(p, q), np.result_type(p.dtype, q.dtype), unit)


Chosen = tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]


class ByForm:
    """A rule with several scalar formulas, one for each form in which the parameters may have been given.

    Parameters
    ----------
    choose : callable
        From p and q to a formula, and to the names of the parameters of p and of q that it takes.
    text : str
        What the formulas compute.
    formulas : sequence of callable
        Those of the forms in which both are given alike.
    """

    def __init__(
        self, choose: Callable[[Any, Any], Chosen], text: str | None, formulas: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self.choose = choose
        self.formulas = tuple(formulas)
        self.__name__ = choose.__name__
        self.__doc__ = text

    def __call__(self, p: Distribution, q: Distribution) -> Any:
        formula, of_p, of_q = self.choose(p, q)
        return over(formula, p, of_p, q, of_q)


def looked_at(p: Distribution, q: Distribution, name: str) -> list[Any]:
    """A parameter whose value decides whether there is a closed form, of those of the two that have it.

    It is NaN where it was not checked and breaks its rule.
    """
    having = [x for x in (p, q) if name in x._given]
    if any(on_device(x._given[name]) for x in having):
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}) is known for some {name} only, which are not looked at on a "
            f"CUDA device: give {name} as numbers in the memory of the CPU"
        )
    return [x._column(name) for x in having]


def differs(p: Distribution, q: Distribution, name: str) -> Any:
    """Where such a parameter of the two differs, of numbers that keep its rule."""
    first, second = looked_at(p, q, name)
    return np.not_equal(first, second) & ~(np.isnan(first) | np.isnan(second))


def common_shape(p: Distribution, q: Distribution) -> tuple[int, ...]:
    """The shape to which two batches broadcast."""
    if p.batch_shape == q.batch_shape:
        return p.batch_shape
    try:
        return np.broadcast_shapes(p.batch_shape, q.batch_shape)
    except ValueError:
        raise ValueError(f"p, q: batch shapes {p.batch_shape} and {q.batch_shape} do not broadcast") from None


class Missing(NotImplementedError):
    """No pair serves two families."""


def _missing(p: type, q: type) -> Missing:
    """What to say where that is so."""
    fitting = (pair for pair in registered_pairs() if issubclass(p, pair.p) and pair.p is not Distribution)
    served = dict.fromkeys(pair.q.__name__ for pair in fitting)
    others = f"registered for {p.__name__}: {', '.join(served)}" if served else f"nothing is, for {p.__name__}"
    methods = "method='quadrature' (of numbers), 'sum' (of integers), 'bounds' (of mixtures), 'monte_carlo'"
    return Missing(f"KL({p.__name__} || {q.__name__}) is not registered; {others}; {methods} are other ways")


def _fitting(p: type, q: type) -> list[Pair]:
    """The pairs that may serve two families, those closest to the first one first, and then to the second."""
    fitting = [pair for pair in _pairs.copy().values() if issubclass(p, pair.p) and issubclass(q, pair.q)]
    return sorted(fitting, key=lambda pair: (p.__mro__.index(pair.p), q.__mro__.index(pair.q)))


def find(p: type, q: type) -> Pair:
    """The pair that serves two families."""
    known = _found  # that of this moment: another thread may register a pair meanwhile
    try:
        return known[p, q]
    except KeyError:
        pass
    fitting = _fitting(p, q)
    if not fitting:
        raise _missing(p, q)
    left = fitting[0]
    right = min(fitting, key=lambda pair: (q.__mro__.index(pair.q), p.__mro__.index(pair.p)))
    if left is not right:
        warnings.warn(
            f"KL({p.__name__} || {q.__name__}) is ambiguous: taking that of ({left.p.__name__}, {left.q.__name__}), "
            f"not of ({right.p.__name__}, {right.q.__name__}); register_kl({p.__name__}, {q.__name__}) decides",
            RuntimeWarning,
            stacklevel=outside(),
        )
    known[p, q] = left
    return left
