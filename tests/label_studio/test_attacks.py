"""What people do to a project between two pulls: copies, moved and re-made annotations, edited ids, people of one name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.label_studio.conftest import Pilot
from tests.label_studio.server import Web
from tests.tui.studies import drawn, rows_of

pytestmark = pytest.mark.real


def test_two_copies_of_a_task_labelled_differently(pilot: Pilot) -> None:
    """The later answer stands, whichever task it is on; a copy that goes takes only its own answer along."""
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    unit = task.data["adjudge_unit_id"]
    client = pilot.client()
    client.projects.import_tasks(id=project, request=[{"data": task.data}], return_task_ids=True)
    copy = next(t for t in pilot.tasks(project) if t.data == task.data and t.id != task.id)
    pilot.say(task, "support")
    later = pilot.say(copy, "refute")
    came = pilot.pull()
    assert pilot.stored() == {unit: "refute"} and came["problems"] == []
    assert pilot.pull()["new"] == {} and pilot.stored() == {unit: "refute"}
    client.annotations.delete(id=later.id)
    assert pilot.pull()["retracted"] == 1
    assert pilot.stored() == {unit: "support"}, "what was said on the other copy is what is left"


def test_an_annotation_made_again_and_one_of_two_deleted(pilot: Pilot) -> None:
    project = pilot.push()["project"]
    one, other = pilot.tasks(project)[:2]
    client = pilot.client()
    first, _ = pilot.say(one, "support"), pilot.say(other, "support")
    assert pilot.pull()["new"] == {"alice": 2}
    # Deleted and made again with the same answer between two pulls: it stands, and by the new record.
    client.annotations.delete(id=first.id)
    again = pilot.say(one, "support")
    second = pilot.say(other, "refute")
    pilot.pull()
    units = [t.data["adjudge_unit_id"] for t in (one, other)]
    assert pilot.stored() == {units[0]: "support", units[1]: "refute"}
    client.annotations.delete(id=again.id)
    client.annotations.delete(id=second.id)
    pilot.pull()
    assert pilot.stored() == {units[1]: "support"}, "her first answer to the other one is still there"
    assert pilot.pull()["new"] == {}
    assert pilot.stored() == {units[1]: "support"}
    kinds = [kind for (kind,) in rows_of(pilot.path, "SELECT kind FROM events ORDER BY seq")]
    assert kinds[-2:] == ["undo", "undo"], "the log keeps what was taken back"
    pilot.say(one, "neutral")
    assert pilot.pull()["new"] == {"alice": 1} and pilot.stored()[units[0]] == "neutral"


def test_ids_that_were_edited_or_taken_away(pilot: Pilot) -> None:
    project = pilot.push()["project"]
    one, other, third, fourth = pilot.tasks(project)[:4]
    client = pilot.client()
    for task in (one, other, third, fourth):
        pilot.say(task, "support")
    client.tasks.update(id=one.id, data={**one.data, "adjudge_unit_id": "d:0/none"})
    client.tasks.update(id=other.id, data={k: v for k, v in other.data.items() if k != "adjudge_unit_id"})
    client.tasks.update(id=third.id, data={**third.data, "adjudge_unit_id": ["d:0/p0"]})
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": 1} and came["strange_tasks"] == 3 and came["held"] == 3
    assert list(pilot.stored()) == [fourth.data["adjudge_unit_id"]]
    assert {row["code"] for row in pilot.held()} == {"unit"}
    # An id edited after its label came in moves no label, neither there nor back.
    client.tasks.update(id=fourth.id, data={**fourth.data, "adjudge_unit_id": one.data["adjudge_unit_id"]})
    pilot.pull(code=1)
    assert pilot.stored() == {fourth.data["adjudge_unit_id"]: "support"}


def test_two_people_of_one_name(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    """dave@a and dave@b are both dave by what stands before the @: neither is taken for him."""
    path = drawn(tmp_path, items=2, n=4, annotators=["dave"])
    pilot = pilot_of(path)
    server = pilot.server
    invite = server.admin.client.get("/api/invite").json()["invite_url"]
    for where in ("a", "b"):
        with Web(server.url, f"dave@{where}.example") as page:
            server.keys[f"dave@{where}"] = page.signup(invite).token()
    try:
        project = pilot.push()["project"]
        task, other = pilot.tasks(project)[:2]
        pilot.say(task, "support", "dave@a")
        pilot.say(task, "refute", "dave@b")
        came = pilot.pull(code=1)
        assert came["new"] == {} and came["held"] == 2 and len(came["problems"]) == 2
        who = ("--annotator", "dave@a.example=dave")
        came = pilot.pull(*who, code=1)
        unit = task.data["adjudge_unit_id"]
        assert came["new"] == {"dave": 1} and pilot.stored("dave") == {unit: "support"}
        # Two users said to be one person are that person: the later answer stands, and the log has both.
        pilot.say(other, "neutral", "dave@b")
        pilot.pull(*who, "--annotator", "dave@b.example=dave")
        assert pilot.stored("dave") == {unit: "refute", other.data["adjudge_unit_id"]: "neutral"}
        assert rows_of(path, "SELECT count(*) FROM events WHERE kind = 'label'") == [(3,)]
    finally:
        for where in ("a", "b"):
            server.keys.pop(f"dave@{where}", None)
            if f"dave@{where}" in server.clients:
                server.clients.pop(f"dave@{where}")[1].close()
