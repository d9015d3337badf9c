"""`score`: rows of files, arrays or iterators against each other, however large, in bounded memory."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from klnumba.files import same
from klnumba.labelled import check_places
from klnumba.reduction import short
from klnumba.scoring import measure, outputs
from klnumba.scoring import memory as limits
from klnumba.scoring.blocks import EVERY, Run, Watch, Work
from klnumba.scoring.errors import InputError
from klnumba.scoring.journal import Journal, State
from klnumba.scoring.opening import open_source
from klnumba.scoring.options import THRESHOLDS, Options
from klnumba.scoring.pairing import Pairing
from klnumba.scoring.progress import checked, shown
from klnumba.scoring.reference import matched
from klnumba.scoring.report import Report
from klnumba.scoring.source import Source
from klnumba.tensors import untraced

Name = str | os.PathLike[str]


@untraced
def score(
    p: Any, q: Any, *, kind: Literal["prob", "log_prob", "logit"] = "prob", axis: int | tuple[int, ...] | None = -1,
    normalize: bool = True, base: float | None = None, temperature: float = 1.0, stats: Sequence[str] = ("kl",),
    mask: Any = None, valid_width: int | None = None, invalid: Literal["nan", "raise"] = "nan",
    quantile_error: float = 0.01, thresholds: Sequence[float] = THRESHOLDS, output: Name | None = None,
    report: Name | None = None, checkpoint: Name | None = None, resume: bool = False, checkpoint_every: float = EVERY,
    memory: str | int = "1GiB", threads: int | None = None, progress: bool | Watch | None = False,
    header: bool | None = None, stop: Callable[[], bool] | None = None,
) -> Report:  # fmt: skip
    """Score every row of `q` against the same row of `p`, block by block, and tell how the values are distributed.

    Neither source has to fit into memory: rows are read a block at a time, and of their values the exact sums, counts
    and quantiles are kept (`klnumba.metrics.RunningStatistics`). Where blocks begin and end does not change a bit.

    Parameters
    ----------
    p, q : path, list of paths, array_like, or iterator of arrays
        The data or the reference first. A path is a .npy, .npz, .safetensors, .csv, .parquet or .zarr file, with
        ``:name`` behind it where it holds several arrays, a folder of shards, or a pattern with ``*``. One row of `q`
        serves for all rows of `p`, and the other way round. As `p`, a file that `cache_reference` wrote. Tables of
        pandas go by the places of their rows and columns, and have to have the same labels in the same order.
    kind : {"prob", "log_prob", "logit"}, default "prob"
        What a cell holds: a probability (or a count), its logarithm, or a logit.
    axis : int, tuple of int or None, default -1
        The axis or axes along which a row lies. Where it is the first, a file is read as often as it takes to bring
        rows together within `memory`; iterators and .csv files then have to fit.
    normalize : bool, default True
        Divide rows by their sums.
    base : float, optional
        Unit of the values: None for nats, 2 for bits.
    temperature : float, default 1.0
        Divides logits first.
    stats : sequence of str, default ("kl",)
        Any of the statistics of `klnumba.row_statistics`.
    mask : like `p`, optional
        Cells that belong to the support, as truth values or 0 and 1; broadcasts against the rows. A row of which it
        holds no cell is counted apart.
    valid_width : int, optional
        Only so many first cells of a row are read, of `p` and of `q`: padded vocabularies.
    invalid : {"nan", "raise"}, default "nan"
        Count a row that is no distribution as NaN, or raise.
    quantile_error : float, default 0.01
        Relative error of the quantiles at most.
    thresholds : sequence of float, default (0.1, 1.0)
        The share of rows above each of these is told.
    output : path, optional
        A .npy, .csv or .parquet file for the values, one a row; .npy has the shape that `row_statistics` gives.
    report : path, optional
        A .json file for the report.
    checkpoint : path, optional
        The folder that keeps an unfinished run; by default `output` (or `report`) with ".unfinished" behind it. It is
        removed at the end.
    resume : bool, default False
        Go on with the run that was interrupted, if there is one. The result has the bits of an unbroken run.
    checkpoint_every : float, default 30.0
        Seconds from one checkpoint to the next.
    memory : str or int, default "1GiB"
        What the process may hold at most beyond what it holds at the call; bytes, or text such as "512MiB", "2GB".
    threads : int, optional
        How many threads may work.
    progress : bool or callable, default False
        Show progress on standard error, or call ``progress(rows, total or None, bytes)`` after each block.
    header : bool, optional
        Whether .csv files begin with names; by default the first line tells.
    stop : callable, optional
        Is asked after each block; once it says True, the run ends with `Interrupted`, and goes on with ``resume``.

    Returns
    -------
    Report
        ``report["kl"]`` is the summary of the rows' KL; ``report.states`` holds what merges with other runs.

    Raises
    ------
    InputError
        A ValueError. If a file is missing, damaged or not what its suffix says, if rows do not go together, an option
        is out of its range, or an unfinished run does not fit: the text names the file, the row and the shape.
    Interrupted
        If `stop` said so.

    See Also
    --------
    row_statistics : the values themselves, of arrays.

    Notes
    -----
    Formulas are those of `row_statistics`. Rows that are NaN or infinite are counted, and none is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> import klnumba as kl
    >>> rng = np.random.default_rng(0)
    >>> p, q = (rng.dirichlet(np.ones(50), size=1000) for _ in range(2))
    >>> report = kl.score(p, q, stats=("kl", "js"))
    >>> report.rows, f"{report['kl'].mean:.4f}"
    (1000, '0.9897')
    >>> batches = (p[i : i + 100] for i in range(0, 1000, 100))
    >>> kl.score(batches, q)["kl"].mean == report["kl"].mean
    True
    """
    options = Options(
        kind, axis, normalize, base, temperature, _names(stats), valid_width, invalid, quantile_error,
        _floats(thresholds),
    )  # fmt: skip
    state = State(options.check(threads))
    limit = limits.parse(memory)
    every = _seconds(checkpoint_every)
    progress, stop = checked(progress), _asked(stop)
    _check_together(p, q, mask)
    sources = {"p": open_source(p, "p", header=header), "q": open_source(q, "q", header=header)}
    if mask is not None:
        sources["mask"] = open_source(mask, "mask", header=header)
    places = Places.of(output, report, checkpoint, [path for source in sources.values() for path in source.files()])
    match = matched(sources["p"], sources["q"], options, mask is not None, threads)
    for source in (match.p, match.q, sources.get("mask")):
        if source is not None:
            source.within(limit)
    pairing = Pairing(match.p, match.q, sources.get("mask"), match.options.axis, match.width)
    about = {name: source.name for name, source in sources.items()} | options.told() | match.about
    try:
        with shown(progress) as watch:
            work = Work(match.options, limit, threads, watch, stop, every)
            state = _run(pairing, work, places.journal(options, sources), state, resume)
        found = Report(state.rows, state.masked, state.problem, options.unit, state.statistics, about)
        places.keep(found, state, pairing, match.options)
    except OSError as error:
        if not places.unfinished:
            raise
        kept = f"{places.folder} holds what was done before: go on with --resume (resume=True)"
        raise OSError(error.errno, f"{error.strerror or error}: {kept}") from error
    finally:
        pairing.close()
        places.release()
    return found


def _check_together(*items: Any) -> None:
    """Refuse p, q and mask of which each is right, and which would not lie side by side."""
    once = [id(one) for one in items if hasattr(one, "__next__")]
    if len(set(once)) < len(once):
        raise InputError("p and q: one iterator in two places, of which each would get a part")
    try:
        check_places(**dict(zip(("p", "q", "mask"), items, strict=True)))
    except ValueError as error:
        raise InputError(str(error)) from error


def _seconds(every: Any) -> float:
    try:
        seconds = math.nan if isinstance(every, bool | np.bool_ | str | bytes) else float(every)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not seconds >= 0.0:
        raise InputError(f"checkpoint_every: seconds, 0 or more, not {short(every)}")
    return seconds


def _asked(stop: Any) -> Callable[[], bool] | None:
    if stop is not None and not callable(stop):
        raise InputError(f"stop: a function without arguments, not {short(stop)}")
    return stop  # type: ignore[no-any-return]


def _names(stats: Any) -> tuple[Any, ...]:
    try:
        return (stats,) if isinstance(stats, str) else tuple(stats)
    except TypeError as error:
        raise InputError(f"stats: names of statistics, not {stats!r}") from error


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    try:
        return tuple(map(float, values))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"thresholds: numbers, not {short(values)}") from error


def _run(pairing: Pairing, work: Work, journal: Journal | None, state: State, resume: bool) -> State:
    if journal is not None:
        state = journal.begin(state, resume)
    elif resume:
        raise InputError("resume: without an output, a report or a checkpoint there is nothing to go on with")
    Run(pairing, work, state, journal).all()
    return state


@dataclass
class Places:
    """Where results go, and what is kept of an unfinished run."""

    output: Path | None
    report: Path | None
    folder: Path | None
    _journal: Journal | None = None

    @classmethod
    def of(cls, output: Name | None, report: Name | None, checkpoint: Name | None, inputs: list[Path]) -> Places:
        """Check that all can be written, and that no input would be replaced."""
        values, numbers = (None if name is None else Path(name) for name in (output, report))
        if values is not None:
            outputs.check_output(values, inputs)
        if numbers is not None:
            outputs.check_place(numbers, inputs)
        if values is not None and numbers is not None and same(values, numbers):
            raise InputError(f"{values}: cannot be both the output and the report")
        place = values or numbers
        folder = Path(checkpoint) if checkpoint else place and place.with_name(place.name + ".unfinished")
        for other in [*inputs, values, numbers]:
            if folder and other and folder.resolve() in other.resolve().parents:
                raise InputError(f"{folder}: would hold {other}, but is removed at the end: name a folder of its own")
        if folder and any(place and same(folder, place) for place in (values, numbers)):
            raise InputError(f"{folder}: cannot be both the checkpoint and what is written: name a folder of its own")
        if numbers is not None:
            outputs.check_suffix(numbers, "report", ".json")
        return cls(values, numbers, folder)

    @property
    def suffix(self) -> str | None:
        return None if self.output is None else self.output.suffix.lower()

    def journal(self, options: Options, sources: dict[str, Source]) -> Journal | None:
        """The journal of the run, if it is to have one."""
        if self.folder is not None:
            asked = {"options": options.identity(), "output": {"suffix": self.suffix}}
            asked |= {name: source.identity() for name, source in sources.items()}
            self._journal = Journal(self.folder, self.suffix, asked)
        return self._journal

    @property
    def unfinished(self) -> bool:
        """Whether there is something to go on with."""
        return self._journal is not None and self._journal.file.exists()

    def clean(self) -> None:
        """Remove what a run that was killed had begun to write beside the output and the report."""
        for place in (self.output, self.report):
            if place is not None:
                for path in place.resolve().parent.glob(f".{glob.escape(place.name)}.*.part"):
                    path.unlink(missing_ok=True)

    def keep(self, report: Report, state: State, pairing: Pairing, options: Options) -> None:
        """Write the output and the report; then nothing is left of the unfinished run."""
        self.clean()
        if self.output is not None and self._journal is not None:
            shape = tuple(state.steps if n is None else n for n in pairing.shape)
            parts = self._journal.parts(state.parts)
            if parts:
                outputs.join(self.output, parts, shape)
            else:
                kinds = measure.dtypes(options, *(side.source.dtype for side in pairing.sides[:2]))
                outputs.write_columns(self.output, {name: np.empty(shape, kinds[name]) for name in state.statistics})
        if self.report is not None:
            report.save(self.report)
        if self._journal is not None:
            self._journal.remove()

    def release(self) -> None:
        if self._journal is not None:
            self._journal.release()
