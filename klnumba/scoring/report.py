"""What a run has found: the state of every statistic, and the numbers that it comes to."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klnumba.files import replacing
from klnumba.jsonable import as_json
from klnumba.metrics import RunningStatistics


@dataclass(repr=False)
class Report:
    """The statistics of the rows' values.

    Attributes
    ----------
    rows : int
        How many rows were scored, those of NaN or infinite value among them.
    masked_rows : int
        Rows of which the mask holds no cell; no statistic counts them.
    first_invalid : str or None
        Of the first row that is NaN: the file, the row, the cell and the rule.
    unit : str
        The unit of the values.
    states : dict of str to RunningStatistics
        By name; they merge with those of other runs.
    about : dict
        The inputs and the options.

    Examples
    --------
    >>> import klnumba as kl
    >>> report = kl.score([[0.5, 0.5], [1.0, 0.0]], [0.25, 0.75], base=2)
    >>> report.rows, round(report["kl"].mean, 4)
    (2, 1.1038)
    """

    rows: int
    masked_rows: int
    first_invalid: str | None
    unit: str
    states: dict[str, RunningStatistics]
    about: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """The summary of one statistic."""
        return self.states[name].summary()

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={state.mean():.6g}" for name, state in self.states.items())
        return f"<Report: rows={self.rows}, means in {self.unit}: {means}>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            **self.about,
            "unit": self.unit,
            "rows": self.rows,
            "masked_rows": self.masked_rows,
            "first_invalid": self.first_invalid,
            "statistics": {name: state.summary().to_dict() for name, state in self.states.items()},
        }

    def to_json(self) -> str:
        """The same as JSON, where NaN is null and infinity is "inf"."""
        return json.dumps(as_json(self.to_dict()), indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON; the file is complete or as it was before."""
        with replacing(Path(path).resolve()) as file:
            file.write((self.to_json() + "\n").encode())
