"""The system under test of a score: its answers, its rankings, and the model that generates its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from judge.errors import UsageError
from judge.importers.conditions import name_of
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.queries import Rows, System
from judge.papers.engine.reading import Lacking, Reading
from judge.papers.engine.run_labels import RunLabels
from judge.papers.engine.steps import Step
from judge.providers.base import is_model
from judge.runner import contexts
from judge.store.rankings import describe_ranking_commands
from judge.store.study import Store
from judge.types import Json

STAGES = ("top-k", "rerank", "retrieve")
"""Stages of a ranking, from the last stage of a pipeline to the first."""


class SystemReading(Reading):
    """A reading that also chooses the answers and rankings of the system under test.

    `rows` contains the requested rows, and `judges` contains the runs. `whose` is the system and condition
    whose answers were read. Outputs of a different system are never used instead of outputs of the system
    under test.
    """

    def __init__(self, store: Store, paper: Paper, request: ScoreRequest, rows: Rows | None = None) -> None:
        """Start a reading. `rows` can be passed from another reading with the same request, to avoid reading them twice."""
        super().__init__(paper, request, str(store.path))
        self.store = store
        self.rows = rows or Rows(store, request)
        self.judges = RunLabels(self.rows, self)
        self.whose: System | None = None
        self.n_outputs = 0
        """The number of the paper's conditions for which the system under test has outputs or can generate
        outputs.
        """

    @property
    def dataset(self) -> str:
        """The requested data set, or the only one. Raises UsageError if it does not exist, or if the choice is ambiguous."""
        return self.rows.dataset

    @property
    def named(self) -> str | None:
        """The name that the user gave for the system under test: --system or, without it, the model. None if
        neither is given.
        """
        return self.request.system or next(iter(self.request.models), None)

    def get_tested(self) -> str:
        """Return the name of the system under test: --system or, without it, the model. If neither is given,
        return the only system with answers.
        """
        if self.named is not None:
            return self.named
        there = list(dict.fromkeys(s.system for s in self.rows.systems()))
        if len(there) > 1:
            raise UsageError(
                f"several systems have answers: choose one with --system; available: {', '.join(there)}"
            )
        return there[0] if there else self.judges.guess()

    @property
    def is_imported(self) -> bool:
        """Whether outputs of the system under test were imported."""
        return self.get_tested() in self.rows.imported

    def system(self) -> System | None:
        """Return the requested system and condition, or None if the data set has no answers yet.

        Raises UsageError if several systems match the request, or if the requested system or condition does not
        exist.
        """
        there = self.rows.systems()
        request = self.request
        fit = [
            s
            for s in there
            if request.system in (None, s.system) and request.condition in (None, s.condition)
        ]
        if len(fit) == 1:
            self.whose = fit[0]
            return fit[0]
        known = ", ".join(f"{s.system} ({s.condition})" for s in there)
        if fit:
            raise UsageError(
                f"there are several sets of answers: choose one with --system and --condition; available: {known}"
            )
        if there and (request.system or request.condition):
            raise UsageError(
                f"there are no answers by this system (--system) under this condition (--condition); available: {known}"
            )
        return None

    def find_stored(self, system: str, context: str, ranking: tuple[str, str] | None = None) -> System | None:
        """Return the stored answers of a system under a condition, or None if there are none.

        A condition can have two names: imported answers use the paper's name, and generated answers use
        adjudge's name. Both names are tried.
        """
        there = self.rows.systems()
        # Imported outputs use the paper's name of a condition, and outputs that were generated in the study use ours.
        names = [name_of(self.paper.name, context)]
        if not context.startswith("top:") or ranking is not None:
            plain, _, mark = context.partition("+")
            # `+noise:10` is part of a context, whereas `+self-aware` marks a second pass with that context.
            is_second = mark.endswith("-aware")
            names.append(
                f"{self.parse_context(plain, ranking).name}+{mark}"
                if is_second
                else self.parse_context(context, ranking).name
            )
        elif context.startswith("top:"):
            names += [
                s.condition for s in there if s.system == system and s.condition.startswith(f"{context}:")
            ]
        return next((System(system, name) for name in names if System(system, name) in there), None)

    def parse_context(self, context: str, ranking: tuple[str, str] | None = None) -> contexts.Context:
        """Parse the value of `--context`. `ranking` is the (name, stage) of the ranking whose top passages are shown."""
        name, stage = ranking or (None, None)
        return contexts.parse(self.store, context, ranking=name, stage=stage)

    def maker(self, system: str) -> tuple[str, Mapping[str, Json]] | None:
        """Return the model that generates a system's outputs, and the options for a new run.

        If runs have already generated outputs of the system, this is their model. Otherwise it is the system
        itself, if its name is the name of a model. Return None if no model is known.

        Also return None if the system's outputs were imported, unless --also-generate was given. Outputs that
        an imported system lacks stay missing, because a judge's outputs are not outputs of that system.
        """
        # If a model filled the gaps of an imported system, the score would be of a different system.
        if system in self.rows.imported and not self.request.also_generate:
            return None
        run = next((r for r in self.judges.runs if r.options.get("system") == system), None)
        if run is not None:
            return run.model, run.options
        # A slash in the name does not make it a model, because systems may be called acme/rag, too.
        named = system in self.request.models or is_model(system)
        if named or (self.request.system is None and not self.rows.systems()):
            return system, {}
        return (self.request.models[0], {}) if self.request.also_generate and self.request.models else None

    def ranking(self, name: str | None = None) -> tuple[str, str] | None:
        """Return the requested ranking of the data set as (name, stage).

        Without `name`, the only ranking that `list_rankings` returns is used. If a ranking has several
        stages, the last stage is used, because the system was given the passages of this stage.

        If there is no ranking, return None and record what is missing: a step that creates a ranking, or a
        ranking that must be imported for the system. Raises UsageError if the choice is ambiguous, or if the
        named ranking does not exist.
        """
        there = self.rows.rankings()
        fit = [(n, s) for n, s in there if name in (None, n)]
        system = self.named
        if name is None:
            names = self.list_rankings(list(dict.fromkeys(n for n, _ in fit)))
            fit = [(n, s) for n, s in fit if n in names]
        if len({n for n, _ in fit}) == 1:
            chosen_ranking = min(
                fit,
                # A stage with a custom name is used only if there is no other.
                key=lambda candidate: STAGES.index(candidate[1]) if candidate[1] in STAGES else len(STAGES),
            )
            if system is not None and name is None and chosen_ranking[0] != system:
                self.note(
                    f"there is no ranking with the name '{system}', so the ranking '{chosen_ranking[0]}' ({chosen_ranking[1]}) is used"
                )
            return chosen_ranking
        known = ", ".join(f"{n} ({s})" for n, s in there)
        if fit:
            raise UsageError(
                "there are several rankings: choose one with --ranking, or with --paper-option ranking=NAME where there is no "
                f"such option; available: {known}"
            )
        # A BM25 ranking of this study would not be the ranking of an imported system.
        if system is not None and name is None and (there or self.maker(system) is None):
            self.record_missing_ranking(system)
            return None
        if there:
            raise UsageError(f"no such ranking for '{self.dataset}'; available: {known}")
        if name:
            raise UsageError(f"the data set '{self.dataset}' has no ranking: {describe_ranking_commands()}")
        self.need(Step("retrieve", f"the data set '{self.dataset}' has no ranking", dataset=self.dataset))
        return None

    def read_ranked(self, ranking: tuple[str, str]) -> pd.DataFrame:
        """Return a ranking as a table: item_id, rank, passage_id. A note states for how many questions it has nothing.

        The measures count such questions as 0.
        """
        ranked, items = self.rows.read_ranked(ranking), self.rows.items["item_id"]
        if n := int((~items.isin(ranked["item_id"])).sum()):
            self.note(
                f"the ranking '{ranking[0]}' ({ranking[1]}) has no passage for {n} of {len(items)} items; "
                "these count as 0 in retrieval measures"
            )
        return ranked

    def list_rankings(self, names: Sequence[str]) -> list[str]:
        """Return the names of the rankings that can be used for the system.

        If there is a ranking with the system's name, only this ranking can be used. Otherwise, all rankings can
        be used except those with the name of another system. If no system is named, all names are returned.
        """
        system = self.named
        if system is None or system in names:
            return [name for name in names if system in (None, name)]
        # With the ranking of another system, the wrong retriever would be scored.
        others = {s.system for s in self.rows.systems()} | self.rows.imported
        return [name for name in names if name not in others]

    def record_missing_ranking(self, system: str) -> None:
        """Record that a system has no ranking of its own."""
        words = self.import_words("RUN.trec", "--system", system, "--stage", "retrieve")
        self.lacking.append(Lacking(system, "ranking", words))

    def rankings(self, name: str = "") -> list[tuple[str, str]]:
        """List the data set's rankings as (name, stage) pairs. If a name is given, list only rankings with this
        name.

        Raises UsageError if there are none.
        """
        there = self.rows.rankings()
        fit = [(n, s) for n, s in there if name in ("", n)]
        if not fit:
            known = ", ".join(f"{n} ({s})" for n, s in there) or f"none: {describe_ranking_commands()}"
            raise UsageError(f"no such ranking for '{self.dataset}'; available: {known}")
        return fit
