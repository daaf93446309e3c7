"""Strict parsing of users' JSON objects: no duplicate key, no empty key, no number beyond a float."""

from collections.abc import Sequence
from typing import Any

NAMELESS = "a field without a name"


class BadObject(ValueError):
    """Valid JSON syntax that cannot be the meaning of one object."""


def twice(name: str) -> str:
    """Return the message for a duplicate key: JSON readers differ in which of the values they use."""
    return f"the key '{name}' occurs twice in one object"


def whole_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object for a strict reader (`object_pairs_hook`).

    Raises BadObject for a duplicate or blank key.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise BadObject(twice(next(n for n in names if names.count(n) > 1)))
    if not all(map(str.strip, result)):
        raise BadObject(NAMELESS)
    return result
