"""Turn a user's row into an item.

A value is found under adjudge's own key for it, or under the path that `--map` or `--map-label` gives. All
other keys become `meta`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.importers import cells, fields, roles
from judge.importers.base import Options
from judge.importers.guess import MissingFields, guess
from judge.importers.naming import dataset_name, hash_parts, name_by_content, system_name
from judge.importers.paths import (
    ANSWER_FIELDS,
    ITEM_FIELDS,
    MISSING,
    PASSAGE_FIELDS,
    check,
    describe_unmet,
    follow,
    further_texts,
)
from judge.importers.row_level import RowLevel, get_meta, keep_rest, score_of
from judge.store.items import passage_id
from judge.types import DEFAULT_CONDITION, Answer, Item, Passage, ToolScore

_IDS = ("id", "question_id", "pair_id")


class RowReader:
    """Turns the rows of one file into items.

    Call `item` (or `items`) for each row and `finish` once at the end.

    A row may have its passages under `passages`, as a list or a single object. The paths of `passages.*` are
    then relative to each passage, and unused keys are kept in the item's `meta`.

    A row without `passages` contains one passage and is called flat. The paths of `passages.*` are then
    relative to the row. Several flat rows may be merged into one item, so unused keys are kept in the
    passage's `meta`.

    If `is_csv` is set, values are CSV cells, in which lists and objects are written as JSON.

    A row of a common table (`Options.taken`, see `judge.importers.roles`) may also contain an answer. The
    row's passages are then the context of this answer. If the row has no id, the item's id is a hash of its
    question and reference.
    """

    def __init__(self, path: Path, options: Options, *, is_csv: bool = False) -> None:
        check(options.maps)
        further = further_texts(options.maps)
        _refuse_parts(options.maps, further)
        item_maps = {f: p for f, p in options.maps.items() if not f.startswith("passages.")}
        inner = {f.removeprefix("passages."): p for f, p in options.maps.items() if f not in item_maps}
        self._taken, self._options = options.taken, options
        answer_names = ANSWER_FIELDS if self._taken is not None and self._taken.has_answers else ()
        names = (*ITEM_FIELDS, *answer_names, "passages", "meta")
        inner_names = (*PASSAGE_FIELDS, "meta")
        # Passage ids that the user has mapped are kept. A retriever may later reuse its id for a different
        # text, so the ids of retrieved passages are hashes of their content.
        self._by_text = (
            self._taken is not None and item_maps.get("passages") is not None and "id" not in inner
        )
        # A map to an id copies the value (question_id=claim), so other fields can still use the column. Any
        # other map renames the key.
        renamed = {f: p for f, p in options.maps.items() if f.rpartition(".")[2] not in _IDS}
        taken = set(renamed.values())
        as_text = options.as_text
        # Lists can also be text in JSON: pandas writes them as text if it has read them from CSV.
        decodes = is_csv or self._taken is not None
        # If the passages are a list, the paths of `passages.*` are relative to each element, so they do not
        # hide keys of the row.
        self._nested = RowLevel(
            item_maps, names, shadow=taken & set(item_maps.values()), cells=decodes, as_text=as_text
        )
        self._row = RowLevel(item_maps, names, shadow=taken, cells=decodes, as_text=as_text)
        self._flat = RowLevel(
            inner, inner_names, shadow=taken, cells=decodes, as_text=as_text, prefix="passages."
        )
        # Each further text column is a separate passage without other fields.
        self._further = [
            RowLevel({"text": path}, ("text",), shadow=set(), cells=decodes, as_text=as_text)
            for path in further
        ]
        self._element = RowLevel(inner, inner_names, shadow=taken & set(inner.values()))
        self._levels = (self._nested, self._row, self._flat, self._element, *self._further)
        self._path, self._cells = path, is_csv
        self._maps = options.maps
        self._dataset = options.dataset
        self._labels = fields.Labels(options)
        self._note = options.note
        self._first: Sequence[str] | None = None
        self._offered: Mapping[str, str] = {}
        self._passages = self._answers = 0
        self._unused: dict[str, None] = {}
        self._passages_are_lists: bool | None = None
        self._repeats: Counter[tuple[str, str, str]] = Counter()

    def items(self, raw: Any) -> list[Item]:
        """Return a list that contains the item in one row. `records.build_each` expects a list."""
        return [self.item(raw)]

    def item(self, raw: Any) -> Item:
        """Return the item in one row. Raises a BadInput that names the field or its column if a value is
        invalid.
        """
        try:
            return self._item(raw)
        # It names our fields, for which there is no column yet.
        except MissingFields:
            raise
        except BadInput as error:
            # The user knows the column by the name in the file.
            head, dot, rest = error.field.partition(".")
            column = None if self._taken is None else self._taken.maps.get(head)
            raise BadInput(error.reason, field=f"{column or head}{dot}{rest}") from error

    def _item(self, raw: Any) -> Item:
        row = fields.record(raw)
        if self._taken is not None:
            for name, value in row.items():
                cells.refuse_strange(name, value)
        if self._cells:
            if self._taken is not None:
                for name, value in row.items():
                    cells.refuse_formula(name, value, self._options.as_text)
            # An empty cell is not a value, whereas an empty text in JSON is an error of its row.
            row = {name: None if cell == "" else cell for name, cell in row.items()}
        if self._first is None:
            # Missing fields are reported only for the first row, so that a large file does not give the same
            # error for every row.
            self._first = list(row)
            self._offered = guess(row, self._maps)
            self.check_columns(row)
        if self._taken is not None:
            self._taken.refuse_late(row, self._maps)
        passages = self._nested.value(row, "passages")
        self._check_passages(row, passages)
        flat = not isinstance(passages, list | dict)
        level = self._row if flat else self._nested
        item = self._head(row, level)
        rest = level.get_unused(row)
        if flat:
            rest = self._flat.get_unused(rest)
        self._unused.update(dict.fromkeys(rest))
        if flat:
            item.passages = self._read_flat_passages(row, passages)
            if item.passages and self._taken is None:
                # The rows cannot be kept in the item's meta: several flat rows may be one item, and its meta
                # must then be equal in all of them.
                for passage in item.passages:
                    keep_rest(passage.meta, rest)
                rest = {}
        else:
            elements = passages if isinstance(passages, list) else [passages]
            item.passages = [self._inside(e, f"passages.{n}.") for n, e in enumerate(elements)]
        self._passages += len(item.passages)
        if self._taken is None:
            keep_rest(item.meta, rest)
        else:
            self._add_answer(item, row, level, rest, knows_context=passages is not None)
        return fields.check_item(item)

    def _read_flat_passages(self, row: Mapping[str, Any], body: Any) -> list[Passage]:
        """Return the passage in a flat row, and one passage for each additional text column that is not
        empty.
        """
        parts = [self._passage_of(row, body, self._flat, "passages.")]
        for level in self._further:
            text = fields.text(level.value(row, "text"), "passages.text")
            parts.append(None if text is None else Passage(text))
        if not self._further:
            return [passage for passage in parts if passage is not None]
        # A retriever may return the same text twice, but the row gets this passage only once.
        return list({passage.text: passage for passage in reversed(parts) if passage is not None}.values())[
            ::-1
        ]

    def _check_passages(self, row: Mapping[str, Any], passages: Any) -> None:
        """Raise BadInput if a column contains a list of passages in one row and a single text in another.

        In such a column, it is ambiguous whether a cell is one passage or a list.
        """
        column = self._maps.get("passages", "passages")
        as_text = self._options.as_text
        if self._taken is not None:
            roles.refuse_joined(column, passages, as_text)
        is_table = self._cells or self._taken is not None
        if not is_table or passages is None or column in as_text or column == "passages":
            return
        is_list = isinstance(passages, list | dict)
        if self._passages_are_lists is None:
            self._passages_are_lists = is_list
        if self._passages_are_lists is not is_list:
            kinds = ("one text", "a list") if self._passages_are_lists else ("a list", "one text")
            reason = f"{kinds[0]} in this row, but {kinds[1]} in earlier rows; pass --as-text {column} if each cell is one passage"
            raise BadInput(reason, field=column)

    def _add_answer(
        self,
        item: Item,
        row: Mapping[str, Any],
        level: RowLevel,
        rest: Mapping[str, Any],
        *,
        knows_context: bool,
    ) -> None:
        """Add the answer with its context, the scores, and an id derived from the row to the item.

        Only a row of a common table provides these parts.
        """
        get = level.getter(row)
        system = fields.word(get("system"), "system") if self._taken and self._taken.has_answers else None
        system = system or self._options.system or system_name(self._path)
        words = item.question or item.claim
        if self._taken and not words:
            raise BadInput(
                "the question is missing; every row must have one",
                field=self._maps.get("question", "question"),
            )
        if self._taken and self._taken.derives_id:
            named = hash_parts([words, item.reference_answers])
            # If the same system answers a question repeatedly, each answer belongs to a separate item.
            self._repeats[item.dataset, named, system] += 1
            repeat = self._repeats[item.dataset, named, system]
            item.source_id = named if repeat == 1 else f"{named}-{repeat}"
        # Rows with equal questions are not independent, whatever their reference or system, so they form one
        # cluster.
        item.question_id = item.question_id or hash_parts([words])
        if self._by_text:
            for passage in item.passages:
                name_by_content(passage)
        context = [passage_id(item, passage) for passage in item.passages]
        # A retriever may return a text twice. The answer's context keeps both positions, but the item gets
        # the passage only once.
        first: dict[str, Passage] = {}
        for name, passage in zip(context, item.passages, strict=True):
            first.setdefault(name, passage)
        item.passages = list(first.values())
        scores = [
            ToolScore(tool, column, score_of(row[column], column))
            for column, tool in self._options.scores.items()
            if row.get(column) not in (None, "")
        ]
        if not (self._taken and self._taken.has_answers):
            keep_rest(item.meta, rest)
            item.scores += scores
            return
        # An absent or empty value is an answer without text: the system failed, which must count in its scores.
        text = fields.word(get("answer"), "answer")
        condition = fields.word(get("condition"), "condition") or DEFAULT_CONDITION
        # Without a contexts column, the system's input is unknown, because passages from another file are not
        # its context. If several rows with one passage each make up an item, all its passages are the context
        # (None).
        given = None if item.passages and not knows_context else context
        item.answers.append(
            Answer(item.item_id, system, condition, text or "", context=given, meta=dict(rest), scores=scores)
        )
        self._answers += 1

    def check_columns(self, row: Mapping[str, Any], *, all_rows: bool = False) -> None:
        """Raise MissingFields if a row lacks required fields.

        The error names all missing fields, and the --map options that would provide them.

        If `all_rows` is set, `row` is the header of a table, and the check applies to all rows. In this case,
        UsageError is raised if no field is missing but a --map names a column that is not in the header.
        """
        there = {*row, *self._maps}
        if self._taken is not None and self._taken.derives_id:
            there.add("id")
        missing = [] if "id" in there else ["id"]
        if not there & {"question", "claim", "passages", "passages.text"}:
            missing.append("question")
        passages = None if all_rows else self._nested.value(row, "passages")
        first = passages[0] if isinstance(passages, list) and passages else passages
        if self._taken is not None and isinstance(first, dict):
            first = roles.document(first)
        if isinstance(first, dict) and follow(first, self._maps.get("passages.text", "text")) is MISSING:
            missing.append("passages.text")
        # A header has no values, so paths into JSON cells or into the elements of passages cannot be checked
        # yet.
        inside = first if isinstance(first, dict) else row
        unmet = {
            field: path
            for field, path in self._maps.items()
            if follow(inside if field.startswith("passages.") else row, path) is MISSING
            and not (all_rows and any(path.startswith(f"{name}.") for name in row))
            and not (all_rows and field.startswith("passages.") and "passages" in there)
        }
        if all_rows and unmet and not missing:
            raise UsageError(f"{self._path}: {describe_unmet(unmet, row)}")
        usable = {field: path for field, path in self._maps.items() if field not in unmet}
        offered = guess(row, usable)
        if all_rows and missing == ["id"] and not unmet and not offered:
            raise BadInput(f"there is no such column; available columns: {', '.join(row)}", field="id")
        if not missing or not (len(missing) + len(unmet) > 1 or offered.keys() & set(missing)):
            return
        reason = f"the row has no {', '.join(missing)}"
        reason += " (or claim, or passages.text)" if "question" in missing else ""
        reason += "".join(f"; --map {f}={p}: there is no '{p}'" for f, p in unmet.items())
        reason += f"; available keys: {', '.join(row)}"
        reason += f"; keys in its passages: {', '.join(first)}" if isinstance(first, dict) else ""
        either = {"claim", "passages.text", "passages"} & offered.keys()
        placeholders = {name: "COLUMN" for name in missing if not (name == "question" and either)}
        raise MissingFields(reason, usable | placeholders | offered, field=missing[0])

    def finish(self, *, notes_unused: bool = True) -> None:
        """Check the maps after the last row, and issue notes.

        Raises UsageError if no row has the path in a --map. Raises MissingFields if no row has passages or an
        answer, but some columns could be passages. A note is issued for each label map that had no effect.
        With `notes_unused`, another note lists the unused columns.
        """
        met = set().union(*(level.met for level in self._levels))
        unmet = {field: path for field, path in self._maps.items() if path not in met}
        if self._first is not None and unmet:
            raise UsageError(f"{self._path}: {describe_unmet(unmet, self._first)}")
        if self._first is not None and not self._passages and not self._answers:
            inner = {f: p for f, p in self._offered.items() if f.startswith("passages")}
            if {"passages", "passages.text"} & inner.keys():
                reason = f"no row has passages or an answer; available columns: {', '.join(self._first)}"
                raise MissingFields(reason, {**self._maps, **inner}, path=str(self._path))
        if notes_unused:
            self._note_unused()
        self._labels.finish()

    def _note_unused(self) -> None:
        """Issue a note about the unused columns, if the user may have expected them to be used.

        If rows have passages and there are no maps, the rows are in our own format. In that format, other
        keys become `meta` on purpose.
        """
        lacks_units = not self._passages and not self._answers
        # For a common table, `roles.understanding` has already listed the unused columns.
        if self._taken is not None or not self._unused or not (self._maps or lacks_units):
            return
        self._note(roles.note_unused(self._unused))
        if lacks_units:
            self._note(
                "no row has passages; if one of these columns contains the text of passages, import the "
                "file again with --map passages.text=COLUMN"
            )

    def _head(self, row: Mapping[str, Any], level: RowLevel) -> Item:
        """Return the item without its passages."""
        get = level.getter(row)
        named = fields.word(get("dataset"), "dataset")
        derives_id = self._taken is not None and self._taken.derives_id
        item = Item(
            source_id="" if derives_id else fields.identifier(get("id"), "id"),
            dataset=self._dataset or named or (roles.DATASET if derives_id else dataset_name(self._path)),
            question_id=fields.word(get("question_id"), "question_id"),
            question=fields.text(get("question"), "question"),
            question_date=fields.word(get("question_date"), "question_date"),
            claim=fields.text(get("claim"), "claim"),
            reference_answers=fields.texts(get("reference_answers"), "reference_answers"),
            correct=fields.word(get("correct"), "correct"),
            pair_id=fields.word(get("pair_id"), "pair_id"),
            polarity=fields.word(get("polarity"), "polarity"),
            meta=get_meta(get("meta")),
            votes=level.votes(row, self._labels, ""),
        )
        item.options = fields.choices(get("options"), item.correct)
        # --dataset takes precedence over the row's data set. The row's name is kept in `meta`, because it is
        # the user's data.
        if named is not None and named != item.dataset:
            item.meta["dataset"] = named
        return item

    def _inside(self, value: Any, place: str) -> Passage:
        """Return an element of a list of passages, which may be text or an object, as a passage."""
        if isinstance(value, str):
            return Passage(fields.require_text(value, place[:-1]))
        if not isinstance(value, dict):
            raise BadInput(f"must be text or an object, not {fields.kind(value)}", field=place[:-1])
        if (
            self._taken is not None
            and "text" not in self._element.paths
            and (self._by_text or "text" not in value)
        ):
            value = roles.document(value)
        passage = self._passage_of(value, None, self._element, place)
        if passage is None:
            raise BadInput("missing", field=f"{place}text")
        keep_rest(passage.meta, self._element.get_unused(value))
        return passage

    def _passage_of(
        self, source: Mapping[str, Any], body: Any, level: RowLevel, place: str
    ) -> Passage | None:
        """Return the passage in `source`, or None if it contains no passage.

        `body` is the passage's text, if the text is already known.
        """
        get = level.getter(source)
        passage = Passage(
            text="",
            source_id=fields.word(get("id"), f"{place}id") or "",
            title=fields.word(get("title"), f"{place}title"),
            date=fields.word(get("date"), f"{place}date"),
            source=fields.word(get("source"), f"{place}source"),
            meta=get_meta(get("meta")),
            votes=level.votes(source, self._labels, place),
        )
        text = fields.text(get("text") if body is None else body, f"{place}text")
        if text is not None:
            passage.text = text
        elif passage == Passage(""):
            return None
        else:
            raise BadInput(
                "the text is missing, but the row has other fields of a passage", field=f"{place}text"
            )
        return passage


def _refuse_parts(maps: Mapping[str, str], further: Sequence[str]) -> None:
    """Raise UsageError if --map names several text columns and also another field of a passage.

    Each text column is a separate passage, so it would be unclear which passage the other field belongs to.
    """
    parts = [f for f in maps if f.startswith("passages.") and not f.startswith("passages.text")]
    if further and parts:
        columns = ", ".join(f"'{path}'" for path in (maps.get("passages.text"), *further) if path)
        raise UsageError(
            f"--map {parts[0]}={maps[parts[0]]}: each of the columns {columns} is a separate passage, so it "
            "is unclear which passage this field belongs to; omit this map, or write one row for each "
            "passage"
        )
