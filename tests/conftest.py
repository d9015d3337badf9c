"""What all tests share."""

import gc

import pytest

from tests.parts import left_out

# Compilers make and leave many objects: looking for garbage after every 700 of them costs a tenth of the time.
gc.set_threshold(10_000, 10, 10)


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items):
    """Mark the cases slow that `tests.parts` leaves out, of those that are not slow by themselves."""
    quick = [item for item in items if not item.get_closest_marker("slow")]
    marked = [(marker.args[0], item) for item in quick if (marker := item.get_closest_marker("part"))]
    for count in {count for count, _ in marked}:
        for item in left_out((item for own, item in marked if own == count), count):
            item.add_marker(pytest.mark.slow)
