"""Differential entropies and cross entropies with mpmath, for pairs of different families: KL = -H(P) - E log q(X)."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

INF = mpf("inf")
Number = Any


def x_log(x: Number, y: Number) -> Number:
    """x*log(y), 0 for x = 0."""
    return mpf(0) if x == 0 else (-INF if y == 0 else x * mp.log(y))


def h_gamma(a: Number, b: Number) -> Number:
    return a - mp.log(b) + mp.loggamma(a) + (1 - a) * mp.digamma(a)


def h_exponential(r: Number) -> Number:
    return 1 - mp.log(r)


def h_gumbel(m: Number, s: Number) -> Number:
    return mp.log(s) + mp.euler + 1


def h_normal(m: Number, s: Number) -> Number:
    return mp.log(2 * mp.pi * mp.e * s * s) / 2


def h_laplace(m: Number, s: Number) -> Number:
    return 1 + mp.log(2 * s)


def h_uniform(a: Number, b: Number) -> Number:
    return mp.log(b - a)


def h_pareto(m: Number, a: Number) -> Number:
    return mp.log(m / a) + 1 / a + 1


def to_normal(entropy: Number, mean: Number, variance: Number, m: Number, s: Number) -> Number:
    return -entropy + mp.log(2 * mp.pi * s * s) / 2 + (variance + (mean - m) ** 2) / (2 * s * s)


def to_gumbel(entropy: Number, mean: Number, exponential_moment: Number, m: Number, s: Number) -> Number:
    """`exponential_moment` is E exp(-X/s)."""
    return -entropy + mp.log(s) + (mean - m) / s + mp.exp(m / s) * exponential_moment


def to_laplace(entropy: Number, distance: Number, s: Number) -> Number:
    return -entropy + mp.log(2 * s) + distance / s


def to_gamma(entropy: Number, mean: Number, mean_log: Number, a: Number, b: Number) -> Number:
    return -entropy + mp.loggamma(a) - a * mp.log(b) - (a - 1) * mean_log + b * mean
