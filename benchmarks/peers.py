"""The other libraries, each used as its own documentation advises; one function a library and formula."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import expressions
from benchmarks.cases import Problem
from benchmarks.contender import REGISTRY as _REGISTRY
from benchmarks.contender import Call, Contender, contender, only
from benchmarks.ours import result_array


def _expression(problem: Problem, normalise: bool) -> Any:
    expression = expressions.choose(problem.case, normalise=normalise)
    only(expression is not None)
    return expression


def _both(name: str, build: Any, *, compiled: bool = False) -> None:
    """Enter a build function twice: rows as they are, and rows normalised first."""
    for variant in ("plain", "normalised"):
        _REGISTRY.append(Contender(name, variant, partial(build, normalise=variant == "normalised"), compiled))


# NumPy and numexpr


def _wide(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def numpy_expression(problem: Problem, normalise: bool) -> Call:
    """The plain expression."""
    from scipy.special import log_softmax

    xp = SimpleNamespace(log=np.log, exp=np.exp, wide=_wide, log_softmax=partial(log_softmax, axis=-1))
    return partial(_expression(problem, normalise), xp, problem.p, problem.q)


_both("NumPy", numpy_expression)


def numexpr_rows(problem: Problem, normalise: bool) -> Call:
    """The cells by numexpr into an array made once, then NumPy's sums: numexpr's own sums run on one thread."""
    import numexpr

    only(problem.case.kind != "logit" and problem.case.task != "pointwise")
    only(not (normalise and problem.case.kind == "log_prob"), "no log_softmax")
    numexpr.set_num_threads(problem.threads)
    text = {"prob": "p * log(p / q)", "log_prob": "exp(p) * (p - q)"}[problem.case.kind]
    text = "p / a * log(p * b / (q * a))" if normalise else text
    out = result_array(problem)

    def call() -> Any:
        names = {"p": _wide(problem.p), "q": _wide(problem.q)}
        if normalise:
            names |= {"a": names["p"].sum(-1, keepdims=True), "b": names["q"].sum(-1, keepdims=True)}
        numexpr.evaluate(text, local_dict=names, out=out)
        return out.sum(-1)

    return call


_both("numexpr", numexpr_rows)


def numexpr_cells(problem: Problem, out: Any = None) -> Call:
    """One value a cell."""
    import numexpr

    only(problem.case.task == "pointwise")
    numexpr.set_num_threads(problem.threads)
    return lambda: numexpr.evaluate(
        "p * log(p / q)", local_dict={"p": _wide(problem.p), "q": _wide(problem.q)}, out=out
    )


contender("numexpr", "plain")(numexpr_cells)


@contender("numexpr", "out")
def numexpr_cells_out(problem: Problem) -> Call:
    """One value a cell, into an array made before."""
    return numexpr_cells(problem, result_array(problem))


# SciPy


@contender("SciPy entropy", "normalised")
def scipy_entropy(problem: Problem) -> Call:
    """``scipy.stats.entropy``, which divides both by their sums."""
    from scipy import special, stats

    only(problem.case.task != "pointwise")
    probabilities = {"prob": lambda x: x, "log_prob": np.exp, "logit": partial(special.softmax, axis=-1)}
    of = probabilities[problem.case.kind]
    return lambda: stats.entropy(of(_wide(problem.p)), of(_wide(problem.q)), axis=-1)


@contender("SciPy rel_entr", "plain")
def scipy_rel_entr(problem: Problem) -> Call:
    """``scipy.special.rel_entr``, summed where the case is rows."""
    from scipy import special

    only(problem.case.kind == "prob")
    if problem.case.task == "pointwise":
        return lambda: special.rel_entr(_wide(problem.p), _wide(problem.q))
    return lambda: special.rel_entr(_wide(problem.p), _wide(problem.q)).sum(-1)


@contender("SciPy rel_entr", "out")
def scipy_rel_entr_out(problem: Problem) -> Call:
    """``scipy.special.rel_entr`` into an array made before."""
    from scipy import special

    only(problem.case.task == "pointwise")
    out = result_array(problem)
    return lambda: special.rel_entr(_wide(problem.p), _wide(problem.q), out=out)


# torch


def _tensors(problem: Problem) -> Any:
    """The name space for the expressions, and the two arrays as tensors over the same memory."""
    import torch

    torch.set_num_threads(problem.threads)
    xp = SimpleNamespace(log=torch.log, exp=torch.exp, log_softmax=partial(torch.log_softmax, dim=-1))
    xp.wide = torch.Tensor.float if problem.case.dtype == "bfloat16" else lambda x: x
    return xp, _tensor(problem.p), _tensor(problem.q)


def _tensor(x: np.ndarray[Any, Any]) -> Any:
    import torch

    return torch.from_numpy(x) if x.dtype.itemsize > 2 else torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)


def _without_gradients(function: Any, *arguments: Any) -> Call:
    import torch

    def call() -> Any:
        with torch.inference_mode():
            return function(*arguments)

    return call


def torch_expression(problem: Problem, normalise: bool) -> Call:
    """The plain expression, eager."""
    expression = _expression(problem, normalise)
    return _without_gradients(expression, *_tensors(problem))


_both("torch", torch_expression)


def torch_compile(problem: Problem, normalise: bool) -> Call:
    """The plain expression through ``torch.compile``, for this very shape."""
    import torch

    expression = _expression(problem, normalise)
    xp, p, q = _tensors(problem)
    compiled = torch.compile(lambda p, q: expression(xp, p, q), fullgraph=True, dynamic=False)
    return _without_gradients(compiled, p, q)


_both("torch.compile", torch_compile, compiled=True)


def torch_kl_div(problem: Problem, normalise: bool) -> Call:
    """``torch.nn.functional.kl_div``, whose first argument is the logarithm of q; it never normalises."""
    from torch.nn.functional import kl_div

    kind = problem.case.kind
    only(problem.case.task != "pointwise" and normalise == (kind == "logit"))
    xp, p, q = _tensors(problem)

    def prob(p: Any, q: Any) -> Any:
        return kl_div(xp.wide(q).log(), xp.wide(p), reduction="none").sum(-1)

    def log_prob(p: Any, q: Any) -> Any:
        p, q = xp.wide(p), xp.wide(q)
        if kind == "logit":
            p, q = xp.log_softmax(p), xp.log_softmax(q)
        return kl_div(q, p, reduction="none", log_target=True).sum(-1)

    return _without_gradients(prob if kind == "prob" else log_prob, p, q)


_both("torch kl_div", torch_kl_div)


def torchmetrics_kl(problem: Problem, normalise: bool) -> Call:
    """``torchmetrics.functional``: divides probabilities by their sums, takes logarithms as they are."""
    from torchmetrics.functional.regression import kl_divergence

    kind = problem.case.kind
    only(problem.case.task != "pointwise")
    only(normalise == (kind != "log_prob"))
    xp, p, q = _tensors(problem)

    def call(p: Any, q: Any) -> Any:
        p, q = xp.wide(p), xp.wide(q)
        if kind == "logit":
            p, q = xp.log_softmax(p), xp.log_softmax(q)
        return kl_divergence(p, q, log_prob=kind != "prob", reduction="none")

    return _without_gradients(call, p, q)


_both("torchmetrics", torchmetrics_kl)


# JAX


def jax_jit(problem: Problem, normalise: bool) -> Call:
    """The plain expression through ``jax.jit``, 64-bit types on, arrays already on the device."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    expression = _expression(problem, normalise)
    xp = SimpleNamespace(log=jnp.log, exp=jnp.exp, log_softmax=partial(jax.nn.log_softmax, axis=-1))
    xp.wide = (lambda x: x.astype(jnp.float32)) if problem.case.dtype == "bfloat16" else (lambda x: x)
    jitted = jax.jit(lambda p, q: expression(xp, p, q))
    p, q = jnp.asarray(problem.p), jnp.asarray(problem.q)
    return lambda: jitted(p, q).block_until_ready()


_both("JAX jit", jax_jit, compiled=True)


# NumKong


@contender("numkong", "plain")
def numkong_rows(problem: Problem) -> Call:
    """``numkong.kullbackleibler``, row by row; it has no threads and keeps the interpreter lock."""
    import numkong

    only(problem.case.kind == "prob" and problem.case.task != "pointwise")
    return lambda: numkong.kullbackleibler(problem.p, problem.q)
