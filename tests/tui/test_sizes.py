"""What the labelling screen shows at each size: labels with their meanings, and the width that a terminal has."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

from judge.prompts.load import parse_task
from tests.tui.screens import press, rows, screen, sitting, text_of
from tests.tui.studies import batch, build, drawn

ROOT = Path(__file__).resolve().parents[2]
CHINESE = "这段文字与问题没有任何关系。"
MEANING = "the passage has nothing to do with the question"
LONG = " ".join(f"Sentence {n} of a long passage says 42." for n in range(900))


def panel(pilot: Pilot[None]) -> str:
    """The labels as they are on the screen, without the breaks of lines."""
    return " ".join(text_of(pilot, "labels").split())


@pytest.mark.parametrize("size", [(80, 24), (100, 40), (120, 40), (200, 50)], ids=str)
@pytest.mark.parametrize("text", ["short", "long"])
async def test_grades_stand_with_their_meanings(size: tuple[int, int], text: str, tmp_path: Path) -> None:
    path = drawn(
        tmp_path,
        "relevance_graded",
        items=1,
        each=1,
        texts={"one": LONG if text == "long" else "Short."},
        n=1,
    )
    async with sitting(path, size=size) as pilot:
        for label in screen(pilot).hand.desk.task.spec.questions[0].labels:
            # A grade is its own key, and is printed once.
            assert f" {label.value} {label.meaning}" in f" {panel(pilot)}"
            assert f"{label.value} {label.value}" not in panel(pilot)
        shown = "\n".join(rows(pilot))
        assert "nothing to do" in shown, "and it is on the screen, not below its end"
        assert len(LONG) > 30_000


@pytest.mark.parametrize(("text", "hidden"), [(LONG, True), ("Short.", False)], ids=["long", "short"])
async def test_codes_alone_where_rows_are_needed_for_the_text(
    text: str, hidden: bool, tmp_path: Path
) -> None:
    """60 columns and 18 rows: eight rows of meanings are more than half of what a long text needs. Tab shows them."""
    path = drawn(tmp_path, "relevance_graded", items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path, size=(60, 18)) as pilot:
        assert ("0 1 2 3" in panel(pilot)) is hidden and (MEANING not in panel(pilot)) is hidden
        await press(pilot, "tab")
        assert MEANING in panel(pilot) or not hidden
        await press(pilot, "tab")
        assert (MEANING not in panel(pilot)) is hidden


async def test_meanings_in_chinese_are_wrapped_by_their_width(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=1, each=1)
    text = (ROOT / "prompts" / "relevance_graded.v2.md").read_text("utf-8")
    batch(path, parse_task(text.replace(MEANING, CHINESE * 6), "chinese.v1.md"), n=1)
    async with sitting(path, size=(80, 24)) as pilot:
        assert "".join(panel(pilot).split()).count(CHINESE) == 6
        assert all(cell_len(row) == 80 for row in rows(pilot))


async def test_a_wide_terminal_has_no_empty_columns_between_text_and_labels(tmp_path: Path) -> None:
    """At 200 columns text ended at 96 and labels began at 157."""
    path = drawn(tmp_path, "relevance_graded", items=1, each=1, texts={"one": LONG}, n=1)
    async with sitting(path, size=(200, 50)) as pilot:
        shown = rows(pilot)
        end = max(len(row[:124].rstrip()) for row in shown[5:40])
        begin = min(row.index("the passage") for row in shown if "the passage" in row)
        assert end > 110 and begin - end < 20


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_a_column_is_empty_between_text_and_scroll_bar(size: tuple[int, int], tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": "x" * 30_000}, n=1)
    async with sitting(path, size=size) as pilot:
        body = pilot.app.screen.query_one("#body", Static).content_region
        bar = pilot.app.screen.query_one("#body-scroll", VerticalScroll).vertical_scrollbar.region
        assert bar.x == body.right + 1
        row = rows(pilot)[body.y + 2]
        assert row[body.right - 1] == "x" and row[body.right] == " "
