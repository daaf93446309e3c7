"""Small screens over the labelling screen: one line of text, help, the end of a batch."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Markdown, Static

SETTLE = 0.3
"""Seconds in which keys typed ahead do not answer what came up meanwhile."""


class Ask(ModalScreen[str | None]):
    """One line of text; Escape gives None."""

    BINDINGS: ClassVar = [Binding("escape", "cancel", "cancel")]

    def __init__(self, title: str, value: str = "", *, kind: str = "text") -> None:
        super().__init__()
        self._title, self._value, self._kind = title, value, kind

    def compose(self) -> ComposeResult:
        """A title and an input."""
        with Vertical(id="ask-box"):
            yield Static(Content(self._title), id="ask-title")
            yield Input(self._value, type="number" if self._kind == "number" else "text", id="ask")

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Enter: done."""
        self.dismiss(event.value.strip())

    def action_cancel(self) -> None:
        """Escape: nothing happened."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """Guidelines, labels and keys."""

    BINDINGS: ClassVar = [
        Binding("escape,q,enter,question_mark,f1", "dismiss", "back"),
        Binding("down", "scroll(1)", "down", show=False),
        Binding("up", "scroll(-1)", "up", show=False),
        Binding("space,pagedown", "scroll(10)", "page down", show=False),
        Binding("pageup", "scroll(-10)", "page up", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, scrolled with the arrows."""
        with VerticalScroll(id="help-box"):
            yield Markdown(self._text, open_links=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#help-box").scroll_relative(y=lines, animate=False)


class Finished(ModalScreen[str]):
    """Everything is answered: counts, and where to go from here. No key of it is a letter: those are labels."""

    BINDINGS: ClassVar = [
        Binding("escape", "leave('stay')", "stay"),
        Binding("equals_sign,f5", "leave('review')", "list"),
        Binding("minus,f4", "leave('skipped')", "skipped ones"),
        Binding("ctrl+q,enter", "leave('quit')", "quit"),
        Binding("backspace", "leave('undo')", "undo"),
    ]

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text, self._since = text, time.monotonic()

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="done-box"):
            yield Static(self._text)

    def action_leave(self, what: str) -> None:
        """Close with what was chosen. Keys typed ahead of the box open no unit that a next key would label."""
        if what in ("skipped", "undo") and time.monotonic() - self._since < SETTLE:
            return
        self.dismiss(what)


class Told(ModalScreen[None]):
    """Something to read once; Enter or Escape goes on."""

    BINDINGS: ClassVar = [Binding("enter,escape", "dismiss", "go on")]

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="told-box"):
            yield Static(self._text)
