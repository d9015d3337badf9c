"""What is asked for, apart from the sources."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, cast

import numpy as np

import klnumba
from klnumba.divergence import row_statistics
from klnumba.metrics import RunningStatistics
from klnumba.scoring.errors import InputError

THRESHOLDS = (0.1, 1.0)


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


@dataclass(frozen=True)
class Options:
    """The arguments of `score` that decide the result."""

    kind: str = "prob"
    axis: Any = -1
    normalize: bool = True
    base: float | None = None
    temperature: float = 1.0
    stats: tuple[str, ...] = ("kl",)
    valid_width: int | None = None
    invalid: str = "nan"
    quantile_error: float = 0.01
    thresholds: tuple[float, ...] = THRESHOLDS

    def __post_init__(self) -> None:
        """Make Python's numbers of NumPy's, which a journal and a report cannot hold."""
        for item in fields(self):
            value = getattr(self, item.name)
            plain = tuple(map(_plain, value)) if isinstance(value, tuple) else _plain(value)
            object.__setattr__(self, item.name, plain)

    def check(self, threads: int | None) -> dict[str, RunningStatistics]:
        """Refuse what no row could be scored with, before any is read; the statistics of no row yet."""
        if not self.stats or len(set(self.stats)) < len(self.stats):
            raise InputError(f"stats: one name or more, each once, not {', '.join(self.stats) or 'none'}")
        none, kind, invalid = np.empty((0, 1)), cast(Any, self.kind), cast(Any, self.invalid)
        try:
            row_statistics(
                none, none, stats=self.stats, kind=kind, normalize=self.normalize, base=self.base,
                temperature=self.temperature, threads=threads, invalid=invalid,
            )  # fmt: skip
            return {
                name: RunningStatistics(quantile_error=self.quantile_error, thresholds=self.thresholds)
                for name in self.stats
            }
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error

    def identity(self) -> dict[str, Any]:
        """All of them, and the version, whose formulas give the bits."""
        return {"klnumba": klnumba.__version__} | asdict(self)

    def told(self) -> dict[str, Any]:
        """What the report says of them."""
        found = asdict(self)
        return {name: found[name] for name in ("kind", "axis", "normalize", "temperature", "valid_width")}

    @property
    def unit(self) -> str:
        """The unit of the values."""
        if self.base is None:
            return "nats"
        return {2.0: "bits", 10.0: "hartleys"}.get(self.base, f"units of log {self.base:g}")
