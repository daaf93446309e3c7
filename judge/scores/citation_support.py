"""Do a sentence's citations support it? ALCE's citation recall and precision, and TREC RAG's support measures.

Tables (see `judge.scores.columns`):
    answers    unit_id, question_id
    sentences  unit_id, answer_id, invented (optional: the number of its citations that name no passage);
               for ALCE also entailed (1 / 0 / None: all its citations together entail it; ignored if there
               is no citation)
    citations  unit_id, sentence_id;
               for ALCE also alone (this passage alone entails the sentence) and rest (the sentence's other
               citations entail it; ignored for a single citation), both 1 / 0 / None;
               for TREC also label (full, partial or none) and position (from 1, optional)
"""

from typing import Literal

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.scores.attribution import best_support, score_invented, with_invented
from judge.scores.columns import Parts, column, empty, encode_labels, flags, statuses, units
from judge.scores.compare import combine_scores
from judge.scores.score import SHARE, Score, harmonic, score_values
from judge.stats.coefficients import ratio

Several = Literal["best", "first"]

SUPPORT = {"full": 1.0, "partial": 0.5, "none": 0.0}


def alce(
    answers: pd.DataFrame,
    sentences: pd.DataFrame,
    citations: pd.DataFrame,
) -> list[Score]:
    """Return citation recall, precision and F1 of ALCE: shares within each answer, then the mean over answers.

    Source: Gao et al. 2023, "Enabling LLMs to Generate Text with Citations", arXiv 2305.14627, section 3.3.

    A sentence is recalled iff it has citations and together they entail it. A citation is precise iff its
    sentence is recalled and the citation is not redundant. A citation is redundant if it does not entail the
    sentence alone, but the sentence's other citations do. If a sentence is not recalled, its citations need no
    further labels. A sentence with an invented citation is not recalled, and none of its citations are precise.
    An empty or missing answer has recall 0. An answer without citations has no precision (0 in the paper's
    code). F1 is the harmonic mean of the two means.
    """
    who = units(answers, "answers")
    lines = Parts(sentences, "sentences", who, "answers", "answer_id")
    citations = with_invented(sentences, citations)
    marks = Parts(citations, "citations", lines.units, "sentences", "sentence_id")
    of, n_cited = marks.of, marks.count()
    entailed = flags(column(sentences, "entailed", "sentences"), "entailed")
    # A judge is not asked about a sentence without a citation: ALCE counts it as not recalled.
    recalled = np.where(n_cited > 0, entailed, 0.0)
    if "is_invented" in citations.columns:
        recalled[of[citations["is_invented"].to_numpy(dtype=bool)]] = 0.0
    alone, rest = (flags(column(citations, name, "citations"), name) for name in ("alone", "rest"))
    # For a single citation `alone` is enough; for several citations, one of `alone` and `rest` may already decide.
    needed = np.where(
        (n_cited[of] == 1) | (alone == 1) | (rest == 0), 1.0, np.where(np.isnan(alone + rest), np.nan, 0.0)
    )
    # Without recall nothing is precise, so `alone` and `rest` may stay unlabelled there.
    precise = np.where(recalled[of] == 0, 0.0, recalled[of] * needed)
    # An empty answer is a failure of the system. Leaving it out would reward silence.
    recall = np.where(empty(answers), 0.0, ratio(lines.total(recalled), lines.count()))
    n_citations = lines.total(n_cited)
    precision = ratio(lines.total(marks.total(precise)), n_citations)
    status = lines.status(statuses(sentences, ~np.isnan(recalled)))
    reason = "no citation, or an unjudged citation"
    scores = [
        score_values("alce_citation_recall", who, recall, status, reason="no sentence", bounds=SHARE),
        score_values("alce_citation_precision", who, precision, status, reason=reason, bounds=SHARE),
    ]
    false = score_invented("citation_invented_share", marks.units, citations)
    return [*scores, combine_scores("alce_citation_f1", scores, harmonic), false]


def trec(
    answers: pd.DataFrame, sentences: pd.DataFrame, citations: pd.DataFrame, *, several: Several = "best"
) -> list[Score]:
    """Return the support measures of TREC RAG (Thakur et al. 2025, arXiv 2504.15205): full 1, partial 0.5,
    none 0.

    Each measure has one value per answer (one answer per topic) and is then averaged over answers, not pooled
    over citations:

    trec_support_precision  mean support from the answer's citations; an answer without citations has no value
    trec_support_recall     mean support of the answer's sentences; a sentence without a citation has 0

    If a sentence has several citations, `several` says which one counts for recall: the citation with the
    `best` support, or the `first` by position. With `first`, precision is also computed over first citations
    only, as in TREC 2024, where only the first citation was judged.

    A missing or empty answer (`answered` False) has 0 in both measures. It is not left out, because that
    would reward systems that give no answer.
    """
    if several not in ("best", "first"):
        raise BadInput(f"unknown rule '{several}'; available: best and first")
    citations = with_invented(sentences, citations)
    # In TREC RAG 2024 only the first citation of each sentence was judged.
    if several == "first":
        order = column(citations, "position", "citations")
        first = order.groupby(column(citations, "sentence_id", "citations").to_numpy()).transform("min")
        citations = citations[(order == first).to_numpy()]
    who = units(answers, "answers")
    lines = Parts(sentences, "sentences", who, "answers", "answer_id")
    marks = Parts(citations, "citations", lines.units, "sentences", "sentence_id")
    support = encode_labels(column(citations, "label", "citations"), SUPPORT, "citation support")
    status = statuses(citations, ~np.isnan(support))
    note = (f"if a sentence has several citations, the {several} one counts",)
    nothing = empty(answers)
    best, why = best_support(support, marks), marks.status(status)
    lost = lines.status(why)
    # One unlabelled citation makes the sum nan. The answer then has no value, which lowers the coverage.
    with np.errstate(invalid="ignore"):
        precision = ratio(lines.total(marks.total(support)), lines.total(marks.count()))
        recall = ratio(lines.total(best), lines.count())
    return [
        score_values(
            f"trec_support_{name}", who, np.where(nothing, 0.0, values), np.where(nothing, 0, lost).astype(lost.dtype),
            reason=reason, notes=note, bounds=SHARE,
        )
        for name, values, reason in (("precision", precision, "no citation"), ("recall", recall, "no sentence"))
    ]  # fmt: skip
