"""Tables of RAGAS, DeepEval, LangChain, LlamaIndex, Hugging Face and pandas go in without maps, or say what to do."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from judge.importers import cells
from tests.answers.helpers import rows as rows_of
from tests.formats import write_csv, write_jsonl
from tests.suites.helpers import Judge

TABLES = Path(__file__).parent / "tables"
CONTEXTS = [
    ["Mars has two moons, Phobos and Deimos.", "Mars is red."],
    ["It's Jane Austen's novel of 1815.", "Emma is a novel, by 'A Lady'\nin three volumes."],
]
QUESTIONS = ["How many moons has Mars?", 'Who wrote "Emma"?']
ANSWERS = ["Mars has two moons.", "Jane Austen."]


def stored(db: str = "study.db") -> list[tuple[str, str, list[str]]]:
    """(question, answer, texts that the system was given) of every answer, in order."""
    found = []
    query = "SELECT question, a.text, a.context FROM answers AS a JOIN items USING (item_id) ORDER BY a.rowid"
    texts = dict(rows_of("SELECT passage_id, text FROM passages", db=db))
    for question, answer, context in rows_of(query, db=db):
        found.append((question, answer, [texts[pid] for pid in json.loads(context)]))
    return found


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A CSV file of these rows."""
    return write_csv(path, list(rows[0]), rows)


@pytest.mark.parametrize(
    "name",
    [
        "pandas_index.csv",
        "ragas.csv",
        "ragas.jsonl",
        "datasets.jsonl",
        "datasets.parquet",
        "deepeval.json",
        "langchain_chain.jsonl",
        "langchain_qa.jsonl",
        "llama_index.jsonl",
    ],
)
def test_a_table_of_each_tool_goes_in_without_maps(name: str, judge: Judge) -> None:
    done = judge("items", "import", TABLES / name)
    assert "columns used: question = " in done.err
    assert stored() == list(zip(QUESTIONS, ANSWERS, CONTEXTS, strict=True))
    system = rows_of("SELECT DISTINCT system, condition FROM answers")
    assert system == [(name.partition(".")[0], "default")]
    again = json.loads(judge("items", "import", TABLES / name, "--json").out)["rows"][0]
    assert (again["items"], again["passages"], again["answers"], again["unchanged"]) == (0, 0, 0, 2)


@pytest.mark.parametrize(
    ("name", "line", "column", "reason"),
    [
        # numpy prints an array without commas, and Python would join the two texts into one.
        ("pandas_numpy.csv", 2, "retrieved_contexts", "comma"),
        # datasets writes its own CSV so.
        ("datasets.csv", 2, "contexts", "comma"),
        ("deepeval.csv", 2, "retrieval_context", "DeepEval"),
        ("deepeval.jsonl", 1, "retrieval_context", "DeepEval"),
    ],
)
def test_contexts_that_cannot_be_told_apart_are_refused(
    name: str, line: int, column: str, reason: str, judge: Judge
) -> None:
    told = judge("items", "import", TABLES / name, code=1).err.splitlines()[-1]
    assert f"{name}:{line}: field '{column}': " in told and reason in told and f"--as-text {column}" in told
    assert rows_of("SELECT count(*) FROM items") == [(0,)]
    judge("items", "import", TABLES / name, "--as-text", column)
    assert rows_of("SELECT count(*) FROM passages") == [(2,)]


def test_lists_of_pandas_under_maps(judge: Judge) -> None:
    """Finding 1: with maps, a list in a cell was one passage, and the judge was shown its brackets."""
    path = TABLES / "pandas_index.csv"
    judge("items", "import", path, "--map", "question=user_input", "--map", "passages=retrieved_contexts")
    assert sorted(text for (text,) in rows_of("SELECT text FROM passages")) == sorted(
        [*CONTEXTS[0], *CONTEXTS[1]]
    )
    words = ("--map", "question=user_input", "--map", "passages.text=retrieved_contexts", "-d", "text.db")
    told = judge("items", "import", path, "--map", "id=user_input", *words, code=1).err
    assert ":2: field 'retrieved_contexts': " in told
    assert "--map passages=retrieved_contexts or --as-text retrieved_contexts" in told


def test_documents_of_langchain_for_javascript(judge: Judge, tmp_path: Path) -> None:
    documents = [{"pageContent": "Mars has two moons.", "metadata": {}}, {"pageContent": "Mars is red."}]
    row = {"question": "How many moons has Mars?", "context": documents, "answer": "Two."}
    (tmp_path / "js.jsonl").write_text(json.dumps(row), "utf-8")
    judge("items", "import", tmp_path / "js.jsonl")
    assert rows_of("SELECT text FROM passages ORDER BY rowid") == [
        ("Mars has two moons.",),
        ("Mars is red.",),
    ]


def test_a_table_with_ids(judge: Judge, tmp_path: Path) -> None:
    """Finding 2: two items, no passages, and the answers lay in meta, without a word."""
    rows = [
        {"id": f"q{n}", "question": QUESTIONS[n], "contexts": str(CONTEXTS[n]), "answer": ANSWERS[n]}
        for n in range(2)
    ]
    judge("items", "import", table(tmp_path / "mine.csv", rows))
    assert stored() == list(zip(QUESTIONS, ANSWERS, CONTEXTS, strict=True))
    assert rows_of("SELECT item_id FROM items") == [("mine:q0",), ("mine:q1",)]


def test_a_table_without_answers_has_items_and_passages(judge: Judge, tmp_path: Path) -> None:
    path = table(tmp_path / "mine.csv", [{"id": "q", "question": QUESTIONS[0], "contexts": str(CONTEXTS[0])}])
    judge("items", "import", path)
    assert rows_of("SELECT (SELECT count(*) FROM answers), count(*) FROM passages") == [(0, 2)]


def test_equal_questions_are_items_of_their_own_in_one_cluster(judge: Judge, tmp_path: Path) -> None:
    """Finding 3: `--map id=question` merged 200 rows into 144 items."""
    rows = [
        {
            "user_input": f"q{n % 144}",
            "retrieved_contexts": str([f"c{n}"]),
            "response": f"r{n}",
            "reference": "x",
        }
        for n in range(200)
    ]
    done = judge("items", "import", table(tmp_path / "ragas.csv", rows))
    assert "'rag'" in done.err
    assert "'ragas' (to change it: --system NAME)" in done.err
    counted = "SELECT count(*), count(DISTINCT question_id) FROM items"
    assert rows_of(counted) == [(200, 144)]
    assert rows_of("SELECT count(*) FROM answers") == [(200,)]


def test_next_week_and_another_system_add_to_the_same_items(judge: Judge, tmp_path: Path) -> None:
    def export(name: str, answer: str, second: str) -> Path:
        rows = [{"question": "q", "contexts": str(["a", second]), "answer": answer, "ground_truth": "g"}] * 2
        return table(tmp_path / name, rows)

    judge("items", "import", export("one.csv", "first", "b"))
    done = json.loads(judge("items", "import", export("two.csv", "second", "c"), "--json").out)["rows"][0]
    # Both have the question twice, so each has its first and its second item; only the passage "c" is new, in both.
    assert (done["items"], done["passages"], done["answers"]) == (0, 2, 2)
    pairs = "SELECT item_id, group_concat(system) FROM answers GROUP BY item_id"
    assert {systems for _, systems in rows_of(pairs)} == {"one,two"}
    given = rows_of("SELECT json_array_length(context) FROM answers")
    assert given == [(2,)] * 4, "an answer has the contexts of its own row only"
    # The file again with another answer: nothing is replaced, and the option to type is named.
    told = judge("items", "import", export("two.csv", "third", "c"), code=1).err
    assert "different answer from 'two'" in told and "--system NAME" in told
    judge("items", "import", export("two.csv", "third", "c"), "--system", "three")
    assert rows_of("SELECT count(*) FROM answers") == [(6,)]


def test_the_index_of_pandas_is_left_out_under_maps_too(judge: Judge, tmp_path: Path) -> None:
    """Finding 4: `column 1 has no name`, even when everything needed was mapped."""
    path = tmp_path / "mine.csv"
    path.write_text(",qid,text,passage\n0,a,How?,So.\n", "utf-8")
    judge(
        "items", "import", path, "--map", "id=qid", "--map", "question=text", "--map", "passages.text=passage"
    )
    assert rows_of("SELECT text FROM passages") == [("So.",)]
    path.write_text("qid,,text\n0,a,How?\n", "utf-8")
    assert "column 2 has no name" in judge("items", "import", "csv", path, code=1).err


def test_two_candidates_are_refused_with_the_map_to_type(judge: Judge, tmp_path: Path) -> None:
    row = {"question": "q", "contexts": ["a"], "documents": ["b"], "answer": "r", "query": None}
    path = write_jsonl(tmp_path / "two.jsonl", [row])
    told = judge("items", "import", path, code=1).err
    assert "contexts and documents" in told
    assert f"try: judge items import jsonl {path} --map passages=contexts" in told
    judge("items", "import", path, "--map", "passages=documents")
    assert rows_of("SELECT text FROM passages") == [("b",)]


def test_what_is_not_used_is_named_and_scores_come_in_where_they_are_asked_for(judge: Judge) -> None:
    path = TABLES / "pandas_index.csv"
    assert "not used: faithfulness" in judge("items", "import", path, "-d", "plain.db").err
    assert rows_of("SELECT count(*) FROM labels", db="plain.db") == [(0,)]
    done = judge("items", "import", path, "--scores", "ragas=faithfulness")
    assert "not used" not in done.err
    query = "SELECT r.model, l.field, l.value FROM labels AS l JOIN runs AS r ON r.run_id = l.annotator_id ORDER BY l.value DESC"
    assert rows_of(query) == [("ragas", "faithfulness", "1"), ("ragas", "faithfulness", "0.5")]
    assert "faithfulness_of_answer.v1" in judge("runs", "list").out
    # Once more: the same scores are the same run.
    judge("items", "import", path, "--scores", "ragas=faithfulness")
    assert rows_of("SELECT count(*) FROM runs") == [(1,)]
    told = judge("items", "import", path, "--scores", "ragas=response", "-d", "no.db", code=1).err
    assert ":2: field 'response': 'Mars has two moons.' is not a number" in told
    assert "--scores ragas: " in judge("items", "import", path, "--scores", "ragas", code=2).err


def test_a_dry_run_shows_what_the_judge_would_see_and_stores_nothing(judge: Judge) -> None:
    done = judge("items", "import", TABLES / "ragas.csv", "--dry-run")
    assert "Mars has two moons, Phobos and Deimos." in done.out and "grounding.v2" in done.out
    assert "dry run: nothing was stored" in done.err
    assert not Path("study.db").exists()


def test_ids_scores_and_dates_of_documents_are_kept(judge: Judge) -> None:
    judge("items", "import", TABLES / "langchain_qa.jsonl")
    ids = [
        (json.loads(meta)["id"], date)
        for meta, date in rows_of("SELECT meta, date FROM passages ORDER BY rowid")
    ]
    assert ids == [("d0", "1877-08-12"), ("d1", "1877-08-12")] * 2
    judge("items", "import", TABLES / "llama_index.jsonl", "-d", "nodes.db")
    metas = [
        json.loads(meta) for (meta,) in rows_of("SELECT meta FROM passages ORDER BY rowid", db="nodes.db")
    ]
    assert metas == [{"score": 0.9, "id": "n0"}, {"score": 0.8, "id": "n1"}] * 2


def test_a_row_whose_answer_is_refused_leaves_nothing_behind(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {"question": "q", "contexts": ["a"], "answer": "r", "system": "x"},
        {"question": "p", "contexts": ["b"], "answer": "r", "system": "x@y"},
    ]
    path = write_jsonl(tmp_path / "mine.jsonl", rows)
    judge("items", "import", path, code=1)
    assert rows_of("SELECT count(*) FROM items") == [(0,)]
    done = json.loads(judge("items", "import", path, "--skip-bad", "--json").out)["rows"][0]
    assert (done["items"], done["passages"], done["answers"], done["skipped"]) == (1, 1, 1, 1)
    assert rows_of("SELECT text FROM passages") == [("a",)]


def test_a_column_that_is_empty_at_first_is_not_dropped(judge: Judge, tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "contexts": "['a']", "answer": "r", "documents": ""} for n in range(120)]
    rows[110]["documents"] = "['b']"
    told = judge("items", "import", table(tmp_path / "late.csv", rows), code=1).err
    assert "late.csv:112: field 'documents': " in told
    assert "--map passages=documents" in told
    lines = [{"question": f"q{n}", "answer": "r"} for n in range(101)] + [
        {"question": "q", "contexts": ["a"]}
    ]
    told = judge("items", "import", write_jsonl(tmp_path / "late.jsonl", lines), code=1).err
    assert "late.jsonl:102: field 'contexts': " in told


def test_options_about_columns_that_are_not_there(judge: Judge, tmp_path: Path) -> None:
    path = TABLES / "ragas.csv"
    told = judge("items", "import", path, "--as-text", "contexts", code=2).err
    assert (
        "--as-text contexts: there is no such column; available columns: user_input, retrieved_contexts"
        in told
    )
    assert (
        "--scores faith: there is no such column"
        in judge("items", "import", path, "--scores", "ragas=faith", code=2).err
    )
    claims = write_jsonl(tmp_path / "claims.jsonl", [{"id": 1, "claim": "c"}])
    told = judge("items", "import", claims, "--system", "x", code=2).err
    assert "--system and --scores require a table with a question" in told


GOOD = {"question": "q", "contexts": "['a', 'b']", "answer": "r"}


@pytest.mark.parametrize(
    ("bad", "column", "reason"),
    [
        ({"contexts": "['" + "x" * 40_000_000 + "']"}, "contexts", "40,000,004 characters"),
        ({"contexts": "[" * 1_000_000}, "contexts", "nested more than 20 levels deep"),
        ({"answer": '=HYPERLINK("http://x.example","r")'}, "answer", "a spreadsheet formula"),
        ({"answer": "=cmd|'/C calc'!A0"}, "answer", "a spreadsheet formula"),
        ({"answer": "=B2+1"}, "answer", "a spreadsheet formula"),
        ({"question": "q\0"}, "question", "NUL character"),
        ({"contexts": "only one text"}, "contexts", "one text in this row, but a list"),
        ({"contexts": "[Document(page_content='a')]"}, "contexts", "Python object (Document(...))"),
        ({"contexts": "['a', ''']"}, "contexts", "neither valid JSON nor a Python list"),
        ({"contexts": "['a', 3]"}, "contexts.1", "must be text or an object, not a number"),
        ({"answer": "['a', 'b']"}, "answer", "contains a list of 2"),
    ],
    ids=["40 MB", "brackets", "formula", "command", "cells", "NUL", "some rows", "objects", "quotes", "number", "list"],
)  # fmt: skip
def test_hostile_cells_name_file_row_and_column(
    bad: dict[str, str], column: str, reason: str, judge: Judge, tmp_path: Path
) -> None:
    path = table(tmp_path / "bad.csv", [GOOD, {**GOOD, "question": "other", **bad}])
    told = judge("items", "import", path, code=1).err.splitlines()
    assert told[-1].startswith(f"judge: {path}:3: field '{column}': ") and reason in told[-1]
    assert len(told[-1]) < 600
    assert rows_of("SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM passages)") == [(0,)]


def test_a_row_without_a_question_names_its_column(judge: Judge, tmp_path: Path) -> None:
    path = table(tmp_path / "bad.csv", [GOOD, {**GOOD, "question": ""}])
    assert f"{path}:3: field 'question': " in judge("items", "import", "csv", path, code=1).err


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("['a', \"it's\"]", ["a", "it's"]),
        (r"['a\nb', 'c\'d', '\u00e9']", ["a\nb", "c'd", "é"]),
        ('["a", {"text": "b"}]', ["a", {"text": "b"}]),
        ("[('a', 1.5, None, nan, True),]", [["a", 1.5, None, None, True]]),
        ("{'text': 'a', 'score': -1e-05}", {"text": "a", "score": -1e-05}),
        ("[]", []),
        # Text that begins with a bracket is text.
        ("[1] Paris is a city.", None),
        ("(see below)", None),
        ("[citation needed] 'Paris'", None),
        ("text", None),
    ],
)
def test_lists_in_cells(cell: str, found: Any) -> None:
    assert cells.parse_cell(cell) == found


@pytest.mark.parametrize(
    "cell",
    ["['a' 'b']", "['a'\n \"b\"]", "('a' 'b')", "['a", "['a',,", "['a', ...]", "[b'a']", "[f'{1}']", "['a', x()]",
     "['\\ud800']", "['\\x4']", "[__import__('os')]", "['a'], ['b']", "array(['a'], dtype=object)"],
)  # fmt: skip
def test_lists_that_cannot_be_read(cell: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        cells.parse_cell(cell)


ROW = {"user_input": "Is tea hot?", "retrieved_contexts": ["Tea is hot."], "response": "Yes."}


def test_a_list_that_stands_as_text_in_json_lines_is_a_list(judge: Judge, tmp_path: Path) -> None:
    """pandas writes what it has read from CSV as it is: `to_json` of such a frame has lists as text."""
    text = repr(["Mars has two moons.", "Mars is red."])
    write_jsonl(tmp_path / "t.jsonl", [{**ROW, "retrieved_contexts": text}])
    judge("items", "import", "t.jsonl")
    assert stored() == [("Is tea hot?", "Yes.", ["Mars has two moons.", "Mars is red."])]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"user_input": "Is\0tea hot?"}, "t.jsonl:2: field 'user_input': "),
        (
            {"retrieved_contexts": ["x" * 9_000_000]},
            "t.jsonl:2: field 'retrieved_contexts': the text has 9,000,000",
        ),
    ],
)
def test_hostile_json_lines_are_refused_as_tables_are(
    judge: Judge, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    write_jsonl(tmp_path / "t.jsonl", [ROW, {**ROW, **changed}])
    assert told in judge("items", "import", "t.jsonl", code=1).err
    assert rows_of("SELECT count(*) FROM items") == [(0,)]


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_the_format_of_a_file_of_brackets_is_found_without_their_paths(
    judge: Judge, tmp_path: Path, name: str
) -> None:
    """Each event of the parser has its whole path: 65,536 bytes of brackets had 10 GB of them."""
    nested = json.dumps(ROW)[:-1] + ', "more": ' + "[" * 50_000 + "]" * 50_000 + "}"
    (tmp_path / name).write_text(f"[{nested}]" if name == "t.json" else nested)
    tracemalloc.start()
    told = judge("items", "import", name, code=1).err
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "nested" in told.splitlines()[-1]
    assert most < 100_000_000


def test_a_spreadsheets_own_file_is_named(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    assert "t.xlsx: " in judge("items", "import", "t.xlsx", code=2).err


def test_the_next_command_for_two_systems_works_as_printed(judge: Judge, tmp_path: Path) -> None:
    for name, answer in (("one", "Yes."), ("two", "No.")):
        write_jsonl(tmp_path / f"{name}.jsonl", [{**ROW, "response": answer}])
        told = judge("items", "import", f"{name}.jsonl").err
    [line] = [line for line in told.splitlines() if line.startswith("next: judge suite")]
    assert line.endswith("--system all")
    judge(*line.removeprefix("next: judge ").replace("MODEL", "scripted/hash").split())


def test_an_answer_without_contexts_has_none_of_another_file(judge: Judge, tmp_path: Path) -> None:
    """Its claims were judged on the passages that another system was given."""
    table(tmp_path / "first.csv", [{"question": q, "contexts": repr(c), "answer": "A."} for q, c in zip(QUESTIONS, CONTEXTS, strict=True)])  # fmt: skip
    table(tmp_path / "second.csv", [{"question": q, "answer": "B."} for q in QUESTIONS])
    judge("items", "import", tmp_path / "first.csv")
    done = judge("items", "import", tmp_path / "second.csv")
    assert "2 answers have no contexts" in done.err
    contexts = "SELECT answer_system, context IS NULL FROM unit_texts WHERE kind = 'answer' ORDER BY n"
    assert rows_of(contexts) == [("first", 0), ("first", 0), ("second", 1), ("second", 1)]
    judge("run", "grounding", "-m", "scripted/first")
    judged = "SELECT DISTINCT t.answer_system FROM judgements JOIN unit_texts AS t USING (unit_id)"
    assert rows_of(judged) == [("first",)]


def test_several_rows_with_a_passage_each_are_the_context_of_their_answer(
    judge: Judge, tmp_path: Path
) -> None:
    rows = [{"id": "1", "question": QUESTIONS[0], "text": text, "answer": "Two."} for text in CONTEXTS[0]]
    judge(
        "items", "import", "csv", table(tmp_path / "rows.csv", rows),
        "--map", "passages.text=text", "--map", "answer=answer",
    )  # fmt: skip
    [(context,)] = rows_of("SELECT context FROM unit_texts WHERE kind = 'answer'")
    assert len(json.loads(context)) == 2


def test_a_file_under_another_name_adds_no_system(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {"question": q, "contexts": repr(c), "answer": "A."} for q, c in zip(QUESTIONS, CONTEXTS, strict=True)
    ]
    first, copy = table(tmp_path / "first.csv", rows), table(tmp_path / "copy.csv", rows)
    judge("items", "import", first)
    done = judge("items", "import", copy)
    assert "imported as the system 'first'" in done.err
    assert rows_of("SELECT DISTINCT system FROM answers") == [("first",)]
    # A table with ids has its data set from its name, too.
    rows = [{"id": n, **row} for n, row in enumerate(rows)]
    judge("items", "import", table(tmp_path / "ids.csv", rows), "-d", "ids.db")
    judge("items", "import", table(tmp_path / "ids copy.csv", rows), "-d", "ids.db")
    names = "SELECT DISTINCT dataset, system FROM answers JOIN items USING (item_id)"
    assert rows_of(names, db="ids.db") == [("ids", "ids")]
    # Who says that it is another system is believed.
    judge("items", "import", copy, "--system", "second")
    assert rows_of("SELECT DISTINCT system FROM answers ORDER BY 1") == [("first",), ("second",)]


def test_a_changed_answer_is_refused_with_an_option_that_the_command_has(
    judge: Judge, tmp_path: Path
) -> None:
    row = {"question": QUESTIONS[0], "contexts": repr(CONTEXTS[0]), "answer": "A."}
    judge("items", "import", table(tmp_path / "mine.csv", [row]))
    table(tmp_path / "mine.csv", [{**row, "answer": "B."}])
    told = judge("items", "import", tmp_path / "mine.csv", code=1).err
    assert "--system NAME" in told
    assert "--system-column" not in told
    judge("items", "import", tmp_path / "mine.csv", "--system", "mine-2")


def test_a_table_without_contexts_suggests_what_its_answers_allow(judge: Judge, tmp_path: Path) -> None:
    rows = [{"question": q, "answer": "A.", "reference": "B."} for q in QUESTIONS]
    told = judge("items", "import", table(tmp_path / "aqrm.csv", rows)).err
    assert "faithfulness -m" not in told
    typed = [line for line in told.splitlines() if line.startswith("next: ")]
    assert typed == [f"next: judge run {task} -m MODEL" for task in ("eligibility", "deflection")]
    for line in typed:
        judge(*line.removeprefix("next: judge ").replace("MODEL", "scripted/hash").split())
