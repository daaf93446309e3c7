"""How much of an answer its sources carry, claim by claim: RAGAS, FActScore, RAGChecker.

Tables (see `judge.scores.columns`):
    answers  unit_id, question_id, abstained (optional bool), n_claims (optional: 0 says that the answer has none)
    claims   one row a claim of an answer: unit_id, answer_id, label (`supported`, `entailment`, Entailment: entailed;
             anything else in NOT_ENTAILED is not), status

An answer with a claim that has no label has no value.
"""

import numpy as np
import pandas as pd

from judge.scores.columns import Parts, coded, column, empty, flags, statuses, units
from judge.scores.score import SHARE, STATUSES, Score, StatusArray, Units, harmonic, scored
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray

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
NOT_JUDGED_CODE = np.int8(len(STATUSES) - 1)


def ragas(answers: pd.DataFrame, claims: pd.DataFrame) -> Score:
    """RAGAS faithfulness: mean over answers of entailed / all statements (Es et al. 2023, arXiv 2309.15217, section 3).

    An empty or missing answer has 0; one that makes no claim has no value.
    """
    who, share, _, status = _shares(answers, claims)
    share, status = np.where(empty(answers), 0.0, share), np.where(empty(answers), 0, status).astype(np.int8)
    return scored("ragas_faithfulness", who, share, status, why=NO_CLAIM, bounds=SHARE)


def factscore(answers: pd.DataFrame, claims: pd.DataFrame, *, gamma: int = 10) -> list[Score]:
    """FActScore: mean over answers that respond of supported share x penalty (Min et al. 2023, arXiv 2305.14251).

    penalty = 1 where the answer has N > gamma facts, else exp(1 - gamma / N). gamma = 0: no penalty. Abstentions
    (`abstained`, and empty or missing answers) are no part of the mean; their complement is the respond ratio.

    factscore            with the penalty
    factscore_unpenalised
    respond_ratio        share of answers that do not abstain
    facts_per_answer     mean N over the answers that respond
    """
    who, share, n, status = _shares(answers, claims)
    abstained = _abstained(answers)
    long_enough = np.maximum(n, 1.0)
    penalty = np.where(n > gamma, 1.0, np.exp(1 - gamma / long_enough)) if gamma else np.ones(len(n))
    note = (f"length penalty below {gamma} facts",) if gamma else ()
    responds = abstained == 0
    unknown = np.isnan(abstained)
    # A judge that failed on an answer says nothing of whether it responds.
    share, n = np.where(unknown, np.nan, share), np.where(unknown, np.nan, n)
    status = np.where(unknown & (status == 0), NOT_JUDGED_CODE, status).astype(np.int8)
    kept = [
        scored("factscore", who, share * penalty, status, why=NO_CLAIM, notes=note, bounds=SHARE),
        scored("factscore_unpenalised", who, share, status, why=NO_CLAIM, bounds=SHARE),
        scored("facts_per_answer", who, np.where(np.isnan(share) & (n > 0), np.nan, n), status, why=NO_CLAIM),
    ]
    answered = [score.where(responds | unknown) for score in kept]
    ratio_ = scored("respond_ratio", who, np.where(unknown, np.nan, responds), why="abstention not judged")
    return [*answered[:2], ratio_, answered[2]]


def ragchecker(
    answers: pd.DataFrame, claims: pd.DataFrame, reference_claims: pd.DataFrame | None = None
) -> list[Score]:
    """RAGChecker's measures, each the mean over answers (Ru et al. 2024, arXiv 2408.08067, section 3.3).

    claims (of the answer): unit_id, answer_id, correct (entailed by the reference), in_relevant and in_irrelevant
    (entailed by a relevant / an irrelevant retrieved chunk; a chunk is relevant when it entails a reference
    claim); reference_claims: unit_id, answer_id, in_answer (entailed by the answer), retrieved (by some chunk).
    All of them 1 / 0 / None.

    precision  correct / claims of the answer           recall   in_answer / reference claims
    f1         harmonic mean of the two, each answer    claim_recall  retrieved / reference claims
    context_utilization   in_answer and retrieved / retrieved
    faithfulness          in a chunk / claims
    noise_sensitivity_in_relevant    incorrect and in a relevant chunk / claims
    noise_sensitivity_in_irrelevant  incorrect and only in an irrelevant chunk / claims
    hallucination         incorrect and in no chunk / claims
    self_knowledge        correct and in no chunk / claims
    faithfulness + hallucination + self_knowledge = 1 for every answer. The package of the paper says 0 where an answer
    has no claim; here it has no value.
    """
    who = units(answers, "answers")
    own = Parts(claims, "claims", who, "answers", "answer_id")
    correct, relevant, irrelevant = (
        flags(column(claims, name, "claims"), name) for name in ("correct", "in_relevant", "in_irrelevant")
    )
    known = ~np.isnan(correct + relevant + irrelevant)
    chunk, right = (relevant == 1) | (irrelevant == 1), correct == 1
    shares = {
        "precision": right,
        "faithfulness": chunk,
        "noise_sensitivity_in_relevant": ~right & (relevant == 1),
        "noise_sensitivity_in_irrelevant": ~right & (irrelevant == 1) & (relevant == 0),
        "hallucination": ~right & ~chunk,
        "self_knowledge": right & ~chunk,
    }
    total = own.count()
    whole = own.count(known) == total

    def per_answer(hit: BoolArray) -> FloatArray:
        return np.where(whole, ratio(own.count(hit & known), total), np.nan)

    values = {name: per_answer(hit) for name, hit in shares.items()}
    if reference_claims is not None:
        values |= _against_reference(who, reference_claims)
        values["f1"] = harmonic(values["precision"], values["recall"])
    why = "no claim, or one without a label"
    return [scored(f"ragchecker_{name}", who, found, why=why) for name, found in values.items()]


def _against_reference(who: Units, claims: pd.DataFrame) -> dict[str, FloatArray]:
    own = Parts(claims, "reference claims", who, "answers", "answer_id")
    told, retrieved = (
        flags(column(claims, name, "reference claims"), name) for name in ("in_answer", "retrieved")
    )
    total = own.count()
    whole = own.count(~np.isnan(told + retrieved)) == total
    there = own.count(retrieved == 1)
    found = {
        "recall": ratio(own.count(told == 1), total),
        "claim_recall": ratio(there, total),
        "context_utilization": ratio(own.count((told == 1) & (retrieved == 1)), there),
    }
    return {name: np.where(whole, values, np.nan) for name, values in found.items()}


def _shares(answers: pd.DataFrame, claims: pd.DataFrame) -> tuple[Units, FloatArray, FloatArray, StatusArray]:
    """Entailed share of each answer's claims (nan: none, or one without a label), how many it has, and why."""
    who = units(answers, "answers")
    own = Parts(claims, "claims", who, "answers", "answer_id")
    label = coded(column(claims, "label", "claims"), _ENTAILS, "claim support", fold=True)
    status = own.status(statuses(claims, ~np.isnan(label)))
    rows = own.count()
    expected = rows
    if "n_claims" in answers.columns:
        expected = np.fmax(rows, answers["n_claims"].to_numpy(dtype=np.float64, na_value=np.nan))
    complete = own.count(~np.isnan(label)) == expected
    status = np.where((status == 0) & ~complete, NOT_JUDGED_CODE, status).astype(np.int8)
    return who, np.where(complete, ratio(own.count(label == 1), expected), np.nan), expected, status


def _abstained(answers: pd.DataFrame) -> FloatArray:
    nothing = empty(answers)
    if "abstained" not in answers.columns:
        return nothing.astype(np.float64)
    return np.where(nothing, 1.0, flags(answers["abstained"], "abstained"))
