"""judge drift against a server whose model changes, keeps its name, or repeats itself badly."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from judge.labels.relation import judges_of
from judge.labels.scope import Scope, read_panel
from judge.store import Store
from tests.cli.helpers import checked, write_rows
from tests.loopback.changing import ChangingServer
from tests.loopback.wire import threaded
from tests.suites.helpers import Judge

LABELS = ("support", "refute", "neutral")


def sixty(prefix: str) -> list[dict[str, Any]]:
    """Sixty claims with a passage each; the texts do not depend on the prefix of the ids."""
    return [
        {"id": f"{prefix}{n}", "claim": f"Claim {n}.", "passages": [{"id": "p", "text": f"Passage {n}."}]}
        for n in range(60)
    ]


@pytest.fixture
def server() -> Iterator[ChangingServer]:
    with threaded(ChangingServer()) as found:
        yield found


@pytest.fixture
def ask(judge: Judge, server: ChangingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ask("drift", ...)`: the command with this server; a study of 60 passages, gold on every second one."""
    rows = sixty("c")
    for n in range(1, 60, 2):
        rows[n]["passages"][0]["gold"] = {"stance": LABELS[n % 3]}
    judge("items", "import", "jsonl", write_rows(tmp_path / "items.jsonl", rows))
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")

    def run(command: str, *words: str, code: int | None = 0) -> Any:
        return judge(command, "stance", "-m", "openai/m", "--base-url", server.url, *words, code=code)

    return run


def test_the_model_changes_behind_its_name(ask: Any, server: ChangingServer, tmp_path: Path) -> None:
    """Finding 2: build 1 labels everything; then the model says "neutral" to all, under the same name."""
    ask("run")
    drawn = checked(ask("drift", "--anchors", "40", "--json").out, "drift")["drawn"]
    # Gold first: 30 of the 40 anchors have a label.
    assert (drawn["units"], drawn["labelled"], drawn["noise"]) == (40, 30, 0.0)
    assert drawn["power"] == 1.0
    asked = server.requests
    same = ask("drift", "--output", "drift.xml")
    # Three replies for each anchor, and none of them from the study.
    assert server.requests >= asked + 3 * 40
    assert "passed: no change shown (p 1.0000, level 0.00096, 40 anchors)" in same.err
    assert ElementTree.parse(tmp_path / "drift.xml").getroot()[0].get("failures") == "0"
    # The gate of build 2 reads old replies and passes: nothing is left to ask.
    server.constant, server.fingerprint = "neutral", "fp_2"
    before = server.requests
    again = ask("run", "--json")
    assert json.loads(again.out)["already_judged"] == 60 and server.requests - before <= 2
    failed = ask("drift", "--json", code=5)
    found = checked(failed.out, "drift")["checked"]
    assert "the judge changed (p < 0.0001" in failed.err
    assert found["changed"] is True and found["check"] == 2
    assert found["system_fingerprint"] == {"first": ["fp_1"], "now": ["fp_2"]}
    assert found["resolved_model"] == {"first": ["model-1"], "now": ["model-1"]}
    assert all(unit["now"] == "neutral" for unit in found["changed_units"])
    with sqlite3.connect(tmp_path / "study.db") as conn:
        rows = conn.execute(
            "SELECT m.label, count(*) FROM (SELECT l.unit_id, g.value = 'neutral' AS label FROM labels AS g JOIN labels AS l "
            "ON l.unit_id = g.unit_id AND l.annotator_id = ? AND l.repeat = 0 WHERE g.annotator_id = 'gold') AS m GROUP BY 1",
            [found["run"]],
        ).fetchall()
    # Now the judge agrees with gold where gold is neutral: 10 of 30.
    assert dict(rows) == {0: 20, 1: 10}
    assert found["agreement"]["now"]["value"] == pytest.approx(1 / 3)
    difference = found["agreement"]["difference"]
    assert difference["low"] <= difference["value"] <= difference["high"] and difference["n_units"] == 30


def test_noise_is_no_change(ask: Any, server: ChangingServer) -> None:
    server.noise = 0.15
    drawn = ask("drift", "--anchors", "60")
    # A third of the random labels are the usual one by chance: .15 * 2/3 = .1.
    assert "reply noise" in drawn.out
    for _ in range(3):
        assert "no change shown" in ask("drift").err
    server.constant = "refute"
    assert "the judge changed" in ask("drift", code=5).err


def test_every_judgement_keeps_what_the_server_says(ask: Any, judge: Judge, tmp_path: Path) -> None:
    ask("run")
    with sqlite3.connect(tmp_path / "study.db") as conn:
        query = "SELECT DISTINCT system_fingerprint, resolved_model FROM judgements"
        assert conn.execute(query).fetchall() == [("fp_1", "model-1")]
    rows = judge("runs", "export", "last", "--to", "jsonl").out
    assert '"system_fingerprint": "fp_1"' in rows or '"system_fingerprint":"fp_1"' in rows


def test_anchors_stand_in_no_listing_and_are_drawn_once(
    ask: Any, judge: Judge, server: ChangingServer
) -> None:
    none = ask("drift", code=2).err
    assert "has no anchors" in none and "judge drift stance -m openai/m --anchors 100" in none
    ask("drift", "--anchors", "10")
    assert "already has anchors (set 1)" in ask("drift", "--anchors", "10", code=2).err
    ask("drift", "--anchors", "12", "--again")
    assert "set 2, check 1: 12 anchors" in ask("drift").out
    ask("run")
    compared = judge("compare", "stance", code=2).err
    assert "drift" not in compared
    assert "--again requires --anchors" in ask("drift", "--again", code=2).err
    # Other settings are another judge: a stored run has them.
    ask("run", "--temperature", "0.5")
    assert "has no anchors" in ask("drift", "--run", "last", code=2).err


def test_the_name_of_a_model_still_means_its_own_run(ask: Any, judge: Judge, tmp_path: Path) -> None:
    """The anchors and the checks are runs of the same model, and began later."""
    ask("run")
    [made] = json.loads(judge("runs", "list", "--json").out)["rows"]
    ask("drift", "--anchors", "10")
    ask("drift")
    for name in ("last", "openai/m"):
        assert f"run_id: {made['run_id']}" in judge("runs", "show", name).out
        with Store.open(tmp_path / "study.db", create=False) as store:
            assert list(read_panel(store, Scope("stance", runs=(name,))).shown) == [made["run_id"]]
    # A check can be named by its id.
    *_, check = json.loads(judge("runs", "list", "--json").out)["rows"]
    assert f"run_id: {check['run_id']}" in judge("runs", "show", check["run_id"]).out


def test_few_anchors_say_what_they_cannot_find(ask: Any, server: ChangingServer) -> None:
    server.noise = 0.3
    drawn = ask("drift", "--anchors", "5").out
    assert "less than 0.8: draw more anchors" in drawn


def test_calls_that_fail_are_no_replies(ask: Any, server: ChangingServer, tmp_path: Path) -> None:
    ask("drift", "--anchors", "10")
    port, server.port = server.port, 9
    assert "Traceback" not in ask("drift", "--patience", "1s", "--output", "drift.xml", code=3).err
    assert ElementTree.parse(tmp_path / "drift.xml").getroot()[0].get("errors") == "1"
    server.port = port
    assert "no change shown" in ask("drift").err


def test_replies_without_a_label_are_replies(ask: Any, server: ChangingServer) -> None:
    """A judge that says something else than a label from some day on has changed; one that never gave a label has not."""
    ask("drift", "--anchors", "20")
    server.unreadable = True
    changed = ask("drift", code=5)
    assert "the judge changed" in changed.err and "-> (unparsed)" in changed.out
    assert "20 anchors, 0 of them" not in ask("drift", "--anchors", "20", "--again").out
    assert "no change shown" in ask("drift").err


def test_units_with_the_same_text_are_one_anchor(
    ask: Any, judge: Judge, server: ChangingServer, tmp_path: Path
) -> None:
    """Two systems that say the same are asked about in one call, so they are no two observations of the judge's noise.

    With each text twice, 29 of 100 simulated sets of 100 anchors raised a false alarm in 52 checks at a noise of 10 %.
    """
    judge("items", "import", "jsonl", write_rows(tmp_path / "same.jsonl", sixty("d")))
    drawn = checked(ask("drift", "--anchors", "100", "--json").out, "drift")["drawn"]
    # 120 units with 60 texts, 30 of them with gold under one of their two ids.
    assert (drawn["units"], drawn["labelled"]) == (60, 30)
    with sqlite3.connect(tmp_path / "study.db") as conn:
        asked = "SELECT count(*), count(DISTINCT request_sha) FROM judgements WHERE run_id = ?"
        assert conn.execute(asked, [drawn["run"]]).fetchone() == (180, 180)


def test_checks_are_no_judges_that_share_a_verdict_s_level(
    ask: Any, server: ChangingServer, tmp_path: Path
) -> None:
    """A build that checks for drift every day has one judge; each check was counted as a rival of it."""
    ask("run")
    ask("drift", "--anchors", "60")
    ask("drift")
    with Store.open(tmp_path / "study.db") as store:
        units = [unit for (unit,) in store.conn.execute("SELECT unit_id FROM units WHERE kind = 'passage'")]
        [(judge, n)] = judges_of(store.conn, "stance", units).items()
        asked = store.conn.execute("SELECT options FROM runs WHERE run_id = ?", [judge]).fetchone()[0]
    assert n == 60 and "anchors" not in asked
