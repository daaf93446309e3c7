"""JSON objects as they come from people's files: no key twice, no field without a name, no number beyond any float."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAMELESS = "a field without a name"


def twice(name: str) -> str:
    """What is wrong with an object that has this key twice: readers differ in which of the values they take."""
    return f"the key '{name}' stands twice in one object"


def whole_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The `object_pairs_hook` of a strict reader. Raises ValueError for a key that stands twice or is empty."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(twice(next(n for n in names if names.count(n) > 1)))
    if "" in found:
        raise ValueError(NAMELESS)
    return found
