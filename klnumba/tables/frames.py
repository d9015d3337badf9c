"""Two frames compared: the arguments checked, cells fitted, both counted, everything measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from klnumba.labels import outside
from klnumba.tables import drafting, likeness, options
from klnumba.tables.cells import Categories
from klnumba.tables.chunks import Chunks, wanted_names
from klnumba.tables.comparison import Comparison, Result, Settings
from klnumba.tables.drafting import chosen
from klnumba.tables.pairing import pairs_of
from klnumba.tables.profile import Profile, check_bins
from klnumba.tables.statistics import adjusted, measure
from klnumba.tables.tally import Tally
from klnumba.tables.weighting import check_apart


def compare(
    reference: Any, current: Any, *, columns: Iterable[Any] | None = None, weights: Any = None, bins: Any = "auto",
    smoothing: str | float = "jeffreys", base: float | None = None, missing: str = "cell", confidence: float = 0.95,
    correction: str = "bh", like: str | None = None, progress: bool | Callable[[int, int], None] = False,
) -> Comparison:  # fmt: skip
    """What changed between two tables, column by column, with the evidence.

    The divergence is KL(reference || current). Cells are fitted on the reference alone, and frozen.

    Parameters
    ----------
    reference : DataFrame, Chunks or Profile
        Of pandas, polars or pyarrow; a table in pieces (`klnumba.tables.scan`); or a fitted profile.
    current : DataFrame, Chunks or Profile
        The table to compare with it; a profile needs the same cells.
    columns : sequence of str, optional
        Which columns; by default all of `reference`, and a line for each that only `current` has. A label that is no
        text, such as a whole number or a tuple, may stand for the text that it reads as, which is the column's name.
    weights : str, pair of str or array_like, optional
        A column with the weights of the rows, in both tables or in the one that has it; or the column or the weights
        of each table (None for a side without, or for a profile, which has no rows); a Series needs the index of the
        rows. A column that holds the weights of either table is compared in neither. Rows of weight 0 are left out, as
        if the table did not have them. Where columns have several levels, a tuple that both frames have as a label is
        that column, and any other a pair.
    bins : {"auto", "quantile", "sturges", "doane", "fd", "category"}, int, sequence of float or of times, or dict
        How the cells of numbers and times are chosen; a dict has a rule by column, and "auto" for the rest.
        "auto" makes up to 20 bins of equal reference mass, of 25 rows or more, and takes whole numbers of at most 32
        different values as categories; "quantile" makes 10 bins of equal mass; with either, a value that holds as much
        of the reference as a bin would has a bin of its own; "sturges", "doane", "fd" and an integer make bins of
        equal width (the rules at most 256 of them, an integer as many as it says, from 1 to 1,000); a sequence gives
        the edges; "category" takes every different number as a category. Every rule but "auto" and "category" makes
        bins of whole numbers too. Edges are of the column's kind, and the outer ones may be infinite; for times with a
        zone they have one too, be it another.
    smoothing : {"jeffreys", "laplace", "perks", "james-stein", "none"} or float
        Pseudo-counts for the divergences; a number is added to each cell that either side has. The test, the
        bias-corrected value and the interval use the counts as they are.
    base : float, optional
        Unit of the divergences: None for nats, 2 for bits; above 1.
    missing : {"cell", "drop"}
        Whether missing values (None, NaN, NA, NaT) are a cell of their own or left out.
    confidence : float, default 0.95
        Of the intervals.
    correction : {"bh", "bonferroni", "holm", "none"}
        How p-values are adjusted for the number of columns.
    like : {"evidently", "psi10", "great_expectations", "tfdv", "scipy"}, optional
        Add a column with what that tool reports for the same two columns; needs both tables as frames, without
        weights. Where the tool's own way breaks down, or of times, which none of them cuts into bins, the value is NaN
        and the status says why.
    progress : bool or callable
        True shows a bar (with tqdm, if it is installed); a function is called with how many columns are counted, and
        of how many.

    Returns
    -------
    Comparison
        One row a column. A column that cannot be compared has a `status` that says why.

    Raises
    ------
    ValueError
        If an option is out of its range, a column in `columns` or `bins` is not there or is of a kind of which the
        rule makes no bins, weights are negative, have other labels than the rows, stand beside a profile or are in
        `columns`, or names stand twice; of two profiles, if their cells differ (the text names the column).
    TypeError
        If an argument is no data frame.

    Warns
    -----
    UserWarning
        If a category of one table and a new one of the other read the same and differ in type, such as 1 and "1".

    Notes
    -----
    Up to 1,000 categories are named, by frequency in the reference; all others share the cell "other", and ``folded``
    says how many of the reference's they are. Cells that neither side has take no part.

    Which categories have a cell, and where fitted bins end, the reference sample decides. The test, the interval and
    ``kl_corrected`` take this into account: what is outside the bins goes with the next bin, and new categories go with
    the sparse cells, unless there are more than chance would bring. Of a column with more than 1,000 categories on
    either side they look at 1,024 cells, to which a fixed function of their texts deals out all categories (see the
    documentation, "Comparing tables"). Formulas and sources stand with the functions in ``klnumba.tables.statistics``
    and ``klnumba.tables.interval``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from klnumba.tables import compare
    >>> rng = np.random.default_rng(2)
    >>> before = pd.DataFrame({"age": rng.normal(40, 9, 4000), "city": rng.choice(["A", "B"], 4000)})
    >>> after = pd.DataFrame({"age": rng.normal(43, 9, 3000), "city": rng.choice(["A", "B"], 3000)})
    >>> found = compare(before, after)
    >>> found.to_frame()[["column", "p_adjusted", "status"]].round(3)
      column  p_adjusted status
    0    age       0.000     ok
    1   city       0.907     ok
    """
    settings = options.settings(smoothing, base, missing, confidence, correction, like)
    columns = wanted_names(columns)
    first, second = options.weights_of(weights, reference, current)
    check_apart(columns, first, second)
    report = options.report_of(progress)
    profile, raw = _reference(reference, columns, first, bins, report)
    held = {one for one in (first, second) if isinstance(one, str)}
    profile = _without(profile, held)
    tallies, problems, others = _current(profile, current, columns, second, report)
    others = [name for name in others if name not in held]
    _warn_of_twins(profile, tallies)
    extra: dict[str, dict[str, float]] = {}
    notes: dict[str, str] = {}
    if like is not None:
        if weights is not None:
            raise ValueError("like: what these tools report knows no weights of rows")
        if raw is None or isinstance(raw, Chunks) or isinstance(current, (Chunks, Profile)):
            raise TypeError("like: needs both tables as data frames, whose values it looks at again")
        compared = [name for name in profile.cells if name in tallies and name not in problems]
        extra, notes = likeness.column(like, raw, current, compared)
    return _measured(profile, tallies, problems, others, settings, extra, notes)


def of_profiles(
    reference: Profile, current: Profile, columns: list[str] | None, weights: str | None, settings: Settings
) -> Comparison:
    """Two profiles compared; where their rows were weighted, without the column that held the weights."""
    profile, _ = _reference(reference, columns, None, "auto", None)
    profile = _without(profile, set() if weights is None else {weights})
    tallies, problems, others = _current(profile, current, columns, None, None)
    _warn_of_twins(profile, tallies)
    return _measured(profile, tallies, problems, others, settings, {}, {})


def _reference(reference: Any, columns: list[str] | None, weights: Any, bins: Any, report: Any) -> tuple[Profile, Any]:
    if not isinstance(reference, Profile):
        return Profile.fit(reference, columns=columns, weights=weights, bins=bins, progress=report), reference
    check_bins(reference, bins)
    every = {**reference.cells, **reference.problems}
    return _with(reference, chosen(every, columns, "reference")), None  # a copy, for the caller may update it


def _with(profile: Profile, names: Iterable[str]) -> Profile:
    """The same with these columns alone, in this order."""
    wanted = [*names]
    kept = {name: profile.cells[name] for name in wanted if name in profile.cells}
    problems = {name: profile.problems[name] for name in wanted if name in profile.problems}
    return Profile(kept, {name: profile.tallies[name] for name in kept}, problems, profile.known & set(kept))


def _without(profile: Profile, weights: set[str]) -> Profile:
    """The same without the column that holds the weights of either side, which is not compared."""
    names = [*profile.cells, *profile.problems]
    return _with(profile, [name for name in names if name not in weights]) if weights & set(names) else profile


def _current(
    profile: Profile, current: Any, columns: list[str] | None, weights: Any, report: Any
) -> tuple[dict[str, Tally], dict[str, str], list[str]]:
    """The tallies of the other side, why a column has none, and the columns that only it has."""
    if isinstance(current, Profile):
        tallies, problems, others = _from_profile(profile, current)
        return tallies, problems, others if columns is None else []
    side = profile.count(drafting.narrowed(current, columns, weights), weights, report, "current")
    return side.tallies, side.problems, side.others if columns is None else []


def _from_profile(profile: Profile, current: Profile) -> tuple[dict[str, Tally], dict[str, str], list[str]]:
    problems = dict(current.problems)
    for name, one in profile.cells.items():
        if name not in current.cells:
            problems.setdefault(name, "is not in current")
        elif not one.same_as(current.cells[name]):
            raise ValueError(f"current: column {name!r} has other cells than the reference")
    others = current.others + [
        name for name in current.cells if name not in profile.cells and name not in profile.problems
    ]
    return current.tallies, problems, others


def _warn_of_twins(profile: Profile, tallies: dict[str, Tally]) -> None:
    """Warn of new categories that read the same as one of the reference, such as 1 and "1"."""
    for name, one in profile.cells.items():
        if not isinstance(one, Categories) or name not in tallies:
            continue
        read = {str(label): label for label in one.names}
        twin = next((label for label in tallies[name].unseen or () if str(label) in read), None)
        if twin is not None:
            ours = read[str(twin)]
            text = f"categories {ours!r} ({type(ours).__name__}) and {twin!r} ({type(twin).__name__}) differ in type"
            warnings.warn(f"column {name!r}: {text}, and are not the same", UserWarning, stacklevel=outside())


def _measured(
    profile: Profile, tallies: dict[str, Tally], problems: dict[str, str], others: list[str], settings: Settings,
    extra: dict[str, Any], notes: dict[str, str],
) -> Comparison:  # fmt: skip
    names = [name for name in profile.cells if name in tallies and name not in problems]
    statuses = dict(profile.problems) | problems | dict.fromkeys(others, "is not in reference")
    found: dict[str, Result] = {}
    for places, pair in pairs_of(profile, tallies, names, settings.missing):
        measured, used = measure(pair, settings.smoothing, settings.confidence, settings.unit), pair.used
        for k, place in enumerate(places):
            name = names[place]
            found[name] = Result(
                cells=profile.cells[name], reference=profile.tallies[name], current=tallies[name], used=used[k],
                effective=(float(pair.n[k]), float(pair.m[k])), p=measured.p[k], q=measured.q[k],
                shares=measured.shares[k], values={key: one[k].item() for key, one in measured.columns.items()},
            )  # fmt: skip
    results = {name: found[name] for name in names}
    p_values = np.array([one.values["p_value"] for one in results.values()])
    for one, p_adjusted in zip(results.values(), adjusted(p_values, settings.correction).tolist(), strict=True):
        one.values["p_adjusted"] = p_adjusted
    order = [*profile.cells, *profile.problems, *others]
    lost = {name: statuses[name] for name in order if name in statuses}
    return Comparison(profile, results, lost, settings, extra, notes)
