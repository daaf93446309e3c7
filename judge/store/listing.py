"""Read items and answers for listings: `judge items show` and `judge answers`."""

import json
import sqlite3
from collections.abc import Iterator

from judge.errors import UsageError
from judge.store import label_rows
from judge.store.study import Store
from judge.types import Json


def dataset_names(store: Store, named: str | None = None) -> list[str]:
    """Return the names of the data sets, in alphabetical order. Raises UsageError if `named` is not one of them."""
    names = [str(row[0]) for row in store.conn.execute("SELECT DISTINCT dataset FROM items ORDER BY 1")]
    if named is not None and named not in names:
        raise UsageError(f"there is no data set '{named}'; available data sets: {', '.join(names) or 'none'}")
    return names


def list_datasets(store: Store) -> list[dict[str, Json]]:
    """Return one row per data set.

    It has the number of items, passages and questions, and the time of the last import.
    """
    query = """
        SELECT i.dataset, count(*) AS items,
               (SELECT count(*) FROM passages p JOIN items j USING (item_id) WHERE j.dataset = i.dataset)
                   AS passages,
               count(DISTINCT i.question_id) AS questions, max(m.imported_at) AS imported_at
        FROM items i JOIN imports m USING (import_id) GROUP BY i.dataset ORDER BY i.dataset
    """
    return [dict(r) for r in dicts(store.conn, query, [])]


def list_imports(store: Store) -> list[dict[str, Json]]:
    """Return every import with its files, maps, counts and skipped rows, oldest first."""
    rows = dicts(store.conn, "SELECT * FROM imports ORDER BY imported_at, import_id", [])
    names = ("files", "maps", "label_maps", "counts", "skipped")
    return [{k: json.loads(v) if k in names else v for k, v in row.items()} for row in rows]


def names_of_content(store: Store, sha: str) -> list[tuple[str, str]]:
    """Return the (data set, system) pairs whose answers were imported from a file with this sha256.

    The pair with the oldest answer comes first.
    """
    query = """
        SELECT i.dataset, a.system FROM imports AS m JOIN json_each(m.files) AS f ON f.value = ?
        JOIN answers AS a ON a.origin = m.import_id JOIN items AS i USING (item_id)
        GROUP BY i.dataset, a.system ORDER BY min(a.rowid)
    """
    return [(str(dataset), str(system)) for dataset, system in store.conn.execute(query, [sha])]


def formats_of(store: Store, dataset: str) -> set[str]:
    """Return the formats of the files that a data set's items were imported from."""
    query = "SELECT DISTINCT m.format FROM items AS i JOIN imports AS m USING (import_id) WHERE i.dataset = ?"
    return {str(name) for (name,) in store.conn.execute(query, [dataset])}


def list_items(store: Store, dataset: str | None, limit: int) -> list[dict[str, Json]]:
    """Return items in import order, each with its number of passages."""
    query = """
        SELECT item_id, dataset, question_id, question, claim,
               (SELECT count(*) FROM passages p WHERE p.item_id = i.item_id) AS passages
        FROM items i WHERE ?1 IS NULL OR dataset = ?1 ORDER BY rowid LIMIT ?2
    """
    return list(dicts(store.conn, query, [dataset, limit]))


def show_item(store: Store, item_id: str) -> dict[str, Json] | None:
    """Return an item with its passages and all labels on its units, or None if there is no such item."""
    item = next(dicts(store.conn, "SELECT * FROM items WHERE item_id = ?", [item_id]), None)
    if item is None:
        return None
    for name in ("reference_answers", "options", "meta"):
        item[name] = None if item[name] is None else json.loads(item[name])
    query = "SELECT * FROM passages WHERE item_id = ? ORDER BY position"
    passages = [{**p, "meta": json.loads(p["meta"])} for p in dicts(store.conn, query, [item_id])]
    return {**item, "passages": passages, "labels": _labels(store, "item_id", item_id)}


def list_systems(store: Store) -> list[dict[str, Json]]:
    """Return one row per system and condition, with the numbers of answers, empty answers, sentences and
    citations.
    """
    query = """
        SELECT system, condition, count(*) AS answers, sum(trim(text) = '') AS empty,
               (SELECT count(*) FROM units u JOIN answers b USING (answer_id)
                WHERE b.system = a.system AND b.condition = a.condition AND u.kind = 'sentence') AS sentences,
               (SELECT count(*) FROM units u JOIN answers b USING (answer_id)
                WHERE b.system = a.system AND b.condition = a.condition AND u.kind = 'citation') AS citations
        FROM answers a GROUP BY system, condition ORDER BY min(a.rowid)
    """
    return list(dicts(store.conn, query, []))


def list_outputs(store: Store, dataset: str | None = None) -> list[dict[str, Json]]:
    """Return one row per system and condition, with its numbers of outputs and empty outputs.

    Each row also has the origin of the outputs: `imported`, `made by MODEL`, `ranking` or `origin unknown`.
    Outputs about single documents (runs of verdict_document) form the condition `one document`. A ranking
    with the system's name forms the condition `ranking (STAGE)`. If `dataset` is None, all data sets are
    counted.
    """
    data = "1" if dataset is None else "a.item_id IN (SELECT item_id FROM items WHERE dataset = ?)"
    # Distractors are stored as answers, but they are not outputs of a system.
    answers = f"""
        SELECT a.system, a.condition, count(*) AS outputs, sum(trim(a.text) = '') AS empty,
               group_concat(DISTINCT CASE WHEN r.run_id IS NOT NULL THEN 'made by ' || r.model
                    WHEN m.import_id IS NOT NULL THEN 'imported' ELSE 'origin unknown' END) AS origin
        FROM answers AS a LEFT JOIN runs AS r ON r.run_id = a.origin LEFT JOIN imports AS m ON m.import_id = a.origin
        WHERE a.condition NOT GLOB 'distractor:*' AND {data} GROUP BY a.system, a.condition ORDER BY min(a.rowid)
    """
    documents = f"""
        SELECT r.model AS system, 'one document' AS condition, count(DISTINCT j.unit_id) AS outputs, 0 AS empty,
               iif(json_extract(r.options, '$.imported') IS NULL,
                   'made by ' || coalesce(json_extract(r.options, '$.asked_as'), r.model), 'imported') AS origin
        FROM runs AS r JOIN judgements AS j USING (run_id) JOIN units AS a USING (unit_id)
        WHERE r.task GLOB 'verdict_document.*' AND {data} GROUP BY r.model, origin ORDER BY min(r.started)
    """
    values = [] if dataset is None else [dataset]
    rows = [*dicts(store.conn, answers, values), *dicts(store.conn, documents, values)]
    lists = "SELECT name AS system, 'ranking (' || stage || ')' AS condition, count(DISTINCT item_id) AS outputs, 0 AS empty, "
    lists += f"'ranking' AS origin FROM rankings AS a WHERE {data} GROUP BY name, stage ORDER BY name, stage"
    # A ranking belongs to a system only if it has the system's name. A baseline such as bm25 is not the
    # output of a system.
    names = {row["system"] for row in rows}
    rows += [row for row in dicts(store.conn, lists, values) if row["system"] in names]
    order = list(dict.fromkeys(row["system"] for row in rows))
    return sorted(rows, key=lambda row: order.index(row["system"]))


def list_answers(
    store: Store, system: str | None, condition: str | None, limit: int
) -> list[dict[str, Json]]:
    """Return answers in import order."""
    query = """
        SELECT answer_id, item_id, system, condition, text, cited, context, origin FROM answers
        WHERE (?1 IS NULL OR system = ?1) AND (?2 IS NULL OR condition = ?2) ORDER BY rowid LIMIT ?3
    """
    rows = []
    for row in dicts(store.conn, query, [system, condition, limit]):
        context = None if row["context"] is None else json.loads(row["context"])
        rows.append({**row, "cited": json.loads(row["cited"]), "context": context})
    return rows


def show_answer(store: Store, answer_id: str) -> dict[str, Json] | None:
    """Return an answer with its sentences, its claims and all labels on its units.

    Return None if there is no such answer.
    """
    answer = next(dicts(store.conn, "SELECT * FROM answers WHERE answer_id = ?", [answer_id]), None)
    if answer is None:
        return None
    for name in ("cited", "context", "meta"):
        answer[name] = None if answer[name] is None else json.loads(answer[name])
    parts = "SELECT unit_id, kind, span FROM units WHERE answer_id = ? AND kind IN ('sentence', 'claim') ORDER BY rowid"
    sentences, claims = [], []
    for row in dicts(store.conn, parts, [answer_id]):
        span = json.loads(row["span"])
        if row["kind"] == "claim":
            claims.append({"unit_id": row["unit_id"], "text": span["claim"]})
        else:
            text = answer["text"][span["start"] : span["end"]]
            sentences.append({"unit_id": row["unit_id"], "text": text, **span})
    labels = _labels(store, "answer_id", answer_id)
    return {**answer, "sentences": sentences, "claims": claims, "labels": labels}


def _labels(store: Store, column: str, whole: str) -> list[dict[str, Json]]:
    """Return all labels on the units of an item or an answer."""
    query = (
        f"SELECT l.unit_id, l.field, l.annotator_id, l.value FROM {label_rows.ALL} JOIN units u USING (unit_id) "
        f"WHERE u.{column} = ? ORDER BY u.rowid, l.field, l.annotator_id"
    )
    return list(dicts(store.conn, query, [whole]))


def dicts(conn: sqlite3.Connection, query: str, values: list[Json]) -> Iterator[dict[str, Json]]:
    """Yield the rows of a query as dictionaries."""
    cursor = conn.execute(query, values)
    names = [c[0] for c in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))
