"""Score how well sources support answers: RAGAS and FActScore (by claim), ALCE and TREC RAG (by citation).

Claims come from the task `claim_decomposition`, or were imported with the answers. They are judged in the task
`claim_support`. ALCE needs three tasks. `citation_support` asks whether all citations of a sentence together
support it. `citation_each` asks whether a citation alone supports the sentence, and `citation_rest` asks
whether the sentence's other citations support it. Only full support counts as entailment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.papers.engine.steps import Step

if TYPE_CHECKING:
    import pandas as pd

    from judge.papers.engine.paper_study import PaperStudy
    from judge.papers.engine.queries import System
    from judge.scores.score import Score


NO_ABSTENTION = "abstention not judged"


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import citation_support, faithfulness

    chosen = study.answering("qa_answer", "all")
    answers = study.read_answers(chosen)
    claims = sentences = citations = None
    if study.part("claims"):
        claims_of(study, chosen, answers)
        claims = study.labels("claim_support", chosen).drop(columns=["item_id", "question_id"])
        claims = claims.rename(columns={"answer_unit": "answer_id"})
    if study.part("abstention"):
        judged = study.labels("deflection", chosen).set_index("unit_id")["label"].reindex(answers["unit_id"])
        answers["abstained"] = judged.map({"missing": 1.0, "attempted": 0.0}).to_numpy()
    if study.part("alce"):
        sentences = study.labels("citation_support", chosen)
        citations = study.labels("citation_each", chosen)
        rest = study.labels("citation_rest", chosen).set_index("unit_id")["label"]
        citations["rest"] = _full(rest.reindex(citations["unit_id"]))
    elif study.part("trec"):
        citations = study.labels("citation_each", chosen)
    study.check()
    scores: list[Score] = []
    if claims is not None:
        scores.append(faithfulness.ragas(answers, claims))
        facts = faithfulness.factscore(answers, claims)
        if not study.part("abstention"):
            # FActScore leaves out answers that decline, and only the task of the part `abstention` identifies them.
            facts = [score.drop_values(NO_ABSTENTION) for score in facts]
            study.note(
                "FActScore, the respond ratio and facts per answer exclude answers that decline, but no judge has labelled which answers decline: "
                + command("judge suite faithfulness -m MODEL --part claims --part abstention")
            )
        scores += facts
    if citations is not None:
        lines = study.rows.sentences(chosen).rename(columns={"answer_unit": "answer_id"})
        marks = citations.assign(
            sentence_id=study.rows.sentences_of(citations), alone=_full(citations["label"])
        )
        if sentences is not None:
            whole = sentences.set_index("unit_id")
            lines["entailed"] = _full(whole["label"].reindex(lines["unit_id"]))
            lines["status"] = whole["status"].reindex(lines["unit_id"]).fillna("not judged").to_numpy()
            scores += citation_support.alce(answers, lines, marks)
        if study.part("trec"):
            # Citations are stored in the order of the sentence, so a running count gives their positions.
            marks["position"] = marks.groupby("sentence_id").cumcount() + 1
            scores += citation_support.trec(answers, lines, marks, several=study.option("several"))  # type: ignore[arg-type]
    return scores


def claims_of(study: PaperStudy, chosen: System, answers: pd.DataFrame) -> pd.DataFrame:
    """Return a table of all claims with the columns unit_id and answer_id.

    If some answers have no claims yet, a missing step is recorded: decompose these answers, or create claims
    from their decomposition. The column `n_claims` is then added to `answers`.
    """
    import numpy as np

    have = study.rows.counts("claim")
    # If a file says that an answer makes no claims, there is nothing to decompose.
    none = answers["unit_id"].isin(study.rows.read_without_claims())
    without = answers[answers["answered"] & ~answers["unit_id"].isin(have.index) & ~none]
    if len(without):
        listed = study.labels("claim_decomposition", chosen)
        claim_lists = listed.set_index("unit_id").reindex(without["unit_id"])
        ready = claim_lists["label"].notna() & (claim_lists["label"] != "[]")
        if ready.any() and study.last_run is not None:
            reason = (
                f"{int(ready.sum())} answers were decomposed into claims, but the claims are not units yet"
            )
            study.need(Step("claims", reason, run_id=study.last_run.run_id))
        # An answer with an empty list makes no claims; an answer whose list is malformed counts as not judged.
        counted = answers["unit_id"].map(have).to_numpy(dtype=float, copy=True)
        empty = (
            answers["unit_id"]
            .map(listed.set_index("unit_id")["label"] == "[]")
            .fillna(False)
            .to_numpy(dtype=bool)
        )
        counted[empty | (none & np.isnan(counted)).to_numpy()] = 0
        answers["n_claims"] = counted
        lost = without["unit_id"][(~ready & (claim_lists["label"] != "[]")).to_numpy()]
        # A malformed list counts as one claim without a label. The answer then has no value, instead of counting as an
        # answer without claims.
        answers.loc[answers["unit_id"].isin(lost), "n_claims"] = 1
    table = study.rows.units("claim", chosen.where, "n item_id question_id answer_id")
    return table.rename(columns={"answer_unit": "answer_id"})[["unit_id", "answer_id"]]


def _full(labels: pd.Series) -> Any:
    """Return 1 for full support, 0 for partial or no support, and None if there is no label."""
    # ALCE requires entailment, and partial support is not entailment.
    values = labels.map({"full": 1.0, "partial": 0.0, "none": 0.0})
    return values.astype(object).where(values.notna(), None).to_numpy()
