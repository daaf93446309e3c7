"""The `judge` command.

Each subcommand is defined in the module of the same name, which is imported only when needed.
"""

import click

from judge.console import Command


@click.group(
    cls=Command,
    name="judge",
    package="judge.cli",
    # The most common commands come first in each section.
    sections={
        "Label": {
            "run": "Label the units of a task with a model.",
            "start": "Import a file, label it, and write a first report.",
            "tasks": "Show, check, render and create labelling tasks.",
            "models": "List the providers, and test a model.",
            "runs": "List, show, watch, export and import runs.",
            "jobs": "Follow runs in provider batches or request files.",
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
            "split": "Split questions into learn, tune and test parts.",
            "calibrate": "Calibrate a judge's label probabilities.",
            "panel": "Combine several judges into one.",
        },
        "Score": {
            "score": "Compute a paper's measures from stored labels.",
            "results": "List each answer with its scores, worst first.",
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
    # Every default is shown, except those of options with show_default=False.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="To begin, run judge demo, or judge start FILE with your own file. Exit codes: 0 done, 1 error, 2 usage or bad task file, 3 provider, "
    "4 finished but some units have no label, 5 below a threshold, 130 interrupted.",
)
@click.version_option(package_name="adjudge", message="adjudge %(version)s")
def main() -> None:
    """Label passages and score answers in bulk with an LLM.

    All data is stored in one SQLite file, the study.
    """
