"""The evidence of `kl_groups` is that of `compare` on the same two sets of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="klnumba.tables is for pandas")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")

from scipy import stats  # noqa: E402

from klnumba.tables import compare, kl_groups  # noqa: E402

EVIDENCE = ["n_effective", "n_effective_other", "kl_corrected", "standard_error", "ci_low", "ci_high", "g", "dof",
            "p_value", "p_adjusted"]  # fmt: skip
SAME = {"n_effective": "n_effective_reference", "n_effective_other": "n_effective_current"}


@pytest.fixture(scope="module")
def rides():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "day": rng.choice(["Mon", "Tue", "Sun"], 900, p=[0.5, 0.3, 0.2]),
            "by": rng.choice(["bus", "tram", "foot", None], 900, p=[0.4, 0.3, 0.2, 0.1]),
            "weight": rng.random(900) + 0.5,
        }
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("against", [None, "Sun"])
@pytest.mark.parametrize("smoothing", ["none", "jeffreys", "perks", "james-stein", 2])
@pytest.mark.parametrize("missing", ["cell", "drop"])
def test_evidence_is_that_of_compare(rides, weighted, against, smoothing, missing):
    pytest.importorskip("narwhals", reason="compare needs narwhals")
    options = {"smoothing": smoothing, "confidence": 0.9, "base": 2, "missing": missing}
    found = kl_groups(
        rides, "day", "by", weights="weight" if weighted else None, against=against, stats=("kl", "js"), **options
    )
    p_values = []
    for day in found.index:
        inside = rides["day"] == day
        others = ~inside if against is None else rides["day"] == against
        if day == against:
            assert found.loc[day, ["kl", "js"]].tolist() == [0.0, 0.0]
            assert found.loc[day, EVIDENCE[2:]].isna().all()
            continue
        weights = (rides.loc[inside, "weight"], rides.loc[others, "weight"]) if weighted else None
        row = (
            compare(rides.loc[inside, ["by"]], rides.loc[others, ["by"]], weights=weights, **options).to_frame().loc[0]
        )
        for name in ["kl", "js", *EVIDENCE[:-1]]:
            assert found.loc[day, name] == pytest.approx(row[SAME.get(name, name)], rel=1e-9, abs=1e-15), name
        p_values.append(row["p_value"])
    kept = found["p_adjusted"].dropna()
    np.testing.assert_allclose(kept, stats.false_discovery_control(p_values), rtol=1e-9)


def test_the_evidence_is_there_when_asked_for(rides):
    assert kl_groups(rides, "day", "by").columns.tolist() == ["n", "kl"]
    assert kl_groups(rides, "day", "by", confidence=0.95).columns.tolist() == ["n", "kl", *EVIDENCE]


def test_many_small_groups_without_a_difference():
    """The plug-in value is far from 0; the corrected one and the p-value are not taken in."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"shop": rng.integers(0, 400, 40_000), "item": rng.integers(0, 8, 40_000)})
    found = kl_groups(frame, "shop", "item", confidence=0.95, smoothing="jeffreys")
    assert found["kl"].mean() > 0.02
    assert abs(found["kl_corrected"].mean()) < 0.004
    assert stats.kstest(found["p_value"], "uniform").pvalue > 1e-3
    assert (found["p_adjusted"] < 0.05).sum() == 0
    assert stats.binomtest(int((found["ci_low"] == 0).sum()), 400, 0.95).pvalue > 1e-3


def test_blocks_change_nothing(rides, monkeypatch):
    from klnumba.tables import groups

    whole = kl_groups(rides, "day", "by", confidence=0.95)
    monkeypatch.setattr(groups, "BLOCK", 1)
    pd.testing.assert_frame_equal(kl_groups(rides, "day", "by", confidence=0.95), whole, check_exact=True)


def test_sides_without_rows():
    frame = pd.DataFrame({"g": ["a", "a", "b"], "v": ["x", "y", "x"], "w": [1.0, 2.0, 0.0]})
    found = kl_groups(frame, "g", "v", weights="w", confidence=0.95, smoothing="jeffreys")
    assert found["n"].tolist() == [2, 0]
    assert found[EVIDENCE[2:]].isna().all(axis=None)
    nothing = kl_groups(frame.head(0), "g", "v", confidence=0.95)
    assert nothing.shape == (0, 2 + len(EVIDENCE))
    alone = kl_groups(frame.head(2), "g", "v", confidence=0.95)
    assert alone[EVIDENCE[2:]].isna().all(axis=None)
    assert math.isnan(alone["kl"].iloc[0])


def test_rows_of_weight_zero_are_no_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": rng.integers(0, 3, 300), "v": rng.integers(0, 4, 300), "w": rng.integers(0, 2, 300)})
    found, wanted = (kl_groups(one, "g", "v", weights="w", confidence=0.9) for one in (frame, frame[frame["w"] > 0]))
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"smoothing": "some"}, ValueError, "smoothing: one of 'none', 'laplace'"),
        ({"smoothing": -1}, ValueError, "smoothing: a number from 0"),
        ({"confidence": 95}, ValueError, "confidence: a number between 0 and 1, not 95"),
        ({"base": 0.5}, ValueError, "base: a finite number above 1, not 0.5"),
        ({"confidence": "high"}, TypeError, "confidence"),
        ({"correction": "fdr"}, ValueError, "correction: one of 'bh', 'bonferroni', 'holm', 'none', not 'fdr'"),
    ],
)
def test_refusals(rides, options, error, text):
    with pytest.raises(error, match=text):
        kl_groups(rides, "day", "by", **options)


@pytest.mark.parametrize("by", ["a", ["a", "b"]])
def test_groups_that_cannot_be_told_apart(by):
    frame = pd.DataFrame({"a": [[1], [2]], "b": [1, 2]})
    with pytest.raises(TypeError, match=r"by: the values of .*'a'.* cannot be grouped: unhashable type: 'list'"):
        kl_groups(frame, by, "b")


@pytest.mark.parametrize("options", [{}, {"weights": "weight"}, {"against": "Sun", "missing": "drop"}])
@pytest.mark.parametrize("dtype", [object, "category"])
def test_the_order_of_rows_leaves_every_bit(rides, options, dtype):
    rides = rides.assign(by=rides["by"].astype(dtype))
    found = kl_groups(rides, "day", "by", confidence=0.9, smoothing="jeffreys", **options)
    for seed in range(5):
        other = kl_groups(
            rides.sample(frac=1, random_state=seed), "day", "by", confidence=0.9, smoothing="jeffreys", **options
        )
        pd.testing.assert_frame_equal(found, other, check_exact=True)


def test_half_a_pair_of_surrogates():
    half = pd.DataFrame({"day": [*"aaabbb"], "by": pd.Series(["\ud800", "x", "y", "x", "y", "y"], dtype=object)})
    found, plain = (kl_groups(one, "day", "by", confidence=0.9) for one in (half, half.replace("\ud800", "z")))
    pd.testing.assert_frame_equal(found, plain)


@pytest.mark.parametrize("columns", ["day", ["day", "by"]])
@pytest.mark.parametrize(
    "wrong", [pd.Series(["Sun"]), np.array(["Sun"]), ["Sun"], {"Sun"}, pd.DataFrame({"day": ["Sun"]})],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_what_is_no_label_is_refused(rides, columns, wrong):
    with pytest.raises(TypeError, match=rf"against: the label of one group, .* not {type(wrong).__name__}"):
        kl_groups(rides, columns, "weight", against=wrong)


def test_labels_of_too_few_columns(rides):
    for wrong in (("Sun",), "Sun", ("Sun", "bus", 1)):
        with pytest.raises(ValueError, match=r"against: no group .*; there are \('Mon', 'bus'\), "):
            kl_groups(rides, ["day", "by"], "weight", against=wrong)
    with pytest.raises(TypeError, match=r"of several columns a tuple of them, not \('Sun', \['bus'\]\)"):
        kl_groups(rides, ["day", "by"], "weight", against=("Sun", ["bus"]))
    assert len(kl_groups(rides, ["day", "by"], "weight", against=("Sun", "bus")))
