"""Labelling of the current unit, and the next step after each commit.

The next step is another question, the feedback on a training unit, the judge's label, or the next unit.
"""

import json
from collections.abc import Awaitable, Callable
from time import monotonic

from textual.content import Content

from annotate.sitting.events import UnitStatus
from annotate.tui import actions, label_panel
from annotate.tui.dialogs import Ask, Confirm, Notice
from annotate.tui.workplace import Workplace
from judge.store.study import dumps

BETWEEN = "|"
"""The separator between the values of a list that is typed on one line."""


def listed(text: str) -> str:
    """Convert a list that was typed on one line to the JSON that the study stores."""
    return dumps([part.strip() for part in text.split(BETWEEN) if part.strip()])


JUDGE_SHOWN = "the judge's label is shown: Enter keeps yours, another label revises it"


class Form:
    """The handler for label keys and for Enter. `at_end` is called when no open unit is left."""

    def __init__(self, place: Workplace, at_end: Callable[[], Awaitable[None]]) -> None:
        self._place, self._hand, self._view, self._desk = place, place.hand, place.view, place.desk
        self._at_end = at_end
        self._told_training = False

    async def answer(self, field: str, value: str, at: float) -> None:
        """Commit a label, then go on to the next step."""
        if self._hand.phase == "judge":
            await self._answer_judge(field, value, at)
        elif self._hand.phase == "key":
            await self._answer_key(field, value, at)
        elif self._nobody_gave(field, value):
            text_shown = Content(
                f"No annotator gave the label {value}. Press Enter to store it anyway, or Esc to go back."
            )
            await self._place.open(Confirm(text_shown, lambda: self._store(field, value, at)))
        else:
            await self._store(field, value, at)

    async def _store(self, field: str, value: str, at: float) -> None:
        was_done = self._hand.status is UnitStatus.DONE
        if await self._place.commit(at, self._desk.label, field, value):
            await self._continue_after_label(was_done, value)

    def _nobody_gave(self, field: str, value: str) -> bool:
        """Return whether a lead chose a label that none of the annotators gave. False if the user is not a lead."""
        # The annotators are shown as A, B and C, so the lead may have typed a person's letter, which is a label's key.
        unit = self._hand.unit
        if unit.role != "adjudication":
            return False
        given = {
            source.answers[field] for source in self._desk.sources(unit.position) if field in source.answers
        }
        return bool(given) and value not in given

    async def _continue_after_label(self, was_done: bool, value: str) -> None:
        """Show the next question, the answer key, the judge's label or the next unit."""
        place, hand = self._place, self._hand
        place.recount()
        if hand.status is not UnitStatus.DONE:
            hand.update_phase()
            self._view.draw_labels()
            self._view.say("")
        elif hand.due:
            # If the user has already typed an undo, the answer is not shown, because the label could then not be undone.
            if place.typed.next_key() not in hand.keys["undo"]:
                await self._unveil()
        elif was_done:
            hand.update_phase()
            self._view.draw_labels()
            self._view.say(f"changed{f' to {value}' if value else ''}; → goes to the next unit")
        else:
            await self.advance()

    async def go_on(self, at: float) -> None:
        """Handle Enter: close the feedback, keep the labels, open the input for a number or text, or go to the next open unit."""
        hand = self._hand
        if hand.phase == "key":
            await self._continue_after_training()
        elif hand.phase == "judge":
            await self._keep_all(at)
        elif hand.active is not None and not hand.labels[hand.active]:
            await self._type_value(hand.active)
        elif hand.status is UnitStatus.OPEN:
            self._view.say("press the key of a label, or skip the unit")
        elif hand.due and not hand.unit.state.locked and not hand.unit.state.skipped:
            await self._unveil()
        else:
            await self.advance()

    async def advance(self, message: str = "") -> None:
        """Go to the next open unit.

        If no unit is open, go to a unit with a label that the user must still keep or revise, or to the end of the batch.
        """
        hand, desk = self._hand, self._desk
        following = desk.following(hand.unit.position)
        self._place.show(following or hand.unit.position, message)
        if following is None:
            await self._at_end()
        elif hand.phase == "label" and hand.due and hand.status is UnitStatus.DONE:
            await self._unveil()

    async def _type_value(self, field: str) -> None:
        hand, question = self._hand, self._desk.task.question(field)
        before = hand.unit.state.answers.get(field, "")
        title = question.ask or field
        if question.many:
            before = f" {BETWEEN} ".join(json.loads(before or "[]"))
            title += f"\nSeparate several answers with {BETWEEN}."
        was_done = hand.status is UnitStatus.DONE

        # Enter on an empty line leaves the answer as it is.
        async def done(text: str) -> str | None:
            value = listed(text) if question.many else text
            if not text or await self._place.commit(monotonic(), self._desk.label, field, value):
                return None
            return self._place.refused

        async def then(text: str) -> None:
            if text:
                await self._continue_after_label(was_done, "")

        is_number = question.level == "interval"
        await self._place.ask(title, f"answer {field}", before, done=done, then=then, is_number=is_number)

    # The screens after a commit

    async def _unveil(self) -> None:
        """Lock the first labels, then show the answer key or the judge's label."""
        hand, desk = self._hand, self._desk
        draft_name = "key" if hand.unit.role == "training" else "judge"
        state = await self._place.attempt(desk.lock, hand.unit.position, draft_name)
        if state is None:
            return
        hand.unit.state = state
        # If the judge has no label for this unit, nothing is shown.
        if draft_name == "judge" and not desk.judge(hand.unit.position):
            await self.advance()
            return
        hand.update_phase()
        self._view.unveil()
        self._view.say("")

    def _unread(self, at: float, reason: str) -> bool:
        """Refuse a key that was typed before the user could have read the screen. Return whether the key was refused."""
        since = self._view.since_paint(at)
        early = since is None or since < actions.SETTLE
        if early:
            self._place.refuse(reason)
        return early

    async def _answer_key(self, field: str, value: str, at: float) -> None:
        """Commit the second try on a training unit."""
        # The second try is a revision: only the first answer counts towards the pass mark.
        hand, view = self._hand, self._view
        if not hand.trying:
            self._place.refuse("press Enter to go on")
        elif self._unread(at, "not quite: another label is a second try, Enter shows the answer"):
            return
        elif field not in hand.wrong():
            self._place.refuse(f"{field} was right")
        elif await self._place.commit(at, self._desk.revise, field, value, None):
            hand.trying = bool(hand.wrong())
            view.draw_labels()
            view.paint()
            view.say("")

    async def _continue_after_training(self) -> None:
        """Handle Enter after feedback: show the hidden answer, the next unit, or the result of the training."""
        if self._hand.trying:
            self._hand.trying = False
            self._view.draw_labels()
            return
        desk = self._desk
        total, answered, right = desk.training()
        await self.advance()
        if answered == total and not self._told_training:
            self._told_training = True
            mark = desk.info.plan.pass_mark
            scored = not desk.info.packed_for
            await self._place.open(Notice(label_panel.training_panel(total, right, mark, scored=scored)))

    async def _answer_judge(self, field: str, value: str, at: float) -> None:
        place, unit = self._place, self._hand.unit
        if self._unread(at, JUDGE_SHOWN):
            return
        if field not in self._desk.judge(unit.position):
            place.refuse(f"the judge has no label for {field}")
            return

        async def store(reason: str | None) -> str | None:
            if await place.commit(at, self._desk.revise, field, value, reason):
                return None
            return f"not stored: {place.refused}"

        first = unit.state.answers.get(field)
        if value == first:
            if await store(None) is None:
                await self._continue_after_revision()
            return
        ask = Ask(
            f"{field}: {first} → {value}. Why?",
            done=store,
            then=lambda _: self._continue_after_revision(),
            on_escape=lambda _: place.refuse("nothing was changed"),
        )
        await place.open(ask)

    async def _keep_all(self, at: float) -> None:
        """Keep the first label in every field that the judge labelled, unless the user has already kept or revised it."""
        unit = self._hand.unit
        if self._unread(at, JUDGE_SHOWN):
            return
        for field in self._desk.judge(unit.position):
            if field not in unit.state.revised:
                first = unit.state.answers[field]
                if not await self._place.commit(at, self._desk.revise, field, first, None):
                    return
        await self.advance()

    async def _continue_after_revision(self) -> None:
        if self._desk.judge(self._hand.unit.position).keys() <= self._hand.unit.state.revised.keys():
            await self.advance()
        else:
            self._view.draw_labels()
