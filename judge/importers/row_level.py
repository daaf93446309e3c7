"""Look up the values of an item or a passage in a row, and collect the unused keys.

Values are looked up under our own keys, or with the user's maps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from judge.errors import BadInput
from judge.importers import cells, fields
from judge.importers.paths import MISSING, follow, remove_paths
from judge.types import Vote


class RowLevel:
    """Looks up the values of an item or a passage in an object.

    A field that the user has mapped is read from its path. Any other field is read from the key `prefix`
    followed by the field's name, unless this key is in `shadow`. The user has mapped the keys in `shadow` to
    other fields. `met` collects the mapped paths that were found.
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
        default_keys = {n: prefix + n for n in (*names, *self.groups) if n not in self.paths}
        self._keys = {n: key for n, key in default_keys.items() if key not in shadow}
        self._shadow = shadow

    def getter(self, source: Mapping[str, Any]) -> Any:
        """Return a function that calls `value` for this object."""
        return lambda name: self.value(source, name)

    def value(self, source: Mapping[str, Any], name: str) -> Any:
        """Return the value of the field `name`, or None if it has no value."""
        path = self.paths.get(name)
        if path is None:
            value = source.get(self._keys[name]) if name in self._keys else None
        else:
            value = self._follow(source, path)
        column = path or self._keys.get(name, name)
        return decode_cell(value, name, column) if self._cells and column not in self._as_text else value

    def votes(self, source: Mapping[str, Any], labels: fields.Labels, place: str) -> list[Vote]:
        """Return the gold and human labels. A map for a label field takes precedence over the row's `gold`
        and `votes` objects.
        """
        votes: list[Vote] = []
        for group, make_votes in (("gold", labels.gold), ("votes", labels.people)):
            labels_by_field = dict(fields.mapping(self.value(source, group), f"{place}{group}"))
            start = f"{self._prefix}{group}."
            for key in source:
                if key.startswith(start) and key not in self._shadow and len(key) > len(start):
                    labels_by_field[key.removeprefix(start)] = source[key]
            for field, path in self.groups[group]:
                labels_by_field[field] = self._follow(source, path)
            if group == "votes":
                labels_by_field = fields.nest_votes(
                    {
                        name: fields.decode_votes(raw, name) if self._cells else raw
                        for name, raw in labels_by_field.items()
                    }
                )
            for field, value in labels_by_field.items():
                votes += make_votes(field, value, f"{place}{group}.{field}")
        return votes

    def get_unused(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that are not used by any field, gold label, vote or map."""
        used = set(self._keys.values())
        starts = tuple(f"{self._prefix}{group}." for group in self.groups)
        left = {k: v for k, v in source.items() if k not in used and not k.startswith(starts)}
        if self._cells:
            # An empty cell is not a value, and should not be kept in `meta`.
            left = {k: v for k, v in left.items() if v is not None}
        return remove_paths(left, self._all) if self._all else left

    def _follow(self, source: Mapping[str, Any], path: str) -> Any:
        value = follow(source, path)
        if value is MISSING:
            return None
        self.met.add(path)
        return value


def decode_cell(value: Any, name: str, column: str) -> Any:
    """Parse a CSV cell if the field `name` may be a list or an object.

    Raises BadInput if the cell contains a list or an object, but the field must be text.
    """
    if not isinstance(value, str) or name not in (*_LISTS, *_STRUCTURED, *_PLAIN):
        return value
    if name in _STRUCTURED:
        return fields.json_in(value, name)
    try:
        parsed = cells.parse_cell(value)
    except ValueError as error:
        raise BadInput(f"{error} (to read the cell as text, pass --as-text {column})", field=column) from None
    if name in _PLAIN and parsed:
        kind = "an object" if isinstance(parsed, dict) else f"a list of {len(parsed)}"
        reason = f"the cell contains {kind}, but the field must be text; pass --map passages={column} or --as-text {column}"
        raise BadInput(reason, field=column)
    return value if name in _PLAIN or parsed is None else parsed


_LISTS = ("passages", "reference_answers")
_PLAIN = ("question", "claim", "answer", "text")
_STRUCTURED = ("options", "gold", "votes", "meta")


def get_meta(value: Any) -> dict[str, Any]:
    """Return the row's `meta` as an object. Any other value is put under the key "meta"."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {"meta": value}


def keep_rest(meta: dict[str, Any], rest: Mapping[str, Any]) -> None:
    """Add the row's unused keys to `meta`. Raises BadInput if `meta` already has a different value for a key."""
    for key, value in rest.items():
        if key in meta and meta[key] != value:
            raise BadInput("the row and its meta have different values for this key", field=key)
        meta[key] = value


def score_of(value: Any, column: str) -> float:
    """Return another tool's score as a number. Raises BadInput if the score is not a number."""
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise BadInput(
            f"{str(value)[:40]!r} is not a number, although --scores names this column", field=column
        )
    return score
