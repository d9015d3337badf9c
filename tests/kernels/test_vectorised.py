"""The hot loops, read as machine code: vectors of cells, not one cell after another.

Vectorisation fails silently: one call of the mathematical library, or one
branch, and a loop runs at a quarter of its speed with the right values. So
every hot loop is compiled, for this processor and for older ones, and its
innermost loops are searched for one that does the arithmetic in vectors.
"""

from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kernels import sub

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="reads the assembly of x86-64 alone"
)

# What Numba is told to compile for. "here" is the processor that runs the test.
AVX512 = "+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
HASWELL = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2"}
PROCESSORS = {
    "here": {},
    "here, the others": {},
    "avx2": HASWELL,
    "avx2, the others": HASWELL,
    "icelake": {"NUMBA_CPU_NAME": "icelake-server", "NUMBA_CPU_FEATURES": f"{AVX512},+avx512vbmi,+avx512vbmi2"},
    "zen": {"NUMBA_CPU_NAME": "znver4", "NUMBA_CPU_FEATURES": f"{AVX512},+avx512vbmi,+avx512vbmi2"},
    "skylake": {"NUMBA_CPU_NAME": "skylake-avx512", "NUMBA_CPU_FEATURES": AVX512},
    "sse2": sub.WITHOUT_FMA,
}

ROWS, PLAIN_ROWS = (
    [("quick_rows", "kl", dtype, short, normalize) for dtype in ("float64", "float32") for short in (True, False)]
    for normalize in (True, False)
)
PAIR_ROWS = [
    ("quick_rows", "js", "float64", True, True),
    ("quick_rows", "js", "float64", False, True),
    ("quick_rows", "jeffreys", "float64", False, True),
    ("quick_rows", "cross_entropy", "float64", True, True),
    ("quick_rows", "cross_entropy", "float32", False, True),
]
SCALED = [("scaled_rows", "js", "float64", False), ("scaled_rows", "cross_entropy", "float64", True)]
EXACT = [("exact_rows", name, "float64", False, short) for name in ("kl", "js") for short in (True, False)]
LOGS = [("log_rows", name, "float64", short) for name in ("kl", "js") for short in (False, True)]
LOGITS = [("logit_rows", "float32"), ("logit_rows", "float64"), ("short_logit_rows", "float64")]
LOG_SUMS = [
    ("log_sum_rows", name, "float64", short) for name in ("entropy", "cross_entropy", "js") for short in (True, False)
]
PLAIN_LOGS = [("plain_log_rows", name, "float64", short) for name in ("kl", "js") for short in (True, False)]
RISES = [("rise_rows", "float64", True, short) for short in (False, True)]
MEANS = [("mean_rows", "kl", "float64", short) for short in (False, True)]
SLOPES = [("slope_rows", "kl", "float64", logs, short, True) for logs in (False, True) for short in (False, True)]
JS_SLOPES = [("slope_rows", "js", "float64", True, short, True) for short in (False, True)]
CELLS = [("cells_pointwise", name, "float64") for name in ("rel_entr", "generalized_kl")]
DISTRIBUTIONS = [("pair", family) for family in ("Normal", "Gamma", "Beta", "Dirichlet")]
NO_DIVISION = {*RISES, *MEANS, *SLOPES[2:], *LOGS[:2], *LOGITS, *LOG_SUMS, *PLAIN_LOGS}

# Without AVX2 a processor has no comparison of 64-bit integers, which the float64 cells are made of, and no fused
# multiply-add, which the exact loops call.
JOBS = {
    "here": [
        *ROWS[:2],
        PAIR_ROWS[0],
        SCALED[0],
        EXACT[0],
        LOGS[1],
        LOG_SUMS[4],
        PLAIN_LOGS[0],
        RISES[0],
        SLOPES[0],
        CELLS[0],
        DISTRIBUTIONS[0],
    ],
    "here, the others": [
        ROWS[3],
        *(PLAIN_ROWS[k] for k in (0, 1, 3)),
        *PAIR_ROWS[1:],
        SCALED[1],
        *EXACT[1:],
        LOGS[0],
        *LOGS[2:],
        *LOGITS,
        *LOG_SUMS[:4],
        LOG_SUMS[5],
        *PLAIN_LOGS[1:],
        RISES[1],
        *MEANS,
        *SLOPES[1:],
        *JS_SLOPES,
        CELLS[1],
        *DISTRIBUTIONS[1:],
    ],
    "icelake": [ROWS[1], DISTRIBUTIONS[0]],
    "zen": [LOGITS[0]],
    "skylake": [ROWS[1]],
    "avx2": [ROWS[1], CELLS[0]],
    "avx2, the others": [LOGS[0], *LOG_SUMS[2:], DISTRIBUTIONS[0]],
    "sse2": [ROWS[3]],
}
# Skylake's clock falls with whole registers: there LLVM takes half of them.
PREFERRED = {"icelake": "zmm", "zen": "zmm", "skylake": "ymm", "avx2": "ymm", "avx2, the others": "ymm", "sse2": "xmm"}
WIDEST, PLAIN = ROWS[1], ("plain",)
REGISTERS = ("zmm", "ymm", "xmm")  # the widest first

PROGRAM = """
import json
import math
import numpy as np
from numba import types
from klnumba.formulas import finish
from klnumba.formulas.row_cells import kl_cell
from klnumba import distributions
from klnumba.distributions import dirichlet, registry
from klnumba.kernels import cpu, elementwise, fast, shares
from klnumba.kernels.compiler import loop

def library_cell(p, q, c):
    value, guard = kl_cell(p, q, c)
    return value + p * math.log(p / q), guard

def control():
    library_cell.__module__ = "klnumba.formulas.control"
    cells = cpu.cells_of(np.dtype("float64"))
    INT = cpu.INT
    given = cells, INT, INT, cells, INT, INT, INT, INT, cpu.VALUES, cpu.FLAGS, shares.TURN
    signature = cpu.INT(*given, *cpu.ROOM)
    rows = fast.long_rows(library_cell, finish.kl_finish, np.dtype("float64"))
    return loop("control", rows, signature)

def plain():
    def squares(x, out):
        for k in range(out.size):
            out[k] = x[k] * x[k] + 1.0
    return loop("plain", squares, types.void(cpu.cells_of(np.dtype("float64")), cpu.VALUES), cached=False)

def pair(name):
    if name == "Dirichlet":
        return elementwise.over_rows(dirichlet.stick_by_stick, 2)
    family = getattr(distributions, name)
    return elementwise.over_columns(registry.find(family, family).function, 2 * len(family.parameters))

def build(name, *args):
    return {"control": control, "pair": pair, "plain": plain}.get(name, getattr(cpu, name, None))(*args)

for job in JOBS:
    print(json.dumps([job, "\\n".join(build(*job).inspect_asm().values())]))
"""

ARITHMETIC = re.compile(r"v?(?:add|sub|mul|div|fn?m(?:add|sub)\d*)([ps])[sd]$")


@dataclass
class Loop:
    """How many instructions of each sort an innermost loop has."""

    packed: int
    scalar: int
    packed_divisions: int
    packed_products: int  # fused or plain multiplications
    scalar_products: int
    calls: int
    stores: int  # of vectors
    text: str

    @classmethod
    def read(cls, lines: list[str]) -> Loop:
        words = [line.split()[0] for line in lines if line and line[0] not in ".#"]
        found = [(word, match[1]) for word in words if (match := ARITHMETIC.match(word))]

        def count(width: str, *parts: str) -> int:
            return sum(w == width and any(part in word for part in parts or [""]) for word, w in found)

        products = ("mul", "fm", "fnm")
        calls = sum(word.startswith("call") for word in words)
        return cls(
            count("p"), count("s"), count("p", "div"), count("p", *products), count("s", *products), calls,
            sum(re.match(r"v\w+\s.*\)$", line) is not None for line in lines), "\n".join(lines),
        )  # fmt: skip

    def is_vectorised(self, *, division: bool) -> bool:
        """Packed arithmetic, no scalar rival, no call."""
        enough = self.packed_products >= 5 and self.packed_products > self.scalar_products
        return enough and self.packed > self.scalar and not self.calls and (self.packed_divisions > 0 or not division)


def innermost_loops(assembly: str) -> list[Loop]:
    """The stretches from a label to the jump back to it that hold no other such stretch."""
    lines = [line.strip() for line in assembly.splitlines()]
    place = {line[:-1]: i for i, line in enumerate(lines) if line.startswith(".L") and line.endswith(":")}
    spans = []
    for i, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.L\w+)$", line)
        if jump and place.get(jump[1], i) < i:
            spans.append((place[jump[1]], i))
    inner = [(a, b) for a, b in spans if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)]
    return [Loop.read(lines[a : b + 1]) for a, b in inner]


def vectorised(loops: list[Loop], *, division: bool) -> list[Loop]:
    """Those that are, among the longest but for sums of rows: packed arithmetic alone, or no product and no call."""
    longest = max((one.packed + one.scalar for one in loops if one.calls or one.scalar_products), default=0)
    return [one for one in loops if one.is_vectorised(division=division) and 2 * one.packed >= longest]


def made(packed: int, scalar: int, divisions: int, products: int | None = None) -> Loop:
    return Loop(packed, scalar, divisions, packed // 2, scalar // 2 if products is None else products, 0, 0, "")


def test_what_counts_as_vectorised():
    """A long scalar loop beside it says that the short one is not where the time goes; one of packed sums does not."""
    good = made(44, 0, 2)
    assert vectorised([good, made(0, 45, 0), made(128, 0, 0)], division=True) == [good]
    assert vectorised([good, made(0, 90, 0)], division=True) == []
    assert vectorised([good, made(0, 90, 0, products=0)], division=True) == [good]
    assert vectorised([good, made(0, 45, 0), made(128, 0, 0)], division=False) == [good, made(128, 0, 0)]


def assemblies(processor: str, jobs: list[tuple[object, ...]], folder: Path) -> dict[tuple[object, ...], str]:
    program = f"JOBS = {jobs!r}\n{PROGRAM}"
    out = sub.run(program, folder, seconds=600, KLNUMBA_CACHE="0", **PROCESSORS[processor])
    return {tuple(job): text for job, text in map(json.loads, out.splitlines())}


def describe(loops: list[Loop]) -> str:
    loops = sorted(loops, key=lambda one: one.packed + one.scalar, reverse=True)
    return "\n".join(
        f"packed {one.packed}, scalar {one.scalar}, packed divisions {one.packed_divisions}, calls {one.calls}"
        for one in loops[:5]
    )


ZEN = pytest.param("zen", marks=pytest.mark.slow)  # its loops take long to compile, and are much like Ice Lake's
# much like the first
HERE_TOO, AVX2_TOO = (pytest.param(f"{name}, the others", marks=pytest.mark.slow) for name in ("here", "avx2"))


@pytest.mark.parametrize("processor", ["here", HERE_TOO, "icelake", ZEN, "skylake", "avx2", AVX2_TOO, "sse2"])
def test_hot_loops_are_vectorised(tmp_path, processor):
    slow = []
    found = assemblies(processor, [PLAIN, *JOBS[processor]], tmp_path)
    preferred = widest(found.pop(PLAIN))
    assert preferred == PREFERRED.get(processor, preferred)
    for job, assembly in found.items():
        assert "\t.weak\t" not in assembly, f"{job} would take pieces of other loops for its own"
        loops = innermost_loops(assembly)
        good = vectorised(loops, division=job not in NO_DIVISION)
        if not good:
            slow.append(f"{job}: no vectorised loop among\n{describe(loops)}")
        elif job == WIDEST and not any(f"%{preferred}" in one.text for one in good):
            slow.append(f"{job}: no {preferred} register in\n{describe(good)}")
    assert not slow, "\n".join(slow)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["icelake", "zen"])
def test_memory_is_asked_for(tmp_path, processor):
    """Also within the loops over logits whose seven sums and largest numbers stay in registers."""
    (assembly,) = assemblies(processor, [LOGITS[0]], tmp_path).values()
    quick = [one for one in innermost_loops(assembly) if 40 < one.packed < 75 and "vpmaxud" in one.text]
    in_registers = [one for one in quick if one.stores < 3]
    assert len({one.packed for one in in_registers}) == 2, describe(quick)  # with less and more care for x - y
    assert all("prefetch" in one.text for one in in_registers)


def widest(assembly: str) -> str:
    """The registers that the compiler takes for a plain loop."""
    loops = [one for one in innermost_loops(assembly) if one.packed]
    return next(register for register in REGISTERS if any(f"%{register}" in one.text for one in loops))


def test_a_library_call_is_found(tmp_path):
    """The check fails, as it must, on the same loop around a cell that calls the library's logarithm."""
    (assembly,) = assemblies("here", [("control",)], tmp_path).values()
    loops = innermost_loops(assembly)
    assert any(one.calls for one in loops)
    assert not vectorised(loops, division=True), describe(loops)


def test_the_reading_of_loops():
    text = """
    .LBB0_1:
        xorl %eax, %eax
    .LBB0_2:
        vmulpd %zmm0, %zmm1, %zmm2
        vfmadd213sd %xmm1, %xmm2, %xmm3
        vdivpd (%rax), %zmm3, %zmm3
        vmovups %zmm3, 64(%rsp)
        jne .LBB0_2
        callq *%rax
        jmp .LBB0_1
    """
    (one,) = innermost_loops(text)
    assert (one.packed, one.scalar, one.packed_divisions, one.calls, one.stores) == (2, 1, 1, 0, 1)
    assert (one.packed_products, one.scalar_products) == (1, 1)
    assert not one.is_vectorised(division=True)
