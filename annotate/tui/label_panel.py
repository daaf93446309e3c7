"""The panel with each question, its labels and their keys, and the panels that are shown after a commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content
from textual.style import Style

from annotate.guidelines import label_keys
from annotate.sitting.desk import Sheet
from annotate.sitting.unit import Source
from annotate.tui.colours import QUIET
from annotate.tui.untrusted import make_one_line, make_visible
from judge.prompts.load import Task
from judge.prompts.spec import Question

KEY_STYLE = "bold $text on $primary-muted"
CHOSEN_STYLE = "bold $text on $success-muted"
WRONG_STYLE = "bold $text on $error-muted"
RIGHT, SECOND = (" ✓ right ", CHOSEN_STYLE), (" ✓ right the second time ", CHOSEN_STYLE)
WRONG = (" ✗ not quite ", WRONG_STYLE)
INDENT = 4
"""The indentation, in columns, of a label's meaning if it is below the label."""
LEAST_MEANING = 40
"""The minimum width, in columns, of a label's meaning if it is beside the label."""
NBSP = "\u00a0"


PICK = "pick"
"""The key in the meta data of a label's rows; its value is the number of the question and that of the label."""
# This is not Textual's `@click`, which would give the meanings the colour of links.


def label_panel(
    task: Task, sheet: Sheet, active: str | None, *, columns: int, meanings: bool = True, spaced: bool = False
) -> Content:
    """Return the questions with clickable labels. The active question is marked, and chosen labels are highlighted.

    `columns` is the width of the panel. If `meanings` is true, each label is on a row of its own with its meaning. Otherwise
    the labels are side by side. `spaced` adds an empty row between labels.
    """
    keys = label_keys(task)
    blocks: list[Content] = []
    several = len(task.spec.questions) > 1
    for number, question in enumerate(task.spec.questions):
        answer = sheet.state.answers.get(question.field)
        mark = "▸ " if question.field == active and several else "  " if several else ""
        style = "bold" if question.field == active else QUIET
        head = Content.styled(f"{mark}{question.ask or question.field}", style)
        chips: list[Content] = []
        clicks: list[Style] = []
        for place, (key, value) in enumerate(keys[question.field].items()):
            chosen = value == answer
            box = f"{'✓' if chosen else ' '}{key} "
            clicks.append(Style.from_meta({PICK: (number, place)}))
            style = CHOSEN_STYLE if chosen else KEY_STYLE
            # A grade is its own key, so it is printed once. A name must not be split over two rows.
            name = f"{NBSP}{value.replace(' ', NBSP)}" if value != key else ""
            chips.append(Content.assemble((box, style), name).stylize(clicks[-1]))
        if not question.labels:
            kind = "a number" if question.level == "interval" else "text"
            given = f"  {make_one_line(answer, 60)}" if answer is not None else ""
            chips.append(Content.assemble((" ⏎ ", KEY_STYLE), f" type {kind}", (given, "bold")))
        if meanings and (spaced or has_meanings(question)):
            text = [_meaning(question, value) for value in keys[question.field].values()]
            rows = _lay_out_with_meanings(chips, text, clicks, columns, spaced)
        else:
            rows = _rows(chips, columns)
        blocks.append(head + ("\n\n" if spaced else "\n") + rows)
    return Content("\n\n" if spaced else "\n").join(blocks)


def has_meanings(question: Question) -> bool:
    """Return whether the task explains the meaning of any of the question's labels."""
    return any(label.meaning for label in question.labels)


def _lay_out_with_meanings(
    chips: Sequence[Content], meanings: Sequence[str], clicks: Sequence[Style], columns: int, spaced: bool
) -> Content:
    """Return the labels, one per row, each with its meaning beside it, or below it in a narrow panel.

    `clicks` has, for each label, the style that gives the label when it is clicked.
    """
    indent = max(chip.cell_length for chip in chips) + 2
    if columns - indent < LEAST_MEANING:
        indent = INDENT
    rows: list[Content] = []
    for number, chip in enumerate(chips):
        lines = Content(meanings[number]).wrap(max(columns - indent, 1)) if number < len(meanings) else []
        text = [Content.styled(line.plain, QUIET) for line in lines if line.plain]
        room = indent - chip.cell_length
        if text and room > 0:
            chip = chip + " " * room + text.pop(0)
        # A click anywhere on the label's rows gives the label, so they are filled up to the width of the panel.
        filled = [
            line + " " * (columns - line.cell_length)
            for line in (chip, *(" " * indent + line for line in text))
        ]
        rows.append(Content("\n").join(filled).stylize(clicks[number] if number < len(clicks) else ""))
    return Content("\n\n" if spaced else "\n").join(rows)


def _rows(chips: Sequence[Content], columns: int) -> Content:
    """Return the labels side by side, in as many rows as they need. No label is split between rows."""
    rows: list[Content] = []
    for chip in chips:
        if rows and rows[-1].cell_length + 3 + chip.cell_length <= columns:
            rows[-1] = Content("   ").join([rows[-1], chip])
        else:
            rows.append(chip)
    return Content("\n").join(rows)


MOST_QUOTED = 300


def sources_panel(sources: Sequence[Source], fields: Sequence[str], texts: Mapping[str, str]) -> Content:
    """Return the labels, notes, flags and evidence of the annotators, who are shown as A, B and C for adjudication.

    `texts` maps names to the unit's texts, from which evidence is quoted.
    """
    rows = []
    for source in sources:
        label = " · ".join(source.answers.get(f, "–") for f in fields)
        # This is not in the style of label keys: annotators pressed a letter that looked like a key for a person's label.
        row = [(f"Person {source.letter} said ", QUIET), (label, "bold")]
        if source.note:
            row.append((f"  “{make_one_line(source.note)}”", QUIET))
        if source.flag:
            row.append((f"  ! {make_one_line(source.flag)}", "$text-warning"))
        for name, start, end in source.spans:
            quoted = make_one_line(texts.get(name, "")[start:end], MOST_QUOTED)
            row.append((f"\n    marked: {quoted}", QUIET))
        rows.append(Content.assemble(*row))
    return Content("\n").join(rows)


def _format_score(mark: tuple[str, str], question: Question, label: str, more: str = "") -> Content:
    return Content.assemble(mark, f"  {question.field}: {label}", (more, QUIET))


def _meaning(question: Question, value: str | None) -> str:
    return next((x.meaning for x in question.labels if x.value == value and x.meaning), "")


def feedback_panel(
    key: dict[str, str], sheet: Sheet, task: Task, reasons: Mapping[str, str] | None = None
) -> Content:
    """Return the feedback on a training unit: right or wrong, the right answers, and their reasons.

    If `reasons` is None, a second try is allowed, so the right answers stay hidden. A wrong answer is then
    shown with only its own meaning.
    """
    rows = []
    for question in task.spec.questions:
        right, given = key.get(question.field), sheet.state.answers.get(question.field)
        if right is None:
            continue
        if right == given:
            rows.append(_format_score(RIGHT, question, right))
        elif reasons is None:
            meaning = _meaning(question, given)
            more = f", which means: {meaning}" if meaning else ""
            rows.append(_format_score(WRONG, question, f"you said {given}", more))
        else:
            again, meaning = sheet.state.revised.get(question.field), _meaning(question, right)
            mark = SECOND if again is not None and again.value == right else WRONG
            second = f", then {again.value}" if again is not None else ""
            more = f" ({meaning})" if meaning else ""
            rows.append(_format_score(mark, question, f"you said {given}{second}; it is {right}", more))
        if reasons and question.field in reasons:
            rows.append(Content.styled(f"  because: {make_visible(reasons[question.field]).text}", QUIET))
    text = "Enter goes on."
    if reasons is None:
        text = "Look again: another label is a second try, Enter shows the answer. ? has the guidelines."
    elif not rows:
        text = "In a packed batch, only the lead has the answers to training units.\nEnter goes on."
    return Content("\n").join([*rows, Content.styled(text, QUIET)])


def training_panel(total: int, right: int, mark: float, *, scored: bool) -> Content:
    """Return the result of the training: how many units were labelled correctly, and whether the person passed."""
    head = Content.styled("The training units are done.", "bold")
    if not scored:
        text = Content(f"{total} answered; they will be scored when this file is merged.")
    elif right >= mark * total:
        text = Content.assemble(
            (" ✓ passed ", CHOSEN_STYLE), f"  {right} of {total} right; the pass mark is {mark:.0%}"
        )
    else:
        text = Content.assemble(
            (" ✗ not passed ", WRONG_STYLE),
            f"  {right} of {total} right; the pass mark is {mark:.0%}.\n\n",
            "Read the guidelines again (?) and talk to your lead, who also sees this result. You may go on; your lead "
            "decides whether your labels count.",
        )
    return Content("\n\n").join([head, text, Content.styled("Enter goes on.", QUIET)])


def judge_panel(judge: dict[str, dict[str, Any]], sheet: Sheet) -> Content:
    """Return the judge's labels for a unit that the user has labelled, and the keys to keep or revise the user's label."""
    rows = []
    for name, label in judge.items():
        mine = sheet.state.answers.get(name)
        done = sheet.state.revised.get(name)
        same = label["value"] == mine
        rows.append(
            Content.assemble(
                (" judge ", "bold $text on $warning-muted"),
                (f"  {label['value']}", "bold"),
                "  as you" if same else f"  you: {mine}",
                (
                    f"  → {'kept' if done.kept else 'revised to ' + done.value}" if done else "",
                    "bold $text-success",
                ),
            )
        )
        if label["distribution"]:
            masses = {k: v for k, v in label["distribution"].items() if k != "unassigned" or v > 0.005}
            rows.append(Content("  " + "  ".join(f"{k} {_bar(v)} {v:.0%}" for k, v in masses.items())))
        if label["rationale"]:
            rows.append(Content.styled(f"  “{make_visible(label['rationale']).text}”", QUIET))
    rows.append(Content.styled("Enter keeps yours; another label revises it, with a reason.", QUIET))
    return Content("\n").join(rows)


def _bar(share: float) -> str:
    return "█" * round(share * 8) or "·"
