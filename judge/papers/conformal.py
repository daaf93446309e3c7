"""Conformal sets for a judge's labels. They show which units the judge is unsure about.

Half of the questions with a true label are used for calibration. For every other unit, the set contains the
true label with probability 1 - alpha. A unit whose set does not contain exactly one label is ambiguous, and a
person should check it. `judge.papers.urag` and `judge.stats.conformal` do the arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from judge.commands import command
from judge.document.csv import csv_cell
from judge.errors import BadInput, UsageError
from judge.labels.reference import ReferenceLabels
from judge.papers import urag
from judge.papers.engine.frames import frame
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.urag import Choices, Sets, alpha_of, choices, halves, last_run
from judge.scores.score import Score
from judge.stats.conformal import members
from judge.stats.ratings import BoolArray
from judge.store import splits

# A note names no more units than this; --ambiguous writes all of them.
_NAMED = 10


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return accuracy, coverage, set size and the share of empty sets, computed on the test half.

    The sets are computed by two methods, LAC and APS. The part `classes` adds scores for each label.
    """
    task = study.option("task")
    if not task:
        raise UsageError(
            f"conformal requires --task with a task that a judge has run, for example {command('judge score conformal --task stance')}"
        )
    alpha = alpha_of(study)
    letters = study.domain(task)
    if len(letters) < 2:
        raise UsageError(f"conformal sets require a task with two or more labels, but {task} has fewer")
    before = len(study.judges.runs_read)
    table = study.labels(task)
    run = last_run(study, before)
    study.check()
    names, truth, field = _truth(study, task, letters)
    sealed = (
        splits.read_closed_units(study.store, splits.home(study.store, study.load_task(task)), run.run_id)
        if run
        else set()
    )
    # Labels of a sealed test may only be used after a look is logged, and this score does not log a look.
    if out := sealed & truth.keys():
        truth = {unit: label for unit, label in truth.items() if unit not in sealed}
        study.note(
            f"{len(out)} units are left out, because they are in the sealed test of {task}, which was not opened for this run"
        )
    table["name"] = table["unit_id"].map(names).astype(object)
    all_choices = replace(choices(study, table, run, field, letters, truth, name="name"), named=None)
    known: BoolArray = np.asarray(all_choices.correct >= 0, dtype=bool)
    if not known.any():
        raise BadInput(
            f"no unit of {task} has a label for '{field}' from '{study.option('reference')}', and conformal sets need true labels "
            "(import gold labels, or choose human labels with --reference)"
        )
    labelled_choices = all_choices.restrict(known)
    mask = halves(study, labelled_choices, None)
    if not labelled_choices.restrict(mask).known.any():
        raise BadInput(
            "no unit has both label probabilities and a true label, so calibration is impossible: use a model that returns "
            "token probabilities (openai, llamacpp) with --answers auto or codes"
        )
    cal, test = labelled_choices.restrict(mask), labelled_choices.restrict(~mask)
    by_class = study.option("thresholds") == "label"
    scores = urag.scores(cal, test, alpha=alpha, by_class=by_class)
    if study.part("classes"):
        brief = [s for s in scores if s.measure in ("accuracy", "coverage", "set_size")]
        for letter, some in urag.per_class(brief, test).items():
            scores += [s.rename(f"{s.measure}[{letter}]") for s in some]
    made = urag.sets(cal, test, alpha=alpha, by_class=by_class)
    # The coverage guarantee does not hold for the units that the threshold was calibrated on.
    calibrating = set(cal.units.ids)
    apart: BoolArray = np.asarray(~all_choices.units.ids.isin(calibrating), dtype=bool)
    rest = all_choices.restrict(apart)
    _ambiguous(study, rest, made, table.set_index("name")["label"])
    return scores


def _truth(study: PaperStudy, task: str, letters: list[str]) -> tuple[dict[int, str], dict[str, str], str]:
    """Return the unit ids (keyed by unit number), the true labels (keyed by unit id) and the field."""
    loaded = study.load_task(task)
    field = loaded.spec.questions[0].field
    units = frame(
        study.store.conn,
        f"SELECT n, unit_id FROM unit_texts WHERE kind = ? AND {study.rows.scope}",
        [loaded.spec.unit],
        "n name",
    )
    given = ReferenceLabels(study.store, study.option("reference")).labels(field, loaded.name)
    # A set can never contain a label that the task does not have.
    truth = {unit: value for unit, value in given.items() if value in letters}
    return dict(zip(units["n"].tolist(), units["name"], strict=True)), truth, field


def _ambiguous(study: PaperStudy, rest: Choices, made: Sets, label: pd.Series) -> None:
    """Add a note on the ambiguous units outside the calibration half, and write these units to the file named
    by --ambiguous.

    A unit is ambiguous if its set does not contain exactly one label.
    """
    has: BoolArray = np.asarray(~np.isnan(rest.probabilities).any(axis=1), dtype=bool)
    some = rest.restrict(has)
    sets = members(some.probabilities, made.limits_lac, "lac", "exact")
    # An empty set is also ambiguous, because no label is likely enough.
    unsure = sets.sum(axis=1) != 1
    names = [str(name) for name in some.units.ids[unsure]]
    shown = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
    study.note(
        f"{len(names)} of {int(has.sum())} units outside the calibration half are ambiguous by LAC"
        + (f": {shown}" if names else "")
        + ("" if study.option("ambiguous") or not names else " (--ambiguous FILE lists them)")
    )
    if not has.all():
        study.note(f"{int((~has).sum())} units have no label probabilities and therefore no set")
    if not study.option("ambiguous"):
        return
    table = pd.DataFrame(
        {
            "unit_id": names,
            "label": label.reindex(some.units.ids[unsure]).to_numpy(),
            "set": ["|".join(np.array(rest.letters, dtype=object)[row]) for row in sets[unsure]],
        }
    )
    for k, letter in enumerate(rest.letters):
        table[f"p_{letter}"] = some.probabilities[unsure, k].round(6)
    try:
        # Ids and labels come from files. A spreadsheet would run =HYPERLINK(...) when the CSV is opened.
        table.apply(lambda column: column.map(csv_cell)).to_csv(Path(study.option("ambiguous")), index=False)
    except OSError as e:
        raise BadInput(f"--ambiguous {study.option('ambiguous')}: {e.strerror}") from e
