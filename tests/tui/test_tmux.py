"""The real program in a real terminal: send-keys, kill -9, a second terminal, a terminal that is too small."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annotate.store import open_study
from judge.prompts.load import parse_task
from tests.real import require
from tests.tui.studies import batch, build, labels, rows_of
from tests.tui.terminal import Terminal

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _tmux() -> None:
    require("tmux")


@pytest.fixture
def terminals() -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(width: int = 80, height: int = 24) -> Terminal:
        made.append(Terminal(width, height))
        return made[-1]

    yield make
    for terminal in made:
        terminal.close()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = build(tmp_path / "s.db", items=10)
    batch(path, n=20)
    return path


def test_kill_in_the_middle_loses_and_doubles_nothing(
    study: Path, terminals: Callable[..., Terminal]
) -> None:
    terminal = terminals()
    terminal.run("open", "pilot", "--as", "alice", "-d", str(study))
    terminal.until("1/20")
    for n in range(1, 8):
        terminal.type("srn"[n % 3])
        terminal.until(f" {n} done")
    subprocess.run(["kill", "-9", str(terminal.child())], check=True)
    terminal.until("Killed")
    assert len(labels(study)) == 7
    terminal = terminals()  # what was killed left its terminal raw
    terminal.run("open", "pilot", "--as", "alice", "-d", str(study))
    terminal.until("8/20")
    terminal.type("BSpace")
    terminal.until("7/20")
    assert len(labels(study)) == 6
    # Keys typed ahead of the screen, as over a slow line, and a kill among them.
    terminal.type("s", "r", "n", "s", "r", "n")
    terminal.wait(lambda: len(labels(study)) >= 9, "nine labels")
    subprocess.run(["kill", "-9", str(terminal.child())], check=True)
    with open_study(study) as store:
        events = store.conn.execute("SELECT count(*) FROM events WHERE kind = 'label'").fetchone()[0]
        undone = store.conn.execute("SELECT count(*) FROM events WHERE kind = 'undo'").fetchone()[0]
        done = store.conn.execute("SELECT count(*) FROM assignments WHERE status = 'done'").fetchone()[0]
    assert events - undone == done == len(labels(study))


def test_a_second_terminal_of_the_same_annotator_is_told(
    study: Path, terminals: Callable[..., Terminal]
) -> None:
    first, second = terminals(), terminals()
    first.run("open", "pilot", "--as", "alice", "-d", str(study))
    first.until("1/20")
    second.run("open", "pilot", "--as", "alice", "-d", str(study))
    told = second.until("annotate:").replace("\n", "")
    assert "another terminal or browser tab is labelling as alice" in told
    first.type("s")
    first.until(" 1 done")
    first.type("C-q")
    first.until("everything is stored")
    second.run("open", "pilot", "--as", "alice", "-d", str(study))
    second.until("2/20")


def test_40x10_says_what_to_do(study: Path, terminals: Callable[..., Terminal]) -> None:
    terminal = terminals(40, 10)
    terminal.run("open", "pilot", "--as", "alice", "-d", str(study))
    terminal.until("This terminal is 40x10")
    terminal.type("s", "C-q")
    terminal.wait(lambda: "stored" in terminal.screen().replace("\n", ""), "stored")
    assert labels(study) == {}


WORDS = """---
title: What is said
unit: passage
inputs: [passage]
questions:
  - {field: points, level: text, many: true}
---
Judge.
<!-- unit -->
{{ passage }}
{{ answer_cue }}
"""


def hung_up(terminal: Terminal) -> None:
    """The line breaks: the terminal goes, and the kernel sends SIGHUP to what runs in it."""
    program = terminal.child()
    terminal.close()
    end = time.monotonic() + 30
    while _runs(program):
        assert time.monotonic() < end, "the program outlives its terminal"
        time.sleep(0.1)


def _runs(program: int) -> bool:
    return subprocess.run(["kill", "-0", str(program)], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("what", "opens", "typed"),
    [("note", "+", "half a note"), ("words", "Enter", "half an answer")],
)
def test_a_hang_up_keeps_the_text_that_was_being_typed(
    tmp_path: Path, terminals: Callable[..., Terminal], what: str, opens: str, typed: str
) -> None:
    study = build(tmp_path / "s.db", items=2)
    batch(study, parse_task(WORDS, "words.v1.md") if what == "words" else "stance", n=2)
    first = terminals()
    first.run("open", "pilot", "--as", "alice", "-d", str(study))
    first.until("1/2")
    first.type(opens)
    first.type("-l", typed)
    first.until(typed)
    hung_up(first)
    second = terminals()
    second.run("open", "pilot", "--as", "alice", "-d", str(study))
    second.until("1/2")
    assert labels(study) == {}
    second.type(opens)
    second.until(typed)
    second.type("Enter")
    stored = {
        "note": "SELECT note FROM assignments WHERE note IS NOT NULL",
        "words": "SELECT answers ->> 'points' FROM assignments WHERE answers <> '{}'",
    }
    second.wait(lambda: [typed in text for (text,) in rows_of(study, stored[what])] == [True], "stored")
    assert rows_of(study, "SELECT * FROM drafts") == []


def test_a_hang_up_keeps_evidence_that_was_begun(study: Path, terminals: Callable[..., Terminal]) -> None:
    first = terminals()
    first.run("open", "pilot", "--as", "alice", "-d", str(study))
    first.until("1/20")
    first.type("*", "Space", "Right", "Right")
    first.wait(lambda: len(rows_of(study, "SELECT text FROM drafts")) == 1, "a draft of the evidence")
    begun = rows_of(study, "SELECT text FROM drafts")
    hung_up(first)
    assert rows_of(study, "SELECT text FROM drafts") == begun
    second = terminals()
    second.run("open", "pilot", "--as", "alice", "-d", str(study))
    second.until("1/20")
    second.type("*", "Enter")
    marked = "SELECT spans FROM assignments WHERE spans <> '[]'"
    second.wait(lambda: len(rows_of(study, marked)) == 1, "the evidence stored")
    assert rows_of(study, "SELECT * FROM drafts") == []
