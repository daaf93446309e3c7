"""Tables and code are laid out on the screen, and whatever is stored refers to the text of the study."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from annotate.tui.layout import lay_out, replacements
from annotate.tui.untrusted import make_visible
from tests.tui.answers import build_answers
from tests.tui.screens import press, rows, screen, sitting, text_of
from tests.tui.studies import NASTY, batch, drawn
from tests.tui.test_drag import drag, marked
from tests.tui.test_moving import FILLER, rule

SMALL = "| Year | City | Score |\n|---|:-:|--:|\n| 2001 | 東京 | 3.5 |\n| 2002 | a \\| b | 12.75 |"
HEADERS = [
    "Year",
    "Country",
    "Capital",
    "People",
    "Area",
    "Language",
    "Currency",
    "River",
    "Mountain",
    "Founded",
]
TABLE = "\n".join(
    ["| " + " | ".join(HEADERS) + " |", "|" + "---|" * 10]
    + ["| " + " | ".join(f"{name.lower()} {n} 42" for name in HEADERS) + " |" for n in range(1, 5)]
)
"""Ten columns of about ten characters: over 130 columns of a terminal."""
SCRIPTS = (
    "| السنة | المدينة | العدد |\n|---|---|---:|\n| 2001 | القاهرة | 42 |\n| 2002 | دمشق | 7 |\n\nهذا نص عربي عن المدن.",
    "| 年份 | 城市 | 人口 |\n|---|---|---:|\n| 2001 | 北京 | 1300万 |\n| 2002 | 上海市 | 42 |\n\n这是一段关于城市的文字。",
    "| 年 | 都市 | 人口 |\n|---|:-:|---:|\n| 2001年 | 東京 | 1,300万 |\n| 2002年 | ニューヨーク | 42 |\n\n```\nif 東京:\n    print('"
    + "とても長い文字列です" * 7
    + "')\n```",
    "| ปี | เมือง | ประชากร |\n|---|---|---:|\n| 2544 | กรุงเทพมหานคร | 42 |\n| 2545 | เชียงใหม่ | 7 |\n\nข้อความเกี่ยวกับเมือง",
)
"""Arabic, Chinese, Japanese and Thai: each a table, and a text or code."""
CODE = """Call it like this:

```python
def number(claim):
    if claim:
        return first_of_all_the_numbers(claim, start=0, end=42) or another_number_that_is_long(claim)
```
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_table_that_fits_is_aligned(end: str) -> None:
    # The widest cell of each column: "Year", "a \| b" (6), "Score" and "12.75" (5); 東京 takes four columns.
    assert lay_out(SMALL.replace("\n", end), 40).text.split("\n") == [
        "│ Year │  City  │ Score │",
        "├──────┼────────┼───────┤",
        "│ 2001 │  東京  │   3.5 │",
        "│ 2002 │ a \\| b │ 12.75 │",
    ]


def test_a_table_that_does_not_fit_is_printed_row_by_row() -> None:
    raw = "Key | Value\n--- | ---\na | " + "long " * 8 + "\nb |\nc | d | more\n\nText | behind it."
    assert lay_out(raw, 30).text == (
        "│ Key │ Value │\n" + "─" * 30 + "\n"
        "Key: a\nValue: " + ("long " * 8).strip() + "\n\n"
        "Key: b\n\n"
        "Key: c\nValue: d\ncolumn 3: more\n\nText | behind it."
    )  # fmt: skip


def test_code_keeps_its_indentation_and_long_lines_hang() -> None:
    assert lay_out(CODE, 60).text.split("\n")[4:8] == [
        "    if claim:",
        "        return first_of_all_the_numbers(claim, start=0, ",
        "          end=42) or another_number_that_is_long(claim)",
        "```",
    ]
    # Indented by four spaces behind an empty line is code, too; a word without a space is broken where the columns end.
    assert lay_out("Text\n\n\t" + "x" * 30, 20).text == "Text\n\n    " + "x" * 16 + "\n      " + "x" * 14


@pytest.mark.parametrize("raw", SCRIPTS, ids=["arabic", "chinese", "japanese", "thai"])
def test_tables_of_every_script_are_aligned_by_the_columns_they_take(raw: str) -> None:
    table = [line for line in lay_out(raw, 80).text.split("\n") if line[:1] in ("│", "├")]
    assert len(table) == 4 and len({cell_len(line) for line in table}) == 1


@pytest.mark.parametrize(
    "raw",
    [
        *NASTY.values(),
        FILLER * 9,
        "a | b\nc | d",
        "Title\n---\nText | more",
        "a|b\n-|-|-",
        "Text\n    goes on in this line, which stands in further than the others do.",
        "`a | b`",
        "- | -\n\nx",
    ],
)
def test_a_text_without_table_or_code_is_as_it_was(raw: str) -> None:
    raw = raw[:3000].replace("\t", "")
    assert lay_out(raw, 40) == make_visible(raw)


PIECES = st.lists(
    st.sampled_from(
        ["|", " | ", "|---|", "-|-", ":-:", "\n", "\n\n", "\r\n", "\t", "    ", "```", "~~~", "a", "東", "\\|", "\u202e",
         "word ", "👩‍👩‍👧", "x" * 30, *SMALL.split("\n"), SMALL, "\n\n    some indented code, which is long"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@given(PIECES, st.integers(10, 60))
def test_offsets_lead_to_the_text_of_the_study_and_back(raw: str, columns: int) -> None:
    layout, view = list(replacements(raw, columns)), lay_out(raw, columns)
    replaced = {at for start, end, _ in layout for at in range(start, end)}
    # Only the signs of a table are replaced, and each once.
    assert sum(end - start for start, end, _ in layout) == len(replaced)
    assert not {raw[at] for at in replaced} - set("|-: \t")
    # `at` never goes back, nor does `end`; a span never ends before it begins.
    places = [view.find_offset(at) for at in range(len(raw) + 1)]
    assert places == sorted(places)
    ends = [view.end(at) for at in range(len(raw) + 1)]
    assert ends == sorted(ends) and ends[0] == 0 and places[-1] == len(view.text)
    assert all(
        view.find_offset(at) < view.end(at + 1) or raw[at] == "\u200d" or at in replaced or raw[at] in "\r\n"
        for at in range(len(raw))
    )
    kept = [at for at in range(len(raw)) if at not in replaced and make_visible(raw[at]).text == raw[at]]
    # What is kept is there as it was, and its place leads back to it.
    assert "".join(view.text[places[at]] for at in kept) == "".join(raw[at] for at in kept)
    # Only what is shown as nothing shares the place of the character behind it.
    assert all(view.raw(places[at], len(raw)) == at for at in kept if not at or places[at - 1] < places[at])
    # Without what the layout has added, and with what it has replaced, the text is the one that was shown before.
    without = view.text
    for (start, end), (a, b, new) in reversed(
        list(zip(view.added, [one for one in layout if one[1] > one[0] or one[2]], strict=True))
    ):
        assert without[start:end] == new
        without = without[:start] + make_visible(raw[a:b]).text + without[end:]
    assert without == make_visible(raw).text


@given(st.text("ab 東x👍", min_size=40, max_size=200).map("a{}".format), st.integers(20, 60))
def test_rows_of_code_fit(line: str, columns: int) -> None:
    shown_rows = lay_out(f"```\n    {line}\n```", columns).text.split("\n")
    assert max(map(cell_len, shown_rows)) <= columns
    assert "".join(row[6 if n else 4 :] for n, row in enumerate(shown_rows[1:-1])) == line


async def test_evidence_in_a_table_is_stored_as_the_text_has_it(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": f"Before it.\n\n{SMALL}\n\nAfter it."}, n=1)
    async with sitting(path) as pilot:
        assert any("│ 2001 │  東京  │   3.5 │" in row for row in rows(pilot))
        assert rule(pilot) == "~ raw text"
        await drag(pilot, "2001", "3.5")
        assert marked(pilot) == ["2001 | 東京 | 3.5"]
        await press(pilot, "tilde")
        assert any("| 2001 | 東京 | 3.5 |" in row for row in rows(pilot)) and rule(pilot) == ""
        assert "raw text" in text_of(pilot, "message")
        await drag(pilot, "2002", "2002")
        assert marked(pilot) == ["2001 | 東京 | 3.5", "2002"]
        await press(pilot, "ctrl+r")
        assert any("│ 2002 │ a \\| b │ 12.75 │" in row for row in rows(pilot))


async def test_the_cursor_of_evidence_is_seen_on_each_word_of_a_table(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": SMALL}, n=1)
    async with sitting(path) as pilot:
        await press(pilot, "asterisk")
        for _ in range(12):
            picker = screen(pilot).hand.evidence.picker  # type: ignore[union-attr]
            text = screen(pilot).view.text.texts[0]  # type: ignore[union-attr]
            assert text.shown.text[text.shown.find_offset(picker.start) : text.shown.end(picker.end)].strip()
            await press(pilot, "right")


async def test_matches_in_a_table_are_reached_and_highlighted_alone(tmp_path: Path) -> None:
    """Ten columns at 80: "Claim number 0" is looked for in the rows, whose padding and headers are no match."""
    text = f"{FILLER * 60}\n\n{TABLE.replace('river 3', 'number')}\n\n{FILLER * 60}"
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path) as pilot:
        assert rule(pilot).endswith("0 %, 1 match below")
        await press(pilot, "slash", *"number", "enter", "enter")
        await pilot.pause()
        assert any("River: number 42" in row for row in rows(pilot))
        before = [row for row in rows(pilot) if "|" in row or "River" in row]
        assert before and not any("|" in row for row in before)


@pytest.mark.parametrize("size", [(80, 24), (100, 40), (120, 40), (200, 50)], ids=str)
async def test_what_is_laid_out_is_not_wrapped_again(size: tuple[int, int], tmp_path: Path) -> None:
    """A table takes one row a line, and code hangs, in the columns that the pane really has."""
    exact = "x" * 400
    path = drawn(tmp_path, items=1, each=1, texts={"one": f"{TABLE}\n\n```\n{exact}\n```"}, n=1)
    async with sitting(path, size=size) as pilot:
        view = screen(pilot).view
        width = pilot.app.screen.query_one("#body").size.width
        longest = max(cell_len(line) for line in view.text.body.plain.split("\n") if "x" * 20 in line)  # type: ignore[union-attr]
        assert longest == width == view._text_columns(False)


@pytest.mark.parametrize("size", [(120, 40), (131, 40), (200, 50), (300, 50)], ids=str)
async def test_two_texts_side_by_side_share_the_columns(size: tuple[int, int], tmp_path: Path) -> None:
    path = build_answers(tmp_path / "s.db")
    batch(path, "grounding", n=3, where="answer_system = 'model' AND item_id = 'd:bridge'")
    async with sitting(path, size=size) as pilot:
        widths = [pilot.app.screen.query_one(f"#{name}").size.width for name in ("body", "aside")]
        assert min(widths) == screen(pilot).view._text_columns(True)


async def test_raw_text_and_back_keep_the_place(tmp_path: Path) -> None:
    text = f"{TABLE}\n\n" + "\n".join(f"Line {n} of the text." for n in range(200))
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path) as pilot:
        await press(pilot, *["space"] * 9)

        def first() -> str:
            return next(m[0] for row in rows(pilot) if (m := re.search(r"Line \d+", row)))

        line = first()
        for _ in range(2):
            await press(pilot, "tilde")
            await pilot.pause()
            assert first() == line


async def test_the_key_of_raw_text_says_when_nothing_is_laid_out(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=2, texts={"one": "No table here.", "two": TABLE}, n=2)
    async with sitting(path) as pilot:
        for _ in range(2):
            has_table = "Mountain" in "\n".join(rows(pilot))
            for message in ("raw text", "") if has_table else ("nothing to lay out",) * 2:
                await press(pilot, "tilde")
                await pilot.pause()
                assert message in text_of(pilot, "message")
                assert screen(pilot).view.raw is (message == "raw text")
            await press(pilot, "right")
