"""Sums of weights: exact, so that neither the order of the rows shows nor how they are cut and merged."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Profile, compare, kl_groups, scan
from klnumba.tables.sums import Weigher, rests, rounded


def table(rows, seed, spread=2.0):
    """Columns that are counted in different ways, with categories that the other table lacks, few and many."""
    draws = np.random.default_rng(seed)
    word = draws.integers(0, 40 + 20 * seed, rows).astype(str)
    return pd.DataFrame({
        "number": draws.normal(size=rows),
        "few": draws.integers(0, 5 + 4 * seed, rows),
        "large": 2**60 + draws.integers(0, 4 + 3 * seed, rows),
        "word": word,
        "category": pd.Categorical(word),
        "many": draws.integers(0, 1500 * (1 + seed), rows).astype(str),
        "flag": draws.random(rows) < 0.5,
        "w": draws.lognormal(sigma=spread, size=rows),
    })  # fmt: skip


BEFORE, AFTER = table(6000, 0), table(5000, 1)


@pytest.fixture(scope="module")
def profile():
    return Profile.fit(BEFORE, weights="w")


@pytest.fixture(scope="module")
def whole(profile):
    return profile.empty().update(AFTER, weights="w")


def sum_of(weights):
    return sum(map(Fraction, weights.tolist()), Fraction(0))


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 1e-100, 7e99])
def test_rows_of_one_weight_have_the_bits_of_rows_without(weight):
    sides = BEFORE.drop(columns="w"), AFTER.drop(columns="w")
    expected = compare(*sides, smoothing="none").to_frame()
    found = compare(*(one.assign(w=weight) for one in sides), weights="w", smoothing="none").to_frame()
    exact = ["n_effective_reference", "n_effective_current", "kl", "kl_reverse", "js", "psi"]
    pd.testing.assert_frame_equal(found[exact], expected[exact], check_exact=True)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=0.0)


def test_groups_of_one_weight_have_the_bits_of_groups_without():
    frame = BEFORE.assign(w=0.1)
    for against in (None, 2):
        options = {"against": against, "confidence": 0.9, "stats": ["kl", "js"]}
        expected, found = (kl_groups(frame, "few", "word", weights=one, **options) for one in (None, "w"))
        pd.testing.assert_frame_equal(found.drop(columns="weight"), expected, check_exact=True)


def test_sums_are_rounded_once(whole):
    weights, few = AFTER["w"], AFTER["few"]
    tally = whole.tallies["few"]
    for value in range(5):
        held = weights[few == value]
        assert tally.counts[value] == float(sum_of(held))
        assert tally.squares[value] == float(sum(Fraction(one) ** 2 for one in held.tolist()))
    assert tally.unseen == {value: float(sum_of(weights[few == value])) for value in range(5, 9)}
    assert tally.counts[5] == float(sum_of(weights[few > 4]))
    total, squares = sum_of(weights), sum(Fraction(one) ** 2 for one in weights.tolist())
    assert tally.effective() == float(total * total / squares)


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_all_sizes(seed):
    draws = np.random.default_rng(seed)
    weights = np.append(10.0 ** draws.uniform(-100, 100, 3000), [1e-100, 1e100, np.nextafter(2.0, 0.0), 2.0])
    places = draws.integers(0, 3, weights.size)
    weigher = Weigher(4)
    for part in np.array_split(np.arange(weights.size), 7):
        weigher.places(places[part], weights[part])
        weigher.places(places[:0], weights[:0])
        weigher.totals()
    sums, squares = weigher.totals()
    for cell in range(4):
        held = [Fraction(one) for one in weights[places == cell].tolist()]
        assert rounded(sums)[cell] == float(sum(held))
        assert rounded(squares)[cell] == float(sum(one**2 for one in held))
        assert sum(map(Fraction, [float(rounded(sums)[cell]), *rests(sums[cell])]), Fraction(0)) == sum(held)


def test_many_rows_fill_no_limb(monkeypatch):
    monkeypatch.setattr("klnumba.tables.sums.ROWS", 1000)
    weights = np.full(200_000, np.nextafter(2.0, 0.0))
    weigher = Weigher(1)
    weigher.places(np.zeros(weights.size, np.int64), weights)
    assert rounded(weigher.totals()[0])[0] == float(200_000 * Fraction(weights[0]))


@pytest.mark.parametrize("parts", [2, 4, 50])
def test_parts_add_up_in_any_order(profile, whole, parts):
    order = np.random.default_rng(parts).permutation(parts)
    held = [profile.empty().update(AFTER.iloc[k::parts], weights="w") for k in range(parts)]
    expected = profile.compare(whole).to_json()
    for found in (sum(held), sum(held[::-1]), sum(held[k] for k in order), sum(held[:1]) + sum(held[1:])):
        assert found == whole
        assert found.to_json() == whole.to_json()
        assert profile.compare(found).to_json() == expected


def test_the_order_of_the_rows_does_not_show(profile, whole):
    turned = AFTER.sample(frac=1.0, random_state=0)
    assert profile.compare(turned, weights=(None, "w")).to_json() == profile.compare(whole).to_json()


@pytest.mark.parametrize("rows", [7, 640, 5000])
def test_a_file_in_pieces_is_the_frame(tmp_path, rows):
    pytest.importorskip("pyarrow", reason="writes the files")
    held = {"before": BEFORE[:900], "after": AFTER[:700]}
    for name, frame in held.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    found = compare(*(scan(tmp_path / f"{name}.parquet", rows=rows) for name in held), weights="w")
    assert found.to_json() == compare(*held.values(), weights="w").to_json()


@pytest.mark.parametrize("npartitions", [1, 3, 20])
def test_partitions_of_dask(npartitions):
    dd = pytest.importorskip("dask.dataframe", reason="the partitions are Dask's")
    import dask

    from klnumba.tables import partitions

    with dask.config.set(scheduler="synchronous"):
        sides = (dd.from_pandas(one, npartitions=npartitions) for one in (BEFORE, AFTER))
        found = partitions.compare(*sides, weights="w")
    assert found.to_json() == compare(BEFORE, AFTER, weights="w").to_json()


def test_what_is_stored_is_exact(profile, whole):
    halves = [profile.empty().update(one, weights="w") for one in (AFTER[:2000], AFTER[2000:])]
    for kept in (Profile.from_json(whole.to_json()), pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        assert kept == whole
    assert sum(Profile.from_json(one.to_json()) for one in halves) == whole
    column = json.loads(whole.to_json())["columns"]["few"]
    exact = sum(map(Fraction, [column["counts"][0], *column["rests"]["counts"][0]]), Fraction(0))
    assert exact == sum_of(AFTER["w"][AFTER["few"] == 0])


def test_weights_without_rounding_are_stored_as_before():
    profile = Profile.fit(BEFORE.assign(w=2.0), weights="w")
    assert all("rests" not in column for column in profile.to_dict()["columns"].values())


def test_profiles_of_earlier_versions(whole):
    """Their sums of weights were rounded, and are taken as they are."""
    old = json.loads(whole.to_json())
    for column in old["columns"].values():
        del column["rests"]
    found = Profile.from_json(json.dumps(old))
    for name, tally in found.tallies.items():
        assert tally.counts.tolist() == whole.tallies[name].counts.tolist()
        assert tally.effective() == pytest.approx(whole.tallies[name].effective(), rel=1e-14)
        del tally.__dict__["exact"]  # as a pickle has it
    assert pickle.loads(pickle.dumps(found)) == Profile.from_json(json.dumps(old))


@pytest.mark.parametrize("wrong", [[], [[0.1]] * 7, [["x"]] * 7, [[float("inf")]] * 7, None, "x"])
def test_damaged_rests(whole, wrong):
    found = json.loads(whole.to_json())
    found["columns"]["few"]["rests"]["counts"] = wrong
    with pytest.raises(ValueError, match="text: a damaged profile"):
        Profile.from_json(json.dumps(found))


def divergences_of(frame, groups, values):
    """KL of each group to all others, from exact sums."""
    mp = pytest.importorskip("mpmath", reason="computes the true values")
    mp.mp.dps = 60
    sums = {(g, v): Fraction(0) for g in range(groups) for v in range(values)}
    for g, v, w in zip(frame["g"].tolist(), frame["v"].tolist(), frame["w"].tolist(), strict=True):
        sums[g, v] += Fraction(w)
    for g in range(groups):
        p = [sums[g, v] for v in range(values)]
        q = [sum(sums[h, v] for h in range(groups) if h != g) for v in range(values)]
        p, q = ([mp.mpf((x / sum(side)).numerator) / (x / sum(side)).denominator for x in side] for side in (p, q))
        yield float(mp.fsum(x * mp.log(x / y) for x, y in zip(p, q, strict=True)))


@pytest.mark.parametrize("weights", ["alike", "uneven", "one group has nearly all"])
def test_groups_against_exact_sums(weights):
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({"g": draws.integers(0, 4, 3000), "v": draws.integers(0, 3, 3000)})
    frame["w"] = 0.1 if weights == "alike" else draws.lognormal(sigma=1.0, size=3000)
    if weights.startswith("one"):
        frame.loc[frame["g"] == 1, "w"] *= 1e40
    found = kl_groups(frame, "g", "v", weights="w")
    assert found["kl"].tolist() == pytest.approx([*divergences_of(frame, 4, 3)], rel=2e-14, abs=0)
    assert found["weight"].tolist() == [float(sum_of(frame["w"][frame["g"] == g])) for g in range(4)]
    turned = kl_groups(frame.iloc[::-1], "g", "v", weights="w", confidence=0.9)
    names = ["n_effective", "n_effective_other", "weight"]
    assert turned[names].equals(kl_groups(frame, "g", "v", weights="w", confidence=0.9)[names])


def test_groups_in_blocks(monkeypatch):
    expected = kl_groups(BEFORE, "few", "word", weights="w", confidence=0.9)
    monkeypatch.setattr("klnumba.tables.group_weights.BLOCK", 17)
    assert kl_groups(BEFORE, "few", "word", weights="w", confidence=0.9).equals(expected)
