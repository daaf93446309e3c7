"""Who labels which units of a draw, and in which order: pure functions of a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotate.drawing.sample import DrawnUnit, rank, shuffled


@dataclass(frozen=True, slots=True)
class Place:
    """One position of an annotator's queue."""

    unit_id: str
    role: str
    repeat: int = 0


def assign(
    drawn: Sequence[DrawnUnit], annotators: Sequence[str], overlap: int, seed: int, *, together: bool
) -> dict[str, list[list[str]]]:
    """Blocks of units for each annotator: `overlap` people to each block, everybody about as many.

    `together` keeps the units of a question in one block (same people, one after the other); the parts
    of an answer are in one block in any case.
    """
    blocks: dict[str, list[str]] = {}
    for d in sorted(drawn, key=lambda d: d.place if d.answer else 0):
        blocks.setdefault(d.question_id if together else d.answer or d.unit_id, []).append(d.unit_id)
    out: dict[str, list[list[str]]] = {name: [] for name in annotators}
    for i, block in enumerate(shuffled(blocks, seed, "assign")):
        for k in range(overlap):
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
    """One annotator's queue: training first, then the blocks in an order of their own.

    `answer_of` names the answer of units that are parts of one: they follow each other as given.

    Repeats are units of the first half shown again in the second half; attention items stand
    anywhere between blocks.
    """
    by_name = {block[0]: block for block in blocks}
    order = [by_name[name] for name in shuffled(by_name, seed, f"order:{annotator}")]
    chain = [[Place(u, "sample") for u in _inner(b, answer_of or {}, seed, annotator)] for b in order]
    total = sum(len(block) for block in chain)
    wanted = round(total * repeats)
    half = len(chain) // 2
    early = [p.unit_id for block in chain[:half] for p in block]
    again = [[Place(u, "repeat", 1)] for u in shuffled(early, seed, f"again:{annotator}")[:wanted]]
    checks = [[Place(u, "attention")] for u in attention]
    chain = chain[:half] + _mixed(chain[half:], again, seed, f"repeat:{annotator}")
    chain = _mixed(chain, checks, seed, f"attention:{annotator}")
    first = [Place(u, "training") for u in shuffled(training, seed, f"training:{annotator}")]
    return first + [place for block in chain for place in block]


def _inner(block: Sequence[str], answer_of: Mapping[str, str], seed: int, annotator: str) -> list[str]:
    """The units of a block in a seeded order, those of one answer one after the other as they stand in it."""
    groups: dict[str, list[str]] = {}
    for unit in block:
        groups.setdefault(answer_of.get(unit, unit), []).append(unit)
    return [u for name in shuffled(groups, seed, f"inner:{annotator}") for u in groups[name]]


def _mixed(chain: list[list[Place]], extra: list[list[Place]], seed: int, purpose: str) -> list[list[Place]]:
    """`extra` dropped into seeded gaps of `chain` (never before its first block)."""
    gaps: dict[int, list[list[Place]]] = {}
    for block in extra:
        spot = int.from_bytes(rank(seed, purpose, block[0].unit_id), "big") % max(len(chain), 1)
        gaps.setdefault(spot, []).append(block)
    out: list[list[Place]] = []
    for i, block in enumerate(chain):
        out.append(block)
        out += gaps.pop(i, [])
    return out + [block for rest in gaps.values() for block in rest]
