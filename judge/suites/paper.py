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
    """An option that selects a reading of a paper. Without `choices` any string is accepted, and `compute_scores` validates it.

    `several`: the option may be repeated, which is equivalent to one value with commas.
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

    `instead`: tasks that replace one of these under other options.
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
    `lower`, `neutral` and `main` are patterns of measures: those for which less is better, those without a better side, and
    those that a leaderboard shows first (empty: all with a better side). `contenders` lists the systems that a leaderboard of
    all systems compares, if these are not all systems with answers. `several` aggregates the scores of several judges by a
    rule of the paper, {judge: its scores} -> scores; the result replaces the mean over judges for measures of the same name.
    `reads` returns the options for reading a run, if these are not the defaults. `present` returns whether a data set has
    the data that the paper needs.
    """

    name: str
    title: str
    compute_scores: Callable[[PaperStudy], list[Score]]
    parts: tuple[Part, ...]
    options: tuple[Option, ...] = ()
    strata: Mapping[str, Callable[[PaperStudy], Mapping[Any, Any]]] = field(default_factory=dict)
    several: Callable[[Mapping[str, list[Score]]], list[Score]] | None = None
    is_judged: bool = True
    """Whether judges label the scored units. They do not if systems answer questions that have gold answers."""
    has_systems: bool = True
    """Whether systems are scored. A paper about a judge's own labels scores no system."""
    reads: Callable[[Run], Mapping[str, str]] = lambda run: {}
    present: Callable[[Store, str], bool] = lambda store, dataset: True
    lower: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    main: tuple[str, ...] = ()
    contenders: Callable[[PaperStudy], list[str]] | None = None
    abbreviations: tuple[str, ...] = ()
    """Words in the measures' names that a report writes in capitals."""
    aliases: tuple[str, ...] = ()
    """Other names that the commands accept."""
    known: Mapping[str, KnownAs] = field(default_factory=dict)
    """Measure -> its well-known name and the source of that name, if it is known under another name."""

    @property
    def corrects(self) -> bool:
        """Whether human labels can correct the measures. If the paper has an option `reference` of its own, they cannot."""
        # In retrieval and conformal, `reference` names the labels that the judge is measured against.
        return self.is_judged and all(option.name != "reference" for option in self.options)

    def better(self, measure: str) -> int:
        """Return 1 if a greater value is better, -1 if a smaller one is, and 0 if neither is."""
        # Neutral patterns go first: URAG's `set_size_ratio` fits `*size*` (less is better) and `*_ratio` (neither).
        if any(fnmatchcase(measure, pattern) for pattern in self.neutral):
            return 0
        return -1 if any(fnmatchcase(measure, pattern) for pattern in self.lower) else 1

    def readable(self, measure: str) -> str:
        """Return a measure's name as a paper writes it: unadjusted RAF for `unadjusted_raf`, CR [rerank] for `cr[rerank]`."""
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
    """Judges whose runs are read; empty: the only judge of the study."""
    runs: tuple[str, ...] = ()
    """Runs to read for their tasks, whatever their models."""
    system: str | None = None
    condition: str | None = None
    dataset: str | None = None
    limit: str | None = None
    """Number or share (10%) of the questions: the first ones, or a sample."""
    sample: int | None = None
    parts: tuple[str, ...] = ()
    """Requested parts; empty: all that the study's data allow."""
    partial: bool = False
    """Whether units that are not judged yet are counted as missing, instead of preventing the score."""
    options: Mapping[str, str] = field(default_factory=dict)
    prompts: Path | None = None
    """A folder of task files in addition to the shipped ones."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Read only runs with these settings (options of `judge.run_options` by name); empty: runs with any settings."""
    equal: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Role (judge or system) and model -> the settings, in words, of the runs to read; empty: the newest complete runs."""
    also_generate: bool = False
    """Whether a model may add outputs to a system whose outputs were imported."""
    retry: tuple[str, ...] = ()
    """Statuses whose units count as not judged yet."""
