"""The bias, the standard error and the confidence interval of a divergence between two samples."""

from __future__ import annotations

from typing import Any

import numpy as np

import klnumba as kl
from klnumba.optional import load
from klnumba.tables.cells import Array

HALF = 0.5
HALVINGS = 48  # of the range of noncentralities: to a part in 1e14
FEW = 2.0  # rows a cell, below which nothing is known of its variance
SURPRISE = 3.7  # where so many rows are expected, none are found in one case of forty
LARGE = 2000.0  # from here on the law of noncentral chi-squared numbers is approximated


def estimate(reference: Array, n: Array, current: Array, m: Array, confidence: float) -> dict[str, Array]:
    """KL(reference || current) of the populations behind two samples.

    Parameters
    ----------
    reference, current : (columns, cells) array
        Counts, as they are, that add up to `n` and `m`; of an infinite number of rows, probabilities.
    n, m : (columns,) array
        Effective numbers of rows.
    confidence : float
        How often the interval shall hold the true value.

    Returns
    -------
    dict
        "kl_corrected", "standard_error", "ci_low" and "ci_high", in nats; see `Notes`.

    Notes
    -----
    The logarithm of an expected count is estimated by log(count + 1/2), which takes away the bias of order 1/count
    (F. J. Anscombe, Biometrika 43, pp. 461-464, 1956). The entropy of the reference is corrected by (cells - 1)/(2 n)
    (G. A. Miller, 1955), and by what a cell of few rows adds to that (`_excess`).

    Close to no change, 2 h KL of two samples is a noncentral chi-squared number with cells - 1 degrees of freedom and
    noncentrality 2 h KL, 1/h = 1/n + 1/m; far from it, it is normal, with the variance of the delta method. One law
    holds at both ends: KL / c is noncentral chi-squared with noncentrality KL / c and as many degrees of freedom as
    give the bias, and c is chosen to give the variance: what the bias brings with it is that of no change, where the
    delta method knows nothing, and the rest the delta method's. The interval holds the values whose own 1 - alpha
    range has the estimate in it. That range is one-sided at no change, and turns two-sided as the noncentrality grows.

    Where a cell of the reference has vanished, the interval has no upper end, and the lower one takes all of alpha. The
    variance of the logarithm of an empty cell is then taken as 1/(count + 1), not as 1/(count + 1/2), which is far too
    large there (J. J. Gart and J. R. Zweifel, Biometrika 54, pp. 181-187, 1967).
    """
    used = (reference > 0) | (current > 0)
    cells = used.sum(axis=1)
    p, q = _shares(reference, n, used, cells, 0.0), _shares(current, m, used, cells, HALF)
    even = _shares(reference, n, used, cells, HALF)
    over_n, over_m = 1.0 / n, 1.0 / m
    open_ended = _vanished(reference, n, current, m)
    empty = open_ended[:, None] & (current == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(used & (q > 0), even / q, 0.0)
        chi = np.maximum((even * np.where(empty, HALF * ratio, ratio)).sum(axis=1) - 1.0, 0.0)
        log_ratio = np.where(ratio > 0, np.log(ratio), 0.0)
        divergence = kl.kl_divergence(even, q)
        spread = np.maximum((even * log_ratio**2).sum(axis=1) - divergence**2, 0.0)
        variance = spread * over_n + chi * over_m
        excess = np.maximum(np.where(used, ratio, 0.0).sum(axis=1) - 1.0, 0.0)
        freedom = np.where(used, 1.0 + _excess(reference), 0.0).sum(axis=1) - 1.0
        bias = freedom / 2.0 * over_n + excess / 2.0 * over_m
        near = (over_n * _widening(reference, n, current, m, used, freedom) + over_m) / 2.0
        far = np.where(divergence > 0, variance / (4.0 * divergence), near)
    corrected = kl.kl_divergence(p, _anscombe(current, m, used), normalize=False) - freedom / 2.0 * over_n
    signal = 2.0 * np.maximum(corrected, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (near * bias + far * signal) / (bias + signal)
    low, high = _interval(corrected, bias, scale, 1.0 - confidence, open_ended)
    low = np.fmin(low, np.maximum(corrected, 0.0))
    high = np.where(open_ended, np.inf, np.fmax(high, corrected))
    error = np.sqrt(2.0 * scale * bias + 4.0 * scale * np.maximum(corrected, 0.0))
    single = cells == 1
    return {
        "kl_corrected": np.where(single, 0.0, corrected),
        "standard_error": np.where(single, 0.0, error),
        "ci_low": np.where(single, 0.0, low),
        "ci_high": np.where(single, 0.0, high),
    }


def _excess(counts: Array) -> Array:
    """What a cell with few rows adds to the bias of the entropy, of which a full one has half a row.

    With L rows to be expected, the mean of x log x is L log L + (1 + e)/2, e = 1/(6 L) + 1/(6 L^2) + ... The mean of
    this function of x is e within 0.006 for L of 2 and more: those of 1/(x + 1) and 1/((x + 1)(x + 2)) are nearly 1/L
    and 1/L^2, and the second coefficient was fitted to the sums over the Poisson law.
    """
    found: Array = (1.0 / 6.0 + 0.428 / (counts + 2.0)) / (counts + 1.0)
    return found


def _widening(reference: Array, n: Array, current: Array, m: Array, used: Array, freedom: Array) -> Array:
    """The variance that the reference's part of KL has at no change, as a multiple of what its bias brings with it.

    A cell that lets expect L rows adds (1/n)^2/4 times this polynomial in 1/L to the variance: from the sums over the
    Poisson law, within 0.03 for L of `FEW` and more.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.isinf(m)[:, None], current, (reference + current) / (n + m)[:, None])
        over = np.where(np.isinf(n)[:, None], 0.0, 1.0 / np.maximum(share * n[:, None], FEW))
    cells = np.where(used, 2.0 + over * (0.309 + over * (6.877 - over * (20.04 - 10.53 * over))), 0.0)
    found: Array = (cells.sum(axis=1) - 2.0) / (2.0 * freedom)
    return found


def _shares(counts: Array, n: Array, used: Array, cells: Array, added: float) -> Array:
    """Probabilities, after `added` counts in every cell that takes part."""
    known = np.isinf(n)[:, None]
    total = np.where(np.isinf(n), 1.0, n + added * cells)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(used, (counts + np.where(known, 0.0, added)) / total, 0.0)
    return found


def _anscombe(counts: Array, n: Array, used: Array) -> Array:
    """Shares whose logarithms have hardly a bias; they add up to a little more than one."""
    known = np.isinf(n)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(used, np.where(known, counts, (counts + HALF) / (n[:, None] + HALF)), 0.0)
    return found


def _vanished(reference: Array, n: Array, current: Array, m: Array) -> Array:
    """Whether a cell is empty in the current sample though its share of the reference lets expect some rows.

    How small its probability has become, no sample can say: nothing bounds the divergence from above. It does not
    depend on the confidence, so that an interval of more confidence always holds one of less.
    """
    share = np.where(np.isinf(n)[:, None], reference, reference / np.where(np.isinf(n), 1.0, n)[:, None])
    expected = share * np.where(np.isinf(m), 0.0, m)[:, None]
    impossible = np.isinf(m)[:, None] & (share > 0)
    found: Array = ((current == 0) & ((expected > SURPRISE) | impossible)).any(axis=1)
    return found


def _interval(corrected: Array, bias: Array, scale: Array, alpha: float, open_ended: Array) -> tuple[Array, Array]:
    """The noncentralities, times `scale`, whose range has the estimate in it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic, freedom = (corrected + bias) / scale, bias / scale
    low, high = np.full(statistic.shape, np.nan), np.full(statistic.shape, np.nan)
    good = np.isfinite(statistic) & np.isfinite(freedom) & (freedom > 0)
    x, df = np.maximum(statistic[good], 0.0), freedom[good]
    other = np.where(open_ended[good], 0.0, alpha / 2.0)
    low[good] = scale[good] * _noncentrality(x, df, alpha, other, upper=True)
    high[good] = scale[good] * _noncentrality(x, df, alpha, other, upper=False)
    return low, high


def _noncentrality(x: Array, df: Array, alpha: float, other: Array, *, upper: bool) -> Array:
    """The noncentrality for which x is the upper (or lower) end of the range that holds 1 - alpha.

    Far from no change, `other` is the share that lies below the range.
    """

    def beyond(noncentrality: Array) -> Array:
        """Positive where the range lies wholly above x (upper end), or above all of it (lower end)."""
        share = other * noncentrality / (noncentrality + df)
        target = 1.0 - alpha + share if upper else share
        found: Array = target - _cdf(x, df, noncentrality)
        return found

    low = np.zeros_like(x)
    high = np.maximum(x - df, 0.0) + 12.0 * np.sqrt(2.0 * df + 4.0 * x + 1.0) + 12.0 * (df + 1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        above = beyond(middle) > 0.0
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return np.where(beyond(np.zeros_like(x)) > 0.0, 0.0, low)


def _cdf(x: Array, df: Array, noncentrality: Array) -> Array:
    """The distribution function of noncentral chi-squared numbers.

    For large ones SciPy adds up many terms, and M. Sankaran's approximation (Biometrika 50, pp. 199-204, 1963) has an
    error that no simulation would see.
    """
    special: Any = load("scipy.special")
    large = x > LARGE
    if not large.any():
        plain: Array = special.chndtr(x, df, noncentrality)
        return plain
    found: Array = np.empty_like(x)
    found[~large] = special.chndtr(x[~large], df[~large], noncentrality[~large])
    y, k, shift = x[large], df[large], noncentrality[large]
    first, second, third = k + shift, k + 2.0 * shift, k + 3.0 * shift
    h = 1.0 - 2.0 / 3.0 * first * third / second**2
    p = second / first**2
    m = (h - 1.0) * (1.0 - 3.0 * h)
    centre = 1.0 + h * p * (h - 1.0 - 0.5 * (2.0 - h) * m * p)
    spread = h * np.sqrt(2.0 * p) * (1.0 + 0.5 * m * p)
    found[large] = special.ndtr(((y / first) ** h - centre) / spread)
    return found
