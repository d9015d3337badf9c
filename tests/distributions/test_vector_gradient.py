"""Derivatives by vectors of parameters, against central differences with mpmath."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import kl_divergence_grad

STEP = mpf(10) ** -40


def of_masses(a, b):
    s, t = mp.fsum(a), mp.fsum(b)
    return mp.fsum(x / s * mp.log((x / s) / (y / t)) for x, y in zip(a, b, strict=True) if x)


def of_logits(a, b):
    return of_masses([mp.exp(x) for x in a], [mp.exp(x) for x in b])


def of_concentrations(a, c):
    s, t = mp.fsum(a), mp.fsum(c)
    logs = mp.loggamma(s) - mp.loggamma(t) + mp.fsum(mp.loggamma(y) - mp.loggamma(x) for x, y in zip(a, c, strict=True))
    return logs + mp.fsum((x - y) * (mp.digamma(x) - mp.digamma(s)) for x, y in zip(a, c, strict=True))


def of_directions(a, b):
    """The last number is the concentration."""
    *u, c = a
    *v, d = b
    n = mpf(len(u)) / 2 - 1
    size = mp.sqrt(mp.fsum(x * x for x in u) * mp.fsum(x * x for x in v))
    cosine = mp.fsum(x * y for x, y in zip(u, v, strict=True)) / size
    ratio = mp.besseli(n + 1, c) / mp.besseli(n, c)

    def log_norm(x):
        return mp.log(mp.besseli(n, x)) - n * mp.log(x)

    return log_norm(d) - log_norm(c) + (c - d * cosine) * ratio


def difference(formula, a, b, side, i):
    with mp.workdps(150):
        at = [[mpf(float(x)) for x in a], [mpf(float(x)) for x in b]]

        def moved(times):
            now = [list(at[0]), list(at[1])]
            now[side][i] += times * STEP
            return formula(*now)

        return (moved(1) - moved(-1)) / (2 * STEP)


def numbers(kind, rng):
    """Pairs of parameters, from far apart to close."""
    for delta in (1.0, 0.1, 1e-3, 1e-6, 1e-9):
        for _ in range(3):
            if kind == "logits":
                a = rng.normal(0.0, 3.0, 4)
                yield a, a + delta * rng.normal(size=4)
            elif kind == "direction":
                u = rng.normal(size=3)
                v = u + delta * rng.normal(size=3)
                c = float(np.exp(rng.normal(0.0, 2.0)))
                d = c * (1.0 + delta * rng.uniform(0.1, 1.0))
                yield np.append(u / np.linalg.norm(u), c), np.append(v / np.linalg.norm(v), d)
            else:
                a = np.exp(rng.normal(0.0, 2.0, 4))
                yield a, a * np.exp(delta * rng.normal(size=4))


CASES = {
    "Categorical": ("masses", of_masses, lambda x: D.Categorical(x)),
    "Categorical.logits": ("logits", of_logits, lambda x: D.Categorical(logits=x)),
    "OneHotCategorical": ("masses", of_masses, lambda x: D.OneHotCategorical(x)),
    "Multinomial": ("masses", lambda a, b: 7 * of_masses(a, b), lambda x: D.Multinomial(7, x)),
    "Dirichlet": ("concentrations", of_concentrations, lambda x: D.Dirichlet(x)),
    "VonMisesFisher": ("direction", of_directions, lambda x: D.VonMisesFisher(x[..., :-1], x[..., -1])),
}


@pytest.mark.parametrize("name", CASES)
def test_against_differences(name):
    """To 1e-12 of the largest derivative by the same vector: a single one may be zero."""
    kind, formula, make = CASES[name]
    for a, b in numbers(kind, np.random.default_rng(11)):
        value, gradient = kl_divergence_grad(make(a), make(b))
        assert value == kl.kl_divergence(make(a), make(b))
        for side, (found, x) in enumerate(((gradient.p, a), (gradient.q, b))):
            flat = np.concatenate([np.atleast_1d(part) for part in found.values()])
            exact = np.array([float(difference(formula, a, b, side, i)) for i in range(len(x))])
            parts = [slice(0, -1), slice(-1, None)] if kind == "direction" else [slice(None)]
            for part in parts:
                np.testing.assert_allclose(flat[part], exact[part], rtol=0, atol=1e-12 * np.abs(exact[part]).max())


@pytest.mark.parametrize("name", CASES)
def test_zero_at_equal_parameters_and_shapes(name):
    kind, _, make = CASES[name]
    some = np.array([a for a, _ in numbers(kind, np.random.default_rng(1))])
    _, gradient = kl_divergence_grad(make(some), make(some))
    for side in gradient:
        for slopes in side.values():
            np.testing.assert_array_equal(slopes, 0.0)
    value, gradient = kl_divergence_grad(make(some[:2]), make(some[:3, None]))
    assert value.shape == (3, 2)
    alone = kl_divergence_grad(make(some[1]), make(some[2]))[1]
    for side, one in zip(gradient, alone, strict=True):
        for key, slopes in side.items():
            assert slopes.shape == (3, 2, *np.shape(one[key]))
            assert isinstance(one[key], np.floating if not np.ndim(one[key]) else np.ndarray)
            np.testing.assert_array_equal(slopes[2, 1], one[key])


def test_zeros_and_what_is_infinite():
    value, gradient = kl_divergence_grad(D.Categorical([0.5, 0.5, 0.0]), D.Categorical([0.25, 0.5, 0.25]))
    assert value == pytest.approx(0.5 * math.log(2.0))
    np.testing.assert_allclose(gradient.q["probs"], [-1.0, 0.0, 1.0], atol=1e-15)
    np.testing.assert_array_equal(np.isnan(gradient.p["probs"]), [False, False, True])
    _, gradient = kl_divergence_grad(
        D.Categorical(logits=[0.0, 0.0, -math.inf]), D.Categorical(logits=[0.0, 1.0, -math.inf])
    )
    assert gradient.p["logits"][2] == gradient.q["logits"][2] == 0.0
    value, gradient = kl_divergence_grad(D.Categorical([0.5, 0.5]), D.Categorical([1.0, 0.0]))
    assert value == math.inf
    assert np.isnan(gradient.p["probs"]).all()
    assert np.isnan(gradient.q["probs"]).all()
    value, gradient = kl_divergence_grad(D.Multinomial(3, [0.5, 0.5]), D.Multinomial(4, [0.5, 0.5]))
    assert np.isnan(gradient.q["probs"]).all()


def test_float32():
    narrow = [D.Dirichlet(np.array(x, np.float32)) for x in ([1.0, 2.0], [2.0, 3.0])]
    value, gradient = kl_divergence_grad(*narrow)
    assert value.dtype == gradient.p["concentration"].dtype == np.float32
