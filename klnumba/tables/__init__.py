"""Tables: what changed between two data frames, column by column, with the evidence."""

from klnumba.tables.chunks import Chunks, scan
from klnumba.tables.comparison import Comparison
from klnumba.tables.frames import compare
from klnumba.tables.histograms import from_great_expectations, from_histogram
from klnumba.tables.limits import thresholds
from klnumba.tables.profile import Profile

__all__ = [
    "Chunks",
    "Comparison",
    "Profile",
    "compare",
    "from_great_expectations",
    "from_histogram",
    "scan",
    "thresholds",
]
