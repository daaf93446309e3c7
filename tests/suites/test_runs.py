"""Which runs a score reads, what it says is missing, several judges, and two judges compared."""

import csv
import io
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.cli.helpers import checked
from tests.suites.helpers import Judge, commands, give, import_garage, items, score

A1, A2, A3 = ("garage:g1@m@full", "garage:g2@m@full", "garage:g3@m@full")
DEFLECTION = ("garage", "--part", "deflection")
FALSE_POSITIVES = "deflection_false_positive_rate"


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)


def deflected(first: str, second: str, third: str = "missing", **options: object) -> str:
    return give("deflection", {A1: first, A2: second, A3: third}, **options)  # type: ignore[arg-type]


def test_the_latest_complete_run_counts(judge: Judge) -> None:
    complete = deflected("missing", "missing", options={"seed": 1})
    give("deflection", {A1: "attempted"}, options={"seed": 2})
    result = score(judge, *DEFLECTION)
    assert [run["run"] for run in result.document["runs"]] == [complete]
    assert result.value(FALSE_POSITIVES) == 1.0
    newer = deflected("attempted", "missing", options={"seed": 3})
    result = score(judge, *DEFLECTION)
    assert [run["run"] for run in result.document["runs"]] == [newer]
    assert result.value(FALSE_POSITIVES) == 0.5
    assert score(judge, *DEFLECTION, "--run", complete).value(FALSE_POSITIVES) == 1.0


def test_what_is_missing_goes_on_with_the_run_that_is_there(judge: Judge) -> None:
    give("deflection", {A1: "attempted"}, options={"temperature": 0.7, "label_order": "reversed"})
    [line] = commands(judge, *DEFLECTION)
    words = shlex.split(line)
    assert words[:5] == ["judge", "run", "deflection.v2", "-m", "m"]
    assert words[words.index("--temperature") + 1] == "0.7"
    assert words[words.index("--label-order") + 1] == "reversed"
    partial = score(judge, *DEFLECTION, "--partial")
    assert (partial.value(FALSE_POSITIVES), partial[FALSE_POSITIVES]["coverage"]) == (0.0, 0.5)
    assert partial[FALSE_POSITIVES]["missing"] == {"not judged": 1}


def test_the_commands_work_as_they_are_printed(judge: Judge) -> None:
    for line in commands(judge, "garage", "-m", "scripted/hash"):
        judge(*shlex.split(line)[1:])
    result = score(judge, "garage", "-m", "scripted/hash")
    # Only sentences of answerable rows are judged: two of g1, one of g2.
    counts = {run["task"]: run["counts"] for run in result.document["runs"]}
    assert counts["grounding.v2"] == {"ok": 3}
    assert counts["deflection.v2"] == {"ok": 3}


def test_a_failed_call_is_no_missing_run(judge: Judge) -> None:
    deflected("attempted", "failed")
    result = score(judge, *DEFLECTION)[FALSE_POSITIVES]
    assert (result["value"], result["missing"]) == (0.0, {"failed": 1})


def test_two_judges_are_not_mixed_silently(judge: Judge) -> None:
    deflected("missing", "missing", model="one")
    deflected("attempted", "missing", model="two")
    message = judge("score", *DEFLECTION, code=2).err
    assert "deflection" in message and "--run" in message and "two, one" in message
    assert score(judge, *DEFLECTION, "-m", "one").value(FALSE_POSITIVES) == 1.0
    several = judge("score", *DEFLECTION, "-m", "one", "-m", "two", code=2).err
    assert "choose --judges mean" in several


def test_the_mean_over_judges(judge: Judge) -> None:
    deflected("missing", "missing", model="one")
    deflected("attempted", "missing", model="two")
    result = score(judge, *DEFLECTION, "-m", "one", "-m", "two", "--judges", "mean")
    # 1 by the first, 1/2 by the second.
    assert result.value(FALSE_POSITIVES) == 0.75
    assert "mean over 2 judges: one, two" in result[FALSE_POSITIVES]["notes"]
    runs = [r["run"] for r in result.document["runs"]]
    named = [word for run in runs for word in ("--run", run)]
    assert score(judge, *DEFLECTION, *named, "--judges", "mean").value(FALSE_POSITIVES) == 0.75
    assert "--judges" in judge("score", *DEFLECTION, "-m", "one", "--judges", "mean", code=2).err


def test_facts_ineligible_only_when_all_judges_say_so(judge: Judge) -> None:
    grounded = {f"{A1}#s0": "supported", f"{A1}#s1": "supported", f"{A2}#s0": "supported"}
    for model, first, second in (
        ("one", "Major Issue(s)", "Major Issue(s)"),
        ("two", "No Issues", "Major Issue(s)"),
    ):
        give("eligibility", {A1: first, A2: second}, model=model)
        give("grounding", grounded, model=model)
    both = shlex.split("garage --part factuality --part eligibility --part grounding -m one -m two")
    result = score(judge, *both, "--judges", "mean")
    # g2 is ineligible by both and inaccurate; g1 by one only, so it counts as grounded by both: 1/2 by each.
    assert result.value("factuality") == 0.5
    assert result.value("ineligible_by_all") == 0.5
    # Eligibility itself is the mean over judges: 0 and 1/2.
    assert result.value("eligibility") == 0.25


def test_two_judges_compared(judge: Judge) -> None:
    first = deflected("missing", "missing", model="one")
    second = deflected("attempted", "missing", "unparsed", model="two")
    for a, b in (("one", "two"), (first, second)):
        result = checked(judge("score", "compare", a, b, "--json").out, "score_compare")
        rows = {(r["paper"], r["measure"]): r for r in result["rows"]}
        row = rows["garage", FALSE_POSITIVES]
        assert (row["first"]["value"], row["second"]["value"], row["difference"]["value"]) == (1.0, 0.5, -0.5)
        # g3, the only insufficient row, has no label by the second judge.
        assert rows["garage", "deflection_true_positive_rate"]["difference"]["value"] is None
        # Labels on the two answers that both have: missing 2 of 2 and 1 of 2.
        assert rows["labels", "deflection[missing]"]["difference"]["value"] == -0.5
        assert rows["labels", "deflection[missing]"]["difference"]["coverage"] == pytest.approx(2 / 3)
    judge("score", "compare", "one", "two", "-o", "swap.csv")
    lines = list(csv.DictReader(io.StringIO(Path("swap.csv").read_text("utf-8"))))
    assert {line["measure"]: line["B - A"] for line in lines}[FALSE_POSITIVES] == "-0.500"


def test_comparing_what_cannot_be_compared(judge: Judge) -> None:
    run = deflected("missing", "missing", model="one")
    give("eligibility", {A1: "No Issues"}, model="two")
    message = judge("score", "compare", "one", "two", code=2).err
    assert "one (deflection)" in message and "two (eligibility)" in message
    assert "are the same" in judge("score", "compare", run, run, code=2).err
    assert "no run is called 'three'" in judge("score", "compare", "one", "three", code=2).err


def test_suite_does_what_is_missing_once(judge: Judge) -> None:
    done = judge("suite", *DEFLECTION, "-m", "scripted/hash", "--json")
    assert "suite: deflection has 3 units without a judgement by scripted/hash" in done.err
    again = judge("suite", *DEFLECTION, "-m", "scripted/hash", "--json")
    assert again.err == ""
    assert checked(again.out, "score") == checked(done.out, "score")


def test_suite_stops_at_the_budget_and_goes_on(judge: Judge) -> None:
    stopped = judge("suite", "garage", "-m", "scripted/hash", "--max", "300tokens", code=None)
    assert stopped.code == 4
    assert stopped.out == ""
    assert "to resume: judge suite garage -m scripted/hash --max 300tokens" in stopped.err
    result = score_of_suite(judge)
    assert result["runs"]


def score_of_suite(judge: Judge) -> dict[str, object]:
    document: dict[str, object] = checked(
        judge("suite", "garage", "-m", "scripted/hash", "--json").out, "score"
    )
    return document


def test_suite_makes_the_answers_when_there_are_none(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "own", [{"id": "q", "question": "Why?", "passages": ["So."]}])
    done = judge("suite", *DEFLECTION, "-m", "scripted/first", "--dataset", "own", "--json")
    result = checked(done.out, "score")
    assert (result["system"], result["condition"]) == ("scripted/first", "all")


def test_answers_that_were_not_all_made_are_missing_too(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "own", [{"id": q, "question": f"{q}?", "passages": ["So."]} for q in "pq"])
    generate = "answers generate qa_answer -m scripted/hash --context all"
    judge(*shlex.split(generate), "--where", "item_id = 'own:p'")
    lines = commands(judge, *DEFLECTION, "--dataset", "own", "-m", "scripted/hash")
    assert lines[0].startswith("judge answers generate qa_answer.v2 -m scripted/hash --context all ")
    result = checked(
        judge("suite", *DEFLECTION, "--dataset", "own", "-m", "scripted/hash", "--json").out, "score"
    )
    [rate] = [m for m in result["measures"] if m["measure"] == FALSE_POSITIVES]
    assert rate["n_units"] == 2


def test_what_is_asked_for_wrongly(judge: Judge) -> None:
    deflected("missing", "missing")
    for words, message in (
        (("--part", "nothing"), "garage has no part 'nothing'; available: eligibility"),
        (("--system", "x"), "available: m (full)"),
        (("--dataset", "x"), "no data set 'x'; available: garage"),
        (("--run", "zzz"), "no run is called 'zzz'"),
    ):
        error = judge("score", *DEFLECTION, *words, code=2).err
        assert error.startswith("judge: ") and message in error, words
    assert "no such study" in judge("score", "garage", "-d", "none.db", code=1).err
    message = judge("suite", *DEFLECTION, "-m", "scripted/hash", "--sample", "1", code=2).err
    assert "--sample requires -n" in message
    message = judge("suite", *DEFLECTION, "-m", "scripted/hash", "-n", "0%", code=2).err
    assert "or a share such as 10%" in message


def test_the_table_says_whose_numbers_are_whose(judge: Judge) -> None:
    deflected("attempted", "unparsed")
    out = judge("score", *DEFLECTION).out
    assert "1 unparsed" in out
    assert "ANOTHER judge" in out and "GPT-4o" in out
    assert "readings: relevant-set answer, relevance gold, unparsed unscored" in out
    judge("score", *DEFLECTION, "-o", "one.csv", "-o", "one.json")
    rows = list(csv.DictReader(io.StringIO(Path("one.csv").read_text("utf-8"))))
    assert {r["measure"]: r["value"] for r in rows} == {
        "deflection_true_positive_rate": "1.0",
        FALSE_POSITIVES: "0.0",
    }
    document = checked(Path("one.json").read_text("utf-8"), "score")
    assert document == checked(judge("score", *DEFLECTION, "--json").out, "score")


def test_scores_name_their_runs_and_what_they_were_asked(judge: Judge) -> None:
    plain = deflected("missing", "missing", options={"temperature": 0.0})
    warm = deflected("attempted", "missing", options={"temperature": 0.7, "guidelines": "shown"})
    result = score(judge, *DEFLECTION)
    [run] = result.document["runs"]
    assert (run["run"], run["settings"], run["units"]) == (warm, {"temperature": 0.7, "guidelines": True}, 3)
    assert result.document["other_runs"] == [f"{plain} (deflection.v2, defaults)"]
    [line] = [t for t in judge("score", *DEFLECTION).out.splitlines() if t.startswith("runs used")]
    assert line.startswith(f"runs used: {warm} (--temperature 0.7 --guidelines)") and plain in line
    rows = {r["run_id"]: r["settings"] for r in checked(judge("runs", "list", "--json").out, "runs")["rows"]}
    assert rows == {plain: "defaults", warm: "--temperature 0.7 --guidelines"}
    assert "--temperature 0.7" in judge("runs", "list").out


def test_the_newest_complete_set_of_equal_settings_counts(judge: Judge) -> None:
    """Eligibility with seeds 1 and 2, deflection with seeds 1 and 3: only seed 1 has both parts."""
    parts = ("garage", "--part", "deflection", "--part", "eligibility")
    every = {A1: "No Issues", A2: "No Issues", A3: "No Issues"}
    humans = {"garage:g1@human@full": "No Issues", "garage:g2@human@full": "No Issues"}
    first = give("eligibility", every | humans, options={"seed": 1})
    other = deflected("missing", "missing", options={"seed": 1})
    give("eligibility", every | humans, options={"seed": 2})
    deflected("attempted", "attempted", options={"seed": 3})
    result = score(judge, *parts)
    assert {run["run"] for run in result.document["runs"]} == {first, other}
    assert result.value(FALSE_POSITIVES) == 1.0


def test_an_incomplete_run_with_other_settings_is_not_mixed_in(judge: Judge) -> None:
    """Eligibility by seed 1 (whole) and seed 2 (begun), deflection by seed 2 alone: no set has both parts."""
    eligible = {A1: "No Issues", A2: "No Issues"}
    first = give("eligibility", eligible, options={"seed": 1})
    give("eligibility", {A1: "Major Issue(s)"}, options={"seed": 2})
    second = deflected("missing", "missing", options={"seed": 2})
    words = ("garage", "--part", "eligibility", "--part", "deflection")
    message = judge("score", *words, code=2).err
    assert "--run RUN" in message
    assert f"{first} (--seed 1)" in message and f"{second} (--seed 2)" in message
    # Named runs are taken as they are, and the part without one may not mix either.
    named = score(judge, *words, "--run", first, "--run", second)
    assert [run["settings"] for run in named.document["runs"]] == [{"seed": 1}, {"seed": 2}]
    # A partial score has a set with both: seed 2, on one of two answers.
    partial = score(judge, *words, "--partial")
    assert [run["settings"] for run in partial.document["runs"]] == [{"seed": 2}] * 2
    assert (partial.value("eligibility"), partial["eligibility"]["coverage"]) == (0.0, 0.5)


def test_a_part_without_a_run_begins_with_the_settings_of_the_others(judge: Judge) -> None:
    deflected("missing", "missing", options={"seed": 7, "temperature": 0.5})
    [line] = commands(judge, "garage", "--part", "eligibility", "--part", "deflection")
    assert line.startswith("judge run eligibility -m m ")
    words = shlex.split(line)
    assert (words[words.index("--seed") + 1], words[words.index("--temperature") + 1]) == ("7", "0.5")


def test_the_newest_setting_is_that_of_the_judge(judge: Judge) -> None:
    """m has both parts by seed 1 and, newer, by seed 2; another judge's newest run has seed 1."""
    for seed, eligible in ((1, "Major Issue(s)"), (2, "No Issues")):
        give("eligibility", {A1: eligible, A2: eligible}, options={"seed": seed})
        deflected("missing", "missing", options={"seed": seed})
    deflected("missing", "missing", model="other", options={"seed": 1})
    result = score(judge, "garage", "--part", "eligibility", "--part", "deflection", "-m", "m")
    assert result.value("eligibility") == 1.0
    assert [run["settings"] for run in result.document["runs"]] == [{"seed": 2}] * 2


def test_parts_with_different_settings_are_named_in_a_note(judge: Judge) -> None:
    """One run fits each part, so that none is chosen; the table says that they were asked differently."""
    parts = ("garage", "--part", "deflection", "--part", "eligibility")
    every = dict.fromkeys((A1, A2, A3, "garage:g1@human@full", "garage:g2@human@full"), "No Issues")
    give("eligibility", every, options={"seed": 1})
    same = deflected("missing", "missing", options={"seed": 1})
    message = "the runs of the judge m have different settings: "
    assert not any(message in text for text in score(judge, *parts).document["notes"])
    other = deflected("missing", "missing", options={"seed": 3})
    result = score(judge, *parts, "--run", other)
    assert f"{message}eligibility: --seed 1; deflection: --seed 3" in result.document["notes"]
    assert message in judge("score", *parts, "--run", other).out
    with sqlite3.connect("study.db") as conn:
        conn.execute("DELETE FROM labels WHERE annotator_id = ?", [same])
        conn.execute("DELETE FROM judgements WHERE run_id = ?", [same])
        conn.execute("DELETE FROM runs WHERE run_id = ?", [same])
    assert f"{message}eligibility: --seed 1; deflection: --seed 3" in score(judge, *parts).document["notes"]


def test_a_leaderboard_says_that_its_contenders_were_judged_differently(judge: Judge) -> None:
    for model, seed in (("one", 1), ("two", 2)):
        deflected("missing", "missing", model=model, options={"seed": seed})
    words = ("score", *DEFLECTION, "-m", "one", "-m", "two", "--judges", "each", "--interval", "none")
    notes = checked(judge(*words, "--json").out, "board")["notes"]
    assert "the contenders' judge runs have different settings: one: --seed 1; two: --seed 2" in notes
