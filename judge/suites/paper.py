"""The declaration of a paper, and the request for its scores. `--help` imports this module, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.store.study import Store

if TYPE_CHECKING:
    from judge.scores.score import Score
    from judge.suites.chosen import Run
    from judge.suites.paper_study import PaperStudy


@dataclass(frozen=True, slots=True)
class Option:
    """A choice between readings of a paper. Without `choices` any text is accepted, and `compute_scores` validates it.

    `several`: the option may be repeated, which is the same as one value with commas.
    """

    name: str
    default: str
    help: str
    choices: tuple[str, ...] = ()
    several: bool = False


RANKING = Option("ranking", "", "Name of the ranking, if the study has several rankings.")


@dataclass(frozen=True, slots=True)
class Part:
    """Measures of a paper that need the same runs; `tasks` are the tasks that a judge must have run for them.

    `instead`: tasks that take the place of one of these under other options.
    """

    name: str
    tasks: tuple[str, ...]
    help: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownAs:
    """The name that other tools or papers use for a measure, and where it is defined."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper. `compute_scores` returns the scores (see `judge.suites`).

    `strata`: strata that only this paper has, as name -> function of the study that returns question -> stratum.
    `lower`: patterns of measures of which less is better. `neutral`: of measures without a better side. `main`: of measures
    that a leaderboard shows first (none: all with a better side). `contenders` lists what a leaderboard of all systems
    compares, if that is not every system with answers. `several` aggregates the scores of several judges by a rule of the
    paper: {judge: its scores} -> scores, which replace those of the same name in the mean over judges. `reads` returns
    the options under which a run is read, if these are not the defaults. `present`: whether a data set has the data
    that the paper needs.
    """

    name: str
    title: str
    compute_scores: Callable[[PaperStudy], list[Score]]
    parts: tuple[Part, ...]
    options: tuple[Option, ...] = ()
    strata: Mapping[str, Callable[[PaperStudy], Mapping[Any, Any]]] = field(default_factory=dict)
    several: Callable[[Mapping[str, list[Score]]], list[Score]] | None = None
    is_judged: bool = True
    """Whether judges label what is scored. A paper whose systems answer questions with gold answers is not judged."""
    has_systems: bool = True
    """Whether systems are scored. A paper about a judge's own labels has none."""
    reads: Callable[[Run], Mapping[str, str]] = lambda run: {}
    present: Callable[[Store, str], bool] = lambda store, dataset: True
    lower: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    main: tuple[str, ...] = ()
    contenders: Callable[[PaperStudy], list[str]] | None = None
    abbreviations: tuple[str, ...] = ()
    """Words of its measures that a report writes in capitals."""
    aliases: tuple[str, ...] = ()
    """Other names that the commands take."""
    known: Mapping[str, KnownAs] = field(default_factory=dict)
    """Measure -> its known name and source, where people know it by another one."""

    @property
    def corrects(self) -> bool:
        """Whether human labels can correct the measures. An option `reference` of the paper has another meaning."""
        # In retrieval and conformal, `reference` names the labels that the judge is measured against.
        return self.is_judged and all(option.name != "reference" for option in self.options)

    def better(self, measure: str) -> int:
        """Return 1 when a greater value is better, -1 when a smaller one is, 0 when neither."""
        # Neutral patterns go first: URAG's `set_size_ratio` fits `*size*` (less is better) and `*_ratio` (neither).
        if any(fnmatchcase(measure, pattern) for pattern in self.neutral):
            return 0
        return -1 if any(fnmatchcase(measure, pattern) for pattern in self.lower) else 1

    def readable(self, measure: str) -> str:
        """Return a measure as a paper writes it: `unadjusted_raf` is unadjusted RAF, `cr[rerank]` CR [rerank]."""
        words = measure.replace("_", " ").replace("[", " [").split(" ")
        return " ".join(word.upper() if word in self.abbreviations else word for word in words)

    def is_main(self, measure: str) -> bool:
        """Return whether a leaderboard shows this measure first."""
        if self.main:
            return any(fnmatchcase(measure, pattern) for pattern in self.main)
        return self.better(measure) != 0


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """A request for scores: rows, system, judges and readings."""

    models: tuple[str, ...] = ()
    """Judges whose runs are read; none: the only judge of the study."""
    runs: tuple[str, ...] = ()
    """Runs to take for their tasks, whatever the models."""
    system: str | None = None
    condition: str | None = None
    dataset: str | None = None
    limit: str | None = None
    """Number or share (10%) of the questions: the first ones, or a sample."""
    sample: int | None = None
    parts: tuple[str, ...] = ()
    """Parts asked for; none: all that the study's data allow."""
    partial: bool = False
    """Units that are not judged yet are counted as missing, and do not prevent the score."""
    options: Mapping[str, str] = field(default_factory=dict)
    prompts: Path | None = None
    """A folder of task files beside the shipped ones."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Only runs with these settings (options of `judge.run_options` by name); empty: runs with any settings."""
    equal: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Role (judge or system) and model -> the settings, in words, of the set of runs that is read; none: the newest complete runs."""
    also_generate: bool = False
    """Whether a model may add outputs to a system whose outputs were imported."""
    retry: tuple[str, ...] = ()
    """Statuses whose units count as not judged yet."""
