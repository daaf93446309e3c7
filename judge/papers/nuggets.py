"""Nuggets (TREC RAG): how many of the expected facts does each system's answer contain?

Pradeep et al. 2024 (arXiv 2411.09607). Without --system, all systems with answers are scored. On topics that people
labelled, two rankings of the systems are compared: by the judge's assignments and by human assignments. The
comparison uses Kendall's tau-b and rank-biased overlap, as in `retrieval` (`judge.scores.system_order`).

Tables (see `judge.scores.columns`):
    answers      unit_id, question_id, answered, n_vital and n_okay (how many vital and okay nuggets the topic has)
    assignments  one row per nugget and answer: unit_id, answer_id, importance (vital or okay), label, status
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from judge.commands import command
from judge.errors import NothingToScore, UsageError
from judge.labels.reference import ReferenceLabels
from judge.labels.words import MAJORITY
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.queries import System
from judge.scores import system_order
from judge.scores.columns import Parts, column, empty, encode_labels, statuses, units
from judge.scores.score import NOT_JUDGED_CODE, SHARE, Score, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray

TASK = "nugget_assignment"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores of the requested system or, if none is named, of all systems."""
    topics = _topics(study)
    systems = _systems(study)
    tables = {system: _tables(study, system, topics) for system in systems}
    study.check()
    by_system = {system: _score_tables(tables[system], _suffix(system, systems)) for system in systems}
    scores = (
        [score for of_system in by_system.values() for score in of_system] if study.part("scores") else []
    )
    # Scores from human labels have no part `order`, because `_order` compares the judge's scores with them.
    if study.part("order") and len(systems) > 1 and not study.of_people:
        scores += _order(study, systems, topics, tables, by_system)
    elif study.insists("order") and not study.of_people:
        raise UsageError("the part 'order' compares several systems: omit --system")
    return scores


def _topics(study: PaperStudy) -> pd.DataFrame:
    """Return the number of vital and okay nuggets of each item (n_vital, n_okay).

    Items without nuggets are omitted. Notes report these items, and items without vital nuggets.
    """
    counts = study.rows.nuggets()
    items = study.rows.items["item_id"]
    counts = counts[counts.index.isin(items)]
    if not len(counts):
        how = command("judge nuggets import", "FILE", study=study.db)
        raise NothingToScore(f"no item in '{study.dataset}' has nuggets; to import nuggets: {how}")
    if len(counts) < len(items):
        study.note(f"{len(items) - len(counts)} of {len(items)} items have no nuggets and are left out")
    # nuggetizer counts such topics as 0 in the mean. Here they have no Vital score, and the note names them.
    if len(without := counts.index[counts["n_vital"] == 0]):
        study.note(f"these topics have no vital nugget and therefore no Vital score: {', '.join(without)}")
    return counts


def _systems(study: PaperStudy) -> list[System]:
    """Return the requested system or, if none is named, all systems with answers under the requested condition."""
    there = [s for s in study.rows.systems() if study.request.condition in (None, s.condition)]
    # With one system or none, `answering` reports the available systems, or records the missing answers as a step.
    if study.request.system is not None or len(there) < 2:
        return [study.answering("qa_answer", "all")]
    return there


def _suffix(system: System, systems: list[System]) -> str:
    if len(systems) == 1:
        return ""
    several = sum(other.system == system.system for other in systems) > 1
    return f"[{system.system}, {system.condition}]" if several else f"[{system.system}]"


def _tables(study: PaperStudy, system: System, topics: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the system's answers to the topics, and the nugget assignments for these answers."""
    answers = study.read_answers(system)
    answers = answers[answers["item_id"].isin(topics.index)].reset_index(drop=True)
    answers = answers.join(topics, on="item_id")
    table = study.labels(TASK, system)
    table = table[table["answer_unit"].isin(answers["unit_id"])]
    importance = study.rows.importance().reindex(table["unit_id"])
    table = table.assign(importance=importance.to_numpy()).drop(columns=["item_id", "question_id"])
    return answers, table.rename(columns={"answer_unit": "answer_id"})


def _score_tables(tables: tuple[pd.DataFrame, pd.DataFrame], suffix: str) -> list[Score]:

    return [score.rename(f"{score.measure}{suffix}") for score in trec(*tables)]


def _average_by_topic(answers: pd.DataFrame, score: Score, topics: pd.DataFrame) -> FloatArray:
    values = answers.assign(value=score.rows[:, 0]).set_index("item_id")["value"].reindex(topics.index)
    return values.to_numpy(dtype="float64")


def _order(
    study: PaperStudy,
    systems: list[System],
    topics: pd.DataFrame,
    tables: dict[System, tuple[pd.DataFrame, pd.DataFrame]],
    scores: dict[System, list[Score]],
) -> list[Score]:
    """Return, for each measure, how similar the systems' rankings by the judge and by people are.

    The similarity is measured by Kendall's tau-b and rank-biased overlap. Without human labels, add a note
    and return an empty list.
    """
    try:
        majority = ReferenceLabels(study.store, MAJORITY)
    except UsageError:
        if study.insists("order"):
            raise
        study.note("there is no ranking by people, because there are no human labels")
        return []
    people = study.read_by_people(replace(study.request, partial=True), majority, same_rows=True)
    by_people = {system: _tables(people, system, topics) for system in systems}
    loaded = study.load_task(TASK)
    labelled = majority.read_by_number(loaded.spec.questions[0].field, loaded.name)
    _note_topics(study, tables, topics, set(labelled))
    theirs = {system: _score_tables(by_people[system], "") for system in systems}
    items = study.rows.items.set_index("item_id").loc[topics.index].reset_index()
    items = items.assign(unit_id=items["item_id"])
    agreement = []
    for place, first in enumerate(theirs[systems[0]]):
        # Each table has its own order of answers, but a ranking of systems needs the same topics for all of them.
        both = [
            [_average_by_topic(answers[system][0], by_system[system][place], topics) for system in systems]
            for answers, by_system in ((tables, scores), (by_people, theirs))
        ]
        agreement += system_order.agreement(first.measure, items, *both)
    return agreement


def _note_topics(
    study: PaperStudy,
    tables: dict[System, tuple[pd.DataFrame, pd.DataFrame]],
    topics: pd.DataFrame,
    labelled: set[int],
) -> None:
    """Add a note on how many topics people labelled fully, and how many they labelled partly.

    A topic is labelled fully if all its nuggets are labelled in all answers to it.
    """
    shares = []
    for answers, assignments in tables.values():
        topic_of = answers.set_index("unit_id")["item_id"]
        # An empty answer has no units, so nobody can label it.
        topic = assignments["answer_id"].map(topic_of).to_numpy()
        shares.append(pd.DataFrame({"topic": topic, "labelled": assignments["unit_id"].isin(labelled)}))
    share = pd.concat(shares).groupby("topic")["labelled"].mean()
    full, partly = int((share == 1).sum()), int(((share > 0) & (share < 1)).sum())
    text = f"the rankings are compared on the {full} of {len(topics)} topics that people labelled fully"
    if partly:
        are = "topic is" if partly == 1 else "topics are"
        text += f"; {partly} more {are} left out, because people labelled only some of the nuggets"
    study.note(text)


SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}


STRICT = {"support": 1.0, "partial_support": 0.0, "not_support": 0.0}


WEIGHTS = {
    "vital": {"vital": 1.0},
    "weighted": {"vital": 1.0, "okay": 0.5},
    "all": {"vital": 1.0, "okay": 1.0},
}
"""For each measure, the weight of a nugget by its importance. Nuggets without a weight are not counted."""


def trec(answers: pd.DataFrame, assignments: pd.DataFrame) -> list[Score]:
    """Return each nugget measure in two forms, lenient and strict. A measure is the mean over answers, one
    per topic.

    nugget_vital     mean support of the vital nuggets; a topic without vital nuggets has no value
    nugget_weighted  the same for all nuggets, where an okay nugget counts half as much as a vital one
    nugget_all       mean support of all nuggets

    Support counts as 1. Partial support counts as 0.5, or as 0 in the strict form. A missing or empty answer
    has 0. An answer has no value if any nugget that the measure counts has no label.
    """
    who = units(answers, "answers")
    importance = column(assignments, "importance", "assignments")
    nothing = empty(answers)
    scores = []
    for measure, weights in WEIGHTS.items():
        table = assignments[importance.isin(list(weights)).to_numpy()]
        parts = Parts(table, "assignments", who, "answers", "answer_id")
        weight = table["importance"].map(weights).to_numpy(dtype=np.float64)
        numbers = {name: column(answers, f"n_{name}", "answers").to_numpy(np.float64) for name in weights}
        status = parts.status(statuses(table, table["label"].notna().to_numpy()))
        # The mean over the assigned nuggets alone would be another measure: every nugget of the topic needs its label.
        incomplete = (status == 0) & (parts.count() < sum(numbers.values()))
        status = np.where(nothing, 0, np.where(incomplete, NOT_JUDGED_CODE, status)).astype(np.int8)
        total = sum((weights[name] * numbers[name] for name in weights), np.zeros(len(who)))
        for form, codes in (("_strict", STRICT), ("", SUPPORT)):
            support = parts.total(weight * encode_labels(table["label"], codes, "nugget assignment"))
            # For a topic without a vital nugget, this divides by zero and gives no value. The authors' package counts
            # it as 0.
            values = np.where(status == 0, ratio(np.where(nothing, 0.0, support), total), np.nan)
            scores.append(
                score_values(
                    f"nugget_{measure}{form}", who, values, status, reason="no vital nugget", bounds=SHARE
                )
            )
    return scores
