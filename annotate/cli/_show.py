"""Format an Agreement as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from annotate.agreement.one_field import MOST_PAIRS, Agreement, Block, Many
from judge.console import visible
from judge.document.terminal import table
from judge.notes import Note, general
from judge.stats import Confusion
from judge.types import AnnotatorKind, Measure

MOST_SHOWN = 12
MOST_REASONS = 10
SUMMARY = ("min", "q25", "median", "q75", "max", "mean", "weighted_mean")


def text(result: Agreement) -> str:
    """Return the results for one field as text, section by section. Notes and reasons follow at the end, each
    of them once.
    """
    parts = [_head(result)]
    parts += [f"{_title(block)}\n{_group(block)}" for block in result.groups]
    for block in result.pairs:
        parts.append(
            _format_many(block) if isinstance(block, Many) else f"{visible(block.title)}\n{_pairs(block)}"
        )
    if result.compared:
        parts.append(_describe_comparison(result))
    if result.classes:
        parts.append(f"label by label\n{_classes(result.classes)}")
    if result.shares:
        parts.append(f"shares of the labels\n{_shares(result)}")
    parts += [confusion_text(matrix) for matrix in result.confusions]
    if remarks := list(_remarks(result)):
        parts.append("\n".join(f"- {visible(remark)}" for remark in remarks))
    return "\n\n".join(parts)


def _head(result: Agreement) -> str:
    panel = result.panel
    ratings = panel.ratings
    # Continuous numbers may have thousands of values.
    labels = f"{len(ratings.domain):,} different numbers" if panel.are_scores else ", ".join(ratings.domain)
    questions = f", {ratings.n_clusters:,} questions" if ratings.clustered else ""
    lines = [f"{panel.field} ({panel.level}): {labels}", f"{ratings.n_units:,} units{questions}"]
    for kind in AnnotatorKind:
        names = panel.select_kinds(kind)
        if not names:
            continue
        shown_names = ", ".join(names[:MOST_SHOWN]) + (" ..." if len(names) > MOST_SHOWN else "")
        lines.append(f"{kind} ({len(names)}): {shown_names}")
    return visible("\n".join(lines))


def _title(block: Block) -> str:
    return visible(f"{block.title} ({len(block.annotators)})")


def _group(block: Block) -> str:
    # If every unit is a question of its own, a column of questions says nothing new.
    clustered = any(m.n_clusters not in (None, m.n_units) for m in block.measures)
    rows = []
    for m in block.measures:
        counts = [m.n_units, m.n_clusters] if clustered else [m.n_units]
        rows.append([m.title, m.shown, m.interval, *counts, m.coverage])
    confidence = f"{100 * block.measures[0].confidence:g} % interval" if block.measures else "interval"
    counted = ["units", "questions"] if clustered else ["units"]
    return table(["measure", "value", confidence, *counted, "coverage"], rows)


def _pairs(block: Block) -> str:
    every = [
        (pair, list(measured))
        # The measures of a pair stand side by side, as groupby needs them.
        for pair, measured in groupby(block.measures, key=lambda m: m.annotators or ("", ""))
    ]
    firsts = {pair[0] for pair, _ in every}
    head = (["with"] if len(firsts) == 1 else ["one", "other"]) + ["units", "coverage"]
    rows: list[list[Any]] = []
    for pair, measured in every:
        names = list(pair[1:]) if len(firsts) == 1 else list(pair)
        rows.append([*names, measured[0].n_units, measured[0].coverage, *(m.with_interval for m in measured)])
    return table([*head, *(m.title for m in every[0][1])], rows)


def _describe_comparison(result: Agreement) -> str:
    assert result.reference is not None
    m = result.compared[0].difference
    head = f"judges compared by {m.title.replace('_difference', '')} with {result.reference.text}: B - A on the {m.n_units:,} units that all of them labelled"
    rows = [
        [c.first, c.second, c.difference.with_interval, _p(c.p_value), _p(c.adjusted)]
        for c in result.compared[:MOST_PAIRS]
    ]
    left = len(result.compared) - len(rows)
    more = f"\n{left} more pairs are in --json" if left else ""
    return f"{visible(head)}\n{table(['A', 'B', 'B - A', 'p', 'p, Holm'], rows)}{more}"


def _p(value: float | None) -> str:
    return "" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def _format_many(many: Many) -> str:
    rows = []
    for key in many.pairs.values:
        row = many.pairs.summary(key)
        name = row["measure"] + (f" ({row['weights']})" if row["weights"] else "")
        rows.append([name, row["n_defined"], *(row[column] for column in SUMMARY)])
    # A crowd has thousands of pairs, so their distribution stands for them.
    shared = many.pairs.n_units
    title = f"{many.title}: {many.pairs.n_pairs:,} pairs, {len(shared):,} of them with units in common"
    if len(shared):
        title += f" (median {int(np.median(shared))})"
    head = ["measure", "pairs defined", *SUMMARY[:-1], "mean by units"]
    return f"{visible(title)}\n{table(head, rows)}"


def _classes(blocks: Sequence[Block]) -> str:
    tables = []
    for block in blocks:
        rows = [
            [m.measure.replace("class_agreement:", ""), m.with_interval, m.n_units] for m in block.measures
        ]
        kind = "agreement" if block.measures[0].measure.startswith("class_agreement") else "score"
        tables.append(f"{visible(block.title)}\n" + table(["label", kind, "units"], rows))
    return "\n\n".join(tables)


def _shares(result: Agreement) -> str:
    ratings, people = result.panel.table, result.panel.people
    vote = result.panel.majority
    labels = list(ratings.domain)
    given = {name: int((ratings.column(name) >= 0).sum()) for name in ratings.annotators}
    names = list(ratings.annotators)
    rows: list[list[Any]] = []
    # Quantiles say more than a line for each person of a crowd.
    if len(people) > MOST_SHOWN:
        names = [name for name in names if name not in people]
        shares = np.array(
            [[s[label] for label in labels] for n, s in result.shares.items() if s and n not in names]
        )
        for title, row in zip(
            ("least of any person", "median", "most"), np.quantile(shares, [0, 0.5, 1], axis=0), strict=True
        ):
            rows.append([title, None, *row.tolist()])
        counts = ratings.select(people).counts.sum(axis=0)
        rows.append(["all people", int(counts.sum()), *(counts / counts.sum()).tolist()])
    for name in names:
        shares_of = result.shares[name]
        rows.append([name, given[name], *(shares_of[label] if shares_of else None for label in labels)])
        if vote is not None and name == vote.name:
            rows[-1][0] = "majority of the people"
    return table(["annotator", "labels", *labels], rows)


def confusion_text(confusion: Confusion) -> str:
    """Format a confusion matrix with its totals. Each row is a label of the reference."""
    rows = [
        [label, *row.tolist(), int(row.sum())]
        for label, row in zip(confusion.labels, confusion.matrix, strict=True)
    ]
    rows.append(["total", *confusion.matrix.sum(axis=0).tolist(), confusion.n_units])
    head = visible(f"confusion: rows {confusion.reference}, columns {confusion.predicted}")
    without = confusion.n_asked - confusion.n_units
    left_out = f" ({without} units lack one of the two labels and are left out)" if without else ""
    text = f"{head}{left_out}\n{table(['', *confusion.labels, 'total'], rows)}"
    # The shares of all units differ from the counts only if units are weighted.
    if confusion.shares is None:
        return text
    of_all = [
        [label, *row.tolist(), float(row.sum())]
        for label, row in zip(confusion.labels, confusion.shares, strict=True)
    ]
    return f"{text}\nestimated shares of all units\n{table(['', *confusion.labels, 'total'], of_all)}"


def _remarks(result: Agreement) -> Iterator[str]:
    every = [*result.measures, *(c.difference for c in result.compared)]
    reasons = dict.fromkeys(
        f"{m.title}{_describe_coverage(m)} is undefined: {m.reason}" for m in every if m.reason
    )
    yield from list(reasons)[:MOST_REASONS]
    if len(reasons) > MOST_REASONS:
        yield f"and {len(reasons) - MOST_REASONS} more are undefined (--json has every reason)"
    yield from dict.fromkeys(result.notes)
    yield from _once(n for m in every for n in m.notes)


def _once(notes: Iterable[str]) -> Iterator[str]:
    """Return each note once. If notes differ only in their numbers, only the note with the smallest numbers is
    kept.
    """
    alike: dict[str, dict[str, None]] = {}
    for note in notes:
        counted = isinstance(note, Note) and "n" in note.parameters
        alike.setdefault(general(note) if counted else note, {})[note] = None
    for group in alike.values():
        least = min(group, key=lambda note: note.parameters.get("n", 0) if isinstance(note, Note) else 0)
        yield least if len(group) == 1 else f"{least} (the smallest of {len(group)} such numbers)"


def _describe_coverage(measure: Measure) -> str:
    names = measure.annotators or ()
    return f" of {' and '.join(names)}" if 0 < len(names) <= 3 else ""
