"""judge start: perform all steps from importing a file to the first report.

The steps are in `adjudge.start`, because they use both programs, `judge` and `annotate`.
"""

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
    help="Model as vendor/model (default: embedded/minilm, a small local model).",
)
@click.option("--base-url", metavar="URL", help="URL of a server with the vendor's API.")
@click.option(
    "--task",
    metavar="NAME",
    help="Task for the labels, or faithfulness (default: chosen from the columns of the file).",
)
@click.option("--as", "person", default="me", metavar="NAME", help="Your name as an annotator.")
@click.option("--yes", is_flag=True, help="Make calls that may cost money without asking for confirmation.")
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
    """Import FILE, label it with a model, and report how well the model agrees with you.

    You label a sample of 100 units for the report.

    \b
    judge start ragas.csv -m openai/gpt-5-mini
    judge start mine.jsonl --task relevance_graded -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge start passages.csv

    Each step is a separate command, which is printed before it runs. Before calls that may cost money, the
    command prints an estimate and asks for confirmation. To resume, run the same command again.
    """
    # Imported only here, because the script uses both programs and is in a higher layer.
    from adjudge.start import Start

    return Start(files, model, base_url, task, person, yes, db).run()
