"""The texts of a unit: one pane, or an answer with the passages it is held against."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from annotate.tui.unit import Markable, UnitText


class Texts(Horizontal):
    """Side by side where there is room; else one at a time, the other one key away."""

    def __init__(self) -> None:
        super().__init__(id="texts")
        self.aside = False
        """Whether the passages are the ones that scroll and, in a narrow terminal, that show."""
        self._wide = False
        self._text: UnitText | None = None
        self._passages = ""

    def compose(self) -> ComposeResult:
        """Two panes."""
        with VerticalScroll(id="body-scroll", can_focus=False):
            yield Static("", id="body", markup=False)
        with VerticalScroll(id="aside-scroll", can_focus=False):
            yield Static("", id="aside", markup=False)

    def show(self, text: UnitText, *, wide: bool, top: bool) -> None:
        """Draw; `top` begins reading at the start, or at the part in question."""
        self._text, self._wide = text, wide
        aside = text.aside
        self.query_one("#body", Static).update(text.body)
        self.query_one("#aside", Static).update(aside if aside is not None else "")
        self._arrange()
        if not top:
            return
        plain = aside.plain if aside is not None else ""
        if plain != self._passages:
            # The next sentence of an answer is held against the same passages: they stay where they were.
            self.query_one("#aside-scroll").scroll_to(y=0, animate=False)
        self._passages = plain
        self.query_one("#body-scroll").scroll_to(y=0, animate=False)
        if text.focus is not None:
            self.call_after_refresh(self._reveal, False, text.body, text.focus)

    def _arrange(self) -> None:
        text = self._text
        if text is None:
            return
        two = text.aside is not None
        self.set_class(two and self._wide, "side-by-side")
        self.set_class(two and self.aside, "aside")
        self.set_class(two and not self._wide, "one-of-two")
        other = text.title if self.aside else text.aside_title
        here = text.aside_title if self.aside else text.title
        if not two:
            self.border_title = ""
        elif self._wide:
            self.border_title = f"arrows scroll: {here} · ⇥ {other}"
        else:
            self.border_title = f"{here} · ⇥ {other}"

    def switch(self) -> bool:
        """The other pane; False when there is only one."""
        if self._text is None or self._text.aside is None:
            return False
        self.aside = not self.aside
        self._arrange()
        return True

    def turn_to(self, text: Markable, offset: int) -> None:
        """Show a place of one of the texts, on its pane."""
        found = self._text
        if found is None:
            return
        if found.aside is not None and self.aside != text.beside:
            self.switch()
        pane = found.aside if text.beside and found.aside is not None else found.body
        self._reveal(text.beside, pane, text.at + text.shown.at(offset))

    def _reveal(self, beside: bool, pane: Content, offset: int) -> None:
        box = self.query_one("#aside-scroll" if beside else "#body-scroll")
        width = max(box.content_size.width, 1)
        line = len(pane[: offset + 1].wrap(width)) - 1
        if not box.scroll_y <= line < box.scroll_y + box.size.height - 1:
            box.scroll_to(y=max(line - box.size.height // 3, 0), animate=False)

    def scroll_lines(self, lines: int) -> None:
        """Scroll the chosen pane; ten lines stand for a page."""
        two = self._text is not None and self._text.aside is not None
        box = self.query_one("#aside-scroll" if two and self.aside else "#body-scroll")
        step = lines if abs(lines) == 1 else (max(box.size.height - 2, 1) * (1 if lines > 0 else -1))
        box.scroll_relative(y=step, animate=False)
