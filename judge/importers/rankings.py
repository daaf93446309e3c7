"""Read rankings from TREC run files: `item Q0 passage rank score tag`, six columns separated by white space.

`judge systems import` reads the rankings; `judge items import` does not accept this format. Ids are either
the study's ids or the ids in the source (see `judge.store.rankings.Ids`). The lines for an item need not be
adjacent. An item's list is ordered by descending score, as in trec_eval and ir_measures. Passages with equal
scores are ordered by the rank column, then by their order in the file, whereas trec_eval orders them by
document id. The ranking's name is the tag, unless another name is given.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from judge.errors import BadInput
from judge.files import open_input
from judge.importers.base import Bad, Note
from judge.importers.records import add_place
from judge.store.rankings import Ids, Ranked
from judge.types import Where

COLUMNS = "item Q0 passage rank score tag"
_Entry = tuple[int, str, float, int]


def read_rankings(
    path: Path, stage: str, name: str | None, ids: Ids, bad: Bad, note: Note = lambda _: None
) -> Iterator[Ranked]:
    """Yield one list per item and tag, in the order in which the items first occur.

    A note reports the number of lists in which the order by score differs from the order by rank.
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
                    f"passage '{entry[1]}' occurs twice for '{item}' (first on line {known[entry[1]]})",
                    field="document",
                )
        except BadInput as error:
            bad(add_place(error, path, number))
            continue
        # The entry is added after the check, so that a bad line has no effect.
        known[entry[1]] = number
        lists.setdefault((tag, item), []).append(entry)
    if not number:
        bad(BadInput("the file is empty", path=str(path)))
    differ = 0
    for (tag, item), entries in lists.items():
        ranks = [rank for rank, *_ in entries]
        if len({score for _, _, score, _ in entries}) == 1 and (again := _find_repeated_rank(entries)):
            # Passages with equal scores and equal ranks have no defined order, and measures such as nDCG
            # depend on the order.
            reason = f"rank {again[0]} occurs twice for '{item}', and all scores for this item are equal, so its list has no defined order"
            bad(add_place(BadInput(reason, field="rank"), path, again[3]))
            continue
        # The sort is stable, so entries with equal scores and equal ranks keep the order in the file.
        entries.sort(key=lambda entry: (-entry[2], entry[0]))
        ordered = [rank for rank, *_ in entries]
        differ += ordered != sorted(ranks)
        where = Where(str(path), min(e[3] for e in entries))
        yield Ranked(tag, stage, item, [(pid, score) for _, pid, score, _ in entries], where)
    if differ:
        note(
            f"{path}: lists are ordered by score; for {differ} of {len(lists)} queries, the rank column "
            "gives a different order"
        )


def _find_repeated_rank(entries: list[_Entry]) -> _Entry | None:
    """Return the first entry that has the same rank as an earlier entry, or None."""
    ranks: set[int] = set()
    for entry in entries:
        if entry[0] in ranks:
            return entry
        ranks.add(entry[0])
    return None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with open_input(path) as handle:
        for number, line in enumerate(handle, 1):
            # No item has an id that is not UTF-8, so such an id is reported with its line, like any unknown
            # id.
            yield number, line.decode("utf-8", "surrogateescape")


def _line(text: str, name: str | None, number: int, ids: Ids) -> tuple[tuple[str, str], _Entry]:
    parts = text.split()
    if len(parts) != 6:
        raise BadInput(
            f"the line has {len(parts)} columns, but each line in a TREC run must have six: {COLUMNS}"
        )
    item = ids.item(parts[0])
    passage = ids.passage(parts[2], item)
    try:
        rank = int(parts[3])
    except ValueError as error:
        raise BadInput(f"'{parts[3]}' is not a whole number", field="rank") from error
    try:
        score = float(parts[4])
    except ValueError:
        # This value is rejected below, together with nan and inf, which `float` accepts.
        score = math.nan
    if not math.isfinite(score):
        raise BadInput(f"'{parts[4]}' is not a number", field="score")
    tag = name or parts[5]
    return (tag, item), (rank, passage, score, number)
