"""annotate open and adjudicate (in the terminal), annotate serve (in a browser), and annotate watch (live progress)."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from pathlib import Path

import click

from annotate.cli._named import BatchName, Person
from annotate.store import open_study
from annotate.tui.settings import find_keymap
from annotate.tui.web import make_server
from judge import commands
from judge.console import db_option, note, print_lines, suggests_next
from judge.errors import StudyError, UsageError
from judge.store import Store

LOOK_SECONDS = 2.0
"""The seconds between two reads of the study's file by `annotate watch`."""
BUSY_MS = 8
"""The milliseconds for which a commit may block the screen. After this time, the commit waits for the other
program without blocking.
"""


@click.command("open")
@click.argument("name", cls=BatchName)
@click.option("--as", "person", cls=Person, required=True, metavar="NAME", help="Your name as an annotator.")
@click.option("--plain", is_flag=True, help="Use line mode, for screen readers and simple terminals.")
@db_option
def open_(name: str, person: str, plain: bool, db: Path) -> None:
    """Label the batch NAME in this terminal.

    Every label is saved immediately. To continue later, run the same command again.

    Press ? for guidelines and keys, Ctrl+P for themes and Ctrl+Q to quit. To change the keys, edit
    adjudge/keymap.toml in your configuration folder.
    """
    _sit(name, person, db, adjudicate=False, allow_own=False, plain=plain)


@click.command("adjudicate")
@click.argument("name", cls=BatchName)
@click.option(
    "--as", "person", cls=Person, required=True, metavar="NAME", help="Name of the person who decides."
)
@click.option("--allow-own", is_flag=True, help="Include units that you labelled yourself.")
@db_option
def adjudicate(name: str, person: str, allow_own: bool, db: Path) -> None:
    """Adjudicate the units in the batch NAME on which people disagree.

    Annotators are shown as A, B and C, in a new order for each unit. Press + to write a reason.
    """
    _sit(name, person, db, adjudicate=True, allow_own=allow_own)


def _sit(
    name: str,
    person: str,
    db: Path,
    *,
    adjudicate: bool,
    allow_own: bool,
    plain: bool = False,
) -> None:
    from annotate.leading.adjudication import fill_queue
    from annotate.sitting.desk import Desk, batch_info, end_session
    from annotate.tui.app import run_app
    from annotate.tui.keymap import load_keymap
    from annotate.tui.plain import BUSY_MS as WHOLE_WAIT_MS
    from annotate.tui.plain import run_plain

    # In a browser there is no terminal: annotate serve says so by naming the driver.
    if not plain and not (os.environ.get("TEXTUAL_DRIVER") or (sys.stdin.isatty() and sys.stdout.isatty())):
        browser = "" if adjudicate else "; annotate serve opens it in a browser, and --plain uses line mode"
        raise UsageError(f"annotate {'adjudicate' if adjudicate else 'open'} needs a terminal{browser}")
    with open_study(db) as store:
        task = batch_info(store, name).task
        # Before the desk is opened: a mistake in the keymap must not occupy the seat.
        keys = load_keymap(find_keymap(), task)
        if adjudicate and not fill_queue(store, name, person, allow_own=allow_own):
            note(f"batch '{name}': there is nothing to adjudicate yet")
            return
        # A screen must go on drawing while the file is locked; a dialogue can wait.
        busy_ms = WHOLE_WAIT_MS if plain else BUSY_MS
        with Desk.open(
            store, name, person, adjudicate=adjudicate, allow_own=allow_own, busy_ms=busy_ms
        ) as desk:
            refused = None
            try:
                if plain:
                    run_plain(desk)
                else:
                    refused = run_app(desk, keys)
            finally:
                # The session must also end after an error, because an open session would lock out its
                # annotator.
                counts = desk.counts()
                end_session(db, desk.seat.session)
    message = f"the last key was refused ({refused}), but everything before it" if refused else "everything"
    note(f"{counts['done']} of {desk.total} done, {counts['skipped']} skipped; {message} is stored")
    if not counts["open"] and not adjudicate:
        from annotate.report.until_decided import move_on

        with open_study(db) as store:
            # Opened anew: the connection of a sitting may read only what its annotator may see.
            message = move_on(store, name)
            # The report shows the judge's labels, and others may still label these units.
            is_alone = _annotators(store, name) == 1
        if message:
            note(message)
    if counts["open"]:
        mode = ["--plain"] if plain else []
        line = commands.command(
            "annotate adjudicate" if adjudicate else "annotate open", name, "--as", person, *mode, study=db
        )
        note(f"to continue: {line}")
    elif not adjudicate and is_alone and suggests_next():
        report = commands.command("annotate report", "--task", task.task_id, "-o", "report.html", study=db)
        note(f"next: {report}")


def _annotators(store: Store, batch: str) -> int:
    """Return the number of people to whom units in a batch are assigned."""
    query = "SELECT count(DISTINCT annotator_id) FROM assignments WHERE batch = ?"
    return int(store.conn.execute(query, [batch]).fetchone()[0])


@click.command("serve")
@click.argument("name", cls=BatchName)
@click.option("--as", "person", cls=Person, required=True, metavar="NAME", help="Name of the annotator.")
@click.option("--port", type=click.IntRange(1, 65535), default=8642, help="Port to listen on.")
@db_option
def serve(name: str, person: str, port: int, db: Path) -> None:
    """Label the batch NAME in a browser on this machine.

    The printed URL contains a token that works once. The server listens on 127.0.0.1 only. From another
    machine, use an SSH tunnel: ssh -L 9000:127.0.0.1:8642 HOST. Press Ctrl+C to stop.
    """
    from annotate.sitting.desk import check_available

    def check() -> None:
        with open_study(db) as store:
            check_available(store, name, person)

    # Errors are printed here, before a browser is needed.
    check()
    with socket.socket() as probe:
        # A port that was closed just now is free, although the system still waits for late packets.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # The port is tried here, because the server would end with a traceback.
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise StudyError(f"port {port} is in use; choose another port with --port") from e
    program = [sys.executable, "-m", "annotate", "open", name, "--as", person, "-d", str(db.resolve())]
    server, address = make_server(shlex.join(program), port, check)
    note(f"open {address}")
    server.serve()


@click.command("watch")
@click.argument("name", cls=BatchName)
@click.option("--once", is_flag=True, help="Print the progress once and exit (default without a terminal).")
@db_option
def watch(name: str, once: bool, db: Path) -> None:
    """Show the live progress of the batch NAME.

    The screen also lists annotators who label very fast, and the text of each flag.

    It never shows a label and changes nothing, so you can use it while people or a judge are working. Press q
    to quit.
    """
    from datetime import UTC, datetime

    from annotate.leading.watch import look, sections, title
    from annotate.sitting.desk import batch_info
    from judge.document.terminal import section_lines

    with open_study(db) as store:
        batch_info(store, name)
        if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            document, at = look(store, name), datetime.now(UTC)
            print_lines(title(document, at))
            for section in sections(document, at):
                print_lines("\n".join(["", *section_lines(section)]))
            return
    from annotate.tui.watch import run_watch

    # The study is closed by now: the screen opens the file at each look.
    run_watch(db, name, LOOK_SECONDS)
