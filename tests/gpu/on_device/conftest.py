import pytest

from tests.gpu.on_device.arrays import SIMULATED

collect_ignore = [] if SIMULATED else ["simulator.py"]
if SIMULATED:
    from tests.gpu.on_device import simulator

    simulator.install()


def pytest_collection_modifyitems(items):
    """The simulator computes with NumPy's numbers, which warn where a device does not."""
    for item in items:
        if "on_device" in item.nodeid:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
