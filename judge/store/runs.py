"""Runs: the one of a task, model and options."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ulid import ULID

from judge.errors import TaskError
from judge.prompts.load import Task
from judge.store.judgements import Entry, add_judgements
from judge.store.study import Store, canonical, dumps, now
from judge.types import Json, Judgement


def keep_task(conn: sqlite3.Connection, task: Task) -> None:
    """Store the task's text once. Raises TaskError when the study knows this version with other text."""
    found = conn.execute("SELECT sha256 FROM tasks WHERE task = ?", [task.name]).fetchone()
    if found is None:
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
    elif found[0] != task.sha256:
        raise TaskError(
            f"{task.path or task.name}: this study has used {task.name} with another text; save the changed "
            f"file as {task.task_id}.v{task.version + 1}.md"
        )


SELECTED = "selected"
"""The fact of a run that says over how many units it was last asked, every repeat counted; None = too many to say at once."""
PROBES = "probes"
"""The fact of a run that says what the questions about its server took, of all invocations together."""
SPENT = "spent"
"""The fact of a run that says what it was charged, of all invocations together that came to an end in order."""
SERVERS = "servers"
"""The fact of a run that says, by address, what was learnt of a server: see `KnownServer`."""
KNOWN_FOR = timedelta(days=1)
"""What a server can do is known for so long: it may be started again with other settings."""
REQUEST_VERSION = 2
"""How requests are hashed; versions before 0.2.0 hashed the address and the token limit, too (1)."""
TRIED = "tried"
"""The option of a run that a search tried and nobody asked for: it is read where it is named."""
IMPORTED = "imported"
"""The option of a run whose labels came in a file: the file's hash."""
FACTS = ("answers", "asked_as", "base_url", "max_output_tokens", "recipe", "settings", TRIED)
"""Options of a run that say where and how far it was first asked; the others are its identity."""


def identity(options: Mapping[str, Json]) -> str:
    """What makes a run beside its task and model: whatever changes the meaning of an answer."""
    return canonical({name: value for name, value in options.items() if name not in FACTS})


@dataclass(frozen=True, slots=True)
class Begun:
    """A run of the study as it was begun, and what is known of the servers that it asked."""

    run_id: str
    options: Mapping[str, Json]
    provider: Mapping[str, Json]
    resolved_model: str | None

    @property
    def mode(self) -> str:
        """How its answers are given: `codes` or `json`."""
        return str(self.options.get("mode"))

    @property
    def addresses(self) -> dict[str, str | None]:
        """The base URLs that it asked, each with the name that the server gave its model."""
        first = self.options.get("base_url")
        known = self.provider.get("addresses") or {}
        return {**({first: self.provider.get("reports")} if first else {}), **known}


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What a study knows of a server: the concurrency that it last sustained, and what its provider has learnt of it.

    `at` is the time of the concurrency, `learnt_at` that of the questions to the server; both are ISO 8601.
    """

    at: str
    concurrency: int | None = None
    learnt: Json = None
    learnt_at: str = ""

    @classmethod
    def from_json(cls, entry: Json) -> "KnownServer | None":
        """Return what a study says of a server; None if that is no entry of ours, or is dated in the future.

        The study may be somebody else's, or of another version. After a wrong clock was set back, an entry from the
        future would never grow old and would hide every later one.
        """
        if not isinstance(entry, dict):
            return None
        at, concurrency, learnt_at = entry.get("at"), entry.get("concurrency"), entry.get("learnt_at", "")
        if not (isinstance(at, str) and isinstance(learnt_at, str)) or at > now():
            return None
        if type(concurrency) is not int or concurrency < 1:
            concurrency = None
        return cls(at, concurrency, entry.get("learnt"), learnt_at)

    @property
    def is_fresh(self) -> bool:
        """Whether the server can be taken to be what it was."""
        today = datetime.now(UTC)
        return (today - KNOWN_FOR).isoformat() < self.learnt_at <= today.isoformat()


def known_servers(conn: sqlite3.Connection, facts: Mapping[str, Json]) -> dict[str, KnownServer]:
    """By address: what is known of the servers that were asked for the model that a provider says these facts of."""
    query = (
        f"SELECT json_extract(provider, '$.{SERVERS}') FROM runs WHERE json_extract(provider, '$.vendor') = ? "
        f"AND json_extract(provider, '$.model') = ? AND json_type(provider, '$.{SERVERS}') = 'object'"
    )
    found: dict[str, KnownServer] = {}
    for (servers,) in conn.execute(query, [facts.get("vendor"), facts.get("model")]):
        for url, entry in json.loads(servers).items():
            server = KnownServer.from_json(entry)
            if server is not None and (url not in found or found[url].at < server.at):
                found[url] = server
    return found


def begun(conn: sqlite3.Connection, task: str, model: str, identities: Collection[str]) -> list[Begun]:
    """The runs of a task and model with one of these identities, the newest first."""
    marks = ",".join("?" * len(identities))
    query = (
        "SELECT run_id, options, provider, resolved_model FROM runs WHERE task = ? AND model = ? "
        f"AND identity IN ({marks}) ORDER BY started DESC, run_id DESC"
    )
    rows = conn.execute(query, [task, model, *identities])
    return [Begun(run_id, json.loads(o), json.loads(p), resolved) for run_id, o, p, resolved in rows]


def reported_models(conn: sqlite3.Connection, run_id: str) -> set[str]:
    """The names that servers gave the model in replies of this run."""
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
    """The run of this task, model and identity: the one named or the newest of the study, else a new one.

    Returns its id and whether it was there before.
    """
    own = identity(options)
    with store.transaction() as conn:
        keep_task(conn, task)
        if run_id is None and (found := begun(conn, task.name, model, [own])):
            run_id = found[0].run_id
        if run_id is not None:
            conn.execute("UPDATE runs SET finished = NULL WHERE run_id = ?", [run_id])
            if TRIED not in options:
                adopt(conn, run_id)
            return run_id, True
        return begin_run(conn, task, model, options, provider), False


def adopt(conn: sqlite3.Connection, run_id: str) -> None:
    """Make a run that was only tried one like any other."""
    conn.execute(f"UPDATE runs SET options = json_remove(options, '$.{TRIED}') WHERE run_id = ?", [run_id])


def tried(conn: sqlite3.Connection) -> set[str]:
    """The runs that a search tried."""
    return {
        run
        for (run,) in conn.execute(
            f"SELECT run_id FROM runs WHERE json_extract(options, '$.{TRIED}') IS NOT NULL"
        )
    }


def keep_run(
    store: Store,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    judgements: Sequence[Judgement],
    fitted: Collection[str] = (),
) -> tuple[str, bool]:
    """A whole run that was made elsewhere, in one transaction; a `Judgement` need not know its run.

    `fitted`: the units whose labels were given by what was fitted on labels of their questions.
    Returns its id and whether the study has it already (task, model and identity), which then stays as it is.
    """
    with store.transaction() as conn:
        return add_run(conn, task, model, options, provider, judgements, fitted)


def add_run(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
    judgements: Sequence[Judgement],
    fitted: Collection[str] = (),
) -> tuple[str, bool]:
    """As `keep_run`, inside the caller's transaction."""
    if found := begun(conn, task.name, model, [identity(options)]):
        return found[0].run_id, True
    keep_task(conn, task)
    run_id = begin_run(conn, task, model, options, provider)
    add_judgements(conn, [Entry(replace(j, run_id=run_id), None) for j in judgements], set())
    conn.executemany(
        "INSERT OR IGNORE INTO fitted_on SELECT ?, question_id, NULL FROM units WHERE unit_id = ?",
        [(run_id, unit) for unit in sorted(fitted)],
    )
    conn.execute("UPDATE runs SET finished = started WHERE run_id = ?", [run_id])
    return run_id, False


def begin_run(
    conn: sqlite3.Connection,
    task: Task,
    model: str,
    options: Mapping[str, Json],
    provider: Mapping[str, Json],
) -> str:
    """A new run and its annotator, inside the caller's transaction; its id."""
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
    """Note what is known of the server by now (what it refused, its model's name), beside its other addresses."""
    with store.transaction() as conn:
        query = "SELECT run_id, options, provider, resolved_model FROM runs WHERE run_id = ?"
        found, options, known, resolved = conn.execute(query, [run_id]).fetchone()
        addresses = Begun(found, json.loads(options), json.loads(known), resolved).addresses
        asked = dict(provider.get("replicas") or {})
        if url := provider.get("base_url"):
            asked.setdefault(str(url), provider.get("reports"))
        for url, name in asked.items():
            addresses[url] = name or addresses.get(url)
        own = {k: v for k, v in json.loads(known).items() if k in (SELECTED, PROBES, SPENT, SERVERS)}
        facts = {**own, **provider, **({"addresses": addresses} if addresses else {})}
        if SERVERS in provider:
            # An invocation knows of the servers that it asked itself; what others have learnt elsewhere stays.
            before, learnt = own.get(SERVERS), provider[SERVERS]
            facts[SERVERS] = {
                **(before if isinstance(before, dict) else {}),
                **(learnt if isinstance(learnt, dict) else {}),
            }
        conn.execute("UPDATE runs SET provider = ? WHERE run_id = ?", [dumps(facts), run_id])


def add_probes(store: Store, run_id: str, took: Mapping[str, Json]) -> None:
    """Note what the questions about the server took, beside what they took before."""
    if not took["calls"]:
        return
    with store.transaction() as conn:
        facts = json.loads(conn.execute("SELECT provider FROM runs WHERE run_id = ?", [run_id]).fetchone()[0])
        before = facts.get(PROBES) or {}
        known = {name: n for name, n in took.items() if n is not None}
        facts[PROBES] = {**took, **before, **{name: n + (before.get(name) or 0) for name, n in known.items()}}
        conn.execute("UPDATE runs SET provider = ? WHERE run_id = ?", [dumps(facts), run_id])


def used(conn: sqlite3.Connection, run_id: str) -> tuple[int, float]:
    """Tokens and US dollars that all invocations of a run took.

    They are what its judgements and the questions about its server say. Where it was charged more, because calls were lost or
    came without counts, they are what it was charged.
    """
    query = (
        "SELECT coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0), coalesce(sum(cost), 0.0) "
        "FROM judgements WHERE run_id = ?"
    )
    tokens, cost = conn.execute(query, [run_id]).fetchone()
    facts = json.loads(conn.execute("SELECT provider FROM runs WHERE run_id = ?", [run_id]).fetchone()[0])
    probes, charged = facts.get(PROBES) or {}, facts.get(SPENT) or {}
    tokens += (probes.get("input_tokens") or 0) + (probes.get("output_tokens") or 0)
    cost += probes.get("cost_usd") or 0.0
    return max(tokens, charged.get("tokens") or 0), max(cost, charged.get("cost_usd") or 0.0)


def charged(conn: sqlite3.Connection, run_id: str, tokens: int, cost: float) -> dict[str, Json]:
    """The fact `SPENT` of a run with what this invocation was charged."""
    facts = json.loads(conn.execute("SELECT provider FROM runs WHERE run_id = ?", [run_id]).fetchone()[0])
    before = facts.get(SPENT) or {}
    return {
        "tokens": tokens + (before.get("tokens") or 0),
        "cost_usd": cost + (before.get("cost_usd") or 0.0),
    }


def close_run(store: Store, run_id: str, *, finished: bool) -> None:
    """Note the model name that most replies carried, and the time when the run came to its end."""
    with store.transaction() as conn:
        conn.execute(
            "UPDATE runs SET finished = ?1, resolved_model = (SELECT resolved_model FROM judgements WHERE "
            "run_id = ?2 AND resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1) "
            "WHERE run_id = ?2",
            [now() if finished else None, run_id],
        )
