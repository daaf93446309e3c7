"""The options of a run, each declared once.

`RunOptions` is the table: a field is an option, with its name, its type and its default. `option` adds the rest: the help
text, how it is written on a command line, whether it is part of the run's identity, and where a stored run has it.
These are made from the table:

the options of `judge run`, and of every command that asks a model    judge.cli.run
the arguments of `Study.run`, `improve` and `suite`                    adjudge.options
what a recipe decides                                                  `decided`
the options of a stored run, for a command that resumes it             `of_stored`
the words of that command                                              `words`
what sets a run apart from others of its task and model                `settings_of`
"""

# ruff: noqa: RUF009  (`option` makes the field of a dataclass, which is no shared default)
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judge.types import Json

Part = Literal["units", "judge", "limits", "calls", "server", "workers", "permissions"]
Kind = Literal["text", "whole", "number", "flag", "time", "file", "folder", "list", "several", "pairs"]
"""What a value is: `list` is one text with commas, `several` an option that is given several times, `pairs` KEY=VALUE."""

SECRET = ("header.", "query.", "key")
"""Beginnings of provider options that may carry a key: they are never stored, nor printed in a command."""


@dataclass(frozen=True, slots=True)
class Declared:
    """How an option is written, beside the name, type and default of its field.

    `least` is the smallest number (`above`: which itself is too small); `off` is the name of the flag that says no.
    """

    flag: str
    kind: Kind
    part: Part
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: bool = False
    off: str = ""
    identity: bool = False
    """Another value makes another run."""
    decided: bool = False
    """A recipe decides it."""
    stored: bool = False
    """A stored run has it, under the field's name."""


def option(default: Any, flag: str, kind: Kind, part: Part, help: str, **more: Any) -> Any:
    """A field of the table."""
    return dataclasses.field(default=default, metadata={"declared": Declared(flag, kind, part, help, **more)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `judge run`, by the same names and with the same defaults. Times are in seconds.

    `settings` are provider options (--option), `asked_as` is --as. `rationale` None: as the task's file says.
    """

    limit: int | None = option(None, "-n", "whole", "units", "The first N units only.", least=1)
    where: str | None = option(
        None,
        "--where",
        "text",
        "units",
        "Only units for which this SQL condition on unit_texts holds, as in \"dataset = 'mine'\".",
    )
    sample: int | None = option(
        None,
        "--sample",
        "whole",
        "units",
        "Take units in a seeded random order (with -n: a sample).",
        metavar="SEED",
    )
    relevant: str | None = option(
        None,
        "--relevant",
        "text",
        "units",
        "For tasks about relevant passages: answer, answer+related, marked, or RUN:answer by a judge's run.",
        identity=True,
        stored=True,
    )
    examples: str | None = option(
        None,
        "--examples",
        "text",
        "units",
        "Show these items of the study, with their gold labels, as few-shot examples; they are not asked about.",
        metavar="ITEM,ITEM",
        identity=True,
        decided=True,
        stored=True,
    )
    repeats: int = option(1, "--repeats", "whole", "units", "Ask this often.", least=1)
    concurrency: int | None = option(
        None,
        "--concurrency",
        "whole",
        "calls",
        "Calls at once to each server, from the first call on (default: at most 100, growing from what the study last "
        "sustained there).",
        least=1,
    )
    replicas: tuple[str, ...] = option(
        (),
        "--replicas",
        "list",
        "calls",
        "More servers with the same model: calls are spread, dead ones dropped and taken back.",
        metavar="URL,URL",
    )
    patience: float = option(
        1800.0,
        "--patience",
        "time",
        "calls",
        "Wait this long for an unreachable server, or for a study that cannot be written.",
        metavar="TIME",
    )
    retry: tuple[str, ...] = option(
        (),
        "--retry",
        "several",
        "calls",
        "Ask again where an earlier answer ended so (failed ones are always asked again).",
        choices=("unparsed", "failed", "refused", "truncated"),
    )
    max_tokens: int | None = option(
        None,
        "--max-tokens",
        "whole",
        "limits",
        "Never use more than this many tokens (in and out).",
        least=1,
    )
    max_cost: float | None = option(
        None,
        "--max-cost",
        "number",
        "limits",
        "Never spend more than this many US dollars.",
        least=0,
        above=True,
    )
    max_time: float | None = option(
        None,
        "--max-time",
        "time",
        "limits",
        "Send nothing more after this long: 2h, 30m or 90s.",
        metavar="TIME",
    )
    prices: Path | None = option(
        None,
        "--prices",
        "file",
        "limits",
        "JSON file of prices by model; default: list prices of the vendors.",
    )
    max_output_tokens: int = option(
        512, "--max-output-tokens", "whole", "limits", "Longest reply.", least=1, stored=True
    )
    temperature: float = option(
        0.0,
        "--temperature",
        "number",
        "judge",
        "Sampling temperature.",
        least=0,
        identity=True,
        decided=True,
        stored=True,
    )
    no_temperature: bool = option(
        False,
        "--no-temperature",
        "flag",
        "judge",
        "Leave the temperature to the provider.",
        identity=True,
        decided=True,
    )
    seed: int | None = option(
        None,
        "--seed",
        "whole",
        "judge",
        "Sampling seed, for providers that take one.",
        identity=True,
        decided=True,
        stored=True,
    )
    answers: str = option(
        "auto",
        "--answers",
        "text",
        "judge",
        "One letter or the label itself, with label probabilities; or JSON. auto: letters where the model gives "
        "probabilities.",
        choices=("auto", "codes", "words", "json"),
        identity=True,
        decided=True,
        stored=True,
    )
    rationale: str | None = option(
        None,
        "--rationale",
        "text",
        "judge",
        "Reasoning before or after the labels, or a quote of the passages before them, which is checked (default: as the "
        "task's file says); with letters, before and quote are two calls.",
        choices=("none", "before", "after", "quote"),
        identity=True,
        decided=True,
        stored=True,
    )
    label_order: str = option(
        "declared",
        "--label-order",
        "text",
        "judge",
        "declared, reversed or shuffled:SEED.",
        identity=True,
        decided=True,
        stored=True,
    )
    orders: int = option(
        1,
        "--orders",
        "whole",
        "judge",
        "Show the labels in K orders, a call each, and average their probabilities.",
        metavar="K",
        least=1,
        identity=True,
        decided=True,
        stored=True,
    )
    guidelines: bool = option(
        False,
        "--guidelines",
        "flag",
        "judge",
        "Show the model the guidelines for human annotators (default: not).",
        off="--no-guidelines",
        identity=True,
        decided=True,
        stored=True,
    )
    asked_as: str | None = option(
        None,
        "--as",
        "text",
        "judge",
        "Call this judge NAME: another one than the model's others.",
        metavar="NAME",
        identity=True,
    )
    same_model: bool = option(
        False,
        "--same-model",
        "flag",
        "server",
        "This address has the run's model, whatever name it gives it.",
    )
    recipe: Path | None = option(
        None,
        "--recipe",
        "file",
        "judge",
        "Ask as judge improve found it best: mode, order, examples, calibration. A panel's names its models itself.",
        identity=True,
        stored=True,
    )
    prompts: Path | None = option(
        None, "--prompts", "folder", "judge", "A folder with task files of your own.", identity=True
    )
    base_url: str | None = option(
        None, "--base-url", "text", "server", "A server that speaks the vendor's protocol.", stored=True
    )
    settings: Mapping[str, str] = dataclasses.field(
        default_factory=dict,
        metadata={
            "declared": Declared(
                "--option",
                "pairs",
                "server",
                "Provider option (n_ctx=8192); for servers also body.a.b=JSON, header.X=env:NAME, query.k=VALUE and "
                "key=env:NAME.",
                metavar="KEY=VALUE",
                identity=True,
                stored=True,
            )
        },
    )
    timeout: float = option(120.0, "--timeout", "number", "server", "Seconds for one call.")
    engine: str = option(
        "local",
        "--engine",
        "text",
        "workers",
        "Ask from this process, or from workers on a Ray cluster (RAY_ADDRESS; without it one is started here).",
        choices=("local", "ray"),
    )
    workers: int = option(
        2, "--workers", "whole", "workers", "With ray: how many, each with the model.", least=1
    )
    worker_cpus: float = option(
        0.1, "--worker-cpus", "number", "workers", "With ray: CPUs each takes.", least=0
    )
    worker_gpus: float = option(
        0.0, "--worker-gpus", "number", "workers", "With ray: GPUs each takes.", least=0
    )
    worker_command: str | None = option(
        None,
        "--worker-command",
        "text",
        "workers",
        "With ray: a server that each worker starts and asks, as in 'vllm serve MODEL --port {port}'.",
        metavar="COMMAND",
    )

    allow_host: tuple[str, ...] = option(
        (),
        "--allow-host",
        "several",
        "permissions",
        "A server that the recipe or the study may name; remembered.",
        metavar="HOST",
    )
    allow_env: tuple[str, ...] = option(
        (),
        "--allow-env",
        "several",
        "permissions",
        "An environment variable that the recipe or the study may name; remembered.",
        metavar="NAME",
    )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> RunOptions:
        """Those of a command's or a caller's options that are in the table; the others keep their defaults."""
        from judge.console import pairs

        given: dict[str, Any] = {name: value for name, value in options.items() if name in WRITTEN}
        if not isinstance(given.get("settings", {}), Mapping):
            given["settings"] = pairs(given["settings"], "--option")
        for name, value in list(given.items()):
            if WRITTEN[name].kind in ("list", "several"):
                given[name] = tuple(value or ())
        if given.get("patience") is None:
            given.pop("patience", None)
        return cls(**given)


WRITTEN: Mapping[str, Declared] = {
    field.name: field.metadata["declared"] for field in dataclasses.fields(RunOptions)
}
"""Every option by name."""
IDENTITY = tuple(name for name, written in WRITTEN.items() if written.identity)
"""The options that make a run another one: a score compares them, a printed command repeats them."""
OF_LABELS = ("rationale", "label_order", "orders")
"""Options that mean something only for a task with labels."""
OF_TASK = ("examples", "relevant", "recipe")
"""Options of one task alone: which examples and relevant passages a suite shows, the paper says."""
REPORTED = ("options", "content")
"""What a provider reports of its own options, under these keys of a stored run; part of the identity."""
_DEFAULTS = RunOptions()


def names_of(*parts: str) -> list[str]:
    """The names of the options of these parts."""
    return [name for name, written in WRITTEN.items() if written.part in parts]


def given(options: RunOptions) -> dict[str, Any]:
    """The options that are not the defaults, by name. A seed of 0 is a seed."""
    every = {name: getattr(options, name) for name in WRITTEN}
    return {name: value for name, value in every.items() if value != getattr(_DEFAULTS, name)}


def decided(options: RunOptions) -> list[str]:
    """The flags of the options given that a recipe decides."""
    return [WRITTEN[name].flag for name in given(options) if WRITTEN[name].decided]


def words(options: RunOptions) -> list[str]:
    """The options as the words of a command line, where they are not the defaults."""
    found: list[str] = []
    for name, value in given(options).items():
        written = WRITTEN[name]
        if written.kind == "flag":
            found.append(written.flag)
        elif written.kind == "pairs":
            found += [word for key, text in value.items() for word in (written.flag, f"{key}={text}")]
        elif written.kind == "several":
            found += [word for text in value for word in (written.flag, text)]
        else:
            text = ",".join(value) if written.kind == "list" else str(value)
            found += [written.flag, f"{text}s" if written.kind == "time" else text]
    return found


def typed(options: RunOptions) -> dict[str, Json]:
    """What only the command line says of a run and a later command needs: facts that are stored with it.

    Provider options that may carry a key are left out.
    """
    found: dict[str, Json] = {}
    if options.recipe is not None:
        found["recipe"] = str(options.recipe)
    public = {key: text for key, text in options.settings.items() if not key.startswith(SECRET)}
    return {**found, "settings": public} if public else found


def of_stored(model: str, stored: Mapping[str, Json]) -> tuple[str, RunOptions]:
    """The model as it was typed and the options with which a stored run is resumed.

    `model` and `stored` are the columns `model` and `options` of the study's table of runs. The task's own text is in the
    study, so the folder of its file (--prompts) is not needed.
    """
    found: dict[str, Any] = {
        name: stored[name] for name, written in WRITTEN.items() if written.stored and name in stored
    }
    if found.get("temperature", 0.0) is None:
        found |= {"temperature": 0.0, "no_temperature": True}
    found["guidelines"] = bool(found.get("guidelines"))
    # Runs of earlier versions have only what their provider reported of its options.
    settings = found.get("settings") or stored.get("options") or {}
    # A study from somebody else could name a variable that holds a key.
    found["settings"] = {key: text for key, text in settings.items() if not key.startswith(SECRET)}
    if found.get("recipe"):
        found = {name: value for name, value in found.items() if not WRITTEN[name].decided}
        found["recipe"] = Path(found["recipe"])
    asked = stored.get("asked_as")
    if asked:
        found["asked_as"] = model
    return str(asked or model), RunOptions(**found)


def settings_of(model: str, stored: Mapping[str, Json]) -> dict[str, Json]:
    """What sets a stored run apart from another one of its task and model: options of the identity, not the defaults.

    By the option's name, as plain values. What a run has beyond the table (a condition, a method) is included.
    """
    _, options = of_stored(model, stored)
    found = {name: value for name, value in given(options).items() if WRITTEN[name].identity}
    found.pop("asked_as", None)
    for name, value in found.items():
        found[name] = (
            dict(value) if isinstance(value, Mapping) else str(value) if isinstance(value, Path) else value
        )
    return found


def in_words(settings: Mapping[str, Json]) -> str:
    """Settings as people read them: the command line's words; `defaults` where there are none."""
    options = RunOptions(**{name: value for name, value in settings.items() if name in WRITTEN})
    return " ".join(words(options)) or "defaults"


def differences(runs: Sequence[tuple[str, Mapping[str, Json]]]) -> list[str]:
    """The settings of stored runs of one task and model, (model, options) each, in words that set them apart.

    Beside the options of the table these are facts of the identity whose values differ: the answer mode, a hash of content.
    """
    # Here, because it loads pydantic and every --help loads this module.
    from judge.store.runs import FACTS

    beyond = {name for _, stored in runs for name in stored} - set(FACTS) - set(WRITTEN) - set(REPORTED[:1])
    beyond = {name for name in beyond if len({str(stored.get(name)) for _, stored in runs}) > 1}
    found = []
    for model, stored in runs:
        told = in_words(settings_of(model, stored))
        extra = [
            f"{name}={str(stored[name])[:40]}" for name in sorted(beyond) if stored.get(name) is not None
        ]
        found.append(" ".join([*([] if told == "defaults" and extra else [told]), *extra]))
    return found
