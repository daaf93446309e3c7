"""The commands around batches: output, errors, exit codes; labels out and in again; who labels faster than reading."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.cli import main
from annotate.leading.haste import reading_ms
from annotate.sitting.desk import Desk
from annotate.sitting.unit import TimeSpent
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate
from tests.tui.studies import batch, build, judge_all, rows_of

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return build(tmp_path / "s.db", items=10)


@pytest.fixture
def run(study: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("batches", "show")`: exit code, stdout and stderr of a command on the study."""

    def typed(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            main([*args, "-d", str(study)])
        out, err = capsys.readouterr()
        return int(str(e.value.code)), out, err

    return typed


def test_new_list_show_labels_close(study: Path, run: Run) -> None:
    judge_all(study)
    new = ("batches", "new", "pilot", "stance", "-n", "8", "--by", "label", "--seed", "17", "--annotators", "alice,bob",
           "--repeats", "25%", "--training", "2", "--attention", "20%", "--json")  # fmt: skip
    code, _, err = run("open")
    assert code == 2 and "has no batch yet; to draw one: annotate batches new NAME TASK" in err
    code, out, _ = run(*new)
    assert code == 0 and json.loads(out)["positions"] == {"alice": 14, "bob": 14}
    code, _, err = run(*new)
    assert code == 2 and "batch 'pilot' already exists" in err
    with open_study(study) as store:
        for person in ("alice", "bob"):
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, 15):
                    desk.label(position, "stance", "support")
    _, out, _ = run("batches", "show", "pilot", "--json")
    shown = json.loads(out)
    assert shown["schema"] == "adjudge/batch/1"
    alice = shown["annotators"][0]
    assert (alice["done"], alice["repeats_same"], alice["repeats_answered"]) == (14, 2, 2)
    assert alice["training_answered"] == 2 and alice["attention_answered"] == 2
    assert {m["measure"]: m["value"] for m in shown["measures"]}["percent"] == 1.0
    assert "support" not in json.dumps({k: v for k, v in shown.items() if k != "strata"}).replace(
        "mirage_support", ""
    )
    # Who names no batch, or not himself, reads which there are and what to type.
    for words, typed in (
        (["open"], f"annotate open pilot --as alice -d {study}"),
        (["open", "--as", "bob"], f"annotate open pilot --as alice -d {study}"),
        (["serve"], f"annotate serve pilot --as alice -d {study}"),
        (["adjudicate"], f"annotate adjudicate pilot --as NAME -d {study}"),
        (["batches", "close"], f"annotate batches close pilot -d {study}"),
        (["export"], f"annotate export pilot -o FILE -d {study}"),
    ):
        code, _, err = run(*words)
        assert (code, err) == (
            2,
            f"annotate: specify a batch; available: pilot (alice, bob); for example: {typed}\n",
        )
    code, _, err = run("open", "pilot")
    asked = f"specify your name with --as: batch 'pilot' is for alice, bob; for example: annotate open pilot --as alice -d {study}"
    assert (code, err) == (2, f"annotate: {asked}\n")
    code, _, err = run("open", "pilto")
    assert (code, err) == (2, "annotate: no batch 'pilto'; available: pilot\n")
    run("export", "pilot", "--labels", "-o", str(study.with_name("labels.csv")))
    rows = list(csv.DictReader(study.with_name("labels.csv").read_text().splitlines()))
    assert len(rows) == 28 and {r["blind"] for r in rows} == {"true"}
    run("batches", "close", "pilot")
    with open_study(study) as store, pytest.raises(Exception, match="was closed on"):
        Desk.open(store, "pilot", "alice")
    _, out, _ = run("batches", "show", "--json")
    assert json.loads(out)["rows"][0]["done"] == 28


def test_the_printed_command_opens_the_batch(study: Path, run: Run) -> None:
    """A name is somebody's text: the shell that it is pasted into takes it as one word."""
    new = ("batches", "new", "pilot", "stance", "-n", "4", "--annotators", "alice,<b>")
    _, _, err = run(*new)
    printed = [line.partition("to start: ")[2] for line in err.splitlines() if "to start: " in line]
    assert [shlex.split(line) for line in printed] == [
        ["annotate", "open", "pilot", "--as", person, "-d", str(study)] for person in ("alice", "<b>")
    ]


def test_the_printed_command_continues_a_sitting(
    study: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(study, n=4, annotators=["Ann B"])
    monkeypatch.setattr("sys.stdin", io.StringIO("q!\n"))
    _, _, err = run("open", "pilot", "--as", "Ann B", "--plain")
    [line] = [line for line in err.splitlines() if "annotate open" in line]
    words = ["annotate", "open", "pilot", "--as", "Ann B", "--plain", "-d", str(study)]
    assert shlex.split(line.partition(": ")[2]) == words


def test_a_second_batch_never_holds_units_of_the_first(study: Path, run: Run) -> None:
    batch(study, n=12)
    code, _, err = run("batches", "new", "more", "stance", "-n", "9", "--annotators", "bob")
    assert code == 2 and "only 8 units can be drawn" in err
    batch(study, n=8, name="more")
    assert rows_of(study, "SELECT count(DISTINCT unit_id) FROM batch_units") == [(20,)]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--by-question", "2", "--by", "label"], "use --by dataset"),
        (["-n", "5", "--overlap", "3"], "only 1 annotators"),
        (["-n", "5", "--by", "label"], "needs a judge run"),
        (["-n", "5", "--reveal"], "needs a judge run"),
        (["-n", "5", "--training", "gold:20"], "is not a valid integer"),
        (["-n", "5", "--training", "50"], "only 20 units"),
        (["-n", "5", "--repeats", "110%"], "is not a share"),
        (["-n", "5", "--where", "nonsense ="], "--where"),
        ([], "-n UNITS, --by-question QUESTIONS"),
    ],
)
def test_what_cannot_be_drawn_is_said(study: Path, run: Run, args: list[str], told: str) -> None:
    code, _, err = run("batches", "new", "p", "stance", "--annotators", "alice", *args)
    assert code in (1, 2) and told in err, err
    assert rows_of(study, "SELECT count(*) FROM batches") == [(0,)]


def test_open_names_what_is_wrong(study: Path) -> None:
    batch(study, n=4)
    with open_study(study) as store:
        with pytest.raises(Exception, match=r"no batch 'x'; available: pilot"):
            Desk.open(store, "x", "alice")
        with pytest.raises(Exception, match=r"has no annotator 'eve'; its annotators are: alice"):
            Desk.open(store, "pilot", "eve")


def test_a_changed_task_under_the_same_version_is_refused(study: Path, tmp_path: Path, run: Run) -> None:
    from tests.tui.studies import THREE, three

    batch(study, three(), n=4)
    changed = tmp_path / "three.v1.md"
    changed.write_text(THREE.replace("Three questions", "Changed"))
    code, _, err = run("batches", "new", "b", str(changed), "-n", "2", "--annotators", "alice")
    assert code == 2 and "save the changed file as three.v2.md" in err


def test_a_terminal_is_needed(study: Path, run: Run) -> None:
    batch(study, n=4)
    code, _, err = run("open", "pilot", "--as", "alice")
    assert code == 2 and "needs a terminal" in err and "--plain" in err
    code, _, err = run("adjudicate", "pilot", "--as", "lead")
    assert code == 2 and "needs a terminal" in err and "--plain" not in err


async def test_the_browser_needs_the_token_and_it_works_once() -> None:
    from aiohttp import ClientSession, web

    from annotate.tui.web import make_server

    server, address = make_server("true", 8642, lambda: None)
    runner = web.AppRunner(await server._make_app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    base, token = f"http://127.0.0.1:{port}", address.partition("token=")[2]
    from aiohttp import CookieJar

    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as stranger:
            for path in ("/", "/ws", "/?token=wrong", "/static/"):
                assert (await stranger.get(base + path)).status == 403
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as mine:
            assert (await mine.get(f"{base}/?token={token}")).status == 200
            assert (await mine.get(base)).status == 200
            assert (await mine.get(base, headers={"Origin": "http://evil.example"})).status == 403
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as late:
            assert (await late.get(f"{base}/?token={token}")).status == 403
    finally:
        await runner.cleanup()


def test_agreement_on_one_batch_alone(study: Path, run: Run) -> None:
    batch(study, n=8, annotators=["alice", "bob"])
    batch(study, n=6, name="other", annotators=["alice", "carol"])
    with open_study(study) as store:
        for name, person in (("pilot", "alice"), ("pilot", "bob"), ("other", "alice"), ("other", "carol")):
            with Desk.open(store, name, person) as desk:
                for position in range(1, desk.total + 1):
                    desk.label(position, "stance", "refute" if person == "carol" else "support")
    result = {}
    for name in ("pilot", "other"):
        words = ("--batch", name, "--field", "stance", "--measure", "percent", "--json")
        code, out, _ = run("agreement", *words)
        assert code == 0
        document = json.loads(out)
        people = [a["annotator"] for a in document["fields"][0]["annotators"] if a["kind"] == "human"]
        first = next(m for m in document["measures"] if m["annotators"] == people)
        result[name] = (people, first["value"], first["n_units"])
    # All eight agree in the one batch, none of the six in the other.
    assert result == {"pilot": (["alice", "bob"], 1.0, 8), "other": (["alice", "carol"], 0.0, 6)}
    code, _, err = run("agreement", "--batch", "pilto")
    assert code == 2 and "no batch 'pilto'; available: pilot, other" in err
    code, _, err = run("agreement", "--batch", "pilot", str(study))
    assert code == 2 and "--batch is for a study" in err


TEXT = "word " * 50
"""250 characters are 41.7 words of 6; at 80 ms a word that is 3,333 ms."""


def test_the_report_and_progress_name_who_labels_faster_than_reading(tmp_path: Path) -> None:
    """alice takes 3.4 s a unit, bob 0.9 s on six of ten: 6 is at least 5, and more than a tenth."""
    assert 3300 < reading_ms(len(TEXT)) < 3400
    path = build(tmp_path / "s.db", items=5, texts={str(i): f"{TEXT[:-2]}{i}." for i in range(10)})
    judge_all(path)
    batch(path, annotators=["alice", "bob"], n=10)
    with open_study(path) as store:
        for person in ("alice", "bob"):
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, 11):
                    ms = 900 if person == "bob" and position <= 6 else 3400
                    desk.label(position, "stance", "support", TimeSpent(ms, 0, ms))
    told = "bob labelled 6 of 10 units faster than they could be read (less than 80 ms per word, for at most 50 words)"
    report = " ".join(annotate("report", "-d", path).output.split())
    assert told in report and "alice labelled" not in report
    assert told in " ".join(annotate("batches", "show", "pilot", "-d", path).output.split())
