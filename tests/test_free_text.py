"""A label in free text: one that stands there clearly, or none."""

from typing import Any

import pytest

from judge.accept import accept
from judge.free_text import parse_free_text
from judge.parse import Parsed
from judge.prompts import Task, parse_task
from judge.types import Reply, Status
from tests.prompts.helpers import STANCE, text


def task(labels: list[str], answer: str = "words") -> Task:
    question: dict[str, Any] = {"field": "f", "labels": [{"value": v} for v in labels]}
    if not labels:
        question = {"field": "f", "level": "text"}
    front = {**STANCE, "questions": [question], "raw": True, **({"answer": answer} if answer else {})}
    return parse_task(text(front, "<!-- unit -->\n{{ claim }} {{ passage }}"), "mine.v1.md")


def read(loaded: Task, reply: Reply, labels: list[str]) -> Parsed:
    return accept(reply, lambda answer: parse_free_text(loaded, answer, labels))


def found(labels: list[str], reply: str, answer: str = "words", stop: str = "stop") -> str | None:
    parsed = read(task(labels, answer), Reply(reply, stop), labels)
    assert (parsed.status is Status.OK) == bool(parsed.labels) and (parsed.labels or parsed.reason)
    return parsed.labels[0].value if parsed.labels else None


TRUTH = ["true", "false"]
SUPPORT = ["supported", "not_supported", "partially supported"]
LETTERS = list("ABCDEFGHIJ")


@pytest.mark.parametrize(
    ("labels", "reply", "label"),
    [
        (TRUTH, "True", "true"),
        (TRUTH, "The claim is **false**.", "false"),
        (TRUTH, "FALSE. It is false, as the document says.", "false"),
        (TRUTH, "It is true that some say so, but it is false.", None),
        (TRUTH, "It is not true.", None),
        (TRUTH, "It isn't entirely true.", None),
        (["support", "refute"], "The passage cannot support the claim.", None),
        (["support", "refute"], "It fails to support the claim.", None),
        (["support", "refute"], "It was unable to directly support it.", None),
        (["support", "refute"], "A claim without support.", None),
        (["support", "refute"], "It does neither support it.", None),
        (["support", "refute"], "The passages support the claim.", "support"),
        (TRUTH, "Truely yours", None),
        (TRUTH, "untrue", None),
        (TRUTH, "", None),
        (TRUTH, "<think>true or false?</think>false", "false"),
        (SUPPORT, "Not supported", "not_supported"),
        (SUPPORT, "not-supported by the text", "not_supported"),
        (SUPPORT, "partially\nsupported", "partially supported"),
        (SUPPORT, "supported", "supported"),
        (SUPPORT, "unsupported", None),
        (LETTERS, "B", "B"),
        (LETTERS, "(B) Paris", "B"),
        (LETTERS, "B. A city in France", "B"),
        (LETTERS, "I think it is C.", "C"),
        (LETTERS, "I'd say A", "A"),
        (LETTERS, "A is right", "A"),
        (LETTERS, "b", None),
        (LETTERS, "A or B", None),
        (LETTERS, "None of them.", None),
        (["支持", "反对"], "支持", "支持"),
    ],
)
def test_words(labels: list[str], reply: str, label: str | None) -> None:
    assert found(labels, reply) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("It is false at first sight.\nVerdict: true", "true"),
        ("VERDICT:   **True**.", "true"),
        ("Verdict: true\n\nverdict: TRUE", "true"),
        ("Verdict: true\nVerdict: false", None),
        ("Verdict: maybe", None),
        ("It is true.", None),
    ],
)
def test_a_pattern(reply: str, label: str | None) -> None:
    assert found(TRUTH, reply, "Verdict: {label}") == label


def test_a_pattern_with_something_behind_the_label() -> None:
    assert found(LETTERS, r"So \boxed{B}, and not A.", r"\boxed{{label}}") == "B"


@pytest.mark.parametrize(
    ("reply", "answer", "said"),
    [
        (" Paris.\n", "", "Paris."),
        ("Thinking...\nAnswer: Paris", "Answer: {text}", "Paris"),
        ("Answer: Paris\nanswer: Paris", "Answer: {text}", "Paris"),
        ("Answer: Paris\nAnswer: Rome", "Answer: {text}", None),
        ("Paris", "Answer: {text}", None),
        ("  ", "", None),
    ],
)
def test_free_answers(reply: str, answer: str, said: str | None) -> None:
    assert found([], reply, answer) == said


def test_what_was_cut_off_or_refused_has_its_own_status() -> None:
    assert read(task(TRUTH), Reply("true", "length"), TRUTH).status is Status.TRUNCATED
    assert read(task(TRUTH), Reply("No.", "refusal"), TRUTH).status is Status.REFUSED
    assert read(task(TRUTH), Reply("<think>true"), TRUTH).status is Status.TRUNCATED


def test_only_the_labels_that_a_unit_has_are_found() -> None:
    assert read(task(LETTERS), Reply("E"), ["A", "B"]).status is Status.UNPARSED


@pytest.mark.parametrize("piece", ["Answer: ", "Answer:\n", " ", "x END", "\n"])
def test_a_text_in_a_pattern_is_read_in_linear_time(piece: str) -> None:
    """A pattern that backtracks would need hours for a megabyte."""
    several = piece == "x END"
    assert found([], piece * 100_000, "Answer: {text} END") is None
    assert found([], f"{piece * 100_000}\nAnswer: Paris END", "Answer: {text} END") == "Paris"
    assert (found([], piece * 100_000, "{text} END") is None) != several


@pytest.mark.parametrize("answer", ["words", "The final answer is: {label}"])
@pytest.mark.parametrize(
    "piece", ["The final ", "not ", " ", "* ", "the final answer is: ( ", "not_", "true "]
)
def test_a_long_reply_is_read(answer: str, piece: str) -> None:
    """A pattern that backtracks would need hours for a megabyte."""
    labels = ["true", "not true", "not_at_all_true"]
    clear = answer == "words" and piece == "true "
    assert found(labels, piece * 100_000, answer) == ("true" if clear else None)


@pytest.mark.parametrize(
    "pattern", ["({label})", "[[{label}]]", "**{label}**", '"{label}"', "{label} is right"]
)
@pytest.mark.parametrize("mark", ["(", "[", "*", '"', " ", "\n"])
def test_a_reply_of_marks_alone_is_searched_in_linear_time(pattern: str, mark: str) -> None:
    """With any number of marks before a label, each of these took from seconds to minutes."""
    assert found(TRUTH, mark * 100_000, pattern) is None
