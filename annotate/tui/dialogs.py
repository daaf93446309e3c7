"""Small screens over the labelling screen: a line of text to type, help, the end of a batch."""

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


# None of them has bindings: a second path for keys, beside the app's queue of intentions, could change their order.
class Dialog(ModalScreen[None]):
    """A box that handles intentions until it is closed."""

    def on_mount(self) -> None:
        """Record when the box is painted."""
        # Until it is painted, every key counts as typed ahead.
        self._painted = math.inf
        self.call_after_refresh(self._seen)

    def _seen(self) -> None:
        self._painted = monotonic()

    def ahead(self, intention: Intention) -> bool:
        """Return whether a key was typed before anybody could have read the box."""
        # Read through the module, so that tests can set it to 0.
        return intention.at < self._painted + intentions.SETTLE

    async def close(self) -> None:
        """Close the box; the screen below handles the next key."""
        await self.app.pop_screen()

    def say(self, text: str) -> None:
        """Show why a key did nothing, if the box has room for it."""

    @abstractmethod
    async def take(self, intention: Intention) -> bool:
        """Handle a key. Return False to leave it to the widget that has the focus."""


class Ask(Dialog):
    """A box in which one line of text is typed.

    Enter calls `done` with the text. If `done` returns an error, the box stays open and shows it; otherwise `then` is
    called once the box is closed. Escape calls `on_escape` with the text so far, and each change calls `typed`.
    """

    def __init__(
        self,
        title: str,
        done: Callable[[str], Awaitable[str | None]],
        *,
        then: Callable[[], Awaitable[None]] | None = None,
        value: str = "",
        on_escape: Callable[[str], None] | None = None,
        typed: Callable[[str], None] | None = None,
        kind: str = "text",
    ) -> None:
        super().__init__()
        self._title, self._value, self._kind = title, value, kind
        self._done, self._then, self._on_escape, self._typed = done, then, on_escape, typed

    def compose(self) -> ComposeResult:
        """Yield a title, an input, and space for an error."""
        with Vertical(id="ask-box"):
            yield Static(Content(self._title), id="ask-title")
            # A selected text would be lost with the first key: here it would be a draft or the last note.
            yield Input(
                self._value,
                type="number" if self._kind == "number" else "text",
                id="ask",
                select_on_focus=False,
            )
            yield Static("", id="ask-wrong", markup=False)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Report the text so far."""
        # It is stored as a draft at once, because a lost connection ends the program without a warning.
        if self._typed is not None and changed.value != self._value:
            self._value = changed.value
            self._typed(changed.value)

    async def take(self, intention: Intention) -> bool:
        """Handle Enter and Escape; all other keys are typed into the input."""
        box = self.query_one(Input)
        if intention.key == "escape":
            await self.close()
            if self._on_escape is not None:
                self._on_escape(box.value)
        elif intention.key == "enter":
            wrong = await self._done(box.value.strip())
            if wrong is not None:
                self.say(wrong)
                return True
            await self.close()
            if self._then is not None:
                await self._then()
        else:
            # A click may have taken the focus from the input.
            if self.focused is not box:
                self.set_focus(box)
            return False
        return True

    def say(self, text: str) -> None:
        """Show what is wrong with the text."""
        self.query_one("#ask-wrong", Static).update(Content(text))
        self.add_class("wrong")


class Told(Dialog):
    """A box with a text to read once. Enter or Escape closes it."""

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield one box."""
        with Vertical(id="told-box"):
            yield Static(self._text)

    async def take(self, intention: Intention) -> bool:
        """Close."""
        if intention.key in ("enter", "escape") and not self.ahead(intention):
            await self.close()
        return not _of_textual(intention)


class Confirm(Told):
    """A question that Enter confirms and Escape cancels. Enter is ignored until the question can have been read."""

    def __init__(self, text: Content, yes: Callable[[], Awaitable[None]]) -> None:
        super().__init__(text)
        self._yes = yes

    async def take(self, intention: Intention) -> bool:
        """Confirm or cancel."""
        if intention.key == "escape":
            await self.close()
        elif intention.key == "enter" and not self.ahead(intention):
            await self.close()
            await self._yes()
        return not _of_textual(intention)


class Help(Dialog):
    """A box with guidelines, labels and keys."""

    SCROLL: ClassVar = {"down": 1, "up": -1, "space": 10, "pagedown": 10, "pageup": -10}

    def __init__(self, text: str, keys: frozenset[str]) -> None:
        super().__init__()
        self._text, self._leave = text, keys | {"escape", "q", "enter"}

    def compose(self) -> ComposeResult:
        """Yield the text."""
        # If the box had the focus, it would handle keys itself, outside the queue.
        with VerticalScroll(id="help-box", can_focus=False):
            # Guidelines can come from a third party: a click must not open an address in a browser.
            yield Markdown(self._text, open_links=False)

    async def take(self, intention: Intention) -> bool:
        """Scroll, or close."""
        if intention.key in self.SCROLL:
            self.query_one("#help-box").scroll_relative(y=self.SCROLL[intention.key], animate=False)
        elif intention.key in self._leave:
            await self.close()
        return not _of_textual(intention)


class Finished(Dialog):
    """A box at the end of a batch, with counts and the possible next steps.

    `ways` maps a key to a command of the labelling screen. Keys in `always` do the same there and here. The others
    answer this box, so `refuse` is called for such a key if it was typed before the box could be read.
    """

    # No key is a letter, because a label typed ahead for the next unit would choose something here.

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
        """Yield one box, with a line for refusals."""
        with Vertical(id="done-box"):
            yield Static(self._text)
            yield Static("", id="done-said", markup=False)

    async def take(self, intention: Intention) -> bool:
        """Run the command of a key."""
        way = self._ways.get(intention.key)
        if intention.key == "escape":
            await self.close()
        elif way is not None and (intention.key in self._always or not self.ahead(intention)):
            await self.close()
            await way()
        elif _of_textual(intention):
            return False
        else:
            self._refuse(
                "there are no units left for that key"
                if way is None
                else "that key was typed before this box opened"
            )
        return True

    def say(self, text: str) -> None:
        """Show why a key did nothing."""
        self.query_one("#done-said", Static).update(Content(text))
        self.add_class("wrong")


def _of_textual(intention: Intention) -> bool:
    """Return whether Textual may handle the key, because it opens the menu or copies text."""
    return intention.key.startswith("ctrl+")
