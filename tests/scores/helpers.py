"""Small tables, and measures by name without intervals."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from judge.scores.compare import Difference, compare_all
from judge.scores.score import Score
from judge.types import Measure


def table(columns: str, *rows: Iterable[Any]) -> pd.DataFrame:
    """A DataFrame from rows; None stays None."""
    names = columns.split()
    return pd.DataFrame(
        {name: pd.Series([list(row)[i] for row in rows], dtype=object) for i, name in enumerate(names)}
    )


def points(scores: Iterable[Score]) -> dict[str, Measure]:
    """Each measure by its name, without an interval."""
    return {score.measure: score.measure_score(interval=None) for score in scores}


def numbers(scores: Iterable[Score]) -> dict[str, float | None]:
    """Each value by its name."""
    return {name: measure.value for name, measure in points(scores).items()}


def compare(first: Score, second: Score, **how: Any) -> Difference:
    """One measure in two runs."""
    [found] = compare_all([first], [second.rename(first.measure)], **how)
    return found
