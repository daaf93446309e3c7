"""chat: conversations as OpenAI, LangChain, ShareGPT and Anthropic write them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adjudge import Study
from judge.errors import BadInput
from judge.importers.formats import chat
from tests.importers.helpers import write

OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who wrote Emma?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "Emma is a novel by Jane Austen."},
    {"role": "assistant", "content": "Jane Austen."},
    {"role": "user", "content": [{"type": "text", "text": "When?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "In 1815."}]},
]
LANGCHAIN = [
    {"type": "human", "data": {"content": "Who wrote Emma?"}},
    {"type": "tool", "data": {"content": '[{"page_content": "By Austen."}, {"page_content": "Of 1815."}]'}},
    {"type": "ai", "data": {"content": "Jane Austen."}},
]
SERIALISED = [
    {"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "Who?"}},
    {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "Austen."}},
]
SHAREGPT = [
    {"from": "human", "value": "Who wrote Emma?"},
    {"from": "gpt", "value": "Jane Austen."},
]
ANTHROPIC = [
    {"role": "user", "content": "Who wrote Emma?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "search", "input": {}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "content": [{"type": "text", "text": "By Austen."}]}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Jane Austen."}]},
]


def only(row: dict[str, Any]) -> tuple[str, str, Any]:
    (made,) = chat.flatten(row, "last")
    return made["question"], made["answer"], made.get("contexts")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": OPENAI}, ("When?", "In 1815.", ["Emma is a novel by Jane Austen."])),
        (
            {"messages": LANGCHAIN},
            ("Who wrote Emma?", "Jane Austen.", [{"page_content": "By Austen."}, {"page_content": "Of 1815."}]),
        ),
        ({"messages": SERIALISED}, ("Who?", "Austen.", None)),
        ({"conversations": SHAREGPT}, ("Who wrote Emma?", "Jane Austen.", None)),
        ({"messages": ANTHROPIC}, ("Who wrote Emma?", "Jane Austen.", ["By Austen."])),
        # The last question was never answered: an older answer is not an answer to it.
        ({"messages": [*OPENAI, {"role": "user", "content": "Why?"}]}, ("Why?", "", ["Emma is a novel by Jane Austen."])),
    ],
)  # fmt: skip
def test_the_last_question_its_answer_and_the_tool_results(row: dict[str, Any], expected: Any) -> None:
    assert only(row) == expected


def test_all_turns_are_items_of_one_cluster() -> None:
    first, second = chat.flatten({"id": 7, "messages": OPENAI}, "all")
    assert (first["id"], first["question_id"], first["answer"]) == ("7-1", "7", "Jane Austen.")
    assert (second["id"], second["question_id"], second["answer"]) == ("7-2", "7", "In 1815.")
    assert [turn["content"] for turn in second["meta"]["conversation"]][-1] == "Jane Austen."


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "no JSON"}, "messages"),
        ({"messages": [{"role": "user", "content": "q"}, {"role": {"a": 1}}]}, "messages.1.role"),
        ({"messages": ["text"]}, "messages.0"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, "messages"),
    ],
)
def test_a_conversation_that_cannot_be_read_names_the_message(row: Any, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        chat.flatten(row, "last")
    assert caught.value.field == field


ROWS = [
    {"model": "a", "reference": "Austen", "messages": OPENAI},
    {"model": "b", "messages": LANGCHAIN},
    {"model": "b", "messages": [{"role": "user", "content": "Hello?"}]},
]


def test_a_log_is_recognised_and_imported_from_the_command_line(tmp_path: Path, judge: Any) -> None:
    path = write(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    (report,) = json.loads(judge("items", "import", path, "--json").out)["rows"]
    # Three items, one passage of a tool and two documents; nobody answered "Hello?".
    assert (report["items"], report["passages"], report["answers"], report["empty"]) == (3, 3, 3, 1)
    again = judge("items", "import", path, "--turns", "all", "--json", "-d", "all.db")
    assert json.loads(again.out)["rows"][0]["items"] == 4


def test_a_bad_conversation_is_named_and_skipped_alone(tmp_path: Path, judge: Any) -> None:
    path = write(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in [*ROWS, {"messages": []}]))
    assert f"{path}:4: field 'messages'" in judge("items", "import", path, code=1).err
    (report,) = json.loads(judge("items", "import", path, "--skip-bad", "--json").out)["rows"]
    assert (report["items"], report["skipped"]) == (3, 1)


def test_conversations_in_memory_and_in_a_table(tmp_path: Path) -> None:
    with Study(tmp_path / "rows.db") as study:
        assert study.items(ROWS, turns="all").rows[0]["items"] == 4
    table = tmp_path / "log.csv"
    pd.DataFrame([{**row, "messages": json.dumps(row["messages"])} for row in ROWS]).to_csv(
        table, index=False
    )
    with Study(tmp_path / "table.db") as study:
        assert study.items(table).rows[0]["items"] == 3
