"""The top of a report: the verdict, the agreements as a drawing, what is not shown, the next steps; methods come last."""

import re
import shlex
from pathlib import Path

import pytest

from annotate.report import FORMATS, ReportOptions, build
from annotate.report.model import ReportDocument
from judge.commands import DEFAULT_STUDY, use_study
from judge.store import Store
from tests.annotate.report_helpers import U, study
from tests.test_docs import all_commands, wrong_words

LABELS = ("support", "refute", "neutral")


def report(folder: Path, wrong: int) -> ReportDocument:
    """A report on a judge that is wrong on one of `wrong` units; three people are right."""
    units = []
    for i in range(90):
        gold = LABELS[i % 3]
        label = LABELS[(i + 1) % 3] if i % wrong == 0 else gold
        units.append(
            U(
                gold,
                dict.fromkeys(("ann", "bob", "cy"), gold),
                {"m/judge": label},
                f"C {i}",
                f"P {i}",
                f"q{i}",
            )
        )
    db = study(folder / "study.db", units)
    use_study(db)
    try:
        with Store.open(db, create=False) as store:
            return build(store, ReportOptions())
    finally:
        # Other tests in this process expect the usual study.
        use_study(DEFAULT_STUDY)


@pytest.mark.parametrize(("wrong", "decision"), [(90, "trust"), (1, "do not trust")])
def test_the_steps_are_commands_that_can_be_typed(tmp_path: Path, wrong: int, decision: str) -> None:
    (box,) = report(tmp_path, wrong).boxes
    assert box.state == decision and bool(box.failed) == (decision != "trust")
    assert 2 <= len(box.steps) <= 3 and box.figure is not None
    known = all_commands()
    for step in box.steps:
        assert step.command and wrong_words(step.command, known) == []
        words = shlex.split(step.command)
        assert words[words.index("-d") + 1] == str(tmp_path / "study.db")
    first = box.steps[0].command
    assert first.startswith("judge runs export" if decision == "trust" else "judge calibrate")
    assert any(step.command.startswith("judge improve") for step in box.steps) == (decision != "trust")


def test_the_verdict_comes_first_and_methods_come_last_and_are_folded(tmp_path: Path) -> None:
    made = report(tmp_path, 1)
    page = FORMATS["html"](made)
    body = page[page.index("<body>") :]
    order = [
        body.index(text)
        for text in ('class="sentence"', "What fails", "What to do next", 'class="about"', 'id="contents"')
    ]
    assert order == sorted(order)
    folded = re.findall(r'<section id="([\w-]+)" [^>]*>\s*<details', body)
    shown = re.findall(r'<section id="([\w-]+)"', body)
    assert (folded and shown[-1 - len(folded) : -1] == folded) or shown[-len(folded) :] == folded
    assert {"who", "citations"} <= set(folded) and "disagreements" not in folded
    # The steps are for readers of pages. JSON and CSV documents are contracts, and have no steps.
    assert all("What to do next" not in FORMATS[form](made) for form in ("json", "csv", "tex"))


def test_a_command_is_code_in_markdown_whatever_it_contains(tmp_path: Path) -> None:
    made = report(tmp_path, 1)
    text = FORMATS["md"](made)
    for step in made.boxes[0].steps:
        assert f"` {step.command} `" in text
    folder = tmp_path / "a `b` c"
    folder.mkdir()
    assert "`` judge improve" in FORMATS["md"](report(folder, 1))
