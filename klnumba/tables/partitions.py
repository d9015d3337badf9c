"""Dask data frames: every partition is drafted and counted where it lies, and counts alone travel.

The cells and the counts are those of the whole table, so that the result is that of `klnumba.tables.compare`, bit for
bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from klnumba.optional import load, type_name
from klnumba.tables import fitting, frames, rules
from klnumba.tables.chunks import wanted_names
from klnumba.tables.columns import ColumnError
from klnumba.tables.comparison import Comparison
from klnumba.tables.drafting import Drafts, Problems, cells_of, check_names, chosen, draft
from klnumba.tables.options import report_of, settings, weights_of
from klnumba.tables.profile import Profile, check_bins
from klnumba.tables.weighting import check_apart, name_or_rows, split_weights

FEW = 8  # profiles that one task merges

Drafted = tuple[Drafts, Problems]


def compare(
    reference: Any, current: Any, *, columns: Iterable[Any] | None = None, weights: str | None = None,
    bins: Any = "auto", **options: Any,
) -> Comparison:  # fmt: skip
    """What changed between two Dask data frames.

    Parameters
    ----------
    reference, current : dask.dataframe.DataFrame or Profile
        The tables; a profile of the same cells may stand for either. They are computed, `reference` three times: how
        long its partitions are, then the cells, then the counts.
    columns, weights, bins, **options
        As of `klnumba.tables.compare`, but `weights` is the name of a column, `like` is not there, and
        `progress` shows nothing: Dask has bars of its own.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError, TypeError
        As `klnumba.tables.compare`, and before anything is computed where that needs no data; also if a table is
        neither.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from klnumba.tables import partitions
    >>> before = dd.from_pandas(pd.DataFrame({"x": [*"aabb"]}), npartitions=2)
    >>> partitions.compare(before, before).to_frame().loc[0, "kl"].item()
    0.0
    """
    if options.pop("like", None) is not None:
        raise TypeError("like: needs both tables as data frames in memory")
    progress = options.pop("progress", False)
    if progress is not True:
        report_of(progress)
    chosen_settings = settings(**options)
    wanted = wanted_names(columns)
    for table, name in ((reference, "reference"), (current, "current")):
        if not isinstance(table, Profile):
            _parts(table, name)
    weights = _name(weights, *(table for table in (reference, current) if not isinstance(table, Profile)))
    first, second = weights_of(weights, reference, current)
    check_apart(wanted, first, second)
    if isinstance(reference, Profile):
        check_bins(reference, bins)
        fitted = reference
    else:
        fitted = fit(reference, columns=wanted, weights=first, bins=bins)
    other = current if isinstance(current, Profile) else _counted(fitted, current, second, "current")
    return frames.of_profiles(fitted, other, wanted, weights, chosen_settings)


def fit(
    reference: Any, *, columns: Iterable[Any] | None = None, weights: str | None = None, bins: Any = "auto"
) -> Profile:
    """`Profile.fit` of a Dask data frame.

    Parameters
    ----------
    reference : dask.dataframe.DataFrame
        The table; it is computed three times: how long its partitions are, then the cells, then the counts.
    columns, weights, bins
        As of `Profile.fit`, but `weights` is the name of a column.

    Returns
    -------
    Profile

    Raises
    ------
    TypeError
        If `reference` is no Dask data frame, or `weights` no name.
    """
    bins = rules.check_rule(bins)
    weights = _name(weights, reference)
    dask = load("dask", "dask")
    parts = _parts(reference, "reference")
    wanted = wanted_names(columns)
    check_apart(wanted, weights)
    sizes = dask.compute(*(dask.delayed(_rows)(part, weights) for part in parts))
    starts = [0, *itertools.accumulate(sizes)][:-1]
    pieces = (
        dask.delayed(_drafted)(part, start, wanted, weights, bins) for part, start in zip(parts, starts, strict=True)
    )
    profile = Profile.of_cells(*cells_of(*_together(dask.compute(*pieces))))
    counted = _counted(profile, reference, weights, "reference")
    counted.problems = profile.problems | counted.problems
    return counted


def _name(weights: Any, *tables: Any) -> str | None:
    found = name_or_rows(weights, *tables)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"weights: of a Dask data frame, the name of a column, not {weights!r}")
    return found


def _parts(table: Any, name: str) -> list[Any]:
    if not hasattr(table, "to_delayed"):
        raise TypeError(f"{name}: a Dask data frame, not {type_name(table)}")
    return list(table.to_delayed())


def _rows(frame: Any, weights: str | None) -> int:
    """How many rows count."""
    _, kept = split_weights(frame, weights, "reference")
    return len(frame) if kept is None else kept.size


def _drafted(frame: Any, start: int, columns: list[str] | None, weights: str | None, bins: Any) -> Drafted:
    found, _ = split_weights(frame, weights, "reference")
    found = chosen(found, columns, "reference")
    check_names(bins, found)
    drafts: Drafts = dict.fromkeys(found)
    problems: Problems = {}
    draft(drafts, problems, found, bins, start)
    return drafts, problems


def _together(pieces: Iterable[Drafted]) -> Drafted:
    """The drafts of all partitions, joined in their order."""
    drafts: Drafts = {}
    problems: Problems = {}
    for found, lost in pieces:
        problems = lost | problems
        for name, one in found.items():
            before = drafts.get(name)
            try:
                drafts[name] = one if before is None or one is None else fitting.joined(before, one)
            except ColumnError as error:
                problems.setdefault(name, str(error))
    return drafts, problems


def _counted(profile: Profile, table: Any, weights: str | None, name: str) -> Profile:
    """A table in the cells of a profile: partitions are counted, and the counts merged in a tree."""
    dask = load("dask", "dask")
    parts = _parts(table, name)
    empty = Profile(profile.cells, {}, profile.problems)  # columns with a problem are not new ones
    level = [dask.delayed(empty.count)(part, weights, None, name) for part in parts]
    while len(level) > 1:
        level = [dask.delayed(_merged)(level[k : k + FEW]) for k in range(0, len(level), FEW)]
    found: Profile = level[0].compute()
    return found


def _merged(profiles: list[Profile]) -> Profile:
    total = profiles[0]
    for one in profiles[1:]:
        total = total.merge(one)
    total.others = profiles[0].others
    return total
