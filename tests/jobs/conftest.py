"""A study, and each vendor's server of batches in turn, whose batches are looked at all the time."""

from collections.abc import Iterator

import pytest

from judge.jobs import whole
from tests.jobs.helpers import SERVERS
from tests.loopback.batches_server import Batching
from tests.loopback.wire import threaded
from tests.runner.helpers import db

__all__ = ["db"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "POLL_SECONDS", 0.01)


@pytest.fixture(params=sorted(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Batching]:
    with threaded(SERVERS[request.param]()) as running:
        yield running
