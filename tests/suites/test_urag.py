"""judge score urag and judge score conformal: sets from stored distributions, derived by hand."""

import csv
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.store import Store
from tests.answers.helpers import column
from tests.cli.helpers import checked
from tests.formats import urag, write_jsonl
from tests.suites.helpers import Judge, commands, give, items, outputs, score

RIGHT = {"c1": "A", "c2": "B", "c3": "A", "t1": "A", "t2": "B"}
# p(A) over the item's own options, A and B. The true option has 0.9, 0.6, 0.8; then 0.95 and 0.3.
WITH = {"c1": 0.9, "c2": 0.4, "c3": 0.8, "t1": 0.95, "t2": 0.7}
ALONE = {"c1": 0.9, "c2": 0.4, "c3": 0.8, "t1": 0.3, "t2": 0.1}
URAG = ("urag", "-m", "m", "--alpha", "0.5")


def distributed(run: str, masses: Mapping[str, Mapping[str, float] | None]) -> None:
    """Put distributions beside the labels of a run."""
    with Store.open("study.db") as store, store.transaction() as conn:
        for unit, result in masses.items():
            stored = None if result is None else json.dumps(result)
            conn.execute(
                "UPDATE labels SET distribution = ? WHERE annotator_id = ? AND unit_id = ?",
                [stored, run, unit],
            )


def chosen(context: str, p: Mapping[str, float], system: str = "m") -> str:
    """A run of urag_choice; half of the mass is on C, which no question has, and on no letter at all."""
    labels = {f"u:{item}": "A" if a > 0.5 else "B" for item, a in p.items()}
    run = give("urag_choice", labels, model=system, options={"context": context, "system": system})
    rest = dict.fromkeys("DEFGHIJ", 0.0)
    distributed(
        run,
        {
            f"u:{item}": {"A": a / 2, "B": (1 - a) / 2, "C": 0.46, **rest, "unassigned": 0.04}
            for item, a in p.items()
        },
    )
    return run


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {
            "id": name,
            "question": f"Which is it, {name}?",
            "options": {"A": "one", "B": "two"},
            "correct": right,
            "split": "calibration" if name.startswith("c") else "test",
            "passages": [f"About {name}."],
        }
        for name, right in RIGHT.items()
    ]
    items(judge, tmp_path, "u", rows)
    chosen("all", WITH)
    chosen("none", ALONE)


def test_sets_by_hand(judge: Judge, study: None) -> None:
    result = score(judge, *URAG, "--part", "sets")
    # alpha 0.5 and 3 questions: k = ceil(4 x 0.5) = 2. LAC scores 0.1 0.2 0.4, so 0.2: options with p >= 0.8.
    # APS scores of the true, most likely options 0.6 0.8 0.9, so 0.8.
    # t1 (A 0.95, right): LAC {A}; APS 0.95 > 0.8, so {}. t2 (A 0.7, B 0.3 is right): LAC {}; APS {A}.
    expected = {
        "accuracy": 0.5,
        "coverage_lac": 0.5,
        "coverage_aps": 0.0,
        "coverage": 0.25,
        "set_size_lac": 0.5,
        "set_size_aps": 0.5,
        "set_size": 0.5,
        "empty_sets_lac": 0.5,
        "empty_sets_aps": 0.5,
    }
    assert {name: result.value(name) for name in result.names} == expected
    assert result["accuracy"]["n_units"] == 2
    assert any("marked in the file" in note for note in result.document["notes"])


def test_the_quantile_of_the_repository(judge: Judge, study: None) -> None:
    result = score(judge, *URAG, "--part", "sets", "--convention", "urag_repo")
    # quantile(2/3, higher) of three scores is the largest: LAC 0.4 (p >= 0.6), APS 0.9.
    # t1: LAC {A}, APS empty and so the top option A. t2: {A} and {A}; B is right.
    assert (result.value("coverage_lac"), result.value("coverage_aps")) == (0.5, 0.5)
    assert (result.value("set_size_lac"), result.value("set_size_aps")) == (1.0, 1.0)
    assert result.value("empty_sets_aps") == 0.0


def test_classes_the_ratio_and_the_model_alone(judge: Judge, study: None) -> None:
    result = score(judge, *URAG)
    # t1 has the right option A, t2 has B.
    assert (result.value("accuracy[A]"), result.value("accuracy[B]")) == (1.0, 0.0)
    assert (result.value("coverage[A]"), result.value("set_size[B]")) == (0.5, 0.5)
    # Alone: t1 wrong, t2 right; sets LAC {} {B}, APS {B} {}.
    assert (result.value("accuracy_without"), result.value("accuracy_ratio")) == (0.5, 1.0)
    assert (result.value("set_size_without"), result.value("set_size_ratio")) == (0.5, 1.0)
    # With passages t1 (alone wrong) is right, t2 (alone right) is wrong.
    assert (result.value("accuracy[alone_wrong]"), result.value("accuracy[alone_right]")) == (1.0, 0.0)
    assert result["accuracy[alone_unknown]"]["reason"] == "there are no units"


def test_calibrated_on_another_system(judge: Judge, study: None) -> None:
    chosen("all", {**dict.fromkeys(("c1", "c3"), 0.99), "c2": 0.01, "t1": 0.5, "t2": 0.5}, "other")
    result = score(judge, *URAG, "--part", "sets", "--calibrate-on", "other")
    # Its true options have 0.99: LAC 0.01, APS 0.99. t1: {} and {A}; t2: {} and {A}.
    assert (result.value("coverage_lac"), result.value("coverage_aps")) == (0.0, 0.5)
    assert {run["model"] for run in result.document["runs"]} == {"m", "other"}
    message = commands(judge, *URAG, "--calibrate-on", "openai/new", "--part", "sets")
    assert "-m openai/new --context all" in message[0]


def test_what_has_no_distribution_is_counted(judge: Judge, study: None, tmp_path: Path) -> None:
    run = column("SELECT run_id FROM runs WHERE json_extract(options, '$.context') = 'all'")[0]
    distributed(run, {"u:t2": None})
    # An answer without probabilities names an option: t1 A, which is right, and t2 A, which is wrong.
    result = score(judge, *URAG, "--part", "sets")
    accuracy, size = result["accuracy"], result["set_size"]
    assert (accuracy["value"], accuracy["n_units"], accuracy["coverage"]) == (0.5, 2, 1.0)
    assert (size["n_units"], size["coverage"]) == (1, 0.5)
    # Without any probabilities, only the accuracy can be computed.
    distributed(run, {f"u:{name}": None for name in RIGHT})
    result = score(judge, *URAG, "--part", "sets")
    assert result.value("accuracy") == 0.5
    assert (result.value("set_size"), result.value("coverage")) == (None, None)
    assert "--answers auto or codes" in result["set_size"]["reason"]


def test_a_suite_checks_for_probabilities_before_it_judges_a_question(judge: Judge, tmp_path: Path) -> None:
    """Finding 6: the scripted model returns no probabilities here."""
    judge("items", "import", "urag", urag(tmp_path / "urag.json"))
    words = ("suite", "urag", "-m", "scripted/hash")
    message = judge(*words, code=2).err
    assert (
        "returns no probabilities" in message
        and "judge suite urag -m scripted/hash --part accuracy" in message
    )
    assert column("SELECT count(*) FROM judgements") == [0]
    done = judge(*words, "--part", "accuracy", "--max-output-tokens", "7", "--json")
    measures = checked(done.out, "score")["measures"]
    assert [m["measure"] for m in measures] == ["accuracy"] and measures[0]["value"] is not None
    assert column("SELECT DISTINCT json_extract(options, '$.max_output_tokens') FROM runs") == [7]


def test_a_suite_estimates_its_first_steps_without_a_call(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "urag", urag(tmp_path / "urag.json"))
    words = ("suite", "urag", "-m", "scripted/hash", "--estimate")
    rows = checked(judge(*words, "--json").out, "suite_estimate")["rows"]
    n = column("SELECT count(*) FROM items WHERE options IS NOT NULL")[0]
    assert [row["calls"] for row in rows] == [n, n]
    assert column("SELECT count(*) FROM runs") == [0]
    assert "not included" in judge(*words).err


def test_a_random_split_is_the_same_each_time(judge: Judge, study: None) -> None:
    with sqlite3.connect("study.db") as conn:
        conn.execute("UPDATE items SET meta = json_remove(meta, '$.split')")
    message = score(judge, *URAG, "--part", "sets")
    # Half of five questions, rounded to an even number: two calibrate.
    assert message["accuracy"]["n_units"] == 3
    assert score(judge, *URAG, "--part", "sets").document["measures"] == message.document["measures"]


def test_a_whole_suite(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "urag", urag(tmp_path / "urag.json"))
    done = judge("suite", "urag", "-m", "scripted/hash", "--option", "logprobs=1", "--json")
    message = {m["measure"]: m for m in checked(done.out, "score")["measures"]}
    assert message["accuracy"]["coverage"] == 1.0 and message["set_size_ratio"]["n_units"] > 0
    runs = column("SELECT json_extract(options, '$.context') FROM runs ORDER BY 1")
    assert runs == ["all", "none"]


BAD = [
    (("--alpha", "1"), 2, "--alpha must be between 0 and 1"),
    (("--alpha", "x"), 2, "--alpha must be a number"),
    (("--context", "some"), 2, "--context 'some'"),
    (("--part", "z"), 2, "urag has no part 'z'"),
]


@pytest.mark.parametrize(("more", "code", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_cannot_be_asked_for(
    judge: Judge, study: None, more: tuple[str, ...], code: int, message: str
) -> None:
    assert message in judge("score", "urag", "-m", "m", *more, code=code).err


# A judge's own labels

LABELS = ("support", "refute", "neutral")
CONFORMAL = ("conformal", "--task", "stance", "--alpha", "0.5")


@pytest.fixture
def judged(judge: Judge, tmp_path: Path) -> str:
    return _judge_a_data_set(judge, tmp_path, "s")


def _judge_a_data_set(judge: Judge, tmp_path: Path, dataset: str) -> str:
    rows: list[dict[str, Any]] = []
    for n in range(8):
        gold = {"gold": {"stance": LABELS[n % 3]}} if n < 6 else {}
        rows.append({"id": str(n), "claim": f"c{n}", "passages": [{"id": "p", "text": f"t{n}", **gold}]})
    items(judge, tmp_path, dataset, rows)
    labels = {f"{dataset}:{n}/p": LABELS[n % 3] for n in range(8)}
    run = give("stance", labels)
    masses: dict[str, Mapping[str, float]] = {}
    for n in range(8):
        top = {label: 0.8 if label == LABELS[n % 3] else 0.1 for label in LABELS}
        unsure = {"support": 0.5, "refute": 0.4, "neutral": 0.1}
        masses[f"{dataset}:{n}/p"] = {**(top if n != 7 else unsure), "unassigned": 0.0}
    distributed(run, masses)
    return run


def test_ambiguous_units_of_a_judge(judge: Judge, judged: str) -> None:
    result = score(judge, *CONFORMAL, "--ambiguous", "a.csv")
    # Whichever three of the six calibrate, the true label has 0.8: LAC 0.2, so sets hold what has 0.8 or more.
    assert (result.value("accuracy"), result.value("coverage_lac"), result.value("set_size_lac")) == (
        1.0,
        1.0,
        1.0,
    )
    assert result["accuracy"]["n_units"] == 3
    # Unit 6 has 0.8 as well and no gold; unit 7 has 0.5 at most, so its set is empty.
    assert any(
        "1 of 5 units outside the calibration half are ambiguous by LAC: s:7/p" in n
        for n in result.document["notes"]
    )
    with Path("a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["unit_id"], r["label"], r["set"], r["p_support"]) for r in rows] == [
        ("s:7/p", "refute", "", "0.5")
    ]


def test_a_formula_in_a_name_is_not_run_by_a_spreadsheet(judge: Judge, tmp_path: Path) -> None:
    _judge_a_data_set(judge, tmp_path, "=1+1")
    score(judge, *CONFORMAL, "--ambiguous", "a.csv")
    with Path("a.csv").open() as file:
        assert [row["unit_id"] for row in csv.DictReader(file)] == ["'=1+1:7/p"]


def test_a_threshold_for_each_label(judge: Judge, judged: str) -> None:
    # Three questions calibrate, so each label has two at most: k = ceil(3 * 0.9) = 3 > 2, and every set is full.
    words = ("conformal", "--task", "stance", "--thresholds", "label")
    result = score(judge, *words)
    assert (result.value("coverage"), result.value("set_size")) == (1.0, 3.0)
    assert any("in every set" in note for note in result["coverage"]["notes"])
    # One threshold for all, from three questions: their coverage is Beta(2, 2), which has 13.5 % and 86.5 % as
    # its quantiles (x^2 (3 - 2x) = 0.05 at x = 0.1354).
    message = "only 3 calibration questions: the coverage of such sets is between 14% and 86% in nine of ten calibrations"
    assert message in score(judge, *CONFORMAL)["coverage"]["notes"]


def test_what_conformal_needs(judge: Judge, judged: str) -> None:
    assert "--task" in judge("score", "conformal", code=2).err
    assert "unknown task 'nothing'" in judge("score", "conformal", "--task", "nothing", code=2).err
    message = judge("score", *CONFORMAL, "--reference", "alice", code=2).err
    assert "--reference alice: no annotator with this name has any labels; available: gold" in message
    assert "qa_answer has fewer" in judge("score", "conformal", "--task", "qa_answer", code=2).err


def test_probabilities_of_ones_own_system_are_imported(judge: Judge, study: None, tmp_path: Path) -> None:
    rows = [{"id": item, "probabilities": {"A": p, "B": 1 - p}} for item, p in WITH.items()]
    own = ("--system", "own", "--condition", "all")
    outputs(judge, tmp_path, rows, *own)
    calibrated_on_own = score(judge, *URAG, "--part", "sets", "--system", "own")
    judged = score(judge, *URAG, "--part", "sets")
    # The same probabilities make the same sets as those of a run.
    assert {name: calibrated_on_own.value(name) for name in calibrated_on_own.names} == {
        name: judged.value(name) for name in judged.names
    }
    # The text is the most probable letter.
    assert column("SELECT text FROM answers WHERE item_id = 'u:c2' AND system = 'own'") == ["B"]
    # Rounding to two decimals changes each of two probabilities by .005 at most: a sum of 1.01, and no more.
    rounded = write_jsonl(tmp_path / "r.jsonl", [{"id": "t1", "probabilities": {"A": 0.51, "B": 0.5}}])
    judge("systems", "import", rounded, "--system", "rounded", "--condition", "all")
    bad = write_jsonl(tmp_path / "s.jsonl", [{"id": "t1", "probabilities": {"A": 0.51, "B": 0.51}}])
    assert "sum to 1.02" in judge("systems", "import", bad, "--system", "x", code=1).err
    bad = write_jsonl(tmp_path / "q.jsonl", [{"id": "t1", "probabilities": {"A": 0.9, "B": 0.9}}])
    message = judge("systems", "import", bad, "--system", "x", code=1).err
    assert "sum to 1.8" in message


def test_an_imported_answer_that_chooses_nothing_is_wrong(judge: Judge, study: None, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": name, "probabilities": {"A": WITH[name], "B": 1 - WITH[name]}}
        for name in ("c1", "c2", "c3", "t1")
    ]
    rows.append({"id": "t2", "text": " "})
    outputs(judge, tmp_path, rows, "--system", "own", "--condition", "all")
    sets = score(judge, *URAG, "--part", "sets", "--system", "own")
    # t1 has A at 0.95 and is right; t2 is empty: wrong, and of no set.
    assert (sets.value("accuracy"), sets["accuracy"]["n_units"]) == (0.5, 2)
    assert sets["set_size"]["n_units"] == 1
    rows[-1] = {"id": "t2", "text": "I cannot say."}
    outputs(judge, tmp_path, rows, "--system", "o", "--condition", "all")
    assert score(judge, *URAG, "--part", "sets", "--system", "o").value("accuracy") == 0.5
