"""A split of a task's questions as a document."""

from collections.abc import Sequence

from judge.document.blocks import Block, Cell, Document, Notes, Paragraph, Section, Table, heads
from judge.labels.split import Content, Power, Split


def as_document(split: Split, content: Sequence[Content], power: Power, domain: Sequence[str]) -> Document:
    """Return the contents of each part, the difference that the test can detect, and the looks at the sealed test."""
    drawn = split.drawn
    rows: list[list[Cell]] = [
        [c.part, c.n_questions, c.n_labelled_questions, c.n_units, *(c.labels[v] for v in domain)]
        for c in content
    ]
    columns = heads("text", "part") + heads("number", "questions", "with labels", "units", *domain)
    when = f"drawn {drawn.made[:10]}" if drawn.made else "not frozen"
    title = f"{split.task_id}, split by question and stratified by the {drawn.reference} labels for {drawn.field}; {when}, seed {drawn.seed}"
    looks = [
        f"look {look.look}: {look.at[:16].replace('T', ' ')} {look.purpose}, {len(look.runs)} runs, against "
        f"{look.reference}, tested at {look.level:.4g}"
        for look in split.looks
    ]
    rule = f"{split.look_note[0].upper()}{split.look_note[1:]}." if drawn.made else ""
    text = "\n".join(part for part in (_power(power), rule) if part)
    blocks: list[Block] = [Table("parts", "", columns, rows), Paragraph(f"\n{text}"), Notes(looks)]
    return Document(title, sections=[Section("parts", "Parts", blocks)])


def _power(power: Power) -> str:
    if power.difference is None:
        return f"The test cannot show any difference: {power.why}."
    return (
        f"The next look (tested at {power.level:.4g}) detects a kappa difference of {power.difference:.3f} between two judges "
        f"with 80 % power ({power.n_units:,} units, {power.n_questions:,} questions; {power.why}); "
        f"detecting a difference of 0.1 requires about {power.units_for_tenth:,} units."
    )
