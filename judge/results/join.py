"""Return a user's own file, row by row and in its order, with columns of results added.

A row belongs to the units that its import made of it. So the file is read with the same rules as at its import: the ids are
derived from the question where a table has none, and an answer belongs to its item, system and condition. The text of CSV
and JSON Lines is copied unchanged, except that it becomes UTF-8.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from judge import files
from judge.document.csv import csv_cell
from judge.errors import BadInput, UsageError
from judge.importers import answers as answer_files
from judge.importers.base import Options
from judge.importers.fields import identifier
from judge.importers.formats import chat
from judge.importers.importing import AS_TEXT, TURNS, understood
from judge.importers.mapped import RowReader
from judge.importers.naming import dataset_name
from judge.importers.offers import file_rows
from judge.importers.paths import MISSING, follow
from judge.importers.records import json_records
from judge.importers.roles import LOOKED_AT
from judge.results.table import IDS, TEXTS, Results
from judge.store import listing
from judge.store.items import passage_id
from judge.store.study import Store

PREFIX = "adjudge."
"""The beginning of the names of all added columns."""
ROWS = "rows"
"""The column for a row of the file with several rows of results: a list of objects."""
MOST_NAMED = 5
"""Number of rows without a result that are named."""
Identify = Callable[[dict[str, Any]], "RowIds"]
"""A function that takes a row and returns the ids of the units that were imported from it."""


@dataclass(frozen=True, slots=True)
class RowIds:
    """The items of a row, and the answers and passages that it has itself."""

    items: set[str]
    answers: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Joined:
    """A file with its results. `lines` must be consumed before the counts are read.

    `without` lists the rows of the file without a result, by line or number.
    """

    path: Path
    dataset: str | None = None
    system: str | None = None
    n_rows: int = 0
    without: list[int] = field(default_factory=list)

    @property
    def is_csv(self) -> bool:
        """Whether the file is a delimited table."""
        return Path(self.path.name.removesuffix(".gz")).suffix.lower() in (".csv", *files.TABS)

    @property
    def is_lines(self) -> bool:
        """Whether the file's text can be copied line by line. Other files are lists of objects in JSON, or Parquet."""
        if self.is_csv:
            return True
        with files.open_input(self.path) as handle:
            return not files.is_list(handle) and not files.is_parquet(handle)

    def describe(self) -> str | None:
        """Return a sentence about the rows without a result, or None if every row has one."""
        if not self.without:
            return None
        named = ", ".join(map(str, self.without[:MOST_NAMED])) + (
            ", ..." if len(self.without) > MOST_NAMED else ""
        )
        return f"{self.path}: {len(self.without):,} of {self.n_rows:,} rows have no result (lines {named})"

    def check(self) -> None:
        """Raise UsageError if no row of the file has a result."""
        if self.n_rows and len(self.without) == self.n_rows:
            raise UsageError(
                f"{self.path}: none of the {self.n_rows:,} rows belongs to a row of these results; join the file that was "
                "imported, or choose its data set with --dataset and its system with --system"
            )


def join_lines(store: Store, results: Results, joined: Joined) -> Iterator[str]:
    """Yield the text of the file record by record, with the columns of the results at the end of each record.

    Raises BadInput for a row that cannot be read or has no id. Raises UsageError if the data set is unknown, if the file
    already has these columns, or if no row has a result.
    """
    add = _Adder(store, results, joined)
    yield from _table(joined, add) if joined.is_csv else _lines(joined, add)
    joined.check()


def join_rows(store: Store, results: Results, joined: Joined) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON list or a Parquet file with the columns of the results. Raises the same errors as `join_lines`."""
    add = _Adder(store, results, joined)
    for number, row in json_records(joined.path, files.stop).rows:
        if not isinstance(row, dict):
            raise BadInput("not an object", path=str(joined.path), line=number)
        _refuse_clash(joined, add.names, row)
        yield {**row, **_raise_at(joined, number, add, row)}
    joined.check()


class _Adder:
    """Finds the added columns of each row of the file."""

    def __init__(self, store: Store, results: Results, joined: Joined) -> None:
        self._joined, self._identify, self._per = joined, _identifier(store, joined), results.per
        shown = {*IDS, *TEXTS[results.per], *results.own_columns}
        self._columns = [name for name in results.columns if name not in shown]
        self.names = [f"{PREFIX}{name}" for name in (*self._columns, ROWS)]
        self._by_id: dict[str, list[dict[str, Any]]] = {}
        self._by_item: dict[str, list[dict[str, Any]]] = {}
        for row in results.rows:
            # A part of an answer is also found by its answer.
            for name in {row["unit_id"], str(row["unit_id"]).partition("#")[0]}:
                self._by_id.setdefault(name, []).append(row)
            self._by_item.setdefault(row["item_id"], []).append(row)

    def __call__(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        """Return the added columns of a row."""
        self._joined.n_rows += 1
        ids = self._identify(row)
        names = ids.items | ids.answers | ids.passages
        fit = [result for name in sorted(names) for result in self._by_id.get(name, ())]
        if not fit and not (ids.passages if self._per == "passage" else ids.answers):
            # A row without an answer of its own has the results of all answers to its question.
            fit = [result for name in sorted(ids.items) for result in self._by_item.get(name, ())]
        fit = list({result["unit_id"]: result for result in fit}.values())
        if not fit:
            self._joined.without.append(number)
        single: Mapping[str, Any] = fit[0] if len(fit) == 1 else {}
        added = {f"{PREFIX}{name}": single.get(name) for name in self._columns}
        several = [{name: result.get(name) for name in ("unit_id", *self._columns)} for result in fit]
        return {**added, f"{PREFIX}{ROWS}": several if len(several) > 1 else None}


def _lines(joined: Joined, add: _Adder) -> Iterator[str]:
    with files.open_input(joined.path) as handle:
        for number, line in enumerate(handle, 1):
            text = _decode(line, joined, number)
            body = text.rstrip()
            # Empty lines are kept, so that line numbers are those of the user's file.
            if not body.strip():
                yield text
                continue
            try:
                # The user's own file is copied, so it may have what an import refuses, such as a key that occurs twice.
                row = json.loads(body)
            except (ValueError, RecursionError) as e:
                raise BadInput(files.describe_json_error(e), path=str(joined.path), line=number) from e
            if not isinstance(row, dict):
                raise BadInput("not a JSON object", path=str(joined.path), line=number)
            _refuse_clash(joined, add.names, row)
            extra = json.dumps(_raise_at(joined, number, add, row), ensure_ascii=False)
            # Inserted before the closing brace: writing parsed JSON again would change numbers, escapes and spaces.
            yield body[:-1] + (", " if row else "") + extra[1:] + text[len(body) :]


def _table(joined: Joined, add: _Adder) -> Iterator[str]:
    consumed: list[str] = []

    # The parsed cells lack the quotes and spaces of the file, so the original text is kept as well.
    def tee(lines: Iterable[str]) -> Iterator[str]:
        for text in lines:
            consumed.append(text)
            yield text

    header: list[str] = []
    # Excel recognises UTF-8 by a byte order mark.
    if files.has_byte_order_mark(joined.path):
        yield "\ufeff"
    with files.open_input(joined.path) as handle:
        delimiter = files.delimiter(joined.path, handle)
        start = handle.tell()
        first = 1
        if files.skip_separator(handle):
            end, first = handle.tell(), 2
            handle.seek(start)
            yield handle.read(end - start).decode("ascii")
        text_file = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        reader = csv.reader(tee(text_file), delimiter=delimiter, strict=True)
        try:
            while True:
                # A quoted cell may span lines, so the number of a record is not that of its line.
                number = reader.line_num + first
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as e:
                    raise BadInput(f"not CSV: {e}", path=str(joined.path), line=number) from e
                except UnicodeDecodeError as e:
                    raise BadInput("not UTF-8", path=str(joined.path), line=number) from e
                text = "".join(consumed)
                consumed.clear()
                body = text.rstrip("\r\n")
                if not cells:
                    yield text
                    continue
                if not header:
                    header = cells
                    _refuse_clash(joined, add.names, header)
                    added: list[Any] = list(add.names)
                else:
                    if len(cells) != len(header):
                        reason = f"{len(cells)} cells, but the header has {len(header)} columns"
                        raise BadInput(reason, path=str(joined.path), line=number)
                    named = zip(header, cells, strict=True)
                    row = {name: cell if cell != "" else None for name, cell in named if name.strip()}
                    added = list(_raise_at(joined, number, add, row).values())
                out = io.StringIO()
                csv.writer(out, delimiter=delimiter, lineterminator="").writerow([_cell(v) for v in added])
                yield body + delimiter + out.getvalue() + text[len(body) :]
        finally:
            # The block that opened the handle closes it.
            text_file.detach()


def _decode(line: bytes, joined: Joined, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as e:
        raise BadInput("not UTF-8", path=str(joined.path), line=number) from e


def _raise_at(joined: Joined, number: int, add: _Adder, row: dict[str, Any]) -> dict[str, Any]:
    try:
        return add(number, row)
    except BadInput as e:
        raise BadInput(e.reason, path=str(joined.path), line=number, field=e.field) from e


def _refuse_clash(joined: Joined, names: Iterable[str], there: Any) -> None:
    if clash := [name for name in names if name in there]:
        raise UsageError(
            f"{joined.path} already has a column '{clash[0]}'; remove it, or join the original file"
        )


def _cell(value: Any) -> Any:
    return csv_cell(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value)


def _identifier(store: Store, joined: Joined) -> Identify:
    """Return a function that finds the item and the ids of a row.

    It uses the same rules as the import of the file or, if the file was not imported, of the data set.
    """
    sha = files.file_sha(joined.path)
    imports = listing.list_imports(store)
    # Compared by content instead of name, because the file may have been moved or copied.
    same = [i for i in imports if sha in i["files"].values() and joined.dataset in (None, i["dataset"])]
    if len({i["dataset"] for i in same}) > 1:
        names = ", ".join(sorted({str(i["dataset"]) for i in same}))
        raise UsageError(f"--join requires --dataset: {joined.path} was imported as {names}")
    if same:
        imported = same[-1]
        path = Path(next(p for p, digest in imported["files"].items() if digest == sha))
        dataset = imported["dataset"]
    else:
        path, dataset = joined.path, joined.dataset or _get_only_dataset(store)
        imported = _import_of(store, dataset, imports)
    maps, label_maps = dict(imported["maps"]), imported.get("label_maps") or {}
    turns, as_text = maps.pop(TURNS, "last"), json.loads(maps.pop(AS_TEXT, "[]"))
    if imported["format"] == "answers":
        return _answers_of(store, joined, maps, dataset)
    # The importers of benchmarks make items from several files, so only ids can be compared.
    if imported["format"] not in ("jsonl", "csv", chat.NAME):
        name = dataset or _get_only_dataset(store)

        def by_id(row: dict[str, Any]) -> RowIds:
            return RowIds({f"{name}:{_id(row, 'id')}"})

        return by_id
    options = Options(
        dataset, maps, label_maps, as_text=frozenset(as_text), turns=turns, system=joined.system
    )
    known = listing.names_of_content(store, sha)
    seen = islice(file_rows(imported["format"], joined.path), LOOKED_AT)
    options = understood(path, seen, options, known)
    reader = RowReader(path, options, is_csv=joined.is_csv and imported["format"] == "csv")
    is_chat = imported["format"] == chat.NAME

    def by_import(row: dict[str, Any]) -> RowIds:
        try:
            made = [reader.item(part) for part in (chat.flatten(row, turns) if is_chat else [row])]
        except BadInput as e:
            # A row without an id belongs to no item.
            if e.field == "id" or options.taken is not None:
                raise
            # An import would not accept this row, such as a row with nothing but an id.
            return RowIds({f"{dataset or dataset_name(path)}:{_id(row, maps.get('id', 'id'))}"})
        answers = {f"{a.item}@{a.system}@{a.condition}" for item in made for a in item.answers}
        # Without a comparison of passages, each row of an item would get the results of all rows.
        passages = {passage_id(item, passage) for item in made for passage in item.passages}
        return RowIds({item.item_id for item in made}, answers, passages)

    return by_import


def _answers_of(store: Store, joined: Joined, maps: Mapping[str, str], dataset: str | None) -> Identify:
    """Return the function for a file of answers, whose rows name an item, a system and a condition."""
    constants = {name: maps[name] for name in ("--system", "--condition") if name in maps}
    given = {name: path for name, path in maps.items() if name not in constants}
    reader = answer_files.AnswerReader(
        Options(dataset, given), constants.get("--system"), constants.get("--condition"), joined.is_csv
    )
    names = [str(row["dataset"]) for row in listing.list_datasets(store)]

    def by_answer(row: dict[str, Any]) -> RowIds:
        answers = reader.answers(
            {name: "" if cell is None else cell for name, cell in row.items()} if joined.is_csv else row
        )
        ids = {
            f"{item}@{answer.system}@{answer.condition}"
            for answer in answers
            for item in (answer.item, *(f"{name}:{answer.item}" for name in names))
        }
        return RowIds(set(), ids)

    return by_answer


def _id(row: dict[str, Any], column: str) -> str:
    value = follow(row, column)
    return identifier(None if value is MISSING else value, column)


def _get_only_dataset(store: Store) -> str:
    names = [d["dataset"] for d in listing.list_datasets(store)]
    if len(names) != 1:
        raise UsageError(f"--join requires --dataset: the study has {', '.join(names) or 'no items'}")
    return str(names[0])


def _import_of(store: Store, dataset: str, imports: list[dict[str, Any]]) -> dict[str, Any]:
    query = "SELECT import_id FROM items WHERE dataset = ? ORDER BY rowid LIMIT 1"
    row = store.conn.execute(query, [dataset]).fetchone()
    if row is None:
        names = ", ".join(d["dataset"] for d in listing.list_datasets(store))
        raise UsageError(f"--dataset {dataset}: the study has {names or 'no items'}")
    return next(i for i in imports if i["import_id"] == row[0])
