"""Rows of files larger than memory: scored block by block, with checkpoints; references that are cached."""

from klnumba.scoring.api import score
from klnumba.scoring.cache import cache_reference
from klnumba.scoring.errors import InputError, Interrupted
from klnumba.scoring.report import Report

__all__ = ["InputError", "Interrupted", "Report", "cache_reference", "score"]
