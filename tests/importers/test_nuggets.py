"""judge nuggets import: the files of `nuggetizer`, tables, what is refused, and the units that come of it."""

import json
import sqlite3
from pathlib import Path

import pytest

from judge.store import Store
from judge.store.origin import origins
from tests.answers.helpers import column, rows
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.real import ROOT
from tests.suites.helpers import Judge, answers

FILES = ROOT / "tests" / "importers" / "nuggets"
HEAD = "id,nugget,importance"
ASSIGNED = f"{HEAD},system,assignment"


def units() -> list[str]:
    return column("SELECT unit_id FROM units WHERE kind = 'nugget' ORDER BY rowid")


def table(folder: Path, *lines: str, name: str = "nuggets.csv") -> Path:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    """The two questions of the fixture, with the answers of `first` and `second`."""
    items = FILES / "nuggets.jsonl"
    judge("items", "import", "jsonl", items, "--dataset", "x", "--map", "id=qid", "--map", "question=query")
    maps = ["--map", "id=qid", "--map", "text=answer_text", "--system-column", "run_id"]
    judge("systems", "import", FILES / "first.jsonl", *maps)
    answers(judge, tmp_path, [("mars", "second", "default", "Mars has two moons,  Phobos and Deimos.")])


def test_what_nuggetizer_writes(judge: Judge) -> None:
    done = judge("nuggets", "import", FILES / "nuggets.jsonl", "--json")
    [counts] = checked(done.out, "nuggets_import")["rows"]
    # Three nuggets of mars, two of emma; the answers are those of three items.
    assert (counts["nuggets"], counts["labels"]) == (5, 0)
    assert units() == [
        *(f"x:mars@first@default#n{n}" for n in range(3)),
        *(f"x:emma@first@default#n{n}" for n in range(2)),
        *(f"x:mars@second@default#n{n}" for n in range(3)),
    ]
    assert rows("SELECT n, text, importance FROM nuggets WHERE item_id = 'x:mars' ORDER BY n") == [
        (0, "Mars has two moons", "vital"),
        (1, "The moons are Phobos and Deimos", "vital"),
        (2, "Hall found them", "okay"),
    ]
    files = [FILES / "first.jsonl", FILES / "second.jsonl"]
    done = judge("nuggets", "import", *files, "--judge", "gpt-4o", "--json")
    # `second` has no answer to emma: its record of that question assigns nothing.
    assert [row["labels"] for row in checked(done.out, "nuggets_import")["rows"]] == [5, 3]
    query = "SELECT r.model, l.value FROM labels AS l JOIN runs AS r ON r.run_id = l.annotator_id WHERE unit_id = '{}'"
    assert rows(query.format("x:mars@first@default#n1")) == [("gpt-4o", "partial_support")]
    again = checked(judge("nuggets", "import", *files, "--judge", "gpt-4o", "--json").out, "nuggets_import")[
        "rows"
    ]
    assert [(row["nuggets"], row["labels"]) for row in again] == [(0, 0), (0, 0)]
    assert rows("SELECT count(*) FROM runs") == [(2,)]


def test_an_imported_run_is_shown_and_reported_with_its_file(judge: Judge, tmp_path: Path) -> None:
    judge("nuggets", "import", FILES / "first.jsonl", "--judge", "gpt-4o")
    ((run,),) = rows("SELECT run_id FROM runs")
    assert "imported from" in judge("runs", "show", run).out
    with Store.open("study.db", create=False) as store:
        assert str(FILES / "first.jsonl") in origins(store.conn, [run])[run]


def test_a_gigantic_id_is_not_repeated_in_full(judge: Judge, tmp_path: Path) -> None:
    path = table(tmp_path, HEAD, "1" * 100_000 + ",It has two,vital")
    assert len(judge("nuggets", "import", path, code=1).err) < 1_000


def test_a_failed_assignment_is_missing(judge: Judge, tmp_path: Path) -> None:
    record = json.loads((FILES / "first.jsonl").read_text("utf-8").splitlines()[0])
    record["nuggets"][0]["assignment"] = "failed"
    judge("nuggets", "import", write_jsonl(tmp_path / "failed.jsonl", [record]), "--judge", "gpt-4o")
    assert rows("SELECT status FROM judgements WHERE unit_id = 'x:mars@first@default#n0'") == [("failed",)]


def test_a_table_with_the_labels_of_a_person(judge: Judge, tmp_path: Path) -> None:
    lines = [
        "mars,It has two,vital,first,support",
        "mars,It has two,vital,second,not_support",
        "emma,A novel,okay,,",
    ]
    path = table(tmp_path, ASSIGNED, *lines)
    judge("nuggets", "import", path, "--annotator", "ann")
    judge("nuggets", "import", path, "--annotator", "ann")
    found = "SELECT unit_id, annotator_id, value FROM labels ORDER BY unit_id"
    assert rows(found) == [
        ("x:mars@first@default#n0", "ann", "support"),
        ("x:mars@second@default#n0", "ann", "not_support"),
    ]
    assert rows("SELECT count(*) FROM nuggets") == [(2,)]


def test_answers_that_come_later_get_units_and_empty_ones_none(judge: Judge, tmp_path: Path) -> None:
    judge("nuggets", "import", table(tmp_path, HEAD, "emma,A novel,okay"))
    assert units() == ["x:emma@first@default#n0"]
    answers(judge, tmp_path, [("emma", "third", "default", "A novel."), ("emma", "fourth", "default", " \n")])
    assert units() == ["x:emma@first@default#n0", "x:emma@third@default#n0"]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([HEAD, "venus,None,vital"], "nuggets.csv:2: field 'id': no item 'venus'"),
        ([HEAD, "mars,Two,minor"], "'minor' must be vital or okay"),
        ([HEAD, "mars,Two,vital", "mars,Two,okay"], "nuggets.csv:3: field 'importance': this nugget of 'mars' is vital"),
        ([HEAD, "mars,,vital"], "field 'nugget'"),
        (["id,nugget", "mars,Two"], "field 'importance': "),
        ([ASSIGNED, "mars,Two,vital,first,yes"], "field 'assignment': 'yes' must be one of not_support"),
        ([ASSIGNED, "mars,Two,vital,nobody,support"], "'nobody' has no answer to 'mars'"),
        ([ASSIGNED, "mars,Two,vital,,support"], "does not name the system"),
        (
            [ASSIGNED, "mars,Two,vital,first,support", "mars,Two,vital,first,not_support"],
            "nuggets.csv:3: field 'assignment': this nugget already has an assignment for 'first': support on line 2",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing(judge: Judge, tmp_path: Path, lines: list[str], problem: str) -> None:
    done = judge("nuggets", "import", table(tmp_path, *lines), "--judge", "m", code=1)
    assert problem in done.err
    assert (
        rows("SELECT (SELECT count(*) FROM nuggets) + (SELECT count(*) FROM labels)") == [(0,)]
        and not units()
    )


def test_assignments_have_an_author_and_are_of_the_stored_answer(judge: Judge, tmp_path: Path) -> None:
    path = table(tmp_path, ASSIGNED, "mars,Two,vital,first,support")
    assert "--judge MODEL or --annotator PERSON" in judge("nuggets", "import", path, code=2).err
    record = json.loads((FILES / "first.jsonl").read_text("utf-8").splitlines()[0])
    other = write_jsonl(tmp_path / "other.jsonl", [{**record, "answer_text": "Mars has none."}])
    assert "differs from the stored answer" in judge("nuggets", "import", other, "--judge", "m", code=1).err


def test_stored_nuggets_are_not_added_to(judge: Judge, tmp_path: Path) -> None:
    judge("nuggets", "import", table(tmp_path, HEAD, "mars,Two,vital"))
    done = judge("nuggets", "import", table(tmp_path, HEAD, "mars,Two,vital", "mars,Three,okay"), code=1)
    assert "'mars' already has nuggets in the study" in done.err
    done = judge(
        "nuggets", "import", table(tmp_path, HEAD, "mars,Three,okay", "emma,A novel,okay"), "--skip-bad"
    )
    assert rows("SELECT item_id, n, text FROM nuggets ORDER BY 1") == [
        ("x:emma", 0, "A novel"),
        ("x:mars", 0, "Two"),
    ]


def test_a_nugget_twice_in_a_record(judge: Judge, tmp_path: Path) -> None:
    twice = {"qid": "mars", "nuggets": [{"text": "Two", "importance": "vital"}] * 2}
    assert (
        "occurs twice" in judge("nuggets", "import", write_jsonl(tmp_path / "n.jsonl", [twice]), code=1).err
    )


def test_merged_studies_have_the_units_of_both(judge: Judge, tmp_path: Path) -> None:
    """One study has the nuggets of a question, the other one a further answer to it."""
    with sqlite3.connect("study.db") as source, sqlite3.connect("other.db") as target:
        source.backup(target)
    judge("nuggets", "import", table(tmp_path, HEAD, "emma,A novel,okay"))
    path = write_jsonl(tmp_path / "more.jsonl", [{"id": "emma", "system": "third", "text": "A novel."}])
    judge("systems", "import", path, "-d", "other.db")
    judge("studies", "merge", "other.db", "study.db", "--into", "both.db")
    found = column("SELECT unit_id FROM units WHERE kind = 'nugget'", db="both.db")
    assert sorted(found) == ["x:emma@first@default#n0", "x:emma@third@default#n0"]


def test_importance_is_not_shown(judge: Judge) -> None:
    judge("nuggets", "import", FILES / "nuggets.jsonl")
    shown = judge("tasks", "render", "nugget_assignment").out
    assert "Mars has two moons" in shown and "vital" not in shown
    assert "vital" not in str(rows("SELECT span FROM units WHERE kind = 'nugget'"))
