"""annotate push and pull: send a batch to a Label Studio server, and fetch its labels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from annotate.cli._named import BatchName, with_study
from annotate.exchange.label_studio.server import Server
from judge.commands import command
from judge.console import emit_json, json_option, note, notes, pairs
from judge.errors import Exit
from judge.store import Store
from judge.types import attributes

if TYPE_CHECKING:
    from annotate.exchange.label_studio.pull import Pulled
    from annotate.exchange.label_studio.push import Pushed

MOST_TOLD = 20
url_option = click.option(
    "--url", required=True, envvar="LABEL_STUDIO_URL", metavar="URL",
    help="Server URL (also LABEL_STUDIO_URL).",
)  # fmt: skip


@click.command()
@click.argument("name", cls=BatchName)
@url_option
@click.option(
    "--with-predictions",
    "run",
    metavar="RUN",
    help="Send this run's labels as predictions (not blind).",
)
@click.option("--restore", is_flag=True, help="Send a unit again if its task was deleted.")
@click.option("--dry-run", is_flag=True, help="Print what would be sent, without contacting the server.")
@click.option("--new", is_flag=True, help="Abandon the project and create a new one.")
@click.option(
    "--separate",
    is_flag=True,
    help="Create one project for each annotator.",
)
@with_study
@json_option
def push(
    name: str,
    url: str,
    run: str | None,
    restore: bool,
    dry_run: bool,
    new: bool,
    separate: bool,
    store: Store,
    as_json: bool,
) -> None:
    """Send the batch NAME to a Label Studio server as a project.

    If you push again, only missing units are sent.

    \b
    annotate push pilot --url http://localhost:8080
    annotate push pilot --url http://localhost:8080 --separate
    annotate push assisted --url http://localhost:8080 --with-predictions last

    The key is a personal access token or a legacy token. It is read from LABEL_STUDIO_API_KEY and never stored.

    Each Label Studio task contains only the texts that a blind annotator is allowed to see. Hidden repeats
    are not sent to a shared project. With --separate, each annotator has a separate project and cannot see
    the labels of others.
    """
    from annotate.exchange.label_studio.push import preview
    from annotate.exchange.label_studio.push import push as send
    from annotate.sitting.desk import batch_info

    # This comes before the first call to the server, so that a wrong name costs no call.
    batch_info(store, name)
    if dry_run:
        seen = preview(store, name, url, run=run, separate=separate, new=new)
        if as_json:
            emit_json("push", attributes(seen))
        note(
            f"would send {seen.new:,} units to {_describe_destination(seen)}; {seen.there:,} were sent earlier"
        )
        if seen.repeats:
            note(
                f"{seen.repeats:,} hidden repeats would not be sent: they are shown only by annotate open (to send them, use --separate)"
            )
        return
    with Server(url) as server:
        done = send(
            store, name, server, run=run, new=new, restore=restore,
            # The free edition cannot hide a project, but if each person has a project, nobody opens another
            # one.
            separate=separate, progress=_progress,
        )  # fmt: skip
    if as_json:
        emit_json("push", attributes(done))
    _print_push(done)


def _describe_destination(seen: Pushed) -> str:
    """Describe the destination of a push in words."""
    if not seen.projects:
        return f"{'a new project' if seen.project is None else f'project {seen.project}'} of {seen.url}"
    each = [f"{who}: {f'project {n}' if n else 'a new project'}" for who, n in seen.projects.items()]
    return f"a project for each person at {seen.url} ({', '.join(each)})"


def _print_push(done: Pushed) -> None:
    made = "new project" if done.created else "project"
    if done.projects:
        for who, number in done.projects.items():
            note(f"for {who}: {done.url}/projects/{number}")
        made, where = f"{len(done.projects)} projects", ""
    else:
        where = f" {done.url}/projects/{done.project}"
    note(f"{made}{where}: {done.new:,} units sent, {done.there:,} were already there")
    without = f"{done.without_prediction:,} of the units sent have no prediction"
    for value, message in (
        (done.updated, "the labelling configuration was changed on the server, and has been restored"),
        (
            done.deleted,
            "{:,} units are left out, because their tasks were deleted there (to send them again, use --restore)",
        ),
        (
            done.repeats,
            "{:,} hidden repeats are not sent: they are shown only by annotate open (to send them, use --separate)",
        ),
        (done.run, f"predictions of run {{}}; {without}"),
        (done.assisted, "people see predictions there, so their labels count as assisted, not as blind"),
    ):
        if value:
            note(message.format(value))
    note(
        f"when the units have been labelled, fetch the labels: {command('annotate pull', done.batch, '--url', done.url)}"
    )


@click.command()
@click.argument("name", cls=BatchName)
@url_option
@click.option(
    "--annotator", "annotators", multiple=True, metavar="USER=NAME",
    help="Map a server user to NAME. Repeatable.",
)  # fmt: skip
@with_study
@json_option
def pull(name: str, url: str, annotators: tuple[str, ...], store: Store, as_json: bool) -> int:
    """Fetch the labels of the batch NAME from its Label Studio project.

    If you pull again, only new labels are added.

    \b
    annotate pull pilot --url http://localhost:8080
    annotate pull pilot --url http://localhost:8080 --annotator a.smith@example.org=alice

    Server users are matched to annotators by e-mail, user name, or the name before the @. If an answer was
    edited, the latest version counts. Labels count as blind only if the project contains no predictions.
    Labels that cannot be imported are listed, and the exit code is 1. The next pull fetches them again.
    """
    from annotate.exchange.label_studio.pull import pull as fetch
    from annotate.report.until_decided import move_on
    from annotate.sitting.desk import batch_info

    people = pairs(annotators, "--annotator")
    batch_info(store, name)
    with Server(url) as server:
        done = fetch(store, name, server, people=people, progress=_progress)
    # If these labels complete a block, the next one is drawn (--until-decided).
    move_on(store, name)
    if as_json:
        document = attributes(done)
        # Scripts read these keys: the attributes' names may change, the keys may not.
        document["read"] = document.pop("changed_tasks")
        imported = done.imported.as_json()
        names = ("new", "replaced", "older", "skips", "spans", "notes", "joined", "held", "retracted", "rows")
        del document["imported"]
        emit_json("pull", document | {name: imported[name] for name in names})
    _print_pull(done)
    return Exit.ERROR if done.problems or done.imported.quarantined else Exit.DONE


def _print_pull(done: Pulled) -> None:
    imported = done.imported
    new_labels = ", ".join(f"{who} {n:,}" for who, n in sorted(imported.new.items())) or "none"
    where = (
        f"{len(done.projects)} projects on {done.url}"
        if done.project is None
        else f"{done.url}/projects/{done.project}"
    )
    note(f"{where}: new labels: {new_labels}; {imported.replaced:,} of them replace an earlier one")
    for line in imported.describe_rows():
        note(line)
    for count, message in (
        (imported.skips, "units skipped"),
        (imported.spans, "units with evidence"),
        (imported.notes, "notes"),
        (done.incomplete, "annotations do not answer every question"),
        (sum(imported.joined.values()), "units were added to the queue of the annotator who labelled them"),
        (done.deleted_tasks, "units no longer have a task there; their imported labels are kept"),
        (done.deleted_annotations, "annotations were deleted there"),
        (imported.retracted, "labels from deleted annotations were removed; the log keeps them"),
        (done.strange_tasks, "tasks there do not belong to this batch and were left out"),
    ):
        if count:
            note(f"{count:,} {message}")
    if done.assisted:
        note("people see predictions there, so these labels count as assisted, not as blind")
    notes(done.problems[:MOST_TOLD], "not imported")
    if len(done.problems) > MOST_TOLD:
        note(f"... and {len(done.problems) - MOST_TOLD:,} more (--json lists all)")


def _progress(done: int, of: int) -> None:
    # A log file would otherwise contain a line for each page of the server.
    if sys.stderr.isatty():
        print(f"\r{done:,} of {of:,}", end="\n" if done >= of else "", file=sys.stderr, flush=True)
