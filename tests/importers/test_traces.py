"""Traces of Langfuse, Phoenix and OpenTelemetry: an item a retrieval, chosen by the span's kind and never by position."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.answers.helpers import rows as rows_of
from tests.formats import write_csv, write_jsonl
from tests.real import ROOT
from tests.suites.helpers import Judge

TRACES = Path(__file__).parent / "traces"
ASKED = ["How many moons has Mars?", "Which of Venus and Mercury has a moon?"]
MARS = ["Mars has two moons, Phobos and Deimos.", "Mars is red."]
EXPORTS = {
    "langfuse": ["langfuse.jsonl"],
    "langsmith": ["langsmith_runs.jsonl", "langsmith_feedback.jsonl"],
    "phoenix": ["phoenix_spans.jsonl", "phoenix_annotations.jsonl"],
    "frame": ["phoenix_frame.jsonl"],
    "otlp": ["otlp.json"],
}


def files(name: str) -> list[Path]:
    return [TRACES / found for found in EXPORTS[name]]


@pytest.mark.parametrize("name", list(EXPORTS))
def test_an_item_a_retrieval(name: str, judge: Judge) -> None:
    """Finding 5: exit 1, five maps, or "guardrail ok" as a passage. A guard span comes first in each of these files."""
    done = judge("items", "import", *files(name))
    assert f"format: {'phoenix' if name == 'frame' else name} (detected from the file)" in done.err
    found = rows_of(
        "SELECT question, group_concat(p.text, '|') FROM items JOIN passages AS p USING (item_id) GROUP BY item_id ORDER BY items.rowid, position"
    )
    # The question is the one that was asked; the agent's two retrievals share one.
    assert found == [
        (ASKED[0], "|".join(MARS)),
        (ASKED[1], "Venus has no moon."),
        (ASKED[1], "Mercury has no moon."),
    ]
    assert rows_of("SELECT count(DISTINCT question_id) FROM items") == [(2,)]
    answers = rows_of(
        "SELECT system, text, json_array_length(context), item_id LIKE '%3' FROM answers ORDER BY rowid"
    )
    # The second answer rests on both retrievals and is stored once, with the later one.
    assert [answer[:3] for answer in answers] == [
        ("gpt-5-mini", "Mars has two moons.", 2),
        ("gpt-5-mini", "Neither has a moon.", 2),
    ]
    again = json.loads(judge("items", "import", *files(name), "--json").out)["rows"][0]
    assert (again["items"], again["passages"], again["answers"], again["labels"]) == (0, 0, 0, 0)


def test_the_order_of_spans_changes_nothing(judge: Judge, tmp_path: Path) -> None:
    lines = (TRACES / "phoenix_spans.jsonl").read_text().splitlines()
    path = tmp_path / "phoenix_spans.jsonl"
    path.write_text("\n".join(reversed(lines)), "utf-8")
    judge("items", "import", path)
    first = rows_of("SELECT item_id, text FROM answers ORDER BY 1")
    judge("items", "import", TRACES / "phoenix_spans.jsonl", "-d", "other.db")
    assert rows_of("SELECT item_id, text FROM answers ORDER BY 1", db="other.db") == first
    assert len(first) == 2


def test_scores_come_with_their_origin(judge: Judge) -> None:
    query = """
        SELECT a.kind, coalesce(r.model, l.annotator_id), u.kind, l.field, l.value, l.rationale FROM labels AS l
        JOIN annotators AS a USING (annotator_id) JOIN units AS u USING (unit_id)
        LEFT JOIN runs AS r ON r.run_id = l.annotator_id ORDER BY 4, 2
    """
    judge("items", "import", *files("langfuse"))
    assert rows_of(query) == [
        ("judge", "langfuse-eval", "answer", "faithfulness", "0.75", "one claim open"),
        ("human", "ana", "answer", "helpful", "True", "short"),
        ("judge", "langfuse-api", "item", "relevance", "0.5", None),
    ]
    Path("study.db").unlink()
    judge("items", "import", *files("phoenix"))
    assert rows_of(query) == [
        ("judge", "phoenix-llm", "answer", "faithfulness", "0.75", "one claim open"),
        ("human", "phoenix", "answer", "helpful", "True", "short"),
        ("judge", "phoenix-llm", "passage", "relevance", "irrelevant", None),
    ]
    assert rows_of("SELECT text FROM labels JOIN passages ON unit_id = passage_id") == [("Mars is red.",)]
    Path("study.db").unlink()
    judge("items", "import", *files("langsmith"))
    assert rows_of(query) == [
        ("judge", "langsmith-model", "answer", "faithfulness", "0.75", "one claim open"),
        ("human", "ana", "answer", "helpful", "1.0", "short"),
        ("judge", "langsmith-api", "item", "relevance", "0.5", None),
    ]
    Path("study.db").unlink()
    judge("items", "import", *files("otlp"))
    assert rows_of(query) == [("judge", "gen_ai.evaluation", "answer", "faithfulness", "0.75", None)]


def test_labels_go_back_with_trace_and_span_ids(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", *files("phoenix"))
    judge("run", "relevant", "-m", "scripted/first")
    path = tmp_path / "annotations.csv"
    judge("runs", "export", "last", "--to", "spans", "-o", path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            (row["trace_id"], row["span_id"], row["document_position"], row["name"])
            for row in csv.DictReader(file)
        ]
    assert rows == [
        ("t1", "search1", "0", "relevant"),
        ("t1", "search1", "1", "relevant"),
        ("t2", "search2", "0", "relevant"),
        ("t2", "search3", "0", "relevant"),
    ]
    # An answer goes back under the model's span.
    done = judge("runs", "export", "phoenix-llm", "--to", "spans", code=2)
    assert "several runs are called" in done.err
    found = json.loads(judge("runs", "list", "--json").out)["rows"]
    run = next(row["run_id"] for row in found if row["task"] == "faithfulness_of_answer.v1")
    out = judge("runs", "export", run, "--to", "spans").out.splitlines()
    assert out[1].startswith("t1,call1,,faithfulness,0.75,phoenix-llm,judge,one claim open,")
    judge("items", "import", ROOT / "data" / "examples" / "rag.jsonl", "-d", "plain.db")
    judge("run", "relevant", "-m", "scripted/first", "-d", "plain.db")
    told = judge("runs", "export", "last", "--to", "spans", "-d", "plain.db", code=1).err
    assert "no labels for units from traces" in told


def test_rows_of_an_export_to_a_warehouse(judge: Judge, tmp_path: Path) -> None:
    """Langfuse's files of observations and of scores: names in snake_case, JSON as text (documented examples)."""
    common = {"trace_id": "t", "start_time": "2026-11-02 09:00:00.000000", "level": "DEFAULT"}
    observations = [
        {**common, "id": "o1", "type": "GUARDRAIL", "output": "guardrail ok"},
        {
            **common,
            "id": "o2",
            "type": "RETRIEVER",
            "input": "q",
            "output": json.dumps(["a", {"content": "b"}]),
        },
        {
            **common,
            "id": "o3",
            "type": "GENERATION",
            "output": json.dumps({"content": "r"}),
            "provided_model_name": "m",
        },
    ]
    score = {"id": "s", "trace_id": "t", "name": "ok", "value": 1, "string_value": "", "source": "ANNOTATION"}
    paths = [
        write_jsonl(tmp_path / "observations.jsonl", observations),
        write_jsonl(tmp_path / "scores.jsonl", [score]),
    ]
    judge("items", "import", "langfuse", *paths)
    assert rows_of("SELECT text FROM passages ORDER BY position") == [("a",), ("b",)]
    assert rows_of("SELECT system, text FROM answers") == [("m", "r")]
    assert rows_of("SELECT annotator_id, field, value FROM labels") == [("langfuse", "ok", "1")]


def test_a_model_whose_name_has_a_mark_of_ids(judge: Judge, tmp_path: Path) -> None:
    text = (TRACES / "langfuse.jsonl").read_text().replace("gpt-5-mini", "claude-opus-4@20250514")
    path = tmp_path / "langfuse.jsonl"
    path.write_text(text, "utf-8")
    done = judge("items", "import", path)
    told = "2 answers of 'claude-opus-4@20250514' are stored under the system 'claude-opus-4-20250514'"
    assert told in done.err
    assert rows_of("SELECT DISTINCT system FROM answers") == [("claude-opus-4-20250514",)]


def test_one_trace_as_it_is_downloaded(judge: Judge, tmp_path: Path) -> None:
    trace = json.loads((TRACES / "langfuse.jsonl").read_text().splitlines()[0])
    path = tmp_path / "trace-1.json"
    path.write_text(json.dumps(trace, indent=2), "utf-8")
    judge("items", "import", path)
    assert rows_of("SELECT text FROM passages ORDER BY position") == [(text,) for text in MARS]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [{"id": "t", "observations": [{"id": "o", "type": "SPAN", "output": "x"}]}],
            "the files have 2 spans, but no retrieval",
        ),
        ([{"id": "t", "observations": [{"type": "SPAN"}]}], ":1: field 'id': missing"),
        ([{"id": "t", "observations": [], "scores": 3}], ":1: field 'scores': must be a list, not a number"),
        (
            [{"id": "t", "observations": []}, {"a": 1}],
            ":2: field 'type': ",
        ),
        (
            [{"id": "t", "observations": [{"id": "o", "type": "RETRIEVER", "output": ["a"]}]}],
            ":1: retrieval 'o' of trace 't' has no question",
        ),
    ],
)
def test_files_that_cannot_be_used(
    rows: list[dict[str, Any]], reason: str, judge: Judge, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "traces.jsonl", rows)
    told = judge("items", "import", "langfuse", path, code=1).err
    assert reason in told and str(path) in told and told.count("\n") == 1
    assert rows_of("SELECT count(*) FROM items") == [(0,)]


def test_what_is_left_out_is_counted(judge: Judge, tmp_path: Path) -> None:
    span = {"traceId": "ab", "spanId": "01", "startTimeUnixNano": "1"}
    kind = {"key": "gen_ai.operation.name", "value": {"stringValue": "retrieval"}}
    query = {"key": "gen_ai.retrieval.query.text", "value": {"stringValue": "q"}}

    def documents(value: list[dict[str, Any]]) -> dict[str, Any]:
        return {"key": "gen_ai.retrieval.documents", "value": {"stringValue": json.dumps(value)}}

    spans = [
        {**span, "attributes": [kind, query, documents([{"id": "d", "score": 0.5}])]},
        {**span, "spanId": "02", "attributes": [kind, query, documents([{"content": "a"}, {"id": "e"}])]},
    ]
    path = write_jsonl(
        tmp_path / "otlp.jsonl", [{"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]} for one in spans]
    )
    done = judge("items", "import", path)
    assert "2 retrieved documents have no text" in done.err
    assert "1 retrievals have no document with text" in done.err
    assert rows_of("SELECT text FROM passages") == [("a",)]
    assert rows_of("SELECT count(*) FROM answers") == [(0,)]


def test_a_number_of_otlp_that_is_none(judge: Judge, tmp_path: Path) -> None:
    attribute = {"key": "k", "value": {"intValue": "abc"}}
    span = {"traceId": "ab", "spanId": "01", "attributes": [attribute]}
    path = write_jsonl(tmp_path / "x.jsonl", [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}])
    told = judge("items", "import", path, code=1).err
    assert f"{path}:1: field 'attributes.value.intValue': span 1: not a whole number" in told


def test_what_a_model_thinks_is_no_part_of_its_answer(judge: Judge, tmp_path: Path) -> None:
    """The GenAI conventions have parts of the type `reasoning` in a message, and messages that only call a tool."""

    def span(name: str, operation: str, attributes: dict[str, Any]) -> dict[str, Any]:
        plain = {"gen_ai.operation.name": operation, **attributes}
        return {
            "traceId": name[0],
            "spanId": name,
            "startTimeUnixNano": name[1],
            "attributes": [
                {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}
                for key, value in plain.items()
            ],
        }

    def trace(name: str, *parts: dict[str, Any]) -> list[dict[str, Any]]:
        found = {
            "gen_ai.retrieval.query.text": "q",
            "gen_ai.retrieval.documents": [{"content": f"of {name}"}],
        }
        said = [{"role": "assistant", "parts": list(parts), "finish_reason": "stop"}]
        return [
            span(f"{name}1", "retrieval", found),
            span(f"{name}2", "chat", {"gen_ai.output.messages": said}),
        ]

    thought = {"type": "reasoning", "content": "The user wants the moons."}
    spans = [
        *trace("a", thought, {"type": "text", "content": "Two."}),
        *trace("b", thought, {"type": "tool_call", "name": "search", "arguments": {"q": "x"}}),
    ]
    path = tmp_path / "otlp.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert "1 answers have no text" in judge("items", "import", path).err
    assert rows_of("SELECT text FROM answers") == [("Two.",)]


def split_langfuse(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of the example as Langfuse exports its tables: traces name their observations and scores by id."""
    found: dict[str, list[dict[str, Any]]] = {"traces": [], "observations": [], "scores": []}
    for line in (TRACES / "langfuse.jsonl").read_text("utf-8").splitlines():
        trace = json.loads(line)
        for name in ("observations", "scores"):
            found[name] += trace[name]
            trace[name] = [row["id"] for row in trace[name]]
        found["traces"].append(trace)
    return found


@pytest.mark.parametrize("names", [("traces", "observations", "scores"), ("observations", "scores")])
@pytest.mark.parametrize("form", ["jsonl", "bare", "csv"])
def test_a_langfuse_export_in_several_files(
    names: tuple[str, ...], form: str, judge: Judge, tmp_path: Path
) -> None:
    """It failed with "these files have different formats": nothing tells a file of scores or traces alone from a table."""
    paths = []
    for name, rows in split_langfuse(tmp_path).items():
        if name not in names:
            continue
        if form != "jsonl":
            # An export to a warehouse has no lists of ids.
            rows = [{k: v for k, v in row.items() if k not in ("observations", "scores")} for row in rows]
        path = tmp_path / f"{name}.{'csv' if form == 'csv' else 'jsonl'}"
        if form == "csv":
            columns = list(dict.fromkeys(key for row in rows for key in row))
            cells = [{k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows]
            write_csv(path, columns, cells)
        else:
            write_jsonl(path, rows)
        paths.append(path)
    done = judge("items", "import", *paths)
    assert "format: langfuse (detected from the file)" in done.err
    assert rows_of("SELECT system, text FROM answers ORDER BY rowid") == [
        ("gpt-5-mini", "Mars has two moons."),
        ("gpt-5-mini", "Neither has a moon."),
    ]
    fields = "SELECT DISTINCT field FROM labels ORDER BY 1"
    assert rows_of(fields) == [("faithfulness",), ("helpful",), ("relevance",)]
