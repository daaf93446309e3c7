"""The state of the current unit, independent of widgets: active question, phase, working and idle time, and counts."""

import time
from collections.abc import Callable

from annotate.guidelines import label_keys
from annotate.sitting.desk import Desk, Sheet, TimeSpent
from annotate.sitting.events import UnitStatus
from annotate.tui.evidence import Evidence
from annotate.tui.keymap import keys_of, symbol

IDLE_AFTER = 60.0
# Python and SQLite raise errors of their own for numbers with thousands of digits.
LONG = 12
"""A number of digits that no unit's number reaches."""


class Clock:
    """A clock that counts working and idle time since the last call of `take`."""

    def __init__(self, now: Callable[[], float] = time.monotonic, idle_after: float = IDLE_AFTER) -> None:
        self._now, self._idle_after = now, idle_after
        self._last = now()
        self._active = self._idle = 0.0
        self._away = False

    def away(self, is_away: bool) -> None:
        """Record that the terminal lost or gained the focus."""
        self.touch()
        self._away = is_away

    def take(self) -> TimeSpent:
        """Return the times since the last call, in milliseconds."""
        self.touch()
        spent = TimeSpent(round(self._active * 1000), round(self._idle * 1000))
        self._active = self._idle = 0.0
        return spent

    def touch(self) -> None:
        """Count the time until now. This is called when the user presses a key or uses the mouse."""
        now = self._now()
        gap, self._last = now - self._last, now
        # Reading needs no key, so the first minute of a pause is work. A terminal without focus is not read.
        if self._away:
            self._idle += gap
        elif gap > self._idle_after:
            self._active += self._idle_after
            self._idle += gap - self._idle_after
        else:
            self._active += gap


class AtHand:
    """The current unit of one person in a batch, and its state. `go` loads another unit."""

    unit: Sheet

    def __init__(self, desk: Desk, keymap: dict[str, str]) -> None:
        self.desk, self.clock = desk, Clock()
        self.labels = label_keys(desk.task)
        """A map from each question to its labels by key."""
        self.keys = keys_of(desk.task, keymap)
        """A map from each command to its keys."""
        self.active: str | None = None
        """The question that the next label answers, or None if all questions are answered."""
        self.phase = "label"
        """The panel that is shown: 'label', or after a commit 'key' (in training) or 'judge'."""
        self.trying = False
        """Whether a training unit was answered wrongly and its answer is still hidden to allow a second try."""
        self.evidence: Evidence | None = None
        """The cursor if evidence is being marked, otherwise None."""
        self.found_by: tuple[str, int] = ("", 0)
        """The last search in the list, and the position of the unit that was chosen from its results."""
        self._spent: dict[int, TimeSpent] = {}
        self.recount()

    def go(self, position: int) -> None:
        """Load a unit, which may be the current one."""
        # If a unit is left without an event, the time spent on it is added to the next event on that unit.
        if hasattr(self, "unit"):
            self.give_back(self.clock.take())
        else:
            self.clock.take()
        self.unit = self.desk.load(position)
        self.evidence, self.phase, self.trying = None, "label", False
        self.update_phase()

    def update_phase(self) -> None:
        """Set the active question and, if the unit is locked, the phase."""
        self.active = self.unit.state.next_field(self.desk.fields)
        if self.unit.state.locked and self.unit.role != "adjudication":
            self.phase = "key" if self.unit.role == "training" else "judge"
            self.trying = self.phase == "key" and bool(self.wrong())

    @property
    def searched(self) -> str:
        """The search that led to this unit, or an empty string if no search did."""
        # On later units, the search would scroll to a match, and the annotator would not see how the text begins.
        search, position = self.found_by
        return search if position == self.unit.position else ""

    @property
    def status(self) -> UnitStatus:
        """The status of the unit."""
        return self.unit.state.status(self.desk.fields)

    @property
    def due(self) -> bool:
        """Whether the answer key or the judge is shown once this unit is answered."""
        return self.unit.role == "training" or (self.desk.info.reveal and self.unit.role == "unit")

    def wrong(self) -> list[str]:
        """Return the questions of a training unit that were answered wrongly and have no second try yet."""
        state, key = self.unit.state, self.desk.key(self.unit.position)
        return [f for f, v in key.items() if state.answers.get(f) != v and f not in state.revised]

    def label_of(self, character: str | None) -> tuple[str, str] | None:
        """Return the field and the label that a key selects. The active question takes precedence."""
        fields = [self.active, *self.desk.fields] if self.active else self.desk.fields
        for field in fields if character else ():
            value = self.labels[field].get(str(character))
            if value is not None:
                return field, value
        return None

    def unit_number(self, typed: str) -> int | None:
        """Return the number of a unit that the user typed, or None if there is no such unit."""
        number = int(typed) if typed.isdecimal() and len(typed) < LONG else 0
        # The numbers have gaps, because units can be handed over to somebody else.
        return number if number and self.desk.neighbour(number - 1, 1) == number else None

    def symbol(self, command: str, otherwise: str) -> str:
        """Return a command's first key as printed, or `otherwise` if the task uses all keys of the command for labels."""
        return symbol(self.keys[command][0]) if self.keys[command] else otherwise

    def recount(self) -> None:
        """Recompute progress and pace after an event."""
        self.counts, self.pace = self.desk.counts(), self.desk.times()

    def take_time(self) -> TimeSpent:
        """Return the time spent on this unit that is not stored with an event yet."""
        self.give_back(self.clock.take())
        return self._spent.pop(self.unit.position)

    def give_back(self, spent: TimeSpent) -> None:
        """Keep a time for the next event on this unit, for example because a change could not be stored."""
        position = self.unit.position
        before = self._spent.get(position, TimeSpent())
        self._spent[position] = TimeSpent(before.active_ms + spent.active_ms, before.idle_ms + spent.idle_ms)
