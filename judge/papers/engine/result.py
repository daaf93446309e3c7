"""Compute a score: measures with intervals by stratum, the runs that they are based on, and the results that the paper published.

If several judges labelled the same units, the judges are scored separately. A measure is then the mean over the
judges, or follows a rule of the paper. To score each unit's majority label instead, create a run with `judge
panel` and score this run.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.labels.reference import ReferenceLabels
from judge.papers.engine import chosen
from judge.papers.engine.correction import Correction, correct
from judge.papers.engine.paper import KnownAs, Paper, ScoreRequest
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.published import Published, read_published
from judge.papers.engine.reading import Lacking
from judge.papers.engine.steps import Incomplete
from judge.scores.compare import combine_scores
from judge.scores.score import Score, measure_all, split_by_stratum
from judge.stats.bootstrap import IntervalOptions
from judge.stats.ratings import FloatArray
from judge.store import label_rows
from judge.store.study import Store
from judge.types import Json, Measure, attributes

ALL = ""
"""The name of the stratum that contains all units."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measure in one stratum. `missing` is the number of units without a value, by reason.

    `known_as` is set if the measure is also known by another name.
    """

    stratum: str
    measure: Measure
    missing: Mapping[str, int]
    known_as: KnownAs | None = None

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation: the measure, its stratum (None: all units), and the units without a value."""
        counts = {"stratum": self.stratum or None, "missing": dict(self.missing)}
        if self.known_as is not None:
            counts |= {"known_as": self.known_as.name, "source": self.known_as.source}
        return {**self.measure.as_json(), **counts}


@dataclass(frozen=True, slots=True)
class Result:
    """A score: the data that `judge score` prints."""

    paper: Paper
    dataset: str
    system: str | None
    condition: str | None
    readings: Mapping[str, str]
    runs: Sequence[Mapping[str, Json]]
    lines: Sequence[Line]
    notes: Sequence[str]
    published: Sequence[Published]
    correction: Correction | None = None
    lacking: Sequence[Lacking] = ()
    others: Sequence[str] = ()
    """Descriptions of runs that could also have been read, with their settings."""

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {
            "score": self.paper.name,
            "title": self.paper.title,
            **attributes(self, "dataset", "system", "condition", "readings", "runs"),
            "measures": [line.as_json() for line in self.lines],
            "notes": list(self.notes),
            "other_runs": list(self.others),
            "lacking": [gap.as_json() for gap in self.lacking],
            "published": [p.as_json() for p in self.published],
            "correction": None if self.correction is None else self.correction.as_json(),
        }


def score(
    store: Store,
    paper: Paper,
    request: ScoreRequest,
    *,
    judges: str | None = None,
    by: str | None = None,
    reference: str | None = None,
    **options: Unpack[IntervalOptions],
) -> Result:
    """Compute a paper's scores from the study, with intervals.

    With `judges="mean"`, the scores are means over several judges. `by` names a stratification. `reference`
    names the human or gold labels with which the measures are corrected (see `judge.labels`). Raises Incomplete
    if labels or answers are missing, and UsageError if the request is ambiguous or matches nothing.
    """
    reference_labels = None if reference is None else ReferenceLabels(store, reference)
    scores, study = scores_of(store, paper, request, judges)
    named = {ALL: scores}
    if by is not None:
        named |= split_by_stratum(scores, strata(study, by))
    lines = []
    for stratum, some in named.items():
        for stratum_score, measure in zip(some, measure_all(some, **options), strict=True):
            lines.append(Line(stratum, measure, stratum_score.missing, paper.known.get(measure.measure)))
    names = {line.measure.measure for line in lines}
    return Result(
        paper,
        study.dataset,
        study.whose.system if study.whose else request.system,
        study.whose.condition if study.whose else None,
        study.options,
        [run_read.as_json() for run_read in study.judges.runs_read],
        lines,
        study.notes,
        list_printed(paper, names),
        None
        if reference_labels is None
        else correct(study, scores, reference_labels, options.get("confidence", 0.95)),
        study.lacking,
        study.judges.list_others(),
    )


def list_printed(paper: Paper, measures: Collection[str]) -> list[Published]:
    """Return the results that the paper published for these measures."""
    return [p for p in read_published(paper.name) if any(is_of(p, name) for name in measures)]


def is_of(printed: Published, measure: str) -> bool:
    """Return whether a published result belongs to this measure. Some papers do not specify the variant of a measure."""
    names = (printed.measure, *(f"{printed.measure}{end}" for end in ("_micro", "_macro")))
    # The paper reports one misleading retrieval recall and does not specify which of our four variants it is.
    return measure in names or (measure.partition("[")[0] == printed.measure and "/" in measure)


def scores_of(
    store: Store, paper: Paper, request: ScoreRequest, judges: str | None
) -> tuple[list[Score], PaperStudy]:
    """Return the scores (of one judge, or means over judges), and the `PaperStudy` from which they were computed."""
    if judges != "mean":
        study = PaperStudy(store, paper, request)
        scores = _check_scores(study)
        # The runs that fit each part are only known after the first pass. The second pass uses runs with equal settings.
        if equal := study.judges.equal_settings():
            study = PaperStudy(store, paper, replace(request, equal=equal), study.rows)
            scores = _check_scores(study)
        _note_unread(study)
        _note_settings(study)
        return scores, study
    return average_judges(store, paper, request)


def _note_unread(study: PaperStudy) -> None:
    """Add a note for each run that --run names but the score does not use.

    An example is a run of a different task.
    """
    run_ids = {source.run.run_id for source in study.judges.runs_read}
    for run in study.judges.pinned:
        if run.run_id not in run_ids:
            study.note(f"--run {run.run_id} ({run.task} by {run.model}): no part of this score uses this run")


def _note_settings(study: PaperStudy) -> None:
    """Add a note if the parts of a score use runs with different settings.

    The settings can differ if each part has only one available run, or if --run names the runs.
    """
    for (role, model), settings in study.judges.settings_read().items():
        if len(settings) > 1:
            whose = f"judge {model}" if role == "judge" else "system"
            settings_text = "; ".join(f"{', '.join(tasks)}: {words}" for words, tasks in settings.items())
            study.note(f"the runs of the {whose} have different settings: {settings_text}")


def _check_scores(study: PaperStudy) -> list[Score]:
    unknown = set(study.request.parts) - {part.name for part in study.paper.parts}
    if unknown:
        known = ", ".join(part.name for part in study.paper.parts)
        raise UsageError(f"{study.paper.name} has no part '{min(unknown)}'; available: {known}")
    with study.store.reading_once():
        scores = study.paper.compute_scores(study)
        study.check()
    check_outputs(study)
    return scores


def check_outputs(study: PaperStudy) -> None:
    """Raise UsageError if a system has no outputs for any of the requested conditions."""
    # A single missing condition is a gap in the table. If all are missing, the system's name is probably mistyped.
    if study.lacking and not study.n_outputs and any(gap.condition != "ranking" for gap in study.lacking):
        system = study.lacking[0].system
        names = list(dict.fromkeys(gap.condition for gap in study.lacking if gap.condition != "ranking"))
        raise UsageError(
            f"'{system}' has no outputs for any condition of {study.paper.name} ({', '.join(names)}); to import them: "
            f"{study.import_words('FILE', '--system', system, '--condition', names[0])}"
        )


def strata(study: PaperStudy, by: str) -> Mapping[Any, Any]:
    """Return {question: stratum}.

    `by` is the name of one of the paper's stratifications, the word `dataset`, the name of a gold field of
    items, or a key in the items' metadata. Raises UsageError if the name is unknown, or if a question has
    items in several strata.
    """
    if by in study.paper.strata:
        return study.paper.strata[by](study)
    items = study.rows.items
    if by == "dataset":
        return dict.fromkeys(items["question_id"], study.dataset)
    values = study.rows.gold(by)
    if not len(values):
        values = study.rows.meta(by).dropna()
    if not len(values):
        available = ", ".join((*study.paper.strata, *_tags(study)))
        raise UsageError(
            f"--by {by}: no item has a gold label or metadata key with this name; available: {available or 'none'}"
        )
    table = pd.DataFrame({"question": items["question_id"], "stratum": items["item_id"].map(values)})
    table = table.dropna().drop_duplicates()
    twice = table["question"].duplicated()
    # Intervals resample questions, so a question must not be in two strata.
    if twice.any():
        raise UsageError(
            f"--by {by}: items of the same question ('{table['question'][twice].iloc[0]}') have different values"
        )
    return dict(zip(table["question"], table["stratum"], strict=True))


def _tags(study: PaperStudy) -> list[str]:
    """List the gold fields of items, and the keys in the items' metadata whose values are short."""
    query = (
        "SELECT DISTINCT j.key FROM items AS i, json_each(i.meta) AS j WHERE i.dataset = ? "
        # Strata have short names, so keys with long texts are not offered.
        "AND j.type IN ('text', 'integer', 'true', 'false') AND length(j.value) <= 40 ORDER BY 1 LIMIT 30"
    )
    gold = (
        f"SELECT DISTINCT l.field FROM {label_rows.FIRST} JOIN units AS u USING (unit_id) JOIN items AS i USING (item_id) "
        "WHERE l.annotator_id = 'gold' AND u.kind = 'item' AND i.dataset = ?"
    )
    return [str(row[0]) for q in (gold, query) for row in study.store.conn.execute(q, [study.dataset])]


def average_judges(store: Store, paper: Paper, request: ScoreRequest) -> tuple[list[Score], PaperStudy]:
    """Score each judge separately, and return each measure's mean over the judges.

    The paper's rule for several judges (`Paper.several`) takes precedence over the mean. The judges are the requested models
    and the models of the named runs. Raises UsageError if there are fewer than two judges, and Incomplete with the missing
    steps of all judges.
    """
    named = chosen.find_named(store, request.runs, chosen.list_runs(store))
    models = list(dict.fromkeys((*request.models, *(run.model for run in named))))
    if len(models) < 2:
        raise UsageError("--judges requires two or more judges: repeat --run for each judge")
    by_judge: dict[str, list[Score]] = {}
    studies: list[PaperStudy] = []
    steps = []
    for model in models:
        run_ids = tuple(run.run_id for run in named if run.model == model)
        study = PaperStudy(store, paper, replace(request, models=(model,), runs=run_ids))
        studies.append(study)
        try:
            by_judge[model] = _check_scores(study)
        except Incomplete as missing:
            # The error is raised after all judges were read, so that one message lists every missing run.
            steps += missing.steps
    if steps:
        raise Incomplete(paper.name, steps)
    # Rows and options are the same for all judges, so the first reading is returned, with the runs and notes of all.
    whole = studies[0]
    for study in studies[1:]:
        whole.judges.runs_read += study.judges.runs_read
        whole.notes += [text for text in study.notes if text not in whole.notes]
    # Measures that the paper's rule returns get no mean.
    special = paper.several(by_judge) if paper.several else []
    return [*special, *_means(by_judge, {score.measure for score in special})], whole


def _means(by_judge: Mapping[str, list[Score]], done: set[str]) -> list[Score]:
    """Return the mean over the judges for each measure that all judges have and that is not in `done`."""
    each = [{score.measure: score for score in scores} for scores in by_judge.values()]
    names = [name for name in each[0] if name not in done and all(name in of_judge for of_judge in each)]
    note = f"mean over {len(by_judge)} judges: {', '.join(by_judge)}"
    return [
        combine_scores(name, [of_judge[name] for of_judge in each], _mean).add_notes(note) for name in names
    ]


def _mean(*values: FloatArray) -> FloatArray:
    means: FloatArray = np.asarray(np.mean(values, axis=0), dtype=np.float64)
    return means
