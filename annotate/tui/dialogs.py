"""Small screens over the labelling screen: one line of text, help, the end of a batch.

None has bindings: each takes its keys from the app's queue of intentions, like the labelling screen.
"""

import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Markdown, Static

from annotate.tui import intentions
from annotate.tui.intentions import Intention


class Dialog(ModalScreen[None]):
    """A box that takes intentions until it is closed."""

    def on_mount(self) -> None:
        """Note when it is seen."""
        self._painted = math.inf
        self.call_after_refresh(self._seen)

    def _seen(self) -> None:
        self._painted = monotonic()

    def ahead(self, one: Intention) -> bool:
        """Whether it was typed before anybody could have read the box."""
        return one.at < self._painted + intentions.SETTLE

    async def close(self) -> None:
        """Go; the screen below takes the keys from here on."""
        await self.app.pop_screen()

    def say(self, text: str) -> None:
        """Why a key did nothing, where the box has room for it."""

    @abstractmethod
    async def take(self, one: Intention) -> bool:
        """Do what a key means here; False leaves it to the widget that has the focus."""


class Ask(Dialog):
    """One line of text. `done` gets it at Enter and says what was wrong with it, and then it stays to be mended;
    `then` follows once the box is gone. Escape calls `left` with what was typed so far, and each change `typed`."""

    def __init__(
        self,
        title: str,
        done: Callable[[str], Awaitable[str | None]],
        *,
        then: Callable[[], Awaitable[None]] | None = None,
        value: str = "",
        left: Callable[[str], None] | None = None,
        typed: Callable[[str], None] | None = None,
        kind: str = "text",
    ) -> None:
        super().__init__()
        self._title, self._done, self._then, self._left, self._typed = title, done, then, left, typed
        self._value, self._kind = value, kind

    def compose(self) -> ComposeResult:
        """A title, an input, room for what is wrong."""
        with Vertical(id="ask-box"):
            yield Static(Content(self._title), id="ask-title")
            yield Input(
                self._value,
                type="number" if self._kind == "number" else "text",
                id="ask",
                select_on_focus=False,
            )
            yield Static("", id="ask-wrong", markup=False)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Tell of what is typed so far: a line that breaks must not take it away."""
        if self._typed is not None and changed.value != self._value:
            self._value = changed.value
            self._typed(changed.value)

    async def take(self, one: Intention) -> bool:
        """Enter hands the text over, Escape leaves; the rest is typing."""
        box = self.query_one(Input)
        if one.key == "escape":
            await self.close()
            if self._left is not None:
                self._left(box.value)
        elif one.key == "enter":
            wrong = await self._done(box.value.strip())
            if wrong is not None:
                self.say(wrong)
                return True
            await self.close()
            if self._then is not None:
                await self._then()
        else:
            if self.focused is not box:
                self.set_focus(box)
            return False
        return True

    def say(self, text: str) -> None:
        """What is wrong."""
        self.query_one("#ask-wrong", Static).update(Content(text))
        self.add_class("wrong")


class Confirm(Dialog):
    """A question to which Enter says yes, once it could be read, and Escape no."""

    def __init__(self, text: Content, yes: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._text, self._yes = text, yes

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="told-box"):
            yield Static(self._text)

    async def take(self, one: Intention) -> bool:
        """Yes, or back to where it was."""
        if one.key == "escape":
            await self.close()
        elif one.key == "enter" and not self.ahead(one):
            await self.close()
            await self._yes()
        return not _of_textual(one)


class Help(Dialog):
    """Guidelines, labels and keys."""

    SCROLL: ClassVar = {"down": 1, "up": -1, "space": 10, "pagedown": 10, "pageup": -10}

    def __init__(self, text: str, keys: frozenset[str]) -> None:
        super().__init__()
        self._text, self._leave = text, keys | {"escape", "q", "enter"}

    def compose(self) -> ComposeResult:
        """The text, scrolled with the arrows."""
        with VerticalScroll(id="help-box", can_focus=False):
            yield Markdown(self._text, open_links=False)

    async def take(self, one: Intention) -> bool:
        """Scroll, or go back."""
        if one.key in self.SCROLL:
            self.query_one("#help-box").scroll_relative(y=self.SCROLL[one.key], animate=False)
        elif one.key in self._leave:
            await self.close()
        return not _of_textual(one)


class Finished(Dialog):
    """Everything is answered: counts, and where to go from here.

    `ways` leads from a key to what is done on the labelling screen below. Those in `always` mean the same
    there and here; the rest are answers to the box, so one typed before it could be read is refused by
    `refuse`, and what was typed behind it with it. No key of it is a letter: letters are labels.
    """

    def __init__(
        self,
        text: Content,
        ways: Mapping[str, Callable[[], Awaitable[None]]],
        always: frozenset[str],
        refuse: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._text, self._ways, self._always, self._refuse = text, ways, always, refuse

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="done-box"):
            yield Static(self._text)
            yield Static("", id="done-said", markup=False)

    async def take(self, one: Intention) -> bool:
        """Go where the key leads."""
        way = self._ways.get(one.key)
        if one.key == "escape":
            await self.close()
        elif way is not None and (one.key in self._always or not self.ahead(one)):
            await self.close()
            await way()
        elif _of_textual(one):
            return False
        else:
            self._refuse(
                "there is no unit left for that key" if way is None else "that key came before this box"
            )
        return True

    def say(self, text: str) -> None:
        """Why a key did nothing."""
        self.query_one("#done-said", Static).update(Content(text))
        self.add_class("wrong")


class Told(Dialog):
    """Something to read once; Enter or Escape goes on."""

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="told-box"):
            yield Static(self._text)

    async def take(self, one: Intention) -> bool:
        """Go on."""
        if one.key in ("enter", "escape") and not self.ahead(one):
            await self.close()
        return not _of_textual(one)


def _of_textual(one: Intention) -> bool:
    """Whether Textual may know the key: the menu, copying."""
    return one.key.startswith("ctrl+")
