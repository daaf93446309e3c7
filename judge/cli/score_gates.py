"""--fail-under, --fail-over and --fail-if-worse: gates on a score or on the difference between two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from judge.console import combine_options, parse_named_number
from judge.errors import UsageError
from judge.gates import Gate

if TYPE_CHECKING:
    from judge.papers.engine.paper import Paper
    from judge.scores.compare import Difference
    from judge.types import Measure

On = Literal["value", "lower"]

score_gate_options = combine_options(
    click.option(
        "--fail-under",
        multiple=True,
        metavar="MEASURE=VALUE",
        help="Exit with code 5 if MEASURE is below VALUE or undefined. Repeatable.",
    ),
    click.option(
        "--fail-over",
        multiple=True,
        metavar="MEASURE=VALUE",
        help="Exit with code 5 if MEASURE is above VALUE or undefined. Repeatable.",
    ),
    click.option(
        "--on",
        type=click.Choice(["value", "lower"]),
        default="value",
        help="Compare the value, or its lower bound (with --fail-over: upper bound).",
    ),
)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit from the command line. `side` is 1 for a minimum and -1 for a maximum."""

    option: str
    typed: str
    measure: str
    limit: float
    side: int


def thresholds(fail_under: Sequence[str], fail_over: Sequence[str]) -> list[Threshold]:
    """Parse the requested limits. Raises UsageError for text that is not MEASURE=VALUE."""
    limits = []
    for option, side, values in (("--fail-under", 1, fail_under), ("--fail-over", -1, fail_over)):
        for typed in values:
            name, limit = parse_named_number(typed, option, "MEASURE=0.6")
            limits.append(Threshold(option, typed, name, limit, side))
    return limits


def score_gates(wanted: Sequence[Threshold], measures: Sequence[Measure], on: On) -> list[Gate]:
    """Compare each limit with the measure that it names.

    Raises UsageError if the score does not have the measure.
    """
    by_name = {measure.measure: measure for measure in measures}
    for threshold in wanted:
        _check_name(f"{threshold.option} {threshold.typed}", threshold.measure, list(by_name))
    return [_score_gate(threshold, by_name[threshold.measure], on) for threshold in wanted]


def _score_gate(threshold: Threshold, measure: Measure, on: On) -> Gate:
    bound = "lower" if threshold.side > 0 else "upper"
    name = f"{threshold.measure} {'>=' if threshold.side > 0 else '<='} {threshold.limit:g}"
    if on == "lower":
        name = f"{bound} bound of {name}"
    # An undefined measure fails, because nothing was shown.
    if measure.value is None:
        return Gate(name, False, f"{threshold.measure} is undefined: {measure.reason}")
    seen = measure.value if on == "value" else measure.low if threshold.side > 0 else measure.high
    if seen is None:
        reason = "; ".join(measure.notes) or "no interval was computed"
        return Gate(name, False, f"{threshold.measure} has no {bound} bound: {reason}")
    # The side turns "not above" into "not below", so one comparison serves both.
    passed = threshold.side * (seen - threshold.limit) >= 0
    sign = (">=" if passed else "<") if threshold.side > 0 else ("<=" if passed else ">")
    subject = threshold.measure if on == "value" else f"the {bound} bound of {threshold.measure}"
    return Gate(
        name, passed, f"{subject} is {seen:.4f} {sign} {threshold.limit:g} ({measure.n_units:,} units)"
    )


def worse_gates(
    wanted: Sequence[str],
    compared: Mapping[str, Sequence[Difference]],
    papers: Mapping[str, Paper],
    confidence: float,
) -> list[Gate]:
    """Return a gate for each measure.

    The gate fails if a paired test, clustered by question, shows that B is worse than A. Holm's method
    corrects the p values for the number of measures. The gate does not require proof that B is as good as
    A, because a small number of questions cannot prove this.

    Raises UsageError if a measure is not compared, or if neither higher nor lower values of it are better.
    """
    from judge.stats.multiple import holm

    named = {}
    for name in dict.fromkeys(wanted):
        _check_name(
            f"--fail-if-worse {name}", name, [d.first.measure for each in compared.values() for d in each]
        )
        differences = [
            (papers[paper], d) for paper, each in compared.items() for d in each if d.first.measure == name
        ]
        if len(differences) > 1:
            raise UsageError(
                f"--fail-if-worse {name}: several papers have this measure "
                f"({', '.join(paper.name for paper, _ in differences)}); add --paper"
            )
        if not differences[0][0].better(name):
            raise UsageError(f"--fail-if-worse {name}: neither higher nor lower values are better")
        named[name] = differences[0]
    # An undefined difference has no p value to adjust, and its gate fails anyway.
    tested = [name for name, (_, d) in named.items() if d.p is not None]
    adjusted = dict(zip(tested, holm([d.p for _, d in named.values() if d.p is not None]), strict=True))
    return [
        _worse_gate(name, d.difference, paper.better(name), adjusted.get(name), 1 - confidence)
        for name, (paper, d) in named.items()
    ]


def _worse_gate(name: str, change: Measure, better: int, p: float | None, level: float) -> Gate:
    title = f"{name} is not worse"
    if change.value is None or p is None:
        return Gate(title, False, f"the difference in {name} is undefined: {change.reason}")
    worse = better * change.value < 0 and p <= level
    verdict = "worse" if worse else "not shown to be worse"
    reason = f"{name}: B - A is {change.value:+.4f} (p {p:.4f}, {change.n_clusters:,} questions): {verdict}"
    return Gate(title, not worse, reason)


def _check_name(typed: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UsageError(f"{typed}: the score has no measure '{name}'; available: {', '.join(names)}")
