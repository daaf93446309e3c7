"""The program `annotate open` runs."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.app import App, SystemCommand
from textual.screen import Screen

from annotate.desk import Desk
from annotate.tui.keymap import COMMANDS
from annotate.tui.label import LabelScreen


class AnnotateApp(App[None]):
    """One annotator at one batch; the desk commits, this shows."""

    CSS_PATH = "app.tcss"
    TITLE = "annotate"
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, desk: Desk, *, keymap: dict[str, str] | None = None, theme: str | None = None) -> None:
        super().__init__()
        self.desk, self._wanted, self._theme_name = desk, keymap or {}, theme
        self.labelling = LabelScreen(desk, self._wanted)

    def on_mount(self) -> None:
        """Keys, theme, the screen."""
        self.set_keymap(self._wanted)
        if self._theme_name:
            self.theme = self._theme_name
        self.push_screen(self.labelling)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Time from here on is idle."""
        self.labelling.clock.away(True)

    def on_app_focus(self, event: events.AppFocus) -> None:
        """Back at work."""
        self.labelling.clock.away(False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The menu: our commands, then Textual's themes and quit."""
        if screen is self.labelling:
            for command in COMMANDS:
                if command.short:
                    yield SystemCommand(
                        command.short.capitalize(), command.help, lambda a=command.action: self._run(a)
                    )
        for found in super().get_system_commands(screen):
            if found.title in ("Theme", "Quit"):
                yield found

    def _run(self, action: str) -> None:
        self.labelling.call_later(self.labelling.run_action, action)


def run_app(desk: Desk, *, keymap: dict[str, str], theme: str | None) -> None:
    """Run until the person quits. Raises UsageError for a theme that is not there."""
    app = AnnotateApp(desk, keymap=keymap, theme=theme)
    app.run()
