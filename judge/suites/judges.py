"""Several judges on the same units: the mean over judges, with the paper's own rule where it has one.

The other way, a majority of labels unit by unit, is that of `judge panel`: `PaperStudy.labels` votes as it does, or reads the
run that it kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from judge.errors import UsageError
from judge.scores.compare import combined
from judge.scores.score import Score
from judge.stats.ratings import FloatArray
from judge.store.study import Store
from judge.suites import chosen
from judge.suites.paper import Asked, Paper
from judge.suites.paper_study import PaperStudy
from judge.suites.steps import Incomplete


def over_judges(store: Store, paper: Paper, asked: Asked) -> tuple[list[Score], PaperStudy]:
    """The mean over judges of each measure, every judge read by itself; `paper.several` replaces what it has a rule for.

    Judges are the models asked for, or those of the runs that were named. Raises UsageError for fewer than two,
    Incomplete with the steps of all judges.
    """
    named = chosen.named(store, asked.runs, chosen.all_runs(store))
    models = list(dict.fromkeys((*asked.models, *(run.model for run in named))))
    if len(models) < 2:
        raise UsageError("--judges takes several judges: give -m or --run several times")
    found: dict[str, list[Score]] = {}
    studies: list[PaperStudy] = []
    steps = []
    for model in models:
        own = tuple(run.run_id for run in named if run.model == model)
        study = PaperStudy(store, paper, replace(asked, models=(model,), runs=own))
        studies.append(study)
        try:
            found[model] = paper.read(study)
            study.check()
        except Incomplete as missing:
            steps += missing.steps
    if steps:
        raise Incomplete(paper.name, steps)
    whole = studies[0]
    for study in studies[1:]:
        whole.read += study.read
        whole.notes += [text for text in study.notes if text not in whole.notes]
    special = paper.several(found) if paper.several else []
    return [*special, *_means(found, {score.measure for score in special})], whole


def _means(found: Mapping[str, list[Score]], done: set[str]) -> list[Score]:
    """The mean over judges of every other measure that all of them have."""
    each = [{score.measure: score for score in scores} for scores in found.values()]
    names = [name for name in each[0] if name not in done and all(name in own for own in each)]
    told = f"{len(found)} judges: {', '.join(found)}; the mean over judges"
    return [combined(name, [own[name] for own in each], _mean).noted(told) for name in names]


def _mean(*values: FloatArray) -> FloatArray:
    found: FloatArray = np.asarray(np.mean(values, axis=0), dtype=np.float64)
    return found
