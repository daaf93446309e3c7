"""Decide whether a judge can be trusted, by a rule whose conditions are tested in both directions.

docs/verdict.md explains the rule. `conditions` computes its conditions, `looks` sets the significance level
of each look, and `outlook` estimates how many labels are still needed. Tables, imported labels and drawn
batches are all decided here. They differ only in the labels and in the `Draw` that they pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from judge.errors import BadInput
from judge.notes import list_briefly
from judge.stats import verdict_rows, verdict_text
from judge.stats.alternative import FEWEST_FOR_T_TEST, AltTest, alt_test
from judge.stats.bootstrap import IntervalOptions
from judge.stats.condition_estimates import estimates
from judge.stats.conditions import ConditionArrays, rule
from judge.stats.looks import PLACES, Draw, Looks, boundary, compute_spent
from judge.stats.objections import coverage, lone_annotator
from judge.stats.outlook import LookAhead, Outlook, outlook
from judge.stats.pairwise import Copy, find_copies, identical
from judge.stats.ratings import FloatArray, Ratings
from judge.stats.verdict_inputs import FAILS, FEWEST_QUESTIONS, HOLDS, Case, Limits, Regime, case
from judge.stats.verdict_rows import Condition, Decision, LabelRow
from judge.types import Measure

DECISIONS: tuple[Decision, ...] = ("undecided", "trust", "trust in part", "do not trust")


@dataclass(frozen=True)
class Verdict:
    """A verdict with the numbers on which it is based.

    `rule` is the rule in words, and `because` states the numbers behind the decision. `more_clusters` and
    `more_units` are the numbers of questions and units still needed. They are None if the verdict is decided,
    or if no number suffices; in the latter case, `outlook` has the reason. `people` are the annotators who
    took part, and `source` is the single source of labels, if there is only one.

    `of` contains the data to which the rule was applied, and `limits` contains its limits. `draw` describes
    how the labelled units were selected. `held_up` is the reason why the verdict is undecided although the
    agreement may be high enough, or empty if there is no such reason. `copies` are annotators whose labels are
    nearly identical to the judge's; if there are any, the judge is not trusted.

    `alt_test` is the alternative annotator test at the level of its authors. If several judges share the
    level, `alt_test_at_shared_level` is the same test at this judge's part.
    """

    judge: str
    decision: Decision
    regime: Regime
    rule: str
    because: str
    conditions: tuple[Condition, ...]
    labels: tuple[LabelRow, ...]
    people: tuple[str, ...]
    source: str | None
    more_clusters: int | None
    more_units: int | None
    of: Case
    limits: Limits
    draw: Draw
    measures: tuple[Measure, ...] = ()
    alt_test: AltTest | None = None
    alt_test_at_shared_level: AltTest | None = None
    outlook: Outlook | None = None
    warnings: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    held_up: str = ""

    @property
    def refused(self) -> str:
        """The reason why the numbers are only estimates and support no verdict; empty if they support a verdict."""
        return self.draw.refused


def verdict(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    gold: str | None = None,
    draw: Draw | None = None,
    epsilon: float = Limits.epsilon,
    margin: float = Limits.margin,
    threshold: float = Limits.threshold,
    least_others: int = 1,
    clustered: bool = True,
    name: str = "cohen_kappa",
    level: str = "nominal",
    field: str | None = None,
    power: float | None = 0.8,
    **options: Unpack[IntervalOptions],
) -> Verdict:
    """Decide whether a judge can be trusted, by comparing it with `people` or only with `reference`.

    `reference` is one person, the gold labels, or the column `decided` (a lead annotator's decisions and
    labels on which people agree). `gold` is a column of gold labels: if annotators contradict it, the verdict
    is undecided.

    Every unit in `ratings` counts as drawn: a missing label lowers the coverage. Agreement is averaged within the units that the judge and two annotators labelled. Chance agreement comes
    from the pooled label shares. `name` and `level` determine whether similar labels count as partial
    agreement.

    `draw` describes how the units were drawn. If it has interim looks, the verdict uses the units of the last
    look. The intervals are then widened, so that the error rate over all looks does not exceed the
    significance level. Otherwise the verdict uses all units in a single look. If `power` is None, the number
    of labels still needed is not computed.

    The intervals are jackknife intervals, so only `confidence` is used from `options`. If it is above .95,
    conditions (b) and (c) become stricter to the same extent. Raises BadInput if there is no annotator or
    reference to compare with, for unknown names, for limits out of range, and for interval=None.
    """
    if options.get("interval", "bca") is None:
        raise BadInput("a verdict needs intervals, so interval must not be None")
    if not 0 <= epsilon <= 1 or not -1 <= margin <= 1 or not -1 <= threshold <= 1:
        raise BadInput("epsilon must be from 0 to 1, and the margin and the threshold from -1 to 1")
    draw = draw or Draw()
    limits = Limits(
        margin=margin,
        epsilon=epsilon,
        threshold=threshold,
        clustered=clustered,
        by_label=level in ("nominal", "ordinal"),
        near_labels=level == "ordinal" and name.endswith(":quadratic"),
    )

    def sides(units: Ratings, of: str = judge) -> Case:
        return case(
            units,
            of,
            people,
            reference=reference if of == judge else None,
            name=name,
            level=level,
            least_others=least_others,
        )

    if draw.looks:
        # Units of one sequence have equal weights; units with other weights are outside its masks.
        ratings = replace(ratings, weights=None)
    used, fresh = ratings, draw.fresh
    if draw.looks and draw.looks.masks:
        at_look = draw.looks.masks[-1]
        used, fresh = ratings.subset(at_look), None if fresh is None else fresh[at_look]
    about_it = sides(used)
    if draw.looks and draw.looks.masks:
        # The table lacks units that every annotator skipped, so the number of drawn units comes from the sequence.
        about_it = replace(about_it, n_asked=draw.looks.places[-1])
    information = [
        estimates(sides(ratings.subset(mask)).sums, limits).information
        for mask in (draw.looks.masks if draw.looks and not draw.refused else ())
    ]
    limits = limits.adjust_confidence(
        _confidence(draw, information, options.get("confidence", Limits.confidence))
    )
    outcome = rule(about_it.sums, limits)
    decision = DECISIONS[int(outcome.decision[0])]
    test, at_shared_level = None, None
    if about_it.regime == "people" and len(about_it.people) >= 3:
        run_test = partial(
            alt_test,
            used,
            judge,
            about_it.people,
            epsilon=epsilon,
            # Two ratios are rarely equal, so a test of equality would find only ties. Their distance is used instead.
            level="interval" if level == "ratio" else level,
            least_others=least_others,
            clustered=clustered,
        )
        # The authors test each judge at this level, so that published values can be repeated.
        test = run_test(q=Limits.q)
        at_shared_level = run_test(q=Limits.q * draw.share) if draw.judges > 1 else None
    table = used.select(about_it.people) if about_it.people else None
    conditions = verdict_rows.conditions(about_it, outcome, limits, test, table)
    questions = int(outcome.of.questions[0])
    labels = (
        verdict_rows.labels(used, outcome, limits) if about_it.regime == "people" and limits.by_label else ()
    )
    # One duplicated annotator moves a good judge by -.11, so the user must learn of it.
    warnings = identical(table) if table is not None else ()
    covered, uncovered = coverage(used, about_it, fresh, draw.remedy)
    conditions = (conditions[0], covered, *conditions[1:])
    objection = uncovered
    copies: tuple[Copy, ...] = ()
    # A draw in equal parts by the judge's label is not valid at 300 units: a judge at the margin was trusted in 4 to 22 %.
    if draw.refused:
        decision, objection = "undecided", ""
        conditions = tuple(replace(c, state="not asked") for c in conditions)
        if used.weights is not None:
            conditions, labels = verdict_rows.remove_intervals(conditions, labels)
    else:
        of_gold = None
        voices = about_it.people or tuple(p for p in people if p == about_it.source)
        if gold is not None and voices and gold not in voices and gold != about_it.source:
            of_gold = gold, rule(sides(used, gold).sums, limits)
        copies = find_copies(used.select(voices), used.column(judge)) if voices else ()
        added, reason = _objections(about_it, table, copies, of_gold, limits, questions)
        conditions = (*conditions, *added)
        # Too few labels leave every decision open. The other objections can only prevent trust: a judge that fails also
        # fails with copied labels.
        if uncovered or (decision != "do not trust" and (reason or draw.objection)):
            objection, decision = draw.objection or uncovered or reason, "undecided"
        else:
            objection = ""
    ahead = None
    if draw.no_labels:
        # More units would not help a judge that has labelled none.
        power = None
    if objection:
        ahead = Outlook(power or 0.0, why=objection)
    elif decision == "undecided" and power is not None:
        ahead = outlook(
            about_it.sums,
            limits,
            power=power,
            looks=_ahead(draw, information, about_it),
            anew=used.weights is not None,
        )
    return Verdict(
        judge,
        decision,
        about_it.regime,
        verdict_text.rule(about_it, limits),
        draw.refused or objection or verdict_text.because(outcome, conditions, labels, decision, limits),
        conditions,
        labels,
        about_it.people,
        about_it.source,
        *((None, None) if objection else _compute_more(ahead, outcome)),
        about_it,
        limits,
        draw,
        verdict_rows.measures(judge, about_it, outcome, limits, name, level, field),
        test,
        at_shared_level,
        ahead,
        tuple(warnings),
        tuple(copy.person for copy in copies),
        objection,
    )


def _objections(
    case: Case,
    table: Ratings | None,
    copies: Sequence[Copy],
    of_gold: tuple[str, ConditionArrays] | None,
    limits: Limits,
    questions: int,
) -> tuple[tuple[Condition, ...], str]:
    """Return the conditions that rule out trust regardless of the judge's agreement, and the first reason (""
    if there is none).

    The possible reasons are, in this order: annotators who copied the judge, a person who agrees with the
    others too little, and gold labels that annotators contradict.
    """
    added: list[Condition] = []
    objection = ""
    if copies:
        added.append(verdict_rows.independence(copies, questions))
        names = list_briefly([copy.person for copy in copies])
        objection = f"the labels of {names} are nearly identical to the judge's"
    if table is not None:
        row, apart = lone_annotator(table, case.sums.agreement, limits, case.n_units, questions)
        added += [row] if row is not None else []
        objection = objection or apart
    if of_gold is not None:
        gold, against = of_gold
        if against.states["evidence"][0] == HOLDS and against.states["non_inferiority"][0] == FAILS:
            added.append(verdict_rows.gold_agrees(against, gold, limits))
            objection = objection or f"people contradict '{gold}'"
    return tuple(added), objection


def _confidence(draw: Draw, information: Sequence[FloatArray], confidence: float) -> float:
    """Return the confidence of the intervals that decide the verdict.

    For a single look, it is `confidence`. After interim looks, it is higher, so that the error rate over all
    looks does not exceed the significance level (see `boundary`). In both cases, it is higher still if
    several judges divide the significance level among them (`draw.share` is below 1).
    """
    if draw.looks is None or not information:
        return 1 - (1 - confidence) * draw.share
    from scipy.special import ndtr

    spent = [draw.share * level for level in draw.looks.spent[: len(information)]]
    z = boundary(np.column_stack(information), spent)
    return float(2 * ndtr(z[0]) - 1)


def _ahead(draw: Draw, information: Sequence[FloatArray], of: Case) -> list[LookAhead]:
    """Return the remaining looks, each with the confidence of its intervals.

    The confidence is computed as if information grew in proportion to the number of units. Units that were
    drawn with unequal probabilities do not qualify for a verdict. For such units, the looks at a new sample
    with equal probabilities are returned.
    """
    from scipy.special import ndtr

    looks, done = draw.looks, len(information)
    if looks is None and of.sums.weighted:
        looks = Looks((), (), PLACES, compute_spent(PLACES, PLACES[-1]), 0)
    if looks is None:
        return []
    now = looks.places[-1] if done else looks.size or of.n_units
    per_unit = float(information[-1][0]) / now if done else 1.0
    known = np.array([*(float(x[0]) for x in information), *(per_unit * place for place in looks.ahead)])
    # A weighted pilot does not qualify for a verdict, so its units are not among those of a look.
    kept = 0 if of.sums.weighted else 1
    to_come = []
    for k, place in enumerate(looks.ahead, done + 1):
        z = boundary(known[None, :k], [draw.share * level for level in looks.spent[:k]])
        to_come.append(
            LookAhead(place / now - kept if now else 0.0, place - looks.size, float(2 * ndtr(z[0]) - 1))
        )
    return to_come


def _compute_more(ahead: Outlook | None, outcome: ConditionArrays) -> tuple[int | None, int | None]:
    if ahead is None:
        return None, None
    questions = int(outcome.of.questions[0])
    if questions >= FEWEST_QUESTIONS:
        return ahead.more_clusters, ahead.more_units
    # There are too few questions for a plan, so thirty are requested, which are enough for one.
    missing = FEWEST_FOR_T_TEST - questions
    per = float(outcome.of.units[0]) / questions if questions else 1.0
    return missing, max(missing, round(missing * per))
