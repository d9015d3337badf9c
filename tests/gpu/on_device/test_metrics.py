"""Accumulators of rows on a device: their state stays there, and is that of the CPU to the last bit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import klnumba as kl
from klnumba.gpu import borders, host
from klnumba.gpu import values as row_values
from klnumba.kernels.cuda import accumulate, machine
from klnumba.metrics import RunningStatistics, Windowed, afar, state
from tests.gpu.on_device.arrays import Interface, get, put
from tests.metrics.states import assert_same

RNG = np.random.default_rng(0)
N = 40
P, Q = RNG.gamma(1.0, size=(2, N, 6)) + 0.01
VALUES = np.ldexp(RNG.uniform(-1.0, 1.0, N), RNG.integers(-1080, 1020, N))
VALUES[:7] = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, np.finfo(float).max]
WEIGHTS = RNG.uniform(0.0, 3.0, N)
WEIGHTS[:20:3] = 0.0
WEIGHTS[[1, 5, 7]] = [2.0**-32, 2.0**32, 1.0 / 3.0]
GROUPS = RNG.integers(0, 9, N)
TEXTS = np.array(["ä", "b"])[GROUPS % 2]
FEW = {"quantile_error": 0.3}  # few intervals: in the simulator, many take long
OPTIONS = [FEW, FEW | {"thresholds": (0.1, 2.0)}, {"quantile_error": None}]


@pytest.fixture
def alone(monkeypatch):
    """Nothing waits for the device until the end of the block."""

    def forbidden(*args):
        raise AssertionError("the host waited for the device")

    monkeypatch.setattr(machine, "download", forbidden)
    monkeypatch.setattr(machine, "wait", forbidden)
    return monkeypatch


def both(options, batches, alone):
    """The states of the CPU and of the device after the same batches."""
    here, there = RunningStatistics(**options), RunningStatistics(**options)
    for values, weights, groups in batches:
        here.update(values, weights, groups)
        there.update(put(values), weights, groups)
    alone.undo()
    return here, there


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("weights", [None, WEIGHTS, 0.5])
@pytest.mark.parametrize("groups", [None, GROUPS, GROUPS > 4, TEXTS])
def test_the_state_has_the_same_bits(options, weights, groups, alone):
    here, there = both(options, [(VALUES, weights, groups)], alone)
    assert there.rows == here.rows
    assert_same(there.state_dict(), here.state_dict())
    assert_same(there.state_dict(), here.state_dict())  # once on the host, it stays


def test_many_batches_of_all_kinds(alone):
    cuts = [slice(0, 3), slice(3, 4), slice(4, 4), slice(4, 30), slice(30, N)]
    batches = [(VALUES[cut], None if k % 2 else WEIGHTS[cut], GROUPS[cut]) for k, cut in enumerate(cuts)]
    here, there = both(FEW | {"thresholds": (0.5,)}, batches, alone)
    assert there.labels == here.labels
    assert_same(there.state_dict(), here.state_dict())


def test_batches_of_the_cpu_between():
    here, there = RunningStatistics(**FEW), RunningStatistics(**FEW)
    for k, start in enumerate(range(0, N, 10)):
        values = VALUES[start : start + 10]
        here.update(values)
        there.update(values if k % 2 else put(values))
    assert_same(there.state_dict(), here.state_dict())


def test_merging_copies_and_pickles():
    whole, first, second = (RunningStatistics(**FEW) for _ in range(3))
    whole.update(VALUES)
    first.update(put(VALUES[:13]))
    second.update(put(VALUES[13:]))
    assert_same((first + second).state_dict(), whole.state_dict())
    first.merge(pickle.loads(pickle.dumps(second)))
    assert_same(first.state_dict(), whole.state_dict())
    first.reset()
    assert first.rows == 0
    assert np.isnan(first.mean())


def test_more_groups_than_fit_come_to_the_host(monkeypatch):
    monkeypatch.setattr(afar, "LARGEST", 6 * 16 * 2 * 2047)
    here, there = RunningStatistics(**FEW), RunningStatistics(**FEW)
    for cut in (slice(0, 5), slice(5, 20), slice(20, N)):
        here.update(np.abs(VALUES[cut]), groups=np.arange(N)[cut])
        there.update(put(np.abs(VALUES[cut])), groups=np.arange(N)[cut])
    assert_same(there.state_dict(), here.state_dict())


@pytest.mark.parametrize("count", [accumulate.MOST_THRESHOLDS, accumulate.MOST_THRESHOLDS + 1])
def test_more_thresholds_than_a_kernel_takes_come_to_the_host(count, monkeypatch):
    taken, rows = [], accumulate.rows
    monkeypatch.setattr(accumulate, "rows", lambda *args: taken.append(args) or rows(*args))
    options = {"quantile_error": None, "thresholds": tuple(np.linspace(-1.0, 1.0, count))}
    here, there = RunningStatistics(**options), RunningStatistics(**options)
    here.update(VALUES, WEIGHTS)
    there.update(put(VALUES), WEIGHTS)
    assert len(taken) == (count == accumulate.MOST_THRESHOLDS)
    assert_same(there.state_dict(), here.state_dict())


def test_rows_that_32_bits_do_not_number(monkeypatch):
    monkeypatch.setattr(row_values, "NARROW", N - 1)
    seen, ready = [], afar.Delta.ready
    monkeypatch.setattr(afar.Delta, "ready", lambda delta, *rows: seen.append(rows[0].index) or ready(delta, *rows))
    here, there = RunningStatistics(**FEW), RunningStatistics(**FEW)
    here.update(VALUES, WEIGHTS)
    there.update(put(VALUES), WEIGHTS)
    assert seen[0].dtype == np.int64
    assert_same(there.state_dict(), here.state_dict())


def test_sums_are_carried_in_time(monkeypatch, alone):
    monkeypatch.setattr(afar, "_MOST_PENDING", 25)
    here, there = both(FEW, [(VALUES[k : k + 10], None, GROUPS[k : k + 10]) for k in range(0, N, 10)], alone)
    assert_same(there.state_dict(), here.state_dict())


def test_the_usual_intervals(alone):
    here, there = both({}, [(VALUES, None, None)], alone)
    assert_same(there.state_dict(), here.state_dict())


def test_what_is_refused(monkeypatch):
    made = RunningStatistics(**FEW)
    made.update(put(VALUES))
    with pytest.raises(ValueError, match="groups: the rows so far have no labels"):
        made.update(put(VALUES), groups=GROUPS)
    with pytest.raises(ValueError, match="weights: row 3 weighs"):
        made.update(put(VALUES), weights=np.where(np.arange(N) == 3, -1.0, 1.0))
    monkeypatch.setattr(state, "_MOST_LOAD", 2 * N - 1)
    with pytest.raises(ValueError, match="weights: the sum of all would pass"):
        made.update(put(VALUES))
    assert made.rows == N


@pytest.mark.parametrize("kind", ["prob", "logit"])
@pytest.mark.parametrize("metric", [kl.KLDivergence, kl.CrossEntropy, kl.JensenShannonDivergence])
def test_metrics(metric, kind, alone):
    weights, groups = WEIGHTS, GROUPS
    here, there = (metric(kind=kind, agreement=True, thresholds=(0.3,), **FEW) for _ in range(2))
    p, q = put(P), put(Q)
    there.update(p, q, groups=groups, weights=weights)
    alone.undo()
    values = host.numbers({"kl": kl.kl_divergence, "cross_entropy": kl.cross_entropy, "js": kl.js_divergence}[
        metric.divergence](p, q, kind=kind))  # fmt: skip
    here.update(P, Q, groups=groups, weights=weights)
    expected = RunningStatistics(thresholds=(0.3,), **FEW)
    expected.update(values, weights, groups)
    assert_same(there.state_dict()["statistics"], expected.state_dict())
    assert_same(there.state_dict()["agreed"], here.state_dict()["agreed"])
    found = there.compute()
    assert found.labels == here.labels
    np.testing.assert_allclose(get(found.values), here.compute().values, rtol=1e-13)
    assert there.summary().rows == here.summary().rows
    assert there.summary().agreement == here.summary().agreement


def test_rows_that_are_kept(alone):
    metric = kl.KLDivergence(reduction="none", **FEW)
    p, q = P.astype(np.float32), Q.astype(np.float32)
    metric.update(put(p[:30]), put(q[:30]))
    metric.update(put(p[30:]), put(q[30:]), weights=[1, 0] * 5)
    alone.undo()
    metric.update(p[:2], q[:2])
    expected = kl.kl_divergence(p.astype(float), q.astype(float))
    np.testing.assert_allclose(
        metric.compute(), np.concatenate([expected[:30], expected[30::2], expected[:2]]), rtol=1e-6
    )


def test_results_are_arrays_of_the_device(tmp_path):
    metric = kl.KLDivergence(**FEW)
    assert get(metric(put(P), put(Q))) == get(metric.compute())
    assert get(metric.compute()).shape == ()
    assert get(metric.compute()).dtype == np.float64
    metric.save(tmp_path / "state")
    assert_same(kl.KLDivergence.load(tmp_path / "state").state_dict(), metric.state_dict())


def test_weights_and_labels_of_the_device():
    here, there = kl.KLDivergence(**FEW), kl.KLDivergence(**FEW)
    here.update(P, Q, weights=WEIGHTS, groups=GROUPS)
    there.update(put(P), put(Q), weights=put(WEIGHTS), groups=put(GROUPS))
    assert there.rows == here.rows
    assert there.labels == here.labels


@pytest.mark.parametrize("weights", [None, WEIGHTS, 0.5])
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_arrays_that_have_a_protocol_alone(weights, groups):
    here, there = RunningStatistics(**FEW), RunningStatistics(**FEW)
    here.update(VALUES, weights, groups)
    there.update(*(Interface(x) if isinstance(x, np.ndarray) else x for x in (VALUES, weights, groups)))
    assert_same(there.state_dict(), here.state_dict())
    metrics = kl.KLDivergence(**FEW), kl.KLDivergence(**FEW)
    where = np.arange(6) < 5
    metrics[0].update(P, Q, weights, where, groups)
    metrics[1].update(Interface(P), Interface(Q), weights, Interface(where), groups)
    assert metrics[0].summary().rows == metrics[1].summary().rows
    assert metrics[0].summary().mean == pytest.approx(metrics[1].summary().mean, rel=1e-14)


class Immutable(borders._Numba):
    """A library none of whose arrays is written by a kernel."""

    rooms = borders._Numba

    @staticmethod
    def empty(*args):
        raise AssertionError("an array that cannot be written was made to be written")


def test_values_of_rows_whose_library_has_immutable_arrays(monkeypatch):
    take = borders.take

    def of_that_library(x, name):
        found = take(x, name)
        return replace(found, library=Immutable, writable=False) if isinstance(x, Interface) else found

    monkeypatch.setattr(borders, "take", of_that_library)
    metric = kl.KLDivergence(**FEW)
    metric.update(Interface(P), Interface(Q))
    assert metric.summary().mean == pytest.approx(kl.kl_divergence(P, Q).mean(), rel=1e-14)


def test_values_from_elsewhere():
    here, there = (kl.KLDivergence(agreement=True, **FEW) for _ in range(2))
    here.update_values(VALUES, VALUES > 0.0, WEIGHTS)
    there.update_values(*map(Interface, (VALUES, VALUES > 0.0, WEIGHTS)))
    assert_same(there.state_dict(), here.state_dict())


def test_windows(alone):
    recent = Windowed(kl.KLDivergence(**FEW), size=2)
    for k in range(0, 30, 10):
        recent.update(put(P[k : k + 10]), put(Q[k : k + 10]))
    alone.undo()
    np.testing.assert_allclose(get(recent.compute()), kl.kl_divergence(P[10:30], Q[10:30]).mean(), rtol=1e-13)
