"""Check whether a judge lacks labels on too many units, or on too many units of one label."""

from collections.abc import Sequence

import numpy as np

from judge.labels.panel import Panel
from judge.stats import MISSING, Ratings
from judge.stats.looks import MOST_MISSING

# A verdict makes no statement on a label with fewer units either.
LEAST_UNITS = 10
"""The fewest units of a label for which the share of missing labels is checked."""


def missing_labels(panel: Panel, judge: str, judged: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Return on how many of the `judged` units the judge has no label; empty if these are not too many."""
    table = panel.table
    missing = panel.labels_of(judge) == MISSING
    others = panel.people or [name for name in table.annotators if name not in panel.judges]
    # A judge that fails on most units of a rare label lacks few labels in all, and would seem better than it
    # is. So the units of each label count separately.
    parts = [("", judged)]
    for code, label in enumerate(panel.domain):
        given = np.zeros_like(judged)
        for other in others:
            given |= panel.labels_of(other) == code
        if (judged & given).sum() >= LEAST_UNITS:
            parts.append((f" labelled '{label}'", judged & given))
    for words, part in parts:
        units = np.flatnonzero(part & missing)
        if len(units) > MOST_MISSING * int(part.sum()):
            return f"{len(units):,} of {int(part.sum()):,} units{words} ({table.units[units[0]]} ...)"
    return ""


def among(ratings: Ratings, units: Sequence[str] | set[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    chosen = set(units)
    return np.array([unit in chosen for unit in ratings.units], dtype=np.bool_)
