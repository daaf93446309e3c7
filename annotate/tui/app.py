"""The program `annotate open` runs."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.app import App, SystemCommand
from textual.screen import Screen

from annotate.desk import Desk
from annotate.tui.colours import own_colours
from annotate.tui.keymap import COMMANDS
from annotate.tui.label import LabelScreen
from annotate.tui.settings import remember_theme
from judge.errors import UsageError


class AnnotateApp(App[None]):
    """One annotator at one batch; the desk commits, this shows."""

    CSS_PATH = "app.tcss"
    TITLE = "annotate"
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        desk: Desk,
        *,
        keymap: dict[str, str] | None = None,
        theme: str | None = None,
        remembered: str | None = None,
    ) -> None:
        """`theme` is asked for, `remembered` taken if it is there. Raises UsageError for a theme that is not."""
        super().__init__()
        if theme and theme not in self.available_themes:
            names = ", ".join(sorted(self.available_themes))
            raise UsageError(f"--theme {theme}: there is no such theme; there are: {names}")
        self.desk, self._wanted = desk, keymap or {}
        self._first_theme = theme or (remembered if remembered in self.available_themes else None)
        self.labelling = LabelScreen(desk, self._wanted)

    def get_css_variables(self) -> dict[str, str]:
        """Textual's, and ours."""
        variables = super().get_css_variables()
        variables |= own_colours(variables)
        self.theme_variables = variables
        return variables

    def on_mount(self) -> None:
        """Keys, theme, the screen."""
        self.set_keymap(self._wanted)
        if self._first_theme:
            self.theme = self._first_theme
            remember_theme(self._first_theme)
        self.theme_changed_signal.subscribe(self, lambda theme: remember_theme(theme.name))
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


def run_app(
    desk: Desk, *, keymap: dict[str, str], theme: str | None, remembered: str | None = None
) -> str | None:
    """Run until the person quits. Returns why the last thing pressed was not stored, None when it was.

    Raises UsageError for a theme that is not there.
    """
    app = AnnotateApp(desk, keymap=keymap, theme=theme, remembered=remembered)
    app.run()
    return app.labelling.refused
