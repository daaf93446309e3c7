"""Where the calls of a run are made: an engine gives the runner its provider, and the runner keeps all else.

`local` asks from this process; `ray` from workers on a Ray cluster. Requests, retries, budgets, commits and the run's
identity are the runner's in either case, so a run that one engine began another goes on with.
"""

from __future__ import annotations

from dataclasses import dataclass

from judge.errors import UsageError
from judge.providers import base
from judge.providers.base import Provider, Settings

NAMES = ("local", "ray")


@dataclass(frozen=True, slots=True)
class Workers:
    """What an engine starts. `cpus` and `gpus` are what each worker takes of the cluster; `command` starts a server
    beside each worker, with `{port}` for the port that it listens at."""

    n: int = 2
    cpus: float = 0.1
    gpus: float = 0.0
    command: str | None = None


def provider(name: str, model: str, settings: Settings, workers: Workers) -> Provider:
    """The provider of `vendor/model` behind an engine, not opened yet. Raises UsageError."""
    if name == "local":
        if workers != Workers():
            raise UsageError(
                "--workers, --worker-cpus, --worker-gpus and --worker-command go with --engine ray"
            )
        return base.get(model, settings)
    if name != "ray":
        raise UsageError(f"no engine '{name}'; there are: {', '.join(NAMES)}")
    from judge.engines import ray

    return ray.provider(model, settings, workers)
