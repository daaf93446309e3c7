"""Draw the units of a batch, in a fixed order: pure functions of a seed.

Every order is that of sha256(seed : purpose : id), so that a draw does not depend on the order of
rows, the Python version or the machine, and two purposes never share their randomness.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import Candidate, Frame
from judge.errors import UsageError


@dataclass(frozen=True, slots=True)
class DrawnUnit:
    """A unit of the sample; `probability` of having been drawn, None when it was not left to chance."""

    unit_id: str
    question_id: str
    stratum: str
    probability: float | None
    answer: str | None = None
    place: int = 0

    @property
    def weight(self) -> float | None:
        """The design weight: the inverse of the inclusion probability."""
        return None if self.probability is None else 1 / self.probability


def rank(seed: int, purpose: str, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{purpose}:{name}".encode()).digest()[:12]


def shuffled(names: Iterable[str], seed: int, purpose: str) -> list[str]:
    """The names in an order that only seed and purpose decide."""
    return sorted(names, key=lambda name: (rank(seed, purpose, name), name))


BLOCK = 50
"""Units of one block of a stratified draw. Every place at which a verdict is computed is the end of a block."""


def equal_parts(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many to draw of each stratum: equally many, but never more than it has. Others give what a small one cannot."""
    left = min(n, sum(sizes.values()))
    order = sorted(sizes, key=lambda s: (sizes[s], s))
    taken = dict.fromkeys(sizes, 0)
    for i, stratum in enumerate(order):
        # Smallest first: an equal share of what is left, the remainder to the largest.
        taken[stratum] = min(sizes[stratum], left // (len(order) - i))
        left -= taken[stratum]
    for stratum in order:
        more = min(left, sizes[stratum] - taken[stratum])
        taken[stratum] += more
        left -= more
    return taken


def in_proportion(sizes: Mapping[str, int], seed: int) -> Iterator[dict[str, int]]:
    """How many each block of a stratified draw has of each stratum, until all units are drawn.

    A block has of each stratum the share that it has of the units left. Of what is not a whole unit a systematic draw decides
    (Madow 1949), so that every unit has the same probability, however small its stratum.
    """
    left = dict(sorted(sizes.items()))
    for number in itertools.count():
        total = sum(left.values())
        if not total:
            return
        size = min(BLOCK, total)
        taken = {stratum: size * n // total for stratum, n in left.items()}
        place = int.from_bytes(rank(seed, "remainder", str(number)), "big") % total
        for stratum, n in left.items():
            before, place = place, place + size * n % total
            taken[stratum] += place // total - before // total
        left = {stratum: n - taken[stratum] for stratum, n in left.items()}
        yield taken


def stratified(drawn: Mapping[str, Sequence[str]], sizes: Mapping[str, int], seed: int) -> list[str]:
    """The order of a draw in proportion to the strata: block after block, each in a random order of its own.

    So the first n are a sample with equal probabilities for every n. `drawn` has the names of each stratum in their order,
    which may end before the stratum does; `sizes` are those of the whole strata.
    """
    if len(sizes) <= 1:
        return [name for names in drawn.values() for name in names]
    order: list[str] = []
    at = dict.fromkeys(sizes, 0)
    wanted = sum(map(len, drawn.values()))
    for block in in_proportion(sizes, seed):
        if len(order) >= wanted:
            break
        some = [name for s, n in block.items() for name in drawn.get(s, ())[at[s] : at[s] + n]]
        order += shuffled(some, seed, "block")
        at = {s: at[s] + n for s, n in block.items()}
    return order


def draw(candidates: Collection[Candidate], n: int, seed: int, *, equal: bool = False) -> list[DrawnUnit]:
    """A random sample of n units in the order drawn, in the memory of n. Raises UsageError when there are fewer.

    Its strata are in proportion to their size and every unit has the same probability; or, with `equal`, there are equally many
    of each.
    """
    _check_enough(candidates, n)
    sizes = Counter(c.stratum for c in candidates)
    wanted: Mapping[str, int] = Counter()
    if equal:
        wanted = equal_parts(sizes, n)
    elif len(sizes) == 1:
        wanted = dict.fromkeys(sizes, n)
    else:
        for block in itertools.islice(in_proportion(sizes, seed), math.ceil(n / BLOCK)):
            wanted = Counter(wanted) + Counter(block)
    kept = {stratum: _First(wanted[stratum]) for stratum in sizes if wanted[stratum]}
    for c in candidates:
        if c.stratum in kept:
            kept[c.stratum].add(rank(seed, f"draw:{c.stratum}", c.unit_id), c)
    by_id = {c.unit_id: c for stratum in sorted(kept) for c in kept[stratum].ordered()}
    if equal:
        return [_drawn(c, wanted[c.stratum] / sizes[c.stratum]) for c in by_id.values()]
    names = {s: [c.unit_id for c in kept[s].ordered()] for s in kept}
    return [_drawn(by_id[name], n / len(candidates)) for name in stratified(names, sizes, seed)[:n]]


def in_order(drawn: Iterable[DrawnUnit], plan: BatchPlan) -> list[DrawnUnit]:
    """Units of a batch in the order in which they were drawn, which follows from its seed; whole questions stay together."""
    heads: dict[str, list[DrawnUnit]] = {}
    for d in drawn:
        heads.setdefault(d.question_id if plan.by_question else d.unit_id, []).append(d)
    strata: dict[str, list[str]] = {}
    for name, units in heads.items():
        strata.setdefault(units[0].stratum, []).append(name)
    ranked = {stratum: shuffled(names, plan.seed, f"draw:{stratum}") for stratum, names in strata.items()}
    order = (
        stratified(ranked, plan.strata or dict.fromkeys(strata, 0), plan.seed) if not plan.equal_parts else []
    )
    return [d for name in order or heads for d in sorted(heads[name], key=lambda d: d.unit_id)]


class _First:
    """The first n of what is added, by key and unit: what `shuffled(...)[:n]` gives, without the others in memory."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._kept: list[tuple[bytes, str, Candidate]] = []

    def add(self, key: bytes, candidate: Candidate) -> None:
        self._kept.append((key, candidate.unit_id, candidate))
        if len(self._kept) > 2 * self._n + 1000:
            self._cut()

    def ordered(self) -> list[Candidate]:
        self._cut()
        return [candidate for _, _, candidate in self._kept]

    def _cut(self) -> None:
        self._kept.sort(key=lambda entry: entry[:2])
        del self._kept[self._n :]


class _Heads(Collection[Candidate]):
    """A candidate for each question with `least` units or more."""

    def __init__(self, of: Frame, least: int) -> None:
        self._of, self._least = of, least
        self._n = sum(1 for _ in self)

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Candidate]:
        for question, stratum, n in self._of.questions():
            if n >= self._least:
                yield Candidate(question, question, stratum)

    def __contains__(self, candidate: object) -> bool:
        return any(candidate == head for head in self)


def draw_questions(
    frame: Frame, questions: int, seed: int, *, n: int | None = None, equal: bool = False
) -> list[DrawnUnit]:
    """Whole questions, drawn within their strata; with `n`, n / questions units of each.

    Raises UsageError when there are not enough questions with that many units.
    """
    each = None
    if n is not None:
        if n % questions:
            raise UsageError(f"-n {n} with --by-question {questions}: n must be a multiple of the questions")
        each = n // questions
    heads = _Heads(frame, each or 1)
    if questions > len(heads):
        drawable = "questions" if each is None else f"questions with {each} units or more"
        raise UsageError(f"--by-question {questions}: only {len(heads)} {drawable} can be drawn")
    drawn = []
    for head in draw(heads, questions, seed, equal=equal):
        units = {c.unit_id: c for c in frame.of_question(head.question_id)}
        kept = shuffled(units, seed, "within")[:each] if each else list(units)
        share = (head.probability or 1) * len(kept) / len(units)
        drawn += [_drawn(units[u], share, head.stratum) for u in kept]
    return drawn


def draw_queue(candidates: Collection[Candidate], n: int) -> list[DrawnUnit]:
    """The n units the judge is least sure of: an active-learning queue, which is no random sample."""
    _check_enough(candidates, n)
    first = heapq.nsmallest(
        n,
        candidates,
        key=lambda c: (c.confidence is None, c.confidence if c.confidence is not None else 0.0, c.unit_id),
    )
    return [_drawn(c, None) for c in first]


def draw_rest(candidates: Collection[Candidate], n: int, seed: int) -> list[DrawnUnit]:
    """n units of what a route left, by chance; they stand for nothing else. Raises UsageError when there are fewer."""
    _check_enough(candidates, n)
    first = heapq.nsmallest(n, candidates, key=lambda c: (rank(seed, "rest", c.unit_id), c.unit_id))
    return [_drawn(c, None) for c in first]


EVEN = 0.25
"""Of the chance to be drawn for ppi, the part that all units share alike: a judge that is sure and wrong is found, too."""


def chances(candidates: Collection[Candidate], n: int) -> Callable[[Candidate], float]:
    """Gives a unit its probability to be among n, in proportion to EVEN + (1 - EVEN) s / mean(s), at most 1.

    s = sqrt(c (1 - c)), c the judge's confidence: what its error should vary by (active statistical inference: Zrnic &
    Candès 2024, arXiv 2403.03208, sections 3 and 5, with their mixing with uniform sampling). No confidence counts as .5.
    Takes sixteen bytes of memory a unit.
    """
    spreads = array("d", map(_spread, candidates))
    mean = sum(spreads) / max(1, len(spreads))

    def size(spread: float) -> float:
        return EVEN + (1 - EVEN) * spread / mean if mean > 0 else 1.0

    sizes = array("d", map(size, spreads))
    certain, least = 0, math.inf
    while True:
        # Who would be drawn more than once is drawn for certain, and the others share what is left: the largest go first.
        total = sum(s for s in sizes if s < least)
        scale = (n - certain) / total if total else 0.0
        over = [s for s in sizes if s < least and s * scale >= 1]
        if not over:
            return lambda c: 1.0 if (chance := size(_spread(c))) >= least else chance * scale
        certain, least = certain + len(over), min(over)


def _spread(c: Candidate) -> float:
    sure = 0.5 if c.confidence is None else min(1.0, max(0.0, c.confidence))
    return math.sqrt(sure * (1 - sure))


def draw_uncertain(frame: Frame, n: int, seed: int) -> list[DrawnUnit]:
    """n units, each with exactly the probability that `chances` gives it: for corrected numbers (PPI).

    Systematic sampling along a seeded order: of the running sum of probabilities the units that hold u, u + 1, ...
    (Madow 1949). Raises UsageError when there are fewer.
    """
    _check_enough(frame, n)
    probability = chances(frame, n)
    start = int.from_bytes(rank(seed, "ppi", "start"), "big") / 2 ** (8 * 12)
    drawn, total = [], start
    for c in frame.ordered_by(lambda name: rank(seed, "ppi", name)):
        chance = probability(c)
        before, total = total, total + chance
        if math.floor(total + 1e-9) > math.floor(before + 1e-9):
            drawn.append(_drawn(c, min(1.0, chance)))
    return drawn


def _check_enough(candidates: Collection[Candidate], n: int) -> None:
    if n > len(candidates):
        raise UsageError(f"-n {n}: only {len(candidates)} units can be drawn")


def _drawn(c: Candidate, probability: float | None, stratum: str | None = None) -> DrawnUnit:
    return DrawnUnit(c.unit_id, c.question_id, stratum or c.stratum, probability, c.answer, c.place)
