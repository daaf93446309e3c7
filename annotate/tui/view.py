"""How a unit looks: top line, texts, labels, foot. What keys do is in label.py and commands.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from annotate.desk import Desk, Sheet, Spent
from annotate.guidelines import label_keys
from annotate.tui import dialogs, panel
from annotate.tui.clock import Clock
from annotate.tui.evidence import Evidence
from annotate.tui.keymap import COMMANDS, keys_of, symbol
from annotate.tui.panes import Texts
from annotate.tui.unit import UnitText, unit_text
from annotate.tui.words import one_line
from judge.errors import AdjudgeError

T = TypeVar("T")
SMALLEST = (60, 15)
WIDE = 110


class UnitScreen(Screen[None]):
    """Draws a unit; `unit`, `active` and `phase` say where it is."""

    BINDINGS: ClassVar = [Binding(c.keys, c.action, c.short, show=False, id=c.id) for c in COMMANDS]

    def __init__(self, desk: Desk, keymap: dict[str, str], *, highlights: bool = True) -> None:
        super().__init__()
        self.desk, self.clock = desk, Clock()
        self.task_keys = label_keys(desk.task)
        self._keys = keys_of(desk.task, keymap)
        self._spent: dict[int, Spent] = {}
        self._highlights = highlights
        self.counts = desk.counts()
        self._pace = desk.times()
        self.evidence: Evidence | None = None
        self.refused: str | None = None
        """Why the last change was not stored."""
        self._shown_at = 0.0
        self.active: str | None = None
        self.phase = "label"
        """label, or what is shown after a commit: key (training) or judge."""
        self.unit: Sheet
        self._text: UnitText | None = None
        self._columns = 80

    def compose(self) -> ComposeResult:
        """Top line; question and passage; labels; note, message, keys."""
        yield Static("", id="top", markup=False)
        with Vertical(id="middle"):
            with Vertical(id="left"):
                with VerticalScroll(id="head-scroll", can_focus=False):
                    yield Static("", id="head", markup=False)
                yield Texts()
            with VerticalScroll(id="labels-scroll", can_focus=False):
                yield Static("", id="said", markup=False)
                yield Static("", id="labels", markup=False)
        yield Static("", id="note", markup=False)
        yield Static("", id="message", markup=False)
        yield Static("", id="keys", markup=False)
        yield Static("", id="small", markup=False)

    def on_mount(self) -> None:
        """Resume at the first open unit."""
        self._fit(self.app.size)
        self.show(self.desk.next_open() or self.desk.neighbour(0, 1) or 1)

    # Drawing

    @property
    def texts(self) -> Texts:
        """The passage, or the answer and its passages."""
        return self.query_one(Texts)

    @property
    def wide(self) -> bool:
        """Whether the labels stand beside the text."""
        return self._columns >= WIDE

    def on_resize(self, event: events.Resize) -> None:
        """Another layout."""
        self._fit(event.size)

    def _fit(self, size: Size) -> None:
        """The layout for a size, or a word about it."""
        self._columns = size.width
        small = size.width < SMALLEST[0] or size.height < SMALLEST[1]
        self.set_class(small, "-too-small")
        self.set_class(self.wide, "-wide")
        self.query_one("#small", Static).update(
            Content(f"This terminal is {size.width}x{size.height}.\nMake it {SMALLEST[0]}x{SMALLEST[1]} or larger (80x24 is fine).\nNothing is lost. Ctrl+Q quits.")
        )  # fmt: skip
        self.query_one("#keys", Static).update(self._key_line())
        if self._text is not None:
            self.draw()

    def show(self, position: int, message: str = "") -> None:
        """Go to a unit."""
        before = getattr(self, "unit", None)
        if before is not None:
            self._keep_time(before.position)
        else:
            self.clock.take()
        self.unit = self.desk.load(position)
        self.evidence = None
        self.phase = "label"
        self.settle()
        self.draw(top=True)
        self.say(message)

    @property
    def unread(self) -> bool:
        """Whether what is on the screen came up so recently that a key cannot be an answer to it."""
        return time.monotonic() - self._shown_at < dialogs.SETTLE

    def settle(self) -> None:
        """The active question, and what is shown because the unit is locked."""
        self.active = self.unit.state.next_field(self.desk.fields)
        if self.unit.state.locked and self.unit.role != "adjudication":
            self.phase = "key" if self.unit.role == "training" else "judge"

    def draw(self, *, top: bool = False) -> None:
        """Everything that depends on the unit."""
        picker = self.evidence.picker if self.evidence else None
        text = self._text = unit_text(self.desk.task, self.unit, highlights=self._highlights, picker=picker)
        self.query_one("#head", Static).update(text.head)
        self.texts.show(text, wide=self.wide, top=top)
        if top:
            self.query_one("#head-scroll").scroll_to(y=0, animate=False)
            self.query_one("#labels-scroll").scroll_to(y=0, animate=False)
        self.draw_labels()
        self._draw_top()

    def draw_labels(self) -> None:
        task, unit = self.desk.task, self.unit
        said: Content | None = None
        if self.phase == "key":
            said = panel.feedback_panel(self.desk.key(unit.position), unit, task)
        elif self.phase == "judge":
            said = panel.judge_panel(self.desk.judge(unit.position), unit)
        elif unit.role == "adjudication":
            said = panel.sources_panel(self.desk.sources(unit.position), self.desk.fields)
        box = self.query_one("#said", Static)
        box.set_class(said is None, "empty")
        box.update(said + "\n" if said is not None else "")
        self.query_one("#labels", Static).update(
            panel.label_panel(task, unit, self.active, wide=self.wide, columns=self._columns - 3)
        )
        note = self.query_one("#note", Static)
        words = [f"! {one_line(unit.state.flag, 120)}"] if unit.state.flag else []
        words += [f"+ {one_line(unit.state.note, 200)}"] if unit.state.note else []
        note.set_class(not words, "empty")
        note.update(Content("   ".join(words)))

    def _draw_top(self) -> None:
        info, unit, total = self.desk.info, self.unit, self.desk.total
        done = self.counts["done"]
        share = done / total if total else 1.0
        bar = "█" * round(share * 12)
        state = unit.state.status(self.desk.fields)
        mark = {"done": " ✓", "skipped": " - skipped", "open": ""}[str(state)]
        role = {"training": "  training", "adjudication": "  adjudication"}.get(unit.role, "")
        pace, left = "", ""
        active, n = self._pace
        if n >= 3 and active:
            per_hour = n * 3_600_000 / active
            pace = f"  {per_hour:.0f}/h"
            minutes = (total - done) / per_hour * 60
            if done < total:
                left = f"  {minutes:.0f} min left" if minutes < 120 else f"  {minutes / 60:.0f} h left"
        where = f"{info.batch} · {self.desk.seat.person}  {unit.position}/{total}{mark}{role}"
        self.query_one("#top", Static).update(
            Content.assemble(
                (where, "bold"), f"   {bar}", ("░" * (12 - len(bar)), "dim"), f" {done} done{pace}{left}"
            )
        )

    def _key_line(self) -> Content:
        """As many keys as fit, the most wanted first."""
        hints: list[Content] = []
        room = self._columns - 2
        for command in sorted(COMMANDS, key=lambda c: c.id not in ("help", "undo", "skip")):
            keys = self._keys[command.id]
            if not command.short or not keys:
                continue
            hint = Content.assemble((symbol(keys[0]), "bold $text"), f" {command.short}")
            if room < hint.cell_length + 9 + 2:
                break
            room -= hint.cell_length + 2
            hints.append(hint)
        return Content("  ").join([*hints, Content.assemble(("^P", "bold $text"), " menu")])

    def say(self, text: str, *, error: bool = False) -> None:
        """One line at the foot."""
        line = self.query_one("#message", Static)
        line.set_class(error, "error")
        if not text and self._highlights and self._text is not None and self._text.matches:
            text = "highlights show equal words; they do not by themselves mean relevance"
        line.update(Content(one_line(text, 300)))

    # Committing

    def attempt(self, change: Callable[[], T]) -> T | None:
        """Do something that commits; an error is told, and nothing on the screen pretends it was done."""
        try:
            done = change()
        except AdjudgeError as e:
            self.refused = str(e)
            self.say(f"not stored: {e}", error=True)
            self.app.bell()
            return None
        self.refused = None
        return done

    def _keep_time(self, position: int) -> None:
        active, idle = self.clock.take()
        before = self._spent.get(position, Spent())
        self._spent[position] = Spent(before.active_ms + active, before.idle_ms + idle)

    def take_time(self) -> Spent:
        """The times on this unit that no event has yet."""
        self._keep_time(self.unit.position)
        return self._spent.pop(self.unit.position)

    def recount(self) -> None:
        """Progress and pace, after an event."""
        self.counts, self._pace = self.desk.counts(), self.desk.times()
        self._draw_top()
