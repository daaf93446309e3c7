"""Recognise the columns of common tables: question, contexts, answer, reference and system.

Such tables come from RAGAS, DeepEval, LangChain, LlamaIndex and Hugging Face. Only the column names in
`judge.importers.guess.ROLES` are recognised. The other names in `judge.importers.guess` are only used for
suggestions. Recognised columns are reported to the user. Ambiguous columns are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.errors import BadInput
from judge.importers.guess import ROLES, MissingFields, normalise_name

TEXTS = ("text", "page_content", "pageContent", "content")
"""Keys for a document's text. LangChain for JavaScript uses `pageContent`."""
WRAPPERS = ("node", "kwargs")
"""Keys under which LlamaIndex's NodeWithScore and LangChain's serialised objects wrap a document."""
_PASSAGE = ("id", "title", "date", "source", "gold", "votes")
BAR = "|"
"""DeepEval joins a list of contexts with this separator in CSV and JSON Lines."""
LOOKED_AT = 100
"""The number of rows whose columns are inspected."""
DATASET = "rag"
"""The default data set for items whose ids are derived from their questions.

All files share this data set, so that their systems can be compared.
"""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """How the columns of a table are interpreted.

    `maps` maps our fields to columns. It does not contain the fields that the user has mapped.
    """

    maps: Mapping[str, str]
    unused: tuple[str, ...]
    derives_id: bool
    """Whether the table has no ids. Item ids are then derived from the question and the reference."""
    has_answers: bool
    names_system: bool
    columns: frozenset[str]
    """The columns that have a value in the inspected rows."""

    def refuse_late(self, row: Mapping[str, Any], maps: Mapping[str, str]) -> None:
        """Raise BadInput if a column with a known name has its first value in this row.

        The column was empty in all inspected rows, so it was not reported to the user. It must therefore be
        neither used nor silently ignored.
        """
        for name, value in row.items():
            if name in self.columns or value in (None, "", []) or name in maps.values():
                continue
            role = next((role for role, names in ROLES.items() if normalise_name(name) in names), None)
            if role is not None and not (role == "system" and not self.has_answers):
                reason = (
                    f"the column has its first value after row {LOOKED_AT}, so it was not recognised; pass "
                )
                reason += f"--map {role}={name}, or remove the column"
                raise BadInput(reason, field=name)


def read_roles(
    rows: Iterable[Mapping[str, Any]], maps: Mapping[str, str], scores: Iterable[str] = ()
) -> CommonTable | None:
    """Return how the columns in these first rows are interpreted, or None if this is not a common table.

    A common table has a column with a question (or a claim), and a column with contexts or an answer. Columns
    without any value are ignored. A table is not a common table if it has ids and no answers, and its columns
    already have adjudge's field names. Raises MissingFields if two columns could be the same field.
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
        fitting = [column for column in columns if normalise_name(column) in names and column not in used]
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
        # Without an answer, a column `model` or `system` does not describe the item, so it is kept as meta.
        taken_columns.pop("system", None)
        doubtful.pop("system", None)
    derives_id = "id" not in {*columns, *maps}
    others = {role: column for role, column in taken_columns.items() if role != column}
    if not (derives_id or has_answers or others):
        return None
    # If one of the two columns were guessed, nobody would notice, and all scores would depend on the guess.
    if doubtful:
        role, fitting = next(iter(doubtful.items()))
        reason = f"{' and '.join(fitting)} could both be the field {role}"
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
    """Return a retrieved document as an object with a passage's keys: text, id, title, date and source.

    Other values become the object's `meta`. If the document is wrapped in another object, only the wrapper's
    score and metadata are kept, because its other keys are settings of the framework. An object without a
    known text key is returned unchanged.
    """
    wrapped = next((value[name] for name in WRAPPERS if isinstance(value.get(name), dict)), None)
    inner = value if wrapped is None else wrapped
    text = next((name for name in TEXTS if isinstance(inner.get(name), str)), None)
    if text is None:
        return dict(value)
    passage = {name: inner[name] for name in _PASSAGE if inner.get(name) is not None}
    metadata = inner.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get("date") is not None:
        # Frameworks store the date in the metadata. A judge needs the date to recognise outdated passages.
        passage.setdefault("date", metadata["date"])
    if "id" not in passage and inner.get("id_") is not None:
        passage["id"] = inner["id_"]
    rest = {"score": value.get("score"), "metadata": metadata} if wrapped is not None else value
    used = {text, "meta", *_PASSAGE}
    meta = {name: part for name, part in rest.items() if name not in used and part not in (None, {}, "")}
    return {**passage, "text": inner[text], "meta": {**meta, **(inner.get("meta") or {})}}


def refuse_joined(column: str, value: Any, as_text: Iterable[str]) -> None:
    """Raise BadInput if the cell contains several contexts that DeepEval has joined into one text."""
    if (
        normalise_name(column) == "retrieval_context"
        and isinstance(value, str)
        and BAR in value
        and column not in as_text
    ):
        raise BadInput(
            f"the cell is text that contains '{BAR}', which DeepEval puts between contexts in CSV and JSON Lines, so it is unclear "
            f'where each context ends; export with save_as("json", ...), or pass --as-text {column} if each cell is one passage',
            field=column,
        )


def understanding(
    table: CommonTable, maps: Mapping[str, str], dataset: str, system: str, is_file_name: bool
) -> list[str]:
    """Return a description of how a table is interpreted, which the user can check before spending any money."""
    lines = [
        f"columns used: {', '.join(f'{role} = {column}' for role, column in {**maps, **table.maps}.items())}"
    ]
    if table.derives_id:
        lines.append(
            f"items: ids are derived from the question and reference; the data set is '{dataset}' (to "
            "change it: --dataset NAME)"
        )
    if table.has_answers and not table.names_system:
        lines.append(
            f"answers: the system is '{system}'" + (" (to change it: --system NAME)" if is_file_name else "")
        )
    if table.unused:
        lines.append(note_unused(table.unused))
    return lines


def note_unused(columns: Iterable[str]) -> str:
    """Return the note that lists the unused columns."""
    return f"columns not used: {', '.join(columns)} (kept as meta, never shown to a judge)"
