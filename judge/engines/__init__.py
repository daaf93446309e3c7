"""Engines: where a run's calls are made. An engine supplies the provider, and the runner does everything

else.

`local` calls from this process; `ray` from workers on a Ray cluster. Requests, retries, budgets, commits and
the run's
identity belong to the runner, so that one engine can resume a run that another one began.
"""

from judge.engines import ray
from judge.engines.worker import Workers
from judge.errors import UsageError
from judge.providers.base import Provider, Settings
from judge.providers.replicas import replicated

NAMES = ("local", "ray")


def provider(name: str, model: str, settings: Settings, workers: Workers) -> Provider:
    """Return the provider of `vendor/model` behind an engine, not opened yet. Raises UsageError."""
    if name == "local":
        if workers != Workers():
            raise UsageError(
                "--workers, --worker-cpus, --worker-gpus and --worker-command go with --engine ray"
            )
        return replicated(model, settings)
    if name != "ray":
        raise UsageError(f"no engine '{name}'; there are: {', '.join(NAMES)}")
    return ray.provider(model, settings, workers)
