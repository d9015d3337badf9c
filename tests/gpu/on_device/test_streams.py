"""Streams of arrays: what a call waits for and what waits for it, by stand-ins that note it."""

import contextlib
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import klnumba as kl
from klnumba.gpu import borders
from klnumba.kernels.cuda import machine
from klnumba.metrics import RunningStatistics
from tests.gpu.on_device.arrays import SIMULATED, Interface, get, put
from tests.gpu.on_device.test_borders import AUTOGRAD, Tensor

pytestmark = pytest.mark.skipif(not SIMULATED, reason="streams of a device are its own")

P, Q = np.random.default_rng(0).gamma(1.0, size=(2, 3, 7)) + 0.01
MINE = 77


@pytest.fixture
def done(monkeypatch):
    """What was started and what waits, in order; kernels that follow one another on a stream are noted once."""
    found, start = [], machine.start

    def started(kernel, grid, threads, device, stream, args):
        if found[-1:] != [("start", stream)]:
            found.append(("start", stream))
        start(kernel, grid, threads, device, stream, args)

    monkeypatch.setattr(machine, "start", started)
    monkeypatch.setattr(machine, "follow", lambda on, before: found.append((on, "after", before)))
    monkeypatch.setattr(machine, "wait", lambda on: found.append(("host", "after", on)))
    return found


def between(own, other):
    """What is done on a stream of which arrays come about on another."""
    return [(own, "after", other), ("start", own), (other, "after", own)]


def named(array, stream):
    """An array whose interface names a stream."""
    found = Interface(array, read_only=False)
    found.__cuda_array_interface__["stream"] = stream
    return found


def of_numba(array, stream):
    found = put(array)
    found.stream = types.SimpleNamespace(handle=types.SimpleNamespace(value=stream))
    return found


CALLS = {
    "one launch": lambda p: kl.kl_divergence(p, put(Q)),
    "the second side": lambda p: kl.kl_divergence(put(Q), p),
    "a mask": lambda p: kl.kl_divergence(p, put(Q), where=put(Q > 0.1)),
    "a mean": lambda p: kl.kl_divergence(p, put(Q), reduction="mean"),
    "a result": lambda p: kl.kl_divergence(put(Q), put(Q), axis=None, keepdims=True, out=p),
    "statistics": lambda p: kl.row_statistics(p, put(Q)),
    "cells": lambda p: kl.rel_entr(p, put(Q)),
    "a sum of cells": lambda p: kl.functional.kl_div(p, put(Q), reduction="sum"),
    "parameters": lambda p: kl.kl_divergence(kl.distributions.Exponential(p), kl.distributions.Exponential(2.0)),
}


@pytest.mark.parametrize("make", [named, of_numba])
@pytest.mark.parametrize("call", CALLS)
def test_an_array_that_names_its_stream(call, make, done):
    CALLS[call](make(P[:1, :1] if call == "a result" else P, MINE))
    assert done == between(0, MINE)


def test_accumulators(done):
    made = RunningStatistics(quantile_error=None)
    made.update(named(P, MINE))
    assert done[:3] == between(0, MINE)
    assert made.rows == P.size


def test_numbers_for_the_host(done):
    made = RunningStatistics(quantile_error=None)
    made.update(put(P), weights=named(Q, MINE))
    assert ("host", "after", MINE) in done


@pytest.mark.parametrize("stream", [None, 1])
def test_the_default_stream_has_nothing_to_wait_for(stream, done):
    kl.kl_divergence(named(P, stream), named(Q, stream))
    assert done == [("start", 0)]


def test_a_stream_that_is_chosen_waits_for_those_that_arrays_name(done):
    kl.kl_divergence(named(P, MINE), put(Q), stream=9)
    assert done == between(9, MINE)
    done.clear()
    kl.kl_divergence(named(P, 9), put(Q), stream=9)
    assert done == [("start", 9)]


def test_arrays_that_have_dlpack_alone(done, monkeypatch):
    asked = []

    class Capsule:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return (2, 0)

    def view(x, stream_ptr):
        asked.append(stream_ptr)
        steps = tuple(step // x.array.itemsize for step in x.array.strides)
        return types.SimpleNamespace(
            dtype=x.array.dtype, shape=x.array.shape, strides=steps, ptr=x.array.ctypes.data, device_id=0, readonly=True
        )

    utils = types.SimpleNamespace(StridedMemoryView=types.SimpleNamespace(from_dlpack=view))
    monkeypatch.setitem(sys.modules, "cuda.core.utils", utils)
    found = kl.kl_divergence(Capsule(P), Capsule(Q.T.copy().T))
    np.testing.assert_allclose(get(found), kl.kl_divergence(P, Q), rtol=1e-14)
    assert asked == [1, 1]  # the default stream, which these arrays are made to wait for
    assert done == [("start", 0)]
    done.clear()
    kl.kl_divergence(Capsule(P), Capsule(Q), stream=9)
    assert done == between(9, 0)
    assert kl.functional.kl_divergence(Capsule(P), Capsule(Q)).shape == ()
    with pytest.raises(RuntimeError, match="Integral inputs"):
        kl.functional.kl_div(Capsule(P), Capsule(np.ones(7, int)), reduction="sum")
    with pytest.raises(ValueError, match="out: read-only"):
        kl.kl_divergence(Capsule(P), Capsule(Q), out=Capsule(np.zeros(3)))


class Library(borders._Numba):
    """A library that has a current stream."""

    @staticmethod
    def stream(device):
        return 5


class Other(borders._Numba):
    @staticmethod
    def stream(device):
        return 6


class Waiting(borders._Numba):
    """A library whose streams nobody knows."""

    waits = True


def of(monkeypatch, **libraries):
    """Let the arguments of these names belong to libraries."""
    take = borders.take

    def taken(x, name):
        found = take(x, name)
        return replace(found, library=libraries.get(name, found.library))

    monkeypatch.setattr(borders, "take", taken)


def test_two_libraries(done, monkeypatch):
    of(monkeypatch, p=Library, q=Other, where=Library, out=Other)
    for settings in ({}, {"where": put(P > 0.1)}, {"out": put(np.zeros(3))}, {"reduction": "mean"}):
        done.clear()
        kl.kl_divergence(put(P), put(Q), **settings)
        assert done == between(5, 6)
    done.clear()
    kl.kl_divergence(put(P), put(Q), stream=9)
    assert done == [("start", 9)]


@pytest.mark.parametrize("side", ["p", "q"])
def test_memory_of_a_library_without_streams_is_not_left_in_use(side, done, monkeypatch):
    of(monkeypatch, **{side: Waiting, "pq".replace(side, ""): Library})
    kl.kl_divergence(put(P), put(Q))
    assert done[-1] == ("host", "after", 5 if side == "q" else 0)


@pytest.mark.parametrize("stream", [None, 0, 9])
def test_tensors_are_kept_for_another_stream(stream, done, monkeypatch):
    kept = []
    made = {"empty": lambda shape, dtype, device: Tensor(np.empty(shape, dtype), dtype), "uint8": "uint8"}
    cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=0),
        ExternalStream=lambda stream, device: stream, stream=contextlib.nullcontext,
    )  # fmt: skip
    torch = types.SimpleNamespace(
        Tensor=Tensor, autograd=AUTOGRAD, float64="float64", strided="strided", cuda=cuda, **made
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Tensor, "record_stream", lambda self, on: kept.append((self.array is P, on)), raising=False)
    kl.kl_divergence(Tensor(P, "float64"), Tensor(Q, "float64"), stream=stream)
    assert kept == ([(True, 9), (False, 9)] if stream == 9 else [])
    assert done == [("start", stream or 0)]
