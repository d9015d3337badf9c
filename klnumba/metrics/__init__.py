"""Accumulators: update, merge, compute; exact, whatever way the rows came in."""

from klnumba.metrics.divergences import CrossEntropy, JensenShannonDivergence, KLDivergence
from klnumba.metrics.metric import GroupValues, RowMetric
from klnumba.metrics.recent import Decayed, Windowed
from klnumba.metrics.running import RunningStatistics
from klnumba.metrics.summary import Summary

__all__ = [
    "CrossEntropy",
    "Decayed",
    "GroupValues",
    "JensenShannonDivergence",
    "KLDivergence",
    "RowMetric",
    "RunningStatistics",
    "Summary",
    "Windowed",
]
