"""The user's own file with label columns beside its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.store import Store, export


def join_file(
    store: Store, run: dict[str, Any], task: Task, path: Path, id_field: str | None, dataset: str | None
) -> Iterator[dict[str, Any]]:
    """Each row of a JSONL or CSV file with the run's labels.

    A row whose item has one judged unit gets `adjudge.FIELD` and `adjudge.status`; a row with
    several gets `adjudge.units`, a list with unit, status and labels of each. Rows that the run has
    not judged get None. Raises BadInput for a row without the id, UsageError when the data set or
    the id column cannot be told.
    """
    dataset = dataset or _only_dataset(store)
    id_field = id_field or _mapped_id(store, dataset)
    judged: dict[str, list[dict[str, Any]]] = {}
    for row in export.judged(store, run, task):
        if row["repeat"] == 0:
            kept = {"unit": row["unit_id"], "status": row["status"], **row["labels"]}
            judged.setdefault(row["item_id"], []).append(kept)
    for line, row in _rows(path):
        if id_field not in row:
            raise BadInput("no such column; name it with --id", path=str(path), line=line, field=id_field)
        units = judged.get(f"{dataset}:{row[id_field]}", [])
        extra: dict[str, Any] = {f"adjudge.{field}": None for field in task.fields}
        extra["adjudge.status"] = units[0]["status"] if len(units) == 1 else None
        if len(units) == 1:
            extra |= {f"adjudge.{field}": units[0][field] for field in task.fields}
        extra["adjudge.units"] = units if len(units) > 1 else None
        yield {**row, **extra}


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix == ".csv":
        import pandas as pd

        # As text: ids such as 007 and empty cells must come back as they were.
        line = 1
        for chunk in pd.read_csv(path, dtype=str, keep_default_na=False, chunksize=10_000):
            names = [str(name) for name in chunk.columns]
            for values in chunk.itertuples(index=False, name=None):
                line += 1
                yield line, dict(zip(names, values, strict=True))
        return
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except ValueError as e:
                raise BadInput(f"not JSON: {e}", path=str(path), line=line) from e
            if not isinstance(row, dict):
                raise BadInput("not a JSON object", path=str(path), line=line)
            yield line, row


def _only_dataset(store: Store) -> str:
    names = [r[0] for r in store.conn.execute("SELECT DISTINCT dataset FROM items ORDER BY 1")]
    if len(names) != 1:
        raise UsageError(f"--join needs --dataset: the study has {', '.join(names) or 'no items'}")
    return str(names[0])


def _mapped_id(store: Store, dataset: str) -> str:
    query = "SELECT m.maps FROM imports m JOIN items i USING (import_id) WHERE i.dataset = ? LIMIT 1"
    row = store.conn.execute(query, [dataset]).fetchone()
    return str(json.loads(row[0]).get("id", "id")) if row else "id"
