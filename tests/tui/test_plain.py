"""`annotate open --plain`: the same log as the screen writes for the same actions, read and typed line by line."""

import io
import os
import random
import re
import select
import termios
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.cells import cell_len

from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.plain import Dialogue
from annotate.tui.review import FILTERS
from judge.prompts import load_task
from judge.store import Store
from tests.tui.line import Line, log, settled
from tests.tui.oracle import Oracle, plain, tokens
from tests.tui.studies import CANARY, NASTY, batch, build, drawn, judge_all, labels, rows_of, three

UNITS = 20


def talk(path: Path, lines: Iterable[str]) -> str:
    """What is printed to somebody who types these lines and then ends the input."""
    out = io.StringIO()
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        Dialogue(desk, io.StringIO("".join(f"{line}\n" for line in lines)), out).run()
    return out.getvalue()


def lines_of(oracle: Oracle, token: str) -> list[str]:
    """Let the oracle act, and say the same in lines."""
    was_flagged = oracle._last("flag", oracle.at) is not None
    oracle.act(token)
    name, _, text = token.partition(" ")
    if name == "note":
        # The screen's box opens with the note before; a line is the whole note.
        return ["+", str(oracle.log[-1][2])]
    if name == "flag":
        return ["!"] if was_flagged else ["!", text]
    typed = {
        "undo": "<",
        "skip": "-",
        "jump": f"# {text}",
        "list": "= open",
        "help": "?",
        "find": "/ claim",
        "words": ".",
    }
    return [typed.get(name, name)]


@pytest.mark.parametrize("seed", range(6))
def test_random_sittings_leave_the_log_that_was_meant(tmp_path: Path, seed: int) -> None:
    path = drawn(tmp_path, items=UNITS // 2, n=UNITS)
    oracle, dice = Oracle(UNITS), random.Random(seed)
    # Marking evidence and stepping are of the screen alone.
    meant = [t for t in tokens(dice, UNITS, 150) if t not in ("mark", "left", "right")]
    talk(path, [line for token in meant for line in lines_of(oracle, token)])
    assert len(oracle.log) > 80
    assert plain(log(path)) == plain(oracle.log)


def test_a_unit_is_printed_with_its_texts_meanings_and_what_to_type(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2)
    output = talk(path, ["support", "r", "", ""])
    assert "Unit 1 of 2, 0 done" in output and "Unit 2 of 2, 1 done" in output
    assert "Claim number" in output and "says 42" in output
    first = load_task("stance").spec.questions[0].labels[0]
    assert first.meaning and f"s  support: {first.meaning}" in output
    # A label's name does what its key does; the first Enter at the end leaves.
    assert [value for _, _, value in log(path)] == ["support", "refute"]
    assert "Everything in this batch has been seen: 2 done, 0 skipped" in output


def test_several_questions_are_asked_one_after_the_other(tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), n=1)
    output = talk(path, ["s", "r", "g"])
    # A key of a later question answers that one, as on the screen.
    assert [value for _, _, value in log(path)] == ["support", "relevant", "good"]
    assert output.index("Is it relevant?") < output.index("quality")


def test_the_judge_comes_up_after_the_label_and_a_change_needs_a_reason(tmp_path: Path) -> None:
    path = drawn(tmp_path, judged=True, n=3, reveal=True)
    output = talk(path, ["r", "", "r", "s", "I overlooked it", "r", "s", "", "<"])
    assert output.index("Stored: refute") < output.index("The judge says support; you said refute.")
    kinds = [(kind, position, value) for kind, position, value in log(path)]
    assert kinds[:5] == [
        ("label", 1, "refute"),
        ("shown", 1, "judge"),
        ("keep", 1, "refute"),
        ("label", 2, "refute"),
        ("shown", 2, "judge"),
    ]
    assert ("revise", 2, "support") in kinds and "Nothing was changed." in output
    assert rows_of(path, "SELECT reason FROM events WHERE kind = 'revise'") == [("I overlooked it",)]
    assert "your first label for this unit is final" in output
    assert {v for (_, _, layer, _), v in labels(path).items() if layer == "first"} == {"refute"}


def test_training_gives_a_second_try_and_the_answer(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4, training=1)
    [(right,)] = rows_of(
        path,
        "SELECT l.value FROM labels AS l JOIN assignments AS a ON a.unit_id = l.unit_id "
        "WHERE l.annotator_id = 'gold' AND l.field = 'stance' AND a.role = 'training'",
    )
    wrong = next(value for value in ("support", "refute") if value != right)
    output = talk(path, [wrong, right, ""])
    assert f"not quite   stance: you said {wrong}" in output and "right the second time" in output
    assert "The training units are done." in output and "0 of 1 right" in output


def test_a_note_that_cannot_be_stored_is_kept_and_offered_again(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2)
    out = io.StringIO()
    with (
        open_study(path) as store,
        Desk.open(store, "pilot", "alice", busy_ms=1) as desk,
        Store.open(path) as other,
    ):

        def typed() -> Iterable[str]:
            yield "+\n"
            other.conn.execute("BEGIN IMMEDIATE")
            yield "see page 3\n"
            other.conn.execute("ROLLBACK")
            yield "+\n"
            yield "\n"

        lines = typed()
        source = io.StringIO()
        source.readline = lambda *_: next(lines, "")  # type: ignore[assignment,method-assign]
        Dialogue(desk, source, out).run()
    assert "not stored" in out.getvalue() and "it was not stored: see page 3" in out.getvalue()
    assert log(path) == [("note", 1, "see page 3")]


def test_bytes_that_are_no_text_are_typed_again(tmp_path: Path) -> None:
    """They ended the program, and the note was lost."""
    path = drawn(tmp_path, n=4)
    printed = talk(path, ["+", "f\udcfcr", "for", "+ f\udcfcr", "s"])
    assert log(path) == [("note", 1, "for"), ("label", 1, "support")]
    assert printed.count("not UTF-8") == 2


def test_text_behind_a_command_is_stored(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4)
    printed = talk(path, ["+ odd news", "! wrong claim", "-", "# 1"])
    assert log(path) == [("note", 1, "odd news"), ("flag", 1, "wrong claim"), ("skip", 1, None)]
    assert "What is wrong" not in printed
    # A skipped unit is not called finished.
    assert "You skipped this unit" in printed and "This unit is finished" not in printed


def test_what_a_terminal_would_obey_is_printed_as_escapes(tmp_path: Path) -> None:
    path = drawn(tmp_path, texts=NASTY, n=12)
    output = talk(path, [f"# {n}" for n in range(1, 13)] + ["= all", "!", "a\x1b[31mflag", "."])
    assert "[bold red]not bold[/]" in output and "family" in output
    assert not [c for c in output if c in "\x00\x07\x1b\x9b\x7f\x08\r\u202e"]


def test_pasted_lines_label_one_unit_and_no_more(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=UNITS // 2, n=UNITS)
    line = Line("open", "pilot", "--as", "alice", "--plain", "-d", str(path))
    try:
        line.until("> ")
        line.burst(["s\ns\ns\ns\ns\n"])
        settled(path, 1)
        line.until("> ")
        line.burst(["r\n"])
        settled(path, 2)
        line.until("> ")
        # Ctrl+C and the end of the input leave what is stored.
        line.burst(["\x03"])
        assert line.ended() == 0
        assert log(path) == [("label", 1, "support"), ("label", 2, "refute")]
    finally:
        line.close()


def test_a_terminal_gets_lines_that_end_between_words(tmp_path: Path) -> None:
    text = "Incontrovertible evidence of interdependence " * 9 + "\n    a line of code\n" + "長い文" * 40
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    with os.fdopen(theirs, "w") as out, open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        Dialogue(desk, io.StringIO(), out).run()
        raw = b""
        while select.select([ours], [], [], 0.5)[0]:
            raw += os.read(ours, 100_000)
    os.close(ours)
    lines = raw.decode().splitlines()
    assert max(map(cell_len, lines)) <= 60
    words = {"Incontrovertible", "interdependence"}
    assert sum(word in words for line in lines for word in line.split()) == 18, (
        "nine of each, and none is cut"
    )
    assert "    a line of code" in lines
    assert "".join(lines).count("長い文") == 40


def test_a_grade_that_is_its_own_key_is_printed_once(tmp_path: Path) -> None:
    path = drawn(tmp_path, "relevance_graded", n=1)
    output = talk(path, [])
    assert "\n0: the passage has nothing to do with the question\n" in output and "0  0" not in output


@pytest.mark.parametrize(("sentences", "times"), [(2, 1), (60, 2)])
def test_the_claim_is_printed_again_below_a_text_longer_than_a_screen(
    sentences: int, times: int, tmp_path: Path
) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": "It rained that day.\n" * sentences}, n=1)
    output = talk(path, [])
    assert output.count("Claim number 0") == times
    if times == 2:
        assert output.rindex("It rained") < output.rindex("Claim number 0") < output.index("s  support")


def test_nothing_hidden_is_printed(tmp_path: Path) -> None:
    """The lists, searches and every unit of a batch with checks, a judge's run and a second annotator's labels."""
    path = build(tmp_path / "s.db", items=8)
    run = judge_all(path, value="neutral")
    batch(path, n=10, annotators=["alice", "zebedee"], overlap=2, repeats=0.3, attention=0.2)
    with open_study(path) as store, Desk.open(store, "pilot", "zebedee") as desk:
        for position in range(1, desk.total + 1):
            desk.label(position, "stance", "refute")
            desk.note(position, "zebedee's note")
            desk.flag(position, "zebedee's reason")
    lists = [
        *(f"= {name}" for name in FILTERS),
        "/ zebedee",
        "/ neutral",
        "/ refute",
        "/ because",
        "/ repeat",
    ]
    total = rows_of(path, "SELECT count(*) FROM assignments WHERE annotator_id = 'alice'")[0][0]
    assert total > 12, "ten units, three repeats, and attention checks"
    output = talk(path, [*lists, *(f"# {n}" for n in range(1, total + 1)), *["s"] * total, *lists, "<", "q!"])
    result = output.replace("with a reason", "")
    hidden = ["zebedee", CANARY, run, "scripted", "because", "attention", "repeat", "sample", "gold", "judge"]
    assert not [word for word in hidden if word.lower() in result.lower()]
    # Labels that are printed are those of the question and the own ones.
    rows = [line.split(": ")[0] for line in output.splitlines() if re.match(r"\d+  \w+: Claim", line)]
    assert rows and not [row for row in rows if row.split()[1] not in ("open", "support")]
    heads = {line.partition("done")[2] for line in output.splitlines() if line.startswith("Unit ")}
    assert heads == {""}, "no unit is told from another by what it is for"
