"""The commands `score` and `cache`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from klnumba.cli.errors import InputError, one_line, tell
from klnumba.cli.interrupts import leaving, stopping
from klnumba.cli.printing import printing
from klnumba.cli.show import print_json, print_report
from klnumba.files import lacking
from klnumba.reduction import SOURCES
from klnumba.scoring import cache_reference, memory, score
from klnumba.scoring.blocks import EVERY
from klnumba.scoring.options import THRESHOLDS
from klnumba.scoring.reference import Reference, open_tensors


class Kind(StrEnum):
    """What a cell holds."""

    prob = "prob"
    log_prob = "log_prob"
    logit = "logit"


class Invalid(StrEnum):
    """What becomes of a row that is no distribution."""

    nan = "nan"
    error = "raise"


class Precision(StrEnum):
    """What a reference is stored in."""

    float32 = "float32"
    float16 = "float16"


KIND = typer.Option(help="What the cells hold.")
TEMPERATURE = typer.Option(help="Divide logits by this first.")
WIDTH = typer.Option("--valid-width", help="Read only so many first cells of a row: padded vocabularies.", min=1)
MEMORY = typer.Option(help="What the process may hold at most, such as 512MiB or 2GB.", metavar="LIMIT")
THREADS = typer.Option(help="How many threads may work.", show_default="all", min=1)
PROGRESS = typer.Option(help="Show progress on standard error.", show_default="in a terminal")
HEADER = typer.Option(help="Whether .csv files begin with names.", show_default="looks at the first line")
WRITTEN = typer.Option("--output", "-o", help="Write the values, a line a row, to this .npy, .csv or .parquet file.")
REPORT = typer.Option(help="Write the summary to this JSON file.", metavar="FILE.json")
CHECKPOINT = typer.Option(
    help="The folder that keeps an unfinished run.", show_default="the output or the report, and .unfinished"
)


def score_files(
    p: Annotated[str, typer.Argument(metavar="P", help="Rows of the data or the reference.")],
    q: Annotated[
        str | None, typer.Argument(metavar="Q", help="Rows of the model; its shape broadcasts against P's.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="A file of `klnumba cache` in the place of P; the one argument is then Q.")
    ] = None,
    kind: Annotated[Kind, KIND] = Kind.prob,
    axis: Annotated[int, typer.Option(help="The axis along which a row lies.")] = -1,
    normalize: Annotated[bool, typer.Option(help="Divide each row by its sum first.")] = True,
    base: Annotated[float | None, typer.Option(help="Base of the logarithm.", show_default="e: nats")] = None,
    temperature: Annotated[float, TEMPERATURE] = 1.0,
    stats: Annotated[str, typer.Option(help=f"Statistics of a row, with commas between: {', '.join(SOURCES)}.")] = "kl",
    mask: Annotated[
        str | None, typer.Option(help="Cells that count, as truth values or 0 and 1.", metavar="FILE")
    ] = None,
    valid_width: Annotated[int | None, WIDTH] = None,
    invalid: Annotated[
        Invalid, typer.Option(help="Count a row that is no distribution as NaN, or end there.")
    ] = Invalid.nan,
    quantile_error: Annotated[float, typer.Option(help="Relative error of the quantiles at most.")] = 0.01,
    thresholds: Annotated[
        str, typer.Option(help="Tell the share of rows above each of these, with commas between.")
    ] = ",".join(map(str, THRESHOLDS)),
    header: Annotated[bool | None, HEADER] = None,
    output: Annotated[Path | None, WRITTEN] = None,
    report: Annotated[Path | None, REPORT] = None,
    checkpoint: Annotated[Path | None, CHECKPOINT] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that was interrupted, if any.")] = False,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds from one checkpoint to the next.")] = EVERY,
    limit: Annotated[str, typer.Option("--memory", help=MEMORY.help, metavar="LIMIT")] = "1GiB",
    threads: Annotated[int | None, THREADS] = None,
    progress: Annotated[bool | None, PROGRESS] = None,
    to_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """KL(P||Q) of each row of two files, however large, and a summary of the values.

    A file is .npy, .npz or .safetensors (FILE.npz:NAME), .csv, .parquet or .zarr, a folder of such, or a pattern.
    """
    with one_line(), stopping() as stop:
        first, second = _sides(p, q, reference)
        found = score(
            first, second, kind=kind.value, axis=axis, normalize=normalize, base=base, temperature=temperature,
            stats=_names(stats), mask=mask, valid_width=valid_width, invalid=invalid.value,
            quantile_error=quantile_error, thresholds=_numbers(thresholds), output=output, report=report,
            checkpoint=checkpoint, resume=resume, checkpoint_every=checkpoint_every, memory=_left(limit),
            threads=threads, progress=progress, header=header, stop=stop,
        )  # fmt: skip
    if found.first_invalid is not None:
        tell(found.first_invalid)
    with printing():
        if to_json:
            print_json(found.to_dict())
        else:
            print_report(found)


def cache_files(
    logits: Annotated[str, typer.Argument(metavar="LOGITS", help="Rows of the reference.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write.", metavar="REF.safetensors", show_default=False)
    ],
    kind: Annotated[Kind, KIND] = Kind.logit,
    temperature: Annotated[float, TEMPERATURE] = 1.0,
    top_k: Annotated[
        int | None, typer.Option(help="Keep so many largest cells and the mass of all others.", min=1)
    ] = None,
    dtype: Annotated[Precision, typer.Option(help="Of the log-probabilities.")] = Precision.float32,
    valid_width: Annotated[int | None, WIDTH] = None,
    header: Annotated[bool | None, HEADER] = None,
    threads: Annotated[int | None, THREADS] = None,
    limit: Annotated[str, typer.Option("--memory", help=MEMORY.help, metavar="LIMIT")] = "1GiB",
    progress: Annotated[bool | None, PROGRESS] = None,
) -> None:
    """Store the log-probabilities of a reference once, for `klnumba score --reference`."""
    with one_line(), leaving():
        cache_reference(
            logits, output, kind=kind.value, temperature=temperature, top_k=top_k, dtype=dtype.value,
            valid_width=valid_width, memory=_left(limit), threads=threads, progress=progress,
            header=header,
        )  # fmt: skip


def _sides(p: str, q: str | None, reference: str | None) -> tuple[object, str]:
    if reference is None:
        if q is None:
            raise InputError("Q: score takes two files, or --reference REF and one")
        return p, q
    if q is not None:
        raise InputError("P: --reference REF stands in its place; give one file")
    path = Path(reference)
    if not path.is_file():
        raise InputError(lacking(path))
    source = open_tensors(path)
    if not isinstance(source, Reference):
        raise InputError(f"{path}: is no reference that `klnumba cache` wrote")
    return source, p


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in _names(text))
    except ValueError:
        raise InputError(f"thresholds: numbers with commas between, not {text!r}") from None


def _left(limit: str) -> int:
    """What the work may add to what the process holds already."""
    whole, held = memory.parse(limit), memory.resident()
    if whole <= held:
        raise InputError(f"memory: {limit} is too little: the process holds {memory.text(held)} before it begins")
    return whole - held
