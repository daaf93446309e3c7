"""Restrict scores to the rows that all contenders share, and compare two contenders with a paired test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from judge.scores.attribution import INVENTED
from judge.scores.compare import Difference
from judge.scores.score import NO_ANSWER, STATUSES, Score, measure_all
from judge.stats.bootstrap import IntervalOptions
from judge.stats.paired import paired_difference, pseudo_values
from judge.stats.ratings import FloatArray
from judge.store.study import Store
from judge.types import Status

# Units of these kinds stand for their item, which systems share: an answer that is missing has its item's unit.
_OF_ITEMS = ("item", "answer", "sentence", "citation", "claim", "nugget")
# How a unit ends that has no value for no fault of the judge.
_NOT_LOST = [STATUSES.index(Status.OK), STATUSES.index(NO_ANSWER)]


def differences(
    store: Store, first: Sequence[Score], second: Sequence[Score], **options: Unpack[IntervalOptions]
) -> list[Difference]:
    """Return the difference `second` - `first` in each measure that both have.

    The measures are computed on the shared rows, and the differences are tested as on a leaderboard.
    """
    theirs = {score.measure: score for score in second}
    item_of = items_of(store)
    pairs = [
        score_shared([score, theirs[score.measure]], item_of) for score in first if score.measure in theirs
    ]
    measures = iter(measure_all([score for pair in pairs for score in pair], **options))
    confidence = options.get("confidence", 0.95)
    changes = []
    for pair in pairs:
        mine, other = next(measures), next(measures)
        pseudo_first, pseudo_second = (
            pseudo_values(s, score.value) for s, score in zip(sum_by_question(pair), pair, strict=True)
        )
        # exact: the t-test rejects too often if only a few questions with one 0/1 outcome differ.
        test = paired_difference(pseudo_first, pseudo_second, confidence, exact=True, most=pair[0].span)
        undefined = mine.reason or other.reason or test.reason
        change = replace(
            other,
            measure=f"{mine.measure}_difference",
            value=None if undefined else test.difference,
            low=None if undefined else test.low,
            high=None if undefined else test.high,
            n_clusters=test.n_clusters,
            reason=undefined,
            notes=(),
        )
        changes.append(Difference(mine, other, change, None if undefined else test.p))
    return changes


def items_of(store: Store) -> pd.Series:
    """Return the item of each unit that is an item, an answer or a part of an answer, by unit number."""
    marks = ",".join("?" * len(_OF_ITEMS))
    query = f"SELECT rowid, item_id FROM units WHERE kind IN ({marks})"
    rows = store.conn.execute(query, _OF_ITEMS).fetchall()
    return pd.Series([row[1] for row in rows], index=[row[0] for row in rows], dtype=object)


def score_shared(scores: Sequence[Score], item_of: pd.Series) -> list[Score]:
    """Return each contender's score on the rows for which all contenders have a value.

    Rows are matched by the keys of `_keys`. If a judge failed on any unit in a group, the group is left out for
    all contenders.
    """
    keys = [_keys(score, item_of) for score in scores]
    common: pd.Index[Any] | None = None
    for score, (key, group) in zip(scores, keys, strict=True):
        whole = score.used
        if score.status is not None:
            # A system must not look better because the judge failed on one of its sentences.
            lost = ~score.used & ~np.isin(score.status, _NOT_LOST)
            whole = whole & ~group.isin(group[lost])
        valued = key[whole].unique()
        common = valued if common is None else common[common.isin(valued)]
    assert common is not None
    return [score.restrict(key.isin(common)) for score, (key, _) in zip(scores, keys, strict=True)]


def _keys(score: Score, item_of: pd.Series) -> tuple[pd.Index[Any], pd.Index[Any]]:
    """Return the key and the group of each unit. Units of different scores are matched by their keys.

    For an item, an answer or a part of an answer, the key is the item. Any other unit, such as a passage, is
    its own key. In both cases, the group is the same as the key. If a score mixes several kinds of units, the
    key consists of the unit's kind and question, and the group is the question.
    """
    ids = score.units.ids
    if isinstance(ids, pd.MultiIndex):
        question = pd.Index(score.units.questions.to_numpy(dtype=object)[score.units.clusters])
        return pd.MultiIndex.from_arrays([ids.get_level_values(0), question]), question
    values = ids.to_numpy(dtype=object)
    if not pd.api.types.is_integer_dtype(ids.dtype):
        # An invented citation has no unit of its own, so the unit of its sentence gives its item.
        ids = pd.Index([_find_unit(name) for name in values], dtype=object)
    items = item_of.reindex(ids)
    values = np.where(items.notna().to_numpy(), items.to_numpy(dtype=object), values)
    key: pd.Index[Any] = pd.Index(values)
    return key, key


def _find_unit(name: object) -> object:
    """Return the unit of the sentence for the id of an invented citation, and any other id unchanged."""
    sentence, mark, _ = name.partition(INVENTED) if isinstance(name, str) else ("", "", "")
    return int(sentence) if mark and sentence.isdecimal() else name


def sum_by_question(scores: Sequence[Score]) -> list[FloatArray]:
    """Sum each score's values by question, and return one array for each score.

    The last column is the number of units. All arrays have the same questions in the same order.
    """
    shared: pd.Index[Any] | None = None
    for score in scores:
        there = score.units.questions[np.unique(score.units.clusters[score.used])]
        shared = there if shared is None else shared[shared.isin(there)]
    assert shared is not None
    # Sorted by name, so that the order of rows or systems does not affect the result.
    shared = shared[np.argsort(shared.to_numpy(dtype=object).astype(str), kind="stable")]
    all_sums = []
    for score in scores:
        used = score.used
        position = shared.get_indexer(score.units.questions)[score.units.clusters[used]]
        known = position >= 0
        rows = np.column_stack([score.rows[used][known], np.ones(int(known.sum()))])
        sums = np.zeros((len(shared), rows.shape[1]))
        np.add.at(sums, position[known], rows)
        all_sums.append(sums)
    return all_sums
