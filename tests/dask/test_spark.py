"""The documentation's Spark example, where Spark and Java are."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "spark_accumulator.py"


def example():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    spec = importlib.util.spec_from_file_location("spark_accumulator", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_partition_without_spark():
    """What the function gives Spark, batch by batch."""
    import pickle

    module = example()
    import pyarrow as pa

    p, q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 30))
    batches = pa.table({"p": list(p), "q": list(q)}).to_batches(max_chunksize=7)
    (found,) = module.accumulated(batches)
    metric = pickle.loads(found.column("state")[0].as_py())
    whole = kl.KLDivergence(base=2)
    whole.update(p, q)
    assert float(metric.compute()) == float(whole.compute())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed: Spark needs it")
def test_spark(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    module = example()
    p, q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 300))
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = [(a, b) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
        metric = module.divergence_of(spark.createDataFrame(rows, "p array<double>, q array<double>").repartition(5))
    finally:
        spark.stop()
    whole = kl.KLDivergence(base=2)
    whole.update(p, q)
    assert metric.rows == 300
    assert float(metric.compute()) == float(whole.compute())
