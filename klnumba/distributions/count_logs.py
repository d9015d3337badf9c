"""Logarithms of the masses of counts that keep their digits where the counts are large.

SciPy's are sums of terms as large as k*log(k): at a mean of 1e8 they are 1e-7 off. Here, after C. Loader, "Fast and
accurate computation of binomial probabilities" (2000), what is large is a deviance, x*log(x/m) - x + m, which is
computed as a whole, and what Stirling's formula leaves is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.duals.number import Twofold, twofold

Array = np.ndarray[Any, Any]

SERIES = 16.0  # where the series of `stirling_rest` begins to serve
# Those of 1/x, 1/x**3, ... (Bernoulli numbers over 2n(2n - 1)): the next one adds less than 1e-16 from 16 on.
RESTS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def stirling_rest(x: Any) -> Array:
    """What Stirling's formula leaves of log(Gamma(x + 1)), x > 0: log(Gamma(x + 1)) - x*log(x) + x - log(2*pi*x)/2."""
    x = np.asarray(x, np.float64)
    large = np.maximum(x, SERIES)
    series = np.polynomial.polynomial.polyval(1.0 / large**2, RESTS) / large
    small = np.minimum(x, SERIES)
    direct = special.gammaln(small + 1.0) - special.xlogy(small, small) + small - 0.5 * np.log(2.0 * math.pi * small)
    return np.asarray(np.where(x < SERIES, direct, series))


def deviance(x: Any, mean: Twofold) -> Array:
    """x*log(x/mean) - x + mean, with all its digits where x is close to the mean."""
    from klnumba import generalized_kl

    with np.errstate(all="ignore"):
        slope = np.where(mean.lo == 0.0, 0.0, (mean.hi - x) / mean.hi)  # a mean of 0 has no lower part
    return np.asarray(generalized_kl(x, mean.hi)) + mean.lo * slope


def poisson(k: Array, mean: float) -> Array:
    """log(mean**k * exp(-mean) / k!), k > 0."""
    return -stirling_rest(k) - deviance(k, twofold(mean)) - 0.5 * np.log(2.0 * math.pi * k)


def raw_binomial(k: Any, rest: Any, p: float) -> Array:
    """log(Gamma(n + 1)/(Gamma(k + 1)*Gamma(rest + 1)) * p**k * (1 - p)**rest) of n = k + rest, both above 0."""
    n = k + rest
    rests = stirling_rest(n) - stirling_rest(k) - stirling_rest(rest)
    deviances = deviance(k, twofold(n) * p) + deviance(rest, twofold(n) * (1.0 - twofold(p)))
    return np.asarray(rests - deviances + 0.5 * (np.log(n / rest) - np.log(2.0 * math.pi * k)))


def binomial(k: Array, n: float, p: float) -> Array:
    """Of k successes in n, 0 < k < n."""
    return raw_binomial(k, n - k, p)


def negative_binomial(k: Array, n: float, p: float) -> Array:
    """Of k > 0 that come before the n-th of the others, of which each has probability p."""
    return np.asarray(np.log(n / (n + k)) + raw_binomial(n, k, p))


def before(k: Array, n: float, p: float) -> Array:
    """The same, where p is the probability of what is counted: 1 - p would have lost digits."""
    return np.asarray(np.log(n / (n + k)) + raw_binomial(k, n, p))


# By SciPy's families: the logarithm of the mass strictly inside of the support; at its ends SciPy's is right.
INSIDE: dict[type, Callable[..., Array]] = {
    type(stats.poisson): poisson,
    type(stats.binom): binomial,
    type(stats.nbinom): negative_binomial,
}


def log_mass(frozen: Any, one: Distribution | None = None) -> Callable[[Any], Array] | None:
    """The function for a frozen distribution of SciPy's, which stands for `one`; None where SciPy's own serves."""
    inside = INSIDE.get(type(frozen.dist))
    if inside is None:
        return None
    parameters, loc, _ = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    if isinstance(one, NegativeBinomial):
        inside, parameters = before, (one.total_count, one.probs)
    low, high = frozen.support()

    def of(k: Any) -> Array:
        k = np.asarray(k, np.float64)
        within = (k > low) & (k < high) & (k == np.floor(k))
        kept = np.where(within, k - loc, 1.0)
        return np.where(within, inside(kept, *map(float, parameters)), frozen.logpmf(k))

    return of
