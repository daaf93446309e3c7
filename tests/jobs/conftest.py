"""Batches of the tests are looked at all the time."""

import pytest

from judge.jobs import whole


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "POLL_SECONDS", 0.01)
