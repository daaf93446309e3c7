"""The labelling screen: one unit, one key per label, every key committed before the next unit shows."""

from __future__ import annotations

import time

from textual import events, work

from annotate.events import Status
from annotate.tui.commands import CommandScreen
from annotate.tui.dialogs import Ask


class LabelScreen(CommandScreen):
    """Takes label keys."""

    def on_mount(self) -> None:
        """A batch without an open unit begins at its end."""
        if self.counts["open"] == 0:
            self.finish()

    def on_key(self, event: events.Key) -> None:
        """Labels first: they are single characters and go before every command."""
        self.clock.touch()
        if self.has_class("-too-small"):
            if event.key != "ctrl+q":
                event.stop()
            return
        if self.evidence is not None:
            if self.evidence_key(event.key):
                event.stop()
                event.prevent_default()
            return
        found = self._label_of(event.character)
        if found is not None:
            event.stop()
            event.prevent_default()
            self.answer(*found)

    def on_mouse_down(self) -> None:
        """The mouse is work too."""
        self.clock.touch()

    def _label_of(self, character: str | None) -> tuple[str, str] | None:
        if not character:
            return None
        fields = self.desk.fields
        order = [self.active, *fields] if self.active else fields
        for field in order:
            value = self.task_keys[field].get(character)
            if value is not None:
                return field, value
        return None

    def action_pick(self, question: int, label: int) -> None:
        """A click on a label."""
        field = self.desk.fields[question]
        if not self.has_class("-too-small"):
            self.answer(field, list(self.task_keys[field].values())[label])

    def answer(self, field: str, value: str) -> None:
        """A label: commit it, then go on or show what is to be shown."""
        unit = self.unit
        if self.phase == "key":
            self.say("Enter goes on", error=False)
            return
        if self.phase == "judge":
            if self.unread:
                self.say("the judge is shown: Enter keeps yours, another label revises it")
            else:
                self._revise(field, value)
            return
        was_done = unit.state.status(self.desk.fields) is Status.DONE
        state = self.attempt(lambda: self.desk.label(unit.position, field, value, self.take_time()))
        if state is None:
            return
        unit.state = state
        self.recount()
        if state.status(self.desk.fields) is not Status.DONE:
            self.active = state.next_field(self.desk.fields)
            self.draw_labels()
            self.say("")
        elif unit.role == "training" or (self.desk.info.reveal and unit.role == "unit"):
            self._unveil()
        elif was_done:
            self.settle()
            self.draw_labels()
            self.say(f"changed to {value}; → goes on")
        else:
            self.advance()

    def _unveil(self) -> None:
        what = "key" if self.unit.role == "training" else "judge"
        state = self.attempt(lambda: self.desk.lock(self.unit.position, what))
        if state is None:
            return
        self.unit.state = state
        if what == "judge" and not self.desk.judge(self.unit.position):
            self.advance()
            return
        self.phase, self._shown_at = what, time.monotonic()
        self.draw_labels()
        self.query_one("#labels-scroll").scroll_to(y=0, animate=False)
        self.say("")

    @work(exclusive=True)
    async def _revise(self, field: str, value: str) -> None:
        unit = self.unit
        if field not in self.desk.judge(unit.position):
            self.say(f"the judge has no label for {field}")
            return
        reason = None
        if value != unit.state.answers.get(field):
            reason = await self.app.push_screen_wait(
                Ask(f"{field}: {unit.state.answers.get(field)} → {value}. Why?")
            )
            if reason is None:
                self.say("nothing was changed")
                return
        state = self.attempt(lambda: self.desk.revise(unit.position, field, value, reason, self.take_time()))
        if state is not None:
            unit.state = state
            self._after_judge()

    def _after_judge(self) -> None:
        if all(f in self.unit.state.revised for f in self.desk.judge(self.unit.position)):
            self.advance()
        else:
            self.draw_labels()
