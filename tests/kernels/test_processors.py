"""What other processors compute: the same bits with other registers, and errors as small without fused multiply-add."""

from __future__ import annotations

import json
import platform

import numpy as np
import pytest
from numba.core.registry import cpu_target

from klnumba.kernels import registers
from tests.kernels import sub
from tests.reference import hard_rows, mp
from tests.reference.accuracy_table import bound
from tests.reference.row_families import draw, families

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="compiles for x86-64 alone"
)

FUNCTION = "kl_divergence"
DRAWS = 6
USUAL = "ordinary", "near"
HUGE = 8.645076571399957e307, 5.861321490438234e306  # of which p*log(p/q) is too large for a number
PROGRAM = """
import json
import numpy as np
import klnumba as kl

def value(name, dtype, how, p, q):
    p, q = np.array(p, dtype), np.array(q, dtype)
    if name != "value_and_grad":
        return [getattr(kl, name)(p, q, **how)]
    found, (of_p, of_q) = kl.value_and_grad(kl.kl_divergence, argnums=(0, 1))(p, q, **how)
    return [found, *of_p, *of_q]

cases = json.load(open("given.json"))
print(json.dumps([[float(number) for number in value(*case)] for case in cases]))
"""


def results(folder, calls, **settings):
    """The results of calls in a process of their own, a list of numbers of each."""
    folder.mkdir()
    (folder / "given.json").write_text(json.dumps(calls), encoding="utf-8")
    return json.loads(sub.run(PROGRAM, folder, seconds=300, **sub.shared(), **settings))


def call(name, p, q, dtype="float64", **how):
    return name, dtype, how, p.tolist(), q.tolist()


def of_families(name, lengths, kind="prob", dtype="float64", among=None, **how):
    """Calls for pairs of rows of every family."""
    rng = np.random.default_rng(3)
    for family in among or families(dtype):
        for n in lengths:
            for _ in range(DRAWS):
                yield call(name, *draw(families(dtype)[family], rng, n, kind, dtype), dtype, kind=kind, **how)


def few():
    yield from of_families(FUNCTION, (31, 200), among=USUAL)
    yield from of_families(FUNCTION, (700,), kind="log_prob", normalize=False, among=USUAL)


def many():
    yield from of_families(FUNCTION, (200,), dtype="float32", among=USUAL)
    yield from of_families(FUNCTION, (31,), kind="log_prob", normalize=False, among=USUAL)
    yield from of_families(FUNCTION, (9_000,), kind="logit", dtype="float32", among=("ordinary",))
    yield from of_families("cross_entropy", (300,), kind="logit", among=USUAL)
    yield from of_families("js_divergence", (31, 200), among=USUAL)
    yield from of_families("value_and_grad", (40, 700), among=USUAL)


@pytest.mark.skipif(not registers.fuses(cpu_target.target_context), reason="compares with fused multiply-add")
@pytest.mark.parametrize("made", [few, pytest.param(many, marks=pytest.mark.slow)])
def test_the_width_of_registers_does_not_show(made, tmp_path):
    calls = list(made())
    assert results(tmp_path / "narrow", calls, **sub.NARROW) == results(tmp_path / "here", calls)


@pytest.mark.parametrize("kind", ["prob", pytest.param("logit", marks=pytest.mark.slow)])
def test_errors_are_as_small_without_fused_multiply_add(kind, tmp_path):
    rng = np.random.default_rng(4)
    cases = [case for case in hard_rows.HARD if (case.dtype, case.kind, case.function) == ("float64", kind, FUNCTION)]
    limits, calls = [bound("prob", "float64")], [call("generalized_kl", *np.array(HUGE))]
    for case in cases:
        calls += [call(FUNCTION, *hard_rows.draw(case, rng), kind=kind) for _ in range(DRAWS)]
        limits += [case.limit] * DRAWS
    more = [*of_families(FUNCTION, (10, 200, 300), kind)]
    calls, limits = calls + more, limits + [bound(kind, "float64")] * len(more)
    found = results(tmp_path / "without", calls, **sub.WITHOUT_FMA)
    for (value,), limit, (name, dtype, how, p, q) in zip(found, limits, calls, strict=True):
        truth, scale = mp.of_rows(name, p, q, kind, True) if how else (mp.generalized_kl(p, q), None)
        assert mp.ulp_error(value, truth, dtype, scale) <= limit, (name, p, q)
