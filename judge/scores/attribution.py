"""Attribution: does an answer cite the right passages?

GaRAGe (arXiv 2506.07671) reports precision, recall and F1 of attribution. This module computes them in two ways:
    cited   the ids cited in the model's answer are compared with those cited in the human answer
    judged  a judge decides for each cited passage whether it supports its sentence
Both are averaged in two ways: micro (over citations) and macro (over answers). F1 is the harmonic mean of
the averaged precision and recall.
"""

import numpy as np
import pandas as pd

from judge.scores.columns import Parts, column, encode_labels, statuses, to_sets, units
from judge.scores.compare import combine_scores
from judge.scores.score import SHARE, Score, StatusArray, Units, harmonic, quotient, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray
from judge.types import Status

SUPPORT = ("full", "partial", "none")
INVENTED = "!"
"""Separates the sentence's unit from a number in the id of an invented citation."""


def score_citations(answers: pd.DataFrame) -> list[Score]:
    """Return micro- and macro-averaged precision, recall and F1 of the cited ids, compared with those that the
    reference cites.

    `answers` has the columns unit_id, question_id, cited and reference_cited (lists of ids; None: unknown).
    Optional columns are invented (lists of cited names that match no passage) and answerable. Rows in which
    answerable is false are left out, because their human answers cite nothing.

    The micro averages are precision P = sum |cited & reference| / sum |cited| and recall R = sum |cited &
    reference| / sum |reference|. The macro averages are the means of P and R over answers. An answer that
    cites nothing has no P, and an answer whose reference cites nothing has no R. An invented citation (one
    that names no passage) counts as wrong; `attribution_invented_share` is the share of such citations.
    """
    # In a row with insufficient grounding, the human answer cites nothing, so every citation would count as wrong.
    if "answerable" in answers.columns:
        answers = answers[answers["answerable"].astype(bool)]
    who = units(answers, "answers")
    given = to_sets(column(answers, "cited", "answers"), "cited ids")
    wanted = to_sets(column(answers, "reference_cited", "answers"), "cited ids")
    false: list[frozenset[str] | None] = [None] * len(who)
    if "invented" in answers.columns:
        false = to_sets(answers["invented"], "invented citations")
    rows = np.full((len(who), 4), np.nan)
    for i, (mine, theirs, made_up) in enumerate(zip(given, wanted, false, strict=True)):
        if mine is not None and theirs is not None:
            # A citation of a passage that does not exist is a citation: precision counts it, and it is never right.
            n_made_up = len(made_up or ())
            rows[i] = len(mine & theirs), len(mine) + n_made_up, len(theirs), n_made_up

    def f1(sums: FloatArray) -> FloatArray:
        return harmonic(ratio(sums[:, 0], sums[:, 1]), ratio(sums[:, 0], sums[:, 2]))

    reason, none, nothing = "citations not known", "no answer cites anything", "no reference cites anything"
    hits, n_given, n_wanted, _ = rows.T
    return [
        Score("attribution_precision_micro", who, rows, quotient(0, 1), why=reason, undefined=none),
        Score("attribution_recall_micro", who, rows, quotient(0, 2), why=reason, undefined=nothing),
        Score("attribution_f1_micro", who, rows, f1, why=reason, undefined=f"{none}, or {nothing}"),
        *_macro("attribution", who, ratio(hits, n_given), ratio(hits, n_wanted)),
        Score("attribution_invented_share", who, rows, quotient(3, 1), why=reason, undefined=none),
    ]


def score_judged_citations(
    answers: pd.DataFrame, sentences: pd.DataFrame, citations: pd.DataFrame
) -> list[Score]:
    """Return precision, recall and F1 of citations that a judge has labelled.

    The averages are micro (over citations or sentences) and macro (over answers).

    answers    unit_id, question_id
    sentences  unit_id, answer_id: the sentences that need a citation (leave out sentences labelled no_rad);
               invented (optional): how many of the sentence's citations name no passage
    citations  unit_id, sentence_id, label (full, partial, none), status: one row per cited passage

    Precision P is the share of citations that support their sentence. Recall R is the share of sentences that
    a citation supports. Partial support counts as 0. If a sentence has several citations, the best one
    counts. An invented citation counts as a citation that supports nothing;
    `judged_attribution_invented_share` is the share of such citations.

    A sentence with an unlabelled citation has no value, unless another citation supports it fully. In the
    macro means, an answer has no P if it has no citations or an unlabelled one. It has no R if it has no
    sentences or one without a value.
    """
    who = units(answers, "answers")
    lines = Parts(sentences, "sentences", who, "answers", "answer_id")
    citations = with_invented(sentences, citations)
    marks = Parts(citations, "citations", lines.units, "sentences", "sentence_id")
    # GaRAGe judges whether a passage supports its sentence, so partial support counts as 0 (in TREC RAG, as half).
    weight = {"full": 1.0, "partial": 0.0, "none": 0.0}
    support = encode_labels(column(citations, "label", "citations"), weight, "citation support")
    status = statuses(citations, ~np.isnan(support))
    best, best_status = best_support(support, marks), marks.status(status)
    name, notes = "judged_attribution", ("partial support counts as 0",)
    precision = score_values(
        f"{name}_precision_micro", marks.units, support, status, notes=notes, bounds=SHARE
    )
    recall = score_values(f"{name}_recall_micro", lines.units, best, best_status, notes=notes, bounds=SHARE)
    supported = np.bincount(lines.of[marks.of], support, len(who)).astype(np.float64)
    each = ratio(supported, lines.total(marks.count()))
    macro = _macro(name, who, each, ratio(lines.total(best), lines.count()), lines.status(best_status))
    f1 = combine_scores(f"{name}_f1_micro", [precision, recall], harmonic)
    false = score_invented(f"{name}_invented_share", marks.units, citations)
    return [precision, recall, f1, *(score.add_notes(*notes) for score in macro), false]


def with_invented(sentences: pd.DataFrame, citations: pd.DataFrame) -> pd.DataFrame:
    """Return the citations with added rows for invented citations, which name no passage.

    The column `invented` of `sentences` says how many rows are added for each sentence. The added rows have
    the label `none` and come after the others. A column `is_invented` marks them.
    """
    if "invented" not in sentences.columns:
        return citations
    n = sentences["invented"].fillna(0).to_numpy(dtype=np.int64)
    if not n.any():
        return citations
    of = np.repeat(sentences["unit_id"].to_numpy(), n)
    place = np.concatenate([np.arange(times) for times in n[n > 0]])
    extra = {
        "unit_id": [f"{sentence}{INVENTED}{i}" for sentence, i in zip(of, place, strict=True)],
        "sentence_id": of,
        "label": "none",
        "status": str(Status.OK),
        "position": LAST + place,
        "is_invented": True,
    }
    known = [name for name in (*citations.columns, "is_invented") if name in extra]
    more = pd.DataFrame({name: extra[name] for name in known}, dtype=object)
    return pd.concat([citations.assign(is_invented=False), more], ignore_index=True)


# After every real position, so that the rule `first` uses an invented citation only if there is no real one.
LAST = 1_000_000
"""The position of invented citations in a sentence: greater than any real position."""


def score_invented(measure: str, marks: Units, citations: pd.DataFrame) -> Score:
    """Return the share of citations that name no passage. `citations` is the result of `with_invented`."""
    false = np.zeros(len(marks))
    if "is_invented" in citations.columns:
        false = citations["is_invented"].to_numpy(dtype=np.float64)
    return score_values(measure, marks, false)


def support_rates(answers: pd.DataFrame, citations: pd.DataFrame) -> list[Score]:
    """Return the share of the judged citations with each support label. `citations`: unit_id, answer_id, label, status."""
    marks = Parts(citations, "citations", units(answers, "answers"), "answers", "answer_id")
    labels = column(citations, "label", "citations")
    code = encode_labels(labels, {name: float(i) for i, name in enumerate(SUPPORT)}, "citation support")
    status = statuses(citations, ~np.isnan(code))
    return [
        score_values(f"citation_{name}", marks.units, np.where(np.isnan(code), np.nan, code == i), status)
        for i, name in enumerate(SUPPORT)
    ]


def best_support(support: FloatArray, citations: Parts) -> FloatArray:
    """Return the best support among each sentence's citations.

    The value is 0 if there are no citations, and nan if an unlabelled citation could be better.
    """
    known = ~np.isnan(support)
    best = np.zeros(len(citations.wholes))
    np.maximum.at(best, citations.of[known], support[known])
    # An unlabelled citation may support the sentence better, unless a labelled one supports it fully.
    best[(citations.count(~known) > 0) & (best < 1)] = np.nan
    return best


def _macro(
    name: str, who: Units, precision: FloatArray, recall: FloatArray, status: StatusArray | None = None
) -> list[Score]:
    """Return the means of precision and recall over answers, and the harmonic mean of the two means."""
    p = score_values(f"{name}_precision_macro", who, precision, status, reason="no citation", bounds=SHARE)
    r = score_values(f"{name}_recall_macro", who, recall, status, reason="nothing to cite", bounds=SHARE)
    # The paper's F1 is the harmonic mean of its printed precision and recall, not a mean of F1 values.
    return [p, r, combine_scores(f"{name}_f1_macro", [p, r], harmonic)]
