"""What all tests share."""

import gc

# Compilers make and leave many objects: looking for garbage after every 700 of them costs a tenth of the time.
gc.set_threshold(10_000, 10, 10)
