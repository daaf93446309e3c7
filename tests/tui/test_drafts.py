"""What was typed and not stored is there again: after Escape, after a line that broke, after a restart."""

from pathlib import Path

from textual.widgets import Input

from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.prompts.load import parse_task
from tests.tui.screens import press, screen, sitting, text_of
from tests.tui.studies import drawn, rows_of
from tests.tui.test_screens import TYPED


def box(pilot: object) -> str:
    """What stands in the box that is open."""
    return str(pilot.app.screen.query_one(Input).value)  # type: ignore[attr-defined]


async def test_a_note_survives_escape_and_a_restart(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2, annotators=["alice"])
    async with sitting(path) as pilot:
        await press(pilot, "plus")
        await press(pilot, *"half")
        await press(pilot, "escape")
        assert "the text was not stored" in text_of(pilot, "message")
        await press(pilot, "plus")
        assert box(pilot) == "half"
        # The line breaks here: nobody pressed Escape.
    assert rows_of(path, "SELECT what, text FROM drafts") == [("note", "half")]
    async with sitting(path) as pilot:
        await press(pilot, "plus")
        assert box(pilot) == "half"
        await press(pilot, "enter")
        assert screen(pilot).hand.unit.state.note == "half"
    assert rows_of(path, "SELECT * FROM drafts") == []


async def test_an_answer_in_words_survives_escape_and_a_restart(tmp_path: Path) -> None:
    path = drawn(tmp_path, parse_task(TYPED.replace("interval", "text"), "typed.v1.md"), n=1)
    async with sitting(path) as pilot:
        await press(pilot, "enter", *"half", "escape")
        assert "the text was not stored" in text_of(pilot, "message")
    async with sitting(path) as pilot:
        await press(pilot, "enter")
        assert box(pilot) == "half"
        await press(pilot, "enter")
    assert rows_of(path, "SELECT value FROM events") == [("half",)]
    assert rows_of(path, "SELECT * FROM drafts") == []


async def test_a_span_that_was_begun_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=1, annotators=["alice"])
    async with sitting(path) as pilot:
        await press(pilot, "asterisk", "space", "right")
        begun = screen(pilot).hand.evidence.picker
        anchor, cursor = begun.anchor, begun.start
    async with sitting(path) as pilot:
        await press(pilot, "asterisk")
        there = screen(pilot).hand.evidence.picker
        assert (there.anchor, there.start) == (anchor, cursor) and anchor is not None
        await press(pilot, "enter")
        assert len(screen(pilot).hand.unit.state.spans) == 1
    assert rows_of(path, "SELECT * FROM drafts") == []


def test_a_draft_is_no_label_and_stands_in_nobody_s_way(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2, annotators=["alice", "bob"])
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        with store.transaction():
            desk.keep_draft(1, "note", "while another program writes")
            assert desk.draft(1, "note") == "while another program writes"
        assert rows_of(path, "SELECT * FROM drafts") == [], "it could not be written, and nothing waited"
        desk.keep_draft(1, "note", "longer")
        assert rows_of(path, "SELECT text FROM drafts") == [("longer",)]
        with Desk.open(store, "pilot", "bob") as other:
            assert other.draft(1, "note") is None
        desk.keep_draft(1, "note", None)
    assert rows_of(path, "SELECT * FROM drafts") == [] and rows_of(path, "SELECT * FROM events") == []


def test_a_draft_is_not_stored_after_the_batch_was_closed(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2, annotators=["alice"])
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.keep_draft(1, "note", "before")
        with store.transaction() as conn:
            conn.execute("UPDATE batches SET closed = '2026-11-23T00:00:00.000Z'")
        desk.keep_draft(1, "note", "after")
        desk.keep_draft(2, "note", "after")
        assert desk.draft(1, "note") == "after", "it is there while the screen is open"
    assert rows_of(path, "SELECT position, text FROM drafts") == [(1, "before")]
