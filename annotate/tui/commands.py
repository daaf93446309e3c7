"""What the commands of the labelling screen do: undo, skip, flag, note, list, search, jump, help, the end."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content

from annotate.guidelines import markdown
from annotate.sitting.events import State, UnitStatus
from annotate.tui.dialogs import Ask, Finished, Help
from annotate.tui.keymap import COMMANDS, symbol
from annotate.tui.panes import scroll_lines
from annotate.tui.review import Review
from judge.store.study import dumps

if TYPE_CHECKING:
    from annotate.tui.label import LabelScreen

BETWEEN = "|"
"""What separates the entries of a list that is typed in one line."""
ALWAYS = ("undo", "review", "search", "jump")
"""Commands that mean the same whatever is on the screen, so at the end of the batch too."""


class Commands:
    """Each has committed what it changes before the screen shows it, and is done when it returns."""

    def __init__(self, screen: LabelScreen) -> None:
        self._screen, self._at = screen, 0.0
        self._drafts: dict[tuple[str, int], str] = {}
        """Texts typed for a unit that were not stored."""
        self.by_id: dict[str, Callable[[], Awaitable[None]]] = {
            "undo": self.undo,
            "skip": self.skip,
            "flag": self.flag,
            "note": self.note,
            "evidence": lambda: screen.marking.begin(self._at),
            "review": self.review,
            "search": lambda: self.review(ask=True),
            "jump": self.jump,
            "highlights": self.highlights,
            "help": self.help,
            "pane": self.pane,
            "previous": lambda: self.step(-1),
            "next": lambda: self.step(1),
            "go_on": self.go_on,
            "down": lambda: self.scroll(1),
            "up": lambda: self.scroll(-1),
            "page_down": lambda: self.scroll(10),
            "page_up": lambda: self.scroll(-10),
        }

    async def run(self, name: str, at: float) -> None:
        """The command of a key that was typed at `at`."""
        self._at = at
        await self.by_id[name]()

    async def advance(self, message: str = "") -> None:
        """The next open unit, else one whose judge waits for keep or revise, else the end."""
        screen, desk = self._screen, self._screen.desk
        following = desk.next_open(screen.unit.position) or desk.second_open()
        screen.show(following or screen.unit.position, message)
        if following is None:
            await self.finish()
        elif (
            screen.phase == "label"
            and screen.afterwards.due
            and screen.unit.state.status(desk.fields) is UnitStatus.DONE
        ):
            await screen.afterwards.unveil()

    async def finish(self) -> None:
        """Nothing is open: say so, and where to go."""
        screen, desk = self._screen, self._screen.desk
        counts = desk.counts()
        active, _done = desk.times()
        key = {name: symbol(keys[0]) if keys else "^P" for name, keys in screen.keys.items()}
        told = f"{counts['done']} done, {counts['skipped']} skipped, {active / 60000:.0f} minutes of work"
        lines = [
            Content.styled("Everything in this batch has been seen.", "bold"),
            Content(""),
            Content(told),
        ]
        if counts["skipped"]:
            lines.append(Content(f"{key['skip']}  go through the skipped ones"))
        lines.append(
            Content(f"{key['review']}  your list   {key['undo']}  undo   Esc  stay here   Enter  quit")
        )
        ways = {k: self.by_id[name] for name in ALWAYS for k in screen.keys[name]}
        always = frozenset(ways)
        ways["enter"] = self._quit
        if counts["skipped"]:
            ways |= dict.fromkeys(screen.keys["skip"], self._skipped)

        def refuse(why: str) -> None:
            screen.refuse(why)
            box.say(why)

        box = Finished(Content("\n").join(lines), ways, always, refuse)
        await screen.app.push_screen(box)

    async def _quit(self) -> None:
        self._screen.app.exit()

    async def _skipped(self) -> None:
        first = self._screen.desk.listing("skipped", limit=1)[0].position
        self._screen.show(first, "a label takes the skip back")

    async def undo(self) -> None:
        """Take the last thing back, over restarts too."""
        screen = self._screen
        if screen.phase != "label" and not screen.unit.state.revised:
            screen.refuse("it has been shown: your first label of this unit stands")
            return
        found = await screen.attempt(lambda: (screen.desk.undo(),))
        if found is None:
            return
        if found[0] is None:
            screen.say("nothing left to undo")
            return
        screen.recount()
        screen.show(found[0], "undone")

    async def skip(self) -> None:
        """Leave the unit for later."""
        screen, position = self._screen, self._screen.unit.position
        if await screen.commit(lambda spent: screen.desk.skip(position, spent), self._at) is not None:
            screen.recount()
            await self.advance("skipped")

    async def flag(self) -> None:
        """Flag with a reason, or take the flag away."""
        screen, position = self._screen, self._screen.unit.position
        if screen.unit.state.flag is not None:
            state = await screen.commit(lambda spent: screen.desk.flag(position, None, spent), self._at)
            if state is not None:
                self._changed(position, state, "the flag is gone")
            return
        await self._ask_text(
            "flag", "Flag this unit. What is wrong with it?", "", screen.desk.flag, "flagged"
        )

    async def note(self) -> None:
        """Write a note; an empty one removes it."""
        screen = self._screen
        before = screen.unit.state.note or ""
        await self._ask_text(
            "note", "Note on this unit (empty removes it)", before, screen.desk.note, "noted"
        )

    async def _ask_text(
        self, what: str, title: str, before: str, store: Callable[..., State], told: str
    ) -> None:
        """A text of the unit. What could not be stored is still there, in the box and when it is opened again."""
        screen, position, at = self._screen, self._screen.unit.position, self._at
        draft = (what, position)

        async def done(text: str) -> str | None:
            if not text and what == "flag":
                screen.say("no reason, no flag")
                return None
            if text == before:
                return None
            state = await screen.commit(lambda spent: store(position, text, spent), at)
            if state is None:
                self._drafts[draft] = text
                return f"not stored: {screen.refused}. Your text is kept: Enter tries again."
            self._drafts.pop(draft, None)
            self._changed(position, state, told if text else f"the {what} is gone")
            return None

        def left(text: str) -> None:
            if draft in self._drafts:
                self._drafts[draft] = text
                screen.say(f"the {what} is not stored; the same key opens it again", error=True)

        value = self._drafts.get(draft, before)
        await screen.app.push_screen(Ask(title, done, value=value, left=left))

    def _changed(self, position: int, state: State, told: str) -> None:
        screen = self._screen
        if screen.unit.position == position:
            screen.unit.state = state
            screen.draw_labels()
        screen.say(told)

    async def jump(self) -> None:
        """Go to a unit by its number."""
        screen, desk = self._screen, self._screen.desk
        wanted: list[str] = []

        async def done(text: str) -> str | None:
            wanted.append(text)
            return None

        async def then() -> None:
            text = wanted[0]
            if text.isdecimal() and desk.neighbour(int(text) - 1, 1) == int(text):
                screen.show(int(text))
            elif text:
                screen.refuse(f"there is no unit {text}")

        await screen.app.push_screen(Ask(f"Go to unit 1 to {desk.total}", done, then=then, kind="number"))

    async def review(self, *, ask: bool = False) -> None:
        """The own units as a list, with the search line open if asked."""
        screen = self._screen

        def chosen(position: int, searched: str) -> None:
            screen.searched = searched
            screen.show(position)

        await screen.app.push_screen(Review(screen.desk, screen.unit.position, screen.typed, chosen, ask=ask))

    async def help(self) -> None:
        """Guidelines, labels, keys."""
        screen = self._screen
        rows = ["| key | what it does |", "|---|---|"]
        for command in COMMANDS:
            keys = " or ".join(f"`{symbol(k)}`" for k in screen.keys[command.id] if k != "|")
            rows.append(f"| {keys} | {command.help} |")
        rows.append("| `^P` | menu: every command, themes |")
        rows.append("| `^Q` | quit; everything is stored already |")
        about = (
            "Highlighted words are those of the question or claim, and of the reference answers. A highlight does "
            "not by itself mean that a text is relevant."
        )
        text = f"{markdown(screen.desk.task)}\n\n## Highlights\n\n{about}\n\n## Keys\n\n" + "\n".join(rows)
        await screen.app.push_screen(Help(text, frozenset(screen.keys["help"])))

    async def highlights(self) -> None:
        """Highlights on or off."""
        screen = self._screen
        screen.highlights = not screen.highlights
        screen.draw()
        screen.say("" if screen.highlights else "highlights are off")

    async def step(self, step: int) -> None:
        """The unit before or behind."""
        screen = self._screen
        found = screen.desk.neighbour(screen.unit.position, step)
        if found is None:
            # A label typed ahead was meant for a unit that is not there.
            screen.refuse("this is the last unit" if step > 0 else "this is the first unit")
        else:
            screen.show(found)

    async def scroll(self, lines: int) -> None:
        """Scroll what is chosen; ten lines stand for a page."""
        scroll_lines(self._screen.box(), lines)

    async def pane(self) -> None:
        """The next pane that has something to scroll: the texts, then question and labels where they are cut."""
        screen = self._screen
        before = (screen.pane, screen.texts.aside)
        screen.pane, screen.texts.aside = screen.next_pane()
        if (screen.pane, screen.texts.aside) == before:
            screen.say("everything is in sight")
        screen.draw_labels()

    async def go_on(self) -> None:
        """Enter: on from feedback, keep after the judge, type a value, or the next open unit."""
        screen = self._screen
        if screen.phase == "key":
            await screen.afterwards.after_training()
        elif screen.phase == "judge":
            await screen.afterwards.keep_all(self._at)
        elif screen.active is not None and not screen.task_keys[screen.active]:
            await self._type_value(screen.active)
        elif screen.unit.state.status(screen.desk.fields) is UnitStatus.OPEN:
            screen.say("press the key of a label, or skip")
        elif screen.afterwards.due and not screen.unit.state.locked and not screen.unit.state.skipped:
            await screen.afterwards.unveil()
        else:
            await self.advance()

    async def _type_value(self, field: str) -> None:
        screen, question = self._screen, self._screen.desk.task.question(field)
        before = screen.unit.state.answers.get(field, "")
        title = question.ask or field
        if question.many:
            before = f" {BETWEEN} ".join(json.loads(before or "[]"))
            title += f"\nWrite {BETWEEN} between them."
        stored: list[State] = []
        was_done = screen.unit.state.status(screen.desk.fields) is UnitStatus.DONE

        async def done(text: str) -> str | None:
            if text and question.many:
                text = dumps([part.strip() for part in text.split(BETWEEN) if part.strip()])
            if not text:
                return None
            state = await screen.label(field, text, monotonic())
            if state is None:
                return f"{screen.refused}. Enter tries again."
            stored.append(state)
            return None

        async def then() -> None:
            if stored:
                await screen.labelled(stored[0], was_done, "")

        kind = "number" if question.level == "interval" else "text"
        await screen.app.push_screen(Ask(title, done, then=then, value=before, kind=kind))
