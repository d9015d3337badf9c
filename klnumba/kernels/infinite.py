"""Rows that are infinite because q is zero where p is not: among tables of counts they are many."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.kernels.compiler import helper, part


@helper
def is_infinite(p: Any, a: Any, q: Any, b: Any, d: Any) -> Any:
    """Whether KL and cross-entropy of a row are infinite, and not NaN; where it is in doubt, False."""
    x, y = p[a : a + d], q[b : b + d]
    amiss, bare, some = np.int64(0), np.int64(0), np.int64(0)  # counts, which are added up many at a time
    for k in range(d):
        amiss += not ((x[k] >= 0.0) & (x[k] < np.inf) & (y[k] >= 0.0) & (y[k] < np.inf))
        bare += (x[k] > 0.0) & (y[k] == 0.0)
        some += y[k] > 0.0
    return amiss == 0 and bare > 0 and some > 0


@part
def is_infinite_either_way(p: Any, a: Any, q: Any, b: Any, d: Any) -> Any:
    """The same of Jeffreys."""
    return is_infinite(p, a, q, b, d) or is_infinite(q, b, p, a, d)


@part
def never(p: Any, a: Any, q: Any, b: Any, d: Any) -> Any:
    """The same of JS."""
    return False
