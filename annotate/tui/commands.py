"""The commands on the labelling screen: undo, skip, flag, note, list, search, jump, help, and the end of the batch."""

from collections.abc import Awaitable, Callable

from textual.content import Content

from annotate.guidelines import markdown
from annotate.sitting.events import State
from annotate.tui.at_hand import LONG
from annotate.tui.dialogs import Ask, Finished, Help
from annotate.tui.evidence import HELP
from annotate.tui.form import Form
from annotate.tui.keymap import COMMANDS, symbol
from annotate.tui.marking import Marking
from annotate.tui.review import Review
from annotate.tui.untrusted import make_one_line
from annotate.tui.workplace import Workplace

ALWAYS = ("undo", "review", "search", "jump", "help")
"""Commands that have the same effect at the end of the batch as on a unit."""
ALL = 1_000_000
"""More lines than any text has. Scrolling by this number leads to the beginning or the end of the text."""

ELSEWHERE = f"""
## Keys of the list

`⏎` goes to the unit. `⇥` selects the next filter, and `Shift+⇥` the previous one. `/` or `F8` opens the search line.
`↑` `↓` (or `k` `j`), `PgUp` `PgDn` (or space), `Home` and `End` move. `Esc`, `q`, `=` or `F5` go back.

## Keys while evidence is marked

{HELP}
"""

ONCE = frozenset({"skip", "go_on"})
"""Commands that are not repeated while their key is held down, because they leave the unit."""


class Commands:
    """The handlers of the commands. Each command commits its change before the screen shows it."""

    def __init__(self, place: Workplace, marking: Marking) -> None:
        self._place, self._hand, self._view, self._desk = place, place.hand, place.view, place.desk
        self._form, self._at = Form(place, self.finish), 0.0
        self.answer = self._form.answer
        """Give a label to the current unit."""
        self.by_id: dict[str, Callable[[], Awaitable[None]]] = {
            "undo": self.undo,
            "skip": self.skip,
            "flag": self.flag,
            "note": self.note,
            "evidence": marking.begin,
            "review": self.review,
            "search": lambda: self.review(ask=True),
            "jump": self.jump,
            "highlights": self.highlights,
            "help": self.help,
            "pane": self.pane,
            "previous": lambda: self.step(-1),
            "next": lambda: self.step(1),
            "go_on": lambda: self._form.go_on(self._at),
            "down": lambda: self.scroll(1),
            "up": lambda: self.scroll(-1),
            "page_down": lambda: self.scroll(10),
            "page_up": lambda: self.scroll(-10),
            "begin": lambda: self.scroll(-ALL),
            "end": lambda: self.scroll(ALL),
            "raw": self.raw,
            "match_below": lambda: self.match(1),
            "match_above": lambda: self.match(-1),
        }

    async def run(self, name: str, at: float) -> None:
        """Run the command with this name. `at` is the monotonic time, in seconds, at which its key was typed."""
        self._at = at
        await self.by_id[name]()

    async def finish(self) -> None:
        """Show the dialog at the end of the batch, with counts and the possible next steps."""
        hand, desk = self._hand, self._desk
        counts = desk.counts()
        active, _done = desk.times()
        key = {name: symbol(keys[0]) if keys else "^P" for name, keys in hand.keys.items()}
        message = f"{counts['done']} done, {counts['skipped']} skipped, {active / 60000:.0f} min of work"
        lines = [
            Content.styled("Everything in this batch has been seen.", "bold"),
            Content(""),
            Content(message),
        ]
        if counts["skipped"]:
            lines.append(Content(f"{key['skip']}  go through the skipped units"))
        lines.append(
            Content(f"{key['review']}  your list   {key['undo']}  undo   Esc  stay here   Enter  quit")
        )
        ways = {k: self.by_id[name] for name in ALWAYS for k in hand.keys[name]}
        # These keys may have been typed ahead, because they have the same effect on every screen.
        always = frozenset(ways)
        ways["enter"] = self._quit
        if counts["skipped"]:
            ways |= dict.fromkeys(hand.keys["skip"], self._skipped)

        await self._place.open(Finished(Content("\n").join(lines), ways, always, self._place.refuse))

    async def _quit(self) -> None:
        self._view.app.exit()

    async def _skipped(self) -> None:
        first = self._desk.listing("skipped", limit=1)[0].position
        self._place.show(first, "give a label to undo the skip")

    async def undo(self) -> None:
        """Undo the last action, even if it is from an earlier session."""
        place = self._place
        # The desk would pass over this unit, and undo something on a unit that is not on the screen.
        if self._hand.phase != "label" and not self._hand.unit.state.revised:
            place.refuse("the answer has been shown: your first label for this unit is final")
            return
        result = await place.attempt(lambda: (self._desk.undo(),))
        if result is None:
            return
        if result[0] is None:
            self._view.say("nothing left to undo")
            return
        place.recount()
        place.show(result[0], "undone")

    async def skip(self) -> None:
        """Skip the unit."""
        if await self._place.commit(self._at, self._desk.skip):
            self._place.recount()
            await self._form.advance("skipped")

    async def flag(self) -> None:
        """Flag the unit with a reason, or remove its flag."""
        if self._hand.unit.state.flag is None:
            title = "Flag this unit. What is wrong with it?"
            await self._ask_text("flag", title, "", self._desk.flag, "flagged")
        elif await self._place.commit(self._at, self._desk.flag, None):
            self._changed("the flag is removed")

    async def note(self) -> None:
        """Ask for a note on the unit. An empty text removes the note."""
        before, title = self._hand.unit.state.note or "", "Note on this unit (empty removes it)"
        await self._ask_text("note", title, before, self._desk.note, "noted")

    async def _ask_text(
        self, name: str, title: str, before: str, store: Callable[..., State], message: str
    ) -> None:
        """Ask for the text of a flag or a note, and store it."""
        at = self._at

        async def done(text: str) -> str | None:
            # An unchanged text is not an event, because the log would record a change that nobody made.
            if text == before:
                self._view.say("a flag needs a reason, so nothing was flagged" if name == "flag" else "")
                return None
            if not await self._place.commit(at, store, text):
                return f"not stored: {self._place.refused}"
            self._changed(message if text else f"the {name} is removed")
            return None

        await self._place.ask(title, name, before, done=done)

    def _changed(self, message: str) -> None:
        self._view.draw_labels()
        self._view.say(message)

    async def jump(self) -> None:
        """Ask for the number of a unit, and go to that unit."""

        async def go(text: str) -> None:
            position = self._hand.unit_number(text)
            if position is not None:
                self._place.show(position)
            elif text:
                self._place.refuse(f"there is no unit {make_one_line(text, LONG)}")

        await self._place.open(Ask(f"Go to unit 1 to {self._desk.total}", then=go, is_number=True))

    async def review(self, *, ask: bool = False) -> None:
        """Open the list of the annotator's units. If `ask` is true, also open the search line."""

        def chosen(position: int, searched: str) -> None:
            self._hand.found_by = (searched, position)
            self._place.show(position)

        near = self._hand.unit.position
        await self._place.open(Review(self._desk, near, self._place.typed, chosen, ask=ask))

    async def help(self) -> None:
        """Show the guidelines, the labels and the keys."""
        keys = self._hand.keys
        rows = ["| key | what it does |", "|---|---|"]
        for command in COMMANDS:
            # These characters would end the code or the cell in Markdown, so their names are shown.
            shown = [symbol(k) if symbol(k) not in ("|", "`") else k for k in keys[command.id]]
            message = " or ".join(f"`{s}`" for s in shown)
            rows.append(f"| {message} | {command.help} |")
        rows.append("| `^P` | menu: every command, themes |")
        rows.append("| `^Q` | quit; everything is stored already |")
        rows.append(ELSEWHERE)
        about = (
            "Highlights mark words of the question or claim, and of the reference answers. A highlight does not by "
            "itself mean that a text is relevant."
        )
        text = f"{markdown(self._desk.task)}\n\n## Highlights\n\n{about}\n\n## Keys\n\n" + "\n".join(rows)
        await self._place.open(Help(text, frozenset(keys["help"])))

    async def highlights(self) -> None:
        """Switch highlights on or off."""
        view = self._view
        view.highlights = not view.highlights
        view.draw()
        view.say("" if view.highlights else "highlights are off")

    async def step(self, step: int) -> None:
        """Go to the previous or the next unit."""
        result = self._desk.neighbour(self._hand.unit.position, step)
        if result is None:
            # A label typed ahead was intended for a unit that does not exist, so it is dropped.
            self._place.refuse("this is the last unit" if step > 0 else "this is the first unit")
        else:
            self._place.show(result)

    async def scroll(self, lines: int) -> None:
        """Scroll the chosen pane. `lines` is 1 for one line, 10 for a page and ALL for the end; negative
        values scroll up.
        """
        self._view.scroll(lines)

    async def raw(self) -> None:
        """Switch between raw text and laid-out tables and code."""
        if not (self._view.raw or self._view.is_laid_out):
            self._view.say("nothing to lay out: all tables and code are displayed as stored")
            return
        self._view.switch_raw()
        self._view.say(
            "raw text; press the same key to lay out tables and code again" if self._view.raw else ""
        )

    async def match(self, step: int) -> None:
        """Scroll the text to the next highlight or search hit outside the visible rows."""
        if not self._view.texts.turn_to_match(step):
            self._view.say(f"no highlight or match {'below' if step > 0 else 'above'} the visible text")

    async def pane(self) -> None:
        """Select the next pane for scrolling with the arrow keys.

        The texts come first. They are followed by the question and the labels if these do not fit on the screen.
        """
        if not self._view.turn_pane():
            self._view.say("everything is visible")
