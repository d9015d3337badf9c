"""The comparison as HTML: a table for notebooks, and a report in one self-contained file without a row of the data.

Names of columns and categories are other people's text: the template engine escapes all of it, and the file forbids
its reader's browser every script but its own and every address.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from klnumba.files import replacing
from klnumba.optional import load
from klnumba.tables.cells import GROUPS

if TYPE_CHECKING:
    from klnumba.tables.comparison import Comparison, Result

MOST_CELLS = 60  # of one column in the report; the others are one line
PARTS = {"kl_reshaping": "within range", "kl_tails": "tails", "kl_new": "new", "kl_missing": "missing"}


def number(value: float | None, digits: int = 3) -> str:
    """A number for readers."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}g}".replace("-", "−")


def interval(values: Mapping[str, Any]) -> str:
    """Both ends, for readers."""
    ends = [number(values[end]) for end in ("ci_low", "ci_high")]
    return " to ".join(ends) if ends != [number(None)] * 2 else ends[0]


def probability(value: float | None) -> str:
    """A p-value for readers."""
    if value is not None and value < 0.001:
        return "< 0.001"
    return number(value, 2)


def key(value: float | None) -> str:
    """What a column of the report is sorted by; NaN comes last."""
    return "" if value is None or math.isnan(value) else repr(float(value))


@functools.cache
def _environment() -> Any:
    jinja2 = load("jinja2")
    made = jinja2.Environment(autoescape=True, loader=jinja2.FunctionLoader(_source), undefined=jinja2.StrictUndefined)
    made.filters |= {"number": number, "interval": interval, "probability": probability, "key": key}
    return made


def _source(name: str) -> str:
    return files("klnumba.tables").joinpath(name).read_text(encoding="utf-8")


def table(comparison: Comparison) -> str:
    """The table of columns, for a notebook."""
    return str(_environment().get_template("table.html").render(rows=_rows(comparison), **_about(comparison)))


def write(comparison: Comparison, path: Path, title: str) -> Path:
    """Write the report; the file is complete or, when the work is interrupted, as it was before."""
    text = render(comparison, str(title))  # a text that calls itself safe markup is escaped all the same
    with replacing(path.resolve()) as file:
        file.write(text.encode(errors="backslashreplace"))  # half a surrogate pair has no UTF-8
    return path


def render(comparison: Comparison, title: str) -> str:
    """The text of the report."""
    script = _source("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    details = [_detail(k, name, comparison.results[name]) for k, name in enumerate(comparison.by_evidence())]
    return str(
        _environment()
        .get_template("report.html")
        .render(
            title=title, rows=_rows(comparison), details=details, parts=PARTS, script=script, digest=digest,
            style=_source("report.css"), **_about(comparison),
        )
    )  # fmt: skip


def _about(comparison: Comparison) -> dict[str, Any]:
    settings = comparison.settings
    unit = "nats" if settings.base is None else "bits" if settings.base == 2 else f"units of log {settings.base:g}"
    changed = sum(found.values["p_adjusted"] < 1.0 - settings.confidence for found in comparison.results.values())
    return {
        "settings": settings,
        "unit": unit,
        "share": settings.percent,
        "level": f"{1.0 - settings.confidence:.2g}",
        "compared": len(comparison.results),
        "changed": changed,
        "problems": len(comparison.problems),
    }


def _rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The rows of the table, strongest evidence first, problems last."""
    rows = {row["column"]: row for row in comparison.rows()}
    order = comparison.by_evidence()
    places = {name: k for k, name in enumerate(order)}
    found = [rows[name] | {"place": places[name]} for name in order]
    level = 1.0 - comparison.settings.confidence
    for row in found:
        told = comparison.results[row["column"]].empty or row["column"] in comparison.notes
        row["states"] = ["changed" if row["p_adjusted"] < level else "same", *(["problem"] if told else [])]
    return found + [rows[name] | {"place": None, "states": ["problem"]} for name in comparison.problems]


def _detail(place: int, name: str, found: Result) -> dict[str, Any]:
    labels, groups = found.cells.labels(), found.cells.groups()
    used = np.flatnonzero(found.used)
    shown = used
    if used.size > MOST_CELLS:
        order = np.argsort(-np.abs(np.nan_to_num(found.shares[used])), kind="stable")
        shown = np.sort(used[order[:MOST_CELLS]])
    rest = np.setdiff1d(used, shown)
    cells = [
        _cell(labels[k], GROUPS[groups[k]], float(found.p[k]), float(found.q[k]), float(found.shares[k])) for k in shown
    ]
    if rest.size:
        p, q, share = (float(x[rest].sum()) for x in (found.p, found.q, found.shares))
        cells.append(_cell(f"{rest.size:,} further cells", "", p, q, share))
    _add_widths(cells)
    return {
        "place": place,
        "name": name,
        "values": found.values,
        "cells": cells,
        "unseen": _unseen(found),
        "folded": getattr(found.cells, "folded", 0),
        "other": labels[-2],
    }


def _cell(label: str, part: str, p: float, q: float, share: float) -> dict[str, Any]:
    return {"label": label, "part": part, "p": p, "q": q, "share": share}


def _add_widths(cells: list[dict[str, Any]]) -> None:
    """The widths of the bars: probabilities on one scale, shares on another."""
    largest = max((max(cell["p"], cell["q"]) for cell in cells), default=0.0)
    reach = max((abs(cell["share"]) for cell in cells if math.isfinite(cell["share"])), default=0.0)
    for cell in cells:
        cell["p_width"], cell["q_width"] = _width(cell["p"], largest), _width(cell["q"], largest)
        cell["share_width"] = _width(abs(cell["share"]), reach)


def _width(value: float, whole: float) -> str:
    """Per cent of the widest bar."""
    return f"{min(100.0, 100.0 * value / whole) if whole > 0 and value == value else 0.0:.1f}%"


def _unseen(found: Result) -> list[tuple[str, int]]:
    """The most frequent categories of the current side that the reference does not name."""
    held = found.current.unseen or {}
    return sorted(((str(label), count) for label, count in held.items()), key=lambda pair: (-pair[1], pair[0]))[:10]
