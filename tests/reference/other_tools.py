"""What other tools report for some pairs of columns, recorded with their versions.

``python -m tests.reference.other_tools TOOL``, in an environment that has the tool, runs it on every pair and writes
its values into ``other_tools.json``, beside those of the other tools. ``table`` in the place of a tool writes the
table of the documentation. Some pairs are made up, others are columns of tables that ship with scikit-learn,
statsmodels and popmon; of these packages only the files are read, so that ``pip install --no-deps`` is enough.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "other_tools.json"

Pair = tuple[np.ndarray, np.ndarray]


def made_up() -> dict[str, Pair]:
    """Pairs of columns, reference first; numbers, or words as objects. NumPy promises this stream for ever."""
    draw = np.random.RandomState(0)
    words = np.array(["a", "b", "c", "d"], dtype=object)
    return {
        "same law": (draw.normal(size=800), draw.normal(size=700)),
        "shifted": (draw.normal(size=900), draw.normal(0.4, 1.2, size=600)),
        "skewed": (draw.exponential(size=1000), draw.exponential(1.5, size=1000)),
        "few numbers": (draw.randint(0, 8, 500).astype(float), draw.randint(2, 10, 400).astype(float)),
        "words": (
            words[draw.choice(4, 600, p=[0.4, 0.3, 0.2, 0.1])],
            words[draw.choice(4, 500, p=[0.3, 0.3, 0.2, 0.2])],
        ),
        "a new word": (words[draw.randint(0, 3, 400)], words[draw.randint(0, 4, 400)]),
    }


def shipped(package: str, *path: str) -> Path:
    """A file of an installed package, which is not imported. LookupError where there is none."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise LookupError(f"the table ships with {package}")
    return Path(found.origin).parent.joinpath(*path)


def mean_radius() -> Pair:
    """The mean radius of the nuclei of benign tumours, and of malignant ones."""
    rows = np.loadtxt(shipped("sklearn", "datasets", "data", "breast_cancer.csv"), delimiter=",", skiprows=1)
    radius, benign = rows[:, 0], rows[:, -1] == 1
    return radius[benign], radius[~benign]


def statsmodels_column(name: str, column: str, by: str) -> Pair:
    """A column of those rows whose `by` is 0, and of the others."""
    import pandas as pd

    data = pd.read_csv(shipped("statsmodels", "datasets", name, f"{name}.csv"))
    first = (data[by] == 0).to_numpy()
    values = data[column].to_numpy(float)
    return values[first], values[~first]


def flights(column: str) -> Pair:
    """A column of the flights of both halves of 2015, without its missing values."""
    import pandas as pd

    names = ("flight_delays_reference", "flight_delays")
    files = (shipped("popmon", "test_data", f"{name}.csv.gz") for name in names)
    before, after = (pd.read_csv(file, usecols=[column])[column].dropna() for file in files)
    kind = float if pd.api.types.is_numeric_dtype(before) else object
    return before.to_numpy(kind), after.to_numpy(kind)


REAL: dict[str, Callable[[], Pair]] = {
    "tumours: mean radius": mean_radius,
    "affairs: age": lambda: statsmodels_column("fair", "age", "affairs"),
    "health insurance: visits": lambda: statsmodels_column("randhie", "mdvis", "lncoins"),
    "flights: AIR_TIME": lambda: flights("AIR_TIME"),
    "flights: AIRLINE": lambda: flights("AIRLINE"),
}


def pairs() -> dict[str, Pair]:
    """All pairs. LookupError where a package that ships one is missing."""
    return made_up() | {name: read() for name, read in REAL.items()}


def evidently(reference: Any, current: Any, numeric: bool) -> float:
    """The score of its Kullback-Leibler test."""
    import pandas as pd
    from evidently.legacy.calculations.stattests import kl_div_stat_test
    from evidently.legacy.core import ColumnType

    kind = ColumnType.Numerical if numeric else ColumnType.Categorical
    return float(kl_div_stat_test(pd.Series(reference), pd.Series(current), kind, None).drift_score)


def psi10(reference: Any, current: Any, numeric: bool) -> float:
    """feature-engine's population stability index over ten equally frequent bins."""
    import pandas as pd
    from feature_engine.selection import DropHighPSIFeatures

    n, m = len(reference), len(current)
    frame = pd.DataFrame({
        "x": [*reference, *current], "spare": 0.0, "part": [1] * n + [2] * m,
    })  # fmt: skip
    made = DropHighPSIFeatures(
        split_col="part", cut_off=1, variables=["x"], bins=10, strategy="equal_frequency", missing_values="ignore",
        threshold=100.0,
    )  # fmt: skip
    return float(made.fit(frame).psi_values_["x"])


def great_expectations(reference: Any, current: Any, numeric: bool) -> float | None:
    """The observed value of its Kullback-Leibler expectation; None where that is infinite."""
    import great_expectations as gx
    import pandas as pd

    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("p").add_dataframe_asset("a")
    batches = asset.add_batch_definition_whole_dataframe("b")
    learn = gx.expectations.ExpectColumnKLDivergenceToBeLessThan(
        column="x", partition_object=None, threshold=None, bucketize_data=numeric
    )
    first = batches.get_batch({"dataframe": pd.DataFrame({"x": reference})}).validate(learn, result_format="COMPLETE")
    partition = first.result["details"]["expected_partition"]
    check = gx.expectations.ExpectColumnKLDivergenceToBeLessThan(
        column="x", partition_object=partition, threshold=1.0, bucketize_data=numeric
    )
    found = batches.get_batch({"dataframe": pd.DataFrame({"x": current})}).validate(check)
    value = found.result["observed_value"]
    return None if value is None else float(value)


def tfdv(reference: Any, current: Any, numeric: bool) -> float:
    """The drift that its compiled comparator measures, of numbers in bits, of words the largest difference of shares.

    The library is called without the rest of the package, which asks for a TensorFlow of its own age; the histograms of
    ten bins of equal width that its statistics would hold are made here.
    """
    from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

    schema = schema_pb2.Schema()
    feature = schema.feature.add(name="x", type=schema_pb2.FLOAT if numeric else schema_pb2.BYTES)
    comparator = feature.drift_comparator
    (comparator.jensen_shannon_divergence if numeric else comparator.infinity_norm).threshold = 1e-12
    now, before = (_tfdv_statistics(side, numeric) for side in (current, reference))
    text = schema.SerializeToString()
    found = anomalies_pb2.Anomalies.FromString(
        _tfdv_library().ValidateFeatureStatistics(now, text, b"", before, b"", b"", b"", b"", False)
    )
    return float(found.drift_skew_info[0].drift_measurements[0].value)


def _tfdv_library() -> Any:
    package = importlib.util.find_spec("tensorflow_data_validation")
    assert package is not None
    assert package.origin is not None
    name = "tensorflow_data_validation_extension"
    spec = importlib.util.spec_from_file_location(name, Path(package.origin).parent / "pywrap" / f"{name}.so")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.validation


def _tfdv_statistics(values: Any, numeric: bool) -> bytes:
    from tensorflow_metadata.proto.v0 import statistics_pb2

    found = statistics_pb2.DatasetFeatureStatistics(num_examples=len(values))
    kind = statistics_pb2.FeatureNameStatistics
    feature = found.features.add(type=kind.FLOAT if numeric else kind.STRING)
    feature.path.step.append("x")
    common = (feature.num_stats if numeric else feature.string_stats).common_stats
    common.num_non_missing, common.min_num_values, common.max_num_values = len(values), 1, 1
    if numeric:
        counts, edges = np.histogram(values)
        histogram = feature.num_stats.histograms.add()
        for low, high, count in zip(edges, edges[1:], counts, strict=False):
            histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
    else:
        for word in sorted(set(values)):
            feature.string_stats.rank_histogram.buckets.add(label=word, sample_count=list(values).count(word))
    return found.SerializeToString()


def scipy(reference: Any, current: Any, numeric: bool) -> float:
    """``scipy.stats.entropy`` of counts that NumPy made."""
    from scipy import stats

    if numeric:
        counts, edges = np.histogram(reference)
        return float(stats.entropy(counts, np.histogram(current, edges)[0]))
    names = sorted({*reference, *current})
    return float(stats.entropy(*([list(side).count(name) for name in names] for side in (reference, current))))


PACKAGES = {
    "evidently": "evidently",
    "psi10": "feature-engine",
    "great_expectations": "great_expectations",
    "tfdv": "tensorflow-data-validation",
    "scipy": "scipy",
}


def row(name: str, sides: Pair) -> dict[str, Any]:
    """Every recorded value of a pair, beside ours."""
    import pandas as pd

    from klnumba.tables import compare

    ours = compare(*(pd.DataFrame({"x": side}) for side in sides)).to_frame().loc[0]
    found: dict[str, Any] = {"columns": name, "kl": float(ours["kl"]), "kl_reverse": float(ours["kl_reverse"])}
    for tool in json.loads(FILE.read_text()).values():
        value = tool["values"][name]
        found[f"{tool['package']} {tool['version']}"] = "none reported" if value is None else value
    return found


def table() -> None:
    """Write ``docs/_data/other_tools.json``."""
    lines = ",\n".join(json.dumps(row(name, sides)) for name, sides in pairs().items())
    DATA.write_text(f'{{"rows": [\n{lines}\n]}}\n', encoding="utf-8")


def main(tool: str) -> None:
    """Run a tool on every pair."""
    run = globals()[tool]
    values: dict[str, Any] = {}
    for name, (reference, current) in pairs().items():
        value = run(reference, current, reference.dtype != object)
        values[name] = "inf" if value is not None and np.isinf(value) else value
    found = json.loads(FILE.read_text()) if FILE.is_file() else {}
    found[tool] = {"package": PACKAGES[tool], "version": version(PACKAGES[tool]), "values": values}
    FILE.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")


if __name__ == "__main__":
    table() if sys.argv[1] == "table" else main(sys.argv[1])
