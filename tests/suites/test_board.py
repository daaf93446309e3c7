"""The leaderboard: shared rows, the paired test, its files, and what is refused. Numbers are derived beside them."""

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from judge.labels import reader
from tests.cli.helpers import checked
from tests.formats import garage_row, write_jsonl
from tests.real import require
from tests.suites.helpers import Judge, answers, board, cells, give, people, ranking

N = 12
SYSTEMS = {"good": 0, "fair": 3, "poor": 9}
"""System -> how many of its 12 answers have a major issue (the first ones)."""


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {**garage_row(f"g{n:02}", ["ANSWER-THE-QUESTION"]), "question_type": "fast" if n % 2 else "slow"}
        for n in range(N)
    ]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    texts = [
        (f"g{n:02}", system, "full", f"{system} says so [cite_1].") for system in SYSTEMS for n in range(N)
    ]
    answers(judge, tmp_path, texts)


def unit(n: int, system: str) -> str:
    return f"garage:g{n:02}@{system}@full"


def label(**changed: str) -> None:
    """Eligibility of every answer; `changed`: system_n -> another status or label."""
    given = {
        unit(n, system): "Major Issue(s)" if n < bad else "No Issues"
        for system, bad in SYSTEMS.items()
        for n in range(N)
    }
    for name, value in changed.items():
        system, _, n = name.partition("_")
        given[unit(int(n), system)] = value
    give("eligibility", given)


@pytest.mark.usefixtures("study")
def test_a_run_is_read_once_however_many_systems_there_are(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    label()
    n_read = []

    def counted(pages: Iterable[list[tuple[int, str]]]) -> reader.LabelCodes:
        kept = list(pages)
        n_read.append(sum(map(len, kept)))
        return code_rows(kept)

    code_rows = reader.code_rows
    monkeypatch.setattr(reader, "code_rows", counted)
    board(judge, *ELIGIBILITY, "--system", "all")
    # One label for each answer. If every system read the whole run, there would be three times as many.
    assert sum(n_read) == N * len(SYSTEMS)


ELIGIBILITY = ("garage", "--part", "eligibility")


@pytest.mark.usefixtures("study")
def test_all_systems_with_the_paired_test_and_holm(judge: Judge) -> None:
    label()
    result = cells(board(judge, *ELIGIBILITY, "--system", "all"), "eligibility")
    assert {name: c["shared"]["value"] for name, c in result.items()} == {
        "good": 1.0,
        "fair": 0.75,
        "poor": 0.25,
    }
    # McNemar's exact test of right or wrong: fair differs from good on 3 questions, all one way, p = 2 / 2^3; poor on 9,
    # p = 2 / 2^9. Two tests (Holm): the smaller p counts twice, the greater once.
    p = {"fair": 2 / 2**3, "poor": 2 / 2**9}
    assert (result["good"]["mark"], result["good"]["p_holm"]) == ("best", None)
    assert (result["fair"]["mark"], result["fair"]["p_holm"]) == ("tied", pytest.approx(p["fair"], abs=1e-12))
    assert (result["poor"]["mark"], result["poor"]["p_holm"]) == (
        "worse",
        pytest.approx(2 * p["poor"], abs=1e-12),
    )
    assert result["poor"]["difference_to_best"] == pytest.approx(-0.75)


@pytest.mark.usefixtures("study")
def test_what_one_lacks_is_compared_for_none_and_own_rows_stand_beside(judge: Judge) -> None:
    # The judge's reply on poor's first nine (bad) answers cannot be read: on its own rows poor is perfect.
    label(**{f"poor_{n}": "unparsed" for n in range(9)})
    result = cells(board(judge, *ELIGIBILITY, "--system", "poor", "--system", "fair"), "eligibility")
    assert (result["poor"]["own"]["value"], result["poor"]["own"]["n_units"]) == (1.0, 3)
    assert (result["fair"]["own"]["value"], result["fair"]["own"]["n_units"]) == (0.75, 12)
    # On the three shared rows fair is perfect too: no system is better for what its judge could not read.
    assert {name: (c["shared"]["value"], c["shared"]["n_units"]) for name, c in result.items()} == {
        "poor": (1.0, 3),
        "fair": (1.0, 3),
    }
    assert {c["mark"] for c in result.values()} == {"best"}


@pytest.mark.usefixtures("study")
def test_the_order_of_systems_changes_no_number(judge: Judge) -> None:
    label(fair_5="refused")
    first = cells(
        board(judge, *ELIGIBILITY, "--system", "good", "--system", "fair", "--system", "poor"), "eligibility"
    )
    second = cells(
        board(judge, *ELIGIBILITY, "--system", "poor", "--system", "good", "--system", "fair"), "eligibility"
    )
    assert first == second


@pytest.mark.usefixtures("study")
def test_strata_are_columns_and_share_their_own_rows(judge: Judge, tmp_path: Path) -> None:
    label()
    both = ("--system", "good", "--system", "poor")
    result = board(judge, *ELIGIBILITY, *both, "--by", "question_type", "-o", str(tmp_path / "b.md"))
    # slow: n = 0, 2, 4, 6, 8 of 0..8 are bad, 10 is good: 1 of 6. fast: 1, 3, 5, 7 bad, 9 and 11 good: 2 of 6.
    assert cells(result, "eligibility", "slow")["poor"]["shared"]["value"] == pytest.approx(1 / 6)
    assert cells(result, "eligibility", "fast")["poor"]["shared"]["value"] == pytest.approx(2 / 6)
    head = next(
        line for line in (tmp_path / "b.md").read_text("utf-8").splitlines() if line.startswith("| system")
    )
    assert [c.strip() for c in head.strip("|").split("|")] == [
        "system",
        "eligibility ↑",
        "eligibility · fast ↑",
        "eligibility · slow ↑",
    ]


@pytest.mark.usefixtures("study")
def test_judges_are_the_other_axis(judge: Judge) -> None:
    for model, bad in (("a/one", 0), ("b/two", 6)):
        give(
            "eligibility",
            {unit(n, "fair"): "Major Issue(s)" if n < bad else "No Issues" for n in range(N)},
            model=model,
        )
    result = board(judge, *ELIGIBILITY, "--system", "fair", "--judges", "each", "-m", "a/one", "-m", "b/two")
    assert result["axis"] == "judge"
    assert {n: c["shared"]["value"] for n, c in cells(result, "eligibility").items()} == {
        "a/one": 1.0,
        "b/two": 0.5,
    }


@pytest.mark.usefixtures("study")
def test_people_correct_each_system(judge: Judge) -> None:
    label()
    issues = {
        unit(n, s): "No Issues" if n % 2 else "Major Issue(s)" for s in ("good", "poor") for n in range(N)
    }
    people("eligibility", {"ann": issues})
    result = board(judge, *ELIGIBILITY, "--system", "good", "--system", "poor", "--reference", "ann")
    for name in ("good", "poor"):
        [one] = result["corrections"][name]["measures"]
        assert one["measure"] == "eligibility"
        # Everything is labelled by ann: half of the answers are eligible, whatever the judge says.
        assert one["human_only"]["value"] == 0.5


@pytest.mark.usefixtures("study")
def test_files_hold_the_same_values_and_escape_names(judge: Judge, tmp_path: Path) -> None:
    evil = '=cmd|"<script>alert(1)</script>_&%'
    texts = [(f"g{n:02}", evil, "full", f"{evil} says so [cite_1].") for n in range(N)]
    answers(judge, tmp_path, texts)
    given = {f"garage:g{n:02}@{evil}@full": "No Issues" for n in range(N)}
    label()
    give("eligibility", given)
    both = ("--system", "poor", "--system", evil)
    for name in ("b.html", "b.md", "b.tex", "b.csv"):
        judge("score", *ELIGIBILITY, "--partial", *both, "-o", name)
    page = (tmp_path / "b.html").read_text("utf-8")
    # The one script is the one that sorts tables.
    assert page.count("<script") == 1
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/", "")
    assert "<script" not in (tmp_path / "b.md").read_text("utf-8")
    assert r"\textless{}script\textgreater{}" in (tmp_path / "b.tex").read_text("utf-8")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "b.csv").read_text("utf-8"))))
    assert {line["contender"] for line in lines} == {"poor", f"'{evil}"}


def compiled(pdflatex: Path, folder: Path) -> str:
    """Compile b.tex in an article; return what pdflatex says."""
    (folder / "d.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,longtable,array}\\begin{document}\\input{b.tex}\\end{document}"
    )
    command = [str(pdflatex), "-interaction=nonstopmode", "-halt-on-error", "d.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-500:]
    return done.stdout


@pytest.mark.real
@pytest.mark.usefixtures("study")
def test_the_latex_compiles(judge: Judge, tmp_path: Path) -> None:
    pdflatex = require("pdflatex")
    label()
    judge("score", *ELIGIBILITY, "--system", "all", "-o", "b.tex")
    compiled(pdflatex, tmp_path)


@pytest.mark.real
def test_fifteen_measures_fit_a_column_in_parts_of_eight(judge: Judge, tmp_path: Path) -> None:
    """Five measures at each of three depths: 7, 7 and 1 beside the name, within the text's width of an article."""
    pdflatex = require("pdflatex")
    trec = Path(__file__).parents[2] / "data" / "examples" / "trec"
    judge("items", "import", "trec", *(trec / name for name in ("topics.tsv", "docs.tsv", "qrels.txt")))
    judge("systems", "import", "--stage", "retrieve", *sorted(trec.glob("*.run")))
    names = [f"{kind}@{depth}" for depth in (1, 2, 3) for kind in ("nDCG", "P", "R", "RR", "AP")]
    deep = [word for name in names for word in ("--measure", name)]
    printed = judge("score", "retrieval", *deep, "--system", "all", "-o", "b.tex").out
    text = (tmp_path / "b.tex").read_text("utf-8")
    assert all(len(spec) <= 8 for spec in re.findall(r"begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", text))
    assert "resizebox" not in text
    # In the terminal, too, systems are lines and measures are columns; the best of each has a star.
    first = next(line for line in printed.splitlines() if line.startswith("system1"))
    assert len(first.split()) == 1 + 15 and "1.000*" in first
    assert "Overfull" not in compiled(pdflatex, tmp_path)


def tables_of(page: str) -> list[str]:
    """The tables of a page, in order."""
    return re.findall(r"<table.*?</table>", page, re.S)


@pytest.mark.usefixtures("study")
def test_pages_name_measures_for_people_and_have_a_table_of_p_values(judge: Judge, tmp_path: Path) -> None:
    label()
    part = ("--part", "eligibility", "--part", "deflection", "--partial")
    judge("score", "garage", *part, "--system", "all", "-o", "b.html")
    values, differences = tables_of((tmp_path / "b.html").read_text("utf-8"))[:2]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', values)
    assert heads[:3] == ["system", "eligibility ↑", "deflection true positive rate ↑"]
    # p values stand in the second table alone, which is of the measures that are compared.
    assert "p (Holm)" in differences and "p (Holm)" not in values
    judge("score", "garage", *part, "--system", "all", "-o", "b.tex")
    text = (tmp_path / "b.tex").read_text("utf-8")
    # The best value is bold, and a narrow table has no intervals.
    (table,) = re.findall(r"caption\{Main measures\}.*?end\{tabular\}\n", text, re.S)
    assert r"\textbf{" in table and " to " not in table


@pytest.mark.usefixtures("study")
def test_p_values_have_a_table_of_their_own_everywhere(judge: Judge, tmp_path: Path) -> None:
    label()
    words = ("score", *ELIGIBILITY, "--system", "good", "--system", "poor")
    first, _, second = judge(*words).out.partition("Paired tests against the best")
    assert "p (Holm)" in second and "p (Holm)" not in first
    judge(*words, "-o", "b.md", "-o", "b.tex")
    for name in ("b.md", "b.tex"):
        first, _, second = (tmp_path / name).read_text("utf-8").partition("Paired tests against the best")
        assert "p (Holm)" in second and "p (Holm)" not in first
        assert re.search(r"poor.*0\.0", second.split("All measures")[0])


@pytest.mark.usefixtures("study")
def test_what_does_not_go_together_is_refused_before_anything_is_read(judge: Judge, tmp_path: Path) -> None:
    label()
    part = ("score", "garage", "--part", "eligibility")
    assert "each named once" in judge(*part, "--system", "good", "--system", "good", code=2).err
    # One system alone gets a page as well, without a comparison.
    for name in ("one.html", "one.md", "one.tex", "one.csv"):
        judge(*part, "--system", "good", "-o", name)
    page = (tmp_path / "one.html").read_text("utf-8")
    assert "good" in page and "A dot is the value with its interval." in page
    assert "marks the best" not in page and "shared" not in page
    assert "best" not in (tmp_path / "one.md").read_text("utf-8")
    assert "the file extension must be one of" in judge(*part, "--system", "all", "-o", "b.docx", code=2).err
    assert "the folder " in judge(*part, "--system", "all", "-o", "no/b.md", code=1).err
    assert (
        "--judges each"
        in judge(*part, "--system", "all", "--judges", "each", "-m", "a/a", "-m", "b/b", code=2).err
    )
    assert "several judges" in judge(*part, "--judges", "each", "-m", "a/a", code=2).err
    assert "--system" in judge(*part, "--system", "good", "--system", "nobody", code=2).err
    assert not list(tmp_path.glob("*.part"))
    # What another process is writing to the same name stays its own.
    (tmp_path / "b.md.part").write_text("half of another's")
    judge(*part, "--system", "all", "-o", "b.md")
    assert (tmp_path / "b.md.part").read_text() == "half of another's"
    assert (tmp_path / "b.md").read_text("utf-8").startswith("# ")


@pytest.mark.usefixtures("study")
def test_missing_labels_of_all_systems_are_listed_at_once(judge: Judge) -> None:
    give("eligibility", {unit(n, "good"): "No Issues" for n in range(N)})
    done = judge("score", *ELIGIBILITY, "--system", "all", code=1)
    assert len([line for line in done.out.splitlines() if line.startswith("judge run eligibility")]) == 2


def test_rankings_are_the_systems_of_retrieval(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("".join(f"{q}\tquery {q}\n" for q in range(6)))
    (tmp_path / "docs.tsv").write_text("a\tone\nb\ttwo\n")
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 a 1\n{q} 0 b 0\n" for q in range(6)))
    judge("items", "import", "trec", "topics.tsv", "docs.tsv", "qrels.txt")
    for name, order in (("up", "ab"), ("down", "ba")):
        ranking(judge, tmp_path, name, {str(q): order for q in range(6)})
    result = json.loads(judge("score", "retrieval", "--measure", "P@1", "--system", "all", "--json").out)
    [row] = [r for r in result["rows"] if r["measure"] == "P@1[gold]"]
    assert {c["contender"]: (c["shared"]["value"], c["mark"]) for c in row["cells"]} == {
        "up": (1.0, "best"),
        "down": (0.0, "worse"),
    }
    # Six questions, each with the same difference: the sign test's 2^(1-6).
    assert next(c["p"] for c in row["cells"] if c["contender"] == "down") == pytest.approx(2**-5)


@pytest.mark.usefixtures("study")
def test_compare_has_the_same_two_axes(judge: Judge) -> None:
    label()
    words = ("score", "compare", "good", "poor", "--axis", "system", "--paper", "garage")
    message = judge(*words, code=None)
    # Only eligibility has been judged: the rest is named as missing, and nothing is compared half.
    assert message.code == 1
    give("grounding", {f"{unit(n, s)}#s0": "supported" for s in ("good", "poor") for n in range(N)})
    give("grounding_relevant", {f"{unit(n, s)}#s0": "supported" for s in ("good", "poor") for n in range(N)})
    give("deflection", {unit(n, s): "attempted" for s in ("good", "poor") for n in range(N)})
    give("citation_each", {f"{unit(n, s)}#s0/cite_1": "full" for s in ("good", "poor") for n in range(N)})
    done = judge(*words, "--json")
    rows = {r["measure"]: r for r in checked(done.out, "score_compare")["rows"]}
    result = rows["eligibility"]
    # poor has a major issue in 9 of 12, good in none: -.75, by the paired t-test of 12 questions. Its interval would
    # begin at -1.04, and two shares differ by 1 at most.
    values = [float(n >= 9) - 1.0 for n in range(N)]
    low, high = ttest_rel(values, [0.0] * N).confidence_interval(0.95)
    assert result["difference"]["value"] == pytest.approx(-0.75)
    assert (result["difference"]["low"], result["difference"]["high"]) == (
        -1.0,
        pytest.approx(high),
    )
    assert low < -1.0
    board_cells = cells(board(judge, *ELIGIBILITY, "--system", "good", "--system", "poor"), "eligibility")
    assert board_cells["poor"]["difference_to_best"] == result["difference"]["value"]
    assert "'good'" in judge("score", "compare", "good", "good", "--axis", "system", code=2).err
    message = judge("score", "compare", "good", "poor", "-m", "a/judge", code=2).err
    assert "A and B" in message
