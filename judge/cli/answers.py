"""judge answers: list and show the answers of systems (`judge.cli.generate` generates answers)."""

from __future__ import annotations

from pathlib import Path

import click

from judge.cli.generate import generate
from judge.cli.items import print_labels
from judge.commands import command
from judge.console import db_option, emit_json, emit_rows, json_option, print_lines, shorten
from judge.errors import BadInput, UsageError
from judge.store import Store, listing


@click.group()
def answers() -> None:
    """Generate and show the answers of systems under test."""


answers.add_command(generate)


@answers.command("show")
@click.argument("answer_id", metavar="[ANSWER]", required=False)
@click.option("--system", help="List only this system.")
@click.option("--condition", help="List only this condition.")
@click.option("-n", "limit", default=20, type=click.IntRange(1), help="Number of answers to list.")
@db_option
@json_option
def show(
    answer_id: str | None, system: str | None, condition: str | None, limit: int, db: Path, as_json: bool
) -> None:
    """List systems and answers, or show one ANSWER.

    One ANSWER is shown with its sentences, citations, claims and labels.

    \b
    judge answers show
    judge answers show 'mine:q1@gpt-4@top5'
    """
    if answer_id is None:
        _list(system, condition, limit, db, as_json)
        return
    with Store.open(db, create=False) as store:
        answer = listing.show_answer(store, answer_id)
    if answer is None:
        raise BadInput(
            f"no answer '{answer_id}' in {db}; to list the answers: {command('judge answers show')}"
        )
    if as_json:
        emit_json("answer", answer)
        return
    for name in ("answer_id", "system", "condition", "cited", "context", "meta", "origin"):
        # Fields that the import did not have are empty.
        if answer[name] not in (None, {}, []):
            print_lines(f"{name}: {answer[name]}")
    print_labels(answer["labels"], answer_id)
    for part in (*answer["sentences"], *answer["claims"]):
        cites = f" -> {', '.join(part['cited'])}" if part.get("cited") else ""
        # Models cite passages that the item does not have.
        unknown = f" (refers to no passage: {', '.join(part['unknown'])})" if part.get("unknown") else ""
        print_lines(f"\n{part['unit_id']}{cites}{unknown}\n{part['text']}")
        print_labels(answer["labels"], part["unit_id"])


def _list(system: str | None, condition: str | None, limit: int, db: Path, as_json: bool) -> None:
    with Store.open(db, create=False) as store:
        rows = listing.list_answers(store, system, condition, limit)
        if as_json:
            # The document contains only the answers. judge systems list --json has the systems.
            emit_rows("answers", rows, ["answer_id", "text"], as_json)
            return
        counts = listing.list_systems(store)
    emit_rows("systems", counts, ["system", "condition", "answers", "empty", "sentences", "citations"])
    print()
    shown = [{**row, "text": shorten(row["text"], 60)} for row in rows]
    emit_rows("answers", shown, ["answer_id", "text"])


@answers.command("claims")
@click.argument("run_name", metavar="RUN", default="last")
@db_option
@json_option
def claims(run_name: str, db: Path, as_json: bool) -> None:
    """Create a unit for each claim that a claim_decomposition run found.

    \b
    judge run claim_decomposition -m openai/gpt-5-mini
    judge answers claims
    judge run claim_support -m openai/gpt-5-mini

    Answers that already have claims are left unchanged.
    """
    from judge.store import export
    from judge.store.answers import add_claims

    with Store.open(db, create=False) as store:
        run = export.find_run(store, run_name)
        task = export.read_stored_task(store, run["task"])
        # Only a question with many values lists the claims of an answer in one reply.
        lists = [q.field for q in task.spec.questions if q.many]
        if task.spec.unit != "answer" or not lists:
            raise UsageError(
                f"run {run['run_id']} belongs to {task.name}, which does not list the claims in answers"
            )
        counts = add_claims(store, run["run_id"], lists[0])
    row = {"run": run["run_id"], **counts}
    if as_json:
        emit_json("answers_claims", row)
    else:
        emit_rows("answers_claims", [row], ["run", "answers", "claims", "unchanged", "other"])
