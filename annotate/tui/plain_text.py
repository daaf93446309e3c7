"""The lines that `annotate open --plain` prints: a unit, its questions, a list of units, and the help."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

from textual.content import Content

from annotate.guidelines import markdown
from annotate.sitting.desk import Desk
from annotate.sitting.events import UnitStatus
from annotate.tui.at_hand import AtHand
from annotate.tui.form import BETWEEN
from annotate.tui.label_panel import feedback_panel
from annotate.tui.review import FILTERS
from annotate.tui.unit import head, unit_text
from annotate.tui.untrusted import make_one_line

LISTED = 20
"""The maximum number of units that a list prints."""
USUAL_ROWS = 24
COMMANDS = {
    "<": ("undo", "undo your last action, as often as you like"),
    "-": ("skip", "leave this unit for later"),
    "!": ("flag", "flag this unit with a reason, or remove its flag"),
    "+": ("note", "write a note on this unit; - removes it"),
    ".": ("again", "print the unit again"),
    "#": ("go", "go to a unit by its number: # 12"),
    "=": ("list", f"your units: = {' or = '.join(FILTERS[1:])}"),
    "/": ("find", "find text in your units: / words"),
    "?": ("help", "guidelines, labels and these commands"),
    "q!": ("quit", "quit, like Ctrl+D; everything is stored already"),
}
"""A map from each command's sign to its word and its description.

The user types the sign or the word, then the argument if the command has one.
"""


def unit_lines(desk: Desk, hand: AtHand) -> Iterator[str]:
    """Yield the lines that describe the current unit: its position, its texts, and the annotator's flag and note."""
    role = f", {hand.unit.role}" if hand.unit.role != "unit" else ""
    text = unit_text(desk.task, hand.unit, lambda _: 0, highlights=False)
    yield f"\nUnit {hand.unit.position} of {desk.total}, {hand.counts['done']} done{role}"
    for content in (head(desk.task, hand.unit), text.body, text.aside):
        if content is not None and content.plain.strip():
            yield f"\n{content.plain.rstrip()}"
    state = hand.unit.state
    for name, typed in (("Flag", state.flag), ("Note", state.note)):
        if typed:
            yield f"{name}: {typed}"


def question_lines(desk: Desk, hand: AtHand) -> Iterator[str]:
    """Yield the lines to which the user replies: the questions, the feedback in training, or the judge's label."""
    if hand.phase == "key":
        position = hand.unit.position
        reasons = None if hand.trying else desk.reasons(position)
        yield feedback_panel(desk.key(position), hand.unit, desk.task, reasons).plain
    elif hand.phase == "judge":
        yield from _judge_lines(desk, hand)
    else:
        yield from _label_lines(desk, hand)


def _label_lines(desk: Desk, hand: AtHand) -> Iterator[str]:
    for question in desk.task.spec.questions:
        if hand.active not in (None, question.field):
            continue
        answer = hand.unit.state.answers.get(question.field)
        given = "" if answer is None else f" Your answer: {answer}."
        yield f"\n{question.ask or question.field}{given}"
        meanings = {label.value: label.meaning for label in question.labels}
        for key, value in hand.labels[question.field].items():
            name = f"{key}  {value}" if value != key else key
            yield f"{name}{': ' if meanings[value] else ''}{meanings[value] or ''}"
        if not question.labels:
            kind = "a number" if question.level == "interval" else "your answer"
            yield f"Type {kind}{f'; separate several answers with {BETWEEN}' if question.many else ''}."
    if hand.status is UnitStatus.SKIPPED:
        yield "You skipped this unit: give a label to answer it, or press Enter to go on."
    elif hand.status is not UnitStatus.OPEN:
        yield "This unit is finished: give another label to change it, or press Enter to go on."


def _judge_lines(desk: Desk, hand: AtHand) -> Iterator[str]:
    unit = hand.unit
    for field, judged in desk.judge(unit.position).items():
        shares = ", ".join(f"{label} {share:.0%}" for label, share in (judged["distribution"] or {}).items())
        yield f"The judge says {judged['value']}; you said {unit.state.answers.get(field)}."
        for more in (shares, judged["rationale"]):
            if more:
                yield more
    yield "Enter keeps yours; another label revises it, with a reason."


def list_lines(desk: Desk, only: str, search: str) -> Iterator[str]:
    """Yield one line for each unit that passes the filter `only` (one of FILTERS) and contains `search`.

    At most LISTED units are listed. The last line says how many units are listed, and how many there are in total.
    """
    rows, total = desk.listing(only, search, limit=LISTED), desk.count(only, search)
    for row in rows:
        given = ", ".join(row.answers.values()) or row.status
        extra = "".join(
            f", {name} {make_one_line(text, 60)}"
            for name, text in (("flag", row.flag), ("note", row.note))
            if text
        )
        yield f"{row.position}  {given}{extra}: {make_one_line(row.text, 120)}"
    yield f"{len(rows)} of {total} units. Type # and a number to go to a unit."


def help_lines(desk: Desk) -> Iterator[str]:
    """Yield the task's guidelines and the commands."""
    yield markdown(desk.task).replace("`", "").replace("**", "")
    yield "\nCommands, each typed on a line of its own:"
    for sign, (word, does) in COMMANDS.items():
        yield f"{sign} or {word}: {does}"


def screen_rows(out: TextIO) -> int:
    """Return the number of lines that the terminal shows, or a default if `out` is not a terminal."""
    return os.get_terminal_size(out.fileno()).lines if out.isatty() else USUAL_ROWS


def wrap_for_terminal(text: str, out: TextIO) -> str:
    """Wrap a text between words if `out` is a terminal, because the terminal itself would break words."""
    columns = os.get_terminal_size(out.fileno()).columns if out.isatty() else 0
    if not columns:
        return text
    return "\n".join(part.plain for line in text.split("\n") for part in Content(line).wrap(columns))


def forget_typed(lines: TextIO) -> None:
    """Discard the pending input of a terminal. Piped input is not discarded, because it comes from a program."""
    # Windows has no termios, and the input buffer of its console cannot be discarded from here.
    with suppress(ImportError, OSError, ValueError):
        import termios

        if lines.isatty():
            termios.tcflush(lines.fileno(), termios.TCIFLUSH)
