"""Tables of a page are sorted in a real browser, by clicks and by keys."""

from pathlib import Path

import pytest

from judge.document import html
from judge.document.blocks import Cell, Document, Section, Table, heads
from judge.types import Measure
from tests.annotate.report_browser import Page, check_page

pytestmark = pytest.mark.real
FIRST = "[...document.querySelectorAll('#t-t tbody tr')].map(r => r.cells[0].textContent)"
SORTED = "[...document.querySelectorAll('#t-t thead th')].map(h => h.getAttribute('aria-sort'))"


def click(column: int) -> str:
    return f"document.querySelectorAll('#t-t thead button')[{column}].click()"


def test_a_click_sorts_by_number_or_text_and_what_is_undefined_stays_last(tmp_path: Path) -> None:
    undefined = Measure("m", None, 0, reason="no unit")
    rows: list[list[Cell]] = [
        ["run 10", 1200, Measure("m", 0.5, 3, low=0.25, high=0.75), 0.0001],
        ["run 9", None, undefined, 0.001],
        ["Run 2", 30, Measure("m", -0.25, 3), 0.2],
        ["run 1", 4, Measure("m", 0.0, 3), None],
    ]
    columns = heads("text", "run") + heads("number", "units") + heads("brief", "value") + heads("p", "p")
    # Two rows are folded away. Sorting is of the whole table.
    table = Table("t", "values", columns, [*rows, ["run 11", 5, undefined, 0.3]], fold=2)
    path = tmp_path / "page.html"
    path.write_text(html.render(Document("title", sections=[Section("s", "section", [table])])), "utf-8")

    async def check(page: Page) -> None:
        assert await page.script(FIRST) == ["run 10", "run 9"]
        assert await page.script("document.querySelectorAll('details tbody tr').length") == 3
        await page.script(click(1))
        assert await page.script(FIRST) == ["run 1", "run 11", "Run 2", "run 10", "run 9"]
        assert await page.script("document.querySelectorAll('details').length") == 0
        assert await page.script(SORTED) == [None, "ascending", None, None]
        await page.script(click(1))
        assert await page.script(FIRST) == ["run 10", "Run 2", "run 11", "run 1", "run 9"]
        await page.script(click(2))
        assert await page.script(FIRST) == ["Run 2", "run 1", "run 10", "run 11", "run 9"]
        await page.script(click(2))
        # Rows without a value keep their order.
        assert await page.script(FIRST) == ["run 10", "run 1", "Run 2", "run 11", "run 9"]
        await page.script(click(3))
        assert await page.script(FIRST) == ["run 10", "run 9", "Run 2", "run 11", "run 1"]
        assert await page.script(SORTED) == [None, None, None, "ascending"]
        # The head of a column is a button, so a key works like a click.
        await page.script("document.querySelectorAll('#t-t thead button')[0].focus()")
        await page.press("Enter")
        assert await page.script(FIRST) == ["run 1", "Run 2", "run 9", "run 10", "run 11"]
        assert page.complaints == []

    check_page(check, path)
