"""Which column of a common table is what: question, contexts, answer, reference and system of RAGAS, DeepEval, LangChain,
LlamaIndex and data sets of Hugging Face.

The table is `ROLES` of `judge.importers.guess`, which has the names that are only offered, too. What is taken by its name is told
to the user, and a name that could be read in two ways is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.errors import BadInput
from judge.importers.guess import ROLES, MissingFields, plain_name

TEXTS = ("text", "page_content", "pageContent", "content")
"""Where a document has its text; `pageContent` in LangChain for JavaScript."""
WRAPPERS = ("node", "kwargs")
"""What LlamaIndex's NodeWithScore and LangChain's serialised objects wrap a document in."""
_PASSAGE = ("id", "title", "date", "source", "gold", "votes")
BAR = "|"
"""DeepEval writes a list of contexts into CSV and JSON Lines as one text, with this between them."""
LOOKED_AT = 100
"""Rows whose columns are looked at."""
DATASET = "rag"
"""The data set of items that are named by their question: the same in every file, so that files can be compared."""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """What a table was understood as: `maps` is our field -> column, as far as the user did not say it."""

    maps: Mapping[str, str]
    unused: tuple[str, ...]
    derives_id: bool
    """The table has no ids: an item is named by its question and reference."""
    has_answers: bool
    names_system: bool
    columns: frozenset[str]
    """The columns that have a value in the rows that were looked at."""

    def refuse_late(self, row: Mapping[str, Any], maps: Mapping[str, str]) -> None:
        """Raises BadInput for a column with one of our names that was empty in all rows that were looked at.

        It was not told to the user, so it may neither be taken nor dropped silently.
        """
        for name, value in row.items():
            if name in self.columns or value in (None, "", []) or name in maps.values():
                continue
            role = next((role for role, names in ROLES.items() if plain_name(name) in names), None)
            if role is not None and not (role == "system" and not self.has_answers):
                told = f"has a value for the first time, after {LOOKED_AT} rows or more: "
                told += f"--map {role}={name}, or leave the column out"
                raise BadInput(told, field=name)


def taken(
    rows: Iterable[Mapping[str, Any]], maps: Mapping[str, str], scores: Iterable[str] = ()
) -> CommonTable | None:
    """What the columns of these first rows are, None for a table that is not of this kind.

    It is one where a column is a question (or a claim), and another one contexts or an answer. A table whose rows are
    written as `jsonl` has them and that has nothing else is read as before. A column without any value is none. Raises
    MissingFields where two columns could be the same thing.
    """
    columns = {
        name: None
        for row in rows
        if isinstance(row, dict)
        for name, value in row.items()
        if isinstance(name, str) and value is not None and value != ""
    }
    used = set(maps.values())
    found: dict[str, str] = {}
    doubtful: dict[str, list[str]] = {}
    for role, names in ROLES.items():
        if role in maps:
            continue
        fitting = [column for column in columns if plain_name(column) in names and column not in used]
        if len(fitting) > 1:
            doubtful[role] = fitting
        if fitting:
            found[role] = fitting[0]
    there = {*found, *maps}
    is_flat = any(name.startswith("passages.") for name in (*columns, *maps))
    has_answers = "answer" in there
    if not has_answers and (is_flat or "passages" not in there):
        return None
    if ("question" not in there and "claim" not in {*columns, *maps}) or (is_flat and "answer" not in maps):
        return None
    if not has_answers:
        found.pop("system", None)
        doubtful.pop("system", None)
    derives_id = "id" not in {*columns, *maps}
    others = {role: column for role, column in found.items() if role != column}
    if not (derives_id or has_answers or others):
        return None
    if doubtful:
        role, fitting = next(iter(doubtful.items()))
        told = f"{' and '.join(fitting)} could each be the {role}"
        raise MissingFields(told, {**maps, role: fitting[0]}, field=fitting[1])
    named = {*found.values(), *(path.partition(".")[0] for path in maps.values()), *maps.values(), *scores}
    own = ("id", "question_id", "claim", "dataset", "options", "correct", "condition", "meta")
    unused = tuple(
        c for c in columns if c not in named and c not in own and not c.startswith(("gold", "votes"))
    )
    return CommonTable(found, unused, derives_id, has_answers, "system" in there, frozenset(columns))


def document(value: Mapping[str, Any]) -> dict[str, Any]:
    """A retrieved document as a passage of ours: text, id, title, date, source; the rest as its `meta`.

    Of a wrapped document only its score and metadata are kept: its other keys are the settings of a framework. An object
    whose text is under none of the known names is returned as it is.
    """
    wrapped = next((value[name] for name in WRAPPERS if isinstance(value.get(name), dict)), None)
    inner = value if wrapped is None else wrapped
    text = next((name for name in TEXTS if isinstance(inner.get(name), str)), None)
    if text is None:
        return dict(value)
    found = {name: inner[name] for name in _PASSAGE if inner.get(name) is not None}
    metadata = inner.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get("date") is not None:
        found.setdefault("date", metadata["date"])
    if "id" not in found and inner.get("id_") is not None:
        found["id"] = inner["id_"]
    rest = {"score": value.get("score"), "metadata": metadata} if wrapped is not None else value
    used = {text, "meta", *_PASSAGE}
    meta = {name: part for name, part in rest.items() if name not in used and part not in (None, {}, "")}
    return {**found, "text": inner[text], "meta": {**meta, **(inner.get("meta") or {})}}


def refuse_joined(column: str, value: Any, as_text: Iterable[str]) -> None:
    """Raises BadInput for contexts that DeepEval has joined into one text."""
    if (
        plain_name(column) == "retrieval_context"
        and isinstance(value, str)
        and BAR in value
        and column not in as_text
    ):
        raise BadInput(
            f"is one text with '{BAR}' in it: DeepEval joins contexts so in CSV and JSON Lines, and where one ends cannot be "
            f'told; save_as("json", ...) keeps the list; --as-text {column} if each is one passage',
            field=column,
        )


def understanding(
    found: CommonTable, maps: Mapping[str, str], dataset: str, system: str, is_file_name: bool
) -> list[str]:
    """What a table was taken for, a line each, for the user to check before any money is spent."""
    lines = [f"took: {', '.join(f'{role} = {column}' for role, column in {**maps, **found.maps}.items())}"]
    if found.derives_id:
        lines.append(
            f"items: named by their question and reference, in the data set '{dataset}' (--dataset NAME)"
        )
    if found.has_answers and not found.names_system:
        lines.append(f"answers: of the system '{system}'" + (" (--system NAME)" if is_file_name else ""))
    if found.unused:
        lines.append(f"not used: {', '.join(found.unused)} (kept as meta, shown to nobody)")
    return lines
