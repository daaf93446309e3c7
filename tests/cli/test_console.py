"""What every command shares: errors as one line, exit codes, pipes, and text a terminal does not obey."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import IO

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.console import Command, json_text, visible
from judge.document.blocks import Document, Section, list_rows
from judge.document.terminal import render
from judge.errors import (
    AdjudgeError,
    BadInput,
    BelowThreshold,
    Exit,
    KeyProblem,
    MissingExtra,
    RateLimited,
    Rejected,
    ServerFault,
    StudyError,
    TaskError,
    Unreachable,
    UsageError,
    WriteFailed,
)
from tests.cli.helpers import Judge, write_rows
from tests.store.helpers import import_jsonl

# Format characters (category Cf) that are signs of a script, which no terminal obeys.
SIGNS = [
    *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440),
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
]  # fmt: skip


def obeyed(text: str) -> list[str]:
    """The characters of a text that a terminal obeys or hides, or that cannot be printed."""
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [
        repr(c) for c in text if unicodedata.category(c) in bad and c not in "\n\t" and ord(c) not in SIGNS
    ]


HOSTILE = (
    "a\x00\x07\x08\x1b[31mRED\x1b]0;title\x07\x9b2J\x7f\r\u202eevil\u2066\u200b\ufeff\u2028\U000e0041\ud800z"
)


@given(st.text() | st.just(HOSTILE))
def test_a_terminal_shows_every_text_and_obeys_none(text: str) -> None:
    assert obeyed(visible(text)) == []


@given(st.text() | st.just(HOSTILE))
def test_json_output_loses_nothing_and_obeys_nothing(text: str) -> None:
    shown = json_text({"k": text, text: [text]}, indent=2)
    assert obeyed(shown) == []
    assert json.loads(shown) == {"k": text, text: [text]}


def test_ordinary_text_is_left_alone() -> None:
    text = "é 反对 العربية 👍 tab\tline\n\\x1b"
    assert visible(text) == text
    assert json.loads(json_text(text)) == text
    assert "反对" in json_text(text)


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text({"value": float("nan")})


def listing(names: list[str], rows: list[list[object]]) -> str:
    """A listing as a command prints it."""
    table = list_rows([dict(zip(names, row, strict=True)) for row in rows], names)
    return render(Document("", sections=[Section("rows", "", [table])]))


def test_tables() -> None:
    assert listing(["name", "n"], [["a\nb\x1b", 5], [None, 12]]).splitlines() == [
        "name      n",
        "-------  --",
        "a b\\x1b   5",
        "         12",
    ]
    assert listing(["name"], []).startswith("name")
    assert listing(["files"], [[["a.csv", "b.csv"]]]).endswith("a.csv, b.csv")


# --- errors


ERRORS: list[tuple[Exception, int]] = [
    (AdjudgeError("x"), 1),
    (BadInput("x", path="f", line=3, field="g"), 1),
    (StudyError("x"), 1),
    (WriteFailed("x"), 1),
    (MissingExtra("x"), 1),
    (UsageError("x"), 2),
    (TaskError("x"), 2),
    (click.UsageError("x"), 2),
    (KeyProblem("x"), 3),
    (Unreachable("x"), 3),
    (RateLimited("x"), 3),
    (ServerFault("x"), 3),
    (Rejected("x"), 3),
    (BelowThreshold("x"), 5),
    (OSError(28, "No space left on device", "f"), 1),
    (KeyboardInterrupt(), 130),
    (click.Abort(), 130),
    (RuntimeError("x"), 1),
]


def failing(error: BaseException) -> Command:
    @click.group(cls=Command, name="judge")
    def main() -> None:
        """A command that fails."""

    @main.command()
    def fail() -> None:
        """Fails."""
        raise error

    return main


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=[type(e).__name__ for e, _ in ERRORS])
def test_every_error_has_its_exit_code_and_one_line(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        failing(error).main(["fail"])
    err = capsys.readouterr().err
    assert ended.value.code == code
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line and not line.startswith(("Usage", "Try"))]
    assert len(lines) == 1


def test_exit_codes_are_the_documented_ones() -> None:
    assert {e.name: int(e) for e in Exit} == {
        "DONE": 0, "ERROR": 1, "USAGE": 2, "PROVIDER": 3, "INCOMPLETE": 4, "BELOW": 5, "INTERRUPTED": 130,
    }  # fmt: skip


def test_a_traceback_is_printed_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JUDGE_DEBUG", "1")
    with pytest.raises(SystemExit) as ended:
        failing(Unreachable("no way")).main(["fail"])
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1] == "judge: no way"
    assert ended.value.code == 3, "and the exit code stays"


def test_an_error_is_one_line_that_a_terminal_does_not_obey(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        failing(BadInput(f"one\ntwo {HOSTILE}", path="f", line=1)).main(["fail"])
    err = capsys.readouterr().err
    assert err.startswith("judge: f:1: one two a\\x00\\x07")
    assert err.count("\n") == 1
    assert obeyed(err) == []


def test_bad_input_says_where() -> None:
    assert str(BadInput("why", path="f.jsonl", line=3, field="claim")) == "f.jsonl:3: field 'claim': why"
    assert str(BadInput("why", path="f.jsonl")) == "f.jsonl: why"
    assert str(BadInput("why")) == "why"


# --- a real process


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with more items than a pipe holds."""
    folder = tmp_path_factory.mktemp("many")
    rows = [{"id": str(n), "claim": f"Claim number {n}: " + "x" * 60} for n in range(3000)]
    import_jsonl(folder / "study.db", write_rows(folder / "rows.jsonl", rows))
    return folder


def printed_into(stdout: int | IO[str], words: str, folder: Path) -> tuple[int, str]:
    """The exit code and stderr of a command whose stdout goes elsewhere."""
    line = [sys.executable, "-m", "judge", *words.split()]
    done = subprocess.run(line, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words", ["items show -n 3000 --json", "items show", "runs list", "--help", "items --help"]
)
def test_a_reader_that_has_enough_is_no_error(many: Path, words: str) -> None:
    # The reader is gone before the first byte: small outputs meet it at the last flush, large ones earlier.
    read, write = os.pipe()
    os.close(read)
    assert printed_into(write, words, many) == (0, "")
    os.close(write)


def test_head_gets_its_line(many: Path) -> None:
    line = f"{sys.executable} -m judge items show -n 3000 --json | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=many, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


@pytest.mark.parametrize("words", ["items show", "items show -n 3000 --json"])
def test_output_that_cannot_be_written_is_an_error(many: Path, words: str) -> None:
    if not Path("/dev/full").exists():
        pytest.fail("this test needs /dev/full")
    with Path("/dev/full").open("w") as full:
        assert printed_into(full, words, many) == (1, "judge: No space left on device\n")


def test_ctrl_c_prints_the_line_to_resume(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    import_jsonl(study, write_rows(tmp_path / "pairs.jsonl"))
    words = ["run", "stance", "-m", "scripted/hash", "--option", "delay=2", "--concurrency", "1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "judge", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # From the moment that the run is in the study; at most the one call on its way is waited for.
    with closing(sqlite3.connect(study)) as conn, conn:
        while running.poll() is None and conn.execute("SELECT count(*) FROM runs").fetchone() == (0,):
            time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == Exit.INTERRUPTED
    to_go = re.search(r"(\d) units to go; to resume: (.+)", err)
    assert to_go, err
    assert to_go[2] == f"judge {' '.join(words)}"
    assert "Traceback" not in err
    assert f"{4 - int(to_go[1])} of 4 units have a label" in out


def test_ctrl_c_between_the_run_and_its_first_call(tmp_path: Path) -> None:
    study = tmp_path / "study.db"
    import_jsonl(study, write_rows(tmp_path / "pairs.jsonl"))
    killed = (
        "import os, signal\nfrom judge.store import runs\nfrom judge.cli import main\nreal = runs.start_run\n"
        "def start_run(*args):\n    done = real(*args)\n    os.kill(os.getpid(), signal.SIGINT)\n    return done\n"
        "runs.start_run = start_run\nmain(prog_name='judge')\n"
    )
    words = ["run", "stance", "-m", "scripted/hash"]
    done = subprocess.run(
        [sys.executable, "-c", killed, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == Exit.INTERRUPTED, done.stderr
    assert " units to go; to resume: judge run stance" in done.stderr


def test_the_version(judge: Judge) -> None:
    assert judge("--version").out.startswith("adjudge ")


def test_no_command_shows_the_help(judge: Judge) -> None:
    done = judge(code=2)
    assert "Data:" in done.out + done.err
    assert "No such command 'demmo'" in judge("demmo", code=2).err


@pytest.mark.parametrize(
    ("program", "begun", "found"), [("judge", "judge sc", "score"), ("annotate", "annotate ba", "batches")]
)
def test_the_shell_completes_a_command(program: str, begun: str, found: str) -> None:
    asked = {f"_{program.upper()}_COMPLETE": "bash_complete", "COMP_WORDS": begun, "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", f"from {program}.cli import main; main(prog_name='{program}')"],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"plain,{found}" in done.stdout.splitlines(), done.stderr
