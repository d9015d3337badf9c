"""`klnumba compare`: the table, JSON, the report, saved profiles, exit statuses, and what it refuses."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command needs typer")
pytest.importorskip("rich", reason="the command needs rich")
pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd
from rich.console import Console
from typer.testing import CliRunner, Result

from klnumba.cli import compare as command
from klnumba.cli import shift
from klnumba.cli.app import app
from klnumba.tables import Chunks, Profile, compare


def table(seed: int, shift: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(shift, 1, 900), "y": rng.normal(0, 1, 900), "w": rng.integers(1, 3, 900)})


BEFORE, AFTER = table(0, 0.0), table(1, 1.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    BEFORE.to_csv(tmp_path / "before.csv", index=False)
    AFTER.to_csv(tmp_path / "after.csv.gz", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str, columns: int = 120) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": str(columns), "FORCE_COLOR": ""})


FILES = ("before.csv", "after.csv.gz")


def test_json_is_that_of_the_function(folder: Path) -> None:
    result = invoke(*FILES, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(compare(BEFORE, AFTER).to_json())


def test_the_table_has_the_strongest_evidence_first(folder: Path) -> None:
    result = invoke(*FILES)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    body = lines[next(k for k, line in enumerate(lines) if "───" in line) + 1 :]
    assert [line.split()[0] for line in body if line.strip()] == compare(BEFORE, AFTER).by_evidence()
    assert body[0].split()[0] == "x"


def test_a_wide_terminal_shows_more(folder: Path) -> None:
    assert "PSI" not in invoke(*FILES, columns=80).stdout
    assert "PSI" in invoke(*FILES, columns=120).stdout


def test_options_reach_the_function(folder: Path) -> None:
    options = "--columns x,y --bins 0,1,2 --smoothing 0.25 --base 2 --missing drop --confidence 0.9 --weights w"
    result = invoke(*FILES, *options.split(), "--json")
    assert result.exit_code == 0, result.output
    expected = compare(
        BEFORE, AFTER, columns=["x", "y"], bins=[0.0, 1.0, 2.0], smoothing=0.25, base=2, missing="drop",
        confidence=0.9, weights="w",
    )  # fmt: skip
    assert json.loads(result.stdout) == json.loads(expected.to_json())


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [("--smoothing", "some", "smoothing: one of"), ("--confidence", "2", "confidence:"), ("--base", "1", "base:")],
)
def test_options_are_refused_before_a_file_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str, text: str
) -> None:
    monkeypatch.setattr(Chunks, "__iter__", lambda self: pytest.fail("reads"))
    result = invoke(*FILES, option, value)
    assert result.exit_code == 2
    assert result.stderr.count(text) == 1


def test_a_saved_profile_is_a_reference(folder: Path) -> None:
    first = invoke(*FILES, "--profile", "p.json", "--bins", "7", "--json")
    again = invoke("p.json", FILES[1], "--json")
    assert first.exit_code == again.exit_code == 0, again.output
    assert first.stdout == again.stdout


def test_a_profile_and_one_table_use_it(folder: Path) -> None:
    """With two tables --profile saves, also over an older one; with one it is the reference."""
    Path("p.json").write_text("older")
    saved = invoke(*FILES, "--profile", "p.json", "--json")
    kept = Path("p.json").read_bytes()
    used = invoke(FILES[1], "--profile", "p.json", "--json", "--html", "r.html")
    assert saved.exit_code == used.exit_code == 0, used.output
    assert saved.stdout == used.stdout
    assert Path("p.json").read_bytes() == kept
    assert "p.json and after.csv.gz" in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("before.csv", "after.csv", "--profile", "after.json"),  # a link to after.csv
        ("before.csv", "after.csv", "--html", "before.csv"),
        ("before.csv", "after.csv", "--html", "./after.csv"),
        ("before.csv", "after.csv", "--html", "hard.html"),
        ("p.json", "after.csv", "--html", "p.json"),
        ("after.csv", "--profile", "p.json", "--html", "p.json"),
    ],
)
def test_inputs_are_not_written_over(folder: Path, arguments: tuple[str, ...]) -> None:
    AFTER.to_csv("after.csv", index=False)
    Path("after.json").symlink_to("after.csv")
    Path("hard.html").hardlink_to("before.csv")
    Path("p.json").write_text(Profile.fit(BEFORE).to_json())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert "it would be written over" in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
@pytest.mark.parametrize("option", ["--html", "--profile"])
def test_what_is_no_file_is_not_replaced(folder: Path, option: str) -> None:
    """Such as /dev/full, which root could replace."""
    os.mkfifo("pipe.json")
    result = invoke(*FILES, option, "pipe.json")
    assert result.exit_code == 2, result.output
    assert result.stderr == f"klnumba: {option}: pipe.json is a device or a pipe, and no file\n"
    with pytest.raises(OSError, match="No regular file"):
        compare(BEFORE, AFTER).report("pipe.json")
    assert Path("pipe.json").is_fifo()
    assert not [*folder.glob(".pipe*")]


@pytest.mark.parametrize("current", ["gone.csv", "torn.csv.gz"])
def test_a_run_that_fails_leaves_outputs_as_they_were(folder: Path, current: str) -> None:
    Path("torn.csv.gz").write_bytes(Path(FILES[1]).read_bytes()[:3000])
    for name in ("p.json", "r.html"):
        Path(name).write_text("older")
    assert invoke(FILES[0], current, "--profile", "p.json", "--html", "r.html").exit_code == 2
    assert [Path(name).read_text() for name in ("p.json", "r.html")] == ["older", "older"]


@pytest.mark.parametrize("option", ["--fail-above", "--fail-p"])
def test_what_is_no_number_passes_no_limit(option: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare(BEFORE, AFTER)
    for one in found.results.values():
        one.values.update(kl=float("nan"), p_adjusted=float("nan"))
    monkeypatch.setattr(command, "_found", lambda *_, **__: found)
    assert invoke(*FILES, option, "1").exit_code == 1
    assert invoke(*FILES).exit_code == 0


def test_a_saved_reference_may_hold_the_weights(folder: Path) -> None:
    invoke(*FILES, "--profile", "p.json")
    result = invoke("p.json", FILES[1], "--weights", "w", "--json", "--fail-above", "100")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(compare(BEFORE, AFTER, weights=(None, "w")).to_json())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x", ["x"]),
        (" x , y z ", ["x", "y z"]),
        ('"a,b", c ,"d"', ["a,b", "c", "d"]),
        ('" edge "', [" edge "]),
        ('"say ""a"""', ['say "a"']),
        ('a"b', ['a"b']),
        ('""', [""]),
        ("two\nlines,\ttab", ["two\nlines", "tab"]),
        ("x,,y", None),
        ("x,", None),
        ('"x', None),
        ('"x" y', None),
    ],
)
def test_names_between_commas(text: str, names: list[str] | None) -> None:
    if names is not None:
        assert command._names(text) == names
        return
    with pytest.raises(command.InputError, match="--columns: names with commas between, in double quotes where"):
        command._names(text)


def test_a_column_with_a_comma_in_its_name(folder: Path) -> None:
    BEFORE.rename(columns={"x": "a,b "}).to_csv("odd.csv", index=False)
    result = invoke("odd.csv", "odd.csv", "--columns", '"a,b ",y', "--json")
    assert result.exit_code == 0, result.output
    assert [row["column"] for row in json.loads(result.stdout)["columns"]] == ["a,b ", "y"]


def test_columns_alone_are_read(folder: Path) -> None:
    """A column that nobody asked for is not looked at: here, its bytes are damaged."""
    pytest.importorskip("pyarrow", reason="reads the file")
    BEFORE.to_parquet("t.parquet", use_dictionary=False)
    data = bytearray(Path("t.parquet").read_bytes())
    at = data.find(BEFORE["x"].to_numpy()[:4].tobytes()) - 16
    assert at > 0
    data[at : at + 16] = b"\xff" * 16
    Path("t.parquet").write_bytes(data)
    assert "t.parquet: cannot be read" in invoke("t.parquet", "t.parquet").stderr
    result = invoke("t.parquet", FILES[1], "--columns", "y", "--weights", "w", "--json")
    assert result.exit_code == 0, result.output
    expected = compare(BEFORE, AFTER, columns=["y"], weights="w")
    assert json.loads(result.stdout) == json.loads(expected.to_json())


@pytest.mark.parametrize("width", [30, 40, 60, 68, 80, 100, 140])
def test_no_name_is_lost_and_no_figure_cut(width: int) -> None:
    name = "a_name_of_many_letters"
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({name: rng.normal(size=rows), "x": rng.normal(3e-4, 1, rows)}) for rows in (200_000, 150_000)
    ]
    found = compare(*frames)
    console = Console(file=io.StringIO(), width=width, record=True)
    command.show(found, console)
    lines = console.export_text().splitlines()
    body = lines[next(k for k, line in enumerate(lines) if "───" in line) + 1 :]
    assert "".join(line.split(" ")[1] for line in body if "x" not in line) == name
    for row in found.rows():
        shown = next(line for line in body if f" {row['kl']:.3g} " in line)
        beside = f" {row['kl_corrected']:.3g} {row['ci_low']:.3g} to {row['ci_high']:.3g} "
        assert (beside in " ".join(shown.split())) == (width >= 68)


def test_half_a_surrogate_pair_is_written_as_its_code(folder: Path) -> None:
    found = compare(*(pd.DataFrame(np.ones((rows, 1)), columns=pd.Index(["\ud800"], dtype=object)) for rows in (3, 4)))
    assert json.loads(command._bytes(found.to_json()))["columns"][0]["column"] == "\ud800"


def test_the_report_is_written(folder: Path) -> None:
    result = invoke(*FILES, "--html", "r.html")
    assert "Report: r.html" in result.stdout
    assert "before.csv and after.csv.gz" in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "status"),
    [("", 0), ("--fail-above 0.1", 1), ("--fail-above 100", 0), ("--fail-p 0.01", 1), ("--fail-p 1e-300", 0),
     ("--columns y --fail-p 0.0001 --fail-above 1", 0)],
)  # fmt: skip
def test_exit_statuses_for_pipelines(folder: Path, options: str, status: int) -> None:
    assert invoke(*FILES, *options.split()).exit_code == status


@pytest.mark.parametrize("width", [3, 9, 19, 20, 29])
def test_a_very_narrow_terminal_keeps_the_names(width: int) -> None:
    rng = np.random.default_rng(0)
    before, after = (pd.DataFrame(rng.normal(size=(rows, 2)), columns=["price", "size"]) for rows in (30_000, 20_000))
    found = compare(before, after)
    console = Console(file=io.StringIO(), width=width, record=True)
    command.show(found, console)
    text = console.export_text()
    assert all(name in text.replace("\n", "").replace(" ", "") for name in found.results)
    for one in found.results.values():
        assert (f" {one.values['kl']:.3g} " in text) == (width >= 20)
    assert "p, adj." not in text


def process(*arguments: str, before: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, after some lines of Python."""
    code = (
        f"import sys; sys.argv = ['klnumba', 'compare', *{arguments!r}]\n{before}\nfrom klnumba.cli import main; main()"
    )
    options = {"stdout": subprocess.PIPE} | options
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("option", ["--json", "--html=r.html"])
def test_a_full_disk_is_no_change(folder: Path, option: str) -> None:
    with Path("/dev/full").open("w") as full:
        result = process(*FILES, option, stdout=full)
    assert result.returncode == 2
    assert result.stderr == "klnumba: standard output: No space left on device\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a descriptor is closed between fork and exec")
@pytest.mark.part(2)
@pytest.mark.parametrize("option", ["--json", "--html=r.html"])
def test_a_closed_output_is_told(folder: Path, option: str) -> None:
    """As the shell's ``>&-`` leaves it."""
    result = process(*FILES, option, stdout=None, preexec_fn=lambda: os.close(1))
    assert (result.returncode, result.stderr) == (2, "klnumba: standard output: closed\n")


@pytest.mark.part(4)
@pytest.mark.parametrize("option", ["--json", "--bins=auto"])
@pytest.mark.parametrize("limit", [0, 1])
def test_a_reader_that_leaves_does_not_change_the_status(folder: Path, option: str, limit: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        result = process(*FILES, option, *["--fail-above", "0.1"][: 2 * limit], stdout=closed)
    assert (result.returncode, result.stderr) == (limit, "")


def test_a_defect_is_no_change(folder: Path) -> None:
    broken = "import klnumba.tables as tables; tables.compare = lambda *_, **__: 1 / 0"
    result = process(*FILES, before=broken)
    assert result.returncode == 3
    assert result.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("option", ["--fail-above", "--fail-p"])
@pytest.mark.parametrize("lost", ["gone", "empty", "words"])
def test_a_lost_column_does_not_pass(folder: Path, option: str, lost: str) -> None:
    """A pipeline that asks for a limit shall not go on without the number."""
    after = {"gone": BEFORE.drop(columns="x"), "empty": BEFORE.head(0), "words": BEFORE.assign(x="a")}[lost]
    after.to_csv("lost.csv", index=False)
    assert invoke(FILES[0], "lost.csv").exit_code == 0
    assert invoke(FILES[0], "lost.csv", option, "1").exit_code == 1
    assert invoke(FILES[0], "lost.csv", option, "1", "--columns", "y").exit_code == int(lost == "empty")


@pytest.mark.parametrize("option", ["--fail-above", "--fail-p"])
def test_a_column_without_cells_does_not_pass(folder: Path, option: str) -> None:
    """float64 has one value for hundreds of these numbers: no bins can be made of them, and nothing is compared."""
    for name, first in (("ids", 2**60), ("others", 2**61)):
        pd.DataFrame({"id": range(first, first + 5000), "y": 1.5}).to_csv(f"{name}.csv", index=False)
    shown = invoke("ids.csv", "others.csv", "--columns", "id", "--json", option, "0.1")
    (row,) = json.loads(shown.stdout)["columns"]
    assert row["kl"] is None
    assert shown.exit_code == 1
    assert invoke("ids.csv", "others.csv", option, "0.1").exit_code == 1
    assert invoke("ids.csv", "others.csv", option, "0.1", "--columns", "y").exit_code == 0


def test_a_column_that_is_new_passes(folder: Path) -> None:
    BEFORE.assign(new=1.0).to_csv("more.csv", index=False)
    assert invoke(FILES[0], "more.csv", "--fail-above", "1").exit_code == 0


def test_an_empty_column_has_no_interval(folder: Path) -> None:
    BEFORE.head(0).to_csv("none.csv", index=False)
    result = invoke(FILES[0], "none.csv", columns=80)
    assert "current has no values" in result.stdout
    assert " to " not in result.stdout.split("───")[-1]


def test_names_do_not_command_the_terminal() -> None:
    names = ["\x1b[2J", "[bold]x[/bold]", "two\nlines", "\u202eturned", "[/]", "Ünï"]
    tables = (pd.DataFrame({name: ["\x1b]0;title\x07", "b"] * rows for name in names}) for rows in (20, 30))
    console = Console(file=io.StringIO(), width=120, record=True)
    command.show(compare(*tables, columns=names), console)
    lost = compare(pd.DataFrame({"a": [1]}), pd.DataFrame({"\x1b[2J": [1]}))
    command.show(lost, console)
    text = console.export_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    for shown in (r"\x1b[2J", "[bold]x[/bold]", r"two\nlines", r"\u202eturned", "[/]", "Ünï", r"\x1b]0;title\x07"):
        assert shown in text
    assert r"\x1b[2J: is not in reference" in text


def test_rows_are_counted_where_somebody_looks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(Console):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options, force_terminal=True, width=100)

    assert invoke(*FILES, "--json").stderr == ""
    monkeypatch.setattr(command, "Console", Terminal)
    result = invoke(*FILES, "--json")
    assert "before.csv: " in result.stderr
    assert "after.csv.gz: " in result.stderr
    assert json.loads(result.stdout)["klnumba_comparison"] == 1


def damage(folder: Path) -> None:
    """Files that others have spoiled."""
    good = Profile.fit(BEFORE).to_json()
    Path("deep.json").write_text("[" * 10**5)
    Path("large.json").write_text(good.replace('"counts": [0', f'"counts": [{10**23}'))
    Path("negative.json").write_text(good.replace('"counts": [0', '"counts": [-5'))
    packed = bytearray(Path("after.csv.gz").read_bytes())
    packed[3000:3200] = bytes(byte ^ 0x5A for byte in packed[3000:3200])
    Path("damaged.csv.gz").write_bytes(packed)
    Path("no_gzip.csv.gz").write_text("hello")
    Path("deep.jsonl").write_text("[" * 10**5)
    Path("torn.jsonl").write_text('{"x": 1}\n{"x":\n')
    Path("empty.jsonl").write_bytes(b"")
    Path("longer.csv").write_text("x,y\n1,2,\n3,4,\n")
    Path("latin.csv").write_bytes("x,é\n1,2\n".encode("latin-1"))
    Path("latin.jsonl").write_bytes('{"é": 1}\n'.encode("latin-1"))
    with contextlib.suppress(ModuleNotFoundError):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "twice.parquet")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("no.csv", "after.csv.gz"), "no.csv: no such file"),
        (("no.json", "after.csv.gz"), "no.json: no such file"),
        (("folder.json", "after.csv.gz"), "folder.json: not a file"),
        (("after.csv.gz", "good.json"), "CURRENT: a table, not good.json; a saved reference stands first, or goes"),
        (("good.json", "--profile", "good.json"), "CURRENT: a table, not good.json; a saved reference stands first"),
        (("bad.json", "after.csv.gz"), "bad.json: not a profile"),
        (("torn.json", "after.csv.gz"), "torn.json: no JSON"),
        (("good.json", "after.csv.gz", "--bins", "5"), "--bins: good.json has its cells already"),
        ((*FILES, "--fail-above", "-1"), "--fail-above: a number from 0 on, not -1.0"),
        ((*FILES, "--fail-above", "nan"), "--fail-above: a number from 0 on, not nan"),
        ((*FILES, "--fail-p", "5"), "--fail-p: a number from 0 to 1, not 5.0"),
        (("words.txt", "after.csv.gz"), "unknown suffix"),
        (("torn.parquet", "after.csv.gz"), "torn.parquet: cannot be read"),
        (("empty.csv", "after.csv.gz"), "empty.csv: cannot be read"),
        ((*FILES, "--columns", "nope"), "columns: 'nope' is not in reference"),
        ((*FILES, "--weights", "nope"), "--weights: 'nope' is in neither table"),
        ((*FILES, "--bins", "1,b"), "--bins: numbers with commas"),
        ((*FILES, "--bins", "some"), "bins: one of"),
        ((*FILES, "--smoothing", "some"), "smoothing: one of"),
        ((*FILES, "--bins", "⁵"), "bins: one of"),
        ((*FILES, "--bins", "9" * 5000), "--bins: numbers with commas"),
        ((*FILES, "--html", "no/folder/r.html"), "--html: no/folder/r.html: no such folder: no/folder"),
        ((*FILES, "--html", "."), "--html: . is a folder"),
        ((*FILES, "--html", "o.json", "--profile", "o.json"), "--profile and --html: both are o.json"),
        ((*FILES, "--html", "r.txt"), "--html: a .html or .htm file, not r.txt"),
        ((*FILES, "--html", "-"), "--html: a .html or .htm file, not -"),
        ((*FILES, "--profile", "p.csv"), "--profile: a .json file, not p.csv"),
        (("good.json", "after.csv.gz", "--profile", "o.json"), "--profile: good.json is a saved reference already"),
        (("after.csv.gz", "--profile", "no.json"), "klnumba: no.json: no such file"),
        (("after.csv.gz",), "CURRENT: compare takes two tables, or --profile FILE.json and one"),
        (("deep.json", "after.csv.gz"), "deep.json: no JSON"),
        (("large.json", "after.csv.gz"), "large.json: a damaged profile"),
        (("negative.json", "after.csv.gz", "--fail-above", "1"), "negative.json: a damaged profile"),
        (("before.csv", "damaged.csv.gz"), "damaged.csv.gz: cannot be read"),
        (("damaged.csv.gz", "before.csv", "--weights", "w"), "damaged.csv.gz: cannot be read"),
        (("no_gzip.csv.gz", "before.csv"), "no_gzip.csv.gz: cannot be read"),
        (("twice.parquet", "before.csv"), "twice.parquet: cannot be read: column names must differ"),
        (("before.csv", "deep.jsonl"), "deep.jsonl: cannot be read: line 1"),
        (("before.csv", "torn.jsonl"), "torn.jsonl: cannot be read: line 2"),
        (("empty.jsonl", "before.csv"), "empty.jsonl: cannot be read: no lines"),
        (("before.csv", "longer.csv", "--columns", "x"), "longer.csv: cannot be read: line 2: 3 fields, but the head"),
        (("before.csv", "latin.csv"), "latin.csv: cannot be read"),
        (("before.csv", "latin.jsonl"), "latin.jsonl: cannot be read"),
    ],
)
def test_refusals_are_one_line(folder: Path, arguments: tuple[str, ...], text: str) -> None:
    Path("words.txt").write_text("x")
    Path("folder.json").mkdir()
    Path("bad.json").write_text("{}")
    Path("torn.json").write_text("{")
    Path("good.json").write_text(Profile.fit(BEFORE).to_json())
    Path("torn.parquet").write_bytes(b"PAR1")
    Path("empty.csv").write_bytes(b"")
    damage(folder)
    if any(name.endswith(".parquet") for name in arguments):
        pytest.importorskip("pyarrow", reason="reads the file")
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_the_line_of_the_demo_can_be_pasted(tmp_path: Path) -> None:
    """It compares the tables that are there, and ends with where the report is."""
    pytest.importorskip("sklearn", reason="the tumours are scikit-learn's")
    options: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
    asked = [sys.executable, "-m", "klnumba", "demo", "shift", "--folder", "a folder"]
    line = subprocess.run(asked, **options).stdout.splitlines()[-1]
    assert line.endswith("compare 'a folder/benign.csv' 'a folder/malignant.csv' --html 'a folder/report.html'")
    shown = subprocess.run(line, shell=True, **options).stdout
    assert shown.splitlines()[-1] == "Report: a folder/report.html"
    assert "worst radius" in shown
    assert "worst radius" in (tmp_path / "a folder" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("called", "found", "words"),
    [
        (".venv/bin/klnumba", None, [".venv/bin/klnumba"]),
        (".venv/bin/klnumba", ".venv/bin/klnumba", ["klnumba"]),
        (".venv/bin/klnumba", "/usr/bin/klnumba", [".venv/bin/klnumba"]),
        ("klnumba/__main__.py", None, [sys.executable, "-m", "klnumba"]),
    ],
)
def test_the_demo_says_how_it_was_called(
    monkeypatch: pytest.MonkeyPatch, called: str, found: str | None, words: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(shift.shutil, "which", lambda _: found)
    assert shift._command() == words


def test_the_demo_ends_with_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo`: its last line is the one that `klnumba demo shift` prints."""
    makefile = Path(__file__).parents[2] / "Makefile"
    if not makefile.is_file():
        pytest.skip("the tests are not in a copy of the source")
    lines = makefile.read_text("utf-8").partition("\ndemo:")[2].partition("\n\n")[0].splitlines()
    monkeypatch.setattr(sys, "argv", ["klnumba"])
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        shift.show((Path("klnumba-demo/benign.csv"), Path("klnumba-demo/malignant.csv")))
    assert lines[-2].endswith("klnumba demo shift --folder klnumba-demo")
    assert lines[-1].partition(" ")[2] == output.getvalue().splitlines()[-1].partition("klnumba ")[2]


def test_a_warning_is_one_plain_line(folder: Path) -> None:
    """Without the place in the code, and once a column; the result is the same."""
    for name, value in (("a", 1), ("b", "1")):
        lines = [json.dumps({"x": value, "two\nlines": value, "y": "c"}) for _ in range(5)]
        Path(f"{name}.jsonl").write_text("\n".join([*lines, json.dumps({"x": "c", "two\nlines": "c"})]) + "\n")
    text = "categories 1 (int) and '1' (str) differ in type, and are not the same"
    result = process("a.jsonl", "b.jsonl", "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["columns"][0]["kl"] > 0.1
    assert result.stderr.splitlines() == [f"klnumba: warning: column {name!r}: {text}" for name in ("x", "two\nlines")]
