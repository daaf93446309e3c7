"""A scripted replacement for a model, for tests, for documentation and for trying out a pipeline.

`scripted/first` returns the first label for every unit. `scripted/hash` returns a label that depends only on
the unit's text. `scripted/garbage` returns prose without a label. `scripted/refuse` refuses. `scripted/file`
takes its replies from `--option script=FILE`, a file of JSON Lines such as `{"match": "part of the prompt",
"reply": "text"}`. The first line that matches is used, and a line without `match` always matches.

Other options: `delay` (seconds per call), and `logprobs=1` (`scripted/hash` returns label probabilities).
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from judge.errors import BadInput, Rejected, UsageError
from judge.providers.base import BaseProvider, Needs, Settings
from judge.types import Json, Reply, Request, TokenChoice, Usage

NEEDS = Needs(examples="scripted/hash (no model: for trying things out)")


class Provider(BaseProvider):
    """A replacement for a model that replies according to a script."""

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        scripts: dict[str, Callable[[Request], Reply]] = {
            "first": lambda r: self._pick(r, 0),
            "hash": lambda r: self._pick(r, _number(r)),
            "garbage": lambda r: Reply("It is hard to say; the passage has its merits."),
            "refuse": lambda r: Reply("I cannot help with that.", stop="refusal"),
            "file": self._from_file,
        }
        if name not in scripts:
            raise UsageError(f"scripted/{name}: unknown script; available: {', '.join(scripts)}")
        options = settings.vendor_options("scripted", "delay", "logprobs", "script")
        self._script = scripts[name]
        self._lines = _read_script(options.get("script")) if name == "file" else []
        # The content is part of the run's identity, because a run must not be resumed with a different script.
        content = json.dumps(self._lines).encode()
        self._content = {"content": hashlib.sha256(content).hexdigest()} if name == "file" else {}
        self._delay = _seconds(options.get("delay", "0"))
        self.label_codes = options.get("logprobs", "0") == "1"

    async def complete(self, request: Request) -> Reply:
        """Return the scripted reply, after the delay."""
        if self._delay:
            await asyncio.sleep(self._delay)
        return self._script(request)

    def describe(self) -> Mapping[str, Json]:
        """Return the script's name and the hash of its file. Runs with different scripts are different runs."""
        return {"script": self.name, **self._content}

    def _pick(self, request: Request, number: int) -> Reply:
        usage = Usage(sum(len(m.content) for m in request.messages) // 4, 1, 0)
        resolved = f"scripted-{self.name}"
        if choices := request.choices:
            code = choices[number % len(choices)]
            tokens = _tokens(choices, code) if self.label_codes else None
            return Reply(code, usage=usage, resolved_model=resolved, tokens=tokens)
        if request.schema is None:
            text = (
                request.labels[number % len(request.labels)]
                if request.labels
                else f"scripted text {number % 1000}"
            )
            return Reply(text, usage=usage, resolved_model=resolved)
        properties: Mapping[str, Json] = request.schema.get("properties", {})
        answer = {name: _value(spec, number) for name, spec in properties.items()}
        return Reply(json.dumps(answer), usage=usage, resolved_model=resolved)

    def _from_file(self, request: Request) -> Reply:
        prompt = "\n".join(m.content for m in request.messages)
        for match, reply in self._lines:
            if match in prompt:
                return Reply(
                    reply, usage=Usage(len(prompt) // 4, len(reply) // 4), resolved_model="scripted-file"
                )
        raise Rejected("no line of the script matches this prompt")


def _number(request: Request) -> int:
    text = f"{request.repeat}:{request.messages[-1].content}"
    # A hash instead of `hash()`, which differs between processes: documented output must be the same everywhere.
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big")


def _value(spec: Mapping[str, Json], number: int) -> Json:
    if spec.get("type") == "array":
        return [f"scripted text {(number + n) % 1000}" for n in range(number % 3 + 1)]
    if "enum" in spec:
        return spec["enum"][number % len(spec["enum"])]
    return number % 5 if spec.get("type") == "number" else f"scripted text {number % 1000}"


def _tokens(codes: Sequence[str], chosen: str) -> Sequence[TokenChoice]:
    """Return a token with a probability of 0.5 for the chosen code or word.

    The other codes share 0.49 equally, and 0.01 belongs to none of them.
    """
    others = [c for c in codes if c != chosen]
    # As with real models, a little mass is on no label.
    masses = [(chosen, 0.5), *((c, 0.49 / len(others)) for c in others), ("?", 0.01)]
    return [TokenChoice(chosen, [(c, math.log(p)) for c, p in masses])]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--option delay={text}: must be a number of seconds (0 or more)")
    return seconds


def _read_script(path: str | None) -> list[tuple[str, str]]:
    if path is None:
        raise UsageError("scripted/file needs --option script=FILE (JSON Lines with keys match and reply)")
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}") from e
    out = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            out.append((str(row.get("match", "")), str(row["reply"])))
        except (ValueError, KeyError, AttributeError) as e:
            raise BadInput("not a JSON object with the key 'reply'", path=path, line=number) from e
    return out
