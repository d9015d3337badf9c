"""The numbers of a column do not depend on the other columns of its table."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba import kl_divergence
from klnumba.tables import compare

NAMES = ["y", "x", "k", "t", "f"]


def table(seed):
    draws = np.random.default_rng(seed)
    return pd.DataFrame({
        "y": draws.normal(0.02 * seed, 1.0, 20_000),
        "x": draws.normal(size=20_000),
        "k": draws.integers(0, 1000, 20_000).astype(str),
        "t": draws.integers(0, 3000, 20_000).astype(str),
        "f": draws.integers(0, 3 + seed, 20_000),
        "w": draws.lognormal(size=20_000),
    })  # fmt: skip


BEFORE, AFTER = table(0), table(1)


@pytest.mark.parametrize("smoothing", ["none", "jeffreys"])
@pytest.mark.parametrize("weights", [None, "w"])
def test_alone_and_with_others(smoothing, weights):
    options = {"smoothing": smoothing, "weights": weights, "correction": "none"}
    rows = compare(BEFORE, AFTER, columns=NAMES, **options).to_frame().set_index("column")
    for names in [[name] for name in NAMES] + [["f", "y"], ["t", "x", "k"]]:
        alone = compare(BEFORE, AFTER, columns=names, **options).to_frame().set_index("column")
        pd.testing.assert_frame_equal(rows.loc[alone.index], alone, check_exact=True)


def test_the_number_of_every_door():
    found = compare(BEFORE, AFTER, columns=NAMES, smoothing="none")
    for name, result in found.results.items():
        assert result.values["kl"] == kl_divergence(result.reference.counts, result.current.counts), name


def test_correction_and_order_are_those_of_all_columns():
    found = compare(BEFORE, AFTER, columns=NAMES, correction="bonferroni")
    assert list(found.results) == NAMES
    for result in found.results.values():
        assert result.values["p_adjusted"] == min(1.0, 5 * result.values["p_value"])
