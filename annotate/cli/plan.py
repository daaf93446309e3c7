"""annotate plan: how many questions and units to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from annotate.cli._source import LabelSource, as_one, least_others_option, source_options
from judge.console import emit_json, json_option, table, tell, visible
from judge.errors import BadInput, UsageError
from judge.types import Json, attributes

if TYPE_CHECKING:
    from judge.labels.panel import Panel
    from judge.labels.reference import Reference
    from judge.stats import Design, SampleSize

MOST_PER_QUESTION = 10_000


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """What the command is asked for."""

    source: LabelSource
    name: str | None
    pair: str | None
    reference: str | None
    width: float | None
    threshold: float | None
    verdict: bool
    epsilon: float
    margin: float | None
    least_others: int
    power: float
    confidence: float
    expect: float | None
    shares: str | None
    per_question: str | None
    icc: float | None
    as_json: bool

    @property
    def measure(self) -> str:
        """What is planned for."""
        return self.name or "cohen_kappa"


@click.command()
@source_options
@click.option(
    "--measure",
    "name",
    help="What to plan for: cohen_kappa[:linear|:quadratic] (the default), percent, krippendorff_alpha ...",
)
@click.option("--pair", metavar="A,B", help="Whose labels are the pilot. Default: judge and reference.")
@click.option("--reference", metavar="NAME", help="As in annotate agreement.")
@click.option("--width", type=float, help="The interval shall be this wide, from end to end.")
@click.option(
    "--threshold",
    type=float,
    help="The interval shall lie on one side of this, as in 0.667 (which --verdict takes).",
)
@click.option(
    "--verdict",
    is_flag=True,
    help="A verdict on each judge: what it still needs, by the rule that the number of people takes.",
)
@click.option("--epsilon", default=0.2, help="Alt-test: 0.2 experts, 0.15 skilled, 0.1 crowd.")
@click.option(
    "--margin",
    type=float,
    help="--verdict, two people or more: how far the judge's agreement with people may lie below theirs, or -0.1.",
)
@least_others_option
@click.option("--power", default=0.8, help="Chance that it does, if the value stays.")
@click.option("--confidence", default=0.95)
@click.option("--expect", type=float, help="No pilot: the value you expect.")
@click.option("--shares", metavar="S,S,...", help="No pilot, kappa: the shares of the labels, summing to 1.")
@click.option("--per-question", metavar="M,M,...", help="Units of a question to label. Default: 1,2,3,5,10.")
@click.option(
    "--icc",
    type=float,
    help="How alike the units of a question are, 0 to 1. Default: the pilot's; without a pilot 0.",
)
@json_option
@as_one(PlanAsked)
def plan(asked: PlanAsked) -> None:
    """How many questions and units to label, for an interval of a given width or for a decided verdict.

    \b
    annotate plan --expect 0.7 --shares 0.4,0.3,0.3 --width 0.2 --per-question 5 --icc 0.1
    annotate plan --field stance --run last --threshold 0.667
    annotate plan votes.csv --unit unit --annotator who --label label --judge gpt --width 0.1
    annotate plan votes.csv --unit unit --annotator who --label label --judge gpt --verdict --epsilon 0.15

    From a pilot (a field of the study, or a TABLE as in annotate agreement), or from what you expect
    (--expect). It prints what it assumes.
    """
    if asked.width is None and asked.threshold is None and not asked.verdict:
        raise UsageError(
            "plan for what? --width 0.2 (an interval), --threshold 0.667 (a decision) or --verdict (on a judge)"
        )
    if not 0 < asked.confidence < 1 or not 0 < asked.power < 1:
        raise UsageError("--confidence and --power lie between 0 and 1")
    if asked.verdict:
        _verdict(asked)
        return
    if asked.margin is not None:
        raise UsageError("--margin goes with --verdict")
    design, names, assumed = _pilot(asked) if asked.expect is None else _expected(asked, asked.expect)
    if asked.icc is not None:
        if not 0 <= asked.icc <= 1:
            raise UsageError(f"--icc {asked.icc}: an intraclass correlation lies in 0..1")
        design = replace(design, icc=asked.icc)
        assumed.append(f"units of one question are alike as you say: icc {asked.icc:g}")
    if design.sd < 1e-9:
        raise BadInput(
            f"the pilot shows no spread ({asked.measure} {design.value:.3f} on {design.n_units} units), so nothing "
            "can be planned from it: say what you expect (--expect)"
        )
    goals = _plans(design, asked)
    notes = list(dict.fromkeys(line for goal in goals for one in goal.plans for line in one.notes))
    if asked.as_json:
        emit_json(
            "plan",
            {
                "source": None if asked.expect is not None else str(asked.source),
                "measure": asked.measure,
                "annotators": names,
                "design": attributes(design, "value", "sd", "icc", "n_units", "n_clusters"),
                "confidence": asked.confidence,
                "power": asked.power,
                "assumed": assumed,
                "notes": notes,
                "rows": [_row(one, goal) for goal in goals for one in goal.plans],
            },
        )
        return
    for goal in goals:
        print(f"{goal.title}\n{_table([_row(one, goal) for one in goal.plans], design)}\n")
    print("\n".join(f"- {visible(line)}" for line in [*assumed, *notes]))


def _verdict(asked: PlanAsked) -> None:
    from annotate.cli import _plan_verdict as verdict
    from annotate.drawing.looks import StudyDraws
    from judge.labels.reference import resolve
    from judge.store import Store

    for name in ("width", "expect", "shares", "pair", "per_question", "icc"):
        if getattr(asked, name) is not None:
            raise UsageError(
                f"--verdict plans from the labels there are: leave out --{name.replace('_', '-')}"
            )
    for name, least in (("epsilon", 0), ("margin", -1), ("threshold", -1)):
        value = getattr(asked, name)
        if value is not None and not least <= value <= 1:
            raise UsageError(f"--{name} {value:g}: a number from {least} to 1")
    if asked.name:
        from annotate.agreement.one_field import check_measures

        check_measures([asked.name])
    panel = _one(asked)
    rule = attributes(asked, "epsilon", "least_others", "power")
    rule |= {key: value for key in ("margin", "threshold") if (value := getattr(asked, key)) is not None}
    rule["clustered"] = asked.source.cluster.in_alt_test
    reference = resolve(panel, asked.reference)
    with Store.open(":memory:" if asked.source.table else asked.source.db) as store:
        drawn = StudyDraws(store, panel, asked.source.batch, asked.source.table is not None)
        plans = verdict.verdict_plans(drawn, reference, asked.name, asked.confidence, **rule)
    document = {
        "source": str(asked.source),
        **attributes(asked, "confidence", "power", "epsilon"),
        "judges": [verdict.as_json(one) for one in plans],
    }
    tell("plan_verdict", document, "\n\n".join(verdict.text(one) for one in plans), asked.as_json)


def _one(asked: PlanAsked) -> Panel:
    from annotate.agreement.one_field import check

    found = asked.source.panels()
    if len(found) != 1:
        raise UsageError(f"name one --field; there are {', '.join(panel.field for panel in found)}")
    check(found[0])
    return found[0]


def _expected(asked: PlanAsked, value: float) -> tuple[Design, list[str] | None, list[str]]:
    """The design from --expect and --shares, and what that takes for granted."""
    from judge.stats import expected_kappa, expected_rate

    source = asked.source
    if source.table or source.field or source.task or source.runs or asked.pair:
        raise UsageError(
            "--expect plans without a pilot: leave out the table, --field, --task, --run and --pair"
        )
    name, _, weights = asked.measure.partition(":")
    icc = asked.icc or 0.0
    assumed = [f"the value will be the one you expect, {value:g}"]
    if asked.icc is None:
        assumed.append("units of one question are independent (icc 0); passages seldom are: see --icc")
    if name == "cohen_kappa" and weights in ("", "linear", "quadratic"):
        shares = _numbers(asked.shares, "--shares")
        if not shares:
            raise UsageError("kappa depends on how often each label occurs: add --shares, as in 0.4,0.3,0.3")
        assumed.append(f"both annotators use the labels with shares {', '.join(f'{s:g}' for s in shares)}")
        return expected_kappa(value, shares, weights=weights or None, icc=icc), None, assumed
    if name in ("percent", "accuracy", "share") and not weights:
        if asked.shares:
            raise UsageError(f"--shares is for kappa, not for {name}")
        return expected_rate(value, icc=icc), None, assumed
    raise UsageError(
        f"--expect plans for cohen_kappa, percent, accuracy or a share; {asked.measure} takes a pilot"
    )


def _pilot(asked: PlanAsked) -> tuple[Design, list[str] | None, list[str]]:
    """The design from labels at hand, whose they are, and what that takes for granted."""
    from judge.labels.reference import resolve
    from judge.stats import METRICS, pilot

    if asked.shares:
        raise UsageError("--shares goes with --expect; a pilot has its own")
    from annotate.agreement.one_field import check_measures

    check_measures([asked.measure])
    panel = _one(asked)
    if panel.are_scores:
        raise BadInput(f"'{panel.field}' has continuous numbers: planning takes labels, or --expect")
    (key,) = panel.keys([asked.measure])
    names = _names(panel, resolve(panel, asked.reference), asked.pair, METRICS[key].pair)
    ratings = panel.together(*names)
    design = pilot(ratings, key, level=panel.level)
    names_text = " and ".join(names) if len(names) <= 3 else f"{len(names)} annotators"
    of_questions = f" of {design.n_clusters:,} questions" if ratings.clustered else ""
    assumed = [
        f"pilot: {asked.measure} {design.value:.3f} of {names_text} on {design.n_units:,} units{of_questions}; "
        "new ones will be like these",
    ]
    if asked.icc is None and ratings.clustered:
        worth = design.n_units / (design.effect or 1)
        assumed.append(
            f"units of one question are as alike as in the pilot: icc {design.icc:.3f}, so that its units count as "
            f"{worth:,.0f} independent ones"
        )
    elif asked.icc is None:
        assumed.append(
            "every unit of the pilot is a question of its own: it cannot tell how alike units of one are"
        )
    return design, names, assumed


def _names(panel: Panel, reference: Reference | None, pair: str | None, takes_two: bool) -> list[str]:
    from annotate.cli._thresholds import pair_of

    if pair is not None:
        return pair_of(panel, pair, f"--pair {pair}")
    judge = next(iter(panel.judges), None)
    if judge is not None and reference is not None and reference.name != judge:
        return [judge, reference.name]
    everyone = list(panel.ratings.annotators)
    if takes_two and len(everyone) != 2:
        raise UsageError(f"whose agreement? --pair A,B, of {', '.join(everyone[:20])}")
    return panel.people if len(panel.people) >= 2 and not takes_two else everyone


def _numbers(text: str | None, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise UsageError(f"{option} {text}: write numbers with commas between them") from None


@dataclass(frozen=True)
class _Goal:
    """Plans for one `width` or one `threshold`, for several numbers of units a question."""

    title: str
    plans: list[SampleSize]
    width: float | None = None
    threshold: float | None = None


def _plans(design: Design, asked: PlanAsked) -> list[_Goal]:
    from judge.stats import plan_decision, plan_width

    alone = design.n_units > 0 and design.n_clusters == design.n_units and asked.icc is None
    sizes = _numbers(asked.per_question, "--per-question") or ([1] if alone else [1, 2, 3, 5, 10])
    if any(not 1 <= size <= MOST_PER_QUESTION or size != int(size) for size in sizes):
        raise UsageError(
            f"--per-question {asked.per_question}: whole numbers from 1 to {MOST_PER_QUESTION:,}"
        )
    per_question = [int(size) for size in sizes]
    name, width, threshold = asked.measure, asked.width, asked.threshold
    sure = f"a {100 * asked.confidence:g} % interval"
    goals = []
    if width is not None:
        plans = plan_width(design, width, per_cluster=per_question, confidence=asked.confidence)
        goals.append(_Goal(f"{name}: {sure} of width {width:g}", plans, width=width))
    if threshold is not None:
        plans = plan_decision(
            design, threshold, per_cluster=per_question, confidence=asked.confidence, power=asked.power
        )
        side = "above" if design.value > threshold else "below"
        chance = f"with a chance of {100 * asked.power:g} %"
        goals.append(_Goal(f"{name}: {sure} {side} {threshold:g}, {chance}", plans, threshold=threshold))
    return goals


def _row(one: SampleSize, goal: _Goal) -> dict[str, Json]:
    return {
        "width": goal.width,
        "threshold": goal.threshold,
        "per_question": one.per_cluster,
        **attributes(one, "n_clusters", "n_units", "more_clusters", "more_units", "design_effect"),
    }


def _table(rows: Sequence[dict[str, Json]], design: Design) -> str:
    columns = {"per_question": "units a question", "n_clusters": "questions", "n_units": "units"}
    if design.n_units:
        columns |= {"more_clusters": "more questions", "more_units": "more units"}
    columns["design_effect"] = "design effect"
    return table(list(columns.values()), [[row[key] for key in columns] for row in rows])
