"""How labels are spelled: numbers in one way, and labels that look alike."""

from __future__ import annotations

import math
from collections.abc import Iterable

from judge.errors import BadInput

NUMERIC = ("interval", "ratio")
MOST_ALIKE = 5


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


def canonical(value: str, field: str | None) -> str:
    """The label that a stored value stands for: itself, or a number in its shortest spelling.

    `field` names a field of numbers, None one of labels. Raises BadInput.
    """
    if field is None:
        return value
    try:
        return number(value)
    except BadInput as e:
        raise BadInput(e.reason, field=field) from e


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
