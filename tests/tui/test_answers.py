"""Answers on the screen: sentences, citations and claims in turn, with the passages they are held against."""

from itertools import groupby
from pathlib import Path

import pytest

from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.panes import Texts
from tests.tui.answers import build_answers
from tests.tui.screens import press, screen, sitting, text_of
from tests.tui.studies import batch, labels, rows_of

MODEL = "answer_system = 'model'"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return build_answers(tmp_path / "s.db")


async def test_the_sentences_of_an_answer_follow_each_other(study: Path) -> None:
    batch(study, "citation_support", n=5, where=MODEL)
    order = [u for (u,) in rows_of(study, "SELECT unit_id FROM assignments ORDER BY position")]
    # Two answers with three and two sentences, in one piece each and in the order of the text.
    pieces = [list(piece) for _, piece in groupby(order, lambda u: u.partition("#")[0])]
    assert len(pieces) == 2 and all(piece == sorted(piece) for piece in pieces)
    async with sitting(study) as pilot:
        first = screen(pilot).hand.unit.parts
        assert f"Sentence 1 of {len(first)} to label in this answer" in text_of(pilot, "head")
        await press(pilot, "f")
        assert f"Sentence 2 of {len(first)} to label in this answer" in text_of(pilot, "head")
        assert " 1f " in text_of(pilot, "head"), "what was said of the first one"
        await press(pilot, "left")
        assert screen(pilot).hand.unit.position == 1
        # A click on the 2 of the steps, which stand in the last line of the head.
        steps = text_of(pilot, "head").split("\n")
        assert await pilot.click("#head", offset=(steps[-1].index(" 2· ") + 1, len(steps) - 1))
        await pilot.pause()
        assert screen(pilot).hand.unit.position == 2


async def test_the_very_sentence_is_marked_where_the_same_words_stand_twice(study: Path) -> None:
    batch(study, "grounding", n=3, where=f"{MODEL} AND item_id = 'd:bridge'")
    async with sitting(study) as pilot:
        text = screen(pilot).view.text
        assert text is not None
        starts = []
        for _ in range(3):
            text = screen(pilot).view.text
            assert text is not None
            starts.append(text.focus)
            await press(pilot, "s")
        # Each sentence begins where the one before ended: 34 characters and a space; the title is "Answer\n".
        assert starts == [7, 42, 77]


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_passages_stand_beside_the_answer_or_one_key_away(study: Path, size: tuple[int, int]) -> None:
    batch(study, "grounding", n=3, where=f"{MODEL} AND item_id = 'd:tea'")
    async with sitting(study, size=size) as pilot:
        texts = screen(pilot).query_one(Texts)
        body, aside = texts.query_one("#body-scroll"), texts.query_one("#aside-scroll")
        assert body.display and aside.display is (size[0] > 80)
        assert "[cite_1] Tea · 2024-01-02 · web" in text_of(pilot, "aside")
        assert "China harvests" not in text_of(pilot, "body")
        await press(pilot, "tab")
        assert aside.display and body.display is (size[0] > 80)
        await press(pilot, "s")
        assert aside.display, "the choice stays for the next sentence"
        await press(pilot, "tab")
        assert body.display
    assert len(labels(study)) == 1


async def test_passages_of_other_questions_are_there_with_the_place_they_are_cited_by(study: Path) -> None:
    batch(study, "grounding", n=3, where=f"{MODEL} AND item_id = 'd:bridge'")
    async with sitting(study) as pilot:
        aside = text_of(pilot, "aside")
        # The context is noise, then the two passages of the question: ids that are hashes are cited by place.
        assert "Context given to the system\n[cite_3] no. 1 Mombasa\nMombasa is a port." in aside
        assert "[2] \nThe bridge was drawn" in aside and "[3] \nBridges rot." in aside


async def test_evidence_for_a_sentence_is_marked_in_its_passages(study: Path) -> None:
    batch(study, "grounding", n=3, where=f"{MODEL} AND item_id = 'd:tea'")
    async with sitting(study) as pilot:
        texts = screen(pilot).query_one(Texts)
        await press(pilot, "asterisk")
        assert texts.query_one("#aside-scroll").display, "the passages come to the front"
        await press(pilot, "enter", "tab", "enter", "down", "down", "space", "right", "enter", "escape", "s")
    ((spans,),) = rows_of(study, "SELECT spans FROM assignments WHERE position = 1")
    # The first sentence of cite_1 (47 characters); all of cite_2 (53); then two words of the answer.
    assert spans == '[["answer",0,11],["d:tea/cite_1",0,47],["d:tea/cite_2",0,53]]'


async def test_a_citation_shows_its_passage_and_an_answer_its_passages(study: Path) -> None:
    batch(study, "citation_each", n=3, where=f"{MODEL} AND item_id = 'd:tea'")
    async with sitting(study, size=(140, 45)) as pilot:
        assert "Sentence  China grows the most tea [cite_1]." in text_of(pilot, "head")
        assert "Citation 1 of 3 to label in this answer" in text_of(pilot, "head")
        # The answer around the sentence, and beside it the passage that the sentence cites.
        assert "Most of it is sold in Mombasa" in text_of(pilot, "body")
        assert "China harvests" in text_of(pilot, "aside")
        await press(pilot, "f", "p")
        assert "Mombasa is a port." in text_of(pilot, "aside")
    assert sorted(labels(study).values()) == ["full", "partial"]


@pytest.mark.parametrize(
    ("task", "where", "head", "shown"),
    [
        ("claim_support", "1", "Claim 1 of 2 to label in this answer", "China"),
        ("eligibility", MODEL, "Question", "China"),
        ("confirmation", MODEL, "", "China"),
        ("counter_check", "1", "Tea comes from China.", ""),
    ],
)
async def test_other_units(study: Path, task: str, where: str, head: str, shown: str) -> None:
    n = 1 if task in ("counter_check", "confirmation", "eligibility") else 2
    batch(study, task, n=n, where=f"({where}) AND item_id = 'd:tea'")
    async with sitting(study) as pilot:
        assert head in text_of(pilot, "head")
        assert shown in text_of(pilot, "body")
        if task == "counter_check":
            assert "Tea comes from Kenya." in text_of(pilot, "head")
        await press(pilot, next(iter(screen(pilot).hand.labels[screen(pilot).hand.desk.fields[0]])))
    assert len(labels(study)) == 1


async def test_relevant_passages_are_those_that_gold_calls_so_and_gold_stays_hidden(study: Path) -> None:
    batch(study, "grounding_relevant", n=3, where=f"{MODEL} AND item_id = 'd:tea'")
    async with sitting(study, size=(140, 45)) as pilot:
        aside = text_of(pilot, "aside")
        assert "China harvests" in aside and "Kenya exports" not in aside
        assert "ANSWER-THE-QUESTION" not in pilot.app.export_screenshot()
        await press(pilot, "s")
    assert len(labels(study)) == 1


async def test_a_task_that_shows_gold_says_that_it_is_not_blind(study: Path) -> None:
    from annotate.exchange.responses import responses

    batch(study, "raguard_role", n=2, where="item_id = 'd:tea'")
    async with sitting(study) as pilot:
        assert "claim_verdict: true" in text_of(pilot, "head")
        assert "the task is not blind" in text_of(pilot, "head")
        await press(pilot, "s")
    with open_study(study) as store:
        assert [row.blind for row in responses(store, "pilot")] == [False]


async def test_a_hidden_repeat_does_not_show_what_was_said_before(study: Path) -> None:
    batch(study, "grounding", n=6, where=MODEL, repeats=0.5)
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        for position in range(1, 7):
            desk.label(position, "grounding", "supported")
        repeats = [p for (p,) in store.conn.execute("SELECT position FROM assignments WHERE role = 'repeat'")]
        assert repeats
        for position in repeats:
            sheet = desk.load(position)
            assert sheet.part is not None and sheet.part.answers == {}, "what was said before is not shown"
            assert len(sheet.parts) == 3


@pytest.mark.parametrize(
    ("task", "where", "hidden"),
    [
        ("grounding", MODEL, ["RELATED-INFORMATION", "claim_verdict", "Nora Quist did."]),
        ("grounding_relevant", f"{MODEL} AND item_id = 'd:tea'", ["Kenya exports", "RELATED-INFORMATION"]),
        ("citation_each", MODEL, ["Bridges rot.", "relevance"]),
        ("counter_check", "1", ["Which country", "China harvests", "claim_verdict"]),
        ("raguard_role", "item_id = 'd:tea'", ["Which country", "relevance", "Bridges rot."]),
        ("eligibility", "1", ["claim_verdict", "relevance"]),
    ],
)
def test_a_packed_file_shows_the_same_screen_and_holds_nothing_else(
    study: Path, task: str, where: str, hidden: list[str]
) -> None:
    with open_study(study) as store:
        kind = {"grounding": 6, "grounding_relevant": 3, "citation_each": 6, "raguard_role": 3}.get(task, 1)
    batch(study, task, n=kind, where=where)
    out = study.with_name("alice.db")
    with open_study(study) as store:
        pack(store, "pilot", "alice", out)
        with Desk.open(store, "pilot", "alice") as desk:
            here = [desk.load(p) for p in range(1, desk.total + 1)]
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        there = [desk.load(p) for p in range(1, desk.total + 1)]
        assert store.conn.execute("PRAGMA foreign_key_check").fetchall() == []
    assert there == here
    raw = out.read_bytes()
    for secret in hidden:
        assert secret.encode() not in raw, secret
