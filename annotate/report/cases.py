"""Units on which the judge and the reference differ, each with its texts and all of its labels."""

from collections.abc import Sequence

import numpy as np

from annotate.report.subject import Subject
from judge.console import unit_link
from judge.document.blocks import Block, CaseLabel, Cases, Disagreement, Paragraph, Section
from judge.document.cells import format_count
from judge.labels import relation
from judge.prompts.inputs import LIST_INPUTS
from judge.stats.aggregate import tally_votes
from judge.stats.ratings import FloatArray, IntArray
from judge.store import Store
from judge.store.inputs import decode
from judge.types import Json

LONGEST = 1500
"""The maximum number of characters of a text that are shown."""
VOTES = 8
"""The maximum number of people whose labels for a unit are listed. If there are more, the labels are only counted."""
MOST_LISTED = 50
"""The maximum number of disagreements listed for each judge."""
DEFAULT_INPUTS = ("question", "claim", "passage_title", "passage")


def disagreements(store: Store, subject: Subject) -> Section:
    """Return the section on the units where a judge differs from the reference, the most informative units first."""
    title = "Where judge and reference differ"
    reference = subject.reference
    if reference is None or not subject.panel.judges:
        return Section("disagreements", title, absent="there is no judge, or no reference to compare it with")
    blocks: list[Block] = []
    for i, judge in enumerate(subject.panel.judges, 1):
        differing, how = _rank(subject, judge, reference)
        total = len(differing)
        if not total:
            n = int((subject.has_label(judge) & subject.has_label(reference)).sum())
            blocks.append(
                Paragraph(
                    f"{judge} differs from {subject.reference_text} on none of {format_count(n, 'unit')}."
                )
            )
            continue
        cases = [_case(store, subject, judge, reference, int(u)) for u in differing[:MOST_LISTED]]
        shown = f"the first {len(cases):,} of {total:,} units"
        if len(cases) == total:
            shown = "the one unit" if total == 1 else f"all {total:,} units"
        caption = f"{judge} against {subject.reference_text}: {shown} on which they differ"
        caption += f", {how}" if total > 1 else ""
        blocks.append(Cases(f"disagreements_{i}", caption, cases))
    return Section("disagreements", title, blocks)


def _rank(subject: Subject, judge: str, reference: str) -> tuple[IntArray, str]:
    """Rank the units on which the judge and the reference differ. Return their indices, and a description of
    the order.

    The units are ranked by the distance between the labels, if these are numbers or ordered, largest first. Ties
    are broken first by the judge's probability for its label, then by the share of people who gave the reference
    label.
    """
    differ = np.flatnonzero(subject.has_label(judge) & subject.has_label(reference))
    differ = differ[subject.panel.labels_of(judge, differ) != subject.panel.labels_of(reference, differ)]
    judged, true = subject.panel.labels_of(judge, differ), subject.panel.labels_of(reference, differ)
    keys: list[FloatArray] = []
    criteria = []
    if subject.panel.numeric:
        values = np.array([float(v) for v in subject.panel.domain])
        keys.append(np.abs(values[judged] - values[true]))
        criteria.append("by the distance between the labels")
    elif subject.panel.level == "ordinal":
        keys.append(np.abs(judged - true).astype(np.float64))
        criteria.append("by the number of steps between the labels")
    sure = subject.panel.distributions.get(judge)
    if sure is not None:
        # Rounded to steps of 0.05, so that a difference in the third digit does not outweigh the labels of people.
        # A label without a probability comes after the labels with one.
        probabilities = sure.on(differ)[np.arange(len(differ)), judged]
        keys.append(np.round(np.nan_to_num(probabilities, nan=-1.0) * 20))
        criteria.append("by the judge's probability for its label (in steps of 0.05)")
    if len(subject.panel.people) > 1 and not subject.panel.numeric:
        counts = tally_votes(
            subject.panel.table.select(subject.panel.people).codes[differ], len(subject.panel.domain)
        ).astype(np.float64)
        votes = counts.sum(axis=1)
        share = counts[np.arange(len(differ)), true] / np.maximum(votes, 1)
        keys.append(share)
        criteria.append("by the share of people who gave the reference label")
    # lexsort sorts by its last key first. Units with equal keys keep the order of the study.
    order = np.lexsort([np.arange(len(differ)), *(-k for k in reversed(keys))])
    how = ", then ".join(criteria) + ", largest first" if criteria else "in the order of the study"
    return differ[order], how


def _case(store: Store, subject: Subject, judge: str, reference: str, u: int) -> Disagreement:
    unit_id = subject.panel.table.units[u]
    labels = [_label(store, subject, judge, u)]
    if reference in subject.panel.kinds:
        labels.append(_label(store, subject, reference, u))
    else:
        labels.append(CaseLabel(reference, subject.panel.domain[_code(subject, reference, u)]))
    people = [p for p in subject.panel.people if p != reference and subject.has_label(p)[u]]
    if len(people) > VOTES:
        labels.append(CaseLabel(f"{len(people)} people", _votes(subject, people, u)))
    else:
        labels += [_label(store, subject, person, u) for person in people]
    page = subject.options.view
    link = "" if page is None else unit_link(page, unit_id)
    return Disagreement(unit_id, _texts(store, subject, unit_id), labels, link)


def _code(subject: Subject, name: str, u: int) -> int:
    return int(subject.panel.labels_of(name, np.array([u]))[0])


def _votes(subject: Subject, people: Sequence[str], u: int) -> str:
    codes = [_code(subject, p, u) for p in people]
    counts = np.bincount(codes, minlength=len(subject.panel.domain))
    return ", ".join(f"{n} say '{label}'" for label, n in zip(subject.panel.domain, counts, strict=True) if n)


def _label(store: Store, subject: Subject, name: str, u: int) -> CaseLabel:
    code = _code(subject, name, u)
    sure = subject.panel.distributions.get(name)
    share = np.nan if sure is None else sure.on(np.array([u]))[0, code]
    probability = "" if np.isnan(share) else f"probability {share:.2f}"
    # Reasons are stored under the run's id, whereas the report names a judge by its model.
    who = subject.run_ids.get(name, name)
    reason = relation.rationale(store.conn, who, subject.panel.field, subject.panel.table.units[u])
    return CaseLabel(name, subject.panel.domain[code], probability, _truncate(reason))


def _texts(store: Store, subject: Subject, unit_id: str) -> list[tuple[str, str]]:
    """Return the inputs of the task as the judge saw them, with long texts truncated."""
    # A prompt may show more than the view's columns, such as all passages of an item.
    columns = {row[1] for row in store.conn.execute("PRAGMA table_info(unit_texts)")}
    inputs = subject.panel.task.input_names if subject.panel.task else DEFAULT_INPUTS
    names = [name for name in inputs if name in columns]
    if not names:
        return []
    row = store.conn.execute(
        f"SELECT {', '.join(names)} FROM unit_texts WHERE unit_id = ?", [unit_id]
    ).fetchone()
    if row is None:
        return []
    shown = []
    for name, value in decode(store.conn, [dict(zip(names, row, strict=True))])[0].items():
        title = name.replace("_", " ")
        if name in LIST_INPUTS:
            # Each passage is shortened separately, because the decisive passage may be the last one.
            for passage in value or ():
                text = "\n".join(filter(None, (passage["title"], passage["text"])))
                shown.append((f"{title} [{passage['marker']}]", _truncate(text)))
        elif value not in (None, ""):
            shown.append((title, _truncate(value if isinstance(value, str) else _format_value(value))))
    return shown


def _format_value(value: Json) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{k}: {v}" for k, v in value.items())
    return "; ".join(map(str, value))


def _truncate(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
