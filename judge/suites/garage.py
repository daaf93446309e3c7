"""Score a study by GaRAGe: eligibility, factuality, RAF, deflection, attribution. `judge.scores` does the arithmetic.

The scores are for the answers of one system under one condition; human answers have the system name `human`. A
question is answerable unless its gold label `insufficient` is true. Only sentences in answers to answerable
questions are judged, because only these answers are used for factuality.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from judge.errors import BadInput
from judge.store import label_rows
from judge.suites.paper import Option, Paper, Part

if TYPE_CHECKING:
    import pandas as pd

    from judge.scores.score import Score
    from judge.suites.chosen import Run
    from judge.suites.paper_study import PaperStudy
    from judge.suites.queries import System

RELEVANT_TASK = {"answer": "grounding_relevant", "answer+related": "grounding_related"}
_ANSWERABLE = f"item_id NOT IN ({label_rows.units_of_gold('insufficient', 'true')})"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import attribution, garage

    chosen = study.answering("qa_answer", "all")
    cited = "cited_passages" if study.part("attribution") else ""
    answers = study.read_answers(chosen, cited)
    answers["answerable"] = _answerable(study, answers)
    full = relevant = citations = None
    if study.part("eligibility", "factuality", "raf"):
        _join(answers, study.labels("eligibility", chosen, only=_ANSWERABLE), "eligibility")
    if study.part("grounding", "factuality", "relevant", "raf", "judged_attribution"):
        full = _sentences(study.labels("grounding", chosen, only=_ANSWERABLE))
    if study.part("relevant", "raf") and _has_relevant(study):
        task, shown = _relevant_task(study)
        answers["n_relevant"] = answers["item_id"].map(_relevant_counts(study)).to_numpy(dtype=float)
        relevant = _sentences(study.labels(task, chosen, only=_ANSWERABLE, purpose=shown))
    if study.part("deflection"):
        _join(answers, study.labels("deflection", chosen), "deflection")
    if study.part("judged_attribution"):
        citations = study.labels("citation_each", chosen, only=_ANSWERABLE)
        citations = citations.assign(sentence_id=study.rows.sentences_of(citations))
    study.check()
    scores = _factuality(study, answers, full, relevant)
    if study.part("deflection"):
        scores += garage.deflection(answers)
    if study.part("attribution"):
        scores += _score_citations(study, answers, chosen)
    if citations is not None and full is not None:
        needed = full[full["label"] != "no_rad"]
        needed = needed.assign(invented=study.rows.n_invented(chosen, needed["unit_id"]))
        needed_citations = citations[citations["sentence_id"].isin(needed["unit_id"])]
        # A sentence that needs no attribution (no_rad in FACTS) has no citation that could be right or wrong.
        exempt = full[full["label"] == "no_rad"]["unit_id"]
        left_out = int(
            citations["sentence_id"].isin(exempt).sum() + study.rows.n_invented(chosen, exempt).sum()
        )
        if left_out:
            study.note(
                f"judged attribution leaves out {left_out} citations in sentences that need no citation (no_rad); "
                "the shares of support labels include those of these citations whose passages exist"
            )
        answerable = answers[answers["answerable"]]
        scores += attribution.score_judged_citations(answerable, needed, needed_citations)
        whole = citations.rename(columns={"answer_unit": "answer_id"})
        scores += attribution.support_rates(answerable, whole)
    if full is not None and study.part("grounding"):
        scores += garage.sentence_rates(answers, full)
    return scores


def _join(answers: pd.DataFrame, judged: pd.DataFrame, field: str) -> None:
    """Add each answer's label and status to `answers`, as the columns `{field}` and `{field}_status`."""
    by_unit = judged.set_index("unit_id")
    answers[field] = by_unit["label"].reindex(answers["unit_id"]).to_numpy()
    answers[f"{field}_status"] = by_unit["status"].reindex(answers["unit_id"]).to_numpy()


def _sentences(judged: pd.DataFrame) -> pd.DataFrame:
    return judged.drop(columns=["item_id", "question_id"]).rename(columns={"answer_unit": "answer_id"})


def _answerable(study: PaperStudy, answers: pd.DataFrame) -> Any:
    """Return a mask of the answers to answerable questions: those whose gold label `insufficient` is not true."""
    gold = study.rows.gold("insufficient")
    if not len(gold):
        study.note("there is no gold label 'insufficient', so all questions are treated as answerable")
        return True
    insufficient = answers["item_id"].map(gold)
    unknown = set(insufficient.dropna()) - {"true", "false"}
    if unknown:
        raise BadInput(f"the gold label 'insufficient' must be true or false, not '{min(unknown)}'")
    if insufficient.isna().any():
        n = int(insufficient.isna().sum())
        study.note(
            f"{n} of {len(insufficient)} answers are to questions without a gold label 'insufficient', which are treated as answerable"
        )
    return (insufficient != "true").to_numpy()


def _relevant_task(study: PaperStudy) -> tuple[str, dict[str, str]]:
    """Return the task that compares sentences with relevant passages, and the purpose of the run to use."""
    kind = study.option("relevant-set")
    # The judge sees different passages if relevance comes from a different source, so these labels are a separate run.
    if kind == "marked":
        return "grounding_relevant", {"relevant": "marked"}
    if study.option("relevance") == "gold":
        return RELEVANT_TASK[kind], {}
    passage_labels(study)
    study.check()
    if study.last_run is None:
        raise BadInput("no judge has run garage_relevance, which determines the relevant passages")
    return "grounding_relevant", {"relevant": f"{study.last_run.run_id}:{kind}"}


def reads(run: Run) -> dict[str, str]:
    """Return the values of --relevant-set and --relevance with which a score uses this run."""
    if run.task_id == "grounding_related":
        return {"relevant-set": "answer+related"}
    shown = run.options.get("relevant")
    if not isinstance(shown, str):
        return {}
    if shown == "marked":
        return {"relevant-set": "marked"}
    return {"relevant-set": shown.partition(":")[2], "relevance": "judge"}


def passage_labels(study: PaperStudy) -> pd.DataFrame:
    """Return a table of all passages: item_id, question_id, passage_id and label (the relevance class)."""
    if study.option("relevance") == "judge":
        return study.labels("garage_relevance", columns="passage_id")
    passages = study.rows.passages()
    label = passages["passage_id"].map(study.rows.gold("relevance", "passage"))
    return passages.assign(label=label.astype(object).where(label.notna(), None))


def _relevant_counts(study: PaperStudy) -> pd.Series:
    """Return the number of relevant passages of each item.

    The number is nan if no passage of the item has a gold label, or if a judge's label is missing.
    """
    import numpy as np
    import pandas as pd

    from judge.scores import garage

    chosen: garage.RelevantSet = study.option("relevant-set")  # type: ignore[assignment]
    table = study.rows.passages() if chosen == "marked" else passage_labels(study)
    table = _read_relevant(study, table) if chosen == "marked" else table
    relevant = pd.Series(garage.relevant_passages(table, chosen)).groupby(table["item_id"].to_numpy())
    n, labelled, size = relevant.sum(), relevant.count(), relevant.size()
    # A passage without a gold label is not relevant; a passage without a judge's label may be relevant.
    known = labelled == size if study.option("relevance") == "judge" else labelled > 0
    n_relevant = n.where((n > 0) | known, np.nan)
    # An item without passages has no relevant ones; for an item that was shown as an example, the number is unknown.
    items = study.rows.items["item_id"]
    return n_relevant.reindex(items).where(items.isin(study.rows.passages()["item_id"]).to_numpy(), 0.0)


def _read_relevant(study: PaperStudy, passages: pd.DataFrame) -> pd.DataFrame:
    marks = passages["passage_id"].map(study.rows.meta("evidence_relevant", "passages"))
    return passages.assign(relevant=marks.map({"YES": True, "NO": False}).astype(object))


def _has_relevant(study: PaperStudy) -> bool:
    if study.option("relevance") == "judge" or study.option("relevant-set") == "marked":
        return True
    if study.rows.has_gold("relevance", "passage"):
        return True
    if study.insists("relevant") or study.insists("raf"):
        raise BadInput(f"no passage in '{study.dataset}' has a gold label 'relevance', which RAF requires")
    study.note("no passage has a gold label 'relevance', so RAF is left out")
    return False


_OF_PART = {
    "eligibility": "eligibility",
    "unadjusted_factuality": "grounding",
    "factuality": "factuality",
    "unadjusted_raf": "relevant",
    "raf": "raf",
    "over_summarisation_gap": "raf",
}


def _factuality(
    study: PaperStudy, answers: pd.DataFrame, full: pd.DataFrame | None, relevant: pd.DataFrame | None
) -> list[Score]:
    from judge.scores import garage

    if relevant is not None and len(relevant) and not study.of_people and not relevant["label"].notna().any():
        # RAF would be computed only from answers that need no label, which are not the answers of factuality.
        study.note("no sentence is judged against the relevant passages, so RAF is left out")
        relevant = None
    table = answers.copy()
    # Answers are divided into sentences when they are stored, so an answer without sentences is empty.
    table["n_sentences"] = table["unit_id"].map(study.rows.counts("sentence")).fillna(0)
    # `garage.factuality` needs the column. Measures of parts that were not requested are dropped below.
    if "eligibility" not in table:
        table["eligibility"] = None
    scores = garage.factuality(
        table,
        full,
        relevant,
        unparsed=study.option("unparsed"),  # type: ignore[arg-type]
        relevant_set=study.option("relevant-set"),  # type: ignore[arg-type]
        paired=not study.of_people,
    )
    return [score for score in scores if study.part(_OF_PART[score.measure])]


def _score_citations(study: PaperStudy, answers: pd.DataFrame, chosen: System) -> list[Score]:
    """Compare the citations in the answers with reference citations.

    These are the citations in the human answers or, if there are none, the passages that the data set marks
    as cited.
    """
    from judge.scores import attribution

    cited_of: Mapping[str, list[str]] = study.rows.human_citations()
    whose = "the human answer" if cited_of else "evidence_cited"
    # GaRAGe's files mark the passages that the human answer cites (evidence_cited); other data sets contain the answer.
    cited_of = cited_of or _read_marked(study)
    if not cited_of:
        reason = f"'{study.dataset}' has neither human answers nor passages marked as cited"
        if study.insists("attribution"):
            raise BadInput(f"{reason}: {study.import_words('FILE', '--system', 'human')}")
        study.note(f"{reason}, so attribution is left out")
        return []
    study.note(f"attribution: citations are compared with those of {whose}")
    table = answers.copy()
    table["cited"] = [json.loads(text) if isinstance(text, str) else [] for text in table["cited_passages"]]
    false = study.rows.read_invented(chosen).groupby("answer_unit")["names"].sum()
    table["invented"] = table["unit_id"].map(false).astype(object)
    table["reference_cited"] = (
        table["item_id"].map(cited_of).astype(object).where(table["item_id"].isin(cited_of), None)
    )
    return attribution.score_citations(table)


def _read_marked(study: PaperStudy) -> Mapping[str, list[str]]:
    marks = study.rows.meta("evidence_cited", "passages")
    owner = study.rows.passages().set_index("passage_id")["item_id"]
    # If all marks of an item are NO, its human answer cites nothing; without marks, the citations are unknown.
    cited: dict[str, list[str]] = {item: [] for item in owner.reindex(marks.dropna().index).unique()}
    for passage, item in owner.reindex(marks[marks == "YES"].index).items():
        cited[item].append(str(passage))
    return cited


def density(study: PaperStudy) -> Mapping[Any, Any]:
    """Return the density of each question (low, medium or high), which is based on the share of its passages
    that are relevant.
    """
    from judge.scores import garage

    table = passage_labels(study)
    if study.option("relevant-set") == "marked":
        table = _read_relevant(study, table)
    named = garage.density(table, study.option("relevant-set"))  # type: ignore[arg-type]
    questions = table.drop_duplicates("item_id").set_index("item_id")["question_id"]
    return dict(zip(questions.reindex(named.index), named, strict=True))


def combine_judges(by_judge: Mapping[str, list[Score]]) -> list[Score]:
    """Aggregate several judges by the rule of FACTS.

    An answer is ineligible only if all judges label it so; factuality is the mean over judges.
    """
    from judge.scores import facts
    from judge.scores.compare import combine_scores

    scores: list[Score] = []
    for measure, grounded in (("factuality", "unadjusted_factuality"), ("raf", "unadjusted_raf")):
        pairs = {}
        for judge, scores_of_judge in by_judge.items():
            named = {score.measure: score for score in scores_of_judge}
            if "eligibility" in named and grounded in named:
                pairs[judge] = named["eligibility"], named[grounded]
        # The rule needs eligibility labels by every judge; otherwise the plain mean is used.
        if len(pairs) == len(by_judge):
            each = facts.several(pairs)
            scores += [
                s.rename(s.measure.replace("factuality", measure))
                for s in each
                if measure == "factuality" or "ineligible" not in s.measure
            ]
    named = {score.measure: score for score in scores}
    if {"factuality", "raf"} <= named.keys():
        both = named["factuality"], named["raf"]
        scores.append(combine_scores("over_summarisation_gap", both, lambda a, b: a - b))
    return scores


PAPER = Paper(
    name="garage",
    abbreviations=("raf",),
    title="GaRAGe (arXiv 2506.07671): factuality, relevance-aware factuality, deflection, attribution",
    compute_scores=compute_scores,
    lower=(
        "deflection_false_positive_rate",
        "over_summarisation_gap",
        "*invented_share",
        "sentence_unsupported",
        "sentence_contradictory",
        "citation_none",
        "*ineligible*",
    ),
    neutral=("sentence_no_rad", "citation_partial"),
    main=(
        "eligibility",
        "factuality",
        "raf",
        "deflection_*_rate",
        "attribution_*_micro",
        "judged_attribution_f1_micro",
    ),
    reads=reads,
    parts=(
        Part("eligibility", ("eligibility",), "share of answers that fulfil the user's request"),
        Part(
            "grounding", ("grounding",), "unadjusted factuality, and the share of sentences with each label"
        ),
        Part("factuality", ("eligibility", "grounding"), "share of answers that are eligible and grounded"),
        Part(
            "relevant",
            ("grounding", "grounding_relevant"),
            "unadjusted RAF: share of answers that are grounded in relevant passages",
            ("grounding_related",),
        ),
        Part(
            "raf",
            ("eligibility", "grounding", "grounding_relevant"),
            "RAF: share of answers that are eligible and grounded in relevant passages; over-summarisation gap",
            ("grounding_related",),
        ),
        Part("deflection", ("deflection",), "true and false positive rates of declining to answer"),
        Part("attribution", (), "precision and recall of cited passages, compared with the human answer"),
        Part(
            "judged_attribution",
            ("grounding", "citation_each"),
            "precision and recall of citations, each judged separately",
        ),
    ),
    options=(
        Option(
            "relevant-set",
            "answer",
            "Passages to treat as relevant for RAF.",
            ("answer", "answer+related", "marked"),
        ),
        Option("relevance", "gold", "Source of the passage labels: gold or a judge.", ("gold", "judge")),
        Option(
            "unparsed",
            "unscored",
            "Treat a reply without a verdict as missing (unscored), or follow the rule of FACTS (facts).",
            ("unscored", "facts"),
        ),
    ),
    strata={"density": density},
    several=combine_judges,
)
