"""The missing steps of a score. A user can run them as commands, and `judge suite` performs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from judge import run_options
from judge.commands import command
from judge.errors import AdjudgeError
from judge.permissions import is_permitted, remove_servers
from judge.run_options import RunOptions
from judge.types import Json

FALLBACK_MODEL = "llamacpp/smollm2"
"""The model in a printed command if no other is known. It needs no API key."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that adds missing data. `why` describes the missing data; `model` is None if the step calls no model.

    run        judge the units for which the condition `where` holds, with the task `task`
    generate   generate answers of the system `system` with the task `task` and the context `condition`
    claims     create claims from the run `run_id`
    retrieve   rank passages by BM25
    attach     copy the first `k` listed passages to the items whose lists contain passages of other items
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
    """The source of the relevant passages, for tasks that show these passages (see `judge.runner.contexts`)."""
    examples: str | None = None
    """Items that are shown as few-shot examples, separated by commas."""
    shown: str | None = None
    """The source of the option probabilities that a second pass shows (see `judge.runner.second`)."""
    # Excluded from comparison: repeated steps are found by their hash, and a dict has no hash.
    options: Mapping[str, Json] = field(default_factory=dict, compare=False)
    """The stored options of the run that this step resumes; empty for a new run."""

    def command(self, study: Path | str | None = None) -> str:
        """Return the step as a command that can be pasted into a shell. `study` is as in `judge.commands.command`."""
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
        """The model as the user types it, and the options of the run that is started or resumed."""
        model, options = run_options.from_stored(self.model or FALLBACK_MODEL, self.options)
        changes: dict[str, Json] = {"relevant": self.relevant, "where": self.where or None}
        # A resumed run has its own examples; the paper's examples are for a new run.
        changes["examples"] = self.examples or options.examples
        # The addresses come from the author of the study. If the command contained them, it would send the user's key there.
        vendor = model.partition("/")[0]
        if not all(is_permitted(vendor, url) for url in options.base_url):
            changes["base_url"] = ()
        changes["settings"] = remove_servers(vendor, options.settings)
        return model, replace(options, **changes)


class Incomplete(AdjudgeError):
    """The study lacks labels or answers. `steps` lists the steps that can be performed now to add the missing
    data.
    """

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        # Several parts of a paper may lack the same run.
        self.steps = list(dict.fromkeys(steps))
        super().__init__(
            f"{name}: the study lacks data that can be added step by step: {'; '.join(s.why for s in self.steps)}"
        )
