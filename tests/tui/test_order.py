"""Keys act in the order typed, however they come: what is in the log is what was meant."""

import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from textual import events
from textual.constants import ESCAPE_DELAY
from textual.message import Message

from annotate.tui.actions import HeldKeys, UserAction
from annotate.tui.escape import EscapeParser
from judge.store import Store
from tests.forks import together
from tests.tui.line import Line, log, opened, settled
from tests.tui.oracle import Oracle, plain, tokens
from tests.tui.studies import batch, build, drawn, labels, scribbling

pytestmark = together
UNITS = 20


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return drawn(tmp_path, items=UNITS // 2, n=UNITS)


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Another program holds the write lock, and lets go after a while."""
    with Store.open(path) as other:
        other.conn.execute("BEGIN IMMEDIATE")
        yield
        time.sleep(seconds)
        other.conn.execute("ROLLBACK")


def test_a_note_in_a_burst_is_a_note(study: Path) -> None:
    with opened(study) as line:
        line.burst(["+ni\udce9ce", "enter", "s"])  # a letter of a terminal that does not speak UTF-8
        assert line.quit() == 0
    assert log(study) == [("note", 1, "ni\ufffdce"), ("label", 1, "support")]


def test_every_command_in_one_burst_under_a_held_lock_of_two_seconds(study: Path) -> None:
    oracle = Oracle(UNITS)
    meant = ["s", "undo", "r", "skip", "note nice", "n", "flag srn", "flag", "mark", "left", "right", "jump 7", "s",
             "list", "help", "find", "words", "note r", "undo", "undo", "n", "s", "r", "n", "s", "r", "n", "s", "undo", "n", "skip"]  # fmt: skip
    keys = [key for token in meant for key in oracle.act(token)]
    assert len(keys) > 50
    with opened(study) as line:
        with locked(study, 2.0):
            line.burst(keys)
        assert line.quit() == 0
    assert plain(log(study)) == plain(oracle.log)


def test_keys_at_human_speed_while_a_judge_writes(study: Path) -> None:
    oracle = Oracle(UNITS)
    with opened(study) as line, scribbling(study):
        for _ in range(8):
            for token in ("s", "undo", "r"):
                line.type(oracle.act(token), 0.06)
        assert line.quit() == 0
    assert plain(log(study)) == oracle.log
    assert list(labels(study).values()) == ["refute"] * 8, "no correction is lost"


@seed(12)
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.integers(0, 10**6), gaps=st.lists(st.sampled_from([0, 0, 0.005, 0.03]), min_size=3, max_size=3)
)
def test_random_keys_with_random_gaps_and_kills(number: int, gaps: list[float], tmp_path: Path) -> None:
    """More of the same: `benchmarks/keys.py`."""
    dice = random.Random(number)
    path = build(tmp_path / f"{number}-{time.monotonic_ns()}.db", items=UNITS // 2)
    batch(path, n=UNITS)
    oracle = Oracle(UNITS)
    with opened(path) as line:
        for gap in gaps[:-1]:
            keys = [key for token in tokens(dice, UNITS, 6) for key in oracle.act(token)]
            line.burst(keys) if not gap else line.type(keys, gap)
        settled(path, len(oracle.log))
        assert plain(log(path)) == plain(oracle.log)
        keys = [key for token in tokens(dice, UNITS, 6) for key in oracle.act(token)]
        line.burst(keys)
        time.sleep(gaps[-1])
        line.kill()
    result = plain(log(path))
    assert result == plain(oracle.log)[: len(result)], "what a kill leaves is the beginning of what was meant"


def test_a_key_that_is_held_down_labels_and_skips_nothing_from_the_third_on(study: Path) -> None:
    with opened(study) as line:
        line.burst(["s"] * 12)
        line.until("does not repeat a label")
        time.sleep(0.5)
        line.burst(["-"] * 12)
        line.until("does not repeat this command")
        time.sleep(0.5)
        line.type(["r"], 0.1)
        assert line.quit() == 0
    assert [(kind, v) for kind, _, v in log(study)] == [
        *[("label", "support")] * 2,
        *[("skip", None)] * 2,
        ("label", "refute"),
    ]


def test_held_keys_are_a_setting(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "adjudge"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text('theme = "nord"\nheld_ms = 0\n')
    with opened(study) as line:
        line.burst(["s"] * 5)
        assert line.quit() == 0
    assert len(log(study)) == 5
    assert "held_ms = 0" in (folder / "settings.toml").read_text()


def test_each_label_knows_how_long_its_unit_was_on_the_screen(study: Path) -> None:
    with opened(study) as line:
        time.sleep(0.5)
        line.burst(["s", "r"])
        assert line.quit() == 0
    with Store.open(study) as store:
        first, second = (ms for (ms,) in store.conn.execute("SELECT shown_ms FROM events ORDER BY seq"))
    assert first >= 400 and second < first, (
        "the second key came with the first: its unit was hardly painted, if at all"
    )


def test_what_could_not_be_stored_voids_what_was_typed_behind_it(study: Path) -> None:
    """s is refused for good, because the batch is closed: r, typed for the next unit, must not land on this one."""
    with opened(study) as line:
        with Store.open(study) as store:
            store.conn.execute("UPDATE batches SET closed = '2026-01-01'")
            store.conn.execute("COMMIT") if store.conn.in_transaction else None
        line.burst(["s", "r", "-"])
        line.until("2 later keys were ignored")
        assert line.quit() == 0
    assert log(study) == []


def test_a_kill_in_a_burst_leaves_its_beginning(study: Path) -> None:
    oracle = Oracle(UNITS)
    line = Line("open", "pilot", "--as", "alice", "-d", str(study))
    thread = threading.Timer(0.05, line.kill)
    try:
        line.until("menu")
        keys = [key for token in ["s", "undo", "r", "skip", "n"] * 6 for key in oracle.act(token)]
        thread.start()
        line.burst(keys)
        thread.join()
    finally:
        line.close()
    result = plain(log(study))
    assert result == oracle.log[: len(result)]
    oracle.resume(result)
    with opened(study) as line:
        line.burst(oracle.act("s"))
        assert line.quit() == 0
    assert plain(log(study)) == plain(oracle.log)


ALONE = "\x1b"
"""Escape as most terminals send it: one byte, the same that stands before a key with Alt."""


def test_escape_leaves_the_note_and_the_keys_behind_it_label(study: Path) -> None:
    with opened(study) as line:
        line.burst(["+", "n", "i"])
        line.type([ALONE], 0)
        line.until("the text was not stored")
        line.burst(["r", "s"])
        assert line.quit() == 0
    assert log(study) == [("label", 1, "refute"), ("label", 2, "support")]


def keys_of(messages: Iterable[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def test_escape_at_the_end_of_a_read_is_escape_however_soon_the_next_key_follows() -> None:
    # The parser alone: at a pseudo-terminal of a busy machine two writes can arrive as one read, which is another case.
    parser = EscapeParser()
    assert keys_of(parser.feed("i" + ALONE)) == ["i"]
    assert keys_of(parser.feed("r")) == ["escape", "r"]


def test_escape_that_nothing_follows_is_escape_after_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("annotate.tui.escape.monotonic", lambda: now)
    parser = EscapeParser()
    assert keys_of(parser.feed(ALONE)) == keys_of(parser.tick()) == []
    now += ESCAPE_DELAY
    assert keys_of(parser.tick()) == ["escape"]
    assert keys_of(parser.feed("r")) == ["r"]


@pytest.mark.parametrize("behind", ["r", "enter", "-", "backspace"])
def test_what_could_be_escape_or_alt_does_neither_and_voids_what_is_behind_it(
    behind: str, study: Path
) -> None:
    """The note was to be left or a word of it changed: neither may store it, and r may not be its text or a label."""
    with opened(study) as line:
        line.burst(["+", "n", "i", ALONE, behind, "s", "enter"])
        line.until("arrived together")
        time.sleep(0.5)
        line.type([ALONE, "r"], 0.05)
        assert line.quit() == 0
    assert log(study) == [("label", 1, "refute")]


def test_what_is_typed_behind_a_held_key_labels_no_other_unit(study: Path) -> None:
    """r was for the fourth unit, which never came up, because the third s was dropped; nor goes the undo to the second."""
    with opened(study) as line:
        line.burst(["s", "s", "s", "r", "backspace"])
        line.until("later key")
        time.sleep(0.5)
        line.type(["n"], 0.1)
        assert line.quit() == 0
    assert log(study) == [("label", 1, "support"), ("label", 2, "support"), ("label", 3, "neutral")]


def test_a_held_key_stays_held_until_it_is_let_go() -> None:
    """Milliseconds of one key: a busy machine delivers the fourth repeat late, and later nobody holds it any more."""
    held = HeldKeys(40)
    at = [0, 33, 66, 150, 380, 640, 900]
    result = [held.is_held(UserAction(events.Key("s", "s"), at=ms / 1000)) for ms in at]
    assert result == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    "keys", [["#", "9", "9", "enter"], ["left"], ["x"]], ids=["no such unit", "none before", "no key"]
)
def test_a_label_typed_before_a_refusal_could_be_read_is_dropped(keys: list[str], study: Path) -> None:
    with opened(study) as line:
        line.type([*keys, "r"], 0.12)
        assert line.quit() == 0
    assert log(study) == []


def test_the_menu_takes_what_was_typed_however_early_enter_comes(study: Path) -> None:
    with opened(study) as line:
        line.burst(["menu", *"skip", "enter", "s"])
        assert line.quit() == 0
    assert log(study) == [("skip", 1, None), ("label", 2, "support")]
