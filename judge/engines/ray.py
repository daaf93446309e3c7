"""Ray: workers on one or several machines make the calls, each with its own provider or server.

To the runner, a worker is one of several servers (`judge.providers.replicas`): it has its own concurrency limit, and
its replies arrive one by one. A worker that dies is an unreachable server: its calls in flight are retried on the
others, and it is used again after Ray has restarted it. Requests are sent in blocks of at most 64. Only requests and
replies pass between the processes; the study is written here, by its single writer.

RAY_ADDRESS is the address of the cluster. If it is not set, a cluster is started on this machine and shut
down after the run. Workers read keys from their own environment; keys are not sent to them. Usage statistics
are off.
"""

import asyncio
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from judge.engines.worker import Company, Served, Worker, Workers
from judge.errors import (
    AdjudgeError,
    KeyProblem,
    MissingExtra,
    ProviderError,
    ServerFault,
    Unreachable,
    UsageError,
)
from judge.providers import base
from judge.providers.base import NoLimits, PairReader, Probing, Provider, Purse, Settings
from judge.providers.replicas import Replicas
from judge.types import Json, Reply, Request, Usage

BLOCK = 64
"""Maximum number of requests sent to a worker at once. This many requests are lost if the worker dies."""
OPENING_TOKENS = 6_000
"""An upper bound on the tokens of a worker's start-up probes."""
AS_WE_ARE = {"worker_niceness": 0}
"""Workers of a cluster that we start get the same priority as this process. Ray's default niceness of 15 leaves them almost
no time on a busy machine, although they do its work."""
CPUS = 0.1
"""Cores that each worker reserves. Two workers that reserve a whole core each would wait forever on a machine
with two cores, although they mostly wait for replies.
"""
CONNECT_SECONDS = 10.0
OBJECT_STORE = 80 * 2**20
"""Size in bytes of the object store in a cluster that we start. Requests and replies are small and hardly use it."""


def provider(model: str, settings: Settings, workers: Workers) -> Provider:
    """Return an unopened provider whose calls are made by workers. Raises UsageError or MissingExtra."""
    if settings.replicas:
        raise UsageError("--workers accepts only one --base-url, because every worker is a separate server")
    if workers.command is not None and "{port}" not in workers.command:
        raise UsageError("--worker-command must contain {port}, which is replaced with the server's port")
    # The capabilities of the model are read from a provider that is never opened. Unknown models and options
    # are refused here, too.
    alike = base.get(model, settings)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Under `uv run`, Ray would pack the current folder for its workers. It would read the study behind
    # SQLite's back, which releases the locks of this process on it, and send it to the cluster.
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    try:
        import ray  # noqa: F401
    except ImportError as e:
        raise MissingExtra("--workers needs Ray: pip install 'adjudge[ray]'") from e
    kind = RemotePairs if isinstance(alike, PairReader) else Ray
    return kind(model, settings, workers, alike)


class Ray(Replicas):
    """A model that is called through workers on a Ray cluster."""

    def __init__(self, model: str, settings: Settings, workers: Workers, alike: Provider) -> None:
        self.timeout = settings.timeout
        served = Served(model, settings, workers.command)
        self._workers = [Remote(number, served, workers, alike) for number in range(1, workers.n + 1)]
        super().__init__(self._workers)
        self._cluster = Cluster()

    async def open(self) -> None:
        """Connect to the cluster or start one, and open every worker's provider. Raises the same errors as
        `Replicas.open`.
        """
        await asyncio.to_thread(self._cluster.start)
        await super().open()
        first = self._open_ones()[0]
        self.max_concurrency = first.max_concurrency

    async def close(self) -> None:
        """Stop the workers, and also the cluster if it was started here."""
        await super().close()
        await asyncio.to_thread(self._cluster.stop)

    def describe(self) -> Mapping[str, Json]:
        """Return the facts of the first worker's provider, with an entry that Ray was used."""
        facts = dict(self._open_ones()[0].describe())
        return {**facts, "engine": "ray", "workers": len(self.members)}

    def remarks(self) -> tuple[str, ...]:
        """Return the remarks from the workers' providers, by worker, and how many workers died."""
        by_worker = [f"worker {w.number}: {text}" for w in self._workers for text in w.remarks]
        died = sum(worker.deaths for worker in self._workers)
        lost = sum(worker.lost for worker in self._workers)
        if died:
            by_worker.append(
                f"workers died {died} {'time' if died == 1 else 'times'}, with {lost} calls in flight"
            )
        return tuple(by_worker)


class RemotePairs(Ray):
    """A classifier of text pairs that is called through workers (see `PairReader`)."""

    reads_pairs = True

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Prepare every worker for these labels. Raises UsageError if the model does not support them."""
        for worker in self._workers:
            worker.suit(task, labels)


class Remote:
    """A single worker, as a provider that sends its calls in blocks."""

    label_codes = False
    max_concurrency: int | None = None

    def __init__(self, number: int, served: Served, workers: Workers, alike: Provider) -> None:
        self.number, self.timeout = number, served.settings.timeout
        self.deaths = self.lost = 0
        self._is_alive = False
        """Whether the worker has answered since it last died: several blocks report the same death."""
        self.purse: Purse = NoLimits()
        self.remarks: tuple[str, ...] = ()
        self._served, self._takes = served, workers
        self._actor: Any = None
        self._facts = alike.describe()
        self._asks = isinstance(alike, Probing)
        self._suited: tuple[str, tuple[str, ...]] | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._gathering: asyncio.Task[None] | None = None
        self._blocks: set[asyncio.Task[None]] = set()
        self._company = Company()

    async def open(self) -> None:
        """Start the worker and open its provider. Raises the errors of `open`, and Unreachable if the worker dies."""
        import ray

        if self._actor is None:
            start = ray.remote(
                num_cpus=CPUS,
                num_gpus=self._takes.gpus,
                # Workers that reserve no GPU would otherwise all start on one machine.
                scheduling_strategy="SPREAD",
                max_restarts=-1,
                # The runner has the only retry policy, so that no call is paid twice unnoticed.
                max_task_retries=0,
            )(Worker)
            self._actor = start.remote(self._served)
        if self._asks:
            await self.purse.pay(Request("", (), 0, max_tokens=OPENING_TOKENS), self._opened)
        else:
            self._keep(await self._call(self._actor.open))

    async def _opened(self) -> Reply:
        took: Sequence[Usage] = self._keep(await self._call(self._actor.open))
        # If one probe has no count, the total is unknown.
        into, out = [u.input_tokens for u in took], [u.output_tokens for u in took]
        return Reply("", usage=Usage(_sum(into), _sum(out), cost=sum(u.cost or 0.0 for u in took) or None))

    async def complete(self, request: Request) -> Reply:
        """Make one call in a block with others. Raises the provider's errors, and Unreachable if the worker died."""
        if self._actor is None:
            raise Unreachable(f"worker {self.number} was never started", sent=False)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather())
        begun = time.monotonic()
        try:
            return await future
        finally:
            self._company.took(time.monotonic() - begun)

    async def _gather(self) -> None:
        await asyncio.sleep(self._company.seconds)
        self._gathering = None
        # Calls that have been cancelled meanwhile are not sent.
        waiting, self._waiting = [call for call in self._waiting if not call[1].done()], []
        for at in range(0, len(waiting), BLOCK):
            task = asyncio.create_task(self._ask(waiting[at : at + BLOCK]))
            self._blocks.add(task)
            task.add_done_callback(self._blocks.discard)

    async def _ask(self, block: Sequence[tuple[Request, asyncio.Future[Reply]]]) -> None:
        from ray.exceptions import RayActorError, RayError

        unanswered, deaths = dict(enumerate(future for _, future in block)), self.deaths
        error: ProviderError = ServerFault(f"worker {self.number} gave no reply")
        try:
            async for ref in self._actor.answer.remote([request for request, _ in block], self._suited):
                done, facts = await ref
                self._is_alive = self._is_alive or deaths == self.deaths
                if facts is not None:
                    self._facts = facts
                for number, result in done:
                    _settle(unanswered.pop(number), result)
        except RayActorError:
            self.deaths += self._is_alive
            self._is_alive = False
            self.lost += len(unanswered)
            error = Unreachable(f"worker {self.number} has died or is unreachable")
        except RayError as e:
            error = ServerFault(f"worker {self.number}: {type(e).__name__}")
        finally:
            for future in unanswered.values():
                _settle(future, error)

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Prepare the worker for these labels. A restarted worker prepares itself again."""
        import ray

        labels_of_task = task, tuple(labels)
        if self._actor is None or labels_of_task == self._suited:
            return
        self._suited = labels_of_task
        self._keep(ray.get(self._actor.open.remote(labels_of_task)))

    async def _call(self, method: Any, *values: Any) -> Any:
        from ray.exceptions import RayActorError, RayError

        try:
            return await method.remote(*values)
        except RayActorError as e:
            raise Unreachable(f"worker {self.number} has died or is unreachable", sent=False) from e
        except RayError as e:
            raise ServerFault(f"worker {self.number}: {type(e).__name__}") from e

    def _keep(self, opened: Any) -> Sequence[Usage]:
        if isinstance(opened, KeyProblem):
            # Without this addition, a user who has exported the key here would only be told to export it.
            raise KeyProblem(
                f"worker {self.number}: {opened}; keys are not sent: the environment that the cluster's workers are "
                "started in must have it"
            )
        if isinstance(opened, AdjudgeError):
            raise opened
        self.label_codes, self.max_concurrency, self._facts, took = opened
        self._is_alive = True
        return took  # type: ignore[no-any-return]

    async def close(self) -> None:
        """End the worker and its provider; safe to call twice."""
        import ray

        actor, self._actor = self._actor, None
        for task in self._blocks:
            task.cancel()
        if actor is None:
            return
        try:
            self.remarks = tuple(await asyncio.wait_for(actor.close.remote(), 10))
        except Exception:
            self.remarks = ()  # the worker is dead already
        ray.kill(actor)

    def describe(self) -> Mapping[str, Json]:
        """Return the last facts of the worker's provider."""
        return self._facts


def _sum(counts: Sequence[int | None]) -> int | None:
    counted = [n for n in counts if n is not None]
    return sum(counted) if len(counted) == len(counts) else None


def _settle(future: asyncio.Future[Reply], result: Reply | BaseException) -> None:
    if future.done():
        return  # cancelled while its block was in flight
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


def _silence() -> None:
    """Stop Ray from printing worker events to stdout, which is reserved for data. The run reports them on stderr."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *args, **kwargs: None


def _look(address: str) -> None:
    """Raise OSError if nothing listens at host:port, because Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


class Cluster:
    """The connection to Ray: the cluster at RAY_ADDRESS, the cluster that this process is already connected
    to, or a new one.
    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._is_ours = False

    def start(self) -> None:
        """Connect. Raises Unreachable if there is no cluster at the address."""
        import ray

        if ray.is_initialized():
            return
        _silence()
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        address = os.environ.get("RAY_ADDRESS")
        try:
            if address:
                _look(address)
                ray.init(address=address, **quiet)
            else:
                # A short path, because paths of Unix sockets are limited to 107 bytes.
                self._folder = tempfile.mkdtemp(prefix="adjudge-")
                # A token for this cluster alone: Ray would otherwise store one in the home folder for all
                # clusters.
                os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
                ray.init(
                    address="local", num_cpus=max(2, os.cpu_count() or 1), include_dashboard=False,
                    object_store_memory=OBJECT_STORE, _temp_dir=self._folder, _system_config=AS_WE_ARE, **quiet,
                )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, OSError) as e:
            where = f"no Ray cluster at {address}" if address else "Ray cannot be started on this machine"
            raise Unreachable(f"{where}: {str(e).splitlines()[0] if str(e) else e}", sent=False) from e
        self._is_ours = True

    def stop(self) -> None:
        """Disconnect, and shut down a cluster that was started here."""
        if not self._is_ours:
            return
        import ray

        self._is_ours = False
        ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
