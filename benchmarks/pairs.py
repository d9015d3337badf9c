"""Closed forms between distributions against PyTorch's: ``python -m benchmarks.pairs``.

Writes ``benchmarks/results/pairs.json``, from which the documentation takes its tables, one for each machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import machine, timing
from benchmarks.__main__ import RESULTS

Array = np.ndarray[Any, Any]
PAIRS = 10_000_000
ROUNDS = 7
FILE = RESULTS / "pairs.json"


def numbers(rng: np.random.Generator, *shape: int) -> Array:
    """Parameters that suit every family."""
    return rng.uniform(0.5, 3.5, shape)


def factors(rng: np.random.Generator, batch: int, n: int) -> Array:
    """Lower triangular matrices with a positive diagonal."""
    made = np.tril(rng.standard_normal((batch, n, n))) / n
    made[:, range(n), range(n)] = rng.uniform(0.5, 1.5, (batch, n))
    return made


def cases(pairs: int) -> dict[str, tuple[str, Callable[[np.random.Generator], tuple[Array, ...]], tuple[str, ...]]]:
    """Name: the family in both libraries, its parameters, and the names of these."""
    tril = ("loc", "scale_tril")
    return {
        "Normal": ("Normal", lambda r: (numbers(r, pairs), numbers(r, pairs)), ("loc", "scale")),
        "Gamma": ("Gamma", lambda r: (numbers(r, pairs), numbers(r, pairs)), ("concentration", "rate")),
        "Beta": ("Beta", lambda r: (numbers(r, pairs), numbers(r, pairs)), ("concentration1", "concentration0")),
        "Dirichlet(10)": ("Dirichlet", lambda r: (numbers(r, pairs // 10, 10),), ("concentration",)),
        "MultivariateNormal 3x3": (
            "MultivariateNormal",
            lambda r: (numbers(r, pairs // 100, 3), factors(r, pairs // 100, 3)),
            tril,
        ),
        "MultivariateNormal 64x64": (
            "MultivariateNormal",
            lambda r: (numbers(r, pairs // 10_000, 64), factors(r, pairs // 10_000, 64)),
            tril,
        ),
        "one Normal pair": ("Normal", lambda r: (numbers(r), numbers(r)), ("loc", "scale")),
    }


def contenders(family: str, p: dict[str, Array], q: dict[str, Array]) -> dict[str, timing.Call]:
    """Ours, PyTorch as it is, and compiled. Objects are made before; a compiled call makes them inside."""
    import torch

    import klnumba as kl
    from klnumba import distributions as ours

    mine = [getattr(ours, family)(**x) for x in (p, q)]
    make, of = getattr(torch.distributions, family), torch.distributions.kl_divergence
    tensors = [{name: torch.as_tensor(value) for name, value in x.items()} for x in (p, q)]
    theirs = [make(**x) for x in tensors]
    compiled = torch.compile(lambda p, q: of(make(**p, validate_args=False), make(**q, validate_args=False)))
    return {
        "klnumba": lambda: kl.kl_divergence(*mine),
        "torch": lambda: of(*theirs),
        "torch.compile": lambda: compiled(*tensors),
    }


def measure(pairs: int) -> list[dict[str, Any]]:
    """A record a case: medians in nanoseconds a pair, and what PyTorch takes relative to ours."""
    records = []
    for name, (family, draw, names) in cases(pairs).items():
        rng = np.random.default_rng(0)
        p, q = (dict(zip(names, draw(rng), strict=True)) for _ in range(2))
        calls, values = {}, {}
        for who, call in contenders(family, p, q).items():
            try:
                values[who] = np.asarray(call())
            except RuntimeError as reason:  # torch.compile does not take every family
                print(f"{name}: {who} fails: {str(reason).splitlines()[0]}")
                continue
            np.testing.assert_allclose(values[who], values["klnumba"], rtol=1e-6, atol=1e-6)
            calls[who] = call
        estimates = [timing.seconds(call) for call in calls.values()]
        samples = timing.interleaved(list(calls.values()), estimates, [ROUNDS] * len(calls))
        medians = {who: float(np.median(x)) for who, x in zip(calls, samples, strict=True)}
        count = max(values["klnumba"].size, 1)
        record: dict[str, Any] = {"family": name, "pairs": count}
        record |= {f"{who} (ns a pair)": float(f"{1e9 * seconds / count:.3g}") for who, seconds in medians.items()}
        ratios = {f"{who} / klnumba": round(medians[who] / medians["klnumba"], 2) for who in calls if who != "klnumba"}
        records.append(record | ratios)
        print(records[-1], flush=True)
    return records


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    made.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of scalar families (default {PAIRS:,})")
    options = made.parse_args()
    store(
        {
            "machine": machine.computer(),
            "rows": measure(options.pairs),
            "measured": machine.when("torch"),
        }
    )


def store(run: dict[str, Any]) -> None:
    """Put a run first; those of other machines stay, with their dates, for the ratios differ between machines."""
    runs = json.loads(FILE.read_text())["runs"] if FILE.is_file() else []
    kept = [one for one in runs if one["machine"] != run["machine"]]
    FILE.write_text(json.dumps({"runs": [run, *kept]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
