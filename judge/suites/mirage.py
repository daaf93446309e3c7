"""Score a study by MIRAGE: does the system still use the oracle passage when noise passages are also shown?

The system answers the task `mirage_answer` without context, with the oracle passage, and with the mixed
context. An answer scores 1 if it contains a reference answer (MIRAGE's exact match), and 0 if it does not.
`judge.scores.mirage` and `judge.scores.retrieval` do the arithmetic.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from judge.errors import BadInput, UsageError
from judge.suites.paper import RANKING, Option, Paper, Part

if TYPE_CHECKING:
    import pandas as pd

    from judge.scores.score import Score
    from judge.suites.paper_study import PaperStudy


TASK = "mirage_answer"
DEPTHS = (1, 3, 5)
"""The depths k of the retrieval measures in the paper."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import mirage

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
        lacking = [name for name in mirage.CONDITIONS if name not in by_condition]
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
    """Return the adaptability measures.

    If there are no outputs under one of the conditions, only measures that are computed from a single
    condition have values.
    """
    from judge.scores import mirage

    if not lacking:
        return mirage.adaptability(mirage.align_conditions(**tables), mixed)
    # Another condition's table replaces each missing one, so that all measures are listed; their values are then removed.
    any_table = next(iter(tables.values()))
    whole = {name: tables.get(name, any_table) for name in mirage.CONDITIONS}
    reason = f"no output under {' and '.join(lacking)}"
    none = [
        score.drop_values(reason) for score in mirage.adaptability(mirage.align_conditions(**whole), mixed)
    ]
    there = {score.measure: score for name in tables for score in mirage.score_alone(tables[name], name)}
    return [there.get(score.measure, score) for score in none]


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
    from judge.scores import mirage
    from judge.scores.score import NOT_JUDGED

    aliases = study.rows.column("reference_answers").map(json.loads, na_action="ignore")
    if not len(aliases):
        raise BadInput(f"no item in '{study.dataset}' has reference answers, which exact match requires")
    tables = {}
    for name, table in by_condition.items():
        wanted = [a if isinstance(a, list) else None for a in table["item_id"].map(aliases)]
        hits = mirage.exact_match(table["label"], wanted)
        made = table.assign(correct=hits, f1=mirage.token_f1(table["label"], wanted))
        # Without a reference answer, neither an answer nor a missing answer can be scored.
        made.loc[[not a for a in wanted], "status"] = NOT_JUDGED
        tables[name] = made
    study.note("exact match: an answer is correct if it contains a reference answer or one of its aliases")
    return tables


def _retrieval(study: PaperStudy, ranking: tuple[str, str], support: pd.DataFrame | None) -> list[Score]:
    from judge.scores import retrieval

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
    ranked = study.rows.read_ranked(ranking)
    note = f"ranking: {ranking[0]} ({ranking[1]}); relevant: {study.option('support')} support labels"
    return [s.add_notes(note) for k in DEPTHS for s in retrieval.score_at(k, queries, ranked, judged)]


PAPER = Paper(
    name="mirage",
    title="MIRAGE (arXiv 2504.17137): answers without context, with the oracle passage, and with noise",
    compute_scores=compute_scores,
    lower=("noise_vulnerability", "context_insensitivity", "context_misinterpretation"),
    parts=(
        Part(
            "adaptability",
            (TASK,),
            "noise vulnerability, context acceptability, insensitivity, misinterpretation; token F1",
        ),
        Part("retrieval", (), "precision, recall, F1 and NDCG of a ranking"),
    ),
    options=(
        Option("mixed", "fixed5", "Passages in the mixed context: fixed5 or retrieved:K."),
        Option(
            "support", "gold", "Source of the passages' support labels: gold or a judge.", ("gold", "judge")
        ),
        RANKING,
    ),
    is_judged=False,
)
