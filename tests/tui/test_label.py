"""The labelling screen: what keys do, seen in the study."""

from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input, Static

from annotate.leading.adjudication import fill_queue
from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.dialogs import Ask, Finished, Help
from annotate.tui.review import Review, ReviewRows
from annotate.tui.rows import Pane, share
from judge.prompts.load import parse_task
from tests.tui.screens import press, rows, screen, sitting, text_of, type_in
from tests.tui.studies import CANARY, NASTY, batch, build, drawn, event_kinds, labels, rows_of, three


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return drawn(tmp_path, n=6)


async def test_one_key_labels_commits_and_goes_on(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s")
        assert list(labels(study).values()) == ["support"], "committed before the app ends"
        assert screen(pilot).hand.unit.position == 2
        await press(pilot, "r", "n")
        assert screen(pilot).hand.unit.position == 4
        assert "3 done" in text_of(pilot, "top")
    assert sorted(labels(study).values()) == ["neutral", "refute", "support"]


async def test_resume_at_the_first_open_unit(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "s")
    async with sitting(study) as pilot:
        assert screen(pilot).hand.unit.position == 3


async def test_undo_goes_back_without_limit_over_a_restart(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "r", "minus")
    async with sitting(study) as pilot:
        await press(pilot, "backspace")
        assert screen(pilot).hand.unit.position == 3
        await press(pilot, "backspace", "ctrl+z")
        assert labels(study) == {}
        await press(pilot, "backspace")
        assert text_of(pilot, "message") == "nothing left to undo"
    assert event_kinds(study) == ["label", "label", "skip", "undo", "undo", "undo"]


async def test_three_questions_are_three_keys(tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), n=3)
    async with sitting(path) as pilot:
        await press(pilot, "r", "s")
        assert screen(pilot).hand.unit.position == 1 and screen(pilot).hand.active == "quality"
        await press(pilot, "f")  # changes the second answer, in any order
        await press(pilot, "g")
        assert screen(pilot).hand.unit.position == 2
        await press(pilot, "backspace")
        assert screen(pilot).hand.unit.position == 1 and screen(pilot).hand.active == "quality"
    got = {field: value for (_, field, _, _), value in labels(path).items()}
    assert got == {"relevance": "relevant", "stance": "refute"}


async def test_skip_flag_note_jump(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "minus")
        assert screen(pilot).hand.unit.position == 2
        await press(pilot, "exclamation_mark")
        assert isinstance(pilot.app.screen, Ask)
        await type_in(pilot, "garbled")
        await press(pilot, "plus")
        await type_in(pilot, "see p. 3")
        assert "garbled" in text_of(pilot, "note") and "see p. 3" in text_of(pilot, "note")
        await press(pilot, "number_sign")
        await type_in(pilot, "5")
        assert screen(pilot).hand.unit.position == 5
        for none in ("77", "9" * 20, "9" * 5000):  # SQLite reads 19 digits, Python 4300
            await press(pilot, "number_sign")
            pilot.app.post_message(events.Paste(none))
            await press(pilot, "enter")
            assert text_of(pilot, "message").startswith("there is no unit " + none[:8])
        await press(pilot, "left", "left", "left", "exclamation_mark")
    result = rows_of(study, "SELECT position, status, flag, note FROM assignments WHERE position < 3")
    assert result == [(1, "skipped", None, None), (2, "open", None, "see p. 3")], (
        "! again takes the flag away"
    )


async def test_a_done_unit_can_be_changed_and_stays_in_view(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "left", "r")
        assert screen(pilot).hand.unit.position == 1
        assert text_of(pilot, "message") == "changed to refute; → goes to the next unit"
        await press(pilot, "enter")
        assert screen(pilot).hand.unit.position == 2
    assert list(labels(study).values()) == ["refute"]


async def test_the_end_and_the_skipped_ones(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "minus", "s", "s", "s", "s", "s")
        assert isinstance(pilot.app.screen, Finished)
        await press(pilot, "s", "q")
        assert isinstance(pilot.app.screen, Finished), "letters are labels: typed ahead, they do nothing here"
        await press(pilot, "minus")
        assert screen(pilot).hand.unit.position == 1
        await press(pilot, "n")
        assert isinstance(pilot.app.screen, Finished)
        await press(pilot, "enter")
    assert len(labels(study)) == 6
    async with sitting(study) as pilot:
        assert isinstance(pilot.app.screen, Finished), "opening a finished batch says so"


async def test_evidence_by_keyboard(study: Path) -> None:
    async with sitting(study) as pilot:
        raw = screen(pilot).hand.unit.inputs["passage"]
        await press(pilot, "asterisk", "enter")
        first = raw.index(".") + 1
        await press(pilot, "down", "right", "space", "right", "enter")
        spans = screen(pilot).hand.unit.state.spans
        assert spans[0] == ("passage", 0, first)
        assert raw[spans[1][1] : spans[1][2]] == "is so", "the full stop is a step of its own"
        await press(pilot, "s")
        assert labels(study) == {}, "letters do not label while marking"
        assert "still marking: press Esc first" in text_of(pilot, "message"), "and that is said"
        await press(pilot, "escape", "s")
    assert len(labels(study)) == 1
    assert rows_of(study, "SELECT json_array_length(spans) FROM assignments WHERE position = 1") == [(2,)]


async def test_training_shows_the_answer_and_locks_it(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4, training=2)
    async with sitting(path) as pilot:
        await press(pilot, "s")
        assert screen(pilot).hand.unit.position == 1 and screen(pilot).hand.phase == "key"
        output = text_of(pilot, "said")
        assert "right" in output or "not quite" in output
        await press(pilot, "r")
        assert rows_of(path, "SELECT count(*) FROM events WHERE kind = 'label'") == [(1,)]
        await press(pilot, "enter")
        assert screen(pilot).hand.unit.position == 2
        await press(pilot, "backspace")
        assert text_of(pilot, "message") == "nothing left to undo"
    assert labels(path) == {}


async def test_the_judge_is_shown_after_the_commit_only(tmp_path: Path) -> None:
    path = drawn(tmp_path, judged=True, n=4, reveal=True)
    async with sitting(path) as pilot:
        assert CANARY not in pilot.app.export_screenshot()
        await press(pilot, "s")
        assert "as you" in text_of(pilot, "said") and CANARY in text_of(pilot, "said")
        await press(pilot, "enter")
        await press(pilot, "r", "r")
        assert screen(pilot).hand.unit.position == 3, "the same label again keeps it"
        await press(pilot, "r", "s")
        assert isinstance(pilot.app.screen, Ask)
        await press(pilot, "escape")
        assert screen(pilot).hand.unit.position == 3
        await press(pilot, "s")
        await type_in(pilot, "overlooked")
        assert screen(pilot).hand.unit.position == 4
        await press(pilot, "left")
        assert screen(pilot).hand.phase == "judge", "what was shown stays shown"
    layers = sorted((layer, value) for (_, _, layer, _), value in labels(path).items())
    assert layers == [("first", "refute"), ("first", "refute"), ("first", "support"),
                      ("revised", "refute"), ("revised", "support"), ("revised", "support")]  # fmt: skip
    assert rows_of(
        path, "SELECT rationale FROM labels WHERE layer = 'revised' AND rationale IS NOT NULL"
    ) == [("overlooked",)]


async def test_the_list_filters_searches_and_goes_there(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "s", "minus", "equals_sign")
        assert isinstance(pilot.app.screen, Review)
        await press(pilot, "tab", "tab")
        assert pilot.app.screen.query_one(ReviewRows).count == 1
        keys = pilot.app.screen.query_one("#review-keys", Static)
        await press(pilot, "n")
        assert "this is the list" in str(keys.content)
        await press(pilot, "slash")
        assert "filter" not in str(keys.content)
        await press(pilot, "tab")
        assert "⇥ filter" in str(keys.content) and pilot.app.screen.query_one(ReviewRows).only == "done"
        await press(pilot, "tab", "enter")
        assert screen(pilot).hand.unit.position == 2
        words = screen(pilot).hand.unit.inputs["passage"]
        await press(pilot, "slash")
        await type_in(pilot, words[:20])
        assert pilot.app.screen.query_one(ReviewRows).count == 1
        await press(pilot, "enter")
        assert screen(pilot).hand.unit.position == 2


async def test_help_has_guidelines_labels_and_keys(study: Path) -> None:
    async with sitting(study) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, Help)
        message = pilot.app.screen._text.replace("\n", " ")
        assert (
            "does not by itself mean" in message and "the next filter" in message and "space begin" in message
        )
        await press(pilot, "escape", "s")
    assert len(labels(study)) == 1


async def test_highlights_of_answers_and_the_key_that_hides_them(tmp_path: Path) -> None:
    path = drawn(tmp_path, "mirage_support", n=4)
    async with sitting(path) as pilot:
        assert screen(pilot).view.text is not None and screen(pilot).view.text.matches > 0
        assert "does not by itself mean relevance" in text_of(pilot, "message")
        counts = [0, screen(pilot).view.text.matches]
        for count in counts:
            await press(pilot, "percent_sign")
            assert screen(pilot).view.text.matches == count


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_passages_that_are_not_friendly(tmp_path: Path, size: tuple[int, int]) -> None:
    path = drawn(tmp_path, items=len(NASTY), each=1, texts=NASTY, n=len(NASTY))
    async with sitting(path, size=size) as pilot:
        for _ in NASTY:
            raw = screen(pilot).hand.unit.inputs["passage"]
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
    assert rows_of(study, "SELECT count(*) FROM events") == [(1,)]


async def test_a_study_that_is_busy_is_told_and_nothing_pretended(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotate.tui.workplace.PATIENCE", 0.1)
    async with sitting(study, busy_ms=50) as pilot:
        with open_study(study) as other:
            other.conn.execute("BEGIN IMMEDIATE")
            await press(pilot, "s")
            assert "not stored" in text_of(pilot, "message")
            assert screen(pilot).hand.unit.position == 1
            other.conn.execute("ROLLBACK")
        await press(pilot, "s")
        assert screen(pilot).hand.unit.position == 2
    assert len(labels(study)) == 1


async def test_a_batch_closed_meanwhile(study: Path) -> None:
    async with sitting(study) as pilot:
        with open_study(study) as other:
            other.conn.execute("UPDATE batches SET closed = '2026-01-01'")
        await press(pilot, "s")
        assert "the batch is closed" in text_of(pilot, "message")
    assert labels(study) == {}


async def test_adjudication_shows_letters_and_stores_the_decision(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4, annotators=["alice", "bob", "carol"])
    for person, keys in (("alice", "ssss"), ("bob", "srsr"), ("carol", "nsss")):
        async with sitting(path, person) as pilot:
            await press(pilot, *keys)
    query = (
        "SELECT count(*) FROM (SELECT unit FROM batch_labels GROUP BY unit HAVING count(DISTINCT label) > 1)"
    )
    differ = rows_of(path, query)[0][0]
    async with sitting(path, "lead", adjudicate=True) as pilot:
        assert screen(pilot).hand.desk.total == differ
        output = text_of(pilot, "said")
        assert all(f"Person {letter} said " in output for letter in "ABC")
        assert not any(name in pilot.app.export_screenshot() for name in ("alice", "bob", "carol"))
        await press(pilot, "plus")
        await type_in(pilot, "the date decides")
        given = {one.answers["stance"] for one in screen(pilot).hand.desk.sources(1)}
        (nobody,) = {"support", "refute", "neutral"} - given or {"neutral"}
        await press(pilot, {"support": "s", "refute": "r", "neutral": "n"}[nobody])
        assert rows_of(path, "SELECT 1 FROM labels WHERE annotator_id = 'adjudicated'") == [], (
            "it is asked first"
        )
        await press(pilot, "escape", "n")
        await pilot.pause(0.4)
        await press(pilot, "enter")
    got = rows_of(
        path, "SELECT annotator_id, value, rationale FROM labels WHERE annotator_id = 'adjudicated'"
    )
    assert got == [("adjudicated", "neutral", "the date decides")]
    assert rows_of(path, "SELECT person FROM sessions WHERE annotator_id = 'adjudicated'") == [("lead",)]


async def test_own_keys(study: Path) -> None:
    async with sitting(study, keymap={"undo": "u"}) as pilot:
        await press(pilot, "s", "u")
        assert labels(study) == {}
        assert " u undo" in " " + text_of(pilot, "keys")


async def test_idle_time_is_told_apart(study: Path) -> None:
    async with sitting(study) as pilot:
        clock = screen(pilot).hand.clock
        clock._last -= 100
        await press(pilot, "s")
        for key in ("plus", "a", "b", "enter", "equals_sign", "down", "up", "escape"):
            clock._last -= 50  # somebody who writes a note and looks through the list is at work
            await press(pilot, key)
        clock.away(True)
        clock._last -= 30
        await press(pilot, "question_mark")  # whoever types is back, if the terminal says so or not
        clock._last -= 50
        await press(pilot, "escape", "s")
    one, two = rows_of(
        study, "SELECT active_ms, idle_ms FROM assignments WHERE position < 3 ORDER BY position"
    )
    assert [int(str(ms)) // 10_000 for ms in (*one, *two)] == [6, 4, 45, 3]


async def test_a_second_layer_that_is_missing_is_asked_for_again(tmp_path: Path) -> None:
    from annotate.leading.progress import show_batch

    path = drawn(tmp_path, judged=True, n=4, reveal=True)

    def missing() -> object:
        with open_study(path) as store:
            return show_batch(store, "pilot")["annotators"][0]["second_layer_open"]

    async with sitting(path) as pilot:
        await press(pilot, "s")
        assert screen(pilot).hand.phase == "judge"
    assert missing() == 1
    async with sitting(path) as pilot:
        assert (screen(pilot).hand.unit.position, screen(pilot).hand.phase) == (1, "judge")
        await press(pilot, "enter", "r", "right", "r", "enter", "s", "enter")
        assert screen(pilot).hand.unit.position == 2, "what was passed by is asked for before the end"
        assert screen(pilot).hand.phase == "judge" and missing() == 1
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, Finished) and missing() == 0


async def test_an_undo_on_its_way_comes_before_the_judge_is_shown(tmp_path: Path) -> None:
    path = drawn(tmp_path, judged=True, n=4, reveal=True)
    async with sitting(path) as pilot:
        app = pilot.app
        for key, character in (("s", "s"), ("backspace", None), ("r", "r")):
            app.post_message(events.Key(key, character))
        await pilot.pause()
        await pilot.pause()
        assert screen(pilot).hand.phase == "judge" and screen(pilot).hand.unit.state.answers == {
            "stance": "refute"
        }
    assert event_kinds(path) == ["label", "undo", "label", "shown"]


async def test_a_wrong_training_answer_has_a_second_try_and_a_reason(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=2, training=1)
    with open_study(path) as store:
        query = "SELECT unit_id FROM assignments WHERE role = 'training'"
        (unit,) = store.conn.execute(query).fetchone()
        store.conn.execute(
            "UPDATE labels SET value = 'refute', rationale = 'it says no' WHERE unit_id = ? AND annotator_id = 'gold' "
            "AND field = 'stance'",
            [unit],
        )
    async with sitting(path) as pilot:
        await press(pilot, "s")
        output = text_of(pilot, "said")
        assert "you said support" in output and "second try" in output and "refute" not in output
        await press(pilot, "r")
        output = text_of(pilot, "said")
        assert "right the second time" in output and "because: it says no" in output
        await press(pilot, "enter")
    assert event_kinds(path) == ["label", "shown", "revise"]
    assert rows_of(path, "SELECT answers FROM assignments WHERE position = 1") == [('{"stance":"support"}',)]


async def test_a_note_that_could_not_be_stored_is_still_there(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotate.tui.workplace.PATIENCE", 0.05)
    async with sitting(study, busy_ms=20) as pilot:
        await press(pilot, "plus")
        with open_study(study) as other:
            other.conn.execute("BEGIN IMMEDIATE")
            await type_in(pilot, "seen twice")
            assert isinstance(pilot.app.screen, Ask)
            assert "Your text is kept" in str(pilot.app.screen.query_one("#ask-wrong", Static).content)
            other.conn.execute("ROLLBACK")
        await press(pilot, "escape", "plus")
        assert pilot.app.screen.query_one(Input).value == "seen twice"
        await press(pilot, "enter")
        assert "seen twice" in text_of(pilot, "note")
    assert rows_of(study, "SELECT value FROM events WHERE kind = 'note'") == [("seen twice",)]


async def test_who_labels_faster_than_reading_is_named(tmp_path: Path) -> None:
    from annotate.leading.progress import show_batch

    path = drawn(tmp_path, items=6, texts={str(i): "many words " * 60 for i in range(12)}, n=12)
    async with sitting(path) as pilot:
        await press(pilot, *"srnsrnsrn")
    with open_study(path) as store:
        shown = show_batch(store, "pilot")
        # 660 characters are 110 words, of which 50 count: under 50 * 80 ms = 4 s each of the nine is too fast.
        assert shown["too_fast"] == [
            "alice labelled 9 of 9 units faster than they could be read (less than 80 ms per word, for at most 50 words)"
        ]


@pytest.mark.parametrize(
    ("needed", "chosen", "rows"),
    [
        ((3, 60, 3), "text", (3, 3)),  # a claim of three lines is there whole, whatever the passage takes
        ((3, 60, 9), "text", (3, 9)),  # .45 of 21 rows
        ((20, 60, 20), "text", (6, 9)),  # .3 and .45: the text has six
        ((20, 4, 20), "text", (8, 9)),  # what the text spares
        ((20, 60, 20), "head", (14, 3)),  # the others keep their least, 4 and 3
        ((20, 60, 20), "labels", (2, 15)),
    ],
)
def test_how_24_rows_are_shared(needed: tuple[int, int, int], chosen: Pane, rows: tuple[int, int]) -> None:
    assert share(21, *needed, chosen) == rows


LONG = {
    "claim": "The claim goes on and on, and its end decides. " * 62 + "END-OF-CLAIM",
    "sentence": " ".join(f"This is sentence {n} of a question that has twelve." for n in range(12))
    + " END-OF-QUESTION",
}


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (140, 45)])
@pytest.mark.parametrize("what", ["claim", "sentence"])
async def test_everything_judged_can_be_reached(what: str, size: tuple[int, int], tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=1, each=1)
    with open_study(path) as store:
        store.conn.execute("UPDATE items SET claim = ?", [LONG[what]])
    batch(path, n=1)
    end = LONG[what].split()[-1]
    async with sitting(path, size=size) as pilot:
        seen: list[str] = []
        for _ in range(4):  # every pane, to its end: where three keys show nothing new
            before = len(seen)
            for _ in range(60):
                seen.append("".join(rows(pilot)))
                if end in seen[-1] or (len(seen) > before + 3 and len(set(seen[-4:])) == 1):
                    break
                await press(pilot, "space")
            if end in seen[-1]:
                break
            await press(pilot, "tab")
        assert end in seen[-1]
        for label in ("support", "refute", "neutral"):
            assert any(label in shown for shown in seen)


async def test_ten_people_with_notes_flags_and_evidence_can_be_read_by_who_decides(tmp_path: Path) -> None:
    people = [f"person{n}" for n in range(10)]
    path = drawn(tmp_path, items=1, each=1, n=1, annotators=people, overlap=10)
    for n, person in enumerate(people):
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            desk.label(1, "stance", ("support", "refute")[n % 2])
            desk.note(
                1, f"note-{n} says why at some length, so that it takes more than one row of this terminal"
            )
            desk.flag(1, f"flag-{n}")
            desk.spans(1, [("passage", 0, 7)])
    async with sitting(path, "lead", adjudicate=True) as pilot:
        seen = ""
        for key in ["", "tab", *["space"] * 12]:
            if key:
                await press(pilot, key)
            seen += "\n".join(rows(pilot))
        for n in range(10):
            assert f"note-{n}" in seen and f"flag-{n}" in seen
        assert "marked: Passage" in seen


LATER = "Nothing to see in here. The claim is elsewhere. Then comes a zebra, and more of claim number 0."


async def test_evidence_starts_at_what_was_searched_for_else_at_a_highlight(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"later": LATER}, n=1)
    async with sitting(path) as pilot:
        await press(pilot, "asterisk")
        assert screen(pilot).hand.evidence.picker.start == LATER.index("claim"), (
            "the first word of the claim in it"
        )
        await press(pilot, "escape", "slash")
        await type_in(pilot, "zebra")
        await press(pilot, "enter", "asterisk")
        assert screen(pilot).hand.evidence.picker.start == LATER.index("zebra")
        await press(pilot, "enter", "escape")
        start = LATER.index("Then")
        assert screen(pilot).hand.unit.state.spans == [("passage", start, len(LATER))], (
            "the sentence of the cursor"
        )


SAME = {"a": "Alpha of it.", "b": "Beta of it.", "c": "Alpha of it.", "d": "Beta of it."}


@pytest.mark.parametrize("texts", [{}, SAME], ids=["the passage does", "claim and passage only together"])
async def test_the_list_shows_what_tells_units_apart(texts: dict[str, str], tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=2, each=2, texts=texts)
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE passages SET title = 'The same'")
    batch(path, n=4)
    async with sitting(path) as pilot:
        await press(pilot, "equals_sign")
        review = pilot.app.screen.query_one(ReviewRows)
        shown = [review.row(n).text for n in range(4)]
    assert len(set(shown)) == 4, shown
    assert all(text.startswith("Claim number") and "of " in text for text in shown), shown


async def test_the_list_tells_claims_apart_that_begin_alike_at_80_columns(tmp_path: Path) -> None:
    """Two claims that differ behind their 34th character."""
    path = build(tmp_path / "s.db", items=2, each=1)
    claims = [f"Femoropopliteal bypass thrombosis {verb} with fibrinogen." for verb in ("rises", "falls")]
    with open_study(path) as store, store.transaction() as conn:
        for n, claim in enumerate(claims):
            conn.execute("UPDATE items SET claim = ? WHERE rowid = ?", [claim, n + 1])
    batch(path, n=2)
    async with sitting(path) as pilot:
        await press(pilot, "equals_sign")
        rows = pilot.app.screen.query_one(ReviewRows)
        shown = "\n".join(rows.render_line(n).text for n in range(2))
    # 40 characters of the claim, then the passage: the labels of the task need 7 columns, and get no more.
    assert "thrombosis rises · Passage" in shown and "thrombosis falls · Passage" in shown, shown


async def test_escape_leads_back_to_the_unit_from_what_was_searched_there(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=6)
    async with sitting(path) as pilot:
        await press(pilot, "slash")
        await type_in(pilot, "claim")
        await press(pilot, "escape", "s")
        assert screen(pilot).hand.counts["done"] == 1
        # In the list itself, Escape takes the search back first.
        await press(pilot, "equals_sign", "slash")
        await type_in(pilot, "claim")
        await press(pilot, "escape")
        assert pilot.app.screen.query_one(ReviewRows).search == ""


async def test_a_lead_s_list_shows_who_differs_and_can_be_narrowed_to_one_kind(tmp_path: Path) -> None:
    """Three units: support against refute, support against neutral, and one that both skipped."""
    path = drawn(tmp_path, items=3, each=1, n=3, annotators=["ann", "bob"], overlap=2)
    given = {"ann": ["support", "support", None], "bob": ["refute", "neutral", None]}
    order = [
        u
        for (u,) in rows_of(
            path, "SELECT unit_id FROM assignments WHERE annotator_id = 'ann' ORDER BY position"
        )
    ]
    for person, labels_given in given.items():
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            for position in range(1, 4):
                value = labels_given[order.index(desk.load(position).unit_id)]
                if value is None:
                    desk.skip(position)
                else:
                    desk.label(position, "stance", value)
    async with sitting(path, "lead", adjudicate=True) as pilot:
        await press(pilot, "equals_sign")
        review = pilot.app.screen.query_one(ReviewRows)
        kinds = {}
        for _ in range(9):
            kinds[review.only] = [review.row(n).text for n in range(review.count)]
            await press(pilot, "tab")
        assert list(kinds)[6:] == sorted(
            ["refute / support", "neutral / support", "nobody could say"], key=list(kinds).index
        )
        assert [
            len(kinds[k]) for k in ("all", "refute / support", "neutral / support", "nobody could say")
        ] == [3, 1, 1, 1]
        # Letters, no names, in an order of each unit's own.
        [text] = kinds["refute / support"]
        assert (
            text[:30].split(" · ")[0] in ("A support, B refute", "A refute, B support")
            and "Claim number" in text
        )
        assert not [t for t in kinds["all"] if "ann" in t or "bob" in t]


FREE = """---
title: Two questions with the same labels, and a text
unit: passage
inputs: [claim, passage]
questions:
  - field: relevant
    labels: [{value: "yes", key: y}, {value: "no", key: n}]
  - field: useful
    labels: [{value: "yes", key: u}, {value: "no", key: k}]
  - field: why
    level: text
---
Judge.
<!-- unit -->
{{ claim }}
{{ passage }}
{{ answer_cue }}
"""


async def test_kinds_of_disagreement_name_their_question_and_no_text_of_people(tmp_path: Path) -> None:
    """Before: two questions with equal labels shared one filter, and each pair of texts was a filter, unescaped."""
    path = drawn(
        tmp_path, parse_task(FREE, "free.v1.md"), items=3, each=1, n=3, annotators=["ann", "bob"], overlap=2
    )
    units: dict[str, int] = {}
    for person in ("ann", "bob"):
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            for position in range(1, 4):
                unit = units.setdefault(desk.load(position).unit_id, len(units))
                other = person == "bob"
                desk.label(position, "relevant", "no" if other and unit == 0 else "yes")
                desk.label(position, "useful", "no" if other and unit == 1 else "yes")
                desk.label(position, "why", f"\x1b[31m{person} {unit}" if unit == 2 else "same")
    with open_study(path) as store:
        fill_queue(store, "pilot", "lead")
        with Desk.open(store, "pilot", "lead", adjudicate=True) as desk:
            kinds = desk.kinds()
            assert {kind: desk.count(kind) for kind in kinds} == {
                "relevant: no / yes": 1, "useful: no / yes": 1, "why: different answers": 1,
            }  # fmt: skip
    async with sitting(path, "lead", adjudicate=True) as pilot:
        await press(pilot, "equals_sign")
        message = str(pilot.app.screen.query_one("#review-top", Static).content)
        assert "ann" not in message and "\x1b" not in message
