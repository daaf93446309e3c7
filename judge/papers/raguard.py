"""RAGuard: how much misleading documents lower the accuracy of a fact checker.

Zeng et al., "Worse than Zero-shot? A Fact-Checking Dataset for Evaluating the Robustness of RAG Against
Misleading Retrievals", 2025 (arXiv 2502.16101).

The system under test answers the task `verdict` (without context, and with the top k documents) and the task
`verdict_document` (oracle: one document at a time). The roles of documents are gold labels, or follow from a judge's
labels in the task `raguard_exam`.

Tables (see `judge.scores.columns`):
    answers    one row per answer: unit_id, item_id (the claim), question_id, status,
               condition (none; top:1, top:5, ...; oracle: one associated document at a time; oracle-all; misleading),
               label (the answer), gold (true or false), role (of the document, for oracle)
    claims     item_id, question_id
    documents  document_id, item_id (the claim it belongs to), role
    rankings   item_id, rank, passage_id (a document_id); see `judge.scores.retrieval`
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.papers.engine.paper_study import FAILURES, PaperStudy
from judge.scores import retrieval
from judge.scores.columns import column, counts, encode_labels, mask_unanswered, positions, statuses, units
from judge.scores.compare import combine_scores
from judge.scores.score import NO_ANSWER_CODE, Score, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray
from judge.store import label_rows

ROLES = ("supporting", "misleading", "irrelevant")
_TRUTH = {"true": 1.0, "false": 0.0}
_OUTSIDE = -1.0
_CONDITIONS = {r"^none$": "zero", r"^top:(\d+)$": r"rag_\1", r"^oracle-all$": "oracle_all"}
"""Maps conditions to the names of the paper's settings in measures."""
_NOTHING = dict.fromkeys(("irrelevant", "unrelated", "does not contribute"), _OUTSIDE)
# Documents that gold, or the exam, gives a role: the claim's associated ones.
_HAS_ROLE = f"unit_id IN ({label_rows.units_of_gold('raguard.role')})"
_INCLUDE_EXAM = "to include it: --run JUDGE or --part exam"
FEW = 20
"""The minimum number of claims for using examples. With fewer claims, all claims are needed for the scores."""
Relevant = Literal["associated", "supporting"]


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    gold = study.rows.gold("claim_verdict")
    if not len(gold):
        raise BadInput(
            f"no item in '{study.dataset}' has a gold label 'claim_verdict', which all measures require"
        )
    exam = ranking = None
    judged, has_exam = study.option("roles") == "judge", _has_exam(study)
    if has_exam or (judged and study.part("oracle", "retrieval")):
        exam = _read_exam(study, needed=judged)
    if study.part("rag", "retrieval"):
        ranking = study.ranking(study.option("ranking") or None)
    answers = _answers(study, ranking)
    study.check()
    passages, gold_roles = (
        study.rows.passages(everywhere=True),
        study.rows.gold("raguard.role", "passage", everywhere=True),
    )
    role = passages["passage_id"].map(gold_roles)
    if judged and exam is not None:
        passages, role = exam, roles(exam["label"], exam["item_id"].map(gold))
        study.note("the roles of documents follow from the judge's exam and the gold verdict")
    documents = passages[["item_id", "question_id"]].assign(
        document_id=passages["passage_id"], role=role.astype(object)
    )
    result: list[Score] = []
    if answers:
        # A claim has the same unit in all conditions, but unit ids must be unique in a score.
        table = pd.concat(
            [
                t.assign(condition=name, unit_id=name + " " + t["unit_id"].astype(str))
                for name, t in answers.items()
            ]
        )
        named = documents.dropna(subset="role").set_index("document_id")["role"]
        known = table["passage_id"].map(named) if "passage_id" in table else pd.Series(np.nan, table.index)
        table = table.assign(
            gold=table["item_id"].map(gold), role=known.astype(object).where(known.notna(), None)
        )
        if lacking := int(table["gold"].isna().sum()):
            study.note(f"{lacking} answers have no value, because their claims have no gold verdict")
        _note_outside(study, table)
        result += scores(table.reset_index(drop=True))
    if study.part("retrieval") and ranking is not None:
        result += _retrieval(study, documents, ranking)
    if exam is not None and has_exam:
        result += score_exam(exam, exam["item_id"].map(gold), exam["passage_id"].map(gold_roles))
    return result


def _has_exam(study: PaperStudy) -> bool:
    """Return whether to score the part `exam`. It is left out if the outputs were imported and no judge is named."""
    no_judge = not study.request.models and not any(r.task_id == "raguard_exam" for r in study.judges.runs)
    if study.part("exam") and no_judge and not study.insists("exam") and study.is_imported:
        study.note(
            f"the part exam is left out, because no judge has labelled the documents ({_INCLUDE_EXAM})"
        )
        return False
    return study.part("exam")


def _read_exam(study: PaperStudy, *, needed: bool) -> pd.DataFrame | None:
    """Return a judge's answers in the exam. `needed` is True if roles follow from them.

    The measures of an imported system do not use the exam. So if a pilot labelled only some of the documents, the exam is
    left out with a note, unless it was requested.
    """
    n_steps = len(study.steps)
    exam = study.labels("raguard_exam", columns="passage_id")
    optional = not (needed or study.insists("exam") or study.request.models)
    if len(study.steps) > n_steps and study.is_imported and optional:
        del study.steps[n_steps:]
        study.note(
            f"the part exam is left out, because the judge has labelled only some documents ({_INCLUDE_EXAM})"
        )
        return None
    return exam


def _examples(study: PaperStudy) -> list[str]:
    """Return a true and a false claim. They are shown with every question and are not scored (section 4.1).

    An imported system was not shown these claims, so all of its claims are scored.
    """
    if study.is_imported and not study.request.also_generate:
        return []
    made = study.find_run(("verdict", "verdict_document"))
    # The examples of existing runs are used again, so that conditions differ only in their passages.
    if made is not None:
        if not made.examples:
            study.note(f"run {made.run_id} shows no examples, so no condition shows examples")
        return made.examples
    every, split = (
        study.rows.gold("claim_verdict", everywhere=True),
        study.rows.meta("split", everywhere=True),
    )
    # Claims from the training part are not scored anyway.
    claims = every[every.index.isin(split[split.isin(["train", "training"])].index)]
    if not len(claims) and len(every) < FEW:
        study.note(f"no examples are shown, because there are only {len(every)} claims")
        return []
    claims = claims if len(claims) else every
    # The oracle condition shows each example with a document. The first id, so that the prompt is always the same.
    claims = claims[claims.index.isin(study.rows.passages(everywhere=True)["item_id"])]
    first = {
        verdict: min(map(str, claims.index[claims == verdict]), default="") for verdict in ("true", "false")
    }
    if lacking := next((verdict for verdict, item in first.items() if not item), ""):
        study.note(f"no examples are shown, because no {lacking} claim has a document")
        return []
    return list(first.values())


def _answers(study: PaperStudy, ranking: tuple[str, str] | None) -> dict[str, pd.DataFrame]:
    """Return the system's answers by condition."""
    if not study.part("zero", "rag", "oracle"):
        return {}
    items = _examples(study)
    if items:
        shot = "two-shot" if len(items) == 2 else f"{len(items)}-shot"
        study.note(f"{shot}: {' and '.join(items)} are shown with every question and are not scored")
    examples = ",".join(items)
    made = {"none": study.read_generated("verdict", "none", examples=examples)}
    # Answers may have been imported without a ranking. If not, the ranking is recorded as missing.
    if study.part("rag") and (ranking is not None or not study.steps):
        for k in study.numbers("k"):
            made[f"top:{k}"] = study.read_generated("verdict", f"top:{k}", ranking, examples=examples)
    if study.part("oracle"):
        made["oracle"] = study.on_documents("verdict_document", _HAS_ROLE, examples)
        if study.option("oracle") == "all" or study.find_stored(study.get_tested(), "oracle") is not None:
            # Section 4.3 also shows all associated documents at once.
            made["oracle-all"] = study.read_generated("verdict", "oracle", examples=examples)
    return {name: table for name, table in made.items() if table is not None}


def _note_outside(study: PaperStudy, table: pd.DataFrame) -> None:
    """Add a note on the answers that are not one of the two options. Boards print it too."""
    outside = table[table["status"].isin(FAILURES) & table["label"].isna()]
    if len(outside):
        each = outside["condition"].replace(_CONDITIONS, regex=True).value_counts(sort=False)
        listed = ", ".join(f"{n} in {name}" for name, n in each.items())
        study.note(
            f"{len(outside)} of {len(table)} answers are outside the options and count as wrong: {listed}"
        )


def _retrieval(study: PaperStudy, documents: pd.DataFrame, ranking: tuple[str, str]) -> list[Score]:
    ranked, claims = study.read_ranked(ranking), study.rows.items[["item_id", "question_id"]]
    if foreign := int((~ranked["passage_id"].isin(documents["document_id"])).sum()):
        study.note(f"{foreign} ranked passages have no role, because the requested rows do not include them")
    known = documents.dropna(subset="role")
    # A document without a role stays in the ranking, because the system retrieved it.
    others = ranked["passage_id"][~ranked["passage_id"].isin(known["document_id"])].unique()
    shelf = pd.concat(
        [known, pd.DataFrame({"document_id": others, "item_id": "", "role": "irrelevant"})], ignore_index=True
    )
    relevant: Any = study.option("relevant")
    measured = [
        score
        for k in study.numbers("k")
        for score in (
            *misleading(k, claims, shelf, ranked),
            *relevance(k, claims, shelf, ranked, relevant=relevant),
        )
    ]
    return [score.add_notes(f"ranking: {ranking[0]} ({ranking[1]})") for score in measured]


def roles(exam: pd.Series, gold: pd.Series) -> pd.Series:
    """Return each document's role from a judge's answer in the task `raguard_exam` and the gold verdict of its claim.

    A document is supporting if the answer is the gold verdict, misleading if it is the opposite, and irrelevant if the
    document does not contribute. The role is None without an answer or a verdict.
    """
    answer, truth = (
        encode_labels(exam, _NOTHING | _TRUTH, "exam"),
        encode_labels(gold, _TRUTH, "claim verdict"),
    )
    # For a false claim, the document that says false is supporting: the role compares the answer with gold.
    cases = [answer == truth, answer == 1 - truth, (answer == _OUTSIDE) & (truth >= 0)]
    role = np.array([*ROLES, None], dtype=object)[np.select(cases, [0, 1, 2], 3)]
    return pd.Series(role, index=exam.index, dtype=object)


def role_words(role: pd.Series) -> pd.Series:
    """Return the roles with the paper's words (the data set says `unrelated`). Raises BadInput for an unknown role."""
    words = role.replace({"unrelated": "irrelevant"}).astype(object)
    if len(strange := words[words.notna() & ~words.isin(ROLES)]):
        raise BadInput(f"unknown role '{strange.iloc[0]}'; available: {', '.join(ROLES)}, unrelated")
    return words


@dataclass(frozen=True, eq=False)
class Setting:
    """The accuracy in one setting, and the claim to which each of the setting's answers belongs."""

    accuracy: Score
    claims: pd.Index[Any]


def settings(answers: pd.DataFrame) -> dict[str, Setting]:
    """Return the accuracy in each setting, keyed by the setting: zero, rag_1, rag_5, oracle, misleading.

    A = share of answers that equal the gold verdict. As in the paper, an answer outside the options is wrong. A
    missing answer, and a reply that could not be read, is also wrong. A call that failed is not an answer. If there is
    no condition `misleading`, the setting of this name uses the oracle rows whose document is misleading.
    """
    given = encode_labels(column(answers, "label", "answers"), _TRUTH, "answer", fold=True, other=_OUTSIDE)
    gold = encode_labels(column(answers, "gold", "answers"), _TRUTH, "claim verdict")
    status = statuses(answers, ~np.isnan(given))
    off = (given == _OUTSIDE) | mask_unanswered(status)
    correct = np.where(np.isnan(gold) | (np.isnan(given) & ~off), np.nan, (given == gold) & ~off)
    claims = column(answers, "item_id", "answers")
    # The oracle condition has an answer for each document, and those of one claim are not independent.
    who = units(answers if "question_id" in answers else answers.assign(question_id=claims), "answers")
    every = score_values("accuracy", who, correct, status, reason="no verdict")
    named = column(answers, "condition", "answers").replace(_CONDITIONS, regex=True)
    rows = {name: (named == name).to_numpy() for name in named.unique()}
    if "oracle" in rows and "misleading" not in rows and "role" in answers:
        rows["misleading"] = rows["oracle"] & (role_words(answers["role"]) == "misleading").to_numpy()
    order = ["zero", "rag", "oracle", "misleading", *sorted(rows)]
    made = {}
    for name in sorted(rows, key=lambda name: (order.index(name.split("_")[0]), len(name), name)):
        score = every.restrict(rows[name], f"accuracy_{name}")
        n_missing = int((rows[name] & (status == NO_ANSWER_CODE)).sum())
        n_outside = int((off & rows[name]).sum()) - n_missing
        notes = (
            [f"{n_outside} answers that are outside the options or unreadable count as wrong"]
            if n_outside
            else []
        )
        notes += [f"{n_missing} missing answers count as wrong"] if n_missing else []
        made[name] = Setting(score.add_notes(*notes), pd.Index(claims[rows[name]]))
    return made


def drops(by_name: dict[str, Setting]) -> list[Score]:
    """Return the change in accuracy in each setting, compared with answering without context. Negative is worse.

    drop                       A - A_zero, where A_zero is over all claims, as in the paper
    drop_relative              (A - A_zero) / A_zero
    drop_same_claims           both accuracies over only the claims with a value in both settings; each claim counts
                               once in A_zero, so the drop does not depend on the difficulty of the claims
    drop_relative_same_claims  the relative drop on the same claims
    drop_same_answers          A - A_zero, where A_zero counts a claim as often as it is answered in this setting

    Raises BadInput if a claim has two answers without context.
    """
    if (zero := by_name.get("zero")) is None:
        return []
    if not zero.claims.is_unique:
        raise BadInput(f"claim '{zero.claims[zero.claims.duplicated()][0]}' has two answers without context")
    made: list[Score] = []
    for name, setting in by_name.items():
        if setting is zero:
            continue
        score, where = setting.accuracy, zero.claims.get_indexer(setting.claims)
        shared = zero.accuracy.used & zero.claims.isin(setting.claims[score.used])
        same = score.restrict((where >= 0) & shared[where])
        same = same.add_notes(f"on the {int(shared.sum())} claims that have a value in both settings")
        for middle, first, second in (
            ("", score, zero.accuracy),
            ("same_claims_", same, zero.accuracy.restrict(shared)),
        ):
            made.append(combine_scores(f"drop_{middle}{name}", [first, second], operator.sub))
            made.append(
                combine_scores(f"drop_relative_{middle}{name}", [first, second], lambda a, b: ratio(a - b, b))
            )
        change = score.rows - np.where(where >= 0, zero.accuracy.rows[where, 0], np.nan)[:, None]
        made.append(
            replace(
                score,
                measure=f"drop_same_answers_{name}",
                rows=change,
                why="no answer without context",
                binary=False,
            )
        )
    return made


def scores(answers: pd.DataFrame) -> list[Score]:
    """Return the accuracy in each setting, followed by the changes in accuracy from `drops`."""
    by_name = settings(answers)
    return [*(setting.accuracy for setting in by_name.values()), *drops(by_name)]


def score_exam(table: pd.DataFrame, gold: pd.Series, gold_roles: pd.Series) -> list[Score]:
    """Return the share of documents with each role by a judge's exam, and the agreement with gold roles if there are any.

    `table` has one row per document: unit_id, question_id, label, status.
    """
    role, who = roles(table["label"], gold), units(table, "exam")
    status = statuses(table, table["label"].notna().to_numpy())

    def share(name: str, right: pd.Series, known: BoolArray, reason: str) -> Score:
        return score_values(
            f"exam_{name}", who, np.where(known, right, np.nan).astype(float), status, reason=reason
        )

    known, both = role.notna().to_numpy(), (role.notna() & gold_roles.notna()).to_numpy()
    made = [share(name, role == name, known, "no gold verdict") for name in ROLES]
    return (
        [*made, share("agreement_with_gold", role == gold_roles, both, "no gold role")]
        if gold_roles.notna().any()
        else made
    )


def misleading(k: int, claims: pd.DataFrame, documents: pd.DataFrame, rankings: pd.DataFrame) -> list[Score]:
    """Return the variants of Misleading Retrieval Recall@k (own/owning first), then exposure@k.

    misleading_retrieval_recall@k[W/C]  share of the claims C with at least one misleading document from W among the first k
    misleading_exposure@k[W]            mean over all claims of the share of misleading documents from W among the first k

    W is `own` (the claim's own documents) or `any` (those of any claim). C is `owning` (claims with a misleading
    document of their own) or `all`. The paper names neither; only own/owning can give the 100 % that it reports for the
    oracle task. A claim for which nothing was retrieved has no misleading document, so its value is 0.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    who, files = (
        units(claims, "claims", "item_id"),
        units(documents[["document_id"]], "documents", "document_id"),
    )
    owner = who.ids.get_indexer(pd.Index(column(documents, "item_id", "documents").to_numpy()))
    bad = (role_words(column(documents, "role", "documents")) == "misleading").to_numpy()
    claim, first = retrieval.check_rankings(rankings, who), rankings["rank"].to_numpy(dtype=np.float64) <= k
    claim, document = claim[first], positions(rankings["passage_id"][first], files, "rankings", "documents")
    n, marked = len(who), {"own": bad[document] & (owner[document] == claim), "any": bad[document]}
    retrieved = counts(claim, n)
    owning = np.isin(np.arange(n), owner[bad & (owner >= 0)])

    def recall(whose: str, over: str) -> Score:
        values = (counts(claim, n, marked[whose]) > 0).astype(np.float64)
        score = score_values(f"misleading_retrieval_recall@{k}[{whose}/{over}]", who, values)
        return score.restrict(owning) if over == "owning" else score

    def exposure(whose: str) -> Score:
        return score_values(
            f"misleading_exposure@{k}[{whose}]",
            who,
            np.nan_to_num(ratio(counts(claim, n, marked[whose]), retrieved)),
        )

    return [*(recall(whose, over) for over in ("owning", "all") for whose in marked), *map(exposure, marked)]


def relevance(
    k: int,
    claims: pd.DataFrame,
    documents: pd.DataFrame,
    rankings: pd.DataFrame,
    *,
    relevant: Relevant = "associated",
) -> list[Score]:
    """Return precision, recall, F1 and NDCG at k. Relevant are all documents of the claim (`associated`), or only the
    `supporting` ones.
    """
    if relevant not in ("associated", "supporting"):
        raise BadInput(f"unknown relevant documents '{relevant}'; available: associated and supporting")
    role = role_words(column(documents, "role", "documents"))
    judged = documents.assign(
        passage_id=documents["document_id"],
        grade=1 if relevant == "associated" else (role == relevant).astype(int),
    )
    # No document of another claim belongs to this claim.
    measured = retrieval.score_at(
        k, claims.assign(unit_id=claims["item_id"]), rankings, judged, complete=True
    )
    return [
        s.rename(f"{relevant}_{s.measure}").add_notes(f"relevant: {relevant} documents") for s in measured
    ]
