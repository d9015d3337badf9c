"""Every kernel compiled and linked without a device: what the compiler and the linker say of it.

    python -m tests.gpu.compiled

writes `tests/gpu/instructions.json`, which `test_compiled` compares with; `python -m tests.gpu.compiled slope-cells`
measures the kernels with this in their names anew, and those that are new.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).parent / "instructions.json"
TARGETS = ((8, 0), (9, 0), (10, 0))
DISASSEMBLED = (9, 0)
STORES = ("float64", "float32", "float16", "bfloat16")
NAMES = ("kl", "js", "jeffreys", "cross_entropy", "entropy", "max_log_ratio")


class Kernel(NamedTuple):
    """A kernel by name, with the types of its arguments."""

    name: str
    store: str
    function: Any
    arguments: tuple[Any, ...]
    threads: int


class Stub:
    """The device that a compilation is for: numba asks for the one at work, and there is none."""

    compute_capability = (8, 0)


def stubbed() -> Any:
    """numba's dispatcher module, whose `get_current_device` is to be replaced by a `Stub`."""
    import numba.cuda.dispatcher as dispatcher

    return dispatcher


def installed() -> str | None:
    """What is missing for these tests, or None."""
    try:
        import cuda.core  # noqa: F401
        import numba_cuda  # noqa: F401
    except ImportError:
        return 'the CUDA compiler is not installed: python -m pip install "klnumba[cuda13]"'
    if disassembler() is None:
        return "the disassembler is not installed: python -m pip install nvidia-cuda-nvdisasm"
    return None


def kernels() -> list[Kernel]:
    """All kernels over rows, in every dtype; of the others, one of each."""
    return [*quick_kernels(), *divergences(), *long_rows(), *several(), *states(), *flats(), *pairs(), *slopes()]


def _types() -> tuple[Any, Any]:
    from numba.cuda import types

    return types, lambda name: types.Array(getattr(types, name), 1, "C")


def quick_kernels() -> Iterator[Kernel]:
    from klnumba.kernels.cuda import choice, rows
    from klnumba.kernels.cuda.logits import KNOWN, QUICK

    for store in STORES:
        arguments = _row_arguments(store)
        for _, chosen in choice.table(store):
            for logs in (False, True):
                by = "" if chosen.grouped else "-by-two"
                name = f"kl-{'log' if logs else 'prob'}-{store}-{chosen.width}{by}"
                yield Kernel(name, store, rows.one("kl", logs, True, QUICK, store, chosen), arguments, chosen.threads)
        chosen = choice.WARP
        yield Kernel(
            f"kl-known-{store}-{chosen.width}", store, rows.one("kl", True, True, KNOWN, store, chosen), arguments,
            chosen.threads,
        )  # fmt: skip


def _row_arguments(store: str) -> tuple[Any, ...]:
    from klnumba.kernels.cuda.cells import COMPUTED, STORED

    types, array = _types()
    i, f = types.int64, types.float64
    cells = array(STORED[store])
    return cells, i, cells, i, i, i, f, f, f, f, array(COMPUTED[store])


def divergences() -> Iterator[Kernel]:
    from klnumba.kernels.cuda import choice, rows

    chosen = choice.WARP
    for store in STORES:
        arguments = _row_arguments(store)
        for name in NAMES:
            for logs in (False, True):
                for normalize in (True, False):
                    title = f"{name}-{'log' if logs else 'prob'}-{'normalized' if normalize else 'plain'}-{store}"
                    function = rows.one(name, logs, normalize, "", store, chosen)
                    yield Kernel(title, store, function, arguments, chosen.threads)
        function = rows.one("argmax_agree", False, True, "", store, chosen)
        yield Kernel(f"argmax-{store}", store, function, (*arguments[:-1], _types()[1]("uint8")), chosen.threads)


def several() -> Iterator[Kernel]:
    """All statistics of `row_statistics` at once, of short rows and of long ones."""
    from klnumba.kernels.cuda import choice, rows
    from klnumba.kernels.cuda.stages import program
    from klnumba.reduction import SOURCES, STATISTICS

    types, array = _types()
    chosen, plan = choice.WARP, tuple(SOURCES[name] for name in STATISTICS)
    for store in STORES:
        arguments = _row_arguments(store)
        outs = types.Tuple([array("uint8") if name == "argmax_agree" else arguments[-1] for name, _ in plan])
        for logs in (False, True):
            kind = "log" if logs else "prob"
            function = rows.several(plan, logs, True, "quick", store, chosen)
            yield Kernel(f"several-{kind}-{store}", store, function, (*arguments[:-1], outs), chosen.threads)
            function = program(plan, logs, True, store, "quick")
            found = _long_arguments(store, outs)
            yield Kernel(f"long-several-{kind}-{store}", store, function, found, choice.LONG.threads)


def _long_arguments(store: str, outs: Any) -> tuple[Any, ...]:
    types, array = _types()
    i, f = types.int64, types.float64
    wide, narrow = array("float64"), array("int32")
    cells = _row_arguments(store)[0]
    return cells, i, cells, i, i, i, i, f, f, wide, wide, narrow, narrow, narrow, outs


def long_rows() -> Iterator[Kernel]:
    from klnumba.kernels.cuda import choice
    from klnumba.kernels.cuda.stages import program

    types = _types()[0]
    for store in STORES:
        arguments = _long_arguments(store, types.Tuple([_row_arguments(store)[-1]]))
        for name, normalize in (("kl", True), ("kl", False), ("cross_entropy", True)):
            for logs in (False, True):
                how = "" if normalize else "-plain"
                title = f"long-{name}-{'log' if logs else 'prob'}{how}-{store}"
                function = program(((name, "pq"),), logs, normalize, store, "quick" if normalize else "")
                yield Kernel(title, store, function, arguments, choice.LONG.threads)


def states() -> Iterator[Kernel]:
    """The kernels of accumulators."""
    from klnumba.kernels.cuda import accumulate, flat

    types, array = _types()
    i, wide, whole, narrow = types.int64, array("float64"), array("int64"), array("int32")
    for weighted in (False, True):
        name = "weighted" if weighted else "plain"
        for grouped in (False, True):
            function = accumulate.rows(weighted, grouped, weighted, 2)
            limits = types.UniTuple(types.float64, 2)
            arguments = (wide, narrow, wide, narrow, i, limits, whole, whole, whole, whole, whole, i, i)
            title = f"accumulate-{name}{'-groups' if grouped else ''}"
            yield Kernel(title, "float64", function, arguments, flat.THREADS)
        yield Kernel(f"carried-{name}", "float64", accumulate.carried(weighted, 2), (i, whole), flat.THREADS)
    yield Kernel("no-extremes", "float64", accumulate.no_extremes(), (whole,), flat.THREADS)


def flats() -> Iterator[Kernel]:
    from klnumba.kernels.cpu import POINTWISE
    from klnumba.kernels.cuda import flat, pieces
    from klnumba.kernels.cuda import sums as exact
    from klnumba.kernels.cuda.cells import COMPUTED, STORED

    types, array = _types()
    i, f = types.int64, types.float64
    shape = types.UniTuple(i, 2)
    wide, byte = array("float64"), array("uint8")
    for store in STORES:
        cells, out = array(STORED[store]), array(COMPUTED[store])
        for name in POINTWISE:
            arguments = (cells, i, cells, i, f, byte, i, shape, shape, out)
            yield Kernel(f"{name}-{store}", store, flat.pointwise(name, store, store, True), arguments, flat.THREADS)
        arguments = (cells, i, shape, shape, byte, i, shape, f, cells)
        yield Kernel(f"copy-{store}", store, flat.copy(store, store, True, False), arguments, flat.THREADS)
        sums = (cells, i, cells, i, i, i, array("int64"), wide)
        yield Kernel(f"sum-of-cells-{store}", store, exact.of_cells("kl_div", store, store), sums, flat.THREADS)
    yield Kernel(
        "sum-of-values", "float64", exact.of_values(), (wide, i, wide, i, i, i, array("int64"), wide), flat.THREADS
    )
    yield Kernel("filled", "float64", flat.filled(), (f, wide), flat.THREADS)
    tickets = array("int32")
    yield Kernel("start", "float64", pieces.start(), (i, wide, tickets, tickets, tickets, f, f), flat.THREADS)


def pairs() -> Iterator[Kernel]:
    """Pairs of distributions whose formula has a quick form, and one that has none."""
    from klnumba import distributions
    from klnumba.distributions.registry import find
    from klnumba.kernels.cuda import elementwise, flat

    types, array = _types()
    wide = array("float64")
    for name in ("Normal", "Gamma", "Beta", "Laplace"):
        family = getattr(distributions, name)
        function = elementwise.over_columns(find(family, family).function, 4)
        arguments = (types.UniTuple(wide, 4), types.UniTuple(types.int64, 4), types.float64, wide)
        yield Kernel(f"pair-{name}", "float64", function, arguments, flat.THREADS)


def slopes() -> Iterator[Kernel]:
    """Derivatives: by both sides and by q alone, of KL; of the others, by both."""
    from klnumba.formulas.slopes import CELLS, SLOPES
    from klnumba.kernels.cuda import choice, flat
    from klnumba.kernels.cuda import slopes as kernels
    from klnumba.kernels.cuda.cells import COMPUTED, STORED

    types, array = _types()
    i, f, chosen = types.int64, types.float64, choice.WARP
    shape, both = types.UniTuple(i, 2), (True, True)
    for store in STORES:
        cells, out = array(STORED[store]), array(COMPUTED[store])
        arguments = (cells, i, cells, i, i, i, f, f, f, f, array("float64"), i, out, out)
        for name in SLOPES:
            for by in (both, (False, True)) if name == "kl" else (both,):
                for logs in (False, True):
                    title = f"{name}-slopes-{'log' if logs else 'prob'}-by-{'p' * by[0]}q-{store}"
                    function = kernels.of_rows(name, logs, True, by, store, "float64", chosen)
                    yield Kernel(title, store, function, arguments, chosen.threads)
        for name in CELLS:
            arguments = (cells, i, cells, i, out, i, f, array("uint8"), i, shape, shape, i, out, out)
            function = kernels.of_cells(name, store, store, COMPUTED[store], True, both)
            yield Kernel(f"{name}-slope-cells-{store}", store, function, arguments, flat.THREADS)
    wide = array("float64")
    yield Kernel(
        "folded", "float64", kernels.folded(True),
        (wide, shape, shape, shape, i, shape, array("uint8"), i, shape, shape, wide), flat.THREADS,
    )  # fmt: skip


def is_first_choice(kernel: Kernel) -> bool:
    """Whether a kernel is one of those that stand for the others where time is short: a warp a row, three dtypes."""
    rest = ("max", "jeffreys", "argmax", "pair-Beta", "several", "long-several")
    if kernel.store == "float16" or kernel.name.startswith(rest):
        return False
    if "slope" in kernel.name:
        return kernel.store == "float64" and kernel.name.startswith(("kl-slopes", "kl_div-slope"))
    quick = re.fullmatch(r"kl-(prob|log)-\w+-32", kernel.name) is not None
    rare = kernel.store == "float64" and re.match(r"(js|entropy|kl)-(prob|log)-normalized", kernel.name) is not None
    return quick or rare or "quick" in kernel.name or (kernel.store == "float64" and "-log" not in kernel.name)


def ptx_of(kernel: Kernel) -> str:
    """The PTX of a kernel for the least target; it serves for those that came later."""
    from numba import cuda

    text, _ = cuda.compile(
        kernel.function.py_func, kernel.arguments, cc=Stub.compute_capability, device=False, abi="numba", output="ptx",
        launch_bounds=kernel.function.targetoptions["launch_bounds"],
    )  # fmt: skip
    return str(text)


def linked(ptx: str, target: tuple[int, int]) -> dict[str, int]:
    """Registers of the machine code for a target, and spilled bytes: of the kernel, and of what it calls in rare cases.

    A function that is called keeps its caller's registers on the stack: these bytes are among its own.
    """
    from cuda.core import Linker, LinkerOptions, ObjectCode

    from klnumba.kernels.cuda.target import REGISTERS

    options = LinkerOptions(
        arch=f"sm_{target[0]}{target[1]}", ptxas_options=["-v"], max_register_count=REGISTERS
    )  # fmt: skip
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    code = linker.link("cubin").code
    called, _, own = linker.get_info_log().partition("Compiling entry function")
    spills, rare = (sum(map(int, re.findall(r"(\d+) bytes spill stores", text))) for text in (own, called))
    found = {"registers": registers(bytes(code)), "spills": spills, "spills in rare cases": rare}
    return found | ({"spills in loops": spills_in_loops(bytes(code))} if target == DISASSEMBLED else {})


def disassembler() -> str | None:
    """Where NVIDIA's disassembler lies."""
    try:
        files = metadata.files("nvidia-cuda-nvdisasm") or []
    except metadata.PackageNotFoundError:
        return shutil.which("nvdisasm")
    return next((str(path.locate()) for path in files if path.name == "nvdisasm"), None)


def spills_in_loops(cubin: bytes) -> int:
    """Loads and stores of spilled registers in the innermost loops that read cells."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(disassembler()), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    inner = loops(text, r"(\.L_\w+):", r"\bBRA\b.*`\((\.L_\w+)\)")
    return sum(len(re.findall(r"\b(?:STL|LDL)\b", loop)) for loop in inner if "LDG" in loop)


def registers(cubin: bytes) -> int:
    """The registers of a thread, those of called functions included, from the notes in the machine code."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + k * size) for k in range(count)]
    names = sections[names_at][4]
    found = []
    for section in sections:
        start = names + section[0]
        if cubin[start : cubin.index(b"\0", start)] == b".nv.info":
            notes, at = cubin[section[4] : section[4] + section[5]], 0
            while at < len(notes):
                form, kind, length = struct.unpack_from("<BBH", notes, at)
                if form == SIZED and kind == REGISTER_COUNT:
                    found.append(struct.unpack_from("<II", notes, at + 4)[1])
                at += 4 + (length if form == SIZED else 0)
    return max(found)


SIZED, REGISTER_COUNT = 0x04, 0x2F  # of notes in machine code


def entry(ptx: str) -> str:
    """The kernel itself, without the functions that it calls."""
    parts = re.split(r"(?=^\.(?:visible|func|weak|entry))", ptx, flags=re.M)
    (found,) = [part for part in parts if ".entry" in part and "{" in part]
    return found


def hot_loop(ptx: str) -> str | None:
    """The innermost loop with the most loads of 16 bytes, as text; None where there is none."""
    found = [loop for loop in loops(entry(ptx)) if re.search(WIDE_LOAD, loop)]
    return max(found, key=lambda loop: len(re.findall(WIDE_LOAD, loop)), default=None)


def loops(text: str, label: str = r"(\$L\w+):", jump: str = r"bra(?:\.uni)?\s+(\$L\w+)") -> list[str]:
    """Every innermost loop of the kernel and of what it calls, as text."""
    lines = text.splitlines()
    labels = {match[1]: k for k, line in enumerate(lines) if (match := re.match(label, line))}
    backward = [
        (labels[match[1]], k)
        for k, line in enumerate(lines)
        if (match := re.search(jump, line)) and labels[match[1]] < k
    ]
    inner = [one for one in backward if not any(one[0] <= a and b <= one[1] and (a, b) != one for a, b in backward)]
    return ["\n".join(lines[start : end + 1]) for start, end in inner]


def cells_of_loop(store: str) -> int:
    """Cells that a thread takes in one turn of the loop over whole groups, of which there are two in it."""
    from klnumba.kernels.cuda.cells import GROUP

    return 2 * GROUP[store]


WIDE_LOAD = r"ld\.global\S*\.(?:v4\.[bfus]32|v2\.[bfus]64)"


def instructions(text: str) -> list[str]:
    """The names of the instructions in a piece of PTX."""
    return re.findall(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.]*)[^;]*;", text, flags=re.M)


def measured(kernel: Kernel, ptx: str) -> dict[str, Any]:
    """What the table holds of a kernel."""
    cells = cells_of_loop(kernel.store)
    record: dict[str, Any] = {"kernel": kernel.name, "instructions": len(instructions(ptx))}
    loop = hot_loop(ptx)
    if loop is not None:
        names = instructions(loop)
        record["instructions per cell"] = round(len(names) / cells, 1)
        record["wide loads"] = len(re.findall(WIDE_LOAD, loop))
        record["float64 instructions per cell"] = round(sum(".f64" in name for name in names) / cells, 2)
    record |= {f"sm_{major}{minor}": linked(ptx, (major, minor)) for major, minor in TARGETS}
    return record


def main() -> None:
    """Measure and write; of kernels whose names have none of the words that are given, the old record stays."""
    stubbed().get_current_device = Stub
    old = load() if sys.argv[1:] else {}
    chosen = {k.name for k in kernels() if k.name not in old or any(word in k.name for word in sys.argv[1:])}
    found = (measured(k, ptx_of(k)) if k.name in chosen else old[k.name] for k in kernels())
    records = ",\n".join(map(json.dumps, found))
    TABLE.write_text(f"[\n{records}\n]\n", encoding="utf-8")


def load() -> dict[str, dict[str, Any]]:
    """The recorded measurements by kernel."""
    return {record["kernel"]: record for record in json.loads(TABLE.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    main()
