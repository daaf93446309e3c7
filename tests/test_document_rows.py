"""A page of rows: its filters, its data in parts, and how a browser shows it."""

import asyncio
import json
from pathlib import Path

import pytest

from judge.document.html import render_rows
from judge.document.rows import PART_OF_ROWS, PART_OF_TEXTS, PageRow, RowLabel, RowsPage, RowText
from judge.types import AnnotatorKind
from tests.annotate.report_browser import Page, check_page


def row(n: int) -> PageRow:
    """Row n of a page: it has a score, a passage and a label with a reason."""
    made = PageRow(f"r{n}", f"answer {n}", [f"system s{n % 2}"])
    made.texts = [
        RowText("answer", "", [f"The answer {n} ", ("is quoted", "q"), "."]),
        RowText("passage", "A title", ["The same passage for all."]),
    ]
    made.labels = [RowLabel("m", AnnotatorKind.JUDGE, "grounded", "no", 0.75, "run", f"reason {n}")]
    made.filters = {"System": [f"s{n % 2}"], "Data set": ["d"], "Slice": ["long"] if n % 3 else []}
    made.numbers = {} if n == 4 else {"faithfulness: worst first": (n * 7) % 10 / 10}
    return made


def test_a_filter_that_changes_nothing_is_left_out_and_values_are_counted() -> None:
    page = RowsPage("Answers", "answer", [row(n) for n in range(6)], "as in the file")
    assert [(f.title, dict(f.counts)) for f in page.filters()] == [
        ("System", {"s0": 3, "s1": 3}),
        # Rows 0 and 3 have no value.
        ("Slice", {"long": 4}),
    ]
    assert page.meanings() == {"q": "quoted by a judge"}


def test_shared_texts_are_stored_once_and_the_first_row_is_in_the_first_parts() -> None:
    rows = [row(n) for n in range(PART_OF_ROWS + 1)]
    rows[0].texts += [RowText("passage", "", [f"passage {n}"]) for n in range(PART_OF_TEXTS)]
    data = RowsPage("Answers", "answer", rows, "as in the file").data()
    # 101 answers, the passage of all rows, and 200 more: the first part has the 202 texts of the first row.
    assert sorted(data) == ["row-0", "row-1", "rows", "text-0", "text-1"]
    assert [len(json.loads(data[name])) for name in ("row-0", "row-1", "text-0", "text-1")] == [
        100,
        1,
        202,
        100,
    ]


@pytest.mark.real
def test_rows_are_ordered_filtered_and_quoted(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        render_rows(RowsPage("Answers", "answer", [row(n) for n in range(10)], "as in the file")), "utf-8"
    )

    async def check(page: Page) -> None:
        assert page.complaints == []
        assert await page.script("document.querySelector('#row mark.q').textContent") == "is quoted"

        async def listed(address: str) -> list[str]:
            await page.script(f"location.hash = '{address}'")
            await asyncio.sleep(0.2)
            ids = await page.script(
                "[...document.querySelectorAll('#list a')].map(a => a.firstChild.textContent)"
            )
            return [text.partition(". ")[2] for text in ids]

        # n * 7 mod 10 is 0, 7, 4, 1, (none), 5, 2, 9, 6, 3 for the rows 0 to 9.
        order = "order=faithfulness: worst first"
        worst = ["r0", "r3", "r6", "r9", "r2", "r5", "r8", "r1", "r7", "r4"]
        assert await listed(f"#&{order}") == worst
        assert await listed(f"#&{order}&only.System=s1") == ["r3", "r9", "r5", "r1", "r7"]
        assert await listed("#&only.Slice=long&search=REASON 8") == ["r8"]
        # Names and values that the page does not have change nothing.
        assert await listed("#&only.System=gone&length=3&order=x") == [f"r{n}" for n in range(10)]
        # A person would have clicked the addresses, and the browser notes that nobody did.
        assert [c for c in page.complaints if "NavigationEntryMarkedSkippable" not in c] == []

    check_page(check, file)


@pytest.mark.real
def test_a_page_without_rows_says_so(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(render_rows(RowsPage("Answers", "answer", [], "as in the file")), "utf-8")

    async def check(page: Page) -> None:
        assert await page.script("document.getElementById('count').textContent") == "no answer"
        assert page.complaints == []

    check_page(check, file)
