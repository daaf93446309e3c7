"""`echo/LABEL`: a provider that answers every unit with LABEL."""

import json
from collections.abc import Mapping

from judge.providers.base import Needs, Settings
from judge.types import Json, Reply, Request

NEEDS = Needs(examples="echo/support", key="ECHO_KEY")


class Provider:
    """One label, said to everything."""

    label_codes = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self._label = name

    async def open(self) -> None:
        """Nothing to do."""

    async def complete(self, request: Request) -> Reply:
        """The label as the task's JSON asks for it."""
        return Reply(json.dumps({"stance": self._label}))

    async def close(self) -> None:
        """Nothing to do."""

    def describe(self) -> Mapping[str, Json]:
        """What is stored with a run."""
        return {"echo": self._label}
