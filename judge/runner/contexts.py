"""Select the passages that a run shows with each item: `--context` for a system under test, `--relevant` for
a judge.

`--context` selects the passages that a system answers from:

none                no passages
oracle              the passages that gold labels mark as evidence. Of the following marks, the first that occurs
                    among an item's passages is used: MIRAGE's oracle chunk, support = supported,
                    relevance = ANSWER-THE-QUESTION, stance = support or refute, any raguard.role (the documents
                    associated with the claim)
oracle:FIELD=A,B    passages whose gold FIELD is A or B (misleading:FIELD=A,B is the same selection)
misleading          passages whose gold raguard.role is misleading
all                 all of the item's passages
fixed5              the item's first five passages
top:K               the first K of the item's list in a ranking
...+noise:N         in addition, N passages from other questions of the data set, drawn with a fixed seed

`--relevant` selects the passages for the input `relevant_passages` of a task:

answer              passages with the gold label ANSWER-THE-QUESTION
answer+related      passages with the gold label ANSWER-THE-QUESTION or RELATED-INFORMATION
marked              passages that the data set marks as relevant (GaRAGe's evidence_relevant is YES)
RUN:answer          passages with this label in RUN, a run of garage_relevance; also RUN:answer+related
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.store import label_rows, rankings
from judge.store.export import find_run
from judge.store.study import Store
from judge.types import GOLD

# MIRAGE gives every question five chunks.
FIXED = 5
# Above every position in a study, and within SQLite's integers.
ALL = 1 << 62
ORACLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("support", ("supported",)),
    ("relevance", ("ANSWER-THE-QUESTION",)),
    ("stance", ("support", "refute")),
    # RAGuard's oracle task shows every document that is associated with the claim, irrelevant ones included.
    ("raguard.role", ("supporting", "misleading", "irrelevant")),
)
MISLEADING = (("raguard.role", ("misleading",)),)
RELEVANCE = "relevance"
RELEVANT_LABELS = {
    "answer": ("ANSWER-THE-QUESTION",),
    "answer+related": ("ANSWER-THE-QUESTION", "RELATED-INFORMATION"),
}
_SPEC = re.compile(
    r"(?P<plain>none|all|fixed5)|top:(?P<k>[1-9]\d{0,3})|(?P<gold>oracle|misleading)(?::(?P<field>[a-z][a-z0-9_.]*)="
    r"(?P<values>[^+]+))?"
)
_NOISE = re.compile(r"(.*)\+noise:([1-9]\d{0,2})")


@dataclass(frozen=True, slots=True)
class Context:
    """A parsed value of `--context`. `name` is the condition under which the answers are stored."""

    name: str
    kind: str
    k: int = 0
    gold: tuple[tuple[str, tuple[str, ...]], ...] = ()
    noise: int = 0
    ranking: tuple[str, str] | None = None


def parse(store: Store, text: str, *, ranking: str | None = None, stage: str | None = None) -> Context:
    """Parse a value of `--context`. Raises UsageError if it is invalid, or if it does not match exactly one
    ranking.
    """
    noisy = _NOISE.fullmatch(text)
    base, noise = (noisy[1], int(noisy[2])) if noisy else (text, 0)
    match = _SPEC.fullmatch(base)
    if match is None:
        raise UsageError(
            f"--context '{text}': must be none, all, oracle, fixed5, top:K or misleading (oracle and misleading may be followed "
            "by :FIELD=LABEL,LABEL); +noise:N may follow any of these"
        )
    name, chosen = base, None
    kind = match["plain"] or match["gold"] or "top"
    if kind == "top":
        chosen = rankings.choose(store, ranking, stage)
        name = f"{base}:{chosen[0]}:{chosen[1]}"
    elif ranking or stage:
        raise UsageError(f"--ranking and --stage require --context top:K, not '{text}'")
    gold = ORACLE if kind == "oracle" else MISLEADING if kind == "misleading" else ()
    if match["field"]:
        gold = ((match["field"], tuple(v.strip() for v in match["values"].split(","))),)
    if noise:
        name += f"+noise:{noise}"
    return Context(name, kind, int(match["k"] or 0), gold, noise, chosen)


def contexts(store: Store, context: Context) -> dict[str, list[str]]:
    """Return a mapping from each item to its passages. Items without passages are left out, except
    with `none` and `top:K`.
    """
    if context.kind == "none":
        passages_of: dict[str, list[str]] = {
            i: [] for (i,) in store.conn.execute("SELECT item_id FROM items ORDER BY rowid")
        }
    elif context.kind == "top" and context.ranking is not None:
        # A question for which nothing was retrieved is answered without passages.
        query = (
            "SELECT item_id FROM items WHERE dataset IN (SELECT i.dataset FROM rankings AS r JOIN items AS i "
            "USING (item_id) WHERE r.name = ? AND r.stage = ?) ORDER BY rowid"
        )
        passages_of = {item: [] for (item,) in store.conn.execute(query, context.ranking)}
        passages_of |= rankings.top(store, *context.ranking, context.k)
    elif context.kind in ("all", "fixed5"):
        query = "SELECT item_id, passage_id FROM passages WHERE position < ? ORDER BY item_id, position"
        passages_of = _group(store.conn.execute(query, [FIXED if context.kind == "fixed5" else ALL]))
    else:
        passages_of = _read_gold_passages(store, context)
    return _with_noise(store, context, passages_of) if context.noise else passages_of


def _read_gold_passages(store: Store, context: Context) -> dict[str, list[str]]:
    # MIRAGE marks its oracle chunk in the data and not by a label.
    passages_of = find_marked(store, "oracle", 1) if context.gold is ORACLE else {}
    for field, values in context.gold:
        for item, passages in find_labelled(store, GOLD, field, values).items():
            # Only the first field for which an item has labels is used. Two fields would mix definitions of evidence.
            passages_of.setdefault(item, passages)
    return passages_of


def find_marked(store: Store, name: str, value: str | int) -> dict[str, list[str]]:
    """Return a mapping from each item to the passages that the data set marks with this value in `meta`."""
    query = (
        "SELECT item_id, passage_id FROM passages WHERE json_extract(meta, ?) = ? ORDER BY item_id, position"
    )
    return _group(store.conn.execute(query, [f"$.{name}", value]))


def find_labelled(store: Store, annotator: str, field: str, values: Sequence[str]) -> dict[str, list[str]]:
    """Return a mapping from each item to the passages that an annotator labelled with one of these values."""
    query = (
        f"SELECT p.item_id, p.passage_id FROM {label_rows.FIRST} JOIN passages AS p ON p.passage_id = l.unit_id "
        f"WHERE l.annotator_id = ? AND l.field = ? AND l.value IN ({','.join('?' * len(values))}) "
        "ORDER BY p.item_id, p.position"
    )
    return _group(store.conn.execute(query, [annotator, field, *values]))


def _group(rows: Iterator[Sequence[str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for item, passage in rows:
        groups.setdefault(item, []).append(passage)
    return groups


def _with_noise(store: Store, context: Context, passages_of: dict[str, list[str]]) -> dict[str, list[str]]:
    """Add passages from other questions, in random order.

    A passage is not used as noise if its text occurs among the item's passages or in the item's context.
    Raises UsageError if a data set has too few passages.
    """
    questions = dict(store.conn.execute("SELECT item_id, question_id FROM items"))
    pools: dict[str, list[tuple[str, str, str]]] = {}
    texts: dict[str, set[str]] = {}
    sha_of: dict[str, str] = {}
    # The order is fixed, because the random draw selects passages by their position.
    query = "SELECT passage_id, item_id, content_sha FROM passages ORDER BY rowid"
    for passage, item, sha in store.conn.execute(query):
        pools.setdefault(item.partition(":")[0], []).append((passage, questions[item], sha))
        texts.setdefault(item, set()).add(sha)
        sha_of[passage] = sha
    out = {}
    for item, passages in passages_of.items():
        pool = pools.get(item.partition(":")[0], [])
        # The item is part of the seed, so that its noise does not depend on which other items are selected.
        draw = random.Random(f"0:{item}")
        taken = texts.get(item, set()) | {sha_of[p] for p in passages}
        noise: list[str] = []
        for place in _shuffle(draw, len(pool)):
            if len(noise) == context.noise:
                break
            passage, question, sha = pool[place]
            # Passages are compared by text, because two copies of a passage would add less noise than two passages.
            if question != questions[item] and sha not in taken:
                taken.add(sha)
                noise.append(passage)
        if len(noise) < context.noise:
            raise UsageError(
                f"+noise:{context.noise}: the data set '{item.partition(':')[0]}' has only {len(noise)} passages from other "
                f"questions that can be added to '{item}'"
            )
        mixed = [*passages, *noise]
        # Without shuffling, the noise would always come last.
        draw.shuffle(mixed)
        out[item] = mixed
    return out


def _shuffle(draw: random.Random, size: int) -> Iterator[int]:
    """Yield the numbers from 0 to size - 1 in random order.

    This is a lazy Fisher-Yates shuffle: the time and memory depend on how many numbers are drawn, not on
    `size`.
    """
    moved: dict[int, int] = {}
    for n in range(size):
        place = draw.randrange(n, size)
        yield moved.get(place, place)
        moved[place] = moved.get(n, n)


@dataclass(frozen=True, slots=True)
class RelevantPassages:
    """A mapping from each item to its relevant passages. `name` is part of the run's identity, because
    different passages make a different run.
    """

    name: str
    passages: dict[str, list[str]]


def relevant(store: Store, text: str) -> RelevantPassages:
    """Parse a value of `--relevant`. Raises UsageError if it is invalid or if no passage is relevant."""
    of, colon, kind = text.rpartition(":")
    if kind not in (*RELEVANT_LABELS, "marked") or (colon and (kind == "marked" or not of)):
        raise UsageError(
            f"--relevant '{text}': must be answer, answer+related, marked, RUN:answer or RUN:answer+related"
        )
    who, name = GOLD, kind
    if of:
        # The whole id is stored, because the prefix or model name that was typed may select a different run later.
        who = str(find_run(store, of)["run_id"])
        name = f"{who}:{kind}"
    passages = (
        find_marked(store, "evidence_relevant", "YES")
        if kind == "marked"
        else find_labelled(store, who, RELEVANCE, RELEVANT_LABELS[kind])
    )
    if not passages:
        raise UsageError(f"--relevant {text}: no passage in the study has this label or mark")
    return RelevantPassages(name, passages)
