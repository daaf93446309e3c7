"""JSON objects as they come from people's files: no key twice, no field without a name, no number beyond any float."""

from collections.abc import Sequence
from typing import Any

NAMELESS = "a field without a name"


class BadObject(ValueError):
    """JSON by its syntax, but not what one object can mean."""


def twice(name: str) -> str:
    """What is wrong with an object that has this key twice: readers differ in which of the values they take."""
    return f"the key '{name}' stands twice in one object"


def whole_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The `object_pairs_hook` of a strict reader. Raises BadObject for a key that stands twice or is blank."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise BadObject(twice(next(n for n in names if names.count(n) > 1)))
    if not all(map(str.strip, found)):
        raise BadObject(NAMELESS)
    return found
