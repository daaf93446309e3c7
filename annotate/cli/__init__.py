"""The `annotate` command. The module of a subcommand is imported only when the subcommand is used."""

import click

from judge.console import Command


@click.group(
    cls=Command,
    name="annotate",
    package="annotate.cli",
    modules={
        **dict.fromkeys(["open", "adjudicate", "serve", "watch"], "sitting"),
        **dict.fromkeys(["import", "export", "formats"], "transfer"),
        **dict.fromkeys(["push", "pull"], "label_studio"),
        "verify": "conflicts",
        "batches": "leading",
    },
    sections={
        "Label": {
            "open": "Label a batch in this terminal.",
            "serve": "Label a batch in a browser on this machine.",
            "batches": "Draw, show, assign, extend and close batches.",
            "watch": "Watch the progress of a batch.",
            "annotators": "List the annotators, and describe them.",
        },
        "Check": {
            "report": "Report how far a judge can be trusted.",
            "agreement": "Compute agreement between annotators.",
            "plan": "Compute how many questions and units to label.",
            "view": "Write units with texts and labels as one page.",
            "verify": "Recompute the stored labels, and compare them.",
        },
        "Decide": {
            "adjudicate": "Decide the units on which annotators disagree.",
            "conflicts": "List and resolve conflicting labels.",
            "quarantine": "List, accept and drop labels that failed a check.",
        },
        "Data": {
            "export": "Write a batch for another tool or machine.",
            "import": "Import human labels from a file.",
            "push": "Send a batch to a Label Studio server.",
            "pull": "Fetch the labels from a Label Studio project.",
            "formats": "List the formats for export and import.",
        },
    },
    # As in judge: whatever has a default says so; an option whose default is no news says show_default=False.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 server, 5 below a threshold, 130 interrupted.",
)
@click.version_option(package_name="adjudge", message="adjudge %(version)s")
def main() -> None:
    """Collect human labels, and use them to check judges."""
