"""What others do to a project between a push and a pull: no label lands on a unit it was not given to."""

import json
from typing import Any

import pytest

from annotate.store import open_study
from tests.label_studio.conftest import Pilot, choice
from tests.tui.studies import labels, rows_of

pytestmark = pytest.mark.real
WORDS = ("support", "refute", "neutral")


def said_by_unit(pilot: Pilot, project: int) -> dict[str, str]:
    """Alice labels every task by what is on it; unit -> label."""
    said = {}
    for task in pilot.tasks(project):
        word = WORDS[sum(map(ord, task.data["passage"] + task.data["claim"])) % 3]
        pilot.say(task, word)
        said[task.data["adjudge_unit_id"]] = word
    return said


def again(pilot: Pilot, project: int, tasks: list[Any]) -> None:
    """Delete tasks and import them again, in this order."""
    client = pilot.client()
    for task in tasks:
        client.tasks.delete(id=task.id)
    client.projects.import_tasks(id=project, request=[{"data": t.data} for t in tasks], return_task_ids=True)


def test_tasks_imported_again_in_another_order(pilot: Pilot) -> None:
    """Before: ids of deleted tasks went to other units, and 8 of 12 labels onto wrong ones with exit 0."""
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    again(pilot, project, tasks[::-1])
    now = pilot.tasks(project)
    moved = {t.id: t.data["adjudge_unit_id"] for t in now}
    assert sum(moved.get(t.id) != t.data["adjudge_unit_id"] for t in tasks) > 0
    said = said_by_unit(pilot, project)
    came = pilot.pull()
    assert came["new"] == {"alice": 12} and pilot.stored() == said


def test_some_tasks_imported_again(pilot: Pilot) -> None:
    """Before: as many tasks as ever, so the labels of the new ones were never seen."""
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    again(pilot, project, tasks[3:6])
    said = said_by_unit(pilot, project)
    came = pilot.pull()
    assert came["new"] == {"alice": 12} and pilot.stored() == said and came["deleted_tasks"] == 0
    # The same once more after a pull: what was labelled stays, and comes in again without a change.
    again(pilot, project, pilot.tasks(project)[:3])
    assert said_by_unit(pilot, project) == said
    came = pilot.pull()
    assert came["new"] == {} and came["retracted"] == 0 and pilot.stored() == said
    assert pilot.push()["new"] == 0


def test_a_text_edited_on_the_server(pilot: Pilot) -> None:
    """Before: accepted as blind. The label of an edited text waits for a lead, also when it is put right later."""
    project = pilot.push()["project"]
    first, second, third = pilot.tasks(project)[:3]
    client = pilot.client()
    client.tasks.update(id=first.id, data={**first.data, "passage": first.data["passage"] + " Not."})
    client.tasks.update(id=second.id, data={**second.data, "adjudge_unit_id": third.data["adjudge_unit_id"]})
    for task in (first, second, third):
        pilot.say(task, "support")
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 2
    assert list(pilot.stored()) == [third.data["adjudge_unit_id"]]
    rows = pilot.held()
    assert {(r["unit"], r["code"]) for r in rows} == {
        (t.data["adjudge_unit_id"], "text") for t in (first, third)
    }
    assert "its 'passage' differs from the unit's" in rows[0]["reason"]
    client.tasks.update(id=first.id, data=first.data)
    client.tasks.update(id=second.id, data=second.data)
    came = pilot.pull(code=1)
    # The second one's annotation is about its own unit now, which nothing was held against.
    assert first.data["adjudge_unit_id"] not in pilot.stored() and came["held"] >= 1
    wait = next(r for r in pilot.held() if r["unit"] == first.data["adjudge_unit_id"])
    pilot.accept(wait, "--blind", "--note", "a typo")
    assert pilot.stored()[first.data["adjudge_unit_id"]] == "support"
    assert pilot.pull(code=None)["new"] == {}


def test_a_prediction_in_an_annotation_makes_it_assisted(pilot: Pilot) -> None:
    """Added and removed between two pulls: the project holds none, but an annotation may keep a copy of it."""
    project = pilot.push()["project"]
    task, other = pilot.tasks(project)[:2]
    client = pilot.client()
    made = client.predictions.create(task=task.id, result=[choice("stance", "refute")], model_version="m")
    client.projects.update(id=project, model_version="m")
    pilot.say(task, "refute")
    client.predictions.delete(id=made.id)
    changed = {**choice("stance", "refute"), "origin": "prediction-changed"}
    client.annotations.create(id=other.id, result=[changed])
    came = pilot.pull()
    assert came["new"] == {"alice": 2}
    layers = {unit: layer for unit, _, layer, _ in labels(pilot.path)}
    assert layers == {t.data["adjudge_unit_id"]: "assisted" for t in (task, other)}


def test_somebody_unknown_waits_until_a_lead_says_who_it_is(pilot: Pilot) -> None:
    with open_study(pilot.path) as store, store.transaction() as conn:
        conn.execute("DELETE FROM assignments WHERE annotator_id = 'bob'")
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    pilot.say(task, "support", "bob")
    came = pilot.pull(code=1)
    assert came["held"] == 1 and "--annotator bob@example.org=NAME" in came["problems"][0]
    (row,) = pilot.held()
    assert (row["code"], row["annotator"], row["readable"]) == ("person", "bob@example.org", True)
    pilot.accept(row, "--annotator", "alice")
    assert pilot.stored() == {task.data["adjudge_unit_id"]: "support"}
    assert pilot.held() == [] and pilot.held("--all")[0]["status"] == "accepted"
    ((response,),) = rows_of(pilot.path, "SELECT response FROM quarantine")
    assert json.loads(response)["answers"] == {"stance": "support"}
