"""A model that is planted: how often it is right depends on what it is shown, and it remembers all that it saw."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from judge.providers.base import BaseProvider
from judge.types import Reply, Request, TokenChoice, Usage
from tests.derive.worlds import LABELS

Skill = Callable[[Request], float]


class Planted(BaseProvider):
    """Right on a unit with the chance that `skill` gives for its request, else one of the other labels; the same each
    time for the same unit and request. `bias` multiplies the mass of 'neutral'. After `most` calls it is interrupted.
    """

    def __init__(
        self, truth: Any, skill: Skill, *, codes: bool = True, bias: float = 1.0, seed: int = 0
    ) -> None:
        self.truth, self.skill, self.bias, self.seed = truth, skill, bias, seed
        self.label_codes = codes
        self.seen: list[Request] = []
        self.most: int | None = None

    async def complete(self, request: Request) -> Reply:
        """The planted answer."""
        if self.most is not None and len(self.seen) >= self.most:
            raise KeyboardInterrupt
        self.seen.append(request)
        last = numbers(request.messages[-1].content)
        [unit] = set(last)
        # Label orders share their errors: else the mean over several would be better than each.
        told = f"{self.seed}\0{unit}\0{_kind(request)}"
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(told.encode()).digest()[:8]))
        right = rng.random() < self.skill(request)
        code = self.truth[unit] if right else (self.truth[unit] + 1 + rng.integers(2)) % 3
        usage = Usage(sum(len(m.content) for m in request.messages) // 4, 1, 0)
        if request.schema is not None:
            return Reply(json.dumps({"stance": LABELS[code]}), usage=usage)
        assert request.choices
        p = np.full(3, 0.15)
        p[code] = 0.7
        p[2] *= self.bias
        p /= p.sum()
        words = [_label(choice, request) for choice in request.choices]
        top = request.choices[max(range(3), key=lambda k: p[words[k]])]
        return Reply(
            top,
            usage=usage,
            tokens=[TokenChoice(top, [(c, math.log(p[words[k]])) for k, c in enumerate(request.choices)])],
        )


def numbers(text: str) -> list[int]:
    """The units whose passages stand in a text."""
    return [int(n) for n in re.findall(r"passage number (\d+) of the world", text)]


def shown(request: Request) -> str:
    """What is shown beside the unit: the constant messages."""
    return "\0".join(m.content for m in request.messages[:-1])


def _kind(request: Request) -> str:
    """Mode, guidelines and number of examples."""
    mode = "json" if request.schema is not None else "codes" if request.codes else "words"
    return f"{mode} {'Guidelines:' in shown(request)} {len(request.messages)}"


def _label(choice: str, request: Request) -> int:
    """The label that a code, or a word, stands for."""
    text = request.messages[0].content
    return next(k for k, label in enumerate(LABELS) if choice == label or f"{choice} = {label}" in text)
