"""Normalise labels: write each number in one form, and warn about labels that look alike."""

import json
import math
from collections.abc import Callable, Iterable, Sequence

from judge.errors import BadInput
from judge.notes import Note
from judge.types import Json, LabelDistribution

NUMERIC = ("interval", "ratio")
MOST_ALIKE = 5
# Tolerance for the sum of probabilities: other tools often round them to two decimals. The probabilities are divided
# by their sum.
ROUNDED = 0.01


def number(value: str) -> str:
    """Return the shortest form of a number, which makes 1, 1.0 and 1e0 the same label.

    Raises BadInput if the value is not a number.
    """
    try:
        # Python reads 1_000 as a number, but in a table of labels it is text.
        parsed = float(value) if "_" not in value else math.nan
    except ValueError:
        parsed = math.nan
    if not math.isfinite(parsed):
        raise BadInput(
            f"'{value}' is not a number, but the level is interval or ratio, which requires numbers"
        )
    # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a label of its own.
    return repr(parsed + 0.0).removesuffix(".0")


def canonical(value: str, field: str | None) -> str:
    """Return the label of a stored value: the value itself or, for a number, its shortest form.

    `field` is the name of a numeric field, or None for other fields. Raises BadInput if the value of a numeric
    field is not a number.
    """
    if field is None:
        return value
    try:
        return number(value)
    except BadInput as e:
        raise BadInput(e.reason, field=field) from e


def alike(names: Iterable[str], kind: str = "labels", *, case: bool = True) -> list[Note]:
    """Return a note for each group of names that differ only in surrounding spaces or, if `case` is true, in
    upper and lower case.

    If there are more than MOST_ALIKE groups, a final note gives the number of the remaining groups.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.strip().casefold() if case else name.strip(), []).append(name)
    many = [group for group in groups.values() if len(group) > 1]
    how = "case or spaces" if case else "spaces"
    notes = [Note("alike", names=tuple(group), kind=kind, how=how) for group in many[:MOST_ALIKE]]
    if len(many) > MOST_ALIKE:
        notes.append(Note("more_alike", n=len(many) - MOST_ALIKE, kind=kind, how=how))
    return notes


def probabilities(
    cell: Json, labels: Sequence[str], label_of: Callable[[str], str | None] = lambda name: name
) -> LabelDistribution:
    """Return a distribution from an object that maps labels to probabilities, or from its JSON string.

    `label_of` translates a name to a label. The key `unassigned` is probability mass that belongs to no label.
    Raises BadInput if the value is not a distribution over the labels.
    """
    try:
        parsed = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError) as e:
        raise BadInput(f"not JSON: {e}") from e
    if not isinstance(parsed, dict) or not labels:
        raise BadInput('must be an object that maps labels to probabilities, such as {"yes": 0.8, "no": 0.2}')
    masses, unassigned = dict.fromkeys(labels, 0.0), 0.0
    for name, p in parsed.items():
        # A probability slightly above 1 is one that another tool rounded.
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1 + ROUNDED:
            raise BadInput(f"{json.dumps(p)} for '{name}' is not a probability (a number from 0 to 1)")
        # A task may have a label of that name. The key then means the label.
        if name == "unassigned" and name not in masses:
            unassigned = float(p)
            continue
        label = label_of(name)
        if label not in masses:
            raise BadInput(
                f"'{name}' has a probability, but is not a label; the labels are {', '.join(masses)}"
            )
        masses[label] += float(p)
    total = math.fsum([*masses.values(), unassigned])
    if abs(total - 1) > ROUNDED:
        raise BadInput(f"the probabilities sum to {total:.4g}, not to 1")
    return LabelDistribution({label: p / total for label, p in masses.items()}, unassigned / total)
