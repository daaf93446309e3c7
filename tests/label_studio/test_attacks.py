"""What people do to a project between two pulls: copies, moved and re-made annotations, edited ids, people of one name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import Done
from tests.label_studio.conftest import choice, tasks_of
from tests.label_studio.server import Server, Web
from tests.label_studio.test_proof import held, sent, stored
from tests.label_studio.test_server import pull
from tests.tui.studies import batch, build, rows_of

pytestmark = pytest.mark.real
Run = Callable[..., Done]


def say(server: Server, task: Any, value: str, person: str = "alice") -> Any:
    return server.client(person).annotations.create(
        id=task.id, result=[choice("stance", value)], lead_time=1.0
    )


def test_two_copies_of_a_task_labelled_differently(label_studio: Server, study: Path, annotate: Run) -> None:
    """The later answer stands, whichever task it is on; a copy that goes takes only its own answer along."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task = tasks_of(label_studio, project)[0]
    unit = task.data["adjudge_unit_id"]
    client = label_studio.client("alice")
    client.projects.import_tasks(id=project, request=[{"data": task.data}], return_task_ids=True)
    copy = next(t for t in tasks_of(label_studio, project) if t.data == task.data and t.id != task.id)
    say(label_studio, task, "support")
    later = say(label_studio, copy, "refute")
    came = pull(annotate, study, label_studio.url, key)
    assert stored(study) == {unit: "refute"} and came["problems"] == []
    assert pull(annotate, study, label_studio.url, key)["new"] == {} and stored(study) == {unit: "refute"}
    client.annotations.delete(id=later.id)
    assert pull(annotate, study, label_studio.url, key)["retracted"] == 1
    assert stored(study) == {unit: "support"}, "what was said on the other copy is what is left"


def test_an_annotation_made_again_and_one_of_two_deleted(
    label_studio: Server, study: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    one, other = tasks_of(label_studio, project)[:2]
    client = label_studio.client("alice")
    first, _ = say(label_studio, one, "support"), say(label_studio, other, "support")
    assert pull(annotate, study, label_studio.url, key)["new"] == {"alice": 2}
    # Deleted and made again with the same answer between two pulls: it stands, and by the new record.
    client.annotations.delete(id=first.id)
    again = say(label_studio, one, "support")
    second = say(label_studio, other, "refute")
    pull(annotate, study, label_studio.url, key)
    units = [t.data["adjudge_unit_id"] for t in (one, other)]
    assert stored(study) == {units[0]: "support", units[1]: "refute"}
    client.annotations.delete(id=again.id)
    client.annotations.delete(id=second.id)
    pull(annotate, study, label_studio.url, key)
    assert stored(study) == {units[1]: "support"}, "her first answer to the other one is still there"
    assert pull(annotate, study, label_studio.url, key)["new"] == {}
    assert stored(study) == {units[1]: "support"}


def test_an_annotation_given_to_somebody_else(label_studio: Server, study: Path, annotate: Run) -> None:
    """Before: alice kept a label that the server says is bob's, so that they agreed with each other."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task = tasks_of(label_studio, project)[0]
    made = say(label_studio, task, "support")
    assert pull(annotate, study, label_studio.url, key)["new"] == {"alice": 1}
    bob = next(u.id for u in label_studio.client("alice").users.list() if u.email.startswith("bob@"))
    label_studio.client("alice").annotations.update(
        id=made.id, completed_by=bob, result=[choice("stance", "support")]
    )
    came = pull(annotate, study, label_studio.url, key)
    unit = task.data["adjudge_unit_id"]
    assert came["new"] == {"bob": 1} and came["retracted"] == 1
    assert stored(study, "bob") == {unit: "support"} and stored(study) == {}


def test_ids_that_were_edited_or_taken_away(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    one, other, third, fourth = tasks_of(label_studio, project)[:4]
    client = label_studio.client("alice")
    for task in (one, other, third, fourth):
        say(label_studio, task, "support")
    client.tasks.update(id=one.id, data={**one.data, "adjudge_unit_id": "d:0/none"})
    client.tasks.update(id=other.id, data={k: v for k, v in other.data.items() if k != "adjudge_unit_id"})
    client.tasks.update(id=third.id, data={**third.data, "adjudge_unit_id": ["d:0/p0"]})
    came = pull(annotate, study, label_studio.url, key, code=1)
    assert came["new"] == {"alice": 1} and came["strange_tasks"] == 3 and came["held"] == 3
    assert list(stored(study)) == [fourth.data["adjudge_unit_id"]]
    assert {row["code"] for row in held(annotate, study)} == {"unit"}
    # An id edited after its label came in moves no label, neither there nor back.
    client.tasks.update(id=fourth.id, data={**fourth.data, "adjudge_unit_id": one.data["adjudge_unit_id"]})
    pull(annotate, study, label_studio.url, key, code=1)
    assert stored(study) == {fourth.data["adjudge_unit_id"]: "support"}


def test_two_people_of_one_name(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    """dave@a and dave@b are both dave by what stands before the @: neither is taken for him."""
    path = build(tmp_path / "s.db", items=2)
    batch(path, n=4, annotators=["dave"])
    invite = label_studio.admin.client.get("/api/invite").json()["invite_url"]
    for where in ("a", "b"):
        with Web(label_studio.url, f"dave@{where}.example") as page:
            label_studio.keys[f"dave@{where}"] = page.signup(invite).token()
    try:
        project = sent(annotate, label_studio, path)
        task, other = tasks_of(label_studio, project)[:2]
        say(label_studio, task, "support", "dave@a")
        say(label_studio, task, "refute", "dave@b")
        key = label_studio.keys["alice"]
        came = pull(annotate, path, label_studio.url, key, code=1)
        assert came["new"] == {} and came["held"] == 2 and len(came["problems"]) == 2
        who = ("--annotator", "dave@a.example=dave")
        came = pull(annotate, path, label_studio.url, key, *who, code=1)
        unit = task.data["adjudge_unit_id"]
        assert came["new"] == {"dave": 1} and stored(path, "dave") == {unit: "support"}
        # Two users said to be one person are that person: the later answer stands, and the log has both.
        say(label_studio, other, "neutral", "dave@b")
        pull(annotate, path, label_studio.url, key, *who, "--annotator", "dave@b.example=dave")
        assert stored(path, "dave") == {unit: "refute", other.data["adjudge_unit_id"]: "neutral"}
        assert rows_of(path, "SELECT count(*) FROM events WHERE kind = 'label'") == [(3,)]
    finally:
        for where in ("a", "b"):
            label_studio.keys.pop(f"dave@{where}", None)
            if f"dave@{where}" in label_studio.clients:
                label_studio.clients.pop(f"dave@{where}")[1].close()
