"""The system under test in one reading of a paper: its answers, its rankings, and the model that makes its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.errors import UsageError
from judge.importers.conditions import name_of
from judge.providers.base import is_model
from judge.runner import contexts
from judge.store.rankings import no_rankings
from judge.store.study import Store
from judge.suites.paper import Paper, ScoreRequest
from judge.suites.queries import Rows, System
from judge.suites.reading import Lacking, Reading
from judge.suites.run_labels import RunLabels
from judge.suites.steps import Step
from judge.types import Json

STAGES = ("top-k", "rerank", "retrieve")
"""Stages of a ranking, the last one of a pipeline first."""


class SystemReading(Reading):
    """A reading with the requested `rows`, `judges` (the runs) and `whose` (the system and condition that were read).

    Another system's outputs are never used in place of outputs of the system under test.
    """

    def __init__(self, store: Store, paper: Paper, request: ScoreRequest, rows: Rows | None = None) -> None:
        """`rows`: the rows of another reading with the same request, so that they are read only once."""
        super().__init__(paper, request, str(store.path))
        self.store = store
        self.rows = rows or Rows(store, request)
        self.judges = RunLabels(self.rows, self)
        self.whose: System | None = None
        self.n_outputs = 0
        """Conditions of the paper for which the system under test has outputs, or will have them."""

    @property
    def dataset(self) -> str:
        """The data set. Raises UsageError if the study has several and none is named, or lacks the named one."""
        return self.rows.dataset

    @property
    def named(self) -> str | None:
        """The system under test as the user names it: --system, else the model. None if neither is given."""
        return self.request.system or next(iter(self.request.models), None)

    def tested(self) -> str:
        """Return the name of the system under test: --system, else the model, else the only one with answers."""
        if self.request.system is not None:
            return self.request.system
        if self.request.models:
            return self.request.models[0]
        there = list(dict.fromkeys(s.system for s in self.rows.systems()))
        if len(there) > 1:
            raise UsageError(
                f"several systems have answers: choose with --system; available: {', '.join(there)}"
            )
        return there[0] if there else self.judges.guess()

    def system(self) -> System | None:
        """Return the system whose answers are requested; None if there are no answers yet.

        Raises UsageError if several systems fit, or if the requested system or condition does not exist.
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
            raise UsageError(f"several answers fit: choose with --system and --condition; available: {known}")
        if there and (request.system or request.condition):
            raise UsageError(f"no answers by that system under that condition; available: {known}")
        return None

    def stored(self, system: str, context: str, ranking: tuple[str, str] | None = None) -> System | None:
        """Return the stored answers of a system under a condition, which has the paper's name or that of `judge answers generate`.

        Return None if there are none.
        """
        there = self.rows.systems()
        # Imported outputs have the paper's name of a condition, and those made here have ours.
        names = [name_of(self.paper.name, context)]
        if not context.startswith("top:") or ranking is not None:
            plain, _, mark = context.partition("+")
            # `+noise:10` is part of a context, and `+self-aware` is a second pass with it.
            is_second = mark.endswith("-aware")
            names.append(
                f"{self.given(plain, ranking).name}+{mark}"
                if is_second
                else self.given(context, ranking).name
            )
        elif context.startswith("top:"):
            names += [
                s.condition for s in there if s.system == system and s.condition.startswith(f"{context}:")
            ]
        return next((System(system, name) for name in names if System(system, name) in there), None)

    def given(self, context: str, ranking: tuple[str, str] | None = None) -> contexts.Context:
        """Return the context that `--context` specifies; `ranking` is the (name, stage) whose top passages it shows."""
        name, stage = ranking or (None, None)
        return contexts.parse(self.store, context, ranking=name, stage=stage)

    def maker(self, system: str) -> tuple[str, Mapping[str, Json]] | None:
        """Return the model that makes a system's outputs: its name, and the options with which a new run begins.

        This is the model of the runs that made outputs of the system, or the system itself if it is the name of a model.
        Return None if the system's outputs were imported (unless --also-generate was given) or if it is not a model. Outputs
        that such a system lacks stay missing; no judge fills them in.
        """
        # A gap of an imported system stays a gap. Filled by a model, the score would be another system's.
        if system in self.rows.imported and not self.request.also_generate:
            return None
        run = next((r for r in self.judges.runs if r.options.get("system") == system), None)
        if run is not None:
            return run.model, run.options
        # A name with a slash alone is not a model: systems are called acme/rag, too.
        named = system in self.request.models or is_model(system)
        if named or (self.request.system is None and not self.rows.systems()):
            return system, {}
        return (self.request.models[0], {}) if self.request.also_generate and self.request.models else None

    def ranking(self, name: str | None = None) -> tuple[str, str] | None:
        """Return (name, stage) of the requested ranking of the data set. If there is none at all, record a step and return None.

        Without `name`, the system's own ranking is used, which has the name of the system, in its last stage, because the system
        was given the passages of that stage. A ranking with another system's name is never used for this system. If only other
        systems have one, record the lacking condition and return None. Raises UsageError if several rankings fit, or if the
        named one does not exist.
        """
        there = self.rows.rankings()
        fit = [(n, s) for n, s in there if name in (None, n)]
        system = self.named
        if name is None:
            names = self.own_rankings(list(dict.fromkeys(n for n, _ in fit)))
            fit = [(n, s) for n, s in fit if n in names]
        if len({n for n, _ in fit}) == 1:
            chosen_ranking = min(
                fit,
                # A stage with a name of its own is taken only where there is no other.
                key=lambda candidate: STAGES.index(candidate[1]) if candidate[1] in STAGES else len(STAGES),
            )
            if system is not None and name is None and chosen_ranking[0] != system:
                self.note(
                    f"the ranking '{chosen_ranking[0]}' ({chosen_ranking[1]}) is not named after a system and is used for '{system}'"
                )
            return chosen_ranking
        known = ", ".join(f"{n} ({s})" for n, s in there)
        if fit:
            raise UsageError(f"several rankings fit: choose with --ranking; available: {known}")
        # A BM25 ranking made here would not be that of an imported system.
        if system is not None and name is None and (there or self.maker(system) is None):
            self.lack_ranking(system)
            return None
        if there:
            raise UsageError(f"no such ranking of '{self.dataset}'; available: {known}")
        if name:
            raise UsageError(f"no ranking of '{self.dataset}' yet: {no_rankings()}")
        self.need(Step("retrieve", f"no ranking of '{self.dataset}'", dataset=self.dataset))
        return None

    def own_rankings(self, names: Sequence[str]) -> list[str]:
        """Return the rankings that may be the system's: the one with its name, else those that belong to no other system.

        If no system is named, return all of them.
        """
        system = self.named
        if system is None or system in names:
            return [name for name in names if system in (None, name)]
        # With another system's ranking, one system would be scored by the retriever of another.
        others = {s.system for s in self.rows.systems()} | self.rows.imported
        return [name for name in names if name not in others]

    def lack_ranking(self, system: str) -> None:
        """Record that a system has no ranking of its own."""
        words = self.import_words("RUN.trec", "--system", system, "--stage", "retrieve")
        self.lacking.append(Lacking(system, "ranking", words))

    def rankings(self, name: str = "") -> list[tuple[str, str]]:
        """Return (name, stage) of all rankings of the data set, or of those with this name. Raises UsageError if there are none."""
        there = self.rows.rankings()
        fit = [(n, s) for n, s in there if name in ("", n)]
        if not fit:
            known = ", ".join(f"{n} ({s})" for n, s in there) or f"none: {no_rankings()}"
            raise UsageError(f"no such ranking of '{self.dataset}'; available: {known}")
        return fit
