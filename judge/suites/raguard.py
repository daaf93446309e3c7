"""Score a study by RAGuard: accuracy with and without documents, the drop in accuracy, and the quality of the retriever.

The system under test answers the task `verdict` (without context, and with the top k documents) and the task
`verdict_document` (oracle condition: one document at a time). The roles of documents are gold labels, or follow
from a judge's labels in the task `raguard_exam`. `judge.scores.raguard` does the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judge.errors import BadInput
from judge.store import label_rows
from judge.suites.paper import RANKING, Option, Paper, Part

if TYPE_CHECKING:
    import pandas as pd

    from judge.scores.score import Score
    from judge.suites.paper_study import PaperStudy

# Documents that gold, or the exam, gives a role: the claim's associated ones.
_HAS_ROLE = f"unit_id IN ({label_rows.units_of_gold('raguard.role')})"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import raguard

    gold = study.rows.gold("claim_verdict")
    if not len(gold):
        raise BadInput(
            f"no item in '{study.dataset}' has a gold label 'claim_verdict', which all measures require"
        )
    judged = study.option("roles") == "judge"
    exam = None
    if _has_exam(study) or (judged and study.part("oracle", "retrieval")):
        exam = study.labels("raguard_exam", columns="passage_id")
    ranking = None
    if study.part("rag", "retrieval"):
        ranking = study.ranking(study.option("ranking") or None)
    tables = _answers(study, ranking, _examples(study, gold))
    study.check()
    documents = _documents(study, exam, gold) if judged and exam is not None else _gold_documents(study)
    scores: list[Score] = []
    if tables:
        scores += raguard.scores(_table(study, tables, gold, documents))
    if study.part("retrieval") and ranking is not None:
        scores += _retrieval(study, documents, ranking)
    if exam is not None and _has_exam(study):
        gold_roles = exam["passage_id"].map(study.rows.gold("raguard.role", "passage"))
        scores += raguard.exam(exam, exam["item_id"].map(gold), gold_roles)
    return scores


def _has_exam(study: PaperStudy) -> bool:
    """Return whether to score the part `exam`. It is left out if the outputs were imported and no judge is named."""
    if not study.part("exam"):
        return False
    no_judge = not study.request.models and not any(r.task_id == "raguard_exam" for r in study.judges.runs)
    if no_judge and not study.insists("exam") and study.request.system in study.rows.imported:
        study.note(
            "the part exam is left out, because no judge has labelled the documents (to include it: --run JUDGE or --part exam)"
        )
        return False
    return True


FEW = 20
"""The minimum number of claims for using examples. With fewer claims, all claims are needed for the scores."""


def _examples(study: PaperStudy, gold: pd.Series) -> str:
    """Return the examples as an option value: a true claim and a false claim. They are shown with every
    question and are not scored (section 4.1).
    """
    if not study.part("zero", "rag", "oracle"):
        return ""
    made = study.find_run(("verdict", "verdict_document"))
    # The examples of existing runs are used again, so that conditions differ only in their passages.
    if made is not None:
        if not made.examples:
            study.note(f"run {made.run_id} shows no examples, so no condition shows examples")
        return _note_examples(study, made.examples)
    every = study.rows.gold("claim_verdict", everywhere=True)
    train = study.rows.meta("split", everywhere=True)
    # Claims from the training part are not scored anyway.
    kept = every[every.index.isin(train[train.isin(["train", "training"])].index)]
    if not len(kept) and len(every) < FEW:
        study.note(f"no examples are shown, because there are only {len(every)} claims")
        return ""
    chosen = kept if len(kept) else every
    owning = set(study.rows.passages(everywhere=True)["item_id"])
    picked = []
    for verdict in ("true", "false"):
        # The oracle condition shows each example with a document, so it must have one.
        fit = [str(item) for item in chosen[chosen == verdict].index if item in owning]
        if not fit:
            study.note(f"no examples are shown, because no {verdict} claim has a document")
            return ""
        # The first id is used, because a random choice would change the prompt and therefore the run's identity.
        picked.append(min(fit))
    return _note_examples(study, picked)


def _note_examples(study: PaperStudy, items: Sequence[str]) -> str:
    """Return the examples as an option value, and add a note that names them."""
    if items:
        shot = "two-shot" if len(items) == 2 else f"{len(items)}-shot"
        study.note(f"{shot}: {' and '.join(items)} are shown with every question and are not scored")
    return ",".join(items)


def _answers(study: PaperStudy, ranking: tuple[str, str] | None, examples: str) -> dict[str, pd.DataFrame]:
    """Return the system's answers by condition, under the condition names of `judge.scores.raguard`."""
    by_condition: dict[str, pd.DataFrame | None] = {}
    if study.part("zero", "rag", "oracle"):
        by_condition["none"] = study.read_generated("verdict", "none", examples=examples)
    if study.part("rag"):
        for k in study.numbers("k"):
            # Answers may have been imported without a ranking. If not, the ranking is recorded as missing.
            if ranking is not None or not study.steps:
                by_condition[f"top:{k}"] = study.read_generated(
                    "verdict", f"top:{k}", ranking, examples=examples
                )
    if study.part("oracle"):
        by_condition["oracle"] = study.on_documents("verdict_document", _HAS_ROLE, examples)
    return {name: table for name, table in by_condition.items() if table is not None}


def _table(
    study: PaperStudy, tables: dict[str, pd.DataFrame], gold: pd.Series, documents: pd.DataFrame
) -> pd.DataFrame:
    """Return the answers in all conditions as one table, with one row per answer."""
    import pandas as pd

    role = documents.set_index("document_id")["role"]
    parts = []
    for condition, table in tables.items():
        part = table.assign(
            condition=condition,
            # A claim has the same unit in all conditions, but unit ids must be unique in a score.
            unit_id=[f"{condition} {n}" for n in table["unit_id"]],
            gold=table["item_id"].map(gold).to_numpy(),
        )
        if "passage_id" in table:
            part["role"] = table["passage_id"].map(role).to_numpy()
        parts.append(part)
    whole = pd.concat(parts, ignore_index=True)
    whole["role"] = (
        whole["role"].astype(object).where(whole["role"].notna(), None) if "role" in whole else None
    )
    lacking = int(whole["gold"].isna().sum())
    if lacking:
        study.note(f"{lacking} answers have no value, because their claims have no gold verdict")
    return whole


def _gold_documents(study: PaperStudy) -> pd.DataFrame:
    role = study.rows.gold("raguard.role", "passage", everywhere=True)
    table = study.rows.passages(everywhere=True).rename(columns={"passage_id": "document_id"})
    return table.assign(role=table["document_id"].map(role).astype(object)).drop(columns="unit_id")


def _documents(study: PaperStudy, exam: pd.DataFrame, gold: pd.Series) -> pd.DataFrame:
    """Return the documents with their roles, which are derived from the judge's exam and the gold verdict."""
    from judge.scores import raguard

    role = raguard.roles(exam["label"], exam["item_id"].map(gold))
    study.note("the roles of documents follow from the judge's exam and the gold verdict")
    table = exam.rename(columns={"passage_id": "document_id"})[["document_id", "item_id", "question_id"]]
    return table.assign(role=role.to_numpy())


def _retrieval(study: PaperStudy, documents: pd.DataFrame, ranking: tuple[str, str]) -> list[Score]:
    from judge.scores import raguard

    ranked = study.rows.read_ranked(ranking)
    claims = study.rows.items[["item_id", "question_id"]]
    known = documents.dropna(subset="role")
    foreign = ~ranked["passage_id"].isin(documents["document_id"])
    # A document outside the sample has no role, but it stays in the ranking, because the system retrieved it.
    if foreign.any():
        study.note(
            f"{int(foreign.sum())} ranked passages have no role, because the requested rows do not include them"
        )
    import pandas as pd

    extra = ranked["passage_id"][~ranked["passage_id"].isin(known["document_id"])].unique()
    shelf = pd.concat(
        [known, pd.DataFrame({"document_id": extra, "item_id": "", "role": "irrelevant"})], ignore_index=True
    )
    scores: list[Score] = []
    for k in study.numbers("k"):
        scores += raguard.misleading(k, claims, shelf, ranked)
        relevant = study.option("relevant")
        scores += raguard.relevance(k, claims, shelf, ranked, relevant=relevant)  # type: ignore[arg-type]
    return [score.add_notes(f"ranking: {ranking[0]} ({ranking[1]})") for score in scores]


PAPER = Paper(
    name="raguard",
    title="RAGuard (arXiv 2502.16101): accuracy with misleading documents, and retrieval quality",
    compute_scores=compute_scores,
    lower=("misleading_*", "*exposure*"),
    neutral=("exam_*",),
    main=("accuracy_*", "drop_*"),
    parts=(
        Part("zero", ("verdict",), "accuracy without documents"),
        Part(
            "rag",
            ("verdict",),
            "accuracy with the first k retrieved documents, and its change from accuracy without documents",
        ),
        Part(
            "oracle",
            ("verdict_document",),
            "accuracy with one associated document at a time, and with misleading documents",
        ),
        Part("retrieval", (), "misleading retrieval recall, exposure, precision, recall, NDCG"),
        Part(
            "exam",
            ("raguard_exam",),
            "roles that the judge assigns to documents, and their agreement with gold labels",
        ),
    ),
    options=(
        Option("k", "1,5", "Numbers of retrieved documents to score, e.g. 1,5."),
        Option(
            "relevant",
            "associated",
            "Documents that the retriever should find.",
            ("associated", "supporting"),
        ),
        Option("roles", "gold", "Source of the document roles: gold or a judge.", ("gold", "judge")),
        RANKING,
    ),
    is_judged=False,
)
