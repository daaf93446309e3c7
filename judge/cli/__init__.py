"""The `judge` command: one file per noun; heavy imports stay inside the commands (fast --help)."""

import click

from judge.cli.answers import answers
from judge.cli.calibrate import calibrate
from judge.cli.contest import compare as compare_runs
from judge.cli.demo import demo
from judge.cli.distractors import distractors
from judge.cli.drift import drift
from judge.cli.examples import examples
from judge.cli.generate import generate
from judge.cli.improve import improve
from judge.cli.items import items
from judge.cli.jobs import jobs
from judge.cli.models import models
from judge.cli.nuggets import nuggets
from judge.cli.pairs import pairs
from judge.cli.panel import panel
from judge.cli.plugins import plugins
from judge.cli.probe import probe
from judge.cli.rankings import rankings
from judge.cli.retrieve import retrieve
from judge.cli.route import route
from judge.cli.run import run
from judge.cli.runs import runs
from judge.cli.score import score
from judge.cli.split import split
from judge.cli.start import start
from judge.cli.studies import studies
from judge.cli.suite import suite
from judge.cli.systems import systems
from judge.cli.tasks import tasks
from judge.console import Command


@click.group(
    cls=Command,
    name="judge",
    sections={
        "Label": {
            "run": "Label the units of a task with a model.",
            "start": "Import a file, label it, and write a first report.",
            "tasks": "Show, check, render and create labelling tasks.",
            "models": "List the providers, and test a model.",
            "runs": "List, show, watch, export and import runs.",
            "jobs": "Follow runs in provider batches or in files.",
            "answers": "Generate and show the answers of systems.",
        },
        "Check": {
            "compare": "Compare runs of a task on the same units.",
            "drift": "Test whether a judge still gives the same labels.",
            "probe": "Count labels that change when they should not.",
            "route": "Find the units that need no human label.",
        },
        "Improve": {
            "improve": "Search for a better judge, and test it.",
            "split": "Split questions into learn, tune and sealed test.",
            "calibrate": "Calibrate a judge's label probabilities.",
            "panel": "Combine several judges into one.",
        },
        "Score": {
            "score": "Compute a paper's measures from stored labels.",
            "suite": "Start the runs that a paper needs, and score them.",
        },
        "Data": {
            "items": "Import and show items and passages.",
            "systems": "Import and list the outputs of systems.",
            "studies": "Merge studies that were labelled separately.",
            "retrieve": "Rank passages for each item with BM25.",
            "rankings": "Attach ranked passages to items.",
            "nuggets": "Import nuggets for questions (TREC RAG).",
            "pairs": "Build and list pairs of opposite claims.",
            "distractors": "Write and export wrong options for questions.",
        },
        "Learn": {
            "demo": "Label the sample data with small local models.",
            "examples": "Copy the sample data into a folder.",
            "plugins": "List the plugins of installed packages.",
        },
    },
    # Whatever has a default says so; an option whose default is no news says show_default=False.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="To begin, run judge demo, or judge start FILE with your own file. Exit codes: 0 done, 1 error, 2 usage or bad task file, 3 provider, "
    "4 finished but some units have no label, 5 below a threshold, 130 interrupted.",
)
@click.version_option(package_name="adjudge", message="adjudge %(version)s")
def main() -> None:
    """Label passages and score answers in bulk with an LLM.

    All data is stored in one SQLite file, the study.
    """


answers.add_command(generate)
for command in (
    demo, start, examples, items, tasks, models, run, runs, systems, answers, rankings, retrieve, distractors, pairs, nuggets, score, suite,
    jobs, split, studies, compare_runs, calibrate, panel, route, improve, probe, drift, plugins,
):  # fmt: skip
    main.add_command(command)
