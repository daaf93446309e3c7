"""The page on how answers are read: its examples are the rule, for imported outputs and for replies of a run."""

import re
from pathlib import Path

import pytest

from judge.free_text import parse_free_text, read_alone
from judge.prompts import load_task
from judge.types import Status

PAGE = Path(__file__).parent.parent / "docs" / "answers-read.md"
ROW = re.compile(r"^\| `(?P<text>.*)` \| (?P<label>\S+) \|", re.MULTILINE)
EXAMPLES = [
    (row["text"].replace("⏎", "\n"), None if row["label"] == "outside" else row["label"])
    for row in ROW.finditer(PAGE.read_text("utf-8"))
]
LETTERS = list("ABCD")


def test_the_page_has_the_examples() -> None:
    assert len(EXAMPLES) >= 40
    assert sum("not" in text or "untrue" in text for text, _ in EXAMPLES) >= 4


@pytest.mark.parametrize(("text", "label"), EXAMPLES)
def test_an_example_of_the_page(text: str, label: str | None) -> None:
    task = load_task("urag_choice" if label and label in LETTERS else "verdict")
    labels = LETTERS if task.task_id == "urag_choice" else ["true", "false"]
    assert read_alone(text, labels) == label
    # The replies of a run are read by the same rule.
    parsed = parse_free_text(task, text, labels)
    assert [a.value for a in parsed.labels] == ([] if label is None else [label])
    assert (parsed.status is Status.OK) == (label is not None)


@pytest.mark.parametrize("text", ["!true", "A or B", "I think B", "A book", "B, C", "AB"])
def test_these_are_no_answers(text: str) -> None:
    assert read_alone(text, ["true", "false"]) is None
    assert read_alone(text, LETTERS) is None


@pytest.mark.parametrize("text", ["(" * 50_000, "*" * 50_000 + "x", "answer " * 10_000, "a. " * 20_000])
def test_a_hostile_reply_takes_no_time(text: str) -> None:
    assert read_alone(text, ["true", "false"]) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "True. Probably.",
            "True. I think.",
            "True. I am not sure.",
            "True. Half true, really.",
            "True. Not!",
        ),
        *(
            "True. No, the claim is incorrect.",
            "True\n\nThis claim is untrue.",
            "True: partially.",
            "Answer: !true",
        ),
        *("True. At least partly.", "<del>True</del>", "<not>true</not>"),
    ],
)
def test_a_hedge_or_a_denial_after_the_label_is_no_answer(text: str) -> None:
    assert read_alone(text, ["true", "false"]) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<think>false? no.</think>\nTrue",
            "- True",
            "1. True",
            "True…",
            r"$\boxed{true}$",
            r"\boxed{\text{True}}",
        ),
        *(
            "Response: True",
            "Prediction: True",
            "Conclusion: True",
            "Verdict - True",
            "True, as document 2 says.",
        ),
        *("The claim is true based on the documents.", "Based on the documents, the claim is true."),
        *("The claim is indeed true.", "True. The document supports it."),
    ],
)
def test_usual_spellings_are_read(text: str) -> None:
    assert read_alone(text, ["true", "false"]) == "true"


def test_a_claim_that_is_false_may_be_called_wrong() -> None:
    assert read_alone("False. The claim is wrong.", ["true", "false"]) == "false"
