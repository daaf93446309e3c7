"""The verdict on each judge, with the rule that was applied and the numbers.

A figure and a table show how many more labels would decide the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from annotate.drawing.source import VerdictSource
from annotate.drawing.verdicts import judge_verdicts
from annotate.report.model import Ruling
from annotate.report.subject import Subject
from judge.document.blocks import Block, Cell, Figure, Section, Table, heads, level_text
from judge.document.cells import format_count
from judge.stats import AltTest, Verdict
from judge.stats.verdict_text import labels_text
from judge.store import Store
from judge.store.splits import Look
from judge.types import attributes

# If the share of one label is larger, a judge can agree with people without distinguishing units.
ONE_SIDED = 0.95
# If the share of units without a label by the judge is larger, the reader must be warned.
SILENT = 0.05
# If a label has fewer units, the judge's missing labels on it are not evidence; a smaller gap is not a pattern.
FEW, UNEVEN = 10, 0.1


def rule(
    store: Store, subject: Subject
) -> tuple[list[Ruling], dict[str, tuple[AltTest, AltTest | None]], str]:
    """Return a ruling for each judge, the alternative annotator tests of each judge, and the reason if there is no ruling.

    The first test of a judge has the level of the test's authors. The second has the judge's part of the level,
    and is None if the level is not shared.
    """
    if not subject.panel.judges:
        return [], {}, "No judge labelled this field, so there is nothing to trust or distrust yet."
    if not subject.panel.people and subject.reference is None:
        return (
            [],
            {},
            "No verdict yet: only judges labelled this field. Have people label a sample of it, or import gold labels.",
        )
    rulings: list[Ruling] = []
    tests: dict[str, tuple[AltTest, AltTest | None]] = {}
    for judge, verdict in _verdicts(store, subject).items():
        look = subject.panel.looks.get(judge)
        headline, evidence = words(subject, judge, verdict)
        if verdict.alt_test:
            tests[judge] = verdict.alt_test, verdict.alt_test_at_shared_level
        # In the list of all measures, the measures for several judges must be distinguishable.
        measures = tuple(replace(m, annotators=m.annotators or (judge,)) for m in verdict.measures)
        rulings.append(
            Ruling(
                judge=judge,
                decision=verdict.decision,
                headline=headline,
                evidence=evidence,
                rule=verdict.rule,
                because=_because(verdict),
                draw=describe_draw(verdict),
                next_place=verdict.draw.next_place,
                more_units=verdict.more_units,
                more_questions=verdict.more_clusters,
                ceiling_known=verdict.regime == "people",
                measures=measures,
                warnings=(*verdict.warnings, *_warnings(subject, judge), *_describe_look(look)),
                conditions=verdict.conditions,
                conflicts=sum(subject.panel.conflicts.values()),
                no_labels=verdict.draw.no_labels,
                is_tested=verdict.draw.is_tested,
                confidence=verdict.limits.confidence,
                shared_by=_describe_sharing(verdict),
                labels=verdict.labels,
                chances=verdict.outlook.curve if verdict.outlook else (),
            )
        )
    return rulings, tests, ""


def _verdicts(store: Store, subject: Subject) -> dict[str, Verdict]:
    return judge_verdicts(
        VerdictSource(store, subject.panel, subject.options.batch, subject.table is not None),
        subject.resolved,
        power=0.8,
        name=subject.panel.coefficient,
        **attributes(subject.options, "epsilon", "least_others", "margin", "threshold"),
    )


def _describe_sharing(verdict: Verdict) -> str:
    """Describe why the error rate of the verdict is divided: several looks at the units, several judges, or both.

    Each look or judge gets a part of the error rate, so the verdict's intervals are wider than 95 % intervals. The
    result is empty if the error rate is not divided.
    """
    looks, judges = verdict.draw.looks, verdict.draw.judges
    parts = ["several looks at the units"] if looks is not None and len(looks.spent) > 1 else []
    return " and by ".join([*parts, *([f"{judges} judges"] if judges > 1 else [])])


def _because(verdict: Verdict) -> str:
    text = verdict.because
    # The first condition is the evidence, and its counts are the counts of the verdict.
    n = verdict.conditions[0]
    on = f"{format_count(n.n_units, 'unit')} of {format_count(n.n_clusters, 'question')}"
    # A reason without numbers has no intervals either.
    if re.search(r"\d to -?\d", text) and not verdict.refused and not verdict.held_up:
        on += f"; {level_text(verdict.limits.confidence)} intervals"
    text = f"{text[:1].upper()}{text[1:]} (n = {on})"
    n_skipped = len(verdict.alt_test.skipped) if verdict.alt_test is not None else 0
    if not n_skipped:
        return text
    return f"{text}; {format_count(n_skipped, 'person', 'people')} left out of the alt-test"


def _warnings(subject: Subject, judge: str) -> tuple[str, ...]:
    """Return warnings about problems that the rule does not check for."""
    table, domain, warnings = subject.panel.table, subject.panel.domain, []
    n_judged = int(subject.panel.asked_units[judge].sum())
    n_labelled = int(subject.has_label(judge).sum())
    if n_labelled and not subject.panel.numeric:
        n, code = max((int(table.has_code(judge, code).sum()), -code) for code in range(len(domain)))
        if n > ONE_SIDED * n_labelled:
            warnings.append(
                f"{judge} gave the label '{domain[-code]}' to {n:,} of {format_count(n_labelled, 'unit')}, so it hardly distinguishes units."
            )
    if n_judged - n_labelled > SILENT * n_judged:
        warning = f"{judge} has no label on {n_judged - n_labelled:,} of {format_count(n_judged, 'unit')} that it was asked about."
        warnings.append(" ".join([warning, *_warn_missing(subject, judge)]))
    return (*warnings, *_warn_chance(subject))


def _warn_missing(subject: Subject, judge: str) -> list[str]:
    """Return a warning if the judge's labels are missing more often for some reference labels than for others."""
    if subject.reference is None or subject.panel.numeric:
        return []
    judged = subject.panel.asked_units[judge]
    missing = {}
    for code, label in enumerate(subject.panel.domain):
        of_label = judged & subject.panel.table.has_code(subject.reference, code)
        if of_label.sum() >= FEW:
            missing[label] = float((~subject.has_label(judge)[of_label]).mean())
    if len(missing) < 2 or max(missing.values()) - min(missing.values()) < UNEVEN:
        return []
    shares = ", ".join(f"{share:.0%} of '{label}'" for label, share in missing.items())
    return [
        f"By reference label, the judge's labels are missing on {shares}. They are not missing at random, so the agreement "
        "describes only the units that the judge labelled."
    ]


def _warn_chance(subject: Subject) -> list[str]:
    """Return a warning if the agreement between people may be due to chance.

    In that case, even a judge that guesses could be non-inferior to people.
    """
    if len(subject.panel.people) < 2 or subject.panel.numeric:
        return []
    (alpha,) = subject.panel.measure(subject.panel.people, subject.panel.keys(["krippendorff_alpha"]))
    if alpha.value is None or alpha.low is None or alpha.low > 0:
        return []
    return [
        f"The agreement between people may be due to chance (Krippendorff's alpha {alpha.value:.3f}, {alpha.low:.3f} to "
        f"{alpha.high:.3f}). A judge that guesses could then be non-inferior to people, so trust would mean little."
    ]


def describe_draw(verdict: Verdict) -> str:
    """Describe how many units the verdict is based on, and how they were drawn."""
    n, drawn = verdict.of.n_units, verdict.of.n_asked
    # The share of units with the labels that the verdict needs is part of the evidence.
    compared = f"{n:,} of " if n < drawn and not verdict.of.sums.weighted else ""
    units = n if verdict.of.sums.weighted else drawn
    return f"{compared}{format_count(units, 'unit')} {verdict.draw.words}"


def words(subject: Subject, judge: str, verdict: Verdict) -> tuple[str, str]:
    """Return the verdict in one sentence, and the evidence for it: together at most 66 words, not counting names.

    The evidence says how well the judge agrees with people, how well they agree with each other, on which units, and what
    would decide an open verdict.
    """
    field = f"'{subject.panel.field}'"
    if verdict.draw.no_labels:
        return f"No verdict on {judge} for {field}: {verdict.refused}.", ""
    # Without a verdict, the reason says what is missing, and the text must stay short.
    units = format_count(verdict.of.n_units, "unit") if verdict.refused else describe_draw(verdict)
    evidence = f"{judge}{_agreements(verdict)}, on {units}."
    # Nothing is known about how the units of a table or an import were chosen.
    condition = "" if verdict.draw.is_random else "If these units are a random sample: "
    if verdict.decision == "trust":
        head = f"trust {judge} on {field}, because it {_non_inferior(verdict)}."
    elif verdict.decision == "trust in part":
        head = f"trust {judge} partly on {field}, {labels_text(verdict.labels)}."
        evidence += f" It {_non_inferior(verdict)}."
    elif verdict.decision == "do not trust":
        head = f"do not trust {judge} on {field}, because it is worse than {_limit(verdict)}."
        evidence += " Improve it with `judge improve`, or label by hand."
    else:
        reason = verdict.refused or verdict.held_up or _open(verdict)
        head = f"{'no verdict' if verdict.refused else 'undecided'} on {judge} for {field}: {reason}."
        evidence += _ahead(verdict)
    return condition + head if condition else head[0].upper() + head[1:], evidence


def _agreements(verdict: Verdict) -> str:
    """Describe the judge's agreement with people, and people's agreement with each other.

    The text follows the name of the judge.
    """
    values = [m.value for m in verdict.measures if m.measure != "pooled_kappa_difference"]
    with_people, *among = ["undefined" if value is None else f"{value:.2f}" for value in values]
    whom = f"{len(verdict.people)} people" if verdict.people else f"'{verdict.source}'"
    judges = f", one of {verdict.draw.judges} judges," if verdict.draw.judges > 1 else ""
    others = f", they with each other at {among[0]}" if among else ""
    return f"{judges} agrees with {whom} at kappa {with_people}{others}"


def _limit(verdict: Verdict) -> str:
    if verdict.regime == "threshold":
        return f"the threshold {verdict.limits.threshold:g} allows"
    return f"a human annotator by more than the margin ({verdict.limits.margin:g})"


def _non_inferior(verdict: Verdict) -> str:
    if verdict.regime == "threshold":
        return f"agrees above the threshold {verdict.limits.threshold:g} (how well people would agree is unknown)"
    return f"is non-inferior to a human annotator (margin {verdict.limits.margin:g})"


def _open(verdict: Verdict) -> str:
    names = {"evidence": "too few labels", "people_agree": "people agree too little among themselves"}
    for c in verdict.conditions:
        if c.state == "open" and c.name in names:
            return names[c.name]
    if all(c.state != "open" for c in verdict.conditions if c.name in ("non_inferiority", "threshold")):
        return "no label meets its condition yet"
    if verdict.regime == "threshold":
        return f"the interval includes the threshold {verdict.limits.threshold:g}"
    return f"the interval includes the margin {verdict.limits.margin:g}"


def _ahead(verdict: Verdict) -> str:
    """Return sentences on the next step.

    They say how many more units are needed for a verdict, or that no number of units would lead to a verdict.
    """
    draw = verdict.draw
    if verdict.held_up or (verdict.refused and draw.looks is None and not verdict.of.sums.weighted):
        # The sentence already names the next step, and more units of this kind would not decide.
        return ""
    if draw.looks is not None and not draw.looks.ahead:
        return " No further look at these units is possible."
    ahead = verdict.outlook
    # A sentence without a verdict already names the next look.
    hopeless = ahead is not None and bool(ahead.why) and not verdict.more_units
    next_look = draw.next_place is not None and not verdict.refused and not hopeless
    parts = [f" The next look is at {draw.next_place:,} units."] if next_look else []
    # A verdict cannot rest on more units than the frame has.
    left = draw.looks.ahead[-1] - (draw.looks.places or (draw.looks.size,))[-1] if draw.looks else None
    if verdict.more_units and left is not None and verdict.more_units > left:
        parts.append(f" Only {left:,} more can be drawn; about {verdict.more_units:,} are needed.")
    # The number can be 0 or less if labels have gaps: enough units are labelled, but an earlier block is not complete.
    elif verdict.more_units and verdict.more_units > 0:
        units = "drawn in the same way" if verdict.of.sums.weighted else "more"
        enough = "would be enough to plan from"
        if ahead is not None and ahead.curve:
            enough = "would decide with a chance of 80 %"
        parts.append(f" About {verdict.more_units:,} {units} {enough}.")
    elif ahead is not None and ahead.why and verdict.refused and verdict.of.sums.weighted:
        # More units drawn in the same way would not decide. The draw that would decide is already named.
        parts += [
            f" With {c.more_units:,} units drawn in the same way, the chance is {c.decided:.0%}."
            for c in ahead.curve[-1:]
        ]
    elif ahead is not None and ahead.why:
        parts.append(f" More labels may not decide it: {ahead.why}.")
    return "".join(parts)


def _describe_look(look: Look | None) -> list[str]:
    """Return a sentence on the significance level that applies because the judge's sealed test was opened.

    The list is empty if `look` is None.
    """
    if look is None:
        return []
    return [
        f"The sealed test was opened for this judge by look {look.look} ({look.purpose}): comparisons with other judges "
        f"are tested at the level {look.level:.4g}, and all intervals for this judge outside the verdict are "
        f"{100 * look.confidence:.6g} % intervals."
    ]


def power(rulings: Sequence[Ruling]) -> list[Section]:
    """Return the section on the number of labels that are still needed.

    It has a curve for each undecided judge, which shows the chance of a verdict for each number of added
    units.
    """
    blocks: list[Block] = [_curve(i, ruling) for i, ruling in enumerate((r for r in rulings if r.chances), 1)]
    return [Section("power", "How many more labels", blocks)] if blocks else []


def _curve(number: int, ruling: Ruling) -> Figure:
    columns = heads("number", "more units", "more questions")
    columns += heads("share", "decided", "trust", "do not trust")
    rows: list[list[Cell]] = [
        [c.more_units, c.more_clusters, c.decided, c.trusted, c.distrusted] for c in ruling.chances
    ]
    note = "The chance is averaged over all values that the present labels leave open, not computed at their estimate."
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
