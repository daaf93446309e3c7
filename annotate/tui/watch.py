"""`annotate watch`: a read-only screen with the numbers for a batch. The screen is updated when the file changes."""

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from os.path import samestat
from pathlib import Path
from sqlite3 import Connection, ProgrammingError
from sqlite3 import Error as SQLiteError
from typing import Any, ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from annotate.leading.watch import URGENT, look, sections, title
from annotate.store import open_study
from annotate.tui.settings import read_theme
from annotate.tui.untrusted import make_visible
from judge.document.blocks import Section
from judge.document.terminal import section_lines
from judge.errors import AdjudgeError

SHARE = 10
"""The minimum ratio of waiting time to reading time. Reading therefore takes less than 1/SHARE of a processor's time."""
WIDE = 130


class WatchApp(App[None]):
    """An app that shows the numbers for one batch. It reads the numbers again whenever the file has changed."""

    TITLE = "annotate watch"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #top { height: 1; background: $panel; color: $text; padding: 0 1; text-style: bold; }
    #all { height: 1fr; }
    #people { height: 1fr; width: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    #flags { height: 1fr; width: 1fr; padding: 0 1; display: none; border-left: solid $primary-muted; scrollbar-size-vertical: 1; }
    .-wide #flags { display: block; }
    #people Static, #flags Static { height: auto; }
    #keys { height: 1; background: $panel; color: $text; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding(key, "quit", priority=True) for key in ("q", "escape", "ctrl+q", "ctrl+c")
    ]

    class ReadResult(Message):
        """The result of reading the file: the numbers, or the reason why there are none."""

        def __init__(self, document: dict[str, Any] | None, problem: str = "") -> None:
            super().__init__()
            self.document, self.problem = document, problem

    def __init__(self, path: Path, batch: str, every: float) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self._path, self._batch, self._every = path, batch, every
        self._document: dict[str, Any] | None = None
        self._problem = ""
        self._left = threading.Event()
        self._conn: Connection | None = None

    def compose(self) -> ComposeResult:
        """Yield the top line, the sections and the keys."""
        yield Static(f"{self._batch}   reading …", id="top", markup=False)
        with Horizontal(id="all"):
            with VerticalScroll(id="people"):
                yield Static("", id="people-text", markup=False)
            with VerticalScroll(id="flags"):
                yield Static("", id="flags-text", markup=False)
        yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        """Set the theme, and start to watch the file."""
        if (name := read_theme()) in self.available_themes:
            self.theme = str(name)
        self.query_one("#people").focus()
        self.follow()
        self.set_interval(1, self.draw)

    def on_unmount(self) -> None:
        """Stop watching the file."""
        self._left.set()
        # A query over a large batch would keep the program from ending.
        if self._conn is not None:
            # The reading thread may be closing the connection at this moment. Then there is nothing to interrupt.
            with suppress(ProgrammingError):
                self._conn.interrupt()

    def on_resize(self) -> None:
        """Draw the screen again. Only a wide terminal shows the flags beside the other sections."""
        self.call_after_refresh(self.draw)

    @work(thread=True, exclusive=True)
    def follow(self) -> None:
        """Watch the file over a read-only connection, and read the numbers whenever the file has changed."""
        while not self._left.is_set():
            try:
                with open_study(self._path) as store:
                    self._conn = store.conn
                    store.conn.execute("PRAGMA query_only = ON")
                    # The counter changes with each commit by another program. Reading the counter does not read the data.
                    last_version, file = None, self._path.stat()
                    while not self._left.is_set():
                        start = time.monotonic()
                        # A file that was moved away can still be read through its connection, and would be shown forever.
                        if not samestat(file, self._path.stat()):
                            break
                        version = store.conn.execute("PRAGMA data_version").fetchone()[0]
                        if version != last_version:
                            last_version, document = version, look(store, self._batch)
                            self.post_message(self.ReadResult(document))
                        took = time.monotonic() - start
                        self._left.wait(max(self._every, SHARE * took))
                    self._conn = None
            except (AdjudgeError, SQLiteError, OSError) as e:
                self.post_message(self.ReadResult(None, f"cannot be read at this moment: {e}"))
                self._conn = None
                self._left.wait(self._every)

    def on_watch_app_read_result(self, message: ReadResult) -> None:
        """Show the numbers. If the file could not be read, show the previous numbers and the reason."""
        self._document, self._problem = message.document or self._document, message.problem
        self.draw()

    def draw(self) -> None:
        """Draw the screen. This is also done every second, because elapsed times change even if the file does not."""
        keys = self._problem or "q quit   ↑ ↓ PgUp PgDn scroll   nothing is written   labels are not shown"
        self.query_one("#keys", Static).update(Content(make_visible(keys).text))
        if self._document is None:
            return
        at = datetime.now(UTC)
        self.query_one("#top", Static).update(Content(make_visible(title(self._document, at)).text))
        parts = sections(self._document, at)
        wide = self.size.width >= WIDE
        self.query_one("#people-text", Static).update(_content(parts[:-1] if wide else parts))
        self.query_one("#flags-text", Static).update(_content(parts[-1:]))


def _content(parts: list[Section]) -> Content:
    """Return the sections as text, with control characters in people's notes escaped."""
    lines = []
    for part in parts:
        head, *body = section_lines(part)
        lines.append(
            Content.styled(head, "bold $text-warning" if part.key == URGENT else "bold $text-primary")
        )
        lines += [Content(make_visible(line).text) for line in body]
        lines.append(Content(""))
    return Content("\n").join(lines[:-1])


def run_watch(path: Path, batch: str, every: float) -> None:
    """Show the numbers until the lead quits."""
    WatchApp(path, batch, every).run()
