"""Long texts: to the beginning and the end, from match to match, and how far one is."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.content import Content

from annotate.store import open_study
from annotate.tui.rows import row_starts
from annotate.tui.untrusted import make_visible
from tests.tui.answers import build_answers
from tests.tui.screens import press, rows, screen, sitting
from tests.tui.studies import NASTY, batch, build, drawn, labels

FILLER = "Nothing in this sentence is of interest. "
LONG = (
    "".join(f"{FILLER * 100}Here {word} matters. " for word in ("number", "CLAIM", "number")) + FILLER * 440
)
"""30,000 characters: the claim is "Claim number 0"."""


def rule(pilot: object) -> str:
    """The line above the text."""
    return str(screen(pilot).view.texts.border_title)  # type: ignore[arg-type]


def long_study(path: Path) -> Path:
    assert len(LONG) > 30_000
    build(path, items=1, each=1, texts={"one": LONG})
    batch(path, n=1)
    return path


@pytest.mark.parametrize("size", [(80, 24), (140, 45)], ids=str)
async def test_home_and_end_lead_to_the_ends_and_the_rule_says_where_one_is(
    size: tuple[int, int], tmp_path: Path
) -> None:
    async with sitting(long_study(tmp_path / "s.db"), size=size) as pilot:
        assert rule(pilot).endswith("0 %, 3 matches below")
        await press(pilot, "end")
        box = screen(pilot).view.texts.box
        assert box.scroll_y == box.max_scroll_y > 100
        assert rule(pilot).endswith("100 %")
        await press(pilot, "pageup")
        assert rule(pilot).endswith("%") and not rule(pilot).endswith("100 %")
        await press(pilot, "home")
        assert box.scroll_y == 0 and rule(pilot).endswith("0 %, 3 matches below")
        box.scroll_to(y=box.max_scroll_y / 2, animate=False)  # as the wheel does
        await pilot.pause()
        # The third match begins behind 12,300 of 30,400 characters: half-way down, no match is below.
        assert rule(pilot).endswith("50 %")


async def test_keys_lead_from_match_to_match_outside_what_is_seen(tmp_path: Path) -> None:
    async with sitting(long_study(tmp_path / "s.db")) as pilot:
        seen = []
        for key in (*["greater_than_sign", "f12", "greater_than_sign"], *["less_than_sign", "f11"]):
            await press(pilot, key)
            (there,) = [row.split("matters")[0].split()[-1] for row in rows(pilot) if "matters" in row]
            seen.append((there, rule(pilot).partition("%, ")[2]))
        assert seen == [
            ("number", "2 matches below"),
            ("CLAIM", "1 match below"),
            ("number", ""),
            ("CLAIM", "1 match below"),
            ("number", "2 matches below"),
        ]
        await press(pilot, "less_than_sign")
        assert "no highlight or match above" in "\n".join(rows(pilot))
        # Without highlights there is nothing to go to.
        await press(pilot, "percent_sign", "greater_than_sign")
        assert "no highlight or match below" in "\n".join(rows(pilot)) and "match" not in rule(pilot)


async def test_two_keys_typed_at_once_lead_to_the_second_match(tmp_path: Path) -> None:
    async with sitting(long_study(tmp_path / "s.db")) as pilot:
        await pilot.press("greater_than_sign", "greater_than_sign")
        await pilot.pause()
        assert any("CLAIM matters" in row for row in rows(pilot))


async def test_what_was_searched_for_is_a_match(tmp_path: Path) -> None:
    text = f"{FILLER * 50}needle {FILLER * 50}needle {FILLER * 50}"
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path) as pilot:
        await press(pilot, "slash", *"needle", "enter", "enter")
        await pilot.pause()
        assert any("needle" in row for row in rows(pilot)) and rule(pilot).endswith("1 match below")
        await press(pilot, "greater_than_sign")
        assert any("needle" in row for row in rows(pilot)) and not rule(pilot).endswith("below")


async def test_a_search_scrolls_only_the_unit_that_it_found(tmp_path: Path) -> None:
    """On the next unit, it hid how the text begins."""
    text = f"{FILLER * 50}needle {FILLER * 50}"
    path = drawn(tmp_path, items=2, each=1, texts={"one": text, "two": text}, n=2)
    async with sitting(path) as pilot:
        await press(pilot, "slash", *"needle", "enter", "enter")
        await pilot.pause()
        assert any("needle" in row for row in rows(pilot))
        await press(pilot, "s")
        await pilot.pause()
        assert not any("needle" in row for row in rows(pilot)) and rule(pilot).startswith("0 %")


async def test_nothing_is_said_of_a_text_that_fits(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=4)
    async with sitting(path) as pilot:
        assert "%" not in rule(pilot)


async def test_the_rule_is_about_the_text_that_scrolls(tmp_path: Path) -> None:
    """Of an answer and its passages the keys move the one that is named, also where both stand side by side."""
    path = build_answers(tmp_path / "s.db")
    batch(path, "grounding", n=3, where="answer_system = 'model' AND item_id = 'd:bridge'")
    async with sitting(path, size=(120, 15)) as pilot:
        texts = screen(pilot).view.texts
        await press(pilot, "tab")
        assert texts.aside and texts.box.max_scroll_y
        await press(pilot, "end")
        assert rule(pilot).endswith("100 %") and texts.box.scroll_y == texts.box.max_scroll_y
        assert pilot.app.screen.query_one("#body-scroll").scroll_y == 0


async def test_a_long_text_is_wrapped_once(tmp_path: Path) -> None:
    async with sitting(long_study(tmp_path / "s.db")) as pilot:
        before = row_starts.cache_info().misses
        await press(
            pilot, "end", "home", "greater_than_sign", "down", "space", "percent_sign", "less_than_sign"
        )
        assert row_starts.cache_info().misses == before


@given(
    st.text("ab 東ไ\u0301\n👍-", max_size=200) | st.sampled_from(sorted(NASTY.values())), st.integers(2, 60)
)
def test_rows_are_those_of_the_screen(text: str, width: int) -> None:
    """Each row begins where Textual begins it: what it shows is the text from there on, without spaces at its end."""
    content = Content(make_visible(text[:3000]).text)
    wrapped = [row.plain for row in content.wrap(width)]
    starts = [*row_starts(content.plain, width), len(content.plain)]
    assert [content.plain[a:b].rstrip() for a, b in pairwise(starts)] == [row.rstrip() for row in wrapped]


LONG_CLAIM = "A sentence of a claim that goes on and on. " * 70


@pytest.mark.parametrize("pane", ["head-scroll", "body-scroll"])
async def test_the_wheel_scrolls_the_pane_below_it_and_labels_nothing(pane: str, tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", texts={"long": LONG_CLAIM}, items=1, each=1)
    with open_study(path) as store:
        store.conn.execute("UPDATE items SET claim = ?", [LONG_CLAIM])
    batch(path, n=1)
    async with sitting(path) as pilot:
        box = pilot.app.screen.query_one(f"#{pane}")
        for event, moved in ((events.MouseScrollDown, True), (events.MouseScrollUp, False)):
            for _ in range(4):
                await pilot._post_mouse_events([event], widget=box, offset=(2, 1), button=0)
                await pilot.pause(0.1)
            assert (box.scroll_y > 0) == moved
        assert labels(path) == {}
