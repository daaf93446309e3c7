"""A batch on a real server: out, annotated by two through its API, and back."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.sitting.desk import Desk, TimeSpent
from annotate.store import open_study
from tests.cli.helpers import Done, checked
from tests.label_studio.conftest import choice, document, evidence, remark, tasks_of
from tests.label_studio.proxy import Proxy
from tests.label_studio.server import Server, Web, free_port
from tests.tui.studies import CANARY, batch, build, judge_all, labels, rows_of, three

pytestmark = pytest.mark.real
Run = Callable[..., Done]
SAID = {"alice": ["support", "refute", "neutral"], "bob": ["support", "neutral", "neutral"]}
"""What the two answer, in turn: they differ on every third unit."""


def push(annotate: Run, study: Path, url: str, key: str, *words: str, name: str = "pilot") -> dict[str, Any]:
    done = annotate("push", name, "--url", url, "--json", *words, db=study, key=key)
    outcome: dict[str, Any] = checked(done.out, "push")
    return outcome


def pull(annotate: Run, study: Path, url: str, key: str, *words: str, code: int = 0) -> dict[str, Any]:
    done = annotate("pull", "pilot", "--url", url, "--json", *words, db=study, key=key, code=code)
    outcome: dict[str, Any] = checked(done.out, "pull")
    return outcome


def answer_all(server: Server, project: int) -> dict[str, dict[str, str]]:
    """Both label every task; returns what they said by unit."""
    said: dict[str, dict[str, str]] = {}
    for person, words in SAID.items():
        client = server.client(person)
        for i, task in enumerate(tasks_of(server, project)):
            word = words[i % 3]
            client.annotations.create(id=task.id, result=[choice("stance", word)], lead_time=2.5)
            said.setdefault(task.data["adjudge_unit_id"], {})[person] = word
    return said


def dump(path: Path) -> list[tuple[Any, ...]]:
    with open_study(path) as store:
        names = ("labels", "events", "assignments", "annotators", "batches")
        return [row for name in names for row in store.conn.execute(f"SELECT * FROM {name}")]


def test_the_circle_gives_the_agreement_of_the_same_labels_in_the_terminal(
    label_studio: Server, study: Path, tmp_path: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    sent = push(annotate, study, label_studio.url, key)
    assert (sent["created"], sent["new"], sent["there"], sent["assisted"]) == (True, 12, 0, False)
    again = push(annotate, study, label_studio.url, key)
    assert (again["created"], again["new"], again["there"], again["project"]) == (
        False,
        0,
        12,
        sent["project"],
    )
    assert len(tasks_of(label_studio, sent["project"])) == 12
    said = answer_all(label_studio, sent["project"])
    came = pull(annotate, study, label_studio.url, label_studio.keys["bob"])
    assert came["new"] == {"alice": 12, "bob": 12} and came["problems"] == []
    after = dump(study)
    again = pull(annotate, study, label_studio.url, key)
    assert (again["new"], again["read"]) == ({}, 0) and dump(study) == after
    assert {layer for _, _, layer, _ in labels(study)} == {"first"}, "the round is blind"

    other = build(
        tmp_path / "tui.db", items=6, texts={"tricky": "A \U0001f9ea trial <b>x</b>.\r\nIt says 42 & more."}
    )
    batch(other, n=12, annotators=["alice", "bob"], name="pilot")
    with open_study(other) as store:
        for person in SAID:
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, 13):
                    desk.label(
                        position, "stance", said[desk.load(position).unit_id][person], TimeSpent(2500, 0)
                    )
    measured = [
        document(annotate("agreement", "--field", "stance", "--annotators", "alice,bob", "--json", db=db))[
            "measures"
        ]
        for db in (study, other)
    ]
    assert measured[0] == measured[1]
    # They differ on units 2, 5, 8 and 11 of the twelve: 8 of 12 agree.
    percent = next(m for m in measured[0] if m["measure"] == "percent")
    assert percent["value"] == pytest.approx(8 / 12) and percent["n_units"] == 12
    shown = [
        document(annotate("batches", "show", "pilot", "--json", db=db))["annotators"] for db in (study, other)
    ]
    times = [[(p["annotator"], p["done"], p["active_seconds"]) for p in people] for people in shown]
    assert times[0] == times[1] == [("alice", 12, 30.0), ("bob", 12, 30.0)]


def test_nothing_hidden_reaches_the_server(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    path = build(tmp_path / "s.db", items=8)
    judge_all(path)
    batch(path, n=8, annotators=["alice", "bob"], training=2, attention=0.2, repeats=0.2)
    with open_study(path) as store, Desk.open(store, "pilot", "bob") as desk:
        desk.label(3, "stance", "refute")
        desk.note(3, "BOBSAYS")
    sent = push(annotate, path, label_studio.url, label_studio.keys["alice"])
    assert (sent["new"], sent["repeats"]) == (12, 4)
    client = label_studio.client("alice")
    outcome = label_studio.admin.client.get(f"/api/projects/{sent['project']}").json()
    # What we wrote; the other keys are the server's own (min_annotations_to_start_training).
    project = " ".join(outcome[k] for k in ("title", "description", "label_config", "expert_instruction"))
    there = b"".join(
        client.projects.exports.download_sync(sent["project"], export_type="JSON", download_all_tasks=True)
    )
    for secret in (
        CANARY,
        "BOBSAYS",
        "scripted/test",
        "claim_verdict",
        "Question 1?",
        "training",
        "attention",
    ):
        assert secret not in project and secret.encode() not in there, secret


def test_edits_skips_notes_evidence_and_what_was_deleted(
    label_studio: Server, study: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    project = push(annotate, study, label_studio.url, key)["project"]
    tasks = tasks_of(label_studio, project)
    alice, bob = label_studio.client("alice"), label_studio.client("bob")
    tricky = next(t for t in tasks if "\U0001f9ea" in t.data["passage"])
    text = tricky.data["passage"]
    at = text.index("trial")
    plain = [t for t in tasks if t.id != tricky.id]
    # Counted in UTF-16 units, the test tube is two.
    utf16 = evidence(text, at + 1, at + 6, "trial")
    alice.annotations.create(
        id=tricky.id, result=[choice("stance", "support"), utf16, remark("note <i>")], lead_time=9.0
    )
    first = alice.annotations.create(id=plain[0].id, result=[choice("stance", "support")], lead_time=3.0)
    bob.annotations.create(id=plain[0].id, result=[], was_cancelled=True, lead_time=1.0)
    gone = bob.annotations.create(id=plain[1].id, result=[choice("stance", "neutral")], lead_time=1.0)
    wrong = bob.annotations.create(
        id=plain[2].id,
        result=[choice("stance", "neutral"), evidence(plain[2].data["passage"], 3, 7, "nowhere")],
    )
    bad = bob.annotations.create(id=plain[3].id, result=[choice("stance", "perhaps")])
    came = pull(annotate, study, label_studio.url, key, code=1)
    assert came["new"] == {"alice": 2, "bob": 2}
    assert (came["skips"], came["spans"], came["notes"], came["incomplete"]) == (1, 1, 1, 0)
    assert len(came["problems"]) == 2
    assert any(f"annotation {wrong.id}" in p and "are not 'nowhere'" in p for p in came["problems"])
    assert any(f"annotation {bad.id}" in p and "'stance'" in p and "perhaps" in p for p in came["problems"])
    with open_study(study) as store:
        query = "SELECT spans, note, active_ms FROM assignments WHERE unit_id = ? AND annotator_id = 'alice'"
        outcome = store.conn.execute(query, [tricky.data["adjudge_unit_id"]]).fetchone()
        assert json.loads(outcome[0]) == [["passage", at, at + 5]] and outcome[1:] == ("note <i>", 9000)

    alice.annotations.update(id=first.id, result=[choice("stance", "refute")], lead_time=5.0)
    bob.annotations.update(id=bad.id, result=[choice("stance", "support")])
    bob.annotations.delete(id=gone.id)
    alice.tasks.delete(id=plain[5].id)
    came = pull(annotate, study, label_studio.url, key)
    assert came["new"] == {"alice": 1, "bob": 1} and came["replaced"] == 1 and came["problems"] == []
    assert (came["deleted_annotations"], came["deleted_tasks"], came["tasks"]) == (1, 1, 11)
    unit = plain[0].data["adjudge_unit_id"]
    assert labels(study)[unit, "stance", "first", 0] == "refute"
    query = (
        "SELECT e.value, e.active_ms FROM events AS e JOIN assignments AS a USING (batch, annotator_id, position) "
        "WHERE a.unit_id = ? AND e.annotator_id = 'alice' ORDER BY e.seq"
    )
    # The lead time of an edited annotation is all of it so far: 3 s, then 5 s.
    assert rows_of(study, query, unit) == [("support", 3000), ("refute", 2000)]
    assert came["retracted"] == 1
    assert (plain[1].data["adjudge_unit_id"], "stance", "first", 0) not in labels(study, "bob"), (
        "taken back there"
    )
    assert pull(annotate, study, label_studio.url, key)["new"] == {}

    sent = push(annotate, study, label_studio.url, key)
    assert (sent["new"], sent["there"], sent["deleted"]) == (0, 11, 1)
    sent = push(annotate, study, label_studio.url, key, "--restore")
    assert (sent["new"], sent["deleted"]) == (1, 0)
    assert pull(annotate, study, label_studio.url, key)["deleted_tasks"] == 0


def test_the_label_of_a_restored_task_stays(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    study = build(tmp_path / "s.db", items=2)
    batch(study, n=4, annotators=["alice", "bob"])
    key = label_studio.keys["alice"]
    project = push(annotate, study, label_studio.url, key)["project"]
    answer_all(label_studio, project)
    assert pull(annotate, study, label_studio.url, key)["new"] == {"alice": 4, "bob": 4}
    before = labels(study)
    # The newest task: the server on SQLite gives its number to the next one.
    gone = max(tasks_of(label_studio, project), key=lambda task: int(task.id))
    unit = gone.data["adjudge_unit_id"]
    label_studio.client("alice").tasks.delete(id=gone.id)
    came = pull(annotate, study, label_studio.url, key)
    assert (came["deleted_tasks"], came["retracted"]) == (1, 0) and labels(study) == before
    assert push(annotate, study, label_studio.url, key, "--restore")["new"] == 1
    for _ in range(2):
        came = pull(annotate, study, label_studio.url, key)
        assert (came["new"], came["deleted_annotations"], came["retracted"]) == ({}, 0, 0)
        assert labels(study) == before, "the new task has no annotation yet, and says nothing of the label"
    # What is said on the new task counts, and taking that back takes back no more than that.
    (again,) = [t for t in tasks_of(label_studio, project) if t.data["adjudge_unit_id"] == unit]
    other = next(v for v in ("support", "refute") if v != before[unit, "stance", "first", 0])
    client = label_studio.client("alice")
    made = client.annotations.create(id=again.id, result=[choice("stance", other)], lead_time=1.0)
    assert pull(annotate, study, label_studio.url, key)["replaced"] == 1
    client.annotations.delete(id=made.id)
    assert pull(annotate, study, label_studio.url, key)["retracted"] == 1
    assert labels(study) == before
    assert document(annotate("verify", "--json", db=study))["rows"] == []


def test_several_questions_on_one_unit(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    path = build(tmp_path / "s.db", items=2)
    batch(path, three(), n=4, annotators=["alice"])
    key = label_studio.keys["alice"]
    project = push(annotate, path, label_studio.url, key)["project"]
    tasks = tasks_of(label_studio, project)
    client = label_studio.client("alice")
    whole = [choice("relevance", "relevant"), choice("stance", "refute"), choice("quality", "bad")]
    client.annotations.create(id=tasks[0].id, result=whole)
    client.annotations.create(id=tasks[1].id, result=whole[:2])
    came = pull(annotate, path, label_studio.url, key)
    assert came["new"] == {"alice": 5} and came["incomplete"] == 1
    query = "SELECT status, count(*) FROM assignments GROUP BY status ORDER BY status"
    assert rows_of(path, query) == [("done", 1), ("open", 3)]


def test_predictions_make_the_batch_assisted(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    path = build(tmp_path / "s.db", items=3)
    run = judge_all(path)
    batch(path, n=6, annotators=["alice", "bob"])
    key = label_studio.keys["alice"]
    sent = push(annotate, path, label_studio.url, key, "--with-predictions", "last")
    assert (sent["run"], sent["assisted"], sent["without_prediction"]) == (run, True, 0)
    outcome = list(label_studio.client("alice").predictions.list(project=sent["project"]))
    assert len(outcome) == 6
    assert {(p.model_version, p.score, p.result[0]["value"]["choices"][0]) for p in outcome} == {
        ("scripted/test", 0.7, "support")
    }
    assert push(annotate, path, label_studio.url, key, "--with-predictions", "last")["new"] == 0
    answer_all(label_studio, sent["project"])
    came = pull(annotate, path, label_studio.url, key)
    assert came["assisted"] and came["new"] == {"alice": 6, "bob": 6}
    assert {layer for _, _, layer, _ in labels(path)} == {"assisted"}
    annotate("export", "pilot", "--labels", "-o", str(path.with_name("l.csv")), db=path)
    rows = list(csv.DictReader(path.with_name("l.csv").read_text().splitlines()))
    assert {r["blind"] for r in rows} == {"false"}
    shown = annotate("batches", "show", "pilot", db=path).out
    assert (
        f"assisted, not blind: people see predictions in {label_studio.url}/projects/{sent['project']}"
        in shown
    )


def test_predictions_that_others_added_end_the_blind_round(
    label_studio: Server, study: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    project = push(annotate, study, label_studio.url, key)["project"]
    tasks = tasks_of(label_studio, project)
    client = label_studio.client("alice")
    client.annotations.create(id=tasks[0].id, result=[choice("stance", "support")])
    assert not pull(annotate, study, label_studio.url, key)["assisted"]
    client.predictions.create(task=tasks[1].id, result=[choice("stance", "refute")], model_version="other")
    client.annotations.create(id=tasks[1].id, result=[choice("stance", "refute")])
    assert pull(annotate, study, label_studio.url, key)["assisted"]
    layers = {unit: layer for unit, _, layer, _ in labels(study)}
    assert layers == {tasks[0].data["adjudge_unit_id"]: "first", tasks[1].data["adjudge_unit_id"]: "assisted"}
    judge_all(study)
    done = annotate(
        "push",
        "pilot",
        "--url",
        label_studio.url,
        "--with-predictions",
        "last",
        "--new",
        db=study,
        key=key,
        code=2,
    )
    assert "has blind labels already" in done.err


def test_who_is_who(label_studio: Server, tmp_path: Path, annotate: Run) -> None:
    path = build(tmp_path / "s.db", items=2)
    batch(path, n=4, annotators=["carol", "alice"], overlap=1)
    key = label_studio.keys["alice"]
    project = push(annotate, path, label_studio.url, key)["project"]
    for task in tasks_of(label_studio, project):
        for person in SAID:
            label_studio.client(person).annotations.create(id=task.id, result=[choice("stance", "support")])
    came = pull(annotate, path, label_studio.url, key, code=1)
    # Two of the four units were not alice's: they are added to her queue. Bob is nobody of the batch.
    assert came["new"] == {"alice": 4} and came["joined"] == {"alice": 2} and len(came["problems"]) == 4
    assert "--annotator bob@example.org=NAME" in came["problems"][0]
    came = pull(annotate, path, label_studio.url, key, "--annotator", "bob@example.org=carol")
    assert came["new"] == {"carol": 4} and came["problems"] == []
    label_studio.client("bob").annotations.create(
        id=tasks_of(label_studio, project)[0].id, result=[choice("stance", "refute")]
    )
    words = ("pull", "pilot", "--url", label_studio.url, "--annotator", "zoe=carol")
    assert (
        "no such user there; available: alice@example.org" in annotate(*words, db=path, key=key, code=2).err
    )


def test_an_answer_here_that_is_later_stands(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    project = push(annotate, study, label_studio.url, key)["project"]
    task = tasks_of(label_studio, project)[0]
    label_studio.client("alice").annotations.create(id=task.id, result=[choice("stance", "support")])
    unit = task.data["adjudge_unit_id"]
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        position = next(p for p in range(1, 13) if desk.load(p).unit_id == unit)
        desk.label(position, "stance", "refute")
        done = annotate("pull", "pilot", "--url", label_studio.url, db=study, key=key, code=1)
        assert "another" in done.err and "alice" in done.err, "the seat is taken"
    came = pull(annotate, study, label_studio.url, key)
    assert came["older"] == 1 and came["new"] == {}
    assert labels(study)[unit, "stance", "first", 0] == "refute"


def test_a_legacy_key_works(label_studio: Server, study: Path, annotate: Run) -> None:
    assert push(annotate, study, label_studio.url, label_studio.legacy)["new"] == 12


def expired() -> str:
    import jwt

    return str(
        jwt.encode({"token_type": "refresh", "exp": 1_000_000_000}, "not a real secret, only a test" * 2)
    )


def test_keys_that_do_not_work(label_studio: Server, study: Path, annotate: Run) -> None:
    words = ("push", "pilot", "--url", label_studio.url)
    before = dump(study)
    assert "LABEL_STUDIO_API_KEY is not set" in annotate(*words, db=study, code=3).err
    assert "refuses LABEL_STUDIO_API_KEY" in annotate(*words, db=study, key="0" * 40, code=3).err
    assert "has expired" in annotate(*words, db=study, key=expired(), code=3).err
    invite = label_studio.admin.client.get("/api/invite").json()["invite_url"]
    with Web(label_studio.url, "carol@example.org") as third:
        revoked = third.signup(invite).token()
        reply = third.post("/api/token/blacklist", json={"refresh": revoked})
        assert reply.status_code == 204, reply.text
    assert "LABEL_STUDIO_API_KEY" in annotate(*words, db=study, key=revoked, code=3).err
    assert dump(study) == before


def test_a_server_that_is_down_or_is_another_program(study: Path, annotate: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = annotate("push", "pilot", "--url", url, db=study, key="0" * 40, code=3)
    assert "no connection" in done.err and "is the server running?" in done.err
    assert "write it as" in annotate("push", "pilot", "--url", "localhost", db=study, key="x", code=2).err
    assert (
        "only the server's address"
        in annotate("push", "pilot", "--url", "http://a:b@h", db=study, key="x", code=2).err
    )


def test_a_project_that_was_deleted(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    done = annotate("pull", "pilot", "--url", label_studio.url, db=study, key=key, code=2)
    assert "annotate push pilot" in done.err
    project = push(annotate, study, label_studio.url, key)["project"]
    answer_all(label_studio, project)
    pull(annotate, study, label_studio.url, key)
    before = dump(study)
    label_studio.client("alice").projects.delete(id=project)
    for command in ("push", "pull"):
        done = annotate(command, "pilot", "--url", label_studio.url, db=study, key=key, code=3)
        assert "was deleted there; its labels here stay" in done.err and "--new" in done.err
    assert dump(study) == before
    sent = push(annotate, study, label_studio.url, key, "--new")
    assert sent["created"] and sent["new"] == 12 and sent["project"] != project
    assert pull(annotate, study, label_studio.url, key)["new"] == {}


@pytest.mark.parametrize("passed", [False, True])
def test_a_500_in_the_middle_of_a_push(
    label_studio: Server,
    proxy: Proxy,
    study: Path,
    annotate: Run,
    monkeypatch: pytest.MonkeyPatch,
    passed: bool,
) -> None:
    monkeypatch.setattr("annotate.exchange.label_studio.tasks.TASKS", 4)
    key = label_studio.keys["alice"]
    proxy.fail("/import", 2, passed=passed)
    done = annotate("push", "pilot", "--url", proxy.url, db=study, key=key, code=3)
    assert "the server failed (500)" in done.err and "4 of 12 units" in done.err
    proxy.heal()
    sent = push(annotate, study, proxy.url, key)
    # What the server kept although it said 500 is found again and not sent twice.
    assert (sent["new"], sent["there"]) == ((4, 8) if passed else (8, 4))
    units = [t.data["adjudge_unit_id"] for t in tasks_of(label_studio, sent["project"])]
    assert len(units) == len(set(units)) == 12


@pytest.mark.parametrize("passed", [False, True])
def test_a_500_while_the_project_is_made(
    label_studio: Server, proxy: Proxy, tmp_path: Path, annotate: Run, passed: bool
) -> None:
    path = build(tmp_path / "s.db", items=2)
    judge_all(path)
    batch(path, n=4, annotators=["alice"])
    key = label_studio.keys["alice"]
    count = len(list(label_studio.client("alice").projects.list()))
    proxy.fail("POST /api/projects/", passed=passed)
    annotate("push", "pilot", "--url", proxy.url, "--with-predictions", "last", db=path, key=key, code=3)
    proxy.heal()
    sent = push(annotate, path, proxy.url, key, "--with-predictions", "last")
    assert sent["created"] is not passed and sent["new"] == 4 and sent["assisted"]
    assert len(list(label_studio.client("alice").projects.list())) == count + 1


KILLED = """
import sys
from annotate.exchange.label_studio import pull, server
pull.PAGE = server.IDS = 4
from annotate.cli import main
main(sys.argv[1:])
"""


def test_a_pull_that_is_killed_goes_on(
    label_studio: Server, proxy: Proxy, study: Path, annotate: Run
) -> None:
    key = label_studio.keys["alice"]
    project = push(annotate, study, proxy.url, key)["project"]
    answer_all(label_studio, project)
    proxy.hold("/export", 3)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, "pull", "pilot", "--url", proxy.url, "-d", str(study)],
        env={**os.environ, "LABEL_STUDIO_API_KEY": key},
    )
    assert proxy.held.wait(120), "two pages of four tasks are in, the third is asked for"
    process.send_signal(signal.SIGKILL)
    process.wait()
    proxy.heal()
    assert len(labels(study)) == len(labels(study, "bob")) == 8
    came = pull(annotate, study, proxy.url, key)
    assert came["new"] == {"alice": 4, "bob": 4} and came["read"] == 4
    assert len(labels(study)) == len(labels(study, "bob")) == 12
    assert rows_of(study, "SELECT count(*) FROM events") == [(24,)]
    assert pull(annotate, study, proxy.url, key)["read"] == 0


def test_the_key_is_stored_nowhere(label_studio: Server, study: Path, annotate: Run) -> None:
    key = label_studio.keys["alice"]
    push(annotate, study, label_studio.url, key)
    for file in study.parent.glob(f"{study.name}*"):
        assert key.encode() not in file.read_bytes()
    tables = sqlite3.connect(study).execute("SELECT url FROM label_studio_projects").fetchall()
    assert tables == [(label_studio.url,)]
