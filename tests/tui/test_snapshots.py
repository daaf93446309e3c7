"""How each screen looks, at 80x24 and 140x45; `pytest --snapshot-update` after a wanted change."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from annotate.leading.adjudication import fill_queue
from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.app import AnnotateApp
from tests.opened import opened
from tests.tui.answers import build_answers
from tests.tui.studies import batch, build, drawn, judge_all, three
from tests.tui.test_layout import CODE, SCRIPTS, SMALL, TABLE
from tests.tui.test_moving import LONG

SIZES = [(80, 24), (140, 45)]
SCREENS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unit": ({}, ["s", "r"]),
    "three_questions": ({"task": three()}, ["r"]),
    "mirage": ({"task": "mirage_support"}, ["s"]),
    "evidence": ({}, ["asterisk", "enter", "down", "space", "right"]),
    "flagged": ({}, ["exclamation_mark", *"odd", "enter", "plus", *"why", "enter"]),
    "ask": ({}, ["exclamation_mark"]),
    "help": ({}, ["question_mark"]),
    "review": ({}, ["s", "r", "minus", "equals_sign"]),
    "training": ({"training": 2}, ["s"]),
    "judge": ({"reveal": True}, ["r"]),
    "revised": ({"reveal": True}, ["r", "s", *"why", "enter", "left"]),
    "trained": ({"training": 2, "pass_mark": 1.0}, ["s", "enter", "s", "enter"]),
    "long_labels": ({"task": "garage_relevance"}, []),
    "search": ({}, ["slash", *"claim 3"]),
    "menu": ({}, ["ctrl+p"]),
    "finished": ({"n": 2}, ["s", "minus"]),
}
MODEL = "answer_system = 'model'"
ANSWERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "sentence": ({"task": "grounding", "n": 6, "where": MODEL}, ["s"]),
    "passages": ({"task": "grounding", "n": 6, "where": MODEL}, ["tab", "asterisk", "enter"]),
    "citation": ({"task": "citation_each", "n": 3, "where": f"{MODEL} AND item_id = 'd:tea'"}, ["f"]),
    "claim": ({"task": "claim_support", "n": 2}, ["e"]),
    "pair": ({"task": "counter_check", "n": 1}, []),
    "answer": ({"task": "eligibility", "n": 3}, []),
    "gold_shown": ({"task": "raguard_role", "n": 3, "where": "item_id = 'd:tea'"}, []),
}


def app_for(path: Path, person: str = "alice", adjudicate: bool = False) -> AnnotateApp:
    store = opened(open_study(path))
    if adjudicate:
        fill_queue(store, "pilot", person)
    return AnnotateApp(Desk.open(store, "pilot", person, adjudicate=adjudicate))


def pressing(keys: list[str]) -> Callable[[Any], Awaitable[None]]:
    """Press keys; then the menu lists all it has, and no cursor blinks: a picture depends on no clock."""

    async def before(pilot: Any) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await _still(pilot)

    return before


async def _still(pilot: Any) -> None:
    app = pilot.app
    if looking := [w for w in app.workers if w.node is app.screen and not w.is_finished]:
        await app.workers.wait_for_complete(looking)
    for box in app.screen.query(Input):
        box._pause_blink(visible=True)
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", [*SCREENS, *ANSWERS])
def test_screen(name: str, size: tuple[int, int], tmp_path: Path, snap_compare: Callable[..., bool]) -> None:
    plan, keys = {**SCREENS, **ANSWERS}[name]
    plan = dict(plan)
    path = (build_answers if name in ANSWERS else build)(tmp_path / "s.db")
    if plan.get("reveal"):
        judge_all(path)
    batch(path, plan.pop("task", "stance"), **{"n": 6, **plan})
    app = app_for(path)
    assert snap_compare(app, terminal_size=size, run_before=pressing(keys))
    app.desk.close()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_adjudication(size: tuple[int, int], tmp_path: Path, snap_compare: Callable[..., bool]) -> None:
    path = drawn(tmp_path, n=4, annotators=["alice", "bob", "carol"])
    for person, value in (("alice", "support"), ("bob", "refute"), ("carol", "support")):
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            for position in range(1, 5):
                desk.label(position, "stance", value)
            desk.note(1, f"note of one of them on {desk.load(1).unit_id}")
    app = app_for(path, "lead", adjudicate=True)
    assert snap_compare(app, terminal_size=size)
    app.desk.close()


SENTENCES = " ".join(
    f"This is sentence number {n} of a question that somebody asked at length." for n in range(1, 13)
)
CLAIM = " ".join(f"Clause {n} of the claim says that the tower is {n} metres high;" for n in range(1, 60))[
    :3000
]


@pytest.mark.parametrize("column", ["question", "claim"])
def test_what_is_longer_than_the_screen_leaves_room_for_the_rest(
    column: str, tmp_path: Path, snap_compare: Callable[..., bool]
) -> None:
    """A question of twelve sentences, a claim of 3,000 characters: text and labels are there beside it."""
    path = build(tmp_path / "s.db", items=1, each=1)
    with open_study(path) as store, store.transaction() as conn:
        conn.execute(f"UPDATE items SET {column} = ?", [SENTENCES if column == "question" else CLAIM])
    batch(path, "relevance_graded" if column == "question" else "stance", n=1)
    app = app_for(path)
    assert snap_compare(app, terminal_size=SIZES[0], run_before=pressing(["tab"]))
    app.desk.close()


STRUCTURED: dict[str, tuple[str, list[str], tuple[int, int]]] = {
    "table": (f"Ten columns about claims:\n\n{TABLE}\n\nAfter the table.", [], (80, 24)),
    "code": (
        f"{CODE}\n{SMALL}\n\nAfter the table.",
        ["asterisk", *["right"] * 9, "space", "right"],
        (100, 40),
    ),
    "long": (LONG, ["greater_than_sign"], (120, 40)),
    "scripts": ("\n\n".join(SCRIPTS), [], (200, 50)),
}
"""Texts with a structure, or 30,000 characters; the keys; the size."""


@pytest.mark.parametrize("name", STRUCTURED)
def test_long_and_structured_texts(name: str, tmp_path: Path, snap_compare: Callable[..., bool]) -> None:
    text, keys, size = STRUCTURED[name]
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    app = app_for(path)
    assert snap_compare(app, terminal_size=size, run_before=pressing(keys))
    app.desk.close()
