"""The `annotate` command: one file per noun; heavy imports stay inside the commands (fast --help)."""

import click

from annotate.cli.agreement import agreement
from annotate.cli.annotators import annotators
from annotate.cli.conflicts import conflicts, verify
from annotate.cli.label_studio import pull, push
from annotate.cli.leading import batches
from annotate.cli.plan import plan
from annotate.cli.quarantine import quarantine
from annotate.cli.report import report
from annotate.cli.sitting import adjudicate, open_, serve, watch
from annotate.cli.transfer import export, formats, import_
from annotate.cli.view import view
from judge.console import Command


@click.group(
    cls=Command,
    name="annotate",
    # As in judge: whatever has a default says so; an option whose default is no news says show_default=False.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 server, 5 below a threshold, 130 interrupted.",
)
@click.version_option(package_name="adjudge", message="adjudge %(version)s")
def main() -> None:
    """People check what the judge did: agreement, reports and plans on a study or on any table of labels."""


for command in (
    agreement,
    annotators,
    batches,
    open_,
    adjudicate,
    serve,
    watch,
    export,
    import_,
    push,
    pull,
    quarantine,
    conflicts,
    verify,
    formats,
    plan,
    report,
    view,
):
    main.add_command(command)
