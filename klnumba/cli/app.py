"""Arguments in, tables or JSON out; the work is done in the modules beside this one."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import klnumba as kl
from klnumba.cli import digits, files, shift
from klnumba.cli.compare import compare
from klnumba.cli.errors import InputError, one_line
from klnumba.cli.summary import as_json, summarise

app = typer.Typer(
    help="Kullback-Leibler divergence of rows: KL(P||Q), P first.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
demo = typer.Typer(help="Worked examples on real data.", no_args_is_help=True)
app.add_typer(demo, name="demo")
app.command()(compare)


class Kind(StrEnum):
    """What a cell holds."""

    prob = "prob"
    log_prob = "log_prob"
    logit = "logit"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the values, a line a row, to this .npy, .csv or .parquet file."),
]


def _print_json(item: dict[str, Any]) -> None:
    print(json.dumps(as_json(item), indent=2))


def _print_pairs(title: str, pairs: dict[str, Any]) -> None:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _flat(pairs):
        table.add_row(name.replace("_", " "), Text(f"{value:.6g}" if isinstance(value, float) else str(value)))
    Console().print(table)


def _flat(pairs: dict[str, Any]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for name, value in pairs.items():
        if isinstance(value, dict):
            lines += [(f"{name} {inner}", item) for inner, item in _flat(value)]
        else:
            lines.append((name, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value))
    return lines


def _unit(base: float | None) -> str:
    return "nats" if base is None else {2.0: "bits", 10.0: "hartleys"}.get(base, f"units of log {base:g}")


@app.command()
def score(
    p: Annotated[str, typer.Argument(metavar="P", help="Rows of the data or the reference.")],
    q: Annotated[str, typer.Argument(metavar="Q", help="Rows of the model; its shape broadcasts against P's.")],
    kind: Annotated[Kind, typer.Option(help="What the cells hold.")] = Kind.prob,
    axis: Annotated[int, typer.Option(help="The axis along which a row lies.")] = -1,
    normalize: Annotated[bool, typer.Option(help="Divide each row by its sum first.")] = True,
    base: Annotated[float | None, typer.Option(help="Base of the logarithm.", show_default="e: nats")] = None,
    temperature: Annotated[float, typer.Option(help="Divide logits by this first.")] = 1.0,
    header: Annotated[
        bool | None, typer.Option(help="Whether .csv files begin with names.", show_default="looks at the first line")
    ] = None,
    output: Output = None,
    to_json: AsJson = False,
) -> None:
    """KL(P||Q) of each row of two .npy, .npz (FILE.npz:NAME), .csv or .parquet files, and a summary of the values."""
    options: dict[str, Any] = {
        "kind": kind.value,
        "axis": axis,
        "normalize": normalize,
        "base": base,
        "temperature": temperature,
    }
    with one_line():
        if output is not None:
            files.check_output(output, (p, q))
        left, right = files.read_rows(p, header=header), files.read_rows(q, header=header)
        files.check_same_columns(left, right)
        try:
            values = np.atleast_1d(kl.kl_divergence(left.array, right.array, **options))
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error
        if output is not None:
            files.write_values(output, values, ["kl"])
        summary = {"unit": _unit(base), **summarise(values)}
    if to_json:
        _print_json({"p": p, "q": q, "kind": kind.value, **summary})
    else:
        _print_pairs(f"KL(P||Q) in {summary.pop('unit')}", summary)


@app.command()
def info(to_json: AsJson = False) -> None:
    """Versions, CPU features, threads, CUDA found or why not, and where compiled kernels are kept."""
    facts = kl.info()
    if to_json:
        _print_json(facts)
    else:
        _print_pairs("klnumba", facts)


@demo.command("digits")
def demo_digits(output: Output = None) -> None:
    """Classify 1,797 handwritten digits by KL to the mean of each class, and time it against SciPy."""
    with one_line():
        if output is not None:
            files.check_output(output)
        result = digits.run()
        if output is not None:
            files.write_values(output, result.divergence, [f"class_{label}" for label in range(digits.CLASSES)])
    digits.show(result, Console())


@demo.command("shift")
def demo_shift(
    html: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("klnumba-shift.html"),
) -> None:
    """Compare the 30 measurements of benign and malignant tumours, column by column, and write the report."""
    with one_line():
        found = shift.run(html)
    shift.show(found, html, Console())


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"klnumba {kl.__version__}")
        raise typer.Exit
