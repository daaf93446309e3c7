"""What the commands of the labelling screen do: undo, skip, flag, note, evidence, list, search, jump, help."""

from __future__ import annotations

import json
from abc import abstractmethod

from textual import work
from textual.content import Content

from annotate.events import Status
from annotate.guidelines import markdown
from annotate.tui import panel
from annotate.tui.dialogs import Ask, Finished, Help, Told
from annotate.tui.evidence import HELP, Evidence, with_span, without_span
from annotate.tui.keymap import COMMANDS, symbol
from annotate.tui.review import Review
from annotate.tui.view import UnitScreen
from judge.store.study import dumps

BETWEEN = "|"
"""What separates the entries of a list that is typed in one line."""


class CommandScreen(UnitScreen):
    """The commands; every one that changes something has committed it before the screen changes."""

    _told_training = False

    def advance(self, message: str = "") -> None:
        """The next open unit, or the end."""
        following = self.desk.next_open(self.unit.position)
        if following is not None:
            self.show(following, message)
            return
        self.show(self.unit.position, message)
        self.finish()

    @work(exclusive=True, group="finish")
    async def finish(self) -> None:
        """Nothing is open: say so, and where to go."""
        counts = self.desk.counts()
        active, _done = self.desk.times()
        lines = [Content.styled("Everything in this batch has been seen.", "bold"), Content("")]
        lines.append(
            Content(
                f"{counts['done']} done, {counts['skipped']} skipped, {active / 60000:.0f} minutes of work"
            )
        )
        if counts["skipped"]:
            lines.append(Content("-  go through the skipped ones"))
        lines += [Content("=  your list   ⌫  undo   Esc  stay here   Enter  quit")]
        what = await self.app.push_screen_wait(Finished(Content("\n").join(lines)))
        if what == "quit":
            self.app.exit()
        elif what == "review":
            self.action_review()
        elif what == "undo":
            self.action_undo()
        elif what == "skipped" and counts["skipped"]:
            self.show(self.desk.listing("skipped", limit=1)[0].position, "a label takes the skip back")

    def action_undo(self) -> None:
        """Take the last thing back, over restarts too."""
        if self.evidence is not None:
            return
        found = self.attempt(lambda: (self.desk.undo(),))
        if found is None:
            return
        if found[0] is None:
            self.say("nothing left to undo")
            return
        self.recount()
        self.show(found[0], "undone")

    def action_skip(self) -> None:
        """Leave the unit for later."""
        if self.attempt(lambda: self.desk.skip(self.unit.position, self.take_time())) is not None:
            self.recount()
            self.advance("skipped")

    @work(exclusive=True, group="ask")
    async def action_flag(self) -> None:
        """Flag with a reason, or take the flag away."""
        position, reason = self.unit.position, None
        if self.unit.state.flag is None:
            reason = await self.app.push_screen_wait(Ask("Flag this unit. What is wrong with it?"))
            if not reason:
                self.say("no reason, no flag")
                return
        state = self.attempt(lambda: self.desk.flag(position, reason, self.take_time()))
        if state is not None:
            self.unit.state = state
            self.draw_labels()
            self.say("flagged" if reason else "the flag is gone")

    @work(exclusive=True, group="ask")
    async def action_note(self) -> None:
        """Write a note; an empty one removes it."""
        position = self.unit.position
        text = await self.app.push_screen_wait(
            Ask("Note on this unit (empty removes it)", self.unit.state.note or "")
        )
        if text is None or text == (self.unit.state.note or ""):
            return
        state = self.attempt(lambda: self.desk.note(position, text, self.take_time()))
        if state is not None:
            self.unit.state = state
            self.draw_labels()
            self.say("noted" if text else "the note is gone")

    @work(exclusive=True, group="ask")
    async def action_jump(self) -> None:
        """Go to a unit by its number."""
        text = await self.app.push_screen_wait(Ask(f"Go to unit 1 to {self.desk.total}", kind="number"))
        if text:
            if text.isdecimal() and self.desk.neighbour(int(text) - 1, 1) == int(text):
                self.show(int(text))
            else:
                self.say(f"there is no unit {text}", error=True)

    @work(exclusive=True, group="ask")
    async def action_review(self, ask: bool = False) -> None:
        """The own units as a list."""
        position = await self.app.push_screen_wait(Review(self.desk, self.unit.position, ask=ask))
        if position is not None:
            self.show(position)

    def action_search(self) -> None:
        """The list with the search line open."""
        self.action_review(True)

    def action_help(self) -> None:
        """Guidelines, labels, keys."""
        rows = ["| key | what it does |", "|---|---|"]
        for command in COMMANDS:
            keys = " or ".join(f"`{symbol(k)}`" for k in self._keys[command.id] if k != "|")
            rows.append(f"| {keys} | {command.help} |")
        rows.append("| `^P` | menu: every command, themes |")
        rows.append("| `^Q` | quit; everything is stored already |")
        about = (
            "Highlighted words are those of the question or claim, and of the reference answers. A highlight does "
            "not by itself mean that a text is relevant."
        )
        text = f"{markdown(self.desk.task)}\n\n## Highlights\n\n{about}\n\n## Keys\n\n" + "\n".join(rows)
        self.app.push_screen(Help(text))

    def action_highlights(self) -> None:
        """Highlights on or off."""
        self._highlights = not self._highlights
        self.draw()
        self.say("" if self._highlights else "highlights are off")

    def action_step(self, step: int) -> None:
        """The unit before or behind."""
        found = self.desk.neighbour(self.unit.position, step)
        if found is None:
            self.say("this is the last unit" if step > 0 else "this is the first unit")
        else:
            self.show(found)

    def action_scroll(self, lines: int) -> None:
        """Scroll the text; ten lines stand for a page."""
        self.texts.scroll_lines(lines)

    def action_pane(self) -> None:
        """The answer, or the passages it is held against."""
        if not self.texts.switch():
            self.say("there is one text only")

    def action_go(self, position: int) -> None:
        """A click on a part of the answer."""
        self.show(position)

    def action_go_on(self) -> None:
        """Enter: on from feedback, keep after the judge, type a value, or the next open unit."""
        if self.phase == "key":
            self._after_training()
        elif self.phase == "judge":
            if not self.unread:
                self._keep_all()
        elif self.active is not None and not self.task_keys[self.active]:
            self._type_value(self.active)
        elif self.unit.state.status(self.desk.fields) is not Status.OPEN:
            self.advance()
        else:
            self.say("press the key of a label, or skip")

    def _after_training(self) -> None:
        total, answered, right = self.desk.training()
        self.advance()
        if answered == total and not self._told_training:
            self._told_training = True
            mark = float(self.desk.info.options.get("pass_mark", 0.8))
            scored = not self.desk.info.packed_for
            self.app.push_screen(Told(panel.training_panel(total, right, mark, scored=scored)))

    def _keep_all(self) -> None:
        position, state = self.unit.position, self.unit.state
        for field in self.desk.judge(position):
            if field not in state.revised:
                kept = self.attempt(
                    lambda f=field: self.desk.revise(position, f, state.answers[f], None, self.take_time())  # type: ignore[misc]
                )
                if kept is None:
                    return
        self.advance()

    @work(exclusive=True, group="ask")
    async def _type_value(self, field: str) -> None:
        question = self.desk.task.question(field)
        number = question.level == "interval"
        before = self.unit.state.answers.get(field, "")
        title = question.ask or field
        if question.many:
            before = f" {BETWEEN} ".join(json.loads(before or "[]"))
            title += f"\nWrite {BETWEEN} between them."
        text = await self.app.push_screen_wait(Ask(title, before, kind="number" if number else "text"))
        if text and question.many:
            text = dumps([part.strip() for part in text.split(BETWEEN) if part.strip()])
        if text:
            self.answer(field, text)

    @abstractmethod
    def answer(self, field: str, value: str) -> None:
        """Commit an answer; see label.py."""

    # Evidence

    def action_evidence(self) -> None:
        """Marking by keyboard, until Escape."""
        evidence = Evidence(self._text.texts if self._text is not None else [])
        if not evidence.usable:
            self.say("there is no text to mark in")
            return
        self.evidence = evidence
        self.draw()
        self._follow_cursor()
        self.say(HELP)

    def evidence_key(self, key: str) -> bool:
        """A key while marking; False when it is none of ours."""
        evidence = self.evidence
        if evidence is None:
            return False
        spans, name = self.unit.state.spans, evidence.picker.name
        if key in ("left", "right"):
            evidence.word(1 if key == "right" else -1)
        elif key in ("up", "down"):
            evidence.sentence(1 if key == "down" else -1)
        elif key in ("tab", "shift+tab"):
            evidence.text(1 if key == "tab" else -1)
        elif key == "space":
            evidence.begin()
        elif key == "enter":
            self._mark(with_span(spans, name, *evidence.span()))
        elif key in ("backspace", "delete"):
            self._mark(without_span(spans, name, evidence.picker.start))
        elif key in ("escape", "asterisk", "f7"):
            self.evidence = None
        elif key in ("ctrl+q", "ctrl+p"):
            return False
        self.draw()
        if self.evidence is None:
            self.say("")
        else:
            self._follow_cursor()
        return True

    def _mark(self, spans: list[tuple[str, int, int]]) -> None:
        position = self.unit.position
        state = self.attempt(lambda: self.desk.spans(position, spans, self.take_time()))
        if state is not None:
            self.unit.state = state
            self.say(HELP)

    def _follow_cursor(self) -> None:
        text, evidence = self._text, self.evidence
        if text is not None and evidence is not None:
            found = next(t for t in text.texts if t.name == evidence.picker.name)
            self.texts.turn_to(found, evidence.picker.start)
