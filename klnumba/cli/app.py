"""Arguments in, tables or JSON out; the work is done in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import klnumba as kl
from klnumba.cli import digits, files, shift
from klnumba.cli.compare import compare
from klnumba.cli.errors import one_line
from klnumba.cli.printing import Terminal, printing
from klnumba.cli.scoring import cache_files, score_files
from klnumba.cli.show import print_json, print_pairs
from klnumba.scoring.outputs import check_output

app = typer.Typer(
    help="Kullback-Leibler divergence of rows: KL(P||Q), P first.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
demo = typer.Typer(help="Worked examples on real data.", no_args_is_help=True)
app.add_typer(demo, name="demo")
app.command()(compare)


app.command("score")(score_files)
app.command("cache")(cache_files)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the values, a line a row, to this .npy, .csv or .parquet file."),
]


@app.command()
def info(to_json: AsJson = False) -> None:
    """Versions, CPU features, threads, CUDA found or why not, and where compiled kernels are kept."""
    facts = kl.info()
    with printing():
        if to_json:
            print_json(facts)
        else:
            print_pairs("klnumba", facts)


@demo.command("digits")
def demo_digits(output: Output = None) -> None:
    """Classify 1,797 handwritten digits by KL to the mean of each class, and time it against SciPy."""
    with one_line():
        if output is not None:
            check_output(output)
        result = digits.run()
        if output is not None:
            files.write_values(output, result.divergence, [f"class_{label}" for label in range(digits.CLASSES)])
    with printing():
        digits.show(result, Terminal())


@demo.command("shift")
def demo_shift(
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path("klnumba-demo"),
) -> None:
    """Write the 30 measurements of benign and malignant tumours as two tables, and say how to compare them."""
    with one_line():
        paths = shift.write(folder)
    with printing():
        shift.show(paths)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"klnumba {kl.__version__}")
        raise typer.Exit
