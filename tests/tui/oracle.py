"""What keys mean: a model of the labelling screen that knows no screen, no queue and no clock.

`act` takes one action at a time, in the order meant, and `log` is what the study must hold then.
"""

import random
from dataclasses import dataclass, field

VALUES = {"s": "support", "r": "refute", "n": "neutral"}
Row = tuple[str, int, str | None]


@dataclass
class Oracle:
    """A person at a batch of `units` units of the task `stance`, without training or reveal."""

    units: int
    at: int = 1
    log: list[Row] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)

    def _last(self, kind: str, position: int) -> str | None:
        rows = [
            v for i, (k, p, v) in enumerate(self.log) if k == kind and p == position and i not in self.undone
        ]
        return rows[-1] if rows else None

    def status(self, position: int) -> str:
        """open, done or skipped: by the last label or skip that stands."""
        kinds = [
            k for i, (k, p, _) in enumerate(self.log)
            if p == position and k in ("label", "skip") and i not in self.undone
        ]  # fmt: skip
        return "open" if not kinds else "done" if kinds[-1] == "label" else "skipped"

    def first_open(self, after: int = 0) -> int | None:
        """The next open unit, going round."""
        order = [*range(after + 1, self.units + 1), *range(1, after + 1)]
        return next((p for p in order if self.status(p) == "open"), None)

    def act(self, token: str) -> list[str]:
        """Do what is meant by a token; gives the keys that say it."""
        name, _, text = token.partition(" ")
        if name in VALUES:
            done = self.status(self.at) == "done"
            self.log.append(("label", self.at, VALUES[name]))
            if not done:
                self.at = self.first_open(self.at) or self.at
            return [name]
        if name == "skip":
            self.log.append(("skip", self.at, None))
            self.at = self.first_open(self.at) or self.at
            return ["-"]
        if name == "undo":
            left = [i for i, (k, _, _) in enumerate(self.log) if k != "undo" and i not in self.undone]
            if left:
                self.undone.add(left[-1])
                self.at = self.log[left[-1]][1]
                self.log.append(("undo", self.at, None))
            return ["backspace"]
        if name == "note":
            before = self._last("note", self.at) or ""  # the box opens with it, and typing goes on behind it
            self.log.append(("note", self.at, before + text))
            return ["+", *text, "enter"]
        if name == "flag":
            if self._last("flag", self.at) is not None:
                self.log.append(("flag", self.at, None))
                return ["!"]
            self.log.append(("flag", self.at, text))
            return ["!", *text, "enter"]
        if name == "mark":
            self.log.append(("span", self.at, None))
            return ["*", "enter", "escape"]
        if name == "jump":
            self.at = int(text)
            return ["#", *text, "enter"]
        if name in ("left", "right"):
            following = self.at + (1 if name == "right" else -1)
            if not 1 <= following <= self.units:
                return []  # refused, and what is typed behind it with it
            self.at = following
            return [name]
        return {
            "list": ["=", "enter"],
            "help": ["?", "escape"],
            "find": ["/", "s", "r", "escape"],
            "words": ["%"],
        }[name]

    def resume(self, log: list[Row]) -> None:
        """After a kill: what was committed stands, and work goes on at the first open unit."""
        assert log == self.log[: len(log)], (log[-5:], self.log[len(log) - 5 : len(log)])
        lost = len(log)
        kept = self.log[:lost]
        self.log, self.undone = [], set()
        for row in kept:
            if row[0] == "undo":
                left = [i for i, (k, _, _) in enumerate(self.log) if k != "undo" and i not in self.undone]
                self.undone.add(left[-1])
            self.log.append(row)
        self.at = self.first_open() or 1


def tokens(dice: random.Random, units: int, count: int) -> list[str]:
    """A random sitting: mostly labels and corrections, every command now and then; no label key and no skip twice
    running, because that could be a held one."""
    out: list[str] = []
    for _ in range(count):
        what = dice.random()
        if what < 0.45:
            key = dice.choice([v for v in VALUES if not out or v != out[-1]])
            out.append(key)
        elif what < 0.65:
            out.append("undo")
        elif what < 0.72:
            out.append("skip" if out[-1:] != ["skip"] else "left")
        elif what < 0.78:
            out.append(f"note {dice.choice(['nice', 'srn', 'see 3'])}")
        elif what < 0.82:
            out.append(f"flag {dice.choice(['odd', 'rss'])}")
        elif what < 0.85:
            out.append("mark")
        elif what < 0.90:
            out.append(f"jump {dice.randint(1, units)}")
        else:
            out.append(dice.choice(["left", "right", "left", "right", "list", "help", "find", "words"]))
    return out


def plain(log: list[Row]) -> list[Row]:
    """A log without the values of spans, which depend on the texts."""
    return [(k, p, None if k in ("span", "undo", "skip") else v) for k, p, v in log]
