"""Score a study by ConfirmBiasRAG: given two opposite claims, do the passages and the answer for each claim
support it?

A pair is two items with the same pair_id and opposite polarity (imported, or built by `judge pairs build`). SR
and CR are computed from a judge's stance labels for the ranked passages. CBR is computed from a judge's labels
(task `confirmation`) for the answers of the system under test (task `claim_answer`).
`judge.scores.confirmation` does the arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge.commands import command
from judge.errors import NothingToScore, UsageError
from judge.store.label_rows import quote
from judge.store.study import Store
from judge.suites.paper import RANKING, Option, Paper, Part
from judge.suites.steps import Step

if TYPE_CHECKING:
    import pandas as pd

    from judge.scores.score import Score
    from judge.suites.paper_study import PaperStudy
    from judge.suites.queries import System

STAGES = ("retrieve", "rerank", "top-k")
_ANSWER = {"yes": "Yes", "no": "No", "others": "Others"}


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import confirmation

    pairs = _pairs(study)
    entries = answers = None
    if study.part("retrieval"):
        entries = _list_documents(study, pairs)
    if study.part("answers"):
        answers = _answers(study)
    study.check()
    scores: list[Score] = []
    # Without any list of a requested claim, there is nothing to compare.
    if entries is not None and len(entries):
        before: list[Score] = []
        for stage in _stages(entries):
            here = confirmation.retrieval_bias(pairs, entries, stage)
            scores += here
            if before:
                scores += confirmation.changes(before, here)
            before = here
    if answers is not None:
        scores += confirmation.answer_bias(pairs, answers)
    return scores


def present(store: Store, dataset: str) -> bool:
    """Return whether the data set has pairs."""
    from judge.store import pairs

    return dataset in pairs.datasets(store)


def _pairs(study: PaperStudy) -> pd.DataFrame:
    """Return a table of the requested pairs that people have not rejected: pair_id, original, counter,
    question_id.
    """
    import pandas as pd

    from judge.store import pairs as stored

    checked = stored.read_checked(study.store, study.dataset)
    items = study.rows.items.set_index("item_id")["question_id"]
    checked = [p for p in checked if p.original_id in items.index and p.counter_id in items.index]
    if not checked:
        raise NothingToScore(
            f"the data set '{study.dataset}' has no claim pairs: import pairs ({command('judge items import claim-pairs FILE')}) "
            f"or build them ({command('judge pairs build -m MODEL')})"
        )
    n_checked = stored.counts(checked)
    study.note(
        f"{len(checked)} pairs: {n_checked['kept']} confirmed by at least {stored.CONSENSUS:g} of their annotators, "
        f"{n_checked['dropped']} rejected (left out), {n_checked['unchecked']} not checked by people (kept)"
    )
    # Pairs that nobody checked are kept, as in the paper's automated evaluation. Only people can reject a pair.
    checked = [p for p in checked if p.kept is not False]
    if not checked:
        raise UsageError(
            f"people rejected all claim pairs, so there is nothing to score; to see them: {command('judge pairs list')}"
        )
    table = pd.DataFrame(
        [(p.unit_id, p.original_id, p.counter_id) for p in checked],
        columns=["pair_id", "original", "counter"],
    )
    original, counter = (items.reindex(table[side]).to_numpy() for side in ("original", "counter"))
    # If the two claims belong to different questions, intervals resample pairs instead of questions.
    table["question_id"] = pd.Series(original, dtype=object).where(original == counter, None)
    return table


def _list_documents(study: PaperStudy, pairs: pd.DataFrame) -> pd.DataFrame | None:
    """Return a table of the first k passages of each list: claim_id, stage, rank, document, label, status."""
    import pandas as pd

    from judge.scores.score import NOT_JUDGED
    from judge.store.rankings import LISTED
    from judge.suites.frames import frame

    name = _ranking(study)
    if name is None:
        return None
    depth = study.numbers("k")[0]
    within = f"r.stage IN ({', '.join(map(quote, STAGES))}) AND r.rank <= {depth}"
    query = (
        # Documents are compared by their text, because the two claims have copies of a passage under different ids.
        # If an item has several passages with the same text, only one of them is used, so that each rank has one row.
        "SELECT r.item_id, r.stage, r.rank, p.content_sha, min(o.passage_id) "
        f"{LISTED} WHERE r.name = ? AND {within} AND r.item_id IN (SELECT item_id FROM unit_texts "
        f"WHERE kind = 'item' AND {study.rows.scope}) GROUP BY r.item_id, r.stage, r.rank ORDER BY r.item_id, r.rank"
    )
    entries = frame(study.store.conn, query, [name], "claim_id stage rank_n document own")
    entries = entries.rename(columns={"rank_n": "rank"})
    if entries.empty:
        raise UsageError(f"the ranking '{name}' has no list for any of the stages {', '.join(STAGES)}")
    entries = entries[entries["claim_id"].isin([*pairs["original"], *pairs["counter"]])].reset_index(
        drop=True
    )
    for stage in _stages(entries):
        alone = entries[(entries["stage"] == stage) & entries["own"].isna()]
        if len(alone):
            reason = f"{len(alone)} passages in the ranking '{name}' ({stage}) belong to other items and are not yet units of the claims that list them"
            # A passage that belongs to another item was judged with that item's claim, so it needs a unit with this claim.
            study.need(Step("attach", reason, ranking=(name, stage), k=depth, dataset=study.dataset))
    only = f"passage_id IN (SELECT o.passage_id {LISTED} WHERE r.name = {quote(name)} AND {within})"
    stances = study.labels("stance", only=only, columns="passage_id", together="item_id")
    by_passage = stances.set_index("passage_id")
    entries["label"] = by_passage["label"].reindex(entries["own"]).to_numpy(dtype=object)
    status = by_passage["status"].reindex(entries["own"]).to_numpy(dtype=object)
    entries["status"] = pd.Series(status, dtype=object).where(pd.notna(status), NOT_JUDGED).to_numpy()
    entries["label"] = entries["label"].where(entries["label"].notna(), None)
    shown = ", ".join(f"{stage} (first {depth})" for stage in _stages(entries))
    study.note(f"ranking {name}; stages: {shown}")
    return entries


def _ranking(study: PaperStudy) -> str | None:
    """Return the name of the ranking whose stages are compared. If there is none, record a step and return None."""
    there = list(dict.fromkeys(name for name, _ in study.rows.rankings()))
    wanted = study.option("ranking")
    if wanted and wanted not in there:
        raise UsageError(
            f"the data set '{study.dataset}' has no ranking '{wanted}'; available: {', '.join(there) or 'none'}"
        )
    fit = [wanted] if wanted else study.list_rankings(there)
    if len(fit) > 1:
        raise UsageError(
            f"there are several rankings: choose one with --ranking; available: {', '.join(there)}"
        )
    if not fit:
        # Records a step, or that this system lacks a ranking although other systems have one.
        study.ranking()
    return fit[0] if fit else None


def _stages(entries: pd.DataFrame) -> list[str]:
    there = set(entries["stage"])
    return [stage for stage in STAGES if stage in there]


def _answers(study: PaperStudy) -> pd.DataFrame:
    """Return a table of the answers, one per claim: claim_id, label, valid, status."""
    import numpy as np

    from judge.scores.score import NOT_JUDGED
    from judge.suites.paper_study import FAILURES

    of, made = _find_system(study)
    table = study.rows.items[["item_id"]].rename(columns={"item_id": "claim_id"})
    judged = study.labels("confirmation", of).set_index("item_id")
    there = study.rows.answers(of, "answer").set_index("item_id")["answer"]
    text = there.reindex(table["claim_id"])
    label = judged["label"].reindex(table["claim_id"]).map(_ANSWER)
    status = judged["status"].reindex(table["claim_id"])
    # Empty, refused and omitted answers are the system's failures, so they are not valid. Answers that were not yet
    # requested, and answers that the judge refused to label, are missing.
    valid = np.array([isinstance(t, str) and bool(t.strip()) for t in text], dtype=bool)
    if made is not None:
        ending = made.set_index("item_id")["status"].reindex(table["claim_id"])
        waits = text.isna().to_numpy() & ~ending.isin(FAILURES).to_numpy()
        valid |= waits
        status = status.where(~waits, ending.where(ending != "ok", NOT_JUDGED))
    # An empty answer has no stance, so a judge's label of it is ignored.
    label = label.where(valid, None)
    table["label"] = label.where(label.notna(), None).to_numpy(dtype=object)
    table["status"] = status.where(status.notna(), NOT_JUDGED).to_numpy(dtype=object)
    table["valid"] = valid
    n = int((~valid).sum())
    if n:
        study.note(
            f"for {n} claims, {of.system} gave no answer or an empty answer, or refused to answer; these answers count as invalid"
        )
    return table


def _find_system(study: PaperStudy) -> tuple[System, pd.DataFrame | None]:
    """Return the system whose answers are scored, and a table of the answers that it generated.

    The table is None if the system's stored answers must be read instead, for example because they were
    imported.
    """
    from judge.suites.queries import System

    system = study.system()
    if system is not None:
        run = [
            r for r in study.judges.runs if r.serves({"context": system.condition, "system": system.system})
        ]
        return system, study.read_generated("claim_answer", system.condition) if run and _is_plain(
            system.condition
        ) else None
    made = study.read_generated("claim_answer", "none")
    if made is None:
        study.check()
        raise NothingToScore(
            f"'{study.get_tested()}' has no answers in '{study.dataset}': "
            + study.import_words("FILE", "--system", study.get_tested())
        )
    study.whose = System(study.get_tested(), "none")
    return study.whose, made


def _is_plain(condition: str) -> bool:
    """Return whether the condition can be passed as --context.

    A condition that names a ranking (top:5:name:stage) cannot be passed.
    """
    return not condition.startswith("top:")


PAPER = Paper(
    name="confirmation",
    abbreviations=("sr", "cr", "cbr"),
    title="ConfirmBiasRAG (Retrieving Facts or Reinforcing Beliefs?): support ratios and confirmation bias of claim pairs",
    compute_scores=compute_scores,
    lower=("cbr*", "cr*"),
    neutral=(
        "sr*",
        "rr*",
        "signed_cr*",
        "neutral_share*",
        "valid_pairs*",
        "defined_pairs*",
        "overlap*",
        "missing*",
        "*_change*",
    ),
    present=present,
    parts=(
        Part("retrieval", ("stance",), "SR, CR, signed CR, neutral share, overlap, change between stages"),
        Part(
            "answers",
            ("confirmation",),
            "CBR: share of pairs in which each answer supports the claim that it was given",
        ),
    ),
    options=(
        Option("k", "10", "Use the first K passages of each stage's ranking."),
        RANKING,
    ),
)
