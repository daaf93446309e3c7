"""URAG out of a study: how sure is the system of its options, by the size of conformal sets?

The system under test answers with the task `urag_choice` (or `multiple_choice`, which warns of noise), with passages and without; its probabilities over the
letters, renormalised over each question's own options, make the sets. Arithmetic: `judge.scores.urag`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.errors import BadInput
from judge.suites.paper import Option, Paper, Part, reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judge.scores.score import Score
    from judge.scores.urag import Choices
    from judge.suites.study import Study

TASKS = {"paper": "urag_choice", "practice": "multiple_choice"}
TASK, FIELD = TASKS["paper"], "choice"
_SHOWN = ("accuracy", "coverage", "set_size")


def read(study: Study) -> list[Score]:
    """The scores of the parts asked for."""
    from judge.scores import urag
    from judge.suites.distributions import alpha_of, check_halves, convention_of, halves

    alpha, convention = alpha_of(study), convention_of(study)
    questions = _questions(study)
    split = _split(study)
    check_halves(study, list(questions), split)
    context = study.option("context")
    answered = _answered(study, context, questions)
    other = study.option("calibrate-on")
    calibrator = answered
    if other and other != study.tested():
        sub = type(study)(study.store, study.paper, replace(study.asked, system=other, models=(), runs=()))
        calibrator = _answered(sub, context, questions)
        study.steps += sub.steps
        study.read += sub.read
        study.note(f"calibrated on the answers of {other}")
    alone = None
    if study.part("ratio") or study.part("alone"):
        alone = answered if context == "none" else _answered(study, "none", questions)
    study.check()
    mask = halves(study, answered, split)
    study.note(f"context {context}; probabilities renormalised over each question's own options")

    def scores(cal: Choices, test: Choices) -> list[Score]:
        return urag.scores(cal.where(mask), test.where(~mask), alpha=alpha, convention=convention)

    found = scores(calibrator, answered)
    result = list(found) if study.part("sets") else []
    brief = [score for score in found if score.measure in _SHOWN]
    if study.part("classes"):
        for letter, some in urag.per_class(brief, answered.where(~mask)).items():
            result += [score.named(f"{score.measure}[{letter}]") for score in some]
    if alone is not None:
        base = scores(alone, alone)
        if study.part("ratio"):
            result += [score.named(f"{score.measure}_without") for score in base if score.measure in _SHOWN]
            result += urag.ratios(brief, base)
        if study.part("alone"):
            [right] = [score for score in base if score.measure == "accuracy"]
            for name, some in urag.split_by_alone(brief, right).items():
                result += [score.named(f"{score.measure}[{name}]") for score in some]
    return result


def _questions(study: Study) -> dict[str, tuple[tuple[str, ...], str | None]]:
    """Item -> its letters, and the right one."""
    query = (
        "SELECT item_id, options, correct FROM items WHERE options IS NOT NULL AND item_id IN "
        f"(SELECT item_id FROM unit_texts WHERE kind = 'item' AND {study.scope})"
    )
    found = {
        item: (tuple(json.loads(options)), correct)
        for item, options, correct in study.store.conn.execute(query)
    }
    if not any(correct for _, correct in found.values()):
        raise BadInput(
            f"no item of '{study.dataset}' has options with a correct one: see judge items import urag, "
            "judge distractors export"
        )
    return found


def _answered(
    study: Study, context: str, questions: Mapping[str, tuple[tuple[str, ...], str | None]]
) -> Choices:
    from judge.suites.distributions import choices, last_run

    ranking = study.ranking(study.option("ranking") or None, None) if context.startswith("top:") else None
    before = len(study.read)
    task = TASKS[study.option("reading")]
    table = study.generated(task, context, ranking, only="options IS NOT NULL")
    letters = sorted({letter for options, _ in questions.values() for letter in options})
    return choices(
        study,
        table,
        last_run(study, before),
        FIELD,
        letters,
        {item: correct for item, (_, correct) in questions.items()},
        {item: options for item, (options, _) in questions.items()},
        imported=_imported(study, context, ranking),
    )


def _imported(study: Study, context: str, ranking: tuple[str, str] | None) -> dict[str, dict[str, float]]:
    """Item -> the probabilities that came with the system's own answers under this context (judge answers import)."""
    from judge.runner import contexts

    name, stage = ranking or (None, None)
    given = contexts.parse(study.store, context, ranking=name, stage=stage)
    query = (
        "SELECT item_id, json_extract(meta, '$.probabilities') FROM answers WHERE system = ? AND condition = ? "
        "AND json_type(meta, '$.probabilities') = 'object'"
    )
    rows = study.store.conn.execute(query, [study.tested(), given.name])
    return {str(item): json.loads(text) for item, text in rows}


def _split(study: Study) -> dict[str, str] | None:
    """Item -> calibration or test as its file says; None for a random split."""
    if study.option("split") == "random":
        return None
    own = study.meta("split").dropna()
    named = {str(item): str(value) for item, value in own.items() if value in ("calibration", "test")}
    if not named and study.option("split") == "file":
        raise BadInput(f"no item of '{study.dataset}' says whether it is for calibration or test")
    return named or None


SPLITTING = (
    Option("alpha", "0.1", "The share of sets that may miss the right one."),
    Option(
        "convention",
        "exact",
        "The quantile: exact keeps the promise, or as URAG's code.",
        ("exact", "urag_repo"),
    ),
    Option("calibration", "0.5", "Share of the questions that calibrate, in a random split."),
    Option("split-seed", "0", "Of the random split."),
)

PAPER = Paper(
    name="urag",
    title="URAG (arXiv 2603.19281): uncertainty of multiple-choice answers by conformal sets",
    read=read,
    lower=("*size*",),
    neutral=("*coverage*", "empty_sets*", "*_ratio"),
    parts=(
        Part(
            "sets",
            (TASK,),
            "accuracy, coverage and set size by LAC, APS and their mean",
            (TASKS["practice"],),
        ),
        Part("classes", (TASK,), "the same for each right letter", (TASKS["practice"],)),
        Part("ratio", (TASK,), "over the same without retrieval", (TASKS["practice"],)),
        Part("alone", (TASK,), "questions that the model alone gets right, and wrong", (TASKS["practice"],)),
    ),
    options=(
        reading("without a word on noise", "warned that passages may be irrelevant or wrong"),
        Option(
            "context", "all", "What the system is given: all (its search results), top:K, all+noise:10 ..."
        ),
        Option("ranking", "", "With top:K: the ranking, when there are several."),
        Option("calibrate-on", "", "Another system whose answers calibrate (default: itself)."),
        Option("split", "auto", "Calibration and test: the file's, else random.", ("auto", "file", "random")),
        *SPLITTING,
    ),
)
