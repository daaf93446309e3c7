"""`onnx/FOLDER`: a cross-encoder in ONNX format that compares a statement with its evidence.

Such models judge entailment, relevance or hallucination. The folder contains an exported model: `model.onnx`
(or `onnx/model.onnx`), `tokenizer.json` and `config.json`. A small file maps the model's classes to the
task's labels. It is `classes.json` in the folder, or the file given by `--option classes=FILE`:

    {"order": ["evidence", "statement"],
     "labels": {"entailment": "support", "contradiction": "refute", "neutral": "neutral"}}

Classes are named as in `id2label` in config.json, or by number. Several classes may map to the same label. A
class that maps to null has no label. A model that returns one number per pair (a reranker) has the classes
`yes` and `no`. The probability of `yes` is the logistic function of that number minus `threshold`. Options:
`classes`, `model` (a file in the folder), `threads`.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judge.errors import Rejected, UsageError
from judge.files import file_sha
from judge.prompts.pair import EVIDENCE, STATEMENT
from judge.providers.base import Needs, Settings, cores
from judge.providers.sessions import AT_ONCE, Floats, Session, SessionBatches
from judge.providers.tokens import with_masses
from judge.types import Json, Reply, Request, Usage

NEEDS = Needs(
    examples="onnx/path/to/folder (a cross-encoder, with classes.json)",
    packages=("onnxruntime", "tokenizers"),
    install="the extra adjudge[onnx]",
)

CLASSES = "classes.json"
MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
MOST_TOKENS = 512
_ROLES = {EVIDENCE, STATEMENT}


class Provider:
    """A cross-encoder. Concurrent calls run together in batches."""

    label_codes = True
    reads_pairs = True
    max_concurrency: int | None = AT_ONCE

    def __init__(self, name: str, settings: Settings) -> None:
        self._folder = Path(name).expanduser()
        if not self._folder.is_dir():
            raise UsageError(
                f"onnx/{name}: no such folder; use a folder that contains model.onnx, tokenizer.json and config.json"
            )
        options = settings.vendor_options("onnx", "classes", "model", "threads")
        self._threads = settings.get_whole("threads", cores())
        self._file = self._model_file(options.get("model"))
        config = _read_json(self._folder / "config.json", needed=False)
        tokens = _read_json(self._folder / "tokenizer_config.json", needed=False)
        limits = [tokens.get("model_max_length"), config.get("max_position_embeddings"), MOST_TOKENS]
        # The tokenizer's limit may be a placeholder of 10^30, so the smallest stated limit counts.
        self._most = int(min(n for n in limits if isinstance(n, int | float) and n > 0))
        if config.get("model_type") in ("roberta", "xlm-roberta", "camembert"):
            # In these architectures the first two positions are reserved for padding.
            self._most = min(self._most, int(config.get("max_position_embeddings", 514)) - 2)
        self._pad = int(config.get("pad_token_id") or 0)
        self._names = {int(k): str(v) for k, v in (config.get("id2label") or {}).items()}
        path = Path(options["classes"]) if "classes" in options else self._folder / CLASSES
        self._mapping = _mapping(path)
        self._session: Session | None = None
        self._cut = 0
        self._content = ""
        self._batches = SessionBatches[Any, Floats](self._run, lambda tokens: len(tokens.ids))

    def _model_file(self, name: str | None) -> Path:
        tried = [name] if name else MODELS
        path = next((self._folder / n for n in tried if (self._folder / n).is_file()), None)
        if path is None:
            raise UsageError(
                f"{self._folder}: no file {' or '.join(tried[:2])}; name another file with --option model=FILE"
            )
        return path

    async def open(self) -> None:
        """Load the model and the tokenizer, and check that every class is mapped. Raises MissingExtra or Rejected."""
        self._session = await asyncio.to_thread(self._load)

    def _load(self) -> Session:
        session = Session(self._file, self._folder / "tokenizer.json", self._most, self._threads, self._pad)
        # A trial run shows the number of classes, which is not required in any file of an export.
        output, _ = session.run([session.encode("a", "b")[0]])
        if output.ndim != 2:
            raise Rejected(
                f"{self._file}: the output must have one row of classes for each text, but its shape is {output.shape}"
            )
        n = output.shape[1]
        names = ["yes", "no"] if n == 1 else [self._names.get(i, str(i)) for i in range(n)]
        labels = self._mapping["labels"]
        if missing := [c for c in names if c not in labels]:
            raise UsageError(
                f"{self._mapping['path']}: 'labels' has no entry for the class '{missing[0]}'; add a label or null (classes: {', '.join(names)})"
            )
        if unknown := sorted(set(labels) - set(names)):
            raise UsageError(
                f"{self._mapping['path']}: the model has no class '{unknown[0]}' (classes: {', '.join(names)})"
            )
        self._classes = names
        return session

    def prepare_labels(self, task: str, labels: Sequence[str]) -> None:
        """Raise UsageError if a class maps to a label that the task does not have."""
        for name, label in self._mapping["labels"].items():
            if label is not None and label not in labels:
                raise UsageError(
                    f"{self._mapping['path']}: class '{name}' is mapped to '{label}', but {task} has the labels "
                    f"{', '.join(labels)}; name another file with --option classes=FILE"
                )

    async def complete(self, request: Request) -> Reply:
        """Return the probability of each label, which is the sum over the classes that map to it."""
        assert self._session is not None and request.words is not None
        texts = {m.role: m.content for m in request.messages}
        first, second = (texts[role] for role in self._mapping["order"])
        # Only the evidence is truncated, because a truncated statement would be a different statement.
        keep = self._mapping["order"].index(STATEMENT)
        tokens, cut = self._session.encode(first, second, keep)
        self._cut += cut
        masses = dict.fromkeys(request.words, 0.0)
        for name, p in zip(
            self._classes, self._probabilities(await self._batches.get_result(tokens)), strict=True
        ):
            label = self._mapping["labels"][name]
            if label is not None:
                # Several classes may map to the same label.
                masses[label] += p
        best = max(masses, key=lambda label: masses[label])
        usage, positions = Usage(len(tokens.ids), 0), [with_masses(best, masses.items())]
        return Reply(best, usage=usage, resolved_model=self._folder.name, tokens=positions)

    def _probabilities(self, logits: Floats) -> list[float]:
        numbers = logits.astype(np.float64)
        if len(numbers) == 1:
            # Beyond 500 the exponential overflows, and the probability is 0 or 1 in any case.
            x = float(np.clip(numbers[0] - self._mapping["threshold"], -500, 500))
            return [1 / (1 + math.exp(-x)), 1 / (1 + math.exp(x))]
        # The largest logit is subtracted first, so that the exponential cannot overflow.
        powers = np.exp(numbers - numbers.max())
        return [float(p) for p in powers / powers.sum()]

    async def close(self) -> None:
        """Free the model."""
        self._session = None

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run.

        The folder is given without its path. `content` is a hash of everything that the replies depend on.
        """
        classes = {k: self._mapping[k] for k in ("order", "labels", "threshold")}
        if not self._content:
            whole = json.dumps([self._files(), classes, self._most])
            self._content = hashlib.sha256(whole.encode()).hexdigest()
        facts = {
            "weights": f"{self._folder.name}/{self._file.name}",
            "classes": classes,
            "longest": self._most,
        }
        return {**facts, "content": self._content}

    def _files(self) -> list[str]:
        """Return the hashes of the model file, of the tokenizer, and of any separate files with weights.

        A file with weights is, for example, `model.onnx_data`.
        """
        beside = sorted(self._file.parent.glob(f"{self._file.name}?*"))
        paths = [self._file, *beside, self._folder / "tokenizer.json"]
        return [file_sha(path) for path in paths if path.is_file()]

    def remarks(self) -> tuple[str, ...]:
        """Return remarks to show to the user at the end of a run."""
        n, most = self._cut, self._most
        return (f"{n} pairs were longer than {most} tokens, so their evidence was truncated",) if n else ()

    def _run(self, batch: Sequence[Any]) -> Sequence[Floats]:
        assert self._session is not None
        return list(self._session.run(batch)[0])


def _mapping(path: Path) -> dict[str, Any]:
    """Read and check the file that maps classes to labels. Raises UsageError if it is invalid."""
    mapping = _read_json(path, needed=True)
    labels = mapping.get("labels")
    if not isinstance(labels, dict) or not labels:
        raise UsageError(f"{path}: 'labels' must map each class of the model to a label of the task or null")
    if bad := [c for c, label in labels.items() if label is not None and not isinstance(label, str)]:
        raise UsageError(f"{path}: the label of class '{bad[0]}' must be a string or null")
    order = mapping.get("order", [EVIDENCE, STATEMENT])
    if not isinstance(order, list) or len(order) != 2 or set(order) != _ROLES:
        raise UsageError(f'{path}: \'order\' must be ["evidence", "statement"] or ["statement", "evidence"]')
    threshold = mapping.get("threshold", 0.0)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        raise UsageError(f"{path}: 'threshold' must be a finite number")
    if unknown := sorted(set(mapping) - {"labels", "order", "threshold"}):
        raise UsageError(f"{path}: unknown key '{unknown[0]}' (known: labels, order, threshold)")
    return {"labels": labels, "order": order, "threshold": float(threshold), "path": str(path)}


def _read_json(path: Path, needed: bool) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as e:
        if needed:
            raise UsageError(
                f'{path}: no such file; create it with {{"labels": {{"CLASS": "LABEL", ...}}}}, or name another file '
                "with --option classes=FILE"
            ) from e
        return {}
    except (OSError, ValueError) as e:
        raise UsageError(f"{path}: cannot be read as JSON: {e}") from e
    if not isinstance(loaded, dict):
        raise UsageError(f"{path}: not a JSON object")
    return loaded
