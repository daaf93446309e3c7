"""judge start: from a file to the first report. The script itself stands in `adjudge`, because it uses both programs."""

from __future__ import annotations

from pathlib import Path

import click

from judge.cli.models import ModelName
from judge.console import TO_READ, db_option


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=TO_READ)
@click.option(
    "-m",
    "--model",
    type=ModelName(),
    metavar="TEXT",
    help="The judge, as in judge run. Default: embedded/minilm, a small model in this process.",
)
@click.option("--base-url", metavar="URL", help="The server of the model, as in judge run.")
@click.option(
    "--task",
    metavar="NAME",
    help="What to judge: a task, or faithfulness. Default: what the file suits best.",
)
@click.option(
    "--as", "person", default="me", metavar="NAME", help="Name of the person who labels the sample."
)
@click.option("--yes", is_flag=True, help="Make calls that may cost money without a question.")
@db_option
def start(
    files: tuple[Path, ...],
    model: str | None,
    base_url: str | None,
    task: str | None,
    person: str,
    yes: bool,
    db: Path,
) -> int:
    """Go from FILE to a first report: import, judge, label a sample of 100, report.

    \b
    judge start ragas.csv -m openai/gpt-5-mini
    judge start mine.jsonl --task relevance_graded -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge start passages.csv

    Each step is a command of its own: it is printed before it is run, so you can go on alone. Before calls that may cost
    money there is an estimate and a question. The same line, typed again, goes on where it stopped.
    """
    from adjudge.start import Start

    return Start(files, model, base_url, task, person, yes, db).run()
