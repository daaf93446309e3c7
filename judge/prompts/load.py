"""Find task files, read them, and say precisely what is wrong with one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from judge.errors import TaskError, UsageError
from judge.prompts.inputs import gold_input
from judge.prompts.spec import Example, Question, TaskSpec
from judge.resources import resource_dir
from judge.types import Json

UNIT_MARK = "<!-- unit -->"
_NAME = re.compile(r"^([a-z][a-z0-9_]*)\.v([1-9][0-9]*)\.md$")


@dataclass(frozen=True)
class Task:
    """A loaded task file. `constant` and `unit` are the two halves of its template."""

    task_id: str
    version: int
    spec: TaskSpec
    constant: str
    unit: str
    text: str
    path: str
    declared: TaskSpec | None = None
    """The file's own front matter, where a run asks for another rationale or other examples."""
    tells_guidelines: bool = False
    """Whether the model is told the guidelines that people are given."""
    instructions: str | None = None
    """Plain text in place of the constant half, where a run asks with other instructions than the file's."""
    nearest: int | None = None
    """Of the examples of each label only so many are shown, those nearest to the unit by BM25; None: all, always."""

    @property
    def asked(self) -> dict[str, Json]:
        """What a run asks for otherwise than the file: part of the run's identity."""
        found: dict[str, Json] = {"guidelines": "shown"} if self.tells_guidelines else {}
        if self.instructions is not None:
            found["instructions"] = self.instructions
        if self.declared is None:
            return found
        if self.spec.rationale != self.declared.rationale:
            found["rationale"] = self.spec.rationale
        if self.spec.examples != self.declared.examples:
            found["examples"] = ",".join(str(example.item_id) for example in self.spec.examples)
        if self.nearest is not None:
            found["nearest_examples"] = self.nearest
        return found

    def thinking(self, rationale: str | None) -> Task:
        """The task with free text `before` or `after` its labels, or `none`; None: as its file says.

        Raises UsageError for a task whose examples have no rationale to show.
        """
        if rationale is None or rationale == self.spec.rationale:
            return self
        if rationale != "none" and not all(e.rationale.strip() for e in self.spec.examples):
            raise UsageError(
                f"{self.name}: its examples have no rationale to show: --rationale none, or a version with one in each"
            )
        return self._changed(rationale=rationale)

    def showing(self, examples: Sequence[Example], nearest: int | None = None) -> Task:
        """The task with these few-shot examples in place of its own; `nearest`: only so many of each label for a unit.

        Raises UsageError where the nearest of several questions' labels are asked for.
        """
        if nearest is not None and not self._one_label:
            raise UsageError(
                f"{self.name}: the nearest examples of each label are for one question with labels"
            )
        return replace(self._changed(examples=list(examples)), nearest=nearest)

    def with_guidelines(self) -> Task:
        """The task whose model is told the guidelines for people, too. Raises UsageError where there are none."""
        if not self.spec.guidelines.strip():
            raise UsageError(f"{self.name} has no guidelines to show")
        return replace(self, tells_guidelines=True)

    def with_instructions(self, text: str) -> Task:
        """The task asked with other instructions: plain text, whatever it holds, and no template."""
        return replace(self, instructions=text)

    def _changed(self, **keys: Any) -> Task:
        return replace(self, spec=self.spec.model_copy(update=keys), declared=self.declared or self.spec)

    @property
    def name(self) -> str:
        """The name with its version, as stored: `stance.v1`."""
        return f"{self.task_id}.v{self.version}"

    @cached_property
    def sha256(self) -> str:
        """Hash of the file's text; a study refuses another text under a version it has used."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def fields(self) -> list[str]:
        """Asked fields, then derived ones."""
        return [q.field for q in self.spec.questions] + list(self.spec.derive)

    def question(self, field: str) -> Question:
        """The question that asks for `field`. Raises KeyError."""
        return next(q for q in self.spec.questions if q.field == field)

    def domain(self, field: str) -> list[str]:
        """The declared labels of an asked or derived field, in order; empty for interval and text."""
        if field in self.spec.derive:
            return self.spec.derive[field].domain()
        return [label.value for label in self.question(field).labels]

    def level(self, field: str) -> str:
        """The measurement level of a field."""
        return self.spec.derive[field].level if field in self.spec.derive else self.question(field).level

    @property
    def required_inputs(self) -> list[str]:
        """Inputs a unit must have to be asked about."""
        return [*self.spec.inputs, *self.gold_inputs]

    @property
    def input_names(self) -> list[str]:
        """All inputs, the optional ones last."""
        return [*self.required_inputs, *self.spec.optional_inputs]

    @property
    def gold_inputs(self) -> dict[str, str]:
        """Inputs that are gold -> their gold field; only a task for people has any."""
        return {gold_input(field): field for field in self.spec.shows_gold}

    @property
    def people_only(self) -> bool:
        """The task shows gold: people may do it, knowing that it is not blind; no model is asked."""
        return bool(self.spec.shows_gold)

    @property
    def one_choice(self) -> bool:
        """One question with labels and no rationale: a single character can answer it."""
        return self._one_label and self.spec.rationale == "none"

    @property
    def reasons_first(self) -> bool:
        """One question with labels after a rationale: two calls can answer it, the reasoning and then one character."""
        return self._one_label and self.spec.rationale == "before"

    @property
    def _one_label(self) -> bool:
        return len(self.spec.questions) == 1 and bool(self.spec.questions[0].labels)


class _Loader(yaml.SafeLoader):
    """YAML without the right to say a key twice: the first value would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (k for k, _ in node.value if isinstance(k, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key '{key.value}' stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


@lru_cache(maxsize=256)
def parse_task(text: str, file_name: str, path: str = "") -> Task:
    """Read the text of a task file. Raises TaskError naming file and field.

    Kept by text: a report asks for the same stored task many times, and a Task never changes.
    """
    where = path or file_name
    match = _NAME.match(file_name)
    if not match:
        raise TaskError(f"{where}: a task file is called NAME.vN.md (lower case, for example stance.v1.md)")
    head, body = _split(text, where)
    try:
        front = yaml.load(head, _Loader)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""
        problem = " ".join(str(getattr(e, "problem", None) or e).split())
        raise TaskError(f"{where}: the front matter is not YAML{line}: {problem}") from e
    if not isinstance(front, dict):
        raise TaskError(f"{where}: the front matter must be a mapping with title, unit, inputs, questions")
    try:
        spec = TaskSpec.model_validate(front)
    except ValidationError as e:
        raise TaskError(f"{where}: " + "; ".join(_complaint(err) for err in e.errors())) from e
    constant, mark_found, unit = body.partition(UNIT_MARK)
    if not mark_found:
        raise TaskError(
            f"{where}: the template needs a line '{UNIT_MARK}': what is the same for all units above it, "
            "the unit's own text below"
        )
    if UNIT_MARK in unit:
        raise TaskError(f"{where}: '{UNIT_MARK}' stands twice in the template")
    task = Task(match[1], int(match[2]), spec, constant.strip(), unit.strip(), text, path)
    from judge.prompts.check import check_template  # it renders, so it needs Task first

    check_template(task, where)
    return task


def with_constant(task: Task, constant: str, version: int) -> Task:
    """The task as a file of another version with other instructions. Raises TaskError where they make no task file."""
    head, body = _split(task.text, task.name)
    _, _, unit = body.partition(UNIT_MARK)
    name = f"{task.task_id}.v{version}.md"
    return parse_task(f"---\n{head}\n---\n{constant.strip()}\n{UNIT_MARK}{unit}", name)


def _split(text: str, where: str) -> tuple[str, str]:
    if not text.startswith("---\n"):
        raise TaskError(f"{where}: the first line must be '---' (YAML front matter)")
    head, found, body = text[4:].partition("\n---\n")
    if not found:
        raise TaskError(f"{where}: no line '---' closes the front matter")
    return head, body


def _complaint(error: Any) -> str:
    where = ".".join(str(p) for p in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown key '{where}'"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def find_tasks(folder: Path | None = None) -> dict[str, Path]:
    """Task files by `name.vN`: the shipped ones, then the user's own folder over them.

    Raises UsageError when the folder does not exist or holds a second file for a shipped version.
    """
    found = dict(_shipped(resource_dir("prompts")))
    if folder is None:
        return found
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of task files")
    for name, path in _tasks_in(folder).items():
        if name in found and found[name].read_bytes() != path.read_bytes():
            raise UsageError(f"{path}: '{name}' is a shipped task; give yours another name or version")
        found[name] = path
    return found


@cache
def _shipped(folder: Path) -> dict[str, Path]:
    """Looked for once: an import asks for each of them several times."""
    return _tasks_in(folder)


def _tasks_in(folder: Path) -> dict[str, Path]:
    paths = sorted(folder.glob("*.md"), key=_order)
    return {p.name.removesuffix(".md"): p for p in paths if p.name not in ("README.md",)}


def _order(path: Path) -> tuple[str, int]:
    match = _NAME.match(path.name)
    return (match[1], int(match[2])) if match else (path.name, 0)


def load_task(name: str, folder: Path | None = None) -> Task:
    """The task called `stance` (its newest version), `stance.v1`, or a path to a task file.

    Raises UsageError when there is none, TaskError when the file is bad.
    """
    if name.endswith(".md"):
        path = Path(name)
    else:
        found = find_tasks(folder)
        versions = [n for n in found if n == name or n.rpartition(".v")[0] == name]
        if not versions:
            close = get_close_matches(name, [n.rpartition(".v")[0] for n in found], n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise UsageError(f"no task '{name}'{meant}; there are: {', '.join(found)}")
        path = found[max(versions, key=lambda n: _order(found[n]))]
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise TaskError(f"{path}: not UTF-8 (byte {e.start})") from e
    return parse_task(text.replace("\r\n", "\n"), path.name, str(path))


def answer_schema(task: Task, domains: dict[str, Sequence[str]] | None = None) -> dict[str, Json]:
    """The strict JSON Schema of one answer: every field required, labels as an enum."""
    properties: dict[str, Json] = {}
    if task.spec.rationale == "before":
        properties["rationale"] = {"type": "string"}
    for question in task.spec.questions:
        if question.labels:
            values = (domains or {}).get(question.field) or [label.value for label in question.labels]
            properties[question.field] = {"type": "string", "enum": list(values)}
        elif question.many:
            properties[question.field] = {"type": "array", "items": {"type": "string"}}
        else:
            properties[question.field] = {"type": "number" if question.level == "interval" else "string"}
    if task.spec.rationale == "after":
        properties["rationale"] = {"type": "string"}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
