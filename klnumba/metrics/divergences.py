"""The metrics by name."""

from __future__ import annotations

from typing import Any

from klnumba.metrics.metric import RowMetric
from klnumba.reduction import real

PARAMETERS = """log_prob : bool, default False
        Whether rows are log-probabilities, as torchmetrics asks it; the same as ``kind="log_prob"``.
    reduction : {"mean", "sum", "none", None}, default "mean"
        Over all rows; "none" and None keep one value a row.
    kind : {"prob", "log_prob", "logit"}, optional
        What a cell holds.
    normalize : bool, default True
        Divide rows by their sums (for "log_prob": subtract logsumexp). Logits are always normalised.
    temperature : float, default 1.0
        Divides logits first.
    base : float, optional
        Unit of the values: None for nats, 2 for bits.
    axis : int or tuple of int, default -1
        Where the cells of a row lie. With -1, p and q are matrices; any other axis takes arrays of any shape.
    quantile_error : float or None, default 0.01
        Largest relative error of the quantiles in `summary`; None keeps no quantiles.
    thresholds : sequence of float, optional
        Values for which `summary` tells the share of rows above.
    agreement : bool, default False
        Count rows whose first largest cells agree ("top-1 agreement").
    invalid : {"nan", "raise"}, default "nan"
        A row that is no distribution is NaN, or raises, which leaves the metric as it was.
    threads : int, optional
        How many threads may work.
    spill : path-like, optional
        With reduction "none": a new .npy file for the values, instead of memory, where copies keep theirs.
"""


class KLDivergence(RowMetric):
    """KL(p || q) of rows that come in batches: torchmetrics' ``KLDivergence``, exact and mergeable.

    The sum over rows is exact, so that the result has the same bits for every split into batches, every order and
    tree of merging, and any number of processes. Memory does not grow with the number of rows, but for reduction
    "none". Updates and reads from several threads take turns.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    rows : int
        Rows taken in.
    labels : list or None
        Labels of the groups.

    Raises
    ------
    TypeError
        If `log_prob` is not a bool.
    ValueError
        If an option is out of its range.

    Notes
    -----
    Differs from torchmetrics on purpose: results are float64; log-probabilities are normalised unless
    ``normalize=False``; a log-probability of -inf is a zero; ``merge`` puts the rows of the other after its own; there
    are no gradients (tensors that ask for them are to be detached).

    Memory: with groups, each keeps counts over one range of values that is common to all, 16 bytes for each of the 64
    intervals of each power of two in it. ``quantile_error=None`` does without.

    Examples
    --------
    >>> import klnumba as kl
    >>> metric = kl.KLDivergence()
    >>> metric.update([[0.36, 0.48, 0.16]], [[1/3, 1/3, 1/3]])
    >>> print(round(float(metric.compute()), 4))
    0.0853
    >>> metric.update([[0.5, 0.5, 0.0]], [[0.25, 0.5, 0.25]])
    >>> metric.rows, round(metric.summary().max, 4)
    (2, 0.3466)
    """

    divergence = "kl"


class CrossEntropy(RowMetric):
    """Cross entropy -sum p*log(q) of rows that come in batches; in all else as `KLDivergence`.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import klnumba as kl
    >>> metric = kl.CrossEntropy(base=2)
    >>> metric.update([[0.5, 0.5]], [[0.25, 0.75]])
    >>> print(round(float(metric.compute()), 4))
    1.2075
    """

    divergence = "cross_entropy"


class JensenShannonDivergence(RowMetric):
    """Jensen-Shannon divergence of rows that come in batches, not its root; in all else as `KLDivergence`.

    Parameters
    ----------
    {parameters}
    weight : float, default 0.5
        The weight of p, from 0 to 1.

    Examples
    --------
    >>> import klnumba as kl
    >>> metric = kl.JensenShannonDivergence(base=2)
    >>> metric.update([[1, 0]], [[0, 1]])
    >>> float(metric.compute())
    1.0
    """

    divergence = "js"

    def __init__(self, log_prob: bool = False, reduction: Any = "mean", *, weight: float = 0.5, **options: Any) -> None:
        if not 0.0 <= real(weight, "weight") <= 1.0:
            raise ValueError(f"weight: a number from 0 to 1, not {weight!r}")
        self.weight = float(weight)
        super().__init__(log_prob, reduction, **options)

    def _weight(self) -> float:
        return self.weight

    def options(self) -> dict[str, Any]:
        """The options that decide on values."""
        return super().options() | {"weight": self.weight}


METRICS: tuple[type[RowMetric], ...] = (KLDivergence, CrossEntropy, JensenShannonDivergence)
for _metric in METRICS:
    _metric.__doc__ = (_metric.__doc__ or "").replace("{parameters}", PARAMETERS.rstrip("\n"))
