"""What a study remembers of servers between runs: the answers to the opening questions, and the concurrency sustained."""

from collections.abc import Mapping, Sequence

from judge.providers.base import Learning, Provider
from judge.providers.replicas import replicas
from judge.runner.calls import ModelNames
from judge.runner.plan import Plan, RunReport
from judge.runner.server import ModelServer
from judge.store import runs
from judge.store.study import Store, now
from judge.types import Json


def recall(store: Store, provider: Provider) -> None:
    """Hand what the study has learnt of a server to the provider, or to each of its replicas."""
    known = runs.known_servers(store.conn, provider.describe())
    for member in replicas(provider):
        server = known.get(str(member.describe().get("base_url")))
        if server is not None and server.is_fresh and isinstance(member, Learning):
            member.recall(server.learnt, server.learnt_at)


def server_notes(servers: Sequence[ModelServer], known: Mapping[str, runs.KnownServer]) -> dict[str, Json]:
    """Return what the study is to remember of these servers, by address. `known` is what it remembered before."""
    notes: dict[str, Json] = {}
    for server in servers:
        before = known.get(server.url or "")
        sustained = server.rate.sustained
        if not server.rate.cuts and before is not None:
            # A short run that was sent without trouble says nothing against more calls at once.
            sustained = max(sustained, before.concurrency or 0)
        learnt: dict[str, Json] = {}
        if isinstance(server.provider, Learning) and server.provider.learnt_at:
            learnt = {"learnt": server.provider.learnt(), "learnt_at": server.provider.learnt_at}
        if server.url is not None and (sustained or learnt):
            notes[server.url] = {"at": now(), "concurrency": sustained or None, **learnt}
    return notes


def names_allowed(
    store: Store, plan: Plan, report: RunReport, facts: Mapping[str, Json]
) -> ModelNames | None:
    """Return the names under which the servers may answer. None: any, because a vendor's own alias may move on.

    `facts` is what the provider describes. A server that is started again with other weights within a run must not add
    their answers to it.
    """
    opened, replicas_named, url = plan.opened, facts.get("replicas"), facts.get("base_url")
    was_asked = opened is None or opened.calls > 0
    if isinstance(replicas_named, dict) and replicas_named:
        by_url = {address: str(name) for address, name in replicas_named.items() if name}
        return ModelNames(set(by_url.values()), set(by_url) if was_asked else set())
    if not url or facts.get("own_server"):
        return None
    # A new run takes the name that the first reply has: what the study remembers may be another model.
    is_open = was_asked or not report.resumed
    names = runs.reported_models(store.conn, report.run_id)
    return ModelNames(names, {str(url)} if is_open else set())
