"""What follows a commit: the feedback of a training unit with its second try, the judge with keep or revise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotate.tui import intentions, label_panel
from annotate.tui.dialogs import Ask, Told

if TYPE_CHECKING:
    from annotate.tui.label import LabelScreen


class Afterwards:
    """The phases `key` and `judge` of the labelling screen."""

    def __init__(self, screen: LabelScreen) -> None:
        self._screen = screen
        self._told_training = False

    @property
    def due(self) -> bool:
        """Whether something is shown once this unit is answered."""
        desk, role = self._screen.desk, self._screen.unit.role
        return role == "training" or (desk.info.reveal and role == "unit")

    async def unveil(self) -> None:
        """Lock the first labels, then show what was hidden until now."""
        screen, desk = self._screen, self._screen.desk
        what = "key" if screen.unit.role == "training" else "judge"
        state = await screen.attempt(lambda: desk.lock(screen.unit.position, what))
        if state is None:
            return
        screen.unit.state = state
        if what == "judge" and not desk.judge(screen.unit.position):
            await screen.commands.advance()
            return
        screen.settle()
        screen.draw_labels()
        screen.paint()
        screen.query_one("#labels-scroll").scroll_to(y=0, animate=False)
        screen.say("")

    def unread(self, at: float) -> bool:
        """Whether a key came before anybody could have read what is shown."""
        since = self._screen.since_paint(at)
        return since is None or since < intentions.SETTLE

    async def answer(self, field: str, value: str, at: float) -> None:
        """A label key while something is shown."""
        screen = self._screen
        if screen.phase == "judge":
            if self.unread(at):
                screen.refuse("the judge is shown: Enter keeps yours, another label revises it")
            else:
                await self._revise(field, value, at)
        elif not screen.trying:
            screen.refuse("Enter goes on")
        elif self.unread(at):
            screen.refuse("not quite: another label is a second try, Enter shows the answer")
        elif field in screen.wrong():
            await self._again(field, value, at)
        else:
            screen.refuse(f"{field} was right")

    async def _again(self, field: str, value: str, at: float) -> None:
        """The second try of a training unit; the first one is what counts for the pass mark."""
        screen, position = self._screen, self._screen.unit.position
        state = await screen.commit(lambda spent: screen.desk.revise(position, field, value, None, spent), at)
        if state is not None:
            screen.unit.state = state
            screen.trying = bool(screen.wrong())
            screen.draw_labels()
            screen.paint()
            screen.say("")

    async def _revise(self, field: str, value: str, at: float) -> None:
        screen, unit = self._screen, self._screen.unit
        if field not in screen.desk.judge(unit.position):
            screen.refuse(f"the judge has no label for {field}")
            return

        async def store(reason: str | None) -> str | None:
            state = await screen.commit(
                lambda spent: screen.desk.revise(unit.position, field, value, reason, spent), at
            )
            if state is None:
                return f"not stored: {screen.refused}. Enter tries again."
            unit.state = state
            return None

        first = unit.state.answers.get(field)
        if value == first:
            if await store(None) is None:
                await self._go_on()
            return
        ask = Ask(
            f"{field}: {first} → {value}. Why?",
            store,
            then=self._go_on,
            left=lambda _: screen.refuse("nothing was changed"),
        )
        await screen.app.push_screen(ask)

    async def keep_all(self, at: float) -> None:
        """Enter: the labels given first stand."""
        screen, position = self._screen, self._screen.unit.position
        if self.unread(at):
            screen.refuse("the judge is shown: Enter keeps yours, another label revises it")
            return
        for field in screen.desk.judge(position):
            state = screen.unit.state
            if field in state.revised:
                continue
            first = state.answers[field]
            kept = await screen.commit(
                lambda spent, f=field, v=first: screen.desk.revise(position, f, v, None, spent),  # type: ignore[misc]
                at,
            )
            if kept is None:
                return
            screen.unit.state = kept
        await screen.commands.advance()

    async def _go_on(self) -> None:
        screen = self._screen
        if all(f in screen.unit.state.revised for f in screen.desk.judge(screen.unit.position)):
            await screen.commands.advance()
        else:
            screen.draw_labels()

    async def after_training(self) -> None:
        """Enter after feedback: the answer, if it is hidden still, then on; after the last one, how it went."""
        screen, desk = self._screen, self._screen.desk
        if screen.trying:
            screen.trying = False
            screen.draw_labels()
            return
        total, answered, right = desk.training()
        await screen.commands.advance()
        if answered == total and not self._told_training:
            self._told_training = True
            mark = float(desk.info.options.get("pass_mark", 0.8))
            scored = not desk.info.packed_for
            await screen.app.push_screen(Told(label_panel.training_panel(total, right, mark, scored=scored)))
