"""Every door for labels has the checks of every other door: each check is tried at each door that can carry what it needs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from annotate.exchange.texts import compose
from annotate.exchange.units import inputs_of_task
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk, batch_info
from annotate.store import open_study
from judge.cli import main as judge
from judge.errors import AdjudgeError
from judge.store.corrections import mark_outdated
from judge.store.study import get_time
from tests.annotate.agreement_helpers import annotate
from tests.annotate.exchange_helpers import all_labels, answer, study, write_lines
from tests.annotate.test_gate import plant, rows_count
from tests.tui.studies import rows_of

LABELS = ("support", "refute", "neutral")


@dataclass(frozen=True)
class Said:
    """One row of a file: who said what of a unit, which text the file shows, and who edited the row last."""

    unit: str
    inputs: dict[str, Any] | None
    person: str = "alice"
    label: str = "support"
    at: str | None = None
    editor: str | None = None


def sheet(folder: Path, said: Said) -> tuple[Path, list[str]]:
    return _table(folder, said, "at", "role", "blind"), ["--from", "csv"]


def table(folder: Path, said: Said) -> tuple[Path, list[str]]:
    return _table(folder, said), ["--from", "table"]


def _table(folder: Path, said: Said, *others: str) -> Path:
    row = {
        "unit": said.unit,
        "annotator": said.person,
        "field": "stance",
        "label": said.label,
        **(said.inputs or {}),
    }
    row |= {name: said.at or "" if name == "at" else "" for name in others}
    file = folder / "labels.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerow(row)
    return file


def jsonl(folder: Path, said: Said) -> tuple[Path, list[str]]:
    row = {"unit": said.unit, "annotator": said.person, "field": "stance", "label": said.label, "at": said.at}
    row |= {} if said.inputs is None else {"inputs": said.inputs}
    return write_lines(folder / "labels.jsonl", [row]), ["--from", "jsonl"]


def label_studio(folder: Path, said: Said) -> tuple[Path, list[str]]:
    region = {
        "from_name": "stance",
        "to_name": "passage",
        "type": "choices",
        "value": {"choices": [said.label]},
    }
    made = {"id": 1, "completed_by": {"id": 1, "email": f"{said.person}@x.org"}, "was_cancelled": False, "result": [region],
            "created_at": said.at, "updated_at": said.at, "updated_by": 2 if said.editor else 1}  # fmt: skip
    task = {"id": 1, "data": {"adjudge_unit_id": said.unit, **(said.inputs or {})}, "annotations": [made],
            "predictions": []}  # fmt: skip
    (folder / "ls.json").write_text(json.dumps([task]))
    return folder / "ls.json", ["--from", "label-studio"]


def argilla(folder: Path, said: Said) -> tuple[Path, list[str]]:
    given = {"value": said.label, "user_id": said.person, "status": "submitted"}
    row = {"id": said.unit, "fields": said.inputs or {}, "responses": {"stance": [given]}}
    return write_lines(folder / "records.jsonl", [row]), ["--from", "argilla"]


def doccano(folder: Path, said: Said) -> tuple[Path, list[str]]:
    row = {"id": 1, "text": _whole(said), "label": [said.label], "adjudge_unit_id": said.unit}
    return write_lines(folder / f"{said.person}.jsonl", [row]), ["--from", "doccano"]


def prodigy(folder: Path, said: Said) -> tuple[Path, list[str]]:
    options = [{"id": label, "text": label} for label in LABELS]
    row = {"text": _whole(said), "adjudge_unit_id": said.unit, "adjudge_field": "stance", "options": options,
           "accept": [said.label], "answer": "accept", "_annotator_id": said.person}  # fmt: skip
    return write_lines(folder / "done.jsonl", [row]), ["--from", "prodigy"]


def _whole(said: Said) -> str:
    return compose(said.inputs or {})[0]


Door = Callable[[Path, Said], tuple[Path, list[str]]]
DOORS: tuple[Door, ...] = (sheet, table, jsonl, label_studio, argilla, doccano, prodigy)
WITHOUT_TEXTS: tuple[Door, ...] = (sheet, table, jsonl)
"""The doors whose rows may show no text."""
TIMED: tuple[Door, ...] = (sheet, jsonl, label_studio)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return study(tmp_path / "s.db", task="stance", judged=False)


def read_said(path: Path, position: int = 1) -> Said:
    """What alice could say of a unit of her queue, with the unit's texts."""
    query = "SELECT unit_id FROM assignments WHERE annotator_id = 'alice' AND position = ?"
    with open_study(path) as store:
        ((unit,),) = store.conn.execute(query, [position]).fetchall()
        return Said(unit, inputs_of_task(store, batch_info(store, "pilot").task)(unit))


def enter(path: Path, door: Door, said: Said, *words: str, code: int = 0) -> Any:
    """Import one row through a door; the document of the import, or the error."""
    file, form = door(path.parent, said)
    done = annotate(
        "import", file, *form, "--batch", "pilot", "--blind", "-d", path, "--json", *words, code=code
    )
    return json.loads(done.stdout) if done.stdout else done.stderr


def correct(path: Path, unit: str) -> None:
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE passages SET text = text || ' Corrected.' WHERE passage_id = ?", [unit])
        mark_outdated(conn, [unit], get_time())


@pytest.mark.parametrize("door", DOORS)
def test_a_row_is_stored_once(path: Path, door: Door) -> None:
    said = read_said(path)
    assert rows_count(enter(path, door, said)) == {"stored": 1}
    assert rows_count(enter(path, door, said)) == {"already_there": 1}
    assert [(row[0], row[2], row[5]) for row in all_labels(path)] == [(said.unit, "alice", "support")]


Change = Callable[[Path, Said], Said]


def another_text(path: Path, said: Said) -> Said:
    return replace(said, inputs=read_said(path, 2).inputs)


def a_stranger(path: Path, said: Said) -> Said:
    return replace(said, person="zoe")


def a_stopped_person(path: Path, said: Said) -> Said:
    annotate("batches", "stop", "pilot", "--annotator", "alice", "--why", "left", "-d", path)
    return said


def the_text_before_its_correction(path: Path, said: Said) -> Said:
    correct(path, said.unit)
    return said


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (another_text, "text"),
        (a_stranger, "person"),
        (a_stopped_person, "person"),
        (the_text_before_its_correction, "text"),
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_a_doubtful_row_waits_for_a_lead(path: Path, door: Door, change: Change, kind: str) -> None:
    said = change(path, read_said(path))
    for _ in range(2):
        # Without --skip-bad, a row of another person would refuse the file.
        done = enter(path, door, said, "--skip-bad")
        assert rows_count(done) == {"quarantined": 1}
    assert all_labels(path) == set()
    query = "SELECT code, annotator, unit FROM quarantine"
    assert rows_of(path, query) == [(kind, said.person, said.unit)]


@pytest.mark.parametrize("door", TIMED)
def test_a_time_in_the_future_waits_for_a_lead(path: Path, door: Door) -> None:
    done = enter(path, door, replace(read_said(path), at="2999-01-01T00:00:00.000Z"), "--skip-bad")
    assert rows_count(done) == {"quarantined": 1} and done["rows"]["reasons"]["quarantined"] == {"time": 1}


@pytest.mark.parametrize("door", WITHOUT_TEXTS)
def test_a_row_without_proof_of_the_corrected_text_waits_for_a_lead(path: Path, door: Door) -> None:
    said = replace(read_said(path), inputs=None)
    assert rows_count(enter(path, door, said)) == {"stored": 1}
    correct(path, said.unit)
    # The same file again: nobody knows whether it is about the new text.
    done = enter(path, door, said, code=1)
    assert rows_count(done) == {"quarantined": 1}
    with_text = replace(read_said(path), label="refute")
    assert rows_count(enter(path, door, with_text)) == {"stored": 1}
    assert {row[5] for row in all_labels(path)} == {"refute"}


@pytest.mark.parametrize("door", TIMED)
def test_a_row_from_before_the_correction_is_left_out(path: Path, door: Door) -> None:
    said = replace(read_said(path), at=get_time())
    correct(path, said.unit)
    done = enter(path, door, replace(said, inputs=read_said(path).inputs))
    assert rows_count(done) == {"left_out": 1} and all_labels(path) == set()
    assert "before the text" in next(iter(done["rows"]["reasons"]["left_out"]))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("fault", [{"label": "maybe"}, {"unit": "nothing:0/0"}])
def test_a_row_that_does_not_fit_the_study_is_refused(path: Path, door: Door, fault: dict[str, str]) -> None:
    said = replace(read_said(path), **fault)
    assert next(iter(fault.values())) in enter(path, door, said, code=1)
    assert all_labels(path) == set() and rows_of(path, "SELECT 1 FROM quarantine") == []
    done = enter(path, door, said, "--skip-bad")
    assert rows_count(done) == {"quarantined": 1} and all_labels(path) == set()


@pytest.mark.parametrize("door", DOORS)
def test_a_closed_batch_accepts_nothing(path: Path, door: Door) -> None:
    annotate("batches", "close", "pilot", "-d", path)
    assert "closed" in enter(path, door, read_said(path), code=1)
    assert all_labels(path) == set()


@pytest.mark.parametrize("door", DOORS)
def test_what_a_lead_rejected_stays_rejected(path: Path, door: Door) -> None:
    said = reject(path)
    done = enter(path, door, said, "--latest")
    assert rows_count(done) == {"left_out": 1} and "rejected" in str(done["rows"]["reasons"])
    assert {row[5] for row in all_labels(path)} == {"support"}


def reject(path: Path) -> Said:
    """alice said support in the batch and refute elsewhere, and a lead decided against refute; returns that row."""
    answer(path, "alice", {1: {"stance": "support"}})
    said = replace(read_said(path), label="refute")
    file, form = table(path.parent, said)
    annotate("import", file, *form, "--blind", "-d", path)
    annotate("conflicts", "resolve", said.unit, "--keep", "support", "-d", path)
    return said


@pytest.mark.parametrize("door", [label_studio])
def test_an_edit_by_somebody_else_waits_for_a_lead(path: Path, door: Door) -> None:
    done = enter(path, door, replace(read_said(path), editor="bob"), code=1)
    assert rows_count(done) == {"quarantined": 1}
    assert done["rows"]["reasons"] == {"quarantined": {"editor": 1}}


def test_two_users_with_one_name_wait_for_a_lead(path: Path) -> None:
    first, second = read_said(path), read_said(path, 2)
    file, form = label_studio(path.parent, first)
    tasks = json.loads(file.read_text())
    other, _ = label_studio(path.parent, replace(second, person="alice@other.org"))
    more = json.loads(other.read_text())
    more[0]["annotations"][0] |= {"completed_by": {"id": 5, "email": "alice@other.org"}, "updated_by": 5}
    file.write_text(json.dumps(tasks + more))
    words = ("--batch", "pilot", "--blind", "-d", path, "--json", "--skip-bad")
    done = json.loads(annotate("import", file, *form, *words).stdout)
    assert rows_count(done) == {"quarantined": 2} and all_labels(path) == set()
    named = ("-O", "users=alice@x.org=alice,alice@other.org=bob")
    assert rows_count(json.loads(annotate("import", file, *form, *words, *named).stdout)) == {"stored": 2}


# A pack: a study of one person.


def packed(path: Path, label: str = "refute") -> Path:
    """alice's pack, in which she has labelled her first unit."""
    file = path.with_name("pack.db")
    with open_study(path) as store:
        pack(store, "pilot", "alice", file)
    with open_study(file) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.load(1)
        desk.label(1, "stance", label)
    return file


def merge(path: Path, file: Path, code: int) -> Any:
    done = annotate("import", file, "-d", path, "--json", code=code)
    return json.loads(done.stdout) if done.stdout else done.stderr


def test_a_pack_is_stored_once(path: Path) -> None:
    file = packed(path)
    assert rows_count(merge(path, file, 0)) == {"stored": 1}
    assert rows_count(merge(path, file, 0)) == {"already_there": 1}


def test_a_pack_with_the_text_before_its_correction_waits_for_a_lead(path: Path) -> None:
    file = packed(path)
    correct(path, read_said(path).unit)
    assert rows_count(merge(path, file, 1)) == {"quarantined": 1} and all_labels(path) == set()


def test_a_pack_with_a_label_that_a_lead_rejected_waits_for_a_lead(path: Path) -> None:
    file = packed(path)
    for said in (replace(read_said(path), label=label) for label in ("support", "refute")):
        source, form = table(path.parent, said)
        annotate("import", source, *form, "--blind", "-d", path)
    annotate("conflicts", "resolve", said.unit, "--keep", "support", "-d", path)
    done = merge(path, file, 1)
    assert rows_count(done) == {"quarantined": 1}
    assert "rejected" in rows_of(path, "SELECT reason FROM quarantine")[0][0]
    assert {row[5] for row in all_labels(path)} == {"support"}


@pytest.mark.parametrize(
    "words", [("stop", "pilot", "--annotator", "alice", "--why", "left"), ("close", "pilot")]
)
def test_a_pack_of_a_stopped_person_or_a_closed_batch_is_refused(path: Path, words: tuple[str, ...]) -> None:
    file = packed(path)
    annotate("batches", *words, "-d", path)
    assert "alice" in merge(path, file, 1) or "closed" in merge(path, file, 1)
    assert all_labels(path) == set()


def test_a_pack_with_a_label_outside_the_task_is_refused(path: Path) -> None:
    file = packed(path)
    plant(file, "UPDATE events SET value = 'maybe' WHERE kind = 'label'", "events")
    assert "maybe" in merge(path, file, 1) and all_labels(path) == set()


# Votes and gold that come with items.


TASK = """---
title: Verdict
unit: passage
inputs: [claim, passage]
questions:
  - field: stance
    labels: [{value: support}, {value: refute}, {value: neutral}]
---
Judge.
<!-- unit -->
{{ claim }}
{{ passage }}
{{ answer_cue }}
"""


@pytest.fixture
def voted(tmp_path: Path) -> Path:
    """A study of two passages, and the batch `pilot` of both for alice and bob."""
    path = tmp_path / "v.db"
    (tmp_path / "stance.v9.md").write_text(TASK)
    items(path, {})
    annotate(
        "batches",
        "new",
        "pilot",
        tmp_path / "stance.v9.md",
        "-n",
        "2",
        "--annotators",
        "alice,bob",
        "-d",
        path,
    )
    return path


def items(path: Path, votes: dict[str, str], *words: str, code: int = 0, gold: str = "") -> Any:
    """Import the item with votes or gold on its passages; the counts of its votes, or the error."""
    passages = [
        {
            "id": p,
            "text": f"Text {p}.",
            "votes": {"stance": votes},
            **({"gold": {"stance": gold}} if gold else {}),
        }
        for p in "ab"
    ]
    file = write_lines(path.parent / "again.jsonl", [{"id": "q", "claim": "Claim.", "passages": passages}])
    names = ["items", "import", "jsonl", str(file), "--dataset", "d", "-d", str(path), "--json"]
    done = CliRunner().invoke(judge, [*names, *words])
    assert done.exit_code == code, done.output
    if not done.stdout:
        return done.stderr
    (report,) = json.loads(done.stdout)["rows"]
    return rows_count({"rows": report["votes"]})


def test_a_vote_is_stored_once(voted: Path) -> None:
    assert items(voted, {"alice": "support"}) == {"stored": 2}
    assert items(voted, {"alice": "support"}) == {"already_there": 2}
    assert items(voted, {"alice": "support", "bob": "refute"}) == {"stored": 2, "already_there": 2}


def test_a_vote_that_contradicts_a_batch_is_in_conflict(voted: Path) -> None:
    answer(voted, "alice", {1: {"stance": "support"}})
    assert items(voted, {"alice": "refute"}) == {"stored": 1, "conflict": 1}


def test_a_vote_that_a_lead_rejected_is_left_out(voted: Path) -> None:
    reject(voted)
    assert items(voted, {"alice": "refute"}) == {"stored": 1, "left_out": 1}
    assert sorted(row[5] for row in all_labels(voted)) == ["refute", "support"]


@pytest.mark.parametrize(
    "words", [("stop", "pilot", "--annotator", "alice", "--why", "left"), ("close", "pilot")]
)
def test_a_vote_of_a_stopped_person_or_a_closed_batch_is_refused(voted: Path, words: tuple[str, ...]) -> None:
    annotate("batches", *words, "-d", voted)
    assert "pilot" in items(voted, {"alice": "refute"}, code=1)
    assert items(voted, {"alice": "refute"}, "--skip-bad") == {"left_out": 2} and all_labels(voted) == set()


def test_gold_is_counted_too(voted: Path) -> None:
    assert items(voted, {}, gold="support") == {"stored": 2}
    assert items(voted, {}, gold="support") == {"already_there": 2}
    assert "support" in items(voted, {}, gold="refute", code=1)
    assert items(voted, {}, "--skip-bad", gold="refute") == {"left_out": 2}
    assert items(voted, {}, "--correct", "--yes", gold="refute") == {"stored": 2}


# The screen shows the study's own text, so only these checks apply.


def test_the_screen_admits_nobody_who_may_not_label(path: Path) -> None:
    with open_study(path) as store:
        for person in ("zoe", "alice"):
            if person == "alice":
                annotate("batches", "stop", "pilot", "--annotator", "alice", "--why", "left", "-d", path)
            with pytest.raises(AdjudgeError, match=person), Desk.open(store, "pilot", person):
                pass
        with Desk.open(store, "pilot", "bob") as desk, pytest.raises(AdjudgeError, match="maybe"):
            desk.load(1)
            desk.label(1, "stance", "maybe")
