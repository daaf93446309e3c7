"""Add label columns to the rows of a user's own file. The rest of the file is copied byte for byte."""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge import files
from judge.document.csv import csv_cell
from judge.errors import BadInput, UsageError
from judge.importers.base import Options
from judge.importers.fields import identifier
from judge.importers.mapped import RowReader
from judge.importers.naming import dataset_name
from judge.importers.paths import MISSING, follow
from judge.prompts.load import Task
from judge.store import Store, export, listing
from judge.store.items import passage_id

Units = Callable[[dict[str, Any]], tuple[str, set[str] | None]]
"""A function that takes a row and returns its item and its units (None: all units of the item)."""


@dataclass(frozen=True, slots=True)
class Join:
    """The file to join, and its data set.

    If `dataset` is None, the data set into which the file was imported is used.
    """

    path: Path
    dataset: str | None = None

    @property
    def is_csv(self) -> bool:
        """Whether the file is a table rather than JSON Lines."""
        return self.path.suffix in (".csv", ".tsv")


def join_file(store: Store, run: dict[str, Any], task: Task, join: Join) -> Iterator[str]:
    """Yield the text of the file record by record, with the run's labels added at the end of each record.

    A row with one judged unit gets `adjudge.FIELD` and `adjudge.status`. A row with several judged units gets
    `adjudge.units`, a list with the id, status and labels of each unit. In rows without a judged unit, these
    columns are empty. If the run was fitted on labels, the column `adjudge.fitted_on` is also added.

    Raises BadInput for a row that cannot be read or has no id. Raises UsageError if the data set is unknown,
    or if the file already has these columns.
    """
    units = _units(store, join)
    judged: dict[str, list[dict[str, Any]]] = {}
    for row in export.read_judged(store, run, task):
        # Later repeats measure the noise of a judge; its label is the first one.
        if row["repeat"] == 0:
            kept = {"unit": row["unit_id"], "status": row["status"], **row["labels"], **_describe_fit(row)}
            judged.setdefault(row["item_id"], []).append(kept)

    # Only runs that were fitted on labels have the mark, and then all rows have it.
    own_names = (
        *task.fields,
        "status",
        *_describe_fit(next((u for some in judged.values() for u in some), {})),
    )

    def labels(row: dict[str, Any]) -> dict[str, Any]:
        item_id, unit_ids = units(row)
        matching = [u for u in judged.get(item_id, []) if unit_ids is None or u["unit"] in unit_ids]
        single = matching[0] if len(matching) == 1 else {}
        extra = {f"adjudge.{name}": single.get(name) for name in own_names}
        return extra | {"adjudge.units": matching if len(matching) > 1 else None}

    names = [f"adjudge.{name}" for name in (*own_names, "units")]
    return _table(join, labels, names) if join.is_csv else _lines(join, labels, names)


def _describe_fit(row: Mapping[str, Any]) -> dict[str, Any]:
    return {export.FITTED: row[export.FITTED]} if export.FITTED in row else {}


def _lines(join: Join, labels: Callable[[dict[str, Any]], dict[str, Any]], names: list[str]) -> Iterator[str]:
    with join.path.open(encoding="utf-8", newline="") as file:
        for number, text in enumerate(_readable(file, join), 1):
            body = text.rstrip()
            # A byte order mark at the beginning of the file is not JSON.
            bare = body.removeprefix("\ufeff").lstrip()
            # Empty lines are kept, so that line numbers are those of the user's file.
            if not bare:
                yield text
                continue
            try:
                row = json.loads(bare)
            except (ValueError, RecursionError) as e:
                # For deep nesting, the parser raises RecursionError, which is not a ValueError.
                reason = "nested too deeply" if isinstance(e, RecursionError) else e
                raise BadInput(f"not JSON: {reason}", path=str(join.path), line=number) from e
            if not isinstance(row, dict):
                raise BadInput("not a JSON object", path=str(join.path), line=number)
            _refuse_clash(join, names, row)
            extra = json.dumps(_raise_at(join, number, labels, row), ensure_ascii=False)
            # Inserted before the closing brace: writing parsed JSON again would change numbers, escapes and
            # spaces.
            yield body[:-1] + (", " if row else "") + extra[1:] + text[len(body) :]


def _table(join: Join, labels: Callable[[dict[str, Any]], dict[str, Any]], names: list[str]) -> Iterator[str]:
    with files.open_input(join.path) as handle:
        delimiter = files.delimiter(join.path, handle)
    consumed: list[str] = []

    # The parsed cells lack the quotes and spaces of the file, so the original text is kept as well.
    def tee(lines: Iterator[str]) -> Iterator[str]:
        for text in lines:
            consumed.append(text)
            # Excel writes a byte order mark, which would become part of the first column's name.
            yield text.removeprefix("\ufeff") if len(consumed) == 1 and not header else text

    header: list[str] = []
    with join.path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(tee(_readable(file, join)), delimiter=delimiter, strict=True)
        while True:
            # A quoted cell may span lines, so the number of a record is not that of its line.
            number = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as e:
                raise BadInput(f"not CSV: {e}", path=str(join.path), line=number) from e
            text = "".join(consumed)
            consumed.clear()
            body = text.rstrip("\r\n")
            if not cells:
                yield text
                continue
            if not header:
                header = cells
                _refuse_clash(join, names, header)
                added: list[Any] = list(names)
            else:
                if len(cells) != len(header):
                    reason = f"{len(cells)} cells, but the header has {len(header)} columns"
                    raise BadInput(reason, path=str(join.path), line=number)
                row = {name: cell if cell != "" else None for name, cell in zip(header, cells, strict=True)}
                added = list(_raise_at(join, number, labels, row).values())
            cells_out = io.StringIO()
            csv.writer(cells_out, delimiter=delimiter, lineterminator="").writerow([_cell(v) for v in added])
            yield body + delimiter + cells_out.getvalue() + text[len(body) :]


def _readable(lines: Iterator[str], join: Join) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError as e:
        raise BadInput(
            f"not UTF-8 text (byte {e.object[e.start]:#x}); if the file is compressed, unpack it first",
            path=str(join.path),
        ) from e


def _raise_at(
    join: Join, number: int, labels: Callable[[dict[str, Any]], dict[str, Any]], row: dict[str, Any]
) -> dict[str, Any]:
    try:
        return labels(row)
    except BadInput as e:
        raise BadInput(e.reason, path=str(join.path), line=number, field=e.field) from e


def _refuse_clash(join: Join, names: list[str], there: Any) -> None:
    if clash := [name for name in names if name in there]:
        raise UsageError(
            f"{join.path} already has a column '{clash[0]}'; remove it, or join the original file"
        )


def _cell(value: Any) -> Any:
    return csv_cell(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value)


def _units(store: Store, join: Join) -> Units:
    """Return a function that finds the item and the units of a row.

    It uses the same rules as the import of the file or, if the file was not imported, of the data set.
    """
    with join.path.open("rb") as file:
        sha = hashlib.file_digest(file, "sha256").hexdigest()
    imports = listing.list_imports(store)
    # Compared by content instead of name, because the file may have been moved or copied.
    same = [i for i in imports if sha in i["files"].values() and join.dataset in (None, i["dataset"])]
    if len({i["dataset"] for i in same}) > 1:
        names = ", ".join(sorted(str(i["dataset"]) for i in same))
        raise UsageError(f"--join requires --dataset: {join.path} was imported as {names}")
    if same:
        import_options, path = (
            same[-1],
            Path(next(p for p, digest in same[-1]["files"].items() if digest == sha)),
        )
        dataset = import_options["dataset"]
    else:
        dataset, path = join.dataset or _get_only_dataset(store), join.path
        import_options = _import_of(store, dataset, imports)
    maps = import_options["maps"]
    # The importers of benchmarks make items from several files, so only ids can be compared.
    if import_options["format"] not in ("jsonl", "csv"):
        name = dataset or _get_only_dataset(store)
        return lambda row: (f"{name}:{_id(row, 'id')}", None)
    reader = RowReader(path, Options(dataset, maps), is_csv=join.is_csv)

    def units(row: dict[str, Any]) -> tuple[str, set[str] | None]:
        try:
            item = reader.item(row)
        except BadInput as e:
            # A row without an id belongs to no item.
            if e.field == "id":
                raise
            # An import would not accept this row, such as a row with nothing but an id.
            return f"{dataset or dataset_name(path)}:{_id(row, maps.get('id', 'id'))}", None
        # Without a comparison of passages, each row of an item would get the labels of all rows.
        ids_of_row = {item.item_id, *(passage_id(item, p) for p in item.passages)}
        return item.item_id, ids_of_row if item.passages else None

    return units


def _id(row: dict[str, Any], field: str) -> str:
    value = follow(row, field)
    return identifier(None if value is MISSING else value, field)


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
