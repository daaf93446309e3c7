"""The label panel: each question with its labels, their keys printed on them; what was shown after a commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content
from textual.style import Style

from annotate.guidelines import label_keys
from annotate.sitting.desk import Sheet
from annotate.sitting.unit import Source
from annotate.tui.colours import QUIET
from annotate.tui.untrusted import one_line, shown
from judge.prompts.load import Task
from judge.prompts.spec import Question

KEY_STYLE = "bold $text on $primary-muted"
CHOSEN_STYLE = "bold $text on $success-muted"
WRONG_STYLE = "bold $text on $error-muted"
RIGHT, SECOND = (" ✓ right ", CHOSEN_STYLE), (" ✓ right the second time ", CHOSEN_STYLE)
WRONG = (" ✗ not quite ", WRONG_STYLE)
INDENT = 4
"""Columns before a meaning that stands below its label."""
LEAST_MEANING = 40
"""Columns that a meaning needs to stand beside its label."""
NBSP = "\u00a0"


def label_panel(
    task: Task, sheet: Sheet, active: str | None, *, columns: int, meanings: bool = True, spaced: bool = False
) -> Content:
    """Questions with labels; the active one is marked, chosen labels stand out. Clickable.

    `columns` is the width of the panel. With `meanings`, a label has a row of its own, with its meaning; without them
    labels stand one beside the other. `spaced` puts an empty row between labels.
    """
    keys = label_keys(task)
    blocks: list[Content] = []
    several = len(task.spec.questions) > 1
    for number, question in enumerate(task.spec.questions):
        answer = sheet.state.answers.get(question.field)
        mark = "▸ " if question.field == active and several else "  " if several else ""
        style = "bold" if question.field == active else QUIET
        head = Content.styled(f"{mark}{question.ask or question.field}", style)
        chips = []
        for place, (key, value) in enumerate(keys[question.field].items()):
            chosen = value == answer
            box = f"{'✓' if chosen else ' '}{key} "
            click = Style.from_meta({"@click": f"screen.pick({number}, {place})"})
            style = CHOSEN_STYLE if chosen else KEY_STYLE
            # A grade is its own key: it is printed once.
            name = f"{NBSP}{value.replace(' ', NBSP)}" if value != key else ""
            chip = Content.assemble((box, style), name).stylize(click)
            chips.append(chip)
        if not question.labels:
            kind = "a number" if question.level == "interval" else "text"
            given = f"  {one_line(answer, 60)}" if answer is not None else ""
            chips.append(Content.assemble((" ⏎ ", KEY_STYLE), f" type {kind}", (given, "bold")))
        if meanings and (spaced or has_meanings(question)):
            told = [_meaning(question, value) for value in keys[question.field].values()]
            rows = _explained(chips, told, columns, spaced)
        else:
            rows = _rows(chips, columns)
        blocks.append(head + ("\n\n" if spaced else "\n") + rows)
    return Content("\n\n" if spaced else "\n").join(blocks)


def has_meanings(question: Question) -> bool:
    """Whether any label of a question says what it means."""
    return any(label.meaning for label in question.labels)


def _explained(chips: Sequence[Content], meanings: Sequence[str], columns: int, spaced: bool) -> Content:
    """A label a row with its meaning beside it, or below it where the panel is narrow."""
    indent = max(chip.cell_length for chip in chips) + 2
    if columns - indent < LEAST_MEANING:
        indent = INDENT
    rows: list[Content] = []
    for number, chip in enumerate(chips):
        lines = Content(meanings[number]).wrap(max(columns - indent, 1)) if number < len(meanings) else []
        told = [Content.styled(line.plain, QUIET) for line in lines if line.plain]
        room = indent - chip.cell_length
        if told and room > 0:
            chip = chip + " " * room + told.pop(0)
        rows.append(Content("\n").join([chip, *(" " * indent + line for line in told)]))
    return Content("\n\n" if spaced else "\n").join(rows)


def _rows(chips: Sequence[Content], columns: int) -> Content:
    """Labels one beside the other, in as many rows as they need; no label is broken."""
    rows: list[Content] = []
    for chip in chips:
        if rows and rows[-1].cell_length + 3 + chip.cell_length <= columns:
            rows[-1] = Content("   ").join([rows[-1], chip])
        else:
            rows.append(chip)
    return Content("\n").join(rows)


MOST_QUOTED = 300


def sources_panel(sources: Sequence[Source], fields: Sequence[str], texts: Mapping[str, str]) -> Content:
    """When adjudicating: what A, B and C said, with notes, reasons of flags and evidence, without names.

    `texts` are those of the unit by name: evidence is quoted from them.
    """
    rows = []
    for one in sources:
        said = " · ".join(one.answers.get(f, "–") for f in fields)
        # Names, not keys: a letter in the style of the label keys below was pressed for the person's answer.
        row = [(f"Person {one.letter} said ", QUIET), (said, "bold")]
        if one.note:
            row.append((f"  “{one_line(one.note)}”", QUIET))
        if one.flag:
            row.append((f"  ! {one_line(one.flag)}", "$text-warning"))
        for name, start, end in one.spans:
            quoted = one_line(texts.get(name, "")[start:end], MOST_QUOTED)
            row.append((f"\n    marked: {quoted}", QUIET))
        rows.append(Content.assemble(*row))
    return Content("\n").join(rows)


def _scored(mark: tuple[str, str], question: Question, said: str, more: str = "") -> Content:
    return Content.assemble(mark, f"  {question.field}: {said}", (more, QUIET))


def _meaning(question: Question, value: str | None) -> str:
    return next((x.meaning for x in question.labels if x.value == value and x.meaning), "")


def feedback_panel(
    key: dict[str, str], sheet: Sheet, task: Task, reasons: Mapping[str, str] | None = None
) -> Content:
    """After a training unit: right or wrong, what would have been right, and why.

    Without `reasons` the right answers are not shown yet: what was said wrong, and what it means, for a second try.
    """
    rows = []
    for question in task.spec.questions:
        right, given = key.get(question.field), sheet.state.answers.get(question.field)
        if right is None:
            continue
        if right == given:
            rows.append(_scored(RIGHT, question, right))
        elif reasons is None:
            meaning = _meaning(question, given)
            more = f", which means: {meaning}" if meaning else ""
            rows.append(_scored(WRONG, question, f"you said {given}", more))
        else:
            again, meaning = sheet.state.revised.get(question.field), _meaning(question, right)
            mark = SECOND if again is not None and again.value == right else WRONG
            second = f", then {again.value}" if again is not None else ""
            more = f" ({meaning})" if meaning else ""
            rows.append(_scored(mark, question, f"you said {given}{second}; it is {right}", more))
        if reasons and question.field in reasons:
            rows.append(Content.styled(f"  because: {shown(reasons[question.field]).text}", QUIET))
    told = "Enter goes on."
    if reasons is None:
        told = "Look again: another label is a second try, Enter shows the answer. ? has the guidelines."
    elif not rows:
        told = "The answers to training units stay with the lead in a packed batch.\nEnter goes on."
    return Content("\n").join([*rows, Content.styled(told, QUIET)])


def training_panel(total: int, right: int, mark: float, *, scored: bool) -> Content:
    """After the last training unit: how many were right, and whether that is enough."""
    head = Content.styled("The training units are done.", "bold")
    if not scored:
        told = Content(f"{total} answered; they are scored when this file is merged.")
    elif right >= mark * total:
        told = Content.assemble((" ✓ passed ", CHOSEN_STYLE), f"  {right} of {total} right; {mark:.0%} pass")
    else:
        told = Content.assemble(
            (" ✗ not passed ", WRONG_STYLE),
            f"  {right} of {total} right; {mark:.0%} pass.\n\n",
            "Read the guidelines again (?) and speak to your lead, who sees this too. You may go on; whether your "
            "labels count is for the lead to say.",
        )
    return Content("\n\n").join([head, told, Content.styled("Enter goes on.", QUIET)])


def judge_panel(judge: dict[str, dict[str, Any]], sheet: Sheet) -> Content:
    """After the commit of a unit in a revealing batch: what the judge said, and what to press."""
    rows = []
    for name, said in judge.items():
        mine = sheet.state.answers.get(name)
        done = sheet.state.revised.get(name)
        same = said["value"] == mine
        rows.append(
            Content.assemble(
                (" judge ", "bold $text on $warning-muted"),
                (f"  {said['value']}", "bold"),
                "  as you" if same else f"  you: {mine}",
                (
                    f"  → {'kept' if done.kept else 'revised to ' + done.value}" if done else "",
                    "bold $text-success",
                ),
            )
        )
        if said["distribution"]:
            masses = {k: v for k, v in said["distribution"].items() if k != "unassigned" or v > 0.005}
            rows.append(Content("  " + "  ".join(f"{k} {_bar(v)} {v:.0%}" for k, v in masses.items())))
        if said["rationale"]:
            rows.append(Content.styled(f"  “{shown(said['rationale']).text}”", QUIET))
    rows.append(Content.styled("Enter keeps yours; another label revises it, with a reason.", QUIET))
    return Content("\n").join(rows)


def _bar(share: float) -> str:
    return "█" * round(share * 8) or "·"
