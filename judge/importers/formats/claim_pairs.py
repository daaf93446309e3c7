"""Claim pairs: a claim and its counterclaim, for support ratios and confirmation bias.

In "Retrieving Facts or Reinforcing Beliefs?" (ConfirmBiasRAG), a counterclaim changes one critical relation
in the original claim.

The file is JSON Lines, a JSON array or CSV. Its rows have one of two forms:
    {pair_id, original, counter}            one pair per row: items PAIR-original and PAIR-counter
    {pair_id, polarity, claim[, id, ...]}   one claim per row; `id` defaults to PAIR-POLARITY
Other keys are as in `jsonl`. In a row with a pair, they apply to both claims. `--map` also accepts pair_id,
original and counter. A note lists the pairs that lack one of their claims.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.paths import MISSING, check, follow, remove_paths, value_at
from judge.importers.records import build_each, table_or_json
from judge.types import Item

NAME = "claim-pairs"
HELP = "claims with their counterclaims: one pair per row, or one claim per row"
SIGNS = (("pair_id", "original", "counter"),)


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield two rows per pair. Raises UsageError if a --map names an unknown field, or a path that no row has."""
    check(options.maps, fields.POLARITIES)
    for path in paths:
        records, is_table = table_or_json(path, bad)
        splitter = _Splitter(path, options, is_table)
        yield from build_each(records, splitter.items, bad)
        splitter.finish()


class _Splitter:
    """Turns each row into one or two items, and records which pairs are complete."""

    def __init__(self, path: Path, options: Options, cells: bool) -> None:
        self._path = path
        self._note = options.note
        self._paths = {p: options.maps.get(p, p) for p in fields.POLARITIES}
        self._mapped = {p for p in fields.POLARITIES if p in options.maps}
        others = {f: p for f, p in options.maps.items() if f not in fields.POLARITIES}
        self._pair = others.get("pair_id", "pair_id")
        self._polarity = others.get("polarity", "polarity")
        self._no_id = "id" not in others
        self._cells = cells
        self._met: set[str] = set()
        self._rows = 0
        self._single = RowReader(path, replace(options, maps=others), is_csv=cells)
        self._whole: dict[str, set[str]] = {}

    def items(self, raw: Any) -> list[Item]:
        """Return the items in a row: one, or two if the row has a pair.

        Raises BadInput if pair_id, a claim or its polarity is missing.
        """
        row = dict(fields.record(raw))
        self._rows += 1
        if self._cells:
            row = {name: cell if cell != "" else None for name, cell in row.items()}
        pair = fields.identifier(value_at(row, self._pair), "pair_id")
        claims = {p: value_at(row, path) for p, path in self._paths.items()}
        self._met |= {p for p, path in self._paths.items() if follow(row, path) is not MISSING}
        if any(claim is not None for claim in claims.values()):
            rest = remove_paths(row, self._paths.values())
            made = [
                {**rest, "claim": fields.require_text(c, p), "polarity": p, "id": f"{pair}-{p}"}
                for p, c in claims.items()
            ]
        else:
            polarity = fields.identifier(value_at(row, self._polarity), "polarity")
            # Both rows of a pair have its id, and two items need different ones.
            made = [{**row, "id": row.get("id") or f"{pair}-{polarity}"} if self._no_id else row]
        items = [self._single.item(m) for m in made]
        for item in items:
            fields.require_text(item.claim, "claim")
            seen = self._whole.setdefault(pair, set())
            if item.polarity in seen:
                raise BadInput(f"pair {pair} has two {item.polarity} claims", field="polarity")
            seen.add(str(item.polarity))
        return items

    def finish(self) -> None:
        """Raise UsageError if a --map had no effect. Issue a note about the pairs with only one claim."""
        for name in self._mapped - self._met:
            if self._rows:
                wanted = self._paths[name]
                raise UsageError(f"{self._path}: --map {name}={wanted}: no row has the key '{wanted}'")
        # A pair is complete without passages, and its topic or source is meta on purpose.
        self._single.finish(notes_unused=False)
        halves = [pair for pair, seen in self._whole.items() if len(seen) == 1]
        if halves:
            first = ", ".join(halves[:5])
            self._note(f"{len(halves)} pairs have only one of their two claims ({first})")
