"""A user's row to an item: our own keys, `--map`, `--map-label`, and the rest kept as `meta`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Options
from judge.importers.guess import MissingFields, guess
from judge.importers.paths import ITEM_FIELDS, MISSING, PASSAGE_FIELDS, check, follow, no_such_path, without
from judge.types import Item, Passage, Vote

_MUST_BE_JSON = re.compile(r"\s*[\[{]\s*[\"{]")
_IDS = ("id", "question_id", "pair_id")
_MAY_BE_JSON = re.compile(r"\s*[\[{]")


class RowReader:
    """Makes items of the rows of one file.

    A row's passages are either a list (or one object) under `passages`, and then the paths of
    `passages.*` are relative to each element; or the row is flat, the paths are relative to the
    row, and they make one passage. Keys that nothing asked for are kept: as the item's `meta`, and
    in a flat row as its passage's, because several flat rows may make up one item. `cells` says
    that values are CSV cells: their lists and objects are JSON text.

    Call `item` (or `items`) for each row and `finish` once at the end.
    """

    def __init__(self, path: Path, options: Options, *, cells: bool = False) -> None:
        check(options.maps)
        own = {f: p for f, p in options.maps.items() if not f.startswith("passages.")}
        inner = {f.removeprefix("passages."): p for f, p in options.maps.items() if f not in own}
        names = (*ITEM_FIELDS, "passages", "meta")
        inner_names = (*PASSAGE_FIELDS, "meta")
        # A map to an id borrows a value (question_id=claim); any other one gives a key another name.
        renamed = {f: p for f, p in options.maps.items() if f.rpartition(".")[2] not in _IDS}
        taken = set(renamed.values())
        self._nested = _Level(own, names, shadow=taken & set(own.values()), cells=cells)
        self._row = _Level(own, names, shadow=taken, cells=cells)
        self._flat = _Level(inner, inner_names, shadow=taken, cells=cells, prefix="passages.")
        self._element = _Level(inner, inner_names, shadow=taken & set(inner.values()))
        self._levels = (self._nested, self._row, self._flat, self._element)
        self._path, self._cells = path, cells
        self._maps = options.maps
        self._dataset = options.dataset
        self._labels = fields.Labels(options)
        self._note = options.note
        self._first: Sequence[str] | None = None
        self._offered: Mapping[str, str] = {}
        self._passages = 0

    def items(self, raw: Any) -> list[Item]:
        """`item`, as what `_files.each` asks for."""
        return [self.item(raw)]

    def item(self, raw: Any) -> Item:
        """The item of one row. Raises BadInput naming the field."""
        row = fields.record(raw)
        if self._cells:
            # An empty cell is no value.
            row = {name: None if cell == "" else cell for name, cell in row.items()}
        if self._first is None:
            self._first = list(row)
            self._offered = guess(row, self._maps)
            self.check_columns(row)
        passages = self._nested.value(row, "passages")
        flat = not isinstance(passages, list | dict)
        level = self._row if flat else self._nested
        item = self._head(row, level)
        rest = level.rest(row)
        if flat:
            rest = self._flat.rest(rest)
            passage = self._one(row, passages, self._flat, "passages.")
            if passage is not None:
                _keep(passage.meta, rest)
                rest = {}
                item.passages.append(passage)
        else:
            elements = passages if isinstance(passages, list) else [passages]
            item.passages = [self._inside(e, f"passages.{n}.") for n, e in enumerate(elements)]
        _keep(item.meta, rest)
        self._passages += len(item.passages)
        return fields.checked(item)

    def check_columns(self, row: Mapping[str, Any], *, all_rows: bool = False) -> None:
        """Raises MissingFields that names all that the first row lacks at once, with the maps that would help.

        `all_rows`: the row is a table's header (its values unknown), so that a --map to another column is wrong
        whatever follows; when nothing else is, that raises UsageError.
        """
        there = {*row, *self._maps}
        missing = [] if "id" in there else ["id"]
        if not there & {"question", "claim", "passages", "passages.text"}:
            missing.append("question")
        passages = None if all_rows else self._nested.value(row, "passages")
        first = passages[0] if isinstance(passages, list) and passages else passages
        if isinstance(first, dict) and follow(first, self._maps.get("passages.text", "text")) is MISSING:
            missing.append("passages.text")
        inside = first if isinstance(first, dict) else row
        unmet = {
            field: path
            for field, path in self._maps.items()
            if follow(inside if field.startswith("passages.") else row, path) is MISSING
            and not (all_rows and any(path.startswith(f"{name}.") for name in row))
            and not (all_rows and field.startswith("passages.") and "passages" in there)
        }
        if all_rows and unmet and not missing:
            raise UsageError(f"{self._path}: {no_such_path(unmet, row)}")
        held = {field: path for field, path in self._maps.items() if field not in unmet}
        offered = guess(row, held)
        if all_rows and missing == ["id"] and not unmet and not offered:
            raise BadInput(f"no such column; there are: {', '.join(row)}", field="id")
        if not missing or not (len(missing) + len(unmet) > 1 or offered.keys() & set(missing)):
            return
        told = f"no {', '.join(missing)}"
        told += " (or claim, or passages.text)" if "question" in missing else ""
        told += "".join(f"; --map {f}={p}: no '{p}'" for f, p in unmet.items())
        told += f"; there are: {', '.join(row)}"
        told += f"; in its passages: {', '.join(first)}" if isinstance(first, dict) else ""
        either = {"claim", "passages.text", "passages"} & offered.keys()
        own = {name: "COLUMN" for name in missing if not (name == "question" and either)}
        raise MissingFields(told, held | own | offered, field=missing[0])

    def finish(self) -> None:
        """Raises UsageError for a --map whose path stood in no row; notes unmet label maps."""
        met = set().union(*(level.met for level in self._levels))
        unmet = {field: path for field, path in self._maps.items() if path not in met}
        if self._first is not None and unmet:
            raise UsageError(f"{self._path}: {no_such_path(unmet, self._first)}")
        if self._first is not None and not self._passages:
            inner = {f: p for f, p in self._offered.items() if f.startswith("passages")}
            if {"passages", "passages.text"} & inner.keys():
                maps = " ".join(f"--map {field}={path}" for field, path in inner.items())
                self._note(f"note: {self._path}: no row has passages; with {maps} they would")
        self._labels.finish()

    def _head(self, row: Mapping[str, Any], level: _Level) -> Item:
        """The item without its passages."""
        get = level.getter(row)
        named = fields.word(get("dataset"), "dataset")
        item = Item(
            source_id=fields.identifier(get("id"), "id"),
            dataset=self._dataset or named or dataset_name(self._path),
            question_id=fields.word(get("question_id"), "question_id"),
            question=fields.text(get("question"), "question"),
            question_date=fields.word(get("question_date"), "question_date"),
            claim=fields.text(get("claim"), "claim"),
            reference_answers=fields.texts(get("reference_answers"), "reference_answers"),
            correct=fields.word(get("correct"), "correct"),
            pair_id=fields.word(get("pair_id"), "pair_id"),
            polarity=fields.word(get("polarity"), "polarity"),
            meta=_meta(get("meta")),
            votes=level.votes(row, self._labels, ""),
        )
        item.options = fields.choices(get("options"), item.correct)
        if named is not None and named != item.dataset:
            item.meta["dataset"] = named
        return item

    def _inside(self, value: Any, place: str) -> Passage:
        """A passage of a list: text or an object."""
        if isinstance(value, str):
            return Passage(fields.required(value, place[:-1]))
        if not isinstance(value, dict):
            raise BadInput(f"must be text or an object, is {fields.kind(value)}", field=place[:-1])
        passage = self._one(value, None, self._element, place)
        if passage is None:
            raise BadInput("missing", field=f"{place}text")
        _keep(passage.meta, self._element.rest(value))
        return passage

    def _one(self, source: Mapping[str, Any], body: Any, level: _Level, place: str) -> Passage | None:
        """The passage that stands in `source` (its text may be given as `body`), or None."""
        get = level.getter(source)
        passage = Passage(
            text="",
            source_id=fields.word(get("id"), f"{place}id") or "",
            title=fields.word(get("title"), f"{place}title"),
            date=fields.word(get("date"), f"{place}date"),
            source=fields.word(get("source"), f"{place}source"),
            meta=_meta(get("meta")),
            votes=level.votes(source, self._labels, place),
        )
        text = fields.text(get("text") if body is None else body, f"{place}text")
        if text is not None:
            passage.text = text
        elif passage == Passage(""):
            return None
        else:
            raise BadInput("missing, although the row has other parts of a passage", field=f"{place}text")
        return passage


class _Level:
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
        prefix: str = "",
    ) -> None:
        self.paths = {name: maps[name] for name in names if name in maps}
        self.groups = {
            group: [(f.removeprefix(f"{group}."), p) for f, p in maps.items() if f.startswith(f"{group}.")]
            for group in ("gold", "votes")
        }
        self.met: set[str] = set()
        self._all = list(maps.values())
        self._cells = cells
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
        return _decoded(found, name) if self._cells else found

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
                value = _decoded(raw, group) if self._cells and group == "votes" else raw
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


def _decoded(value: Any, name: str) -> Any:
    """A CSV cell as the list or object it holds, where `name` may be one."""
    if not isinstance(value, str) or name not in _STRUCTURED:
        return value
    if name in ("passages", "reference_answers") and not _MAY_BE_JSON.match(value):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        if name in ("passages", "reference_answers") and not _MUST_BE_JSON.match(value):
            return value
        raise BadInput(f"not JSON: {error}", field=name) from error


_STRUCTURED = ("passages", "reference_answers", "options", "gold", "votes", "meta")


def _meta(value: Any) -> dict[str, Any]:
    """The row's own `meta`, as an object."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {"meta": value}


def _keep(meta: dict[str, Any], rest: Mapping[str, Any]) -> None:
    """Add the row's other keys to its `meta`."""
    for key, value in rest.items():
        if key in meta and meta[key] != value:
            raise BadInput("stands beside meta and, with another value, inside it", field=key)
        meta[key] = value


def dataset_name(path: Path) -> str:
    """The default dataset: the file's name without its endings."""
    name = path.name
    for ending in (".gz", ".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".txt"):
        name = name.removesuffix(ending)
    return name.replace(":", "-") or "data"
