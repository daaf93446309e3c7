"""The alternative annotator test, and the latent class model by Dawid and Skene."""

from collections.abc import Mapping

import numpy as np

from annotate.report.subject import Subject
from judge.document.blocks import COUNTS, Block, Cell, Column, Paragraph, Section, Table, heads
from judge.document.cells import format_count
from judge.stats import MISSING, AltTest, DawidSkene, dawid_skene, measures
from judge.stats.alternative import CLOSENESS

SHOWN = 12


def alternative(subject: Subject, tests: Mapping[str, tuple[AltTest, AltTest | None]]) -> Section:
    """Return the section on the alternative annotator test.

    `tests` maps each judge to the test at the level of its authors, so that published values can be repeated, and
    to the test at the judge's part of a shared level (None if the level is not shared).
    """
    title = "Alternative annotator test"
    if not tests:
        present = _people_count(subject) if subject.panel.judges else "there is no judge"
        reason = f"the test needs a judge and three people who labelled the same units; {present}"
        return Section("alternative", title, absent=reason)
    blocks: list[Block] = []
    for i, (judge, (test, shared)) in enumerate(tests.items(), 1):
        if test.winning_rate is None:
            blocks.append(Paragraph(f"{judge} was not tested: {test.reason}."))
        else:
            blocks.append(Paragraph(_describe_test(judge, test) + _describe_shared(shared)))
        if test.compared:
            blocks.append(_table(judge, test, i, CLOSENESS[subject.panel.level]))
        if test.notes:
            blocks.append(Paragraph(f"Notes on this test: {'; '.join(test.notes)}.", "note"))
        if test.skipped:
            reasons = "; ".join(f"{name} ({why})" for name, why in test.skipped[:3])
            more = f"; and {len(test.skipped) - 3} more" if len(test.skipped) > 3 else ""
            blocks.append(Paragraph(f"Left out of the test of {judge}: {reasons}{more}.", "note"))
    return Section("alternative", title, blocks, ["altest", "yekutieli"])


def _people_count(subject: Subject) -> str:
    n = len(subject.panel.people)
    return "there is 1 person" if n == 1 else f"there are {n} people"


def _describe_test(judge: str, test: AltTest) -> str:
    won = sum(row.won for row in test.compared)
    return (
        f"{judge} wins against {won:,} of {format_count(len(test.compared), 'person', 'people')} tested: winning rate {test.winning_rate:.3f} "
        f"({'passed' if test.passed else 'not passed'}; at least 0.5 passes), advantage probability {test.advantage:.3f}. "
        f"Epsilon is {test.epsilon:g}, the false discovery rate {test.q:g}."
    )


def _describe_shared(test: AltTest | None) -> str:
    """Describe the result at a part of the level, which several judges share. Empty if they do not share it."""
    if test is None or test.winning_rate is None:
        return ""
    return (
        f" At this judge's part of a rate that all judges share, {test.q:.3g}, the winning rate is {test.winning_rate:.3f} "
        f"({'passed' if test.passed else 'not passed'})."
    )


def _table(judge: str, test: AltTest, i: int, closeness: str) -> Table:
    rows: list[list[Cell]] = [
        [
            *(row.annotator, row.judge_wins, row.annotator_wins, row.p_value, row.adjusted),
            {"t": "t", "wilcoxon": "Wilcoxon", "none": "none"}[row.test],
            "" if row.p_value is None else "yes" if row.won else "no",
            *(row.n_units, row.n_clusters),
        ]
        for row in sorted(test.compared, key=lambda row: (-row.n_units, row.annotator))
    ]
    columns = heads("text", "person left out")
    columns += heads("share", "judge at least as close", "person at least as close")
    columns += heads("p", "p", "p, adjusted") + heads("text", "test", "judge wins")
    columns += heads("number", "units", "questions")
    note = (
        f"Closeness to the other people is {closeness}. The two columns are shares of units; ties count for both, so a row can "
        "sum to more than 100 %."
    )
    caption = f"{judge} against each person, by closeness to the others"
    return Table(f"alternative_{i}", caption, columns, rows, (note,), fold=SHOWN)


def latent(subject: Subject) -> Section:
    """Return the section on the latent class model.

    It contains the estimated share of each class, each person's estimated accuracy, and the judge's agreement
    with the estimated classes.
    """
    title = "Dawid and Skene: estimated classes"
    # The model of two annotators has more parameters than their table can determine.
    if len(subject.panel.people) < 3 or subject.panel.numeric:
        reason = f"the model needs at least three people; {_people_count(subject)}"
        if subject.panel.numeric:
            reason = "the model needs labels, but these are numbers"
        return Section("latent", title, absent=reason)
    # If units were drawn with unequal probabilities, no number in the report includes unsampled units.
    table = subject.panel.add_weights(subject.panel.among_people)
    model = dawid_skene(table)
    domain = subject.panel.domain
    classes: list[list[Cell]] = [
        [label, float(p), int((model.codes == k).sum())]
        for k, (label, p) in enumerate(zip(domain, model.prevalence, strict=True))
    ]
    columns = [Column("label"), Column("estimated prevalence", "share"), Column("units", "number")]
    end = "converged" if model.converged else "stopped before it converged"
    text = (
        f"{format_count(len(subject.panel.people), 'person', 'people')} on {format_count(table.n_units, 'unit')}; the EM algorithm {end} "
        f"after {format_count(model.iterations, 'step')}, "
        f"log-likelihood {model.log_likelihood:.1f}. The model assumes that people are independent given the true class."
    )
    blocks: list[Block] = [
        Paragraph(text),
        Table("prevalence", "Estimated classes", columns, classes),
        _accuracies(subject, model),
    ]
    others = [*subject.panel.judges, *([subject.majority] if subject.majority else []), *subject.panel.known]
    rows: list[list[Cell]] = []
    name = "estimated class"
    codes = np.full(subject.panel.table.n_units, MISSING, dtype=np.int64)
    # If units are weighted, unsampled units are not in the table.
    classified = np.isin(subject.panel.table.units, table.units)
    codes[classified] = model.codes
    # An annotator can have any name.
    while name in subject.panel.table.annotators:
        name += "es"
    wider = subject.panel.table.with_annotator(name, codes)
    for other in others:
        # The estimated classes do not come from an annotator, so they are not in the panel.
        pair = subject.panel.add_weights(
            wider.subset(classified & subject.panel.asked_units[other]).select([other, name]), other
        )
        percent, kappa = measures(
            pair,
            ["percent", subject.panel.coefficient],
            level=subject.panel.level,
            field=subject.panel.field,
            confidence=subject.panel.confidence(other),
        )
        rows.append([other, percent, kappa, kappa])
    columns = heads("text", "source") + heads("brief", "percent agreement", subject.coefficient_name) + COUNTS
    blocks.append(Table("latent_agreement", "Agreement with the estimated classes", columns, rows))
    return Section("latent", title, blocks, ["dawid"])


def _accuracies(subject: Subject, model: DawidSkene) -> Table:
    """Return a table of each person's probability of giving the true label: overall, and for each class.

    The overall probability is the mean over the classes, weighted by their prevalence.
    """
    labelled = (subject.panel.among_people.codes != MISSING).sum(axis=0)
    order = sorted(range(len(subject.panel.people)), key=lambda a: (-labelled[a], subject.panel.people[a]))
    rows: list[list[Cell]] = [
        [subject.panel.people[a], model.accuracies[a], *model.right[a], int(labelled[a])] for a in order
    ]
    right = (f"right on '{label}'" for label in subject.panel.domain)
    columns = heads("text", "person") + heads("share", "estimated accuracy", *right)
    columns += heads("number", "units labelled")
    note = "A cell is blank if the person labelled no unit of that class."
    return Table("accuracies", "Each person's estimated accuracy", columns, rows, (note,), fold=SHOWN)
