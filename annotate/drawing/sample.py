"""Draw the units of a batch in a fixed order. All functions are pure functions of a seed."""

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
    """A unit in the sample, with its inclusion probability. The probability is None if the draw is not random."""

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
    """Return the sort key of a name: a hash of the seed, the purpose and the name."""
    # A hash is used instead of Python's `random`, because the order must not depend on the order of rows, the
    # Python version or the machine, and two purposes must not share their randomness.
    return hashlib.sha256(f"{seed}:{purpose}:{name}".encode()).digest()[:12]


def shuffle(names: Iterable[str], seed: int, purpose: str) -> list[str]:
    """Return the names in an order that depends only on the seed and the purpose."""
    return sorted(names, key=lambda name: (rank(seed, purpose, name), name))


BLOCK = 50
"""The number of units in a block of a stratified draw. Verdicts are computed only at the end of a block."""


def equal_parts(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return the number of units to draw from each stratum.

    The numbers are as equal as possible. If a stratum has too few units, more units are drawn from the
    others.
    """
    remaining = min(n, sum(sizes.values()))
    order = sorted(sizes, key=lambda s: (sizes[s], s))
    parts = dict.fromkeys(sizes, 0)
    # The smallest stratum comes first, so that all larger strata share the units that it lacks.
    for i, stratum in enumerate(order):
        parts[stratum] = min(sizes[stratum], remaining // (len(order) - i))
        remaining -= parts[stratum]
    for stratum in order:
        more = min(remaining, sizes[stratum] - parts[stratum])
        parts[stratum] += more
        remaining -= more
    return parts


def allocate(sizes: Mapping[str, int], seed: int) -> Iterator[dict[str, int]]:
    """Yield how many units each block of a stratified draw takes from each stratum.

    Each stratum's share of a block equals its share of the remaining units. Fractions of a unit are resolved
    by a systematic draw (Madow 1949). The blocks end when all units are drawn.
    """
    remaining = dict(sorted(sizes.items()))
    for number in itertools.count():
        total = sum(remaining.values())
        if not total:
            return
        size = min(BLOCK, total)
        parts = {stratum: size * n // total for stratum, n in remaining.items()}
        # Rounding would never draw from a stratum with less than one unit per block. With a systematic draw,
        # every unit has the same probability, however small its stratum.
        place = int.from_bytes(rank(seed, "remainder", str(number)), "big") % total
        for stratum, n in remaining.items():
            before, place = place, place + size * n % total
            parts[stratum] += place // total - before // total
        remaining = {stratum: n - parts[stratum] for stratum, n in remaining.items()}
        yield parts


def stratify(drawn: Mapping[str, Sequence[str]], sizes: Mapping[str, int], seed: int) -> list[str]:
    """Return the names in the order of a proportional stratified draw.

    The order consists of blocks, and the names in each block are shuffled. For every n, the first n names are
    a sample in which all names had the same probability.

    `drawn` maps each stratum to the names that were drawn from it, in order. `sizes` maps each stratum to its
    total number of names.
    """
    if len(sizes) <= 1:
        return [name for names in drawn.values() for name in names]
    order: list[str] = []
    at = dict.fromkeys(sizes, 0)
    total = sum(map(len, drawn.values()))
    for block in allocate(sizes, seed):
        if len(order) >= total:
            break
        names = [name for s, n in block.items() for name in drawn.get(s, ())[at[s] : at[s] + n]]
        order += shuffle(names, seed, "block")
        at = {s: at[s] + n for s, n in block.items()}
    return order


def draw(candidates: Collection[Candidate], n: int, seed: int, *, equal: bool = False) -> list[DrawnUnit]:
    """Return a random sample of n units, in the order in which they were drawn. Raises UsageError if there are
    fewer units.

    Strata are sampled in proportion to their sizes, so every unit has the same probability. With `equal`,
    each stratum has the same number of units.
    """
    _check_enough(candidates, n)
    sizes = Counter(c.stratum for c in candidates)
    parts: Mapping[str, int] = Counter()
    if equal:
        parts = equal_parts(sizes, n)
    else:
        for block in itertools.islice(allocate(sizes, seed), math.ceil(n / BLOCK)):
            parts = Counter(parts) + Counter(block)
    # Only the sample is in memory, never the millions of units of the frame.
    first = {stratum: _First(parts[stratum]) for stratum in sizes if parts[stratum]}
    for c in candidates:
        if c.stratum in first:
            first[c.stratum].add(rank(seed, f"draw:{c.stratum}", c.unit_id), c)
    by_id = {c.unit_id: c for stratum in sorted(first) for c in first[stratum].ordered()}
    if equal:
        return [_make_drawn(c, parts[c.stratum] / sizes[c.stratum]) for c in by_id.values()]
    names = {s: [c.unit_id for c in first[s].ordered()] for s in first}
    return [_make_drawn(by_id[name], n / len(candidates)) for name in stratify(names, sizes, seed)[:n]]


def restore_order(drawn: Iterable[DrawnUnit], plan: BatchPlan) -> list[DrawnUnit]:
    """Return the units of a batch in the order in which they were drawn, which depends on its seed. Units
    of the same question are kept together.
    """
    heads: dict[str, list[DrawnUnit]] = {}
    for d in drawn:
        heads.setdefault(d.question_id if plan.by_question else d.unit_id, []).append(d)
    strata: dict[str, list[str]] = {}
    for name, units in heads.items():
        strata.setdefault(units[0].stratum, []).append(name)
    ranked = {stratum: shuffle(names, plan.seed, f"draw:{stratum}") for stratum, names in strata.items()}
    # Units drawn in equal parts have no order, because no verdict rests on them.
    order = (
        stratify(ranked, plan.strata or dict.fromkeys(strata, 0), plan.seed) if not plan.equal_parts else []
    )
    return [d for name in order or heads for d in sorted(heads[name], key=lambda d: d.unit_id)]


class _First:
    """The first n candidates in the order of their key and unit, as in `shuffle(...)[:n]`. Candidates are added
    one by one, and only a few more than 2n of them are kept in memory.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._kept: list[tuple[bytes, str, Candidate]] = []

    def add(self, key: bytes, candidate: Candidate) -> None:
        self._kept.append((key, candidate.unit_id, candidate))
        # Sorting after each unit would take too long, and keeping all units would fill the memory.
        if len(self._kept) > 2 * self._n + 1000:
            self._truncate()

    def ordered(self) -> list[Candidate]:
        self._truncate()
        return [candidate for _, _, candidate in self._kept]

    def _truncate(self) -> None:
        self._kept.sort(key=lambda entry: entry[:2])
        del self._kept[self._n :]


def draw_questions(
    frame: Frame, questions: int, seed: int, *, n: int | None = None, equal: bool = False
) -> list[DrawnUnit]:
    """Draw whole questions at random within their strata, and return their units.

    With `n`, return only n / questions randomly chosen units from each question. Raises UsageError if there
    are not enough questions with that many units.
    """
    each = None
    if n is not None:
        if n % questions:
            raise UsageError(
                f"-n {n} with --by-question {questions}: n must be a multiple of the number of questions"
            )
        each = n // questions
    heads = [Candidate(q, q, stratum) for q, stratum, size in frame.questions() if size >= (each or 1)]
    if questions > len(heads):
        drawable = "questions" if each is None else f"questions with {each} units or more"
        raise UsageError(f"--by-question {questions}: only {len(heads)} {drawable} can be drawn")
    drawn = []
    for head in draw(heads, questions, seed, equal=equal):
        units = {c.unit_id: c for c in frame.list_question(head.question_id)}
        kept = shuffle(units, seed, "within")[:each] if each else list(units)
        # The question is drawn first, and then units within it: the probabilities of both stages multiply.
        share = (head.probability or 1) * len(kept) / len(units)
        drawn += [_make_drawn(units[u], share, head.stratum) for u in kept]
    return drawn


def draw_queue(candidates: Collection[Candidate], n: int) -> list[DrawnUnit]:
    """Return the n units about which the judge is least sure. They are a queue for active learning, not a
    random sample.
    """
    _check_enough(candidates, n)
    first = heapq.nsmallest(
        n,
        candidates,
        # Units without a confidence come last, because nothing says that the judge is unsure of them.
        key=lambda c: (c.confidence is None, c.confidence if c.confidence is not None else 0.0, c.unit_id),
    )
    return [_make_drawn(c, None) for c in first]


def draw_rest(candidates: Collection[Candidate], n: int, seed: int) -> list[DrawnUnit]:
    """Return n random units among those that a routed run left for people to label.

    Raises UsageError if there are fewer than n units.
    """
    # The route chose these units by the judge's confidence, so they represent no other units and have no probability.
    _check_enough(candidates, n)
    first = heapq.nsmallest(n, candidates, key=lambda c: (rank(seed, "rest", c.unit_id), c.unit_id))
    return [_make_drawn(c, None) for c in first]


# Without this part, units on which the judge is sure but wrong would almost never be drawn.
EVEN = 0.25
"""The part of a unit's probability in a draw for PPI that is equal for all units."""


def chances(candidates: Collection[Candidate], n: int) -> Callable[[Candidate], float]:
    """Return a function that computes a unit's inclusion probability in a draw of n units.

    The draw is for prediction-powered inference (PPI).

    The probability is proportional to EVEN + (1 - EVEN) s / mean(s), and at most 1. Here, s = sqrt(c (1 - c))
    is the standard deviation of the judge's error at confidence c (active statistical inference: Zrnic &
    Candès 2024, arXiv 2403.03208, sections 3 and 5, including their mixture with uniform sampling). A missing
    confidence counts as .5. The function takes sixteen bytes of memory per unit.
    """
    spreads = array("d", map(_spread, candidates))
    mean = sum(spreads) / max(1, len(spreads))

    def size(spread: float) -> float:
        return EVEN + (1 - EVEN) * spread / mean if mean > 0 else 1.0

    sizes = array("d", map(size, spreads))
    certain, least = 0, math.inf
    while True:
        # A unit with a probability above 1 is drawn with certainty, and the others share the rest: the largest first.
        total = sum(s for s in sizes if s < least)
        scale = (n - certain) / total if total else 0.0
        over = [s for s in sizes if s < least and s * scale >= 1]
        if not over:
            return lambda c: 1.0 if (chance := size(_spread(c))) >= least else chance * scale
        certain, least = certain + len(over), min(over)


def _spread(c: Candidate) -> float:
    confidence = 0.5 if c.confidence is None else min(1.0, max(0.0, c.confidence))
    return math.sqrt(confidence * (1 - confidence))


def draw_uncertain(frame: Frame, n: int, seed: int) -> list[DrawnUnit]:
    """Return n units, each drawn with exactly the probability that `chances` gives it.

    Estimates from these units are corrected by prediction-powered inference (PPI). The draw is systematic
    sampling along a seeded order (Madow 1949): it takes the units at which the running sum of probabilities
    passes u, u + 1, ... Raises UsageError if there are fewer than n units.
    """
    _check_enough(frame, n)
    probability = chances(frame, n)
    # `rank` has 12 bytes: this is a number from 0 to 1.
    start = int.from_bytes(rank(seed, "ppi", "start"), "big") / 2 ** (8 * 12)
    drawn, total = [], start
    for c in frame.iterate_by(lambda name: rank(seed, "ppi", name)):
        chance = probability(c)
        before, total = total, total + chance
        # The tolerance is for rounding errors in the running sum, which would lose the last unit.
        if math.floor(total + 1e-9) > math.floor(before + 1e-9):
            drawn.append(_make_drawn(c, min(1.0, chance)))
    return drawn


def _check_enough(candidates: Collection[Candidate], n: int) -> None:
    if n > len(candidates):
        raise UsageError(f"-n {n}: only {len(candidates)} units can be drawn")


def _make_drawn(c: Candidate, probability: float | None, stratum: str | None = None) -> DrawnUnit:
    return DrawnUnit(c.unit_id, c.question_id, stratum or c.stratum, probability, c.answer, c.place)
