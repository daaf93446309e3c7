"""An answer that was taken out of an annotation, and one that comes and goes between two people."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.store import open_study
from tests.cli.helpers import Done
from tests.label_studio.conftest import choice, remark, tasks_of
from tests.label_studio.server import Server
from tests.label_studio.test_proof import sent, stored
from tests.label_studio.test_server import pull, push
from tests.tui.studies import batch, build, labels, three

pytestmark = pytest.mark.real
Run = Callable[..., Done]


def standing(path: Path, unit: str) -> tuple[Any, ...]:
    query = "SELECT status, answers, note FROM assignments WHERE unit_id = ? AND annotator_id = 'alice'"
    with open_study(path) as store:
        outcome: tuple[Any, ...] = store.conn.execute(query, [unit]).fetchone()
        return outcome


def test_an_answer_cleared_there_falls_here(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    """One of three answers is taken out of the annotation on the server, then all of them."""
    path = build(tmp_path / "s.db", items=2)
    batch(path, three(), n=4, annotators=["alice"])
    key = label_studio.keys["alice"]
    project = push(annotate, path, label_studio.url, key)["project"]
    task = tasks_of(label_studio, project)[0]
    unit = task.data["adjudge_unit_id"]
    client = label_studio.client("alice")
    whole = [choice("relevance", "relevant"), choice("stance", "refute"), choice("quality", "bad")]
    made = client.annotations.create(id=task.id, result=[*whole, remark("sure")])
    assert pull(annotate, path, label_studio.url, key)["new"] == {"alice": 3}
    client.annotations.update(id=made.id, result=[whole[0], whole[2]])
    came = pull(annotate, path, label_studio.url, key)
    assert {f for _, f, _, _ in labels(path)} == {"relevance", "quality"}, "the stance was taken back there"
    assert came["retracted"] == 1 and came["new"] == {}
    assert standing(path, unit)[0] == "open"
    client.annotations.update(id=made.id, result=whole)
    assert pull(annotate, path, label_studio.url, key)["new"] == {"alice": 1}
    assert labels(path)[unit, "stance", "first", 0] == "refute"
    client.annotations.update(id=made.id, result=[])
    assert pull(annotate, path, label_studio.url, key)["retracted"] == 3
    assert labels(path) == {} and pull(annotate, path, label_studio.url, key)["retracted"] == 0


def test_an_annotation_given_away_and_back(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task = tasks_of(label_studio, project)[0]
    unit = task.data["adjudge_unit_id"]
    client = label_studio.client("alice")
    whole = [choice("stance", "support")]
    made = client.annotations.create(id=task.id, result=whole)
    people = {u.email.split("@")[0]: u.id for u in client.users.list()}
    pull(annotate, study, label_studio.url, key)
    for who, other in (("bob", "alice"), ("alice", "bob"), ("bob", "alice"), ("alice", "bob")):
        client.annotations.update(id=made.id, completed_by=people[who], result=whole)
        came = pull(annotate, study, label_studio.url, key)
        assert stored(study, who) == {unit: "support"} and stored(study, other) == {}, came
    assert pull(annotate, study, label_studio.url, key)["new"] == {}


def test_two_swap_their_annotations(label_studio: Server, study: Path, annotate: Run) -> None:
    """Each is given the other's annotation of one task, answers and all."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task = tasks_of(label_studio, project)[0]
    unit = task.data["adjudge_unit_id"]
    client = label_studio.client("alice")
    people = {u.email.split("@")[0]: u.id for u in client.users.list()}
    said = {"alice": [choice("stance", "support")], "bob": [choice("stance", "refute")]}
    made = {p: label_studio.client(p).annotations.create(id=task.id, result=said[p]) for p in said}
    pull(annotate, study, label_studio.url, key)
    assert (stored(study), stored(study, "bob")) == ({unit: "support"}, {unit: "refute"})
    client.annotations.update(id=made["alice"].id, completed_by=people["bob"], result=said["alice"])
    client.annotations.update(id=made["bob"].id, completed_by=people["alice"], result=said["bob"])
    pull(annotate, study, label_studio.url, key)
    assert (stored(study), stored(study, "bob")) == ({unit: "refute"}, {unit: "support"})
    pull(annotate, study, label_studio.url, key)
    assert (stored(study), stored(study, "bob")) == ({unit: "refute"}, {unit: "support"})
