"""What a loopback server does wrong, and when."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

STATUSES = ("400", "401", "403", "404", "408", "409", "413", "429", "500", "502", "503", "529")
KINDS = {
    "quota": "429 with code insufficient_quota (Anthropic: 400 about the credit balance)",
    "reset": "the connection is reset before any byte of the answer",
    "closed": "the connection is closed, without a reset, before any byte of the answer",
    "cut": "the connection closes in the middle of the body",
    "truncated": "a complete HTTP answer whose JSON ends in the middle",
    "not_json": "200 with text that is no JSON",
    "page": "200 with a web page, as servers with a screen for people answer at a wrong address",
    "empty": "200 with JSON that holds no answer",
    "slow": "the first byte comes `seconds` late",
    "wrong_label": "an answer in the format, with a label outside the set",
    "refusal": "the model refuses",
    "filter": "the content filter stops the answer (OpenAI only)",
    "length": "the token limit cuts the answer",
    "window": "the context window cuts the answer (Anthropic only)",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `kind` is a status code as text or a key of KINDS."""

    kind: str
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    message: str = ""
    code: str | None = None
    param: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS and self.kind not in STATUSES:
            raise ValueError(f"no fault '{self.kind}'; there are {', '.join([*STATUSES, *KINDS])}")


@dataclass(slots=True)
class Rule:
    """A fault with a pattern: `every` n-th request, only the `first` n, only `after` n, and `share`.

    `share` picks by the text of the last user message, so the same units are hit in every run;
    `times` limits how often one text is hit (0 = always). `random` picks by a seeded draw for every request.
    """

    fault: Fault
    every: int = 1
    first: int = 0
    after: int = 0
    share: float = 1.0
    times: int = 0
    random: float = 0.0
    seen: dict[str, int] = field(default_factory=dict)

    def hits(self, number: int, text: str) -> bool:
        if number <= self.after or (self.first and number > self.first) or number % self.every:
            return False
        if self.random and fraction(str(number), "random") >= self.random:
            return False
        if self.share < 1.0 and fraction(text, self.fault.kind) >= self.share:
            return False
        if self.times:
            self.seen[text] = self.seen.get(text, 0) + 1
            return self.seen[text] <= self.times
        return True


def fraction(text: str, salt: str = "") -> float:
    """A number in [0, 1) that depends on the text alone."""
    digest = hashlib.sha256(f"{salt}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def rule(text: str) -> Rule:
    """`KIND[:name=value,...]` of the command line, e.g. `429:every=10,retry_after=0.2`."""
    kind, _, rest = text.partition(":")
    values = dict(part.split("=", 1) for part in rest.split(",") if part)
    headers = {k.replace("_", "-"): values.pop(k) for k in ("retry_after", "retry_after_ms") if k in values}
    fault = Fault(kind, headers=headers, seconds=float(values.pop("seconds", 0)))
    numbers: dict[str, Any] = {
        k: int(values.pop(k)) for k in ("every", "first", "after", "times") if k in values
    }
    if "share" in values:
        numbers["share"] = float(values.pop("share"))
    if "random" in values:
        numbers["random"] = float(values.pop("random"))
    if values:
        raise ValueError(f"fault pattern '{text}': unknown {', '.join(values)}")
    return Rule(fault, **numbers)


class Plan:
    """Which fault the next request gets: the script first, then `when`, then the rules."""

    def __init__(self) -> None:
        self.queue: deque[Fault | None] = deque()
        self.rules: list[Rule] = []
        self.when: Callable[[dict[str, Any], int], Fault | None] | None = None

    @property
    def idle(self) -> bool:
        return not self.queue and not self.rules and self.when is None

    def next(self, body: dict[str, Any], number: int, text: str) -> Fault | None:
        if self.queue:
            return self.queue.popleft()
        if self.when is not None and (fault := self.when(body, number)):
            return fault
        return next((r.fault for r in self.rules if r.hits(number, text)), None)
