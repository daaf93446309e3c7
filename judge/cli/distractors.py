"""judge distractors: write wrong options for questions, check them, and rewrite them until a question is challenging."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking.run import make_plan
from judge.cli.chain import chained, run_in_chain
from judge.commands import command
from judge.console import TO_WRITE, db_option, emit_json, json_option, note, notes
from judge.document.blocks import list_measures, list_rows
from judge.document.terminal import print_result, show_blocks
from judge.errors import Exit, UsageError
from judge.files import format_of
from judge.run_options import RunOptions
from judge.store import Store
from judge.store.distractors import FIELD, Reading
from judge.types import Measure

if TYPE_CHECKING:
    from judge.runner.distractors import MadeDistractors, Making

READING = click.option(
    "--challenging",
    "reading",
    type=click.Choice(["entailed", "not-entailed"]),
    help="Questions that count as challenging: those whose answer entails at least one "
    "distractor (as in URAG), or those whose answer entails no distractor "
    "(default: entailed, or not-entailed with --reading practice).",
)
SLOTS = click.option(
    "--per-question",
    "slots",
    default=3,
    type=click.IntRange(1, 9),
    help="Number of distractors per question.",
)


READINGS: dict[str, tuple[str, Reading]] = {
    "paper": ("distractor", "entailed"),
    "practice": ("distractor_apart", "not-entailed"),
}
"""For each value of --reading, the task and the condition that makes a question challenging."""


@click.group()
def distractors() -> None:
    """Write plausible wrong options for questions, check them and export them."""


@distractors.command("generate")
@chained
@SLOTS
@click.option(
    "--regenerate",
    default=3,
    type=click.IntRange(0, 20),
    help="Maximum number of new sets of distractors for a question that is not challenging.",
)
@click.option(
    "--reading",
    "way",
    type=click.Choice(["paper", "practice"]),
    default="paper",
    help="Follow the URAG paper, in which the answer can entail a distractor ('paper'), or "
    "require every distractor to be wrong ('practice').",
)
@READING
@click.option("--check-model", help="Model for the entailment check (default: --model).")
@click.option("--system", help="System name to store the distractors under (default: the model).")
def generate(model: str, **options: Any) -> int:
    """Write distractors for questions that have reference answers.

    \b
    judge distractors generate -m openai/gpt-5-mini
    judge distractors generate -m openai/gpt-5-mini --check-model anthropic/claude-sonnet-5
    judge distractors generate -m llamacpp/smollm2 -n 20 --challenging not-entailed

    The model writes each distractor together with a made-up document. A second task, distractor_check, tests
    whether the right answer entails the distractor. A question that is not challenging gets new distractors.

    Distractors are stored as answers with the condition distractor:ITERATION.SLOT. People can therefore check
    them with annotate. Run the same command again to resume.
    """
    from judge.runner.distractors import Making, make
    from judge.runner.generate import check_names
    from judge.store.export import find_task

    task, reading = READINGS[options["way"]]
    # --challenging overrides the definition that belongs to --reading.
    options["reading"] = options["reading"] or reading
    given = RunOptions.from_options(options)
    with Store.open(options["db"], create=False) as store:
        plan = make_plan(task, model, given, store)
        checker = make_plan("distractor_check", options["check_model"] or model, given, store)
        making = Making(
            find_task(store, task, options["prompts"]),
            checker.task,
            options["system"] or model,
            options["slots"],
            options["regenerate"],
            options["reading"],
        )
        # Checked before the first call, which costs money, because the name becomes part of ids.
        check_names(making.system)
        with store.run_lock(f"distractors {model} {making.system}"):
            made = asyncio.run(
                run_in_chain(
                    store,
                    plan,
                    checker,
                    given,
                    lambda write, check: make(write, check, making, plan.selection),
                )
            )
        if isinstance(made, int):
            return made
        measures = _measures(made, making)
    return _finish(made, making, measures, options)


def _measures(made: MadeDistractors, making: Making) -> list[Measure]:
    # Imported here, because pandas and numpy took a third of the time of a run of 50 units.
    import pandas as pd

    from judge.papers.urag import distractors as shares
    from judge.scores.score import measure_all

    rows = [
        {"question_id": item, "iteration": n, "valid": valid}
        for item, question in made.questions.items()
        for n, valid in question.list_tried(making.slots, making.reading, made.iterations)
    ]
    return measure_all(shares(pd.DataFrame(rows, columns=["question_id", "iteration", "valid"])))


def _rows(made: MadeDistractors, making: Making) -> list[dict[str, int]]:
    """Return one row of counts per iteration.

    A row contains the numbers of questions that were tried, challenging, not challenging and unknown, and the
    number of repeated distractors.
    """
    rows = []
    for n in range(1, made.iterations + 1):
        tried = [
            (question, valid)
            for question in made.questions.values()
            for number, valid in question.list_tried(making.slots, making.reading, made.iterations)
            if number == n
        ]
        written = [d for q, _ in tried if n <= len(q.iterations) for d in q.iterations[n - 1]]
        rows.append(
            {
                "iteration": n,
                "tried": len(tried),
                "challenging": sum(valid is True for _, valid in tried),
                "not_challenging": sum(valid is False for _, valid in tried),
                "unknown": sum(valid is None for _, valid in tried),
                "distractors": len(written),
                "repeated": sum(not d.usable for d in written),
            }
        )
    return rows


def _finish(made: MadeDistractors, making: Making, measures: list[Measure], options: dict[str, Any]) -> int:
    rows = _rows(made, making)
    # Only the last iteration counts, because earlier distractors were replaced.
    unknown = rows[-1]["unknown"]
    if options["as_json"]:
        emit_json(
            "distractors",
            {
                "study": str(options["db"]),
                "system": making.system,
                "check_run": made.check_run,
                "options": making.slots,
                "challenging": making.reading,
                "questions": len(made.questions),
                "left_out": made.left_out,
                "problems": made.kept.problems,
                "rows": rows,
                "measures": [m.as_json() for m in measures],
            },
        )
    else:
        print(
            f"distractors of '{making.system}' for {len(made.questions)} questions, {making.slots} each; "
            f"reading: {options['way']} ({making.task.name}); challenging: {_WORDS[making.reading]}"
        )
        show_blocks(list_rows(rows, list(rows[0])), list_measures("measures", "", measures))
        # The export has its own default, so another definition must be typed there too.
        how = [] if making.reading == "entailed" else ["--challenging", making.reading]
        print(f"next: {command('judge distractors export -o questions.json', *how)}")
    notes(made.kept.problems, "not kept")
    if made.left_out:
        note(
            f"note: {made.left_out} items were left out, because they have no question or no reference answer"
        )
    if made.without_document:
        note(
            f"note: {made.without_document} questions have no original document for the made-up documents to contradict"
        )
    if unknown:
        note(f"note: {unknown} questions have a distractor that was not written or not checked")
    return Exit.INCOMPLETE if unknown or made.kept.problems else Exit.DONE


_WORDS = {
    "entailed": "at least one distractor is entailed by the right answer (as in URAG)",
    "not-entailed": "no distractor is entailed by the right answer",
}


@distractors.command("export")
@click.option("-o", "--output", required=True, type=TO_WRITE, help="File to write.")
@click.option("--system", help="Export the distractors of this system, if there are several systems.")
@click.option("--check", "annotator", default="last", help="Use the checks of this run or annotator.")
@SLOTS
@READING
@click.option("--seed", default=0, help="Random seed for the option order and the split.")
@db_option
@json_option
def export(
    output: Path,
    system: str | None,
    annotator: str,
    slots: int,
    reading: Reading | None,
    seed: int,
    db: Path,
    as_json: bool,
) -> None:
    """Write challenging questions and their options to a file.

    \b
    judge distractors export -o questions.json
    judge distractors export -o checked.jsonl --check adjudicated
    judge items import urag questions.json

    --check also accepts human labels. To collect them, draw a batch: annotate batches new check
    distractor_check.
    """
    from judge.store import distractors as made

    reading = reading or "entailed"
    format_name = format_of(output, {".json": "urag", ".jsonl": "jsonl"})
    if output.exists():
        raise UsageError(f"-o {output}: the file already exists; choose another file, or delete it first")
    with Store.open(db, create=False) as store:
        system = made.get_only_system(store, system)
        check = _checker(store, annotator)
        questions_by_item = made.questions(store, system, check)
        chosen = {
            item: (question, question.iterations[number - 1])
            for item, question in questions_by_item.items()
            if (number := question.find_valid(slots, reading)) is not None
        }
        if not chosen:
            raise UsageError(
                f"no question of '{system}' with {slots} distractors is challenging according to the labels from '{check}' "
                f"({_WORDS[reading]})"
            )
        rows = made.choice_rows(store, chosen, seed)
    if format_name == "urag":
        text = json.dumps(made.urag_document(rows, seed), ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    output.write_text(text, encoding="utf-8")
    row = {
        "file": str(output),
        "questions": len(rows),
        "left_out": len(questions_by_item) - len(rows),
        "check": check,
    }
    summary = f"{len(rows)} questions written to {output}, with {slots} distractors each\n"
    summary += f"next: {command('judge items import', format_name, output)}"
    document = {"study": str(db), "system": system, "challenging": reading, **row}
    print_result("distractors_export", document, summary, as_json)
    if row["left_out"]:
        note(
            f"note: {row['left_out']} questions were left out, because they are not challenging, or it is unknown whether they are ({_WORDS[reading]})"
        )


def _checker(store: Store, name: str) -> str:
    """Return the annotator whose distractor_check labels are used.

    Raises UsageError if the name matches no annotator, or more than one.
    """
    # Imported here, because it loads numpy, which --help does not need.
    from judge.labels import relation
    from judge.store.export import list_runs

    annotators = set(relation.fields(store.conn).get(FIELD, []))
    runs = [r["run_id"] for r in list_runs(store) if r["run_id"] in annotators]
    if name == "last" and runs:
        return str(runs[-1])
    # A run is named by the end of its id, because ids begin with the time and may begin alike.
    fit = [a for a in sorted(annotators) if a == name or (a in runs and a.endswith(name.upper()))]
    if len(fit) != 1:
        listed = (
            ", ".join(sorted(annotators))
            or f"none; to check the distractors: {command('judge distractors generate -m MODEL')}"
        )
        raise UsageError(
            f"--check '{name}': must match exactly one annotator of distractor_check; available: {listed}"
        )
    return fit[0]
