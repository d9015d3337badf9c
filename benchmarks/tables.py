"""Comparing tables against NumPy, pandas and Evidently: ``python -m benchmarks.tables``.

Writes ``benchmarks/results/tables.json``, from which the documentation takes its table. Evidently asks for a pandas of
its own age: ``--evidently PYTHON`` names the interpreter of an environment that has it; without one, what was measured
with it before stays in the table, with its date.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import machine, timing
from benchmarks.__main__ import RESULTS
from benchmarks.fresh import printed

FILE = RESULTS / "tables.json"
ROUNDS = 3
Record = dict[str, Any]

EVIDENTLY = """
import sys, time, warnings
import numpy as np
import pandas as pd
from evidently.legacy.metric_preset import DataDriftPreset
from evidently.legacy.report import Report
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
names = [f"c{k}" for k in range(int(sys.argv[2]))]
before, after = (pd.DataFrame(rng.standard_normal((int(sys.argv[1]), len(names))), columns=names) for _ in range(2))
start = time.perf_counter()
report = Report(metrics=[DataDriftPreset()])
report.run(reference_data=before, current_data=after)
report.as_dict()
print(time.perf_counter() - start)
"""

PEAK = """
from benchmarks import memory, tables
from klnumba.tables import compare
before, after = (tables.{kind}({rows}, {columns}, seed) for seed in (0, 1))
compare(before.head(1000), after.head(1000))
memory.give_back()
start = memory.resident(reset=True)
compare(before, after)
print((memory.peak() - start) / 2**20)
"""


def numbers(rows: int, columns: int, seed: int) -> Any:
    """A frame of normal numbers; the columns lie one after the other, as readers of files leave them."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"c{k}": rng.standard_normal(rows) for k in range(columns)})


def words(rows: int, columns: int) -> Any:
    """A frame of words in Arrow's layout, from 5 to 50 different ones a column; ten columns that take turns."""
    import pandas as pd
    import pyarrow as pa

    rng = np.random.default_rng(0)
    made = []
    for k in range(10):
        names = np.array([f"category-{j}" for j in range(5 * (k + 1))])
        text = pa.array(names[rng.integers(0, names.size, rows)])
        made.append(pd.Series(text, dtype=pd.ArrowDtype(text.type)))
    return pd.DataFrame({f"c{k}": made[k % 10] for k in range(columns)})


def medians(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds a call, measured in turns."""
    estimates = [timing.seconds(call) for call in calls.values()]
    samples = timing.interleaved([*calls.values()], estimates, [ROUNDS] * len(calls))
    return {name: float(np.median(one)) for name, one in zip(calls, samples, strict=True)}


def record(case: str, ours: float, peer: str, theirs: float, aim: float) -> Record:
    """A line of the table."""
    found = {
        "case": case, "klnumba (s)": float(f"{ours:.3g}"), "peer": peer, "peer (s)": float(f"{theirs:.3g}"),
        "klnumba / peer": round(ours / theirs, 3), "aim, at most": round(aim, 3),
    }  # fmt: skip
    print(found, flush=True)
    return found


def histograms(rows: int, columns: int) -> Record:
    """Both sides of a table against a loop of `numpy.histogram` with the same edges."""
    from klnumba.tables import Profile, compare

    before, after = numbers(rows, columns, 0), numbers(rows, columns, 1)
    edges = {name: one.edges for name, one in Profile.fit(before).cells.items()}

    def loop() -> None:
        for frame in (before, after):
            for name, cuts in edges.items():
                np.histogram(frame[name].to_numpy(), cuts)

    times = medians({"ours": lambda: compare(before, after, bins=edges), "numpy": loop})
    fitted = medians({"ours": lambda: compare(before, after)})
    print(f"with the bins fitted first: {fitted['ours']:.3g} s")
    name = f"{rows:,} x {columns} float64, both sides, given edges"
    return record(name, times["ours"], "np.histogram, column by column", times["numpy"], 1 / 3)


def wide(rows: int, columns: int, times: int) -> Record:
    """A wide table against a tall one with as many cells."""
    from klnumba.tables import Profile

    found = {}
    for title, shape in {"wide": (rows, columns), "tall": (rows * times, columns // times)}.items():
        before, after = numbers(*shape, 0), numbers(*shape, 1)
        profile = Profile.fit(before)
        found[title] = medians({"ours": lambda profile=profile, after=after: profile.compare(after)})["ours"]
        del before, after
    name = f"{rows:,} x {columns:,} against {rows * times:,} x {columns // times}, frozen bins, one side"
    return record(name, found["wide"], "klnumba, the tall table", found["tall"], 3)


def identifiers(rows: int, columns: int, seed: int) -> Any:
    """A frame of words in Arrow's layout, no two of which in a column are the same."""
    import pandas as pd
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    made = (pa.array(np.char.add("identifier-", rng.permutation(10 * rows)[:rows].astype(str))) for _ in range(columns))
    return pd.DataFrame({f"c{k}": pd.Series(text, dtype=pd.ArrowDtype(text.type)) for k, text in enumerate(made)})


def many_words(rows: int, columns: int, different: int) -> Any:
    """A frame of words in Arrow's layout, of so many different ones a column; ten columns that take turns."""
    import pandas as pd
    import pyarrow as pa

    rng = np.random.default_rng(0)
    names = np.array([f"name-{k}" for k in range(different)])
    made = [pa.array(names[rng.integers(0, different, rows)]) for _ in range(10)]
    held = [pd.Series(text, dtype=pd.ArrowDtype(text.type)) for text in made]
    return pd.DataFrame({f"c{k}": held[k % 10] for k in range(columns)})


def categories(rows: int, columns: int, kind: str, different: int | None = None) -> Record:
    """Words, or pandas's categoricals, against `value_counts`."""
    from klnumba.tables import Profile

    frame = words(rows, columns) if different is None else many_words(rows, columns, different)
    if kind == "categoricals":
        frame = frame.astype("category")
    empty = Profile.fit(frame.head(1000)).empty()

    def loop() -> None:
        for name in frame:
            frame[name].value_counts()

    times = medians({"ours": lambda: empty.empty().update(frame), "pandas": loop})
    of = "" if different is None else f" of {different:,} different ones"
    name = f"{rows:,} x {columns} {kind}{of}, counted"
    return record(name, times["ours"], "value_counts, column by column", times["pandas"], 1 / 5)


def evidently(rows: int, columns: int, python: str | None) -> Record:
    """A whole comparison against Evidently's drift preset, or what is stored of one."""
    from klnumba.tables import compare

    name = f"{rows:,} x {columns} float64, compare()"
    if python is None:
        return stored(name)
    before, after = numbers(rows, columns, 0), numbers(rows, columns, 1)
    ours = medians({"ours": lambda: compare(before, after)})["ours"]
    command = [python, "-c", EVIDENTLY, str(rows), str(columns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = float(done.stdout.split()[-1])
    return record(name, ours, "Evidently 0.7, drift preset", theirs, 1 / 20)


def stored(case: str) -> Record:
    """A line of the table that was measured before, with its date."""
    facts = json.loads(FILE.read_text()) if FILE.is_file() else {"rows": []}
    for row in facts["rows"]:
        if row["case"] == case:
            found: Record = {"measured": facts["measured"].partition(" ")[0]} | row
            print(found, flush=True)
            return found
    return {"case": case, "peer": "Evidently: not measured"}


def peak(rows: int, columns: int, kind: str) -> Record:
    """The memory of a comparison beyond its inputs, in MiB; in a fresh process."""
    extra = printed(PEAK.format(rows=rows, columns=columns, kind="numbers" if kind == "float64" else "identifiers"))
    found = {"case": f"{rows:,} x {columns} {kind}, memory beyond the inputs", "peer": f"{extra:.0f} MiB"}
    found["aim, at most"] = "200 MiB"
    print(found, flush=True)
    return found


def measure(scale: int, python: str | None) -> list[Record]:
    """All cases; `scale` divides the rows."""
    million = 1_000_000 // scale
    return [
        histograms(million, 100),
        evidently(100_000 // scale, 50, python),
        wide(100_000 // scale, 2000, 10),
        categories(million, 100, "words"),
        categories(million, 100, "categoricals"),
        categories(million, 100, "words", 10_000),
        categories(million, 100, "words", 1_000_000),
        peak(million, 100, "float64"),
        peak(million // 5, 24, "different names"),
    ]


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    made.add_argument(
        "--scale", type=int, default=1, help="divide the rows by this, for a quick look; nothing is written"
    )
    made.add_argument("--evidently", metavar="PYTHON", help="an interpreter that has Evidently")
    options = made.parse_args()
    records = measure(options.scale, options.evidently)
    if options.scale == 1:
        FILE.write_text(json.dumps({"rows": records, "measured": machine.where()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
