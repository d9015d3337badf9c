import os

import pytest

from tests.gpu.on_device.arrays import SIMULATED
from tests.parts import left_out

collect_ignore = [] if SIMULATED else ["simulator.py"]
if SIMULATED:
    from tests.gpu.on_device import simulator

    simulator.install()


def pytest_collection_modifyitems(config, items):
    """The simulator computes with NumPy's numbers, which warn where a device does not; a part may be enough of it."""
    for item in items:
        if "on_device" in item.nodeid:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
    if SIMULATED and (count := int(os.environ.get("KLNUMBA_TESTS_SIMULATED", "1"))) > 1:
        others = set(left_out((item for item in items if "on_device" in item.nodeid), count))
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=list(others))
