"""MIRAGE: does the system still use the oracle passage if noise passages are shown with it?

Park et al., "MIRAGE: A Metric-Intensive Benchmark for Retrieval-Augmented Generation Evaluation", 2025 (arXiv
2504.17137) and its repository. The system answers the task `mirage_answer` without context, with the oracle
passage, and with the mixed context. An answer scores 1 if it contains a reference answer (MIRAGE's exact match), and
0 if it does not. For retrieval measures see `judge.scores.retrieval.score_at`, which supports both ideal orders for
NDCG.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from judge.errors import BadInput, UsageError
from judge.papers.engine.paper_study import PaperStudy
from judge.scores import retrieval
from judge.scores.columns import column, flags, mask_unanswered, statuses, units
from judge.scores.score import (
    NOT_JUDGED,
    SHARE,
    STATUSES,
    Score,
    StatusArray,
    score_values,
    share,
)
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray

TASK = "mirage_answer"


DEPTHS = (1, 3, 5)
"""The depths k of the retrieval measures in the paper."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    mixed = study.option("mixed")
    # `retrieved-K` is the name of the condition in imported outputs.
    retrieved = re.fullmatch(r"retrieved[:-]([1-9]\d*)", mixed)
    if mixed != "fixed5" and not retrieved:
        raise UsageError(f"--mixed must be fixed5 or retrieved:K, not '{mixed}'")
    ranking = None
    # Without any ranking the retrieval part is left out, unless it was requested by name.
    if retrieved or (study.part("retrieval") and (study.insists("retrieval") or study.rows.rankings())):
        ranking = study.ranking(study.option("ranking") or None)
    by_condition: dict[str, pd.DataFrame] = {}
    lacking: list[str] = []
    if study.part("adaptability"):
        tables = {"base": study.read_generated(TASK, "none"), "oracle": study.read_generated(TASK, "oracle")}
        if not retrieved:
            tables["mixed"] = study.read_generated(TASK, "fixed5")
            if tables["mixed"] is None:
                _note_retrieved(study)
        elif ranking is not None or not study.steps:
            tables["mixed"] = study.read_generated(TASK, f"top:{retrieved[1]}", ranking)
        by_condition = {name: table for name, table in tables.items() if table is not None}
        lacking = [name for name in CONDITIONS if name not in by_condition]
    support = None
    if study.part("retrieval") and ranking is not None and study.option("support") == "judge":
        support = study.labels("mirage_support", columns="passage_id")
    study.check()
    scores: list[Score] = []
    if by_condition:
        scores += _adaptability(_correct(study, by_condition), lacking, mixed.replace("-", ":"))
    if study.part("retrieval") and ranking is not None:
        scores += _retrieval(study, ranking, support)
    return scores


def _adaptability(tables: dict[str, pd.DataFrame], lacking: list[str], mixed: str) -> list[Score]:
    """Return the adaptability measures, and the accuracy and token F1 of each condition.

    If there are no outputs under one of the conditions, only the measures of the other conditions have values.
    """
    # Another condition's table replaces each missing one, so that all measures are listed; their values are then removed.
    any_table = next(iter(tables.values()))
    whole = {name: tables.get(name, any_table) for name in CONDITIONS}
    result = adaptability(align_conditions(**whole), mixed)
    if lacking:
        result = [score.drop_values(f"no output under {' and '.join(lacking)}") for score in result]
    for measure in ("accuracy", "token_f1"):
        for name, table in whole.items():
            score = score_alone(table, name)[measure]
            result.append(score if name in tables else score.drop_values(f"no output under {name}"))
    return result


def _note_retrieved(study: PaperStudy) -> None:
    """If the system has outputs under a condition `retrieved-K`, note how to score them with --mixed."""
    system = study.get_tested()
    for system_output in study.rows.systems():
        if system_output.system == system and re.fullmatch(r"retrieved-[1-9]\d*", system_output.condition):
            study.note(
                f"{system} has outputs under '{system_output.condition}'; to score them as the mixed context: --mixed {system_output.condition}"
            )


def _correct(study: PaperStudy, by_condition: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return a table of answers for each condition, with the columns `correct` (1 for an exact match, else 0) and `f1`."""
    aliases = study.rows.column("reference_answers").map(json.loads, na_action="ignore")
    if not len(aliases):
        raise BadInput(f"no item in '{study.dataset}' has reference answers, which exact match requires")
    tables = {}
    for name, table in by_condition.items():
        wanted = [a if isinstance(a, list) else None for a in table["item_id"].map(aliases)]
        hits = exact_match(table["label"], wanted)
        made = table.assign(correct=hits, f1=token_f1(table["label"], wanted))
        # Without a reference answer, neither an answer nor a missing answer can be scored.
        made.loc[[not a for a in wanted], "status"] = NOT_JUDGED
        tables[name] = made
    study.note("exact match: an answer is correct if it contains a reference answer or one of its aliases")
    return tables


def _retrieval(study: PaperStudy, ranking: tuple[str, str], support: pd.DataFrame | None) -> list[Score]:

    passages = study.rows.passages()
    if support is None:
        label = passages["passage_id"].map(study.rows.gold("support", "passage"))
        relevance = passages.assign(label=label)[["item_id", "passage_id", "label"]]
    else:
        relevance = support[["item_id", "passage_id", "label"]]
    if not relevance["label"].notna().any():
        reason = f"no passage in '{study.dataset}' has a gold label 'support'"
        if study.insists("retrieval"):
            raise BadInput(f"{reason}: try --support judge")
        study.note(f"{reason}, so the retrieval measures are left out")
        return []
    grade = relevance["label"].map({"supported": 1, "not_supported": 0})
    queries = study.rows.items[["item_id", "question_id"]].assign(unit_id=study.rows.items["item_id"])
    judged = relevance.assign(grade=grade.astype(object).where(grade.notna(), None))
    ranked = study.read_ranked(ranking)
    note = f"ranking: {ranking[0]} ({ranking[1]}); relevant: {study.option('support')} support labels"
    return [s.add_notes(note) for k in DEPTHS for s in retrieval.score_at(k, queries, ranked, judged)]


CELLS = (
    "noise_vulnerability",
    "context_acceptability",
    "context_insensitivity",
    "context_misinterpretation",
)


CONDITIONS = ("base", "oracle", "mixed")


def exact_match(
    predictions: Iterable[str | None],
    answers: Iterable[Sequence[str] | None],
) -> FloatArray:
    """Return 1 or 0 for each prediction, or nan if the prediction or its list of aliases is None or empty.

    The value is 1 if any alias is a substring of the prediction. This is the loose exact match that the paper's
    metrics use. Both sides are lower-cased, without other normalisation. An empty alias is a substring of every
    string and is ignored.
    """
    matches = [
        float(any(alias in text for alias in aliases)) if aliases else np.nan
        for text, aliases in _lower_case(predictions, answers)
    ]
    return np.array(matches, dtype=np.float64)


def token_f1(predictions: Iterable[str | None], answers: Iterable[Sequence[str] | None]) -> FloatArray:
    """Return each prediction's token-overlap F1 with the best-matching alias. It is nan in the same cases as in
    `exact_match`.

    Tokens are lower-cased and split at whitespace. A token counts as often as it occurs on both sides. F1 = 2PR
    / (P + R), or 0 without overlap. Punctuation is not removed (as in the repository's token F1 for extractive
    QA).
    """
    f1_scores = []
    for text, aliases in _lower_case(predictions, answers):
        tokens = Counter(text.split())
        # 2PR / (P + R) = 2 * overlap / (tokens of the prediction + tokens of the alias).
        each = [
            2 * (tokens & alias).total() / (tokens.total() + alias.total())
            for alias in (Counter(alias.split()) for alias in aliases if alias.strip())
        ]
        f1_scores.append(max(each, default=np.nan))
    return np.array(f1_scores, dtype=np.float64)


def _lower_case(
    predictions: Iterable[str | None], answers: Iterable[Sequence[str] | None]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each prediction with its aliases, both in lower case. If the prediction is missing, both are empty.

    Raises BadInput if the aliases are a string instead of a list.
    """
    for prediction, aliases in zip(predictions, answers, strict=True):
        # A string is a sequence of letters, and nearly every prediction contains one of them.
        if isinstance(aliases, str):
            raise BadInput(f"answers must be lists of aliases, but {aliases!r} is a string")
        # The paper lower-cases and does nothing else. An empty alias is a substring of every text.
        names = [alias.lower() for alias in aliases or () if alias]
        if isinstance(prediction, str):
            yield prediction.lower(), names
        else:
            yield "", []


def align_conditions(base: pd.DataFrame, oracle: pd.DataFrame, mixed: pd.DataFrame) -> pd.DataFrame:
    """Join the tables of the three conditions by question, never by position.

    Each table has unit_id (the question), correct (1 / 0 / None) and, optionally, question_id, status and f1
    (token F1). The result has unit_id, question_id, base, oracle, mixed, base_status, ... and base_f1, ...; a
    question that is missing from a table counts as not judged in that condition.
    """
    groups: dict[object, object] = {}
    for table, name in zip((base, oracle, mixed), CONDITIONS, strict=True):
        who = units(table, name)
        groups |= dict(zip(who.ids, who.questions[who.clusters], strict=True))
    ids = pd.Index(list(groups))
    rows = pd.DataFrame({"unit_id": ids, "question_id": list(groups.values())})
    for table, name in zip((base, oracle, mixed), CONDITIONS, strict=True):
        # By id, never by position: the conditions may lack different questions.
        where = units(table, name).ids.get_indexer(ids)
        correct = flags(column(table, "correct", name), name)
        status = statuses(table, ~np.isnan(correct))
        rows[name] = np.where(where >= 0, correct[where], np.nan)
        rows[f"{name}_status"] = [STATUSES[i] for i in np.where(where >= 0, status[where], len(STATUSES) - 1)]
    return rows


def adaptability(table: pd.DataFrame, mixed_context: str = "fixed5") -> list[Score]:
    """Return the shares of MIRAGE's four cells, and their total.

    Only the N questions that were judged in all three conditions are used.

    table: unit_id, question_id, base, oracle, mixed (1 / 0 / None), base_status, ... (optional). With b, o, m of a question:
        noise_vulnerability        #(o = 1, m = 0) / N
        context_acceptability      #(o = 1, m = 1) / N
        context_insensitivity      #(b = 0, o = 0) / N
        context_misinterpretation  #(b = 1, o = 0) / N
        total                      -NV + CA - CI - CM (as in MIRAGE's repository)

    Each question is in one cell, so the four shares add up to 1, and NV + CA is the oracle accuracy on these questions. A
    question counts as wrong if the system refused to answer it, gave no answer, or gave an answer that cannot
    be read. `mixed_context` is `fixed5` (the question's five chunks, table 3) or `retrieved:K` (a retriever's
    top k, table 1), and appears in a note.
    """
    if not re.fullmatch(r"fixed5|retrieved:[1-9]\d*", mixed_context):
        raise BadInput(f"the mixed context must be fixed5 or retrieved:K, not '{mixed_context}'")
    who = units(table, "answers")
    answered = [_failures_wrong(table, name) for name in CONDITIONS]
    base, oracle, mixed = (correct for correct, _ in answered)
    cells = [
        (oracle == 1) & (mixed == 0),
        (oracle == 1) & (mixed == 1),
        (oracle == 0) & (base == 0),
        (oracle == 0) & (base == 1),
    ]
    rows = np.column_stack(cells).astype(np.float64)
    # The four cells add up to 1 only over questions with all three conditions.
    rows[np.isnan(base + oracle + mixed)] = np.nan
    status = np.asarray(np.maximum.reduce([status for _, status in answered]), dtype=np.int8)
    note = (f"mixed context: {mixed_context}",)
    shares = [
        Score(name, who, rows, share(i), status, binary=True, notes=note) for i, name in enumerate(CELLS)
    ]
    return [*shares, Score("total", who, rows, _total, status, notes=note)]


def score_alone(table: pd.DataFrame, condition: str) -> dict[str, Score]:
    """Return the accuracy and the mean token F1 of one condition, over all questions in `table`.

    They do not depend on the other conditions, so the base accuracy is the same with every retriever. If nothing is
    missing, all measures have the same questions.

    table: unit_id, question_id, correct, status and f1.
    """
    made = table.rename(columns={"correct": condition, "status": f"{condition}_status"})
    who = units(made, condition)
    correct, status = _failures_wrong(made, condition)
    # A missing answer shares no token with any alias.
    overlap = np.where(np.isnan(correct), np.nan, np.nan_to_num(table["f1"].to_numpy(dtype=np.float64)))
    return {
        "accuracy": score_values(f"accuracy_{condition}", who, correct, status),
        "token_f1": score_values(f"token_f1_{condition}", who, overlap, status, bounds=SHARE),
    }


def _failures_wrong(table: pd.DataFrame, name: str) -> tuple[FloatArray, StatusArray]:
    """Return 1, 0 or nan for each question in one condition, with its status. A question that the system did
    not answer counts as wrong.
    """
    correct = flags(column(table, name, "answers"), name)
    status = statuses(table, ~np.isnan(correct), f"{name}_status")
    # A question that the system did not answer is wrong. A call that failed is missing data, not the system's fault.
    failed = mask_unanswered(status)
    return np.where(failed, 0.0, correct), np.where(failed, 0, status).astype(np.int8)


def _total(sums: FloatArray) -> FloatArray:
    return ratio(sums[:, 1], sums[:, -1]) - ratio(sums[:, 0] + sums[:, 2] + sums[:, 3], sums[:, -1])
