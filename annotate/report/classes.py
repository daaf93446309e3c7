"""Results for each label: confusions (heat maps and scores), label shares, and the calibration of probabilities."""

from __future__ import annotations

import numpy as np

from annotate.report.people import tie_note
from annotate.report.subject import MANY, Subject
from judge.document.blocks import (
    COUNTS,
    Block,
    Cell,
    Column,
    Figure,
    Paragraph,
    Section,
    Table,
    heads,
    interval_head,
    make_value_columns,
)
from judge.document.cells import format_count
from judge.stats import MISSING, calibration, class_scores, confusion, label_shares, mean, temperature
from judge.stats.ratings import BoolArray, FloatArray
from judge.types import Json


def confusions(subject: Subject) -> Section:
    """Return the section that compares each judge with the reference, with heat maps and scores for each label."""
    title = "Which labels are confused"
    reference = subject.reference
    if subject.panel.numeric:
        return Section(
            "confusion",
            title,
            absent=f"the labels are numbers ({subject.panel.level}): there are no classes to confuse",
        )
    if reference is None or not subject.panel.judges:
        return Section("confusion", title, absent="there is no judge, or no reference to compare it with")
    blocks: list[Block] = []
    pairs = [(judge, reference) for judge in subject.panel.judges]
    if subject.majority and subject.reference_kind != "majority" and subject.decided is None:
        pairs.append((subject.majority, reference))
    # The confusions between two people show which labels are hard for everybody.
    if len(subject.panel.people) == 2:
        pairs.append((subject.panel.people[1], subject.panel.people[0]))
    for i, (predicted, truth) in enumerate(pairs, 1):
        table = subject.panel.select_common(predicted, truth)
        if not (table.codes != MISSING).all(axis=1).any():
            blocks.append(Paragraph(f"No unit is labelled by both {predicted} and {truth}.", "note"))
            continue
        blocks.append(_heat_map(subject, predicted, truth, i))
        if predicted in subject.panel.judges:
            blocks += _scores(subject, predicted, truth, i)
    return Section("confusion", title, blocks, ["bootstrap"])


def _heat_map(subject: Subject, predicted: str, truth: str, i: int) -> Figure:
    cells = confusion(subject.panel.select_common(predicted, truth), predicted, truth)
    labels = list(cells.labels)
    rows: list[list[Cell]] = [
        [label, *(int(n) for n in row), int(row.sum())]
        for label, row in zip(labels, cells.matrix, strict=True)
    ]
    rows.append(["all", *(int(n) for n in cells.matrix.sum(axis=0)), cells.n_units])
    columns = heads("text", f"{truth} (rows) / {predicted} (columns)") + heads("number", *labels, "all")
    caption = f"{predicted} against {truth}: {cells.n_units:,} of {format_count(cells.n_asked, 'unit')} that both were asked about"
    right = int(np.trace(cells.matrix))
    # Exclude the diagonal, where both gave the same label.
    wrong = cells.matrix * (1 - np.eye(len(labels), dtype=np.int64))
    text = (
        f"Confusion matrix. Both gave the same label on {right:,} of {format_count(cells.n_units, 'unit')}."
    )
    notes: list[str] = []
    # There are shares in addition to counts only if units were drawn with unequal probabilities.
    if cells.shares is not None:
        text += (
            f" That is an estimated {np.trace(cells.shares):.1%} of all units, because the drawn units represent different "
            "numbers of units."
        )
        columns += heads("share", *(f"{label}, of all" for label in labels))
        for row, part in zip(rows, [*cells.shares, cells.shares.sum(axis=0)], strict=True):
            row += [float(share) for share in part]
        notes.append(
            "Counts are of the drawn units. The columns 'of all' have weighted estimates of the shares of all units."
        )
    if wrong.sum():
        r, c = divmod(int(wrong.argmax()), len(labels))
        text += (
            f" The most frequent confusion is {truth} '{labels[r]}' and {predicted} '{labels[c]}', on "
            f"{format_count(int(wrong[r, c]), 'unit')}."
        )
    data = {"matrix": cells.matrix.tolist(), "labels": labels, "rows": truth, "columns": predicted}
    table = Table(f"confusion_{i}_cells", "The cells as a table", columns, rows, notes)
    return Figure(f"confusion_{i}", caption, text, "heat_map", data, table)


def _scores(subject: Subject, predicted: str, truth: str, i: int) -> list[Block]:
    confidence = subject.panel.confidence(predicted, truth)
    pair = subject.panel.select_common(predicted, truth)
    measured = class_scores(pair, predicted, truth, field=subject.panel.field, confidence=confidence)
    scores = {m.measure: m for m in measured}
    overall_rows: list[list[Cell]] = [
        ["accuracy", scores["accuracy"], scores["accuracy"]],
        ["macro F1", scores["macro_f1"], scores["macro_f1"]],
    ]
    caption = f"{predicted} with {truth} as the truth"
    overall = Table(f"scores_{i}", caption, make_value_columns([confidence]), overall_rows)
    names = ("precision", "recall", "f1")
    rows: list[list[Cell]] = []
    unused = []
    for label in subject.panel.domain:
        precision, recall, f1 = (scores[f"{n}:{label}"] for n in names)
        if f1.n_units:
            rows.append([label, precision, precision.n_units, recall, recall.n_units, f1, f1])
        else:
            unused.append(f"'{label}'")
    columns = [Column("label"), Column("precision", "brief"), Column("units given it", "number")]
    columns += [Column("recall", "brief"), Column("units with it", "number"), Column("F1", "brief"), *COUNTS]
    notes = [
        "Precision is the share of right labels among the units that were given the label, and recall among the units "
        "that have it. F1 is the harmonic mean of both."
    ]
    notes += [f"Labels that neither gave: {', '.join(unused)}."] if unused else []
    return [overall, Table(f"scores_{i}_labels", f"{caption}, label by label", columns, rows, notes)]


SHOWN = 12


def class_shares(subject: Subject) -> Section:
    """Return the section on how often each annotator gives each label."""
    title = "How often each label is given"
    if subject.panel.numeric:
        return _means(subject, title)
    rows: list[list[Cell]] = []
    drawn: list[dict[str, Json]] = []

    def add(name: str, column: str, mask: BoolArray | None = None, draw: bool = True) -> None:
        table = subject.panel.table.select([column])
        table = table if mask is None else table.subset(mask)
        # A judge labelled all units, not a sample, so its own shares need no weights.
        if mask is not None or column not in subject.panel.judges:
            table = subject.panel.add_weights(table, column)
        shares = label_shares(table)[column]
        n = int((table.codes != MISSING).sum())
        if shares is None:
            rows.append([name, *([None] * len(table.domain)), n])
            return
        rows.append([name, *(shares[label] for label in table.domain), n])
        if draw:
            drawn.append({"name": name, "shares": [shares[label] for label in table.domain], "n": n})

    for judge in subject.panel.judges:
        add(judge, judge)
        reference = subject.reference
        if reference is not None:
            # Shares on all units and on labelled ones differ if the sample differs from the rest.
            labelled = subject.panel.asked_units[reference] & subject.has_label(reference)
            if (subject.has_label(judge) & ~labelled).any():
                add(f"{judge}, on the units with {subject.reference_text}", judge, labelled)
    if subject.majority:
        add(subject.majority, subject.majority)
    for other in subject.panel.known:
        add(other, other)
    if len(subject.panel.people) > 1:
        of_people = subject.panel.add_weights(subject.panel.among_people)
        total = int(of_people.counts.sum())
        # A label for a drawn unit counts for as many units as the unit represents.
        weights = np.ones(of_people.n_units) if of_people.weights is None else of_people.weights
        counts = weights @ of_people.counts
        shares = (counts / counts.sum()).tolist() if total else []
        rows.append(["all people's labels", *shares, total])
        drawn.append({"name": "all people's labels", "shares": shares, "n": total})
    for person in subject.panel.people:
        # Bars for more people would fill a page.
        add(person, person, draw=len(subject.panel.people) <= MANY)
    columns = heads("text", "given by") + heads("share", *subject.panel.domain) + heads("number", "labels")
    table = Table("shares", "Share of each label among the labels given", columns, rows, fold=SHOWN)
    parts = [
        f"{d['name']}: "
        + ", ".join(
            f"{label} {share:.0%}" for label, share in zip(subject.panel.domain, d["shares"], strict=True)
        )
        for d in drawn[:3]
    ]
    text = "Stacked bars, one for each source of labels. " + "; ".join(parts) + "."
    data = {"rows": drawn, "labels": list(subject.panel.domain)}
    blocks: list[Block] = (
        [Figure("shares_figure", "Label shares", text, "bars", data, table)] if drawn else [table]
    )
    if tied := tie_note(subject):
        blocks.append(Paragraph(tied, "note"))
    return Section("shares", title, blocks)


def _means(subject: Subject, title: str) -> Section:
    """Return the section with each annotator's mean, for a field whose labels are numbers."""
    panel = subject.panel
    names = (*panel.judges, *panel.known, *panel.people)
    rows: list[list[Cell]] = []
    for name in names:
        average = mean(
            panel.numbers(name)[:, 0],
            measure="mean",
            clusters=panel.select_common(name).clusters,
            field=panel.field,
            annotators=(name,),
            confidence=panel.confidence(name),
        )
        rows.append([name, average, average])
    head = interval_head("mean", map(panel.confidence, names))
    columns = heads("text", "given by") + heads("brief", head) + COUNTS
    table = Table("shares", "Mean of the numbers given", columns, rows, fold=SHOWN)
    return Section("shares", title, [table], ["bootstrap"])


def reliability(subject: Subject) -> Section:
    """Return the section on calibration, with scores and a reliability diagram for each judge with stored probabilities.

    The scores are the expected calibration error (ECE), the Brier score and the log loss.
    """
    title = "Are the judge's probabilities calibrated?"
    stored = [j for j in subject.panel.judges if j in subject.panel.distributions]
    if not stored:
        if subject.table:
            return Section("reliability", title, absent="no column of probabilities was read")
        reason = (
            "no label probabilities from a judge are stored (they require a model that returns token log-probabilities, and "
            "a task with one question)"
        )
        return Section("reliability", title, absent=reason)
    if subject.reference is None:
        return Section("reliability", title, absent="there is no reference to compare the probabilities with")
    blocks: list[Block] = []
    for i, judge in enumerate(stored, 1):
        blocks += _reliability(subject, judge, subject.reference, i)
    return Section("reliability", title, blocks, ["ece"])


def _reliability(subject: Subject, judge: str, reference: str, i: int) -> list[Block]:
    mask = subject.panel.asked_units[judge] & subject.panel.asked_units[reference]
    weights = subject.panel.design_weights(judge, reference)
    # A unit outside the draw does not represent other units.
    if weights is not None:
        mask = mask & np.isfinite(weights)
        weights = weights[mask]
    masses = subject.panel.distributions[judge].on(mask)
    # Some probability can be on tokens that do not stand for a label.
    assigned = masses.sum(axis=1, keepdims=True)
    probabilities = np.divide(masses, assigned, out=np.full_like(masses, np.nan), where=assigned > 0)
    codes = subject.panel.labels_of(reference, mask)
    clusters = subject.panel.table.clusters[mask]
    sure = subject.panel.confidence(judge)
    errors = calibration(
        probabilities, codes, clusters=clusters, field=subject.panel.field, weights=weights, confidence=sure
    )
    named = {
        "expected calibration error (10 bins)": errors.ece,
        "Brier score": errors.brier,
        "log loss": errors.log_loss,
    }
    rows: list[list[Cell]] = [[name, m, m] for name, m in named.items()]
    caption = f"Calibration of {judge} against {subject.reference_text}"
    numbers = Table(f"calibration_{i}", caption, make_value_columns([sure]), rows)
    notes = [_describe_unassigned(assigned)]
    if weights is not None:
        notes.append(
            "Units were drawn with unequal probabilities, so all numbers here are weighted and have no interval."
        )
    # A temperature above 1 flattens the probabilities: the judge was overconfident.
    scale, reason = temperature(probabilities, codes, weights)
    if scale is not None:
        way = "over" if scale > 1 else "under"
        notes.append(
            f"The temperature that fits best is {scale:.2f}: the judge is {way}confident. Probabilities are shown without scaling."
        )
    else:
        notes.append(f"No temperature is fitted: {reason}.")
    blocks: list[Block] = []
    used = [b for b in errors.bins if b.n]
    if used:
        cells: list[list[Cell]] = [
            [f"{b.low:.1f} to {b.high:.1f}", b.n, b.confidence, b.accuracy] for b in used
        ]
        columns = heads("text", "probability") + heads("number", "units")
        columns += heads("share", "mean probability", "right")
        text = (
            f"Reliability diagram over {format_count(sum(b.n for b in used), 'unit')}: for each bin of the chosen label's probability, the "
            f"share of units on which the label equals {subject.reference_text}. On the diagonal, probability and share are equal."
        )
        data = {"bins": [[b.low, b.high, b.n, b.confidence, b.accuracy] for b in errors.bins]}
        table = Table(f"reliability_{i}_bins", "The bins as a table", columns, cells)
        blocks.append(Figure(f"reliability_{i}", f"Reliability of {judge}", text, "reliability", data, table))
    return [*blocks, numbers, *(Paragraph(n, "note") for n in notes)]


def _describe_unassigned(assigned: FloatArray) -> str:
    finite = assigned[np.isfinite(assigned)]
    if not len(finite):
        return "No unit with a reference label has probabilities."
    lost = float(1 - finite.mean())
    if lost < 0.0001:
        return "All probability mass was on tokens that represent a label."
    return (
        f"On average, {lost:.2%} of the probability mass was on tokens that do not represent a label. This mass is left "
        "out, and the remaining mass is scaled to 1."
    )
