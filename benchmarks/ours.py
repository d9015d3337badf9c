"""klnumba itself, and the bare cost of reading the memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.cases import Problem
from benchmarks.contender import Call, contender, only

_SPLIT_FROM = 1_000_000


@lru_cache(maxsize=1)
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads for calls that release the interpreter lock and have no threads of their own."""
    return ThreadPoolExecutor(threads)


def result_array(problem: Problem) -> np.ndarray[Any, Any]:
    """An array for one value a cell."""
    return np.ones(problem.p.shape, np.float64 if problem.case.dtype == "float64" else np.float32)


@contender("memory", "memory")
def memory_dot(problem: Problem) -> Call:
    """A dot of the two flat inputs, cut into one piece a thread: nothing reads both faster."""
    only(problem.case.task != "pointwise")
    p, q = (_as_floats(x) for x in (problem.p, problem.q))
    if problem.threads == 1 or p.size < _SPLIT_FROM:
        return lambda: np.dot(p, q)
    ps, qs = (np.array_split(x, problem.threads) for x in (p, q))
    return lambda: sum(pool(problem.threads).map(np.dot, ps, qs))


def _as_floats(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Flat; bfloat16 cells in pairs as float32, which reads the same bytes and has a fast dot."""
    flat = x.reshape(-1)
    return flat if flat.dtype.itemsize > 2 else flat[: flat.size // 2 * 2].view(np.float32)


@contender("memory", "memory")
def memory_product(problem: Problem) -> Call:
    """The product of the two inputs into a third array: what a function of two arrays has to move."""
    only(problem.case.task == "pointwise")
    p, q = (_as_floats(x) for x in (problem.p, problem.q))
    out = np.ones_like(p) if problem.case.dtype != "bfloat16" else np.ones((2, p.size), np.float32)
    pieces = [np.array_split(x, problem.threads, axis=-1) for x in (p, q, out)]
    return lambda: list(pool(problem.threads).map(_multiply, *pieces))


def _multiply(p: Any, q: Any, out: Any) -> None:
    np.multiply(p, q, out=out)


@contender("klnumba", "normalised", compiled=True)
def klnumba_default(problem: Problem) -> Call:
    """The default: rows are divided by their sums, every cell is checked."""
    only(problem.case.task != "pointwise")
    return _rows(problem)


@contender("klnumba", "plain", compiled=True)
def klnumba_plain(problem: Problem) -> Call:
    """``normalize=False``, and the pointwise function."""
    if problem.case.task == "pointwise":
        import klnumba

        return lambda: klnumba.rel_entr(problem.p, problem.q)
    only(problem.case.kind != "logit", "logits are always normalised")
    return _rows(problem, normalize=False)


@contender("klnumba", "out", compiled=True)
def klnumba_out(problem: Problem) -> Call:
    """The pointwise function into an array made before."""
    only(problem.case.task == "pointwise")
    import klnumba

    out = result_array(problem)
    return lambda: klnumba.rel_entr(problem.p, problem.q, out)


def _rows(problem: Problem, **options: Any) -> Call:
    import klnumba

    options |= {"kind": problem.case.kind}
    if problem.threads == 1:
        options["threads"] = 1
    return lambda: klnumba.kl_divergence(problem.p, problem.q, **options)


def reference(problem: Problem, *, normalise: bool) -> np.ndarray[Any, Any]:
    """The values in float64, slowly, by text that no contender shares."""
    a, b = (x.astype(np.float64) for x in (problem.p, problem.q))
    if problem.case.kind != "prob":
        shift = [x.max(-1, keepdims=True) if normalise else 0.0 for x in (a, b)]
        a, b = (np.exp(x - s) for x, s in zip((a, b), shift, strict=True))
    cells = a * (np.log(a) - np.log(b))
    if problem.case.task == "pointwise":
        return cells
    if not normalise:
        return cells.sum(-1)
    total_a, total_b = a.sum(-1), b.sum(-1)
    return cells.sum(-1) / total_a + np.log(total_b / total_a)
