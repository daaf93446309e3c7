"""Themes, typing ahead, training's pass mark, keys of one's own, typed answers: what a sitting meets beside labels."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual import events
from textual.color import Color
from textual.filter import dim_color
from textual.geometry import Region
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES
from textual.widgets import Static

from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui import settings
from annotate.tui.app import AnnotateApp
from annotate.tui.colours import contrast
from annotate.tui.dialogs import Ask, Finished, Help, Notice
from annotate.tui.keymap import key_name, load_keymap, symbol
from annotate.tui.label import LabelScreen
from annotate.tui.review import Review
from judge.errors import AdjudgeError, BadInput, UsageError
from judge.prompts import load_task
from judge.prompts.load import parse_task
from tests.real import ROOT
from tests.tui.screens import press, screen, sitting, text_of, type_in
from tests.tui.studies import THREE, batch, build, drawn, judge_all, labels, three

FRAME = set("─│░█▏▎▊▁▔╭╮╰╯━┃ ")


def worst_contrast(app: AnnotateApp, within: Region) -> tuple[float, str]:
    """The lowest contrast ratio (WCAG 2) of any text on the screen, dim text as it is drawn, and that text."""
    worst = (21.0, "")
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        x = 0
        for text, style, _ in strip:
            x += cell_len(text)
            if not within.contains(x - 1, y):
                continue
            if style is None or not set(text) - FRAME or style.reverse:
                continue
            front, back = style.color, style.bgcolor
            assert front is not None and front.triplet is not None, text
            assert back is not None and back.triplet is not None, text
            if style.dim:
                front = dim_color(back, front)
                assert front.triplet is not None
            worst = min(worst, (contrast(Color(*front.triplet), Color(*back.triplet)), text))
    return worst


def test_contrast_is_that_of_the_standard() -> None:
    # Black on white is 21:1 by definition; #777 on white is 4.48:1, the example WCAG gives for just failing AA.
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert contrast(Color.parse("#777"), Color.parse("#fff")) == pytest.approx(4.48, abs=0.005)


WALK: dict[str, tuple[list[str], type[Screen[Any]], str]] = {
    "a wrong training answer": (["r"], LabelScreen, ""),
    "training failed": (["enter", "r", "enter"], Notice, "#notice-box"),
    "a unit": (["enter"], LabelScreen, ""),
    "the judge's answer": (["r"], LabelScreen, ""),
    "the list": (["equals_sign"], Review, ""),
    "help": (["escape", "question_mark"], Help, "#help-box"),
    "the end": (["escape", "enter", "r", "enter"], Finished, "#done-box"),
}
"""What a sitting shows, one after the other: the keys that lead there, the screen, and the box in front of another."""


THEMES = sorted(name for name in BUILTIN_THEMES if not name.startswith("ansi"))
"""All of Textual's but those whose colours are the terminal's own."""


@pytest.mark.parametrize("themes", [THEMES[n::3] for n in range(3)], ids=",".join)
async def test_every_theme_is_readable(themes: list[str], tmp_path: Path) -> None:
    """On all that a sitting shows; an app takes up another theme sooner than it starts."""
    mirage, pilot = build(tmp_path / "m.db", items=1, each=1), build(tmp_path / "s.db", items=2)
    judge_all(pilot)
    batch(mirage, "mirage_support", n=1)
    batch(pilot, n=2, training=1, reveal=True)
    await _walk(mirage, themes, {"two texts": ([], LabelScreen, "")})
    await _walk(pilot, themes, WALK)


async def _walk(
    path: Path, themes: list[str], walk: dict[str, tuple[list[str], type[Screen[Any]], str]]
) -> None:
    async with sitting(path) as pilot:
        for what, (keys, there, box) in walk.items():
            await press(pilot, *keys)
            assert isinstance(pilot.app.screen, there)
            # Behind a box there is the screen before, dimmed on purpose.
            within = pilot.app.screen.query_one(box) if box else pilot.app.screen
            worst = {theme: _in_theme(pilot.app, theme, within.region) for theme in themes}
            for theme, (ratio, text) in worst.items():
                assert ratio >= 4.5, (theme, what, text)  # what WCAG AA asks of text
            assert len(set(worst.values())) > 1, "the themes were taken up"


def _in_theme(app: AnnotateApp, theme: str, within: Region) -> tuple[float, str]:
    """The lowest contrast in another theme, taken up at once: nothing is painted, and nothing has to be waited for."""
    with app.batch_update():
        app.theme = theme
        app._next_callbacks.clear()
        app.refresh_css(animate=False)
        return worst_contrast(app, within)


async def test_the_theme_is_remembered(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4)
    assert settings.read_theme() is None
    async with sitting(path) as pilot:
        pilot.app.theme = "nord"
        await pilot.pause()
    assert settings.read_theme() == "nord"
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        for remembered, shown in (("nord", "nord"), ("a theme of another version", "textual-dark")):
            settings.remember_theme(remembered)
            app = AnnotateApp(desk)
            async with app.run_test():
                assert app.theme == shown


async def test_what_is_typed_ahead_of_the_end_labels_no_skipped_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotate.tui.actions.SETTLE", 30.0)
    path = drawn(tmp_path, n=3)
    async with sitting(path) as pilot:
        await press(pilot, "minus", "s")
        app = pilot.app
        assert isinstance(app, AnnotateApp)
        # In one burst: the last unit's label, then keys for a unit that is not there.
        for key, character in (("s", "s"), ("minus", "-"), ("r", "r"), ("backspace", "\x7f"), ("n", "n")):
            app.post_message(events.Key(key, character))
        await pilot.pause()
        await app.typed.wait_until_done()
        await pilot.pause()
        assert isinstance(app.screen, Finished)
        assert "4 later keys" not in str(app.screen.query_one("#done-said", Static).content)
        assert "3 later keys" in str(app.screen.query_one("#done-said", Static).content)
    assert sorted(labels(path).values()) == ["support", "support"]


async def test_what_is_typed_ahead_of_the_judge_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotate.tui.actions.SETTLE", 30.0)
    path = drawn(tmp_path, judged=True, n=3, reveal=True)
    async with sitting(path) as pilot:
        await press(pilot, "r", "r", "s", "enter")
        assert screen(pilot).hand.unit.position == 1 and screen(pilot).hand.phase == "judge"
        assert {layer for _, _, layer, _ in labels(path)} == {"first"}
        monkeypatch.setattr("annotate.tui.actions.SETTLE", 0.0)
        pilot.app.typed.record_seen()
        await press(pilot, "enter")
    assert {layer for _, _, layer, _ in labels(path)} == {"first", "revised"}


@pytest.mark.parametrize("right", [2, 1])
async def test_the_pass_mark_is_told_after_training_and_to_the_lead(tmp_path: Path, right: int) -> None:
    from annotate.leading.progress import show_batch

    path = drawn(tmp_path, n=2, training=2, pass_mark=0.8)
    with open_study(path) as store:
        query = (
            "SELECT l.value FROM assignments AS a JOIN labels AS l ON l.unit_id = a.unit_id AND "
            "l.annotator_id = 'gold' AND l.field = 'stance' WHERE a.role = 'training' ORDER BY a.position"
        )
        gold = [value for (value,) in store.conn.execute(query)]
    key = {"support": "s", "refute": "r", "neutral": "n"}
    wrong = {"support": "r", "refute": "n", "neutral": "s"}
    async with sitting(path) as pilot:
        await press(pilot, key[gold[0]], "enter")
        # A wrong answer has a second try: the first Enter gives it up and shows the answer.
        await press(pilot, *([key[gold[1]]] if right == 2 else [wrong[gold[1]], "enter"]), "enter")
        assert isinstance(pilot.app.screen, Notice)
        message = str(pilot.app.screen._text)
        # 2 of 2 is 100 %; 1 of 2 is 50 %, below 80 %.
        assert (
            (f"✓ passed   {right} of 2 right" in message)
            if right == 2
            else ("✗ not passed   1 of 2 right" in message)
        )
        await press(pilot, "s", "enter")
        assert screen(pilot).hand.unit.position == 3 and labels(path) == {}, (
            "a label typed at the box is none"
        )
        await press(pilot, "s")
    assert len(labels(path)) == 1
    with open_study(path) as store:
        assert show_batch(store, "pilot")["annotators"][0]["training_passed"] is (right == 2)


TYPED = """---
title: A number and a list
unit: passage
inputs: [passage]
questions:
  - {field: score, level: interval}
  - {field: points, level: text, many: true}
---
Judge.
<!-- unit -->
{{ passage }}
{{ answer_cue }}
"""


async def test_numbers_and_lists_are_typed(tmp_path: Path) -> None:
    path = drawn(tmp_path, parse_task(TYPED, "typed.v1.md"), n=2)
    async with sitting(path) as pilot:
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, Ask)
        await type_in(pilot, "-3.5")
        await press(pilot, "enter")
        await type_in(pilot, "one point | another |")
        assert screen(pilot).hand.unit.position == 2
    got = {field: value for (_, field, _, _), value in labels(path).items()}
    assert got["score"] == "-3.5" and json.loads(got["points"]) == ["one point", "another"]
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:  # noqa: SIM117
        with pytest.raises(BadInput, match="is not a number"):
            desk.label(2, "score", "much")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[keys]\nundo = "s"', "key 's' of 'undo' is already used by label 'support'"),
        ('[keys]\nundo = "-"', "key '-' of 'skip' is already used by 'undo'"),
        ('[keys]\nundo = "crtl+z"', "key 'crtl+z': there is no such key; did you mean ctrl+z?"),
        ('[keys]\nundo = "ctrl+q"', "it quits"),
        ('[keys]\nundo = "ctrl+i"', "write 'tab'"),
        ('[keys]\nundo = "uu"', "key 'uu': there is no such key"),
        ('[keys]\nundo = "u"\nskip = "u"', "key 'u' of 'skip' is already used by 'undo'"),
        ('[keys]\nundoo = "u"', "'undoo'"),
        ("[keys]\nundo = 3", "write the keys as a string"),
        ("[keys]\nundo = ','", "write the keys as a string"),
        ('[keys]\nundo = "ctrl+h"', "write 'backspace'"),
        ('keys = "u"', "keys must be a table"),
        ('undo = "u"', "unknown section 'undo'"),
        ('[key]\nundo = "u"', "unknown section 'key'"),
        ("[keys", "not valid TOML"),
    ],
)
def test_keys_that_clash_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as e:
        load_keymap(path, load_task("stance"))
    assert message in str(e.value) and "keymap.toml" in str(e.value)


def test_any_character_is_a_key_and_shown_as_itself(tmp_path: Path) -> None:
    # One of the keymap's own table, ASCII with a hyphen in its name and two renamed by Textual, and others.
    for character in ("-", "<", "@", "_", ";", "§", "ä", "u"):
        assert symbol(key_name(character)) == character
    assert [symbol(key) for key in ("f11", "ctrl+z", "delete", "space", "home")] == ["F11", "^Z", "delete", "space", "Home"]  # fmt: skip
    text = (ROOT / "prompts" / "stance.v2.md").read_text("utf-8")
    task = parse_task(text.replace("key: s", 'key: ";"', 1), "stance.v2.md")
    path = tmp_path / "keymap.toml"
    path.write_text('[keys]\nundo = ";"', "utf-8")
    with pytest.raises(UsageError, match="key ';' of 'undo' is already used by label 'support'"):
        load_keymap(path, task)


async def test_every_command_is_in_the_menu_and_works_from_there(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=3)
    async with sitting(path) as pilot:
        await press(pilot, "ctrl+p")
        await pilot.press(*"skip")
        await pilot.pause(0.5)
        await press(pilot, "enter")
        await pilot.pause(0.2)
        assert screen(pilot).hand.unit.position == 2
        assert text_of(pilot, "message") == "skipped"


async def test_a_click_on_the_second_label_and_on_a_row_of_the_list(tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), n=3)
    async with sitting(path) as pilot:
        line = text_of(pilot, "labels").split("\n")[1]
        await pilot.click("#labels", offset=(line.index("irrelevant"), 1))
        await pilot.pause()
        assert list(labels(path).values()) == ["irrelevant"]
        await press(pilot, "equals_sign")
        await pilot.click("ReviewRows", offset=(10, 2))
        await pilot.pause()
        assert screen(pilot).hand.unit.position == 3


@pytest.mark.parametrize(
    ("size", "find", "shift"),
    [
        ((140, 30), "evidence", 0),  # the last row of the meaning of the label, beside the text
        ((140, 30), "evidence", 20),  # the empty end of that row
        ((80, 40), "would reject", 0),  # below the text
    ],
)
async def test_a_click_on_the_meaning_of_a_label_labels(
    size: tuple[int, int], find: str, shift: int, tmp_path: Path
) -> None:
    path = drawn(tmp_path, n=2)
    expected = {"evidence": "neutral", "would reject": "refute"}[find]
    async with sitting(path, size=size) as pilot:
        rows = text_of(pilot, "labels").split("\n")
        at = max(i for i, row in enumerate(rows) if find in row)
        await pilot.click("#labels", offset=(rows[at].index(find) + shift, at))
        await pilot.pause()
        await pilot.pause()
    assert list(labels(path).values()) == [expected]


async def test_a_double_click_labels_one_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = drawn(tmp_path, three(), n=3)
    async with sitting(path) as pilot:
        for _ in range(2):
            await pilot.press("r", "s")
            await pilot.pause()
            at = text_of(pilot, "labels").split("\n")[5].index("bad")
            monkeypatch.setattr("annotate.tui.actions.SETTLE", 0.0)
            await pilot.click("#labels", offset=(at, 5))
            monkeypatch.setattr("annotate.tui.actions.SETTLE", 30.0)
            await pilot.click("#labels", offset=(at, 5))
            await pilot.pause()
            pilot.app.typed.record_seen()
            monkeypatch.setattr("annotate.tui.actions.SETTLE", 0.0)
            pilot.app.typed.record_seen()
        assert sum(f == "quality" for _, f, *_ in labels(path)) == 2


async def test_a_changed_task_is_refused_and_the_batch_keeps_its_own_text(tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), n=2)
    changed = parse_task(THREE.replace("Is it relevant?", "Is it about this?"), "three.v1.md")
    with pytest.raises(AdjudgeError, match=r"three\.v1.*three\.v2"):
        batch(path, changed, name="more", n=2)
    async with sitting(path) as pilot:
        assert "Is it relevant?" in text_of(pilot, "labels")
