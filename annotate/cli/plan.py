"""annotate plan: compute how many questions and units to label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from annotate.cli._source import LabelSource, as_one, reference_option, source_options
from judge.console import emit_json, json_option
from judge.document.terminal import print_result, show
from judge.errors import BadInput, UsageError
from judge.types import Json, attributes

if TYPE_CHECKING:
    from judge.labels.panel import Panel
    from judge.labels.reference import Reference
    from judge.stats.planning import Design, SampleSize

MOST_PER_QUESTION = 10_000
CONFIDENCE = 0.95
"""The confidence level of the planned intervals, which is also the level of the verdict."""


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """The options of `annotate plan`."""

    source: LabelSource
    name: str | None
    reference: str | None
    width: float | None
    threshold: float | None
    verdict: bool
    epsilon: float
    margin: float | None
    power: float
    expect: float | None
    shares: str | None
    per_question: str | None
    icc: float | None
    as_json: bool

    @property
    def measure(self) -> str:
        """The measure for which the plan is computed."""
        return self.name or "cohen_kappa"


@click.command()
@source_options
@click.option("--measure", "name", metavar="NAME", help="Coefficient to plan for (default: cohen_kappa).")
@reference_option
@click.option("--width", type=float, metavar="X", help="Maximum full width of the interval.")
@click.option("--threshold", type=float, metavar="X", help="Value that the interval must exclude.")
@click.option("--verdict", is_flag=True, help="Compute how many more units each judge's verdict needs.")
@click.option("--epsilon", default=0.2, metavar="X", help="Epsilon of the alternative annotator test.")
@click.option("--margin", type=float, metavar="X", help="With --verdict: the margin, as in annotate report.")
@click.option("--power", default=0.8, metavar="X", help="Probability that the plan succeeds.")
@click.option(
    "--expect", type=float, metavar="X", help="Expected value of the measure, if there are no pilot labels."
)
@click.option(
    "--shares", metavar="S,S,...", help="Expected label shares, for kappa if there are no pilot labels."
)
@click.option(
    "--per-question", metavar="M,M,...", help="Numbers of units per question to try (default: 1,2,3,5,10)."
)
@click.option("--icc", type=float, metavar="X", help="Correlation within questions, from 0 to 1.")
@json_option
@as_one(PlanAsked)
def plan(options: PlanAsked) -> None:
    """Compute how many questions and units to label.

    The goal is an interval of a given width, or a decided verdict.

    \b
    annotate plan --expect 0.7 --shares 0.4,0.3,0.3 --width 0.2 --per-question 5 --icc 0.1
    annotate plan --field stance --judge last --threshold 0.667
    annotate plan votes.csv --judge gpt --width 0.1
    annotate plan votes.csv --judge gpt --verdict --epsilon 0.15

    The plan is based on pilot labels, or on the value that you expect (--expect). The pilot labels come from
    a field of the study, or from a TABLE with the same columns as for annotate agreement. The output lists
    the assumptions. Intervals have a confidence level of 95 %.

    The correlation within questions (--icc) is estimated from the pilot labels. If there are none, it is 0 by
    default. With --annotators ann,bob, the plan is for the agreement between ann and bob.
    """
    from annotate.agreement.plan_document import as_document

    if options.width is None and options.threshold is None and not options.verdict:
        raise UsageError(
            "specify a goal: --width 0.2 (an interval), --threshold 0.667 (a decision) or --verdict (on a judge)"
        )
    if not 0 < options.power < 1:
        raise UsageError("--power must be between 0 and 1")
    if options.verdict:
        _verdict(options)
        return
    if options.margin is not None:
        raise UsageError("--margin requires --verdict")
    design, names, assumed = (
        _pilot(options) if options.expect is None else _make_design(options, options.expect)
    )
    if options.icc is not None:
        if not 0 <= options.icc <= 1:
            raise UsageError(f"--icc {options.icc}: an intraclass correlation must be between 0 and 1")
        # A given correlation replaces the estimate from a small pilot.
        design = replace(design, icc=options.icc)
        assumed.append(f"units of the same question are correlated as specified: icc {options.icc:g}")
    # Rounding can leave a spread that is not quite 0.
    if design.sd < 1e-9:
        raise BadInput(
            f"all labels in the pilot agree ({options.measure} {design.value:.3f} on {design.n_units} units), so nothing "
            "can be planned from it; specify the value that you expect (--expect)"
        )
    goals = _plans(design, options)
    notes = list(dict.fromkeys(line for goal in goals for size in goal.plans for line in size.notes))
    if options.as_json:
        emit_json(
            "plan",
            {
                "source": None if options.expect is not None else str(options.source),
                "measure": options.measure,
                "annotators": names,
                "design": attributes(design, "value", "sd", "icc", "n_units", "n_clusters"),
                "confidence": CONFIDENCE,
                "power": options.power,
                "assumed": assumed,
                "notes": notes,
                "rows": [_row(size, goal) for goal in goals for size in goal.plans],
            },
        )
        return
    show(as_document(design, [(goal.title, goal.plans) for goal in goals], [*assumed, *notes]))


def _verdict(options: PlanAsked) -> None:
    from annotate.agreement.plan_document import verdict_document
    from annotate.cli import _plan_verdict as verdict
    from annotate.drawing.source import VerdictSource
    from judge.labels.reference import resolve
    from judge.store import Store

    for name in ("width", "expect", "shares", "per_question", "icc"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--verdict bases its plan on the existing labels: omit --{name.replace('_', '-')}"
            )
    for name, least in (("epsilon", 0), ("margin", -1), ("threshold", -1)):
        value = getattr(options, name)
        if value is not None and not least <= value <= 1:
            raise UsageError(f"--{name} {value:g}: must be a number from {least} to 1")
    if options.name:
        from annotate.agreement.one_field import check_measures

        check_measures([options.name])
    panel = _read_panel(options)
    rule = attributes(options, "epsilon", "power")
    rule |= {key: value for key in ("margin", "threshold") if (value := getattr(options, key)) is not None}
    reference = resolve(panel, options.reference)
    # The rule asks a study for earlier looks, and a table has none.
    with Store.open(":memory:" if options.source.table else options.source.db) as store:
        drawn = VerdictSource(store, panel, options.source.batch, options.source.table is not None)
        plans = verdict.verdict_plans(drawn, reference, options.name, CONFIDENCE, **rule)
    document = {
        "source": str(options.source),
        "confidence": CONFIDENCE,
        **attributes(options, "power", "epsilon"),
        "judges": [verdict.as_json(judge_plan) for judge_plan in plans],
    }
    print_result("plan_verdict", document, verdict_document(plans), options.as_json)


def _read_panel(options: PlanAsked) -> Panel:
    from annotate.agreement.one_field import check

    panels = options.source.panels()
    if len(panels) != 1:
        raise UsageError(f"specify one --field; available: {', '.join(panel.field for panel in panels)}")
    check(panels[0])
    return panels[0]


def _make_design(options: PlanAsked, value: float) -> tuple[Design, list[str] | None, list[str]]:
    """Return a design for planning that is computed from --expect and --shares, without existing labels.

    The result is (design, annotators, assumptions). `annotators` is None, because there are no annotators yet.
    """
    from judge.stats.planning import expected_kappa, expected_rate

    source = options.source
    if source.table or source.field or source.task or source.judges:
        raise UsageError(
            "--expect is for planning without a pilot: omit the table, --field, --task and --judge"
        )
    name, _, weights = options.measure.partition(":")
    icc = options.icc or 0.0
    assumed = [f"the value will be the expected value, {value:g}"]
    if options.icc is None:
        # Units of one question are usually alike, and then the plan is too small.
        assumed.append(
            "units of the same question are independent (icc 0), which passages seldom are: see --icc"
        )
    if name == "cohen_kappa" and weights in ("", "linear", "quadratic"):
        shares = _numbers(options.shares, "--shares")
        if not shares:
            raise UsageError(
                "kappa depends on how often each label occurs: add the label shares, e.g. --shares 0.4,0.3,0.3"
            )
        assumed.append(f"both annotators use the labels with shares {', '.join(f'{s:g}' for s in shares)}")
        return expected_kappa(value, shares, weights=weights or None, icc=icc), None, assumed
    # Only for these measures does the spread follow from the value alone.
    if name in ("percent", "accuracy", "share") and not weights:
        if options.shares:
            raise UsageError(f"--shares is for kappa, not for {name}")
        return expected_rate(value, icc=icc), None, assumed
    raise UsageError(
        f"--expect supports only cohen_kappa, percent, accuracy and share; {options.measure} requires a pilot"
    )


def _pilot(options: PlanAsked) -> tuple[Design, list[str] | None, list[str]]:
    """Return a design for planning that is estimated from existing labels.

    Also return the annotators who gave these labels, and the assumptions of the design.
    """
    from judge.labels.reference import resolve
    from judge.stats import METRICS
    from judge.stats.planning import pilot

    if options.shares:
        raise UsageError("--shares requires --expect; with a pilot, the shares come from its labels")
    from annotate.agreement.one_field import check_measures

    check_measures([options.measure])
    panel = _read_panel(options)
    if panel.are_scores:
        raise BadInput(f"'{panel.field}' has continuous values; planning requires labels or --expect")
    (key,) = panel.keys([options.measure])
    names = _names(panel, resolve(panel, options.reference), METRICS[key].pair)
    ratings = panel.select_common(*names)
    design = pilot(ratings, key, level=panel.level)
    # A sentence with more names is not read.
    names_text = " and ".join(names) if len(names) <= 3 else f"{len(names)} annotators"
    of_questions = f" of {design.n_clusters:,} questions" if ratings.clustered else ""
    assumed = [
        f"pilot: {options.measure} {design.value:.3f} between {names_text} on {design.n_units:,} units{of_questions}; "
        "new units will be like these",
    ]
    if options.icc is None and ratings.clustered:
        # The design effect says how many such units count as a single one.
        worth = design.n_units / (design.effect or 1)
        assumed.append(
            f"units of the same question are as correlated as in the pilot: icc {design.icc:.3f}; the pilot's units "
            f"count as {worth:,.0f} independent units"
        )
    elif options.icc is None:
        assumed.append(
            "every unit in the pilot is a separate question, so the correlation within questions is unknown"
        )
    return design, names, assumed


def _names(panel: Panel, reference: Reference | None, takes_two: bool) -> list[str]:
    # The usual question is how well the judge agrees with its reference.
    judge = next(iter(panel.judges), None)
    if judge is not None and reference is not None and reference.name != judge:
        return [judge, reference.name]
    everyone = list(panel.ratings.annotators)
    if takes_two and len(everyone) != 2:
        raise UsageError(
            f"choose two annotators with --annotators A,B; available: {', '.join(everyone[:20])}"
        )
    # Gold labels and judges do not count towards the agreement of people.
    return panel.people if len(panel.people) >= 2 and not takes_two else everyone


def _numbers(text: str | None, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise UsageError(f"{option} {text}: must be numbers separated by commas") from None


@dataclass(frozen=True)
class _Goal:
    """The plans for one goal, a `width` or a `threshold`.

    Each plan assumes a different number of units per question.
    """

    title: str
    plans: list[SampleSize]
    width: float | None = None
    threshold: float | None = None


def _plans(design: Design, options: PlanAsked) -> list[_Goal]:
    from judge.stats.planning import plan_decision, plan_width

    # A pilot with one unit for each question cannot show how alike the units of a question are.
    alone = design.n_units > 0 and design.n_clusters == design.n_units and options.icc is None
    sizes = _numbers(options.per_question, "--per-question") or ([1] if alone else [1, 2, 3, 5, 10])
    if any(not 1 <= size <= MOST_PER_QUESTION or size != int(size) for size in sizes):
        raise UsageError(
            f"--per-question {options.per_question}: must be whole numbers from 1 to {MOST_PER_QUESTION:,}"
        )
    per_question = [int(size) for size in sizes]
    name, width, threshold = options.measure, options.width, options.threshold
    sure = f"a {100 * CONFIDENCE:g} % interval"
    goals = []
    if width is not None:
        plans = plan_width(design, width, per_cluster=per_question, confidence=CONFIDENCE)
        goals.append(_Goal(f"{name}: {sure} of width {width:g}", plans, width=width))
    if threshold is not None:
        plans = plan_decision(
            design, threshold, per_cluster=per_question, confidence=CONFIDENCE, power=options.power
        )
        side = "above" if design.value > threshold else "below"
        chance = f"with a probability of {100 * options.power:g} %"
        goals.append(_Goal(f"{name}: {sure} {side} {threshold:g}, {chance}", plans, threshold=threshold))
    return goals


def _row(size: SampleSize, goal: _Goal) -> dict[str, Json]:
    return {
        "width": goal.width,
        "threshold": goal.threshold,
        "per_question": size.per_cluster,
        **attributes(size, "n_clusters", "n_units", "more_clusters", "more_units", "design_effect"),
    }
