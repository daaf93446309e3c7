"""What a reader of a verdict does next: at most three steps, with the command of each."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from annotate.report.model import Ruling
from annotate.report.subject import Subject
from judge.commands import command
from judge.document.blocks import NextStep
from judge.run_options import repeat_command
from judge.stats.looks import LEAST_COVERAGE
from judge.stats.ratings import MISSING
from judge.store import Store

MOST = 3


def list_steps(store: Store, subject: Subject, ruling: Ruling) -> list[NextStep]:
    """Return the next steps for a verdict, the most useful first."""
    return list(islice(_steps(store, subject, ruling), MOST))


def _steps(store: Store, subject: Subject, ruling: Ruling) -> Iterator[NextStep]:
    panel, run = subject.panel, subject.run_ids.get(ruling.judge)
    task = panel.task.task_id if panel.task else None
    # Commands with --run need a stored run. A judge in a table or an imported annotator has none.
    has_run = run is not None and task is not None
    if ruling.conflicts:
        yield NextStep(
            "Resolve the labels in conflict, because they hold up the verdict.",
            command("annotate conflicts list"),
        )
    yield from _label_missing(store, subject, ruling)
    if ruling.decision == "undecided":
        yield from _label_more(subject, ruling)
    if ruling.decision == "trust" and has_run:
        labels = command("judge runs export", run, "-o", "labels.csv")
        yield NextStep("Use the labels of this judge, also for the units that people did not label.", labels)
    if ruling.decision == "trust in part" and has_run:
        yield NextStep(
            "Let the judge label alone where it is sure, and give the other units to people.",
            command("judge route", task, "--run", run, "--agree", "0.9"),
        )
    if ruling.decision == "do not trust" and has_run:
        yield NextStep(
            "Calibrate the judge, if it has probabilities.", command("judge calibrate", task, "--run", run)
        )
        yield NextStep(
            "Search for better instructions and examples.", command("judge improve", task, "--run", run)
        )
    yield NextStep(
        "Read the units on which the judge and people differ: they are listed below.", _view(subject, task)
    )
    if ruling.decision in ("trust", "trust in part") and has_run:
        anchors = command("judge drift", task, "--run", run, "--anchors", "100")
        yield NextStep(
            "Draw a set of units with which later checks show whether the model has changed.", anchors
        )
    if ruling.decision == "trust in part":
        yield from _label_more(subject, ruling)


def _label_missing(store: Store, subject: Subject, ruling: Ruling) -> Iterator[NextStep]:
    """Yield the step that labels the units that only people labelled, if more than a tenth of their units are such units."""
    panel, run = subject.panel, subject.run_ids.get(ruling.judge)
    ratings = panel.ratings
    if not panel.people or panel.task is None or run is None or ruling.judge not in ratings.annotators:
        return
    by_people = np.any([ratings.column(name) != MISSING for name in panel.people], axis=0)
    lacking = int((by_people & (ratings.column(ruling.judge) == MISSING)).sum())
    n = int(by_people.sum())
    if lacking > n * (1 - LEAST_COVERAGE):
        batch = ["--units-of", subject.options.batch] if subject.options.batch else []
        yield NextStep(
            f"Let the judge label {lacking:,} of the {n:,} units that people labelled: it has no label there.",
            repeat_command(store, run, *batch),
        )


def _label_more(subject: Subject, ruling: Ruling) -> Iterator[NextStep]:
    """Yield the step to more labels, if they can change the verdict."""
    n = ruling.more_units
    text = f"Label about {n:,} more units." if n else "See how many labels the verdict needs."
    if subject.table is not None:
        yield NextStep(text, command("annotate plan", subject.table, "--judge", ruling.judge, "--verdict"))
    elif run := subject.run_ids.get(ruling.judge):
        field = ["--field", subject.panel.field]
        yield NextStep(text, command("annotate plan", *field, "--judge", run, "--verdict"))


def _view(subject: Subject, task: str | None) -> str:
    """Return the command that shows units with their texts, or an empty string for a table, which has none."""
    return (
        ""
        if subject.table is not None or task is None
        else command("annotate view", "--task", task, "-o", "units.html")
    )
