import sys

import pytest

# A simulated thread is a thread of Python; one that waits for the others would hold them up for 5 ms each time.
sys.setswitchinterval(1e-6)


def pytest_collection_modifyitems(items):
    """The simulator computes with NumPy's numbers, which warn where a device does not."""
    for item in items:
        if "on_device" in item.nodeid:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
