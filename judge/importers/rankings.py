"""Read rankings from TREC run files: `item Q0 passage rank score tag`, six columns separated by white space.

Not a format of items: `judge systems import` reads it. Ids are the study's own or the source's (see
`judge.store.rankings.Ids`). Lines of an item need not be adjacent; its list is ordered by the rank
column, whose numbers may start anywhere and have gaps. The tag is the ranking's name unless one is given.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from judge.errors import BadInput
from judge.files import opened
from judge.importers.base import Bad
from judge.importers.records import placed
from judge.store.rankings import Ids, Ranked
from judge.types import Where

COLUMNS = "item Q0 passage rank score tag"
_Entry = tuple[int, str, float, int]


def read_rankings(path: Path, stage: str, name: str | None, ids: Ids, bad: Bad) -> Iterator[Ranked]:
    """Yield one list per item (and tag), in the order in which the items first occur."""
    lists: dict[tuple[str, str], dict[int, _Entry]] = {}
    seen: dict[tuple[str, str], dict[str, int]] = {}
    number = 0
    for number, text in _lines(path):
        if not text.strip():
            continue
        try:
            (tag, item), entry = _line(text, name, number, ids)
            known, ranks = seen.setdefault((tag, item), {}), lists.setdefault((tag, item), {})
            if entry[1] in known:
                raise BadInput(
                    f"'{entry[1]}' occurs twice for '{item}' (line {known[entry[1]]})", field="document"
                )
            # Two passages at one rank have no order, and measures such as nDCG depend on it.
            if entry[0] in ranks:
                raise BadInput(
                    f"rank {entry[0]} occurs twice for '{item}' (line {ranks[entry[0]][3]})", field="rank"
                )
        except BadInput as error:
            bad(placed(error, path, number))
            continue
        # Only after both checks: a bad line leaves nothing.
        known[entry[1]] = number
        ranks[entry[0]] = entry
    if not number:
        bad(BadInput("the file is empty", path=str(path)))
    for (tag, item), ranks in lists.items():
        if ranks:
            entries = [ranks[rank] for rank in sorted(ranks)]
            where = Where(str(path), min(e[3] for e in entries))
            yield Ranked(tag, stage, item, [(pid, score) for _, pid, score, _ in entries], where)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with opened(path) as handle:
        for number, line in enumerate(handle, 1):
            # An id that is not UTF-8 is the id of no item, and is reported with its line like any other unknown id.
            yield number, line.decode("utf-8", "surrogateescape")


def _line(text: str, name: str | None, number: int, ids: Ids) -> tuple[tuple[str, str], _Entry]:
    parts = text.split()
    if len(parts) != 6:
        raise BadInput(f"{len(parts)} columns; a line of a TREC run has six: {COLUMNS}")
    item = ids.item(parts[0])
    passage = ids.passage(parts[2], item)
    try:
        rank = int(parts[3])
    except ValueError as error:
        raise BadInput(f"'{parts[3]}' is no whole number", field="rank") from error
    try:
        score = float(parts[4])
    except ValueError:
        # Refused below, together with nan and inf, which `float` accepts.
        score = math.nan
    if not math.isfinite(score):
        raise BadInput(f"'{parts[4]}' is not a number", field="score")
    tag = name or parts[5]
    return (tag, item), (rank, passage, score, number)
