"""The verdict on each judge: one sentence, with the rule that made it and the numbers it rests on.

Beside it what it hangs on: how many labels more would decide, and what it would be with other limits; drawn and as tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from annotate.report.cells import counted
from annotate.report.model import Block, Cell, Figure, Ruling, Section, Table, heads
from annotate.report.subject import Subject
from judge.labels.reference import voices
from judge.notes import code_of
from judge.stats import MISSING, AltTest, Verdict, curve, verdict
from judge.stats.rates import like_this
from judge.stats.told import UNKNOWN_CEILING, labels_text
from judge.store.splits import Look

# Above this share of one label a judge can agree with people without telling units apart.
ONE_SIDED = 0.95
# Above this share of units without a label of the judge a reader must know.
SILENT = 0.05
# A label with fewer units says nothing of how often the judge is silent on it; a smaller gap is no pattern.
FEW, UNEVEN = 10, 0.1
MOST_NAMED = 5


def rule(subject: Subject) -> tuple[list[Ruling], dict[str, AltTest], str]:
    """A ruling for each judge, the alt-tests that decided, and why there is no ruling, if there is none."""
    if not subject.panel.judges:
        return [], {}, "No judge labelled this field, so there is nothing to trust or distrust yet."
    if not subject.panel.people and subject.reference is None:
        return [], {}, "Nobody but judges labelled this field: import gold labels, or have people label some."
    rulings: list[Ruling] = []
    tests: dict[str, AltTest] = {}
    people = voices(subject.panel, subject.held)
    for judge in subject.panel.judges:
        look = subject.panel.looks.get(judge)
        found = verdict(
            subject.panel.judged(judge, subject.reference, people),
            judge,
            people,
            reference=subject.reference,
            epsilon=subject.asked.epsilon,
            least_others=subject.asked.least_others,
            clustered=subject.asked.clustered,
            margin=subject.asked.margin,
            threshold=subject.asked.threshold,
            name=subject.panel.coefficient,
            level=subject.panel.level,
            field=subject.panel.field,
            confidence=subject.panel.confidence(judge),
        )
        conflicts = sum(subject.panel.conflicts.values())
        if conflicts:
            # Leaving hard units in conflict must gain nothing: with them unlabelled the rest could look better than it is.
            told = f"{counted(conflicts, 'label is', 'labels are')} in conflict (annotate conflicts list)"
            found = replace(found, decision="undecided", because=told)
        if found.alt_test:
            tests[judge] = found.alt_test
        measures = tuple(replace(m, annotators=m.annotators or (judge,)) for m in found.measures)
        rulings.append(
            Ruling(
                judge=judge,
                decision=found.decision,
                sentence=_sentence(subject, judge, found),
                rule=found.rule,
                because=_because(found),
                more_units=found.more_units,
                more_questions=found.more_clusters,
                ceiling_known=found.ceiling_known,
                measures=measures,
                warnings=(*found.warnings, *_warnings(subject, judge), *_looked(look)),
                conditions=found.conditions,
                conflicts=conflicts,
                labels=found.labels,
                like=_like(subject, found),
                chances=found.outlook.curve if found.outlook else (),
                curve=curve(found) if subject.asked.curve else (),
            )
        )
    return rulings, tests, ""


def _because(found: Verdict) -> str:
    text = found.because
    n = found.conditions[0]
    on = f"{counted(n.n_units, 'unit')} of {counted(n.n_clusters, 'question')}"
    text = f"{text[:1].upper()}{text[1:]} (n = {on})"
    left = len(found.alt_test.skipped) if found.alt_test is not None else 0
    return f"{text}; {counted(left, 'person', 'people')} left out of the alt-test" if left else text


def _like(subject: Subject, found: Verdict) -> str:
    """The error rates of the rule in simulated studies like this one."""
    return "" if subject.panel.numeric else like_this(found)


def _warnings(subject: Subject, judge: str) -> tuple[str, ...]:
    """What the rule does not look at, and a reader must know."""
    codes = subject.panel.labels_of(judge)
    counts = np.bincount(codes[codes != MISSING], minlength=len(subject.panel.domain))
    warnings = []
    if counts.sum() and counts.max() > ONE_SIDED * counts.sum() and not subject.panel.numeric:
        label, n = subject.panel.domain[int(counts.argmax())], int(counts.max())
        warnings.append(
            f"{judge} gave the label '{label}' to {n:,} of {counted(int(counts.sum()), 'unit')}: it hardly tells units apart."
        )
    asked, given = _asked_and_given(subject, judge)
    if asked - given > SILENT * asked:
        told = f"{judge} has no label on {asked - given:,} of {counted(asked, 'unit')} it was asked about."
        warnings.append(" ".join([told, *_not_at_random(subject, judge)]))
    return (*warnings, *_at_chance(subject))


def _not_at_random(subject: Subject, judge: str) -> list[str]:
    """Whether the judge falls silent on some labels more than on others."""
    if subject.reference is None or subject.panel.numeric:
        return []
    mine, truth = subject.panel.labels_of(judge), subject.panel.labels_of(subject.reference)
    asked = subject.panel.asked_units[judge]
    silent = {}
    for code, label in enumerate(subject.panel.domain):
        of_label = asked & (truth == code)
        if of_label.sum() >= FEW:
            silent[label] = float((mine[of_label] == MISSING).mean())
    if len(silent) < 2 or max(silent.values()) - min(silent.values()) < UNEVEN:
        return []
    shares = ", ".join(f"{share:.0%} of '{label}'" for label, share in silent.items())
    return [
        f"By the reference those are {shares}: what is missing is not random, and agreement speaks only of the rest."
    ]


def _at_chance(subject: Subject) -> list[str]:
    """People who do not agree with each other can be stood in for by anything."""
    if len(subject.panel.people) < 2 or subject.panel.numeric:
        return []
    (alpha,) = subject.panel.measure(subject.panel.people, subject.panel.keys(["krippendorff_alpha"]))
    if alpha.value is None or alpha.low is None or alpha.low > 0:
        return []
    return [
        f"People agree with each other no better than chance may explain (Krippendorff's alpha {alpha.value:.3f}, "
        f"{alpha.low:.3f} to {alpha.high:.3f}): a judge that guesses could stand in for them, so trust would say little."
    ]


def _sentence(subject: Subject, judge: str, found: Verdict) -> str:
    whom = "people" if subject.panel.people else subject.reference_text
    if found.decision in ("trust", "trust in part"):
        asked, given = _asked_and_given(subject, judge)
        where = (
            f", where it gives a label ({given:,} of {counted(asked, 'unit')})"
            if asked - given > SILENT * asked
            else ""
        )
        which = f" {labels_text(found.labels)}" if found.decision == "trust in part" else ""
        tail = "by the rule of the verdict it may stand in for"
        if found.regime == "threshold":
            tail = f"this is {UNKNOWN_CEILING}; by the rule of the verdict it may stand in for"
        return f"Trust {judge} on '{subject.panel.field}'{where}{which}: {tail} {whom}."
    if found.decision == "do not trust":
        return f"Do not trust {judge} on '{subject.panel.field}': by the rule of the verdict it cannot stand in for {whom}."
    start = f"Undecided whether {judge} can be trusted on '{subject.panel.field}': "
    if not found.more_units:
        if found.measures and found.measures[0].value is None:
            start += f"{found.because}; "
        why = f": {found.outlook.why}" if found.outlook is not None and found.outlook.why else ""
        return f"{start}no number of further labels would do{why}."
    units = f"about {found.more_units:,} more labelled unit{'s' if found.more_units > 1 else ''}"
    if found.more_clusters and found.more_clusters != found.more_units:
        units += f" (of {found.more_clusters:,} more question{'s' if found.more_clusters > 1 else ''})"
    if len(found.people) > 1:
        named = (
            ", ".join(found.people) if len(found.people) <= MOST_NAMED else f"the {len(found.people)} people"
        )
        units += f", labelled by {named},"
    ahead = found.outlook
    if ahead is None or not ahead.curve:
        text = f"{start}{units} would be enough to plan from."
    else:
        most = f"{ahead.most:,} for 90 %" if ahead.most is not None else "none on the curve for 90 %"
        half = f"{ahead.half:,} for an even chance, " if ahead.half is not None else ""
        n = found.conditions[0]
        pilot = f"planned from {counted(n.n_units, 'unit')} of {counted(n.n_clusters, 'question')}"
        text = f"{start}{units} would decide with a chance of 80 % ({half}{most}; {pilot})."
    used = (
        found.measures[0].n_units
        if found.measures
        else int(subject.panel.judged(judge, subject.reference).n_units)
    )
    left = _asked_and_given(subject, judge)[0] - used
    if found.more_units > left:
        # What lies in a sealed test is not in the table, and nobody says here how many units that are.
        sealed = any(code_of(told) == "closed" for told in subject.panel.notes)
        apart = " outside the sealed test" if sealed else ""
        text += (
            f" That is more than the {counted(left, 'other')} that this judge was asked about{apart}."
            if left
            else f" This judge was asked about no others{apart}."
        )
    return text


def _looked(look: Look | None) -> list[str]:
    """At which level the verdict is tested on a sealed test that was opened."""
    if look is None:
        return []
    return [
        f"The sealed test was opened for this judge by look {look.look} ({look.purpose}): the verdict and comparisons with "
        f"other judges are tested at {look.level:.4g}, and all intervals on this judge are {100 * look.confidence:.6g} % ones."
    ]


def _asked_and_given(subject: Subject, judge: str) -> tuple[int, int]:
    """How many units the judge was asked about, and on how many it has a label."""
    return int(subject.panel.asked_units[judge].sum()), int((subject.panel.labels_of(judge) != MISSING).sum())


def power(rulings: Sequence[Ruling]) -> list[Section]:
    """One curve for each judge that is undecided; no section where there is none."""
    blocks: list[Block] = [_curve(i, ruling) for i, ruling in enumerate((r for r in rulings if r.chances), 1)]
    return [Section("power", "How many labels more", blocks)] if blocks else []


def _curve(number: int, ruling: Ruling) -> Figure:
    columns = heads("number", "more units", "more questions")
    columns += heads("share", "decided", "trust", "do not trust")
    rows: list[list[Cell]] = [
        [c.more_units, c.more_clusters, c.decided, c.trusted, c.distrusted] for c in ruling.chances
    ]
    note = "Over all truths that the labels at hand leave open, not at the value that they show."
    caption = f"Chance of a verdict on {ruling.judge} with more labels"
    table = Table(f"power_{number}", caption, columns, rows, (note,))
    first, last = ruling.chances[0], ruling.chances[-1]
    text = (
        f"Curve of the chance that the verdict on {ruling.judge} is decided: {first.decided:.0%} with {first.more_units:,} "
        f"more units, {last.decided:.0%} with {last.more_units:,}, of which trust {last.trusted:.0%} and do not trust "
        f"{last.distrusted:.0%}."
    )
    data = {
        "units": [c.more_units for c in ruling.chances],
        "decided": [c.decided for c in ruling.chances],
        "trusted": [c.trusted for c in ruling.chances],
        "distrusted": [c.distrusted for c in ruling.chances],
    }
    return Figure(f"power_{number}_figure", caption, text, "power", data, table)


def limits(subject: Subject, rulings: Sequence[Ruling]) -> list[Section]:
    """The verdict over margin and epsilon, or over the threshold, where it is asked for."""
    blocks: list[Block] = [_over(subject, i, ruling) for i, ruling in enumerate(rulings, 1) if ruling.curve]
    return [Section("curve", "The verdict with other limits", blocks)] if blocks else []


def _over(subject: Subject, number: int, ruling: Ruling) -> Figure:
    """Rows for the margin (or the threshold), columns for epsilon where it acts."""
    asked = subject.asked
    by_margin = ruling.curve[0].threshold is None
    what = "margin" if by_margin else "threshold"
    rows = list(dict.fromkeys(p.margin if by_margin else p.threshold for p in ruling.curve))
    across = list(dict.fromkeys(p.epsilon for p in ruling.curve))
    told = {(p.margin if by_margin else p.threshold, p.epsilon): p.decision for p in ruling.curve}
    cells = [[told[row, e] for e in across] for row in rows]
    across_heads = ["verdict" if e is None else f"epsilon {e:g}" for e in across]
    evidence = ruling.conditions[0]
    over = "margin and epsilon" if across != [None] else what
    caption = f"The verdict on {ruling.judge} over {over}"
    n = f"{counted(evidence.n_units, 'unit')} of {counted(evidence.n_clusters, 'question')}"
    note = (
        f"The same {n} put to the same rule. A limit that is chosen after looking here is no test any more."
    )
    table = Table(
        f"curve_{number}",
        caption,
        heads("text", what, *across_heads),
        [[f"{row:g}", *line] for row, line in zip(rows, cells, strict=True)],
        (note,),
    )
    own = asked.margin if by_margin else asked.threshold
    same = {d: sum(line.count(d) for line in cells) for d in dict.fromkeys(d for line in cells for d in line)}
    counts = ", ".join(f"{d} at {k} of {counted(len(ruling.curve), 'point')}" for d, k in same.items())
    here = f"{what} {own:g}" + (f" and epsilon {asked.epsilon:g}" if across != [None] else "")
    text = f"Grid of the verdict over {over}: {counts}; {ruling.decision} at {here}, as asked for."
    data = {
        "rows": [f"{row:g}" for row in rows],
        "columns": ["" if e is None else f"{e:g}" for e in across],
        "cells": cells,
        "asked": [rows.index(own), 0 if across == [None] else across.index(asked.epsilon)],
        "up": what,
        "across": "" if across == [None] else "epsilon",
    }
    return Figure(f"curve_{number}_figure", caption, text, "decisions", data, table)
