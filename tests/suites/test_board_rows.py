"""Which rows a leaderboard compares: answers that are missing, sentences that could not be read, measures that one lacks."""

import csv
import io
import re
from pathlib import Path

import pytest

from judge.papers.engine.papers import PAPERS
from tests.answers.helpers import column
from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, board, cells, give, people

N = 8


@pytest.fixture
def items(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {**garage_row(f"g{n}", ["ANSWER-THE-QUESTION"]), "question_type": "fast" if n % 2 else "slow"}
        for n in range(N)
    ]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))


@pytest.mark.usefixtures("items")
def test_an_answer_that_is_missing_counts_on_the_shared_rows_too(judge: Judge, tmp_path: Path) -> None:
    texts = [(f"g{n}", "whole", "full", "It is so [cite_1].") for n in range(N)]
    texts += [(f"g{n}", "lazy", "full", "It is so [cite_1].") for n in range(2)]
    answers(judge, tmp_path, texts)
    give("eligibility", {f"garage:{i}@{s}@full": "No Issues" for i, s, _, _ in texts})
    result = cells(
        board(judge, "garage", "--part", "eligibility", "--system", "whole", "--system", "lazy"),
        "eligibility",
    )
    # lazy answers 2 of 8; the six others are its failures, and rows like any other.
    assert (result["lazy"]["shared"]["value"], result["lazy"]["shared"]["n_units"]) == (2 / 8, 8)
    assert (result["whole"]["shared"]["value"], result["whole"]["shared"]["n_units"]) == (1.0, 8)
    # By hand: they differ on six questions, all one way; the exact test of McNemar gives 2 / 2^6 = .03125.
    assert result["lazy"]["p"] == pytest.approx(0.03125, abs=1e-5)
    assert result["lazy"]["mark"] == "worse"


@pytest.mark.usefixtures("items")
def test_a_sentence_that_could_not_be_read_takes_its_answer_from_everybody(
    judge: Judge, tmp_path: Path
) -> None:
    both = "Alpha holds [cite_1]. Beta holds [cite_1]."
    answers(judge, tmp_path, [(f"g{n}", s, "full", both) for n in range(N) for s in ("a", "b")])
    labels = {f"garage:g{n}@{s}@full#s{k}": "supported" for n in range(N) for s in ("a", "b") for k in (0, 1)}
    assert set(column("SELECT unit_id FROM units WHERE kind = 'sentence'")) == labels.keys()
    # a: the second sentences of g0 and g1 are unsupported, and the judge could read neither; b's is read.
    labels["garage:g0@a@full#s1"], labels["garage:g1@a@full#s1"] = "unparsed", "refused"
    labels["garage:g0@b@full#s1"] = labels["garage:g1@b@full#s1"] = "unsupported"
    give("grounding", labels)
    result = cells(
        board(judge, "garage", "--part", "grounding", "--system", "a", "--system", "b"), "sentence_supported"
    )
    # Shared: g2 to g7 with 12 sentences each, all supported. With their readable halves a would have 14/14, b 14/16.
    for name in ("a", "b"):
        assert (result[name]["shared"]["value"], result[name]["shared"]["n_units"]) == (1.0, 12)
    assert (result["a"]["own"]["n_units"], result["b"]["own"]["value"]) == (14, 14 / 16)


@pytest.mark.usefixtures("items")
def test_a_measure_or_a_stratum_that_one_lacks_is_named(judge: Judge, tmp_path: Path) -> None:
    texts = [(f"g{n}", "whole", "full", "It is so [cite_1].") for n in range(N)]
    texts += [(f"g{n}", "slow", "full", "It is so [cite_1].") for n in range(N)]
    answers(judge, tmp_path, texts)
    # The judge has labelled every second answer of `slow`: those to the slow questions.
    units = [
        f"garage:g{n}@{s}@full" for n in range(N) for s in ("whole", "slow") if s == "whole" or n % 2 == 0
    ]
    give("eligibility", dict.fromkeys(units, "No Issues"))
    words = ("--part", "eligibility", "--by", "question_type", "--partial")
    arguments = (*words, "--system", "whole", "--system", "slow")
    result = cells(board(judge, "garage", *arguments), "eligibility", "fast")
    assert result["whole"]["own"]["value"] == 1.0
    assert result["slow"]["own"]["n_units"] == 0
    for cell in result.values():
        assert cell["shared"]["value"] is None
        assert "no value for slow" in cell["shared"]["reason"]
        assert cell["mark"] is None
    assert "eligibility (fast): no rows are shared" in judge("score", "garage", *arguments).out
    for name in ("b.md", "b.html", "b.csv"):
        judge("score", "garage", *arguments, "-o", name)
        assert "no value for slow" in (tmp_path / name).read_text("utf-8")


@pytest.mark.usefixtures("items")
def test_all_with_the_best_value_are_best_in_any_order(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", s, "full", "So.") for n in range(N) for s in "abc"])
    bad = {"a": {0, 1}, "b": {2, 3}, "c": {0, 1, 2, 4, 5, 6}}
    labels = {
        f"garage:g{n}@{s}@full": "Major Issue(s)" if n in bad[s] else "No Issues"
        for n in range(N)
        for s in bad
    }
    give("eligibility", labels)
    both = [
        cells(
            board(judge, "garage", "--part", "eligibility", *(w for s in order for w in ("--system", s))),
            "eligibility",
        )
        for order in ("abc", "cba")
    ]
    assert both[0] == both[1]
    assert {n: c["mark"] for n, c in both[0].items() if n != "c"} == {"a": "best", "b": "best"}


@pytest.mark.usefixtures("items")
def test_a_corrected_value_stands_in_the_terminal_and_every_file(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", s, "full", "So.") for n in range(N) for s in ("a", "b")])
    give("eligibility", {f"garage:g{n}@{s}@full": "No Issues" for n in range(N) for s in ("a", "b")})
    labels = {
        f"garage:g{n}@{s}@full": "No Issues" if n % 4 or s == "b" else "Major Issue(s)"
        for s in ("a", "b")
        for n in range(N)
    }
    people("eligibility", {"ann": labels})
    words = ("score", "garage", "--part", "eligibility", "--system", "all", "--reference", "ann")
    # The judge says 1 of all; ann, who labelled all, says 6 of 8 for a (not g0, g4): the corrected value is ann's.
    assert "0.750" in judge(*words).out
    for name in ("b.md", "b.html", "b.tex", "b.csv"):
        judge(*words, "-o", name)
        assert "0.75" in (tmp_path / name).read_text("utf-8"), name
    [line] = [
        row
        for row in csv.DictReader(io.StringIO((tmp_path / "b.csv").read_text("utf-8")))
        if row["contender"] == "a"
    ]
    assert float(line["corrected"]) == pytest.approx(0.75)


@pytest.mark.usefixtures("items")
def test_corrected_values_decide_the_order_and_the_best(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", s, "full", "So.") for n in range(N) for s in ("a", "b")])
    fair, poor = "No Issues", "Major Issue(s)"
    # The judge prefers a: 8 of 8 against 4. ann, who labelled all, prefers b: 6 of 8 against 8.
    give(
        "eligibility",
        {f"garage:g{n}@{s}@full": fair if s == "a" or n % 2 else poor for n in range(N) for s in "ab"},
    )
    labels = {f"garage:g{n}@{s}@full": fair if n % 4 or s == "b" else poor for s in "ab" for n in range(N)}
    people("eligibility", {"ann": labels})
    words = ("garage", "--part", "eligibility", "--system", "all", "--reference", "ann")
    result = board(judge, *words)
    [row] = [row for row in result["rows"] if row["measure"] == "eligibility"]
    both = {cell["contender"]: cell for cell in row["cells"]}
    assert row["ordered_by"] == "corrected" and both["b"]["mark"] == "best"
    # The paired tests are of the judge's values, which say the opposite.
    assert both["a"]["p_holm"] is both["a"]["difference_to_best"] is None
    out = judge("score", *words).out
    assert "corrected values" in out and "ann" in out
    lines = [line.split() for line in out.splitlines() if line.startswith("eligibility")]
    assert [line[2] if line[1] in "↑↓" else line[1] for line in lines] == ["b", "a"]
    judge("score", *words, "-o", "b.tex")
    (table,) = re.findall(
        r"caption\{Corrected with human labels\}.*?end\{tabular\}\n",
        (tmp_path / "b.tex").read_text("utf-8"),
        re.S,
    )
    # The corrected value of b is the best, so it is bold there, and nothing is bold among the judge's values.
    assert r"b & \textbf{1.000*" in table and "a & 0.750" in table


@pytest.mark.usefixtures("items")
def test_the_board_says_that_the_judge_decides_where_a_corrected_value_lacks(
    judge: Judge, tmp_path: Path
) -> None:
    answers(judge, tmp_path, [(f"g{n}", s, "full", "So.") for n in range(N) for s in ("a", "b")])
    give("eligibility", {f"garage:g{n}@{s}@full": "No Issues" for n in range(N) for s in "ab"})
    people("eligibility", {"ann": {f"garage:g{n}@b@full": "No Issues" for n in range(N)}})
    words = ("garage", "--part", "eligibility", "--system", "all", "--reference", "ann")
    [row] = [row for row in board(judge, *words)["rows"] if row["measure"] == "eligibility"]
    assert row["ordered_by"] == "judge"
    assert "not every system has a corrected value" in judge("score", *words).out


@pytest.mark.usefixtures("items")
def test_the_papers_own_rows_stand_below_in_the_terminal(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", s, "full", "So.") for n in range(N) for s in ("a", "b")])
    give("eligibility", {f"garage:g{n}@{s}@full": "No Issues" for n in range(N) for s in ("a", "b")})
    out = judge("score", "garage", "--part", "eligibility", "--system", "all").out
    # GaRAGe prints 92.47 % of GPT-4o's answers as eligible.
    [line] = [line for line in out.splitlines() if line.startswith("GPT-4o")]
    assert "0.925" in line


def test_directions_of_conformal_sets() -> None:
    paper = PAPERS["conformal"]
    names = ("accuracy", "set_size_lac", "set_size[support]", "coverage", "coverage_aps", "empty_sets_lac")
    # A set that is smaller at the same coverage says more; coverage has a target, and no better side.
    assert [paper.better(name) for name in names] == [1, -1, -1, 0, 0, 0]
