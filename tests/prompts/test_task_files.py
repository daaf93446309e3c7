"""Every complaint about a task file names the file and the key that is wrong."""

from pathlib import Path
from typing import Any

import pytest

from judge.errors import Exit, TaskError, UsageError
from judge.prompts import find_tasks, load, load_task, parse_task
from judge.prompts.render import answer_schema
from judge.prompts.spec import NEVER_INPUTS
from judge.resources import resource_dir
from tests.prompts.helpers import BODY, STANCE, changed, task, text, write

ROLE = {"role": {"from": "stance", "gold": "verdict", "table": {"yes|true": "good", "no|true": "bad"}}}
SHOT = {"inputs": {"claim": "c", "passage": "p"}, "answers": {"stance": "yes"}}
LABELS = "questions.0.labels"


def with_(path: str, value: Any, **more: Any) -> dict[str, Any]:
    return {**changed(path, value), **more}


def rule(**changes: Any) -> dict[str, Any]:
    """STANCE with the rule of ROLE, some of its keys changed; None takes one out."""
    merged = {k: v for k, v in {**ROLE["role"], **changes}.items() if v is not None}
    return {**STANCE, "derive": {"role": merged}}


def shot(**changes: Any) -> dict[str, Any]:
    return {**STANCE, "examples": [{**SHOT, **changes}]}


FRONT: list[tuple[str, dict[str, Any], list[str]]] = [
    ("unknown key", {**STANCE, "titel": "x"}, ["unknown key 'titel'"]),
    ("key of a label", with_(f"{LABELS}.0.colour", "red"), ["unknown key 'questions.0.labels.0.colour'"]),
    ("unknown input", with_("inputs", ["claim", "passsage"]), ["inputs", "'passsage'", "passage_title"]),
    ("the same input twice", {**STANCE, "optional_inputs": ["claim"]}, ["the same input is listed twice"]),
    ("a passage in a task on items", with_("unit", "item"), ["item", "passage"]),
    ("a label twice", with_(f"{LABELS}.1.value", "YES"), ["'stance'", "same label twice"]),
    ("one label", with_(LABELS, [{"value": "yes"}]), ["questions.0", "'stance'", "at least two"]),
    (
        "labels of a number",
        with_("questions.0.level", "interval"),
        ["'stance'", "interval", "cannot have labels"],
    ),
    ("labels of a text", with_("questions.0.level", "text"), ["'stance'", "text", "cannot have labels"]),
    ("clashing keys", with_(f"{LABELS}.1.key", "y"), ["key 'y'", "stance=yes", "stance=no"]),
    ("a key of two characters", with_(f"{LABELS}.0.key", "ye"), ["questions.0.labels.0.key", "'ye'"]),
    ("an invisible key", with_(f"{LABELS}.0.key", " "), ["questions.0.labels.0.key"]),
    ("a field in capitals", with_("questions.0.field", "Stance"), ["questions.0.field"]),
    ("a reserved field", with_("questions.0.field", "rationale"), ["'rationale'", "reserved"]),
    ("a field that is a column of exports", with_("questions.0.field", "status"), ["'status'", "reserved"]),
    ("space around a label", with_(f"{LABELS}.0.value", " yes"), ["questions.0.labels.0.value", "' yes'"]),
    ("a label of two lines", with_(f"{LABELS}.0.value", "y\nes"), ["questions.0.labels.0.value", "one line"]),
    ("an empty label", with_(f"{LABELS}.0.value", ""), ["questions.0.labels.0.value"]),
    (
        "the same field twice",
        with_("questions", [STANCE["questions"][0], {"field": "stance", "level": "text"}]),
        ["two questions", "same field"],
    ),
    ("a rule named like a question", {**STANCE, "derive": {"stance": ROLE["role"]}}, ["derive 'stance'"]),
    ("a rule with a bad name", {**STANCE, "derive": {"My Role": ROLE["role"]}}, ["derive.My Role"]),
    ("a rule from nowhere", rule(**{"from": "verdict"}), ["derive 'role'", "'verdict'"]),
    ("a rule on its own answer", rule(gold="stance"), ["derive 'role'", "'stance'"]),
    ("a rule with a strange answer", rule(table={"maybe|true": "x"}), ["derive 'role'", "'maybe'"]),
    ("gold without a bar", rule(table={"yes": "x"}), ["derive 'role'", "'yes'", "answer|gold"]),
    ("a bar without gold", rule(gold=None), ["derive 'role'", "'yes|true'", "alone"]),
    ("an empty table", rule(table={}), ["derive.role.table"]),
    ("an order that lacks a value", rule(order=["good"]), ["derive 'role'", "order"]),
    ("an order with a value twice", rule(order=["good", "bad", "bad"]), ["derive 'role'", "order"]),
    ("odd input", shot(inputs={**SHOT["inputs"], "question": "q"}), ["example 1", "'question'"]),
    ("an example without an input", shot(inputs={"claim": "c"}), ["example 1", "'passage'"]),
    ("an example without an answer", shot(answers={}), ["example 1", "'stance'"]),
    ("odd label", shot(answers={"stance": "maybe"}), ["example 1", "'maybe'", "'stance'"]),
    ("odd answer", shot(answers={"stance": "yes", "mood": "x"}), ["example 1", "'mood'"]),
    ("an example without the rationale", {**shot(), "rationale": "after"}, ["example 1", "rationale"]),
    (
        "an example whose number is none",
        {
            **with_("questions", [{"field": "score", "level": "interval"}]),
            "examples": [{**SHOT, "answers": {"score": "high"}}],
        },
        ["example 1", "'high'", "'score'"],
    ),
]


@pytest.mark.parametrize("name", NEVER_INPUTS)
def test_gold_and_meta_are_never_inputs(name: str) -> None:
    with pytest.raises(TaskError, match=f"mine.v1.md: inputs: '{name}'"):
        task(changed("inputs", ["claim", "passage", name]))


LABEL = "questions.0.labels.0.value"
# A key of the front matter as YAML, and the field that YAML reads as something else than text.
YAML = [
    *((f"questions: [{{field: f, labels: [{{value: {word}}}, {{value: x}}]}}]", LABEL)
      for word in ("yes", "on", "true", "1", "1.5", "2020-01-01", "null")),
    ("questions: [{field: f, labels: [{value: a, key: y}, {value: b, key: 1}]}]", "questions.0.labels.1.key"),
    ("questions: [{field: f, labels: [{value: a, meaning: no}, {value: b}]}]", "questions.0.labels.0.meaning"),
    ("questions: [{field: f, ask: yes, labels: [{value: a}, {value: b}]}]", "questions.0.ask"),
    ("derive: {role: {from: stance, table: {yes: x}}}", "derive.role.table"),
    ('derive: {role: {from: stance, table: {"yes": no}}}', "derive.role.table"),
    ('derive: {role: {from: stance, order: [1], table: {"yes": "1"}}}', "derive.role.order"),
    ("examples: [{inputs: {claim: yes, passage: p}, answers: {stance: other}}]", "examples.0.inputs.claim"),
    ("examples: [{inputs: {claim: [1], passage: p}, answers: {stance: other}}]", "examples.0.inputs.claim"),
    ("examples: [{inputs: {claim: c, passage: p}, answers: {stance: yes}}]", "examples.0.answers.stance"),
    ("title: no", "title"),
    ("inputs: [yes]", "inputs.0"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "field"), YAML, ids=[y[0] for y in YAML])
def test_what_yaml_reads_as_something_else_must_be_quoted(line: str, field: str) -> None:
    key = line.split(":")[0]
    head = text({k: v for k, v in STANCE.items() if k != key}).split("---\n")[1]
    with pytest.raises(TaskError) as caught:
        parse_task(text(head + line), "mine.v1.md")
    message = str(caught.value)
    assert f"mine.v1.md: {field}" in message and "YAML reads" in message and "in quotes" in message


def test_a_key_that_stands_twice_is_refused() -> None:
    head = text(STANCE).split("---\n")[1]
    twice = 'derive:\n  role:\n    from: stance\n    table:\n      "yes": good\n      "yes": bad\n'
    with pytest.raises(TaskError, match=r"mine\.v1\.md: .*line \d+: the key 'yes' occurs twice"):
        parse_task(text(head + twice), "mine.v1.md")


TEMPLATES = [
    ("no unit mark", "Judge.\n{{ claim }}\n{{ passage }}\n", ["<!-- unit -->"]),
    ("two unit marks", BODY + "<!-- unit -->\n", ["<!-- unit -->", "twice"]),
    ("undeclared variable", BODY.replace("claim", "clame"), ["undeclared variable 'clame'"]),
    ("undeclared variable above", "{{ house }}\n" + BODY, ["undeclared variable 'house'"]),
    ("an input above the mark", "{{ claim }}\n" + BODY, ["'claim'", "below"]),
    ("the cue above the mark", "{{ answer_cue }}\n" + BODY, ["'answer_cue'", "below"]),
    ("an input that is not shown", BODY.replace("{{ passage }}", ""), ["'passage'", "never shown"]),
]


# Uses of an input that would take its text out of the fence, or that are not known to leave it there.
UNFENCED = [
    "{{ claim | upper }}",
    "{{ claim.upper() }}",
    "{{ claim[0] }}",
    "{{ 'x' ~ claim }}",
    "{{ '%s' % claim }}",
    "{{ claim if passage else '' }}",
    "{% for c in claim %}{{ c }}{% endfor %}",
    "{% set c = claim %}{{ c }}",
    "{% set c %}{{ claim }}{% endset %}{{ c | replace('[[', '') }}",
    "{% filter replace('[[', '') %}{{ claim }}{% endfilter %}",
    "{% macro m() %}{{ claim }}{% endmacro %}{{ m() | upper }}",
    "{% if claim == 'x' %}{{ claim }}{% endif %}",
]
TEMPLATES += [(use, BODY.replace("{{ claim }}", use), ["template, line"]) for use in UNFENCED]

REFUSED = [
    *(pytest.param(front, BODY, words, id=name) for name, front, words in FRONT),
    *(pytest.param(STANCE, body, words, id=name) for name, body, words in TEMPLATES),
]


@pytest.mark.parametrize(("front", "body", "words"), REFUSED)
def test_a_task_is_refused_in_one_line(front: dict[str, Any], body: str, words: list[str]) -> None:
    with pytest.raises(TaskError) as caught:
        task(front, body)
    message = str(caught.value)
    assert message.startswith("mine.v1.md: ") and "\n" not in message
    assert [word for word in words if word not in message] == []


def test_a_syntax_error_names_the_line_of_the_file() -> None:
    # The constant half also stands in the front matter: the line is that of the template all the same.
    source = text(
        {**STANCE, "guidelines": "You judge evidence."}, BODY.replace("{{ claim }}", "{{ claim | }}")
    )
    line = source.split("\n").index("{{ claim | }}") + 1
    with pytest.raises(TaskError, match=rf"mine\.v1\.md: template, line {line}: "):
        parse_task(source, "mine.v1.md")


def test_an_optional_input_must_be_tested_before_it_is_shown() -> None:
    front = {**STANCE, "optional_inputs": ["passage_title", "passage_date"]}
    bare = BODY.replace("{{ passage }}", "{{ passage }}{{ passage_title }}{{ passage_date }}")
    with pytest.raises(TaskError, match=r"line \d+: 'passage_title' is optional"):
        task(front, bare)
    # Only a unit that has a title and no date would show that this test is on the wrong input.
    wrong = BODY.replace(
        "{{ passage }}",
        "{{ passage }}{% if passage_title %}{{ passage_title }}{{ passage_date }}{% endif %}",
    )
    with pytest.raises(TaskError, match=r"line \d+: 'passage_date' is optional"):
        task(front, wrong)


def test_the_word_none_in_a_template_is_no_missing_input() -> None:
    assert task(STANCE, BODY.replace("{{ claim }}", "None of this is advice. {{ claim }}")).name == "mine.v1"


FILES = [
    ("no front matter", "mine.v1.md", BODY, "first line"),
    ("front matter without end", "mine.v1.md", "---\ntitle: x\n", "must end with"),
    ("no mapping", "mine.v1.md", "---\n- a\n---\n" + BODY, "mapping"),
    ("no YAML", "mine.v1.md", "---\ntitle: [\n---\n" + BODY, "not valid YAML, line 2"),
    ("a tag", "mine.v1.md", "---\ntitle: !!python/name:os.system\n---\n" + BODY, "not valid YAML"),
    ("no version", "mine.md", text(STANCE), "NAME.vN.md"),
    ("version 0", "mine.v0.md", text(STANCE), "NAME.vN.md"),
    ("capitals", "Mine.v1.md", text(STANCE), "NAME.vN.md"),
]


@pytest.mark.parametrize(("name", "content", "words"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_files_are_refused(name: str, content: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        parse_task(content, name)
    assert str(caught.value).startswith(f"{name}: ")
    assert words in str(caught.value)
    assert caught.value.exit_code == Exit.USAGE


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "mine.v1.md"
    latin.write_bytes(text(STANCE).encode().replace(b"judge", b"j\xfcdge"))
    with pytest.raises(TaskError, match="UTF-8"):
        load_task(str(latin))
    with pytest.raises(UsageError, match="No such file"):
        load_task(str(tmp_path / "gone.v1.md"))
    with pytest.raises(UsageError, match="no such folder"):
        find_tasks(tmp_path / "gone")
    # A folder from somebody else links to a device without an end.
    for name in ("endless.v1", "stance.v2"):
        (tmp_path / f"{name}.md").symlink_to("/dev/zero")
    with pytest.raises(TaskError, match=r"endless\.v1\.md: the file has more than 1,000,000 characters"):
        load_task(str(tmp_path / "endless.v1.md"))
    with pytest.raises(TaskError, match=r"stance\.v2\.md: the file has more than"):
        find_tasks(tmp_path)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.v1")
    plain = load_task(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_task(str(path)).sha256 == plain.sha256


def test_names_find_the_newest_version(tmp_path: Path) -> None:
    for name in ("mine.v2", "mine.v10", "mine.v9", "other.v1"):
        write(tmp_path, name)
    assert load_task("mine", tmp_path).name == "mine.v10"
    assert load_task("mine.v9", tmp_path).name == "mine.v9"
    assert load_task("stance", tmp_path).name == "stance.v2", "the shipped ones stay"
    with pytest.raises(
        UsageError, match=r"unknown task 'yours'; available: .*mine\.v2.*stance\.v2|stance\.v2.*mine"
    ):
        load_task("yours", tmp_path)


def test_the_newest_version_may_be_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "shipped", "mine.v3")
    write(tmp_path / "own", "mine.v2")
    monkeypatch.setattr(load, "resource_dir", lambda name: tmp_path / "shipped")
    assert load_task("mine", tmp_path / "own").name == "mine.v3"
    assert load_task("mine.v2", tmp_path / "own").name == "mine.v2"


def test_a_folder_cannot_change_a_shipped_task(tmp_path: Path) -> None:
    shipped = resource_dir("prompts") / "stance.v2.md"
    copy = tmp_path / "stance.v2.md"
    copy.write_bytes(shipped.read_bytes())
    assert load_task("stance", tmp_path).sha256 == load_task("stance").sha256
    copy.write_text(shipped.read_text("utf-8") + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"'stance\.v2' is the name of a shipped task"):
        find_tasks(tmp_path)


# What definitions.md says the papers' labels are, in the order in which they are shown.
SHIPPED = {
    "stance.v2": ({"stance": ["support", "refute", "neutral"]}, ["claim", "passage"]),
    "raguard_exam.v2": (
        {
            "verdict": ["true", "false", "does not contribute"],
            "raguard.role": ["supporting", "misleading", "irrelevant"],
        },
        ["claim", "passage"],
    ),
    "garage_relevance.v2": (
        {
            "relevance": ["ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "IRRELEVANT"],
            "relevance_grade": ["0", "1", "2"],
        },
        ["question", "passage"],
    ),
    "mirage_support.v2": (
        {"support": ["supported", "not_supported"]},
        ["question", "reference_answers", "passage"],
    ),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_tasks(name: str) -> None:
    fields, required = SHIPPED[name]
    loaded = load_task(name)
    assert {f: loaded.domain(f) for f in loaded.fields} == fields
    assert loaded.required_inputs == required
    assert loaded.spec.citation is not None
    assert loaded.spec.guidelines
    field = loaded.spec.questions[0].field
    assert answer_schema(loaded) == {
        "type": "object",
        "properties": {field: {"type": "string", "enum": fields[field]}},
        "required": [field],
        "additionalProperties": False,
    }


def test_every_shipped_task_loads_and_has_a_key_for_every_label() -> None:
    names = find_tasks()
    assert set(SHIPPED) <= set(names)
    for name in names:
        loaded = load_task(name)
        for question in loaded.spec.questions:
            assert all(label.key for label in question.labels), name


def test_the_garage_grade_is_ordinal() -> None:
    loaded = load_task("garage_relevance")
    assert loaded.level("relevance") == "nominal"
    assert loaded.level("relevance_grade") == "ordinal"


def test_the_schema_of_other_levels_and_of_a_rationale() -> None:
    front = {
        **STANCE,
        "rationale": "before",
        "questions": [
            *STANCE["questions"],
            {"field": "score", "level": "interval"},
            {"field": "why", "level": "text"},
        ],
    }
    schema = answer_schema(task(front))
    # A rationale that conditions the labels has to be written first, so it is the first property.
    assert list(schema["properties"]) == ["rationale", "stance", "score", "why"]
    assert schema["properties"]["score"] == {"type": "number"}
    assert schema["properties"]["why"] == {"type": "string"}
    assert list(answer_schema(task({**front, "rationale": "after"}))["properties"])[-1] == "rationale"
    assert schema["required"] == ["rationale", "stance", "score", "why"]
