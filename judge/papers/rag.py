"""The RAG measures of RAGAS and RAGChecker, computed from claims (Ru et al. 2024, arXiv 2408.08067, section 3.3).

The claims of an answer come from the task `claim_decomposition`, or were imported with the answer. An item's
reference claims are all of its nuggets. Whether a claim is correct, and whether a passage is relevant, is
judged against the item's reference answers.

Tables (see `judge.scores.columns`):
    answers     unit_id, question_id, answered, has_reference (whether the item has a reference answer),
                n_claims (optional: 0 means that the answer makes no claims),
                n_references (the item's number of reference claims),
                n_contexts (the number of passages that the answer was given)
    claims      one row per claim in an answer: unit_id, answer_id, and these labels with their statuses (`NAME`
                and `NAME_status`):
                supported (by the passages together),
                correct (entailed by the reference answer),
                source (the passages that entail it: a relevant one, only irrelevant ones, or none; a passage is
                relevant if it supports a part of the reference)
    references  one row per reference claim and answer: unit_id, answer_id, stated (in the answer), retrieved (in
                the passages)
    contexts    one row per passage given to an answer, in the order given: answer_id, relevant

Every measure is the mean over answers. An empty or missing answer has 0 in measures for which greater is better,
and no value in the others. An answer without claims, passages or a reference has no value in the measures that
need them; RAGChecker's package reports 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.queries import System
from judge.papers.faithfulness import claims_of
from judge.scores.columns import Parts, column, empty, encode_labels, statuses, units
from judge.scores.score import (
    NO_ANSWER_CODE,
    NOT_JUDGED_CODE,
    SHARE,
    Score,
    StatusArray,
    Units,
    harmonic,
    score_values,
)
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray

CLAIMS = {
    "claim_support": ("supported", ("faithfulness", "errors")),
    "claim_correct": ("correct", ("correctness", "errors")),
    "claim_source": ("source", ("errors",)),
}
"""For each task on the claims of answers: the column for its labels, and the parts that need the task."""


REFERENCES = {
    "nugget_assignment": ("stated", ("correctness", "utilisation")),
    "nugget_support": ("retrieved", ("retrieval", "utilisation")),
}
"""For each task on reference claims: the column for its labels, and the parts that need the task."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    chosen = study.answering("qa_answer", "all")
    answers = study.read_answers(chosen, "context")
    # If the context of an answer was not recorded, measures of passages have no value.
    listed = answers["context"].map(lambda text: json.loads(text) if isinstance(text, str) else [])
    answers["n_contexts"] = listed.map(len)
    references = study.rows.column("reference_answers")
    # A file may contain an empty list, which does not count as a reference.
    answers["has_reference"] = answers["item_id"].isin(references.index[references != "[]"])
    # The claims of a reference answer are its nuggets, vital or not.
    counts = study.rows.nuggets().sum(axis=1)
    answers["n_references"] = answers["item_id"].map(counts).fillna(0)
    claims = _read_labelled(study, chosen, CLAIMS, lambda: claims_of(study, chosen, answers))
    reference_claims = _read_labelled(study, chosen, REFERENCES, lambda: _nuggets(study, chosen))
    contexts = _contexts(study, chosen, answers.assign(context=listed))
    study.check()
    measures = {
        score.measure: score
        for score in (
            *score_claims(answers, claims),
            *score_references(answers, reference_claims),
            *score_contexts(answers, contexts),
            answer_relevancy(answers),
        )
    }
    measures["claim_f1"] = claim_f1(measures["claim_precision"], measures["claim_recall"])
    requested = {name for part, names in MEASURES.items() if study.part(part) for name in names}
    return [measures[name] for name in study.paper.known if name in requested]


def _nuggets(study: PaperStudy, chosen: System) -> pd.DataFrame:
    """Return a table of the reference claims, paired with each answer to their item: unit_id, answer_id."""
    table = study.rows.units("nugget", chosen.where, "n item_id question_id answer_id")
    return table.rename(columns={"answer_unit": "answer_id"})


def _read_labelled(
    study: PaperStudy,
    chosen: System,
    tasks: Mapping[str, tuple[str, tuple[str, ...]]],
    read_parts: Callable[[], pd.DataFrame],
) -> pd.DataFrame:
    """Return the parts of answers, with a column of labels and a column of statuses for each task.

    The columns of a task that was not requested contain None.
    """
    requested = [task for task, (_, parts) in tasks.items() if study.part(*parts)]
    table = (read_parts() if requested else _empty("answer_id"))[["unit_id", "answer_id"]].copy()
    for task, (name, _) in tasks.items():
        table[name] = table[f"{name}_status"] = None
        if task in requested:
            judged = study.labels(task, chosen).set_index("unit_id").reindex(table["unit_id"])
            table[name], table[f"{name}_status"] = judged["label"].to_numpy(), judged["status"].to_numpy()
    return table


def _empty(*names: str) -> pd.DataFrame:

    return pd.DataFrame({name: [] for name in ("unit_id", *names)}, dtype=object)


def _contexts(study: PaperStudy, chosen: System, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the passages in the context of each answer, in their order, with their labels."""
    if not study.part("retrieval"):
        return _empty("answer_id", "relevant")
    shown = f"SELECT c.value FROM unit_texts AS a, json_each(a.context) AS c WHERE a.kind = 'answer' AND {chosen.where}"
    judged = study.labels(
        "mirage_support", only=f"passage_id IN ({shown})", columns="passage_id", together="item_id"
    )
    table = answers[["unit_id", "item_id", "context"]].explode("context").dropna(subset="context")
    table = table.rename(columns={"unit_id": "answer_id", "context": "passage_id"})
    # A passage of another item was judged for that item's question, so its label does not apply here.
    table = table.merge(
        judged[["item_id", "passage_id", "label", "status"]], "left", ["item_id", "passage_id"]
    )
    columns = {"label": "relevant", "status": "relevant_status"}
    return table[["answer_id", *columns]].rename(columns=columns).assign(unit_id=range(len(table)))


MEASURES = {
    "faithfulness": ("faithfulness", "answer_relevancy"),
    "retrieval": ("context_precision", "context_precision_ranked", "context_recall"),
    "correctness": ("claim_precision", "claim_recall", "claim_f1"),
    "utilisation": ("context_utilisation",),
    "errors": (
        "noise_sensitivity_relevant",
        "noise_sensitivity_irrelevant",
        "hallucination",
        "self_knowledge",
    ),
}
"""The measures of each part."""


ENTAILMENT = {"entailment": 1.0, "neutral": 0.0, "contradiction": 0.0}


SOURCES = {
    "relevant": {"relevant": 1.0, "irrelevant": 0.0, "none": 0.0},
    "irrelevant": {"relevant": 0.0, "irrelevant": 1.0, "none": 0.0},
}
"""The labels of `claim_source` as numbers, for each kind of passage that entails a claim."""


# RAGChecker judges whether the answer entails a claim. An answer with half of a nugget does not entail it.
STATED = {"support": 1.0, "partial_support": 0.0, "not_support": 0.0}
"""The labels of nuggets as numbers. A nugget that an answer states only in part is not entailed by the answer."""


RELEVANT = {"supported": 1.0, "not_supported": 0.0}


@dataclass(frozen=True)
class _Labels:
    """One column of labels for claims or passages (1, 0 or nan), with the status of each judgement."""

    values: FloatArray
    status: StatusArray

    @classmethod
    def from_table(cls, table: pd.DataFrame, name: str, codes: dict[str, float], kind: str) -> _Labels:
        values = encode_labels(column(table, name, kind), codes, name)
        return cls(values, statuses(table, ~np.isnan(values), f"{name}_status"))


@dataclass(frozen=True)
class _Shares:
    """Computes, for each answer, the share of its parts (claims or passages) that have a property.

    `expected` is the number of parts of each answer that must have a label, and `has` marks the answers that
    can have a value.
    """

    who: Units
    nothing: BoolArray
    parts: Parts
    expected: FloatArray
    has: BoolArray
    why: str

    def score(
        self,
        name: str,
        hit: BoolArray,
        needed: list[_Labels],
        among: BoolArray | None = None,
        *,
        better: bool = True,
    ) -> Score:
        """Return the share of each answer's parts that `hit` marks.

        If `among` is given, the share is computed only over the parts that `among` marks. An answer has a
        value only if all its parts have the labels in `needed`.
        """
        known = np.logical_and.reduce([~np.isnan(labels.values) for labels in needed])
        ended = np.zeros(len(known), dtype=np.int8)
        for labels in needed:
            ended = np.where(ended == 0, labels.status, ended)
        status = self.parts.status(ended)
        status = np.where((status == 0) & (self.parts.count(known) != self.expected), NOT_JUDGED_CODE, status)
        total = self.expected if among is None else self.parts.count(among & known)
        share = ratio(self.parts.count(hit & known), total)
        values = np.where((status == 0) & self.has, share, np.nan)
        # An answer that cannot have a value for any judge counts as judged.
        status = np.where(self.has, status, 0)
        # An empty answer fails in measures for which greater is better. In the others, a 0 would reward it, so it has
        # no value.
        values = np.where(self.nothing & better & self.has, 0.0, values)
        status = np.where(self.nothing & self.has, 0 if better else NO_ANSWER_CODE, status).astype(np.int8)
        return score_values(name, self.who, values, status, reason=self.why, bounds=SHARE)


def score_claims(answers: pd.DataFrame, claims: pd.DataFrame) -> list[Score]:
    """Return the measures that are computed from the claims in the answers.

    faithfulness    supported / claims
    claim_precision correct / claims
    noise_sensitivity_relevant    incorrect, supported, and in a relevant passage / claims
    noise_sensitivity_irrelevant  incorrect, supported, and in an irrelevant passage but no relevant one / claims
    hallucination   incorrect and not supported / claims
    self_knowledge  correct and not supported / claims

    For every answer with claims, faithfulness + hallucination + self_knowledge = 1. The sum of claim_precision,
    both noise sensitivities and hallucination is at most 1, because a wrong claim that is entailed only by
    several passages together counts in none of them.
    """
    who = units(answers, "answers")
    parts = Parts(claims, "claims", who, "answers", "answer_id")
    expected = parts.count_expected(answers, "n_claims")
    supported = _Labels.from_table(claims, "supported", ENTAILMENT, "claims")
    correct = _Labels.from_table(claims, "correct", ENTAILMENT, "claims")
    # RAGChecker's noise is a claim that one passage entails. A claim that only several passages together entail is neither.
    sources = {
        wanted: _Labels.from_table(claims, "source", codes, "claims") for wanted, codes in SOURCES.items()
    }
    nothing = empty(answers)
    # A missing answer has no list of passages, so its passages are unknown. It still counts as a failure.
    given = (column(answers, "n_contexts", "answers").to_numpy(np.float64, na_value=0) > 0) | nothing
    reference = column(answers, "has_reference", "answers").to_numpy(dtype=bool)

    def shares(has: BoolArray, lacking: str) -> _Shares:
        return _Shares(who, nothing, parts, expected, has, f"no claim{lacking}")

    in_context, against = shares(given, " or no passage"), shares(reference, " or no reference answer")
    both = shares(given & reference, ", no passage or no reference answer")
    is_supported, is_wrong = supported.values == 1, correct.values == 0
    in_relevant, in_irrelevant = (sources[wanted].values == 1 for wanted in SOURCES)
    noise = is_wrong & is_supported
    two, three = [supported, correct], [supported, correct, sources["relevant"]]
    return [
        in_context.score("faithfulness", is_supported, [supported]),
        against.score("claim_precision", correct.values == 1, [correct]),
        both.score("noise_sensitivity_relevant", noise & in_relevant, three, better=False),
        both.score("noise_sensitivity_irrelevant", noise & in_irrelevant, three, better=False),
        both.score("hallucination", is_wrong & ~is_supported, two, better=False),
        both.score("self_knowledge", (correct.values == 1) & ~is_supported, two, better=False),
    ]


def score_references(answers: pd.DataFrame, references: pd.DataFrame) -> list[Score]:
    """Return the measures that are computed from the reference claims, i.e. the claims that a correct answer makes.

    claim_recall         stated / reference claims
    context_recall       retrieved / reference claims
    context_utilisation  stated and retrieved / retrieved
    """
    who = units(answers, "answers")
    parts = Parts(references, "reference claims", who, "answers", "answer_id")
    expected = column(answers, "n_references", "answers").to_numpy(np.float64, na_value=0)
    stated = _Labels.from_table(references, "stated", STATED, "reference claims")
    retrieved = _Labels.from_table(references, "retrieved", ENTAILMENT, "reference claims")
    nothing = empty(answers)
    there = expected > 0
    given = (column(answers, "n_contexts", "answers").to_numpy(np.float64, na_value=0) > 0) | nothing
    recall = _Shares(who, nothing, parts, expected, there, "no reference claim")
    context = _Shares(who, nothing, parts, expected, there & given, "no reference claim or no passage")
    used = _Shares(who, nothing, parts, expected, there & given, "no reference claim in the passages")
    retrieved_claims = retrieved.values == 1
    return [
        recall.score("claim_recall", stated.values == 1, [stated]),
        context.score("context_recall", retrieved_claims, [retrieved]),
        used.score(
            "context_utilisation",
            (stated.values == 1) & retrieved_claims,
            [stated, retrieved],
            retrieved_claims,
        ),
    ]


def claim_f1(precision: Score, recall: Score) -> Score:
    """Return claim F1: for each answer, the harmonic mean of its claim precision and its claim recall."""
    precisions, two = precision.rows[:, 0], recall.rows[:, 0]
    assert precision.status is not None and recall.status is not None
    status = np.where(precision.status != 0, precision.status, recall.status).astype(np.int8)
    reason = "no claim, or no reference"
    return score_values(
        "claim_f1", precision.units, harmonic(precisions, two), status, reason=reason, bounds=SHARE
    )


def score_contexts(answers: pd.DataFrame, contexts: pd.DataFrame) -> list[Score]:
    """Return the measures that are computed from the passages that were given with each question.

    context_precision         relevant / passages. In RAGChecker, a relevant passage entails any reference claim. Here it
                              supports a whole reference answer, because claims are not labelled passage by passage
    context_precision_ranked  mean over the relevant passages of the precision at their ranks; 0 if none is relevant
    """
    who = units(answers, "answers")
    parts = Parts(contexts, "passages", who, "answers", "answer_id")
    expected = column(answers, "n_contexts", "answers").to_numpy(np.float64, na_value=0)
    relevant = _Labels.from_table(contexts, "relevant", RELEVANT, "passages")
    nothing = empty(answers)
    reference = column(answers, "has_reference", "answers").to_numpy(dtype=bool)
    has = ((expected > 0) | nothing) & reference
    shares = _Shares(who, nothing, parts, expected, has, "no passage or no reference answer")
    precision = shares.score("context_precision", relevant.values == 1, [relevant])
    hit = pd.Series(relevant.values == 1)
    groups = hit.astype(float).groupby(parts.of)
    # RAGAS: precision at the rank of each relevant passage, so that a late relevant passage lowers the value.
    at_rank = np.where(hit, groups.cumsum() / (groups.cumcount() + 1), 0.0)
    n_relevant = parts.count(hit.to_numpy())
    ranked = np.where(n_relevant == 0, 0.0, ratio(parts.total(at_rank), n_relevant))
    precisions = precision.rows[:, 0]
    # An empty answer has 0 regardless of its passages, as in all measures for which greater is better.
    values = np.where(np.isnan(precisions) | nothing, precisions, ranked)
    second = score_values(
        "context_precision_ranked", who, values, precision.status, reason=precision.why, bounds=SHARE
    )
    return [precision, second]


def answer_relevancy(answers: pd.DataFrame) -> Score:
    """Return RAGAS's answer relevancy, which is undefined here. It compares embeddings, so it cannot be
    computed from labels.
    """
    who = units(answers, "answers")
    return score_values(
        "answer_relevancy",
        who,
        np.full(len(who), np.nan),
        reason="left out, because it needs an embedding model",
    )
