"""Who gave which label, wherever it was read from: what agreement is computed on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judge.errors import BadInput
from judge.stats import MISSING, Ratings
from judge.stats.ratings import BoolArray, FloatArray
from judge.types import AnnotatorKind

NUMERIC = ("interval", "ratio")
MOST_ALIKE = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Sheet:
    """Labels of one field: `ratings` is the table, `kinds` says who is who.

    `asked[u, a]` says whether a missing label counts: a judgement without a label (unparsed, refused
    ...) was asked for, a unit that nobody gave to that annotator was not. `scores` holds the numbers of
    an interval or ratio field, nan for missing. `notes` are for the reader of every number. `source` is the file
    that it was read from, for complaints.
    """

    field: str
    level: str
    ratings: Ratings
    asked: BoolArray
    kinds: Mapping[str, AnnotatorKind]
    notes: tuple[str, ...] = ()
    scores: FloatArray | None = None
    source: str = ""

    def of_kind(self, *kinds: str) -> list[str]:
        """The annotators of these kinds, in the order of the table."""
        return [name for name in self.ratings.annotators if self.kinds[name] in kinds]

    def coverage(self, *names: str) -> float | None:
        """Of the units that all of these were asked about, the share that all of them labelled."""
        columns = [self.ratings.annotators.index(name) for name in names]
        asked = self.asked[:, columns].all(axis=1)
        labelled = (self.ratings.codes[:, columns] != MISSING).all(axis=1)
        return float((asked & labelled).sum() / asked.sum()) if asked.any() else None


def number(value: str) -> str:
    """The shortest spelling of a number, so that 1, 1.0 and 1e0 are one label.

    Raises BadInput for anything else.
    """
    try:
        found = float(value) if "_" not in value else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise BadInput(f"'{value}' is not a number, which an interval or ratio level needs")
    return repr(found + 0.0).removesuffix(".0")


def alike(names: Iterable[str], kind: str = "labels", *, case: bool = True) -> list[str]:
    """A note for each group of names that differ only in spaces around them, or (`case`) in case.

    Past MOST_ALIKE groups one note counts the rest.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.strip().casefold() if case else name.strip(), []).append(name)
    many = [group for group in groups.values() if len(group) > 1]
    how = "case or spaces" if case else "spaces"
    notes = [
        f"{', '.join(repr(name) for name in group)} are different {kind}: they differ in {how} only"
        for group in many[:MOST_ALIKE]
    ]
    if len(many) > MOST_ALIKE:
        notes.append(f"{len(many) - MOST_ALIKE:,} more groups of {kind} differ in {how} only")
    return notes
