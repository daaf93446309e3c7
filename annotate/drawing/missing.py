"""Labels of a judge that are missing on too many units, or on too many of the units to which people gave one label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judge.labels.panel import Panel
from judge.stats import MISSING, Ratings
from judge.stats.looks import MOST_MISSING

LEAST_UNITS = 10
"""Units of one label from which on a missing share says something: fewer show a label in no direction either."""


def missing_labels(panel: Panel, judge: str, judged: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Return on how many of the `judged` units the judge has no label, where these are too many. Empty: they are not.

    A judge that fails on most units of a rare label is missing on few units of all. What is left would then show it better
    than it is, so the units of each label count by themselves.
    """
    table = panel.table
    missing = panel.labels_of(judge) == MISSING
    others = panel.people or [name for name in table.annotators if name not in panel.judges]
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
