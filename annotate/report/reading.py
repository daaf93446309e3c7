"""How the numbers of a report were made and how to read them: the same words in every format."""

from __future__ import annotations

from importlib.metadata import version

from annotate.report.corrected import REPLICATES
from annotate.report.subject import Subject
from judge.stats.bootstrap import IntervalSettings
from judge.types import Json, attributes

COVERAGE = (
    "Every value names the units it rests on. Coverage is their share of the units that all annotators the "
    "value names were asked about; of a value among people alone, their share of the units that people "
    "labelled; of a corrected number, their share of the units that the judge was asked about. A unit "
    "without a label, such as a refused or unparsed reply, lowers it."
)


def made_by() -> str:
    """The program with its version."""
    return f"adjudge {version('adjudge')}"


def settings(subject: Subject) -> dict[str, Json]:
    """What the numbers depend on beside the labels."""
    asked, interval = subject.asked, IntervalSettings()
    return {
        "epsilon": asked.epsilon,
        "epsilon_name": asked.epsilon_name or None,
        **attributes(asked, "margin", "threshold", "least_others"),
        "alt_test_by": "questions" if asked.clustered and subject.panel.table.clustered else "units",
        "coefficient": subject.panel.coefficient,
        **attributes(interval, "confidence", "interval", "replicates"),
        "replicates_of_rates": REPLICATES,
        "resampled": _resampled(subject),
        "seed": interval.seed,
    }


def in_words(subject: Subject) -> list[tuple[str, str]]:
    """The same as pairs, for the head of the report."""
    asked, interval, what = subject.asked, IntervalSettings(), _resampled(subject)
    epsilon = f"{asked.epsilon:g}" + (f" ({asked.epsilon_name})" if asked.epsilon_name else "")
    sure = "".join(f", {100 * at:.6g} % of {judge}" for judge, at in _looked_at(subject).items())
    return [
        ("settings", f"epsilon {epsilon}, margin {asked.margin:g}, threshold {asked.threshold:g}"),
        (
            "intervals",
            f"{interval.confidence * 100:g} %{sure}: jackknife t by {what[:-1]} in the verdict and between judges, BCa bootstrap "
            f"elsewhere ({interval.replicates:,} resamples of {what}, seed {interval.seed})",
        ),
    ]


def reading(subject: Subject) -> list[str]:
    """How to read values, intervals and coverage."""
    interval, what = IntervalSettings(), _resampled(subject)
    intervals = (
        f"Intervals are {interval.confidence * 100:g} % intervals. Those of the verdict and of differences between judges are "
        f"jackknife intervals by {what[:-1]} with quantiles of Student's t; those of corrected numbers come from standard errors "
        f"by {what}, of Rogan-Gladen by Lang and Reiczigel. All others, if no note says otherwise, are BCa bootstrap intervals "
        f"from {interval.replicates:,} resamples of {what} (seed {interval.seed})."
    )
    told = [
        f"The sealed test was opened for {judge}: its intervals are {100 * at:.6g} % ones."
        for judge, at in _looked_at(subject).items()
    ]
    return [intervals, *told, COVERAGE]


def _looked_at(subject: Subject) -> dict[str, float]:
    """Judges whose sealed test was opened, and the confidence of their intervals."""
    return {
        judge: subject.panel.confidence(judge)
        for judge in subject.panel.judges
        if judge in subject.panel.looks
    }


def _resampled(subject: Subject) -> str:
    return "questions" if subject.panel.table.clustered else "units"
