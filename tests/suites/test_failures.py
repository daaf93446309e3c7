"""Failures of systems and of judges in a study, for every paper: what once made bad systems look good."""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.helpers import checked
from tests.formats import garage_row, raguard, write_jsonl
from tests.suites.helpers import Judge, answers, commands, give, items, ranking, score


def garage_study(judge: Judge, folder: Path, classes: list[list[str]]) -> None:
    rows = [garage_row(f"g{n}", result) for n, result in enumerate(classes)]
    judge("items", "import", "garage", write_jsonl(folder / "g.jsonl", rows))


def test_answers_on_outdated_and_related_passages(judge: Judge, tmp_path: Path) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"], ["OUTDATED"], ["RELATED-INFORMATION"]])
    answers(judge, tmp_path, [(f"g{n}", "m", "full", "It is so [cite_1].") for n in range(3)])
    units = [f"garage:g{n}@m@full" for n in range(3)]
    give("eligibility", dict.fromkeys(units, "No Issues"))
    give("grounding", {f"{unit}#s0": "supported" for unit in units})
    give("grounding_relevant", {f"{units[0]}#s0": "supported"})
    result = score(judge, "garage", "--part", "raf", "--part", "factuality")
    # All three are supported by their passages; only g0's is one that answers: RAF 1/3 on the same three rows.
    assert (result.value("factuality"), result["factuality"]["n_units"]) == (1.0, 3)
    assert (result.value("raf"), result["raf"]["n_units"]) == (pytest.approx(1 / 3), 3)
    assert result.value("over_summarisation_gap") == pytest.approx(2 / 3)
    # With related passages two of three count; the judge is asked about those alone.
    give("grounding_related", {f"{unit}#s0": "supported" for unit in (units[0], units[2])})
    more = score(judge, "garage", "--part", "raf", "--relevant-set", "answer+related")
    assert more.value("raf") == pytest.approx(2 / 3)
    # The judge calls the first passage relevant and the second not; its third reply cannot be read.
    classes = ("ANSWER-THE-QUESTION", "OUTDATED", "unparsed")
    run = give("garage_relevance", {f"garage:g{n}/cite_1": label for n, label in enumerate(classes)})
    shown = {"relevant": f"{run}:answer"}
    give("grounding_relevant", {f"{units[0]}#s0": "supported"}, options=shown)
    by_judge = score(judge, "garage", "--part", "raf", "--relevance", "judge")
    # g2 may have a relevant passage: no value. g0 1, g1 0.
    assert (by_judge.value("raf"), by_judge["raf"]["n_units"]) == (0.5, 2)


@pytest.mark.parametrize("answer", ["", None], ids=["empty", "missing"])
def test_nine_of_ten_answers_say_nothing(judge: Judge, tmp_path: Path, answer: str | None) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]] * 10)
    rows = [("g0", "m", "full", "It is so [cite_1].")]
    rows += [(f"g{n}", "m", "full", answer) for n in range(1, 10) if answer is not None]
    answers(judge, tmp_path, [*rows, ("g1", "human", "full", "So [cite_1].")])
    unit = "garage:g0@m@full"
    give("eligibility", {unit: "No Issues"})
    give("grounding", {f"{unit}#s0": "supported"})
    give("grounding_relevant", {f"{unit}#s0": "supported"})
    give("deflection", {unit: "attempted"})
    give("citation_each", {f"{unit}#s0/cite_1": "full"})
    result = score(judge, "garage")
    for name in ("eligibility", "unadjusted_factuality", "factuality", "raf"):
        assert (result.value(name), result[name]["n_units"], result[name]["coverage"]) == (0.1, 10, 1.0), name
    assert result.value("deflection_false_positive_rate") == 0.0
    # g1's human answer cites a passage, which nobody here cites: recall 0 of 1.
    assert result.value("attribution_recall_micro") == 0.0
    if answer is None:
        assert "m has no answer to 9 of 10 items; these count as failures" in result.document["notes"]


def test_citations_of_passages_that_do_not_exist(judge: Judge, tmp_path: Path) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION", "IRRELEVANT"]])
    answer = "It is so [cite_1][cite_7][cite_8][cite_9]."
    answers(judge, tmp_path, [("g0", "m", "full", answer), ("g0", "human", "full", "So [cite_1].")])
    unit = "garage:g0@m@full#s0"
    give("grounding", {unit: "supported"})
    give("citation_each", {f"{unit}/cite_1": "full"})
    give("citation_support", {unit: "full"})
    parts = ("--part", "attribution", "--part", "judged_attribution")
    result = score(judge, "garage", *parts)
    # One of four citations is a passage, and right.
    assert result.value("attribution_precision_micro") == 0.25
    assert result.value("attribution_invented_share") == 0.75
    assert result.value("judged_attribution_precision_micro") == 0.25
    assert result.value("judged_attribution_recall_micro") == 1.0
    alce = score(judge, "faithfulness", "--part", "alce", "--part", "trec", "--partial")
    # A sentence with an invented citation is not recalled, and none of its citations is precise.
    assert (alce.value("alce_citation_recall"), alce.value("alce_citation_precision")) == (0.0, 0.0)
    assert alce.value("citation_invented_share") == 0.75
    assert alce.value("trec_support_precision") == 0.25


def test_a_judges_refusal_is_missing_and_a_systems_is_not(judge: Judge, tmp_path: Path) -> None:
    rows = [{"pair_id": f"p{n}", "original": f"Claim {n}.", "counter": f"No claim {n}."} for n in range(3)]
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", rows), "--dataset", "c")
    claims = [f"p{n}-{side}" for n in range(3) for side in ("original", "counter")]
    texts = ["Yes."] * 4 + ["Yes.", ""]
    answers(judge, tmp_path, [(c, "s", "none", text) for c, text in zip(claims, texts, strict=True)])
    labels = ("yes", "yes", "yes", "refused", "yes")
    give("confirmation", {f"c:{c}@s@none": label for c, label in zip(claims, labels, strict=False)})
    result = score(judge, "confirmation", "--part", "answers", "--partial")
    # p0 is biased. The judge refused an answer of p1: nothing is known. An answer of p2 is empty: not valid.
    assert (result.value("cbr"), result["cbr"]["n_units"]) == (1.0, 1)
    assert (result.value("valid_pairs"), result["valid_pairs"]["coverage"]) == (0.5, pytest.approx(2 / 3))


def test_a_claim_for_which_nothing_was_retrieved_is_answered_without_documents(
    judge: Judge, tmp_path: Path
) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))
    ranking(judge, tmp_path, "own", {"1": "2", "3": "4"})
    # Claims 1 true, 2 and 3 false. Without documents 1 and 2 right; with the first one 1 wrong, 3 right.
    give(
        "verdict",
        {"raguard:1": "true", "raguard:2": "false", "raguard:3": "true"},
        options={"context": "none", "system": "m"},
    )
    given = {"context": "top:1:own:retrieve", "system": "m"}
    give("verdict", {"raguard:1": "false", "raguard:3": "false"}, options=given)
    # A pilot of our own is missing data: the step for the last claim is printed.
    words = ("raguard", "-m", "m", "--k", "1", "--part", "zero", "--part", "rag")
    assert "judge answers generate verdict.v4 -m m --context top:1" in commands(judge, *words)[0]
    give("verdict", {"raguard:2": "true"}, options=given)
    result = score(judge, "raguard", "-m", "m", "--k", "1", "--part", "zero", "--part", "rag")
    # Claim 2 was answered without documents, and is wrong: 1/3 against 2/3.
    assert result.value("drop_same_claims_rag_1") == result.value("drop_rag_1") == pytest.approx(-1 / 3)


@pytest.mark.parametrize("command", [("score", "garage"), ("suite", "garage", "-m", "scripted/hash")])
def test_what_is_given_twice_is_never_silently_the_last(
    judge: Judge, tmp_path: Path, command: tuple[str, ...]
) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]])
    message = judge(*command, "--system", "a", "--system", "b", code=None).err
    # Both make a leaderboard of several systems; here the first has no answers.
    assert "'a' has no answers in 'garage'" in message
    assert "--condition was given" in judge(*command, "--condition", "a", "--condition", "b", code=2).err


@pytest.mark.parametrize("sample", [(), ("--sample", "1"), ("--sample", "2")], ids=["first", "1", "2"])
def test_a_sample_takes_whole_pairs(judge: Judge, tmp_path: Path, sample: tuple[str, ...]) -> None:
    rows = [{"pair_id": f"p{n}", "original": f"Claim {n}.", "counter": f"No claim {n}."} for n in range(15)]
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", rows), "--dataset", "c")
    sides = ("original", "counter")
    answers(judge, tmp_path, [(f"p{n}-{side}", "s", "none", "Yes.") for n in range(15) for side in sides])
    give("confirmation", {f"c:p{n}-{side}@s@none": "yes" for n in range(15) for side in sides})
    words = ("--part", "answers", "--system", "s", "-n", "5", *sample, "--json")
    done = checked(judge("suite", "confirmation", "-m", "scripted/hash", *words).out, "score")
    [cbr] = [m for m in done["measures"] if m["measure"] == "cbr"]
    assert (cbr["n_units"], cbr["coverage"]) == (5, 1.0)


def test_a_sample_of_urag_has_both_parts(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"{part}{n}",
            "question": f"Which is it, {part}{n}?",
            "options": {"A": "one", "B": "two"},
            "correct": "A",
            "split": part,
            "passages": [f"About {part}{n}."],
        }
        for part in ("calibration", "test")
        for n in range(30)
    ]
    items(judge, tmp_path, "u", rows)
    for more in ((), ("--sample", "3")):
        options = ("--option", "logprobs=1", "--part", "sets")
        done = judge("suite", "urag", "-m", "scripted/hash", *options, "-n", "20", *more, "--json")
        assert '"n_units": 10' in done.out
    # A file with one part only is refused before a model is asked anything.
    items(judge, tmp_path, "v", rows[:30])
    before = judge("runs", "list").out
    done = judge("suite", "urag", "-m", "scripted/hash", *options, "--dataset", "v", code=2)
    assert "no test questions" in done.err and judge("runs", "list").out == before


def test_imports_say_what_a_paper_still_lacks(judge: Judge, tmp_path: Path) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]])
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": "g0", "text": "So."}])
    done = judge("systems", "import", path, "--system", "m")
    assert "note: 'garage' has no human answers" in done.err
    assert "no human answers" not in judge("systems", "import", path, "--system", "human").err
    claims = raguard(tmp_path)
    judge("items", "import", "raguard", *claims)
    path = write_jsonl(tmp_path / "b.jsonl", [{"id": "raguard:1", "text": "true"}])
    done = judge("systems", "import", path, "--system", "m", "--condition", "top:1")
    assert "note: 'm' lacks zero-context, oracle, ranking for raguard; it has top-1\n" in done.err


def test_all_columns_that_are_missing_are_named_at_once(judge: Judge, tmp_path: Path) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]])
    path = write_jsonl(tmp_path / "a.jsonl", [{"qid": "g0", "output": "So.", "llm": "m"}])
    message = judge("systems", "import", path, code=1).err
    maps = "--map id=COLUMN --map text=COLUMN --map system=COLUMN"
    assert f"no id, text, system: {maps}; its keys are: qid, output, llm" in message
    named = ("--map", "id=qid", "--map", "text=output", "--map", "system=llm")
    judge("systems", "import", path, *named)
    message = judge(
        "systems", "import", path, *named, "--map", "cited=refs", "--map", "context=docs", code=2
    ).err
    assert "--map cited=refs --map context=docs: no row has 'refs', 'docs'" in message


def test_a_partial_score_keeps_raf_below_factuality(judge: Judge, tmp_path: Path) -> None:
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]] * 2)
    answers(judge, tmp_path, [("g0", "m", "full", "It is so."), ("g1", "m", "full", "It is so.")])
    g0, g1 = (f"garage:g{n}@m@full" for n in range(2))
    give("eligibility", {g0: "No Issues", g1: "No Issues"})
    give("grounding", {f"{g0}#s0": "supported", f"{g1}#s0": "unsupported"})
    result = score(judge, "garage", "--part", "factuality", "--part", "raf", "--partial")
    # Nobody has judged against the relevant passages: factuality has both rows, and RAF none.
    assert (result.value("factuality"), result["factuality"]["n_units"]) == (0.5, 2)
    assert "raf" not in result.names
    give("grounding_relevant", {f"{g0}#s0": "supported"})
    result = score(judge, "garage", "--part", "factuality", "--part", "raf", "--partial")
    # g1 waits: both rest on g0. RAF 1/1 beside factuality 1/2 would exceed it.
    for name in ("factuality", "raf"):
        assert (result.value(name), result[name]["n_units"], result[name]["coverage"]) == (1.0, 1, 0.5), name


def test_a_question_without_a_reference_is_in_no_cell(judge: Judge, tmp_path: Path) -> None:
    passage = {"text": "It is red.", "gold": {"support": "supported"}}
    rows = [
        {"id": "q0", "question": "Q0?", "passages": [passage], "reference_answers": ["red"]},
        {"id": "q1", "question": "Q1?", "passages": [passage]},
    ]
    items(judge, tmp_path, "m", rows)
    answers(judge, tmp_path, [("q0", "s", condition, "red") for condition in ("none", "oracle", "fixed5")])
    result = score(judge, "mirage", "--system", "s", "--part", "adaptability")
    # q1 has no answer, and nothing that one could be measured against: only q0 counts.
    acceptability = result["context_acceptability"]
    assert (acceptability["value"], acceptability["n_units"], acceptability["coverage"]) == (1.0, 1, 0.5)


def test_a_score_says_first_which_labels_are_missing_and_asks_again_in_the_same_way(
    judge: Judge, tmp_path: Path
) -> None:
    """The command asks about the same part only, with the run's own settings, and makes no other run."""
    garage_study(judge, tmp_path, [["ANSWER-THE-QUESTION"]] * 3)
    answers(judge, tmp_path, [(f"g{n}", "m", "full", "It is so [cite_1].") for n in range(3)])
    part = ("--part", "eligibility")
    judge(
        "suite",
        "garage",
        "-m",
        "scripted/garbage",
        *part,
        "--system",
        "m",
        "--answers",
        "json",
        code=None,
    )
    printed = judge("score", "garage", *part).out
    line = next(line for line in printed.splitlines() if "to ask again: judge " in line)
    assert "3 unparsed of 3 units" in line
    assert printed.index("to ask again") < printed.index("measure")
    words = shlex.split(line.partition("to ask again: judge ")[2])
    assert tuple(words[words.index("--part") :][:2]) == ("--part", "eligibility")
    judge(*words, code=None)
    with closing(sqlite3.connect("study.db")) as conn:
        assert conn.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert conn.execute("SELECT max(attempt) FROM judgements").fetchone()[0] >= 1


def test_a_suite_chooses_one_of_several_rankings(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))
    for name in ("own", "other"):
        ranking(judge, tmp_path, name, {"1": "2", "3": "4"})
    words = ("suite", "raguard", "-m", "scripted/hash", "--estimate")
    assert "--paper-option ranking=NAME" in judge(*words, code=2).err
    assert "no option 'rankin'" in judge(*words, "--paper-option", "rankin=own", code=2).err
    judge(*words, "--paper-option", "ranking=own")
