"""judge suite: everything that a paper's numbers need, done by one model, and then the numbers."""

from __future__ import annotations

import sys
from typing import Any

import click

from judge.asking.scores import asked
from judge.asking.suite import ASKING
from judge.asking.suite import suite as make
from judge.cli import board
from judge.cli.asked import exit_code
from judge.cli.progress import Progress
from judge.cli.run import of_run
from judge.cli.scored import emit
from judge.cli.scoring import (
    Papers,
    also_generate_option,
    by_option,
    how,
    interval_options,
    paper_options,
    rows_options,
    systems_option,
)
from judge.console import db_option, note, notes, output_options
from judge.errors import Exit
from judge.run_options import RunOptions
from judge.store import Store
from judge.suites.paper import Paper
from judge.suites.papers import PAPERS


@click.group(cls=Papers)
def suite() -> None:
    """Do all the runs that a paper's numbers need with one model, then print them.

    \b
    judge suite garage -m openai/gpt-5-mini
    judge suite raguard -m llamacpp/smollm2 -n 20 --sample 1
    judge suite mirage -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge suite garage -m openai/gpt-5-mini --system ours --system theirs

    What the study has already is not asked for again, and the same command goes on where it stopped. Step by step
    it is judge answers generate, judge run and judge score.
    """


def _command(paper: Paper) -> click.Command:
    text = f"Do what {paper.title} needs, then print its numbers.\n\n\b\njudge suite {paper.name} -m openai/gpt-5-mini"

    @click.command(paper.name, help=text, short_help=paper.title)
    @click.option(
        "-m", "--model", required=True, help="The judge; also the system under test, unless --system says."
    )
    @systems_option
    @also_generate_option
    @rows_options
    @paper_options(paper)
    @interval_options
    @by_option
    @db_option
    @output_options
    @of_run(*ASKING)
    def command(model: str, **options: Any) -> int:
        source = click.get_current_context().get_parameter_source
        own = RunOptions.of({name: options[name] for name in ASKING})
        given = [name for name in ASKING if source(name) is click.core.ParameterSource.COMMANDLINE]
        of_score = {name: value for name, value in options.items() if name not in ASKING}
        with Store.open(options["db"], create=False) as store:
            wanted = asked(paper, {**of_score, "models": (own.asked_as or model,)})
            systems = board.names_of(store, paper, wanted, options["systems"])
            # Where systems are compared afterwards, each by itself needs no intervals.
            score = {"interval": None} if len(systems) > 1 else {"by": options["by"], **how(options)}
            done = make(
                store,
                paper,
                wanted,
                systems,
                model,
                own,
                given,
                lambda: Progress(sys.stderr),
                lambda text: note(f"suite: {text}"),
                **score,
            )
            notes(done.performed.problems, "not kept")
            if done.performed.stopped is not None:
                code = exit_code(done.performed.stopped)
                return code if code != Exit.DONE else Exit.INCOMPLETE
            if len(systems) > 1:
                board.make(store, paper, done.asked, systems, "system", options)
            else:
                emit(done.results[0], options["as_json"], options["as_csv"])
        return Exit.DONE if done.has_every_label else Exit.INCOMPLETE

    return command


suite.make = _command
for _paper in PAPERS.values():
    suite.add_command(_command(_paper))
