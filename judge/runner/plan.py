"""What a run is asked to do, and how it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from judge.errors import AdjudgeError, ProviderError
from judge.prompts.load import Task
from judge.runner.gate import Gate
from judge.runner.requests import Sampling
from judge.runner.retry import Patience
from judge.store.selection import Selection
from judge.types import Json


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked to do. `max_tokens` bounds the tokens of this invocation, in and out."""

    task: Task
    model: str
    selection: Selection = field(default_factory=Selection)
    sampling: Sampling = field(default_factory=Sampling)
    repeats: int = 1
    concurrency: int = 64
    retry: Collection[str] = ()
    max_tokens: int | None = None
    patience: Patience = field(default_factory=Patience)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Beside task, model and sampling what makes this a run of its own (the context of generated answers)."""
    same_model: bool = False
    """Another address has the same model, whatever name it gives it."""
    asked_as: str | None = None
    """The model as typed, when `model` is the name that `--as` gave the judge."""


@dataclass(slots=True)
class Report:
    """How a run stands. `ended` holds this invocation's units by status; they sum up to `units`
    with `reused` (judged before, or answered by an identical request) and `pending`."""

    run_id: str
    resumed: bool
    units: int
    left_out: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    labelled: int = 0
    seconds: float = 0.0
    usage: Counter[str] = field(default_factory=Counter)
    cuts: int = 0
    derived: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    error: AdjudgeError | None = None
    last_failure: ProviderError | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        """Units with a judgement, from this invocation or before."""
        return self.reused + sum(self.ended.values())

    @property
    def pending(self) -> int:
        """Units still without one."""
        return self.units - self.done


@dataclass(slots=True)
class Live:
    """What a progress line shows, read whenever it likes."""

    report: Report
    gate: Gate
    started: float
