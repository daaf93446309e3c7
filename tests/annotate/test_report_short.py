"""What leads the report, and `annotate report --short`: numbers by scikit-learn, each with its n, in Markdown and LaTeX."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from tests.annotate.agreement_helpers import annotate, judge
from tests.real import require

# Twelve units of twelve questions: what ann, bob and cy say, and the judge ("" = refused).
LABELS = [
    ("support", "support", "support", "support"),
    ("support", "support", "refute", "support"),
    ("refute", "refute", "refute", "refute"),
    ("refute", "refute", "neutral", "neutral"),
    ("neutral", "neutral", "neutral", "neutral"),
    ("neutral", "support", "neutral", "neutral"),
    ("support", "support", "support", "refute"),
    ("refute", "neutral", "refute", "refute"),
    ("neutral", "neutral", "neutral", "support"),
    ("support", "refute", "support", "support"),
    ("refute", "refute", "refute", "refute"),
    ("neutral", "neutral", "neutral", ""),
]
PEOPLE = ("ann", "bob", "cy")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": str(i), "claim": f"Claim {i}.", "passages": [{"id": "p", "text": f"Text {i}.", "votes": {"stance": dict(zip(PEOPLE, row, strict=False))}}]}
        for i, row in enumerate(LABELS)
    ]  # fmt: skip
    Path("d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("l.csv").write_text("id,label\n" + "".join(f"{i},{row[3]}\n" for i, row in enumerate(LABELS)))
    judge("items", "import", "jsonl", "d.jsonl")
    judge("runs", "import", "l.csv", "--model", "m_1 & co", "--task", "stance")
    return tmp_path


def test_each_person_and_the_judge_against_the_majority_of_the_others(study: Path) -> None:
    document: dict[str, Any] = json.loads(annotate("report", "--json").stdout)
    blocks = next(s for s in document["sections"] if s["key"] == "summary")["blocks"]
    table = next(b for b in blocks if b.get("key") == "beside_1")
    for i, row in enumerate(table["rows"]):
        # The majority of two others is what both say; the judge must have a label.
        kept = []
        for labels in LABELS:
            others = Counter(label for j, label in enumerate(labels[:3]) if j != i)
            label, n = others.most_common(1)[0]
            if n == 2 and labels[3]:
                kept.append((labels[i], labels[3], label))
        person, its, majority = zip(*kept, strict=True)
        assert row[0] == PEOPLE[i]
        for cell, given in ((row[1], person), (row[2], its)):
            result = document["measures"][cell["measure"]] if "measure" in cell else cell
            assert result["value"] == pytest.approx(cohen_kappa_score(given, majority), abs=1e-12)
            assert result["n_units"] == len(kept) and result["coverage"] == pytest.approx(len(kept) / 12)


def test_a_paragraph_and_one_table(study: Path) -> None:
    text = annotate("report", "--short").stdout
    # One unit of twelve has no label of the judge, and what that does to the coverage is said in words.
    assert "Coverage is the share of units on which the number is based" in text
    assert "n = 11 units" in text and text.count("| agreement |") == 1 and "#" not in text.split("|")[0]
    assert (
        "--short supports md and tex, not html"
        in annotate("report", "--short", "-o", "x.html", code=2).stderr
    )


def test_every_number_of_the_paragraph_has_its_n(study: Path) -> None:
    paragraph = annotate("report", "--short").stdout.split(" Intervals: ")[0]
    numbers = [one.start() for one in re.finditer(r"\d\.\d{3}", paragraph)]
    assert len(numbers) > 8
    for place in numbers:
        # A number, its interval, then its n; those of the reasons share one at the end of their sentence.
        assert "n = " in paragraph[place:], paragraph[place:]
    assert re.search(r"\(n = \d+ units of \d+ questions\)", paragraph)


def test_the_box_holds_kappa_and_the_human_ceiling(study: Path) -> None:
    annotate("report", "-o", "r.html", "-o", "r.md")
    page = Path("r.html").read_text()
    box = page[page.index('<div class="ruling') : page.index('<p class="rule">')]
    assert "pooled kappa" in box and "the human ceiling" in box and "units" in box
    assert page.count(">people with each other: the human ceiling<") == 1, "told once"
    markdown = Path("r.md").read_text()
    assert markdown.count("people with each other: the human ceiling") == 1
    assert markdown.index("human ceiling") < markdown.index("Rule: ")


@pytest.mark.real
def test_short_compiles(study: Path) -> None:
    engine = require("pdflatex")
    annotate("report", "--short", "-o", "short.tex")
    head = r"\documentclass{article}\usepackage{booktabs,longtable,array,textcomp}\begin{document}"
    Path("paper.tex").write_text(head + "\n\\input{short.tex}\n\\end{document}\n")
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_box_holds_the_agreement_that_the_verdict_rests_on(tmp_path: Path) -> None:
    """One person beside gold: the verdict is against the person, and gold stands beside it; gold alone: gold once."""
    lines = ["unit,annotator,label"]
    judged, ann, gold = "aabbabab" * 5, "aabbaabb" * 5, "abbbabaa" * 5
    for who, labels in (("j", judged), ("ann", ann), ("gold", gold)):
        lines += [f"{i},{who},{label}" for i, label in enumerate(labels)]
    table = tmp_path / "votes.csv"
    options = ("--judge", "j")
    for kept, names in ((lines, ["the labels of ann", "the gold labels"]), ([x for x in lines if "ann," not in x], ["the gold labels"])):  # fmt: skip
        table.write_text("\n".join(kept) + "\n")
        document = json.loads(annotate("report", table, *options, "--json").stdout)
        rows = next(s for s in document["sections"] if s["key"] == "summary")["blocks"][0]["rows"]
        assert [row[0] for row in rows] == [f"j with {name}" for name in names]
        first = document["measures"][rows[0][2]["measure"]]
        (verdict,) = document["verdicts"]
        condition = next(c for c in verdict["conditions"] if c["name"] == "threshold")
        assert [first[k] for k in ("value", "low", "high")] == [
            condition[k] for k in ("value", "low", "high")
        ]
        other = ann if len(names) == 2 else gold
        assert first["value"] == pytest.approx(cohen_kappa_score(list(judged), list(other)), abs=1e-9)
        short = annotate("report", table, *options, "--short").stdout
        assert "jackknife t by unit in the verdict" in short


def test_the_paragraph_has_the_annotators_and_what_the_author_must_add(study: Path) -> None:
    annotate("annotators", "set", "ann", "--qualification", "MSc in linguistics", "--consent", "signed")
    text = annotate("report", "--short").stdout
    assert "Annotators: ann (qualification: MSc in linguistics; consent: signed)." in text
    assert "The author must add: qualification, training, payment, consent of ann, bob, cy." in text
    for person in PEOPLE:
        profile = ("--qualification", "MSc", "--training", "none", "--paid", "no", "--consent", "signed")
        annotate("annotators", "set", person, *profile)
    assert "must add" not in annotate("report", "--short").stdout
