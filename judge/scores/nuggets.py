"""The share of a topic's nuggets that an answer contains: TREC RAG (Pradeep et al. 2024, arXiv 2411.09607).

Tables (see `judge.scores.columns`):
    answers      unit_id, question_id, answered, n_vital and n_okay (how many vital and okay nuggets the topic has)
    assignments  one row per nugget and answer: unit_id, answer_id, importance (vital or okay), label, status
"""

import numpy as np
import pandas as pd

from judge.scores.columns import Parts, column, empty, encode_labels, statuses, units
from judge.scores.score import NOT_JUDGED_CODE, SHARE, Score, score_values
from judge.stats.coefficients import ratio

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
