"""The missing steps of a score: commands that a user can type, and that `judge suite` performs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from judge import run_options
from judge.commands import command
from judge.errors import AdjudgeError
from judge.permissions import is_permitted, without_servers
from judge.run_options import RunOptions
from judge.types import Json

FALLBACK_MODEL = "llamacpp/smollm2"
"""The model in a command if none is known: the one that needs no API key."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command. `model` is None if it calls no model; `why` describes in words what is missing.

    run        a judge run of `task` on the units for which `where` holds
    generate   answers by `task` under the context `condition`, by the system `system`
    claims     claims from the run `run_id`
    retrieve   a ranking by BM25
    attach     copies of the first `k` listed passages, for items whose lists name passages of another item
    """

    kind: Literal["run", "generate", "claims", "retrieve", "attach"]
    why: str
    task: str = ""
    where: str | None = None
    model: str | None = None
    system: str | None = None
    condition: str | None = None
    ranking: tuple[str, str] | None = None
    run_id: str | None = None
    dataset: str | None = None
    k: int | None = None
    relevant: str | None = None
    """The passages that count as relevant, for tasks that show them (see `judge.runner.contexts`)."""
    examples: str | None = None
    """Items that are shown as few-shot examples, separated by commas."""
    shown: str | None = None
    """The source of the option probabilities that a second pass shows (see `judge.runner.second`)."""
    # Not compared: a dict has no hash, and repeated steps are found by their hash.
    options: Mapping[str, Json] = field(default_factory=dict, compare=False)
    """The stored options of the run that this step resumes; empty for a new run."""

    def command(self, study: Path | str | None = None) -> str:
        """The command as a line that can be pasted into a shell; `study`: see `judge.commands.command`."""
        data = ["--dataset", self.dataset] if self.dataset else []
        if self.kind == "claims":
            return command("judge answers claims", self.run_id, study=study)
        if self.kind == "attach" and self.ranking is not None:
            name, stage = self.ranking
            which = ["--name", name, "--stage", stage, "-k", str(self.k)]
            return command("judge rankings attach", *which, *data, study=study)
        if self.kind == "retrieve":
            return command("judge retrieve", *data, study=study)
        model, options = self.model_and_options
        ranking, stage_of_it = self.ranking or (None, None)
        given = {
            "--context": self.condition,
            "--ranking": ranking,
            "--stage": stage_of_it,
            # Without --system, outputs are stored under the model's name.
            "--system": None if self.system == self.model else self.system,
            "--shown": self.shown,
        }
        more = [word for flag, value in given.items() if value is not None for word in (flag, value)]
        words = [self.task, "-m", model, *more, *run_options.words(options)]
        if self.kind == "run":
            return command("judge run", *words, study=study)
        return command("judge answers generate", *words, study=study)

    @property
    def model_and_options(self) -> tuple[str, RunOptions]:
        """The model as the user types it, and the options of the run that begins or resumes."""
        model, options = run_options.of_stored(self.model or FALLBACK_MODEL, self.options)
        changes: dict[str, Json] = {"relevant": self.relevant, "where": self.where or None}
        # A resumed run has its own examples; those of a paper begin a new one.
        changes["examples"] = self.examples or options.examples
        # Whoever made the study wrote its addresses; typing the command would send the user's key there.
        vendor = model.partition("/")[0]
        if not all(is_permitted(vendor, url) for url in options.base_url):
            changes["base_url"] = ()
        changes["settings"] = without_servers(vendor, options.settings)
        return model, replace(options, **changes)


class Incomplete(AdjudgeError):
    """The study lacks labels or answers; `steps` can be taken now to add them."""

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        # Several parts of a paper may lack the same run.
        self.steps = list(dict.fromkeys(steps))
        super().__init__(
            f"{name}: {len(self.steps)} steps are missing: {'; '.join(s.why for s in self.steps)}"
        )
