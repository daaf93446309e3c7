"""The list of one's own units, paged from SQLite: filter, search, go to one."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from annotate.desk import Desk, Line
from annotate.tui.words import one_line

PAGE = 100
FILTERS = ("all", "open", "done", "skipped", "flagged", "noted")
MARKS = {"open": "·", "done": "✓", "skipped": "-"}


class Rows(ScrollView, can_focus=True):
    """Rows of the queue; only the pages on the screen are read."""

    BINDINGS: ClassVar = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home", "move(-1000000000)", "first", show=False),
        Binding("end", "move(1000000000)", "last", show=False),
        Binding("enter", "choose", "go there", show=False),
    ]

    class Chosen(Message):
        """A row was chosen."""

        def __init__(self, position: int) -> None:
            self.position = position
            super().__init__()

    def __init__(self, desk: Desk, only: str, search: str, near: int) -> None:
        super().__init__()
        self._desk, self.only, self.search, self._near = desk, only, search, near
        self._pages: dict[int, list[Line]] = {}
        self.count = 0
        self.cursor = 0

    def on_mount(self) -> None:
        """Read how many there are."""
        self.reload()
        if self.only == "all" and not self.search:
            self.cursor = min(max(self._near - 1, 0), max(self.count - 1, 0))
            self.call_after_refresh(self._follow)

    def reload(self) -> None:
        """Read again, from the first row."""
        self._pages.clear()
        self.count = self._desk.count(self.only, self.search)
        self.cursor = 0
        self.virtual_size = Size(self.size.width, self.count)
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def row(self, index: int) -> Line | None:
        """One row, from its page."""
        page = index // PAGE
        if page not in self._pages:
            if len(self._pages) > 20:
                self._pages.clear()
            self._pages[page] = self._desk.listing(self.only, self.search, offset=page * PAGE, limit=PAGE)
        rows = self._pages[page]
        return rows[index % PAGE] if index % PAGE < len(rows) else None

    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
        index = y + int(self.scroll_offset.y)
        width = self.size.width
        line = self.row(index) if index < self.count else None
        base: Style = self.rich_style
        if line is None:
            return Strip.blank(width, base)
        answers = ", ".join(line.answers.values())
        extra = ("!" if line.flag else " ") + ("+" if line.note else " ")
        left = f"{line.position:>6} {MARKS[line.status]}{extra} {one_line(answers, 22):<22} "
        why = f"  ({one_line(line.flag or line.note, 40)})" if line.flag or line.note else ""
        style = base + Style(reverse=True) if index == self.cursor else base
        text = Segment(left + one_line(line.text, 200) + why, style)
        return Strip([text]).adjust_cell_length(width, style).crop(0, width)

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        self.cursor = max(0, min(self.count - 1, self.cursor + step))
        self._follow()

    def action_page(self, pages: int) -> None:
        """Move it by a screen."""
        self.action_move(pages * max(self.size.height - 1, 1))

    def _follow(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False)
        self.refresh()

    def action_choose(self) -> None:
        """Go to the row under the cursor."""
        line = self.row(self.cursor) if self.count else None
        if line is not None:
            self.post_message(self.Chosen(line.position))

    def on_click(self, event: events.Click) -> None:
        """A click goes to its row."""
        index = int(event.y + self.scroll_offset.y)
        if index < self.count:
            self.cursor = index
            self.action_choose()


class Review(Screen[int | None]):
    """The own units; gives the position to go to."""

    BINDINGS: ClassVar = [
        Binding("escape,q,equals_sign,f5", "back", "back"),
        Binding("tab", "filter(1)", "next filter", priority=True),
        Binding("shift+tab", "filter(-1)", "filter before", priority=True),
        Binding("slash,f8", "search", "search"),
    ]

    def __init__(self, desk: Desk, near: int, *, only: str = "all", ask: bool = False) -> None:
        super().__init__()
        self._desk, self._near, self._only, self._ask = desk, near, only, ask

    def compose(self) -> ComposeResult:
        """Filters, a search line, the rows."""
        yield Static("", id="review-top", markup=False)
        yield Input(
            placeholder="search in the texts and your notes, then Enter", id="review-search", compact=True
        )
        yield Rows(self._desk, self._only, "", self._near)
        yield Static(
            Content("⏎ go there   tab filter   / search   Esc back   (! flagged  + note)"), id="review-keys"
        )

    def on_mount(self) -> None:
        """Focus the rows, or the search line."""
        self._tell()
        self.query_one(Rows).focus()
        if self._ask:
            self.action_search()

    def _tell(self) -> None:
        rows = self.query_one(Rows)
        parts: list[Content] = [Content.styled(f"{self._desk.info.batch}   ", "bold")]
        for name in FILTERS:
            parts.append(Content.styled(f" {name} ", "reverse" if name == rows.only else ""))
        told = f"   {rows.count} unit{'' if rows.count == 1 else 's'}"
        parts.append(Content(told + (f" with “{one_line(rows.search, 30)}”" if rows.search else "")))
        self.query_one("#review-top", Static).update(Content("").join(parts))

    def action_filter(self, step: int) -> None:
        """The next or the previous filter."""
        rows = self.query_one(Rows)
        rows.only = FILTERS[(FILTERS.index(rows.only) + step) % len(FILTERS)]
        rows.reload()
        self._tell()

    def action_search(self) -> None:
        """Open the search line."""
        box = self.query_one(Input)
        box.add_class("on")
        box.focus()

    @on(Input.Submitted)
    def searched(self, event: Input.Submitted) -> None:
        """Look for it."""
        rows = self.query_one(Rows)
        rows.search = event.value.strip()
        rows.reload()
        self._tell()
        rows.focus()

    def action_back(self) -> None:
        """Escape: the search line first, then the list."""
        box = self.query_one(Input)
        if box.has_class("on"):
            box.remove_class("on")
            box.value = ""
            rows = self.query_one(Rows)
            rows.focus()
            if rows.search:
                rows.search = ""
                rows.reload()
                self._tell()
                return
            if not self._ask:
                return
        self.dismiss(None)

    @on(Rows.Chosen)
    def chosen(self, event: Rows.Chosen) -> None:
        """Enter or a click."""
        self.dismiss(event.position)
