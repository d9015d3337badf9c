"""The tests in `on_device` run where there is a device: a GPU, or the simulator in the process of `test_simulator`."""

import klnumba as kl

collect_ignore = [] if kl.cuda.is_available() else ["on_device"]
