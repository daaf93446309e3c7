"""What others do to a project between a push and a pull: no label lands on a unit it was not given to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.store import open_study
from tests.cli.helpers import Done
from tests.label_studio.conftest import choice, document, tasks_of
from tests.label_studio.server import Server
from tests.label_studio.test_server import pull, push
from tests.tui.studies import labels

pytestmark = pytest.mark.real
Run = Callable[..., Done]
WORDS = ("support", "refute", "neutral")


def sent(annotate: Run, server: Server, study: Path) -> int:
    return int(push(annotate, study, server.url, server.keys["alice"])["project"])


def said_by_unit(server: Server, project: int, person: str = "alice") -> dict[str, str]:
    """The person labels every task by what is on it; unit -> label."""
    client, said = server.client(person), {}
    for task in tasks_of(server, project):
        word = WORDS[sum(map(ord, task.data["passage"] + task.data["claim"])) % 3]
        client.annotations.create(id=task.id, result=[choice("stance", word)], lead_time=1.0)
        said[task.data["adjudge_unit_id"]] = word
    return said


def stored(study: Path, person: str = "alice") -> dict[str, str]:
    return {unit: value for (unit, _, _, _), value in labels(study, person).items()}


def held(annotate: Run, study: Path, *words: str) -> list[dict[str, Any]]:
    outcome: list[dict[str, Any]] = document(annotate("quarantine", "list", "--json", *words, db=study))[
        "rows"
    ]
    return outcome


def again(server: Server, project: int, tasks: list[Any]) -> None:
    """Delete tasks and import them again, in this order."""
    client = server.client("alice")
    for task in tasks:
        client.tasks.delete(id=task.id)
    client.projects.import_tasks(id=project, request=[{"data": t.data} for t in tasks], return_task_ids=True)


def test_tasks_imported_again_in_another_order(label_studio: Server, study: Path, annotate: Run) -> None:
    """Before: ids of deleted tasks went to other units, and 8 of 12 labels onto wrong ones with exit 0."""
    project = sent(annotate, label_studio, study)
    tasks = tasks_of(label_studio, project)
    again(label_studio, project, tasks[::-1])
    now = tasks_of(label_studio, project)
    moved = {t.id: t.data["adjudge_unit_id"] for t in now}
    assert sum(moved.get(t.id) != t.data["adjudge_unit_id"] for t in tasks) > 0
    said = said_by_unit(label_studio, project)
    came = pull(annotate, study, label_studio.url, label_studio.keys["alice"])
    assert came["new"] == {"alice": 12} and stored(study) == said


def test_some_tasks_imported_again(label_studio: Server, study: Path, annotate: Run) -> None:
    """Before: as many tasks as ever, so the labels of the new ones were never seen."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    tasks = tasks_of(label_studio, project)
    again(label_studio, project, tasks[3:6])
    said = said_by_unit(label_studio, project)
    came = pull(annotate, study, label_studio.url, key)
    assert came["new"] == {"alice": 12} and stored(study) == said and came["deleted_tasks"] == 0
    # The same once more after a pull: what was labelled stays, and comes in again without a change.
    again(label_studio, project, tasks_of(label_studio, project)[:3])
    assert said_by_unit(label_studio, project) == said
    came = pull(annotate, study, label_studio.url, key)
    assert came["new"] == {} and came["retracted"] == 0 and stored(study) == said
    assert push(annotate, study, label_studio.url, key)["new"] == 0


def test_a_text_edited_on_the_server(label_studio: Server, study: Path, annotate: Run) -> None:
    """Before: accepted as blind. The label of an edited text waits for a lead, also when it is put right later."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    first, second, third = tasks_of(label_studio, project)[:3]
    client = label_studio.client("alice")
    client.tasks.update(id=first.id, data={**first.data, "passage": first.data["passage"] + " Not."})
    client.tasks.update(id=second.id, data={**second.data, "adjudge_unit_id": third.data["adjudge_unit_id"]})
    for task in (first, second, third):
        client.annotations.create(id=task.id, result=[choice("stance", "support")])
    came = pull(annotate, study, label_studio.url, key, code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 2
    assert list(stored(study)) == [third.data["adjudge_unit_id"]]
    rows = held(annotate, study)
    assert {(r["unit"], r["code"]) for r in rows} == {
        (first.data["adjudge_unit_id"], "text"),
        (third.data["adjudge_unit_id"], "text"),
    }
    assert "its 'passage' is not that of the unit" in rows[0]["reason"]
    client.tasks.update(id=first.id, data=first.data)
    client.tasks.update(id=second.id, data=second.data)
    came = pull(annotate, study, label_studio.url, key, code=1)
    # The second one's annotation is about its own unit now, which nothing was held against.
    assert first.data["adjudge_unit_id"] not in stored(study) and came["held"] >= 1
    wait = next(r for r in held(annotate, study) if r["unit"] == first.data["adjudge_unit_id"])
    annotate("quarantine", "accept", str(wait["id"]), "--blind", "--note", "a typo", db=study)
    assert stored(study)[first.data["adjudge_unit_id"]] == "support"
    assert pull(annotate, study, label_studio.url, key, code=None)["new"] == {}


def test_what_is_retracted_there_is_retracted_here(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task, other = tasks_of(label_studio, project)[:2]
    client = label_studio.client("alice")
    made = client.annotations.create(id=task.id, result=[choice("stance", "support")])
    client.annotations.create(id=other.id, result=[choice("stance", "refute")])
    assert pull(annotate, study, label_studio.url, key)["new"] == {"alice": 2}
    client.annotations.delete(id=made.id)
    came = pull(annotate, study, label_studio.url, key)
    assert (came["deleted_annotations"], came["retracted"]) == (1, 1)
    assert stored(study) == {other.data["adjudge_unit_id"]: "refute"}
    with open_study(study) as store:
        kinds = [k for (k,) in store.conn.execute("SELECT kind FROM events ORDER BY seq")]
        assert kinds == ["label", "label", "undo"], "the log keeps it"
    assert pull(annotate, study, label_studio.url, key)["retracted"] == 0
    client.annotations.create(id=task.id, result=[choice("stance", "neutral")])
    assert pull(annotate, study, label_studio.url, key)["new"] == {"alice": 1}
    assert stored(study)[task.data["adjudge_unit_id"]] == "neutral"


def test_a_prediction_in_an_annotation_makes_it_assisted(
    label_studio: Server, study: Path, annotate: Run
) -> None:
    """Added and removed between two pulls: the project holds none, but an annotation may keep a copy of it."""
    key = label_studio.keys["alice"]
    project = sent(annotate, label_studio, study)
    task, other = tasks_of(label_studio, project)[:2]
    client = label_studio.client("alice")
    made = client.predictions.create(task=task.id, result=[choice("stance", "refute")], model_version="m")
    client.projects.update(id=project, model_version="m")
    client.annotations.create(id=task.id, result=[choice("stance", "refute")])
    client.predictions.delete(id=made.id)
    client.annotations.create(
        id=other.id, result=[{**choice("stance", "refute"), "origin": "prediction-changed"}]
    )
    came = pull(annotate, study, label_studio.url, key)
    assert came["new"] == {"alice": 2}
    layers = {unit: layer for unit, _, layer, _ in labels(study)}
    assert layers == {
        task.data["adjudge_unit_id"]: "assisted",
        other.data["adjudge_unit_id"]: "assisted",
    }


def test_somebody_unknown_waits_until_a_lead_says_who_it_is(
    label_studio: Server, study: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    with open_study(study) as store, store.transaction() as conn:
        conn.execute("DELETE FROM assignments WHERE annotator_id = 'bob'")
    project = sent(annotate, label_studio, study)
    task = tasks_of(label_studio, project)[0]
    label_studio.client("bob").annotations.create(id=task.id, result=[choice("stance", "support")])
    came = pull(annotate, study, label_studio.url, key, code=1)
    assert came["held"] == 1 and "--annotator bob@example.org=NAME" in came["problems"][0]
    (row,) = held(annotate, study)
    assert (row["code"], row["annotator"], row["readable"]) == ("person", "bob@example.org", True)
    annotate("quarantine", "accept", str(row["id"]), "--as", "alice", db=study)
    assert stored(study) == {task.data["adjudge_unit_id"]: "support"}
    assert held(annotate, study) == [] and held(annotate, study, "--all")[0]["status"] == "accepted"
    with open_study(study) as store:
        note = store.conn.execute("SELECT response FROM quarantine").fetchone()[0]
        assert json.loads(note)["answers"] == {"stance": "support"}
