"""Score a study by URAG: how certain is a system of its multiple-choice answers? Certainty is measured by the
size of conformal sets.

The system under test answers the task `urag_choice` with and without passages. Conformal sets are computed from
the system's probabilities for the option letters, renormalised over the options of each question.
`judge.scores.urag` does the arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.suites.paper import Option, Paper, Part

if TYPE_CHECKING:
    from judge.runner.second import ShownProbabilities
    from judge.scores.score import Score
    from judge.scores.urag import Choices
    from judge.stats.conformal import Convention
    from judge.stats.ratings import BoolArray
    from judge.suites.chosen import Run
    from judge.suites.paper_study import PaperStudy

TASK, FIELD = "urag_choice", "choice"
_SHOWN = ("accuracy", "coverage", "set_size")
AWARE_TASK = "urag_aware"
# A second pass is compared by these two. Coverage has a target, so its change is neither good nor bad.
_CHANGES = ("accuracy", "set_size")
Questions = Mapping[str, tuple[tuple[str, ...], str | None]]
"""Maps each item to the letters of its options and the correct letter (None: unknown)."""


def compute_scores(study: PaperStudy) -> list[Score]:
    """Return the scores for the requested parts."""
    from judge.scores import urag
    from judge.suites.distributions import check_halves, halves

    questions = _questions(study)
    split = _read_split(study)
    # Before any model call, which may cost money.
    check_halves(list(questions), split)
    context = study.option("context")
    first = _read_choices(study, context, questions)
    calibrator = None if first is None else _calibrator(study, context, questions, first[0])
    alone = None
    if study.part("ratio", "alone"):
        alone = first if context == "none" else _read_choices(study, "none", questions)
    study.check()
    if first is None or calibrator is None:
        return [] if alone is None else _score_alone(study, alone[0], split)
    answered, run = first
    again = _read_swapped(study, context, questions, answered, run)
    study.check()
    # All readings use the same halves, so that ratios and changes compare the same questions.
    mask = halves(study, answered, split)
    study.note(f"context {context}; probabilities are renormalised over the options of each question")
    all_scores = _scores(study, mask, calibrator, answered)
    result = list(all_scores) if study.part("sets") else []
    brief = _brief(all_scores)
    if study.part("classes"):
        for letter, some in urag.per_class(brief, answered.restrict(~mask)).items():
            result += [score.rename(f"{score.measure}[{letter}]") for score in some]
    if alone is not None:
        base = _scores(study, mask, alone[0], alone[0])
        if study.part("ratio"):
            result += [score.rename(f"{score.measure}_without") for score in _brief(base)]
            result += urag.ratios(brief, base)
        if study.part("alone"):
            # Questions are split by whether the answer without passages is correct.
            [right] = [score for score in base if score.measure == "accuracy"]
            for name, some in urag.split_by_alone(brief, right).items():
                result += [score.rename(f"{score.measure}[{name}]") for score in some]
    if again is not None:
        result += [] if study.part("sets") else brief
        # The second pass counts as a separate system, so its sets are calibrated on its own answers.
        result += _changes(study, brief, _brief(_scores(study, mask, again, again)))
    return result


def _scores(study: PaperStudy, mask: BoolArray, calibration: Choices, test: Choices) -> list[Score]:
    """Return the measures on the test half of the questions. The sets are calibrated on the other half, which
    `mask` selects.
    """
    from judge.scores import urag
    from judge.suites.distributions import alpha_of

    convention: Convention = study.option("convention")  # type: ignore[assignment]
    return urag.scores(
        calibration.restrict(mask), test.restrict(~mask), alpha=alpha_of(study), convention=convention
    )


def _brief(scores: list[Score]) -> list[Score]:
    return [score for score in scores if score.measure in _SHOWN]


def _calibrator(study: PaperStudy, context: str, questions: Questions, answered: Choices) -> Choices:
    """Return the answers on which conformal sets are calibrated.

    These are the answers of the system named by --calibrate-on or, by default, of the system under test.
    """
    other = study.option("calibrate-on")
    if not other or other == study.get_tested():
        return answered
    # The other system gets a separate reading, so that its answers never fill gaps of this system.
    request = replace(study.request, system=other, models=(), runs=())
    sub = type(study)(study.store, study.paper, request, study.rows)
    theirs = _read_choices(sub, context, questions)
    if theirs is None:
        raise UsageError(f"--calibrate-on {other}: this system has no answers under the context '{context}'")
    study.steps += sub.steps
    study.judges.runs_read += sub.judges.runs_read
    study.note(f"calibrated on the answers of {other}")
    return theirs[0]


def _score_alone(study: PaperStudy, alone: Choices, split: dict[str, str] | None) -> list[Score]:
    """Return the measures of a system whose only outputs are those without passages.

    Measures that need outputs with passages have no value.
    """
    from judge.scores import urag
    from judge.suites.distributions import halves

    base = _scores(study, halves(study, alone, split), alone, alone)
    reason = f"no outputs under {study.lacking[0].condition}"
    result = [score.drop_values(reason) for score in base] if study.part("sets") else []
    if study.part("ratio"):
        brief = _brief(base)
        result += [score.rename(f"{score.measure}_without") for score in brief]
        result += [score.drop_values(reason) for score in urag.ratios(brief, brief)]
    return result


def _read_swapped(
    study: PaperStudy,
    context: str,
    questions: Questions,
    first: Choices,
    run: Run | None,
) -> Choices | None:
    """Return the system's answers in a second pass, in which each prompt shows probabilities for the options.

    These are the system's own probabilities, unchanged or swapped. Return None if no second pass was
    requested, or if it has no answers yet.
    """
    from judge.runner import second

    kind = study.option("aware")
    if kind == "none":
        if study.insists("aware"):
            raise UsageError("--part aware requires --aware self or --aware wrong")
        return None
    if not study.part("aware"):
        return None
    if run is not None:
        shown = second.read_probabilities(study.store, f"{run.run_id}:{kind}")
        source = f"the probabilities of run {run.run_id}"
        if kind != "self":
            # The paper does not say which option is swapped with the highest one. We take the lowest, or optionally the second.
            other = "second" if kind == "wrong-second" else "least"
            source += f", with the probabilities of the most and the {other} probable option swapped for every question"
    else:
        shown = second.ShownProbabilities(f":{_kind(study)}", {})
        source = "the probabilities that were shown for the imported answers"
    study.note(
        f"{_kind(study)}-aware: the second pass shows {source}; sets are calibrated on the answers of the second pass"
    )
    again = _read_choices(study, context, questions, shown, first)
    return None if again is None else again[0]


def _kind(study: PaperStudy) -> str:
    """Return the name of the second pass in measures and conditions: "self" or "wrong"."""
    return study.option("aware").partition("-")[0]


def _changes(study: PaperStudy, first: list[Score], again: list[Score]) -> list[Score]:
    """Return the measures of the second pass, and their changes from the first pass.

    The changes are computed for accuracy and set size, on the questions that are in both passes.
    """
    from judge.scores.compare import score_pair

    name = f"{_kind(study)}_aware"
    plain = {score.measure: score for score in first}
    named = [score.rename(f"{score.measure}_{name}") for score in again]
    return named + [
        score_pair(f"{score.measure}_{name}_change", plain[score.measure], score, lambda a, b: b - a)
        for score in again
        if score.measure in _CHANGES
    ]


def _ranking(study: PaperStudy, context: str) -> tuple[str, str] | None:
    """Return the ranking whose top passages the context shows. If there is no ranking, record a step and return
    None.
    """
    return study.ranking(study.option("ranking") or None) if context.startswith("top:") else None


def _questions(study: PaperStudy) -> Questions:
    """Return the option letters of each item, and the correct letter."""
    query = (
        "SELECT item_id, options, correct FROM items WHERE options IS NOT NULL AND item_id IN "
        f"(SELECT item_id FROM unit_texts WHERE kind = 'item' AND {study.rows.scope})"
    )
    letters_of = {
        item: (tuple(json.loads(options)), correct)
        for item, options, correct in study.store.conn.execute(query)
    }
    if not any(correct for _, correct in letters_of.values()):
        raise BadInput(
            f"no item in '{study.dataset}' has options with a correct one; to import such items: "
            + command("judge items import urag FILE")
        )
    return letters_of


def _read_choices(
    study: PaperStudy,
    context: str,
    questions: Questions,
    shown: ShownProbabilities | None = None,
    first: Choices | None = None,
) -> tuple[Choices, Run | None] | None:
    """Return the system's choices and the run that they come from.

    Return None if the system has no outputs under this context. If `shown` is given, the choices are those of
    the second pass, and `first` contains the choices of the first pass.
    """
    from judge.scores.columns import mask_unanswered
    from judge.scores.score import NO_ANSWER
    from judge.suites.distributions import choices, last_run

    ranking = _ranking(study, context)
    before = len(study.judges.runs_read)
    task = TASK if shown is None else AWARE_TASK
    table = study.read_generated(task, context, ranking, only="options IS NOT NULL", shown=shown)
    if table is None:
        return None
    if first is not None and first.status is not None:
        # A question that failed in the first pass has no probabilities to show, so it also fails in the second.
        failed = first.units.ids[mask_unanswered(first.status) & ~first.known]
        table.loc[table["item_id"].isin(failed) & table["label"].isna(), "status"] = NO_ANSWER
    letters = sorted({letter for options, _ in questions.values() for letter in options})
    run = last_run(study, before)
    system_choices = choices(
        study,
        table,
        run,
        FIELD,
        letters,
        {item: correct for item, (_, correct) in questions.items()},
        {item: options for item, (options, _) in questions.items()},
        imported=_read_probabilities(study, context, ranking, shown.mark if shown else ""),
    )
    return system_choices, run


def _read_probabilities(
    study: PaperStudy, context: str, ranking: tuple[str, str] | None, mark: str
) -> dict[str, dict[str, float]]:
    """Return, for each item, the probabilities that were imported with the system's answer under this context."""
    query = (
        "SELECT item_id, json_extract(meta, '$.probabilities') FROM answers WHERE system = ? AND condition = ? "
        "AND json_type(meta, '$.probabilities') = 'object'"
    )
    of = study.find_stored(study.get_tested(), context + mark, ranking)
    if of is None:
        return {}
    rows = study.store.conn.execute(query, [of.system, of.condition])
    return {str(item): json.loads(text) for item, text in rows}


def _read_split(study: PaperStudy) -> dict[str, str] | None:
    """Return "calibration" or "test" for each item, as marked in the imported file. Return None if the file has
    no marks.
    """
    part_of = study.rows.meta("split").dropna()
    named = {str(item): str(value) for item, value in part_of.items() if value in ("calibration", "test")}
    return named or None


ALPHA = Option("alpha", "0.1", "Share of prediction sets that may miss the true label.")

PAPER = Paper(
    name="urag",
    title="URAG (arXiv 2603.19281): uncertainty of multiple-choice answers, by conformal prediction sets",
    compute_scores=compute_scores,
    lower=("*size*",),
    neutral=("*coverage*", "empty_sets*", "*_ratio"),
    parts=(
        Part(
            "sets",
            (TASK,),
            "accuracy, coverage and set size (LAC, APS and their mean)",
        ),
        Part("classes", (TASK,), "the same measures for each correct letter"),
        Part("ratio", (TASK,), "ratios to the same system without retrieval"),
        Part("alone", (TASK,), "results on questions that the model alone answers correctly or wrongly"),
        Part(
            "aware",
            (AWARE_TASK,),
            "with --aware: changes in a second pass that sees option probabilities",
        ),
    ),
    options=(
        Option("context", "all", "Context of the system's answers, e.g. all, top:K or all+noise:10."),
        Option("ranking", "", "With top:K: name of the ranking, if the study has several rankings."),
        Option(
            "aware",
            "none",
            "Score a second pass in which the model sees its own (self) or swapped (wrong) probabilities.",
            ("none", "self", "wrong", "wrong-second"),
        ),
        Option("calibrate-on", "", "Calibrate on the answers of this other system."),
        ALPHA,
        Option(
            "convention",
            "exact",
            "Definition of the quantile: exact, or as in URAG's code.",
            ("exact", "urag_repo"),
        ),
    ),
    is_judged=False,
)
