"""KL of the rows of a Spark DataFrame: one accumulator a partition, merged by the driver."""

import pickle

import numpy as np
import pyarrow as pa

import klnumba as kl


def accumulated(batches):
    """One pickled metric for all batches of a partition; columns p and q hold arrays of numbers."""
    metric = kl.KLDivergence(base=2, threads=1)
    for batch in batches:
        p, q = (np.stack(batch.column(name).to_numpy(zero_copy_only=False)) for name in ("p", "q"))
        metric.update(p, q)
    yield pa.RecordBatch.from_pydict({"state": [pickle.dumps(metric)]})


def divergence_of(frame):
    """The metric over all rows of a DataFrame."""
    states = frame.mapInArrow(accumulated, "state binary").collect()
    return sum(pickle.loads(row.state) for row in states)
