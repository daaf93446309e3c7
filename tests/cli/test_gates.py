"""Gates: exit 5 with the reason, JUnit and Markdown files, and text from elsewhere that stays text in both."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from judge.cli.score_gates import score_gates, thresholds
from judge.errors import BadInput, BelowThreshold, UsageError
from judge.gates import Files, Gate, decide, output_option
from judge.types import Measure
from tests.cli.helpers import checked
from tests.formats import RAGUARD_CLAIMS, raguard
from tests.suites.helpers import Judge, answers

ZERO = ("raguard", "--part", "zero")


@pytest.fixture
def systems(judge: Judge, tmp_path: Path) -> None:
    """Claims 1 true, 2 false, 3 false. `good` is right on all three, `poor` on claim 1 alone (1/3)."""
    judge("items", "import", "raguard", *raguard(tmp_path))
    right = zip("123", ("true", "false", "false"), strict=True)
    answers(judge, tmp_path, [(n, "good", "zero-context", v) for n, v in right])
    answers(judge, tmp_path, [(n, "poor", "zero-context", "true") for n in "123"])


@pytest.mark.usefixtures("systems")
def test_a_score_below_its_limit_ends_with_5(judge: Judge) -> None:
    out = judge("score", *ZERO, "--system", "good", "--fail-under", "accuracy_zero=0.9")
    assert "passed: accuracy_zero is 1.0000 >= 0.9 (3 units)" in out.err
    low = judge("score", *ZERO, "--system", "poor", "--fail-under", "accuracy_zero=0.9", "--json", code=5)
    assert "failed: accuracy_zero is 0.3333 < 0.9 (3 units)" in low.err
    # The score is printed in any case.
    assert checked(low.out, "score")["measures"]
    assert (
        "accuracy_zero is 1.0000 > 0.5"
        in judge("score", *ZERO, "--system", "good", "--fail-over", "accuracy_zero=0.5", code=5).err
    )


@pytest.mark.usefixtures("systems")
def test_the_lower_bound_is_compared_where_it_is_asked_for(judge: Judge) -> None:
    # Three right answers of three: the exact 97.5 % lower bound is .025 ** (1/3) = .292.
    limit = ("--on", "lower", "--fail-under", "accuracy_zero=0.3")
    failed = judge("score", *ZERO, "--system", "good", *limit, code=5)
    assert "the lower bound of accuracy_zero is 0.2924 < 0.3" in failed.err
    assert (
        "--interval none"
        in judge("score", *ZERO, "--system", "good", *limit, "--interval", "none", code=2).err
    )


@pytest.mark.usefixtures("systems")
def test_limits_that_say_nothing_are_refused(judge: Judge) -> None:
    for typed, told in (
        ("accuracy=0.5", "the score has no measure 'accuracy'; available: accuracy_zero"),
        ("accuracy_zero", "MEASURE=0.6"),
        ("accuracy_zero=nan", "MEASURE=0.6"),
    ):
        assert told in judge("score", *ZERO, "--system", "good", "--fail-under", typed, code=2).err
    board = judge("score", *ZERO, "--system", "all", "--fail-under", "accuracy_zero=0.5", code=2)
    assert "cannot be used with a leaderboard" in board.err
    assert "--fail" in judge("score", *ZERO, "--system", "good", "-o", "g.xml", code=2).err


def test_an_undefined_measure_fails_with_its_reason() -> None:
    limits = thresholds(["kappa=0"], ["rate=1"])
    undefined = Measure("kappa", None, 0, reason="no unit has both labels")
    unbounded = Measure("rate", 0.2, 1, notes=("no interval: it takes two questions",))
    [first, second] = score_gates(limits, [undefined, unbounded], "lower")
    assert (first.passed, first.why) == (False, "kappa is undefined: no unit has both labels")
    told = "rate has no upper bound: no interval: it takes two questions"
    assert (second.passed, second.why) == (False, told)


@pytest.mark.usefixtures("systems")
def test_a_worse_system_fails_and_a_better_one_does_not(judge: Judge, tmp_path: Path) -> None:
    """Twelve more claims on which `good` is right and `poor` is wrong: 14 of 15 questions differ one way.

    McNemar's exact test of 14 against 0 is 2 * .5 ** 14 = .0001; of 2 against 0 (the three claims alone) it is 0.5.
    """
    compare = ("score", "compare", "--axis", "system", "--paper", "raguard")
    gate = ("--fail-if-worse", "accuracy_zero")
    few = judge(*compare, "good", "poor", *gate)
    assert "passed: accuracy_zero: B - A is -0.6667 (p 0.5000, 3 questions): not shown to be worse" in few.err
    folder = tmp_path / "more"
    folder.mkdir()
    claims, documents = raguard(folder)
    with claims.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, RAGUARD_CLAIMS, restval="[]")
        for n in range(10, 22):
            writer.writerow(
                {"Claim ID": n, "Claim": f"Claim {n}.", "Verdict": "False", "Original Verdict": "false"}
            )
    judge("items", "import", "raguard", claims, documents)
    answers(judge, folder, [(str(n), "good", "zero-context", "false") for n in range(10, 22)])
    answers(judge, folder, [(str(n), "poor", "zero-context", "true") for n in range(10, 22)])
    failed = judge(*compare, "good", "poor", *gate, "--json", code=5)
    assert "B - A is -0.9333 (p 0.0001, 15 questions): worse" in failed.err
    [row] = [r for r in checked(failed.out, "score_compare")["rows"] if r["measure"] == "accuracy_zero"]
    assert row["p"] == pytest.approx(2 * 0.5**14)
    assert "not shown to be worse" in judge(*compare, "poor", "good", *gate).err
    assert "requires --axis system" in judge("score", "compare", "good", "poor", *gate, code=2).err
    none = judge(*compare, "good", "poor", "--fail-if-worse", "nothing", code=2).err
    assert "the score has no measure 'nothing'; available: accuracy_zero" in none


@pytest.mark.usefixtures("systems")
def test_files_of_gates_and_an_old_pass_that_does_not_stay(judge: Judge, tmp_path: Path) -> None:
    files = ("-o", "gates.xml", "-o", "summary")
    limits = ("--fail-under", "accuracy_zero=0.9", "--fail-under", "accuracy_zero=0.1")
    judge("score", *ZERO, "--system", "poor", *limits, *files, code=5)
    suite = ElementTree.parse(tmp_path / "gates.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite.get("name") == "judge score raguard of poor"
    bad, good = suite
    assert bad.get("name") == "accuracy_zero >= 0.9"
    assert [part.tag for part in bad] == ["failure"] and [part.tag for part in good] == ["system-out"]
    summary = (tmp_path / "summary").read_text("utf-8")
    assert (
        "| **failed** | accuracy\\_zero &gt;= 0.9 | accuracy\\_zero is 0.3333 &lt; 0.9 (3 units) |" in summary
    )
    # The summaries of several commands follow each other; the test file is of the last command alone.
    judge("score", *ZERO, "--system", "good", *limits, *files)
    assert (tmp_path / "summary").read_text("utf-8").startswith(summary)
    assert ElementTree.parse(tmp_path / "gates.xml").getroot()[0].get("failures") == "0"
    # A command that ends before its gates leaves an error, not the "passed" of the build before.
    judge("score", *ZERO, "--system", "nobody", *limits, *files, code=2)
    ended = ElementTree.parse(tmp_path / "gates.xml").getroot()[0]
    assert (ended.get("tests"), ended.get("failures"), ended.get("errors")) == ("1", "0", "1")
    assert [part.tag for part in ended[0]] == ["error"]
    before = (tmp_path / "study.db").read_bytes()
    assert "the file extension" in judge("score", *ZERO, *limits, "-o", "study.db", code=2).err
    assert (tmp_path / "study.db").read_bytes() == before


def test_text_from_elsewhere_stays_text(tmp_path: Path) -> None:
    hostile = 'a<b> & "c" | x\n# head `tick` @team http://evil.example \x1b[31m \ufffe\u202e end'
    files = Files(junit=(tmp_path / "g.xml",), summaries=(tmp_path / "s.md",))
    with pytest.raises(BelowThreshold):
        decide(hostile, [Gate(hostile, False, hostile)], files)
    case = ElementTree.parse(tmp_path / "g.xml").getroot()[0][0]
    assert case.get("name", "").startswith('a<b> & "c" | x')
    lines = (tmp_path / "s.md").read_text("utf-8").splitlines()
    [row] = [line for line in lines if "failed" in line]
    assert len(lines) == 6 and row.count(" | ") == 2
    for part in ("<b>", "@team", "http://", "\x1b", "\u202e", " `tick`"):
        assert part not in row
    with pytest.raises(UsageError, match=r"g\.xml"):
        decide("t", [], files)
    decide("t", [], Files())


def test_output_sorts_its_files_by_their_names(tmp_path: Path) -> None:
    """A page of the command, JUnit (an error until it is decided) and Markdown that is appended; a page gets the outcome too."""
    got: list[Files] = []

    @click.command()
    @output_option(".html", ".md", help="Write it.")
    def command(output: Files) -> None:
        for page in output.pages:
            page.write_text("the page\n", "utf-8")
        assert "<error" in output.junit[0].read_text("utf-8")
        got.append(output)
        decide("t", [Gate("g", True, "it is so")], output)

    names = ("a.html", "b.md", "c.xml", "summary")
    words = [word for name in names for word in ("-o", str(tmp_path / name))]
    command(words, standalone_mode=False)
    assert [[p.name for p in some] for some in (got[0].pages, got[0].junit, got[0].summaries)] == [
        ["a.html", "b.md"],
        ["c.xml"],
        ["summary"],
    ]
    assert (tmp_path / "a.html").read_text("utf-8") == "the page\n"
    assert (tmp_path / "b.md").read_text("utf-8").startswith("the page\n### t\n")
    assert "<system-out>it is so" in (tmp_path / "c.xml").read_text("utf-8")
    command(words, standalone_mode=False)
    assert (tmp_path / "summary").read_text("utf-8").count("### t\n") == 2
    before = (tmp_path / "c.xml").read_text("utf-8")
    for name, told in (("study.db", "one of .html, .md, .xml"), ("no/a.html", "the folder")):
        with pytest.raises((UsageError, BadInput), match=told):
            command(["-o", str(tmp_path / "c.xml"), "-o", str(tmp_path / name)], standalone_mode=False)
    assert (tmp_path / "c.xml").read_text("utf-8") == before
