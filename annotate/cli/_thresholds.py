"""--fail-under MEASURE[:A,B]=X: limits below which a measure must not fall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

from judge.console import parse_named_number
from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.labels.reference import Reference
from judge.stats import METRICS, class_scores
from judge.stats.bootstrap import IntervalOptions
from judge.types import Json, Measure

On = Literal["value", "lower"]
ALL, PEOPLE = "all", "people"
SCORES = ("accuracy", "macro_f1")
# Names without their weights or level; the full ones are tried first.
NAMES = sorted({*METRICS, *SCORES, "krippendorff_alpha", "gwet_ac2"}, key=len, reverse=True)


@dataclass(frozen=True)
class Limit:
    """One --fail-under option. `who` is "A,B", "all" or "people". It is empty for a comparison of the judge
    with the reference.
    """

    typed: str
    measure: str
    who: str
    least: float


@dataclass(frozen=True)
class LimitCheck:
    """The comparison of a measure with its limit.

    `seen` is the number that was compared: the measure's value or, if `on` is "lower", the lower end of its
    interval. It is None if the measure is undefined.
    """

    limit: Limit
    on: On
    measure: Measure
    seen: float | None
    passed: bool
    why: str

    def as_json(self) -> dict[str, Json]:
        """Return the measure and its limit as JSON."""
        return {
            "threshold": self.limit.typed,
            "on": self.on,
            "limit": self.limit.least,
            "compared": self.seen,
            "passed": self.passed,
            "why": self.why,
            **self.measure.as_json(),
        }


def parse(values: Sequence[str]) -> list[Limit]:
    """Parse the requested limits. Raises UsageError for a text that does not have the form MEASURE[:A,B]=X."""
    limits = []
    for typed in values:
        left, least = parse_named_number(typed, "--fail-under", "MEASURE=0.6 or MEASURE:A,B=0.6")
        name = next((n for n in NAMES if left == n or left.startswith(n + ":")), None)
        if name is None:
            known = ", ".join(sorted(NAMES))
            raise UsageError(f"--fail-under {typed}: unknown measure; available: {known}")
        limits.append(Limit(typed, name, left[len(name) + 1 :], least))
    return limits


def check(
    fields: Sequence[tuple[Panel, Reference | None]],
    limits: Sequence[Limit],
    on: On,
    *,
    named: bool,
    **options: Unpack[IntervalOptions],
) -> tuple[list[LimitCheck], list[str]]:
    """Check the measures of each field against the limits.

    A limit that names annotators is checked once per field, and any other limit once per judge.

    A judge is skipped if it labelled none of the units that others labelled. No judge is skipped if the user
    `named` the judges, or if none of them has labels.

    Returns the comparisons, and the reasons why fields were skipped, e.g. because A and B did not label them.
    Raises UsageError if a limit cannot be checked on any field.
    """
    checked: list[LimitCheck] = []
    passed_over: list[str] = []
    for limit in limits:
        # A limit without a pair is on the judge, so fields without a judge do not count.
        of_judges = [f for f in fields if f[0].judges] if not limit.who else []
        refused: list[UsageError] = []
        for panel, reference in of_judges or fields:
            try:
                checked += [
                    _check_limit(limit, on, _measure(panel, limit, who, options))
                    for who in _find_annotators(panel, reference, limit, named=named)
                ]
            except UsageError as e:
                refused.append(e)
        if len(refused) == len(of_judges or fields):
            raise refused[0]
        passed_over += [str(e) for e in refused]
        if not (limit.who or named):
            passed_over += [
                f"--fail-under {limit.typed}: {judge} is left out, because it has no label for '{panel.field}' on these units"
                for panel, _ in of_judges
                for judge in panel.judges
                if panel.lacks_labels(judge) and not all(map(panel.lacks_labels, panel.judges))
            ]
    return checked, passed_over


def _find_annotators(
    panel: Panel, reference: Reference | None, limit: Limit, *, named: bool
) -> list[list[str]]:
    everyone = list(panel.ratings.annotators)
    # An annotator may be called all, or people.
    if limit.who == ALL and ALL not in everyone:
        return [everyone]
    if limit.who == PEOPLE and PEOPLE not in everyone:
        return [panel.people]
    if limit.who:
        return [pair_of(panel, limit.who, f"--fail-under {limit.typed}")]
    if panel.judges and reference is not None:
        judges = [judge for judge in panel.judges if judge != reference.name]
        labelled = [judge for judge in judges if not panel.lacks_labels(judge)]
        return [[judge, reference.name] for judge in (judges if named or not labelled else labelled)]
    if panel.judges:
        raise UsageError(
            f"--fail-under {limit.typed}: '{panel.field}' has no labels to compare the judge with"
        )
    return [everyone]


def pair_of(panel: Panel, who: str, typed: str) -> list[str]:
    """Return the two annotators specified by "A,B". A run may be specified by the end of its id. Raises UsageError if
    there is no such annotator.
    """
    names = list(panel.table.annotators)
    parts = who.split(",")
    # Names may contain commas, so each comma is tried as the one between the two.
    for i in range(1, len(parts)):
        pair = [_find_name(names, ",".join(side).strip()) for side in (parts[:i], parts[i:])]
        if None not in pair and pair[0] != pair[1]:
            return [name for name in pair if name is not None]
    listed = ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")
    raise UsageError(f"{typed}: '{who}' is not a pair A,B of annotators; available: {listed}")


def _find_name(names: Sequence[str], wanted: str) -> str | None:
    # Runs are shown with the end of their ids.
    ends = [name for name in names if name.endswith(f" · {wanted.upper()}")]
    return wanted if wanted in names else ends[0] if len(ends) == 1 else None


def _measure(panel: Panel, limit: Limit, names: list[str], options: IntervalOptions) -> Measure:
    if limit.measure in SCORES or (limit.measure in METRICS and METRICS[limit.measure].pair):
        if len(names) != 2:
            raise UsageError(
                f"--fail-under {limit.typed}: {limit.measure} compares two annotators; specify them as A,B"
            )
    elif len(names) < 2:
        raise UsageError(f"--fail-under {limit.typed}: requires at least two annotators")
    if limit.measure in SCORES:
        scores = class_scores(panel.select_common(*names), names[0], names[1], field=panel.field, **options)
        return next(m for m in scores if m.measure == limit.measure)
    return panel.measure(names, panel.keys([limit.measure]), **options)[0]


def _check_limit(limit: Limit, on: On, measure: Measure) -> LimitCheck:
    names = measure.annotators or ()
    names_text = " and ".join(names) if len(names) <= 3 else f"{len(names)} annotators"
    kind = f" ({measure.weights})" if measure.weights else ""
    measure_text = f"{measure.measure}{kind} between {names_text} on '{measure.field}'"
    seen = measure.value if on == "value" else measure.low
    if measure.value is None:
        return LimitCheck(limit, on, measure, None, False, f"{measure_text} is undefined: {measure.reason}")
    if seen is None:
        reason = "; ".join(measure.notes) or "no interval"
        return LimitCheck(limit, on, measure, None, False, f"{measure_text} has no lower bound: {reason}")
    bound = "" if on == "value" else "lower bound of "
    sign = ">=" if seen >= limit.least else "<"
    return LimitCheck(
        limit,
        on,
        measure,
        seen,
        seen >= limit.least,
        f"{bound}{measure_text} is {seen:.4f} {sign} {limit.least:g}",
    )
