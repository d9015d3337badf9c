"""That the simulated threads take turns in such a way that a kernel without a barrier is found out."""

import numpy as np
import pytest
from numba import cuda

from tests.gpu.on_device.arrays import SIMULATED, get, put

pytestmark = pytest.mark.skipif(not SIMULATED, reason="the threads of a device take turns in their own way")
BLOCKS, THREADS = 5, 8


def neighbours(before, after):
    """A kernel that takes what the thread to the left has, with a barrier before and after reading it, or without."""

    @cuda.jit
    def kernel(out):
        me, block = cuda.threadIdx.x, cuda.blockIdx.x
        out[block, me] = me
        if before:
            cuda.syncthreads()
        left = out[block, me - 1]
        if after:
            cuda.syncthreads()
        out[block, me] = left

    return kernel


@cuda.jit
def votes(out):
    me, block = cuda.threadIdx.x, cuda.blockIdx.x
    if me == 7:
        return  # a barrier does not wait for those that are done
    out[block, me] = (
        100 * cuda.syncthreads_count(me > block)
        + 10 * cuda.syncthreads_or(me == 9)
        + (cuda.syncthreads_and(me < block + 7))
    )


@cuda.jit
def failing(out):
    cuda.syncthreads()
    out[cuda.threadIdx.x + 1_000] = 1


def run(kernel):
    out = put(np.full((BLOCKS, THREADS), -1.0))
    kernel[BLOCKS, THREADS](out)
    return get(out)


def test_barriers_are_kept():
    np.testing.assert_array_equal(run(neighbours(True, True)), np.tile(np.roll(np.arange(THREADS), 1), (BLOCKS, 1)))


@pytest.mark.parametrize("barriers", [(False, True), (True, False)])
def test_a_barrier_that_lacks_is_found(barriers):
    assert (run(neighbours(*barriers)) != run(neighbours(True, True))).any(axis=1).all()


def test_votes():
    expected = [[100 * (6 - block) + 1] * 7 + [-1] for block in range(BLOCKS)]
    np.testing.assert_array_equal(run(votes), expected)


def test_an_error_in_a_kernel_is_raised():
    with pytest.raises(IndexError):
        failing[1, 4](put(np.zeros(4)))
    test_barriers_are_kept()
