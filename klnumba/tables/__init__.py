"""pandas: what changed between two data frames; rows, groups and samples.

Importing this registers the accessors ``df.kl`` and ``series.kl``.
"""

from klnumba.tables.accessors import FrameAccessor, SeriesAccessor, register
from klnumba.tables.chunks import Chunks, scan
from klnumba.tables.comparison import Comparison
from klnumba.tables.frames import compare
from klnumba.tables.groups import kl_groups
from klnumba.tables.histograms import from_great_expectations, from_histogram
from klnumba.tables.limits import thresholds
from klnumba.tables.profile import Profile
from klnumba.tables.rows import kl_matrix, kl_rows
from klnumba.tables.samples import SampleEstimate, kl_from_samples

__all__ = [
    "Chunks",
    "Comparison",
    "FrameAccessor",
    "Profile",
    "SampleEstimate",
    "SeriesAccessor",
    "compare",
    "from_great_expectations",
    "from_histogram",
    "kl_from_samples",
    "kl_groups",
    "kl_matrix",
    "kl_rows",
    "scan",
    "thresholds",
]

register()
