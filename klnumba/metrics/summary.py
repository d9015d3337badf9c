"""What is told of the values of many rows, and how it is shown."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from typing import Any

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
        found["above"] = {_short(t): x for t, x in self.above.items()}
        return found

    def lines(self) -> list[tuple[str, str]]:
        """What is shown: names and numbers as text."""
        names = ["rows", *(["weight"] if self.weight != self.rows - self.inf - self.nan else [])]
        names += ["mean", "standard_error", "std"]
        if self.inf or self.nan:
            names += ["finite_mean", "finite_standard_error", "finite_std"]
        lines = [(name.replace("_", " "), _shown(getattr(self, name))) for name in [*names, "min"]]
        lines += [(f"{100 * q:g} %", _shown(x)) for q, x in self.quantiles.items()]
        lines += [("max", _shown(self.max))]
        lines += [(name, _shown(getattr(self, name))) for name in ("zero", "inf", "nan")]
        lines += [(f"above {_short(t)}", f"{100 * x:.4g} %") for t, x in self.above.items()]
        if self.agreement is not None:
            lines.append(("top-1 agreement", f"{100 * self.agreement:.4g} %"))
        return lines

    def __repr__(self) -> str:
        lines = self.lines()
        wide, long = (max(len(line[k]) for line in lines) for k in (0, 1))
        return "\n".join(f"{name:<{wide}}  {value:>{long}}" for name, value in lines)

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(justify="right")
        for name, value in self.lines():
            table.add_row(name, value)
        return table

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:right">{html.escape(value)}</td></tr>'
            for name, value in self.lines()
        )
        return f"<table>{rows}</table>"


def _short(threshold: float) -> str:
    """A name that no other threshold has."""
    text = f"{threshold:g}"
    return text if float(text) == threshold else repr(threshold)


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
