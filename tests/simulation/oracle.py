"""What each person meant: a second book, kept from what was typed. It shares no code with the product.

A source (one batch, one import, one adjudication, votes) says a value for a person, field, unit and repeat, with a tick of
the clock. Where the sources agree that is the label; where they differ there is none until somebody resolves it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

Key = tuple[str, str, str, int]
"""Person, field, unit, repeat."""
Seat = tuple[str, str]
"""Batch, person."""


@dataclass
class Entry:
    """One thing that somebody did at a seat: `what` is label, skip, note, flag, span, shown or revise."""

    unit: tuple[str, int]
    what: str
    value: str | None
    tick: int
    undone: bool = False
    guidelines: str = ""
    """The guidelines that the screen showed with a label."""


@dataclass
class Oracle:
    """`derive` is field -> (derived field, label -> derived label); `asks` is batch -> field."""

    derive: dict[str, tuple[str, dict[str, str]]]
    asks: dict[str, str] = field(default_factory=dict)
    logs: dict[Seat, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    outside: dict[Key, dict[str, tuple[str, int]]] = field(default_factory=lambda: defaultdict(dict))
    """What imports and votes say: key -> source -> (value, tick)."""
    stopped: set[Seat] = field(default_factory=set)
    resolved: set[tuple[Key, str, str, int]] = field(default_factory=set)
    """(key, source, value, tick) that a lead decided against."""
    corrected: dict[str, int] = field(default_factory=dict)
    """Unit -> the tick at which its text was corrected: what was said until then is about another text."""
    rulings: list[tuple[Key, str, set[str], int]] = field(default_factory=list)
    """A lead's decisions: (key, the label that counts, the labels that do not, tick)."""
    tick: int = 0

    def is_old(self, unit: str, tick: int) -> bool:
        """Whether something was said of the text that a unit had before its correction."""
        return tick <= self.corrected.get(unit, 0)

    def now(self) -> int:
        """The next tick of the clock."""
        self.tick += 1
        return self.tick

    def at(self, batch: str, person: str, unit: tuple[str, int]) -> list[Entry]:
        """What stands of a unit at a seat, in order."""
        return [e for e in self.logs[batch, person] if e.unit == unit and not e.undone]

    def answer(self, batch: str, person: str, unit: tuple[str, int]) -> tuple[str, int] | None:
        """The label that stands at a seat, and when it was given; None for none, or for a skipped unit."""
        found = None
        skipped = False
        for e in self.at(batch, person, unit):
            if e.what == "label":
                found, skipped = (str(e.value), e.tick), False
            skipped = skipped or e.what == "skip"
        return None if skipped else found

    def locked(self, batch: str, person: str, unit: tuple[str, int]) -> bool:
        """Whether the judge's answer was shown for a unit, with the text that it has now."""
        return any(
            e.what == "shown" and not self.is_old(unit[0], e.tick) for e in self.at(batch, person, unit)
        )

    def current(self, batch: str, person: str, unit: tuple[str, int]) -> tuple[str, int] | None:
        """The same without an answer to an old text."""
        answer = self.answer(batch, person, unit)
        return None if answer is None or self.is_old(unit[0], answer[1]) else answer

    def undo(self, batch: str, person: str) -> None:
        """Take back the latest that can be."""
        for e in reversed(self.logs[batch, person]):
            fixed = e.what in ("label", "skip") and self.locked(batch, person, e.unit)
            if not e.undone and e.what != "shown" and not fixed and not self.is_old(e.unit[0], e.tick):
                e.undone = True
                return

    def said(self) -> dict[Key, dict[str, tuple[str, int, bool]]]:
        """Key -> source -> (value, tick, whether the person was stopped there), with what follows by derivation."""
        found: dict[Key, dict[str, tuple[str, int, bool]]] = defaultdict(dict)
        for (batch, person), log in self.logs.items():
            kind = "adjudication" if person == "adjudicated" else "batch"
            for unit, repeat in dict.fromkeys(e.unit for e in log):
                answer = self.answer(batch, person, (unit, repeat))
                if answer is None:
                    continue
                asked, stop = self.asks[batch], (batch, person) in self.stopped
                found[person, asked, unit, repeat][f"{kind}:{batch}"] = (*answer, stop)
                derived, table = self.derive[asked]
                if answer[0] in table:
                    found[person, derived, unit, repeat][f"{kind}:{batch}"] = (
                        table[answer[0]],
                        answer[1],
                        stop,
                    )
        for key, sources in self.outside.items():
            for source, (value, tick) in sources.items():
                found[key][source] = (value, tick, False)
        return found

    def counted(self) -> dict[Key, dict[str, tuple[str, int]]]:
        """The same without what was decided against, and without stopped people where somebody else is heard."""
        source_of = {derived: asked for asked, (derived, _) in self.derive.items()}
        everything = self.said()
        out: dict[Key, dict[str, tuple[str, int]]] = {}
        for key, every_source in everything.items():
            sources = {s: said for s, said in every_source.items() if not self.is_old(key[2], said[1])}
            working = any(not stop for _, _, stop in sources.values())
            for source, (value, tick, stop) in sources.items():
                bases = [f for f, (d, _) in self.derive.items() if d == key[1]] if key[1] in source_of else []
                against = (key, source, value, tick) in self.resolved or any(
                    (k[0], k[2], k[3]) == (key[0], key[2], key[3])
                    and k[1] in bases
                    and s == source
                    and t == tick
                    for k, s, _, t in self.resolved
                )
                if not against and not (stop and working):
                    out.setdefault(key, {})[source] = (value, tick)
        return out

    def labels(self) -> dict[Key, str]:
        """Every label that counts."""
        found = {key: {value for value, _ in s.values()} for key, s in self.counted().items()}
        return {key: next(iter(values)) for key, values in found.items() if len(values) == 1}

    def conflicts(self) -> set[Key]:
        """Every label whose sources differ."""
        return {k for k, s in self.counted().items() if len({value for value, _ in s.values()}) > 1}

    def is_rejected(self, key: Key, value: str, tick: int | None = None) -> bool:
        """Whether the latest decision on this label was against it; a label after the decision is a new one."""
        for decided, kept, rejected, at in reversed(self.rulings):
            if decided == key and value in {kept, *rejected} and (tick is None or tick <= at):
                return value in rejected
        return False

    def revised(self, batch: str, person: str, unit: tuple[str, int]) -> str | None:
        """The label after the judge was shown."""
        given = [
            e.value
            for e in self.at(batch, person, unit)
            if e.what == "revise" and not self.is_old(unit[0], e.tick)
        ]
        return given[-1] if given else None

    def resolve(self, keep: str, only: str | None = None) -> int:
        """Decide all conflicts (of one unit), each by its earliest or latest label; those that follow from one go with it."""
        counted, conflicts = self.counted(), self.conflicts()
        for key in conflicts:
            person, name, unit, repeat = key
            bases = [
                f for f, (derived, _) in self.derive.items()
                if derived == name and any(s in counted.get((person, f, unit, repeat), {}) for s in counted[key])
            ]  # fmt: skip
            if only not in (None, unit) or (bases and (person, max(bases), unit, repeat) in conflicts):
                continue
            ordered = sorted(counted[key].items(), key=lambda item: (item[1][1], item[0]))
            value = ordered[0 if keep == "earliest" else -1][1][0]
            self.resolved |= {(key, s, v, tick) for s, (v, tick) in ordered if v != value}
            self.rulings.append((key, value, {v for v, _ in counted[key].values()} - {value}, self.now()))
        return len(conflicts)
