"""Workers: their specification by an engine, and the code that runs in them. A worker runs a provider, or
starts and calls a server.

Nothing in this module depends on Ray or the study.
"""

import asyncio
import contextlib
import ctypes
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.errors import AdjudgeError, ProviderError, RateLimited, ServerFault, Unreachable
from judge.providers import base
from judge.providers.base import NoLimits, PairReader, Probing, Provider, Settings
from judge.types import Json, Reply, Request, Usage

COMPANY = 1 / 25
"""How long the first of several messages waits for others, as a share of a call's duration. Each message
costs both sides about 0.5 ms of processor time, and each wait occupies a slot.
"""
SHORTEST_WAIT, LONGEST_WAIT = 0.001, 0.015
START_SECONDS = 900.0
"""How long a worker's server may take to start, because it loads weights and compiles graphs."""
AGAIN_SECONDS = 0.25

Opened = tuple[bool, int | None, Mapping[str, Json], Sequence[Usage]]
"""The state of an open provider: label_codes, max_concurrency, describe(), and the usage of its start-up probes."""
Done = tuple[list[tuple[int, Reply | ProviderError]], Mapping[str, Json] | None]
"""Replies by their number in the block, and the provider's facts if they have changed."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers that an engine starts: `n` workers that each reserve `gpus` GPUs and run `command`, which
    starts a server at port `{port}`.
    """

    n: int = 2
    gpus: float = 0.0
    command: str | None = None


class Company:
    """Computes from the duration of recent calls how many seconds a message waits for others."""

    def __init__(self) -> None:
        self._usual = 0.0

    def took(self, seconds: float) -> None:
        """Record the duration of a call."""
        self._usual += (seconds - self._usual) / 8

    @property
    def seconds(self) -> float:
        """The waiting time of the next message."""
        return min(LONGEST_WAIT, max(SHORTEST_WAIT, COMPANY * self._usual))


@dataclass(frozen=True, slots=True)
class Served:
    """The model that a worker calls, and optionally the command that starts the worker's own server."""

    model: str
    settings: Settings
    command: str | None = None


class Worker:
    """Runs in a worker. Opens its provider on first use, including after a restart, and returns errors as values."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._provider: Provider | None = None
        self._suited: tuple[str, tuple[str, ...]] | None = None
        self._facts: Mapping[str, Json] = {}
        self._server: subprocess.Popen[bytes] | None = None
        # After a restart several blocks arrive at once, and only one of them may open the provider.
        self._opening = asyncio.Lock()
        self._company = Company()

    async def open(self, suited: tuple[str, tuple[str, ...]] | None = None) -> Opened | AdjudgeError:
        """Open the provider, and prepare it for the labels (task, labels) if it needs that."""
        try:
            provider = await self._ready(suited)
        except AdjudgeError as e:
            return e
        purse = provider.purse if isinstance(provider, Probing) else None
        took = purse.took if isinstance(purse, NoLimits) else ()
        return provider.label_codes, provider.max_concurrency, self._facts, took

    async def answer(
        self, block: Sequence[Request], suited: tuple[str, tuple[str, ...]] | None = None
    ) -> AsyncIterator[Done]:
        """Send all requests of a block at once; yield replies and errors as they arrive."""
        try:
            provider = await self._ready(suited)
        except ProviderError as e:
            yield [(number, e) for number in range(len(block))], None
            return
        ended: asyncio.Queue[tuple[int, Reply | ProviderError]] = asyncio.Queue()
        tasks = [
            asyncio.create_task(_answer_request(provider, n, request, ended, self._company))
            for n, request in enumerate(block)
        ]
        n_open = len(tasks)
        while n_open:
            done = [await ended.get()]
            # A message to the driver costs both sides about 0.5 ms, so replies travel in groups.
            await asyncio.sleep(self._company.seconds)
            while not ended.empty():
                done.append(ended.get_nowait())
            n_open -= len(done)
            facts = dict(provider.describe())
            changed = facts != self._facts
            self._facts = facts
            yield done, facts if changed else None

    async def close(self) -> list[str]:
        """Close the provider and end the server. Returns the provider's remarks on its calls."""
        remarks: list[str] = []
        if self._provider is not None:
            remarks = list(getattr(self._provider, "remarks", tuple)())
            await self._provider.close()
            self._provider = None
        if self._server is not None:
            self._server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._server.wait, 5)
            # The server may ignore SIGTERM, and must not outlive its worker.
            self._server.kill()
            self._server = None
        return remarks

    async def _ready(self, suited: tuple[str, tuple[str, ...]] | None) -> Provider:
        async with self._opening:
            if self._provider is None:
                self._provider = await self._opened()
            if suited is not None and suited != self._suited:
                assert isinstance(self._provider, PairReader)
                self._provider.suit(*suited)
                self._suited = suited
            self._facts = dict(self._provider.describe())
            return self._provider

    async def _opened(self) -> Provider:
        settings = self._served.settings
        if self._served.command is None:
            return await _open(base.get(self._served.model, settings))
        if self._server is None or self._server.poll() is not None:
            port = _free_port()
            command = shlex.split(self._served.command.replace("{port}", str(port)))
            self._server = _started(command)
            self._url = f"http://127.0.0.1:{port}/v1"
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return await _open(base.get(self._served.model, replace(settings, base_url=self._url)))
            except (Unreachable, RateLimited, ServerFault) as e:
                if (code := self._server.poll()) is not None:
                    raise Unreachable(
                        f"the worker's server exited with status {code} before it answered", sent=False
                    ) from e
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)


async def _open(provider: Provider) -> Provider:
    try:
        await provider.open()
    except BaseException:
        # A failed start is tried again with a new provider, so this one must release its connections.
        await provider.close()
        raise
    return provider


async def _answer_request(
    provider: Provider,
    number: int,
    request: Request,
    ended: asyncio.Queue[tuple[int, Reply | ProviderError]],
    company: Company,
) -> None:
    result: Reply | ProviderError
    begun = time.monotonic()
    try:
        result = await provider.complete(request)
    except ProviderError as e:
        result = e
    except Exception as e:
        # An exception would end the whole block, and with it the replies of its other requests.
        result = ServerFault(f"unexpected {type(e).__name__} in a worker: {e}")
    company.took(time.monotonic() - begun)
    ended.put_nowait((number, result))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
        )  # fmt: skip
    except OSError as e:
        raise Unreachable(
            f"the worker's server cannot be started: {command[0]}: {e.strerror}; check --worker-command",
            sent=False,
        ) from e


def _end_with_parent() -> None:
    """Make the kernel stop the server when its worker is killed (Linux only)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
