"""Every type of column, from every frame library, ends in the same cells."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Profile, compare
from klnumba.tables.fitting import MOST_CATEGORIES


def profile_of(values, **options):
    profile = Profile.fit(pd.DataFrame({"x": values}), **options)
    assert not profile.problems, profile.problems
    return profile


def counts_of(values, **options):
    return profile_of(values, **options).tallies["x"].counts.tolist()


NUMBERS = [1, 2, 2, 3, 5, 8]


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "int64", "int8", "uint16", "Int64", "Int8", "UInt32", "Float64", "Float32", "object",
     "int64[pyarrow]", "double[pyarrow]", "float[pyarrow]", "decimal"],
)  # fmt: skip
@pytest.mark.parametrize("missing", [False, True])
def test_numbers(dtype, missing):
    edges = [1.0, 2.0, 3.0, 6.0]
    values = NUMBERS + ([None] if missing else [])
    if dtype == "decimal":
        series = pd.Series([None if v is None else Decimal(v) for v in values], dtype=object)
    elif missing and dtype in ("int64", "int8", "uint16"):
        pytest.skip("NumPy integers have no missing values")
    else:
        if "pyarrow" in dtype:
            pytest.importorskip("pyarrow", reason="Arrow columns")
        series = pd.Series(values, dtype=dtype)
    assert counts_of(series, bins=edges) == [0, 1, 2, 2, 1, 0, 0, int(missing)]


def test_arrow_decimals():
    pa = pytest.importorskip("pyarrow", reason="Arrow columns")
    series = pd.Series([Decimal("1.10"), Decimal("2.20"), None], dtype=pd.ArrowDtype(pa.decimal128(10, 2)))
    assert counts_of(series, bins=[1, 2, 3]) == [0, 1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object", "bool[pyarrow]"])
@pytest.mark.parametrize("missing", [False, True])
def test_truth_values(dtype, missing):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="Arrow columns")
    if missing and dtype == "bool":
        pytest.skip("NumPy truth values have no missing ones")
    series = pd.Series([True, False, True] + ([None] if missing else []), dtype=dtype)
    profile = profile_of(series)
    assert profile.cells["x"].kind == "boolean"
    assert profile.cells["x"].labels() == ["False", "True", "other", "missing"]
    assert profile.tallies["x"].counts.tolist() == [1, 2, 0, int(missing)]


@pytest.mark.parametrize("dtype", ["str", "object", "category", "string", "string[pyarrow]", "large_string[pyarrow]"])
def test_words(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="Arrow columns")
    series = pd.Series(["b", "a", None, "b", "ü<b>", ""], dtype=dtype)
    profile = profile_of(series)
    assert profile.cells["x"].labels() == ["b", "", "a", "ü<b>", "other", "missing"]
    assert profile.tallies["x"].counts.tolist() == [2, 1, 1, 1, 0, 1]
    profile.update(pd.DataFrame({"x": pd.Series(["new", "a", "new"], dtype=dtype)}))
    assert profile.tallies["x"].counts.tolist() == [2, 1, 2, 1, 2, 1]
    assert profile.tallies["x"].unseen == {"new": 2}


def test_categories_of_numbers_and_mixed_objects():
    assert profile_of(pd.Series([3, 1, 3], dtype="category")).cells["x"].names == (3, 1)
    assert profile_of(pd.Series([1, "1", "1", 2.5, (1, 2)], dtype=object)).cells["x"].names == (
        "1", "(1, 2) (tuple)", 1, 2.5,
    )  # fmt: skip
    unused = pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"]))
    assert profile_of(unused).cells["x"].names == ("a",)


@pytest.mark.parametrize("dtype", ["object", "category"])
@pytest.mark.parametrize("value", [dt.date(2020, 1, 1), (1, 2), Decimal("1.5"), dt.timedelta(hours=1)])
def test_values_and_their_texts_are_not_the_same(value, dtype):
    different = pd.Index([value, str(value), "a"], dtype=object, tupleize_cols=False)
    profile = profile_of(pd.Series(pd.Categorical.from_codes([0, 1, 1, 2], different)).astype(dtype))
    assert profile.cells["x"].names == (str(value), *sorted([f"{value} ({type(value).__name__})", "a"]))


def test_numbers_and_their_texts_have_labels_of_their_own():
    before = pd.DataFrame({"x": pd.Series([1, 1, 1, "1", "2.5", 2.5, "1 (int)"], dtype=object)})
    after = pd.DataFrame({"x": pd.Series([1, "1", "1", "1", "2.5", 2.5, "1 (int)"], dtype=object)})
    found = compare(before, after)
    assert found.contributions["cell"].tolist() == ["1 (int) (int)", "1", "1 (int)", "2.5", "2.5 (float)"]
    assert found.to_frame().loc[0, "largest_cell"] == "1 (int) (int)"
    one = profile_of(pd.Series([1, "a"], dtype=object)).cells["x"]
    assert one.labels()[:2] == ["1", "a"]


def test_numbers_of_several_types_are_numbers():
    mixed = [Decimal("1.5"), 2, 0.25, np.float32(3.0), np.int64(4), None, Fraction(1, 2)]
    plain = [1.5, 2.0, 0.25, 3.0, 4.0, np.nan, 0.5]
    found = profile_of(pd.Series(mixed, dtype=object), bins=[0, 1, 2, 4])
    assert found == profile_of(pd.Series(plain), bins=[0, 1, 2, 4])
    for other in (True, "1", 1j):
        column = pd.Series([*mixed, other], dtype=object)
        assert Profile.fit(pd.DataFrame({"x": column})).cells["x"].kind == "category"


TIMES = ["2020-01-01", "2020-01-02", "2020-06-01", None]
EDGES = np.array(["2020-01-01", "2020-03-01", "2020-12-31"], "M8[D]")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times(unit, zone):
    series = pd.Series(TIMES).astype(f"datetime64[{unit}]")
    if zone:
        series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
    edges = [*pd.DatetimeIndex(EDGES).tz_localize("UTC")] if zone else EDGES
    profile = profile_of(series, bins=edges)
    assert profile.tallies["x"].counts.tolist() == [0, 2, 1, 0, 0, 0, 1]
    found = "[2020-01-01Z, 2020-03-01Z)" if zone else "[2020-01-01, 2020-03-01)"  # in UTC, as Z says
    assert profile.cells["x"].labels()[1] == found
    assert profile.cells["x"].aware == (zone is not None)


def test_times_as_objects_and_dates():
    dates = pd.Series([None if t is None else dt.date.fromisoformat(t) for t in TIMES], dtype=object)
    assert counts_of(dates, bins=EDGES) == [0, 2, 1, 0, 0, 0, 1]
    pa = pytest.importorskip("pyarrow", reason="Arrow columns")
    assert counts_of(dates.astype(pd.ArrowDtype(pa.date32())), bins=EDGES) == [0, 2, 1, 0, 0, 0, 1]


def test_times_with_and_without_a_zone_do_not_mix():
    naive = pd.Series(TIMES).astype("datetime64[us]")
    a, b = pd.DataFrame({"x": naive}), pd.DataFrame({"x": naive.dt.tz_localize("UTC")})
    status = compare(a, b).to_frame().loc[0, "status"]
    assert status == "holds times with a zone, but the reference times without a zone"
    other = pd.DataFrame({"x": naive.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")})
    assert compare(b, other).to_frame().loc[0, "kl"] == 0


@pytest.mark.parametrize("aware_first", [False, True])
def test_times_with_and_without_a_zone_in_one_column(aware_first):
    naive, aware = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
    values = [aware, None, naive] if aware_first else [pd.NaT, naive, aware]
    frame = pd.DataFrame({"x": pd.Series(values * 20, dtype=object)})
    status = compare(frame, frame).to_frame().loc[0, "status"]
    assert status == "holds times with a zone and times without one"


def test_times_beyond_microseconds_are_a_status():
    far = pd.DataFrame({"x": np.array(["2020-01-01", "400000-01-01"], "M8[s]")})
    assert "do not fit into microseconds" in Profile.fit(far).problems["x"]


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_durations(unit):
    series = pd.Series(pd.to_timedelta([0, 90, 86400 * 3, None], unit="s")).astype(f"timedelta64[{unit}]")
    profile = profile_of(series, bins=np.array([0, 100, 86400 * 4], "m8[s]"))
    assert profile.tallies["x"].counts.tolist() == [0, 2, 1, 0, 0, 0, 1]
    assert profile.cells["x"].labels()[1:3] == ["[00:00:00, 00:01:40)", "[00:01:40, 4 d 00:00:00]"]


def test_types_without_cells_have_a_status():
    frame = pd.DataFrame({"z": [1j, 2j], "o": pd.Series([1j, 2j], dtype=object), "s": [{"a": 1}, {"b": 2}]})
    problems = Profile.fit(frame).problems
    assert set(problems) == {"z", "o", "s"}
    assert problems["z"] == "holds complex128, which has no cells"


def test_intervals_are_what_their_categories_are():
    cut = pd.cut(pd.Series([0.5, 1.5, 1.5, None]), [0, 1, 2])
    plain = pd.Series(pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), (1, 2), math.nan]))
    assert isinstance(plain.dtype, pd.IntervalDtype)
    assert profile_of(plain) == profile_of(cut)
    assert profile_of(plain).cells["x"].labels() == ["(1, 2]", "(0, 1]", "other", "missing"]


@pytest.mark.parametrize("values", [[True, False, True], [1, 2, 2], ["a", "b", "a"], [dt.datetime(2020, 1, 1)] * 3])
def test_sparse_columns_are_what_plain_ones_are(values):
    plain = pd.Series(values)
    sparse = pd.Series(pd.arrays.SparseArray(plain))
    assert profile_of(sparse) == profile_of(plain)
    assert compare(pd.DataFrame({"x": sparse}), pd.DataFrame({"x": plain})).to_frame().loc[0, "kl"] == 0


OF_ARROW = {
    "decimal256": ("decimal256(60, 2)", [Decimal("1.25"), None, Decimal(2) ** 100, Decimal(2) ** 100 + 1] * 2),
    "decimals of thousands": ("decimal128(5, -3)", [Decimal("1E+3"), None, Decimal("2E+3")] * 3),
    "decimal64": ("decimal64(9, 2)", [Decimal("1.25"), None, Decimal("2.50")] * 3),
    "bytes": ("binary()", [b"a", b"a", None, b"\xff"]),
    "large bytes": ("large_binary()", [b"a", b"a", None, b"\xff"]),
    "bytes of one size": ("binary(2)", [b"ab", b"ab", None, b"\xff\x00"]),
    "bytes in views": ("binary_view()", [b"a", b"a", None, b"\xff"]),
    "time in us": ("time64('us')", [dt.time(1), dt.time(1), None, dt.time(2, 0, 0, 5)]),
    "time in ns": ("time64('ns')", [dt.time(1), dt.time(1), None, dt.time(2, 0, 0, 5)]),
    "time in s": ("time32('s')", [dt.time(1), dt.time(1), None, dt.time(2)]),
    "date in ms": ("date64()", [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None]),
}


@pytest.mark.parametrize("frame", ["pandas", "pyarrow"])
@pytest.mark.parametrize("name", OF_ARROW)
def test_every_type_of_arrow_is_what_its_objects_are(name, frame):
    pa = pytest.importorskip("pyarrow", reason="Arrow columns")
    kind, values = OF_ARROW[name]
    if kind.startswith("decimal64") and not hasattr(pa, "decimal64"):
        pytest.skip("this pyarrow has no narrow decimals")
    held = pa.chunked_array([values[:2], values[2:]], eval(f"pa.{kind}", {"pa": pa}))
    made = pa.table({"x": held})
    if frame == "pandas":
        made = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(held)})
    expected = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    rule = "category" if "decimal256" in kind else "auto"
    profile = Profile.fit(made, bins=rule)
    assert not profile.problems
    assert profile == Profile.fit(expected, bins=rule)
    assert compare(expected, made, bins=rule).to_frame().loc[0, ["kl", "status"]].tolist() == [0, "ok"]
    if profile.cells["x"].kind == "category":
        weights = [float(k) for k in range(len(values))]
        ours, theirs = (compare(expected, one, weights=(weights, weights)).results["x"] for one in (made, expected))
        assert ours.current.counts.tolist() == theirs.current.counts.tolist()


def test_types_of_polars_are_what_their_objects_are():
    pl = pytest.importorskip("polars", reason="frames of polars")
    pytest.importorskip("pyarrow", reason="polars hands its bytes over in Arrow's layout")
    content = {
        "whole": [2**100, 2**100 + 1, None, 1], "bytes": [b"a", b"a", None, b"\xff"],
        "time": [dt.time(1), dt.time(1), None, dt.time(2)], "object": [1, "1", None, (1, 2)],
        "number": [1, 2.5, None, 3],
    }  # fmt: skip
    kinds = {"whole": pl.Int128, "bytes": pl.Binary, "time": pl.Time, "object": pl.Object, "number": pl.Object}
    made = pl.DataFrame({name: pl.Series(values, dtype=kinds[name]) for name, values in content.items()})
    rule = {"whole": "category"}
    profile = Profile.fit(made, bins=rule)
    assert not profile.problems
    assert profile == Profile.fit(pd.DataFrame(content, dtype=object), bins=rule)


@pytest.mark.parametrize("value", [10**400, Decimal("sNaN"), Decimal("1e400"), -(10**400)])
def test_numbers_without_a_float_are_a_status_in_words(value):
    frame = pd.DataFrame({"x": pd.Series([value, type(value)(1)] * 5, dtype=object), "y": [1.5] * 10})
    found = compare(frame, frame).to_frame().set_index("column")
    assert found.loc["y", "status"] == "ok"
    assert found.loc["x", "status"].startswith("holds a number that has no float64")


def test_infinite_decimals_are_infinities():
    values = [Decimal("Infinity"), Decimal("-Infinity"), Decimal("NaN"), Decimal(1)]
    assert counts_of(pd.Series(values, dtype=object), bins=[0, 1, 2])[-3:] == [1, 1, 1]


def test_periods_and_sparse_numbers():
    periods = pd.Series(pd.period_range("2020-01", periods=5, freq="M"))
    assert counts_of(periods, bins=np.array(["2020-01-01", "2020-03-01", "2020-12-31"], "M8[D]"))[1:3] == [2, 3]
    assert counts_of(pd.arrays.SparseArray([0.0, 0.0, 1.5]), bins=[-1, 1, 2])[1:3] == [2, 1]


def test_numbers_at_the_ends_of_float64():
    wide = pd.DataFrame({"x": [1.7e308, -1.7e308, 0.5, 0.25]})
    assert profile_of(wide["x"]).tallies["x"].counts.sum() == 4
    for rule in ("sturges", "doane", "fd", 5):
        assert "spans more than a float64 holds" in Profile.fit(wide, bins=rule).problems["x"]
    assert profile_of([5e-324, 0.0, 1e-323] * 30, bins="fd").tallies["x"].counts.sum() == 90


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_other_frames_give_what_pandas_gives(name):
    library = pytest.importorskip(name, reason=f"frames of {name}")
    rng = np.random.default_rng(0)
    content = {
        "number": [*rng.normal(size=200).tolist(), None, math.inf],
        "whole": [*rng.integers(0, 9, 201).tolist(), None],
        "word": [*rng.choice(["a", "b"], 201).tolist(), None],
        "flag": [*(rng.random(201) < 0.5).tolist(), None],
        "time": [*(dt.datetime(2020, 1, 1) + dt.timedelta(hours=h) for h in range(201)), None],
        "zone": [*(dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in range(201)), None],
        "span": [*(dt.timedelta(hours=h) for h in range(201)), None],
        "date": [*(dt.date(2020, 1, 1) + dt.timedelta(days=h) for h in range(201)), None],
        "money": [*(Decimal(h) / 4 for h in range(201)), None],
    }
    made = library.DataFrame(content) if name == "polars" else library.table(content)
    ours, theirs = Profile.fit(pd.DataFrame(content)), Profile.fit(made)
    assert not theirs.problems
    assert theirs == ours
    assert theirs.compare(made).to_frame()["kl"].eq(0).all()
    if name == "polars":
        categorical = library.DataFrame({"x": library.Series(["a", "b", None, "a"], dtype=library.Categorical)})
        assert Profile.fit(categorical).tallies["x"].counts.tolist() == [2, 1, 0, 1]
        with pytest.raises(TypeError, match="reference: a data frame in memory"):
            Profile.fit(made.lazy())


def test_a_million_categories_are_capped_and_reported():
    rng = np.random.default_rng(0)
    names = pd.Series(rng.integers(0, 10**9, 200_000)).astype(str)
    common = pd.Series(["often"] * 50_000)
    profile = profile_of(pd.concat([common, names], ignore_index=True))
    cells = profile.cells["x"]
    assert cells.size == MOST_CATEGORIES + 2
    assert cells.names[0] == "often"
    assert cells.folded == names.nunique() + 1 - MOST_CATEGORIES
    assert profile.tallies["x"].unseen is None
    assert profile.tallies["x"].counts.sum() == 250_000
    few = pd.DataFrame({"x": ["often"] * 9, "y": 1.5, "z": "a"})
    found = profile.compare(few)
    assert found.to_frame()["folded"].tolist()[:2] == [cells.folded, pd.NA]
    rows = {row["column"]: row["folded"] for row in json.loads(compare(few, few).to_json())["columns"]}
    assert rows == {"x": 0, "y": 0, "z": 0}
    assert json.loads(found.to_json())["columns"][0]["folded"] == cells.folded


def test_categories_named_as_other_cells_are():
    """The cells of others and of missing values are told from categories of that name."""
    values = pd.Series(["other", "other", "missing", "(missing)", None], dtype=object)
    assert profile_of(values).cells["x"].labels() == ["other", "(missing)", "missing", "(other)", "((missing))"]
    found = compare(pd.DataFrame({"x": values}), pd.DataFrame({"x": ["new"] * 90 + ["other"] * 10}))
    lost = compare(pd.DataFrame({"x": [*values] + [None] * 90}), pd.DataFrame({"x": values}))
    assert lost.to_frame().loc[0, "largest_cell"] == "((missing))"
    cells = found.contributions.set_index("cell")
    assert cells["n_current"].to_dict() == {"other": 10, "(missing)": 0, "missing": 0, "(other)": 90, "((missing))": 0}
    assert cells.loc["(other)", "part"] == "new"


def test_which_whole_numbers_are_categories():
    few, many = np.arange(32), np.arange(33)
    assert profile_of(few).to_dict()["columns"]["x"]["cells"] == "categories"
    assert profile_of(few.astype(float)).to_dict()["columns"]["x"]["cells"] == "categories"
    assert profile_of(many).to_dict()["columns"]["x"]["cells"] == "bins"
    assert profile_of(few + 0.5).to_dict()["columns"]["x"]["cells"] == "bins"
    for rule in (5, "quantile", [0, 10, 20]):
        assert profile_of(few, bins={"x": rule}).to_dict()["columns"]["x"]["cells"] == "bins"
    assert profile_of(many, bins="category").cells["x"].size == 33 + 2
    assert profile_of([1e300, -1e300, 2e300]).to_dict()["columns"]["x"]["cells"] == "bins"


@pytest.mark.parametrize("rule", ["sturges", "doane", "fd", 7])
def test_rules_of_equal_width_are_numpys(rule):
    values = np.random.default_rng(3).gamma(2.0, size=1000)
    np.testing.assert_allclose(profile_of(values, bins=rule).cells["x"].edges, np.histogram_bin_edges(values, rule))


def test_rules_are_capped():
    values = np.r_[np.random.default_rng(3).normal(size=1000), 1e12]
    assert profile_of(values, bins="fd").cells["x"].edges.size == 257
    assert profile_of(values).cells["x"].edges.size == 21


def test_quantile_bins_have_equal_shares_and_a_frequent_value_its_own():
    values = np.random.default_rng(3).normal(size=20_000)
    counts = np.array(counts_of(values, bins="quantile"))[1:-4]
    assert counts.size == 10
    assert np.ptp(counts) <= 2
    capped = np.minimum(values, 0.5)
    cells, counts = profile_of(capped).cells["x"], counts_of(capped)
    assert cells.labels()[-5] == "0.5"
    assert counts[-5] == (capped == 0.5).sum()
    assert counts_of([2.5, 2.5]) == [0, 2, 0, 0, 0, 0]
    assert counts_of([math.nan, math.inf]) == [0, 0, 0, 1, 1]


def test_truth_values_are_no_numbers_and_infinities_no_texts():
    mixed = pd.Series([True, 1, "True", math.inf, "inf", False, 0, True, None], dtype=object)
    profile = profile_of(mixed)
    names = profile.cells["x"].names
    assert set(names) == {"True (bool)", 1, "True", "inf (float)", "inf", "False (bool)", 0}
    assert profile.tallies["x"].counts.tolist() == [2, 1, 1, 1, 1, 1, 1, 0, 1]
    json.loads(profile.to_json(), parse_constant=pytest.fail)
    assert Profile.from_json(profile.to_json()) == profile


def test_infinities_among_new_categories():
    profile = profile_of(pd.Series(["a"], dtype=object))
    profile.update(pd.DataFrame({"x": pd.Series(["a", math.inf, -math.inf, np.float32("inf")], dtype=object)}))
    assert profile.tallies["x"].unseen == {"inf (float)": 2, "-inf (float)": 1}
    assert Profile.from_json(profile.to_json()) == profile


def test_categories_that_are_truth_values():
    series = pd.Series([True, False, True, None], dtype="boolean")
    assert profile_of(series.astype("category")) == profile_of(series)


def test_half_a_pair_of_surrogates():
    names = pd.Index(["half \ud800"], dtype=object)
    frame = pd.DataFrame([["\udfff"], ["ü"]], columns=names, dtype=object)
    profile = Profile.fit(frame)
    for text in (profile.to_json(), compare(frame, frame).to_json()):
        assert json.loads(text.encode()) == json.loads(text)
        assert "ü" in text
    assert Profile.from_json(profile.to_json()) == profile


def test_half_a_pair_of_surrogates_is_shown():
    """pandas' own texts are UTF-8, which has no bytes for it: as objects they stay what they are."""
    before, after = (pd.DataFrame({"x": pd.Series(["a\udcff", "b", *more], dtype=object)}) for more in ("ab", "bb"))
    found = compare(before, after)
    contributions = found.contributions
    assert contributions["cell"].tolist() == ["b", "a", "a\udcff"]
    assert contributions["column"].dtype == pd.Series(["x"]).dtype
    assert found.to_frame()["largest_cell"].tolist() == ["a"]
    named = compare(*(frame.set_axis(pd.Index(["\ud800"], dtype=object), axis=1) for frame in (before, after)))
    assert named.to_frame()["column"].tolist() == ["\ud800"]
    assert set(named.contributions["column"]) == {"\ud800"}
    assert "a" in named._repr_html_()


NOTHING = {
    "float": pd.Series([math.nan] * 4), "object": pd.Series([None] * 4, dtype=object),
    "boolean": pd.Series([None] * 4, dtype="boolean"), "time": pd.Series([pd.NaT] * 4),
    "text": pd.Series([None] * 4, dtype="str"),
}  # fmt: skip
SOMETHING = {
    "text": pd.Series(["a", "b", None, "a"]), "number": pd.Series([1.5, 2.5, math.nan, math.inf]),
    "boolean": pd.Series([True, False, None, True], dtype="boolean"),
    "time": pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01", None, "2020-01-01"])),
    "zone": pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01", None, "2020-01-01"])).dt.tz_localize("UTC"),
}  # fmt: skip


@pytest.mark.parametrize("something", SOMETHING)
@pytest.mark.parametrize("nothing", NOTHING)
def test_a_column_without_values_has_no_type(nothing, something):
    empty, full = pd.DataFrame({"x": NOTHING[nothing]}), pd.DataFrame({"x": SOMETHING[something]})
    for first, second in ((empty, full), (full, empty)):
        found = compare(first, second, smoothing="laplace")
        row = found.to_frame().loc[0]
        assert row["status"] == "ok"
        assert row["kl_missing"] > 0
        assert found.results["x"].reference.counts.sum() == found.results["x"].current.counts.sum() == 4
    weighted = compare(empty.assign(w=1.0), full.assign(w=[1.0, 2, 4, 8]), weights="w")
    counts = weighted.results["x"].current.counts
    assert (counts[-1], counts.sum()) == (4.0, 15.0)


def test_milliseconds_beyond_microseconds_are_a_status():
    far = pd.DataFrame({"x": np.array([0, 10**16], "M8[ms]"), "d": np.array([0, -(10**16)], "m8[ms]")})
    near = pd.DataFrame({"x": np.array([0, 9 * 10**15], "M8[ms]"), "d": np.array([0, -9 * 10**15], "m8[ms]")})
    assert set(Profile.fit(far).problems.values()) == {"holds times that do not fit into microseconds"}
    assert not Profile.fit(near).problems


def labels_of(values, **options):
    return profile_of(values, **options).cells["x"].labels()[1:-4]


@pytest.mark.parametrize("rule", ["auto", "quantile"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.97])
@pytest.mark.parametrize("at", [-9.5, 0.25, 9.5])
def test_a_frequent_value_has_a_bin_of_its_own(rule, share, at):
    """At either end, and between."""
    rng = np.random.default_rng(0)
    before = np.where(rng.random(2000) < share, at, rng.uniform(-9.5, 9.5, 2000).round(6))
    found = profile_of(before, bins=rule)
    cells = found.cells["x"]
    place = cells.labels().index(str(at))
    assert found.tallies["x"].counts[place] == (before == at).sum()
    for near in (np.nextafter(at, -math.inf), np.nextafter(at, math.inf)):
        counts = found.empty().update(pd.DataFrame({"x": [at, near]})).tallies["x"].counts
        assert counts[place] == 1
    after = np.where(rng.random(2000) < share / 2, at, rng.uniform(-9.5, 9.5, 2000))
    row = compare(pd.DataFrame({"x": before}), pd.DataFrame({"x": after}), bins=rule).to_frame().loc[0]
    assert row["p_value"] < 1e-6
    assert row["ci_low"] > 0


def test_two_values_are_two_bins():
    before = pd.DataFrame({"fee": [0.5] * 950 + [1.5] * 50})
    row = compare(before, pd.DataFrame({"fee": [0.5] * 500 + [1.5] * 500})).to_frame().loc[0]
    assert row["cells"] == 2
    assert row["p_value"] < 1e-100
    assert row["kl"] == pytest.approx(0.95 * math.log(0.95 / 0.5) + 0.05 * math.log(0.05 / 0.5), rel=0.01)
    assert labels_of([0.5] * 950 + [1.5] * 50) == ["0.5", "(0.5, 1.5)", "1.5"]
    assert labels_of([0.5] * 990 + [1.5] * 10) == ["0.5", "(0.5, 1.5]"]
    assert labels_of([0.5] * 10 + [1.5] * 990) == ["[0.5, 1.5)", "1.5"]


def test_a_frequent_value_that_moves():
    rng = np.random.default_rng(0)
    spread = rng.normal(5.5, 1, (2, 2000)).clip(2, 9)
    before, after = (
        pd.DataFrame({"x": np.where(rng.random(2000) < 0.92, at, s)}) for at, s in zip((5.5, 6.0), spread, strict=True)
    )
    row = compare(before, after).to_frame().loc[0]
    assert row["largest_cell"] == "5.5"
    assert row["ci_low"] > 1


def test_frequent_whole_numbers_and_durations():
    counts = [0] * 900 + list(range(1, 101))
    assert labels_of(counts)[:2] == ["0", "(0, 50)"]
    assert labels_of(pd.to_timedelta(pd.Series(counts), unit="s"))[:2] == ["00:00:00", "(00:00:00, 00:00:50)"]


def test_neighbouring_floats_have_names_of_their_own():
    rng = np.random.default_rng(1)
    near = "0.30000000000000004"
    assert labels_of(rng.choice([0.3, 0.1 + 0.2, 1.5], 3000)) == ["0.3", near, f"({near}, 1.5)", "1.5"]
    one, two = np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2.0), 2.0)
    names = [str(float(value)) for value in (1.0, one, two)]
    assert labels_of(rng.choice([1.0, one, two, 5.0], 4000)) == [*names, f"({names[2]}, 5.0)", "5.0"]


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", "Int64", "int64[pyarrow]"])
def test_missing_values_that_pandas_tells_apart_are_one(dtype):
    """With an option of pandas 3, NaN and NA are two in columns that have NA."""
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="columns of Arrow")
    frame = pd.DataFrame({"x": [1.0, 2.0, None, 2.0], "bad": [1j] * 4})
    expected = compare(frame, frame[::-1]).to_frame()
    try:
        with pd.option_context("future.distinguish_nan_and_na", True):
            held = frame.assign(x=pd.Series([1, 2, pd.NA, 2], dtype=dtype))
            found = compare(held, held[::-1]).to_frame()
    except pd.errors.OptionError:
        pytest.skip("a pandas without the option")
    pd.testing.assert_frame_equal(found, expected)
