"""Assign the units of a draw to annotators, and order their queues. All functions are pure functions of a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotate.drawing.sample import DrawnUnit, rank, shuffle


@dataclass(frozen=True, slots=True)
class Place:
    """One position in an annotator's queue."""

    unit_id: str
    role: str
    repeat: int = 0


def assign(
    drawn: Sequence[DrawnUnit], annotators: Sequence[str], overlap: int, seed: int, *, together: bool
) -> dict[str, list[list[str]]]:
    """Assign blocks of units to annotators, and return the blocks of each annotator.

    Each block is assigned to `overlap` annotators, who take turns so that their shares are about equal.

    With `together`, the units of a question are in one block, which the same annotators label consecutively.
    The parts of an answer are always in one block.
    """
    blocks: dict[str, list[str]] = {}
    for d in sorted(drawn, key=lambda d: d.place if d.answer else 0):
        blocks.setdefault(d.question_id if together else d.answer or d.unit_id, []).append(d.unit_id)
    out: dict[str, list[list[str]]] = {name: [] for name in annotators}
    for i, block in enumerate(shuffle(blocks, seed, "assign")):
        for k in range(overlap):
            # Each block begins with the next annotator in turn, so that shares differ by at most one block.
            out[annotators[(i + k) % len(annotators)]].append(blocks[block])
    return out


def sequence(
    blocks: Sequence[Sequence[str]],
    annotator: str,
    seed: int,
    *,
    training: Sequence[str] = (),
    attention: Sequence[str] = (),
    repeats: float = 0.0,
    answer_of: Mapping[str, str] | None = None,
) -> list[Place]:
    """Return an annotator's queue: training first, then the blocks in an order that differs between annotators.

    `answer_of` maps each part of an answer to the answer. The parts of an answer stay adjacent. `repeats` is
    the share of units that are shown twice. Attention units are inserted at random places.
    """
    # The order must not depend on the judge: an order by uncertainty would reveal where the judge is unsure.
    by_name = {block[0]: block for block in blocks}
    order = [by_name[name] for name in shuffle(by_name, seed, f"order:{annotator}")]
    chain = [[Place(u, "sample") for u in _inner(b, answer_of or {}, seed, annotator)] for b in order]
    total = sum(len(block) for block in chain)
    wanted = round(total * repeats)
    # Units of the first half are repeated in the second half, when the person no longer remembers the first
    # answer.
    half = len(chain) // 2
    early = [p.unit_id for block in chain[:half] for p in block]
    again = [[Place(u, "repeat", 1)] for u in shuffle(early, seed, f"again:{annotator}")[:wanted]]
    checks = [[Place(u, "attention")] for u in attention]
    chain = chain[:half] + _mix(chain[half:], again, seed, f"repeat:{annotator}")
    chain = _mix(chain, checks, seed, f"attention:{annotator}")
    first = [Place(u, "training") for u in shuffle(training, seed, f"training:{annotator}")]
    return first + [place for block in chain for place in block]


def _inner(block: Sequence[str], answer_of: Mapping[str, str], seed: int, annotator: str) -> list[str]:
    """Return the units of a block in a seeded order, with the parts of an answer in their original order."""
    groups: dict[str, list[str]] = {}
    for unit in block:
        groups.setdefault(answer_of.get(unit, unit), []).append(unit)
    return [u for name in shuffle(groups, seed, f"inner:{annotator}") for u in groups[name]]


def _mix(chain: list[list[Place]], extra: list[list[Place]], seed: int, purpose: str) -> list[list[Place]]:
    """Insert the blocks of `extra` at seeded places in `chain`, but never before its first block."""
    gaps: dict[int, list[list[Place]]] = {}
    for block in extra:
        spot = int.from_bytes(rank(seed, purpose, block[0].unit_id), "big") % max(len(chain), 1)
        gaps.setdefault(spot, []).append(block)
    out: list[list[Place]] = []
    for i, block in enumerate(chain):
        out.append(block)
        out += gaps.pop(i, [])
    return out + [block for rest in gaps.values() for block in rest]
