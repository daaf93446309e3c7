"""judge route: a promise, the derived judge, the sealed test, and what is left to people."""

import json
import random
from math import comb
from pathlib import Path
from typing import Any

import pytest

from judge.store import Store, label_sources
from tests.annotate.agreement_helpers import annotate, judge
from tests.cli.helpers import checked
from tests.split.worlds import LABELS, add_run, gold, looks, part, planted


def routed(db: Path, run: str, *options: str, code: int = 0) -> Any:
    return checked(
        judge("route", "stance", "--run", run, "-d", db, "--json", *options, code=code).stdout, "route"
    )


def sure_judge(
    db: Path,
    questions: int,
    wrong_below: float = 0.0,
    per_question: int = 1,
    name: str = "scripted/sure",
    seed: int = 1,
) -> tuple[str, dict[str, float]]:
    """A judge whose confidence falls over the units; it is wrong exactly where that is below a limit."""
    rng = random.Random(seed)
    labels, masses, sure = {}, {}, {}
    for q in range(questions):
        for p in range(per_question):
            unit = f"study:{q:03}/{p}"
            sure[unit] = round(rng.uniform(0.4, 0.99), 6)
            right = gold(q, p)
            labels[unit] = right if sure[unit] >= wrong_below else LABELS[(LABELS.index(right) + 1) % 3]
            other = (1 - sure[unit]) / 2
            masses[unit] = [sure[unit] if label == labels[unit] else other for label in LABELS]
    return add_run(db, name, labels, masses), sure


def batch(db: Path, words: str, code: int = 0) -> Any:
    """annotate batches new."""
    return annotate("batches", "new", *words.split(), "-d", db, code=code)


def label_as_gold(db: Path, *people: str) -> None:
    """These people label every unit that a batch sampled, as gold does."""
    with Store.open(db) as store, store.transaction() as conn:
        drawn = conn.execute("SELECT unit_id FROM batch_units WHERE role = 'sample'").fetchall()
        rows = [(u, "stance", who, gold(int(u[6:9]), 0), None) for (u,) in drawn for who in people]
        label_sources.add_first(conn, rows, "items:pilot")


@pytest.fixture
def study(tmp_path: Path) -> tuple[Path, str, dict[str, float]]:
    """300 single-unit questions; the judge is right from .6 on, and wrong below: on about a third."""
    db = planted(tmp_path, 300)
    return db, *sure_judge(db, 300, 0.6)


def test_the_accepted_units_are_those_from_a_threshold_on(study: tuple[Path, str, dict[str, float]]) -> None:
    db, run, sure = study
    result = routed(db, run)
    [threshold] = result["thresholds"]
    accepted = {unit for unit, c in sure.items() if c >= threshold}
    assert result["holds"] and result["accepted"] == len(accepted) and result["units"] == 300
    assert result["coverage"] == pytest.approx(len(accepted) / 300)
    # Right from .6 on, so the promise of .9 goes some way below, and not to where a tenth is wrong.
    assert 0.5 < threshold < 0.63
    # A fifth of the 300 questions fixes the order, the others test.
    assert (result["tested_units"], result["tested_questions"]) == (240, 240)
    held = [step for step in result["steps"] if step["holds"]]
    assert held == result["steps"][: len(held)] and all(step["p"] <= 0.05 for step in held)
    with Store.open(db) as store:
        query = "SELECT unit_id FROM judgements WHERE run_id = ?"
        assert {u for (u,) in store.conn.execute(query, [result["run"]])} == accepted
        row = store.conn.execute("SELECT derived_from FROM runs WHERE run_id = ?", [result["run"]]).fetchone()
    made = json.loads(row[0])
    assert made["kind"] == "routed" and [p["run"] for p in made["parents"]] == [run]
    assert made["parameters"]["agree"] == 0.9 and made["parameters"]["thresholds"] == [threshold]
    assert made["fitted"]["questions"] == 240, "what tested the promise is in no later number"
    assert routed(db, run)["run"] == result["run"], "the same route is the same run"


def test_nothing_holds_for_a_judge_that_guesses(tmp_path: Path) -> None:
    db = planted(tmp_path, 200)
    rng = random.Random(2)
    labels = {f"study:{q:03}/0": rng.choice(LABELS) for q in range(200)}
    masses = {u: [0.9 if v == label else 0.05 for v in LABELS] for u, label in labels.items()}
    run = add_run(db, "scripted/guess", labels, masses)
    result = routed(db, run, code=5)
    assert not result["holds"] and result["run"] is None and result["accepted"] is None
    shown = judge("route", "stance", "--run", run, "-d", db, code=5).stdout
    assert "no threshold passes" in shown and "not shown" in shown


def test_a_judge_without_probabilities_is_believed_on_all_or_nothing(tmp_path: Path) -> None:
    db = planted(tmp_path, 100)
    run = add_run(db, "scripted/plain", {f"study:{q:03}/0": gold(q, 0) for q in range(100)})
    result = routed(db, run)
    assert len(result["steps"]) == 1 and result["accepted"] == 100
    # 80 tested single units without an error: .9^80.
    assert result["steps"][0]["p"] == pytest.approx(0.9**80)
    assert any("returns no probabilities" in text for text in result["notes"])


def test_too_few_labels_say_how_many_it_takes(tmp_path: Path) -> None:
    db = planted(tmp_path, 10)
    run, _ = sure_judge(db, 10)
    told = judge("route", "stance", "--run", run, "-d", db, code=2).stderr
    assert "90% needs at least 29" in told


def test_the_sealed_test_tests_the_promise_and_the_look_is_logged(
    study: tuple[Path, str, dict[str, float]],
) -> None:
    db, run, _ = study
    judge("split", "stance", "-d", db)
    result = routed(db, run)
    assert (result["look"], result["level"]) == (1, 0.025)
    [look] = looks(db)
    assert (
        result["tested_questions"] == len(part(db, "test"))
        and look.purpose == "route"
        and look.runs == (run,)
    )
    again = routed(db, run)
    assert (again["look"], again["run"]) == (1, result["run"]), "the same question is the look that it was"
    assert routed(db, run, "--agree", "0.8")["level"] == 0.0125


def test_another_field_of_the_task_has_the_same_sealed_test(tmp_path: Path) -> None:
    """The test is of questions: a field that the split was not stratified by does not open it unlogged."""
    task = tmp_path / "tasks" / "both.v1.md"
    task.parent.mkdir()
    question = (
        "  - {field: NAME, level: nominal, labels: [{value: yes-, key: 'KEY'}, {value: no-, key: 'KEZ'}]}\n"
    )
    task.write_text(
        "---\ntitle: Two questions\nunit: passage\ninputs: [claim, passage]\nquestions:\n"
        + question.replace("NAME", "first").replace("KEY", "1").replace("KEZ", "2") + question.replace("NAME", "second").replace("KEY", "3").replace("KEZ", "4")
        + "---\nTwo questions.\n<!-- unit -->\n{{ claim }}\n{{ passage }}\n{{ answer_cue }}\n"
    )  # fmt: skip
    rows = [
        {"id": f"{q:03}", "claim": f"C{q}", "passages": [{"id": "0", "text": "t", "gold": dict.fromkeys(("first", "second"), "yes-" if q % 2 else "no-")}]}
        for q in range(120)
    ]  # fmt: skip
    data, table, db = tmp_path / "study.jsonl", tmp_path / "labels.jsonl", tmp_path / "study.db"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = [
        {"unit": f"{q:03}/0", **dict.fromkeys(("first", "second"), "yes-" if q % 2 else "no-")}
        for q in range(120)
    ]
    table.write_text("".join(json.dumps(row) + "\n" for row in given))
    judge("items", "import", "jsonl", data, "-d", db)
    prompts = ["--prompts", task.parent]
    judge("runs", "import", table, "--model", "right", "--task", "both", *prompts, "-d", db)
    judge("split", "both", "--field", "first", "-d", db)
    told = judge("route", "both", "--run", "right", "--field", "second", "-d", db, "--json").stdout
    result = json.loads(told)
    [look] = looks(db, "both")
    assert (result["look"], result["tested_questions"]) == (
        1,
        len(part(db, "test", "both")),
    ) and look.purpose == "route"


def test_a_page_that_cannot_be_written_spends_no_look(
    study: tuple[Path, str, dict[str, float]], tmp_path: Path
) -> None:
    db, run, _ = study
    other, _ = sure_judge(db, 300, 0.7, name="scripted/other", seed=2)
    judge("split", "stance", "-d", db)
    page = tmp_path / "nowhere" / "x.html"
    told = judge("route", "stance", "--run", run, "-d", db, "-o", page, code=1).stderr
    assert "the folder " in told
    for options in (["-o", page], ["--units", page.with_suffix(".csv")], ["-o", tmp_path / "x.pdf"]):
        judge("compare", "stance", "--run", run, "--run", other, "--part", "test", "-d", db, *options, code=2)
    assert looks(db) == []


def test_a_second_judge_takes_what_the_first_leaves(
    study: tuple[Path, str, dict[str, float]], tmp_path: Path
) -> None:
    db, run, sure = study
    second, _ = sure_judge(db, 300, name="scripted/second", seed=3)
    result = routed(db, run, "--then", second, "-o", str(tmp_path / "route.html"))
    assert result["runs"] == [run, second] and result["accepted"] == 300
    by = {step["run"] for step in result["steps"] if step["holds"]}
    assert by == {run, second}
    with Store.open(db) as store:
        labels = dict(
            store.conn.execute("SELECT unit_id, value FROM labels WHERE annotator_id = ?", [result["run"]])
        )
    wrong = sum(labels[f"study:{q:03}/0"] != gold(q, 0) for q in range(300))
    # The first spends at most half of the tenth that may be wrong, by 60 questions; the second errs nowhere.
    assert wrong <= 30
    first = result["thresholds"][0]
    assert all(labels[u] == gold(int(u[6:9]), 0) for u, c in sure.items() if c < first), (
        "the second's labels there"
    )
    html = (tmp_path / "route.html").read_text("utf-8")
    assert "Agreement against coverage" in html and html.count("<script") == 1


def test_what_a_queue_brought_tests_nothing(tmp_path: Path) -> None:
    db = planted(tmp_path, 120)
    run, _ = sure_judge(db, 120)
    batch(db, "val stance -n 60 --annotators ann,bob")
    batch(db, "hard stance -n 40 --draw least-sure --annotators ann,bob")
    label_as_gold(db, "ann", "bob")
    result = routed(db, run, "--reference", "majority")
    assert result["tested_questions"] == 48, "four fifths of the 60 that were drawn by chance"
    assert any(text.startswith("40 labelled units are left out") for text in result["notes"])
    percent = next(m for m in result["people"] if m["measure"] == "percent")
    assert percent["value"] == 1.0


def test_labels_of_a_queue_alone_are_refused_with_the_reason(tmp_path: Path) -> None:
    db = planted(tmp_path, 60)
    run, _ = sure_judge(db, 60)
    batch(db, "hard stance -n 40 --draw least-sure --annotators ann")
    label_as_gold(db, "ann")
    told = judge("route", "stance", "--run", run, "--reference", "ann", "-d", db, code=2).stderr
    assert "0 questions with labels from ann" in told
    assert "40 labelled units are left out" in told


def test_what_a_route_leaves_goes_to_people(study: tuple[Path, str, dict[str, float]]) -> None:
    db, run, sure = study
    result = routed(db, run)
    left = {unit for unit, c in sure.items() if c < result["thresholds"][0]}
    made = json.loads(
        batch(db, f"rest stance --draw route --run {result['run']} --annotators ann,bob --json").stdout
    )
    assert made["units"] == len(left) == 300 - result["accepted"]
    with Store.open(db) as store:
        query = "SELECT unit_id, probability, weight FROM batch_units WHERE batch = 'rest'"
        drawn = store.conn.execute(query).fetchall()
        [purpose] = store.conn.execute("SELECT purpose FROM batches").fetchone()
    assert {unit for unit, _, _ in drawn} == left and {row[1:] for row in drawn} == {(None, None)}
    assert purpose == "queue", "what a judge was unsure of stands for nothing else"
    told = batch(db, f"b stance --draw route --run {run} --annotators ann", code=2)
    assert "--draw route" in told.stderr
    told = batch(db, f"b stance --draw route --run {result['run']} --by label --annotators ann", code=2)
    assert "do not apply" in told.stderr


def test_shares_and_files_that_are_none_are_refused(
    study: tuple[Path, str, dict[str, float]], tmp_path: Path
) -> None:
    db, run, _ = study
    for options in (
        ["--agree", "1"],
        ["--confidence", "0"],
        ["-o", str(tmp_path / "x.pdf")],
        ["--then", run],
    ):
        judge("route", "stance", "--run", run, "-d", db, *options, code=2)


def test_the_report_draws_agreement_against_coverage(
    study: tuple[Path, str, dict[str, float]], tmp_path: Path
) -> None:
    db, run, _ = study
    annotate("report", "-d", db, "-o", tmp_path / "before.json")
    sections = json.loads((tmp_path / "before.json").read_text())["sections"]
    assert "routed" not in {section["key"] for section in sections}
    result = routed(db, run)
    annotate("report", "-d", db, "-o", tmp_path / "r.json", "-o", tmp_path / "r.html")
    report = json.loads((tmp_path / "r.json").read_text())
    section = next(section for section in report["sections"] if section["key"] == "routed")
    text = json.dumps(section)
    steps = [step for step in result["steps"] if step["tested"]]
    taken = next(step for step in result["steps"] if step["coverage"] == result["coverage"])
    # The step that was taken is marked, with what the route itself said of it.
    assert f"{taken['coverage']:.1%} (chosen)" in text and "agreement of 90%" in text
    # The path of this judge breaks: it holds where the judge is right, and no longer below.
    assert not steps[-1]["holds"] and '"does not hold"' in text and '"holds"' in text
    page = (tmp_path / "r.html").read_text()
    assert "Coverage and agreement of" in page and "share of units accepted" in page


def test_a_short_test_is_not_called_a_judge_without_probabilities(tmp_path: Path) -> None:
    db = planted(tmp_path, 36)
    run, _ = sure_judge(db, 36)
    result = routed(db, run)
    assert len(result["steps"]) == 1
    assert any("the test has too few questions" in text for text in result["notes"])


def test_the_promise_is_tested_on_labels_that_did_not_test_it(
    study: tuple[Path, str, dict[str, float]],
) -> None:
    """60 of the 300 questions fixed the order and tested nothing. Binomial tests on those that the route accepts."""
    db, run, sure = study
    result = routed(db, run, "--agree", "0.8")
    [threshold] = result["thresholds"]
    with Store.open(db) as store:
        query = "SELECT unit_id FROM units WHERE question_id NOT IN (SELECT question_id FROM fitted_on WHERE run_id = ?)"
        fresh = [unit for (unit,) in store.conn.execute(query, [result["run"]])]
    accepted = [unit for unit in fresh if sure.get(unit, 0) >= (threshold or 0)]
    wrong = sum(sure[unit] < 0.6 for unit in accepted)
    n = len(accepted)

    def at_most(k: int, p: float) -> float:
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    def check(code: int) -> Any:
        words = ("route", "stance", "--check", result["run"], "-d", db, "--json")
        return checked(judge(*words, code=code).stdout, "route-check")

    again = check(0 if at_most(wrong, 0.2) <= 0.05 else 5)
    assert (again["units"], again["questions"], again["wrong"]) == (n, n, wrong)
    assert again["p"] == pytest.approx(at_most(wrong, 0.2))
    assert again["p_broken"] == pytest.approx(at_most(n - wrong, 0.8))
    assert again["holds"] is (again["p"] <= 0.05) and again["broken"] is False
    # A change hides among older labels: with --since, only units that the judge labelled from a day on count.
    newer = sorted(accepted)[: n // 4]
    with Store.open(db) as store, store.transaction() as conn:
        conn.execute("UPDATE judgements SET judged_at = '2020-01-01T00:00:00+00:00' WHERE run_id = ?", [run])
        conn.executemany(
            "UPDATE judgements SET judged_at = '2020-03-01T08:00:00+00:00' WHERE run_id = ? AND unit_id = ?",
            [(run, unit) for unit in newer],
        )
    words = ("route", "stance", "--check", result["run"], "--since", "2020-03-01", "-d", db, "--json")
    since = checked(judge(*words, code=5).stdout, "route-check")
    assert (since["units"], since["since"]) == (len(newer), "2020-03-01")
    assert since["wrong"] == sum(sure[unit] < 0.6 for unit in newer)
    assert (
        "--since requires --check"
        in judge("route", "stance", "--run", run, "--since", "2020-03-01", "-d", db, code=2).stderr
    )
    # The judge is as sure as before, and wrong on all of them (its own errors are one label on): the promise is broken.
    with Store.open(db) as store, store.transaction() as conn:
        for unit in accepted:
            query = "SELECT value FROM labels WHERE annotator_id = 'gold' AND unit_id = ?"
            right = conn.execute(query, [unit]).fetchone()[0]
            other = LABELS[(LABELS.index(right) + 2) % 3]
            query = "UPDATE labels SET value = ? WHERE annotator_id = 'gold' AND unit_id = ?"
            conn.execute(query, [other, unit])
    broken = check(5)
    assert broken["wrong"] == n and broken["broken"] is True and broken["holds"] is False
    words = ("route", "stance", "-d", db)
    assert (
        "the guarantee of 80% agreement with gold is broken"
        in judge(*words, "--check", result["run"], code=5).stderr
    )
    assert "this run is not a route" in judge(*words, "--check", run, code=2).stderr
    assert "--run RUN, or a stored route with --check ROUTE" in judge(*words, code=2).stderr
