"""The screen that lists the annotator's units, with filters and a search. The units are read from SQLite in pages."""

from collections.abc import Awaitable, Callable

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from annotate.sitting.desk import Desk
from annotate.sitting.unit import ReviewLine
from annotate.tui.actions import ActionQueue, UserAction
from annotate.tui.untrusted import make_one_line

PAGE = 100
FILTERS = ("all", "open", "done", "skipped", "flagged", "noted")
KEYS = "⏎ go there   ⇥ filter   / search   Esc back   (! flagged  + note)"
SEARCH_KEYS = "⏎ search   Esc back"
MARKS = {"open": "·", "done": "✓", "skipped": "-"}


# Textual's DataTable takes 1.9 s for 10,000 rows, and a batch can have 100,000.
class ReviewRows(ScrollView, can_focus=True):
    """The rows of the list. They are read in pages, and a page is read only when it becomes visible."""

    def __init__(self, desk: Desk, near: int, clicked: Callable[[int], None]) -> None:
        super().__init__()
        self._desk, self._near, self._clicked = desk, near, clicked
        self.only, self.search = "all", ""
        self._pages: dict[int, list[ReviewLine]] = {}
        longest = [[len(label.value) for label in q.labels] for q in desk.task.spec.questions]
        # A free-text answer may have any length.
        self._label_columns = min(sum(max(labels, default=22) + 2 for labels in longest) - 2, 22)
        self.count = 0
        self.cursor = 0

    def on_mount(self) -> None:
        """Count the units, and place the cursor on the unit from which the list was opened."""
        self.reload()
        self.cursor = min(max(self._near - 1, 0), max(self.count - 1, 0))
        self.call_after_refresh(self._follow)

    def reload(self) -> None:
        """Discard the rows that were read, count the units again, and place the cursor on the first row."""
        self._pages.clear()
        self.count = self._desk.count(self.only, self.search)
        self.cursor = 0
        self.virtual_size = Size(self.size.width, self.count)
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def row(self, index: int) -> ReviewLine | None:
        """Return a row of the list, or None if `index` is after the last row. Read the row's page if necessary."""
        page = index // PAGE
        if page not in self._pages:
            if len(self._pages) > 20:
                self._pages.clear()
            self._pages[page] = self._desk.listing(self.only, self.search, offset=page * PAGE, limit=PAGE)
        rows = self._pages[page]
        return rows[index % PAGE] if index % PAGE < len(rows) else None

    def render_line(self, y: int) -> Strip:
        """Return the visible row `y` as text."""
        index = y + int(self.scroll_offset.y)
        width = self.size.width
        line = self.row(index) if index < self.count else None
        base: Style = self.rich_style
        if line is None:
            return Strip.blank(width, base)
        answers, room = ", ".join(line.answers.values()), self._label_columns
        extra = ("!" if line.flag else " ") + ("+" if line.note else " ")
        left = f"{line.position:>6} {MARKS[line.status]}{extra} {make_one_line(answers, room):<{room}} "
        reason = f"  ({make_one_line(line.flag or line.note, 40)})" if line.flag or line.note else ""
        style = base + Style(reverse=True) if index == self.cursor else base
        text = Segment(left + make_one_line(line.text, 200) + reason, style)
        return Strip([text]).adjust_cell_length(width, style).crop(0, width)

    def move(self, step: int) -> None:
        """Move the cursor by `step` rows."""
        self.cursor = max(0, min(self.count - 1, self.cursor + step))
        self._follow()

    def page(self, pages: int) -> None:
        """Move the cursor down by this number of screen pages, or up if the number is negative."""
        self.move(pages * max(self.size.height - 1, 1))

    def _follow(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Go to the unit in the row that was clicked."""
        index = int(event.y + self.scroll_offset.y)
        line = self.row(index) if index < self.count else None
        # A click below the last row does nothing.
        if line is not None:
            self._clicked(line.position)


class Review(Screen[None]):
    """The list of the annotator's units. When the user chooses a unit, `chosen` is called with its position and the search."""

    def __init__(
        self,
        desk: Desk,
        near: int,
        typed: ActionQueue,
        chosen: Callable[[int, str], None],
        *,
        ask: bool = False,
    ) -> None:
        super().__init__()
        self._desk, self._near, self._ask = desk, near, ask
        self._typed, self._chosen = typed, chosen
        self._filters = (*FILTERS, *desk.kinds())
        """The filters, in the order in which Tab selects them. A lead's list can also be filtered by the kind of disagreement."""
        self.keys: dict[str, Callable[[ReviewRows], None]] = {
            **dict.fromkeys(("down", "j"), lambda rows: rows.move(1)),
            **dict.fromkeys(("up", "k"), lambda rows: rows.move(-1)),
            **dict.fromkeys(("pagedown", "space"), lambda rows: rows.page(1)),
            "pageup": lambda rows: rows.page(-1),
            "home": lambda rows: rows.move(-rows.count),
            "end": lambda rows: rows.move(rows.count),
            "tab": lambda _: self.filter(1),
            "shift+tab": lambda _: self.filter(-1),
            **dict.fromkeys(("slash", "f8"), lambda _: self.search()),
        }
        self._leave: dict[str, Callable[[], Awaitable[None]]] = {
            **dict.fromkeys(("escape", "q", "equals_sign", "f5"), self.back),
            "enter": self._choose,
        }

    def compose(self) -> ComposeResult:
        """Yield the line with the filters, the search line, the rows, and the line with the keys."""
        yield Static("", id="review-top", markup=False)
        yield Input(
            placeholder="type words from the texts or your notes, then press Enter",
            id="review-search",
            compact=True,
        )
        yield ReviewRows(self._desk, self._near, self._click)
        yield Static(Content(KEYS), id="review-keys", markup=False)

    async def take(self, action: UserAction) -> bool:
        """Handle a key. Return False for keys that type text into the search line."""
        rows, box = self.query_one(ReviewRows), self.query_one(Input)
        # The footer's message about the previous key no longer applies.
        self._show_keys()
        if self.focused is box:
            if action.key in ("enter", "tab", "shift+tab"):
                self.search_for(box.value)
            elif action.key == "escape":
                await self.back()
            else:
                return False
        elif action.key in self.keys:
            self.keys[action.key](rows)
        elif action.key in self._leave:
            await self._leave[action.key]()
        elif action.key.startswith("ctrl+"):
            return False
        elif action.character and action.character.isprintable():
            # The keys after this one were meant for the unit, but would act on the list.
            self._show_keys("this is the list: ⏎ goes to a unit, Esc goes back")
            self._typed.refuse()
            self.call_after_refresh(self._typed.record_seen)
        return True

    def _click(self, position: int) -> None:
        async def go() -> None:
            if self.app.screen is self:
                await self._go(position)

        self._typed.add(UserAction(callback=go))

    async def _choose(self) -> None:
        rows = self.query_one(ReviewRows)
        line = rows.row(rows.cursor) if rows.count else None
        if line is not None:
            await self._go(line.position)

    async def _go(self, position: int) -> None:
        searched = self.query_one(ReviewRows).search
        await self.app.pop_screen()
        self._chosen(position, searched)

    def on_mount(self) -> None:
        """Focus the rows or, if the list was opened for a search, the search line."""
        self._show_status()
        self.set_focus(self.query_one(ReviewRows))
        if self._ask:
            self.search()

    def _show_status(self) -> None:
        rows = self.query_one(ReviewRows)
        parts: list[Content] = [Content.styled(f"{self._desk.info.batch}   ", "bold")]
        for name in self._filters:
            parts.append(Content.styled(f" {name} ", "reverse" if name == rows.only else ""))
        summary = f"   {rows.count} unit{'' if rows.count == 1 else 's'}"
        parts.append(Content(summary + (f" with “{make_one_line(rows.search, 30)}”" if rows.search else "")))
        self.query_one("#review-top", Static).update(Content("").join(parts))

    def on_descendant_focus(self) -> None:
        """Show the keys for the widget that has the focus. A click can move the focus."""
        self._show_keys()

    def _show_keys(self, instead: str = "") -> None:
        typing = self.focused is self.query_one(Input)
        self.query_one("#review-keys", Static).update(Content(instead or (SEARCH_KEYS if typing else KEYS)))

    def filter(self, step: int) -> None:
        """Select the next or the previous filter."""
        rows = self.query_one(ReviewRows)
        names = self._filters
        rows.only = names[(names.index(rows.only) + step) % len(names)]
        rows.reload()
        self._show_status()

    def search(self) -> None:
        """Open the search line."""
        box = self.query_one(Input)
        box.add_class("on")
        self.set_focus(box)

    def search_for(self, text: str) -> None:
        """List only the units that contain this text."""
        rows = self.query_one(ReviewRows)
        rows.search = text.strip()
        rows.reload()
        self._show_status()
        self.set_focus(rows)

    async def back(self) -> None:
        """Close the search line. If no search line is open, or the list was opened for a search, close the list."""
        box, rows = self.query_one(Input), self.query_one(ReviewRows)
        if self._ask or not box.has_class("on"):
            await self.app.pop_screen()
            return
        box.remove_class("on")
        box.value = ""
        self.set_focus(rows)
        if rows.search:
            rows.search = ""
            rows.reload()
            self._show_status()
