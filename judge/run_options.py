"""The options of a run, each declared once.

`RunOptions` is the table: each field is an option, with its name, type and default. `option` adds the help
text, the form on the command line, whether the option is part of the run's identity, and whether a stored run
contains it. These are derived from the table:

    the command-line options of `judge run` and similar commands    judge.cli.options
    the arguments of `Study.run`, `improve` and `suite`             adjudge.options
    the options that a recipe sets                                  `list_decided`
    the options with which a stored run is resumed                  `from_stored`
    the command that resumes it                                     `words`
    the settings that distinguish runs of one task and model        `settings_of`
"""

# ruff: noqa: RUF009  (`option` returns a dataclass field, not a shared default)
from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judge.commands import command
from judge.errors import UsageError
from judge.types import Json

if TYPE_CHECKING:
    from judge.store import Store

Kind = Literal[
    "text",
    "whole",
    "number",
    "number or none",
    "flag",
    "time",
    "file",
    "folder",
    "several",
    "limits",
    "pairs",
]
"""The kind of an option's value.

Options of the kinds `several`, `limits` (5usd) and `pairs` (KEY=VALUE) may be repeated.
"""

SEVERAL = ("several", "limits")
"""Kinds whose values are tuples of strings."""
SECRET = ("header.", "query.", "key")
"""Prefixes of provider options that may contain a key.

These options are neither stored nor printed in commands.
"""


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of an option. Its name, type and default are those of the dataclass field.

    If `flag` is empty, the flag is the field's name with dashes. `off` is the flag that switches the option
    off, and `least` is the smallest valid number.
    """

    kind: Kind
    help: str
    flag: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    off: str = ""
    decided: bool = False
    """Whether a recipe sets the option. Such an option is part of the identity and is stored."""
    identity: bool = False
    """Whether runs with different values of the option are different runs."""
    stored: bool = False
    """Whether a stored run contains the option, under the field's name."""

    def complete(self, name: str) -> Declared:
        """Return the declaration with its missing values filled in.

        The flag is derived from the name, and the metavar from the kind. A `decided` option is also part of
        the identity and stored.
        """
        return dataclasses.replace(
            self,
            flag=self.flag or f"--{name.replace('_', '-')}",
            metavar=self.metavar or METAVARS.get(self.kind),
            identity=self.identity or self.decided,
            stored=self.stored or self.decided,
        )


METAVARS: Mapping[str, str] = {"whole": "N", "file": "FILE", "folder": "FOLDER", "time": "TIME"}
"""The default metavar of each kind."""


def option(default: Any, kind: Kind, help: str, **more: Any) -> Any:
    """Return a dataclass field that contains the declaration of an option."""
    # A dataclass does not accept a dictionary as a default, so `dict` itself is passed.
    how: dict[str, Any] = {"default_factory": dict} if default is dict else {"default": default}
    return dataclasses.field(**how, metadata={"declared": Declared(kind, help, **more)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `judge run`, with the same names and defaults. Times are in seconds.

    `settings` contains the provider options (--option), and `asked_as` is the option --as. If `rationale` is
    None, the setting in the task file applies.
    """

    limit: int | None = option(None, "whole", "Use only the first N units.", flag="-n", least=1)
    where: str | None = option(None, "text", "Use only units that match this SQL condition.", metavar="SQL")
    units_of: str | None = option(
        None, "text", "Use only the units of this batch of people.", metavar="BATCH"
    )
    sample: int | None = option(
        None, "whole", "Random seed for the unit order. With -n: draw a random sample.", metavar="SEED"
    )
    relevant: str | None = option(
        None,
        "text",
        "Passages to treat as relevant: answer, answer+related, marked or RUN:answer.",
        identity=True,
        stored=True,
        metavar="WHICH",
    )
    examples: str | None = option(
        None, "text", "Show these labelled items as few-shot examples.", decided=True, metavar="ITEM,ITEM"
    )
    repeats: int = option(1, "whole", "Number of calls per unit.", least=1)
    concurrency: int | None = option(
        None, "whole", "Maximum concurrent calls per server (default: 100).", least=1
    )
    patience: float = option(1800.0, "time", "Maximum time to wait for an unreachable server or study.")
    retry: tuple[str, ...] = option(
        (),
        "several",
        "Retry unparsed, failed, refused or truncated units. Repeatable.",
        choices=("unparsed", "failed", "refused", "truncated"),
        metavar="STATUS",
    )
    max: tuple[str, ...] = option(
        (), "limits", "Stop at this limit, e.g. 5usd, 2h or 1Mtokens. Repeatable.", metavar="VALUE"
    )
    prices: Path | None = option(None, "file", "JSON file of prices by model (default: list prices).")
    max_output_tokens: int = option(
        512, "whole", "Maximum number of tokens in a reply.", least=1, stored=True
    )
    temperature: float | None = option(
        0.0,
        "number or none",
        "Sampling temperature, or 'none' for the provider's default.",
        least=0,
        decided=True,
        metavar="NUMBER",
    )
    seed: int | None = option(None, "whole", "Sampling seed, for providers that support one.", decided=True)
    answers: str = option(
        "auto",
        "text",
        "Form of the answer: auto, codes (letters), words or json.",
        choices=("auto", "codes", "words", "json"),
        decided=True,
        metavar="FORM",
    )
    rationale: str | None = option(
        None,
        "text",
        "When to ask for a rationale: none, before, after or quote (default: as in the task).",
        choices=("none", "before", "after", "quote"),
        decided=True,
        metavar="WHEN",
    )
    label_order: str = option(
        "declared",
        "text",
        "Order of the labels: declared, reversed, shuffled:SEED, or K for K orders.",
        decided=True,
        metavar="ORDER",
    )
    guidelines: bool = option(
        False,
        "flag",
        "Show the model the guidelines for human annotators.",
        off="--no-guidelines",
        decided=True,
    )
    asked_as: str | None = option(
        None,
        "text",
        "Name to distinguish judges that use the same model.",
        flag="--as",
        identity=True,
        metavar="NAME",
    )
    same_model: bool = option(False, "flag", "Accept servers that report a different model name.")
    recipe: Path | None = option(
        None, "file", "Recipe from judge improve or judge panel to use.", identity=True, stored=True
    )
    prompts: Path | None = option(None, "folder", "Folder with your own task files.")
    base_url: tuple[str, ...] = option(
        (), "several", "URL of a server with the vendor's API. Repeatable.", stored=True, metavar="URL"
    )
    settings: Mapping[str, str] = option(
        dict,
        "pairs",
        "Provider option, e.g. n_ctx=8192 or key=env:NAME.",
        flag="--option",
        metavar="KEY=VALUE",
        identity=True,
        stored=True,
    )
    timeout: float = option(120.0, "number", "Timeout of a call, in seconds.", metavar="SECONDS")
    allow: tuple[str, ...] = option(
        (), "several", "Allow this HOST or env:NAME in a recipe or study.", metavar="WHAT"
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> RunOptions:
        """Build the options from a mapping of names to values.

        Names that are not options are ignored. Missing options take their default values.
        """
        from judge.console import pairs

        given: dict[str, Any] = {name: value for name, value in options.items() if name in WRITTEN}
        if not isinstance(given.get("settings", {}), Mapping):
            given["settings"] = pairs(given["settings"], "--option")
        for name, value in list(given.items()):
            if WRITTEN[name].kind in SEVERAL:
                given[name] = (value,) if isinstance(value, str) else tuple(value or ())
        if given.get("patience") is None:
            given.pop("patience", None)
        return cls(**given)


WRITTEN: Mapping[str, Declared] = {
    field.name: field.metadata["declared"].complete(field.name) for field in dataclasses.fields(RunOptions)
}
"""Maps the name of each option to its declaration."""
IDENTITY = tuple(name for name, written in WRITTEN.items() if written.identity)
"""The options that distinguish runs. Scores compare them, and printed commands repeat them."""
OF_LABELS = ("rationale", "label_order")
"""Options that apply only to tasks with labels."""
OF_TASK = ("examples", "relevant", "recipe")
"""Options that apply to a single task.

A suite has several tasks, and the paper sets these options for each of them.
"""
REPORTED = ("options", "content")
"""Keys of a stored run that contain the options reported by the provider.

These options are part of the run's identity.
"""
_DEFAULTS = RunOptions()


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(usd|[kM]?tokens)")
_THOUSANDS = {"tokens": 1, "ktokens": 1_000, "Mtokens": 1_000_000}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits that --max sets: tokens (input and output), US dollars, and seconds. None means no limit."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


def limits_of(texts: Sequence[str]) -> RunLimits:
    """Parse the values of --max.

    Raises UsageError if a value is malformed, or if two values limit the same quantity.
    """
    from judge.console import seconds_of

    limits: dict[str, float] = {}
    for text in texts:
        if (amount := _AMOUNT.fullmatch(text.replace(" ", ""))) is None:
            name, value = "seconds", seconds_of(text)
        elif amount[2] == "usd":
            name, value = "cost", float(amount[1])
        else:
            name, value = "tokens", float(amount[1]) * _THOUSANDS[amount[2]]
        if not value > 0:
            raise UsageError(
                f"--max {text}: must be a limit such as 5usd, 2h, 30m, 90s, 1Mtokens or 500ktokens"
            )
        if name in limits:
            raise UsageError(f"--max {text}: another --max limits the same quantity; omit one of them")
        limits[name] = value
    tokens = limits.get("tokens")
    return RunLimits(None if tokens is None else int(tokens), limits.get("cost"), limits.get("seconds"))


def order_of(text: str) -> tuple[str, int]:
    """Parse --label-order. Return the first order and the number of orders.

    `3` means three orders, beginning with the declared order. `reversed*3` means three orders, beginning with
    the reversed order; this form is used only in recipes. Raises UsageError if the value is invalid.
    """
    first, _, number = text.rpartition("*")
    if text.isdecimal():
        first, number = "declared", text
    elif not first:
        first, number = text, "1"
    if (
        re.fullmatch(r"declared|reversed|shuffled:\d+", first) is None
        or not number.isdecimal()
        or int(number) < 1
    ):
        raise UsageError(
            f"--label-order {text}: must be declared, reversed, shuffled:SEED, or an integer (how many orders to use)"
        )
    return first, int(number)


def _order_text(first: str, orders: int) -> str:
    """Return the value of --label-order for a stored run."""
    return str(orders) if first == "declared" else f"{first}*{orders}"


def get_given(options: RunOptions) -> dict[str, Any]:
    """Return a mapping from name to value of the options that differ from their defaults."""
    # Values are compared with the default, because 0 is a valid seed.
    every = {name: getattr(options, name) for name in WRITTEN}
    return {name: value for name, value in every.items() if value != getattr(_DEFAULTS, name)}


def list_decided(options: RunOptions) -> list[str]:
    """Return the flags of the options that have non-default values and that a recipe can set."""
    return [WRITTEN[name].flag for name in get_given(options) if WRITTEN[name].decided]


def words(options: RunOptions) -> list[str]:
    """Return the options that differ from their defaults as command-line arguments."""
    line: list[str] = []
    for name, value in get_given(options).items():
        written = WRITTEN[name]
        if written.kind == "flag":
            line.append(written.flag)
        elif written.kind == "pairs":
            line += [word for key, text in value.items() for word in (written.flag, f"{key}={text}")]
        elif written.kind in SEVERAL:
            line += [word for text in value for word in (written.flag, text)]
        else:
            text = "none" if value is None else str(value)
            line += [written.flag, f"{text}s" if written.kind == "time" else text]
    return line


def get_typed(options: RunOptions) -> dict[str, Json]:
    """Return the recipe and the provider options, which are stored with the run because later commands need
    them.
    """
    facts: dict[str, Json] = {}
    if options.recipe is not None:
        facts["recipe"] = str(options.recipe)
    # Keys are never stored.
    public = {key: text for key, text in options.settings.items() if not key.startswith(SECRET)}
    return {**facts, "settings": public} if public else facts


def from_stored(model: str, stored: Mapping[str, Json]) -> tuple[str, RunOptions]:
    """Return the model as typed, and the options with which a stored run is resumed.

    `model` and `stored` are the columns `model` and `options` of the study's table of runs.
    """
    # The folder of task files (--prompts) is not stored, because the study contains the text of the task.
    fields: dict[str, Any] = {
        name: stored[name] for name, written in WRITTEN.items() if written.stored and name in stored
    }
    if isinstance(url := fields.pop("base_url", None), str):
        fields["base_url"] = (url,)
    if stored.get("orders", 1) != 1:
        fields["label_order"] = _order_text(stored.get("label_order", "declared"), stored["orders"])
    fields["guidelines"] = bool(fields.get("guidelines"))
    # Runs of earlier versions contain only the options that their provider reported.
    settings = fields.get("settings") or stored.get("options") or {}
    # A study from somebody else could name a variable that contains a key.
    fields["settings"] = {key: text for key, text in settings.items() if not key.startswith(SECRET)}
    # The recipe sets these options again, and a command with both would be an error.
    if fields.get("recipe"):
        fields = {name: value for name, value in fields.items() if not WRITTEN[name].decided}
        fields["recipe"] = Path(fields["recipe"])
    model_typed = stored.get("asked_as")
    if model_typed:
        fields["asked_as"] = model
    return str(model_typed or model), RunOptions(**fields)


def repeat_command(store: Store, run: str, *more: str) -> str:
    """Return the command that continues a stored run with its own settings, with `more` at its end.

    Return "" for a run that no such command made: one that was imported or derived from other runs.
    """
    # Imported here, because it loads pydantic, and every --help loads this module.
    from judge.store.export import find_named_run
    from judge.store.runs import IMPORTED

    row = find_named_run(store, run)
    stored = row["options"] if isinstance(row["options"], dict) else json.loads(str(row["options"]))
    if row.get("derived_from") or IMPORTED in stored:
        return ""
    typed, options = from_stored(str(row["model"]), stored)
    return command("judge run", row["task"], "-m", typed, *words(options), *more)


def settings_of(model: str, stored: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings that distinguish a stored run from others with the same task and model.

    The result maps option names to JSON values. It contains the options that are part of a run's identity and
    differ from their defaults.
    """
    _, options = from_stored(model, stored)
    settings = {name: value for name, value in get_given(options).items() if WRITTEN[name].identity}
    # All runs of one model have this name, so it distinguishes none of them.
    settings.pop("asked_as", None)
    for name, value in settings.items():
        settings[name] = (
            dict(value) if isinstance(value, Mapping) else str(value) if isinstance(value, Path) else value
        )
    return settings


def describe(settings: Mapping[str, Json]) -> str:
    """Return the settings as command-line arguments, or `defaults` if there are none."""
    options = RunOptions(**{name: value for name, value in settings.items() if name in WRITTEN})
    return " ".join(words(options)) or "defaults"


def differences(runs: Sequence[tuple[str, Mapping[str, Json]]]) -> list[str]:
    """Describe how stored runs with the same task and model differ. Each run is a pair (model, options).

    There is one description for each run. It contains the options that differ from their defaults, and other
    values that are not the same in all runs, such as the answer mode or a content hash.
    """
    # Imported here, because it loads pydantic, and every --help loads this module.
    from judge.store.runs import FACTS

    known = {*FACTS, *WRITTEN, REPORTED[0], "orders"}
    beyond = {name for _, stored in runs for name in stored} - known
    beyond = {name for name in beyond if len({str(stored.get(name)) for _, stored in runs}) > 1}
    descriptions = []
    for model, stored in runs:
        settings = describe(settings_of(model, stored))
        extra = [
            f"{name}={str(stored[name])[:40]}" for name in sorted(beyond) if stored.get(name) is not None
        ]
        descriptions.append(" ".join([*([] if settings == "defaults" and extra else [settings]), *extra]))
    return descriptions
