"""The command, through typer's runner and once as a real process."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl

pytest.importorskip("typer", reason="the command needs typer")
pytest.importorskip("rich", reason="the command needs rich")

from typer.testing import CliRunner, Result

from klnumba.cli import digits
from klnumba.cli.app import app
from klnumba.jsonable import as_json

RNG = np.random.default_rng(42)
P = RNG.dirichlet(np.ones(6), size=40)
Q = RNG.dirichlet(np.ones(6), size=40)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "q.npy", Q)
    np.savez(tmp_path / "both.npz", p=P, q=Q)
    np.savez(tmp_path / "one.npz", Q)
    np.savetxt(tmp_path / "p.csv", P, delimiter=",", fmt="%.17g")
    np.savetxt(tmp_path / "q.csv", Q, delimiter=",", fmt="%.17g", header="a,b,c,d,e,f", comments="")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120", "FORCE_COLOR": ""})


def summary_of(*arguments: str) -> dict[str, object]:
    result = invoke("score", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(*arguments: str) -> str:
    """The single line on stderr with which the command refuses."""
    result = invoke("score", *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.part(2)
@pytest.mark.parametrize("p", ["p.npy", "both.npz:p", "p.csv"])
@pytest.mark.parametrize("q", ["q.npy", "both.npz:q", "one.npz", "q.csv"])
def test_every_format_gives_the_same_rows(folder: Path, p: str, q: str) -> None:
    result = invoke("score", p, q, "--output", "out.npy")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load("out.npy"), kl.kl_divergence(P, Q))


def test_parquet_in_and_out(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: P[:, place] for place, name in enumerate("abcdef")}), "p.parquet")
    assert invoke("score", "p.parquet", "q.csv", "-o", "out.parquet").exit_code == 0
    np.testing.assert_array_equal(pq.read_table("out.parquet")["kl"].to_numpy(), kl.kl_divergence(P, Q))

    pq.write_table(pa.table({"a": ["x", "y"], "b": [1.0, 2.0]}), "words.parquet")
    assert "column 'a' holds string, not numbers" in refusal("words.parquet", "q.npy")
    Path("torn.parquet").write_bytes(b"PAR1")
    assert "torn.parquet" in refusal("torn.parquet", "q.npy")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csv_output_reads_back_exactly(folder: Path, dtype: type) -> None:
    np.save("p.npy", P.astype(dtype))
    np.save("q.npy", Q.astype(dtype))
    assert invoke("score", "p.npy", "q.npy", "-o", "out.csv").exit_code == 0
    head, *lines = Path("out.csv").read_text().splitlines()
    assert head == "kl"
    values = np.array(lines, dtype=dtype)
    np.testing.assert_array_equal(values, kl.kl_divergence(P.astype(dtype), Q.astype(dtype)))


def test_options_reach_the_function(folder: Path) -> None:
    np.save("logs.npy", np.log(P))
    cases = {
        ("p.npy", "q.npy", "--base", "2"): kl.kl_divergence(P, Q, base=2),
        ("p.npy", "q.npy", "--axis", "0"): kl.kl_divergence(P, Q, axis=0),
        ("p.npy", "q.npy", "--no-normalize"): kl.kl_divergence(P, Q, normalize=False),
        ("logs.npy", "q.npy", "--kind", "log_prob"): kl.kl_divergence(np.log(P), Q, kind="log_prob"),
        ("p.npy", "q.npy", "--kind", "logit", "--temperature", "3"): kl.kl_divergence(
            P, Q, kind="logit", temperature=3.0
        ),
    }
    for arguments, expected in cases.items():
        assert summary_of(*arguments, "-o", "out.npy")["rows"] == expected.size
        np.testing.assert_array_equal(np.load("out.npy"), expected)


def test_one_row_of_q_serves_all_rows_of_p(folder: Path) -> None:
    np.save("q.npy", Q[0])
    assert summary_of("p.npy", "q.npy")["rows"] == 40


def test_table_shows_the_numbers(folder: Path) -> None:
    result = invoke("score", "p.npy", "q.npy")
    values = kl.kl_divergence(P, Q)
    assert result.exit_code == 0
    assert "nats" in result.stdout
    for number in (values.mean(), values.max()):
        assert f"{number:.6g}" in result.stdout


def test_json_has_neither_nan_nor_infinity(folder: Path) -> None:
    q = Q.copy()
    q[0, 0], q[1] = 0, 0
    np.save("q.npy", q)
    summary = summary_of("p.npy", "q.npy")
    found = summary["statistics"]["kl"]
    assert (found["inf"], found["nan"]) == (1, 1)
    assert summary["first_invalid"] == "q.npy: row 1 of shape (6,) has no mass"
    assert as_json({"a": (np.nan, Path("x"))}) == {"a": [None, "x"]}


def test_refusals_are_one_line(folder: Path) -> None:
    Path("words.txt").write_text("1,2\n")
    Path("torn.npz").write_bytes(b"PK\x03\x04")
    Path("empty.npy").write_bytes(b"")
    Path("holes.csv").write_text("a,b\n1,\n")
    Path("ragged.csv").write_text("1,2\n1,2,3\n")
    np.save("objects.npy", np.array([1, "x"], dtype=object), allow_pickle=True)

    np.save("narrow.npy", Q[:, :5])
    np.save("words.npy", np.array(["x", "y"]))
    Path("renamed.npz").write_bytes(Path("p.npy").read_bytes())
    Path("renamed.npy").write_bytes(Path("one.npz").read_bytes())
    for source, words in {
        "nowhere.npy": "no such file",
        str(folder): "suffixes .csv, .npy, .npz",
        "words.txt": "unknown suffix '.txt'",
        "both.npz": "holds 2 arrays",
        "both.npz:r": "holds no array 'r'",
        "torn.npz": "torn.npz",
        "empty.npy": "EOF",
        "objects.npy": "Python objects",
        "words.npy": "<U1",
        "renamed.npz": "not in the .npz format",
        "renamed.npy": "magic string is not correct",
    }.items():
        assert words in refusal(source, "q.npy")
    assert "holes.csv: row 0: could not convert" in refusal("holes.csv", "holes.csv")
    assert "ragged.csv: row 1: 3 columns" in refusal("ragged.csv", "ragged.csv")
    shapes = refusal("p.npy", "narrow.npy")
    assert "(40, 6)" in shapes
    assert "(40, 5)" in shapes
    assert "base" in refusal("p.npy", "q.npy", "--base", "1")
    assert "suffix" in refusal("p.npy", "q.npy", "-o", "out.txt")
    assert "no such folder" in refusal("p.npy", "q.npy", "-o", "nowhere/out.npy")


def test_csv_header(folder: Path) -> None:
    Path("numbers.csv").write_text("0,1\n3,4\n")
    Path("names.csv").write_text("b,a\n3,4\n")
    Path("other.csv").write_text('\ufeff"a","b"\n3,4\n', encoding="utf-8")
    assert "--header or --no-header" in refusal("numbers.csv", "numbers.csv")
    assert summary_of("numbers.csv", "numbers.csv", "--header")["rows"] == 1
    assert summary_of("numbers.csv", "numbers.csv", "--no-header")["rows"] == 2
    assert "column 0 is 'b' in P and 'a' in Q" in refusal("names.csv", "other.csv")


def test_an_input_is_never_replaced(folder: Path) -> None:
    assert "is an input" in refusal("p.npy", "q.npy", "-o", "./q.npy")
    assert "is an input" in refusal("p.csv", "q.csv", "-o", str(folder / "p.csv"))
    np.testing.assert_array_equal(np.load("q.npy"), Q)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_what_is_no_file_is_never_replaced(folder: Path) -> None:
    os.mkfifo("pipe.npy")
    assert "pipe.npy: is a device or a pipe, and no file" in refusal("p.npy", "q.npy", "-o", "pipe.npy")
    assert Path("pipe.npy").is_fifo()


def test_info(folder: Path) -> None:
    result = invoke("info", "--json")
    assert result.exit_code == 0
    assert kl.__version__ in result.stdout
    assert json.loads(result.stdout).keys() == kl.info().keys()
    assert kl.__version__ in invoke("info").stdout


def test_table_shows_brackets_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kl, "info", lambda: {"hint": 'python -m pip install "klnumba[cuda13]"', "folder": "/x/[bold]y"})
    table = invoke("info").stdout
    assert "klnumba[cuda13]" in table
    assert "/x/[bold]y" in table


def test_as_a_process(folder: Path) -> None:
    command = [sys.executable, "-m", "klnumba"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=120, check=True)
    assert version.stdout == f"klnumba {kl.__version__}\n"
    failed = subprocess.run(
        [*command, "score", "nowhere.npy", "q.npy"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "klnumba: nowhere.npy: no such file\n"


def test_without_typer_the_hint_is_one_line() -> None:
    code = "import sys; sys.modules['typer'] = None; from klnumba.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert result.stderr == 'klnumba: the command needs typer: python -m pip install "klnumba[cli]"\n'


def test_digits(folder: Path) -> None:
    pytest.importorskip("sklearn", reason="ships the digits")
    from scipy.stats import entropy
    from sklearn.datasets import load_digits

    result = invoke("demo", "digits", "--output", "digits.npy")
    assert result.exit_code == 0, result.output
    images, labels = load_digits(return_X_y=True)
    train = digits.first_half_of_each_class(labels)
    assert 880 < train.sum() < 900
    means = np.stack([images[train & (labels == label)].sum(axis=0) + 0.5 for label in range(10)])
    expected = entropy(images[:, None], means[None], axis=-1)
    found = np.load("digits.npy")
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    right = (expected.argmin(axis=1) == labels)[~train].mean()
    assert f"{right:.1%}" in result.stdout
    own = expected[np.arange(len(labels)), labels]
    for place in (own.argmin(), own.argmax()):
        assert f"image {place}" in result.stdout


def test_draw() -> None:
    image = np.zeros(64)
    image[0], image[-1] = 16, 8
    lines = digits.draw(image).split("\n")
    assert lines[0] == "██" + " " * 14
    assert lines[-1] == " " * 14 + "▒▒"
    assert [len(line) for line in lines] == [16] * 8


def test_readme_examples_run() -> None:
    here = Path(__file__).resolve().parents[1]
    readme = here.parent / "README.md"
    result = subprocess.run(
        [sys.executable, str(here / "run_readme.py"), str(readme)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.{handler})  # whatever the shell that started all this said

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # in which the signal is handled
                pass

from {module} import main
sys.meta_path.insert(0, Interrupts())
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C comes another way there")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("klnumba_command", "klnumba"),
        ("klnumba_command", "numpy"),
        ("klnumba_command", "numba.core"),
        ("klnumba_command", "klnumba.scoring"),
        ("klnumba_command", "klnumba.cli.compare"),
        ("klnumba.cli", "klnumba.cli.compare"),
    ],
)
def test_interrupted_while_the_command_is_loaded(module, name):
    code = INTERRUPTED.format(module=module, name=name, handler="default_int_handler")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C comes another way there")
def test_an_ignored_interrupt_stays_ignored():
    code = INTERRUPTED.format(module="klnumba_command", name="numpy", handler="SIG_IGN")
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_begins_beside_the_package():
    """Within it, nothing comes before the package has been loaded."""
    code = "import sys, klnumba_command; print(*{'klnumba', 'numpy', 'numba'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("\n", "")
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[2] / "setup.cfg")
    assert settings["options.entry_points"]["console_scripts"].strip() == "klnumba = klnumba_command:main"
