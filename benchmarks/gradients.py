"""Value and gradient of losses, of rows and of distributions, against PyTorch: ``python -m benchmarks.gradients``.

Writes ``gradients.json``, ``loss_gradients.json``, ``hessian_products.json``, ``pair_gradients.json`` and
``pair_hessian_products.json`` to ``benchmarks/results``: the documentation's tables.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import expressions, machine, timing
from benchmarks.__main__ import RESULTS

CELLS = 4_000_000
LENGTHS = (10, 100, 1000, 32000)
WIDTH = 100  # cells a row of a loss, which does not look at rows
DTYPES = ("float32", "float64")
PAIRS = (100, 10_000, 100_000)
SLOW_PAIRS = 1_000  # of which a product with the Hessian is made
SIZES = (1_000, 100_000, CELLS)
ROUNDS = 21
NAMES = ("gradients", "loss_gradients", "hessian_products", "pair_gradients", "pair_hessian_products")


def _sides(kind: str, dtype: str, d: int, cells: int) -> tuple[Any, Any]:
    """The rows that are given, and those that are learnt."""
    import torch

    generator = torch.Generator().manual_seed(0)
    sides = [torch.randn(cells // d, d, dtype=getattr(torch, dtype), generator=generator) for _ in range(2)]
    if kind == "prob":
        sides = [side.softmax(-1) for side in sides]
    return sides[0], sides[1].requires_grad_()


def contenders(kind: str, dtype: str, d: int, cells: int) -> dict[str, timing.Call]:
    """What is timed, by name; the first is ours."""
    import torch

    import klnumba as kl

    fixed, learnt = _sides(kind, dtype, d, cells)
    expression = expressions.torch_losses[kind]

    def step(loss: Callable[..., Any]) -> Any:
        learnt.grad = None
        loss(fixed, learnt).backward()
        return learnt.grad

    losses = {
        "klnumba": functools.partial(kl.kl_divergence, kind=kind, reduction="mean"),
        "PyTorch": expression,
        "torch.compile": torch.compile(expression),
    }
    return {name: functools.partial(step, loss) for name, loss in losses.items()}


def contenders_of_loss(log_target: bool, dtype: str, cells: int) -> dict[str, timing.Call]:
    """The same of the loss that the two have by one name, by its input."""
    import torch

    import klnumba as kl

    target, model = _sides("prob", dtype, WIDTH, cells)
    target, log_model = target.log() if log_target else target, model.detach().log().requires_grad_()

    def step(loss: Callable[..., Any]) -> Any:
        log_model.grad = None
        loss(log_model, target, reduction="batchmean", log_target=log_target).backward()
        return log_model.grad

    losses = {"klnumba": kl.functional.kl_div, "PyTorch": torch.nn.functional.kl_div}
    return {name: functools.partial(step, loss) for name, loss in losses.items()}


def measure_losses(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """A record a case of these."""
    records = []
    for log_target in (False, True):
        for dtype in DTYPES:
            for cells in sizes:
                record = {"log_target": log_target, "dtype": dtype, "cells": cells}
                found = _ratios(contenders_of_loss(log_target, dtype, cells), cells, "klnumba, ns a cell")
                records.append(record | found)
                print(records[-1], flush=True)
    return records


def contenders_of_product(kind: str, dtype: str, d: int, cells: int) -> dict[str, timing.Call]:
    """The same of the product of the Hessian with a direction: two gradients, one of the other."""
    import torch

    import klnumba as kl

    fixed, learnt = _sides(kind, dtype, d, cells)
    direction = torch.ones_like(fixed).cumsum(-1) / d

    def product(loss: Callable[..., Any]) -> Any:
        (slope,) = torch.autograd.grad(loss(fixed, learnt), learnt, create_graph=True)
        return torch.autograd.grad(slope, learnt, direction)[0]

    losses = {
        "klnumba": functools.partial(kl.kl_divergence, kind=kind, reduction="mean"),
        "PyTorch": expressions.torch_losses[kind],
    }
    return {name: functools.partial(product, loss) for name, loss in losses.items()}


def measure_products(cells: int) -> list[dict[str, Any]]:
    """A record a case of these."""
    records = []
    for dtype in DTYPES:
        for d in LENGTHS:
            calls = contenders_of_product("logit", dtype, d, cells)
            record = {"kind": "logit", "dtype": dtype, "cells a row": d}
            records.append(record | _ratios(calls, cells, "klnumba, ns a cell"))
            print(records[-1], flush=True)
    return records


def measure(cells: int) -> list[dict[str, Any]]:
    """A record a case: nanoseconds a cell, and how many times that the others take."""
    records = []
    for kind in ("logit", "prob"):
        for dtype in DTYPES:
            for d in LENGTHS:
                calls = contenders(kind, dtype, d, cells)
                record = {"kind": kind, "dtype": dtype, "cells a row": d}
                records.append(record | _ratios(calls, cells, "klnumba, ns a cell"))
                print(records[-1], flush=True)
    return records


def _ratios(calls: dict[str, timing.Call], cells: int, unit: str) -> dict[str, float]:
    """How long the first takes for one of so many, and how many times that the others take."""
    for call in calls.values():
        call()
    estimates = [timing.seconds(call) for call in calls.values()]
    samples = timing.interleaved(list(calls.values()), estimates, [ROUNDS] * len(calls))
    ours, *others = (float(np.median(x)) for x in samples)
    times = {f"{name}, times": _digits(x / ours) for name, x in zip(list(calls)[1:], others, strict=True)}
    return {unit: _digits(1e9 * ours / cells)} | times


def _digits(x: float) -> float:
    return float(f"{x:.3g}")


PARTS = 16  # of a draw of a family of vectors


def losses_of_pairs() -> dict[str, Callable[[Any], tuple[list[Any], Callable[[], tuple[Any, Any]]]]]:
    """From a function that makes numbers to the leaves of a loss, and to what makes p and q of them."""
    from torch import distributions as t

    def two(family: Any, first: str, second: str) -> Any:
        def made(numbers: Any) -> Any:
            leaves = [numbers(sign) for sign in (first, second) * 2 if sign]
            half = len(leaves) // 2
            return leaves, lambda: (family(*leaves[:half]), family(*leaves[half:]))

        return made

    def between(numbers: Any, family: Any, other: Any) -> Any:
        leaves = [numbers("positive") for _ in range(4)]
        return leaves, lambda: (family(*leaves[:2]), other(*leaves[2:]))

    def logits(family: Any, *axes: int) -> Any:
        def made(numbers: Any) -> Any:
            leaves = [numbers("real", *axes), numbers("real", *axes)]
            return leaves, lambda: tuple(family(logits=x) for x in leaves)

        return made

    def latent(numbers: Any) -> Any:
        leaves = [numbers("real", PARTS), numbers("positive", PARTS)]
        prior = [numbers("zero", PARTS), numbers("one", PARTS)]
        return leaves, lambda: (t.Independent(t.Normal(*leaves), 1), t.Independent(t.Normal(*prior), 1))

    def dirichlet(numbers: Any) -> Any:
        leaves = [numbers("positive", PARTS), numbers("positive", PARTS)]
        return leaves, lambda: tuple(t.Dirichlet(x) for x in leaves)

    return {
        "Normal": two(t.Normal, "real", "positive"),
        f"{PARTS} independent Normal to the standard": latent,
        "Laplace": two(t.Laplace, "real", "positive"),
        "Gumbel": two(t.Gumbel, "real", "positive"),
        "Normal to Laplace": lambda numbers: between(numbers, t.Normal, t.Laplace),
        "Gamma to Normal": lambda numbers: between(numbers, t.Gamma, t.Normal),
        "Beta to Normal": lambda numbers: between(numbers, t.Beta, t.Normal),  # second derivatives in twice the digits
        "Gamma": two(t.Gamma, "positive", "positive"),
        "Beta": two(t.Beta, "positive", "positive"),
        "Poisson": two(t.Poisson, "positive", ""),
        "Bernoulli of logits": logits(t.Bernoulli),
        f"Categorical of {PARTS} logits": logits(t.Categorical, PARTS),
        f"Dirichlet of {PARTS}": dirichlet,
    }


def contenders_of_pair(
    name: str, dtype: str, count: int, *, second: bool = False
) -> tuple[list[Any], dict[str, timing.Call]]:
    """The leaves of the mean KL of so many pairs, and what is timed, by name; the first is ours.

    That is the gradient, or the product of the Hessian with a direction as well.
    """
    import torch

    import klnumba as kl

    generator = torch.Generator().manual_seed(0)

    def numbers(sign: str, *axes: int) -> Any:
        shape, kind = (count, *axes), getattr(torch, dtype)
        if sign in ("zero", "one"):
            return torch.full(shape, float(sign == "one"), dtype=kind)
        found = torch.randn(shape, dtype=kind, generator=generator)
        return (found.exp() if sign == "positive" else found).requires_grad_()

    leaves, made = losses_of_pairs()[name](numbers)

    def step(divergence: Callable[..., Any]) -> Any:
        slopes = torch.autograd.grad(divergence(*made()).mean(), leaves, create_graph=second)
        return torch.autograd.grad(slopes, leaves, list(map(torch.ones_like, slopes))) if second else slopes

    functions = {"klnumba": kl.kl_divergence, "PyTorch": torch.distributions.kl_divergence}
    return leaves, {title: functools.partial(step, function) for title, function in functions.items()}


def measure_pairs(counts: tuple[int, ...], *, second: bool = False) -> list[dict[str, Any]]:
    """The same of distributions."""
    records = []
    for name in losses_of_pairs():
        for count in counts:
            _, calls = contenders_of_pair(name, "float32", count, second=second)
            record = {"p and q": name, "distributions": count}
            records.append(record | _ratios(calls, count, "klnumba, ns each"))
            print(records[-1], flush=True)
    return records


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.gradients", description=__doc__)
    made.add_argument("--cells", type=int, default=CELLS, help=f"cells of an array (default {CELLS:,})")
    made.add_argument("--only", nargs="+", choices=NAMES, help="which tables to measure")
    options = made.parse_args()
    measures: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "gradients": lambda: measure(options.cells),
        "loss_gradients": lambda: measure_losses(SIZES),
        "hessian_products": lambda: measure_products(options.cells // 4),
        "pair_gradients": lambda: measure_pairs(PAIRS),
        "pair_hessian_products": lambda: measure_pairs((SLOW_PAIRS,), second=True),
    }
    for name in options.only or measures:
        found = {"rows": measures[name](), "measured": machine.where("torch")}
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
