"""What a comparison found: one row a column, the contributions of its cells, and ways to show them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.jsonable import as_json, dumps
from klnumba.tables.cells import GROUPS, Array, Cells
from klnumba.tables.framing import framed
from klnumba.tables.profile import Profile
from klnumba.tables.tally import Tally

VERSION = 1
VALUES = (
    "kl", "kl_reverse", "js", "psi", "kl_corrected", "standard_error", "ci_low", "ci_high", "g", "dof", "p_value",
    "p_adjusted",
)  # fmt: skip
PARTS = ("kl_missing", "kl_tails", "kl_new", "kl_reshaping")
DTYPES = dict.fromkeys(("n_reference", "n_current", "cells", "folded", "dof"), "Int64")
DTYPES |= dict.fromkeys(("n_effective_reference", "n_effective_current"), "float64")
OK = "ok"


@dataclass(frozen=True)
class Settings:
    """The options of a comparison."""

    smoothing: str | float
    base: float | None
    unit: float
    missing: str
    confidence: float
    correction: str
    like: str | None = None

    @property
    def percent(self) -> str:
        """The confidence as it is told, unrounded."""
        return f"{100 * self.confidence:.12g} %"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("smoothing", "base", "missing", "confidence", "correction", "like")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Result:
    """One column that was compared."""

    cells: Cells
    reference: Tally
    current: Tally
    used: Array
    effective: tuple[float, float]
    p: Array
    q: Array
    shares: Array
    values: dict[str, float]

    @property
    def largest(self) -> int:
        """The cell that adds most."""
        return int(np.nanargmax(np.where(self.used, self.shares, -np.inf)))

    @property
    def empty(self) -> str | None:
        """Which side has no values, if one has none."""
        for side, n in zip(("reference", "current"), self.effective, strict=True):
            if not n > 0:
                return f"{side} has no values"
        return None


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    profile : Profile
        The fitted reference, to be used again.
    results : dict of str to Result
        By column, what was found.
    problems : dict of str to str
        By column, why nothing was found.
    settings : Settings
        The options.
    extra : dict of str to dict
        More columns of the table: by their name, a value for each column that was compared.
    notes : dict of str to str
        By column, why a value of `extra` is not there.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import compare
    >>> before, after = pd.DataFrame({"x": [*"aaabbc"]}), pd.DataFrame({"x": [*"aabbbd"]})
    >>> found = compare(before, after, smoothing=1)
    >>> found.contributions[["cell", "p_reference", "p_current", "contribution"]].round(3)
        cell  p_reference  p_current  contribution
    0      a          0.4        0.3         0.115
    1      b          0.3        0.4        -0.086
    2      c          0.2        0.1         0.139
    3  other          0.1        0.2        -0.069
    """

    profile: Profile
    results: dict[str, Result]
    problems: dict[str, str]
    settings: Settings
    extra: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """One dict of plain values a column, in the order of `to_frame`.

        Returns
        -------
        list of dict
        """
        rows = [self._row(name, found) for name, found in self.results.items()]
        return rows + [self._problem(name, reason) for name, reason in self.problems.items()]

    def _row(self, name: str, found: Result) -> dict[str, Any]:
        n, m = found.effective
        labels = found.cells.labels()
        row: dict[str, Any] = {
            "column": name,
            "kind": found.cells.kind,
            "n_reference": found.reference.rows,
            "n_current": found.current.rows,
            "n_effective_reference": n,
            "n_effective_current": m,
            "cells": int(found.used.sum()),
            "folded": getattr(found.cells, "folded", 0),
        }
        row |= {key: found.values[key] for key in VALUES}
        row["dof"] = int(row["dof"]) if math.isfinite(row["dof"]) else None
        row["largest_cell"] = labels[found.largest] if found.empty is None else None
        row |= {key: found.values[key] for key in PARTS}
        row |= {key: values.get(name) for key, values in self.extra.items()}
        return row | {"status": found.empty or self.notes.get(name, OK)}

    def _problem(self, name: str, reason: str) -> dict[str, Any]:
        row: dict[str, Any] = {"column": name, "kind": None}
        row |= dict.fromkeys(("n_reference", "n_current", "n_effective_reference", "n_effective_current"))
        row |= dict.fromkeys(("cells", "folded"))
        row |= dict.fromkeys(VALUES, math.nan) | dict.fromkeys(("dof", "largest_cell")) | dict.fromkeys(PARTS, math.nan)
        if name in self.profile.cells:
            row |= {"kind": self.profile.cells[name].kind, "n_reference": self.profile.tallies[name].rows}
        return row | dict.fromkeys(self.extra) | {"status": reason}

    def by_evidence(self) -> list[str]:
        """The columns that were compared, the strongest evidence of change first.

        Returns
        -------
        list of str
            By the adjusted p-value, then by the lower end of the interval and by kl; columns without values last.
        """

        def order(name: str) -> tuple[float, float, float]:
            values = self.results[name].values
            return values["p_adjusted"], -values["ci_low"], -values["kl"]

        untold = [name for name, found in self.results.items() if math.isnan(found.values["p_adjusted"])]
        return sorted((name for name in self.results if name not in untold), key=order) + untold

    def to_frame(self) -> Any:
        """One row a column.

        Returns
        -------
        pandas.DataFrame
            Columns "column", "kind", "n_reference", "n_current", their effective numbers, "cells" (that either side
            has), "folded" (categories of the reference that are too rare to have a cell, and share "other"), "kl",
            "kl_reverse" (KL(current || reference)), "js", "psi" (the symmetric sum), "kl_corrected" (without the bias
            of small samples; may be negative), "standard_error", "ci_low", "ci_high", "g", "dof", "p_value",
            "p_adjusted", "largest_cell", the parts of kl ("kl_missing", "kl_tails", "kl_new",
            "kl_reshaping") and "status". The column "kl" is ``frame["kl"]``; ``frame.kl`` is the accessor of this
            package.

        Examples
        --------
        >>> import pandas as pd
        >>> from klnumba.tables import compare
        >>> before, after = pd.DataFrame({"x": [1.5, None] * 50}), pd.DataFrame({"x": [1.5] * 100})
        >>> compare(before, after).to_frame()[["kl", "kl_missing", "kl_reshaping"]].round(3)
              kl  kl_missing  kl_reshaping
        0  1.963       1.963           0.0
        """
        return framed(self.rows(), list(self._problem("", "")), DTYPES)

    def cells(self) -> list[dict[str, Any]]:
        """One dict of plain values a cell that either side has: the rows of `contributions`.

        Returns
        -------
        list of dict
        """
        return [
            _cell(name, found, label, group, k)
            for name, found in self.results.items()
            for k, label, group in zip(range(found.cells.size), found.cells.labels(), found.cells.groups(), strict=True)
            if found.used[k]
        ]

    @property
    def contributions(self) -> Any:
        """What each cell adds: a pandas.DataFrame, one row a cell, whose "contribution" adds up to kl by column."""
        columns = ("column", "cell", "part", "n_reference", "n_current", "p_reference", "p_current", "contribution")
        return framed(self.cells(), columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON.

        Returns
        -------
        dict
        """
        return {
            "klnumba_comparison": VERSION,
            "settings": self.settings.to_dict(),
            "columns": self.rows(),
            "contributions": self.cells(),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The comparison as JSON; there, NaN is null and an infinity the text "inf".

        Parameters
        ----------
        indent : int, optional
            For readers.

        Returns
        -------
        str
        """
        return dumps(as_json(self.to_dict()), indent)

    def plot(self, column: str | int | None = None, *, ax: Any = None) -> Any:
        """Draw the intervals of all columns, or both distributions of one.

        Parameters
        ----------
        column : str, optional
            Which; all by default. A whole number is taken as the name of a column.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the column was not compared.
        """
        from klnumba.tables import plots

        return plots.overview(self, ax) if column is None else plots.cells(self, str(column), ax)

    def report(self, path: str | Path, *, title: str = "What changed") -> Path:
        """Write one self-contained HTML file, without a row of the data and without a link to anywhere.

        Parameters
        ----------
        path : path
            The file; it appears complete or not at all.
        title : str
            Its heading.

        Returns
        -------
        pathlib.Path
        """
        from klnumba.tables import report

        return report.write(self, Path(path), title)

    def _repr_html_(self) -> str:
        from klnumba.tables import report

        return report.table(self)

    def __repr__(self) -> str:
        changed = sum(found.values["p_adjusted"] < 0.05 for found in self.results.values())
        text = f"{len(self.results)} columns: {changed} changed at p_adjusted < 0.05"
        return f"<Comparison of {text}, {len(self.problems)} with problems>"


def _cell(name: str, found: Result, label: str, group: int, k: int) -> dict[str, Any]:
    return {
        "column": name,
        "cell": label,
        "part": GROUPS[group],
        "n_reference": found.reference.counts[k].item(),
        "n_current": found.current.counts[k].item(),
        "p_reference": float(found.p[k]),
        "p_current": float(found.q[k]),
        "contribution": float(found.shares[k]),
    }
