"""The alternative annotator test, and the latent class model by Dawid and Skene."""

from collections.abc import Mapping

import numpy as np

from annotate.agreement.extras import accuracy_table, alt_test_notes, alt_test_table, describe_alt_test
from annotate.report.subject import Subject
from judge.document.blocks import COUNTS, Block, Cell, Column, Paragraph, Section, Table, heads
from judge.document.cells import format_count
from judge.stats import MISSING, AltTest, dawid_skene, measures
from judge.stats.alternative import CLOSENESS


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
        blocks.append(Paragraph(describe_alt_test(judge, test) + _describe_shared(shared)))
        if test.compared:
            blocks.append(alt_test_table(judge, test, i, CLOSENESS[subject.panel.level]))
        blocks += alt_test_notes(test)
    return Section("alternative", title, blocks, ["altest", "yekutieli"])


def _people_count(subject: Subject) -> str:
    n = len(subject.panel.people)
    return "there is 1 person" if n == 1 else f"there are {n} people"


def _describe_shared(test: AltTest | None) -> str:
    """Describe the result at a part of the level, which several judges share. Empty if they do not share it."""
    if test is None or test.winning_rate is None:
        return ""
    return (
        f" At this judge's part of a rate that all judges share, {test.q:.3g}, the winning rate is {test.winning_rate:.3f} "
        f"({'passed' if test.passed else 'not passed'})."
    )


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
    labelled = (subject.panel.among_people.codes != MISSING).sum(axis=0).tolist()
    end = "converged" if model.converged else "stopped before it converged"
    text = (
        f"{format_count(len(subject.panel.people), 'person', 'people')} on {format_count(table.n_units, 'unit')}; the EM algorithm {end} "
        f"after {format_count(model.iterations, 'step')}, "
        f"log-likelihood {model.log_likelihood:.1f}. The model assumes that people are independent given the true class."
    )
    blocks: list[Block] = [
        Paragraph(text),
        Table("prevalence", "Estimated classes", columns, classes),
        accuracy_table(domain, model, subject.panel.people, labelled, "person"),
    ]
    others = [*subject.panel.judges, *([subject.majority] if subject.majority else []), *subject.panel.known]
    rows: list[list[Cell]] = []
    name = "estimated class"
    codes = np.full(subject.panel.table.n_units, MISSING, dtype=np.int64)
    # If units are weighted, unsampled units are not in the table.
    classified = subject.panel.table.find(tuple(table.units))
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
