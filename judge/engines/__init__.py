"""Where the calls of a run are made: an engine gives the runner its provider, and the runner keeps all else.

`local` asks from this process; `ray` from workers on a Ray cluster. Requests, retries, budgets, commits and the run's
identity are the runner's in either case, so a run that one engine began another goes on with.
"""

from judge.engines import ray
from judge.engines.worker import Workers
from judge.errors import UsageError
from judge.providers.base import Provider, Settings
from judge.providers.replicas import replicated

NAMES = ("local", "ray")


def provider(name: str, model: str, settings: Settings, workers: Workers) -> Provider:
    """The provider of `vendor/model` behind an engine, not opened yet. Raises UsageError."""
    if name == "local":
        if workers != Workers():
            raise UsageError(
                "--workers, --worker-cpus, --worker-gpus and --worker-command go with --engine ray"
            )
        return replicated(model, settings)
    if name != "ray":
        raise UsageError(f"no engine '{name}'; there are: {', '.join(NAMES)}")
    return ray.provider(model, settings, workers)
