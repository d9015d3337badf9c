"""pandas: rows, groups and samples. Importing this registers the accessors ``df.kl`` and ``series.kl``."""

from klnumba.tables.accessors import FrameAccessor, SeriesAccessor, register
from klnumba.tables.rows import kl_groups, kl_matrix, kl_rows
from klnumba.tables.samples import SampleEstimate, kl_from_samples

__all__ = [
    "FrameAccessor",
    "SampleEstimate",
    "SeriesAccessor",
    "kl_from_samples",
    "kl_groups",
    "kl_matrix",
    "kl_rows",
]

register()
