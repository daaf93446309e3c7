"""The display of a unit: the top line, the texts, the labels, and the lines at the bottom. `label.py` handles the keys."""

import re
from time import monotonic

from textual.app import App, ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from annotate.tui import label_panel
from annotate.tui.at_hand import AtHand
from annotate.tui.keymap import COMMANDS, symbol
from annotate.tui.panes import READABLE_COLUMNS, Texts, draw_if_changed
from annotate.tui.rows import Pane, ShareRows, rows_of, share
from annotate.tui.unit import UnitText, unit_text
from annotate.tui.untrusted import make_one_line

# Hebrew, Arabic, Syriac, Thaana and N'Ko with their presentation forms. The browser's page uses xterm.js, which has no
# bidirectional layout.
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
SMALLEST = (60, 15)
WIDE = 110
BESIDE = 44
"""The minimum width, in columns, of labels beside the text. The labels also get the columns that the texts do not need."""
PANES = {"head": "question", "labels": "labels"}


class UnitView:
    """A view that draws the current unit in the widgets that `compose` yields."""

    def __init__(self, hand: AtHand) -> None:
        self._hand = hand
        self.text: UnitText | None = None
        """The unit's texts as they were last drawn."""
        self.pane: Pane = "text"
        """The pane that the arrows scroll."""
        self.highlights = True
        self.raw = False
        """Whether texts are shown as stored, without the layout of tables and code."""
        self.small = False
        """Whether the terminal is too small to show anything."""
        self._size = Size(80, 24)
        self._painted: float | None = None
        self._paints = 0
        self._message = ""
        self._more: list[Pane] = []
        names = ("top", "head", "said", "labels", "note", "message", "keys", "small")
        self._parts = {name: Static("", id=name, markup=False) for name in names}
        part = self._parts
        self.texts = Texts()
        """The widget with the passage, or with the answer and its passages."""
        self.scrolls = {
            "head": VerticalScroll(part["head"], id="head-scroll", can_focus=False),
            "labels": VerticalScroll(part["said"], part["labels"], id="labels-scroll", can_focus=False),
        }

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom: progress, question and texts, labels, note, message and keys."""
        yield self._parts["top"]
        left = Vertical(self.scrolls["head"], self.texts, id="left")
        yield Vertical(left, self.scrolls["labels"], id="middle")
        yield from (self._parts[name] for name in ("note", "message", "keys", "small"))

    @property
    def app(self) -> App[object]:
        """The app that shows this view."""
        return self.texts.app

    @property
    def wide(self) -> bool:
        """Whether the labels are beside the text."""
        return self._size.width >= WIDE

    def fit(self, size: Size) -> None:
        """Lay out the screen for a terminal of this size, or show that the terminal is too small."""
        self._size = size
        self.small = size.width < SMALLEST[0] or size.height < SMALLEST[1]
        screen = self.texts.screen
        screen.set_class(self.small, "-too-small")
        screen.set_class(self.wide, "-wide")
        self._parts["small"].update(
            Content(f"This terminal is {size.width}x{size.height}.\nMake it {SMALLEST[0]}x{SMALLEST[1]} or larger (80x24 is fine).\nNothing is lost. Ctrl+Q quits.")
        )  # fmt: skip
        self._parts["keys"].update(self._key_line())
        if self.text is not None:
            self.draw()

    def show(self) -> None:
        """Draw a new unit, scrolled to its beginning."""
        self.pane = "text"
        self.draw(top=True)
        self.paint()

    def paint(self) -> None:
        """Record the time at which the new content appears on the screen, which is after the next refresh."""
        self._painted = None
        self._paints += 1
        self.texts.screen.call_after_refresh(self._is_painted, self._paints)

    def _is_painted(self, number: int) -> None:
        # The callback of an earlier paint may come after the next unit was drawn.
        if number == self._paints and self._painted is None:
            self._painted = monotonic()

    def since_paint(self, at: float) -> float | None:
        """Return the seconds from the time when the content appeared on the screen to `at`.

        Return None if the content had not appeared by then.
        """
        return None if self._painted is None or at < self._painted else at - self._painted

    def draw(self, *, top: bool = False) -> None:
        """Draw everything that depends on the unit. If `top` is true, scroll all panes to their beginning."""
        hand = self._hand
        picker = hand.evidence.picker if hand.evidence else None
        text = self.text = unit_text(
            hand.desk.task, hand.unit, self._text_columns,
            highlights=self.highlights, picker=picker, searched=hand.searched,
        )  # fmt: skip
        draw_if_changed(self._parts["head"], text.head)
        self.texts.show(text, wide=self.wide, top=top)
        if top:
            for pane in self.scrolls.values():
                pane.scroll_to(y=0, animate=False)
        self.draw_labels()
        self.draw_top()
        if top and text.first is not None and hand.searched and text.hits:
            self.texts.screen.call_after_refresh(self._turn_to_hit)

    def _turn_to_hit(self) -> None:
        if self.text is not None and self.text.first is not None:
            self.texts.turn_to(*self.text.first)

    def unveil(self) -> None:
        """Draw the labels, and scroll to their top, where the answer key or the judge's label now appears."""
        self.draw_labels()
        self.paint()
        self.scrolls["labels"].scroll_to(y=0, animate=False)

    def draw_labels(self) -> None:
        """Draw the labels of others, and the user's flag and note. Then divide the rows between the parts of the screen."""
        state, others = self._hand.unit.state, self._labels_of_others()
        others = Content("") if others is None else others + "\n"
        self._fill("said", others)
        words = [f"! {make_one_line(state.flag, 120)}"] if state.flag else []
        words += [f"+ {make_one_line(state.note, 200)}"] if state.note else []
        note = Content("   ".join(words))
        self._fill("note", note)
        self._share(others, note)

    def _fill(self, part: str, content: Content) -> None:
        self._parts[part].set_class(not content.plain, "empty")
        draw_if_changed(self._parts[part], content)

    def _labels_of_others(self) -> Content | None:
        """Return the labels of others, or None if there are none to show.

        They are the answer key of a training unit, the judge's labels or, in an adjudication, the labels of people who
        disagree.
        """
        hand, desk, unit = self._hand, self._hand.desk, self._hand.unit
        if hand.phase == "key":
            reasons = None if hand.trying else desk.reasons(unit.position)
            return label_panel.feedback_panel(desk.key(unit.position), unit, desk.task, reasons)
        if hand.phase == "judge":
            return label_panel.judge_panel(desk.judge(unit.position), unit)
        if unit.role == "adjudication":
            texts = {t.name: t.raw for t in self.text.texts} if self.text is not None else {}
            return label_panel.sources_panel(desk.sources(unit.position), desk.fields, texts)
        return None

    def _label_columns(self, two: bool) -> int:
        """Return the width of the label pane in columns. `two` is true if the text is shown in two panes."""
        # Lines of text are at most READABLE_COLUMNS long, so a wide terminal has columns left for the labels.
        return max(BESIDE, self._size.width - (2 if two else 1) * (READABLE_COLUMNS + 5))

    def _text_columns(self, two: bool) -> int:
        """Return the line width for tables and code, in columns, or 0 if texts are shown as stored.

        If `two` is true, the text is shown in two panes, and the width is that of the narrower pane.
        """
        if self.raw:
            return 0
        # The subtracted columns are the padding in app.tcss and the scroll bar.
        if not self.wide:
            return self._size.width - 3
        left = self._size.width - self._label_columns(two)
        return min(left // 2 if two else left, READABLE_COLUMNS + 5) - 5

    @property
    def is_laid_out(self) -> bool:
        """Whether a table or code is displayed differently from the stored text."""
        return self.text is not None and any(t.shown.added for t in self.text.texts)

    def switch_raw(self) -> None:
        """Switch between stored and laid-out texts, and keep the same part of the text at the top."""
        self.raw, place = not self.raw, self.texts.place()
        self.draw()
        self.texts.call_after_refresh(self.texts.scroll_to_place, place)

    def _share(self, others: Content, note: Content) -> None:
        """Divide the rows between question, text and labels, and record which panes do not fit."""
        # Fixed shares would hide the end of a long claim at 80x24, but the text to be judged must be reachable.
        hand, text, columns = self._hand, self.text, self._size.width
        if text is None:
            return
        beside = self._label_columns(self.texts.two)
        self.scrolls["labels"].styles.width = beside if self.wide else "1fr"
        width = columns - (beside + 5 if self.wide else 3)
        feet = 3 + (min(rows_of(note, columns - 2, 3), 3) if note.plain else 0)
        total = self._size.height - feet
        room = beside - 6 if self.wide else width
        # The added rows are the padding in app.tcss, or the rule.
        head = rows_of(text.head, width, total) + (2 if self.wide else 0)
        body = text.aside if self.texts.aside and text.aside else text.body
        body_rows = rows_of(body.rstrip(), min(width, READABLE_COLUMNS), total) + 1
        above = rows_of(others, room, total) if others.plain else 0
        above += 2 if self.wide else 1
        # If a text needs more rows, labels are shown without their meanings, and Tab shows the meanings.
        panel, labels, got = Content(""), 0, ShareRows(head, 0)
        for meanings, spaced in (
            ((True, True), (True, False)) if self.wide else ((True, False), (False, False))
        ):
            panel = label_panel.label_panel(
                hand.desk.task, hand.unit, hand.active, columns=room, meanings=meanings, spaced=spaced
            )
            labels = rows_of(panel, room, total) + above
            got = share(total, head, body_rows, 0 if self.wide else labels, self.pane)
            got = got._replace(labels=total) if self.wide else got
            if labels <= got.labels or self.pane == "labels":
                break
        draw_if_changed(self._parts["labels"], panel)
        self._more = ["head"] if got.head < head else []
        hidden = not meanings and any(map(label_panel.has_meanings, hand.desk.task.spec.questions))
        self._more += ["labels"] if got.labels < labels or hidden else []
        for name, pane in self.scrolls.items():
            # This is a maximum, so that a short claim leaves rows for the text.
            pane.styles.max_height = getattr(got, name)
        if self.pane != "text" and self.pane not in self._more:
            self._more.append(self.pane)
        self._name_panes()

    def _name_panes(self) -> None:
        chosen = "" if self.pane == "text" else PANES[self.pane]
        following, aside = self._next_pane()
        other = self.texts.name_of(aside) if following == "text" else PANES[following]
        self.texts.lay_out(chosen, other if self._more else "")
        for name, pane in self.scrolls.items():
            pane.set_class(self.pane == name, "chosen")

    def turn_pane(self) -> bool:
        """Select the next pane for scrolling with the arrow keys. Return whether there is another pane."""
        before = (self.pane, self.texts.aside)
        self.pane, self.texts.aside = self._next_pane()
        self.draw_labels()
        return (self.pane, self.texts.aside) != before

    def _next_pane(self) -> tuple[Pane, bool]:
        """Return the pane that Tab selects next, and whether it is the passages beside an answer.

        These passages belong to the pane `text`.
        """
        ways: list[tuple[Pane, bool]] = [("text", False)]
        if self.texts.two:
            ways.append(("text", True))
        ways += [(pane, self.texts.aside) for pane in self._more]
        here = (self.pane, self.texts.aside and self.texts.two)
        at = next((i for i, way in enumerate(ways) if way == here or way[0] == self.pane != "text"), 0)
        return ways[(at + 1) % len(ways)]

    def scroll(self, lines: int) -> None:
        """Scroll the selected pane, down if `lines` is positive and up if it is negative.

        If the absolute value is 1, scroll by one line; if it is 2 to 10, by one page. Otherwise, scroll to the end or
        the beginning.
        """
        box = self.texts.box if self.pane == "text" else self.scrolls[self.pane]
        if abs(lines) > 10:
            # Scroll immediately, because the next key in the queue starts from the new position.
            box.scroll_to(y=box.max_scroll_y if lines > 0 else 0, animate=False, immediate=True)
            return
        # Two rows of the previous page stay visible, so that the reader can find the line again.
        step = lines if abs(lines) == 1 else (max(box.size.height - 2, 1) * (1 if lines > 0 else -1))
        box.scroll_relative(y=step, animate=False)

    def draw_top(self) -> None:
        """Draw the progress line."""
        hand, unit, desk = self._hand, self._hand.unit, self._hand.desk
        done, total = hand.counts["done"], desk.total
        share = done / total if total else 1.0
        bar = "█" * round(share * 12)
        mark = {"done": " ✓", "skipped": " - skipped", "open": ""}[str(hand.status)]
        role = {"training": "  training", "adjudication": "  adjudication"}.get(unit.role, "")
        pace, left = "", ""
        active, n = hand.pace
        # The pace over one or two units would not predict anything.
        if n >= 3 and active:
            per_hour = n * 3_600_000 / active
            pace = f"  {per_hour:.0f}/h"
            minutes = max((total - done) / per_hour * 60, 1)
            if done < total:
                left = f"  {minutes:.0f} min left" if minutes < 120 else f"  {minutes / 60:.0f} h left"
        where = f"{desk.info.batch} · {desk.seat.person}  {unit.position}/{total}{mark}{role}"
        text = f" {done} done{pace}{left}"
        line = Content.assemble((where, "bold"), f"   {bar}", ("░" * (12 - len(bar)), "dim"), text)
        draw_if_changed(self._parts["top"], line, layout=False)

    def _key_line(self) -> Content:
        """Return as many key hints as fit, the most useful ones first. The hints for the menu and for quitting always fit."""
        last = [_hint("^P", "menu"), _hint("^Q", "quit")]
        hints: list[Content] = []
        room = self._size.width - 2 - sum(hint.cell_length + 2 for hint in last)
        for command in sorted(COMMANDS, key=lambda c: c.id not in ("help", "undo", "skip")):
            keys = self._hand.keys[command.id]
            if not command.short or not keys:
                continue
            hint = _hint(symbol(keys[0]), command.short)
            if room < hint.cell_length:
                break
            room -= hint.cell_length + 2
            hints.append(hint)
        return Content("  ").join([*hints, *last])

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a message in the line at the bottom."""
        line = self._parts["message"]
        line.set_class(error, "error")
        if not text and self.app.is_web and any(map(_RIGHT_TO_LEFT.search, self._hand.unit.texts())):
            text = "this browser screen shows right-to-left text in the wrong order: use Label Studio, or a terminal that supports bidirectional text"
            line.set_class(True, "error")
        # A rule for annotators from MIRAGE: a highlighted answer span does not make a passage relevant.
        if not text and self.highlights and self.text is not None and self.text.matches:
            text = "highlights mark matching words; a match does not by itself mean relevance"
        self._message = make_one_line(text, 300)
        draw_if_changed(line, Content(self._message), layout=False)

    def add(self, text: str) -> None:
        """Append a text to the message at the bottom, in place of any text that was appended earlier."""
        before = self._message.partition(" · ")[0]
        draw_if_changed(self._parts["message"], Content(f"{before} · {text}"), layout=False)
        self._message = before


def _hint(key: str, text: str) -> Content:
    return Content.assemble((key, "bold $text"), f" {text}")
