"""The unit at hand and how far one is with it: active question, what is shown, times, counts. Knows no widget.

Working time and idle time of a unit are told apart.
"""

import time
from collections.abc import Callable

from annotate.guidelines import label_keys
from annotate.sitting.desk import Desk, Sheet, TimeSpent
from annotate.sitting.events import UnitStatus
from annotate.tui.evidence import Evidence
from annotate.tui.keymap import keys_of, symbol

IDLE_AFTER = 60.0


class Clock:
    """Counts since the last `take`: a pause longer than a minute, or a terminal without focus, is idle."""

    def __init__(self, now: Callable[[], float] = time.monotonic, idle_after: float = IDLE_AFTER) -> None:
        self._now, self._idle_after = now, idle_after
        self._last = now()
        self._active = self._idle = 0.0
        self._away = False

    def touch(self) -> None:
        """Something was pressed."""
        self._count()

    def away(self, is_away: bool) -> None:
        """The terminal lost or got the focus."""
        self._count()
        self._away = is_away

    def take(self) -> TimeSpent:
        """The times since the last call, in milliseconds."""
        self._count()
        spent = TimeSpent(round(self._active * 1000), round(self._idle * 1000))
        self._active = self._idle = 0.0
        return spent

    def _count(self) -> None:
        now = self._now()
        gap, self._last = now - self._last, now
        if self._away:
            self._idle += gap
        elif gap > self._idle_after:
            self._active += self._idle_after
            self._idle += gap - self._idle_after
        else:
            self._active += gap


class AtHand:
    """Where one person is in a batch; `go` leads to another unit."""

    unit: Sheet

    def __init__(self, desk: Desk, keymap: dict[str, str]) -> None:
        self.desk, self.clock = desk, Clock()
        self.labels = label_keys(desk.task)
        """Question -> key -> label."""
        self.keys = keys_of(desk.task, keymap)
        """Command -> keys."""
        self.active: str | None = None
        """The question that a label answers first; None when all are answered."""
        self.phase = "label"
        """label, or what is shown after a commit: key (training) or judge."""
        self.trying = False
        """Whether a training unit is wrong and its answer still hidden, for a second try."""
        self.evidence: Evidence | None = None
        """The cursor, while evidence is marked."""
        self.searched = ""
        """What the list was last searched for."""
        self._spent: dict[int, TimeSpent] = {}
        self.recount()

    def go(self, position: int) -> None:
        """Another unit, or the same one anew."""
        if hasattr(self, "unit"):
            self.give_back(self.clock.take())
        else:
            self.clock.take()
        self.unit = self.desk.load(position)
        self.evidence, self.phase, self.trying = None, "label", False
        self.settle()

    def settle(self) -> None:
        """The active question, and what is shown because the unit is locked."""
        self.active = self.unit.state.next_field(self.desk.fields)
        if self.unit.state.locked and self.unit.role != "adjudication":
            self.phase = "key" if self.unit.role == "training" else "judge"
            self.trying = self.phase == "key" and bool(self.wrong())

    @property
    def status(self) -> UnitStatus:
        """How the unit stands."""
        return self.unit.state.status(self.desk.fields)

    @property
    def due(self) -> bool:
        """Whether something is shown once this unit is answered."""
        return self.unit.role == "training" or (self.desk.info.reveal and self.unit.role == "unit")

    def wrong(self) -> list[str]:
        """The questions of a training unit that were answered wrong and have had no second try."""
        state, key = self.unit.state, self.desk.key(self.unit.position)
        return [f for f, v in key.items() if state.answers.get(f) != v and f not in state.revised]

    def label_of(self, character: str | None) -> tuple[str, str] | None:
        """The question and the label that a key means; the active question comes first."""
        fields = [self.active, *self.desk.fields] if self.active else self.desk.fields
        for field in fields if character else ():
            value = self.labels[field].get(str(character))
            if value is not None:
                return field, value
        return None

    def symbol(self, command: str, otherwise: str) -> str:
        """The first key of a command as it is printed; `otherwise` where labels have taken all its keys."""
        return symbol(self.keys[command][0]) if self.keys[command] else otherwise

    def recount(self) -> None:
        """Progress and pace, after an event."""
        self.counts, self.pace = self.desk.counts(), self.desk.times()

    def take_time(self) -> TimeSpent:
        """The times on this unit that no event has yet."""
        self.give_back(self.clock.take())
        return self._spent.pop(self.unit.position)

    def give_back(self, spent: TimeSpent) -> None:
        """Keep times for the next event on this unit: also what was taken for something that was not stored."""
        position = self.unit.position
        before = self._spent.get(position, TimeSpent())
        self._spent[position] = TimeSpent(before.active_ms + spent.active_ms, before.idle_ms + spent.idle_ms)
