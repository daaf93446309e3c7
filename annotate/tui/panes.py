"""The texts of a unit: one pane, or an answer with the passages it is held against; and what scrolls.

The question above and the labels below can be longer than their share of a small terminal; they are
panes too, so that the same key reaches whatever has more than is shown.
"""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from annotate.tui.rows import matches_above, matches_below, row_of, row_starts
from annotate.tui.unit import Markable, UnitText

READABLE_COLUMNS = 120
"""Lines of texts are no longer, however wide the terminal is; as in app.tcss."""


def put(part: Static, content: Content, *, layout: bool = True) -> None:
    """Draw what has changed; without `layout` where a part keeps its rows. Laying out is most of what a key costs."""
    before = part.content
    if not (isinstance(before, Content) and before.is_same(content)):
        part.update(content, layout=layout)


class LongText(Static):
    """A text whose rows are counted once for its height and for the position; Textual alone would wrap it anew."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows of the text."""
        return len(row_starts(str(self.content), width)) if width else 0


class Texts(Horizontal):
    """Side by side where there is room; else one at a time, the other one key away."""

    def __init__(self) -> None:
        super().__init__(id="texts")
        self.aside = False
        """Whether the passages are the ones that scroll and, in a narrow terminal, that show."""
        self._wide = False
        self._text: UnitText | None = None
        self._passages, self._rule = "", ""

    def compose(self) -> ComposeResult:
        """Two panes."""
        with VerticalScroll(id="body-scroll", can_focus=False):
            yield LongText("", id="body", markup=False)
        with VerticalScroll(id="aside-scroll", can_focus=False):
            yield LongText("", id="aside", markup=False)

    def on_mount(self) -> None:
        """The position follows the scrolling, by keys or the wheel, and what was laid out."""
        for box in self.query(VerticalScroll):
            self.watch(box, "scroll_y", self._tell_position, init=False)
            self.watch(box, "virtual_size", self._tell_position, init=False)

    def show(self, text: UnitText, *, wide: bool, top: bool) -> None:
        """Draw; `top` begins reading at the start, or at the part in question or what was searched for."""
        self._text, self._wide = text, wide
        aside = text.aside
        put(self.query_one("#body", Static), text.body)
        put(self.query_one("#aside", Static), aside or Content(""))
        if not top:
            return
        plain = aside.plain if aside is not None else ""
        if plain != self._passages:
            # The next sentence of an answer is held against the same passages: they stay where they were.
            self.query_one("#aside-scroll").scroll_to(y=0, animate=False)
        self._passages = plain
        self.query_one("#body-scroll").scroll_to(y=0, animate=False)
        if text.focus is not None:
            self.call_after_refresh(self._reveal, False, text.focus)

    @property
    def two(self) -> bool:
        """Whether there is an answer and what it is held against."""
        return self._text is not None and self._text.aside is not None

    def lay_out(self, chosen: str = "", other: str = "") -> None:
        """Show the right pane, and in the rule above what the arrows scroll and what the next key leads to."""
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
        self.call_after_refresh(self._tell_position)

    def _tell_position(self) -> None:
        rule = " · ".join(filter(None, (self._rule, self._position())))
        if self.border_title != rule:
            self.border_title = rule

    def _position(self) -> str:
        """How far a text is scrolled that does not fit, and how many matches are below what is seen."""
        box = self.box
        if self._text is None or not box.max_scroll_y:
            return ""
        pane = self._text.aside if self.two and self.aside and self._text.aside else self._text.body
        if row_of(self._starts(), len(pane.plain.rstrip()) - 1) < box.size.height:
            return ""  # only the empty lines behind it do not fit
        n = len(matches_below(self._matches(), self._starts(), self._visible()[1]))
        below = f", {n} match{'' if n == 1 else 'es'} below" if n else ""
        return f"{round(100 * box.scroll_y / box.max_scroll_y)} %{below}"

    def turn_to_match(self, step: int) -> bool:
        """Show the next match below what is seen, or the one above; whether there is one."""
        top, end = self._visible()
        matches, starts, box = self._matches(), self._starts(), self.box
        there = matches_below(matches, starts, end) if step > 0 else matches_above(matches, starts, top)
        if there:
            # At once, because the key that is next in the queue begins where this one has led.
            line = row_of(starts, there[0 if step > 0 else -1])
            box.scroll_to(y=max(line - box.size.height // 3, 0), animate=False, immediate=True)
        return bool(there)

    def _matches(self) -> Sequence[int]:
        return self._text.places[self.two and self.aside] if self._text is not None else ()

    def _starts(self) -> Sequence[int]:
        return self._rows(self.two and self.aside)

    def _rows(self, beside: bool) -> Sequence[int]:
        part = self.query_one("#aside" if beside else "#body", Static)
        return row_starts(str(part.content), max(part.size.width, 1))

    def place(self) -> tuple[str, int] | None:
        """The text, and the character of it, that is at the top of what is seen; None at the beginning."""
        top, starts, beside = self._visible()[0], self._starts(), self.two and self.aside
        if self._text is None or not 0 < top < len(starts):
            return None
        above = [t for t in self._text.texts if t.beside == beside and t.at <= starts[top]]
        return (
            (above[-1].name, above[-1].shown.raw(starts[top] - above[-1].at, len(above[-1].raw)))
            if above
            else None
        )

    def put_on_top(self, place: tuple[str, int] | None) -> None:
        """Scroll to what `place` gave, after the texts were laid out anew."""
        text = (
            next((t for t in self._text.texts if place and t.name == place[0]), None) if self._text else None
        )
        y = row_of(self._starts(), text.at + text.shown.at(place[1])) if text and place else 0
        self.box.scroll_to(y=y, animate=False)

    def _visible(self) -> tuple[int, int]:
        """The first row that is seen, and the one below the last."""
        top = round(self.box.scroll_y)
        return top, top + self.box.size.height

    def name_of(self, aside: bool) -> str:
        """What a pane is called."""
        if self._text is None:
            return ""
        return (self._text.aside_title if aside else self._text.title) or "text"

    @property
    def box(self) -> VerticalScroll:
        """The pane that scrolls."""
        return self.query_one("#aside-scroll" if self.two and self.aside else "#body-scroll", VerticalScroll)

    def turn_to(self, text: Markable, offset: int) -> None:
        """Show a place of one of the texts, on its pane."""
        found = self._text
        if found is None:
            return
        if found.aside is not None and self.aside != text.beside:
            self.aside = text.beside
            self.lay_out()
        self._reveal(text.beside, text.at + text.shown.at(offset))

    def _reveal(self, beside: bool, offset: int) -> None:
        box = self.query_one("#aside-scroll" if beside else "#body-scroll")
        line = row_of(self._rows(beside), offset)
        if not box.scroll_y <= line < box.scroll_y + box.size.height - 1:
            box.scroll_to(y=max(line - box.size.height // 3, 0), animate=False)


def scroll_lines(box: VerticalScroll, lines: int) -> None:
    """Scroll a pane; ten lines stand for a page, more for all of it."""
    if abs(lines) > 10:
        # At once, as for a match.
        box.scroll_to(y=box.max_scroll_y if lines > 0 else 0, animate=False, immediate=True)
        return
    step = lines if abs(lines) == 1 else (max(box.size.height - 2, 1) * (1 if lines > 0 else -1))
    box.scroll_relative(y=step, animate=False)
