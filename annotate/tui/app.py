"""The Textual app for `annotate open`. It puts the user's actions into a queue, and handles them in order."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from textual import events
from textual.app import App, SystemCommand
from textual.command import CommandPalette
from textual.driver import Driver
from textual.events import Event
from textual.screen import Screen
from textual.worker import WorkerCancelled, WorkerFailed

from annotate.sitting.desk import Desk
from annotate.tui.actions import ActionQueue, UserAction
from annotate.tui.colours import get_theme_colours
from annotate.tui.dialogs import Dialog, Finished
from annotate.tui.escape import install_parser
from annotate.tui.keymap import COMMANDS, QUIT
from annotate.tui.label import LabelScreen
from annotate.tui.review import Review
from annotate.tui.settings import read_theme, remember_theme
from annotate.tui.widths import make_pinned
from judge.errors import AdjudgeError


class AnnotateApp(App[None]):
    """The app in which one annotator labels one batch. The desk commits each change before a screen shows it.

    Every key goes into the queue `typed` when the terminal sends it. `_work` takes the actions from the queue, and finishes
    each action before it takes the next one.
    """

    CSS_PATH = "app.tcss"
    TITLE = "annotate"
    # Textual would take Escape before the queue does.
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, desk: Desk, *, keymap: dict[str, str] | None = None) -> None:
        super().__init__()
        self.desk = desk
        self.typed = ActionQueue()
        self.labelling = LabelScreen(desk, keymap or {}, self.typed)

    def get_driver_class(self) -> type[Driver]:
        """Return Textual's driver, with a parser that distinguishes Escape from Alt, and with columns that stay in place."""
        driver = super().get_driver_class()
        install_parser(driver)
        return make_pinned(driver)

    def get_css_variables(self) -> dict[str, str]:
        """Return Textual's CSS variables together with our colours."""
        variables = super().get_css_variables()
        variables |= get_theme_colours(variables)
        self.theme_variables = variables
        return variables

    async def on_mount(self) -> None:
        """Set the theme, show the labelling screen, then start to handle the actions in the queue."""
        # This version of Textual may lack the theme of the last session.
        if (theme := read_theme()) in self.available_themes:
            self.theme = str(theme)
        self.theme_changed_signal.subscribe(self, lambda theme: remember_theme(theme.name))
        await self.push_screen(self.labelling)
        # Keys that were typed before the screen is mounted wait in the queue.
        self.run_worker(self._work(), group="typed")

    async def on_event(self, event: Event) -> None:
        """Put keys and pastes into the queue instead of handling them immediately. Every input event counts as activity."""
        clock = self.labelling.hand.clock
        if isinstance(event, events.InputEvent) and not event.is_forwarded:
            clock.touch()
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            # Textual does the same, because a terminal may not report that it has the focus again.
            self.app_focus = True
            clock.away(False)
            self.typed.add(UserAction(event, at=event.time))
            return
        await super().on_event(event)

    async def _work(self) -> None:
        while True:
            action, valid = await self.typed.take()
            if action.key == QUIT:
                self.exit()
                return
            if valid:
                await self._do(action)
            else:
                # A dropped key is counted, too, because a key that was held down before a refusal is still held after it.
                self.labelling.held_keys.is_held(action)
                self._show_dropped()
            if self._exit:
                return
            # Without this, a burst of keys would be processed before anything is painted.
            await asyncio.sleep(0)

    async def _do(self, action: UserAction) -> None:
        screen = self.screen
        if action.callback is not None:
            await action.callback()
        elif action.event is None:
            return
        # The user may have pressed Escape and then a key (see `escape`). Mistaking one for the other could do harm.
        elif _is_alt(action.key) and action.key not in self.labelling.command_of:
            self.labelling.place.refuse("Esc and a key, or Alt and a key, arrived together and were ignored")
        elif not (isinstance(screen, (LabelScreen, Dialog, Review)) and await screen.take(action)):
            if isinstance(screen, CommandPalette) and action.key == "enter":
                await self._wait_for_search(screen)
            await super().on_event(action.event)
            await self._wait_for_delivery(screen)

    async def _wait_for_search(self, menu: CommandPalette) -> None:
        """Wait until the menu lists the commands that match the typed letters."""
        # The menu searches in the background, so Enter could choose from the list for fewer letters.
        looking = [w for w in self.workers if w.node is menu and not w.is_finished]
        if not looking:
            return
        with suppress(TimeoutError, WorkerFailed, WorkerCancelled):
            await asyncio.wait_for(self.workers.wait_for_complete(looking), 2)

    async def _wait_for_delivery(self, screen: Screen[object]) -> None:
        """Wait until every widget that the key bubbles through has handled the key and the resulting messages."""
        # Otherwise the next key could be handled before this one, because it could take another path.
        # Handling a key can post messages to the same widgets, so this waits for them again. The menu needs more rounds.
        for _ in range(4 if isinstance(screen, CommandPalette) else 2):
            start = screen.focused or screen
            for node in start.ancestors_with_self:
                done = asyncio.Event()
                if node.is_running and node.call_later(done.set):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(done.wait(), 1)

    def _show_dropped(self) -> None:
        n = self.typed.dropped
        message = "1 later key was ignored" if n == 1 else f"{n} later keys were ignored"
        if isinstance(self.screen, Finished):
            self.screen.say(message)
        else:
            self.labelling.view.add(message)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Count time as idle from now on, because the terminal has lost the focus."""
        self.labelling.hand.clock.away(True)

    def on_app_focus(self, event: events.AppFocus) -> None:
        """Count time as work from now on, because the terminal has the focus again."""
        self.labelling.hand.clock.away(False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the menu's entries: first our commands, then Textual's own commands for choosing a theme and for quitting."""
        if screen is self.labelling:
            for command in COMMANDS:
                if command.short:
                    yield SystemCommand(
                        command.short.capitalize(), command.help, lambda c=command: self._run_chosen(c.id)
                    )
        for entry in super().get_system_commands(screen):
            if entry.title in ("Theme", "Quit"):
                yield entry

    def _run_chosen(self, command: str) -> None:
        # The command comes before the keys in the queue, which were typed after the Enter that chose it.
        self.typed.add(UserAction(callback=self.labelling.commands.by_id[command]), first=True)


# With Alt, terminals send special sequences for these keys, so they cannot be mistaken for Escape and a key.
_NO_LETTER = {"left", "right", "up", "down", "home", "end", "pageup", "pagedown", "insert", "delete"}


def _is_alt(key: str) -> bool:
    return key.startswith("alt+") and key[4:] not in _NO_LETTER


def run_app(desk: Desk, keymap: dict[str, str]) -> str | None:
    """Run the app until the annotator quits. Return the reason why the last change was not stored, or None if it was.

    Raises AdjudgeError if a bug ended the session.
    """
    app = AnnotateApp(desk, keymap=keymap)
    app.run()
    # After an unhandled exception, Textual prints it and returns as usual. Only this code shows that the session failed.
    if app.return_code:
        raise AdjudgeError(
            "a bug ended the session, but everything that was shown as done is stored. Please report the error that is printed above"
        )
    return app.labelling.place.refused
