"""The machine code of the kernels, made without a device: no spills, wide loads, float32 that stays float32."""

import re

import pytest

from tests.gpu import compiled, convergence

MISSING = compiled.installed()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

ALL = [] if MISSING else compiled.kernels()
RUNS = [
    pytest.param(kernel, id=kernel.name, marks=[] if compiled.is_first_choice(kernel) else pytest.mark.slow)
    for kernel in ALL
]
SLACK = 1.1  # of the recorded number of instructions: compilers differ from release to release
REGISTERS = 16  # more than recorded
SPILLS = 16  # bytes more than recorded, outside the loops over cells
ACCUMULATION = {"add.f64", "add.rn.f64", "cvt.f64.f32"}  # all that a float32 loop may do in float64


@pytest.fixture(autouse=True)
def _no_device(monkeypatch):
    monkeypatch.setattr(compiled.stubbed(), "get_current_device", compiled.Stub)


@pytest.mark.part(8)
@pytest.mark.parametrize("kernel", RUNS)
def test_kernel(kernel):
    recorded, ptx = compiled.load()[kernel.name], compiled.ptx_of(kernel)
    assert convergence.faults(ptx) == []
    found = compiled.measured(kernel, ptx)
    for major, minor in compiled.TARGETS:
        code = found[f"sm_{major}{minor}"]
        assert code["spills"] <= recorded[f"sm_{major}{minor}"]["spills"] + SPILLS
        assert code.get("spills in loops", 0) <= recorded[f"sm_{major}{minor}"].get("spills in loops", 0)
        assert code["registers"] <= recorded[f"sm_{major}{minor}"]["registers"] + REGISTERS
        assert code["registers"] * kernel.threads <= 65536
    assert found["instructions"] <= SLACK * recorded["instructions"]
    for name in ("instructions per cell", "float64 instructions per cell"):
        assert found.get(name, 0) <= SLACK * recorded.get(name, 0)
    assert found.get("wide loads") == recorded.get("wide loads")


@pytest.mark.part(3)
@pytest.mark.parametrize("store", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["prob", "log"])
def test_float32_loops_use_float64_to_add_up_alone(kind, store):
    (kernel,) = [kernel for kernel in ALL if kernel.name == f"kl-{kind}-{store}-32"]
    loop = compiled.hot_loop(compiled.ptx_of(kernel))
    wide = [name for name in compiled.instructions(loop) if ".f64" in name]
    assert set(wide) <= ACCUMULATION
    # Three sums of the cells of two groups, each converted and added. Nothing is rounded to float32 anew for each cell.
    assert len(wide) == 6


@pytest.mark.parametrize("store", compiled.STORES)
def test_loads_are_wide_and_one_read_divides_once_a_cell(store):
    (kernel,) = [kernel for kernel in ALL if kernel.name == f"kl-prob-{store}-32"]
    loop = compiled.hot_loop(compiled.ptx_of(kernel))
    assert len(re.findall(compiled.WIDE_LOAD, loop)) == (8 if store == "float64" else 4)
    assert not re.search(r"ld\.global\S*\.[bfus]\d+\s", re.sub(compiled.WIDE_LOAD, "", loop))
    assert len(re.findall(r"\brcp\.approx", loop)) == compiled.cells_of_loop(store)
    assert not re.search(r"\bdiv\.", loop)


# Divisions in the loop over the cells of the second read. KL takes it for the rows that one read does not serve;
# Jensen-Shannon has two ratios a cell, Jeffreys one in two forms.
DIVISIONS = {"kl": 3, "js": 6, "jeffreys": 2, "cross_entropy": 1, "entropy": 1, "max_log_ratio": 1}


@pytest.mark.part(3)
@pytest.mark.parametrize("name", compiled.NAMES)
def test_divisions_of_the_second_read(name):
    (kernel,) = [kernel for kernel in ALL if kernel.name == f"{name}-prob-normalized-float64"]
    loops = [loop for loop in compiled.loops(compiled.ptx_of(kernel)) if "ld.global" in loop]
    assert max(len(re.findall(r"\bdiv\.", loop)) for loop in loops) <= DIVISIONS[name]


@pytest.mark.parametrize("store", ["float32", "float16", "bfloat16"])
def test_powers_are_an_instruction_each(store):
    (kernel,) = [kernel for kernel in ALL if kernel.name == f"kl-log-{store}-32"]
    loop = compiled.hot_loop(compiled.ptx_of(kernel))
    assert len(re.findall(r"\bex2\.approx", loop)) == 2 * compiled.cells_of_loop(store)


def test_sums_that_keep_their_rounding_error_are_never_contracted():
    (kernel,) = [kernel for kernel in ALL if kernel.name == "kl-prob-float64-32"]
    assert "add.rn.f64" in compiled.hot_loop(compiled.ptx_of(kernel))


def test_as_many_thresholds_as_stay_on_a_device_are_a_launch_and_link():
    from numba.cuda import types

    from klnumba.kernels.cuda import accumulate, flat, launch

    most = accumulate.MOST_THRESHOLDS
    wide, whole, narrow = (launch.cells_of(name) for name in ("float64", "int64", "int32"))
    kinds = (wide, narrow, wide, narrow, int, (float,) * most, *[whole] * 5, int, int)
    sizes = [1 if kind in (int, float) else len(kind) if isinstance(kind, tuple) else 7 for kind in kinds]
    assert sum(sizes) <= launch.MOST
    function = accumulate.rows(True, False, True, most)
    kernel = compiled.Kernel("many-thresholds", "float64", function, launch.signature(kinds), flat.THREADS)
    assert isinstance(kernel.arguments[5], types.UniTuple)
    assert compiled.linked(compiled.ptx_of(kernel), (8, 0))["registers"] * flat.THREADS <= 65536
