"""Derivatives between multivariate normal distributions: against mpmath's differences and PyTorch's."""

import itertools

import mpmath
import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import LowRankMultivariateNormal, MultivariateNormal, kl_divergence_grad

FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def factors(rng, *shape, n=3):
    made = np.tril(rng.normal(size=(*shape, n, n)))
    made[..., range(n), range(n)] = rng.uniform(0.5, 2.0, (*shape, n))
    return made


def given(form, factor):
    covariance = factor @ np.swapaxes(factor, -1, -2)
    return {form: {"scale_tril": factor, "covariance_matrix": covariance}.get(form, np.linalg.inv(covariance))}


def exact(form_p, form_q, loc_p, first, loc_q, second):
    """KL with 50 digits, of matrices in the given forms."""

    def covariance(form, x):
        return x if form == "covariance_matrix" else x**-1 if form == "precision_matrix" else x * x.T

    p, q = covariance(form_p, first), covariance(form_q, second)
    off = loc_p - loc_q
    inverse = q**-1
    trace = sum((inverse * p)[i, i] for i in range(p.rows))
    return (trace + (off.T * inverse * off)[0] - p.rows + mpmath.log(mpmath.det(q) / mpmath.det(p))) / 2


def slope(form_p, form_q, arguments, which, at, symmetric):
    """The derivative by one cell, by both of its places where the matrix is symmetric, halved then."""
    step = mpmath.mpf(10) ** -18
    values = []
    for sign in (1, -1):
        moved = [x.copy() for x in arguments]
        moved[which][at] += sign * step
        if symmetric and at[0] != at[1]:
            moved[which][at[1], at[0]] += sign * step
        values.append(exact(form_p, form_q, *moved))
    found = (values[0] - values[1]) / (2 * step)
    return found / 2 if symmetric and at[0] != at[1] else found


@pytest.mark.parametrize("near", [None, 1e-6], ids=["apart", "near"])
@pytest.mark.parametrize(("form_p", "form_q"), list(itertools.product(FORMS, FORMS)))
def test_against_differences(form_p, form_q, near):
    rng = np.random.default_rng(3)
    first = factors(rng)
    second = factors(rng) if near is None else first * (1 + near * rng.normal(size=first.shape))
    loc = rng.normal(size=3)
    off = 1.0 if near is None else near
    sides = {"p": (loc, given(form_p, first)), "q": (loc + off * rng.normal(size=3), given(form_q, second))}
    p, q = (MultivariateNormal(mean, **matrix) for mean, matrix in sides.values())
    _, found = kl_divergence_grad(p, q)
    with mpmath.workdps(50):
        arguments = [mpmath.matrix(x.tolist()) for mean, matrix in sides.values() for x in (mean, *matrix.values())]
        for side, form, place in (("p", form_p, 0), ("q", form_q, 2)):
            mine = getattr(found, side)
            want = np.array([float(slope(form_p, form_q, arguments, place, (k, 0), False)) for k in range(3)])
            tolerance = 1e-12 if near is None else 1e-9
            np.testing.assert_allclose(mine["loc"], want, rtol=0, atol=tolerance * np.abs(want).max())
            cells = [(i, j) for i in range(3) for j in range(3) if form != "scale_tril" or j <= i]
            matrix = np.zeros((3, 3))
            for at in cells:
                matrix[at] = float(slope(form_p, form_q, arguments, place + 1, at, form != "scale_tril"))
            np.testing.assert_allclose(mine[form], matrix, rtol=0, atol=tolerance * np.abs(matrix).max())


def test_zero_where_both_agree():
    p = MultivariateNormal([1.0, 2.0], scale_tril=[[2.0, 0.0], [0.5, 1.0]])
    value, found = kl_divergence_grad(p, p)
    assert value == 0.0
    for side in found:
        for slopes in side.values():
            assert not slopes.any()


def test_batches_against_pytorch():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    rng = np.random.default_rng(4)
    p = rng.normal(size=(2, 1, 3)), factors(rng, 2, 1)
    q = rng.normal(size=(4, 3)), factors(rng, 4)
    mine = kl_divergence_grad(*(MultivariateNormal(loc, scale_tril=scale) for loc, scale in (p, q)))[1]
    for i, j in np.ndindex(2, 4):
        tensors = [torch.tensor(x, requires_grad=True) for x in (p[0][i, 0], p[1][i, 0], q[0][j], q[1][j])]
        family = torch.distributions.MultivariateNormal
        theirs = torch.distributions.kl_divergence(
            family(tensors[0], scale_tril=tensors[1]), family(tensors[2], scale_tril=tensors[3])
        )
        theirs.backward()
        slopes = mine.p["loc"], mine.p["scale_tril"], mine.q["loc"], mine.q["scale_tril"]
        for own, tensor in zip(slopes, tensors, strict=True):
            np.testing.assert_allclose(own[i, j], np.tril(tensor.grad) if own.ndim == 4 else tensor.grad, rtol=1e-9)


def test_low_rank_next_to_each_other():
    """By the difference of the parameters, where the covariances differ by a few roundings."""
    above = 2.0**-42
    p, q = (LowRankMultivariateNormal([0.0], [[1.5]], [x]) for x in (2.0 + above, 2.0))
    _, gradient = kl_divergence_grad(p, q)
    by_p = 0.5 * above / ((4.25 + above) * 4.25)
    np.testing.assert_allclose(gradient.p["cov_diag"], [by_p], rtol=1e-14)
    np.testing.assert_allclose(gradient.p["cov_factor"], [[3.0 * by_p]], rtol=1e-14)
    np.testing.assert_allclose(gradient.q["cov_diag"], [-0.5 * above / 4.25**2], rtol=1e-14)


def test_float32():
    p = MultivariateNormal(np.zeros(2, np.float32), np.eye(2, dtype=np.float32))
    found = kl_divergence_grad(p, MultivariateNormal(np.ones(2, np.float32), np.eye(2, dtype=np.float32)))[1]
    assert found.p["covariance_matrix"].dtype == np.float32
    np.testing.assert_array_equal(found.p["loc"], [-1.0, -1.0])


def test_the_value_is_that_of_kl_divergence():
    p, q = MultivariateNormal([0.0], [[1.0]]), MultivariateNormal([1.0], [[2.0]])
    assert kl_divergence_grad(p, q)[0] == kl.kl_divergence(p, q)
