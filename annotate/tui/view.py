"""How a unit looks: top line, texts, labels, foot; when it was painted. What keys do is in label.py."""

from __future__ import annotations

from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from annotate.guidelines import label_keys
from annotate.sitting.desk import Desk, Sheet, TimeSpent
from annotate.tui import label_panel
from annotate.tui.clock import Clock
from annotate.tui.evidence import Evidence
from annotate.tui.heights import Pane, rows_of, share
from annotate.tui.keymap import COMMANDS, keys_of, symbol
from annotate.tui.panes import Texts
from annotate.tui.unit import UnitText, unit_text
from annotate.tui.untrusted import one_line

SMALLEST = (60, 15)
WIDE = 110
BESIDE = 44
"""Columns of the labels where they stand beside the text; as in app.tcss."""
PANES = {"head": "question", "labels": "labels"}


class UnitScreen(Screen[None]):
    """Draws a unit; `unit`, `active` and `phase` say where it is."""

    def __init__(self, desk: Desk, keymap: dict[str, str], *, highlights: bool = True) -> None:
        super().__init__()
        self.desk, self.clock = desk, Clock()
        self.task_keys = label_keys(desk.task)
        self.keys = keys_of(desk.task, keymap)
        self._spent: dict[int, TimeSpent] = {}
        self.highlights = highlights
        self.counts = desk.counts()
        self._pace = desk.times()
        self.evidence: Evidence | None = None
        self.active: str | None = None
        self.phase = "label"
        """label, or what is shown after a commit: key (training) or judge."""
        self.trying = False
        """Whether a training unit is wrong and its answer still hidden, for a second try."""
        self.searched = ""
        """What the list was last searched for."""
        self.pane: Pane = "text"
        """What the arrows scroll."""
        self.unit: Sheet
        self._painted: float | None = None
        self._paints = 0
        self._said = ""
        self.text: UnitText | None = None
        self._columns = 80
        self._more: list[Pane] = []

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

    def begin(self) -> None:
        """Resume where work stopped: a second layer that is missing, else the first open unit."""
        self._fit(self.app.size)
        self.show(self.desk.second_open() or self.desk.next_open() or self.desk.neighbour(0, 1) or 1)

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
        if self.text is not None:
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
        self.phase, self.trying, self.pane = "label", False, "text"
        self.settle()
        self.draw(top=True)
        self.paint()
        self.say(message)

    def paint(self) -> None:
        """From here on something new is to be read; `painted` is None until it is on the screen."""
        self._painted = None
        self._paints += 1
        self.call_after_refresh(self._is_painted, self._paints)

    def _is_painted(self, number: int) -> None:
        if number == self._paints and self._painted is None:
            self._painted = monotonic()

    def since_paint(self, at: float) -> float | None:
        """Seconds from the paint to `at`; None for what was typed before it."""
        return None if self._painted is None or at < self._painted else at - self._painted

    def settle(self) -> None:
        """The active question, and what is shown because the unit is locked."""
        self.active = self.unit.state.next_field(self.desk.fields)
        if self.unit.state.locked and self.unit.role != "adjudication":
            self.phase = "key" if self.unit.role == "training" else "judge"
            self.trying = self.phase == "key" and bool(self.wrong())

    def wrong(self) -> list[str]:
        """The questions of a training unit that were answered wrong and have had no second try."""
        state, key = self.unit.state, self.desk.key(self.unit.position)
        return [f for f, v in key.items() if state.answers.get(f) != v and f not in state.revised]

    def draw(self, *, top: bool = False) -> None:
        """Everything that depends on the unit."""
        picker = self.evidence.picker if self.evidence else None
        text = self.text = unit_text(
            self.desk.task, self.unit, highlights=self.highlights, picker=picker, searched=self.searched
        )
        self.query_one("#head", Static).update(text.head)
        self.texts.show(text, wide=self.wide, top=top)
        if top:
            self.query_one("#head-scroll").scroll_to(y=0, animate=False)
            self.query_one("#labels-scroll").scroll_to(y=0, animate=False)
        self.draw_labels()
        self._draw_top()
        if top and text.first is not None and self.searched and text.hits:
            self.call_after_refresh(self._turn_to_hit)

    def _turn_to_hit(self) -> None:
        if self.text is not None and self.text.first is not None:
            self.texts.turn_to(*self.text.first)

    def draw_labels(self) -> None:
        """What was shown or said, the labels, the note; then the rows that each part gets."""
        task, unit = self.desk.task, self.unit
        said: Content | None = None
        if self.phase == "key":
            key = self.desk.key(unit.position)
            said = (
                label_panel.try_panel(key, unit, task)
                if self.trying
                else label_panel.feedback_panel(key, unit, task, self.desk.reasons(unit.position))
            )
        elif self.phase == "judge":
            said = label_panel.judge_panel(self.desk.judge(unit.position), unit)
        elif unit.role == "adjudication":
            texts = {t.name: t.raw for t in self.text.texts} if self.text is not None else {}
            said = label_panel.sources_panel(self.desk.sources(unit.position), self.desk.fields, texts)
        box = self.query_one("#said", Static)
        box.set_class(said is None, "empty")
        box.update(said + "\n" if said is not None else "")
        labels = label_panel.label_panel(task, unit, self.active, wide=self.wide, columns=self._columns - 3)
        self.query_one("#labels", Static).update(labels)
        note = self.query_one("#note", Static)
        words = [f"! {one_line(unit.state.flag, 120)}"] if unit.state.flag else []
        words += [f"+ {one_line(unit.state.note, 200)}"] if unit.state.note else []
        note.set_class(not words, "empty")
        note.update(Content("   ".join(words)))
        below = [said + "\n", labels] if said is not None else [labels]
        self._share(below, Content("   ".join(words)))

    def _share(self, below: list[Content], note: Content) -> None:
        """Rows for question, text and labels; the panes that have more than they show."""
        text, width = self.text, self._columns - (BESIDE + 5 if self.wide else 3)
        if text is None:
            return
        feet = 3 + (min(rows_of(note, self._columns - 2, 3), 3) if note.plain else 0)
        total = self.app.size.height - feet
        room = BESIDE - 6 if self.wide else width
        head, labels = rows_of(text.head, width, total), sum(rows_of(c, room, total) for c in below) + 1
        head, labels = (head + 2, labels + 1) if self.wide else (head, labels)  # what app.tcss pads
        body = rows_of(text.aside if self.texts.aside and text.aside else text.body, width, total) + 1
        got = share(total, head, body, 0 if self.wide else labels, self.pane)
        self._more = ["head"] if got.head < head else []
        if not self.wide:
            self._more += ["labels"] if got.labels < labels else []
        elif labels > total:
            self._more += ["labels"]
        self.query_one("#head-scroll").styles.max_height = got.head
        self.query_one("#labels-scroll").styles.max_height = total if self.wide else got.labels
        if self.pane != "text" and self.pane not in self._more:
            self._more.append(self.pane)
        self._name_panes()

    def _name_panes(self) -> None:
        chosen = "" if self.pane == "text" else PANES[self.pane]
        following, aside = self.next_pane()
        other = self.texts.name_of(aside) if following == "text" else PANES[following]
        self.texts.lay_out(chosen, other if self._more else "")
        for pane in ("head", "labels"):
            self.query_one(f"#{pane}-scroll").set_class(self.pane == pane, "chosen")

    def next_pane(self) -> tuple[Pane, bool]:
        """What Tab leads to, and whether it is the passages beside an answer."""
        ways: list[tuple[Pane, bool]] = [("text", False)]
        if self.texts.two:
            ways.append(("text", True))
        ways += [(pane, self.texts.aside) for pane in self._more]
        here = (self.pane, self.texts.aside and self.texts.two)
        at = next((i for i, way in enumerate(ways) if way == here or way[0] == self.pane != "text"), 0)
        return ways[(at + 1) % len(ways)]

    def box(self) -> VerticalScroll:
        """What the arrows scroll."""
        return (
            self.texts.box if self.pane == "text" else self.query_one(f"#{self.pane}-scroll", VerticalScroll)
        )

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
            keys = self.keys[command.id]
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
        if not text and self.highlights and self.text is not None and self.text.matches:
            text = "highlights show equal words; they do not by themselves mean relevance"
        self._said = one_line(text, 300)
        line.update(Content(self._said))

    def add(self, text: str) -> None:
        """More to the line at the foot: what was typed behind a refusal and did nothing."""
        before = self._said.partition(" · ")[0]
        self.query_one("#message", Static).update(Content(f"{before} · {text}"))
        self._said = before

    def _keep_time(self, position: int) -> None:
        active, idle, _ = self.clock.take()
        before = self._spent.get(position, TimeSpent())
        self._spent[position] = TimeSpent(before.active_ms + active, before.idle_ms + idle)

    def take_time(self) -> TimeSpent:
        """The times on this unit that no event has yet."""
        self._keep_time(self.unit.position)
        return self._spent.pop(self.unit.position)

    def give_back(self, position: int, spent: TimeSpent) -> None:
        """What was taken for something that was not stored."""
        now = self._spent.get(position, TimeSpent())
        self._spent[position] = TimeSpent(now.active_ms + spent.active_ms, now.idle_ms + spent.idle_ms)

    def recount(self) -> None:
        """Progress and pace, after an event."""
        self.counts, self._pace = self.desk.counts(), self.desk.times()
        self._draw_top()
