"""Where the values of an item, or of a passage, stand in a row: our own keys, the user's maps, and what is left over."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from judge.errors import BadInput
from judge.importers import fields, literals
from judge.importers.paths import MISSING, follow, without
from judge.types import Vote


class RowLevel:
    """Where the values of an item, or of a passage, stand in an object.

    A name that no map speaks of is read from the key of that name (after `prefix`), unless a map
    reads that very key as something else (`shadow`). `met` collects the mapped paths that exist.
    """

    def __init__(
        self,
        maps: Mapping[str, str],
        names: Iterable[str],
        *,
        shadow: set[str],
        cells: bool = False,
        as_text: Collection[str] = (),
        prefix: str = "",
    ) -> None:
        self.paths = {name: maps[name] for name in names if name in maps}
        self.groups = {
            group: [(f.removeprefix(f"{group}."), p) for f, p in maps.items() if f.startswith(f"{group}.")]
            for group in ("gold", "votes")
        }
        self.met: set[str] = set()
        self._all = list(maps.values())
        self._cells, self._as_text = cells, as_text
        self._prefix = prefix
        own = {n: prefix + n for n in (*names, *self.groups) if n not in self.paths}
        self._keys = {n: key for n, key in own.items() if key not in shadow}
        self._shadow = shadow

    def getter(self, source: Mapping[str, Any]) -> Any:
        """`value` for one object."""
        return lambda name: self.value(source, name)

    def value(self, source: Mapping[str, Any], name: str) -> Any:
        """What stands for `name`, None when nothing does."""
        path = self.paths.get(name)
        if path is None:
            found = source.get(self._keys[name]) if name in self._keys else None
        else:
            found = self._follow(source, path)
        column = path or self._keys.get(name, name)
        return decoded(found, name, column) if self._cells and column not in self._as_text else found

    def votes(self, source: Mapping[str, Any], labels: fields.Labels, place: str) -> list[Vote]:
        """Gold and people's labels; a map for a field wins over the row's own object."""
        votes: list[Vote] = []
        for group, read in (("gold", labels.gold), ("votes", labels.people)):
            found = dict(fields.mapping(self.value(source, group), f"{place}{group}"))
            start = f"{self._prefix}{group}."
            for key in source:
                if key.startswith(start) and key not in self._shadow and len(key) > len(start):
                    found[key.removeprefix(start)] = source[key]
            for field, path in self.groups[group]:
                found[field] = self._follow(source, path)
            for field, raw in found.items():
                value = decoded(raw, group, group) if self._cells and group == "votes" else raw
                votes += read(field, value, f"{place}{group}.{field}")
        return votes

    def rest(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """What no name, gold, vote or map of this level has used."""
        used = set(self._keys.values())
        starts = tuple(f"{self._prefix}{group}." for group in self.groups)
        left = {k: v for k, v in source.items() if k not in used and not k.startswith(starts)}
        if self._cells:
            left = {k: v for k, v in left.items() if v is not None}
        return without(left, self._all) if self._all else left

    def _follow(self, source: Mapping[str, Any], path: str) -> Any:
        found = follow(source, path)
        if found is MISSING:
            return None
        self.met.add(path)
        return found


def decoded(value: Any, name: str, column: str) -> Any:
    """A CSV cell as the list or object it holds, where `name` may be one; refused where `name` is text."""
    if not isinstance(value, str) or name not in (*_LISTS, *_STRUCTURED, *_PLAIN):
        return value
    if name in _STRUCTURED:
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"not JSON: {error}", field=name) from error
    try:
        found = literals.parsed(value)
    except ValueError as error:
        raise BadInput(f"{error} (--as-text {column} takes it as text)", field=column) from None
    if name in _PLAIN and found:
        what = "an object" if isinstance(found, dict) else f"a list of {len(found)}"
        told = f"a cell that holds {what} is mapped as text; --map passages={column}, or --as-text {column}"
        raise BadInput(told, field=column)
    return value if name in _PLAIN or found is None else found


_LISTS = ("passages", "reference_answers")
_PLAIN = ("question", "claim", "answer", "text")
_STRUCTURED = ("options", "gold", "votes", "meta")
