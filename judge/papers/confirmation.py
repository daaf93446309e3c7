"""ConfirmBiasRAG: given two opposite claims, do the passages and the answer for each claim support it?

"Retrieving Facts or Reinforcing Beliefs?" (anonymous submission). A pair is two items with the same pair_id and
opposite polarity (imported, or built by `judge pairs build`). SR and CR are computed from a judge's stance labels for
the ranked passages. CBR is computed from a judge's labels (task `confirmation`) for the answers of the system under
test (task `claim_answer`).

Tables (see `judge.scores.columns`):
    pairs    pair_id, original and counter (claim ids), question_id (optional; if absent, the pair is the cluster)
    stances  one row per passage in a claim's list at a stage: claim_id, stage, status,
             label (support, refute, neutral),
             document (the same string for the same document in both lists; required for the overlap)
    answers  claim_id, status, label (Yes: the answer supports its claim; No; Others),
             valid (optional bool: False for an answer that is empty or was refused)

For a claim at a stage, SR = supporting / (supporting + refuting) passages, and RR = 1 - SR. Both are undefined
if the claim has neither supporting nor refuting passages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judge.commands import command
from judge.document.blocks import Figure
from judge.errors import BadInput, NothingToScore, UsageError
from judge.papers.engine.frames import frame
from judge.papers.engine.paper_study import FAILURES, PaperStudy
from judge.papers.engine.paper_table import Filled
from judge.papers.engine.queries import System
from judge.papers.engine.steps import Step
from judge.scores.columns import (
    column,
    combine_status,
    counts,
    encode_labels,
    flags,
    positions,
    statuses,
    units,
)
from judge.scores.compare import score_pair
from judge.scores.score import (
    NOT_JUDGED,
    NOT_JUDGED_CODE,
    SHARE,
    STATUSES,
    Score,
    StatusArray,
    Units,
    quotient,
    score_values,
)
from judge.stats.coefficients import ratio
from judge.stats.ratings import BoolArray, FloatArray
from judge.store import pairs as stored
from judge.store.label_rows import quote
from judge.store.rankings import LISTED
from judge.types import Json, Status

STAGES = ("retrieve", "rerank", "top-k")


_ANSWER = {"yes": "Yes", "no": "No", "others": "Others"}


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    pairs = _read_pairs(study)
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
        stages = _stages(entries)
        for n, stage in enumerate(stages):
            here = retrieval_bias(pairs, entries, stage)
            scores += here
            if before:
                scores.append(rank_move(pairs, entries, stages[n - 1], stage))
                scores += changes(before, here)
            before = here
    if answers is not None:
        scores += answer_bias(pairs, answers)
    return scores


def _read_pairs(study: PaperStudy) -> pd.DataFrame:
    """Return a table of the requested pairs that people have not rejected: pair_id, original, counter,
    question_id.
    """
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


STANCES = ("support", "refute", "neutral")


NO_EVIDENCE = "no supporting or refuting passage"


_OK = STATUSES.index(Status.OK)


# The detection prompt lists Others, although it says that all other answers are No. `Others` is a valid answer that
# supports nothing.
_ANSWERS = {"Yes": 1.0, "No": 0.0, "Others": 0.0}


def ratios(pairs: pd.DataFrame, stances: pd.DataFrame, stage: str) -> pd.DataFrame:
    """Return one row per claim in `pairs`: n_support, n_refute, n_neutral, n_missing, sr, rr (nan: undefined).

    SR is computed over the passages with a stance. n_missing counts the passages without one, and `status`
    gives the reason. Raises BadInput if no row has this stage, or if a claim is in two pairs.
    """
    who = _claims(pairs)
    some = _stage(stances, stage)
    some = some[column(some, "claim_id", "stances").isin(who.ids)]
    of = positions(some["claim_id"], who, "stances", "pairs")
    code = encode_labels(
        column(some, "label", "stances"), {name: float(i) for i, name in enumerate(STANCES)}, "stance"
    )
    status = statuses(some, ~np.isnan(code))
    n = len(who)
    table = {f"n_{name}": counts(of, n, code == i).astype(np.int64) for i, name in enumerate(STANCES)}
    table["n_missing"] = counts(of, n, np.isnan(code)).astype(np.int64)
    support, refute = table["n_support"].astype(np.float64), table["n_refute"].astype(np.float64)
    ratios_of_claims = pd.DataFrame(table, index=who.ids)
    ratios_of_claims["sr"] = ratio(support, support + refute)
    # Both exist or neither: a claim without any supporting or refuting passage has no SR, and its pair leaves N.
    ratios_of_claims["rr"] = 1 - ratios_of_claims["sr"]
    ratios_of_claims["status"] = combine_status(status, of, n)
    return ratios_of_claims


def retrieval_bias(pairs: pd.DataFrame, stances: pd.DataFrame, stage: str) -> list[Score]:
    """Return the measures of one stage. Their names contain the stage.

    sr_original, sr_counter  the mean SR over each side's claims for which it is defined
    cr                       (1/2N) sum (|SR_o - RR_c| + |SR_c - RR_o|) = mean |SR_o + SR_c - 1| over the N pairs with
                             both SR defined: 0 if in each pair one claim is supported as often as the other is refuted
    signed_cr                mean SR_o + SR_c - 1; above 0 if each claim tends to find support
    defined_pairs            N / all pairs; pairs with missing judgements are left out of both numbers
    neutral_share            neutral passages / passages with a stance, pooled over all lists
    neutral_share_per_claim  the same share for each claim, then the mean over claims
    missing_stances          passages without a stance / all passages
    overlap                  mean Jaccard overlap of the two lists' documents, if there is a column `document`
    """
    who = _pairs(pairs)
    table = ratios(pairs, stances, stage)
    original, counter = table.loc[pairs["original"]], table.loc[pairs["counter"]]
    bias: FloatArray = np.asarray(original["sr"].to_numpy() + counter["sr"].to_numpy() - 1, dtype=np.float64)
    status = np.maximum(original["status"].to_numpy(), counter["status"].to_numpy()).astype(np.int8)
    # A claim may be undefined although every stance is known. Then no label by the judge is missing.
    lost = original["n_missing"].to_numpy() + counter["n_missing"].to_numpy()
    status[lost == 0] = 0
    reason = f"{NO_EVIDENCE} on one side"
    # A pair may still become defined while a passage that could decide this has not been judged.
    waits = np.isnan(bias) & (status == NOT_JUDGED_CODE)
    defined = np.where(waits, np.nan, (~np.isnan(bias)).astype(np.float64))
    scores = [
        score_values(
            f"sr_{side}",
            who,
            table["sr"].reindex(pairs[side]).to_numpy(dtype=np.float64),
            reason=NO_EVIDENCE,
            bounds=SHARE,
        )
        for side in ("original", "counter")
    ]
    scores += [
        # The paper's CR is unsigned, so two opposite biases do not cancel. The signed mean beside it shows the direction.
        score_values("cr", who, np.abs(bias), status, reason=reason, bounds=SHARE),
        score_values("signed_cr", who, bias, status, reason=reason, bounds=(-1.0, 1.0)),
        score_values("defined_pairs", who, defined, status),
    ]
    stance = [f"n_{name}" for name in STANCES]
    known = (original[stance].to_numpy() + counter[stance].to_numpy()).sum(axis=1)
    neutral = original["n_neutral"].to_numpy() + counter["n_neutral"].to_numpy()
    rows = np.column_stack([neutral, known, lost, known + lost]).astype(np.float64)
    no_passage = "no passage has a stance"
    scores += [
        Score("neutral_share", who, rows, quotient(0, 1), undefined=no_passage),
        _per_claim(pairs, table),
        Score("missing_stances", who, rows, quotient(2, 3), undefined="there are no passages"),
    ]
    if "document" in stances.columns:
        shared = _overlap(pairs, _stage(stances, stage))
        scores.append(score_values("overlap", who, shared, reason="both lists are empty", bounds=SHARE))
    return [score.rename(f"{score.measure}[{stage}]") for score in scores]


def changes(first: Sequence[Score], second: Sequence[Score]) -> list[Score]:
    """Return the change from one stage to the next in each measure of `retrieval_bias` except SR.

    It is computed on the pairs with a value at both stages.
    """
    scores = []
    for before, other in zip(first, second, strict=True):
        # SR describes single claims. Bias describes pairs, and its change is the effect of a stage.
        if before.measure.startswith("sr_"):
            continue
        name, stage = before.measure.rstrip("]").split("[")
        later = other.measure.rstrip("]").split("[")[1]
        scores.append(score_pair(f"{name}_change[{stage} to {later}]", before, other, lambda a, b: b - a))
    return scores


def rank_move(pairs: pd.DataFrame, stances: pd.DataFrame, before: str, after: str) -> Score:
    """Return the mean number of ranks by which a document moves from one stage to the next.

    For each claim, the mean is over the documents that are in both of its lists. The result is the mean over the claims.
    """
    who = _claims(pairs)
    lists = [stances[stances["stage"] == stage] for stage in (before, after)]
    both = lists[0].merge(lists[1], on=["claim_id", "document"])
    moves = (both["rank_x"] - both["rank_y"]).abs().groupby(both["claim_id"]).mean()
    values = moves.reindex(who.ids).to_numpy(dtype=np.float64)
    return score_values(f"rank_move[{after}]", who, values, reason="no document is in both lists")


def draw_pairs(filled: Filled, key: str, title: str) -> list[Figure]:
    """Return a plot of the support ratios of each pair of claims, for the last stage. Biased pairs are named.

    A pair is biased if both answers support the claim that they were given.
    """
    scores = {score.measure: score for score in filled.scores}
    stage = next((s for s in reversed(STAGES) if f"sr_original[{s}]" in scores), None)
    if stage is None:
        return []
    original, counter = (scores[f"sr_{side}[{stage}]"] for side in ("original", "counter"))
    biased = set(scores["cbr"].units.ids[scores["cbr"].rows[:, 0] == 1]) if "cbr" in scores else set()
    points: list[Json] = [
        {"label": str(pair) if pair in biased else "", "x": x, "y": y}
        for pair, x, y in zip(original.units.ids, original.rows[:, 0], counter.rows[:, 0], strict=True)
        if not np.isnan(x + y)
    ]
    if not points:
        return []
    caption = f"{title}: {filled.system}, {stage}"
    text = (
        f"Each point is a pair. The {len(biased)} pairs whose answers both support their own claim are named."
    )
    data: dict[str, Json] = {
        "points": points,
        "x": "SR of the original claim",
        "y": "SR of the counter claim",
    }
    return [Figure(key, caption, text, "scatter", data)]


def answer_bias(pairs: pd.DataFrame, answers: pd.DataFrame) -> list[Score]:
    """Return two measures: `cbr`, which shows confirmation bias in the answers, and `valid_pairs`.

    `cbr` is the number of pairs in which both answers support their own claims, divided by the number of
    pairs in which both answers are valid. `valid_pairs` is the share of pairs in which both answers are
    valid.

    An answer is valid if it is not empty and was not refused by the system (column `valid`). `Others` is a
    valid answer that does not support its claim. A verdict is missing if the judge refused or its reply
    cannot be parsed. A pair with a missing verdict is left out of both measures. However, if its other answer
    is invalid, `valid_pairs` counts the pair as invalid.
    """
    who = _pairs(pairs)
    both, off, status = _supports(pairs, answers)
    unknown = np.isnan(both).any(axis=1)
    biased = np.where(unknown, np.nan, (both == 1).all(axis=1))
    valid = np.where(off, 0.0, np.where(unknown, np.nan, 1.0))
    return [
        score_values("cbr", who, biased, status, reason="one of the answers is not valid"),
        score_values("valid_pairs", who, valid, status),
    ]


def _pairs(pairs: pd.DataFrame) -> Units:
    for side in ("original", "counter"):
        if column(pairs, side, "pairs").isna().any():
            raise BadInput(f"a pair has no {side} claim")
    return units(pairs, "pairs", "pair_id")


def _claims(pairs: pd.DataFrame) -> Units:
    """Return the claims of both sides as units, clustered by the questions of their pairs."""
    who = _pairs(pairs)
    ids = pd.concat([pairs["original"], pairs["counter"]])
    # Each claim belongs to only one pair. In two pairs, it would count twice in SR.
    if ids.duplicated().any():
        raise BadInput(f"claim '{ids[ids.duplicated()].iloc[0]}' is in two pairs, or twice in the same pair")
    return who.parts_of(pd.Index(ids.to_numpy()), np.tile(np.arange(len(who)), 2))


def _stage(stances: pd.DataFrame, stage: str) -> pd.DataFrame:
    stages = column(stances, "stage", "stances")
    some = stances[stages == stage]
    if some.empty:
        raise BadInput(
            f"there is no stance at stage '{stage}'; available stages: {', '.join(map(str, stages.unique()))}"
        )
    return some


def _per_claim(pairs: pd.DataFrame, table: pd.DataFrame) -> Score:
    stance = table[[f"n_{name}" for name in STANCES]].to_numpy(dtype=np.float64)
    share = ratio(stance[:, STANCES.index("neutral")], stance.sum(axis=1))
    status = table["status"].to_numpy().astype(np.int8)
    return score_values(
        "neutral_share_per_claim", _claims(pairs), share, status, reason="no passage", bounds=SHARE
    )


def _overlap(pairs: pd.DataFrame, some: pd.DataFrame) -> FloatArray:
    documents = column(some, "document", "stances")
    if documents.isna().any():
        raise BadInput("a row of the table of stances has no document")
    claim = column(some, "claim_id", "stances")
    names, distinct = pd.factorize(documents)
    # A claim's documents as numbers. The distinct documents of one side are compared with those of the other side.
    sides = []
    for side in ("original", "counter"):
        where = pd.Index(pairs[side].to_numpy()).get_indexer(pd.Index(claim.to_numpy()))
        here = where >= 0
        sides.append(np.unique(where[here].astype(np.int64) * len(distinct) + names[here]))
    n = len(pairs)
    both = np.intersect1d(sides[0], sides[1], assume_unique=True)
    size = [counts(keys // max(len(distinct), 1), n) for keys in (*sides, both)]
    return ratio(size[2], size[0] + size[1] - size[2])


def _supports(pairs: pd.DataFrame, answers: pd.DataFrame) -> tuple[FloatArray, BoolArray, StatusArray]:
    """Return whether each answer supports its claim [pairs, 2], a mask of the pairs with an invalid answer,
    and each pair's status.

    The first array contains 1, 0, or nan if the answer is invalid or has no verdict.
    """
    who = units(answers, "answers", "claim_id")
    given = encode_labels(column(answers, "label", "answers"), _ANSWERS, "answer")
    status = statuses(answers, ~np.isnan(given))
    invalid = np.zeros(len(given), dtype=bool)
    if "valid" in answers.columns:
        invalid = np.asarray(flags(answers["valid"], "valid") == 0, dtype=bool)
    # A judge's verdict on an empty or refused answer says nothing about a stance.
    given[invalid] = np.nan
    sides, worst, off = [], np.zeros(len(pairs), dtype=np.int8), np.zeros(len(pairs), dtype=bool)
    for side in ("original", "counter"):
        where = who.ids.get_indexer(pd.Index(column(pairs, side, "pairs").to_numpy()))
        sides.append(np.where(where >= 0, given[where], np.nan))
        off |= (where >= 0) & invalid[where]
        worst = np.maximum(worst, np.where(where >= 0, status[where], NOT_JUDGED_CODE)).astype(np.int8)
    # An invalid answer needs no judgement.
    return np.column_stack(sides), off, np.where(off, _OK, worst).astype(np.int8)
