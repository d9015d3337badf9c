"""Rows of DataFrames, all rows to each other, and groups of rows."""

import math
import re

import numpy as np
import pytest

import klnumba as kl

pd = pytest.importorskip("pandas", reason="Series and DataFrames are pandas'")

from klnumba.tables import compare, kl_groups, kl_matrix, kl_rows  # noqa: E402


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.gamma(1.0, size=(4, 5)), index=["w", "x", "y", "z"], columns=list("abcde"))


@pytest.fixture
def rides():
    rng = np.random.default_rng(3)
    size = 500
    return pd.DataFrame(
        {
            "day": rng.choice(["Mon", "Tue", "Sun"], size),
            "hour": rng.integers(6, 10, size),
            "by": rng.choice(["bus", "tram", "foot", None], size, p=[0.4, 0.3, 0.2, 0.1]),
            "weight": rng.gamma(2.0, size=size),
        },
        index=np.arange(size) * 7,
    )


def counted(rows, weights=None):
    """Masses of the values of a column, missing ones too, by a plain loop."""
    found = {}
    for value, weight in zip(rows, np.ones(len(rows)) if weights is None else weights, strict=True):
        key = "missing" if pd.isna(value) else value
        found[key] = found.get(key, 0.0) + weight
    return found


def of_counts(p, q):
    """KL of two dicts of masses."""
    labels = sorted(p.keys() | q.keys(), key=str)
    return kl.kl_divergence(*([side.get(label, 0.0) for label in labels] for side in (p, q)))


# --- rows and matrices -----------------------------------------------------------------------------------------------


def test_rows(frame):
    q = frame.iloc[::-1, ::-1] + 1.0
    found = kl_rows(frame, q, base=2)
    pd.testing.assert_series_equal(found, kl.kl_divergence(frame, q, base=2))
    assert found.name == "kl"
    np.testing.assert_array_equal(kl_rows(frame, np.ones(5)), kl.kl_divergence(frame.to_numpy(), np.ones(5)))
    with pytest.raises(TypeError, match=r"p: a DataFrame of pandas, not pandas\.Series"):
        kl_rows(frame["a"], frame)


def test_matrix_of_one(frame):
    found = kl_matrix(frame)
    for i, one in frame.iterrows():
        for j, other in frame.iterrows():
            assert found.loc[i, j] == kl.kl_divergence(one, other)
    assert (np.diag(found) == 0.0).all()
    assert found.index.equals(frame.index)
    assert found.columns.equals(frame.index)


def test_matrix_of_two(frame):
    q = (frame.iloc[1:, ::-1] + 1.0).drop(columns="b").assign(more=1.0)
    found = kl_matrix(frame, q)
    assert found.shape == (4, 3)
    assert found.columns.tolist() == list("xyz")
    assert np.isinf(found.to_numpy()).all()
    back = kl_matrix(q, frame.assign(more=1.0), base=2, dtype=np.float32)
    assert back.shape == (3, 4)
    assert (back.dtypes == np.float32).all()
    for i, one in q.iterrows():
        for j, other in frame.assign(more=1.0).iterrows():
            assert back.loc[i, j] == np.float32(kl.kl_divergence(one, other, base=2))
    logs = kl_matrix(np.log(frame), np.log(frame[list("edcba")]), kind="log_prob")
    assert (np.diag(logs) == 0.0).all()


def test_rows_of_a_matrix_are_not_matched(frame):
    double = frame.set_axis(["x", "x", "y", "y"])
    found = kl_matrix(double, double + 1.0)
    assert found.shape == (4, 4)
    np.testing.assert_array_equal(found, kl_matrix(frame, frame + 1.0))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((1,), {}, TypeError, "p: a DataFrame of pandas, not int"),
        ((2,), {}, TypeError, "q: a DataFrame of pandas, not pandas.Series"),
        ((0,), {"axis": 0}, TypeError, "kl_matrix: takes no axis"),
        ((0,), {"reduction": "mean", "keepdims": True}, TypeError, "kl_matrix: takes no keepdims, reduction"),
        ((3,), {"align": "strict"}, ValueError, "q lacks column 'e'"),
        ((0,), {"align": "inner"}, ValueError, "align: one of"),
    ],
)
def test_refusals_of_a_matrix(frame, arguments, options, error, text):
    given = {0: (frame,), 1: (1,), 2: (frame, frame["a"]), 3: (frame, frame.drop(columns="e"))}[arguments[0]]
    with pytest.raises(error, match=text):
        kl_matrix(*given, **options)


def test_errors_of_a_matrix_name_labels(frame):
    """Those of p and of q, wherever the cells have been moved."""
    q = frame.iloc[[2, 0, 1], ::-1].add_prefix("q", axis=0)
    bad = q.copy()
    bad.loc["qx", "c"] = -1.0
    with pytest.raises(ValueError, match=r"^q: row 'qx', cell 'c' is negative \(-1.0\)$"):
        kl_matrix(frame, bad, invalid="raise")
    with pytest.raises(ValueError, match=r"^p: row 'qx', cell 'c' is negative \(-1.0\)$"):
        kl_matrix(bad, frame, invalid="raise")
    with pytest.raises(ValueError, match=r"^p: row 'qx', cell 'c' is negative \(-1.0\)$"):
        kl_matrix(bad, invalid="raise")
    with pytest.raises(ValueError, match=r"^q: row 'qw' has no mass$"):
        kl_matrix(frame, q.assign(**dict.fromkeys(frame, 0.0)).loc[["qw", "qx"]], invalid="raise")
    bad.loc["qx"] = math.inf
    with pytest.raises(ValueError, match=r"^q: row 'qx', cell 'a' is \+inf: no finite mass \(inf\)$"):
        kl_matrix(frame, bad, kind="logit", invalid="raise")
    with pytest.raises(ValueError, match=r"^invalid: one of 'nan', 'raise', not 'drop'$"):
        kl_matrix(frame, invalid="drop")
    np.testing.assert_array_equal(kl_matrix(frame, q, invalid="raise"), kl_matrix(frame, q))
    assert kl_matrix(frame, bad)["qx"].isna().all()


def test_a_matrix_goes_by_exact_numbers():
    far = 2**53
    p, q = (pd.DataFrame([[1.0] * len(labels)], columns=labels) for labels in ([far, far + 1], [float(far)]))
    assert kl_matrix(p, q).to_numpy().tolist() == [[math.inf]]


def test_empty_matrices(frame):
    assert kl_matrix(frame.iloc[:0]).shape == (0, 0)
    assert kl_matrix(frame, frame.iloc[:0]).shape == (4, 0)
    assert kl_matrix(frame[[]]).isna().all(axis=None)


# --- groups ----------------------------------------------------------------------------------------------------------


def test_groups_against_the_rest(rides):
    found = kl_groups(rides, "day", "by")
    assert found.index.tolist() == ["Mon", "Sun", "Tue"]
    assert found.index.name == "day"
    assert found["n"].tolist() == rides.groupby("day").size().tolist()
    for day in found.index:
        inside = rides["day"] == day
        expected = of_counts(counted(rides.loc[inside, "by"]), counted(rides.loc[~inside, "by"]))
        assert found["kl"][day] == pytest.approx(expected, rel=1e-13)


def test_groups_against_one(rides):
    found = kl_groups(rides, "day", "by", against="Tue", stats=("kl", "reverse_kl", "js"), base=2)
    assert found.columns.tolist() == ["n", "kl", "reverse_kl", "js"]
    assert found.loc["Tue", ["kl", "reverse_kl", "js"]].tolist() == [0.0, 0.0, 0.0]
    p, q = (counted(rides.loc[rides["day"] == day, "by"]) for day in ("Sun", "Tue"))
    assert found.loc["Sun", "kl"] == pytest.approx(of_counts(p, q) / math.log(2), rel=1e-13)
    assert found.loc["Sun", "reverse_kl"] == pytest.approx(of_counts(q, p) / math.log(2), rel=1e-13)


def test_groups_of_several_columns(rides):
    found = kl_groups(rides, ["day", "hour"], "by", against=("Sun", 7))
    assert found.index.names == ["day", "hour"]
    assert found.index.is_monotonic_increasing
    held = (rides["day"] == "Mon") & (rides["hour"] == 9), (rides["day"] == "Sun") & (rides["hour"] == 7)
    expected = of_counts(*(counted(rides.loc[rows, "by"]) for rows in held))
    assert found.loc[("Mon", 9), "kl"] == pytest.approx(expected, rel=1e-13)
    pd.testing.assert_frame_equal(kl_groups(rides, ["day"], "by"), kl_groups(rides, "day", "by"))


@pytest.mark.parametrize("form", ["column", "array", "list", "Series"])
def test_weights(rides, form):
    weights = rides["weight"]
    given = {"column": "weight", "array": weights.to_numpy(), "list": weights.tolist(), "Series": weights}[form]
    found = kl_groups(rides, "day", "by", weights=given)
    for day in found.index:
        inside = rides["day"] == day
        sides = [counted(rides.loc[rows, "by"], weights[rows]) for rows in (inside, ~inside)]
        assert found["kl"][day] == pytest.approx(of_counts(*sides), rel=1e-12)
        assert found["weight"][day] == pytest.approx(weights[inside].sum(), rel=1e-14)


def test_weights_of_one_are_counts(rides):
    found = kl_groups(rides, "day", "by", weights=np.ones(len(rides)))
    np.testing.assert_array_equal(found["kl"], kl_groups(rides, "day", "by")["kl"])


def test_a_group_with_nearly_all_the_weight_keeps_the_digits_of_the_rest():
    frame = pd.DataFrame({"g": list("aabbcc"), "v": list("xyxyxy"), "w": [1e20, 1e20, 1.0, 3.0, 2.0, 2.0]})
    found = kl_groups(frame, "g", "v", weights="w")
    assert found.loc["a", "kl"] == pytest.approx(kl.kl_divergence([0.5, 0.5], [3.0, 5.0]), rel=1e-15)
    alone = kl_groups(frame.assign(v=list("xyxxxx")), "g", "v", weights="w")
    assert alone.loc["a", "kl"] == math.inf


def test_missing_values(rides):
    dropped = kl_groups(rides, "day", "by", missing="drop")
    pd.testing.assert_frame_equal(dropped, kl_groups(rides.dropna(subset="by"), "day", "by"))
    assert dropped["n"].sum() == rides["by"].notna().sum()
    holes = rides.assign(day=rides["day"].where(rides["hour"] < 9))
    pd.testing.assert_frame_equal(kl_groups(holes, "day", "by"), kl_groups(holes.dropna(subset="day"), "day", "by"))
    pair = holes.assign(hour=rides["hour"].where(rides["day"] != "Sun"))
    pd.testing.assert_frame_equal(
        kl_groups(pair, ["day", "hour"], "by"),
        kl_groups(pair.dropna(subset=["day", "hour"]), ["day", "hour"], "by"),
        check_index_type=False,
    )
    pd.testing.assert_frame_equal(
        kl_groups(holes, "day", "by", weights="weight", missing="drop"),
        kl_groups(holes.dropna(), "day", "by", weights="weight"),
    )


@pytest.mark.parametrize("dtype", ["object", "str", "category", "string[pyarrow]", "dictionary"])
def test_text_in_every_form(rides, dtype):
    if "pyarrow" in dtype or dtype == "dictionary":
        pa = pytest.importorskip("pyarrow", reason="columns of Arrow")
    kind = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())) if dtype == "dictionary" else dtype
    other = rides.assign(by=rides["by"].astype(kind), day=rides["day"].astype(kind))
    found, expected = kl_groups(other, "day", "by"), kl_groups(rides, "day", "by")
    np.testing.assert_array_equal(found["kl"], expected["kl"])
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_array_equal(kl_groups(other, "day", "by", against="Sun")["n"], expected["n"])


@pytest.mark.parametrize(
    "dtype", ["float32", "Int64", "UInt8", "Float64", "int64[pyarrow]", "datetime64[s]", "decimal"]
)
def test_numbers_in_every_form(rides, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="columns of Arrow")
    if dtype == "decimal":
        from decimal import Decimal

        hours = rides["hour"].map(Decimal)
    else:
        hours = rides["hour"].astype(dtype)
    found = kl_groups(rides.assign(hour=hours), "day", "hour")
    np.testing.assert_array_equal(found["kl"], kl_groups(rides, "day", "hour")["kl"])
    by_hour = kl_groups(rides.assign(hour=hours), "hour", "day")
    np.testing.assert_array_equal(by_hour["kl"], kl_groups(rides, "hour", "day")["kl"])


def test_categories_without_rows_are_no_groups(rides):
    days = pd.CategoricalDtype(["Sun", "Mon", "Tue", "never"], ordered=True)
    found = kl_groups(rides.assign(day=rides["day"].astype(days)), "day", "by")
    assert found.index.tolist() == ["Sun", "Mon", "Tue"]
    ways = pd.CategoricalDtype(["never", "bus", "foot", "tram"])
    same = kl_groups(rides.assign(by=rides["by"].astype(ways)), "day", "by")
    np.testing.assert_array_equal(same["kl"], kl_groups(rides, "day", "by")["kl"])


def test_values_of_several_types():
    frame = pd.DataFrame({"g": [1, 1, "a", "a"], "v": pd.Series([1, "1", 1.0, None], dtype=object)})
    found = kl_groups(frame, "g", "v")
    assert found["n"].tolist() == [2, 2]
    assert np.isinf(found["kl"]).all()
    with pytest.raises(TypeError, match="column: the values of 'v' cannot be counted"):
        kl_groups(frame.assign(v=[[1], [2], [3], [4]]), "g", "v")


def test_one_group_has_no_others():
    frame = pd.DataFrame({"g": ["a", "a"], "v": [1, 2]})
    assert kl_groups(frame, "g", "v")["kl"].isna().tolist() == [True]
    assert kl_groups(frame, "g", "v", against="a")["kl"].tolist() == [0.0]
    assert kl_groups(frame, "g", "v", weights=[0.0, 0.0], against="a")["kl"].isna().all()


def test_no_rows():
    frame = pd.DataFrame({"g": pd.Series([], dtype=str), "v": pd.Series([], dtype=float)})
    found = kl_groups(frame, "g", "v", stats=("kl", "js"))
    assert found.shape == (0, 3)
    assert found.columns.tolist() == ["n", "kl", "js"]
    with pytest.raises(ValueError, match="against: no group 'a'; there are none"):
        kl_groups(frame, "g", "v", against="a")


def test_columns_of_several_levels(rides):
    deep = pd.concat({"all": rides}, axis=1)
    found = kl_groups(deep, [("all", "day")], ("all", "by"), weights=("all", "weight"))
    np.testing.assert_array_equal(found["kl"], kl_groups(rides, "day", "by", weights="weight")["kl"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"by": "month"}, "by: no column 'month'"),
        ({"by": []}, "by: at least one column"),
        ({"column": "month"}, "column: no column 'month'"),
        ({"column": "twice"}, "column: column 'twice' occurs 2 times"),
        ({"weights": "month"}, "weights: no column 'month'"),
        ({"weights": [1.0]}, r"weights: one a row, 500, not shape \(1,\)"),
        ({"weights": "negative"}, "weights: 0, or from 1e-100 to 1e\\+100, but row 0 has -1"),
        ({"weights": "hole"}, "weights: 0, or from 1e-100 to 1e\\+100, but row 7 has nan"),
        ({"weights": [1e-200] * 500}, "weights: 0, or from 1e-100 to 1e\\+100, but row 0 has 1e-200"),
        ({"weights": [1e200] * 500}, "weights: 0, or from 1e-100 to 1e\\+100, but row 0 has 1e"),
        ({"weights": pd.Series(np.ones(500))}, "weights: a Series with the index of the rows"),
        ({"against": "Wed"}, "against: no group 'Wed'; there are 'Mon', 'Sun', 'Tue'"),
        ({"against": 7}, "against: no group 7"),
        ({"missing": "skip"}, "missing: one of 'cell', 'drop', not 'skip'"),
        ({"stats": ("kl", "chi2")}, "stats: 'chi2' is none of"),
        ({"base": 1}, "base"),
    ],
)
def test_refusals_of_groups(rides, options, text):
    rides = rides.assign(negative=-1.0, hole=[1.0, np.nan] * 250)
    twice = pd.DataFrame({"a": rides["by"], "b": rides["by"]}).set_axis(["twice", "twice"], axis=1)
    rides = pd.concat([rides, twice], axis=1)
    with pytest.raises(ValueError, match=text):
        kl_groups(**({"frame": rides, "by": "day", "column": "by"} | options))


def test_columns_are_named_by_labels(rides):
    """What is no label is told by its type alone, however many rows it has."""
    for given, name in ((rides["day"], "pandas.Series"), (rides["hour"] > 7, "pandas.Series"),
                        (rides["day"].to_numpy(object), "numpy.ndarray")):  # fmt: skip
        for option, value in (("by", given), ("by", [given]), ("column", given)):
            with pytest.raises(TypeError, match=rf"^{option}: the label of one column, not {re.escape(name)}$"):
                kl_groups(**({"frame": rides, "by": "day", "column": "by"} | {option: value}))
    with pytest.raises(TypeError, match=r"^column: the label of one column, not list$"):
        kl_groups(rides, "day", ["by"])


def test_weights_that_are_no_numbers(rides):
    for weights in (["weight"] * 500, np.full(500, None), np.full(500, 1j)):
        with pytest.raises(TypeError, match="weights: a column, or a number for each row, not "):
            kl_groups(rides, "day", "by", weights=weights)


def test_frames_of_other_libraries():
    pl = pytest.importorskip("polars", reason="frames of polars")
    with pytest.raises(TypeError, match=r"frame: a DataFrame of pandas, not polars\.DataFrame"):
        kl_groups(pl.DataFrame({"g": [1], "v": [2]}), "g", "v")


def test_too_many_cells():
    frame = pd.DataFrame({"g": np.arange(20_000), "v": np.arange(20_000)})
    with pytest.raises(ValueError, match=r"20,000 groups of 20,000 values are more than 2\*\*28 cells"):
        kl_groups(frame, "g", "v")


def test_inputs_stay_as_they_are(rides):
    copy = rides.copy()
    cells = np.arange(6.0).reshape(3, 2)
    cells.flags.writeable = False
    kl_groups(rides, "day", "by", weights="weight")
    kl_matrix(pd.DataFrame(cells, copy=False))
    kl_groups(pd.DataFrame(cells, columns=["g", "v"], copy=False), "g", "v", weights=cells[:, 0])
    pd.testing.assert_frame_equal(rides, copy)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_for_any_number_of_threads(rides, threads):
    found = kl_groups(rides, ["day", "hour"], "by", weights="weight", threads=threads)
    pd.testing.assert_frame_equal(found, kl_groups(rides, ["day", "hour"], "by", weights="weight"), check_exact=True)


def test_a_matrix_of_columns_that_occur_twice(frame):
    double = frame.set_axis(list("abcda"), axis=1)
    for others in ((), (double,), (double.copy(),)):
        with pytest.raises(ValueError, match="p: column label 'a' occurs twice"):
            kl_matrix(double, *others)
    rows = frame.set_axis(list("xxyz"))
    assert kl_matrix(rows).columns.tolist() == kl_matrix(rows, rows).index.tolist() == list("xxyz")


@pytest.mark.parametrize("missing", ["cell", "drop"])
def test_groups_tell_truth_values_from_numbers(missing):
    """As `compare` does; equal they are, and pandas counts them together."""
    first = pd.Series([1, True, True, False, np.False_, None, pd.NA, "a"], dtype=object)
    second = pd.Series([1, True, 1.0, 0, False, None, None, "a"], dtype=object)
    rows = pd.DataFrame({"side": ["a"] * 8 + ["b"] * 8, "x": pd.concat([first, second], ignore_index=True)})
    found = kl_groups(rows, "side", "x", against="a", smoothing=1, missing=missing)["kl"]["b"]
    whole = compare(second.to_frame("x"), first.to_frame("x"), smoothing=1, missing=missing)
    assert found == pytest.approx(whole.to_frame()["kl"][0], rel=1e-14)
    assert found > 0.05
