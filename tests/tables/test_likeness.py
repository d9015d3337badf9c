"""like=: what other tools reported, recorded with their versions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare, words
from tests.reference import other_tools

RECORDED = json.loads(other_tools.FILE.read_text())
PAIRS = other_tools.made_up()
NAMES = [*PAIRS, *other_tools.REAL]


def pair_of(name):
    try:
        return PAIRS[name] if name in PAIRS else other_tools.REAL[name]()
    except LookupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("pair", NAMES)
@pytest.mark.parametrize("tool", RECORDED)
def test_what_the_tool_reported(tool, pair):
    reference, current = pair_of(pair)
    frames = (pd.DataFrame({"x": side}) for side in (reference, current))
    found = compare(*frames, like=tool).to_frame().loc[0, f"like_{tool}"]
    theirs = RECORDED[tool]["values"][pair]
    if theirs is None or theirs == "inf":  # Great Expectations writes None for an infinite value
        assert found == math.inf
    else:
        assert found == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("pair", NAMES)
def test_the_table_of_the_documentation_is_up_to_date(pair):
    written = {row["columns"]: row for row in json.loads(other_tools.DATA.read_text())["rows"]}
    assert list(written) == NAMES
    made = other_tools.row(pair, pair_of(pair))
    for name in ("kl", "kl_reverse"):
        assert written[pair].pop(name) == pytest.approx(made.pop(name), rel=1e-9)
    assert written[pair] == made


def test_scipy_itself():
    stats = pytest.importorskip("scipy.stats", reason="peer")
    assert RECORDED["scipy"]["values"]["shifted"] == pytest.approx(
        other_tools.scipy(*PAIRS["shifted"], True), rel=1e-12
    )
    assert stats.entropy([1, 0], [1, 1]) == pytest.approx(math.log(2))


def test_it_touches_no_other_column():
    before, after = (pd.DataFrame({"x": side, "w": "a"}) for side in PAIRS["same law"])
    plain, more = compare(before, after).to_frame(), compare(before, after, like="psi10").to_frame()
    pd.testing.assert_frame_equal(more.drop(columns="like_psi10"), plain)
    assert more["like_psi10"].notna().all()


@pytest.mark.parametrize("tool", RECORDED)
@pytest.mark.parametrize(("kind", "words"), [("M8[s]", "times"), ("m8[s]", "durations")])
def test_times_have_no_value(tool, kind, words):
    """None of the tools cuts them into bins."""
    frame = pd.DataFrame({"t": np.arange(9).astype(kind), "x": np.arange(9.0)})
    rows = compare(frame, frame, like=tool).to_frame().set_index("column")
    assert math.isnan(rows.loc["t", f"like_{tool}"])
    assert rows.loc["t", "status"] == f"like_{tool}: knows no bins of {words}"
    assert rows.loc["t", "kl"] == 0
    assert rows.loc["x", "status"] == "ok"


def test_degenerate_columns_are_numbers_or_nan():
    sides = [[], [math.nan], [math.nan, 1.0], [1.0, 1.0], [math.inf, 1.0, 2.0], np.arange(50.0)]
    for tool in RECORDED:
        for first in sides:
            for second in sides:
                frames = (pd.DataFrame({"x": np.asarray(side, float)}) for side in (first, second))
                row = compare(*frames, like=tool).to_frame().loc[0]
                assert isinstance(row[f"like_{tool}"], float)


@pytest.mark.parametrize("tool", RECORDED)
@pytest.mark.parametrize("values", [["a", "b"], [True, False], [1.0, 2.0]])
def test_a_side_without_values_has_no_value(tool, values):
    """feature-engine takes 1e-4 for each share there, so that two such columns would have a PSI of 0."""
    full = pd.DataFrame({"x": values})
    for before, after in ((full, full.head(0)), (full.head(0), full), (full.head(0), full.head(0))):
        assert math.isnan(compare(before, after, like=tool).to_frame().loc[0, f"like_{tool}"])
    lost = full.assign(x=pd.Series([None, None], dtype="str" if values[0] == "a" else float))
    if tool != "tfdv":  # to which missing values are a cell of numbers
        assert math.isnan(compare(full, lost, like=tool).to_frame().loc[0, f"like_{tool}"])


def test_it_needs_the_values():
    before = pd.DataFrame({"x": [1.0, 2.0]})
    for reference, current in (
        (Profile.fit(before), before),
        (before, Profile.fit(before)),
        (before, Chunks(lambda: [before])),
    ):
        with pytest.raises(TypeError, match="like: needs both tables as data frames"):
            compare(reference, current, like="scipy")


HARD = {
    "narrow quartiles": np.r_[np.random.default_rng(0).normal(size=100) * 1e-9, 1e12],
    "one large number": np.full(50, 1e17),
    "the ends of float64": np.r_[[1e308, -1e308] * 20, np.arange(30.0)],
}


@pytest.mark.parametrize("values", HARD)
@pytest.mark.parametrize("tool", RECORDED)
def test_one_column_does_not_lose_the_table(tool, values):
    frame = pd.DataFrame({"hard": HARD[values], "easy": np.arange(HARD[values].size)})
    rows = compare(frame, frame, like=tool).to_frame().set_index("column")
    assert rows.loc["easy", "status"] == "ok"
    assert rows.loc["easy", f"like_{tool}"] == pytest.approx(0, abs=1e-12)
    lost = math.isnan(rows.loc["hard", f"like_{tool}"])
    assert rows.loc["hard", "status"].startswith(f"like_{tool}: ") if lost else rows.loc["hard", "status"] == "ok"
    assert rows.loc["hard", "kl"] == 0


def test_why_there_is_no_value():
    frame = pd.DataFrame({"x": HARD["narrow quartiles"]})
    status = compare(frame, frame, like="great_expectations").to_frame().loc[0, "status"]
    assert "partition would have" in status
    assert "bins, more than 1,000,000" in status


def test_weights_are_refused():
    frame = pd.DataFrame({"x": [1.0, 2.0], "w": [1.0, 3.0]})
    for weights in ("w", (np.ones(2), None)):
        with pytest.raises(ValueError, match="like: what these tools report knows no weights"):
            compare(frame, frame, like="scipy", weights=weights)


@pytest.mark.parametrize("tool", RECORDED)
def test_more_words_than_are_remembered(tool, monkeypatch):
    """The tools count every category, and so none may be forgotten."""
    pytest.importorskip("pyarrow", reason="the words lie in its layout")
    monkeypatch.setattr(words, "MOST", 1000)
    names = pd.Series([f"n{k}" for k in range(3000)], dtype="str")
    before, same, more = (pd.DataFrame({"x": one}) for one in (names, names[::-1], pd.concat([names, names[:1500]])))
    assert compare(before, same, like=tool).rows()[0][f"like_{tool}"] == 0.0
    expected = compare(before.astype(object), more.astype(object), like=tool).rows()[0][f"like_{tool}"]
    assert compare(before, more, like=tool).rows()[0][f"like_{tool}"] == pytest.approx(expected, rel=1e-12)
    assert 0.0 < expected < math.inf
