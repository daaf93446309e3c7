"""The verdict on each judge: one sentence, with the rule that made it and the numbers it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from annotate.report.model import Ruling
from annotate.report.people import NAMES
from annotate.report.subject import Subject
from judge.stats import MISSING, AltTest, Ratings, Verdict, verdict

# Above this share of one label a judge can agree with people without telling units apart.
ONE_SIDED = 0.95


def rule(subject: Subject) -> tuple[list[Ruling], dict[str, AltTest], str]:
    """A ruling for each judge, the alt-tests that decided, and why there is no ruling, if there is none."""
    if not subject.judges:
        return [], {}, "No judge labelled this field, so there is nothing to trust or distrust yet."
    if not subject.people and subject.reference is None:
        return [], {}, "Nobody but judges labelled this field: import gold labels, or have people label some."
    rulings: list[Ruling] = []
    tests: dict[str, AltTest] = {}
    for judge in subject.judges:
        found = verdict(
            _table(subject, judge),
            judge,
            subject.people,
            reference=subject.reference,
            epsilon=subject.asked.epsilon,
            margin=subject.asked.margin,
            threshold=subject.asked.threshold,
            name=subject.coefficient,
            level=subject.level,
            field=subject.field,
        )
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
                warnings=_warnings(subject, judge),
            )
        )
    return rulings, tests, ""


def _table(subject: Subject, judge: str) -> Ratings:
    """The units that the judge was asked about and somebody else labelled: what a verdict can rest on."""
    others = [*subject.people, *([subject.reference] if subject.reference else [])]
    labelled = np.logical_or.reduce([subject.labels_of(other) != MISSING for other in others])
    table: Ratings = subject.ratings.subset(labelled & subject.asked_units[judge])
    return table


def _because(found: Verdict) -> str:
    text = found.because
    for name, told in NAMES.items():
        text = text.replace(f"{name}_difference", f"the difference of {told}").replace(f"{name} ", f"{told} ")
    text = text[:1].upper() + text[1:]
    if found.alt_test is None:
        return text
    left = len(found.alt_test.skipped)
    return f"{text}, {len(found.alt_test.compared)} people tested" + (f" and {left} left out" if left else "")


def _warnings(subject: Subject, judge: str) -> tuple[str, ...]:
    """What the rule does not look at, and a reader must know."""
    codes = subject.labels_of(judge)
    counts = np.bincount(codes[codes != MISSING], minlength=len(subject.found.domain))
    warnings = []
    if counts.sum() and counts.max() > ONE_SIDED * counts.sum() and not subject.numeric:
        label, n = subject.found.domain[int(counts.argmax())], int(counts.max())
        warnings.append(
            f"{judge} gave the label '{label}' to {n:,} of {int(counts.sum()):,} units: it hardly tells units apart."
        )
    asked = int(subject.asked_units[judge].sum())
    unlabelled = asked - int((codes != MISSING).sum())
    if unlabelled > asked / 20:
        warnings.append(f"{judge} has no label on {unlabelled:,} of {asked:,} units it was asked about.")
    return tuple(warnings)


def _sentence(subject: Subject, judge: str, found: Verdict) -> str:
    whom = "people" if subject.people else subject.reference_text
    if found.decision == "trust":
        return f"Trust {judge} on '{subject.field}': by the rule below it may stand in for {whom}."
    if found.decision == "do not trust":
        return f"Do not trust {judge} on '{subject.field}': by the rule below it cannot stand in for {whom}."
    start = f"Undecided whether {judge} can be trusted on '{subject.field}': "
    if not found.more_units:
        return start + "no number of further labels can be named that would decide it."
    units = f"about {found.more_units:,} more labelled unit{'s' if found.more_units > 1 else ''}"
    if found.more_clusters and found.more_clusters != found.more_units:
        units += f" (of {found.more_clusters:,} more question{'s' if found.more_clusters > 1 else ''})"
    return start + f"{units} would be needed to decide, if the agreement stays as it is."
