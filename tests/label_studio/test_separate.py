"""A project for each person: the whole queue out, everything back, nobody's labels in anybody else's project."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.leading.lead import add_people
from annotate.store import open_study
from tests.cli.helpers import Done
from tests.label_studio.conftest import choice, document, tasks_of
from tests.label_studio.server import Server
from tests.label_studio.test_proof import held, stored
from tests.label_studio.test_server import pull, push
from tests.tui.studies import batch, build, judge_all, labels, rows_of

pytestmark = pytest.mark.real
Run = Callable[..., Done]
WORDS = ("support", "refute", "neutral")


@pytest.fixture
def queued(tmp_path: Path) -> Path:
    """Eight units for alice and bob, each with two training units, an attention check and hidden repeats."""
    path = build(tmp_path / "s.db", items=8)
    batch(path, n=8, annotators=["alice", "bob"], training=2, attention=0.1, repeats=0.25)
    return path


def queue(path: Path, person: str) -> list[tuple[str, int]]:
    query = (
        "SELECT unit_id, repeat FROM assignments WHERE batch = 'pilot' AND annotator_id = ? ORDER BY position"
    )
    return rows_of(path, query, person)


def label(server: Server, project: int, person: str, word: Callable[[int], str]) -> None:
    """Every task of a project, labelled by a person: by its number on the page."""
    client = server.client(person)
    for i, task in enumerate(tasks_of(server, project)):
        client.annotations.create(id=task.id, result=[choice("stance", word(i))], lead_time=2.0)


def sampled(server: Server, path: Path, project: int, person: str = "alice") -> list[Any]:
    """The tasks of a person's project that are part of the sample: no training, no checks, no repeats."""
    query = "SELECT position FROM assignments WHERE annotator_id = ? AND role = 'sample'"
    with open_study(path) as store:
        places = {place for (place,) in store.conn.execute(query, [person])}
    return [t for t in tasks_of(server, project) if t.data["adjudge_place"] in places]


def test_the_whole_queue_goes_out_and_progress_completes(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    before = annotate("push", "pilot", "--url", url, "--separate", "--dry-run", "--json", db=queued)
    size = {who: len(queue(queued, who)) for who in ("alice", "bob")}
    repeats = sum(repeat for who in size for _, repeat in queue(queued, who))
    assert repeats == 4, "a quarter of eight units for each of two"
    told = document(before)
    assert (told["new"], told["projects"], told["repeats"]) == (sum(size.values()), {"alice": 0, "bob": 0}, 0)
    sent = push(annotate, queued, url, key, "--separate")
    assert sent["new"] == told["new"] and sent["project"] is None and sorted(sent["projects"]) == sorted(size)
    for who, project in sent["projects"].items():
        there = [t.data for t in tasks_of(label_studio, project)]
        assert [d["adjudge_unit_id"] for d in there] == [unit for unit, _ in queue(queued, who)]
        assert [d["adjudge_place"] for d in there] == list(range(1, size[who] + 1))
        assert len({frozenset(d) for d in there}) == 1, "nothing tells a repeat or a check from the rest"
    again = push(annotate, queued, url, key)
    assert (again["new"], again["there"], again["created"]) == (0, told["new"], False), "it stays separate"
    # Everybody labels by place, so that a unit and its repeat differ.
    for who, project in sent["projects"].items():
        label(label_studio, project, who, lambda i: WORDS[i % 3])
        outcome = label_studio.admin.client.get(f"/api/projects/{project}").json()
        assert outcome["num_tasks_with_annotations"] == outcome["task_number"] == size[who]
    came = pull(annotate, queued, url, key)
    assert came["new"] == size and came["projects"] == sent["projects"] and came["joined"] == {}
    shown = document(annotate("batches", "show", "pilot", "--json", db=queued))["annotators"]
    assert [(p["annotator"], p["done"], p["open"]) for p in shown] == [
        ("alice", size["alice"], 0), ("bob", size["bob"], 0),
    ]  # fmt: skip
    assert [p["repeats_answered"] for p in shown] == [2, 2]
    for who in size:
        query = "SELECT unit_id, repeat, json_extract(answers, '$.stance') FROM assignments WHERE annotator_id = ? ORDER BY position"
        rows = rows_of(queued, query, who)
        assert [value for _, _, value in rows] == [WORDS[i % 3] for i in range(size[who])]
    assert pull(annotate, queued, url, key)["new"] == {}


def test_a_repeat_deleted_there_is_undone_here_and_its_unit_stays(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    project = push(annotate, queued, url, key, "--separate")["projects"]["alice"]
    label(label_studio, project, "alice", lambda i: WORDS[i % 3])
    pull(annotate, queued, url, key)
    unit = next(unit for unit, repeat in queue(queued, "alice") if repeat)
    place = queue(queued, "alice").index((unit, 1)) + 1
    task = next(t for t in tasks_of(label_studio, project) if t.data["adjudge_place"] == place)
    client = label_studio.client("alice")
    (made,) = client.annotations.list(id=task.id)
    client.annotations.delete(id=made.id)
    assert pull(annotate, queued, url, key)["retracted"] == 1
    outcome = {repeat for (u, _, _, repeat) in labels(queued) if u == unit}
    assert outcome == {0}


def test_who_annotates_in_the_project_of_somebody_else_waits(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    projects = push(annotate, queued, url, key, "--separate")["projects"]
    mine, other = sampled(label_studio, queued, projects["alice"])[:2]
    label_studio.client("alice").annotations.create(id=mine.id, result=[choice("stance", "support")])
    label_studio.client("bob").annotations.create(id=other.id, result=[choice("stance", "refute")])
    came = pull(annotate, queued, url, key, code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 1
    assert "bob annotated in the project of alice, where alice's labels are visible" in came["problems"][0]
    assert stored(queued, "bob") == {}
    (row,) = held(annotate, queued)
    assert row["code"] == "person"
    annotate("quarantine", "accept", str(row["id"]), "--as", "alice", "--note", "a shared login", db=queued)
    assert stored(queued)[other.data["adjudge_unit_id"]] == "refute"


def test_a_place_edited_on_the_server_proves_nothing(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    project = push(annotate, queued, url, key, "--separate")["projects"]["alice"]
    first, second, third = sampled(label_studio, queued, project)[:3]
    client = label_studio.client("alice")
    client.tasks.update(id=first.id, data={**first.data, "adjudge_place": second.data["adjudge_place"]})
    client.tasks.update(id=second.id, data={**second.data, "adjudge_place": "x"})
    for task in (first, second, third):
        client.annotations.create(id=task.id, result=[choice("stance", "support")])
    came = pull(annotate, queued, url, key, code=1)
    assert came["new"] == {"alice": 1} and came["held"] == 2
    assert all("does not say which unit it is" in problem for problem in came["problems"])
    assert list(stored(queued)) == [third.data["adjudge_unit_id"]]


def test_somebody_joins_somebody_s_project_goes(label_studio: Server, queued: Path, annotate: Run) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    projects = push(annotate, queued, url, key, "--separate")["projects"]
    with open_study(queued) as store:
        add_people(store, "pilot", ["carol"], n=4)
    seen = document(annotate("push", "pilot", "--url", url, "--dry-run", "--json", db=queued))
    assert seen["projects"] == {**projects, "carol": 0} and seen["new"] == len(queue(queued, "carol"))
    more = push(annotate, queued, url, key)
    assert more["new"] == seen["new"] and {**more["projects"], "carol": 0} == {**projects, "carol": 0}
    label_studio.client("alice").projects.delete(id=projects["bob"])
    label(label_studio, projects["alice"], "alice", lambda i: "support")
    came = pull(annotate, queued, url, key, code=1)
    assert came["new"] == {"alice": len(queue(queued, "alice"))} and "bob" not in came["projects"]
    assert "the project of batch 'pilot' for bob was deleted there" in came["problems"][0]
    told = annotate("push", "pilot", "--url", url, db=queued, key=key, code=3).err
    assert "for bob was deleted there" in told
    new = push(annotate, queued, url, key, "--new")
    assert new["projects"]["alice"] == projects["alice"] and new["projects"]["bob"] != projects["bob"]
    assert new["new"] == len(queue(queued, "bob"))


def test_one_project_of_all_does_not_become_several_by_itself(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    url, key = label_studio.url, label_studio.keys["alice"]
    shared = push(annotate, queued, url, key)
    assert shared["repeats"] == 4 and shared["projects"] == {}
    for more in ([], ["--dry-run"]):
        told = annotate("push", "pilot", "--url", url, "--separate", *more, db=queued, key=key, code=2).err
        assert f"one project of all at {url}/projects/{shared['project']}" in told
    several = push(annotate, queued, url, key, "--separate", "--new")
    assert several["project"] is None and len(several["projects"]) == 2


def test_predictions_are_of_all_projects_or_of_none(
    label_studio: Server, queued: Path, annotate: Run
) -> None:
    run = judge_all(queued)
    url, key = label_studio.url, label_studio.keys["alice"]
    sent = push(annotate, queued, url, key, "--separate", "--with-predictions", "last")
    assert sent["assisted"] and sent["run"] == run and sent["without_prediction"] == 0
    for who, project in sent["projects"].items():
        label(label_studio, project, who, lambda i: "support")
    came = pull(annotate, queued, url, key)
    assert came["assisted"] and {layer for _, _, layer, _ in labels(queued)} == {"assisted"}
    with open_study(queued) as store:
        add_people(store, "pilot", ["carol"], n=2)
    more = push(annotate, queued, url, key)
    assert more["assisted"] and more["without_prediction"] == 0, "who joins sees what the others saw"


def test_a_push_cut_short_goes_on(label_studio: Server, queued: Path, annotate: Run) -> None:
    """The study loses what it knew of the projects: they are found by their marks, and nothing is sent twice."""
    url, key = label_studio.url, label_studio.keys["alice"]
    sent = push(annotate, queued, url, key, "--separate")
    with open_study(queued) as store, store.transaction() as conn:
        for table in ("tasks", "annotations", "projects"):
            conn.execute(f"DELETE FROM label_studio_{table} WHERE person = 'bob'")
    again = push(annotate, queued, url, key)
    assert again["projects"] == sent["projects"] and again["new"] == 0
    with open_study(queued) as store, store.transaction() as conn:
        for table in ("tasks", "annotations", "projects"):
            conn.execute(f"DELETE FROM label_studio_{table}")
    rows: list[Any] = tasks_of(label_studio, sent["projects"]["bob"])
    label(label_studio, sent["projects"]["bob"], "bob", lambda i: "neutral")
    came = pull(annotate, queued, url, key)
    assert came["projects"] == sent["projects"] and came["new"] == {"bob": len(rows)}
