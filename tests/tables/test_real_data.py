"""Real tables that ship inside packages, and drift that was put in and must be found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Comparison, Profile, compare, scan


def whole(found: Comparison) -> pd.DataFrame:
    """The table, after checks that hold for any data."""
    table = found.to_frame().set_index("column")
    parts = table[["kl_missing", "kl_tails", "kl_new", "kl_reshaping"]]
    np.testing.assert_allclose(parts.sum(axis=1), table["kl"], rtol=1e-12, atol=1e-15)
    sums = found.contributions.groupby("column")["contribution"].sum().loc[table.index]
    np.testing.assert_allclose(sums, table["kl"], rtol=1e-10, atol=1e-14)
    assert (table["status"] == "ok").all()
    assert (table["ci_low"] <= table["ci_high"]).all()
    return table


def flights() -> list[Path]:
    package = importlib.util.find_spec("popmon")
    if package is None or package.origin is None:
        pytest.skip("the flights ship with popmon")
    folder = Path(package.origin).parent / "test_data"
    return [folder / f"{name}.csv.gz" for name in ("flight_delays_reference", "flight_delays")]


def test_flight_delays():
    before, after = (pd.read_csv(path) for path in flights())
    table = whole(compare(before, after))
    assert table["n_reference"].unique().tolist() == [49_992]
    assert table["n_current"].unique().tolist() == [50_008]
    assert table.index[table["kl"].argsort()[-2:]].isin(["DATE", "Unnamed: 0"]).all()  # the two halves of a year
    assert table.loc["AIRLINE", "largest_cell"] == "US"  # US Airways became a part of American
    assert table.loc["AIR_TIME", "kl_missing"] > table.loc["AIR_TIME", "kl_reshaping"] / 10
    files = compare(*(scan(path, rows=20_000) for path in flights()))
    pd.testing.assert_frame_equal(files.to_frame().set_index("column"), table)


def test_tumours():
    datasets = pytest.importorskip("sklearn.datasets", reason="the tumours are scikit-learn's")
    data = datasets.load_breast_cancer(as_frame=True)
    malignant = data.target == 0
    found = compare(data.data[~malignant], data.data[malignant])
    table = whole(found)
    assert (table["p_adjusted"] < 0.05).mean() > 0.8
    assert set(found.by_evidence()[:8]) >= {"worst radius", "worst perimeter", "worst area"}
    same = whole(compare(data.data[~malignant].iloc[::2], data.data[~malignant].iloc[1::2]))
    assert (same["p_adjusted"] > 0.05).mean() > 0.9


def statsmodels(name: str) -> pd.DataFrame:
    datasets = pytest.importorskip("statsmodels.datasets", reason="the data are statsmodels'")
    return getattr(datasets, name).load_pandas().data


def test_health_insurance_by_plan():
    data = statsmodels("randhie")
    free = data["lncoins"] == 0
    table = whole(
        compare(data[free], data[~free], columns=["mdvis", "lpi", "hlthg", "xage"] if "xage" in data else None)
    )
    assert table.loc["lpi", "kl"] > table.loc["hlthg", "kl"]
    assert table.loc["mdvis", "p_adjusted"] < 1e-6


def test_affairs_by_age():
    data = statsmodels("fair")
    young = data["age"] < 30
    table = whole(compare(data[young], data[~young]))
    assert table["kl"].idxmax() in ("age", "yrs_married")
    assert table.loc["educ", "kl"] < table.loc["children", "kl"]


def test_fertility_by_decade_has_missing_values():
    data = statsmodels("fertility").set_index("Country Code").filter(regex=r"^\d{4}$").apply(pd.to_numeric)
    long = data.melt(var_name="year", value_name="rate")
    long["year"] = long["year"].astype(int)
    sixties, nineties = (long[long["year"].between(start, start + 9)] for start in (1960, 1990))
    row = whole(compare(sixties[["rate"]], nineties[["rate"]])).loc["rate"]
    assert row["p_value"] < 1e-6
    assert row["kl_missing"] > 0
    counts = Profile.fit(sixties[["rate"]]).tallies["rate"].counts
    assert counts[-1] == sixties["rate"].isna().sum()


def test_injected_drift_is_found_where_it_was_put():
    rng = np.random.default_rng(11)
    before, after = (pd.DataFrame(rng.normal(size=(4000, 40))).add_prefix("x") for _ in range(2))
    after.loc[::20, "x3"] = np.nan
    after["x7"] += 0.3
    after.loc[:99, "x11"] += 50
    table = whole(compare(before, after))
    changed = set(table.index[table["p_adjusted"] < 0.01])
    assert changed == {"x3", "x7", "x11"}
    parts = ["kl_missing", "kl_tails", "kl_new", "kl_reshaping"]
    assert table.loc["x3", parts].astype(float).idxmax() == "kl_missing"
    assert table.loc["x7", parts].astype(float).idxmax() == "kl_reshaping"
    assert table.loc["x11", "kl_tails"] > 0.001
