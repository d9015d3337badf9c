"""The accessors ``df.kl`` and ``series.kl``."""

import subprocess
import sys

import numpy as np
import pytest

import klnumba as kl

pd = pytest.importorskip("pandas", reason="Series and DataFrames are pandas'")

import klnumba.tables  # noqa: E402
from klnumba.tables.accessors import FrameAccessor, SeriesAccessor, register  # noqa: E402

P = pd.Series({"a": 1.0, "b": 3.0})
Q = pd.Series({"b": 1.0, "a": 1.0})
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 1.0]}, index=["x", "y"])


@pytest.mark.parametrize(
    ("method", "function"),
    [
        ("divergence", "kl_divergence"),
        ("cross_entropy", "cross_entropy"),
        ("js", "js_divergence"),
        ("jeffreys", "jeffreys_divergence"),
    ],
)
def test_methods_are_the_functions(method, function):
    assert getattr(P.kl, method)(Q, base=2) == getattr(kl, function)(P, Q, base=2)
    found = getattr(FRAME.kl, method)(Q, base=2)
    pd.testing.assert_series_equal(found, getattr(kl, function)(FRAME, Q, base=2))


def test_entropy_and_statistics():
    assert P.kl.entropy(base=2) == kl.entropy(P, base=2)
    pd.testing.assert_series_equal(FRAME.kl.entropy(), kl.entropy(FRAME))
    found = P.kl.statistics(Q, stats=("kl", "js"))
    assert found.to_dict() == kl.row_statistics(P, Q, stats=("kl", "js"))
    table = FRAME.kl.statistics(Q)
    assert table.index.equals(FRAME.index)
    for name, values in kl.row_statistics(FRAME, Q).items():
        np.testing.assert_array_equal(table[name], values)


def test_matrix_and_groups():
    pd.testing.assert_frame_equal(FRAME.kl.matrix(), klnumba.tables.kl_matrix(FRAME))
    pd.testing.assert_frame_equal(
        FRAME.kl.matrix(FRAME + 1, base=2), klnumba.tables.kl_matrix(FRAME, FRAME + 1, base=2)
    )
    rows = pd.DataFrame({"g": list("aabb"), "v": list("xyxx")})
    pd.testing.assert_frame_equal(
        rows.kl.groups("g", "v", against="a"), klnumba.tables.kl_groups(rows, "g", "v", against="a")
    )


def test_comparison_of_columns():
    current = FRAME + 1.0
    pd.testing.assert_frame_equal(
        FRAME.kl.compare(current, columns=["a"]).to_frame(),
        klnumba.tables.compare(FRAME, current, columns=["a"]).to_frame(),
    )


def test_on_the_class_the_accessor_is_itself():
    assert pd.Series.kl is SeriesAccessor
    assert pd.DataFrame.kl is FrameAccessor


def test_registering_again_says_nothing():
    register()
    assert pd.DataFrame.kl is FrameAccessor


def test_a_column_of_that_name_is_still_there():
    frame = pd.DataFrame({"kl": [1.0, 2.0], "b": [1.0, 1.0]})
    assert frame["kl"].tolist() == [1.0, 2.0]
    assert isinstance(frame.kl, FrameAccessor)


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_only_an_import_of_tables_registers():
    program = (
        "import sys, klnumba as kl; print('pandas' in sys.modules)\n"
        "import pandas as pd; p = pd.Series([1.0, 2.0]); kl.kl_divergence(p, p); print(hasattr(pd.Series, 'kl'))\n"
        "import klnumba.tables; print(hasattr(pd.Series, 'kl'), hasattr(pd.DataFrame, 'kl'))\n"
        "print('scipy.spatial' in sys.modules)"
    )
    assert run(program) == ["False", "False", "True", "True", "False"]


def test_without_pandas_the_error_names_the_extra():
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "import klnumba as kl; kl.kl_divergence([1.0, 2.0], [1.0, 2.0])\n"
        "try:\n    import klnumba.tables\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    assert 'install "klnumba[tables]"' in " ".join(run(program))
