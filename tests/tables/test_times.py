"""Times and durations finer than a microsecond, and those as far away as 64 bits reach."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Chunks, Profile, compare

KINDS = pytest.mark.parametrize("kind", ["M", "m"])
NOW = 1_577_836_800 * 10**9  # nanoseconds


def nanoseconds(values, kind):
    return pd.DataFrame({"t": np.asarray(values, np.int64).view(f"{kind}8[ns]")})


@KINDS
@pytest.mark.parametrize("pandas_edges", [False, True])
def test_edges_between_microseconds(kind, pandas_edges):
    edges = nanoseconds([500, 1500, 3000], kind)["t"]
    profile = Profile.fit(nanoseconds([1000, 1200, 1600, 2500], kind), bins=[*edges] if pandas_edges else edges)
    assert profile.tallies["t"].counts.tolist() == [0, 2, 2, 0, 0, 0, 0]
    first = "00:00:00.0000005" if kind == "m" else "1970-01-01T00:00:00.000000500"
    assert profile.cells["t"].labels()[0] == f"below {first}"


@KINDS
def test_a_change_within_a_microsecond_is_seen(kind):
    before = np.random.default_rng(1).integers(100, 300, 1000)
    row = compare(nanoseconds(before, kind), nanoseconds(before + 500, kind)).to_frame().loc[0]
    assert row["status"] == "ok"
    assert row["kl"] > 1.0


@KINDS
def test_nanoseconds_that_float64_merges_are_a_status(kind):
    before = NOW + np.random.default_rng(1).integers(100, 300, 1000)
    row = compare(nanoseconds(before, kind), nanoseconds(before + 500, kind)).to_frame().loc[0]
    assert row["status"] == f"holds {'times' if kind == 'M' else 'durations'} that float64 cannot tell apart"


@KINDS
def test_pieces_of_two_units_are_looked_at_unit_by_unit(kind):
    micro = np.arange(1000) + NOW // 1000
    pieces = [nanoseconds(1000 * micro, kind), pd.DataFrame({"t": micro.view(f"{kind}8[us]")})]
    far = pd.DataFrame({"t": np.full(1000, 2**62).view(f"{kind}8[us]")})
    profile = Profile.fit(Chunks(lambda: iter([*pieces, far])))
    assert not profile.problems
    assert profile.tallies["t"].counts.sum() == 3000


def test_whole_microseconds_are_the_same_in_every_unit():
    frames = [
        pd.DataFrame({"t": np.arange(NOW, NOW + 10**9, 10**6).view("M8[ns]").astype(f"M8[{u}]")}) for u in ("ns", "us")
    ]
    assert Profile.fit(frames[0]) == Profile.fit(frames[1])


@pytest.mark.parametrize(
    "edges",
    [np.array([NOW, NOW + 10], "M8[ns]"), [pd.Timestamp(NOW), pd.Timestamp(NOW + 10)], [2**60, 2**60 + 1]],
)
def test_edges_that_float64_merges(edges):
    with pytest.raises(ValueError, match="bins: edges 0 and 1 are so close that they have one float64"):
        Profile.fit(nanoseconds([1], "M"), bins=edges)


@KINDS
@pytest.mark.parametrize("infinity", [float, np.float32])
@pytest.mark.filterwarnings("error")
def test_infinite_edges_hold_all_times(kind, infinity):
    """Also those as far as 64 bits reach, as PostgreSQL writes an infinite time."""
    far = np.iinfo(np.int64).max
    frame = pd.DataFrame({"t": np.array([far, -far, 0, 5]).view(f"{kind}8[us]")})
    middle = pd.Timestamp(3) if kind == "M" else pd.Timedelta(3)
    profile = Profile.fit(frame, bins=[infinity("-inf"), middle, infinity("inf")])
    assert profile.tallies["t"].counts.tolist() == [0, 2, 2, 0, 0, 0, 0]
    assert profile.cells["t"].labels()[3] == "above inf"
    assert not Profile.fit(frame).problems
    assert Profile.fit(frame).cells["t"].labels()[0] == "below -inf"
