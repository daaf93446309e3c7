"""The annotators, the selection of units, and the agreement between people (the human ceiling)."""

import json
from collections.abc import Sequence

import numpy as np

from annotate.agreement.every_pair import Pairs, compute_pairs
from annotate.leading.deviation import find_deviations
from annotate.leading.haste import describe_haste, paces
from annotate.near_duplicates import describe_near_duplicates
from annotate.report.asked import describe_tasks
from annotate.report.batches import batch_facts
from annotate.report.subject import CEILING, MANY, ORDERED_CEILING, Subject
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
    make_value_columns,
)
from judge.document.cells import format_count, format_stored
from judge.stats import MISSING, class_agreement
from judge.stats.metrics import get_title
from judge.stats.patterns import n_present
from judge.store import Store
from judge.store.label_rows import OLD_TEXT
from judge.types import AnnotatorKind, Measure

# The facts about annotators that reviewers ask for.
KNOWN = ("qualification", "training", "paid", "consent")
SHOWN = 12
OF_A_TABLE = (
    "The labels come from a table, which does not record how the units were drawn, what people were asked, or whether "
    "people could see a judge's labels."
)


def describe_annotators(store: Store, subject: Subject) -> Section:
    """Return the section on the annotators and their profiles."""
    names = [*subject.panel.people, *subject.panel.others]
    waiting = _waiting(subject)
    if not names:
        reason = (
            "no person's labels for this field are used" if waiting else "only judges labelled this field"
        )
        return Section(
            "who", "Who annotated", absent=" ".join([f"{reason}.", *waiting]) if waiting else reason
        )
    stored = store.conn.execute("SELECT annotator_id, profile FROM annotators").fetchall()
    profiles = {name: json.loads(text) for name, text in stored if name in set(names)}
    keys = [k for k in KNOWN if any(k in p for p in profiles.values())]
    keys += sorted({k for p in profiles.values() for k in p} - set(KNOWN))
    labelled = {name: int(subject.has_label(name).sum()) for name in names}
    rows: list[list[Cell]] = []
    for name in names:
        facts = [format_stored(profiles.get(name, {}).get(k)) for k in keys]
        rows.append([name, str(subject.panel.kinds[name]), labelled[name], *facts])
    columns = [Column("annotator"), Column("kind"), Column("units labelled", "number"), *map(Column, keys)]
    blocks: list[Block] = []
    if subject.panel.people:
        blocks.append(Paragraph(_people_in_words(subject, [labelled[p] for p in subject.panel.people])))
    # Reviewers ask for these facts, so the report lists the missing ones.
    missing = [k for k in KNOWN if k not in keys]
    if missing and subject.panel.people:
        blocks.append(
            Paragraph(f"Facts about people that the study does not record: {', '.join(missing)}.", "note")
        )
    blocks += [Paragraph(text, "note") for text in waiting]
    blocks += [
        Paragraph(f"{describe_haste(annotator, pace)}.", "note")
        for annotator, pace in paces(store, subject.options.batch).items()
        if pace.too_fast and annotator in names
    ]
    if not subject.panel.numeric:
        deviations = find_deviations(
            subject.panel.among_people, subject.panel.coefficient, subject.panel.level
        )
        blocks += [Paragraph(f"{d.describe()}.", "note") for d in deviations if d.is_named]
    blocks.append(Table("annotators", "Annotators", columns, rows, fold=SHOWN))
    return Section("who", "Who annotated", blocks)


def _waiting(subject: Subject) -> list[str]:
    """Return sentences on unused labels, with the reasons.

    A label is unused if it may not be blind, or if a lead stopped its annotator.
    """
    texts = []
    for person, layers in subject.waiting.items():
        for layer, n in layers.items():
            are, were = ("is", "was") if n == 1 else ("are", "were")
            reasons = {
                "undeclared": f"{are} not known to be blind and {are} not used: import them again with --blind "
                "(nobody saw a suggestion while labelling) or --assisted",
                "assisted": f"{were} given with visible suggestions and {are} not used",
                OLD_TEXT: f"{were} given before the text of the unit was corrected, and {are} not used until the unit is "
                "labelled again",
                "stopped": f"{are} not used: a lead stopped {person} in the batch",
            }
            if n and layer in reasons:
                texts.append(f"{format_count(n, 'label')} by {person} {reasons[layer]}.")
    return texts


def _people_in_words(subject: Subject, labelled: Sequence[int]) -> str:
    units = int(subject.panel.by_people.sum())
    single = len(labelled) == 1
    text = f"{len(labelled)} {'person' if single else 'people'} gave {format_count(sum(labelled), 'label')} on {format_count(units, 'unit')}"
    if single:
        return text + "."
    each = (subject.panel.among_people.codes != MISSING).sum(axis=1)
    middle = f"{_span(min(labelled), max(labelled))} unit{'s' if max(labelled) != 1 else ''}"
    # If all numbers are equal, the median would repeat them.
    if min(labelled) != max(labelled):
        middle += f", median {int(np.median(labelled)):,}"
    apiece = f"{_span(int(each.min()), int(each.max()))} label{'s' if each.max() > 1 else ''} per unit"
    return f"{text}: {apiece}; each person labelled {middle}."


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def sampling(store: Store, subject: Subject) -> Section:
    """Return the section on sampling: how many units each source labelled, facts about the batches, and the guidelines."""
    blocks: list[Block] = [_units(subject)]
    blocks += (
        [Paragraph(OF_A_TABLE, "note")]
        if subject.table
        else batch_facts(store, subject.options.batch, subject.panel.field)
    )
    if not subject.table:
        labelled = list(subject.panel.ratings.subset(subject.panel.by_people).units)
        if repeated := describe_near_duplicates(store, labelled):
            blocks.append(Paragraph(f"{repeated}.", "note"))
    blocks += describe_tasks(store, subject)
    return Section("sampling", "How units were chosen, and what was asked", blocks)


def _units(subject: Subject) -> Table:
    ratings = subject.panel.ratings
    groups = [("every source together", np.ones(ratings.n_units, dtype=np.bool_))]
    if subject.panel.people:
        groups.append(("people", subject.panel.by_people))
    for name in (*subject.panel.judges, *subject.panel.others):
        groups.append((name, subject.panel.asked_units[name]))
    for judge in subject.panel.judges:
        if subject.panel.people:
            groups.append((f"people and {judge}", subject.panel.by_people & subject.panel.asked_units[judge]))
        for other in subject.panel.others:
            both = subject.panel.asked_units[other] & subject.panel.asked_units[judge]
            groups.append((f"{other} and {judge}", both))
    rows: list[list[Cell]] = [
        [name, int(mask.sum()), n_present(ratings.clusters[mask])] for name, mask in groups
    ]
    columns = [Column("asked or labelled by"), Column("units", "number"), Column("questions", "number")]
    note = "Intervals resample questions, because the units of one question are not independent."
    return Table("units", "Units", columns, rows, notes=(note,) if ratings.clustered else ())


def ceiling(subject: Subject) -> Section:
    """Return the section on the agreement between people, and on the agreement of their majority with gold."""
    title = "How well people agree: the human ceiling"
    blocks: list[Block] = []
    cites = ["alpha", "gwet", "bootstrap"]
    if len(subject.panel.people) >= 2:
        blocks.append(_overall(subject))
        if subject.panel.numeric and len(subject.panel.people) <= MANY:
            blocks.append(_pairs(subject))
        if not subject.panel.numeric:
            # Fleiss' kappa has no weights, so it would treat near grades and far grades alike.
            cites += ["cohen", "specific"] + (
                ["fleiss"] if subject.panel.level == "nominal" else ["weighted"]
            )
            few = len(subject.panel.people) <= MANY
            blocks += [_pairs(subject)] if few else _summary(subject)
            blocks.append(_tabulate_labels(subject))
    sources = [subject.majority] if subject.majority else list(subject.panel.people)[:MANY]
    ruled = subject.panel.select_kinds(AnnotatorKind.ADJUDICATED) if subject.decided else []
    for other in subject.panel.others:
        # A lead's decisions exist only on units where people differ, so agreement with these decisions is uninformative.
        if other not in ruled:
            blocks += [_against(subject, source, other) for source in sources]
    if len(subject.panel.people) < 2:
        reason = "no person labelled this field"
        if subject.panel.people:
            reason = f"only one person labelled this field, {subject.panel.people[0]}"
        unknown = f"{reason}, so it is unknown how well people agree with each other"
        if not blocks:
            return Section("ceiling", title, absent=unknown)
        blocks.insert(0, Paragraph(unknown[0].upper() + unknown[1:] + ".", "note"))
    return Section("ceiling", title, blocks, cites)


def _tabulate_labels(subject: Subject) -> Table:
    by_label = {
        m.measure.partition(":")[2]: m
        for m in class_agreement(
            subject.panel.select_common(*subject.panel.people), field=subject.panel.field
        )
    }
    rows: list[list[Cell]] = [[label, m, m] for label, m in by_label.items() if m.n_units]
    unused = [f"'{label}'" for label, m in by_label.items() if not m.n_units]
    notes = [f"Labels that are not on any unit with two people: {', '.join(unused)}."] if unused else []
    caption = "Agreement per label: how often another person chose the label, given that one person chose it"
    return Table(
        "class_agreement", caption, heads("text", "label") + heads("brief", "agreement") + COUNTS, rows, notes
    )


def _overall(subject: Subject) -> Table:
    names: tuple[str, ...] = CEILING if subject.panel.level == "nominal" else ORDERED_CEILING
    # Numbers are seldom equal to the last digit, so their percent agreement is uninformative.
    if subject.panel.numeric:
        names = (subject.panel.coefficient,)
    measured = subject.panel.measure(subject.panel.people, subject.panel.keys(names))
    rows: list[list[Cell]] = [[_name(m), m, m] for m in measured]
    caption = "All people together, on the units that at least one of them labelled"
    return Table("people", caption, make_value_columns(m.confidence for m in measured), rows)


def _name(measure: Measure) -> str:
    name = get_title(measure.measure)
    detail = measure.weights or (measure.level if measure.measure == "krippendorff_alpha" else None)
    return f"{name} ({detail})" if detail else name


def _pairs(subject: Subject) -> Table:
    names = (subject.panel.coefficient,) if subject.panel.numeric else ("percent", subject.panel.coefficient)
    rows: list[list[Cell]] = [
        [f"{first} and {second}", *([] if subject.panel.numeric else [percent]), kappa, kappa]
        for first, second, percent, kappa in subject.pairs
    ]
    columns = heads("text", "pair") + heads("brief", *map(get_title, names)) + COUNTS
    return Table("pairs", "Every pair of people", columns, rows)


def _summary(subject: Subject) -> list[Block]:
    """Return a table with the quartiles of the coefficient over all pairs of people, and a histogram of the values.

    Only pairs that labelled some of the same units have a value.
    """
    table = subject.panel.among_people
    pairs = compute_pairs(
        table,
        [subject.panel.coefficient],
        level=subject.panel.level,
        first=subject.panel.people,
        second=subject.panel.people,
    )
    spread = spread_table("pairs", f"{subject.coefficient_name} of every pair of people", pairs)
    values = next(iter(pairs.values.values()))
    values = values[np.isfinite(values)]
    if not len(values):
        return [spread]
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    text = (
        f"Histogram of {subject.coefficient_name} over {format_count(len(values), 'pair')} of people; half of the values lie between "
        f"{low:.2f} and {high:.2f}, the median is {middle:.2f}."
    )
    data = {"values": values.tolist(), "label": subject.coefficient_name}
    return [Figure("pairs_figure", spread.caption, text, "histogram", data, spread)]


def spread_table(key: str, caption: str, pairs: Pairs) -> Table:
    """Return a table on the distribution of one coefficient over many pairs: counts, quartiles, and two means."""
    spread = pairs.summary(next(iter(pairs.values)))
    quartiles = ("min", "q25", "median", "q75", "max", "mean", "weighted_mean")
    columns = heads("text", "pairs") + heads(
        "number", "number", "defined", *(q.replace("_", " ") for q in quartiles)
    )
    values = [spread[name] for name in ("n_sharing", "n_defined", *quartiles)]
    row: list[Cell] = ["pairs with a common unit", *values]
    n = pairs.n_units
    notes = ["The weighted mean weights each pair by the number of units that it shares."]
    if len(n):
        sharing = _span(int(n.min()), int(n.max()))
        notes.insert(0, f"A pair shares {sharing} units, median {int(np.median(n)):,}.")
    return Table(key, caption, columns, [row], notes)


def _against(subject: Subject, source: str, other: str) -> Table:
    names = [subject.panel.coefficient] if subject.panel.numeric else ["percent", subject.panel.coefficient]
    measured = subject.measure(source, other, *names)
    rows: list[list[Cell]] = [[_name(m), m, m] for m in measured]
    caption = f"{'The majority of people' if source == subject.majority else source} against {other}"
    # If there is no majority, each person has a table, so the keys must differ.
    key = (
        f"people_{other}"
        if subject.majority or len(subject.panel.people) == 1
        else f"people_{source}_{other}"
    )
    return Table(key, caption, make_value_columns(m.confidence for m in measured), rows)


def tie_note(subject: Subject) -> str:
    """Return a sentence on how many units have a tie in the majority vote.

    The result is an empty string if the subject has no column with the majority.
    """
    if subject.majority is None:
        return ""
    text = f"The majority leaves ties open: {format_count(subject.n_tied, 'unit has', 'units have')} no majority label."
    alone = int(((subject.panel.among_people.codes != MISSING).sum(axis=1) == 1).sum())
    if alone:
        text += f" On {format_count(alone, 'unit')}, the majority label is the label of the only person who gave one."
    return text
