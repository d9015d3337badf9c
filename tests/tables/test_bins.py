"""The rules that a caller gives: to which columns they belong, what edges may be, and what is refused by name."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare

EDGES = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-06-01"), pd.Timestamp("2021-01-01")]
ZONED = [edge.tz_localize("Asia/Tokyo") for edge in EDGES]
FRAME = pd.DataFrame({
    0: [1.5, 2.5, 3.5],
    "text": [*"abc"],
    "flag": [True, False, True],
    "time": pd.to_datetime(["2019-12-31 16:00", "2020-05-01 00:00", "2020-07-01 00:00"]),
    "zone": pd.to_datetime(["2019-12-31 16:00", "2020-05-01 00:00", "2020-07-01 00:00"]).tz_localize("UTC"),
    "span": pd.to_timedelta([1, 2, 30], unit="h"),
    "none": [None, None, None],
})  # fmt: skip


def counts_of(column, edges):
    return Profile.fit(FRAME, bins={column: edges}).tallies[str(column)].counts.tolist()


def test_names_that_are_no_texts():
    assert counts_of(0, [0, 2, 4]) == [0, 1, 2, 0, 0, 0, 0]
    assert Profile.fit(FRAME, bins={"0": [0, 2, 4]}) == Profile.fit(FRAME, bins={0: [0, 2, 4]})
    with pytest.raises(ValueError, match="bins: column '0' stands there twice"):
        Profile.fit(FRAME, bins={0: 5, "0": 5})


@pytest.mark.parametrize(
    ("name", "rule", "text"),
    [
        ("text", 5, "column 'text' holds categories, of which no bins are made"),
        ("text", [0, 1], "column 'text' holds categories, of which no bins are made"),
        ("flag", "quantile", "column 'flag' holds truth values, of which no bins are made"),
        (0, EDGES, "column '0' holds numbers, but the edges are times"),
        (0, [dt.timedelta(0), dt.timedelta(1)], "column '0' holds numbers, but the edges are durations"),
        ("time", [0, 1], "column 'time' holds times, but the edges are numbers"),
        ("time", ZONED, "column 'time' holds times without a zone, but the edges have one"),
        ("zone", EDGES, "column 'zone' holds times with a zone, but the edges have none"),
        ("zone", np.array(EDGES, "M8[ns]"), "column 'zone' holds times with a zone, but the edges have none"),
        ("zone", [dt.date(2020, 1, 1), dt.date(2021, 1, 1)], "column 'zone' holds times with a zone, but"),
        ("span", EDGES, "column 'span' holds durations, but the edges are times"),
        (0, [3, 2], "column 0: edges increase, but number 1 does not"),
        (0, "some", "column 0: one of 'auto'"),
        (0, 0, "column 0: from 1 to"),
        (0, ["1", "2"], "column 0: edges are a sequence of at least two numbers or times"),
        (0, [[1, 2], [3, 4]], "column 0: edges are a sequence of at least two numbers or times"),
        (0, [1.0, math.nan], "column 0: edges are finite"),
        (0, [math.inf, 1.0], "column 0: edges are finite"),
        ("time", [EDGES[0], pd.NaT], "column 'time': edges, none of which is missing"),
        ("time", [EDGES[0], ZONED[1]], "column 'time': edges all have a zone, or none has"),
        ("time", np.array(["2020-01-01", "NaT"], "M8[s]"), "column 'time': edges are finite"),
        ("time", np.array(["2020-01-01", "400000-01-01"], "M8[D]"), "column 'time': holds times that do not fit"),
    ],
)
def test_what_is_refused_names_the_column(name, rule, text):
    with pytest.raises(ValueError, match=f"bins: {text}"):
        Profile.fit(FRAME, bins={name: rule})


def test_a_rule_for_all_is_no_error():
    assert set(Profile.fit(FRAME, bins=5).problems) == set()
    assert Profile.fit(FRAME, bins=EDGES).problems == {
        "0": "holds numbers, but the edges are times",
        "span": "holds durations, but the edges are times",
        "zone": "holds times with a zone, but the edges have none",
    }
    assert Profile.fit(FRAME, bins={"none": 5, "text": "category"}).problems == {}


def test_a_piece_without_values_has_no_kind():
    pieces = [pd.DataFrame({"t": [math.nan]}), FRAME[["time"]].rename(columns={"time": "t"})]
    assert Profile.fit(Chunks(lambda: pieces), bins=EDGES).tallies["t"].counts.tolist() == [1, 1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "edges", [EDGES, pd.DatetimeIndex(EDGES), [edge.to_pydatetime() for edge in EDGES], np.array(EDGES, "M8[ns]")]
)
def test_times_as_edges(edges):
    assert counts_of("time", edges) == [1, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "edges", [ZONED, pd.DatetimeIndex(ZONED), pd.Series(ZONED), [e.to_pydatetime() for e in ZONED]]
)
def test_times_with_a_zone_as_edges(edges):
    assert counts_of("zone", edges) == [0, 2, 1, 0, 0, 0, 0]


def test_durations_dates_and_decimals_as_edges():
    assert counts_of("span", [dt.timedelta(0), pd.Timedelta(days=1)]) == [0, 2, 1, 0, 0, 0]
    assert counts_of("time", [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]) == [1, 2, 0, 0, 0, 0]
    assert counts_of(0, [Decimal(1), Decimal("2.5"), 4]) == [0, 1, 2, 0, 0, 0, 0]


def test_outer_edges_may_be_infinite():
    frame = pd.DataFrame({"x": [-math.inf, -1e308, -1.0, 0.0, 3.0, math.inf, None]})
    profile = Profile.fit(frame, bins=[-math.inf, 0, math.inf])
    assert profile.cells["x"].labels()[1:3] == ["[-inf, 0)", "[0, inf]"]
    assert profile.tallies["x"].counts.tolist() == [0, 2, 2, 0, 1, 1, 1]
    assert Profile.from_json(profile.to_json()) == profile
    assert Profile.fit(frame, bins=[-math.inf, math.inf]).tallies["x"].counts.tolist() == [0, 4, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", ["datetime", "aware", "timedelta"])
def test_outer_edges_of_times_may_be_infinite(kind):
    time = pd.Series(pd.to_datetime(["1700-01-01", "2020-01-01", "2020-01-02", "2200-01-01", None]))
    start = pd.Timestamp("2020-01-01")
    if kind == "aware":
        time, start = time.dt.tz_localize("UTC"), start.tz_localize("Europe/Paris")
    elif kind == "timedelta":
        time, start = time - start, pd.Timedelta(0)
    frame = pd.DataFrame({"x": time})
    profile = Profile.fit(frame, bins={"x": [-math.inf, start, math.inf]})
    text = {"datetime": "2020-01-01", "aware": "2019-12-31T23:00:00Z", "timedelta": "00:00:00"}[kind]
    assert profile.cells["x"].labels()[:4] == ["below -inf", f"[-inf, {text})", f"[{text}, inf]", "above inf"]
    assert profile.tallies["x"].counts.tolist() == [0, 1, 3, 0, 0, 0, 1]
    assert Profile.from_json(profile.to_json()) == profile
    half = Profile.fit(frame, bins={"x": [start, math.inf]})
    assert half.tallies["x"].counts.tolist() == [1, 3, 0, 0, 0, 1]
    assert compare(frame, frame, bins={"x": [start, math.inf]}).to_frame()["status"].tolist() == ["ok"]


@pytest.mark.parametrize("edges", [[math.inf, 0, -math.inf], [0, math.inf, 1], [-math.inf, math.inf]])
def test_infinite_edges_of_times_are_the_outer_ones(edges):
    day = pd.Timestamp("2020-01-01")
    edges = [edge if math.isinf(edge) else day + pd.Timedelta(days=edge) for edge in edges]
    with pytest.raises(ValueError, match="bins: column 'x'"):
        Profile.fit(pd.DataFrame({"x": [day]}), bins={"x": edges})


@pytest.mark.parametrize(("library", "make"), [("polars", "Series"), ("pyarrow", "array")])
def test_times_with_a_zone_of_other_libraries_as_edges(library, make):
    loaded = pytest.importorskip(library, reason="edges of this library")
    edges = getattr(loaded, make)([edge.to_pydatetime() for edge in ZONED])
    assert counts_of("zone", edges) == [0, 2, 1, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="holds times without a zone, but the edges have one"):
        counts_of("time", edges)
