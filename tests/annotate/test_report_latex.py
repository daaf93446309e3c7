"""The LaTeX report: it compiles, fits the page, and holds what the other formats say beside their tables."""

import re
import subprocess
from pathlib import Path

import pytest

from annotate.report import FORMATS, ReportOptions, build
from judge.document import latex
from judge.document.blocks import Cases, Document, Paragraph
from judge.document.cells import Shown
from judge.document.latex import layouts, lines, pieces
from judge.prompts.load import parse_task
from judge.store import Store
from tests.annotate.report_helpers import U, study
from tests.real import require

LABELS = ("entirely supported by the passage", 'says "refute"', "neutral", "unrelated/other", "undecided_5")
MODELS = ("anthropic/claude-haiku-4-5-20251001-with-a-very-long-suffix", "openai/gpt-5-mini")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Long names, labels with quotes, words that TeX cannot hyphenate, and quoted text."""
    asked = ", ".join("{value: '" + label + "'}" for label in LABELS)
    task = parse_task(
        "---\ntitle: How?\nunit: passage\ninputs: [claim, passage]\nquestions:\n  - field: how\n"
        f"    labels: [{asked}]\nrationale: after\n---\nHow?\n<!-- unit -->\n{{{{ claim }}}}\n{{{{ passage }}}}\n"
        "{{ answer_cue }}\n",
        "how.v1.md",
    )
    made = []
    for i in range(40):
        mine, other = LABELS[i % 5], LABELS[(i + 1) % 5]
        people = {
            n: mine if (i + k) % 4 else other
            for k, n in enumerate(("ann", "bob", "a_person_with_a_long_name"))
        }
        reason = f'Rationale {i}: it says "no".'
        made.append(
            U(
                mine,
                people,
                {MODELS[0]: (other if i % 3 else mine, 0.7, reason), MODELS[1]: mine},
                claim=f'Claim {i} "quoted"',
                text="x" * 300 + f' "and" words, 100 % of them {i}',
                question=f"q{i // 2}",
            )
        )
    path = study(tmp_path_factory.mktemp("study") / "study.db", made, task)
    with Store.open(path, create=False) as store:
        return build(store, ReportOptions(task="how"))


@pytest.mark.real
@pytest.mark.parametrize("page", ["", r"\usepackage[a4paper,margin=2cm]{geometry}"], ids=["article", "wide"])
def test_it_compiles_and_no_table_sticks_out_of_the_page(
    document: Document, page: str, tmp_path: Path
) -> None:
    engine = require("pdflatex")
    (tmp_path / "report.tex").write_text(FORMATS["tex"](document), encoding="utf-8")
    paper = (
        rf"\documentclass{{article}}\usepackage{{booktabs,longtable,array}}{page}"
        r"\begin{document}\input{report.tex}\end{document}"
    )
    (tmp_path / "paper.tex").write_text(paper)
    command = [str(engine), "-interaction=nonstopmode", "-no-shell-escape", "paper.tex"]
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    log = (tmp_path / "paper.log").read_text("utf-8", errors="replace")
    assert not re.findall(r"(?m)^!.*", log)
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    # What TeX calls overfull by less than a point nobody sees.
    assert [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log) if float(x) > 1] == []
    assert "undefined references" not in log
    assert "resizebox" not in (tmp_path / "report.tex").read_text("utf-8")


def test_everything_said_is_text_and_no_comment(document: Document) -> None:
    printed = re.sub(r"(?m)^%.*$", "", FORMATS["tex"](document))
    for section in document.sections:
        if section.absent:
            assert latex.text(section.absent) in printed
        for table in section.tables():
            assert all(latex.text(note) in printed for note in table.notes)
        for block in section.blocks:
            if isinstance(block, Paragraph) and block.style != "quote":
                assert latex.text(block.text) in printed
    cases = [c for s in document.sections for b in s.blocks if isinstance(b, Cases) for c in b.rows]
    assert cases and any(s.rationale for c in cases for s in c.labels)
    for case in cases:
        assert latex.text(case.unit_id) in printed
        assert all(latex.text(s.rationale) in printed for s in case.labels)
    for name, value in document.about:
        assert f"{latex.text(name)} & {latex.text(value)}" in printed
    assert all(latex.text(sentence) in printed for sentence in document.reading)


def test_short_columns_are_as_wide_as_they_are_and_long_texts_are_paragraphs() -> None:
    (narrow,) = layouts(["who", "kappa"], [False, True], [[Shown("ann"), Shown("0.5", "0.1 to 0.9")]], False)
    assert (narrow.indices, narrow.spec) == ((0, 1), "@{}lr@{}")
    # 300 characters cannot stand on a line of some 75: beside `who` (3 characters and a gap of 2) the paragraph has 70
    # with its own gap, of which the text gets 68 / 75.
    (wide,) = layouts(["who", "why"], [False, False], [[Shown("ann"), Shown("word " * 60)]], False)
    assert wide.spec == r"@{}l>{\raggedright\arraybackslash}p{0.91\linewidth}@{}"
    assert wide.room == 70
    # A head of a column of numbers stands in lines, so that the column is hardly wider than its numbers.
    assert lines("difference of means (95 % interval)") == ["difference of", "means (95 %", "interval)"]


def test_columns_that_no_line_takes_are_cut_into_parts_that_name_the_rows() -> None:
    # With gaps of 2 the columns have 9 characters up to "class 9", then 10, the first one 7; a line holds 75, and no part
    # has more than eight columns: 7 + 7 x 9 = 70, 7 + 3 x 9 + 4 x 10 = 74, then 7 + 6 x 10 = 67 twice, and the last four.
    heads = ["label", *(f"class {i}" for i in range(30))]
    rows = [[Shown("x"), *(Shown("12345") for _ in range(30))]]
    parts = layouts(heads, [False] + [True] * 30, rows, False)
    assert [len(part.indices) for part in parts] == [8, 8, 7, 7, 5] and all(p.indices[0] == 0 for p in parts)
    assert [i for part in parts for i in part.indices[1:]] == list(range(1, 31))


def test_long_words_may_be_broken_and_short_ones_not() -> None:
    assert pieces("gpt-5") == ["gpt-5"]
    assert pieces("anthropic/claude-haiku-4") == ["anthropic/", "claude-", "haiku-", "4"]
    assert "".join(pieces("x" * 50)) == "x" * 50 and max(map(len, pieces("x" * 50))) == 14
    assert latex.text("a/b") == "a/b"
    assert latex.text("anthropic/claude-haiku_x") == (
        r"anthropic/\allowbreak{}claude{-}\allowbreak{}haiku\_\allowbreak{}x"
    )
