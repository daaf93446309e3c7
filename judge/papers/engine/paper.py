"""The declaration of a paper, and the request for its scores. `--help` imports this module, so the module must
not import slow modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.store.study import Store

if TYPE_CHECKING:
    from judge.papers.engine.chosen import Run
    from judge.papers.engine.paper_study import PaperStudy
    from judge.scores.score import Score


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a paper. Without `choices`, any string is accepted, and `compute_scores` validates it.

    If `several` is True, the option may be repeated; the values are joined with commas.
    """

    name: str
    default: str
    help: str
    choices: tuple[str, ...] = ()
    several: bool = False


RANKING = Option("ranking", "", "Name of the ranking, if the study has several rankings.")


@dataclass(frozen=True, slots=True)
class Part:
    """A group of measures that need the same runs.

    `tasks` lists the tasks that a judge must have run for these measures. Certain options replace some of
    these tasks with tasks in `instead`.
    """

    name: str
    tasks: tuple[str, ...]
    help: str
    instead: tuple[str, ...] = ()
    probabilities: bool = False
    """Whether the measures need the probabilities of the labels, which not every server returns."""


@dataclass(frozen=True, slots=True)
class KnownAs:
    """The name that other tools or papers use for a measure, and the source that defines it."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Paper:
    """The declaration of a paper. `compute_scores` returns the scores (see `judge.papers.engine`).

    - `strata` maps the name of each of the paper's stratifications to a function that returns the stratum of each question.
    - `lower`, `neutral` and `main` are patterns of measure names: measures for which lower is better, measures for which
      neither is better, and measures that a leaderboard shows first (empty: all measures that are not neutral).
    - `contenders` returns the systems that a leaderboard of all systems compares. If it is None, these are the systems
      with answers.
    - `several` aggregates the scores of several judges by a rule of the paper: {judge: scores} -> scores. For measures with
      the same name, its results replace the means over judges.
    - `reads` returns the option values that make a score read a given run. Default values may be omitted.
    - `present` returns whether a data set has the data that the paper needs.
    """

    name: str
    title: str
    compute_scores: Callable[[PaperStudy], list[Score]]
    parts: tuple[Part, ...]
    options: tuple[Option, ...] = ()
    strata: Mapping[str, Callable[[PaperStudy], Mapping[Any, Any]]] = field(default_factory=dict)
    several: Callable[[Mapping[str, list[Score]]], list[Score]] | None = None
    is_judged: bool = True
    """Whether the scores depend on judges' labels. This is False if the systems' answers are compared with gold
    answers.
    """
    has_systems: bool = True
    """Whether the paper scores systems. This is False if its measures describe a judge's own labels."""
    reads: Callable[[Run], Mapping[str, str]] = lambda run: {}
    present: Callable[[Store, str], bool] = lambda store, dataset: True
    lower: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    main: tuple[str, ...] = ()
    contenders: Callable[[PaperStudy], list[str]] | None = None
    abbreviations: tuple[str, ...] = ()
    """Words in measure names that reports write in capitals."""
    gold: tuple[str, ...] = ()
    """Gold fields that the paper reads and that no task has, because no judge gives these labels."""
    aliases: tuple[str, ...] = ()
    """Other names of the paper that the commands accept."""
    known: Mapping[str, KnownAs] = field(default_factory=dict)
    """For each measure that is also known by another name, this name and its source."""

    tables: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    """The paper's own tables and figures (see `judge.papers.engine.paper_table`)."""

    @property
    def corrects(self) -> bool:
        """Whether the measures can be corrected with human labels."""
        # In retrieval and conformal, the paper's option `reference` names the labels that the judge is compared with.
        return self.is_judged and all(option.name != "reference" for option in self.options)

    def better(self, measure: str) -> int:
        """Return 1 if higher values of the measure are better, -1 if lower values are better, otherwise 0."""
        # Neutral patterns take precedence: URAG's `set_size_ratio` matches `*size*` (lower is better) and `*_ratio` (neutral).
        if any(fnmatchcase(measure, pattern) for pattern in self.neutral):
            return 0
        return -1 if any(fnmatchcase(measure, pattern) for pattern in self.lower) else 1

    def readable(self, measure: str) -> str:
        """Return a readable name of a measure, such as "unadjusted RAF" for `unadjusted_raf` and "CR [rerank]"
        for `cr[rerank]`.
        """
        words = measure.replace("_", " ").replace("[", " [").split(" ")
        return " ".join(word.upper() if word in self.abbreviations else word for word in words)

    def is_main(self, measure: str) -> bool:
        """Return whether this is one of the measures that a leaderboard shows first."""
        if self.main:
            return any(fnmatchcase(measure, pattern) for pattern in self.main)
        return self.better(measure) != 0


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """A request for scores: the rows, system, judges, parts and options to use."""

    models: tuple[str, ...] = ()
    """The judges whose runs are read. If empty, the study's only judge is used."""
    runs: tuple[str, ...] = ()
    """Runs that are read for their tasks, regardless of `models`."""
    system: str | None = None
    condition: str | None = None
    dataset: str | None = None
    limit: str | None = None
    """The number or share (such as 10%) of the questions to score. These are the first questions or, with
    `sample`, random questions.
    """
    sample: int | None = None
    parts: tuple[str, ...] = ()
    """The requested parts. If empty, all parts for which the study has data are requested."""
    partial: bool = False
    """Whether to score the study even if some units are not judged yet. These units count as missing."""
    options: Mapping[str, str] = field(default_factory=dict)
    prompts: Path | None = None
    """A directory with task files that are used in addition to the shipped task files."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Only runs with these settings are read (options of `judge.run_options`, by name). If empty, all runs are read."""
    equal: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The settings, in words, of the runs to read for each (role, model). If empty, the newest complete runs
    are read.
    """
    also_generate: bool = False
    """Whether a model may add outputs to those of a system that was imported."""
    retry: tuple[str, ...] = ()
    """Statuses to retry: units with these statuses count as not judged yet."""
