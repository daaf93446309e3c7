"""RAGuard: how much misleading documents lower the accuracy of a fact checker.

Zeng et al., "Worse than Zero-shot? A Fact-Checking Dataset for Evaluating the Robustness of RAG Against Misleading
Retrievals", 2025 (arXiv 2502.16101).

The system under test answers the task `verdict` (without context, and with the top k documents) and the task
`verdict_document` (oracle condition: one document at a time). The roles of documents are gold labels, or follow
from a judge's labels in the task `raguard_exam`.

Misleading Retrieval Recall is "the fraction of claims retrieving at least one misleading document". The paper
does not say which misleading documents count: the claim's own, or those of any claim. Nor does it say which
claims count: all, or only those with a misleading document of their own. The 100 % that the paper reports for
the oracle task results only from own / owning, i.e. from the claim's own documents, over the claims that have
one. All four combinations are computed.

Tables (see `judge.scores.columns`):
    answers    one row per answer: unit_id, item_id (the claim), question_id, status,
               condition (none; top:1, top:5, ...; oracle: one associated document at a time; misleading),
               label (the answer), gold (true or false), role (of the document, for oracle)
    claims     item_id, question_id
    documents  document_id, item_id (the claim it belongs to), role
    rankings   item_id, rank, passage_id (a document_id); see `judge.scores.retrieval`
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.papers.engine.paper_study import PaperStudy
from judge.scores import retrieval
from judge.scores.columns import column, counts, encode_labels, mask_unanswered, positions, statuses, units
from judge.scores.compare import combine_scores
from judge.scores.score import NOT_JUDGED_CODE, Score, Units, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import label_rows

# Documents that gold, or the exam, gives a role: the claim's associated ones.
_HAS_ROLE = f"unit_id IN ({label_rows.units_of_gold('raguard.role')})"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
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
    result: list[Score] = []
    if tables:
        result += scores(_table(study, tables, gold, documents))
    if study.part("retrieval") and ranking is not None:
        result += _score_retrieval(study, documents, ranking)
    if exam is not None and _has_exam(study):
        gold_roles = exam["passage_id"].map(study.rows.gold("raguard.role", "passage"))
        result += score_exam(exam, exam["item_id"].map(gold), gold_roles)
    return result


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
    """Return the system's answers by condition, under the condition names of `judge.papers.raguard`."""
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
    role = roles(exam["label"], exam["item_id"].map(gold))
    study.note("the roles of documents follow from the judge's exam and the gold verdict")
    table = exam.rename(columns={"passage_id": "document_id"})[["document_id", "item_id", "question_id"]]
    return table.assign(role=role.to_numpy())


def _score_retrieval(study: PaperStudy, documents: pd.DataFrame, ranking: tuple[str, str]) -> list[Score]:

    ranked = study.rows.read_ranked(ranking)
    claims = study.rows.items[["item_id", "question_id"]]
    known = documents.dropna(subset="role")
    foreign = ~ranked["passage_id"].isin(documents["document_id"])
    # A document outside the sample has no role, but it stays in the ranking, because the system retrieved it.
    if foreign.any():
        study.note(
            f"{int(foreign.sum())} ranked passages have no role, because the requested rows do not include them"
        )

    extra = ranked["passage_id"][~ranked["passage_id"].isin(known["document_id"])].unique()
    shelf = pd.concat(
        [known, pd.DataFrame({"document_id": extra, "item_id": "", "role": "irrelevant"})], ignore_index=True
    )
    scores: list[Score] = []
    for k in study.numbers("k"):
        scores += misleading(k, claims, shelf, ranked)
        relevant = study.option("relevant")
        scores += relevance(k, claims, shelf, ranked, relevant=relevant)  # type: ignore[arg-type]
    return [score.add_notes(f"ranking: {ranking[0]} ({ranking[1]})") for score in scores]


ROLES = ("supporting", "misleading", "irrelevant")


# The released data set says `unrelated` where the paper says irrelevant.
_ROLE = {**{role: role for role in ROLES}, "unrelated": "irrelevant"}


_NOTHING = ("irrelevant", "unrelated", "does not contribute")


_TRUTH = {"true": 1.0, "false": 0.0}


_OUTSIDE = -1.0


_TOP = re.compile(r"top:(\d+)")


def roles(exam: pd.Series, gold: pd.Series) -> pd.Series:
    """Return the role of each document.

    `exam` has a judge's answer for each document in the task `raguard_exam`. A document is supporting if this
    answer is the gold verdict, misleading if it is the opposite, and irrelevant if the document does not
    contribute. The role is None if the document has no label or its claim has no gold verdict.
    """
    right = encode_labels(exam, {**dict.fromkeys(_NOTHING, _OUTSIDE), **_TRUTH}, "exam")
    truth = encode_labels(gold, _TRUTH, "claim verdict")
    named = np.full(len(right), None, dtype=object)
    known = ~np.isnan(right) & ~np.isnan(truth)
    named[known & (right == truth)] = "supporting"
    # A document that refutes a false claim is supporting: the role compares the answer with gold, not the stance.
    named[known & (right == 1 - truth)] = "misleading"
    named[known & (right == _OUTSIDE)] = "irrelevant"
    return pd.Series(named, index=exam.index, dtype="object")


def role_words(role: pd.Series) -> pd.Series:
    """Return the roles with this package's names for them (the data set uses `unrelated`). Raises BadInput for
    an unknown role.
    """
    codes, distinct = pd.factorize(role)
    for word in distinct:
        if word not in _ROLE:
            raise BadInput(f"unknown role '{word}'; available: {', '.join(_ROLE)}")
    words = np.array([*(_ROLE[word] for word in distinct), None], dtype=object)
    return pd.Series(words[codes], index=role.index, dtype="object")


@dataclass(frozen=True, eq=False)
class Setting:
    """The accuracy in one setting, and the claim to which each of the setting's answers belongs."""

    accuracy: Score
    claims: pd.Index[Any]


def settings(answers: pd.DataFrame) -> dict[str, Setting]:
    """Return the accuracy in each setting, keyed by the setting: zero, rag_1, rag_5, oracle, misleading.

    A = share of answers that equal the gold verdict. As in the paper, an answer outside the options is wrong. A
    missing answer, and a reply that could not be read (unparsed, refused, truncated), is also wrong. A call
    that failed is not an answer and is never counted. If there is no condition `misleading`, the setting of
    this name uses the oracle rows whose document is misleading.
    """
    codes, conditions = pd.factorize(column(answers, "condition", "answers"))
    rows = {_setting(name): codes == code for code, name in enumerate(conditions)}
    if "oracle" in rows and "misleading" not in rows and "role" in answers.columns:
        rows["misleading"] = rows["oracle"] & (role_words(answers["role"]) == "misleading").to_numpy()
    (every, off), claims = _accuracy(answers), column(answers, "item_id", "answers").to_numpy()
    settings_by_name = {}
    for name in sorted(rows, key=lambda name: (_ORDER.get(name.split("_")[0], 9), len(name), name)):
        score = every.restrict(rows[name], f"accuracy_{name}")
        n = int((off & rows[name]).sum())
        note = f"{n} answers that are outside the options or unreadable count as wrong"
        settings_by_name[name] = Setting(score.add_notes(note) if n else score, pd.Index(claims[rows[name]]))
    return settings_by_name


def drops(settings_by_name: dict[str, Setting]) -> list[Score]:
    """Return the change in accuracy in each setting, compared with answering without context. A negative
    value is worse.

    drop                       A - A_zero, where A_zero is over all claims, as in the paper
    drop_relative              (A - A_zero) / A_zero
    drop_same_claims           both accuracies over only the claims with a value in both settings (a claim
                               without a ranking or document has no value); each claim counts once in A_zero
    drop_relative_same_claims  the relative drop on the same claims
    drop_same_answers          A - A_zero, where A_zero counts a claim as often as it is answered in this setting
                               (a claim with ten documents counts ten times)

    Raises BadInput if a claim has two answers without context.
    """
    if "zero" not in settings_by_name:
        return []
    zero = settings_by_name["zero"]
    if not zero.claims.is_unique:
        raise BadInput(f"claim '{zero.claims[zero.claims.duplicated()][0]}' has two answers without context")
    drops: list[Score] = []
    for name, setting in settings_by_name.items():
        if name == "zero":
            continue
        score = setting.accuracy
        where = zero.claims.get_indexer(setting.claims)
        was_asked = np.zeros(len(zero.claims), dtype=bool)
        was_asked[where[(where >= 0) & score.used]] = True
        shared = zero.accuracy.used & was_asked
        note = f"on the {int(shared.sum())} claims that have a value in both settings"
        # The paper compares misleading-only with all claims. If both accuracies are over the same claims, the drop
        # does not depend on the difficulty of the claims.
        same = score.restrict((where >= 0) & shared[where]).add_notes(note)
        alone = zero.accuracy.restrict(shared)
        drops += [
            combine_scores(f"drop_{name}", [score, zero.accuracy], operator.sub),
            combine_scores(f"drop_relative_{name}", [score, zero.accuracy], _relative),
            combine_scores(f"drop_same_claims_{name}", [same, alone], operator.sub),
            combine_scores(f"drop_relative_same_claims_{name}", [same, alone], _relative),
            _score_same_answers(f"drop_same_answers_{name}", setting, zero),
        ]
    return drops


def scores(answers: pd.DataFrame) -> list[Score]:
    """Return the accuracy in each setting, followed by the changes in accuracy from `drops`."""
    settings_by_name = settings(answers)
    return [*(setting.accuracy for setting in settings_by_name.values()), *drops(settings_by_name)]


_ORDER = {"zero": 0, "rag": 1, "oracle": 2, "misleading": 3}


def _setting(condition: str) -> str:
    top = _TOP.fullmatch(condition)
    return f"rag_{top[1]}" if top else {"none": "zero"}.get(condition, condition)


def _accuracy(answers: pd.DataFrame) -> tuple[Score, BoolArray]:
    """Return the accuracy over all settings, and a mask of the answers that are not one of the options or
    cannot be read.
    """
    given = encode_labels(column(answers, "label", "answers"), _TRUTH, "answer", fold=True, other=_OUTSIDE)
    gold = encode_labels(column(answers, "gold", "answers"), _TRUTH, "claim verdict")
    status = statuses(answers, ~np.isnan(given))
    off = (given == _OUTSIDE) | mask_unanswered(status)
    correct = np.where(np.isnan(given), np.nan, given == gold)
    # The paper counts an answer outside the options as wrong, and a refusal must not score better than an error.
    correct[off] = 0.0
    # Without a gold verdict, even a missing answer is neither right nor wrong.
    correct[np.isnan(gold)] = np.nan
    return score_values("accuracy", _claims(answers), correct, status, reason="no verdict"), off


def _claims(answers: pd.DataFrame) -> Units:
    """Return the answers, clustered by question or, if no question is given, by claim."""
    # The oracle condition has an answer for each document, and those of one claim are not independent.
    if "question_id" not in answers.columns:
        answers = answers.assign(question_id=column(answers, "item_id", "answers"))
    return units(answers, "answers")


def _relative(score: FloatArray, zero: FloatArray) -> FloatArray:
    return ratio(score - zero, zero)


def _score_same_answers(measure: str, setting: Setting, zero: Setting) -> Score:
    where = zero.claims.get_indexer(setting.claims)
    baseline = np.where(where >= 0, zero.accuracy.rows[where, 0], np.nan)
    score, reason = setting.accuracy, "no answer without context"
    change = score.rows - baseline[:, None]
    return replace(score, measure=measure, rows=change, why=reason, binary=False)


def score_exam(table: pd.DataFrame, gold: pd.Series, gold_roles: pd.Series) -> list[Score]:
    """Return the share of documents with each role, according to a judge's labels in the task `raguard_exam`.

    If there are gold roles, the agreement with them is also returned. `table` has one row per document:
    unit_id, question_id, label, status. `gold` has the gold verdict of each document's claim, and
    `gold_roles` has each document's gold role.
    """
    role = roles(table["label"], gold)
    who = units(table, "exam")
    known = role.notna().to_numpy()
    status = statuses(table, table["label"].notna().to_numpy())
    scores = [
        score_values(
            f"exam_{name}",
            who,
            np.where(known, role == name, np.nan).astype(float),
            status,
            reason="no gold verdict",
        )
        for name in ROLES
    ]
    if gold_roles.notna().any():
        compared = known & gold_roles.notna().to_numpy()
        same = np.where(compared, role.to_numpy() == gold_roles.to_numpy(), np.nan).astype(float)
        scores.append(score_values("exam_agreement_with_gold", who, same, status, reason="no gold role"))
    return scores


Relevant = Literal["associated", "supporting"]


def misleading(k: int, claims: pd.DataFrame, documents: pd.DataFrame, rankings: pd.DataFrame) -> list[Score]:
    """Return the variants of Misleading Retrieval Recall@k (own/owning first), then exposure@k.

    misleading_retrieval_recall@k[W/C]  share of the claims C with at least one misleading document from W among
                                        the first k; see below for W and C
    misleading_exposure@k[W]            mean over all claims of the share of misleading documents from W among the first k retrieved

    W is `own` (the claim's own documents) or `any` (those of any claim). C is `owning` (claims with a
    misleading document of their own) or `all`. A claim without a ranking has no value. Raises BadInput for a
    ranked document that is not in `documents`.
    """
    who, owner, role, claim, document = _join_rankings(k, claims, documents, rankings)
    n = len(who)
    bad = role[document] == "misleading"
    own_misleading = bad & (owner[document] == claim)
    retrieved = counts(claim, n)
    ranked = retrieved > 0
    status = np.where(ranked, 0, NOT_JUDGED_CODE).astype(np.int8)
    owning = np.zeros(n, dtype=bool)
    owning[owner[(role == "misleading") & (owner >= 0)]] = True
    some = {
        "own": np.where(ranked, counts(claim, n, own_misleading) > 0, np.nan),
        "any": np.where(ranked, counts(claim, n, bad) > 0, np.nan),
    }
    scores = []
    # The paper names neither whose documents count nor over which claims; own/owning first, which alone gives its 100 %.
    for over in ("owning", "all"):
        for whose, values in some.items():
            score = score_values(f"misleading_retrieval_recall@{k}[{whose}/{over}]", who, values, status)
            scores.append(score.restrict(owning) if over == "owning" else score)
    for whose, marked in (("own", own_misleading), ("any", bad)):
        exposure = ratio(counts(claim, n, marked), retrieved)
        scores.append(score_values(f"misleading_exposure@{k}[{whose}]", who, exposure, status))
    return scores


def relevance(
    k: int,
    claims: pd.DataFrame,
    documents: pd.DataFrame,
    rankings: pd.DataFrame,
    *,
    relevant: Relevant = "associated",
) -> list[Score]:
    """Return precision, recall, F1 and NDCG at k.

    The relevant documents are all documents of the claim (`associated`), or only the `supporting` ones.
    """
    if relevant not in ("associated", "supporting"):
        raise BadInput(f"unknown relevant documents '{relevant}'; available: associated and supporting")
    role = role_words(column(documents, "role", "documents"))
    grade = (role == "supporting").astype(int) if relevant == "supporting" else 1
    judged = documents.assign(passage_id=documents["document_id"], grade=grade)
    # No document of another claim belongs to this claim.
    queries = claims.assign(unit_id=claims["item_id"])
    note = f"relevant: {relevant} documents"
    return [
        score.rename(f"{relevant}_{score.measure}").add_notes(note)
        for score in retrieval.score_at(k, queries, rankings, judged, complete=True)
    ]


def _join_rankings(
    k: int, claims: pd.DataFrame, documents: pd.DataFrame, rankings: pd.DataFrame
) -> tuple[Units, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the claims, each document's claim and role, and the claim and document at each of the first k
    ranks.

    Claims and documents are given by their positions.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    who = units(claims, "claims", "item_id")
    files = units(documents.drop(columns="question_id", errors="ignore"), "documents", "document_id")
    owner = who.ids.get_indexer(pd.Index(column(documents, "item_id", "documents").to_numpy()))
    role = role_words(column(documents, "role", "documents")).to_numpy()
    claim = retrieval.check_rankings(rankings, who)
    first = rankings["rank"].to_numpy(dtype=np.float64) <= k
    document = positions(rankings["passage_id"][first], files, "rankings", "documents")
    return who, owner, role, claim[first], document
