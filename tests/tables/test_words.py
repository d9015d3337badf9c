"""Words counted from Arrow's buffers, against `collections.Counter`."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="words in Arrow's layout")
nw = pytest.importorskip("narwhals.stable.v2", reason="tables need narwhals")
pd = pytest.importorskip("pandas", reason="klnumba.tables is for pandas")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from klnumba.kernels import threads  # noqa: E402
from klnumba.kernels.words import KEYS  # noqa: E402
from klnumba.tables import Chunks, Profile, arrow, turns, words  # noqa: E402
from klnumba.tables.hashing import BUCKETS, buckets_of  # noqa: E402

AWKWARD = ["", "\0", "\0\0", "a", "a\0", "ä", "😀", "1234567", "12345678", "123456789", "12345678\0", "x" * 16,
           "x" * 17, "x" * 16 + "y" + "x" * 16, "x" * 16 + "z" + "x" * 16, "x" * 25, "é" * 40]  # fmt: skip
TEXT = st.one_of(st.none(), st.sampled_from(AWKWARD), st.text(max_size=30))


def column(chunks, kind=None):
    """A column of Arrow's, as one that is read."""
    made = pa.chunked_array(chunks, kind if kind is not None else chunks[0].type)
    return nw.from_native(made, series_only=True)


def counts(series, known=None):
    """The counts by label, or by number of bucket for what has none, and how many are missing."""
    found = arrow.counted(series, known)
    held = Counter()
    for label, number in zip(found.labels, found.counts.tolist(), strict=True):
        held[label] += number
    held.update(dict(enumerate([] if found.buckets is None else found.buckets.tolist())))
    return +held, found.missing


def slow(values):
    held = Counter(values)
    missing = held.pop(None, 0)
    return held, missing


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
@settings(deadline=None, max_examples=100)
@given(values=st.lists(TEXT, max_size=60), cuts=st.lists(st.integers(0, 60), max_size=3), ends=st.integers(0, 5))
def test_counts_are_those_of_the_reference(kind, values, cuts, ends):
    whole = pa.array(values, "string").dictionary_encode() if kind == "dictionary" else pa.array(values, kind)
    kept = slice(ends, max(len(values) - ends, ends))
    places = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    chunks = [whole.slice(a, b - a) for a, b in itertools.pairwise(places)]  # offsets within the buffers
    assert counts(column(chunks)) == slow(values)
    assert counts(column([whole.slice(kept.start, kept.stop - kept.start)])) == slow(values[kept])
    known = sorted({value for value in values if value is not None})[::2]
    assert counts(column(chunks), known) == slow(values)
    codes, labels = arrow.coded(column(chunks), known)
    assert [None if code < 0 else labels[code] for code in codes] == values


def raw(offsets, data, valid=None, kind="string"):
    """An array over buffers that end with their last byte."""
    buffers = [None if valid is None else np.packbits(valid, bitorder="little"), offsets, data]
    held = [None if one is None else pa.py_buffer(one.tobytes()) for one in buffers]
    return pa.Array.from_buffers(getattr(pa, kind)(), len(offsets) - 1, held)


def test_garbage_under_what_is_missing():
    data = np.frombuffer(b"\xff\xfe\xfdab\xff\xff", np.uint8)
    array = raw(np.array([0, 3, 4, 5, 7], np.int32), data, [0, 1, 1, 0])
    assert counts(column([array])) == ({"a": 1, "b": 1}, 2)
    assert counts(column([array.slice(1)])) == ({"a": 1, "b": 1}, 1)
    assert counts(column([array.slice(1, 2)])) == ({"a": 1, "b": 1}, 0)


@pytest.mark.parametrize("length", range(20))
def test_bytes_behind_the_last_word_are_not_read(length):
    """The same word in front of other bytes, and at the very end of the buffer."""
    word = b"0123456789abcdefghij"[:length]
    data = np.frombuffer(word + word + b"~" * 9 + word, np.uint8)
    ends = np.cumsum([0, length, length, 9, length]).astype(np.int32)
    found, _ = counts(column([raw(ends, data)]))
    assert found == Counter([word.decode()] * 3 + ["~" * 9])


@pytest.mark.parametrize("offsets", [[0, 3, 2, 4], [0, -1, 2, 4], [0, 9, 9, 4], [0, 2, 9, 4]])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_offsets_outside_of_the_bytes(offsets, dtype):
    kind = {"int32": "string", "int64": "large_string"}[dtype]
    array = raw(np.array(offsets, dtype), np.frombuffer(b"abcd", np.uint8), kind=kind)
    frame = pa.table({"good": pa.array(["a", "b", "a"]), "bad": array})
    profile = Profile.fit(frame)
    assert profile.problems == {"bad": "holds words whose offsets lie outside of their bytes"}
    assert profile.tallies["good"].counts.tolist() == [2, 1, 0, 0]


def test_text_that_is_none_is_a_status():
    array = raw(np.array([0, 1, 2], np.int32), np.frombuffer(b"a\xff", np.uint8))
    assert "utf-8" in Profile.fit(pa.table({"bad": array})).problems["bad"]


@pytest.mark.parametrize("long", [False, True])
def test_words_that_all_meet_in_one_place(monkeypatch, long):
    """With keys of zero every word begins to search at the same slot."""
    monkeypatch.setattr(words, "_keys", lambda: words.frozen(np.zeros(KEYS, np.uint64)))
    names = [f"{'a long beginning, ' * long}{k}{', and the same end' * long}" for k in range(3000)]
    drawn = np.random.default_rng(0).integers(0, 3000, 9000)
    values = [names[k] for k in drawn]
    assert counts(column([pa.array(values)])) == slow(values)
    found, _ = counts(column([pa.array(values)]), names[:1500])
    expected = Counter(values)
    for name in set(values) - set(names[:1500]):  # more than a thousand, so that none has a number of its own
        expected[int(buckets_of([name])[0])] += expected.pop(name)
    assert found == expected


@pytest.mark.parametrize("length", [5, 8, 9, 12, 16, 24])
def test_words_of_one_length_are_scattered(monkeypatch, length):
    """Also by keys whose sum is 0, where the first 8 bytes are the last 8 as well."""
    key = 0x9E3779B97F4A7C15
    keys = words.frozen(np.array([key, (1 << 64) - key, key], np.uint64))
    monkeypatch.setattr(words, "_keys", lambda: keys)
    table = words.Vocabulary()
    table.count(words.laid_out([f"{k:0{length}d}" for k in range(2000)]))
    runs = np.diff(np.flatnonzero(np.diff(np.r_[0, table.slots > 0, 0])))[::2]
    assert runs.max() < 20


def test_a_million_words():
    drawn = np.random.default_rng(0).integers(0, 400_000, 1_000_000)
    values = pa.array(drawn.astype(str))
    found, missing = counts(column([values]))
    numbers, expected = np.unique(drawn, return_counts=True)
    assert missing == 0
    assert found == dict(zip(numbers.astype(str).tolist(), expected.tolist(), strict=True))


def test_the_rarest_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(words, "MOST", 256)
    frequent = [f"f{k}" for k in range(50)]
    rare = [f"r{k}" for k in range(4000)]
    values = frequent * 3 + [word for k, one in enumerate(rare) for word in (frequent[k % 50], one)]
    one, table = column([pa.array(values)]), words.Vocabulary()
    arrow.gathered(one, table)
    found = dict(zip(table.texts(), table.totals()[1:].tolist(), strict=True))
    assert len(found) <= 256
    assert {word: found[word] for word in frequent} == dict.fromkeys(frequent, 83)
    assert len(counts(one)[0]) == 4050


def test_what_is_forgotten_does_not_depend_on_the_split(monkeypatch):
    """Words in Arrow's layout, encoded ones and Python's objects are forgotten in the order of their rows."""
    monkeypatch.setattr(words, "MOST", 2048)
    rng = np.random.default_rng(0)
    names = [*(f"r{k}" for k in range(6000)), *(f"f{k}" for k in range(40) for _ in range(20)), *[None] * 10]
    values = pa.array([names[k] for k in rng.permutation(len(names))])
    whole = pa.table({"x": values})
    expected = Profile.fit(whole)
    assert expected.cells["x"].folded == 2049 - 1000  # at least
    assert {f"f{k}" for k in range(40)} < set(expected.cells["x"].names)
    for size in (1, 999, 5000):
        cut = [whole.slice(k, size) for k in range(0, whole.num_rows, size)][: 5 if size == 1 else None]
        cut += [whole.slice(5)] if size == 1 else []
        assert Profile.fit(Chunks(lambda cut=cut: cut)) == expected
        assert Profile.fit(pa.concat_tables(cut)) == expected
    plain = pd.DataFrame({"x": pd.Series(values.to_pylist(), dtype=object)})
    for frame in (plain, plain.astype("category"), pa.table({"x": values.dictionary_encode()})):
        assert Profile.fit(frame) == expected
    assert Profile.fit(Chunks(lambda: [plain.iloc[:3000], plain.iloc[3000:]])) == expected


def test_a_table_of_words_travels_and_joins():
    """Other processes have other keys."""
    drawn = np.random.default_rng(0).integers(0, 3000, 9000)
    values = [None if k < 7 else f"name {k}" for k in drawn]
    parts = [words.Vocabulary(), words.Vocabulary()]
    for table, rows in zip(parts, (values[:4000], values[4000:]), strict=True):
        table.count(arrow._words(pa.array(rows, "string")))
    code = "import pickle, sys; a, b = pickle.load(sys.stdin.buffer); a.join(b); pickle.dump(a, sys.stdout.buffer)"
    made = pickle.dumps(parts)
    done = subprocess.run([sys.executable, "-c", code], input=made, capture_output=True, check=True, timeout=120)
    joined = pickle.loads(done.stdout)
    expected, _ = slow(values)
    assert dict(zip(joined.texts(), joined.totals()[1:].tolist(), strict=True)) == expected
    assert joined.leading(3000) == expected


@pytest.mark.parametrize("count", [1, 7, 40, 5000])
def test_the_leading_words(count):
    rng = np.random.default_rng(count)
    made = ["", "\0", "\0\0", "a\0", "a", "ä", "\uffff", "😀", *AWKWARD]
    names = list(dict.fromkeys([*made, *("same start, " * (k % 3) + str(k) + "\0" * (k % 4) for k in range(900))]))
    table = words.Vocabulary()
    table.add(names, rng.integers(1, 4, len(names)))
    totals = dict(zip(table.texts(), table.totals()[1:].tolist(), strict=True))
    ordered = sorted(totals, key=lambda name: (-totals[name], name))[:count]
    assert table.leading(count) == {name: totals[name] for name in ordered}


@pytest.mark.parametrize("count", [3_000, words.REMEMBERED, 40_000])
def test_buckets_are_those_of_the_checksum(count):
    names = [*AWKWARD, *map(str, range(count))]
    two = column([pa.array(names), pa.array([*names[::-1], None])])
    found = arrow.counted(two, AWKWARD[:3])
    codes, labels = arrow.coded(two, AWKWARD[:3])
    assert labels == found.labels == AWKWARD[:3]
    held = np.bincount(codes + 1, minlength=4 + BUCKETS)
    assert held.tolist() == [found.missing, *found.counts, *found.buckets] == [1, 2, 2, 2, *found.buckets]
    assert found.buckets.tolist() == (2 * np.bincount(buckets_of(names[3:]), minlength=BUCKETS)).tolist()


def test_large_tables_take_turns(monkeypatch):
    monkeypatch.setattr(words, "LARGE", 4096)
    monkeypatch.setattr(words, "REMEMBERED", 0)  # else the tables of new names would be large as well
    monkeypatch.setattr(threads, "choose", lambda wanted, cells: 4)
    true_wait, held = turns.wait, []

    def wait():
        true_wait()
        held.append(turns._large.locked())

    monkeypatch.setattr(turns, "wait", wait)
    frame = pa.table({f"c{k}": [f"{k} {j}" for j in range(5000)] for k in range(12)})
    profile = Profile.fit(frame)
    assert [one.folded for one in profile.cells.values()] == [4000] * 12
    assert len(held) >= 12
    assert all(held)
    assert not turns._large.locked()
    turns.wait()  # nothing to wait for outside of a turn
    assert not turns._large.locked()


@pytest.mark.parametrize("number", [0, 1, 999, 1000, 1001, 3000])
def test_how_many_new_words_are_told_apart(number):
    profile = Profile.fit(pa.table({"x": ["a", "b", "a"]})).empty()
    new = [f"new {k}" for k in range(number)] * 2
    rows = pa.table({"x": [*new, "a", None]})
    profile.update(rows)
    assert profile.tallies["x"].counts.tolist() == [1, 0, 2 * number, 1]
    expected = dict.fromkeys(new, 2) if number <= 1000 else None
    assert profile.tallies["x"].unseen == expected
    weighted = profile.compare(rows, weights=(None, np.full(rows.num_rows, 0.5))).results["x"].current
    assert weighted.counts.tolist() == [0.5, 0.0, number, 0.5]
    assert weighted.squares.tolist() == [0.25, 0.0, number / 2, 0.25]
    assert weighted.unseen == (expected and dict.fromkeys(new, 1.0))


def test_threads_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    names = np.array([*(f"{'word ' * (k % 5)}{k}" for k in range(1500)), None], object)
    rows = rng.integers(0, names.size, 100_000) ** 2 // names.size
    whole = pa.table({f"c{k}": pa.array(names[np.roll(rows, k)], "large_string") for k in range(4)})
    reference = Profile.fit(whole.slice(0, 30_000))
    expected = reference.empty().update(whole)
    slow_counts = Counter(names[rows].tolist())
    cells = reference.cells["c0"]
    for name, number in zip(cells.names, expected.tallies["c0"].counts.tolist(), strict=False):
        assert number == slow_counts[name]
    assert expected.tallies["c0"].counts[-1] == slow_counts[None]
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "choose", lambda wanted, cells, count=count: count)
        assert reference.empty().update(whole) == expected
        parts = [whole.slice(a, b - a) for a, b in itertools.pairwise([0, 7, 33_333, 33_334, 90_001, 100_000])]
        assert sum(reference.empty().update(part) for part in parts) == expected
        assert reference.empty().update(pa.concat_tables(parts)) == expected


def test_every_library_gives_the_same():
    values = [*AWKWARD, None, "b", *AWKWARD[::3], "b"]
    kinds = ["str", "object", "string", "category", "string[pyarrow]", "large_string[pyarrow]"]
    kinds += [
        pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())),
        pd.ArrowDtype(pa.dictionary(pa.uint8(), pa.string())),
    ]
    frames = [pd.DataFrame({"x": pd.Series(values, dtype=kind)}) for kind in kinds]
    encoded = pa.array(values).dictionary_encode()
    other = pa.chunked_array([pa.array(values[::-1]).dictionary_encode(), encoded.slice(3, 4)])
    profiles = [Profile.fit(frame) for frame in frames]
    profiles += [Profile.fit(pa.table({"x": made})) for made in (pa.array(values), encoded)]
    for profile in profiles[1:]:
        assert profile == profiles[0]
    held = profiles[0].empty().update(pa.table({"x": other})).tallies["x"].counts
    assert (
        held.tolist()
        == profiles[0].empty().update(pd.DataFrame({"x": values + values[3:7]})).tallies["x"].counts.tolist()
    )


def test_encoded_words_with_gaps_and_repeats():
    """Arrow allows both in the list of words."""
    made = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3, 1], "int8"), pa.array(["a", None, "b", "a"]))
    assert counts(column([made])) == ({"a": 2, "b": 1}, 3)
    assert counts(column([made.slice(2)])) == ({"a": 1, "b": 1}, 2)
    codes, labels = arrow.coded(column([made]), [])
    assert [None if code < 0 else labels[code] for code in codes] == ["a", None, "b", None, "a", None]
    names = pa.table({"x": made})
    assert Profile.fit(names).tallies["x"].counts.tolist() == [2, 1, 0, 3]


def test_nothing_to_count():
    empty = pa.table({"x": pa.array([], "string"), "y": pa.chunked_array([], "string")})
    for tally in Profile.fit(empty).tallies.values():
        assert tally.counts.tolist() == [0, 0]
    missing = pa.table({"x": pa.array([None, None], "string")})
    assert Profile.fit(missing).tallies["x"].counts.tolist() == [0, 2]


FORK = """
import os, signal, threading
from klnumba.tables import turns

inside, done = threading.Event(), threading.Event()

def hold():
    with turns.taken():
        turns.wait()
        inside.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if not child:
    signal.alarm(20)  # a child that waits for ever ends by a signal
    with turns.taken():
        turns.wait()
    os._exit(0)
_, status = os.waitpid(child, 0)
done.set()
thread.join()
print("fine" if status == 0 else status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_wait_for_its_parent():
    program = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "fine\n", done.stderr
