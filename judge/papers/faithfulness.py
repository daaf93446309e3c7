"""How well sources support answers: RAGAS and FActScore (by claim), ALCE and TREC RAG (by citation).

Claims come from the task `claim_decomposition`, or were imported with the answers. They are judged in the task
`claim_support`. ALCE needs three tasks. `citation_support` asks whether all citations of a sentence together
support it. `citation_each` asks whether a citation alone supports the sentence, and `citation_rest` asks
whether the sentence's other citations support it. Only full support counts as entailment. For RAGChecker, see
`judge.papers.rag`.

Tables (see `judge.scores.columns`):
    answers  unit_id, question_id, abstained (optional bool),
             n_claims (optional: 0 means that the answer has no claim)
    claims   one row per claim in an answer: unit_id, answer_id, status,
             label (`supported`, `entailment` and `Entailment` mean entailed; the labels in NOT_ENTAILED mean
             not entailed)

An answer with an unlabelled claim has no value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judge.commands import command
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.queries import System
from judge.papers.engine.steps import Step
from judge.scores import citation_support
from judge.scores.columns import Parts, column, empty, encode_labels, flags, statuses, units
from judge.scores.score import NOT_JUDGED_CODE, SHARE, Score, StatusArray, Units, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray

NO_ABSTENTION = "abstention not judged"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    chosen = study.answering("qa_answer", "all")
    answers = study.read_answers(chosen)
    claims = sentences = citations = None
    if study.part("claims"):
        claims_of(study, chosen, answers)
        claims = study.labels("claim_support", chosen).drop(columns=["item_id", "question_id"])
        claims = claims.rename(columns={"answer_unit": "answer_id"})
    if study.part("abstention"):
        judged = study.labels("deflection", chosen).set_index("unit_id")["label"].reindex(answers["unit_id"])
        answers["abstained"] = judged.map({"missing": 1.0, "attempted": 0.0}).to_numpy()
    if study.part("alce"):
        sentences = study.labels("citation_support", chosen)
        citations = study.labels("citation_each", chosen)
        rest = study.labels("citation_rest", chosen).set_index("unit_id")["label"]
        citations["rest"] = _full(rest.reindex(citations["unit_id"]))
    elif study.part("trec"):
        citations = study.labels("citation_each", chosen)
    study.check()
    scores: list[Score] = []
    if claims is not None:
        scores.append(ragas(answers, claims))
        facts = factscore(answers, claims)
        if not study.part("abstention"):
            # FActScore leaves out answers that decline, and only the task of the part `abstention` identifies them.
            facts = [score.drop_values(NO_ABSTENTION) for score in facts]
            study.note(
                "FActScore, the respond ratio and facts per answer exclude answers that decline, but no judge has labelled which answers decline: "
                + command("judge suite faithfulness -m MODEL --part claims --part abstention")
            )
        scores += facts
    if citations is not None:
        lines = study.rows.sentences(chosen).rename(columns={"answer_unit": "answer_id"})
        marks = citations.assign(
            sentence_id=study.rows.sentences_of(citations), alone=_full(citations["label"])
        )
        if sentences is not None:
            whole = sentences.set_index("unit_id")
            lines["entailed"] = _full(whole["label"].reindex(lines["unit_id"]))
            lines["status"] = whole["status"].reindex(lines["unit_id"]).fillna("not judged").to_numpy()
            scores += citation_support.alce(answers, lines, marks)
        if study.part("trec"):
            # Citations are stored in the order of the sentence, so a running count gives their positions.
            marks["position"] = marks.groupby("sentence_id").cumcount() + 1
            scores += citation_support.trec(answers, lines, marks, several=study.option("several"))  # type: ignore[arg-type]
    return scores


def claims_of(study: PaperStudy, chosen: System, answers: pd.DataFrame) -> pd.DataFrame:
    """Return a table of all claims with the columns unit_id and answer_id.

    If some answers have no claims yet, a missing step is recorded: decompose these answers, or create claims
    from their decomposition. The column `n_claims` is then added to `answers`.
    """
    have = study.rows.counts("claim")
    # If a file says that an answer makes no claims, there is nothing to decompose.
    none = answers["unit_id"].isin(study.rows.read_without_claims())
    without = answers[answers["answered"] & ~answers["unit_id"].isin(have.index) & ~none]
    if len(without):
        listed = study.labels("claim_decomposition", chosen)
        claim_lists = listed.set_index("unit_id").reindex(without["unit_id"])
        ready = claim_lists["label"].notna() & (claim_lists["label"] != "[]")
        if ready.any() and study.last_run is not None:
            reason = (
                f"{int(ready.sum())} answers were decomposed into claims, but the claims are not units yet"
            )
            study.need(Step("claims", reason, run_id=study.last_run.run_id))
        # An answer with an empty list makes no claims; an answer whose list is malformed counts as not judged.
        counted = answers["unit_id"].map(have).to_numpy(dtype=float, copy=True)
        empty = (
            answers["unit_id"]
            .map(listed.set_index("unit_id")["label"] == "[]")
            .fillna(False)
            .to_numpy(dtype=bool)
        )
        counted[empty | (none & np.isnan(counted)).to_numpy()] = 0
        answers["n_claims"] = counted
        lost = without["unit_id"][(~ready & (claim_lists["label"] != "[]")).to_numpy()]
        # A malformed list counts as one claim without a label. The answer then has no value, instead of counting as an
        # answer without claims.
        answers.loc[answers["unit_id"].isin(lost), "n_claims"] = 1
    table = study.rows.units("claim", chosen.where, "n item_id question_id answer_id")
    return table.rename(columns={"answer_unit": "answer_id"})[["unit_id", "answer_id"]]


def _full(labels: pd.Series) -> Any:
    """Return 1 for full support, 0 for partial or no support, and None if there is no label."""
    # ALCE requires entailment, and partial support is not entailment.
    values = labels.map({"full": 1.0, "partial": 0.0, "none": 0.0})
    return values.astype(object).where(values.notna(), None).to_numpy()


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
