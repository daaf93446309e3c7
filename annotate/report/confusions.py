"""Which labels are confused with which: heat maps, and scores label by label."""

from __future__ import annotations

import numpy as np

from annotate.report.cells import counted
from annotate.report.model import (
    COUNTS,
    Block,
    Cell,
    Column,
    Figure,
    Paragraph,
    Section,
    Table,
    heads,
    valued,
)
from annotate.report.subject import Subject
from judge.stats import MISSING, class_scores, confusion


def confusions(subject: Subject) -> Section:
    """Heat maps and scores per label, of each judge against the reference."""
    title = "Which labels are confused"
    reference = subject.reference
    if subject.panel.numeric:
        return Section(
            "confusion",
            title,
            absent=f"the labels are numbers ({subject.panel.level}): there are no classes to confuse",
        )
    if reference is None or not subject.panel.judges:
        return Section("confusion", title, absent="there is no judge, or nothing to compare it with")
    blocks: list[Block] = []
    pairs = [(judge, reference) for judge in subject.panel.judges]
    if subject.majority and subject.reference_kind != "majority" and subject.decided is None:
        pairs.append((subject.majority, reference))
    if len(subject.panel.people) == 2:
        pairs.append((subject.panel.people[1], subject.panel.people[0]))
    for i, (predicted, truth) in enumerate(pairs, 1):
        table = subject.panel.together(predicted, truth)
        if not (table.codes != MISSING).all(axis=1).any():
            blocks.append(Paragraph(f"No unit is labelled by both {predicted} and {truth}.", "note"))
            continue
        blocks.append(_heat_map(subject, predicted, truth, i))
        if predicted in subject.panel.judges:
            blocks += _scores(subject, predicted, truth, i)
    return Section("confusion", title, blocks, ["bootstrap"])


def _heat_map(subject: Subject, predicted: str, truth: str, i: int) -> Figure:
    cells = confusion(subject.panel.together(predicted, truth), predicted, truth)
    labels = list(cells.labels)
    rows: list[list[Cell]] = [
        [label, *(int(n) for n in row), int(row.sum())]
        for label, row in zip(labels, cells.matrix, strict=True)
    ]
    rows.append(["all", *(int(n) for n in cells.matrix.sum(axis=0)), cells.n_units])
    columns = heads("text", f"{truth} (rows) / {predicted} (columns)") + heads("number", *labels, "all")
    caption = f"{predicted} against {truth}: {cells.n_units:,} of {counted(cells.n_asked, 'unit')} that both were asked about"
    right = int(np.trace(cells.matrix))
    wrong = cells.matrix * (1 - np.eye(len(labels), dtype=np.int64))
    text = f"Confusion matrix. On {right:,} of {counted(cells.n_units, 'unit')} both gave the same label."
    if wrong.sum():
        r, c = divmod(int(wrong.argmax()), len(labels))
        text += f" The most frequent confusion: {truth} '{labels[r]}', {predicted} '{labels[c]}', on {counted(int(wrong[r, c]), 'unit')}."
    data = {"matrix": cells.matrix.tolist(), "labels": labels, "rows": truth, "columns": predicted}
    return Figure(
        f"confusion_{i}",
        caption,
        text,
        "heat_map",
        data,
        Table(f"confusion_{i}_cells", "The cells as a table", columns, rows),
    )


def _scores(subject: Subject, predicted: str, truth: str, i: int) -> list[Block]:
    found = {
        m.measure: m
        for m in class_scores(
            subject.panel.together(predicted, truth),
            predicted,
            truth,
            field=subject.panel.field,
            confidence=subject.panel.confidence(predicted, truth),
        )
    }
    whole: list[list[Cell]] = [
        ["accuracy", found["accuracy"], found["accuracy"]],
        ["macro F1", found["macro_f1"], found["macro_f1"]],
    ]
    columns = valued([subject.panel.confidence(predicted, truth)])
    overall = Table(f"scores_{i}", f"{predicted} with {truth} as the truth", columns, whole)
    names = ("precision", "recall", "f1")
    rows: list[list[Cell]] = []
    silent = []
    for label in subject.panel.domain:
        precision, recall, f1 = (found[f"{n}:{label}"] for n in names)
        if f1.n_units:
            rows.append([label, precision, precision.n_units, recall, recall.n_units, f1, f1])
        else:
            silent.append(f"'{label}'")
    columns = [Column("label"), Column("precision", "brief"), Column("units given it", "number")]
    columns += [Column("recall", "brief"), Column("units with it", "number"), Column("F1", "brief"), *COUNTS]
    notes = ["Precision is of the units that were given the label, recall of those that have it, F1 of both."]
    notes += [f"Neither gave {', '.join(silent)}."] if silent else []
    caption = f"{predicted} with {truth} as the truth, label by label"
    return [overall, Table(f"scores_{i}_labels", caption, columns, rows, notes)]
