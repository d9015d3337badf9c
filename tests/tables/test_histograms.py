"""Distributions that others have counted: no count is rounded, and one that is known may stand on either side."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Profile, compare, from_great_expectations, from_histogram

P, Q = (0.5, 0.3, 0.2), (0.1, 0.3, 0.6)
TRUTH = sum(p * math.log(p / q) for p, q in zip(P, Q, strict=True))


def known(weights):
    return from_great_expectations({"values": [*"abc"], "weights": weights}, column="x")


def sampled(weights):
    return pd.DataFrame(
        {"x": [label for label, share in zip("abc", weights, strict=True) for _ in range(int(share * 1000))]}
    )


@pytest.mark.parametrize(("first", "second"), [(known, known), (known, sampled), (sampled, known)])
def test_a_known_distribution_on_either_side(first, second):
    sides = [made(weights) for made, weights in ((first, P), (second, Q))]
    if first is sampled:
        sides[0] = Profile.fit(sides[0])
    row = compare(*sides, smoothing="none", missing="drop").to_frame().loc[0]
    assert row["kl"] == pytest.approx(TRUTH, rel=1e-14)
    assert row["kl"] == pytest.approx(0.585, abs=1e-3)
    for side, made in (("reference", first), ("current", second)):
        assert row[f"n_effective_{side}"] == (math.inf if made is known else 1000)
    assert math.isnan(row["p_value"]) == (first is second is known)


def test_the_test_does_not_ask_which_side_is_known():
    counts = {"a": 520, "b": 290, "c": 190}
    frame = pd.DataFrame({"x": [label for label, count in counts.items() for _ in range(count)]})
    one, other = compare(known(P), frame, missing="drop"), compare(Profile.fit(frame), known(P), missing="drop")
    for name in ("g", "dof", "p_value"):
        assert one.to_frame().loc[0, name] == pytest.approx(other.to_frame().loc[0, name], rel=1e-13)
    expected = {"a": 500, "b": 300, "c": 200}
    g = 2 * sum(count * math.log(count / expected[label]) for label, count in counts.items())
    assert one.to_frame().loc[0, "g"] == pytest.approx(g, rel=1e-12)


def test_no_rows_are_added_to_shares():
    profile = known(P)
    text = profile.to_json()
    with pytest.raises(ValueError, match="batch: column 'x': is a known distribution"):
        profile.update(sampled(P))
    for other in (profile, Profile.fit(sampled(P))):
        with pytest.raises(ValueError, match="profiles: column 'x': is a known distribution"):
            profile.merge(other)
        with pytest.raises(ValueError, match="profiles: column 'x': is a known distribution"):
            other + profile
    assert profile.to_json() == text
    assert profile.empty().update(sampled(P)).tallies["x"].counts.tolist() == [500, 300, 200, 0, 0]


def test_counts_stay_whole():
    tally = from_histogram([0, 1, 2], [2**60 + 1, np.uint64(3)], missing=0.0, below=np.int64(2)).tallies["value"]
    assert tally.counts.tolist() == [2, 2**60 + 1, 3, 0, 0, 0, 0]
    assert tally.rows == 2**60 + 6
    assert from_histogram([0, 1], [2**63 - 1]).tallies["value"].rows == 2**63 - 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"counts": [2**63]}, "counts: at most 2.*63 - 1 rows in all, not 9223372036854775808"),
        ({"counts": [2**62], "missing": 2**62}, "counts: at most 2"),
        ({"counts": 3}, r"counts: one a bin, so 1, not an array of shape \(\)"),
        ({"counts": [[3]]}, r"counts: one a bin, so 1, not an array of shape \(1, 1\)"),
        ({"counts": ["3"]}, "counts: finite numbers"),
        ({"counts": [True]}, "counts: finite numbers"),
        ({"counts": [3], "above": -1}, "above: finite numbers"),
        ({"counts": [3], "missing": None}, "missing: finite numbers"),
        ({"counts": [3], "below": 0.5}, "below: whole numbers"),
        ({"counts": [3], "below": [1, 2]}, "below: finite numbers"),
        ({"counts": [3], "edges": [1, 0]}, "edges: edges increase"),
        ({"counts": [3], "edges": 1}, "edges: edges are a sequence"),
        ({"counts": [3], "edges": [0, 10**400]}, "edges: edges are numbers that float64 holds"),
        ({"counts": [3], "edges": [0, pd.NA]}, "edges: edges, none of which is missing"),
    ],
)
def test_broken_histograms_name_the_argument(options, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        from_histogram(**{"edges": [0, 1]} | options)


def test_infinite_edges():
    made = from_histogram([-math.inf, 0.0, math.inf], [2, 3])
    assert made == Profile.fit(pd.DataFrame({"value": [-5.0, -1, 0, 2, 7]}), bins=[-math.inf, 0, math.inf])


@pytest.mark.parametrize("values", [[True, False], [False, True], np.array([True, False])])
def test_partitions_of_truth_values(values):
    weights = [0.75 if value else 0.25 for value in values]
    made = from_great_expectations({"values": values, "weights": weights}, column="x")
    frame = pd.DataFrame({"x": [True, True, True, False] * 5})
    row = made.compare(frame, missing="drop").to_frame().loc[0]
    assert (row["kind"], row["status"]) == ("boolean", "ok")
    assert compare(Profile.fit(frame), made, missing="drop", smoothing="none").to_frame().loc[0, "kl"] == 0
    alone = from_great_expectations({"values": [True], "weights": [1.0]}, column="x")
    assert alone.tallies["x"].counts.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, pd.NA, pd.NaT])
def test_partitions_have_no_missing_value(value):
    with pytest.raises(ValueError, match=f"partition: values that are there and finite, without {value}"):
        from_great_expectations({"values": ["a", value], "weights": [0.5, 0.5]})


@pytest.mark.parametrize("part", ["weights", "tail_weights", "bins"])
@pytest.mark.parametrize("value", [["x", 0.5], [[0.5], [0.25, 0.25]], [0, 10**400], None])
def test_parts_of_partitions_are_numbers(part, value):
    partition = {"bins": [0, 1, 2], "weights": [0.5, 0.5], "tail_weights": [0.0, 0.0]} | {part: value}
    with pytest.raises(ValueError, match=f"^partition: ('{part}' are numbers, not|weights are numbers|bins increase)"):
        from_great_expectations(partition)


TIMES = {
    "days": pd.date_range("2020-01-01", periods=4),
    "a zone": pd.date_range("2020-01-01", periods=4, tz="Europe/Berlin"),
    "durations": pd.timedelta_range("1h", periods=4, freq="h"),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("plain", [False, True])
def test_edges_of_times(kind, plain):
    edges = TIMES[kind]
    step = edges[1] - edges[0]
    values = [*edges[:1] - step, *[edges[0]] * 2, *(edges[:2] + step / 2), *edges[-1:], *edges[-1:] + step, pd.NaT]
    frame = pd.DataFrame({"t": pd.Series(values, dtype=edges.dtype)})
    given = edges.to_pydatetime().tolist() if plain and kind != "durations" else [*edges] if plain else edges
    profile = from_histogram(given, [3, 1, 1], column="t", below=1, above=1, missing=1)
    assert profile == Profile.fit(frame, bins=edges)
    assert profile.compare(frame).to_frame().loc[0, "kl"] == 0.0
    assert profile.compare(pd.DataFrame({"t": [1.0, 2.0]})).problems["t"].startswith("holds numbers, but the reference")


def test_a_column_that_is_named_by_a_number():
    made = (
        from_histogram([0, 1, 2], [1, 1], column=3),
        from_great_expectations({"values": ["a", "b"], "weights": [0.5, 0.5]}, column=3),
        from_great_expectations({"bins": [0, 1, 2], "weights": [0.5, 0.5]}, column=3, n=2),
    )
    for profile, values in zip(made, ([0.5, 1.5], ["a", "b"], [0.5, 1.5]), strict=True):
        assert profile == Profile.from_json(profile.to_json())
        assert profile.compare(pd.DataFrame({3: values}), missing="drop").to_frame().loc[0, "kl"] == 0.0
