"""Dialogs in front of the labelling screen: text input, notices, help, and the end of a batch."""

import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Markdown, Static

from annotate.tui import actions
from annotate.tui.actions import UserAction
from judge.joiners import JOINERS


# Dialogs have no bindings, because a second path for keys, beside the app's queue, could change their order.
class Dialog(ModalScreen[None]):
    """A dialog that handles the user's actions until it is closed."""

    def on_mount(self) -> None:
        """Arrange to record the time at which the dialog is painted."""
        # Until it is painted, every key counts as typed ahead.
        self._painted = math.inf
        self.call_after_refresh(self._record_seen)

    def _record_seen(self) -> None:
        self._painted = monotonic()

    def ahead(self, action: UserAction) -> bool:
        """Return whether a key was typed before the user could have read the dialog."""
        # Read through the module, so that tests can set it to 0.
        return action.at < self._painted + actions.SETTLE

    async def close(self) -> None:
        """Close the dialog. The screen below handles the next key."""
        await self.app.pop_screen()

    def say(self, text: str) -> None:
        """Show why a key was ignored, if the dialog has a line for such messages."""

    @abstractmethod
    async def take(self, action: UserAction) -> bool:
        """Handle a key. Return False to let the focused widget handle it."""


class TextInput(Input):
    """An input that also accepts joiners and direction marks, which are part of the spelling in some scripts."""

    async def _on_key(self, event: events.Key) -> None:
        # Textual drops them, because Unicode counts them as format characters.
        if event.character in JOINERS:
            event.stop()
            event.prevent_default()
            self.replace(event.character, *self.selection)


class Ask(Dialog):
    """A dialog for typing one line of text. The line initially contains `draft` or, if there is no draft, `before`.

    Enter calls `done` with the text. If `done` returns an error, the dialog shows the error and stays open. Otherwise
    the dialog closes and calls `then` with the text. Escape closes the dialog and calls `on_escape` with the text.

    After each change, `keep` is called with the text and stores it as a draft. When the text is stored or equals
    `before`, `keep` is called with None and removes the draft.
    """

    def __init__(
        self,
        title: str,
        *,
        done: Callable[[str], Awaitable[str | None]] | None = None,
        then: Callable[[str], Awaitable[None]] | None = None,
        on_escape: Callable[[str], None] | None = None,
        before: str = "",
        draft: str | None = None,
        keep: Callable[[str | None], None] | None = None,
        is_number: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._before, self._value, self._is_number = title, before, draft or before, is_number
        self._done, self._then, self._on_escape, self._keep = done, then, on_escape, keep

    def compose(self) -> ComposeResult:
        """Yield a title, an input, and space for an error."""
        kind: Literal["number", "text"] = "number" if self._is_number else "text"
        with Vertical(id="ask-box"):
            yield Static(Content(self._title), id="ask-title")
            # If the text were selected, the first key would replace it. It may be a draft or an earlier note.
            yield TextInput(self._value, type=kind, id="ask", select_on_focus=False)
            yield Static("", id="ask-wrong", markup=False)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Keep the current text as a draft."""
        # It is stored at once, because a lost connection ends the program without a warning.
        if changed.value != self._value:
            self._keep_draft(changed.value)

    def _keep_draft(self, text: str) -> None:
        self._value = text
        if self._keep is not None:
            self._keep(text if text != self._before else None)

    async def take(self, action: UserAction) -> bool:
        """Handle Enter and Escape. Let the input handle all other keys."""
        box = self.query_one(Input)
        if action.key == "escape":
            await self.close()
            self._keep_draft(box.value)
            if self._on_escape is not None:
                self._on_escape(box.value)
        elif action.key == "enter":
            await self._enter(box.value.strip())
        else:
            # A click may have taken the focus from the input.
            if self.focused is not box:
                self.set_focus(box)
            return False
        return True

    async def _enter(self, text: str) -> None:
        if self._done is not None and (wrong := await self._done(text)) is not None:
            self.say(f"{wrong}. Your text is kept; press Enter to try again.")
            return
        await self.close()
        if self._keep is not None:
            self._keep(None)
        if self._then is not None:
            await self._then(text)

    def say(self, text: str) -> None:
        """Show what is wrong with the text."""
        self.query_one("#ask-wrong", Static).update(Content(text))
        self.add_class("wrong")


class Notice(Dialog):
    """A dialog that shows a text. Enter or Escape closes the dialog."""

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the box with its text."""
        with Vertical(id="notice-box"):
            yield Static(self._text)

    async def take(self, action: UserAction) -> bool:
        """Close the dialog on Enter or Escape."""
        if action.key in ("enter", "escape") and not self.ahead(action):
            await self.close()
        return not _belongs_to_textual(action)


class Confirm(Notice):
    """A question. Enter means yes, and Escape means no. Enter is ignored until the user has had time to read the question."""

    def __init__(self, text: Content, yes: Callable[[], Awaitable[None]]) -> None:
        super().__init__(text)
        self._yes = yes

    async def take(self, action: UserAction) -> bool:
        """Handle Enter and Escape."""
        if action.key == "escape":
            await self.close()
        elif action.key == "enter" and not self.ahead(action):
            await self.close()
            await self._yes()
        return not _belongs_to_textual(action)


class Help(Dialog):
    """A dialog with the guidelines, the labels and the keys."""

    SCROLL: ClassVar = {"down": 1, "up": -1, "space": 10, "pagedown": 10, "pageup": -10}

    def __init__(self, text: str, keys: frozenset[str]) -> None:
        super().__init__()
        self._text, self._leave = text, keys | {"escape", "q", "enter"}

    def compose(self) -> ComposeResult:
        """Yield the text."""
        # If the box had the focus, it would handle keys itself, outside the queue.
        with VerticalScroll(id="help-box", can_focus=False):
            # Guidelines can come from a third party, so a click must not open an address in a browser.
            yield Markdown(self._text, open_links=False)

    async def take(self, action: UserAction) -> bool:
        """Scroll the text, or close the dialog."""
        if action.key in self.SCROLL:
            self.query_one("#help-box").scroll_relative(y=self.SCROLL[action.key], animate=False)
        elif action.key in self._leave:
            await self.close()
        return not _belongs_to_textual(action)


class Finished(Dialog):
    """A dialog at the end of a batch, with counts and the possible next steps.

    `ways` maps keys to commands on the labelling screen. A key that was typed before the user could have read the
    dialog is refused by calling `refuse`. Keys in `always` are never refused, because they have the same effect in this
    dialog and on the labelling screen.
    """

    # No key is a letter, because a label that was typed ahead for the next unit would have an effect here.

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
        """Yield the box with its text and a line for refusals."""
        with Vertical(id="done-box"):
            yield Static(self._text)
            yield Static("", id="done-said", markup=False)

    async def take(self, action: UserAction) -> bool:
        """Run the command for a key, or close the dialog on Escape."""
        way = self._ways.get(action.key)
        if action.key == "escape":
            await self.close()
        elif way is not None and (action.key in self._always or not self.ahead(action)):
            await self.close()
            await way()
        elif _belongs_to_textual(action):
            return False
        else:
            self._refuse(
                "that key does nothing here, because no unit is open"
                if way is None
                else "that key was typed before this dialog opened"
            )
        return True

    def say(self, text: str) -> None:
        """Show why a key was ignored."""
        self.query_one("#done-said", Static).update(Content(text))
        self.add_class("wrong")


def _belongs_to_textual(action: UserAction) -> bool:
    """Return whether Textual may handle the key, because it opens the menu or copies text."""
    return action.key.startswith("ctrl+")
