"""Start, find and update runs; a run is identified by its task, model and options."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ulid import ULID

from judge.errors import TaskError
from judge.prompts.load import Task
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store, canonical, content_sha, dumps, now
from judge.types import Json, Judgement


def keep_task(conn: sqlite3.Connection, task: Task) -> None:
    """Store the task's text once. Raises TaskError if the study has this version with different text."""
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
"""Key in a run's provider facts: how many units its last invocation selected, multiplied by the repeats; None
means not counted.
"""
PROBES = "probes"
"""Key in a run's provider facts: the cost of its server's start-up probes, summed over all invocations."""
SPENT = "spent"
"""Key in a run's provider facts: the amount charged, summed over all invocations that ended normally."""
SERVERS = "servers"
"""Key in a run's provider facts: the facts known about the server at each address (`KnownServer`)."""
KNOWN_FOR = timedelta(days=1)
"""How long facts about a server are trusted. It may have been restarted with other settings."""
REQUEST_VERSION = 2
"""The version of the request hash. Versions of adjudge before 0.2.0 also hashed the address and the token
limit (version 1).
"""
TRIED = "tried"
"""Option of a run that was started only by a search. Listings and scores use such a run only if it is named."""
DRIFT = "drift"
"""The value of TRIED in runs that `judge drift` starts."""
IMPORTED = "imported"
"""Option of a run whose labels were imported; its value is the sha256 of the file."""
ADDED = "also_generated"
"""Option of a run whose labels are outputs that a model generated, and that a user added to a system with
imported outputs.
"""
# The same answers are reused when a server moves or a limit changes, so these options are no part of the identity.
FACTS = ("answers", "asked_as", "base_url", "max_output_tokens", "recipe", "settings", TRIED, ADDED)
"""Options that record where a run's requests were sent and with which limits. All other options are part of
the run's identity.
"""


def identity(options: Mapping[str, Json]) -> str:
    """Return what identifies a run in addition to its task and model: every option that changes what an
    answer means.
    """
    return canonical({name: value for name, value in options.items() if name not in FACTS})


@dataclass(frozen=True, slots=True)
class Begun:
    """A run as stored when it was started, with the facts about the servers that it used."""

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
        """The base URLs that the run used, each with the model name that the server reported."""
        first = self.options.get("base_url")
        known = self.provider.get("addresses") or {}
        return {**({first: self.provider.get("reports")} if first else {}), **known}


@dataclass(frozen=True, slots=True)
class KnownServer:
    """The facts that a study stores about a server: the concurrency that it last sustained, and the results
    of its probes.

    `at` is the time when the concurrency was recorded, `learnt_at` the time of the start-up probes; both are
    ISO 8601.
    """

    at: str
    concurrency: int | None = None
    learnt: Json = None
    learnt_at: str = ""

    @classmethod
    def from_json(cls, entry: Json) -> "KnownServer | None":
        """Return a stored entry, or None if it is malformed or dated in the future.

        The study may come from somebody else or from another version. An entry from the future, written while
        the clock was wrong, would never expire and would hide every later entry.
        """
        if not isinstance(entry, dict):
            return None
        at, concurrency, learnt_at = entry.get("at"), entry.get("concurrency"), entry.get("learnt_at", "")
        if not (isinstance(at, str) and isinstance(learnt_at, str)) or at > now():
            return None
        # `isinstance` would accept true.
        if type(concurrency) is not int or concurrency < 1:
            concurrency = None
        return cls(at, concurrency, entry.get("learnt"), learnt_at)

    @property
    def is_fresh(self) -> bool:
        """Whether the facts about the server are recent enough to be used without a new probe."""
        today = datetime.now(UTC)
        return (today - KNOWN_FOR).isoformat() < self.learnt_at <= today.isoformat()


def known_servers(conn: sqlite3.Connection, facts: Mapping[str, Json]) -> dict[str, KnownServer]:
    """Return a mapping from address to server, for all servers that any run used with the vendor and model in
    these facts.
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


def begun(conn: sqlite3.Connection, task: str, model: str, identities: Collection[str]) -> list[Begun]:
    """Return the runs with this task, this model and one of these identities, newest first."""
    marks = ",".join("?" * len(identities))
    query = (
        "SELECT run_id, options, provider, resolved_model FROM runs WHERE task = ? AND model = ? "
        f"AND identity IN ({marks}) ORDER BY started DESC, run_id DESC"
    )
    rows = conn.execute(query, [task, model, *identities])
    return [Begun(run_id, json.loads(o), json.loads(p), resolved) for run_id, o, p, resolved in rows]


def reported_models(conn: sqlite3.Connection, run_id: str) -> set[str]:
    """Return the model names that servers reported in this run's replies."""
    query = "SELECT DISTINCT resolved_model FROM judgements WHERE run_id = ? AND resolved_model IS NOT NULL"
    return {row[0] for row in conn.execute(query, [run_id])}


def start_run(
    store: Store,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    run_id: str | None = None,
) -> tuple[str, bool]:
    """Return the run with this task, model and identity: `run_id` if given, otherwise the newest one, or a
    new run if there is none.

    Returns its id and whether it was already in the study.
    """
    run_identity = identity(options)
    with store.transaction() as conn:
        keep_task(conn, task)
        if run_id is None and (earlier := begun(conn, task.name, model, [run_identity])):
            run_id = earlier[0].run_id
        if run_id is not None:
            # Resumed: until it ends again, whoever watches the run must not take it for finished.
            conn.execute("UPDATE runs SET finished = NULL WHERE run_id = ?", [run_id])
            if TRIED not in options:
                adopt(conn, run_id)
            return run_id, True
        return begin_run(conn, task, model, options, provider), False


def adopt(conn: sqlite3.Connection, run_id: str) -> None:
    """Turn a run that a search tried into an ordinary run."""
    conn.execute(f"UPDATE runs SET options = json_remove(options, '$.{TRIED}') WHERE run_id = ?", [run_id])


def mark_added(store: Store, run_id: str) -> None:
    """Mark a run whose labels are outputs that a model generated, and that a user added to a system."""
    with store.transaction() as conn:
        query = f"UPDATE runs SET options = json_set(options, '$.{ADDED}', json('true')) WHERE run_id = ?"
        conn.execute(query, [run_id])


def unparsed_sample(conn: sqlite3.Connection, run_id: str) -> str | None:
    """Return a reply of the run that could not be parsed; None if there is none with a text."""
    query = (
        "SELECT reply FROM latest_judgements WHERE run_id = ? AND status = 'unparsed' AND reply <> '' "
        "ORDER BY repeat, unit_id LIMIT 1"
    )
    row = conn.execute(query, [run_id]).fetchone()
    return None if row is None else str(row[0])


def tried(conn: sqlite3.Connection) -> set[str]:
    """Return the ids of the runs that a search tried."""
    return {
        run
        for (run,) in conn.execute(
            f"SELECT run_id FROM runs WHERE json_extract(options, '$.{TRIED}') IS NOT NULL"
        )
    }


def add_run(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    judgements: Sequence[Judgement],
    fitted: Collection[str] = (),
) -> tuple[str, bool]:
    """Store a complete run that was made elsewhere, inside the caller's transaction. The `run_id` of its
    judgements is ignored.

    `fitted` are the units whose labels come from a method that was fitted on labels for their questions.
    Returns its id and whether the study already has a run with this task, model and identity. A stored run is
    not changed.
    """
    if earlier := begun(conn, task.name, model, [identity(options)]):
        return earlier[0].run_id, True
    keep_task(conn, task)
    run_id = begin_run(conn, task, model, options, provider)
    add_judgements(conn, [Entry(replace(j, run_id=run_id), None) for j in judgements], set())
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
    """Store another program's outputs as a run, as `add_run` does. Return whether the study already has this run.

    `content` contains the (unit, output) pairs that identify the run. `files` are the imported files with
    their hashes.
    """
    # The time and the files are facts and no identity: the same outputs from a copy of the file are the same run.
    origin = {"imported": now(), "files": dict(files)}
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
    # A ULID sorts by time and has 26 characters, which no other text in a study contains by chance.
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
            now(),
            identity(options),
            REQUEST_VERSION,
        ],
    )
    return run_id


def keep_facts(store: Store, run_id: str, provider: Mapping[str, Json]) -> None:
    """Update the facts about the run's server, such as its model's name, and keep the run's other addresses."""
    with store.transaction() as conn:
        query = "SELECT run_id, options, provider, resolved_model FROM runs WHERE run_id = ?"
        same_id, options, known, resolved = conn.execute(query, [run_id]).fetchone()
        addresses = Begun(same_id, json.loads(options), json.loads(known), resolved).addresses
        used_urls = dict(provider.get("replicas") or {})
        if url := provider.get("base_url"):
            used_urls.setdefault(str(url), provider.get("reports"))
        for url, name in used_urls.items():
            addresses[url] = name or addresses.get(url)
        # What other invocations have stored. All other facts are replaced by those of this invocation.
        kept = {k: v for k, v in json.loads(known).items() if k in (SELECTED, PROBES, SPENT, SERVERS)}
        facts = {**kept, **provider, **({"addresses": addresses} if addresses else {})}
        if SERVERS in provider:
            # An invocation knows only the servers that it used; what other invocations learnt is kept.
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
    """Add the cost of these start-up probes to the cost of earlier probes."""
    if not took["calls"]:
        return
    with store.transaction() as conn:
        facts = _facts(conn, run_id)
        before = facts.get(PROBES) or {}
        known = {name: n for name, n in took.items() if n is not None}
        facts[PROBES] = {**took, **before, **{name: n + (before.get(name) or 0) for name, n in known.items()}}
        conn.execute("UPDATE runs SET provider = ? WHERE run_id = ?", [dumps(facts), run_id])


def used(conn: sqlite3.Connection, run_id: str) -> tuple[int, float]:
    """Return the tokens and US dollars that all invocations of a run used.

    They are the sums over its judgements and start-up probes. If the run was charged more, because calls were lost or
    came without token counts, the charged amount is returned instead.
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


def charged(conn: sqlite3.Connection, run_id: str, tokens: int, cost: float) -> dict[str, Json]:
    """Return the fact `SPENT` of a run after adding the amount that this invocation was charged."""
    before = _facts(conn, run_id).get(SPENT) or {}
    return {
        "tokens": tokens + (before.get("tokens") or 0),
        "cost_usd": cost + (before.get("cost_usd") or 0.0),
    }


def close_run(store: Store, run_id: str, *, finished: bool) -> None:
    """Store the model name that most replies report, and the time at which the run finished."""
    with store.transaction() as conn:
        conn.execute(
            # Most replies: a vendor's alias may move on to a new model during a run.
            "UPDATE runs SET finished = ?1, resolved_model = (SELECT resolved_model FROM judgements WHERE "
            "run_id = ?2 AND resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1) "
            "WHERE run_id = ?2",
            [now() if finished else None, run_id],
        )
