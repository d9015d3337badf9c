"""Sphinx extension: before each build, write to docs/_generated what tests, measurements and the command say.

A measurement that has not been made yet leaves a line that says so, and the build goes on.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
DATA, TARGET = DOCS / "_data", DOCS / "_generated"
REFERENCE = DOCS.parent / "tests" / "reference"
FUNCTIONS = (
    "kl_divergence",
    "cross_entropy",
    "entropy",
    "js_divergence",
    "jeffreys_divergence",
    "rel_entr",
    "generalized_kl",
)
COMMANDS = ("", "score", "cache", "compare", "info", "demo digits", "demo shift")
TERMINAL = {"COLUMNS": "88", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": ""}
NOT_YET = "*Not yet measured.*\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write every generated page."""
    TARGET.mkdir(exist_ok=True)
    pages = {
        "semantics.rst": semantics(),
        "cli.rst": command_line(),
        "benchmark.md": _markdown_or_not_yet(DATA / "benchmark.md"),
        "gpu_speed.md": _markdown_or_not_yet(DOCS.parent / "benchmarks" / "results" / "gpu.md"),
        "gpu_kernels.md": gpu_kernels(),
        "pairs_speed.md": by_machine(DOCS.parent / "benchmarks" / "results" / "pairs.json"),
        "accumulators_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "accumulators.json", "rows"),
        "gradients_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "gradients.json", "rows"),
        "hessian_products_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "hessian_products.json", "rows"),
        "loss_gradients_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "loss_gradients.json", "rows"),
        "pair_gradients_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "pair_gradients.json", "rows"),
        "pair_hessian_products_speed.md": measured(
            DOCS.parent / "benchmarks" / "results" / "pair_hessian_products.json", "rows"
        ),
        "quick_gradients.md": quick_gradients(1),
        "quick_hessians.md": quick_gradients(2),
        "scoring_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "scoring.json", "rows"),
        "benchmark_plot.rst": plot("benchmark.png", "Speed of klnumba and of other libraries"),
        "differences.md": _reference("torch_differences").markdown_table(),
        "pair_differences.md": _reference("pair_differences").markdown_table(),
        "pair_behaviours.md": _reference("pair_differences").behaviours_table(),
        "accuracy.md": measured(DATA / "accuracy.json", "rows"),
        "hard_rows.md": measured(DATA / "hard_rows.json", "rows"),
        "elementary_errors.md": measured(DATA / "elementary_errors.json", "errors"),
        "special_errors.md": measured(DATA / "special_errors.json", "errors"),
        "sample_errors.md": measured(DATA / "sample_errors.json", "errors"),
        "pairs.md": pairs(),
        "hard_pairs.md": hard_pairs(),
        "not_here.md": _reference("systems").not_here(),
        "infinite_pairs.md": infinite_pairs(),
        "gradients.md": gradients(),
        "interval_coverage.md": measured(DATA / "interval_coverage.json", "rows"),
        "rare_cells.md": measured(DATA / "rare_cells.json", "rows"),
        "sparse_cells.md": measured(DATA / "sparse_cells.json", "rows"),
        "numeric_coverage.md": measured(DATA / "numeric_coverage.json", "rows"),
        "exceedance.md": measured(DATA / "exceedance.json", "rows"),
        "other_tools.md": measured(DATA / "other_tools.json", "rows"),
        "tables_speed.md": measured(DOCS.parent / "benchmarks" / "results" / "tables.json", "rows"),
        "what_changed.md": notebook(DOCS / "notebooks" / "what_changed.ipynb"),
        "without_gradients.md": without_gradients(),
        "without_closed_form.md": without_closed_form(),
    }
    table = _reference("semantics").markdown_table
    pages |= {f"semantics_{name}.md": _without_first_column(table((name,))) for name in FUNCTIONS}
    for name, text in pages.items():
        path = TARGET / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _reference(name: str) -> Any:
    """Load a list that the tests run."""
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def semantics() -> str:
    """One fold-out table per function."""
    return "\n".join(
        f".. dropdown:: ``{name}``\n\n"
        f"   .. include:: /_generated/semantics_{name}.md\n      :parser: myst_parser.sphinx_\n"
        for name in FUNCTIONS
    )


def _without_first_column(table: str) -> str:
    """Leave out the function's name, which stands above the table."""
    return "".join(f"|{line.split('|', 2)[2]}\n" for line in table.splitlines())


def _markdown_or_not_yet(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else NOT_YET


def plot(name: str, alt: str) -> str:
    """Show a picture if it is there."""
    return f".. image:: /_static/{name}\n   :alt: {alt}\n" if (DOCS / "_static" / name).is_file() else NOT_YET


def measured(path: Path, rows: str) -> str:
    """Turn a file of measurements, the list `rows` of ``{column: value}`` and facts about them, into Markdown."""
    return _measured(json.loads(path.read_text(encoding="utf-8")), rows) if path.is_file() else NOT_YET


def by_machine(path: Path) -> str:
    """The same of a file with a run on each of several machines."""
    if not path.is_file():
        return NOT_YET
    return "\n".join(_measured(run, "rows") for run in json.loads(path.read_text(encoding="utf-8"))["runs"])


def _measured(facts: dict[str, Any], rows: str) -> str:
    records = facts.pop(rows)
    columns = list(dict.fromkeys(name for record in records for name in record))
    lines = [_line(name.replace("_", " ") for name in columns), _line("---" for _ in columns)]
    lines += [_line(_text(record.get(name, "")) for name in columns) for record in records]
    notes = [f"- {name.replace('_', ' ')}: {_text(value)}" for name, value in facts.items()]
    return "\n".join([*lines, "", *notes, ""])


def notebook(path: Path) -> str:
    """The texts, the code, and what it printed and drew, of a notebook."""
    parts = []
    for place, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_output(output, f"{path.stem}_{place}.png") for output in cell.get("outputs", [])]
    return "\n\n".join([*parts, ""])


def _output(output: dict[str, Any], picture: str) -> str:
    """One output: its picture if it has one, else its text."""
    data = output.get("data", {})
    if "image/png" in data:
        (TARGET / picture).write_bytes(base64.b64decode("".join(data["image/png"])))
        return f"![what the code draws](/_generated/{picture})"
    lines = data.get("text/plain", output.get("text", ""))
    return "```text\n" + "".join(lines).rstrip("\n") + "\n```"


def gpu_kernels() -> str:
    """What the compiler and the linker say of the kernels that read rows once."""
    path = DOCS.parent / "tests" / "gpu" / "instructions.json"
    if not path.is_file():
        return NOT_YET
    columns = ("instructions per cell", "float64 instructions per cell", "wide loads")
    lines = [_line(["kernel", *columns, "registers (sm_90)", "spilled bytes"]), _line(["---"] * 6)]
    for record in json.loads(path.read_text(encoding="utf-8")):
        if columns[0] in record:
            code = record["sm_90"]
            found = [record["kernel"], *(record[name] for name in columns), code["registers"], code["spills"]]
            lines.append(_line(map(_text, found)))
    return "\n".join([*lines, ""])


def hard_pairs() -> str:
    """How far the pairs are off at the ends of the range of numbers, and those that do not reach the bound there."""
    rows = _rows(DATA / "hard_errors.json")
    worst = max(rows, key=lambda row: row["largest_error"])
    beyond = [row for row in rows if row["beyond_1e-13"]]
    points, off = sum(row["points"] for row in rows), sum(row["beyond_1e-13"] for row in rows)
    told = (
        f"Off by more than 1e-13 are {off or 'none'} of these {points:,} cases of {len(rows)} pairs; the largest error "
        f"is {worst['largest_error']:.1e}, from {worst['p']} to {worst['q']}."
    )
    if not beyond:
        return told + "\n"
    columns = ("p", "q", "points", "beyond 1e-13", "not finite", "largest error", "at")
    lines = [told, "", _line(columns), _line(["---"] * len(columns))]
    lines += [_line(_text(row[name.replace(" ", "_")]) for name in columns) for row in beyond]
    return "\n".join([*lines, ""])


def pairs() -> str:
    """One line for each registered pair with a formula: what is computed, and its largest error."""
    from klnumba.distributions import registered_pairs

    errors: dict[tuple[str, str], list[str]] = {}
    for row in _rows(DATA / "distribution_errors.json") + _rows(DATA / "vector_errors.json"):
        (p, _, form), (q, _, form_q) = row["p"].partition("."), row["q"].partition(".")
        forms = form if form == form_q else f"{form or p} to {form_q or q}"
        notes = ", ".join(filter(None, (forms, row.get("note"))))
        text = f"{row['largest_error']:.1e}" + (f" ({notes})" if notes else "")
        errors.setdefault((p, q), []).append(text)
    systems = _reference("systems")
    formulas = _reference("pair_formulas")
    columns = ("p", "q", "formula", "condition", "computed as", "largest relative error", "also in")
    lines = [_line(columns), _line(["---"] * len(columns))]
    for pair in registered_pairs():
        names = (pair.p.__name__, pair.q.__name__)
        if pair.function.__name__ != "infinite":
            text = (pair.function.__doc__ or "").splitlines()[0] if pair.function.__doc__ else ""
            others = ", ".join(systems.NAMES[letter] for letter in systems.of_pair(*names)) or "none"
            of_pair = formulas.formula(*names), formulas.condition(*names)
            exact = ["exact"] if names in formulas.ALWAYS else ["not measured"]
            lines.append(_line((*names, *of_pair, text, ", ".join(errors.get(names, exact)), others)))
    return "\n".join([*lines, ""])


def _rows(path: Path) -> list[dict[str, Any]]:
    """The errors of a file, none if it is not there."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["errors"] if path.is_file() else []
    return found


def infinite_pairs() -> str:
    """One line for each family p: the families q that have no mass somewhere where p has some."""
    from klnumba.distributions import registered_pairs

    return _by_p(pair for pair in registered_pairs() if pair.function.__name__ == "infinite")


def without_gradients() -> str:
    """One line for each family p: the families q with a closed form of which there are no derivatives."""
    from klnumba.distributions import registered_pairs
    from klnumba.distributions.gradient import NORMALS, has_derivatives
    from klnumba.distributions.inner import BY_PARTS
    from klnumba.distributions.vector_gradients import RULES

    finite = (pair for pair in registered_pairs() if pair.function.__name__ != "infinite")
    by_hand = {(p.__name__, q.__name__) for p, q in (*RULES, *product(NORMALS, NORMALS))}
    others = (pair for pair in finite if (pair.p.__name__, pair.q.__name__) not in by_hand)
    return _by_p(pair for pair in others if not has_derivatives(pair) and pair.function not in BY_PARTS)


def quick_gradients(order: int) -> str:
    """One line for each family p: the families q whose derivatives of an order from it are compiled."""
    from klnumba.distributions import registered_pairs
    from klnumba.distributions.gradient import is_quick

    return _by_p(pair for pair in registered_pairs() if is_quick(pair, order))


def without_closed_form() -> str:
    """One line for each family p and fallback: the families q for which there is no closed form, whole or in part."""
    from klnumba.distributions import Categorical, Delta, infinite
    from klnumba.distributions.registry import find

    counts = (*_discrete(), Categorical)
    partial = {
        ("Logistic", "Logistic"): "unequal scale",
        ("NegativeBinomial", "NegativeBinomial"): "unequal total_count",
        ("Geometric", "NegativeBinomial"): "total_count not 1",
        ("NegativeBinomial", "Geometric"): "total_count of p not 1",
        ("Exponential", "Cauchy"): "loc not 0",
        ("HalfCauchy", "Cauchy"): "loc not 0",
        ("HalfCauchy", "StudentT"): "loc not 0",
        ("StudentT", "Cauchy"): "df of p not 1",
        ("StudentT", "StudentT"): "df of p not 1",
    }
    lines = [_line(("p", "q", "what serves instead")), _line(["---"] * 3)]
    continuous = infinite.CONTINUOUS
    for families, others, method in ((continuous, continuous, "quadrature"), (counts, (*counts, Delta), "sum")):
        for p in families:
            found = []
            for q in others:
                names = (p.__name__, q.__name__)
                try:
                    find(p, q)
                except NotImplementedError:
                    found.append(q.__name__)
                else:
                    found += [f"{q.__name__} ({partial[names]})"] if names in partial else []
            lost = {q.split(" ")[0] for q in found if "VonMises" in (p.__name__, q)}
            served = [q for q in found if q not in lost]
            lines += [_line((p.__name__, ", ".join(served), f'``method="{method}"``'))] if served else []
    lines.append(_line(("Mixture", "Mixture, and what its components have a pair with", '``method="bounds"``')))
    return "\n".join([*lines, ""])


def _discrete() -> tuple[Any, ...]:
    """The families over counts."""
    from klnumba import distributions

    names = ("Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson")
    return tuple(getattr(distributions, name) for name in names)


def _by_p(pairs: Iterable[Any]) -> str:
    found: dict[str, list[str]] = {}
    for pair in pairs:
        found.setdefault(pair.p.__name__, []).append(pair.q.__name__)
    lines = [_line(("p", "q")), _line(["---"] * 2)]
    return "\n".join([*lines, *(_line((p, ", ".join(q))) for p, q in found.items()), ""])


def gradients() -> str:
    """One line for each pair that has derivatives: the largest error of any, by which parameter, and what is lost."""
    path = DATA / "gradient_errors.json"
    if not path.is_file():
        return NOT_YET
    columns = {"p": "p", "q": "q", "largest error": "largest_error", "by": "by", "derivatives": "points"}
    columns |= {"lost": "lost", "for example at": "lost_at"}
    lines = [_line(columns), _line(["---"] * len(columns))]
    rows = json.loads(path.read_text(encoding="utf-8"))["errors"]
    lines += [_line(_text(row.get(name, "")) for name in columns.values()) for row in rows]
    return "\n".join([*lines, ""])


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def command_line() -> str:
    """Show the help of every command, as a terminal of 88 columns does."""
    from typer.testing import CliRunner

    from klnumba.cli.app import app

    parts = []
    for command in COMMANDS:
        result = CliRunner().invoke(app, [*command.split(), "--help"], env=TERMINAL, prog_name="klnumba")
        title = f"``klnumba {command}``".replace(" ``", "``")
        lines = [f"   {line}".rstrip() for line in result.stdout.strip("\n").splitlines()]
        parts.append("\n".join([title, "-" * len(title), "", ".. code-block:: text", "", *lines, ""]))
    return "\n".join(parts)
