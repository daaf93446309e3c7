"""Ray: workers on one machine or many ask, each with a provider (or a server) of its own.

To the runner a worker is one of several servers (`judge.providers.replicas`): it has its own limit of calls, its block
comes back as its replies do, and one that dies is a server that is gone: what it had in flight is asked again of the
others, and it is taken back when Ray has started it anew. Requests go out in blocks of at most 64. Nothing but requests
and replies passes between the processes; the study is written here, by the one writer.

RAY_ADDRESS names the cluster; without it one is started on this machine and ends with the run. Workers take the keys
from their own environment, none is sent. Usage statistics are off.
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
"""Requests that go to a worker at once, at most: what its death costs."""
OPENING_TOKENS = 6_000
"""More than the questions with which a worker finds out about its server can take."""
AS_WE_ARE = {"worker_niceness": 0}
"""Workers of a cluster that is started here get as much of the machine as this process: Ray's own 15 is hardly any on a
busy one, and they do its work."""
CONNECT_SECONDS = 10.0
OBJECT_STORE = 80 * 2**20
"""Bytes for objects in a cluster that is started here; requests and replies are small and hardly use it."""


def provider(model: str, settings: Settings, workers: Workers) -> Provider:
    """The provider whose calls are made by workers, not opened yet. Raises UsageError or MissingExtra."""
    if settings.replicas:
        raise UsageError("--replicas goes with --engine local: with ray every worker is a server of its own")
    if workers.command is not None and "{port}" not in workers.command:
        raise UsageError("--worker-command starts a server: write {port} where its port goes")
    # What a model can do is asked of one that is not opened; it finds unknown models and options here, too.
    alike = base.get(model, settings)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Under `uv run` Ray would pack the current folder for its workers: it would read the study behind SQLite's back,
    # which ends the locks that this process has on it, and send it to the cluster.
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    try:
        import ray  # noqa: F401
    except ImportError as e:
        raise MissingExtra("--engine ray needs Ray: pip install 'adjudge[ray]'") from e
    kind = RemotePairs if isinstance(alike, PairReader) else Ray
    return kind(model, settings, workers, alike)


class Ray(Replicas):
    """A model behind workers of a Ray cluster."""

    def __init__(self, model: str, settings: Settings, workers: Workers, alike: Provider) -> None:
        self.timeout = settings.timeout
        served = Served(model, settings, workers.command)
        self._workers = [Remote(number, served, workers, alike) for number in range(1, workers.n + 1)]
        super().__init__(self._workers)
        self._cluster = Cluster()

    async def open(self) -> None:
        """Connect to the cluster or start one, and open every worker's provider. Raises as `Replicas.open`."""
        await asyncio.to_thread(self._cluster.start)
        await super().open()
        first = self._open_ones()[0]
        self.max_concurrency = first.max_concurrency

    async def close(self) -> None:
        """End the workers, and the cluster where it was started here."""
        await super().close()
        await asyncio.to_thread(self._cluster.stop)

    def describe(self) -> Mapping[str, Json]:
        """What the first worker's provider says, and that Ray asked it."""
        facts = dict(self._open_ones()[0].describe())
        return {**facts, "engine": "ray", "workers": len(self.members)}

    def remarks(self) -> tuple[str, ...]:
        """What the workers' providers have to say, by worker, and how many died."""
        said = [f"worker {w.number}: {text}" for w in self._workers for text in w.remarks]
        died = sum(worker.deaths for worker in self._workers)
        lost = sum(worker.lost for worker in self._workers)
        return (
            *said,
            *(
                [f"workers died {died} {'time' if died == 1 else 'times'}, with {lost} calls in flight"]
                if died
                else []
            ),
        )


class RemotePairs(Ray):
    """A classifier of pairs behind workers (see `PairReader`)."""

    reads_pairs = True

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Get every worker ready for these labels. Raises UsageError where the model has nothing to say of them."""
        for worker in self._workers:
            worker.suit(task, labels)


class Remote:
    """One worker as the runner sees it: a provider whose calls go out in blocks."""

    label_codes = False
    max_concurrency: int | None = None

    def __init__(self, number: int, served: Served, workers: Workers, alike: Provider) -> None:
        self.number, self.timeout = number, served.settings.timeout
        self.deaths = self.lost = 0
        self._is_alive = False
        """Whether it has answered since it last died: several blocks learn of one death."""
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
        """Start the worker and open its provider. Raises what that raises; Unreachable when the worker dies."""
        import ray

        if self._actor is None:
            # Two actors that take a whole core each would wait for ever on a machine with two: they mostly wait.
            start = ray.remote(
                num_cpus=self._takes.cpus,
                num_gpus=self._takes.gpus,
                max_restarts=-1,
                max_task_retries=0,
            )(Worker)
            self._actor = start.remote(self._served)
        if self._asks:
            await self.purse.pay(Request("", (), 0, max_tokens=OPENING_TOKENS), self._opened)
        else:
            self._keep(await self._call(self._actor.open))

    async def _opened(self) -> Reply:
        took: Sequence[Usage] = self._keep(await self._call(self._actor.open))
        # What one of them does not count makes the whole unknown.
        into, out = [u.input_tokens for u in took], [u.output_tokens for u in took]
        return Reply("", usage=Usage(_sum(into), _sum(out), cost=sum(u.cost or 0.0 for u in took) or None))

    async def complete(self, request: Request) -> Reply:
        """One call, sent with the others of its block. Raises as the provider does, and Unreachable when the worker died."""
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
        # Who has been cancelled meanwhile is not sent.
        waiting, self._waiting = [one for one in self._waiting if not one[1].done()], []
        for at in range(0, len(waiting), BLOCK):
            task = asyncio.create_task(self._ask(waiting[at : at + BLOCK]))
            self._blocks.add(task)
            task.add_done_callback(self._blocks.discard)

    async def _ask(self, block: Sequence[tuple[Request, asyncio.Future[Reply]]]) -> None:
        from ray.exceptions import RayActorError, RayError

        left, deaths = dict(enumerate(future for _, future in block)), self.deaths
        error: ProviderError = ServerFault(f"worker {self.number} gave no reply")
        try:
            async for ref in self._actor.answer.remote([request for request, _ in block], self._suited):
                done, facts = await ref
                self._is_alive = self._is_alive or deaths == self.deaths
                if facts is not None:
                    self._facts = facts
                for number, found in done:
                    _settle(left.pop(number), found)
        except RayActorError:
            self.deaths += self._is_alive
            self._is_alive = False
            self.lost += len(left)
            error = Unreachable(f"worker {self.number} has died, or its machine has gone")
        except RayError as e:
            error = ServerFault(f"worker {self.number}: {type(e).__name__}")
        finally:
            for future in left.values():
                _settle(future, error)

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Let the worker get ready for these labels; it does so again should it be started anew."""
        import ray

        wanted = task, tuple(labels)
        if self._actor is None or wanted == self._suited:
            return
        self._suited = wanted
        self._keep(ray.get(self._actor.open.remote(wanted)))

    async def _call(self, method: Any, *values: Any) -> Any:
        from ray.exceptions import RayActorError, RayError

        try:
            return await method.remote(*values)
        except RayActorError as e:
            raise Unreachable(f"worker {self.number} has died, or its machine has gone", sent=False) from e
        except RayError as e:
            raise ServerFault(f"worker {self.number}: {type(e).__name__}") from e

    def _keep(self, opened: Any) -> Sequence[Usage]:
        if isinstance(opened, KeyProblem):
            # Whoever exported it here would be told to export it.
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
            self.remarks = tuple(await asyncio.wait_for(_plain(actor.close.remote()), 10))
        except Exception:
            self.remarks = ()  # dead already: there is nothing left to end
        ray.kill(actor)

    def describe(self) -> Mapping[str, Json]:
        """What the worker's provider said last."""
        return self._facts


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [n for n in counts if n is not None]
    return sum(known) if len(known) == len(counts) else None


async def _plain(ref: Any) -> Any:
    return await ref


def _settle(future: asyncio.Future[Reply], found: Reply | BaseException) -> None:
    if future.done():
        return  # cancelled while its block was on its way
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(found)


def _silence() -> None:
    """Ray prints what happened to a worker to stdout, which is data here; the run says it itself, and to stderr."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *args, **kwargs: None


def _look(address: str) -> None:
    """Raises OSError when nothing listens at host:port: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


class Cluster:
    """The connection to Ray: to the cluster of RAY_ADDRESS, to one that this process has already, or to a new one."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._is_ours = False

    def start(self) -> None:
        """Connect. Raises Unreachable when there is no cluster at the address."""
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
                # Short: the paths of its sockets may have no more than 107 bytes.
                self._folder = tempfile.mkdtemp(prefix="adjudge-")
                # Of this cluster alone: Ray would keep one in the home folder for all.
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
        """Leave the cluster; one that was started here ends."""
        if not self._is_ours:
            return
        import ray

        self._is_ours = False
        ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
