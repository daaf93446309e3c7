"""A project for each person: the whole queue out, everything back, nobody's labels in anybody else's project."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.leading.lead import add_people
from annotate.store import open_study
from tests.label_studio.conftest import Pilot
from tests.tui.studies import drawn, judge_all, labels, rows_of

pytestmark = pytest.mark.real
WORDS = ("support", "refute", "neutral")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Eight units for alice and bob, each with two training units, an attention check and hidden repeats."""
    return drawn(tmp_path, items=8, n=8, annotators=["alice", "bob"], training=2, attention=0.1, repeats=0.25)


def queue(pilot: Pilot, person: str) -> list[tuple[str, int]]:
    query = "SELECT unit_id, repeat FROM assignments WHERE annotator_id = ? ORDER BY position"
    return rows_of(pilot.path, query, person)


def label(pilot: Pilot, project: int, person: str, word: Callable[[int], str]) -> None:
    """Every task of a project, labelled by a person: by its number on the page."""
    for i, task in enumerate(pilot.tasks(project)):
        pilot.say(task, word(i), person)


def sampled(pilot: Pilot, project: int) -> list[Any]:
    """The tasks of alice's project that are part of the sample: no training, no checks, no repeats."""
    query = "SELECT position FROM assignments WHERE annotator_id = 'alice' AND role = 'sample'"
    places = {place for (place,) in rows_of(pilot.path, query)}
    return [t for t in pilot.tasks(project) if t.data["adjudge_place"] in places]


def test_the_whole_queue_goes_out_and_progress_completes(pilot: Pilot) -> None:
    size = {who: len(queue(pilot, who)) for who in ("alice", "bob")}
    repeats = sum(repeat for who in size for _, repeat in queue(pilot, who))
    assert repeats == 4, "a quarter of eight units for each of two"
    told = pilot.push("--separate", "--dry-run")
    assert (told["new"], told["projects"], told["repeats"]) == (sum(size.values()), {"alice": 0, "bob": 0}, 0)
    sent = pilot.push("--separate")
    assert sent["new"] == told["new"] and sent["project"] is None and sorted(sent["projects"]) == sorted(size)
    for who, project in sent["projects"].items():
        there = [t.data for t in pilot.tasks(project)]
        assert [d["adjudge_unit_id"] for d in there] == [unit for unit, _ in queue(pilot, who)]
        assert [d["adjudge_place"] for d in there] == list(range(1, size[who] + 1))
        assert len({frozenset(d) for d in there}) == 1, "nothing tells a repeat or a check from the rest"
    again = pilot.push()
    assert (again["new"], again["there"], again["created"]) == (0, told["new"], False), "it stays separate"
    # Everybody labels by place, so that a unit and its repeat differ.
    for who, project in sent["projects"].items():
        label(pilot, project, who, lambda i: WORDS[i % 3])
        outcome = pilot.server.admin.client.get(f"/api/projects/{project}").json()
        assert outcome["num_tasks_with_annotations"] == outcome["task_number"] == size[who]
    came = pilot.pull()
    assert came["new"] == size and came["projects"] == sent["projects"] and came["joined"] == {}
    shown = pilot.shown()["annotators"]
    assert [(p["annotator"], p["done"], p["open"]) for p in shown] == [(who, n, 0) for who, n in size.items()]
    assert [p["repeats_answered"] for p in shown] == [2, 2]
    for who in size:
        query = "SELECT answers ->> 'stance' FROM assignments WHERE annotator_id = ? ORDER BY position"
        assert [value for (value,) in rows_of(pilot.path, query, who)] == [
            WORDS[i % 3] for i in range(size[who])
        ]
    assert pilot.pull()["new"] == {}


def test_a_repeat_deleted_there_is_undone_here_and_its_unit_stays(pilot: Pilot) -> None:
    project = pilot.push("--separate")["projects"]["alice"]
    label(pilot, project, "alice", lambda i: WORDS[i % 3])
    pilot.pull()
    unit = next(unit for unit, repeat in queue(pilot, "alice") if repeat)
    place = queue(pilot, "alice").index((unit, 1)) + 1
    task = next(t for t in pilot.tasks(project) if t.data["adjudge_place"] == place)
    client = pilot.client()
    (made,) = client.annotations.list(id=task.id)
    client.annotations.delete(id=made.id)
    assert pilot.pull()["retracted"] == 1
    outcome = {repeat for (u, _, _, repeat) in labels(pilot.path) if u == unit}
    assert outcome == {0}


def test_who_annotates_in_the_project_of_somebody_else_waits(pilot: Pilot) -> None:
    projects = pilot.push("--separate")["projects"]
    mine, other = sampled(pilot, projects["alice"])[:2]
    pilot.say(mine, "support")
    pilot.say(other, "refute", "bob")
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 1
    assert "bob annotated in the project of alice, where alice's labels are visible" in came["problems"][0]
    assert pilot.stored("bob") == {}
    (row,) = pilot.held()
    assert row["code"] == "person"
    pilot.accept(row, "--annotator", "alice", "--note", "a shared login")
    assert pilot.stored()[other.data["adjudge_unit_id"]] == "refute"


def test_a_place_edited_on_the_server_proves_nothing(pilot: Pilot) -> None:
    project = pilot.push("--separate")["projects"]["alice"]
    first, second, third = sampled(pilot, project)[:3]
    client = pilot.client()
    client.tasks.update(id=first.id, data={**first.data, "adjudge_place": second.data["adjudge_place"]})
    client.tasks.update(id=second.id, data={**second.data, "adjudge_place": "x"})
    for task in (first, second, third):
        pilot.say(task, "support")
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 2
    assert all("does not name its unit" in problem for problem in came["problems"])
    assert list(pilot.stored()) == [third.data["adjudge_unit_id"]]


def test_somebody_joins_somebody_s_project_goes(pilot: Pilot) -> None:
    projects = pilot.push("--separate")["projects"]
    with open_study(pilot.path) as store:
        add_people(store, "pilot", ["carol"], n=4)
    seen = pilot.push("--dry-run")
    assert seen["projects"] == {**projects, "carol": 0} and seen["new"] == len(queue(pilot, "carol"))
    more = pilot.push()
    assert more["new"] == seen["new"] and {**more["projects"], "carol": 0} == {**projects, "carol": 0}
    pilot.client().projects.delete(id=projects["bob"])
    label(pilot, projects["alice"], "alice", lambda i: "support")
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": len(queue(pilot, "alice"))} and "bob" not in came["projects"]
    assert "the project of batch 'pilot' for bob was deleted there" in came["problems"][0]
    told = pilot.done("push", code=3).err
    assert "for bob was deleted there" in told
    new = pilot.push("--new")
    assert new["projects"]["alice"] == projects["alice"] and new["projects"]["bob"] != projects["bob"]
    assert new["new"] == len(queue(pilot, "bob"))


def test_one_project_of_all_does_not_become_several_by_itself(pilot: Pilot) -> None:
    shared = pilot.push()
    assert shared["repeats"] == 4 and shared["projects"] == {}
    for more in ([], ["--dry-run"]):
        told = pilot.done("push", "--separate", *more, code=2).err
        assert f"one project for all annotators at {pilot.server.url}/projects/{shared['project']}" in told
    several = pilot.push("--separate", "--new")
    assert several["project"] is None and len(several["projects"]) == 2


def test_predictions_are_of_all_projects_or_of_none(pilot: Pilot) -> None:
    run = judge_all(pilot.path)
    sent = pilot.push("--separate", "--with-predictions", "last")
    assert sent["assisted"] and sent["run"] == run and sent["without_prediction"] == 0
    for who, project in sent["projects"].items():
        label(pilot, project, who, lambda i: "support")
    came = pilot.pull()
    assert came["assisted"] and {layer for _, _, layer, _ in labels(pilot.path)} == {"assisted"}
    with open_study(pilot.path) as store:
        add_people(store, "pilot", ["carol"], n=2)
    more = pilot.push()
    assert more["assisted"] and more["without_prediction"] == 0, "who joins sees what the others saw"


def test_a_push_cut_short_goes_on(pilot: Pilot) -> None:
    """The study loses what it knew of the projects: they are found by their marks, and nothing is sent twice."""
    sent = pilot.push("--separate")
    with open_study(pilot.path) as store, store.transaction() as conn:
        for table in ("tasks", "annotations", "projects"):
            conn.execute(f"DELETE FROM label_studio_{table} WHERE person = 'bob'")
    again = pilot.push()
    assert again["projects"] == sent["projects"] and again["new"] == 0
    with open_study(pilot.path) as store, store.transaction() as conn:
        for table in ("tasks", "annotations", "projects"):
            conn.execute(f"DELETE FROM label_studio_{table}")
    rows: list[Any] = pilot.tasks(sent["projects"]["bob"])
    label(pilot, sent["projects"]["bob"], "bob", lambda i: "neutral")
    came = pilot.pull()
    assert came["projects"] == sent["projects"] and came["new"] == {"bob": len(rows)}
