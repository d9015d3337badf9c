"""A fitted reference: frozen cells and exact counts of every column, without a row of the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klnumba.jsonable import dumps
from klnumba.optional import type_name
from klnumba.tables import counting, drafting, rules, stored
from klnumba.tables.cells import Array, Cells
from klnumba.tables.chunks import wanted_names
from klnumba.tables.columns import Column, Unusable
from klnumba.tables.counting import Progress
from klnumba.tables.tally import Tally, empty
from klnumba.tables.weighting import check_apart, name_or_rows

if TYPE_CHECKING:
    from klnumba.tables.comparison import Comparison


@dataclass
class Profile:
    """The frozen cells of the columns of a table and how many rows each cell has.

    A profile holds counts, edges and the names of categories, and no row. Counts are exact integers, and sums of
    weights are kept without rounding: however the rows are split over batches, processes and merges, the profile is
    the same, bit for bit.

    Attributes
    ----------
    cells : dict of str to Bins or Categories
        The cells of each column.
    tallies : dict of str to Tally
        What they hold.
    problems : dict of str to str
        Why a column has no cells or can no longer be counted.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import Profile
    >>> profile = Profile.fit(pd.DataFrame({"size": [1.5, 2.5, 2.5, 4.0]}), bins=2)
    >>> profile.cells["size"].labels()[1:3]
    ['[1.5, 2.75)', '[2.75, 4]']
    >>> Profile.from_json(profile.to_json()) == profile
    True
    """

    cells: dict[str, Cells]
    tallies: dict[str, Tally]
    problems: dict[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()  # columns whose distribution is given, not sampled
    others: list[str] = field(default_factory=list, repr=False)  # of a batch: the columns that have no cells

    @classmethod
    def fit(
        cls, reference: Any, *, columns: Iterable[Any] | None = None, weights: Any = None, bins: Any = "auto",
        progress: Progress | None = None,
    ) -> Profile:  # fmt: skip
        """Fit the cells on a reference, and count it.

        Parameters
        ----------
        reference : DataFrame or Chunks
            Of pandas, polars or pyarrow, or a table in pieces (`klnumba.tables.scan`), which is read twice.
        columns : sequence of str, optional
            Which columns; all by default.
        weights : str or array_like, optional
            The column that holds the weights of the rows, or the weights. Cells are fitted without them, but rows of
            weight 0 are left out.
        bins : str, int, sequence or dict
            The rule, as in `klnumba.tables.compare`.
        progress : callable, optional
            Called with how many columns are done, and of how many.

        Returns
        -------
        Profile

        Raises
        ------
        ValueError
            If a column is not there, is that of the weights or is of a kind of which its rule makes no bins, a name
            stands there twice, a rule or a weight is out of its range, or a table in pieces has none.
        TypeError
            If `reference` is no data frame.
        """
        bins = rules.check_rule(bins)
        columns, weights = wanted_names(columns), name_or_rows(weights, reference)
        check_apart(columns, weights)
        reference = drafting.narrowed(reference, columns, weights)
        fitted = cls.of_cells(*drafting.fitted(reference, columns, weights, bins))
        profile = fitted.count(reference, weights, progress, "reference")
        profile.problems, profile.others = fitted.problems | profile.problems, []
        return profile

    @classmethod
    def of_cells(cls, cells: dict[str, Cells], problems: dict[str, str]) -> Profile:
        """Cells in which nothing has been counted yet, with or without weights."""
        return cls(cells, {}, problems)

    def _empty(self, weighted: bool) -> Profile:
        tallies = {name: empty(one, weighted) for name, one in self.cells.items()}
        return Profile(dict(self.cells), tallies, dict(self.problems))

    def empty(self) -> Profile:
        """The same cells with no rows in them: what to count a part of the data with.

        Returns
        -------
        Profile
        """
        weighted = any(tally.squares is not None for tally in self.tallies.values())
        return self._empty(weighted)

    def update(self, batch: Any, *, weights: Any = None, progress: Progress | None = None) -> Profile:
        """Count more rows into the same cells.

        Parameters
        ----------
        batch : DataFrame or Chunks
            It needs every column of the profile; others are left out.
        weights : str or array_like, optional
            Weights of the rows, where the profile has them.
        progress : callable, optional
            Called with how many columns are done, and of how many.

        Returns
        -------
        Profile
            This one.

        Raises
        ------
        ValueError
            If a column is missing or of another kind, one side has weights and the other none, or the distribution
            of a column is known, so that it has no counts. The profile is then as it was before.
        TypeError
            If `batch` is no data frame.
        """
        weights = name_or_rows(weights, batch)
        if drafting.apart(batch):
            batch = drafting.narrowed(batch, [*self.cells], weights)
        more = self.count(batch, weights, progress, "batch")
        held = next(iter(self.tallies.values()), None)
        if held is not None and (held.squares is None) != (weights is None):
            raise ValueError(f"weights: the profile has {'none' if held.squares is None else 'them'}, the batch not so")
        for name in self.cells:
            if name in more.problems:
                raise ValueError(f"batch: column {name!r} {more.problems[name]}")
        self.tallies = {name: _sum(tally, more.tallies[name], "batch", name) for name, tally in self.tallies.items()}
        return self

    def count(self, batch: Any, weights: Any, progress: Progress | None, title: str) -> Profile:
        """A batch in these cells; a column that is not there, or cannot be counted, is a problem."""
        parts = drafting.strips(batch, None, weights)
        told = drafting.told(progress, parts, self.cells)
        sides = [self._counted(part, weights, one, title) for (part, _), one in zip(parts, told, strict=True)]
        tallies = {name: tally for side in sides for name, tally in side.tallies.items()}
        problems = {name: reason for side in sides for name, reason in side.problems.items()}
        held = {name: tallies[name] for name in self.cells if name in tallies}
        lost = {name: problems.get(name, f"is not in {title}") for name in self.cells if name not in held}
        others = [name for side in sides for name in side.others]
        return Profile({name: self.cells[name] for name in held}, held, lost, others=others)

    def _counted(self, batch: Any, weights: Any, progress: Progress | None, title: str) -> Profile:
        """The columns of a batch that have cells."""
        side: Profile | None = None
        for found, numbers in drafting.pieces(batch, weights, title):
            if side is None:
                cells = {name: one for name, one in self.cells.items() if name in found}
                side = Profile.of_cells(cells, {})._empty(numbers is not None)
            later = (name for name in self.cells if name in found and name not in side.cells)
            side.problems = dict.fromkeys(later, drafting.NOT_EVERYWHERE) | side.problems
            new = (name for name in found if name not in self.cells and name not in self.problems)
            side.others = [*dict.fromkeys([*side.others, *new])]
            side._add(side._tallies(found, numbers, progress))
        if side is None:
            raise ValueError(f"{title}: no piece of a table")
        return side

    def _tallies(
        self, found: dict[str, Column], weights: Array | None, progress: Progress | None
    ) -> dict[str, Tally | str]:
        """The tally of each column, or why there is none."""
        names = list(self.cells)
        lost = Unusable("", 0, drafting.NOT_EVERYWHERE)
        columns, cells = [found.get(name, lost) for name in names], [self.cells[name] for name in names]
        return dict(zip(names, counting.count(columns, cells, weights, progress), strict=True))

    def _add(self, counted: dict[str, Tally | str]) -> None:
        """Add what could be counted; columns that could not are given up."""
        for name, tally in counted.items():
            if isinstance(tally, str):
                self.problems[name] = tally
                del self.cells[name], self.tallies[name]
            else:
                self.tallies[name] = self.tallies[name] + tally

    def merge(self, other: Profile) -> Profile:
        """The two together, as a new profile.

        Parameters
        ----------
        other : Profile
            With the same cells.

        Returns
        -------
        Profile

        Raises
        ------
        ValueError
            If the columns or the cells of a column differ, or its distribution is known; the text names the column.
        TypeError
            If `other` is no profile.

        Examples
        --------
        >>> import pandas as pd
        >>> from klnumba.tables import Profile
        >>> frame = pd.DataFrame({"x": [*"aabb"]})
        >>> fitted = Profile.fit(frame)
        >>> parts = [fitted.empty().update(frame.head(3)), fitted.empty().update(frame.tail(1))]
        >>> parts[0].merge(parts[1]) == fitted
        True
        """
        if not isinstance(other, Profile):
            raise TypeError(f"other: a Profile, not {type_name(other)}")
        problems = {**other.problems, **self.problems}
        mine, theirs = ({name for name in one.cells if name not in problems} for one in (self, other))
        if mine != theirs:
            raise ValueError(f"profiles: column {min(mine ^ theirs)!r} is in one and not in the other")
        merged = Profile({}, {}, problems, self.known | other.known)
        for name, one in self.cells.items():
            if name in problems:
                continue
            if not one.same_as(other.cells[name]):
                raise ValueError(f"profiles: column {name!r} has other cells in one than in the other")
            merged.cells[name] = one
            merged.tallies[name] = _sum(self.tallies[name], other.tallies[name], "profiles", name)
        return merged

    def __add__(self, other: Any) -> Profile:
        return self.merge(other) if isinstance(other, Profile) else NotImplemented

    def __radd__(self, other: Any) -> Profile:
        """`sum` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def compare(self, current: Any, **options: Any) -> Comparison:
        """Compare this reference with a frame, or with a profile of the same cells.

        Parameters
        ----------
        current : DataFrame or Profile
            The other side.
        **options
            Those of `klnumba.tables.compare`, but for `bins`.

        Returns
        -------
        Comparison
        """
        from klnumba.tables.frames import compare

        return compare(self, current, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON.

        Returns
        -------
        dict
        """
        return stored.written(self.cells, self.tallies, self.problems, self.known)

    def to_json(self) -> str:
        """The profile as text, in a versioned format, with every count exact.

        Returns
        -------
        str
        """
        return dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        Profile

        Raises
        ------
        ValueError
            If the text is no profile, or of a version that this one does not know.
        TypeError
            If it is no text.
        """
        return cls(*stored.read(text))


def _sum(first: Tally, second: Tally, title: str, name: str) -> Tally:
    """Two tallies of one column together."""
    try:
        return first + second
    except ValueError as error:
        raise ValueError(f"{title}: column {name!r}: {error}") from None


def check_bins(reference: Any, bins: Any) -> None:
    """Refuse bins beside a profile."""
    if isinstance(reference, Profile) and not (isinstance(bins, str) and bins == "auto"):
        raise ValueError("bins: a profile has its cells already")
