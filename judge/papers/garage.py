"""GaRAGe: is the answer factual, is it supported by the relevant passages, and does the system decline when it
should?

Sorodoc et al., "GaRAGe: A Benchmark with Grounding Annotations for RAG Evaluation", 2025 (arXiv 2506.07671); the
judge follows FACTS Grounding (arXiv 2501.03200). Attribution is in `judge.scores.attribution`, and the rule for
several judges is in `judge.scores.facts`.

The scores are for the answers of one system under one condition; human answers have the system name `human`. A
question is answerable unless its gold label `insufficient` is true. Only sentences in answers to answerable
questions are judged, because only these answers are used for factuality.

Tables (see `judge.scores.columns`):
    answers    unit_id, question_id, answerable (bool), eligibility, deflection,
               answered (optional; False: empty or missing),
               n_sentences (optional; 0: an empty answer; if it exceeds the number of rows of sentences, some
               sentences were not judged),
               n_relevant (optional: the number of relevant passages of the question),
               eligibility_status and deflection_status (optional)
    full       one row per sentence, judged against all passages: unit_id, answer_id, label, status
    relevant   the same, judged against the relevant passages only
    passages   unit_id, item_id, label (one of CLASSES), relevant (optional: evidence_relevant as bool)

For published results, see `judge.papers.engine.published`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.papers.engine.chosen import Run
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.queries import System
from judge.scores import attribution, facts
from judge.scores.columns import Parts, column, empty, encode_labels, flags, mask_replied, statuses, units
from judge.scores.compare import combine_scores
from judge.scores.score import NOT_JUDGED_CODE, STATUSES, Score, StatusArray, Units, score_values, share
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import label_rows
from judge.types import Status

RELEVANT_TASK = {"answer": "grounding_relevant", "answer+related": "grounding_related"}


_ANSWERABLE = f"item_id NOT IN ({label_rows.units_of_gold('insufficient', 'true')})"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    chosen = study.answering("qa_answer", "all")
    cited = "cited_passages" if study.part("attribution") else ""
    answers = study.read_answers(chosen, cited)
    answers["answerable"] = _read_answerable(study, answers)
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
        scores += deflection(answers)
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
        scores += sentence_rates(answers, full)
    return scores


def _join(answers: pd.DataFrame, judged: pd.DataFrame, field: str) -> None:
    """Add each answer's label and status to `answers`, as the columns `{field}` and `{field}_status`."""
    by_unit = judged.set_index("unit_id")
    answers[field] = by_unit["label"].reindex(answers["unit_id"]).to_numpy()
    answers[f"{field}_status"] = by_unit["status"].reindex(answers["unit_id"]).to_numpy()


def _sentences(judged: pd.DataFrame) -> pd.DataFrame:
    return judged.drop(columns=["item_id", "question_id"]).rename(columns={"answer_unit": "answer_id"})


def _read_answerable(study: PaperStudy, answers: pd.DataFrame) -> Any:
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
    chosen: RelevantSet = study.option("relevant-set")  # type: ignore[assignment]
    table = study.rows.passages() if chosen == "marked" else passage_labels(study)
    table = _read_relevant(study, table) if chosen == "marked" else table
    relevant = pd.Series(relevant_passages(table, chosen)).groupby(table["item_id"].to_numpy())
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
    "contradictory_labels": "relevant",
}


def _factuality(
    study: PaperStudy, answers: pd.DataFrame, full: pd.DataFrame | None, relevant: pd.DataFrame | None
) -> list[Score]:

    if relevant is not None and len(relevant) and not study.of_people and not relevant["label"].notna().any():
        # RAF would be computed only from answers that need no label, which are not the answers of factuality.
        study.note("no sentence is judged against the relevant passages, so RAF is left out")
        relevant = None
    table = answers.copy()
    # Answers are divided into sentences when they are stored, so an answer without sentences is empty.
    table["n_sentences"] = table["unit_id"].map(study.rows.counts("sentence")).fillna(0)
    # `factuality` needs the column. Measures of parts that were not requested are dropped below.
    if "eligibility" not in table:
        table["eligibility"] = None
    scores = factuality(
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


def question_density(study: PaperStudy) -> Mapping[Any, Any]:
    """Return the density of each question (low, medium or high), which is based on the share of its passages
    that are relevant.
    """
    table = passage_labels(study)
    if study.option("relevant-set") == "marked":
        table = _read_relevant(study, table)
    named = density(table, study.option("relevant-set"))  # type: ignore[arg-type]
    questions = table.drop_duplicates("item_id").set_index("item_id")["question_id"]
    return dict(zip(questions.reindex(named.index), named, strict=True))


def combine_judges(by_judge: Mapping[str, list[Score]]) -> list[Score]:
    """Aggregate several judges by the rule of FACTS.

    An answer is ineligible only if all judges label it so; factuality is the mean over judges.
    """
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


Unparsed = Literal["unscored", "facts"]


RelevantSet = Literal["answer", "answer+related", "marked"]


CLASSES = ("ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "IRRELEVANT")


GROUNDING = ("supported", "unsupported", "contradictory", "no_rad")


ELIGIBLE = {"No Issues": 1.0, "Minor Issue(s)": 1.0, "Major Issue(s)": 0.0}


GROUNDED = {"supported": 1.0, "no_rad": 1.0, "unsupported": 0.0, "contradictory": 0.0}


DEFLECTED = {"missing": 1.0, "attempted": 0.0}


_COUNTED_IN: dict[str, tuple[str, ...]] = {
    "answer": ("ANSWER-THE-QUESTION",),
    "answer+related": ("ANSWER-THE-QUESTION", "RELATED-INFORMATION"),
}


def factuality(
    answers: pd.DataFrame,
    full: pd.DataFrame | None = None,
    relevant: pd.DataFrame | None = None,
    *,
    unparsed: Unparsed = "unscored",
    relevant_set: RelevantSet = "answer",
    paired: bool = True,
) -> list[Score]:
    """Return eligibility and the factuality measures for the answerable rows. A measure is left out if its
    table is not given.

    eligibility            mean of E_i; E_i = 1 unless the judge says Major Issue(s)
    unadjusted_factuality  mean of F_i; F_i = 1 iff every sentence is supported or no_rad in `full`
    factuality             mean of E_i F_i
    unadjusted_raf, raf    the same with R_i from `relevant`, on the same rows
    over_summarisation_gap factuality - raf on those rows
    contradictory_labels   share of those rows with R_i = 1 and F_i = 0

    An empty or missing answer has E_i = F_i = R_i = 0. If a row has no relevant passage, none can support a
    sentence, so no judge is called. R_i is then 1 iff all sentences are no_rad in `full`.

    R_i depends on its own labels only, as published (FACTS against the relevant passages). The relevant passages are
    some of all passages, so R_i = 1 and F_i = 0 is a contradiction of the judge, and `contradictory_labels` counts it.
    A minimum of the two would turn each such error downwards.

    An answer with an unlabelled sentence has no F_i, even if another sentence is not grounded; otherwise the
    mean would be biased downwards. `factuality` has no value if E_i or F_i is missing. If `paired` is true
    and `relevant` is given, an answer needs both F_i and R_i; if one is missing, neither is used.
    `paired=False` is for incomplete labels: R_i still requires F_i, but F_i does not require R_i.

    `unparsed="facts"` applies the rule of FACTS: a reply without a verdict counts as not grounded, and as
    eligible. `relevant_set` names the passages against which `relevant` was judged; it only appears in a
    note. Raises BadInput if `relevant` is given without `full`.
    """
    if relevant is not None and full is None:
        raise BadInput("RAF is measured on the same rows as factuality, so it also needs the table `full`")
    who = units(answers, "answers")
    answerable, nothing = _answerable(answers), empty(answers)
    eligible, eligible_status = _eligible(answers, unparsed, nothing)
    rule = ("a reply without a verdict counts as not grounded, and as eligible (FACTS)",)
    notes: tuple[str, ...] = rule if unparsed == "facts" else ()
    n_empty = int((nothing & answerable).sum())
    notes += (f"{n_empty} empty or missing answers count as failures",) if n_empty else ()
    scores = [score_values("eligibility", who, eligible, eligible_status, notes=notes)]
    if full is None:
        return [score.restrict(answerable) for score in scores]
    grounds = {"factuality": (*_mark_grounded(who, answers, full, unparsed, nothing), notes)}
    if relevant is not None:
        raf_scores = _relevant(who, answers, full, relevant, unparsed, nothing)
        raf_notes = (*notes, f"relevant passages: {relevant_set}")
        grounds = _on_the_same_rows(grounds["factuality"], (*raf_scores, raf_notes), answerable, paired)
    both: dict[str, FloatArray] = {}
    for name, (grounded, status, said) in grounds.items():
        one_status = np.where(np.isnan(eligible), eligible_status, status).astype(np.int8)
        # nan * 0 is nan, so both must be known.
        both[name] = eligible * grounded
        scores += [
            score_values(f"unadjusted_{name}", who, grounded, status, notes=said),
            score_values(name, who, both[name], one_status, notes=said),
        ]
    if relevant is not None:
        gap = both["factuality"] - both["raf"]
        full_grounds, relevant_grounds = grounds["factuality"][0], grounds["raf"][0]
        known = ~np.isnan(full_grounds) & ~np.isnan(relevant_grounds)
        contradictory = np.where(known, (relevant_grounds == 1) & (full_grounds == 0), np.nan)
        scores += [
            # A difference is no share, even if all differences happen to be 0 or 1.
            replace(
                score_values("over_summarisation_gap", who, gap, one_status, notes=said, bounds=(-1.0, 1.0)),
                binary=False,
            ),
            score_values("contradictory_labels", who, contradictory, status),
        ]
    return [score.restrict(answerable) for score in scores]


def deflection(answers: pd.DataFrame) -> list[Score]:
    """Return how often answers decline when they should, and how often they decline when they should not.

    The true-positive rate is the share of declining answers among the rows with insufficient passages. The
    false-positive rate is the share among the other rows.

    An answer with the label `missing` declines: it says that the passages do not contain the information. An
    answer with the label `attempted` answers the question. An empty or missing answer does not count as
    declining.
    """
    who = units(answers, "answers")
    declined = encode_labels(column(answers, "deflection", "answers"), DEFLECTED, "deflection")
    # An answer declines only if it says so. If silence counted, it would raise the true-positive rate for free.
    declined[empty(answers)] = 0.0
    status = statuses(answers, ~np.isnan(declined), "deflection_status")
    score = score_values("deflection", who, declined, status)
    answerable = _answerable(answers)
    return [
        score.restrict(~answerable, "deflection_true_positive_rate"),
        score.restrict(answerable, "deflection_false_positive_rate"),
    ]


def sentence_rates(answers: pd.DataFrame, sentences: pd.DataFrame) -> list[Score]:
    """Return the share of each label among the sentences of answerable rows, and the share of sentences that
    are supported or no_rad.
    """
    lines = Parts(sentences, "sentences", units(answers, "answers"), "answers", "answer_id")
    labels = column(sentences, "label", "sentences")
    code = encode_labels(labels, {name: float(i) for i, name in enumerate(GROUNDING)}, "grounding")
    status = statuses(sentences, ~np.isnan(code))
    # All five scores share these rows, with one column per label.
    rows = (code[:, None] == np.arange(len(GROUNDING))).astype(np.float64)
    rows[np.isnan(code)] = np.nan
    answerable = _answerable(answers)[lines.of]
    scores = [
        Score(f"sentence_{name}", lines.units, rows, share(i), status, binary=True)
        for i, name in enumerate(GROUNDING)
    ]
    grounded = GROUNDING.index("supported"), GROUNDING.index("no_rad")

    def either(sums: FloatArray) -> FloatArray:
        return ratio(sums[:, grounded].sum(axis=1), sums[:, -1])

    scores.append(Score("sentence_grounded", lines.units, rows, either, status, binary=True))
    return scores if answerable.all() else [score.restrict(answerable) for score in scores]


def relevant_passages(passages: pd.DataFrame, relevant_set: RelevantSet = "answer") -> FloatArray:
    """Return 1 for each relevant passage, 0 for each other passage, and nan if a passage has no label.

    These passages count as relevant:

    answer          passages with the label ANSWER-THE-QUESTION
    answer+related  also passages with the label RELATED-INFORMATION
    marked          passages with evidence_relevant = YES (column `relevant`)
    """
    if relevant_set == "marked":
        return flags(column(passages, "relevant", "passages"), "evidence_relevant")
    if relevant_set not in _COUNTED_IN:
        raise BadInput(f"unknown relevant set '{relevant_set}'; available: answer, answer+related and marked")
    inside = _COUNTED_IN[relevant_set]
    return encode_labels(
        column(passages, "label", "passages"), {c: float(c in inside) for c in CLASSES}, "relevance"
    )


def density(
    passages: pd.DataFrame,
    relevant_set: RelevantSet = "answer",
) -> pd.Series:
    """Return the relevance density of each item: "low", "medium" or "high", or None if no passage has a label.

    The density is the share of relevant passages among those with a label: low < 1/3, medium < 2/3, else high. Use it with
    `judge.scores.score.split_by_stratum`.
    """
    relevant = pd.Series(relevant_passages(passages, relevant_set))
    shares = relevant.groupby(column(passages, "item_id", "passages").to_numpy()).mean()
    named = shares.astype(object)
    # The paper's limits are not known; thirds are our reading of low, medium and high.
    named[shares.notna()] = "high"
    named[shares < 2 / 3] = "medium"
    named[shares < 1 / 3] = "low"
    return named.where(shares.notna(), None)


def _answerable(answers: pd.DataFrame) -> BoolArray:
    known = flags(column(answers, "answerable", "answers"), "answerable")
    if np.isnan(known).any():
        raise BadInput("every answer needs a value in the column `answerable`")
    answerable: BoolArray = known == 1
    return answerable


def _eligible(
    answers: pd.DataFrame, unparsed: Unparsed, nothing: BoolArray
) -> tuple[FloatArray, StatusArray]:
    eligible = encode_labels(column(answers, "eligibility", "answers"), ELIGIBLE, "eligibility")
    # An empty answer fails regardless of the judge, because a lenient judge must not rescue it.
    eligible[nothing] = 0.0
    status = statuses(answers, ~np.isnan(eligible), "eligibility_status")
    if unparsed == "facts":
        eligible = np.where(mask_replied(status), 1.0, eligible)
    return eligible, status


Ground = tuple[FloatArray, StatusArray, tuple[str, ...]]


def _on_the_same_rows(
    full: Ground, relevant: Ground, answerable: BoolArray, paired: bool
) -> dict[str, Ground]:
    """Return F_i and R_i for the answers for which both are known."""
    f, f_status, f_notes = full
    r, r_status, r_notes = relevant
    status = np.where(np.isnan(f), f_status, r_status).astype(np.int8)
    r = np.where(np.isnan(f), np.nan, r)
    # While labelling is under way, an answer may have only one of the two. Human labels are compared on what exists.
    if not paired:
        return {"factuality": full, "raf": (r, status, r_notes)}
    left_out = int((~np.isnan(f) & np.isnan(r) & answerable).sum())
    if left_out:
        note = f"{left_out} answers have no value against the relevant passages and are left out of both factuality and RAF"
        f_notes, r_notes = (*f_notes, note), (*r_notes, note)
    f = np.where(np.isnan(r), np.nan, f)
    return {"factuality": (f, status, f_notes), "raf": (r, status, r_notes)}


def _relevant(
    who: Units,
    answers: pd.DataFrame,
    full: pd.DataFrame,
    relevant: pd.DataFrame,
    unparsed: Unparsed,
    nothing: BoolArray,
) -> tuple[FloatArray, StatusArray]:
    """Return R_i, which is computed like F_i, but against the relevant passages.

    If there are no relevant passages, R_i is 1 iff all sentences are no_rad in `full`.
    """
    grounded, status = _mark_grounded(who, answers, relevant, unparsed, nothing)
    if "n_relevant" not in answers.columns:
        return grounded, status
    none = answers["n_relevant"].to_numpy(dtype=np.float64, na_value=np.nan) == 0
    words = {name: name if name == "no_rad" else "unsupported" for name in GROUNDING}
    # No relevant passage can support a sentence here, so only sentences that need no support count. No judge is
    # called.
    needs = full.assign(label=full["label"].map(words).astype(object).where(full["label"].notna(), None))
    alone, alone_status = _mark_grounded(who, answers, needs, unparsed, nothing)
    return np.where(none, alone, grounded), np.where(none, alone_status, status).astype(np.int8)


def _mark_grounded(
    who: Units, answers: pd.DataFrame, sentences: pd.DataFrame, unparsed: Unparsed, nothing: BoolArray
) -> tuple[FloatArray, StatusArray]:
    """Return 1, 0 or nan for each answer, with its status. An answer that is empty or has no sentence gets 0."""
    lines = Parts(sentences, "sentences", who, "answers", "answer_id")
    label = encode_labels(column(sentences, "label", "sentences"), GROUNDED, "grounding")
    status = statuses(sentences, ~np.isnan(label))
    if unparsed == "facts":
        # FACTS: a reply that cannot be parsed is not grounded. A call that failed stays missing.
        label = np.where(mask_replied(status), 0.0, label)
    expected = lines.count_expected(answers, "n_sentences")
    # Without the column, an answer without rows is not judged yet, and not empty.
    blank = nothing | (expected == 0) if "n_sentences" in answers.columns else nothing
    # One unsupported sentence decides an answer: scoring answers labelled in part would bias the mean down.
    complete = (lines.count(~np.isnan(label)) == expected) & (expected > 0)
    grounded = np.where(complete, (lines.count(label == 0) == 0).astype(np.float64), np.nan)
    worst = lines.status(status)
    worst = np.where((worst == 0) & np.isnan(grounded), NOT_JUDGED_CODE, worst).astype(np.int8)
    grounded[blank], worst[blank] = 0.0, STATUSES.index(Status.OK)
    return grounded, worst
