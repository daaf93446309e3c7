"""The program `annotate open` runs, and the one consumer of what is typed."""

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
    """One annotator at one batch; the desk commits, this shows.

    Every key goes into `typed` when the terminal sends it, and `_work` does one after the other: the
    next is not looked at before all is done that the one before it meant.
    """

    CSS_PATH = "app.tcss"
    TITLE = "annotate"
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        desk: Desk,
        *,
        keymap: dict[str, str] | None = None,
        theme: str | None = None,
        held_ms: float | None = None,
    ) -> None:
        """`theme` is the one chosen last; another version may not have it."""
        super().__init__()
        self.desk = desk
        self._first_theme = theme if theme in self.available_themes else None
        self.typed = Intentions()
        self.labelling = LabelScreen(desk, keymap or {}, self.typed, held_ms=held_ms)

    def get_driver_class(self) -> type[Driver]:
        """Textual's, with Escape told apart from Alt."""
        driver = super().get_driver_class()
        tell_apart(driver)
        return driver

    def get_css_variables(self) -> dict[str, str]:
        """Textual's, and ours."""
        variables = super().get_css_variables()
        variables |= own_colours(variables)
        self.theme_variables = variables
        return variables

    async def on_mount(self) -> None:
        """Theme, the screen, then the consumer."""
        if self._first_theme:
            self.theme = self._first_theme
            remember_theme(self._first_theme)
        self.theme_changed_signal.subscribe(self, lambda theme: remember_theme(theme.name))
        await self.push_screen(self.labelling)
        self.run_worker(self._work(), group="typed")

    async def on_event(self, event: Event) -> None:
        """Keys and pastes of the terminal go into the queue, and nowhere else. Whatever is typed, into a note or in
        the list as well, is work, and so is what the mouse does."""
        clock = self.labelling.hand.clock
        if isinstance(event, events.InputEvent) and not event.is_forwarded:
            clock.touch()
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self.app_focus = True  # as in Textual: a terminal may not tell that it has the focus again
            clock.away(False)
            self.typed.put(Intention(event, at=event.time))
            return
        await super().on_event(event)

    async def _work(self) -> None:
        while True:
            one, valid = await self.typed.take()
            if one.key == QUIT:
                self.exit()
                return
            if valid:
                await self._do(one)
            else:
                self.labelling.is_held(one)
                self._told_dropped()
            if self._exit:
                return
            await asyncio.sleep(0)  # painting has its turn between two keys

    async def _do(self, one: Intention) -> None:
        screen = self.screen
        if one.act is not None:
            await one.act()
        elif one.event is None:
            return
        elif _is_alt(one.key) and not self.labelling.knows(one.key):
            self._refuse("Esc or Alt and a key at once did nothing")
        elif not (isinstance(screen, (LabelScreen, Dialog, Review)) and await screen.take(one)):
            if isinstance(screen, CommandPalette) and one.key == "enter":
                await self._found(screen)
            await super().on_event(one.event)
            await self._delivered(screen)

    def _refuse(self, why: str) -> None:
        self.labelling.place.refuse(why)
        if isinstance(self.screen, Dialog):
            self.screen.say(why)

    async def _found(self, menu: CommandPalette) -> None:
        """Wait until the menu lists what was typed: Enter takes from the list of the letters before it otherwise."""
        looking = [w for w in self.workers if w.node is menu and not w.is_finished]
        if not looking:
            return
        with suppress(TimeoutError, WorkerFailed, WorkerCancelled):
            await asyncio.wait_for(self.workers.wait_for_complete(looking), 2)

    async def _delivered(self, screen: Screen[object]) -> None:
        """Wait until Textual has done with a key: the widgets it bubbles through, and what they tell each other."""
        for _ in range(4 if isinstance(screen, CommandPalette) else 2):
            start = screen.focused or screen
            for node in start.ancestors_with_self:
                done = asyncio.Event()
                if node.is_running and node.call_later(done.set):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(done.wait(), 1)

    def _told_dropped(self) -> None:
        n = self.typed.dropped
        told = f"{n} key{'s' if n > 1 else ''} typed behind it did nothing"
        if isinstance(self.screen, Finished):
            self.screen.say(told)
        else:
            self.labelling.view.add(told)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Time from here on is idle."""
        self.labelling.hand.clock.away(True)

    def on_app_focus(self, event: events.AppFocus) -> None:
        """Back at work."""
        self.labelling.hand.clock.away(False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The menu: our commands, then Textual's themes and quit."""
        if screen is self.labelling:
            for command in COMMANDS:
                if command.short:
                    yield SystemCommand(
                        command.short.capitalize(), command.help, lambda c=command: self._chosen(c.id)
                    )
        for found in super().get_system_commands(screen):
            if found.title in ("Theme", "Quit"):
                yield found

    def _chosen(self, command: str) -> None:
        self.typed.put(Intention(act=self.labelling.commands.by_id[command]), first=True)


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
    """Run until the person quits. Returns why the last thing pressed was not stored, None when it was.

    Raises AdjudgeError when a fault of the program ended it.
    """
    app = AnnotateApp(desk, keymap=keymap, theme=theme, held_ms=held_ms)
    app.run()
    if app.return_code:
        raise AdjudgeError(
            "a fault of the program ended the sitting (it stands above; please report it): what was shown as done is stored"
        )
    return app.labelling.place.refused
