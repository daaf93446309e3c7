"""The state of the current unit, without widgets: the active question, the phase, working and idle time, and counts."""

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
"""A number of digits that is too large for the number of a unit."""


class Clock:
    """A clock that counts working and idle time since the last call of `take`."""

    def __init__(self, now: Callable[[], float] = time.monotonic, idle_after: float = IDLE_AFTER) -> None:
        self._now, self._idle_after = now, idle_after
        self._last = now()
        self._active = self._idle = 0.0
        self._away = False

    def away(self, is_away: bool) -> None:
        """Record that the terminal has lost the focus (if `is_away` is true) or regained it."""
        self.touch()
        self._away = is_away

    def take(self) -> TimeSpent:
        """Return the working and idle time since the last call, in milliseconds."""
        self.touch()
        spent = TimeSpent(round(self._active * 1000), round(self._idle * 1000))
        self._active = self._idle = 0.0
        return spent

    def touch(self) -> None:
        """Add the time since the last event to the working or idle time. Called when the user presses a key or uses the mouse."""
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
    """The unit that one annotator is labelling, and its state. `go` loads another unit."""

    unit: Sheet

    def __init__(self, desk: Desk, keymap: dict[str, str]) -> None:
        self.desk, self.clock = desk, Clock()
        self.labels = label_keys(desk.task)
        """A map from each question to a map from keys to labels."""
        self.keys = keys_of(desk.task, keymap)
        """A map from each command to its keys."""
        self.active: str | None = None
        """The question that the next label answers, or None if all questions are answered."""
        self.phase = "label"
        """The panel that is shown: 'label', or, after a commit, 'key' (the answer key, in training) or 'judge'."""
        self.trying = False
        """Whether the answer key is still hidden to allow a second try, because a training unit was answered wrongly."""
        self.evidence: Evidence | None = None
        """The evidence cursor while evidence is being marked, otherwise None."""
        self.found_by: tuple[str, int] = ("", 0)
        """The last search in the list of units, and the position of the unit that was chosen from the search results."""
        self._spent: dict[int, TimeSpent] = {}
        self.recount()

    def go(self, position: int) -> None:
        """Load the unit at this position, which may be the current unit."""
        # If a unit is left without an event, the time spent on it is added to the next event on that unit.
        if hasattr(self, "unit"):
            self.give_back(self.clock.take())
        else:
            self.clock.take()
        self.unit = self.desk.load(position)
        self.evidence, self.phase, self.trying = None, "label", False
        self.update_phase()

    def update_phase(self) -> None:
        """Update the active question and, if the first labels are locked, the phase."""
        self.active = self.unit.state.next_field(self.desk.fields)
        if self.unit.state.locked and self.unit.role != "adjudication":
            self.phase = "key" if self.unit.role == "training" else "judge"
            self.trying = self.phase == "key" and bool(self.wrong())

    @property
    def searched(self) -> str:
        """The search text by which the user found this unit, or an empty string if the unit was not found by a search."""
        # On later units, the search would scroll to a match, and the annotator would not see how the text begins.
        search, position = self.found_by
        return search if position == self.unit.position else ""

    @property
    def status(self) -> UnitStatus:
        """The status of the unit."""
        return self.unit.state.status(self.desk.fields)

    @property
    def due(self) -> bool:
        """Whether the answer key or the judge's label is shown as soon as this unit is answered."""
        return self.unit.role == "training" or (self.desk.info.reveal and self.unit.role == "unit")

    def wrong(self) -> list[str]:
        """Return the questions of a training unit that were answered wrongly and have not been answered a second time."""
        state, key = self.unit.state, self.desk.key(self.unit.position)
        return [f for f, v in key.items() if state.answers.get(f) != v and f not in state.revised]

    def label_of(self, character: str | None) -> tuple[str, str] | None:
        """Return the field and the label that a key selects, or None. The active question takes precedence."""
        fields = [self.active, *self.desk.fields] if self.active else self.desk.fields
        for field in fields if character else ():
            value = self.labels[field].get(str(character))
            if value is not None:
                return field, value
        return None

    def unit_number(self, typed: str) -> int | None:
        """Return the unit number that the user typed, or None if there is no unit with this number."""
        number = int(typed) if typed.isdecimal() and len(typed) < LONG else 0
        # The numbers have gaps, because units can be handed over to somebody else.
        return number if number and self.desk.neighbour(number - 1, 1) == number else None

    def symbol(self, command: str, otherwise: str) -> str:
        """Return a command's first key as the screen shows it, or `otherwise` if the task uses all of its keys for labels."""
        return symbol(self.keys[command][0]) if self.keys[command] else otherwise

    def recount(self) -> None:
        """Recompute the progress and the pace after an event."""
        self.counts, self.pace = self.desk.counts(), self.desk.times()

    def take_time(self) -> TimeSpent:
        """Return the time spent on this unit that is not yet stored with an event."""
        self.give_back(self.clock.take())
        return self._spent.pop(self.unit.position)

    def give_back(self, spent: TimeSpent) -> None:
        """Add time to the next event on the current unit, for example because a change could not be stored."""
        position = self.unit.position
        before = self._spent.get(position, TimeSpent())
        self._spent[position] = TimeSpent(before.active_ms + spent.active_ms, before.idle_ms + spent.idle_ms)
