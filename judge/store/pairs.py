"""Store pairs of a claim and its counterclaim as items, and read their human labels.

"Retrieving Facts or Reinforcing Beliefs?" (ConfirmBiasRAG, anonymous submission) keeps a pair if at least 73
% of its annotators confirm it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from judge.errors import BadInput, NothingToScore
from judge.store import label_rows
from judge.store.imports import ImportInfo, ImportReport
from judge.store.items import add_items
from judge.store.study import Store
from judge.types import AnnotatorKind, Item, Json, Passage, Row, Where

FIELD = "counter_check"
CONFIRMED = "yes"
CONSENSUS = 0.73
"""The share of annotators who must confirm a pair, from the paper."""


@dataclass(frozen=True, slots=True)
class NewPair:
    """A counterclaim that the run `run_id` has written for an item.

    `changed` is the relation that the counterclaim changes, written as "old -> new".
    """

    item_id: str
    counter: str
    changed: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A pair with its human votes. `yes` is the number of `votes` that confirm it."""

    unit_id: str
    pair_id: str
    original_id: str
    counter_id: str
    claim: str
    counter_claim: str
    yes: int
    votes: int

    @property
    def kept(self) -> bool | None:
        """Whether enough annotators confirm the pair, or None if it has no votes."""
        # The tolerance makes 73 of 100 pass at 0.73, which binary floating point would reject.
        return None if not self.votes else self.yes >= CONSENSUS * self.votes - 1e-9


def add_pairs(store: Store, pairs: Iterable[NewPair], into: str | None = None) -> ImportReport:
    """Store each pair as two items, PAIR-original and PAIR-counter, in one transaction.

    Their data set is `into` or, if it is None, the claim's data set with the suffix `-pairs`. Both items get
    copies of the claim's passages, but not its gold labels, which are about the original claim. For
    confidence intervals, the two items of a pair are one cluster. A stored pair is never changed. Raises
    BadInput if the claim already has a different counterclaim.
    """
    info = ImportInfo("pairs", {}, into)
    return add_items(store, (row for pair in pairs for row in _rows(store, pair, into)), info, [])


def _rows(store: Store, pair: NewPair, into: str | None) -> Iterator[Row]:
    dataset, _, source_id = pair.item_id.partition(":")
    dataset = into or f"{dataset}-pairs"
    (claim,) = store.conn.execute("SELECT claim FROM items WHERE item_id = ?", [pair.item_id]).fetchone()
    # A pair has one counter claim: labels of the stored one must not appear beside another text.
    other = store.conn.execute(
        "SELECT claim FROM items WHERE item_id = ?", [f"{dataset}:{source_id}-counter"]
    ).fetchone()
    if other is not None and other[0] != pair.counter:
        raise BadInput(
            f"'{dataset}' already has a different counterclaim to '{pair.item_id}', and stored rows are "
            "never replaced; choose another data set with --into"
        )
    # Provenance goes to `meta`, which no prompt and no score reads.
    meta: dict[str, Json] = {"from": pair.item_id, "changed": pair.changed, "run": pair.run_id}
    for polarity, text in (("original", str(claim)), ("counter", pair.counter)):
        item = Item(
            source_id=f"{source_id}-{polarity}",
            dataset=dataset,
            question_id=source_id,
            claim=text,
            pair_id=source_id,
            polarity=polarity,
            meta=dict(meta),
            # Both claims get the same passages, so that they are judged on the same evidence.
            passages=_passages(store, pair.item_id),
        )
        yield Row(item, Where(f"run {pair.run_id}", 0))


def _passages(store: Store, item: str) -> list[Passage]:
    query = "SELECT passage_id, text, title, date, source FROM passages WHERE item_id = ? ORDER BY position"
    return [
        Passage(text, pid.removeprefix(f"{item}/"), title, date, source)
        for pid, text, title, date, source in store.conn.execute(query, [item])
    ]


def datasets(store: Store) -> list[str]:
    """Return the names of the data sets with pairs."""
    query = "SELECT DISTINCT i.dataset FROM units AS u JOIN items AS i USING (item_id) WHERE u.kind = 'pair'"
    return sorted(str(row[0]) for row in store.conn.execute(query))


def has_pairs(store: Store, dataset: str) -> bool:
    """Return whether the data set has pairs."""
    return dataset in datasets(store)


def read_checked(store: Store, dataset: str | None = None) -> list[Checked]:
    """Return all pairs with their votes from people (blind labels), in import order.

    Raises NothingToScore if the data set has no pairs.
    """
    with_pairs = datasets(store)
    if dataset is not None and dataset not in with_pairs:
        raise NothingToScore(
            f"the data set '{dataset}' has no pairs; data sets with pairs: {', '.join(with_pairs) or 'none'}"
        )
    query = f"""
        SELECT u.unit_id, o.pair_id, o.item_id, c.item_id, o.claim, c.claim,
               (SELECT json_group_array(l.value) FROM {label_rows.FIRST} JOIN annotators AS a USING (annotator_id)
                WHERE l.unit_id = u.unit_id AND l.field = ?1 AND a.kind = ?2)
        FROM units AS u JOIN items AS o USING (item_id)
        JOIN items AS c ON c.item_id = json_extract(u.span, '$.counter')
        WHERE u.kind = 'pair' AND (?3 IS NULL OR o.dataset = ?3) ORDER BY u.rowid
    """
    pairs = []
    rows = store.conn.execute(query, [FIELD, str(AnnotatorKind.HUMAN), dataset])
    for unit, pair, original, counter, claim, counter_claim, votes in rows:
        labels = json.loads(votes)
        yes = labels.count(CONFIRMED)
        pairs.append(Checked(unit, pair, original, counter, claim, counter_claim, yes, len(labels)))
    return pairs


def counts(pairs: Iterable[Checked]) -> Mapping[str, int]:
    """Count how many pairs are kept, how many are dropped, and how many have no votes."""
    outcomes = [pair.kept for pair in pairs]
    return {"kept": outcomes.count(True), "dropped": outcomes.count(False), "unchecked": outcomes.count(None)}
