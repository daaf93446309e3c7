"""Define the fields that `--map FIELD=PATH` accepts, and look up dotted paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from judge.errors import UsageError
from judge.files import loads
from judge.importers.guess import nearest

ITEM_FIELDS = (
    "id", "question_id", "question", "question_date", "claim", "reference_answers", "options",
    "correct", "pair_id", "polarity", "dataset",
)  # fmt: skip
ANSWER_FIELDS = ("answer", "system", "condition")
PASSAGE_FIELDS = ("text", "id", "title", "date", "source")
_FURTHER_TEXT = re.compile(r"passages\.text\.([2-9]|[1-9]\d+)", re.ASCII)
GRAMMAR = (
    f"{', '.join(ITEM_FIELDS)}, {', '.join(ANSWER_FIELDS)}, gold.FIELD, votes.FIELD, passages, "
    f"{', '.join('passages.' + f for f in PASSAGE_FIELDS)}, passages.gold.FIELD, passages.votes.FIELD"
)


class _Missing:
    """The type of MISSING, which marks a path without a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def is_field(name: str) -> bool:
    """Return whether `name` is one of the fields in GRAMMAR."""
    inner = name.removeprefix("passages.")
    if _FURTHER_TEXT.fullmatch(name):
        return True
    if name in (*ITEM_FIELDS, *ANSWER_FIELDS, "passages") or (inner != name and inner in PASSAGE_FIELDS):
        return True
    group, _, field = inner.partition(".")
    return group in ("gold", "votes") and field != ""


def further_texts(maps: Mapping[str, str]) -> list[str]:
    """Return the paths mapped to `passages.text.2`, `passages.text.3` and so on, in order.

    Each of them contains the text of an additional passage in the row.
    """
    numbered = {
        int(match[1]): path for field, path in maps.items() if (match := _FURTHER_TEXT.fullmatch(field))
    }
    return [numbered[number] for number in sorted(numbered)]


def number_texts(values: Sequence[str]) -> list[str]:
    """Number repeated `passages.text=PATH` options: the second becomes `passages.text.2=PATH`, the third
    `passages.text.3=PATH`.
    """
    out: list[str] = []
    n = 0
    for value in values:
        field, equals, path = value.partition("=")
        is_text = field.strip() == "passages.text" and equals == "="
        n += is_text
        out.append(f"passages.text.{n}={path}" if is_text and n > 1 else value)
    return out


def check(maps: Mapping[str, str], extra: Iterable[str] = ()) -> None:
    """Raise UsageError if a map has an unknown field or an empty path. The error names every such map."""
    strange = [field for field in maps if not is_field(field) and field not in extra]
    wrong = [
        f"--map {field}={maps[field]}: there is no field '{field}'{_suggest_field(field)}"
        for field in strange
    ]
    wrong += [f"--map {field}=: the path is empty" for field, path in maps.items() if not path]
    if wrong:
        raise UsageError("; ".join(wrong) + (f"; available fields: {GRAMMAR}" if strange else ""))


def _suggest_field(name: str) -> str:
    close = nearest(
        name, [*ITEM_FIELDS, *ANSWER_FIELDS, "passages", *(f"passages.{field}" for field in PASSAGE_FIELDS)]
    )
    return f" (did you mean {close}?)" if close else ""


def follow(value: Any, path: str) -> Any:
    """Return the value at `path`, or MISSING if there is none.

    In an object, the longest key that `path` starts with is tried first, then shorter keys. Keys with dots or
    spaces therefore need no quoting. In a list, a part of the path is an index from 0. Text that contains
    JSON (in a CSV cell) is parsed.
    """
    if isinstance(value, dict):
        if path in value:
            return value[path]
        end = path.rfind(".")
        while end > 0:
            if path[:end] in value:
                inner = follow(value[path[:end]], path[end + 1 :])
                if inner is not MISSING:
                    return inner
            end = path.rfind(".", 0, end)
        return MISSING
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if not head.isdecimal() or int(head) >= len(value):
            return MISSING
        return follow(value[int(head)], rest) if rest else value[int(head)]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            inside = loads(value)
        except (ValueError, RecursionError):
            return MISSING
        return follow(inside, path)
    return MISSING


def value_at(row: Any, path: str) -> Any:
    """Return the value at `path`, or None if there is no value."""
    value = follow(row, path)
    return None if value is MISSING else value


def describe_unmet(unmet: Mapping[str, str], columns: Iterable[str]) -> str:
    """Return the error message for maps whose path is not in any row."""
    maps = " ".join(f"--map {field}={path}" for field, path in unmet.items())
    listed = list(columns)
    named = ", ".join(f"'{path}'{_suggest_column(path, listed)}" for path in unmet.values())
    return f"{maps}: no row has {named}; the keys of the first row are: {', '.join(listed)}"


def _suggest_column(path: str, columns: Iterable[str]) -> str:
    close = get_close_matches(path, columns, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def remove_paths(value: Any, paths: Iterable[str]) -> Any:
    """Return a copy of an object without the values at `paths`. Elements of lists are not removed."""
    if not isinstance(value, dict):
        return value
    left = dict(value)
    for path in paths:
        _drop(left, path)
    return left


def _drop(target: dict[str, Any], path: str) -> None:
    if path in target:
        del target[path]
        return
    end = path.rfind(".")
    while end > 0:
        inner = target.get(path[:end])
        if isinstance(inner, dict) and follow(inner, path[end + 1 :]) is not MISSING:
            # The row itself must not be changed, because other maps still read it.
            copy = dict(inner)
            _drop(copy, path[end + 1 :])
            # An object is removed if all its values were used; otherwise an empty object would remain in
            # `meta`.
            if copy:
                target[path[:end]] = copy
            else:
                del target[path[:end]]
            return
        end = path.rfind(".", 0, end)
