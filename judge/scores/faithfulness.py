"""The share of an answer's claims that its sources support, by RAGAS and FActScore. For RAGChecker, see
`judge.scores.rag`.

Tables (see `judge.scores.columns`):
    answers  unit_id, question_id, abstained (optional bool),
             n_claims (optional: 0 means that the answer has no claim)
    claims   one row per claim in an answer: unit_id, answer_id, status,
             label (`supported`, `entailment` and `Entailment` mean entailed; the labels in NOT_ENTAILED mean
             not entailed)

An answer with an unlabelled claim has no value.
"""

import numpy as np
import pandas as pd

from judge.scores.columns import Parts, column, empty, encode_labels, flags, statuses, units
from judge.scores.score import NOT_JUDGED_CODE, SHARE, Score, StatusArray, Units, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray

ENTAILED = ("supported", "entailment", "full", "yes")
NOT_ENTAILED = (
    "not_supported",
    "not supported",
    "unsupported",
    "neutral",
    "contradiction",
    "contradictory",
    "none",
    "no",
)
_ENTAILS = {**dict.fromkeys(ENTAILED, 1.0), **dict.fromkeys(NOT_ENTAILED, 0.0)}

NO_CLAIM = "no claim"


def ragas(answers: pd.DataFrame, claims: pd.DataFrame) -> Score:
    """Return RAGAS faithfulness: the mean over answers of entailed / all statements (Es et al. 2023, arXiv 2309.15217, section 3).

    An empty or missing answer has the value 0. An answer that makes no claim has no value.
    """
    who, share, _, status = _shares(answers, claims)
    # An empty answer is a failure of the system. An answer without claims is not: RAGAS divides by their number.
    share, status = np.where(empty(answers), 0.0, share), np.where(empty(answers), 0, status).astype(np.int8)
    return score_values("ragas_faithfulness", who, share, status, reason=NO_CLAIM, bounds=SHARE)


GAMMA = 10
"""Number of facts above which FActScore has no length penalty."""


def factscore(answers: pd.DataFrame, claims: pd.DataFrame) -> list[Score]:
    """Return FActScore (Min et al. 2023, arXiv 2305.14251): the mean, over answers that do not abstain, of the
    supported share times a penalty.

    penalty = 1 if the answer has N > GAMMA facts, else exp(1 - GAMMA / N). Abstentions (`abstained`, and empty
    or missing answers) are excluded from the mean; the respond ratio is the share of answers that remain.

    factscore            with the penalty
    factscore_unpenalised
    respond_ratio        share of answers that do not abstain
    facts_per_answer     mean N over the answers that do not abstain
    """
    who, share, n, status = _shares(answers, claims)
    abstained = _mark_abstained(answers)
    # An answer without facts also has no share. The 1 only keeps the division defined.
    long_enough = np.maximum(n, 1.0)
    penalty = np.where(n > GAMMA, 1.0, np.exp(1 - GAMMA / long_enough))
    note = (f"length penalty below {GAMMA} facts",)
    responds = abstained == 0
    unknown = np.isnan(abstained)
    # If the judge failed on an answer, it is unknown whether the answer responds.
    share, n = np.where(unknown, np.nan, share), np.where(unknown, np.nan, n)
    status = np.where(unknown & (status == 0), NOT_JUDGED_CODE, status).astype(np.int8)
    kept = [
        score_values("factscore", who, share * penalty, status, reason=NO_CLAIM, notes=note, bounds=SHARE),
        score_values("factscore_unpenalised", who, share, status, reason=NO_CLAIM, bounds=SHARE),
        score_values(
            "facts_per_answer", who, np.where(np.isnan(share) & (n > 0), np.nan, n), status, reason=NO_CLAIM
        ),
    ]
    answered = [score.restrict(responds | unknown) for score in kept]
    ratio_ = score_values(
        "respond_ratio", who, np.where(unknown, np.nan, responds), reason="abstention not judged"
    )
    return [*answered[:2], ratio_, answered[2]]


def _shares(answers: pd.DataFrame, claims: pd.DataFrame) -> tuple[Units, FloatArray, FloatArray, StatusArray]:
    """Return each answer's share of entailed claims, its number of claims, and its status.

    The share is nan if the answer has no claim, or if a claim has no label.
    """
    who = units(answers, "answers")
    claim_parts = Parts(claims, "claims", who, "answers", "answer_id")
    label = encode_labels(column(claims, "label", "claims"), _ENTAILS, "claim support", fold=True)
    status = claim_parts.status(statuses(claims, ~np.isnan(label)))
    expected = claim_parts.count_expected(answers, "n_claims")
    # A share over the labelled claims alone would drop the claims that the judge found hard.
    complete = claim_parts.count(~np.isnan(label)) == expected
    status = np.where((status == 0) & ~complete, NOT_JUDGED_CODE, status).astype(np.int8)
    return who, np.where(complete, ratio(claim_parts.count(label == 1), expected), np.nan), expected, status


def _mark_abstained(answers: pd.DataFrame) -> FloatArray:
    nothing = empty(answers)
    if "abstained" not in answers.columns:
        return nothing.astype(np.float64)
    # FActScore leaves abstentions out of the mean, and an empty answer states nothing.
    return np.where(nothing, 1.0, flags(answers["abstained"], "abstained"))
