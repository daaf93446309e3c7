"""Convert a task file to a labelling configuration of Label Studio, and its guidelines to HTML.

The texts of a unit become `Text` tags, which show markup as text. Every question becomes a control on the
main text, named after its field. `adjudge_evidence` and `adjudge_note` are the controls for evidence and
notes.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from html import escape
from xml.etree import ElementTree as ET

from annotate.exchange.texts import MARKABLE, find_marked_input, title
from annotate.guidelines import label_keys
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.prompts.render import instructions
from judge.prompts.spec import Question
from judge.types import Json

EVIDENCE = "adjudge_evidence"
MARK = "evidence"
NOTE = "adjudge_note"
_ORDER = ("question_date", "question", "claim", "counter_claim", "options", "reference_answers", "sentence",
          "answer_claim", "nugget", "answer", "baseline_answer", "passage_title", "passage_date", "passage_source",
          "passage")  # fmt: skip
_TEXTS = "padding-bottom: 1em"
_MEANING = "font-size: 0.9em; font-weight: normal; margin: 0"
_ASKED = (
    "position: sticky; bottom: -8px; z-index: 10; max-height: 50vh; overflow-y: auto; padding: 0.5em 1em calc(0.5em + 8px); "
    "background: var(--color-neutral-background, #fff); border-top: 1px solid #8888"
)
"""The style of the questions. It keeps them visible at the foot of the page, however long the texts above them are.

It also covers the 8 pixels between the questions and the page's own bar. Without this, text would be visible
below the questions.
"""
_SPARE = "123456789" + "qwertyuiopasdfghjklzxcvbnm"


@dataclass(frozen=True)
class ConfigLayout:
    """The names of a task's inputs and questions in the labelling configuration.

    Inputs that are `absent` from every unit get no heading. The data of every task still contains all inputs,
    with empty text for the absent inputs.
    """

    task: Task
    absent: frozenset[str] = frozenset()

    @cached_property
    def inputs(self) -> list[str]:
        """The task's inputs in the order of the page, with the main text last."""
        names = [n for n in _ORDER if n in self.task.input_names]
        names += [n for n in self.task.input_names if n not in names]
        return [*(n for n in names if n != self.main), self.main]

    @cached_property
    def main(self) -> str:
        """The input that the questions are about, and in which evidence is marked."""
        names = self.task.input_names
        return find_marked_input(names) or names[-1]

    @property
    def evidence(self) -> bool:
        """Whether annotators can mark evidence: only in a passage or an answer."""
        return self.main in MARKABLE

    def object_name(self, name: str) -> str:
        """Return the name of the tag that shows an input. The name differs from the names of all questions."""
        return f"text_{name}" if name in self.fields else name

    @cached_property
    def fields(self) -> dict[str, Question]:
        """A map from the name of each control to its question."""
        return {q.field: q for q in self.task.spec.questions}

    @cached_property
    def keys(self) -> dict[tuple[str, str], str]:
        """A map from (field, label) to the keyboard key of the label."""
        # All questions are on one page, and Label Studio assigns each key to only one label.
        of_task = {label.key for q in self.task.spec.questions for label in q.labels if label.key}
        out: dict[tuple[str, str], str] = {}
        used = {*of_task, "e"} if self.evidence else set(of_task)
        for name, keys in label_keys(self.task).items():
            for key, value in keys.items():
                spare = (c for c in _SPARE if c not in used)
                hotkey = key if key in of_task or key not in used else next(spare, None)
                if hotkey is not None:
                    out[name, value] = hotkey
                    used.add(hotkey)
        return out

    @cached_property
    def evidence_key(self) -> str | None:
        """The key that marks evidence: e or, if a label uses it, the first free key."""
        return next((c for c in "e" + _SPARE if c not in self.keys.values()), None)

    @cached_property
    def xml(self) -> str:
        """The labelling configuration as XML. Raises UsageError for a label that Label Studio would not store."""
        view = ET.Element("View")
        texts = ET.SubElement(view, "View", style=_TEXTS)
        questions = ET.SubElement(view, "View", style=_ASKED)
        for name in self.inputs:
            if name in self.absent - {self.main}:
                continue
            if name == self.main and self.evidence:
                self._evidence(questions)
            ET.SubElement(texts, "Header", value=_literal(title(name)), size="6")
            ET.SubElement(texts, "Text", name=self.object_name(name), value=f"${name}", granularity="word")
        for question in self.task.spec.questions:
            self._question(questions, question)
        ET.SubElement(
            questions, "TextArea", name=NOTE, toName=self.object_name(self.main), rows="2", maxSubmissions="1",
            editable="true", placeholder="A note (not needed)",
        )  # fmt: skip
        ET.indent(view)
        return ET.tostring(view, encoding="unicode") + "\n"

    def _evidence(self, view: ET.Element) -> None:
        labels = ET.SubElement(view, "Labels", name=EVIDENCE, toName=self.object_name(self.main))
        label = ET.SubElement(labels, "Label", value=MARK, background="#ffc069")
        if self.evidence_key:
            label.set("hotkey", self.evidence_key)

    def _question(self, view: ET.Element, question: Question) -> None:
        to = self.object_name(self.main)
        ET.SubElement(view, "Header", value=_literal(question.ask or question.field), size="5")
        if question.level == "interval":
            ET.SubElement(view, "Number", name=question.field, toName=to, required="true")
        elif question.level == "text":
            area = ET.SubElement(
                view, "TextArea", name=question.field, toName=to, required="true", editable="true"
            )
            area.set("rows", "2")
            if not question.many:
                # Without this limit, people can submit several texts.
                area.set("maxSubmissions", "1")
        else:
            choices = ET.SubElement(
                view, "Choices", name=question.field, toName=to, choice="single-radio", required="true",
                requiredMessage=f"Answer: {question.ask or question.field}",
            )  # fmt: skip
            for label in question.labels:
                if label.value.startswith("$"):
                    raise UsageError(
                        f"task {self.task.name}: Label Studio reads the label '{label.value}' as a variable: "
                        "start it with a different character"
                    )
                choice = ET.SubElement(choices, "Choice", value=label.value)
                if key := self.keys.get((question.field, label.value)):
                    choice.set("hotkey", key)
                if label.meaning:
                    choice.set("hint", _literal(label.meaning))
            for label in question.labels:
                # A hint appears only while the mouse is on the label, so the meanings are also printed as text.
                if label.meaning:
                    meaning = _literal(f"{label.value}: {label.meaning}")
                    ET.SubElement(view, "Header", value=meaning, size="6", style=_MEANING)

    def region(self, field: str, value: str) -> dict[str, Json]:
        """Convert an answer to the form in which Label Studio stores it. Raises ValueError for an invalid
        number or list.
        """
        question = self.fields[field]
        region: dict[str, Json] = {
            "id": f"adjudge-{field}",
            "from_name": field,
            "to_name": self.object_name(self.main),
        }
        if question.level == "interval":
            return region | {"type": "number", "value": {"number": json.loads(value)}}
        if question.level == "text":
            texts = json.loads(value) if question.many else [value]
            return region | {"type": "textarea", "value": {"text": texts}}
        return region | {"type": "choices", "value": {"choices": [value]}}

    @cached_property
    def instruction(self) -> str:
        """Return the instructions, questions and guidelines as HTML for the project's instruction page."""
        spec = self.task.spec
        parts = [f"<h3>{escape(spec.title)}</h3>"]
        if text := instructions(self.task):
            parts.append(_html(text))
        for question in spec.questions:
            parts.append(f"<h4>{escape(question.ask or question.field)}</h4>")
            items = [
                f"<li><b>{escape(label.value)}</b>{key}{': ' + escape(label.meaning) if label.meaning else ''}</li>"
                for label in question.labels
                for key in [_format_key(self.keys.get((question.field, label.value)))]
            ]
            parts.append(
                f"<ul>{''.join(items)}</ul>" if items else "<p>Answer in words or with a number.</p>"
            )
        if spec.guidelines.strip():
            parts.append(_html(spec.guidelines))
        if self.evidence:
            key = _format_key(self.evidence_key)
            parts.append(f"<p>Evidence{key}: choose it, then mark the words that decide.</p>")
        return "\n".join(parts)


def _html(markdown: str) -> str:
    """Convert Markdown to HTML. HTML in the Markdown is escaped, links must be http or https, and nothing is
    loaded from elsewhere.
    """
    # A task file may come from somebody else, and annotators are logged in where this page is shown.
    from markdown_it import MarkdownIt

    made = (
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        .disable(["image", "html_block", "html_inline"])
    )
    made.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    return str(made.render(markdown)).strip()


def _format_key(key: str | None) -> str:
    return f" [{escape(key)}]" if key else ""


def _literal(text: str) -> str:
    """Escape text for use in an attribute of a tag."""
    flat = " ".join(text.split())
    # Label Studio reads an attribute that begins with $ as the name of a variable in the task's data.
    return f"\u200a{flat}" if flat.startswith("$") else flat
