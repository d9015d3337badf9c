"""The array functions and the accumulators over Dask collections: lazy, block by block, with the bits of one machine.

Rows of at most `CHUNK` cells that lie across blocks are brought together, in blocks no larger than those given. Longer
ones stay where they are: what travels are the states of their pieces (`klnumba.dask.long`). Each block is computed on
one thread, as the workers share the processors out already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import dask.array
    import dask.delayed  # noqa: F401 - both are used by every module here
except ImportError as error:
    raise ImportError('klnumba.dask needs Dask: python -m pip install "klnumba[dask]"') from error

from klnumba.dask.accumulators import accumulate
from klnumba.dask.functions import (
    cross_entropy,
    entropy,
    generalized_kl,
    jeffreys_divergence,
    js_divergence,
    kl_divergence,
    rel_entr,
    row_statistics,
)
from klnumba.dask.reports import score

if TYPE_CHECKING:
    from klnumba.tables.partitions import compare as compare

__all__ = [
    "accumulate",
    "compare",
    "cross_entropy",
    "entropy",
    "generalized_kl",
    "jeffreys_divergence",
    "js_divergence",
    "kl_divergence",
    "rel_entr",
    "row_statistics",
    "score",
]


def __getattr__(name: str) -> Any:
    if name == "compare":  # of data frames, which ask for more libraries than arrays do
        from klnumba.tables.partitions import compare

        return compare
    raise AttributeError(f"module 'klnumba.dask' has no attribute {name!r}")
