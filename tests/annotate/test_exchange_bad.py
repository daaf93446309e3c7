"""Files that cannot be used: what is said, and that nothing is stored; disks that are full; blindness of exports."""

import csv
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from annotate.exchange import base
from annotate.exchange.files import MARK, Out, json_records
from annotate.store import open_study
from judge.errors import BadInput, UsageError, WriteFailed
from judge.files import stop
from tests.annotate.agreement_helpers import annotate, document
from tests.annotate.exchange_helpers import (
    all_labels,
    answer,
    empty_copy,
    export,
    read_lines,
    rows_of,
    study,
    take_in,
    write_lines,
)
from tests.real import ROOT
from tests.tui.answers import build_answers
from tests.tui.studies import CANARY, batch, build, drawn

FULL = {"relevance": "relevant", "stance": "support", "quality": "good"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return study(tmp_path / "s.db", task="stance")


def units(path: Path) -> list[str]:
    return [u for (u,) in rows_of(path, "SELECT unit_id FROM batch_units WHERE role = 'sample' ORDER BY 1")]


def passage(path: Path, unit: str) -> str:
    return str(rows_of(path, "SELECT passage FROM unit_texts WHERE unit_id = ?", unit)[0][0])


def own(unit: str, **more: Any) -> dict[str, Any]:
    return {"unit": unit, "annotator": "alice", "field": "stance", "label": "support", **more}


BAD = [
    (own("nothing"), "field 'unit'", "no unit 'nothing' in the study"),
    (own("d:9999/p0"), "field 'unit'", "no unit"),
    (own(""), "field 'unit'", "no unit"),
    (own("U", field="role"), "field 'role'", "has no field 'role'"),
    (
        own("U", label="Support"),
        "field 'stance'",
        "'Support' is not a label; the labels are: support, refute, neutral",
    ),
    (own("U", annotator="gold"), "field 'annotator'", "under the name 'gold'"),
    (own("U", annotator=" alice"), "field 'annotator'", "cannot be an annotator's name"),
    (own("U", annotator=""), "field 'annotator'", "the annotator is missing"),
    (own("U", annotator=["alice"]), "field 'annotator'", "must be text"),
    (own("U", seconds=-1), "field 'seconds'", "-1.0"),
    (own("U", seconds="soon"), "field 'seconds'", "must be a number"),
    (own("U", note="\ud800"), "bad.jsonl:2", "surrogate"),
    (own("U", repeat=1), "field 'repeat'", "alice"),
    (own("U", repeat=0.5), "field 'repeat'", "whole number"),
    (own("U", at="yesterday"), "field 'at'", "not a time"),
    (own("U", blind="perhaps"), "field 'blind'", "must be true or false"),
    (own("U", spans=[["passage", 0, 999]]), "field 'spans'", "lies outside 'passage'"),
    (own("U", spans=[["passage", 5, 5]]), "field 'spans'", "lies outside 'passage'"),
    (own("U", spans=[["passage", -1, 5]]), "field 'spans'", "lies outside 'passage'"),
    (own("U", spans=[["meta", 0, 3]]), "field 'spans'", "which is not a text of the unit"),
    (own("U", spans=[["passage", True, 3]]), "field 'spans'", "must be a list of"),
    (own("U", spans="passage"), "field 'spans'", "must be a list"),
    ("[1]", "bad.jsonl:2", "JSON object"),
    ("{", "bad.jsonl:2", "not JSON"),
    ('{"unit": ' + "[" * 100_000, "bad.jsonl:2", "not JSON: nested too deeply"),
    (b"\xff\xfe", "bad.jsonl:2", "not UTF-8"),
]


@pytest.mark.parametrize(("row", "where", "told"), BAD, ids=range(len(BAD)))
def test_a_bad_row_is_named_and_keeps_the_file_out(
    path: Path, tmp_path: Path, row: Any, where: str, told: str
) -> None:
    good, other = units(path)[:2]
    if isinstance(row, dict):
        row = json.dumps({k: other if v == "U" else v for k, v in row.items()})
    line = row if isinstance(row, bytes) else row.encode()
    file = tmp_path / "bad.jsonl"
    file.write_bytes(json.dumps(own(good)).encode() + b"\n" + line + b"\n")
    before = rows_of(path, "SELECT count(*) FROM annotators")
    failed = take_in(path, file, "jsonl", "--blind", code=1)
    assert "bad.jsonl:2" in failed.stderr and where in failed.stderr and told in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert all_labels(path) == set() and rows_of(path, "SELECT count(*) FROM events") == [(0,)]
    done = take_in(path, file, "jsonl", "--blind", "--skip-bad")
    assert done["new"] == {"alice": 1} and len(done["bad"]) == 1 and told in done["bad"][0]
    assert {row[0] for row in all_labels(path)} == {good}
    assert rows_of(path, "SELECT count(*) FROM annotators") == before, (
        "nobody is made for a row that was left out"
    )


def test_a_unit_outside_the_batch(path: Path, tmp_path: Path) -> None:
    others = "SELECT unit_id FROM units WHERE kind = 'passage' AND unit_id NOT IN (SELECT unit_id FROM batch_units)"
    outside = rows_of(path, others)[0][0]
    failed = take_in(path, write_lines(tmp_path / "x.jsonl", [own(outside)]), "jsonl", "--blind", code=1)
    assert "x.jsonl:1: field 'unit'" in failed.stderr and "is not in batch 'pilot'" in failed.stderr


def test_conflicts_are_named_and_the_later_answer_counts_when_asked_for(path: Path, tmp_path: Path) -> None:
    unit = units(path)[0]
    first, second = own(unit, at="2026-01-01T00:00:00Z"), own(unit, label="refute", at="2026-01-02T00:00:00Z")
    both = write_lines(tmp_path / "both.jsonl", [second, first])
    failed = take_in(path, both, "jsonl", "--blind", code=1)
    assert "both.jsonl:2: field 'stance': alice labelled" in failed.stderr and "--latest" in failed.stderr
    assert all_labels(path) == set()
    done = take_in(path, both, "jsonl", "--blind", "--latest")
    assert (done["new"], done["replaced"], done["older"]) == ({"alice": 1}, 0, 1)
    edited = own(unit, label="neutral", at="2026-01-03T00:00:00Z")
    file = write_lines(tmp_path / "edited.jsonl", [first, second, edited])
    assert take_in(path, file, "jsonl", "--blind", "--latest")["replaced"] == 1
    assert {row[5] for row in all_labels(path)} == {"neutral"}
    kept = rows_of(path, "SELECT value, at FROM events ORDER BY seq")
    assert kept == [("refute", "2026-01-02T00:00:00Z"), ("neutral", "2026-01-03T00:00:00Z")], (
        "the log keeps both"
    )
    again = take_in(path, file, "jsonl", "--blind", "--latest")
    assert again["new"] == {} and {row[5] for row in all_labels(path)} == {"neutral"}


def test_work_at_the_desk_is_not_overwritten(path: Path, tmp_path: Path) -> None:
    answer(path, "alice", {1: {"stance": "refute"}})
    query = "SELECT unit_id FROM assignments WHERE annotator_id = 'alice' AND position = 1"
    ((unit,),) = rows_of(path, query)
    file = write_lines(tmp_path / "x.jsonl", [own(unit)])
    assert "--latest" in take_in(path, file, "jsonl", "--blind", code=1).stderr
    old = write_lines(tmp_path / "old.jsonl", [own(unit, at="2001-01-01T00:00:00Z")])
    assert take_in(path, old, "jsonl", "--blind", "--latest")["older"] == 1
    assert {row[5] for row in all_labels(path)} == {"refute"}


def test_closed_batches_and_seats_that_are_taken(path: Path, tmp_path: Path) -> None:
    from annotate.sitting.desk import Desk

    file = write_lines(tmp_path / "x.jsonl", [own(units(path)[0])])
    with open_study(path) as store, Desk.open(store, "pilot", "alice"):
        failed = take_in(path, file, "jsonl", "--blind", code=1)
        assert "pilot alice" in failed.stderr and "another process" in failed.stderr
    annotate("batches", "close", "pilot", "-d", path)
    assert "was closed on" in take_in(path, file, "jsonl", "--blind", code=1).stderr
    assert all_labels(path) == set()


PRODIGY = {"text": "x", "adjudge_field": "stance", "answer": "accept", "accept": ["support"], "_annotator_id": "alice",
           "options": [{"id": "support", "text": "support"}]}  # fmt: skip
FOREIGN = [
    ("prodigy", {"adjudge_unit_id": None}, "field 'adjudge_unit_id': the unit's id is missing"),
    ("prodigy", {"answer": "yes"}, "field 'answer': must be accept, reject or ignore"),
    ("prodigy", {"accept": []}, "field 'accept': accepted with no option"),
    ("prodigy", {"accept": ["support", "refute"]}, "field 'accept': accepted with 2 options"),
    ("prodigy", {"accept": ["perhaps"]}, "field 'stance': 'perhaps' is not a label"),
    ("prodigy", {"_timestamp": "now"}, "field '_timestamp'"),
    ("prodigy", {"_timestamp": 1e300}, "field '_timestamp'"),
    ("prodigy", {"text": "x", "spans": [{"start": 0, "end": 1}]}, "field 'text': is not the unit's text"),
    ("prodigy", {"spans": {}}, "field 'spans'"),
    ("prodigy", {"spans": "[" * 100_000}, "field 'spans': must be a list"),
    ("prodigy", {"accept": None, "options": None, "field_id": ["x"]}, "field 'field_id': must be text"),
    ("prodigy", {"adjudge_seconds": "9" * 5_000}, "field 'adjudge_seconds': must be a finite number"),
    ("doccano", {"label": "[" * 100_000}, "field 'label': must be a list"),
    ("doccano", {"label": ["support", "refute"]}, "'stance' has 2 labels"),
    ("doccano", {"label": "support"}, "field 'label': must be a list"),
    ("doccano", {"label": [7]}, "field 'label'"),
    ("doccano", {"label": ["perhaps"]}, "field 'stance': 'perhaps' is not a label"),
    ("doccano", {"annotations": [{"label": 5, "user": 1}]}, "export it again as JSONL"),
    ("doccano", {"text": "x", "entities": [[0, 3, "E"]]}, "field 'text': is not the unit's text"),
    ("argilla", {"responses": []}, "field 'responses': must be an object"),
    ("argilla", {"responses": {"stance": ["support"]}}, "field 'responses.stance'"),
    ("argilla", {"responses": {"role": [{"value": "x", "user_id": "alice"}]}}, "question 'role' is not one of stance"),
    ("argilla", {"responses": {"stance": [{"value": ["support"], "user_id": "alice"}]}}, "field 'stance': must be text"),
    ("argilla", {"responses": {"stance": [{"value": "x", "user_id": "alice", "status": "lost"}]}}, "'lost' is not a status"),
    ("argilla", {"stance.responses": ["support"], "stance.responses.users": []}, "field 'stance.responses'"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "change", "told"), FOREIGN, ids=range(len(FOREIGN)))
def test_rows_of_other_tools_that_cannot_be_used(
    path: Path, tmp_path: Path, form: str, change: dict[str, Any], told: str
) -> None:
    good, other = units(path)[:2]
    plain = {
        "prodigy": lambda u: PRODIGY | {"adjudge_unit_id": u, "text": passage(path, u)},
        "doccano": lambda u: {"id": 1, "text": passage(path, u), "label": ["support"], "adjudge_unit_id": u},
        "argilla": lambda u: {
            "id": u,
            "responses": {"stance": [{"value": "support", "user_id": "alice", "status": "submitted"}]},
        },
    }[form]
    row = {k: v for k, v in (plain(other) | change).items() if v is not None}
    if "stance.responses" in change:
        row.pop("responses")
    file = write_lines(tmp_path / "alice.jsonl", [plain(good), row])
    failed = take_in(path, file, form, "--blind", code=1)
    assert "alice.jsonl:2" in failed.stderr and told in failed.stderr, failed.stderr
    assert all_labels(path) == set()
    assert take_in(path, file, form, "--blind", "--skip-bad")["new"] == {"alice": 1}


def test_files_that_cannot_be_read(path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "cut.json").write_text('[{"id": "a"}, {"id"')
    (tmp_path / "more.json").write_text("[] []")
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 not really")
    (tmp_path / "folder").mkdir()
    for name, form, told in [
        ("empty.jsonl", "prodigy", "the file is empty"),
        ("missing.jsonl", "jsonl", "No such file"),
        ("cut.json", "argilla", "cut.json:1: not JSON"),
        ("more.json", "argilla", "after the end of the list"),
        ("no.zip", "doccano", "cannot be unpacked"),
        ("folder", "doccano", "has no .jsonl"),
        ("folder", "jsonl", "directory"),
        ("folder", "csv", "directory"),
        ("missing.csv", "csv", "No such file"),
    ]:
        failed = take_in(path, tmp_path / name, form, "--blind", code=1)
        assert told in failed.stderr, (name, failed.stderr)


def test_an_array_over_many_lines_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('\ufeff[\n {"a": 1},\n\n {"a":\n 2},\n 3\n]\n')
    bad: list[BadInput] = []
    # The objects begin on lines 2 and 4; the number on line 6 is none.
    assert list(json_records(file, bad.append)) == [(2, {"a": 1}), (4, {"a": 2})]
    assert [e.line for e in bad] == [6]


def test_options_formats_and_maps_that_do_not_exist(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    for args, told in [
        (("export", "pilot", "--to", "excel", "-o", out), "format 'excel'; available: argilla, csv"),
        (("export", "pilot", "--to", "table", "-o", out), "can only be imported"),
        (("import", out, "--from", "parquet"), "can only be exported"),
        (("export", "nope", "--to", "csv", "-o", out), "no batch 'nope'"),
        (("export", "pilot", "--to", "csv", "-o", out, "--for", "zoe"), "has no annotator 'zoe'"),
        (("export", "pilot", "--to", "csv", "-o", out, "-O", "x=1"), "has no such option"),
        (("import", out, "--batch", "pilot", "--map-label", "stance:x=y"), "'y' is not a label"),
        (("import", out, "--batch", "pilot", "--map-label", "x=y"), "FIELD:OLD=NEW"),
        (("import", out, "--batch", "pilot", "--task", "stance"), "omit --task"),
    ]:
        assert told in annotate(*args, "-d", path, code=2).stderr, args
    assert not out.exists()
    result = document("formats")["rows"]
    assert {r["format"]: (r["export"], r["import"]) for r in result}["parquet"] == ("folder", False)
    both_ways = {r["format"] for r in result if r["export"] and r["import"]}
    assert both_ways >= {"argilla", "csv", "doccano", "jsonl", "label-studio", "prodigy"}


def test_labels_and_people_by_other_names(path: Path, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "x.jsonl", [own(units(path)[0], label="SUPPORTS", annotator="a.smith")])
    args = ("--map-label", "stance:SUPPORTS=support", "--map-label", "annotator:a.smith=alice")
    assert take_in(path, file, "jsonl", "--blind", *args)["new"] == {"alice": 1}


def test_a_label_that_is_still_to_come_waits(path: Path, tmp_path: Path) -> None:
    """With --latest it would have replaced every later answer for ever."""
    one, other = units(path)[:2]
    rows = [own(one, at="2999-01-01T00:00:00.000Z"), own(other, at="2024-01-01T00:00:00.000Z")]
    told = take_in(
        path, write_lines(tmp_path / "x.jsonl", rows), "jsonl", "--blind", "--latest", "--skip-bad"
    )
    assert told["held"] == 1 and sum(told["new"].values()) == 1
    assert rows_of(path, "SELECT unit, code, reason FROM quarantine") == [
        (one, "time", "its time 2999-01-01T00:00:00.000Z is in the future")
    ]


def test_without_a_batch_only_labels_are_kept(path: Path, tmp_path: Path) -> None:
    unit = units(path)[0]
    row = own(unit, annotator="zoe", note="n", spans=[["passage", 0, 2]])
    args = ("import", write_lines(tmp_path / "x.jsonl", [row]), "--from", "jsonl", "-d", path, "--task")
    failed = annotate(*args, "stance", code=1)
    assert "zoe is not one of the people in the study (alice, bob)" in failed.stderr
    done = document(*args, "stance", "--new-people")
    assert done["people"] == ["zoe"]
    assert done["new"] == {"zoe": 1} and done["left_out"] == {"notes": 1, "spans": 1}
    assert rows_of(path, "SELECT count(*) FROM events") == [(0,)]
    assert all_labels(path) == {(unit, "stance", "zoe", "undeclared", 0, "support")}, (
        "nobody said that it is blind"
    )
    again = document(*args, "stance", "--blind")
    assert again["declared"] == 1 and again["blind"] == {"blind": 1}
    assert all_labels(path) == {(unit, "stance", "zoe", "first", 0, "support")}
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("INSERT INTO tasks SELECT 'own.v1', 'own', 1, 'x', front_matter, template FROM tasks")
    once_more = document(*args, "own")
    assert (once_more["unchanged"], once_more["declared"]) == (1, 0), "what was declared stays so"


@pytest.mark.parametrize("task", [("--task", "stance"), ()], ids=["a task", "no task"])
def test_without_a_batch_a_text_or_hash_is_compared_all_the_same(
    path: Path, tmp_path: Path, task: tuple[str, ...]
) -> None:
    """Without a task, before: whatever text a record carried, its label came in."""
    unit, other, third = units(path)[:3]
    sheet = tmp_path / "sheet.jsonl"
    annotate("export", "pilot", "--to", "jsonl", "-o", sheet, "-d", path)
    sent = {row["unit"]: row for row in map(json.loads, sheet.read_text().splitlines())}
    good, bad = ({**own(u, annotator="zoe"), "text_sha256": sent[unit]["text_sha256"]} for u in (unit, other))
    inputs = sent[third]["inputs"]
    edited = {**own(third, annotator="zoe"), "inputs": {**inputs, "passage": inputs["passage"] + " Not."}}
    file = write_lines(tmp_path / "x.jsonl", [good, bad, edited])
    args = ("import", file, "--from", "jsonl", *task, "--new-people", "--blind", "-d", path)
    told = annotate(*args, code=1).stderr
    assert "2 quarantined" in told
    assert {row[0] for row in all_labels(path)} == {unit}
    assert rows_of(path, "SELECT unit, code FROM quarantine ORDER BY 1") == sorted(
        [(other, "text"), (third, "text")]
    )


@pytest.mark.parametrize("task", ["grounding", "citation_support"])
def test_without_a_task_the_texts_of_any_task_are_proof(tmp_path: Path, task: str) -> None:
    """Sheets of tasks that list passages; nothing in the study says which task a row is about."""
    study = build_answers(tmp_path / "s.db")
    batch(study, task, n=3, annotators=["bob"], where="answer_system = 'model'")
    sheet = tmp_path / "sheet.jsonl"
    annotate("export", "pilot", "--to", "jsonl", "-o", sheet, "-d", study)
    sent = [json.loads(line) for line in sheet.read_text().splitlines()]
    rows = [own(r["unit"], annotator="bob", field="x", text_sha256=r["text_sha256"]) for r in sent]
    file = write_lines(tmp_path / "x.jsonl", rows)
    done = document("import", file, "--from", "jsonl", "--blind", "-d", study)
    assert done["new"] == {"bob": 3} and (done["held"], done["unproven"]) == (0, 0)
    with open_study(study) as store, store.transaction() as conn:
        conn.execute("UPDATE passages SET text = text || ' Not.'")
        conn.execute("UPDATE answers SET text = text || ' Not.'")
    write_lines(file, [{**row, "field": "z"} for row in rows])
    told = annotate("import", file, "--from", "jsonl", "--blind", "-d", study, code=1)
    assert "3 quarantined" in told.stderr


@pytest.mark.parametrize("context", [[{"title": 5, "text": ["x"]}], [{"text": "x"}, "y"], ["x"], {"A": 1}])
def test_malformed_passages_in_a_record_are_another_text(tmp_path: Path, context: object) -> None:
    """Before, a passage that was no object ended the import with a traceback."""
    study = build_answers(tmp_path / "s.db")
    batch(study, "grounding", n=1, annotators=["bob"], where="answer_system = 'model'")
    [unit] = units(study)
    row = own(unit, annotator="bob", field="x", inputs={"context": context})
    args = ("import", write_lines(tmp_path / "x.jsonl", [row]), "--from", "jsonl", "--blind", "-d", study)
    assert "1 quarantined" in annotate(*args, code=1).stderr


def test_an_exported_file_is_an_exposure(path: Path, tmp_path: Path) -> None:
    annotate("export", "pilot", "--to", "jsonl", "--for", "alice", "-o", tmp_path / "a.jsonl", "-d", path)
    seen = rows_of(path, "SELECT DISTINCT person, what, batch, how FROM exposures")
    assert seen == [("alice", "text", "pilot", "push")]
    mine = rows_of(path, "SELECT count(DISTINCT unit_id) FROM assignments WHERE annotator_id = 'alice'")
    assert rows_of(path, "SELECT count(*) FROM exposures") == mine, "training and attention units too"


def test_a_sheet_of_ours_read_as_a_table_gets_a_hint(path: Path, tmp_path: Path) -> None:
    export(path, tmp_path / "sheet.csv", "csv")
    failed = take_in(path, tmp_path / "sheet.csv", "table", "--blind", "--as", "alice", code=1)
    assert "this is a sheet that `annotate export` wrote: pass --from csv" in failed.stderr


# Export


def test_units_hold_what_a_blind_annotator_sees_and_nothing_else(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", training=2, attention=0.3, repeats=0.34)
    answer(path, "bob", {1: {"stance": "refute"}}, notes={1: "BOBSAYS"})
    for form in base.names("write"):
        out = tmp_path / form
        export(path, out, form)
        files = [f for f in out.rglob("*") if f.is_file()] if out.is_dir() else [out]
        data = b"".join(f.read_bytes() if f.suffix != ".parquet" else _unpacked(f) for f in files)
        assert b"Claim number 1" in data, form
        for secret in (CANARY, "BOBSAYS", "scripted/test", "claim_verdict", "training", "attention", "0.7"):
            assert secret.encode() not in data, (form, secret)
    result = read_lines(tmp_path / "jsonl")
    assert len(result) == 10 and all(set(r) == {"unit", "inputs", "text_sha256"} for r in result)
    assert all(set(r["inputs"]) <= {"claim", "passage", "passage_title"} for r in result)
    # Roles do not show in the order either: training comes first only at the desk.
    roles = dict(rows_of(path, "SELECT unit_id, role FROM batch_units"))
    assert [roles[r["unit"]] for r in result][:2] != ["training", "training"]


def _unpacked(file: Path) -> bytes:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file)
    return json.dumps(table.to_pylist()).encode() + str(table.schema).encode()


def test_one_persons_units_only(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", overlap=1)
    for person in ("alice", "bob"):
        export(path, tmp_path / person, "jsonl", "--for", person)
        mine = rows_of(path, "SELECT unit_id FROM assignments WHERE annotator_id = ?", person)
        assert {(r["unit"],) for r in read_lines(tmp_path / person)} == set(mine) and len(mine) == 3


def test_answers_in_sentences_and_passages_in_lists_go_out_and_come_in(tmp_path: Path) -> None:
    from judge.store import Store
    from judge.store.answers import add_answers
    from judge.store.items import ImportInfo
    from judge.types import Answer, AnswerRow, Where

    path = build(tmp_path / "s.db", items=2, gold=False)
    with Store.open(path) as store:
        rows = [
            AnswerRow(
                Answer(f"d:{i}", "SYSTEM-7", "top5", "It says 42. 東京 is so.", cited=[f"d:{i}/p0"]),
                Where("t", 1),
            )
            for i in range(2)
        ]
        add_answers(store, rows, ImportInfo("test", {}), [], stop)
    batch(path, "grounding", n=4, annotators=["alice"])
    export(path, tmp_path / "u.jsonl", "jsonl")
    result = read_lines(tmp_path / "u.jsonl")
    assert {r["inputs"]["sentence"] for r in result} == {"It says 42.", "東京 is so."}
    listed = next(iter(v for v in result[0]["inputs"].values() if isinstance(v, list)))
    assert set(listed[0]) == {"title", "date", "source", "text"} and "SYSTEM-7" not in json.dumps(
        result[0]["inputs"]
    )
    for form in base.names("write"):
        export(path, tmp_path / form, form)
    tasks = read_lines(tmp_path / "prodigy")
    field = tasks[0]["adjudge_field"]
    label = tasks[0]["options"][0]["id"]
    start = tasks[0]["text"].index("Answer:\n") + len("Answer:\n")
    spans = [{"start": start, "end": start + 11}]
    done_rows = [
        t | {"answer": "accept", "accept": [label], "_annotator_id": "alice", "spans": spans}
        for t in tasks
        if t["text"].startswith(tasks[0]["text"][:8]) and t["text"].index("Answer:\n") + 8 == start
    ]
    done = take_in(path, write_lines(tmp_path / "d.jsonl", done_rows), "prodigy", "--blind")
    assert sum(done["new"].values()) == done["spans"] == len(done_rows) > 0
    assert rows_of(path, "SELECT DISTINCT field, value FROM labels") == [(field, label)]
    marked = rows_of(path, "SELECT DISTINCT spans FROM assignments WHERE spans <> '[]'")
    assert marked == [('[["answer",0,11]]',)]


def test_a_sheet_runs_no_formula(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, texts={"a": "=HYPERLINK(1)", "b": "@SUM(1)"}, n=4)
    export(path, tmp_path / "sheet.csv", "csv")
    text = (tmp_path / "sheet.csv").read_text("utf-8")
    assert ",'=HYPERLINK(1)," in text and ",'@SUM(1)," in text


@pytest.mark.parametrize("form", ["csv", "table"])
def test_labels_run_no_formula_and_come_back_as_they_were(tmp_path: Path, form: str) -> None:
    """The note of a person is a text from somebody else, like a passage."""
    path = study(tmp_path / "study.db")
    other = empty_copy(path, "other.db")
    notes = {1: '=HYPERLINK("http://x")', 2: "-1", 3: "'quoted'", 4: "@all", 5: "\u2013 dash"}
    answer(path, "alice", {n: {"stance": "support"} for n in notes}, notes=notes)
    export(path, tmp_path / "labels.csv", "csv", "--labels")
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@") or (cell[:1] == "-" and cell != "-1")]
    take_in(other, tmp_path / "labels.csv", form, "--blind", document=True)
    assert {
        r[0]: r[1] for r in rows_of(other, "SELECT position, note FROM assignments WHERE note <> ''")
    } == notes


def test_parquet_reads_as_it_was_written(tmp_path: Path) -> None:
    import pyarrow.parquet
    import yaml

    path = study(tmp_path / "s.db")
    answer(path, "alice", {1: FULL, 2: {"stance": "refute"}}, spans={1: [("passage", 0, 7)]}, skips=[3])
    export(path, tmp_path / "out", "parquet", "--labels", "-O", "licence=cc-by-4.0")
    labels_ = pyarrow.parquet.read_table(tmp_path / "out" / "data" / "labels.parquet").to_pylist()
    # three answers, one answer, and one row for the skipped unit
    assert len(labels_) == 5 and sum(r["label"] is not None for r in labels_) == 4
    assert {r["layer"] for r in labels_} == {"first", "skipped"}
    assert all(isinstance(r["blind"], bool) for r in labels_)
    marked = [r["spans"] for r in labels_ if r["spans"]]
    assert marked == [[{"input": "passage", "start": 0, "end": 7}]] * 3
    units_ = pyarrow.parquet.read_table(tmp_path / "out" / "data" / "units.parquet")
    assert units_.num_rows == 6 and {r["label"] for r in labels_} <= {*FULL.values(), "refute", None}
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    assert [c["config_name"] for c in head["configs"]] == ["units", "labels"]
    for config in head["dataset_info"]:
        file = tmp_path / "out" / "data" / f"{config['config_name']}.parquet"
        assert [f["name"] for f in config["features"]] == pyarrow.parquet.read_schema(file).names
    counts = {c["config_name"]: c["splits"][0]["num_examples"] for c in head["dataset_info"]}
    assert counts == {"units": 6, "labels": 5}


def test_parquet_without_pyarrow_names_the_extra(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    failed = export(path, tmp_path / "out", "parquet", code=1)
    assert "pip install 'adjudge[parquet]'" in failed.stderr and not (tmp_path / "out").exists()


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    target.write_text("old")
    with pytest.raises(WriteFailed, match=r"x\.jsonl"), Out(target, "file") as out, out.lines() as put:
        put({"a": 1})
        raise OSError(errno.ENOSPC, "No space left on device")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]
    folder = tmp_path / "f"
    with Out(folder, "folder") as out, out.lines("a.jsonl") as put:
        put({})
    assert sorted(p.name for p in folder.iterdir()) == [MARK, "a.jsonl"]
    with pytest.raises(KeyError), Out(folder, "folder") as out:
        out.write_json("b.json", {})
        raise KeyError
    assert sorted(p.name for p in folder.iterdir()) == [MARK, "a.jsonl"]
    with Out(folder, "folder") as out:
        out.write_json("b.json", {})
    assert sorted(p.name for p in folder.iterdir()) == [MARK, "b.json"], "an export replaces the one before"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    for place, kind, told in [
        (tmp_path / "pipe", "file", "is a device or a pipe"),
        (tmp_path / "pipe", "folder", "is a device or a pipe"),
        (tmp_path / "mine", "folder", "other files"),
        (target, "folder", "is a file"),
        (folder, "file", "is a folder"),
        (tmp_path / "no" / "x", "file", "does not exist"),
        (Path(), "file", "-o ."),
    ]:
        with pytest.raises(UsageError, match=told):
            Out(place, kind).__enter__()
    assert (tmp_path / "pipe").is_fifo() and not list(tmp_path.glob(".*"))


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real limit: the process may not write files over 300 KB, as on a disk without space."""
    # 12 passages of 100 KB that do not compress below 50 KB (hex digits): 600 KB and more in any format
    texts = {str(i): Random(i).randbytes(50_000).hex() for i in range(12)}
    drawn(tmp_path, items=6, texts=texts, n=12)
    out = tmp_path / "out"
    out.mkdir()
    code = """
import json, resource, signal, sys
from click.testing import CliRunner
from annotate.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
for form in ("jsonl", "argilla", "parquet"):
    done = CliRunner().invoke(main, ["export", "pilot", "--to", form, "-o", f"out/{form}", "-d", "s.db"])
    print(json.dumps([form, done.exit_code, done.stderr]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [form for form, _, _ in told] == ["jsonl", "argilla", "parquet"]
    for form, exit_code, stderr in told:
        assert exit_code == 1 and "nothing was written" in stderr, (form, stderr)
    assert list(out.iterdir()) == []
