"""The program of `annotate open`, and the only consumer of the queue of intentions."""

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
from annotate.tui.colours import own_colours
from annotate.tui.dialogs import Dialog, Finished
from annotate.tui.escape import tell_apart
from annotate.tui.intentions import Intention, Intentions
from annotate.tui.keymap import COMMANDS, QUIT
from annotate.tui.label import LabelScreen
from annotate.tui.review import Review
from annotate.tui.settings import remember_theme
from judge.errors import AdjudgeError


class AnnotateApp(App[None]):
    """The screens of one annotator in one batch. The desk commits changes, and the screens then show them.

    Every key goes into `typed` when the terminal sends it. `_work` takes one intention after the other, and carries it
    out completely before it takes the next.
    """

    CSS_PATH = "app.tcss"
    TITLE = "annotate"
    # Textual would take Escape before the queue does.
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        desk: Desk,
        *,
        keymap: dict[str, str] | None = None,
        theme: str | None = None,
        held_ms: float | None = None,
    ) -> None:
        """Create the app. `theme` is the remembered theme, which this version of Textual may lack."""
        super().__init__()
        self.desk = desk
        self._first_theme = theme if theme in self.available_themes else None
        self.typed = Intentions()
        self.labelling = LabelScreen(desk, keymap or {}, self.typed, held_ms=held_ms)

    def get_driver_class(self) -> type[Driver]:
        """Return Textual's driver, with a parser that distinguishes Escape from Alt."""
        driver = super().get_driver_class()
        tell_apart(driver)
        return driver

    def get_css_variables(self) -> dict[str, str]:
        """Return Textual's variables and ours."""
        variables = super().get_css_variables()
        variables |= own_colours(variables)
        self.theme_variables = variables
        return variables

    async def on_mount(self) -> None:
        """Set the theme, show the labelling screen, then start the consumer."""
        if self._first_theme:
            self.theme = self._first_theme
            remember_theme(self._first_theme)
        self.theme_changed_signal.subscribe(self, lambda theme: remember_theme(theme.name))
        await self.push_screen(self.labelling)
        # Keys that were typed before the screen is mounted wait in the queue.
        self.run_worker(self._work(), group="typed")

    async def on_event(self, event: Event) -> None:
        """Put keys and pastes from the terminal into the queue, and nowhere else. Every input counts as working time."""
        clock = self.labelling.hand.clock
        if isinstance(event, events.InputEvent) and not event.is_forwarded:
            clock.touch()
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            # As in Textual: a terminal may not report that it has the focus again.
            self.app_focus = True
            clock.away(False)
            self.typed.put(Intention(event, at=event.time))
            return
        await super().on_event(event)

    async def _work(self) -> None:
        while True:
            intention, valid = await self.typed.take()
            if intention.key == QUIT:
                self.exit()
                return
            if valid:
                await self._do(intention)
            else:
                # A dropped key is counted, too: a key that was held down before a refusal is still held after it.
                self.labelling.is_held(intention)
                self._show_dropped()
            if self._exit:
                return
            # Without this, a burst of keys would be processed before anything is painted.
            await asyncio.sleep(0)

    async def _do(self, intention: Intention) -> None:
        screen = self.screen
        if intention.act is not None:
            await intention.act()
        elif intention.event is None:
            return
        # It may have been Escape and a key (see `escape`), and each could do harm in place of the other.
        elif _is_alt(intention.key) and not self.labelling.knows(intention.key):
            self._refuse("Esc and a key, or Alt and a key, came at once and did nothing")
        elif not (isinstance(screen, (LabelScreen, Dialog, Review)) and await screen.take(intention)):
            if isinstance(screen, CommandPalette) and intention.key == "enter":
                await self._searched(screen)
            await super().on_event(intention.event)
            await self._delivered(screen)

    def _refuse(self, why: str) -> None:
        self.labelling.place.refuse(why)
        if isinstance(self.screen, Dialog):
            self.screen.say(why)

    async def _searched(self, menu: CommandPalette) -> None:
        """Wait until the menu lists the commands for the typed letters."""
        # The menu searches in the background: Enter would choose from the list for fewer letters.
        looking = [w for w in self.workers if w.node is menu and not w.is_finished]
        if not looking:
            return
        with suppress(TimeoutError, WorkerFailed, WorkerCancelled):
            await asyncio.wait_for(self.workers.wait_for_complete(looking), 2)

    async def _delivered(self, screen: Screen[object]) -> None:
        """Wait until all widgets that a key bubbles through have handled the key and the messages that it caused."""
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
        message = f"{n} key{'s' if n > 1 else ''} typed after it did nothing"
        if isinstance(self.screen, Finished):
            self.screen.say(message)
        else:
            self.labelling.view.add(message)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Count the time from now on as idle: the terminal lost the focus."""
        self.labelling.hand.clock.away(True)

    def on_app_focus(self, event: events.AppFocus) -> None:
        """Count the time from now on as work: the terminal has the focus."""
        self.labelling.hand.clock.away(False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the entries of the menu: our commands, then Textual's themes and quit."""
        if screen is self.labelling:
            for command in COMMANDS:
                if command.short:
                    yield SystemCommand(
                        command.short.capitalize(), command.help, lambda c=command: self._chosen(c.id)
                    )
        for entry in super().get_system_commands(screen):
            if entry.title in ("Theme", "Quit"):
                yield entry

    def _chosen(self, command: str) -> None:
        # Before the keys in the queue: they were typed after the Enter that chose the command.
        self.typed.put(Intention(act=self.labelling.commands.by_id[command]), first=True)


# With Alt, terminals send special sequences for these keys, so they cannot be mistaken for Escape and a key.
_NO_LETTER = {"left", "right", "up", "down", "home", "end", "pageup", "pagedown", "insert", "delete"}


def _is_alt(key: str) -> bool:
    return key.startswith("alt+") and key[4:] not in _NO_LETTER


def run_app(
    desk: Desk,
    *,
    keymap: dict[str, str],
    theme: str | None,
    held_ms: float | None = None,
) -> str | None:
    """Run until the annotator quits. Return why the last change was not stored, or None if it was stored.

    Raises AdjudgeError if a bug in the program ended the session.
    """
    app = AnnotateApp(desk, keymap=keymap, theme=theme, held_ms=held_ms)
    app.run()
    # After an unhandled exception, Textual prints it and returns as usual. Only this code shows that the session failed.
    if app.return_code:
        raise AdjudgeError(
            "a bug in the program ended the session (the error is printed above; please report it): everything that was shown as done is stored"
        )
    return app.labelling.place.refused
