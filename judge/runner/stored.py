"""Read replies with the settings of a stored run, without a connection to its model."""

import json
from collections.abc import Mapping

from judge.prompts.render import Mode
from judge.providers.base import BaseProvider
from judge.runner.requests import Asker, Sampling
from judge.store.export import find_named_run, read_stored_task
from judge.store.study import Store
from judge.types import Json, Reply, Request


class StoredFacts(BaseProvider):
    """A provider that only has the stored options of a run. It cannot be called."""

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._options = options

    async def complete(self, request: Request) -> Reply:
        raise AssertionError("a stored run has no connection")

    def describe(self) -> Mapping[str, Json]:
        return {name: self._options[name] for name in ("options", "content") if name in self._options}


def asker_of(store: Store, run_id: str, max_output_tokens: int = Sampling().max_output_tokens) -> Asker:
    """Return an `Asker` with the settings of a stored run. It accepts replies in the same way as the run did."""
    stored_run = find_named_run(store, run_id)
    options = json.loads(stored_run["options"])
    task = read_stored_task(store, stored_run["task"]).thinking(options.get("rationale"))
    sampling = Sampling(
        temperature=options.get("temperature"),
        seed=options.get("seed"),
        max_output_tokens=max_output_tokens,
        label_order=options.get("label_order", "declared"),
    )
    mode, mask = Mode(options["mode"]), options.get("mask")
    return Asker(task, stored_run["model"], StoredFacts(options), sampling, mode, mask=mask)
