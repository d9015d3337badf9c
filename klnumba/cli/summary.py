"""The distribution of the rows' values, in a few numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from klnumba.jsonable import as_json

__all__ = ["as_json", "summarise"]

PERCENT = (0.1, 1, 5, 25, 50, 75, 95, 99, 99.9)


def summarise(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Count, mean, standard error, quantiles and extremes of `values`.

    NaN values are counted and left out of everything else. Infinite ones are values: they make the mean infinite and
    stand last among the quantiles; ``finite_mean`` is the mean without them. A quantile is always one of the values.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    valid = flat[~np.isnan(flat)]
    finite = valid[np.isfinite(valid)]
    mean = float(valid.mean()) if valid.size else math.nan
    spread = float(valid.std(ddof=1)) if valid.size > 1 and finite.size == valid.size else math.nan
    quantiles = np.quantile(valid, np.array(PERCENT) / 100, method="inverted_cdf") if valid.size else [math.nan] * 9
    return {
        "rows": int(flat.size),
        "nan": int(flat.size - valid.size),
        "inf": int(valid.size - finite.size),
        "mean": mean,
        "standard_error": spread / math.sqrt(valid.size) if valid.size else math.nan,
        "finite_mean": float(finite.mean()) if finite.size else math.nan,
        "min": float(valid.min()) if valid.size else math.nan,
        "quantiles": {f"{percent}%": float(value) for percent, value in zip(PERCENT, quantiles, strict=True)},
        "max": float(valid.max()) if valid.size else math.nan,
    }
