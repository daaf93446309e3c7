"""The agreement on one field as a document: groups, pairs, judges compared, labels, shares and confusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from annotate.agreement.one_field import MOST_PAIRS, Agreement, Block, Many
from judge.document.blocks import (
    COUNTS,
    Cell,
    Document,
    Figure,
    Notes,
    Section,
    Table,
    dot,
    dot_plot,
    heads,
    level_text,
    list_measures,
)
from judge.document.blocks import (
    Block as DocumentBlock,
)
from judge.document.cells import format_count
from judge.stats import Confusion
from judge.types import AnnotatorKind, Json, Measure

MOST_SHOWN = 12
"""The maximum number of annotators that are named in one line or listed in one table."""
BEYOND_CHANCE = ("cohen_kappa", "krippendorff_alpha", "gwet_ac1", "gwet_ac2", "pabak")
"""The measures of agreement beyond chance, of which a drawing shows one for each pair."""
SUMMARY = ("min", "q25", "median", "q75", "max", "mean", "weighted_mean")


def as_document(result: Agreement, more: Sequence[Section] = ()) -> Document:
    """Return the results for one field. `more` has the sections of other requested results."""
    sections = [
        Section("groups", "Groups", [_group(i, block) for i, block in enumerate(result.groups, 1)]),
        Section("pairs", "Pairs", [_pairs_or_spread(i, block) for i, block in enumerate(result.pairs, 1)]),
        Section("picture", "Agreement beyond chance", _picture(result)),
        Section("compared", "Judges compared", _compare(result)),
        Section("classes", "Label by label", [_class(i, block) for i, block in enumerate(result.classes, 1)]),
        Section("shares", "Shares of the labels", _shares(result)),
        Section(
            "confusion",
            "Confusion",
            [table for i, c in enumerate(result.confusions, 1) for table in _confusion(i, c)],
        ),
        *more,
        Section("notes", "Notes", [Notes(notes)] if (notes := list(dict.fromkeys(result.notes))) else []),
    ]
    panel = result.panel
    return Document(f"{panel.field} ({panel.level})", list(_about(result)), sections=sections)


def _about(result: Agreement) -> Iterator[tuple[str, str]]:
    ratings = result.panel.ratings
    # Continuous numbers may have thousands of values.
    scores = result.panel.are_scores
    yield "labels", f"{len(ratings.domain):,} different numbers" if scores else ", ".join(ratings.domain)
    questions = f", {format_count(ratings.n_clusters, 'question')}" if ratings.clustered else ""
    yield "units", f"{ratings.n_units:,} units{questions}"
    levels = dict.fromkeys(level_text(m.confidence) for m in result.measures if m.low is not None)
    if levels:
        yield "confidence", f"{' or '.join(levels)} intervals"
    for kind in AnnotatorKind:
        if names := result.panel.select_kinds(kind):
            more = " ..." if len(names) > MOST_SHOWN else ""
            yield f"{kind} ({len(names)})", ", ".join(names[:MOST_SHOWN]) + more


def _group(number: int, block: Block) -> Table:
    return list_measures(f"group_{number}", f"{block.title} ({len(block.annotators)})", block.measures)


def _picture(result: Agreement) -> list[Figure]:
    """Return one drawing of the first chance-corrected measure of each pair, if there are several pairs to compare."""
    pairs: dict[tuple[str, ...], Measure] = {}
    for m in (m for block in result.pairs if isinstance(block, Block) for m in block.measures):
        if m.measure in BEYOND_CHANCE and m.annotators:
            pairs.setdefault(tuple(m.annotators), m)
    if not 1 < len(pairs) <= MOST_SHOWN:
        return []
    rows = [dot(" and ".join(names), m) for names, m in pairs.items()]
    caption = f"{next(iter(pairs.values())).title} of each pair (0 is chance, 1 is perfect)"
    return [dot_plot("picture", caption, "A dot is the value with its interval.", rows, is_text=True)]


def _pairs_or_spread(number: int, block: Block | Many) -> Table:
    if isinstance(block, Many):
        return _spread(number, block)
    every = [
        (pair, list(measured))
        # The measures of a pair stand side by side, as groupby needs them.
        for pair, measured in groupby(block.measures, key=lambda m: m.annotators or ("", ""))
    ]
    alone = len({pair[0] for pair, _ in every}) == 1
    rows: list[list[Cell]] = [[*pair[int(alone) :], *measured, measured[0]] for pair, measured in every]
    columns = heads("text", *(["with"] if alone else ["one", "other"]))
    columns += heads("brief", *(m.title for m in every[0][1])) + COUNTS
    return Table(f"pairs_{number}", block.title, columns, rows)


def _spread(number: int, many: Many) -> Table:
    """Return the distribution of each coefficient, because a crowd has thousands of pairs."""
    rows: list[list[Cell]] = []
    for key in many.pairs.values:
        row: dict[str, Any] = many.pairs.summary(key)
        name = row["measure"] + (f" ({row['weights']})" if row["weights"] else "")
        rows.append([name, row["n_defined"], *(row[column] for column in SUMMARY)])
    shared = many.pairs.n_units
    title = f"{many.title}: {many.pairs.n_pairs:,} pairs, {len(shared):,} of them with units in common"
    if len(shared):
        title += f" (median {int(np.median(shared))})"
    columns = heads("text", "measure") + heads("number", "pairs defined", *SUMMARY[:-1], "mean by units")
    return Table(f"pairs_{number}", title, columns, rows)


def _compare(result: Agreement) -> list[Table]:
    if not result.compared or result.reference is None:
        return []
    m = result.compared[0].difference
    caption = (
        f"judges compared by {m.title.replace('_difference', '')} with {result.reference.text}: B - A on the {m.n_units:,} "
        "units that all of them labelled"
    )
    rows: list[list[Cell]] = [
        [c.first, c.second, c.difference, c.p_value, c.adjusted] for c in result.compared
    ]
    columns = heads("text", "A", "B") + heads("brief", "B - A") + heads("p", "p", "p, Holm")
    return [Table("compared", caption, columns, rows, fold=MOST_PAIRS)]


def _class(number: int, block: Block) -> Table:
    rows: list[list[Cell]] = [
        [m.measure.replace("class_agreement:", ""), m, m.n_units] for m in block.measures
    ]
    kind = "agreement" if block.measures[0].measure.startswith("class_agreement") else "score"
    columns = heads("text", "label") + heads("brief", kind) + heads("number", "units")
    return Table(f"class_{number}", f"label by label: {block.title}", columns, rows)


def _shares(result: Agreement) -> list[DocumentBlock]:
    if not result.shares:
        return []
    ratings, people = result.panel.table, result.panel.people
    labels = list(ratings.domain)
    names = list(ratings.annotators)
    rows: list[list[Cell]] = []
    # Quantiles say more than a line for each person of a crowd.
    if len(people) > MOST_SHOWN:
        names = [name for name in names if name not in people]
        shares = np.array(
            [[s[label] for label in labels] for n, s in result.shares.items() if s and n not in names]
        )
        titles = ("least of any person", "median", "most")
        for title, row in zip(titles, np.quantile(shares, [0, 0.5, 1], axis=0).tolist(), strict=True):
            rows.append([title, None, *row])
        counts = ratings.select(people).counts.sum(axis=0)
        rows.append(["all people", int(counts.sum()), *(counts / counts.sum()).tolist()])
    vote = result.panel.majority
    for name in names:
        of_name = result.shares[name]
        shown = "majority of the people" if vote is not None and name == vote.name else name
        given = int(ratings.has_label(name).sum())
        rows.append([shown, given, *(of_name[label] if of_name else None for label in labels)])
    columns = heads("text", "annotator") + heads("number", "labels") + heads("share", *labels)
    table = Table("shares", "shares of the labels", columns, rows)
    drawn: list[Json] = [
        {"name": str(row[0]), "n": row[1], "shares": list(row[2:])}
        for row in rows
        if row[1] and None not in row[2:]
    ]
    text = "Stacked bars, one for each source of labels."
    data: dict[str, Json] = {"rows": drawn, "labels": labels}
    return [Figure("shares_figure", "shares of the labels", text, "bars", data, table)] if drawn else [table]


def _confusion(number: int, confusion: Confusion) -> Iterator[Table]:
    """Yield a confusion matrix with its totals. Each row is a label of the reference."""
    columns = heads("text", confusion.reference) + heads("number", *confusion.labels, "total")
    rows: list[list[Cell]] = [
        [label, *row.tolist(), int(row.sum())]
        for label, row in zip(confusion.labels, confusion.matrix, strict=True)
    ]
    rows.append(["total", *confusion.matrix.sum(axis=0).tolist(), confusion.n_units])
    without = confusion.n_asked - confusion.n_units
    notes = [f"{format_count(without, 'unit lacks', 'units lack')} one of the two labels and are left out."]
    caption = f"confusion: rows {confusion.reference}, columns {confusion.predicted}"
    yield Table(f"confusion_{number}", caption, columns, rows, notes if without else ())
    # The shares of all units differ from the counts only if units are weighted.
    if confusion.shares is not None:
        of_all: list[list[Cell]] = [
            [label, *row.tolist(), float(row.sum())]
            for label, row in zip(confusion.labels, confusion.shares, strict=True)
        ]
        columns = heads("text", confusion.reference) + heads("share", *confusion.labels, "total")
        yield Table(f"confusion_{number}_shares", "estimated shares of all units", columns, of_all)
