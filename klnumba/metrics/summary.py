"""What is told of the values of many rows, and how it is shown."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate as running
from typing import Any

import numpy as np

from klnumba import fixed_point
from klnumba.kernels import accumulate
from klnumba.metrics.state import State

QUANTILES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Summary:
    """A summary of row values. Numbers are in nats, or in the unit that was asked for.

    Attributes
    ----------
    rows, zero, inf, nan : int
        Rows, and those whose value is zero, infinite (of either sign) and NaN.
    weight : float
        Sum of the weights of the finite rows: without weights, their number.
    mean, standard_error, std : float
        Over all rows: NaN where a row is NaN; where one is infinite, the mean is and the others are NaN.
    finite_mean, finite_standard_error, finite_std : float
        The same over the finite rows. With weights w: ``mean = sum(w*x)/W``, W the sum of w;
        ``std**2 = sum(w*(x - mean)**2)/(W - sum(w**2)/W)``; ``standard_error = std*sqrt(sum(w**2))/W``. Without
        weights these are the usual ones.
    min, max : float
        Over all rows that are not NaN.
    quantiles : dict of float to float
        The least value that at least this share of the weight does not exceed, NaN rows left out; each within
        `quantile_error` of it, relatively.
    quantile_error : float or None
        The guarantee; None where no quantiles are kept.
    above : dict of float to float
        Share of the weight whose value exceeds a threshold, NaN rows left out.
    agreement : float or None
        Share of the weight of rows whose first largest cells agree.
    """

    rows: int
    weight: float
    mean: float
    standard_error: float
    std: float
    min: float
    max: float
    zero: int
    inf: int
    nan: int
    finite_mean: float
    finite_standard_error: float
    finite_std: float
    quantile_error: float | None
    quantiles: dict[float, float] = field(default_factory=dict)
    above: dict[float, float] = field(default_factory=dict)
    agreement: float | None = None

    def agreeing(self, share: float) -> Summary:
        """This summary with a share of rows whose largest cells agree."""
        return replace(self, agreement=share)

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and dicts; quantiles are named "0.1%", thresholds as they were given."""
        found = dict(self.__dict__)
        found["quantiles"] = {f"{100 * q:g}%": x for q, x in self.quantiles.items()}
        found["above"] = {f"{t:g}": x for t, x in self.above.items()}
        return found

    def _lines(self) -> list[tuple[str, str]]:
        """What is shown: names and numbers as text."""
        names = ["rows", *(["weight"] if self.weight != self.rows - self.inf - self.nan else [])]
        names += ["mean", "standard_error", "std"]
        if self.inf or self.nan:
            names += ["finite_mean", "finite_standard_error", "finite_std"]
        lines = [(name.replace("_", " "), _shown(getattr(self, name))) for name in [*names, "min"]]
        lines += [(f"{100 * q:g} %", _shown(x)) for q, x in self.quantiles.items()]
        lines += [("max", _shown(self.max))]
        lines += [(name, _shown(getattr(self, name))) for name in ("zero", "inf", "nan")]
        lines += [(f"above {t:g}", f"{100 * x:.4g} %") for t, x in self.above.items()]
        if self.agreement is not None:
            lines.append(("top-1 agreement", f"{100 * self.agreement:.4g} %"))
        return lines

    def __repr__(self) -> str:
        lines = self._lines()
        wide, long = (max(len(line[k]) for line in lines) for k in (0, 1))
        return "\n".join(f"{name:<{wide}}  {value:>{long}}" for name, value in lines)

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(justify="right")
        for name, value in self._lines():
            table.add_row(name, value)
        return table

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:right">{html.escape(value)}</td></tr>'
            for name, value in self._lines()
        )
        return f"<table>{rows}</table>"


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


class Read:
    """What a state of one group says."""

    def __init__(self, state: State) -> None:
        state.carry()
        self.state = state
        kinds = [int(x) for x in state.counts[0]]
        self.finite, self.zero, self.plus, self.minus, self.nan = kinds
        self.rows = self.finite + self.plus + self.minus + self.nan
        self.first, self.second = (fixed_point.as_fraction(x) for x in state.sums[0])
        if state.masses is None:
            self.weight = self.squares = Fraction(self.finite)
        else:
            self.weight, self.squares = (fixed_point.as_fraction(x) for x in state.masses[0])

    def total(self) -> float:
        """The sum of weight times value over all rows, rounded once."""
        return self._or_not_finite(fixed_point.to_float(self.first))

    def mean(self) -> float:
        """Over all rows, rounded once."""
        return self._or_not_finite(self.finite_mean())

    def finite_mean(self) -> float:
        return fixed_point.to_float(self.first / self.weight) if self.weight else math.nan

    def _or_not_finite(self, value: float) -> float:
        if self.nan or (self.plus and self.minus):
            return math.nan
        if self.plus or self.minus:
            return math.inf if self.plus else -math.inf
        return value

    def finite_std(self) -> float:
        room = self.weight - self.squares / self.weight if self.weight else Fraction(0)
        if room <= 0:
            return math.nan
        return _root(self._squares_about_mean() / room)

    def finite_standard_error(self) -> float:
        return self.finite_std() * _root(self.squares / (self.weight * self.weight)) if self.weight else math.nan

    def moments(self) -> tuple[float, float, float]:
        """Sum of weights, mean, and variance divided by that sum, of the finite rows."""
        if not self.weight:
            return 0.0, math.nan, math.nan
        mean = self.first / self.weight
        found = self.weight, mean, self._squares_about_mean() / self.weight
        return (fixed_point.to_float(found[0]), fixed_point.to_float(found[1]), fixed_point.to_float(found[2]))

    def _squares_about_mean(self) -> Fraction:
        """The sum of w*(x - mean)**2; with weights each row's w*x**2 was rounded, which may leave less than nothing."""
        return max(self.second - self.first * self.first / self.weight, Fraction(0))

    def quantiles(self, shares: tuple[float, ...]) -> dict[float, float]:
        """The values at these shares of the weight."""
        held = self._held()
        if not held:
            return dict.fromkeys(shares, math.nan)
        sums = list(running(w for w, _ in held))
        least, most = map(float, self.state.extremes[0])
        found = {}
        for share in shares:
            wanted = Fraction(str(share)) * sums[-1]
            at = next(k for k, s in enumerate(sums) if s >= wanted)
            found[share] = min(max(held[at][1], least), most) if 0.0 < share < 1.0 else (most if share else least)
        return found

    def _held(self) -> list[tuple[int, float]]:
        """(weight in units of 2**-62, value) of every place with a row in it, ascending."""
        columns, values = self.state.layout.ascending((self.state.whole[0] != 0) | (self.state.part[0] != 0))
        return [(self._tally(k), float(x)) for k, x in zip(columns, values, strict=True)]

    def distribution(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(values, weights) of every place with a row in it, ascending."""
        held = self._held()
        weights = [fixed_point.to_float(Fraction(w, accumulate.PART)) for w, _ in held]
        return np.array([x for _, x in held]), np.array(weights)

    def above(self) -> dict[float, float]:
        """Shares of the weight above each threshold."""
        total = sum(weight for weight, _ in self._held())
        return {
            float(t): self._tally(accumulate.SPECIALS + k) / total if total else math.nan
            for k, t in enumerate(self.state.thresholds)
        }

    def _tally(self, column: int) -> int:
        """The weight in a column, in units of 2**-62."""
        return (int(self.state.whole[0, column]) << accumulate.PART_BITS) + int(self.state.part[0, column])

    def summary(self, quantile_error: float | None, agreement: float | None = None) -> Summary:
        all_finite = self.finite == self.rows
        least, most = map(float, self.state.extremes[0])
        seen = self.rows > self.nan
        error, std = self.finite_standard_error(), self.finite_std()
        return Summary(
            rows=self.rows,
            weight=fixed_point.to_float(self.weight),
            mean=self.mean(),
            standard_error=error if all_finite else math.nan,
            std=std if all_finite else math.nan,
            min=least if seen else math.nan,
            max=most if seen else math.nan,
            zero=self.zero,
            inf=self.plus + self.minus,
            nan=self.nan,
            finite_mean=self.finite_mean(),
            finite_standard_error=error,
            finite_std=std,
            quantile_error=quantile_error,
            quantiles={} if quantile_error is None else self.quantiles(QUANTILES),
            above=self.above(),
            agreement=agreement,
        )


def _root(value: Fraction) -> float:
    """The square root of a number that is not negative, from more digits than it shows."""
    if not value:
        return 0.0
    shift = max(0, 160 - (value.numerator.bit_length() - value.denominator.bit_length())) // 2 + 1
    return fixed_point.to_float(Fraction(math.isqrt((value.numerator << (2 * shift)) // value.denominator), 1 << shift))


def values_of(state: State, method: str) -> np.ndarray[Any, Any]:
    """A number for each group: `method` of `Read`."""
    return np.array([getattr(Read(state.of(g)), method)() for g in range(state.groups)])
