"""Parsing fails closed: one clear verdict, or a status and a reason, and never a default label."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.accept import accept
from judge.parse import derive, parse_choice, parse_json
from judge.prompts import load_task
from judge.types import Answered, LabelDistribution, Reply, Status
from tests.prompts.helpers import STANCE, changed, task

STANCE_TASK = load_task("stance")  # support | refute | neutral
EXAM = load_task("raguard_exam")  # true | false | does not contribute
MIRAGE = load_task("mirage_support")  # supported | not_supported
SCORE = task({**STANCE, "questions": [{"field": "score", "level": "interval"}]})
TEXT = task({**STANCE, "questions": [{"field": "why", "level": "text"}]})
BOTH = task({**STANCE, "questions": [STANCE["questions"][0], {"field": "score", "level": "interval"}]})


def read(loaded: Any, text: str, stop: str = "stop") -> tuple[Status, dict[str, str], str]:
    parsed = accept(Reply(text, stop=stop), lambda answer: parse_json(loaded, answer))
    assert (parsed.status is Status.OK) == bool(parsed.labels), "labels exactly when ok"
    return parsed.status, {a.field: a.value for a in parsed.labels}, parsed.reason or ""


OK = [
    ("plain", '{"stance": "refute"}', "refute"),
    ("white space", '\n\t {"stance" :\n"refute"} \n', "refute"),
    ("capitals", '{"stance": "REFUTE"}', "refute"),
    ("space around the label", '{"stance": " refute "}', "refute"),
    ("code fence", '```json\n{"stance": "refute"}\n```', "refute"),
    ("after prose", 'The passage says so. {"stance": "refute"}', "refute"),
    ("before prose", '{"stance": "refute"}\nBecause it says so.', "refute"),
    ("between braces of prose", 'Of {a, b} I say {"stance": "refute"} for {x}.', "refute"),
    ("extra keys", '{"stance": "refute", "confidence": 0.9, "notes": ["support"]}', "refute"),
    ("the same verdict twice", '{"stance": "refute"} So: {"stance": "Refute"}', "refute"),
    ("the same key twice, same value", '{"stance": "refute", "stance": "refute"}', "refute"),
    ("the same verdict inside", '{"stance": "refute", "check": {"stance": "refute"}}', "refute"),
    ("other objects beside", '{"note": "x"} {"stance": "refute"}', "refute"),
    ("a verdict in a string", '{"rationale": "not {\\"stance\\": \\"support\\"}", "stance": "refute"}', "refute"),
    ("the label alone", "refute", "refute"),
    ("the label with marks", ' **Refute**.\n', "refute"),
    ("the label in quotes", '"refute"', "refute"),
    ("the label after the field", "Stance: refute", "refute"),
    ("the label after Answer", "Answer = refute.", "refute"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "label"), [o[1:] for o in OK], ids=[o[0] for o in OK])
def test_one_clear_verdict(text: str, label: str) -> None:
    assert read(STANCE_TASK, text) == (Status.OK, {"stance": label}, "")


UNPARSED = [
    ("empty", "", "no JSON object"),
    ("wrong label", '{"stance": "supports"}', "not one of the labels: 'supports'"),
    ("empty label", '{"stance": ""}', "not one of the labels"),
    ("a label of another task", '{"stance": "true"}', "not one of the labels"),
    ("two verdicts", '{"stance": "support"} or {"stance": "refute"}', "2 different verdicts"),
    ("two verdicts in a list", '[{"stance": "support"}, {"stance": "refute"}]', "2 different verdicts"),
    ("two verdicts under one key", '{"stance": "support", "stance": "refute"}', "two different values"),
    ("another verdict inside", '{"stance": "support", "a": [[{"b": {"stance": "refute"}}]]}', "2 different"),
    ("a right and a wrong verdict", '{"stance": "support"} {"stance": "maybe"}', "not one of the labels"),
    ("a list of labels", '{"stance": ["support"]}', "not a string"),
    ("several labels in one", '{"stance": "support | refute"}', "not one of the labels"),
    ("null", '{"stance": null}', "not a string"),
    ("another key", '{"label": "support"}', "no JSON object"),
    ("a key in capitals", '{"Stance": "support"}', "no JSON object"),
    ("the object within another", '{"answer": {"stance": "support"}}', "no JSON object"),
    ("the schema instead of an answer", '{"properties": {"stance": {"enum": ["support"]}}}', "no JSON"),
    ("a label in prose", "The passage does support the claim.", "no JSON object"),
    ("a sentence about the label", "I would not say support.", "no JSON object"),
    ("two labels", "support refute", "no JSON object"),
    ("a longer word", "supporting", "no JSON object"),
    ("a negated label", "!support", "no JSON object"),
    ("a label with a minus", "-support", "no JSON object"),
    ("cut off inside the label", '{"stance": "supp', "no JSON object"),
    ("cut off after the label", '{"stance": "support"', "no JSON object"),
    ("single quotes", "{'stance': 'support'}", "no JSON object"),
]


@pytest.mark.parametrize(("text", "reason"), [u[1:] for u in UNPARSED], ids=[u[0] for u in UNPARSED])
def test_everything_else_has_no_label(text: str, reason: str) -> None:
    status, labels, why = read(STANCE_TASK, text)
    assert (status, labels) == (Status.UNPARSED, {})
    assert reason in why


def test_a_label_that_is_part_of_another_is_not_taken_for_it() -> None:
    assert read(MIRAGE, "not_supported")[1] == {"support": "not_supported"}
    assert read(MIRAGE, '{"support": "not_supported"}')[1] == {"support": "not_supported"}
    assert read(MIRAGE, "not supported")[0] is Status.UNPARSED
    assert read(MIRAGE, "It is supported")[0] is Status.UNPARSED


@pytest.mark.parametrize("text", ['{"stance": "supp', '{"stance": "support"}', "support", "", "The passage"])
def test_a_reply_that_was_cut_off_is_truncated_whatever_it_holds(text: str) -> None:
    status, labels, reason = read(STANCE_TASK, text, stop="length")
    assert (status, labels) == (Status.TRUNCATED, {})
    assert "cut off" in reason


def test_a_refusal_is_refused_even_when_it_holds_a_label() -> None:
    assert read(STANCE_TASK, '{"stance": "support"}', stop="refusal")[:2] == (Status.REFUSED, {})
    assert read(STANCE_TASK, "", stop="refusal")[2] == "the model refused"
    assert len(read(STANCE_TASK, "no " * 1000, stop="refusal")[2]) <= 300


def test_booleans_are_labels_only_where_true_and_false_are() -> None:
    assert read(EXAM, '{"verdict": true}')[1] == {"verdict": "true"}
    assert read(EXAM, '{"verdict": false}')[1] == {"verdict": "false"}
    assert read(STANCE_TASK, '{"stance": true}')[0] is Status.UNPARSED


@pytest.mark.parametrize(
    ("raw", "value"), [("4", "4"), ("4.0", "4"), ("-0.0", "0"), ("2.5", "2.5"), ("1e2", "100"), ("-3", "-3")]
)
def test_numbers_have_one_spelling(raw: str, value: str) -> None:
    assert read(SCORE, f'{{"score": {raw}}}')[1] == {"score": value}


@pytest.mark.parametrize(
    "raw", ["NaN", "Infinity", "-Infinity", "1e999", "true", "false", '"4"', "null", "[4]", "1" + "0" * 400]
)
def test_what_is_no_number_is_not_parsed(raw: str) -> None:
    status, labels, reason = read(SCORE, f'{{"score": {raw}}}')
    assert (status, labels) == (Status.UNPARSED, {})
    assert "'score'" in reason


def test_the_same_number_in_two_spellings_is_one_verdict() -> None:
    assert read(SCORE, '{"score": 4} {"score": 4.0}')[1] == {"score": "4"}


def test_a_number_or_text_needs_the_json() -> None:
    assert read(SCORE, "4")[0] is Status.UNPARSED
    assert read(TEXT, "because")[0] is Status.UNPARSED
    assert read(TEXT, '{"why": " because "}')[1] == {"why": " because "}
    assert read(TEXT, '{"why": "  "}')[0] is Status.UNPARSED


def test_several_questions_need_all_answers() -> None:
    assert read(BOTH, '{"score": 1, "stance": "no"}')[1] == {"stance": "no", "score": "1"}
    status, _, reason = read(BOTH, '{"stance": "no"}')
    assert (status, reason) == (Status.UNPARSED, "field 'score' is missing")
    assert read(BOTH, '{"stance": "no"} {"score": 1}')[0] is Status.UNPARSED
    assert read(BOTH, '{"stance": "no", "score": 1} {"stance": "no", "score": 2}')[2].startswith(
        "2 different"
    )
    assert read(BOTH, "no")[0] is Status.UNPARSED


def test_the_rationale_is_kept() -> None:
    parsed = parse_json(task({**STANCE, "rationale": "before"}), '{"rationale": "R.", "stance": "no"}')
    assert [(a.field, a.value, a.rationale) for a in parsed.labels] == [("stance", "no", "R.")]
    odd = parse_json(task({**STANCE, "rationale": "before"}), '{"rationale": 7, "stance": "no"}')
    assert odd.labels[0].rationale is None


def test_deep_nesting_and_many_braces_end_in_a_status() -> None:
    assert read(STANCE_TASK, '{"a":' * 20_000)[0] is Status.UNPARSED
    assert read(STANCE_TASK, "{" * 50_000 + '{"stance": "support"}')[1] == {"stance": "support"}
    deep = '{"stance": "support", "a": ' + '{"a": ' * 400 + "1" + "}" * 401
    assert read(STANCE_TASK, deep)[1] == {"stance": "support"}


def test_labels_with_odd_characters() -> None:
    front = changed(
        "questions.0.labels", [{"value": "n/a"}, {"value": "Straße"}, {"value": "does not contribute"}]
    )
    odd = task(front)
    assert read(odd, "N/A")[1] == {"stance": "n/a"}
    assert read(odd, '{"stance": "STRASSE"}')[1] == {"stance": "Straße"}
    assert read(odd, "Does not contribute.")[1] == {"stance": "does not contribute"}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["support", "refute", "x", "{"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["stance", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.lists(
        values.map(json.dumps) | st.text(max_size=8) | st.sampled_from(["support", "{", "}", '"']), max_size=4
    )
)
def test_any_reply_gives_a_label_of_the_task_or_none(parts: list[str]) -> None:
    text = " ".join(parts)
    status, labels, reason = read(STANCE_TASK, text)
    if status is Status.OK:
        assert labels["stance"] in ("support", "refute", "neutral")
        assert labels["stance"] in text.casefold()
    else:
        assert (status, labels) == (Status.UNPARSED, {})
        assert reason


# --- one-character answers

LABELS, CODES = ["support", "refute", "neutral"], "ABC"


def code(text: str, stop: str = "stop", masses: dict[str, float] | None = None) -> tuple[Status, str | None]:
    spread = None if masses is None else LabelDistribution(masses, 0.0)
    parsed = accept(
        Reply(text, stop=stop),
        lambda answer: parse_choice(STANCE_TASK, answer, LABELS, CODES),
        lambda label: (spread, None),
    )
    return parsed.status, parsed.labels[0].value if parsed.labels else None


@pytest.mark.parametrize(
    "text", ["B", " B", "B.", "(B)", "**B**", "\nB\n", '"B"', "refute", "Answer: refute"]
)
def test_a_letter_or_the_label_itself(text: str) -> None:
    assert code(text) == (Status.OK, "refute")


@pytest.mark.parametrize(
    "text", ["", "D", "AB", "A B", "b", "A or B", "Because", "!A", "supportive", "ABC", "1"]
)
def test_what_is_no_letter_is_not_parsed(text: str) -> None:
    assert code(text) == (Status.UNPARSED, None)


def test_the_letters_follow_the_order_shown() -> None:
    parsed = parse_choice(STANCE_TASK, "A", LABELS[::-1], CODES)
    assert parsed.labels[0].value == "neutral"


def test_with_a_distribution_the_verdict_is_its_maximum_whatever_was_sampled() -> None:
    masses = {"support": 0.2, "refute": 0.5, "neutral": 0.3}
    assert code("A", masses=masses) == (Status.OK, "refute")
    assert code("A", stop="refusal", masses=masses) == (Status.REFUSED, None)


def test_a_tie_goes_to_the_first_label_of_the_task() -> None:
    assert code("C", masses={"support": 0.25, "refute": 0.375, "neutral": 0.375}) == (Status.OK, "refute")


def test_the_reason_for_a_missing_distribution_stays_beside_the_label() -> None:
    parsed = accept(
        Reply("A"),
        lambda answer: parse_choice(STANCE_TASK, answer, LABELS, CODES),
        lambda label: (None, "6 % on no label"),
    )
    assert (parsed.status, parsed.reason) == (Status.OK, "6 % on no label")


# --- derived labels

# definitions.md, RAGuard: equal to gold = supporting, contrary = misleading, no contribution = irrelevant.
ROLES = [
    ("true", "true", "supporting"),
    ("false", "false", "supporting"),
    ("true", "false", "misleading"),
    ("false", "true", "misleading"),
    ("does not contribute", "true", "irrelevant"),
    ("does not contribute", "false", "irrelevant"),
]


@pytest.mark.parametrize(("verdict", "gold", "role"), ROLES)
def test_the_role_of_a_raguard_document(verdict: str, gold: str, role: str) -> None:
    [derived] = derive(EXAM, [Answered("verdict", verdict)], {"claim_verdict": gold})
    assert (derived.field, derived.value, derived.derived_from) == ("raguard.role", role, "verdict")


def test_without_gold_there_is_no_role() -> None:
    answers = [Answered("verdict", "true")]
    assert derive(EXAM, answers, {}) == ()
    assert derive(EXAM, answers, {"verdict": "true"}) == (), "gold of another field is no gold"
    assert derive(EXAM, answers, {"claim_verdict": "half-true"}) == ()


# definitions.md, GaRAGe: IRRELEVANT+UNKNOWN / RELATED-INFORMATION+OUTDATED / ANSWER-THE-QUESTION.
@pytest.mark.parametrize(
    ("label", "grade"),
    [
        ("IRRELEVANT", "0"), ("UNKNOWN", "0"), ("RELATED-INFORMATION", "1"), ("OUTDATED", "1"),
        ("ANSWER-THE-QUESTION", "2"),
    ],
)  # fmt: skip
def test_the_grade_of_a_garage_class_needs_no_gold(label: str, grade: str) -> None:
    [derived] = derive(load_task("garage_relevance"), [Answered("relevance", label)], {})
    assert (derived.field, derived.value) == ("relevance_grade", grade)


def test_a_table_may_leave_answers_out() -> None:
    partial = task({**STANCE, "derive": {"good": {"from": "stance", "table": {"yes": "good"}}}})
    assert [a.value for a in derive(partial, [Answered("stance", "yes")], {})] == ["good"]
    assert derive(partial, [Answered("stance", "no")], {}) == ()
