"""Texts in, vectors in the study: several texts a call, several calls at once, each kept when it is there.

Limits of tokens and money hold as in a run (`judge.runner.budget`): a call goes out when the most that it can take
fits, and one that is lost counts so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judge.errors import BadInput, ProviderError, Rejected, Unreachable
from judge.providers.embeddings import Embedded, Embedder
from judge.runner.budget import Budget, Reserve, Spent
from judge.runner.retry import Patience
from judge.store import embeddings
from judge.store.study import Store
from judge.types import Usage

TOO_MUCH = (400, 413, 422)
"""What servers answer to too many texts or too long ones; 404 and the rest are about the model."""


@dataclass(slots=True)
class EmbedProgress:
    """How the embedding stands: `known` texts had a vector before, `done` got one now, in `calls` calls.

    `tokens` are those that the server counted. `stopped` says why texts are left without a vector.
    """

    texts: int
    known: int
    done: int = 0
    calls: int = 0
    tokens: int = 0
    stopped: str | None = None

    @property
    def left(self) -> int:
        """Texts still without a vector."""
        return self.texts - self.known - self.done


@dataclass(frozen=True, slots=True)
class Chunking:
    """Texts in a call, characters in a call (one text may have more), calls at once."""

    batch: int = 32
    characters: int = 200_000
    concurrency: int = 8
    patience: Patience = field(default_factory=Patience)


async def embed_all(
    store: Store,
    embedder: Embedder,
    model: str,
    texts: Mapping[str, str],
    pace: Chunking | None = None,
    watch: Callable[[EmbedProgress], None] | None = None,
    budget: Budget | None = None,
    max_time: float | None = None,
) -> EmbedProgress:
    """Give every text a vector in the study. `texts`: the text -> what errors call it.

    Each call's vectors are committed when they come, so the same command goes on where it stopped.
    `budget` and `max_time` (seconds) end the sending before they are crossed; `EmbedProgress.stopped` then says so.
    A call that is refused for its size is halved until the text that cannot be taken is found.
    Raises BadInput for such a text, ProviderError when there is no answer within patience, Rejected
    when the vectors have another length than earlier ones.
    """
    free = budget or Budget(None, None, None, Counter(), Spent())
    return await _Embedding(store, embedder, model, texts, pace or Chunking(), watch, free).go(max_time)


class _Embedding:
    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        model: str,
        texts: Mapping[str, str],
        pace: Chunking,
        watch: Callable[[EmbedProgress], None] | None,
        budget: Budget,
    ) -> None:
        self.store, self.embedder, self.model, self.texts = store, embedder, model, texts
        self.pace, self.watch, self.budget = pace, watch, budget
        self.name = embeddings.embedder_sha(embedder.describe())
        self.shas = {text: embeddings.text_sha(text) for text in texts}
        sizes = embeddings.known(store.conn, self.name, list(self.shas.values()))
        self.size: int | None = next(iter(sizes.values()), None)
        self.left = [text for text, sha in self.shas.items() if sha not in sizes]
        self.progress = EmbedProgress(len(texts), len(texts) - len(self.left))

    async def go(self, max_time: float | None) -> EmbedProgress:
        batches = _batches(self.left, self.pace)
        workers = [asyncio.create_task(self._work(batches)) for _ in range(self.pace.concurrency)]
        try:
            async with asyncio.timeout(max_time):
                await asyncio.gather(*workers)
        except TimeoutError:
            self.progress.stopped = f"the time limit of {max_time:g} s is reached"
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self.embedder.close()
        # By how much is known when the last call is back.
        self.progress.stopped = self.budget.crossed or self.progress.stopped
        return self.progress

    async def _work(self, batches: Iterator[list[str]]) -> None:
        for batch in batches:
            await self._embed(batch)
            if self.progress.stopped is not None:
                return

    async def _embed(self, batch: list[str]) -> None:
        claim = self.budget.claim_texts(batch)
        if not await self.budget.room(claim) or self.progress.stopped is not None:
            self._stop()
            return
        self.budget.hold(claim)
        try:
            found = await self._patiently(batch, claim)
        except Rejected as error:
            if error.status not in TOO_MUCH:
                raise
            if len(batch) == 1:
                raise BadInput(f"{self.texts[batch[0]]}: {error}") from error
            found = None
        finally:
            self.budget.release(claim)
        if found is not None:
            self._keep(batch, found)
        elif self.progress.stopped is None:
            half = len(batch) // 2
            await self._embed(batch[:half])
            await self._embed(batch[half:])

    def _stop(self) -> None:
        self.progress.stopped = self.budget.crossed or self.progress.stopped or self.budget.reason

    def _keep(self, batch: Sequence[str], found: Embedded) -> None:
        size = found.vectors.shape[1]
        self.size = self.size or size
        if size != self.size:
            raise Rejected(
                f"{self.embedder.who} gives vectors of {size} numbers for '{self.model}', and gave {self.size} "
                "before; if another model has its name now, delete its rows from the study's table 'embeddings'"
            )
        with self.store.transaction() as conn:
            shas = [self.shas[text] for text in batch]
            embeddings.add(conn, self.name, found.resolved_model or self.model, shas, found.vectors)
        self.progress.done += len(batch)
        self.progress.tokens += found.tokens or 0
        if self.watch is not None:
            self.watch(self.progress)

    async def _patiently(self, batch: Sequence[str], claim: Reserve) -> Embedded | None:
        """One call's vectors, None when a limit ends the tries."""
        tries = 0
        while True:
            self.progress.calls += 1
            try:
                found = await self.embedder.embed(batch)
            except BaseException as error:
                self.budget.failed(claim, error)
                if not isinstance(error, ProviderError):
                    raise
                tries += 1
                wait = self.pace.patience.wait(error, tries)
                # A server that has answered nothing yet is more likely not there than busy.
                absent = isinstance(error, Unreachable) and not self.progress.done and tries > 1
                if wait is None or absent:
                    raise
            else:
                self.budget.answered(claim, Usage(found.tokens, None if found.tokens is None else 0))
                if self.budget.crossed:
                    self._stop()
                return found
            await asyncio.sleep(wait)
            if self.progress.stopped is not None or not await self.budget.again(claim):
                self._stop()
                return None


def _batches(texts: Sequence[str], pace: Chunking) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == pace.batch or size + len(text) > pace.characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
