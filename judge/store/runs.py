"""Start, find and update runs. A run is identified by its task, model and options."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from ulid import ULID

from judge.errors import TaskError
from judge.prompts.load import Task
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store, canonical, content_sha, dumps, get_time
from judge.types import Json, Judgement


def keep_task(conn: sqlite3.Connection, task: Task) -> None:
    """Store a task, unless it is already stored.

    Raises TaskError if the study has the same version of the task with different text.
    """
    stored = conn.execute("SELECT sha256 FROM tasks WHERE task = ?", [task.name]).fetchone()
    if stored is None:
        conn.execute(
            "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
            [
                task.name,
                task.task_id,
                task.version,
                task.sha256,
                dumps((task.declared or task.spec).model_dump(mode="json", by_alias=True)),
                task.text,
            ],
        )
    elif stored[0] != task.sha256:
        raise TaskError(
            f"{task.path or task.name}: the study already contains {task.name} with different text; save the changed "
            f"file as {task.task_id}.v{task.version + 1}.md"
        )


SELECTED = "selected"
"""Key in a run's provider facts: the number of units that the run's last invocation selected, times the
repeats.

None means that the units were not counted.
"""
PROBES = "probes"
"""Key in a run's provider facts: the cost of the start-up probes, summed over all invocations."""
SPENT = "spent"
"""Key in a run's provider facts: the amount charged, summed over all invocations that ended normally."""
SERVERS = "servers"
"""Key in a run's provider facts: maps each server's address to what is known about the server
(`KnownServer`).
"""
KNOWN_FOR = timedelta(days=1)
"""How long facts about a server are used. After this time, the server may have been restarted with other
settings.
"""
REQUEST_VERSION = 2
"""The version of the request hash.

In version 1, which was used before adjudge 0.2.0, the hash also included the address and the token limit.
"""
TRIED = "tried"
"""Option that marks a run started by a search. Listings and scores include such a run only if the user names
it.
"""
DRIFT = "drift"
"""The value of TRIED for runs that `judge drift` starts."""
IMPORTED = "imported"
"""Option that marks a run whose labels were imported. The value is the sha256 of the imported file."""
ADDED = "also_generated"
"""Option that marks a run with the outputs of a model that a user has added to a system.

The system's other outputs were imported.
"""
# Replies are reused if the server's address or a limit changes, so these options are not part of the
# identity.
FACTS = ("answers", "asked_as", "base_url", "max_output_tokens", "recipe", "settings", TRIED, ADDED)
"""Options that are not part of a run's identity.

They record where the run's requests were sent, and with which limits.
"""


def identity(options: Mapping[str, Json]) -> str:
    """Return the options that, together with the task and the model, identify a run.

    They are part of the identity because they change what a reply means.
    """
    return canonical({name: value for name, value in options.items() if name not in FACTS})


@dataclass(frozen=True, slots=True)
class Begun:
    """A stored run, with the facts about the servers that it used."""

    run_id: str
    options: Mapping[str, Json]
    provider: Mapping[str, Json]
    resolved_model: str | None

    @property
    def mode(self) -> str:
        """The answer mode: `codes` or `json`."""
        return str(self.options.get("mode"))

    @property
    def addresses(self) -> dict[str, str | None]:
        """Maps each base URL that the run used to the model name that the server at this URL reported."""
        first = self.options.get("base_url")
        known = self.provider.get("addresses") or {}
        return {**({first: self.provider.get("reports")} if first else {}), **known}


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What a study stores about a server: the last sustained concurrency and the results of the start-up
    probes.

    `at` is the time when the concurrency was recorded, and `learnt_at` is the time of the probes. Both are in
    ISO 8601.
    """

    at: str
    concurrency: int | None = None
    learnt: Json = None
    learnt_at: str = ""

    @classmethod
    def from_json(cls, entry: Json) -> "KnownServer | None":
        """Parse a stored entry. Return None if it is malformed or dated in the future.

        An entry may come from an untrusted study or another version of adjudge. If the clock was wrong when
        the entry was written, the entry may be dated in the future. It would then never expire, and would
        take precedence over all later entries.
        """
        if not isinstance(entry, dict):
            return None
        at, concurrency, learnt_at = entry.get("at"), entry.get("concurrency"), entry.get("learnt_at", "")
        if not (isinstance(at, str) and isinstance(learnt_at, str)) or at > get_time():
            return None
        # `isinstance` would also accept booleans.
        if type(concurrency) is not int or concurrency < 1:
            concurrency = None
        return cls(at, concurrency, entry.get("learnt"), learnt_at)

    @property
    def is_fresh(self) -> bool:
        """Whether the facts about the server are recent enough to be used without a new probe."""
        today = datetime.now(UTC)
        return (today - KNOWN_FOR).isoformat() < self.learnt_at <= today.isoformat()


def read_known_servers(conn: sqlite3.Connection, facts: Mapping[str, Json]) -> dict[str, KnownServer]:
    """Return {address: server} for the servers that earlier runs used with the same vendor and model.

    `facts` contains the vendor and the model.
    """
    query = (
        f"SELECT json_extract(provider, '$.{SERVERS}') FROM runs WHERE json_extract(provider, '$.vendor') = ? "
        f"AND json_extract(provider, '$.model') = ? AND json_type(provider, '$.{SERVERS}') = 'object'"
    )
    newest: dict[str, KnownServer] = {}
    for (servers,) in conn.execute(query, [facts.get("vendor"), facts.get("model")]):
        for url, entry in json.loads(servers).items():
            server = KnownServer.from_json(entry)
            if server is not None and (url not in newest or newest[url].at < server.at):
                newest[url] = server
    return newest


def find_begun(conn: sqlite3.Connection, task: str, model: str, identities: Collection[str]) -> list[Begun]:
    """Return the runs with this task, this model, and one of these identities, newest first."""
    marks = ",".join("?" * len(identities))
    query = (
        "SELECT run_id, options, provider, resolved_model FROM runs WHERE task = ? AND model = ? "
        f"AND identity IN ({marks}) ORDER BY started DESC, run_id DESC"
    )
    rows = conn.execute(query, [task, model, *identities])
    return [Begun(run_id, json.loads(o), json.loads(p), resolved) for run_id, o, p, resolved in rows]


def read_reported_models(conn: sqlite3.Connection, run_id: str) -> set[str]:
    """Return the model names that servers reported in the replies of this run."""
    # A reply from another model is stored with the status `failed`, and it must not become one of the run's models.
    query = (
        "SELECT DISTINCT resolved_model FROM judgements "
        "WHERE run_id = ? AND resolved_model IS NOT NULL AND status <> 'failed'"
    )
    return {row[0] for row in conn.execute(query, [run_id])}


def start_run(
    store: Store,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    run_id: str | None = None,
) -> tuple[str, bool]:
    """Return (the run's id, whether the run was already stored).

    This is the run `run_id` or, if `run_id` is None, the newest run with this task, model and identity. If
    there is no such run, a new run is started.
    """
    run_identity = identity(options)
    with store.transaction() as conn:
        keep_task(conn, task)
        if run_id is None and (earlier := find_begun(conn, task.name, model, [run_identity])):
            run_id = earlier[0].run_id
        if run_id is not None:
            # The run is resumed, so it must not be shown as finished until it ends again.
            conn.execute("UPDATE runs SET finished = NULL WHERE run_id = ?", [run_id])
            if TRIED not in options:
                adopt(conn, run_id)
            return run_id, True
        return begin_run(conn, task, model, options, provider), False


def adopt(conn: sqlite3.Connection, run_id: str) -> None:
    """Turn a run that a search has started into an ordinary run."""
    conn.execute(f"UPDATE runs SET options = json_remove(options, '$.{TRIED}') WHERE run_id = ?", [run_id])


def mark_added(store: Store, run_id: str) -> None:
    """Record that a run contains outputs that a model added to a system's imported outputs (--also-generate)."""
    with store.transaction() as conn:
        query = f"UPDATE runs SET options = json_set(options, '$.{ADDED}', json('true')) WHERE run_id = ?"
        conn.execute(query, [run_id])


def read_unparsed_sample(conn: sqlite3.Connection, run_id: str) -> str | None:
    """Return the text of a reply that could not be parsed, or None if the run has no such reply."""
    query = (
        "SELECT reply FROM latest_judgements WHERE run_id = ? AND status = 'unparsed' AND reply <> '' "
        "ORDER BY repeat, unit_id LIMIT 1"
    )
    row = conn.execute(query, [run_id]).fetchone()
    return None if row is None else str(row[0])


def read_tried(conn: sqlite3.Connection) -> set[str]:
    """Return the ids of the runs that a search has started."""
    return {
        run
        for (run,) in conn.execute(
            f"SELECT run_id FROM runs WHERE json_extract(options, '$.{TRIED}') IS NOT NULL"
        )
    }


PAGE = 5_000
"""The number of judgements that are written at once."""


def add_run(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    judgements: Iterable[Judgement],
    fitted: Collection[str] = (),
) -> tuple[str, bool]:
    """Store a complete run, such as an imported or derived one, inside the caller's transaction.

    Returns (the run's id, whether the run was already stored). A stored run with the same task, model and
    identity is not changed.

    The judgements are stored under the new run's id; their own `run_id` is ignored. The questions of the
    units in `fitted` are recorded as questions on which the judge was fitted.
    """
    if earlier := find_begun(conn, task.name, model, [identity(options)]):
        return earlier[0].run_id, True
    keep_task(conn, task)
    run_id = begin_run(conn, task, model, options, provider)
    remaining = iter(judgements)
    # In pages, because the judgements may come from a file of any size.
    while page := [Entry(replace(j, run_id=run_id), None) for j in islice(remaining, PAGE)]:
        add_judgements(conn, page, set())
    conn.executemany(
        "INSERT OR IGNORE INTO fitted_on SELECT ?, question_id, NULL FROM units WHERE unit_id = ?",
        [(run_id, unit) for unit in sorted(fitted)],
    )
    conn.execute("UPDATE runs SET finished = started WHERE run_id = ?", [run_id])
    return run_id, False


def add_imported(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    judgements: Sequence[Judgement],
    content: Iterable[Sequence[Json]],
    files: Mapping[str, str],
) -> bool:
    """Store another program's outputs as a run. Return whether the study already has this run.

    `content` contains the (unit, output) pairs that identify the run. `files` maps each imported file to its
    sha256.
    """
    # The time and the files are not part of the run's identity, so that the same outputs from a copy of the
    # file are the same run.
    origin = {"imported": get_time(), "files": dict(files)}
    options = {IMPORTED: content_sha(sorted(content))}
    return add_run(conn, task, model, options, origin, judgements)[1]


def begin_run(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
) -> str:
    """Insert a new run and its annotator inside the caller's transaction. Return the run's id."""
    # A ULID sorts by time. It has 26 characters, so no other text in a study contains it by chance.
    run_id = str(ULID())
    conn.execute(
        "INSERT INTO annotators VALUES (?, 'judge', ?)", [run_id, dumps({"model": model, "task": task.name})]
    )
    conn.execute(
        "INSERT INTO runs (run_id, task, model, options, provider, started, identity, request_version) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            run_id,
            task.name,
            model,
            canonical(dict(options)),
            dumps(dict(provider)),
            get_time(),
            identity(options),
            REQUEST_VERSION,
        ],
    )
    return run_id


def keep_facts(store: Store, run_id: str, provider: Mapping[str, Json]) -> None:
    """Update the facts about the run's server, such as the name of the server's model.

    Facts about the run's other servers are kept.
    """
    with store.transaction() as conn:
        query = "SELECT run_id, options, provider, resolved_model FROM runs WHERE run_id = ?"
        same_id, options, known, resolved = conn.execute(query, [run_id]).fetchone()
        addresses = Begun(same_id, json.loads(options), json.loads(known), resolved).addresses
        used_urls = dict(provider.get("replicas") or {})
        if url := provider.get("base_url"):
            used_urls.setdefault(str(url), provider.get("reports"))
        for url, name in used_urls.items():
            addresses[url] = name or addresses.get(url)
        # These facts were stored by other invocations, so they are kept. All other facts are replaced with
        # those of this invocation.
        kept = {k: v for k, v in json.loads(known).items() if k in (SELECTED, PROBES, SPENT, SERVERS)}
        facts = {**kept, **provider, **({"addresses": addresses} if addresses else {})}
        if SERVERS in provider:
            # An invocation has facts only about the servers that it used, so the facts of other invocations
            # are kept.
            before, learnt = kept.get(SERVERS), provider[SERVERS]
            facts[SERVERS] = {
                **(before if isinstance(before, dict) else {}),
                **(learnt if isinstance(learnt, dict) else {}),
            }
        conn.execute("UPDATE runs SET provider = ? WHERE run_id = ?", [dumps(facts), run_id])


def _facts(conn: sqlite3.Connection, run_id: str) -> dict[str, Json]:
    """Return the facts about the servers of a run."""
    stored = conn.execute("SELECT provider FROM runs WHERE run_id = ?", [run_id]).fetchone()[0]
    return dict(json.loads(stored))


def add_probes(store: Store, run_id: str, took: Mapping[str, Json]) -> None:
    """Add the cost of start-up probes to the cost of the run's earlier probes."""
    if not took["calls"]:
        return
    with store.transaction() as conn:
        facts = _facts(conn, run_id)
        before = facts.get(PROBES) or {}
        known = {name: n for name, n in took.items() if n is not None}
        facts[PROBES] = {**took, **before, **{name: n + (before.get(name) or 0) for name, n in known.items()}}
        conn.execute("UPDATE runs SET provider = ? WHERE run_id = ?", [dumps(facts), run_id])


def read_use(conn: sqlite3.Connection, run_id: str) -> tuple[int, float]:
    """Return the tokens and US dollars that a run has used in total.

    Each number is the larger of two amounts: the sum over the run's judgements and start-up probes, and the
    recorded charge. The charge is larger if calls were lost or had no token counts.
    """
    query = (
        "SELECT coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0), coalesce(sum(cost), 0.0) "
        "FROM judgements WHERE run_id = ?"
    )
    tokens, cost = conn.execute(query, [run_id]).fetchone()
    facts = _facts(conn, run_id)
    probes, charged = facts.get(PROBES) or {}, facts.get(SPENT) or {}
    tokens += (probes.get("input_tokens") or 0) + (probes.get("output_tokens") or 0)
    cost += probes.get("cost_usd") or 0.0
    return max(tokens, charged.get("tokens") or 0), max(cost, charged.get("cost_usd") or 0.0)


def add_charge(conn: sqlite3.Connection, run_id: str, tokens: int, cost: float) -> dict[str, Json]:
    """Return the run's total charge, with the charge for this invocation added.

    The caller stores the total under the key `SPENT` in the run's facts.
    """
    before = _facts(conn, run_id).get(SPENT) or {}
    return {
        "tokens": tokens + (before.get("tokens") or 0),
        "cost_usd": cost + (before.get("cost_usd") or 0.0),
    }


def close_run(store: Store, run_id: str, *, finished: bool) -> None:
    """Store the time when the run finished, and the model name that most of its replies report."""
    with store.transaction() as conn:
        conn.execute(
            # Replies may differ, because a vendor may point an alias to a new model during a run.
            "UPDATE runs SET finished = ?1, resolved_model = (SELECT resolved_model FROM judgements WHERE "
            "run_id = ?2 AND resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1) "
            "WHERE run_id = ?2",
            [get_time() if finished else None, run_id],
        )
