"""How labels are spelled: numbers in one way, and labels that look alike."""

import json
import math
from collections.abc import Callable, Iterable, Sequence

from judge.errors import BadInput
from judge.notes import Note
from judge.types import Json, LabelDistribution

NUMERIC = ("interval", "ratio")
MOST_ALIKE = 5
ROUNDED = 0.01
"""Probabilities are written rounded: their sum may be so far from 1, and they are divided by it."""


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


def alike(names: Iterable[str], kind: str = "labels", *, case: bool = True) -> list[Note]:
    """A note for each group of names that differ only in spaces around them, or (`case`) in case.

    Past MOST_ALIKE groups one note counts the rest.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.strip().casefold() if case else name.strip(), []).append(name)
    many = [group for group in groups.values() if len(group) > 1]
    how = "case or spaces" if case else "spaces"
    notes = [Note("alike", names=tuple(group), what=kind, how=how) for group in many[:MOST_ALIKE]]
    if len(many) > MOST_ALIKE:
        notes.append(Note("more_alike", n=len(many) - MOST_ALIKE, what=kind, how=how))
    return notes


def probabilities(
    cell: Json, labels: Sequence[str], label_of: Callable[[str], str | None] = lambda name: name
) -> LabelDistribution:
    """Labels with their probabilities, an object or JSON text of one; `label_of` gives the label a name stands for.

    What stands under `unassigned` belongs to no label. Raises BadInput for what is no distribution over the labels.
    """
    try:
        found = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError) as e:
        raise BadInput(f"not JSON: {e}") from e
    if not isinstance(found, dict) or not labels:
        raise BadInput('must be an object of labels and probabilities: {"yes": 0.8, "no": 0.2}')
    masses, unassigned = dict.fromkeys(labels, 0.0), 0.0
    for name, p in found.items():
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1 + ROUNDED:
            raise BadInput(f"{json.dumps(p)} of '{name}' is no probability")
        if name == "unassigned" and name not in masses:
            unassigned = float(p)
            continue
        label = label_of(name)
        if label not in masses:
            raise BadInput(f"a probability of '{name}', which is none of {', '.join(masses)}")
        masses[label] += float(p)
    total = math.fsum([*masses.values(), unassigned])
    if abs(total - 1) > ROUNDED:
        raise BadInput(f"the probabilities sum to {total:.4g}, not to 1")
    return LabelDistribution({label: p / total for label, p in masses.items()}, unassigned / total)
