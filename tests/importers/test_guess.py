"""The first import of somebody's own file: the format found, everything that is wrong at once, the command to type."""

import csv
import gzip
import json
import shlex
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.importers.guess import guess, nearest
from judge.importers.signs import recognise_format
from tests.real import ROOT
from tests.suites.helpers import Judge

QUESTIONS = [f"What is the history of {topic}?" for topic in ("tea", "bridges", "bees", "maps")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """4 questions of 5 passages as people have them: a row a passage, other names, labels of relevance."""
    path = tmp_path / "mydata.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", "query", "doc_id", "document", "relevance"])
        for n, question in enumerate(QUESTIONS):
            for k in range(5):
                label = "relevant" if k < 2 else "not_relevant"
                writer.writerow([f"q{n}", question, f"d{n}-{k}", f"Passage {k} of {n}.", label])
    return path


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """The same as JSON lines with the passages inside."""
    path = tmp_path / "mydata.jsonl"
    rows = [
        {"qid": f"q{n}", "query": question, "docs": [{"doc_id": f"d{k}", "body": f"p{k}", "rel": "relevant"} for k in range(5)]}
        for n, question in enumerate(QUESTIONS)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def typed(told: str) -> list[str]:
    """The command that an error says to type."""
    return shlex.split(told.strip().rpartition("; try: judge ")[2])


@pytest.mark.parametrize("kind", ["table", "nested"])
def test_the_second_command_goes_in(kind: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    first = judge("items", "import", path, code=1)
    assert f"format: {'csv' if kind == 'table' else 'jsonl'} (detected from the file)" in first.err
    done = judge(*typed(first.err))
    # And says the third one: the column's labels are those of the task.
    assert "next: judge run relevant -m embedded/minilm" in done.err
    shown = json.loads(judge("items", "show", "--json").out)["rows"]
    assert [row["passages"] for row in shown] == [5] * 4
    ran = judge("run", "relevant", "-m", "scripted/hash")
    assert "then: annotate report --field relevant -o report.html" in ran.out


def test_a_file_needs_no_ending(table: Path, judge: Judge, tmp_path: Path) -> None:
    plain, packed = tmp_path / "mydata", tmp_path / "packed.csv.gz"
    plain.write_bytes(table.read_bytes())
    packed.write_bytes(gzip.compress(table.read_bytes()))
    for path in (plain, packed):
        assert "format: csv (detected from the file)" in judge("items", "import", path.name, code=1).err
    scifact = ROOT / "data" / "scifact"
    told = judge("items", "import", scifact / "claims.jsonl", scifact / "corpus.jsonl").err
    assert "format: scifact (detected from the file)" in told
    assert "no such file" in judge("items", "import", "nowhere.csv", code=2).err
    assert "no format 'nowhere'" in judge("items", "import", "nowhere", code=2).err


def test_a_wrong_map_among_what_is_missing_is_corrected(table: Path, judge: Judge) -> None:
    words = [
        *["--map", "question=qurey", "--map", "passages.text=document", "--dataset", "mine", "-d"],
        "a b.db",
    ]
    told = judge("items", "import", "csv", table, *words, code=1).err
    assert "no id; --map question=qurey: there is no 'qurey'; available keys: qid, query" in told
    again = typed(told)
    assert again[-4:] == ["--dataset", "mine", "-d", "a b.db"]
    assert "question=query" in again and "question=qurey" not in again
    judge(*again)


def test_passages_that_nobody_named_are_noticed(nested: Path, judge: Judge) -> None:
    told = judge("items", "import", "jsonl", nested, "--map", "id=qid", "--map", "question=query", code=1).err
    assert "available columns: qid, query, docs" in told
    assert "--map passages=docs --map passages.text=body" in told
    judge(*typed(told))


def test_text_inside_passages_that_has_another_name(nested: Path, judge: Judge) -> None:
    maps = ("--map", "id=qid", "--map", "question=query", "--map", "passages=docs")
    told = judge("items", "import", "jsonl", nested, *maps, code=1).err
    assert "no passages.text" in told and "keys in its passages: doc_id, body, rel" in told
    judge(*typed(told))


def test_all_maps_that_are_wrong_are_told_at_once(table: Path, judge: Judge) -> None:
    words = ("--map", "id=qid", "--map", "passage=document", "--map", "klaim=query", "--map", "question=")
    told = judge("items", "import", "csv", table, *words, code=2).err
    assert "--map passage=document: there is no field 'passage' (did you mean passages.text?)" in told
    assert "--map klaim=query: there is no field 'klaim' (did you mean claim?)" in told
    assert "--map question=: the path is empty" in told
    words = ("--map", "id", "--map", "question", "--map", "passages.text=document")
    told = judge("items", "import", "csv", table, *words, code=2).err
    assert "--map id, --map question: must" in told
    words = ("--map", "id=qid", "--map", "question=qurey", "--map", "passages.text=dokument")
    told = judge("items", "import", "csv", table, *words, code=2).err
    assert "no row has 'qurey' (did you mean query?), 'dokument' (did you mean document?)" in told


def test_labels_in_other_words_are_mapped_in_the_command(table: Path, judge: Judge) -> None:
    text = table.read_text("utf-8").replace("not_relevant", "no").replace("relevant", "Yes")
    table.write_text(text, "utf-8")
    told = judge("items", "import", table, code=1).err
    assert "--map-label relevant:Yes=relevant --map-label relevant:no=not_relevant" in told
    assert "labels of" not in judge(*typed(told)).err, "all of them are the task's"


def test_a_label_that_cannot_be_told_names_what_there_is(table: Path, judge: Judge) -> None:
    table.write_text(table.read_text("utf-8").replace("not_relevant", "meh"), "utf-8")
    told = judge("items", "import", table, code=1).err
    assert "'relevant:meh=relevant|not_relevant'" in told


@pytest.mark.parametrize(
    ("column", "cells", "offered"),
    [
        # BM25 and cosines are a retriever's opinion: offered as gold they would be held against the judge.
        ("score", ("1.0", "0.83"), None),
        # Whole numbers as well: no task has 91 grades.
        ("score", ("91", "60"), None),
        ("score", ("3", "0"), "passages.gold.relevance_0_3=score"),
        # People's own names for their grades, and what is near to them and is none.
        ("my_grade", ("0", "3"), "passages.gold.relevance_0_3=my_grade"),
        ("my_grade", ("3.0", "0.0"), "passages.gold.relevance_0_3=my_grade"),
        ("label_ana", ("0", "1"), "passages.gold.relevant=label_ana"),
        ("my_rating", ("5", "1"), None),
        ("retriever_score", ("2", "1"), None),
        ("rel_rank", ("1", "2"), None),
        # Grades beyond yes and no are not two labels: they go where grades are labels.
        ("relevance", ("0", "3"), "passages.gold.relevance_0_3=relevance"),
        ("relevance", ("0", "2"), "passages.gold.relevance_grade=relevance"),
        ("relevance", ("0", "1"), "passages.gold.relevant=relevance"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numbers_beside_passages(
    tmp_path: Path, judge: Judge, kind: str, column: str, cells: tuple[str, str], offered: str | None
) -> None:
    path = tmp_path / f"numbers.{kind}"
    if kind == "csv":
        rows = [f"q1,how,passage {n},{cell}" for n, cell in enumerate(cells)]
        path.write_text("\n".join([f"query_id,query,chunk,{column}", *rows]) + "\n", "utf-8")
    else:
        results = [{"chunk": f"passage {n}", column: json.loads(cell)} for n, cell in enumerate(cells)]
        path.write_text(json.dumps({"qid": "q1", "query": "how", "results": results}) + "\n", "utf-8")
    words = typed(judge("items", "import", path, code=1).err)
    assert [word for word in words if "gold." in word] == ([offered] if offered else [])
    assert not any("|" in word for word in words), "nothing is left to fill in"
    assert "labels of" not in judge(*words).err, "all of them are the task's"


def test_labels_of_a_field_that_no_task_has(table: Path, judge: Judge) -> None:
    maps = ("--map", "id=qid", "--map", "question=query", "--map", "passages.text=document")
    told = judge("items", "import", table, *maps, "--map", "passages.gold.mine=relevance").err
    assert "no task has a field 'mine'" in told and "relevant (field relevant)" in told


@pytest.mark.parametrize(
    ("row", "maps", "found"),
    [
        ({"id": "1", "claim": "c", "passages.text": "p"}, {}, {}),
        ({"ID": None, "Query": None, "Document": None}, {}, {"id": "ID", "question": "Query", "passages.text": "Document"}),
        # A column that a map reads is not offered again, and a key of ours needs no map.
        ({"qid": "1", "question": "q", "text": "t"}, {"id": "qid"}, {"passages.text": "text"}),
        ({"id": 1, "query": "q", "contexts": ["a", "b"]}, {}, {"question": "query", "passages": "contexts"}),
        ({"id": 1, "question": "q", "results": [{"text": "a", "score": 2}]}, {}, {"passages": "results", "passages.gold.relevance_grade": "score"}),
        # What a retriever thinks of a passage is no gold: a score with decimals is offered as nothing.
        ({"id": 1, "question": "q", "results": [{"text": "a", "score": 0.83}]}, {}, {"passages": "results"}),
        ({"id": 1, "query": "q", "chunk": "a", "score": "12.70"}, {}, {"question": "query", "passages.text": "chunk"}),
        ({"id": 1, "query": "q", "chunk": "a", "score": 1e-05}, {}, {"question": "query", "passages.text": "chunk"}),
        ({"id": 1, "statement": "c", "evidence": "e", "label": "yes"}, {}, {"claim": "statement", "passages.text": "evidence", "passages.gold.stance": "label"}),
        ({"id": 1, "query": "q", "chunk": "a", "score": 91, "my_grade": 3}, {}, {"question": "query", "passages.text": "chunk", "passages.gold.relevance_grade": "my_grade"}),
        ({"idx": 1, "query": "q", "ctx": "a"}, {}, {"id": "idx", "question": "query", "passages.text": "ctx"}),
        ({"foo": 1, "bar": 2}, {}, {}),
    ],
)  # fmt: skip
def test_what_is_offered(row: dict[str, object], maps: dict[str, str], found: dict[str, str]) -> None:
    assert guess(row, maps) == found


def test_the_nearest_name() -> None:
    known = ["id", "question", "claim", "passages", "passages.text", "passages.id"]
    assert [nearest(name, known) for name in ("passage", "pasages.id", "statement", "zzz")] == [
        "passages.text", "passages.id", "claim", None,
    ]  # fmt: skip


def test_the_format_of_shipped_files() -> None:
    data = ROOT / "data"
    assert (
        recognise_format([data / "scifact" / "claims.jsonl", data / "scifact" / "corpus.jsonl"]) == "scifact"
    )
    assert recognise_format([data / "examples" / "pairs.jsonl"]) == "jsonl"
    assert recognise_format([data / "examples" / "votes.csv"]) == "csv"
    with pytest.raises(UsageError, match=r"different formats \(claims.jsonl scifact, votes.csv csv\)"):
        recognise_format([data / "scifact" / "claims.jsonl", data / "examples" / "votes.csv"])
    with pytest.raises(UsageError, match="no such file"):
        recognise_format([data / "nowhere.csv"])
    with pytest.raises(UsageError, match="a folder"):
        recognise_format([data])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"sample_id": 1, "question": "q", "grounding": []}', "garage"),
        ('[{"query_id": "1", "query": "q", "doc_name": "d", "answer": []}]', "mirage"),
        ('{"name": "x", "version": 1, "calibration": [{"id": 1, "question": "q"}], "test": []}', "urag"),
        ("Claim ID,Claim,Verdict,Document IDs\n1,c,True,[]\n", "raguard"),
        ('{"pair_id": 1, "original": "a", "counter": "b"}', "claim-pairs"),
        ('{"_id": "1", "text": "t", "title": ""}', "beir"),
        ("query-id,corpus-id,score\n1,2,1\n", "beir"),
        ('{"id": 1, "claim": "c"', "jsonl"),  # broken: read as what it is, the error names the line
        ("a,b\n1,2\n", "csv"),
    ],
)
def test_the_format_by_the_keys_of_the_first_row(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(text, "utf-8")
    assert recognise_format([path]) == name
