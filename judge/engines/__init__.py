"""Engines determine where a run's calls are made. An engine supplies the provider, and the runner does
everything else.

`local` makes calls from this process; `ray` makes them from workers on a Ray cluster. Requests, retries,
budgets, commits and the run's identity belong to the runner, so that one engine can resume a run that another
one began.
"""

from judge.engines import ray
from judge.engines.worker import Workers
from judge.providers.base import Provider, Settings
from judge.providers.replicas import replicated


def provider(model: str, settings: Settings, workers: Workers | None = None) -> Provider:
    """Return the unopened provider for `vendor/model`, which makes calls through workers or, without workers,
    in this process. Raises UsageError.
    """
    return replicated(model, settings) if workers is None else ray.provider(model, settings, workers)
