"""`annotate open --plain`: a line-by-line dialogue, for screen readers and terminals without a full-screen mode.

The dialogue prints a unit, then its question with the labels. The user answers with one line, and the answer is
committed before the next unit is printed. Hidden checks, training, the judge's labels and undo work as on the labelling
screen. Evidence cannot be marked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TextIO

from annotate.sitting.desk import Desk
from annotate.sitting.events import State, UnitStatus
from annotate.tui.at_hand import LONG, AtHand
from annotate.tui.form import listed
from annotate.tui.label_panel import training_panel
from annotate.tui.plain_text import (
    COMMANDS,
    forget_typed,
    help_lines,
    list_lines,
    question_lines,
    screen_rows,
    unit_lines,
    wrap_for_terminal,
)
from annotate.tui.review import FILTERS
from annotate.tui.unit import head
from annotate.tui.untrusted import make_one_line, make_visible
from judge.errors import AdjudgeError

# The same time as on the screen (`workplace.PATIENCE`).
BUSY_MS = 10_000
"""The maximum time, in milliseconds, that a commit waits while another program writes to the study."""
_BY_WORD = {word: sign for sign, (word, _) in COMMANDS.items()}


class Dialogue:
    """A dialogue with one annotator. It begins with the first unit, and ends when the annotator quits or the input ends."""

    def __init__(self, desk: Desk, lines: TextIO, out: TextIO) -> None:
        self._desk, self._lines, self._out = desk, lines, out
        self._hand = AtHand(desk, {})
        self._printed_at = monotonic()
        self._is_at_end = False
        self._told_training = False

    def run(self) -> None:
        """Run until the annotator quits or the input ends."""
        desk = self._desk
        self._print(
            f"{desk.task.spec.title}\nType a label's key or name, then press Enter. ? shows the help."
        )
        self._show(desk.first())
        if desk.following(0) is None:
            self._finish()
        while (line := self._read_line("> ")) is not None and self._take(line):
            pass

    # Reading and printing

    def _print(self, text: str = "") -> None:
        print(self._printable(text), file=self._out, flush=True)

    def _printable(self, text: str) -> str:
        # Passages are untrusted: control characters are printed as escapes, as on the screen.
        return wrap_for_terminal(make_visible(text).text, self._out)

    def _read_line(self, prompt: str) -> str | None:
        """Read one line. Return None at the end of the input."""
        self._out.write(prompt)
        self._out.flush()
        # Text typed before the prompt was intended for another unit, or is the rest of a pasted text.
        forget_typed(self._lines)
        try:
            line = self._lines.readline()
        # Ctrl+C ends the dialogue like the end of the input. Everything before it is stored.
        except KeyboardInterrupt:
            line = ""
        self._hand.clock.touch()
        if not line:
            self._out.write("\n")
            return None
        try:
            line.encode()
        except UnicodeEncodeError:
            # A terminal with another encoding sends such bytes, and SQLite stores text as UTF-8 only.
            self._print("This line contains bytes that are not UTF-8. Type it again.")
            return self._read_line(prompt)
        return line.strip()

    def _show(self, position: int, message: str = "") -> None:
        self._hand.go(position)
        self._is_at_end = False
        if message:
            self._print(message)
        self._print_unit()

    def _print_unit(self) -> None:
        lines = list(unit_lines(self._desk, self._hand))
        for line in lines:
            self._print(line)
        questions = question_lines(self._desk, self._hand)
        rows = sum(self._printable(line).count("\n") + 1 for line in (*lines, *questions))
        about = head(self._desk.task, self._hand.unit).plain
        if about and rows >= screen_rows(self._out):
            # A long text has scrolled the claim off the screen.
            self._print(f"\n{about}")
        self._ask()

    def _ask(self) -> None:
        """Print the question that the next line answers."""
        self._printed_at = monotonic()
        for line in question_lines(self._desk, self._hand):
            self._print(line)

    # Handling a line

    def _take(self, line: str) -> bool:
        """Handle a line of input. Return False if the dialogue must end."""
        chosen = self._label_of(line)
        word, _, rest = line.partition(" ")
        # In a free-text answer, "skip" may be part of the answer, so only the signs are commands there.
        is_text = self._hand.active is not None and not self._hand.labels[self._hand.active]
        sign = word if word in COMMANDS else None if is_text else _BY_WORD.get(word)
        if chosen is not None:
            self._answer(*chosen)
        elif sign == "q!":
            return False
        elif sign is not None:
            self._command(sign, rest.strip())
        elif not line:
            return self._go_on()
        elif is_text and self._hand.phase == "label":
            self._answer_in_words(line)
        else:
            self._print(
                f"{make_one_line(line, 40)} is not a label here. ? shows the help, . prints the unit again."
            )
        return True

    def _label_of(self, line: str) -> tuple[str, str] | None:
        """Return the field and the label for a label's key or name, or None. The active question takes precedence."""
        hand = self._hand
        if (by_key := hand.label_of(line)) is not None:
            return by_key
        fields = [hand.active] if hand.active else self._desk.fields
        return next(((field, line) for field in fields if line in hand.labels[field].values()), None)

    def _command(self, sign: str, rest: str) -> None:
        commands: dict[str, Callable[[], None]] = {
            "<": self._undo,
            "-": self._skip,
            "!": lambda: self._flag(rest),
            "+": lambda: self._note(rest),
            ".": self._print_unit,
            "#": lambda: self._jump(rest),
            "=": lambda: self._list(rest if rest in FILTERS else "all", ""),
            "/": lambda: self._list("all", rest),
            "?": self._help,
        }
        commands[sign]()

    # Answers, and the steps after them

    def _commit(self, change: Callable[..., State], *name: object) -> bool:
        """Call `change` to store a change to the current unit. Return whether the change was stored.

        `change` is called with the unit's position, the arguments `name` and the time spent.
        """
        hand = self._hand
        spent = hand.take_time()._replace(shown_ms=round((monotonic() - self._printed_at) * 1000))
        try:
            hand.unit.state = change(hand.unit.position, *name, spent)
        except AdjudgeError as e:
            hand.give_back(spent)
            self._print(f"not stored: {e}")
            return False
        hand.recount()
        return True

    def _answer(self, field: str, value: str) -> None:
        hand, desk = self._hand, self._desk
        if hand.phase == "judge":
            self._answer_judge(field, value)
        elif hand.phase == "key":
            if not hand.trying:
                self._print("Press Enter to go on.")
            elif field not in hand.wrong():
                self._print(f"{field} was right.")
            elif self._commit(desk.revise, field, value, None):
                hand.trying = bool(hand.wrong())
                self._ask()
        else:
            was_done = hand.status is UnitStatus.DONE
            if self._commit(desk.label, field, value):
                self._continue_after_label(was_done, value)

    def _answer_in_words(self, text: str) -> None:
        hand, field = self._hand, str(self._hand.active)
        if self._desk.task.question(field).many:
            text = listed(text)
        was_done = hand.status is UnitStatus.DONE
        if self._commit(self._desk.label, field, text):
            self._continue_after_label(was_done, text)

    def _continue_after_label(self, was_done: bool, value: str) -> None:
        """Print the next question, the answer key, the judge's label or the next unit."""
        hand = self._hand
        self._print(f"Stored: {value}.")
        if hand.status is not UnitStatus.DONE or (was_done and not hand.due):
            hand.update_phase()
            self._ask()
        elif hand.due:
            self._unveil()
        else:
            self._advance()

    def _unveil(self) -> None:
        """Lock the first labels, then print the answer key or the judge's label."""
        hand, desk = self._hand, self._desk
        name = "key" if hand.unit.role == "training" else "judge"
        try:
            hand.unit.state = desk.lock(hand.unit.position, name)
        except AdjudgeError as e:
            self._print(f"not stored: {e}")
            return
        if name == "judge" and not desk.judge(hand.unit.position):
            self._advance()
            return
        hand.update_phase()
        self._ask()

    def _answer_judge(self, field: str, value: str) -> None:
        unit = self._hand.unit
        if field not in self._desk.judge(unit.position):
            self._print(f"The judge has no label for {field}.")
            return
        first, reason = unit.state.answers.get(field), None
        if value != first and not (reason := self._read_line(f"{field}: {first}, now {value}. Why? ")):
            self._print("Nothing was changed.")
            return
        if not self._commit(self._desk.revise, field, value, reason):
            return
        if self._desk.judge(unit.position).keys() <= unit.state.revised.keys():
            self._advance()
        else:
            self._ask()

    def _go_on(self) -> bool:
        """Handle an empty line: close the feedback, keep the labels, or go to the next open unit.

        Return False if the dialogue is at the end of the batch.
        """
        hand = self._hand
        if self._is_at_end:
            return False
        if hand.phase == "key":
            self._continue_after_training()
        elif hand.phase == "judge":
            for field in self._desk.judge(hand.unit.position).keys() - hand.unit.state.revised.keys():
                if not self._commit(self._desk.revise, field, hand.unit.state.answers[field], None):
                    return True
            self._advance()
        elif hand.status is UnitStatus.OPEN:
            self._print("Type a label's key or name; - skips the unit, ? shows the help.")
        elif hand.due and not hand.unit.state.locked and not hand.unit.state.skipped:
            self._unveil()
        else:
            self._advance()
        return True

    def _continue_after_training(self) -> None:
        if self._hand.trying:
            self._hand.trying = False
            self._ask()
            return
        desk = self._desk
        total, answered, right = desk.training()
        if answered == total and not self._told_training:
            self._told_training = True
            panel = training_panel(total, right, desk.info.plan.pass_mark, scored=not desk.info.packed_for)
            self._print(panel.plain.removesuffix("Enter goes on.").rstrip())
        self._advance()

    def _advance(self) -> None:
        """Go to the next open unit.

        If no unit is open, go to a unit with a label that the user must still keep or revise, or to the end of the batch.
        """
        hand, desk = self._hand, self._desk
        following = desk.following(hand.unit.position)
        if following is None:
            self._finish()
            return
        self._show(following)
        if hand.phase == "label" and hand.due and hand.status is UnitStatus.DONE:
            self._unveil()

    def _finish(self) -> None:
        counts, (active, _) = self._desk.counts(), self._desk.times()
        self._is_at_end = True
        self._print(
            f"Everything in this batch has been seen: {counts['done']} done, {counts['skipped']} skipped, "
            f"{active / 60000:.0f} min of work. Enter quits; < undoes, = skipped lists the skipped units."
        )

    # Commands

    def _undo(self) -> None:
        if self._hand.phase != "label" and not self._hand.unit.state.revised:
            self._print("The answer has been shown: your first label for this unit is final.")
            return
        try:
            position = self._desk.undo()
        except AdjudgeError as e:
            self._print(f"not stored: {e}")
            return
        if position is None:
            self._print("There is nothing left to undo.")
            return
        self._hand.recount()
        self._show(position, "Undone.")

    def _skip(self) -> None:
        if self._commit(self._desk.skip):
            self._print("Skipped.")
            self._advance()

    def _flag(self, typed: str) -> None:
        if self._hand.unit.state.flag is not None and not typed:
            if self._commit(self._desk.flag, None):
                self._print("The flag is removed.")
        else:
            self._keep_text("flag", "What is wrong with this unit? ", self._desk.flag, typed)

    def _note(self, typed: str) -> None:
        before = self._hand.unit.state.note
        self._keep_text(
            "note", f"Note{f' (now: {make_one_line(before)})' if before else ''}: ", self._desk.note, typed
        )

    def _keep_text(self, name: str, prompt: str, store: Callable[..., State], given: str) -> None:
        """Store the text of a flag or a note. The text is `given` or, if this is empty, the next line of input.

        A text that cannot be stored is kept as a draft.
        """
        position, draft = self._hand.unit.position, self._desk.draft(self._hand.unit.position, name)
        if draft and not given:
            self._print(f"You typed this before, and it was not stored: {draft}. Press Enter to store it.")
        typed = given or self._read_line(prompt)
        text = typed or (draft if typed is not None else None)
        if not text:
            self._print(f"No {name} was stored.")
        elif self._commit(store, None if text == "-" else text):
            self._desk.keep_draft(position, name, None)
            self._print(f"The {name} is stored." if text != "-" else f"The {name} is removed.")
        else:
            self._desk.keep_draft(position, name, text)

    def _jump(self, number: str) -> None:
        position = self._hand.unit_number(number)
        if position is not None:
            self._show(position)
        else:
            self._print(
                f"There is no unit {make_one_line(number, LONG)}: type # and a number up to {self._desk.total}."
            )

    def _list(self, only: str, search: str) -> None:
        for line in list_lines(self._desk, only, search):
            self._print(line)

    def _help(self) -> None:
        for line in help_lines(self._desk):
            self._print(line)


def run_plain(desk: Desk) -> None:
    """Run a dialogue on standard input and output until the annotator quits or the input ends."""
    Dialogue(desk, sys.stdin, sys.stdout).run()
