"""Write counter claims: check each claim, have the model write a counter claim, and store both as a pair of items."""

from collections.abc import Mapping
from dataclasses import dataclass

from judge.commands import command
from judge.errors import UsageError
from judge.labels import relation
from judge.prompts.load import Task
from judge.runner.flow import Flow
from judge.store.imports import ImportReport
from judge.store.pairs import NewPair, add_pairs
from judge.store.selection import Selection, list_selected, select
from judge.text import normalise

VALIDITY, COUNTER, CHANGED = "claim_validity", "counter_claim", "changed"
_ALONE = "item_id IN (SELECT item_id FROM items WHERE pair_id IS NULL)"


@dataclass(frozen=True, slots=True)
class Built:
    """Counts of claims by outcome.

    `valid`, `invalid` and `unknown` (no label) sum to `claims`; `pairs`, `repeated` and `unwritten` sum to
    `valid`. A counter claim is `repeated` if it only repeats the claim.
    """

    claims: int
    valid: int
    invalid: int
    unknown: int
    pairs: int
    repeated: int
    unwritten: int
    report: ImportReport


async def build(
    flow: Flow, check: Flow, tasks: tuple[Task, Task], selection: Selection, into: str | None = None
) -> Built:
    """Check the claims that are not yet in a pair, have the model write counter claims for the valid ones,
    and store the pairs.

    `check` runs the first of the two tasks (claim_validity), and `flow` runs the second (counter_claim).
    Raises UsageError if no claim is selected, and Halted if a run was stopped.
    """
    store = flow.store
    where = f"({selection.where}\n) AND {_ALONE}" if selection.where else _ALONE
    # Pairs are items too. Without this condition a second call would write counter claims to them.
    only = Selection(where, selection.limit, selection.sample_seed)
    n, _ = select(store, tasks[0], only)
    items = list_selected(store)
    if not n:
        raise UsageError(
            f"no claim is left to pair: every item with a claim is already in a pair, or no item has a claim; to list the items: {command('judge items show')}"
        )
    checked = await check.run(tasks[0], only)
    validity = relation.values(store.conn, checked.run_id, VALIDITY)
    valid = [item for item in items if validity.get(item) == "valid"]
    counter: Mapping[str, str] = {}
    changed: Mapping[str, str] = {}
    run_id = ""
    if valid:
        # The keys select the valid claims and no others. Their lists are empty: the prompt shows no passages.
        written = await flow.run(tasks[1], Selection(contexts={item: [] for item in valid}))
        run_id = written.run_id
        counter = relation.values(store.conn, run_id, COUNTER)
        changed = relation.values(store.conn, run_id, CHANGED)
    texts = dict(store.conn.execute("SELECT item_id, claim FROM items"))
    new = [
        NewPair(item, " ".join(counter[item].split()), changed.get(item, ""), run_id)
        for item in valid
        # A model may return the claim unchanged. Such a pair would have no contrast.
        if item in counter and normalise(counter[item]) != normalise(texts[item])
    ]
    report = add_pairs(store, new, into)
    return Built(
        claims=n,
        valid=len(valid),
        invalid=sum(validity.get(item) == "invalid" for item in items),
        unknown=sum(item not in validity for item in items),
        pairs=len(new),
        repeated=sum(item in counter for item in valid) - len(new),
        unwritten=sum(item not in counter for item in valid),
        report=report,
    )
