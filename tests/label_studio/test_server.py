"""A batch on a real server: out, annotated by two through its API, and back."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.sitting.desk import Desk, TimeSpent
from annotate.store import open_study
from tests.cli.helpers import Done
from tests.label_studio.conftest import Pilot, choice, document, dump, evidence, remark, twelve_units
from tests.label_studio.proxy import Proxy
from tests.label_studio.server import Web, free_port
from tests.tui.studies import CANARY, batch, build, drawn, judge_all, labels, rows_of, three

pytestmark = pytest.mark.real
Run = Callable[..., Done]
SAID = {"alice": ["support", "refute", "neutral"], "bob": ["support", "neutral", "neutral"]}
"""What the two answer, in turn: they differ on every third unit."""


def answer_all(pilot: Pilot, project: int) -> dict[str, dict[str, str]]:
    """Both label every task; returns what they said by unit."""
    said: dict[str, dict[str, str]] = {}
    for person, words in SAID.items():
        for i, task in enumerate(pilot.tasks(project)):
            word = words[i % 3]
            pilot.say(task, word, person)
            said.setdefault(task.data["adjudge_unit_id"], {})[person] = word
    return said


def test_the_circle_gives_the_agreement_of_the_same_labels_in_the_terminal(
    pilot: Pilot, pilot_of: Callable[[Path], Pilot], tmp_path: Path
) -> None:
    sent = pilot.push()
    assert (sent["created"], sent["new"], sent["there"], sent["assisted"]) == (True, 12, 0, False)
    again = pilot.push()
    assert (again["created"], again["new"], again["there"]) == (False, 0, 12)
    assert again["project"] == sent["project"]
    assert len(pilot.tasks(sent["project"])) == 12
    said = answer_all(pilot, sent["project"])
    came = pilot.pull()
    assert came["new"] == {"alice": 12, "bob": 12} and came["problems"] == []
    after = dump(pilot.path)
    again = pilot.pull()
    assert (again["new"], again["read"]) == ({}, 0) and dump(pilot.path) == after
    assert {layer for _, _, layer, _ in labels(pilot.path)} == {"first"}, "the round is blind"

    other = twelve_units(tmp_path / "tui.db")
    with open_study(other) as store:
        for person in SAID:
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, 13):
                    unit = desk.load(position).unit_id
                    desk.label(position, "stance", said[unit][person], TimeSpent(1000, 0))
    words = ("agreement", "--field", "stance", "--annotators", "alice,bob", "--json")
    both = (pilot, pilot_of(other))
    measured = [document(where.run(*words, db=where.path))["measures"] for where in both]
    assert measured[0] == measured[1]
    # They differ on units 2, 5, 8 and 11 of the twelve: 8 of 12 agree.
    percent = next(m for m in measured[0] if m["measure"] == "percent")
    assert percent["value"] == pytest.approx(8 / 12) and percent["n_units"] == 12
    people = [where.shown()["annotators"] for where in both]
    times = [[(p["annotator"], p["done"], p["active_seconds"]) for p in listed] for listed in people]
    assert times[0] == times[1] == [("alice", 12, 12.0), ("bob", 12, 12.0)]


def test_nothing_hidden_reaches_the_server(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=8)
    judge_all(path)
    batch(path, n=8, annotators=["alice", "bob"], training=2, attention=0.2, repeats=0.2)
    with open_study(path) as store, Desk.open(store, "pilot", "bob") as desk:
        desk.label(3, "stance", "refute")
        desk.note(3, "BOBSAYS")
    pilot = pilot_of(path)
    sent = pilot.push()
    assert (sent["new"], sent["repeats"]) == (12, 4)
    outcome = pilot.server.admin.client.get(f"/api/projects/{sent['project']}").json()
    # What we wrote; the other keys are the server's own (min_annotations_to_start_training).
    project = " ".join(outcome[k] for k in ("title", "description", "label_config", "expert_instruction"))
    exports = pilot.client().projects.exports
    there = b"".join(exports.download_sync(sent["project"], export_type="JSON", download_all_tasks=True))
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


def test_edits_skips_notes_evidence_and_what_was_deleted(pilot: Pilot) -> None:
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    alice, bob = pilot.client(), pilot.client("bob")
    tricky = next(t for t in tasks if "\U0001f9ea" in t.data["passage"])
    text = tricky.data["passage"]
    at = text.index("trial")
    plain = [t for t in tasks if t.id != tricky.id]
    # Counted in UTF-16 units, the test tube is two.
    utf16 = evidence(text, at + 1, at + 6, "trial")
    marked = [choice("stance", "support"), utf16, remark("note <i>")]
    alice.annotations.create(id=tricky.id, result=marked, lead_time=9.0)
    first = alice.annotations.create(id=plain[0].id, result=[choice("stance", "support")], lead_time=3.0)
    bob.annotations.create(id=plain[0].id, result=[], was_cancelled=True, lead_time=1.0)
    gone = pilot.say(plain[1], "neutral", "bob")
    nowhere = [choice("stance", "neutral"), evidence(plain[2].data["passage"], 3, 7, "nowhere")]
    wrong = bob.annotations.create(id=plain[2].id, result=nowhere)
    bad = pilot.say(plain[3], "perhaps", "bob")
    came = pilot.pull(code=1)
    assert came["new"] == {"alice": 2, "bob": 2}
    assert (came["skips"], came["spans"], came["notes"], came["incomplete"]) == (1, 1, 1, 0)
    assert len(came["problems"]) == 2
    assert any(f"annotation {wrong.id}" in p and "are not 'nowhere'" in p for p in came["problems"])
    assert any(f"annotation {bad.id}" in p and "'stance'" in p and "perhaps" in p for p in came["problems"])
    query = "SELECT spans, note, active_ms FROM assignments WHERE unit_id = ? AND annotator_id = 'alice'"
    ((spans, *outcome),) = rows_of(pilot.path, query, tricky.data["adjudge_unit_id"])
    assert json.loads(spans) == [["passage", at, at + 5]] and outcome == ["note <i>", 9000]

    alice.annotations.update(id=first.id, result=[choice("stance", "refute")], lead_time=5.0)
    bob.annotations.update(id=bad.id, result=[choice("stance", "support")])
    bob.annotations.delete(id=gone.id)
    alice.tasks.delete(id=plain[5].id)
    came = pilot.pull()
    assert came["new"] == {"alice": 1, "bob": 1} and came["replaced"] == 1 and came["problems"] == []
    assert (came["deleted_annotations"], came["deleted_tasks"], came["tasks"]) == (1, 1, 11)
    unit = plain[0].data["adjudge_unit_id"]
    assert labels(pilot.path)[unit, "stance", "first", 0] == "refute"
    query = (
        "SELECT e.value, e.active_ms FROM events AS e JOIN assignments AS a USING (batch, annotator_id, position) "
        "WHERE a.unit_id = ? AND e.annotator_id = 'alice' ORDER BY e.seq"
    )
    # The lead time of an edited annotation is all of it so far: 3 s, then 5 s.
    assert rows_of(pilot.path, query, unit) == [("support", 3000), ("refute", 2000)]
    assert came["retracted"] == 1
    assert plain[1].data["adjudge_unit_id"] not in pilot.stored("bob"), "taken back there"
    assert pilot.pull()["new"] == {}

    sent = pilot.push()
    assert (sent["new"], sent["there"], sent["deleted"]) == (0, 11, 1)
    sent = pilot.push("--restore")
    assert (sent["new"], sent["deleted"]) == (1, 0)
    assert pilot.pull()["deleted_tasks"] == 0


def test_the_label_of_a_restored_task_stays(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=4, annotators=["alice", "bob"])
    pilot = pilot_of(path)
    project = pilot.push()["project"]
    answer_all(pilot, project)
    assert pilot.pull()["new"] == {"alice": 4, "bob": 4}
    before = labels(pilot.path)
    # The newest task: the server on SQLite gives its number to the next one.
    gone = max(pilot.tasks(project), key=lambda task: int(task.id))
    unit = gone.data["adjudge_unit_id"]
    pilot.client().tasks.delete(id=gone.id)
    came = pilot.pull()
    assert (came["deleted_tasks"], came["retracted"]) == (1, 0) and labels(pilot.path) == before
    assert pilot.push("--restore")["new"] == 1
    for _ in range(2):
        came = pilot.pull()
        assert (came["new"], came["deleted_annotations"], came["retracted"]) == ({}, 0, 0)
        assert labels(pilot.path) == before, (
            "the new task has no annotation yet, and says nothing of the label"
        )
    # What is said on the new task counts, and taking that back takes back no more than that.
    (again,) = [t for t in pilot.tasks(project) if t.data["adjudge_unit_id"] == unit]
    other = next(v for v in ("support", "refute") if v != before[unit, "stance", "first", 0])
    made = pilot.say(again, other)
    assert pilot.pull()["replaced"] == 1
    pilot.client().annotations.delete(id=made.id)
    assert pilot.pull()["retracted"] == 1
    assert labels(pilot.path) == before
    assert document(pilot.run("verify", "--json", db=path))["rows"] == []


def test_several_questions_on_one_unit(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    path = drawn(tmp_path, three(), items=2, n=4, annotators=["alice"])
    pilot = pilot_of(path)
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    client = pilot.client()
    whole = [choice("relevance", "relevant"), choice("stance", "refute"), choice("quality", "bad")]
    client.annotations.create(id=tasks[0].id, result=whole)
    client.annotations.create(id=tasks[1].id, result=whole[:2])
    came = pilot.pull()
    assert came["new"] == {"alice": 5} and came["incomplete"] == 1
    query = "SELECT status, count(*) FROM assignments GROUP BY status ORDER BY status"
    assert rows_of(path, query) == [("done", 1), ("open", 3)]


def test_predictions_make_the_batch_assisted(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=3)
    run = judge_all(path)
    batch(path, n=6, annotators=["alice", "bob"])
    pilot = pilot_of(path)
    sent = pilot.push("--with-predictions", "last")
    assert (sent["run"], sent["assisted"], sent["without_prediction"]) == (run, True, 0)
    outcome = list(pilot.client().predictions.list(project=sent["project"]))
    assert len(outcome) == 6
    sent_labels = {(p.model_version, p.score, p.result[0]["value"]["choices"][0]) for p in outcome}
    assert sent_labels == {("scripted/test", 0.7, "support")}
    assert pilot.push("--with-predictions", "last")["new"] == 0
    answer_all(pilot, sent["project"])
    came = pilot.pull()
    assert came["assisted"] and came["new"] == {"alice": 6, "bob": 6}
    assert {layer for _, _, layer, _ in labels(path)} == {"assisted"}
    pilot.run("export", "pilot", "--labels", "-o", str(path.with_name("l.csv")), db=path)
    rows = list(csv.DictReader(path.with_name("l.csv").read_text().splitlines()))
    assert {r["blind"] for r in rows} == {"false"}
    shown = pilot.run("batches", "show", "pilot", db=path).out
    assert f"people see predictions in {pilot.server.url}/projects/{sent['project']}" in shown


def test_predictions_that_others_added_end_the_blind_round(pilot: Pilot) -> None:
    project = pilot.push()["project"]
    tasks = pilot.tasks(project)
    pilot.say(tasks[0], "support")
    assert not pilot.pull()["assisted"]
    pilot.client().predictions.create(
        task=tasks[1].id, result=[choice("stance", "refute")], model_version="other"
    )
    pilot.say(tasks[1], "refute")
    assert pilot.pull()["assisted"]
    layers = {unit: layer for unit, _, layer, _ in labels(pilot.path)}
    assert layers == {tasks[0].data["adjudge_unit_id"]: "first", tasks[1].data["adjudge_unit_id"]: "assisted"}
    judge_all(pilot.path)
    done = pilot.done("push", "--with-predictions", "last", "--new", code=2)
    assert "already has blind labels" in done.err


def test_who_is_who(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=4, annotators=["carol", "alice"], overlap=1)
    pilot = pilot_of(path)
    project = pilot.push()["project"]
    for task in pilot.tasks(project):
        for person in SAID:
            pilot.say(task, "support", person)
    came = pilot.pull(code=1)
    # Two of the four units were not alice's: they are added to her queue. Bob is nobody of the batch.
    assert came["new"] == {"alice": 4} and came["joined"] == {"alice": 2} and len(came["problems"]) == 4
    assert "--annotator bob@example.org=NAME" in came["problems"][0]
    came = pilot.pull("--annotator", "bob@example.org=carol")
    assert came["new"] == {"carol": 4} and came["problems"] == []
    pilot.say(pilot.tasks(project)[0], "refute", "bob")
    failed = pilot.done("pull", "--annotator", "zoe=carol", code=2)
    assert "no such user; available: alice@example.org" in failed.err


def test_an_answer_here_that_is_later_stands(pilot: Pilot) -> None:
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    pilot.say(task, "support")
    unit = task.data["adjudge_unit_id"]
    with open_study(pilot.path) as store, Desk.open(store, "pilot", "alice") as desk:
        position = next(p for p in range(1, 13) if desk.load(p).unit_id == unit)
        desk.label(position, "stance", "refute")
        done = pilot.done("pull", code=1)
        assert "another" in done.err and "alice" in done.err, "the seat is taken"
    came = pilot.pull()
    assert came["older"] == 1 and came["new"] == {}
    assert labels(pilot.path)[unit, "stance", "first", 0] == "refute"


def test_a_legacy_key_works(pilot: Pilot) -> None:
    assert document(pilot.done("push", "--json", key=pilot.server.legacy))["new"] == 12


def expired() -> str:
    import jwt

    return str(
        jwt.encode({"token_type": "refresh", "exp": 1_000_000_000}, "not a real secret, only a test" * 2)
    )


def test_keys_that_do_not_work(pilot: Pilot) -> None:
    before = dump(pilot.path)
    assert "LABEL_STUDIO_API_KEY is not set" in pilot.done("push", key=None, code=3).err
    assert "rejects LABEL_STUDIO_API_KEY" in pilot.done("push", key="0" * 40, code=3).err
    assert "has expired" in pilot.done("push", key=expired(), code=3).err
    invite = pilot.server.admin.client.get("/api/invite").json()["invite_url"]
    # No other test signs this user up: the server is shared, and an address can be signed up only once.
    with Web(pilot.server.url, "revoked@example.org") as third:
        revoked = third.signup(invite).token()
        reply = third.post("/api/token/blacklist", json={"refresh": revoked})
        assert reply.status_code == 204, reply.text
    assert "LABEL_STUDIO_API_KEY" in pilot.done("push", key=revoked, code=3).err
    assert dump(pilot.path) == before


def test_a_server_that_is_down_or_is_another_program(study: Path, annotate: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = annotate("push", "pilot", "--url", url, db=study, key="0" * 40, code=3)
    assert "no connection" in done.err and "is the server running?" in done.err
    assert "write it as" in annotate("push", "pilot", "--url", "localhost", db=study, key="x", code=2).err
    failed = annotate("push", "pilot", "--url", "http://a:b@h", db=study, key="x", code=2)
    assert "only the server's address" in failed.err


def test_a_project_that_was_deleted(pilot: Pilot) -> None:
    done = pilot.done("pull", code=2)
    assert "annotate push pilot" in done.err
    project = pilot.push()["project"]
    answer_all(pilot, project)
    pilot.pull()
    before = dump(pilot.path)
    pilot.client().projects.delete(id=project)
    for command in ("push", "pull"):
        done = pilot.done(command, code=3)
        assert "was deleted there" in done.err and "--new" in done.err
    assert dump(pilot.path) == before
    sent = pilot.push("--new")
    assert sent["created"] and sent["new"] == 12 and sent["project"] != project
    assert pilot.pull()["new"] == {}


@pytest.mark.parametrize("passed", [False, True])
def test_a_500_in_the_middle_of_a_push(
    proxy: Proxy, pilot: Pilot, monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    monkeypatch.setattr("annotate.exchange.label_studio.tasks.TASKS", 4)
    proxy.fail("/import", 2, passed=passed)
    done = pilot.done("push", url=proxy.url, code=3)
    assert "the server failed (500)" in done.err and "4 of 12 units" in done.err
    proxy.heal()
    sent = pilot.push(url=proxy.url)
    # What the server kept although it said 500 is found again and not sent twice.
    assert (sent["new"], sent["there"]) == ((4, 8) if passed else (8, 4))
    units = [t.data["adjudge_unit_id"] for t in pilot.tasks(sent["project"])]
    assert len(units) == len(set(units)) == 12


@pytest.mark.parametrize("passed", [False, True])
def test_a_500_while_the_project_is_made(
    proxy: Proxy, pilot_of: Callable[[Path], Pilot], tmp_path: Path, passed: bool
) -> None:
    path = drawn(tmp_path, items=2, judged=True, n=4, annotators=["alice"])
    pilot = pilot_of(path)
    count = len(list(pilot.client().projects.list()))
    proxy.fail("POST /api/projects/", passed=passed)
    pilot.done("push", "--with-predictions", "last", url=proxy.url, code=3)
    proxy.heal()
    sent = pilot.push("--with-predictions", "last", url=proxy.url)
    assert sent["created"] is not passed and sent["new"] == 4 and sent["assisted"]
    assert len(list(pilot.client().projects.list())) == count + 1


KILLED = """
import sys
from annotate.exchange.label_studio import pull, server
pull.PAGE = server.IDS = 4
from annotate.cli import main
main(sys.argv[1:])
"""


def test_a_pull_that_is_killed_goes_on(proxy: Proxy, pilot: Pilot) -> None:
    project = pilot.push(url=proxy.url)["project"]
    answer_all(pilot, project)
    proxy.hold("/export", 3)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, "pull", "pilot", "--url", proxy.url, "-d", str(pilot.path)],
        env={**os.environ, "LABEL_STUDIO_API_KEY": pilot.server.keys["alice"]},
    )
    assert proxy.held.wait(120), "two pages of four tasks are in, the third is asked for"
    process.send_signal(signal.SIGKILL)
    process.wait()
    proxy.heal()
    assert len(labels(pilot.path)) == len(labels(pilot.path, "bob")) == 8
    came = pilot.pull(url=proxy.url)
    assert came["new"] == {"alice": 4, "bob": 4} and came["read"] == 4
    assert len(labels(pilot.path)) == len(labels(pilot.path, "bob")) == 12
    assert rows_of(pilot.path, "SELECT count(*) FROM events") == [(24,)]
    assert pilot.pull(url=proxy.url)["read"] == 0


def test_the_key_is_stored_nowhere(pilot: Pilot) -> None:
    pilot.push()
    for file in pilot.path.parent.glob(f"{pilot.path.name}*"):
        assert pilot.server.keys["alice"].encode() not in file.read_bytes()
    assert rows_of(pilot.path, "SELECT url FROM label_studio_projects") == [(pilot.server.url,)]
