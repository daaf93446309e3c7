"""Score a study by the RAG measures of RAGAS and RAGChecker. `judge.scores.rag` does the arithmetic.

The claims of an answer come from the task `claim_decomposition`, or were imported with the answer. An item's
reference claims are all of its nuggets. Whether a claim is correct, and whether a passage is relevant, is
judged against the item's reference answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from judge.papers.faithfulness import claims_of

if TYPE_CHECKING:
    import pandas as pd

    from judge.papers.engine.paper_study import PaperStudy
    from judge.papers.engine.queries import System
    from judge.scores.score import Score

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
    from judge.scores import rag

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
            *rag.score_claims(answers, claims),
            *rag.score_references(answers, reference_claims),
            *rag.score_contexts(answers, contexts),
            rag.answer_relevancy(answers),
        )
    }
    measures["claim_f1"] = rag.claim_f1(measures["claim_precision"], measures["claim_recall"])
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
    import pandas as pd

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
