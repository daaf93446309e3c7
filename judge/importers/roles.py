"""Recognise the columns of common tables: question, contexts, answer, reference and system in tables from
RAGAS, DeepEval, LangChain, LlamaIndex and Hugging Face.

The names are in `judge.importers.guess.ROLES`; other names in that module are only suggested. Recognised
columns are reported to the user, and ambiguous names are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.errors import BadInput
from judge.importers.guess import ROLES, MissingFields, plain_name

TEXTS = ("text", "page_content", "pageContent", "content")
"""Keys for a document's text. LangChain for JavaScript uses `pageContent`."""
WRAPPERS = ("node", "kwargs")
"""Keys under which LlamaIndex's NodeWithScore and LangChain's serialised objects wrap a document."""
_PASSAGE = ("id", "title", "date", "source", "gold", "votes")
BAR = "|"
"""Separator with which DeepEval joins a list of contexts into one text in CSV and JSON Lines."""
LOOKED_AT = 100
"""Number of rows whose columns are inspected."""
DATASET = "rag"
"""The data set for items that are named by their question. It is the same for all files, so that files can be
compared.
"""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """The interpretation of a table. `maps` maps our field to a column, for fields that the user did not map."""

    maps: Mapping[str, str]
    unused: tuple[str, ...]
    derives_id: bool
    """Whether the table has no ids, so that an item is named by its question and reference."""
    has_answers: bool
    names_system: bool
    columns: frozenset[str]
    """The columns with a value in the inspected rows."""

    def refuse_late(self, row: Mapping[str, Any], maps: Mapping[str, str]) -> None:
        """Raise BadInput if a column with one of our names has a value, but was empty in all inspected rows.

        The column was not reported to the user, so it may be neither used nor dropped silently.
        """
        for name, value in row.items():
            if name in self.columns or value in (None, "", []) or name in maps.values():
                continue
            role = next((role for role, names in ROLES.items() if plain_name(name) in names), None)
            if role is not None and not (role == "system" and not self.has_answers):
                reason = f"has a value for the first time, after {LOOKED_AT} rows or more: "
                reason += f"--map {role}={name}, or leave the column out"
                raise BadInput(reason, field=name)


def taken(
    rows: Iterable[Mapping[str, Any]], maps: Mapping[str, str], scores: Iterable[str] = ()
) -> CommonTable | None:
    """Return the interpretation of the columns in these first rows, or None if this is not a common table.

    In a common table, one column has a question (or a claim), and another one has contexts or an answer. A
    table with exactly the keys of `jsonl` is not a common table. A column without any value does not count.
    Raises MissingFields if two columns could be the same field.
    """
    columns = {
        name: None
        for row in rows
        if isinstance(row, dict)
        for name, value in row.items()
        if isinstance(name, str) and value is not None and value != ""
    }
    used = set(maps.values())
    taken_columns: dict[str, str] = {}
    doubtful: dict[str, list[str]] = {}
    for role, names in ROLES.items():
        if role in maps:
            continue
        fitting = [column for column in columns if plain_name(column) in names and column not in used]
        if len(fitting) > 1:
            doubtful[role] = fitting
        if fitting:
            taken_columns[role] = fitting[0]
    there = {*taken_columns, *maps}
    is_flat = any(name.startswith("passages.") for name in (*columns, *maps))
    has_answers = "answer" in there
    if not has_answers and (is_flat or "passages" not in there):
        return None
    if ("question" not in there and "claim" not in {*columns, *maps}) or (is_flat and "answer" not in maps):
        return None
    if not has_answers:
        # Without an answer a column `model` or `system` says nothing about an item, so it is kept as meta.
        taken_columns.pop("system", None)
        doubtful.pop("system", None)
    derives_id = "id" not in {*columns, *maps}
    others = {role: column for role, column in taken_columns.items() if role != column}
    if not (derives_id or has_answers or others):
        return None
    # A guess between two columns would go unnoticed, and every number would rest on it.
    if doubtful:
        role, fitting = next(iter(doubtful.items()))
        reason = f"{' and '.join(fitting)} could each be the {role}"
        raise MissingFields(reason, {**maps, role: fitting[0]}, field=fitting[1])
    named = {
        *taken_columns.values(),
        *(path.partition(".")[0] for path in maps.values()),
        *maps.values(),
        *scores,
    }
    item_keys = ("id", "question_id", "claim", "dataset", "options", "correct", "condition", "meta")
    unused = tuple(
        c for c in columns if c not in named and c not in item_keys and not c.startswith(("gold", "votes"))
    )
    return CommonTable(taken_columns, unused, derives_id, has_answers, "system" in there, frozenset(columns))


def document(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a retrieved document as a passage with text, id, title, date and source; other values become its `meta`.

    If a document is wrapped, only the score and metadata of the wrapper are kept, because its other keys are
    a framework's settings. An object without any of the known text keys is returned unchanged.
    """
    wrapped = next((value[name] for name in WRAPPERS if isinstance(value.get(name), dict)), None)
    inner = value if wrapped is None else wrapped
    text = next((name for name in TEXTS if isinstance(inner.get(name), str)), None)
    if text is None:
        return dict(value)
    passage = {name: inner[name] for name in _PASSAGE if inner.get(name) is not None}
    metadata = inner.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get("date") is not None:
        # Frameworks keep the date in the metadata, and a judge needs it to see what is outdated.
        passage.setdefault("date", metadata["date"])
    if "id" not in passage and inner.get("id_") is not None:
        passage["id"] = inner["id_"]
    rest = {"score": value.get("score"), "metadata": metadata} if wrapped is not None else value
    used = {text, "meta", *_PASSAGE}
    meta = {name: part for name, part in rest.items() if name not in used and part not in (None, {}, "")}
    return {**passage, "text": inner[text], "meta": {**meta, **(inner.get("meta") or {})}}


def refuse_joined(column: str, value: Any, as_text: Iterable[str]) -> None:
    """Raise BadInput if DeepEval has joined contexts into one text."""
    if (
        plain_name(column) == "retrieval_context"
        and isinstance(value, str)
        and BAR in value
        and column not in as_text
    ):
        raise BadInput(
            f"is one text that contains '{BAR}'; DeepEval joins contexts in this way in CSV and JSON Lines, and it is ambiguous "
            f'where one ends; save_as("json", ...) keeps the list; pass --as-text {column} if each is one passage',
            field=column,
        )


def understanding(
    table: CommonTable, maps: Mapping[str, str], dataset: str, system: str, is_file_name: bool
) -> list[str]:
    """Return the interpretation of a table as lines, which the user can check before any money is spent."""
    lines = [f"took: {', '.join(f'{role} = {column}' for role, column in {**maps, **table.maps}.items())}"]
    if table.derives_id:
        lines.append(
            f"items: named by their question and reference, in the data set '{dataset}' (--dataset NAME)"
        )
    if table.has_answers and not table.names_system:
        lines.append(f"answers: of the system '{system}'" + (" (--system NAME)" if is_file_name else ""))
    if table.unused:
        lines.append(not_used(table.unused))
    return lines


def not_used(columns: Iterable[str]) -> str:
    """Return the note about columns that none of our fields uses."""
    return f"not used: {', '.join(columns)} (kept as meta, never shown)"
