"""`annotate open --plain`: a dialogue line by line, for screen readers and terminals without a screen mode.

A unit is printed, then its question with the labels. One line answers, and is committed before the next is printed: the
same desk, checks, training, judge and undo as on the labelling screen. Evidence is marked on the screen only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TextIO

from annotate.guidelines import markdown
from annotate.sitting.desk import Desk
from annotate.sitting.events import State, UnitStatus
from annotate.tui.at_hand import AtHand
from annotate.tui.form import BETWEEN
from annotate.tui.label_panel import feedback_panel, training_panel
from annotate.tui.review import FILTERS
from annotate.tui.unit import head, unit_text
from annotate.tui.untrusted import one_line, shown
from judge.errors import AdjudgeError
from judge.store.study import dumps

BUSY_MS = 10_000
"""How long a commit waits for another program that writes in the study."""
LISTED = 20
"""Units that one list prints."""
COMMANDS = {
    "<": ("undo", "take back the last thing you did, as often as you like"),
    "-": ("skip", "leave this unit for later"),
    "!": ("flag", "flag this unit with a reason, or take the flag away"),
    "+": ("note", "write a note on this unit; - removes it"),
    ".": ("again", "print the unit again"),
    "#": ("go", "go to a unit by its number: # 12"),
    "=": ("list", f"your units: = {' or = '.join(FILTERS[1:])}"),
    "/": ("find", "find text in your units: / words"),
    "?": ("help", "guidelines, labels and these commands"),
    "q!": ("quit", "end; everything is stored already. So does Ctrl+D"),
}
"""Sign -> (word, what it does). A sign or a word stands alone or before what it is about."""
_BY_WORD = {word: sign for sign, (word, _) in COMMANDS.items()}


class Dialogue:
    """One sitting, from the first unit printed to the end of the input."""

    def __init__(self, desk: Desk, lines: TextIO, out: TextIO) -> None:
        self._desk, self._lines, self._out = desk, lines, out
        self._hand = AtHand(desk, {})
        self._printed_at = monotonic()
        self._is_at_end = False
        self._told_training = False

    def run(self) -> None:
        """Go on where work stopped, until everything is answered and Enter was typed, or the input ends."""
        desk = self._desk
        self._say(f"{desk.task.spec.title}\nType a label's key or name, then Enter. ? explains everything.")
        second = desk.second_open()
        self._show(second or desk.next_open() or desk.neighbour(0, 1) or 1)
        if self._hand.counts["open"] == 0 and second is None:
            self._finish()
        while (line := self._read("> ")) is not None and self._take(line):
            pass

    # Reading and printing

    def _say(self, text: str = "") -> None:
        # What a terminal would obey is printed as escapes, as on the screen.
        print(shown(text).text, file=self._out, flush=True)

    def _read(self, prompt: str) -> str | None:
        """One line, None at the end of the input. What was typed before the prompt was printed is thrown away: it was
        meant for another unit, or it is the rest of a pasted text."""
        self._out.write(prompt)
        self._out.flush()
        _forget_typed(self._lines)
        try:
            line = self._lines.readline()
        except KeyboardInterrupt:
            line = ""
        self._hand.clock.touch()
        if not line:
            self._out.write("\n")
            return None
        return line.strip()

    def _show(self, position: int, message: str = "") -> None:
        self._hand.go(position)
        self._is_at_end = False
        if message:
            self._say(message)
        self._print_unit()

    def _print_unit(self) -> None:
        hand, desk = self._hand, self._desk
        role = f", {hand.unit.role}" if hand.unit.role != "unit" else ""
        text = unit_text(desk.task, hand.unit, lambda _: 0, highlights=False)
        self._say(f"\nUnit {hand.unit.position} of {desk.total}, {hand.counts['done']} done{role}")
        for content in (head(desk.task, hand.unit), text.body, text.aside):
            if content is not None and content.plain.strip():
                self._say(f"\n{content.plain.rstrip()}")
        state = hand.unit.state
        for name, typed in (("Flag", state.flag), ("Note", state.note)):
            if typed:
                self._say(f"{name}: {typed}")
        self._ask()

    def _ask(self) -> None:
        """Print what the next line answers."""
        hand, task = self._hand, self._desk.task
        self._printed_at = monotonic()
        if hand.phase == "key":
            position = hand.unit.position
            reasons = None if hand.trying else self._desk.reasons(position)
            self._say(feedback_panel(self._desk.key(position), hand.unit, task, reasons).plain)
            return
        if hand.phase == "judge":
            self._say_judge()
            return
        for question in task.spec.questions:
            if hand.active not in (None, question.field):
                continue
            answer = hand.unit.state.answers.get(question.field)
            given = "" if answer is None else f" Your answer: {answer}."
            self._say(f"\n{question.ask or question.field}{given}")
            meanings = {label.value: label.meaning for label in question.labels}
            for key, value in hand.labels[question.field].items():
                self._say(f"{key}  {value}{': ' if meanings[value] else ''}{meanings[value] or ''}")
            if not question.labels:
                kind = "a number" if question.level == "interval" else "your answer"
                self._say(f"Type {kind}{f', with {BETWEEN} between several' if question.many else ''}.")
        if hand.status is not UnitStatus.OPEN:
            self._say("This unit is finished: another label changes it, Enter goes on.")

    def _say_judge(self) -> None:
        unit = self._hand.unit
        for field, judged in self._desk.judge(unit.position).items():
            shares = ", ".join(
                f"{label} {share:.0%}" for label, share in (judged["distribution"] or {}).items()
            )
            self._say(f"The judge says {judged['value']}, you {unit.state.answers.get(field)}.")
            for more in (shares, judged["rationale"]):
                if more:
                    self._say(more)
        self._say("Enter keeps yours; another label revises it, with a reason.")

    # What a line means

    def _take(self, line: str) -> bool:
        """Do what a line says; False to end."""
        chosen = self._label_of(line)
        word, _, rest = line.partition(" ")
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
            self._say(
                f"{one_line(line, 40)} is no label here. ? explains everything, . prints the unit again."
            )
        return True

    def _label_of(self, line: str) -> tuple[str, str] | None:
        """The question and label that a key, or a label's name, means; the question that is asked comes first."""
        hand = self._hand
        if (by_key := hand.label_of(line)) is not None:
            return by_key
        fields = [hand.active] if hand.active else self._desk.fields
        return next(((field, line) for field in fields if line in hand.labels[field].values()), None)

    def _command(self, sign: str, rest: str) -> None:
        if sign == "#":
            self._jump(rest)
        elif sign == "=":
            self._list(rest if rest in FILTERS else "all", "")
        elif sign == "/":
            self._list("all", rest)
        else:
            does: dict[str, Callable[[], None]] = {
                "<": self._undo,
                "-": self._skip,
                "!": self._flag,
                "+": self._note,
                ".": self._print_unit,
                "?": self._help,
            }
            does[sign]()

    # Answers, and what follows them

    def _commit(self, change: Callable[..., State], *what: object) -> bool:
        """Commit `change(position, *what, times)` of the unit at hand; whether it was stored."""
        hand = self._hand
        spent = hand.take_time()._replace(shown_ms=round((monotonic() - self._printed_at) * 1000))
        try:
            hand.unit.state = change(hand.unit.position, *what, spent)
        except AdjudgeError as e:
            hand.give_back(spent)
            self._say(f"not stored: {e}")
            return False
        hand.recount()
        return True

    def _answer(self, field: str, value: str) -> None:
        hand, desk = self._hand, self._desk
        if hand.phase == "judge":
            self._answer_judge(field, value)
        elif hand.phase == "key":
            if not hand.trying:
                self._say("Enter goes on.")
            elif field not in hand.wrong():
                self._say(f"{field} was right.")
            elif self._commit(desk.revise, field, value, None):
                hand.trying = bool(hand.wrong())
                self._ask()
        else:
            was_done = hand.status is UnitStatus.DONE
            if self._commit(desk.label, field, value):
                self._labelled(was_done, value)

    def _answer_in_words(self, text: str) -> None:
        hand, field = self._hand, str(self._hand.active)
        if self._desk.task.question(field).many:
            text = dumps([part.strip() for part in text.split(BETWEEN) if part.strip()])
        was_done = hand.status is UnitStatus.DONE
        if self._commit(self._desk.label, field, text):
            self._labelled(was_done, text)

    def _labelled(self, was_done: bool, value: str) -> None:
        """After the commit: the next question, what is to be shown, or the next unit."""
        hand = self._hand
        self._say(f"Stored: {value}.")
        if hand.status is not UnitStatus.DONE or (was_done and not hand.due):
            hand.settle()
            self._ask()
        elif hand.due:
            self._unveil()
        else:
            self._advance()

    def _unveil(self) -> None:
        """Lock the first labels, then print what was hidden until now."""
        hand, desk = self._hand, self._desk
        what = "key" if hand.unit.role == "training" else "judge"
        try:
            hand.unit.state = desk.lock(hand.unit.position, what)
        except AdjudgeError as e:
            self._say(f"not stored: {e}")
            return
        if what == "judge" and not desk.judge(hand.unit.position):
            self._advance()
            return
        hand.settle()
        self._ask()

    def _answer_judge(self, field: str, value: str) -> None:
        unit = self._hand.unit
        if field not in self._desk.judge(unit.position):
            self._say(f"The judge has no label for {field}.")
            return
        first, reason = unit.state.answers.get(field), None
        if value != first and not (reason := self._read(f"{field}: {first}, now {value}. Why? ")):
            self._say("Nothing was changed.")
            return
        if not self._commit(self._desk.revise, field, value, reason):
            return
        if self._desk.judge(unit.position).keys() <= unit.state.revised.keys():
            self._advance()
        else:
            self._ask()

    def _go_on(self) -> bool:
        """An empty line: on from feedback, keep after the judge was shown, the next open unit. False at the end."""
        hand = self._hand
        if self._is_at_end:
            return False
        if hand.phase == "key":
            self._after_training()
        elif hand.phase == "judge":
            for field in self._desk.judge(hand.unit.position).keys() - hand.unit.state.revised.keys():
                if not self._commit(self._desk.revise, field, hand.unit.state.answers[field], None):
                    return True
            self._advance()
        elif hand.status is UnitStatus.OPEN:
            self._say("Type a label's key or name; - leaves the unit for later, ? explains everything.")
        elif hand.due and not hand.unit.state.locked and not hand.unit.state.skipped:
            self._unveil()
        else:
            self._advance()
        return True

    def _after_training(self) -> None:
        if self._hand.trying:
            self._hand.trying = False
            self._ask()
            return
        desk = self._desk
        total, answered, right = desk.training()
        if answered == total and not self._told_training:
            self._told_training = True
            panel = training_panel(total, right, desk.info.plan.pass_mark, scored=not desk.info.packed_for)
            self._say(panel.plain.removesuffix("Enter goes on.").rstrip())
        self._advance()

    def _advance(self) -> None:
        """The next open unit, else one whose judge waits for keep or revise, else the end."""
        hand, desk = self._hand, self._desk
        following = desk.next_open(hand.unit.position) or desk.second_open()
        if following is None:
            self._finish()
            return
        self._show(following)
        if hand.phase == "label" and hand.due and hand.status is UnitStatus.DONE:
            self._unveil()

    def _finish(self) -> None:
        counts, (active, _) = self._desk.counts(), self._desk.times()
        self._is_at_end = True
        self._say(
            f"Everything in this batch has been seen: {counts['done']} done, {counts['skipped']} skipped, "
            f"{active / 60000:.0f} minutes of work. Enter ends; < undoes, = skipped lists what was skipped."
        )

    # Commands

    def _undo(self) -> None:
        if self._hand.phase != "label" and not self._hand.unit.state.revised:
            self._say("It has been shown: your first label of this unit stands.")
            return
        try:
            position = self._desk.undo()
        except AdjudgeError as e:
            self._say(f"not stored: {e}")
            return
        if position is None:
            self._say("Nothing is left to undo.")
            return
        self._hand.recount()
        self._show(position, "Undone.")

    def _skip(self) -> None:
        if self._commit(self._desk.skip):
            self._say("Skipped.")
            self._advance()

    def _flag(self) -> None:
        if self._hand.unit.state.flag is not None:
            if self._commit(self._desk.flag, None):
                self._say("The flag is gone.")
        else:
            self._keep_text("flag", "What is wrong with this unit? ", self._desk.flag)

    def _note(self) -> None:
        before = self._hand.unit.state.note
        self._keep_text("note", f"Note{f' (now: {one_line(before)})' if before else ''}: ", self._desk.note)

    def _keep_text(self, what: str, prompt: str, store: Callable[..., State]) -> None:
        """Read one line and store it with the unit. One that cannot be stored is kept, and offered the next time."""
        position, draft = self._hand.unit.position, self._desk.draft(self._hand.unit.position, what)
        if draft:
            self._say(f"Typed before and not stored: {draft}. Enter stores it.")
        typed = self._read(prompt)
        text = typed or (draft if typed is not None else None)
        if not text:
            self._say(f"No {what} was stored.")
        elif self._commit(store, None if text == "-" else text):
            self._desk.keep_draft(position, what, None)
            self._say(f"The {what} is stored." if text != "-" else f"The {what} is gone.")
        else:
            self._desk.keep_draft(position, what, text)

    def _jump(self, number: str) -> None:
        position = int(number) if number.isdecimal() and len(number) < 12 else 0
        if position and self._desk.neighbour(position - 1, 1) == position:
            self._show(position)
        else:
            self._say(
                f"There is no unit {one_line(number, 12)}: write # and a number up to {self._desk.total}."
            )

    def _list(self, only: str, search: str) -> None:
        desk = self._desk
        rows, total = desk.listing(only, search, limit=LISTED), desk.count(only, search)
        for row in rows:
            given = ", ".join(row.answers.values()) or row.status
            extra = "".join(
                f", {name} {one_line(text, 60)}"
                for name, text in (("flag", row.flag), ("note", row.note))
                if text
            )
            self._say(f"{row.position}  {given}{extra}: {one_line(row.text, 120)}")
        self._say(f"{len(rows)} of {total} units. # and a number goes there.")

    def _help(self) -> None:
        self._say(markdown(self._desk.task).replace("`", "").replace("**", ""))
        self._say("\nCommands, each alone on a line:")
        for sign, (word, does) in COMMANDS.items():
            self._say(f"{sign} or {word}: {does}")


def run_plain(desk: Desk) -> None:
    """Talk to whoever sits at the terminal, or behind the pipe, until the end of the input."""
    Dialogue(desk, sys.stdin, sys.stdout).run()


def _forget_typed(lines: TextIO) -> None:
    """Drop what waits in the terminal's input. A pipe keeps its lines: what writes them is a program."""
    # Windows has no termios, and its console no such buffer that could be dropped from here.
    with suppress(ImportError, OSError, ValueError):
        import termios

        if lines.isatty():
            termios.tcflush(lines.fileno(), termios.TCIFLUSH)
