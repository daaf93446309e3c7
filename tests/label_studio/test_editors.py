"""Three users of a real server who edit each other's labels."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.helpers import Done
from tests.label_studio.conftest import Pilot, choice, document
from tests.label_studio.server import Web
from tests.tui.studies import drawn, labels, rows_of

pytestmark = pytest.mark.real
Run = Callable[..., Done]


def test_three_users_who_edit_each_others_labels(
    pilot_of: Callable[[Path], Pilot], tmp_path: Path, annotate: Run
) -> None:
    """In the free edition, every user can edit every annotation, which keeps its author."""
    people = ["alice", "bob", "carol"]
    path = drawn(tmp_path, items=3, n=6, annotators=people)
    pilot = pilot_of(path)
    server = pilot.server
    if "carol" not in server.keys:
        with Web(server.url, "carol@example.org") as carol:
            server.keys["carol"] = carol.signup(
                server.admin.client.get("/api/invite").json()["invite_url"]
            ).token()
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    made = {
        (who, task.id): pilot.say(task, "support", who)
        for who, mine in zip(people, (tasks[:2], tasks[2:4], tasks[4:]), strict=True)
        for task in mine
    }
    # Each edits the first label of the next person, and then their own second label.
    for editor, author, first, own in (
        ("alice", "bob", tasks[2], tasks[1]), ("bob", "carol", tasks[4], tasks[3]), ("carol", "alice", tasks[0], tasks[5])
    ):  # fmt: skip
        refute = [choice("stance", "refute")]
        pilot.client(editor).annotations.update(id=made[author, first.id].id, result=refute)
        pilot.client(editor).annotations.update(id=made[editor, own.id].id, result=refute)
    came = pilot.pull(code=1)
    assert came["new"] == dict.fromkeys(people, 1)
    assert came["rows"] | {"reasons": None} == {
        "read": 6, "stored": 3, "already_there": 0, "conflict": 0, "quarantined": 3, "left_out": 0, "reasons": None,
    }  # fmt: skip
    for who, own in zip(people, (tasks[1], tasks[3], tasks[5]), strict=True):
        assert pilot.stored(who) == {own.data["adjudge_unit_id"]: "refute"}
    records = pilot.held()
    assert {(r["annotator"], r["reason"].rpartition("but ")[2]) for r in records} == {
        ("bob", "alice edited it last"), ("carol", "bob edited it last"), ("alice", "carol edited it last"),
    }  # fmt: skip
    # The same annotations as a file of the server.
    export = server.client("alice").projects.exports.as_json(project)
    file = tmp_path / "export.json"
    file.write_text(json.dumps(export, default=str))
    users = {user.id: user.email.split("@")[0] for user in server.client("alice").users.list()}
    named = ",".join(f"{number}={who}" for number, who in users.items())
    (tmp_path / "other").mkdir()
    copy = drawn(tmp_path / "other", items=3, n=6, annotators=people)
    words = (
        "import",
        str(file),
        "--from",
        "label-studio",
        "--batch",
        "pilot",
        "-O",
        f"users={named}",
        "--json",
    )
    counted = document(annotate(*words, db=copy, code=1))
    assert counted["rows"] == came["rows"]
    assert [labels(copy, who) for who in people] == [labels(path, who) for who in people]
    for record in records:
        pilot.accept(record)
    assert pilot.pull()["rows"]["read"] == 0
    layers = rows_of(
        path, "SELECT layer, count(*) FROM labels WHERE annotator_id IN ('alice', 'bob', 'carol') GROUP BY 1"
    )
    assert layers == [("assisted", 3), ("first", 3)]
