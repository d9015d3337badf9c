"""Series and DataFrames in the array functions: what is matched with what, and what comes back."""

import math
import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import klnumba as kl

pd = pytest.importorskip("pandas", reason="Series and DataFrames are pandas'")

PAIRS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
CELLS = ("rel_entr", "generalized_kl")


def plain_kl(p, q):
    """KL of two dicts from labels to masses, by the definition."""
    mass_p, mass_q = math.fsum(p.values()), math.fsum(q.values())
    terms = []
    for label, value in p.items():
        if value > 0:
            other = q.get(label, 0)
            terms.append(math.inf if other == 0 else value / mass_p * math.log((value / mass_p) / (other / mass_q)))
    return math.fsum(terms)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.gamma(1.0, size=(4, 5)), index=["w", "x", "y", "z"], columns=list("abcde"))


def shuffled(frame, seed=1):
    rng = np.random.default_rng(seed)
    return frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]


# --- matching --------------------------------------------------------------------------------------------------------


def test_series_are_matched_by_label():
    p = pd.Series({"a": 0.5, "b": 0.25, "c": 0.25})
    q = pd.Series({"c": 0.2, "a": 0.3, "b": 0.5})
    found = kl.kl_divergence(p, q)
    assert isinstance(found, np.float64)
    assert found == pytest.approx(plain_kl(p.to_dict(), q.to_dict()), rel=1e-15)
    assert kl.kl_divergence(p, p[["c", "b", "a"]]) == 0.0


@pytest.mark.parametrize("function", PAIRS)
def test_a_missing_label_has_no_mass(function):
    p, q = pd.Series({"a": 1.0, "b": 3.0, "x": 0.0}), pd.Series({"c": 2.0, "b": 1.0, "a": 1.0})
    found = getattr(kl, function)(p, q)
    assert found == getattr(kl, function)([1.0, 3.0, 0.0, 0.0], [1.0, 1.0, 0.0, 2.0])
    assert function == "jeffreys_divergence" or np.isfinite(found)
    if function == "kl_divergence":
        assert getattr(kl, function)(q, p) == math.inf


@pytest.mark.parametrize("kind", ["log_prob", "logit"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_no_mass_of_logarithms_is_minus_infinity(kind, dtype):
    p = pd.Series([-1, -2], index=["a", "b"]).astype(dtype)
    q = pd.Series([-1, -1, -3], index=["b", "c", "a"]).astype(dtype)
    expected = kl.kl_divergence(np.array([-1, -2, -np.inf]), np.array([-3, -1, -1.0]), kind=kind)
    assert kl.kl_divergence(p, q, kind=kind) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("function", PAIRS)
def test_rows_are_those_of_p(frame, function):
    q = shuffled(frame.apply(lambda column: column[::-1].to_numpy()))
    found = getattr(kl, function)(frame, q)
    pd.testing.assert_index_equal(found.index, frame.index)
    expected = getattr(kl, function)(frame.to_numpy(), q.loc[frame.index, frame.columns].to_numpy())
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert (getattr(kl, function)(frame, q, reduction="sum")) == pytest.approx(expected.sum(), rel=1e-15)


def test_rows_that_one_side_lacks(frame):
    found = kl.kl_divergence(frame, frame.drop(index="x").rename(index={"w": "other"}))
    assert found.index.tolist() == list("wxyz")
    assert found.isna().tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match="q: row 'x' has no mass"):
        kl.kl_divergence(frame, frame.drop(index="x"), invalid="raise")
    with pytest.raises(ValueError, match="no row label in common"):
        kl.kl_divergence(frame, frame.add_prefix("r", axis=0))


def test_a_series_is_one_row_for_all(frame):
    q = frame.sum()[["c", "b", "a", "e", "d"]]
    expected = kl.kl_divergence(frame.to_numpy(), frame.sum().to_numpy())
    found = kl.kl_divergence(frame, q)
    np.testing.assert_array_equal(found, expected)
    assert found.name == "kl"
    assert found.index.equals(frame.index)
    back = kl.kl_divergence(q, frame)
    assert back.index.equals(frame.index)
    np.testing.assert_allclose(back, kl.kl_divergence(frame.sum().to_numpy(), frame.to_numpy()), rtol=1e-14)


def test_down_the_columns(frame):
    q = shuffled(frame + 1.0)
    found = kl.kl_divergence(frame, q, axis=0)
    expected = kl.kl_divergence(frame.to_numpy(), q.loc[frame.index, frame.columns].to_numpy(), axis=0)
    assert found.index.equals(frame.columns)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    total = kl.kl_divergence(frame, frame.sum(axis=1)[::-1], axis=0)
    assert total.index.equals(frame.columns)
    np.testing.assert_allclose(total, kl.kl_divergence(frame.T.to_numpy(), frame.sum(axis=1).to_numpy()), rtol=1e-14)


def test_the_whole_table(frame):
    q = shuffled(frame + 1.0)
    expected = kl.kl_divergence(frame.to_numpy(), q.loc[frame.index, frame.columns].to_numpy(), axis=None)
    assert kl.kl_divergence(frame, q, axis=None) == expected
    assert kl.kl_divergence(frame, frame.drop(index="x"), axis=(0, 1)) == math.inf
    with pytest.raises(ValueError, match="axis: one axis"):
        kl.kl_divergence(frame, frame.iloc[0], axis=None)
    with pytest.raises(ValueError, match="axis: at least one"):
        kl.kl_divergence(frame, q, axis=())


@pytest.mark.parametrize("function", [*PAIRS, "entropy"])
def test_results_are_those_of_arrays(frame, function):
    """Bit for bit, in every option."""
    q = frame + 1.0
    for options in ({}, {"base": 2}, {"normalize": False}, {"kind": "logit"}, {"dtype": np.float32}):
        arguments = (frame,) if function == "entropy" else (frame, q)
        found = getattr(kl, function)(*arguments, **options)
        expected = getattr(kl, function)(*(x.to_numpy() for x in arguments), **options)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_statistics(frame):
    q = shuffled(frame + 1.0)
    found = kl.row_statistics(frame, q, base=2)
    expected = kl.row_statistics(frame.to_numpy(), q.loc[frame.index, frame.columns].to_numpy(), base=2)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert values.index.equals(frame.index)
        np.testing.assert_array_equal(values, expected[name])
    assert isinstance(kl.row_statistics(frame.iloc[0], frame.iloc[1])["kl"], np.float64)


@pytest.mark.parametrize("function", CELLS)
def test_cells(frame, function):
    run = getattr(kl, function)
    p, q = pd.Series({"a": 1.0, "b": 2.0}, name="mass"), pd.Series({"c": 1.0, "a": 3.0}, name="mass")
    found = run(p, q)
    assert found.index.tolist() == ["a", "b", "c"]
    assert found.name == "mass"
    assert run(p, q.rename("other")).name is None
    np.testing.assert_array_equal(found, run(np.array([1.0, 2.0, 0.0]), np.array([3.0, 0.0, 1.0])))
    found = run(frame, shuffled(frame + 1.0).drop(index="w", columns="a"))
    assert found.index.tolist() == list("wxyz")
    assert found.columns.tolist() == list("abcde")
    held = (frame + 1.0).assign(a=0.0)
    held.loc["w"] = 0.0
    np.testing.assert_array_equal(found, run(frame.to_numpy(), held.to_numpy()))
    found = run(frame, frame.sum()[::-1])
    np.testing.assert_array_equal(found, run(frame.to_numpy(), frame.sum().to_numpy()))
    assert run(p, 2.0).index.tolist() == ["a", "b"]
    assert run(p, np.ma.array([1.0, 1.0], mask=[True, False])).isna().tolist() == [True, False]
    assert type(run(p, np.ones((3, 2)))) is type(run(frame.iloc[:1], np.ones((3, 5)))) is np.ndarray


@pytest.mark.parametrize("function", CELLS)
def test_cells_have_the_rows_of_both(function):
    """Where divergences of rows have those of p."""
    p = pd.DataFrame([[0.5, 0.0], [0.2, 0.8]], index=["both", "p"])
    q = pd.DataFrame([[0.5, 0.5], [0.3, 0.7]], index=["q", "both"])
    found = getattr(kl, function)(p, q)
    assert found.index.tolist() == ["both", "p", "q"]
    assert np.isinf(found.loc["p"]).all()
    assert found.loc["q"].tolist() == ([0.0, 0.0] if function == "rel_entr" else [0.5, 0.5])
    assert np.isinf(getattr(kl, function)(p, q[:1]).loc["both"]).tolist() == [True, False]
    assert kl.kl_divergence(p, q).index.tolist() == ["both", "p"]


MASSES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), max_size=8)


@given(MASSES, MASSES, st.randoms(use_true_random=False))
def test_any_labels_in_any_order(p, q, random):
    """The definition, over dicts, is what comes out for Series in whatever order, and for the rows of DataFrames."""
    if not sum(p.values()) or not sum(q.values()):
        return
    sides = []
    for masses in (p, q):
        order = list(masses)
        random.shuffle(order)
        sides.append(pd.Series({label: masses[label] for label in order}, dtype=float))
    expected = plain_kl(p, q)
    assert kl.kl_divergence(*sides) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    rows = kl.kl_divergence(*(side.to_frame("row").T for side in sides))
    assert rows["row"] == pytest.approx(expected, rel=1e-12, abs=1e-14)
    if p.keys() == q.keys():
        assert kl.kl_divergence(*sides, align="strict") == kl.kl_divergence(*sides)
    else:
        with pytest.raises(ValueError, match="lacks cell"):
            kl.kl_divergence(*sides, align="strict")


# --- one side without labels -----------------------------------------------------------------------------------------


def test_an_array_goes_by_place(frame):
    rows = np.arange(20.0).reshape(4, 5)
    found = kl.kl_divergence(frame, rows)
    assert found.index.equals(frame.index)
    np.testing.assert_array_equal(found, kl.kl_divergence(frame.to_numpy(), rows))
    np.testing.assert_array_equal(kl.kl_divergence(rows, frame), kl.kl_divergence(rows, frame.to_numpy()))
    assert kl.kl_divergence(rows, frame).index.equals(frame.index)
    assert kl.kl_divergence(frame.iloc[0], [1, 2, 3, 4, 5]) == kl.kl_divergence(
        frame.iloc[0].to_numpy(), [1, 2, 3, 4, 5]
    )
    np.testing.assert_allclose(
        kl.kl_divergence(frame, [1, 2, 3, 4], axis=0), kl.kl_divergence(frame.T.to_numpy(), [1, 2, 3, 4]), rtol=1e-14
    )
    plain = kl.kl_divergence(frame.iloc[0], rows)
    assert isinstance(plain, np.ndarray)
    assert plain.shape == (4,)
    with pytest.raises(ValueError, match="do not broadcast"):
        kl.kl_divergence(frame, [1.0, 2.0])
    with pytest.raises(ValueError, match="q: an array beside a Series or DataFrame has at most 2 axes"):
        kl.kl_divergence(frame, np.ones((2, 4, 5)))


def test_labels_may_occur_twice_where_nothing_is_matched(frame):
    double = frame.set_axis(["x", "x", "y", "y"])
    np.testing.assert_array_equal(kl.kl_divergence(double, frame.sum()), kl.kl_divergence(frame, frame.sum()))
    assert kl.entropy(double.set_axis(list("aabbc"), axis=1)).index.tolist() == ["x", "x", "y", "y"]
    assert kl.entropy(pd.Series([1, 1], index=["a", "a"]), base=2) == 1.0


# --- refusals --------------------------------------------------------------------------------------------------------


def test_strict():
    p, q = pd.Series({"a": 1, "b": 2, "c": 3}), pd.Series({"b": 1, "c": 2, **{f"x{i}": 1 for i in range(7)}})
    text = "q lacks cell 'a'; p lacks cell 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more"
    with pytest.raises(ValueError, match=text):
        kl.kl_divergence(p, q, align="strict")
    assert kl.kl_divergence(p, p[::-1], align="strict") == 0.0
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    with pytest.raises(ValueError, match=r"q lacks row 1$"):
        kl.kl_divergence(frame, frame.iloc[:1], align="strict")
    with pytest.raises(ValueError, match=r"p lacks cell 'b'$"):
        kl.rel_entr(frame[["a"]], frame, align="strict")


@pytest.mark.parametrize("arguments", [([1.0], [1.0]), (pd.Series([1.0]), [1.0])], ids=["arrays", "Series"])
def test_align_is_one_of_two(arguments):
    for name in (*PAIRS, *CELLS, "row_statistics"):
        with pytest.raises(ValueError, match="align: one of 'outer', 'strict', not 'inner'"):
            getattr(kl, name)(*arguments, align="inner")


@pytest.mark.parametrize("name", PAIRS)
def test_labels_that_occur_twice(frame, name):
    double = frame.set_axis(["x", "x", "y", "z"])
    with pytest.raises(ValueError, match="p: row label 'x' occurs twice"):
        getattr(kl, name)(double, frame)
    with pytest.raises(ValueError, match="q: cell label 'a' occurs twice"):
        getattr(kl, name)(frame, frame.set_axis(list("abcda"), axis=1))
    with pytest.raises(ValueError, match="p: cell label 1 occurs twice"):
        getattr(kl, name)(pd.Series([1, 2], index=[1, 1]), pd.Series([1, 2], index=[1, 1]))


@pytest.mark.parametrize("name", [*PAIRS, *CELLS, "row_statistics"])
def test_labels_that_occur_twice_in_one_frame_on_both_sides(frame, name):
    """That the two are one object makes them no clearer."""
    for double, what in ((frame.set_axis(list("abcda"), axis=1), "cell"), (frame.set_axis(list("abca")), "row")):
        with pytest.raises(ValueError, match=f"p: {what} label 'a' occurs twice"):
            getattr(kl, name)(double, double)


def test_a_distance_of_types_warns():
    p, q = pd.Series([1, 2], index=[1, 2]), pd.Series([1, 2], index=["1", "2"])
    with pytest.warns(UserWarning, match=r"cell labels 1 \(int\) and '1' \(str\) differ in type") as caught:
        assert kl.kl_divergence(p, q) == math.inf
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="differ in type"):
        kl.rel_entr(p, q)
    mixed = pd.Series([1, 2], index=pd.Index(["1", 2], dtype=object))
    with pytest.warns(UserWarning, match="differ in type"):
        kl.kl_divergence(p, mixed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kl.kl_divergence(p, pd.Series([2.0, 1.0], index=[2.0, 1.0])) == 0.0
        assert kl.kl_divergence(p, pd.Series([2.0, 1.0], index=[3, 4])) == math.inf
        assert kl.kl_divergence(p, pd.Series([2.0, 1.0, 1.0], index=["a", "b", 1])) == math.inf


@pytest.mark.parametrize(
    "labels",
    [[1, 2], [2**53, 2**53 + 1], [True, False], np.array([1, 2**63 + 1], np.uint64), np.array([3, 4], np.int8)],
)
def test_categories_of_whole_numbers_beside_a_missing_one(labels):
    given = pd.CategoricalIndex(pd.Categorical.from_codes([1, -1, 0], pd.Index(labels)), name="size")
    p, q = pd.Series([1.0, 2.0, 3.0], given), pd.Series([3.0, 1.0, 2.0], given[[2, 0, 1]])
    assert kl.kl_divergence(p, q) == 0.0
    plain = pd.Series([3.0, 1.0], pd.Index(labels))
    assert kl.kl_divergence(plain, p) == pytest.approx(math.log(1.5), rel=1e-15)
    assert kl.kl_divergence(p, plain) == math.inf
    found = kl.rel_entr(plain, p)
    assert found.index[:2].tolist() == pd.Index(labels).tolist()
    assert len(found) == 3
    assert pd.isna(found.index[2])
    counts = pd.Series(given).value_counts(dropna=False)
    assert kl.kl_divergence(counts, counts[::-1]) == 0.0


@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_unsigned_labels_beside_a_missing_one(dtype):
    p = pd.Series([1.0, 3.0], pd.Index([1, 2], dtype="uint64"))
    q = pd.Series([3.0, 2.0, 1.0], pd.Index([2, pd.NA, 1], dtype=dtype))
    assert kl.kl_divergence(p, q) == pytest.approx(math.log(1.5), rel=1e-15)
    assert kl.kl_divergence(q, p) == math.inf


def test_a_distance_of_types_warns_where_both_sides_are_mixed():
    p, q = pd.Series([1, 2], index=["2", 3]), pd.Series([1, 2], index=[2, "3"])
    with pytest.warns(UserWarning, match=r"cell labels 3 \(int\) and '3' \(str\) differ in type"):
        assert kl.kl_divergence(p, q[::-1]) == math.inf


def levels(*labels):
    return pd.Series(1.0, pd.MultiIndex.from_tuples(labels))


def test_a_distance_of_types_warns_in_one_of_several_levels():
    p = levels(("a", 2), ("b", 1))
    with pytest.warns(UserWarning, match=r"cell labels \('b', 1\) and \('b', '1'\) differ in type"):
        assert kl.kl_divergence(p, levels(("a", 2), ("b", "1"))) == math.inf
    with pytest.warns(UserWarning, match=r"of the types \(string, integer\) and \(string, string\), and"):
        kl.kl_divergence(p, levels(("a", "x"), ("b", "y")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kl.kl_divergence(p, levels(("c", 2), ("d", 1))) == math.inf
        assert kl.kl_divergence(p, levels(("b", 1), ("d", 1), ("a", 2))) == pytest.approx(math.log(1.5), rel=1e-15)


def test_periods_of_other_lengths_warn():
    p, q = (pd.Series([1.0, 2.0], pd.period_range("2026-01", periods=2, freq=one)) for one in "MD")
    with pytest.warns(UserWarning, match=r"cell labels are of the types period\[M\] and period\[D\], and"):
        assert kl.kl_divergence(p, q) == math.inf


def test_options_that_have_no_labels(frame):
    with pytest.raises(TypeError, match="keepdims, out: not with a Series or DataFrame"):
        kl.kl_divergence(frame, frame, keepdims=True)
    with pytest.raises(TypeError, match="keepdims, out"):
        kl.entropy(frame, out=np.empty(4))
    with pytest.raises(TypeError, match="out: not with a Series or DataFrame"):
        kl.rel_entr(frame, frame, np.empty((4, 5)))


def test_errors_name_labels(frame):
    frame.loc["y", "c"] = -1.0
    with pytest.raises(ValueError, match=r"p: row 'y', cell 'c' is negative \(-1.0\)"):
        kl.kl_divergence(frame, shuffled(frame.abs()), invalid="raise")
    with pytest.raises(ValueError, match=r"q: the row, cell 'c' is negative"):
        kl.kl_divergence(frame.loc["x"], frame.loc["y"], invalid="raise")
    with pytest.raises(ValueError, match=r"p: row 'c', cell 'y' is negative"):
        kl.kl_divergence(frame, frame.abs(), axis=0, invalid="raise")
    with pytest.raises(ValueError, match=r"p: the row, cell \('y', 'c'\) is negative"):
        kl.entropy(frame, axis=None, invalid="raise")


# --- masks -----------------------------------------------------------------------------------------------------------


def test_masks_go_by_label(frame):
    q = shuffled(frame + 1.0)
    mask = frame > 0.3
    expected = kl.kl_divergence(frame.to_numpy(), (frame + 1.0).to_numpy(), where=mask.to_numpy())
    for where in (mask, shuffled(mask, 5), mask.astype("boolean"), mask.assign(more=True)):
        np.testing.assert_array_equal(kl.kl_divergence(frame, q, where=where), expected)
    np.testing.assert_array_equal(kl.kl_divergence(frame, frame + 1.0, where=mask.to_numpy()), expected)
    held = pd.Series({"e": True, "d": True, "c": False, "b": True, "a": False})
    found = kl.kl_divergence(frame, q, where=held)
    np.testing.assert_allclose(found, kl.kl_divergence(frame[list("bde")], q[list("bde")]), rtol=1e-14)
    np.testing.assert_allclose(
        kl.kl_divergence(frame, q, where=mask, axis=0),
        kl.kl_divergence(frame.to_numpy(), (frame + 1.0).to_numpy(), where=mask.to_numpy(), axis=0),
        rtol=1e-15,
    )  # fmt: skip
    cells = kl.rel_entr(frame, q, where=shuffled(mask, 5))
    pd.testing.assert_frame_equal(cells.isna(), ~mask)
    assert kl.rel_entr(frame["a"], q["a"], where=mask["a"]).isna().tolist() == (~mask["a"]).tolist()


def test_masks_that_cannot_be_placed(frame):
    mask = frame > 0.3
    with pytest.raises(ValueError, match="where: with labels"):
        kl.kl_divergence(frame, shuffled(frame), where=mask.to_numpy())
    with pytest.raises(ValueError, match="where: lacks 'e'"):
        kl.kl_divergence(frame, frame, where=mask.drop(columns="e"))
    with pytest.raises(TypeError, match=r"^where: boolean, not float64$"):
        kl.kl_divergence(frame, frame, where=frame)
    holes = mask.astype("boolean")
    holes.loc["y", "d"] = pd.NA
    for axis in (0, 1):
        with pytest.raises(TypeError, match=r"^where: row 'y', column 'd' is missing, and neither true nor false$"):
            kl.kl_divergence(frame, frame, where=holes, axis=axis)
    with pytest.raises(TypeError, match=r"^where: cell 'd' is missing, and neither true nor false$"):
        kl.kl_divergence(frame, frame, where=holes.loc["y"])
    with pytest.raises(ValueError, match="where: a DataFrame has an axis more"):
        kl.kl_divergence(frame.loc["x"], frame.loc["y"], where=mask)


# --- kinds of labels -------------------------------------------------------------------------------------------------


def test_many_levels():
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["letter", "number"])
    p = pd.Series([1.0, 2.0, 3.0, 4.0], index=index)
    assert kl.kl_divergence(p, p[::-1]) == 0.0
    found = kl.rel_entr(p[:3], p[1:])
    assert found.index.tolist() == index.tolist()
    assert found.index.names == ["letter", "number"]
    with pytest.raises(ValueError, match="cell labels of 2 and 1 levels"):
        kl.kl_divergence(p, pd.Series([1.0], index=["a"]))
    with pytest.raises(ValueError, match="levels of the cell labels are in different orders"):
        kl.kl_divergence(p, p.swaplevel())


def test_categories_match_by_value_and_unused_ones_are_no_labels():
    p = pd.Series(["a", "b", "b"], dtype=pd.CategoricalDtype(["a", "b", "unused"])).value_counts()
    q = pd.Series(["b", "b", "a"], dtype=pd.CategoricalDtype(["b", "a"], ordered=True)).value_counts()
    assert kl.kl_divergence(p, q) == 0.0
    index = pd.CategoricalIndex(["a", "b"], categories=["a", "b", "c"])
    found = kl.rel_entr(pd.Series([1.0, 2.0], index=index), pd.Series([1.0, 2.0], index=["b", "a"]))
    assert found.index.tolist() == ["a", "b"]
    assert kl.kl_divergence(pd.Series([1, 2], index=index), pd.Series([1, 2], index=["a", "b"])) == 0.0


def test_the_result_has_the_very_index_of_p(frame):
    """Categories and intervals too."""
    for index in (pd.CategoricalIndex(list("wxyz"), name="c"), pd.interval_range(0, 4, name="i"), pd.RangeIndex(4)):
        p = frame.set_axis(index)
        for q in (frame.sum(), p[::-1], (p + 1.0).iloc[[2, 1, 0]]):
            pd.testing.assert_index_equal(kl.kl_divergence(p, q).index, index)
        pd.testing.assert_index_equal(kl.rel_entr(p["a"], p["b"][::-1]).index, index)
        pd.testing.assert_index_equal(kl.kl_divergence(p.T, p.T, axis=0).index, index)


def test_intervals_and_dates():
    bins = pd.cut(pd.Series([0.5, 1.5, 1.6, 2.5]), [0, 1, 2, 3]).value_counts()
    assert kl.kl_divergence(bins, bins[::-1]) == 0.0
    overlapping = pd.Series([1.0, 2.0], index=pd.IntervalIndex.from_tuples([(0, 2), (1, 3)]))
    assert kl.kl_divergence(overlapping, overlapping[::-1]) == 0.0
    days = pd.date_range("2026-01-01", periods=3)
    p = pd.Series([1.0, 2.0, 3.0], index=days)
    assert kl.kl_divergence(p, p[::-1]) == 0.0
    assert kl.kl_divergence(p, p[::-1].set_axis(days[::-1].as_unit("ns"))) == 0.0
    for other in (days.tz_localize("UTC"), days.to_period("D"), days.astype(str), days.date, [True, 2, 3]):
        with pytest.warns(UserWarning, match=r"cell labels (are of the types datetime64|.* differ in type)"):
            assert kl.kl_divergence(p, p.set_axis(other)) == math.inf


def test_a_missing_label_is_a_label():
    p = pd.Series(["a", None, "a"]).value_counts(dropna=False)
    q = pd.Series([None, "a", None], dtype=object).value_counts(dropna=False)
    assert kl.kl_divergence(p, q) == pytest.approx(plain_kl({"a": 2, "n": 1}, {"a": 1, "n": 2}), rel=1e-15)


MISSING = {
    "object": pd.Index([1, None], dtype=object), "NaT among objects": pd.Index([1, pd.NaT], dtype=object),
    "float64": pd.Index([1.0, np.nan]), "Int64": pd.Index([1, None], dtype="Int64"),
    "UInt64": pd.Index([1, None], dtype="UInt64"), "Float64": pd.Index([1, None], dtype="Float64"),
    "boolean": pd.Index([True, None], dtype="boolean"), "string": pd.Index(["a", None], dtype="string"),
    "str": pd.Index(["a", None], dtype="str"), "category": pd.CategoricalIndex(["a", None]),
    "datetime64": pd.DatetimeIndex(["2026-01-01", None]), "zone": pd.DatetimeIndex(["2026-01-01", None], tz="UTC"),
    "timedelta64": pd.TimedeltaIndex([pd.Timedelta(days=1), None]),
    "period": pd.PeriodIndex(["2026-01", None], freq="M"),
}  # fmt: skip


@pytest.mark.parametrize("q", MISSING)
@pytest.mark.parametrize("p", MISSING)
@pytest.mark.filterwarnings("ignore:p and q")
def test_a_missing_label_is_one_label_whatever_the_dtypes(p, q):
    """Of either side, and of a level."""
    ours, theirs = MISSING[p], MISSING[q]
    found = kl.rel_entr(pd.Series([1.0, 2.0], ours), pd.Series([2.0, 1.0], theirs[::-1]))
    assert found[found.index.isna()].tolist() == [0.0]
    levels = [pd.MultiIndex.from_arrays([["x", "x"], index]) for index in (ours, theirs[::-1])]
    found = kl.rel_entr(pd.Series([1.0, 2.0], levels[0]), pd.Series([2.0, 1.0], levels[1]))
    assert found[found.index.get_level_values(1).isna()].tolist() == [0.0]


def test_missing_labels_of_counts():
    p = pd.Series([1, 1, 2, None], dtype="Int64").value_counts(dropna=False)
    for dtype in (object, "float64", "Int64", "Float64"):
        q = pd.Series([1, 2, 2, None], dtype=dtype).value_counts(dropna=False)
        assert kl.kl_divergence(p, q) == pytest.approx(0.25 * math.log(2.0), rel=1e-15)
        assert kl.kl_divergence(p, q, align="strict") == kl.kl_divergence(p, q)
    with pytest.raises(ValueError, match="p: cell label nan occurs twice"):
        kl.rel_entr(pd.Series([1, 2], pd.Index([None, pd.NaT], dtype=object)), pd.Series([1, 2]))


# --- labels that are numbers -----------------------------------------------------------------------------------------

FAR = 2**53  # here float64 begins to leave out whole numbers
IDS = 1_500_000_000_000_000_000 + np.arange(4)
WHOLE_NUMBERS = ("int64", "uint64", "Int64", "UInt64", "int64[pyarrow]", "object", "float64", "Float64",
                 "double[pyarrow]", "decimal")  # fmt: skip


def test_a_whole_number_is_no_float_beside_it():
    p = pd.Series([0.5, 0.5], index=[FAR, FAR + 1])
    q = pd.Series([1.0], index=[float(FAR)])
    assert kl.kl_divergence(p, q) == math.inf
    assert kl.kl_divergence(q, p, base=2) == 1.0
    with pytest.raises(ValueError, match=f"^q lacks cell {FAR + 1}$"):
        kl.kl_divergence(p, q, align="strict")
    assert kl.kl_divergence(p[:1], q, align="strict") == 0.0
    rows = pd.DataFrame([[1.0, 2.0]] * 2, index=p.index)
    with pytest.raises(ValueError, match=f"q: row {FAR + 1} has no mass"):
        kl.kl_divergence(rows, rows[:1].set_axis(q.index), invalid="raise")
    assert kl.kl_divergence(rows, rows.set_axis([FAR, 5.0])).isna().tolist() == [False, True]


def test_labels_of_both_stay_as_they_are():
    found = kl.rel_entr(pd.Series(1.0, IDS), pd.Series([1.0, 2.0], [1.5e18, 2.5]))
    assert found.index.tolist() == [*IDS.tolist(), 2.5]
    assert found.tolist() == [0.0, math.inf, math.inf, math.inf, 0.0]
    back = kl.rel_entr(pd.Series([1.0, 2.0], pd.Index([1.5e18, None], dtype=object)), pd.Series(1.0, IDS))
    assert back.index[2:].tolist() == IDS[1:].tolist()
    levels = [pd.MultiIndex.from_product([["a"], one]) for one in (IDS, [1.5e18, 2.5])]
    found = kl.rel_entr(pd.Series(1.0, levels[0]), pd.Series([1.0, 2.0], levels[1]))
    assert found.index.tolist() == [("a", label) for label in [*IDS.tolist(), 2.5]]
    assert found.tolist() == [0.0, math.inf, math.inf, math.inf, 0.0]
    assert kl.rel_entr(pd.Series(1.0, [1, 2]), pd.Series(1.0, [1.0, 2.5])).index.dtype == np.float64


@pytest.mark.filterwarnings("ignore:p and q")
def test_levels_that_would_be_equal_as_floats():
    p, q = (pd.Series([1.0], pd.MultiIndex.from_tuples([("a", x)])) for x in (FAR + 1, float(FAR)))
    assert kl.kl_divergence(p, q) == math.inf
    assert kl.kl_divergence(p, q.set_axis(p.index)) == 0.0
    one = pd.MultiIndex.from_tuples([(1,), (2,)])
    assert kl.rel_entr(pd.Series([1.0, 2.0], one), pd.Series([2.0, 1.0], [2, 1])).tolist() == [0.0, 0.0]


def numbered(values, dtype):
    """An index of numbers that the dtype has."""
    if dtype == "decimal":
        pa = pytest.importorskip("pyarrow", reason="decimals of Arrow")
        return pd.Index([Decimal(x) for x in values], dtype=pd.ArrowDtype(pa.decimal128(20, 0)))
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="numbers of Arrow")
    if dtype in ("float64", "Float64", "double[pyarrow]"):
        values = list(dict.fromkeys(float(x) for x in values))
    return pd.Index(values, dtype=dtype)


@pytest.mark.parametrize("q", WHOLE_NUMBERS)
@pytest.mark.parametrize("p", WHOLE_NUMBERS)
def test_numbers_match_where_they_are_equal(p, q):
    """Equal exactly, as Python compares them, and each with one at most."""
    ours = numbered([1, FAR - 1, FAR, FAR + 1, FAR + 2, 2**62 + 1], p)
    theirs = numbered([2**62 + 1, FAR + 1, 2**62, FAR, 3, 1], q)
    found = kl.rel_entr(pd.Series(1.0, ours), pd.Series(1.0, theirs))
    first, second = (list(map(int, index.tolist())) for index in (ours, theirs))
    assert list(map(int, found.index.tolist())) == first + [x for x in second if x not in first]
    assert found.tolist() == [0.0 if x in second or x not in first else math.inf for x in map(int, found.index)]


def test_truth_values_are_no_numbers():
    with pytest.warns(UserWarning, match="types integer and boolean"):
        assert kl.kl_divergence(pd.Series(1.0, [1, FAR]), pd.Series(1.0, pd.Index([True, False]))) == math.inf


def test_masks_and_weights_go_by_exact_numbers():
    p = pd.Series([1.0, 2.0], index=[FAR, FAR + 1])
    with pytest.raises(ValueError, match=f"^where: lacks {FAR + 1}$"):
        kl.kl_divergence(p, p, where=pd.Series([True], index=[float(FAR)]))
    with pytest.raises(ValueError, match="where: lacks"):
        kl.kl_divergence(p, p, where=pd.Series([True], index=pd.MultiIndex.from_tuples([(1, 2)])))
    rows = pd.DataFrame([[1.0, 2.0]], index=[FAR + 1])
    with pytest.raises(ValueError, match="weights: with the labels"):
        kl.KLDivergence().update(rows, rows, weights=pd.Series([1.0], index=[float(FAR)]))
    kl.KLDivergence().update(rows.set_axis([5]), rows.set_axis([5]), weights=pd.Series([1.0], index=[5.0]))


# --- kinds of numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "int16", "uint64", "bool", "Int64", "Float64", "Float32", "boolean"]
)
def test_dtypes(dtype):
    p, q = (pd.Series(x, index=list("abc")).astype(dtype) for x in ([1, 0, 1], [1, 1, 1]))
    found = kl.kl_divergence(p, q)
    assert found == pytest.approx(math.log(1.5), rel=1e-6)
    assert found.dtype == (np.float32 if dtype.lower() == "float32" else np.float64)
    frame = pd.DataFrame({"a": p, "b": q})
    assert kl.entropy(frame, axis=0).dtype == found.dtype


@pytest.mark.parametrize("dtype", ["double[pyarrow]", "float[pyarrow]", "int8[pyarrow]", "bool[pyarrow]", "decimal"])
def test_arrow(dtype):
    pa = pytest.importorskip("pyarrow", reason="columns of Arrow")
    kind = pd.ArrowDtype(pa.decimal128(10, 2)) if dtype == "decimal" else dtype
    p, q = (pd.Series(x, index=list("abc"), dtype="double[pyarrow]").astype(kind) for x in ([1, 0, 1], [1, 1, 1]))
    found = kl.kl_divergence(p, q)
    assert found == pytest.approx(math.log(1.5), rel=1e-6)
    assert found.dtype == (np.float32 if dtype == "float[pyarrow]" else np.float64)
    assert np.isnan(kl.kl_divergence(p, q.mask(q.index == "b")))


def test_columns_of_several_dtypes(frame):
    mixed = frame.assign(a=[1, 2, 3, 4], b=pd.array([1.5, None, 2.0, 3.0], "Float64"), c=[True, False, True, True])
    plain = mixed.astype("float64")
    found = kl.kl_divergence(mixed, frame)
    np.testing.assert_array_equal(found, kl.kl_divergence(plain.to_numpy(), frame.to_numpy()))
    assert found.isna().tolist() == [False, True, False, False]
    narrow = pd.DataFrame({"a": np.float32([1, 2]), "b": pd.array([1, 2], "Float32"), "c": np.float16([1, 3])})
    assert kl.entropy(narrow).dtype == np.float32
    assert kl.entropy(pd.DataFrame({"a": np.float32([1, 2]), "b": np.int8([1, 2])})).dtype == np.float64


def test_a_missing_value_is_no_mass_of_its_own(frame):
    """A label that is there with a missing value is not a label that is not there."""
    p = pd.Series({"a": 1.0, "b": np.nan})
    assert np.isnan(kl.kl_divergence(p, pd.Series({"a": 1.0, "b": 1.0})))
    assert np.isnan(kl.kl_divergence(p, pd.Series({"b": 1.0, "a": 1.0})))
    assert kl.kl_divergence(p.dropna(), pd.Series({"a": 1.0, "b": 1.0}), base=2) == 1.0
    with pytest.raises(ValueError, match="p: the row, cell 'b' is NaN"):
        kl.kl_divergence(p, p, invalid="raise")
    nullable = pd.Series(pd.array([1.0, pd.NA], "Float64"), index=["a", "b"])
    assert np.isnan(kl.entropy(nullable))


def test_sparse_columns():
    p = pd.Series(pd.arrays.SparseArray([0.0, 1.0, 0.0, 1.0]))
    assert kl.kl_divergence(p, pd.Series(np.ones(4)), base=2) == 1.0


@pytest.mark.parametrize(
    "cells",
    [
        pd.array(["1", "2"], dtype="str"),
        np.array([1, 2], dtype=object),
        pd.Categorical([1, 2]),
        pd.Categorical([True, False]),
        np.array([1j, 2]),
        pd.to_datetime(["2026-01-01", "2026-01-02"]),
        pd.to_timedelta([1, 2]),
        pd.interval_range(0, 2),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_columns_that_hold_no_numbers(cells):
    series = pd.Series(cells)
    with pytest.raises(TypeError, match=r"q: dtype .* is not a real number type"):
        kl.kl_divergence(pd.Series([1, 2]), series)
    with pytest.raises(TypeError, match=r"p: column 'bad': dtype .* is not a real number type"):
        kl.kl_divergence(pd.DataFrame({"good": [1, 2], "bad": series}), [1, 2])


# --- sizes and memory ------------------------------------------------------------------------------------------------


def test_nothing_at_all(frame):
    none = pd.Series([], dtype=float)
    assert np.isnan(kl.kl_divergence(none, none))
    assert np.isnan(kl.kl_divergence(none, pd.Series({"a": 1.0})))
    assert kl.rel_entr(none, none).size == 0
    assert kl.kl_divergence(frame.iloc[:0], frame).size == 0
    assert kl.kl_divergence(frame[[]], frame).isna().all()
    assert kl.entropy(frame[[]]).isna().all()
    assert kl.kl_divergence(frame, frame.iloc[:0]).isna().all()
    assert kl.rel_entr(frame.iloc[:0], frame).to_numpy().tolist() == np.zeros((4, 5)).tolist()


@pytest.mark.parametrize("function", ["kl_divergence", "rel_entr"])
def test_inputs_stay_as_they_are(frame, function):
    q = shuffled(frame + 1.0).drop(columns="a")
    copies = frame.copy(), q.copy()
    cells = frame.to_numpy()
    cells.flags.writeable = False
    getattr(kl, function)(frame, q)
    getattr(kl, function)(pd.DataFrame(cells, copy=False), pd.DataFrame(cells, copy=False) + 1.0)
    pd.testing.assert_frame_equal(frame, copies[0])
    pd.testing.assert_frame_equal(q, copies[1])


def test_subclasses_and_other_libraries(frame):
    class Mine(pd.DataFrame):
        pass

    assert (kl.kl_divergence(Mine(frame), shuffled(frame)) == 0.0).all()
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    found = kl.kl_divergence(frame, torch.ones(5, dtype=torch.float64))
    assert found.index.equals(frame.index)


def test_functions_with_the_signatures_of_others(frame):
    found = kl.functional.kl_divergence(frame, shuffled(frame), reduction="none")
    assert found.tolist() == [0.0] * 4
    with pytest.raises(TypeError, match="Series"):
        kl.functional.kl_div(np.log(frame), shuffled(frame), reduction="sum")
