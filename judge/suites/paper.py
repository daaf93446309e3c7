"""What a paper declares, and what a user asks of it. Nothing heavy is imported: `--help` reads this."""

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
    """A choice between readings. Without `choices` any text is taken, and `read` checks it.

    `writes`: it names a file to write, which changes no number. `other_names` work on the command line too.
    `several`: it may be given several times, which is the same as once with commas.
    """

    name: str
    default: str
    help: str
    choices: tuple[str, ...] = ()
    writes: bool = False
    other_names: tuple[str, ...] = ()
    several: bool = False


def reading(paper: str, practice: str) -> Option:
    """The option between a paper's set-up and good practice, where they differ; the two say what each does."""
    return Option(
        "reading",
        "paper",
        f"How the system is asked: {paper} (paper), or {practice} (practice).",
        ("paper", "practice"),
    )


RANKING = Option("ranking", "", "The ranking, when the study has several.")
STAGE = Option("stage", "", "Its stage, when it has several.")
UNANSWERED = Option(
    "unanswered",
    "wrong",
    "Items that the system has no answer to: its failures, or not asked about.",
    ("wrong", "left-out"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """Some measures of a paper that rest on the same runs; `tasks` are what a judge must have run for them.

    `instead`: tasks that take the place of one of these under other options.
    """

    name: str
    tasks: tuple[str, ...]
    help: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper. `read` makes the scores (see `judge.suites`).

    `strata` are strata that only this paper has: name -> a function of the study that gives question -> stratum.
    `lower` are patterns of measures of which less is better, `neutral` of those where neither is; `main` of those that a
    leaderboard shows first (none: all that have a better side). `contenders` names what a leaderboard of all
    compares, where that is not every system with answers. `several` aggregates several judges' scores where the paper has a rule of its own: {judge: its scores} -> scores,
    which replace those of the same name in the mean over judges. `reads` tells the options under which the scores
    rest on a run, where that is not the default; `present` whether a data set holds what the paper speaks of.
    """

    name: str
    title: str
    read: Callable[[PaperStudy], list[Score]]
    parts: tuple[Part, ...]
    options: tuple[Option, ...] = ()
    strata: Mapping[str, Callable[[PaperStudy], Mapping[Any, Any]]] = field(default_factory=dict)
    several: Callable[[Mapping[str, list[Score]]], list[Score]] | None = None
    reads: Callable[[Run], Mapping[str, str]] = lambda run: {}
    present: Callable[[Store, str], bool] = lambda store, dataset: True
    help: str = ""
    lower: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    main: tuple[str, ...] = ()
    contenders: Callable[[PaperStudy], list[str]] | None = None
    abbreviations: tuple[str, ...] = ()
    """Words of its measures that a report writes in capitals."""

    @property
    def corrects(self) -> bool:
        """Whether human labels can correct the measures; a paper with a reading called `reference` uses the word otherwise."""
        return all(option.name != "reference" for option in self.options)

    def better(self, measure: str) -> int:
        """1 when a greater value is better, -1 when a smaller one is, 0 when neither."""
        if any(fnmatchcase(measure, pattern) for pattern in self.neutral):
            return 0
        return -1 if any(fnmatchcase(measure, pattern) for pattern in self.lower) else 1

    def is_main(self, measure: str) -> bool:
        """Whether a leaderboard shows it first."""
        if self.main:
            return any(fnmatchcase(measure, pattern) for pattern in self.main)
        return self.better(measure) != 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asks for: which rows, whose answers, whose labels, and which readings."""

    models: tuple[str, ...] = ()
    """Judges whose runs are read; none: the one judge that there is."""
    runs: tuple[str, ...] = ()
    """Runs to take for their tasks, whatever the models."""
    system: str | None = None
    condition: str | None = None
    dataset: str | None = None
    limit: str | None = None
    """How many questions, a number or a share (10%): the first ones, or a sample."""
    sample: int | None = None
    parts: tuple[str, ...] = ()
    """Parts asked for; none: all that the study's data allow."""
    partial: bool = False
    """Units that are not judged yet are counted as such, and do not stop the score."""
    majority: bool = False
    """Labels of several runs of a task are put together by majority."""
    options: Mapping[str, str] = field(default_factory=dict)
    rationale: str | None = None
    """Only runs of labelling tasks that were asked with this rationale; None: whichever there are."""
    prompts: Path | None = None
    """A folder of task files beside the shipped ones."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Only runs that were asked so (options of `judge.run_options` by name); empty: whichever there are."""
    equal: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Role (judge or system) and model -> the settings, in words, of the set of runs that is read; none: the newest complete runs."""
    also_generate: bool = False
    """A system whose outputs were imported may get further ones from a model."""
    retry: tuple[str, ...] = ()
    """Units that ended so count as not judged yet."""
