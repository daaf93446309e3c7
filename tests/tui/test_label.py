"""The labelling screen: what keys do, seen in the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotate.store import open_study
from annotate.tui.dialogs import Ask, Finished, Help
from annotate.tui.review import Review, Rows
from tests.tui.screens import press, screen, sitting, text_of, type_in
from tests.tui.studies import CANARY, NASTY, batch, build, judge_all, labels, three


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = build(tmp_path / "s.db")
    batch(path, n=6)
    return path


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with open_study(path) as store:
        return store.conn.execute(query).fetchall()


async def test_one_key_labels_commits_and_goes_on(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s")
        assert list(labels(study).values()) == ["support"], "committed before the app ends"
        assert screen(pilot).unit.position == 2
        await press(pilot, "r", "n")
        assert screen(pilot).unit.position == 4
        assert "3 done" in text_of(pilot, "top")
    assert sorted(labels(study).values()) == ["neutral", "refute", "support"]


async def test_resume_at_the_first_open_unit(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "s")
    async with sitting(study) as pilot:
        assert screen(pilot).unit.position == 3


async def test_undo_goes_back_without_limit_over_a_restart(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "r", "minus")
    async with sitting(study) as pilot:
        await press(pilot, "backspace")
        assert screen(pilot).unit.position == 3
        await press(pilot, "backspace", "ctrl+z")
        assert labels(study) == {}
        await press(pilot, "backspace")
        assert text_of(pilot, "message") == "nothing left to undo"
    assert rows(study, "SELECT kind, count(*) FROM events GROUP BY 1") == [
        ("label", 2),
        ("skip", 1),
        ("undo", 3),
    ]


async def test_three_questions_are_three_keys(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db")
    batch(path, three(), n=3)
    async with sitting(path) as pilot:
        await press(pilot, "r", "s")
        assert screen(pilot).unit.position == 1 and screen(pilot).active == "quality"
        await press(pilot, "f")  # changes the second answer, in any order
        await press(pilot, "g")
        assert screen(pilot).unit.position == 2
        await press(pilot, "backspace")
        assert screen(pilot).unit.position == 1 and screen(pilot).active == "quality"
    got = {field: value for (_, field, _, _), value in labels(path).items()}
    assert got == {"relevance": "relevant", "stance": "refute"}


async def test_skip_flag_note_jump(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "minus")
        assert screen(pilot).unit.position == 2
        await press(pilot, "exclamation_mark")
        assert isinstance(pilot.app.screen, Ask)
        await type_in(pilot, "garbled")
        await press(pilot, "plus")
        await type_in(pilot, "see p. 3")
        assert "garbled" in text_of(pilot, "note") and "see p. 3" in text_of(pilot, "note")
        await press(pilot, "number_sign")
        await type_in(pilot, "5")
        assert screen(pilot).unit.position == 5
        await press(pilot, "number_sign")
        await type_in(pilot, "77")
        assert text_of(pilot, "message") == "there is no unit 77"
        await press(pilot, "left", "left", "left", "exclamation_mark")
    found = rows(study, "SELECT position, status, flag, note FROM assignments WHERE position < 3")
    assert found == [(1, "skipped", None, None), (2, "open", None, "see p. 3")], "! again takes the flag away"


async def test_a_done_unit_can_be_changed_and_stays_in_view(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "left", "r")
        assert screen(pilot).unit.position == 1
        assert text_of(pilot, "message") == "changed to refute; → goes on"
        await press(pilot, "enter")
        assert screen(pilot).unit.position == 2
    assert list(labels(study).values()) == ["refute"]


async def test_the_end_and_the_skipped_ones(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "minus", "s", "s", "s", "s", "s")
        assert isinstance(pilot.app.screen, Finished)
        await press(pilot, "s", "q")
        assert isinstance(pilot.app.screen, Finished), "letters are labels: typed ahead, they do nothing here"
        await press(pilot, "minus")
        assert screen(pilot).unit.position == 1
        await press(pilot, "n")
        assert isinstance(pilot.app.screen, Finished)
        await press(pilot, "enter")
    assert len(labels(study)) == 6
    async with sitting(study) as pilot:
        assert isinstance(pilot.app.screen, Finished), "opening a finished batch says so"


async def test_evidence_by_keyboard(study: Path) -> None:
    async with sitting(study) as pilot:
        raw = screen(pilot).unit.inputs["passage"]
        await press(pilot, "asterisk", "enter")
        first = raw.index(".") + 1
        await press(pilot, "down", "right", "space", "right", "enter")
        spans = screen(pilot).unit.state.spans
        assert spans[0] == ("passage", 0, first)
        assert raw[spans[1][1] : spans[1][2]] == "is so."
        await press(pilot, "s")
        assert labels(study) == {}, "letters do not label while marking"
        await press(pilot, "escape", "s")
    assert len(labels(study)) == 1
    assert rows(study, "SELECT json_array_length(spans) FROM assignments WHERE position = 1") == [(2,)]


async def test_training_shows_the_answer_and_locks_it(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db")
    batch(path, n=4, training=2)
    async with sitting(path) as pilot:
        await press(pilot, "s")
        assert screen(pilot).unit.position == 1 and screen(pilot).phase == "key"
        said = text_of(pilot, "said")
        assert "right" in said or "not quite" in said
        await press(pilot, "r")
        assert rows(path, "SELECT count(*) FROM events WHERE kind = 'label'") == [(1,)]
        await press(pilot, "enter")
        assert screen(pilot).unit.position == 2
        await press(pilot, "backspace")
        assert text_of(pilot, "message") == "nothing left to undo"
    assert labels(path) == {}


async def test_the_judge_is_shown_after_the_commit_only(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db")
    judge_all(path)
    batch(path, n=4, reveal=True)
    async with sitting(path) as pilot:
        assert CANARY not in pilot.app.export_screenshot()
        await press(pilot, "s")
        assert "as you" in text_of(pilot, "said") and CANARY in text_of(pilot, "said")
        await press(pilot, "enter")
        await press(pilot, "r", "r")
        assert screen(pilot).unit.position == 3, "the same label again keeps it"
        await press(pilot, "r", "s")
        assert isinstance(pilot.app.screen, Ask)
        await press(pilot, "escape")
        assert screen(pilot).unit.position == 3
        await press(pilot, "s")
        await type_in(pilot, "overlooked")
        assert screen(pilot).unit.position == 4
        await press(pilot, "left")
        assert screen(pilot).phase == "judge", "what was shown stays shown"
    layers = sorted((layer, value) for (_, _, layer, _), value in labels(path).items())
    assert layers == [("first", "refute"), ("first", "refute"), ("first", "support"),
                      ("revised", "refute"), ("revised", "support"), ("revised", "support")]  # fmt: skip
    assert rows(path, "SELECT rationale FROM labels WHERE layer = 'revised' AND rationale IS NOT NULL") == [
        ("overlooked",)
    ]


async def test_the_list_filters_searches_and_goes_there(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "minus", "equals_sign")
        assert isinstance(pilot.app.screen, Review)
        await press(pilot, "tab", "tab")
        assert pilot.app.screen.query_one(Rows).count == 1
        await press(pilot, "tab", "enter")
        assert screen(pilot).unit.position == 2
        words = screen(pilot).unit.inputs["passage"]
        await press(pilot, "slash")
        await type_in(pilot, words[:20])
        assert pilot.app.screen.query_one(Rows).count == 1
        await press(pilot, "enter")
        assert screen(pilot).unit.position == 2


async def test_help_has_guidelines_labels_and_keys(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, Help)
        assert "does not by itself mean" in pilot.app.screen._text.replace("\n", " ")
        await press(pilot, "escape", "s")
    assert len(labels(study)) == 1


async def test_clicking_a_label(study: Path) -> None:
    async with sitting(study) as pilot:
        await pilot.click("#labels", offset=(2, 1))
        await pilot.pause()
    assert list(labels(study).values()) == ["support"]


async def test_highlights_of_answers_and_the_key_that_hides_them(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db")
    batch(path, "mirage_support", n=4)
    async with sitting(path) as pilot:
        assert screen(pilot).text is not None and screen(pilot).text.matches > 0
        assert "do not by themselves mean relevance" in text_of(pilot, "message")
        await press(pilot, "percent_sign")
        assert screen(pilot).text.matches == 0


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_passages_that_are_not_friendly(tmp_path: Path, size: tuple[int, int]) -> None:
    path = build(tmp_path / "s.db", items=len(NASTY), each=1, texts=NASTY)
    batch(path, n=len(NASTY))
    async with sitting(path, size=size) as pilot:
        for _ in NASTY:
            raw = screen(pilot).unit.inputs["passage"]
            body = text_of(pilot, "body")
            assert not any(ord(c) < 32 and c != "\n" for c in body)
            assert "\u202e" not in body and "\x1b" not in body
            if "[bold red]" in raw:
                assert "[bold red]not bold[/]" in body
            if "\x1b" in raw:
                assert "\\x1b[31m" in body and "\\x00" in body
            await press(pilot, "asterisk", "right", "down", "enter", "escape", "space", "pageup", "s")
    assert len(labels(path)) == len(NASTY)
    with open_study(path) as store:
        for unit, spans in store.conn.execute("SELECT unit_id, spans FROM assignments"):
            assert '"passage"' in spans, unit


async def test_a_terminal_that_is_too_small_says_so_and_labels_nothing(study: Path) -> None:
    async with sitting(study, size=(40, 10)) as pilot:
        await press(pilot, "s", "backspace", "minus")
        assert "40x10" in text_of(pilot, "small") and screen(pilot).query_one("#small").display
        assert labels(study) == {}
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await press(pilot, "s")
    assert len(labels(study)) == 1
    assert rows(study, "SELECT count(*) FROM events") == [(1,)]


async def test_a_study_that_is_busy_is_told_and_nothing_pretended(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotate.blind.BUSY_MS", 50)
    monkeypatch.setattr("annotate.tui.label.PATIENCE", 0.1)
    async with sitting(study) as pilot:
        with open_study(study) as other:
            other.conn.execute("BEGIN IMMEDIATE")
            await press(pilot, "s")
            assert "not stored" in text_of(pilot, "message")
            assert screen(pilot).unit.position == 1
            other.conn.execute("ROLLBACK")
        await press(pilot, "s")
        assert screen(pilot).unit.position == 2
    assert len(labels(study)) == 1


async def test_a_batch_closed_meanwhile(study: Path) -> None:
    async with sitting(study) as pilot:
        with open_study(study) as other:
            other.conn.execute("UPDATE batches SET closed = '2026-01-01'")
        await press(pilot, "s")
        assert "the batch is closed" in text_of(pilot, "message")
    assert labels(study) == {}


async def test_adjudication_shows_letters_and_stores_the_decision(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db")
    batch(path, n=4, annotators=["alice", "bob", "carol"])
    for person, keys in (("alice", "ssss"), ("bob", "srsr"), ("carol", "nsss")):
        async with sitting(path, person) as pilot:
            await press(pilot, *keys)
    with open_study(path) as store:
        query = "SELECT count(*) FROM (SELECT unit FROM batch_labels GROUP BY unit HAVING count(DISTINCT label) > 1)"
        differ = store.conn.execute(query).fetchone()[0]
    async with sitting(path, "lead", adjudicate=True) as pilot:
        assert screen(pilot).desk.total == differ
        said = text_of(pilot, "said")
        assert all(f" {letter} " in said for letter in "ABC")
        assert not any(name in pilot.app.export_screenshot() for name in ("alice", "bob", "carol"))
        await press(pilot, "plus")
        await type_in(pilot, "the date decides")
        await press(pilot, "n")
    got = rows(path, "SELECT annotator_id, value, rationale FROM labels WHERE annotator_id = 'adjudicated'")
    assert got == [("adjudicated", "neutral", "the date decides")]
    assert rows(path, "SELECT person FROM sessions WHERE annotator_id = 'adjudicated'") == [("lead",)]


async def test_own_keys(study: Path) -> None:
    async with sitting(study, keymap={"undo": "u"}) as pilot:
        await press(pilot, "s", "u")
        assert labels(study) == {}
        assert " u undo" in " " + text_of(pilot, "keys")


async def test_idle_time_is_told_apart(study: Path) -> None:
    async with sitting(study) as pilot:
        clock = screen(pilot).clock
        clock._last -= 100
        await press(pilot, "s")
    ((active, idle),) = rows(study, "SELECT active_ms, idle_ms FROM assignments WHERE position = 1")
    assert 60_000 <= int(str(active)) < 63_000 and 40_000 <= int(str(idle)) < 43_000
