"""Documents on a terminal: dot plots of characters, aligned marks, tables in parts, listings without rows."""

import re

import pytest

from judge.document.blocks import (
    Document,
    NextStep,
    Section,
    Table,
    VerdictBox,
    dot,
    dot_plot,
    heads,
    list_measures,
    list_rows,
)
from judge.document.terminal import Screen, render
from judge.notes import Note
from judge.types import Measure


def show(*blocks: object, width: int | None = None) -> list[str]:
    return render(Document("", sections=[Section("s", "", blocks)]), Screen(width)).split("\n")  # type: ignore[arg-type]


def drawn(*rows: tuple[str, Measure | None]) -> list[str]:
    """The lines of the rows of a dot plot, from the first column of the scale on."""
    _, scale, *lines = show(dot_plot("k", "kappa", "", [dot(name, m) for name, m in rows], is_text=True))
    return [line[scale.index("-0.4") :] for line in lines]


def test_a_dot_plot_puts_each_number_on_its_column() -> None:
    # 57 columns from -0.4 to 1: 40 a unit, so that 0 is column 16, 0.4 column 32, 1 the last.
    # 0.3 is column 28, 0.5 column 36; -0.1 is column 12, 0.1 column 20.
    assert drawn(
        ("a", Measure("cohen_kappa", 0.4, 20, low=0.3, high=0.5)),
        # An interval that contains chance crosses the mark.
        ("long name", Measure("cohen_kappa", 0.05, 20, low=-0.1, high=0.1)),
        ("", Measure("cohen_kappa", None, 20, reason="why")),
        ("", None),
        # Values outside the scale are at its ends.
        ("", Measure("cohen_kappa", 1.0, 20, low=-1.0, high=1.0)),
    ) == [
        " " * 16 + "┊" + " " * 11 + "├───●───┤",
        " " * 12 + "├───┼─●─┤",
        " " * 16 + "┊",
        " " * 16 + "┊",
        "├" + "─" * 15 + "┼" + "─" * 39 + "●",
    ]


def test_remarks_are_printed_once_for_all_tables_and_do_not_move_the_numbers() -> None:
    rows = [
        Measure("a", 0.5, 10, low=0.25, high=0.75, notes=("one",)),
        Measure("b", 0.5, 10, low=0.25, high=0.75, notes=("one", "two")),
        Measure("c", 0.5, 10, low=0.25, high=0.75),
    ]
    lines = show(list_measures("t", "first", rows), list_measures("u", "second", rows[:1]))
    assert lines[-2:] == ["[a] one", "[b] two"] and sum("one" in line for line in lines) == 1
    assert len({line.index("0.500") for line in lines[3:6]}) == 1


def test_a_terminal_of_80_columns_gets_parts_that_each_name_the_rows() -> None:
    columns = heads("text", "system") + heads("number", *(f"measure number {n}" for n in range(12)))
    table = Table("t", "values", columns, [[f"system {i}", *[0.5] * 12] for i in range(3)])
    for width in (80, 160):
        lines = show(table, width=width)
        assert max(map(len, lines)) <= width
        heads_shown = [line for line in lines if line.lstrip().startswith("system  ")]
        assert " ".join(heads_shown).count("measure number") == 12
    assert len(show(table)) < len(show(table, width=160)) < len(show(table, width=80))


def test_a_listing_has_its_columns_even_without_rows_and_numbers_only_if_all_are() -> None:
    assert show(list_rows([], ["run", "units"]))[0].split() == ["run", "units"]
    rows = [{"run": "1e5", "units": 1234, "ok": True, "names": ["a", "b"], "n": None}]
    shown = show(list_rows(rows, ["run", "units", "ok", "names", "n"]))
    assert (
        shown[2].split("  ")[0] == "1e5" and "1,234" in shown[2] and "True" in shown[2] and "a, b" in shown[2]
    )


def test_a_remark_has_its_numbers_where_they_are_the_same_or_the_smallest() -> None:
    few = [Note("few_units", n=n, least=50) for n in (12, 30)]
    rows = [Measure("a", 0.5, 12, notes=(few[0],)), Measure("b", 0.5, 30, notes=(few[1],))]
    assert show(list_measures("t", "", rows[:1]))[-1] == f"[a] {few[0]}"
    assert show(list_measures("t", "", rows))[-1] == f"[a] {few[0]} (the smallest of 2 such numbers)"


def test_each_part_repeats_as_many_columns_as_name_the_rows() -> None:
    columns = heads("text", "stratum", "measure", "remark") + heads(
        "number", *(f"measure number {n}" for n in range(6))
    )
    rows = [
        [stratum, measure, "same", *[0.5] * 6]
        for stratum in ("all", "fast")
        for measure in ("recall", "precision")
    ]
    lines = show(Table("t", "", columns, rows), width=80)
    parts = [line.split()[:3] for line in lines if "measure number" in line]
    assert len(parts) > 1 and all(part[:2] == ["stratum", "measure"] for part in parts)
    assert [line.split()[:2] for line in lines if line.startswith("fast")] == [
        ["fast", "recall"],
        ["fast", "precision"],
    ] * len(parts)
    assert sum("remark" in line for line in lines) == 1


def test_a_dot_plot_fits_a_narrow_terminal() -> None:
    rows = [dot("a judge with a name of thirty c", Measure("cohen_kappa", 1.0, 20, low=-1.0, high=1.0))]
    for width in (60, 80, 160):
        lines = show(dot_plot("k", "kappa", "", rows, is_text=True), width=width)
        # The name takes 31 columns, the value 9, the gaps 6, and the scale at least 22.
        assert max(map(len, lines)) == min(max(width, 31 + 9 + 6 + 22), 31 + 9 + 6 + 57)


def test_names_from_files_cannot_add_lines_or_move_the_terminal() -> None:
    measure = Measure("cohen_kappa", 0.5, 20, low=0.4, high=0.6)
    picture = dot_plot("k", "kappa", "", [dot("a\n\x1b[31mb", measure), dot("c", measure)], is_text=True)
    lines = show(picture, Table("t", "", heads("text", "x\ny", "z"), [["a\nb", "\x1b]0;c"]]))
    assert (
        len([line for line in lines if "●" in line]) == 2
        and len({line.index("●") for line in lines if "●" in line}) == 1
    )
    assert (
        "\x1b" not in "".join(lines)
        and any("a b" in line for line in lines)
        and any("x y" in line for line in lines)
    )


def test_states_have_colours_on_a_terminal_only_and_no_text_can_add_one() -> None:
    box = VerdictBox(
        "m",
        "do not trust",
        "Do not trust \x1b[32mm.",
        "n = 4.",
        failed=["too low"],
        steps=[NextStep("Read.")],
    )
    rows = [["trust", 0.5], ["a longer name", 0.25]]
    table = Table("t", "states", heads("text", "state") + heads("number", "share"), rows)
    document = Document("A report", boxes=[box], sections=[Section("s", "", [table])])
    plain, coloured = render(document), render(document, Screen(80, True))
    # Colours change nothing else: without the sequences, the texts and the widths of the columns are the same.
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain and "\x1b" not in plain
    # Red and bold; the sequence of the text itself is shown as text.
    assert "\x1b[1;31m✕ DO NOT TRUST: Do not trust \\x1b[32mm.\x1b[0m" in coloured
    assert "\x1b[1;32mtrust\x1b[0m " in coloured and "\x1b[1mstates:\x1b[0m" in coloured
    assert "What fails:\n  - too low" in plain and "  1. Read." in plain


@pytest.mark.parametrize(
    ("is_terminal", "no_colour", "term", "expected"),
    [
        (False, "", "xterm", Screen()),
        (True, "", "xterm", Screen(70, True)),
        (True, "1", "xterm", Screen(70)),
        (True, "", "dumb", Screen(70)),
    ],
)
def test_colours_need_a_terminal_that_wants_them(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, no_colour: str, term: str, expected: Screen
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    for name, value in (("NO_COLOR", no_colour), ("TERM", term), ("COLUMNS", "70")):
        monkeypatch.setenv(name, value)
    assert Screen.of_stdout() == expected
