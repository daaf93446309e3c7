"""Read rankings from TREC run files: `item Q0 passage rank score tag`, six columns separated by white space.

Not a format of items: `judge systems import` reads it. Ids are the study's own or the source's (see
`judge.store.rankings.Ids`). An item's lines need not be adjacent. Its list is ordered by descending score, as in
trec_eval and ir_measures. Passages with equal scores keep the order of the rank column, then that of the file;
trec_eval orders them by document id. The tag is the ranking's name unless one is given.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from judge.errors import BadInput
from judge.files import opened
from judge.importers.base import Bad, Note
from judge.importers.records import placed
from judge.store.rankings import Ids, Ranked
from judge.types import Where

COLUMNS = "item Q0 passage rank score tag"
_Entry = tuple[int, str, float, int]


def read_rankings(
    path: Path, stage: str, name: str | None, ids: Ids, bad: Bad, note: Note = lambda _: None
) -> Iterator[Ranked]:
    """Yield one list per item (and tag), in the order in which the items first occur.

    Notes how many lists have another order by score than by rank.
    """
    lists: dict[tuple[str, str], list[_Entry]] = {}
    seen: dict[tuple[str, str], dict[str, int]] = {}
    number = 0
    for number, text in _lines(path):
        if not text.strip():
            continue
        try:
            (tag, item), entry = _line(text, name, number, ids)
            known = seen.setdefault((tag, item), {})
            if entry[1] in known:
                raise BadInput(
                    f"'{entry[1]}' occurs twice for '{item}' (line {known[entry[1]]})", field="document"
                )
        except BadInput as error:
            bad(placed(error, path, number))
            continue
        # Only after the check: a bad line leaves nothing.
        known[entry[1]] = number
        lists.setdefault((tag, item), []).append(entry)
    if not number:
        bad(BadInput("the file is empty", path=str(path)))
    differ = 0
    for (tag, item), entries in lists.items():
        ranks = [rank for rank, *_ in entries]
        if len({score for _, _, score, _ in entries}) == 1 and (again := _repeated(entries)):
            # Passages with one score and one rank have no order, and measures such as nDCG depend on it.
            reason = f"rank {again[0]} occurs twice for '{item}', and all its scores are equal: the list has no order"
            bad(placed(BadInput(reason, field="rank"), path, again[3]))
            continue
        # The sort is stable, so entries with one score and one rank stay in the order of the file.
        entries.sort(key=lambda entry: (-entry[2], entry[0]))
        ordered = [rank for rank, *_ in entries]
        differ += ordered != sorted(ranks)
        where = Where(str(path), min(e[3] for e in entries))
        yield Ranked(tag, stage, item, [(pid, score) for _, pid, score, _ in entries], where)
    if differ:
        note(
            f"{path}: the lists are ordered by score; for {differ} of {len(lists)} queries, the rank column has another order"
        )


def _repeated(entries: list[_Entry]) -> _Entry | None:
    """Return the first entry whose rank an earlier entry has."""
    ranks: set[int] = set()
    for entry in entries:
        if entry[0] in ranks:
            return entry
        ranks.add(entry[0])
    return None


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
        raise BadInput(f"'{parts[3]}' is not a whole number", field="rank") from error
    try:
        score = float(parts[4])
    except ValueError:
        # Refused below, together with nan and inf, which `float` accepts.
        score = math.nan
    if not math.isfinite(score):
        raise BadInput(f"'{parts[4]}' is not a number", field="score")
    tag = name or parts[5]
    return (tag, item), (rank, passage, score, number)
