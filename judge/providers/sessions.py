"""Run ONNX models in this process.

Only this module imports `onnxruntime` and `tokenizers` (from the extra `adjudge[onnx]`). Calls that are
waiting at the same time run in batches. The inputs in a batch have similar lengths, so they need little
padding.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from judge.errors import MissingExtra, Rejected

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float32]
BATCH = 16
AT_ONCE = 64
"""The maximum number of concurrent calls. It is large enough to form batches of inputs with similar lengths.
"""


class Session:
    """An ONNX model with its tokenizer. `most` is the maximum input length in tokens.

    Raises MissingExtra if the libraries are missing, and Rejected if they cannot read the files.
    """

    def __init__(self, model: Path, tokenizer: Path, most: int, threads: int, pad: int = 0) -> None:
        try:
            import onnxruntime
            import tokenizers
        except ImportError as e:
            raise MissingExtra("onnxruntime or tokenizers is missing; run pip install 'adjudge[onnx]'") from e
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # Otherwise idle threads keep a core busy that other work needs. The results do not depend on this.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        except Exception as e:
            # The library raises only plain Exception.
            raise Rejected(f"{tokenizer}: not a tokenizer file: {e}") from e
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:
            raise Rejected(f"{model}: onnxruntime cannot load it: {e}") from e
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.most, self._pad = most, pad
        self._inputs = {
            i.name: np.int32 if "int32" in i.type else np.int64 for i in self._session.get_inputs()
        }
        if unknown := sorted(set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}):
            raise Rejected(f"{model}: the model needs the input '{unknown[0]}', which is not supported")
        outputs = [o.name for o in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def encode(self, first: str, second: str | None = None, keep: int = 0) -> tuple[Any, bool]:
        """Return the tokens of one or two texts, and whether a text was truncated to the maximum length.

        If there are two texts, the one with the index `keep` (0 or 1) is kept complete and the other is
        truncated. If the text to keep is too long by itself, both are truncated.
        """
        tokens = self._tokenizer.encode(first, second)
        if len(tokens.ids) <= self.most:
            return tokens, False
        if second is None:
            return self._truncate(first, None, "longest_first"), True
        try:
            return self._truncate(first, second, "only_second" if keep == 0 else "only_first"), True
        except Exception:
            # The text to keep exceeds the maximum length by itself.
            return self._truncate(first, second, "longest_first"), True

    def _truncate(self, first: str, second: str | None, strategy: str) -> Any:
        self._tokenizer.enable_truncation(self.most, strategy=strategy)
        try:
            return self._tokenizer.encode(first, second)
        finally:
            self._tokenizer.no_truncation()

    def run(self, texts: Sequence[Any]) -> tuple[Floats, NDArray[np.int64]]:
        """Return the model's output for several tokenised texts, and the attention mask `[texts, tokens]`."""
        size = (len(texts), max(len(t.ids) for t in texts))
        arrays = {
            name: np.zeros(size, dtype=np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")
        }
        arrays["input_ids"][:] = self._pad
        for row, t in enumerate(texts):
            n = len(t.ids)
            arrays["input_ids"][row, :n] = t.ids
            arrays["token_type_ids"][row, :n] = t.type_ids
            arrays["attention_mask"][row, :n] = 1
        # A model accepts only the arrays that it declares as inputs.
        feed = {name: arrays[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            output = self._session.run([self._output], feed)[0]
        except Exception as e:
            # A retry would fail in the same way: nothing here depends on a server's load.
            raise Rejected(f"onnxruntime: {type(e).__name__}: {e}", 400) from e
        return np.asarray(output, dtype=np.float32), arrays["attention_mask"]


class SessionBatches(Generic[T, R]):
    """Combines single calls into batches, so that inputs of similar size run together.

    `work` computes the results for several inputs, and `size` returns the size of an input.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], size: Callable[[T], int]) -> None:
        self._work, self._size = work, size
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def get_result(self, thing: T) -> R:
        """Return the result for this input, which is computed in a batch with other waiting inputs.

        Raises the exception that `work` raises for this input.
        """
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((thing, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._go())
        return await future

    async def _go(self) -> None:
        while True:
            # This lets other calls join the batch.
            await asyncio.sleep(0)
            taken = [call for call in self._waiting[:AT_ONCE] if not call[1].done()]
            self._waiting = self._waiting[AT_ONCE:]
            if not taken and not self._waiting:
                return
            # Similar lengths share a batch, so that little of it is padding.
            taken.sort(key=lambda call: self._size(call[0]))
            for at in range(0, len(taken), BATCH):
                await self._run_batch(taken[at : at + BATCH])

    async def _run_batch(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await asyncio.to_thread(self._work, [thing for thing, _ in batch])
        except Exception as error:
            if len(batch) > 1:
                # One of the inputs causes the error, so each runs alone to find it.
                for alone in batch:
                    await self._run_batch([alone])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
