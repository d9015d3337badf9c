"""Arrays that need no preparing are read at once: nothing about a result, or an error, tells which way it went."""

import numpy as np
import pytest

import klnumba as kl
from klnumba import arrays, reduction

FUNCTIONS = ("kl_divergence", "cross_entropy", "js_divergence", "jeffreys_divergence")
SHAPES = ((1,), (10,), (1, 7), (40, 3), (3, 4, 100), (2, 5000))
LAST = np.int64(-1)  # the last axis, but not the number -1 that most calls leave


def pair(shape, dtype, kind):
    rng = np.random.default_rng(len(shape) * shape[-1])
    p, q = (rng.gamma(0.5, size=shape) for _ in range(2))
    p.flat[0] = 0.0
    q.flat[-1] = 0.0
    with np.errstate(divide="ignore"):
        return tuple((x if kind == "prob" else np.log(x)).astype(dtype) for x in (p, q))


def both_ways(monkeypatch, name, p, q, **options):
    """The result, having been read at once, and the result of the way for all arguments."""
    served = []
    at_once = reduction._at_once
    with monkeypatch.context() as patch:
        patch.setattr(reduction, "_at_once", lambda *given: served.append(at_once(*given)) or served[-1])
        quick = getattr(kl, name)(p, q, **options)
        patch.setattr(reduction, "_at_once", lambda *given: None)
        usual = getattr(kl, name)(p, q, **options)
    assert len(served) == 1
    assert served[0] is not None
    return quick, usual


def parts(result):
    """All that tells one result from another."""
    return type(result), result.dtype, result.shape, result.strides, result.flags.owndata, result.tobytes()


@pytest.mark.part(6)
@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_values(monkeypatch, shape, dtype, kind):
    p, q = pair(shape, dtype, kind)
    for name in FUNCTIONS:
        for options in ({}, {"base": 2}, {"normalize": False}, {"threads": 3}):
            quick, usual = both_ways(monkeypatch, name, p, q, kind=kind, **options)
            assert parts(quick) == parts(usual)


@pytest.mark.parametrize("rule", ["mean", "sum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_means_and_sums(monkeypatch, dtype, rule):
    p, q = pair((40, 30), dtype, "prob")
    q[q == 0.0] = 0.5
    for base in (None, 10.0):
        quick, usual = both_ways(monkeypatch, "kl_divergence", p, q, reduction=rule, base=base)
        assert np.isfinite(usual)
        assert parts(quick) == parts(usual)
    p[3, 3] = np.nan
    quick, usual = both_ways(monkeypatch, "kl_divergence", p, q, reduction=rule)
    assert parts(quick) == parts(usual)
    assert np.isnan(quick)


def test_one_array_in_both_places(monkeypatch):
    p, _ = pair((5, 9), np.float64, "prob")
    quick, usual = both_ways(monkeypatch, "kl_divergence", p, p)
    assert parts(quick) == parts(usual)
    assert not quick.any()


@pytest.mark.parametrize("given", [
    {"axis": (-1,)}, {"axis": LAST}, {"keepdims": True}, {"where": True}, {"dtype": np.float32}, {"invalid": "raise"},
    {"align": "strict"}, {"out": np.empty(6)},
])  # fmt: skip
def test_other_options_take_the_other_way(monkeypatch, given):
    p, q = pair((6, 6), np.float64, "prob")
    q += 0.5
    total = kl.kl_divergence(p, q, reduction="sum")
    monkeypatch.setattr(reduction, "_at_once", lambda *_: pytest.fail("read at once"))
    np.testing.assert_allclose(np.sum(kl.kl_divergence(p, q, **given)), total, rtol=1e-6)


@pytest.mark.parametrize("change", [
    lambda x: x.tolist(), lambda x: x[:, ::2], lambda x: x.T, lambda x: x[:1], lambda x: x.astype(np.float16),
    lambda x: x.astype(">f8"), lambda x: np.ma.masked_equal(x, x[0, 0]), lambda x: x[:0], lambda x: x[:, :0],
])  # fmt: skip
def test_other_arrays_take_the_other_way(change):
    p, _ = pair((6, 6), np.float64, "prob")
    assert arrays.adjacent(p, p) is not None
    assert arrays.adjacent(change(p), p) is None
    assert arrays.adjacent(p, change(p)) is None
    if not isinstance(change(p), list) and change(p).dtype.char != "d":
        assert arrays.adjacent(change(p), change(p)) is None


def test_many_cells_take_the_other_way(monkeypatch):
    p, q = pair((64, 8), np.float64, "prob")
    usual = kl.kl_divergence(p, q)
    monkeypatch.setattr(arrays, "MOST", 8)
    assert reduction._at_once(reduction.Task("kl"), p, q, 1.0, None) is None
    np.testing.assert_array_equal(kl.kl_divergence(p, q), usual)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"reduction": "median"}, "reduction"), ({"invalid": "drop"}, "invalid"), ({"align": "inner"}, "align"),
    ({"threads": 0}, "threads"), ({"threads": 1.5}, "threads"), ({"kind": "odds"}, "kind"), ({"base": 1}, "base"),
    ({"temperature": 2.0}, "temperature"), ({"stream": 0}, "stream"),
])  # fmt: skip
def test_wrong_options_are_refused_all_the_same(wrong, words):
    p, q = pair((6, 6), np.float64, "prob")
    with pytest.raises(ValueError, match=words):
        kl.kl_divergence(p, q, **wrong)


def test_nothing_is_changed_or_kept(monkeypatch):
    p, q = pair((40, 3), np.float64, "prob")
    before = p.copy(), q.copy()
    result = kl.kl_divergence(p, q)
    assert p.flags.writeable
    assert q.flags.writeable
    assert result.flags.writeable
    np.testing.assert_array_equal(p, before[0])
    np.testing.assert_array_equal(q, before[1])
    assert not np.may_share_memory(result, p)
