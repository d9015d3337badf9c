"""Numbers of unusual types as parameters, and what functions of pairs may give."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D


class Left(D.Normal):
    pass


class Right(D.Normal):
    pass


@pytest.mark.parametrize(
    ("value", "held"), [(2**70, 2.0**70), (Fraction(1, 3), 1 / 3), ([Fraction(1, 4), 2**64], [0.25, 2.0**64])]
)
def test_numbers_of_python(value, held):
    loc = D.Normal(value, 1.0).loc
    assert loc.dtype == np.float64
    assert np.array_equal(loc, held)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("kind", "dtype"), [("f2", np.float32), ("f4", np.float32), ("f8", np.float64)])
def test_the_order_of_bytes_does_not_show(order, kind, dtype):
    loc = D.Normal(np.array([1.5, 2.0], order + kind), 1.0).loc
    assert loc.dtype == dtype
    assert loc.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (10**400, ValueError, "Normal: loc must be finite, but holds a number beyond the range of float64"),
        ([1, "a"], TypeError, "Normal: loc must be real numbers, not <U"),
        (object(), TypeError, "Normal: loc must be real numbers, not object"),
        (1j, TypeError, "Normal: loc must be real numbers, not complex128"),
        ([[1.0], [1.0, 2.0]], ValueError, "Normal: loc must be a number or an array, but its rows differ in length"),
    ],
)
def test_what_is_no_number_is_named(value, error, text):
    with pytest.raises(error, match=text):
        D.Normal(value, 1.0)


def test_tensors_that_are_no_arrays_are_named():
    torch = pytest.importorskip("torch", reason="tensors are torch's")
    assert D.Normal(torch.ones(2, dtype=torch.bfloat16), np.float32(1.0)).dtype == np.float32
    with pytest.raises(TypeError, match=r"Normal: loc: a tensor of layout torch\.sparse_coo"):
        D.Normal(torch.ones(2).to_sparse(), 1.0)


def test_a_function_may_give_integers(own):
    D.register_kl(Left, Right)(lambda p, q: 3)
    found = kl.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0), base=2)
    assert found.dtype == np.float64
    assert found == pytest.approx(3.0 / np.log(2.0), rel=1e-15)


def test_a_function_gives_the_dtype_of_the_parameters(own):
    one = np.float32(1.0)
    D.register_kl(Left, Right)(lambda p, q: 3.0)
    assert kl.kl_divergence(Left(np.float32([0.0, 1.0]), one), Right(one, one)).dtype == np.float32
    assert kl.kl_divergence(D.Delta(np.float32(0.0)), D.Categorical(np.float32([0.5, 0.5]))).dtype == np.float32


@pytest.mark.parametrize("value", [None, "a", 1j])
def test_a_function_that_gives_no_numbers_is_named(own, value):
    def bad(p, q):
        return value

    D.register_kl(Left, Right)(bad)
    with pytest.raises(TypeError, match=r"KL\(Left \|\| Right\): bad gave .*, not real numbers"):
        kl.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0))


def test_a_function_that_gives_no_array_is_named(own):
    torch = pytest.importorskip("torch", reason="tensors are torch's")
    for value in ([[1.0, 2.0], [3.0]], torch.ones((), requires_grad=True)):
        D.register_kl(Left, Right, replace=True)(lambda p, q, value=value: value)
        with pytest.raises(TypeError, match=r"KL\(Left \|\| Right\): .* gave what cannot be read as an array"):
            kl.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0))


def test_draws_without_numbers_have_no_divergence():
    p = D.Independent(D.Normal(np.zeros((2, 0)), 1.0), 1)
    assert kl.kl_divergence(p, p).tolist() == p.entropy().tolist() == [0.0, 0.0]


def test_draws_of_joint_are_refused_by_name():
    p = D.Joint([D.Normal(0.0, 1.0), D.Gamma(1.0, 1.0)])
    with pytest.raises(NotImplementedError, match="a draw of Joint has blocks of several shapes"):
        kl.kl_divergence(p, p, method="monte_carlo")
