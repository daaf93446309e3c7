"""Chat logs: one item for each conversation, or for each of its turns, with the answer and the tool results.

A record has its messages under `messages` or `conversations`. Three forms are read:

    OpenAI      {"role": "user"|"assistant"|"tool"|"system", "content": "text" or [{"type": "text", "text": "..."}]}
    LangChain   {"type": "human"|"ai"|"tool"|"system", "content": "..."}, also with the content under `data` or `kwargs`
    ShareGPT    {"from": "human"|"gpt"|"tool"|"observation"|"system", "value": "..."}

The last user turn is the question, and the last assistant turn after it is the answer. If there is none, the
answer is empty. The results of tools before the answer are its passages. A result that is a list of documents
in JSON gives one passage for each document. With `--turns all`, each user turn is an item, and all turns of a
conversation are one cluster. The turns before a question are kept in `meta.conversation`.

The record's other keys are read as those of any table: `id`, `reference`, `model` and so on. The file is JSON
Lines, JSON, CSV or Parquet. In a table, the messages are JSON in a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.naming import hash_parts
from judge.importers.records import Records, build_all, build_each, table_or_json
from judge.importers.roles import TEXTS
from judge.importers.trace_texts import parse_json_text, text_of

NAME = "chat"
HELP = "chat logs of OpenAI, LangChain or ShareGPT: the last question, its answer and the tool results"
SIGNS = (("messages",), ("conversations",))
MESSAGES = ("messages", "conversations")
"""The keys under which a record has its messages."""
USER, ASSISTANT, TOOL, OTHER = "user", "assistant", "tool", "other"
_ROLES = {
    **dict.fromkeys(("user", "human", "HumanMessage", "HumanMessageChunk"), USER),
    **dict.fromkeys(("assistant", "ai", "gpt", "model", "AIMessage", "AIMessageChunk", "bot", "chatgpt"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "observation", "ToolMessage", "FunctionMessage"), TOOL),
    **dict.fromkeys(("system", "developer", "SystemMessage", "function_call"), OTHER),
}  # fmt: skip
_RESULT = "tool_result"
"""The type of a part of a user's message that contains a tool's result, as Anthropic writes it."""


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield the rows of each file. Raises UsageError if a --map names an unknown field, or a path that no row has."""
    for path in paths:
        reader = RowReader(path, options)
        yield from build_each(_records(path, options.turns, bad), reader.items, bad)
        reader.finish()


def table_rows(path: Path, bad: Bad) -> Iterator[dict[str, Any]]:
    """Yield the rows of a common table that the file's conversations become."""
    return (row for _, row in _records(path, "last", bad).rows)


def _records(path: Path, turns: str, bad: Bad) -> Records:
    records, is_table = table_or_json(path, bad)

    def rows(record: Any) -> list[dict[str, Any]]:
        # An empty cell is not a value, but an empty string in JSON is.
        is_row = is_table and isinstance(record, dict)
        return flatten({name: cell or None for name, cell in record.items()} if is_row else record, turns)

    made = build_all(records, rows, bad)
    return Records(path, records.word, ((where.line, row) for row, where in made))


def has_messages(row: Any) -> bool:
    """Return whether a row in memory is a conversation."""
    return isinstance(row, Mapping) and any(name in row for name in MESSAGES)


def flatten(record: Any, turns: str) -> list[dict[str, Any]]:
    """Return the rows of a conversation: one for its last question or, if `turns` is "all", one for each question.

    A row has `question`, `answer` and, if a tool was called, `contexts`. Raises BadInput if the record has no
    messages, no question or a message without a known role.
    """
    record = fields.record(record)
    name = next((name for name in MESSAGES if record.get(name) is not None), None)
    if name is None:
        raise BadInput(f"the row has neither {' nor '.join(MESSAGES)}", field=MESSAGES[0])
    listed = parse_json_text(record[name])
    messages = [
        part
        for number, message in enumerate(fields.listing(listed, name))
        for part in _read_message(message, f"{name}.{number}")
    ]
    questions = [n for n, (role, text) in enumerate(messages) if role == USER and text.strip()]
    if not questions:
        raise BadInput("the conversation has no user message with text", field=name)
    rest = {key: value for key, value in record.items() if key != name}
    rows = []
    for place, start in enumerate(questions):
        if turns != "all" and start != questions[-1]:
            continue
        end = questions[place + 1] if place + 1 < len(questions) else len(messages)
        answers = [n for n in range(start + 1, end) if messages[n][0] == ASSISTANT and messages[n][1].strip()]
        seen = messages[: answers[-1]] if answers else messages[:end]
        row = {**rest, "question": messages[start][1], "answer": messages[answers[-1]][1] if answers else ""}
        documents = [document for role, text in seen if role == TOOL for document in _documents(text)]
        # Without any tool, it is unknown what the model was shown.
        if any(role == TOOL for role, _ in messages):
            row["contexts"] = documents
        if before := [{"role": role, "content": text} for role, text in messages[:start]]:
            row["meta"] = {**_meta(rest), "conversation": before}
        if turns == "all":
            # Turns of one conversation are not independent.
            whole = fields.word(rest.get("id"), "id") or hash_parts([text for _, text in messages])
            row |= {
                "id": f"{whole}-{place + 1}",
                "question_id": fields.word(rest.get("question_id"), "question_id") or whole,
            }
        rows.append(row)
    return rows


def _meta(rest: Mapping[str, Any]) -> dict[str, Any]:
    meta = parse_json_text(rest.get("meta"))
    return dict(meta) if isinstance(meta, dict) else {} if meta in (None, "") else {"meta": meta}


def _read_message(message: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield (role, text) for a message and, before it, for each tool result in its content."""
    message = fields.mapping(message, place)
    # LangChain writes a message's fields under `data`, or with the class as the last part of `id` under `kwargs`.
    inner = next((message[key] for key in ("data", "kwargs") if isinstance(message.get(key), dict)), message)
    path = message.get("id")
    named = path[-1] if isinstance(path, list) and path and inner is message.get("kwargs") else None
    role = named or message.get("role") or message.get("from") or message.get("type") or inner.get("type")
    if not isinstance(role, str) or role not in _ROLES:
        reason = f"the message has the role {str(role)[:40]!r}; use user, assistant, tool or system"
        raise BadInput(reason, field=f"{place}.role")
    content = next((inner[key] for key in ("content", "value", "text") if inner.get(key) is not None), "")
    parts = content if isinstance(content, list) else [content]
    results = [part for part in parts if isinstance(part, dict) and part.get("type") == _RESULT]
    for part in results:
        yield TOOL, _text(part.get("content"))
    others = [part for part in parts if part not in results]
    if others or not results:
        yield _ROLES[role], "\n".join(filter(None, map(_text, others)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else text_of(value, TEXTS) or ""


def _documents(text: str) -> Iterable[Any]:
    """Return the documents in a tool's result: those of a list in JSON, or the text itself."""
    value = parse_json_text(text)
    if isinstance(value, dict):
        value = next((part for part in value.values() if isinstance(part, list)), None)
    if isinstance(value, list) and value and all(map(_is_document, value)):
        return value
    return [text] if text.strip() else []


def _is_document(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, dict) and any(
        isinstance(value.get(key), str) and value[key].strip() for key in TEXTS
    )
