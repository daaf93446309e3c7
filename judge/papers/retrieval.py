"""Score retrieval in a study: NDCG, MRR, precision and recall of every ranking, with qrels from people and from
a judge.

Human grades of passages come from a reference: gold (`judge items import beir|trec`, or any gold field with
grades), decided labels, the majority, or the labels of one person. A judge's grades are its labels in a task
with grades (`relevant`, `relevance_graded`, `garage_relevance`, `mirage_support`). If both kinds of grades are
available for at least three systems, the two orders of the systems are compared by Kendall's tau-b and
rank-biased overlap. `judge.scores.retrieval` and `judge.scores.system_order` do the arithmetic.
"""

from __future__ import annotations

import pandas as pd

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.labels.reference import ReferenceLabels
from judge.labels.words import ALIASES
from judge.papers.engine.paper_study import PaperStudy
from judge.scores import retrieval, system_order
from judge.scores.grades import WORDS, find_graded_field, grades_of
from judge.scores.score import Score
from judge.stats.ratings import FloatArray
from judge.types import GOLD

FIELDS = ("relevance_0_3", "relevance_grade", "relevant", "support")
"""Gold fields with grades, the finest scale first."""
TASKS = ("relevance_graded", "relevant", "garage_relevance", "mirage_support")
DEPTH = 10
"""The depth of the measures that are computed if --measure is not given."""
COMPARED = ("ndcg", "mrr", "precision")
"""The measures by which systems are ordered when the judge is compared with people."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    # On a leaderboard, each ranking counts as a system.
    rankings = study.rankings(study.request.system or "")
    qrels = {}
    task = _task(study)
    field = None if task is None else _find_field(study, task)
    word = ALIASES.get(study.option("reference"), study.option("reference"))
    # Gold labels need not belong to a task, so any gold field with grades is accepted. Other labels belong to a task's field.
    people = _gold(study, field) if word == GOLD else _people(study, word, task, field)
    if people is not None:
        qrels[word] = people
    if task is not None:
        qrels["judge"] = _read_judged(study, task, field)
    study.check()
    if not qrels:
        raise BadInput(
            f"no passage in '{study.dataset}' has a gold grade ({', '.join(FIELDS)}), and no judge has graded the passages: use "
            "human labels with --reference majority, or run a judge: "
            + command("judge run relevance_graded -m MODEL")
        )
    return _scores(study, rankings, qrels)


def _scores(
    study: PaperStudy, rankings: list[tuple[str, str]], qrels: dict[str, pd.DataFrame]
) -> list[Score]:
    queries = study.rows.items[["item_id", "question_id"]].assign(unit_id=study.rows.items["item_id"])
    listed = {ranking: study.rows.read_ranked(ranking) for ranking in rankings}
    all_scores: list[Score] = []
    values: dict[tuple[str, str], list[FloatArray]] = {}
    for whose, relevance in qrels.items():
        for (name, stage), ranked in listed.items():
            suffix = f"[{whose}]" if study.request.system else f"[{whose}, {name} {stage}]"
            tables = (queries, ranked, relevance)
            names = study.words("measure")
            scores = (
                retrieval.score_by_name(names, *tables)
                if names
                else retrieval.score_at(DEPTH, *tables, as_trec=True)
            )
            for score in scores:
                if names or score.measure.partition("@")[0] in COMPARED:
                    values.setdefault((score.measure, whose), []).append(score.rows[:, 0])
                if study.part("rankings"):
                    all_scores.append(score.rename(f"{score.measure}{suffix}"))
    # If a system is named, there is only one ranking, so no order can be compared.
    if study.part("order") and len(qrels) == 2 and not study.request.system:
        for measure in dict.fromkeys(measure for measure, _ in values):
            both = [values[measure, whose] for whose in qrels]
            all_scores += system_order.agreement(measure, queries, *both)
    elif study.insists("order"):
        raise UsageError(
            "the part 'order' compares human qrels with a judge's qrels, so it needs several rankings, human labels and a judge's labels"
        )
    return all_scores


def _task(study: PaperStudy) -> str | None:
    """Return the task whose labels are the judge's relevance grades (qrels).

    This is the value of --task or, by default, the only task in TASKS that has a run. If none of them has a
    run, it is the first task in TASKS if a judge is named, and otherwise None. Raises UsageError if several
    tasks in TASKS have runs.
    """
    if study.option("task"):
        return study.option("task")
    run = [t for t in TASKS if any(r.task_id == t for r in (study.judges.pinned or study.judges.runs))]
    if len(run) > 1:
        raise UsageError(
            f"several tasks with grades have runs: choose one with --task; available: {', '.join(run)}"
        )
    if not run and study.request.models:
        return TASKS[0]
    return run[0] if run else None


def _find_field(study: PaperStudy, task: str) -> str:
    """Return the field of the task that contains the grades.

    A field with gold labels on passages takes precedence over the task's first field with grades.
    """
    loaded = study.load_task(task)
    # A field with gold labels is preferred, because it can be compared with them.
    gold = (f for f in FIELDS if f in loaded.fields and study.rows.has_gold(f, "passage"))
    return next(gold, None) or find_graded_field(loaded)


def _gold(study: PaperStudy, task_field: str | None) -> pd.DataFrame | None:
    """Return the gold grades of passages as a table: item_id, passage_id, grade. If there are none, add a note and return None."""
    there = [f for f in ((task_field,) if task_field else FIELDS) if study.rows.has_gold(f, "passage")]
    # With gold labels on a different scale, the orders of systems can still be compared.
    there = there or [f for f in FIELDS if study.rows.has_gold(f, "passage")]
    if not there:
        study.note("there are no gold qrels, so only the judge's qrels are used")
        return None
    # Grades of different fields have different scales, so their means cannot be compared, but the orders of systems can.
    if task_field and there[0] != task_field:
        study.note(
            f"gold qrels are from '{there[0]}' and the judge's from '{task_field}': their scales differ, so only the orders of systems can be compared"
        )
    passages = study.rows.passages()
    label = passages["passage_id"].map(study.rows.gold(there[0], "passage"))
    study.note(f"gold qrels: '{there[0]}' for {int(label.notna().sum())} of {len(label)} passages")
    return _grade(passages.assign(label=label), _grades(there[0], label))


def _people(study: PaperStudy, word: str, task: str | None, task_field: str | None) -> pd.DataFrame:
    """Return a reference's grades of passages as a table: item_id, passage_id, grade.

    Raises BadInput if the reference has no grades in this data set.
    """
    reference_labels = ReferenceLabels(study.store, word)
    passages = study.rows.passages()
    for name in (task,) if task else TASKS:
        loaded = study.load_task(name)
        fields = [task_field] if task_field else [f for f in FIELDS if f in loaded.fields]
        for field in fields:
            label = passages["passage_id"].map(dict(reference_labels.labels(field, loaded.name)))
            if label.notna().any():
                study.note(f"{word} qrels: '{field}' for {int(label.notna().sum())} of {len(label)} passages")
                return _grade(passages.assign(label=label), _grades(field, label))
    raise BadInput(
        f"--reference {word}: this reference has not graded any passage in '{study.dataset}' ({task_field or ', '.join(FIELDS)})"
    )


def _read_judged(study: PaperStudy, task: str, task_field: str | None) -> pd.DataFrame:
    """Return the judge's grades of passages as a table: item_id, passage_id, grade."""
    loaded = study.load_task(task)
    field = task_field if task_field in loaded.fields else find_graded_field(loaded)
    table = study.labels(task, field=field, columns="passage_id")
    study.note(
        f"judge's qrels: '{field}' in {task}, for {int(table['label'].notna().sum())} of {len(table)} passages"
    )
    return _grade(table, grades_of(loaded, field))


def _grades(field: str, labels: pd.Series) -> dict[str, int]:
    known = WORDS.get(field)
    if known is not None:
        return dict(known)
    wrong = [str(v) for v in labels.dropna().unique() if not str(v).isdecimal()]
    if wrong:
        raise BadInput(f"the gold label '{wrong[0]}' is not a grade", field=field)
    return {str(v): int(v) for v in labels.dropna().unique()}


def _grade(table: pd.DataFrame, grades: dict[str, int]) -> pd.DataFrame:
    # A passage without a grade has nan. Objects would take four times the memory of numbers.
    grade = table["label"].map(grades).astype("float64")
    return table[["item_id", "passage_id"]].assign(grade=grade)


def contenders(study: PaperStudy) -> list[str]:
    """Return the names of the rankings, because a leaderboard of this paper compares rankings."""
    return list(dict.fromkeys(name for name, _ in study.rankings()))
