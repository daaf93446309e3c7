"""The panes with a unit's texts: one pane, or an answer beside its passages. Each pane scrolls and shows its position."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from annotate.tui.rows import matches_above, matches_below, row_of, row_starts
from annotate.tui.unit import Markable, UnitText

READABLE_COLUMNS = 120
"""The maximum width of a line of text, in columns. It must match the maximum width in app.tcss."""


def draw_if_changed(part: Static, content: Content, *, layout: bool = True) -> None:
    """Draw a part of the screen if its content has changed.

    `layout=False` is faster, but the part must always have the same number of rows.
    """
    # Most of the time that a key takes is spent on the layout.
    before = part.content
    if not (isinstance(before, Content) and before.is_same(content)):
        part.update(content, layout=layout)


class LongText(Static):
    """A widget that wraps a long text only once. Textual would wrap it each time that it computes the height or position."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows that the text needs in this width."""
        return len(row_starts(str(self.content), width)) if width else 0


class Texts(Horizontal):
    """The panes for the texts. They are side by side if both fit. Otherwise one pane is shown, and Tab switches to the
    other.
    """

    def __init__(self) -> None:
        super().__init__(id="texts")
        self.aside = False
        """Whether the arrows scroll the passages. In a narrow terminal, only the pane that the arrows scroll is shown."""
        self._wide = False
        self._text: UnitText | None = None
        self._passages, self._rule = "", ""

    def compose(self) -> ComposeResult:
        """Yield the two panes."""
        # The panes cannot have the focus, because a pane with the focus would handle keys itself, outside the queue.
        with VerticalScroll(id="body-scroll", can_focus=False):
            yield LongText("", id="body", markup=False)
        with VerticalScroll(id="aside-scroll", can_focus=False):
            yield LongText("", id="aside", markup=False)

    def on_mount(self) -> None:
        """Update the displayed position whenever a pane is scrolled or laid out."""
        for box in self.query(VerticalScroll):
            self.watch(box, "scroll_y", self._show_position, init=False)
            self.watch(box, "virtual_size", self._show_position, init=False)

    def show(self, text: UnitText, *, wide: bool, top: bool) -> None:
        """Draw the texts. If `top` is true, scroll to the beginning, or to the part of the answer that is to be labelled."""
        self._text, self._wide = text, wide
        aside = text.aside
        draw_if_changed(self.query_one("#body", Static), text.body)
        draw_if_changed(self.query_one("#aside", Static), aside or Content(""))
        if not top:
            return
        plain = aside.plain if aside is not None else ""
        if plain != self._passages:
            # The next sentence of an answer is compared with the same passages, so they stay where they are scrolled.
            self.query_one("#aside-scroll").scroll_to(y=0, animate=False)
        self._passages = plain
        self.query_one("#body-scroll").scroll_to(y=0, animate=False)
        if text.focus is not None:
            self.call_after_refresh(self._reveal, False, text.focus)

    @property
    def two(self) -> bool:
        """Whether there is an answer with passages beside it."""
        return self._text is not None and self._text.aside is not None

    def lay_out(self, chosen: str = "", other: str = "") -> None:
        """Show the panes that fit. A line above them names the pane that the arrows scroll, and the pane that Tab selects."""
        text = self._text
        if text is None:
            return
        self.set_class(self.two and self._wide, "side-by-side")
        self.set_class(self.two and self.aside, "aside")
        self.set_class(self.two and not self._wide, "one-of-two")
        here = text.aside_title if self.aside else text.title
        self._rule = ""
        if self.two or other:
            next_ = other or (text.title if self.aside else text.aside_title)
            scrolls = f"arrows scroll: {chosen or here}" if chosen or self._wide else here
            self._rule = f"{scrolls} · ⇥ {next_}"
        if any(t.shown.added for t in text.texts):
            self._rule = " · ".join(filter(None, (self._rule, "~ raw text")))
        self.call_after_refresh(self._show_position)

    def _show_position(self) -> None:
        rule = " · ".join(filter(None, (self._rule, self._position())))
        if self.border_title != rule:
            self.border_title = rule

    def _position(self) -> str:
        """Describe how far the pane is scrolled, and how many matches are below the visible rows.

        Return an empty string if all rows are visible.
        """
        box = self.box
        if self._text is None or not box.max_scroll_y:
            return ""
        pane = self._text.aside if self.two and self.aside and self._text.aside else self._text.body
        if row_of(self._starts(), len(pane.plain.rstrip()) - 1) < box.size.height:
            # Only the empty lines at the end do not fit.
            return ""
        n = len(matches_below(self._matches(), self._starts(), self._visible()[1]))
        below = f", {n} match{'' if n == 1 else 'es'} below" if n else ""
        return f"{round(100 * box.scroll_y / box.max_scroll_y)} %{below}"

    def turn_to_match(self, step: int) -> bool:
        """Scroll to the next match below the visible rows, or to the previous one above them. Return whether one exists."""
        top, end = self._visible()
        matches, starts, box = self._matches(), self._starts(), self.box
        candidates = matches_below(matches, starts, end) if step > 0 else matches_above(matches, starts, top)
        if candidates:
            # Scroll immediately, because the next key in the queue starts from the new position.
            # The match is placed at a third of the height, below some of the text before it.
            line = row_of(starts, candidates[0 if step > 0 else -1])
            box.scroll_to(y=max(line - box.size.height // 3, 0), animate=False, immediate=True)
        return bool(candidates)

    def _matches(self) -> Sequence[int]:
        return self._text.places[self.two and self.aside] if self._text is not None else ()

    def _starts(self) -> Sequence[int]:
        return self._rows(self.two and self.aside)

    def _rows(self, beside: bool) -> Sequence[int]:
        part = self.query_one("#aside" if beside else "#body", Static)
        return row_starts(str(part.content), max(part.size.width, 1))

    def place(self) -> tuple[str, int] | None:
        """Return the text at the top of the pane, and the offset of its first visible character.

        Return None if the pane is not scrolled.
        """
        top, starts, beside = self._visible()[0], self._starts(), self.two and self.aside
        if self._text is None or not 0 < top < len(starts):
            return None
        above = [t for t in self._text.texts if t.beside == beside and t.at <= starts[top]]
        if not above:
            return None
        return above[-1].name, above[-1].shown.raw(starts[top] - above[-1].at, len(above[-1].raw))

    def scroll_to_place(self, place: tuple[str, int] | None) -> None:
        """Scroll to a position in the texts, or to the beginning if `place` is None.

        The position was returned by the method `place` before the texts were laid out again.
        """
        y = 0
        if place is not None and self._text is not None:
            text = next(t for t in self._text.texts if t.name == place[0])
            y = row_of(self._starts(), text.at + text.shown.find_offset(place[1]))
        self.box.scroll_to(y=y, animate=False)

    def _visible(self) -> tuple[int, int]:
        """Return the number of the first visible row, and the number of the row after the last visible one."""
        top = round(self.box.scroll_y)
        return top, top + self.box.size.height

    def name_of(self, aside: bool) -> str:
        """Return the title of a pane."""
        if self._text is None:
            return ""
        return (self._text.aside_title if aside else self._text.title) or "text"

    @property
    def box(self) -> VerticalScroll:
        """The widget of the pane that the arrows scroll."""
        return self.query_one("#aside-scroll" if self.two and self.aside else "#body-scroll", VerticalScroll)

    def turn_to(self, text: Markable, offset: int) -> None:
        """Scroll the pane of one of the texts to an offset in that text."""
        shown_text = self._text
        if shown_text is None:
            return
        if shown_text.aside is not None and self.aside != text.beside:
            self.aside = text.beside
            self.lay_out()
        self._reveal(text.beside, text.at + text.shown.find_offset(offset))

    def _reveal(self, beside: bool, offset: int) -> None:
        box = self.query_one("#aside-scroll" if beside else "#body-scroll")
        line = row_of(self._rows(beside), offset)
        if not box.scroll_y <= line < box.scroll_y + box.size.height - 1:
            box.scroll_to(y=max(line - box.size.height // 3, 0), animate=False)
