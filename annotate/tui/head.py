"""The head of a unit: the question or claim, what gold a task shows, and which part of an answer is meant."""

from __future__ import annotations

from textual.content import Content
from textual.style import Style

from annotate.guidelines import label_keys
from annotate.sitting.desk import Sheet
from annotate.sitting.unit import AnswerPart
from annotate.tui.colours import QUIET
from annotate.tui.untrusted import one_line, shown
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task

LISTS = LIST_INPUTS
HEAD = ("question", "claim", "counter_claim", "options", "reference_answers", "sentence", "answer_claim")
NAMES = {
    "question": "Question",
    "claim": "Claim",
    "counter_claim": "Counter claim",
    "options": "Options",
    "reference_answers": "Reference answer",
    "sentence": "Sentence",
    "answer_claim": "Claim of the answer",
}
BOLD = ("question", "claim", "counter_claim", "sentence", "answer_claim")
NAME_STYLE = "bold $text-primary"
GOLD_STYLE = "bold $text on $warning-muted"
HERE_STYLE = "bold $text on $primary-muted"
MOST_PARTS = 40


def head(task: Task, sheet: Sheet) -> Content:
    """What is asked about, in a few lines."""
    inputs, rows = sheet.inputs, []
    for name in HEAD:
        value = inputs.get(name)
        if not value:
            continue
        label = NAMES[name]
        if name == "question" and inputs.get("question_date"):
            label += f" ({one_line(str(inputs['question_date']), 40)})"
        if isinstance(value, list):
            value = " · ".join(str(v) for v in value)
        elif isinstance(value, dict):
            value = "\n".join(f"{k}. {v}" for k, v in value.items())
        style = "bold" if name in BOLD else ""
        rows.append(Content.assemble((f"{label}  ", NAME_STYLE), (shown(str(value)).text, style)))
    for name, gold in task.gold_inputs.items():
        told = one_line(str(inputs[name]), 200)
        rows.append(Content.assemble((f" {gold}: {told} ", GOLD_STYLE), ("  shown: not a blind task", QUIET)))
    if len(sheet.parts) > 1:
        rows.append(_steps(task, sheet))
    return Content("\n").join(rows)


def _steps(task: Task, sheet: Sheet) -> Content:
    """The parts of this answer and what was said of them: a click goes there."""
    keys = {value: key for labels in label_keys(task).values() for key, value in labels.items()}
    at = next(i for i, p in enumerate(sheet.parts) if p.position == sheet.position)
    kind = task.spec.unit.capitalize()
    first = max(0, min(at - MOST_PARTS // 2, len(sheet.parts) - MOST_PARTS))
    chips = [Content.styled(f"{kind} {at + 1} of {len(sheet.parts)} to label in this answer  ", NAME_STYLE)]
    for number, part in enumerate(sheet.parts[first : first + MOST_PARTS], first + 1):
        told = f" {number}{_mark(part, keys)} "
        chip = Content.styled(told, HERE_STYLE if part.position == sheet.position else QUIET)
        chips.append(chip.stylize(Style.from_meta({"@click": f"screen.go({part.position})"})))
    return Content("").join(chips)


def _mark(part: AnswerPart, keys: dict[str, str]) -> str:
    if part.status == "skipped":
        return "-"
    return "".join(keys.get(value, "✓") for value in part.answers.values()) or "·"
