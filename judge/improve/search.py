"""Successive halving: many are asked about little, the better half about more, the best two about all of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
FEWEST = 10
"""Questions of the first step at least."""


def steps(questions: int, candidates: int) -> list[int]:
    """How many questions each step asks about: doubled as often as halving the candidates takes, up to all."""
    found = [questions]
    while 2 ** len(found) < candidates and found[0] // 2 >= FEWEST:
        found.insert(0, found[0] // 2)
    return found


async def halve(
    candidates: Sequence[T], questions: int, score: Callable[[T, int], Awaitable[float]]
) -> list[tuple[T, float, int]]:
    """Each candidate with its last score and on how many questions it was made, the best first (Jamieson and Talwalkar
    2016, arXiv 1502.07943, algorithm 1). Those that came to the last step stand before those that did not; of equal
    scores the one named first, so what is cheaper stays.
    """
    left = list(enumerate(candidates))
    done: list[tuple[T, float, int]] = []
    sizes = steps(questions, len(left))
    for at, size in enumerate(sizes):
        scored = [(await score(candidate, size), -n, candidate) for n, candidate in left]
        scored.sort(key=lambda own: own[:2], reverse=True)
        keep = len(scored) if at == len(sizes) - 1 else max(2, -(-len(scored) // 2))
        done = [(c, value, size) for value, _, c in scored[keep:]] + done
        if at == len(sizes) - 1:
            return [(c, value, size) for value, _, c in scored] + done
        kept = {n for _, n, _ in scored[:keep]}
        left = [(n, c) for n, c in left if -n in kept]
    return done
