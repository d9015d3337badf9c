"""What is measured: shapes, dtypes, kinds, and the arrays of each case."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

CELLS = 16_000_000
QUICK_CELLS = 1_000_000
LONG_ROW = 50_000_000
SIZES = (2, 3, 10, 32, 100, 1_000, 4_096, 32_000)
LOG_SIZES = (10, 1_000, 32_000)  # for log-probabilities and logits
TWICE_SIZES = (3, 10, 1_000, 32_000)  # where peers are timed with and without normalisation
DTYPES = ("float64", "float32", "bfloat16")
_SMALLEST = 1e-4  # keeps p/q finite in every dtype, so that the plain formulas of the peers are right


@dataclass(frozen=True)
class Case:
    """One input: ``rows`` rows of ``d`` cells, of one ``kind`` and ``dtype``. ``task`` is rows, pointwise or small."""

    task: str
    kind: str
    dtype: str
    rows: int
    d: int

    @property
    def name(self) -> str:
        """Name for ``--only``: ``rows-prob-float64-1000``."""
        return f"{self.task}-{self.kind}-{self.dtype}-{self.cells if self.task == 'pointwise' else self.d}"

    @property
    def cells(self) -> int:
        """Cells of one of the two arrays."""
        return self.rows * self.d


@dataclass(frozen=True)
class Problem:
    """The arrays of a case and the number of threads everybody may use."""

    case: Case
    p: np.ndarray[Any, Any]
    q: np.ndarray[Any, Any]
    threads: int

    def head(self, cells: int) -> Problem:
        """The first rows, about ``cells`` cells of them; of a row that is longer, the first cells."""
        if cells >= self.case.cells:
            return self
        rows, d = max(1, cells // self.case.d), min(self.case.d, cells)
        p, q = (x[:rows, :d] if x.ndim == 2 else x[:rows] for x in (self.p, self.q))
        return replace(self, case=replace(self.case, rows=rows, d=d), p=p, q=q)


def grid(cells: int, *, quick: bool = False) -> list[Case]:
    """Every case of a run; each has about ``cells`` cells an array, one long row and the small calls excepted."""
    if quick:
        return _quick_grid(cells)
    long_row = max(cells, LONG_ROW * cells // CELLS)
    cases = [_rows("prob", dtype, d, cells) for dtype in DTYPES for d in SIZES]
    cases += [Case("rows", "prob", dtype, 1, long_row) for dtype in ("float64", "float32")]
    cases += [_rows(kind, dtype, d, cells) for kind in ("log_prob", "logit") for dtype in DTYPES for d in LOG_SIZES]
    cases += [Case("pointwise", "prob", dtype, cells, 1) for dtype in DTYPES]
    cases += [Case("small", kind, "float64", 1, d) for kind in ("prob", "logit") for d in (10, 1_000)]
    return cases


def _quick_grid(cells: int) -> list[Case]:
    cases = [_rows("prob", dtype, d, cells) for dtype in ("float64", "float32") for d in (3, 1_000)]
    cases += [_rows("prob", "bfloat16", 1_000, cells), _rows("logit", "float32", 32_000, cells)]
    return [*cases, Case("pointwise", "prob", "float64", cells, 1), Case("small", "prob", "float64", 1, 10)]


def _rows(kind: str, dtype: str, d: int, cells: int) -> Case:
    return Case("rows", kind, dtype, max(1, cells // d), d)


def chosen(cases: list[Case], patterns: list[str]) -> list[Case]:
    """The cases with one of these names; a pattern that is no name stands for parts of names, or has ``*`` in it."""
    names = {case.name for case in cases}

    def fits(name: str, pattern: str) -> bool:
        return name == pattern if pattern in names else pattern in name or fnmatch.fnmatch(name, pattern)

    return [case for case in cases if not patterns or any(fits(case.name, x) for x in patterns)]


def problem(case: Case, threads: int) -> Problem:
    """Random rows of a case, the same on every run."""
    p, q = (_rows_of(raw[: case.cells].reshape(case.rows, case.d), case) for raw in _draws(case.cells))
    if case.task == "pointwise":
        p, q = p.reshape(-1), q.reshape(-1)
    return Problem(case, p, q, threads)


@lru_cache(maxsize=1)
def _draws(cells: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(20)
    p, q = (np.maximum(rng.standard_exponential(cells, dtype=np.float32), _SMALLEST) for _ in range(2))
    return p, q


def _rows_of(raw: np.ndarray[Any, Any], case: Case) -> np.ndarray[Any, Any]:
    dtype = np.dtype(ml_dtypes.bfloat16 if case.dtype == "bfloat16" else case.dtype)
    wide = raw.astype(np.float64 if case.dtype == "float64" else np.float32)
    if case.kind == "logit":
        return np.log(wide).astype(dtype)
    if case.task != "pointwise":
        wide /= wide.sum(-1, keepdims=True, dtype=np.float64).astype(wide.dtype)
    return (np.log(wide) if case.kind == "log_prob" else wide).astype(dtype)
