"""A leaderboard: one paper's measures for several systems (or judges), compared on the rows that all of them share.

Each measure is computed twice: on the rows for which all contenders have a value, and on each contender's own
rows. Without the shared rows, a system that lacks answers or labels for some rows might be compared on easier
rows. On the shared rows, each contender is compared with the best one by a paired test clustered by question.
The p values of a measure are adjusted by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Unpack

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.labels.reference import ReferenceLabels
from judge.papers.engine.correction import Correction, correct
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.published import Published
from judge.papers.engine.reading import Lacking
from judge.papers.engine.result import ALL, Result, list_printed, scores_of, strata
from judge.papers.engine.shared_rows import items_of, score_shared, sum_by_question
from judge.papers.engine.steps import Incomplete
from judge.run_options import describe
from judge.scores.score import Score, measure_all, split_by_stratum
from judge.stats.bootstrap import IntervalOptions
from judge.stats.multiple import holm
from judge.stats.paired import Paired, paired_difference, pseudo_values
from judge.store.study import Store
from judge.types import Json, Measure, attributes

Axis = Literal["system", "judge"]
Mark = Literal["best", "tied", "worse", ""]
ALPHA = 0.05
# Sums in another order differ in their last digits. Values closer than this are equal.
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class Cell:
    """One contender's value for one measure.

    `shared` is the value on the shared rows, and `own_rows` is the value on all of the contender's rows.
    `against` is the difference from the best contender, with its p value. `p_holm` is this p value adjusted
    for the number of comparisons.

    `mark` is "best", "tied" (no significant difference from the best) or "worse". Several contenders with
    equal values can be "best". If neither high nor low values of the measure are better, `mark` is empty.
    """

    contender: str
    shared: Measure
    own_rows: Measure
    mark: Mark = ""
    against: Paired | None = None
    p_holm: float | None = None

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        # The best is not tested, but its cell has the same keys, so that all cells have one shape.
        against = self.against or Paired(None, None, None, None, 0)
        return {
            "contender": self.contender,
            "shared": self.shared.as_json(),
            "own": self.own_rows.as_json(),
            "mark": self.mark or None,
            "difference_to_best": against.difference,
            **attributes(against, "low", "high", "p"),
            "p_holm": self.p_holm,
            "reason": against.reason,
        }


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One measure in one stratum, with a cell for each contender.

    `stratum` is ALL if the row covers all strata. `better` is 1 if greater is better, -1 if smaller is
    better, else 0. `by_corrected` is True if the marks compare values that are corrected with human labels.
    No tests are computed for these values.
    """

    stratum: str
    measure: str
    better: int
    cells: Sequence[Cell]
    by_corrected: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """The data of a leaderboard. Its table, page and files are written from them."""

    paper: Paper
    axis: Axis
    dataset: str
    contenders: Sequence[str]
    rows: Sequence[BoardRow]
    readings: Mapping[str, str]
    runs: Sequence[Mapping[str, Json]]
    notes: Sequence[str]
    published: Sequence[Published]
    corrections: Mapping[str, Correction]
    confidence: float
    lacking: Sequence[Lacking] = ()

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {
            "board": self.paper.name,
            "title": self.paper.title,
            **attributes(self, "axis", "dataset", "contenders", "readings", "runs"),
            "rows": [
                {
                    "stratum": row.stratum or None,
                    "measure": row.measure,
                    "better": {1: "greater", -1: "smaller", 0: None}[row.better],
                    "ordered_by": "corrected" if row.by_corrected else "judge",
                    "cells": [cell.as_json() for cell in row.cells],
                }
                for row in self.rows
            ],
            "alpha": ALPHA,
            "notes": list(self.notes),
            "lacking": [gap.as_json() for gap in self.lacking],
            "published": [p.as_json() for p in self.published],
            "corrections": {name: correction.as_json() for name, correction in self.corrections.items()},
        }


def board(
    store: Store,
    paper: Paper,
    request: ScoreRequest,
    contenders: Sequence[str],
    *,
    axis: Axis = "system",
    judges: str | None = None,
    by: str | None = None,
    reference: str | None = None,
    **options: Unpack[IntervalOptions],
) -> Board:
    """Compute a paper's scores for each contender and compare the contenders.

    A contender is given by the name of a system or, if `axis` is "judge", of a model. `judges`, `by` and
    `reference` have the same meaning as in `judge.papers.engine.result.score`. Raises UsageError if there are fewer
    than two contenders, or if a contender is named twice. If data are missing, raises Incomplete with the
    missing steps of all contenders.
    """
    names = list(contenders)
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            f"a leaderboard compares two or more {axis}s, each named once; got {', '.join(names) or 'none'}"
        )
    # First of all: an unknown name is an error before any paper is read.
    reference_labels = None if reference is None else ReferenceLabels(store, reference)
    scores_of_name: dict[str, list[Score]] = {}
    studies: dict[str, PaperStudy] = {}
    steps = []
    for name in names:
        request_of_name = (
            replace(request, system=name) if axis == "system" else replace(request, models=(name,))
        )
        try:
            scores_of_name[name], studies[name] = scores_of(store, paper, request_of_name, judges)
        except Incomplete as missing:
            # All contenders are read before it stops, so that one message lists every missing run.
            steps += missing.steps
    if steps:
        raise Incomplete(paper.name, steps)
    first = studies[names[0]]
    groups: dict[str, dict[str, list[Score]]] = {ALL: scores_of_name}
    if by is not None:
        # Strata are of questions, which all contenders share, so one reading is enough.
        of = strata(first, by)
        for name, scores in scores_of_name.items():
            for stratum, some in split_by_stratum(scores, of).items():
                # A contender without units in a stratum is missing here, and `_rows` names it.
                groups.setdefault(stratum, {})[name] = some
    item_of = items_of(store)
    rows = [
        row
        for stratum, each in groups.items()
        for row in _rows(paper, stratum, each, names, item_of, options)
    ]
    measures = {row.measure for row in rows}
    confidence = options.get("confidence", 0.95)
    corrections = {
        name: correct(study, scores_of_name[name], reference_labels, confidence)
        for name, study in studies.items()
        if reference_labels is not None
    }
    # Judges of one system all estimate one value, so their corrected values are no ranking of judges.
    if corrections and axis == "system":
        rows = [_mark_best_corrected(row, corrections) for row in rows]
    return Board(
        paper,
        axis,
        first.dataset,
        names,
        rows,
        first.options,
        [
            {"contender": name, **r.as_json()}
            for name, study in studies.items()
            for r in study.judges.runs_read
        ],
        [
            *_different_settings(studies),
            *dict.fromkeys(
                f"{name}: {text}"
                for name, study in studies.items()
                for text in (*study.notes, *_describe_runs(study))
            ),
        ],
        list_printed(paper, measures),
        corrections,
        confidence,
        list(dict.fromkeys(gap for study in studies.values() for gap in study.lacking)),
    )


def get_corrected_value(corrections: Mapping[str, Correction], row: BoardRow, name: str) -> Measure | None:
    """Return a contender's value on its own rows, corrected with human labels.

    Return None if the measure has no corrected value. Measures in a single stratum never have one.
    """
    correction = corrections.get(name)
    # Human labels correct the measure on all rows; a stratum of it has no correction.
    if correction is None or row.stratum or row.measure not in correction.measures:
        return None
    ppi = correction.measures[row.measure].ppi
    return None if ppi.value is None else ppi


def _mark_best_corrected(row: BoardRow, corrections: Mapping[str, Correction]) -> BoardRow:
    """Return the row with new marks, which compare the corrected values.

    A contender is tied with the best if their intervals overlap. Intervals that do not overlap are
    conservative evidence of a difference. The row is returned unchanged if a contender has no corrected
    value, or if neither high nor low values are better.
    """
    values = [get_corrected_value(corrections, row, cell.contender) for cell in row.cells]
    known = [m for m in values if m is not None and m.value is not None]
    if not row.better or len(known) < len(values):
        return row
    top = max(known, key=lambda m: row.better * (m.value or 0.0))
    cells = []
    for cell, m in zip(row.cells, known, strict=True):
        mark: Mark = ""
        if abs((m.value or 0.0) - (top.value or 0.0)) <= _EQUAL:
            mark = "best"
        elif m.low is not None and m.high is not None and top.low is not None and top.high is not None:
            mark = "tied" if m.low <= top.high and top.low <= m.high else "worse"
        # The paired tests compare the judge's values, which may order the contenders differently.
        cells.append(replace(cell, mark=mark, against=None, p_holm=None))
    return replace(row, cells=cells, by_corrected=True)


def make_single(result: Result, confidence: float) -> Board:
    """Return the score of one system or one judge as a board with a single contender and no comparison."""
    name = (
        result.system or ", ".join(dict.fromkeys(str(run["model"]) for run in result.runs)) or result.dataset
    )
    rows = [
        BoardRow(
            line.stratum,
            line.measure.measure,
            result.paper.better(line.measure.measure),
            [Cell(name, line.measure, line.measure)],
        )
        for line in result.lines
    ]
    return Board(
        result.paper,
        "system" if result.system else "judge",
        result.dataset,
        [name],
        rows,
        result.readings,
        [{"contender": name, **run} for run in result.runs],
        result.notes,
        result.published,
        {} if result.correction is None else {name: result.correction},
        confidence,
        result.lacking,
    )


def _different_settings(studies: Mapping[str, PaperStudy]) -> list[str]:
    """Return a note for each role (judge, system) in which the contenders' runs have different settings."""
    notes = []
    for role in ("judge", "system"):
        of = {
            name: [
                words
                for asker, settings in study.judges.settings_read().items()
                if asker[0] == role
                for words in settings
            ]
            for name, study in studies.items()
        }
        settings_of_name = {name: " and ".join(words) for name, words in of.items() if words}
        # Different settings may explain a difference between contenders, so the reader must be told.
        if len(set(settings_of_name.values())) > 1:
            each = "; ".join(f"{name}: {words}" for name, words in settings_of_name.items())
            notes.append(f"the contenders' {role} runs have different settings: {each}")
    return notes


def _describe_runs(study: PaperStudy) -> list[str]:
    """Describe the runs on which a contender's scores are based, each with its settings and its number of units."""
    lines = []
    for run_read in study.judges.runs_read:
        n = sum(run_read.counts.values())
        lines.append(
            f"run {run_read.run.run_id}: {run_read.run.task} by {run_read.run.model}, "
            f"{'imported' if run_read.run.imported else describe(run_read.run.settings)}, {n} units"
        )
    others = study.judges.list_others()
    return [*lines, *([f"runs not read: {', '.join(others)}"] if others else [])]


def list_systems(store: Store, paper: Paper, request: ScoreRequest) -> list[str]:
    """List every system in the data set that this paper can score, in order of appearance.

    These are the systems with stored answers, and the systems whose answers were generated by a run. Raises
    UsageError if there are none.
    """
    study = PaperStudy(store, paper, request)
    if paper.contenders is not None:
        names = paper.contenders(study)
    else:
        tasks = {task for part in paper.parts for task in (*part.tasks, *part.instead)}
        generated = [
            r.options.get("system")
            # Runs come newest first, and systems are listed in order of appearance.
            for r in reversed(study.judges.runs)
            if r.task_id in tasks or "context" in r.options
        ]
        names = [s.system for s in study.rows.systems()] + [str(s) for s in generated if s]
    if not names:
        raise UsageError(f"no system has answers in '{study.dataset}': {study.import_words('FILE')}")
    return list(dict.fromkeys(names))


def _rows(
    paper: Paper,
    stratum: str,
    each: Mapping[str, Sequence[Score]],
    names: Sequence[str],
    item_of: pd.Series,
    options: IntervalOptions,
) -> list[BoardRow]:
    """Return the rows of a stratum, one per measure.

    A measure is compared only if every contender has a value for it. If not, the cells give the reason.
    """
    of = {name: {score.measure: score for score in each.get(name, ())} for name in names}
    wanted = list(dict.fromkeys(m for of_name in of.values() for m in of_name))
    # If one contender has no value at all, no rows are shared, so the measure counts as missing.
    lacking = {m: [name for name in names if m not in of[name] or not of[name][m].used.any()] for m in wanted}
    scores = {m: _list_scores(m, [of[name].get(m) for name in names]) for m in wanted}
    own_scores = [score for m in wanted for score in scores[m]]
    on_shared_rows = [score for m in wanted for score in score_shared(scores[m], item_of)]
    on_own_rows = measure_all(own_scores, **options)
    shared = measure_all(on_shared_rows, **options)
    rows = []
    for n, measure in enumerate(wanted):
        part = slice(n * len(names), (n + 1) * len(names))
        cells = [Cell(name, s, o) for name, s, o in zip(names, shared[part], on_own_rows[part], strict=True)]
        better = paper.better(measure)
        if lacking[measure]:
            reason = f"no rows are shared: the measure has no value for {', '.join(lacking[measure])}"
            # If no contender has a value, the measure's own reason is more useful than a list of all names.
            nobody = len(lacking[measure]) == len(names)
            cells = [
                replace(c, shared=replace(c.shared, reason=(nobody and c.own_rows.reason) or reason))
                for c in cells
            ]
        # A measure without a better side has no best, so nothing is tested.
        elif better:
            cells = _mark_cells(cells, on_shared_rows[part], better, options.get("confidence", 0.95))
        rows.append(BoardRow(stratum, measure, better, cells))
    return rows


def _list_scores(measure: str, given: Sequence[Score | None]) -> list[Score]:
    """Return one score per contender. If a contender does not have the measure, its score has no units."""
    there = next(score for score in given if score is not None)
    # Every contender needs a cell in every row.
    none = there.restrict(np.zeros(len(there.units), dtype=bool))
    return [none if score is None else score for score in given]


def _mark_cells(cells: Sequence[Cell], scores: Sequence[Score], better: int, confidence: float) -> list[Cell]:
    """Mark the best cell, and mark each other cell as tied or worse.

    Each other cell is tested against the best one, and the p values are adjusted by Holm's method.
    """
    values = [better * c.shared.value if c.shared.value is not None else -np.inf for c in cells]
    top = max(values)
    if top == -np.inf:
        return list(cells)
    firsts = [n for n, value in enumerate(values) if value >= top - _EQUAL]
    # Of several equally good contenders, the others are always tested against the same one, whatever the order of names.
    best = min(firsts, key=lambda n: cells[n].contender)
    sums = sum_by_question(scores)
    pseudo = [pseudo_values(s, score.value) for s, score in zip(sums, scores, strict=True)]
    tests = [
        None
        if n == best or cell.shared.value is None
        # exact: the t-test rejects too often if only a few questions with one 0/1 outcome differ.
        # most: a t interval can exceed the largest possible difference, and is truncated there.
        else paired_difference(pseudo[best], pseudo[n], confidence, exact=True, most=scores[n].span)
        for n, cell in enumerate(cells)
    ]
    # Holm counts the tests that were made. A contender without a value was not tested.
    tested = [t.p for t in tests if t is not None and t.p is not None]
    adjusted = iter(holm(tested).tolist() if tested else [])
    marked = []
    for n, (cell, test) in enumerate(zip(cells, tests, strict=True)):
        if n == best:
            marked.append(replace(cell, mark="best"))
        elif test is None or test.p is None:
            marked.append(replace(cell, against=test, mark="best" if n in firsts else ""))
        else:
            p = next(adjusted)
            mark: Mark = "best" if n in firsts else "worse" if p <= ALPHA else "tied"
            marked.append(replace(cell, against=test, p_holm=p, mark=mark))
    return marked
