"""Reuse the facts about servers that a study has stored: the results of start-up probes and the sustained
concurrency.
"""

from collections.abc import Mapping, Sequence

from judge.accept import ModelNames
from judge.providers.base import Learning, Provider
from judge.providers.replicas import replicas
from judge.runner.plan import Plan, RunReport
from judge.runner.server import ModelServer
from judge.store import runs
from judge.store.study import Store, get_time
from judge.types import Json


def recall(store: Store, provider: Provider) -> None:
    """Pass the stored facts about a server to the provider, or to each of its replicas."""
    known = runs.read_known_servers(store.conn, provider.describe())
    for member in replicas(provider):
        server = known.get(str(member.describe().get("base_url")))
        if server is not None and server.is_fresh and isinstance(member, Learning):
            member.recall(server.learnt, server.learnt_at)


def server_notes(servers: Sequence[ModelServer], known: Mapping[str, runs.KnownServer]) -> dict[str, Json]:
    """Return the facts to store about these servers, by address. `known` contains the facts from earlier runs."""
    notes: dict[str, Json] = {}
    for server in servers:
        before = known.get(server.url or "")
        sustained = server.rate.sustained
        if not server.rate.cuts and before is not None:
            # A short run needs few calls at once, so its concurrency does not replace a larger one from an earlier run.
            sustained = max(sustained, before.concurrency or 0)
        learnt: dict[str, Json] = {}
        if isinstance(server.provider, Learning) and server.provider.learnt_at:
            learnt = {"learnt": server.provider.learnt(), "learnt_at": server.provider.learnt_at}
        if server.url is not None and (sustained or learnt):
            notes[server.url] = {"at": get_time(), "concurrency": sustained or None, **learnt}
    return notes


def names_allowed(store: Store, plan: Plan, report: RunReport, facts: Mapping[str, Json]) -> ModelNames:
    """Return the model names that are accepted in the run's replies.

    If a server is restarted with different weights during a run, answers from these weights must not be added
    to the run. `facts` comes from `Provider.describe`.
    """
    replicas_named = facts.get("replicas")
    names = runs.read_reported_models(store.conn, report.run_id)
    if isinstance(replicas_named, dict) and replicas_named:
        by_url = {address: str(name) for address, name in replicas_named.items() if name}
        was_asked = plan.opened is None or plan.opened.calls > 0
        return ModelNames(names | set(by_url.values()), set(by_url) if was_asked else ())
    return ModelNames(names, ())
