"""Pieces: one for each text and what it closes over, and parts put in the place of their calls without copies."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba.core import ir

from klnumba.formulas import elementary
from klnumba.kernels import compiler, inlining

REAL = numba.float64(numba.float64)


def shifted(by, make=compiler.helper):
    def moved(x):
        return x + by

    return make(moved)


def of_two(piece):
    return compiler.helper(lambda x: piece(x) + piece(2.0 * x))


def value(name, piece, x):
    return compiler.loop(name, lambda y: piece(y), REAL, cached=False)(x)


def test_one_piece_for_a_text_and_its_contents():
    for make in (compiler.helper, compiler.part):
        assert shifted(2.0, make) is shifted(2.0, make)
    assert of_two(shifted(2.0)) is of_two(shifted(2.0))


def test_pieces_of_other_contents_or_kinds_are_others():
    kinds = [shifted(2.0, make) for make in (compiler.helper, compiler.part)]
    others = [shifted(by) for by in (3.0, 2, np.float32(2.0), math.nan)]
    assert len({id(piece) for piece in kinds + others}) == 6
    assert [value(f"shifted-{k}", piece, 1.0) for k, piece in enumerate(kinds + others[:3])] == [3.0, 3, 4, 3, 3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(2000.0), np.where(np.arange(2000) == 1000, 0.0, np.arange(2000.0))),
        (np.array([0.1234567890]), np.array([0.1234567891])),
        (True, 1),
        ((1, 2.0), (1.0, 2.0)),
    ],
    ids=["an array too long to be written", "digits that are not written", "a truth value", "tuples"],
)
def test_contents_that_look_alike(one, other):
    assert shifted(one) is not shifted(other)


def test_defaults_are_contents():
    def shifted_by(default):
        def moved(x, by=default):
            return x + by

        return compiler.helper(moved)

    found = [shifted_by(default) for default in (1, 1.0, True, 0.0, -0.0, None)]
    assert len({id(piece) for piece in found}) == 6
    assert shifted_by(1.0) is found[1]


def test_a_formula_as_it_is_written_is_one_part():
    assert compiler.as_written(elementary.log1p) is compiler.as_written(elementary.log1p)


def test_pieces_that_close_over_functions_of_one_name():
    """As the formulas of a caller may have."""
    formulas = [eval("lambda x: x + 1.0"), eval("lambda x: x - 1.0")]
    assert formulas[0].__qualname__ == formulas[1].__qualname__
    found = [value(f"of-two-{k}", of_two(compiler.scalar(f)), 5.0) for k, f in enumerate(formulas)]
    assert found == [17.0, 13.0]


def test_the_same_text_over_other_globals():
    """Which is what a formula rebuilt for another target is."""
    text = compile("def f(x): return x * factor", "text", "exec")
    functions = []
    for factor in (2.0, 3.0):
        names = {"factor": factor, "__name__": "text"}
        exec(text, names)
        functions.append(names["f"])
    assert functions[0].__code__ == functions[1].__code__
    found = [value(f"by-factor-{k}", compiler.helper(f), 5.0) for k, f in enumerate(functions)]
    assert found == [10.0, 15.0]


@compiler.part
def up_to(x, most):
    """A part with a branch and a loop."""
    total = 0.0
    while total < most:
        if x > total:
            total += 1.0
        else:
            return total
    return most


@compiler.part
def of_both(x, y):
    """A part of parts, one of which it has twice."""
    return up_to(x, 5.0) + 10.0 * up_to(y, 3.0)


def both(x):
    return of_both(x, x + 1.0) - up_to(x, 2.0)


def test_no_part_is_copied(monkeypatch):
    def refuse(block, memo):
        raise AssertionError("a block is copied")

    monkeypatch.setattr(ir.Block, "__deepcopy__", refuse, raising=False)
    loop = compiler.loop("has-parts", both, REAL, cached=False)
    assert [loop(x) for x in (-1.0, 0.5, 2.5, 9.0)] == [0.0, 20.0, 31.0, 33.0]


def test_blocks_can_be_copied_again():
    block = ir.Block(ir.Scope(None, ir.unknown_loc), ir.unknown_loc)

    def fail():
        with inlining.uncopied([block]):
            assert isinstance(block, inlining.Uncopied)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert type(block) is ir.Block
