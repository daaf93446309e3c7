"""The document as Markdown with pipe tables. Every text is escaped, so that markup in it stays text."""

from collections.abc import Iterator, Sequence

from annotate.report.cells import grid
from annotate.report.model import NUMBERS, Block, Cases, Document, Facts, Figure, Paragraph, Ruling, Table
from judge.markdown import quoted, text


def render(document: Document) -> str:
    """Return the whole document."""
    return "\n".join(_lines(document)) + "\n"


def short(document: Document) -> str:
    """Return only the blocks of the document, for a paper."""
    lines = [line for s in document.sections for b in s.blocks for line in (*_block(b), "")]
    return "\n".join([*lines, *([text(document.no_ruling)] if document.no_ruling else [])]).rstrip() + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {text(document.title)}"
    yield ""
    for name, value in document.about:
        yield f"- {text(name)}: {text(value)}"
    yield from ("", "## Verdict", "")
    for i, ruling in enumerate(document.rulings, 1):
        yield from _ruling(ruling)
        # A rule that the next judge shares is printed once, after the last of them.
        if all(other.rule != ruling.rule for other in document.rulings[i : i + 1]):
            yield from (f"Rule: {text(ruling.rule)}", "")
    if document.no_ruling:
        yield from (text(document.no_ruling), "")
    for section in document.sections:
        if section.blocks:
            yield from (f"## {text(section.title)}", "")
            for block in section.blocks:
                # The boxes of the verdicts have these numbers already.
                if getattr(block, "key", "") != NUMBERS:
                    yield from (*_block(block), "")
    without_content = [s for s in document.sections if not s.blocks]
    if without_content:
        yield from ("## What this report cannot say", "")
        yield from (f"- {text(s.title)}: {text(s.absent)}." for s in without_content)
        yield ""
    yield from ("## How to read the numbers", "")
    yield from (f"- {text(sentence)}" for sentence in document.reading)


def _ruling(ruling: Ruling) -> Iterator[str]:
    yield from (f"**{text(ruling.decision)}**: {text(ruling.sentence)}", "")
    yield from (text(ruling.because) + ".", "")
    if ruling.numbers and ruling.numbers.rows:
        yield from (*_table(ruling.numbers), "")
    if ruling.like:
        yield from (text(ruling.like), "")
    for warning in ruling.warnings:
        yield from (f"Note: {text(warning)}", "")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield quoted(block.text) if block.style == "quote" else text(block.text)
    elif isinstance(block, Facts):
        yield from (f"**{text(block.caption)}**", "")
        # Markdown has no table without a header.
        yield from _pipes(["", ""], [[text(name), text(value)] for name, value in block.rows], [False, False])
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Figure):
        yield from (text(block.text), "")
        yield from _table(block.table)
    elif isinstance(block, Cases):
        yield from _cases(block)


def _table(table: Table) -> Iterator[str]:
    cells = grid(table)
    rows = [
        [text(cell.flat) + (f" <sup>{cell.marks}</sup>" if cell.marks else "") for cell in row]
        for row in cells.rows
    ]
    shown = table.shown()
    yield from (f"**{text(table.caption)}**", "")
    yield from _pipes([text(h) for h in cells.heads], rows[:shown], cells.numbers)
    for note in table.left_out() + list(table.notes):
        yield from ("", text(note))
    if cells.remarks:
        yield ""
        yield from (f"- {mark}: {text(remark)}" for mark, remark in cells.remarks)


def _pipes(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join(" ---: " if n else " --- " for n in numbers) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _cases(cases: Cases) -> Iterator[str]:
    yield from (f"**{text(cases.caption)}**", "")
    for number, case in enumerate(cases.rows, 1):
        labels = " · ".join(
            f"{text(s.who)}: **{text(s.label)}**" + (f" ({text(s.how_sure)})" if s.how_sure else "")
            for s in case.labels
        )
        unit = text(case.unit_id)
        if case.link:
            unit = f"[{unit}](<{case.link}>)"
        yield from (f"### {number}. unit {unit}", "", labels, "")
        for name, value in case.shown:
            yield from (f"{text(name)}:", "", quoted(value), "")
        for s in case.labels:
            if s.rationale:
                yield from (f"{text(s.who)} says why:", "", quoted(s.rationale), "")
