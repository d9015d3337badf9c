"""The options of a comparison, checked before any table is read."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from numbers import Integral
from typing import Any

from klnumba.reduction import positive_unit, real
from klnumba.tables import likeness
from klnumba.tables import smoothing as smoothings
from klnumba.tables.chunks import names_of
from klnumba.tables.comparison import Settings
from klnumba.tables.profile import Profile
from klnumba.tables.statistics import CORRECTIONS
from klnumba.tables.weighting import name_or_rows

MISSING_RULES = ("cell", "drop")


def settings(
    smoothing: Any = "jeffreys", base: Any = None, missing: Any = "cell", confidence: Any = 0.95,
    correction: Any = "bh", like: Any = None,
) -> Settings:  # fmt: skip
    """The options that say how counts are compared; defaults are those of `klnumba.tables.compare`."""
    smoothings.check(smoothing)
    unit = positive_unit(base)
    if missing not in MISSING_RULES:
        raise ValueError(f"missing: one of {', '.join(map(repr, MISSING_RULES))}, not {missing!r}")
    if correction not in CORRECTIONS:
        raise ValueError(f"correction: one of {', '.join(map(repr, CORRECTIONS))}, not {correction!r}")
    if not 0.0 < real(confidence, "confidence") < 1.0:
        raise ValueError(f"confidence: a number between 0 and 1, not {confidence!r}")
    if like is not None:
        likeness.check(like)
    return Settings(_plain(smoothing), _plain(base), unit, missing, float(confidence), correction, like)


def _plain(value: Any) -> Any:
    """A number as Python's own, which JSON takes."""
    if value is None or isinstance(value, str):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def weights_of(weights: Any, reference: Any, current: Any) -> tuple[Any, Any]:
    """The weights of each side."""
    if weights is None:
        return None, None
    weights = name_or_rows(weights, *(side for side in (reference, current) if not isinstance(side, Profile)))
    if isinstance(weights, str):
        held = [weights in names_of(side) for side in (reference, current)]
        if not any(held):
            raise ValueError(f"weights: {weights!r} is in neither table")
        return tuple(weights if here else None for here in held)  # type: ignore[return-value]
    try:
        first, second = weights
    except (TypeError, ValueError):
        raise TypeError("weights: the name of a column, or a pair: those of reference and of current") from None
    first, second = name_or_rows(first, reference), name_or_rows(second, current)
    for one, table in ((first, reference), (second, current)):
        if one is not None and isinstance(table, Profile):
            raise ValueError("weights: a profile holds no rows that they could belong to")
    return first, second


def report_of(progress: Any) -> Callable[[int, int], None] | None:
    """The function that is told how far the counting is."""
    if progress is False or progress is None:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress: True, False or a function, not {progress!r}")
        called: Callable[[int, int], None] = progress
        return called
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ModuleNotFoundError:
        return None
    bar = tqdm(unit="column")

    def show(done: int, total: int) -> None:
        bar.total, bar.n = total, done
        bar.refresh()

    return show
