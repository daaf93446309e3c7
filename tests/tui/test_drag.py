"""Evidence is dragged over with the mouse: what is under the pointer is marked, in the texts of the study."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from annotate.sitting.desk import Desk
from annotate.store import open_study
from tests.tui.answers import build_answers
from tests.tui.screens import press, rows, screen, sitting, text_of
from tests.tui.studies import batch, drawn, labels


def cell(pilot: Pilot[None], text: str, *, last: bool = False) -> tuple[int, int]:
    """Where the first (or last) character of a text stands on the screen."""
    for y, row in enumerate(rows(pilot)):
        if text in row:
            at = row.index(text)
            return cell_len(row[: at + len(text) - 1 if last else at]), y
    raise AssertionError(f"{text!r} is not on the screen:\n" + "\n".join(rows(pilot)))


async def painted(pilot: Pilot[None]) -> None:
    """Wait until the unit has been painted: what is pressed before that is for another one."""
    for _ in range(600):
        if screen(pilot).view._painted is not None:
            return
        await pilot.pause(0.05)
    raise AssertionError("the unit was never painted")


async def moved(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press, move, release; and wait until what that asked for is done."""
    await painted(pilot)
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()
    await screen(pilot).place.typed.wait_until_done()
    await pilot.pause()


async def drag(pilot: Pilot[None], first: str, last: str) -> None:
    """From the first character of one text to the last one of another."""
    await moved(pilot, cell(pilot, first), cell(pilot, last, last=True))


def marked(pilot: Pilot[None]) -> list[str]:
    """What is marked, as the texts of the study have it."""
    unit = screen(pilot).hand.unit
    return [str(unit.inputs[name])[a:b] for name, a, b in unit.state.spans]


async def test_a_drag_marks_the_words_under_it(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4, annotators=["alice"])
    async with sitting(path) as pilot:
        raw = str(screen(pilot).hand.unit.inputs["passage"])
        await drag(pilot, "aim 0", "say")  # from within "claim" into "says"
        assert marked(pilot) == [raw[raw.index("claim") : raw.index("says") + 4]]
        assert "marked as evidence; ⌫ undoes this" in text_of(pilot, "message")
        assert screen(pilot).selections == {}, "nothing but the mark is left on the screen"
        await drag(pilot, "42", "so.")
        assert len(marked(pilot)) == 2 and marked(pilot)[1] == "42. It is so."
        await press(pilot, "backspace")
        assert len(marked(pilot)) == 1
        # A click is no drag, neither is one that goes over no word or over the question.
        await pilot.click(offset=cell(pilot, "so."))
        await drag(pilot, "Claim number", "number")
        assert len(marked(pilot)) == 1 and screen(pilot).hand.unit.position == 1
        await drag(pilot, "Claim number", "42")
        assert len(marked(pilot)) == 1 and "a mark must be within one text" in text_of(pilot, "message")
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        assert [name for name, _, _ in desk.state(1).spans] == ["passage"]
    assert labels(path) == {}, "a drag labels nothing"


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        ("東京は 日本の 首都です。", "本", "都", "本の 首都"),
        ("a\x1b[31m red\tword \x07 bell", "ed", "wor", "red\tword"),
        ("[bold]not[/] [link=x]x[/link] end", "not", "lin", "not[/] [link"),
        ("👩‍👩‍👧‍👦 family here", "fam", "he", "family here"),
        ("👍🏽👍🏽 thumbs and 🇩🇪 flags", "thu", "an", "thumbs and"),
        ("हिन्दी क्\u200dष word here", "wor", "he", "word here"),
    ],
)
async def test_wide_hidden_and_markup_characters_are_counted(
    tmp_path: Path, text: str, first: str, last: str, expected: str
) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1, annotators=["alice"])
    async with sitting(path) as pilot:
        await drag(pilot, first, last)
        assert marked(pilot) == [expected]


async def test_over_several_lines_of_a_text_that_was_scrolled(tmp_path: Path) -> None:
    words = " ".join(f"word{n:04}" for n in range(600))
    path = drawn(
        tmp_path, items=1, each=1, texts={"one": f"First line.\n\n{words}"}, n=1, annotators=["alice"]
    )
    async with sitting(path) as pilot:
        await press(pilot, "space", "space")
        shown = [row for row in rows(pilot) if "word0" in row]
        first, last = shown[1].split()[1], shown[3].split()[2]
        await drag(pilot, first, last)
        (result,) = marked(pilot)
        assert result == words[words.index(first) : words.index(last) + len(last)]
        # Upwards is the same as downwards.
        await press(pilot, "backspace", "space", "space")
        await moved(pilot, cell(pilot, last, last=True), cell(pilot, first))
        assert marked(pilot) == [result]


async def test_passages_beside_an_answer_are_marked_by_their_id(tmp_path: Path) -> None:
    path = build_answers(tmp_path / "s.db")
    batch(path, "grounding", n=3, where="answer_system = 'model' AND item_id = 'd:bridge'")
    async with sitting(path, size=(160, 40)) as pilot:
        unit = screen(pilot).hand.unit
        text = screen(pilot).view.text
        assert text is not None
        one = next(t for t in text.texts if t.beside and len(t.raw.split()) > 1)
        words = one.raw.split()
        await drag(pilot, " ".join(words[:2]), " ".join(words[:2]))
        spans = screen(pilot).hand.unit.state.spans
        assert [(name, one.raw[a:b]) for name, a, b in spans] == [(one.name, " ".join(words[:2]))]
        assert unit.position == screen(pilot).hand.unit.position


async def test_a_drag_that_began_on_another_unit_marks_nothing(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4, annotators=["alice"])
    async with sitting(path) as pilot:
        await painted(pilot)
        at = cell(pilot, "claim 0")
        await pilot.mouse_down(offset=at)
        await pilot.hover(offset=(at[0] + 8, at[1]))
        await press(pilot, "s")
        await pilot.mouse_up(offset=(at[0] + 8, at[1]))
        await pilot.pause()
        await screen(pilot).place.typed.wait_until_done()
        await pilot.pause()
        assert screen(pilot).hand.unit.position == 2 and marked(pilot) == []
        assert "the click was ignored" in text_of(pilot, "message")
        await press(pilot, "left")
        assert marked(pilot) == []
