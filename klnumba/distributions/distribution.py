"""What all families share: parameters that broadcast and never change, their checks, and how they are shown."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from klnumba.distributions.constraint import Constraint, shown
from klnumba.distributions.evaluate import column_of_one, evaluate
from klnumba.distributions.given import number_array, tensors_of
from klnumba.distributions.mapped import Mapped
from klnumba.parametric import Parametric, library_of
from klnumba.tensors import MAPPED, is_in_forward_mode, is_mapped, untrace, untraced, version


def on_device(value: Any) -> bool:
    """Whether a parameter lies on a CUDA device; nothing looks at its numbers before a formula does."""
    return not isinstance(value, np.ndarray | np.generic | float) and hasattr(value, "taken")


def at_hand(value: Any) -> bool:
    """Whether the numbers of a parameter can be looked at."""
    return not isinstance(value, Mapped) and not on_device(value)


# What a distribution keeps of its numbers, and of the tensors that these are of.
CACHES = {"dtype", "_is_one", "_made", "_factor", "_factors", "_tensors", "_versions"}


def _outside_graphs(of_one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What is computed of a distribution, without a gradient that would be lost unseen."""

    @untraced
    @functools.wraps(of_one)
    def found(distribution: Any) -> Any:
        refuse_graphs(f"{type(distribution).__name__}.{of_one.__name__}", distribution)
        return of_one(distribution)

    return found


def refuse_graphs(what: str, *distributions: Distribution) -> None:
    """An error where PyTorch wants a derivative of what has none here."""
    if not any(x._in_graph for x in distributions):
        return
    if any(x._is_mapped for x in distributions):
        raise RuntimeError(f"{what}: of {MAPPED}")
    if sys.modules["torch"].is_grad_enabled():
        raise RuntimeError(
            f"{what} carries no gradient, but a parameter requires one: detach it or compute under torch.no_grad()"
        )
    if is_in_forward_mode():
        raise RuntimeError(f"{what} carries no tangent of forward mode, but a parameter may have one: give its primal")


class Support(NamedTuple):
    """Where a distribution has mass: from `low` to `high`, on integers only where `discrete`."""

    low: Any
    high: Any
    discrete: bool = False


class Parameter:
    """A parameter of a family: reads as an array of the batch's shape that cannot be written to.

    Its last `event_dims` axes are not part of the batch: 1 for a vector a distribution, 2 for a matrix.
    """

    def __init__(self, constraint: Constraint, derive: Callable[[Any], Any] | None = None, event_dims: int = 0) -> None:
        self.constraint = constraint
        self.derive = derive  # what it is where another parameter was given in its place
        self.event_dims = event_dims

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        found = instance._given.get(self.name)
        if found is None:
            found = self.derive(instance) if self.derive else self._missing(instance)
        if on_device(found):
            return found.array
        return np.broadcast_to(found, instance.batch_shape + self.split(np.shape(found))[1])[()]

    def split(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The axes of the batch, and those of one distribution."""
        cut = len(shape) - self.event_dims
        return shape[:cut], shape[cut:]

    def _missing(self, instance: Any) -> Any:
        raise AttributeError(f"{type(instance).__name__}: {self.name} was not given")

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(f"{type(instance).__name__}.{self.name}: a distribution does not change")


class Distribution(Parametric):
    """A batch of distributions of one family.

    A family lists its parameters in `parameters`, in the order in which a scalar formula takes them, and describes
    each with a `Parameter`.

    Attributes
    ----------
    batch_shape : tuple of int
        The shape to which the parameters broadcast.
    event_shape : tuple of int
        The shape of one draw.
    """

    parameters: ClassVar[tuple[str, ...]] = ()
    entropy_formula: ClassVar[Callable[..., float]]
    scipy_name: ClassVar[str] = ""
    circular: ClassVar[bool] = False  # whether the ends of the support are one point
    of_a_batch: ClassVar[bool] = False  # whether a draw is of a batch of another family

    batch_shape: tuple[int, ...]
    event_shape: tuple[int, ...]
    _given: dict[str, np.ndarray]
    _tensors: Mapping[str, Any] = MappingProxyType({})  # the parameters of which PyTorch wants the gradient
    _versions: Mapping[str, int] = MappingProxyType({})  # how often these had been changed in place
    _in_graph = False  # whether it has such, or what it is made of, or made from
    _is_mapped = False  # whether such a tensor is another for each member of a batch that vmap goes through
    _unchecked = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Moments beyond the range of their numbers are infinite or 0, without a warning of NumPy's.

        They and the entropy are no nodes of PyTorch's graph, and its compiler follows none of them.
        """
        super().__init_subclass__(**options)
        untrace(cls, "__init__", "support")
        for name in ("mean", "variance"):
            found = cls.__dict__.get(name)
            if isinstance(found, property) and found.fget:
                setattr(cls, name, found.getter(np.errstate(all="ignore")(_outside_graphs(found.fget))))
        if isinstance(entropy := cls.__dict__.get("entropy"), FunctionType):
            setattr(cls, "entropy", _outside_graphs(entropy))  # noqa: B010  a checker of types takes no other function

    @untraced
    def __init__(self, validate_args: bool | None = True, **given: Any) -> None:
        owner = type(self).__name__
        if tensors := tensors_of(owner, given):
            versions = {name: version(x) for name, x in tensors.items()}
            mapped = any(map(is_mapped, tensors.values()))
            self.__dict__.update(_tensors=tensors, _versions=versions, _in_graph=True, _is_mapped=mapped)
        values = {name: number_array(owner, name, value) for name, value in given.items()}
        self.__dict__.update(_given=values, batch_shape=self._batch_shape(values))
        self.__dict__["event_shape"] = self._event_shape()
        constraints = {name: getattr(type(self), name).constraint for name, value in values.items() if at_hand(value)}
        if not (validate_args is None or validate_args):  # PyTorch's None is its default, which checks
            self.__dict__["_unchecked"] = True
        else:
            for name, constraint in constraints.items():
                constraint.check(owner, name, values[name])
            if len(constraints) == len(values):
                self._validate()
        for name, constraint in constraints.items():
            if constraint.kept is not None:
                values[name] = constraint.kept(values[name])

    def _batch_shape(self, values: dict[str, np.ndarray]) -> tuple[int, ...]:
        """The shape to which the batches of the parameters broadcast."""
        owner = type(self).__name__
        shapes = []
        for name, value in values.items():
            parameter: Parameter = getattr(type(self), name)
            if value.ndim < parameter.event_dims:
                wanted = "1 axis" if parameter.event_dims == 1 else f"{parameter.event_dims} axes"
                found = f"has the shape {value.shape}" if value.ndim else "is a number"
                raise ValueError(f"{owner}: {name} must have {wanted} or more, but {found}")
            shapes.append(parameter.split(value.shape)[0])
        if shapes and shapes.count(shapes[0]) == len(shapes):
            return shapes[0]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            parts = ", ".join(f"{name} {shape}" for name, shape in zip(values, shapes, strict=True))
            raise ValueError(f"{owner}: the shapes of the parameters do not broadcast: {parts}") from None

    def _event_shape(self) -> tuple[int, ...]:
        """The shape of one draw, from the parameters as they were given."""
        return ()

    def _validate(self) -> None:
        """Check what concerns several parameters at once."""

    def _unfit(self) -> Any:
        """Where parameters, each of which keeps its rule, do not go together."""
        return False

    def nan_where_broken(self, values: Any) -> Any:
        """NaN in place of the values, one a distribution, where parameters that were not checked break a rule."""
        if not self._unchecked or on_device(values):
            return values
        return np.where(self._broken(), np.asarray(values).dtype.type(np.nan), values)[()]

    def _broken(self) -> Any:
        """Where in the batch that is so; on a CUDA device the parameters are not looked at."""
        broken = np.zeros(self.batch_shape, bool)
        if not self._unchecked or any(map(on_device, self._given.values())):
            return broken
        broken = broken | self._unfit()
        for name, value in self._given.items():
            parameter: Parameter = getattr(type(self), name)
            batch = value.ndim - parameter.event_dims
            for bad in parameter.constraint.broken(value):
                broken = broken | bad.any(tuple(range(batch, bad.ndim)))
        return broken

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: a distribution does not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: a distribution does not change")

    def __repr__(self) -> str:
        parts = (f"{name}={shown(value)}" for name, value in self._given.items())
        return f"{type(self).__name__}({', '.join(parts)})"

    def spread(self, count: int) -> Self:
        """The same batch with `count` more axes of length 1 at its end."""
        return self._reshaped(lambda batch, event: batch + (1,) * count + event)

    def with_axes(self, place: int, count: int) -> Self:
        """The same batch with `count` more axes of length 1 before the axis at `place`."""
        given = {}
        for name, value in self._given.items():
            parameter: Parameter = getattr(type(self), name)
            wide = np.broadcast_to(value, self.batch_shape + parameter.split(value.shape)[1])
            given[name] = wide.reshape(wide.shape[:place] + (1,) * count + wide.shape[place:])
        return self._rebuilt(given)

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        wide = self.batch_shape if shape is None else shape
        given = {}
        for name, value in self._given.items():
            parameter: Parameter = getattr(type(self), name)
            given[name] = np.broadcast_to(value, wide + parameter.split(value.shape)[1])[at]
        return self._rebuilt(given)

    @staticmethod
    def together(distributions: Sequence[Distribution]) -> Distribution | None:
        """The batch of single distributions of one family, given in one form and size; None if they are not."""
        kinds = {
            (type(x), x._unchecked, tuple((name, value.shape) for name, value in x._given.items()))
            for x in distributions
        }
        first = distributions[0] if distributions else None
        if first is None or len(kinds) != 1 or not first._given:
            return None
        made = first._rebuilt({name: np.stack([x._given[name] for x in distributions]) for name in first._given})
        if any(x._in_graph for x in distributions):
            made.__dict__["_in_graph"] = True
        return made

    def _rebuilt(self, given: dict[str, np.ndarray]) -> Self:
        """One of the same family with other numbers, which are checked if these were.

        A subclass may take other arguments than its parameters: its constructor is not called.
        """
        return self._like(Distribution, not self._unchecked, **given)

    def _like(self, base: type[Distribution], *parts: Any, **given: Any) -> Self:
        """One of this class by the constructor of `base`; what a subclass keeps beside that goes along."""
        made = object.__new__(type(self))
        cast(Any, base).__init__(made, *parts, **given)
        for name, value in self.__dict__.items():
            if name not in CACHES:
                made.__dict__.setdefault(name, value)
        return made

    def _reshaped(self, shape: Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]) -> Self:
        """The same numbers, each parameter of the shape that its batch and its event shape give."""
        given = {}
        for name, value in self._given.items():
            parameter: Parameter = getattr(type(self), name)
            given[name] = value.reshape(shape(*parameter.split(value.shape)))
        return self._rebuilt(given)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """float32 where every parameter is, else float64."""
        return np.result_type(*(value.dtype for value in self._given.values()))

    @property
    def support(self) -> Support:
        """Where the distribution has mass."""
        raise self._undefined("the property `support`")

    @property
    def mean(self) -> Any:
        """The expected value; NaN or infinite where there is none."""
        raise self._undefined("the property `mean`")

    @property
    def variance(self) -> Any:
        """The variance; NaN or infinite where there is none."""
        raise self._undefined("the property `variance`")

    @_outside_graphs
    def entropy(self) -> Any:
        """The entropy, in nats; of a continuous distribution the differential entropy."""
        formula = getattr(type(self), "entropy_formula", None)
        if formula is None:
            names = ", ".join(self.parameters)
            raise self._undefined(f"`entropy()`, or `entropy_formula`, a static method that takes {names},")
        return self.nan_where_broken(self._of_formula(formula))

    @classmethod
    def _not_of_scipy(cls, wanted: str, found: str) -> TypeError:
        """What to say of a frozen distribution that is none of the family's."""
        if not cls.scipy_name:
            return TypeError(
                f"{cls.__name__}.from_scipy: scipy.stats has no {cls.__name__}; call it of the family that the frozen "
                "distribution is of, or give that to kl_divergence as it is"
            )
        return TypeError(f"frozen: a frozen {wanted}, not {found}")

    def _undefined(self, what: str) -> NotImplementedError:
        """What to say of something that a family may define."""
        return NotImplementedError(f"{type(self).__name__}: {what} is not defined by this family")

    def named(self) -> Distribution:
        """The distribution of another family that this is, if its own has no pair; else itself."""
        return self

    def counterpart(self, other: Distribution) -> Distribution:
        """The other one, in the form of this if this is made of others."""
        return other

    def to_scipy(self) -> Any:
        """The same distribution, frozen, from ``scipy.stats``."""
        from scipy import stats

        refuse_graphs(f"{type(self).__name__}.to_scipy", self)
        shapes, loc, scale = self._scipy_arguments()
        make = getattr(stats, self.scipy_name)
        return make(*shapes, loc=loc) if scale is None else make(*shapes, loc=loc, scale=scale)

    @classmethod
    def from_scipy(cls, frozen: Any) -> Self:
        """The family's distribution that equals a frozen one of ``scipy.stats``.

        Parameters
        ----------
        frozen : scipy.stats distribution
            One of the family's counterpart, frozen such as ``scipy.stats.norm(0, 1)`` for `Normal`, or new such as
            ``scipy.stats.Normal(mu=0, sigma=1)``.
        """
        dist = getattr(frozen, "dist", None)
        if dist is None and library_of(frozen) == "scipy":
            from klnumba.distributions import scipy_objects

            counterpart = scipy_objects.of_scipy(frozen)
            if isinstance(counterpart, cls):
                return counterpart
        name = getattr(dist, "name", None)
        if name is None or name != cls.scipy_name:
            found = f"scipy.stats.{name}" if name else type(frozen).__name__
            raise cls._not_of_scipy(f"scipy.stats.{cls.scipy_name}", found)
        shapes, loc, scale = scipy_arguments(frozen)
        return cls(**cls._from_scipy_arguments(shapes, loc, 1.0 if scale is None else scale))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        """(shapes, loc, scale) of the counterpart in SciPy; None for the scale of a discrete one."""
        raise NotImplementedError(
            f"{type(self).__name__}: scipy.stats has no counterpart, and this family defines no `to_scipy()`"
        )

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        """The parameters from (shapes, loc, scale)."""
        raise NotImplementedError(f"{cls.__name__}: scipy.stats has no counterpart")

    def _of_formula(self, formula: Callable[..., float]) -> Any:
        """A scalar formula of the parameters, as an array of the batch's shape."""
        columns = [self._column(name) for name in self.parameters]
        return evaluate(formula, columns, self.batch_shape, self.dtype)

    def _full(self, values: Any, event_shape: tuple[int, ...] = ()) -> Any:
        """An array of the batch's shape and dtype; a scalar where the shape is ()."""
        return np.array(np.broadcast_to(values, self.batch_shape + event_shape), self.dtype)[()]

    @cached_property
    def _is_one(self) -> bool:
        """Whether it is one distribution of float64 numbers in the memory of the CPU."""
        alone = self.batch_shape == () and self.dtype == np.float64
        return alone and not any(map(on_device, self._given.values()))

    def __getstate__(self) -> dict[str, Any]:
        """What is made once is made anew: an array that is read back can be written to."""
        return {name: value for name, value in self.__dict__.items() if name != "_made"}

    def _numbers(self, names: Sequence[str]) -> tuple[np.ndarray, ...]:
        """The named parameters of a single distribution as the columns of a compiled loop, made once."""
        try:
            return self._made[names]
        except KeyError:
            return self._made.setdefault(names, tuple(column_of_one(self._column(name)) for name in names))

    @cached_property
    def _made(self) -> dict[Sequence[str], tuple[np.ndarray, ...]]:
        """What `_numbers` has made."""
        return {}

    def _column(self, name: str) -> np.ndarray:
        """A parameter as it was given, before it is broadcast, or as the family derives it."""
        found: Any = self._given.get(name)
        if found is None or isinstance(found, Mapped):
            return np.asarray(getattr(self, name))
        column: np.ndarray = self._without_broken(name, found) if self._unchecked and at_hand(found) else found
        return column

    def _without_broken(self, name: str, values: np.ndarray) -> np.ndarray:
        """NaN in place of the numbers that break a rule: a formula may count up to them."""
        parameter: Parameter = getattr(type(self), name)
        for bad in () if parameter.event_dims else parameter.constraint.broken(values):
            values = np.where(bad, values.dtype.type(np.nan), values)
        return values


def scipy_arguments(frozen: Any) -> tuple[tuple[Any, ...], Any, Any]:
    """(shapes, loc, scale) of a frozen distribution of SciPy; None for the scale of a discrete one."""
    names = [name.strip() for name in (frozen.dist.shapes or "").split(",") if name.strip()]
    scaled = hasattr(frozen.dist, "pdf")
    given = dict(zip([*names, "loc", *(["scale"] if scaled else [])], frozen.args, strict=False)) | frozen.kwds
    return tuple(given[name] for name in names), given.get("loc", 0.0), given.get("scale", 1.0) if scaled else None


def unmoved(loc: Any, family: str) -> None:
    """Refuse a location that the family does not have."""
    if np.any(np.asarray(loc) != 0):
        raise ValueError(f"frozen: {family} has no location, but loc is {loc}")


def unscaled(scale: Any, family: str) -> None:
    """Refuse a scale that the family does not have."""
    if np.any(np.asarray(scale) != 1):
        raise ValueError(f"frozen: {family} has no scale, but scale is {scale}")


def exactly_one(owner: str, **given: Any) -> dict[str, Any]:
    """The one argument that is not None."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        *first, last = given
        raise ValueError(f"{owner}: give exactly one of {', '.join(first)} and {last}")
    return chosen
