"""judge tasks: show, check, render and create labelling tasks, both shipped tasks and your own."""

from pathlib import Path
from typing import Any

import click

from judge.cli.options import options_of
from judge.commands import command
from judge.console import db_option, emit_json, json_option, note, print_lines, visible
from judge.document.terminal import emit_rows
from judge.errors import Exit, TaskError, UsageError
from judge.store import Store
from judge.store.label_rows import quote

prompts_option = options_of("prompts")


@click.group()
def tasks() -> None:
    """Show, check, render and create labelling tasks.

    A task is one Markdown file.
    """


@tasks.command("show")
@click.argument("task_name", metavar="[TASK]", required=False)
@prompts_option
@json_option
def show(task_name: str | None, prompts: Path | None, as_json: bool) -> None:
    """List the tasks, or show one TASK.

    --json includes the front matter, the template and the answer schema.

    \b
    judge tasks show
    judge tasks show stance
    """
    if task_name is None:
        _list(prompts, as_json)
        return
    from judge.prompts import load_task
    from judge.prompts.render import answer_schema

    task = load_task(task_name, prompts)
    if as_json:
        document = {
            "task": task.name,
            "sha256": task.sha256,
            "front_matter": task.spec.model_dump(mode="json", by_alias=True),
            "template": {"constant": task.constant, "unit": task.unit},
            "answer_schema": answer_schema(task),
        }
        emit_json("task", document)
    else:
        print(visible(task.text), end="")


def _list(prompts: Path | None, as_json: bool) -> None:
    from judge.prompts import find_tasks, load_task

    rows = []
    for name, path in find_tasks(prompts).items():
        task = load_task(str(path))
        rows.append(
            {
                "task": name,
                "unit": task.spec.unit,
                "fields": ", ".join(task.fields),
                "inputs": ", ".join(task.input_names),
                "title": task.spec.title,
                "sha256": task.sha256,
            }
        )
    emit_rows("tasks", rows, ["task", "unit", "fields", "title"], as_json)


@tasks.command("check")
@click.argument("names", metavar="[TASK|FILE]...", nargs=-1)
@prompts_option
@json_option
def check(names: tuple[str, ...], prompts: Path | None, as_json: bool) -> int:
    """Check the keys, labels, variables and examples of task files.

    By default, all tasks are checked.

    \b
    judge tasks check ./mytask.v1.md
    """
    from judge.prompts import find_tasks, load_task

    rows: list[dict[str, Any]] = []
    for name in names or [str(p) for p in find_tasks(prompts).values()]:
        try:
            task = load_task(name, prompts)
            rows.append({"task": task.name, "ok": True, "problem": None})
        # One malformed file must not hide the problems of the others.
        except TaskError as e:
            rows.append({"task": name, "ok": False, "problem": str(e)})
    if as_json:
        emit_json("task_check", {"rows": rows})
    else:
        for row in rows:
            print_lines(f"ok       {row['task']}" if row["ok"] else f"problem  {row['problem']}")
    return Exit.DONE if all(r["ok"] for r in rows) else Exit.USAGE


@tasks.command("new")
@click.argument("name")
@click.option(
    "--unit",
    default="passage",
    type=click.Choice(("passage", "item", "answer", "sentence", "citation", "claim", "nugget", "pair")),
    help="Kind of unit to label.",
)
@click.option("--labels", default="yes,no", metavar="A,B,...", help="Labels of the task, in order.")
@click.option("--ordinal", is_flag=True, help="Treat the labels as ordered grades.")
@click.option(
    "--inputs",
    metavar="A,B,...",
    help="Inputs to show.  [default: question and passage, if the unit has them]",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    show_default=False,
    help="Folder to write the file to.  [default: here]",
)
def new(name: str, unit: str, labels: str, ordinal: bool, inputs: str | None, folder: Path) -> None:
    """Create the task file NAME.v1.md as a template for your own task.

    The file is valid and can be used unchanged.

    \b
    judge tasks new tone --labels friendly,neutral,hostile
    judge tasks new usefulness --unit answer --labels 0,1,2 --ordinal --inputs question,answer
    """
    from judge.prompts.load import parse_task
    from judge.prompts.scaffold import scaffold

    usual = {
        "passage": "question,passage",
        "item": "question",
        "claim": "answer_claim",
        "nugget": "answer,nugget",
        "pair": "claim,counter_claim",
    }
    shown = (inputs or usual.get(unit) or f"question,{'sentence' if unit == 'citation' else unit}").split(",")
    words = [label.strip() for label in labels.split(",")]
    path = folder / f"{name}.v1.md"
    text = scaffold(name, unit, words, [i.strip() for i in shown], ordinal)
    # Checked before it is written, so that the new file can be used as it is.
    task = parse_task(text, path.name)
    if not folder.is_dir():
        raise UsageError(f"{folder}: this folder does not exist")
    try:
        # A task that its user has edited must not be overwritten.
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path}: the file already exists; choose another name, or save changes as {name}.v2.md"
        ) from None
    print_lines(f"wrote {path}: {task.spec.unit}, field {name}, labels {', '.join(words)}")
    note(
        f"in this file, describe what each label means; next: {command('judge tasks check', path)}, then "
        + command("judge run", _format_path(path), "-m", "MODEL")
    )


def _format_path(path: Path) -> str:
    """Return the path in a form that a command does not mistake for the name of a shipped task."""
    # A name without a folder is looked up among the shipped tasks.
    return str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"


@tasks.command("render")
@click.argument("task_name", metavar="TASK")
@click.option("--unit", "unit_id", help="Unit to show (default: the first unit that has the inputs).")
@click.option(
    "--answers",
    type=click.Choice(["json", "codes", "words"]),
    default="json",
    help="Answer form: json, codes (letters) or words (the label itself).",
)
@click.option(
    "--label-order", default="declared", help="Order of the labels: declared, reversed or shuffled:SEED."
)
@prompts_option
@db_option
@json_option
def render(
    task_name: str,
    unit_id: str | None,
    answers: str,
    label_order: str,
    prompts: Path | None,
    db: Path,
    as_json: bool,
) -> None:
    """Print the messages that a model would get for one unit.

    \b
    judge tasks render stance
    judge tasks render stance --unit pairs:1/a --answers codes
    """
    from judge.prompts.raw import renderer_of
    from judge.runner.modes import choose_mode, label_orders
    from judge.store import selection
    from judge.store.export import find_task

    with Store.open(db, create=False) as store:
        task = find_task(store, task_name, prompts)
        # A selection is one SQL string without parameters.
        where = None if unit_id is None else "unit_id = " + quote(unit_id)
        selection.select(store, task, selection.Selection(where, limit=1))
        unit = next(selection.pending(store, task, run_id=""), None)
    if unit is None:
        raise UsageError(f"{db}: no unit for {task.name}" + (f" with the id '{unit_id}'" if unit_id else ""))
    # No server is asked here, so label probabilities cannot be assumed.
    mode = choose_mode(task, False, answers)
    prompt = renderer_of(task, mode, label_orders(task, label_order)).render(unit.inputs)
    if as_json:
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        document = {"task": task.name, "unit": unit.unit_id, "prefix": prompt.prefix, "messages": messages}
        emit_json("prompt", {**document, "answer_schema": prompt.schema, "codes": prompt.codes})
        return
    note(f"unit {unit.unit_id}")
    for message in prompt.messages:
        print_lines(f"--- {message.role}\n{message.content}\n")
