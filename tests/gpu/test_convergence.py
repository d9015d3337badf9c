"""That the check of barriers finds what hangs a device, and nothing else."""

import pytest

from tests.gpu import convergence


def ptx(*lines):
    return ".visible .entry kernel()\n{\n" + "\n".join(lines) + "\n}\n"


THREAD = ("mov.u32 %r1, %tid.x;", "setp.eq.s32 %p1, %r1, 0;")
FAULTY = {
    "a barrier in each branch": (
        *THREAD, "@%p1 bra $L_2;", "bar.sync 0;", "bra.uni $L_3;", "$L_2:", "bar.sync 0;", "$L_3:", "ret;",
    ),
    "a barrier that some pass over": (*THREAD, "@%p1 bra $L_2;", "bar.sync 0;", "$L_2:", "bar.sync 0;", "ret;"),
    "in a loop without an end": (
        "$L_1:", *THREAD, "@%p1 bra $L_2;", "bar.sync 0;", "bra.uni $L_1;", "$L_2:", "bar.sync 0;", "bra.uni $L_1;",
    ),
    "a shuffle on one side": (
        *THREAD, "@%p1 bra $L_2;", "shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;", "$L_2:", "bar.sync 0;", "ret;",
    ),
    "by way of memory": (
        "mov.u32 %r1, %tid.x;", "ld.global.u32 %r2, [%r1];", "setp.eq.s32 %p1, %r2, 0;", "@%p1 bra $L_2;",
        "bar.sync 0;", "$L_2:", "bar.sync 0;", "ret;",
    ),
    "a predicated move": (
        *THREAD, "mov.u32 %r2, 0;", "@%p1 mov.u32 %r2, 1;", "setp.eq.s32 %p2, %r2, 0;", "@%p2 bra $L_2;",
        "bar.sync 0;", "$L_2:", "bar.sync 0;", "ret;",
    ),
}  # fmt: skip
SOUND = {
    "work before one barrier": (*THREAD, "@%p1 bra $L_2;", "st.shared.u32 [%r1], 1;", "$L_2:", "bar.sync 0;", "ret;"),
    "threads that end": (*THREAD, "@%p1 bra $L_2;", "bar.sync 0;", "$L_2:", "ret;"),
    "the same for all": (
        "ld.param.u32 %r1, [n];", "setp.eq.s32 %p1, %r1, 0;", "@%p1 bra $L_2;", "bar.sync 0;", "$L_2:", "bar.sync 0;",
        "ret;",
    ),
    "what a vote tells": (
        *THREAD, "vote.sync.any.pred %p2, %p1, -1;", "@%p2 bra $L_2;", "bar.sync 0;", "$L_2:", "bar.sync 0;", "ret;",
    ),
    "as many turns as there are cells": (
        *THREAD, "$L_1:", "add.s32 %r1, %r1, 32;", "setp.lt.s32 %p2, %r1, 99;", "@%p2 bra $L_1;", "bar.sync 0;", "ret;",
    ),
    "a register of a scope": (
        *THREAD, "{ .reg .pred %p2; setp.ne.u32 %p2, %r1, 0; bar.red.or.pred %p3, 0, %p2; }",
        "@%p3 bra $L_2;", "bar.sync 0;", "$L_2:", "bar.sync 0;", "ret;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_what_hangs_is_found(name):
    assert convergence.faults(ptx(*FAULTY[name]))


@pytest.mark.parametrize("name", SOUND)
def test_what_does_not_is_passed(name):
    assert convergence.faults(ptx(*SOUND[name])) == []
