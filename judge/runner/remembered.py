"""What a study remembers of servers between runs: the answers to the opening questions, and the concurrency sustained."""

from collections.abc import Mapping, Sequence

from judge.providers.base import Learning, Provider
from judge.providers.replicas import replicas
from judge.runner.dispatch import ModelServer
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
