"""Store rankings: the passages that a retriever returned for an item, with ranks from 1.

A list may contain passages that belong to other items. Such a passage is not a unit of this item, so it
cannot be labelled for this item. `attach` adds a copy of the passage to the item, with an id derived from the
passage's content. The list itself is not changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store.corrections import ChangedValue
from judge.store.imports import Adder, ImportInfo, ImportReport, add_rows, error_at
from judge.store.listing import dataset_names, dicts
from judge.store.study import Store, dumps
from judge.types import Correct, Json, Where


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranked list of passages for one item.

    `passages` contains (passage id, score or None), from rank 1. All ids are ids in the study.
    """

    name: str
    stage: str
    item_id: str
    passages: Sequence[tuple[str, float | None]]
    where: Where


def add_rankings(
    store: Store,
    rows: Iterable[Ranked],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None],
    correct: Correct | None = None,
) -> ImportReport:
    """Store the lists in `rows` in one transaction.

    If the study has a different list with the same name, stage and item, the list is bad, or a correction; see
    `add_rows`.
    """
    return add_rows(store, _RankingAdder(store.conn), rows, info, skipped, bad, correct=correct)


class _RankingAdder(Adder[Ranked]):
    """Adds lists, and counts their entries."""

    adds = ("lists", "entries")

    def __init__(self, conn: Connection) -> None:
        super().__init__(conn)
        self._added: set[tuple[str, str, str]] = set()

    def add(self, row: Ranked) -> None:
        """Add one list."""
        query = "SELECT passage_id, score FROM rankings WHERE name = ? AND stage = ? AND item_id = ? ORDER BY rank"
        stored = self.conn.execute(query, [row.name, row.stage, row.item_id]).fetchall()
        if stored:
            if [tuple(f) for f in stored] != [tuple(p) for p in row.passages]:
                if (row.name, row.stage, row.item_id) in self._added:
                    raise error_at(
                        row.where, f"a second, different list for '{row.item_id}' in this import", ""
                    )
                old, new = (dumps([list(entry) for entry in side]) for side in (stored, row.passages))
                of = dumps([row.name, row.stage, row.item_id])
                self.differing.append(ChangedValue("ranking", of, "ranks", old, new, row.where))
                return
            self.counts["unchanged"] += 1
            return
        self.conn.executemany(
            "INSERT INTO rankings VALUES (?, ?, ?, ?, ?, ?)",
            [
                (row.name, row.stage, row.item_id, n, pid, score)
                for n, (pid, score) in enumerate(row.passages, 1)
            ],
        )
        self._added.add((row.name, row.stage, row.item_id))
        self.counts["lists"] += 1
        self.counts["entries"] += len(row.passages)
        self.datasets.add(row.item_id.partition(":")[0])


class Ids:
    """Looks up items and passages of the study by the names that another tool's file uses."""

    def __init__(self, store: Store, dataset: str | None = None) -> None:
        self._conn = store.conn
        names = dataset_names(store, dataset)
        self._datasets = [dataset] if dataset is not None else names
        self._items: dict[str, str | None] = {}
        self._by_source_id: dict[str, list[tuple[str, str]]] | None = None

    def item(self, name: str) -> str:
        """Return the id of the item called `name`. The name may omit the data set.

        Raises BadInput unless exactly one item matches.
        """
        # The item is looked up once, because a run repeats its id on every line of the list.
        if name not in self._items:
            names = [name, *(f"{d}:{name}" for d in self._datasets)]
            query = f"SELECT item_id FROM items WHERE item_id IN ({','.join('?' * len(names))})"
            matches = [str(r[0]) for r in self._conn.execute(query, names)]
            matches = [f for f in matches if f == name] or matches
            if len(matches) > 1:
                raise BadInput(
                    f"several data sets have an item '{name}'; choose one with --dataset", field="query"
                )
            self._items[name] = matches[0] if matches else None
        item = self._items[name]
        if item is None:
            raise BadInput(
                f"no item '{name}'; to list the items: {command('judge items show')}", field="query"
            )
        return item

    def passage(self, name: str, item: str) -> str:
        """Return the id of the passage that `name` refers to in the list of this item.

        `name` can be a full id, or the id of a passage within this item. It can also be the id of a passage
        within other items, if the passage has the same text in all of them. Raises BadInput if there is no
        such passage, or if the texts differ.
        """
        query = "SELECT passage_id FROM passages WHERE passage_id IN (?1, ?2 || '/' || ?1) ORDER BY passage_id <> ?1"
        direct = self._conn.execute(query, [name, item]).fetchone()
        if direct is not None:
            return str(direct[0])
        others = self._find_by_source_id().get(name, [])
        if not others:
            raise BadInput(
                f"there is no passage '{name}' in '{item}' or in any other item; if it is a document in a "
                "corpus, import this run together with the corpus, because only documents named in qrels "
                f"or in a run are read: {command('judge items import trec', 'FILE', 'FILE')}",
                field="document",
            )
        # Several items may share a document. If the text of all copies is equal, any copy can be used.
        if len({sha for _, sha in others}) > 1:
            problem = f"'{name}' is the id of {len(others)} passages with different texts; use full ids (item/{name})"
            raise BadInput(problem, field="document")
        return others[0][0]

    def _find_by_source_id(self) -> dict[str, list[tuple[str, str]]]:
        if self._by_source_id is None:
            self._by_source_id = {}
            marks = ",".join("?" * len(self._datasets))
            query = (
                "SELECT p.passage_id, p.item_id, p.content_sha FROM passages AS p JOIN items AS i USING (item_id) "
                f"WHERE i.dataset IN ({marks}) ORDER BY p.rowid"
            )
            for pid, item, sha in self._conn.execute(query, self._datasets):
                self._by_source_id.setdefault(pid.removeprefix(f"{item}/"), []).append((pid, sha))
        return self._by_source_id


def list_rankings(store: Store) -> list[dict[str, Json]]:
    """Return one row per name and stage.

    It has the number of items with a list, the number of entries, and the length of the longest list.
    """
    query = """
        SELECT name, stage, count(DISTINCT item_id) AS items, count(*) AS entries, max(rank) AS longest
        FROM rankings GROUP BY name, stage ORDER BY name, stage
    """
    return list(dicts(store.conn, query, []))


def choose(store: Store, name: str | None, stage: str | None) -> tuple[str, str]:
    """Return (name, stage) for the only ranking that has this name and stage.

    An argument that is None matches every ranking. Raises UsageError unless exactly one ranking matches.
    """
    rankings = [(r["name"], r["stage"]) for r in list_rankings(store)]
    fit = [(n, s) for n, s in rankings if name in (None, n) and stage in (None, s)]
    if len(fit) != 1:
        listed = ", ".join(f"{n} ({s})" for n, s in rankings) or f"none; {describe_ranking_commands()}"
        problem = "several rankings fit" if fit else "no ranking fits"
        raise UsageError(f"{problem}: choose one with --ranking and --stage; available: {listed}")
    return fit[0]


def top(store: Store, name: str, stage: str, k: int) -> dict[str, list[str]]:
    """Return {item: the first k passages in its list}."""
    by_item: dict[str, list[str]] = {}
    query = "SELECT item_id, passage_id FROM rankings WHERE name = ? AND stage = ? AND rank <= ? ORDER BY item_id, rank"
    for item, passage in store.conn.execute(query, [name, stage, k]):
        by_item.setdefault(item, []).append(passage)
    return by_item


LISTED = (
    "FROM rankings AS r JOIN passages AS p ON p.passage_id = r.passage_id "
    "LEFT JOIN passages AS o ON o.item_id = r.item_id AND o.content_sha = p.content_sha"
)
"""SQL that joins ranking entries `r`, the listed passage `p`, and the item's own copy `o` (NULL if it has no copy)."""


def attach(store: Store, ranking: tuple[str, str], k: int, dataset: str | None = None) -> ImportReport:
    """Copy the first k passages of each ranked list to the list's item.

    Passages that the item already has are not copied. All copies are made in one transaction. Gold labels are
    about the passage and its original item, so they are not copied.
    """
    info = ImportInfo("rankings attach", {}, dataset, {"ranking": " ".join(ranking), "k": str(k)})
    return add_rows(store, _CopyAdder(store.conn), _missing(store, ranking, k, dataset), info, [])


def _missing(
    store: Store, ranking: tuple[str, str], k: int, dataset: str | None
) -> Iterator[tuple[str, str]]:
    """Yield (item, listed passage) for each passage that the item does not have."""
    query = (
        # One passage per text is selected, because a list may contain the copies of several items.
        f"SELECT r.item_id, min(r.passage_id) {LISTED} WHERE r.name = ? AND r.stage = ? AND r.rank <= ? "
        "AND o.passage_id IS NULL AND (? IS NULL OR r.item_id IN (SELECT item_id FROM items WHERE dataset = ?)) "
        "GROUP BY r.item_id, p.content_sha ORDER BY r.item_id, min(r.rank)"
    )
    values = [*ranking, k, dataset, dataset]
    # All rows are fetched first, because the rows that are added would change the query's result. The
    # function is a generator, so that the query runs inside the transaction.
    yield from store.conn.execute(query, values).fetchall()


class _CopyAdder(Adder[tuple[str, str]]):
    """Adds copies of passages to items."""

    adds = ("passages",)

    def add(self, row: tuple[str, str]) -> None:
        """Copy one passage."""
        item_id, passage_id = row
        title, text, date, source, sha = self.conn.execute(
            "SELECT title, text, date, source, content_sha FROM passages WHERE passage_id = ?",
            [passage_id],
        ).fetchone()
        # The id is derived from the content, so that the same passage from two rankings is copied only once.
        copy_id = f"{item_id}/{sha[:16]}"
        position = "(SELECT coalesce(max(position) + 1, 0) FROM passages WHERE item_id = ?2)"
        meta = dumps({"copy_of": passage_id})
        self.conn.execute(
            f"INSERT INTO passages VALUES (?1, ?2, {position}, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            [copy_id, item_id, title, text, date, source, meta, sha, self.import_id],
        )
        self.conn.execute(
            "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id) "
            "SELECT ?1, 'passage', item_id, question_id, ?1 FROM items WHERE item_id = ?2",
            [copy_id, item_id],
        )
        self.counts["passages"] += 1
        self.datasets.add(item_id.partition(":")[0])


def describe_ranking_commands() -> str:
    """Describe the commands that create or import a ranking, for use in messages."""
    bm25, imported = command("judge retrieve"), command("judge systems import FILE --stage retrieve")
    return f"{bm25} creates a ranking with BM25, and {imported} imports your own ranking"
